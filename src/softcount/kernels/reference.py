"""The kernels in plain NumPy: the reference for the compiled ones, and the implementation for small tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from softcount.core.counts import Twofold, concatenate, stack, two_sum
from softcount.core.special import log_of
from softcount.kernels import Array

BLOCK_ROWS = 256
"""Number of rows summed in plain float64 before the sum is added to a twofold total."""

Sums = tuple[Array, Array]


def feature_count(columns: int) -> int:
    """Return the number of features: 1, every column, and every product of two."""
    return 1 + columns + columns * (columns + 1) // 2


@cache
def places(columns: int) -> Array:
    """Return the index of the feature that holds 1, x_i, and each x_i x_j of the full square.

    Features have i <= j only.
    """
    first, second = np.triu_indices(columns)
    square = np.zeros((columns, columns), dtype=np.intp)
    square[first, second] = square[second, first] = np.arange(len(first)) + 1 + columns
    return np.concatenate([np.arange(1 + columns), square.ravel()])


def folded_out(sums: Array, columns: int) -> Array:
    """Expand sums (feature, group) to (groups, 1 + d + d * d). Sums hold each product once."""
    return np.ascontiguousarray(sums[places(columns)].T)


def by_column(sums: Array, columns: int) -> Array:
    """Return (groups, columns, 3) with counts, sums and sums of squares, given sums (feature, group)."""
    found = np.empty((sums.shape[1], columns, 3))
    found[:, :, 0], found[:, :, 1], found[:, :, 2] = sums[:1].T, sums[1 : 1 + columns].T, sums[1 + columns :].T
    return found


def features_of(rows: Array, units: Array) -> Array:
    """Return (rows, features): 1, t_i and t_i t_j for i <= j, with t = (x - anchor) * scale."""
    t = (rows - units[0]) * units[1]
    first, second = np.triu_indices(rows.shape[1])
    return np.concatenate([np.ones((len(t), 1)), t, t[:, first] * t[:, second]], axis=1)


def blocks_of(rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    for start in range(0, rows, size):
        yield slice(start, start + size)


def expect_products(rows: Array, weights: Array | None, units: Array, eta: Array) -> tuple[Array, Array, float]:
    """Return expected counts of complete rows as twofold (groups, 1 + d + d * d), and their log-likelihood.

    `units` holds the anchors and scales of the columns. `eta` (groups, features) holds the natural parameters,
    including log shares. A row that is impossible in every group makes the log-likelihood -inf.
    """
    joint = np.zeros((len(rows), len(eta)))
    score_products(rows, units, eta, joint)
    memberships, likelihood = shared_out(joint, weights)
    return *count_products(rows, memberships, units), likelihood


def shared_out(joint: Array, weights: Array | None) -> tuple[Array, float]:
    """Return weighted memberships and the weighted log-likelihood of a log joint (rows, groups)."""
    peaks = joint.max(axis=1, initial=-np.inf)
    powers = np.exp(joint - np.where(np.isneginf(peaks), 0.0, peaks)[:, None])
    sums = powers.sum(axis=1)
    heavy = np.ones(len(joint)) if weights is None else weights
    evidence = np.where(heavy > 0, peaks + log_of(sums), 0.0)
    return powers * (heavy / np.where(sums == 0, 1.0, sums))[:, None], float(heavy @ evidence)


def score_products(rows: Array, units: Array, eta: Array, out: Array) -> None:
    """Add features times `eta` (groups, features) to `out` (rows, groups)."""
    for part in blocks_of(len(rows)):
        out[part] += features_of(rows[part], units) @ eta.T


def count_products(rows: Array, memberships: Array, units: Array) -> Sums:
    """Sum 1, t and t t' by membership, with t = (x - anchor) * scale, as twofold (groups, 1 + d + d * d)."""
    columns = rows.shape[1]
    total = Twofold.of(np.zeros((feature_count(columns), memberships.shape[1])))
    for part in blocks_of(len(rows)):
        total = total + Twofold.of(features_of(rows[part], units).T @ memberships[part])
    return folded_out(total.hi, columns), folded_out(total.lo, columns)


