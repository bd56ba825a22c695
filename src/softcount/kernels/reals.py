"""Counting and scoring real columns, eight columns or eight groups at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from softcount.kernels import lanes
from softcount.kernels.jit import overload, register_jitable
from softcount.kernels.lanes import WIDTH, fill, fused, load, load_part, padded, store, store_part, where_present
from softcount.kernels.pairs import shift_all
from softcount.kernels.reference import check_labels
from softcount.kernels.reference_blocks import Sums

TILE = 64
"""Rows taken at once: few enough that 50 columns stay in the first cache (copying 256 costs half as much again)."""

CHAIN = 256
"""Plain additions in a row before a sum is moved to its pair: 1,000 in a row already cost a digit and a half."""

AHEAD = 1024
"""How many numbers ahead to prefetch: 8 KB took reading and counting from 41 to 31 ms per 1,000,000 x 50."""

STATS = 3
"""Numbers kept per group and column: n, sum, sum of squares."""


def tile_of(reals: Any, start: int, stop: int) -> Any:
    """Rows `start` to `stop` in C order: a view where they are, else a copy."""
    raise NotImplementedError


@overload(tile_of)
def _tile_of(reals: Any, start: Any, stop: Any) -> Any:
    if isinstance(reals, types.Array) and reals.layout == "C":
        return lambda reals, start, stop: reals[start:stop]
    return lambda reals, start, stop: copied_tile(reals, start, stop)


@register_jitable
def copied_tile(reals: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Column by column: row by row, columns a power of two apart push each other out of the cache."""
    tile = np.empty((stop - start, reals.shape[1]))
    for j in range(reals.shape[1]):
        for i in range(stop - start):
            tile[i, j] = reals[start + i, j]
    return tile


def count_reals_labelled(
    reals: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None,
    centres: np.ndarray,
    anchors: np.ndarray,
    scales: np.ndarray,
) -> Sums:
    """As in `reference`."""
    check_labels(labels, len(centres))
    high, low = _count_labelled(reals, labels, weights, centres, scales)
    shift_all(high, low, centres, anchors, scales)
    return high, low


@fused
def _count_labelled(
    reals: np.ndarray, labels: np.ndarray, weights: Any, centres: np.ndarray, scales: np.ndarray
) -> Sums:
    n_groups, columns = centres.shape
    steps = steps_of(centres, scales)
    span = STATS * padded(columns)
    sums = lanes.aligned_zeros(n_groups * span)
    high = lanes.aligned_zeros(n_groups * span)
    low = lanes.aligned_zeros(n_groups * span)
    since = np.zeros(n_groups, np.int64)
    for start in range(0, reals.shape[0], TILE):
        tile = tile_of(reals, start, min(start + TILE, reals.shape[0]))
        for i in range(tile.shape[0]):
            group = labels[start + i]
            weight = 1.0 if weights is None else weights[start + i]
            if group < 0 or weight == 0.0:
                continue
            add_row(tile, i, weight, steps, group, sums)
            since[group] += 1
            if since[group] == CHAIN:
                flush(sums, high, low, group * span, span)
                since[group] = 0
    flush(sums, high, low, 0, n_groups * span)
    return unpacked(high, n_groups, columns), unpacked(low, n_groups, columns)


