"""Whether a model that was read from a file makes sense as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.errors import ModelFileError
from softcount.families import How
from softcount.fitted.fitted_model import Fitted
from softcount.models.nodes import Node
from softcount.models.star import Imagined, Star, StarParams
from softcount.table.schema import Key, Schema
from softcount.text.words import Words

SLACK = 1e-6
"""Counts below zero by no more than this are what forgetting leaves of rounding."""


def check_structure(leaves: tuple[Node, ...], schema: Schema) -> None:
    """Refuse columns named twice, blocks without columns, and anchors that fit no column."""
    if not leaves:
        raise ModelFileError("it models no column.")
    refuse_twice((spec.key for spec in schema.fields), "column")
    refuse_twice((column for leaf in leaves for column in leaf.columns or (leaf.key,)), "column")
    for spec in schema.fields:
        if not isinstance(spec.levels, Words):  # words were found to be in order, each once
            refuse_twice(spec.levels, f"column {spec.key!r}: level")
    for leaf in leaves:
        _check_leaf(leaf, len(leaves))


def refuse_twice(names: Iterable[Hashable], what: str) -> None:
    """Raise at the first name that is given more than once."""
    for name, times in Counter(names).items():
        if times > 1:
            raise ModelFileError(f"{what} {name!r} is there {times} times.")


def _check_leaf(leaf: Node, leaves: int) -> None:
    key: Any = leaf.columns if leaf.family.block else leaf.columns[0] if leaf.columns else None
    whole = not leaf.columns and leaf.family.name == "multinomial" and leaves == 1
    if not whole and (not leaf.columns or key != leaf.key):
        raise ModelFileError(f"{leaf.key!r} is {leaf.family.name} of the columns {list(leaf.columns)!r}.")
    width = len(leaf.columns) if leaf.columns and not leaf.family.discrete else 1
    if len(leaf.setting.anchor) != width or len(leaf.setting.scale) != width or not leaf.setting.floor >= 0:
        raise ModelFileError(f"column {leaf.key!r} has an impossible anchor, scale or floor.")


def check_model(model: Fitted) -> None:
    """Refuse counts below zero, and parameters or priors that are not what the counts would give a shape to."""
    if model.classes is not None:
        refuse_twice(model.classes, "class")
    _check_counts(model)
    _check_fixed(model)
    again = estimated(model.star, model.counts, model.imagined, model.estimate)
    for leaf in model.star.leaves:
        if not (model.imagined.leaves[leaf.key].get("alpha", np.zeros(1)) >= 0).all():
            raise ModelFileError(f"the prior of column {leaf.key!r} makes no sense: it imagines less than nothing.")
        _check_alike(leaf.key, again.leaves[leaf.key], model.estimates.leaves[leaf.key])
        wrong = leaf.family.check_params(again.leaves[leaf.key])
        if wrong:
            raise ModelFileError(f"the prior of column {leaf.key!r} makes no sense: under it {wrong}.")


def estimated(star: Star, counts: Counts, imagined: Imagined, estimate: str) -> StarParams:
    """The parameters that the counts and the prior of a file give."""
    how: How = "predictive" if estimate == "predictive" else imagined.how
    with np.errstate(all="ignore"):
        return star.estimate(counts, replace(imagined, how=how))


def _check_counts(model: Fitted) -> None:
    if not model.counts.rows >= 0 or (model.counts[ROOT] < -SLACK).any() or not model.star.unknown_weight >= 0:
        raise ModelFileError("its counts of rows are below zero.")
    for leaf in model.star.leaves:
        counts = model.counts[leaf.key]
        rows = counts[..., :1] if leaf.family.signed else counts
        if (rows < -SLACK).any():
            raise ModelFileError(f"the counts of column {leaf.key!r} are below zero.")


def _check_fixed(model: Fitted) -> None:
    """What was held is what the parameters are."""
    shares = model.imagined.fixed_shares
    if shares is not None and (shares.shape != model.shares.shape or np.abs(shares - model.shares).max() > SLACK):
        raise ModelFileError("the shares that were fixed are not the shares of the classes.")
    for key, held in model.imagined.fixed.items():
        for name, value in held.items():
            found = model.estimates.leaves[key].get(name)
            if found is None or found.shape != value.shape or not np.allclose(found, value, rtol=SLACK, atol=0.0):
                raise ModelFileError(f"column {key!r}: the {name} that was fixed is not the one it has.")


def _check_alike(key: Key, expected: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> None:
    """The parameters are named and shaped as an estimate of them is."""
    if set(expected) != set(found):
        raise ModelFileError(f"column {key!r} has {sorted(found)}, not {sorted(expected)}.")
    for name, value in expected.items():
        if found[name].shape != value.shape:
            raise ModelFileError(f"column {key!r}: {name} has the shape {found[name].shape}, not {value.shape}.")
