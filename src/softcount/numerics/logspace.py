"""Sums and ratios that would overflow or cancel, done on logarithms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

Number = float | np.ndarray

SERIES_FROM = 10.0
"""Stirling's series below is good to 1e-15 from here upwards."""

SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def log_sum_exp(a: ArrayLike, axis: int | None = None) -> Number:
    """The logarithm of the sum of exponentials along an axis; of nothing, or of all -inf, it is -inf.

    The largest term is taken out first, so nothing overflows. NaN stays NaN.

    >>> round(log_sum_exp([-1000, -1001, -3000]), 6)
    -999.686738
    >>> log_sum_exp([])
    -inf
    """
    terms = np.asarray(a, dtype=float)
    top = _top(terms, axis)
    total = np.exp(terms - top).sum(axis=axis)
    with np.errstate(divide="ignore"):
        answer = np.log(total) + top.reshape(total.shape)
    return plain(answer)


def times_log(shares: np.ndarray) -> np.ndarray:
    """Each number of 0 or more times its own logarithm; nought for nought.

    >>> times_log(np.array([0.0, 1.0, 2.0])).round(6)
    array([0.      , 0.      , 1.386294])
    """
    return np.asarray(shares * np.log(np.where(shares == 0, 1.0, shares)))


def softmax_rows(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row's shares of the groups, and the logarithm of what they were shares of.

    `joint` is rows x groups of finite numbers or -inf. A row that no group can have made (all -inf) gets shares
    of zero and evidence -inf, for the caller to report. NaN stays NaN.

    >>> posterior, evidence = softmax_rows(np.log([[0.3, 0.1], [0.0002, 0.0002]]))
    >>> posterior.round(6).tolist(), np.exp(evidence).round(6).tolist()
    ([[0.75, 0.25], [0.5, 0.5]], [0.4, 0.0004])
    """
    joint = np.asarray(joint, dtype=float)
    top = _top(joint, 1)
    posterior = np.exp(joint - top)
    total = posterior.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        evidence = (np.log(total) + top)[:, 0]
    posterior /= np.where(total == 0, 1.0, total)
    return posterior, evidence


def _top(terms: np.ndarray, axis: int | None) -> np.ndarray:
    """The largest term, kept as an axis of one; 0 where it is not finite, so that subtracting it is harmless."""
    top = terms.max(axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0.0)


def log_rising(a: ArrayLike, n: ArrayLike) -> Number:
    """log(gamma(a + n) / gamma(a)): the product a (a + 1) ... (a + n - 1), also for n that is not whole.

    The evidence of counts is made of these. Subtracting two log-gammas loses eight digits at a = 1e8; here the
    error stays near 1e-16 of the result. From a = 0 it is -inf, or 0 when n is 0.

    >>> round(log_rising(2.0, 3), 12) == round(float(np.log(2 * 3 * 4)), 12)
    True
    >>> log_rising(0.0, 0.0), log_rising(0.0, 1.0)
    (0.0, -inf)
    """
    from scipy.special import gammaln

    start, steps = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(n, dtype=float))
    with np.errstate(invalid="ignore"):  # inf - inf where both are zero, which is 0 below
        small = gammaln(start + steps) - gammaln(start)
    if (start < SERIES_FROM).all():
        return plain(np.where(steps == 0, 0.0, small))
    far = np.maximum(start, SERIES_FROM)
    large = steps * np.log(far) + (far + steps - 0.5) * np.log1p(steps / far) - steps
    large = large + stirling_rest(far + steps) - stirling_rest(far)
    return plain(np.where(steps == 0, 0.0, np.where(start < SERIES_FROM, small, large)))


def stirling_rest(x: np.ndarray) -> np.ndarray:
    """What log gamma(x) has beyond (x - 1/2) log x - x + log(2 pi) / 2, for x of 10 or more."""
    square = 1.0 / (x * x)
    rest = np.zeros_like(x)
    for term in reversed(SERIES):
        rest = rest * square + term
    found: np.ndarray = rest / x
    return found


def plain(values: ArrayLike) -> Number:
    """A float for a single number, the array itself otherwise: scalars in give scalars out."""
    array = np.asarray(values)
    return float(array) if array.ndim == 0 else array
