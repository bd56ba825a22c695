"""Parquet and Arrow files, and batches spooled to disk."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from softcount.core.lazy import pa
from softcount.errors import DataError, is_shortage
from softcount.sources import source
from softcount.sources.bytestream import Progress, UnchangingFile, spool
from softcount.sources.frames import CellType, ColumnRows, cell_type, drop_index, text_bytes
from softcount.sources.source import (
    FEW_ROWS,
    Key,
    Source,
    TablePiece,
    Wanted,
    chunk_rows_for,
    look_rows_for,
    refuse_empty,
)


class _Collected:
    """What Arrow writes, until it is taken away."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.done = 0

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        return len(self.parts[-1])

    def taken(self) -> bytes:
        found = b"".join(self.parts)
        self.parts, self.done = [], self.done + len(found)
        return found

    def flush(self) -> None:
        """Nothing waits."""


class ArrowSpool:
    """Batches in a file of their own in the temporary folder, which goes with this object; read as often as asked.

    Batches may differ in the types of their columns: each stretch of like ones is an Arrow stream. What is read is
    mapped, not copied, so it takes no memory that the system could not take back.
    """

    def __init__(self, batches: Iterable[Any], name: str) -> None:
        self.n_rows, self.text_bytes = 0, 0
        self.schemas: list[Any] = []
        self._starts: list[int] = []
        self._copy = spool(self._written(batches), name)
        self.remove = self._copy.remove_with(self)

    def _written(self, batches: Iterable[Any]) -> Iterator[bytes]:
        out, writer = _Collected(), None
        for batch in batches:
            if writer is None or batch.schema != self.schemas[-1]:
                if writer is not None:
                    writer.close()
                    yield out.taken()
                self.schemas.append(batch.schema)
                self._starts.append(out.done)
                writer = pa.ipc.new_stream(pa.PythonFile(out, mode="w"), batch.schema)
            writer.write_batch(batch)
            self.n_rows, self.text_bytes = self.n_rows + batch.num_rows, self.text_bytes + text_bytes(batch)
            yield out.taken()
        if writer is not None:
            writer.close()
            yield out.taken()

    def batches(self) -> Iterator[Any]:
        """All batches in their order."""
        with pa.memory_map(self._copy.path) as file:
            for start in self._starts:
                file.seek(start)
                yield from pa.ipc.open_stream(file)


# Parquet files, read row group by row group; a large one column by column, through a temporary file.

PARQUET_MAGIC = b"PAR1"
BATCH = 32_768
STRETCH = 1 << 18
"""Rows that a part of a long file has at least, for whoever reads it in parts."""

BUFFER = 1 << 16
"""Bytes of a column that are read at a time: without, all that a row group has of it is read at once."""
PAGE = 2 << 20
"""Bytes that a column is unpacked to at most before its first rows come: a page, and the values that pages refer to."""
GROUP_BYTES = 64 << 20
"""Bytes of all columns of a row group that are unpacked at once."""
FEW_COLUMNS = 128
"""Columns that are unpacked at once whatever their bytes: at most a page of each, and a file in between takes time."""


