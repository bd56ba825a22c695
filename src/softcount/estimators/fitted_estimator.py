"""What every estimator shares: opening tables, answering, saving."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from softcount.core.counts import Counts
from softcount.core.lazy_scipy import sparse
from softcount.errors import warn
from softcount.estimators import inputs
from softcount.estimators.base import Estimator, KeptRecord
from softcount.estimators.class_reports import ClassReports
from softcount.estimators.engines import needs_all_rows, row_by_row
from softcount.estimators.exporting import Exporting
from softcount.estimators.inputs import Answer, attribute
from softcount.estimators.notebook_face import NotebookFace
from softcount.estimators.pages import explore_model, report_model, report_network, report_rows
from softcount.estimators.parameters import check_whole
from softcount.estimators.result_frames import arrow_table, as_arrow, filled
from softcount.evaluate.scores import as_named, label_places
from softcount.fitted.answers import CLASS, COUNT, answering_model, dependence_warning, fills, query, sampled
from softcount.fitted.explain import explained
from softcount.fitted.fitted import Fitted
from softcount.learn.em import Stop
from softcount.learn.settings import Plan
from softcount.models.declare import Declared, read_kinds
from softcount.run.local import AtOnce, Threads
from softcount.table import Table, open_table, read_labels
from softcount.table.chunk import Chunk, Chunks
from softcount.table.schema import Key, apart

FEW_ROWS = 64
"""Rows up to which an array of numbers is scored as it is."""
BY_ROW = (Fitted.proba, Fitted.log_proba, Fitted.score_rows, Fitted.log_joint)
"""What is asked of rows one by one."""


class Posteriors:
    """The posterior of the parameters in every group, by column: `posterior_["column"]`."""

    def __init__(self, fitted: Fitted) -> None:
        self._fitted = fitted

    def __getitem__(self, key: Key) -> Any:
        return self._fitted.posterior(key)

    def keys(self) -> list[Key]:
        """The columns and blocks that are modelled."""
        return [leaf.key for leaf in self._fitted.model.leaves]

    def __iter__(self) -> Any:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())


class FittedEstimator(KeptRecord, NotebookFace, ClassReports, Exporting, Estimator):
    """An estimator around a `Fitted` model in `fitted_`."""

    fitted_: Fitted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _plan(self, stop: Stop, **more: Any) -> Plan:
        return Plan(declared=read_kinds(self.kinds), prior=self.prior, estimate=self.estimate, stop=stop, **more)

    def _forced(self, declared: Declared, data: Any, target: Key | None = None) -> dict[Key, Any]:
        """Kinds that the user's families force on columns; one family for all forces it on every column."""
        if declared.everything is None or hasattr(data, "tocsr"):
            return {key: kind for key, kind in inputs.declared_kinds(data).items() if key != target} | declared.forced
        columns = inputs.known_columns(data) or [place for width in np.shape(data)[1:2] for place in range(width)]
        beside = data.source.aside if isinstance(data, Table) else ()  # what a folder has besides its documents
        apart = {target, *beside}
        return {key: declared.everything.reads for key in columns if key not in apart}

    def _closed(self, X: Any) -> tuple[Fitted, Table]:
        check_is_fitted(self, "fitted_")
        return self.fitted_, self.fitted_.table(self._as_fitted(inputs.checked(self, X, reset=False)))

    def _as_fitted(self, data: Any) -> Any:
        """Sparse where the model is of a sparse block, dense where it is not."""
        if self.fitted_.bag and isinstance(data, np.ndarray):
            return sparse.csr_matrix(data)
        return data.toarray() if sparse.issparse(data) and not self.fitted_.bag else data

    def _answer(self, X: Any, question: Callable[..., Answer], *how: Any) -> Answer:
        """What the fitted model has to say of a table, with a warning of what it did not know in it."""
        few = self._few(X) if question in BY_ROW else None
        if few is not None:
            return question(self.fitted_, few, AtOnce())
        fitted, table = self._closed(X)
        with Threads(self.n_jobs) as threads:
            answer = question(fitted, table, threads, *how)
        inputs.warn_of_unseen(table)
        return answer

    def _few(self, X: Any) -> Chunks | None:
        """A few rows of plain numbers, one for every column of the model: there is nothing to read or to warn of.

        Looking at one row as at a table took twice as long as scoring it.
        """
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not 0 < len(X) <= FEW_ROWS:
            return None
        fitted: Fitted | None = getattr(self, "fitted_", None)
        if fitted is None or hasattr(self, "feature_names_in_") or not fitted.schema.is_plain(X.shape[1]):
            return None
        if not np.isfinite(X).all():
            return None
        codes, wide = np.empty((len(X), 0), dtype=np.uint8), np.empty((len(X), 0), dtype=np.int32)
        return Chunks([Chunk(0, len(X), X, codes, wide)], len(X))

    @row_by_row
    def predict_proba(self, X: Any) -> np.ndarray:
        """(rows x groups) probability of each group given what the row says."""
        return self._answer(X, Fitted.proba)

    @row_by_row
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`, exact where a probability is too small for a float."""
        return self._answer(X, Fitted.log_proba)

    @row_by_row
    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density of each row under the model, groups summed out."""
        return self._answer(X, Fitted.score_rows)

    @row_by_row
    def explain(self, X: Any, against: Any = None) -> Any:
        """A frame of what each column adds to the log-odds of the class against the runner-up.

        The columns add up exactly, `(prior)` being what the classes' shares add; a missing cell adds 0. `against` names
        another class to compare with; rows of that class itself get 0. Where a column is called "(prior)" itself, ours
        is "((prior))", and so with every name of ours beside those of columns.
        """
        fitted, table = self._closed(X)
        parts = explained(fitted, table, against).named(fitted)
        inputs.warn_of_outside(table)
        return self._result(arrow_table(parts), X)

    def sample(self, n: int = 1, given: Any = None, random_state: Any = None) -> Any:
        """A frame of n new rows; cells named in `given` are held, and the others follow from them."""
        self._warn_of_dependence(None)
        return self._result(arrow_table(self._drawn(sampled, n, given, random_state)))

    def _drawn(self, draw: Callable[..., Answer], n: int, given: Any, random_state: Any, least: int = 0) -> Answer:
        check_is_fitted(self, "fitted_")
        check_whole("n, the number of rows,", n, least)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        return draw(self.fitted_, int(n), given, rng)

    def query(self, of: Key | None = None, given: Any = None) -> Any:
        """Any column from any others: a dict level -> probability, or mean, variance, pdf and quantile of a number.

        What is given of a column is its value or a condition: `between(100, 200)`, `above(5)`, `below(5)`,
        `any_of("disc", "rim")`, `not_("disc")`; short for them a range (100, 200) or a list. Without `of` every column
        that is not given is answered, by name.
        """
        check_is_fitted(self, "fitted_")
        answer = query(self.fitted_, of, given)
        self._warn_of_dependence(None if of is None else [of, *(given if isinstance(given, Mapping) else ())])
        return answer

    @property
    def answering_model_(self) -> str:
        """The model that `query`, `sample`, `impute` and `explore` answer from: naive Bayes or a mixture."""
        check_is_fitted(self, "fitted_")
        return answering_model(self.fitted_)

    def _warn_of_dependence(self, columns: Any) -> None:
        said = dependence_warning(getattr(self, "fitted_", None), columns)
        if said is not None:
            warn(said)

    @row_by_row
    def impute(self, X: Any) -> Any:
        """X with its holes filled, in the type it came in: the expected number, or the likeliest level."""
        fitted, table = self._closed(X)
        if inputs.documents_in(self, X, reset=False) is not None:
            return X  # what a missing document said cannot be made up
        found = fills(fitted, table)
        if found:
            self._warn_of_dependence(None)
        inputs.warn_of_kept(table)
        return filled(X, found, [spec.key for spec in fitted.schema.fields])

    @needs_all_rows
    def augment(self, X: Any) -> Any:
        """A frame of every row once per group, with the expected count of that row in that group."""
        proba = self.predict_proba(X)
        rows, groups = proba.shape
        X = X if (documents := inputs.documents_in(self, X, reset=False)) is None else documents
        table = as_arrow(X).take(pa.array(np.repeat(np.arange(rows), groups)))
        names = [self.fitted_.names[g] for g in range(groups)] * rows
        for name, values in ((CLASS, names), (COUNT, proba.ravel())):
            table = table.append_column(apart(name, table.column_names), pa.array(values))
        return self._result(table, X, np.repeat(np.arange(rows), groups))

    params_: dict[Key, dict[str, np.ndarray]] = attribute(
        "params", "The parameters of every column or block, by its name, in every group."
    )
    levels_: dict[Key, Sequence[object]] = attribute("levels", "The levels of every column that has some.")
    counts_: Counts = attribute("counts", "What was counted: all that the parameters come from, besides the prior.")

    @property
    def posterior_(self) -> Posteriors:
        """The posterior of the parameters, column by column.

        Rows without a label, and missing cells of a correlated block, count as if what EM expects of them were known:
        intervals are then too narrow.
        """
        return Posteriors(self.fitted_)

    notes_: list[str] = attribute("notes", "What the owner of the table wants to know.")
    n_parameters_: int = attribute("n_parameters", "How many parameters may vary freely.")

    @property
    def influence_(self) -> dict[Key, float]:
        """What each column says of the classes, in nats, the largest first: see `influence`."""
        return dict(self.fitted_.influence())

    def explore(self, X: Any = None) -> Any:
        """A page to play with the model, any column from any others: `model.explore().save("explore.html")`.

        The first rows of X, where it is given, go into the page and can be loaded there.
        """
        check_is_fitted(self, "fitted_")
        return explore_model(self.fitted_, rows=None if X is None else self._closed(X)[1])

    def report(self, X: Any = None, y: Any = None, redact: bool = False) -> Any:
        """A page on the model with pictures: `model.report(X, y).save("report.html")`; also .json and .txt.

        With X it shows rows, drift against the training table where that is known and, with the classes y (an array, or
        the name of a column in X), how good the model is on these rows. Redacted, no cell is in it, and no level of
        fewer than five rows.
        """
        check_is_fitted(self, "fitted_")
        self._recorded()
        if X is None:
            return report_model(self.fitted_, None, redact)
        if not isinstance(self.fitted_, Fitted):  # a network tells the classes
            return report_network(self.fitted_, self.fitted_.table(X), redact)
        fitted, table = self._closed(X)
        labels = None if fitted.classes is None else self._label_places(X, y)
        with Threads(self.n_jobs) as threads:
            name = Path(X).name if isinstance(X, str | os.PathLike) else "the table given"
            return report_rows(fitted, table, threads, name, labels, redact)

    def _label_places(self, X: Any, y: Any) -> np.ndarray | None:
        """The places of rows' classes among those of the model; None where no class is known."""
        keys = open_table(X).keys if y is None else []
        column = self.fitted_.target if y is None and self.fitted_.target in keys else y
        if column is None:
            return None
        labels = read_labels(X, column) if isinstance(column, str) else list(np.asarray(y, dtype=object))
        return label_places(as_named(labels, self.fitted_.names), self.fitted_.names)

    def save(self, path: Any) -> None:
        """Write the model to a file that `softcount.load` reads: counts and all, so it can be merged and updated."""
        from softcount.estimators.saving import save_estimator

        check_is_fitted(self, "fitted_")
        self._recorded()
        save_estimator(self, path)
