"""Compiled inference of hidden paths: choice of the forward-backward kernel, and the most probable path (Viterbi)."""

from __future__ import annotations

from math import inf

import numpy as np

from softcount.core.special import log_of
from softcount.kernels import Array, forward_backward
from softcount.kernels.jit import register_jitable
from softcount.kernels.lanes import WIDTH, aligned_zeros, fill, fused, larger, largest_of, load, store, where_above
from softcount.kernels.posterior import SCRATCH
from softcount.kernels.reference_paths import PathCounts


@fused
def viterbi_single(scores: Array, borders: Array, table: Array, path: Array, logs: Array) -> None:
    """Find the most probable paths: maximise forward, then trace back. The backward pass recomputes the sums."""
    states, room = scores.shape[1], table.shape[1]
    tile = max(SCRATCH // room, 1)
    rows = aligned_zeros((tile + 1) * room)
    for s in range(borders.size - 1):
        first, end = borders[s], borders[s + 1]
        for start in range(first, end, tile):
            stop = min(start + tile, end)
            for t in range(start, stop):
                logs[s] += _viterbi_step(scores, t, t == first, table, rows, (t - start + 1) * room)
            for t in range(start, stop):
                forward_backward.write_row(scores, t, rows, (t - start + 1) * room, 1.0)
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
def _viterbi_step(scores: Array, t: int, begins: bool, table: Array, rows: Array, at: int) -> float:
    states, room = scores.shape[1], table.shape[1]
    peak = forward_backward.read_row(scores, t, rows, at, -inf)
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


@fused
def viterbi_lanes(scores: Array, borders: Array, table: Array, path: Array, logs: Array, groups: Array) -> None:
    """Find the most probable paths of eight sequences at a time, one per lane."""
    states = scores.shape[1]
    lengths, heavy, log_sums = aligned_zeros(WIDTH), aligned_zeros(WIDTH), aligned_zeros(WIDTH)
    starts, longest = np.zeros(WIDTH, np.int64), 0
    for s in range(borders.size - 1):
        longest = max(longest, borders[s + 1] - borders[s])
    best, turned = aligned_zeros(longest * states * WIDTH), np.ascontiguousarray(table.T)
    for group in groups:
        steps = forward_backward.begin_group(group, borders, logs, (starts, lengths, heavy))
        forward_backward.gather_scores(scores, starts, lengths, steps, best)
        store(log_sums, 0, fill(0.0))
        for t in range(steps):
            _viterbi_step_lanes(t, table, lengths, log_sums, best)
        for lane in range(WIDTH):
            if group[lane] >= 0:
                logs[group[lane]] = log_sums[lane]
        _trace(best, turned, starts, lengths, path)


@register_jitable
def _viterbi_step_lanes(t: int, table: Array, lengths: Array, log_sums: Array, best: Array) -> None:
    states = len(table)
    at = t * states * WIDTH
    before = at - states * WIDTH
    top = fill(-inf)
    for j in range(states):
        own = load(best, at + j * WIDTH)
        if t > 0:
            one, two = load(best, before) + fill(table[0, j]), fill(-inf)
            for i in range(1, states - 1, 2):
                one = larger(one, load(best, before + i * WIDTH) + fill(table[i, j]))
                two = larger(two, load(best, before + (i + 1) * WIDTH) + fill(table[i + 1, j]))
            if states % 2 == 0:
                two = larger(two, load(best, before + (states - 1) * WIDTH) + fill(table[states - 1, j]))
            own = own + larger(one, two)
            store(best, at + j * WIDTH, own)
        top = larger(top, own)
    shift = where_above(top, fill(-inf), top)
    for j in range(states):
        store(best, at + j * WIDTH, load(best, at + j * WIDTH) - shift)
    store(log_sums, 0, load(log_sums, 0) + where_above(load(lengths, 0), fill(t + 0.0), top))


@register_jitable
def _trace(best: Array, table: Array, starts: Array, lengths: Array, path: Array) -> None:
    """Trace the paths of a group from their ends, recomputing the sums with the transposed `table`.

    All lanes of a step are processed together: one after the other, they would read the memory of the group eight
    times.
    """
    states, longest = len(table), 0
    here = np.zeros(WIDTH, np.int64)
    nothing = np.zeros(states)
    for lane in range(WIDTH):
        longest = max(longest, int(lengths[lane]))
    for t in range(longest - 1, -1, -1):
        for lane in range(WIDTH):
            if t < lengths[lane]:
                ahead = table[here[lane]] if t + 1 < lengths[lane] else nothing
                at, found = t * states * WIDTH + lane, 0
                top = best[at] + ahead[0]
                for i in range(1, states):
                    own = best[at + i * WIDTH] + ahead[i]
                    better = own > top
                    top = own if better else top
                    found = i if better else found
                here[lane] = found
                path[starts[lane] + t] = found


# -- kernels: forward in place, then backward in place, so that only one rows x states array is needed

STEADY = 1e-200
"""If all transition probabilities are at least this, scaled arithmetic is accurate enough."""


def expect_paths(scores: Array, borders: Array, weights: Array | None, first: Array, following: Array) -> PathCounts:
    heavy = np.ones(len(borders) - 1) if weights is None else np.ascontiguousarray(weights, np.float64)
    logs, firsts, nexts = np.zeros(len(heavy)), np.zeros(len(first)), np.zeros(following.shape)
    scores[borders[:-1]] += log_of(first)
    steady = bool(following.min() >= STEADY)
    groups = forward_backward.group_sequences(borders, len(first)) if steady else None
    if groups is not None:
        forward_backward.expect_lanes(
            scores, borders, heavy, np.ascontiguousarray(following), logs, (firsts, nexts, groups)
        )
    else:
        table = _pad_transitions(following, not steady)
        forward_backward.expect_single(scores, borders, heavy, table, not steady, logs, (firsts, nexts))
    return logs, firsts, nexts


def filter_paths(scores: Array, borders: Array, first: Array, following: Array) -> Array:
    step_logs, logged = np.zeros(len(scores)), bool(following.min() < STEADY)
    scores[borders[:-1]] += log_of(first)
    forward_backward.filter_single(scores, borders, _pad_transitions(following, logged), logged, step_logs)
    if logged:
        np.exp(scores, out=scores)
    return step_logs


def best_paths(scores: Array, borders: Array, first: Array, following: Array) -> tuple[Array, Array]:
    path, logs = np.zeros(len(scores), np.int32), np.zeros(len(borders) - 1)
    scores[borders[:-1]] += log_of(first)
    groups = forward_backward.group_sequences(borders, len(first))
    if groups is None:
        viterbi_single(scores, borders, _pad_transitions(following, True), path, logs)
    else:
        with np.errstate(divide="ignore"):
            viterbi_lanes(scores, borders, np.log(following), path, logs, groups)
    return path, logs


def _pad_transitions(following: Array, logs: bool) -> Array:
    """Return transitions padded to whole registers of states, and their transpose; probability zero in the padding."""
    states = len(following)
    room = -(-states // WIDTH) * WIDTH
    with np.errstate(divide="ignore"):
        found = np.full((2, room, room), -np.inf if logs else 0.0)
        found[0, :states, :states] = np.log(following) if logs else following
    found[1] = found[0].T
    return found
