"""Statistics of one table expressed in the schema of another: the step before `+` joins two fits."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.families import Joint, Multinormal, Normal
from softcount.families.joint import joint_of
from softcount.families.normal import shifted
from softcount.models.bags import Pending
from softcount.models.nodes import Node
from softcount.models.plates import Codes
from softcount.models.settle import Settling
from softcount.models.star import Star
from softcount.models.vocabularies import moved_words, with_united_words
from softcount.numerics.twofold import Twofold, concatenate
from softcount.table.schema import NARROW_LEVELS, Key, Kind, Schema

Fitted = Any

SLACK = 1e-9
"""Counts below zero by no more than this are rounding."""


@dataclass(frozen=True, slots=True)
class Older:
    """A prior made of an older model's counts, each worth `weight` of a row seen now.

    `prior` is what is imagined besides.
    """

    model: Any
    weight: float = 1.0
    prior: Any = 1.0

    def __post_init__(self) -> None:
        inner = getattr(self.model, "fitted_", self.model)
        object.__setattr__(self, "model", inner)
        if not np.isfinite(self.weight) or self.weight < 0:
            raise DataError(f"an older model's weight is a number of 0 or more, not {self.weight}.")


def reordered(counts: Counts, star: Star, settled: Settling) -> Counts:
    """Counts made while levels and classes were still being met, put in the settled order."""
    arrays = dict(counts.arrays)
    for plate in star.plates:
        if isinstance(plate, Codes):
            arrays[plate.names[0]] = _recoded(arrays[plate.names[0]], plate.leaves, settled)
    groups = len(settled.classes)
    order = settled.label_remap if settled.label_remap is not None else np.arange(groups)
    arrays = {name: regrouped(array, order, groups) for name, array in arrays.items()}
    return Counts(arrays, counts.rows, counts.log_likelihood, counts.notes)


def _recoded(array: Twofold, leaves: tuple[Node, ...], settled: Settling) -> Twofold:
    moves = [settled.remap.get(leaf.key, np.arange(array.shape[2])) for leaf in leaves]
    room = max([array.shape[2], *(int(move.max(initial=0)) + 1 for move in moves)])
    hi, lo = np.zeros((2, *array.shape[:2], room))
    for j, move in enumerate(moves):
        have = min(len(move), array.shape[2])
        hi[:, j, move[:have]] = array.hi[:, j, :have]
        lo[:, j, move[:have]] = array.lo[:, j, :have]
    return Twofold(hi, lo)


def regrouped(array: Twofold, order: np.ndarray, groups: int) -> Twofold:
    """Group g moved to `order[g]` among `groups`; a negative order drops it."""
    if len(order) == array.shape[0] == groups and (order == np.arange(groups)).all():
        return array
    if isinstance(array, Pending):
        return array.regrouped(order, groups)
    hi, lo = np.zeros((2, groups, *array.shape[1:]))
    have = min(len(order), array.shape[0])
    kept = np.flatnonzero(order[:have] >= 0)
    hi[order[kept]], lo[order[kept]] = array.hi[kept], array.lo[kept]
    return Twofold(hi, lo)


def aligned(model: Fitted, star: Star, names: Sequence[Any] | None) -> Counts:
    """A fitted model's counts in another star's classes, levels and anchors; columns it lacks count nothing.

    Words that the other star does not have are left out, as they are when its documents are read.
    """
    order = np.arange(model.star.groups)
    if names is not None and model.classes is not None:
        where = {name: i for i, name in enumerate(names)}
        order = np.array([where.get(name, -1) for name in model.classes])
    elif model.star.groups != star.groups:
        raise DataError(f"the model has {model.star.groups} groups, but {star.groups} are wanted.")
    arrays: dict[Hashable, Twofold] = {ROOT: regrouped(model.counts.arrays[ROOT], order, star.groups)}
    own = {leaf.key: leaf for leaf in model.star.leaves}
    for leaf in star.leaves:
        if leaf.key in own:
            moved = moved_stats(model.counts.arrays[leaf.key], own[leaf.key], leaf)
        else:
            moved = Twofold.of(np.zeros((model.star.groups, leaf.family.width(leaf.setting))))
        arrays[leaf.key] = regrouped(moved, order, star.groups)
    return Counts(arrays, model.counts.rows, model.counts.log_likelihood, model.counts.notes)


def moved_stats(stats: Twofold, old: Node, new: Node) -> Twofold:
    """One leaf's statistics with the levels, anchor and scale of another leaf of the same column."""
    if type(old.family) is not type(new.family):
        raise DataError(
            f"column {old.key!r} is {old.family.name} in one model and {new.family.name} in the other. "
            "Declare it the same in both with kinds."
        )
    if isinstance(new.family, Joint):
        return _moved_joint(stats, old, new)
    if new.family.kind is Kind.TEXT:
        return moved_words(stats, old, new)
    if new.family.discrete or new.family.name == "multinomial":
        return _moved_levels(stats, old, new)
    if isinstance(new.family, Multinormal):
        return _reanchored_block(stats, old, new)
    return new.family.moved(stats, old.setting, new.setting)


