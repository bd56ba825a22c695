"""Frames, Arrow data, dictionaries of columns and arrays of objects, all as Arrow tables."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from softcount import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.arrow_columns import CellType, arrow_of, cell_type, text_of
from softcount.sources.in_memory import ArrowSource
from softcount.sources.source import Key, refuse_repeated

TEXT = "text"
"""The name of the column that documents given without one are."""
ENGINES = {"dask": "Dask", "dask_expr": "Dask", "pyspark": "Spark"}
"""Whose collections the classes of a package are."""


class CellTypeError(DataError, TypeError):
    """A cell that is neither a number nor text."""


def is_frame(data: Any) -> bool:
    """Whether data speaks the Arrow PyCapsule protocol, as pandas, polars, DuckDB and Arrow itself do."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def collected(data: Any) -> Any:
    """A lazy frame of polars as the frame it stands for; anything else as it is, but for the frame of an engine."""
    refuse_elsewhere(data)
    return data.collect() if is_lazy(data) else data


def is_lazy(data: Any) -> bool:
    """Whether data is a lazy frame of polars."""
    return type(data).__name__ == "LazyFrame" and type(data).__module__.startswith("polars")


def engine_holding(data: Any) -> str | None:
    """Whose collection data is where rows are not in this process: "Dask" or "Spark"; None of anything else."""
    return ENGINES.get(type(data).__module__.partition(".")[0])


def refuse_elsewhere(data: Any) -> None:
    """Raise where rows are in the frame of an engine, and what is asked needs them here."""
    engine = engine_holding(data)
    if engine is not None and hasattr(data, "columns"):
        bring = "X.compute()" if engine == "Dask" else "X.toPandas()"
        raise DataError(
            f"what was asked needs the rows here, and these are in a frame of {engine}'s. Bring them: {bring}"
        )


def _plain_pandas(data: Any) -> Any:
    """A frame of pandas whose periods are the times they begin at, and whose intervals are levels as they are spelt."""
    odd = {place: kind for place, kind in enumerate(data.dtypes) if _is_odd(kind)} if data.ndim == 2 else {}
    if not odd:
        return data
    data = data.copy()
    for place, kind in odd.items():
        column = data.iloc[:, place]
        if type(kind).__name__ == "PeriodDtype":
            data.isetitem(place, column.dt.to_timestamp())
        elif type(kind).__name__ == "CategoricalDtype":
            data.isetitem(place, column.cat.rename_categories([str(level) for level in kind.categories]))
        else:
            data.isetitem(place, column.astype(object).map(str, na_action="ignore"))
    return data


def _is_odd(kind: Any) -> bool:
    named = type(kind).__name__
    within = getattr(kind, "categories", None) if named == "CategoricalDtype" else None
    return named in ("PeriodDtype", "IntervalDtype") or type(getattr(within, "dtype", None)).__name__ == "IntervalDtype"


def frame_source(data: Any) -> ArrowSource:
    """The columns of a frame; nothing is copied where its memory is Arrow's already."""
    import pyarrow as pa

    if hasattr(data, "iloc") and hasattr(data, "dtypes"):
        data = _plain_pandas(data)
    names = getattr(data, "columns", None)
    if names is not None and not callable(names):
        refuse_repeated([name for name in names if isinstance(name, str)])
    try:
        table = data if isinstance(data, pa.Table) else pa.table(data)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return _column_by_column(data)
    refuse_repeated(table.column_names)
    table = table.select(drop_index(table.schema).names) if table.schema.metadata else table
    keys, named = _frame_keys(table)
    return ArrowSource(table, keys, named)


def drop_index(schema: Any) -> Any:
    """An Arrow schema without the columns in which pandas keeps a frame's row labels."""
    notes = (schema.metadata or {}).get(b"pandas")
    if notes is None:
        return schema
    kept = json.loads(notes).get("index_columns", [])
    for name in kept:
        if isinstance(name, str) and name in schema.names:
            schema = schema.remove(schema.get_field_index(name))
    return schema


