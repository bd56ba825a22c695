"""Counting and scoring of coded columns, sparse rows and sequences, all groups side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels import Array
from softcount.kernels.jit import jit, register_jitable
from softcount.kernels.lanes import WIDTH, aligned_zeros, fill, fused, load, load_part, padded, store, store_part
from softcount.kernels.posterior import put_posterior
from softcount.kernels.reference import check_labels
from softcount.kernels.registers import put_turned

PAIR_CELLS = 4096
"""Columns are paired if all pair tables together have at most this number of cells; larger tables exceed the cache."""
CHAIN = 4096
"""Rows added to a table of plain sums before it is added to the total."""
TILE = 64
"""Rows whose scores are computed before they are written: a read next to a recent masked store stalls."""


@register_jitable
def pairs_of(sizes: Array) -> Array:
    """Return the start of each pair of neighbouring columns in a table of pairs, then its size.

    A last odd column is alone.
    """
    starts = np.zeros((sizes.size + 1) // 2 + 1, np.int64)
    for k in range(starts.size - 1):
        second = sizes[2 * k + 1] if 2 * k + 1 < sizes.size else 1
        starts[k + 1] = starts[k] + sizes[2 * k] * second
    return starts


@register_jitable
def paired_cell(codes: Array, row: int, k: int, starts: Array, sizes: Array) -> int:
    """Return the cell of pair k that a row falls in."""
    return int(starts[k] + codes[row, 2 * k] * sizes[2 * k + 1] + codes[row, 2 * k + 1])


@fused
def score_codes(codes: Array, offsets: Array, table: Array, out: Array) -> None:
    sizes = np.diff(np.append(offsets, table.shape[0]))
    starts, groups = pairs_of(sizes), out.shape[1]
    held = aligned_zeros(TILE * WIDTH).reshape(TILE, WIDTH)
    for g in range(0, groups, WIDTH):
        pairs = pair_table(table, offsets, sizes, starts, g)
        for start in range(0, codes.shape[0], TILE):
            part = codes[start : start + TILE]
            hold_scores(part, offsets, table, starts, sizes, pairs, g, held)
            for i in range(part.shape[0]):
                before = load_part(out, (start + i) * groups + g, groups - g)
                store(held, i * WIDTH, before + load(held, i * WIDTH))
            for i in range(part.shape[0]):
                store_part(out, (start + i) * groups + g, load(held, i * WIDTH), groups - g)


@fused
def posterior_codes(codes: Array, offsets: Array, table: Array, log_shares: Array, out: Array) -> Array:
    rows, groups = out.shape
    sizes = np.diff(np.append(offsets, table.shape[0]))
    starts = pairs_of(sizes)
    tables = [pair_table(table, offsets, sizes, starts, g) for g in range(0, groups, WIDTH)]
    held = aligned_zeros(TILE * WIDTH).reshape(TILE, WIDTH)
    turned = aligned_zeros(padded(groups) * TILE).reshape(padded(groups), TILE)
    evidence = np.empty(rows + TILE)
    for start in range(0, rows, TILE):
        part = codes[start : start + TILE]
        for g in range(0, groups, WIDTH):
            hold_scores(part, offsets, table, starts, sizes, tables[g // WIDTH], g, held)
            put_turned(held, 0, TILE, turned[g : g + WIDTH])
        put_posterior(turned[:groups], log_shares, evidence[start : start + TILE], out[start : start + TILE])
    return evidence[:rows]


@register_jitable
def hold_scores(
    codes: Array, offsets: Array, table: Array, starts: Array, sizes: Array, pairs: Array, g: int, held: Array
) -> None:
    """Write the scores of up to TILE rows under eight groups from `g` to `held`.

    `pairs` has a cell for every pair of categories of two columns. It is empty if there would be too many.
    """
    rows, columns = codes.shape
    n_groups = table.shape[1]
    for i in range(rows):
        score = fill(0.0)
        if pairs.size:
            for k in range(columns // 2):
                score = score + load(pairs, paired_cell(codes, i, k, starts, sizes) * WIDTH)
            if columns % 2:
                score = score + load(pairs, (starts[columns // 2] + codes[i, columns - 1]) * WIDTH)
        else:
            for j in range(columns):
                score = score + load_part(table, (offsets[j] + codes[i, j]) * n_groups + g, n_groups - g)
        store(held, i * WIDTH, score)


@register_jitable
def pair_table(table: Array, offsets: Array, sizes: Array, starts: Array, g: int) -> Array:
    """Return, for eight groups from `g`, the sum of two columns' table rows for every pair of codes.

    The table is empty if there are too many pairs or only one column.
    """
    n_groups = table.shape[1]
    if starts[-1] > PAIR_CELLS or sizes.size < 2:
        return aligned_zeros(0)
    pairs = aligned_zeros(starts[-1] * WIDTH)
    at = 0
    for k in range(starts.size - 1):
        for a in range(sizes[2 * k]):
            one = load_part(table, (offsets[2 * k] + a) * n_groups + g, n_groups - g)
            if 2 * k + 1 == sizes.size:
                store(pairs, at, one)
                at += WIDTH
                continue
            for b in range(sizes[2 * k + 1]):
                two = load_part(table, (offsets[2 * k + 1] + b) * n_groups + g, n_groups - g)
                store(pairs, at, one + two)
                at += WIDTH
    return pairs


def count_codes_labelled(
    codes: Array, offsets: Array, labels: Array, weights: Array | None, n_cells: int, n_groups: int
) -> Array:
    check_labels(labels, n_groups)
    # Without weights, int32 is exact: a call never has 2^31 rows.
    sums = np.zeros((n_groups, n_cells), np.int32 if weights is None else np.float64)
    return _count_labelled(codes, offsets, labels, weights, sums)


@fused
def _count_labelled(codes: Array, offsets: Array, labels: Array, weights: Any, sums: Array) -> Array:
    total = np.zeros(sums.shape)
    step = max(CHAIN, sums.shape[1], codes.shape[0] if weights is None else 0)
    for start in range(0, codes.shape[0], step):
        heavy = None if weights is None else weights[start:]
        tally(codes[start : start + step], offsets, labels[start:], heavy, sums.shape[1], sums.reshape(-1))
        total += sums
        sums[:] = 0
    return total.T.copy()


@register_jitable
def tally(codes: Array, offsets: Array, labels: Array, weights: Any, n_cells: int, sums: Array) -> None:
    """Add rows to `sums` (groups, cells), one cell per column."""
    rows, columns = codes.shape
    for i in range(rows):
        if labels[i] < 0:
            continue
        weight = 1 if weights is None else weights[i]
        base = labels[i] * n_cells
        for j in range(columns):
            sums[np.uintp(base + offsets[j] + codes[i, j])] += weight


@fused
def count_codes_soft(codes: Array, offsets: Array, memberships: Array, n_cells: int) -> Array:
    n_groups = memberships.shape[1]
    sizes = np.diff(np.append(offsets, n_cells))
    starts = pairs_of(sizes)
    paired = sizes.size >= 2 and starts[-1] <= PAIR_CELLS
    sums = aligned_zeros((starts[-1] if paired else n_cells) * WIDTH)
    total = aligned_zeros(n_cells * WIDTH)
    out = np.empty((n_cells, n_groups))
    step = max(CHAIN, n_cells)
    for g in range(0, n_groups, WIDTH):
        for start in range(0, codes.shape[0], step):
            part, shares = codes[start : start + step], memberships[start : start + step]
            gather(part, offsets, starts, sizes, shares, g, paired, sums)
            if paired:
                margin_pairs(sums, offsets, sizes, total)
            else:
                total += sums
                sums[:] = 0.0
        some = min(WIDTH, n_groups - g)
        out[:, g : g + some] = total.reshape((n_cells, WIDTH))[:, :some]
        total[:] = 0.0
    return out


@register_jitable
def gather(
    codes: Array, offsets: Array, starts: Array, sizes: Array, memberships: Array, g: int, paired: bool, sums: Array
) -> None:
    """Add the memberships of eight groups from `g` to the cells of each row, one per column or per pair of columns."""
    rows, columns = codes.shape
    n_groups = memberships.shape[1]
    if not paired:
        for i in range(rows):
            share = load_part(memberships, i * n_groups + g, n_groups - g)
            for j in range(columns):
                add_at(sums, (offsets[j] + codes[i, j]) * WIDTH, share)
        return
    for i in range(rows):
        share = load_part(memberships, i * n_groups + g, n_groups - g)
        for k in range(columns // 2):
            add_at(sums, paired_cell(codes, i, k, starts, sizes) * WIDTH, share)
        if columns % 2:
            add_at(sums, (starts[columns // 2] + codes[i, columns - 1]) * WIDTH, share)


@register_jitable
def add_at(sums: Array, at: int, value: Any) -> None:
    store(sums, at, load(sums, at) + value)


@register_jitable
def margin_pairs(sums: Array, offsets: Array, sizes: Array, total: Array) -> None:
    """Add both columns' marginal sums of every pair for eight groups to the total, and reset `sums` to zero."""
    at = 0
    for j in range(0, sizes.size, 2):
        for a in range(sizes[j]):
            for b in range(sizes[j + 1] if j + 1 < sizes.size else 1):
                value = load(sums, at)
                add_at(total, (offsets[j] + a) * WIDTH, value)
                if j + 1 < sizes.size:
                    add_at(total, (offsets[j + 1] + b) * WIDTH, value)
                store(sums, at, fill(0.0))
                at += WIDTH


