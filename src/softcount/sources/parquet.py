"""Parquet files, read row group by row group."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from softcount.errors import DataError
from softcount.sources import source
from softcount.sources.arrow_columns import CellType, cell_type
from softcount.sources.bytestream import Progress, UnchangingFile
from softcount.sources.frames import drop_index
from softcount.sources.in_memory import ColumnRows
from softcount.sources.source import Key, Source, TablePiece, Wanted, chunk_rows_for, refuse_empty

MAGIC = b"PAR1"
BATCH = 32_768


class ParquetSource(Source):
    """A Parquet file; what is wrong with its pages is found when they are read, and said."""

    def __init__(self, path: str, name: str | None = None, progress: Progress | None = None) -> None:
        self.file = UnchangingFile(path, name)
        self._progress = progress
        with self.file.unchanged(), self._opened() as file:
            schema = drop_index(file.schema_arrow)
            self.n_rows = file.metadata.num_rows
            row_bytes = _text_bytes(file.metadata)
        self._types = dict(zip(schema.names, schema.types, strict=True))
        self.keys = list(schema.names)
        source.refuse_repeated(self.keys)
        refuse_empty(self.n_rows, len(self.keys))
        self.chunk_rows = chunk_rows_for(self.n_rows, row_bytes)

    def _opened(self, coded: tuple[str, ...] = ()) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        how = {"read_dictionary": list(coded), "page_checksum_verification": True}
        try:
            # Reading ahead keeps every column chunk to the end: 857 MB for a file of 450 MB, 458 without, and slower.
            return pq.ParquetFile(self.file.path, pre_buffer=False, **how)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._broken(error) from None

    def _broken(self, error: Exception) -> DataError:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return DataError(f"{self.file.name} is a damaged or cut-off Parquet file ({said}). Copy or write it again.")

    def _batches(self, keys: list[str], rows: int, plain: Container[Key] = ()) -> Iterator[Any]:
        """The columns batch by batch; text is coded by its distinct cells, save where it is wanted `plain`."""
        import pyarrow as pa

        coded = tuple(key for key in keys if cell_type(self._types[key]) is CellType.TEXT and key not in plain)
        with self.file.unchanged(), self._opened(coded) as file:
            try:
                yield from file.iter_batches(batch_size=rows, columns=keys, use_threads=False)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise self._broken(error) from None

    def head(self, keys: Sequence[Any]) -> Mapping[Key, Any]:
        import pyarrow as pa

        flat = [key for key in keys if cell_type(self._types[key]) is not CellType.NESTED]
        columns: dict[Key, Any] = {key: pa.nulls(0, self._types[key]) for key in keys}
        if flat:
            first = next(rechunked(self._batches(flat, BATCH), min(source.LOOK_ROWS, self.n_rows or 1)))
            columns.update({key: first.column(key) for key in flat})
        return columns

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        keys = [str(key) for key in wanted]
        if not keys:
            yield from (TablePiece(start, count, dict) for start, count in self.spans())
            return
        plain = [key for key, want in wanted.items() if want.text]
        start, total = 0, self.file.state.size
        for table in rechunked(self._batches(keys, min(BATCH, self.chunk_rows), plain), self.chunk_rows):
            columns = dict(zip(wanted, table.columns, strict=True))
            yield TablePiece(start, table.num_rows, ColumnRows(columns, 0, table.num_rows))
            start += table.num_rows
            if self._progress:
                self._progress(total * start // (self.n_rows or 1), total)


def _text_bytes(metadata: Any) -> float:
    """Bytes of text in a row, by the first row group."""
    if not metadata.num_row_groups or not metadata.num_rows:
        return 0.0
    group = metadata.row_group(0)
    columns = (group.column(place) for place in range(group.num_columns))
    text: int = sum(column.total_uncompressed_size for column in columns if column.physical_type == "BYTE_ARRAY")
    return text / max(1, int(group.num_rows))


def rechunked(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows in Arrow tables of exactly `rows` rows, the last one shorter; copies nothing."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for batch in batches:
        while count + batch.num_rows >= rows:
            take = rows - count
            yield pa.Table.from_batches([*held, batch.slice(0, take)])
            batch, held, count = batch.slice(take), [], 0
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
    if held:
        yield pa.Table.from_batches(held)
