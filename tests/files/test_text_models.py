"""Models of text in files: words as bytes, counts packed; files that lie about either are refused."""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import softcount as sc
from softcount.core.counts import Twofold
from softcount.errors import DataError, ModelFileError
from softcount.files import read, write
from softcount.files.codec import SMALL, decode, decode_counts, encode_counts
from softcount.files.schema import decode_words, encode_reading, put_words
from softcount.text import Reading, Words
from spoiling import Change, drop, put, say, spoilt

DOCUMENTS = ["free money now", "win money, win", "call me later", "see you later, dear", "Öl für Straße", None, ""]
LABELS = ["spam", "spam", "ham", "ham", "ham", "ham", "spam"]
TESTED = ["free later", "win win money", "öl dear", "Straße"]
FRAME = pd.DataFrame({"note": DOCUMENTS * 3, "size": np.arange(21) % 4 + 0.5, "colour": ["red", "blue", "red"] * 7})
MANY = [f"word{i} w{i % 97} common{i % 7}" for i in range(3_000)]
"""Enough different words for their counts to be packed."""

MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "a row": lambda: (sc.NaiveBayes(kinds="text").fit(DOCUMENTS, LABELS), TESTED),
    "there or not": lambda: (
        sc.NaiveBayes(kinds=sc.families.Text("bernoulli", min_df=1)).fit(DOCUMENTS, LABELS),
        TESTED,
    ),
    "complement": lambda: (sc.NaiveBayes(kinds=sc.families.Text("complement")).fit(DOCUMENTS, LABELS), TESTED),
    "read its own way": lambda: (
        sc.NaiveBayes(
            kinds=sc.families.Text(ngrams=(1, 2), pattern=r"\w+", lowercase=False, stop_words=("me", "you"), max_df=0.9)
        ).fit(DOCUMENTS, LABELS),
        TESTED,
    ),
    "letters": lambda: (
        sc.NaiveBayes(kinds=sc.families.Text(analyzer="char", ngrams=(2, 3))).fit(DOCUMENTS, LABELS),
        TESTED,
    ),
    "beside others": lambda: (sc.NaiveBayes(kinds={"note": "text"}).fit(FRAME, LABELS * 3), FRAME),
    "two texts": lambda: (
        sc.NaiveBayes(kinds={"note": "text", "more": sc.families.Text("bernoulli")}).fit(
            FRAME.assign(more=FRAME["note"].iloc[::-1].to_numpy()), LABELS * 3
        ),
        FRAME.assign(more="call me"),
    ),
    "labels with gaps": lambda: (sc.NaiveBayes(kinds="text").fit(DOCUMENTS, [*LABELS[:5], None, None]), TESTED),
    "many words": lambda: (sc.NaiveBayes(kinds="text").fit(MANY, np.arange(3_000) % 3), MANY[:50]),
    "many words with gaps": lambda: (
        sc.NaiveBayes(kinds="text", max_iter=3).fit(MANY, [None if i % 5 == 0 else i % 3 for i in range(3_000)]),
        MANY[:50],
    ),
    "mixture": lambda: (sc.Mixture(2, kinds="text", n_init=1, random_state=0).fit(DOCUMENTS * 2), TESTED),
    "in parts": lambda: (
        sc.NaiveBayes(kinds=sc.families.Text(min_count=2))
        .partial_fit(DOCUMENTS, LABELS)
        .partial_fit(["a new word"], ["ham"]),
        TESTED,
    ),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Any, Path]]:
    """Each model, rows to ask it about and the file it is in, made once."""
    folder, kept = tmp_path_factory.mktemp("texts"), {}

    def make(name: str) -> tuple[Any, Any, Path]:
        if name not in kept:
            (model, rows), path = MODELS[name](), folder / f"{name}.sc"
            model.save(path)
            kept[name] = model, rows, path
        return kept[name]

    return make


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_of_text_is_the_same_model(name, saved):
    model, rows, path = saved(name)
    again = sc.load(path)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert again.fitted_.schema == model.fitted_.schema and again.notes_ == model.notes_
    assert again.fitted_.families == model.fitted_.families
    assert {key: list(words) for key, words in again.levels_.items()} == {k: list(v) for k, v in model.levels_.items()}
    for key in model.params_:
        assert again.params_[key].keys() == model.params_[key].keys()
        for part, value in model.params_[key].items():
            np.testing.assert_array_equal(again.params_[key][part], value)
        np.testing.assert_array_equal(again.counts_[key], model.counts_[key])
    assert again.n_features_in_ == model.n_features_in_
    assert again.get_params()["kinds"] == model.get_params()["kinds"]


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
def test_a_loaded_model_learns_on(saved):
    model, rows, path = saved("a row")
    again = sc.load(path).partial_fit(["brand new words"], ["spam"])
    fresh = copy.copy(model).partial_fit(["brand new words"], ["spam"])
    np.testing.assert_array_equal(again.predict_proba(rows), fresh.predict_proba(rows))
    merged = sc.load(path).merge(sc.NaiveBayes(kinds="text").fit(["brand new words"], ["spam"]))
    np.testing.assert_allclose(merged.predict_proba(rows), fresh.predict_proba(rows), rtol=1e-13)


