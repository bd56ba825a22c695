"""Parquet files, read row group by row group."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from softcount.errors import DataError
from softcount.table.bytestream import Progress
from softcount.table.columns import Cells, cells_of
from softcount.table.frames import drop_index
from softcount.table.schema import Key
from softcount.table.source import (
    LOOK_ROWS,
    Piece,
    PlainRows,
    Wanted,
    chunk_rows_for,
    rechunked,
    refuse_empty,
    refuse_repeated,
)

MAGIC = b"PAR1"
BATCH = 32_768


class ParquetSource(PlainRows):
    """A Parquet file; what is wrong with its pages is found when they are read, and said."""

    named = True
    text_file = False
    notes: tuple[str, ...] = ()

    def __init__(self, path: str, name: str | None = None, progress: Progress | None = None) -> None:
        self.path = path
        self.name = name or path
        self._progress = progress
        with self._opened() as file:
            schema = drop_index(file.schema_arrow)
            self.n_rows: int | None = file.metadata.num_rows
            row_bytes = _text_bytes(file.metadata)
        self._types = dict(zip(schema.names, schema.types, strict=True))
        self.keys: list[Key] = list(schema.names)
        refuse_repeated(self.keys)
        refuse_empty(self.n_rows, len(self.keys))  # type: ignore[arg-type]
        self.chunk_rows = chunk_rows_for(self.n_rows, row_bytes)  # type: ignore[arg-type]

    def _opened(self, coded: tuple[str, ...] = ()) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self.path, read_dictionary=list(coded), page_checksum_verification=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._broken(error) from None

    def _broken(self, error: Exception) -> DataError:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return DataError(f"{self.name} is a damaged or cut-off Parquet file ({said}). Copy or write it again.")

    def _batches(self, keys: list[str], rows: int, plain: Container[Key] = ()) -> Iterator[Any]:
        """The columns batch by batch; text is coded by its distinct cells, save where it is wanted `plain`."""
        import pyarrow as pa

        coded = tuple(key for key in keys if cells_of(self._types[key]) is Cells.TEXT and key not in plain)
        with self._opened(coded) as file:
            try:
                yield from file.iter_batches(batch_size=rows, columns=keys, use_threads=False)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise self._broken(error) from None

    def head(self, keys: Sequence[Any]) -> Mapping[Key, Any]:
        flat = [key for key in keys if cells_of(self._types[key]) is not Cells.NESTED]
        columns: dict[Key, Any] = {key: _nothing(self._types[key]) for key in keys}
        if flat:
            first = next(rechunked(self._batches(flat, BATCH), min(LOOK_ROWS, self.n_rows or 1)))
            columns.update({key: first.column(key) for key in flat})
        return columns

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[Piece]:
        keys = [str(key) for key in wanted]
        if not keys:
            yield from self._empty_pieces()
            return
        plain = [key for key, want in wanted.items() if want.text]
        start, total = 0, os.path.getsize(self.path)
        for table in rechunked(self._batches(keys, min(BATCH, self.chunk_rows), plain), self.chunk_rows):
            yield Piece(start, table.num_rows, partial(_columns, table))
            start += table.num_rows
            if self._progress:
                self._progress(total * start // (self.n_rows or 1), total)

    def _empty_pieces(self) -> Iterator[Piece]:
        for start in range(0, self.n_rows or 0, self.chunk_rows):
            yield Piece(start, min(self.chunk_rows, (self.n_rows or 0) - start), dict)


def _columns(table: Any) -> dict[Key, Any]:
    return {key: table.column(key) for key in table.column_names}


def _text_bytes(metadata: Any) -> float:
    """Bytes of text in a row, by the first row group."""
    if not metadata.num_row_groups or not metadata.num_rows:
        return 0.0
    group = metadata.row_group(0)
    columns = (group.column(place) for place in range(group.num_columns))
    text = sum(column.total_uncompressed_size for column in columns if column.physical_type == "BYTE_ARRAY")
    return text / max(1, group.num_rows)


def _nothing(kind: Any) -> Any:
    import pyarrow as pa

    return pa.nulls(0, kind)
