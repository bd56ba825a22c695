"""The estimators keep scikit-learn's contract and work inside its tools."""

from __future__ import annotations

import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import softcount as sc
from small_tables import KINDS, fruit, numbers
from softcount.errors import DataError

FRAME, LABELS = fruit()
QUICK = {"n_init": 1, "max_iter": 5}
ESTIMATORS = [sc.NaiveBayes(), sc.Mixture(2, **QUICK), sc.GaussianMixture()]
MORE = [
    *(sc.GaussianMixture(2, kind, **QUICK) for kind in ("full", "tied", "diag", "spherical")),
    *(sc.GaussianMixture(2, kind, **QUICK) for kind in ("tied_diag", "tied_spherical")),
    sc.JointModel(2, random_state=0),
    sc.KMeans(),
    sc.SphericalKMeans(),
    sc.BayesNet(),
    sc.BayesNet("chow-liu", prior="bdeu"),
]
ELSEWHERE = {"AODE", "BagOfWords", "Classifier", "KernelDensity"}
"""Estimators that are checked next to their other tests."""


def named(estimator):
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *MORE], ids=repr)
def test_every_check_of_scikit_learn_passes(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail="raise")
    assert len(results) > 40
    skipped = {result["check_name"] for result in results if result["status"] != "passed"}
    assert skipped <= {"check_array_api_input"}  # scikit-learn runs it only where SCIPY_ARRAY_API is set


def test_the_documentation_lists_the_estimators_that_pass():
    text = (Path(__file__).parents[1] / "docs" / "coming-from" / "scikit-learn.md").read_text()
    said = text[text.index("These estimators pass scikit-learn's") :]
    listed = set(re.findall(r"`([A-Z]\w+)`", said[: said.index("One exception")]))
    assert listed == {named(estimator) for estimator in [*ESTIMATORS, *MORE]} | ELSEWHERE
    others = set(re.findall(r"`([A-Z]\w+)`", said[said.index("fails two checks") : said.index("do not apply")]))
    public = {name for name in sc.__all__ if isinstance(getattr(sc, name), type)}
    assert listed | others == {name for name in public if issubclass(getattr(sc, name), BaseEstimator)}


def test_a_mixture_that_looks_for_its_size_passes_what_does_not_count_classes():
    # These two want two columns of probabilities from a sparse table in which one class is the best answer.
    counting = {"check_estimator_sparse_array", "check_estimator_sparse_matrix"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Climbs of five steps end on the way up, where the last bit of a product decides which of two ways they took.
        results = check_estimator(sc.Mixture(n_init=1, max_iter=30), on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed <= counting
    rows = np.random.RandomState(0).uniform(size=(40, 3))
    rows[rows < 0.6] = 0
    model = sc.Mixture(**QUICK).fit(sparse.csr_array(rows))
    assert model.predict_proba(sparse.csr_array(rows)).shape == (40, model.n_components_)


@pytest.mark.parametrize("estimator", [sc.NaiveBayes(KINDS, prior=2.0), sc.Mixture(3, n_init=2)], ids=named)
def test_a_clone_has_the_settings_and_nothing_learned(estimator):
    fitted = estimator.fit(FRAME, LABELS) if is_classifier(estimator) else estimator.fit(FRAME)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(FRAME)


@pytest.mark.parametrize("estimator", [sc.NaiveBayes(kinds=KINDS), sc.Mixture(2, random_state=0)], ids=named)
def test_a_pickled_estimator_predicts_the_same(estimator):
    estimator.fit(FRAME, LABELS)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict_proba(FRAME), estimator.predict_proba(FRAME))
    assert again.get_params() == estimator.get_params()


def test_joblib_gives_the_estimator_back(tmp_path):
    import joblib

    model = sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS)
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))


# Frames


def frames(frame=FRAME):
    return {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame),
        "mapping": {name: frame[name].tolist() for name in frame},
    }


@pytest.mark.parametrize("kind", frames())
def test_every_kind_of_frame_gives_the_same_model(kind):
    X = frames()[kind]
    model = sc.NaiveBayes(kinds=KINDS).fit(X, LABELS)
    plain = sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(FRAME))
    assert model.feature_names_in_.tolist() == ["size", "colour", "visits"]
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_mixture_takes_every_kind_of_frame(kind):
    settings = {"n_components": 2, "kinds": KINDS, "random_state": 0, "n_init": 2}
    model = sc.Mixture(**settings).fit(frames()[kind])
    np.testing.assert_array_equal(model.weights_, sc.Mixture(**settings).fit(FRAME).weights_)
    assert model.feature_names_in_.tolist() == ["size", "colour", "visits"]


def test_an_array_has_positions_and_no_names():
    model = sc.NaiveBayes().fit(numbers(), LABELS)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    assert list(model.params_) == [0, 1]


def test_names_learned_from_a_frame_are_forgotten_when_an_array_is_fitted():
    model = sc.NaiveBayes().fit(FRAME, LABELS).fit(numbers(), LABELS)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2


