"""Bandwidth selection: Silverman, ISJ, and leave-one-out likelihood."""

from __future__ import annotations

from collections.abc import Callable
from math import gamma, pi, sqrt

import numpy as np
from msgspec import Struct

from softcount.core.special import brent_root
from softcount.densities.density import BinnedDensity, bins_of, level_for
from softcount.densities.kernels import DIGITS, KERNELS, SmoothingKernel, WeightedPoints
from softcount.errors import DataError

SUMMED = 4096
"""Up to this many distinct values, sums are computed directly, without bins."""
CLEAR = 1e-3
"""Where the rest exceeds this share of its peak, a row's own kernel can be subtracted from the density of all rows."""

GAUSSIAN = KERNELS["gaussian"]


def leave_one_out(points: WeightedPoints, h: float) -> float:
    """Return the log-likelihood of the rows, each under a Gaussian kernel density of the others.

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
    """Return the log of the sum of kernels at the values `which`, with one row of each value left out."""
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
        # The value's own kernel may be far above all others. Its weight here is 0; the minimum avoids overflow.
        shares = np.exp(np.minimum(GAUSSIAN.log_pdf((values[i] - values[low:high]) / h) - peak, 0.0))
        found[at] = peak + np.log(shares @ others)
    return found


# Bandwidth rules, in the units of the data and for a Gaussian kernel.

PAIR_BINS = 1000
"""Bins of R's pair distances. More are used if they would be wider than a hundredth of the widest bandwidth tried."""
MOST_BINS = 1 << 20
ISJ_BINS = 1 << 14
SMALLEST, LARGEST = 1e-290, 1e290
"""Standard deviations between which squares of ratios neither underflow nor overflow."""
UNSOLVED = "the values are too few or too rounded for the rule of Sheather and Jones: use bandwidth='isj'."


def bandwidth_of(rule: object, points: WeightedPoints, kernel: SmoothingKernel, columns: int = 1) -> float:
    """Return the bandwidth for these points, given as a number or as the name of a rule.

    A number is returned as is. A rule computes the bandwidth for a Gaussian kernel; for another kernel it is converted
    to the bandwidth with the same amount of smoothing (from roughness and variance of the kernel).

    >>> bandwidth_of("scott", WeightedPoints(np.arange(32.0)), KERNELS["gaussian"])
    4.69041575982343
    """
    rule = checked_rule(rule)
    if not isinstance(rule, str):
        return rule
    points.refuse_no_spread(f"bandwidth={rule!r} cannot choose one: give the bandwidth as a number")
    if not SMALLEST < points.deviation < LARGEST:
        raise DataError(f"the values lie too close together or too far apart for bandwidth={rule!r}: give a number.")
    return float(RULES[rule](points, columns)) * kernel.canonical / KERNELS["gaussian"].canonical


def checked_rule(given: object) -> float | str:
    """Validate a bandwidth: a number above 0, or the name of a rule."""
    if isinstance(given, str):
        if given not in RULES:
            raise DataError(f"there is no bandwidth rule {given!r}. Give a number, or one of: {', '.join(RULES)}.")
        return given
    number = isinstance(given, (int, float, np.number)) and not isinstance(given, bool)
    if not number or not 0 < float(given) < np.inf:  # type: ignore[arg-type]
        raise DataError(
            f"bandwidth must be a number above 0 in the data's units, or the name of a rule, not {given!r}."
        )
    return float(given)  # type: ignore[arg-type]


# -- rules of thumb


def scott(points: WeightedPoints, columns: int = 1) -> float:
    """Scott's rule, SciPy's default: nearly optimal for a normal density."""
    return float(points.deviation * points.total ** (-1 / (columns + 4)))


def silverman(points: WeightedPoints, columns: int = 1) -> float:
    """R's `nrd0`: 0.9 times the lesser of standard deviation and interquartile range / 1.34, times n^(-1/5)."""
    factor = 0.9 if columns == 1 else (4 / (columns + 2)) ** (1 / (columns + 4))
    return float(factor * _spread(points, 1.34) * points.total ** (-1 / (columns + 4)))


def _spread(points: WeightedPoints, quartiles: float) -> float:
    """Return the lesser of deviation and interquartile range / `quartiles`; the deviation if that range is 0."""
    return min(points.deviation, points.middle_half / quartiles or points.deviation)