def _moved_levels(stats: Twofold, old: Node, new: Node) -> Twofold:
    where = {level: i for i, level in enumerate(new.setting.levels)}
    if not where.keys() >= set(old.setting.levels):
        have, want = len(old.setting.levels), len(where)
        raise DataError(f"{old.key!r} has {have} columns in one model and {want} in the other. Give both the same.")
    columns = np.array([where[level] for level in old.setting.levels], dtype=int)
    hi, lo = np.zeros((2, stats.shape[0], len(where)))
    hi[:, columns], lo[:, columns] = stats.hi, stats.lo
    return Twofold(hi, lo)


def _moved_joint(stats: Twofold, old: Node, new: Node) -> Twofold:
    assert isinstance(old.family, Joint) and isinstance(new.family, Joint)
    axes = []
    for i in range(len(new.columns)):
        after = sorted_levels({combo[i] for combo in combinations(new)})
        before = sorted_levels({combo[i] for combo in combinations(old)})
        axes.append(np.array([0, *(after.index(level) + 1 for level in before)]))
    groups = stats.shape[0]
    hi, lo = np.zeros((2, groups, *(m + 1 for m in new.family.shape)))
    spot = np.ix_(np.arange(groups), *axes)
    small = (groups, *(m + 1 for m in old.family.shape))
    hi[spot], lo[spot] = stats.hi.reshape(small), stats.lo.reshape(small)
    return Twofold(hi.reshape(groups, -1), lo.reshape(groups, -1))


def combinations(leaf: Node) -> Sequence[Any]:
    """The levels of a joint block, each a tuple."""
    return leaf.setting.levels


def _reanchored_block(stats: Twofold, old: Node, new: Node) -> Twofold:
    d, groups = len(new.setting.anchor), stats.shape[0]
    ratio = new.setting.scale / old.setting.scale
    delta = shifted(old.setting.anchor, new.setting)
    rows, total = stats[:, :1], stats[:, 1 : d + 1] * ratio
    flat = stats[:, d + 1 :]
    products = Twofold(flat.hi.reshape(groups, d, d), flat.lo.reshape(groups, d, d)) * np.outer(ratio, ratio)
    shape = (groups, d, d)
    left = total.spread(2).broadcast(shape) * delta.spread(0).broadcast(shape)
    right = total.spread(1).broadcast(shape) * delta.spread(1).broadcast(shape)
    square = delta.spread(1).broadcast((d, d)) * delta.spread(0).broadcast((d, d))
    products = products + left + right + square.spread(0).broadcast(shape) * rows.spread(2).broadcast(shape)
    moved = total + delta.spread(0).broadcast((groups, d)) * rows.broadcast((groups, d))
    back = Twofold(products.hi.reshape(groups, -1), products.lo.reshape(groups, -1))
    return concatenate([rows, moved, back], axis=1)


def sorted_levels(levels: set[Any] | Sequence[Any]) -> list[Any]:
    """Levels in one fixed order whatever their types: by type, then by value."""
    return sorted(set(levels), key=lambda x: (type(x).__name__ if not isinstance(x, (bool, int, float)) else "", x))


