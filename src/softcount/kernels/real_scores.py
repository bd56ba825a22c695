"""Scoring real columns, eight rows at a time under one group after another."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels import lanes
from softcount.kernels.jit import register_jitable
from softcount.kernels.lanes import WIDTH, aligned_zeros, fill, fused, load, padded, store, where_present
from softcount.kernels.posterior import put_posterior
from softcount.kernels.turned_tiles import ask_ahead, put_turned

TILE = 32
"""Rows scored at a time: four registers, whose sums stay in registers while the columns pass by."""


@fused
def score_reals(
    reals: np.ndarray, means: np.ndarray, inverse_sds: np.ndarray, constants: np.ndarray, out: np.ndarray
) -> None:
    """As in `reference`."""
    groups, columns = means.shape
    bases = bases_of(constants)
    tile = aligned_zeros(padded(columns) * TILE).reshape(padded(columns), TILE)
    scores = aligned_zeros(groups * TILE).reshape(groups, TILE)
    for start in range(0, reals.shape[0], TILE):
        score_tile(reals, start, tile, means, inverse_sds, constants, bases, scores)
        for i in range(min(TILE, reals.shape[0] - start)):
            for g in range(groups):
                out[start + i, g] += scores[g, i]


@fused
def posterior_reals(
    reals: np.ndarray,
    means: np.ndarray,
    inverse_sds: np.ndarray,
    constants: np.ndarray,
    log_shares: np.ndarray,
    out: np.ndarray,
) -> np.ndarray:
    """As in `reference`."""
    groups, columns = means.shape
    bases = bases_of(constants)
    tile = aligned_zeros(padded(columns) * TILE).reshape(padded(columns), TILE)
    scores = aligned_zeros(groups * TILE).reshape(groups, TILE)
    evidence = np.empty(reals.shape[0] + TILE)
    for start in range(0, reals.shape[0], TILE):
        score_tile(reals, start, tile, means, inverse_sds, constants, bases, scores)
        put_posterior(scores, log_shares, evidence[start : start + TILE], out[start : start + TILE])
    return evidence[: reals.shape[0]]


@register_jitable
def score_tile(
    reals: np.ndarray,
    start: int,
    tile: np.ndarray,
    means: np.ndarray,
    inverse_sds: np.ndarray,
    constants: np.ndarray,
    bases: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Scores (groups, rows) of a tile's rows; past the last row come those of any other."""
    groups, columns = means.shape
    stop = min(start + TILE, reals.shape[0])
    put_turned(reals, start, stop, tile)
    complete = is_complete(tile, columns)
    for g in range(groups):
        ask_ahead(reals, stop, stop + TILE, g, groups)
        if complete:
            score_complete(tile, means[g], inverse_sds[g], bases[g], scores[g])
        else:
            score_with_holes(tile, means[g], inverse_sds[g], constants[g], scores[g])


@register_jitable
def bases_of(constants: np.ndarray) -> np.ndarray:
    """Per group, the constants of all columns, added in their order, as a row without holes adds them."""
    bases = np.zeros(constants.shape[0])
    for g in range(constants.shape[0]):
        for j in range(constants.shape[1]):
            bases[g] += constants[g, j]
    return bases


@register_jitable
def is_complete(tile: np.ndarray, columns: int) -> bool:
    """Whether no cell is missing; an infinite one counts as missing, which costs time only."""
    zero = fill(0.0)
    t0, t1, t2, t3 = zero, zero, zero, zero
    for at in range(0, columns * TILE, TILE):
        t0, t1 = load(tile, at) * zero + t0, load(tile, at + WIDTH) * zero + t1
        t2, t3 = load(tile, at + 2 * WIDTH) * zero + t2, load(tile, at + 3 * WIDTH) * zero + t3
    return bool(lanes.sum_of(t0 + t1 + (t2 + t3)) == 0.0)


@register_jitable
def score_complete(
    tile: np.ndarray, means: np.ndarray, inverse_sds: np.ndarray, base: float, scores: np.ndarray
) -> None:
    """Scores of a tile's rows, none with a hole, under one group; the same bits as `score_with_holes` gives."""
    q0, q1, q2, q3 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
    for j in range(means.size):
        mean, inverse, at = fill(means[j]), fill(inverse_sds[j]), j * TILE
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
def score_with_holes(
    tile: np.ndarray, means: np.ndarray, inverse_sds: np.ndarray, constants: np.ndarray, scores: np.ndarray
) -> None:
    """Scores of a tile's rows under one group; a missing cell adds nothing."""
    for i in range(0, TILE, 2 * WIDTH):
        q0, q1, c0, c1 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for j in range(means.size):
            mean, inverse, constant = fill(means[j]), fill(inverse_sds[j]), fill(constants[j])
            q0, c0 = add_cell(load(tile, j * TILE + i), mean, inverse, constant, q0, c0)
            q1, c1 = add_cell(load(tile, j * TILE + i + WIDTH), mean, inverse, constant, q1, c1)
        put_score(scores, i, q0, c0)
        put_score(scores, i + WIDTH, q1, c1)


@register_jitable
def add_cell(cell: Any, mean: Any, inverse: Any, constant: Any, square: Any, base: Any) -> Any:
    """One cell's squared distance and constant, in eight rows."""
    z = where_present(cell, (cell - mean) * inverse)
    return z * z + square, base + where_present(cell, constant)


@register_jitable
def put_score(scores: np.ndarray, at: int, square: Any, base: Any) -> None:
    """Write base - square / 2 of eight rows."""
    store(scores, at, square * fill(-0.5) + base)
