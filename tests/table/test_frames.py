"""Data that is in memory already: frames, mappings, lists and arrays of every make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from tests.table.reading import cells, read

from softcount.errors import DataError
from softcount.sources.frames import arrow_of, filled, numpy_of, text_of
from softcount.table import open_table
from softcount.table.schema import with_usual


@pytest.mark.parametrize("index", [[7, 3, 9, 1], pd.Index([7, 3, 9, 1], name="row"), pd.Index(list("wxyz"))])
def test_row_labels_of_a_pandas_frame_are_no_column(index: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 1, 2], "b": [0.5, 1.5, 2.5, 3.5]}, index=index)
    frame.to_parquet(tmp_path / "t.parquet")
    assert open_table(frame).keys == ["a", "b"]
    assert open_table(tmp_path / "t.parquet").keys == ["a", "b"]


def test_a_pandas_frame_without_names_has_positions() -> None:
    frame = pd.DataFrame(np.array([[1, 5], [2, 6], [1, 5], [2, 6]]))
    assert open_table(frame).keys == [0, 1]
    assert open_table(frame[[1]]).keys == [1]


def test_numbers_mixed_with_words_are_text() -> None:
    found = read(pd.DataFrame({"m": pd.Series([1, "x", 2.5, None] * 3, dtype=object), "n": [1, 2, 3, 4] * 3}))
    assert cells(found, "m") == ["1", "x", "2.5", None] * 3
    assert cells(found, "n") == [1, 2, 3, 4] * 3


def test_cells_that_are_neither_numbers_nor_text_are_refused_by_row() -> None:
    array = np.array([[1.5], [2.5]], dtype=object)
    array[1, 0] = {"a": 1}
    with pytest.raises(TypeError, match="row 2: argument must be a string or a number, not 'dict'"):
        open_table(array)
    with pytest.raises(DataError, match="row 1"):
        open_table(pd.DataFrame({"a": pd.Series([[1], 2, "x"], dtype=object)}))


def test_repeated_names_are_refused_by_place() -> None:
    with pytest.raises(DataError, match="columns 1 and 3 are both named 'a'"):
        open_table(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]))
    with pytest.raises(DataError, match="columns 1 and 2 are both named 'a'"):
        open_table(pa.table([[1], [2]], names=["a", "a"]))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (np.arange(3.0), "Expected 2D array, got 1D array.*Reshape your data"),
        (np.zeros((2, 2, 2)), "Expected 2D array, got 3D"),
        (np.zeros((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
        (np.zeros((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (np.zeros((3, 2), complex), "Complex data not supported"),
        ([[1, 2], [3]], "row 1 has 2 cells, row 2 has 1"),
        ({"a": [1, 2], "b": [1]}, "'a' has 2, 'b' has 1"),
        ({}, r"0 feature\(s\)"),
        (None, "a NoneType is no table"),
        (5, "a int is no table"),
        (pd.DataFrame({"a": np.zeros(0)}), r"0 sample\(s\)"),
        (np.array([["a", "\ud800"]]), "not valid Unicode"),
    ],
    ids=str,
)
def test_what_is_no_table_is_refused(data: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        open_table(data)


MIXED = [[1, "a", 2.5], [2, "b", None], [1, None, 0.5], [2, "a", 1.5]]


@pytest.mark.parametrize("make", [list, lambda rows: np.array(rows, dtype=object), tuple])
def test_rows_of_mixed_cells_keep_each_cell(make: Any) -> None:
    found = read(make(MIXED))
    assert cells(found, 0) == [1, 2, 1, 2]
    assert cells(found, 1) == ["a", "b", None, "a"]
    assert cells(found, 2) == [2.5, None, 0.5, 1.5]


def test_blanks_around_the_cells_of_a_frame_belong_to_them() -> None:
    found = read({"a": [" x", "x", " NA ", "y"]}, missing=with_usual(["NA"]))
    assert cells(found, "a") == [" x", "x", None, "y"]


WORDS = ["NA", "None", "null", "-", "nan", "", "?", "x"]


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_only_nulls_are_missing_in_a_frame(make: Any, tmp_path: Path) -> None:
    frame = make({"a": [*WORDS, None] * 3, "n": [n / 4 for n in range(26)] + [None]})
    found = read(frame)
    assert cells(found, "a") == [*WORDS, None] * 3 and found.table.missing == {"a": 3, "n": 1}
    assert found.table.notes == []
    asked = read(frame, missing=with_usual(["NA", "-"]))
    assert cells(asked, "a") == [None if word in ("NA", "-") else word for word in [*WORDS, None] * 3]
    assert cells(read(frame, missing=("x",)), "a")[:8] == [None if word in ("x", "") else word for word in WORDS]


def test_files_with_real_nulls_are_read_as_frames(tmp_path: Path) -> None:
    table = pa.table({"a": [*WORDS, None] * 3})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    pa.feather.write_feather(table, tmp_path / "t.arrow")
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    for name in ("t.parquet", "t.arrow", "t.jsonl"):
        assert cells(read(tmp_path / name), "a") == [*WORDS, None] * 3, name


def test_a_category_of_the_model_is_one_in_a_text_file_too(tmp_path: Path) -> None:
    rows = {"region": ["NA", "EU", "NA", "EU"] * 5, "n": [n + 0.5 for n in range(19)] + [None]}
    schema = read(rows).settled.schema
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False, na_rep="NA")
    again = read(tmp_path / "t.csv", schema=schema, missing=schema.missing)
    assert cells(again, "region") == rows["region"] and cells(again, "n") == rows["n"]


def test_a_masked_array_is_missing_where_masked() -> None:
    found = read(np.ma.masked_greater(np.array([[1.0, 9.0], [2.0, 3.0], [8.0, 4.0]]), 5))
    assert cells(found, 0) == [1.0, 2.0, None]
    assert cells(found, 1) == [None, 3.0, 4.0]


def test_polars_categories_and_nullable_pandas_columns_are_read() -> None:
    frame = pl.DataFrame({"c": ["u", "v", None, "u"], "n": [1, None, 3, 1]}).with_columns(
        pl.col("c").cast(pl.Categorical)
    )
    found = read(frame)
    assert cells(found, "c") == ["u", "v", None, "u"]
    assert cells(found, "n") == [1, None, 3, 1]
    nullable = pd.DataFrame(
        {"i": pd.array([1, None, 2, 1], "Int64"), "b": pd.array([True, None, False, True], "boolean")}
    )
    found = read(nullable)
    assert cells(found, "i") == [1, None, 2, 1]
    assert cells(found, "b") == [True, None, False, True]


def test_levels_a_slice_does_not_use_are_not_levels() -> None:
    frame = pd.DataFrame({"c": pd.Categorical(["a", "b", "c", "d"] * 5)})
    found = read(frame[frame["c"].isin(["a", "c"])])
    assert found.settled.schema["c"].levels == ("a", "c")


@pytest.mark.parametrize("kind", ["f8", "f4", "i1", "u2", "i8", "u8", "?"])
@pytest.mark.parametrize("start", [0, 3, 9])
def test_arrow_and_numpy_share_values_through_slices(kind: str, start: int) -> None:
    values = (np.arange(40) % 7 % 2 if kind == "?" else np.arange(40)).astype(kind)
    part = arrow_of(values).slice(start, 20)
    assert part.to_pylist() == values[start : start + 20].tolist()
    back, known = numpy_of(part)
    assert known is None
    assert back.tolist() == values[start : start + 20].tolist()


@pytest.mark.parametrize("start", [0, 1, 8, 13])
def test_nulls_survive_slices(start: int) -> None:
    numbers = [None if n % 3 == 0 else n / 2 for n in range(40)]
    floats = filled(pa.array(numbers).slice(start, 17))
    assert [None if np.isnan(value) else value for value in floats] == numbers[start : start + 17]
    truths = [None if n % 3 == 0 else n % 2 == 0 for n in range(40)]
    part = pa.array(truths).slice(start, 17)
    assert filled(part, null=True).tolist() == [value is None or value for value in truths[start : start + 17]]
    assert filled(pa.nulls(5, pa.float64())).shape == (5,)


def test_text_of_any_letters_becomes_an_arrow_array() -> None:
    cells_given = ["a", None, "", "größe", "日本", None]
    assert text_of(cells_given).to_pylist() == cells_given
    assert text_of([]).to_pylist() == []
