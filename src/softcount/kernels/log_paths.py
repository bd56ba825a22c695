"""Hidden paths in logarithms, each sum around its own largest term: nothing is lost, whatever the transitions."""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np

from softcount.kernels.jit import register_jitable
from softcount.kernels.lanes import (
    WIDTH,
    aligned_zeros,
    fill,
    fused,
    larger,
    largest_of,
    load,
    store,
    sum_of,
    where_above,
)
from softcount.kernels.path_rows import log_row_times, read_row, where_finite, write_row
from softcount.kernels.posterior import exp_lanes


@register_jitable
def _forward_log(scores: np.ndarray, t: int, begins: bool, table: np.ndarray, rows: np.ndarray) -> float:
    """One step forward in logarithms: `rows` are the row before, then this one; the log-probability of the step."""
    states, room = scores.shape[1], table.shape[1]
    peak = read_row(scores, t, rows, room, -inf)
    if not begins:
        top = fill(-inf)
        for g in range(0, states, WIDTH):
            own = load(rows, room + g) + log_row_times(rows, 0, states, table, 0, g)
            store(rows, room + g, own)
            top = larger(top, own)
        peak = largest_of(top)
    shift, size = fill(peak if peak > -inf else 0.0), fill(0.0)
    for g in range(0, states, WIDTH):
        size = size + exp_lanes(load(rows, room + g) - shift)
    height = peak + log(sum_of(size)) if peak > -inf else -inf
    for g in range(0, states, WIDTH):
        store(rows, g, load(rows, room + g) - fill(height if height > -inf else 0.0))
    write_row(scores, t, rows, 0, 1.0)
    return height


@fused
def filter_logged(scores: np.ndarray, borders: np.ndarray, table: np.ndarray, heights: np.ndarray) -> None:
    """As `_filter_scaled`, but the probabilities stay logarithms."""
    rows = aligned_zeros(2 * table.shape[1])
    for s in range(borders.size - 1):
        for t in range(borders[s], borders[s + 1]):
            heights[t] = _forward_log(scores, t, t == borders[s], table, rows)


@fused
def expect_logged(
    scores: np.ndarray, borders: np.ndarray, weights: np.ndarray, table: np.ndarray, logs: np.ndarray, sums: Any
) -> None:
    """As `_expect_scaled`, in logarithms."""
    firsts, nexts = sums
    states, room = scores.shape[1], table.shape[1]
    rows, pairs, ahead = aligned_zeros(2 * room), aligned_zeros(room * room), aligned_zeros(2 * room)
    for s in range(borders.size - 1):
        first, end = borders[s], borders[s + 1]
        for t in range(first, end):
            logs[s] += _forward_log(scores, t, t == first, table, rows)
        if not logs[s] > -inf:
            logs[s] = -inf
            scores[first:end] = 0.0
            continue
        for t in range(end - 1, first - 1, -1):
            read_row(scores, t, rows, 0, -inf)
            _backward_log(rows, t == end - 1, table, pairs, ahead)
            for g in range(0, states, WIDTH):
                store(rows, g, exp_lanes(load(ahead, g)))
            write_row(scores, t, rows, 0, weights[s])
        for i in range(states):
            firsts[i] += scores[first, i]
            for j in range(states):
                nexts[i, j] += weights[s] * pairs[i * room + j]
        pairs[:] = 0.0


@register_jitable
def _backward_log(rows: np.ndarray, ends: bool, table: np.ndarray, pairs: np.ndarray, ahead: np.ndarray) -> None:
    """One step backward in logarithms: `ahead` is the row one step on, then this one."""
    room = table.shape[1]
    other = room * room
    states = room
    if ends:
        for g in range(0, room, WIDTH):
            store(ahead, g, load(rows, g))
        return
    for g in range(0, room, WIDTH):
        foretold = log_row_times(rows, 0, states, table, 0, g)
        there = load(ahead, g)
        store(ahead, room + g, where_finite(there, there - where_above(foretold, fill(-inf), foretold)))
    for i in range(states):
        for g in range(0, room, WIDTH):
            place = i * room + g
            both = exp_lanes(fill(rows[i]) + load(table, place) + load(ahead, room + g))
            store(pairs, place, load(pairs, place) + both)
    for g in range(0, room, WIDTH):
        own = load(rows, g) + log_row_times(ahead, room, states, table, other, g)
        store(ahead, g, own)
