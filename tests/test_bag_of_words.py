"""The bag of words: its weights by hand, what comes as documents, and learning in parts."""

from __future__ import annotations

from collections import Counter
from math import log, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import softcount as sc
from small_documents import COUNTS, DRINKS, NAMES, NOTES, TEXTS, WORDS, same
from softcount.errors import DataError
from softcount.text import count_words, vocabulary

# Weights


def test_counts_are_whole_numbers_in_the_order_of_the_words():
    bag = sc.BagOfWords()
    rows = bag.fit_transform(NOTES)
    assert sparse.isspmatrix_csr(rows)
    assert rows.dtype == np.int64
    assert rows.has_canonical_format
    assert rows.toarray().tolist() == COUNTS
    assert bag.get_feature_names_out().tolist() == list(bag.words_) == NAMES
    assert bag.vocabulary_ == {word: column for column, word in enumerate(NAMES)}
    assert bag.counts_.tolist() == [3, 2, 1, 2, 1, 1, 1]
    assert bag.documents_.tolist() == [2, 2, 1, 2, 1, 1, 1]
    assert bag.n_documents_ == 5


IDF = {  # milk, rum, tea
    "plain": [log(4 / 2), log(4 / 1), 0.0],
    "plus-one": [log(4 / 3), log(4 / 2), log(4 / 5)],
    "smooth": [log(5 / 3) + 1, log(5 / 2) + 1, 1.0],
}


@pytest.mark.parametrize("kind", IDF)
def test_how_rare_words_are(kind):
    milk, rum, tea = IDF[kind]
    presence = sc.BagOfWords("idf", idf=kind)
    np.testing.assert_allclose(presence.fit_transform(DRINKS).toarray()[0], [milk, rum, tea], rtol=1e-15)
    np.testing.assert_allclose(presence.idf_, IDF[kind], rtol=1e-15)
    raw = sc.BagOfWords("tfidf", idf=kind, normalize=None).fit_transform(DRINKS).toarray()
    np.testing.assert_allclose(raw[0], [milk / 2, rum / 4, tea / 4], rtol=1e-15)
    np.testing.assert_allclose(raw[3], [0, 0, tea], rtol=1e-15)
    length = sqrt(4 * milk**2 + rum**2 + tea**2)
    unit = sc.BagOfWords("tfidf", idf=kind).fit_transform(DRINKS).toarray()
    np.testing.assert_allclose(unit[0], [2 * milk / length, rum / length, tea / length], rtol=1e-14)


def test_shares_are_of_the_words_that_have_a_column():
    rows = sc.BagOfWords("tf").fit_transform(DRINKS).toarray()
    np.testing.assert_allclose(rows, [[1 / 2, 1 / 4, 1 / 4], [1 / 3, 0, 2 / 3], [0, 0, 1], [0, 0, 1]], rtol=1e-15)
    without = sc.BagOfWords("tf", stop_words=["tea"]).fit_transform(DRINKS).toarray()
    np.testing.assert_allclose(without, [[2 / 3, 1 / 3], [1, 0], [0, 0], [0, 0]], rtol=1e-15)


def test_presence_is_one():
    rows = sc.BagOfWords("binary").fit_transform(DRINKS)
    assert rows.dtype == np.float64
    assert rows.toarray().tolist() == [[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize("weighting", ["count", "binary", "tf", "idf", "tfidf"])
@pytest.mark.parametrize("idf", IDF)
def test_rows_of_length_one_or_nothing(weighting, idf):
    rows = sc.BagOfWords(weighting, idf, normalize="l2").fit_transform([*DRINKS, "", "gin rum"])
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1)).A1
    nothing = (rows.toarray() == 0).all(axis=1)
    np.testing.assert_allclose(lengths, np.where(nothing, 0.0, 1.0), rtol=1e-15)
    assert np.isfinite(rows.data).all()
    assert rows.dtype == np.float64


@given(WORDS, st.integers(1, 4), st.integers(1, 3), st.sampled_from([1.0, 0.5, 3]), st.integers(0, 2))
def test_limits_keep_what_a_count_by_hand_keeps(words, min_count, min_df, max_df, drop_top):
    met, held = Counter(w for text in words for w in text), Counter(w for text in words for w in set(text))
    most = max_df if isinstance(max_df, int) else max_df * len(words)
    kept = [w for w in met if met[w] >= min_count and min_df <= held[w] <= most]
    kept = sorted(sorted(kept, key=lambda w: (-met[w], w))[drop_top:])
    bag = sc.BagOfWords(min_count=min_count, min_df=min_df, max_df=max_df, drop_top=drop_top)
    texts = [" ".join(text) for text in words]
    if not kept:
        with pytest.raises(DataError, match="empty vocabulary"):
            bag.fit(texts)
        return
    rows = bag.fit_transform(texts).toarray()
    assert list(bag.words_) == kept
    assert rows.tolist() == [[text.count(word) for word in kept] for text in words]
    assert bag.counts_.tolist() == [met[word] for word in kept]
    assert bag.documents_.tolist() == [held[word] for word in kept]


