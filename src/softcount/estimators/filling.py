"""Holes filled in whatever type the table came in."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.estimators.inputs import is_table
from softcount.table.schema import Key, Schema

TEXT = ("str", "string", "large_string[pyarrow]", "string[pyarrow]")
"""Types of a pandas column that take nothing but text; one of objects takes anything."""

Fills = dict[Key, tuple[np.ndarray, np.ndarray]]


def filled(X: Any, fills: Fills, schema: Schema) -> Any:
    """X with the fills put in; an array, a pandas or polars frame, an Arrow table or a mapping like the one given."""
    if not is_table(X):
        return _filled_array(X, fills)
    if hasattr(X, "iloc"):
        return _filled_pandas(X, fills)
    table = arrow_of(X, schema)
    types = table.schema.types
    for key, (rows, values) in fills.items():
        table = _filled_arrow(table, str(key), rows, values)
    if table.schema.types != types:
        # pandas' own note of the types would turn a filled 4.3 back into a whole number, or fail to.
        notes = {name: note for name, note in (table.schema.metadata or {}).items() if name != b"pandas"}
        table = table.replace_schema_metadata(notes or None)
    if hasattr(X, "with_columns"):
        return type(X)(table)
    return {name: table[name].to_pylist() for name in table.column_names} if isinstance(X, dict) else table


def _filled_array(X: Any, fills: Fills) -> np.ndarray:
    out = np.array(X, copy=True)
    if any(values.dtype == object for _, values in fills.values()) and out.dtype.kind in "US":
        out = out.astype(object)
    for key, (rows, values) in fills.items():
        out[rows, int(str(key))] = values
    return out


def _filled_pandas(X: Any, fills: Fills) -> Any:
    out = X.copy()
    for key, (rows, values) in fills.items():
        if isinstance(key, str) and key not in out.columns:
            out = out.assign(**{key: values})
            continue
        at = list(out.columns).index(key) if key in out.columns else int(str(key))
        column = out.iloc[:, at].copy()
        if column.dtype.kind in "iu" or str(column.dtype).startswith(("Int", "UInt")):
            column = column.astype("Float64" if str(column.dtype)[0] in "IU" else float)
        if str(column.dtype) in TEXT and _numbers(values):
            column = column.astype(object).map(_number).astype(float)
        if str(column.dtype).lower().startswith(("float", "double")) and _numbers(values):
            values = values.astype(float)  # levels that are numbers come as objects, which pandas does not take
        column.iloc[rows] = values
        if isinstance(key, str):
            out = out.assign(**{key: column})
        else:
            out.isetitem(at, column)
    return out


def _numbers(values: np.ndarray) -> bool:
    return not any(isinstance(value, (str, bool, np.bool_)) for value in values)


def _number(cell: Any) -> float | None:
    """The number a cell is or spells; None for words that mean missing, which are about to be filled."""
    try:
        return None if cell is None else float(cell)
    except (TypeError, ValueError):
        return None


def _filled_arrow(table: Any, name: str, rows: np.ndarray, values: np.ndarray) -> Any:
    import pyarrow as pa

    if name not in table.column_names:
        return table.append_column(name, pa.array(list(values)))
    at = table.column_names.index(name)
    cells = table[name].to_pylist()
    if _numbers(values) and any(isinstance(cell, str) for cell in cells):
        cells = list(map(_number, cells))
    for row, value in zip(rows, values.tolist(), strict=True):
        cells[row] = value
    return table.set_column(at, name, pa.array(cells))


def arrow_of(X: Any, schema: Schema) -> Any:
    """X as an Arrow table, whatever it is."""
    import pyarrow as pa

    if isinstance(X, (pa.Table, dict)) or hasattr(X, "__arrow_c_stream__"):
        return _without_views(X if isinstance(X, pa.Table) else pa.table(X))
    if is_table(X):
        raise DataError(f"give the rows themselves (a frame or an array), not {type(X).__name__}.")
    array = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return pa.table({str(j): pa.array(array[:, j].tolist()) for j in range(array.shape[1])})


def _without_views(table: Any) -> Any:
    """The table with text that rows can be taken from: Arrow cannot take from the views that polars keeps text in."""
    import pyarrow as pa

    for place, column in enumerate(table.schema):
        if pa.types.is_string_view(column.type):
            table = table.set_column(place, column.name, table.column(place).cast(pa.large_string()))
    return table
