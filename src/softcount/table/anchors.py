"""Where a column of numbers lies and how far it spreads, from its first rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LOOKED_AT = 1_024
"""Rows that decide an anchor: the median of so many is near enough for any column."""


class Anchor(NamedTuple):
    """Statistics are of `(x - at) * scale`; `scale` is a power of two, so that multiplying by it is exact."""

    at: float = 0.0
    scale: float = 1.0


NO_ANCHOR = Anchor()
"""For columns without a number to go by."""


def anchor_of(values: np.ndarray) -> Anchor:
    """Median of the first finite values, and the power of two that makes the typical distance from it about 1."""
    finite = values[np.isfinite(values)][:LOOKED_AT]
    if not len(finite):
        return NO_ANCHOR
    at, scale = anchors_of(finite[:, None])
    return Anchor(float(at[0]), float(scale[0]))


def log_anchor_of(values: np.ndarray) -> Anchor:
    """The anchor of the logarithms of what is above zero."""
    return anchor_of(np.log(values[np.isfinite(values) & (values > 0)][:LOOKED_AT]))


def anchors_of(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Anchors and scales of all columns of a block of finite numbers."""
    # Work on values divided by their largest power of two: differences of numbers near 1e308 would overflow.
    largest = np.frexp(np.max(np.abs(block), axis=0))[1]
    unit = np.ldexp(block, -largest)
    middle = np.median(unit, axis=0)
    apart = np.abs(unit - middle)
    typical = _first_positive(np.median(apart, axis=0), np.max(apart, axis=0), np.abs(middle))
    power = np.where(typical > 0, -np.round(np.log2(np.where(typical > 0, typical, 1.0))) - largest, 0)
    scale = np.ldexp(1.0, np.clip(power, -1_022, 1_023).astype(int))
    return np.ldexp(middle, largest), scale


def _first_positive(*candidates: np.ndarray) -> np.ndarray:
    chosen = candidates[-1]
    for better in reversed(candidates[:-1]):
        chosen = np.where(better > 0, better, chosen)
    return chosen
