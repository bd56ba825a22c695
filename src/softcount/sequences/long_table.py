"""Sequences in a long table: a row for each step, a column that says which sequence, and one that says when."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.sequences.steps import Steps
from softcount.sources import wording
from softcount.sources.arrow_columns import PLAIN, CellType, arrow_of, cell_type, flat, floats_of, numpy_of
from softcount.sources.source import Key, Source, Wanted
from softcount.table.cell_values import MissingWords, distinct, numbers


def long_table(source: Source, sequence: Key, order: Key | None, weight: Key | None, words: MissingWords) -> Steps:
    """Rows gathered by sequence, in the order in which sequences first come, and put in order within each.

    Without an order column the rows stay as they stand. Two rows of one sequence at one time are refused.
    """
    for key, what in ((sequence, "sequence"), (order, "order"), (weight, "weight")):
        if key is not None:
            wording.refuse_unknown(source.keys, key, what)
    columns = all_columns(source)
    names, places = distinct(columns.pop(sequence), words)
    _refuse_missing(sequence, np.array([name is None for name in (*names, None)])[places])
    names, places = _by_spelling(names, places)
    when, spelt = (None, ()) if order is None else _times(order, columns.pop(order), words)
    weights = None if weight is None else _weights(weight, columns.pop(weight), words)
    if not columns:
        raise DataError("no column is left for the steps themselves besides those named.")
    rows, notes = _in_order(sequence, order, names, places, when)
    lengths = np.bincount(places, minlength=len(names)).astype(np.int64)
    per_sequence = None if weights is None else _one_each(weights[rows], lengths, names, weight)
    if (np.diff(rows) != 1).any():
        columns = {key: _taken(column, rows) for key, column in columns.items()}
    return Steps(
        columns,
        lengths,
        names,
        per_sequence,
        (*source.notes, *spelt, *notes),
        not source.named,
        source.text_file,
        source.verbatim,
    )


def in_order(found: Steps, order: Key, missing: tuple[str, ...]) -> Steps:
    """Sequences whose steps are put in the order that one of their columns says, which is no part of a step then."""
    wording.refuse_unknown(found.columns, order, "order")
    columns = dict(found.columns)
    when, spelt = _times(order, columns.pop(order), MissingWords.of(missing, found.text_file))
    places = np.repeat(np.arange(len(found.lengths)), found.lengths)
    rows, notes = _in_order("sequence", order, found.names, places, when)
    taken = {key: _taken(column, rows) for key, column in columns.items()}
    return replace(found, columns=taken, notes=(*found.notes, *spelt, *notes))


def all_columns(source: Source, keys: Sequence[Key] | None = None) -> dict[Key, Any]:
    """Every column of a source, or some, as one Arrow array each."""
    import pyarrow as pa

    if not source.keys:
        raise DataError("a sparse matrix has no columns to name a sequence by. Give a frame or a file.")
    wanted = {key: Wanted(numeric=False) for key in keys or source.keys}
    pieces = [_columns(piece.load(), source.keys) for piece in source.pieces(wanted)]
    found = {}
    for key in wanted:
        chunks: list[Any] = []
        for piece in pieces:
            chunks.extend(piece[key].chunks if isinstance(piece[key], pa.ChunkedArray) else [piece[key]])
        found[key] = flat(pa.chunked_array(_one_type(chunks)).unify_dictionaries())
    return found


def _columns(loaded: Any, keys: Sequence[Key]) -> Mapping[Key, Any]:
    """What a piece loads as columns, also where it is an array."""
    if isinstance(loaded, np.ndarray):
        return {key: arrow_of(loaded[:, place]) for place, key in enumerate(keys)}
    found: Mapping[Key, Any] = loaded
    return found


def _one_type(chunks: list[Any]) -> list[Any]:
    """Chunks of one Arrow type: a piece of nothing but holes has none of its own."""
    import pyarrow.types as types

    kinds = {chunk.type for chunk in chunks if not types.is_null(chunk.type)}
    return [chunk.cast(next(iter(kinds))) if len(kinds) == 1 else chunk for chunk in chunks]


def _taken(column: Any, rows: np.ndarray) -> Any:
    return column.take(arrow_of(rows))


def _by_spelling(names: list[Any], places: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Names that are the same once trimmed made one, numbered as they first come."""
    number: dict[Any, int] = {}
    for place in places[np.sort(np.unique(places, return_index=True)[1])].tolist():
        number.setdefault(names[place], len(number))
    table = np.array([number.get(name, -1) for name in names], dtype=np.int64)
    return list(number), table[places]