# -- rules that sum over pairs of rows, binned by distance


class Pairs(Struct, frozen=True):
    """Number of pairs of rows at each distance. Sums over all pairs estimate the roughness of a density."""

    distances: np.ndarray
    counts: np.ndarray
    rows: float

    @staticmethod
    def of(points: WeightedPoints, widest: float) -> Pairs:
        """Count all pairs by the distance between their bins."""
        values, weights = points.ordered
        span = (values[-1] - values[0]) * 1.01
        bins = int(min(PAIR_BINS << 7, PAIR_BINS * 2.0 ** max(0, np.ceil(np.log2(100 * span / (PAIR_BINS * widest))))))
        width = span / bins
        places = np.trunc(values / width).astype(np.int64)  # towards 0, as R does
        held = np.bincount(places - places[0], weights)
        spectrum = np.fft.rfft(held, 2 * len(held))
        counts = np.fft.irfft(spectrum * spectrum.conj())[: len(held)]
        counts[0] = (counts[0] - points.total) / 2  # a row makes no pair with itself
        return Pairs(np.arange(len(held)) * width, counts, points.total)

    def curvature(self, h: float) -> float:
        """Estimate the integral of the density times its fourth derivative, with bandwidth `h`."""
        u = (self.distances / h) ** 2
        total = 2 * (self.counts * np.exp(-u / 2) * ((u - 6) * u + 3)).sum() + 3 * self.rows
        return float(total / (self.rows * (self.rows - 1) * h**5 * sqrt(2 * pi)))

    def steepness(self, h: float) -> float:
        """Estimate minus the integral of the density times its sixth derivative, with bandwidth `h`."""
        u = (self.distances / h) ** 2
        total = 2 * (self.counts * np.exp(-u / 2) * (((u - 15) * u + 45) * u - 15)).sum() - 15 * self.rows
        return float(-total / (self.rows * (self.rows - 1) * h**7 * sqrt(2 * pi)))

    def unbiased_loss(self, h: float) -> float:
        """Estimate the integrated squared error of the density by leave-one-out, up to a constant."""
        u = (self.distances / h) ** 2
        total = (self.counts * (np.exp(-u / 4) - sqrt(8) * np.exp(-u / 2))).sum()
        return float((0.5 + total / self.rows) / (self.rows * h * sqrt(pi)))


def sheather_jones(points: WeightedPoints, columns: int = 1) -> float:
    """R's `bw.SJ` (solve the equation), with R's tolerance: a tenth of the smallest bandwidth tried."""
    pairs, spread, widest = _jones_pairs(points)
    n = pairs.rows
    steep = pairs.steepness(1.23 * spread * n ** (-1 / 9))
    factor = 1.357 * (_positive(pairs.curvature(1.24 * spread * n ** (-1 / 7)) / steep)) ** (1 / 7)

    def difference(h: float) -> float:
        return float((0.5 / (sqrt(pi) * n * _positive(pairs.curvature(factor * h ** (5 / 7))))) ** 0.2 - h)

    low, high = 0.1 * widest, widest
    for _ in range(99):
        if difference(low) * difference(high) <= 0:
            return brent_root(difference, low, high, 0.1 * low)
        low, high = low / 1.2, high * 1.2
    raise DataError(UNSOLVED)


def direct_plug_in(points: WeightedPoints, columns: int = 1) -> float:
    """R's `bw.SJ` with method "dpi": the curvature is plugged in, in two steps."""
    pairs, spread, _ = _jones_pairs(points)
    n = pairs.rows
    steep = _positive(pairs.steepness(1.23 * spread * n ** (-1 / 9)))
    return float((0.5 / (sqrt(pi) * n * _positive(pairs.curvature((2.394 / (n * steep)) ** (1 / 7))))) ** 0.2)


def _jones_pairs(points: WeightedPoints) -> tuple[Pairs, float, float]:
    spread = _spread(points, 1.349)
    widest = 1.144 * spread * points.total**-0.2
    return Pairs.of(points, widest), spread, widest


def _positive(estimate: float) -> float:
    """Raise an error if an estimate is not positive: then the values are too few or too rounded for these rules."""
    if not estimate > 0:
        raise DataError(UNSOLVED)
    return estimate


