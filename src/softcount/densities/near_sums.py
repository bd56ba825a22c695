"""Sums of kernels over the points near each query: exact, also in the far tails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from softcount.densities.smoothing_kernels import SmoothingKernel
from softcount.densities.weighted_points import WeightedPoints

TOGETHER = 128
"""Neighbouring queries that share the points near them."""
CELLS = 1 << 18
"""Distances worked out at once, so that they stay in the cache."""
Images = Sequence[tuple[float, float]]
"""Signs and shifts: a query x has the images sign * x + shift."""
UNREFLECTED: Images = ((1.0, 0.0),)
DIGITS = 37.0
"""Points that together add less than exp(-37), which is 1e-16, of the nearest are left out."""


def near_log_density(
    points: WeightedPoints, queries: np.ndarray, kernel: SmoothingKernel, h: float, images: Images = UNREFLECTED
) -> np.ndarray:
    """The logarithm of the density at each query, right to rounding: minus infinity where no kernel reaches.

    With images, that of the sum of the densities at all images of a query, the first of which is itself.

    >>> from softcount.densities.smoothing_kernels import KERNELS
    >>> near_log_density(WeightedPoints(np.array([0.0])), np.array([0.0, 20.0]), KERNELS["gaussian"], 2.0).round(4)
    array([ -1.6121, -51.6121])
    """
    found = _log_sums(points, queries, kernel, h)
    for sign, shift in images[1:]:
        found = np.logaddexp(found, _log_sums(points, sign * queries + shift, kernel, h))
    return np.asarray(found - np.log(points.total * h))


def _log_sums(points: WeightedPoints, queries: np.ndarray, kernel: SmoothingKernel, h: float) -> np.ndarray:
    values, weights = points.ordered
    found = np.full(len(queries), -np.inf)
    order, asked = _finite_in_order(queries)
    nearest = _nearest(values, asked) / h
    reach = h * kernel.reach(nearest, DIGITS + np.log(len(values)))
    for block, low, high in _windows(values, asked, reach):
        peak = kernel.log_pdf(nearest[block]) if kernel.bends else np.zeros(len(asked[block]))
        total = np.zeros(len(asked[block]))
        for piece in _pieces(low, high):
            u = (asked[block, None] - values[piece]) / h
            total += (np.exp(kernel.log_pdf(u) - peak[:, None]) if kernel.bends else kernel.pdf(u)) @ weights[piece]
        with np.errstate(divide="ignore"):
            found[order[block]] = peak + np.log(total)
    return found


def near_cdf(points: WeightedPoints, queries: np.ndarray, kernel: SmoothingKernel, h: float) -> np.ndarray:
    """The share of the density at or below each query; queries may be infinite."""
    values, weights = points.ordered
    found = np.where(queries > 0, 1.0, 0.0)
    order, asked = _finite_in_order(queries)
    reach = np.full(len(asked), h * float(kernel.reach(np.zeros(1), DIGITS)[0]))
    for block, low, high in _windows(values, asked, reach):
        total = np.full(len(asked[block]), points.below[low])
        for piece in _pieces(low, high):
            total += kernel.cdf((asked[block, None] - values[piece]) / h) @ weights[piece]
        found[order[block]] = total / points.below[-1]
    return np.clip(found, 0.0, 1.0)


def _finite_in_order(queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.flatnonzero(np.isfinite(queries))
    order = order[np.argsort(queries[order], kind="stable")]
    return order, queries[order]


def _nearest(values: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """The distance from each query to the nearest value."""
    after = np.minimum(np.searchsorted(values, asked), len(values) - 1)
    before = np.maximum(after - 1, 0)
    return np.asarray(np.minimum(np.abs(asked - values[after]), np.abs(asked - values[before])))


def _windows(values: np.ndarray, asked: np.ndarray, reach: np.ndarray) -> Iterator[tuple[slice, int, int]]:
    """Blocks of neighbouring queries, and the first and last value that any of a block needs."""
    for start in range(0, len(asked), TOGETHER):
        block = slice(start, start + TOGETHER)
        ends = [(asked[block] - reach[block]).min(), (asked[block] + reach[block]).max()]
        low, high = np.searchsorted(values, ends[0]), np.searchsorted(values, ends[1], side="right")
        yield block, int(low), int(high)


def _pieces(low: int, high: int) -> Iterator[slice]:
    for start in range(low, high, CELLS // TOGETHER):
        yield slice(start, min(start + CELLS // TOGETHER, high))
