"""Tables in memory: pandas, polars, Arrow, arrays and mappings, as Arrow columns and as sources of rows."""

from __future__ import annotations

import datetime
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from operator import getitem
from typing import Any

import numpy as np

from softcount.core import remedies
from softcount.core.lazy import arrow_compute, pa
from softcount.errors import DataError
from softcount.sources import source, wording
from softcount.sources.source import Key, Source, TablePiece, Wanted, chunk_rows_for, refuse_empty, refuse_repeated

LOOK_WHOLE = 4_096
"""Rows of an array of whole numbers that decide its kinds."""

LONG = {524_288: 131_072, 262_144: 65_536}
"""Rows above which an array comes in longer chunks: each chunk costs about 0.2 ms of Python."""

LONG_CELLS, FEWEST = 1 << 23, 1_024
"""Most cells of a chunk of an array, 64 MB if they must be converted, and its fewest rows."""


# -- Arrow columns as NumPy arrays, and back


def call(name: str, *columns: Any, options: Any = None) -> Any:
    """Call a function of `pyarrow.compute`, without importing that module."""
    return arrow_compute.call_function(name, list(columns), options)


class CellType(StrEnum):
    """The type of a column's cells, before its kind is decided."""

    TEXT = "text"
    TRUTH = "true or false"
    WHOLE = "whole numbers"
    FLOAT = "numbers"
    TIME = "dates or times"
    EMPTY = "nothing"
    NESTED = "nested values"


def cell_type(kind: Any) -> CellType:
    if pa.types.is_dictionary(kind):
        return cell_type(kind.value_type)
    name = str(kind).partition("[")[0].partition("(")[0]
    return _CELL_TYPES.get(name, CellType.NESTED)


_CELL_TYPES = {
    **dict.fromkeys(("string", "large_string", "string_view"), CellType.TEXT),
    "bool": CellType.TRUTH,
    **dict.fromkeys([f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)], CellType.WHOLE),
    **dict.fromkeys(("halffloat", "float", "double"), CellType.FLOAT),
    **dict.fromkeys([f"decimal{bits}" for bits in (32, 64, 128, 256)], CellType.FLOAT),
    **dict.fromkeys(("date32", "date64", "time32", "time64", "timestamp", "duration"), CellType.TIME),
    "null": CellType.EMPTY,
}
"""Cell types by the name of an Arrow type, without its parameters."""


def flat(column: Any) -> Any:
    """Return the column as one Arrow array, of a type that all Arrow functions support."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # text beyond 2 GB stays in chunks
            column = pa.concat_arrays([chunk.cast(pa.large_string()) for chunk in column.chunks])
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        narrow = call("cast", column.indices, options=arrow_compute.CastOptions.safe(pa.int32()))
        return pa.DictionaryArray.from_arrays(narrow, flat(column.dictionary))
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def numpy_of(array: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the values of an Arrow array of numbers or Booleans, and a mask of known ones (None: all).

    Shares memory.
    """
    validity, data = array.buffers()
    known = None if array.null_count == 0 else _bits(validity, array.offset, len(array))
    if pa.types.is_boolean(array.type):
        return _bits(data, array.offset, len(array)), known
    width = array.type.bit_width // 8
    kind = "f" if pa.types.is_floating(array.type) else "u" if pa.types.is_unsigned_integer(array.type) else "i"
    if data is None or not len(array):
        return np.zeros(len(array), dtype=f"{kind}{width}"), known
    return np.frombuffer(data, dtype=f"{kind}{width}", count=len(array), offset=array.offset * width), known


def _bits(buffer: Any, offset: int, count: int) -> np.ndarray:
    if buffer is None or not count:
        return np.zeros(count, dtype=bool)
    first = offset // 8
    packed = np.frombuffer(buffer, dtype=np.uint8, offset=first, count=(offset + count + 7) // 8 - first)
    return np.unpackbits(packed, bitorder="little")[offset % 8 : offset % 8 + count].astype(bool)


def filled(array: Any, null: float | bool = np.nan) -> np.ndarray:
    """Return an Arrow array of floats or Booleans as NumPy, null replaced by `null`.

    Shares memory if nothing is null.
    """
    values, known = numpy_of(array)
    return values if known is None else np.where(known, values, null)


def arrow_of(values: np.ndarray) -> Any:
    """Return an Arrow array of numbers or Booleans; shares memory if `values` is contiguous."""
    kept = np.packbits(values, bitorder="little") if values.dtype.kind == "b" else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(kept)])


