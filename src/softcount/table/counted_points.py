"""The different numbers of a column, or of a fine grid where there are too many: what rows are counted at.

The grid's step is a power of two and its lines are multiples of it, so a finer grid lies within every coarser one: the
points of two tables unite, and come to what the points of both tables at once would have come to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from softcount.records import dataclass

MOST_POINTS = 2048
"""Different numbers of a column that are counted apart."""
FEWEST_POINTS = 128
MOST_COUNTS = 1 << 21
"""CountedPoints of all columns in all classes, about, whatever the number of classes."""


def points_for(classes: int, columns: int) -> int:
    """How many different numbers each column may have, so that counts in all classes stay small; a power of two.

    >>> points_for(2, 6), points_for(1000, 30)
    (2048, 128)
    """
    each = MOST_COUNTS // max(classes * columns, 1)
    return int(np.clip(2 ** int(np.log2(max(each, 1))), FEWEST_POINTS, MOST_POINTS))


@dataclass(frozen=True, slots=True)
class CountedPoints:
    """At most so many numbers in order; with a `step` they are the middles of the cells of a grid of that width.

    >>> CountedPoints.of([np.array([3.0, 1.0, np.nan, 3.0])])
    CountedPoints(values=(1.0, 3.0), step=0.0, most=2048)
    >>> CountedPoints((0.25, 0.75, 1.75), 0.5).united(CountedPoints((0.5, 1.5), 1.0)).values
    (0.5, 1.5)
    """

    values: tuple[float, ...] = ()
    step: float = 0.0
    most: int = MOST_POINTS

    @staticmethod
    def of(columns: Iterable[np.ndarray], most: int = MOST_POINTS) -> CountedPoints:
        """The different numbers of some columns; those that are missing or infinite are passed over."""
        parts = [np.unique(column[np.isfinite(column)]) for column in columns]
        return _few(np.unique(np.concatenate([np.zeros(0), *parts])) + 0.0, 0.0, most)

    def places(self, column: np.ndarray) -> np.ndarray:
        """Where each number of a column is among the points; a number that is not there goes to a neighbour."""
        found = np.searchsorted(self.values, on_grid(column, self.step))
        return np.minimum(found, max(len(self.values) - 1, 0))

    def united(self, other: CountedPoints) -> CountedPoints:
        """The points of two tables together."""
        step = max(self.step, other.step)
        both = np.union1d(on_grid(np.array(self.values), step), on_grid(np.array(other.values), step))
        return _few(both, step, min(self.most, other.most))


def on_grid(values: np.ndarray, step: float) -> np.ndarray:
    """Numbers as the middles of the cells they lie in; as they are where there is no grid."""
    return (np.floor(values / step) + 0.5) * step if step else values


def _few(values: np.ndarray, step: float, most: int) -> CountedPoints:
    """Different numbers on the finest grid that leaves few enough of them."""
    found = CountedPoints((), step, most)
    if len(values) <= most:
        return replace(found, values=tuple(values.tolist()))
    fine = int(np.frexp(step or 4.0 * np.spacing(np.abs(values[[0, -1]]).max()))[1]) - 1
    coarse = int(np.frexp(values[-1] / 2 - values[0] / 2)[1]) + 2
    while fine < coarse:
        power = (fine + coarse) // 2
        cells = np.count_nonzero(np.diff(np.floor(np.ldexp(values, -power)))) + 1
        fine, coarse = (fine, power) if cells <= most else (power + 1, coarse)
    step = float(np.ldexp(1.0, coarse))
    return replace(found, values=tuple(np.unique(on_grid(values, step)).tolist()), step=step)
