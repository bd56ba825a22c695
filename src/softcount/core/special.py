"""Numerical functions that SciPy lacks or computes with too few digits: log-sums, roots, gamma shapes, rounding."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from functools import cache
from math import copysign, erfc, exp, lgamma, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softcount.core.counts import Twofold
from softcount.core.lazy import chdtrc, gammaln, lazy_function, polygamma, psi

Number = float | np.ndarray

HALF_LOG_2PI = 0.9189385332046727
SERIES_FROM = 10.0
"""Stirling's series below is accurate to 1e-15 from here upwards."""
SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def log_of(x: ArrayLike) -> np.ndarray:
    """Return natural logarithms, -inf for 0 without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))


def log_ratio(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the difference of two logs; 0 if both are infinite."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(one - other, nan=0.0, posinf=np.inf, neginf=-np.inf))


def log_sum_exp(a: ArrayLike, axis: int | None = None) -> Number:
    """Return the logarithm of the sum of exponentials along an axis; -inf for no terms, or if all are -inf.

    The largest term is subtracted first, so that no term overflows. NaN stays NaN.

    >>> round(log_sum_exp([-1000, -1001, -3000]), 6)
    -999.686738
    >>> log_sum_exp([])
    -inf
    """
    terms = np.asarray(a, dtype=float)
    top = _top(terms, axis)
    total = np.exp(terms - top).sum(axis=axis)
    answer = log_of(total) + top.reshape(total.shape)
    return plain(answer)


def times_log(shares: np.ndarray) -> np.ndarray:
    """Return x log(x) for numbers of 0 or more; 0 for 0.

    >>> times_log(np.array([0.0, 1.0, 2.0])).round(6)
    array([0.      , 0.      , 1.386294])
    """
    return np.asarray(shares * np.log(np.where(shares == 0, 1.0, shares)))


def softmax_rows(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior of the groups in each row, and the logarithm of each row's sum.

    `joint` has shape (rows, groups) and holds finite numbers or -inf. A row that is impossible in all groups (all -inf)
    gets posteriors of 0 and a log-sum of -inf, which the caller reports. NaN stays NaN.

    >>> posterior, evidence = softmax_rows(np.log([[0.3, 0.1], [0.0002, 0.0002]]))
    >>> posterior.round(6).tolist(), np.exp(evidence).round(6).tolist()
    ([[0.75, 0.25], [0.5, 0.5]], [0.4, 0.0004])
    """
    joint = np.asarray(joint, dtype=float)
    top = _top(joint, 1)
    posterior = np.exp(joint - top)
    total = posterior.sum(axis=1, keepdims=True)
    evidence = (log_of(total) + top)[:, 0]
    posterior /= np.where(total == 0, 1.0, total)
    return posterior, evidence


def _top(terms: np.ndarray, axis: int | None) -> np.ndarray:
    """Return the maximum along an axis, with that axis kept; 0 if it is not finite, so that it can be subtracted."""
    top = terms.max(axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0.0)


def log_rising(a: ArrayLike, n: ArrayLike) -> Number:
    """Return log(gamma(a + n) / gamma(a)), the log of a (a + 1) ... (a + n - 1), also for fractional n.

    The marginal likelihood of counts is a sum of these. Subtracting two log-gammas loses eight digits at a = 1e8; here
    the relative error stays near 1e-16. For a = 0 the result is -inf, or 0 if n is 0.

    >>> round(log_rising(2.0, 3), 12) == round(float(np.log(2 * 3 * 4)), 12)
    True
    >>> log_rising(0.0, 0.0), log_rising(0.0, 1.0)
    (0.0, -inf)
    """
    start, steps = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(n, dtype=float))
    with np.errstate(invalid="ignore"):  # inf - inf if both are zero, replaced by 0 below
        small = gammaln(start + steps) - gammaln(start)
    if (start < SERIES_FROM).all():
        return plain(np.where(steps == 0, 0.0, small))
    far = np.maximum(start, SERIES_FROM)
    large = steps * np.log(far) + (far + steps - 0.5) * np.log1p(steps / far) - steps
    large = large + stirling_rest(far + steps) - stirling_rest(far)
    return plain(np.where(steps == 0, 0.0, np.where(start < SERIES_FROM, small, large)))