class ParquetSource(Source):
    """A Parquet file; what is wrong with its pages is found when they are read, and said."""

    verbatim = True

    def __init__(self, path: str, name: str | None = None, progress: Progress | None = None) -> None:
        self.file = UnchangingFile(path, name)
        self._progress = progress
        with self.file.unchanged(), self._opened() as file:
            schema = drop_index(file.schema_arrow)
            self.n_rows = file.metadata.num_rows
            row_bytes = 0.0
            if file.metadata.num_row_groups and file.metadata.num_rows:
                group = file.metadata.row_group(0)
                columns = (group.column(place) for place in range(group.num_columns))
                text: int = sum(
                    column.total_uncompressed_size for column in columns if column.physical_type == "BYTE_ARRAY"
                )
                row_bytes = text / max(1, int(group.num_rows))
        self._types = dict(zip(schema.names, schema.types, strict=True))
        self.types = {key: cell_type(kind) for key, kind in self._types.items()}
        self.keys = list(schema.names)
        source.refuse_repeated(self.keys)
        refuse_empty(self.n_rows, len(self.keys))
        self.chunk_rows = chunk_rows_for(self.n_rows, row_bytes, columns=len(self.keys))
        self._groups: list[int] | None = None

    def stretches(self, rows: int = STRETCH) -> list[ParquetSource]:
        """The file as neighbouring runs of row groups, each with at least so many rows; they tell no progress."""
        with self.file.unchanged(), self._opened() as file:
            counts = [file.metadata.row_group(place).num_rows for place in range(file.metadata.num_row_groups)]
        found: list[ParquetSource] = []
        for place, count in enumerate(counts):
            if not found or (found[-1].n_rows or 0) >= rows:
                found.append(copy(self))
                found[-1].n_rows, found[-1]._groups, found[-1]._progress = 0, [], None
            found[-1].n_rows = (found[-1].n_rows or 0) + count
            found[-1]._groups = [*(found[-1]._groups or []), place]
        return found

    def _opened(self, coded: tuple[str, ...] = ()) -> Any:
        import pyarrow.parquet as pq

        how = {"read_dictionary": list(coded), "page_checksum_verification": True}
        try:
            # Reading ahead keeps every column chunk to the end: 857 MB for a file of 450 MB, 458 without, and slower.
            return pq.ParquetFile(self.file.path, pre_buffer=False, buffer_size=BUFFER, **how)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise (error if is_shortage(error) else self._broken(error)) from None

    def _broken(self, error: Exception) -> DataError:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return DataError(f"{self.file.name} is a damaged or cut-off Parquet file ({said}). Copy or write it again.")

    def _batches(self, keys: list[str], rows: int, plain: Container[Key] = ()) -> Iterator[Any]:
        """The columns batch by batch; text is coded by its distinct cells, save where it is wanted `plain`."""
        coded = tuple(key for key in keys if cell_type(self._types[key]) is CellType.TEXT and key not in plain)
        with self.file.unchanged(), self._opened(coded) as file:
            try:
                for groups, sizes in _at_once(file.metadata, keys, self._groups):
                    yield from self._rows_of(file, groups, sizes, rows)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise (error if isinstance(error, DataError) or is_shortage(error) else self._broken(error)) from None

    def _rows_of(self, file: Any, groups: list[int], sizes: dict[str, int], rows: int) -> Iterator[Any]:
        """The rows of some row groups; of one that is too large to be unpacked at once, some columns after others."""
        if sum(sizes.values()) <= GROUP_BYTES or len(sizes) <= FEW_COLUMNS:
            yield from file.iter_batches(batch_size=rows, row_groups=groups, columns=list(sizes), use_threads=False)
            return
        kept = []
        for block in _column_blocks(sizes):
            batches = file.iter_batches(batch_size=rows, row_groups=groups, columns=block, use_threads=False)
            kept.append(ArrowSpool(batches, self.file.name))
        for tables in zip(*(rechunked(part.batches(), rows) for part in kept), strict=True):
            columns = {key: table.column(key) for table in tables for key in table.column_names}
            yield from pa.table(list(columns.values()), names=list(columns)).to_batches()
        for part in kept:
            part.remove()

    def head(self, keys: Sequence[Any]) -> Mapping[Key, Any]:
        flat = [key for key in keys if cell_type(self._types[key]) is not CellType.NESTED]
        columns: dict[Key, Any] = {key: pa.nulls(0, self._types[key]) for key in keys}
        most = min(look_rows_for(len(self.keys)), self.n_rows or 1)
        with self.file.unchanged(), self._opened() as file:
            blocks = _column_blocks(_sizes(file.metadata, 0, flat))
        for block in blocks:  # some columns at a time: they are unpacked as far as their pages go
            first = next(rechunked(self._batches(block, min(BATCH, most)), most))
            columns.update({key: first.column(key) for key in block})
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


def _sizes(metadata: Any, group: int, keys: Iterable[str]) -> dict[str, int]:
    """Bytes that each of these columns takes while a row group is read; nested ones by the name of the whole."""
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
    """Row groups that are read together, small neighbours or a large one, and the bytes of the columns of that."""
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
    """Columns in lots that are small enough to be unpacked at once."""
    lots: list[list[str]] = []
    room = 0
    for key, size in sizes.items():
        if not lots or size > room:
            lots.append([])
            room = GROUP_BYTES
        lots[-1].append(key)
        room -= size
    return lots


