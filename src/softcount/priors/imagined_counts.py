"""Ways to imagine counts when nobody says how many."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from softcount.errors import DataError
from softcount.numerics.logspace import log_rising
from softcount.priors.beta import Beta
from softcount.priors.dirichlet import Dirichlet
from softcount.priors.distribution import numbers, positive, require

LEAST, MOST = 1e-6, 1e6
"""Between these a concentration is looked for."""

STEPS = 121
"""Points of the first, coarse look: ten to a power of ten, so that a second hill would be noticed."""


def jeffreys(levels: int | Sequence[Hashable] | None = None) -> Beta | Dirichlet:
    """Half a count of everything: a Beta, or a Dirichlet when levels are given by number or by name.

    >>> jeffreys()
    Beta(alpha=0.5, beta=0.5)
    >>> jeffreys(3)
    Dirichlet(alpha=[0.5, 0.5, 0.5])
    """
    return Beta(0.5, 0.5) if levels is None else Dirichlet.symmetric(0.5, levels)


def bdeu(equivalent_size: float, levels: int | Sequence[Hashable], parents: int = 1) -> Dirichlet:
    """`equivalent_size` imagined rows spread evenly over the levels and the `parents` configurations of parents.

    What comes back is the belief for one configuration; it is the same for each.

    >>> bdeu(6, ["no", "yes"], parents=3)
    Dirichlet(alpha=[1., 1.], levels=('no', 'yes'))
    """
    size = float(positive("equivalent_size", equivalent_size, "It is a number of imagined rows above 0, such as 1."))
    if parents < 1:
        raise DataError(f"parents is {parents}. Without parents there is one configuration: parents=1.")
    count = int(levels) if isinstance(levels, int | np.integer) else len(levels)
    return Dirichlet.symmetric(size / max(count, 1) / parents, levels)


def best_concentration(counts: ArrayLike, least: float = LEAST, most: float = MOST) -> float:
    """The imagined count per level, shared by all groups, under which these counts are most probable.

    `counts` is groups x levels. The answer lies between `least` and `most` and is one of them when the evidence
    keeps rising; where the counts do not care (no group has two rows, or there is one level) it is 1.

    >>> round(best_concentration([[9, 1], [2, 8], [5, 5]]), 4)
    1.6354
    """
    if not 0 < least < most < np.inf:
        raise DataError(f"A concentration is looked for between {least} and {most}. Give 0 < least < most.")
    evidence = _SharedEvidence(_checked(counts))
    grid = np.linspace(np.log(least), np.log(most), STEPS)
    heights = np.array([evidence(point) for point in grid])
    if np.ptp(heights) <= 1e-10 * (1 + np.abs(heights).max()):
        return 1.0
    return float(np.clip(_refined(evidence, grid, int(heights.argmax())), least, most))


class _SharedEvidence:
    """The log-evidence of all groups as a function of the logarithm of the concentration.

    Equal counts give equal terms, so each distinct count is looked at once, with how often it occurs.
    """

    def __init__(self, table: np.ndarray) -> None:
        self.levels = table.shape[1]
        self.cells, self.cell_times = np.unique(table[table > 0], return_counts=True)
        totals = table.sum(axis=1)
        self.totals, self.total_times = np.unique(totals[totals > 0], return_counts=True)

    def __call__(self, log_concentration: float) -> float:
        a = float(np.exp(log_concentration))
        gained = self.cell_times @ np.asarray(log_rising(a, self.cells))
        return float(gained - self.total_times @ np.asarray(log_rising(a * self.levels, self.totals)))


def _refined(evidence: _SharedEvidence, grid: np.ndarray, best: int) -> float:
    from scipy.optimize import minimize_scalar

    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lambda p: -evidence(p), bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    point = max((float(found.x), float(grid[best])), key=evidence)
    return float(np.exp(point))


def _checked(counts: ArrayLike) -> np.ndarray:
    table = np.atleast_2d(numbers("counts", counts))
    if table.ndim != 2 or table.shape[1] == 0:
        raise DataError(f"counts have shape {table.shape}. Give groups x levels.")
    right = np.isfinite(table) & (table >= 0)
    require(right, table, "a count", "Counts are finite and 0 or more.", ("group", "level"))
    return table
