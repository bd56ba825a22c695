"""All columns as codes: levels as they are, numbers cut where the classes change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softcount.classify.encoded_rows import FEW_VALUES, EncodedRows
from softcount.records import dataclass
from softcount.table.cuts import PointTable, by_class_each, equal_count

ROWS_AN_INTERVAL, LEAST_INTERVALS, MOST_INTERVALS = 80, 4, 10
"""How finely numbers are cut that are looked at in pairs."""


@dataclass(frozen=True, slots=True, eq=False)
class CutColumns:
    """Cuts of every number, and how many intervals or levels each column has."""

    edges: tuple[np.ndarray, ...]
    sizes: tuple[int, ...]

    @classmethod
    def learned(cls, rows: EncodedRows, labels: np.ndarray, weights: np.ndarray, levels: tuple[int, ...]) -> CutColumns:
        """Cuts by Fayyad and Irani's rule from rows of known class; a number that no cut divides has one interval."""
        classes = int(labels.max(initial=0)) + 1
        edges = _cuts([_points(column, labels, weights, classes) for column in rows.numbers.T])
        return cls(edges, (*(len(cuts) + 1 for cuts in edges), *levels))

    def finer(self, rows: EncodedRows, weights: np.ndarray) -> CutColumns:
        """The same with numbers of few intervals in parts of equal weight: alone they say little, together perhaps not.

        The number itself where no number gains by it.
        """
        wanted = min(int(weights.sum()) // ROWS_AN_INTERVAL, MOST_INTERVALS)
        if wanted < LEAST_INTERVALS:
            return self
        edges = tuple(
            _finer(column, weights, own, wanted) for column, own in zip(rows.numbers.T, self.edges, strict=True)
        )
        if all(new is old for new, old in zip(edges, self.edges, strict=True)):
            return self
        return replace(self, edges=edges, sizes=(*(len(cuts) + 1 for cuts in edges), *self.sizes[len(edges) :]))

    @classmethod
    def by_value(cls, rows: EncodedRows, measured: int, levels: tuple[int, ...]) -> CutColumns:
        """No cut through the first so many numbers, and between any two values of the others."""
        values = [np.unique(column[~np.isnan(column)]) for column in rows.numbers.T[measured:]]
        edges = (*(np.zeros(0) for _ in range(measured)), *(between(own) for own in values))
        return cls(edges, (*(len(cuts) + 1 for cuts in edges), *levels))

    def codes(self, rows: EncodedRows) -> np.ndarray:
        """(rows x columns) code of each cell from 1, 0 where nothing is known."""
        return rows.remembered((self,), lambda: self._coded(rows))

    def _coded(self, rows: EncodedRows) -> np.ndarray:
        cut = [
            np.where(np.isnan(column), 0, np.searchsorted(edges, column, side="left") + 1)
            for edges, column in zip(self.edges, rows.numbers.T, strict=True)
        ]
        return np.hstack([np.array(cut, dtype=np.int32).T, rows.codes]) if cut else rows.codes


def _points(column: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> PointTable:
    known = np.flatnonzero(~np.isnan(column))
    return PointTable.of(column[known], labels[known], weights[known], classes)


def _cuts(columns: Sequence[PointTable]) -> tuple[np.ndarray, ...]:
    """Between any two of few values, else where the classes change."""
    many = iter(by_class_each([own for own in columns if len(own.distinct) > FEW_VALUES]))
    return tuple(next(many) if len(own.distinct) > FEW_VALUES else between(own.distinct) for own in columns)


def _finer(column: np.ndarray, weights: np.ndarray, edges: np.ndarray, wanted: int) -> np.ndarray:
    known = ~np.isnan(column)
    if len(edges) + 1 >= wanted or not known.any():
        return edges
    found = equal_count(column[known], weights[known], wanted)
    return found if len(found) > len(edges) else edges


def between(values: np.ndarray) -> np.ndarray:
    """Half-way between neighbours."""
    return np.asarray(values[:-1] + np.diff(values) / 2)
