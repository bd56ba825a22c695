"""Words that mark classes and words that moved a document, against oracles in plain Python."""

from __future__ import annotations

import re
from collections import Counter
from math import inf, log
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.errors import DataError
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.fitted.characteristic_words import ABSENT
from softcount.text import Reading, block_of
from softcount.text.count_words import spans_of, spots_of
from text.ways import WAYS, way

MODELS = ("multinomial", "bernoulli", "complement")
VOCABULARY = ("call", "claim", "free", "home", "love", "mum", "prize", "the")
DOCUMENTS = st.lists(
    st.lists(st.sampled_from(VOCABULARY), max_size=9).map(" ".join), min_size=4, max_size=14
)  # fmt: skip


def labels(n: int, classes: int) -> list[str]:
    return ["abc"[i % classes] for i in range(n)]


def fitted(documents: list[str | None], y: list[str], model: str = "multinomial", **settings: object) -> sc.NaiveBayes:
    return sc.NaiveBayes(kinds={"note": sc.families.Text(model)}, **settings).fit({"note": documents}, y)  # type: ignore[arg-type]


# -- words that mark a class


def evidence(k: float, n: float, other: float, size: float) -> float:
    """Nats by which two rates explain k of n and `other` of `size` better than one."""

    def best(count: float, total: float) -> float:
        return sum(part * log(part / total) for part in (count, total - count) if part > 0)

    return best(k, n) + best(other, size) - best(k + other, n + size)


def plain_marks(documents: list[str], y: list[str], own: str, model: str) -> dict[str, tuple[float, ...]]:
    """Log-odds, evidence, count and count elsewhere of every word of a class, with one imagined count each."""
    here, there = Counter(), Counter()
    for document, label in zip(documents, y, strict=True):
        words = document.split()
        (here if label == own else there).update(set(words) if model == "bernoulli" else words)
    words = sorted({*here, *there})
    if model == "bernoulli":
        sizes = y.count(own), len(y) - y.count(own)
        rates = [{w: (c[w] + 1) / (n + 2) for w in words} for c, n in zip((here, there), sizes, strict=True)]
        odds = {w: log(rates[0][w] / (1 - rates[0][w])) - log(rates[1][w] / (1 - rates[1][w])) for w in words}
    else:
        sizes = here.total(), there.total()
        rates = [{w: (c[w] + 1) / (c.total() + len(words)) for w in words} for c in (here, there)]
        odds = {w: log(rates[0][w] / rates[1][w]) for w in words}
    return {w: (odds[w], evidence(here[w], sizes[0], there[w], sizes[1]), here[w], there[w]) for w in words}


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=25)
@given(documents=DOCUMENTS, classes=st.integers(2, 3))
def test_marking_words_are_those_of_the_oracle(model, documents, classes):
    y = labels(len(documents), classes)
    documents = [f"{document} the" for document in documents]
    lines = arrow(fitted(documents, y, model).characteristic_words(n=20)).to_pylist()
    for own in sorted(set(y)):
        found = [line for line in lines if line["class"] == own]
        plain = plain_marks(documents, y, own, model)
        sure = {word for word, (odds, nats, *_) in plain.items() if odds > 1e-9 and nats > 0.5 + 1e-9}
        unsure = {word for word, (odds, nats, *_) in plain.items() if odds > -1e-9 and abs(nats - 0.5) < 1e-9}
        assert sure <= {line["word"] for line in found} <= sure | unsure
        for line in found:
            figures = line["log_odds"], line["evidence"], line["count"], line["elsewhere"]
            assert figures == pytest.approx(plain[line["word"]], abs=1e-9)
        assert [line["evidence"] for line in found] == sorted((line["evidence"] for line in found), reverse=True)


def test_neither_a_name_repeated_once_nor_a_word_used_everywhere_leads():
    common = ["the", "of", "and", "to", "in", "is", "it", "that", "was", "for", "on", "as", "with", "at", "by"]
    topic = [f"the of and to gearbox engine in is it {common[i % 15]}" for i in range(60)]
    other = [f"the of and to goal match in is it that {common[i % 15]}" for i in range(60)]
    topic[0] += " kowalczyk kowalczyk kowalczyk"
    marks = arrow(fitted(topic + other, ["auto"] * 60 + ["sport"] * 60).characteristic_words(n=3)).to_pylist()
    words = [line["word"] for line in marks if line["class"] == "auto"]
    assert set(words[:2]) == {"engine", "gearbox"}
    assert not set(words) & set(common)
    assert [line["word"] for line in marks if line["class"] == "sport"][:2] == ["goal", "match"]