def _refuse_missing(key: Key, gone: np.ndarray) -> None:
    if gone.any():
        row = int(np.argmax(gone)) + 1
        raise DataError(
            f"{wording.column(key)}, row {row}: missing, so the row belongs nowhere. Fill it, or drop the row."
        )


ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?")
"""Dates and times whose spelling is in the order of time."""


def _times(key: Key, column: Any, words: MissingWords) -> tuple[np.ndarray, tuple[str, ...]]:
    """The order of every row: numbers as they are, dates and times by their moment, text by its spelling, with a note.

    Of text only dates as ISO 8601 writes them need no note.
    """
    cells = cell_type(column.type)
    if cells in (CellType.WHOLE, CellType.FLOAT, CellType.TIME, CellType.TRUTH):
        import pyarrow as pa

        column = flat(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)
        _refuse_missing(key, ~numpy_of(column.is_valid())[0])
        if cells is CellType.TIME:
            wide = pa.int32() if column.type.bit_width == 32 else pa.int64()
            column = column.cast(wide)
        column = column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
        values = numpy_of(column)[0]
        if values.dtype.kind == "f":
            _refuse_missing(key, np.isnan(values))
        return values, ()
    if cells is CellType.NESTED:
        raise DataError(f"{wording.column(key)} holds nested values, which have no order.")
    names, places = distinct(column, words)
    _refuse_missing(key, np.array([name is None for name in (*names, None)])[places])
    texts = [str(name) for name in names]
    spelt, bad = floats_of(texts, PLAIN)
    if not bad.any():
        return np.asarray(spelt[places]), ()
    rank = {text: at for at, text in enumerate(sorted(set(texts)))}
    dates = all(ISO.fullmatch(text) for text in texts)
    notes = () if dates else (f"{wording.column(key)} is text and ordered by its spelling, first {min(texts)!r}",)
    return np.asarray(np.array([rank[text] for text in texts], dtype=np.int64)[places]), notes


def _weights(key: Key, column: Any, words: MissingWords) -> np.ndarray:
    found = numbers(column, words, key, 0, padded=True)
    _refuse_missing(key, np.isnan(found))
    return found


def _in_order(
    sequence: Key, order: Key | None, names: Sequence[Any], places: np.ndarray, when: np.ndarray | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The rows in the order in which they are steps, and a note where they did not stand so."""
    if when is None or order is None:
        return np.argsort(places, kind="stable"), (
            f"no order column: rows of one {sequence!r} are steps as they stand",
        )
    rows = np.lexsort((when, places))
    here, at = places[rows], when[rows]
    again = np.flatnonzero((here[1:] == here[:-1]) & (at[1:] == at[:-1]))
    if len(again):
        first, second = int(rows[again[0]]), int(rows[again[0] + 1])
        step = int(again[0]) - int(np.searchsorted(here, here[again[0]])) + 2
        raise DataError(
            f"sequence {names[here[again[0]]]!r}, step {step}: rows {first + 1} and {second + 1} have the same "
            f"{order!r}. Which comes first must be known: name another order column, or drop one of them."
        )
    moved = np.unique(here[1:][(here[1:] == here[:-1]) & (rows[1:] < rows[:-1])])
    if not len(moved):
        return rows, ()
    were = "1 sequence was" if len(moved) == 1 else f"{len(moved):,} sequences were"
    return rows, (f"{were} not in order of {order!r} and put so, first {names[moved[0]]!r}",)


def _one_each(weights: np.ndarray, lengths: np.ndarray, names: Sequence[Any], key: Key | None) -> np.ndarray:
    """The weight of each sequence, which all its rows must agree on."""
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    first = np.asarray(weights[starts])
    differs = np.flatnonzero(weights != np.repeat(first, lengths))
    if len(differs):
        at = int(np.searchsorted(starts, differs[0], "right")) - 1
        raise DataError(
            f"sequence {names[at]!r}, step {differs[0] - starts[at] + 1}: its weight {weights[differs[0]]:g} in "
            f"{wording.column(key)} differs from {first[at]:g} at step 1. A weight is of a whole sequence."
        )
    return first
