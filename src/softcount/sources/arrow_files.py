"""Parquet and Arrow files, and batches spooled to disk."""

from __future__ import annotations

import io
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from itertools import chain
from typing import Any

from softcount.core.lazy import pa
from softcount.errors import DataError, is_shortage
from softcount.sources import source
from softcount.sources.bytestream import Progress, UnchangingFile, spool
from softcount.sources.frames import CellType, cell_type, drop_index, text_bytes
from softcount.sources.source import FEW_ROWS, Key, Source, TablePiece, Wanted, chunk_rows_for, look_rows_for


class ArrowSpool:
    """Batches in a temporary file that lives as long as this object, and can be read repeatedly.

    Batches may differ in the types of their columns: each run of batches with one schema is an Arrow stream. Reading
    maps the file and copies nothing.
    """

    def __init__(self, batches: Iterable[Any], name: str) -> None:
        self.n_rows, self.text_bytes = 0, 0
        self.schemas: list[Any] = []
        self._starts: list[int] = []
        self._copy = spool(self._written(batches), name)
        self.remove = self._copy.remove_with(self)

    def _written(self, batches: Iterable[Any]) -> Iterator[bytes]:
        out, done = io.BytesIO(), 0
        writer: Any = None
        for batch in chain(batches, [None]):
            changed = batch is None or writer is None or batch.schema != self.schemas[-1]
            if changed and writer is not None:
                writer.close()
            if changed and batch is not None:
                self.schemas.append(batch.schema)
                self._starts.append(done + out.tell())
                writer = pa.ipc.new_stream(pa.PythonFile(out, mode="w"), batch.schema)
            if batch is not None:
                writer.write_batch(batch)
                self.n_rows, self.text_bytes = self.n_rows + batch.num_rows, self.text_bytes + text_bytes(batch)
            done += out.tell()
            yield out.getvalue()
            out.seek(0)
            out.truncate()

    def batches(self) -> Iterator[Any]:
        with pa.memory_map(self._copy.path) as file:
            for start in self._starts:
                file.seek(start)
                yield from pa.ipc.open_stream(file)


