"""CountVectorizer and TfidfVectorizer, cell by cell and name by name, where the settings mean the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import softcount as sc

TEXTS = {
    "sms": "sms_spam/SMSSpamCollection",
    "shakespeare": "text_markov/tinyshakespeare.txt",
    "onegin": "text_markov/onegin_ru.txt",
}
# Ours beside theirs; what limits words is called the same where it is the same.
SETTINGS = {
    "as they come": ({}, {}),
    "min_df": ({"min_df": 3}, {"min_df": 3}),
    "shares of documents": ({"min_df": 0.001, "max_df": 0.1}, {"min_df": 0.001, "max_df": 0.1}),
    "the most frequent": ({"max_words": 500}, {"max_features": 500}),
    "pairs": ({"ngrams": (1, 2)}, {"ngram_range": (1, 2)}),
    "threes alone": ({"ngrams": (3, 3)}, {"ngram_range": (3, 3)}),
    "stop words": ({"stop_words": ["to", "the", "you", "и"]}, {"stop_words": ["to", "the", "you", "и"]}),
    "pairs without stop words": (
        {"stop_words": ["to", "the"], "ngrams": (2, 2)},
        {"stop_words": ["to", "the"], "ngram_range": (2, 2)},
    ),
    "case": ({"lowercase": False}, {"lowercase": False}),
    "characters": ({"analyzer": "char", "ngrams": (1, 3)}, {"analyzer": "char", "ngram_range": (1, 3)}),
    "characters in words": ({"analyzer": "char_wb", "ngrams": (2, 4)}, {"analyzer": "char_wb", "ngram_range": (2, 4)}),
    "pattern": ({"pattern": r"[^\W\d]+"}, {"token_pattern": r"[^\W\d]+"}),
    "pattern with a group": ({"pattern": r"(\w+)'\w"}, {"token_pattern": r"(\w+)'\w"}),
}


@pytest.fixture(scope="module")
def documents(data):
    """The lines of a text, by its name."""
    return lambda name: data(TEXTS[name]).read_text(encoding="utf-8").splitlines()


def same(ours, theirs):
    """Cell by cell, in the same order, of the same type."""
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    assert ours.has_sorted_indices
    theirs.sort_indices()
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def close(ours, theirs):
    assert ours.shape == theirs.shape
    theirs.sort_indices()
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.data, theirs.data, rtol=1e-12, atol=1e-12)


def both(texts, our_settings, their_settings):
    ours, theirs = sc.BagOfWords(**our_settings), CountVectorizer(**their_settings)
    same(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    return ours, theirs


@pytest.mark.parametrize("text", TEXTS)
def test_the_matrix_and_the_names_are_those_of_count_vectorizer(documents, text):
    texts = documents(text)
    ours, theirs = both(texts, {}, {})
    same(ours.transform(texts[::-1]), theirs.transform(texts[::-1]))
    assert ours.vocabulary_ == theirs.vocabulary_
    some = texts[:200]
    for mine, other in zip(
        ours.inverse_transform(ours.transform(some)), theirs.inverse_transform(theirs.transform(some)), strict=True
    ):
        assert sorted(mine) == sorted(other)


@pytest.mark.parametrize("how", SETTINGS)
def test_every_setting_means_what_it_means_there(documents, how):
    texts = documents("sms")[::3] + documents("onegin")[:500]
    mine, other = SETTINGS[how]
    if how == "the most frequent":  # equals are broken differently, so only what is more frequent than they are
        counts = CountVectorizer().fit_transform(texts).sum(axis=0).A1
        mine = {"max_words": int((counts > 3).sum())}
        other = {"max_features": mine["max_words"]}
    ours, theirs = both(texts, mine, other)
    unseen = documents("sms")[1::7]
    same(ours.transform(unseen), theirs.transform(unseen))


@pytest.mark.parametrize("how", [how for how in SETTINGS if how != "the most frequent"])
def test_tfidf_is_that_of_tfidf_vectorizer(documents, how):
    texts, unseen = documents("sms")[::3], documents("sms")[1::7]
    mine, other = SETTINGS[how]
    ours, theirs = sc.BagOfWords("tfidf", **mine), TfidfVectorizer(**other)
    close(ours.fit_transform(texts), theirs.fit_transform(texts))
    close(ours.transform(unseen), theirs.transform(unseen))
    np.testing.assert_allclose(ours.idf_, theirs.idf_, rtol=1e-12)


UNLIKE_DEFAULTS = {
    "presence": ({"weighting": "idf", "normalize": "l2"}, {"binary": True}),
    "presence as it is": ({"weighting": "idf"}, {"binary": True, "norm": None}),
    "counts of length one": ({"weighting": "count", "normalize": "l2"}, {"use_idf": False}),
    "shares": ({"weighting": "tf"}, {"use_idf": False, "norm": "l1"}),
    "presence alone": ({"weighting": "binary"}, {"binary": True, "use_idf": False, "norm": None}),
}


@pytest.mark.parametrize("how", UNLIKE_DEFAULTS)
def test_other_weightings_are_theirs_under_other_names(documents, how):
    texts = documents("sms")[::3]
    mine, other = UNLIKE_DEFAULTS[how]
    close(sc.BagOfWords(**mine).fit_transform(texts), TfidfVectorizer(**other).fit_transform(texts))


# Generated text: Turkish dotted capital, final sigma, combining marks, CJK, emoji and their joiners, all planes.
ODD = "aB_9 .,-'\t\n İıſßẞΣσςΑΟ\u0301\u0327é\u0345日本語かなｶﾅ한국어😀👩\u200d👧🏽٣४𝔘𐐀Ⅷǅﬁ\u00ad\u202e\u2028\ufeff"
LETTERS = st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"]))
DOCUMENTS = st.lists(st.text(LETTERS, max_size=40), min_size=1, max_size=8)


@settings(max_examples=300)
@given(DOCUMENTS, st.sampled_from(["as they come", "pairs", "case", "characters", "characters in words"]))
def test_generated_unicode_is_read_the_same(texts, how):
    mine, other = SETTINGS[how]
    theirs = CountVectorizer(**other)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:
        with pytest.raises(sc.DataError, match="empty vocabulary"):
            sc.BagOfWords(**mine).fit(texts)
        return
    ours = sc.BagOfWords(**mine)
    same(ours.fit_transform(texts), expected)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
