"""Compiled inference of hidden paths: forward-backward and the most probable path (Viterbi), one loop over tiles.

A row holds one number for each state of one step, in whole registers. With eight sequences at a time, a register holds
one state of all eight; with one sequence, it holds eight states. Only two things differ: which factor of a product is
one number repeated (`entry`), and whether sums over states cross a register (`across`).

The arithmetic is one of three. Scaled probabilities are fastest and exact enough if no transition is tiny. Logarithms
lose no digit for any transitions. Viterbi takes largest terms in place of their sums.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from softcount.core.special import log_of
from softcount.kernels import Array
from softcount.kernels.jit import inlined, register_jitable
from softcount.kernels.lanes import (
    WIDTH,
    aligned_zeros,
    fill,
    fused,
    larger,
    largest_of,
    load,
    load_one,
    load_part,
    padded,
    store,
    store_part,
    sum_of,
    where_above,
    where_leading,
)
from softcount.kernels.posterior import SCRATCH, exp_lanes, log_lanes
from softcount.kernels.reference_paths import PathCounts

ALONE, ABREAST = (0,), (0,) * WIDTH
"""One sequence per group, or eight: tuples, because for Numba their lengths belong to their types.

So each combination of group and arithmetic is compiled without the branches of the others.
"""
SCALED, LOGS, LARGEST = (0,), (0, 0), (0, 0, 0)
"""Arithmetic: scaled probabilities, logarithms, or logarithms with largest terms in place of sums."""
STEADY = 1e-200
"""If all transition probabilities are at least this, scaled arithmetic is accurate enough."""
NOTHING = 1e-300
"""Predicted probabilities below this are taken as zero."""
CALM = 32
"""Number of backward steps after which probabilities are normalised again."""
MOST_ROOM = 1 << 18
"""Largest number of values per array for eight sequences: 2 MB."""


class Kind(NamedTuple):
    """States, used and allocated values per row, steps per tile, sequences per group, and the arithmetic."""

    states: int
    width: int
    room: int
    tile: int
    group: tuple[int, ...]
    arithmetic: tuple[int, ...]


# -- registers of one sequence or of eight


@inlined
def entry(values: Array, at: int, whole: bool) -> Any:
    """Return a register of an array, or one number of it in all lanes."""
    return load(values, at) if whole else load_one(values, at)


@inlined
def across(value: Any, wide: bool) -> Any:
    """Return the sum over all states, given the sum over the registers of a row."""
    return value if wide else fill(sum_of(value))


@inlined
def choose(a: Any, b: Any, value: Any, other: float) -> Any:
    """Return the value in lanes where a is above b, and the other where it is below."""
    return where_above(a, b, value) + where_above(b, a, fill(other))


@inlined
def where_finite(top: Any, value: Any) -> Any:
    return choose(top, fill(-1e300), value, -inf)


@inlined
def product(row: Array, at: int, table: Array, g: int, kind: Any) -> Any:
    """Return the register at `g` of a row times a square table; in logarithms, each sum relative to its largest term.

    Two sums are computed in parallel, because in a single sum each addition would wait for the previous one.
    """
    states = kind.states
    lanes, wide, stride = len(kind.group), len(kind.group) > 1, padded(kind.states)
    to = g // WIDTH if wide else g
    if len(kind.arithmetic) == 1:
        one, two = fill(0.0), fill(0.0)
        for i in range(0, states, 2):
            place = i * stride + to
            one = one + entry(row, at + i * lanes, wide) * entry(table, place, not wide)
            two = two + entry(row, at + (i + 1) * lanes, wide) * entry(table, place + stride, not wide)
        return one + two
    one, two = fill(-inf), fill(-inf)
    for i in range(0, states, 2):
        place = i * stride + to
        one = larger(one, entry(row, at + i * lanes, wide) + entry(table, place, not wide))
        two = larger(two, entry(row, at + (i + 1) * lanes, wide) + entry(table, place + stride, not wide))
    top = larger(one, two)
    if len(kind.arithmetic) == 3:
        return top
    shift, total = where_above(top, fill(-inf), top), fill(0.0)
    for i in range(states):
        term = entry(row, at + i * lanes, wide) + entry(table, i * stride + to, not wide)
        total = total + exp_lanes(term - shift)
    return where_finite(top, shift + log_lanes(larger(total, fill(NOTHING))))


# -- steps of a tile


@register_jitable
def forward_scaled(count: int, begins: bool, table: Array, buffers: Any, kind: Any) -> None:
    """Turn scores in `later` into state probabilities so far in `rows`, below the row of the previous step.

    `later` becomes these probabilities as a multiple of what the previous step predicts. A row is scaled one step after
    it was made, so that no product waits for a division.
    """
    width, room = kind.width, kind.room
    lanes, wide = len(kind.group), len(kind.group) > 1
    rows, later, tops, sizes = buffers
    inverse = fill(1.0)
    for t in range(count):
        at = t * room
        top = fill(-inf)
        for g in range(0, width, WIDTH):
            top = larger(top, load(later, at + g))
        if not wide:
            top = fill(largest_of(top))
        shift, size = where_above(top, fill(-inf), top), fill(0.0)
        for g in range(0, width, WIDTH):
            own = exp_lanes(load(later, at + g) - shift)
            store(later, at + g, own)
            if t > 0 or not begins:
                own = own * (product(rows, at, table, g, kind) * inverse)
            store(rows, at + room + g, own)
            size = size + own
        if t > 0:
            scale(rows, at, later, at - room, width, inverse)
        size = across(size, wide)
        store(tops, t * lanes, top)
        store(sizes, t * lanes, size)
        inverse = where_above(size, fill(0.0), fill(1.0) / size)
    scale(rows, count * room, later, (count - 1) * room, width, inverse)


@register_jitable
def scale(rows: Array, at: int, later: Array, after: int, width: int, factor: Any) -> None:
    for g in range(0, width, WIDTH):
        store(rows, at + g, load(rows, at + g) * factor)
        store(later, after + g, load(later, after + g) * factor)


@register_jitable
def forward_logs(count: int, begins: bool, table: Array, buffers: Any, kind: Any) -> None:
    """Do the work of `forward_scaled` in logarithms; `rows` get logarithms of the highest or of all paths."""
    width, room = kind.width, kind.room
    lanes, wide = len(kind.group), len(kind.group) > 1
    rows, later, tops, sizes = buffers
    for t in range(count):
        at = t * room
        top = fill(-inf)
        for g in range(0, width, WIDTH):
            own = load(later, at + g)
            if t > 0 or not begins:
                own = own + product(rows, at, table, g, kind)
            store(rows, at + room + g, own)
            top = larger(top, own)
        if not wide:
            top = fill(largest_of(top))
        shift, size = where_above(top, fill(-inf), top), fill(0.0)
        if len(kind.arithmetic) == 2:
            for g in range(0, width, WIDTH):
                size = size + exp_lanes(load(rows, at + room + g) - shift)
            size = across(size, wide)
            shift = shift + log_lanes(larger(size, fill(NOTHING)))
        else:
            size = fill(1.0)
        for g in range(0, width, WIDTH):
            store(rows, at + room + g, load(rows, at + room + g) - shift)
            if len(kind.arithmetic) == 2:
                store(later, at + g, load(later, at + g) - shift)
        store(tops, t * lanes, top)
        store(sizes, t * lanes, size)


@register_jitable
def divide_by_predicted(count: int, table: Array, buffers: Any, kind: Any) -> None:
    """Fill `later` again, from rows that were read again: probabilities as a multiple of the predicted ones."""
    width, room = kind.width, kind.room
    scaled = len(kind.arithmetic) == 1
    rows, later, _, _ = buffers
    for at in range(0, count * room, room):
        for g in range(0, width, WIDTH):
            predicted, own = product(rows, at, table, g, kind), load(rows, at + room + g)
            if scaled:
                own = own * where_above(predicted, fill(NOTHING), fill(1.0) / predicted)
            else:
                own = where_finite(own, own - where_above(predicted, fill(-inf), predicted))
            store(later, at + g, own)


@register_jitable
def backward(start: int, count: int, tables: Any, buffers: Any, sides: Any, kind: Any) -> None:
    """Turn `rows` into state probabilities given all steps, times the weight; add expected transitions to `pairs`.

    `later` becomes the densities of a step and all later ones given its state, as a multiple of what the previous step
    predicts; behind its last row it holds the row of the next tile.
    """
    width, room = kind.width, kind.room
    wide, scaled = len(kind.group) > 1, len(kind.arithmetic) == 1
    rows, later, _, _ = buffers
    table, turned = tables
    beta, pairs, ends, weight = sides
    none, one = (0.0, 1.0) if scaled else (-inf, 0.0)
    for low in range((count - 1) // CALM * CALM, -1, -CALM):
        high = min(low + CALM, count)
        for t in range(high - 1, low - 1, -1):
            now = fill(start + t + 0.5)
            for g in range(0, width, WIDTH):
                own = product(later, (t + 1) * room, turned, g, kind)
                own = choose(ends, now + fill(1.0), own, one)
                store(beta, (t - low) * room + g, own)
                own = load(later, t * room + g) * own if scaled else load(later, t * room + g) + own
                store(later, t * room + g, choose(ends, now, own, none))
        add_pairs(low, high, table, rows, later, pairs, weight, kind)
        for t in range(high - 1, low - 1, -1):
            size = fill(0.0)
            for g in range(0, width, WIDTH):
                at, own = (t + 1) * room + g, load(beta, (t - low) * room + g)
                own = load(rows, at) * own if scaled else exp_lanes(load(rows, at) + own)
                store(rows, at, own * weight)
                size = size + own
            if t == low:
                size = across(size, wide)
                factor = where_above(size, fill(0.0), fill(1.0) / size)
                for g in range(0, width, WIDTH):
                    at = t * room + g
                    store(rows, at + room, load(rows, at + room) * factor)
                    own = load(later, at)
                    store(later, at, own * factor if scaled else own + log_lanes(larger(factor, fill(NOTHING))))


@inlined
def pair(rows: Array, at: int, table: Array, i: int, g: int, there: Any, kind: Any) -> Any:
    """Return probabilities of state i and its successors at `g`, from logarithms."""
    wide = len(kind.group) > 1
    place = i * padded(kind.states) + (g // WIDTH if wide else g)
    return exp_lanes(entry(rows, at, wide) + there + entry(table, place, not wide))


@register_jitable
def add_pairs(
    low: int, high: int, table: Array, rows: Array, later: Array, pairs: Array, weight: Any, kind: Any
) -> None:
    """Add the expected transitions after some steps; if scaled, they are still to be multiplied by the transitions.

    Four states are taken at a time; sums of those past the last one are not used.
    """
    states, width, room = kind.states, kind.width, kind.room
    lanes, wide, scaled = len(kind.group), len(kind.group) > 1, len(kind.arithmetic) == 1
    for i in range(0, states, 4):
        for g in range(0, width, WIDTH):
            one, two = fill(0.0), fill(0.0)
            three, four = fill(0.0), fill(0.0)
            for t in range(low, high):
                at, there = (t + 1) * room + i * lanes, load(later, (t + 1) * room + g)
                if scaled:
                    one = one + entry(rows, at, wide) * there
                    two = two + entry(rows, at + lanes, wide) * there
                    three = three + entry(rows, at + 2 * lanes, wide) * there
                    four = four + entry(rows, at + 3 * lanes, wide) * there
                else:
                    one = one + pair(rows, at, table, i, g, there, kind)
                    two = two + pair(rows, at + lanes, table, i + 1, g, there, kind)
                    three = three + pair(rows, at + 2 * lanes, table, i + 2, g, there, kind)
                    four = four + pair(rows, at + 3 * lanes, table, i + 3, g, there, kind)
            place = i * width + g
            store(pairs, place, load(pairs, place) + one * weight)
            store(pairs, place + width, load(pairs, place + width) + two * weight)
            store(pairs, place + 2 * width, load(pairs, place + 2 * width) + three * weight)
            store(pairs, place + 3 * width, load(pairs, place + 3 * width) + four * weight)


@register_jitable
def trace(start: int, count: int, turned: Array, rows: Array, sides: Any, here: Array, path: Array) -> None:
    """Trace paths back from the state `here` after each sequence's last step, with the sums of the forward steps.

    All lanes of a step are processed together: one after the other, they would read the memory of the group eight
    times.
    """
    starts, lengths, kind = sides
    states, room = kind.states, kind.room
    lanes, stride = len(kind.group), padded(kind.states)
    for t in range(count - 1, -1, -1):
        for lane in range(lanes):
            if start + t < lengths[lane]:
                ahead = turned[here[lane] if start + t + 1 < lengths[lane] else stride]
                at, found = (t + 1) * room + lane, 0
                top = rows[at] + ahead[0]
                for i in range(1, states):
                    own = rows[at + i * lanes] + ahead[i]
                    better = own > top
                    top = own if better else top
                    found = i if better else found
                here[lane] = found
                path[starts[lane] + start + t] = found


# -- tiles of sequences


@register_jitable
def read_steps(scores: Array, sides: Any, first: int, count: int, out: Array, at: int, beyond: float) -> None:
    """Copy steps of a group as whole registers, with `beyond` after the last state and 0 after the end of a sequence.

    All steps are copied before any is read: a read of a register that was just written number by number stalls.
    """
    starts, lengths, kind = sides
    states, width, room = kind.states, kind.width, kind.room
    lanes, wide = len(kind.group), len(kind.group) > 1
    flat = scores.ravel()
    for t in range(first, first + count):
        for lane in range(lanes):
            row = (starts[lane] + t) * states
            if not wide:
                for g in range(0, width, WIDTH):
                    part = load_part(scores, row + g, states - g)
                    store(out, at + g, where_leading(states - g, part, fill(beyond)))
            elif t < lengths[lane]:
                for k in range(states):
                    out[at + k * lanes + lane] = flat[row + k]
            else:
                for k in range(states):
                    out[at + k * lanes + lane] = 0.0
        at += room


@register_jitable
def write_steps(scores: Array, sides: Any, first: int, count: int, rows: Array) -> None:
    starts, lengths, kind = sides
    states, width, room = kind.states, kind.width, kind.room
    lanes, wide = len(kind.group), len(kind.group) > 1
    flat = scores.ravel()
    for t in range(count):
        at = (t + 1) * room
        for lane in range(lanes):
            row = (starts[lane] + first + t) * states
            if not wide:
                for g in range(0, width, WIDTH):
                    store_part(scores, row + g, load(rows, at + g), states - g)
            elif first + t < lengths[lane]:
                for k in range(states):
                    flat[row + k] = rows[at + k * lanes + lane]


@register_jitable
def begin_group(group: Array, borders: Array, weights: Array, starts: Array, lengths: Array, heavy: Array) -> int:
    """Set first rows, lengths and weights of a group's sequences. Return the number of steps of the longest."""
    steps = 0
    for lane in range(len(group)):
        s = group[lane]
        starts[lane] = borders[s] if s >= 0 else 0
        lengths[lane] = borders[s + 1] - borders[s] if s >= 0 else 0.0
        heavy[lane] = weights[s] if s >= 0 else 0.0
        steps = max(steps, int(lengths[lane]))
    return steps


