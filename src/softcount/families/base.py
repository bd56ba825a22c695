"""What every distribution can do, and the registry that makes one file a whole new family.

Arrays of parameters and statistics lead with the groups, then the columns that share the family (a stack), then
whatever the family itself needs. A column is a float array with NaN for missing, or level codes with 0 for missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from softcount.errors import DataError
from softcount.numerics.twofold import Twofold
from softcount.table.schema import Key, Kind

How = Literal["ml", "map", "mean", "predictive"]
Line = Literal["plain", "log", "share", "shares", "covariance"]
Params = dict[str, np.ndarray]
Hyper = dict[str, np.ndarray]
HOWS: tuple[How, ...] = ("ml", "map", "mean", "predictive")

IMPOSSIBLE = -1e199
"""A log-density below this stands for probability zero where a product must stay finite."""
CLAMPED = -1e200
DRAWS = 4096
NEVER_BELOW_ONE = ("jeffreys", "row", "bdeu")
"""Priors that have no mode of their own and so imply `mean`."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a family is told of the columns it models: how many groups, which levels, which units.

    A number x is counted as `(x - anchor) * scale`, so `anchor` and `scale` turn parameters into the user's units.
    `blank` is what a hole is taken for while nothing is known of its group: the columns' means and variances.
    """

    keys: tuple[Key, ...] = ()
    groups: int = 1
    levels: Sequence[object] = ()
    anchor: np.ndarray = field(default_factory=lambda: np.zeros(1))
    scale: np.ndarray = field(default_factory=lambda: np.ones(1))
    floor: float = 1e-12
    shape: tuple[int, ...] = ()
    blank: tuple[np.ndarray, np.ndarray] | None = None


class Family:
    """A distribution, configured, holding neither data nor parameters.

    Families whose log-density is features times natural parameters only say those two; `score` follows.
    """

    name: ClassVar[str] = ""
    kind: ClassVar[Kind] = Kind.REAL
    block: ClassVar[bool] = False
    discrete: ClassVar[bool] = False
    exact: ClassVar[bool] = True
    signed: ClassVar[bool] = False
    """Whether statistics other than the first, the rows, may be below zero."""
    mergeable: ClassVar[bool] = True
    """Whether the counts of two fits add up to those of both tables."""
    dotted: ClassVar[bool] = True
    """Whether scoring and counting are products with the features; otherwise the family has its own pair."""
    chart: ClassVar[Mapping[str, Line]] = {}
    """The parameters EM moves, each with where a straight line makes sense: as it is, by its logarithm, as a share of
    one, as shares that sum to one along the last axis, or as a covariance. Others are made afresh by every M-step."""

    @property
    def alone(self) -> bool:
        """Whether its statistics are estimated by themselves, not side by side with those of like columns."""
        return self.block

    def stack_key(self) -> tuple[Any, ...]:
        """Columns with equal keys are estimated together."""
        return (type(self).__name__, self)

    def width(self, setting: Setting) -> int:
        """How many features a column has."""
        raise NotImplementedError

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        """Refuse values the family cannot hold, naming column and row."""

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        """The (rows x width) matrix whose sums are all that is ever learned; a null row is zeros."""
        raise NotImplementedError

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        """(groups x width) statistics of a family that is not `dotted`; expected ones under the parameters before."""
        raise NotImplementedError

    def moved(self, stats: Twofold, old: Setting, new: Setting) -> Twofold:
        """Statistics counted from one anchor and scale, as counted from another."""
        return stats

    def overdrawn(self, before: Twofold, after: Twofold, slack: float) -> bool:
        """Whether more was taken out of the statistics than was in them."""
        return bool((after.value < -slack * np.maximum(before.value, 1.0)).any())

    def hidden(self, key: Key, holes: bool) -> str:
        """What one pass over rows of known class cannot count, in words, or nothing."""
        return ""

    def blank(self, columns: Sequence[np.ndarray], weights: Sequence[np.ndarray], setting: Setting) -> Any:
        """What a group is taken for while nothing is known of it, where counting needs that (`Setting.blank`)."""
        return None

    def observed(self, stats: np.ndarray) -> float | None:
        """How many rows, by weight, had a value; None where the statistics do not tell."""
        return None

    def base(self, column: np.ndarray) -> np.ndarray | float:
        """The part of each row's log-density that no group changes."""
        return 0.0

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        """The imagined counts that `prior` stands for."""
        raise NotImplementedError

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        """Parameters of every group from its statistics and the imagined ones."""
        raise NotImplementedError

    def held(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params) -> Params:
        """The estimate where some parameters are fixed: what is fixed is certain, the others are plugged in."""
        free = self.estimate(stats, hyper, how)
        return {name: free[name] for name in free if name in self.chart or name == "unseen"} | fixed

    def held_free(self, names: Collection[str], setting: Setting, groups: int) -> int:
        """How many of the free parameters the fixed ones are."""
        return self.free(setting, groups) if set(self.chart) <= set(names) else groups * len(names)

    def within(self, params: Params, hyper: Hyper) -> Params:
        """The nearest parameters that an estimate may be: floors are kept."""
        return params

    def degenerate(self, params: Params, hyper: Hyper) -> np.ndarray:
        """Which groups do not vary, so that a floor holds their spread."""
        if "variance" not in params or "floor" not in hyper:
            return np.zeros(len(next(iter(params.values()))), dtype=bool)
        return params["variance"] <= hyper["floor"]

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params | None:
        """How `completed` plus `log_prior` rises with each parameter of the chart; None where it is not known.

        A parameter that several groups or columns share has its slope divided between them.
        """
        return None

    def natural(self, params: Params) -> np.ndarray:
        """(groups x width) parameters that multiply the features."""
        raise NotImplementedError

    def score(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray:
        """(rows x groups) log-density of one column, without `base`."""
        return self.features(column, setting) @ self.natural(params).T

    def completed(self, stats: Twofold, params: Params) -> float:
        """Log-likelihood of complete rows with these statistics, in counting units and without `base`."""
        counts = stats.value
        with np.errstate(invalid="ignore"):
            return float(np.where(counts != 0, counts * self.natural(params), 0.0).sum())

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> float:
        """The prior's part of the objective that EM climbs: the log-likelihood of the imagined rows."""
        raise NotImplementedError

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Log marginal likelihood of rows with these statistics, in counting units and without `base`.

        With a proper prior it is the log of the product of one-step-ahead predictions. Where the prior has no say in
        some parameter, what that parameter's prior would add is left out: only priors of that kind can be compared.
        """
        raise NotImplementedError

    def proper(self, hyper: Hyper) -> Hyper:
        """The same imagined rows as a belief that integrates to one, which comparing numbers of groups needs."""
        return hyper

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        """What the column's unit alone adds to the log-likelihood of these rows; nothing where there is no unit."""
        return 0.0

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Any:
        """The posterior itself, as a conjugate object that holds every group."""
        raise NotImplementedError

    def public(self, params: Params, setting: Setting) -> Params:
        """The parameters in the user's units."""
        return params

    def private(self, params: Params, setting: Setting) -> Params:
        """Back from the user's units."""
        return params

    def free(self, setting: Setting, groups: int) -> int:
        """How many parameters may vary freely, over all groups, for one column."""
        raise NotImplementedError

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One value for each entry of `groups`, from public parameters."""
        raise NotImplementedError

    def describe(self, params: Params, setting: Setting) -> list[str]:
        """Each group in a few words, from public parameters."""
        raise NotImplementedError

    def divergence(self, params: Params, shares: np.ndarray) -> np.ndarray:
        """How far each group's distribution is from the whole table's, in nats, from public parameters."""
        raise NotImplementedError

    def entropy(self, params: Params) -> np.ndarray:
        """How surprising a value is on average in each group, in nats, from public parameters.

        Here by 4,096 draws, the same every time: good to about 0.01. A family with a formula says it instead.
        """
        groups = np.repeat(np.arange(len(next(iter(params.values())))), DRAWS)
        values = self.draw(params, groups, np.random.default_rng(0))
        scored = self.score(values, params, Setting())[np.arange(len(groups)), groups] + self.base(values)
        return -scored.reshape(-1, DRAWS).mean(axis=1)

    def moments(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each group, for a numeric column."""
        raise NotImplementedError

    def cdf(self, params: Params, x: float) -> np.ndarray:
        """The probability in each group of a value of at most x."""
        raise NotImplementedError

    def check_params(self, params: Params) -> str | None:
        """What makes these parameters senseless, in words, or None."""
        return None


FAMILIES: dict[str, type[Family]] = {}
NOTHING = 1e-6
"""Of its spread, below which a mean is said to be 0: memberships of 1e-140 left "mean 1.597e-133" in Adult."""


def register(family: type[Family]) -> type[Family]:
    """Make a family known by its name everywhere: kinds, model files, contract tests, the command line."""
    FAMILIES[family.name] = family
    return family


def scalar_prior(prior: Any, family: Family, levels: int = 1, groups: int = 1) -> float:
    """The number of imagined rows (or counts per level) that a prior named in one word or number means.

    "row" imagines one row in every group, "bdeu" one row in the whole table, shared by groups and levels.
    """
    if isinstance(prior, str):
        words = {"flat": 1.0, "laplace": 1.0, "jeffreys": 0.5, "row": 1 / levels, "bdeu": 1 / (levels * max(groups, 1))}
        if prior not in words:
            raise DataError(f"prior {prior!r} is not known. Use a number, 'flat', 'jeffreys', 'bdeu', 'row' or 'auto'.")
        return words[prior]
    if isinstance(prior, bool) or not isinstance(prior, (int, float, np.integer, np.floating)):
        raise DataError(f"a {family.name} column cannot take {prior!r} as its prior.")
    if not np.isfinite(prior) or prior < 0:
        raise DataError(f"a prior is a number of imagined counts, 0 or more, not {prior}.")
    return float(prior)


def spoken(value: float, digits: int, beside: float = 0.0) -> str:
    """A number in a few digits as people write it; 0 where it is nothing beside a spread.

    >>> spoken(21387.6, 4), spoken(0.2461, 3), spoken(1.597e-133, 4, beside=6.21)
    ('21,388', '0.246', '0')
    """
    if abs(value) < NOTHING * beside:
        return "0"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.{digits}g}"


def where_first(bad: np.ndarray, start: int) -> int:
    """The 1-based row number of the first true entry."""
    return start + int(np.argmax(bad if bad.ndim == 1 else bad.any(axis=1))) + 1
