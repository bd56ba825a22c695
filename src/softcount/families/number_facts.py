"""What a column of numbers is like, as far as it decides which families are worth trying for it."""

from __future__ import annotations

import numpy as np

from softcount.numerics.rounding import least_share
from softcount.records import dataclass

LARGE_SHARE = 0.1
"""The share of rows from which on one value is a spike; zero is one, among numbers of 0 or more, where it is met."""


FEW_ROWS = 50
"""Rows of the smallest class below which no family of many parameters is tried."""


@dataclass(frozen=True, slots=True)
class NumberFacts:
    """The `least` of its numbers, whether all are `whole`, how many `rows` the smallest class has, how finely they are
    written (`rounding`), how many deviations their mean is `above_zero`, and the value that is a `spike`, or None."""

    least: float
    whole: bool
    rows: float
    rounding: float
    above_zero: float
    spike: float | None

    @property
    def countable(self) -> bool:
        """Whether they may be counts: 0, 1, 2, ..."""
        return self.whole and self.least >= 0


def facts_of_numbers(values: np.ndarray, weights: np.ndarray, rows: float) -> NumberFacts:
    """The facts of finite numbers with these weights, `rows` of them in the smallest class."""
    distinct, which = np.unique(values, return_inverse=True)
    shares = np.bincount(which, weights) / weights.sum()
    most, least = int(shares.argmax()), float(distinct[0])
    zeros = least == 0 and len(distinct) > 1
    large = len(distinct) > 2 and shares[most] >= LARGE_SHARE
    spike = 0.0 if zeros else float(distinct[most]) if large else None
    with np.errstate(over="ignore"):
        mean = np.average(values, weights=weights)
        spread = float(np.average((values - mean) ** 2, weights=weights))
    above = float(mean / np.sqrt(spread)) if 0 < spread < np.inf else 0.0
    rounding = float(np.sqrt(12.0 * least_share(values, weights).share * spread))
    rounding = rounding if 0 < rounding < np.inf else 1.0  # of one value, or of squares beyond any number
    return NumberFacts(least, bool(np.all(distinct == np.floor(distinct))), rows, rounding, above, spike)
