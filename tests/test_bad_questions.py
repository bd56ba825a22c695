"""Questions a fitted model cannot answer, and tables it was not fitted on: refused by name, or answered and said."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import softcount as sc
from explained import contributions
from small_tables import fruit, mixture, naive, numbers, refused, with_cell
from softcount.errors import DataWarning
from softcount.estimators.result_frames import arrow_of as arrow

FRAME, LABELS = fruit()
ARRAY = numbers()


# Prediction on other columns


def test_reordered_and_extra_columns_change_nothing():
    model = naive().fit(FRAME, LABELS)
    expected = model.predict_proba(FRAME)
    np.testing.assert_array_equal(model.predict_proba(FRAME[["visits", "colour", "size"]]), expected)
    np.testing.assert_array_equal(model.predict_proba(pl.from_pandas(FRAME)[["visits", "colour", "size"]]), expected)
    np.testing.assert_array_equal(model.predict_proba(FRAME.assign(extra="x")), expected)


@pytest.mark.parametrize("model", [sc.KernelDensity(), sc.KMeans(2)], ids=str)
def test_columns_in_another_order_are_matched_by_name(model):
    rows = FRAME[["size", "visits"]].astype(float)
    model.fit(rows)
    answer = model.score_samples if hasattr(model, "score_samples") else model.transform
    for other in (rows[["visits", "size"]], pl.from_pandas(rows)[["visits", "size"]]):
        np.testing.assert_array_equal(answer(other), answer(rows))


FITTED = [
    sc.NaiveBayes().fit(FRAME, LABELS), sc.BayesNet().fit(FRAME, LABELS), sc.KernelDensity().fit(ARRAY),
    sc.MarkovChain().fit(["abc", "abb"]), sc.BagOfWords().fit(["red dog", "dog house"]),
]  # fmt: skip


@pytest.mark.parametrize("model", FITTED, ids=lambda model: type(model).__name__)
def test_what_is_no_model_of_the_kind_is_not_merged(model):
    name = type(model).__name__
    for other in ("x", None, sc.Histogram()):
        refused(lambda other=other: model.merge(other), f"merged with another fitted {name}, not with")


def test_dir_works_before_the_fit_and_without_a_class():
    for net in (sc.BayesNet(), sc.BayesNet("tan"), sc.BayesNet([("colour", "visits")]).fit(FRAME)):
        assert {"fit", "predict"} <= set(dir(net))
        assert not hasattr(net, "class_count_")


def test_a_mixture_says_what_it_does_not_predict():
    model = mixture().fit(FRAME)
    refused(lambda: model.predict(FRAME, "size"), "component of each row", r"impute\(X\)", r"query\('size', given\)")
    refused(lambda: model.query(["size", "colour"]), "several columns", "answers for one")


def test_a_column_that_is_not_there_is_no_evidence_and_is_named():
    model = naive().fit(FRAME, LABELS)
    with pytest.warns(DataWarning, match=r"not in the table, taken as missing: 'size'"):
        without = model.predict_proba(FRAME.drop(columns="size"))
    kept = {"colour": "categorical", "visits": "poisson"}
    plain = sc.NaiveBayes(kinds=kept).fit(FRAME.drop(columns="size"), LABELS)
    np.testing.assert_allclose(without, plain.predict_proba(FRAME.drop(columns="size")), rtol=1e-12)
    refused(lambda: model.predict(pd.DataFrame({"other": [1, 2]})), "none of the model's columns", "'size'", "'other'")


def test_levels_never_seen_are_counted_in_one_warning_and_missing_cells_are_no_matter():
    model = naive().fit(FRAME, LABELS)
    met = FRAME.assign(colour=["violet"] * 3 + FRAME.colour.tolist()[3:])
    met.loc[10:14, "size"] = np.nan
    with pytest.warns(DataWarning) as caught:
        proba = model.predict_proba(met)
    assert len(caught) == 1
    message = str(caught[0].message)
    for words in ("3 cells hold levels never seen", "'colour' (3)"):
        assert words in message
    assert "missing" not in message and caught[0].filename == __file__
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_a_word_in_a_column_of_numbers_is_refused_by_column_and_row():
    model = naive().fit(FRAME, LABELS)
    refused(lambda: model.predict(with_cell(FRAME, "size", 6, "many")), "'size'", "row 7", "'many'", "missing")
    refused(lambda: sc.NaiveBayes().fit(ARRAY, LABELS).predict([["1.5", "many"]]), "column 1", "row 1", "'many'")


def test_another_number_of_columns_is_refused():
    model = sc.NaiveBayes().fit(ARRAY, LABELS)
    refused(lambda: model.predict(np.c_[ARRAY, ARRAY]), "4 features", "expecting 2")
    refused(lambda: model.predict(pd.DataFrame(ARRAY[:, :1], columns=["a"])), "1 features", "expecting 2")
    refused(lambda: model.predict(ARRAY[:, 0]), "2D array")


# Impossible evidence

PAIRS = {"a": ["u", "v"], "b": ["m", "n"], "k": [0, 3], "j": [2, 0], "c": ["x", "y"]}
SURE = pd.DataFrame({name: pair * 10 for name, pair in PAIRS.items()})
SURE_LABELS = ["p", "q"] * 10
CATEGORIES = {"a": "categorical", "b": "categorical", "c": "categorical"}
RATES = {"k": "poisson", "j": "poisson", "c": "categorical"}
IMPOSSIBLE = {"categories": (CATEGORIES, {"a": "u", "b": "n"}), "rates": (RATES, {"k": 3, "j": 2})}


def sure(kinds):
    return sc.NaiveBayes(kinds=kinds, estimate="ml").fit(SURE[list(kinds)], SURE_LABELS)


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "predict_log_proba", "explain", "impute"])
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_row_no_class_can_have_made_is_refused_by_its_number(name, ask):
    kinds, cells = IMPOSSIBLE[name]
    rows = pd.concat([SURE[:1], SURE[:1].assign(**cells, c=None)])[list(kinds)]
    refused(lambda: getattr(sure(kinds), ask)(rows), "row 2", "impossible", "estimate='mean'")


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_evidence_is_refused_in_questions_and_has_density_zero(name):
    kinds, cells = IMPOSSIBLE[name]
    model = sure(kinds)
    refused(lambda: model.query("c", cells), "probability zero")
    refused(lambda: model.sample(3, cells), "probability zero")
    scores = model.score_samples(pd.concat([SURE[:1], SURE[:1].assign(**cells)])[list(kinds)])
    assert np.isfinite(scores[0]) and scores[1] == -np.inf


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_class_ruled_out_by_one_cell_has_infinite_odds_against_it(name):
    kinds, _ = IMPOSSIBLE[name]
    model = sure(kinds)
    np.testing.assert_array_equal(model.predict_proba(SURE[:1][list(kinds)]), [[1.0, 0.0]])
    odds = contributions(model.explain(SURE[:1][list(kinds)])).to_pandas()
    assert np.isposinf(odds.sum(axis=1)[0])


# Questions


def test_questions_about_columns_that_are_not_there_name_those_that_are():
    for model in (naive().fit(FRAME, LABELS), mixture().fit(FRAME)):
        refused(lambda model=model: model.query("length"), "'length'", "size, colour, visits")
        refused(lambda model=model: model.query("size", {"length": 1}), "'length'", "size, colour, visits")
        refused(lambda model=model: model.sample(2, {"length": 1}), "'length'", "size, colour, visits")
    refused(lambda: naive().fit(FRAME, LABELS).posterior_["length"], "'length'", "size, colour, visits")
    refused(lambda: mixture().fit(FRAME).posterior_given_memberships_["length"], "'length'", "size, colour, visits")


def test_questions_that_cannot_be_answered_are_refused():
    model = naive().fit(FRAME.assign(state=LABELS), "state")
    refused(lambda: model.query("size", {"size": 1.0}), "both `of` and given")
    refused(lambda: model.query("size", {"state": "rotten"}), "no class 'rotten'", "ripe, sour")
    refused(lambda: model.sample(2, {"state": "rotten"}), "no class 'rotten'", "ripe, sour")
    refused(lambda: model.explain(FRAME, against="rotten"), "no class 'rotten'", "ripe, sour")
    refused(lambda: model.query("colour", {"size": "many"}), "'size'", "'many'")
    refused(lambda: model.query("colour", {"visits": -1}), "'visits'", "-1")
    refused(lambda: model.query("colour", {"size": np.inf}), "'size'", "infinite")
    refused(lambda: model.query("colour", 5), "mapping", "int")
    refused(lambda: model.sample(2, 5), "mapping", "int")
    refused(lambda: model.query("size").quantile(1.5), "between 0 and 1", "1.5")


@pytest.mark.parametrize("n", [-1, 1.5, "two", None])
def test_a_number_of_rows_that_is_none_is_refused(n):
    refused(lambda: naive().fit(FRAME, LABELS).sample(n), "whole number", re.escape(repr(n)))


def test_none_given_is_nothing_given():
    model = naive().fit(FRAME, LABELS)
    assert model.query("colour", {"size": None}) == model.query("colour")
    assert arrow(model.sample(0)).num_rows == 0
