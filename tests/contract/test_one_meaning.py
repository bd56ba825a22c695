"""One meaning for one word: `score`, `log_likelihood`, `bic`, `sample` and `labels_` are alike in all estimators."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import softcount as sc

RNG = np.random.default_rng(3)
X = RNG.normal(size=(80, 2)) + np.repeat([[0.0], [3.0]], 40, axis=0)
Y = np.repeat(["no", "yes"], 40)
FRAME = pd.DataFrame({"a": X[:, 0], "c": np.where(X[:, 1] > 1, "u", "v")})
WEIGHTS = RNG.integers(0, 3, size=80).astype(float)
STEPS = [list(RNG.choice(["a", "b", "c"], size=length)) for length in (3, 9, 5, 7)]
TIMES = np.array([2.0, 1.0, 3.0, 1.0])

CLASSIFIERS: dict[str, Any] = {
    "NaiveBayes": lambda: sc.NaiveBayes().fit(FRAME, Y),
    "Classifier": lambda: sc.Classifier().fit(FRAME, Y),
    "AODE": lambda: sc.AODE().fit(FRAME, Y),
}
DENSITIES: dict[str, tuple[Any, Any, Any]] = {
    "Mixture": (lambda: sc.Mixture(2, random_state=0).fit(FRAME), FRAME, WEIGHTS),
    "GaussianMixture": (lambda: sc.GaussianMixture(2, random_state=0).fit(X), X, WEIGHTS),
    "JointModel": (lambda: sc.JointModel(2, random_state=0).fit(FRAME), FRAME, WEIGHTS),
    "BayesNet": (lambda: sc.BayesNet([("c", "a")]).fit(FRAME), FRAME, WEIGHTS),
    "HiddenMarkov": (lambda: sc.HiddenMarkov(2, random_state=0).fit(STEPS), STEPS, TIMES),
    "MarkovChain": (lambda: sc.MarkovChain().fit(STEPS), STEPS, TIMES),
    "KernelDensity": (lambda: sc.KernelDensity().fit(X), X, WEIGHTS),
    "Histogram": (lambda: sc.Histogram().fit(X[:, :1]), X[:, :1], WEIGHTS),
}
CLUSTERS: dict[str, Any] = {
    "Mixture": lambda: sc.Mixture(2, random_state=0),
    "GaussianMixture": lambda: sc.GaussianMixture(2, random_state=0),
    "KMeans": lambda: sc.KMeans(2, random_state=0),
    "SphericalKMeans": lambda: sc.SphericalKMeans(2, random_state=0),
}
PUBLIC = [own for own in (getattr(sc, name) for name in sc.__all__) if inspect.isclass(own)]
ESTIMATORS = [own for own in PUBLIC if issubclass(own, BaseEstimator)]
SAME = {"log_likelihood", "bic", "kinds"}
"""Of the data of the fit with the underscore, of any data, or as it was given, without."""


def test_every_estimator_with_densities_is_here() -> None:
    known = {*DENSITIES, *CLASSIFIERS}
    assert {own.__name__ for own in ESTIMATORS if hasattr(own, "score_samples")} == known


@pytest.mark.parametrize("name", DENSITIES)
def test_score_is_the_mean_and_log_likelihood_the_total(name: str) -> None:
    make, data, weights = DENSITIES[name]
    model = make()
    logs = model.score_samples(data)
    assert model.log_likelihood(data) == pytest.approx(logs.sum())
    assert model.score(data) == pytest.approx(logs.mean())
    assert model.log_likelihood(data, weights) == pytest.approx(logs @ weights)
    assert model.score(data, sample_weight=weights) == pytest.approx(np.average(logs, weights=weights))
    if hasattr(model, "bic"):
        size = sum(map(len, STEPS)) if name == "HiddenMarkov" else len(logs)
        assert model.bic(data) == pytest.approx(model.n_parameters_ * np.log(size) - 2 * logs.sum())
        assert model.bic_ == pytest.approx(model.n_parameters_ * np.log(size) - 2 * model.log_likelihood_)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_score_of_a_classifier_is_its_accuracy(name: str) -> None:
    model = CLASSIFIERS[name]()
    assert model.score(FRAME, Y) == np.mean(model.predict(FRAME) == Y)
    assert model.log_likelihood(FRAME) == pytest.approx(model.score_samples(FRAME).sum())


def test_an_average_has_the_same_words() -> None:
    both = sc.average([sc.Mixture(k, random_state=0).fit(FRAME) for k in (1, 2)])
    assert both.log_likelihood(FRAME) == pytest.approx(both.score(FRAME) * len(FRAME))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_sampling_has_the_same_first_and_last_parameter(estimator: Any) -> None:
    if hasattr(estimator, "sample"):
        names = list(inspect.signature(estimator.sample).parameters.values())
        assert (names[1].name, names[1].default) == ("n_samples", 1)
        assert (names[-1].name, names[-1].default) == ("random_state", None)


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_clustering_has_the_labels_of_its_rows(name: str) -> None:
    model = CLUSTERS[name]().fit(X)
    assert model.labels_.shape == (80,) and (model.labels_ == model.predict(X)).all()
    weighted = CLUSTERS[name]().fit(X, sample_weight=WEIGHTS)
    assert (weighted.labels_ == weighted.predict(X)).all()


def test_labels_of_rows_that_changed_after_the_fit_are_those_of_the_fit() -> None:
    rows = X.copy()
    model = sc.GaussianMixture(2, random_state=0).fit(rows)
    before = model.predict(rows)
    rows[:] = 0.0
    assert (model.labels_ == before).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_underscore_makes_no_other_meaning(estimator: Any) -> None:
    names = {name for name in dir(estimator) if not name.startswith("_")}
    assert {name for name in names if f"{name}_" in names} <= SAME
