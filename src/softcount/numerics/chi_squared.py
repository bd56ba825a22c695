"""How often chance passes a sum of squares."""

from __future__ import annotations

from math import erfc, exp, lgamma, log, sqrt

from softcount.numerics.late_scipy import chdtrc

FEW = 200
"""Degrees of freedom whose tail is added up: a small fit would have to load SciPy for it, which takes longer."""


def chi_squared_tail(freedom: int, value: float) -> float:
    """The probability that chi-squared with so many degrees of freedom passes the value.

    The tail of two degrees more is larger by the term (v/2)^a exp(-v/2) / gamma(a + 1); a tail of 1 is an error
    function, one of 2 an exponential.

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
