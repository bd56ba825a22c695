"""A mixture for the rows of every class, and Bayes' rule over them: classes that are several clusters each."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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

from softcount.classify.encode import EncodedRows, column_keys
from softcount.core.special import log_sum_exp
from softcount.errors import DataError, SoftcountError
from softcount.estimators import inputs
from softcount.estimators.classifier import AveragedStars, Classifier
from softcount.estimators.inputs import frame_library
from softcount.estimators.mixture import Mixture
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.estimators.network import BayesNet
from softcount.estimators.parameters import check_whole
from softcount.estimators.result_frames import arrow_lines, as_frame
from softcount.evaluate.calibrate import SMALLEST
from softcount.evaluate.ranking import Behind, ScoredRows, behind, ranked, verdict
from softcount.evaluate.scores import Evaluation, Sums, mean_auc, summed
from softcount.pictures.chart import PAGE, Axis, Chart, class_lines
from softcount.run.local import Threads
from softcount.run.progress import Tell, interrupts_end, keep_quiet
from softcount.sources.frames import refuse_elsewhere
from softcount.table import Table, open_table
from softcount.table.chunk import Chunk
from softcount.table.column_summary import units_of
from softcount.table.schema import MISSING, Key, Schema

MOST_CLUSTERS = 3
"""Clusters of a class that has rows enough."""
ROWS_A_CLUSTER = 20
MOST_ROWS = 5_000
"""Rows of a class that its clusters are learned from; of more, some are drawn."""


class MixturePerClass:
    """Each class a mixture of up to three clusters, in which columns are independent; all read under one schema."""

    def __init__(self, kinds: dict[Any, Any], seed: int) -> None:
        self.kinds, self.seed = kinds, seed

    def fit(self, X: Any, y: np.ndarray) -> MixturePerClass:
        """Learn from an Arrow table and the classes of its rows."""
        plain = NaiveBayes(self.kinds).fit(X, y)
        self.classes_, sizes = np.unique(y, return_counts=True)
        self.shares_ = np.log(sizes / sizes.sum())
        self.mixtures_ = [self._mixture(X, np.flatnonzero(y == name), plain.fitted_.schema) for name in self.classes_]
        return self

    def _mixture(self, X: Any, rows: np.ndarray, schema: Schema) -> Mixture:
        if len(rows) > MOST_ROWS:
            rows = np.sort(np.random.default_rng(self.seed).permutation(rows)[:MOST_ROWS])
        clusters = max(1, min(MOST_CLUSTERS, len(rows) // ROWS_A_CLUSTER))
        mixture = _UnderSchema(clusters, self.kinds, n_init=2, random_state=self.seed).under(schema)
        mixture.fit(X.take(rows))
        return mixture

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


class _UnderSchema(Mixture):
    """A mixture that reads its rows as a whole table is read, so that the densities of several can be compared."""

    def under(self, schema: Schema) -> _UnderSchema:
        self._schema = schema
        return self

    def _table(self, data: Any, plan: Any, known: Any, weights: np.ndarray | None) -> Table:
        return open_table(data, schema=self._schema, missing=self._schema.missing, weights=weights)


# Classifiers to set side by side: ours, and what else there is for a table of numbers and levels.

ONE_THREAD_ROWS = 10_000
"""Rows up to which one thread does it all: boosting of 150 rows waits for its threads most of the time."""
MOST_LEVELS = 255
"""Levels of a column that boosting can take as such; those of others are numbers to it, in order of their names."""


class RivalTable(Struct, frozen=True, eq=False):
    """The rows that all learn from: as an Arrow table for ours, as one matrix for others; `labels` are 0, 1, ...

    In the matrix numbers come first, NaN where missing, then the codes of levels, 0 where missing.
    """

    arrow: Any
    matrix: np.ndarray
    numbers: int
    labels: np.ndarray
    keys: tuple[Key, ...]

    def take(self, rows: np.ndarray) -> RivalTable:
        """Some of the rows."""
        return RivalTable(self.arrow.take(rows), self.matrix[rows], self.numbers, self.labels[rows], self.keys)

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1


def rival_table(schema: Schema, chunks: list[Chunk], labels: np.ndarray) -> RivalTable:
    """The rows of some chunks, as they came."""
    rows = EncodedRows.of(schema, chunks)
    keys, numbers = column_keys(schema), rows.numbers.shape[1]
    return RivalTable(arrow_rows(schema, chunks), np.hstack([rows.numbers, rows.codes]), numbers, labels, keys)


def arrow_rows(schema: Schema, chunks: list[Chunk]) -> Any:
    """Rows of numbers and levels as an Arrow table, null where a cell is missing."""
    columns = {}
    for spec in schema.used:
        store, slot = schema.places[spec.key]
        cells = np.concatenate([getattr(chunk, store)[:, slot] for chunk in chunks])
        if store == "reals":
            columns[str(spec.key)] = pa.array(cells, from_pandas=True)
        else:
            levels = spec.levels if len(set(map(type, spec.levels))) == 1 else list(map(str, spec.levels))
            columns[str(spec.key)] = pa.array([None, *levels, None]).take(pa.array(cells))
    return pa.table(columns)


class Rival(Struct, frozen=True):
    """A way to tell classes, under its name; `make` gives a new model of it for a table.

    A `generative` one has a density of whole rows that can be compared with that of others: numbers as numbers.
    """

    name: str
    make: Callable[[RivalTable], Any]
    ours: bool = True
    generative: bool = False

    def proba(self, train: RivalTable, test: RivalTable) -> tuple[np.ndarray, float, Any]:
        """The probability of each class in the rows of `test`, the seconds that took, and the model."""
        begun = time.perf_counter()
        few = len(train.labels) <= ONE_THREAD_ROWS
        with quiet(), threadpool_limits(1 if few else None):
            model = self.make(train)
            model.fit(train.arrow if self.ours else train.matrix, train.labels)
            found = model.predict_proba(test.arrow if self.ours else test.matrix)
        return in_places(found, model.classes_, train.classes), time.perf_counter() - begun, model

    def joint(self, model: Any, test: RivalTable) -> np.ndarray | None:
        """Minus the log-density of each row and its class together; None where there is no such density."""
        if not self.generative:
            return None
        with quiet():
            own = model.predict_log_proba(test.arrow)[np.arange(len(test.labels)), test.labels]
            return np.asarray(-(own + model.score_samples(test.arrow)))

    def size(self, model: Any) -> int | None:
        """Bytes of the saved model, where it is ours."""
        if not self.ours:
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.sc"
            return sum(_saved(part, path) for part in getattr(model, "mixtures_", [model]))


def _saved(model: Any, path: Path) -> int:
    model.save(path)
    return path.stat().st_size


def in_places(proba: np.ndarray, classes: np.ndarray, count: int) -> np.ndarray:
    """Probabilities by the place of every class; a class that the model has not met is impossible to it."""
    whole = np.zeros((len(proba), count))
    whole[:, np.asarray(classes, dtype=int)] = proba
    return whole


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing is warned of: what is compared is one of several, and of a part of the rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def rivals_of(schema: Schema, kinds: Mapping[Any, Any], seed: int) -> list[Rival]:
    """Everything that is compared, the simplest first; ways to take numbers only where there are some."""
    numbers = [str(spec.key) for spec in schema.stored("reals") if str(spec.key) not in kinds]
    found = [
        Rival("naive Bayes", lambda _: NaiveBayes(dict(kinds)), generative=True),
        Rival("weighted naive Bayes", lambda _: NaiveBayes(dict(kinds), weights="columns")),
    ]
    for name, kind in (("cut", "cut"), ("kernel", "kde")):
        if numbers:
            own = {**dict.fromkeys(numbers, kind), **kinds}
            make = partial(_naive_bayes, own)
            found.append(Rival(f"{name} naive Bayes", make, generative=True))
    if numbers:
        cut = {**dict.fromkeys(numbers, "cut"), **kinds}
        found.append(Rival("weighted cut naive Bayes", lambda _: NaiveBayes(cut, weights="columns")))
    return [
        *found,
        Rival("tree-augmented (TAN)", lambda _: BayesNet("tan", prior="row", kinds=dict(kinds))),
        Rival("averaged stars (AODE)", lambda _: AveragedStars(dict(kinds))),
        Rival("mixture per class", lambda _: MixturePerClass(dict(kinds), seed), generative=True),
        Rival("logistic regression", logistic, ours=False),
        Rival("Classifier", lambda _: Classifier(dict(kinds))),
        Rival("gradient boosting", lambda train: boosting(train, seed), ours=False),
    ]


def _naive_bayes(kinds: dict[Any, Any], train: RivalTable) -> NaiveBayes:
    return NaiveBayes(kinds)


def logistic(train: RivalTable) -> Any:
    """scikit-learn's logistic regression: numbers standardised, holes at the mean and marked, a column for each level.

    Levels of fewer than three rows share one.
    """
    return make_pipeline(plain_features(train), LogisticRegression(max_iter=1000))


def plain_features(train: RivalTable) -> Any:
    """Numbers standardised, holes at the mean and marked; a column for each level, the rare ones together."""
    filled = SimpleImputer(add_indicator=True, keep_empty_features=True)
    levels = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3)
    width = train.matrix.shape[1]
    return make_column_transformer(
        (make_pipeline(filled, StandardScaler()), list(range(train.numbers))),
        (levels, list(range(train.numbers, width))),
    )


def boosting(train: RivalTable, seed: int) -> Any:
    """scikit-learn's gradient boosting of trees as it comes, told which columns are levels."""
    tops = train.matrix[:, train.numbers :].max(axis=0, initial=0)
    levels = [train.numbers + place for place, top in enumerate(tops) if top < MOST_LEVELS]
    return HistGradientBoostingClassifier(categorical_features=levels or None, random_state=seed)


