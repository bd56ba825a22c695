"""Scoring and counting of correlated blocks under all groups: complete rows by tiles, incomplete rows by pattern."""

from __future__ import annotations

from functools import wraps
from typing import Any, cast

import numpy as np

from softcount.kernels import Array
from softcount.kernels.jit import Kernel, register_jitable
from softcount.kernels.lanes import WIDTH, aligned_zeros, fill, fused, load, padded, store, sum_of, where_above
from softcount.kernels.posterior import log_lanes, multiply_rows, powers_of
from softcount.kernels.reals import add_to_pair, flush, two_sum
from softcount.kernels.reference import Sums, anchored, by_column, feature_count, folded_out
from softcount.kernels.registers import add_counts, ask_ahead, put_turned

TILE = 192
"""Rows per tile. An E-step on 200,000 x 16 with 16 groups took 45 ms; 61 ms with 256 rows, 49 ms with 96 rows."""
CHAIN = 256
"""Number of plain additions before a sum is moved to its twofold total."""
MOST_LANES = 1 << 16
"""Maximum product of groups and features for which every lane has separate sums; more would take too much memory."""
FAINTEST = -640.0
"""Log of the smallest membership that counts, relative to the row's largest.

Products of cells with smaller memberships may be subnormal numbers, on which processors are slow.
"""


def fused_rows(kernel: Kernel) -> Kernel:
    """Compile a kernel whose first argument, the rows, is converted to C order float64 in every call."""
    compiled = fused(kernel)

    @wraps(kernel)
    def called(rows: Array, *others: Any) -> Any:
        return compiled(np.ascontiguousarray(rows, dtype=np.float64), *others)

    return cast(Kernel, called)


def expect_products(rows: Array, weights: Array | None, units: Array, eta: Array) -> tuple[Array, Array, float]:
    high, low, likelihood = _expect(rows, weights, units, eta)
    return folded_out(high, rows.shape[1]), folded_out(low, rows.shape[1]), likelihood


def expect_squares(rows: Array, weights: Array | None, units: Array, eta: Array) -> tuple[Array, Array, float]:
    high, low, likelihood = _expect(rows, weights, units, eta)
    return by_column(high, rows.shape[1]), by_column(low, rows.shape[1]), likelihood


@fused_rows
def _expect(rows: Array, weights: Any, units: Array, eta: Array) -> Any:
    groups, n_features = eta.shape
    tile, features = room_for(rows.shape[1], n_features)
    joint = aligned_zeros(groups * TILE).reshape(groups, TILE)
    heavy = aligned_zeros(TILE)
    lanes = WIDTH if eta.size <= MOST_LANES else 1
    size = n_features * groups * lanes
    part, high, low = aligned_zeros(padded(size)), aligned_zeros(padded(size)), aligned_zeros(padded(size))
    sums = part[:size].reshape(n_features, groups * lanes)
    likelihood, rest, since = 0.0, 0.0, 0
    for start in range(0, rows.shape[0], TILE):
        stop = min(start + TILE, rows.shape[0])
        if put_features(rows, start, stop, units, tile, features):
            likelihood = np.nan
            break
        if weights is None:
            heavy[: stop - start] = 1.0
        else:
            heavy[: stop - start] = weights[start:stop]
        heavy[stop - start :] = 0.0
        ask_ahead(rows, stop, stop + TILE, 0, 3)
        np.dot(eta, features, joint)
        ask_ahead(rows, stop, stop + TILE, 1, 3)
        likelihood, lost = two_sum(likelihood, shared_out(joint, heavy))
        ask_ahead(rows, stop, stop + TILE, 2, 3)
        rest += lost
        since += 1
        if lanes == WIDTH:
            add_counts(features, joint, sums)
        else:
            np.dot(features, joint.T, sums)
        if lanes == 1 or since == CHAIN // (TILE // WIDTH):
            flush(part, high, low, 0, padded(size))
            since = 0
    flush(part, high, low, 0, padded(size))
    if np.isfinite(likelihood):
        likelihood += rest
    sums, lost_sums = folded(high, low, n_features, groups, lanes)
    return sums, lost_sums, likelihood


