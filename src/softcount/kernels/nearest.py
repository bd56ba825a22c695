"""The nearest centre of every row, and the sums of rows that changed their centre, in NumPy, also for sparse rows.

A row's label is the centre with the lowest squared distance, summed column by column in float64; ties go to the first.
Matrix products only narrow the choice: if they leave two centres within rounding, the distances decide. All
implementations therefore give the same labels: this one, and the compiled one with bounds, for any chunks and threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.core.lazy import sparse
from softcount.core.special import mixed
from softcount.kernels import Array

PointRows = Any
"""Rows x columns, dense in C order (float32 or float64) or compressed sparse rows."""

BLOCKED = False
"""Whether this kernel takes centres in blocks and keeps bounds."""
TILE = 1 << 18
"""Maximum number of distances computed together."""
WIDE = 256
"""Sparse rows with more columns than this stay sparse."""
NO_BLOCKS = np.zeros(0)


class State(NamedTuple):
    """The state of each row: its label (-1: none yet), its weight (an empty array: all one), and bounds.

    The plain kernel does not use the norms and the bounds.
    """

    labels: Array
    weights: Array
    norms: Array
    reach: Array
    margins: Array

    def part(self, start: int, stop: int) -> State:
        return State(*(values[start:stop] for values in self))


class Goal(NamedTuple):
    """The centres, in every form that a kernel needs.

    `near` holds the centres in the rows' precision, `across` has columns first, `half` is |centre|^2 / 2. `packed` has
    one register of centres per block. `drift` and `block_drift` are the distances that each centre and block have moved
    so far. `slack` is the rounding error of a squared distance relative to |row|^2 + `furthest`. `bounded` tells
    whether keeping bounds pays.
    """

    centres: Array
    near: Array
    across: Array
    half: Array
    packed: Array
    drift: Array
    block_drift: Array
    furthest: float
    slack: float
    tiny: float
    bounded: bool


class MovedCentres(NamedTuple):
    """Sums, weights and numbers of rows that centres gained, decrease of the cost, number of changed rows."""

    sums: Array
    mass: Array
    members: Array
    fall: float
    changed: int

    def __add__(self, other: MovedCentres) -> MovedCentres:  # type: ignore[override]
        sums, mass, members = self.sums + other.sums, self.mass + other.mass, self.members + other.members
        return MovedCentres(sums, mass, members, self.fall + other.fall, self.changed + other.changed)


def fresh_state(rows: int, dtype: np.dtype, blocks: int, weights: Array | None) -> State:
    return State(
        np.full(rows, -1, np.int64),
        np.zeros(0) if weights is None else weights,
        np.zeros(rows, dtype),
        np.zeros(rows, dtype),
        np.zeros((rows, blocks), dtype),
    )


def blocks_of(centres: int, dtype: np.dtype) -> int:
    """Return the number of register-wide blocks that the centres need.

    >>> blocks_of(64, np.dtype(np.float32)), blocks_of(3, np.dtype(np.float64))
    (4, 1)
    """
    return -(-centres // (64 // dtype.itemsize))


def goal_of(
    centres: Array, dtype: np.dtype, drift: Array | None = None, block_drift: Array = NO_BLOCKS, bounded: bool = False
) -> Goal:
    """Prepare centres for rows of a type. The drifts are the distances moved since the first iteration."""
    drift = np.zeros(len(centres)) if drift is None else drift
    squares = np.einsum("kj,kj->k", centres, centres)
    columns = centres.shape[1]
    # Products, sums and the rounding of centres each have an error of at most `columns` units; the sum of differences
    # too.
    unit = float(np.finfo(dtype).eps) / 2
    return Goal(
        centres, np.ascontiguousarray(centres, dtype), np.ascontiguousarray(centres.T), squares / 2,
        packed(centres, dtype, len(block_drift)), drift, block_drift, float(squares.max()),
        (4 * columns + 16) * unit, 8 * unit, bounded,
    )  # fmt: skip


def packed(centres: Array, dtype: np.dtype, blocks: int) -> Array:
    """Return (blocks, 1 + columns, width): |centre|^2 / 2, then minus each column. Empty lanes are infinitely far."""
    count, columns = centres.shape
    width = 64 // dtype.itemsize
    if not blocks:
        return np.zeros((0, 1 + columns, width), dtype)
    halves, minus = np.full(blocks * width, np.inf), np.zeros((blocks * width, columns))
    halves[:count] = np.einsum("kj,kj->k", centres, centres) / 2
    minus[:count] = -centres
    lines = minus.reshape(blocks, width, columns).transpose(0, 2, 1)
    return np.ascontiguousarray(np.concatenate([halves.reshape(blocks, 1, width), lines], axis=1), dtype)


def advance(rows: PointRows, state: State, goal: Goal) -> MovedCentres:
    """Give every row the label of its nearest centre and return the changes.

    For a row without a label, the cost increases by its squared distance.
    """
    count, columns = goal.centres.shape
    sums, mass, members = np.zeros((count, columns)), np.zeros(count), np.zeros(count, np.int64)
    fall, changed = 0.0, 0
    step = max(16, TILE // count)
    for start in range(0, rows.shape[0], step):
        tile, part = rows[start : start + step], state.part(start, start + step)
        after = nearest(tile, goal)
        moved = np.flatnonzero(after != part.labels)
        if len(moved):
            before, now = part.labels[moved], after[moved]
            weights = part.weights[moved] if len(part.weights) else np.ones(len(moved))
            falls = -spread(tile[moved], now, goal.centres)
            if (before >= 0).any():
                falls += np.where(before >= 0, spread(tile[moved], before, goal.centres), 0.0)
            fall += float(weights @ falls)
            _count(tile[moved], before, now, weights, (sums, mass, members))
            part.labels[moved] = now
            changed += len(moved)
    return MovedCentres(sums, mass, members, fall, changed)


def nearest(rows: PointRows, goal: Goal) -> Array:
    if is_wide(rows):
        return np.asarray(squares(rows, goal).argmin(axis=1))
    scores = goal.half - np.asarray(rows @ goal.near.T)
    labels: Array = scores.argmin(axis=1)
    least = scores[np.arange(len(labels)), labels]
    doubt = goal.slack * (squared_norms(rows) + goal.furthest)
    close = (scores <= (least + doubt)[:, None]).sum(axis=1) > 1
    unsure = np.flatnonzero(close)
    step = max(1, TILE // max(goal.centres.size, 1))
    for start in range(0, len(unsure), step):
        some = unsure[start : start + step]
        labels[some] = squares(rows[some], goal).argmin(axis=1)
    return labels


def is_wide(rows: PointRows) -> bool:
    """Return whether rows are sparse and too wide to be made dense. Narrow sparse rows get the labels of dense rows."""
    return bool(sparse.issparse(rows) and rows.shape[1] > WIDE)


def squares(rows: PointRows, goal: Goal) -> Array:
    """Return the squared distance of each row from each centre, added column by column in float64.

    Wide sparse rows use matrix products: a row of words has thousands of zeros for every non-zero cell.
    """
    if is_wide(rows):
        apart = squared_norms(rows)[:, None] - 2.0 * np.asarray(rows @ goal.across) + 2.0 * goal.half
        return np.maximum(apart, 0.0)
    dense = densely(rows)
    total = np.zeros((len(dense), len(goal.centres)))
    for column, line in zip(dense.T, goal.across, strict=True):
        total += (column[:, None] - line) ** 2
    return total


def squared_norms(rows: PointRows) -> Array:
    if sparse.issparse(rows):
        return _row_sums(np.square(rows.data, dtype=np.float64), rows)
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def densely(rows: PointRows) -> Array:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


def spread(rows: PointRows, labels: Array, centres: Array) -> Array:
    """Return the squared distance of each row from its own centre, by differences in float64."""
    if is_wide(rows):
        # Squared differences for stored cells, plus the centre's square over all other columns.
        at = centres[np.repeat(labels, np.diff(rows.indptr)), rows.indices]
        ends = np.einsum("kj,kj->k", centres, centres)[labels]
        return np.asarray(np.maximum(ends + _row_sums(np.square(rows.data - at) - np.square(at), rows), 0.0))
    out = np.empty(rows.shape[0])
    step = max(1, TILE // max(centres.shape[1], 1))
    for start in range(0, len(out), step):
        apart = densely(rows[start : start + step]) - centres[labels[start : start + step]]
        out[start : start + step] = np.einsum("ij,ij->i", apart, apart)
    return out


def _row_sums(cells: Array, like: PointRows) -> Array:
    """Return the sum of each row of `cells`, which are stored like the data of the sparse matrix `like`."""
    return np.asarray(sparse.csr_matrix((cells, like.indices, like.indptr), like.shape).sum(axis=1)).ravel()


def recount(rows: PointRows, state: State, centres: Array) -> MovedCentres:
    """Recompute sums, weights and numbers of rows of each centre from the labels."""
    sums, mass, members = np.zeros(centres.shape), np.zeros(len(centres)), np.zeros(len(centres), np.int64)
    step = max(16, TILE // len(centres))
    for start in range(0, rows.shape[0], step):
        tile, part = rows[start : start + step], state.part(start, start + step)
        weights = part.weights if len(part.weights) else np.ones(tile.shape[0])
        _count(tile, np.full(tile.shape[0], -1), part.labels, weights, (sums, mass, members))
    return MovedCentres(sums, mass, members, 0.0, 0)


CentreSums = tuple[Array, Array, Array]


def _count(rows: PointRows, before: Array, now: Array, weights: Array, tally: CentreSums) -> None:
    """Move rows from the sums of label `before` to those of `now`, in place. Rows with `before` -1 are only added."""
    sums, mass, members = tally
    count, left = len(sums), before >= 0
    mass += np.bincount(now, weights, count) - np.bincount(before[left], weights[left], count)
    members += np.bincount(now, minlength=count) - np.bincount(before[left], minlength=count)
    if sparse.issparse(rows):
        places = np.arange(rows.shape[0])
        at = np.concatenate([now, before[left]]), np.concatenate([places, places[left]])
        signs = sparse.csr_matrix((np.concatenate([weights, -weights[left]]), at), shape=(count, rows.shape[0]))
        sums += (signs @ rows).toarray()
        return
    labels = np.arange(count)[:, None]
    sums += (weights * ((now == labels).astype(np.float64) - (before == labels))) @ densely(rows)


def row_hashes(rows: PointRows) -> Array:
    """Return a hash per row that depends only on its cells, not on its position or on how zeros are stored."""
    if sparse.issparse(rows):
        cells = hash_cells(rows.data, rows.indices)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(cells, dtype=np.uint64)])
        return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
    out = np.zeros(len(rows), np.uint64)
    for column in range(rows.shape[1]):
        out += hash_cells(rows[:, column], np.array([column]))
    return out


def hash_cells(cells: Array, columns: Array) -> Array:
    """Return a 64-bit hash of each cell and its column; zero for a zero."""
    bits = cells.astype(np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        numbers = bits ^ ((columns.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))
    return np.where(cells == 0, np.uint64(0), mixed(numbers))