@pytest.mark.parametrize("model", MODELS)
def test_spam_is_marked_by_the_words_one_expects(model, data):
    path = data("sms_spam") / "SMSSpamCollection"
    rows = [line.rstrip("\n").split("\t", 1) for line in path.read_text("utf-8").splitlines()]
    marks = fitted([text for _, text in rows], [label for label, _ in rows], model).characteristic_words(n=10)
    spam = [line["word"] for line in arrow(marks).to_pylist() if line["class"] == "spam"]
    assert {"call", "txt", "free", "claim", "mobile", "prize"} <= set(spam)
    assert not {"the", "and", "of", "in", "is"} & set(spam)


def test_clusters_have_marking_words_too():
    documents = ["oil engine brake oil", "wheel engine oil", "goal team match", "match team win goal"] * 10
    mix = sc.Mixture(2, kinds="text", random_state=0, n_init=3).fit(documents)
    marks = arrow(mix.characteristic_words(n=2)).to_pylist()
    both = [{line["word"] for line in marks if line["class"] == g} for g in (0, 1)]
    assert {"oil", "engine"} in both
    assert any(words < {"goal", "team", "match"} for words in both)


def test_a_single_class_has_its_most_frequent_words():
    marks = arrow(fitted(["call me", "call mum", "see mum call"], ["a"] * 3).characteristic_words(n=2)).to_pylist()
    assert [(line["word"], line["count"], line["elsewhere"], line["log_odds"]) for line in marks] == [
        ("call", 3, 0, 0),
        ("mum", 2, 0, 0),
    ]


def test_every_column_of_text_is_listed_or_the_one_asked_for():
    X = {"a": ["free call", "love mum", "free prize", "mum home"], "b": ["x1 x2", "y1 y2", "x1 x3", "y1 y3"]}
    nb = sc.NaiveBayes(kinds={"a": "text", "b": sc.families.Text("bernoulli")}).fit(X, list("shsh"))
    assert set(nb.characteristic_words()["column"].tolist()) == {"a", "b"}
    assert set(nb.characteristic_words(key="b")["column"].tolist()) == {"b"}
    assert set(nb.explain_words(X, row=2)["column"].tolist()) == {"a", "b"}
    assert set(nb.explain_words(X, row=2, key="a")["column"].tolist()) == {"a"}
    with pytest.raises(DataError, match="'c' is not a column of text"):
        nb.characteristic_words(key="c")


def test_a_model_without_text_says_so():
    nb = sc.NaiveBayes().fit(np.array([[1.0], [2.0], [3.0], [4.5]]), [0, 0, 1, 1])
    for ask in (nb.characteristic_words, lambda: nb.explain_words(np.array([[1.0]]))):
        with pytest.raises(DataError, match="no column of text"):
            ask()


# -- words that moved a document


@pytest.mark.parametrize("estimate", ["mean", "predictive"])
@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=15)
@given(documents=DOCUMENTS, classes=st.integers(1, 3), gap=st.booleans())
def test_words_add_up_to_the_columns_figure(model, estimate, documents, classes, gap):
    if (model, estimate) == ("complement", "predictive"):
        return
    rows: list[str | None] = [f"{document} the" for document in documents]
    X = {"note": [None, *rows[1:]] if gap else rows, "size": np.arange(len(rows)) * 0.37}
    nb = sc.NaiveBayes(kinds={"note": sc.families.Text(model), "size": "normal"}, estimate=estimate)  # type: ignore[arg-type]
    nb.fit(X, labels(len(rows), classes))
    figures = nb.explain(X)["note"].tolist()
    for row in range(min(len(rows), 4)):
        table = nb.explain_words(X, row=row)
        assert sum(table["nats"].tolist()) == pytest.approx(figures[row], abs=1e-9)
        sizes = [abs(nats) for nats in table["nats"].tolist()]
        assert sizes == sorted(sizes, reverse=True)
    if gap:
        assert arrow(nb.explain_words(X, row=0)).num_rows == 0


