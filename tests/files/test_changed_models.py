"""Model files changed anywhere and signed again: refused by name, or they answer as a sound model does."""

from __future__ import annotations

import contextlib
import copy
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from softcount.errors import DataError, ModelFileError, SoftcountError
from softcount.files import read, write
from softcount.report.classes import model_record

ROWS = 12
TIMES = 150
"""How often each model's file is changed."""
RNG = np.random.default_rng(0)
SORT = np.arange(ROWS) % 2
FRAME = pd.DataFrame(
    {
        "size": RNG.normal(4.0 * SORT, 1.0).round(2),
        "colour": np.array(["red", "green", "blue"])[(SORT + RNG.integers(0, 2, ROWS)) % 3],
        "visits": RNG.poisson(1.0 + 3.0 * SORT),
        "price": np.exp(RNG.normal(SORT, 0.5, ROWS)),
        "wide": np.array([f"w{n}" for n in range(ROWS)]),
        "x": RNG.normal(size=ROWS),
        "y": RNG.normal(size=ROWS),
        "sold": (RNG.random(ROWS) < 0.5).astype(int),
        "shown": 1 + RNG.poisson(1.0, ROWS),
    }
)
FRAME.loc[3, ["size", "colour"]] = None
NAMES = np.where(SORT, "yes", "no")
GAPS = np.where(np.arange(ROWS) % 4 == 0, None, NAMES)
TEXTS = ["free money now", "see you at noon", "money money", "lunch at noon"] * 3
ONE = {"n_init": 1, "random_state": 0}


def bayes(kinds: dict[Any, Any], labels: Any = NAMES, **how: Any) -> tuple[Callable[[], Any], Any]:
    """A naive Bayes model of some columns, and the rows to ask it about."""
    columns = [part for key in kinds for part in (key if isinstance(key, tuple) else (key,))]
    return lambda: sc.NaiveBayes(kinds=kinds, **how).fit(FRAME[columns], labels), FRAME[columns]


def documents(model: str) -> tuple[Callable[[], Any], Any]:
    return lambda: sc.NaiveBayes(kinds=sc.families.Text(model=model)).fit(TEXTS, [1, 2, 1, 2] * 3), TEXTS


NUMBERS = FRAME[["x", "y"]]
HELD = {"weights": [0.5, 0.5], "x": {"mean": [0, 1]}}
MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "naive Bayes": bayes({"size": "normal", "colour": "categorical", "visits": "poisson"}),
    "blocks": bayes({("x", "y"): "multinormal", ("colour", "sold"): "joint"}, prior="row"),
    "other families": bayes({"size": "student", "visits": "geometric", "price": "gamma"}, SORT),
    "gaps": bayes({("sold", "shown"): "binomial", "price": "lognormal"}, GAPS, class_prior="uniform"),
    "a level for every row": bayes({"wide": "categorical", "sold": "bernoulli"}, estimate="map", prior=2.0),
    "densities of any shape": bayes(
        {"size": "kde", "x": "histogram", "price": sc.families.Cut("mdl"), "wide": "grouped"}
    ),
    "isotonic": bayes({"size": "normal"}, calibration="isotonic"),
    "temperature": bayes({"size": "normal", "x": "normal"}, SORT, calibration="temperature"),
    "predictive": bayes({"size": "normal", "colour": "categorical"}, estimate="predictive"),
    "mixture": (lambda: sc.Mixture(kinds={"price": "exponential"}, **ONE).fit(FRAME[["price", "colour"]]), FRAME),
    "held": (lambda: sc.Mixture(2, fixed=HELD, **ONE).fit(NUMBERS), NUMBERS),
    "full": (lambda: sc.GaussianMixture(2, **ONE).fit(NUMBERS), NUMBERS),
    "words": documents("multinomial"),
    "words that are there": documents("bernoulli"),
    "k-means": (lambda: sc.KMeans(2, **ONE).fit(NUMBERS), NUMBERS),
}

ODD: list[Any] = [
    None, True, False, 0, 1, 2, -1, -0.5, 0.5, 1.0, 1e300, -1e300, 5e-324, 10**30, -(10**30), 2**63, "", "x", "nan",
    [], {}, [1], ["a"], [[]], {"a": 1}, [None], "size", ["size"], [0, 1], ["x", "y"], "normal", "categorical", "text",
]  # fmt: skip
NUMBERS_ODD = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, -1e300, 5e-324, 1e18, 0.5]


