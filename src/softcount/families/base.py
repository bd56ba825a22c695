"""The interface that every family implements, and the registry of families."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from math import prod
from typing import Any, ClassVar

import numpy as np

from softcount.core import remedies
from softcount.core.counts import Twofold
from softcount.errors import DataError
from softcount.families import learning
from softcount.families.density import NOTHING, Density
from softcount.families.learning import product
from softcount.families.setting import HOWS, IMPOSSIBLE, Facts, How, Hyper, Labels, Line, Params, Setting
from softcount.table.cell_forms import is_plain, write_cell
from softcount.table.schema import Field, Key, Kind

__all__ = ["FAMILIES", "HOWS", "IMPOSSIBLE", "Family", "How", "Hyper", "Line", "Params", "Setting", "register"]

NEVER_BELOW_ONE = ("jeffreys", "row", "bdeu")
"""Priors without a mode, which imply `mean`."""


class Family:
    """A configured distribution. It holds neither data nor parameters.

    A family learns: it must implement `features`, `hyper`, `estimate`, `natural` and have a `density`, which answers
    questions about values. Everything else has a default. What other packages must know about it is in `facts`.
    Parameters are private (in counting units), unless a docstring says otherwise. The first axis is the group.
    """

    __struct_fields__: ClassVar[tuple[str, ...]]

    name: ClassVar[str] = ""
    facts: ClassVar[Facts] = Facts()
    _density: ClassVar[type[Density]] = Density

    # Defaults that take more than a few lines are functions of the family.
    slope = learning.slope_by_differences
    evidence = learning.schwarz_evidence

    def density(self, params: Params, setting: Setting) -> Density:
        """Return what these private parameters say about values."""
        return self._density(self, params, setting)

    # -- setting up

    def set_up(self, key: Key, fields: Sequence[Field], groups: int, floor: float) -> tuple[Family, Setting]:
        """Return the family and its setting for these columns of a schema. Raises an error if they do not fit."""
        for spec in fields:
            if spec.kind is Kind.TEXT and self.facts.kind is not Kind.TEXT:
                raise DataError(f"column {spec.key!r} is text, which {self.name} cannot model. Declare it text.")
        anchor = np.array([spec.anchor for spec in fields])
        scale = np.array([spec.scale for spec in fields])
        keys = tuple(spec.key for spec in fields)
        levels = fields[0].levels if self.facts.kind.coded or self.facts.kind is Kind.TEXT else keys
        written = fields[0].written if len(fields) == 1 else None
        return self, Setting(keys, groups, levels, anchor, scale, floor, written=written)

    # -- counting

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        """Raise an error, naming column and row, for a value that the family cannot model.

        By default the kind of the family decides.
        """
        if self.facts.kind is Kind.COUNT:
            check_counts(column, key, start)
        elif self.facts.kind is Kind.POSITIVE:
            bad = column <= 0
            if bad.any():
                row = where_first(bad, start)
                raise DataError(
                    f"column {key!r} is positive ({self.name}), but row {row} holds {column[row - start - 1]:g}. "
                    f"Declare it real: {remedies.kind(key, 'normal')}"
                )

    def width(self, setting: Setting) -> int:
        """Return the number of features; by default a constant, or one per category."""
        return self.facts.n_features or len(setting.levels)

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        """Return the (rows x width) feature matrix, whose sums are all that is learned. A missing row is zeros."""
        raise NotImplementedError

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        """Return the (groups x width) statistics of rows with these memberships.

        Statistics that depend on hidden quantities are expected ones, under the previous parameters `params`.
        """
        return Twofold.of(memberships.T @ self.features(column, setting))

    def blank(
        self, columns: Sequence[np.ndarray], weights: Sequence[np.ndarray], setting: Setting, labels: Labels = ()
    ) -> Any:
        """Return the initial guess for groups without information (`Setting.blank`); None if counting needs none.

        `labels` holds the groups of rows (below 0 if unknown), in parts like the columns. It is empty if no labels are
        known.
        """
        return None

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        """Convert statistics that a family `was` of the same class counted in another setting (`convert_stats`)."""
        return stats

    def is_overdrawn(self, before: Twofold, after: Twofold, slack: float) -> bool:
        """Return whether more was subtracted from the statistics than was in them."""
        return bool((after.value < -slack * np.maximum(before.value, 1.0)).any())

    # -- learning

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        """Return the prior parameters for `prior`."""
        raise NotImplementedError

    def _prior_stats(self, hyper: Hyper, how: How) -> np.ndarray | None:
        """Return the prior statistics that are part of the objective; None if the prior is more than prior rows."""
        return None

    def proper(self, hyper: Hyper) -> Hyper:
        """Make the prior proper, as comparing numbers of groups requires."""
        return hyper

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        """Estimate the parameters of every group from its statistics and the prior.

        Some may be `fixed`: parameters that depend on these are estimated as if they were certain. The caller replaces
        the estimates of the fixed ones themselves.
        """
        raise NotImplementedError

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        """Return the log-prior, for every group and column, without its normalising constant."""
        extra = self._prior_stats(hyper, how)
        if extra is None:
            raise NotImplementedError
        height = product(extra, self.natural(params))
        return np.where(height > IMPOSSIBLE, height, -np.inf)

    def completed(self, stats: Twofold, params: Params) -> float:
        """Return the log-likelihood of complete rows with these statistics, in counting units, without `base`."""
        counts = stats.value
        with np.errstate(invalid="ignore"):
            return float(np.where(counts != 0, counts * self.natural(params), 0.0).sum())

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Any:
        """Return the posterior as a conjugate object that holds every group."""
        key = setting.key
        raise DataError(f"column {key!r} is {self.name}, which has no conjugate prior: it has no posterior.")

    def _inner_shape(self, name: str, setting: Setting) -> tuple[int, ...]:
        """Return the shape of the parameter of one group."""
        line, d = self.facts.chart[name], len(setting.anchor)
        if line == "covariance":
            return (d, d)
        if line == "shares" or self.facts.kind is Kind.TEXT:
            return (len(setting.levels),)
        return (d,) if self.facts.block and line == "plain" else ()

    def _free_numbers(self, name: str, setting: Setting) -> int:
        """Return the number of free values in the parameter of one group."""
        line, inner = self.facts.chart[name], self._inner_shape(name, setting)
        if name in self.facts.known:
            return 0
        if line == "covariance":
            return inner[0] * (inner[0] + 1) // 2
        return prod(inner[:-1]) * max(inner[-1] - 1, 0) if line == "shares" else prod(inner)

    def public(self, params: Params, setting: Setting) -> Params:
        """Convert parameters to the user's units."""
        return params

    def private(self, params: Params, setting: Setting) -> Params:
        """Convert parameters back from the user's units."""
        return params

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        """Return the part of the log-likelihood due to the unit of the column; 0 without a unit."""
        return float(stats.value[..., 0].sum() * np.log(setting.scale).sum()) if self.facts.signed else 0.0

    # -- scoring

    def natural(self, params: Params) -> np.ndarray:
        """Return the (groups x width) parameters that multiply the features."""
        raise NotImplementedError

    def base(self, column: np.ndarray) -> np.ndarray | float:
        """Return the part of each row's log-density that is the same in all groups."""
        return 0.0


