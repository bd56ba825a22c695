"""Models to explore, one of every kind, with rows like theirs; and what the library says, to hold a page against."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from msgspec.structs import replace

import softcount as sc
from softcount import families
from softcount.classify.encode import EncodedColumns, EncodedRows
from softcount.classify.ensemble import Ensemble
from softcount.classify.members import Training
from softcount.classify.recipes import RECIPES
from softcount.fitted.ensemble_scorers import EnsembleScorer


class Explored(NamedTuple):
    """A fitted estimator and rows of its columns."""

    model: Any
    rows: pd.DataFrame


def _table(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    columns = {
        "height": rng.normal(150 + 12 * kind, 7),
        "income": rng.lognormal(7 + 0.4 * kind, 0.7),
        "visits": rng.poisson(2 + 3 * kind),
        "wait": rng.gamma(2 + kind, 3.0),
        "spread": 4 * kind + rng.standard_t(3, n),
        "tries": rng.geometric(0.5 / (1 + kind)) - 1,
        "gap": rng.exponential(1 + kind),
        "shape": np.where(rng.random(n) < 0.5, rng.normal(-3, 1, n), rng.normal(3 + kind, 1)),
        "lumps": np.where(rng.random(n) < 0.3 * (kind > 0) + 0.2, 0.0, rng.normal(5 + kind, 2)),
        "colour": np.array(["red", "green", "blue", "grey"])[(kind + (rng.random(n) < 0.4)) % 4],
        "size": np.array(["S", "M", "L"])[np.minimum(2, rng.integers(0, 2 + (kind > 1)))],
    }
    return pd.DataFrame(columns), np.array(["ant", "bee", "cow"])[kind]


def _fitted(estimator: Any, X: pd.DataFrame, y: np.ndarray) -> Explored:
    return Explored(estimator.fit(X.assign(animal=y), "animal"), X)


KINDS = {
    "height": families.Normal(), "income": families.LogNormal(), "visits": families.Poisson(), "wait": families.Gamma(),
    "spread": families.Student(), "tries": families.Geometric(), "gap": families.Exponential(),
    "shape": families.Kernel(), "lumps": families.Spiked("normal"),
}  # fmt: skip


def naive_bayes() -> Explored:
    X, y = _table()
    return _fitted(sc.NaiveBayes(kinds=KINDS), X, y)


def predictive_bayes() -> Explored:
    X, y = _table()
    kinds = {"shape": families.Histogram(), "lumps": families.Mixed("normal", 2), ("colour", "size"): "joint"}
    X = X[["height", "shape", "lumps", "colour", "size"]]
    return _fitted(sc.NaiveBayes(kinds=kinds, estimate="predictive"), X, y)


def mixture() -> Explored:
    X, _ = _table()
    X = X[["height", "visits", "colour", "size"]]
    return Explored(sc.Mixture(3, random_state=0).fit(X), X)


def gaussian_mixture() -> Explored:
    X, _ = _table()
    X = X[["height", "spread", "shape"]]
    return Explored(sc.GaussianMixture(3, random_state=0).fit(X), X)


def classifier() -> Explored:
    X, y = _table()
    X = X[["height", "visits", "colour", "size"]]
    return _fitted(sc.Classifier(), X, y)


def weighed() -> Explored:
    X, y = _table()
    X = X[["height", "visits", "colour", "size"]]
    return _fitted(sc.NaiveBayes(weights="columns"), X, y)


def tempered(calibration: str, classes: int) -> Explored:
    X, y = _table()
    return _fitted(
        sc.NaiveBayes(calibration=calibration),
        X[["height", "gap", "colour"]],
        np.where(y == "ant", "ant", y if classes > 2 else "bee"),
    )


STARS: dict[str, Callable[[], Explored]] = {
    made.__name__: cache(made)
    for made in (naive_bayes, predictive_bayes, mixture, gaussian_mixture, classifier, weighed)
}


def network() -> Explored:
    rng = np.random.default_rng(0)
    n = 400
    town, smokes = rng.integers(0, 3, n), rng.integers(0, 2, n)
    job = (town + (rng.random(n) < 0.3)) % 3
    ill = ((job > 0) ^ (smokes > 0) ^ (rng.random(n) < 0.1)).astype(int)
    X = pd.DataFrame({
        "town": np.array(["small", "middle", "big"])[town], "job": np.array(["cook", "smith", "clerk"])[job],
        "smokes": np.array(["no", "yes"])[smokes], "ill": np.array(["no", "yes"])[ill],
        "age": rng.normal(30 + 8 * job, 5), "visits": rng.poisson(1 + 3 * ill), "weight": rng.normal(60 + 9 * job, 8),
    })  # fmt: skip
    edges = [("town", "job"), ("job", "ill"), ("smokes", "ill"), ("job", "age"), ("smokes", "age"), ("ill", "visits")]
    edges.append(("job", "weight"))
    model = sc.BayesNet(edges=edges, kinds={"visits": families.Poisson()}, cut={"weight": 4})
    return Explored(model.fit(X, "ill"), X)


def k_means() -> Explored:
    X = _table()[0][["height", "spread", "wait"]]
    return Explored(sc.KMeans(3, random_state=0).fit(X), X)


def _words(n: int = 60) -> list[str]:
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("abc"), rng.integers(3, 12), p=[0.5, 0.3, 0.2])) for _ in range(n)]


def chain() -> Explored:
    return Explored(sc.MarkovChain(order=1).fit(_words()), pd.DataFrame())


def ending_chain() -> Explored:
    """Of two steps back, and with ends: 'a' or 'b', or that it is over."""
    return Explored(sc.MarkovChain(order=2, ends=True).fit([w.replace("c", "") for w in _words()]), pd.DataFrame())


def hidden_states() -> Explored:
    """Levels, numbers and counts, shown by three states of which two show the same."""
    rng = np.random.default_rng(0)
    path = (np.cumsum(rng.random(300) < 0.2) % 3).astype(int)
    X = pd.DataFrame({
        "day": np.repeat(np.arange(10), 30),
        "sky": np.array(["sun", "rain", "fog"])[(path + (rng.random(300) < 0.2)) % 3],
        "heat": rng.normal(10 + 6 * (path > 0), 2), "calls": rng.poisson(1 + 4 * (path > 1)),
    })  # fmt: skip
    sequences = [part.drop(columns="day") for _, part in X.groupby("day")]
    model = sc.HiddenMarkov(
        3, kinds={"calls": families.Poisson()}, tied=["low", "high", "high"], n_init=2, random_state=0
    )
    return Explored(model.fit(sequences), X.drop(columns="day"))


def spam() -> Explored:
    rng = np.random.default_rng(0)
    ours, theirs = (
        ["cash", "prize", "win", "CLAIM", "now", "ich"],
        ["lunch", "meeting", "now", "see", "Zürich", "naïve"],
    )
    label = rng.integers(0, 2, 120)
    texts = [" ".join(rng.choice(ours if k else theirs, rng.integers(1, 9))) for k in label]
    X = pd.DataFrame({"text": texts, "length": [float(len(text)) for text in texts]})
    model = sc.NaiveBayes(kinds={"text": families.Text(ngrams=(1, 2), stop_words=["see"])})
    return Explored(model.fit(X.assign(kind=np.array(["ham", "spam"])[label]), "kind"), X)


def bernoulli_words() -> Explored:
    X = spam().rows
    y = np.where(X["text"].str.contains("cash|prize|win"), "spam", "ham")
    kinds = {"text": families.Text(model="bernoulli", analyzer="char_wb", ngrams=(2, 3), lowercase=False)}
    return _fitted(sc.NaiveBayes(kinds=kinds), X, y)


def all_ways() -> Explored:
    """Naive Bayes with an ensemble of every way that there is, whether it does well or not."""
    X, y = _table(120)
    X = X[["height", "income", "visits", "colour", "size"]]
    fitted = _fitted(sc.NaiveBayes(), X, y)
    model = fitted.model.fitted_
    rows = EncodedRows.of(model.schema, list(model.chunks(model.table(X))))
    labels = np.array([model.names.index(name) for name in y])
    columns = EncodedColumns.of(model.schema)
    training = Training(rows, labels, np.ones(len(labels)), model.n_groups, columns.sizes, columns.measured)
    members = [next(iter(recipe.fit(training, recipe.settings(training)[:1]))) for recipe in RECIPES.values()]
    weights = np.linspace(0.1, 0.4, len(members))
    ensemble = Ensemble(tuple(RECIPES), tuple(members), weights, np.array([0.1, -0.2, 0.05]))
    fitted.model.fitted_ = replace(model, scorer=EnsembleScorer(ensemble))
    return fitted


TEXTS = {made.__name__: cache(made) for made in (spam, bernoulli_words)}
OTHERS = {made.__name__: cache(made) for made in (network, all_ways, k_means, chain, ending_chain, hidden_states)}
MODELS: dict[str, Callable[[], Explored]] = STARS | TEXTS | OTHERS


def random_rows(rows: pd.DataFrame, n: int, seed: int = 1) -> pd.DataFrame:
    """Cells drawn column by column, most of them missing: from one to four are there."""
    rng = np.random.default_rng(seed)
    found = {}
    for name in rows:
        cells = rows[name].to_numpy()[rng.integers(0, len(rows), n)]
        found[name] = pd.Series(cells).astype(object)
    frame = pd.DataFrame(found)
    keep = rng.random(frame.shape).argsort(axis=1).argsort(axis=1) < rng.integers(1, 5, n)[:, None]
    return frame.where(keep, None)