def text_of(cells: Sequence[str | None]) -> Any:
    letters = [b"" if cell is None else cell.encode() for cell in cells]
    ends = np.cumsum([0, *map(len, letters)], dtype=np.int64)
    known = np.array([cell is not None for cell in cells], dtype=bool)
    validity = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.LargeStringArray.from_buffers(
        len(cells), pa.py_buffer(ends), pa.py_buffer(b"".join(letters)), validity, int((~known).sum())
    )


# -- cells of text that are numbers: only plain decimals (12, -3.5, +2, .5, 1e5). Text such as 00042, 0x10, 1_000 or inf
# is not a number, because reading it as one would alter it.

PLAIN = r"^[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
PADDED = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
"""`PLAIN` with leading zeros: for columns that are declared numeric."""

_plain = re.compile(PLAIN[1:-1])
_whole = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
EXACT = 2**53
"""Integers up to this are exact as floats."""


def is_number(text: str) -> bool:
    return _plain.fullmatch(text) is not None


def number_of(text: str) -> int | float | None:
    """Return the number in a text cell: an integer if whole, infinity if too large, None if not a plain number.

    >>> [number_of(cell) for cell in ("7", "7.0", "-2.5", "007", "0x10", "inf")]
    [7, 7, -2.5, None, None, None]
    """
    if not _plain.fullmatch(text):
        return None
    number = float(text)
    return int(text) if _whole.fullmatch(text) and math.isfinite(number) else level_of(number)


