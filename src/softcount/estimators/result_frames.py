"""Results as frames of the library that the rows came in, and tables with their missing cells filled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from softcount.errors import DataError
from softcount.estimators.inputs import find_library, is_table
from softcount.families.base import name_or_family
from softcount.fitted.fitted import FittedTable
from softcount.sources.frames import ArrowSource, arrow_column, columns_source, frame_source, number_of, source_columns
from softcount.table import Table, open_table
from softcount.table.cell_values import count_decimals, format_cells
from softcount.table.schema import MISSING, Key, labels
from softcount.table.text_columns import without_marks

Frame = Any
"""A DataFrame of pandas or polars, or an Arrow table."""


def arrow_table(columns: Any) -> Any:
    """An Arrow table of columns by name; those that hold words and numbers hold text."""

    def fit_one_column(values: Any) -> bool:
        objects = isinstance(values, list) or getattr(values, "dtype", np.dtype(float)).kind == "O"
        return not objects or len({bool if isinstance(x, (bool, np.bool_)) else isinstance(x, str) for x in values}) < 2

    return pa.table(
        {name: values if fit_one_column(values) else list(map(str, values)) for name, values in columns.items()}
    )


def arrow_lines(lines: list[dict[str, Any]], types: Any = None) -> Any:
    """An Arrow table of lines that all have the same names; `types` are needed if there may be no line."""
    return pa.Table.from_pylist(lines, schema=None if types is None else pa.schema(types))


def frame_like(X: Any, table: Any, rows: Any = None) -> Any:
    """An Arrow table as a frame of X's library, or of that of the frames in a list X; see `as_frame`.

    With `rows`, the places of rows in X or a slice, a pandas DataFrame gets their index.
    """
    X = X[0] if isinstance(X, (list, tuple)) and X else X
    if rows is None or find_library(X) != "pandas":
        return as_frame(table, find_library(X))
    return as_frame(table, "pandas", X.index[rows if isinstance(rows, slice) else np.asarray(rows, dtype=np.intp)])


def as_frame(table: Any, library: str | None, index: Any = None) -> Any:
    """An Arrow table as a frame of that library; `index` labels the rows of a pandas DataFrame.

    Without a library, for rows of files, arrays and lists, it is a pandas DataFrame if pandas is installed.
    """
    if library is None and find_spec("pandas") is not None:
        library = "pandas"
    if library == "pandas":
        frame = table.to_pandas()
        return frame if index is None else frame.set_axis(index, axis=0)
    if library == "polars":
        import polars

        return polars.from_arrow(table)
    return table


def arrow_of(result: Any) -> Any:
    """A result in any type of frame as an Arrow table; the index is left out."""
    library = find_library(result)
    if library == "pandas":
        return pa.Table.from_pandas(result, preserve_index=False).replace_schema_metadata(None)
    return result.to_arrow() if library == "polars" else result


# -- how the columns of a model were read


def list_kinds(fitted: FittedTable) -> dict[Key, Any]:
    """Column or block -> what `kinds` takes for it: a family by its name, or itself if it has settings."""
    kinds: dict[Key, Any] = {key: name_or_family(family) for key, family in fitted.column_families.items()}
    order = {spec.key: place for place, spec in enumerate(fitted.schema.fields)}
    named = {column for key in kinds for column in _columns(key)}
    kinds |= {key: "ignore" for key in order if key not in named}

    def place(key: Key) -> int:
        return order.get(key, order.get(_columns(key)[0], len(order)))

    return {key: kinds[key] for key in sorted(kinds, key=place)}


def schema_table(fitted: FittedTable) -> Any:
    """An Arrow table with a line for each column: kind, why, distribution, number of categories."""
    titles = {column: title for key, title in fitted.column_titles.items() for column in _columns(key)}
    lines = [
        {
            "column": str(spec.key),
            "kind": str(spec.kind),
            "why": spec.why,
            "used": spec.used,
            "distribution": titles.get(spec.key) if spec.used else None,
            "levels": len(spec.levels) if spec.kind.coded and spec.used else None,
        }
        for spec in fitted.schema.fields
    ]
    text = pa.string()
    types = {"column": text, "kind": text, "why": text, "used": pa.bool_(), "distribution": text, "levels": pa.int64()}
    return arrow_lines(lines, list(types.items()))


def _columns(key: Key) -> tuple[Key, ...]:
    return key if isinstance(key, tuple) else (key,)


# -- cells of files


def _read_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text that spells numbers as numbers, unless a number would be written differently (01067)."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    column = pa.chunked_array([without_marks(chunk, frozenset(MISSING)) for chunk in column.chunks], column.type)
    try:
        whole = column.cast(pa.int64())
        return whole if whole.cast(column.type).equals(column) else column
    except pa.ArrowInvalid:
        pass
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        return column


# -- missing cells filled, in the type that the table came in

Fills = dict[Key, tuple[np.ndarray, np.ndarray]]


def fill_cells(X: Any, fills: Fills, order: Sequence[Key]) -> Any:
    """X with the fills put in; an array, a pandas or polars frame, an Arrow table or a mapping like the one given.

    If the model knows columns by name and X by position, or the reverse, they are in the `order` of the model.
    """
    if not is_table(X):
        return _fill_array(X, {order.index(key): found for key, found in fills.items() if key in order})
    source = _memory_columns(X)
    if len(source.keys) == len(order) and not set(source.keys) & set(order):
        places = {key: source.keys[place] for place, key in enumerate(order)}
        fills = {places.get(key, key): found for key, found in fills.items()}
    if hasattr(X, "iloc"):
        out = X.copy()
        for key, (rows, values) in fills.items():
            if key not in source.keys:
                out.insert(out.shape[1], key, values)
                continue
            at = source.keys.index(key)
            out.isetitem(at, _fill_series(out.iloc[:, at].copy(), rows, values))
        return out
    columns = dict(zip(source.keys, source.table.columns, strict=True))
    for key, (rows, values) in fills.items():
        columns[key] = fill_arrow(key, columns.get(key), rows, values)
    if isinstance(X, dict):
        theirs = dict(zip(source.keys, X, strict=True))
        return {theirs.get(key, key): column.to_pylist() for key, column in columns.items()}
    table = pa.table(list(columns.values()), names=list(labels(columns).values()))
    # pandas' own note of the types would turn a filled 4.3 back into a whole number, or fail to.
    notes = {name: note for name, note in (source.table.schema.metadata or {}).items() if name != b"pandas"}
    table = table.replace_schema_metadata(notes or None)
    return type(X)(table) if hasattr(X, "with_columns") else as_frame(table, find_library(X))


def _fill_array(X: Any, fills: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    out = X.toarray() if hasattr(X, "toarray") else np.array(X, copy=True)
    if any(values.dtype == object for _, values in fills.values()) and out.dtype.kind != "O":
        out = out.astype(object)
    for key, (rows, values) in fills.items():
        out[rows, key] = _match_cells(values, out[:, key]) if out.dtype.kind == "O" else values
    return out


def _match_cells(values: np.ndarray, cells: Iterable[Any]) -> np.ndarray:
    """Fills of the type of the other cells: numbers become text among text, and text numbers among numbers."""
    known = [cell for cell in cells if cell is not None and cell == cell]  # NaN is missing
    text = any(isinstance(cell, str) for cell in known)
    if text and not any(isinstance(value, str) for value in values):
        decimals = count_decimals([cell for cell in known if isinstance(cell, str)])
        return np.array(format_cells(values, decimals), dtype=object)
    if known and not text and any(isinstance(value, str) for value in values):
        spelt = {str(cell): cell for cell in known}  # a level is spelt; the cell that is spelt so may be a date
        found = [spelt.get(value, number_of(str(value))) for value in values]
        if None not in found:
            same = {type(value) for value in found}
            return np.array(found, dtype=None if len(same) == 1 and same <= {int, float} else object)
    return values


def _fill_series(column: Any, rows: np.ndarray, values: np.ndarray) -> Any:
    """A pandas column with the fills: of its own type if that can hold them, else of objects."""
    kind = str(column.dtype)
    values = _match_cells(values, np.delete(column.to_numpy(dtype=object), rows))
    whole = values.dtype.kind in "iu"
    if (column.dtype.kind in "iu" or kind.startswith(("Int", "UInt"))) and not whole:
        column = column.astype("Float64" if kind[0] in "IU" else float)
    for own in (column.dtype, object):
        changed = column.astype(own)
        try:
            changed.iloc[rows] = type(column)(list(values)).astype(own).array
        except (TypeError, ValueError, ArithmeticError, NotImplementedError):  # each type has its own
            continue
        if not changed.iloc[rows].isna().any():  # what a category or a date cannot be is missing again
            return changed
    return changed


def as_type(column: Any, dtype: Any) -> Any:
    """A pandas column as another type; text becomes the numbers that it spells."""
    numbers = getattr(dtype, "kind", "O") in "iuf" and getattr(column.dtype, "kind", "O") not in "iufb"
    return (column.astype(object).map(_number) if numbers else column).astype(dtype)


def _number(cell: Any) -> float | None:
    """The number a cell is or spells; None for words that mean missing, which are about to be filled."""
    try:
        return None if cell is None else float(cell)
    except (TypeError, ValueError):
        return None


def as_arrow_type(column: Any, kind: Any) -> Any:
    """An Arrow column as another type; text becomes the numbers that it spells."""
    if column.type == kind:
        return column
    if pa.types.is_floating(kind) and not pa.types.is_primitive(column.type):
        return pa.array(list(map(_number, column.to_pylist())), kind)
    return column.cast(kind)


def fill_arrow(key: Key, column: Any, rows: np.ndarray, values: np.ndarray) -> Any:
    """An Arrow column with the fills: of its own type if that can hold them, else of theirs, else text."""
    if column is None:
        return arrow_column(key, list(values))
    own, cells = column.type, column.to_pylist()
    coded = pa.types.is_dictionary(own)
    fills = arrow_column(key, list(_match_cells(values, np.delete(np.array(cells, dtype=object), rows))))
    plain = own.value_type if coded else own
    wider = pa.types.is_integer(plain) and pa.types.is_floating(fills.type)
    for kind in (*([] if wider else [plain]), fills.type, pa.large_string()):
        try:
            cells = pa.array(cells, plain).cast(kind).to_pylist()
            for row, value in zip(rows, fills.cast(kind).to_pylist(), strict=True):
                cells[row] = value
            found = pa.array(cells, kind)
            return found.dictionary_encode() if coded and kind == plain else found
        except pa.ArrowException:
            continue
    raise DataError(f"column {key!r} holds {own}, a type that cannot hold the filled values.")


def as_arrow(X: Any) -> Any:
    """X as an Arrow table, whatever it is."""
    source = _memory_columns(X)
    table = source.table.rename_columns(list(labels(source.keys).values()))
    for place, column in enumerate(table.schema):
        if pa.types.is_string_view(column.type):  # of polars; Arrow cannot take rows from such text
            table = table.set_column(place, column.name, table.column(place).cast(pa.large_string()))
    return table


def _memory_columns(X: Any) -> ArrowSource:
    """The columns of a table that is in memory."""
    if isinstance(X, Mapping):
        return columns_source(X)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return frame_source(X)
    if is_table(X):
        source = X.source if isinstance(X, Table) else open_table(X).source
        cells = source_columns(source, source.keys)
        names = list(labels(cells).values())
        return ArrowSource(pa.table([_read_numbers(column) for column in cells.values()], names=names))
    array = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
    return columns_source({place: array[:, place] for place in range(array.shape[1])}, named=False)
