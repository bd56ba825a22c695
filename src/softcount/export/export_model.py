"""Models as queries and graphs for other programs, each checked before it is handed out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from softcount.core import remedies
from softcount.errors import DataError
from softcount.export.model_plan import ensemble_plan
from softcount.export.scoring_plan import DrawnRows, ExportCheck, ScoringPlan, scoring_plan
from softcount.fitted.fitted import Fitted
from softcount.models.star import Star


class Exported(Protocol):
    """What can be exported: it says how rows are scored, and has rows to check that by."""

    def _export_plan(self) -> ScoringPlan: ...

    def _export_rows(self) -> DrawnRows: ...


def plan_of(model: Any) -> ScoringPlan:
    """The plan of a fitted model; what is no sum over columns is refused."""
    if not isinstance(model, Fitted) or not isinstance(model.model, Star):
        raise DataError(
            "only models that add up what each column says can be exported: naive Bayes, mixtures, k-means and "
            "classifiers; networks, chains and hidden states cannot. "
            f"Fit one of these: {remedies.either('Classifier().fit(X, y)', 'softcount fit DATA --target COL')}"
        )
    if model.bag:
        raise DataError(
            "the model is of a sparse table, which has no columns to read elsewhere: it cannot be exported. "
            "Fit a table whose columns have names, or the texts themselves."
        )
    return scoring_plan(model) if model.ensemble is None else ensemble_plan(model)


def as_sql(model: Exported, dialect: str, table: str, keep: Sequence[str]) -> tuple[str, ExportCheck]:
    """The scoring query of a model, and what came of its check."""
    from softcount.export.sql_query import check_query, scoring_query

    plan = model._export_plan()
    written = scoring_query(plan, dialect, table, keep)
    return written, check_query(plan, model._export_rows(), dialect)


def as_onnx(model: Exported) -> tuple[Any, ExportCheck]:
    """The graph of a model, and what came of its check."""
    from softcount.export.onnx_graph import check_graph, scoring_graph

    plan = model._export_plan()
    graph = scoring_graph(plan)
    return graph, check_graph(plan, model._export_rows(), graph)