# Documents

KINDS = {
    "list": list,
    "tuple": tuple,
    "generator": lambda notes: (note for note in notes),
    "object array": lambda notes: np.array(notes, dtype=object),
    "text array": lambda notes: np.array([note or "" for note in notes]),
    "pandas": pd.Series,
    "pandas objects": lambda notes: pd.Series(notes, dtype=object),
    "pandas categories": lambda notes: pd.Series(notes, dtype="category"),
    "pandas with NaN": lambda notes: pd.Series([np.nan if note is None else note for note in notes], dtype=object),
    "pandas with NA": lambda notes: [pd.NA if note is None else note for note in notes],
    "polars": pl.Series,
    "arrow": pa.array,
    "arrow large": lambda notes: pa.array(notes, pa.large_string()),
    "arrow view": lambda notes: pa.array(notes, pa.string_view()),
    "arrow slice": lambda notes: pa.array(["odd one out", *notes, "and another"]).slice(1, len(notes)),
    "arrow chunks": lambda notes: pa.chunked_array([notes[:2], [], notes[2:]]),
    "arrow dictionary": lambda notes: pa.array(notes).dictionary_encode(),
    "bytes": lambda notes: [None if note is None else note.encode() for note in notes],
    "arrow bytes": lambda notes: pa.array([None if note is None else note.encode() for note in notes]),
    "NumPy text": lambda notes: [None if note is None else np.str_(note) for note in notes],
}


@pytest.mark.parametrize("kind", KINDS)
def test_documents_come_in_many_kinds(kind):
    bag = sc.BagOfWords()
    assert bag.fit_transform(KINDS[kind](NOTES)).toarray().tolist() == COUNTS
    assert bag.fit(KINDS[kind](NOTES)).transform(KINDS[kind](NOTES)).toarray().tolist() == COUNTS
    assert bag.notes_ == ([] if kind == "text array" else bag.notes_[:1])
    assert kind == "text array" or "1 of 5 documents: missing" in bag.notes_[0]


def test_bytes_that_are_no_utf_8_are_latin_1_and_counted():
    bag = sc.BagOfWords().fit(["öl".encode(), "öl und æther".encode("latin-1"), b"ink"])
    assert list(bag.words_) == ["ink", "und", "æther", "öl"]
    assert bag.notes_ == ["1 of 3 documents: no UTF-8, read as Latin-1."]


def test_a_lone_surrogate_does_no_harm():
    assert sc.BagOfWords().fit(["ab \ud800 cd", "ab"]).documents_.tolist() == [2, 1]