def score_centred(rows: Array, scales: Array, centres: Array, roots: Array, constants: Array, out: Array) -> None:
    """Add constant - |root (x - centre)|^2 / 2 of each group to `out` (rows, groups).

    `centres` (groups, 2, d) holds the point to subtract in the user's units, and the remaining part of the mean in
    scaled units.
    """
    for g, (centre, rest) in enumerate(centres):
        turned = ((rows - centre) * scales - rest) @ roots[g].T
        out[:, g] += constants[g] - 0.5 * (turned * turned).sum(axis=1)


def count_centred(rows: Array, memberships: Array, centres: Array, anchors: Array, scales: Array) -> Sums:
    """Sum rows and products by membership as `count_products` does, but around each group's centre.

    `centres` (groups, d) is in the user's units. The sums are moved to the anchors at the end.
    """
    wide = rows.shape[1] + 1
    total = Twofold.of(np.zeros((len(centres), wide * wide)))
    for part in blocks_of(len(rows)):
        moved = np.ones((len(centres), len(rows[part]), wide))
        moved[:, :, 1:] = (rows[part] - centres[:, None]) * scales
        heavy = moved * memberships[part].T[:, :, None]
        total = total + Twofold.of((heavy.swapaxes(1, 2) @ moved).reshape(total.shape))
    return anchored(total.hi, total.lo, centres, anchors, scales)


def anchored(high: Array, low: Array, centres: Array, anchors: Array, scales: Array) -> Sums:
    """Move sums around each group's centre, (groups, (1 + d)^2) with the ones first, to the anchors of the columns."""
    groups, d = centres.shape
    table = Twofold(high.reshape(groups, d + 1, d + 1), low.reshape(groups, d + 1, d + 1))
    step, rest = two_sum(centres, -anchors)
    shift = Twofold(step * scales, rest * scales)
    n = table[:, :1, 0]
    with np.errstate(all="ignore"):
        total = table[:, 0, 1:]
        moved = total + shift * n
        # sum (t + s)(t + s)' = sum t t' + s (sum t + n s)' + (sum t) s'
        products = table[:, 1:, 1:] + shift.spread(2) * moved.spread(1)
        products = products + total.spread(2) * shift.spread(1)
    parts = (n, moved, Twofold(products.hi.reshape(groups, -1), products.lo.reshape(groups, -1)))
    return np.concatenate([p.hi for p in parts], axis=1), np.concatenate([p.lo for p in parts], axis=1)


def score_patterns(
    rows: Array, starts: Array, scales: Array, centres: Array, covariances: Array
) -> tuple[Array, Array]:
    """Return squared distances (rows, groups) over the observed cells, and log root determinants (patterns, groups).

    Pattern p has rows starts[p] to starts[p + 1]; `centres` are as in `score_centred`.
    """
    groups = len(centres)
    distances, dets = np.zeros((len(rows), groups)), np.zeros((len(starts) - 1, groups))
    for some in alike(rows, starts, groups):
        root = np.linalg.cholesky(pairs(covariances, some.seen, some.seen))
        dets[some.patterns] = np.log(np.diagonal(root, axis1=2, axis2=3)).sum(axis=2).T
        moved = off_centre(rows, some, scales, centres) - centres[:, 1][:, some.seen][:, :, None]
        turned = np.linalg.solve(root, moved.swapaxes(2, 3))
        distances[some.rows] = (turned * turned).sum(axis=2).transpose(1, 2, 0)
    return distances, dets


MOST_CELLS = 1 << 19
"""Maximum number of covariance cells processed together."""


class Alike(NamedTuple):
    """Patterns of missing cells with equal numbers of rows and of observed columns, which are solved in one batch.

    One after the other, 148 patterns of 20 columns took 1.2 ms each, nearly all of it overhead between the products.
    `rows` is (patterns, n); `seen` and `holes` (patterns, columns) are the observed and the missing columns.
    """

    patterns: Array
    rows: Array
    seen: Array
    holes: Array


