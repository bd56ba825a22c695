"""Whether a model that was read from a file makes sense as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from softcount.core.counts import ROOT, Counts
from softcount.errors import ModelFileError
from softcount.families import How
from softcount.learn.record import Learned
from softcount.models.base import Model
from softcount.models.nodes import Imagined, Node, Params
from softcount.table.schema import NARROW_LEVELS, Key, Kind, Schema
from softcount.text.word_list import Words

SLACK = 1e-6
"""Counts below zero by no more than this are what forgetting leaves of rounding."""


def check_structure(leaves: tuple[Node, ...], schema: Schema, hidden: bool) -> None:
    """Refuse columns named twice, nodes without columns unless some are `hidden`, and anchors that fit no column."""
    if not leaves:
        raise ModelFileError("it models no column.")
    refuse_twice((spec.key for spec in schema.fields), "column")
    refuse_twice((column for leaf in leaves for column in leaf.columns or (leaf.key,)), "column")
    for spec in schema.fields:
        if not isinstance(spec.levels, Words):  # words were found to be in order, each once
            refuse_twice(spec.levels, f"column {spec.key!r}: level")
    for leaf in leaves:
        if leaf.columns or not hidden:
            _check_leaf(leaf, len(leaves) == 1)
        for place, column in enumerate(leaf.columns):
            spec = schema[column]
            leaf.family.check_field(spec, leaf.setting, place)
            if spec.kind is Kind.CATEGORICAL and not spec.wide and len(spec.levels) > NARROW_LEVELS:
                raise ModelFileError(f"column {column!r} has too many levels for its code.")


def check_names(names: Iterable[Any]) -> None:
    """Refuse classes named twice, and names that are not all text, all numbers or all truths."""
    kinds = {float if type(name) is int else type(name) for name in names}
    if len(kinds) > 1 or not kinds <= {str, float, bool}:
        raise ModelFileError(f"its classes are {names!r:.80}, which are not all text, all numbers or all truths.")
    refuse_twice(names, "class")


def refuse_twice(names: Iterable[Hashable], what: str) -> None:
    """Raise at the first name that is given more than once."""
    for name, times in Counter(names).items():
        if times > 1:
            raise ModelFileError(f"{what} {name!r} is there {times} times.")


def _check_leaf(leaf: Node, alone: bool) -> None:
    leaf.family.check_columns(leaf.key, leaf.columns, alone)
    setting, units = leaf.setting, leaf.family.units(leaf.columns)
    if setting.anchor.shape != (units,) or setting.scale.shape != (units,) or not setting.floor >= 0:
        raise ModelFileError(f"column {leaf.key!r} has an impossible anchor, scale or floor.")


def check_model(model: Learned) -> None:
    """Refuse counts below zero, and parameters or priors that are not what the counts would give a shape to."""
    if model.classes is not None:
        check_names(model.classes)
    _check_counts(model)
    _check_fixed(model)
    again = estimated(model.model, model.counts, model.imagined, model.estimate)
    usual = model.model.nodes.hypers(model.counts, dict.fromkeys(model.imagined.hypers, 1.0))
    for leaf in model.model.nodes.columns:
        hyper = model.imagined.hypers[leaf.key]
        _check_alike(leaf.key, usual[leaf.key], hyper, leaf.setting.groups)
        wrong = leaf.family.check_hyper(hyper)
        if wrong:
            raise ModelFileError(f"the prior of column {leaf.key!r} makes no sense: {wrong}.")
        _check_alike(leaf.key, again[leaf.key], model.estimates[leaf.key])
        wrong = leaf.family.check_params(again[leaf.key])
        if wrong:
            raise ModelFileError(f"the prior of column {leaf.key!r} makes no sense: under it {wrong}.")


def estimated(model: Model, counts: Counts, imagined: Imagined, estimate: str) -> Params:
    """The parameters that the counts and the prior of a file give."""
    how: How = "predictive" if estimate == "predictive" else imagined.how
    with np.errstate(all="ignore"):
        return model.nodes.estimate(model.nodes.stacked(counts), imagined.using(how))


def _check_counts(model: Learned) -> None:
    rows = model.counts[ROOT] if ROOT in model.counts else np.zeros(1)
    if not model.counts.rows >= 0 or not (rows >= -SLACK).all():
        raise ModelFileError("its counts of rows are below zero.")
    for leaf in model.model.nodes.columns:
        counts = model.counts[leaf.key]
        rows = counts[..., :1] if leaf.family.signed else counts
        if not (rows >= -SLACK).all():
            raise ModelFileError(f"the counts of column {leaf.key!r} are below zero.")


def _check_fixed(model: Learned) -> None:
    """What was held is what the parameters are."""
    for key, held in model.imagined.fixed.items():
        for name, value in held.items():
            shares = model.estimates[key][name] if key == ROOT else value
            if shares.shape != value.shape or (key == ROOT and np.abs(shares - value).max() > SLACK):
                raise ModelFileError("the shares that were fixed are not the shares of the classes.")
            found = model.estimates[key].get(name)
            if found is None or found.shape != value.shape or not np.allclose(found, value, rtol=SLACK, atol=0.0):
                raise ModelFileError(f"column {key!r}: the {name} that was fixed is not the one it has.")


def _check_alike(
    key: Key, expected: dict[str, np.ndarray], found: dict[str, np.ndarray], groups: int | None = None
) -> None:
    """The parameters are named and shaped as they would be; what is imagined may differ between groups."""
    if set(expected) != set(found):
        raise ModelFileError(f"column {key!r} has {sorted(found)}, not {sorted(expected)}.")
    for name, value in expected.items():
        by_group = (groups, *value.shape) if value.ndim else value.shape
        if found[name].shape not in (value.shape, by_group):
            raise ModelFileError(f"column {key!r}: {name} has the shape {found[name].shape}, not {value.shape}.")
