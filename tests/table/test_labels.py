"""Labels to codes, and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.errors import DataError
from softcount.table import check_weights, code_labels
from softcount.table.chunk import UNKNOWN

MAKERS: list[Any] = [list, pd.Series, pl.Series, pa.array]


def check(y: Any, values: list[Any]) -> None:
    """The law of coding: classes sorted and distinct, and every code stands for its label."""
    classes, codes = code_labels(y)
    assert codes.dtype == np.int32
    assert classes.tolist() == sorted({value for value in values if value is not None})
    assert [None if code == UNKNOWN else classes[code] for code in codes] == values


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("values", [["b", "a", None, "b"], [3, 1, 3, -7], [True, False, True], [2.0, None, 1.0]])
def test_labels_of_any_make_are_coded(make: Any, values: list[Any]) -> None:
    check(make(values), values)


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "i4", "u4", "i8", "u8"])
def test_whole_labels_keep_their_type(kind: str) -> None:
    info = np.iinfo(kind)
    for values in ([info.min, info.max], [info.max, info.max - 3], [5, 5, 7], [0]):
        y = np.array(values, dtype=kind)
        check(y, values)
        assert code_labels(y)[0].dtype == y.dtype


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=30) | st.lists(st.integers(-50, 50), min_size=1))
def test_any_whole_labels_are_coded(values: list[int]) -> None:
    check(np.array(values), values)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.none() | st.text(max_size=4), min_size=1, max_size=20))
def test_any_words_are_labels_as_they_are(values: list[str | None]) -> None:
    check(np.array(values, dtype=object), values)


def test_strided_and_reversed_labels_are_coded() -> None:
    y = np.arange(20).reshape(10, 2) % 3
    check(y[::-1, 1], y[::-1, 1].tolist())


def test_whole_floats_stay_floats_and_nan_is_unknown() -> None:
    classes, codes = code_labels(np.array([2.0, np.nan, 1.0]))
    assert classes.dtype == np.float64
    assert codes.tolist() == [1, UNKNOWN, 0]
    assert code_labels(np.array([np.nan, np.nan]))[1].tolist() == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize("y", [np.array([1.0, 1.5]), [1, 2.25], pd.Series([0.1]), np.array([1.0, np.inf])])
def test_measurements_are_no_labels(y: Any) -> None:
    with pytest.raises(DataError, match=r"Unknown label type: continuous.*row"):
        code_labels(y)


def test_classes_of_a_string_array_are_strings_of_its_kind() -> None:
    assert code_labels(np.array(["b", "a"]))[0].dtype.kind == "U"
    assert code_labels(np.array(["b", "a"], dtype=object))[0].dtype.kind == "O"


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1, -1, 0], "row 2 is -1.0"),
        ([1, 1, np.nan], "row 3 is nan"),
        ([np.inf, 1, 1], "row 1 is inf"),
        ([0, 0, 0], "all weights are zero"),
        ([1, 1], "shape"),
        ([[1], [1], [1]], "shape"),
        (["a", 1, 1], "numbers"),
    ],
)
def test_bad_weights_are_refused_by_row(weights: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        check_weights(weights, 3)


def test_good_weights_become_floats() -> None:
    found = check_weights([0, 1, 2], 3)
    assert found.dtype == np.float64
    assert found.tolist() == [0.0, 1.0, 2.0]
