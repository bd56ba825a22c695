"""Models to explore, one of every kind, with rows like theirs; and what the library says, to hold a page against."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import softcount as sc


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
    "height": sc.Normal(), "income": sc.LogNormal(), "visits": sc.Poisson(), "wait": sc.GammaFamily(),
    "spread": sc.Student(), "tries": sc.Geometric(), "gap": sc.Exponential(), "shape": sc.KernelFamily(),
    "lumps": sc.Spiked("normal"),
}  # fmt: skip


def naive_bayes() -> Explored:
    X, y = _table()
    return _fitted(sc.NaiveBayes(kinds=KINDS), X, y)


def predictive_bayes() -> Explored:
    X, y = _table()
    kinds = {"shape": sc.HistogramFamily(), "lumps": sc.Mixed("normal", 2), ("colour", "size"): "joint"}
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


STARS: dict[str, Callable[[], Explored]] = {
    made.__name__: cache(made) for made in (naive_bayes, predictive_bayes, mixture, gaussian_mixture, classifier)
}


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
