"""Documents become the words that Python's `re` and `str.lower` find in them, however they are read."""

from __future__ import annotations

import ctypes
import mmap
import sys
import tarfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from softcount.errors import DataError
from softcount.kernels.tokenise import CODES, KNOWN, PAGE, SMALL, UNUSUAL, read_words
from softcount.run.local import Threads
from softcount.text import Reading, block_of, count_words
from softcount.text.compiled import LETTERS, described, learn
from softcount.text.words import spelled
from text.plain_words import counted
from text.ways import WAYS, blocks_of, read, same_matrix, tables, way

NASTY = (
    "\u0130I\u0131i\u03a3\u03c3\u03c2\u0391\u03b1"  # the Turkish I, dotted and not; the Greek sigma in three forms
    "ß\u1e9e\u01c5\u212a\u212b\u2c65\u023aée\u0301\ufb01\u017f①²"  # capitals of another length than their small letters
    "中文字\U0001f600\U0001d4b3\U00010400\U00010428\u0436\u0486\u200d\ud800\udfff"  # every plane; half pairs
    "_-09aZ \t\n\r\x0b\x1c\x85\xa0\u2028\u3000\x00"
)
CHARACTERS = st.one_of(
    st.sampled_from(NASTY), st.sampled_from("abAB1_ .,"), st.characters(), st.characters(min_codepoint=0x10000)
)
DOCUMENTS = st.lists(st.one_of(st.none(), st.text(CHARACTERS, max_size=80)), max_size=6)


def short(reading: Reading) -> str:
    """A reading by what is unusual about it."""
    usual = Reading()
    told = {
        name: getattr(reading, name)
        for name in Reading.__match_args__
        if getattr(reading, name) != getattr(usual, name)
    }
    return ascii(told)


READINGS = [
    Reading(),
    Reading(lowercase=False),
    Reading(ngrams=(1, 2)),
    Reading(ngrams=(2, 3), lowercase=False),
    Reading(ngrams=(3, 3), stop_words=("ab", "\u03c3\u03c3", "a1")),
    Reading(stop_words=("ab", "aa", "never")),
    Reading(analyzer="char"),
    Reading(analyzer="char", ngrams=(2, 4)),
    Reading(analyzer="char_wb"),
    Reading(analyzer="char_wb", ngrams=(1, 3)),
    Reading(analyzer="char_wb", ngrams=(4, 6), lowercase=False),
]


def peer(reading: Reading, **more: object) -> CountVectorizer:
    settings = {"analyzer": reading.analyzer, "ngram_range": reading.ngrams, "lowercase": reading.lowercase}
    return CountVectorizer(**settings, stop_words=list(reading.stop_words) or None, **more)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("reading", READINGS, ids=short)
@settings(max_examples=60)
@given(documents=DOCUMENTS)
def test_every_document_has_the_words_of_the_plain_oracle(documents, reading, how):
    with way(how):
        found = block_of(documents, reading)
    assert found.indptr.dtype == np.int64 and found.ids.dtype == found.counts.dtype == np.int32
    assert tables(found) == counted(documents, reading)


@pytest.mark.parametrize("reading", READINGS, ids=short)
@settings(max_examples=40)
@given(documents=st.lists(st.text(CHARACTERS, max_size=60), min_size=1, max_size=6))
def test_the_matrix_is_count_vectorizers_on_generated_text(documents, reading):
    documents = [*documents, "ab ba ab cd ef gh"]
    theirs = peer(reading)
    expected = theirs.fit_transform(documents)
    with way("compiled"):
        chosen, rows = read(documents, reading)
    assert list(chosen.words) == theirs.get_feature_names_out().tolist()
    assert same_matrix(rows, expected)


