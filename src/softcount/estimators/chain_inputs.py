"""Sequences of symbols as codes: in the alphabet they have, or in that of a chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.errors import DataError
from softcount.learn.settings import retyping
from softcount.run.local import AtOnce
from softcount.sequences import Sequences, open_sequences
from softcount.sources import wording
from softcount.table import Chunk, Schema, Table


class CodedSequences(Struct, frozen=True, eq=False):
    """Codes of all steps end to end (0 is a gap, symbols from 1), what they stand for, and the sequences they are."""

    sequences: Sequences
    codes: np.ndarray
    schema: Schema

    @property
    def symbols(self) -> list[Any]:
        return list(self.schema.used[0].levels)

    @property
    def weights(self) -> np.ndarray | None:
        return self.sequences.weights

    @property
    def starts(self) -> np.ndarray:
        return self.sequences.starts


def coded(X: Any, weights: Any, ends: bool, symbols: Sequence[Any] | None) -> CodedSequences:
    """Sequences in the alphabet that they have, in order; `symbols` are in it whether met or not."""
    sequences = open_sequences(X, weights=weights, empty=ends)
    _refuse_wide(sequences)
    key = sequences.source.keys[0]
    table = sequences.table(kinds="categorical", levels={key: list(symbols)} if symbols is not None else None)

    def read(table: Table) -> CodedSequences:
        chunks = list(table.chunks())
        settled = table.settle()
        return CodedSequences(sequences, _codes([settled.recoded(chunk) for chunk in chunks]), settled.schema)

    found = retyping(table, read, AtOnce())
    if not len(found.symbols):
        raise DataError("every step is missing. A chain needs at least one symbol.")
    if symbols is not None:
        _refuse_other(found, set(symbols))
    return found


def coded_as(X: Any, weights: Any, schema: Schema) -> CodedSequences:
    """Sequences in the alphabet of a chain; a symbol that it does not have is refused by its place."""
    sequences = open_sequences(X, weights=weights, empty=True)
    _refuse_wide(sequences)
    table = sequences.table(schema=_as_named(schema, sequences))
    found = CodedSequences(sequences, _codes(list(table.chunks())), schema)
    beyond = np.flatnonzero(found.codes > len(found.symbols))
    if len(beyond):
        raise _never_seen(sequences, int(beyond[0]), "was never met when the chain was fitted")
    return found


def _as_named(schema: Schema, sequences: Sequences) -> Schema:
    """The chain's one column under the name that it has here: there is no other it could be."""
    (spec,) = schema.used
    return Schema((replace(spec, key=sequences.source.keys[0]),), schema.missing)


def _codes(chunks: list[Chunk]) -> np.ndarray:
    parts = [chunk.codes if chunk.codes.shape[1] else chunk.wide for chunk in chunks]
    return np.concatenate([part[:, 0] for part in parts]) if parts else np.zeros(0, dtype=np.uint8)


def _refuse_wide(sequences: Sequences) -> None:
    keys = sequences.source.keys
    if len(keys) > 1:
        raise DataError(
            f"a chain is of one column, but a step has {len(keys)}: {wording.and_others(keys)}. Name one: "
            f"{remedies.either('read_sequences(..., columns=[...])', '--symbols COL')}."
        )


def _refuse_other(found: CodedSequences, symbols: set[Any]) -> None:
    other = [place for place, symbol in enumerate(found.symbols, start=1) if symbol not in symbols]
    if other:
        row = int(np.argmax(np.isin(found.codes, other)))
        raise _never_seen(found.sequences, row, "is none of the `symbols` given")


def _never_seen(sequences: Sequences, row: int, what: str) -> DataError:
    cell = sequences.source.table.column(0)[row].as_py()
    return DataError(
        f"{sequences.place(row)}: {wording.cell(cell)} {what}. Give None for a step that is not known, or fit with "
        "symbols=[...], all that may come."
    )
