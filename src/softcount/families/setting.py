"""Shared vocabulary of the families: types of their arrays, settings, and parameters given by a user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.table.cell_forms import CellForm
from softcount.table.schema import Key, Kind
from softcount.text.words import Reading

if TYPE_CHECKING:
    from softcount.families.base import Family

How = Literal["ml", "map", "mean", "predictive"]
Line = Literal["plain", "log", "share", "shares", "covariance"]
Labels = Sequence[np.ndarray]
"""Groups of rows, in parts; below 0 if unknown."""
Params = dict[str, np.ndarray]
Hyper = dict[str, np.ndarray]
HOWS: tuple[How, ...] = ("ml", "map", "mean", "predictive")

IMPOSSIBLE = -1e199
"""A log-density below this stands for probability zero, because products must stay finite."""
SMALLEST = 1e-300
SLACK = 1e-6
"""Relative tolerance within which a spread counts as being at its floor: steps may leave it by rounding."""


class Setting(Struct, frozen=True):
    """The columns that a family models: number of groups, categories, units.

    A number x is counted as `(x - anchor) * scale`, so `anchor` and `scale` convert parameters into the user's units.
    `blank` replaces missing cells while nothing is known about their group: the means and variances of the columns, or
    the result of `Family.blank`. `floor` is the smallest variance of a group as a share of the column's variance;
    `rounded` tells whether the rounding of the numbers sets it. `written` is the format of the cells of a single
    column. For numbers counted at points, `levels` are the points and `step` is that of their grid, or 0.
    """

    keys: tuple[Key, ...] = ()
    groups: int = 1
    levels: Sequence[object] = ()
    anchor: np.ndarray = field(default_factory=lambda: np.zeros(1))
    scale: np.ndarray = field(default_factory=lambda: np.ones(1))
    floor: float | np.ndarray = 1e-12
    rounded: bool = False
    blank: Any = None
    written: CellForm | None = None
    step: float = 0.0

    @property
    def key(self) -> Key:
        """The column, or the tuple of columns."""
        return self.keys if len(self.keys) > 1 else self.keys[0]

    def levels_of_column(self, want: int) -> list[object]:
        """Return the categories of one column of a block, whose categories are their combinations in order."""
        combinations: Sequence[Any] = self.levels
        step = 1  # combinations between two categories of the column
        for place in reversed(range(len(combinations[0]))):
            found = [combinations[0][place]]
            while step * len(found) < len(combinations) and combinations[step * len(found)][place] != found[0]:
                found.append(combinations[step * len(found)][place])
            if place == want:
                return found
            step *= len(found)
        raise IndexError(want)

    def in_deviations(self, hyper: Hyper) -> Setting:
        """Return the setting in which the deviations of the columns in the whole table are the units of counting.

        A family without a floor has no deviation, and keeps its units.
        """
        if "floor" not in hyper or "whole" not in hyper:
            return self
        whole = np.asarray(hyper["whole"])
        return replace(self, scale=self.scale / np.sqrt(np.where(whole > 0, whole, 1.0)))

    def resolution(self, mean: np.ndarray, least: float) -> np.ndarray:
        """Return the smallest width of a column without spread: the resolution of its numbers."""
        finest = np.finfo(float).eps * np.maximum(np.abs(mean), np.abs(self.anchor * self.scale))
        return np.asarray(np.maximum(finest, least))


class Facts(Struct, frozen=True):
    """Properties and requirements of a family."""

    kind: Kind = Kind.REAL
    """Type of its values."""
    chart: Mapping[str, Line] = {}
    """Parameters that EM changes, each with the scale on which linear steps make sense.

    The scale is plain, logarithm, share, shares that sum to one along the last axis, or covariance. Every M-step
    recomputes all other parameters.
    """
    title: str = ""
    """Name in reports, if it is not the name of the family."""
    n_features: int = 0
    """Number of features; 0 if there is one for every category."""
    block: bool = False
    """Whether it models several columns together."""
    as_block: str = ""
    """Name of the family that models a tuple of such columns."""
    n_columns: int = 0
    """Number of columns of a block; 0 allows any number."""
    reading: Reading | None = None
    """How documents are read."""
    suffix: Mapping[str, str] = {}
    """Settings that may follow the name of the family and a colon, each with an example."""
    choices: tuple[str, tuple[Any, ...]] = ("", ())
    """A setting that the rows choose if it is None, and its values to try."""
    stack: str = "features"
    """Kind of stack that scores and counts it: "reals", "codes", "joint", "block", "bag" or "features"."""
    exact: bool = True
    """Whether its counts never depend on the previous parameters, whatever is missing."""
    mergeable: bool = True
    """Whether the counts of two fits add up to those of both tables."""
    has_products: bool = True
    """Whether counting is memberships times features; otherwise the family implements `count` and `score`."""
    rows: int | slice | None = None
    """Which statistics are the rows that have a value; None if they do not show it."""
    needs_levels: bool = False
    """Whether all categories must be known before rows are counted."""
    counts_points: bool = False
    """Whether rows are counted at the distinct numbers of the column, which must be known before."""
    side_by_side: bool = True
    """Whether similar columns are estimated together; otherwise one by one, although scored together."""
    two_levels: bool = False
    """Whether a column of one category has an opposite one."""
    alone: bool = False
    """Whether its statistics are estimated separately, not together with those of similar columns."""
    signed: bool = False
    """Whether statistics other than the first (the rows) may be negative."""
    number_parents: tuple[Key, ...] = ()
    """Numeric columns that it depends on."""
    known: frozenset[str] = frozenset()
    """Parameters with a known value."""
    shared_by_groups: frozenset[str] = frozenset()
    """Parameters that all groups have in common."""
    shared_by_columns: bool = False
    """Whether columns with equal instances of the family share their spread."""
    raced: bool = False
    """Whether features times natural parameters compare initialisations, although scores are no products."""
    takes_bag: bool = False
    """Whether it models a whole sparse table of counts."""
    counted: bool = False
    """Whether a row holds counts that are scored one by one; the number of their orders is then not in the surprise."""
    heavy_prior: bool = False
    """Whether prior counts of many categories may exceed those of a few labelled rows."""
    words: bool = False
    """Whether a cell holds words, or transitions of a sequence."""
    linear: bool = False
    """Whether its log-densities are linear in the features of `linear_of`."""
    in_units: bool = False
    """Whether its linear form has one numeric feature with a unit, in addition to presence."""
    hidden: str = ""
    """What is hidden in every row and completed in expectation, as in "whose rows have hidden weights"."""
    has_density: bool = True
    """Whether its scores are log-densities; otherwise they only discriminate known classes."""
    needs_classes: bool = False
    """Whether it learns from labelled rows only, and not from expected counts."""
    joins_numbers: bool = False
    """Whether it can depend linearly on other numeric columns of a network, and they on it."""
    spread: str = ""
    """Parameter that is limited, so that no density grows without bound (`floors`)."""
    isotropic: bool = False
    """Whether all columns of a block have one variance."""
    spike: float | None = None
    """A value that is modelled apart from the other numbers."""
    logged: bool = False
    """Whether the numbers beside a spike are counted as logarithms."""
    bounds: Mapping[str, tuple[float, float]] = {}
    """Parameters that lie between two numbers."""

    @property
    def reads(self) -> Kind | Reading:
        """Kind as which its columns are read; for text, how documents are read."""
        return self.reading or self.kind

    @property
    def races(self) -> bool:
        """Whether features times natural parameters are precise enough to compare initialisations."""
        return self.has_products or self.raced


def average_prior(hyper: Hyper) -> Hyper:
    """Return the prior of a single class: if every class has its own prior counts, their average."""
    alpha = hyper.get("alpha", np.zeros(0))
    return hyper | {"alpha": alpha.mean(axis=0)} if alpha.ndim > 1 else hyper


def initial_params(family: Family, values: Mapping[Any, Any], setting: Setting, groups: int) -> Params:
    """Return private initial parameters, given by a user in the shape of `params_`.

    Words have a probability each, in the order of the vocabulary; the lengths of documents stay open.
    """
    key = setting.key
    if family.facts.kind.coded:
        return {"probability": given_shares(values, setting, groups), "unseen": np.zeros(groups)}
    words = family.facts.words and family._inner_shape("probability", setting) == (len(setting.levels),)
    if words:
        values = {"probability": values.get("probability", [])}
    if family.facts.counts_points:
        raise DataError(f"init: column {key!r} is {family.name}, whose shape cannot be given to start from.")
    try:
        params = family.private({name: np.asarray(value, float) for name, value in values.items()}, setting)
        wrong = family.density(params, setting).find_fault()
    except KeyError as absent:
        raise DataError(f"init: column {key!r} is {family.name} and needs {absent} of each group.") from None
    for name, value in params.items():
        if value.shape[:1] != (groups,) or not np.isfinite(value).all():
            raise DataError(f"init: column {key!r} needs {name} of each of {groups} groups, as finite numbers.")
    if wrong:
        raise DataError(f"init: column {key!r} makes no sense: {wrong}.")
    if words and params["probability"].shape != (groups, len(setting.levels)):
        many = f"{len(setting.levels):,}"
        raise DataError(f"init: column {key!r} needs a probability of each of its {many} words in each group.")
    return params


def given_shares(values: Mapping[Any, Any], setting: Setting, groups: int) -> np.ndarray:
    """Return the initial (groups x categories) shares, given as a table or by category."""
    if "probability" in values and "probability" not in setting.levels:
        table = np.asarray(values["probability"], dtype=float)
    else:
        shares = [np.asarray(share, dtype=float) for share in _in_order(values, setting)]
        table = np.stack([np.broadcast_to(share, (groups,)) for share in shares], axis=1)
    shaped = table.shape == (groups, len(setting.levels))
    if not shaped or not (table >= 0).all() or (table.size and np.abs(table.sum(axis=1) - 1).max() > 1e-6):
        key = setting.key
        raise DataError(f"init: the probabilities of column {key!r} must sum to one in each of {groups} groups.")
    return table


def held_numbers(family: Family, values: Any, setting: Setting, groups: int) -> Params:
    """Return private parameters to hold fixed, given by a user.

    A value for one group, or one number, applies to all groups.
    """
    key, names = setting.key, " and ".join(family.facts.chart)
    if family.facts.counts_points:
        raise DataError(f"fixed: column {key!r} is {family.name}, whose shape cannot be fixed.")
    if not isinstance(values, Mapping):
        raise DataError(f"fixed: column {key!r} takes a mapping with some of {names}, not {values!r}.")
    if family.facts.kind.coded and "probability" not in values:
        values = {"probability": _by_level(family, values, setting)}
    wrong = [name for name in values if name not in family.facts.chart]
    if wrong:
        raise DataError(f"fixed: column {key!r} is {family.name} and has {names}, not {wrong[0]!r}.")
    given = {name: _for_groups(family, name, value, setting, groups) for name, value in values.items()}
    others = {}  # placeholders in range for the parameters that are not fixed
    for name, line in family.facts.chart.items():
        if name not in given:
            inner = family._inner_shape(name, setting)
            value = np.eye(inner[0]) if line == "covariance" else {"plain": 0.0, "share": 0.5}.get(line, 1.0)
            others[name] = np.broadcast_to(value, (groups, *inner)) / (inner[0] if line == "shares" else 1)
    private = family.private(given | others, setting)
    senseless = family.density(private, setting).find_fault()
    if senseless:
        raise DataError(f"fixed: column {key!r} makes no sense: {senseless}.")
    return {name: np.ascontiguousarray(private[name]) for name in given}


def _in_order(values: Mapping[Any, Any], setting: Setting) -> list[Any]:
    """Return values given by category, or by its text, in the order of the categories; 0 if one is left out."""
    by_text = {str(level): value for level, value in values.items()}
    return [values.get(level, by_text.get(str(level), 0.0)) for level in setting.levels]


def _by_level(family: Family, values: Mapping[Any, Any], setting: Setting) -> np.ndarray:
    """Return probabilities given by category as a table of groups by categories."""
    key = setting.key
    known = {str(level) for level in setting.levels}
    odd = [level for level in values if str(level) not in known]
    if odd:
        raise DataError(f"fixed: column {key!r} has no category {odd[0]!r}. It has: {sorted(known)[:8]}.")
    shares = [fixed_numbers(share, key) for share in _in_order(values, setting)]
    try:
        return np.stack(np.broadcast_arrays(*shares), axis=-1)
    except ValueError:
        raise DataError(f"fixed: the levels of column {key!r} must have one share for each group.") from None


def _for_groups(family: Family, name: str, values: Any, setting: Setting, groups: int) -> np.ndarray:
    """Return a parameter for every group, given one for each group or one for all."""
    key = setting.key
    value, inner = fixed_numbers(values, key), family._inner_shape(name, setting)
    if family.facts.chart[name] == "covariance" and not value.ndim:
        value = value * np.eye(inner[0])
    if value.shape not in (inner, (groups, *inner)):
        either = f"{(groups, *inner)}, or {inner} for all groups alike" if inner else f"{(groups,)}, or one number"
        raise DataError(f"fixed: the {name} of column {key!r} must have the shape {either}, not {value.shape}.")
    return np.broadcast_to(value, (groups, *inner)).copy()


def fixed_numbers(values: Any, where: Any) -> np.ndarray:
    """Convert values to finite numbers to hold fixed."""
    try:
        value = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"fixed: {where!r} takes numbers, not {values!r}.") from None
    if not np.isfinite(value).all():
        raise DataError(f"fixed: {where!r} takes finite numbers, not {values!r}.")
    return value
