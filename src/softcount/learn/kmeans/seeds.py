"""Where k-means starts: centres drawn from the distinct rows, so that row order and repetition cannot matter."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.kernels.nearest import Rows
from softcount.learn.kmeans.points import Points, spans
from softcount.learn.kmeans.together import TILE, FewRows
from softcount.numerics.late_scipy import sparse
from softcount.records import dataclass

SAMPLE = 8_192
"""Distinct rows that starts are drawn from and compared on; of a larger table, those with the least hash."""

PER_CENTRE = 64
"""Rows sampled for each centre, where that is more."""


def distinct(points: Points, clusters: int, kernel: ModuleType) -> tuple[Points, bool]:
    """The distinct rows with their weights, in an order of their own; whether they are all of the table's.

    A small dense table is sorted: its order, and so every draw, survives a change of units.
    """
    weights = np.ones(len(points)) if points.weights is None else points.weights
    if not sparse.issparse(points.rows) and len(points) <= SAMPLE:
        order, first = in_order(points.rows)
        return Points.of(points.rows[order[first]], np.add.reduceat(weights[order], np.flatnonzero(first))), True
    most = most_sampled(clusters)
    found: LeastHashes | None = None
    for part, span in zip(points.parts, spans(len(points)), strict=True):
        own = least_hashes(kernel, part, weights[span], most, np.inf if found is None else found.last)
        found = own if found is None else found + own
    assert found is not None
    return found.points, found.whole


def most_sampled(clusters: int) -> int:
    """How many distinct rows starts are compared on."""
    return max(SAMPLE, PER_CENTRE * clusters)


@dataclass(frozen=True, slots=True)
class LeastHashes:
    """The distinct rows of least hash, with their weights: so many, and one more where there are more.

    Those of two parts of a table add up to those of both, so that every way through a table finds the same.
    """

    hashes: np.ndarray
    rows: Rows
    weights: np.ndarray
    most: int

    def __add__(self, other: LeastHashes) -> LeastHashes:
        hashes = np.concatenate([self.hashes, other.hashes])
        both, weights = [self.rows, other.rows], np.concatenate([self.weights, other.weights])
        rows = sparse.vstack(both, format="csr") if sparse.issparse(self.rows) else np.concatenate(both)
        return _least(hashes, rows, weights, self.most)

    @property
    def whole(self) -> bool:
        """Whether these are all distinct rows of the table."""
        return len(self.hashes) <= self.most

    @property
    def last(self) -> Any:
        """The hash from which on no row is wanted."""
        return np.inf if self.whole else self.hashes[-1]

    @property
    def points(self) -> Points:
        return Points.of(self.rows[: self.most], self.weights[: self.most])

    @property
    def sorted_points(self) -> Points:
        """The same rows sorted, as those of a small table are."""
        order, _ = in_order(self.rows)
        return Points.of(self.rows[order], self.weights[order])


def least_hashes(kernel: ModuleType, rows: Rows, weights: np.ndarray, most: int, last: Any = np.inf) -> LeastHashes:
    """The distinct rows of least hash of a part of a table; those beyond `last` are not wanted."""
    hashes = kernel.row_hashes(rows)
    if np.isfinite(last):
        wanted = np.flatnonzero(hashes <= last)
        hashes, rows, weights = hashes[wanted], rows[wanted], weights[wanted]
    return _least(hashes, rows, weights, most)


def _least(hashes: np.ndarray, rows: Rows, weights: np.ndarray, most: int) -> LeastHashes:
    distinct_hashes, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    summed = np.bincount(which, weights, len(first))
    return LeastHashes(distinct_hashes[: most + 1], rows[first[: most + 1]], summed[: most + 1], most)


def in_order(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the rows sorted by their first cell, then the next; and which of these differ from the one before.

    A column only sorts what those before it left equal: of 1,797 rows of 64 pixels a fifth of the time of np.unique.
    """
    order, first = np.arange(len(rows)), np.zeros(len(rows), bool)
    first[:1] = True
    for cells in rows.T:
        equal = np.flatnonzero(~(first & np.append(first[1:], True)))
        if not len(equal):
            break
        here = order[equal]
        order[equal] = here[np.lexsort((cells[here], np.cumsum(first)[equal]))]
        values = cells[order[equal]]
        first[equal[1:]] |= values[1:] != values[:-1]
    return order, first


class Draws:
    """Centres drawn from some rows by weight and squared distance, for several starts at once."""

    def __init__(self, few: FewRows, rng: np.random.Generator) -> None:
        self.few, self.rng = few, rng

    def starts(self, init: str, clusters: int, count: int) -> np.ndarray:
        """(starts x clusters x columns) centres by name of the method."""
        if init == "random":
            return self.few.cells(np.array([self.different(clusters) for _ in range(count)]))
        if init == "k-means++":
            looks = 2 + int(np.log(clusters))
            most = max(1, TILE // (looks * len(self.few)))
            parts = [self.plus_plus(clusters, min(most, count - at), looks) for at in range(0, count, most)]
            return self.few.cells(np.concatenate(parts))
        raise DataError(f"init={init!r} is not known. Use 'k-means++', 'random', or an array of centres.")

    def different(self, clusters: int) -> np.ndarray:
        """Rows drawn by weight, no row twice while there are others."""
        weights = self.few.weights
        some = min(clusters, len(weights))
        # Above zero: next to a weight of 1e300 others vanish, and numpy would find too few to draw.
        share = np.maximum(weights / weights.sum(), 1e-300)
        return np.resize(self.rng.choice(len(weights), some, replace=False, p=share), clusters)

    def plus_plus(self, clusters: int, count: int, looks: int = 1) -> np.ndarray:
        """(starts x clusters) rows by k-means++: the first by weight, each next by that times squared distance.

        The distance is that to the nearest so far. Of several looks the row counts that leaves the least cost.
        """
        few, starts = self.few, np.arange(count)
        chosen = np.empty((count, clusters), np.int64)
        chosen[:, 0] = drawn(few.weights, self.rng.random(count))
        nearest = few.squares(few.cells(chosen[:, 0]))
        for at in range(1, clusters):
            rows = np.array([drawn(few.weights * near, self.rng.random(looks)) for near in nearest])
            after = few.squares(few.cells(rows.ravel())).reshape(count, looks, -1)
            np.minimum(after, nearest[:, None], out=after)
            best = (after @ few.weights).argmin(axis=1)
            chosen[:, at], nearest = rows[starts, best], after[starts, best]
        return chosen


def drawn(share: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Rows drawn in proportion, by numbers between 0 and 1; where nothing is left to draw, any row."""
    if not share.any():
        return (at * len(share)).astype(np.int64)
    total = np.cumsum(share)
    last = len(share) - 1 - int((share[::-1] > 0).argmax())
    return np.asarray(np.minimum(np.searchsorted(total, at * total[-1], side="right"), last))
