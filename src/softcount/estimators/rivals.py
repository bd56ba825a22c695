"""Classifiers to set side by side: ours, and what else there is for a table of numbers and levels."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from threadpoolctl import threadpool_limits

from softcount.classify.encode import EncodedRows, column_keys
from softcount.estimators.averaged_stars import AveragedStars
from softcount.estimators.bayes_net import BayesNet
from softcount.estimators.class_mixtures import MixturePerClass
from softcount.estimators.classifier import Classifier
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.table.chunk import Chunk
from softcount.table.schema import Key, Schema

FEW_ROWS = 10_000
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
    import pyarrow as pa

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
        few = len(train.labels) <= FEW_ROWS
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
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(plain_features(train), LogisticRegression(max_iter=1000))


def plain_features(train: RivalTable) -> Any:
    """Numbers standardised, holes at the mean and marked; a column for each level, the rare ones together."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    filled = SimpleImputer(add_indicator=True, keep_empty_features=True)
    levels = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3)
    width = train.matrix.shape[1]
    return make_column_transformer(
        (make_pipeline(filled, StandardScaler()), list(range(train.numbers))),
        (levels, list(range(train.numbers, width))),
    )


def boosting(train: RivalTable, seed: int) -> Any:
    """scikit-learn's gradient boosting of trees as it comes, told which columns are levels."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    tops = train.matrix[:, train.numbers :].max(axis=0, initial=0)
    levels = [train.numbers + place for place, top in enumerate(tops) if top < MOST_LEVELS]
    return HistGradientBoostingClassifier(categorical_features=levels or None, random_state=seed)