@register_jitable
def folded(high: Array, low: Array, n_features: int, groups: int, lanes: int) -> Sums:
    """Return sums by (feature, group), added over the lanes."""
    sums, lost = np.zeros((n_features, groups)), np.zeros((n_features, groups))
    for f in range(n_features):
        for g in range(groups):
            first = (f * groups + g) * lanes
            for at in range(first, first + lanes):
                total, error = two_sum(sums[f, g], high[at])
                sums[f, g] = total
                lost[f, g] += error + low[at]
    return sums, lost


@register_jitable
def room_for(columns: int, n_features: int) -> Any:
    """Allocate a transposed tile of rows and its features."""
    tile = aligned_zeros(padded(columns) * TILE).reshape(padded(columns), TILE)
    features = aligned_zeros(n_features * TILE).reshape(n_features, TILE)
    features[0] = 1.0
    return tile, features


@register_jitable
def put_features(rows: Array, start: int, stop: int, units: Array, tile: Array, features: Array) -> bool:
    """Write the features of rows `start` to `stop` after the first, which is 1: columns, products of columns i <= j.

    If `features` has only 1 + 2 * columns lines, write squares instead of all products. Return whether a cell is
    missing.
    """
    columns = rows.shape[1]
    put_turned(rows, start, stop, tile)
    zero = fill(0.0)
    holes, others = zero, zero  # two sums, because a single one would wait for its previous addition
    for j in range(columns):
        anchor, scale = fill(units[0, j]), fill(units[1, j])
        for i in range(j * TILE, (j + 1) * TILE, 2 * WIDTH):
            one = (load(tile, i) - anchor) * scale
            two = (load(tile, i + WIDTH) - anchor) * scale
            holes, others = one * zero + holes, two * zero + others
            store(features, TILE + i, one)
            store(features, TILE + i + WIDTH, two)
    squares = features.shape[0] == 1 + 2 * columns
    at = (1 + columns) * TILE
    for j in range(columns):
        for k in range(j, j + 1 if squares else columns):
            for i in range(0, TILE, WIDTH):
                left, right = load(features, (1 + j) * TILE + i), load(features, (1 + k) * TILE + i)
                store(features, at + i, left * right)
            at += TILE
    # An infinite cell gives the same result as a missing one. Callers that expect neither examine the rows again.
    return bool(sum_of(holes + others) != 0.0)


@register_jitable
def shared_out(joint: Array, heavy: Array) -> float:
    """Turn a tile's log joint (groups, rows) into weighted memberships. Return its weighted log evidence."""
    zero = fill(0.0)
    likelihood = zero
    for i in range(0, TILE, WIDTH):
        peak, total = powers_of(joint, i, FAINTEST)
        weight = load(heavy, i)
        multiply_rows(joint, i, where_above(total, zero, weight / total))
        evidence = weight * (peak + log_lanes(total))
        likelihood = likelihood + where_above(weight, zero, evidence)
    return float(sum_of(likelihood))


@fused_rows
def score_products(rows: Array, units: Array, eta: Array, out: Array) -> None:
    groups, n_features = eta.shape
    tile, features = room_for(rows.shape[1], n_features)
    joint = aligned_zeros(groups * TILE).reshape(groups, TILE)
    for start in range(0, rows.shape[0], TILE):
        stop = min(start + TILE, rows.shape[0])
        put_features(rows, start, stop, units, tile, features)
        np.dot(eta, features, joint)
        for i in range(stop - start):
            for g in range(groups):
                out[start + i, g] += joint[g, i]


def count_products(rows: Array, memberships: Array, units: Array) -> Sums:
    high, low = _count_products(rows, memberships, units, feature_count(rows.shape[1]))
    return folded_out(high, rows.shape[1]), folded_out(low, rows.shape[1])


@fused_rows
def _count_products(rows: Array, memberships: Array, units: Array, n_features: int) -> Sums:
    groups = memberships.shape[1]
    tile, features = room_for(rows.shape[1], n_features)
    size = n_features * groups
    part, high, low = aligned_zeros(padded(size)), aligned_zeros(padded(size)), aligned_zeros(padded(size))
    for start in range(0, rows.shape[0], TILE):
        stop = min(start + TILE, rows.shape[0])
        put_features(rows, start, stop, units, tile, features)
        shares = np.zeros((TILE, groups))
        shares[: stop - start] = memberships[start:stop]
        np.dot(features, shares, part[:size].reshape(n_features, groups))
        for at in range(0, padded(size), WIDTH):
            add_to_pair(high, low, at, load(part, at))
    shape = (n_features, groups)
    return high[:size].reshape(shape), low[:size].reshape(shape)