def log_student(squares: ArrayLike, freedom: ArrayLike, columns: Any = 1, log_scale: ArrayLike = 0.0) -> np.ndarray:
    """Return the log-density of Student's t over this many columns; of a normal if the freedom is infinite.

    `squares` are squared distances from its centre in units of its scale, and `log_scale` is the log of that scale (of
    several columns, half the log-determinant).

    >>> log_student([0.0, 1.0], 1.0).round(4)  # Cauchy's density, 1 / pi and 1 / (2 pi)
    array([-1.1447, -1.8379])
    """
    endless = np.isinf(freedom)
    nu = np.where(endless, 1.0, freedom)
    top = log_rising(nu / 2, columns / 2) - 0.5 * columns * np.log(nu * np.pi)
    tail = 0.5 * (nu + columns) * np.log1p(squares / nu)
    if endless.any():
        top = np.where(endless, -columns * HALF_LOG_2PI, top)
        tail = np.where(endless, 0.5 * np.asarray(squares), tail)
    return np.asarray(top - log_scale - tail)


def log_negative_binomial(total: Any, shape: Any, rate: Any, rows: Any = 1.0) -> np.ndarray:
    """Return the log-probability of Poisson counts with this total over rows, plus the sum of log(count!).

    Their common rate has the distribution Gamma(shape, rate).

    >>> round(float(np.exp(log_negative_binomial(2.0, 1.0, 1.0))), 12)  # a count of 2 has 1 / 8, times 2!
    0.25
    """
    return np.asarray(log_rising(shape, total) - shape * np.log1p(rows / rate) - total * np.log(rate + rows))


