"""A run of encoded rows, all that the engine ever sees of a table: its codes put in order, and its rows in folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from softcount.table.schema import Key, Schema

if TYPE_CHECKING:
    from scipy import sparse

UNKNOWN = -1
"""The label code of a row whose class is not known."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows `start` .. `start + n_rows`, column by column in the arrays that `Schema.places` names.

    `reals` holds numbers as they came, NaN where missing; its memory layout is free (rows first is fastest).
    `codes` (one byte) and `wide` (four bytes) hold levels: 0 is missing, 1..m the levels of the field in order,
    m + 1 a level the model has never seen. `bags` are sparse blocks of counts: the one of a CSR table, or one for every
    text column, whose first column is 1 for a document and 0 where it is missing, followed by its words.
    `labels` are class codes, `UNKNOWN` where not known; `weights` are row weights, None for all ones. `borders` are the
    rows, counted within the chunk, at which a new sequence starts; None where rows are no sequences.
    """

    start: int
    n_rows: int
    reals: np.ndarray  # (rows, p) float64
    codes: np.ndarray  # (rows, q) uint8, C order
    wide: np.ndarray  # (rows, r) int32, C order
    bags: tuple[sparse.csr_matrix, ...] = ()
    labels: np.ndarray | None = None  # (rows,) int32
    weights: np.ndarray | None = None  # (rows,) float64
    borders: np.ndarray | None = None  # rising rows of this chunk

    def take(self, rows: np.ndarray | slice) -> Chunk:
        """Some of its rows, as if they came one after another where it starts; rows of sequences only as a slice."""
        borders = self._borders_in(rows)
        reals = self.reals[rows]
        codes, wide = (np.ascontiguousarray(store[rows]) for store in (self.codes, self.wide))
        labels, weights = (None if side is None else side[rows] for side in (self.labels, self.weights))
        bags = tuple(bag[rows] for bag in self.bags)
        return Chunk(self.start, len(reals), reals, codes, wide, bags, labels, weights, borders)

    def _borders_in(self, rows: np.ndarray | slice) -> np.ndarray | None:
        if self.borders is None:
            return None
        first, stop, step = rows.indices(self.n_rows) if isinstance(rows, slice) else (0, 0, 0)
        if step != 1:
            raise ValueError("rows of sequences stay together: take a slice without a step, not rows picked out")
        return self.borders[(self.borders >= first) & (self.borders < stop)] - first


@dataclass(frozen=True, slots=True)
class Chunks:
    """A few chunks, to be gone through as a table is."""

    chunks: Sequence[Chunk]
    n_rows: int | None = None

    def tasks(self) -> list[Callable[[], Chunk]]:
        return [partial(_itself, chunk) for chunk in self.chunks]


def _itself(chunk: Chunk) -> Chunk:
    return chunk


PAIRS: tuple[tuple[object, object], ...] = (
    (0, 1), (False, True), ("no", "yes"), ("No", "Yes"), ("n", "y"), ("N", "Y"), ("f", "t"), ("F", "T"),
    ("false", "true"), ("False", "True"),
)  # fmt: skip
"""Opposites, so that a yes-or-no column knows its other level even if it was never met."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What a full pass has shown: the schema with its levels in order, and the new code of every code handed out.

    `remap[key][old]` is the new code of a level; `classes` are the labels in order, and `label_remap[old]` their new
    codes (None: they were coded in order to begin with).
    """

    schema: Schema
    remap: dict[Key, np.ndarray]
    classes: list[Any]
    label_remap: np.ndarray | None
    notes: list[str] = field(default_factory=list)

    def recoded(self, chunk: Chunk) -> Chunk:
        """The chunk with its codes and labels in the settled order."""
        labels = chunk.labels
        if labels is not None and self.label_remap is not None:
            labels = np.where(labels < 0, labels, self.label_remap[np.maximum(labels, 0)]).astype(np.int32)
        codes, wide = self._codes(chunk.codes, "codes"), self._codes(chunk.wide, "wide")
        return replace(chunk, codes=codes, wide=wide, labels=labels)

    def _codes(self, codes: np.ndarray, store: str) -> np.ndarray:
        fields = self.schema.stored(store)
        moves = [(j, self.remap[spec.key]) for j, spec in enumerate(fields) if spec.key in self.remap]
        moves = [(j, move) for j, move in moves if (move != np.arange(len(move))).any()]
        if not moves:
            return codes
        codes = codes.copy()
        for j, move in moves:
            codes[:, j] = move.astype(codes.dtype)[codes[:, j]]
        return codes

    def with_opposites(self, keys: Iterable[Key]) -> Settled:
        """The same with both levels of yes-or-no columns of which only one was met."""
        schema, remap = self.schema, dict(self.remap)
        for key in keys:
            spec = schema[key]
            level = spec.levels[0] if len(spec.levels) == 1 else None
            pair = next((pair for pair in PAIRS if level in pair and type(level) is type(pair[0])), None)
            if pair is not None:
                move = remap.get(key, np.array([0, 1]))
                remap[key] = move + (move > 0) * int(level == pair[1])
                schema = schema.with_field(replace(spec, levels=pair))
        return replace(self, schema=schema, remap=remap)


class RowRange(Protocol):
    """Anything that is some rows of a table, one after another."""

    @property
    def start(self) -> int: ...
    @property
    def n_rows(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Split:
    """Which fold a row is in, from its number and the seed. With a share, fold 0 is held out and fold 1 trains."""

    folds: int
    seed: int
    share: float | None = None

    @property
    def tested(self) -> range:
        return range(1) if self.share is not None else range(self.folds)

    def of(self, rows: RowRange) -> np.ndarray:
        mixed = np.arange(rows.start, rows.start + rows.n_rows, dtype=np.uint64)
        with np.errstate(over="ignore"):
            mixed += np.uint64(self.seed & (2**63 - 1)) * np.uint64(11400714819323198485)
            for shift, factor in ((30, 13787848793156543929), (27, 10723151780598845931)):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        if self.share is not None:
            return (mixed / 2.0**64 >= self.share).astype(np.int32)
        return (mixed % np.uint64(self.folds)).astype(np.int32)
