"""Naive Bayes of the rows of a query: counted inside the database where it can be, read out where not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import softcount
from softcount.export.database_rows import Database, ReadOut, dialect_of
from softcount.fitted.fitted_model import Fitted
from softcount.sources.arrow_batches import SpooledSource
from softcount.sources.queries import opened, query_source
from softcount.table import open_table
from softcount.table.labels import no_weight

BY_ROWS = ("calibration", "dependence", "weights")
"""Settings of naive Bayes that take more than counts."""


def fitted_from_query(estimator: Any, query: str, connection: Any, target: str, weight: str | None) -> Any:
    """The estimator, fitted; its notes say whether the database counted, and if not, why not."""
    with opened(connection) as base:
        try:
            fitted = _counted(estimator, query, base, target, weight)
            estimator._rows = None
        except ReadOut as reason:
            _read_out(estimator, query, base, target, weight)
            if estimator.network_ is not None:  # whose notes are its own
                return estimator
            said = f"rows were read out of the database: {reason}."
            fitted = replace(estimator.fitted_, notes=[said, *estimator.fitted_.notes])
    estimator._keep(fitted)
    return estimator


def _counted(estimator: Any, query: str, connection: Any, target: str, weight: str | None) -> Fitted:
    from softcount.export.counting_inside import ClassRequest, counted_inside

    for name in BY_ROWS:
        if getattr(estimator, name) is not None:
            raise ReadOut(f"{name} takes the rows themselves")
    estimator._check_settings()

    def learn(rows: Any) -> Fitted:
        settings = estimator.get_params(deep=False) | {"engine": None}
        model = type(estimator)(**settings).fit(rows, target)
        for name in ("n_features_in_", "feature_names_in_", "_library"):
            if hasattr(model, name):
                setattr(estimator, name, getattr(model, name))
        fitted: Fitted = model.fitted_
        return fitted

    base = Database(connection, dialect_of(connection), query, weight)
    asked = ClassRequest(target, estimator._class_plan(target), estimator._missing(), learn)
    return counted_inside(base, asked)[0]


def _read_out(estimator: Any, query: str, connection: Any, target: str, weight: str | None) -> None:
    """A fit of the rows; those of weight zero are passed over, not even their levels are seen."""
    said = estimator.kinds if isinstance(estimator.kinds, Mapping) else {}
    ignored = {key: kind for key, kind in said.items() if isinstance(kind, str) and kind == "ignore"}
    source, weights = query_source(query, connection), None
    if weight is not None:
        parts = open_table(source, weight=weight, kinds=ignored).weights()
        weights = np.concatenate([np.zeros(0), *(part for _, part in parts if part is not None)])
        if not weights.any():
            raise no_weight()
        names = [key for key in source.keys if key != weight]
        source, weights = SpooledSource(_kept(source, names, weights > 0), "the query"), weights[weights > 0]
    estimator.fit(softcount.read(source, kinds=ignored), target, sample_weight=weights)


def _kept(source: Any, names: Sequence[str], keep: np.ndarray) -> Iterator[Any]:
    """The batches of these columns, with the rows that are kept."""
    import pyarrow as pa

    start = 0
    for batch in source.batches(names):
        found = batch.filter(pa.array(keep[start : start + batch.num_rows]))
        start += batch.num_rows
        if found.num_rows:
            yield found
