"""How finely numbers were written down, and so how narrow a density of them may be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NARROW = 1e-6
"""Of a column's variance, or of the square of what its values are apart from each other if that is less."""
COARSE = 1e-2
"""The share of a column's variance up to which its rounding is taken for a width."""


class ColumnFloor(NamedTuple):
    """The least variance of a group as a share of the column's, and whether it is how the column is rounded."""

    share: float
    rounded: bool = False


def least_share(values: np.ndarray, weights: np.ndarray) -> ColumnFloor:
    """The least variance of a group as a share of the column's, from the spread and the gaps of the column's values.

    Values rounded to 0.1 cannot tell widths below 0.1 / sqrt(12). Where values are not rounded, a thousandth of the
    width they would have if all lay as close together as most do: groups a million widths apart stay what they are,
    which a thousandth of the whole deviation would blur.
    """
    ordered = np.sort(values)
    gaps = ordered[1:] - ordered[:-1]
    gaps = np.sort(gaps[gaps > 0])
    if not len(gaps):
        return ColumnFloor(NARROW, rounded=True)  # of one value nothing can be told
    top, mass = ordered[-1] - ordered[0], weights.sum()
    gaps /= top
    centred = (values - ordered[0]) / top
    off = centred - (centred * weights).sum() / mass
    spread = (off * off * weights).sum() / mass
    half = len(gaps) // 2
    middle = gaps[half] if len(gaps) % 2 else 0.5 * (gaps[half - 1] + gaps[half])
    near = (0.25 * middle * (len(gaps) + 1)) ** 2
    rounding = min(gaps[0] ** 2 / 12, COARSE * spread)
    narrow = NARROW * min(spread, near)
    return ColumnFloor(float(max(narrow, rounding) / spread), bool(rounding > narrow))
