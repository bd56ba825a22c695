"""Checks of a whole model that was read from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from softcount.core.counts import ROOT, Counts
from softcount.errors import ModelFileError
from softcount.families import How
from softcount.files.codec import Arrays, require
from softcount.learn.record import Learned
from softcount.models.base import Model
from softcount.models.nodes import Imagined, Node, Params
from softcount.table.schema import NARROW_LEVELS, Key, Kind, Schema
from softcount.text.word_list import Words

SLACK = 1e-6
"""Tolerance for counts below zero, which rounding leaves after rows are removed."""


def check_structure(leaves: tuple[Node, ...], schema: Schema, hidden: bool) -> None:
    """Raise for repeated columns, nodes without columns (unless `hidden`), and invalid anchors, scales or levels."""
    require(leaves, "it models no column.")
    refuse_repeated((spec.key for spec in schema.fields), "column")
    refuse_repeated((column for leaf in leaves for column in leaf.columns or (leaf.key,)), "column")
    for spec in schema.fields:
        if not isinstance(spec.levels, Words):  # words were checked to be unique
            refuse_repeated(spec.levels, f"column {spec.key!r}: level")
    for leaf in leaves:
        if leaf.columns or not hidden:
            leaf.family.check_columns(leaf.key, leaf.columns, len(leaves) == 1)
            setting, units = leaf.setting, (leaf.family.units(leaf.columns),)
            sound = setting.anchor.shape == setting.scale.shape == units
            require(sound, f"column {leaf.key!r} has an impossible anchor or scale.")
        for place, column in enumerate(leaf.columns):
            spec = schema[column]
            usable = spec.used and leaf.family.takes(spec.kind)
            require(usable, f"column {column!r} ({spec.kind}) cannot be {leaf.family.name}.")
            levels = leaf.family.levels_of(leaf.setting, place)
            alike = levels is None or tuple(levels) == spec.levels
            require(alike, f"column {column!r} has two different lists of levels.")
            narrow = spec.kind is not Kind.CATEGORICAL or spec.wide or len(spec.levels) <= NARROW_LEVELS
            require(narrow, f"column {column!r} has too many levels for its code.")


def check_names(names: Iterable[Any]) -> None:
    """Raise for repeated classes, and for names that are not all text, all numbers or all Booleans."""
    kinds = {float if type(name) is int else type(name) for name in names}
    alike = len(kinds) <= 1 and kinds <= {str, float, bool}
    require(alike, f"its classes are {names!r:.80}, which are not all text, all numbers or all truths.")
    refuse_repeated(names, "class")


def refuse_repeated(names: Iterable[Hashable], what: str) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ModelFileError(f"{what} {name!r} is there {times} times.")


def check_model(model: Learned) -> None:
    """Raise for negative counts, and for parameters or priors whose shape does not follow from the counts."""
    if model.classes is not None:
        check_names(model.classes)
    rows = model.counts[ROOT] if ROOT in model.counts else np.zeros(1)
    require(model.counts.rows >= 0 and (rows >= -SLACK).all(), "its counts of rows are below zero.")
    for leaf in model.model.nodes.columns:
        counts = model.counts[leaf.key]
        rows = counts[..., :1] if leaf.family.signed else counts
        require((rows >= -SLACK).all(), f"the counts of column {leaf.key!r} are below zero.")
    _check_fixed(model)
    again = estimate_again(model.model, model.counts, model.imagined, model.estimate)
    usual = model.model.nodes.hypers(model.counts, dict.fromkeys(model.imagined.hypers, 1.0))
    for leaf in model.model.nodes.columns:
        hyper = model.imagined.hypers[leaf.key]
        _check_alike(leaf.key, usual[leaf.key], hyper, leaf.setting.groups)
        wrong = leaf.family.check_hyper(hyper)
        require(not wrong, f"the prior of column {leaf.key!r} makes no sense: {wrong}.")
        _check_alike(leaf.key, again[leaf.key], model.estimates[leaf.key])
        wrong = leaf.family.check_params(again[leaf.key])
        require(not wrong, f"the prior of column {leaf.key!r} makes no sense: under it {wrong}.")


def estimate_again(model: Model, counts: Counts, imagined: Imagined, estimate: str) -> Params:
    """Estimate the parameters from the counts and the prior of a file."""
    how: How = "predictive" if estimate == "predictive" else imagined.how
    with np.errstate(all="ignore"):
        return model.nodes.estimate(model.nodes.stacked(counts), imagined.using(how))


def _check_fixed(model: Learned) -> None:
    """Raise for parameters that differ from their fixed values."""
    for key, held in model.imagined.fixed.items():
        for name, value in held.items():
            found, what = model.estimates[key].get(name), "classes" if key == ROOT else f"column {key!r}"
            same = found is not None and found.shape == value.shape and np.allclose(found, value, rtol=SLACK, atol=0.0)
            require(same, f"{what}: the {name} that was fixed is not the one it has.")


def _check_alike(key: Key, expected: Arrays, found: Arrays, groups: int | None = None) -> None:
    """Raise for parameters with unexpected names or shapes; prior parameters may differ between groups."""
    require(set(expected) == set(found), f"column {key!r} has {sorted(found)}, not {sorted(expected)}.")
    for name, value in expected.items():
        shapes = (value.shape, (groups, *value.shape) if value.ndim else value.shape)
        require(
            found[name].shape in shapes, f"column {key!r}: {name} has the shape {found[name].shape}, not {value.shape}."
        )
