"""Sequences that are nested in Python or in Arrow: lists of lists, of arrays, of frames; columns of lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.sequences.steps import Steps
from softcount.sources import wording
from softcount.sources.arrow_columns import flat, numpy_of
from softcount.sources.frames import arrow_column, frame_source, is_frame, is_missing, plain_keys
from softcount.sources.source import Key

FLAT = "a list of sequences is wanted, but {what}. Put one sequence into a list of its own: [sequence]."


def is_list_column(data: Any) -> bool:
    """Whether data is a column of lists as Arrow, polars or pandas (with Arrow's types) hold it."""
    import pyarrow as pa

    if isinstance(data, pa.Array | pa.ChunkedArray):
        return is_list_type(data.type)
    if not is_frame(data) or hasattr(data, "columns"):
        return False
    try:
        return is_list_type(pa.chunked_array(data).type)
    except (pa.ArrowException, ValueError, TypeError):
        return False


def is_list_type(kind: Any) -> bool:
    """Whether the cells of an Arrow type are lists."""
    import pyarrow.types as types

    return any(test(kind) for test in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def list_column(data: Any) -> Steps:
    """The steps of a column of lists; lists of structs are steps of several columns. A null list is refused."""
    import pyarrow as pa

    column = flat(data if isinstance(data, pa.Array | pa.ChunkedArray) else pa.chunked_array(data))
    if column.null_count:
        known = numpy_of(column.is_valid())[0]
        raise DataError(f"sequence {int(np.argmin(known)) + 1} is missing. Leave it out.")
    lengths = numpy_of(column.value_lengths())[0].astype(np.int64)
    values = flat(column.flatten())
    if pa.types.is_struct(values.type):
        names = [values.type.field(place).name for place in range(values.type.num_fields)]
        return Steps(dict(zip(names, values.flatten(), strict=True)), lengths)
    if is_list_type(values.type):
        return list_of_sequences(column.to_pylist())
    return Steps({0: values}, lengths, by_position=True)


def list_columns(columns: Mapping[Key, Any]) -> Steps:
    """Several columns of lists side by side: in each row, lists of one length; a column for each."""
    parts = {key: list_column(column) for key, column in columns.items()}
    (first, known), *others = parts.items()
    for key, part in others:
        differs = np.flatnonzero(part.lengths != known.lengths)
        if len(differs):
            at = int(differs[0])
            raise DataError(
                f"sequence {at + 1} has {known.lengths[at]} steps in {wording.column(first)} and {part.lengths[at]} "
                f"in {wording.column(key)}. Columns of one sequence have one length."
            )
    return Steps({key: part.columns[0] for key, part in parts.items()}, known.lengths)


def list_of_sequences(data: Sequence[Any]) -> Steps:
    """A list of lists, tuples, arrays or frames."""
    parts = [_steps_of(at, sequence) for at, sequence in enumerate(data, start=1)]
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    if parts and all(is_frame(part) and hasattr(part, "columns") for part in parts):
        return _frames(parts)
    if parts and all(isinstance(part, np.ndarray) and part.dtype.kind in "iufb" for part in parts):
        return _arrays(parts, lengths)
    cells = list(chain.from_iterable(part.tolist() if isinstance(part, np.ndarray) else part for part in parts))
    first = next((cell for cell in cells if not _is_gap(cell)), None)
    if isinstance(first, Mapping):
        return _records(cells, lengths)
    if isinstance(first, list | tuple | np.ndarray):
        return _rows(cells, len(first), lengths)
    _refuse_nested(cells, lengths)
    return Steps({0: arrow_column(0, cells)}, lengths, by_position=True)


def _steps_of(at: int, sequence: Any) -> Any:
    if isinstance(sequence, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(sequence), np.nan, sequence.data.astype(np.float64))
    if isinstance(sequence, str | bytes | Mapping) or not hasattr(sequence, "__len__"):
        raise DataError(FLAT.format(what=f"item {at} is {wording.cell(sequence)}"))
    if getattr(sequence, "ndim", 1) == 0:
        raise DataError(FLAT.format(what=f"item {at} is {wording.cell(sequence)}"))
    plain = isinstance(sequence, np.ndarray | list | tuple) or (is_frame(sequence) and hasattr(sequence, "columns"))
    return sequence if plain else list(sequence)


def _is_gap(cell: Any) -> bool:
    return not isinstance(cell, np.ndarray | list | tuple) and is_missing(cell)


def _arrays(parts: list[np.ndarray], lengths: np.ndarray) -> Steps:
    """Arrays of numbers: of one axis (a symbol or number for each step) or two (a row for each)."""
    axes = [part.ndim for part in parts]
    if max(axes) > 2:
        raise DataError(f"sequence {axes.index(max(axes)) + 1} has {max(axes)} axes. A sequence has one or two.")
    widths = [part.shape[1] if part.ndim == 2 else 1 for part in parts]
    _refuse_widths(widths, np.concatenate([[0], np.cumsum(np.ones(len(parts), np.int64))]), "sequence")
    rows = np.concatenate([part.reshape(len(part), width) for part, width in zip(parts, widths, strict=True)])
    return Steps({place: arrow_column(place, rows[:, place]) for place in range(widths[0])}, lengths, by_position=True)


def _rows(cells: list[Any], width: int, lengths: np.ndarray) -> Steps:
    """Steps that are rows of several cells; None for a step of which nothing is known."""
    rows = [[None] * width if _is_gap(cell) else cell for cell in cells]
    found = [len(row) if isinstance(row, list | tuple | np.ndarray) else 1 for row in rows]
    _refuse_widths(found, np.concatenate([[0], np.cumsum(lengths)]), "step")
    columns: dict[Key, Any] = {place: arrow_column(place, [row[place] for row in rows]) for place in range(width)}
    return Steps(columns, lengths, by_position=True)


def _refuse_widths(widths: Sequence[int], starts: np.ndarray, what: str) -> None:
    """Raise where a step is wider or narrower than the first, naming it."""
    odd = next((place for place, width in enumerate(widths) if width != widths[0]), None)
    if odd is None:
        return
    at = int(np.searchsorted(starts, odd, "right")) - 1
    where = f"sequence {at + 1}" if what == "sequence" else f"sequence {at + 1}, step {odd - int(starts[at]) + 1},"
    raise DataError(
        f"{where} has {widths[odd]} values for a step, but sequence 1 has {widths[0]}. "
        "All steps have the same columns; give None for a value that is missing."
    )


def _records(cells: list[Any], lengths: np.ndarray) -> Steps:
    """Steps that are dictionaries; a name that a step lacks is missing there."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    for place, cell in enumerate(cells):
        if not (isinstance(cell, Mapping) or _is_gap(cell)):
            at = int(np.searchsorted(starts, place, "right")) - 1
            where = f"sequence {at + 1}, step {place - int(starts[at]) + 1}"
            raise DataError(f"{where} is {wording.cell(cell)}, but other steps are dictionaries. Give one there too.")
    names = list(dict.fromkeys(name for cell in cells if isinstance(cell, Mapping) for name in cell))
    known = [cell if isinstance(cell, Mapping) else {} for cell in cells]
    columns = {key: [cell.get(name) for cell in known] for key, name in zip(plain_keys(names), names, strict=True)}
    return Steps({key: arrow_column(key, column) for key, column in columns.items()}, lengths)


def _frames(parts: list[Any]) -> Steps:
    """A frame for each sequence, all with the same columns."""
    sources = [frame_source(part) for part in parts]
    columns = [dict(zip(source.keys, source.table.columns, strict=True)) for source in sources]
    return replace(stacked(columns), by_position=not sources[0].named)


def stacked(tables: Sequence[Mapping[Key, Any]], names: Sequence[str] = (), text_file: bool = False) -> Steps:
    """Tables of the same columns one below the other, a sequence each; columns are matched by their names."""
    import pyarrow as pa

    keys = list(tables[0])
    for at, table in enumerate(tables, start=1):
        odd = sorted(map(str, set(table) ^ set(keys)))
        if odd:
            which, first = (names[at - 1], names[0]) if names else (at, 1)
            raise DataError(
                f"sequence {which!r} has other columns than sequence {first!r}: {wording.and_others(odd)}. "
                "All have the same."
            )
    lengths = np.array([len(table[keys[0]]) for table in tables], dtype=np.int64)
    columns = {key: pa.concat_arrays(_alike([flat(table[key]) for table in tables])) for key in keys}
    return Steps(columns, lengths, names, text_file=text_file, verbatim=not text_file)


def _alike(arrays: list[Any]) -> list[Any]:
    """Arrays of one type: that of the first, floats where numbers differ in type, text otherwise."""
    import pyarrow as pa
    import pyarrow.types as types

    arrays = [array.dictionary_decode() if types.is_dictionary(array.type) else array for array in arrays]
    kinds = {array.type for array in arrays if not types.is_null(array.type)}
    if len(kinds) == 1:
        return [array.cast(next(iter(kinds))) for array in arrays]
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in kinds):
        return [array.cast(pa.float64()) for array in arrays]
    return [array.cast(pa.large_string()) for array in arrays]


def _refuse_nested(cells: list[Any], lengths: np.ndarray) -> None:
    place = next((i for i, cell in enumerate(cells) if isinstance(cell, list | tuple | Mapping | np.ndarray)), None)
    if place is not None:
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = int(np.searchsorted(starts, place, "right")) - 1
        raise DataError(
            f"sequence {at + 1}, step {place - int(starts[at]) + 1} has several values, but sequence 1 has 1 for a "
            "step. All steps have the same columns; give None for a value that is missing."
        )