@fused_rows
def score_centred(rows: Array, scales: Array, centres: Array, roots: Array, constants: Array, out: Array) -> None:
    columns = rows.shape[1]
    tile = aligned_zeros(padded(columns) * TILE).reshape(padded(columns), TILE)
    moved = aligned_zeros(columns * TILE).reshape(columns, TILE)
    turned = aligned_zeros(columns * TILE).reshape(columns, TILE)
    squares = aligned_zeros(TILE)
    for start in range(0, rows.shape[0], TILE):
        stop = min(start + TILE, rows.shape[0])
        put_turned(rows, start, stop, tile)
        for g in range(centres.shape[0]):
            put_moved(tile[:columns], centres[g, 0], scales, centres[g, 1], moved)
            np.dot(roots[g], moved, turned)
            for i in range(0, TILE, WIDTH):  # the sum of squares of each row
                total = fill(0.0)
                for j in range(turned.shape[0]):
                    z = load(turned, j * TILE + i)
                    total = z * z + total
                store(squares, i, total)
            for i in range(stop - start):
                out[start + i, g] += constants[g] - 0.5 * squares[i]


@register_jitable
def put_moved(tile: Array, centre: Array, scales: Array, rest: Array, moved: Array) -> None:
    """Write (x - centre) * scale - rest of every column to `moved`."""
    for j in range(tile.shape[0]):
        at, scale, less = fill(centre[j]), fill(scales[j]), fill(rest[j])
        for i in range(j * TILE, (j + 1) * TILE, WIDTH):
            store(moved, i, (load(tile, i) - at) * scale - less)


def count_centred(rows: Array, memberships: Array, centres: Array, anchors: Array, scales: Array) -> Sums:
    high, low = _count_centred(rows, memberships, centres, scales)
    return anchored(high, low, centres, anchors, scales)


@fused_rows
def _count_centred(rows: Array, memberships: Array, centres: Array, scales: Array) -> Sums:
    groups, columns = centres.shape
    wide = columns + 1
    size = padded(wide * wide)
    tile = aligned_zeros(padded(columns) * TILE).reshape(padded(columns), TILE)
    moved, heavy = np.ones((wide, TILE)), np.zeros((wide, TILE))
    part, high, low = aligned_zeros(size), aligned_zeros(groups * size), aligned_zeros(groups * size)
    none = np.zeros(columns)
    for start in range(0, rows.shape[0], TILE):
        stop = min(start + TILE, rows.shape[0])
        put_turned(rows, start, stop, tile)
        for g in range(groups):
            put_moved(tile[:columns], centres[g], scales, none, moved[1:])
            for i in range(TILE):
                heavy[0, i] = memberships[start + i, g] if start + i < stop else 0.0
            for j in range(1, moved.shape[0]):
                for i in range(0, TILE, WIDTH):
                    store(heavy, j * TILE + i, load(moved, j * TILE + i) * load(heavy, i))
            np.dot(heavy, moved.T, part[: wide * wide].reshape(wide, wide))
            for at in range(0, size, WIDTH):
                add_to_pair(high, low, g * size + at, load(part, at))
    shape = (groups, size)
    return high.reshape(shape)[:, : wide * wide].copy(), low.reshape(shape)[:, : wide * wide].copy()


# -- rows with missing cells, pattern by pattern

PATTERN_TILE = 64
"""Rows of one pattern per tile."""


@fused_rows
def score_patterns(
    rows: Array, starts: Array, scales: Array, centres: Array, covariances: Array
) -> tuple[Array, Array]:
    groups, columns = centres.shape[0], rows.shape[1]
    distances = np.zeros((rows.shape[0], groups))
    dets = np.zeros((starts.size - 1, groups))
    order = np.empty(columns, np.int64)
    root, turned = np.empty((columns, columns)), np.empty((columns, PATTERN_TILE))
    for p in range(starts.size - 1):
        seen = put_order(rows[starts[p]], order)
        for g in range(groups):
            dets[p, g] = put_root(covariances[g], order, seen, seen, root)
            for start in range(starts[p], starts[p + 1], PATTERN_TILE):
                stop = min(start + PATTERN_TILE, starts[p + 1])
                put_pattern_turned(rows[start:stop], order[:seen], scales, centres[g], turned)
                turn(root, seen, seen, turned[:, : stop - start])
                for j in range(seen):
                    for i in range(stop - start):
                        distances[start + i, g] += turned[j, i] * turned[j, i]
    return distances, dets


