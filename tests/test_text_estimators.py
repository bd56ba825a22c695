"""Documents in a row, and text beside other columns, in the estimators: any sequence of strings, whole or in parts."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline

import softcount as sc
from softcount.errors import DataError, DataWarning
from softcount.estimators.result_frames import arrow_of as arrow

DOCUMENTS = [
    "free money now, win a prize", "win money, win big", "call me later please", "see you later dear friend",
    "pay money for the prize", "hello dear friend", "big prize money", "please call a friend",
]  # fmt: skip
LABELS = ["spam", "spam", "ham", "ham", "spam", "ham", "spam", "ham"]
TESTED = ["free prize", "dear friend later", "money"]
FAMILIES: dict[str, Any] = {
    "text": "text",
    "bernoulli": sc.families.Text("bernoulli"),
    "complement": sc.families.Text("complement"),
    "pairs of words": sc.families.Text(ngrams=(1, 2), stop_words=("for", "the")),
}
ROWS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": lambda texts: np.array(texts, dtype=object),
    "pandas": pd.Series,
    "pandas with an index": lambda texts: pd.Series(texts, index=range(5, 5 + len(texts)), name="mail"),
    "pandas categories": lambda texts: pd.Series(texts, dtype="category"),
    "polars": pl.Series,
    "polars categories": lambda texts: pl.Series(texts).cast(pl.Categorical),
    "arrow": pa.array,
    "arrow in chunks": lambda texts: pa.chunked_array([texts[:2], texts[2:]], pa.large_string()),
}


def naive_bayes(kinds: Any = "text", **how: Any) -> sc.NaiveBayes:
    return sc.NaiveBayes(kinds=kinds, **how).fit(DOCUMENTS, LABELS)


def far(left: sc.NaiveBayes, right: sc.NaiveBayes, tested: Any = TESTED) -> float:
    """The largest difference between two models' answers."""
    return float(np.abs(left.predict_log_proba(tested) - right.predict_log_proba(tested)).max())


# Any sequence of strings


@pytest.mark.parametrize("name", ROWS)
def test_documents_come_in_any_row_of_strings(name):
    make, whole = ROWS[name], naive_bayes()
    model = sc.NaiveBayes(kinds="text").fit(make(DOCUMENTS), LABELS)
    np.testing.assert_array_equal(model.predict_proba(make(TESTED)), whole.predict_proba(TESTED))
    assert model.predict(make(TESTED)).tolist() == ["spam", "ham", "spam"]
    assert model.score(make(DOCUMENTS), LABELS) == 1.0
    assert arrow(model.explain(make(TESTED))).column_names[2:] == ["(prior)", "text"]
    assert model.n_features_in_ == 1 and not hasattr(model, "feature_names_in_")


def test_an_array_of_fixed_width_is_a_row_of_strings():
    model = sc.NaiveBayes(kinds="text").fit(np.array(DOCUMENTS), LABELS)
    assert far(model, naive_bayes(), np.array(TESTED)) == 0.0


@pytest.mark.parametrize("name", ROWS)
def test_a_missing_document_says_nothing_and_an_empty_one_is_none(name):
    make = ROWS[name]
    documents, labels = [*DOCUMENTS, None, ""], [*LABELS, "ham", "ham"]
    model = sc.NaiveBayes(kinds="text").fit(make(documents), labels)
    assert model.fitted_.missing == {"text": 1}
    missing = model.predict_proba(make([None, *TESTED]))[0]
    np.testing.assert_allclose(missing, model.class_prior_, rtol=1e-12)


def test_documents_without_a_known_word_are_counted_in_a_warning():
    with pytest.warns(DataWarning, match="2 documents hold no word known from training, in 'text'"):
        naive_bayes().predict(["zzz", "", "money"])


@pytest.mark.parametrize("name", ROWS)
def test_a_mixture_takes_documents_in_a_row(name):
    topics = ["ball goal team", "team ball ball", "goal goal", "flour oven bread", "bread oven", "oven flour flour"] * 4
    mixture = sc.Mixture(2, kinds="text", random_state=0).fit(ROWS[name](topics))
    found = mixture.predict(ROWS[name](topics))
    assert len(set(found[:3])) == 1 and len(set(found[3:6])) == 1 and found[0] != found[3]
    assert mixture.predict_proba(["ball goal"]).shape == (1, 2)
    assert np.isfinite(mixture.score(topics)) and mixture.n_features_in_ == 1