def test_every_code_point_is_a_letter_where_python_says_so_and_is_made_small_as_python_does():
    documents = []
    for page in range(CODES // PAGE):
        letters = map(chr, range(page * PAGE, (page + 1) * PAGE))
        documents.append(" ".join(f"{letter}{letter} x{letter}y -{letter}-" for letter in letters))
    for lowercase in (True, False):
        reading = Reading(lowercase=lowercase)
        assert tables(block_of(documents, reading)) == counted(documents, reading)


def test_no_small_letter_takes_more_than_half_as_many_bytes_again():
    learn(range(CODES // PAGE))
    assert (LETTERS & KNOWN).all()
    codes = np.arange(CODES)

    def length(of):
        return 1 + (of >= 0x80).astype(int) + (of >= 0x800) + (of >= 0x10000)

    assert (2 * length(LETTERS & SMALL) <= 3 * length(codes)).all()


def test_only_two_capitals_are_unusual():
    unusual = [code for code in range(CODES) if len(chr(code).lower()) != 1]
    assert unusual == [0x130]
    assert [code for code in (0x130, 0x3A3, 0x41, 0x3C3) if described(code) & UNUSUAL] == [0x130, 0x3A3]


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000])
def test_words_of_any_length_are_found_at_any_place(length):
    word = "".join(chr(ord("a") + i % 26) for i in range(length))
    documents = [" " * before + word.upper() + end + "zz" for before in range(130) for end in (" ", " ." * 40, "")]
    with way("compiled"):
        assert tables(block_of(documents, Reading())) == counted(documents, Reading())
        # Alone at the end of memory: nothing beyond the last byte may be looked at.
        assert tables(block_of([word], Reading())) == counted([word], Reading())


STRETCHES = st.one_of(
    st.text("abZ_ .", max_size=140),
    st.sampled_from(["é", " é ", "É", "\u2019", "中", " 😀", "\u212a", "\u023a", "ё\n"]),
)


@given(st.lists(STRETCHES, max_size=12).map("".join), st.booleans())
def test_other_letters_among_long_stretches_of_ascii_are_read_in_their_place(text, lowercase):
    reading = Reading(lowercase=lowercase)
    documents = [text, text[1:], text.swapcase(), "x" * 200]
    with way("compiled"):
        assert tables(block_of(documents, reading)) == counted(documents, reading)


def test_documents_beyond_two_gigabytes_are_found():
    data = np.zeros(2_200_000_000, np.uint8)  # never touched but at its end
    text = np.frombuffer("One two é Two".encode(), np.uint8)
    data[-len(text) :] = text
    offsets = np.array([len(data) - len(text), len(data) - 6, len(data)])
    given = pa.LargeStringArray.from_buffers(2, pa.py_buffer(offsets), pa.py_buffer(data))
    for how in WAYS:
        with way(how):
            assert tables(block_of(given, Reading())) == [{"one": 1, "two": 1}, {"two": 1}]


@pytest.fixture(scope="module")
def guarded():
    """Memory that ends where nobody may read: looking one byte too far ends the process."""
    page, pages = mmap.PAGESIZE, 4
    memory = mmap.mmap(-1, (pages + 1) * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if sys.platform != "linux" or ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + pages * page), page, 0):
        pytest.skip("memory cannot be guarded here")
    return np.frombuffer(memory, np.uint8, count=pages * page)


@pytest.mark.parametrize("reading", READINGS, ids=short)
def test_nothing_beyond_the_last_byte_is_looked_at(reading, guarded):
    text = "Ab cde fghijklmn, é \u0391\u03a3 opqrstuvwxyz0123456789 I\u0307 " * 3
    for first in range(len(text)):
        documents = [text[first:], None, text[:first]]
        span = spelled(documents)
        guarded[-len(span.data) :] = span.data
        span = span._replace(data=guarded[-len(span.data) :])
        with way("compiled"):
            assert tables(block_of(span, reading)) == counted(documents, reading)


def test_words_that_share_all_but_one_byte_are_different_words():
    stems = ["abcdefgh", "abcdefghijklmnop", "x" * 40]
    words = [stem[:at] + letter + stem[at + 1 :] for stem in stems for at in range(len(stem)) for letter in "qrst0"]
    documents = [" ".join(words), " ".join(words[::-2])]
    with way("compiled"):
        assert tables(block_of(documents, Reading())) == counted(documents, Reading())


