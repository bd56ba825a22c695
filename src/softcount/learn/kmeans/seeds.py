"""Where k-means starts: centres drawn from the distinct rows, so that row order and repetition cannot matter."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from softcount.errors import DataError
from softcount.kernels.nearest import Rows, densely, goal_of, squared_norms, squares
from softcount.learn.kmeans.points import Points

SAMPLE = 8_192
"""Distinct rows that starts are drawn from and compared on; of a larger table, those with the least hash."""

PER_CENTRE = 64
"""Rows sampled for each centre, where that is more."""


def distinct(points: Points, clusters: int) -> tuple[Points, bool]:
    """The distinct rows with their weights, in an order of their own; whether they are all of the table's.

    A small dense table is sorted: its order, and so every draw, survives a change of units.
    """
    weights = np.ones(len(points)) if points.weights is None else points.weights
    if not sparse.issparse(points.rows) and len(points) <= SAMPLE:
        rows, which = np.unique(points.rows + points.rows.dtype.type(0), axis=0, return_inverse=True)
        return Points.of(rows, np.bincount(which.ravel(), weights)), True
    hashes = row_hashes(points.rows)
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    summed = np.bincount(which, weights)
    most = max(SAMPLE, PER_CENTRE * clusters)
    return Points.of(points.rows[first[:most]], summed[:most]), len(first) <= most


def row_hashes(rows: Rows) -> np.ndarray:
    """A number per row that depends on its cells alone, not on its place nor on how zeros are stored."""
    if sparse.issparse(rows):
        cells = _mixed(rows.data, rows.indices)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(cells, dtype=np.uint64)])
        return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
    out = np.zeros(len(rows), np.uint64)
    for column in range(rows.shape[1]):
        out += _mixed(rows[:, column], np.array([column]))
    return out


def _mixed(cells: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Bits of each cell and its column thoroughly mixed; zero for a zero."""
    bits = cells.astype(np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = bits ^ ((columns.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))
        for turn, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(turn))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return np.where(cells == 0, np.uint64(0), mixed)


class Draws:
    """Centres drawn from some distinct rows by weight and squared distance."""

    def __init__(self, points: Points, rng: np.random.Generator) -> None:
        assert points.weights is not None
        self.rows, self.weights, self.rng = points.rows, points.weights, rng
        self.norms = squared_norms(points.rows)

    def start(self, init: str, clusters: int) -> np.ndarray:
        """Centres by name of the method."""
        if init == "random":
            return self.cells(self.different(clusters))
        if init == "k-means++":
            return self.cells(self.plus_plus(clusters))
        raise DataError(f"init={init!r} is not known. Use 'k-means++', 'random', or an array of centres.")

    def cells(self, chosen: np.ndarray) -> np.ndarray:
        return densely(self.rows[chosen])

    def different(self, clusters: int) -> np.ndarray:
        """Rows drawn by weight, no row twice while there are others."""
        some = min(clusters, len(self.weights))
        # Above zero: next to a weight of 1e300 others vanish, and numpy would find too few to draw.
        share = np.maximum(self.weights / self.weights.sum(), 1e-300)
        drawn = self.rng.choice(len(self.weights), some, replace=False, p=share)
        return np.resize(drawn, clusters)

    def plus_plus(self, clusters: int) -> np.ndarray:
        """k-means++: the first row by weight, each next by weight times squared distance to the nearest so far."""
        chosen = [self.by(self.weights)]
        nearest = self.apart(chosen[0])
        while len(chosen) < clusters:
            chosen.append(self.by(self.weights * nearest))
            nearest = np.minimum(nearest, self.apart(chosen[-1]))
        return np.array(chosen)

    def by(self, share: np.ndarray) -> int:
        """One row drawn in proportion; where nothing is left to draw, any row."""
        total = np.cumsum(share)
        if not total[-1] > 0:
            return int(self.rng.integers(len(share)))
        drawn = np.searchsorted(total, self.rng.random() * total[-1], side="right")
        return min(int(drawn), int(np.flatnonzero(share)[-1]))

    def apart(self, row: int) -> np.ndarray:
        """Squared distance of every row from one of them."""
        if sparse.issparse(self.rows):
            products = np.asarray((self.rows @ self.rows[[row]].T).todense()).ravel()
            apart: np.ndarray = np.maximum(self.norms + self.norms[row] - 2.0 * products, 0.0)
            apart[row] = 0.0
            return apart
        return np.asarray(np.square(densely(self.rows) - densely(self.rows[[row]])).sum(axis=1))

    def moved_one(self, centres: np.ndarray, rank: int) -> np.ndarray:
        """The centres with one of them put on a row drawn by weight times squared distance to the nearest.

        Which one: that whose rows would lose least by their second nearest centre, or the next by `rank`.
        """
        apart = squares(self.rows, goal_of(centres, self.rows.dtype, centres[:, 0], centres[:0, 0]))
        two = np.partition(apart, 1, axis=1)[:, :2]
        loss = np.bincount(apart.argmin(axis=1), self.weights * (two[:, 1] - two[:, 0]), len(centres))
        moved = centres.copy()
        least = np.argsort(loss, kind="stable")[rank % len(centres)]
        moved[least] = self.cells(np.array([self.by(self.weights * two[:, 0])]))[0]
        return moved