def _frame_keys(table: Any) -> tuple[list[Key], bool]:
    """Column names; the whole numbers they were where a pandas frame has no names but positions."""
    notes = (table.schema.metadata or {}).get(b"pandas")
    labels = json.loads(notes).get("column_indexes", []) if notes else []
    if len(labels) == 1 and labels[0].get("pandas_type") in ("int64", "int32") and table.num_columns:
        return [int(name) for name in table.column_names], False
    return list(table.column_names), True


def _column_by_column(data: Any) -> ArrowSource:
    """A frame with a column that Arrow cannot take whole, such as one of mixed numbers and words."""
    names = list(data.columns) if hasattr(data, "columns") else []
    if not names:
        raise DataError("the table could not be read through Arrow. Pass a frame, a 2-D array or a file name.")
    refuse_repeated(names)
    return columns_source({name: data[name] for name in names}, named=all(isinstance(name, str) for name in names))


def plain_keys(names: Iterable[Any]) -> list[Key]:
    """Names as columns have them: text and whole numbers; anything else, such as a tuple or a truth, as it is spelt."""
    return [_plain_key(name) for name in names]


def _plain_key(name: Any) -> Key:
    if isinstance(name, str):
        return name
    whole = isinstance(name, (int, np.integer)) and not isinstance(name, bool)
    return int(name) if whole else str(name)


def columns_source(columns: Mapping[Any, Any], *, named: bool = True) -> ArrowSource:
    """A mapping of names to columns: arrays, lists or series of one length."""
    import pyarrow as pa

    keys = plain_keys(columns)
    refuse_repeated(keys)
    arrays = {key: arrow_column(key, column) for key, column in zip(keys, columns.values(), strict=True)}
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{key!r} has {count}" for key, count in list(lengths.items())[:5])
        raise DataError(f"the columns differ in length: {said} rows. Columns of one table have one length.")
    names = [str(place) for place in range(len(arrays))]
    return ArrowSource(pa.table(list(arrays.values()), names=names), list(arrays), named)


def arrow_column(key: Key, column: Any) -> Any:
    """One column as an Arrow array, NaN as missing; numbers mixed with words become text."""
    import pyarrow as pa

    if (found := _arrow_itself(column)) is not None:
        return found
    if not hasattr(column, "__len__") or isinstance(column, (str, bytes)):
        raise DataError(f"{wording.column(key)} is {wording.cell(column)}. A column is a flat list of cells.")
    values = column if isinstance(column, np.ndarray) else _object_array(column)
    if values.ndim != 1:
        raise DataError(f"{wording.column(key)} has {values.ndim} dimensions. A column is a flat list of cells.")
    if values.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {wording.column(key)} holds complex numbers.")
    if values.dtype.kind in "fiub" and values.dtype.itemsize <= 8 and values.dtype.isnative:
        return arrow_of(values)
    if values.dtype.kind not in "OSU":
        return pa.array(values, from_pandas=True)
    try:
        return _from_objects(key, values.tolist())
    except UnicodeError as error:
        raise _not_unicode(key, values, error) from None


def _arrow_itself(column: Any) -> Any:
    """A column that can say itself what it is to Arrow; an array of pandas too, whose gaps make floats of integers."""
    import pyarrow as pa

    make = pa.chunked_array if is_frame(column) else pa.array if hasattr(column, "__arrow_array__") else None
    if make is None or isinstance(column, np.ndarray):
        return None
    try:
        return make(column)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None


def _not_unicode(key: Key, values: np.ndarray, error: UnicodeError) -> DataError:
    halves = re.compile("[\ud800-\udfff]")
    row = next((row for row, cell in enumerate(values, start=1) if isinstance(cell, str) and halves.search(cell)), 0)
    where = f"{wording.column(key)}, row {row}," if row else wording.column(key)
    return DataError(f"{where} holds text that is not valid Unicode: {error}. Decode it with errors='replace'.")