def test_a_row_of_documents_and_a_table_of_them_are_one_model():
    row, table = naive_bayes(), sc.NaiveBayes(kinds={"note": "text"}).fit(pd.DataFrame({"note": DOCUMENTS}), LABELS)
    np.testing.assert_array_equal(row.predict_proba(TESTED), table.predict_proba(pd.DataFrame({"note": TESTED})))
    np.testing.assert_array_equal(row.predict_proba(TESTED), table.predict_proba(TESTED))
    assert table.feature_names_in_.tolist() == ["note"]


def test_rows_of_weight_zero_say_nothing_not_even_their_words():
    for make in ROWS.values():
        weights = [1] * 8 + [0]
        model = sc.NaiveBayes(kinds="text").fit(make([*DOCUMENTS, "unheard of"]), [*LABELS, "ham"], weights)
        assert far(model, naive_bayes()) == 0.0
        assert "unheard" not in list(model.levels_["text"])


def test_weight_two_is_the_document_twice():
    twice = sc.NaiveBayes(kinds="text").fit([*DOCUMENTS, *DOCUMENTS[:3]], [*LABELS, *LABELS[:3]])
    heavy = sc.NaiveBayes(kinds="text").fit(DOCUMENTS, LABELS, [2] * 3 + [1] * 5)
    assert far(twice, heavy) < 1e-13


def test_no_documents_at_all_are_refused():
    assert "0 sample(s)" in refused(lambda: naive_bayes().predict([]))
    assert "0 sample(s)" in refused(lambda: sc.NaiveBayes(kinds="text").fit([], []))


# scikit-learn's tools


@pytest.mark.parametrize("name", FAMILIES)
def test_copies_and_pickles_are_the_same_model(name):
    model = naive_bayes(FAMILIES[name])
    assert far(pickle.loads(pickle.dumps(model)), model) == 0.0
    assert far(clone(model).fit(DOCUMENTS, LABELS), model) == 0.0


def test_cross_validation_and_a_search_over_kinds_and_priors():
    documents, labels = DOCUMENTS * 3, LABELS * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert cross_val_score(sc.NaiveBayes(kinds="text"), documents, labels, cv=3).mean() == 1.0
        grid = {"kinds": ["text", sc.families.Text("bernoulli"), sc.families.Text(min_count=2)], "prior": [0.1, 1.0]}
        search = GridSearchCV(sc.NaiveBayes(), grid, cv=3, error_score="raise").fit(documents, labels)
    assert search.best_score_ == 1.0 and search.predict(TESTED).tolist() == ["spam", "ham", "spam"]


def test_a_pipeline_of_one_step():
    model = Pipeline([("bayes", sc.NaiveBayes(kinds="text"))]).fit(DOCUMENTS, LABELS)
    assert model.predict(TESTED).tolist() == ["spam", "ham", "spam"]


# Parts that add up


@pytest.mark.parametrize("name", FAMILIES)
def test_two_halves_add_to_the_whole(name):
    kinds, whole = FAMILIES[name], naive_bayes(FAMILIES[name])
    one = sc.NaiveBayes(kinds=kinds).fit(DOCUMENTS[:5], LABELS[:5])
    two = sc.NaiveBayes(kinds=kinds).fit(DOCUMENTS[5:], LABELS[5:])
    assert len(one.levels_["text"]) < len(whole.levels_["text"])
    for merged in (one.merge(two), two.merge(one)):
        assert list(merged.levels_["text"]) == list(whole.levels_["text"])
        assert far(merged, whole) < 1e-13
    parts = sc.NaiveBayes(kinds=kinds).partial_fit(DOCUMENTS[:5], LABELS[:5]).partial_fit(DOCUMENTS[5:], LABELS[5:])
    assert list(parts.levels_["text"]) == list(whole.levels_["text"]) and far(parts, whole) < 1e-13
    assert f"{len(whole.levels_['text'])} different words" in parts.fitted_.schema["text"].why


WORDS = st.lists(st.sampled_from(["ab", "ba", "öl", "Straße", "東京", "zz", "a1"]), max_size=5).map(" ".join)
TABLE = st.lists(st.tuples(st.one_of(st.none(), WORDS), st.sampled_from("xy")), min_size=1, max_size=12)


