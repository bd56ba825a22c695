"""Rows that come as Arrow batches: streams, query results and Arrow files, read again as often as asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from softcount.errors import DataError, is_shortage
from softcount.sources import source
from softcount.sources.arrow_columns import CellType, cell_type, text_bytes
from softcount.sources.arrow_spool import ArrowSpool
from softcount.sources.bytestream import UnchangingFile
from softcount.sources.frames import drop_index
from softcount.sources.in_memory import ColumnRows
from softcount.sources.parquet import BATCH, rechunked
from softcount.sources.source import FEW_ROWS, Key, Source, TablePiece, Wanted, chunk_rows_for, look_rows_for

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
        import pyarrow as pa

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
        self._schema = one_schema(self.spool.schemas)
        super().__init__(self._schema.names, dict(zip(self._schema.names, self._schema.types, strict=True)))
        self._sized(self.spool.n_rows, self.spool.text_bytes, known=True)

    def batches(self, keys: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        schema = pa.schema([self._schema.field(key) for key in keys])
        for batch in self.spool.batches():
            own = batch.select(list(keys))
            yield own if own.schema == schema else own.cast(schema)


def stream_source(data: Any, name: str = "the stream") -> SpooledSource:
    """The rows of a stream, which can be read only once."""
    import pyarrow as pa

    if type(data).__name__ == "DuckDBPyRelation":  # its own stream makes the whole table first
        data = duckdb_reader(data)
    reader = data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
    source.refuse_repeated(reader.schema.names)
    return SpooledSource((batch for batch in reader if batch.num_rows), name)


def duckdb_reader(answer: Any) -> Any:
    """The rows of a relation of DuckDB, or of what a connection was asked, batch by batch."""
    fetch = getattr(answer, "to_arrow_reader", None) or answer.fetch_record_batch  # its name in older versions
    return fetch(BATCH)


def one_schema(schemas: Sequence[Any]) -> Any:
    """The types that hold all that batches hold: numbers before words, anything before nothing."""
    import pyarrow as pa

    fields = []
    for name in schemas[0].names:
        kinds = {schema.field(name).type for schema in schemas}
        cells = {cell_type(kind) for kind in kinds} - {CellType.EMPTY}
        kinds = {kind for kind in kinds if not pa.types.is_null(kind)} or {pa.null()}
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is None:
            numbers = cells <= {CellType.WHOLE, CellType.FLOAT, CellType.TRUTH}
            kind = pa.float64() if numbers else pa.large_string()
        fields.append(pa.field(name, kind))
    return pa.schema(fields)


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
        import pyarrow as pa

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
        import pyarrow as pa

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
        import pyarrow as pa

        damaged = isinstance(error, (pa.ArrowException, OSError, ValueError)) and not isinstance(error, DataError)
        if damaged and error is not None and not is_shortage(error):
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            what = f"{self.name} is a damaged or cut-off Arrow file ({said}). Copy or write it again."
            raise DataError(what) from None