def _object_array(column: Any) -> np.ndarray:
    values = np.asarray(column) if hasattr(column, "dtype") else None
    if values is not None and values.dtype.kind != "O":
        return values
    cells = np.empty(len(column), dtype=object)
    cells[:] = list(column)
    return cells


_NUMBERS = (bool, int, float, np.bool_, np.number)
_TIMES = (datetime.date, datetime.time, datetime.timedelta)


def _from_objects(key: Key, cells: Sequence[Any]) -> Any:
    import pyarrow as pa

    cells = [None if is_missing(cell) else _simple(cell) for cell in cells]
    kinds = {type(cell) for cell in cells}
    if kinds <= {str, type(None)}:
        return text_of(cells)
    if kinds in ({bool}, {float}) or (kinds == {int} and _fit_in_64_bits(cells)):
        return arrow_of(np.array(cells))
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError):
        pass
    # Spreadsheets keep a date as its midnight.
    cells = [str(cell).removesuffix(" 00:00:00") if isinstance(cell, _TIMES) else cell for cell in cells]
    _refuse_odd(key, cells)
    if any(isinstance(cell, str) for cell in cells):
        return text_of([None if cell is None else str(cell) for cell in cells])
    try:
        return pa.array([None if cell is None else float(cell) for cell in cells])
    except OverflowError:
        raise DataError(
            f"{wording.column(key)} holds a whole number that is too large even for a float. Give it as text if it is "
            f"a name, or leave it out: {remedies.kind(key, 'ignore')}"
        ) from None


def _fit_in_64_bits(cells: Sequence[int]) -> bool:
    return not cells or (max(cells) < 2**63 and min(cells) >= -(2**63))


def _simple(cell: Any) -> Any:
    if isinstance(cell, np.generic):
        return cell.item()
    return cell.decode("utf-8") if isinstance(cell, bytes) else cell


def is_missing(cell: Any) -> bool:
    """None, NaN, NaT and pandas' NA, told by their not being equal to themselves."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):
        return type(cell).__name__ == "NAType"


def _refuse_odd(key: Key, cells: Iterable[Any]) -> None:
    for row, cell in enumerate(cells, start=1):
        if cell is not None and not isinstance(cell, (str, *_NUMBERS)):
            raise CellTypeError(
                f"{wording.column(key)}, row {row}: argument must be a string or a number, "
                f"not {type(cell).__name__!r}. Convert the column, or leave it out."
            )


def text_column(data: Any) -> Mapping[Key, Any] | None:
    """Documents in a row (a list, an array, a series of strings, None where missing) as a table of one column.

    None for anything else: a table, numbers, rows of cells.

    >>> text_column(["free money", None])["text"].null_count
    1
    >>> text_column([1.5, 2.5]) is None
    True
    """
    if isinstance(data, str | bytes | Mapping) or not hasattr(data, "__len__") or hasattr(data, "columns"):
        return None
    if getattr(data, "ndim", 1) != 1 or getattr(getattr(data, "dtype", None), "kind", "O") not in "OUT":
        return None
    column = _arrow_series(data) if is_frame(data) else _strings(data)
    return None if column is None or cell_type(column.type) not in (CellType.TEXT, CellType.EMPTY) else {TEXT: column}


def _arrow_series(data: Any) -> Any:
    import pyarrow as pa

    if isinstance(data, pa.Array | pa.ChunkedArray):
        return data
    try:
        return pa.chunked_array(data)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return _strings(list(data))


def _strings(cells: Any) -> Any:
    """Strings as Arrow text; None where a cell is anything else, missing ones apart."""
    import pyarrow as pa

    first = next((cell for cell in cells if not is_missing(cell)), None)
    if not isinstance(first, str):
        return None
    try:
        return pa.array(cells, pa.large_string())
    except (pa.ArrowException, TypeError, UnicodeError):
        known = [None if is_missing(cell) else cell for cell in cells]
    return arrow_column(TEXT, known) if all(cell is None or isinstance(cell, str) for cell in known) else None
