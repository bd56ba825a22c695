"""A correlated block of numbers: a normal for every class whose covariance is shrunk towards simpler ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, solve_triangular

IMAGINED = 2.0
"""Rows of the common covariance that every class is taken to have besides its own."""
SMALLEST = 1e-6
"""The least variance in any direction, in units of the columns' own."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockMoments:
    """Of standardised numbers: weight, mean and sum of outer products about it for each class; holes as class means."""

    middle: np.ndarray
    spread: np.ndarray
    weights: np.ndarray
    means: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> BlockMoments:
        """The moments of rows of known class."""
        middle, spread = standards(numbers, weights)
        rows = (numbers - middle) / spread
        width = numbers.shape[1]
        means, products, sizes = np.zeros((classes, width)), np.zeros((classes, width, width)), np.zeros(classes)
        for label in range(classes):
            own, heavy = rows[labels == label], weights[labels == label]
            there = ~np.isnan(own)
            counted = heavy @ there
            sums = heavy @ np.where(there, own, 0.0)
            means[label] = sums / np.where(counted > 0, counted, 1.0)
            apart = np.where(there, own - means[label], 0.0)
            products[label] = (apart * heavy[:, None]).T @ apart
            sizes[label] = heavy.sum()
        return cls(middle, spread, sizes, means, products)

    def shrunk(self, tied: float, straight: float) -> ShrunkBlock:
        """Normals whose covariances are so much the common one, and of that so much without correlations."""
        common = self.products.sum(axis=0) / max(float(self.weights.sum()), 1.0)
        own = (self.products + IMAGINED * common) / (self.weights + IMAGINED)[:, None, None]
        found = (1.0 - tied) * own + tied * common
        found = (1.0 - straight) * found
        diagonal = np.arange(found.shape[1])
        found[:, diagonal, diagonal] /= 1.0 - straight
        found[:, diagonal, diagonal] += SMALLEST
        return ShrunkBlock(self.middle, self.spread, self.means, found)


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


@dataclass(frozen=True, slots=True, eq=False)
class ShrunkBlock:
    """Means and covariances of the classes in standardised units; a missing number is integrated out."""

    middle: np.ndarray
    spread: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def scores(self, numbers: np.ndarray) -> np.ndarray:
        """(rows x classes) log-densities, up to what all classes share."""
        found = np.zeros((len(numbers), len(self.means)))
        for rows, columns, part in self._patterns(numbers):
            found[rows] = part._complete(numbers[np.ix_(rows, columns)])[0]
        return found

    def parts(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) what each number adds to the scores, and (rows x classes) what none of them does.

        A product of two deviations is shared equally by their columns.
        """
        found = np.zeros((*numbers.shape, len(self.means)))
        rest = np.zeros((len(numbers), len(self.means)))
        for rows, columns, part in self._patterns(numbers):
            _, own, constant = part._complete(numbers[np.ix_(rows, columns)])
            found[np.ix_(rows, columns)] = own
            rest[rows] = constant
        return found, rest

    def _patterns(self, numbers: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, ShrunkBlock]]:
        """Rows that have the same columns, and the block of these alone."""
        there = ~np.isnan(numbers)
        if there.all():
            yield np.arange(len(numbers)), np.arange(numbers.shape[1]), self
            return
        patterns, which = np.unique(there, axis=0, return_inverse=True)
        for place, pattern in enumerate(patterns):
            columns = np.flatnonzero(pattern)
            if len(columns):
                yield np.flatnonzero(which.ravel() == place), columns, self._of(columns)

    def _of(self, columns: np.ndarray) -> ShrunkBlock:
        kept = self.covariances[:, columns[:, None], columns]
        return replace(
            self, middle=self.middle[columns], spread=self.spread[columns], means=self.means[:, columns],
            covariances=kept,
        )  # fmt: skip

    def _complete(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = (numbers - self.middle) / self.spread
        parts, constants = np.empty((*rows.shape, len(self.means))), np.empty(len(self.means))
        for label, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            root = cholesky(covariance, lower=True, check_finite=False)
            apart = rows - mean
            turned = solve_triangular(root, apart.T, lower=True, check_finite=False)
            parts[:, :, label] = (
                -0.5 * apart * solve_triangular(root, turned, lower=True, trans=1, check_finite=False).T
            )
            constants[label] = -np.log(np.diagonal(root)).sum()
        return parts.sum(axis=1) + constants, parts, constants
