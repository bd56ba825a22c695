"""Worked example 12: a shared variance makes the classes' log-odds linear, free variances make them quadratic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import softmax

import softcount as sc

HEIGHTS = np.array([[72.0], [66.0], [74.0], [62.0], [67.0]])
WHO = ["tall", "tall", "tall", "short", "short"]


def log_odds(model, height):
    short, tall = model.predict_log_proba(np.array([[height]]))[0]
    return tall - short


def test_means_and_variances_of_the_heights():
    model = sc.NaiveBayes(estimate="ml").fit(HEIGHTS, WHO)
    assert model.classes_.tolist() == ["short", "tall"]
    np.testing.assert_allclose(model.params_[0]["mean"], [64.5, 70.6667], atol=5e-5)
    np.testing.assert_allclose(model.params_[0]["variance"], [6.25, 11.5556], atol=5e-5)


def test_free_variances_give_two_boundaries():
    model = sc.NaiveBayes(estimate="ml").fit(HEIGHTS, WHO)
    assert brentq(lambda x: log_odds(model, x), 30, 60, xtol=1e-12) == pytest.approx(47.4942, abs=5e-5)
    assert brentq(lambda x: log_odds(model, x), 60, 80, xtol=1e-12) == pytest.approx(66.9771, abs=5e-5)
    assert model.predict([[47.0], [50.0], [66.9], [67.1]]).tolist() == ["tall", "short", "short", "tall"]


def test_the_quadratic_has_these_boundaries_for_roots():
    model = sc.NaiveBayes(estimate="ml").fit(HEIGHTS, WHO)
    np.testing.assert_allclose(model.to_quadratic("tall", "short").roots, [47.4942, 66.9771], atol=5e-5)
    pooled = sc.NaiveBayes(kinds={0: sc.families.Normal(tied="classes")}, estimate="ml").fit(HEIGHTS, WHO)
    np.testing.assert_allclose(pooled.to_quadratic().roots, [66.9631], atol=5e-5)


def test_one_pooled_variance_gives_one_boundary():
    model = sc.NaiveBayes(kinds={0: sc.families.Normal(tied="classes")}, estimate="ml").fit(HEIGHTS, WHO)
    assert brentq(lambda x: log_odds(model, x), 0, 200, xtol=1e-12) == pytest.approx(66.9631, abs=5e-5)
    coef, intercept = model.to_linear()
    slope, start = coef[1, 0] - coef[0, 0], intercept[1] - intercept[0]
    assert -start / slope == pytest.approx(66.9631, abs=5e-5)


def test_the_weights_are_those_of_the_formula():
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(60, 3)) + np.arange(60)[:, None] % 3, np.arange(60) % 3
    model = sc.NaiveBayes(kinds=sc.families.Normal(tied="classes"), estimate="ml").fit(X, y)
    coef, intercept = model.to_linear()
    mean = np.stack([X[y == c].mean(axis=0) for c in range(3)])
    variance = ((X - mean[y]) ** 2).mean(axis=0)
    np.testing.assert_allclose(coef, mean / variance, rtol=1e-12)
    np.testing.assert_allclose(intercept, np.log(1 / 3) - (mean**2 / (2 * variance)).sum(axis=1), rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(1, 4), st.integers(0, 10**6), st.sampled_from(["ml", "mean"]))
def test_the_softmax_of_the_linear_form_is_the_model(classes, columns, seed, estimate):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(classes, size=20)])
    X = rng.normal(size=(len(y), columns)) * 3 + y[:, None]
    model = sc.NaiveBayes(kinds=sc.families.Normal(tied="classes"), estimate=estimate).fit(X, y)
    coef, intercept = model.to_linear()
    assert coef.shape == (classes, columns)
    np.testing.assert_allclose(softmax(X @ coef.T + intercept, axis=1), model.predict_proba(X), atol=1e-12)


def test_bernoulli_and_multinomial_are_linear_too():
    rng = np.random.default_rng(3)
    y = np.arange(40) % 2
    bits, words = rng.integers(0, 2, size=(40, 4)), rng.poisson(2 + y[:, None], size=(40, 5))
    for X, kinds in [(bits, "bernoulli"), (words, "multinomial")]:
        model = sc.NaiveBayes(kinds=kinds).fit(X, y)
        coef, intercept = model.to_linear()
        np.testing.assert_allclose(softmax(X @ coef.T + intercept, axis=1), model.predict_proba(X), atol=1e-12)


def test_free_variances_are_refused_naming_the_column():
    model = sc.NaiveBayes().fit({"height": HEIGHTS[:, 0]}, WHO)
    with pytest.raises(sc.DataError, match=r"'height'.*not linear"):
        model.to_linear()