@register_jitable
def add_logs(start: int, count: int, buffers: Any, ends: Any, kind: Any) -> Any:
    """Write log-probabilities of steps to `tops`, and return their sums in one register."""
    lanes, wide = len(kind.group), len(kind.group) > 1
    _, _, tops, sizes = buffers
    total = fill(0.0)
    for at in range(0, count * lanes, WIDTH):
        size = load(sizes, at)
        height = load(tops, at) + choose(size, fill(0.0), log_lanes(larger(size, fill(NOTHING))), -inf)
        store(tops, at, height)
        inside = where_above(ends, fill(start + at / WIDTH), height)
        total = total + (inside if wide else where_leading(count - at, height, fill(0.0)))
    return total


@register_jitable
def write_logs(start: int, count: int, tops: Array, sides: Any, step_logs: Array) -> None:
    starts, lengths, kind = sides
    lanes = len(kind.group)
    for t in range(count):
        for lane in range(lanes):
            if start + t < lengths[lane]:
                step_logs[starts[lane] + start + t] = tops[t * lanes + lane]


@fused
def infer(
    scores: Array, borders: Array, weights: Array, groups: Array, tables: Any, kind: Any, smooth: bool, out: Any
) -> None:
    """Run forward, then backward if `smooth`, one group after the other, so that short sequences stay in the cache."""
    logs, step_logs, pairs, path = out
    room, tile, lanes, wide = kind.room, kind.tile, len(kind.group), len(kind.group) > 1
    none = 0.0 if len(kind.arithmetic) == 1 else -inf
    starts, here = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
    lengths, heavy, sums = aligned_zeros(lanes), aligned_zeros(lanes), aligned_zeros(WIDTH)
    # `add_pairs` reads up to three registers past the last row.
    rows, later = aligned_zeros((tile + 1) * room + 4 * WIDTH), aligned_zeros((tile + 1) * room)
    if len(kind.arithmetic) == 3:
        later = rows[room:]
    tops, sizes = aligned_zeros(tile * lanes + WIDTH), aligned_zeros(tile * lanes + WIDTH)
    beta = aligned_zeros(CALM * room)
    buffers, sides = (rows, later, tops, sizes), (starts, lengths, kind)
    for group in groups:
        steps = begin_group(group, borders, weights, starts, lengths, heavy)
        ends, total = entry(lengths, 0, wide), fill(0.0)
        for start in range(0, steps, tile):
            count = min(tile, steps - start)
            read_steps(scores, sides, start, count, later, 0, -inf)
            if len(kind.arithmetic) == 1:
                forward_scaled(count, start == 0, tables[0], buffers, kind)
            else:
                forward_logs(count, start == 0, tables[0], buffers, kind)
            total = total + add_logs(start, count, buffers, ends, kind)
            if not smooth:
                write_logs(start, count, tops, sides, step_logs)
            if steps > tile or not smooth:
                write_steps(scores, sides, start, count, rows)
            rows[:room] = rows[count * room : (count + 1) * room]
        if not smooth:
            continue
        store(sums, 0, across(total, wide))
        for lane in range(lanes):
            if group[lane] >= 0:
                logs[group[lane]] = sums[lane]
        weight = where_above(load(sums, 0), fill(-inf), entry(heavy, 0, wide))
        here[:] = 0
        for start in range((steps - 1) // tile * tile, -1, -tile):
            count = min(tile, steps - start)
            if steps > tile:
                before = 1 if start > 0 else 0
                read_steps(scores, sides, start - before, count + before, rows, (1 - before) * room, none)
            if len(kind.arithmetic) == 3:
                trace(start, count, tables[1], rows, sides, here, path)
                continue
            for g in range(room):
                later[count * room + g] = none if start + count == steps else later[g]
            if steps > tile:
                divide_by_predicted(count, tables[0], buffers, kind)
            backward(start, count, tables, buffers, (beta, pairs, ends, weight), kind)
            write_steps(scores, sides, start, count, rows)


# -- kernels


def expect_paths(scores: Array, borders: Array, weights: Array | None, first: Array, following: Array) -> PathCounts:
    heavy = np.ones(len(borders) - 1) if weights is None else np.ascontiguousarray(weights, np.float64)
    arithmetic = SCALED if following.min() >= STEADY else LOGS
    logs, _, nexts, _ = _infer(scores, borders, heavy, first, following, arithmetic, True)
    return logs, scores[borders[:-1]].sum(axis=0), nexts * following if arithmetic == SCALED else nexts


def filter_paths(scores: Array, borders: Array, first: Array, following: Array) -> Array:
    arithmetic = SCALED if following.min() >= STEADY else LOGS
    _, step_logs, _, _ = _infer(scores, borders, np.ones(len(borders) - 1), first, following, arithmetic, False)
    if arithmetic == LOGS:
        np.exp(scores, out=scores)
    return step_logs


def best_paths(scores: Array, borders: Array, first: Array, following: Array) -> tuple[Array, Array]:
    logs, _, _, path = _infer(scores, borders, np.ones(len(borders) - 1), first, following, LARGEST, True)
    return path, logs


def _infer(
    scores: Array, borders: Array, weights: Array, first: Array, following: Array, arithmetic: Any, smooth: bool
) -> tuple[Array, Array, Array, Array]:
    """Return logs of sequences, logs of steps unless `smooth`, expected transitions, and the most probable path."""
    states, groups = len(following), group_sequences(borders, len(following))
    wide, side = groups.shape[1] > 1, -(-states // WIDTH) * WIDTH
    width, room = (states * WIDTH, (states + states % 2) * WIDTH) if wide else (side, side)
    tile = int(np.diff(borders).max()) if wide else max(SCRATCH // room // CALM, 1) * CALM
    table, turned = np.full((2, side + 1, side), 0.0 if arithmetic == SCALED else -np.inf)
    table[:states, :states] = following if arithmetic == SCALED else log_of(following)
    turned[:side], turned[side] = table[:side].T, 0.0  # a row of zeros follows: nothing comes after the last step
    pairs = np.zeros((side, states, WIDTH) if wide else (side, 1, side))
    logs, step_logs = np.zeros(len(weights)), np.zeros(0 if smooth else len(scores))
    path = np.zeros(len(scores) if arithmetic == LARGEST else 0, np.int32)
    kind = Kind(states, width, room, tile, ABREAST if wide else ALONE, arithmetic)
    scores[borders[:-1]] += log_of(first)
    out = logs, step_logs, pairs.ravel(), path
    infer(scores, borders, weights, groups, (table, turned), kind, smooth, out)
    nexts = pairs.sum(axis=-1) if wide else pairs[:, 0, :states]
    return logs, step_logs, nexts[:states], path


def group_sequences(borders: Array, states: int) -> Array:
    """Return the numbers of sequences that are processed together: eight of similar length, or one if few or long.

    Groups of eight are filled up with -1.
    """
    lengths = np.diff(borders)
    if len(lengths) < WIDTH // 2 or lengths.max() * states * WIDTH > MOST_ROOM:
        return np.arange(len(lengths))[:, None]
    order = np.full(-(-len(lengths) // WIDTH) * WIDTH, -1, dtype=np.int64)
    order[: len(lengths)] = np.argsort(-lengths, kind="stable")
    return order.reshape(-1, WIDTH)
