"""Portions of rows and of whole sequences: long enough for a thread, short enough for its cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.models.bag_stack import SparseRows
from softcount.table.chunk import Chunk

TILE = 4096
"""Rows scored in one step, so that rows x groups stays in the cache."""
PORTION = 2 * TILE
PORTIONS = 12
"""Number of portions that two threads share fairly; more of them cost interpreter time and gain nothing."""
SECOND_CACHE = 1 << 20
"""Bytes of cells and scores that a tile may hold."""


class Ready(Struct, frozen=True):
    """A chunk in the form of the stacks, in tiles of `tile` rows; `base` is the log-density common to all groups."""

    data: list[Any]
    labels: np.ndarray | None
    weights: np.ndarray | None
    base: np.ndarray | float
    start: int
    n_rows: int
    tile: int = TILE

    def tiles(self) -> Iterator[slice]:
        for a in range(0, self.n_rows, self.tile):
            yield slice(a, min(a + self.tile, self.n_rows))

    def cut(self, start: int, stop: int) -> Ready:
        rows = slice(start, stop)
        own: dict[str, Any] = {
            name: value[rows] if isinstance(value, np.ndarray) else value
            for name, value in (("labels", self.labels), ("weights", self.weights), ("base", self.base))
        }
        data = [rows_of(data, rows) for data in self.data]
        return replace(self, data=data, **own, start=self.start + start, n_rows=stop - start)


def lengthen(ready: Sequence[Ready], groups: int) -> list[Ready]:
    """Return the rows in tiles that just fill the second-level cache; short chunks are joined.

    Between kernels a thread holds the interpreter, and others wait: with 12,288 rows of 20 codes per tile instead of
    4,096, an iteration on two threads took 2.2 ms instead of 3.4. The length depends only on the table and the model.
    """
    first = ready[0]
    width = sum(map(size_of, first.data)) // max(first.n_rows, 1) + 8 * groups
    tile = TILE * min(max(SECOND_CACHE // (width * TILE), 1), 4)
    for sparse in (part for part in first.data if isinstance(part, SparseRows)):
        # Enough rows to be worth a table of all words: adding two cells takes about as long as scoring one word.
        words = max(sparse.cells, 1) / max(first.n_rows, 1)
        tile = max(tile, TILE * int(sparse.width * groups / (2 * words) / TILE))
    count = max(1, tile // max(first.n_rows, 1))
    parts = [replace(joined(ready[a : a + count]), tile=tile) for a in range(0, len(ready), count)]
    fair = sum(part.n_rows for part in parts) // PORTIONS // TILE * TILE
    # Long chunks are split: of seven chunks two threads do four and three, of twenty-five 13 and 12.
    rows, found = max(tile, PORTION, fair), []
    for part in parts:
        if part.n_rows <= rows:
            found.append(part)
        else:
            found += [part.cut(a, min(a + rows, part.n_rows)) for a in range(0, part.n_rows, rows)]
    return found


def size_of(data: Any) -> int:
    """Return the bytes of a chunk's array, of several, or of the cells of sparse rows."""
    if isinstance(data, tuple):
        return sum(map(size_of, data))
    return 0 if data is None else data.nbytes


def joined(parts: Sequence[Ready]) -> Ready:
    first = parts[0]
    if len(parts) == 1:
        return first
    whole = {name: end_to_end([getattr(part, name) for part in parts]) for name in ("labels", "weights", "base")}
    data = [end_to_end(list(arrays)) for arrays in zip(*(part.data for part in parts), strict=True)]
    return Ready(data, **whole, start=first.start, n_rows=sum(part.n_rows for part in parts))


def end_to_end(parts: list[Any]) -> Any:
    """Concatenate arrays, or tuples of arrays element by element; anything else is equal in all parts."""
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(end_to_end(list(arrays)) for arrays in zip(*parts, strict=True))
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if first is None or isinstance(first, float):
        return first
    return SparseRows.joined(parts)


def rows_of(data: Any, rows: slice | np.ndarray) -> Any:
    if isinstance(data, tuple):
        return tuple(None if part is None else part[rows] for part in data)
    return data[rows]


SEQUENCE_PORTION = 8192
"""Steps of whole sequences that form one part of the work."""


class PathRows(Struct, frozen=True):
    """Prepared sequences: their rows, the borders between them, the weight of each, and the number of the first."""

    rows: Ready
    borders: np.ndarray
    weights: np.ndarray | None
    first: int

    @classmethod
    def of(cls, rows: Ready, chunk: Chunk) -> PathRows:
        """Return the prepared rows of a chunk as the sequences that its borders part."""
        borders = np.zeros(1, np.int64) if chunk.borders is None else chunk.borders
        weights = None if chunk.weights is None else np.ascontiguousarray(chunk.weights[borders])
        return cls(rows, np.append(borders, chunk.n_rows).astype(np.int64), weights, 0)

    @property
    def start(self) -> int:
        return self.rows.start

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def labels(self) -> np.ndarray | None:
        return self.rows.labels

    def shortened(self, rows: int) -> PathRows:
        """Return the sequences, or only this many steps of a single long sequence."""
        if self.n_rows <= rows:
            return self
        weights = None if self.weights is None else self.weights[:1]
        return PathRows(self.rows.cut(0, rows), np.array([0, rows], np.int64), weights, self.first)

    def heavier(self, factor: float) -> PathRows:
        each = np.ones(len(self.borders) - 1) if self.weights is None else self.weights
        rows = np.ones(self.n_rows) if self.rows.weights is None else self.rows.weights
        return replace(self, weights=each * factor, rows=replace(self.rows, weights=rows * factor))


def portions_of(part: PathRows) -> list[PathRows]:
    """Split a part between sequences into pieces of about `SEQUENCE_PORTION` steps."""
    if part.n_rows <= SEQUENCE_PORTION:
        return [part]
    cuts, borders = [0], part.borders
    while cuts[-1] < len(borders) - 1:
        fits = int(np.searchsorted(borders, borders[cuts[-1]] + SEQUENCE_PORTION, "right")) - 1
        cuts.append(max(cuts[-1] + 1, fits))
    return [
        PathRows(
            part.rows.cut(int(borders[a]), int(borders[b])),
            borders[a : b + 1] - borders[a],
            None if part.weights is None else part.weights[a:b],
            part.first,
        )
        for a, b in pairwise(cuts)
    ]