# Learning curves: the same classifiers learned from ever more of the rows, and asked for the same rows held out.

FEWEST_ROWS = 20
"""Rows of the shortest training set."""
STEPS = (1, 2, 5)


class LearningCurves(Struct, frozen=True, eq=False):
    """Log-loss and accuracy of each classifier (a line each) by rows learned from; NaN where it could not learn."""

    names: list[str]
    sizes: np.ndarray
    log_loss: np.ndarray
    accuracy: np.ndarray

    @property
    def table(self) -> Any:
        """An Arrow table with a line for every classifier and size."""
        cells = [(name, size) for name in range(len(self.names)) for size in range(len(self.sizes))]
        return arrow_lines(
            [
                {
                    "model": self.names[name], "rows": int(self.sizes[size]),
                    "log_loss": float(self.log_loss[name, size]), "accuracy": float(self.accuracy[name, size]),
                }
                for name, size in cells
            ]
        )  # fmt: skip

    @property
    def leaders(self) -> list[str]:
        """Who has the lowest log-loss at each size."""
        return [self.names[place] for place in np.nanargmin(self.log_loss, axis=0)]

    @property
    def words(self) -> str:
        """Who leads with little and who with much, as one would say it.

        >>> one = np.array([[0.5, 0.4, 0.4], [0.9, 0.5, 0.3]])
        >>> LearningCurves(["plain", "pairs"], np.array([20, 50, 100]), one, one).words
        'lowest log-loss: plain from 20 rows, pairs from 100 rows.'
        """
        leaders = self.leaders
        turns = [place for place, name in enumerate(leaders) if place == 0 or name != leaders[place - 1]]
        parts = [f"{leaders[place]} from {self.sizes[place]:,} rows" for place in turns]
        return f"lowest log-loss: {', '.join(parts)}."

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest log-loss and the highest worth drawing: who is far off all would press the others together."""
        known = self.log_loss[np.isfinite(self.log_loss)]
        low, high = float(known.min()), float(min(known.max(), 3.0 * np.median(known)))
        return low, high if high > low else low + 1.0

    def svg(self) -> str:
        """The curves as a picture: log-loss over rows learned from, whose scale is logarithmic."""
        x = np.log10(self.sizes)
        lines = class_lines(self.names, x, self.log_loss)
        ticks = {float(at): f"{size:,}" for at, size in zip(x, self.sizes, strict=True)}
        title = "Log-loss on rows held out, by rows learned from"
        axes = Axis("rows learned from", ticks=ticks), Axis("log-loss", (0.0, 1.05 * self.ends[1]))
        return Chart(title, lines, *axes, self.names, title, PAGE, 320).draw().svg_file()


def ladder(least: int, most: int) -> list[int]:
    """Round numbers from one to another, then the other: 1, 2, 5, 10, ... of them.

    >>> ladder(20, 700), ladder(20, 105)
    ([20, 50, 100, 200, 500, 700], [20, 50, 105])
    """
    powers = range(len(str(most)))
    round_ones = [step * 10**power for power in powers for step in STEPS]
    return [*(size for size in round_ones if least <= size <= most / 1.1), most]


def nested_rows(labels: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Places of so many rows, with at least one of every class; fewer rows are always among more.

    >>> nested_rows(np.array([0, 0, 0, 0, 1]), 2, 0).size
    2
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    first = np.unique(labels[order], return_index=True)[1]
    rest = np.delete(np.arange(len(order)), first)
    return np.sort(order[np.concatenate([first, rest])[:size]])


def learning_curves(
    rivals: Sequence[Rival],
    table: RivalTable,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    full: Mapping[str, tuple[float, float]],
    seed: int,
    tell: Tell = keep_quiet,
) -> LearningCurves:
    """Every classifier learned from parts of what it may learn from; `full` has log-loss and accuracy of the whole."""
    least = max(FEWEST_ROWS, 2 * table.classes)
    sizes = ladder(least, min(len(train) for train, _ in splits))
    found = np.full((2, len(rivals), len(sizes)), np.nan)
    for column, size in enumerate(sizes[:-1]):
        tell("learning curve", column, len(sizes))
        parts = [(train[nested_rows(table.labels[train], size, seed)], test) for train, test in splits]
        for line, rival in enumerate(rivals):
            found[:, line, column] = _figures(rival, table, parts)
    for line, rival in enumerate(rivals):
        found[:, line, -1] = full[rival.name]
    return LearningCurves([rival.name for rival in rivals], np.array(sizes), *found)


def _figures(
    rival: Rival, table: RivalTable, splits: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[float, float]:  # fmt: skip
    """Log-loss and accuracy over all rows held out; NaN where too few rows were there to learn from."""
    losses, right = [], []
    for train, test in splits:
        try:
            proba = rival.proba(table.take(train), table.take(test))[0]
        except (SoftcountError, ValueError):
            return float("nan"), float("nan")
        labels = table.labels[test]
        losses.append(-np.log(np.maximum(proba[np.arange(len(test)), labels], SMALLEST)))
        right.append(proba.argmax(axis=1) == labels)
    return float(np.concatenate(losses).mean()), float(np.concatenate(right).mean())


# Classifiers side by side on one table: the same rows held out for all, and a tie called a tie.

FOLDS = 5
MANY_ROWS = 15_000
"""Rows above which a third is held out once: its standard errors are small, and everything is fitted once."""
MOST_COMPARED_ROWS = 100_000
"""Rows that are compared on; of more, some are drawn."""
MOST_CLASSES = 100
"""Classes beyond which a target is more likely a number or a name."""


class RivalScores(Struct, frozen=True, eq=False):
    """What one classifier did on rows held out: the figures, the loss of each row, and what it took.

    `seconds` are those of a fit and its predictions, a fold's on average; `size` is the bytes of the saved model,
    where it is ours; `joint` the log-loss of whole rows, class and all, of a generative one; `behind` how far its
    log-loss is from the best, `missed` the same of its share of wrong answers.
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

    def line(self) -> dict[str, Any]:
        """The figures by name."""
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
    """Classifiers side by side, the lowest log-loss first.

    `table` has a line for each, `verdicts` say in words who is best and who ties with it, `notes` what was left out or
    drawn, `failed` who could not be tried and why. `curves` are log-losses by rows learned from, where asked for.
    `library` is whose frames tables are.
    """

    scores: list[RivalScores]
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
        """A frame with a line for every classifier."""
        return as_frame(arrow_lines([found.line() for found in self.scores]), self.library)

    @property
    def best(self) -> RivalScores:
        """The one with the lowest log-loss."""
        return self.scores[0]

    def __str__(self) -> str:
        return "\n".join([self.how, *self.verdicts])


