"""How often every two cells of a row come together in every class: one product for all pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.classify.terms import Terms
from softcount.numerics.logspace import times_log
from softcount.records import dataclass

AT_ONCE = 1 << 20
"""Cells of dense rows that are multiplied at a time."""
WIDE = 5
"""Cells a column from which tables of pairs one by one are made sooner than by a product of all cells."""
MOST_SHORT = 1 << 24
"""Rows up to which a float of half the length counts exactly."""


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
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
            _tabulate(counts, terms, codes, labels, weights)
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
    step = max(256, AT_ONCE // terms.width)
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


def _tabulate(counts: np.ndarray, terms: Terms, codes: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> None:
    """One table after the other, where few columns have many cells."""
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


def _shared(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(columns x columns) weight times the mutual information of two columns, less that of chance."""
    rows = _blocks(counts, starts)
    cells, both = _blocks(_times_log(counts), starts), times_log(rows)
    margins = np.add.reduceat(counts, starts, axis=1)  # (cells x columns)
    sides = np.add.reduceat(times_log(margins), starts, axis=0)
    filled = np.add.reduceat((margins > 0).astype(float), starts, axis=0)
    free = np.maximum(filled - 1, 0) * np.maximum(filled.T - 1, 0)
    return np.asarray(cells - sides - sides.T + both - free / 2)


def _times_log(counts: np.ndarray) -> np.ndarray:
    """Each count times its logarithm, where most are nought."""
    found, some = np.zeros(counts.shape), counts.ravel().nonzero()[0]
    own = counts.ravel()[some]
    found.ravel()[some] = own * np.log(own)
    return found


def _blocks(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.asarray(np.add.reduceat(np.add.reduceat(counts, starts, axis=0), starts, axis=1))
