"""What the page needs of a model whose columns depend on each other through the class alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.explore.number_bars import number_document
from softcount.explore.packed_arrays import packed
from softcount.explore.pool_document import pool_document
from softcount.fitted.answers import CLASS, labels_in, name_apart
from softcount.fitted.fitted import Calibration, Fitted
from softcount.models.nodes import Node
from softcount.table.schema import Key

Document = dict[str, Any]


def star_document(model: Fitted) -> Document:
    """Shares, and for every column the logarithms of what each class says of its levels or bars."""
    _refuse(model)
    names, leaves = labels_in(model), model.model.leaves
    weights = np.ones(len(leaves)) if model.weights is None else model.weights.weights
    columns: list[Document] = []
    blocks: list[Document] = []
    left_out: list[str] = []
    for leaf, weight in zip(leaves, weights, strict=True):
        own = list(_columns(model, leaf, names))
        if not own or None in own:
            left_out += [names[key] for key in leaf.columns]
            continue
        block = _block(model, leaf) if len(leaf.columns) > 1 else None
        if block is not None:
            blocks.append(block | {"columns": list(range(len(columns), len(columns) + len(own)))})
        columns += [column | {"weight": float(weight)} for column in own if column is not None]
    with np.errstate(divide="ignore"):
        start = np.log(model.shares) if model.weights is None else model.weights.bias
    pool = None if model.pool is None else pool_document(model)
    target = name_apart(model, CLASS if model.target is None else model.target)
    return {
        "kind": "star",
        "target": {"name": target, **said_levels(model.names)},
        "start": packed(start),
        "columns": columns,
        "blocks": blocks,
        "notes": [*_notes(model), *said_left_out(left_out)],
        "dense": model.weights is None,
        "pool": pool,
        "whose": None if model.pool is None else _plain_reasons(pool is not None),
        "calibration": None if model.calibration is None else _calibration(model.calibration),
    }


def _calibration(found: Calibration) -> Document:
    if found.temperature is not None:
        return {"temperature": found.temperature}
    return {"curves": [{"odds": packed(curve.odds), "share": packed(curve.share)} for curve in found.curves]}


def _refuse(model: Fitted) -> None:
    if model.linear is not None:
        raise DataError(
            "the classes are told by weights of logistic regression, which say nothing of sets and ranges. "
            "Explore the naive Bayes that the weights were learned on."
        )
    if model.bag:
        raise DataError("the model is of one sparse block of counts, whose columns cannot be asked for.")


def _notes(model: Fitted) -> Iterator[str]:
    if model.pool is not None:
        yield (
            "All bars are those of naive Bayes, as `query` tells them, which can say any column from any others. "
            "`predict` goes by what the classifier learned besides, and may differ."
        )
    if model.weights is not None:
        yield "Columns weigh as they were learned to; what is given then has no probability of its own."
    if model.calibration is not None:
        yield "Classes and reasons are those of `query`, before calibration; `predict` is calibrated."


def _plain_reasons(shown: bool) -> str:
    """Why reasons are those of naive Bayes where the classes are told by more."""
    if shown:
        return "As naive Bayes tells it: `predict`, and its reasons, take one value of a column."
    return "As naive Bayes tells it: what `predict` goes by is too large for this page, or words."


def said_left_out(names: list[str]) -> list[str]:
    """A note on columns that a page cannot show."""
    return [f"Not on this page, which cannot compute them; `query` may: {', '.join(names)}."] if names else []


def said_levels(levels: Any) -> Document:
    """Levels as text, and how Python writes those that are none."""
    plain = [level.item() if isinstance(level, np.generic) else level for level in levels]
    said: Document = {"levels": [str(level) for level in plain]}
    return said if all(isinstance(level, str) for level in plain) else said | {"python": [repr(x) for x in plain]}


def _columns(model: Fitted, leaf: Node, names: dict[Key, str]) -> Iterator[Document | None]:
    """Each column of a leaf; None for one that cannot be shown."""
    words = leaf.family.words_of(leaf.setting)
    if words is not None:
        from softcount.explore.text_document import text_document

        yield text_document(model, leaf, words, names[leaf.columns[0]])
        return
    own = leaf.family.scorable(model.estimates[leaf.key], leaf.setting)
    nothing = np.full(len(leaf.columns), np.nan)
    for place, key in enumerate(leaf.columns):
        levels = leaf.family.levels_of(leaf.setting, place)
        if leaf.family.counted or (len(leaf.columns) > 1 and levels is None and _normals(model, leaf) is None):
            yield None
            continue
        cells = nothing if levels is None else np.zeros(len(leaf.columns))
        family, params = leaf.family.conditional(own, leaf.setting, cells, place)
        if levels is None:
            number = number_document(model.shares, family, params, leaf, model.schema[key].bounds)
            if len(leaf.columns) > 1:
                number.pop("form", None)  # the block has it
            yield {"name": names[key]} | number
        else:
            with np.errstate(divide="ignore"):
                logs = np.log(params["probability"])
            yield {"name": names[key], "kind": "levels", **said_levels(levels), "logs": packed(logs)}


def _normals(model: Fitted, leaf: Node) -> tuple[np.ndarray, np.ndarray] | None:
    return leaf.family.as_normal(leaf.family.public(model.estimates[leaf.key], leaf.setting))


def _block(model: Fitted, leaf: Node) -> Document:
    """What columns that depend on each other within the classes say together."""
    normals = _normals(model, leaf)
    if normals is not None:
        return {"kind": "normal", "means": packed(normals[0]), "covariances": packed(normals[1])}
    own = leaf.family.scorable(model.estimates[leaf.key], leaf.setting)
    with np.errstate(divide="ignore"):
        return {"kind": "joint", "logs": packed(np.log(own["probability"]))}