def united(left: Fitted, right: Fitted, grow: Collection[Key] | None = None) -> tuple[Star, list[Any]]:
    """A star that holds the classes and levels of both models, counted about the left one's anchors.

    Of the text columns only those in `grow` get new words, where that is given.
    """
    if left.classes is None or right.classes is None:
        raise DataError(
            "only models of known classes can be merged: the groups of two mixtures are not the same groups."
        )
    for leaf in left.star.leaves:
        if not leaf.family.mergeable:
            raise DataError(
                f"column {leaf.key!r} is {leaf.family.name}, whose counts hang on the fit they come from and do not "
                "add to another's. Fit all the rows at once."
            )
    mine, theirs = [{leaf.key for leaf in model.star.leaves} for model in (left, right)]
    if mine != theirs:
        odd = ", ".join(repr(key) for key in list(mine ^ theirs)[:5])
        raise DataError(f"the two models have different columns: {odd} is in one of them only.")
    classes = sorted_levels([*left.classes, *right.classes])
    schema = _united_schema(left.star.schema, right.star.schema, grow)
    leaves = [_united_leaf(leaf, schema, len(classes)) for leaf in left.star.leaves]
    return replace(left.star, schema=schema, leaves=tuple(leaves), groups=len(classes)), classes


def grown(star: Star, counts: Counts, prior: Any) -> tuple[Star, Counts]:
    """A star and its counts with room for the levels and words that an older model brings as a prior."""
    if not isinstance(prior, Older):
        return star, counts
    schema = _united_schema(star.schema, prior.model.star.schema, None)
    wider = replace(star, schema=schema, leaves=tuple(_united_leaf(leaf, schema, star.groups) for leaf in star.leaves))
    moved = {leaf.key: moved_stats(counts.arrays[leaf.key], leaf, wider.leaf(leaf.key)) for leaf in star.leaves}
    return wider, Counts({**counts.arrays, **moved}, counts.rows, counts.log_likelihood, counts.notes)


def _united_schema(left: Schema, right: Schema, grow: Collection[Key] | None) -> Schema:
    known = {spec.key: spec for spec in right.fields}
    for spec in left.used:
        other = known.get(spec.key)
        if spec.kind is Kind.TEXT:
            if other is not None and (grow is None or spec.key in grow):
                left = left.with_field(with_united_words(spec, other))
        elif not spec.kind.numeric and other is not None:
            levels = tuple(sorted_levels([*spec.levels, *other.levels]))
            left = left.with_field(replace(spec, levels=levels, wide=spec.wide or len(levels) > NARROW_LEVELS))
    return left


def _united_leaf(leaf: Node, schema: Schema, groups: int) -> Node:
    setting = replace(leaf.setting, groups=groups, blank=None)
    if isinstance(leaf.family, Joint):
        family, levels = joint_of([schema[c].levels for c in leaf.columns], groups)
        return replace(leaf, family=family, setting=replace(setting, levels=levels))
    if leaf.family.discrete or leaf.family.kind is Kind.TEXT:
        return replace(leaf, setting=replace(setting, levels=schema[leaf.key].levels))
    return replace(leaf, setting=setting)


def refuse_overdrawn(star: Star, before: Counts, after: Counts) -> None:
    """Raise where more was taken out of the counts than was in them."""
    remedy = "Give rows the model was fitted on."
    if (after[ROOT] < -SLACK).any():
        raise DataError(f"more rows of a class are to be forgotten than were learned. {remedy}")
    if after.rows <= SLACK:
        raise DataError("every row is to be forgotten, so nothing would be left to predict from. Keep some.")
    for leaf in star.leaves:
        if _overdrawn(leaf, before.arrays[leaf.key], after.arrays[leaf.key]):
            raise DataError(f"column {leaf.key!r}: more is to be forgotten than was learned. {remedy}")


def _overdrawn(leaf: Node, before: Twofold, after: Twofold) -> bool:
    """Counts below zero or, for normal columns, rows that leave less than no variance behind."""
    if isinstance(leaf.family, Multinormal):
        d = len(leaf.columns)
        squares = np.arange(d) * (d + 1) + d + 1
        parts = [[0, 1 + j, squares[j]] for j in range(d)]
    elif isinstance(leaf.family, Normal):
        parts = [[0, 1, 2]]
    else:
        return leaf.family.overdrawn(before, after, SLACK)
    return any(_negative_variance(before[:, part], after[:, part]) for part in parts)


def _negative_variance(before: Twofold, after: Twofold) -> bool:
    rows, total, squares = (after[:, j] for j in range(3))
    room = SLACK * np.maximum(before.value[:, 0] * before.value[:, 2], 1e-300)
    return bool((rows.value < -SLACK).any() or ((rows * squares - total * total).value < -room).any())
