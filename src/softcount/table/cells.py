"""One document of a table as it was written, for showing it."""

from __future__ import annotations

from softcount.table.schema import Key
from softcount.table.table import Table
from softcount.table.texts import CELLS, documents_of


def document_at(table: Table, key: Key, row: int) -> str | None:
    """The document in a text column at a row, counted from 0; None where it is missing, or the column not there."""
    name = table._located.get(key)
    if name is None:
        return None
    for piece in table.source.pieces({name: CELLS}):
        if piece.start <= row < piece.start + piece.n_rows:
            cell = piece.load()[name].slice(row - piece.start, 1)
            return documents_of(key, cell, table.words)[0].as_py()
    return None
