"""Numbers in units of their own: deviations from the mean, of the logarithm where that is closer to a bell."""

from __future__ import annotations

import numpy as np

from softcount.records import dataclass

LARGEST = 1e6
"""Deviations from the mean that a number is taken to have at most: squares of 1e155 are too large for a float."""
CLEARLY = 0.1
"""Nats a row by which bells over logarithms must be likelier than bells over the numbers themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberScale:
    """`floor` is 0 for a number as it is; of others the logarithm is taken, of what is below the floor that of it.

    A floor below 0 is that of numbers below 0: they are what their opposites are, with the other sign.
    """

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
        floor = _floors(numbers, labels, weights, classes)
        return cls(floor, *standards(_logged(numbers, floor), weights))

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """(rows x numbers) deviations from the mean, at most LARGEST either way; NaN where missing."""
        return np.asarray(np.clip((_logged(numbers, self.floor) - self.middle) / self.spread, -LARGEST, LARGEST))

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
    logged = floor != 0
    sign = np.sign(floor[logged])
    found[:, logged] = sign * np.log(np.maximum(sign * numbers[:, logged], np.abs(floor[logged])))
    return found


def _floors(numbers: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> np.ndarray:
    """The least value of every number whose logarithm is clearly closer to bells; 0 for any other."""
    found = np.zeros(numbers.shape[1])
    there = ~np.isnan(numbers)
    sign = np.where(np.where(there, numbers, -1.0).max(axis=0, initial=-1.0) < 0, -1.0, 1.0)
    numbers = sign * numbers
    least, most = (
        np.where(there, numbers, np.inf).min(axis=0, initial=np.inf),
        np.where(there, numbers, 0.0).max(axis=0, initial=0.0),
    )
    fit = np.flatnonzero((least > 0) & (most > least) & np.isfinite(least))
    with np.errstate(divide="ignore"):
        fit = fit[np.isfinite(np.log(least[fit] / most[fit]))]
    if not len(fit):
        return found
    there = there[:, fit]
    own = np.where(labels[:, None] == np.arange(classes), weights[:, None], 0.0).T  # (classes x rows)
    scaled = np.where(there, numbers[:, fit] / most[fit], 1.0)
    logs = np.log(scaled)
    plain, bent = (_nats(np.where(there, values, 0.0), there, own, labels) for values in (scaled, logs))
    gained = bent - weights @ np.where(there, logs, 0.0) - plain
    found[fit] = np.where(gained > CLEARLY * (weights @ there), least[fit], 0.0)
    return sign * found


def _nats(values: np.ndarray, there: np.ndarray, own: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Log-likelihood of a bell in every class by column, up to what any two sets of values have in common."""
    sizes = own @ there
    rows = np.maximum(sizes, 1e-300)
    apart = np.where(there, values - (own @ values / rows)[labels], 0.0)
    spread = own @ apart**2 / rows
    counted = np.maximum(there.sum(axis=0), 1)
    middle = values.sum(axis=0) / counted
    least = 1e-6 * np.maximum((np.where(there, values - middle, 0.0) ** 2).sum(axis=0) / counted, 1e-300)
    return np.asarray(-0.5 * (sizes * np.log(np.maximum(spread, least))).sum(axis=0))
