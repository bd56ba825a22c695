"""A number from other columns: what a mixture of classes, in each of which numbers are correlated, expects of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.estimators.mixture import Mixture
from softcount.families.multinormal import Multinormal
from softcount.numerics.late_scipy import ndtr
from softcount.records import dataclass

HALVINGS = 60
"""Steps in which an interval's end is found: its error is then the spread of all ends over 2^60."""
FAR = 10.0
"""Standard deviations from a class's mean beyond which it holds next to nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class NumberAnswer:
    """Of each row: the probability of every class, and the mean and deviation of the number in it."""

    shares: np.ndarray
    means: np.ndarray
    deviations: np.ndarray

    @property
    def expected(self) -> np.ndarray:
        """The mean of each row."""
        return np.asarray((self.shares * self.means).sum(axis=1))

    def quantile(self, share: float) -> np.ndarray:
        """The value below which the number is with this probability."""
        low = (self.means - FAR * self.deviations).min(axis=1)
        high = (self.means + FAR * self.deviations).max(axis=1)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            scaled = (middle[:, None] - self.means) / self.deviations
            below = (self.shares * ndtr(scaled)).sum(axis=1) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))


class MixtureRegression:
    """The expected value of a number, with an interval, by a mixture over it and all other columns.

    Numbers are one correlated block with the target, so that each class has a line of its own; levels are independent
    given the class. The number of classes is that of the highest evidence.
    """

    def __init__(self, target: str, numbers: Sequence[str], kinds: dict[Any, Any], seed: int) -> None:
        self.target, self.numbers, self.kinds, self.seed = target, list(numbers), kinds, seed

    def fit(self, arrow: Any, y: np.ndarray) -> MixtureRegression:
        """Learn from rows and their numbers."""
        import pyarrow as pa

        kinds = {**self.kinds, (*self.numbers, self.target): Multinormal("full")}
        if not self.numbers:
            kinds = {**self.kinds, self.target: "normal"}
        whole = arrow.append_column(self.target, pa.array(y))
        self.model_ = Mixture(kinds=kinds, n_init=2, random_state=self.seed).fit(whole)
        return self

    def answer(self, arrow: Any) -> NumberAnswer:
        """What is known of the number in each row."""
        import pyarrow as pa

        shares = self.model_.predict_proba(arrow.append_column(self.target, pa.nulls(len(arrow), pa.float64())))
        params = self.model_.params_[(*self.numbers, self.target) if self.numbers else self.target]
        if not self.numbers:
            both = np.ravel(params["mean"]), np.sqrt(np.ravel(params["variance"]))
            return NumberAnswer(shares, *(np.broadcast_to(each, shares.shape) for each in both))
        values = np.column_stack([arrow[name].to_numpy(zero_copy_only=False).astype(float) for name in self.numbers])
        return NumberAnswer(shares, *conditioned(values, params["mean"], params["covariance"]))


def conditioned(values: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows x classes) mean and deviation of the last number of a block, given the others; NaN among them is a hole.

    >>> both = np.array([[[1.0, 0.8], [0.8, 1.0]]])
    >>> mean, deviation = conditioned(np.array([[2.0], [np.nan]]), np.zeros((1, 2)), both)
    >>> mean.ravel(), deviation.ravel().round(6)
    (array([1.6, 0. ]), array([0.6, 1. ]))
    """
    found, spread = np.empty((len(values), len(means))), np.empty((len(values), len(means)))
    patterns, which = np.unique(~np.isnan(values), axis=0, return_inverse=True)
    for place, known in enumerate(patterns):
        rows = np.flatnonzero(which.ravel() == place)
        seen = np.flatnonzero(known)
        for group, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
            slopes = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen, -1])
            found[rows, group] = mean[-1] + (values[np.ix_(rows, seen)] - mean[seen]) @ slopes
            left = covariance[-1, -1] - covariance[-1, seen] @ slopes
            spread[rows, group] = np.sqrt(max(left, 1e-12 * covariance[-1, -1]))
    return found, spread
