"""Tables in memory: pandas, polars, Arrow, arrays and mappings."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core import remedies
from softcount.core.lazy import pa
from softcount.errors import DataError
from softcount.sources import source, wording
from softcount.sources.arrow_columns import CellType, arrow_of, cell_type, text_bytes, text_of
from softcount.sources.source import Key, Source, TablePiece, Wanted, chunk_rows_for, refuse_empty, refuse_repeated

LOOK_WHOLE = 4_096
"""Rows of an array of whole numbers that are looked at."""

LONG = {524_288: 131_072, 262_144: 65_536}
"""Rows above which an array, which costs nothing to cut, comes in longer chunks: each costs some 0.2 ms of Python."""

LONG_CELLS, FEWEST = 1 << 23, 1_024
"""Cells that a chunk of an array may have, 64 MB where they must be converted, and rows that it has anyway."""


class ColumnRows(Struct, frozen=True):
    """Some rows of Arrow columns; pickled, it holds those and no others."""

    columns: Mapping[Key, Any]
    start: int
    count: int

    def __call__(self) -> Mapping[Key, Any]:
        return {key: column.slice(self.start, self.count) for key, column in self.columns.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (list(self.columns), _packed(list(self().values())))


def _packed(columns: Sequence[Any]) -> bytes | None:
    """Columns as an Arrow stream: unlike Arrow's own pickles it leaves out the rows around a slice."""
    if not columns:
        return None
    table = pa.table(columns, names=[str(place) for place in range(len(columns))])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = out.getvalue().to_pybytes()
    return packed


def _unpacked(keys: Sequence[Key], packed: bytes | None) -> ColumnRows:
    if packed is None:
        return ColumnRows({}, 0, 0)
    table = pa.ipc.open_stream(packed).read_all()
    return ColumnRows(dict(zip(keys, table.columns, strict=True)), 0, table.num_rows)


class ArrayRows(Struct, frozen=True):
    """Some rows of an array or a sparse matrix; pickled, it holds those and no others, in the same order in memory."""

    array: Any
    start: int
    stop: int

    def __call__(self) -> Any:
        return self.array[self.start : self.stop]

    def __reduce__(self) -> tuple[Any, ...]:
        rows = self()
        kept = np.copy(rows, order="K") if isinstance(rows, np.ndarray) else rows
        return type(self), (kept, 0, self.stop - self.start)


class ArrowSource(Source):
    """Columns that are already in memory as an Arrow table."""

    verbatim = True

    def __init__(self, table: Any, keys: Sequence[Any] = (), named: bool = True, notes: tuple[str, ...] = ()) -> None:
        self.table, self.named, self.notes = table, named, notes
        self.keys = list(keys) or list(self.table.column_names)
        source.refuse_repeated(self.keys)
        self.n_rows = self.table.num_rows
        self._refuse_empty()
        row_bytes = text_bytes(self.table) / max(1, self.table.num_rows)
        self.chunk_rows = chunk_rows_for(self.table.num_rows, row_bytes, columns=len(self.keys))
        self._at = {key: place for place, key in enumerate(self.keys)}

    def _refuse_empty(self) -> None:
        refuse_empty(self.table.num_rows, len(self.keys))

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        columns = {key: self.table.column(self._at[key]) for key in keys}
        return ColumnRows(columns, 0, source.look_rows_for(len(self.keys)))()

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        columns = {key: self.table.column(self._at[key]) for key in wanted}
        for start, count in self.spans():
            yield TablePiece(start, count, ColumnRows(columns, start, count))


class ArraySource(Source):
    """The rows of an array or a sparse matrix, which have no names; a piece loads as those rows of it."""

    array: Any
    named = False

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        for start, count in self.spans():
            yield TablePiece(start, count, ArrayRows(self.array, start, start + count))


class SparseSource(ArraySource):
    """A SciPy sparse matrix of counts, handed over as it is."""

    def __init__(self, matrix: Any) -> None:
        self.array = matrix
        self.n_rows, self.width = matrix.shape
        refuse_empty(self.n_rows, self.width)
        self.keys = []
        self.chunk_rows = chunk_rows_for(self.n_rows)

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        return {}