@pytest.mark.parametrize("model", MODELS)
def test_with_two_classes_a_words_nats_are_its_log_odds_times_its_count(model):
    documents = ["free call free", "love mum call", "free prize", "mum home call", "free free claim"]
    nb = fitted(documents, list("shshs"), model)
    lines = arrow(nb.characteristic_words(n=99)).to_pylist()
    odds = {(line["class"], line["word"]): line["log_odds"] for line in lines}
    for line in arrow(nb.explain_words({"note": ["free mum claim free"]})).to_pylist():
        if model != "bernoulli":
            ours, theirs = odds.get(("s", line["word"])), odds.get(("h", line["word"]))
            expected = ours if ours is not None else -theirs
            assert line["nats"] == pytest.approx(line["count"] * expected)


def test_words_that_are_not_there_are_one_line_of_the_bernoulli_model():
    documents = ["free call", "love mum", "free prize", "mum home"]
    nb = fitted(documents, list("shsh"), "bernoulli")
    lines = {line["word"]: line for line in arrow(nb.explain_words({"note": ["free call"]})).to_pylist()}
    assert set(lines) == {"free", "call", ABSENT}
    share = {"s": {"free": 3 / 4, "call": 2 / 4, "prize": 2 / 4}, "h": {"love": 2 / 4, "mum": 3 / 4, "home": 2 / 4}}
    assert lines["free"]["nats"] == pytest.approx(log(3 / 4) - log(1 / 4))
    absent = sum(
        log(1 - share["s"].get(word, 1 / 4)) - log(1 - share["h"].get(word, 1 / 4))
        for word in ("prize", "love", "mum", "home")
    )
    assert lines[ABSENT]["nats"] == pytest.approx(absent)
    assert lines[ABSENT]["spans"] == []


def test_without_a_prior_a_word_can_be_all_there_is_to_say():
    nb = fitted(["free call", "love mum", "free prize", "mum call"], list("shsh"), estimate="ml")
    lines = arrow(nb.explain_words({"note": ["free call"]})).to_pylist()
    assert lines[0]["word"] == "free"
    assert lines[0]["nats"] == inf
    assert lines[1]["nats"] == 0.0


def test_against_names_the_class_to_compare_with():
    documents = ["free call", "love mum", "free prize", "mum home", "goal match", "team goal"]
    nb = fitted(documents, list("shshgg"))
    against = nb.explain_words({"note": ["free mum"]}, against="g")["nats"].tolist()
    assert sum(against) == pytest.approx(nb.explain({"note": ["free mum"]}, against="g")["note"][0])
    with pytest.raises(DataError, match="no class 'x'"):
        nb.explain_words({"note": ["free mum"]}, against="x")


def test_a_row_is_not_compared_with_its_own_class():
    documents = ["free call", "love mum", "free prize", "mum home"]
    nb = fitted(documents, list("shsh"))
    with pytest.raises(DataError, match=r"row 1 is in class 's' itself\. Give another class for `against`"):
        nb.explain_words({"note": ["love mum", "free prize"]}, row=1, against="s")
    assert arrow(nb.explain_words({"note": ["love mum", "free prize"]}, row=0, against="s")).num_rows == 2
    many = nb.explain({"note": ["love mum", "free prize"]}, against="s")
    assert many["note"][0] > 0 and many["note"][1] == 0


def test_a_document_may_be_given_as_a_string():
    documents = ["free call", "love mum", "free prize", "mum home"]
    nb = sc.NaiveBayes(kinds="text").fit(documents, list("shsh"))
    assert nb.explain_words("free mum").equals(nb.explain_words(["free mum"]))
    assert arrow(nb.explain_words("")).num_rows == 0
    assert arrow(nb.explain_words("nothing known")).num_rows == 0
    with pytest.raises(DataError, match="no row 1"):
        nb.explain_words("free mum", row=1)


def test_a_row_far_down_a_table_is_found():
    documents = [f"free call w{i}" if i % 2 else f"love mum w{i}" for i in range(9000)]
    nb = sc.NaiveBayes(kinds={"note": sc.families.Text()}).fit({"note": documents}, ["sh"[i % 2] for i in range(9000)])
    assert "w8765" in nb.explain_words(pa.table({"note": documents}), row=8765)["word"].tolist()