def compare(
    X: Any,
    y: Any,
    kinds: Mapping[Any, Any] | None = None,
    curve: bool = False,
    folds: int | None = None,
    random_state: int = 0,
) -> Comparison:
    """Naive Bayes and what else tells classes, side by side on the same rows held out.

    `X` and `y` are as `fit` takes them. Tried are naive Bayes with numbers as they are, cut and under kernels, with a
    weight for each column, and with a tree of columns; averaged stars; a mixture for every class; what lies between
    naive Bayes and logistic regression; `Classifier`; scikit-learn's logistic regression and gradient boosting. Above
    15,000 rows one third is held out once, else there are five `folds`; of more than 100,000 rows some are drawn. With
    `curve` everything is also learned from ever more of the rows.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> found = compare(X, np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, "yes", "no"), folds=2)
    >>> found.table.column_names[:3], found.rows
    (['model', 'log_loss', 'behind'], 120)
    """
    refuse_elsewhere(X)
    return replace(compared(X, y, kinds, curve, folds, random_state), library=frame_library(X))


@interrupts_end()
def compared(
    X: Any, y: Any, kinds: Mapping[Any, Any] | None, curve: bool, folds: int | None, seed: int, tell: Tell = keep_quiet
) -> Comparison:
    """The same, telling how far it is."""
    if folds is not None:
        check_whole("folds", folds, 2)
    if kinds is not None and not isinstance(kinds, Mapping):
        raise DataError("kinds says what columns are, by name: kinds={'age': 'normal'}.")
    kinds = {tuple(map(str, key)) if isinstance(key, tuple) else str(key): kind for key, kind in (kinds or {}).items()}
    X, y = _opened(X, y)
    table, names, schema, notes = _labelled(X, y, kinds)
    table, names, more = _fair(table, names, folds or FOLDS, seed)
    splits, how = _splits(table, folds, seed)
    notes = [*notes, *more, *_constant(table, splits)]
    rivals = rivals_of(schema, _still_there(kinds, schema), seed)
    scores, failed = [], {}
    for place, rival in enumerate(rivals):
        tell("comparing", place, len(rivals))
        try:
            scores.append(_scored(rival, table, splits, how))
        except (SoftcountError, ValueError) as error:
            failed[rival.name] = str(error).splitlines()[0]
    if not scores:
        raise DataError(f"no classifier could be tried: {next(iter(failed.values()))}")
    losses, wrong = {x.name: x.losses for x in scores}, {x.name: x.wrong for x in scores}
    verdicts = [verdict(losses, "log-loss"), verdict(wrong, "accuracy")]
    kept = [rival for rival in rivals if rival.name in losses]
    full = {x.name: (x.figures.log_loss, x.figures.accuracy) for x in scores}
    curves = learning_curves(kept, table, splits, full, seed, tell) if curve else None
    return Comparison(_ranked(scores), how, len(table.labels), names, verdicts, notes, failed, curves)


