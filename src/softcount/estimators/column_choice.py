"""Column selection, for known classes and for classes to be found."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace
from sklearn.base import clone

from softcount.bayes.evidence import class_evidence, with_plain_parameters
from softcount.errors import DataError, DataWarning
from softcount.estimators import inputs
from softcount.estimators.base import declare_like
from softcount.estimators.naive_bayes import ClassEstimator, NaiveBayes
from softcount.estimators.parameters import Parameter, check_whole
from softcount.estimators.result_frames import arrow_lines, frame_like
from softcount.evaluate.columns import ColumnScores, column_scores, select_forward
from softcount.evaluate.ranking import FOLDS
from softcount.fitted.explain import measure_column_evidence, measure_evidence_under
from softcount.learn.record import Plan
from softcount.run.local import Threads
from softcount.table import Table
from softcount.table.chunk import Split
from softcount.table.schema import Key

COUNTING = (
    "kinds", "prior", "estimate", "class_prior", "unlabelled_weight", "max_iter", "tol", "missing", "n_jobs",
)  # fmt: skip
"""Settings of naive Bayes that say what is counted and how."""
MOST_ROUNDS = 20
"""Sets of columns that are tried for classes to be found; they repeat after three or four."""


class ColumnChoice(Struct, frozen=True, eq=False):
    """Result of `select_columns`.

    Attributes
    ----------
    columns : list
        Names of the selected columns, the best first.
    table : DataFrame
        A line for each column: what it adds, and whether it was selected (`kept`). In the library of the rows.
    model : estimator or None
        A model of the selected columns. It takes the whole table and ignores the other columns. If no column was
        selected, it is None, or a mixture with one class.
    criterion : {'evidence', 'log-loss'}
        The criterion.
    """

    columns: list[Key]
    table: Any
    model: Any
    criterion: str

    def __str__(self) -> str:
        kept = ", ".join(map(str, self.columns)) or "none"
        return f"{len(self.columns)} of {len(self.table)} columns by {self.criterion}: {kept}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"


def select_columns(
    model: Any, X: Any, y: Any = None, max_columns: int | None = None, criterion: str = "evidence"
) -> ColumnChoice:
    """Select the columns that predict the classes, or that differ between the classes a mixture finds.

    "evidence" selects a column if its marginal likelihood is higher with parameters for each class than with common
    ones; `adds` is the difference in nats. "log-loss" adds columns one by one, as long as the cross-validated log-loss
    falls by more than a standard error. Of two columns with the same information it selects one.

    Parameters
    ----------
    model : NaiveBayes, Classifier, AODE or Mixture
        How to fit. It is not changed and need not be fitted.
    X : DataFrame, Arrow table, file name or array of shape (n_rows, n_columns)
        Rows.
    y : array of shape (n_rows,) or str, default=None
        Classes, or the name of the column of `X` that holds them. Not used for a mixture.
    max_columns : int, default=None
        Maximum number of columns.
    criterion : {'evidence', 'log-loss'}, default='evidence'
        The criterion. Mixtures take "evidence" only.

    Returns
    -------
    ColumnChoice
        The columns, a table of what each adds, and a model of the selected columns.

    See Also
    --------
    compare : Compares classifiers on held-out rows.
    rank_densities : Ranks the distributions of a column.

    References
    ----------
    .. [1] N. Friedman, D. Geiger and M. Goldszmidt (1997). "Bayesian network classifiers". Machine Learning 29 (2-3),
       131-163.
    .. [2] A. E. Raftery and N. Dean (2006). "Variable selection for model-based clustering". Journal of the American
       Statistical Association 101 (473), 168-178.

    Examples
    --------
    >>> rows = {"a": ["x", "x", "y", "y"] * 5, "b": ["u", "v"] * 10}
    >>> chosen = select_columns(NaiveBayes(), rows, ["no", "no", "yes", "yes"] * 5)
    >>> chosen.columns, str(chosen)
    (['a'], '1 of 2 columns by evidence: a')
    """
    Parameter(None, "", ("evidence", "log-loss")).check("criterion", criterion)
    if max_columns is not None:
        check_whole("max_columns", max_columns, 1)
    if not isinstance(model, ClassEstimator):
        if criterion != "evidence":
            raise DataError("if classes are to be found, columns are chosen by evidence.")
        return _select_for_groups(model, X, max_columns)
    if criterion == "evidence":
        plain = _fit_quietly(make_plain(model), X, y)
        keys, adds = _list_keys(plain), _rank(measure_column_evidence(plain.fitted_))
        kept = [key for key in adds if adds[key] > 0][:max_columns]
        lines = _make_lines(adds, kept)
    else:
        scores = score_columns(model, X, y)
        keys, steps = scores.keys, select_forward(scores, max_columns)
        kept = [keys[step.place] for step in steps if step.kept]
        lines = [{"column": str(keys[step.place]), **asdict(step)} for step in steps]
        for line in lines:
            del line["place"]
    table = frame_like(X, arrow_lines(lines))
    return ColumnChoice(kept, table, _fit_without(model, keys, kept, X, y) if kept else None, criterion)


def score_columns(model: Any, X: Any, y: Any, folds: int = FOLDS) -> ColumnScores:
    """Scores of every column for each labelled row, by naive Bayes models of the other folds."""
    table, plan, found = open_labelled(model, X, y)
    with Threads(model.n_jobs) as threads:
        return column_scores(table, plan, threads, Split(folds, 0), found)


def make_plain(model: Any) -> NaiveBayes:
    """Naive Bayes with a classifier's settings, without what is learned on top of it."""
    settings = model.get_params(deep=False)
    return NaiveBayes(**{name: settings[name] for name in COUNTING if name in settings})


