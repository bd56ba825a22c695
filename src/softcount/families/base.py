"""What every distribution can do, and the registry that makes one file a whole new family.

Arrays of parameters and statistics lead with the groups, then the columns that share the family (a stack), then
whatever the family itself needs. A column is a float array with NaN for missing, or level codes with 0 for missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from softcount.errors import DataError
from softcount.numerics.twofold import Twofold
from softcount.table.schema import Key, Kind

How = Literal["ml", "map", "mean", "predictive"]
Params = dict[str, np.ndarray]
Hyper = dict[str, np.ndarray]
HOWS: tuple[How, ...] = ("ml", "map", "mean", "predictive")

IMPOSSIBLE = -1e199
"""A log-density below this stands for probability zero where a product must stay finite."""
CLAMPED = -1e200
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
    levels: tuple[object, ...] = ()
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
        """Log marginal likelihood of the statistics, up to what no prior changes."""
        raise NotImplementedError

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


def where_first(bad: np.ndarray, start: int) -> int:
    """The 1-based row number of the first true entry."""
    return start + int(np.argmax(bad if bad.ndim == 1 else bad.any(axis=1))) + 1
