"""Families among which the rows of a column choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.special import least_share
from softcount.families.base import FAMILIES, Family
from softcount.families.binned import Histogram
from softcount.families.kernel import Kernel
from softcount.families.mixed import Mixed
from softcount.families.normal import Normal
from softcount.families.spiked import INNER, Spiked
from softcount.families.student import Student
from softcount.families.totals import Exponential
from softcount.table.schema import Kind

LARGE_SHARE = 0.1
"""Share of rows from which on one value is a spike. Among numbers of 0 or more, zero always is."""
FEW_ROWS = 50
"""If the smallest class has fewer rows than this, families with many parameters are not tried."""
FAR = 50.0
"""If the mean is this many deviations above zero, the tails of Student's t do not reach below zero."""


class NumberFacts(Struct, frozen=True):
    """Facts about the numbers of a column.

    `least` is the smallest number, `whole` whether all are whole, `rows` the size of the smallest class, and `rounding`
    the step to which numbers are rounded. `above_zero` is the mean in standard deviations, and `spike` the value that
    is a spike, or None.
    """

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
    """Return the facts of finite numbers with these weights; `rows` is the size of the smallest class."""
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
    rounding = rounding if 0 < rounding < np.inf else 1.0  # only one value, or squares that overflow
    return NumberFacts(least, bool(np.all(distinct == np.floor(distinct))), rows, rounding, above, spike)


def choices(family: Family) -> Sequence[Family]:
    """Return the families among which the rows choose; empty if nothing is left to choose."""
    (name, values), open_family = family.facts.choices, cast("Any", family)
    if not name or getattr(family, name) is not None:
        return ()
    return tuple(replace(open_family, **{name: value}) for value in values)


def candidates(facts: NumberFacts) -> list[Sequence[Family]]:
    """Return the families worth trying for a column of numbers with these facts, kind by kind.

    Families of positive numbers and of counts that are not named here are tried for such columns.
    """
    fits = {Kind.POSITIVE: facts.least > 0, Kind.COUNT: facts.countable}
    named: dict[type[Family], Sequence[Family]] = {
        Normal: (Normal(),),
        Student: (Student(),) if facts.least < 0 or facts.above_zero > FAR else (),
        # The geometric distribution fits whole numbers, without a density peak at 0.
        Exponential: (Exponential(),) if facts.least >= 0 and not facts.countable else (),
        Spiked: spikes(facts),
    }
    if facts.rows >= FEW_ROWS:
        named |= {Histogram: (Histogram("fd"), Histogram()), Kernel: (Kernel("sj"),), Mixed: choices(Mixed())}
    found = []
    for kind in FAMILIES.values():
        plain = kind()
        usual = (plain,) if fits.get(plain.facts.kind) and not plain.facts.block else ()
        found.append(named.get(kind, usual))
    return found


def spikes(facts: NumberFacts) -> Sequence[Family]:
    """Return a spike with each density that can hold the other numbers; empty if no value is a spike."""
    if facts.spike is None:
        return ()
    at_zero = facts.least == facts.spike == 0
    # A number written as 0 is between 0 and half a step, if no number is below zero.
    step = facts.rounding / 2 if at_zero else facts.rounding
    return [Spiked(of, facts.spike, step) for of in (INNER if at_zero or facts.least > 0 else ("normal",))]
