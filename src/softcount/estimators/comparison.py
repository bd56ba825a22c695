"""Classifiers compared on one table: the same held-out rows for all, and ties named as ties."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from softcount.classify.encode import EncodedColumns, EncodedRows
from softcount.core.special import log_sum_exp
from softcount.errors import DataError, SoftcountError
from softcount.estimators import inputs
from softcount.estimators.classifier import AODE, Classifier
from softcount.estimators.inputs import find_library
from softcount.estimators.mixture import Mixture
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.estimators.network import BayesNet
from softcount.estimators.parameters import check_whole
from softcount.estimators.result_frames import arrow_lines, as_frame
from softcount.evaluate.calibrate import SMALLEST
from softcount.evaluate.ranking import FOLDS, Behind, ScoredRows, compare_losses, rank_by_loss, verdict
from softcount.evaluate.scores import Evaluation, evaluate_rows
from softcount.pictures.chart import PAGE, Axis, Chart, class_lines
from softcount.pictures.inline_html import boxed, note_lines, small_table
from softcount.run.local import Threads
from softcount.run.progress import Tell, end_on_interrupt, keep_quiet
from softcount.sources.frames import refuse_elsewhere
from softcount.table import Table, open_table
from softcount.table.chunk import Chunk
from softcount.table.column_summary import units_of
from softcount.table.schema import MISSING, Key, Schema

MANY_ROWS = 15_000
"""Rows above which a third is held out once: its standard errors are small, and everything is fitted once."""
MOST_COMPARED_ROWS = 100_000
"""Rows that are compared on; of more, some are drawn."""
MOST_CLASSES = 100
"""Classes beyond which a target is more likely a number or a name."""
ONE_THREAD_ROWS = 10_000
"""Rows up to which one thread does it all: boosting of 150 rows waits for its threads most of the time."""
BOOSTED_LEVELS = 255
"""Levels of a column that boosting takes as such; those of others are numbers to it, in order of their names."""
CLUSTERS_PER_CLASS, ROWS_PER_CLUSTER, ROWS_PER_CLASS = 3, 20, 5_000
"""Limits of a mixture per class: clusters, rows that each needs, rows learned from (of more, some are drawn)."""
FEWEST_CURVE_ROWS = 20
"""Rows of the shortest training set of a learning curve."""

Splits = Sequence[tuple[np.ndarray, np.ndarray]]
"""Places of training rows and of held-out rows."""


class ComparedTable(Struct, frozen=True, eq=False):
    """The rows that all learn from: as an Arrow table for ours, as one matrix for others; `labels` are 0, 1, ...

    In the matrix numbers come first, NaN where missing, then the codes of levels, 0 where missing.
    """

    arrow: Any
    matrix: np.ndarray
    numbers: int
    labels: np.ndarray
    keys: tuple[Key, ...]

    @classmethod
    def of(cls, schema: Schema, chunks: list[Chunk], labels: np.ndarray) -> ComparedTable:
        columns = {}
        for spec in schema.used:
            store, slot = schema.places[spec.key]
            cells = np.concatenate([getattr(chunk, store)[:, slot] for chunk in chunks])
            if store == "reals":
                columns[str(spec.key)] = pa.array(cells, from_pandas=True)
            else:
                levels = spec.levels if len(set(map(type, spec.levels))) == 1 else list(map(str, spec.levels))
                columns[str(spec.key)] = pa.array([None, *levels, None]).take(pa.array(cells))
        rows = EncodedRows.of(schema, chunks)
        matrix = np.hstack([rows.numbers, rows.codes])
        return cls(pa.table(columns), matrix, rows.numbers.shape[1], labels, EncodedColumns.of(schema).keys)

    def take(self, rows: np.ndarray) -> ComparedTable:
        return ComparedTable(self.arrow.take(rows), self.matrix[rows], self.numbers, self.labels[rows], self.keys)

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1


# -- the classifiers


class Candidate(Struct, frozen=True):
    """A classifier to compare, under its name; `make` gives a new one for a table.

    A `generative` one has a density of whole rows that can be compared with that of others: numbers as numbers.
    """

    name: str
    make: Callable[[ComparedTable], Any]
    ours: bool = True
    generative: bool = False

    def fit_predict(self, train: ComparedTable, test: ComparedTable) -> tuple[Any, np.ndarray, float]:
        """The model, (rows x classes) probabilities of the held-out rows, and the seconds that both took."""
        start = time.perf_counter()
        with ignore_warnings(), threadpool_limits(1 if len(train.labels) <= ONE_THREAD_ROWS else None):
            model = self.make(train)
            model.fit(train.arrow if self.ours else train.matrix, train.labels)
            found = model.predict_proba(test.arrow if self.ours else test.matrix)
        proba = np.zeros((len(found), train.classes))  # 0 for a class that is not in the training rows
        proba[:, np.asarray(model.classes_, dtype=int)] = found
        return model, proba, time.perf_counter() - start

    def size(self, model: Any) -> int | None:
        """Bytes of the saved model, if it is ours."""
        if not self.ours:
            return None
        found = 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.sc"
            for part in getattr(model, "mixtures_", [model]):
                part.save(path)
                found += path.stat().st_size
        return found


ignore_warnings = partial(warnings.catch_warnings, action="ignore")
"""Ignores warnings: a model here is one of several, and of a part of the rows."""


def list_candidates(schema: Schema, kinds: Mapping[Any, Any], seed: int) -> list[Candidate]:
    """Everything that is compared, the simplest first; other densities of numbers only if there are numbers."""
    numbers = [str(spec.key) for spec in schema.stored("reals") if str(spec.key) not in kinds]

    def naive_bayes(number_kind: str | None = None, **how: Any) -> Callable[[ComparedTable], Any]:
        own = {**(dict.fromkeys(numbers, number_kind) if number_kind else {}), **kinds}
        return lambda _: NaiveBayes(own, **how)

    of_numbers = [
        Candidate("discretised naive Bayes", naive_bayes("cut"), generative=True),
        Candidate("kernel naive Bayes", naive_bayes("kde"), generative=True),
        Candidate("weighted discretised naive Bayes", naive_bayes("cut", weights="columns")),
    ]
    return [
        Candidate("naive Bayes", naive_bayes(), generative=True),
        Candidate("weighted naive Bayes", naive_bayes(weights="columns")),
        *(of_numbers if numbers else ()),
        Candidate("tree-augmented (TAN)", lambda _: BayesNet("tan", prior="row", kinds=dict(kinds))),
        Candidate("AODE", lambda _: AODE(dict(kinds))),
        Candidate("mixture per class", lambda _: MixturePerClass(dict(kinds), seed), generative=True),
        Candidate("logistic regression", _logistic_regression, ours=False),
        Candidate("Classifier", lambda _: Classifier(dict(kinds))),
        Candidate("gradient boosting", partial(_gradient_boosting, seed=seed), ours=False),
    ]


def _logistic_regression(train: ComparedTable) -> Any:
    """Standardised numbers, missing ones at the mean with an indicator; one-hot categories, rare ones together."""
    filled = SimpleImputer(add_indicator=True, keep_empty_features=True)
    levels = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3)
    columns = make_column_transformer(
        (make_pipeline(filled, StandardScaler()), list(range(train.numbers))),
        (levels, list(range(train.numbers, train.matrix.shape[1]))),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


def _gradient_boosting(train: ComparedTable, seed: int) -> Any:
    tops = train.matrix[:, train.numbers :].max(axis=0, initial=0)
    levels = [train.numbers + place for place, top in enumerate(tops) if top < BOOSTED_LEVELS]
    return HistGradientBoostingClassifier(categorical_features=levels or None, random_state=seed)


class MixturePerClass:
    """Each class a mixture of up to three clusters with independent columns, and Bayes' rule over the classes."""

    def __init__(self, kinds: dict[Any, Any], seed: int) -> None:
        self.kinds, self.seed = kinds, seed

    def fit(self, X: Any, y: np.ndarray) -> MixturePerClass:
        """Learn from an Arrow table and the classes of its rows; all mixtures read their rows under one schema."""
        schema = NaiveBayes(self.kinds).fit(X, y).fitted_.schema
        self.classes_, sizes = np.unique(y, return_counts=True)
        self.shares_, self.mixtures_ = np.log(sizes / sizes.sum()), []
        for name in self.classes_:
            rows = np.flatnonzero(y == name)
            if len(rows) > ROWS_PER_CLASS:
                rows = np.sort(np.random.default_rng(self.seed).permutation(rows)[:ROWS_PER_CLASS])
            clusters = max(1, min(CLUSTERS_PER_CLASS, len(rows) // ROWS_PER_CLUSTER))
            mixture = _MixtureOfSchema(clusters, self.kinds, n_init=2, random_state=self.seed)
            mixture._schema = schema
            self.mixtures_.append(mixture.fit(X.take(rows)))
        return self

    def joint(self, X: Any) -> np.ndarray:
        """(rows x classes) log-density of each row and class together."""
        found = np.column_stack([mixture.score_samples(X) for mixture in self.mixtures_])
        return np.asarray(found + self.shares_)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density of each row."""
        return np.asarray(log_sum_exp(self.joint(X), axis=1))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """(rows x classes) logarithms of the probability of every class."""
        joint = self.joint(X)
        return np.asarray(joint - np.asarray(log_sum_exp(joint, axis=1))[:, None])

    def predict_proba(self, X: Any) -> np.ndarray:
        """(rows x classes) probability of every class."""
        return np.asarray(np.exp(self.predict_log_proba(X)))


class _MixtureOfSchema(Mixture):
    """A mixture that reads its rows as the whole table is read, so that densities of several can be compared."""

    _schema: Schema

    def _open(self, data: Any, **reading: Any) -> Table:
        return open_table(data, schema=self._schema, missing=self._schema.missing, weights=reading["weights"])


# -- learning curves


class LearningCurves(Struct, frozen=True, eq=False):
    """Log-loss and accuracy of each classifier by number of training rows.

    Attributes
    ----------
    names : list of str
        Names of the classifiers.
    sizes : ndarray of shape (n_sizes,)
        Numbers of training rows.
    log_loss : ndarray of shape (n_classifiers, n_sizes)
        Held-out log-loss; NaN if a classifier could not be fitted.
    accuracy : ndarray of shape (n_classifiers, n_sizes)
        Held-out accuracy.
    """

    names: list[str]
    sizes: np.ndarray
    log_loss: np.ndarray
    accuracy: np.ndarray

    @property
    def table(self) -> Any:
        """An Arrow table with a line for every classifier and size."""
        columns = {
            "model": np.repeat(self.names, len(self.sizes)),
            "rows": np.tile(self.sizes, len(self.names)),
            "log_loss": self.log_loss.ravel(),
            "accuracy": self.accuracy.ravel(),
        }
        return pa.table(columns)

    @property
    def words(self) -> str:
        """Which classifier has the lowest log-loss from how many rows on.

        >>> one = np.array([[0.5, 0.4, 0.4], [0.9, 0.5, 0.3]])
        >>> LearningCurves(["plain", "pairs"], np.array([20, 50, 100]), one, one).words
        'lowest log-loss: plain from 20 rows, pairs from 100 rows.'
        """
        leaders = [self.names[place] for place in np.nanargmin(self.log_loss, axis=0)]
        turns = [place for place, name in enumerate(leaders) if place == 0 or name != leaders[place - 1]]
        return f"lowest log-loss: {', '.join(f'{leaders[at]} from {self.sizes[at]:,} rows' for at in turns)}."

    @property
    def ends(self) -> tuple[float, float]:
        """The range of log-loss to draw: curves above three times the median would press the others together."""
        known = self.log_loss[np.isfinite(self.log_loss)]
        low, high = float(known.min()), float(min(known.max(), 3.0 * np.median(known)))
        return low, high if high > low else low + 1.0

    def only(self, names: Sequence[str]) -> LearningCurves:
        """Return the curves of these classifiers, in this order."""
        places = [self.names.index(name) for name in names]
        return LearningCurves(list(names), self.sizes, self.log_loss[places], self.accuracy[places])

    def chart(self, measure: str = "log_loss") -> Chart:
        """Describe the curves of the log-loss or of the accuracy, with a logarithmic axis of training rows."""
        x, name = np.log10(self.sizes), measure.replace("_", "-")
        ticks = {float(at): f"{size:,}" for at, size in zip(x, self.sizes, strict=True)}
        title = f"{name.capitalize()} on held-out rows, by training rows"
        y = Axis(name, (0.0, 1.05 * self.ends[1])) if measure == "log_loss" else Axis(name)
        lines = class_lines(self.names, x, getattr(self, measure))
        return Chart(title, lines, Axis("training rows", ticks=ticks), y, self.names, title, PAGE, 320)

    def svg(self) -> str:
        """Draw the curves of the log-loss.

        Returns
        -------
        str
            An SVG file.
        """
        return self.chart().draw().svg_file()


def list_sizes(least: int, most: int) -> list[int]:
    """Round numbers (1, 2, 5, 10, ...) from one to another, then the other.

    >>> list_sizes(20, 700), list_sizes(20, 105)
    ([20, 50, 100, 200, 500, 700], [20, 50, 105])
    """
    round_ones = [step * 10**power for power in range(len(str(most))) for step in (1, 2, 5)]
    return [*(size for size in round_ones if least <= size <= most / 1.1), most]


def draw_nested_rows(labels: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Indices of `size` rows with at least one of every class; a smaller draw is a subset of a larger one.

    >>> draw_nested_rows(np.array([0, 0, 0, 0, 1]), 2, 0).size
    2
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    first = np.unique(labels[order], return_index=True)[1]
    rest = np.delete(np.arange(len(order)), first)
    return np.sort(order[np.concatenate([first, rest])[:size]])


def _compute_curves(
    compared: Mapping[str, Candidate], scores: Mapping[str, Score], table: ComparedTable, splits: Splits, seed: int,
    tell: Tell,
) -> LearningCurves:  # fmt: skip
    """Every classifier learned from ever larger parts of its training rows; the last size is all of them."""
    least = max(FEWEST_CURVE_ROWS, 2 * table.classes)
    sizes = list_sizes(least, min(len(train) for train, _ in splits))
    found = np.full((2, len(compared), len(sizes)), np.nan)
    for column, size in enumerate(sizes[:-1]):
        tell("learning curve", column, len(sizes))
        parts = [(train[draw_nested_rows(table.labels[train], size, seed)], test) for train, test in splits]
        for line, candidate in enumerate(compared.values()):
            try:
                proba = [candidate.fit_predict(table.take(train), table.take(test))[1] for train, test in parts]
            except (SoftcountError, ValueError):
                continue
            labels = np.concatenate([table.labels[test] for _, test in parts])
            losses, wrong = _score_rows(np.concatenate(proba), labels)
            found[:, line, column] = losses.mean(), (wrong == 0).mean()
    for line, name in enumerate(compared):
        found[:, line, -1] = scores[name].figures.log_loss, scores[name].figures.accuracy
    return LearningCurves(list(compared), np.array(sizes), *found)


def _score_rows(proba: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log-loss of each row, and 1 for each that is predicted wrongly."""
    losses = -np.log(np.maximum(proba[np.arange(len(labels)), labels], SMALLEST))
    return losses, (proba.argmax(axis=1) != labels).astype(float)


# -- the comparison


class Score(Struct, frozen=True, eq=False):
    """Figures of one classifier on held-out rows.

    Attributes
    ----------
    name : str
        Name of the classifier.
    figures : Evaluation
        Accuracy, log-loss, calibration and further figures.
    losses : ndarray of shape (n_rows,)
        Log-loss of each held-out row.
    wrong : ndarray of shape (n_rows,)
        1 for each row that is predicted wrongly, else 0.
    seconds : float
        Time of a fit and its predictions, the mean of the folds.
    size : int or None
        Bytes of the saved model; None for scikit-learn's models.
    joint : float or None
        Mean log-loss of whole rows including the class, for generative models.
    behind : Behind
        Difference of the log-loss from the best, and its standard error.
    missed : Behind
        Difference of the error rate from the best, and its standard error.
    """

    name: str
    figures: Evaluation
    losses: np.ndarray
    wrong: np.ndarray
    seconds: float
    size: int | None
    joint: float | None = None
    behind: Behind = field(default_factory=lambda: Behind(0.0, 0.0))
    missed: Behind = field(default_factory=lambda: Behind(0.0, 0.0))

    def __repr__(self) -> str:
        loss, accuracy = self.figures.log_loss, self.figures.accuracy
        return f"<{type(self).__name__} of {self.name}: log-loss {loss:.4g}, accuracy {accuracy:.4g}>"

    def line(self) -> dict[str, Any]:
        """Return the figures by name.

        Returns
        -------
        dict
            The columns of `Comparison.table`.
        """
        found = self.figures
        return {
            "model": self.name, "log_loss": found.log_loss, "behind": self.behind.mean,
            "standard_error": self.behind.error, "tie": self.behind.is_tie, "accuracy": found.accuracy,
            "accuracy_behind": self.missed.mean, "accuracy_standard_error": self.missed.error,
            "balanced_accuracy": found.balanced_accuracy, "brier": found.brier, "auc": found.auc,
            "calibration_error": found.calibration_error, "seconds": self.seconds, "bytes": self.size,
            "joint_log_loss": self.joint,
        }  # fmt: skip


class Comparison(Struct, frozen=True, eq=False):
    """Classifiers on the same held-out rows, the lowest log-loss first: the result of `compare`.

    Printed, it is the verdicts.

    Attributes
    ----------
    scores : list of Score
        Figures of each classifier, the best first.
    how : str
        How rows were held out.
    rows : int
        Number of compared rows.
    classes : list
        The classes.
    verdicts : list of str
        Which classifier has the lowest log-loss and the highest accuracy, and which tie with it.
    notes : list of str
        Rows, columns and classes that were left out.
    failed : dict
        Classifiers that could not be fitted, with the reason.
    curves : LearningCurves or None
        Learning curves, if requested.
    library : str or None
        Library of the frames of `table`.
    """

    scores: list[Score]
    how: str
    rows: int
    classes: list[Any]
    verdicts: list[str]
    notes: list[str]
    failed: dict[str, str]
    curves: LearningCurves | None = None
    library: str | None = None

    @property
    def table(self) -> Any:
        """A line for each classifier, with the figures of `Score.line`.

        Returns
        -------
        DataFrame
            Of the library of the compared rows.
        """
        return as_frame(arrow_lines([found.line() for found in self.scores]), self.library)

    @property
    def best(self) -> Score:
        """The figures of the classifier with the lowest log-loss."""
        return self.scores[0]

    def __str__(self) -> str:
        return "\n".join([self.how, *self.verdicts])

    def __repr__(self) -> str:
        figures = [f"{found.name} {found.figures.log_loss:.4g}" for found in self.scores]
        return f"<{type(self).__name__} on {self.rows:,} rows, log-loss: {', '.join(figures)}>"

    def _repr_html_(self) -> str:
        rows = [
            (found.name, f"{found.figures.log_loss:.4g}", f"{found.figures.accuracy:.4g}", f"{found.seconds:.2g}")
            for found in self.scores
        ]
        table = small_table(("model", "log-loss", "accuracy", "seconds"), rows)
        return boxed(type(self).__name__, f"{self.how}, {self.rows:,} rows", [table, note_lines(self.verdicts)])


def compare(
    X: Any,
    y: Any,
    kinds: Mapping[Any, Any] | None = None,
    curve: bool = False,
    folds: int | None = None,
    random_state: int = 0,
) -> Comparison:
    """Compare naive Bayes and other classifiers on the same held-out rows.

    The candidates are naive Bayes with numbers as they are, discretised and under kernels, with a weight for each
    column, and with a tree of columns (TAN); AODE; a mixture per class; `Classifier`; scikit-learn's logistic
    regression and gradient boosting. Copies of a row are held out together. Above 15,000 rows, a third is held out
    once; of more than 100,000 rows, 100,000 are drawn.

    Parameters
    ----------
    X : DataFrame, Arrow table, file name or array of shape (n_rows, n_columns)
        Rows.
    y : array of shape (n_rows,) or str
        Classes, or the name of the column of `X` that holds them. Rows without a class are left out.
    kinds : dict, default=None
        Kinds of columns by name, such as {'zip': 'categorical'}.
    curve : bool, default=False
        Whether to compute learning curves: every classifier is also fitted on ever larger parts of the training rows.
    folds : int, default=None
        Number of folds. By default 5, or one third held out once if there are many rows.
    random_state : int, default=0
        Seed of the folds and of what is drawn.

    Returns
    -------
    Comparison
        Figures of every classifier, and which of them tie.

    See Also
    --------
    Classifier : Cross-validates members and combines them.
    average : Combines fitted models instead of comparing them.

    References
    ----------
    .. [1] N. Friedman, D. Geiger and M. Goldszmidt (1997). "Bayesian network classifiers". Machine Learning 29 (2-3),
       131-163.
    .. [2] G. I. Webb, J. R. Boughton and Z. Wang (2005). "Not so naive Bayes: aggregating one-dependence estimators".
       Machine Learning 58 (1), 5-24.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> found = compare(X, np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, "yes", "no"), folds=2)
    >>> list(found.table.columns[:3]), found.rows
    (['model', 'log_loss', 'behind'], 120)
    """
    refuse_elsewhere(X)
    return replace(compare_table(X, y, kinds, curve, folds, random_state), library=find_library(X))


@end_on_interrupt()
def compare_table(
    X: Any, y: Any, kinds: Mapping[Any, Any] | None, curve: bool, folds: int | None, seed: int, tell: Tell = keep_quiet
) -> Comparison:
    """Compare classifiers, and report progress to `tell`."""
    if folds is not None:
        check_whole("folds", folds, 2)
    if kinds is not None and not isinstance(kinds, Mapping):
        raise DataError("kinds must be a mapping of columns to kinds: kinds={'age': 'normal'}.")
    kinds = {tuple(map(str, key)) if isinstance(key, tuple) else str(key): kind for key, kind in (kinds or {}).items()}
    table, names, schema, notes = _read_labelled(X, y, kinds)
    table, names, more = _keep_frequent_classes(table, names, folds or FOLDS, seed)
    splits, how = _split(table, folds, seed)
    notes += [*more, *_note_constants(table, splits)]
    used = {str(spec.key) for spec in schema.used}
    kinds = {key: kind for key, kind in kinds.items() if used.issuperset(key if isinstance(key, tuple) else (key,))}
    tried = list_candidates(schema, kinds, seed)
    scores: dict[str, Score] = {}
    failed = {}
    for place, candidate in enumerate(tried):
        tell("comparing", place, len(tried))
        try:
            scores[candidate.name] = _score(candidate, table, splits, how)
        except (SoftcountError, ValueError) as error:
            failed[candidate.name] = str(error).splitlines()[0]
    if not scores:
        raise DataError(f"no classifier could be tried: {next(iter(failed.values()))}")
    losses, wrong = ({name: getattr(x, part) for name, x in scores.items()} for part in ("losses", "wrong"))
    order, fewest_wrong = rank_by_loss(losses), rank_by_loss(wrong)[0]
    in_order = [
        replace(
            scores[name],
            behind=compare_losses(losses[name], losses[order[0]]),
            missed=compare_losses(wrong[name], wrong[fewest_wrong]),
        )
        for name in order
    ]
    kept = {candidate.name: candidate for candidate in tried if candidate.name in scores}
    curves = _compute_curves(kept, scores, table, splits, seed, tell) if curve else None
    verdicts = [verdict(losses, "log-loss"), verdict(wrong, "accuracy")]
    return Comparison(in_order, how, len(table.labels), names, verdicts, notes, failed, curves)


def _read_labelled(X: Any, y: Any, kinds: dict[Any, Any]) -> tuple[ComparedTable, list[Any], Schema, list[str]]:
    """Rows whose class is known, the classes, the schema, and notes on what was left out."""
    if not isinstance(X, np.ndarray):
        X = inputs.open_file(X, MISSING)
    if isinstance(y, str) and not inputs.is_table(X):
        raise DataError(f"y={y!r} names a column, but X has no names. Give the labels themselves.")
    if isinstance(y, str) and y not in map(str, inputs.list_columns(X)):
        raise DataError(f"there is no column {y!r} in X. It has {', '.join(map(str, inputs.list_columns(X)[:8]))}.")
    if kinds and isinstance(X, np.ndarray) and X.ndim == 2:
        X = {str(place): column for place, column in enumerate(X.T)}
    reader = NaiveBayes(kinds or None)
    with ignore_warnings():
        reader.fit(X, y)
    fitted = reader.fitted_
    if fitted.bag or fitted.schema.texts:
        which = f"column {fitted.schema.texts[0]!r} is text" if fitted.schema.texts else "X is sparse"
        raise DataError(f"{which}, which not all models here read. Leave text out: kinds={{column: 'ignore'}}.")
    labels = inputs.code_labels_among(X, y, reader.classes_.tolist())
    data = inputs.check_rows(reader, X, reset=False)
    with Threads(None) as threads:
        chunks = list(fitted.table(data).chunks(threads.map))
    table, known = ComparedTable.of(fitted.schema, chunks, labels), np.flatnonzero(labels >= 0)
    notes = [f"column {spec.key} is left out: {spec.why}." for spec in fitted.schema.fields if not spec.used]
    if len(known) < len(labels):
        first = int(np.argmax(labels < 0)) + 1
        notes.append(f"rows without a class are left out: {len(labels) - len(known):,}, row {first} the first.")
    return table.take(known), list(reader.classes_.tolist()), fitted.schema, notes


def _keep_frequent_classes(
    table: ComparedTable, names: list[Any], folds: int, seed: int
) -> tuple[ComparedTable, list[Any], list[str]]:
    """Rows of classes that every fold can hold one of, at most MOST_COMPARED_ROWS; and notes on what was left out."""
    rows = np.bincount(table.labels, minlength=len(names))
    if len(table.labels) < folds:
        fewer = f"Give folds={len(table.labels)}, or more rows." if len(table.labels) > 1 else "Give more rows."
        raise DataError(f"there are {len(table.labels)} rows with a class, fewer than {folds} folds. {fewer}")
    if len(names) > MOST_CLASSES:
        raise DataError(
            f"the target has {len(names):,} different values, and at most {MOST_CLASSES} classes are compared. "
            "Does it identify rows? Merge its values into fewer classes, or name another column."
        )
    rare = [f"{names[place]} ({count})" for place, count in enumerate(rows) if count < folds]
    kept = np.flatnonzero(rows >= folds)
    if len(kept) < 2:
        one = f"only {names[kept[0]]!r} has" if len(kept) else "no class has"
        raise DataError(
            f"{one} {folds} rows or more, one for every fold: otherwise a fold would not have two classes. "
            f"Rows by class: {', '.join(f'{name} ({count})' for name, count in zip(names, rows, strict=True))}."
        )
    notes = [f"classes with fewer rows than the {folds} folds are left out: {', '.join(rare)}."] if rare else []
    chosen = np.flatnonzero(np.isin(table.labels, kept))
    if len(chosen) > MOST_COMPARED_ROWS:
        drawn = np.sort(np.random.default_rng(seed).permutation(len(chosen))[:MOST_COMPARED_ROWS])
        notes.append(f"{MOST_COMPARED_ROWS:,} of {len(chosen):,} rows are drawn to compare on.")
        chosen = chosen[drawn]
    places = np.searchsorted(kept, table.labels[chosen])
    return replace(table.take(chosen), labels=places), [names[place] for place in kept], notes


def _split(table: ComparedTable, folds: int | None, seed: int) -> tuple[Splits, str]:
    """Training and held-out rows with the same share of every class, copies of a row together; and a description."""
    blank, labels = np.zeros(len(table.labels)), table.labels
    once = folds is None and len(labels) > MANY_ROWS
    number = 3 if once else folds or FOLDS
    how = "a third of the rows held out once" if once else f"{number} folds, the same for all"
    codes = table.matrix[:, table.numbers :].astype(np.int32)
    repeats, units = units_of((table.matrix[:, : table.numbers], codes), labels)
    if repeats.copies:
        found = list(StratifiedGroupKFold(number, shuffle=True, random_state=seed).split(blank, labels, units))
        return found[:1] if once else found, f"{how}, copies of a row in one"
    if once:
        third = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed)
        return list(third.split(blank, labels)), f"{how}, because there are many"
    return list(StratifiedKFold(number, shuffle=True, random_state=seed).split(blank, labels)), how


def _note_constants(table: ComparedTable, splits: Splits) -> list[str]:
    """A note for each column that has one value in the training rows of a fold, though not everywhere."""

    def is_constant(column: np.ndarray) -> bool:
        known = column[~np.isnan(column)]
        return not len(known) or bool((known == known[0]).all() and (len(known) == len(column)))

    notes = []
    for key, column in zip(table.keys, table.matrix.T, strict=True):
        folds = [place for place, (train, _) in enumerate(splits, 1) if is_constant(column[train])]
        if folds and not is_constant(column):
            where = f"in the training rows of fold {folds[0]}"
            notes.append(f"column {key} has one value {where}, so it has no effect there.")
    return notes


def _score(candidate: Candidate, table: ComparedTable, splits: Splits, how: str) -> Score:
    """Fit a classifier on every split and evaluate it on the rows held out there."""
    proba, joint, seconds = [], [], 0.0
    for train, test in splits:
        model, found, took = candidate.fit_predict(table.take(train), table.take(test))
        seconds += took / len(splits)
        proba.append(found)
        if candidate.generative:
            rows, labels = table.take(test).arrow, table.labels[test]
            with ignore_warnings():
                logs = model.predict_log_proba(rows)[np.arange(len(labels)), labels]
                joint.append(-(logs + model.score_samples(rows)))
    labels = np.concatenate([table.labels[test] for _, test in splits])
    folds = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    held = ScoredRows(np.concatenate(proba), labels, np.ones(len(labels)), folds)
    figures = evaluate_rows(held, np.bincount(table.labels, minlength=table.classes).astype(float), how, by_fold=True)
    return Score(
        candidate.name, figures, *_score_rows(held.proba, labels), seconds,
        candidate.size(model), float(np.concatenate(joint).mean()) if joint else None,
    )  # fmt: skip
