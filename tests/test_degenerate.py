"""Tables that leave other programs with NaN, an exception or a spike: an answer and a plain note."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture as PeerMixture

import softcount as sc
from softcount.core.special import least_share

RNG = np.random.default_rng(0)
TABLES = {
    "fifty identical points": np.full((50, 2), 3.7),
    "three points ten times each": np.repeat([[0.0, 0.0], [1.0, 5.0], [2.0, -3.0]], 10, axis=0),
    "one value and an outlier": np.column_stack([np.r_[np.full(30, 1.0), 50.0], np.r_[np.full(30, 2.0), -7.0]]),
    "as many classes as rows": RNG.normal(size=(5, 2)),
    "more classes than rows": RNG.normal(size=(3, 2)),
    "one row": np.array([[1.0, 2.0]]),
    "a constant column": np.column_stack([np.full(30, 5.0), RNG.normal(size=30)]),
    "one column twice": np.repeat(RNG.normal(size=(30, 1)), 2, axis=1),
}
SHAPES: dict[str, Any] = {
    "full": {("a", "b"): sc.families.Multinormal("full")},
    "tied": {("a", "b"): sc.families.Multinormal("tied")},
    "diagonal block": {("a", "b"): sc.families.Multinormal("diagonal")},
    "spherical block": {("a", "b"): sc.families.Multinormal("spherical")},
    "diag": sc.families.Normal(),
    "spherical": sc.families.Normal(tied="columns"),
    "tied diag": sc.families.Normal(tied="classes"),
    "tied spherical": sc.families.Normal(tied="both"),
    "categorical": "categorical",
}


def fitted(rows: np.ndarray, shape: str, **settings: Any) -> tuple[sc.Mixture, pd.DataFrame, list[str]]:
    frame = pd.DataFrame(rows, columns=["a", "b"])
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        model = sc.Mixture(kinds=SHAPES[shape], n_init=2, random_state=0, n_jobs=1, **settings).fit(frame)
    return model, frame, [str(warning.message) for warning in met]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("estimate", ["ml", "mean"])
@pytest.mark.parametrize("name", TABLES)
def test_there_is_always_an_answer(name: str, estimate: str, shape: str) -> None:
    model, frame, met = fitted(TABLES[name], shape, n_components=5, estimate=estimate, max_iter=60)
    assert np.isfinite(model.predict_proba(frame)).all()
    assert np.isfinite(model.score_samples(frame)).all()
    assert np.isfinite(model.log_likelihood_)
    assert not [said for said in met if "encountered" in said]
    distinct = len(np.unique(TABLES[name], axis=0))
    said = "only 1 distinct row." if distinct == 1 else f"only {distinct} distinct rows."
    assert distinct >= 5 or any(said in note for note in model.notes_)


@pytest.mark.parametrize("shape", ["full", "diagonal block", "diag", "spherical"])
def test_an_isolated_point_is_said_to_leave_the_likelihood_without_a_maximum(shape: str) -> None:
    rows = np.vstack([np.random.default_rng(1).normal(size=(60, 2)), [[100.0, 100.0]]])
    model, _, met = fitted(rows, shape, n_components=2, estimate="ml")
    assert any("no maximum" in note for note in model.notes_)
    assert any("no maximum" in said for said in met)


@pytest.mark.parametrize("shape", ["full", "diag", "spherical"])
def test_under_the_default_prior_nothing_of_that_is_said(shape: str) -> None:
    rows = np.vstack([np.random.default_rng(1).normal(size=(60, 2)), [[100.0, 100.0]]])
    model, _, met = fitted(rows, shape, n_components=2)
    assert not met
    assert not any("no maximum" in note for note in model.notes_)


def test_outliers_do_not_get_a_class_each() -> None:
    rng = np.random.default_rng(2)
    clean = np.concatenate([rng.normal(0, 1, (150, 2)), rng.normal(9, 1, (150, 2))])
    rows = np.vstack([clean, [[60.0, -60.0], [-70.0, 50.0], [80.0, 80.0]]])
    model, frame, _ = fitted(rows, "diag", n_components=3)
    sizes = np.bincount(model.predict(frame)[:300], minlength=3)
    assert sorted(sizes)[1:] == [150, 150]
    outliers = model.predict(frame)[300:]
    assert len(set(outliers)) == 1


def test_a_column_flat_in_a_class_is_named() -> None:
    model, _, _ = fitted(TABLES["a constant column"], "diag", n_components=1)
    assert any("'a' does not vary" in note for note in model.notes_)
    block, _, _ = fitted(TABLES["one column twice"], "full", n_components=1, estimate="ml")
    assert any("is flat in group 0" in note for note in block.notes_)


def test_a_class_without_rows_is_dropped_and_said_to_be() -> None:
    rows = pd.DataFrame({"x": ["a", "b"] * 20})
    start = {"weights": [0.5, 0.5, 0.0], "x": {"a": [0.9, 0.1, 0.5], "b": [0.1, 0.9, 0.5]}}
    model = sc.Mixture(3, init=start, estimate="ml", accelerate=False).fit(rows)
    assert len(model.weights_) == 2
    assert any("no row is in 1 of them" in note for note in model.notes_)


# -- the floor itself


@pytest.mark.parametrize("factor", [1e-9, 1.0, 3e7])
def test_the_floor_follows_the_units(factor: float) -> None:
    values = np.random.default_rng(3).normal(size=200)
    weights = np.ones(200)
    assert least_share(values * factor, weights).share == pytest.approx(least_share(values, weights).share, rel=1e-9)


def test_rounded_values_have_no_width_below_their_rounding() -> None:
    values = np.round(np.random.default_rng(4).normal(size=500), 1)
    wide = least_share(values, np.ones(500)).share * values.var()
    assert wide == pytest.approx(0.1**2 / 12, rel=1e-6)


def test_groups_a_million_widths_apart_are_not_blurred() -> None:
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.normal(0, 1, 200), rng.normal(1e6, 1, 200)])
    assert least_share(values, np.ones(400)).share * values.var() < 1e-2
    model = sc.Mixture(2, kinds="normal", estimate="ml", random_state=0, n_init=2).fit(values[:, None])
    np.testing.assert_allclose(np.sort(model.params_[0]["variance"]), np.sort([values[:200].var(), values[200:].var()]))


def test_one_far_value_does_not_widen_the_floor() -> None:
    values = np.append(np.random.default_rng(6).normal(size=300), 1e7)
    assert least_share(values, np.ones(301)).share * values.var() < 1e-2


def test_pixels_that_are_always_empty_in_a_class_are_no_spike():
    """Handwritten digits: every start met a floor in some pixel, so that one which sat on a single row won."""
    X = load_digits().data[:600]
    ours = sc.GaussianMixture(10, covariance_type="diag", random_state=0, n_init=2).fit(X)
    theirs = PeerMixture(10, covariance_type="diag", random_state=0, n_init=2, max_iter=1000).fit(X)
    assert not any("no maximum" in note for note in ours.notes_)
    for model in (ours, theirs):
        assert np.bincount(model.predict(X), minlength=10).min() > 10


def test_a_width_that_all_classes_share_is_mended_by_the_small_class_that_made_it_narrow() -> None:
    """One row alone differs in the last column: a class of it leaves that column no width in any class."""
    rng = np.random.default_rng(0)
    middles = rng.normal(0.0, 30.0, (4, 3))
    rows = np.concatenate([rng.normal(middle, 1.0, (80, 3)) for middle in middles])
    X = np.column_stack([rows, np.zeros(len(rows))])
    X[0, 3] = 50.0
    model = sc.GaussianMixture(4, "tied", n_init=3, random_state=0, n_jobs=1).fit(X)
    assert sorted(np.bincount(model.predict(X)).tolist()) == [80, 80, 80, 80]


@pytest.mark.parametrize(
    "model",
    [
        sc.Classifier(n_jobs=1),
        sc.NaiveBayes(kinds={"a": "normal", "b": "lognormal", "c": "poisson"}, n_jobs=1),
        sc.NaiveBayes(kinds={("a", "b"): sc.families.Multinormal()}, n_jobs=1),
        sc.AODE(n_jobs=1),
        sc.Mixture(2, n_jobs=1),
        sc.GaussianMixture(2, n_jobs=1),
        sc.KMeans(2, n_jobs=1),
        sc.KernelDensity(),
        sc.BayesNet(n_jobs=1),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_a_finite_row_has_finite_probabilities_or_a_clear_error(model: Any) -> None:
    rng = np.random.default_rng(0)
    classes = np.arange(90) % 3
    frame = pd.DataFrame({"a": rng.normal(size=90) + classes, "b": rng.lognormal(size=90) * (1 + classes)})
    frame = frame.assign(c=rng.poisson(3.0 + classes).astype(float))
    supervised = isinstance(model, (sc.Classifier, sc.NaiveBayes, sc.AODE))
    model = clone(model).fit(frame, classes) if supervised else clone(model).fit(frame)
    for column in frame:
        for cell in (1e155, 1.7e308, -1.7e308, 1e-320):
            asked = frame.iloc[:2].copy()
            asked.loc[0, column] = cell
            for method in ("predict_proba", "predict", "score_samples"):
                try:
                    answer = np.asarray(getattr(model, method)(asked))
                except (AttributeError, sc.SoftcountError):
                    continue
                assert not np.isnan(answer).any(), (column, cell, method)
