"""The kernels in plain NumPy: the reference for the compiled ones, and the code that small tables use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from softcount.core.twofold import Twofold, concatenate, two_sum

BLOCK_ROWS = 256
"""Rows whose sums are plain before they join a pair."""

Sums = tuple[np.ndarray, np.ndarray]


def feature_count(columns: int) -> int:
    """1, every column, and every product of two."""
    return 1 + columns + columns * (columns + 1) // 2


@cache
def places(columns: int) -> np.ndarray:
    """For 1, x_i and every x_i x_j in a full square, which feature (products with i <= j only) holds it."""
    first, second = np.triu_indices(columns)
    square = np.zeros((columns, columns), dtype=np.intp)
    square[first, second] = square[second, first] = np.arange(len(first)) + 1 + columns
    return np.concatenate([np.arange(1 + columns), square.ravel()])


def folded_out(sums: np.ndarray, columns: int) -> np.ndarray:
    """(groups, 1 + d + d * d) from sums by (feature, group), where each product is held once."""
    return np.ascontiguousarray(sums[places(columns)].T)


def by_column(sums: np.ndarray, columns: int) -> np.ndarray:
    """(groups, columns, 3) rows, sums and squares from sums by (feature, group)."""
    found = np.empty((sums.shape[1], columns, 3))
    found[:, :, 0], found[:, :, 1], found[:, :, 2] = sums[:1].T, sums[1 : 1 + columns].T, sums[1 + columns :].T
    return found


def features_of(rows: np.ndarray, units: np.ndarray) -> np.ndarray:
    """(rows, features): 1, t_i and t_i t_j for i <= j, of t = (x - anchor) * scale."""
    t = (rows - units[0]) * units[1]
    first, second = np.triu_indices(rows.shape[1])
    return np.concatenate([np.ones((len(t), 1)), t, t[:, first] * t[:, second]], axis=1)


def blocks_of(rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, rows, size))


def expect_products(
    rows: np.ndarray, weights: np.ndarray | None, units: np.ndarray, eta: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Expected counts of complete rows as pairs (groups, 1 + d + d * d), and their log-likelihood.

    `units` are the columns' anchors and scales, `eta` (groups, features) what multiplies the features, log shares
    included. A row that no group can have made makes the log-likelihood -inf.
    """
    joint = np.zeros((len(rows), len(eta)))
    score_products(rows, units, eta, joint)
    memberships, likelihood = shared_out(joint, weights)
    return *count_products(rows, memberships, units), likelihood


def shared_out(joint: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, float]:
    """Weighted memberships and weighted log-likelihood of a log joint (rows, groups)."""
    peaks = joint.max(axis=1, initial=-np.inf)
    powers = np.exp(joint - np.where(np.isneginf(peaks), 0.0, peaks)[:, None])
    sums = powers.sum(axis=1)
    heavy = np.ones(len(joint)) if weights is None else weights
    with np.errstate(divide="ignore"):
        evidence = np.where(heavy > 0, peaks + np.log(sums), 0.0)
    return powers * (heavy / np.where(sums == 0, 1.0, sums))[:, None], float(heavy @ evidence)


def score_products(rows: np.ndarray, units: np.ndarray, eta: np.ndarray, out: np.ndarray) -> None:
    """Add features times `eta` (groups, features) to `out` (rows, groups)."""
    for part in blocks_of(len(rows)):
        out[part] += features_of(rows[part], units) @ eta.T


def count_products(rows: np.ndarray, memberships: np.ndarray, units: np.ndarray) -> Sums:
    """Rows, sums and products of (x - anchor) * scale by membership, as pairs (groups, 1 + d + d * d)."""
    columns = rows.shape[1]
    total = Twofold.of(np.zeros((feature_count(columns), memberships.shape[1])))
    for part in blocks_of(len(rows)):
        total = total + Twofold.of(features_of(rows[part], units).T @ memberships[part])
    return folded_out(total.hi, columns), folded_out(total.lo, columns)


