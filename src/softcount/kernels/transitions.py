"""Counts of symbols and of neighbouring pairs in sequences, in one pass."""

from __future__ import annotations

import numpy as np

from softcount.kernels import WORTH_COMPILING, Array


def count_pairs(codes: Array, starts: Array, weights: Array | None, base: int) -> tuple[Array, Array]:
    """Return counts of each code, and of each pair of neighbours within a sequence, (before x after).

    Code 0 is missing.

    `starts` holds the first row of each sequence and then the number of rows. `weights` has one weight per sequence.
    """
    if len(codes) < WORTH_COMPILING:
        return pairs_in_numpy(codes, starts, weights, base)
    from softcount.kernels.codes import count_neighbours, count_neighbours_weighted

    starts = np.ascontiguousarray(starts, dtype=np.int64)
    if weights is None:
        # Count all pairs, then subtract those across the borders of sequences.
        pairs = count_neighbours(codes, base).sum(axis=0).reshape(base, base).astype(np.float64)
        between = np.unique(starts[1:-1])  # an empty sequence has the same start as the next one
        between = between[(between > 0) & (between < len(codes))]
        across = np.bincount(codes[between - 1].astype(np.int64) * base + codes[between], minlength=base * base)
        alone = pairs.sum(axis=0)
        alone[int(codes[0])] += 1
        pairs -= across.reshape(base, base)
    else:
        alone, pairs = count_neighbours_weighted(codes, starts, np.asarray(weights, dtype=np.float64), base)
    return _without_gaps(alone, pairs)


def pairs_in_numpy(codes: Array, starts: Array, weights: Array | None, base: int) -> tuple[Array, Array]:
    """Count codes and pairs as `count_pairs` does, with array operations only."""
    plain = codes.astype(np.int64)
    each = None if weights is None else np.repeat(weights, np.diff(starts))
    alone = np.bincount(plain, each, minlength=base).astype(np.float64)
    joined = np.ones(max(len(plain) - 1, 0), dtype=bool)
    between = starts[1:-1]
    joined[between[(between > 0) & (between < len(plain))] - 1] = False
    keys = (plain[:-1] * base + plain[1:])[joined]
    pairs = np.bincount(keys, None if each is None else each[1:][joined], minlength=base * base)
    return _without_gaps(alone, pairs.astype(np.float64).reshape(base, base))


def _without_gaps(alone: Array, pairs: Array) -> tuple[Array, Array]:
    alone[0] = 0.0
    pairs[0], pairs[:, 0] = 0.0, 0.0
    return alone, pairs
