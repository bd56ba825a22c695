"""A correlated block of numbers: a normal for every class whose covariance is shrunk towards simpler ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from softcount.classify.number_scale import NumberScale
from softcount.records import dataclass

IMAGINED = 2.0
"""Rows of the common covariance that every class is taken to have besides its own."""
SMALLEST = 1e-6
"""The least variance in any direction, in units of the columns' own."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockMoments:
    """Of standardised numbers: weight, mean and sum of outer products about it for each class; holes as class means."""

    scale: NumberScale
    weights: np.ndarray
    means: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> BlockMoments:
        """The moments of rows of known class."""
        scale = NumberScale.by_class(numbers, labels, weights, classes)
        rows = scale.of(numbers)
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
        return cls(scale, sizes, means, products)

    def shrunk(self, tied: float, straight: float) -> ShrunkBlock:
        """Normals whose covariances are so much the common one, and of that so much without correlations."""
        common = self.products.sum(axis=0) / max(float(self.weights.sum()), 1.0)
        own = (self.products + IMAGINED * common) / (self.weights + IMAGINED)[:, None, None]
        found = (1.0 - tied) * own + tied * common
        found = (1.0 - straight) * found
        diagonal = np.arange(found.shape[1])
        found[:, diagonal, diagonal] /= 1.0 - straight
        found[:, diagonal, diagonal] += SMALLEST
        return ShrunkBlock(self.scale, self.means, found)


@dataclass(frozen=True, slots=True, eq=False)
class ShrunkBlock:
    """Means and covariances of the classes in standardised units; a missing number is integrated out."""

    scale: NumberScale
    means: np.ndarray
    covariances: np.ndarray

    def scores(self, numbers: np.ndarray) -> np.ndarray:
        """(rows x classes) log-densities, up to what all classes share."""
        found = np.zeros((len(numbers), len(self.means)))
        for rows, columns, part in self._patterns(numbers):
            own, constants = part._complete(numbers[np.ix_(rows, columns)])
            found[rows] = own.sum(axis=2).T + constants
        return found

    def parts(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) what each number adds to the scores, and (rows x classes) what none of them does.

        A product of two deviations is shared equally by their columns.
        """
        found = np.zeros((*numbers.shape, len(self.means)))
        rest = np.zeros((len(numbers), len(self.means)))
        for rows, columns, part in self._patterns(numbers):
            own, constants = part._complete(numbers[np.ix_(rows, columns)])
            found[np.ix_(rows, columns)] = own.transpose(1, 2, 0)
            rest[rows] = constants
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
        return replace(self, scale=self.scale.some(columns), means=self.means[:, columns], covariances=kept)

    def _complete(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(classes x rows x columns) what each number adds, and (classes) what none of them does."""
        apart = self.scale.of(numbers) - self.means[:, None]
        roots = np.linalg.cholesky(self.covariances)
        constants = -np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        return -0.5 * apart * np.linalg.solve(self.covariances, apart.mT).mT, constants


@dataclass(frozen=True, slots=True, eq=False)
class SeparateNormals:
    """A normal for every number and class in standardised units, as the textbook has it; a missing one says nothing."""

    scale: NumberScale
    means: np.ndarray  # (classes x numbers)
    variances: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> SeparateNormals:
        """From rows of known class; every class is taken to have a row of the common variance besides its own."""
        scale = NumberScale.by_class(numbers, labels, weights, classes)
        rows = scale.of(numbers)
        there = ~np.isnan(rows)
        filled = np.where(there, rows, 0.0)
        own = np.where(labels[:, None] == np.arange(classes), weights[:, None], 0.0).T  # (classes x rows)
        counted = own @ there
        means = own @ filled / np.where(counted > 0, counted, 1.0)
        squares = own @ np.where(there, (filled - means[labels]) ** 2, 0.0)
        common = squares.sum(axis=0) / np.maximum(counted.sum(axis=0), 1.0)
        return cls(scale, means, (squares + common) / (counted + 1.0) + SMALLEST)

    def scores(self, numbers: np.ndarray) -> np.ndarray:
        """(rows x classes) log-densities, up to what all classes share."""
        rows = self.scale.of(numbers)
        there, precision = ~np.isnan(rows), 1.0 / self.variances
        filled = np.where(there, rows, 0.0)
        squares = filled**2 @ precision.T - 2.0 * filled @ (self.means * precision).T
        return np.asarray(-0.5 * (squares + there @ (self.means**2 * precision + np.log(self.variances)).T))

    def parts(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) what each number adds to the scores; (rows x classes) nothing besides."""
        rows = self.scale.of(numbers)[:, :, None]
        found = -0.5 * ((rows - self.means.T) ** 2 / self.variances.T + np.log(self.variances.T))
        return np.where(np.isnan(rows), 0.0, found), np.zeros((len(numbers), len(self.means)))
