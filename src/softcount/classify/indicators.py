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

AT_ONCE = 4096
"""Rows that are looked through at a time."""


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
        """The same rows, with their zeros where these are few, else without the cells that most rows point at."""
        return PlainFeatures(self.first(self.width)) if len(self) * self.width <= FEW_PLAIN else ApartFromMost(self)

    @cached_property
    def _matrix(self) -> sparse.csr_matrix:
        terms, rows = self.places.shape
        ends = np.arange(rows + 1, dtype=np.int32) * terms
        places = self.places.T.ravel().astype(np.int32)
        return sparse.csr_matrix((np.ones(places.size), places, ends), shape=(rows, self.width))

    @cached_property
    def _turned(self) -> Any:
        return self._matrix.T


@dataclass(frozen=True, eq=False)
class ApartFromMost:
    """The same sums, with the cell of each term that most rows point at taken for granted: half of all are left out.

    A table's rows are reckoned from that of its term's own most common cell; a term that says nothing of a row, where
    most do not, has a place of its own after all cells.
    """

    whole: Indicators

    @property
    def width(self) -> int:
        return self.whole.width

    def __len__(self) -> int:
        return len(self.whole)

    def take(self, rows: np.ndarray) -> Indicators:
        return self.whole.take(rows)

    def first(self, some: int) -> np.ndarray:
        return self.whole.first(some)

    def squares(self, weights: np.ndarray) -> np.ndarray:
        return self.whole.squares(weights)

    @cached_property
    def most(self) -> np.ndarray:
        """The commonest cell of every term."""
        return np.array([np.bincount(own).argmax() for own in self.whole.places], dtype=np.intp)

    @cached_property
    def owners(self) -> np.ndarray:
        """The term of every cell that a row points at, 0 for any other."""
        found = np.zeros(self.width, dtype=np.intp)
        for term, own in enumerate(self.whole.places):
            found[own] = term
        return found

    @cached_property
    def _others(self) -> sparse.csr_matrix:
        """(rows x width + terms) ones where a row points at any other cell than the commonest."""
        nothing = self.width + np.arange(len(self.most))
        cells, counts = [np.zeros(0, dtype=np.int32)], [np.zeros(1, dtype=np.int32)]
        for first in range(0, len(self), AT_ONCE):
            own = self.whole.places[:, first : first + AT_ONCE].T
            other = own != self.most
            cells.append(np.where(own > 0, own, nothing)[other].astype(np.int32))
            counts.append(other.sum(axis=1, dtype=np.int32))
        where, ends = np.concatenate(cells), np.cumsum(np.concatenate(counts), dtype=np.int32)
        return sparse.csr_matrix((np.ones(len(where)), where, ends), shape=(len(self), self.width + len(nothing)))

    @cached_property
    def _turned(self) -> Any:
        return self._others.T

    @cached_property
    def _by_term(self) -> sparse.csr_matrix:
        """(terms x width + terms) ones for the places of each term."""
        places, terms = np.arange(self.width + len(self.most)), np.arange(len(self.most))
        owners = np.concatenate([self.owners, terms])
        return sparse.csr_matrix((np.ones(len(places)), (owners, places)), shape=(len(terms), len(places)))

    def product(self, tables: np.ndarray) -> np.ndarray:
        usual = tables[self.most]
        apart = np.concatenate([tables - usual[self.owners], tables[0] - usual])
        return np.asarray(self._others @ apart + usual.sum(axis=0))

    def turned(self, columns: np.ndarray) -> np.ndarray:
        others = np.asarray(self._turned @ columns)
        usual = columns.sum(axis=0) - self._by_term @ others
        found: np.ndarray = others[: self.width]
        found[0] += others[self.width :].sum(axis=0)
        np.add.at(found, self.most, usual)  # several terms may have nothing for their commonest
        return found


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
