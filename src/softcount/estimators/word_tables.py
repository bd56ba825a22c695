"""Words that mark classes and words that moved a document, as Arrow tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from softcount.models.answers import label
from softcount.models.fitted import Fitted
from softcount.models.marks import Moved, marks, moved, places_of, row_of, text_leaves
from softcount.table import Key, Table
from softcount.table.texts import document_at


def marks_table(fitted: Fitted, names: list[Any], key: Key | None, most: int) -> Any:
    """The marking words of every class, class by class."""
    import pyarrow as pa

    lines = [
        {"class": name, "column": label(leaf.key)} | asdict(mark)
        for leaf in text_leaves(fitted, key)
        for name, own in zip(names, marks(fitted, leaf, most), strict=True)
        for mark in own
    ]
    types: list[tuple[str, Any]] = [("class", pa.array(names).type), ("column", pa.string()), ("word", pa.string())]
    types += [(figure, pa.float64()) for figure in ("log_odds", "evidence", "count", "elsewhere")]
    return pa.Table.from_pylist(lines, schema=pa.schema(types))


def moved_table(fitted: Fitted, table: Table, row: int, against: Any, key: Key | None) -> Any:
    """The words of one row's documents, with their nats and places."""
    import pyarrow as pa

    text_leaves(fitted, key)
    chunk = row_of(fitted, table, row)
    lines = [
        line
        for found in moved(fitted, chunk, against, key)
        for line in _lines(found, document_at(table, found.key, row))
    ]
    span = pa.struct([("start", pa.int64()), ("end", pa.int64())])
    types: list[tuple[str, Any]] = [("column", pa.string()), ("word", pa.string())]
    types += [("count", pa.float64()), ("nats", pa.float64()), ("spans", pa.list_(span))]
    return pa.Table.from_pylist(lines, schema=pa.schema(types))


def _lines(found: Moved, document: str | None) -> list[dict[str, Any]]:
    places = places_of(found, document)
    return [
        {
            "column": label(found.key),
            "word": move.word,
            "count": move.count,
            "nats": move.nats,
            "spans": [{"start": start, "end": end} for start, end in places.get(move.word, [])],
        }
        for move in found.moves
    ]
