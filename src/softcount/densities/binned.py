"""Kernel densities on a grid of bins."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from softcount.densities.kernels import DIGITS, UNREFLECTED, Images, SmoothingKernel, WeightedPoints, near_log_density
from softcount.errors import DataError

BLOCK = 1024
"""Nodes that are kept or left out together."""
FURTHEST = float(1 << 52)
"""Nodes further from 0 than this cannot be told apart."""
DENSE = 1 << 21
"""Nodes from the least value to the greatest up to which none is left out."""

CELLS_BETWEEN_QUARTILES = 16
"""As a power of two."""

NONE = np.empty(0)


class DyadicBins(Struct, frozen=True):
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

    scale = 2.0**-level
    least, most = float(points.values.min()) * scale, float(points.values.max()) * scale
    if max(abs(least), abs(most)) >= FURTHEST:
        raise DataError("the values lie too far apart, or too far from 0, for cells this narrow: use exact=True.")
    first, last = int(np.floor(least)) // BLOCK, (int(np.floor(most)) + 1) // BLOCK
    weights = NONE if points.weights is None else points.weights
    if (last - first + 1) * BLOCK <= DENSE:
        blocks = np.arange(first, last + 1)
        nodes = np.zeros(len(blocks) * BLOCK)
        from softcount.densities.bin_loops import share_out  # compiled

        share_out(points.values, weights, scale, first * BLOCK, nodes)
        return DyadicBins(level, blocks, nodes.reshape(-1, BLOCK))
    return _apart(points.values, weights, level)


def _apart(values: np.ndarray, weights: np.ndarray, level: int) -> DyadicBins:
    """Bins of values so far apart that most blocks between them are empty: each block by itself."""

    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order] if len(weights) else weights
    block = np.floor_divide(np.floor(values * 2.0**-level), BLOCK).astype(np.int64)
    held, starts = np.unique(block, return_index=True)
    blocks = np.union1d(held, held + 1)  # the last cell of a block shares with the first node of the next
    nodes = np.zeros((len(blocks), BLOCK))
    slots = np.searchsorted(blocks, held)
    for at, start, stop in zip(slots, starts, [*starts[1:], len(values)], strict=True):
        both = nodes[at : at + 2].reshape(-1)
        from softcount.densities.bin_loops import share_out  # compiled

        share_out(values[start:stop], weights[start:stop], 2.0**-level, blocks[at] * BLOCK, both)
    return DyadicBins(level, blocks, nodes)


# Binned density of one column: one convolution for all queries, with a known bound on the error.

FINE = 512
"""Cells to a bandwidth, at least."""
RATIO = 16
"""Fine cells to a cell of the grid on which the convolution runs."""
PER_BLOCK = BLOCK // RATIO
LINEAR, CUBIC = 1 / 8, 3 / 128
"""The error of a straight line between two nodes, and of a cubic through four, over the derivative next in order."""
FAINT = 1e-6
"""Below this share of the peak, queries are summed one by one: the convolution's own rounding would show."""


def level_for(h: float) -> int:
    """The level of the bins that a bandwidth wants.

    >>> level_for(1.0), level_for(0.99), level_for(1024.0)
    (-9, -10, 1)
    """
    return int(np.floor(np.log2(h / FINE)))


