"""All tables of a network in one array, and numbers for lists that are alike: what plans over many rows are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.networks.elimination import Scope
from softcount.records import dataclass

BLOCK = 2**20
"""Numbers worked out at once, where many are."""


@dataclass(frozen=True)
class FlatTables:
    """Where the cells of every scope stand: tables that all rows share first, then those with a part for every row.

    `members` and `strides` are (scopes x widest), padded with a stride of nothing.
    """

    members: np.ndarray
    strides: np.ndarray
    starts: np.ndarray
    by_row: np.ndarray
    """Cells of one row's part; 0 where all rows share the table."""
    shared: int
    """Cells of all shared tables, which come first."""

    @classmethod
    def of(cls, sizes: Sequence[int], families: Sequence[Scope], extras: Sequence[Scope], rows: int) -> FlatTables:
        scopes = [*families, *extras]
        width = max(map(len, scopes))
        members, strides = np.zeros((2, len(scopes), width), np.int64)
        cells = np.empty(len(scopes), np.int64)
        for at, scope in enumerate(scopes):
            shape = [sizes[node] for node in scope]
            members[at, : len(scope)] = scope
            strides[at, : len(scope)] = np.cumprod([1, *shape[:0:-1]])[::-1]
            cells[at] = np.prod(shape, dtype=np.int64)
        by_row = np.where(np.arange(len(scopes)) < len(families), 0, cells)
        starts = np.concatenate([[0], np.cumsum(np.where(by_row == 0, cells, by_row * rows))])
        return cls(members, strides, starts, by_row, int(starts[len(families)]))

    @property
    def scopes(self) -> int:
        return len(self.members)

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    def cells_at(self, codes: np.ndarray, rows: np.ndarray, scopes: np.ndarray) -> np.ndarray:
        """The cell of each row's codes in each scope, row for row; what was not seen (-1) counts as level 0."""
        found: np.ndarray = self.starts[scopes] + self.by_row[scopes] * rows
        for member in range(self.members.shape[1]):
            code = codes[rows, self.members[scopes, member]]
            found += np.maximum(code, 0) * self.strides[scopes, member]
        return found

    def cells_in(self, columns: np.ndarray, rows: np.ndarray, scope: int) -> np.ndarray:
        """The same for one scope, from codes by node (nodes x rows)."""
        found: np.ndarray = self.starts[scope] + self.by_row[scope] * rows
        for node, stride in zip(self.members[scope], self.strides[scope], strict=True):
            if stride:
                found += np.maximum(columns[node].take(rows), 0) * stride
        return found

    def touched_by(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Every (node, scope, stride) of a scope's own nodes, by node."""
        real = self.strides > 0
        scope = np.broadcast_to(np.arange(self.scopes)[:, None], real.shape)[real]
        node = self.members[real]
        by_node = np.argsort(node, kind="stable")
        return node[by_node], scope[by_node], self.strides[real][by_node]


def positions(starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For runs that begin at `starts`: which run each place belongs to, and the place, run after run.

    >>> [x.tolist() for x in positions(np.array([5, 0]), np.array([2, 3]))]
    [[0, 0, 1, 1, 1], [5, 6, 0, 1, 2]]
    """
    run = np.repeat(np.arange(len(lengths)), lengths)
    before = np.cumsum(lengths) - lengths
    return run, np.arange(len(run)) + (starts - before)[run]


def in_blocks(which: np.ndarray, costs: np.ndarray) -> list[np.ndarray]:
    """The same numbers in order, so many at a time that together they cost about `BLOCK`, or one alone more."""
    if not len(which):
        return []
    block = np.cumsum(costs) // BLOCK
    return np.split(which, np.flatnonzero(np.diff(block)) + 1)


def runs(lengths: np.ndarray) -> np.ndarray:
    """Where each of several runs begins, and the end of the last."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def number_alike(key: np.ndarray, starts: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lists of whole numbers numbered so that equal ones (and their keys) have one number; and one list of each number.

    List i is `values[starts[i] : starts[i + 1]]`.

    >>> lists = np.array([0, 2, 3, 5]), np.array([7, 1, 7, 7, 1])
    >>> [x.tolist() for x in number_alike(np.zeros(3, int), *lists)]
    [[1, 0, 1], [1, 0]]
    """
    lengths = np.diff(starts)
    key, radix = key.astype(np.int64), int(values.max(initial=0)) + 2
    room, live = int(key.max(initial=0)) + 1, np.arange(len(key))
    for place in range(int(lengths.max(initial=0))):
        live = live[lengths[live] > place]
        if room * radix >= 2**62:
            key = np.unique(key, return_inverse=True)[1]
            room = int(key.max()) + 1
        key = key * radix
        key[live] += values[starts[live] + place] + 1
        room *= radix
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return number, first
