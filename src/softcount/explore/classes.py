"""What the explorer needs of a model of classes, and of the ensemble that predicts them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from softcount.core.special import log_of, softmax_rows
from softcount.errors import DataError
from softcount.explore.numbers import formula_document, number_document, pack
from softcount.fitted.answers import CLASS, labels_in, name_apart
from softcount.fitted.characteristic_words import characteristic_words, word_family
from softcount.fitted.class_answers import marginal
from softcount.fitted.fitted import Fitted
from softcount.models.nodes import Node
from softcount.table.column_summary import TableSummary
from softcount.table.schema import Key
from softcount.text import Reading

Document = dict[str, Any]


def classes_document(model: Fitted, given: TableSummary | None = None) -> Document:
    """Describe shares, and for every column the log-probabilities of its categories or bars in each class.

    `given` is the summary of the table that came with the model, for histograms.
    """
    if not model.scorer.has_ranges:
        raise DataError(
            "this model predicts by logistic regression, so sets and ranges have no probability. Explore the naive "
            "Bayes model that the weights were learned from."
        )
    if model.bag:
        raise DataError("the model is of one sparse block of counts, whose columns cannot be queried one by one.")
    names, leaves = labels_in(model), model.model.leaves
    scorer = model.scorer
    columns: list[Document] = []
    blocks: list[Document] = []
    left_out: list[str] = []
    for leaf, weight in zip(leaves, scorer.leaf_weights(model), strict=True):
        own = list(_columns(model, leaf, names, given))
        if not own or None in own:
            left_out += [names[key] for key in leaf.columns]
            continue
        block = _block(model, leaf) if len(leaf.columns) > 1 else None
        if block is not None:
            blocks.append(block | {"columns": list(range(len(columns), len(columns) + len(own)))})
        columns += [column | {"weight": float(weight)} for column in own if column is not None]
    ensemble = ensemble_document(model)
    calibration: Document | None = None
    if scorer.calibration and scorer.calibration.curves:
        curves = scorer.calibration.curves
        calibration = {"curves": [{"odds": pack(curve.odds), "share": pack(curve.share)} for curve in curves]}
    elif scorer.calibration:
        calibration = {"temperature": scorer.calibration.temperature}
    target = name_apart(model, CLASS if model.target is None else model.target)
    return {
        "kind": "star",
        "target": {"name": target, **level_document(model.names)},
        "start": pack(scorer.bias(model)),
        "columns": columns,
        "blocks": blocks,
        "notes": [*_notes(model, ensemble), *note_left_out(left_out)],
        "dense": scorer.has_density,
        "ensemble": ensemble,
        "asks": bool(scorer.ensemble) and not ensemble,
        "calibration": calibration,
    }


def _notes(model: Fitted, ensemble: Document | None) -> Iterator[str]:
    if model.scorer.ensemble and not ensemble:
        yield "The ensemble of the classifier is too large for this page, so naive Bayes answers; `predict` may differ."
    if not model.scorer.has_density:
        yield "Columns have learned weights, so what is given has no probability."


def note_left_out(names: Sequence[str]) -> list[str]:
    """Return a note on columns that the page cannot compute."""
    return [f"Not on this page, which cannot compute them; `query` may: {', '.join(names)}."] if names else []


def level_document(levels: Any) -> Document:
    """Describe categories as text, and as Python writes those that are not."""
    plain = [level.item() if isinstance(level, np.generic) else level for level in levels]
    found: Document = {"levels": [str(level) for level in plain]}
    return found if all(isinstance(level, str) for level in plain) else found | {"python": [repr(x) for x in plain]}


def _columns(model: Fitted, leaf: Node, names: dict[Key, str], given: TableSummary | None) -> Iterator[Document | None]:
    if leaf.family.facts.words:
        yield _text_document(model, leaf, names[leaf.columns[0]])
        return
    for key in leaf.columns:
        if leaf.family.facts.counted:
            yield None
            continue
        density, levels = marginal(model, key)
        if levels is None and len(leaf.columns) > 1 and _normals(model, leaf) is None:
            yield None
        elif levels is None:
            tables = (model.record.table, given)
            seen = [None if table is None else table.column(key) for table in tables]
            number = number_document(model.shares, density, model.schema[key].bounds, *seen)
            if len(leaf.columns) > 1:
                number.pop("form", None)  # the block has it
            yield {"name": names[key]} | number
        else:
            logs = log_of(density.params["probability"])
            yield {"name": names[key], "kind": "levels", **level_document(levels), "logs": pack(logs)}


def _normals(model: Fitted, leaf: Node) -> tuple[np.ndarray, np.ndarray] | None:
    return leaf.density(model.estimates).as_normal()


def _block(model: Fitted, leaf: Node) -> Document:
    normals = _normals(model, leaf)
    if normals is not None:
        return {"kind": "normal", "means": pack(normals[0]), "covariances": pack(normals[1])}
    return {"kind": "joint", "logs": pack(log_of(model.estimates[leaf.key]["probability"]))}


def _text_document(model: Fitted, leaf: Node, name: str) -> dict[str, Any] | None:
    """Describe the log-odds of every word against the mean of the classes; None for text that a page cannot read.

    A page can read words as they are read by default, and runs of words or characters, but no Python expression.
    Four bytes for a number are enough for differences between classes: 300 words are off by 2e-6 together.
    """
    reading: Reading = model.schema[leaf.columns[0]].reading or Reading()
    density = leaf.density(model.estimates)
    linear = density.linear() if density.is_product else None
    if linear is None or not _readable(reading) or density.lacking is not None:
        return None
    weights, start = linear
    return {
        "name": name,
        "kind": "text",
        "words": [str(word) for word in leaf.setting.levels],
        "logs": pack((weights - weights.mean(axis=0)).T, narrow=True),
        "start": pack(start - start.mean()),
        "once": word_family(leaf).by_document,
        "typical": [[mark.word for mark in own] for own in characteristic_words(model, leaf, TYPICAL_WORDS)],
        "reading": {
            "analyzer": reading.analyzer,
            "runs": list(reading.ngrams),
            "lowercase": reading.lowercase,
            "stopped": list(reading.stopped),
        },
    }


TYPICAL_WORDS = 12
"""Characteristic words of each class that the page shows before a document is given."""
ENSEMBLE_LIMIT = 1_500_000
"""Bytes of the tables of AODE in a page."""


def ensemble_document(model: Fitted) -> Document | None:
    """Describe the terms of the ensemble's score and their columns; None if a page cannot compute them."""
    ensemble = model.scorer.ensemble
    # Four bytes for each number and a third more for being text.
    if not ensemble or ensemble.pair_cells * 16 / 3 > ENSEMBLE_LIMIT:
        return None
    score, names = model.scorer.formula(model), labels_in(model)
    levels: dict[str, list[str]] = {}
    for key in score.columns:
        spec = model.schema[key]
        if not _readable(spec.reading):
            return None
        levels[names[key]] = [] if key in model.texts else [str(level) for level in spec.levels]
    return {
        "classes": model.n_groups,
        "levels": levels,
        "terms": [formula_document(term, names) for term in score.terms],
    }


