"""Hidden paths of eight sequences abreast, one in each lane: a step of one need not wait for the step before it.

One sequence at a time, each step waits for the last; eight at a time 100,000 steps of eight states took 4 ms in place
of 11. States run through registers here, whatever their number, so that short sequences of two states fill them too.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from softcount.kernels.jit import register_jitable
from softcount.kernels.lanes import WIDTH, aligned_zeros, fill, fused, larger, load, store, sum_of, where_above
from softcount.kernels.path_rows import NOTHING
from softcount.kernels.posterior import exp_lanes, log_lanes

CALM = 32
"""Steps back after which probabilities are made to add up to one again, and sums are put away."""
MOST_ROOM = 1 << 18
"""Numbers of one kind that eight sequences may need: 2 MB."""


def groups_of(borders: np.ndarray, states: int) -> np.ndarray | None:
    """(groups x 8) numbers of sequences of about one length, -1 for none; None where they are few, or too long."""
    lengths = np.diff(borders)
    if len(lengths) < WIDTH // 2 or lengths.max() * states * WIDTH > MOST_ROOM:
        return None
    order = np.argsort(-lengths, kind="stable")
    padded = np.full(-(-len(order) // WIDTH) * WIDTH, -1, dtype=np.int64)
    padded[: len(order)] = order
    return padded.reshape(-1, WIDTH)


@register_jitable
def begin_group(group: np.ndarray, borders: np.ndarray, weights: np.ndarray, sides: Any) -> int:
    """First rows, lengths and weights of a group's sequences, lane by lane; the number of steps of the longest."""
    starts, lengths, heavy = sides
    longest = 0
    for lane in range(WIDTH):
        s = group[lane]
        starts[lane] = borders[s] if s >= 0 else 0
        lengths[lane] = borders[s + 1] - borders[s] if s >= 0 else 0.0
        heavy[lane] = weights[s] if s >= 0 else 0.0
        longest = max(longest, int(lengths[lane]))
    return longest


@register_jitable
def gathered(scores: np.ndarray, starts: np.ndarray, lengths: np.ndarray, steps: int, out: np.ndarray) -> None:
    """All scores of a group, states before sequences; zeros of one that has ended.

    All steps before any is read again: a register that was just written number by number is waited for.
    """
    states = scores.shape[1]
    flat = scores.ravel()
    for t in range(steps):
        at = t * states * WIDTH
        for lane in range(WIDTH):
            row = (starts[lane] + t) * states
            if t < lengths[lane]:
                for k in range(states):
                    out[at + k * WIDTH + lane] = flat[row + k]
            else:
                for k in range(states):
                    out[at + k * WIDTH + lane] = 0.0


