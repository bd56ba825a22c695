"""Tables: rows from any source, with the kinds of their columns, encoded in chunks."""

from softcount.sources import wording
from softcount.table.chunk import UNKNOWN, Chunk, Chunks, Settled
from softcount.table.encode import ChunkTask, CodedChunk
from softcount.table.labels import check_weights, code_labels, refuse_many_numbers
from softcount.table.make_table import open_table, read_labels
from softcount.table.schema import (
    MISSING,
    MOST_LEVELS,
    NARROW_LEVELS,
    OTHER,
    ColumnPlace,
    Contradiction,
    Field,
    Key,
    Kind,
    Schema,
)
from softcount.table.table import Table, document_at

__all__ = [
    "MISSING",
    "MOST_LEVELS",
    "NARROW_LEVELS",
    "OTHER",
    "UNKNOWN",
    "Chunk",
    "ChunkTask",
    "Chunks",
    "CodedChunk",
    "ColumnPlace",
    "Contradiction",
    "Field",
    "Key",
    "Kind",
    "Schema",
    "Settled",
    "Table",
    "check_weights",
    "code_labels",
    "document_at",
    "open_table",
    "read_labels",
    "refuse_many_numbers",
    "wording",
]
