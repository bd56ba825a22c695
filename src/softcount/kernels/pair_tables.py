"""Compiled counts of neighbouring pairs in sequences; a separate module, because small fits do not load Numba."""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import jit

LANES = 4
"""Number of tables over which steps are spread, so that a count does not wait for the previous one in the same cell."""


@jit()
def pair_table(codes: np.ndarray, base: int) -> np.ndarray:
    """Count pairs of consecutive codes as (lanes x pairs), ignoring the borders of sequences."""
    tables = np.zeros((LANES, base * base), np.int64)
    n = len(codes)
    lane = (n - 1) // LANES
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
def weighted_pair_table(
    codes: np.ndarray, starts: np.ndarray, weights: np.ndarray, base: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted counts of codes, and of pairs within each sequence."""
    alone, pairs = np.zeros(base), np.zeros((base, base))
    for which in range(len(weights)):
        weight = weights[which]
        for at in range(starts[which], starts[which + 1]):
            alone[codes[at]] += weight
            if at > starts[which]:
                pairs[codes[at - 1], codes[at]] += weight
    return alone, pairs
