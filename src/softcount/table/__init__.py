"""Tables: rows from any source, with the kinds of their columns, encoded in chunks."""

from softcount.sources import wording
from softcount.table.chunk import Chunk, Chunks, Settled
from softcount.table.labels import check_weights, code_labels, refuse_many_numbers
from softcount.table.make_table import open_table, read_labels
from softcount.table.schema import MISSING, NARROW_LEVELS, Contradiction, Key, Kind, Schema
from softcount.table.table import Table, document_at

__all__ = [
    "MISSING",
    "NARROW_LEVELS",
    "Chunk",
    "Chunks",
    "Contradiction",
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
