"""What a column is decided to be, and why."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.table.reading import cells, csv_of, read, written

from softcount.errors import DataError
from softcount.table import Kind, open_table

DRAWN = np.random.default_rng(5)

NAMED = [
    ("two whole numbers", [0, 1] * 10, "categorical"),
    ("two different whole numbers in two rows", [4, 9], "categorical"),
    ("ten levels often enough", list(range(10)) * 3, "categorical"),
    ("ten levels too seldom", [1, 5, 9, 14, 20, 27, 35, 44, 54, 65, 1, 5], "real"),
    ("twenty levels, twenty rows each", list(range(20)) * 20, "categorical"),
    ("twenty levels, nineteen rows each", [n * 7 - 50 for n in range(20)] * 19, "real"),
    ("whole floats", [1.0, 2.0, 3.0] * 5, "categorical"),
    ("whole floats with holes", [1.0, None, 2.0] * 5, "categorical"),
    ("numbers with decimals", [0.5, 1.5, 2.5] * 5, "real"),
    ("a run of numbers", list(range(100, 130)), "identifier"),
    ("nine rows are too few for an identifier", list(range(100, 109)), "real"),
    ("counts", DRAWN.poisson(15, 500).tolist(), "count"),
    ("temperatures", DRAWN.normal(78, 9.5, 500).round().tolist(), "real"),
    ("rain", [*[0.0] * 60, *np.exp(DRAWN.normal(1, 1, 40)).tolist()], "amount"),
    ("capital gains", [0] * 95 + [2174, 14084, 5178, 5013, 99999, 3103, 7688, 594, 15024, 4386, 2407], "amount"),
    ("fares with a few zeros", [0.0, *np.exp(DRAWN.normal(3, 2, 99)).tolist()], "amount"),
    ("heights with one zero", [0.0, *DRAWN.normal(170, 10, 99).tolist()], "real"),
    ("zero or one other number", [0.0, 2.5, 0.0] * 9, "real"),
    ("counts spread too far", (DRAWN.poisson(100, 500) * 4).tolist(), "real"),
    ("counts below zero", (DRAWN.poisson(30, 500) - 40).tolist(), "real"),
    ("incomes", np.exp(DRAWN.normal(10, 2, 300)).tolist(), "positive"),
    ("heights", DRAWN.normal(170, 10, 300).tolist(), "real"),
    ("truth", [True, False, None] * 5, "categorical"),
    ("words", ["a", "b"] * 10, "categorical"),
    ("words all different", [f"w{n}" for n in range(12)], "identifier"),
    ("nine words all different", [f"w{n}" for n in range(9)], "categorical"),
    ("sentences", [f"the cat number {n} sat on the mat" for n in range(40)], "text"),
    ("numbers as text", ["1", "2", "3"] * 5, "categorical"),
    ("decimals as text", ["1.5", "-2e5", "+3", ".5", "7."] * 3, "real"),
    ("leading zeros", ["00042", "00043"] * 5, "categorical"),
    ("hexadecimal", ["0x10", "0x11"] * 5, "categorical"),
    ("underscores", ["1_000", "2_000"] * 5, "categorical"),
    ("one value", [3, 3, 3], "constant"),
    ("one word", ["x", "x", None], "constant"),
    ("no value", [None, None, None], "constant"),
    ("days", [datetime.date(2020, 1, day) for day in range(1, 20)], "real"),
    ("money", [decimal.Decimal("1.50"), None, decimal.Decimal("2.25")] * 4, "real"),
]


@pytest.mark.parametrize(("values", "kind"), [pytest.param(v, k, id=name) for name, v, k in NAMED])
def test_a_named_column_is_what_its_values_look_like(values: list[object], kind: str) -> None:
    other = ["p", "q"] * len(values)
    table = open_table(pa.table({"it": values, "other": other[: len(values)]}))
    assert table.schema["it"].kind == kind
    assert table.schema["it"].why


@pytest.mark.parametrize("name", ["id", "ID", "customer_id", "customerId", "index", "uuid", "rownum", "Unnamed: 0"])
def test_different_numbers_under_the_name_of_an_identifier_are_left_out_and_noted(name: str) -> None:
    values = (DRAWN.permutation(1000)[:50] * 3).tolist()
    table = open_table({name: values, "other": [1, 2] * 25})
    assert table.schema[name].kind is Kind.IDENTIFIER
    assert not table.schema[name].used
    assert any(repr(name) in note and "identifier" in note for note in table.notes)


def test_an_identifier_whose_numbers_are_met_again_is_noticed() -> None:
    drawn = np.random.default_rng(8).permutation(89).tolist()
    table = open_table({"Id": [7 * n for n in drawn + drawn[:11]], "other": [1, 2] * 50})
    assert not table.schema["Id"].used
    assert "89 % of its values differ" in table.schema["Id"].why
    assert any("'Id' is named as an identifier" in note and "kinds={'Id': 'real'}" in note for note in table.notes)


def test_a_numbered_thing_that_is_met_often_has_levels() -> None:
    table = open_table({"store_id": [100 + 3 * n for n in range(40)] * 5, "other": [n % 7 for n in range(200)]})
    assert table.schema["store_id"].kind is Kind.CATEGORICAL
    assert table.schema["store_id"].used


@pytest.mark.parametrize("name", ["Temp", "age", "age_years", "max temperature", "Year", "score"])
def test_what_is_measured_is_no_count_however_it_varies(name: str) -> None:
    counts = [*np.random.default_rng(3).poisson(14, 600).tolist(), 40]
    table = open_table({name: counts, "visits": counts})
    assert [table.schema[key].kind.value for key in (name, "visits")] == ["real", "count"]


@pytest.mark.parametrize("name", ["valid", "paid", "grid", "humidity"])
def test_a_name_that_merely_ends_like_one_is_no_identifier(name: str) -> None:
    table = open_table({name: (DRAWN.permutation(1000)[:50] * 3).tolist(), "other": [1, 2] * 25})
    assert table.schema[name].used


def test_a_bare_array_has_no_identifiers() -> None:
    assert open_table(np.arange(100)[:, None]).schema[0].kind is Kind.REAL
    words = np.array([[f"w{n}"] for n in range(20)])
    assert open_table(words).schema[0].kind is Kind.CATEGORICAL


def test_bare_floats_are_real_even_where_whole() -> None:
    assert open_table(np.array([[0.0], [1.0]] * 20)).schema[0].kind is Kind.REAL


def test_whole_numbers_in_a_bare_array_are_looked_at() -> None:
    table = open_table(np.column_stack([np.arange(60) % 3, DRAWN.integers(-500, 500, 60)]))
    assert [spec.kind for spec in table.schema.fields] == [Kind.CATEGORICAL, Kind.REAL]


def test_the_same_columns_are_typed_the_same_from_pandas_polars_arrow_and_csv(tmp_path) -> None:
    columns = {
        "size": [1.5, 2.25, 3.0] * 8,
        "colour": ["red", "blue", "red"] * 8,
        "grade": [1, 2, 3] * 8,
        "number": [n * 17 % 101 for n in range(24)],
    }
    frame = pd.DataFrame(columns)
    text = written(tmp_path / "t.csv", csv_of(list(columns), list(zip(*columns.values(), strict=True))))
    frame.to_parquet(tmp_path / "t.parquet")
    kinds = [
        read(data).kinds
        for data in (frame, pl.DataFrame(columns), pa.table(columns), columns, text, tmp_path / "t.parquet")
    ]
    assert all(other == kinds[0] for other in kinds)


def test_columns_left_out_are_said_with_their_reason() -> None:
    table = open_table({"same": [1] * 12, "none": [None] * 12, "name": [f"n{n}" for n in range(12)], "x": [1, 2] * 6})
    said = " | ".join(table.notes)
    assert "'same' is always 1" in said
    assert "'none' has no values" in said
    assert "'name' differs in every row" in said
    assert [spec.key for spec in table.schema.used] == ["x"]


def test_a_table_of_one_row_keeps_every_column_with_a_value() -> None:
    found = read({"size": [1.5], "colour": ["red"], "none": [None]})
    assert found.used == ["size", "colour"]
    assert found.kinds == {"size": "real", "colour": "categorical", "none": "constant"}
    assert cells(found, "size") == [1.5]
    assert cells(found, "colour") == ["red"]


def test_a_table_without_any_value_is_refused() -> None:
    with pytest.raises(DataError, match="every value missing"):
        open_table({"a": [None, None], "b": [np.nan, np.nan]})


def test_what_the_user_declares_is_obeyed_and_never_dropped() -> None:
    kinds = {"id": "categorical", "same": "real", "text": Kind.CATEGORICAL, "grade": "real"}
    columns = {
        "id": list(range(20)),
        "same": [4] * 20,
        "text": [f"so many words in cell {n}" for n in range(20)],
        "grade": [1, 2] * 10,
    }
    table = open_table(columns, kinds=kinds)
    assert {spec.key: spec.kind for spec in table.schema.used} == {key: Kind(kind) for key, kind in kinds.items()}
    assert all(spec.declared for spec in table.schema.used)


def test_ignored_columns_are_left_out_without_a_note() -> None:
    table = open_table({"a": [1, 2] * 5, "b": [3.5, 4.5] * 5}, kinds={"b": "ignore"})
    assert [spec.key for spec in table.schema.used] == ["a"]
    assert not table.notes


def test_a_declared_name_that_is_not_there_is_refused_with_close_matches() -> None:
    with pytest.raises(DataError, match=r"'ages'.*Did you mean 'age'"):
        open_table({"age": [1, 2], "size": [3, 4]}, kinds={"ages": "real"})
    with pytest.raises(DataError, match=r"target: the table has no column 'Y'.*'y'"):
        open_table({"x": [1, 2], "y": [3, 4]}, target="Y")


def test_a_kind_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(DataError, match=r"'a' is declared 'numbery'.*categorical, real"):
        open_table({"a": [1, 2]}, kinds={"a": "numbery"})


def test_levels_that_exist_besides_those_seen_are_kept() -> None:
    found = read({"grade": [1, 2, 2, 1], "x": [0.5, 1.5, 2.5, 1.0]}, levels={"grade": [1, 2, 3]})
    assert found.settled.schema["grade"].levels == (1, 2, 3)
    assert cells(found, "grade") == [1, 2, 2, 1]


def test_nested_columns_are_refused_unless_left_out() -> None:
    nested = pa.table({"list": [[1], [2]], "x": [1, 2]})
    with pytest.raises(DataError, match=r"'list'.*kinds={'list': 'ignore'}"):
        open_table(nested)
    assert open_table(nested, kinds={"list": "ignore"}).schema.used[0].key == "x"


def test_arrow_types_of_every_make_are_read() -> None:
    day = datetime.datetime(1970, 1, 2)
    table = pa.table(
        {
            "big": pa.array([2**63 + 1, 5, None], pa.uint64()),
            "view": pa.array(["a", None, "b"], pa.string_view()),
            "large": pa.array(["a", "b", None], pa.large_string()),
            "coded": pa.array(["a", "b", "a"]).dictionary_encode(),
            "half": pa.array(np.array([1.0, 2.5, 3.0], np.float16)),
            "when": pa.array([day, None, day + datetime.timedelta(seconds=1.5)], pa.timestamp("us")),
            "null": pa.nulls(3),
        }
    )
    found = read(table, kinds={"big": "real", "half": "real"})
    assert cells(found, "big") == [float(2**63 + 1), 5.0, None]
    assert cells(found, "view") == ["a", None, "b"]
    assert cells(found, "large") == ["a", "b", None]
    assert cells(found, "coded") == ["a", "b", "a"]
    assert cells(found, "half") == [1.0, 2.5, 3.0]
    assert cells(found, "when") == [86_400.0, None, 86_401.5]
    assert "null" not in found.used


def test_numbers_kept_as_categories_by_their_owner_are_categories() -> None:
    frame = pd.DataFrame({"code": pd.Categorical([n * 37 for n in range(30)] * 2)})
    assert open_table(frame).schema["code"].kind is Kind.CATEGORICAL


def test_words_for_missing_can_be_numbers() -> None:
    found = read({"age": [31.5, -9, 40.25, -9.0], "grade": [1, 2, -9, 1]}, missing=("-9",))
    assert cells(found, "age") == [31.5, None, 40.25, None]
    assert cells(found, "grade") == [1, 2, None, 1]
    array = read(np.array([[1, 2], [-9, 1], [2, -9], [1, 2]]), missing=("-9",))
    assert cells(array, 0) == [1, None, 2, 1]


def test_real_tables_are_understood(data) -> None:
    adult = read(data("uci_adult/adult.data.gz"), header=False, target="c15")
    assert adult.table.n_rows == 32_561
    assert adult.table.missing["c2"] == 1_836
    assert adult.table.missing["c7"] == 1_843
    assert adult.settled.classes == ["<=50K", ">50K"]
    assert adult.settled.schema["c9"].levels[0] == "Amer-Indian-Eskimo"
    cheating = read(data("lca_poLCA/cheating.csv"))
    assert set(cheating.kinds.values()) == {"categorical"}
    assert cheating.table.missing["GPA"] == 4
    iris = read(data("r_datasets/iris_fisher.csv"), target="Species")
    assert set(iris.kinds.values()) == {"real"}
    assert iris.settled.classes == ["setosa", "versicolor", "virginica"]


def test_a_few_stray_cells_leave_a_column_of_numbers_one(tmp_path: Path) -> None:
    stray = [
        "70 kg",
        "abt 65",
        "80+",
        "see note",
        "?!",
        "heavy",
        "n.b.",
        "an explanation that is longer than forty letters",
    ]
    weights = [f"{50 + n % 397 / 10}" for n in range(2_000)] + stray
    for data in ({"weight": weights}, written(tmp_path / "t.csv", csv_of(["weight"], [[cell] for cell in weights]))):
        found = read(data)
        assert found.kinds == {"weight": "real"} and found.table.missing == {"weight": 8}
        assert "2,000 of 2,008 cells are numbers; the others are '70 kg' (1)" in found.table.notes[0]
        assert "and 3 more: taken as missing" in found.table.notes[0] and "missing=" not in found.table.notes[0]
    with pytest.raises(DataError, match=r"'80\+' \(60\).*if they are numbers, write them as the others are"):
        read({"weight": weights[:600] + ["80+"] * 60})
    assert read({"weight": [*weights[:600], "007"]}).kinds == {"weight": "categorical"}


def test_words_taken_as_missing_in_a_text_file_are_listed(tmp_path: Path) -> None:
    rows = [["?x"[n % 3 > 0], f"{n / 4}" if n % 10 else " NA", "u" if n % 5 else "-", "+-"[n % 2]] for n in range(30)]
    path = written(tmp_path / "t.csv", csv_of(["a", "b", "c", "d"], rows))
    note = "read as missing: '?' (10 in 'a'), '-' (6 in 'c'), 'NA' (3 in 'b') (only_missing=[''] keeps such words)"
    assert note in read(path).table.notes
    assert not any("read as missing" in note for note in read(path, missing=("",)).table.notes)
    many = written(tmp_path / "m.csv", "a\n" + "1.5\n2.5\nNA\n" * 22_000)
    assert read(many).table.notes[0].startswith("read as missing in the first 65,536 rows: 'NA' (21,845 in 'a')")


TICKS = ["Episode IV", None, "Episode IV", None] * 5


@pytest.mark.parametrize("value", ["Episode IV", 1, True])
def test_a_column_of_one_value_or_none_is_a_tick_box(value: object) -> None:
    column = [None if cell is None else value for cell in TICKS]
    found = read({"a": column, "b": DRAWN.normal(size=20)})
    assert found.kinds["a"] == "categorical" and set(cells(found, "a")) == {value, "(no value)"}
    assert found.table.missing["a"] == 0 and "is a category" in found.table.notes[0]
    schema = found.settled.schema
    assert cells(read({"a": [None, value], "b": [1.0, 2.0]}, schema=schema), "a") == ["(no value)", value]
    assert cells(read({"b": [1.0, 2.0]}, schema=schema), "a") == [None, None]


def test_what_is_not_a_tick_box() -> None:
    rest = {"b": DRAWN.normal(size=20)}
    for column in (["x"] * 16 + [None] * 4, ["x"] * 4 + [None] * 16, [1.5, None] * 10):
        assert read({"a": column, **rest}).kinds["a"] == "constant"
    late = {"a": ["x", None] * 40_000 + ["z"], "b": list(DRAWN.normal(size=80_001))}
    found = read(late)
    assert found.kinds["a"] == "categorical" and found.table.missing["a"] == 40_000
