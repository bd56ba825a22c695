"""Symbols and pairs of neighbours in sequences, counted in one pass."""

from __future__ import annotations

import sys

import numpy as np

from softcount.kernels import WORTH_COMPILING
from softcount.kernels.jit import jit

LANES = 4
"""Tables that a run of steps is spread over: a count need not wait for the last one at the same place."""


@jit()
def pair_table(codes: np.ndarray, base: int) -> np.ndarray:
    """(lanes x pairs) how often code follows code, borders of sequences not regarded."""
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
def byte_pair_table(words: np.ndarray, base: int) -> np.ndarray:
    """(lanes x pairs) of one-byte codes that are read eight at a time, the first in the low byte of a word.

    The tables are padded: at the same place of a page, a read would wait for what was written in another.
    """
    tables = np.zeros((LANES, base * base + 24), np.int64)
    first, second, third, fourth = tables[0], tables[1], tables[2], tables[3]
    size, low = np.uint64(base), np.uint64(0xFF)
    a = words[0] & low
    for at in range(len(words) - 1):
        word = words[at]
        b, c, d = (word >> np.uint64(8)) & low, (word >> np.uint64(16)) & low, (word >> np.uint64(24)) & low
        e, f, g = (word >> np.uint64(32)) & low, (word >> np.uint64(40)) & low, (word >> np.uint64(48)) & low
        h, i = word >> np.uint64(56), words[at + 1] & low
        first[a * size + b] += 1
        second[b * size + c] += 1
        third[c * size + d] += 1
        fourth[d * size + e] += 1
        first[e * size + f] += 1
        second[f * size + g] += 1
        third[g * size + h] += 1
        fourth[h * size + i] += 1
        a = i
    return tables


@jit()
def weighted_pair_table(
    codes: np.ndarray, starts: np.ndarray, weights: np.ndarray, base: int
) -> tuple[np.ndarray, np.ndarray]:
    """Codes and pairs within each sequence, each as it weighs."""
    alone, pairs = np.zeros(base), np.zeros((base, base))
    for which in range(len(weights)):
        weight = weights[which]
        for at in range(starts[which], starts[which + 1]):
            alone[codes[at]] += weight
            if at > starts[which]:
                pairs[codes[at - 1], codes[at]] += weight
    return alone, pairs


# Symbols and pairs of neighbours of sequences counted in one pass over their codes.


def count_pairs(
    codes: np.ndarray, starts: np.ndarray, weights: np.ndarray | None, base: int
) -> tuple[np.ndarray, np.ndarray]:
    """How often each code occurs, and (before x after) each pair of neighbours in one sequence; code 0 is a gap.

    `starts` are the first rows of sequences and the number of rows last; `weights` is one for each sequence.
    """
    if len(codes) < WORTH_COMPILING:
        return pairs_in_numpy(codes, starts, weights, base)

    starts = np.ascontiguousarray(starts, dtype=np.int64)
    if weights is None:
        pairs = _all_pairs(codes, base).astype(np.float64)
        between = np.unique(starts[1:-1])  # an empty sequence starts where another does
        between = between[(between > 0) & (between < len(codes))]
        across = np.bincount(codes[between - 1].astype(np.int64) * base + codes[between], minlength=base * base)
        alone = pairs.sum(axis=0)
        alone[int(codes[0])] += 1
        pairs -= across.reshape(base, base)
    else:
        alone, pairs = weighted_pair_table(codes, starts, np.asarray(weights, dtype=np.float64), base)
    return _without_gaps(alone, pairs)


def _all_pairs(codes: np.ndarray, base: int) -> np.ndarray:
    """(before x after) how often code follows code, borders of sequences not regarded."""

    if codes.dtype != np.uint8 or sys.byteorder != "little" or not codes.flags.c_contiguous:
        return np.asarray(pair_table(codes, base).sum(axis=0).reshape(base, base))
    whole = len(codes) // 8 * 8
    counted = byte_pair_table(codes[:whole].view(np.uint64), base).sum(axis=0)
    found = counted[: base * base].reshape(base, base)
    rest = codes[whole - 8 :]
    np.add.at(found, (rest[:-1], rest[1:]), 1)
    return np.asarray(found)


def pairs_in_numpy(
    codes: np.ndarray, starts: np.ndarray, weights: np.ndarray | None, base: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same with whole arrays."""
    plain = codes.astype(np.int64)
    each = None if weights is None else np.repeat(weights, np.diff(starts))
    alone = np.bincount(plain, each, minlength=base).astype(np.float64)
    joined = np.ones(max(len(plain) - 1, 0), dtype=bool)
    between = starts[1:-1]
    joined[between[(between > 0) & (between < len(plain))] - 1] = False
    keys = (plain[:-1] * base + plain[1:])[joined]
    pairs = np.bincount(keys, None if each is None else each[1:][joined], minlength=base * base)
    return _without_gaps(alone, pairs.astype(np.float64).reshape(base, base))


def _without_gaps(alone: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    alone[0] = 0.0
    pairs[0], pairs[:, 0] = 0.0, 0.0
    return alone, pairs
