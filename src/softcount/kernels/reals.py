"""Counting and scoring of real columns, eight at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import types

from softcount.core import counts
from softcount.kernels import Array, lanes
from softcount.kernels.jit import jit, overload, register_jitable
from softcount.kernels.lanes import WIDTH, aligned_zeros, fill, fused, load, load_part, padded, store, where_present
from softcount.kernels.posterior import put_posterior
from softcount.kernels.reference import Sums, check_labels
from softcount.kernels.registers import ask_ahead, put_turned

# -- sums kept as two doubles, `high + low`: about 32 digits. Fused multiply-add would make their error terms wrong.

exact = jit(error_model="numpy")

Pair = tuple[float, float]

two_sum: Callable[[float, float], Pair] = exact(cast(Any, counts.two_sum))
two_product: Callable[[float, float], Pair] = exact(cast(Any, counts.two_product))


@exact
def add_pairs(a: Pair, b: Pair) -> Pair:
    """Return a + b of two pairs."""
    high, low = two_sum(a[0], b[0])
    extra, rest = two_sum(a[1], b[1])
    high, low = two_sum(high, low + extra)
    return two_sum(high, low + rest)


@exact
def multiply_pairs(a: Pair, b: Pair) -> Pair:
    """Return a * b of two pairs."""
    high, low = two_product(a[0], b[0])
    return two_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


@exact
def shift_all(high: Array, low: Array, centres: Array, anchors: Array, scales: Array) -> None:
    """Move every group's (n, sum t, sum t^2) from its centres to the anchors of the columns: d = t + shift."""
    for g in range(high.shape[0]):
        for j in range(high.shape[1]):
            step, rest = two_sum(centres[g, j], -anchors[j])
            shift = (step * scales[j], rest * scales[j])
            count, total = (high[g, j, 0], low[g, j, 0]), (high[g, j, 1], low[g, j, 1])
            square = high[g, j, 2], low[g, j, 2]
            moved = add_pairs(total, multiply_pairs(count, shift))
            twice = add_pairs(total, moved)
            high[g, j, 0], low[g, j, 0] = two_sum(count[0], count[1])
            high[g, j, 1], low[g, j, 1] = moved
            high[g, j, 2], low[g, j, 2] = add_pairs(square, multiply_pairs(shift, twice))


# -- counting, eight columns at a time

TILE = 64
"""Rows per tile: few enough that 50 columns stay in the first-level cache (copying 256 rows takes 1.5 times as long).
"""
CHAIN = 256
"""Number of plain additions before a sum is moved to its twofold total: 1,000 already cost a digit and a half."""
SORTED = 128
"""Number of rows sorted by group together.

With 1,000,000 x 50 in ten groups, counting took 31 ms row by row with sums in memory, and 20 ms in sorted order with
sums in registers (25 ms with 256 rows). With fewer rows, each group has too few.
"""
STATS = 3
"""Number of statistics per group and column: n, sum, sum of squares."""


def tile_of(reals: Any, start: int, stop: int) -> Any:
    """Return rows `start` to `stop` in C order: a view if possible, else a copy."""
    raise NotImplementedError


@overload(tile_of)
def _tile_of(reals: Any, start: Any, stop: Any) -> Any:
    if isinstance(reals, types.Array) and reals.layout == "C":
        return lambda reals, start, stop: reals[start:stop]
    return lambda reals, start, stop: copied_tile(reals, start, stop)


@register_jitable
def copied_tile(reals: Array, start: int, stop: int) -> Array:
    """Copy column by column: row by row, columns a power of two apart would evict each other from the cache."""
    tile = np.empty((stop - start, reals.shape[1]))
    for j in range(reals.shape[1]):
        for i in range(stop - start):
            tile[i, j] = reals[start + i, j]
    return tile


def count_reals_labelled(
    reals: Array, labels: Array, weights: Array | None, centres: Array, anchors: Array, scales: Array
) -> Sums:
    check_labels(labels, len(centres))
    high, low = _count_labelled(reals, labels, weights, centres, scales)
    shift_all(high, low, centres, anchors, scales)
    return high, low


