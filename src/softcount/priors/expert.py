"""An expert's opinion as counts: n of m imagined trials."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softcount.errors import DataError
from softcount.numerics.logspace import plain
from softcount.priors.beta import Beta
from softcount.priors.dirichlet import Dirichlet
from softcount.priors.distribution import Distribution, Number, nonnegative, require, shown


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expert(Distribution):
    """Somebody who says "n of m", and how sure they are by how large m is.

    For several levels n is one count per level, in order or by name, and m is their sum (it may be left out).

    >>> Expert(n=2, m=3).update(successes=1, failures=9).estimate == 3 / 13
    True
    >>> Expert(n=2000, m=3000).update(successes=1, failures=9).estimate == 2001 / 3010
    True
    >>> Expert(n={"cherry": 3, "lime": 1}).update(counts={"lime": 4}).estimate.tolist()
    [0.375, 0.625]
    """

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
        return n.sum(axis=-1)

    def _take_names(self, given: Mapping[Any, float]) -> None:
        named = Dirichlet(given, self.levels)  # type: ignore[arg-type]
        object.__setattr__(self, "levels", named.levels)
        object.__setattr__(self, "n", named.alpha)

    def _check_levels(self, n: np.ndarray, m: np.ndarray) -> None:
        named = Dirichlet(n, self.levels)
        object.__setattr__(self, "levels", named.levels)
        total = n.sum(axis=-1)
        right = np.isclose(total, m, rtol=1e-9, atol=0)
        remedy = f"The counts of the levels sum to {shown(plain(total))}: leave m out, or make it the same."
        require(right, m, "Expert's m", remedy)
