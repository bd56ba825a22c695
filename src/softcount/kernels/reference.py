"""The kernels in plain NumPy: what the compiled ones are held against, and what small tables really use."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels.reference_blocks import (  # noqa: F401
    Sums,
    blocks_of,
    count_centred,
    count_patterns,
    count_products,
    expect_products,
    expect_squares,
    score_centred,
    score_patterns,
    score_products,
)
from softcount.numerics.twofold import Twofold, concatenate, two_sum

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
    return _anchored(_joined(np.concatenate(parts), each), centres, anchors, scales)


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


def _joined(parts: np.ndarray, each: np.ndarray) -> Twofold:
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
    return _anchored(concatenate(parts, axis=0), centres, anchors, scales)


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


def _anchored(sums: Twofold, centres: np.ndarray, anchors: np.ndarray, scales: np.ndarray) -> Sums:
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


def posterior_reals(
    reals: np.ndarray,
    means: np.ndarray,
    inverse_sds: np.ndarray,
    constants: np.ndarray,
    log_shares: np.ndarray,
    out: np.ndarray,
) -> np.ndarray:
    """Write memberships to `out` (rows, groups) where these columns are all there is; log evidence comes back."""
    out[:] = log_shares
    score_reals(reals, means, inverse_sds, constants, out)
    return normalise(out)


def score_codes(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Add to `out` (rows, groups) the table's rows that each row's codes point at."""
    for j, offset in enumerate(offsets):
        out += table[offset + codes[:, j].astype(np.intp)]


def posterior_codes(
    codes: np.ndarray, offsets: np.ndarray, table: np.ndarray, log_shares: np.ndarray, out: np.ndarray
) -> np.ndarray:
    """As `posterior_reals`, of coded columns."""
    out[:] = log_shares
    score_codes(codes, offsets, table, out)
    return normalise(out)


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


def normalise_weighted(joint: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """As `normalise`, memberships times the row's weight; the evidence is not weighted."""
    evidence = normalise(joint)
    joint *= weights[:, None]
    return evidence


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
