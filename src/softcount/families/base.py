"""What every distribution must say, and the registry that makes one file a whole new family.

Arrays of parameters and statistics lead with the groups, then the columns that share the family (a stack), then
whatever the family itself needs. A column is a float array with NaN for missing, or level codes with 0 for missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from softcount import remedies
from softcount.errors import DataError
from softcount.families import derived
from softcount.families.answering import NOTHING
from softcount.families.filing import Filing
from softcount.families.setting import HOWS, IMPOSSIBLE, How, Hyper, Line, Params, Setting
from softcount.families.written import given_numbers, held_numbers
from softcount.numerics.twofold import Twofold
from softcount.table.cell_forms import as_cell, is_plain
from softcount.table.schema import Key, Kind

__all__ = ["FAMILIES", "HOWS", "IMPOSSIBLE", "Family", "How", "Hyper", "Line", "Params", "Setting", "register"]

NEVER_BELOW_ONE = ("jeffreys", "row", "bdeu")
"""Priors that have no mode of their own and so imply `mean`."""


class Family(Filing):
    """A distribution, configured, holding neither data nor parameters.

    Families whose log-density is features times natural parameters only say those two; `score` follows. What is here
    a new family must say or may inherit; what else it could say is in `Capabilities`.
    """

    chart: ClassVar[Mapping[str, Line]] = {}
    """The parameters EM moves, each with where a straight line makes sense: as it is, by its logarithm, as a share of
    one, as shares that sum to one along the last axis, or as a covariance. Others are made afresh by every M-step."""

    # Of what can be derived in a few lines or more, the default is a function of the family.
    slope = derived.slope_by_differences
    evidence = derived.schwarz_evidence
    divergence = derived.divergence
    given = given_numbers
    held_at = held_numbers

    def width(self, setting: Setting) -> int:
        """How many features a column has."""
        raise NotImplementedError

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        """Refuse values the family cannot hold, naming column and row; here those that its kind cannot."""
        if self.kind is Kind.COUNT:
            check_counts(column, key, start)
        elif self.kind is Kind.POSITIVE:
            check_positive(column, key, start, self.name)

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        """The (rows x width) matrix whose sums are all that is ever learned; a null row is zeros."""
        raise NotImplementedError

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
        return np.asarray(self.features(column, setting) @ self.natural(params).T)

    def completed(self, stats: Twofold, params: Params) -> float:
        """Log-likelihood of complete rows with these statistics, in counting units and without `base`."""
        counts = stats.value
        with np.errstate(invalid="ignore"):
            return float(np.where(counts != 0, counts * self.natural(params), 0.0).sum())

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        """The prior's part of the objective that EM climbs, in every group and column: what imagined rows say."""
        imagined = self.imagined_stats(hyper, how)
        if imagined is None:
            raise NotImplementedError
        height = derived.product(imagined, self.natural(params))
        return np.where(height > IMPOSSIBLE, height, -np.inf)

    def free(self, setting: Setting, groups: int, columns: int = 1) -> int:
        """How many parameters may vary freely, over all groups, for so many like columns: shared ones count once."""
        return groups * columns * len(self.chart)

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One value for each entry of `groups`, from public parameters."""
        raise NotImplementedError

    def describe(self, params: Params, setting: Setting) -> list[str]:
        """Each group in a few words, from public parameters."""
        said = [[f"{name} {value:.4g}" for value in params[name]] for name in self.chart]
        return [", ".join(group) for group in zip(*said, strict=True)]

    def entropy(self, params: Params) -> np.ndarray:
        """How surprising a value is on average in each group, in nats, from public parameters.

        Here from the mean features where they are known and nothing else is in the density, or by 4,096 draws, the
        same every time: good to about 0.01.
        """
        return derived.entropy(self, params, simple=type(self).base is Family.base)

    def moments(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each group, for a numeric column; here by 4,096 draws."""
        drawn = derived.draws(self, params)
        return drawn.mean(axis=1), drawn.var(axis=1)

    def cdf(self, params: Params, x: float) -> np.ndarray:
        """The probability in each group of a value of at most x; here by 4,096 draws."""
        return np.asarray((derived.draws(self, params) <= x).mean(axis=1))

    def survival(self, params: Params, x: float) -> np.ndarray:
        """The probability in each group of a value above x; here what `cdf` leaves, which loses digits far up."""
        return np.asarray(1.0 - self.cdf(params, x))

    def mass_at(self, params: Params, x: float) -> np.ndarray:
        """The probability in each group of exactly x, which is none where there is a density."""
        nearest = self.cdf(params, x) - self.cdf(params, x - 1.0) if self.whole_numbers else np.zeros(1)
        return np.asarray(nearest + np.zeros(len(next(iter(params.values())))))

    @property
    def has_cdf(self) -> bool:
        """Whether probabilities of ranges are exact: by draws they are not."""
        return type(self).cdf is not Family.cdf

    def check_params(self, params: Params) -> str | None:
        """What makes these parameters senseless, in words, or None; here from the lines they are on."""
        return derived.senseless(self.chart, params)


FAMILIES: dict[str, type[Family]] = {}


def register(family: type[Family]) -> type[Family]:
    """Make a family known by its name everywhere: kinds, model files, contract tests, the command line."""
    FAMILIES[family.name] = family
    return family


def given_family(said: object) -> Family | None:
    """What was said of a column, where that is a family itself and not the name of one."""
    return said if isinstance(said, Family) else None


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


def said(setting: Setting, value: float, plain: str) -> str:
    """A number of a column as its cells are written; `plain` where they are plain numbers."""
    return plain if is_plain(setting.written) else str(as_cell(setting.written, float(value)))


def said_spread(setting: Setting, value: float) -> str:
    """The spread of a column in a few digits, in the units of its cells."""
    written = setting.written
    return spoken(value, 3) if written is None or is_plain(written) else written.spread(float(value))


def check_counts(column: np.ndarray, key: Key, start: int) -> None:
    """Refuse what is not 0, 1, 2, ..., naming column and row."""
    bad = (column < 0) | (column != np.floor(column)) & ~np.isnan(column)
    if bad.any():
        row = where_first(bad, start)
        raise DataError(
            f"column {key!r} is a count, but row {row} holds {column[row - start - 1]:g}. Counts are 0, 1, 2, ...\n"
            f"  Declare it real: {remedies.kind(key, 'normal')}     or leave it out: {remedies.kind(key, 'ignore')}"
        )


def check_positive(column: np.ndarray, key: Key, start: int, name: str) -> None:
    """Refuse what is not above zero, naming column and row."""
    bad = column <= 0
    if bad.any():
        row = where_first(bad, start)
        raise DataError(
            f"column {key!r} is positive ({name}), but row {row} holds {column[row - start - 1]:g}. "
            f"Declare it real: {remedies.kind(key, 'normal')}"
        )


def where_first(bad: np.ndarray, start: int) -> int:
    """The 1-based row number of the first true entry."""
    return start + int(np.argmax(bad if bad.ndim == 1 else bad.any(axis=1))) + 1