def level_of(value: Any) -> Any:
    """Return the value as a category: whole floats become integers (integers with missing values arrive as floats)."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value)
    return value


def floats_of(cells: Sequence[str | None], pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """Return text cells as float64, surrounding blanks removed, and a mask of those that are not numbers (NaN)."""
    values = text_of([None if cell is None else cell.strip() for cell in cells])
    good = call("match_substring_regex", values, options=arrow_compute.MatchSubstringOptions(pattern))
    numeric = call("if_else", good, values, pa.nulls(len(values), values.type))
    floats = call("cast", numeric, options=arrow_compute.CastOptions.safe(pa.float64()))
    return filled(floats), ~filled(good, null=True)


def number_words(missing: tuple[str, ...]) -> tuple[float, ...]:
    """Return the missing words that are numbers, as in surveys where -9 means no answer."""
    return tuple(float(word) for word in missing if is_number(word) and math.isfinite(float(word)))


def unify(columns: Iterable[Any], mixed: Any = None) -> list[Any]:
    """Return the chunks of columns, cast to one type; numbers of several types become floats.

    Other mixed types become `mixed`, or raise Arrow's error if that is None.
    """
    chunks = [x for column in columns for x in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
    kinds = {chunk.type for chunk in chunks if not pa.types.is_null(chunk.type)}
    if not kinds:
        return chunks
    numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
    several = pa.float64() if numbers or mixed is None else mixed
    kind = kinds.pop() if len(kinds) == 1 else several
    return [chunk.cast(kind) for chunk in chunks]


def text_bytes(table: Any) -> int:
    """Return the bytes of the text columns of a table or batch, without dictionary columns."""
    total = 0
    for column in table.columns:
        if cell_type(column.type) is CellType.TEXT and not pa.types.is_dictionary(column.type):
            total += column.nbytes
    return total


# -- sources of rows in memory


def slice_columns(columns: Mapping[Key, Any], keys: Iterable[Key], start: int, count: int) -> Mapping[Key, Any]:
    return {key: columns[key].slice(start, count) for key in keys}


class ArrowSource(Source):
    """Columns that are already in memory as an Arrow table."""

    verbatim = True
    may_be_empty = False

    def __init__(self, table: Any, keys: Sequence[Any] = (), named: bool = True, notes: tuple[str, ...] = ()) -> None:
        self.table, self.named, self.notes = table, named, notes
        self.keys = list(keys) or list(table.column_names)
        refuse_repeated(self.keys)
        self.n_rows = table.num_rows
        if not self.may_be_empty:
            refuse_empty(self.n_rows, len(self.keys))
        row_bytes = text_bytes(table) / max(1, self.n_rows)
        self.chunk_rows = chunk_rows_for(self.n_rows, row_bytes, columns=len(self.keys))
        self._columns = dict(zip(self.keys, table.columns, strict=True))

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        return slice_columns(self._columns, keys, 0, source.look_rows_for(len(self.keys)))

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        for start, count in self.spans():
            yield TablePiece(start, count, partial(slice_columns, self._columns, tuple(wanted), start, count))


def source_columns(rows: source.Source, keys: Sequence[Key]) -> dict[Key, Any]:
    """Columns of a source, with cells as they are written; missing cells are null."""
    parts: list[Mapping[Key, Any]] = [
        piece.load() for piece in rows.pieces(dict.fromkeys(keys, source.Wanted(numeric=False, text=True)))
    ]
    found: dict[Key, Any] = {}
    for key in keys:
        chunks = [chunk for part in parts for chunk in getattr(part[key], "chunks", [part[key]])]
        plain = [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in chunks]
        kinds = {chunk.type for chunk in plain}
        found[key] = pa.chunked_array(plain if len(kinds) < 2 else [chunk.cast(pa.large_string()) for chunk in plain])
    return found


class ArraySource(Source):
    """The rows of an array or a sparse matrix, whose columns have no names; a piece loads as rows of it."""

    array: Any
    named = False

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        for start, count in self.spans():
            yield TablePiece(start, count, partial(getitem, self.array, slice(start, start + count)))


class SparseSource(ArraySource):
    """A SciPy sparse matrix of counts."""

    def __init__(self, matrix: Any) -> None:
        refuse_shape(matrix)
        rows = matrix.tocsr()
        self.array = rows if rows.dtype == np.float64 else rows.astype(np.float64)
        self.n_rows, self.width = matrix.shape
        self.keys = []
        self.chunk_rows = chunk_rows_for(self.n_rows)

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        return {}


class DenseSource(ArraySource):
    """A two-dimensional NumPy array, read by `DenseEncoder`."""

    def __init__(self, array: np.ndarray) -> None:
        refuse_shape(array)
        self.array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        rows, width = array.shape
        self.n_rows, self.keys = rows, list(range(width))
        self.chunk_rows = next((chunk for least, chunk in LONG.items() if rows > least), chunk_rows_for(rows))
        while self.chunk_rows > FEWEST and self.chunk_rows * width > LONG_CELLS:
            self.chunk_rows //= 2

    def head(self, keys: Sequence[Any]) -> Mapping[Key, Any]:
        return {key: arrow_of(self.array[:LOOK_WHOLE, key]) for key in keys}


def refuse_shape(array: Any) -> None:
    """Raise an error unless an array or sparse matrix is two-dimensional, real and not empty."""
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported: a table holds real numbers, counts and categories.")
    if array.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: array.reshape(-1, 1) if it is "
            "one column, array.reshape(1, -1) if it is one row."
        )
    refuse_empty(*array.shape)


# -- frames, mappings of columns and arrays of objects as Arrow tables

TEXT = "text"
"""The column name of documents that come without one."""
ENGINES = {"dask": "Dask", "dask_expr": "Dask", "pyspark": "Spark"}
"""Engines by the package of their collections."""


class CellTypeError(DataError, TypeError):
    """A cell is neither a number nor text."""


def is_frame(data: Any) -> bool:
    """Whether data has the Arrow PyCapsule protocol, as pandas, polars, DuckDB and Arrow itself do."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def collected(data: Any) -> Any:
    """Collect a polars LazyFrame; return other data unchanged; raise an error for a Dask or Spark DataFrame."""
    home = type(data).__module__.partition(".")[0]
    if home in ENGINES:
        refuse_elsewhere(data)
    return data.collect() if home == "polars" and is_lazy(data) else data


def is_lazy(data: Any) -> bool:
    return type(data).__name__ == "LazyFrame" and type(data).__module__.startswith("polars")