FAMILIES: dict[str, type[Family]] = {}


def register(family: type[Family]) -> type[Family]:
    """Register a family by its name, for kinds, model files, contract tests and the command line."""
    FAMILIES[family.name] = family
    return family


def name_or_family(family: Family) -> str | Family:
    """Return the value of `kinds` for a family: its name if all settings have their defaults, else the family."""
    parts = signature(type(family)).parameters.values()
    return family.name if all(getattr(family, part.name) == part.default for part in parts) else family


def family_title(family: Family) -> str:
    """Return the name of a family in reports."""
    return family.facts.title or family.name


def given_family(kind: object) -> Family | None:
    """Return a declared kind if it is a family and not a name, else None."""
    return kind if isinstance(kind, Family) else None


def scalar_prior(prior: Any, family: Family, levels: int = 1, groups: int = 1) -> float:
    """Return the number of prior rows, or of prior counts per category, for a prior given as a word or a number.

    "row" is one row in every group, "bdeu" one row in the whole table, shared by groups and categories.
    """
    if isinstance(prior, str):
        words = {"flat": 1.0, "laplace": 1.0, "jeffreys": 0.5, "row": 1 / levels, "bdeu": 1 / (levels * max(groups, 1))}
        if prior not in words:
            raise DataError(f"prior {prior!r} is not known. Use a number, 'flat', 'jeffreys', 'bdeu', 'row' or 'auto'.")
        return words[prior]
    if isinstance(prior, bool) or not isinstance(prior, (int, float, np.integer, np.floating)):
        raise DataError(f"a {family.name} column cannot take {prior!r} as its prior.")
    if not np.isfinite(prior) or prior < 0:
        raise DataError(f"a prior is a number of prior counts, 0 or more, not {prior}.")
    return float(prior)


def format_number(value: float, digits: int, spread: float = 0.0) -> str:
    """Format a number with a few digits; as 0 if it is negligible compared with a spread.

    >>> format_number(21387.6, 4), format_number(0.2461, 3), format_number(1.597e-133, 4, spread=6.21)
    ('21,388', '0.246', '0')
    """
    if abs(value) < NOTHING * spread:
        return "0"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.{digits}g}"


def write_number(setting: Setting, value: float, plain: str = "", spread: float = 0.0) -> str:
    """Format a number of a column like its cells. If cells are plain numbers, use `plain`, or four digits."""
    if is_plain(setting.written):
        return plain or format_number(value, 4, spread)
    return str(write_cell(setting.written, float(value)))


def write_spread(setting: Setting, value: float) -> str:
    """Format the spread of a column with a few digits, in the units of its cells."""
    written = setting.written
    return format_number(value, 3) if written is None or is_plain(written) else written.write_difference(float(value))


def check_counts(column: np.ndarray, key: Key, start: int) -> None:
    """Raise an error, naming column and row, for a value that is not 0, 1, 2, ..."""
    bad = (column < 0) | (column != np.floor(column)) & ~np.isnan(column)
    if bad.any():
        row = where_first(bad, start)
        raise DataError(
            f"column {key!r} is a count, but row {row} holds {column[row - start - 1]:g}. Counts are 0, 1, 2, ...\n"
            f"  Declare it real: {remedies.kind(key, 'normal')}     or leave it out: {remedies.kind(key, 'ignore')}"
        )


def where_first(bad: np.ndarray, start: int) -> int:
    """Return the 1-based row number of the first true entry."""
    return start + int(np.argmax(bad if bad.ndim == 1 else bad.any(axis=1))) + 1
