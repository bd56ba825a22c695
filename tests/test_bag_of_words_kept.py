"""The bag of words: hashing, words given back, files, and scikit-learn's tools."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from math import log

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import softcount as sc
from small_documents import COUNTS, DRINKS, NAMES, NOTES, TEXTS, WORDS, same
from softcount.errors import DataError

FRAME = pd.DataFrame({"note": TEXTS, "size": range(5)})

# Hashing


def number(word):
    """A word's number by the rule that is written down, in whole numbers of Python."""
    from softcount.text.vocabulary import BYTE_NUMBERS

    step, whole = 0x9E3779B97F4A7C15, 2**64
    total = sum(int(BYTE_NUMBERS[byte]) * pow(step, place, whole) for place, byte in enumerate(word.encode())) % whole
    for shift, factor in ((32, 0x6A09E667F3BCC909), (29, 0xBB67AE8584CAA73B)):
        total = (total ^ (total >> shift)) * factor % whole
    return total ^ (total >> 32)


@given(WORDS, st.sampled_from([1, 2, 7, 64, 2**18]))
def test_hashed_columns_are_those_of_the_rule(words, width):
    rows = sc.BagOfWords(hashing=width).transform(" ".join(text) for text in words)
    assert rows.shape == (len(words), width)
    assert rows.dtype == np.int64
    assert rows.has_canonical_format
    for row, text in zip(rows, words, strict=True):
        expected = Counter(number(word) % width for word in text)
        assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == expected


@settings(max_examples=50)
@given(st.lists(st.text(max_size=12)), st.integers(1, 2**31 - 1))
def test_a_column_depends_on_the_spelling_alone(words, width):
    from softcount.text import Words
    from softcount.text.vocabulary import hashed_columns

    words = [word for word in words if word.isprintable()]
    columns = hashed_columns(Words.of(words), width)
    assert columns.tolist() == [number(word) % width for word in words]


def test_very_long_words_are_hashed_in_pieces():
    from softcount.text import Words, vocabulary

    words = Words.of(["", "ink", "ab" * 300, "", "ö" * 40, "x" * 700, ""])
    whole = vocabulary.hashed_columns(words, 2**31 - 1)
    assert vocabulary.hashed_columns(words, 2**31 - 1, piece=16).tolist() == whole.tolist()


def test_columns_are_the_same_on_every_machine_and_even():
    from softcount.text import Words
    from softcount.text.vocabulary import hashed_columns

    assert hashed_columns(Words.of(["ink", "kin", "öl"]), 2**18).tolist() == [87346, 129380, 34280]
    names = [f"{kind}{i}" for kind in ("", "w", "über") for i in range(20_000)]
    for width in (100, 1024, 1 << 16):
        load = np.bincount(hashed_columns(Words.of(names), width), minlength=width)
        assert load.var() == pytest.approx(load.mean(), rel=0.5)  # as thrown at random


def test_hashing_needs_no_fit_but_for_how_rare_words_are():
    for weighting in ("count", "binary", "tf"):
        bag = sc.BagOfWords(weighting, hashing=32)
        check_is_fitted(bag)
        rows = bag.transform(NOTES)
        same(bag.fit(["other words altogether"]).transform(NOTES), rows)
        same(sc.BagOfWords(weighting, hashing=32).fit_transform(NOTES), rows)
    for weighting in ("idf", "tfidf"):
        with pytest.raises(NotFittedError):
            sc.BagOfWords(weighting, hashing=32).transform(NOTES)
        apart = sc.BagOfWords(weighting, hashing=32).fit(NOTES).transform(NOTES)
        same(sc.BagOfWords(weighting, hashing=32).fit_transform(NOTES), apart)


