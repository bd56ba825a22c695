"""Kernel densities of one column or of several, summed directly or on a grid of bins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct

from softcount.core.special import log_of, log_sum_exp
from softcount.densities.kernels import (
    CELLS,
    OPEN,
    UNREFLECTED,
    Images,
    Reflection,
    SmoothingKernel,
    WeightedPoints,
    near_cdf,
    near_log_density,
)
from softcount.errors import DataError

# -- bins

BLOCK = 1024
"""Nodes per block. Empty blocks are not stored."""
FURTHEST = float(1 << 52)
"""Nodes further from 0 than this cannot be distinguished."""
DENSE = 1 << 21
"""Up to this many nodes between the smallest value and the largest, all blocks are stored."""
CELLS_BETWEEN_QUARTILES = 16
"""Number of cells between the quartiles, as a power of two."""


class DyadicBins(Struct, frozen=True):
    """Weights on the multiples of 2^level. A value between two nodes is shared between them, more to the nearer.

    Node 0 is the number 0 whatever the data, and a cell of one level is two cells of the level below. So bins of one
    level add node by node, and nodes of a finer level can be shared again to give those of a coarser one. `blocks`
    holds the numbers of the blocks of 1,024 nodes that have any weight, `weights` (blocks x 1,024) their weights.

    >>> bins = bins_of(WeightedPoints(np.array([0.25, 2.0, 1.5])), 0)
    >>> bins.points().ordered
    (array([0., 1., 2.]), array([0.75, 0.75, 1.5 ]))
    >>> bins_of(bins.points(), 1).points().ordered
    (array([0., 2.]), array([1.125, 1.875]))
    """

    level: int
    blocks: np.ndarray
    weights: np.ndarray

    @property
    def width(self) -> float:
        return 2.0**self.level

    def points(self) -> WeightedPoints:
        """Return the nodes with weight, as points."""
        block, node = np.nonzero(self.weights)
        return WeightedPoints((self.blocks[block] * BLOCK + node) * self.width, self.weights[block, node], self.level)


def compress(points: WeightedPoints) -> WeightedPoints:
    """Replace many points by nodes of a grid with at least 65,536 cells between the quartiles.

    If the points are on a coarser grid already, that is kept. Cells are a power of two in the units of the data, so
    that parts compressed separately add up to the whole.
    """
    spread = points.middle_half or points.deviation
    level = int(np.floor(np.log2(spread))) - CELLS_BETWEEN_QUARTILES
    return bins_of(points, level if points.level is None else max(level, points.level)).points()


def bins_of(points: WeightedPoints, level: int) -> DyadicBins:
    """Share points among the nodes of a level.

    Each value is rounded to the nearest 2^-20 of its cell, so sums of rows without weights are bit-for-bit identical in
    any order.
    """
    from softcount.densities.bin_loops import share_out  # compiled

    scale, values = 2.0**-level, points.values
    least, most = float(values.min()) * scale, float(values.max()) * scale
    if max(abs(least), abs(most)) >= FURTHEST:
        raise DataError("the values lie too far apart, or too far from 0, for cells this narrow: use exact=True.")
    first, last = int(np.floor(least)) // BLOCK, (int(np.floor(most)) + 1) // BLOCK
    weights = np.empty(0) if points.weights is None else points.weights
    if (last - first + 1) * BLOCK <= DENSE:
        blocks = np.arange(first, last + 1)
        nodes = np.zeros((len(blocks), BLOCK))
        share_out(values, weights, scale, first * BLOCK, nodes.reshape(-1))
        return DyadicBins(level, blocks, nodes)
    # The values are so far apart that most blocks between them are empty: fill each block separately.
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order] if len(weights) else weights
    block = np.floor_divide(np.floor(values * scale), BLOCK).astype(np.int64)
    held, starts = np.unique(block, return_index=True)
    blocks = np.union1d(held, held + 1)  # the last cell of a block shares with the first node of the next
    nodes = np.zeros((len(blocks), BLOCK))
    slots = np.searchsorted(blocks, held)
    for at, start, stop in zip(slots, starts, [*starts[1:], len(values)], strict=True):
        both = nodes[at : at + 2].reshape(-1)
        share_out(values[start:stop], weights[start:stop], scale, blocks[at] * BLOCK, both)
    return DyadicBins(level, blocks, nodes)


# -- the density of bins: one convolution for all queries, with a known error bound

FINE = 512
"""Minimum number of cells per bandwidth."""
RATIO = 16
"""Fine cells per cell of the grid on which the convolution runs."""
PER_BLOCK = BLOCK // RATIO
LINEAR, CUBIC = 1 / 8, 3 / 128
"""Error constants of linear and of cubic interpolation, as multiples of the second and the fourth derivative."""
FAINT = 1e-6
"""Below this share of the peak, queries are summed directly: the rounding errors of the convolution would show."""
FRACTION = np.arange(RATIO) / RATIO
CUBIC_SHARES = np.stack(
    [
        -FRACTION * (FRACTION - 1) * (FRACTION - 2) / 6, (FRACTION + 1) * (FRACTION - 1) * (FRACTION - 2) / 2,
        -(FRACTION + 1) * FRACTION * (FRACTION - 2) / 2, (FRACTION + 1) * FRACTION * (FRACTION - 1) / 6,
    ],
    axis=1,
)  # fmt: skip
"""(16 x 4) shares of a fine node that go to the four coarse nodes around its cell."""


def level_for(h: float) -> int:
    """Return the level of the bins for a bandwidth.

    >>> level_for(1.0), level_for(0.99), level_for(1024.0)
    (-9, -10, 1)
    """
    return int(np.floor(np.log2(h / FINE)))


class BinnedDensity(Struct, frozen=True, dict=True):
    """The density of bins under a smooth kernel. `points` are the binned points, needed for the far tails.

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
        """Bound on the error of a density, as a share of the maximum density."""
        second, fourth = self.kernel.bends or (np.inf, np.inf)
        fine = self.bins.width / self.h
        return LINEAR * second * fine**2 + 2 * CUBIC * fourth * (RATIO * fine) ** 4

    @property
    def width(self) -> float:
        """Width of a cell of the curve."""
        return self.bins.width * RATIO

    @cached_property
    def blocks(self) -> np.ndarray:
        """Numbers of the blocks that the curve covers: those with weight, and neighbours within reach of the kernel."""
        around = int(np.ceil(self.kernel.furthest * self.h / (BLOCK * self.bins.width))) + 1
        held = self.bins.blocks
        if held[-1] - held[0] == len(held) - 1:
            return np.arange(held[0] - around, held[-1] + around + 1)
        return np.unique(held[:, None] + np.arange(-around, around + 1))

    @cached_property
    def mass(self) -> np.ndarray:
        """Weights on the coarse grid. Each is shared among four nodes so that cubics keep their values."""
        shares = self.bins.weights.reshape(-1, RATIO) @ CUBIC_SHARES
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
        """Density at the nodes of the blocks, with two zeros at either end."""
        curve = self._convolve(self.kernel.pdf(self._away)) / (self.total * self.h)
        return np.concatenate([[0.0, 0.0], np.maximum(curve, 0.0), [0.0, 0.0]])

    @cached_property
    def total(self) -> float:
        return float(self.bins.weights.sum())

    @property
    def _away(self) -> np.ndarray:
        """Distances in bandwidths from a node to the following nodes, as far as the kernel reaches."""
        return np.arange(int(np.ceil(self.kernel.furthest * self.h / self.width)) + 1) * (self.width / self.h)

    def _convolve(self, half: np.ndarray, sign: float = 1.0) -> np.ndarray:
        """Convolve the mass with a kernel given by its right half; its left half is the mirror image times `sign`."""
        from scipy.fft import irfft, next_fast_len, rfft

        size = next_fast_len(len(self.mass), real=True)
        kernel = np.zeros(size)
        kernel[: len(half)] = half
        kernel[size - len(half) + 1 :] = sign * half[:0:-1]
        return np.asarray(irfft(rfft(self.mass, size) * rfft(kernel), size)[: len(self.mass)])

    def log_density(self, queries: np.ndarray, images: Images = UNREFLECTED) -> np.ndarray:
        """Return the log-density at each query, or the log of the sum of the densities at its images."""
        from softcount.densities.bin_loops import read_curve  # compiled

        found, part = np.empty(len(queries)), np.empty(len(queries))
        read_curve(queries, 1 / self.width, self.blocks, self.curve, found)
        for sign, shift in images[1:]:
            read_curve(sign * queries + shift, 1 / self.width, self.blocks, self.curve, part)
            found += part
        faint = found <= FAINT * self.curve.max()
        if not faint.any():
            return np.asarray(np.log(found, out=found))
        np.log(found, out=found, where=~faint)
        found[faint] = near_log_density(self.points, queries[faint], self.kernel, self.h, images)
        return found

    @cached_property
    def cumulative(self) -> np.ndarray:
        """Distribution function at each node."""
        half = self.kernel.cdf(self._away) - 1.0
        half[0] = 0.0
        return np.asarray((np.cumsum(self.mass) - 0.5 * self.mass + self._convolve(half, -1.0)) / self.total)

    def cdf(self, queries: np.ndarray) -> np.ndarray:
        """Return the distribution function at each query, by cubic interpolation with the density as slope."""
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