def _readable(reading: Reading | None) -> bool:
    """Whether a page can read words as the model does: it runs no Python expression."""
    return reading is None or reading.pattern is None


OTHERS = "(other categories)"


def keep_categories(document: Document, most: int) -> tuple[Document, list[str]]:
    """Merge all but the most frequent categories of each column; return the document and the names of such columns.

    Columns of blocks stay whole.
    """
    start = np.frombuffer(b64decode(document["start"]))
    shares, joined = (
        softmax_rows(start[None].copy())[0][0],
        {at for block in document["blocks"] for at in block["columns"]},
    )
    columns, names = [], []
    for place, column in enumerate(document["columns"]):
        if column["kind"] != "levels" or place in joined or len(column["levels"]) <= most:
            columns.append(column)
            continue
        parts = np.exp(np.frombuffer(b64decode(column["logs"])).reshape(len(start), -1))
        kept = np.sort(np.argsort(-(shares @ parts), kind="stable")[:most])
        rest = np.delete(parts, kept, axis=1).sum(axis=1, keepdims=True)
        levels = [*(column["levels"][at] for at in kept), OTHERS]
        own = column | {"levels": levels, "logs": pack(log_of(np.hstack([parts[:, kept], rest])))}
        if "python" in column:
            own["python"] = [*(column["python"][at] for at in kept), "None"]
        columns.append(own | {"merged": True})
        names.append(column["name"])
    return document | {"columns": columns}, names
