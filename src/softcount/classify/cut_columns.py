"""All columns as codes: levels as they are, numbers cut where the classes change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softcount.classify.encoded_rows import FEW_VALUES, EncodedRows
from softcount.table.cuts import by_class


@dataclass(frozen=True, slots=True, eq=False)
class CutColumns:
    """Cuts of every number, and how many intervals or levels each column has."""

    edges: tuple[np.ndarray, ...]
    sizes: tuple[int, ...]

    @classmethod
    def learned(cls, rows: EncodedRows, labels: np.ndarray, weights: np.ndarray, levels: tuple[int, ...]) -> CutColumns:
        """Cuts by Fayyad and Irani's rule from rows of known class; a number that no cut divides has one interval."""
        classes = int(labels.max(initial=0)) + 1
        edges = tuple(_cuts(column, labels, weights, classes) for column in rows.numbers.T)
        return cls(edges, (*(len(cuts) + 1 for cuts in edges), *levels))

    @classmethod
    def by_value(cls, rows: EncodedRows, measured: int, levels: tuple[int, ...]) -> CutColumns:
        """No cut through the first so many numbers, and between any two values of the others."""
        values = [np.unique(column[~np.isnan(column)]) for column in rows.numbers.T[measured:]]
        edges = (*(np.zeros(0) for _ in range(measured)), *(_between(own) for own in values))
        return cls(edges, (*(len(cuts) + 1 for cuts in edges), *levels))

    def codes(self, rows: EncodedRows) -> np.ndarray:
        """(rows x columns) code of each cell from 1, 0 where nothing is known."""
        cut = [
            np.where(np.isnan(column), 0, np.searchsorted(edges, column, side="left") + 1)
            for edges, column in zip(self.edges, rows.numbers.T, strict=True)
        ]
        return np.hstack([np.array(cut, dtype=np.int32).T, rows.codes]) if cut else rows.codes


def _cuts(column: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> np.ndarray:
    known = ~np.isnan(column)
    values = np.unique(column[known])
    if len(values) <= FEW_VALUES:
        return _between(values)
    return by_class(column[known], labels[known], weights[known], classes)


def _between(values: np.ndarray) -> np.ndarray:
    """Half-way between neighbours."""
    return np.asarray(values[:-1] + np.diff(values) / 2)
