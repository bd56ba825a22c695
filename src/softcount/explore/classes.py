"""What the explorer needs of a model of classes, and of the ensemble that predicts them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.formulas import Apply, Once, WordsCode, unless_missing, walk
from softcount.core.special import log_of, softmax_rows
from softcount.errors import DataError
from softcount.families.density import Density
from softcount.fitted.answers import CLASS, Answer, labels_in, name_apart
from softcount.fitted.characteristic_words import characteristic_words, word_family
from softcount.fitted.class_answers import marginal
from softcount.fitted.fitted import Fitted
from softcount.models.nodes import Node
from softcount.table.column_summary import ColumnSummary, TableSummary, bar_edges
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


# -- numeric columns: bars, and the exact share of every class in each
#
# The shares are differences of distribution functions, so the page needs no special function to add them up. Far out in
# a tail such a difference loses its digits; the density is integrated there, so that a share of 1e-300 is no zero.

LOST = 1e-7
"""Of what lies below a bar, the share that a difference must be to have kept nine digits."""
HALVINGS = 24
"""How often the way from an end of a bar is halved to find where its density lies."""
TERMS = 2_000
"""Whole numbers of a bar that are added up, at most."""


def number_document(
    shares: np.ndarray, density: Density, bounds: tuple[float, float] | None = None,
    seen: ColumnSummary | None = None, given: ColumnSummary | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Describe a number: its bars, their log-probability in each class, and its density as a formula if it has one.

    If the column has bounds, `inside` has the probability of each bar in each group truncated to them. `seen` is the
    summary of the column in training, which chooses the bars; `data` are the shares of the bars there, or in `given`.
    With `hidden`, the outermost bars lie outside the range of the data.
    """
    answer, counted = Answer(shares, density, bounds=bounds), density.family.facts.kind.whole
    edges = answer_edges(answer)
    found: dict[str, Any] = {"kind": "number", "whole": counted}
    known = seen if seen is not None and seen.bars else given
    whole = known is not None and all(edge == round(edge) for edge in known.bars)
    if known is not None and known.in_bars and sum(known.in_bars) and (whole or not counted):
        edges = np.array(known.bars)
        drawn = given if given is not None and given.bars == known.bars else known
        found["data"] = [round(part / max(sum(drawn.in_bars), 1), 6) for part in drawn.in_bars]
        found["range"] = [known.quantiles[0], known.quantiles[-1]]
        if (
            not counted and known.bars[-1] < known.quantiles[-1]
        ):  # what the model has outside the range of the data is not drawn
            edges = np.array([np.nextafter(known.quantiles[0], -np.inf), *known.bars, known.quantiles[-1]])
            found["data"], found["hidden"] = [0.0, *found["data"], 0.0], True
    found["edges"] = edges.tolist()
    found["logs"] = pack(log_shares(density, edges))
    if answer.truncated:
        below = np.stack([answer.group_cdfs(edge) for edge in (-np.inf, *edges, np.inf)], axis=1)
        found["inside"] = pack(np.diff(below, axis=1))
    if bounds is not None:
        found["bounds"] = [end if np.isfinite(end) else None for end in bounds]
    formula = density.formula(("x",), (0,))
    if formula is None:
        return found
    # A straight line is a density from 0 on only: of counts and waiting times.
    line = all(part.operation in ("add", "multiply") for part in walk(formula) if isinstance(part, Apply))
    form = formula_document(unless_missing("x", formula), {"x": "x"})
    return found | {"form": form, "least": 0.0 if line else None}


def formula_document(of: Any, names: Mapping[Any, str], field: str = "") -> Any:
    """Describe a scoring formula for `formula.js`: each node by its class and its fields, keys by their names."""
    if field in ("key", "keys"):
        return names[of] if field == "key" else [names[key] for key in of]
    if isinstance(of, Once):
        return formula_document(of.of, names)
    if isinstance(of, Struct):
        # Four bytes are enough for the many words of a document, as in the document of a text.
        fields = {name: getattr(of, name) for name in of.__struct_fields__}
        narrow = {"table": "given"} if isinstance(fields.get("code"), WordsCode) else {}
        own = {name: formula_document(part, names, narrow.get(name, name)) for name, part in fields.items()}
        return {"is": type(of).__name__, **own}
    if isinstance(of, dict):
        return {name: formula_document(part, names) for name, part in of.items()}
    if isinstance(of, tuple):
        return [formula_document(part, names) for part in of]
    return pack(of, narrow=field == "given") if isinstance(of, np.ndarray) else of


def answer_edges(answer: Answer) -> np.ndarray:
    """Choose where bars meet from the model alone."""
    ends = answer.bounds if answer.truncated else None
    low, middle, high = map(answer.quantile, (0.01, 0.5, 0.99))
    return bar_edges(low, middle, high, answer.density.family.facts.kind.whole, ends)


def log_shares(density: Density, edges: np.ndarray) -> np.ndarray:
    """Return (classes x bars) log-probabilities."""
    below = np.stack([density.cdf(float(edge)) for edge in edges], axis=1)
    ends = np.concatenate([np.zeros((len(below), 1)), below, np.ones((len(below), 1))], axis=1)
    plain = np.diff(ends, axis=1)
    found = log_of(np.maximum(plain, 0.0))
    lost = plain <= LOST * ends[:, 1:]
    for bar in np.flatnonzero(lost.any(axis=0)):
        low = edges[bar - 1] if bar > 0 else -np.inf
        high = edges[bar] if bar < len(edges) else np.inf
        if density.family.facts.kind.whole:
            points = np.arange(max(low + 1.0, 0.0), min(high, max(low, 0.0) + TERMS) + 0.5)
            weights = np.ones(len(points))
        else:
            points, weights = _points_between(low, high, edges)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            logs = density.log_pdf(points)
            logs = np.nan_to_num(logs + np.log(weights)[:, None], nan=-np.inf, posinf=-np.inf)
        better = np.asarray(softmax_rows(logs.T.copy())[1])
        # More than that, and the distribution function does not count what the density has beyond its last cell.
        found[:, bar] = np.where(lost[:, bar] & (better < np.log(10 * LOST)), better, found[:, bar])
    return found


def _points_between(low: float, high: float, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of Gauss's rule on pieces that halve towards both ends of a bar, for steep slopes."""
    halves = 0.5 ** np.arange(HALVINGS, 0, -1)
    if np.isfinite(high - low):
        ends = low + (high - low) * np.concatenate([[0.0], halves, 1.0 - halves, [1.0]])
    else:
        unit = max(edges[-1] - edges[0], abs(edges).max() * 1e-9, 1e-300)
        far = unit * np.concatenate([[0.0], halves, 2.0 ** np.arange(HALVINGS)])
        ends = low + far if np.isinf(high) else high - far
    ends = np.unique(ends)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    middle, half = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


def pack(values: np.ndarray, narrow: bool = False) -> str:
    """Pack an array as text: eight bytes for each number, or four; JSON has no infinities, and this is shorter.

    >>> pack(np.array([1.0, -np.inf]))
    'AAAAAAAA8D8AAAAAAADw/w=='
    """
    array = np.ascontiguousarray(values, dtype="<f4" if narrow else "<f8")
    return b64encode(array.tobytes()).decode("ascii")