def test_many_words_take_little_room(saved):
    model, _, path = saved("many words")
    words = model.levels_["text"]
    assert len(words) > 3_000
    # A number for every class and word, twice over and once more for what was estimated, would be 24 bytes each.
    with zipfile.ZipFile(path) as file:
        assert sum(part.file_size for part in file.infolist() if part.filename.endswith(".npy")) < 30 * len(words)
    names = read(path)[1]
    assert "counts/1/cells" in names and not [name for name in names if name.startswith("params/1/")]
    assert [name for name in read(saved("many words with gaps")[2])[1] if name.startswith("params/1/")]


# The pieces


@given(st.sets(st.text(max_size=6), max_size=30))
def test_words_come_back(texts):
    words = Words.of(sorted(text for text in texts if text.isprintable() and not _surrogate(text)))
    arrays: dict[str, np.ndarray] = {}
    put_words(arrays, "words/x", words)
    assert decode_words(arrays, "words/x", "x") == words


def _surrogate(text: str) -> bool:
    return any(0xD800 <= ord(character) < 0xE000 for character in text)


@given(
    st.integers(1, 4),
    st.integers(0, 3_000),
    st.sampled_from([1, 200, 70_000, 2**40, 0.3, -1.0]),
    st.floats(0.0, 0.2),
    st.integers(0, 5),
)
def test_counts_come_back_to_the_last_bit(groups, width, top, density, seed):
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((groups, width)) < density, rng.integers(1, 9, (groups, width)) * top, 0.0)
    counts = Twofold.of(table) if seed else Twofold.of(table) * 0.1
    arrays = encode_counts(counts)
    again = decode_counts(arrays, (groups, width), "c")
    assert again.hi.tobytes() == np.ascontiguousarray(counts.hi).tobytes()
    assert again.lo.tobytes() == np.ascontiguousarray(counts.lo).tobytes() or not counts.lo.any()
    assert ("cells" in arrays) <= (table.size >= SMALL)


READINGS = [
    Reading(),
    Reading(analyzer="char_wb", ngrams=(2, 5), lowercase=False),
    Reading(pattern=r"[a-z]+", stop_words=("the", "of"), min_count=3, min_df=2, max_df=0.5, drop_top=10, max_words=99),
    Reading(stop_words="english", min_df=0.25, max_df=7),
]


@pytest.mark.parametrize("reading", READINGS, ids=range(len(READINGS)))
def test_a_reading_comes_back(reading):
    document = json.loads(json.dumps(encode_reading(reading)))
    assert decode(Reading, document, {}, "reading", "the reading") == reading


def test_a_pattern_too_long_to_be_loaded_is_not_saved(tmp_path):
    model = sc.NaiveBayes(kinds=sc.families.Text(pattern="|".join(["a"] * 9_000))).fit(["a b", "b a a"], [0, 1])
    with pytest.raises(DataError, match=r"cannot be kept in a model file: .*length <= 10000 - at `\$.pattern`"):
        model.save(tmp_path / "m.sc")
    assert not list(tmp_path.iterdir())


# Files made to do harm


BYTES, OFFSETS = "words/'text'/bytes", "words/'text'/offsets"


def read_with(**parts: Any) -> Change:
    return lambda document, arrays: document["schema"]["fields"][0]["reading"].update(parts)


