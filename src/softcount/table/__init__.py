"""Tables: opened from anywhere, their columns understood, their rows handed on as chunks."""

from softcount.table.chunk import UNKNOWN, Chunk, Chunks
from softcount.table.labels import check_weights, code_labels
from softcount.table.opened import open_table
from softcount.table.plan import Contradiction
from softcount.table.schema import MISSING, NARROW_LEVELS, Field, Key, Kind, Place, Schema
from softcount.table.table import Settled, Table
from softcount.table.vocabulary import MOST_LEVELS, OTHER

__all__ = [
    "MISSING",
    "MOST_LEVELS",
    "NARROW_LEVELS",
    "OTHER",
    "UNKNOWN",
    "Chunk",
    "Chunks",
    "Contradiction",
    "Field",
    "Key",
    "Kind",
    "Place",
    "Schema",
    "Settled",
    "Table",
    "check_weights",
    "code_labels",
    "open_table",
]