def unbiased(points: WeightedPoints, columns: int = 1) -> float:
    """R's `bw.ucv`: least squares cross-validation. If necessary, it searches smaller bandwidths than R does."""
    from scipy.optimize import minimize_scalar

    high = 1.144 * points.deviation * points.total**-0.2
    least = 0.01 * high  # equal rows let the loss fall without bound
    while True:
        low, pairs = 0.1 * high, Pairs.of(points, high)
        options = {"xatol": 0.1 * low}
        found = float(minimize_scalar(pairs.unbiased_loss, bounds=(low, high), method="bounded", options=options).x)
        if found > 1.2 * low or low < least:
            return found
        high = 2 * low


# -- Botev's rule


def improved_sheather_jones(points: WeightedPoints, columns: int = 1) -> float:
    """Botev's fixed point. It assumes no normal reference density, so several modes are handled well.

    The number of rows is at most the number of distinct values: rounding makes rows equal, and equal rows carry no
    information about the gaps between values. If there is no fixed point, return `silverman`.
    """
    values, weights = points.ordered
    reference = silverman(points)
    span = 2 * (values[-1] - values[0])
    bins = int(min(MOST_BINS, ISJ_BINS * 2.0 ** max(0, np.ceil(np.log2(32 * span / (ISJ_BINS * reference))))))
    rows = min(points.total, float(len(values)))
    squares = _spectrum(values, weights, span, bins)
    highest = (reference * 4 / span) ** 2
    times = highest * np.logspace(-7, 0, 36)
    signs = [_excess(t, rows, squares) for t in times]
    for low, high, before, after in zip(times, times[1:], signs, signs[1:], strict=False):
        if before < 0 <= after:
            root = brent_root(lambda t: _excess(t, rows, squares), low, high, 1e-12 * high)
            return float(np.sqrt(root) * span)
    return reference


def _spectrum(values: np.ndarray, weights: np.ndarray, span: float, bins: int) -> np.ndarray:
    """Return the squared cosine coefficients of the binned values, without the first."""
    from scipy.fft import dct

    place = (values - values[0] + span / 4) / span * bins - 0.5
    cell = np.floor(place).astype(np.int64)
    after = place - cell
    held = np.bincount(cell, weights * (1 - after), bins) + np.bincount(cell + 1, weights * after, bins)
    return np.asarray((dct(held / weights.sum())[1:] / 2) ** 2)


def _excess(time: float, rows: float, squares: np.ndarray) -> float:
    """Return a squared bandwidth minus the value that the fixed-point equation assigns to it."""
    needed = time
    for order in range(7, 1, -1):
        # Terms below exp(-100) of the largest add nothing to the sum.
        kept = min(len(squares), int(sqrt(100 + order * 20) / (pi * sqrt(needed))) + 2)
        numbers = np.arange(1, kept + 1, dtype=np.float64) ** 2
        terms = np.exp(order * np.log(numbers) - numbers * (pi**2 * needed))
        total = float(2 * pi ** (2 * order) * (terms * squares[:kept]).sum())
        if not 0 < total < np.inf:
            return time
        if order > 2:
            odd = 2 ** (order - 1) * gamma(order - 0.5) / sqrt(pi)  # 1 * 3 * ... * (2 order - 3)
            constant = (1 + 0.5 ** (order - 0.5)) / 3
            needed = (2 * constant * odd / sqrt(2 * pi) / (rows * total)) ** (2 / (2 * order + 1))
    return float(time - (2 * rows * sqrt(pi) * total) ** -0.4)


# -- likelihood


def likeliest(points: WeightedPoints, columns: int = 1) -> float:
    from scipy.optimize import minimize_scalar

    reference = np.log(silverman(points))
    found = minimize_scalar(
        lambda log_h: -leave_one_out(points, float(np.exp(log_h))),
        bounds=(reference - 4, reference + 2), method="bounded", options={"xatol": 1e-4},
    )  # fmt: skip
    return float(np.exp(found.x))


RULES: dict[str, Callable[[WeightedPoints, int], float]] = {
    "scott": scott, "silverman": silverman, "isj": improved_sheather_jones, "sj": sheather_jones,
    "sj-dpi": direct_plug_in, "ucv": unbiased, "cv": likeliest,
}  # fmt: skip
