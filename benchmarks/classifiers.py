"""`Classifier` as it comes beside logistic regression, gradient boosting and Khiops on twelve tables.

The same rows are held out for all. Khiops runs where it is installed; it is a program of its own, so that its seconds
include starting it and writing the table to a file.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.classifier_tables import ClassTable, class_tables
from benchmarks.timing import Bound, Ratio, Result, seconds

MOST_LOSS, MOST_WRONG = 0.215, 0.088
"""What the means over all twelve tables should be at most."""
MOST_BEHIND = 0.03
ADULT_SECONDS, SMALL_SECONDS, SMALL_ROWS = 6.0, 0.5, 1_100
FASTER = 10.0
"""How many times as long Khiops should take to fit."""
LEAST = 1e-15
FEW_ROWS = 10_000
"""Rows up to which one thread does it all: boosting of 150 rows waits for its threads most of the time."""


@dataclass(frozen=True)
class Outcome:
    """What one classifier did on a table: share right, log-loss, and seconds of a fit."""

    accuracy: float
    log_loss: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.accuracy:.4f} / {self.log_loss:.4f} in {self.seconds:.2f} s"


def ours(frame: Any) -> Any:
    import softcount as sc

    return sc.Classifier()


def logistic(frame: Any) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = numbers_of(frame)
    features = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3), [x for x in frame if x not in numbers]),
    )
    return make_pipeline(features, LogisticRegression(max_iter=1000))


def boosting(frame: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


class Khiops:
    """Khiops' selective naive Bayes, whose classes are text."""

    def fit(self, frame: Any, labels: np.ndarray) -> Khiops:
        from khiops.sklearn import KhiopsClassifier

        self.model = KhiopsClassifier(n_trees=0).fit(self.plain(frame), labels.astype(str))
        self.classes_ = np.array([int(name) for name in self.model.classes_])
        return self

    def predict_proba(self, frame: Any) -> np.ndarray:
        found: np.ndarray = self.model.predict_proba(self.plain(frame))
        return found

    @staticmethod
    def plain(frame: Any) -> Any:
        """Levels as text, empty where missing."""
        levels = [name for name in frame if name not in numbers_of(frame)]
        return frame.assign(**{name: frame[name].astype(object).fillna("").astype(str) for name in levels})


def numbers_of(frame: Any) -> list[str]:
    return [name for name in frame if frame[name].dtype.kind in "iuf"]


def with_khiops() -> bool:
    """Whether Khiops is here; it looks for its programs where commands are found."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        from khiops.core import get_runner

        get_runner()
    except Exception as error:  # whatever keeps it from running
        print(f"without Khiops, which cannot be used here: {str(error).splitlines()[0]}", flush=True)
        return False
    return True


def outcome(make: Callable[[Any], Any], table: ClassTable, coded: bool = False) -> Outcome:
    """One classifier on every split; `coded` has levels as categories, the rest as they are."""
    frame, right, losses, took = table.frame, [], [], 0.0
    if coded:
        levels = [name for name in frame if name not in numbers_of(frame)]
        frame = frame.assign(**{name: frame[name].astype("category") for name in levels})
    splits = list(table.splits())
    for train, test in splits:
        model = make(frame)
        with threadpool_limits(1 if len(train) <= FEW_ROWS else None):
            took += seconds(lambda: model.fit(frame.iloc[train], table.labels[train])) / len(splits)  # noqa: B023
        proba = model.predict_proba(frame.iloc[test])[:, np.argsort(model.classes_)]
        own = proba[np.arange(len(test)), table.labels[test]]
        right.append(proba.argmax(axis=1) == table.labels[test])
        losses.append(-np.log(np.maximum(own, LEAST)))
    return Outcome(float(np.concatenate(right).mean()), float(np.concatenate(losses).mean()), took)


def run(rounds: int) -> Iterator[Result]:
    warnings.simplefilter("ignore")
    peers: dict[str, tuple[Callable[[Any], Any], bool]] = {
        "logistic regression": (logistic, False),
        "boosting": (boosting, True),
    }
    if with_khiops():
        peers["Khiops"] = (lambda frame: Khiops(), False)
    every: dict[str, list[Outcome]] = {name: [] for name in ("ours", *peers)}
    for table in class_tables():
        found = {"ours": outcome(ours, table)}
        found |= {name: outcome(make, table, coded) for name, (make, coded) in peers.items()}
        for name, each in found.items():
            every[name].append(each)
        yield from lines(table, found)
    yield from means(every)


def lines(table: ClassTable, found: dict[str, Outcome]) -> Iterator[Result]:
    """What is asked of one table: to be near the best, and fast."""
    mine, beside = found["ours"], "; ".join(f"{name} {each}" for name, each in found.items())
    best = min(each.log_loss for name, each in found.items() if name != "ours")
    yield Bound(f"{table.name}: behind the best of the others", mine.log_loss - best, "nats", MOST_BEHIND, beside)
    if table.name == "adult":
        yield Bound("adult: a fit", mine.seconds, "s", ADULT_SECONDS)
    elif len(table.labels) <= SMALL_ROWS:
        yield Bound(f"{table.name}: a fit", mine.seconds, "s", SMALL_SECONDS)
    if "Khiops" in found:
        yield Ratio(f"{table.name}: a fit", 2, mine.seconds, found["Khiops"].seconds, "Khiops", FASTER)


def means(every: dict[str, list[Outcome]]) -> Iterator[Result]:
    """Over all tables: log-loss, and the share of wrong answers."""
    loss = {name: float(np.mean([each.log_loss for each in found])) for name, found in every.items()}
    wrong = {name: 1 - float(np.mean([each.accuracy for each in found])) for name, found in every.items()}
    tables = f"{len(every['ours'])} tables"
    for what, figures, most in (("log-loss", loss, MOST_LOSS), ("share wrong", wrong, MOST_WRONG)):
        beside = ", ".join(f"{name} {figure:.4f}" for name, figure in figures.items() if name != "ours")
        yield Bound(f"mean {what} of {tables}", figures["ours"], "", most, beside)
