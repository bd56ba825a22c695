"""Counts of coded columns one after another, each with room for its own codes and no more.

Side by side, every column would take as much room as the widest: 300 columns of four levels beside one of 250 took
1,100 MB more than alone.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from softcount.numerics.twofold import Twofold


class Ragged(Twofold):
    """Counts (groups x cells): column j owns `sizes[j]` neighbouring cells, one for each of its codes.

    Where two are added, classes and codes that only one of them has met make room.
    """

    __slots__ = ("sizes",)

    def __init__(self, hi: np.ndarray, lo: np.ndarray, sizes: tuple[int, ...]) -> None:
        super().__init__(hi, lo)
        self.sizes = sizes

    def __reduce__(self) -> Any:
        return Ragged, (self.hi, self.lo, self.sizes)

    def alike(self, hi: np.ndarray, lo: np.ndarray) -> Self:
        return type(self)(hi, lo, self.sizes)

    @property
    def starts(self) -> np.ndarray:
        return starts_of(self.sizes)

    def column(self, j: int) -> Twofold:
        """(groups x codes) of one column."""
        start = sum(self.sizes[:j])
        return self[:, start : start + self.sizes[j]]

    def joined(self, other: Ragged) -> Ragged:
        groups = max(self.shape[0], other.shape[0])
        sizes = self.sizes
        if sizes != other.sizes:
            sizes = tuple(max(pair) for pair in zip(sizes, other.sizes, strict=True))
        both = self.grown(groups, sizes) + other.grown(groups, sizes)
        return Ragged(both.hi, both.lo, sizes)

    def grown(self, groups: int, sizes: tuple[int, ...]) -> Twofold:
        """The same counts among so many groups, with room for so many codes of every column."""
        if groups == self.shape[0] and sizes == self.sizes:
            return self
        own = np.arange(sum(self.sizes)) + np.repeat(starts_of(sizes) - self.starts, self.sizes)
        hi, lo = np.zeros((2, groups, sum(sizes)))
        hi[: self.shape[0], own], lo[: self.shape[0], own] = self.hi, self.lo
        return Twofold(hi, lo)

    def recoded(self, moves: list[np.ndarray | None]) -> Ragged:
        """The same where code c of column j has become `moves[j][c]`; codes of a column without moves stay."""
        tops = [0 if move is None else int(move.max(initial=0)) + 1 for move in moves]
        sizes = tuple(map(max, self.sizes, tops))
        hi, lo = np.zeros((2, self.shape[0], sum(sizes)))
        for move, size, old, new in zip(moves, self.sizes, self.starts, starts_of(sizes), strict=True):
            own = np.arange(size) if move is None else move[:size]
            hi[:, new + own] = self.hi[:, old : old + len(own)]
            lo[:, new + own] = self.lo[:, old : old + len(own)]
        return Ragged(hi, lo, sizes)

    def side_by_side(self, columns: np.ndarray, first: int, width: int) -> Twofold:
        """(groups x columns x width) of some columns from code `first` on, zeros where nothing that far was met."""
        sizes = np.array(self.sizes)[columns]
        codes = np.arange(first, first + width)
        cells = self.starts[columns][:, None] + codes
        met = codes < sizes[:, None]
        if met.all():
            return self.take(cells, 1)
        hi, lo = np.zeros((2, self.shape[0], len(columns), width))
        hi[:, met], lo[:, met] = self.hi[:, cells[met]], self.lo[:, cells[met]]
        return Twofold(hi, lo)


def starts_of(sizes: tuple[int, ...] | list[int]) -> np.ndarray:
    """The first cell of each column when columns follow each other."""
    return np.cumsum([0, *sizes[:-1]], dtype=np.int64)
