"""How often every two cells of a row come together in every class: one product for all pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.classify.terms import Terms
from softcount.numerics.logspace import times_log
from softcount.records import dataclass

AT_ONCE = 1 << 20
"""Cells of dense rows that are multiplied at a time."""


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
        step = max(256, AT_ONCE // terms.width)
        order = np.argsort(labels, kind="stable")
        for label in range(classes):
            own = order[np.searchsorted(labels[order], label) : np.searchsorted(labels[order], label, side="right")]
            for a in range(0, len(own), step):
                rows = own[a : a + step]
                cells = terms.indicators(codes[rows]).first(terms.width)
                counts[label] += (cells * weights[rows, None]).T @ cells
        counts[:, 0] = 0.0
        counts[:, :, 0] = 0.0
        return cls(terms, counts)

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(self.terms, self.counts + other.counts)

    def some(self, places: Sequence[int]) -> PairCounts:
        """Those of some of the columns, by their places among these."""
        kept = self.cells(places)
        terms = Terms(tuple(self.terms.columns[k] for k in places), self.terms.sizes)
        return PairCounts(terms, self.counts[:, kept[:, None], kept])

    def cells(self, places: Sequence[int]) -> np.ndarray:
        """The cells of some of the columns, after the first, which is of none."""
        ends = [*self.starts, self.terms.width]
        return np.concatenate([[0], *(np.arange(ends[k], ends[k + 1]) for k in places)]).astype(np.int64)

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


def _shared(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(columns x columns) weight times the mutual information of two columns, less that of chance."""
    rows = _blocks(counts, starts)
    cells, both = _blocks(times_log(counts), starts), times_log(rows)
    margins = np.add.reduceat(counts, starts, axis=1)  # (cells x columns)
    sides = np.add.reduceat(times_log(margins), starts, axis=0)
    filled = np.add.reduceat((margins > 0).astype(float), starts, axis=0)
    free = np.maximum(filled - 1, 0) * np.maximum(filled.T - 1, 0)
    return np.asarray(cells - sides - sides.T + both - free / 2)


def _blocks(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.asarray(np.add.reduceat(np.add.reduceat(counts, starts, axis=0), starts, axis=1))