@given(TABLE, TABLE, st.sampled_from(sorted(FAMILIES)))
def test_any_two_tables_add_to_the_whole_and_forgetting_takes_one_out_again(first, second, name):
    first = [("ab", "x"), ("ba öl", "y"), *first]  # both classes, and some words
    second = [("zz", "x"), ("ab ab", "y"), *second]
    kinds = FAMILIES[name]

    def fitted(rows: list[tuple[Any, str]]) -> sc.NaiveBayes:
        return sc.NaiveBayes(kinds=kinds).fit([text for text, _ in rows], [label for _, label in rows])

    whole, merged = fitted(first + second), fitted(first).merge(fitted(second))
    tested = ["ab", "öl zz", "Straße 東京", "a1 ba"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert far(merged, whole, tested) < 1e-13
        merged.forget([text for text, _ in second], [label for _, label in second])
    np.testing.assert_allclose(merged.class_count_, fitted(first).class_count_, rtol=0, atol=1e-12)
    kept = fitted(first)
    columns = [list(merged.levels_["text"]).index(word) for word in kept.levels_["text"]]
    counts = merged.counts_["text"]
    np.testing.assert_allclose(counts[:, [0, *(1 + np.array(columns))]], kept.counts_["text"], rtol=0, atol=1e-12)
    assert counts.sum() == pytest.approx(kept.counts_["text"].sum(), abs=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_an_older_model_counts_as_its_documents_do(name):
    kinds, whole = FAMILIES[name], naive_bayes(FAMILIES[name])
    for first, second in ((slice(0, 5), slice(5, 8)), (slice(5, 8), slice(0, 5))):
        older = sc.NaiveBayes(kinds=kinds).fit(DOCUMENTS[first], LABELS[first])
        model = sc.NaiveBayes(kinds=kinds, prior=sc.priors.Older(older)).fit(DOCUMENTS[second], LABELS[second])
        assert list(model.levels_["text"]) == list(whole.levels_["text"]) and far(model, whole) < 1e-13


def test_an_older_model_brings_levels_of_other_columns_too():
    older = sc.NaiveBayes().fit(pd.DataFrame({"colour": ["red", "blue"] * 3}), ["a", "b"] * 3)
    model = sc.NaiveBayes(prior=sc.priors.Older(older)).fit(
        pd.DataFrame({"colour": ["red", "green"] * 3}), ["a", "b"] * 3
    )
    assert model.levels_["colour"] == ["blue", "green", "red"]
    assert model.counts_["colour"].tolist() == [[0, 0, 6], [3, 3, 0]]


def test_a_part_without_a_word_is_learned_and_forgotten():
    empty, absent = ["", "?!"], [None, None]
    model = naive_bayes().partial_fit(empty, ["ham", "spam"]).partial_fit(absent, ["ham", "ham"])
    whole = sc.NaiveBayes(kinds="text").fit([*DOCUMENTS, *empty, *absent], [*LABELS, "ham", "spam", "ham", "ham"])
    assert far(model, whole) < 1e-13 and model.fitted_.missing == whole.fitted_.missing == {"text": 2}
    model.forget(empty, ["ham", "spam"]).forget(absent, ["ham", "ham"])
    assert far(model, naive_bayes()) < 1e-13


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
@pytest.mark.parametrize("first", [["", "?!"], [None, None], ["", None]])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_first_part_may_be_without_a_word(name, first):
    model = sc.NaiveBayes(kinds=FAMILIES[name]).partial_fit(first, ["ham", "spam"])
    np.testing.assert_allclose(model.predict_proba(TESTED), 0.5)
    assert [note for note in model.notes_ if "without words so far" in note]
    model.partial_fit(DOCUMENTS, LABELS)
    whole = sc.NaiveBayes(kinds=FAMILIES[name]).fit([*DOCUMENTS, *first], [*LABELS, "ham", "spam"])
    assert far(model, whole) < 1e-13 and model.notes_ == whole.notes_


def test_a_first_part_without_a_word_may_name_its_target_and_have_a_column_that_is_not_used():
    first = pd.DataFrame({"note": ["...", "!"], "same": ["x", "x"], "sort": ["ham", "spam"]})
    more = pd.DataFrame({"note": DOCUMENTS, "same": ["x"] * len(LABELS), "sort": LABELS})
    kinds = {"note": "text", "same": "ignore"}
    model = sc.NaiveBayes(kinds=kinds).partial_fit(first, "sort").partial_fit(more, "sort")
    whole = sc.NaiveBayes(kinds=kinds).fit(pd.concat([first, more]), "sort")
    np.testing.assert_allclose(model.predict_proba(more), whole.predict_proba(more), atol=1e-13)


def test_text_beside_numbers_that_had_no_words_at_first_is_not_said_to_have_none():
    first = pd.DataFrame({"note": ["", "?"], "x": [1.5, 2.5]})
    more = pd.DataFrame({"note": ["win", "see"], "x": [2.0, 1.0]})
    model = sc.NaiveBayes(kinds={"note": "text", "x": "normal"}).partial_fit(first, ["a", "b"])
    assert [note for note in model.notes_ if "without words" in note]
    model.partial_fit(pd.DataFrame({"note": ["!", "-"], "x": [0.5, 3.0]}), ["a", "b"])
    assert [note for note in model.notes_ if "without words" in note]
    model.partial_fit(more, ["a", "b"])
    assert not [note for note in model.notes_ if "without words" in note]


def test_a_whole_table_without_a_word_is_still_refused():
    assert "text without words" in refused(lambda: sc.NaiveBayes(kinds="text").fit(["...", ""], ["a", "b"]))


LIMITS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "min_count": ({"min_count": 2}, ["aa", "bb"]),
    "min_df": ({"min_df": 2}, ["aa"]),
    "max_df": ({"max_df": 1}, ["bb", "cc", "dd"]),
    "drop_top": ({"drop_top": 1}, ["bb", "cc", "dd"]),
    "max_words": ({"max_words": 1}, ["aa"]),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_count_documents_and_words_whatever_rows_weigh(limit):
    """The last document weighs more than all others together, and its words are no more frequent for that."""
    setting, kept = LIMITS[limit]
    documents = ["aa aa bb bb", "aa", "cc dd"]
    for weights in (None, [1, 1, 1], [1, 1, 100], [0.01, 0.01, 5]):
        model = sc.NaiveBayes(kinds=sc.families.Text(**setting)).fit(documents, ["a", "b", "b"], weights)
        assert list(model.levels_["text"]) == kept


def test_learning_in_parts_keeps_every_word_and_says_so():
    kinds = sc.families.Text(min_count=2, drop_top=1)
    parts = sc.NaiveBayes(kinds=kinds).partial_fit(DOCUMENTS[:5], LABELS[:5]).partial_fit(DOCUMENTS[5:], LABELS[5:])
    assert far(parts, naive_bayes()) < 1e-13
    assert [note for note in parts.notes_ if "every word is kept" in note] and len(parts.notes_) == 1


def test_after_a_fit_that_chose_its_words_others_are_left_out():
    kinds = sc.families.Text(min_count=2)
    model = naive_bayes(kinds)
    words = list(model.levels_["text"])
    model.partial_fit(["quixotic money", "quixotic friend"], ["spam", "ham"])
    assert list(model.levels_["text"]) == words and any("first fit chose" in note for note in model.notes_)
    model.forget(["quixotic money", "quixotic friend"], ["spam", "ham"])
    assert far(model, naive_bayes(kinds)) < 1e-13


@pytest.mark.parametrize("name", FAMILIES)
def test_more_rows_are_read_as_the_model_was_whatever_kinds_says_now(name):
    """A model that the command line saved has no kinds of its own."""
    model = sc.NaiveBayes(kinds=FAMILIES[name]).fit(DOCUMENTS[:5], LABELS[:5]).set_params(kinds=None)
    kept = model.counts_["text"]
    model.partial_fit(DOCUMENTS[5:], LABELS[5:])
    assert far(model, naive_bayes(FAMILIES[name])) < 1e-13
    model.forget(DOCUMENTS[5:], LABELS[5:])
    assert model.counts_["text"][:, 0].tolist() == [2, 3] and model.counts_["text"].sum() == kept.sum()


def test_models_that_chose_their_words_apart_say_so_when_merged():
    merged = naive_bayes(sc.families.Text(min_count=2)).merge(naive_bayes())
    assert any("chosen in each model separately" in note for note in merged.notes_)
    assert list(merged.levels_["text"]) == list(naive_bayes().levels_["text"])


def test_what_was_never_learned_cannot_be_forgotten():
    with pytest.raises(DataError, match="'text': the word 'quixotic' is to be forgotten, but was never learned"):
        naive_bayes().forget(["quixotic money"], ["spam"])
    with pytest.raises(DataError, match="more is to be forgotten than was learned"):
        naive_bayes().forget(["free free free"], ["spam"])


def test_models_that_mean_something_else_by_a_word_do_not_merge():
    with pytest.raises(DataError, match=r"'text' is read with ngrams=\(1, 1\) in one model and ngrams=\(1, 2\)"):
        naive_bayes().merge(naive_bayes(sc.families.Text(ngrams=(1, 2))))
    with pytest.raises(DataError, match="counts words in one model and documents that hold them"):
        naive_bayes().merge(naive_bayes(sc.families.Text("bernoulli")))
    note = sc.NaiveBayes(kinds={"text": "categorical"}).fit(pd.DataFrame({"text": DOCUMENTS}), LABELS)
    with pytest.raises(DataError, match="'text' is categorical in one model and text in the other"):
        naive_bayes().merge(note)


# Tables with text beside other columns


def mixed() -> pd.DataFrame:
    return pd.DataFrame({"note": DOCUMENTS * 3, "size": np.arange(24) % 7 + 0.5, "colour": ["red", "blue", "red"] * 8})


def test_text_beside_numbers_and_categories():
    frame, labels = mixed(), LABELS * 3
    model = sc.NaiveBayes(kinds={"note": "text"}).fit(frame, labels)
    assert model.feature_names_in_.tolist() == ["note", "size", "colour"] and model.n_features_in_ == 3
    assert model.score(frame, labels) == 1.0
    assert arrow(model.explain(frame)).column_names[2:] == ["(prior)", "note", "size", "colour"]
    halves = [sc.NaiveBayes(kinds={"note": "text"}).fit(frame[a:b], labels[a:b]) for a, b in ((0, 9), (9, 24))]
    merged = halves[0].merge(halves[1])
    np.testing.assert_allclose(merged.predict_log_proba(frame), model.predict_log_proba(frame), rtol=1e-11)


def test_a_frame_of_polars_and_a_table_with_its_target_in_it():
    frame = pl.DataFrame(mixed().assign(kind=LABELS * 3).to_dict("list"))
    model = sc.NaiveBayes(kinds={"note": sc.families.Text(min_count=2)}).fit(frame, "kind")
    assert model.score(frame, "kind") == 1.0
    assert "free" in list(model.levels_["note"]) and "now" in list(model.levels_["note"])


# Documents where there should be none, and the other way round


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(DataError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_documents_without_kinds_are_told_how():
    for model in (sc.NaiveBayes(), sc.NaiveBayes(kinds={"a": "text"}), sc.NaiveBayes(kinds="categorical")):
        said = refused(lambda model=model: model.fit(DOCUMENTS, LABELS))
        assert 'kinds="text"' in said and "Expected 2D array, got 1D array instead" in said
    assert 'kinds="text"' in refused(lambda: sc.Mixture(2).fit(DOCUMENTS))
    assert "BagOfWords" in refused(lambda: sc.GaussianMixture(2).fit(DOCUMENTS))


def test_a_model_without_text_given_documents():
    model = sc.NaiveBayes().fit(mixed()[["size", "colour"]], LABELS * 3)
    said = refused(lambda: model.predict(TESTED))
    assert "not fitted on documents alone" in said and "'size', 'colour'" in said
    bag = sc.NaiveBayes().fit(sc.BagOfWords().fit_transform(DOCUMENTS), LABELS)
    assert "block of counts" in refused(lambda: bag.predict(TESTED))
    both = sc.NaiveBayes(kinds={"note": "text"}).fit(mixed(), LABELS * 3)
    assert "'note', 'size', 'colour'" in refused(lambda: both.predict(TESTED))


def test_a_model_of_text_given_numbers():
    model = naive_bayes()
    numbers = np.arange(6.0).reshape(6, 1)
    for X in (numbers, numbers.astype(int), numbers.repeat(3, axis=1)):
        assert "reads text in column 'text', but X holds nothing but numbers" in refused(lambda X=X: model.predict(X))
    bag = sc.BagOfWords().fit_transform(DOCUMENTS)
    assert "nothing but numbers" in refused(lambda: model.predict(bag))
    assert "document 2 is 2.5 (float), which is not text" in refused(lambda: model.predict(["money", 2.5]))
    for row in (pa.array([5]), pd.Series([5]), pl.Series([5]), np.array([5]), [5]):
        assert "document 1 is 5 (int)" in refused(lambda row=row: model.predict(row))
    assert "document 1 is 7 (int)" in refused(lambda: sc.NaiveBayes(kinds="text").fit([7, 8], [0, 1]))
    said = refused(lambda: model.predict(pd.DataFrame({"size": [1.0]})))
    assert "reads a column of text, 'text'; the table has 'size'" in said
    mixed_model = sc.NaiveBayes(kinds={"note": "text"}).fit(mixed(), LABELS * 3)
    assert "columns it was fitted on" in refused(lambda: mixed_model.predict(np.ones((2, 3))))


def test_a_single_document_is_no_file():
    said = refused(lambda: naive_bayes().predict("free money for you"))
    assert "no file 'free money for you'" in said and "[text]" in said


def test_labels_and_documents_are_of_one_number():
    assert "[8, 3]" in refused(lambda: sc.NaiveBayes(kinds="text").fit(DOCUMENTS, LABELS[:3]))


# Folders of documents


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    for number, (text, label) in enumerate(zip(DOCUMENTS, LABELS, strict=True)):
        folder = tmp_path / "mail" / label
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text(text)
    return tmp_path / "mail"


@pytest.mark.parametrize("kinds", [None, "text", {"text": "text"}], ids=str)
@pytest.mark.parametrize("y", [None, "class"], ids=str)
def test_a_folder_with_a_folder_for_each_class_is_learned(mail, kinds, y):
    model = sc.NaiveBayes(kinds=kinds).fit(mail, y)
    assert far(model, naive_bayes()) < 1e-12
    assert model.classes_.tolist() == ["ham", "spam"]
    assert model.predict(mail).tolist() == ["ham"] * 4 + ["spam"] * 4
    assert model.predict(str(mail)).tolist() == ["ham"] * 4 + ["spam"] * 4
    assert model.score(mail, "class") == model.score(mail) == 1.0


def test_the_labels_of_a_file_are_read_as_a_fit_reads_them(tmp_path):
    codes = pd.Series(LABELS).map({"ham": 10, "spam": 9})
    pd.DataFrame({"note": DOCUMENTS, "size": np.arange(8) % 3, "code": codes}).to_csv(tmp_path / "m.csv", index=False)
    model = sc.NaiveBayes(kinds={"note": "text"}).fit(tmp_path / "m.csv", "code")
    assert model.classes_.tolist() == [9, 10]
    assert model.score(tmp_path / "m.csv", "code") == model.score(sc.read(tmp_path / "m.csv"), "code") == 1.0
    assert sc.read(tmp_path / "m.csv", target="code").labels() == codes.tolist()
    gaps = sc.read({"x": [1.5, 2.5, 3.5], "y": ["b", None, "a"]}, target="y")
    assert gaps.labels() == ["b", None, "a"] and sc.read({"x": [1.5, 2.5]}).labels() == []


def test_a_folder_without_classes_is_for_mixtures(mail):
    assert "Mixture" in refused(lambda: sc.NaiveBayes().fit(mail / "ham"))
    mixture = sc.Mixture(2, kinds="text", random_state=0).fit(mail)
    assert len(mixture.predict(mail)) == 8 and [x.key for x in mixture.fitted_.model.leaves] == ["text"]


def test_a_folder_is_learned_in_parts(mail):
    model = sc.NaiveBayes(kinds="text").partial_fit(mail, "class").partial_fit(mail, "class")
    twice = sc.NaiveBayes(kinds="text").fit(DOCUMENTS * 2, LABELS * 2)
    assert far(model, twice) < 1e-12
    model.forget(mail, "class")
    assert far(model, naive_bayes()) < 1e-12


def test_what_a_row_of_documents_gets_back(mail):
    model = naive_bayes()
    grown = model.augment(TESTED)
    assert arrow(grown).num_rows == 6
    assert model.impute(TESTED) == TESTED