def test_words_of_one_column_are_one_word():
    bag = sc.BagOfWords("tfidf", hashing=1, normalize=None).fit([*DRINKS[:2], ""])
    assert bag.documents_.tolist() == [2]
    assert bag.counts_.tolist() == [7]
    np.testing.assert_allclose(bag.transform(DRINKS).toarray().ravel(), log(4 / 3) + 1)  # a share of 1 in each
    assert sc.BagOfWords(hashing=1).transform(DRINKS).toarray().ravel().tolist() == [4, 3, 1, 3]


def test_hashing_has_numbers_for_names_and_gives_no_words_back():
    bag = sc.BagOfWords(hashing=3).fit(TEXTS)
    assert bag.get_feature_names_out().tolist() == ["hash0", "hash1", "hash2"]
    with pytest.raises(DataError, match="with hashing, the words are not stored"):
        bag.inverse_transform(bag.transform(TEXTS))
    assert not hasattr(bag, "vocabulary_")
    with pytest.raises(DataError, match="min_df=2, max_words=10 cannot be used"):
        sc.BagOfWords(hashing=8, min_df=2, max_words=10).fit(TEXTS)


# Words given back


def test_the_words_of_each_row_come_back():
    bag = sc.BagOfWords().fit(TEXTS)
    expected = [["call", "free", "now"], ["call", "you"], [], [], ["free", "never", "now", "or", "straße"]]
    for rows in (bag.transform(TEXTS), bag.transform(TEXTS).tocoo(), np.array(COUNTS), np.array(COUNTS) / 2.0):
        assert [words.tolist() for words in bag.inverse_transform(rows)] == expected
    with pytest.raises(DataError, match="X has 3 columns, but 7 words"):
        bag.inverse_transform(np.ones((2, 3)))


# Files


SAVED = [
    sc.BagOfWords(),
    sc.BagOfWords("tfidf", "plain", ngrams=(1, 2), stop_words=["or", "you"], drop_top=1),
    sc.BagOfWords("idf", hashing=16),
    sc.BagOfWords("tf", hashing=16, pattern=r"\w+", lowercase=False),
]


@pytest.mark.parametrize("bag", SAVED, ids=repr)
def test_a_saved_bag_reads_the_same(bag, tmp_path):
    bag = clone(bag).fit(NOTES)
    bag.save(tmp_path / "bag.sc")
    again = sc.load(tmp_path / "bag.sc")
    same(again.transform(NOTES), bag.transform(NOTES))
    assert list(again.words_) == list(bag.words_)
    assert again.notes_ == bag.notes_
    assert again.n_documents_ == 5
    changed = {name for name, value in bag.get_params().items() if again.get_params()[name] != value}
    assert changed <= {"stop_words"}  # a set comes back as a list
    same(again.partial_fit(["ink or öl"]).transform(NOTES), bag.partial_fit(["ink or öl"]).transform(NOTES))


def test_what_is_not_learned_cannot_be_saved(tmp_path):
    for bag in (sc.BagOfWords(), sc.BagOfWords(hashing=4)):
        with pytest.raises(NotFittedError):
            bag.save(tmp_path / "bag.sc")
    with pytest.raises(NotFittedError):
        sc.BagOfWords().transform(TEXTS)


def test_halves_of_characters_cannot_be_saved(tmp_path):
    bag = sc.BagOfWords(analyzer="char").fit(["a\ud800b"])
    assert len(bag.words_) == 3
    with pytest.raises(DataError, match="lone surrogates"):
        bag.save(tmp_path / "bag.sc")


def tampered(tmp_path, change):
    """A saved bag whose content was changed and written again with true digests."""
    from softcount.files.archive import read, write

    sc.BagOfWords(min_count=1).fit(TEXTS).save(tmp_path / "bag.sc")
    document, arrays = read(tmp_path / "bag.sc")
    change(document, arrays)
    write(tmp_path / "bag.sc", document, arrays)
    return tmp_path / "bag.sc"


def _set(where, name, value):
    where[name] = value


