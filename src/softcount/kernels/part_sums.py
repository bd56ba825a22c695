"""Sums over the unseen nodes of many parts of rows, compiled; `networks/sum_parts` has them in NumPy.

How steps, entries, inputs and lookups fit together is said in `networks/summing_steps`.
"""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import jit, register_jitable
from softcount.kernels.twofold import exact, two_sum

inlined = jit(error_model="numpy", inline="always")

CHAIN = 256
"""Parts added plainly before their sums join the pairs."""

TINY = 1e-200
"""A total below it may have lost terms to underflow: probabilities are at most 1, so above it none that matters was."""

SMALLEST = 1e-290
"""Products below it begin to lose digits."""

Steps = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""The starts of the steps of shapes, the levels of the steps' nodes, entries, inputs and sources."""

Offsets = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Places, sums, entry starts, entry offsets, input starts, input offsets."""

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Shape, start of the bases, bases, weights."""


@exact
def sum_parts(
    table: np.ndarray, shared: int, steps: Steps, lookups: Offsets, parts: Parts
) -> tuple[np.ndarray, np.ndarray]:
    """Expected counts of every cell, and every part's log total: NaN, and no counts, where products underflow.

    `table` are all cells. The first `shared` are counted by the parts' weights, the others as they are.
    """
    shape, weights = parts[0], parts[3]
    starts, places, sums = steps[0], lookups[0], lookups[1]
    cells, low, logs = np.zeros(table.size), np.zeros(shared), np.empty(shape.size)
    most_places = most_sums = 0
    for own in range(starts.size - 1):
        most_places = max(most_places, places[starts[own + 1]] - places[starts[own]])
        most_sums = max(most_sums, sums[starts[own + 1]] - sums[starts[own]])
    chain, shares, messages = np.zeros(shared), np.empty(most_places), np.empty(most_sums)
    since = 0
    for part in range(shape.size):
        total = 0.0
        for careful in (False, True):
            if total < TINY:
                total, logs[part] = sum_up(table, steps, lookups, parts, part, shares, messages, careful)
        if not total > 0.0:
            continue
        logs[part] += np.log(total)
        share_out(steps, lookups, parts, part, shares, messages, weights[part], chain, cells)
        since += 1
        if since >= max(CHAIN, shared):
            flush(chain, cells, low)
            since = 0
    flush(chain, cells, low)
    for at in range(shared):
        cells[at] += low[at]
    return cells, logs


@inlined
def sum_up(
    table: np.ndarray,
    steps: Steps,
    lookups: Offsets,
    parts: Parts,
    part: int,
    shares: np.ndarray,
    messages: np.ndarray,
    careful: bool,
) -> tuple[float, float]:
    """Step by step, products and their sums over the step's node, which are `messages`; the last is the part's total.

    `shares` are what each product is of its sum: the probability of the node's levels, given the rest of the clique.
    With care, messages are divided by their largest, and the logarithm of that comes back beside the total; it is -inf
    where the part is impossible and NaN where a product was too small to be kept, the total then being nothing.
    """
    starts, size, entries, inputs, source = steps
    places, sums, entry_starts, entry_offsets, input_starts, input_offsets = lookups
    shape, base_starts, bases, _ = parts
    own = shape[part]
    first = starts[own]
    base_at = base_starts[part] - entries[first]
    total, log = 0.0, 0.0
    for step in range(first, starts[own + 1]):
        begin, length = places[step] - places[first], places[step + 1] - places[step]
        values = shares[begin : begin + length]
        values.fill(1.0)
        for entry in range(entries[step], entries[step + 1]):
            base, offset = bases[base_at + entry], entry_starts[entry]
            if careful and is_lost(values, table, base, entry_offsets, offset):
                return 0.0, np.nan
            multiply(values, table, base, entry_offsets, offset)
        for number in range(inputs[step], inputs[step + 1]):
            base, offset = sums[source[number]] - sums[first], input_starts[number]
            if careful and is_lost(values, messages, base, input_offsets, offset):
                return 0.0, np.nan
            multiply(values, messages, base, input_offsets, offset)
        found = messages[sums[step] - sums[first] : sums[step + 1] - sums[first]]
        sum_levels(values, size[step], found)
        if careful:
            largest = found.max()
            if largest == 0.0:
                return 0.0, -np.inf
            found /= largest
            log += np.log(largest)
        total = found[found.size - 1]
    return total, log


