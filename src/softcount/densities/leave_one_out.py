"""How probable a column's rows are under a kernel density of all the others."""

from __future__ import annotations

import numpy as np

from softcount.densities.binned import BinnedDensity, level_for
from softcount.densities.dyadic_bins import bins_of
from softcount.densities.near_sums import DIGITS
from softcount.densities.smoothing_kernels import KERNELS
from softcount.densities.weighted_points import WeightedPoints

SUMMED = 4096
"""Different values up to which every sum is made one by one."""
CLEAR = 1e-3
"""Above this share of the peak, a row's own kernel can be taken off the density of all rows."""

GAUSSIAN = KERNELS["gaussian"]


def leave_one_out(points: WeightedPoints, h: float) -> float:
    """The log-likelihood of the rows, each under a Gaussian kernel density of the others.

    >>> round(leave_one_out(WeightedPoints(np.array([0.0, 1.0, 3.0])), 1.0), 6)
    -7.537804
    """
    values, weights = points.ordered
    others = np.full(len(values), -np.inf)
    unsure = np.ones(len(values), dtype=bool)
    if len(values) > SUMMED:
        density = BinnedDensity(bins_of(points, level_for(h)), GAUSSIAN, h, points)
        rest = np.exp(density.log_density(values)) * points.total * h - GAUSSIAN.pdf(np.zeros(1))
        unsure = rest <= CLEAR * rest.max()
        others[~unsure] = np.log(rest[~unsure])
    others[unsure] = _log_sums_of_others(points, np.flatnonzero(unsure), h)
    return float(weights @ (others - np.log((points.total - 1) * h)))


def _log_sums_of_others(points: WeightedPoints, which: np.ndarray, h: float) -> np.ndarray:
    """The logarithm of the sum of kernels at some of the values, one row of each value left out."""
    values, weights = points.ordered
    gaps = np.concatenate([[np.inf], np.diff(values), [np.inf]])
    nearest = np.where(weights > 1, 0.0, np.minimum(gaps[:-1], gaps[1:])) / h
    reach = h * GAUSSIAN.reach(nearest, DIGITS + np.log(len(values)))
    found = np.empty(len(which))
    for at, i in enumerate(which):
        low, high = np.searchsorted(values, [values[i] - reach[i], values[i] + reach[i]], side="right")
        others = weights[low:high].copy()
        others[i - low] = max(weights[i] - 1, 0.0)
        peak = GAUSSIAN.log_pdf(nearest[i : i + 1])[0]
        # Its own kernel, which may be far above all others, has weight 0 here: held down, it cannot overflow.
        shares = np.exp(np.minimum(GAUSSIAN.log_pdf((values[i] - values[low:high]) / h) - peak, 0.0))
        found[at] = peak + np.log(shares @ others)
    return found