# -- sparse rows, such as words of documents


@fused
def score_bags(indptr: Array, ids: Array, counts: Array, table: Array, out: Array) -> None:
    groups = out.shape[1]
    sums = np.empty(groups)
    for i in range(out.shape[0]):
        sums[:] = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            times, row = counts[j], np.uintp(ids[j])
            for g in range(groups):
                sums[g] += times * table[row, g]
        for g in range(groups):
            out[i, g] += sums[g]


@fused
def count_bags_soft(indptr: Array, ids: Array, counts: Array, memberships: Array, width: int) -> Array:
    groups = memberships.shape[1]
    out = np.zeros((width, groups))
    for i in range(memberships.shape[0]):
        for j in range(indptr[i], indptr[i + 1]):
            times, row = counts[j], np.uintp(ids[j])
            for g in range(groups):
                out[row, g] += times * memberships[i, g]
    return out


def count_bags_labelled(
    indptr: Array, ids: Array, counts: Array, labels: Array, weights: Array | None, out: Array
) -> None:
    check_labels(labels, out.shape[1])
    _count_labelled_bags(indptr, ids, counts, labels, weights, out)


@fused
def _count_labelled_bags(indptr: Array, ids: Array, counts: Array, labels: Array, weights: Any, out: Array) -> None:
    for i in range(labels.size):
        if labels[i] < 0:
            continue
        weight = 1.0 if weights is None else weights[i]
        group = np.uintp(labels[i])
        for j in range(indptr[i], indptr[i + 1]):
            out[np.uintp(ids[j]), group] += weight * counts[j]


