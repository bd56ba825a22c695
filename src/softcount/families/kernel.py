"""Kernel columns: numbers of any shape, with a kernel on every one of them."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from softcount.core.counts import Twofold
from softcount.densities.bandwidths import LARGEST, SMALLEST, bandwidth_of, checked_rule
from softcount.densities.kernels import SmoothingKernel, WeightedPoints, named_kernel
from softcount.families.base import Family, register, scalar_prior
from softcount.families.point_counts import CellsDensity, PointCounts, ends_of, place_within, round_counts, seen_points
from softcount.families.setting import How, Hyper, Params, Setting

AUTO = "auto"
FACTORS = 2.0 ** np.arange(1, -8, -1)
"""Factors of Silverman's bandwidth that `auto` tries."""
FEW_POINTS = 96
"""Points up to which cells are finest, and all pairs are compared in two classes; beyond, neighbours are joined."""
ROOT_TWO_PI = sqrt(2 * np.pi)
FINEST = 1 / 16, 1 / 8
"""Width of the cells near few points and near many, as a share of the smallest bandwidth.

Posteriors of few points then agree with plain kernel sums to 0.001.
"""
FAR = 4.0
"""Bandwidths from any point beyond which cells are wide, if there are too many cells up to `WIDEST`."""
WIDEST = 7.0
"""Bandwidths beyond which a kernel is zero in double precision."""
MOST_CELLS = 1024
BEND = 1.0
"""Largest change of the rise between neighbouring cells: beyond, the density has a step there and no slope."""
ROUNDED = 0.5
"""Smallest bandwidth, as a share of the smallest gap between points: rounded numbers are not spikes."""


