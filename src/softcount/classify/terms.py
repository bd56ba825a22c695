"""Tables of single columns and of pairs, laid end to end: which row of which table each cell of a row points at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from softcount.classify.indicators import Indicators
from softcount.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """`columns` are those of each term, one or two; row 0 of the tables is for what nothing is known of."""

    columns: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]  # of all columns
    offsets: np.ndarray = field(init=False)
    width: int = field(init=False)

    def __post_init__(self) -> None:
        cells = [math.prod(self.sizes[column] for column in term) for term in self.columns]
        ends = np.cumsum([1, *cells])
        object.__setattr__(self, "offsets", ends[:-1])
        object.__setattr__(self, "width", int(ends[-1]))

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
        single = [place for place, term in enumerate(self.columns) if len(term) == 1]
        pairs = [place for place, term in enumerate(self.columns) if len(term) == 2]
        found = np.zeros((len(self.columns), len(codes)), dtype=np.intp)
        if single:
            own = turned[[self.columns[place][0] for place in single]]
            found[single] = np.where(own > 0, own + (self.offsets[single] - 1)[:, None], 0)
        if pairs:
            first, second = (turned[[self.columns[place][side] for place in pairs]] for side in (0, 1))
            across = np.array([self.sizes[self.columns[place][1]] for place in pairs])
            both = first * across[:, None] + second + (self.offsets[pairs] - 1 - across)[:, None]
            found[pairs] = np.where((first > 0) & (second > 0), both, 0)
        return Indicators(found, self.width)
