"""A column's values on the nodes of a grid whose cells are a power of two wide: statistics that add and refine."""

from __future__ import annotations

import numpy as np

from softcount.densities.weighted_points import WeightedPoints
from softcount.errors import DataError
from softcount.records import dataclass

BLOCK = 1024
"""Nodes that are kept or left out together."""
FURTHEST = float(1 << 52)
"""Nodes further from 0 than this cannot be told apart."""
DENSE = 1 << 21
"""Nodes from the least value to the greatest up to which none is left out."""

CELLS_BETWEEN_QUARTILES = 16
"""As a power of two."""

NONE = np.empty(0)


@dataclass(frozen=True)
class DyadicBins:
    """Weights on the multiples of 2^level; a value between two of them is shared out, the nearer one getting more.

    Node 0 is the number 0 whatever the data, and a cell of one level is two of the level below: bins of one level add
    node by node, and those of a finer level become those of a coarser as if they had been made there. `blocks` are the
    numbers of the blocks of 1,024 nodes that hold any weight, `weights` (blocks x 1,024) what they hold.

    >>> halves = [bins_of(WeightedPoints(np.array(half)), 0) for half in ([0.25, 2.0], [1.5])]
    >>> both = halves[0].plus(halves[1])
    >>> both.points().ordered
    (array([0., 1., 2.]), array([0.75, 0.75, 1.5 ]))
    >>> both.coarser(1).points().ordered
    (array([0., 2.]), array([1.125, 1.875]))
    """

    level: int
    blocks: np.ndarray
    weights: np.ndarray

    @property
    def width(self) -> float:
        """The width of a cell."""
        return 2.0**self.level

    def points(self) -> WeightedPoints:
        """The nodes that hold anything, as points."""
        block, node = np.nonzero(self.weights)
        return WeightedPoints((self.blocks[block] * BLOCK + node) * self.width, self.weights[block, node], self.level)

    def plus(self, other: DyadicBins) -> DyadicBins:
        """The bins of both sets of rows, on the coarser of their grids."""
        level = max(self.level, other.level)
        mine, theirs = self.coarser(level), other.coarser(level)
        blocks = np.union1d(mine.blocks, theirs.blocks)
        weights = np.zeros((len(blocks), BLOCK))
        for part in (mine, theirs):
            weights[np.searchsorted(blocks, part.blocks)] += part.weights
        return DyadicBins(level, blocks, weights)

    def coarser(self, level: int) -> DyadicBins:
        """The same rows on a grid of this level, which is not below the bins' own."""
        if level < self.level:
            raise ValueError(f"bins of level {self.level} cannot be made finer, and {level} is.")
        return self if level == self.level else bins_of(self.points(), level)


def compressed(points: WeightedPoints) -> WeightedPoints:
    """Many points as nodes of a grid of 65,536 cells or more between the quartiles, or of the coarser one they are on.

    A power of two in the data's own units, so that parts compressed by themselves add up like the whole.
    """
    spread = points.middle_half or points.deviation
    level = int(np.floor(np.log2(spread))) - CELLS_BETWEEN_QUARTILES
    return bins_of(points, level if points.level is None else max(level, points.level)).points()


def bins_of(points: WeightedPoints, level: int) -> DyadicBins:
    """Points shared out among the nodes of a level.

    Rows without weights add up to the same bits in any order: a value is taken at the nearest 2^-20 of its cell.
    """
    from softcount.densities.bin_loops import share_out

    scale = 2.0**-level
    least, most = float(points.values.min()) * scale, float(points.values.max()) * scale
    if max(abs(least), abs(most)) >= FURTHEST:
        raise DataError("the values lie too far apart, or too far from 0, for cells this narrow: use exact=True.")
    first, last = int(np.floor(least)) // BLOCK, (int(np.floor(most)) + 1) // BLOCK
    weights = NONE if points.weights is None else points.weights
    if (last - first + 1) * BLOCK <= DENSE:
        blocks = np.arange(first, last + 1)
        nodes = np.zeros(len(blocks) * BLOCK)
        share_out(points.values, weights, scale, first * BLOCK, nodes)
        return DyadicBins(level, blocks, nodes.reshape(-1, BLOCK))
    return _apart(points.values, weights, level)


def _apart(values: np.ndarray, weights: np.ndarray, level: int) -> DyadicBins:
    """Bins of values so far apart that most blocks between them are empty: each block by itself."""
    from softcount.densities.bin_loops import share_out

    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order] if len(weights) else weights
    block = np.floor_divide(np.floor(values * 2.0**-level), BLOCK).astype(np.int64)
    held, starts = np.unique(block, return_index=True)
    blocks = np.union1d(held, held + 1)  # the last cell of a block shares with the first node of the next
    nodes = np.zeros((len(blocks), BLOCK))
    slots = np.searchsorted(blocks, held)
    for at, start, stop in zip(slots, starts, [*starts[1:], len(values)], strict=True):
        both = nodes[at : at + 2].reshape(-1)
        share_out(values[start:stop], weights[start:stop], 2.0**-level, blocks[at] * BLOCK, both)
    return DyadicBins(level, blocks, nodes)