@fused
def _count_labelled(reals: Array, labels: Array, weights: Any, centres: Array, scales: Array) -> Sums:
    n_groups, columns = centres.shape
    steps = steps_of(centres, scales)
    span = STATS * padded(columns)
    sums, high, low = aligned_zeros(n_groups * span), aligned_zeros(n_groups * span), aligned_zeros(n_groups * span)
    since, ends = np.zeros(n_groups, np.int64), np.zeros(n_groups + 1, np.int64)
    order, heavy = np.zeros(SORTED, np.int64), (None if weights is None else np.zeros(SORTED))
    for start in range(0, reals.shape[0], SORTED):
        stop = min(start + SORTED, reals.shape[0])
        tile = tile_of(reals, start, stop)
        sort_rows(labels[start:stop], None if weights is None else weights[start:], ends, order, heavy)
        for g in range(n_groups):
            first, end = ends[g], ends[g + 1]
            if first < end:
                if since[g] + end - first > CHAIN:
                    flush(sums, high, low, g * span, span)
                    since[g] = 0
                since[g] += end - first
                for j in range(0, columns, WIDTH):
                    add_columns(tile, order[:end], first, heavy, j, steps, g, sums)
    flush(sums, high, low, 0, n_groups * span)
    return unpacked(high, n_groups, columns), unpacked(low, n_groups, columns)


@register_jitable
def sort_rows(labels: Array, weights: Any, ends: Array, order: Array, heavy: Any) -> None:
    """Sort the rows of a tile by group: group g has `order[ends[g] : ends[g + 1]]`, and `heavy` the weights.

    Rows without a group or with weight zero are left out.
    """
    ends[:] = 0
    for i in range(labels.size):
        if labels[i] >= 0 and (weights is None or weights[i] != 0.0):
            ends[labels[i] + 1] += 1
    for g in range(1, ends.size):
        ends[g] += ends[g - 1]
    for i in range(labels.size):
        if labels[i] >= 0 and (weights is None or weights[i] != 0.0):
            at = ends[labels[i]]
            order[at] = i
            if weights is not None:
                heavy[at] = weights[i]
            ends[labels[i]] = at + 1
    for g in range(ends.size - 1, 0, -1):
        ends[g] = ends[g - 1]
    ends[0] = 0


@register_jitable
def add_columns(
    tile: Array, order: Array, first: int, heavy: Any, j: int, steps: Array, group: int, sums: Array
) -> None:
    """Add a group's rows of a tile for eight columns from `j`, or for fewer at the end. A missing cell adds 0.

    The sums stay in registers. Sixteen columns at a time took 6.3 ms instead of 6.5 for 300,000 x 50.
    """
    columns = tile.shape[1]
    at = group * padded(columns) + j
    scale, minus = load(steps, 2 * at), load(steps, 2 * at + WIDTH)
    held = load(sums, at * STATS), load(sums, at * STATS + WIDTH), load(sums, at * STATS + 2 * WIDTH)
    for k in range(first, order.size):
        # Prefetch the next tile, whose rows are not read in order either.
        lanes.prefetch_far(tile, (SORTED + k) * columns + j)
        weight = fill(1.0 if heavy is None else heavy[k])
        held = with_cell(held, load_part(tile, order[k] * columns + j, columns - j), scale, minus, weight)
    count, total, square = held
    store(sums, at * STATS, count)
    store(sums, at * STATS + WIDTH, total)
    store(sums, at * STATS + 2 * WIDTH, square)


@register_jitable
def with_cell(held: Any, cell: Any, scale: Any, minus: Any, weight: Any) -> Any:
    """Add one cell of each of eight columns to their counts, sums and sums of squares."""
    count, total, square = held
    t = where_present(cell, cell * scale + minus)
    wt = weight * t
    return count + where_present(cell, weight), total + wt, wt * t + square


