"""Arrays and numeric columns for the explorer: packed bytes, bars, and the exact share of every class in each bar.

The shares are differences of distribution functions, so the page needs no special function to add them up. Far out in
a tail such a difference loses its digits; the density is integrated there, so that a share of 1e-300 is no zero.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.formulas import Apply, Once, WordsCode, unless_missing, walk
from softcount.core.special import log_of, softmax_rows
from softcount.families.density import Density
from softcount.fitted.answers import Answer
from softcount.table.column_summary import ColumnSummary, bar_edges

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
