"""What coefficients are learned for: cells that rows point at beside a few lines, of one problem or of several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from softcount.classify.indicators import FEW_PLAIN, Indicators, WideFeatures
from softcount.numerics.late_scipy import sparse
from softcount.records import dataclass

LOOKED_AT = 4096
"""Rows that the shape of the problem is judged by."""
MOST_TOGETHER = 400
"""Indicators whose dependence on each other is allowed for when steps are scaled; the others are scaled one by one."""


@dataclass(frozen=True, eq=False)
class Features:
    """Rows as sparse indicators, of which the first stands for nothing known, beside a few dense columns.

    The first `together` indicators, and the dense columns, are allowed to depend on each other when steps are scaled.
    """

    indicators: WideFeatures
    dense: np.ndarray
    together: int = MOST_TOGETHER

    @property
    def width(self) -> int:
        return self.indicators.width + int(self.dense.shape[1])

    @property
    def turned_first(self) -> int:
        """How many indicators are allowed to depend on each other."""
        return min(self.together, self.indicators.width)

    def __len__(self) -> int:
        return len(self.indicators)

    def product(self, coefficients: np.ndarray) -> np.ndarray:
        """(rows x columns) sums of the coefficients that each row points at, and along its dense columns."""
        cut = self.indicators.width
        found = self.indicators.product(coefficients[:cut])
        if self.dense.shape[1]:
            found += self.dense @ coefficients[cut:]
        return found

    def turned(self, residuals: np.ndarray) -> np.ndarray:
        """(width x columns) sums over the rows."""
        own = self.indicators.turned(residuals)
        return np.concatenate([own, self.dense.T @ residuals]) if self.dense.shape[1] else own

    def moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean products of the features at both ends, and mean squares of those between.

        Squares are of all rows, correlations of some: a cell that the sample misses would get a step far too long.
        """
        total, first = max(float(weights.sum()), 1e-300), self.turned_first
        squares = self.indicators.squares(weights) / total
        step = np.unique(np.linspace(0, len(self) - 1, min(LOOKED_AT, len(self))).astype(int))
        near = np.hstack([self.indicators.take(step).first(first), self.dense[step]])
        found = near.T @ (near * weights[step, None])
        whole = np.concatenate([squares[:first], weights @ self.dense**2 / total])
        scale = np.sqrt(np.divide(whole, np.diagonal(found), out=np.zeros_like(whole), where=np.diagonal(found) > 0))
        found *= scale[:, None] * scale
        np.fill_diagonal(found, whole)
        return found, squares[first:]


@dataclass(frozen=True, eq=False)
class StackedFeatures:
    """Those of several problems, (problems x rows x width), of which either the zeros are written out or few are left.

    `lines` are the last columns where zeros are not written out; a row that a problem has not is all zeros.
    """

    plain: np.ndarray | None
    told: sparse.csr_matrix | None  # (problems and rows x problems and width)
    lines: np.ndarray

    @classmethod
    def of(cls, each: Sequence[tuple[Features, np.ndarray]], width: int) -> StackedFeatures:
        """From the features of every problem and where they are among all."""
        rows, last = max(len(own) for own, _ in each), max(own.dense.shape[1] for own, _ in each)
        lines = np.zeros((len(each), rows, last))
        for place, (own, _) in enumerate(each):
            lines[place, : len(own), : own.dense.shape[1]] = own.dense
        cells = [_cells(own, places) for own, places in each]
        if rows * width > FEW_PLAIN:
            return cls(None, _block_diagonal(cells, rows, width), lines)
        plain = np.zeros((len(each), rows, width))
        for ones, (row, cell) in zip(plain, cells, strict=True):
            ones[row, cell] = 1.0
        plain[:, :, width - last :] = lines
        return cls(plain, None, lines)

    def product(self, coefficients: np.ndarray) -> np.ndarray:
        """(problems x rows x columns) from (problems x width x columns)."""
        if self.told is None:
            return np.asarray(self.plain @ coefficients)
        problems, width, columns = coefficients.shape
        found = np.asarray(self.told @ coefficients.reshape(-1, columns)).reshape(problems, -1, columns)
        last = self.lines.shape[2]
        return found + self.lines @ coefficients[:, width - last :] if last else found

    def turned(self, residuals: np.ndarray) -> np.ndarray:
        """(problems x width x columns) sums over the rows."""
        if self.plain is not None:
            return np.asarray(self.plain.mT @ residuals)
        problems, _, columns = residuals.shape
        found = np.asarray(self._turned @ residuals.reshape(-1, columns)).reshape(problems, -1, columns)
        last = self.lines.shape[2]
        if last:
            found[:, found.shape[1] - last :] = self.lines.mT @ residuals
        return found

    @cached_property
    def _turned(self) -> sparse.csc_matrix:
        assert self.told is not None
        return self.told.T


def _cells(own: Features, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and places of the cells that they point at, row after row; nothing known is no cell."""
    assert isinstance(own.indicators, Indicators)
    pointed = own.indicators.places.T
    row, term = np.nonzero(pointed)
    return row, places[pointed[row, term]]


def _block_diagonal(cells: Sequence[tuple[np.ndarray, np.ndarray]], rows: int, width: int) -> sparse.csr_matrix:
    counts = np.concatenate([np.bincount(row, minlength=rows) for row, _ in cells])
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    where = np.concatenate([cell + place * width for place, (_, cell) in enumerate(cells)]).astype(np.int32)
    return sparse.csr_matrix((np.ones(len(where)), where, ends), shape=(len(counts), width * len(cells)))
