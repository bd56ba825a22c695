"""Correlated blocks in plain NumPy: what the compiled kernels are held against, and what small tables really use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from softcount.numerics.twofold import Twofold, two_sum

BLOCK = 256
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


def blocks_of(rows: int, size: int = BLOCK) -> Iterator[slice]:
    """Rows a block at a time."""
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


def expect_squares(
    rows: np.ndarray, weights: np.ndarray | None, units: np.ndarray, eta: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """The same for independent columns, whose features are 1, x_i and x_i^2: pairs (groups, columns, 3).

    Only for complete rows: the log-likelihood is NaN where a cell is missing.
    """
    t = (rows - units[0]) * units[1]
    features = np.concatenate([np.ones((len(t), 1)), t, t * t], axis=1)
    memberships, likelihood = shared_out(features @ eta.T, weights)
    total = Twofold.of(np.zeros(eta.T.shape))
    for part in blocks_of(len(rows)):
        total = total + Twofold.of(features[part].T @ memberships[part])
    columns = rows.shape[1]
    return by_column(total.hi, columns), by_column(total.lo, columns), likelihood


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
            where = (slice(None), *_square(1 + some.holes))
            np.add.at(spread, where, heavy)  # type: ignore[arg-type]  # NumPy takes slices here, and its types do not
            total = total + Twofold.of(spread)
            total = total + _products(full.reshape(groups, -1, wide), shares.reshape(groups, -1))
    return anchored(total.hi, total.lo, centres[:, 0], units[0], units[1])


def _products(full: np.ndarray, shares: np.ndarray) -> Twofold:
    """Sums of rows times themselves by group."""
    total = Twofold.of(np.zeros((len(full), full.shape[2], full.shape[2])))
    for piece in blocks_of(full.shape[1]):
        heavy = full[:, piece] * shares[:, piece, None]
        total = total + Twofold.of(heavy.swapaxes(1, 2) @ full[:, piece])
    return total


def _square(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return places[:, :, None], places[:, None, :]


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