class BinnedDensity(Struct, frozen=True, dict=True):
    """The density of bins under a smooth kernel; `points` are what the bins were made of, for the far tails.

    >>> from softcount.densities.binned import bins_of
    >>> from softcount.densities.kernels import KERNELS
    >>> points = WeightedPoints(np.array([0.0, 1.0]))
    >>> density = BinnedDensity(bins_of(points, level_for(0.5)), KERNELS["gaussian"], 0.5, points)
    >>> np.exp(density.log_density(np.array([0.0, 30.0]))).round(6), density.error < 1e-6
    (array([0.452933, 0.      ]), True)
    """

    bins: DyadicBins
    kernel: SmoothingKernel
    h: float
    points: WeightedPoints

    @property
    def error(self) -> float:
        """The most by which a density can be wrong, as a share of the greatest density there is."""
        second, fourth = self.kernel.bends or (np.inf, np.inf)
        fine = self.bins.width / self.h
        return LINEAR * second * fine**2 + 2 * CUBIC * fourth * (RATIO * fine) ** 4

    @property
    def width(self) -> float:
        """The width of a cell of the curve."""
        return self.bins.width * RATIO

    @cached_property
    def blocks(self) -> np.ndarray:
        """The numbers of the blocks that the curve covers: those with weight, and as many beside as kernels reach."""
        reach = float(self.kernel.reach(np.zeros(1), DIGITS)[0]) * self.h
        beside = int(np.ceil(reach / (BLOCK * self.bins.width))) + 1
        held = self.bins.blocks
        if held[-1] - held[0] == len(held) - 1:
            return np.arange(held[0] - beside, held[-1] + beside + 1)
        return np.unique(held[:, None] + np.arange(-beside, beside + 1))

    @cached_property
    def mass(self) -> np.ndarray:
        """The weights on the coarser grid, each shared out among four nodes, so that cubics keep their values."""

        shares = np.zeros((self.bins.weights.size // RATIO, 4))
        from softcount.densities.bin_loops import pass_on  # compiled

        pass_on(self.bins.weights.reshape(-1, RATIO), CUBIC_SHARES, shares)
        spread = np.zeros((len(self.blocks), PER_BLOCK, 4))
        spread[np.searchsorted(self.blocks, self.bins.blocks)] = shares.reshape(-1, PER_BLOCK, 4)
        cells = spread.reshape(-1, 4)
        mass = cells[:, 1].copy()
        mass[:-1] += cells[1:, 0]
        mass[1:] += cells[:-1, 2]
        mass[2:] += cells[:-2, 3]
        return mass

    @cached_property
    def curve(self) -> np.ndarray:
        """The density at the nodes of the blocks, with two nodes of nothing at either end."""
        curve = self._convolved(self.kernel.pdf(self._away)) / (self.total * self.h)
        return np.concatenate([[0.0, 0.0], np.maximum(curve, 0.0), [0.0, 0.0]])

    @cached_property
    def total(self) -> float:
        """The weight of all bins."""
        return float(self.bins.weights.sum())

    @property
    def _away(self) -> np.ndarray:
        """Distances in bandwidths from a node to those after it, as far as a kernel reaches."""
        reach = float(self.kernel.reach(np.zeros(1), DIGITS)[0])
        return np.arange(int(np.ceil(reach * self.h / self.width)) + 1) * (self.width / self.h)

    def _convolved(self, half: np.ndarray, sign: float = 1.0) -> np.ndarray:
        """The mass under a kernel given by its right half, its left half being the same times `sign`."""
        from scipy.fft import irfft, next_fast_len, rfft

        size = next_fast_len(len(self.mass), real=True)
        kernel = np.zeros(size)
        kernel[: len(half)] = half
        kernel[size - len(half) + 1 :] = sign * half[:0:-1]
        return np.asarray(irfft(rfft(self.mass, size) * rfft(kernel), size)[: len(self.mass)])

    def density(self, queries: np.ndarray) -> np.ndarray:
        """The density at each query, and 0 where the nodes are too far away."""

        found = np.empty(len(queries))
        from softcount.densities.bin_loops import read_curve  # compiled

        read_curve(queries, 1 / self.width, self.blocks, self.curve, found)
        return found

    def log_density(self, queries: np.ndarray, images: Images = UNREFLECTED) -> np.ndarray:
        """The logarithm of the density at each query, or of the sum of those at its images."""
        found = self.density(queries)
        for sign, shift in images[1:]:
            found += self.density(sign * queries + shift)
        faint = found <= FAINT * self.curve.max()
        if not faint.any():
            return np.asarray(np.log(found, out=found))
        np.log(found, out=found, where=~faint)
        found[faint] = near_log_density(self.points, queries[faint], self.kernel, self.h, images)
        return found

    @cached_property
    def cumulative(self) -> np.ndarray:
        """The share of the density at or below each node."""
        half = self.kernel.cdf(self._away) - 1.0
        half[0] = 0.0
        return np.asarray((np.cumsum(self.mass) - 0.5 * self.mass + self._convolved(half, -1.0)) / self.total)

    def cdf(self, queries: np.ndarray) -> np.ndarray:
        """The share of the density at or below each query: a cubic with the density as its slope."""
        place = np.clip(queries / self.width, self.blocks[0] * PER_BLOCK, (self.blocks[-1] + 1) * PER_BLOCK - 1.5)
        cell = np.floor(place)
        block = np.floor_divide(cell, PER_BLOCK).astype(np.int64)
        slot = np.searchsorted(self.blocks, block)
        within = np.where(self.blocks[slot] == block, cell - block * PER_BLOCK, 0).astype(np.int64)
        at = np.minimum(slot * PER_BLOCK + within, len(self.cumulative) - 2)
        t = np.where(self.blocks[slot] == block, place - cell, 0.0)
        low, high = self.cumulative[at], self.cumulative[at + 1]
        slope = self.curve * self.width
        bend = t * (1 - t) * ((1 - t) * (slope[at + 2] - high + low) - t * (slope[at + 3] - high + low))
        return np.asarray(np.clip(low + t * (high - low) + bend, 0.0, 1.0))


def _cubic_shares() -> np.ndarray:
    """(16 x 4) how much of a fine node goes to the four coarse nodes around its cell."""
    t = np.arange(RATIO) / RATIO
    return np.stack(
        [
            -t * (t - 1) * (t - 2) / 6, (t + 1) * (t - 1) * (t - 2) / 2,
            -(t + 1) * t * (t - 2) / 2, (t + 1) * t * (t - 1) / 6,
        ],
        axis=1,
    )  # fmt: skip


CUBIC_SHARES = _cubic_shares()
