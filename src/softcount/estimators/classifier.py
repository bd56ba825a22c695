"""A classifier that decides for itself how classes are told."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.class_reports import arrow_lines
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.evaluate.calibrate import FOLDS, held_out, log_loss
from softcount.fitted.fitted_model import Fitted
from softcount.run.threads import Threads
from softcount.table.chunk import Split
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.classify.pool import Pool

FEW_ROWS = 30
"""Labelled rows below which the textbook's model is taken without asking."""
MOST_ROWS = 200_000
"""Rows that the pool is learned from at most; the counts are of all rows."""
DROPPED = "what told the classes was dropped: rows were added or taken away after the fit. Fit all at once to learn it."


class Classifier(NaiveBayes):
    """The classes of rows, told by whatever does best on rows held out, and explained by sums that add up.

    Beside naive Bayes as the textbook has it, ways that are learned from the same rows are tried on folds: naive Bayes
    with a weight for every column, a correlated block of the numbers, averaged one-dependence stars, tables and lines
    by conditional likelihood, and the same with pairs of columns. Those that help are added up, each with a weight
    (`selection_` shows all). `predict`, `predict_proba` and `explain` are of that sum; `query`, `sample`, `impute`,
    `params_` and the like are of naive Bayes, which `fitted_` holds. Fewer than 30 labelled rows, text and sparse
    tables get naive Bayes alone. With a `budget` in seconds what was not begun by then is not tried, and another
    machine may come to another sum.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 2)).astype(str)
    >>> y = np.where(X[:, 0] == X[:, 1], "same", "other")
    >>> model = Classifier().fit(X, y)
    >>> model.score(X, y)  # naive Bayes is right half of the time
    1.0
    >>> model.selection_["model"][0].as_py()
    'pairs of columns'
    """

    def __init__(
        self,
        kinds: Any = None,
        prior: Any = 1.0,
        missing: Any = None,
        budget: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        inputs.keep_settings(self, locals())

    estimate, class_prior, unlabelled_weight, max_iter, tol = "mean", None, 1.0, 1000, 1e-8
    calibration = dependence = weights = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Classifier:
        """Learn from rows and their classes."""
        if not isinstance(X, np.ndarray):
            X = inputs.opened(X, self._missing(), True)
        y = inputs.default_target(X) if y is None else y
        self._keep(self._learn(X, y, sample_weight))
        self._keep(self._decided(X, y, sample_weight))
        return self

    def _decided(self, X: Any, y: Any, sample_weight: Any) -> Fitted:
        """The fitted model with the pool that does best, and a line on it."""
        from softcount.classify.encoded_rows import EncodedRows, column_keys, level_sizes
        from softcount.classify.pool import learned_pool
        from softcount.classify.training import Training

        fitted = self.fitted_
        if fitted.n_groups < 2 or fitted.bag or fitted.schema.texts:
            return _noted(fitted, "naive Bayes as the textbook has it: there is one class, or text or a sparse table.")
        data = inputs.checked(self, X, reset=False)
        codes = self._codes(X, y)
        weights = inputs.weights_of(sample_weight, data)
        kept = np.flatnonzero((codes >= 0) & (True if weights is None else weights > 0))
        if len(kept) < FEW_ROWS:
            return _noted(fitted, f"naive Bayes as the textbook has it: fewer than {FEW_ROWS} rows have a label.")
        heavy = np.ones(len(codes)) if weights is None else weights
        with Threads(self.n_jobs) as threads:
            rows = EncodedRows.of(fitted.schema, list(fitted.table(data).chunks(threads.map)))
            part = kept if len(kept) <= MOST_ROWS else kept[np.linspace(0, len(kept) - 1, MOST_ROWS).astype(int)]
            copies = rows.copies()
            rows, levels = rows.without(copies) if copies else rows, level_sizes(fitted.schema)
            training = Training(rows.take(part), codes[part], heavy[part], fitted.n_groups, levels)
            pool = learned_pool(training, threads, self.budget)
            labelled = fitted.table(data, labels=codes.astype(np.int32), weights=weights)
            plain = held_out(labelled, self._class_plan(None), threads, Split(FOLDS, 0), self.classes_.tolist())
        pool = replace(pool, plain=float("nan") if plain is None else log_loss(plain[0]))
        keys = column_keys(fitted.schema)
        said = [f"column {keys[copy]!r} repeats {keys[lead]!r} and is left out." for copy, lead in copies.items()]
        return replace(fitted, pool=pool, notes=[*fitted.notes, *said, chosen_line(pool)])

    def _codes(self, X: Any, y: Any) -> np.ndarray:
        """The place among the classes of each row's label, -1 where it has none."""
        labels = inputs.column_of(X, y) if isinstance(y, str) and inputs.is_table(X) else y
        classes, codes = inputs.labels_of(labels, X)
        places = {name: place for place, name in enumerate(self.classes_.tolist())}
        order = np.array([places.get(name, -1) for name in np.asarray(classes).tolist()], dtype=np.int32)
        return np.where(codes >= 0, order[np.maximum(codes, 0)], -1) if len(order) else codes

    def _join(self, other: Fitted, sign: float = 1.0, grow: Collection[Key] | None = None) -> None:
        pools = self.fitted_.pool is not None or other.pool is not None
        super()._join(other, sign, grow)
        if pools:
            self._keep(_noted(replace(self.fitted_, pool=None), DROPPED))

    def to_linear(self) -> tuple[np.ndarray, np.ndarray]:
        """(coef, intercept) of naive Bayes, where it is all that tells the classes and is linear."""
        self._refuse_pool("to_linear")
        return super().to_linear()

    def to_quadratic(self, c1: Any = None, c2: Any = None) -> Any:
        """The boundary of naive Bayes, where it is all that tells the classes and columns are normal."""
        self._refuse_pool("to_quadratic")
        return super().to_quadratic(c1, c2)

    def _refuse_pool(self, asked: str) -> None:
        if self.pool_ is not None:
            raise DataError(f"{asked} is of naive Bayes, and here {' and '.join(self.pool_.names)} tell the classes.")

    @property
    def pool_(self) -> Pool | None:
        """What tells the classes: members and their weights. None where it is naive Bayes alone."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.pool

    @property
    def selection_(self) -> Any:
        """An Arrow table of what was tried: log-loss and accuracy on rows held out, and weight in the end."""
        tried: Sequence[Any] = () if self.pool_ is None else self.pool_.tried
        lines = [{**asdict(line), "setting": str(line.setting)} for line in tried]
        names = {"name": "model"}
        return arrow_lines([{names.get(key, key): said for key, said in line.items()} for line in lines])


def _noted(fitted: Fitted, note: str) -> Fitted:
    return replace(fitted, notes=[*fitted.notes, note])


def chosen_line(pool: Pool) -> str:
    """What was chosen, and what it gains over the textbook's model."""
    parts = sorted(zip(pool.names, pool.weights.tolist(), strict=True), key=lambda part: -part[1])
    said = ", ".join(f"{name} ({weight:.2f})" for name, weight in parts)
    return (
        f"classes are told by {said}: log-loss {pool.log_loss:.4g} on rows held out, where naive Bayes as the textbook "
        f"has it has {pool.plain:.4g}."
    )
