"""Holes filled in whatever type the table came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.estimators.inputs import is_table
from softcount.sources.frames import arrow_column, columns_source, frame_source
from softcount.sources.in_memory import ArrowSource
from softcount.table.names import labels
from softcount.table.schema import Key

TEXT = ("str", "string", "large_string[pyarrow]", "string[pyarrow]")
"""Types of a pandas column that take nothing but text; one of objects takes anything."""

Fills = dict[Key, tuple[np.ndarray, np.ndarray]]


def filled(X: Any, fills: Fills, order: Sequence[Key]) -> Any:
    """X with the fills put in; an array, a pandas or polars frame, an Arrow table or a mapping like the one given.

    Columns that a model knows by name and X by place, or the other way round, are in the `order` of the model.
    """
    if not is_table(X):
        return _filled_array(X, {order.index(key): found for key, found in fills.items() if key in order})
    source = _columns(X)
    if len(source.keys) == len(order) and not set(source.keys) & set(order):
        places = {key: source.keys[place] for place, key in enumerate(order)}
        fills = {places.get(key, key): found for key, found in fills.items()}
    if hasattr(X, "iloc"):
        return _filled_pandas(X, fills, source.keys)
    columns = dict(zip(source.keys, source.table.columns, strict=True))
    for key, (rows, values) in fills.items():
        columns[key] = filled_arrow(key, columns.get(key), rows, values)
    if isinstance(X, dict):
        theirs = dict(zip(source.keys, X, strict=True))
        return {theirs.get(key, key): column.to_pylist() for key, column in columns.items()}
    import pyarrow as pa

    table = pa.table(list(columns.values()), names=list(labels(columns).values()))
    # pandas' own note of the types would turn a filled 4.3 back into a whole number, or fail to.
    notes = {name: note for name, note in (source.table.schema.metadata or {}).items() if name != b"pandas"}
    table = table.replace_schema_metadata(notes or None)
    return type(X)(table) if hasattr(X, "with_columns") else table


def _filled_array(X: Any, fills: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    out = X.toarray() if hasattr(X, "toarray") else np.array(X, copy=True)
    if any(values.dtype == object for _, values in fills.values()) and out.dtype.kind != "O":
        out = out.astype(object)
    for key, (rows, values) in fills.items():
        out[rows, key] = values
    return out


def _filled_pandas(X: Any, fills: Fills, keys: list[Key]) -> Any:
    out = X.copy()
    for key, (rows, values) in fills.items():
        if key not in keys:
            out.insert(out.shape[1], key, values)
            continue
        at = keys.index(key)
        out.isetitem(at, _filled_series(out.iloc[:, at].copy(), rows, values))
    return out


def _filled_series(column: Any, rows: np.ndarray, values: np.ndarray) -> Any:
    """A column of pandas with the fills: of its own type where that can hold them, else of objects."""
    kind = str(column.dtype)
    if any(isinstance(value, str) for value in values):  # a level is spelt; the cell that is spelt so may be a date
        spelt = {str(cell): cell for cell in column.dropna().unique()}
        values = np.array([spelt.get(value, value) for value in values], dtype=object)
    whole = np.asarray(values).dtype.kind in "iu"
    if (column.dtype.kind in "iu" or kind.startswith(("Int", "UInt"))) and not whole:
        column = column.astype("Float64" if kind[0] in "IU" else float)
    if kind in TEXT and _numbers(values):
        column = column.astype(object).map(_number).astype(float)
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
    """A column of pandas as another type; text that is to be numbers is the numbers that it spells."""
    numbers = getattr(dtype, "kind", "O") in "iuf" and getattr(column.dtype, "kind", "O") not in "iufb"
    return (column.astype(object).map(_number) if numbers else column).astype(dtype)


def _numbers(values: np.ndarray) -> bool:
    return not any(isinstance(value, (str, bool, np.bool_)) for value in values)


def _number(cell: Any) -> float | None:
    """The number a cell is or spells; None for words that mean missing, which are about to be filled."""
    try:
        return None if cell is None else float(cell)
    except (TypeError, ValueError):
        return None


def as_arrow_type(column: Any, kind: Any) -> Any:
    """A column of Arrow as another type; text that is to be numbers is the numbers that it spells."""
    import pyarrow as pa

    if column.type == kind:
        return column
    if pa.types.is_floating(kind) and not pa.types.is_primitive(column.type):
        return pa.array(list(map(_number, column.to_pylist())), kind)
    return column.cast(kind)


def filled_arrow(key: Key, column: Any, rows: np.ndarray, values: np.ndarray) -> Any:
    """A column of Arrow with the fills: of its own type where that can hold them, else of theirs, else text."""
    import pyarrow as pa

    fills = arrow_column(key, list(values))
    if column is None:
        return fills
    cells = column.to_pylist()
    if _numbers(values) and any(isinstance(cell, str) for cell in cells):
        column = pa.array(list(map(_number, cells)), pa.float64())
    wider = pa.types.is_integer(column.type) and pa.types.is_floating(fills.type)
    for kind in (*([] if wider else [column.type]), fills.type, pa.large_string()):
        try:
            cells = column.cast(kind).to_pylist()
            for row, value in zip(rows, fills.cast(kind).to_pylist(), strict=True):
                cells[row] = value
            return pa.array(cells, kind)
        except pa.ArrowException:
            continue
    raise DataError(f"column {key!r} holds {column.type}, which the values that were found do not fit into.")


def arrow_of(X: Any) -> Any:
    """X as an Arrow table, whatever it is."""
    source = _columns(X)
    return _without_views(source.table.rename_columns(list(labels(source.keys).values())))


def _columns(X: Any) -> ArrowSource:
    """The columns of a table that is in memory."""
    if isinstance(X, Mapping):
        return columns_source(X)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return frame_source(X)
    if is_table(X):
        raise DataError(f"give the rows themselves (a frame or an array), not {type(X).__name__}.")
    array = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
    return columns_source({place: array[:, place] for place in range(array.shape[1])}, named=False)


def _without_views(table: Any) -> Any:
    """The table with text that rows can be taken from: Arrow cannot take from the views that polars keeps text in."""
    import pyarrow as pa

    for place, column in enumerate(table.schema):
        if pa.types.is_string_view(column.type):
            table = table.set_column(place, column.name, table.column(place).cast(pa.large_string()))
    return table