@register
class Kernel(PointCounts, Struct, frozen=True):
    """Kernel density in every class: numbers of any shape.

    The density of a class is the mean of kernels on its numbers, with a bandwidth for every class. The classes must be
    known, because EM has no likelihood to maximise.

    Parameters
    ----------
    bandwidth : float, str, default='auto'
        Bandwidth in units of the data, or the name of a rule, as in `softcount.KernelDensity`. "auto" is Silverman's
        bandwidth of every class times one factor between 1/128 and 2, the one with the best leave-one-out
        classification.
    kernel : str, default='gaussian'
        Name of the kernel, as in `softcount.KernelDensity`.

    See Also
    --------
    softcount.KernelDensity : The density of columns by themselves.
    Histogram : Shares of bins.
    Mixed : A few normals in every class.

    Notes
    -----
    If no number is below zero, kernel mass below zero is reflected at zero. A prior of a rows adds a rows, half of them
    distributed as all rows together and half uniformly. The mass of the kernels is computed in at most 1,024 cells. A
    cell is an eighth of the smallest bandwidth wide (a sixteenth for up to 96 numbers), or wider if that would need
    more cells. Within a cell the logarithm of the density is linear.

    References
    ----------
    .. [1] G. H. John and P. Langley (1995). "Estimating continuous distributions in Bayesian classifiers". UAI 1995,
       338-345.
    .. [2] B. W. Silverman (1986). Density estimation for statistics and data analysis. Chapman and Hall.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"x": [0.0, 0.5, 8.0, 8.5, 4.0, 4.5, 5.0, 5.5]}
    >>> model = NaiveBayes(kinds={"x": families.Kernel(0.5)}).fit(rows, ["ends"] * 4 + ["middle"] * 4)
    >>> model.predict({"x": [0.2, 4.8, 8.1]}).tolist()
    ['ends', 'middle', 'ends']
    """

    bandwidth: Any = AUTO
    kernel: str = "gaussian"

    name = "kde"
    facts = replace(PointCounts.facts, needs_classes=True)

    def __post_init__(self) -> None:
        if self.bandwidth != AUTO:
            force_setattr(self, "bandwidth", checked_rule(self.bandwidth))
        named_kernel(self.kernel)

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        points, seen = seen_points(stats, setting)
        counts = round_counts(stats.value)
        rows, pooled = scalar_prior(prior, self, 1, setting.groups), np.maximum(stats.value, 0.0).sum(axis=0)
        least = _least(points[seen], setting.step)
        hyper = {"points": points, "least": np.array(least), "factor": np.ones(()), "whole": np.array(least)}
        hyper["beyond"] = np.array(1.0 / (pooled.sum() + 2.0))
        if not seen.any():
            return hyper | {"edges": np.zeros(1), "place": np.zeros(len(points)), "alpha": np.zeros(0)}
        hyper["whole"] = np.array(self._width(points, counts.sum(axis=0), least, least))
        if self.bandwidth == AUTO:
            factor = best_factor(points[seen], counts[:, seen], self._widths(counts, hyper), least)
            hyper["factor"] = np.array(factor)
        whole, widths = max(float(hyper["whole"] * hyper["factor"]), least), self._widths(counts, hyper)
        edges = _cells(points[seen], float(min(whole, *widths)), float(max(whole, *widths)))
        hyper |= {"edges": edges, "place": place_within(points, edges)}
        shares = self._smooth(pooled[None], hyper, np.array([whole]))[0]
        return hyper | {"alpha": rows * (shares + np.diff(edges) / (edges[-1] - edges[0])) / 2.0}

    def _widths(self, counts: np.ndarray, hyper: Hyper) -> np.ndarray:
        """Return the bandwidth of every group; a group with too few numbers has that of all of them."""
        least, whole = float(hyper["least"]), float(hyper["whole"])
        widths = np.array([self._width(hyper["points"], own, least, whole) for own in counts])
        return np.maximum(widths * hyper["factor"], least) if self.bandwidth == AUTO else widths

    def _width(self, points: np.ndarray, rows: np.ndarray, least: float, otherwise: float) -> float:
        if not isinstance(self.bandwidth, str):
            return float(self.bandwidth)
        own = WeightedPoints(points[rows > 0], rows[rows > 0])
        if len(own.values) < 2 or own.total <= 1 or not SMALLEST < own.deviation < LARGEST:
            return otherwise
        rule = "silverman" if self.bandwidth == AUTO else self.bandwidth
        return max(bandwidth_of(rule, own, named_kernel(self.kernel)), least)

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        """Estimate the shares of the cells. `map` and `mean` are the same; `ml` has no prior rows."""
        counts, edges = np.maximum(stats.value, 0.0), hyper["edges"]
        widths = self._widths(round_counts(stats.value), hyper)
        raw = self._smooth(counts, hyper, widths) * counts.sum(axis=1, keepdims=True)
        raw += 0.0 if how == "ml" else hyper["alpha"]
        total = raw.sum(axis=1, keepdims=True)
        even = np.diff(edges) / (edges[-1] - edges[0]) if len(edges) > 1 else np.zeros(0)
        shares = np.where(total > 0, raw / np.where(total > 0, total, 1.0), even)
        return self.with_cells(shares, hyper, how) | {"bandwidth": widths}

    def rises(self, params: Params) -> np.ndarray:
        """Return half the difference of the log-densities of both neighbours, for cells as wide as these."""
        shares, width = params["probability"], np.diff(params["edges"][0])
        found = np.zeros_like(shares)
        if len(width) > 2:
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = np.diff(np.log(shares), axis=1)
                bends = np.abs(np.diff(steps, axis=1))
            even = np.abs(np.diff(width)) <= 1e-6 * width[1:]
            smooth = (bends <= BEND) & even[1:] & even[:-1]
            found[:, 1:-1] = np.where(smooth, (steps[:, 1:] + steps[:, :-1]) / 2, 0.0)
        return found

    def private(self, params: Params, setting: Setting) -> Params:
        edges, points = np.asarray(params["edges"], float), np.array(setting.levels)
        return dict(params) | {"place": np.tile(place_within(points, edges[0]), (len(edges), 1))}

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        return Family.slope(self, stats, params, hyper, how)  # a share also moves the rises of its neighbours

    def _smooth(self, counts: np.ndarray, hyper: Hyper, widths: np.ndarray) -> np.ndarray:
        """Return (groups x cells) shares of the cells under a kernel on every point.

        They sum to one unless there are no points.
        """
        points, edges = hyper["points"], hyper["edges"]
        kernel, shares = named_kernel(self.kernel), np.zeros((len(counts), len(edges) - 1))
        for group, (own, h) in enumerate(zip(counts, widths, strict=True)):
            values, rows = points[own > 0], own[own > 0]
            if edges[0] >= 0:  # the mass below zero is reflected
                near = values < WIDEST * h
                values, rows = np.concatenate([values, -values[near]]), np.concatenate([rows, rows[near]])
            if len(values):
                mass = _bumps(values, rows, edges, h, kernel)
                shares[group] = mass / mass.sum()
        return shares

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the leave-one-out log-likelihood of the rows: kernels have no marginal likelihood."""
        counts, place = np.maximum(stats.value, 0.0), hyper["place"].astype(np.int64)
        if not len(hyper["alpha"]):
            return 0.0
        params, widths = self.estimate(stats, hyper, "mean"), np.diff(hyper["edges"])
        rows, weight = counts.sum(axis=1, keepdims=True), float(hyper["alpha"].sum())
        own = float(named_kernel(self.kernel).pdf(np.zeros(1))[0]) / params["bandwidth"][:, None]
        density = np.exp(CellsDensity(self, params, Setting()).score(hyper["points"]).T) * (rows + weight)
        without = np.maximum(density - own, (hyper["alpha"] / widths)[place]) / np.maximum(rows + weight - 1.0, 1e-300)
        return float((counts * np.log(np.maximum(without, 1e-300))).sum())


def _least(points: np.ndarray, step: float) -> float:
    """Return the smallest bandwidth: the effect of rounding, or of the last digits of a number."""
    if len(points) < 2:
        low, high = ends_of(points, step) if len(points) else (0.0, 1.0)
        return (high - low) / 2
    digits = 4.0 * float(np.spacing(np.abs(points[[0, -1]]).max()))
    return max(ROUNDED * max(step, float(np.diff(points).min())), digits)


def _bumps(values: np.ndarray, rows: np.ndarray, edges: np.ndarray, h: float, kernel: SmoothingKernel) -> np.ndarray:
    """Return the rows in each cell under a kernel of this width on each value; cells far from a value are skipped."""
    reach = h * min(kernel.support, WIDEST)
    first = np.maximum(np.searchsorted(edges, values - reach, side="right") - 1, 0)
    last = np.minimum(np.searchsorted(edges, values + reach), len(edges) - 1)
    span = int((last - first).max(initial=0)) + 1
    at = np.minimum(first[:, None] + np.arange(span), last[:, None])
    below = kernel.cdf((edges[at] - values[:, None]) / h)
    mass = rows[:, None] * np.diff(below, axis=1)
    return np.bincount(np.minimum(at[:, :-1], len(edges) - 2).ravel(), mass.ravel(), len(edges) - 1)


def best_factor(points: np.ndarray, counts: np.ndarray, widths: np.ndarray, least: float) -> float:
    """Return the factor of all bandwidths with the best leave-one-out classification."""
    values, rows, most = points, counts, max(32, int(FEW_POINTS * min(1.0, sqrt(2 / len(counts)))))
    if len(values) > most:  # join neighbours
        first, weight = np.unique(np.linspace(0, len(values), most, endpoint=False).astype(int)), rows.sum(axis=0)
        values = np.add.reduceat(values * weight, first) / np.add.reduceat(weight, first)
        rows = np.add.reduceat(rows, first, axis=1)
    if len(values) < 2 or len(rows) < 2:
        return 1.0
    # In units of the range of all numbers, so that squares neither underflow nor overflow.
    span = max(float(values[-1] / 2 - values[0] / 2), np.finfo(float).tiny) * 2
    apart, anywhere, found = np.square(values[:, None] / span - values / span), 1.0, []
    for factor in FACTORS:
        h = np.maximum(widths * factor, least) / span
        density = np.stack([np.exp(apart * (-0.5 / (own * own))) @ row for own, row in zip(h, rows, strict=True)])
        density /= h[:, None] * ROOT_TWO_PI
        left_out = np.maximum(density - 1.0 / (h[:, None] * ROOT_TWO_PI), 0.0) + anywhere
        others = (density + anywhere).sum(axis=0) - (density + anywhere)
        found.append(float((rows * np.log(left_out / (left_out + others))).sum()))
    return float(FACTORS[int(np.argmax(found))])


def _cells(points: np.ndarray, finest: float, widest: float) -> np.ndarray:
    """Return edges of narrow cells near the points and wide ones elsewhere; none below zero if no number is."""
    # A share of the least bandwidth may be too small for a float, and a width of zero is never wide enough.
    width, far = max(finest * FINEST[len(points) > FEW_POINTS], float(np.finfo(float).tiny)), WIDEST
    while True:
        low, high = np.floor((points - far * widest) / width), np.ceil((points + far * widest) / width)
        new = np.flatnonzero(np.concatenate([[True], low[1:] > np.maximum.accumulate(high)[:-1]]))
        ends = np.append(new[1:], len(points)) - 1
        if (np.maximum.accumulate(high)[ends] - low[new] + 1).sum() <= MOST_CELLS:
            break
        width, far = (width, FAR) if far > FAR else (width * 2.0, FAR)
    last = np.maximum.accumulate(high)[ends]
    edges = np.concatenate([np.arange(a, b + 1) for a, b in zip(low[new], last, strict=True)]) * width
    if points[0] >= 0:
        edges = np.concatenate([[0.0], edges[edges > 0]])
    return np.unique(edges)