# -- one column

SUMMED = 4096
"""Up to this many points, sums are computed directly: that is less work than loading the compiled loops."""
HALVINGS = 1100
"""Enough bisections to get from any number to any other."""


class ColumnDensity(Struct, frozen=True, dict=True):
    """Points under a kernel with one bandwidth.

    Smooth kernels on many points are binned, unless `exact`. A kernel with bounded support is summed over the points
    near each query, because its edges are where the points are.
    """

    points: WeightedPoints
    kernel: SmoothingKernel
    h: float
    exact: bool = False
    ends: Reflection = OPEN

    @cached_property
    def binned(self) -> BinnedDensity | None:
        if self.exact or self.kernel.bends is None or len(self.points.values) <= SUMMED:
            return None
        level = level_for(self.h) if self.points.level is None else max(level_for(self.h), self.points.level)
        return BinnedDensity(bins_of(self.points, level), self.kernel, self.h, self.points)

    @property
    def error(self) -> float:
        """Bound on the error of a density as a share of the peak, apart from rounding."""
        binned = 0.0 if self.binned is None else self.binned.error
        if self.points.level is None:
            return binned
        second = self.kernel.bends[0] if self.kernel.bends else np.inf
        return binned + LINEAR * second * (2.0**self.points.level / self.h) ** 2

    @cached_property
    def reach(self) -> float:
        """Distance from a point beyond which its kernel is negligible."""
        return self.h * self.kernel.furthest

    @cached_property
    def images(self) -> Images:
        return self.ends.images(self.reach)

    def log_density(self, queries: np.ndarray) -> np.ndarray:
        """Return the log-density at each query: -inf outside the bounds, 0 for a missing query."""
        missing = np.isnan(queries)
        if missing.any():
            found = np.zeros(len(queries))
            found[~missing] = self.log_density(queries[~missing])
            return found
        if self.binned is not None:
            found = self.binned.log_density(queries, self.images)
        else:
            found = near_log_density(self.points, queries, self.kernel, self.h, self.images)
        if len(self.images) > 1:
            found[~self.ends.inside(queries)] = -np.inf
        return found

    def cdf(self, queries: np.ndarray) -> np.ndarray:
        """Return the distribution function at each query; NaN for a missing query."""
        missing = np.isnan(queries)
        if missing.any():
            found = self.cdf(np.where(missing, 0.0, queries))
            found[missing] = np.nan
            return found
        if len(self.images) == 1:
            return self._unreflected_cdf(queries)
        queries = np.clip(queries, self.ends.low, self.ends.high)
        found = np.zeros(len(queries))
        for sign, shift in self.images:
            start = sign * np.array([self.ends.low if self.ends.low > -np.inf else self.ends.high]) + shift
            found += sign * (self._unreflected_cdf(sign * queries + shift) - self._unreflected_cdf(start))
        return np.clip(found + (0.0 if self.ends.low > -np.inf else 1.0), 0.0, 1.0)

    def _unreflected_cdf(self, queries: np.ndarray) -> np.ndarray:
        if self.binned is not None:
            return self.binned.cdf(queries)
        return near_cdf(self.points, queries, self.kernel, self.h)

    def quantile(self, shares: np.ndarray) -> np.ndarray:
        """Return the quantile of each share, found by bisection."""
        least, most = float(self.points.values.min()), float(self.points.values.max())
        low = np.full(len(shares), max(least - self.reach, self.ends.low))
        high = np.full(len(shares), min(most + self.reach, self.ends.high))
        for _ in range(HALVINGS):
            middle = 0.5 * low + 0.5 * high
            if not ((low < middle) & (middle < high)).any():
                break
            above = self.cdf(middle) >= shares
            low, high = np.where(above, low, middle), np.where(above, middle, high)
            if (high - low <= 1e-13 * np.maximum(np.abs(low), np.abs(high))).all() or (
                high - low <= 1e-13 * self.h
            ).all():
                break
        support = self.h * self.kernel.support
        first, last = max(least - support, self.ends.low), min(most + support, self.ends.high)
        return np.where(shares <= 0, first, np.where(shares >= 1, last, high))

    def sample(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Draw values: a point by its weight plus a step from the kernel, reflected at the bounds."""
        values, _ = self.points.ordered
        drawn = np.searchsorted(self.points.below[1:], rng.random(number) * self.points.below[-1], side="right")
        steps = self.h * self.kernel.draw(rng, number)
        return self.ends.folded(values[np.minimum(drawn, len(values) - 1)] + steps)


# -- several columns: at every row a product of kernels, one per column


class ProductDensity(Struct, frozen=True, dict=True):
    """Weighted points (rows x columns) under a product kernel, with a bandwidth and bounds for each column.

    All sums are exact, computed in blocks. Missing cells of a query are left out: the density is that of its other
    cells.
    """

    points: WeightedPoints
    kernel: SmoothingKernel
    h: np.ndarray
    ends: tuple[Reflection, ...]
    error = 0.0

    @property
    def values(self) -> np.ndarray:
        return self.points.values

    @cached_property
    def shares(self) -> np.ndarray:
        """The share of each row in the density."""
        weights = np.ones(len(self.values)) if self.points.weights is None else self.points.weights
        return np.asarray(weights / weights.sum())

    def log_density(self, queries: np.ndarray) -> np.ndarray:
        found = np.empty(len(queries))
        log_shares = log_of(self.shares)
        for block in self._blocks(len(queries)):
            logs = np.broadcast_to(log_shares, (len(queries[block]), len(self.values))).copy()
            for column in range(queries.shape[1]):
                logs += self._log_kernels(queries[block, column], column)
            found[block] = log_sum_exp(logs, axis=1)
        return found

    def _log_kernels(self, cells: np.ndarray, column: int) -> np.ndarray:
        """Return the log-kernels of one column, images added, of shape (queries, rows); 0 for missing cells."""
        ends, h = self.ends[column], self.h[column]
        found: np.ndarray | None = None
        for sign, shift in ends.images(self.kernel.furthest * h):
            with np.errstate(invalid="ignore"):
                logs = self.kernel.log_pdf(((sign * cells + shift)[:, None] - self.values[:, column]) / h)
            found = logs if found is None else np.logaddexp(found, logs)
        assert found is not None
        found -= np.log(h)
        found[~ends.inside(cells)] = -np.inf
        found[np.isnan(cells)] = 0.0
        return found

    def cdf(self, queries: np.ndarray) -> np.ndarray:
        return self.integral(np.full_like(queries, -np.inf), queries)

    def quantile(self, shares: np.ndarray) -> np.ndarray:
        raise DataError(f"quantile is for one column, and this density has {self.values.shape[1]}.")

    def integral(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        found = np.empty(len(low))
        for block in self._blocks(len(low)):
            shares = np.broadcast_to(self.shares, (len(low[block]), len(self.values))).copy()
            for column in range(low.shape[1]):
                shares *= self._share_between(low[block, column], high[block, column], column)
            found[block] = shares.sum(axis=1)
        return np.clip(found, 0.0, 1.0)

    def _share_between(self, low: np.ndarray, high: np.ndarray, column: int) -> np.ndarray:
        """Return the mass of one column's kernels between two values, of shape (boxes, rows)."""
        ends, h = self.ends[column], self.h[column]
        low, high = np.clip(low, ends.low, ends.high), np.clip(high, ends.low, ends.high)
        found = np.zeros((len(low), len(self.values)))
        for sign, shift in ends.images(self.kernel.furthest * h):
            for edge, side in ((high, sign), (low, -sign)):
                found += side * self.kernel.cdf(((sign * edge + shift)[:, None] - self.values[:, column]) / h)
        return np.clip(found, 0.0, 1.0)

    def sample(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Draw rows of shape (number, columns): a row by its weight plus a kernel step in each column."""
        drawn = rng.choice(len(self.values), number, p=self.shares)
        columns = []
        for column, ends in enumerate(self.ends):
            step = self.h[column] * self.kernel.draw(rng, number)
            columns.append(ends.folded(self.values[drawn, column] + step))
        return np.stack(columns, axis=1)

    def _blocks(self, queries: int) -> Iterator[slice]:
        step = max(1, CELLS // max(len(self.values), 1))
        for start in range(0, queries, step):
            yield slice(start, start + step)