class DenseSource(ArraySource):
    """An array with one row per row, for `DenseEncoder`."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = _checked(array)
        rows, width = self.array.shape
        self.n_rows, self.keys = rows, list(range(width))
        self.chunk_rows = next((chunk for least, chunk in LONG.items() if rows > least), chunk_rows_for(rows))
        while self.chunk_rows > FEWEST and self.chunk_rows * width > LONG_CELLS:
            self.chunk_rows //= 2

    def head(self, keys: Sequence[Any]) -> Mapping[Key, Any]:
        return {key: arrow_of(self.array[:LOOK_WHOLE, key]) for key in keys}


def _checked(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported: a table holds real numbers, counts and categories.")
    if array.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: array.reshape(-1, 1) if it is "
            "one column, array.reshape(1, -1) if it is one row."
        )
    refuse_empty(*array.shape)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


# Frames, Arrow data, dictionaries of columns and arrays of objects, all as Arrow tables.

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
    if hasattr(data, "iloc") and hasattr(data, "dtypes"):
        data = _plain_pandas(data)
    names = getattr(data, "columns", None)
    if names is not None and not callable(names):
        refuse_repeated([name for name in names if isinstance(name, str)])
    try:
        table = data if isinstance(data, pa.Table) else pa.table(data)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        names = list(data.columns) if hasattr(data, "columns") else []
        if not names:
            raise DataError(
                "the table could not be read through Arrow. Pass a frame, a 2-D array or a file name."
            ) from None
        refuse_repeated(names)
        return columns_source({name: data[name] for name in names}, named=all(isinstance(name, str) for name in names))
    refuse_repeated(table.column_names)
    table = table.select(drop_index(table.schema).names) if table.schema.metadata else table
    notes = (table.schema.metadata or {}).get(b"pandas")
    labels = json.loads(notes).get("column_indexes", []) if notes else []
    if len(labels) == 1 and labels[0].get("pandas_type") in ("int64", "int32") and table.num_columns:
        keys, named = [int(name) for name in table.column_names], False
    else:
        keys, named = list(table.column_names), True
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
        halves = re.compile("[\ud800-\udfff]")
        row = next(
            (row for row, cell in enumerate(values, start=1) if isinstance(cell, str) and halves.search(cell)), 0
        )
        where = f"{wording.column(key)}, row {row}," if row else wording.column(key)
        raise DataError(
            f"{where} holds text that is not valid Unicode: {error}. Decode it with errors='replace'."
        ) from None


def _arrow_itself(column: Any) -> Any:
    """A column that can say itself what it is to Arrow; an array of pandas too, whose gaps make floats of integers."""
    make = pa.chunked_array if is_frame(column) else pa.array if hasattr(column, "__arrow_array__") else None
    if make is None or isinstance(column, np.ndarray):
        return None
    try:
        return make(column)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None


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
    cells = [
        cell.decode("utf-8") if isinstance(cell, bytes) and not isinstance(cell, np.generic) else cell for cell in cells
    ]
    cells = [None if is_missing(cell) else cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
    kinds = {type(cell) for cell in cells}
    if kinds <= {str, type(None)}:
        return text_of(cells)
    if kinds in ({bool}, {float}) or (kinds == {int} and max(cells) < 2**63 and min(cells) >= -(2**63)):
        return arrow_of(np.array(cells))
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError):
        pass
    # Spreadsheets keep a date as its midnight.
    cells = [str(cell).removesuffix(" 00:00:00") if isinstance(cell, _TIMES) else cell for cell in cells]
    for row, cell in enumerate(cells, start=1):
        if cell is not None and not isinstance(cell, (str, *_NUMBERS)):
            raise CellTypeError(
                f"{wording.column(key)}, row {row}: argument must be a string or a number, "
                f"not {type(cell).__name__!r}. Convert the column, or leave it out."
            )
    if any(isinstance(cell, str) for cell in cells):
        return text_of([None if cell is None else str(cell) for cell in cells])
    try:
        return pa.array([None if cell is None else float(cell) for cell in cells])
    except OverflowError:
        raise DataError(
            f"{wording.column(key)} holds a whole number that is too large even for a float. Give it as text if it is "
            f"a name, or leave it out: {remedies.kind(key, 'ignore')}"
        ) from None


def is_missing(cell: Any) -> bool:
    """None, NaN, NaT and pandas' NA, told by their not being equal to themselves."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):
        return type(cell).__name__ == "NAType"


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
    if isinstance(data, pa.Array | pa.ChunkedArray):
        return data
    try:
        return pa.chunked_array(data)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return _strings(list(data))


def _strings(cells: Any) -> Any:
    """Strings as Arrow text; None where a cell is anything else, missing ones apart."""
    first = next((cell for cell in cells if not is_missing(cell)), None)
    if not isinstance(first, str):
        return None
    try:
        return pa.array(cells, pa.large_string())
    except (pa.ArrowException, TypeError, UnicodeError):
        known = [None if is_missing(cell) else cell for cell in cells]
    return arrow_column(TEXT, known) if all(cell is None or isinstance(cell, str) for cell in known) else None