def alike(rows: Array, starts: Array, groups: int) -> Iterator[Alike]:
    """Yield all patterns in batches of similar ones, as far as memory allows."""
    there = ~np.isnan(rows[starts[:-1]])
    sizes, shapes = np.diff(starts), there.sum(axis=1)
    most = max(1, MOST_CELLS // (groups * (1 + rows.shape[1]) ** 2))
    for size, shape in sorted(set(zip(sizes.tolist(), shapes.tolist(), strict=True))):
        found = np.flatnonzero((sizes == size) & (shapes == shape))
        for at in range(0, len(found), most):
            some = found[at : at + most]
            seen, holes = (np.nonzero(x)[1].reshape(len(some), -1) for x in (there[some], ~there[some]))
            yield Alike(some, starts[some][:, None] + np.arange(size), seen, holes)


def pairs(covariances: Array, first: Array, second: Array) -> Array:
    """Return the covariances (groups, patterns, first, second) of each pattern's columns."""
    found: Array = covariances[:, first[:, :, None], second[:, None, :]]
    return found


def off_centre(rows: Array, some: Alike, scales: Array, centres: Array) -> Array:
    """Return the observed cells minus the groups' centres, scaled, as (groups, patterns, n, seen)."""
    cells = rows[some.rows[:, :, None], some.seen[:, None, :]]
    found: Array = (cells - centres[:, 0][:, some.seen][:, :, None]) * scales[some.seen][:, None, :]
    return found


def count_patterns(
    rows: Array, starts: Array, memberships: Array, units: Array, centres: Array, covariances: Array
) -> Sums:
    """Return expected counts, sums and products by membership, with missing cells at their conditional expectations.

    The result is twofold, as in `count_products`. A row without observed cells is not counted.
    """
    groups, wide = len(centres), rows.shape[1] + 1
    total = Twofold.of(np.zeros((groups, wide, wide)))
    for some in alike(rows, starts, groups):
        if some.seen.shape[1]:
            full, left = filled_in(rows, some, units[1], centres, covariances)
            shares = memberships[some.rows].transpose(2, 0, 1)
            spread = np.zeros((groups, wide, wide))
            heavy = left * shares.sum(axis=2)[:, :, None, None]
            places = 1 + some.holes
            where = (slice(None), places[:, :, None], places[:, None, :])
            np.add.at(spread, where, heavy)  # type: ignore[arg-type]  # NumPy accepts slices here, its stubs do not
            total = total + Twofold.of(spread)
            full, shares = full.reshape(groups, -1, wide), shares.reshape(groups, -1)
            products = Twofold.of(np.zeros((groups, wide, wide)))
            for piece in blocks_of(full.shape[1]):
                weighted = full[:, piece] * shares[:, piece, None]
                products = products + Twofold.of(weighted.swapaxes(1, 2) @ full[:, piece])
            total = total + products
    return anchored(total.hi, total.lo, centres[:, 0], units[0], units[1])


def filled_in(rows: Array, some: Alike, scales: Array, centres: Array, covariances: Array) -> tuple[Array, Array]:
    """Return rows with missing cells at their conditional means, and the conditional covariances of these cells.

    Rows are (groups, patterns, n, 1 + d): a one, then the cells minus the centre. Covariances are (groups, patterns,
    holes, holes).
    """
    across = pairs(covariances, some.seen, some.holes)
    gain = np.linalg.solve(pairs(covariances, some.seen, some.seen), across)
    off = off_centre(rows, some, scales, centres)
    rest = off - centres[:, 1][:, some.seen][:, :, None]
    full = np.ones((len(centres), *some.rows.shape, rows.shape[1] + 1))
    pattern, row = np.ogrid[: some.rows.shape[0], : some.rows.shape[1]]
    full[:, pattern[:, :, None], row[:, :, None], 1 + some.seen[:, None, :]] = off
    means = centres[:, 1][:, some.holes][:, :, None] + rest @ gain
    full[:, pattern[:, :, None], row[:, :, None], 1 + some.holes[:, None, :]] = means
    return full, pairs(covariances, some.holes, some.holes) - gain.swapaxes(2, 3) @ across


def completed(rows: Array, there: Array, scales: Array, centres: Array, covariances: Array) -> tuple[Array, Array]:
    """Fill the missing cells of rows of one pattern with their conditional means.

    Return rows (groups, n, 1 + d) relative to the centres, and the conditional covariance (groups, 1 + d, 1 + d).
    """
    seen, holes = np.flatnonzero(there), np.flatnonzero(~there)
    some = Alike(np.zeros(1, dtype=int), np.arange(len(rows))[None], seen[None], holes[None])
    full, beyond = filled_in(rows, some, scales, centres, covariances)
    left = np.zeros((len(centres), len(there) + 1, len(there) + 1))
    left[:, 1 + holes[:, None], 1 + holes] = beyond[:, 0]
    return full[:, 0], left


# -- numbers and codes

SHORT = 64
"""Number of rows summed in plain float64 before the sum is added to a twofold total."""
CACHED = 1 << 14
"""Maximum number of cells per block, so that temporary arrays stay in the cache."""
ROOM = 1 << 18
"""Maximum product of cells and groups that are counted side by side."""
BLOCK = 4096
"""Rows of codes per block: bounds the memory and the rounding error of long sums."""


def check_labels(labels: Array, n_groups: int) -> None:
    """Raise IndexError if a label is too large: a compiled loop would write past the end of its sums."""
    if labels.max(initial=-1) >= n_groups:
        row = int(np.argmax(labels >= n_groups))
        raise IndexError(f"row {row} is labelled {labels[row]}, but groups are 0 to {n_groups - 1}")


def count_labels(labels: Array, weights: Array | None, n_groups: int) -> Array:
    """Return the number of rows, or their total weight, in each group. Rows labelled -1 are left out."""
    check_labels(labels, n_groups)
    return np.bincount(labels + 1, weights, n_groups + 1)[1:].astype(np.float64)


def count_reals_labelled(
    reals: Array, labels: Array, weights: Array | None, centres: Array, anchors: Array, scales: Array
) -> Sums:
    """Return count, sum and sum of squares of (x - anchor) * scale per group and column, twofold (groups, columns, 3).

    Rows labelled -1 are left out. Sums are computed around each group's centre and moved to the anchor at the end.
    """
    check_labels(labels, len(centres))
    order = np.argsort(labels, kind="stable")
    if weights is not None:
        order = order[weights[order] != 0]
    bounds = np.searchsorted(labels[order], np.arange(len(centres) + 1))
    each = -(-np.diff(bounds) // SHORT)  # number of stretches of rows of each group
    starts = np.repeat(bounds[:-1] - SHORT * (np.cumsum(each) - each), each) + SHORT * np.arange(each.sum())
    step = max(1, CACHED // (SHORT * max(1, reals.shape[1])))
    parts = [np.zeros((0, 3, reals.shape[1]))]
    for first in range(0, len(starts), step):
        here = starts[first : first + step]
        rows = order[here[0] : starts[first + step] if first + step < len(starts) else None]
        heavy = np.ones((len(rows), 1)) if weights is None else weights[rows, None]
        parts.append(_stretches(reals[rows], heavy, centres[labels[rows]], scales, here - here[0]))
    return _anchor(_add_pairwise(np.concatenate(parts), each), centres, anchors, scales)


def _stretches(reals: Array, weights: Array, centres: Array, scales: Array, starts: Array) -> Array:
    """Return (stretches, 3, columns): weighted count, sum and sum of squares of t = (x - centre) * scale in float64."""
    found = np.empty((len(starts), 3, reals.shape[1]))
    with np.errstate(all="ignore"):
        t = reals - centres
        t *= scales
        missing = np.isnan(reals)
        if missing.any():
            weights, t = np.where(missing, 0.0, weights), np.where(missing, 0.0, t)
        wt = weights * t
        for place, part in enumerate((weights, wt, np.multiply(wt, t, out=t))):
            found[:, place] = np.add.reduceat(part, starts, axis=0)
    return found


def _add_pairwise(parts: Array, each: Array) -> Twofold:
    """Sum the parts of each group pairwise. `each` is the number of parts of each group; parts are sorted by group."""
    pair = Twofold.of(np.concatenate([parts, np.zeros((1, *parts.shape[1:]))]))  # the last part is zero
    while each.max(initial=0) > 1:
        half = -(-each // 2)
        within = np.arange(half.sum()) - np.repeat(np.cumsum(half) - half, half)
        first = np.repeat(np.cumsum(each) - each, half) + 2 * within
        second = np.where(2 * within + 1 < np.repeat(each, half), first + 1, -1)
        with np.errstate(all="ignore"):
            pair = concatenate([pair[first] + pair[second], pair[-1:]], axis=0)
        each = half
    return pair[np.where(each > 0, np.cumsum(each) - each, -1)]


def count_reals_soft(reals: Array, memberships: Array, centres: Array, anchors: Array, scales: Array) -> Sums:
    """Return count, sum and sum of squares of (x - anchor) * scale by membership, twofold (groups, columns, 3)."""
    abreast = max(1, ROOM // max(reals.size, 1))  # groups per block
    parts = [
        _around(reals, memberships[:, a : a + abreast], centres[a : a + abreast], scales)
        for a in range(0, len(centres), abreast)
    ]
    return _anchor(concatenate(parts, axis=0), centres, anchors, scales)


def _around(reals: Array, weights: Array, centres: Array, scales: Array) -> Twofold:
    """Return (groups, 3, columns): weighted count, sum and sum of squares of t = (x - centre) * scale.

    Missing cells are left out. All groups are summed side by side in one array.
    """
    n, (groups, columns) = len(reals), centres.shape
    with np.errstate(all="ignore"):
        t = (reals[:, None] - centres) * scales
        heavy, missing = weights[:, :, None], np.isnan(reals)
        if missing.any():
            heavy, t = np.where(missing[:, None], 0.0, heavy), np.where(missing[:, None], 0.0, t)
        wt = heavy * t
        own, all_of = groups * heavy.shape[2], groups * columns
        pair = _total(
            np.concatenate([heavy.reshape(n, own), wt.reshape(n, all_of), (wt * t).reshape(n, all_of)], axis=1)
        )
    found = []
    for half in (pair.hi, pair.lo):
        count, total, square = np.split(half, [own, own + all_of])
        count = np.broadcast_to(count.reshape(groups, -1), (groups, columns))
        found.append(np.stack([count, total.reshape(groups, columns), square.reshape(groups, columns)], axis=1))
    return Twofold(*found)


def _total(values: Array) -> Twofold:
    """Sum the rows: short stretches in plain float64, then their sums pairwise in twofold arithmetic."""
    whole = len(values) // SHORT
    stretches = values[: whole * SHORT].reshape(whole, SHORT, values.shape[1]).sum(axis=1)
    rest = values[whole * SHORT :].sum(axis=0, keepdims=True)
    pair = Twofold.of(np.concatenate([stretches, rest]))
    while len(pair.hi) > 1:
        half = len(pair.hi) // 2
        joined = pair[:half] + pair[half : 2 * half]
        pair = joined if 2 * half == len(pair.hi) else concatenate([joined, pair[2 * half :]], axis=0)
    return pair[0]


def _anchor(sums: Twofold, centres: Array, anchors: Array, scales: Array) -> Sums:
    """Move sums from each group's centre to the anchors of the columns: d = t + shift."""
    count, total, square = sums[:, 0], sums[:, 1], sums[:, 2]
    step, rest = two_sum(centres, -anchors)
    shift = Twofold(step * scales, rest * scales)
    with np.errstate(all="ignore"):
        moved = total + count * shift
        square = square + shift * (total + moved)
    found = stack([count, moved, square], axis=2)
    return found.hi, found.lo


def score_reals(reals: Array, means: Array, inverse_sds: Array, constants: Array, out: Array) -> None:
    """Add each row's normal log-density under each group to `out` (rows, groups). A missing cell adds nothing."""
    missing = np.isnan(reals)
    holes = missing.any()
    for g in range(len(means)):
        with np.errstate(over="ignore", invalid="ignore"):
            z = (reals - means[g]) * inverse_sds[g]
            part = constants[g] - 0.5 * z * z
        if holes:
            part[missing] = 0.0
        out[:, g] += part.sum(axis=1)


def score_codes(codes: Array, offsets: Array, table: Array, out: Array) -> None:
    """Add to `out` (rows, groups) the rows of the table that each row's codes select."""
    for j, offset in enumerate(offsets):
        out += table[offset + codes[:, j].astype(np.intp)]


def count_codes_labelled(
    codes: Array, offsets: Array, labels: Array, weights: Array | None, n_cells: int, n_groups: int
) -> Array:
    """Return the weight of the rows of each group in each cell, (cells, groups). Rows labelled -1 are left out."""
    check_labels(labels, n_groups)
    total = np.zeros(n_cells * n_groups)
    known = labels >= 0
    for rows in blocks_of(len(codes), BLOCK):
        kept = known[rows]
        cells = (codes[rows][kept] + offsets.astype(np.intp)) * n_groups + labels[rows][kept, None]
        heavy = None if weights is None else np.repeat(weights[rows][kept], codes.shape[1])
        total += np.bincount(cells.ravel(), heavy, n_cells * n_groups)
    return total.reshape(n_cells, n_groups)


def count_codes_soft(codes: Array, offsets: Array, memberships: Array, n_cells: int) -> Array:
    """Return the sum of the memberships of the rows in each cell, (cells, groups)."""
    total = np.zeros((n_cells, memberships.shape[1]))
    for rows in blocks_of(len(codes), BLOCK):
        cells = (codes[rows] + offsets.astype(np.intp)).ravel()
        for g, share in enumerate(memberships[rows].T):
            total[:, g] += np.bincount(cells, np.repeat(share, codes.shape[1]), n_cells)
    return total


def normalise(joint: Array) -> Array:
    """Turn the log joint into memberships in place. Return the log evidence of each row.

    A row that is impossible in every group gets memberships of zero and log evidence -inf.
    """
    peaks = joint.max(axis=1, initial=-np.inf)
    joint -= np.where(peaks == -np.inf, 0.0, peaks)[:, None]
    with np.errstate(divide="ignore", under="ignore"):
        np.exp(joint, out=joint)
        sums = joint.sum(axis=1)
        joint /= np.where(sums == 0.0, 1.0, sums)[:, None]
        return np.asarray(peaks + np.log(sums))


# Sparse rows: row i holds `counts[j]` of column `ids[j]`, for j from `indptr[i]` to `indptr[i + 1]`. `indptr` need not
# begin at 0.


def score_bags(indptr: Array, ids: Array, counts: Array, table: Array, out: Array) -> None:
    """Add to `out` (rows, groups) each row's counts times the `table` (columns, groups)."""
    out += _matrix(indptr, ids, counts, len(table)) @ table


def count_bags_soft(indptr: Array, ids: Array, counts: Array, memberships: Array, width: int) -> Array:
    """Return the counts of every column in every group, (columns, groups), weighted by memberships."""
    return np.ascontiguousarray(_matrix(indptr, ids, counts, width).T @ memberships)


def count_bags_labelled(
    indptr: Array, ids: Array, counts: Array, labels: Array, weights: Array | None, out: Array
) -> None:
    """Add the counts of every column in every group to `out` (columns, groups). Rows labelled -1 are left out."""
    from scipy import sparse

    width, groups = out.shape
    check_labels(labels, groups)
    known = np.flatnonzero(labels >= 0)
    weight = np.ones(len(known)) if weights is None else weights[known]
    members = sparse.csr_matrix((weight, (known, labels[known])), shape=(len(labels), groups))
    out += (_matrix(indptr, ids, counts, width).T @ members).toarray()


def _matrix(indptr: Array, ids: Array, counts: Array, width: int) -> Any:
    from scipy import sparse

    first, last = indptr[0], indptr[-1]
    return sparse.csr_matrix((counts[first:last], ids[first:last], indptr - first), shape=(len(indptr) - 1, width))
