"""What every classifier of ours can do with its probabilities: costs, other shares, thresholds, figures, lift."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import asdict
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.engines import answers_and_labels, needs_all_rows, row_by_row
from softcount.estimators.parameters import check_whole
from softcount.estimators.result_frames import arrow_lines, as_arrow
from softcount.evaluate.ranking import FOLDS, PARTS, ScoredRows, chosen_threshold, wanted_rate
from softcount.evaluate.scores import Evaluation, judged, label_places, lift_of, rarer, scored_rows
from softcount.fitted.decisions import (
    BestError,
    Decision,
    Threshold,
    best_error,
    estimated_shares,
    place_of,
    with_prior,
)
from softcount.fitted.fitted import Fitted
from softcount.sources.frames import engine_holding


class Deciding:
    """A classifier with `_class_proba` and `_class_log_proba`, `classes_` and `class_prior_` gets the rest from here.

    What a mistake costs and how frequent classes are is the user's to say, and is said when predicting: nothing is
    learned again.
    """

    classes_: np.ndarray
    class_prior_: np.ndarray

    def _class_proba(self, X: Any) -> np.ndarray:
        """(rows x classes) probabilities."""
        raise NotImplementedError

    def _class_log_proba(self, X: Any) -> np.ndarray:
        """Their logarithms."""
        raise NotImplementedError

    @row_by_row
    def predict(self, X: Any, costs: Any = None, prior: Any = None, threshold: Any = None) -> np.ndarray:
        """The likeliest class of each row; with `costs` the one whose expected cost is lowest.

        `costs` has a row for every true class and a column for every class decided for, or names pairs: {("ill",
        "well"): 10}, where other mistakes cost 1. `prior` is how frequent the classes are where the rows come from, if
        not as in training: {"ill": 0.01}, "uniform", or "estimate" to learn it from these rows. `threshold` calls a row
        by one class from a probability on, {"ill": 0.2} or what `choose_threshold` gave, else by the likeliest other.
        """
        plain = costs is None and threshold is None  # and then nothing to check: one row takes less time than checks do
        decide = Decision() if plain else Decision.of(self._names(), costs, threshold)
        chosen = decide(self.predict_proba(X, prior))
        return np.asarray(self.classes_[chosen])

    @row_by_row
    def predict_proba(self, X: Any, prior: Any = None) -> np.ndarray:
        """(rows x classes) probability of each class given what the row says; `prior` as in `predict`."""
        return self._class_proba(X) if prior is None else np.exp(self.predict_log_proba(X, prior))

    @row_by_row
    def predict_log_proba(self, X: Any, prior: Any = None) -> np.ndarray:
        """The logarithm of `predict_proba`, exact where a probability is too small for a float."""
        logs = self._class_log_proba(X)
        return logs if prior is None else with_prior(logs, prior, self._names(), self.class_prior_)

    def estimate_prior(self, X: Any) -> dict[Any, float]:
        """How frequent each class is among rows without a label, by EM, if only that has changed since training.

        It takes the probabilities at their word: of a model that is too sure of itself, calibrate it first.
        """
        shares = estimated_shares(self._class_log_proba(X), self.class_prior_)
        return dict(zip(self._names(), shares.tolist(), strict=True))

    def evaluate(self, X: Any, y: Any, sample_weight: Any = None, prior: Any = None) -> Evaluation:
        """Accuracy, balanced accuracy, log-loss, Brier score, AUC, calibration and confusion on labelled rows.

        They should be rows the model has not learned from; rows without a label are passed over.
        """
        held = self._scored(X, y, sample_weight, prior)
        return judged(held, self.class_prior_)

    def lift(self, X: Any, y: Any, of: Any = None, parts: int = PARTS) -> Any:
        """A frame of rows ranked by the probability of one class, in equal parts: how many each part holds.

        `of` is the rarer of two classes unless you say so.
        """
        check_whole("parts", parts, 1)
        held = self._scored(X, y, None, None)
        if of is None and len(self.classes_) != 2:
            raise DataError(f"lift is of one class, and there are {len(self.classes_)}. Say of which.")
        place = rarer(held) if of is None else place_of(self._names(), of, "of")
        lines = [asdict(line) for line in lift_of(held, self._names(), place, parts)]
        return self._result(arrow_lines(lines))  # type: ignore[attr-defined]

    @needs_all_rows
    def choose_threshold(
        self, X: Any, y: Any, of: Any, precision: float | None = None, recall: float | None = None, folds: int = FOLDS,
        sample_weight: Any = None,
    ) -> Threshold:  # fmt: skip
        """The probability from which on to call a row `of`, for a wanted precision or recall, and what that costs.

        Every fold is told by a model of the others with these settings, so the rows are those to learn from; the model
        itself stays as it is. Give what comes back to `predict(X, threshold=...)`.
        """
        rate, wanted = wanted_rate(precision, recall)
        check_whole("folds", folds, 2)
        held, names = self._held_out(X, y, folds, sample_weight)
        return chosen_threshold(held, place_of(names, of, "of"), of, rate, wanted)

    def _names(self) -> list[Any]:
        """The classes as Python writes them."""
        check_is_fitted(self, "classes_")
        return list(self.classes_.tolist())

    def _scored(self, X: Any, y: Any, sample_weight: Any, prior: Any) -> ScoredRows:
        check_is_fitted(self, "classes_")
        if engine_holding(X) is None:
            X = inputs.opened(X, self._missing(), isinstance(y, str))  # type: ignore[attr-defined]
            proba, y = None, inputs.column_of(X, y) if isinstance(y, str) and inputs.is_table(X) else y
        else:
            proba, y = answers_and_labels(self.predict_proba(X, prior), X, y)
        inputs.refuse_other_labels(_known(y), self.classes_)
        labels = label_places(y, self._names())
        proba = self.predict_proba(X, prior) if proba is None else proba
        return scored_rows(proba, labels, _weights(sample_weight, len(labels)))

    def _held_out(self, X: Any, y: Any, folds: int, sample_weight: Any) -> tuple[ScoredRows, list[Any]]:
        """What models of the other folds say of the rows of each, which have no weight there; and the classes."""
        X = inputs.opened(X, self._missing(), isinstance(y, str))  # type: ignore[attr-defined]
        labels = inputs.column_of(X, y) if isinstance(y, str) and inputs.is_table(X) else y
        found, codes = inputs.labels_of(labels, X)
        weights, names = _weights(sample_weight, len(codes)), found.tolist()
        rows = np.flatnonzero((codes >= 0) & (weights > 0))
        if len(rows) < folds or len(np.unique(codes[rows])) < 2:
            raise DataError(f"{folds} folds need as many labelled rows at least, of two classes or more.")
        fold = np.full(len(codes), -1)
        fold[rows] = alike_folds(codes[rows], folds)
        proba = np.zeros((len(codes), len(names)))
        for number in range(folds):
            inside = np.flatnonzero(fold == number)
            other = clone(self).fit(X, y, sample_weight=np.where(fold == number, 0.0, weights))
            places = [names.index(name) for name in other.classes_.tolist()]
            proba[np.ix_(inside, places)] = other.predict_proba(X)[inside]
        return ScoredRows(proba[rows], codes[rows], weights[rows], fold[rows]), names


def alike_folds(codes: np.ndarray, folds: int) -> np.ndarray:
    """The fold of every row: each fold gets as many rows of every class as the others, within one, at random."""
    order = np.random.default_rng(0).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), dtype=np.int64)
    fold[order] = np.arange(len(codes)) % folds
    return fold


def bayes_error(model: Any, n: int = 100_000, random_state: Any = None) -> BestError:
    """The share of rows that even the best rule would tell wrong, if the model were the truth, by n rows drawn from it.

    Comes with its standard error. Where the assumptions of a model hold, its own error tends to this as rows grow; a
    model that does much worse on fresh rows is wrong about them. Of a `Classifier` it is that of the naive Bayes which
    it draws rows from.
    """
    check_is_fitted(model, "fitted_")
    check_whole("n, the number of rows,", n, 2)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    if isinstance(model.fitted_, Fitted):
        return best_error(model.fitted_, int(n), rng)
    if model.fitted_.net.cuts:
        raise DataError(
            "rows drawn from a network have intervals where numbers were cut, so it cannot tell them again."
        )
    drawn = as_arrow(model.sample(int(n), random_state=random_state))
    rows = drawn.drop_columns([str(model.fitted_.target)])
    return BestError.of(iter([model.predict_proba(rows)]))


def _weights(sample_weight: Any, rows: int) -> np.ndarray:
    found = inputs.weights_of(sample_weight, np.zeros((rows, 0)))
    return np.ones(rows) if found is None else found


def _known(y: Any) -> np.ndarray:
    """The labels that are known, to be looked at for their type."""
    values = list(y)
    known = [value for value in values if not (value is None or value != value)]
    return np.array(known, dtype=object) if known else np.array([])
