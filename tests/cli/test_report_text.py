"""Laws of what is shown: nothing a terminal would obey, nothing rounded into a lie."""

from __future__ import annotations

import json
import math
import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from softcount.pictures.text import cell_width, format_count, format_number, format_share, printable, shorten
from softcount.report.page import as_json

DANGEROUS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.text(st.characters(codec=None)))
def test_no_control_character_is_ever_printed(text):
    assert not {unicodedata.category(char) for char in printable(text)} & DANGEROUS


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs", "M"])))
def test_ordinary_text_is_shown_as_it_is(text):
    assert printable(text) == text


def test_an_escape_sequence_is_spelled_out():
    assert printable("a\x1b]0;owned\x07") == "a\\x1b]0;owned\\x07"


@given(st.floats(0, 1))
def test_a_share_says_none_or_all_only_when_it_is(part):
    shown = format_share(part)
    assert (shown == "0 %") == (part == 0)
    assert (shown == "100 %") == (part == 1)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e14, max_value=1e14))
def test_a_number_is_shown_to_within_a_thousandth(value):
    shown = float(format_number(value).replace(",", ""))
    assert math.isclose(shown, value, rel_tol=1e-3, abs_tol=1e-300)


def test_what_is_not_a_number_is_a_dash():
    assert format_number(float("nan")) == format_number(None) == format_share(float("nan")) == "-"


def test_a_long_cell_is_cut_with_an_ellipsis_and_a_short_one_is_not():
    assert shorten("x" * 100, 10) == "x" * 9 + "…"
    assert shorten("x" * 10, 10) == "x" * 10


def test_wide_characters_take_two_places():
    assert [cell_width(text) for text in ("ab", "日本", "e\u0301")] == [2, 4, 1]


def test_one_row_is_not_one_rows():
    assert [format_count(n, "row") for n in (0, 1, 2, 0.5)] == ["0 rows", "1 row", "2 rows", "0.50 rows"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_every_document_is_strict_json_in_utf8(value):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    json.loads(as_json(value).encode("utf-8"), parse_constant=refuse)


def test_numpy_values_become_numbers_and_what_is_not_a_number_null():
    value = {
        "a": np.float64("nan"),
        ("x", "y"): np.array([[1, 2]]),
        "b": np.int32(3),
        "c": np.bool_(True),
        "d": -np.inf,
    }
    assert json.loads(as_json(value)) == {"a": None, "x, y": [[1, 2]], "b": 3, "c": True, "d": None}