def engine_holding(data: Any) -> str | None:
    """ "Dask" or "Spark" if the rows are in one of their collections, else None."""
    return ENGINES.get(type(data).__module__.partition(".")[0])


def refuse_elsewhere(data: Any) -> None:
    """Raise an error for a Dask or Spark DataFrame: the rows are needed in this process."""
    engine = engine_holding(data)
    if engine is not None and hasattr(data, "columns"):
        bring = "X.compute()" if engine == "Dask" else "X.toPandas()"
        raise DataError(f"this needs the rows in memory, and they are in a {engine} DataFrame. Fetch them: {bring}")


def _plain_pandas(data: Any) -> Any:
    """Return a pandas DataFrame with periods as their start times, and intervals as text."""
    changed = data
    for place, kind in enumerate(data.dtypes if data.ndim == 2 else ()):
        name = type(kind).__name__
        if name == "PeriodDtype":
            plain = data.iloc[:, place].dt.to_timestamp()
        elif name == "IntervalDtype":
            plain = data.iloc[:, place].astype(object).map(str, na_action="ignore")
        elif name == "CategoricalDtype" and type(kind.categories.dtype).__name__ == "IntervalDtype":
            plain = data.iloc[:, place].cat.rename_categories([str(level) for level in kind.categories])
        else:
            continue
        changed = data.copy() if changed is data else changed
        changed.isetitem(place, plain)
    return changed


def source_in_memory(data: Any) -> Source | None:
    """Return the rows of a frame, an array, a sparse matrix, a mapping or nested lists; a source unchanged.

    Return None for names of files, and for a reader or a DuckDB relation, which yields batches without holding them.
    """
    data = collected(data)
    if isinstance(data, str | os.PathLike):
        return None
    if isinstance(data, Source):
        return data
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        name = type(data).__name__
        passing = name in ("RecordBatchReader", "DuckDBPyRelation") or not hasattr(data, "__len__")
        return None if passing and hasattr(data, "__arrow_c_stream__") else frame_source(data)
    if isinstance(data, Mapping):
        return columns_source(data)
    if type(data).__module__.startswith("scipy.sparse"):  # without importing SciPy
        return SparseSource(data)
    if isinstance(data, list | tuple) and data and all(isinstance(file, os.PathLike) for file in data):
        return None
    array = data if isinstance(data, np.ndarray) else _nested_array(data)
    if array.dtype.kind in "iufb" or array.ndim != 2 or array.dtype.kind == "c" or 0 in array.shape:
        if isinstance(array, np.ma.MaskedArray):
            return DenseSource(np.where(np.ma.getmaskarray(array), np.nan, array.data.astype(np.float64)))
        array = np.asarray(array)
        odd = array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8)  # half or extended precision
        return DenseSource(array.astype(np.float64) if odd else array)
    return columns_source({place: array[:, place] for place in range(array.shape[1])}, named=False)


def _nested_array(data: Any) -> np.ndarray:
    """Convert rows given as lists to an array of numbers, or of objects if some cell is not a number."""
    if not hasattr(data, "__len__") and not hasattr(data, "__array__"):
        raise DataError(f"a {type(data).__name__} is no table. Pass a file name, a frame, or a 2-D array.")
    try:
        array = np.asarray(data)
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in data]
        odd = next(place for place, length in enumerate(lengths) if length != lengths[0])
        raise DataError(
            f"the rows differ in length: row 1 has {lengths[0]} cells, row {odd + 1} has {lengths[odd]}. "
            "Rows of one table have one length."
        ) from None
    return array if array.dtype.kind in "iufbc" else np.asarray(data, dtype=object)


def frame_source(data: Any) -> ArrowSource:
    """Return the columns of a frame; nothing is copied if its memory is in Arrow format."""
    if hasattr(data, "iloc") and hasattr(data, "dtypes"):
        data = _plain_pandas(data)
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
    if table.schema.metadata:
        refuse_repeated(table.column_names)  # else `select` would
        table = table.select(drop_index(table.schema).names)
    notes = (table.schema.metadata or {}).get(b"pandas")
    labels = json.loads(notes).get("column_indexes", []) if notes else []
    if len(labels) == 1 and labels[0].get("pandas_type") in ("int64", "int32") and table.num_columns:
        keys, named = [int(name) for name in table.column_names], False
    else:
        keys, named = list(table.column_names), True
    return ArrowSource(table, keys, named)


