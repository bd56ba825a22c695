"""Words that mark classes and words that moved a document, as Arrow tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from softcount.fitted.answers import label
from softcount.fitted.fitted_model import Fitted
from softcount.fitted.marking_words import Moved, marks, moved, places_of, row_of, text_leaves
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
    parts = [_moves(found, document_at(table, found.key, row)) for found in moved(fitted, chunk, against, key)]
    return pa.concat_tables(parts).combine_chunks()


def _moves(found: Moved, document: str | None) -> Any:
    """The words of one document; a long one has millions of places, which no Python object is made for."""
    import pyarrow as pa

    moves, places = found.moves, places_of(found, document)
    own = [places.get(move.word, np.empty((0, 2), np.int64)) for move in moves]
    edges = np.cumsum([0, *map(len, own)])
    starts, ends = np.concatenate([np.empty((0, 2), np.int64), *own]).T
    spans = pa.StructArray.from_arrays([pa.array(starts), pa.array(ends)], names=["start", "end"])
    return pa.table(
        {
            "column": pa.array([label(found.key)] * len(moves), pa.string()),
            "word": pa.array([move.word for move in moves], pa.string()),
            "count": pa.array([move.count for move in moves], pa.float64()),
            "nats": pa.array([move.nats for move in moves], pa.float64()),
            "spans": pa.ListArray.from_arrays(pa.array(edges, pa.int32()), spans),
        }
    )
