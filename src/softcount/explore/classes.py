"""What the explorer needs of a model of classes, and of the ensemble that predicts them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from softcount.classify.members import Aode, WordModel
from softcount.core.special import log_of
from softcount.errors import DataError
from softcount.explore.numbers import formula_document, number_document, pack
from softcount.export.scoring_plan import ensemble_terms
from softcount.families.text import WordFigures
from softcount.fitted.answers import CLASS, labels_in, marginal, name_apart
from softcount.fitted.fitted import Fitted
from softcount.models.nodes import Node
from softcount.table.schema import Key
from softcount.text import Reading

Document = dict[str, Any]


def classes_document(model: Fitted) -> Document:
    """Describe shares, and for every column the log-probabilities of its categories or bars in each class."""
    if model.linear is not None:
        raise DataError(
            "this model predicts by logistic regression, which gives sets and ranges no probability. "
            "Explore the naive Bayes that the weights were learned on."
        )
    if model.bag:
        raise DataError("the model is of one sparse block of counts, whose columns cannot be asked for.")
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
    start = log_of(model.shares) if model.weights is None else model.weights.bias
    ensemble, whose = None if model.ensemble is None else ensemble_document(model), None
    if model.ensemble is not None:
        whose = "As naive Bayes tells it: what `predict` goes by is too large for this page, or words."
        if ensemble is not None:
            whose = "As naive Bayes tells it: `predict`, and its reasons, take one value of a column."
    calibration: Document | None = None
    if model.calibration is not None and model.calibration.temperature is not None:
        calibration = {"temperature": model.calibration.temperature}
    elif model.calibration is not None:
        curves = model.calibration.curves
        calibration = {"curves": [{"odds": pack(curve.odds), "share": pack(curve.share)} for curve in curves]}
    target = name_apart(model, CLASS if model.target is None else model.target)
    return {
        "kind": "star",
        "target": {"name": target, **level_document(model.names)},
        "start": pack(start),
        "columns": columns,
        "blocks": blocks,
        "notes": [*_notes(model), *note_left_out(left_out)],
        "dense": model.weights is None,
        "ensemble": ensemble,
        "whose": whose,
        "calibration": calibration,
    }


def _notes(model: Fitted) -> Iterator[str]:
    if model.ensemble is not None:
        yield (
            "All bars are those of naive Bayes, as `query` tells them, which can say any column from any others. "
            "`predict` goes by what the classifier learned besides, and may differ."
        )
    if model.weights is not None:
        yield "Columns weigh as they were learned to; what is given then has no probability of its own."
    if model.calibration is not None:
        yield "Classes and reasons are those of `query`, before calibration; `predict` is calibrated."


def note_left_out(names: Sequence[str]) -> list[str]:
    """Return a note on columns that the page cannot compute."""
    return [f"Not on this page, which cannot compute them; `query` may: {', '.join(names)}."] if names else []


def level_document(levels: Any) -> Document:
    """Describe categories as text, and as Python writes those that are not."""
    plain = [level.item() if isinstance(level, np.generic) else level for level in levels]
    found: Document = {"levels": [str(level) for level in plain]}
    return found if all(isinstance(level, str) for level in plain) else found | {"python": [repr(x) for x in plain]}


def _columns(model: Fitted, leaf: Node, names: dict[Key, str]) -> Iterator[Document | None]:
    words = leaf.family.words_of(leaf.setting)
    if words is not None:
        yield _text_document(model, leaf, words, names[leaf.columns[0]])
        return
    for key in leaf.columns:
        if leaf.family.facts.counted:
            yield None
            continue
        family, params, levels = marginal(model, key)
        if levels is None and len(leaf.columns) > 1 and _normals(model, leaf) is None:
            yield None
        elif levels is None:
            number = number_document(model.shares, family, params, leaf, model.schema[key].bounds)
            if len(leaf.columns) > 1:
                number.pop("form", None)  # the block has it
            yield {"name": names[key]} | number
        else:
            logs = log_of(params["probability"])
            yield {"name": names[key], "kind": "levels", **level_document(levels), "logs": pack(logs)}


def _normals(model: Fitted, leaf: Node) -> tuple[np.ndarray, np.ndarray] | None:
    return leaf.family.as_normal(leaf.family.public(model.estimates[leaf.key], leaf.setting))


def _block(model: Fitted, leaf: Node) -> Document:
    normals = _normals(model, leaf)
    if normals is not None:
        return {"kind": "normal", "means": pack(normals[0]), "covariances": pack(normals[1])}
    own = leaf.family.scorable(model.estimates[leaf.key], leaf.setting)
    return {"kind": "joint", "logs": pack(log_of(own["probability"]))}


def _text_document(model: Fitted, leaf: Node, words: WordFigures, name: str) -> dict[str, Any] | None:
    """Describe the log-odds of every word against the mean of the classes; None for text that a page cannot read.

    A page can read words as they are read by default, and runs of words or characters, but no Python expression.
    Four bytes for a number are enough for differences between classes: 300 words are off by 2e-6 together.
    """
    reading: Reading = model.schema[leaf.columns[0]].reading or Reading()
    params = model.estimates[leaf.key]
    public = leaf.family.public(params, leaf.setting)
    linear = leaf.family.linear(public, leaf.setting) if leaf.family.is_product(public) else None
    if linear is None or reading.pattern is not None or leaf.family.lacking(params) is not None:
        return None
    weights, start = linear
    return {
        "name": name,
        "kind": "text",
        "words": [str(word) for word in words.words],
        "logs": pack((weights - weights.mean(axis=0)).T, narrow=True),
        "start": pack(start - start.mean()),
        "once": words.once,
        "reading": {
            "analyzer": reading.analyzer,
            "runs": list(reading.ngrams),
            "lowercase": reading.lowercase,
            "stopped": list(reading.stopped),
        },
    }


ENSEMBLE_LIMIT = 1_500_000
"""Bytes of an ensemble in a page; AODE of many cells takes more."""


def ensemble_document(model: Fitted) -> Document | None:
    """Describe the terms of the ensemble's score and their columns; None if they are of words or take too much room."""
    assert model.ensemble is not None
    stars = [member for member in model.ensemble.members if isinstance(member, Aode)]
    # Four bytes for each number and a third more for being text; the page does not compute members of words.
    words = any(isinstance(member, WordModel) for member in model.ensemble.members)
    if words or sum(own.given.size for own in stars) * 16 / 3 > ENSEMBLE_LIMIT:
        return None
    names = labels_in(model)
    columns, terms = ensemble_terms(model)
    return {
        "classes": model.n_groups,
        "levels": {names[key]: [str(level) for level in model.schema[key].levels] for key in columns.keys},
        "terms": [formula_document(term, names) for term in terms],
    }
