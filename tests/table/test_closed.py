"""Tables read for prediction, under a schema that is settled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.table.reading import cells, read, written

from softcount.errors import DataError
from softcount.table import Schema, open_table

COLUMNS: dict[str, Any] = {
    "size": [1.5, 2.5, 3.5] * 5,
    "colour": ["red", "blue", "red"] * 5,
    "grade": [1, 2, 3] * 5,
    "flag": [True, False, True] * 5,
    "id": [f"n{n}" for n in range(15)],
}


@pytest.fixture(scope="module")
def schema() -> Schema:
    return read(COLUMNS).settled.schema


def test_columns_are_matched_by_name_in_any_order(schema: Schema) -> None:
    shuffled = pd.DataFrame(COLUMNS)[["grade", "id", "flag", "size", "colour"]]
    found = read(shuffled, schema=schema)
    for key in ("size", "colour", "grade", "flag"):
        assert cells(found, key) == COLUMNS[key]
    assert found.table.schema == schema


def test_absent_columns_are_missing_and_extra_ones_ignored_both_noted(schema: Schema) -> None:
    found = read({"size": [1.5, 9.5], "price": [1, 2]}, schema=schema)
    assert cells(found, "colour") == [None, None]
    assert cells(found, "size") == [1.5, 9.5]
    assert found.table.missing == {"size": 0, "colour": 2, "grade": 2, "flag": 2}
    said = " | ".join(found.table.notes)
    assert "taken as missing: 'colour', 'grade', 'flag'" in said
    assert "ignored: 'price'" in said


def test_an_absent_column_that_the_model_never_used_is_not_worth_a_note(schema: Schema) -> None:
    columns = {key: values for key, values in COLUMNS.items() if key != "id"}
    assert open_table(columns, schema=schema).notes == []


def test_levels_never_seen_get_the_code_after_the_last_and_are_counted(schema: Schema) -> None:
    found = read({**COLUMNS, "colour": ["green", "red", None] * 5, "grade": [9, 1, 2] * 5}, schema=schema)
    assert cells(found, "colour") == ["unseen", "red", None] * 5
    assert cells(found, "grade") == ["unseen", 1, 2] * 5
    assert found.table.unseen == {"size": 0, "colour": 5, "grade": 5, "flag": 0}
    place = schema.places["colour"]
    assert found.chunks[0].codes[0, place.slot] == len(schema["colour"].levels) + 1


@pytest.mark.parametrize("grades", [["1", "2.0", "3"], [1.0, 2.0, 3.0], np.array([1, 2, 3], np.uint8)])
def test_levels_of_another_type_are_matched(schema: Schema, grades: Any) -> None:
    found = read({"grade": grades, "flag": ["True", "False", "maybe"], "size": ["1.5", "+2", "007"]}, schema=schema)
    assert cells(found, "grade") == [1, 2, 3]
    assert cells(found, "flag") == [True, False, "unseen"]
    assert cells(found, "size") == [1.5, 2.0, 7.0]


def test_numbers_given_for_words_are_matched_by_their_spelling() -> None:
    schema = read({"code": ["1", "2", "x"] * 4}).settled.schema
    assert cells(read({"code": [1, 2.0, 3]}, schema=schema), "code") == ["1", "2", "unseen"]


def test_a_word_in_a_number_column_is_refused_by_column_and_row(schema: Schema, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'size' holds numbers, but row 2 holds 'big'"):
        read({"size": ["1.5", "big"]}, schema=schema)
    with pytest.raises(DataError, match="'size' holds numbers, but row 2 holds 'big'"):
        read(written(tmp_path / "t.csv", "size,grade\n1.5,1\nbig,2\n"), schema=schema)


def test_a_count_that_is_none_is_refused_in_prediction_too() -> None:
    schema = read({"visits": [1, 2, 5, 9]}, kinds={"visits": "count"}).settled.schema
    with pytest.raises(DataError, match=r"'visits' is a count, but row 2 holds 2\.5"):
        read({"visits": [1.0, 2.5]}, schema=schema)


def test_arrays_are_matched_by_position(schema: Schema) -> None:
    array = np.array([[1.5, "red", 1, True, "a"], [2.5, "pink", 7, False, "b"]], dtype=object)
    found = read(array, schema=schema)
    assert cells(found, "size") == [1.5, 2.5]
    assert cells(found, "colour") == ["red", "unseen"]
    assert cells(found, "grade") == [1, "unseen"]
    assert found.table.unseen["grade"] == 1


def test_numbers_of_an_array_are_matched_to_named_columns_by_position() -> None:
    schema = read({"a": [0.5, 1.5, 2.5] * 4, "b": [3, 4, 5] * 4}).settled.schema
    for array in (np.array([[1.0, 4.0], [np.nan, 9.0]]), np.array([[1, 4], [2, 9]])):
        found = read(array, schema=schema)
        assert cells(found, "b") == [4, "unseen"]
        assert cells(found, "a")[0] == 1.0
        assert found.table.unseen == {"a": 0, "b": 1}


def test_a_frame_is_matched_by_position_to_a_model_of_an_array() -> None:
    schema = read(np.array([[0.5, 1.5]] * 3 + [[1.0, 2.0]])).settled.schema
    found = read(pd.DataFrame({"p": [7.5], "q": [8.5]}), schema=schema)
    assert cells(found, 0) == [7.5]
    assert cells(found, 1) == [8.5]


def test_the_wrong_number_of_columns_is_refused_in_known_words() -> None:
    schema = read(np.random.default_rng(0).normal(size=(9, 4))).settled.schema
    with pytest.raises(DataError, match=r"X has 3 features, but \w+ is expecting 4 features as input"):
        open_table(np.zeros((2, 3)), schema=schema)


def test_a_table_with_none_of_the_columns_is_refused(schema: Schema) -> None:
    with pytest.raises(DataError, match="none of the model's columns"):
        open_table({"x": [1], "y": [2]}, schema=schema)


def test_no_rows_are_refused(schema: Schema) -> None:
    with pytest.raises(DataError, match=r"0 sample\(s\)"):
        open_table(pd.DataFrame(COLUMNS).iloc[:0], schema=schema)


def test_a_target_column_may_be_there_or_not(schema: Schema) -> None:
    found = read({**COLUMNS, "y": ["p", "q", "p"] * 5}, schema=schema, target="y")
    assert found.table.notes == []
    assert found.settled.classes == ["p", "q"]


def test_a_large_array_of_whole_numbers_is_coded_like_a_small_one() -> None:
    """Large ones go through compiled loops, small ones through NumPy."""
    drawn = np.random.default_rng(2)
    train = drawn.integers(-3, 5, (60_000, 4))
    test = drawn.integers(-6, 9, (60_000, 4))
    schema = read(train).settled.schema
    large = read(test, schema=schema)
    for place in range(4):
        inside = (test[:, place] >= -3) & (test[:, place] < 5)
        assert cells(large, place) == [v if ok else "unseen" for v, ok in zip(test[:, place], inside, strict=True)]
        assert large.table.unseen[place] == int((~inside).sum())
