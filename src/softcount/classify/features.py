"""Features of the additive logistic model: indicators, terms and pairwise interactions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from softcount.core.lazy import sparse
from softcount.core.special import times_log

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


class Indicators(Struct, frozen=True, eq=False, dict=True):
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


class ApartFromMost(Struct, frozen=True, eq=False, dict=True):
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


class PlainFeatures(Struct, frozen=True, eq=False):
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


class SparseFeatures(Struct, frozen=True, eq=False, dict=True):
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


# Features: table cells that rows point at and a few numeric columns, of one problem or of several.

LOOKED_AT = 4096
"""Rows that the shape of the problem is judged by."""
MOST_TOGETHER = 400
"""Indicators whose dependence on each other is allowed for when steps are scaled; the others are scaled one by one."""


class Features(Struct, frozen=True, eq=False):
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


class StackedFeatures(Struct, frozen=True, eq=False, dict=True):
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


# Tables of single columns and of pairs, concatenated: the row that each cell points at.

CELLS_AT_ONCE = 1 << 18
"""Cells of rows that are looked up at a time."""


class Terms(Struct, frozen=True, eq=False, dict=True):
    """`columns` are those of each term, one or two; row 0 of the tables is for what nothing is known of."""

    columns: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]  # of all columns

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.cumsum([1, *(math.prod(self.sizes[column] for column in term) for term in self.columns)])

    @property
    def offsets(self) -> np.ndarray:
        """The first row of every term's table."""
        return self._ends[:-1]

    @property
    def width(self) -> int:
        """Rows of all tables."""
        return int(self._ends[-1])

    @classmethod
    def single(cls, sizes: Sequence[int]) -> Terms:
        """A table for every column that has two or more intervals or levels."""
        return cls(tuple((place,) for place, size in enumerate(sizes) if size > 1), tuple(sizes))

    def with_pairs(self, pairs: Sequence[tuple[int, int]]) -> Terms:
        """The same with tables of pairs of columns after them."""
        return Terms((*self.columns, *pairs), self.sizes)

    def places(self, codes: np.ndarray) -> np.ndarray:
        """(rows x terms) the row of the tables that each row of codes points at."""
        return self.indicators(codes).places.T

    def indicators(self, codes: np.ndarray) -> Indicators:
        """(rows x width) ones where a row points; its product with the tables is the sum over the terms."""
        turned = np.ascontiguousarray(codes.T, dtype=np.intp)
        found = np.empty((len(self.columns), len(codes)), dtype=np.intp)
        step = max(1, CELLS_AT_ONCE // max(1, len(codes)))
        for width in (1, 2):
            every = [place for place, term in enumerate(self.columns) if len(term) == width]
            for first in range(0, len(every), step):
                some = every[first : first + step]
                found[some] = self._pointed(turned, some)
        return Indicators(found, self.width)

    def _pointed(self, turned: np.ndarray, places: list[int]) -> np.ndarray:
        """(terms x rows) where some terms point, all of one column or all of two."""
        terms, offsets = [self.columns[place] for place in places], self.offsets[places][:, None] - 1
        first = turned[[term[0] for term in terms]]
        if len(terms[0]) == 1:
            return np.where(first > 0, first + offsets, 0)
        second, across = turned[[term[1] for term in terms]], np.array([[self.sizes[term[1]]] for term in terms])
        return np.where((first > 0) & (second > 0), (first - 1) * across + second + offsets, 0)


# Counts of all pairs of cells per class, by one product for all pairs of columns.

PAIR_CELLS_AT_ONCE = 1 << 20
"""Cells of dense rows that are multiplied at a time."""
WIDE = 5
"""Cells a column from which tables of pairs one by one are made sooner than by a product of all cells."""
MOST_SHORT = 1 << 24
"""Rows up to which a float of half the length counts exactly."""


class PairCounts(Struct, frozen=True, eq=False):
    """(classes x cells x cells) weight of the rows that hold both cells; on the diagonal blocks, of each cell.

    The cells are those of the tables of single columns; the first, of what nothing is known of, counts nothing.
    """

    terms: Terms
    counts: np.ndarray

    @classmethod
    def of(cls, terms: Terms, codes: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> PairCounts:
        """The counts of rows of known class."""
        counts = np.zeros((classes, terms.width, terms.width))
        if terms.width > WIDE * len(terms.columns):
            heavy = None if (weights == 1).all() else weights
            cells = np.ascontiguousarray(codes.T, dtype=np.int64)
            columns = [column for (column,) in terms.columns]
            for place, first in enumerate(columns):
                width = terms.sizes[first] + 1
                base, start = labels * width + cells[first], terms.offsets[place]
                for beside, second in enumerate(columns[: place + 1]):
                    across, offset = terms.sizes[second] + 1, terms.offsets[beside]
                    flat = np.bincount(base * across + cells[second], heavy, len(counts) * width * across)
                    own = flat.reshape(-1, width, across)[:, 1:, 1:]
                    counts[:, start : start + width - 1, offset : offset + across - 1] = own
                    counts[:, offset : offset + across - 1, start : start + width - 1] = own.transpose(0, 2, 1)
        else:
            _multiply(counts, terms, codes, labels, weights)
        return cls(terms, counts)

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(self.terms, self.counts + other.counts)

    def some(self, places: Sequence[int]) -> PairCounts:
        """Those of some of the columns, by their places among these."""
        ends = [*self.terms.offsets, self.terms.width]
        kept = np.concatenate([[0], *(np.arange(ends[k], ends[k + 1]) for k in places)]).astype(np.int64)
        terms = Terms(tuple(self.terms.columns[k] for k in places), self.terms.sizes)
        return PairCounts(terms, self.counts[:, kept[:, None], kept])

    @property
    def starts(self) -> np.ndarray:
        """Where the cells of each column start."""
        return self.terms.offsets

    def known(self) -> np.ndarray:
        """(classes x cells x columns) weight of the rows that hold a cell and anything known of another column."""
        return np.add.reduceat(self.counts, self.starts, axis=2)

    def information(self) -> tuple[np.ndarray, np.ndarray]:
        """(columns x columns) nats that two columns say of each other, within the classes and over all of them.

        Each is less what chance alone would say: half a nat for every free cell and row.
        """
        within = sum((_shared(own, self.starts) for own in self.counts), np.zeros(()))
        return np.asarray(within), _shared(self.counts.sum(axis=0), self.starts)


def _multiply(counts: np.ndarray, terms: Terms, codes: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> None:
    """All pairs of cells by a product of each class's rows with themselves; short floats hold whole counts as well."""
    whole = float(weights.sum()) < MOST_SHORT and bool((weights == np.floor(weights)).all())
    step = max(256, PAIR_CELLS_AT_ONCE // terms.width)
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(len(counts) + 1))
    for label, own in enumerate(counts):
        for a in range(ends[label], ends[label + 1], step):
            rows = order[a : min(a + step, ends[label + 1])]
            places = terms.places(codes[rows])
            cells = np.zeros((len(rows), terms.width), dtype=np.float32 if whole else np.float64)
            cells[np.arange(len(rows))[:, None], places] = 1.0
            own += (cells * weights[rows, None].astype(cells.dtype)).T @ cells
    counts[:, 0] = 0.0
    counts[:, :, 0] = 0.0


def _shared(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(columns x columns) weight times the mutual information of two columns, less that of chance."""
    rows = _blocks(counts, starts)
    found, some = np.zeros(counts.shape), counts.ravel().nonzero()[0]
    own = counts.ravel()[some]
    found.ravel()[some] = own * np.log(own)
    cells, both = _blocks(found, starts), times_log(rows)
    margins = np.add.reduceat(counts, starts, axis=1)  # (cells x columns)
    sides = np.add.reduceat(times_log(margins), starts, axis=0)
    filled = np.add.reduceat((margins > 0).astype(float), starts, axis=0)
    free = np.maximum(filled - 1, 0) * np.maximum(filled.T - 1, 0)
    return np.asarray(cells - sides - sides.T + both - free / 2)


def _blocks(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.asarray(np.add.reduceat(np.add.reduceat(counts, starts, axis=0), starts, axis=1))