def rechunked(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows in Arrow tables of exactly `rows` rows, the last one shorter; copies nothing."""
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


# Rows that come as Arrow batches: streams, query results and Arrow files, read again as often as asked.

ARROW_MAGIC = b"ARROW1"
"""How an Arrow file begins."""


def is_stream(data: Any) -> bool:
    """Whether data hands over Arrow batches one after another and does not hold them: readers, DuckDB's relations."""
    if not hasattr(data, "__arrow_c_stream__"):
        return False
    return type(data).__name__ in ("RecordBatchReader", "DuckDBPyRelation") or not hasattr(data, "__len__")


class BatchSource(Source):
    """Rows of Arrow batches; `batches` gives them anew each time, of columns that are asked for or of all."""

    verbatim = True

    def __init__(self, keys: Sequence[str], types: Mapping[str, Any]) -> None:
        self.keys = list(keys)
        source.refuse_repeated(self.keys)
        if not self.keys:
            source.refuse_empty(0, 0)
        self.types = {key: cell_type(kind) for key, kind in types.items()}
        self._types = dict(types)

    def _sized(self, rows: int, size: int, known: bool) -> None:
        """Chunks for so many rows, whose text has so many bytes; `known` if there are no others."""
        source.refuse_empty(rows, len(self.keys))
        self.n_rows = rows if known else None
        self.chunk_rows = chunk_rows_for(rows, size / max(1, rows), columns=len(self.keys))

    def batches(self, keys: Sequence[str]) -> Iterator[Any]:
        """All batches, of these columns."""
        raise NotImplementedError

    def head(self, keys: Sequence[Any]) -> Mapping[Key, Any]:
        flat = [key for key in keys if self.types[key] is not CellType.NESTED]
        found: dict[Key, Any] = {key: pa.nulls(0, self._types[key]) for key in keys}
        if flat:
            first = next(rechunked(self.batches(flat), look_rows_for(len(self.keys))))
            found.update({key: first.column(key) for key in flat})
        return found

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        start, keys = 0, [str(key) for key in wanted] or self.keys[:1]
        for table in rechunked(self.batches(keys), self.chunk_rows):
            columns = {key: table.column(str(key)) for key in wanted}
            yield TablePiece(start, table.num_rows, ColumnRows(columns, 0, table.num_rows))
            start += table.num_rows
        self.n_rows = start


class SpooledSource(BatchSource):
    """Batches that come only once, kept in a temporary file while they are used."""

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
        super().__init__(self._schema.names, dict(zip(self._schema.names, self._schema.types, strict=True)))
        self._sized(self.spool.n_rows, self.spool.text_bytes, known=True)

    def batches(self, keys: Sequence[str]) -> Iterator[Any]:
        schema = pa.schema([self._schema.field(key) for key in keys])
        for batch in self.spool.batches():
            own = batch.select(list(keys))
            yield own if own.schema == schema else own.cast(schema)


def stream_source(data: Any, name: str = "the stream") -> SpooledSource:
    """The rows of a stream, which can be read only once."""
    if type(data).__name__ == "DuckDBPyRelation":  # its own stream makes the whole table first
        data = duckdb_reader(data)
    reader = data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
    source.refuse_repeated(reader.schema.names)
    return SpooledSource((batch for batch in reader if batch.num_rows), name)


def duckdb_reader(answer: Any) -> Any:
    """The rows of a relation of DuckDB, or of what a connection was asked, batch by batch."""
    fetch = getattr(answer, "to_arrow_reader", None) or answer.fetch_record_batch  # its name in older versions
    return fetch(BATCH)


class ArrowFileSource(BatchSource):
    """An Arrow file (Feather, version 2), read batch by batch."""

    def __init__(self, path: str, name: str | None = None) -> None:
        self.file = UnchangingFile(path, name)
        with self.file.unchanged(), self._broken_or():
            schema, rows, size, last = self._looked_at()
        super().__init__(schema.names, dict(zip(schema.names, schema.types, strict=True)))
        self._sized(rows, size, known=last)

    def _looked_at(self) -> tuple[Any, int, int, bool]:
        """The columns, how many rows there are and the bytes of their text, as far as the size of chunks asks for."""
        rows = size = place = 0
        with pa.OSFile(self.file.path) as opened, pa.ipc.open_file(opened) as reader:
            for place in range(reader.num_record_batches):
                batch = reader.get_batch(place)
                rows, size = rows + batch.num_rows, size + text_bytes(batch)
                if rows > FEW_ROWS:
                    break
            return drop_index(reader.schema), rows, size, place + 1 >= reader.num_record_batches

    def _broken_or(self) -> Any:
        return _Broken(self.file.name)

    def batches(self, keys: Sequence[str]) -> Iterator[Any]:
        with self.file.unchanged(), self._broken_or(), pa.OSFile(self.file.path) as opened:
            with pa.ipc.open_file(opened) as reader:
                places = [reader.schema.get_field_index(key) for key in keys]
            options = pa.ipc.IpcReadOptions(included_fields=sorted(places))
            with pa.ipc.open_file(opened, options=options) as reader:
                for place in range(reader.num_record_batches):
                    yield reader.get_batch(place).select(list(keys))


class _Broken:
    """A block in which what Arrow cannot read is a damaged file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        damaged = isinstance(error, (pa.ArrowException, OSError, ValueError)) and not isinstance(error, DataError)
        if damaged and error is not None and not is_shortage(error):
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            what = f"{self.name} is a damaged or cut-off Arrow file ({said}). Copy or write it again."
            raise DataError(what) from None
