"""Tables of single columns and of pairs, laid end to end: which row of which table each cell of a row points at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from softcount.classify.indicators import Indicators
from softcount.records import dataclass

AT_ONCE = 1 << 18
"""Cells of rows that are looked up at a time."""


@dataclass(frozen=True, eq=False)
class Terms:
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
        step = max(1, AT_ONCE // max(1, len(codes)))
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
