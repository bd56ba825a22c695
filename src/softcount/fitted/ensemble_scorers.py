"""Scorers of models whose classes are predicted by an ensemble or by AODE."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from softcount.classify.aode import AodeCounts
from softcount.classify.encode import EncodedColumns, EncodedRows
from softcount.classify.ensemble import Ensemble
from softcount.errors import DataError
from softcount.fitted.fitted import Fitted
from softcount.fitted.scorers import NOT_LOGISTIC, ScoreFormula, Scorer, register_scorer
from softcount.models.nodes import Node
from softcount.run.local import Runner
from softcount.table import Chunk, Table
from softcount.table.schema import Key

ENSEMBLE_NOTES = (
    "Ensemble: ", "Using standard naive Bayes alone", "The ensemble was trained on", "Cross-validation made no errors",
    "Held-out figures use the row weights",
)  # fmt: skip
"""How notes begin that are about the ensemble."""


class MemberScorer(Scorer, frozen=True, eq=False):
    """The members of an ensemble predict the classes; the model answers all other queries."""

    is_naive: ClassVar[bool] = False
    not_quadratic: ClassVar[str] = (
        "a quadratic boundary needs naive Bayes, but this model predicts with an ensemble: use NaiveBayes."
    )
    not_logistic: ClassVar[str] = NOT_LOGISTIC

    @property
    def ensemble(self) -> Ensemble:
        raise NotImplementedError

    @property
    def together(self) -> list[str]:
        return self.ensemble.together

    def log_proba(self, model: Fitted, table: Table, threads: Runner) -> np.ndarray:
        return self.ensemble.log_proba(model.schema, table, threads)

    def proba(self, model: Fitted, table: Table, threads: Runner) -> np.ndarray:
        return np.asarray(np.exp(self.log_proba(model, table, threads)))

    def score_columns(
        self, model: Fitted, chunk: Chunk, compiled: list[Any]
    ) -> tuple[dict[Key, np.ndarray], np.ndarray]:
        parts, rest = self.ensemble.split(EncodedRows.of(model.schema, [chunk]))
        keys = (*EncodedColumns.of(model.schema).keys, *model.texts)
        found = {key: parts[:, place] for place, key in enumerate(keys)}
        order = [spec.key for spec in model.schema.used if spec.key in found]
        return {key: found[key] for key in order or found}, rest

    def score_words(self, model: Fitted, leaf: Node, bag: Any, pair: tuple[int, int]) -> np.ndarray:
        parts = self.ensemble.word_parts(model.schema.places[leaf.key].slot, bag)[bag.indices > 0]
        return np.asarray(parts[:, pair[0]] - parts[:, pair[1]])

    def linear_form(self, model: Fitted) -> tuple[np.ndarray, np.ndarray]:
        names = " and ".join(self.ensemble.names)
        raise DataError(f"to_linear needs naive Bayes, but this model predicts with {names}.")

    def formula(self, model: Fitted) -> ScoreFormula:
        columns = EncodedColumns.of(model.schema, model.texts)
        terms = self.ensemble.formula(columns)
        texts = model.texts if self.ensemble.reads_texts(columns) else ()
        valued = columns.keys[columns.measured : columns.numbers]
        return ScoreFormula((*columns.keys, *texts), tuple(terms), valued)


@register_scorer
class EnsembleScorer(MemberScorer, frozen=True, eq=False, tag="ensemble"):
    """Members chosen by cross-validation."""

    ensemble: Ensemble

    title: ClassVar[str] = "Classifier"
    estimator: ClassVar[str] = "Classifier"
    dropped: ClassVar[str] = (
        "The ensemble was dropped: rows were added or removed after the fit. Fit all rows at once to learn it again."
    )

    def of_complete_rows(self) -> EnsembleScorer:
        return replace(self, ensemble=replace(self.ensemble, sparse=None))

    def estimator_settings(self, model: Fitted) -> dict[str, Any]:
        return {"prior": model.prior}

    def is_outdated(self, note: str) -> bool:
        return (
            note.startswith((*ENSEMBLE_NOTES, self.dropped))
            or note.endswith(" and is left out.")
            or " rows repeat an earlier row. " in note
        )


@register_scorer
class AodeScorer(MemberScorer, frozen=True, eq=False, dict=True, tag="AODE"):
    """Averaged one-dependence estimators: their counts can be added and subtracted."""

    counts: AodeCounts

    title: ClassVar[str] = "AODE"
    estimator: ClassVar[str] = "AODE"

    @cached_property
    def ensemble(self) -> Ensemble:
        return self.counts.ensemble()

    def estimator_settings(self, model: Fitted) -> dict[str, Any]:
        return {"prior": self.counts.setting.concentration}
