"""The optional members of families, and the facts about a column that decide which families are tried."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.special import least_share
from softcount.core.twofold import Twofold
from softcount.errors import DataError
from softcount.families.setting import How, Hyper, Line, Params, Setting
from softcount.table.schema import Field, Key, Kind
from softcount.text.words import Reading

if TYPE_CHECKING:
    from softcount.families.base import Family

LARGE_SHARE = 0.1
"""The share of rows from which on one value is a spike. Among numbers of 0 or more, zero always is."""
FEW_ROWS = 50
"""Rows of the smallest class below which no family of many parameters is tried."""


class NumberFacts(Struct, frozen=True):
    """The `least` of its numbers, whether all are `whole`, how many `rows` the smallest class has, how finely they are
    written (`rounding`), how many deviations their mean is `above_zero`, and the value that is a `spike`, or None."""

    least: float
    whole: bool
    rows: float
    rounding: float
    above_zero: float
    spike: float | None

    @property
    def countable(self) -> bool:
        """Whether they may be counts: 0, 1, 2, ..."""
        return self.whole and self.least >= 0


def facts_of_numbers(values: np.ndarray, weights: np.ndarray, rows: float) -> NumberFacts:
    """The facts of finite numbers with these weights; `rows` is the size of the smallest class."""
    distinct, which = np.unique(values, return_inverse=True)
    shares = np.bincount(which, weights) / weights.sum()
    most, least = int(shares.argmax()), float(distinct[0])
    zeros = least == 0 and len(distinct) > 1
    large = len(distinct) > 2 and shares[most] >= LARGE_SHARE
    spike = 0.0 if zeros else float(distinct[most]) if large else None
    with np.errstate(over="ignore"):
        mean = np.average(values, weights=weights)
        spread = float(np.average((values - mean) ** 2, weights=weights))
    above = float(mean / np.sqrt(spread)) if 0 < spread < np.inf else 0.0
    rounding = float(np.sqrt(12.0 * least_share(values, weights).share * spread))
    rounding = rounding if 0 < rounding < np.inf else 1.0  # of one value, or of squares beyond any number
    return NumberFacts(least, bool(np.all(distinct == np.floor(distinct))), rows, rounding, above, spike)


Labels = Sequence[np.ndarray]


class Capabilities:
    """Everything optional: setting up, learning, statistics in other terms."""

    name: ClassVar[str] = ""
    kind: ClassVar[Kind] = Kind.REAL
    block: ClassVar[bool] = False
    """Whether it models several columns together."""
    chart: ClassVar[Mapping[str, Line]] = {}
    stack: ClassVar[str] = "features"
    """Which kind of stack scores and counts it: "reals", "codes", "joint", "block", "bag", "points" or "features"."""
    exact: ClassVar[bool] = True
    """Whether its counts do not depend on the parameters before, whatever is missing."""
    mergeable: ClassVar[bool] = True
    """Whether the counts of two fits add up to those of both tables."""
    has_products: ClassVar[bool] = True
    """Whether counting is memberships times features; otherwise the family implements `count` and `score`."""
    rows_first: ClassVar[bool] = False
    """Whether the first statistic is the number of rows that have a value."""
    needs_levels: ClassVar[bool] = False
    """Whether all levels must be known before rows are counted."""
    counts_points: ClassVar[bool] = False
    """Whether rows are counted at the different numbers of the column, which must be known before."""
    side_by_side: ClassVar[bool] = True
    """Whether like columns are estimated together; otherwise one by one, although scored with the others."""
    two_levels: ClassVar[bool] = False
    """Whether a column of one level has an opposite one."""
    takes_bag: ClassVar[bool] = False
    """Whether it models a whole sparse table of counts."""
    spread_parameters: ClassVar[tuple[str, ...]] = ()
    """The parameters that a floor holds."""
    setting_type: ClassVar[type[Setting]] = Setting
    """The class of its settings: a subclass of `Setting` if it needs more information."""

    @property
    def _core(self) -> Family:
        """The family itself, typed: this class is only a base of it."""
        return cast("Family", self)

    # -- setting up

    @property
    def discrete(self) -> bool:
        """Whether its values are levels."""
        return self.kind is Kind.CATEGORICAL

    @property
    def logged(self) -> bool:
        """Whether spread is measured on logarithms."""
        return self.kind is Kind.POSITIVE

    @property
    def signed(self) -> bool:
        """Whether statistics other than the first, the rows, may be below zero."""
        return self.kind in (Kind.REAL, Kind.POSITIVE)

    @property
    def alone(self) -> bool:
        """Whether its statistics are estimated alone, not side by side with those of like columns."""
        return self.block or self.kind is Kind.TEXT

    @property
    def reads(self) -> Kind | Reading:
        """The kind that its columns are read as, or for text how documents are read."""
        return self.kind

    @classmethod
    def of_field(cls, field: Field) -> Self:
        """The default family of a column of its kind."""
        return cls()

    @classmethod
    def candidates(cls, facts: NumberFacts) -> Sequence[Family]:
        """The settings of this family worth trying for a column of numbers with these facts.

        Empty if it does not fit.
        """
        return ()

    @property
    def choices(self) -> Sequence[Family]:
        """The families that rows choose from; empty if nothing is left to choose."""
        return ()

    def stack_key(self) -> tuple[Any, ...]:
        """Columns with equal keys are estimated together."""
        return (type(self).__name__, self)

    def for_key(self, key: Key) -> Family:
        """The family for a key: a column, or a tuple of columns."""
        if isinstance(key, tuple) and not key:
            raise DataError(f"kinds names a block of no columns as {self.name}. Give a tuple of names.")
        if self.block and not isinstance(key, tuple):
            raise DataError(f"{self.name} is for a block of columns; give a tuple of names instead of {key!r}.")
        if isinstance(key, tuple) and not self.block:
            raise DataError(f"{self.name} is for a single column, but {key!r} names {len(key)} of them.")
        return self._core

    def node_key(self, setting: Setting) -> Key:
        """The key of its node: a column, or a tuple of columns."""
        return setting.keys if self.block else setting.keys[0]

    @property
    def joins_numbers(self) -> bool:
        """Whether numbers can follow it along a straight line, and it them."""
        return False

    @property
    def number_parents(self) -> tuple[Key, ...]:
        """The numbers that it follows."""
        return ()

    def as_named(self, params: Params, was: Family) -> Params:
        """Public parameters of the same family with its numeric parents in another order."""
        return params

    def regression(self, params: Params) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Intercepts, (groups x number parents) coefficients and variances around the line, in counting units."""
        raise NotImplementedError

    def set_up(self, key: Key, fields: Sequence[Field], groups: int, floor: float) -> tuple[Family, Setting]:
        """The family and its setting for these columns of a schema. Raises an error if they do not fit."""
        for spec in fields:
            if spec.kind is Kind.TEXT and self.kind is not Kind.TEXT:
                raise DataError(f"column {spec.key!r} is text, which {self.name} cannot model. Declare it text.")
        anchor = np.array([spec.anchor for spec in fields])
        scale = np.array([spec.scale for spec in fields])
        keys = tuple(spec.key for spec in fields)
        levels = fields[0].levels if self.discrete else keys
        written = fields[0].written if len(fields) == 1 else None
        return self._core, self.setting_type(keys, groups, levels, anchor, scale, floor, written=written)

    def set_up_bag(self, key: Key, width: int, groups: int, floor: float) -> tuple[Family, Setting]:
        """The family and its setting for a whole sparse table of `width` columns.

        Raises an error unless it takes one.
        """
        if not self.takes_bag:
            raise DataError(
                f"a sparse table is one block of counts, which is multinomial, not {self.name}. "
                "Give the rows as a dense array or a frame."
            )
        return self._core, self.setting_type((key,), groups, tuple(range(width)), floor=floor)

    def in_one_unit(self, settings: Sequence[Setting]) -> list[Setting]:
        """Settings of columns with equal instances, in one unit if they share a parameter."""
        if not self.shared_by_columns:
            return list(settings)
        scale = np.array([min(setting.scale[0] for setting in settings)])
        return [replace(setting, scale=scale) for setting in settings]

    def transform(self, values: np.ndarray) -> np.ndarray:
        """The numbers that are counted: the values or their logarithms."""
        return values

    # -- counting

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        """(groups x width) statistics of rows by their memberships; expected ones under the parameters before."""
        return Twofold.of(memberships.T @ self._core.features(column, setting))

    def count_labels(
        self, column: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, groups: int, setting: Setting
    ) -> Twofold:
        """For a stack of points: (groups x width) statistics of rows of known class; the others are passed over."""
        raise NotImplementedError

    def hidden(self, key: Key, holes: bool) -> str:
        """A description of what one pass over labelled rows cannot count, or an empty string."""
        return ""

    def blank(
        self, columns: Sequence[np.ndarray], weights: Sequence[np.ndarray], setting: Setting, labels: Labels = ()
    ) -> Any:
        """The initial guess for groups without information (`Setting.blank`); None if counting needs none.

        `labels` are the groups of rows, below 0 if unknown, in parts like the columns; empty if no labels are known.
        """
        return None

    def observed(self, stats: np.ndarray) -> float | None:
        """The weight of the rows that had a value; None if the statistics do not tell."""
        return float(stats[..., 0].sum()) if self.rows_first else None

    def imagined_stats(self, hyper: Hyper, how: How) -> np.ndarray | None:
        """Prior statistics, as far as they are in the objective; None if the prior is more than prior rows."""
        return None

    def mean_features(self, params: Params) -> np.ndarray | None:
        """(groups x width) expected features of a row, from public parameters; None if unknown."""
        return None

    @property
    def races(self) -> bool:
        """Whether features times `raced` parameters are the score, precisely enough to compare initialisations."""
        return self.has_products

    def raced(self, params: Params, setting: Setting) -> np.ndarray:
        """Natural parameters of every group, with many sets of parameters side by side."""
        return self._core.natural(self._core.public(params, setting))

    def is_product(self, params: Params) -> bool:
        """Whether a row's score under these parameters is features times natural parameters.

        Not so in a predictive form, which has more parameters than the chart.
        """
        return self.has_products and set(params) <= set(self.chart)

    def scorable(self, params: Params, setting: Setting) -> Params:
        """Parameters in the form of `score`, made once per pass.

        The public ones, and those too small for the user's units.
        """
        return self._core.public(params, setting)

    def centred_form(self, params: Params, anchor: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """For a stack of reals: means, inverse deviations and constants in the user's units; None if not normal."""
        raise NotImplementedError

    def block_form(self, params: Params) -> Any:
        """For a stack of one correlated block: means, covariances, and the parameters of Student's t or None."""
        raise NotImplementedError

    def table(self, params: Params) -> np.ndarray:
        """For a stack of codes: log-probabilities by code, 0 being missing and the last a level never seen."""
        raise NotImplementedError

    def combine(self, codes: np.ndarray) -> np.ndarray:
        """For a stack of one joint table: a code for each row's combination of codes."""
        raise NotImplementedError

    def lacking(self, params: Params) -> np.ndarray | None:
        """Weights that count the words that a document must hold but does not; None if no word is certain."""
        return None

    # -- learning

    @property
    def shared_by_groups(self) -> frozenset[str]:
        """The parameters that all groups have in common."""
        return frozenset()

    @property
    def shared_by_columns(self) -> bool:
        """Whether columns that hold equal instances share a parameter."""
        return False

    @property
    def has_density(self) -> bool:
        """Whether its scores are log-densities; otherwise they only discriminate known classes."""
        return True

    @property
    def needs_classes(self) -> bool:
        """Whether it learns from labelled rows only, and not from expected counts."""
        return False

    def decided(self, hyper: Hyper, setting: Setting) -> str | None:
        """A description of what the counts decided about the column, or None."""
        return None

    @property
    def equal_classes(self) -> bool:
        """Whether classes are equally likely a priori if the model has only such columns.

        The frequency of a class is already in the words of the others if their complements are scored.
        """
        return not self.has_density

    def free_under(self, hyper: Hyper, setting: Setting, groups: int, columns: int = 1) -> int:
        """As `free`, after decisions made by the counts; `hyper` may be empty."""
        return self._core.free(setting, groups, columns)

    def held(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params) -> Params:
        """The estimate with some parameters fixed; the others are estimated as if these were certain."""
        free = self._core.estimate(stats, hyper, how)
        return {name: free[name] for name in free if name in self.chart or name == "unseen"} | fixed

    def held_free(self, names: Collection[str], setting: Setting, groups: int, columns: int = 1) -> int:
        """The number of free parameters that are fixed, for this many like columns."""
        whole = set(self.chart) <= set(names)
        return self._core.free(setting, groups, columns) if whole else groups * len(names) * columns

    def within(self, params: Params, hyper: Hyper) -> Params:
        """The nearest parameters that an estimate may be: floors are kept."""
        return params

    def deviation(self, params: Params) -> np.ndarray | float:
        """The unit of a plain parameter in every group."""
        return 1.0

    def log_spread(self, stats: Twofold, hyper: Hyper) -> float:
        """The part of the log-likelihood due to the columns' deviations, in counting units."""
        return 0.0

    def degenerate(self, params: Params, hyper: Hyper) -> np.ndarray:
        """Which groups are at a floor of their spread, even if the whole table is."""
        return np.zeros(len(next(iter(params.values()))), dtype=bool)

    def at_floor(self, params: Params, hyper: Hyper, stats: Twofold) -> np.ndarray:
        """Which groups a floor holds, though the column as a whole is not at it."""
        held = self.degenerate(params, hyper)
        if not held.any():
            return held
        return np.asarray(held & ~self.degenerate(self._core.estimate(stats.sum(0).spread(0), hyper, "ml"), hyper))

    def rows_needed(self, setting: Setting) -> float:
        """Rows that a group's spread cannot do without."""
        return 2.0 if self.spread_parameters else 0.0

    def swamped(self, stats: Twofold, hyper: Hyper, setting: Setting) -> str | None:
        """A note if the prior counts exceed those of the labelled rows, or None."""
        return None

    def nudged(self, params: Params, which: np.ndarray, rng: np.random.Generator) -> Params:
        """The same parameters with some groups perturbed: means by a tenth of a deviation, shares and rates by a tenth.

        Spreads around a mean stay unchanged.
        """
        moved, places = dict(params), "plain" in self.chart.values()
        for name, line in reversed(list(self.chart.items())):
            old = params[name]
            if line == "plain":
                new = old + 0.1 * self.deviation(params) * rng.standard_normal(old.shape)
            elif line in ("share", "shares"):
                shares = old * np.exp(0.1 * rng.standard_normal(old.shape))
                kept = old.sum(axis=-1, keepdims=True) / np.maximum(shares.sum(axis=-1, keepdims=True), 1e-300)
                new = np.minimum(shares * kept, 1.0)
            elif line == "log" and not places:
                new = old * np.exp(0.1 * rng.standard_normal(old.shape))
            else:
                continue
            moved[name] = np.where(which.reshape(-1, *[1] * (old.ndim - 1)), new, old)
        return moved

    def spread_around(self, hypers: list[Hyper], setting: Setting, groups: int, fixed: Params) -> Params:
        """The public spread to start from around given means; `hypers` are of the columns that share it."""
        return {}

    def proper(self, hyper: Hyper) -> Hyper:
        """The same prior made proper, as comparing numbers of groups requires."""
        return hyper

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        """The part of the log-likelihood due to the column's unit; 0 without a unit."""
        return 0.0

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Any:
        """The posterior itself, as a conjugate object that holds every group."""
        key = self.node_key(setting)
        raise DataError(f"column {key!r} is {self.name}, which has no conjugate prior: it has no posterior.")

    def public(self, params: Params, setting: Setting) -> Params:
        """The parameters in the user's units."""
        return params

    def private(self, params: Params, setting: Setting) -> Params:
        """Back from the user's units."""
        return params

    def inner_shape(self, name: str, setting: Setting) -> tuple[int, ...] | None:
        """The shape of one group's parameter; None if it follows from the chart."""
        return None

    # -- statistics of one table in another's terms

    def moved(self, stats: Twofold, was: Family, old: Setting, new: Setting) -> Twofold:
        """Statistics counted in another setting, converted to this one. Raises an error for those of another family."""
        if type(was) is not type(self):
            raise DataError(
                f"column {was.node_key(old)!r} is {was.name} in one model and {self.name} in the other. "
                "Declare it the same in both with kinds."
            )
        return self._rebase(stats, was, old, new)

    def _rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        return stats

    def united(self, setting: Setting, fields: Sequence[Field], groups: int) -> tuple[Family, Setting]:
        """The family and its setting with the levels of a merged schema and this many groups."""
        kept = self.discrete or self.kind is Kind.TEXT
        levels = fields[0].levels if kept else setting.levels
        return self._core, replace(setting, groups=groups, levels=levels, blank=None)

    def overdrawn(self, before: Twofold, after: Twofold, slack: float) -> bool:
        """Whether more was taken out of the statistics than was in them."""
        return bool((after.value < -slack * np.maximum(before.value, 1.0)).any())
