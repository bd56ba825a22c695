"""Parameters the user wants left alone: from the shape of `params_` to counting units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.families import Params
from softcount.models.nodes import Node
from softcount.models.star import Imagined, Star
from softcount.table.schema import Kind


def holding(star: Star, imagined: Imagined, fixed: Mapping[Any, Any] | None) -> Imagined:
    """The same priors with some parameters fixed.

    `fixed` has "weights" for the groups' shares, and under the name of a column some of its parameters by name. What is
    given for one group, or as one number, is for all groups.
    """
    if not fixed:
        return imagined
    if not isinstance(fixed, Mapping):
        raise DataError(f"fixed is a mapping of 'weights' and columns to what they are fixed at, not {fixed!r}.")
    leaves = {leaf.key: leaf for leaf in star.leaves}
    unknown = [key for key in fixed if key != "weights" and key not in leaves]
    if unknown:
        names = ", ".join(repr(key) for key in leaves)
        raise DataError(f"fixed names {unknown[0]!r}, which is not a column of the model. It has: {names}.")
    held = {key: _held(leaves[key], said, star.groups) for key, said in fixed.items() if key != "weights"}
    _refuse_half_ties(star, held)
    shares = _shares(fixed["weights"], star.groups) if "weights" in fixed else imagined.fixed_shares
    return replace(imagined, fixed_shares=shares, fixed={key: part for key, part in held.items() if part})


def _shares(said: Any, groups: int) -> np.ndarray:
    shares = _numbers(said, "weights")
    if shares.shape != (groups,) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-6:
        raise DataError(f"fixed: 'weights' must be {groups} shares that sum to one, not {said!r}.")
    return shares / shares.sum()


def _held(leaf: Node, said: Any, groups: int) -> Params:
    """One column's fixed parameters, groups first, in counting units."""
    if not isinstance(said, Mapping):
        names = " and ".join(leaf.family.chart)
        raise DataError(f"fixed: column {leaf.key!r} takes a mapping with some of {names}, not {said!r}.")
    if leaf.family.discrete and "probability" not in said:
        said = {"probability": _by_level(leaf, said)}
    wrong = [name for name in said if name not in leaf.family.chart]
    if wrong:
        names = " and ".join(leaf.family.chart)
        raise DataError(f"fixed: column {leaf.key!r} is {leaf.family.name} and has {names}, not {wrong[0]!r}.")
    given = {name: _spread(leaf, name, value, groups) for name, value in said.items()}
    others = {name: _stand_in(leaf, name, groups) for name in leaf.family.chart if name not in given}
    private = leaf.family.private(given | others, leaf.setting)
    senseless = leaf.family.check_params(private)
    if senseless:
        raise DataError(f"fixed: column {leaf.key!r} makes no sense: {senseless}.")
    return {name: np.ascontiguousarray(private[name]) for name in given}


def _by_level(leaf: Node, said: Mapping[Any, Any]) -> np.ndarray:
    """Probabilities given level by level, as a table of groups by levels."""
    by_text = {str(level): share for level, share in said.items()}
    known = {str(level) for level in leaf.setting.levels}
    odd = [level for level in said if str(level) not in known]
    if odd:
        raise DataError(f"fixed: column {leaf.key!r} has no level {odd[0]!r}. It has: {sorted(known)[:8]}.")
    shares = [_numbers(by_text.get(str(level), 0.0), leaf.key) for level in leaf.setting.levels]
    try:
        return np.stack(np.broadcast_arrays(*shares), axis=-1)
    except ValueError:
        raise DataError(f"fixed: the levels of column {leaf.key!r} must have one share for each group.") from None


def _inner(leaf: Node, name: str) -> tuple[int, ...]:
    """The shape of one group's parameter."""
    line, d = leaf.family.chart[name], len(leaf.setting.anchor)
    if line == "covariance":
        return (d, d)
    if line == "shares" or leaf.family.kind is Kind.TEXT:
        return (len(leaf.setting.levels),)
    return (d,) if leaf.family.block and line == "plain" else ()


def _spread(leaf: Node, name: str, said: Any, groups: int) -> np.ndarray:
    """A parameter for every group, from one for each of them or one for all."""
    value, inner = _numbers(said, leaf.key), _inner(leaf, name)
    if leaf.family.chart[name] == "covariance" and not value.ndim:
        value = value * np.eye(inner[0])
    if value.shape not in (inner, (groups, *inner)):
        either = f"{(groups, *inner)}, or {inner} for all groups alike" if inner else f"{(groups,)}, or one number"
        raise DataError(f"fixed: the {name} of column {leaf.key!r} must have the shape {either}, not {value.shape}.")
    return np.broadcast_to(value, (groups, *inner)).copy()


def _stand_in(leaf: Node, name: str, groups: int) -> np.ndarray:
    """Something that makes sense in place of a parameter that is not fixed."""
    line, inner = leaf.family.chart[name], _inner(leaf, name)
    value = {"covariance": np.eye(inner[0]) if line == "covariance" else 0.0, "plain": 0.0, "share": 0.5}.get(line, 1.0)
    return np.broadcast_to(value, (groups, *inner)) / (inner[0] if line == "shares" else 1)


def _numbers(said: Any, where: Any) -> np.ndarray:
    try:
        value = np.asarray(said, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"fixed: {where!r} takes numbers, not {said!r}.") from None
    if not np.isfinite(value).all():
        raise DataError(f"fixed: {where!r} takes finite numbers, not {said!r}.")
    return value


def _refuse_half_ties(star: Star, held: Mapping[Any, Params]) -> None:
    """Columns that share a variance are estimated together, so the same must be fixed in all of them."""
    for leaf in star.leaves:
        if getattr(leaf.family, "tied", None) in ("columns", "both"):
            for other in (x for x in star.leaves if x.family == leaf.family):
                if set(held.get(leaf.key, ())) != set(held.get(other.key, ())):
                    raise DataError(
                        f"fixed: columns {leaf.key!r} and {other.key!r} share a variance, so fix the same in both."
                    )