FILED_COUNTS, FILED_DOCUMENTS = "vocabulary/0", "vocabulary/1"
HARM = {
    "words that are no text": lambda d, a: _set(a, "words/bytes", np.full_like(a["words/bytes"], 0xFF)),
    "a word twice": lambda d, a: _set(
        a, "words/bytes", np.frombuffer(b"callcall" + bytes(a["words/bytes"][8:]), np.uint8)
    ),
    "offsets beyond the bytes": lambda d, a: _set(a, "words/offsets", a["words/offsets"] + 9),
    "offsets that fall": lambda d, a: _set(a, "words/offsets", a["words/offsets"][::-1].copy()),
    "no offsets": lambda d, a: _set(a, "words/offsets", a["words/offsets"][:0]),
    "offsets of another type": lambda d, a: _set(a, "words/offsets", a["words/offsets"].astype(np.float64)),
    "many words without bytes": lambda d, a: _set(a, "words/offsets", np.zeros(100_000, dtype=np.int64)),
    "fewer counts": lambda d, a: _set(a, FILED_COUNTS, a[FILED_COUNTS][:3]),
    "counts that are negative": lambda d, a: _set(a, FILED_COUNTS, -a[FILED_COUNTS]),
    "counts that are no whole numbers": lambda d, a: _set(a, FILED_COUNTS, a[FILED_COUNTS] / 2),
    "a word in no document": lambda d, a: _set(a, FILED_DOCUMENTS, a[FILED_DOCUMENTS] * 0),
    "more documents than there are": lambda d, a: _set(a, FILED_DOCUMENTS, a[FILED_DOCUMENTS] + 5),
    "documents of another kind": lambda d, a: _set(d["vocabulary"], "n_documents", "5"),
    "an array too many": lambda d, a: _set(a, "more", np.zeros(3)),
    "hashing with words": lambda d, a: _set(d["vocabulary"], "hashed", 7),
    "hashing of a made-up width": lambda d, a: _set(d["estimator"]["settings"], "hashing", 2**31 - 1),
    "an unknown setting": lambda d, a: _set(d["estimator"]["settings"], "colour", "red"),
    "a setting of another kind": lambda d, a: _set(d["estimator"]["settings"], "min_count", "three"),
    "words in more documents than can be": lambda d, a: (
        _set(d["vocabulary"], "n_documents", 2**40),
        _set(a, FILED_DOCUMENTS, np.full_like(a[FILED_DOCUMENTS], 2**40)),
        _set(a, FILED_COUNTS, np.full_like(a[FILED_COUNTS], 2**41)),
    ),
    "words more often than can be": lambda d, a: _set(a, FILED_COUNTS, np.full_like(a[FILED_COUNTS], 2**62)),
    "an endless pattern": lambda d, a: _set(d["estimator"]["settings"], "pattern", "a" * 20_000),
    "runs of a million": lambda d, a: _set(d["estimator"]["settings"], "ngrams", [1, 10**6]),
    "columns without a number": lambda d, a: _set(d["vocabulary"], "hashed", "7"),
    "no settings": lambda d, a: _set(d["estimator"], "settings", None),
    "notes that are no text": lambda d, a: _set(d["vocabulary"]["met"], "said", [3]),
    "documents that are no numbers": lambda d, a: _set(d["vocabulary"]["met"], "latin", "1"),
    "no words": lambda d, a: _set(d, "vocabulary", None),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_file_that_makes_no_sense_is_refused_in_one_line(tmp_path, harm):
    path = tampered(tmp_path, HARM[harm])
    with pytest.raises(sc.ModelFileError, match=r"bag\.sc") as refused:
        sc.load(path)
    assert "\n" not in str(refused.value).strip()


# scikit-learn's tools


@pytest.mark.parametrize("bag", [sc.BagOfWords(), sc.BagOfWords(hashing=8)], ids=repr)
def test_the_checks_that_apply_to_text_pass(bag):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # most are for tables of numbers and are left out, which it says
        assert all(result["status"] == "passed" for result in check_estimator(bag, on_fail="raise"))


def test_settings_are_kept_as_given_and_a_clone_has_learned_nothing():
    stop_words = ["you"]
    bag = sc.BagOfWords(stop_words=stop_words, ngrams=[1, 2]).fit(TEXTS)
    assert bag.get_params()["stop_words"] is stop_words
    assert bag.ngrams == [1, 2]
    copy = clone(bag).set_params(weighting="tfidf")
    assert copy.get_params() == bag.get_params() | {"weighting": "tfidf"}
    for attribute in ("words_", "vocabulary_", "counts_", "documents_", "n_documents_", "notes_", "idf_"):
        assert hasattr(bag, attribute)
        assert not hasattr(copy, attribute)
    with pytest.raises(NotFittedError):
        copy.get_feature_names_out()


@pytest.mark.parametrize("bag", SAVED, ids=repr)
def test_a_pickled_bag_reads_the_same_and_learns_on(bag):
    bag = clone(bag).fit(NOTES)
    again = pickle.loads(pickle.dumps(bag))
    same(again.transform(NOTES), bag.transform(NOTES))
    same(again.partial_fit(["öl"]).transform(["öl"]), bag.partial_fit(["öl"]).transform(["öl"]))


def test_it_begins_a_pipeline_and_its_limits_can_be_searched():
    texts = [f"{word} {'free win' if i % 2 else 'you later'}" for i, word in enumerate(["ink", "oak", "elm"] * 8)]
    labels = np.arange(24) % 2
    piped = make_pipeline(sc.BagOfWords("binary"), sc.NaiveBayes())
    assert piped.fit(texts, labels).score(texts, labels) == 1.0
    grid = {"bagofwords__min_count": [1, 3], "bagofwords__weighting": ["count", "binary"]}
    search = GridSearchCV(make_pipeline(sc.BagOfWords(), sc.NaiveBayes()), grid, cv=3).fit(texts, labels)
    assert search.best_score_ == 1.0
    assert piped[:-1].get_feature_names_out().tolist()[:2] == ["elm", "free"]


def test_it_takes_a_column_of_a_column_transformer():
    table = FRAME.set_index(pd.Index([7, 5, 3, 2, 1]))
    parts = ColumnTransformer([("words", sc.BagOfWords(), "note")], remainder="passthrough", sparse_threshold=1.0)
    rows = parts.fit_transform(table)
    assert rows.toarray().tolist() == [[*row, size] for size, row in enumerate(COUNTS)]
    assert parts.get_feature_names_out().tolist() == [f"words__{word}" for word in NAMES] + ["remainder__size"]
    framed = clone(parts).set_output(transform="pandas").fit_transform(table)
    assert framed.to_numpy().tolist() == rows.toarray().tolist()
    assert framed.index.tolist() == [7, 5, 3, 2, 1]
    with pytest.raises(DataError, match=r"'note' and not \['note'\]"):
        ColumnTransformer([("words", sc.BagOfWords(), ["note"])]).fit_transform(table)


def test_a_pandas_frame_stays_sparse_and_polars_has_none():
    framed = sc.BagOfWords().set_output(transform="pandas").fit_transform(TEXTS)
    assert framed.columns.tolist() == NAMES
    assert framed.sparse.to_coo().toarray().tolist() == COUNTS
    with pytest.raises(DataError, match="sparse, which a polars frame cannot be"):
        sc.BagOfWords().set_output(transform="polars").fit_transform(TEXTS)


def test_the_command_line_says_that_words_are_no_model(tmp_path):
    from softcount.cli.models import open_model

    sc.BagOfWords().fit(TEXTS).save(tmp_path / "bag.sc")
    with pytest.raises(sc.ModelFileError, match="holds the words of a BagOfWords"):
        open_model(str(tmp_path / "bag.sc"))