def own(**parts: Any) -> Change:
    return lambda document, arrays: document["leaves"][0]["own"].update(parts)


def spelt(words: list[bytes]) -> Change:
    def change(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[BYTES] = np.frombuffer(b"".join(words), dtype=np.uint8)
        arrays[OFFSETS] = np.concatenate([[0], np.cumsum([len(word) for word in words])]).astype(np.int64)

    return change


FIELD = ("schema", "fields", 0)
SPOILT: dict[str, tuple[Change, str]] = {
    "no bytes": (drop(BYTES), "are not there"),
    "no offsets": (drop(OFFSETS), "are not there"),
    "offsets cut short": (put(OFFSETS, lambda a: a[:-1]), "do not begin and end"),
    "no offset at all": (put(OFFSETS, lambda a: a[:0]), "do not begin and end"),
    "offsets beyond the bytes": (put(OFFSETS, lambda a: a + np.arange(len(a)) * 100), "do not begin and end"),
    "offsets that fall": (put(OFFSETS, lambda a: a[[0, 2, 1, *range(3, len(a))]]), "do not begin and end"),
    "offsets before the bytes": (put(OFFSETS, lambda a: a - 1), "do not begin and end"),
    "offsets of another type": (put(OFFSETS, lambda a: a.astype(float)), "are not bytes and where"),
    "offsets of two axes": (put(OFFSETS, lambda a: a[None]), "are not bytes and where"),
    "bytes of another type": (put(BYTES, lambda a: a.astype(np.int32)), "are not bytes and where"),
    "bytes cut short": (put(BYTES, lambda a: a[:-3]), "do not begin and end"),
    "bytes that are no UTF-8": (put(BYTES, lambda a: np.full_like(a, 0xFF)), "not all UTF-8"),
    "a word cut inside a letter": (spelt([b"a\xc3", b"\xb6", *[b"z%02d" % i for i in range(12)]]), "not all UTF-8"),
    "a million words of nothing": (put(OFFSETS, lambda a: np.zeros(1_000_000, np.int64)), "do not begin and end"),
    "a million empty words": (
        lambda document, arrays: (
            put(OFFSETS, lambda a: np.zeros(1_000_000, np.int64))(document, arrays),
            put(BYTES, lambda a: a[:0])(document, arrays),
        ),
        "not in order",
    ),
    "a word twice": (spelt([b"aa", b"aa", *[b"z%02d" % i for i in range(12)]]), "not each there once"),
    "words not in order": (spelt([b"b", b"a", *[b"z%02d" % i for i in range(12)]]), "not in order"),
    "other words": (spelt([b"a", b"b"]), "2 levels but"),
    "no reading": (say(None, *FIELD, "reading"), "does not say how its text is read"),
    "a reading that is none": (say("fast", *FIELD, "reading"), "at `$.fields[0].reading`"),
    "a reading of another part": (read_with(code="import os"), "more than there should be"),
    "an unknown analyzer": (read_with(analyzer="os.system"), "os.system"),
    "ngrams of three": (read_with(ngrams=[1, 2, 3]), "ngrams"),
    "ngrams that fall": (read_with(ngrams=[3, 1]), "ngrams"),
    "ngrams without end": (read_with(ngrams=[1, 10**9]), "ngrams"),
    "a pattern that is none": (read_with(pattern="("), "pattern"),
    "a pattern that is too long": (read_with(pattern="a" * 100_000), "pattern"),
    "a pattern of groups in groups": (read_with(pattern="(" * 450 + ")" * 450), "pattern="),
    "a pattern of a number": (read_with(pattern=7), "pattern"),
    "a count below zero": (read_with(min_count=-1), "min_count"),
    "a count in words": (read_with(min_count="many"), "min_count"),
    "a truth for a count": (read_with(drop_top=True), "drop_top"),
    "a share beyond one": (read_with(max_df=1.5), "max_df"),
    "stop words of numbers": (read_with(stop_words=[1]), "stop_words"),
    "words as levels": (say(["a", "b"], *FIELD, "levels"), "or has levels"),
    "text that is categorical": (say("categorical", *FIELD, "kind"), "no one column of text"),
    "text that is not used": (say(False, *FIELD, "used"), "no one column of text"),
    "another family": (say("categorical", "leaves", 0, "family"), "more than there should be"),
    "another model": (own(model="os"), "'os'"),
    "a pattern of groups in groups in the leaf": (own(pattern="(?:" * 900 + ")" * 900), "recursion"),
    "a long pattern in the leaf": (own(pattern="a" * 100_000), "pattern"),
    "a pattern without end": (read_with(pattern="(?:" * 900 + ")" * 900), "recursion"),
    "a setting it lacks": (own(odd=1), "more than there should be"),
    "levels in the leaf": (say(["a"], "leaves", 0, "levels"), "no one column of text"),
    "no column": (say([], "leaves", 0, "columns"), "no one column of text"),
    "two columns": (say(["text", "text"], "leaves", 0, "columns"), "no one column of text"),
    "counts of more words": (put("counts/'text'/hi", lambda a: np.ones((2, 99))), "counts"),
    "counts below zero": (put("counts/'text'/hi", lambda a: -a), "below zero"),
    "chances of more words": (put("params/'text'/probability", lambda a: np.full((2, 50), 0.02)), "levels but"),
    "chances beyond one": (put("params/'text'/probability", lambda a: a * 2), "makes no sense"),
    "another prior": (put("hyper/'text'/alpha", lambda a: -a - 9), "prior of column 'text'"),
}
CELLS, VALUES = "counts/'text'/cells", "counts/'text'/values"
PACKED: dict[str, tuple[Change, str]] = {
    "no values": (drop(VALUES), "sense"),
    "too few cells": (put(CELLS, lambda a: a[:-1]), "make no sense"),
    "too few values": (put(VALUES, lambda a: a[:-1]), "make no sense"),
    "more cells than values": (put(CELLS, lambda a: a | 255), "make no sense"),
    "cells of another type": (put(CELLS, lambda a: a.astype(np.int32)), "make no sense"),
    "values that are truths": (put(VALUES, lambda a: a.astype(bool)), "make no sense"),
    "values that are none": (put(VALUES, lambda a: a.astype(float) * np.nan), "make no sense"),
    "values below zero": (put(VALUES, lambda a: -a.astype(np.int32)), "below zero"),
    "cells of a huge table": (say(9_999_999, "structure", "groups"), "groups is 9999999"),
    "both ways at once": (lambda document, arrays: arrays.update({"counts/'text'/hi": np.zeros(3)}), "make no sense"),
}


def refused(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        sc.load(path)
    message = str(caught.value)
    assert path.name in message and "\n" not in message and len(message) < 1_000
    return message


@pytest.mark.parametrize("name", [*SPOILT, *PACKED])
def test_a_model_of_text_that_makes_no_sense_is_refused(name, saved, tmp_path):
    change, said = (SPOILT | PACKED)[name]
    sound = saved("a row" if name in SPOILT else "many words")[2]
    assert said in refused(spoilt(sound, tmp_path, change))


def test_a_block_that_claims_more_columns_than_the_file_holds_is_refused(tmp_path):
    model = sc.NaiveBayes().fit(sc.BagOfWords().fit_transform(MANY), np.arange(3_000) % 3)
    model.save(tmp_path / "m.sc")
    assert "counts/1/cells" in read(tmp_path / "m.sc")[1]
    np.testing.assert_array_equal(sc.load(tmp_path / "m.sc").counts_["counts"], model.counts_["counts"])
    wider = spoilt(tmp_path / "m.sc", tmp_path, say(1 << 31, "leaves", 0, "levels"))
    assert "width is 2147483648" in refused(wider)


def test_the_files_that_are_spoilt_above_are_sound(saved, tmp_path):
    for name in ("a row", "many words"):
        write(tmp_path / "m.sc", *read(saved(name)[2]))
        assert far(sc.load(tmp_path / "m.sc"), saved(name)[0], saved(name)[1]) == 0.0


def far(left: Any, right: Any, rows: Any) -> float:
    return float(np.abs(left.predict_proba(rows) - right.predict_proba(rows)).max())


def test_a_model_whose_words_have_changed_is_not_the_one_that_was_saved(saved):
    """Words that are equal make schemas that are equal, and others do not."""
    schema = saved("a row")[0].fitted_.schema
    other = replace(schema["text"], levels=Words.of(["a", "b"]))
    assert schema == schema.with_field(replace(schema["text"])) and schema != schema.with_field(other)