def _opened(X: Any, y: Any) -> tuple[Any, Any]:
    """X with a file opened; a target by name only where X has names."""
    if not isinstance(X, np.ndarray):
        X = inputs.opened(X, MISSING, True)
    if isinstance(y, str) and not inputs.is_table(X):
        raise DataError(f"y={y!r} names a column, but X has no names. Give the labels themselves.")
    if isinstance(y, str) and y not in map(str, inputs.known_columns(X)):
        raise DataError(f"there is no column {y!r} in X. It has {', '.join(map(str, inputs.known_columns(X)[:8]))}.")
    return X, y


def _still_there(kinds: dict[Any, Any], schema: Schema) -> dict[Any, Any]:
    """Kinds of the columns that are used."""
    used = {str(spec.key) for spec in schema.used}
    return {key: kind for key, kind in kinds.items() if used.issuperset(key if isinstance(key, tuple) else (key,))}


def _labelled(X: Any, y: Any, kinds: dict[Any, Any]) -> tuple[RivalTable, list[Any], Schema, list[str]]:
    """Rows whose class is known, the classes, how columns are read, and what was left out."""
    reader = NaiveBayes(kinds or None)
    if kinds and isinstance(X, np.ndarray) and X.ndim == 2:
        X = {str(place): column for place, column in enumerate(X.T)}
    with quiet():
        reader.fit(X, y)
    fitted = reader.fitted_
    if fitted.bag or fitted.schema.texts:
        which = f"column {fitted.schema.texts[0]!r} is text" if fitted.schema.texts else "X is sparse"
        raise DataError(f"{which}, which not all models here read. Leave text out: kinds={{column: 'ignore'}}.")
    labels = inputs.codes_among(X, y, reader.classes_.tolist())
    data = inputs.checked(reader, X, reset=False)
    with Threads(None) as threads:
        chunks = list(fitted.table(data).chunks(threads.map))
    table, known = rival_table(fitted.schema, chunks, labels), np.flatnonzero(labels >= 0)
    notes = [f"column {spec.key} is left out: {spec.why}." for spec in fitted.schema.fields if not spec.used]
    if len(known) < len(labels):
        first = int(np.argmax(labels < 0)) + 1
        notes.append(f"rows without a class are left out: {len(labels) - len(known):,}, row {first} the first.")
    return table.take(known), list(reader.classes_.tolist()), fitted.schema, notes


