"""The likeliest hidden path (Viterbi), without a table of which way was best."""

from __future__ import annotations

from math import inf

import numpy as np

from softcount.kernels.jit import register_jitable
from softcount.kernels.lanes import WIDTH, aligned_zeros, fill, fused, larger, largest_of, load, store
from softcount.kernels.path_rows import read_row, write_row
from softcount.kernels.posterior import SCRATCH


@fused
def likeliest(scores: np.ndarray, borders: np.ndarray, table: np.ndarray, path: np.ndarray, logs: np.ndarray) -> None:
    """Forward by the best way to each state, then back along it; which way was best is told by the same sums again."""
    states, room = scores.shape[1], table.shape[1]
    tile = max(SCRATCH // room, 1)
    rows = aligned_zeros((tile + 1) * room)
    for s in range(borders.size - 1):
        first, end = borders[s], borders[s + 1]
        for start in range(first, end, tile):
            stop = min(start + tile, end)
            for t in range(start, stop):
                logs[s] += _best_step(scores, t, t == first, table, rows, (t - start + 1) * room)
            for t in range(start, stop):
                write_row(scores, t, rows, (t - start + 1) * room, 1.0)
            last = (stop - start) * room
            for g in range(0, room, WIDTH):
                store(rows, g, load(rows, last + g))
        ahead = -1
        for t in range(end - 1, first - 1, -1):
            best, here = -inf, 0
            for i in range(states):
                own = scores[t, i] + (0.0 if ahead < 0 else table[0, i, ahead])
                if own > best:
                    best, here = own, i
            path[t] = ahead = here


@register_jitable
def _best_step(scores: np.ndarray, t: int, begins: bool, table: np.ndarray, rows: np.ndarray, at: int) -> float:
    states, room = scores.shape[1], table.shape[1]
    peak = read_row(scores, t, rows, at, -inf)
    if not begins:
        top = fill(-inf)
        for g in range(0, states, WIDTH):
            one, two = fill(-inf), fill(-inf)
            for i in range(0, room, 2):
                place = i * room + g
                one = larger(one, fill(rows[at - room + i]) + load(table, place))
                two = larger(two, fill(rows[at - room + i + 1]) + load(table, place + room))
            own = load(rows, at + g) + larger(one, two)
            store(rows, at + g, own)
            top = larger(top, own)
        peak = largest_of(top)
    shift = fill(peak if peak > -inf else 0.0)
    for g in range(0, states, WIDTH):
        store(rows, at + g, load(rows, at + g) - shift)
    return peak
