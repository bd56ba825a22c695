"""Features of the additive logistic model: indicators, terms and pairwise interactions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from msgspec import Struct

from softcount.core.lazy import sparse
from softcount.core.ranges import Floats
from softcount.core.special import times_log

FEW = 1 << 16
"""Cells times columns up to which looking each up is as quick as a sparse product, which SciPy is loaded for."""
DENSE_CELLS = 1 << 18
"""Rows times columns up to which the zeros of features are written out."""


class Indicators(Struct, frozen=True, eq=False, dict=True):
    """A sparse 0/1 matrix: each row has a one for every term, in the column that `places` (terms x rows) gives."""

    places: np.ndarray  # intp
    width: int

    def product(self, tables: np.ndarray) -> np.ndarray:
        if self.places.size * tables.shape[1] > FEW:
            return np.asarray(self.matrix @ tables)
        return np.asarray(tables.take(self.places, axis=0).sum(axis=0))

    @cached_property
    def matrix(self) -> sparse.csr_matrix:
        """The ones; a row with several missing terms has several in the first column."""
        terms, rows = self.places.shape
        ends = np.arange(rows + 1, dtype=np.int32) * terms
        places = self.places.T.ravel().astype(np.int32)
        return sparse.csr_matrix((np.ones(places.size), places, ends), shape=(rows, self.width))

    def dense(self) -> np.ndarray:
        found = np.zeros((self.places.shape[1], self.width))  # small tables do without SciPy, which takes time to load
        found[np.arange(len(found)), self.places] = 1.0
        found[:, 0] = (self.places == 0).sum(axis=0)
        return found


# Features of logistic regressions: a wide matrix, such as indicators of cells, and a few numeric columns.

MOST_SAMPLED_ROWS = 4096
"""Rows by which the correlations of the features are estimated."""
MOST_CORRELATED = 400
"""Wide features whose correlations scale the steps of the optimiser; the others are scaled one by one."""


class Features(Struct, frozen=True, eq=False):
    """A wide matrix, dense or sparse, whose first column stands for missing cells, and a few dense columns.

    Correlations among the first `most_correlated` wide columns and the dense columns scale the steps of the optimiser.
    """

    wide: Any
    dense: np.ndarray
    most_correlated: int = MOST_CORRELATED

    def __len__(self) -> int:
        return len(self.dense)

    @property
    def wide_width(self) -> int:
        return int(self.wide.shape[1])

    @property
    def width(self) -> int:
        return self.wide_width + int(self.dense.shape[1])

    @property
    def correlated(self) -> int:
        """How many of the wide columns are scaled together."""
        return min(self.most_correlated, self.wide_width)

    def take(self, rows: np.ndarray) -> Features:
        if len(rows) == len(self):  # rows are distinct and in order: all of them
            return self
        return Features(self.wide[rows], self.dense[rows], self.most_correlated)

    @property
    def ends(self) -> np.ndarray:
        """(rows x columns) the columns that are scaled together, at both ends."""
        first = self.wide[:, : self.correlated]
        return np.hstack([first if isinstance(first, np.ndarray) else first.toarray(), self.dense])

    def squares(self, weights: np.ndarray) -> np.ndarray:
        """The weighted sum of squares of every wide column."""
        if isinstance(self.wide, np.ndarray):
            return np.asarray(weights @ self.wide**2)
        each = np.repeat(weights, np.diff(self.wide.indptr)) * self.wide.data**2
        return np.bincount(self.wide.indices, each, self.wide_width)

    def moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Second moments of the features scaled together, and mean squares of the others.

        Squares are of all rows, correlations of a sample: a cell that the sample misses would get a step far too long.
        """
        total, first = max(float(weights.sum()), 1e-300), self.correlated
        squares = self.squares(weights) / total
        sample = np.unique(np.linspace(0, len(self) - 1, min(MOST_SAMPLED_ROWS, len(self))).astype(int))
        ends = self.take(sample).ends
        found = ends.T @ (ends * weights[sample, None])
        whole = np.concatenate([squares[:first], weights @ self.dense**2 / total])
        scale = np.sqrt(np.divide(whole, np.diagonal(found), out=np.zeros_like(whole), where=np.diagonal(found) > 0))
        found *= scale[:, None] * scale
        np.fill_diagonal(found, whole)
        return found, squares[first:]