def drop_index(schema: Any) -> Any:
    """Return an Arrow schema without the columns of a pandas index."""
    notes = (schema.metadata or {}).get(b"pandas")
    if notes is None:
        return schema
    kept = json.loads(notes).get("index_columns", [])
    for name in kept:
        if isinstance(name, str) and name in schema.names:
            schema = schema.remove(schema.get_field_index(name))
    return schema


def plain_keys(names: Iterable[Any]) -> list[Key]:
    """Return column names: text and integers unchanged, others (tuples, Booleans) as text."""
    return [
        int(name) if isinstance(name, (int, np.integer)) and not isinstance(name, bool) else str(name) for name in names
    ]


def columns_source(columns: Mapping[Any, Any], *, named: bool = True) -> ArrowSource:
    """Return a source of a mapping of names to columns: arrays, lists or series of one length."""
    keys = plain_keys(columns)
    refuse_repeated(keys)
    arrays = {key: arrow_column(key, column) for key, column in zip(keys, columns.values(), strict=True)}
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{key!r} has {count}" for key, count in list(lengths.items())[:5])
        raise DataError(f"the columns differ in length: {counts} rows. Columns of one table have one length.")
    names = [str(place) for place in range(len(arrays))]
    return ArrowSource(pa.table(list(arrays.values()), names=names), list(arrays), named)


def arrow_column(key: Key, column: Any) -> Any:
    """Return one column as an Arrow array, NaN as missing; numbers mixed with words become text."""
    make = pa.chunked_array if is_frame(column) else pa.array if hasattr(column, "__arrow_array__") else None
    if make is not None and not isinstance(column, np.ndarray):  # NumPy turns integers with missing cells into floats
        with suppress(pa.ArrowException, ValueError, TypeError, OverflowError):
            return make(column)
    if not hasattr(column, "__len__") or isinstance(column, (str, bytes)):
        raise DataError(f"{wording.column(key)} is {wording.cell(column)}. A column is a flat list of cells.")
    values = column if isinstance(column, np.ndarray) else np.asarray(column) if hasattr(column, "dtype") else None
    if values is None or (values.dtype.kind == "O" and values is not column):
        values = np.empty(len(column), dtype=object)
        values[:] = list(column)
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
    # Spreadsheets store a date as its midnight.
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
    """Whether a cell is None, or not equal to itself: NaN, NaT and pandas' NA."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):
        return type(cell).__name__ == "NAType"


def text_column(data: Any) -> Mapping[Key, Any] | None:
    """Return a list, array or series of strings, None if missing, as a table of one column; None for other data.

    >>> text_column(["free money", None])["text"].null_count
    1
    >>> text_column([1.5, 2.5]) is None
    True
    """
    if isinstance(data, str | bytes | Mapping) or not hasattr(data, "__len__") or hasattr(data, "columns"):
        return None
    if getattr(data, "ndim", 1) != 1 or getattr(getattr(data, "dtype", None), "kind", "O") not in "OUT":
        return None
    column = None if is_frame(data) else _strings(data)
    if is_frame(data):
        try:
            column = data if isinstance(data, pa.Array | pa.ChunkedArray) else pa.chunked_array(data)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            column = _strings(list(data))
    return None if column is None or cell_type(column.type) not in (CellType.TEXT, CellType.EMPTY) else {TEXT: column}


def _strings(cells: Any) -> Any:
    """Return strings and missing values as Arrow text; None if a cell is anything else."""
    first = next((cell for cell in cells if not is_missing(cell)), None)
    if not isinstance(first, str):
        return None
    try:
        return pa.array(cells, pa.large_string())
    except (pa.ArrowException, TypeError, UnicodeError):
        known = [None if is_missing(cell) else cell for cell in cells]
    return arrow_column(TEXT, known) if all(cell is None or isinstance(cell, str) for cell in known) else None
