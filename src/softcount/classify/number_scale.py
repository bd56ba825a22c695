"""Numbers in units of their own: deviations from the mean, of the logarithm where that is closer to a bell."""

from __future__ import annotations

import numpy as np

from softcount.records import dataclass

CLEARLY = 0.1
"""Nats a row by which bells over logarithms must be likelier than bells over the numbers themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberScale:
    """`floor` is 0 for a number as it is; of others the logarithm is taken, of what is below the floor that of it."""

    floor: np.ndarray
    middle: np.ndarray
    spread: np.ndarray

    @classmethod
    def learned(cls, numbers: np.ndarray, weights: np.ndarray) -> NumberScale:
        """Mean and deviation of every number as it is."""
        return cls(np.zeros(numbers.shape[1]), *standards(numbers, weights))

    @classmethod
    def by_class(cls, numbers: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> NumberScale:
        """The same; of numbers above zero the logarithm where bells of every class are likelier over it."""
        floor = np.array([_floor(column, labels, weights, classes) for column in numbers.T])
        return cls(floor, *standards(_logged(numbers, floor), weights))

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """(rows x numbers) deviations from the mean; NaN where missing."""
        return np.asarray((_logged(numbers, self.floor) - self.middle) / self.spread)

    def some(self, columns: np.ndarray) -> NumberScale:
        """The scale of some of the numbers."""
        return NumberScale(self.floor[columns], self.middle[columns], self.spread[columns])


def standards(numbers: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of every column over the rows that have it; 0 and 1 where there is none."""
    there = ~np.isnan(numbers)
    filled = np.where(there, numbers, 0.0)
    unit = np.abs(filled).max(axis=0, initial=0.0)
    unit = np.where(unit > 0, unit, 1.0)  # squares of numbers near 1e200 are too large for a float
    counted = np.maximum(weights @ there, 1e-300)
    middle = weights @ (filled / unit) / counted
    deviation = np.sqrt(weights @ np.where(there, (filled / unit - middle) ** 2, 0.0) / counted)
    return middle * unit, np.where(deviation > 0, deviation, 1.0) * unit


def _logged(numbers: np.ndarray, floor: np.ndarray) -> np.ndarray:
    if not floor.any():
        return numbers
    found = numbers.copy()
    logged = floor > 0
    found[:, logged] = np.log(np.maximum(numbers[:, logged], floor[logged]))
    return found


def _floor(column: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> float:
    known = ~np.isnan(column)
    values = column[known]
    if not len(values) or values.min() <= 0 or values.max() <= values.min():
        return 0.0
    scaled, own, heavy = values / values.max(), labels[known], weights[known]
    with np.errstate(divide="ignore"):
        logs = np.log(scaled)
    if not np.isfinite(logs).all():
        return 0.0
    plain = _nats(scaled, own, heavy, classes)
    gained = _nats(logs, own, heavy, classes) - float(heavy @ logs) - plain
    return float(values.min()) if gained > CLEARLY * float(heavy.sum()) else 0.0


def _nats(values: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> float:
    """Log-likelihood of a bell in every class, up to what any two sets of values have in common."""
    sizes = np.bincount(labels, weights, classes)
    rows = np.maximum(sizes, 1e-300)
    middle = np.bincount(labels, weights * values, classes) / rows
    spread = np.bincount(labels, weights * (values - middle[labels]) ** 2, classes) / rows
    least = 1e-6 * max(float(np.var(values)), 1e-300)
    return float(-0.5 * sizes @ np.log(np.maximum(spread, least)))
