"""Whole numbers to codes: compiled loops, their NumPy twins, and a dictionary say the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.table.reading import cells, read

from softcount.kernels import csv_cells
from softcount.table import levels

LOOPS: list[Any] = [csv_cells, levels]


@pytest.mark.parametrize("loops", LOOPS)
@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.integers(-4, 9), min_size=1, max_size=40), low=st.integers(-4, 4), size=st.integers(1, 12))
def test_a_run_of_values_is_numbered_from_one(loops: Any, values: list[int], low: int, size: int) -> None:
    codes = np.zeros(len(values), dtype=np.uint8)
    inside = all(low <= value < low + size for value in values)
    assert bool(loops.recode_run(np.array(values), low, size, codes)) == inside
    if inside:
        assert codes.tolist() == [value - low + 1 for value in values]


@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize("kind", ["i1", "i8", "u2", "u8"])
def test_a_table_gives_each_value_its_code_and_zero_to_the_rest(loops: Any, kind: str) -> None:
    block = np.random.default_rng(3).integers(0, 120, (500, 3)).astype(kind)
    block[7, 2] = np.iinfo(kind).max
    known = [{10: 1, 20: 2, 30: 3}, {value: 119 - value for value in range(119)}]
    columns, low = np.array([2, 0]), np.array([10, 0])
    tables = np.zeros((2, 130), dtype=np.uint8)
    for j, codes in enumerate(known):
        for value, code in codes.items():
            tables[j, value - low[j]] = code
    found = np.empty((500, 2), dtype=np.uint8)
    whole = loops.recode_table(block, columns, low, tables, found)
    expected = [[known[j].get(int(row[column]), 0) for j, column in enumerate(columns)] for row in block]
    assert found.tolist() == expected
    assert not whole


@pytest.mark.parametrize("rows", [300, 70_000])
@pytest.mark.parametrize("kind", ["i1", "u1", "i4", "i8", "u8", "bool"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_whole_type_come_back(rows: int, kind: str, order: Any) -> None:
    drawn = np.random.default_rng(8).integers(0, 2 if kind == "bool" else 9, (rows, 4))
    array = np.array(drawn.astype(kind), order=order)
    found = read(array, threads=2)
    for place in range(4):
        assert cells(found, place) == array[:, place].tolist()
        assert isinstance(found.settled.schema[place].levels[0], bool) == (kind == "bool")


def test_columns_of_different_levels_some_far_apart_come_back() -> None:
    drawn = np.random.default_rng(8).integers(0, 5, (70_000, 4))
    array = drawn * [1, 100, 10**6, -(10**15)] + [0, -7, 3, 5]
    found = read(array)
    assert set(found.kinds.values()) == {"categorical"}
    for place in range(4):
        assert cells(found, place) == array[:, place].tolist()


def test_categories_beside_numbers_in_one_array_come_back() -> None:
    array = np.random.default_rng(8).integers(0, 5, (70_000, 3))
    array[:, 1] = np.random.default_rng(9).integers(-(10**6), 10**6, 70_000)
    found = read(array)
    assert found.kinds == {0: "categorical", 1: "real", 2: "categorical"}
    for place in range(3):
        assert cells(found, place) == array[:, place].tolist()


@pytest.mark.parametrize(
    ("work", "unwanted"),
    [
        ("import softcount.table", ("numba", "pandas", "pyarrow", "scipy", "sklearn")),
        (
            "import numpy as np; from softcount.table import open_table; "
            "[task() for task in open_table(np.arange(400).reshape(100, 4) % 3).tasks()]",
            ("numba", "pandas", "scipy"),
        ),
        (
            "from softcount.table import open_table; "
            "[task() for task in open_table({'a': [1, 2] * 9, 'b': ['x', 'y'] * 9}).tasks()]",
            ("numba", "pandas", "pyarrow.dataset"),
        ),
        (
            "from softcount.table import open_table, code_labels; table = open_table(FILE, target='b'); "
            "[task() for task in table.tasks()]; table.settle(); table.missing; code_labels(['a', None])",
            ("numba", "pandas", "pyarrow.dataset", "scipy"),
        ),
    ],
)
def test_small_work_does_not_wake_large_libraries(work: str, unwanted: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n" + "1,x,0.5\n2,,NA\n01,y,2e5\n" * 9)
    work = work.replace("FILE", repr(str(tmp_path / "t.csv")))
    code = f"{work}; import sys; print([name for name in {unwanted!r} if name in sys.modules])"
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=paths)
    assert found.stdout.strip() == "[]"