def test_a_frame_without_names_has_positions():
    model = sc.NaiveBayes().fit(pd.DataFrame(numbers()), LABELS)
    assert list(model.params_) == [0, 1]
    assert not hasattr(model, "feature_names_in_")


def test_a_sparse_matrix_is_the_block_of_counts_it_would_be_dense():
    counts = np.random.default_rng(0).poisson(1.0, (60, 5))
    model = sc.NaiveBayes().fit(sparse.csr_matrix(counts), LABELS)
    dense = sc.NaiveBayes(kinds="multinomial").fit(counts, LABELS)
    expected = dense.predict_proba(counts)
    np.testing.assert_allclose(model.predict_proba(sparse.csr_matrix(counts)), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(counts), expected, rtol=1e-12)


# Labels

LABEL_TYPES = {
    "int": (np.array([3, -1]), np.int64),
    "small int": (np.array([0, 1], dtype=np.int8), np.int8),
    "text": (np.array(["yes", "no"]), np.str_),
    "object text": (np.array(["yes", "no"], dtype=object), np.str_),
    "truth": (np.array([True, False]), np.bool_),
    "whole float": (np.array([2.0, -7.0]), np.float64),
}


@pytest.mark.parametrize("kind", LABEL_TYPES)
def test_classes_are_sorted_and_keep_the_type_of_the_labels(kind):
    pair, cell = LABEL_TYPES[kind]
    y = pair[(LABELS == "sour").astype(int)]
    model = sc.NaiveBayes(kinds=KINDS).fit(FRAME, y)
    assert model.classes_.tolist() == sorted(pair.tolist())
    assert all(isinstance(name, cell) or np.issubdtype(model.classes_.dtype, cell) for name in model.classes_)
    predicted = model.predict(FRAME)
    assert predicted.dtype == model.classes_.dtype
    assert set(predicted.tolist()) == set(pair.tolist())
    plain = sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS).predict(FRAME)
    np.testing.assert_array_equal(predicted == pair[1], plain == "sour")


@pytest.mark.parametrize("kind", ["list", "pandas", "polars", "arrow", "column vector"])
def test_labels_come_in_any_one_dimensional_shape(kind):
    shapes = {
        "list": LABELS.tolist(),
        "pandas": pd.Series(LABELS),
        "polars": pl.Series(LABELS.tolist()),
        "arrow": pa.array(LABELS.tolist()),
        "column vector": LABELS[:, None],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a column vector is said to be one
        model = sc.NaiveBayes(kinds=KINDS).fit(FRAME, shapes[kind])
    assert model.classes_.tolist() == ["ripe", "sour"]
    np.testing.assert_array_equal(model.class_count_, [(LABELS == "ripe").sum(), (LABELS == "sour").sum()])


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "mapping"])
def test_labels_may_be_the_name_of_a_column(kind):
    X = frames(FRAME.assign(state=LABELS))[kind]
    model = sc.NaiveBayes(kinds=KINDS).fit(X, "state")
    apart = sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS)
    np.testing.assert_array_equal(model.predict_proba(X), apart.predict_proba(FRAME))
    assert "state" not in model.params_
    assert model.feature_names_in_.tolist() == ["size", "colour", "visits"]
    assert model.score(X, "state") == apart.score(FRAME, LABELS)


def listed(known):
    return [name if here else None for name, here in zip(LABELS.tolist(), known, strict=True)]


GAPS = {
    "None": lambda known: np.where(known, LABELS.astype(object), None),
    "NaN": lambda known: np.where(known, (LABELS == "sour").astype(float), np.nan),
    "pandas": lambda known: pd.Series(LABELS).where(known),
    "nullable integers": lambda known: pd.Series((LABELS == "sour").astype(int), dtype="Int64").where(known),
    "list": listed,
    "polars": lambda known: pl.Series(listed(known)),
    "arrow": lambda known: pa.array(listed(known)),
}


@pytest.mark.parametrize("kind", GAPS)
def test_a_gap_in_the_labels_is_an_unlabelled_row(kind):
    known = np.arange(60) % 5 != 0
    model = sc.NaiveBayes(kinds=KINDS, unlabelled_weight=1.0).fit(FRAME, GAPS[kind](known))
    assert len(model.classes_) == 2
    assert model.class_count_.sum() == pytest.approx(60.0)
    assert any("12 rows without a label" in note for note in model.notes_)
    left_out = sc.NaiveBayes(kinds=KINDS).fit(FRAME[known], LABELS[known])
    assert np.abs(model.predict_proba(FRAME) - left_out.predict_proba(FRAME)).max() > 1e-6
    ignoring = sc.NaiveBayes(kinds=KINDS, unlabelled_weight=0.0).fit(FRAME, GAPS[kind](known))
    np.testing.assert_allclose(ignoring.predict_proba(FRAME), left_out.predict_proba(FRAME), rtol=1e-12)


# Inside scikit-learn's tools


def test_a_pipeline_scores_as_its_parts_do():
    X = numbers(columns=3)
    piped = make_pipeline(StandardScaler(), sc.NaiveBayes()).fit(X, LABELS)
    alone = sc.NaiveBayes().fit(X, LABELS)
    np.testing.assert_allclose(piped.predict_proba(X), alone.predict_proba(X), rtol=1e-9)
    assert piped.score(X, LABELS) == alone.score(X, LABELS)


