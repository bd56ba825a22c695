"""Rows that point at cells of tables, and rows of any numbers most of which are zero: sums along and across them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np

from softcount.numerics.late_scipy import sparse
from softcount.records import dataclass

FEW = 1 << 16
"""Cells times columns up to which looking each up is as quick as a sparse product, which SciPy is loaded for."""

FEW_PLAIN = 1 << 18
"""Rows times columns up to which the zeros are written out."""


class WideFeatures(Protocol):
    """A matrix of many columns, few of which a row has anything in."""

    @property
    def width(self) -> int: ...

    def __len__(self) -> int: ...

    def take(self, rows: np.ndarray) -> WideFeatures:
        """Some of the rows."""
        ...

    def product(self, tables: np.ndarray) -> np.ndarray:
        """(rows x columns) from (width x columns) tables."""
        ...

    def turned(self, columns: np.ndarray) -> np.ndarray:
        """(width x columns) sums over the rows of (rows x columns) numbers."""
        ...

    def first(self, some: int) -> np.ndarray:
        """(rows x some) the first so many columns as they are."""
        ...

    def squares(self, weights: np.ndarray) -> np.ndarray:
        """Weighted sum of the squares of every column."""
        ...


@dataclass(frozen=True, eq=False)
class Indicators:
    """Ones where a row points: `places` (terms x rows) are the columns; a product with tables sums over the terms."""

    places: np.ndarray  # intp
    width: int

    def __len__(self) -> int:
        return int(self.places.shape[1])

    def take(self, rows: np.ndarray) -> Indicators:
        return Indicators(self.places[:, rows], self.width)

    def product(self, tables: np.ndarray) -> np.ndarray:
        if self.places.size * tables.shape[1] > FEW:
            return np.asarray(self._matrix @ tables)
        return np.asarray(tables.take(self.places, axis=0).sum(axis=0))

    def turned(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self._turned @ columns)

    def first(self, some: int) -> np.ndarray:
        found = np.zeros((len(self), some + 1))
        found[np.arange(len(self)), np.minimum(self.places, some)] = 1.0
        found[:, 0] = (self.places == 0).sum(axis=0)  # any number of terms may point at the first
        return found[:, :some]

    def squares(self, weights: np.ndarray) -> np.ndarray:
        return np.bincount(self.places.ravel(), np.tile(weights, len(self.places)), self.width)

    def to_learn_from(self) -> WideFeatures:
        """The same rows, with their zeros where these are few: a plain product then takes half the time."""
        return PlainFeatures(self.first(self.width)) if len(self) * self.width <= FEW_PLAIN else self

    @cached_property
    def _matrix(self) -> sparse.csr_matrix:
        terms, rows = self.places.shape
        ends = np.arange(rows + 1, dtype=np.int32) * terms
        places = self.places.T.ravel().astype(np.int32)
        return sparse.csr_matrix((np.ones(places.size), places, ends), shape=(rows, self.width))

    @cached_property
    def _turned(self) -> Any:
        return self._matrix.T


@dataclass(frozen=True, slots=True, eq=False)
class PlainFeatures:
    """A matrix as it is."""

    matrix: np.ndarray

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.matrix)

    def take(self, rows: np.ndarray) -> PlainFeatures:
        return PlainFeatures(self.matrix[rows])

    def product(self, tables: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix @ tables)

    def turned(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix.T @ columns)

    def first(self, some: int) -> np.ndarray:
        return self.matrix[:, :some]

    def squares(self, weights: np.ndarray) -> np.ndarray:
        return np.asarray(weights @ self.matrix**2)


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Any sparse matrix of rows."""

    matrix: sparse.csr_matrix

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def take(self, rows: np.ndarray) -> SparseFeatures:
        return SparseFeatures(self.matrix[rows])

    def product(self, tables: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix @ tables)

    def turned(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(self._turned @ columns)

    def first(self, some: int) -> np.ndarray:
        return np.asarray(self.matrix[:, :some].toarray())

    def squares(self, weights: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix.multiply(self.matrix).T @ weights)

    @cached_property
    def _turned(self) -> Any:
        return self.matrix.T