def _fair(table: RivalTable, names: list[Any], folds: int, seed: int) -> tuple[RivalTable, list[Any], list[str]]:
    """Rows of classes that every fold can hold one of, at most so many; and what was left out."""
    rows = np.bincount(table.labels, minlength=len(names))
    if len(table.labels) < folds:
        fewer = f"Give folds={len(table.labels)}, or more rows." if len(table.labels) > 1 else "Give more rows."
        raise DataError(f"there are {len(table.labels)} rows with a class, fewer than {folds} folds. {fewer}")
    if len(names) > MOST_CLASSES:
        raise DataError(
            f"the target has {len(names):,} different values, and at most {MOST_CLASSES} classes are compared. "
            "Is it a name of each row? Put values together, or name another column."
        )
    rare = [f"{names[place]} ({count})" for place, count in enumerate(rows) if count < folds]
    kept = np.flatnonzero(rows >= folds)
    if len(kept) < 2:
        one = f"only {names[kept[0]]!r} has" if len(kept) else "no class has"
        raise DataError(
            f"{one} {folds} rows or more, one for every fold: there are no two classes to tell apart in each. "
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


Splits = list[tuple[np.ndarray, np.ndarray]]


def _splits(table: RivalTable, folds: int | None, seed: int) -> tuple[Splits, str]:
    """Rows to learn from and rows held out, with the same share of every class, and how that is called."""
    blank, labels = np.zeros(len(table.labels)), table.labels
    codes = table.matrix[:, table.numbers :].astype(np.int32)
    repeats, units = units_of((table.matrix[:, : table.numbers], codes), labels)
    if repeats.copies:
        once = folds is None and len(labels) > MANY_ROWS
        number = 3 if once else folds or FOLDS
        found = list(StratifiedGroupKFold(number, shuffle=True, random_state=seed).split(blank, labels, units))
        how = "a third of the rows held out once" if once else f"{number} folds, the same for all"
        return found[:1] if once else found, f"{how}, copies of a row in one"
    if folds is None and len(labels) > MANY_ROWS:
        once = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed)
        return list(once.split(blank, labels)), "a third of the rows held out once, because there are many"
    parts = StratifiedKFold(folds or FOLDS, shuffle=True, random_state=seed)
    return list(parts.split(blank, labels)), f"{folds or FOLDS} folds, the same for all"