@pytest.mark.parametrize("spread", [0, 1 << 63, 0xFFFFFFFFFFFFFFFF])
def test_words_whose_hashes_collide_stay_apart(spread):
    documents = [" ".join(f"word{i} andalongerword{i} w{i % 7}" for i in range(j, j + 300)) for j in range(0, 900, 100)]
    span = spelled(documents)
    plain = np.zeros(len(documents), bool)
    found = read_words(*span, plain, LETTERS, 16, np.uint64(spread))
    usual = read_words(*span, plain, LETTERS, 1 << 15, np.uint64(0xFFFFFFFFFFFFFFFF))
    assert all(np.array_equal(one, other) for one, other in zip(found, usual, strict=True))


ARROWS = {
    "large_string": lambda texts: pa.array(texts, pa.large_string()),
    "string": lambda texts: pa.array(texts, pa.string()),
    "string_view": lambda texts: pa.array(texts, pa.string_view()),
    "dictionary": lambda texts: pa.array(texts, pa.string()).dictionary_encode(),
    "sliced": lambda texts: pa.array(["not me", None, *texts, "nor me"], pa.string()).slice(2, len(texts)),
    "chunked": lambda texts: pa.chunked_array([texts[:2], [], texts[2:]], pa.string()),
    "hidden bytes": lambda texts: pa.chunked_array([_hiding(texts)]),
    "list": list,
    "tuple": tuple,
}


def _hiding(texts):
    """Nulls with text beneath them."""
    whole = pa.array(["hidden words" if text is None else text for text in texts], pa.string())
    known = pa.array([text is not None for text in texts]).buffers()[1]
    return pa.StringArray.from_buffers(len(texts), *whole.buffers()[1:], known)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("kind", ARROWS)
def test_documents_come_in_any_arrow_array_or_list(kind, how):
    texts = ["One two, two.", None, "", "Ünï çöde ΣΑΣ", "...", None, "two"]
    with way(how):
        given = ARROWS[kind](texts)
        assert tables(block_of(given, Reading())) == counted(texts, Reading())
        assert [table for part in blocks_of(given, Reading()) for table in tables(part)] == counted(texts, Reading())


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("reading", READINGS, ids=short)
def test_nothing_to_read_is_a_block_without_words(reading, how):
    for texts in ([], [None], [""], ["", None, ". , ."]):
        with way(how):
            for given in (texts, pa.array(texts, pa.string()), pa.chunked_array([], pa.string())):
                found = block_of(given, reading)
                assert found.n_documents == len(given)
                if reading.analyzer == "word":
                    assert len(found.words) == len(found.ids) == 0


def test_bytes_that_are_no_utf8_are_between_words():
    broken = [
        b"caf\xe9 ole",
        b"\xff\xfeab cd\xc3",
        b"ab\xe2\x82cd",
        b"\xf5\x80\x80\x80ab",
        b"\x80ab\xf0\x9f",
        b"\xc3(ab)",
    ]
    whole = pa.array(broken, pa.binary())
    given = pa.StringArray.from_buffers(len(broken), *whole.buffers()[1:])
    expected = [text.decode("utf-8", "replace") for text in broken]
    for how in WAYS:
        with way(how):
            assert tables(block_of(given, Reading())) == counted(expected, Reading())
            block_of(given, Reading(analyzer="char", ngrams=(1, 2)))


@pytest.mark.parametrize("pattern", [r"[a-z]+", r"(\w+)@", r"\w*", r"(?i)[^ ]"])
def test_words_of_another_pattern_are_those_of_the_regular_expression(pattern):
    documents = ["me@home AND you@work", "", None, "a-b-c"]
    for reading in (Reading(pattern=pattern), Reading(pattern=pattern, ngrams=(1, 2), stop_words=("and",))):
        assert tables(block_of(documents, reading)) == counted(documents, reading)