@register_jitable
def steps_of(centres: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Per group and register of columns: scale, and minus centre times scale, so that t is one fused product.

    Scales are powers of two, so x * scale - centre * scale rounds once, as (x - centre) * scale would.
    """
    n_groups, columns = centres.shape
    width = padded(columns)
    steps = lanes.aligned_zeros(n_groups * 2 * width)
    for g in range(n_groups):
        for j in range(columns):
            at = (g * width + j // WIDTH * WIDTH) * 2 + j % WIDTH
            steps[at] = scales[j]
            steps[at + WIDTH] = -centres[g, j] * scales[j]
    return steps


@register_jitable
def add_row(tile: np.ndarray, row: int, weight: float, steps: np.ndarray, group: int, sums: np.ndarray) -> None:
    """Add one row to its group's sums; a missing cell adds nothing."""
    columns = tile.shape[1]
    width = padded(columns)
    heavy = fill(weight)
    for j in range(0, columns, WIDTH):
        lanes.prefetch(tile, row * columns + j + AHEAD)
        cell = load_part(tile, row * columns + j, columns - j)
        at = group * width + j
        t = where_present(cell, cell * load(steps, 2 * at) + load(steps, 2 * at + WIDTH))
        wt = heavy * t
        at *= STATS
        store(sums, at, load(sums, at) + where_present(cell, heavy))
        store(sums, at + WIDTH, load(sums, at + WIDTH) + wt)
        store(sums, at + 2 * WIDTH, wt * t + load(sums, at + 2 * WIDTH))


@register_jitable
def flush(sums: np.ndarray, high: np.ndarray, low: np.ndarray, start: int, span: int) -> None:
    """Move a stretch of plain sums into the pairs, losing nothing."""
    zero = fill(0.0)
    for at in range(start, start + span, WIDTH):
        add_to_pair(high, low, at, load(sums, at))
        store(sums, at, zero)


@register_jitable
def add_to_pair(high: np.ndarray, low: np.ndarray, at: int, value: Any) -> None:
    """Eight two-sums: the rounding of `high` goes to `low`."""
    before = load(high, at)
    total = before + value
    part = total - before
    lost = before - (total - part) + (value - part)
    store(high, at, total)
    store(low, at, load(low, at) + lost)


@register_jitable
def unpacked(packed: np.ndarray, n_groups: int, columns: int) -> np.ndarray:
    """(groups, columns, 3) from registers of eight columns."""
    width = padded(columns)
    by_column = packed.reshape((n_groups, width // WIDTH, STATS, WIDTH)).transpose((0, 1, 3, 2))
    return np.ascontiguousarray(by_column).reshape((n_groups, width, STATS))[:, :columns].copy()


def count_reals_soft(
    reals: np.ndarray, memberships: np.ndarray, centres: np.ndarray, anchors: np.ndarray, scales: np.ndarray
) -> Sums:
    """As in `reference`."""
    high, low = _count_soft(reals, memberships, centres, scales)
    shift_all(high, low, centres, anchors, scales)
    return high, low


@fused
def _count_soft(reals: np.ndarray, memberships: np.ndarray, centres: np.ndarray, scales: np.ndarray) -> Sums:
    n_groups, columns = centres.shape
    steps = steps_of(centres, scales)
    width = padded(columns)
    high = lanes.aligned_zeros(n_groups * STATS * width)
    low = lanes.aligned_zeros(n_groups * STATS * width)
    for start in range(0, reals.shape[0], TILE):
        tile = tile_of(reals, start, min(start + TILE, reals.shape[0]))
        shares = memberships[start : start + tile.shape[0]]
        for j in range(0, columns, WIDTH):
            for g in range(n_groups):
                add_tile(tile, j, shares, g, steps, high, low)
    return unpacked(high, n_groups, columns), unpacked(low, n_groups, columns)


@register_jitable
def add_tile(
    tile: np.ndarray, j: int, shares: np.ndarray, g: int, steps: np.ndarray, high: np.ndarray, low: np.ndarray
) -> None:
    """Add a tile's eight columns from `j` to one group; the sums stay in registers."""
    columns = tile.shape[1]
    at = g * padded(columns) + j
    scale, minus = load(steps, 2 * at), load(steps, 2 * at + WIDTH)
    count, total, square = fill(0.0), fill(0.0), fill(0.0)
    for i in range(tile.shape[0]):
        cell = load_part(tile, i * columns + j, columns - j)
        share = fill(shares[i, g])
        t = where_present(cell, cell * scale + minus)
        wt = share * t
        count = count + where_present(cell, share)
        total = total + wt
        square = wt * t + square
    add_to_pair(high, low, at * STATS, count)
    add_to_pair(high, low, at * STATS + WIDTH, total)
    add_to_pair(high, low, at * STATS + 2 * WIDTH, square)


@fused
def score_reals(
    reals: np.ndarray, means: np.ndarray, inverse_sds: np.ndarray, constants: np.ndarray, out: np.ndarray
) -> None:
    """As in `reference`."""
    bells = bells_of(means, inverse_sds, constants)
    bases = bases_of(constants)
    for start in range(0, reals.shape[0], TILE):
        tile = tile_of(reals, start, min(start + TILE, reals.shape[0]))
        for i in range(0, tile.shape[0], 4):
            whole = i + 4 <= tile.shape[0] and are_complete(tile, i, 4)
            for g in range(0, means.shape[0], WIDTH):
                if whole:
                    score_complete_four(tile, i, bells, g, bases, out, start)
                else:
                    score_four(tile, i, bells, g, out, start)


@register_jitable
def bells_of(means: np.ndarray, inverse_sds: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Per register of groups and column: eight means, eight inverse deviations, eight constants."""
    n_groups, columns = means.shape
    bells = lanes.aligned_zeros(padded(n_groups) * columns * 3)
    for g in range(n_groups):
        for j in range(columns):
            at = (g // WIDTH * columns + j) * 3 * WIDTH + g % WIDTH
            bells[at] = means[g, j]
            bells[at + WIDTH] = inverse_sds[g, j]
            bells[at + 2 * WIDTH] = constants[g, j]
    return bells


@register_jitable
def bases_of(constants: np.ndarray) -> np.ndarray:
    """Per group, the constants of all columns, added in their order, as a row without holes adds them."""
    n_groups, columns = constants.shape
    bases = lanes.aligned_zeros(padded(n_groups))
    for g in range(n_groups):
        for j in range(columns):
            bases[g] += constants[g, j]
    return bases


@register_jitable
def are_complete(tile: np.ndarray, row: int, count: int) -> bool:
    """Whether rows from this one on have no missing cell; an infinite one counts as missing, which costs time only."""
    begin, end = row * tile.shape[1], (row + count) * tile.shape[1]
    total, zero = fill(0.0), fill(0.0)
    for at in range(begin, end, WIDTH):
        total = load_part(tile, at, end - at) * zero + total
    return bool(lanes.sum_of(total) == 0.0)


@register_jitable
def score_complete_four(
    tile: np.ndarray, i: int, bells: np.ndarray, g: int, bases: np.ndarray, out: np.ndarray, start: int
) -> None:
    """Score rows i to i + 3, none with a hole, under eight groups from `g`; the same bits as `score_four` gives."""
    columns = tile.shape[1]
    q0, q1, q2, q3 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    for j in range(columns):
        lanes.prefetch(tile, i * columns + 4 * j + AHEAD)
        at = (g // WIDTH * columns + j) * 3 * WIDTH
        mean, inverse = load(bells, at), load(bells, at + WIDTH)
        z0 = (fill(tile[i, j]) - mean) * inverse
        z1 = (fill(tile[i + 1, j]) - mean) * inverse
        z2 = (fill(tile[i + 2, j]) - mean) * inverse
        z3 = (fill(tile[i + 3, j]) - mean) * inverse
        q0, q1, q2, q3 = z0 * z0 + q0, z1 * z1 + q1, z2 * z2 + q2, z3 * z3 + q3
    base = load(bases, g)
    put_score(out, start + i, g, q0, base)
    put_score(out, start + i + 1, g, q1, base)
    put_score(out, start + i + 2, g, q2, base)
    put_score(out, start + i + 3, g, q3, base)


@register_jitable
def score_four(tile: np.ndarray, i: int, bells: np.ndarray, g: int, out: np.ndarray, start: int) -> None:
    """Score rows i to i + 3 (the last one again past the end) under eight groups from `g`."""
    last = tile.shape[0] - 1
    columns = tile.shape[1]
    q0, q1, q2, q3 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    c0, c1, c2, c3 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    i1, i2, i3 = min(i + 1, last), min(i + 2, last), min(i + 3, last)
    for j in range(columns):
        lanes.prefetch(tile, i * columns + 4 * j + AHEAD)
        at = (g // WIDTH * columns + j) * 3 * WIDTH
        mean, inverse, constant = load(bells, at), load(bells, at + WIDTH), load(bells, at + 2 * WIDTH)
        q0, c0 = add_cell(fill(tile[i, j]), mean, inverse, constant, q0, c0)
        q1, c1 = add_cell(fill(tile[i1, j]), mean, inverse, constant, q1, c1)
        q2, c2 = add_cell(fill(tile[i2, j]), mean, inverse, constant, q2, c2)
        q3, c3 = add_cell(fill(tile[i3, j]), mean, inverse, constant, q3, c3)
    put_score(out, start + i, g, q0, c0)
    if i + 1 <= last:
        put_score(out, start + i1, g, q1, c1)
    if i + 2 <= last:
        put_score(out, start + i2, g, q2, c2)
    if i + 3 <= last:
        put_score(out, start + i3, g, q3, c3)


@register_jitable
def add_cell(cell: Any, mean: Any, inverse: Any, constant: Any, square: Any, base: Any) -> Any:
    """One cell's squared distance and constant, under eight groups."""
    z = where_present(cell, (cell - mean) * inverse)
    return z * z + square, base + where_present(cell, constant)


@register_jitable
def put_score(out: np.ndarray, row: int, g: int, square: Any, base: Any) -> None:
    """Add base - square / 2 to eight groups of a row of the scores."""
    n_groups = out.shape[1]
    at = row * n_groups + g
    score = square * fill(-0.5) + base
    store_part(out, at, load_part(out, at, n_groups - g) + score, n_groups - g)
