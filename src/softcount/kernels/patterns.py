"""Scoring and counting rows of a correlated block that have holes, pattern by pattern.

Rows come sorted by pattern. For each pattern and group the columns that are there are factored first; what the
factoring leaves of the others is their conditional covariance, and what it does to a row gives their conditional mean.
"""

from __future__ import annotations

import numpy as np

from softcount.kernels.blocks import fused_rows
from softcount.kernels.jit import register_jitable
from softcount.kernels.pairs import two_sum
from softcount.kernels.reference_blocks import Sums, anchored

TILE = 64
"""Rows of one pattern taken at once."""

CHAIN = 256
"""Rows added plainly before their sums join the pairs."""


@fused_rows
def score_patterns(
    rows: np.ndarray, starts: np.ndarray, scales: np.ndarray, centres: np.ndarray, covariances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As in `reference_blocks`."""
    groups, columns = centres.shape[0], rows.shape[1]
    distances = np.zeros((rows.shape[0], groups))
    dets = np.zeros((starts.size - 1, groups))
    order = np.empty(columns, np.int64)
    root, turned = np.empty((columns, columns)), np.empty((columns, TILE))
    for p in range(starts.size - 1):
        seen = put_order(rows[starts[p]], order)
        for g in range(groups):
            dets[p, g] = put_root(covariances[g], order, seen, seen, root)
            for start in range(starts[p], starts[p + 1], TILE):
                stop = min(start + TILE, starts[p + 1])
                put_turned(rows[start:stop], order[:seen], scales, centres[g], turned)
                turn(root, seen, seen, turned[:, : stop - start])
                for j in range(seen):
                    for i in range(stop - start):
                        distances[start + i, g] += turned[j, i] * turned[j, i]
    return distances, dets


@register_jitable
def put_order(row: np.ndarray, order: np.ndarray) -> int:
    """Columns that are there first, the others after them; how many are there comes back."""
    there, holes = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
    order[: there.size], order[there.size :] = there, holes
    return there.size


@register_jitable
def put_root(covariance: np.ndarray, order: np.ndarray, seen: int, room: int, root: np.ndarray) -> float:
    """Factor the first `seen` of `room` columns: rows of the upper root, then the covariance left of the others.

    The log of the root's determinant comes back.
    """
    for j in range(room):
        for k in range(j, room):
            root[j, k] = covariance[order[j], order[k]]
    log_det = 0.0
    for j in range(seen):
        # Rounding may leave nothing of a column that others decide; its own resolution is then its width.
        least = 2.3e-16 * covariance[order[j], order[j]]
        pivot = np.sqrt(max(root[j, j], least))
        log_det += np.log(pivot)
        root[j, j] = pivot
        for k in range(j + 1, room):
            root[j, k] /= pivot
        for k in range(j + 1, room):
            factor = root[j, k]
            for i in range(k, room):
                root[k, i] -= factor * root[j, i]
    return log_det


@register_jitable
def put_turned(rows: np.ndarray, there: np.ndarray, scales: np.ndarray, centre: np.ndarray, turned: np.ndarray) -> None:
    """The columns that are there, off the group's mean, one row of memory to a column."""
    for j in range(there.size):
        column = there[j]
        for i in range(rows.shape[0]):
            turned[j, i] = (rows[i, column] - centre[0, column]) * scales[column] - centre[1, column]


@register_jitable
def turn(root: np.ndarray, seen: int, room: int, turned: np.ndarray) -> None:
    """Solve for what is there, in place; the rest of `room` becomes minus its conditional mean off the group's."""
    for j in range(seen, room):
        turned[j] = 0.0
    for j in range(seen):
        for i in range(turned.shape[1]):
            turned[j, i] /= root[j, j]
        for k in range(j + 1, room):
            factor = root[j, k]
            for i in range(turned.shape[1]):
                turned[k, i] -= factor * turned[j, i]


def count_patterns(
    rows: np.ndarray,
    starts: np.ndarray,
    memberships: np.ndarray,
    units: np.ndarray,
    centres: np.ndarray,
    covariances: np.ndarray,
) -> Sums:
    """As in `reference_blocks`."""
    high, low = _count_patterns(rows, starts, memberships, units, centres, covariances)
    high, low = (np.triu(part) + np.triu(part, 1).swapaxes(1, 2) for part in (high, low))
    return anchored(high, low, np.ascontiguousarray(centres[:, 0]), units[0], units[1])


@fused_rows
def _count_patterns(
    rows: np.ndarray,
    starts: np.ndarray,
    memberships: np.ndarray,
    units: np.ndarray,
    centres: np.ndarray,
    covariances: np.ndarray,
) -> Sums:
    groups, columns = centres.shape[0], rows.shape[1]
    shape = (groups, columns + 1, columns + 1)
    sums, high, low = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    order = np.empty(columns, np.int64)
    root, turned, full = np.empty((columns, columns)), np.empty((columns, TILE)), np.ones(columns + 1)
    since = 0
    for p in range(starts.size - 1):
        seen = put_order(rows[starts[p]], order)
        for start in range(starts[p], starts[p + 1] if seen else starts[p], TILE):
            part = slice(start, min(start + TILE, starts[p + 1]))
            for g in range(groups):
                mass = memberships[part, g].sum()
                if mass > 0.0:
                    put_root(covariances[g], order, seen, columns, root)
                    put_turned(rows[part], order[:seen], units[1], centres[g], turned)
                    turn(root, seen, columns, turned[:, : part.stop - start])
                    add_left(root, order, seen, mass, sums[g])
                    for i in range(start, part.stop):
                        put_full(rows[i], turned[seen:, i - start], order[seen:], units[1], centres[g], full)
                        add_outer(full, memberships[i, g], sums[g])
            since += part.stop - start
            if since >= CHAIN:
                flush(sums, high, low)
                since = 0
    flush(sums, high, low)
    return high, low


@register_jitable
def add_left(root: np.ndarray, order: np.ndarray, seen: int, mass: float, sums: np.ndarray) -> None:
    """The conditional covariance of the holes, by mass; only products of columns i <= j are kept."""
    for j in range(seen, order.size):
        for k in range(j, order.size):
            sums[1 + order[j], 1 + order[k]] += mass * root[j, k]


@register_jitable
def put_full(
    row: np.ndarray, off: np.ndarray, holes: np.ndarray, scales: np.ndarray, centre: np.ndarray, full: np.ndarray
) -> None:
    """The row off the group's centre after a one, holes at their conditional means."""
    for j in range(row.size):
        full[1 + j] = (row[j] - centre[0, j]) * scales[j]
    for j in range(holes.size):
        full[1 + holes[j]] = centre[1, holes[j]] - off[j]


@register_jitable
def add_outer(full: np.ndarray, weight: float, sums: np.ndarray) -> None:
    """Add the products of columns i <= j of one row."""
    for j in range(full.size):
        factor = weight * full[j]
        for k in range(j, full.size):
            sums[j, k] += factor * full[k]


@register_jitable
def flush(sums: np.ndarray, high: np.ndarray, low: np.ndarray) -> None:
    """Move plain sums into the pairs, losing nothing."""
    plain, upper, lower = sums.reshape(-1), high.reshape(-1), low.reshape(-1)
    for at in range(plain.size):
        total, lost = two_sum(upper[at], plain[at])
        upper[at] = total
        lower[at] += lost
        plain[at] = 0.0
