"""Rows that are in memory already: Arrow tables, arrays of numbers, sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.records import dataclass
from softcount.sources import source
from softcount.sources.arrow_columns import arrow_of, text_bytes
from softcount.sources.source import Key, Source, TablePiece, Wanted, chunk_rows_for, refuse_empty

LOOK_WHOLE = 4_096
"""Rows of an array of whole numbers that are looked at."""

LONG = {524_288: 131_072, 262_144: 65_536}
"""Rows above which an array, which costs nothing to cut, comes in longer chunks: each costs some 0.2 ms of Python."""

LONG_CELLS, FEWEST = 1 << 23, 1_024
"""Cells that a chunk of an array may have, 64 MB where they must be converted, and rows that it has anyway."""


@dataclass(frozen=True, slots=True)
class ColumnRows:
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
    import pyarrow as pa

    if not columns:
        return None
    table = pa.table(columns, names=[str(place) for place in range(len(columns))])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = out.getvalue().to_pybytes()
    return packed


def _unpacked(keys: Sequence[Key], packed: bytes | None) -> ColumnRows:
    import pyarrow as pa

    if packed is None:
        return ColumnRows({}, 0, 0)
    table = pa.ipc.open_stream(packed).read_all()
    return ColumnRows(dict(zip(keys, table.columns, strict=True)), 0, table.num_rows)


@dataclass(frozen=True, slots=True)
class ArrayRows:
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