FRAME = pd.DataFrame({"note": TEXTS, "size": range(5)})
OTHERS = {
    "a string": ("Free call", "single string"),
    "one of bytes": (b"Free call", "single string"),
    "a frame": (FRAME, r"\['note'\].*ColumnTransformer"),
    "one column of a frame": (FRAME[["note"]], "ColumnTransformer"),
    "a polars frame": (pl.DataFrame({"note": TEXTS}), "ColumnTransformer"),
    "an Arrow table": (pa.table({"note": TEXTS}), "ColumnTransformer"),
    "a mapping": ({"note": TEXTS}, "ColumnTransformer"),
    "an array of two dimensions": (np.array([TEXTS]), "ColumnTransformer"),
    "a sparse matrix": (sparse.csr_matrix((2, 2)), "ColumnTransformer"),
    "one cell": (np.array("Free call"), "not a table"),
    "numbers": ([1, 2], r"document 0 is 1 \(int\), not text"),
    "a number among text": (["ink", 2.5], r"document 1 is 2.5 \(float\), not text"),
    "an array of numbers": (np.arange(3), "document 0 is 0"),
    "a column of numbers": (pd.Series([0.5, 2.0]), r"document 0 is 0.5 \(float\)"),
    "numbers in Arrow": (pa.array([1, 2]), "holds int64"),
    "words apart": ([["free", "call"]], r"join them"),
    "a number": (3, "one after another"),
    "nothing": (None, "one after another"),
    "a path": (Path("notes.txt"), "Read it first"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_no_column_of_documents_is_refused_with_what_to_do(kind):
    given_, said = OTHERS[kind]
    with pytest.raises(DataError, match="(?s)" + said):
        sc.BagOfWords().fit(given_)
    with pytest.raises(DataError, match="(?s)" + said):
        sc.BagOfWords().fit(TEXTS).transform(given_)


@pytest.mark.parametrize(
    ("texts", "how", "said"),
    [
        ([], {}, "there are no documents"),
        (["", None, "a ! b"], {}, "3 documents, and no word that counts"),
        (["the and"], {"stop_words": ["the", "and"]}, "stop words"),
        (TEXTS, {"min_count": 9, "drop_top": 2}, "of 7 words in 5 documents, none is left by min_count=9, drop_top=2"),
        (TEXTS, {"min_df": 0.9}, "min_df=0.9"),
    ],
)
def test_an_empty_vocabulary_is_an_error_that_says_why(texts, how, said):
    bag = sc.BagOfWords(**how)
    for learn in (bag.fit, bag.fit_transform, lambda X: bag.partial_fit(X).transform(X)):
        with pytest.raises(DataError, match=said):
            learn(texts)


def test_documents_without_a_known_word_are_rows_of_zeros():
    bag = sc.BagOfWords("tfidf").fit(TEXTS)
    rows = bag.transform(["", None, "quite unknown", "?!"])
    assert rows.shape == (4, 7)
    assert rows.nnz == 0
    for nothing in (
        pd.Series([np.nan, np.nan]),
        pd.Series([None, None]),
        pa.nulls(2),
        np.full(2, np.nan),
        [None, pd.NaT],
    ):
        assert bag.transform(nothing).toarray().tolist() == [[0.0] * 7] * 2
    assert bag.transform([]).shape == (0, 7)
    assert sc.BagOfWords().fit(TEXTS).transform([]).dtype == np.int64


BAD = {
    "weighting": ["tf-idf", None, 3],
    "idf": ["log", None],
    "normalize": ["l1", True],
    "min_count": [0, 1.5, True],
    "min_df": [0, -0.1, 1.1, "2"],
    "max_df": [0, 2.0, None],
    "drop_top": [-1, 0.5],
    "max_words": [0, "all"],
    "stop_words": ["german", 3, [1]],
    "ngrams": [2, (2, 1), (0, 1), (1, 2, 3), (1.0, 2.0)],
    "analyzer": ["words", None],
    "pattern": ["("],
    "hashing": [0, 1.5, 2**40],
    "n_jobs": [0, 1.5, True],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_a_setting_that_makes_no_sense_is_named(name, value):
    with pytest.raises(DataError, match=name):
        sc.BagOfWords(**{name: value}).fit(TEXTS)


# Streams and parts


class Counted(str):
    """A document of which one knows whether anybody still holds it."""

    made, held, most = 0, 0, 0

    def __new__(cls, text: str) -> Counted:
        cls.made += 1
        cls.held += 1
        cls.most = max(cls.most, cls.held)
        return super().__new__(cls, text)

    def __str__(self) -> str:
        return self

    def __del__(self) -> None:
        Counted.held -= 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_documents_stream_through_a_few_pieces_at_a_time(monkeypatch, n_jobs):
    monkeypatch.setattr(count_words, "BLOCK_BYTES", 1000)
    Counted.made, Counted.held, Counted.most = 0, 0, 0

    def stream():
        return (Counted(f"w{i % 50} note {i % 7}") for i in range(20_000))

    bag = sc.BagOfWords(n_jobs=n_jobs).fit(stream())
    assert bag.n_documents_ == 20_000 == Counted.made
    assert bag.transform(stream()).shape == (20_000, 51)
    assert 50 < Counted.most < 2_000  # a piece is about 100 of them


@given(WORDS, st.integers(1, 5), st.sampled_from([1, 2]))
def test_the_size_of_pieces_and_the_threads_change_nothing(words, many, n_jobs):
    texts = [" ".join(text) for text in words] + ["oak"]
    whole = sc.BagOfWords("tfidf", n_jobs=1).fit(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_words, "BLOCK_DOCUMENTS", many)
        pieces = sc.BagOfWords("tfidf", n_jobs=n_jobs)
        same(pieces.fit_transform(texts), whole.transform(texts))
        same(pieces.transform(iter(texts)), whole.transform(texts))
        same(pieces.transform(pa.array(texts)), whole.transform(texts))
    assert pieces.vocabulary_ == whole.vocabulary_


@given(WORDS, st.integers(0, 12), st.booleans())
def test_parts_learned_one_after_another_are_the_whole(words, cut, hashed):
    texts = [" ".join(text) for text in words] + ["oak oak oak"]
    how = {"hashing": 5} if hashed else {"min_count": 3, "max_df": 0.9 if len(texts) > 3 else 1.0}
    whole = sc.BagOfWords("tfidf", **how).fit([*texts, "elm", "elm elm"])
    texts, more = texts[:cut], [*texts[cut:], "elm", "elm elm"]
    parts = sc.BagOfWords("tfidf", **how).partial_fit(texts).partial_fit(more)
    after = sc.BagOfWords("tfidf", **how).partial_fit(more).partial_fit(texts)
    for bag in (parts, after):
        assert list(bag.words_) == list(whole.words_)
        assert bag.counts_.tolist() == whole.counts_.tolist()
        assert bag.documents_.tolist() == whole.documents_.tolist()
        same(bag.transform(more), whole.transform(more))


@given(WORDS, WORDS, st.sampled_from([{}, {"min_count": 2}, {"drop_top": 1}, {"hashing": 5}]))
def test_two_that_are_merged_have_learned_both(one, other, how):
    one, other = ([" ".join(text) for text in words] + ["oak oak elm ash", "elm ash"] for words in (one, other))
    both = sc.BagOfWords("tfidf", **how).fit(one + other)
    merged = sc.BagOfWords("tfidf", **how).fit(one).merge(sc.BagOfWords("tfidf", **how).fit(other))
    assert list(merged.words_) == list(both.words_)
    assert merged.counts_.tolist() == both.counts_.tolist()
    assert merged.documents_.tolist() == both.documents_.tolist()
    assert merged.n_documents_ == both.n_documents_
    same(merged.transform(other), both.transform(other))


def test_words_given_up_for_want_of_room_are_said(monkeypatch, tmp_path):
    monkeypatch.setattr(vocabulary, "ALWAYS_HELD", 10)
    bag = sc.BagOfWords(max_words=3)
    for start in range(0, 600, 20):
        bag.partial_fit([f"oak elm ash w{start + i}" for i in range(20)])
    assert list(bag.words_) == ["ash", "elm", "oak"]
    assert "max_words" in bag.notes_[0]
    bag.save(tmp_path / "bag.sc")
    assert sc.load(tmp_path / "bag.sc").notes_ == bag.notes_
    assert sc.BagOfWords(max_words=3).fit(["oak"]).merge(bag).notes_ == bag.notes_


def test_a_merge_changes_neither_and_wants_the_same_settings():
    one, other = sc.BagOfWords().fit(["ink ink", None]), sc.BagOfWords(n_jobs=1).fit(["öl"])
    merged = one.merge(other)
    assert list(merged.words_) == ["ink", "öl"]
    assert list(one.words_) == ["ink"]
    assert list(other.words_) == ["öl"]
    assert merged.notes_ == ["1 of 3 documents: missing, counted as documents without words."]
    with pytest.raises(DataError, match="min_count=1 and 2"):
        one.merge(sc.BagOfWords(min_count=2).fit(["ink ink"]))
    with pytest.raises(DataError, match="not with dict"):
        one.merge({})
    with pytest.raises(NotFittedError):
        one.merge(sc.BagOfWords())
    with pytest.raises(NotFittedError):
        sc.BagOfWords(hashing=4).merge(sc.BagOfWords(hashing=4).fit(["ink"]))


def test_what_fails_leaves_what_was_learned_as_it_was(monkeypatch):
    monkeypatch.setattr(count_words, "BLOCK_DOCUMENTS", 1)
    bag = sc.BagOfWords().fit(TEXTS)
    for learn in (bag.fit, bag.partial_fit, bag.fit_transform):
        with pytest.raises(DataError, match="document 1"):
            learn(["more ink", 3])
        assert list(bag.words_) == NAMES
        assert bag.n_documents_ == 5
    bag.set_params(lowercase=False)
    with pytest.raises(DataError, match="another way"):
        bag.partial_fit(["more ink"])


def test_limits_may_change_between_parts():
    bag = sc.BagOfWords(min_count=3).partial_fit(["oak oak elm"])
    bag.set_params(min_count=2).partial_fit(["elm ash"])
    assert list(bag.words_) == ["elm", "oak"]
