"""Hidden paths in probabilities that are scaled at every step."""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np

from softcount.kernels.jit import register_jitable
from softcount.kernels.lanes import WIDTH, aligned_zeros, fill, fused, load, store, sum_of, where_above
from softcount.kernels.path_rows import NOTHING, read_row, row_times, sum_of_logs, write_row
from softcount.kernels.posterior import SCRATCH, exp_lanes

CALM = 32
"""Steps back after which probabilities are made to add up to one again."""


@fused
def filter_scaled(scores: np.ndarray, borders: np.ndarray, table: np.ndarray, heights: np.ndarray) -> None:
    """Scores to probabilities up to each step, and the log-probability of each step given those before."""
    room = table.shape[1]
    tile = max(SCRATCH // room, 1)
    rows, sizes = aligned_zeros((tile + 1) * room), aligned_zeros(tile + WIDTH)
    for s in range(borders.size - 1):
        for start in range(borders[s], borders[s + 1], tile):
            stop = min(start + tile, borders[s + 1])
            _forward_tile(scores, start, stop, start == borders[s], table, (rows, sizes, heights))


@register_jitable
def _forward_tile(scores: np.ndarray, start: int, stop: int, begins: bool, table: np.ndarray, held: Any) -> float:
    """Some steps of a sequence forward; the log-likelihood of these steps.

    A row is read before any is written: a load beside a fresh masked store waits for it. The row before the first is
    at the start of the scratch, and so is the last one in the end.
    """
    rows, sizes, heights = held
    states, room = scores.shape[1], table.shape[1]
    total, inverse, possible = 0.0, 1.0, True
    for t in range(start, stop):
        at = (t - start + 1) * room
        peak = read_row(scores, t, rows, at, -inf)
        heights[t] = peak
        total += peak
        shift = fill(peak if peak > -inf else 0.0)
        size = fill(0.0)
        for g in range(0, states, WIDTH):
            own = exp_lanes(load(rows, at + g) - shift)
            if t > start or not begins:
                own = own * row_times(rows, at - room, states, table, 0, g) * fill(inverse)
            store(rows, at + g, own)
            size = size + own
        whole = sum_of(size)
        possible = possible and whole > 0.0
        # The next row's product starts from this one as it is, and is scaled when this division is done.
        inverse = 1.0 / whole if whole > 0.0 else 0.0
        sizes[t - start] = whole
    for t in range(start, stop):
        whole = sizes[t - start]
        write_row(scores, t, rows, (t - start + 1) * room, 1.0 / whole if whole > 0.0 else 0.0)
        heights[t] += log(whole) if whole > 0.0 else -inf
    last = (stop - start) * room
    for g in range(0, room, WIDTH):
        store(rows, g, load(rows, last + g) * fill(inverse))
    return total + sum_of_logs(sizes, stop - start) if possible else -inf


@fused
def expect_scaled(
    scores: np.ndarray, borders: np.ndarray, weights: np.ndarray, table: np.ndarray, logs: np.ndarray, sums: Any
) -> None:
    """Forward, then backward, sequence by sequence, so that short ones stay in the cache."""
    firsts, nexts = sums
    states, room = scores.shape[1], table.shape[1]
    tile = max(SCRATCH // room, 1)
    rows, sizes, heights = aligned_zeros((tile + 1) * room), aligned_zeros(tile + WIDTH), np.empty(len(scores))
    pairs, ahead = aligned_zeros(room * room), aligned_zeros(2 * room)
    for s in range(borders.size - 1):
        first, end = borders[s], borders[s + 1]
        for start in range(first, end, tile):
            stop = min(start + tile, end)
            logs[s] += _forward_tile(scores, start, stop, start == first, table, (rows, sizes, heights))
        if not logs[s] > -inf:
            logs[s] = -inf
            scores[first:end] = 0.0
            continue
        tiles = (end - first + tile - 1) // tile
        for number in range(tiles - 1, -1, -1):
            start = first + number * tile
            stop = min(start + tile, end)
            _backward_tile(scores, start, stop, stop == end, table, (rows, pairs, ahead, weights[s]))
            _add_pairs(nexts, pairs, table, weights[s])
        for g in range(states):
            firsts[g] += scores[first, g]


@register_jitable
def _backward_tile(scores: np.ndarray, start: int, stop: int, ends: bool, table: np.ndarray, held: Any) -> None:
    """Some steps of a sequence backward; `pairs` add up what, times the table, are the expected transitions.

    `ahead` is first the row one step on, then that row divided by what the row before it foretold.
    """
    rows, pairs, ahead, weight = held
    states, room = scores.shape[1], table.shape[1]
    for t in range(start, stop):
        read_row(scores, t, rows, (t - start) * room, 0.0)
    for t in range(stop - 1, start - 1, -1):
        at = (t - start) * room
        if t == stop - 1 and ends:
            for g in range(0, room, WIDTH):
                store(ahead, g, load(rows, at + g))
            continue
        _step_back(rows, at, states, table, pairs, ahead)
        if t % CALM == 0:
            _to_one(ahead, rows, at, room)
    for t in range(start, stop):
        write_row(scores, t, rows, (t - start) * room, weight)


@register_jitable
def _step_back(rows: np.ndarray, at: int, states: int, table: np.ndarray, pairs: np.ndarray, ahead: np.ndarray) -> None:
    """One step backward: the row at `at`, and `ahead`, become the probabilities of its step given all others."""
    room = table.shape[1]
    for g in range(0, states, WIDTH):
        foretold = row_times(rows, at, states, table, 0, g)
        store(ahead, room + g, load(ahead, g) * where_above(foretold, fill(NOTHING), fill(1.0) / foretold))
    for i in range(states):
        for g in range(0, states, WIDTH):
            place = i * room + g
            store(pairs, place, load(pairs, place) + fill(rows[at + i]) * load(ahead, room + g))
    for g in range(0, states, WIDTH):
        own = load(rows, at + g) * row_times(ahead, room, states, table, room * room, g)
        store(ahead, g, own)
        store(rows, at + g, own)


@register_jitable
def _to_one(ahead: np.ndarray, rows: np.ndarray, at: int, room: int) -> None:
    """Make a row of probabilities add up to one again."""
    total = fill(0.0)
    for g in range(0, room, WIDTH):
        total = total + load(ahead, g)
    factor = fill(1.0 / sum_of(total))
    for g in range(0, room, WIDTH):
        store(ahead, g, load(ahead, g) * factor)
        store(rows, at + g, load(ahead, g))


@register_jitable
def _add_pairs(nexts: np.ndarray, pairs: np.ndarray, table: np.ndarray, weight: float) -> None:
    """Add the expected transitions of a tile, and begin anew."""
    states, room = len(nexts), table.shape[1]
    for i in range(states):
        for j in range(states):
            nexts[i, j] += weight * pairs[i * room + j] * table[0, i, j]
    pairs[:] = 0.0
