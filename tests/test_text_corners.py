"""Corners of text in Python: odd input, holes, rows that weigh nothing, and answers set against loops by hand."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softcount as sc
from softcount.estimators.result_frames import arrow_of as arrow

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")

DOCUMENTS = ["win money now", "see you at noon", "free money win", "lunch at noon you"]
LABELS = ["spam", "ham", "spam", "ham"]
MODELS = ("multinomial", "bernoulli", "complement")
every_model = pytest.mark.parametrize("model", MODELS)

words = st.sampled_from(["aa", "bb", "cc", "dd", "Ee", "ςς", "x", "\n", "-"])
documents = st.one_of(st.none(), st.lists(words, max_size=8).map(" ".join))


def mail(model: str = "multinomial", **settings: Any) -> sc.NaiveBayes:
    return sc.NaiveBayes(kinds=sc.families.Text(model), **settings).fit(DOCUMENTS, LABELS)


# Input that is no row of documents


@pytest.mark.parametrize("unordered", [set, frozenset])
def test_documents_without_an_order_are_refused(unordered):
    for act in (lambda X: sc.NaiveBayes(kinds="text").fit(X, LABELS), mail().predict, sc.Mixture(2, kinds="text").fit):
        with pytest.raises(sc.DataError, match="has no order"):
            act(unordered(DOCUMENTS))


def test_documents_split_into_words_are_to_be_joined():
    split = [document.split() for document in DOCUMENTS]
    with pytest.raises(sc.DataError, match="Join them"):
        sc.NaiveBayes(kinds="text").fit(split, LABELS)
    with pytest.raises(sc.DataError, match="Join them"):
        mail().predict(split)


def test_rows_of_one_document_are_a_table_of_one_column():
    rows = [[document] for document in DOCUMENTS]
    np.testing.assert_array_equal(mail().predict_proba(rows), mail().predict_proba(DOCUMENTS))


@pytest.mark.parametrize("gap", [None, math.nan, pd.NA])
@pytest.mark.parametrize("kind", [list, tuple, pd.Series, lambda labels: np.array(labels, dtype=object)])
def test_a_score_needs_every_label(gap, kind):
    with pytest.raises(sc.DataError, match="label of row 3 is unknown"):
        mail().score(DOCUMENTS, kind(["spam", "ham", gap, "ham"]))
    assert mail().score(DOCUMENTS, kind(LABELS)) == 1.0


def test_what_a_spreadsheet_calls_missing_is_a_word_in_a_list_of_documents():
    model = sc.NaiveBayes(kinds="text").fit(["NA", "null", "none", "nan"], LABELS)
    assert list(model.levels_["text"]) == ["na", "nan", "none", "null"]


# Models against a loop by hand


def by_hand(model: str, texts: list[str | None], labels: list[int], weights: list[float], text: str | None) -> Any:
    """Log-posterior of two classes with a prior of 1, word by word; complement takes classes as equally likely."""
    read = [None if t is None else Counter(w for w in t.lower().split() if len(w) > 1) for t in texts]
    known = sorted({word for bag in read if bag is not None for word in bag})
    asked = Counter() if text is None else Counter(w for w in text.lower().split() if w in known)
    out = []
    for group in (0, 1):
        rows = [(bag, w) for bag, k, w in zip(read, labels, weights, strict=True) if k == group]
        other = [(bag, w) for bag, k, w in zip(read, labels, weights, strict=True) if k != group]
        score = 0.0 if model == "complement" else math.log(sum(w for _, w in rows) / sum(weights))
        there = sum(w for bag, w in rows if bag is not None)
        for word in known if text is not None else ():
            if model == "bernoulli":
                share = (sum(w for bag, w in rows if bag and bag[word]) + 1) / (there + 2)
                score += math.log(share if asked[word] else 1 - share)
            else:
                counted = rows if model == "multinomial" else other
                total = sum(w * sum(bag.values()) for bag, w in counted if bag) + len(known)
                share = (sum(w * bag[word] for bag, w in counted if bag) + 1) / total
                score += asked[word] * math.log(share) * (1 if model == "multinomial" else -1)
        out.append(score)
    return np.array(out) - np.logaddexp(*out)


@every_model
@given(st.lists(st.tuples(documents, st.integers(1, 3)), min_size=4, max_size=12), documents)
def test_answers_are_those_of_a_loop_over_words(model, rows, asked):
    texts = ["aa bb", "cc dd", *(text for text, _ in rows)]
    weights = [1.0, 1.0, *(float(weight) for _, weight in rows)]
    labels = [i % 2 for i in range(len(texts))]
    fitted = sc.NaiveBayes(kinds=sc.families.Text(model)).fit(texts, labels, sample_weight=weights)
    right = by_hand(model, texts, labels, weights, asked)
    np.testing.assert_allclose(fitted.predict_log_proba([asked])[0], right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", ["multinomial", "bernoulli"])
def test_densities_of_a_mixture_are_those_of_its_parameters(model):
    texts = [*DOCUMENTS, None, "", "win win noon"]
    mix = sc.Mixture(2, kinds=sc.families.Text(model), n_init=2, random_state=0).fit(texts)
    share, known = mix.params_["text"]["probability"], list(mix.levels_["text"])
    right = []
    for text in texts:
        counts = np.array([(text or "").split().count(word) for word in known])
        if text is None:
            right.append(0.0)
            continue
        if model == "multinomial":
            ways = math.lgamma(counts.sum() + 1) - sum(math.lgamma(n + 1) for n in counts)
            logs = ways + (counts * np.log(share)).sum(axis=1)
        else:
            logs = np.where(counts > 0, np.log(share), np.log1p(-share)).sum(axis=1)
        right.append(np.logaddexp.reduce(logs + np.log(mix.weights_)))
    np.testing.assert_allclose(mix.score_samples(texts), right, rtol=1e-10, atol=1e-12)
    assert mix.log_likelihood_ == pytest.approx(sum(right), rel=1e-10)


# Little to go by


@every_model
def test_one_class_one_document_one_word(model):
    one = sc.NaiveBayes(kinds=sc.families.Text(model)).fit(["money"], ["spam"])
    np.testing.assert_array_equal(one.predict_proba(["money", None, "", "other"]), np.ones((4, 1)))
    both = sc.NaiveBayes(kinds=sc.families.Text(model)).fit(["money", "money", ""], ["spam", "ham", "ham"])
    np.testing.assert_allclose(both.predict_proba([None])[0], both.class_prior_)
    assert arrow(both.explain_words([None])).num_rows == 0


@every_model
def test_a_class_whose_documents_are_all_missing_is_still_a_class(model):
    fitted = sc.NaiveBayes(kinds=sc.families.Text(model)).fit(["aa bb", None, None], ["a", "b", "b"])
    assert np.isfinite(fitted.predict_log_proba(["aa", "bb cc", "", None])).all()


# Holes filled


@pytest.mark.parametrize("kind", ["float64", "float32", "Float64", "Int64", "double[pyarrow]", "object"])
def test_numbers_that_are_levels_fill_a_column_of_numbers(kind):
    """A column of few whole numbers is categorical, and its fills came as objects that pandas refused."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"note": rng.choice(DOCUMENTS, 120), "rooms": rng.integers(0, 4, 120).astype(float)})
    frame.loc[::5, "rooms"] = None
    model = sc.NaiveBayes(kinds={"note": "text", "rooms": "categorical"}).fit(frame, rng.integers(0, 2, 120))
    holes = frame.astype({"rooms": kind})
    filled = model.impute(holes)
    assert not filled["rooms"].isna().any() and set(filled["rooms"]) <= {0, 1, 2, 3}
    known = frame["rooms"].notna().to_numpy()
    np.testing.assert_array_equal(filled["rooms"].to_numpy(dtype=float)[known], frame["rooms"].to_numpy()[known])