def rechunked(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Yield the rows in Arrow tables of exactly `rows` rows, the last one shorter; copies nothing."""
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


# -- Arrow batches: streams, query results and Arrow files

ARROW_MAGIC = b"ARROW1"


class BatchSource(Source):
    """Rows of Arrow batches, which `batches` yields again on every call.

    `rows` and the mean bytes of text per row, `row_bytes`, decide the size of chunks; `known` if these are all rows.
    """

    verbatim = True

    def __init__(self, schema: Any, rows: int, row_bytes: float, known: bool = True) -> None:
        self.keys = list(schema.names)
        source.refuse_repeated(self.keys)
        source.refuse_empty(rows, len(self.keys))
        self._types = dict(zip(schema.names, schema.types, strict=True))
        self.types = {key: cell_type(kind) for key, kind in self._types.items()}
        self.n_rows = rows if known else None
        self.chunk_rows = chunk_rows_for(rows, row_bytes, columns=len(self.keys))

    def batches(self, keys: Sequence[str], plain: Container[Key] = ()) -> Iterator[Any]:
        """Yield all rows of these columns; text may come as dictionaries, except in the columns `plain`."""
        raise NotImplementedError

    def _blocks_of_columns(self, keys: list[str]) -> list[list[str]]:
        """Return groups of columns whose first rows are read together."""
        return [keys] if keys else []

    def head(self, keys: Sequence[Any]) -> Mapping[Key, Any]:
        found: dict[Key, Any] = {key: pa.nulls(0, self._types[key]) for key in keys}
        for block in self._blocks_of_columns([key for key in keys if self.types[key] is not CellType.NESTED]):
            first = next(rechunked(self.batches(block), look_rows_for(len(self.keys))))
            found.update({key: first.column(key) for key in block})
        return found

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        start, keys = 0, [str(key) for key in wanted] or self.keys[:1]
        plain = [key for key, want in wanted.items() if want.text]
        for table in rechunked(self.batches(keys, plain), self.chunk_rows):
            columns = {key: table.column(str(key)) for key in wanted}
            yield TablePiece(start, table.num_rows, partial(dict, columns))
            start += table.num_rows
        self.n_rows = start


class SpooledSource(BatchSource):
    """Batches that can be read only once, kept in a temporary file."""

    def __init__(self, batches: Iterable[Any], name: str) -> None:
        self.spool = ArrowSpool(batches, name)
        if not self.spool.schemas:
            raise DataError(f"{name} has no rows.")
        fields = []
        for name in self.spool.schemas[0].names:
            kinds = {schema.field(name).type for schema in self.spool.schemas}
            cells = {cell_type(kind) for kind in kinds} - {CellType.EMPTY}
            kinds = {kind for kind in kinds if not pa.types.is_null(kind)} or {pa.null()}
            kind = kinds.pop() if len(kinds) == 1 else None
            if kind is None:
                numbers = cells <= {CellType.WHOLE, CellType.FLOAT, CellType.TRUTH}
                kind = pa.float64() if numbers else pa.large_string()
            fields.append(pa.field(name, kind))
        self._schema = pa.schema(fields)
        rows = self.spool.n_rows
        super().__init__(self._schema, rows, self.spool.text_bytes / max(1, rows))

    def batches(self, keys: Sequence[str], plain: Container[Key] = ()) -> Iterator[Any]:
        schema = pa.schema([self._schema.field(key) for key in keys])
        for batch in self.spool.batches():
            own = batch.select(list(keys))
            yield own if own.schema == schema else own.cast(schema)


def stream_source(data: Any, name: str = "the stream") -> SpooledSource:
    if type(data).__name__ == "DuckDBPyRelation":  # its own stream builds the whole table first
        data = duckdb_reader(data)
    reader = data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
    source.refuse_repeated(reader.schema.names)
    return SpooledSource((batch for batch in reader if batch.num_rows), name)


def duckdb_reader(answer: Any) -> Any:
    """Return a reader of the batches of a DuckDB relation or result."""
    fetch = getattr(answer, "to_arrow_reader", None) or answer.fetch_record_batch  # its name in older versions
    return fetch(BATCH)


class ArrowFileSource(BatchSource):
    """An Arrow file (Feather, version 2), read batch by batch."""

    def __init__(self, path: str, name: str | None = None) -> None:
        self.file = UnchangingFile(path, name)
        rows = size = place = 0
        with self._open() as opened, pa.ipc.open_file(opened) as reader:
            for place in range(reader.num_record_batches):
                batch = reader.get_batch(place)
                rows, size = rows + batch.num_rows, size + text_bytes(batch)
                if rows > FEW_ROWS:
                    break
            schema, known = drop_index(reader.schema), place + 1 >= reader.num_record_batches
        super().__init__(schema, rows, size / max(1, rows), known)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with self.file.unchanged(), _refuse_damage(self.file.name, "Arrow"), pa.OSFile(self.file.path) as opened:
            yield opened

    def batches(self, keys: Sequence[str], plain: Container[Key] = ()) -> Iterator[Any]:
        with self._open() as opened:
            with pa.ipc.open_file(opened) as reader:
                places = [reader.schema.get_field_index(key) for key in keys]
            options = pa.ipc.IpcReadOptions(included_fields=sorted(places))
            with pa.ipc.open_file(opened, options=options) as reader:
                for place in range(reader.num_record_batches):
                    yield reader.get_batch(place).select(list(keys))


# -- Parquet files, read by row groups; a large row group by columns, through a temporary file

PARQUET_MAGIC = b"PAR1"
BATCH = 32_768
STRETCH = 1 << 18
"""Fewest rows of a part of a long file."""
BUFFER = 1 << 16
"""Bytes of a column that are read at a time; otherwise a whole column chunk is read."""
PAGE = 2 << 20
"""Uncompressed bytes of a column before its first rows are available: a page and a dictionary."""
GROUP_BYTES = 64 << 20
"""Most uncompressed bytes of all columns of a row group that are read together."""
FEW_COLUMNS = 128
"""Columns that are read together whatever their size: at most a page of each, and a temporary file takes time."""


class ParquetSource(BatchSource):
    """A Parquet file; damaged pages raise an error when they are read."""

    def __init__(self, path: str, name: str | None = None, progress: Progress | None = None) -> None:
        self.file = UnchangingFile(path, name)
        self._progress = progress
        with self._open() as file:
            row_bytes, rows = 0.0, file.metadata.num_rows
            if file.metadata.num_row_groups and rows:
                group = file.metadata.row_group(0)
                columns = [group.column(place) for place in range(group.num_columns)]
                text = [x.total_uncompressed_size for x in columns if x.physical_type == "BYTE_ARRAY"]
                row_bytes = sum(text) / max(1, int(group.num_rows))
            super().__init__(drop_index(file.schema_arrow), rows, row_bytes)
        self._groups: list[int] | None = None

    def stretches(self, rows: int = STRETCH) -> list[ParquetSource]:
        """Split the file into runs of neighbouring row groups, each with at least `rows` rows, without progress."""
        with self._open() as file:
            counts = [file.metadata.row_group(place).num_rows for place in range(file.metadata.num_row_groups)]
        found: list[ParquetSource] = []
        for place, count in enumerate(counts):
            if not found or (found[-1].n_rows or 0) >= rows:
                found.append(copy(self))
                found[-1].n_rows, found[-1]._groups, found[-1]._progress = 0, [], None
            found[-1].n_rows = (found[-1].n_rows or 0) + count
            found[-1]._groups = [*(found[-1]._groups or []), place]
        return found

    @contextmanager
    def _open(self, coded: Sequence[str] = ()) -> Iterator[Any]:
        """Open the file; columns in `coded` are read as dictionaries."""
        import pyarrow.parquet as pq

        # Reading ahead keeps every column chunk in memory: 857 MB for a file of 450 MB, 458 without, and slower.
        how = {"pre_buffer": False, "buffer_size": BUFFER, "page_checksum_verification": True}
        with (
            self.file.unchanged(),
            _refuse_damage(self.file.name, "Parquet"),
            pq.ParquetFile(self.file.path, read_dictionary=list(coded), **how) as file,
        ):
            yield file

    def batches(self, keys: Sequence[str], plain: Container[Key] = ()) -> Iterator[Any]:
        coded = [key for key in keys if self.types[key] is CellType.TEXT and key not in plain]
        rows = min(BATCH, self.chunk_rows)
        with self._open(coded) as file:
            for groups, sizes in _at_once(file.metadata, keys, self._groups):
                read = partial(file.iter_batches, batch_size=rows, row_groups=groups, use_threads=False)
                if sum(sizes.values()) <= GROUP_BYTES or len(sizes) <= FEW_COLUMNS:
                    yield from read(columns=list(sizes))
                    continue
                # A row group too large to decompress: read blocks of columns in turn, each through a temporary file.
                kept = [ArrowSpool(read(columns=block), self.file.name) for block in _column_blocks(sizes)]
                for tables in zip(*(rechunked(part.batches(), rows) for part in kept), strict=True):
                    columns = {key: table.column(key) for table in tables for key in table.column_names}
                    yield from pa.table(list(columns.values()), names=list(columns)).to_batches()
                for part in kept:
                    part.remove()

    def _blocks_of_columns(self, keys: list[str]) -> list[list[str]]:
        """Return blocks of columns: each column is decompressed up to the end of a page."""
        with self._open() as file:
            return _column_blocks(_sizes(file.metadata, 0, keys))

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        if not wanted:
            yield from (TablePiece(start, count, dict) for start, count in self.spans())
            return
        rows, total = self.n_rows or 1, self.file.state.size
        for piece in super().pieces(wanted):
            yield piece
            if self._progress:
                self._progress(total * (piece.start + piece.n_rows) // rows, total)


@contextmanager
def _refuse_damage(name: str, kind: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError) or is_shortage(error):
            raise
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"{name} is a damaged or cut-off {kind} file ({why}). Copy or write it again.") from None


def _sizes(metadata: Any, group: int, keys: Iterable[str]) -> dict[str, int]:
    """Return the bytes that each of these columns takes while a row group is read; nested columns are summed."""
    found = dict.fromkeys(keys, 0)
    if metadata.num_row_groups:
        own = metadata.row_group(group)
        for column in (own.column(place) for place in range(own.num_columns)):
            name = column.path_in_schema
            key = name if name in found else name.partition(".")[0]
            if key in found:
                found[key] += min(column.total_uncompressed_size, PAGE)
    return found


def _at_once(
    metadata: Any, keys: Sequence[str], chosen: Sequence[int] | None = None
) -> Iterator[tuple[list[int], dict[str, int]]]:
    """Yield row groups that are read together: small neighbours, or a large one with the bytes of its columns."""
    held: list[int] = []
    small = dict.fromkeys(keys, 0)
    for group in range(metadata.num_row_groups) if chosen is None else chosen:
        own = _sizes(metadata, group, keys)
        if sum(own.values()) > GROUP_BYTES:
            if held:
                yield held, small
            yield [group], own
            held = []
        else:
            held.append(group)
    if held:
        yield held, small


def _column_blocks(sizes: Mapping[str, int]) -> list[list[str]]:
    """Return groups of columns that are small enough to decompress together."""
    lots: list[list[str]] = []
    room = 0
    for key, size in sizes.items():
        if not lots or size > room:
            lots.append([])
            room = GROUP_BYTES
        lots[-1].append(key)
        room -= size
    return lots
