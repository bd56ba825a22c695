"""Parameters, memberships and labels that the user gives, to start from or to be left alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.counts import ROOT
from softcount.errors import DataError
from softcount.families import FAMILIES
from softcount.families import Params as Own
from softcount.families.written import fixed_numbers
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined, Node, Params


def holding(model: ClassModel, imagined: Imagined, fixed: Mapping[Any, Any] | None) -> Imagined:
    """The same priors with some parameters fixed.

    `fixed` has "weights" for the groups' shares, and under the name of a column some of its parameters by name. What is
    given for one group, or as one number, is for all groups.
    """
    if not fixed:
        return imagined
    if not isinstance(fixed, Mapping):
        raise DataError(f"fixed is a mapping of 'weights' and columns to what they are fixed at, not {fixed!r}.")
    leaves = {leaf.key: leaf for leaf in model.leaves}
    name = shares_name(fixed)
    unknown = [key for key in fixed if key != name and key not in leaves]
    if unknown:
        names = ", ".join(repr(key) for key in leaves)
        raise DataError(f"fixed names {unknown[0]!r}, which is not a column of the model. It has: {names}.")
    said = {key: what for key, what in fixed.items() if key != name}
    held = {key: leaves[key].family.held_at(what, leaves[key].setting, model.groups) for key, what in said.items()}
    _refuse_half_ties(model, held)
    if name in fixed:
        held[ROOT] = {"probability": _fixed_shares(fixed[name], model.groups)[None]}
    return replace(imagined, fixed={**imagined.fixed, **{key: part for key, part in held.items() if part}})


def shares_name(given: Mapping[Any, Any]) -> Any:
    """Under which name parameters by column hold the shares: "weights" or, where that is a column's, "(weights)"."""
    name = "weights"
    while isinstance(given.get(name), Mapping):
        name = f"({name})"
    return ROOT if ROOT in given else name


def _fixed_shares(said: Any, groups: int) -> np.ndarray:
    shares = fixed_numbers(said, "weights")
    if shares.shape != (groups,) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-6:
        raise DataError(f"fixed: 'weights' must be {groups} shares that sum to one, not {said!r}.")
    return np.asarray(shares / shares.sum())


def _refuse_half_ties(model: ClassModel, held: Mapping[Any, Own]) -> None:
    """Columns that share a parameter are estimated together, so the same must be fixed in all of them."""
    for leaf in model.leaves:
        for other in _sharing(model, leaf):
            if set(held.get(leaf.key, ())) != set(held.get(other.key, ())):
                raise DataError(
                    f"fixed: columns {leaf.key!r} and {other.key!r} share a variance, so fix the same in both."
                )


def _sharing(model: ClassModel, leaf: Node) -> list[Node]:
    """The columns that share a parameter with this one, itself among them."""
    return [x for x in model.leaves if x.family == leaf.family] if leaf.family.shared_by_columns else [leaf]


def given_params(model: ClassModel, given: Mapping[Any, Any]) -> Params:
    """Parameters as the user wrote them: in the shape of `params_`, levels by name or in order."""
    groups, name = model.groups, shares_name(given)
    try:
        shares = np.asarray(given.get(name, np.full(groups, 1 / groups)), dtype=float)
    except (TypeError, ValueError):
        shares = np.full(0, np.nan)
    if shares.shape != (groups,) or not abs(shares.sum() - 1) <= 1e-6 or (shares < 0).any():
        raise DataError(f"init: 'weights' must be {groups} shares that sum to one, not {given.get(name)!r}.")
    known = {leaf.key for leaf in model.leaves}
    for key in given:
        if key != name and key not in known:
            raise DataError(f"init names {key!r}, which is not a column of the model.")
    leaves: dict[Any, Own] = {}
    for leaf in model.leaves:
        if leaf.key not in given:
            raise DataError(
                f"init has no parameters for column {leaf.key!r}. Give every column, or leave it out of the table."
            )
        leaves[leaf.key] = leaf.family.given(dict(given[leaf.key]), leaf.setting, groups)
    return model.params(shares, leaves)


def around(given: Mapping[Any, Any]) -> Callable[[ClassModel, Imagined], Params]:
    """Makes parameters around given means and shares (`ROOT`): what `given` leaves out is held or the whole table's."""

    def make(model: ClassModel, imagined: Imagined) -> Params:
        said = {ROOT: given[ROOT]}
        for key in given:
            if key is not ROOT:
                leaf, fixed = model.nodes[key], imagined.fixed.get(key, {})
                hypers = [imagined.hypers[x.key] for x in _sharing(model, leaf)]
                said[key] = leaf.family.spread_around(hypers, leaf.setting, model.groups, fixed) | dict(given[key])
        return given_params(model, said)

    return make


def start_levels(init: Any) -> dict[Any, list[Any]]:
    """Levels that the user's starting parameters name."""
    if not isinstance(init, Mapping):
        return {}
    names = {name for family in FAMILIES.values() for name in family().chart}
    return {
        key: list(said)
        for key, said in init.items()
        if isinstance(said, Mapping) and not names & {str(x) for x in said}
    }


def checked_memberships(init: np.ndarray, ready: Sequence[Any], groups: int) -> np.ndarray:
    """Memberships as they were given, or those that a label for each row implies."""
    rows = sum(part.n_rows for part in ready)
    if init.ndim == 1:
        labels = _checked_labels(init, rows, groups)
        return np.where(labels[:, None] < 0, 1.0 / groups, np.eye(groups)[np.maximum(labels, 0)])
    if init.shape != (rows, groups):
        raise DataError(f"init: memberships must be {rows} rows x {groups} groups, not {init.shape}.")
    if not np.isfinite(init).all() or (init < 0).any() or np.abs(init.sum(axis=1) - 1).max() > 1e-6:
        raise DataError("init: memberships must be 0 or more and sum to one in every row.")
    return np.asarray(init, dtype=float)


def _checked_labels(init: np.ndarray, rows: int, groups: int) -> np.ndarray:
    if len(init) != rows:
        raise DataError(f"init: labels must be one for each of {rows} rows, not {len(init)}.")
    labels = np.where(np.isnan(init), -1, init)
    wrong = (labels != np.floor(labels)) | (labels < -1) | (labels >= groups)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"init: row {row + 1} is labelled {init[row]:g}. Labels to start from are 0 to {groups - 1}, "
            "and -1 or NaN where nothing is said."
        )
    return labels.astype(int)