def _constant(table: RivalTable, splits: Splits) -> list[str]:
    """A note for each column that has one value where it is learned from, though not everywhere."""
    notes = []
    for key, column in zip(table.keys, table.matrix.T, strict=True):
        alone = [place for place, (train, _) in enumerate(splits, 1) if _one_value(column[train])]
        if alone and not _one_value(column):
            notes.append(f"column {key} has one value in what fold {alone[0]} learns from, and tells nothing there.")
    return notes


def _one_value(column: np.ndarray) -> bool:
    known = column[~np.isnan(column)]
    return not len(known) or bool((known == known[0]).all() and (len(known) == len(column)))


def _scored(rival: Rival, table: RivalTable, splits: Splits, how: str) -> RivalScores:
    """One classifier fitted on every split and asked for the rows held out there."""
    classes, sums, seconds = table.classes, Sums.none(len(splits), table.classes), 0.0
    proba, tested, folds, joint = [], [], [], []
    for fold, (train, test) in enumerate(splits):
        found, took, model = rival.proba(table.take(train), table.take(test))
        sums.add(fold, found, table.labels[test], np.ones(len(test)), len(test))
        seconds += took / len(splits)
        proba.append(found)
        joint.append(rival.joint(model, table.take(test)))
        tested.append(table.labels[test])
        folds.append(np.full(len(test), fold))
    labels = np.concatenate(tested)
    held = ScoredRows(np.concatenate(proba), labels, np.ones(len(labels)), np.concatenate(folds))
    counted = np.bincount(table.labels, minlength=classes).astype(float)
    figures = summed(sums, how, np.bincount(labels, minlength=classes).astype(float), counted)
    assert figures is not None  # every split holds out a row
    own = held.proba[np.arange(len(labels)), labels]
    wrong = (held.proba.argmax(axis=1) != labels).astype(float)
    losses = -np.log(np.maximum(own, SMALLEST))
    whole = [rows for rows in joint if rows is not None]
    return RivalScores(
        rival.name, replace(figures, auc=mean_auc(held)), losses, wrong, seconds, rival.size(model),
        float(np.concatenate(whole).mean()) if whole else None,
    )  # fmt: skip


def _ranked(scores: list[RivalScores]) -> list[RivalScores]:
    """The lowest log-loss first, each with how far it is behind."""
    by_name = {found.name: found for found in scores}
    order = ranked({found.name: found.losses for found in scores})
    first, right = by_name[order[0]], by_name[ranked({found.name: found.wrong for found in scores})[0]]
    return [
        replace(found, behind=behind(found.losses, first.losses), missed=behind(found.wrong, right.wrong))
        for found in (by_name[name] for name in order)
    ]