@register_jitable
def steps_of(centres: Array, scales: Array) -> Array:
    """Return scale, and minus centre times scale, per group and register of columns: t is then one fused product.

    Scales are powers of two, so x * scale - centre * scale rounds once, as (x - centre) * scale does.
    """
    n_groups, columns = centres.shape
    width = padded(columns)
    steps = aligned_zeros(n_groups * 2 * width)
    for g in range(n_groups):
        for j in range(columns):
            at = (g * width + j // WIDTH * WIDTH) * 2 + j % WIDTH
            steps[at] = scales[j]
            steps[at + WIDTH] = -centres[g, j] * scales[j]
    return steps


@register_jitable
def flush(sums: Array, high: Array, low: Array, start: int, span: int) -> None:
    """Add a range of plain sums to the twofold totals without loss, and reset them to zero."""
    zero = fill(0.0)
    for at in range(start, start + span, WIDTH):
        add_to_pair(high, low, at, load(sums, at))
        store(sums, at, zero)


@register_jitable
def add_to_pair(high: Array, low: Array, at: int, value: Any) -> None:
    """Add eight values to pairs; `low` collects the rounding errors of `high`."""
    before = load(high, at)
    total = before + value
    part = total - before
    lost = before - (total - part) + (value - part)
    store(high, at, total)
    store(low, at, load(low, at) + lost)


@register_jitable
def unpacked(packed: Array, n_groups: int, columns: int) -> Array:
    width = padded(columns)
    by_column = packed.reshape((n_groups, width // WIDTH, STATS, WIDTH)).transpose((0, 1, 3, 2))
    return np.ascontiguousarray(by_column).reshape((n_groups, width, STATS))[:, :columns].copy()


@fused
def count_reals_soft(reals: Array, memberships: Array, centres: Array, anchors: Array, scales: Array) -> Sums:
    n_groups, columns = centres.shape
    steps = steps_of(centres, scales)
    width = padded(columns)
    high = aligned_zeros(n_groups * STATS * width)
    low = aligned_zeros(n_groups * STATS * width)
    for start in range(0, reals.shape[0], TILE):
        tile = tile_of(reals, start, min(start + TILE, reals.shape[0]))
        shares = memberships[start : start + tile.shape[0]]
        for j in range(0, columns, WIDTH):
            for g in range(n_groups):
                add_tile(tile, j, shares, g, steps, high, low)
    sums, lost = unpacked(high, n_groups, columns), unpacked(low, n_groups, columns)
    shift_all(sums, lost, centres, anchors, scales)
    return sums, lost


@register_jitable
def add_tile(tile: Array, j: int, shares: Array, g: int, steps: Array, high: Array, low: Array) -> None:
    """Add eight columns of a tile from `j` to the sums of one group; the sums stay in registers."""
    columns = tile.shape[1]
    at = g * padded(columns) + j
    scale, minus = load(steps, 2 * at), load(steps, 2 * at + WIDTH)
    held = fill(0.0), fill(0.0), fill(0.0)
    for i in range(tile.shape[0]):
        held = with_cell(held, load_part(tile, i * columns + j, columns - j), scale, minus, fill(shares[i, g]))
    count, total, square = held
    add_to_pair(high, low, at * STATS, count)
    add_to_pair(high, low, at * STATS + WIDTH, total)
    add_to_pair(high, low, at * STATS + 2 * WIDTH, square)


# -- scoring, eight rows at a time, one group after another

SCORED_TILE = 32
"""Rows scored together: four registers, whose sums stay in registers during the loop over columns."""


@fused
def score_reals(reals: Array, means: Array, inverse_sds: Array, constants: Array, out: Array) -> None:
    groups, columns = means.shape
    bases = bases_of(constants)
    tile = aligned_zeros(padded(columns) * SCORED_TILE).reshape(padded(columns), SCORED_TILE)
    scores = aligned_zeros(groups * SCORED_TILE).reshape(groups, SCORED_TILE)
    for start in range(0, reals.shape[0], SCORED_TILE):
        score_tile(reals, start, tile, means, inverse_sds, constants, bases, scores)
        for i in range(min(SCORED_TILE, reals.shape[0] - start)):
            for g in range(groups):
                out[start + i, g] += scores[g, i]


@fused
def posterior_reals(
    reals: Array, means: Array, inverse_sds: Array, constants: Array, log_shares: Array, out: Array
) -> Array:
    """Write memberships to `out` (rows, groups), given that the table has no other columns. Return the log evidence."""
    groups, columns = means.shape
    bases = bases_of(constants)
    tile = aligned_zeros(padded(columns) * SCORED_TILE).reshape(padded(columns), SCORED_TILE)
    scores = aligned_zeros(groups * SCORED_TILE).reshape(groups, SCORED_TILE)
    evidence = np.empty(reals.shape[0] + SCORED_TILE)
    for start in range(0, reals.shape[0], SCORED_TILE):
        score_tile(reals, start, tile, means, inverse_sds, constants, bases, scores)
        put_posterior(scores, log_shares, evidence[start : start + SCORED_TILE], out[start : start + SCORED_TILE])
    return evidence[: reals.shape[0]]


@register_jitable
def score_tile(
    reals: Array,
    start: int,
    tile: Array,
    means: Array,
    inverse_sds: Array,
    constants: Array,
    bases: Array,
    scores: Array,
) -> None:
    """Compute the scores (groups, rows) of a tile. Values past the last row are not used."""
    groups, columns = means.shape
    stop = min(start + SCORED_TILE, reals.shape[0])
    put_turned(reals, start, stop, tile)
    zero = fill(0.0)
    t0, t1, t2, t3 = zero, zero, zero, zero
    for at in range(0, columns * SCORED_TILE, SCORED_TILE):
        t0, t1 = load(tile, at) * zero + t0, load(tile, at + WIDTH) * zero + t1
        t2, t3 = load(tile, at + 2 * WIDTH) * zero + t2, load(tile, at + 3 * WIDTH) * zero + t3
    complete = bool(lanes.sum_of(t0 + t1 + (t2 + t3)) == 0.0)
    for g in range(groups):
        ask_ahead(reals, stop, stop + SCORED_TILE, g, groups)
        if complete:
            score_complete(tile, means[g], inverse_sds[g], bases[g], scores[g])
        else:
            score_with_holes(tile, means[g], inverse_sds[g], constants[g], scores[g])


@register_jitable
def bases_of(constants: Array) -> Array:
    """Return, per group, the sum of the constants of all columns in their order, as for a complete row."""
    bases = np.zeros(constants.shape[0])
    for g in range(constants.shape[0]):
        for j in range(constants.shape[1]):
            bases[g] += constants[g, j]
    return bases


@register_jitable
def score_complete(tile: Array, means: Array, inverse_sds: Array, base: float, scores: Array) -> None:
    """Score a tile's complete rows under one group; bit-for-bit identical to `score_with_holes`."""
    q0, q1, q2, q3 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    for j in range(means.size):
        mean, inverse, at = fill(means[j]), fill(inverse_sds[j]), j * SCORED_TILE
        z0 = (load(tile, at) - mean) * inverse
        z1 = (load(tile, at + WIDTH) - mean) * inverse
        z2 = (load(tile, at + 2 * WIDTH) - mean) * inverse
        z3 = (load(tile, at + 3 * WIDTH) - mean) * inverse
        q0, q1, q2, q3 = z0 * z0 + q0, z1 * z1 + q1, z2 * z2 + q2, z3 * z3 + q3
    put_score(scores, 0, q0, fill(base))
    put_score(scores, WIDTH, q1, fill(base))
    put_score(scores, 2 * WIDTH, q2, fill(base))
    put_score(scores, 3 * WIDTH, q3, fill(base))


@register_jitable
def score_with_holes(tile: Array, means: Array, inverse_sds: Array, constants: Array, scores: Array) -> None:
    """Score a tile's rows under one group. A missing cell adds 0."""
    for i in range(0, SCORED_TILE, 2 * WIDTH):
        q0, q1, c0, c1 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for j in range(means.size):
            mean, inverse, constant = fill(means[j]), fill(inverse_sds[j]), fill(constants[j])
            q0, c0 = add_cell(load(tile, j * SCORED_TILE + i), mean, inverse, constant, q0, c0)
            q1, c1 = add_cell(load(tile, j * SCORED_TILE + i + WIDTH), mean, inverse, constant, q1, c1)
        put_score(scores, i, q0, c0)
        put_score(scores, i + WIDTH, q1, c1)


@register_jitable
def add_cell(cell: Any, mean: Any, inverse: Any, constant: Any, square: Any, base: Any) -> Any:
    """Add the squared distance and the constant of one cell, for eight rows."""
    z = where_present(cell, (cell - mean) * inverse)
    return z * z + square, base + where_present(cell, constant)


@register_jitable
def put_score(scores: Array, at: int, square: Any, base: Any) -> None:
    store(scores, at, square * fill(-0.5) + base)
