"""Compiled forward-backward for hidden states: scaled probabilities, logarithms, and eight sequences at a time."""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np

from softcount.kernels import Array
from softcount.kernels.jit import register_jitable
from softcount.kernels.lanes import (
    WIDTH,
    aligned_zeros,
    fill,
    fused,
    larger,
    largest_of,
    load,
    load_part,
    padded,
    store,
    store_part,
    sum_of,
    where_above,
    where_leading,
)
from softcount.kernels.posterior import SCRATCH, exp_lanes, log_lanes

NOTHING = 1e-300
"""Predicted probabilities below this are taken as zero."""


@register_jitable
def read_row(scores: Array, row: int, out: Array, at: int, beyond: float) -> float:
    """Copy a row into whole registers, filled up with `beyond`. Return its largest entry."""
    states = scores.shape[1]
    top = fill(-np.inf)
    for g in range(0, states, WIDTH):
        part = load_part(scores, row * states + g, states - g)
        store(out, at + g, where_leading(states - g, part, fill(beyond)))
        top = larger(top, where_leading(states - g, part, fill(-np.inf)))
    return float(largest_of(top))


@register_jitable
def write_row(scores: Array, row: int, values: Array, at: int, factor: float) -> None:
    """Copy whole registers, times a factor, to a row."""
    states = scores.shape[1]
    for g in range(0, states, WIDTH):
        store_part(scores, row * states + g, load(values, at + g) * fill(factor), states - g)


@register_jitable
def row_times(shares: Array, at: int, states: int, table: Array, base: int, g: int) -> Any:
    """Return eight entries of a row times a square table.

    Four sums are computed in parallel, because in a single sum each addition would wait for the previous one.
    """
    room = padded(states)
    one, two = fill(0.0), fill(0.0)
    three, four = fill(0.0), fill(0.0)
    for i in range(0, states, 4):
        row = base + i * room + g
        one = one + fill(shares[at + i]) * load(table, row)
        two = two + fill(shares[at + i + 1]) * load(table, row + room)
        three = three + fill(shares[at + i + 2]) * load(table, row + 2 * room)
        four = four + fill(shares[at + i + 3]) * load(table, row + 3 * room)
    return (one + two) + (three + four)


@register_jitable
def log_row_times(logs: Array, at: int, states: int, table: Array, base: int, g: int) -> Any:
    """Return the logarithms of eight entries of a row times a square table, from logarithms.

    Each sum is computed relative to its largest term, so that no term is lost.
    """
    room = padded(states)
    top = fill(-np.inf)
    for i in range(states):
        top = larger(top, fill(logs[at + i]) + load(table, base + i * room + g))
    shift = where_above(top, fill(-np.inf), top)
    total = fill(0.0)
    for i in range(states):
        total = total + exp_lanes(fill(logs[at + i]) + load(table, base + i * room + g) - shift)
    return where_finite(top, shift + log_lanes(larger(total, fill(NOTHING))))


@register_jitable
def where_finite(top: Any, value: Any) -> Any:
    """Return the value, or minus infinity if the largest term is minus infinity."""
    return where_above(top, fill(-np.inf), value) + where_above(fill(-1e300), top, fill(-np.inf))


# -- one sequence after the other

CALM = 32
"""Number of backward steps after which probabilities are normalised again."""