def score_centred(
    rows: np.ndarray,
    scales: np.ndarray,
    centres: np.ndarray,
    roots: np.ndarray,
    constants: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add constant - |root (x - centre)|^2 / 2 of each group to `out` (rows, groups).

    `centres` (groups, 2, d) holds where to centre in the user's units and what is then left of the mean in scaled ones.
    """
    for g, (centre, rest) in enumerate(centres):
        turned = ((rows - centre) * scales - rest) @ roots[g].T
        out[:, g] += constants[g] - 0.5 * (turned * turned).sum(axis=1)


def count_centred(
    rows: np.ndarray, memberships: np.ndarray, centres: np.ndarray, anchors: np.ndarray, scales: np.ndarray
) -> Sums:
    """As `count_products`, each group summed around its centre (groups, d), in the user's units, and then anchored."""
    wide = rows.shape[1] + 1
    total = Twofold.of(np.zeros((len(centres), wide * wide)))
    for part in blocks_of(len(rows)):
        moved = np.ones((len(centres), len(rows[part]), wide))
        moved[:, :, 1:] = (rows[part] - centres[:, None]) * scales
        heavy = moved * memberships[part].T[:, :, None]
        total = total + Twofold.of((heavy.swapaxes(1, 2) @ moved).reshape(total.shape))
    return anchored(total.hi, total.lo, centres, anchors, scales)


def anchored(high: np.ndarray, low: np.ndarray, centres: np.ndarray, anchors: np.ndarray, scales: np.ndarray) -> Sums:
    """Sums around each group's centre, (groups, (1 + d)^2) with the ones first, moved to the columns' anchors."""
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
    rows: np.ndarray, starts: np.ndarray, scales: np.ndarray, centres: np.ndarray, covariances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances (rows, groups) of what is there of each row, and the log root determinants (patterns, groups).

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
"""Cells of covariances that are looked at together."""


class Alike(NamedTuple):
    """Patterns of holes that have as many columns and as many rows each, so that all are solved at once.

    One after the other, 148 patterns of 20 columns took 1.2 ms each, nearly all of it between the products. `rows`
    (patterns, n), `seen` and `holes` (patterns, columns) say where.
    """

    patterns: np.ndarray
    rows: np.ndarray
    seen: np.ndarray
    holes: np.ndarray


def alike(rows: np.ndarray, starts: np.ndarray, groups: int) -> Iterator[Alike]:
    """All patterns, those that are alike together as far as memory allows."""
    there = ~np.isnan(rows[starts[:-1]])
    sizes, shapes = np.diff(starts), there.sum(axis=1)
    most = max(1, MOST_CELLS // (groups * (1 + rows.shape[1]) ** 2))
    for size, shape in sorted(set(zip(sizes.tolist(), shapes.tolist(), strict=True))):
        found = np.flatnonzero((sizes == size) & (shapes == shape))
        for at in range(0, len(found), most):
            some = found[at : at + most]
            seen, holes = (np.nonzero(x)[1].reshape(len(some), -1) for x in (there[some], ~there[some]))
            yield Alike(some, starts[some][:, None] + np.arange(size), seen, holes)


def pairs(covariances: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The covariances (groups, patterns, first, second) of each pattern's columns."""
    found: np.ndarray = covariances[:, first[:, :, None], second[:, None, :]]
    return found


def off_centre(rows: np.ndarray, some: Alike, scales: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """What is there of rows, (groups, patterns, n, seen), off the groups' centres."""
    cells = rows[some.rows[:, :, None], some.seen[:, None, :]]
    found: np.ndarray = (cells - centres[:, 0][:, some.seen][:, :, None]) * scales[some.seen][:, None, :]
    return found


def count_patterns(
    rows: np.ndarray,
    starts: np.ndarray,
    memberships: np.ndarray,
    units: np.ndarray,
    centres: np.ndarray,
    covariances: np.ndarray,
) -> Sums:
    """Expected rows, sums and products by membership, holes at their conditional expectations; pairs as in `blocks`.

    A row with nothing in it is not counted.
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
            np.add.at(spread, where, heavy)  # type: ignore[arg-type]  # NumPy takes slices here, and its types do not
            total = total + Twofold.of(spread)
            full, shares = full.reshape(groups, -1, wide), shares.reshape(groups, -1)
            products = Twofold.of(np.zeros((groups, wide, wide)))
            for piece in blocks_of(full.shape[1]):
                weighted = full[:, piece] * shares[:, piece, None]
                products = products + Twofold.of(weighted.swapaxes(1, 2) @ full[:, piece])
            total = total + products
    return anchored(total.hi, total.lo, centres[:, 0], units[0], units[1])


def filled_in(
    rows: np.ndarray, some: Alike, scales: np.ndarray, centres: np.ndarray, covariances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """1 and each row (groups, patterns, n, 1 + d) off its centres with the holes at their conditional means, and the
    covariances (groups, patterns, holes, holes) left over."""
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


def completed(
    rows: np.ndarray, there: np.ndarray, scales: np.ndarray, centres: np.ndarray, covariances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As `filled_in`, of rows of one pattern; the covariance left over is (groups, 1 + d, 1 + d)."""
    seen, holes = np.flatnonzero(there), np.flatnonzero(~there)
    some = Alike(np.zeros(1, dtype=int), np.arange(len(rows))[None], seen[None], holes[None])
    full, beyond = filled_in(rows, some, scales, centres, covariances)
    left = np.zeros((len(centres), len(there) + 1, len(there) + 1))
    left[:, 1 + holes[:, None], 1 + holes] = beyond[:, 0]
    return full[:, 0], left


# -- numbers and codes

SHORT = 64
"""Rows added plainly before their sum joins a pair."""
CACHED = 1 << 14
"""Cells whose sums are made at once: what comes between stays in the cache."""
ROOM = 1 << 18
"""Cells times groups that are counted abreast."""
BLOCK = 4096
"""Rows of codes counted at once: bounds the memory used and the rounding of long sums."""


def check_labels(labels: np.ndarray, n_groups: int) -> None:
    """Refuse labels of groups that do not exist: a compiled loop would write past the end of its sums."""
    if labels.max(initial=-1) >= n_groups:
        row = int(np.argmax(labels >= n_groups))
        raise IndexError(f"row {row} is labelled {labels[row]}, but groups are 0 to {n_groups - 1}")


def count_labels(labels: np.ndarray, weights: np.ndarray | None, n_groups: int) -> np.ndarray:
    """The weight of the rows of each group, or how many there are; rows labelled -1 are left out."""
    check_labels(labels, n_groups)
    known = labels >= 0
    return np.bincount(labels[known], None if weights is None else weights[known], n_groups).astype(np.float64)


def count_reals_labelled(
    reals: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None,
    centres: np.ndarray,
    anchors: np.ndarray,
    scales: np.ndarray,
) -> Sums:
    """Count, sum and sum of squares of (x - anchor) * scale per group and column, (groups, columns, 3) in pairs.

    Rows labelled -1 are left out. Sums run around each group's centre and move to the anchor at the end.
    """
    check_labels(labels, len(centres))
    order = np.argsort(labels, kind="stable")
    if weights is not None:
        order = order[weights[order] != 0]
    bounds = np.searchsorted(labels[order], np.arange(len(centres) + 1))
    each = -(-np.diff(bounds) // SHORT)  # stretches of rows that each group has
    starts = np.repeat(bounds[:-1] - SHORT * (np.cumsum(each) - each), each) + SHORT * np.arange(each.sum())
    step = max(1, CACHED // (SHORT * max(1, reals.shape[1])))
    parts = [np.zeros((0, 3, reals.shape[1]))]
    for first in range(0, len(starts), step):
        here = starts[first : first + step]
        rows = order[here[0] : starts[first + step] if first + step < len(starts) else None]
        heavy = np.ones((len(rows), 1)) if weights is None else weights[rows, None]
        parts.append(_stretches(reals[rows], heavy, centres[labels[rows]], scales, here - here[0]))
    return _anchor(_add_pairwise(np.concatenate(parts), each), centres, anchors, scales)


def _stretches(
    reals: np.ndarray, weights: np.ndarray, centres: np.ndarray, scales: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """(stretches, 3, columns): weighted count, sum and sum of squares of t = (x - centre) * scale, added plainly."""
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


def _add_pairwise(parts: np.ndarray, each: np.ndarray) -> Twofold:
    """Sums of as many parts as each group has, one group's after another's: two by two until one is left."""
    pair = Twofold.of(np.concatenate([parts, np.zeros((1, *parts.shape[1:]))]))  # the last one is nothing
    while each.max(initial=0) > 1:
        half = -(-each // 2)
        within = np.arange(half.sum()) - np.repeat(np.cumsum(half) - half, half)
        first = np.repeat(np.cumsum(each) - each, half) + 2 * within
        second = np.where(2 * within + 1 < np.repeat(each, half), first + 1, -1)
        with np.errstate(all="ignore"):
            pair = concatenate([pair[first] + pair[second], pair[-1:]], axis=0)
        each = half
    return pair[np.where(each > 0, np.cumsum(each) - each, -1)]


def count_reals_soft(
    reals: np.ndarray, memberships: np.ndarray, centres: np.ndarray, anchors: np.ndarray, scales: np.ndarray
) -> Sums:
    """As `count_reals_labelled`, every row belonging to every group by its membership."""
    abreast = max(1, ROOM // max(reals.size, 1))  # groups at a time
    parts = [
        _around(reals, memberships[:, a : a + abreast], centres[a : a + abreast], scales)
        for a in range(0, len(centres), abreast)
    ]
    return _anchor(concatenate(parts, axis=0), centres, anchors, scales)


def _around(reals: np.ndarray, weights: np.ndarray, centres: np.ndarray, scales: np.ndarray) -> Twofold:
    """(groups, 3, columns): weighted count, sum and sum of squares of t = (x - centre) * scale over the cells present.

    All groups side by side: their sums are added up at once.
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


def _total(values: np.ndarray) -> Twofold:
    """The sum of the rows: short stretches added plainly, their sums halved in pairs until one is left."""
    whole = len(values) // SHORT
    stretches = values[: whole * SHORT].reshape(whole, SHORT, values.shape[1]).sum(axis=1)
    rest = values[whole * SHORT :].sum(axis=0, keepdims=True)
    pair = Twofold.of(np.concatenate([stretches, rest]))
    while len(pair.hi) > 1:
        half = len(pair.hi) // 2
        joined = pair[:half] + pair[half : 2 * half]
        pair = joined if 2 * half == len(pair.hi) else concatenate([joined, pair[2 * half :]], axis=0)
    return pair[0]


def _anchor(sums: Twofold, centres: np.ndarray, anchors: np.ndarray, scales: np.ndarray) -> Sums:
    """The sums moved from each group's centre to the columns' anchors: d = t + shift."""
    count, total, square = (sums[:, k] for k in range(3))
    step, rest = two_sum(centres, -anchors)
    shift = Twofold(step * scales, rest * scales)
    with np.errstate(all="ignore"):
        moved = total + count * shift
        square = square + shift * (total + moved)
    stats = (count, moved, square)
    return np.stack([stat.hi for stat in stats], axis=2), np.stack([stat.lo for stat in stats], axis=2)


def score_reals(
    reals: np.ndarray, means: np.ndarray, inverse_sds: np.ndarray, constants: np.ndarray, out: np.ndarray
) -> None:
    """Add each row's normal log-density under each group to `out` (rows, groups); a missing cell adds nothing."""
    missing = np.isnan(reals)
    holes = missing.any()
    for g in range(len(means)):
        with np.errstate(over="ignore", invalid="ignore"):
            z = (reals - means[g]) * inverse_sds[g]
            part = constants[g] - 0.5 * z * z
        if holes:
            part[missing] = 0.0
        out[:, g] += part.sum(axis=1)


def score_codes(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Add to `out` (rows, groups) the table's rows that each row's codes point at."""
    for j, offset in enumerate(offsets):
        out += table[offset + codes[:, j].astype(np.intp)]


def count_codes_labelled(
    codes: np.ndarray,
    offsets: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None,
    n_cells: int,
    n_groups: int,
) -> np.ndarray:
    """Weight of the rows of each group in each cell, (cells, groups); rows labelled -1 are left out."""
    check_labels(labels, n_groups)
    total = np.zeros(n_cells * n_groups)
    known = labels >= 0
    for rows in blocks_of(len(codes), BLOCK):
        kept = known[rows]
        cells = (codes[rows][kept] + offsets.astype(np.intp)) * n_groups + labels[rows][kept, None]
        heavy = None if weights is None else np.repeat(weights[rows][kept], codes.shape[1])
        total += np.bincount(cells.ravel(), heavy, n_cells * n_groups)
    return total.reshape(n_cells, n_groups)


def count_codes_soft(codes: np.ndarray, offsets: np.ndarray, memberships: np.ndarray, n_cells: int) -> np.ndarray:
    """Membership of the rows of each group in each cell, (cells, groups)."""
    total = np.zeros((n_cells, memberships.shape[1]))
    for rows in blocks_of(len(codes), BLOCK):
        cells = (codes[rows] + offsets.astype(np.intp)).ravel()
        for g, share in enumerate(memberships[rows].T):
            total[:, g] += np.bincount(cells, np.repeat(share, codes.shape[1]), n_cells)
    return total


def normalise(joint: np.ndarray) -> np.ndarray:
    """Turn log joint into memberships in place; the log evidence of each row comes back.

    A row impossible in every group gets memberships of zero and evidence -inf.
    """
    peaks = joint.max(axis=1, initial=-np.inf)
    joint -= np.where(peaks == -np.inf, 0.0, peaks)[:, None]
    with np.errstate(divide="ignore", under="ignore"):
        np.exp(joint, out=joint)
        sums = joint.sum(axis=1)
        joint /= np.where(sums == 0.0, 1.0, sums)[:, None]
        return np.asarray(peaks + np.log(sums))


# Sparse rows: row i holds column `ids[j]` `counts[j]` times, for j from `indptr[i]` to `indptr[i + 1]`, which need not
# begin at 0.


def score_bags(indptr: np.ndarray, ids: np.ndarray, counts: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Add to `out` (rows, groups) each row's counts times the `table` (columns, groups)."""
    out += _matrix(indptr, ids, counts, len(table)) @ table


def count_bags_soft(
    indptr: np.ndarray, ids: np.ndarray, counts: np.ndarray, memberships: np.ndarray, width: int
) -> np.ndarray:
    """Counts of every column in every group, (columns, groups), each row shared out by its memberships."""
    return np.ascontiguousarray(_matrix(indptr, ids, counts, width).T @ memberships)


def count_bags_labelled(
    indptr: np.ndarray,
    ids: np.ndarray,
    counts: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None,
    out: np.ndarray,
) -> None:
    """Add to `out` (columns, groups) the counts of every column in every group; rows labelled -1 are left out."""
    from scipy import sparse

    width, groups = out.shape
    check_labels(labels, groups)
    known = np.flatnonzero(labels >= 0)
    weight = np.ones(len(known)) if weights is None else weights[known]
    members = sparse.csr_matrix((weight, (known, labels[known])), shape=(len(labels), groups))
    out += (_matrix(indptr, ids, counts, width).T @ members).toarray()


def _matrix(indptr: np.ndarray, ids: np.ndarray, counts: np.ndarray, width: int) -> Any:
    from scipy import sparse

    first, last = indptr[0], indptr[-1]
    return sparse.csr_matrix((counts[first:last], ids[first:last], indptr - first), shape=(len(indptr) - 1, width))
