"""Counts to imagine: an expert's n of m trials, and ways for when nobody says how many."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import force_setattr
from numpy.typing import ArrayLike

from softcount.core.special import log_rising, plain
from softcount.errors import DataError
from softcount.priors.beta import Beta
from softcount.priors.dirichlet import Dirichlet
from softcount.priors.distribution import Distribution, Number, nonnegative, numbers, positive, require, shown

LEAST, MOST = 1e-6, 1e6
"""Between these a concentration is looked for."""

STEPS = 121
"""Points of the first, coarse look: ten to a power of ten, so that a second hill would be noticed."""


class Expert(Distribution, frozen=True, eq=False):
    """Somebody who says "n of m", and how sure they are by how large m is.

    For several levels n is one count per level, in order or by name, and m is their sum (it may be left out).

    >>> Expert(n=2, m=3).update(successes=1, failures=9).estimate == 3 / 13
    True
    >>> Expert(n=2000, m=3000).update(successes=1, failures=9).estimate == 2001 / 3010
    True
    >>> Expert(n={"cherry": 3, "lime": 1}).update(counts={"lime": 4}).estimate.tolist()
    [0.375, 0.625]
    """

    own_axes = 1

    n: Number
    m: Number | None = None
    levels: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.n, Mapping):
            self._take_names(self.n)
        n = nonnegative("Expert's n", self.n, axes=("group", "level"))
        m = np.asarray(self._total(n) if self.m is None else nonnegative("Expert's m", self.m))
        if n.ndim:
            self._check_levels(n, m)
        else:
            require(n <= m, n, "Expert's n", f"It is at most m, which is {shown(plain(m))}.")
        self._store("n", n)
        self._store("m", m)

    def update(
        self, successes: float = 0.0, failures: float = 0.0, *, counts: ArrayLike | Mapping[Any, float] | None = None
    ) -> Expert:
        """The opinion after counting: a success adds one to n and m, a failure to m alone; levels take counts."""
        if np.ndim(self.n):
            if counts is None:
                raise DataError("This expert knows several levels: update(counts=...), one count per level.")
            return Expert(self.as_dirichlet().update(counts).alpha, levels=self.levels)
        if counts is not None:
            raise DataError("This expert knows one share: update(successes=..., failures=...).")
        won, lost = nonnegative("successes", successes), nonnegative("failures", failures)
        return Expert(plain(self.n + won), plain(self._m + won + lost))

    @property
    def estimate(self) -> Number:
        """The share n / m (one per level where there are several)."""
        require(self._m > 0, self._m, "Expert's m", "Of no trials there is no share: imagine some, or update first.")
        return plain(self.n / (self._m[..., None] if np.ndim(self.n) else self._m))

    def as_beta(self) -> Beta:
        """The opinion as a belief about a share: n successes and m - n failures, so that its mean is n / m."""
        if np.ndim(self.n):
            raise DataError("This expert knows several levels: use as_dirichlet().")
        return Beta(self.n, self._m - self.n)

    def as_dirichlet(self) -> Dirichlet:
        """The opinion as a belief about the shares of levels; a single share gives two, success first."""
        if np.ndim(self.n):
            return Dirichlet(np.asarray(self.n), self.levels)
        return Dirichlet(np.stack([np.asarray(self.n), self._m - self.n]))

    def describe(self) -> str:
        """The opinion in one line.

        >>> Expert(n=2, m=3).describe()
        '2 of 3 imagined trials'
        """
        if self.levels is None:
            return f"{shown(self.n)} of {shown(plain(self._m))} imagined trials"
        told = ", ".join(f"{k} {shown(v)}" for k, v in zip(self.levels, np.atleast_2d(self.n)[0], strict=True))
        return f"{told} of {shown(plain(self._m))} imagined trials"

    @property
    def _m(self) -> np.ndarray:
        return np.asarray(self.m, dtype=float)

    def _total(self, n: np.ndarray) -> np.ndarray:
        if n.ndim == 0:
            raise DataError(f"Expert(n={self.n!r}) lacks m, the number of imagined trials: Expert(n=2, m=3) is 2 of 3.")
        return np.asarray(n.sum(axis=-1))

    def _take_names(self, given: Mapping[Any, float]) -> None:
        named = Dirichlet(given, self.levels)  # type: ignore[arg-type]
        force_setattr(self, "levels", named.levels)
        force_setattr(self, "n", named.alpha)

    def _check_levels(self, n: np.ndarray, m: np.ndarray) -> None:
        named = Dirichlet(n, self.levels)
        force_setattr(self, "levels", named.levels)
        total = n.sum(axis=-1)
        right = np.isclose(total, m, rtol=1e-9, atol=0)
        remedy = f"The counts of the levels sum to {shown(plain(total))}: leave m out, or make it the same."
        require(right, m, "Expert's m", remedy)


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