def log_dirichlet_multinomial(counts: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return the log-probability of draws with these counts along the last axis, in the order they came.

    Their probabilities have the distribution Dirichlet(alpha).

    >>> round(float(np.exp(log_dirichlet_multinomial(np.array([1.0, 1.0, 0.0]), np.ones(3)))), 12)  # 1/3 * 1/4
    0.083333333333
    """
    alpha = np.broadcast_to(alpha, np.broadcast_shapes(np.shape(alpha), np.shape(counts)))
    met = np.sum(log_rising(alpha, counts), axis=-1)
    return np.asarray(met - log_rising(alpha.sum(axis=-1), np.sum(counts, axis=-1)))


def stirling_rest(x: np.ndarray) -> np.ndarray:
    """Return log gamma(x) minus (x - 1/2) log x - x + log(2 pi) / 2, for x of 10 or more."""
    square = 1.0 / (x * x)
    rest = np.zeros_like(x)
    for term in reversed(SERIES):
        rest = rest * square + term
    found: np.ndarray = rest / x
    return found


def plain(values: ArrayLike) -> Number:
    """Return a float for a 0-dimensional array, else the array."""
    array = np.asarray(values)
    return float(array) if array.ndim == 0 else array


# -- distribution functions of a few numbers without SciPy, which takes 0.15 s to load

FEW_NUMBERS = 256
"""Arrays up to this size are computed in plain Python."""
FEW_STEPS = 500.0
"""Rates up to which the terms of a Poisson distribution are added up."""
HALF_ROOT = sqrt(0.5)
many_ndtr = lazy_function("scipy.special", "ndtr")
many_pdtr = lazy_function("scipy.special", "pdtr")


def ndtr(z: Any) -> Any:
    """Return the standard normal distribution function, without loading SciPy (0.15 s) for a few numbers.

    >>> ndtr(0.0), ndtr(np.array([-1.0, 30.0])).round(4).tolist()
    (0.5, [0.1587, 1.0])
    """
    values = np.asarray(z, dtype=np.float64)
    if values.size > FEW_NUMBERS:
        return many_ndtr(z)
    found = [0.5 * erfc(-value * HALF_ROOT) for value in values.ravel().tolist()]
    return np.array(found).reshape(values.shape) if values.ndim else found[0]


def pdtr(k: float, rate: np.ndarray) -> np.ndarray:
    """Return the Poisson probabilities of at most k (a whole number), without loading SciPy for a few rates.

    >>> pdtr(2.0, np.array([1.0, 4.0])).round(4)
    array([0.9197, 0.2381])
    """
    most = float(np.max(rate, initial=0.0))
    if np.size(rate) > FEW_NUMBERS or not most <= FEW_STEPS:
        return np.asarray(many_pdtr(k, rate))
    if k > most + 40.0 * sqrt(most) + 100.0:
        return np.ones(np.shape(rate))
    steps = np.arange(1.0, k + 1.0)
    logs = np.cumsum(log_of(rate)[..., None] - log_of(steps), axis=-1)
    return np.asarray(np.minimum((np.exp(logs).sum(axis=-1) + 1.0) * np.exp(-rate), 1.0))


# -- roots of functions

MOST_STEPS = 200
EPSILON = 2.0**-52


def brent_root(crosses: Callable[[float], float], low: float, high: float, close: float) -> float:
    """Return a root of a function with different signs at the two ends, to within `close`.

    Brent's method as in R's `uniroot`: with the same `close` it stops at the same number. SciPy takes half a second to
    load.

    >>> round(brent_root(lambda x: x**3 - 2.0, 0.0, 4.0, 1e-12), 9)
    1.25992105
    """
    before, best, other = low, high, low
    at_before, at_best, at_other = crosses(low), crosses(high), crosses(low)
    for _ in range(MOST_STEPS):
        moved = best - before
        if abs(at_other) < abs(at_best):
            before, best, other = best, other, best
            at_before, at_best, at_other = at_best, at_other, at_best
        enough = 2 * EPSILON * abs(best) + 0.5 * close
        step = 0.5 * (other - best)
        if abs(step) <= enough or at_best == 0:
            break
        if abs(moved) >= enough and abs(at_before) > abs(at_best):
            # The step of a line or an inverse parabola if it is safe, else the bisection.
            across, ratio = other - best, at_best / at_before
            if before == other:
                top, below = across * ratio, 1 - ratio
            else:
                q, r = at_before / at_other, at_best / at_other
                top = ratio * (across * q * (q - r) - (best - before) * (r - 1))
                below = (q - 1) * (r - 1) * (ratio - 1)
            top, below = (top, -below) if top > 0 else (-top, below)
            if top < 0.75 * across * below - abs(enough * below) / 2 and top < abs(moved * below / 2):
                step = top / below
        before, at_before = best, at_best
        best += step if abs(step) >= enough else copysign(enough, step)
        at_best = crosses(best)
        if (at_best > 0) == (at_other > 0):
            other, at_other = before, at_before
    return best


# -- the chi-squared distribution

FEW = 200
"""Degrees of freedom up to which the tail is summed: loading SciPy would take longer than a small fit."""


def chi_squared_tail(freedom: int, value: float) -> float:
    """Return the probability that chi-squared with this many degrees of freedom exceeds the value.

    The tail of two degrees more is larger by the term (v/2)^a exp(-v/2) / gamma(a + 1). The tail of one degree is an
    error function, that of two an exponential.

    >>> chi_squared_tail(1, 3.841458820694124), chi_squared_tail(4, 9.487729036781154)
    (0.05..., 0.05...)
    """
    if value <= 0.0:
        return 1.0
    if freedom > FEW:
        return float(chdtrc(freedom, value))
    half, odd = value / 2, freedom % 2
    terms = [exp(a * log(half) - half - lgamma(a + 1)) for a in (k + odd / 2 for k in range(freedom // 2))]
    return min(1.0, sum(terms) + (erfc(sqrt(half)) if odd else 0.0))


# -- rounding of numbers and the variance floor of a density

NARROW = 1e-6
"""Variance floor as a share of the column's variance, or of the squared typical gap of its values if that is less."""
COARSE = 1e-2
"""Largest variance floor due to rounding, as a share of the column's variance."""


class ColumnFloor(NamedTuple):
    """Variance floor of a group as a share of the column's variance, and whether the rounding of the column sets it."""

    share: float
    rounded: bool = False


def least_share(values: np.ndarray, weights: np.ndarray) -> ColumnFloor:
    """Return the variance floor of a group, from the spread of the column's values and the gaps between them.

    Values rounded to 0.1 have no deviations below 0.1 / sqrt(12). If values are not rounded, the floor is a thousandth
    of the deviation they would have if all lay as close together as most do. So groups a million deviations apart keep
    their deviations; a thousandth of the column's deviation would blur them.
    """
    ordered = np.sort(values)
    gaps = ordered[1:] - ordered[:-1]
    gaps = np.sort(gaps[gaps > 0])
    if not len(gaps):
        return ColumnFloor(NARROW, rounded=True)  # one distinct value has no gaps
    top, mass = ordered[-1] - ordered[0], weights.sum()
    gaps /= top
    centred = (values - ordered[0]) / top
    off = centred - (centred * weights).sum() / mass
    spread = (off * off * weights).sum() / mass
    half = len(gaps) // 2
    middle = gaps[half] if len(gaps) % 2 else 0.5 * (gaps[half - 1] + gaps[half])
    near = (0.25 * middle * (len(gaps) + 1)) ** 2
    rounding = min(gaps[0] ** 2 / 12, COARSE * spread)
    narrow = NARROW * min(spread, near)
    return ColumnFloor(float(max(narrow, rounding) / spread), bool(rounding > narrow))


# -- inverses of triangular matrices

SMALL = 8
"""Number of columns up to which LAPACK's general inverse is as fast."""
below = cache(np.tri)


def inverse_of_lower(factors: np.ndarray) -> np.ndarray:
    """Invert lower triangular matrices (..., d, d) by halves, in a quarter of the time of a general inverse at d = 60.

    >>> inverse_of_lower(np.array([[2.0, 0.0], [1.0, 4.0]]))
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])
    """
    d = factors.shape[-1]
    if d <= SMALL:
        return np.asarray(np.linalg.inv(factors) * below(d))
    half = d // 2
    found = np.zeros_like(factors)
    first = found[..., :half, :half] = inverse_of_lower(factors[..., :half, :half])
    second = found[..., half:, half:] = inverse_of_lower(factors[..., half:, half:])
    found[..., half:, :half] = -(second @ (factors[..., half:, :half] @ first))
    return found


# -- hashing of numbers

STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Hash 64-bit numbers with the finaliser of SplitMix64. Different numbers have different hashes.

    >>> mixed(np.array([1, 2], dtype=np.uint64)).tolist()
    [6238072747940578789, 15839785061582574730]
    """
    with np.errstate(over="ignore"):
        for shift, factor in STEPS:
            numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(numbers ^ (numbers >> np.uint64(31)))


# -- the shape of a gamma distribution: the equation log k - digamma(k) = c

FAR = 16.0
"""From here on, differences of nearly equal functions come from their series: at 1e12, twelve digits would be lost."""
HALF_LOG_2PI = 0.9189385332046727
LOG_2 = Twofold(np.array(0.6931471805599453), np.array(2.3190468138462996e-17))
SHAPE_STEPS = 4
"""Newton steps. From the initial formula, three reach the last digit for every k between 1e-3 and 1e12."""
ODD = tuple(Twofold.of(np.array(1.0)).over(Twofold.of(np.array(odd))) for odd in (7.0, 5.0, 3.0, 1.0))


def height(k: np.ndarray) -> np.ndarray:
    """Return k log k - k - log gamma(k) + log(2 pi) / 2, which is near log(k) / 2 for large k."""
    near, far = np.minimum(k, FAR), np.maximum(k, FAR)
    direct = near * np.log(near) - near - gammaln(near) + HALF_LOG_2PI
    r = 1.0 / (far * far)
    rest = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / far
    return np.asarray(np.where(k < FAR, direct, 0.5 * np.log(far) - rest))


def gap(k: np.ndarray) -> np.ndarray:
    """Return log k - digamma(k), the derivative of `height`: positive, decreasing, between 1 / 2k and 1 / k."""
    near, far = np.minimum(k, FAR), np.maximum(k, FAR)
    r = 1.0 / (far * far)
    series = 0.5 / far + r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))
    return np.asarray(np.where(k < FAR, np.log(near) - psi(near), series))


def bend(k: np.ndarray) -> np.ndarray:
    """Return trigamma(k) - 1 / k, minus the derivative of `gap`."""
    near, far = np.minimum(k, FAR), np.maximum(k, FAR)
    r = 1.0 / (far * far)
    series = r * (0.5 + (1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * 5 / 66)))) / far)
    return np.asarray(np.where(k < FAR, polygamma(1, near) - 1.0 / near, series))


def shape_of(c: np.ndarray) -> np.ndarray:
    """Return the k with `gap(k) == c`, to about the last digit. A c of 0 or less gives a k near 1e100."""
    c = np.maximum(c, 1e-100)
    k = (3.0 - c + np.sqrt((c - 3.0) ** 2 + 24.0 * c)) / (12.0 * c)
    for _ in range(SHAPE_STEPS):
        here = gap(k)
        # On logarithmic axes the equation is nearly a straight line of slope -1 at both ends.
        k = np.clip(k * np.exp(np.log(here / c) * here / (k * bend(k))), 0.5 / c, 1.0 / c)
    return k


def log_integral(rows: np.ndarray, spare: np.ndarray, low: float = 1e-300, high: float = 1e300) -> np.ndarray:
    """Return the log of the integral over log k, between bounds of k, of exp(rows * height(k) - k * spare).

    Simpson's rule around the peak, or around the bound that the peak lies beyond; accurate to about 1e-9.
    """
    peak = np.clip(shape_of(spare / rows), max(low, 1e-12), min(high, 1e12))
    # Rate of decrease: from the curvature at the peak, or from the slope at a bound.
    falls = np.hypot(peak * np.sqrt(rows * bend(peak)), peak * (rows * gap(peak) - spare))
    left, right = np.log(peak) - 30.0 / falls, np.log(peak) + 30.0 / falls
    at = np.linspace(np.maximum(left, np.log(low)), np.minimum(right, np.log(high)), 1025)
    k = np.exp(at)
    logs = rows * height(k) - k * spare
    top = logs.max(axis=0)
    share = np.exp(logs - top)
    fine, coarse = np.trapezoid(share, at, axis=0), np.trapezoid(share[::2], at[::2], axis=0)
    found: np.ndarray = top + np.log((4.0 * fine - coarse) / 3.0)
    return found


def excess(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return x / mean - 1 - log(x / mean) to full precision.

    For small relative differences this is about half their square.
    """
    d = np.minimum((x - mean) / mean, 1e300)
    s = d / (2.0 + d)
    r = s * s
    rest = 1 / 3 + r * (1 / 5 + r * (1 / 7 + r * (1 / 9 + r * (1 / 11 + r * (1 / 13 + r / 15)))))
    series = d * s - 2 * s * r * rest
    # Not log(1 + d): if x is 1e-14 of the mean, d keeps only two digits.
    return np.asarray(np.where(np.abs(d) < 0.125, series, d - np.log(np.clip(x / mean, 1e-308, 1e308))))


@cache
def _logs_of_parts() -> Twofold:
    """Return the logarithms of j / 32 for j = 0 to 48 in twofold; that of 0 is never used."""
    exact = [(Decimal(max(j, 1)) / 32).ln(Context(prec=40)) for j in range(49)]
    high = np.array([float(value) for value in exact])
    return Twofold(high, np.array([float(value - Decimal(h)) for value, h in zip(exact, high.tolist(), strict=True)]))


def log_twofold(x: np.ndarray) -> Twofold:
    """Return the logarithm of positive numbers to 30 digits: that of the nearest 32nd plus a short series."""
    part, power = np.frexp(np.asarray(x, dtype=np.float64))
    low = part < np.sqrt(0.5)
    part, power = np.where(low, 2.0 * part, part), power - low
    steps = np.round(32.0 * part)
    near = steps / 32.0
    z = Twofold.of(part - near).over(Twofold.of(part) + Twofold.of(near))
    square = z * z
    r = square.value  # at most 1.3e-4: from the fifth term on, double precision is enough
    total = Twofold.of(1 / 9 + r * (1 / 11 + r * (1 / 13 + r * (1 / 15 + r / 17))))
    for share in ODD:
        total = total * square + share
    found: Twofold = z * total * 2.0 + _logs_of_parts()[steps.astype(int)] + LOG_2 * power.astype(np.float64)
    return found
