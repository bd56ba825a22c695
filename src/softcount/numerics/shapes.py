"""The shape of a gamma distribution: the equation log k - digamma(k) = c, and what hangs on it.

A gamma column's shape and half of Student's freedom are both the k that makes `rows * height(k) - k * spare` largest.
That is concave in k, so Newton steps kept between known bounds always find it, and the best k under a bound is a clip.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import cache

import numpy as np

from softcount.numerics.late_scipy import gammaln, polygamma, psi
from softcount.numerics.twofold import Twofold

FAR = 16.0
"""From here on differences of nearly equal functions are taken from their series: at 1e12 twelve digits would go."""
HALF_LOG_2PI = 0.9189385332046727
LOG_2 = Twofold(np.array(0.6931471805599453), np.array(2.3190468138462996e-17))
STEPS = 4
"""Newton steps; from the starting formula three reach the last digit for every k between 1e-3 and 1e12."""
ODD = tuple(Twofold.of(np.array(1.0)).over(Twofold.of(np.array(odd))) for odd in (7.0, 5.0, 3.0, 1.0))


def height(k: np.ndarray) -> np.ndarray:
    """k log k - k - log gamma(k) + log(2 pi) / 2, which is near log(k) / 2 for large k."""
    near, far = np.minimum(k, FAR), np.maximum(k, FAR)
    direct = near * np.log(near) - near - gammaln(near) + HALF_LOG_2PI
    r = 1.0 / (far * far)
    rest = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / far
    return np.asarray(np.where(k < FAR, direct, 0.5 * np.log(far) - rest))


def gap(k: np.ndarray) -> np.ndarray:
    """log k - digamma(k): the slope of `height`, above zero and falling, between 1 / 2k and 1 / k."""
    near, far = np.minimum(k, FAR), np.maximum(k, FAR)
    r = 1.0 / (far * far)
    series = 0.5 / far + r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))
    return np.asarray(np.where(k < FAR, np.log(near) - psi(near), series))


def bend(k: np.ndarray) -> np.ndarray:
    """trigamma(k) - 1 / k: how fast `gap` falls."""
    near, far = np.minimum(k, FAR), np.maximum(k, FAR)
    r = 1.0 / (far * far)
    series = r * (0.5 + (1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * 5 / 66)))) / far)
    return np.asarray(np.where(k < FAR, polygamma(1, near) - 1.0 / near, series))


def shape_of(c: np.ndarray) -> np.ndarray:
    """The k with `gap(k) == c`, to the last digit or so; a c of nothing or less gives a k near 1e100."""
    c = np.maximum(c, 1e-100)
    k = (3.0 - c + np.sqrt((c - 3.0) ** 2 + 24.0 * c)) / (12.0 * c)
    for _ in range(STEPS):
        here = gap(k)
        # By logarithms the equation is nearly a straight line of slope -1, from either end of k.
        k = np.clip(k * np.exp(np.log(here / c) * here / (k * bend(k))), 0.5 / c, 1.0 / c)
    return k


def log_integral(rows: np.ndarray, spare: np.ndarray, low: float = 1e-300, high: float = 1e300) -> np.ndarray:
    """log of the integral over log k, between bounds of k, of exp(rows * height(k) - k * spare).

    By Simpson's rule around the peak, or around the bound that the peak lies beyond: good to about 1e-9.
    """
    peak = np.clip(shape_of(spare / rows), max(low, 1e-12), min(high, 1e12))
    # How far it takes to fall: by its bend at the peak, by its slope at a bound.
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
    """x / mean - 1 - log(x / mean), to full precision: half the square of what they are apart where that is little."""
    d = np.minimum((x - mean) / mean, 1e300)
    s = d / (2.0 + d)
    r = s * s
    rest = 1 / 3 + r * (1 / 5 + r * (1 / 7 + r * (1 / 9 + r * (1 / 11 + r * (1 / 13 + r / 15)))))
    series = d * s - 2 * s * r * rest
    # Not log(1 + d): of an x of 1e-14 of the mean d keeps two digits.
    return np.asarray(np.where(np.abs(d) < 0.125, series, d - np.log(np.clip(x / mean, 1e-308, 1e308))))


@cache
def _logs_of_parts() -> Twofold:
    """The logarithms of 0, 1, ..., 48 over 32 in twofold; that of nothing is never asked for."""
    exact = [(Decimal(max(j, 1)) / 32).ln(Context(prec=40)) for j in range(49)]
    high = np.array([float(value) for value in exact])
    return Twofold(high, np.array([float(value - Decimal(h)) for value, h in zip(exact, high.tolist(), strict=True)]))


def log_twofold(x: np.ndarray) -> Twofold:
    """The logarithm of positive numbers to 30 digits: that of the nearest 32nd, and a short series for the rest."""
    part, power = np.frexp(np.asarray(x, dtype=np.float64))
    low = part < np.sqrt(0.5)
    part, power = np.where(low, 2.0 * part, part), power - low
    steps = np.round(32.0 * part)
    near = steps / 32.0
    z = Twofold.of(part - near).over(Twofold.of(part) + Twofold.of(near))
    square = z * z
    r = square.value  # at most 1.3e-4: terms from the fifth on are below 1e-16 of the first, so doubles do for them
    total = Twofold.of(1 / 9 + r * (1 / 11 + r * (1 / 13 + r * (1 / 15 + r / 17))))
    for share in ODD:
        total = total * square + share
    found: Twofold = z * total * 2.0 + _logs_of_parts()[steps.astype(int)] + LOG_2 * power.astype(np.float64)
    return found