# -- neighbouring codes of sequences

TABLES = 4
"""Number of tables over which steps are spread, so that a count does not wait for the previous one in the same cell."""


@jit()
def count_neighbours(codes: Array, base: int) -> Array:
    """Count pairs of consecutive codes as (lanes x pairs), ignoring the borders of sequences."""
    tables = np.zeros((TABLES, base * base), np.int64)
    n = len(codes)
    lane = (n - 1) // TABLES
    first, second, third, fourth = tables[0], tables[1], tables[2], tables[3]
    a, b, c, d = np.int64(codes[0]), np.int64(codes[lane]), np.int64(codes[2 * lane]), np.int64(codes[3 * lane])
    for at in range(1, lane + 1):
        p, q = np.int64(codes[at]), np.int64(codes[lane + at])
        r, s = np.int64(codes[2 * lane + at]), np.int64(codes[3 * lane + at])
        first[a * base + p] += 1
        second[b * base + q] += 1
        third[c * base + r] += 1
        fourth[d * base + s] += 1
        a, b, c, d = p, q, r, s
    for at in range(4 * lane + 1, n):
        first[np.int64(codes[at - 1]) * base + np.int64(codes[at])] += 1
    return tables


@jit()
def count_neighbours_weighted(codes: Array, starts: Array, weights: Array, base: int) -> tuple[Array, Array]:
    """Return weighted counts of codes, and of pairs within each sequence."""
    alone, pairs = np.zeros(base), np.zeros((base, base))
    for which in range(len(weights)):
        weight = weights[which]
        for at in range(starts[which], starts[which + 1]):
            alone[codes[at]] += weight
            if at > starts[which]:
                pairs[codes[at - 1], codes[at]] += weight
    return alone, pairs
