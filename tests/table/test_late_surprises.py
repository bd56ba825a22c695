"""Rows that contradict the first ones: read right, or refused, never altered."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.table.reading import cells, read, read_table, with_room

from softcount.errors import DataError
from softcount.table import Contradiction, open_table
from softcount.table.schema import OTHER

MANY = 70_000


def late(first: list[Any], then: list[Any]) -> list[Any]:
    """`first` over and over, more rows than are looked at, and then `then`."""
    return (first * (MANY // len(first) + 1))[:MANY] + then


def expected(values: list[Any], kind: str, text: bool) -> list[Any]:
    return [str(value) if text else float(value) if kind in ("real", "amount") else value for value in values]


SURPRISES = [
    ("a decimal after whole numbers", [1, 2, 3], [2.5], "real", False),
    ("a word after whole numbers", [1, 2, 3], ["x", "01"], "categorical", True),
    ("a leading zero after whole numbers", [1, 2, 3], ["01"], "categorical", True),
    ("a word after a constant word", ["same"], ["other"], "categorical", True),
    ("a number after a constant number", [7], [8, 9], "categorical", False),
    ("a decimal after a constant whole number", [7], [8.5], "real", False),
    ("a number after a constant decimal", [7.5], [8.5, 9.0], "real", False),
    ("many numbers after few", [1, 2, 3], list(range(300)), "real", False),
    ("many words after few", ["a", "b"], [f"w{n}" for n in range(300)], "categorical", True),
    ("a negative count", np.random.default_rng(1).poisson(15, 999).tolist(), [-1], "real", False),
    (
        "a zero after positive numbers",
        np.exp(np.random.default_rng(1).normal(0, 3, 999)).tolist(),
        [0.0],
        "amount",
        False,
    ),
    ("a negative number after amounts", [0.0] * 5 + [0.5, 2.25, 8.0], [-1.5], "real", False),
]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("case", SURPRISES, ids=lambda case: case[0])
def test_a_late_surprise_is_read_right_from_a_file(tmp_path: Path, case: tuple[Any, ...], threads: int) -> None:
    _, first, then, kind, text = case
    values = late(first, then)
    pd.DataFrame({"it": pd.Series(values, dtype=object), "x": 0.5 + np.arange(len(values)) % 3}).to_csv(
        tmp_path / "t.csv", index=False
    )
    found = read(tmp_path / "t.csv", threads=threads)
    assert found.kinds["it"] == kind
    assert cells(found, "it") == expected(values, kind, text)
    assert any("'it'" in note for note in found.table.notes)


def test_values_after_a_column_that_began_empty_are_read(tmp_path: Path) -> None:
    for then, kind in (([1, 2, 1], "categorical"), (["p", "q"], "categorical"), ([0.5, 1e8], "real")):
        values = [None] * MANY + then
        pd.DataFrame({"it": pd.Series(values, dtype=object), "x": 0.5 + np.arange(len(values)) % 3}).to_csv(
            tmp_path / "t.csv", index=False
        )
        found = read(tmp_path / "t.csv")
        assert found.kinds["it"] == kind
        assert cells(found, "it") == values


def test_a_column_that_turns_real_is_anchored_by_its_own_numbers(tmp_path: Path) -> None:
    values = [None] * MANY + [1e10 + 0.5, 1e10 + 1.5, 1e10 + 2.5]
    pd.DataFrame({"it": values, "x": 0.5 + np.arange(len(values)) % 3}).to_csv(tmp_path / "t.csv", index=False)
    assert read(tmp_path / "t.csv").table.schema["it"].anchor == 1e10 + 1.5


def test_frames_and_parquet_are_surprised_alike(tmp_path: Path) -> None:
    values = late([1.0, 2.0], [2.5])
    frame = pd.DataFrame({"it": values, "same": late([1], [2]), "x": 0.5 + np.arange(len(values)) % 3})
    frame.to_parquet(tmp_path / "t.parquet")
    for data in (frame, tmp_path / "t.parquet"):
        found = read(data)
        assert found.kinds == {"it": "real", "same": "categorical", "x": "real"}
        assert cells(found, "it") == values
        assert cells(found, "same")[-2:] == [1, 2]


def test_an_array_of_whole_numbers_with_new_values_late_is_read_right() -> None:
    few = np.tile(np.arange(6).reshape(-1, 2) % 3, (30_000, 1))
    few[80_000] = [17, 900_000]
    found = read(few)
    assert cells(found, 0) == few[:, 0].tolist()
    assert cells(found, 1) == few[:, 1].tolist()
    many = few.copy()
    many[-400:, 0] = np.arange(400)
    assert read(many).kinds == {0: "real", 1: "categorical"}
    declared = read(many, kinds={0: "categorical"})
    assert cells(declared, 0) == many[:, 0].tolist()
    assert declared.table.schema[0].wide


def test_a_column_of_an_array_that_varies_only_late_is_not_constant() -> None:
    floats = np.full((70_000, 2), 3.5)
    floats[:, 1] = np.arange(70_000) * 0.5
    assert open_table(floats).schema[0].kind == "constant"
    floats[-1, 0] = 4.5
    assert open_table(floats).schema[0].kind == "real"
    whole = np.full((70_000, 2), 3)
    whole[:, 1] = np.arange(70_000) % 2
    assert open_table(whole).schema[0].kind == "constant"
    whole[-1, 0] = 4
    assert cells(read(whole), 0)[-2:] == [3, 4]


def most_frequent(values: list[str], most: int) -> set[str]:
    """So many levels, the most frequent first, equally frequent ones by spelling."""
    counts = Counter(values)
    return set(sorted(counts, key=lambda level: (-counts[level], level))[:most])


@pytest.mark.parametrize("threads", [1, 4])
def test_levels_beyond_the_limit_share_one_level_and_it_is_said(tmp_path: Path, threads: int) -> None:
    values = [f"w{n % 1_500}" for n in range(20_000)]
    pd.DataFrame({"it": values, "x": 0.5 + np.arange(20_000) % 7}).to_csv(tmp_path / "t.csv", index=False)
    found = read_table(with_room(open_table(tmp_path / "t.csv"), 1_000), threads)
    kept = most_frequent(values, 1_000)
    assert cells(found, "it") == [value if value in kept else OTHER for value in values]
    assert found.settled.schema["it"].levels[-1] == OTHER
    assert any("the rarest 500 share '(other)'" in note for note in found.table.notes)
    few = open_table({"it": ["w5", "w999", "never", None]}, schema=found.settled.schema)
    closed = read_table(with_room(few, 1_000))
    assert cells(closed, "it") == ["w5", OTHER, OTHER, None]


def test_a_level_called_like_the_one_that_the_rest_share_stays_apart_from_them() -> None:
    values = [OTHER if n % 1_500 == 7 else f"w{n % 1_500}" for n in range(20_000)]
    found = read_table(with_room(open_table({"it": values}, kinds={"it": "categorical"}), 1_000), 1)
    shared = "((other))"
    kept = most_frequent(values, 1_000)
    assert OTHER in kept
    assert cells(found, "it") == [value if value in kept else shared for value in values]
    assert found.settled.schema["it"].levels[-1] == shared
    assert any(f"share {shared!r}" in note for note in found.table.notes)
    closed = read_table(with_room(open_table({"it": [OTHER, "w999"]}, schema=found.settled.schema), 1_000))
    assert cells(closed, "it") == [OTHER, shared]


def test_what_the_user_declared_is_not_overruled_by_a_late_row(tmp_path: Path) -> None:
    values = late([1, 2, 3], [-4])
    pd.DataFrame({"it": values, "x": 0.5 + np.arange(len(values)) % 3}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=rf"'it' is a count, but row {MANY + 1} holds -4\.0.*kinds={{'it': 'real'}}"):
        read(tmp_path / "t.csv", kinds={"it": "count"})
    with pytest.raises(DataError, match=rf"'it' is positive, but row {MANY + 1} holds -4\.0"):
        read(tmp_path / "t.csv", kinds={"it": "positive"})
    decimals = late([1, 2, 3], [2.5])
    pd.DataFrame({"it": decimals, "x": 0.5 + np.arange(len(decimals)) % 3}).to_csv(tmp_path / "t.csv", index=False)
    kept = read(tmp_path / "t.csv", kinds={"it": "categorical"})
    assert kept.settled.schema["it"].levels == (1, 2, 2.5, 3)


def test_a_contradiction_names_column_row_and_reason(tmp_path: Path) -> None:
    values = late([1, 2, 3], [2.5])
    table = open_table({"it": values, "x": [0.5, 1.5] * (len(values) // 2) + [0.5] * (len(values) % 2)})
    with pytest.raises(Contradiction) as caught:
        for task in table.tasks():
            task()
    assert (caught.value.key, caught.value.row) == ("it", MANY + 1)
    assert "2.5" in caught.value.reason


def test_labels_that_turn_to_words_late_are_read_as_words(tmp_path: Path) -> None:
    values = late([1, 2], ["x"])
    pd.DataFrame({"y": pd.Series(values, dtype=object), "x": 0.5 + np.arange(len(values)) % 3}).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert read(tmp_path / "t.csv", target="y").settled.classes == ["1", "2", "x"]
