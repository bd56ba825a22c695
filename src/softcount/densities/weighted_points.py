"""A column's numbers with their weights: what densities of one column are made of."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from softcount.errors import DataError
from softcount.records import dataclass


@dataclass(frozen=True)
class WeightedPoints:
    """Finite numbers in any order, each counted as often as its weight says; without weights, each once.

    >>> points = WeightedPoints(np.array([3.0, 1.0, 3.0]))
    >>> points.total, points.ordered
    (3.0, (array([1., 3.]), array([1., 2.])))
    """

    values: np.ndarray
    weights: np.ndarray | None = None
    level: int | None = None
    """Where the values are nodes of a dyadic grid that stand for the rows, the level of that grid."""

    @cached_property
    def total(self) -> float:
        """How many rows the points stand for."""
        return float(len(self.values) if self.weights is None else self.weights.sum())

    @cached_property
    def ordered(self) -> tuple[np.ndarray, np.ndarray]:
        """The different values in order, and the weight of each."""
        if self.weights is None:
            values, counts = np.unique(self.values, return_counts=True)
            return values, counts.astype(np.float64)
        values, where = np.unique(self.values, return_inverse=True)
        return values, np.bincount(where, self.weights, minlength=len(values))

    @cached_property
    def below(self) -> np.ndarray:
        """The weight of the first 0, 1, 2, ... of the ordered values."""
        return np.concatenate([[0.0], np.cumsum(self.ordered[1])])

    @cached_property
    def mean(self) -> float:
        """The mean, from sums around one of the values."""
        anchor = float(self.values[0])
        with np.errstate(over="ignore", invalid="ignore"):
            return anchor + float(np.average(self.values - anchor, weights=self.weights))

    @cached_property
    def deviation(self) -> float:
        """The standard deviation, with one row less than there are below the line."""
        with np.errstate(over="ignore"):
            apart = np.abs(self.values - self.mean)
        furthest = float(apart.max())
        if not 0 < furthest < np.inf:
            return furthest
        square = np.average((apart / furthest) ** 2, weights=self.weights) * self.total / (self.total - 1)
        return float(furthest * np.sqrt(square))

    def quantile(self, share: float) -> float:
        """The value at a share of the way from the first row to the last, on a straight line between two rows."""
        place = share * (self.total - 1)
        low = np.floor(place)
        at = np.searchsorted(self.below[1:], [low, low + 1], side="right")
        before, after = self.ordered[0][np.minimum(at, len(self.ordered[0]) - 1)]
        return float(before + (place - low) * (after - before))

    @cached_property
    def middle_half(self) -> float:
        """The distance between the quartiles."""
        return self.quantile(0.75) - self.quantile(0.25)

    def plus(self, other: WeightedPoints) -> WeightedPoints:
        """Both sets of points as one."""
        values = np.concatenate([self.values, other.values])
        level = max((x.level for x in (self, other) if x.level is not None), default=None)
        if self.weights is None and other.weights is None:
            return WeightedPoints(values, None, level)
        return WeightedPoints(values, np.concatenate([_filled(self), _filled(other)]), level)

    def refuse_no_spread(self, remedy: str) -> None:
        """Raise where nothing can be learned about how far apart the values lie."""
        if not len(self.values):
            raise DataError("there is no row with a value and a weight above zero, so there is no density.")
        if len(self.values) == 1:
            raise DataError(f"there is one row only (n_samples=1), so {remedy}.")
        if self.values.min() == self.values.max():
            raise DataError(f"all values equal {self.values[0]:g}, so {remedy}.")
        if self.total <= 1:
            raise DataError(
                f"the weights sum to {self.total:g}, but a weight says how many rows one stands for. "
                f"Scale them to sum to the number of rows, or give the bandwidth as a number."
            )


def _filled(points: WeightedPoints) -> np.ndarray:
    return np.ones(len(points.values)) if points.weights is None else points.weights
