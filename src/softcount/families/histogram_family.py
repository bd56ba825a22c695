"""Histogram columns: numbers of any shape, in bins that all groups share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.densities.histogram_edges import checked_bins, edges_of
from softcount.densities.weighted_points import WeightedPoints
from softcount.families.base import Family, register
from softcount.families.binned_counts import BinnedCounts
from softcount.families.examples import Cells, example
from softcount.families.number_facts import FEW_ROWS, NumberFacts
from softcount.families.point_counts import between, steady
from softcount.records import dataclass


@register
@dataclass(frozen=True, slots=True)
class HistogramFamily(BinnedCounts):
    """Numbers of any shape, as shares of bins: `bins` as `sc.Histogram` has them, decided by all rows together.

    A prior of `a` imagines `a` rows for every bin on average, where all rows together lie. No bin is narrower than the
    way between two numbers: it would tell how they are rounded.
    """

    bins: Any = "auto"

    name = "histogram"

    @classmethod
    def candidates(cls, facts: NumberFacts) -> Sequence[Family]:
        return (cls("fd"), cls()) if facts.rows >= FEW_ROWS else ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", checked_bins(self.bins))

    def inner_edges(self, points: np.ndarray, counts: np.ndarray) -> np.ndarray:
        pooled = steady(counts.sum(axis=0))
        if pooled.sum() <= 1:
            return np.zeros(0)
        cuts = np.unique(np.searchsorted(points, edges_of(self.bins, WeightedPoints(points, pooled))[1:-1]))
        return between(points, cuts[(cuts > 0) & (cuts < len(points))])

    def imagined_rows(self, each: float, pooled: np.ndarray) -> np.ndarray:
        share = pooled / pooled.sum() if pooled.sum() > 0 else np.full(len(pooled), 1.0 / max(len(pooled), 1))
        return each * len(pooled) * share


_AGES = [23.0, 31.5, None, 67.0, 35.0, 64.5, 29.0, 70.0, 33.0]
EXAMPLES = tuple(example(family, "age", _AGES, Cells("reals")) for family in (HistogramFamily(), HistogramFamily(4)))
