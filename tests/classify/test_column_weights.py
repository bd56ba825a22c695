"""Naive Bayes with a weight for every column."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import check_estimator

import softcount as sc
from explained import contributions
from softcount.errors import DataError, ModelFileError
from softcount.files.archive import read, write

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
KINDS = {("x", "y"): "multinormal", "visits": "poisson", "note": "text", "price": "lognormal"}


def many(rows=200, seed=0):
    """Columns of many kinds with holes; one of them says nothing."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, rows)
    frame = pd.DataFrame({
        "x": rng.normal(size=rows) + label, "y": rng.normal(size=rows), "visits": rng.poisson(2 + label),
        "colour": np.where(rng.random(rows) < 0.3 + 0.3 * label, "red", "blue"),
        "price": rng.lognormal(label / 2.0, size=rows),
        "note": [" ".join(rng.choice(["buy", "now"] if c else ["see", "you"], 3)) for c in label],
        "noise": rng.normal(size=rows),
    })  # fmt: skip
    for column in ("price", "colour", "note"):
        frame.loc[rng.random(rows) < 0.1, column] = None
    return frame, np.where(label == 1, "yes", "no")


@pytest.fixture(scope="module")
def fitted():
    frame, label = many()
    return sc.NaiveBayes(KINDS, weights="columns").fit(frame, label), frame, label


def test_scores_are_weighted_parts_of_the_model_without_weights(fitted):
    model, frame, label = fitted
    plain = contributions(sc.NaiveBayes(KINDS).fit(frame, label).explain(frame, "no"))
    bias = model.fitted_.scorer.intercept
    weights = model.column_weights_
    assert len(weights) == 6
    names = {
        key: str(key) if isinstance(key, str) else next(n for n in plain.column_names if "x" in n) for key in weights
    }
    odds = model.predict_log_proba(frame) @ [-1, 1]
    yes = sc.NaiveBayes(KINDS).fit(frame, label).predict(frame) == "yes"
    # `explain` of a row against its own class says 0: only rows of the other class are compared.
    total = sum(weights[key] * plain[names[key]].to_numpy() for key in weights) + bias[1] - bias[0]
    np.testing.assert_allclose(odds[yes], total[yes], atol=1e-9)


def test_explanations_add_up_and_holes_add_nothing(fitted):
    model, frame, _ = fitted
    table = contributions(model.explain(frame))
    logs = model.predict_log_proba(frame)
    total = np.sum([table[name].to_numpy() for name in table.column_names], axis=0)
    np.testing.assert_allclose(total, logs.max(axis=1) - logs.min(axis=1), atol=1e-10)
    assert (table["price"].to_numpy()[frame["price"].isna()] == 0).all()


def test_two_copies_of_a_column_share_what_one_would_have():
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, 500)
    x = rng.normal(size=500) + label
    alone = sc.NaiveBayes(weights="columns").fit(x[:, None], label)
    twice = sc.NaiveBayes(weights="columns").fit(np.stack([x, x], axis=1), label)
    one, two = alone.column_weights_[0], twice.column_weights_
    assert two[0] == pytest.approx(two[1], abs=1e-6)
    assert two[0] + two[1] == pytest.approx(one, abs=0.05)
    plain = sc.NaiveBayes().fit(np.stack([x, x], axis=1), label).predict_proba(np.stack([x, x], axis=1))
    ours, single = twice.predict_proba(np.stack([x, x], axis=1)), alone.predict_proba(x[:, None])
    assert np.abs(ours - single).max() < 0.02 < np.abs(plain - single).max()


def test_a_column_that_says_nothing_is_dropped_and_said():
    rng = np.random.default_rng(4)
    label = rng.integers(0, 2, 400)
    frame = pd.DataFrame({"told": np.where(rng.random(400) < 0.2, 1 - label, label).astype(str)})
    for k in range(4):
        frame[f"noise {k}"] = rng.choice(["a", "b", "c"], 400)
    model = sc.NaiveBayes(weights="columns").fit(frame, label)
    dropped = [key for key, weight in model.column_weights_.items() if weight == 0]
    assert dropped
    assert "told" not in dropped
    assert any(repr(dropped[0]) in note for note in model.notes_)


def test_the_linear_form_includes_the_weights():
    rng = np.random.default_rng(2)
    label = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 3)) + label[:, None] * [1.0, 1.0, 0.0]
    model = sc.NaiveBayes(sc.families.Normal(tied="classes"), weights="columns").fit(X, label)
    coef, intercept = model.to_linear()
    scores = X @ coef.T + intercept
    scores -= scores.max(axis=1, keepdims=True)
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), proba, atol=1e-12)


def test_saved_is_loaded_and_senseless_weights_are_refused(fitted, tmp_path):
    model, frame, _ = fitted
    model.save(tmp_path / "model.sc")
    loaded = sc.load(tmp_path / "model.sc")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.column_weights_ == model.column_weights_
    document, arrays = read(tmp_path / "model.sc")
    name = document["scorer"]["weights"]["array"]
    for wrong in (-arrays[name], arrays[name][:-1], arrays[name] * np.nan):
        write(tmp_path / "bad.sc", document, {**arrays, name: wrong})
        with pytest.raises(ModelFileError):
            sc.load(tmp_path / "bad.sc")


def test_densities_and_merged_counts_are_those_without_weights(fitted):
    _, frame, label = fitted
    weighted = sc.NaiveBayes(KINDS, weights="columns").fit(frame, label)
    plain = sc.NaiveBayes(KINDS).fit(frame, label)
    np.testing.assert_array_equal(weighted.score_samples(frame), plain.score_samples(frame))
    merged = weighted.merge(weighted)
    assert "dropped" in merged.notes_[-1]
    np.testing.assert_allclose(merged.predict_proba(frame), plain.merge(plain).predict_proba(frame))


def test_weight_two_is_the_row_twice_on_any_number_of_threads():
    frame, label = many(80)
    weights = np.where(np.arange(80) % 4 == 0, 2, 1)
    twice = np.repeat(np.arange(80), weights)
    kinds = {"note": "ignore"}
    heavy = sc.NaiveBayes(kinds, weights="columns", n_jobs=1).fit(frame, label, weights)
    written = sc.NaiveBayes(kinds, weights="columns", n_jobs=2).fit(frame.iloc[twice], label[twice])
    np.testing.assert_allclose(heavy.predict_proba(frame), written.predict_proba(frame), atol=1e-4)


@pytest.mark.parametrize("settings", [{"weights": "rows"}, {"weights": "columns", "calibration": "isotonic"}])
def test_senseless_settings_are_refused(settings):
    with pytest.raises(DataError, match="weights="):
        sc.NaiveBayes(**settings).fit(np.eye(2), [0, 1])


def test_it_passes_the_checks_of_scikit_learn_but_those_that_repeat_rows():
    # Rows repeated in another order are in other folds, so the weights that these suggest differ a little.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(sc.NaiveBayes(weights="columns"), on_fail=None)
    failed = {x["check_name"] for x in results if x["status"] == "failed"}
    assert failed <= {
        "check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"
    }  # fmt: skip
