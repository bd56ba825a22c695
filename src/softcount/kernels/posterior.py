"""Memberships and log evidence from the log joint, with an exp and a log on eight numbers at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.kernels import Array, lanes
from softcount.kernels.jit import register_jitable
from softcount.kernels.lanes import WIDTH, fill, fused, load, load_part, store, store_part, where_leading

LOG2_E = 1.0 / math.log(2.0)
LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # 32 bits of ln 2, so that k * LN2_HIGH is exact
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
LOWEST = -708.0
"""Below this, exp is taken as zero: the smallest normal double is exp(-708.4)."""
SCRATCH = 4096
"""Number of values kept between reading and writing a tile: 32 KB, most of the first-level cache."""

exp_series = lanes.series(1 / math.factorial(power) for power in range(13, -1, -1))
log_series = lanes.series(2 / odd for odd in range(23, 1, -2))


@register_jitable
def exp_lanes(x: Any) -> Any:
    """Return exp of eight numbers up to 709; zero below -708.

    x = k ln 2 + r with |r| <= 0.347. The series of exp(r) to r^13 / 13! has an error of less than 4e-18.
    """
    rounded = x * fill(LOG2_E) + fill(lanes.ROUNDER)
    k = rounded - fill(lanes.ROUNDER)
    r = k * fill(-LN2_LOW) + (k * fill(-LN2_HIGH) + x)
    return lanes.where_above(x, fill(LOWEST), lanes.times_power(exp_series(r), rounded))


@register_jitable
def log_lanes(x: Any) -> Any:
    """Return the natural log of eight normal positive numbers.

    x = 2^k m with m within a factor sqrt(2) of one; log m = 2 atanh(s), s = (m - 1) / (m + 1), as a series in s^2.
    """
    k, m = lanes.power_part(x), lanes.rest_part(x)
    f = m - fill(1.0)
    s = f / (m + fill(1.0))
    z = s * s
    tail = k * fill(LN2_LOW) + s * z * log_series(z)
    return k * fill(LN2_HIGH) + (s * fill(2.0) + tail)


@fused
def normalise(joint: Array) -> Array:
    rows, groups = joint.shape
    peaks = np.empty(rows)
    evidence = np.empty(rows)
    tile = max(WIDTH, SCRATCH // max(groups, 1))
    powers = lanes.aligned_zeros(tile * groups + 2 * WIDTH)
    # Read a whole tile, then write it: a load next to a recent masked store stalls (1,000,000 x 2 took 63 ms, now 16).
    for start in range(0, rows, tile):
        stop = min(start + tile, rows)
        for i in range(start, stop):
            peak = fill(-np.inf)
            for g in range(0, groups, WIDTH):
                part = load_part(joint, i * groups + g, groups - g)
                peak = lanes.larger(peak, where_leading(groups - g, part, fill(-np.inf)))
            peaks[i] = lanes.largest_of(peak)
            shift = fill(peaks[i] if peaks[i] > -np.inf else 0.0)
            for g in range(0, groups, WIDTH):  # values past the last group are not used
                below = load_part(joint, i * groups + g, groups - g) - shift
                store(powers, (i - start) * groups + g, below)
        # Rows are contiguous, so that no lane is empty: with ten groups, two registers per row would be more than a
        # third idle.
        for at in range(0, (stop - start) * groups, WIDTH):
            store(powers, at, exp_lanes(load(powers, at)))
        for i in range(start, stop):
            at, total = (i - start) * groups, fill(0.0)
            for g in range(0, groups, WIDTH):
                total = total + where_leading(groups - g, load(powers, at + g), fill(0.0))
            evidence[i] = lanes.sum_of(total)
            factor = fill(1.0 / evidence[i] if evidence[i] > 0.0 else 0.0)
            for g in range(0, groups, WIDTH):
                store_part(joint, i * groups + g, load(powers, at + g) * factor, groups - g)
    for i in range(0, rows, WIDTH):
        total = load_part(peaks, i, rows - i) + log_lanes(load_part(evidence, i, rows - i))
        store_part(evidence, i, total, rows - i)
    return evidence


@register_jitable
def powers_of(joint: Array, at: int, faintest: float) -> Any:
    """Turn the log joint (groups, rows) of eight rows from `at` into exponentials relative to each row's maximum.

    Exponentials are zero if the log is not above `faintest`. Return the maxima and the sums of the exponentials.
    """
    groups, rows = joint.shape
    lowest, total = fill(-np.inf), fill(0.0)
    peak = lowest
    for g in range(groups):
        peak = lanes.larger(load(joint, g * rows + at), peak)
    shift = lanes.where_above(peak, lowest, peak)
    for g in range(groups):
        below = load(joint, g * rows + at) - shift
        power = lanes.where_above(below, fill(faintest), exp_lanes(below))
        store(joint, g * rows + at, power)
        total = total + power
    return peak, total


@register_jitable
def put_posterior(scores: Array, log_shares: Array, evidence: Array, out: Array) -> None:
    """Write memberships of a tile to `out` (rows, groups), and its log evidence, given scores (groups, rows)."""
    groups, rows = scores.shape
    for i in range(0, rows, WIDTH):
        for g in range(groups):
            store(scores, g * rows + i, fill(log_shares[g]) + load(scores, g * rows + i))
        peak, total = powers_of(scores, i, LOWEST)
        multiply_rows(scores, i, lanes.where_above(total, fill(0.0), fill(1.0) / total))
        store(evidence, i, peak + log_lanes(total))
    for i in range(out.shape[0]):
        for g in range(groups):
            out[i, g] = scores[g, i]


@register_jitable
def multiply_rows(joint: Array, at: int, factor: Any) -> None:
    """Multiply eight rows of (groups, rows) from `at` by one factor each."""
    groups, rows = joint.shape
    for g in range(groups):
        store(joint, g * rows + at, load(joint, g * rows + at) * factor)