def places(document: Any) -> list[tuple[Any, Any]]:
    """Every value in a document: what holds it, and under which key."""
    found: list[tuple[Any, Any]] = []
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        found += [(document, key), *places(document[key])]
    return found


def change_document(document: dict[str, Any], chance: random.Random) -> None:
    holder, key = chance.choice(places(document))
    value, kind = holder[key], chance.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(value))
    elif kind == 2 and isinstance(value, (int, float)):
        holder[key] = chance.choice([-value, value * 1_000_000, value + 1, value / 3, int(value)])
    elif kind == 3:
        other, name = chance.choice(places(document))
        holder[key] = copy.deepcopy(other[name])
    else:
        holder[key] = copy.deepcopy(chance.choice(ODD))


def change_arrays(arrays: dict[str, np.ndarray], chance: random.Random) -> None:
    name = chance.choice(sorted(arrays))
    array, kind = arrays[name].copy(), chance.randrange(8)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = chance.choice([array[:-1] if array.ndim else array[None], array[None], array.reshape(-1)])
    elif kind == 2:
        arrays[name] = array.astype(chance.choice([np.float64, np.int64, np.int32, np.uint8, bool, "U8"]))
    elif kind == 3:
        arrays[name] = arrays[chance.choice(sorted(arrays))].copy()
    elif kind == 4:
        arrays[f"{name}{chance.choice(['', '/x', 'x'])}"] = array * chance.choice([-1.0, 0.0, 1e6, 1e-6, np.nan])
    elif array.size:
        odd = chance.choice(NUMBERS_ODD)
        array = array.astype(float)
        array.reshape(-1)[chance.randrange(array.size) if kind < 7 else slice(None)] = odd
        arrays[name] = array


def changed(document: dict[str, Any], arrays: dict[str, np.ndarray], chance: random.Random) -> tuple[Any, Any]:
    document, arrays = copy.deepcopy(document), dict(arrays)
    for _ in range(chance.choice([1, 1, 1, 2])):
        if chance.random() < 0.6:
            change_document(document, chance)
        else:
            change_arrays(arrays, chance)
    return document, arrays


QUESTIONS: list[Callable[[Any, Any], object]] = [
    lambda model, rows: model.explain(rows),
    lambda model, rows: model.score_samples(rows),
    lambda model, rows: model.anomalies(rows, 2),
    lambda model, rows: model.sample(3, random_state=0),
    lambda model, rows: [model.query(column) for leaf in model.fitted_.model.leaves for column in leaf.columns],
    lambda model, rows: model.impute(rows),
    lambda model, rows: model_record(model.fitted_),
    lambda model, rows: model.predict(rows),
]


def answers(model: Any, rows: Any, questions: list[Callable[[Any, Any], object]]) -> None:
    """Probabilities that make sense, and answers to these questions, or refusals of ours."""
    if hasattr(model, "cluster_centers_"):
        with contextlib.suppress(DataError):  # of other columns than these
            assert np.isfinite(model.transform(rows)).all() and model.predict(rows).shape == (ROWS,)
        return
    try:
        chances = model.predict_proba(rows)
    except DataError:  # no class can have made some row
        chances = np.ones((ROWS, 1))
    assert np.isfinite(chances).all() and (chances >= 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-9)
    for ask in questions:
        with contextlib.suppress(SoftcountError):
            ask(model, rows)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_a_changed_model_is_refused_or_makes_sense(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # two thousand files that need not outlive the machine
    make, rows = MODELS[name]
    make().save(tmp_path / "sound.sc")
    document, arrays = read(tmp_path / "sound.sc")
    answers(sc.load(tmp_path / "sound.sc"), rows, QUESTIONS)
    chance, loaded = random.Random(name), 0
    for turn in range(TIMES):
        said = changed(document, arrays, chance)
        try:
            write(tmp_path / "changed.sc", *said)
        except DataError:  # no file can hold it
            continue
        try:
            model = sc.load(tmp_path / "changed.sc")
        except ModelFileError as refusal:
            assert "\n" not in str(refusal) and "changed.sc" in str(refusal)
            continue
        try:
            answers(model, rows, [chance.choice(QUESTIONS)])
        except Exception as error:
            raise AssertionError(f"change {turn} of {name!r}") from error
        loaded += 1
    assert 0 < loaded < TIMES