@fused
def filter_single(scores: Array, borders: Array, table: Array, logged: bool, step_logs: Array) -> None:
    """Turn scores into state probabilities given the steps so far; if `logged`, into their logarithms.

    `step_logs` gets the log-probability of each step given those before.
    """
    room = table.shape[1]
    tile = max(SCRATCH // room, 1)
    rows, sizes = aligned_zeros((tile + 1) * room), aligned_zeros(tile + WIDTH)
    for s in range(borders.size - 1):
        for start in range(borders[s], borders[s + 1], tile):
            stop = min(start + tile, borders[s + 1])
            _forward_tile(scores, start, stop, start == borders[s], table, logged, (rows, sizes, step_logs))


@fused
def expect_single(
    scores: Array, borders: Array, weights: Array, table: Array, logged: bool, logs: Array,
    sums: Any
) -> None:  # fmt: skip
    """Run forward, then backward, one sequence after the other, so that short ones stay in the cache.

    `table` holds the transitions and their transpose, as logarithms if `logged`: each sum is then computed relative to
    its largest term, and no digit is lost for any transitions. Otherwise each step is scaled.
    """
    firsts, nexts = sums
    states, room = scores.shape[1], table.shape[1]
    tile = max(SCRATCH // room, 1)
    rows, sizes, step_logs = aligned_zeros((tile + 1) * room), aligned_zeros(tile + WIDTH), np.empty(len(scores))
    pairs, ahead = aligned_zeros(room * room), aligned_zeros(2 * room)
    for s in range(borders.size - 1):
        first, end = borders[s], borders[s + 1]
        for start in range(first, end, tile):
            stop = min(start + tile, end)
            logs[s] += _forward_tile(scores, start, stop, start == first, table, logged, (rows, sizes, step_logs))
        if not logs[s] > -inf:
            logs[s] = -inf
            scores[first:end] = 0.0
            continue
        tiles = (end - first + tile - 1) // tile
        for number in range(tiles - 1, -1, -1):
            start = first + number * tile
            stop = min(start + tile, end)
            held = rows, pairs, ahead, weights[s]
            if logged:
                _backward_logs(scores, start, stop, stop == end, table, held)
            else:
                _backward_scaled(scores, start, stop, stop == end, table, held)
            for i in range(states):
                for j in range(states):
                    nexts[i, j] += weights[s] * pairs[i * room + j] * (1.0 if logged else table[0, i, j])
            pairs[:] = 0.0
        for g in range(states):
            firsts[g] += scores[first, g]


@register_jitable
def _forward_tile(scores: Array, start: int, stop: int, begins: bool, table: Array, logged: bool, held: Any) -> float:
    """Run some forward steps of a sequence. Return the log-likelihood of these steps.

    The row before the first step is at the start of `rows`, which holds the last row at the end.
    """
    rows, sizes, step_logs = held
    if not logged:
        return _forward_scaled(scores, start, stop, begins, table, rows, sizes, step_logs)
    total = 0.0
    for t in range(start, stop):
        step_logs[t] = _forward_log(scores, t, begins and t == start, table, rows)
        total += step_logs[t]
    return total


@register_jitable
def _forward_scaled(
    scores: Array, start: int, stop: int, begins: bool, table: Array, rows: Array, sizes: Array,
    step_logs: Array
) -> float:  # fmt: skip
    """Run some forward steps, each scaled to probabilities that sum to one.

    All rows are read before any is written: a load next to a recent masked store waits for it.
    """
    states, room = scores.shape[1], table.shape[1]
    total, inverse, possible = 0.0, 1.0, True
    for t in range(start, stop):
        at = (t - start + 1) * room
        peak = read_row(scores, t, rows, at, -inf)
        step_logs[t] = peak
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
        # The next row's product uses this row unscaled and is scaled once this division is done.
        inverse = 1.0 / whole if whole > 0.0 else 0.0
        sizes[t - start] = whole
    for t in range(start, stop):
        whole = sizes[t - start]
        write_row(scores, t, rows, (t - start + 1) * room, 1.0 / whole if whole > 0.0 else 0.0)
        step_logs[t] += log(whole) if whole > 0.0 else -inf
    last = (stop - start) * room
    for g in range(0, room, WIDTH):
        store(rows, g, load(rows, last + g) * fill(inverse))
    logs, count = fill(0.0), stop - start
    for at in range(0, count, WIDTH):
        logs = logs + where_leading(count - at, log_lanes(load(sizes, at)), fill(0.0))
    return total + sum_of(logs) if possible else -inf


@register_jitable
def _forward_log(scores: Array, t: int, begins: bool, table: Array, rows: Array) -> float:
    """Run one forward step in logarithms. Return the log-probability of the step.

    `rows` holds the previous row, then this one.
    """
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
    log_size = peak + log(sum_of(size)) if peak > -inf else -inf
    for g in range(0, states, WIDTH):
        store(rows, g, load(rows, room + g) - fill(log_size if log_size > -inf else 0.0))
    write_row(scores, t, rows, 0, 1.0)
    return log_size


@register_jitable
def _backward_scaled(scores: Array, start: int, stop: int, ends: bool, table: Array, held: Any) -> None:
    """Run some backward steps of a sequence.

    `pairs` accumulates the expected transitions before multiplication by the table. `ahead` holds the row of the next
    step, then that row divided by its prediction from the current row.
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
        for g in range(0, states, WIDTH):
            predicted = row_times(rows, at, states, table, 0, g)
            store(ahead, room + g, load(ahead, g) * where_above(predicted, fill(NOTHING), fill(1.0) / predicted))
        for i in range(states):
            for g in range(0, states, WIDTH):
                place = i * room + g
                store(pairs, place, load(pairs, place) + fill(rows[at + i]) * load(ahead, room + g))
        for g in range(0, states, WIDTH):
            own = load(rows, at + g) * row_times(ahead, room, states, table, room * room, g)
            store(ahead, g, own)
            store(rows, at + g, own)
        if t % CALM == 0:
            total = fill(0.0)
            for g in range(0, room, WIDTH):
                total = total + load(ahead, g)
            factor = fill(1.0 / sum_of(total))
            for g in range(0, room, WIDTH):
                store(ahead, g, load(ahead, g) * factor)
                store(rows, at + g, load(ahead, g))
    for t in range(start, stop):
        write_row(scores, t, rows, (t - start) * room, weight)


@register_jitable
def _backward_logs(scores: Array, start: int, stop: int, ends: bool, table: Array, held: Any) -> None:
    """Run some backward steps of a sequence in logarithms. `pairs` accumulates the expected transitions."""
    rows, pairs, ahead, weight = held
    states = scores.shape[1]
    for t in range(stop - 1, start - 1, -1):
        read_row(scores, t, rows, 0, -inf)
        _backward_log(rows, ends and t == stop - 1, table, pairs, ahead)
        for g in range(0, states, WIDTH):
            store(rows, g, exp_lanes(load(ahead, g)))
        write_row(scores, t, rows, 0, weight)


@register_jitable
def _backward_log(rows: Array, ends: bool, table: Array, pairs: Array, ahead: Array) -> None:
    """Run one backward step in logarithms. `ahead` holds the row of the next step, then this one."""
    room = states = table.shape[1]
    if ends:
        for g in range(0, room, WIDTH):
            store(ahead, g, load(rows, g))
        return
    for g in range(0, room, WIDTH):
        predicted = log_row_times(rows, 0, states, table, 0, g)
        there = load(ahead, g)
        store(ahead, room + g, where_finite(there, there - where_above(predicted, fill(-inf), predicted)))
    for i in range(states):
        for g in range(0, room, WIDTH):
            place = i * room + g
            both = exp_lanes(fill(rows[i]) + load(table, place) + load(ahead, room + g))
            store(pairs, place, load(pairs, place) + both)
    for g in range(0, room, WIDTH):
        own = load(rows, g) + log_row_times(ahead, room, states, table, room * room, g)
        store(ahead, g, own)


# -- eight sequences in parallel, one per lane: a step of one does not wait for its previous step

MOST_ROOM = 1 << 18
"""Maximum number of values per array for eight sequences: 2 MB."""


def group_sequences(borders: Array, states: int) -> Array | None:
    """Return (groups x 8) numbers of sequences of similar length, -1 for padding; None if they are few or too long."""
    lengths = np.diff(borders)
    if len(lengths) < WIDTH // 2 or lengths.max() * states * WIDTH > MOST_ROOM:
        return None
    order = np.argsort(-lengths, kind="stable")
    padded = np.full(-(-len(order) // WIDTH) * WIDTH, -1, dtype=np.int64)
    padded[: len(order)] = order
    return padded.reshape(-1, WIDTH)


@register_jitable
def begin_group(group: Array, borders: Array, weights: Array, sides: Any) -> int:
    """Set first rows, lengths and weights of a group's sequences per lane.

    Return the number of steps of the longest.
    """
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
def gather_scores(scores: Array, starts: Array, lengths: Array, steps: int, out: Array) -> None:
    """Copy all scores of a group as (steps, states, lanes), with zeros after the end of a sequence.

    All steps are copied before any is read: a read of a register that was just written element by element stalls.
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
def expect_lanes(scores: Array, borders: Array, weights: Array, table: Array, logs: Array, sums: Any) -> None:
    """Run forward and backward, one group of eight sequences after the other."""
    firsts, nexts, groups = sums
    states = scores.shape[1]
    lengths, heavy, log_sums = aligned_zeros(WIDTH), aligned_zeros(WIDTH), aligned_zeros(WIDTH)
    starts, step = np.zeros(WIDTH, np.int64), states * WIDTH
    longest = 0
    for s in range(borders.size - 1):
        longest = max(longest, borders[s + 1] - borders[s])
    alpha, shown = aligned_zeros(longest * step), aligned_zeros((longest + 1) * step)
    beta = aligned_zeros((CALM + 1) * step)
    for group in groups:
        steps = begin_group(group, borders, weights, (starts, lengths, heavy))
        gather_scores(scores, starts, lengths, steps, shown)
        store(log_sums, 0, fill(0.0))
        for t in range(steps):
            _forward_lanes(t, table, lengths, log_sums, alpha, shown)
        for lane in range(WIDTH):
            if group[lane] >= 0:
                logs[group[lane]] = log_sums[lane]
            heavy[lane] = heavy[lane] if log_sums[lane] > -inf else 0.0
        for start in range((steps - 1) // CALM * CALM, -1, -CALM):
            stop = min(start + CALM, steps)
            for t in range(stop - 1, start - 1, -1):
                _backward_lanes(t, table, lengths, shown, beta, (t - start) * step)
            _add_pairs_lanes(nexts, table, alpha, shown, heavy, (start, stop))
            _smooth_lanes(alpha, beta, heavy, start, stop, states)
        for k in range(states):
            firsts[k] += sum_of(load(alpha, k * WIDTH))
        _write_lanes(scores, starts, lengths, steps, alpha)


@register_jitable
def _forward_lanes(t: int, table: Array, lengths: Array, log_sums: Array, alpha: Array, shown: Array) -> None:
    """Run one forward step.

    `alpha` holds the state probabilities so far. `shown` holds the densities of the step, with the same scaling.
    """
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
    log_size = top + log_lanes(larger(size, fill(NOTHING))) + where_above(fill(NOTHING), size, fill(-inf))
    store(log_sums, 0, load(log_sums, 0) + where_above(load(lengths, 0), fill(t + 0.0), log_size))


@register_jitable
def _backward_lanes(t: int, table: Array, lengths: Array, shown: Array, beta: Array, at: int) -> None:
    """Run one backward step: `beta` at `at` gets the densities of the later steps given each state.

    `shown` of the next step becomes the densities of that step and all later ones. `beta` is 1 at the end of a
    sequence.
    """
    states = len(table)
    step = states * WIDTH
    ahead, ends = (t + 1) * step, load(lengths, 0)
    for j in range(states):
        product = load(shown, ahead + j * WIDTH) * load(beta, at + step + j * WIDTH)
        store(shown, ahead + j * WIDTH, where_above(ends, fill(t + 1.0), product))
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
def _add_pairs_lanes(nexts: Array, table: Array, alpha: Array, shown: Array, heavy: Array, span: Any) -> None:
    """Add the expected transitions of the steps in `span`."""
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
def _smooth_lanes(alpha: Array, beta: Array, heavy: Array, start: int, stop: int, states: int) -> None:
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
def _write_lanes(scores: Array, starts: Array, lengths: Array, steps: int, alpha: Array) -> None:
    states = scores.shape[1]
    for t in range(steps):
        for lane in range(WIDTH):
            if t < lengths[lane]:
                row = starts[lane] + t
                for k in range(states):
                    scores[row, k] = alpha[(t * states + k) * WIDTH + lane]