def test_a_column_transformer_hands_columns_on_with_their_names():
    scaled = ColumnTransformer(
        [("scaled", StandardScaler(), ["size"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    piped = make_pipeline(scaled, sc.NaiveBayes(kinds=KINDS)).fit(FRAME, LABELS)
    assert set(piped[-1].params_) == {"size", "colour", "visits"}
    alone = sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS)
    np.testing.assert_allclose(piped.predict_proba(FRAME), alone.predict_proba(FRAME), rtol=1e-9)


def test_a_column_transformer_without_names_gives_positions():
    passed = ColumnTransformer([("kept", "passthrough", ["size", "visits"])])
    piped = make_pipeline(passed, sc.NaiveBayes(kinds={0: "normal", 1: "poisson"})).fit(FRAME, LABELS)
    named_kinds = {"size": "normal", "visits": "poisson"}
    alone = sc.NaiveBayes(kinds=named_kinds).fit(FRAME[["size", "visits"]], LABELS)
    np.testing.assert_allclose(piped.predict_proba(FRAME), alone.predict_proba(FRAME), rtol=1e-12)


def test_a_mixture_ends_a_pipeline():
    X = np.concatenate([numbers() - 5.0, numbers(seed=1) + 5.0])
    labels = make_pipeline(StandardScaler(), sc.Mixture(2, random_state=0, n_init=2)).fit_predict(X)
    assert set(labels) == {0, 1}
    assert len(set(labels[:60])) == len(set(labels[60:])) == 1


GRID = {"prior": [0.5, 1.0, "jeffreys"], "estimate": ["mean", "ml"], "kinds": [KINDS, KINDS | {"visits": "normal"}]}


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_grid_search_over_prior_estimate_and_kinds_finds_what_a_loop_finds(n_jobs):
    folds = StratifiedKFold(3)
    how = {"cv": folds, "scoring": "neg_log_loss"}
    search = GridSearchCV(sc.NaiveBayes(n_jobs=1), GRID, n_jobs=n_jobs, **how).fit(FRAME, LABELS)
    best = max(
        np.mean(cross_val_score(sc.NaiveBayes(**choice), FRAME, LABELS, **how))
        for choice in search.cv_results_["params"]
    )
    assert search.best_score_ == pytest.approx(best, rel=1e-12)
    assert len(search.cv_results_["params"]) == 12
    assert search.best_estimator_.get_params()["prior"] == search.best_params_["prior"]


def test_cross_val_score_is_the_mean_of_refits():
    folds = StratifiedKFold(4)
    scores = cross_val_score(sc.NaiveBayes(kinds=KINDS), FRAME, LABELS, cv=folds)
    for score, (train, test) in zip(scores, folds.split(FRAME, LABELS), strict=True):
        model = sc.NaiveBayes(kinds=KINDS).fit(FRAME.iloc[train], LABELS[train])
        assert score == np.mean(model.predict(FRAME.iloc[test]) == LABELS[test])


def test_cross_val_predict_gives_a_probability_per_class():
    proba = cross_val_predict(sc.NaiveBayes(kinds=KINDS), FRAME, LABELS, cv=3, method="predict_proba")
    assert proba.shape == (60, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)


def test_a_mixture_is_scored_by_its_log_density():
    X = np.concatenate([numbers() - 4.0, numbers(seed=1) + 4.0])
    order = np.random.default_rng(0).permutation(len(X))
    for mixture in (sc.Mixture(random_state=0, n_init=2), sc.GaussianMixture(random_state=0, n_init=2)):
        search = GridSearchCV(mixture, {"n_components": [1, 2]}, cv=3).fit(X[order])
        assert search.best_params_ == {"n_components": 2}


def test_settings_are_kept_as_given_and_can_be_set():
    model = sc.NaiveBayes(kinds=KINDS).set_params(prior=3.0, estimate="map")
    assert model.get_params()["kinds"] is KINDS
    model.fit(FRAME, LABELS)
    assert model.get_params()["kinds"] is KINDS
    assert model.prior == 3.0
    with pytest.raises(ValueError, match="Invalid parameter 'pior'"):
        model.set_params(pior=1.0)


def test_fitting_changes_neither_the_table_nor_the_labels():
    frame, labels = FRAME.copy(), LABELS.copy()
    sc.NaiveBayes().fit(frame, labels).predict(frame)
    sc.Mixture(2, n_init=1, random_state=0).fit(frame).impute(frame)
    pd.testing.assert_frame_equal(frame, FRAME)
    np.testing.assert_array_equal(labels, LABELS)


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "score_samples", "explain", "impute"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_nothing_is_answered_before_a_fit(estimator, ask):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(clone(estimator), ask)(FRAME)


def test_a_failed_fit_leaves_an_earlier_model_as_it_was():
    model = sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS)
    before = model.predict_proba(FRAME)
    with pytest.raises(DataError):
        model.fit(FRAME, [None] * 60)
    np.testing.assert_array_equal(model.predict_proba(FRAME), before)
