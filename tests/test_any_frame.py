"""Frames of every type and content: a model of them, or an error of ours; never one from a library beneath."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import softcount as sc
from softcount.errors import SoftcountError
from softcount.report.answers import find_figures

TIMES = 100
"""Frames of each container; there are ten."""
DAY = dt.datetime(2024, 2, 28, 12)

Cells = Callable[[int, random.Random], Any]
CELLS: dict[str, Cells] = {
    "floats": lambda n, r: [r.gauss(0, 1) for _ in range(n)],
    "holes": lambda n, r: [r.gauss(0, 1) if r.random() < 0.7 else None for _ in range(n)],
    "whole": lambda n, r: [r.randrange(20) for _ in range(n)],
    "words": lambda n, r: [r.choice(["red", "green", "blue"]) for _ in range(n)],
    "words and holes": lambda n, r: [r.choice(["red", "green", None]) for _ in range(n)],
    "truths": lambda n, r: [r.random() < 0.5 for _ in range(n)],
    "truths and holes": lambda n, r: [r.choice([True, False, None]) for _ in range(n)],
    "times": lambda n, r: [DAY + dt.timedelta(hours=r.randrange(99)) for _ in range(n)],
    "times and holes": lambda n, r: [r.choice([DAY, DAY + dt.timedelta(days=1), None]) for _ in range(n)],
    "days": lambda n, r: [(DAY + dt.timedelta(days=r.randrange(9))).date() for _ in range(n)],
    "clock": lambda n, r: [dt.time(r.randrange(24)) for _ in range(n)],
    "spans": lambda n, r: [dt.timedelta(hours=r.randrange(9)) for _ in range(n)],
    "decimals": lambda n, r: [Decimal(r.randrange(999)) / 100 for _ in range(n)],
    "decimals and holes": lambda n, r: [r.choice([Decimal("1.5"), Decimal("2.25"), None]) for _ in range(n)],
    "nothing": lambda n, r: [None] * n,
    "not numbers": lambda n, r: [float("nan")] * n,
    "one value": lambda n, r: [7] * n,
    "infinite": lambda n, r: [r.choice([1.0, float("inf"), -2.0]) for _ in range(n)],
    "huge": lambda n, r: [r.gauss(0, 1) * 1e300 for _ in range(n)],
    "tiny": lambda n, r: [r.gauss(0, 1) * 1e-290 for _ in range(n)],
    "long": lambda n, r: [r.randrange(10**18) for _ in range(n)],
    "numbers and words": lambda n, r: [r.choice([1, 2.5, "x", None]) for _ in range(n)],
    "bytes": lambda n, r: [r.choice([b"a", b"b\xff"]) for _ in range(n)],
    "lists": lambda n, r: [[1, 2]] * n,
    "objects": lambda n, r: [object() for _ in range(n)],
    "complex": lambda n, r: [complex(r.random(), 1) for _ in range(n)],
    "empty text": lambda n, r: [r.choice(["", " ", "NA"]) for _ in range(n)],
}
PANDAS_TYPES = [
    "Int64", "Float64", "boolean", "string", "category", "float32", "int8", "datetime64[ns]", "object", "UInt8",
    "datetime64[ns, UTC]", "timedelta64[ns]", "Float32", "str", "int64[pyarrow]", "string[pyarrow]",
]  # fmt: skip
NAMES: list[Any] = [
    "a",
    "b",
    "(prior)",
    "",
    "a b",
    1,
    0,
    2.5,
    True,
    False,
    None,
    ("a", "b"),
    DAY,
    "0",
    "é",
    np.int64(3),
]


def columns(chance: random.Random, rows: int) -> dict[Any, Any]:
    names = chance.sample(NAMES[:5] if chance.random() < 0.5 else NAMES, chance.randrange(1, 4))
    return {name: CELLS[chance.choice(list(CELLS))](rows, chance) for name in names}


def typed(column: Any, chance: random.Random) -> Any:
    """A pandas column of some type that can hold it."""
    with contextlib.suppress(Exception):
        return pd.Series(column, dtype=chance.choice(PANDAS_TYPES))
    return pd.Series(column, dtype=object) if chance.random() < 0.3 else pd.Series(column)


def pandas_frame(made: dict[Any, Any], chance: random.Random) -> Any:
    frame = pd.DataFrame({place: typed(column, chance) for place, column in enumerate(made.values())})
    frame.columns = pd.Index(list(made), dtype=object) if chance.random() < 0.9 else frame.columns
    odd = chance.randrange(8)
    if odd == 0:
        frame.columns = pd.MultiIndex.from_tuples([("top", str(place)) for place in range(frame.shape[1])])
    elif odd == 1 and len(frame):
        frame.index = pd.MultiIndex.from_tuples([("r", place) for place in range(len(frame))], names=["a", "b"])
    elif odd == 2:
        frame.index = pd.Index([7] * len(frame), name="a")
    elif odd == 3:
        frame = pd.concat([frame, frame], axis=1)
    return frame


def rows_of(made: dict[Any, Any]) -> list[list[Any]]:
    return [list(row) for row in zip(*made.values(), strict=True)]


def object_array(made: dict[Any, Any]) -> np.ndarray:
    array = np.empty((len(next(iter(made.values()))), len(made)), dtype=object)
    for place, column in enumerate(made.values()):
        for row, cell in enumerate(column):
            array[row, place] = cell
    return array


CONTAINERS: dict[str, Callable[[dict[Any, Any], random.Random], Any]] = {
    "pandas": pandas_frame,
    "pandas again": pandas_frame,
    "pandas of Arrow": lambda made, r: pd.DataFrame(made).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda made, r: pl.DataFrame({str(name): column for name, column in made.items()}, strict=False),
    "polars of objects": lambda made, r: pl.DataFrame([pl.Series(str(n), c, strict=False) for n, c in made.items()]),
    "Arrow": lambda made, r: pa.table({str(name): pa.array(column) for name, column in made.items()}),
    "mapping": lambda made, r: made,
    "mapping of arrays": lambda made, r: {name: np.array(column) for name, column in made.items()},
    "array": lambda made, r: object_array(made) if r.random() < 0.5 else np.array(rows_of(made)),
    "lists": lambda made, r: rows_of(made) if r.random() < 0.8 else next(iter(made.values())),
}


def frames(container: str) -> Any:
    """Frames of one container, as many as wanted; what the container itself cannot hold is passed over."""
    chance = random.Random(container)
    for _ in range(TIMES):
        rows = chance.choice([0, 1, 6, 9])
        made = columns(chance, rows)
        try:
            yield CONTAINERS[container](made, chance), rows, chance
        except Exception:
            continue


def told(answer: Any) -> object:
    """An answer in figures."""
    return answer if isinstance(answer, dict) else find_figures(answer)


def asked(model: Any, X: Any, chance: random.Random) -> None:
    """Everything a fitted model can be asked about the rows it was fitted on."""
    questions = [
        lambda: model.predict(X), lambda: model.impute(X), lambda: model.explain(X), lambda: model.sample(3),
        lambda: [told(model.query(key)) for key in model.params_], lambda: model.augment(X),
        lambda: model.score_samples(X),
    ]  # fmt: skip
    for question in chance.sample(questions, 3):
        with contextlib.suppress(SoftcountError):
            question()


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.filterwarnings("ignore")
def test_any_frame_is_modelled_or_refused(container: str) -> None:
    fitted = 0
    for turn, (X, rows, chance) in enumerate(frames(container)):
        labels = [chance.choice(["x", "y"]) for _ in range(rows)]
        try:
            with contextlib.suppress(SoftcountError):
                model = sc.NaiveBayes().fit(X, labels)
                fitted += 1
                asked(model, X, chance)
            with contextlib.suppress(SoftcountError):
                sc.KMeans(2, n_init=1, max_iter=3, random_state=0).fit(X).predict(X)
            if turn % 2:
                with contextlib.suppress(SoftcountError):
                    asked(sc.Mixture(2, n_init=1, max_iter=3, random_state=0).fit(X), X, chance)
        except Exception as error:
            raise AssertionError(f"frame {turn} of {container!r}") from error
    assert fitted > TIMES // 10


HOLES = [
    [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)],
    [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
    [Decimal("1.5"), Decimal("2.5")],
    [True, False],
    ["red", "green"],
    [3, 8],
]
MAKERS: dict[str, Callable[[dict[Any, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas, category": lambda made: pd.DataFrame(made).astype({name: "category" for name in list(made)[:1]}),
    "pandas of Arrow": lambda made: pd.DataFrame(made).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda made: pl.DataFrame(made),
    "Arrow": pa.table,
    "mapping": dict,
}


def cells_of(frame: Any, place: int) -> list[Any]:
    if isinstance(frame, dict):
        return list(frame.values())[place]
    if hasattr(frame, "iloc"):
        return frame.iloc[:, place].tolist()
    return frame.columns[place].to_pylist() if isinstance(frame, pa.Table) else frame[:, place].to_list()


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("pair", HOLES, ids=lambda pair: type(pair[0]).__name__)
@pytest.mark.filterwarnings("ignore")
def test_a_hole_is_filled_with_what_the_column_holds(pair: list[Any], maker: str) -> None:
    """The number beside it says which of the two values is missing."""
    rows = MAKERS[maker]({"what": [*pair * 10, pair[1], None], "x": [0.0, 5.0] * 10 + [5.1, 0.1]})
    kinds = {"what": "categorical", "x": "normal"}
    full = sc.Mixture(2, kinds=kinds, n_init=3, random_state=0).fit(rows).impute(rows)
    assert type(full) is type(rows)
    found = cells_of(full, 0)
    assert found[:-1] == [*pair * 10, pair[1]] and found[-1] == pair[0]


@pytest.mark.parametrize(
    "names", [pd.MultiIndex.from_tuples([("top", 1), ("top", 2)]), pd.Index([True, False]), pd.Index([2.5, None])]
)
@pytest.mark.filterwarnings("ignore")
def test_a_frame_with_odd_names_keeps_them(names: pd.Index) -> None:
    rows = pd.DataFrame({"a": [0.0, 5.0, 0.2, 5.2, None], "b": [1.0, 9.0, 1.1, 9.1, 1.2]})
    rows.columns = names
    full = sc.NaiveBayes().fit(rows, list("uvuvu")).impute(rows)
    assert full.columns.equals(names) and full.shape == rows.shape
    assert full.iloc[4, 0] < 2.0 and full.iloc[:4].equals(rows.iloc[:4])


def test_a_mapping_with_a_tuple_for_a_name_is_no_block() -> None:
    rows = {("a", "b"): [0.5, 5.0, 0.2, 5.2], True: ["x", "y", "x", "y"]}
    model = sc.NaiveBayes().fit(rows, list("uvuv"))
    assert list(model.params_) == ["('a', 'b')", "True"]
    assert list(model.impute(rows)) == list(rows)
    assert model.predict(rows).tolist() == list("uvuv")


@pytest.mark.parametrize(
    "cells", [[DAY] * 4, [dt.date(2024, 1, 1)] * 4, [pd.NA, 1, 2, 3], [object()] * 4, [1j, 2, 3, 4]]
)
def test_k_means_names_the_column_that_holds_no_numbers(cells: list[Any]) -> None:
    with pytest.raises(SoftcountError, match="when"):
        sc.KMeans(2, random_state=0).fit(pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "when": cells}))


def test_quantiles_of_numbers_that_are_hardly_any_are_told_or_refused() -> None:
    rng = np.random.default_rng(0)
    for size in (1e300, 1e-300):
        rows = {"x": rng.normal(size=30) * size, "y": rng.normal(size=30)}
        model = sc.Mixture(1, random_state=0).fit(rows)
        answer = model.query("x")
        assert abs(answer.mean) < size
        try:
            assert abs(answer.quantile(0.5)) < size
        except SoftcountError as error:
            assert "power of ten" in str(error)