def test_a_pattern_with_two_groups_is_refused():
    with pytest.raises(DataError, match="2 groups"):
        Reading(pattern=r"(\w)(\w)")
    with pytest.raises(DataError, match="is not a regular expression"):
        Reading(pattern=r"(")


@pytest.mark.parametrize(
    "wrong", [{"min_df": -1}, {"max_df": 1.5}, {"drop_top": -1}, {"max_words": 0}, {"stop_words": "x"}]
)
def test_limits_that_mean_nothing_are_refused(wrong):
    with pytest.raises(DataError, match=next(iter(wrong))):
        Reading(**wrong)


def test_english_stop_words_leave_the_words_that_matter():
    with way("compiled"):
        found = tables(block_of(["The cat was not on the mat, but under it"], Reading(stop_words="english")))
    assert found == [{"cat": 1, "mat": 1}]


def test_a_long_document_with_long_words_is_read_like_any_other():
    rare = " ".join(f"number{i:x}" for i in range(60_000))
    documents = [
        "A" * 1_000_000 + " end",
        rare + " " + rare,
        "é" * 300_000,
        "Σ" * 100_000 + " ΑΣ",
        "x" * 7 + "\n" * 100_000,
    ]
    assert tables(block_of(documents, Reading())) == counted(documents, Reading())


@pytest.mark.parametrize("reading", [Reading(), Reading(ngrams=(1, 2), min_df=2, drop_top=3)], ids=short)
def test_sizes_of_blocks_and_threads_change_nothing(reading, monkeypatch):
    rng = np.random.default_rng(7)
    words = np.array([f"{chr(97 + i % 26)}{'ñ' * (i % 3)}{i}" for i in range(400)])
    documents = [" ".join(words[rng.integers(0, 400, n)]) for n in rng.integers(0, 60, 900)]
    with way("plain"):
        chosen, rows = read(documents, reading)
    for size, threads, texts in ((300, 2, documents), (1 << 14, 2, pa.array(documents)), (1 << 20, 1, documents)):
        monkeypatch.setattr(count_words, "BLOCK_BYTES", size)
        with way("compiled"), Threads(threads) as pool:
            again, same = read(texts, reading, map=pool.map)
        assert again.words == chosen.words and np.array_equal(again.counts, chosen.counts)
        assert same_matrix(same, rows)


@pytest.mark.parametrize(
    "name", ["sms_spam/SMSSpamCollection", "text_markov/tinyshakespeare.txt", "text_markov/onegin_ru.txt"]
)
@pytest.mark.parametrize(
    "reading",
    [Reading(), Reading(ngrams=(1, 2)), Reading(analyzer="char_wb", ngrams=(2, 4)), Reading(min_df=3, max_df=0.1)],
    ids=short,
)
def test_real_lines_give_count_vectorizers_matrix(data, name, reading):
    lines = data(name).read_text("utf-8").splitlines()
    theirs = peer(reading, min_df=reading.min_df, max_df=reading.max_df)
    expected = theirs.fit_transform(lines)
    chosen, rows = read(lines, reading)
    assert list(chosen.words) == theirs.get_feature_names_out().tolist()
    assert same_matrix(rows, expected)


def test_newsgroups_give_count_vectorizers_matrix_on_two_threads(data):
    with tarfile.open(data("newsgroups20_19997/20_newsgroups.tar.gz")) as archive:
        documents = [archive.extractfile(member).read().decode("latin-1") for member in archive if member.isfile()]
    theirs = CountVectorizer()
    expected = theirs.fit_transform(documents)
    with Threads(2) as pool:
        chosen, rows = read(documents, Reading(), map=pool.map)
    assert list(chosen.words) == theirs.get_feature_names_out().tolist()
    assert same_matrix(rows, expected)
    assert rows.has_sorted_indices and rows.indices.dtype == np.int32
