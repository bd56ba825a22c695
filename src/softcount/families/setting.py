"""Shared vocabulary of the families: names of their arrays, settings, and parameters as a user writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import Struct, field

from softcount.errors import DataError
from softcount.table.cell_forms import CellForm
from softcount.table.schema import Key, Kind

if TYPE_CHECKING:
    from softcount.families.base import Family

How = Literal["ml", "map", "mean", "predictive"]
Line = Literal["plain", "log", "share", "shares", "covariance"]
Params = dict[str, np.ndarray]
Hyper = dict[str, np.ndarray]
HOWS: tuple[How, ...] = ("ml", "map", "mean", "predictive")

IMPOSSIBLE = -1e199
"""A log-density below this stands for probability zero, because a product must stay finite."""
SMALLEST = 1e-300
SLACK = 1e-6
"""In proportion, by which a spread may be above its floor and still be at it: steps bring it back off by rounding."""


class Setting(Struct, frozen=True):
    """The columns that a family models: number of groups, levels, units.

    A number x is counted as `(x - anchor) * scale`, so `anchor` and `scale` convert parameters into the user's units.
    `blank` stands for missing cells while nothing is known about their group: the columns' means and variances, or the
    result of `Family.blank`. `floor` is the least variance of a group as a share of the column's; `rounded` tells that
    it is the rounding of the numbers. `written` is the format of the cells of a single column. A family that needs more
    has its own subclass (`Family.setting_type`).
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

    def resolution(self, mean: np.ndarray, least: float) -> np.ndarray:
        """The least width of a column without spread: the resolution of its numbers."""
        finest = np.finfo(float).eps * np.maximum(np.abs(mean), np.abs(self.anchor * self.scale))
        return np.asarray(np.maximum(finest, least))


def given_numbers(family: Family, said: Mapping[Any, Any], setting: Setting, groups: int) -> Params:
    """Private parameters to start from, as a user wrote them in the shape of `params_`."""
    key = family.node_key(setting)
    try:
        params = family.private({name: np.asarray(value, float) for name, value in said.items()}, setting)
        wrong = family.check_params(params)
    except KeyError as absent:
        raise DataError(f"init: column {key!r} is {family.name} and needs {absent} of each group.") from None
    for name, value in params.items():
        if value.shape[:1] != (groups,) or not np.isfinite(value).all():
            raise DataError(f"init: column {key!r} needs {name} of each of {groups} groups, as finite numbers.")
    if wrong:
        raise DataError(f"init: column {key!r} makes no sense: {wrong}.")
    return params


def given_shares(family: Family, said: Mapping[Any, Any], setting: Setting, groups: int) -> np.ndarray:
    """(groups x levels) shares to start from, given as a table or level by level."""
    if "probability" in said and "probability" not in setting.levels:
        table = np.asarray(said["probability"], dtype=float)
    else:
        by_text = {str(level): share for level, share in said.items()}
        shares = [said.get(level, by_text.get(str(level), 0.0)) for level in setting.levels]
        table = np.stack([np.broadcast_to(np.asarray(share, dtype=float), (groups,)) for share in shares], axis=1)
    shaped = table.shape == (groups, len(setting.levels))
    if not shaped or not (table >= 0).all() or (table.size and np.abs(table.sum(axis=1) - 1).max() > 1e-6):
        key = family.node_key(setting)
        raise DataError(f"init: the probabilities of column {key!r} must sum to one in each of {groups} groups.")
    return table


def held_numbers(family: Family, said: Any, setting: Setting, groups: int) -> Params:
    """Private parameters to hold fixed, as a user wrote them.

    A value for one group, or one number, is for all groups.
    """
    key, names = family.node_key(setting), " and ".join(family.chart)
    if not isinstance(said, Mapping):
        raise DataError(f"fixed: column {key!r} takes a mapping with some of {names}, not {said!r}.")
    if family.discrete and "probability" not in said:
        said = {"probability": _by_level(family, said, setting)}
    wrong = [name for name in said if name not in family.chart]
    if wrong:
        raise DataError(f"fixed: column {key!r} is {family.name} and has {names}, not {wrong[0]!r}.")
    given = {name: _for_groups(family, name, value, setting, groups) for name, value in said.items()}
    others = {}  # values in range in place of the parameters that are not fixed
    for name, line in family.chart.items():
        if name not in given:
            inner = inner_shape(family, name, setting)
            value = np.eye(inner[0]) if line == "covariance" else {"plain": 0.0, "share": 0.5}.get(line, 1.0)
            others[name] = np.broadcast_to(value, (groups, *inner)) / (inner[0] if line == "shares" else 1)
    private = family.private(given | others, setting)
    senseless = family.check_params(private)
    if senseless:
        raise DataError(f"fixed: column {key!r} makes no sense: {senseless}.")
    return {name: np.ascontiguousarray(private[name]) for name in given}


def _by_level(family: Family, said: Mapping[Any, Any], setting: Setting) -> np.ndarray:
    """Probabilities given level by level, as a table of groups by levels."""
    key = family.node_key(setting)
    by_text = {str(level): share for level, share in said.items()}
    known = {str(level) for level in setting.levels}
    odd = [level for level in said if str(level) not in known]
    if odd:
        raise DataError(f"fixed: column {key!r} has no level {odd[0]!r}. It has: {sorted(known)[:8]}.")
    shares = [fixed_numbers(by_text.get(str(level), 0.0), key) for level in setting.levels]
    try:
        return np.stack(np.broadcast_arrays(*shares), axis=-1)
    except ValueError:
        raise DataError(f"fixed: the levels of column {key!r} must have one share for each group.") from None


def inner_shape(family: Family, name: str, setting: Setting) -> tuple[int, ...]:
    """The shape of one group's parameter."""
    own = family.inner_shape(name, setting)
    if own is not None:
        return own
    line, d = family.chart[name], len(setting.anchor)
    if line == "covariance":
        return (d, d)
    if line == "shares" or family.kind is Kind.TEXT:
        return (len(setting.levels),)
    return (d,) if family.block and line == "plain" else ()


def _for_groups(family: Family, name: str, said: Any, setting: Setting, groups: int) -> np.ndarray:
    """A parameter for every group, from one for each of them or one for all."""
    key = family.node_key(setting)
    value, inner = fixed_numbers(said, key), inner_shape(family, name, setting)
    if family.chart[name] == "covariance" and not value.ndim:
        value = value * np.eye(inner[0])
    if value.shape not in (inner, (groups, *inner)):
        either = f"{(groups, *inner)}, or {inner} for all groups alike" if inner else f"{(groups,)}, or one number"
        raise DataError(f"fixed: the {name} of column {key!r} must have the shape {either}, not {value.shape}.")
    return np.broadcast_to(value, (groups, *inner)).copy()


def fixed_numbers(said: Any, where: Any) -> np.ndarray:
    """Finite numbers to hold fixed."""
    try:
        value = np.asarray(said, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"fixed: {where!r} takes numbers, not {said!r}.") from None
    if not np.isfinite(value).all():
        raise DataError(f"fixed: {where!r} takes finite numbers, not {said!r}.")
    return value
