"""Columns with an end: what a kernel puts beyond it is folded back."""

from __future__ import annotations

from math import ceil, inf

import numpy as np

from softcount.densities.near_sums import UNREFLECTED, Images
from softcount.errors import DataError
from softcount.records import dataclass

WIDEST = 100.0
"""Bandwidths wider than so many times the distance between two ends would need images without number."""


@dataclass(frozen=True, slots=True)
class Reflection:
    """The ends of a column, infinite where it has none; a density is mirrored at each.

    >>> Reflection(0.0).images(5.0)
    ((1.0, 0.0), (-1.0, 0.0))
    >>> Reflection(0.0, 10.0).folded(np.array([-1.0, 12.0, 23.0]))
    array([1., 8., 3.])
    """

    low: float = -inf
    high: float = inf

    def images(self, reach: float) -> Images:
        """Where a kernel that reaches so far finds the points that a query's density is summed from."""
        if self.low == -inf and self.high == inf:
            return UNREFLECTED
        if self.low == -inf or self.high == inf:
            return (*UNREFLECTED, (-1.0, 2 * (self.low if self.low > -inf else self.high)))
        period = 2 * (self.high - self.low)
        turns = ceil(reach / period)
        shifts = [turn * period for turn in sorted(range(-turns, turns + 1), key=abs)]
        return (*((1.0, shift) for shift in shifts), *((-1.0, 2 * self.low + shift) for shift in shifts))

    def inside(self, values: np.ndarray) -> np.ndarray:
        """Whether each value lies between the ends."""
        return np.asarray((values >= self.low) & (values <= self.high))

    def folded(self, values: np.ndarray) -> np.ndarray:
        """Values mirrored at the ends until they lie between them."""
        if self.low == -inf:
            return self.high - np.abs(self.high - values) if self.high < inf else values
        away = np.abs(values - self.low)
        if self.high < inf:
            length = self.high - self.low
            away = length - np.abs(np.mod(away, 2 * length) - length)
        return np.clip(self.low + away, self.low, self.high)

    def refuse_wide(self, h: float) -> None:
        """Raise where the bandwidth is far wider than the column can be."""
        if h > WIDEST * (self.high - self.low):
            raise DataError(
                f"the bandwidth {h:g} is more than {WIDEST:g} times the distance between the bounds "
                f"{self.low:g} and {self.high:g}: give a smaller one."
            )


OPEN = Reflection()
"""A column without ends."""


def reflection_of(bounds: object) -> Reflection:
    """The ends that a pair of numbers means, None standing for no end."""
    if bounds is None:
        return OPEN
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise DataError(f"bounds must be a pair such as (0, None) or (0, 1), not {bounds!r}.")
    low, high = (_end(end, usual) for end, usual in zip(bounds, (-inf, inf), strict=True))
    if not low < high:
        raise DataError(f"bounds must be a lower and a higher number, not {bounds!r}.")
    return Reflection(low, high)


def _end(end: object, usual: float) -> float:
    if end is None:
        return usual
    if isinstance(end, bool) or not isinstance(end, (int, float, np.number)):
        raise DataError(f"an end of bounds must be a number or None, not {end!r}.")
    return float(end)