@register_jitable
def multiply(values: np.ndarray, factors: np.ndarray, base: int, offsets: np.ndarray, first: int) -> None:
    for place in range(values.size):
        values[place] *= factors[base + offsets[first + place]]


@register_jitable
def sum_levels(values: np.ndarray, levels: int, sums: np.ndarray) -> None:
    """Add up groups of values, and divide them by their sum."""
    for at in range(sums.size):
        total, first = 0.0, at * levels
        for level in range(levels):
            total += values[first + level]
        sums[at] = total
        if total > 0.0:
            for level in range(levels):
                values[first + level] /= total


@register_jitable
def is_lost(values: np.ndarray, factors: np.ndarray, base: int, offsets: np.ndarray, first: int) -> bool:
    """Whether a product of nonzero factors is too small to keep all its digits."""
    for place in range(values.size):
        value, factor = values[place], factors[base + offsets[first + place]]
        if value != 0.0 and factor != 0.0 and value * factor < SMALLEST:
            return True
    return False


@inlined
def share_out(
    steps: Steps,
    lookups: Offsets,
    parts: Parts,
    part: int,
    shares: np.ndarray,
    messages: np.ndarray,
    weight: float,
    chain: np.ndarray,
    cells: np.ndarray,
) -> None:
    """Back again: the posterior of each clique out of its shares and the posterior of what it left to a later one."""
    starts, size, entries, inputs, source = steps
    places, sums, entry_starts, entry_offsets, input_starts, input_offsets = lookups
    shape, base_starts, bases, _ = parts
    own = shape[part]
    first, end = starts[own], starts[own + 1]
    base_at = base_starts[part] - entries[first]
    posteriors = messages[: sums[end] - sums[first]]
    posteriors.fill(0.0)
    posteriors[posteriors.size - 1] = 1.0
    for step in range(end - 1, first - 1, -1):
        begin, length = places[step] - places[first], places[step + 1] - places[step]
        values = shares[begin : begin + length]
        share_levels(values, size[step], posteriors[sums[step] - sums[first] : sums[step + 1] - sums[first]])
        for number in range(inputs[step], inputs[step + 1]):
            base, offset = sums[source[number]] - sums[first], input_starts[number]
            add_at(posteriors, base, input_offsets, offset, values, 1.0)
        for entry in range(entries[step], entries[step + 1]):
            base, offset = bases[base_at + entry], entry_starts[entry]
            if base < chain.size:
                add_at(chain, base, entry_offsets, offset, values, weight)
            else:
                add_at(cells, base, entry_offsets, offset, values, 1.0)


@register_jitable
def share_levels(values: np.ndarray, levels: int, sums: np.ndarray) -> None:
    """Multiply groups of values by the numbers that they are shares of."""
    for at in range(sums.size):
        for place in range(at * levels, (at + 1) * levels):
            values[place] *= sums[at]


@register_jitable
def add_at(cells: np.ndarray, base: int, offsets: np.ndarray, first: int, values: np.ndarray, weight: float) -> None:
    for place in range(values.size):
        cells[base + offsets[first + place]] += values[place] * weight


@register_jitable
def flush(chain: np.ndarray, high: np.ndarray, low: np.ndarray) -> None:
    """Add plain sums to the pairs, without loss."""
    for at in range(chain.size):
        total, lost = two_sum(high[at], chain[at])
        high[at] = total
        low[at] += lost
        chain[at] = 0.0
