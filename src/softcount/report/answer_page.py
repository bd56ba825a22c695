"""What a model answers: predictions, and distributions of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from softcount.report.json_page import key_text
from softcount.report.page import Page
from softcount.report.plain_text import number, share

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from softcount.fitted.fitted_model import Fitted

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def prediction_table(
    fitted: Fitted, proba: np.ndarray, scores: np.ndarray | None = None, files: Sequence[str] = ()
) -> pa.Table:
    """One line per row: the likeliest class, the probability of each class, and the anomaly score if there is one.

    Where rows are files, their names come first.
    """
    import pyarrow as pa

    likeliest = pa.array(proba.argmax(axis=1) if len(proba) else [], pa.int64())
    columns = [name_array(fitted).take(likeliest), *(pa.array(column) for column in proba.T)]
    names = ["predicted", *(f"p({name})" for name in fitted.names)]
    if scores is not None:
        columns, names = [*columns, pa.array(scores)], [*names, "anomaly"]
    if files:
        columns, names = [pa.array(files, pa.string()), *columns], ["file", *names]
    return pa.Table.from_arrays(columns, names=names)


def name_array(fitted: Fitted) -> pa.Array:
    """The classes' names as one array: as they are if they are of one kind, otherwise as text."""
    import pyarrow as pa

    names = fitted.names
    alike = len({type(name) for name in names}) == 1
    return pa.array(names if alike else [str(name) for name in names])


def query_page(of: object, given: Mapping[Any, Any], answer: Any) -> Page:
    page = Page()
    page.heading(_question(of, given))
    if isinstance(answer, Mapping):
        ranked = sorted(answer.items(), key=lambda item: -item[1])
        page.grid(("level", "probability"), [(str(level), share(p)) for level, p in ranked], right=("probability",))
    else:
        rows = [(name, number(value, 6)) for name, value in figures(answer).items()]
        page.grid(("figure", "value"), rows, right=("value",))
    return page


def _question(of: object, given: Mapping[Any, Any]) -> str:
    known = ", ".join(f"{key_text(key)} = {value}" for key, value in given.items())
    return f"{key_text(of)}, given {known}" if known else key_text(of)


def figures(answer: Any) -> dict[str, float]:
    """Mean, standard deviation and quantiles of a numeric answer."""
    spread = {"mean": float(answer.mean), "standard deviation": float(answer.variance) ** 0.5}
    return spread | {f"{level:.0%} quantile": float(answer.quantile(level)) for level in QUANTILES}


def query_document(of: object, given: Mapping[Any, Any], answer: Any) -> dict[str, Any]:
    question = {"of": of, "given": {key_text(key): value for key, value in given.items()}}
    if isinstance(answer, Mapping):
        return {**question, "levels": [{"level": level, "probability": p} for level, p in answer.items()]}
    quantiles = [{"level": level, "value": float(answer.quantile(level))} for level in QUANTILES]
    return {**question, "mean": answer.mean, "variance": answer.variance, "quantiles": quantiles}
