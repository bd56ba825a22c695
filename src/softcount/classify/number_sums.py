"""Numbers under a second parent: how often, how much and how spread, for every class and cell of the parent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from softcount.classify.indicators import Indicators
from softcount.classify.number_scale import LARGEST, standards
from softcount.records import dataclass

SMALLEST = 1e-9
"""The least variance, in units of the column's own."""
HALF_LOG_2PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True, eq=False)
class NumberSums:
    """(classes x cells x numbers x 3) weight, sum and sum of squares of `(x - anchors) * scales` in the rows of a cell.

    The first cell is of all rows of the class.
    """

    anchors: np.ndarray
    scales: np.ndarray
    sums: np.ndarray

    @classmethod
    def none(cls, numbers: np.ndarray, weights: np.ndarray, classes: int, cells: int) -> NumberSums:
        """No row yet, about the middle of some rows of these numbers."""
        middle, spread = standards(numbers, weights)
        scales = np.exp2(-np.round(np.log2(spread)))
        return cls(middle, scales, np.zeros((classes, cells, numbers.shape[1], 3)))

    def with_rows(self, numbers: np.ndarray, cells: Indicators, labels: np.ndarray, weights: np.ndarray) -> NumberSums:
        """The same with some rows of known class more."""
        moved = (numbers - self.anchors) * self.scales
        there = ~np.isnan(moved)
        filled = np.where(there, moved, 0.0)
        each = np.stack([there.astype(float), filled, filled**2], axis=2).reshape(len(numbers), -1) * weights[:, None]
        sums = self.sums.copy()
        for label in range(len(sums)):
            own = np.flatnonzero(labels == label)
            found = cells.take(own).turned(each[own])
            found[0] = each[own].sum(axis=0)
            sums[label] += found.reshape(sums[label].shape)
        return replace(self, sums=sums)

    def joined(self, other: NumberSums, sign: float) -> NumberSums:
        """Sums of both, or of this without the other's."""
        sums = self.sums + sign * other.about(self.anchors, self.scales).sums
        return replace(self, sums=np.maximum(sums, [0.0, -np.inf, 0.0]))

    def about(self, anchors: np.ndarray, scales: np.ndarray) -> NumberSums:
        """The same sums of the numbers about others' anchors."""
        rows, sums, squares = np.moveaxis(self.sums, 3, 0)
        unit, shift = scales / self.scales, (self.anchors - anchors) * scales
        first = unit * sums + shift * rows
        second = unit**2 * squares + shift * (2.0 * unit * sums + shift * rows)
        return NumberSums(anchors, scales, np.stack([rows, first, second], axis=3))

    def some(self, cells: np.ndarray) -> NumberSums:
        """Those of some cells."""
        return replace(self, sums=self.sums[:, cells])

    def spread(self, groups: np.ndarray, cells: np.ndarray, numbers: np.ndarray, shape: tuple[int, int]) -> NumberSums:
        """The same in a table of so many classes and cells, where each class, cell and number has the given place."""
        sums = np.zeros((*shape, len(numbers), 3))
        sums[np.ix_(groups, cells, numbers)] = self.sums
        anchors, scales = np.empty(len(numbers)), np.empty(len(numbers))
        anchors[numbers], scales[numbers] = self.anchors, self.scales
        return NumberSums(anchors, scales, sums)

    def normals(self, imagined: float) -> StarNormals:
        """A normal for every number in every cell, of so many rows more that are spread as those of the class are.

        Those of the class have as many rows more of the variance of all rows, as in naive Bayes.
        """
        rows, sums, squares = np.moveaxis(self.sums, 3, 0)
        whole = [part[:, :1].sum(axis=0, keepdims=True) for part in (rows, sums, squares)]
        middle, variance = _moments(*whole)
        varies = variance > 0
        own, around = _moments(rows[:, :1], sums[:, :1], squares[:, :1])
        own = np.where(rows[:, :1] > 0, own, middle)
        around = (rows[:, :1] * around + imagined * variance) / (rows[:, :1] + imagined)
        means, within = _moments(rows, sums, squares)
        share = rows / (rows + imagined)
        means, apart = own + share * (means - own), share * (1.0 - share) * (means - own) ** 2
        spread = share * within + apart + (1.0 - share) * around
        means[:, :1], spread[:, :1] = own, around
        unit = np.where(varies, variance, 1.0)
        means, spread = (means - middle) / np.sqrt(unit), np.maximum(spread / unit, SMALLEST)
        terms = [-0.5 / spread, means / spread, -0.5 * (means**2 / spread + np.log(spread)) - HALF_LOG_2PI]
        coefficients = np.stack(terms, axis=1) * varies[:, None]
        shift = self.anchors + (middle / self.scales)[0, 0]
        return StarNormals(shift, (self.scales / np.sqrt(unit))[0, 0], coefficients.transpose(0, 1, 3, 2))


def _moments(rows: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances; 0 and 0 where there are no rows."""
    counted = np.where(rows > 0, rows, 1.0)
    means = np.where(rows > 0, sums / counted, 0.0)
    return means, np.where(rows > 0, np.maximum(squares / counted - means**2, 0.0), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class StarNormals:
    """Log-densities of numbers in units of their own deviation, as parabolas for every class and cell of a parent.

    `coefficients` (classes x 3 x numbers x cells) are of the square, the number and one; those of the first cell are of
    the class alone. A missing number says nothing, nor does one that never varies.
    """

    middle: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray

    @property
    def numbers(self) -> int:
        """How many there are."""
        return len(self.middle)

    def without(self, own: Mapping[int, slice]) -> StarNormals:
        """The same where numbers say nothing under their own intervals."""
        coefficients = self.coefficients.copy()
        for number, cells in own.items():
            coefficients[:, :, number, cells] = 0.0
        return replace(self, coefficients=coefficients)

    def powers(self, numbers: np.ndarray) -> np.ndarray:
        """(3 x rows x numbers) squares, numbers and ones in their own units; 0 where missing."""
        moved = np.clip((numbers - self.middle) * self.scale, -LARGEST, LARGEST)
        there = ~np.isnan(moved)
        filled = np.where(there, moved, 0.0)
        return np.stack([filled**2, filled, there.astype(float)])

    def sums(self, label: int, powers: np.ndarray) -> np.ndarray:
        """(rows x cells) what all numbers say together under each cell of a parent."""
        square, line, one = self.coefficients[label]
        return np.asarray(powers[0] @ square + powers[1] @ line + powers[2] @ one)

    def each(self, label: int, powers: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """(rows x numbers x parents) what each number says under the cells of its row's parents."""
        found = np.zeros((*powers.shape[1:], cells.shape[1]))
        for power, table in zip(powers, self.coefficients[label], strict=True):
            found += power[:, :, None] * table[:, cells].transpose(1, 0, 2)
        return found

    def alone(self, label: int, powers: np.ndarray) -> np.ndarray:
        """(rows x numbers) what each number says under the class alone."""
        return np.asarray(np.einsum("prn,pn->rn", powers, self.coefficients[label, :, :, 0]))
