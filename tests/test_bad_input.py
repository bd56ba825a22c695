"""Tables, labels and weights that cannot be used: each is refused by name, or used and said so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import softcount as sc
from small_tables import KINDS, fruit, mixture, naive, numbers, refused, with_cell
from softcount.errors import DataError, DataWarning
from softcount.estimators.result_frames import arrow_of as arrow

FRAME, LABELS = fruit()
ARRAY = numbers()


def fitted_on(X, **how):
    """Both estimators, each as a function that fits the table."""
    return {"naive Bayes": lambda: naive(**how).fit(X, LABELS), "mixture": lambda: mixture(**how).fit(X)}


BOTH = pytest.mark.parametrize("model", ["naive Bayes", "mixture"])


# Cells


@BOTH
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_cell_is_refused_by_column_and_row(model, value):
    refused(fitted_on(with_cell(FRAME, "size", 7, value))[model], "'size'", "row 8", "infinite", "leave the column out")
    spoilt = ARRAY.copy()
    spoilt[5, 1] = value
    refused(fitted_on(spoilt, kinds=None)[model], "column 1", "row 6", "infinite")


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "predict_log_proba", "score_samples", "explain", "impute"])
def test_an_infinite_cell_is_refused_in_every_question(ask):
    spoilt = ARRAY.copy()
    spoilt[5, 1] = np.inf
    refused(lambda: getattr(sc.NaiveBayes().fit(ARRAY, LABELS), ask)(spoilt), "column 1", "row 6", "infinit")
    later = with_cell(FRAME, "size", 7, -np.inf)
    refused(lambda: getattr(naive().fit(FRAME, LABELS), ask)(later), "'size'", "row 8", "infinit")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the anchor of a column that is refused a moment later
def test_a_number_beyond_a_double_is_refused_by_column_and_row(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1.5,a\n2.5,b\n1e400,a\n3.5,b\n")
    refused(lambda: sc.NaiveBayes().fit(tmp_path / "a.csv", "y"), "'x'", "row 3", "1e400", "too large")


def test_numbers_too_large_to_be_squared_are_refused_not_turned_into_nan():
    wild = np.array([[1e200], [-1e308], [1.7e308], [0.0]])
    try:
        model = sc.NaiveBayes().fit(wild, [0, 0, 1, 1])
    except DataError as error:
        assert "too large" in str(error)
    else:
        assert np.isfinite(model.predict_proba(wild)).all()


@BOTH
def test_a_column_without_any_value_is_left_out_and_said(model):
    found = fitted_on(FRAME.assign(nothing=np.nan))[model]()
    assert "nothing" not in found.params_
    assert any("'nothing'" in note and "no values" in note for note in found.notes_)
    plain = fitted_on(FRAME)[model]()
    np.testing.assert_array_equal(found.predict_proba(FRAME), plain.predict_proba(FRAME))


@pytest.mark.parametrize("kind", ["normal", "poisson", "lognormal", "categorical", "bernoulli"])
@pytest.mark.parametrize("estimate", ["mean", "ml", "predictive"])
def test_a_declared_column_without_any_value_is_kept_and_is_no_evidence(kind, estimate):
    nothing = FRAME.assign(nothing=None if kind in ("categorical", "bernoulli") else np.nan)
    model = naive(kinds=KINDS | {"nothing": kind}, estimate=estimate).fit(nothing, LABELS)
    assert "nothing" in model.params_
    plain = naive(estimate=estimate).fit(FRAME, LABELS).predict_proba(FRAME)
    np.testing.assert_allclose(model.predict_proba(nothing), plain, rtol=1e-12)


@BOTH
def test_a_constant_column_is_left_out_and_said(model):
    found = fitted_on(FRAME.assign(same=3.5))[model]()
    assert "same" not in found.params_
    assert any("'same'" in note and "always 3.5" in note for note in found.notes_)


@pytest.mark.parametrize("estimate", ["mean", "ml"])  # a predictive tail is as heavy as its class is small
@pytest.mark.parametrize("met", [3.5, 3.6, -1e6])
def test_a_declared_constant_column_never_drowns_the_others(estimate, met):
    """A cell far from what was always the same is as improbable in every class, so the other columns decide."""
    kinds = KINDS | {"same": "normal"}
    model = naive(kinds=kinds, estimate=estimate).fit(FRAME.assign(same=3.5), LABELS)
    assert any("'same' does not vary" in note for note in model.notes_)
    plain = naive(estimate=estimate).fit(FRAME, LABELS)
    X = FRAME.assign(same=met)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(FRAME), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), plain.predict(FRAME))
    reasons = arrow(model.explain(X)).to_pandas()
    np.testing.assert_allclose(reasons["same"], 0.0, atol=1e-9)
    np.testing.assert_allclose(reasons["size"], arrow(plain.explain(FRAME)).to_pandas()["size"], rtol=1e-9)


def test_the_only_column_is_kept_though_it_never_varies():
    model = sc.NaiveBayes().fit(FRAME[["size"]].assign(size=1.0), LABELS)
    assert any("'size' is kept" in note for note in model.notes_)
    shares = [np.mean(LABELS == "ripe"), np.mean(LABELS == "sour")]
    np.testing.assert_allclose(model.predict_proba(FRAME[["size"]]), np.tile(shares, (60, 1)), rtol=1e-12)


@BOTH
def test_one_row_is_a_table(model):
    estimator = naive() if model == "naive Bayes" else mixture(n_components=1)
    estimator.fit(FRAME[:1], LABELS[:1])
    assert np.isfinite(estimator.predict_proba(FRAME[:1])).all()
    np.testing.assert_allclose(estimator.predict_proba(FRAME[:1]).sum(), 1.0)
    if model == "naive Bayes":
        assert estimator.predict(FRAME[:1]) == LABELS[:1]
        assert any("only one class" in note for note in estimator.notes_)


@BOTH
def test_no_row_is_no_table(model):
    make = {"naive Bayes": lambda X: naive().fit(X, []), "mixture": lambda X: mixture().fit(X)}[model]
    refused(lambda: make(FRAME[:0]), "0 sample")
    make = {"naive Bayes": lambda X: sc.NaiveBayes().fit(X, []), "mixture": lambda X: sc.Mixture(2).fit(X)}[model]
    refused(lambda: make(ARRAY[:0]), "0 sample")
    estimator = fitted_on(FRAME)[model]()
    refused(lambda: estimator.predict(FRAME[:0]), "at least one row")


def test_more_components_than_distinct_rows_answer_and_are_noted():
    rows = np.array([[0.0], [1.0]] * 4)
    model = sc.Mixture(5, random_state=0).fit(rows)
    assert any("5 classes" in note and "2 distinct rows" in note for note in model.notes_)
    assert model.weights_.shape == (5,)
    np.testing.assert_allclose(model.weights_.sum(), 1.0)
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples(rows)).all()


# Counts

COUNTS = {
    "poisson": ({"visits": "poisson"}, "visits", -2, ("'visits'", "row 5", "-2", "0, 1, 2")),
    "fractional": ({"visits": "poisson"}, "visits", 2.5, ("'visits'", "row 5", "2.5", "0, 1, 2")),
    "multinomial": ({("visits", "hits"): "multinomial"}, "hits", -1, ("'hits'", "row 5", "-1", "0, 1, 2")),
    "successes": ({("hits", "shots"): "binomial"}, "hits", -1, ("'hits'", "row 5", "-1", "0, 1, 2")),
    "trials": ({("hits", "shots"): "binomial"}, "shots", -1, ("'shots'", "row 5", "-1", "0, 1, 2")),
    "too many successes": ({("hits", "shots"): "binomial"}, "hits", 9, ("hits", "row 5", "more successes than trials")),
    "lognormal": ({"size": "lognormal"}, "size", -1.5, ("'size'", "row 5", "-1.5", "above zero")),
    "infinite count": ({"visits": "poisson"}, "visits", np.inf, ("'visits'", "row 5", "infinite")),
}


@BOTH
@pytest.mark.parametrize("name", COUNTS)
def test_a_cell_its_family_cannot_hold_is_refused_in_fit_and_in_prediction(name, model):
    kinds, column, value, words = COUNTS[name]
    X = FRAME.assign(size=np.exp(FRAME["size"]), hits=[1, 2, 3, 0] * 15, shots=[4, 5, 3, 2] * 15)
    spoilt = with_cell(X, column, 4, value)
    refused(fitted_on(spoilt, kinds=kinds)[model], *words)
    refused(lambda: fitted_on(X, kinds=kinds)[model]().predict(spoilt), *words)


def test_a_sparse_table_holds_counts():
    counts = np.random.default_rng(0).poisson(1.0, (60, 4))
    spoilt = counts.astype(float)
    spoilt[6, 2] = -1.0
    refused(lambda: sc.NaiveBayes().fit(sparse.csr_matrix(spoilt), LABELS), "column 2", "row 7", "-1")
    model = sc.NaiveBayes().fit(sparse.csr_matrix(counts), LABELS)
    refused(lambda: model.predict(sparse.csr_matrix(spoilt)), "column 2", "row 7", "-1")
    spoilt[6, 2] = np.nan
    refused(lambda: sc.NaiveBayes().fit(sparse.csr_matrix(spoilt), LABELS), "column 2", "row 7", "nan")
    refused(lambda: sc.NaiveBayes(kinds="normal").fit(sparse.csr_matrix(counts), LABELS), "multinomial", "dense")


# Weights

WEIGHTS = {
    "negative": (np.r_[np.ones(3), -1.0, np.ones(56)], ("row 4", r"-1\.0", "not negative")),
    "missing": (np.r_[np.ones(3), np.nan, np.ones(56)], ("row 4", "nan", "finite")),
    "infinite": (np.r_[np.ones(3), np.inf, np.ones(56)], ("row 4", "inf", "finite")),
    "all zero": (np.zeros(60), ("all weights are zero", "above zero")),
    "zero for all": (0.0, ("all weights are zero",)),
    "too few": (np.ones(5), ("5", "60 rows", "one weight per row")),
    "two of each": (np.ones((60, 2)), ("1D",)),
    "words": (["heavy"] * 60, ("numbers",)),
    "a name": ("size", ("numbers",)),
}


@BOTH
@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_are_no_weights_are_refused(name, model):
    weights, words = WEIGHTS[name]
    make = {
        "naive Bayes": lambda: naive().fit(FRAME, LABELS, sample_weight=weights),
        "mixture": lambda: mixture().fit(FRAME, sample_weight=weights),
    }
    refused(make[model], *words)


@pytest.mark.parametrize("ask", ["score", "bic", "icl"])
@pytest.mark.parametrize("name", ["negative", "missing", "all zero", "too few"])
def test_weights_that_are_no_weights_are_refused_when_a_mixture_is_scored(name, ask):
    weights, words = WEIGHTS[name]
    model = mixture().fit(FRAME)
    refused(lambda: getattr(model, ask)(FRAME, sample_weight=weights), *words)


@BOTH
def test_a_row_of_weight_zero_counts_for_nothing_not_even_a_level(model):
    extra = pd.concat([FRAME, pd.DataFrame({"size": [1e9], "colour": ["violet"], "visits": [999]})])
    weights = np.r_[np.ones(60), 0.0]
    y = np.r_[LABELS, ["rotten"]]
    make = {
        "naive Bayes": lambda X, y, w: naive().fit(X, y, sample_weight=w),
        "mixture": lambda X, y, w: mixture().fit(X, sample_weight=w),
    }[model]
    found, plain = make(extra, y, weights), make(FRAME, LABELS, None)
    assert found.levels_["colour"] == ["blue", "green", "red"]
    np.testing.assert_allclose(found.predict_proba(FRAME), plain.predict_proba(FRAME), rtol=1e-9)


# Labels


@pytest.mark.parametrize("kind", ["array", "list", "column"])
def test_labels_that_are_measurements_are_refused_by_row(kind):
    y = np.r_[np.ones(9), 0.25, np.ones(50)]
    ask = {
        "array": lambda: naive().fit(FRAME, y),
        "list": lambda: naive().fit(FRAME, y.tolist()),
        "column": lambda: naive().fit(FRAME.assign(t=y), "t"),
    }
    refused(ask[kind], "row 10", "0.25", "classes")


@pytest.mark.parametrize("make", [sc.NaiveBayes, sc.Classifier, sc.AODE, sc.BayesNet, sc.Mixture])
def test_a_numeric_target_is_refused_by_its_name_and_its_remedy(make):
    months = np.r_[np.arange(21), np.arange(39) % 21]
    said = ("column 'months' holds numbers", "21 different whole", "not supported", "{'months': 'categorical'}")
    refused(lambda: make().fit(FRAME.assign(months=months), "months"), *said)
    refused(lambda: make().fit(FRAME.assign(size=FRAME["size"]), "size"), "column 'size' holds numbers", "row 1 holds")


def test_a_numeric_target_is_fitted_if_its_owner_insists():
    rounded = FRAME.assign(size=FRAME["size"].round(1))
    model = naive(kinds={"size": "categorical"}).fit(rounded, "size")
    assert len(model.classes_) == rounded["size"].nunique() > 20
    assert 0 < model.score(rounded, "size") < 1


def test_labels_are_whole_numbers_of_few_values_or_codes():
    prices = 1_000 * (np.arange(60) % 30)
    refused(lambda: naive().fit(FRAME, prices), "y holds 30 different whole numbers, from 0 to 29000", "as text")
    assert len(naive().fit(FRAME, np.arange(60) % 20 + 1990).classes_) == 20
    with pytest.warns(DataWarning, match="y holds the whole numbers 0 to 29: every number is a class"):
        assert len(naive().fit(FRAME, np.arange(60) % 30).classes_) == 30
    assert mixture().fit(FRAME, prices).n_features_in_ == 3  # a complete y is not used


def test_a_numeric_target_that_begins_with_few_values_is_refused_after_the_pass(tmp_path, monkeypatch):
    from softcount.sources import csv_file

    monkeypatch.setattr(csv_file, "LOOK_ROWS", 50)
    monkeypatch.setattr(csv_file, "LOOK_RUN", 50)
    pd.DataFrame({"x": np.arange(200) % 7, "y": np.r_[np.zeros(100, int), np.arange(100)]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    refused(
        lambda: sc.NaiveBayes().fit(tmp_path / "t.csv", "y"),
        "column 'y' holds numbers",
        r"\(100 different whole numbers\),",
    )


def test_prices_with_a_currency_are_a_numeric_target(tmp_path):
    lines = [f'{row % 3},"${1000 + 37 * row:,}"' for row in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,price", *lines]))
    refused(lambda: sc.NaiveBayes().fit(tmp_path / "t.csv", "price"), "column 'price' holds numbers", "60 different")


def test_infinite_labels_are_refused_by_row():
    refused(lambda: naive().fit(FRAME, np.r_[np.ones(9), np.inf, np.ones(50)]), "row 10", "inf")


@pytest.mark.parametrize("y", [[None] * 60, np.full(60, np.nan), "t"], ids=["None", "NaN", "column"])
def test_a_table_without_any_label_is_sent_to_the_mixture(y):
    refused(lambda: naive().fit(FRAME.assign(t=None), y), "every label is unknown", "Mixture")


def test_no_labels_at_all_are_sent_to_the_mixture():
    refused(lambda: naive().fit(FRAME), "Mixture")


def test_one_class_fits_and_is_noted():
    model = naive().fit(FRAME, ["ripe"] * 60)
    assert "only one class, 'ripe': every prediction will be this class." in model.notes_
    np.testing.assert_array_equal(model.predict_proba(FRAME), np.ones((60, 1)))
    assert set(model.predict(FRAME)) == {"ripe"}
    assert np.abs(np.array([model.explain(FRAME)[c].to_numpy() for c in ("size", "colour", "visits")])).max() == 0


@pytest.mark.parametrize("weight", [None, 1.0])
def test_rows_without_a_label_are_used_only_if_asked_for_and_counted_in_a_note(weight):
    gaps = LABELS.astype(object)
    gaps[:12] = None
    said, rows = (
        ("12 rows without a label were not used. To learn", 48.0) if weight is None else ("12 rows without", 60.0)
    )
    for fit in (lambda model: model.fit(FRAME, gaps), lambda model: model.fit(FRAME.assign(t=gaps), "t")):
        model = fit(naive(unlabelled_weight=weight))
        assert any(said in note for note in model.notes_)
        assert model.class_count_.sum() == pytest.approx(rows)
        assert model.classes_.tolist() == ["ripe", "sour"]


def test_a_class_that_grows_by_unlabelled_rows_is_named_with_its_counts():
    size = np.r_[np.zeros(40), np.ones(10), np.full(10, 1.01)]
    labels = np.array(["grey"] * 40 + ["black"] * 10 + [None] * 10, dtype=object)
    rows = pd.DataFrame({"size": size + np.random.default_rng(0).normal(0, 0.05, 60)})
    notes = sc.NaiveBayes(unlabelled_weight=1).fit(rows, labels).notes_
    assert any("class 'black' has 10 labelled rows and counts as 20 with the unlabelled ones" in x for x in notes)
    assert sc.NaiveBayes().fit(rows, labels).class_count_.tolist() == [10.0, 40.0]
    assert sc.Classifier().fit(rows, labels).class_count_.tolist() == [10.0, 40.0]
    documents = sc.NaiveBayes(kinds="text").fit(["red dog", "blue cat", "red dog"], ["a", "b", None])
    assert documents.class_count_.sum() == pytest.approx(3.0)


def test_labels_of_the_wrong_shape_are_refused():
    refused(lambda: naive().fit(FRAME, LABELS[:5]), "60", "5", "inconsistent")
    refused(lambda: naive().fit(FRAME, np.c_[LABELS, LABELS]), r"\(60, 2\)", "1d array")
    refused(lambda: naive().fit(FRAME, "state"), "'state'", "the table has no", "'size'")
    refused(lambda: naive().fit(FRAME, "sise"), "Did you mean 'size'")
    refused(lambda: sc.NaiveBayes().fit(ARRAY, "state"), "'state'", "bare array", "labels themselves")


# What a table is

ODD_TABLES = {
    "nothing": (None, ("2D array",)),
    "a number": (5, ("2D array",)),
    "a flat list": ([1.0, 2.0], ("2D array",)),
    "three dimensions": (np.zeros((2, 2, 2)), ("dim 3",)),
    "complex numbers": (np.zeros((2, 2), dtype=complex), ("[Cc]omplex",)),
    "no column": (np.zeros((2, 0)), ("0 feature",)),
    "a frame of no column": (pd.DataFrame(index=[0, 1]), ("0 feature", "at least one column")),
    "uneven rows": ([[1.0, 2.0], [3.0]], ("inhomogeneous",)),
    "uneven columns": ({"a": [1, 2], "b": [1]}, ("'a' has 2", "'b' has 1")),
    "a name twice": (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), ("'a'", "Rename")),
    "lists in cells": (pd.DataFrame({"a": [[1], [2]]}), ("'a'", "nested")),
    "no such file": ("none.csv", ("none.csv", "no such file")),
}


@pytest.mark.parametrize("name", ODD_TABLES)
def test_what_is_no_table_is_refused(name):
    X, words = ODD_TABLES[name]
    refused(lambda: sc.NaiveBayes().fit(X, [0, 1]), *words)
    refused(lambda: sc.Mixture(2).fit(X), *words)


@pytest.mark.parametrize("make", [list, np.array])
def test_labels_of_another_make_than_the_classes_are_refused_with_the_remedy(tmp_path, make):
    """A column of 0 and 1 in a CSV file is one of numbers; read by hand, its cells are text."""
    (tmp_path / "t.csv").write_text("x,w,y\n" + "".join(f"{row}.5,{'pq'[row % 2]},{row % 2}\n" for row in range(20)))
    numbers = [row % 2 for row in range(20)]
    model = sc.NaiveBayes().fit(tmp_path / "t.csv", "y")
    assert model.score(tmp_path / "t.csv", make(numbers)) == model.score(tmp_path / "t.csv", "y") == 1
    with pytest.raises(DataError, match=r"labels are text \('0'\).*classes numbers.*float\(label\)"):
        model.score(tmp_path / "t.csv", make([str(label) for label in numbers]))
    with pytest.raises(DataError, match=r"labels are numbers .*classes text.*str\(label\)"):
        sc.NaiveBayes().fit(tmp_path / "t.csv", "w").score(tmp_path / "t.csv", make(numbers))
