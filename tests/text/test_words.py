"""Words as a list is: equal to one, and shown in a line however many they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from softcount.text.words import Words

LISTS = st.lists(st.text(max_size=6), max_size=8)


@given(LISTS, LISTS)
def test_words_equal_a_list_of_the_same_words_and_no_other(words, others):
    ours = Words.of(words)
    assert ours == words and words == ours and (ours != words) is False
    assert (ours == others) == (words == others) == (others == ours)
    assert (ours == Words.of(others)) == (words == others)


@given(LISTS)
def test_equal_words_have_one_hash_and_no_tuple_is_equal(words):
    assert hash(Words.of(words)) == hash(Words.of(words))
    assert Words.of(words) != tuple(words)


def test_a_list_of_other_things_or_of_another_length_is_not_equal():
    ours = Words.of(["a", "b"])
    assert ours != [1, None] and ours != ["a", b"b"] and ours != ["a"] and ours != ["a", "b", "c"]
    assert ours != "ab" and ours != 3


def test_lists_of_another_length_are_not_read():
    class Unread(str):
        def __eq__(self, other: object) -> bool:
            raise AssertionError("looked at")

        __hash__ = str.__hash__

    assert Words.of(["a", "b"]) != [Unread("a")]


def test_few_words_are_shown_whole_and_many_by_the_first():
    assert repr(Words.of([])) == "Words([])"
    assert repr(Words.of(["ink", "öl"])) == "Words(['ink', 'öl'])"
    many = Words.of([f"w{i}" for i in range(12345)])
    assert repr(many) == "Words(['w0', 'w1', 'w2', 'w3', 'w4', ...]: 12,345 words)"


@given(st.lists(st.text(max_size=60), max_size=8))
def test_what_is_shown_is_short_and_holds_nothing_a_terminal_could_obey(words):
    shown = repr(Words.of(words))
    assert len(shown) < 1200 and shown.isprintable()


def test_a_word_as_long_as_a_document_is_cut_between_characters():
    assert repr(Words.of(["é" * 10**6])) == f"Words(['{'é' * 12}...'])"
    assert repr(Words.of(["a" + "é" * 10**6])) == f"Words(['a{'é' * 11}...'])"


def test_a_broken_character_is_shown_by_its_number():
    assert repr(Words(np.frombuffer("\ud800".encode("utf-8", "surrogatepass"), np.uint8), np.array([0, 3]))) == (
        "Words(['\\ud800'])"
    )