@fused
def expect_abreast(
    scores: np.ndarray, borders: np.ndarray, weights: np.ndarray, table: np.ndarray, logs: np.ndarray, sums: Any
) -> None:
    """Forward and backward, group by group."""
    firsts, nexts, groups = sums
    states = scores.shape[1]
    lengths, heavy, heights = aligned_zeros(WIDTH), aligned_zeros(WIDTH), aligned_zeros(WIDTH)
    starts, step = np.zeros(WIDTH, np.int64), states * WIDTH
    longest = 0
    for s in range(borders.size - 1):
        longest = max(longest, borders[s + 1] - borders[s])
    alpha, shown = aligned_zeros(longest * step), aligned_zeros((longest + 1) * step)
    beta = aligned_zeros((CALM + 1) * step)
    for group in groups:
        steps = begin_group(group, borders, weights, (starts, lengths, heavy))
        gathered(scores, starts, lengths, steps, shown)
        store(heights, 0, fill(0.0))
        for t in range(steps):
            _forward(t, table, lengths, heights, alpha, shown)
        for lane in range(WIDTH):
            if group[lane] >= 0:
                logs[group[lane]] = heights[lane]
            heavy[lane] = heavy[lane] if heights[lane] > -inf else 0.0
        for start in range((steps - 1) // CALM * CALM, -1, -CALM):
            stop = min(start + CALM, steps)
            for t in range(stop - 1, start - 1, -1):
                _backward(t, table, lengths, shown, beta, (t - start) * step)
            _add_pairs(nexts, table, alpha, shown, heavy, (start, stop))
            _finished(alpha, beta, heavy, start, stop, states)
        for k in range(states):
            firsts[k] += sum_of(load(alpha, k * WIDTH))
        _scattered(scores, starts, lengths, steps, alpha)


@register_jitable
def _forward(
    t: int, table: np.ndarray, lengths: np.ndarray, heights: np.ndarray, alpha: np.ndarray, shown: np.ndarray
) -> None:
    """One step on: `alpha` has the states' probabilities so far, `shown` what the step says, scaled alike."""
    states = len(table)
    at = t * states * WIDTH
    before = at - states * WIDTH
    top = fill(-inf)
    for k in range(states):
        top = larger(top, load(shown, at + k * WIDTH))
    shift = where_above(top, fill(-inf), top)
    size = fill(0.0)
    for j in range(states):
        own = exp_lanes(load(shown, at + j * WIDTH) - shift)
        store(shown, at + j * WIDTH, own)
        if t > 0:
            one, two = fill(0.0), fill(0.0)
            for i in range(0, states - 1, 2):
                one = one + load(alpha, before + i * WIDTH) * fill(table[i, j])
                two = two + load(alpha, before + (i + 1) * WIDTH) * fill(table[i + 1, j])
            if states % 2:
                one = one + load(alpha, before + (states - 1) * WIDTH) * fill(table[states - 1, j])
            own = own * (one + two)
        store(alpha, at + j * WIDTH, own)
        size = size + own
    inverse = where_above(size, fill(0.0), fill(1.0) / size)
    for j in range(states):
        store(alpha, at + j * WIDTH, load(alpha, at + j * WIDTH) * inverse)
        store(shown, at + j * WIDTH, load(shown, at + j * WIDTH) * inverse)
    told = top + log_lanes(larger(size, fill(NOTHING))) + where_above(fill(NOTHING), size, fill(-inf))
    store(heights, 0, load(heights, 0) + where_above(load(lengths, 0), fill(t + 0.0), told))


@register_jitable
def _backward(t: int, table: np.ndarray, lengths: np.ndarray, shown: np.ndarray, beta: np.ndarray, at: int) -> None:
    """One step back: `beta` at `at` is what later steps say of each state, from what they say of the next.

    `shown` of the next step becomes what it and all later ones say; nothing where a sequence ends.
    """
    states = len(table)
    step = states * WIDTH
    ahead, ends = (t + 1) * step, load(lengths, 0)
    for j in range(states):
        said = load(shown, ahead + j * WIDTH) * load(beta, at + step + j * WIDTH)
        store(shown, ahead + j * WIDTH, where_above(ends, fill(t + 1.0), said))
    last = where_above(fill(t + 1.5), ends, fill(1.0))
    for i in range(states):
        one, two = last, fill(0.0)
        for j in range(0, states - 1, 2):
            one = one + fill(table[i, j]) * load(shown, ahead + j * WIDTH)
            two = two + fill(table[i, j + 1]) * load(shown, ahead + (j + 1) * WIDTH)
        if states % 2:
            one = one + fill(table[i, states - 1]) * load(shown, ahead + (states - 1) * WIDTH)
        store(beta, at + i * WIDTH, one + two)


@register_jitable
def _add_pairs(
    nexts: np.ndarray, table: np.ndarray, alpha: np.ndarray, shown: np.ndarray, heavy: np.ndarray, span: Any
) -> None:
    """Add the expected transitions of some steps: from states up to each step to what all later ones say."""
    states = len(table)
    step, weight = states * WIDTH, load(heavy, 0)
    for i in range(states):
        for j in range(0, states, 4):
            one, two = fill(0.0), fill(0.0)
            three, four = fill(0.0), fill(0.0)
            for t in range(span[0], span[1]):
                own, place = load(alpha, t * step + i * WIDTH), (t + 1) * step + j * WIDTH
                one = one + own * load(shown, place)
                if j + 1 < states:
                    two = two + own * load(shown, place + WIDTH)
                if j + 2 < states:
                    three = three + own * load(shown, place + 2 * WIDTH)
                if j + 3 < states:
                    four = four + own * load(shown, place + 3 * WIDTH)
            nexts[i, j] += table[i, j] * sum_of(one * weight)
            if j + 1 < states:
                nexts[i, j + 1] += table[i, j + 1] * sum_of(two * weight)
            if j + 2 < states:
                nexts[i, j + 2] += table[i, j + 2] * sum_of(three * weight)
            if j + 3 < states:
                nexts[i, j + 3] += table[i, j + 3] * sum_of(four * weight)


@register_jitable
def _finished(alpha: np.ndarray, beta: np.ndarray, heavy: np.ndarray, start: int, stop: int, states: int) -> None:
    """Some steps' probabilities given all others, times the weight; of the first, made to add up to one again."""
    step, weight = states * WIDTH, load(heavy, 0)
    for t in range(start, stop):
        for k in range(states):
            place = t * step + k * WIDTH
            store(alpha, place, load(alpha, place) * load(beta, (t - start) * step + k * WIDTH) * weight)
    size = fill(0.0)
    for k in range(states):
        size = size + load(alpha, start * step + k * WIDTH)
    factor = where_above(size, fill(0.0), weight / size)
    for k in range(states):
        store(alpha, start * step + k * WIDTH, load(alpha, start * step + k * WIDTH) * factor)
        store(beta, CALM * step + k * WIDTH, load(beta, k * WIDTH) * factor)


@register_jitable
def _scattered(scores: np.ndarray, starts: np.ndarray, lengths: np.ndarray, steps: int, alpha: np.ndarray) -> None:
    """Back from lanes to rows."""
    states = scores.shape[1]
    for t in range(steps):
        for lane in range(WIDTH):
            if t < lengths[lane]:
                row = starts[lane] + t
                for k in range(states):
                    scores[row, k] = alpha[(t * states + k) * WIDTH + lane]
