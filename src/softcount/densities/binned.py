"""A density of one column from bins: one convolution for all queries, and an error that is known beforehand.

Three approximations are made. Values move to the nodes of a grid of at least 512 cells to the bandwidth, linearly;
those nodes move to a grid 16 times coarser, by cubics; and a query reads a cubic through the curve there. Each is an
interpolation of the kernel, so its error is a derivative of the kernel, and a sum of those has a bound that the peak
of the density gives (`SmoothingKernel.bends`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from softcount.densities.dyadic_bins import BLOCK, DyadicBins
from softcount.densities.near_sums import DIGITS, UNREFLECTED, Images, near_log_density
from softcount.densities.smoothing_kernels import SmoothingKernel
from softcount.densities.weighted_points import WeightedPoints
from softcount.records import dataclass

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


@dataclass(frozen=True)
class BinnedDensity:
    """The density of bins under a smooth kernel; `points` are what the bins were made of, for the far tails.

    >>> from softcount.densities.dyadic_bins import bins_of
    >>> from softcount.densities.smoothing_kernels import KERNELS
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
        from softcount.densities.bin_loops import pass_on

        shares = np.zeros((self.bins.weights.size // RATIO, 4))
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
        from softcount.densities.bin_loops import read_curve

        found = np.empty(len(queries))
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