class StackedFeatures(Struct, frozen=True, eq=False, dict=True):
    """Features of several problems: dense (problems x rows x width) if small, else sparse and block-diagonal.

    `numbers` are the dense columns, which come last. Problems with fewer rows are padded with zeros. Columns that are 1
    in most rows are `usual`: `blocks` has -1 in their other rows, which halves the time on tables of rare marks.
    """

    plain: Any
    blocks: Any  # (problems and rows x problems and width)
    numbers: np.ndarray
    usual: Any = None  # (problems x problems and width)

    @classmethod
    def of(cls, each: Sequence[Features]) -> StackedFeatures:
        """From the features of every problem, which have the same columns."""
        rows, width, wide_width = max(map(len, each)), each[0].width, each[0].wide_width
        numbers = np.zeros((len(each), rows, width - wide_width))
        for found, own in zip(numbers, each, strict=True):
            found[: len(own)] = own.dense
        if rows * width <= DENSE_CELLS:
            plain = np.zeros((len(each), rows, width))
            for found, own in zip(plain, each, strict=True):
                found[: len(own), :wide_width] = own.wide if isinstance(own.wide, np.ndarray) else own.wide.toarray()
            plain[:, :, wide_width:] = numbers
            return cls(plain, None, numbers)
        wide = [sparse.csr_matrix(own.wide) for own in each]
        counts = [np.pad(np.diff(own.indptr), (0, rows - own.shape[0])) for own in wide]
        ends = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int32)
        indices = np.concatenate([own.indices + place * width for place, own in enumerate(wide)]).astype(np.int32)
        shape = (len(each) * rows, len(each) * width)
        blocks = sparse.csr_matrix((np.concatenate([own.data for own in wide]), indices, ends), shape=shape)
        times = np.bincount(indices, minlength=shape[1])
        times[indices[blocks.data != 1.0]] = times[::width] = 0  # a row may have several missing cells
        columns = np.flatnonzero(times > 0.5 * rows)
        if (2 * times[columns] - rows).sum() < 0.25 * len(indices):  # little to save
            columns = columns[:0]
        usual = sparse.csr_matrix((np.ones(len(columns)), (columns // width, columns)), shape=(len(each), shape[1]))
        if len(columns):
            blocks = blocks - sparse.kron(usual, np.ones((rows, 1)), format="csr")
            blocks.eliminate_zeros()
        return cls(None, blocks, numbers, usual)

    def product(self, coefficients: np.ndarray) -> np.ndarray:
        if self.blocks is None:
            return np.asarray(self.plain @ coefficients)
        problems, width, columns = coefficients.shape
        flat = coefficients.reshape(-1, columns)
        found = (self.blocks @ flat).reshape(problems, -1, columns) + (self.usual @ flat)[:, None]
        return np.asarray(found + self.numbers @ coefficients[:, width - self.numbers.shape[2] :])

    def transposed_product(self, residuals: np.ndarray) -> np.ndarray:
        if self.blocks is None:
            return np.asarray(self.plain.mT @ residuals)
        problems, _, columns = residuals.shape
        found: np.ndarray = self.blocks.T @ residuals.reshape(-1, columns) + self.usual.T @ residuals.sum(axis=1)
        found = found.reshape(problems, -1, columns)
        found[:, found.shape[1] - self.numbers.shape[2] :] += self.numbers.mT @ residuals
        return found


# Tables of single columns and of pairs, concatenated.

CELLS_AT_ONCE = 1 << 18
"""Cells of rows that are looked up at a time."""


class Terms(Struct, frozen=True, eq=False, dict=True):
    """A term is a table over one or two `columns`; row 0 of the concatenated tables stands for missing cells."""

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
    def widths(self) -> np.ndarray:
        return np.diff(self._ends)

    @property
    def width(self) -> int:
        return int(self._ends[-1])

    @classmethod
    def single(cls, sizes: Sequence[int]) -> Terms:
        """A table for every column of at least two bins or categories."""
        return cls.of_columns((place for place, size in enumerate(sizes) if size > 1), sizes)

    @classmethod
    def of_columns(cls, columns: Iterable[int], sizes: Sequence[int]) -> Terms:
        return cls(tuple((column,) for column in columns), tuple(sizes))

    def select(self, places: Iterable[int]) -> tuple[Terms, np.ndarray]:
        """The terms at some places, and the rows of the concatenated tables that they keep, of missing cells first."""
        places = list(places)
        rows = np.concatenate([[0], *(np.arange(self._ends[k], self._ends[k + 1]) for k in places)]).astype(np.int64)
        return Terms(tuple(self.columns[k] for k in places), self.sizes), rows

    def count_cells(self, codes: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> np.ndarray:
        """(cells x classes) weight of the rows in each cell, 0 for missing cells."""
        places = self.places(codes)
        cells = (places * classes + labels[:, None]).ravel()
        counts = np.bincount(cells, np.repeat(weights, places.shape[1]), self.width * classes)
        counts = counts.reshape(self.width, classes)
        counts[0] = 0.0
        return counts

    def places(self, codes: np.ndarray) -> np.ndarray:
        """(rows x terms) rows of the tables."""
        return self.indicators(codes).places.T

    def indicators(self, codes: np.ndarray) -> Indicators:
        """(rows x width) ones; the product with the tables is the sum over the terms."""
        turned = np.ascontiguousarray(codes.T, dtype=np.intp)
        found = np.empty((len(self.columns), len(codes)), dtype=np.intp)
        step = max(1, CELLS_AT_ONCE // max(1, len(codes)))
        for width in (1, 2):
            every = [place for place, term in enumerate(self.columns) if len(term) == width]
            for start in range(0, len(every), step):
                some = every[start : start + step]
                terms, offsets = [self.columns[place] for place in some], self.offsets[some][:, None] - 1
                first = turned[[term[0] for term in terms]]
                if width == 1:
                    found[some] = np.where(first > 0, first + offsets, 0)
                    continue
                second, across = (
                    turned[[term[1] for term in terms]],
                    np.array([[self.sizes[term[1]]] for term in terms]),
                )
                found[some] = np.where((first > 0) & (second > 0), (first - 1) * across + second + offsets, 0)
        return Indicators(found, self.width)


# Counts of all pairs of cells per class, by one product for all pairs of columns.

PAIR_CELLS_AT_ONCE = 1 << 20
"""Cells of dense rows that are multiplied at a time."""
WIDE = 5
"""Cells per column from which counting pair by pair is faster than one product of all cells."""
MOST_SHORT = 1 << 24
"""Counts up to which float32 is exact."""


class PairCounts(Struct, frozen=True, eq=False):
    """(classes x cells x cells) weight of the rows that hold both cells; on the diagonal blocks, of each cell.

    The cells are those of the tables of single columns; the first, of missing cells, counts nothing.
    """

    terms: Terms
    counts: Annotated[np.ndarray, Floats(("classes", "terms.width", "terms.width"), least=0.0)]

    @classmethod
    def of(cls, terms: Terms, codes: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> PairCounts:
        counts = np.zeros((classes, terms.width, terms.width))
        if terms.width > WIDE * len(terms.columns):  # pair by pair
            heavy = None if (weights == 1).all() else weights
            cells = np.ascontiguousarray(codes.T, dtype=np.int64)
            columns = [column for (column,) in terms.columns]
            for place, first in enumerate(columns):
                width = terms.sizes[first] + 1
                base, start = labels * width + cells[first], terms.offsets[place]
                for other, second in enumerate(columns[: place + 1]):
                    across, offset = terms.sizes[second] + 1, terms.offsets[other]
                    flat = np.bincount(base * across + cells[second], heavy, len(counts) * width * across)
                    own = flat.reshape(-1, width, across)[:, 1:, 1:]
                    counts[:, start : start + width - 1, offset : offset + across - 1] = own
                    counts[:, offset : offset + across - 1, start : start + width - 1] = own.transpose(0, 2, 1)
            return cls(terms, counts)
        # All pairs by the product of each class's rows with themselves, in float32 if that is exact.
        whole = float(weights.sum()) < MOST_SHORT and bool((weights == np.floor(weights)).all())
        step = max(256, PAIR_CELLS_AT_ONCE // terms.width)
        order = np.argsort(labels, kind="stable")
        ends = np.searchsorted(labels[order], np.arange(classes + 1))
        for label, sums in enumerate(counts):
            for a in range(ends[label], ends[label + 1], step):
                rows = order[a : min(a + step, ends[label + 1])]
                ones = np.zeros((len(rows), terms.width), dtype=np.float32 if whole else np.float64)
                ones[np.arange(len(rows))[:, None], terms.places(codes[rows])] = 1.0
                sums += (ones * weights[rows, None].astype(ones.dtype)).T @ ones
        counts[:, 0] = 0.0
        counts[:, :, 0] = 0.0
        return cls(terms, counts)

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(self.terms, self.counts + other.counts)

    def select(self, places: Sequence[int]) -> PairCounts:
        """The counts of some of the columns, by their places."""
        terms, cells = self.terms.select(places)
        return PairCounts(terms, self.counts[:, cells[:, None], cells])

    def information(self) -> tuple[np.ndarray, np.ndarray]:
        """(columns x columns) mutual information times weight: within the classes, and ignoring them.

        Each is less its expectation under independence: half a nat per degree of freedom.
        """
        within = sum((_mutual_information(own, self.terms.offsets) for own in self.counts), np.zeros(()))
        return np.asarray(within), _mutual_information(self.counts.sum(axis=0), self.terms.offsets)


def _mutual_information(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    rows = _sum_blocks(counts, starts)
    found, some = np.zeros(counts.shape), counts.ravel().nonzero()[0]
    own = counts.ravel()[some]
    found.ravel()[some] = own * np.log(own)
    cells, both = _sum_blocks(found, starts), times_log(rows)
    margins = np.add.reduceat(counts, starts, axis=1)  # (cells x columns)
    sides = np.add.reduceat(times_log(margins), starts, axis=0)
    filled = np.add.reduceat((margins > 0).astype(float), starts, axis=0)
    free = np.maximum(filled - 1, 0) * np.maximum(filled.T - 1, 0)
    return np.asarray(cells - sides - sides.T + both - free / 2)


def _sum_blocks(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.asarray(np.add.reduceat(np.add.reduceat(counts, starts, axis=0), starts, axis=1))