# -- where they stand

DOTTED, SIGMAS, ACCENT = "\u0130\u0131", "\u03a3\u03c3\u03c2", "\u0301"
LETTERS = st.text(f"abAB _1-\néÉß日本😀\u01c5\ufb00{DOTTED}{SIGMAS}{ACCENT}", max_size=30)


def _one_sigma(word: str) -> str:
    """A sigma is written otherwise at the end of a word, and a word cut out of its document ends elsewhere."""
    return word.replace("\u03c2", "\u03c3")


class Everything:
    def __contains__(self, word: object) -> bool:
        return True


@settings(max_examples=200)
@given(document=LETTERS, low=st.integers(1, 2), more=st.integers(0, 1), lowercase=st.booleans())
def test_places_are_those_of_the_words_that_were_counted(document, low, more, lowercase):
    reading = Reading(ngrams=(low, low + more), lowercase=lowercase, stop_words=("ab",))
    block = block_of([document], reading)
    counted = dict(zip((block.words[i] for i in block.ids), block.counts.tolist(), strict=True))
    places = list(spots_of(document, reading, Everything()))
    assert Counter(spot.word for spot in places) == counted
    for spot in places:
        words = spot.word.split(" ")
        assert len(words) == len(spot.parts)
        for word, (start, end) in zip(words, spot.parts, strict=True):
            written = document[start:end]
            lowered = written.lower() if lowercase else written
            assert _one_sigma(word) in _one_sigma(lowered)
            assert len(lowered) - len(word) <= 1  # a dotted capital I at the end of a word has a dot that is no part


@settings(max_examples=200)
@given(
    document=LETTERS,
    words=st.lists(st.text("abé_1i\u0307\u03c3", max_size=3), unique=True, max_size=6),
    ngrams=st.sampled_from([(1, 1), (1, 2), (2, 2)]),
    pattern=st.sampled_from([None, r"\w", r"\w*", r"-(\w)?"]),
    lowercase=st.booleans(),
    how=st.sampled_from(WAYS),
    step=st.integers(1, 12),
)
def test_places_of_many_words_at_once_are_those_of_each_occurrence(
    document, words, ngrams, pattern, lowercase, how, step
):
    reading = Reading(ngrams=ngrams, pattern=pattern, lowercase=lowercase, stop_words=("ab",))
    every = list(spots_of(document, reading, Everything()))
    words = list(dict.fromkeys([*words, *(spot.word for spot in every)]))
    with way(how), patch("softcount.text.compiled.LOOKED_UP", step):
        found = spans_of(document, reading, words)
    assert sum(map(len, found)) == len(every)
    for word, places in zip(words, found, strict=True):
        assert places.tolist() == [[spot.start, spot.end] for spot in every if spot.word == word]


@pytest.mark.parametrize("how", WAYS)
def test_places_after_many_dotted_capitals_are_those_of_the_document_as_written(how):
    document = "\u0130stanbul, \u0130\u0130 free " * 50
    with way(how):
        (places,) = spans_of(document, Reading(), ["free"])
    assert places.tolist() == [list(found.span()) for found in re.finditer("free", document)]


def test_only_wanted_words_have_places_and_runs_of_characters_none():
    assert [spot.word for spot in spots_of("One two, ONE", Reading(), {"one"})] == ["one", "one"]
    assert not list(spots_of("one two", Reading(analyzer="char", ngrams=(2, 3)), Everything()))


def test_a_pattern_with_a_group_places_the_group():
    found = list(spots_of("#free and #call", Reading(pattern=r"#(\w+)"), Everything()))
    assert [(spot.word, spot.start, spot.end) for spot in found] == [("free", 1, 5), ("call", 11, 15)]


def test_spans_of_a_document_are_where_its_words_are():
    text = "FREE prize: call now! Free İstanbul"
    nb = sc.NaiveBayes(kinds="text").fit([text, "love mum now"], ["s", "h"])
    for line in arrow(nb.explain_words(text)).to_pylist():
        assert len(line["spans"]) == line["count"]
        for span in line["spans"]:
            assert re.fullmatch(line["word"], text[span["start"] : span["end"]], re.IGNORECASE)
