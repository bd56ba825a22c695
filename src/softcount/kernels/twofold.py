"""Sums kept as two doubles, `high + low`, for Numba kernels: about 32 digits instead of 16.

Compiled without fused multiply-add, which would make the error terms below wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from softcount.core import twofold
from softcount.kernels.jit import jit

exact = jit(error_model="numpy")

Pair = tuple[float, float]

two_sum: Callable[[float, float], Pair] = exact(cast(Any, twofold.two_sum))
two_product: Callable[[float, float], Pair] = exact(cast(Any, twofold.two_product))


@exact
def add_pairs(a: Pair, b: Pair) -> Pair:
    """Return a + b of two pairs."""
    high, low = two_sum(a[0], b[0])
    extra, rest = two_sum(a[1], b[1])
    high, low = two_sum(high, low + extra)
    return two_sum(high, low + rest)


@exact
def multiply_pairs(a: Pair, b: Pair) -> Pair:
    """Return a * b of two pairs."""
    high, low = two_product(a[0], b[0])
    return two_sum(high, low + (a[0] * b[1] + a[1] * b[0]))


@exact
def shift_all(high: np.ndarray, low: np.ndarray, centres: np.ndarray, anchors: np.ndarray, scales: np.ndarray) -> None:
    """Move every group's (n, sum t, sum t^2) from its centres to the anchors of the columns: d = t + shift."""
    for g in range(high.shape[0]):
        for j in range(high.shape[1]):
            step, rest = two_sum(centres[g, j], -anchors[j])
            shift = (step * scales[j], rest * scales[j])
            count, total = (high[g, j, 0], low[g, j, 0]), (high[g, j, 1], low[g, j, 1])
            square = high[g, j, 2], low[g, j, 2]
            moved = add_pairs(total, multiply_pairs(count, shift))
            twice = add_pairs(total, moved)
            high[g, j, 0], low[g, j, 0] = two_sum(count[0], count[1])
            high[g, j, 1], low[g, j, 1] = moved
            high[g, j, 2], low[g, j, 2] = add_pairs(square, multiply_pairs(shift, twice))