def open_labelled(model: Any, X: Any, y: Any) -> tuple[Table, Plan, list[Any] | None]:
    """Rows and their labels as naive Bayes with these settings would read them, and how it would learn from them.

    The classes are those of `y`; None if `y` names a column of X.
    """
    plain = _fit_quietly(make_plain(model), X, y)
    _list_keys(plain)
    fitted, target = plain.fitted_, y if isinstance(y, str) and inputs.is_table(X) else None
    data = plain._as_fitted(inputs.check_rows(plain, X, reset=False))
    found, codes = (None, None) if target is not None else inputs.code_weighted_classes(y, data, None)
    table = fitted.table(data, target=target, labels=codes)
    return table, replace(plain._class_plan(target), declared=declare_like(fitted.model.leaves)), found


def _select_for_groups(model: Any, X: Any, most: int | None) -> ColumnChoice:
    """Fit, keep the columns that the classes found differ in, and fit again, until nothing changes; the best fit wins.

    Sets of columns are compared by the evidence of the whole table, of which the columns left out are of one class.
    """
    alone = clone(model).set_params(n_components=1)
    single = _fit_quietly(clone(alone), X)
    keys = _list_keys(single)
    kept, tried = keys, {}
    for _ in range(MOST_ROUNDS):
        fitted = _fit_without(model, keys, kept, X)
        one = _fit_without(alone, keys, kept, X)
        adds = _rank(measure_evidence_under(single.fitted_, single._read_rows(X), fitted.predict_proba(X)))
        tried[tuple(kept)] = (_compute_evidence(fitted) - _compute_evidence(one), fitted, adds)
        best_ones = [key for key in adds if adds[key] > 0][:most]
        kept = [key for key in keys if key in best_ones]
        if not kept or tuple(kept) in tried:
            break
    allowed = {columns: found for columns, found in tried.items() if most is None or len(columns) <= most}
    best = max(allowed or tried, key=lambda columns: tried[columns][0])
    gain, fitted, adds = tried[best]
    chosen = sorted(best, key=lambda key: -adds[key]) if gain > 0 else []
    table = frame_like(X, arrow_lines(_make_lines(adds, chosen)))
    return ColumnChoice(chosen, table, fitted if chosen else single, "evidence")


def _compute_evidence(mixture: Any) -> float:
    fitted = with_plain_parameters(mixture.fitted_)
    return class_evidence(fitted, float(mixture.log_likelihood_), labelled=False)


def _rank(adds: Mapping[Key, float]) -> dict[Key, float]:
    return dict(sorted(adds.items(), key=lambda pair: -pair[1]))


def _make_lines(adds: Mapping[Key, float], kept: list[Key]) -> list[dict[str, Any]]:
    return [{"column": str(key), "adds": gain, "kept": key in kept} for key, gain in adds.items()]


def _list_keys(model: Any) -> list[Key]:
    """The columns and blocks of a fitted model."""
    keys = [leaf.key for leaf in model.fitted_.model.leaves]
    if model.fitted_.bag:
        raise DataError(
            "the table is one block of counts, whose columns cannot be chosen one by one. Give a dense array."
        )
    return keys


def _fit_without(model: Any, keys: list[Key], kept: list[Key], X: Any, *y: Any) -> Any:
    """A new model of the kept columns, which ignores the others."""
    own = model.kinds if isinstance(model.kinds, Mapping) else {}
    if model.kinds is not None and not isinstance(model.kinds, Mapping):
        own = dict.fromkeys(kept, model.kinds)
    gone = [column for key in keys if key not in kept for column in (key if isinstance(key, tuple) else (key,))]
    kinds = {key: kind for key, kind in own.items() if key in kept or key not in keys} | dict.fromkeys(gone, "ignore")
    return _fit_quietly(clone(model).set_params(kinds=kinds), X, *y)


def _fit_quietly(model: Any, X: Any, *y: Any) -> Any:
    """Fit a model without its warnings: it is one of several."""
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        return model.fit(X, *y)
