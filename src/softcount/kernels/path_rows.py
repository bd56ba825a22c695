"""A step's states in whole registers: read, written, and taken one step on, in probabilities or in logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels.jit import register_jitable
from softcount.kernels.lanes import (
    WIDTH,
    fill,
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
from softcount.kernels.posterior import exp_lanes, log_lanes

NOTHING = 1e-300
"""What is foretold with less than this is taken as impossible."""


@register_jitable
def read_row(scores: np.ndarray, row: int, out: np.ndarray, at: int, beyond: float) -> float:
    """A row into whole registers, with this beyond its end; its largest entry."""
    states = scores.shape[1]
    top = fill(-np.inf)
    for g in range(0, states, WIDTH):
        part = load_part(scores, row * states + g, states - g)
        store(out, at + g, where_leading(states - g, part, fill(beyond)))
        top = larger(top, where_leading(states - g, part, fill(-np.inf)))
    return float(largest_of(top))


@register_jitable
def write_row(scores: np.ndarray, row: int, values: np.ndarray, at: int, factor: float) -> None:
    """Whole registers, times a factor, into a row."""
    states = scores.shape[1]
    for g in range(0, states, WIDTH):
        store_part(scores, row * states + g, load(values, at + g) * fill(factor), states - g)


@register_jitable
def row_times(shares: np.ndarray, at: int, states: int, table: np.ndarray, base: int, g: int) -> Any:
    """Eight entries of a row times a square table; four sums at a time, or each addition would wait for the last."""
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
def log_row_times(logs: np.ndarray, at: int, states: int, table: np.ndarray, base: int, g: int) -> Any:
    """The same of logarithms: each of eight sums around its own largest term, so that none is lost."""
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
    """The value, or minus infinity where the largest term was."""
    return where_above(top, fill(-np.inf), value) + where_above(fill(-1e300), top, fill(-np.inf))


@register_jitable
def sum_of_logs(sizes: np.ndarray, count: int) -> float:
    """The sum of the logarithms of the first numbers; there are as many more as fill a register."""
    total = fill(0.0)
    for at in range(0, count, WIDTH):
        total = total + where_leading(count - at, log_lanes(load(sizes, at)), fill(0.0))
    return float(sum_of(total))