@register_jitable
def put_order(row: Array, order: Array) -> int:
    """Order the columns with observed ones first. Return the number of observed columns."""
    there, holes = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
    order[: there.size], order[there.size :] = there, holes
    return there.size


@register_jitable
def put_root(covariance: Array, order: Array, seen: int, room: int, root: Array) -> float:
    """Factor the covariance of the first `seen` of `room` columns.

    `root` gets the rows of the upper Cholesky factor, then the conditional covariance of the other columns. Return the
    log determinant of the factor.
    """
    for j in range(room):
        for k in range(j, room):
            root[j, k] = covariance[order[j], order[k]]
    log_det = 0.0
    for j in range(seen):
        # Rounding may leave no variance in a column that others determine. Its float64 resolution is then its variance.
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
def put_pattern_turned(rows: Array, there: Array, scales: Array, centre: Array, turned: Array) -> None:
    """Write the observed columns minus the group's mean, one line of memory per column."""
    for j in range(there.size):
        column = there[j]
        for i in range(rows.shape[0]):
            turned[j, i] = (rows[i, column] - centre[0, column]) * scales[column] - centre[1, column]


@register_jitable
def turn(root: Array, seen: int, room: int, turned: Array) -> None:
    """Solve for the observed columns, in place.

    The rest of `room` becomes minus the difference of its conditional mean from the group's mean.
    """
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
    rows: Array, starts: Array, memberships: Array, units: Array, centres: Array, covariances: Array
) -> Sums:
    high, low = _count_patterns(rows, starts, memberships, units, centres, covariances)
    high, low = (np.triu(part) + np.triu(part, 1).swapaxes(1, 2) for part in (high, low))
    return anchored(high, low, np.ascontiguousarray(centres[:, 0]), units[0], units[1])


@fused_rows
def _count_patterns(
    rows: Array, starts: Array, memberships: Array, units: Array, centres: Array, covariances: Array
) -> Sums:
    groups, columns = centres.shape[0], rows.shape[1]
    size, shape = groups * (columns + 1) ** 2, (groups, columns + 1, columns + 1)
    part, high, low = aligned_zeros(padded(size)), aligned_zeros(padded(size)), aligned_zeros(padded(size))
    sums = part[:size].reshape(shape)
    order = np.empty(columns, np.int64)
    root, turned, full = np.empty((columns, columns)), np.empty((columns, PATTERN_TILE)), np.ones(columns + 1)
    since = 0
    for p in range(starts.size - 1):
        seen = put_order(rows[starts[p]], order)
        for start in range(starts[p], starts[p + 1] if seen else starts[p], PATTERN_TILE):
            some = slice(start, min(start + PATTERN_TILE, starts[p + 1]))
            for g in range(groups):
                mass = memberships[some, g].sum()
                if mass > 0.0:
                    put_root(covariances[g], order, seen, columns, root)
                    put_pattern_turned(rows[some], order[:seen], units[1], centres[g], turned)
                    turn(root, seen, columns, turned[:, : some.stop - start])
                    # Add the conditional covariance of the missing columns. Only products of columns i <= j are stored.
                    for j in range(seen, columns):
                        for k in range(j, columns):
                            sums[g, 1 + order[j], 1 + order[k]] += mass * root[j, k]
                    for i in range(start, some.stop):
                        # A one, then the row minus the group's centre, with missing cells at their conditional means.
                        row, off, holes = rows[i], turned[seen:, i - start], order[seen:]
                        scales, centre = units[1], centres[g]
                        for j in range(row.size):
                            full[1 + j] = (row[j] - centre[0, j]) * scales[j]
                        for j in range(holes.size):
                            full[1 + holes[j]] = centre[1, holes[j]] - off[j]
                        for j in range(full.size):
                            factor = memberships[i, g] * full[j]
                            for k in range(j, full.size):
                                sums[g, j, k] += factor * full[k]
            since += some.stop - start
            if since >= CHAIN:
                flush(part, high, low, 0, padded(size))
                since = 0
    flush(part, high, low, 0, padded(size))
    return high[:size].reshape(shape), low[:size].reshape(shape)
