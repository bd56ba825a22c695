"""Counts of any few nodes over rows of codes: what scores, trees and tests of independence are made of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, Protocol

import numpy as np

from softcount.errors import DataError, ResourceError
from softcount.numerics.late_scipy import sparse

ROOM = 1 << 27
"""Cells of the largest table that is counted."""
KEPT = 1 << 22
"""Cells of tables that are kept for the next time they are asked for."""
BLOCK = 1 << 24
"""Indicators, or cells of tables side by side, that are made at once."""
SMALL = 1 << 17
"""Cells times rows that are multiplied as they are: sparse matrices must be loaded, and gain nothing there."""
SIDE_BY_SIDE = 32
"""Levels a node, on average, beyond which indicators cost more than counting one node after the other."""


class Counting(Protocol):
    """What the search for a structure asks of rows; expected or reweighted counts can stand for those seen."""

    sizes: tuple[int, ...]
    """Levels of every node."""

    def counts(self, axes: Sequence[int]) -> np.ndarray:
        """The weight of rows by their levels of some nodes, an axis each; of no node, the weight of all rows."""
        ...

    def with_each(self, axes: Sequence[int], others: Sequence[int]) -> np.ndarray:
        """Counts of the axes with one other node at a time: (cells of the axes x levels of all others, side by side).

        Who can count several at once says how; this way asks for one after the other.
        """
        rows = prod(self.sizes[axis] for axis in axes)
        return np.concatenate([self.counts((*axes, other)).reshape(rows, -1) for other in others], axis=1)


class CodeCounts(Counting):
    """Counts over rows of codes, each with a weight; a row with a hole in the axes is left out of that count.

    Rows that are the same are put together once so much is asked that it pays.

    >>> rows = CodeCounts(np.array([[0, 1], [0, 1], [1, 0], [1, -1]]), sizes=(2, 2))
    >>> rows.counts((0, 1)).tolist(), rows.counts([0]).tolist(), float(rows.counts([]))
    ([[0.0, 2.0], [1.0, 0.0]], [2.0, 2.0], 4.0)
    """

    def __init__(self, codes: np.ndarray, sizes: Sequence[int], weights: np.ndarray | None = None) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)
        self._levels = [np.arange(start, end) for start, end in pairwise(self._starts)]
        self._kept: OrderedDict[tuple[int, ...], np.ndarray] = OrderedDict()
        self._kept_cells = 0
        self._tables = 0
        self._first: np.ndarray | None = None
        self._take(_checked(codes, self.sizes), _checked_weights(weights, len(codes)))

    def _take(self, codes: np.ndarray, weights: np.ndarray) -> None:
        there = weights > 0
        self._columns = np.array((codes if there.all() else codes[there]).T, order="C")
        self._weights = weights[there]
        self._holes = self._columns.min(axis=1, initial=0) < 0

    @cached_property
    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows that differ, in an order that depends on what they hold alone, and their weights."""
        self._take(*_distinct(self._columns.T, self._weights))
        return self._columns.T, self._weights

    def reweighted(self, weights: np.ndarray) -> CodeCounts:
        """The rows of `distinct` with other weights; what has none is left out."""
        found = CodeCounts(self.distinct[0], self.sizes, weights)
        found.distinct = found._columns.T, found._weights
        return found

    def counts(self, axes: Sequence[int]) -> np.ndarray:
        """As in `Counting`; not to be written to, because it is kept."""
        key = tuple(sorted(axes))
        if key not in self._kept:
            self._tables += 1
            if self._tables > len(self.sizes):
                self.distinct  # noqa: B018 - from here on, rows that are the same are counted once
            self._keep(key, self._count(key))
        self._kept.move_to_end(key)
        return self._kept[key].transpose([key.index(axis) for axis in axes])

    def _keep(self, key: tuple[int, ...], table: np.ndarray) -> None:
        table.flags.writeable = False
        self._kept[key] = table
        self._kept_cells += table.size
        while len(self._kept) > 1 and self._kept_cells > KEPT:
            self._kept_cells -= self._kept.popitem(last=False)[1].size

    def _count(self, axes: tuple[int, ...]) -> np.ndarray:
        shape = tuple(self.sizes[axis] for axis in axes)
        cells = _within_room(prod(shape), axes)
        found = np.bincount(self._cells(axes, slice(None)), self._weights, cells + 1)
        return found[:cells].reshape(shape)

    def _cells(self, axes: Sequence[int], rows: slice) -> np.ndarray:
        """The cell of the axes that each row falls into; one more than the last where something was not seen."""
        cell = np.zeros(self._weights[rows].size, dtype=np.intp)
        for axis in axes:
            cell *= self.sizes[axis]
            cell += self._columns[axis, rows]
        for axis in axes:
            if self._holes[axis]:
                cell[self._columns[axis, rows] < 0] = prod(self.sizes[axis] for axis in axes)
        return cell

    def with_each(self, axes: Sequence[int], others: Sequence[int]) -> np.ndarray:
        """As in `Counting`, in one pass: indicators of the axes' cells times indicators of the levels of all nodes."""
        cells, levels = prod(self.sizes[axis] for axis in axes), int(self._starts[-1])
        if levels > SIDE_BY_SIDE * len(self.sizes) or cells * levels > BLOCK:
            return super().with_each(axes, others)
        self.distinct  # noqa: B018 - rows that are the same are counted once
        places = np.concatenate([self._levels[node] for node in others])
        if len(axes) == 1 and levels * levels <= BLOCK:
            start = self._starts[axes[0]]
            return self._pairs[start : start + cells, places]
        return self._product(axes, cells)[:, places]

    def _product(self, axes: Sequence[int], cells: int) -> np.ndarray:
        found = np.zeros((cells, int(self._starts[-1])))
        for rows, shown in self._indicators():
            cell = self._cells(axes, rows)
            weights = self._weights[rows].astype(shown.dtype)
            found += (_members(cell, weights, cells + 1) @ shown)[:-1]
        return found

    @cached_property
    def _pairs(self) -> np.ndarray:
        """The counts of all pairs of nodes, each by its levels."""
        found = np.zeros((self._starts[-1], self._starts[-1]))
        for rows, shown in self._indicators():
            found += shown.T @ (shown * self._weights[rows, None].astype(shown.dtype))
        return found

    def _indicators(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Which levels the rows show, rows x levels of all nodes, in portions; the first is kept."""
        step = max(1, BLOCK // int(self._starts[-1]))
        for start in range(0, self._weights.size, step):
            rows = slice(start, start + step)
            if start:
                yield rows, self._shown(rows)
            else:
                self._first = self._shown(rows) if self._first is None else self._first
                yield rows, self._first

    def _shown(self, rows: slice) -> np.ndarray:
        # Single floats hold whole numbers up to 2^24, and are twice as quick.
        whole = self._weights.sum() < 2**24 and bool((self._weights == np.floor(self._weights)).all())
        codes = self._columns[:, rows].T
        shown = np.zeros((len(codes), int(self._starts[-1])), dtype=np.float32 if whole else np.float64)
        row, node = np.nonzero(codes >= 0)
        shown[row, self._starts[node] + codes[row, node]] = 1
        return shown


def _members(cell: np.ndarray, weights: np.ndarray, cells: int) -> Any:
    """(cells x rows): the weight of each row in the cell it falls into; few rows need no sparse matrix."""
    if cells * cell.size > SMALL:
        return sparse.csc_array((weights, cell, np.arange(cell.size + 1)), (cells, cell.size))
    found = np.zeros((cells, cell.size), dtype=weights.dtype)
    found[cell, np.arange(cell.size)] = weights
    return found


def _checked(codes: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Codes in the smallest type that holds them."""
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.dtype.kind not in "iu" or codes.shape[1] != len(sizes):
        raise DataError(
            f"codes are whole numbers, rows x {len(sizes)} nodes, not {codes.dtype} of shape {codes.shape}."
        )
    if min(sizes, default=1) < 1:
        raise DataError(f"node {sizes.index(min(sizes))} has no level; a node has at least one.")
    bad = (codes < -1) | (codes >= np.array(sizes))
    if bad.any():
        row, node = np.argwhere(bad)[0]
        raise DataError(
            f"node {node} has {sizes[node]} levels, but row {row} holds {codes[row, node]}."
            f" Codes are 0 to {sizes[node] - 1}, or -1 where the cell was not seen."
        )
    return codes.astype(np.min_scalar_type(-max(sizes, default=1)), copy=False)


def _checked_weights(weights: np.ndarray | None, rows: int) -> np.ndarray:
    if weights is None:
        return np.ones(rows)
    found = np.asarray(weights, dtype=float)
    if found.shape != (rows,):
        raise DataError(f"there are {rows} rows, but weights of shape {found.shape}.")
    if not (np.isfinite(found) & (found >= 0)).all():
        row = int(np.flatnonzero(~(np.isfinite(found) & (found >= 0)))[0])
        raise DataError(f"the weight of row {row} is {found[row]}; weights are finite and not below zero.")
    return found


def _distinct(codes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows that differ, each with the weight of all like it."""
    _, first, like = np.unique(_marks(codes), return_index=True, return_inverse=True)
    if not np.array_equal(codes[first][like], codes):  # different rows of one mark: all stay as they are
        return codes, weights
    return codes[first], np.bincount(like, weights, len(first))


def _marks(codes: np.ndarray) -> np.ndarray:
    """A number for every row, the same for rows that are the same, and hardly ever for others."""
    factors = np.random.default_rng(1).integers(0, 2**64, (codes.shape[1],), dtype=np.uint64)
    found = np.zeros(len(codes), dtype=np.uint64)
    for column, factor in zip(codes.T, factors | np.uint64(1), strict=True):
        found += (column.astype(np.int64) + 1).astype(np.uint64) * factor
    return found


def _within_room(cells: int, axes: Sequence[int]) -> int:
    if cells > ROOM:
        raise ResourceError(f"a table of the nodes {', '.join(map(str, axes))} would have {cells:,} cells.")
    return cells
