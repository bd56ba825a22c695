"""Naive Bayes counted inside databases, against the fit of the rows themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import softcount as sc
import softcount.estimators.fit_query as fit_query
import softcount.sources.source as source
from export.drawn_queries import LOOKED_AT, drawn_settings, drawn_table
from export.test_sql import HOSTILE, fill, quoted

CLOSE = 1e-12


@pytest.fixture(autouse=True)
def few_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LOOK_ROWS", LOOKED_AT)


def rows(n: int = 3_000) -> dict[str, list[Any]]:
    """A class a million deviations away, and a class and levels that the first rows do not have; holes, NaN."""
    rng = np.random.default_rng(0)
    groups = np.where(np.arange(n) < 300, rng.integers(0, 2, n), rng.integers(0, 3, n))
    cells: dict[str, list[Any]] = {
        "he'ight \"": (rng.normal(size=n) + np.array([0.0, 3.0, 1e6])[groups]).tolist(),
        "pay": np.exp(rng.normal(groups, 0.5)).tolist(),
        "visits": rng.poisson(3 + 2 * groups).tolist(),
        "colour": np.array(["red", "blue", "n'one", "rare"])[np.where(np.arange(n) < 2_000, groups, 3)].tolist(),
        "rooms": (groups + rng.integers(0, 3, n)).tolist(),
        "{rows}; --": rng.integers(0, 3, n).tolist(),
        "same": [1 if j < 1_000 else 2 for j in range(n)],
        "y": np.array(["a", "it's", "c"])[groups].tolist(),
    }
    for name in ("he'ight \"", "colour", "rooms"):
        for hole in rng.integers(0, n, 50):
            cells[name][hole] = None
    cells["pay"][5] = float("nan")
    return cells


KINDS = {"visits": "poisson", "pay": "lognormal"}


def same(found: Any, table: pa.Table) -> None:
    plain = sc.NaiveBayes(kinds=KINDS).fit(table, "y")
    alike(found, plain)
    asked = table.slice(0, 500).drop_columns("y")
    assert np.abs(found.predict_proba(asked) - plain.predict_proba(asked)).max() <= 1e-11
    assert found.fitted_.counts.rows == table.num_rows and found.fitted_.missing == plain.fitted_.missing


TYPES = {int: "bigint", float: "double precision", str: "text", bool: "boolean"}


def alike(found: Any, plain: Any, close: float = CLOSE) -> None:
    assert found.classes_.tolist() == plain.classes_.tolist() and found.levels_ == plain.levels_
    assert found.fitted_.families == plain.fitted_.families
    for key, own in plain.params_.items():
        for name, value in own.items():
            assert np.allclose(found.params_[key][name], value, rtol=close, atol=0.0), (key, name)
    assert np.allclose(found.class_prior_, plain.class_prior_, rtol=close, atol=0.0)
    assert list(found.fitted_.missing) == list(plain.fitted_.missing)
    assert np.allclose(*(list(one.fitted_.missing.values()) for one in (found, plain)), rtol=close, atol=2e-9)
    assert found.fitted_.counts.rows == pytest.approx(plain.fitted_.counts.rows, rel=close)


def fitted_plainly(table: pa.Table, settings: dict[str, Any], weight: str | None) -> Any:
    if weight is None:
        return sc.NaiveBayes(**settings).fit(table, "y")
    return sc.NaiveBayes(**settings).fit(table.drop_columns(weight), "y", sample_weight=np.array(table[weight]))


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14])
@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
def test_duckdb_counts_what_a_fit_of_the_same_rows_does(seed: int) -> None:
    table, settings, weight = drawn_table(seed), drawn_settings(seed), "w" if seed % 3 else None
    with duckdb.connect() as base:
        base.register("things", table)
        found = sc.NaiveBayes(**settings).fit_sql("SELECT * FROM things -- all", base, "y", weight=weight)
    alike(found, fitted_plainly(table, settings, weight))
    inside = found.notes_[0].endswith("rows were counted inside DuckDB.")
    assert inside != (settings["missing"] == ("0",) and 0 in table["y"].to_pylist())  # else these have no class


@pytest.mark.parametrize("seed", [1, 9])
@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
def test_postgres_counts_what_a_fit_of_the_same_rows_does(postgres: Any, seed: int) -> None:
    table, settings = drawn_table(seed), drawn_settings(seed)
    fill(postgres, table.to_pydict(), "things", TYPES, "%s")
    try:
        found = sc.NaiveBayes(**settings).fit_sql("SELECT * FROM things", postgres, "y", weight="w")
    finally:
        postgres.rollback()
    alike(found, fitted_plainly(table, settings, "w"))
    assert found.notes_[0].endswith("rows were counted inside Postgres.")


def test_duckdb_counts_what_a_fit_counts() -> None:
    table = pa.table(rows())
    with duckdb.connect() as base:
        base.register("things", table)
        found = sc.NaiveBayes(kinds=KINDS).fit_sql("SELECT * FROM things;", base, "y")
        same(found, table)
        assert found.notes_[0] == "3,000 rows were counted inside DuckDB."


def test_postgres_counts_what_a_fit_counts(postgres: Any) -> None:
    cells = rows()
    fill(postgres, cells, "things", TYPES, "%s")
    try:
        found = sc.NaiveBayes(kinds=KINDS).fit_sql("SELECT * FROM things", postgres, "y")
    finally:
        postgres.rollback()
    same(found, pa.table(cells))
    assert found.notes_[0] == "3,000 rows were counted inside Postgres."


def test_a_class_a_million_deviations_away_keeps_its_digits_by_exact_fractions() -> None:
    """Both ways: variances to 1e-12; means to the rounding of the anchor, which the class far away is at."""
    rng = np.random.default_rng(0)
    n = 3_000
    groups = np.where(np.arange(n) < 1_000, 0, rng.integers(0, 3, n))
    x = rng.normal(size=n) + np.array([1e6, 3.0, 0.0])[groups]
    table, settings = pa.table({"x": x, "y": groups}), {"kinds": {"x": "normal"}, "estimate": "ml"}
    with duckdb.connect() as own:
        own.register("things", table)
        inside = sc.NaiveBayes(**settings).fit_sql("SELECT * FROM things", own, "y")
    assert "inside" in inside.notes_[0]
    for model in (inside, sc.NaiveBayes(**settings).fit(table, "y")):
        found = model.params_["x"]
        for group in range(3):
            cells = [Fraction(cell) for cell in x[groups == group].tolist()]
            mean = sum(cells) / len(cells)
            variance = sum((cell - mean) ** 2 for cell in cells) / len(cells)
            assert abs(Fraction(found["variance"][group]) / variance - 1) <= CLOSE
            assert abs(Fraction(found["mean"][group]) - mean) <= np.spacing(1e6)


@pytest.fixture
def base() -> Iterator[Any]:
    with duckdb.connect() as own:
        own.register("things", pa.table({**rows(600), "ordinality": list(range(600))}))
        yield own


def test_sqlite_is_read_out_and_says_so() -> None:
    cells = rows(400)
    with sqlite3.connect(":memory:") as own:
        fill(own, cells, "things", {})
        found = sc.NaiveBayes(kinds=KINDS).fit_sql("SELECT * FROM things", own, "y")
    assert "rows were read out of the database: SQLite gives rows faster than it counts them." in found.notes_
    plain = sc.NaiveBayes(kinds=KINDS).fit(pa.table(cells), "y")
    assert np.allclose(found.params_["visits"]["rate"], plain.params_["visits"]["rate"], rtol=CLOSE)


@pytest.mark.parametrize(
    ("settings", "query", "why"),
    [
        ({"kinds": {"pay": "gamma"}}, "SELECT pay, y FROM things", "column 'pay' is gamma, whose counts are no sums"),
        ({"calibration": "temperature"}, "SELECT pay, y FROM things", "calibration takes the rows themselves"),
        (
            {},
            "SELECT CASE WHEN ordinality > 400 THEN 'ü' ELSE (visits % 3)::VARCHAR END AS n, y FROM things",
            "column 'n' turns out to be something else in later rows",
        ),
        ({"dependence": "tan"}, "SELECT rooms, colour, y FROM things", ""),
        ({"kinds": {"pay": "auto"}}, "SELECT pay, y FROM things", "rows are to choose the density of some column"),
        ({}, "SELECT pay, CASE WHEN rooms = 1 THEN NULL ELSE y END AS y FROM things", "some rows have no class"),
        ({}, "SELECT visits, y FROM things LIMIT 150", "there are no more than are looked at, 150"),
        (
            {},
            "SELECT CAST(pay AS VARCHAR) AS pay, y FROM things",
            "column 'pay' has numbers that are no numbers to the database",
        ),
        (
            {},
            "SELECT DATE '2024-01-01' + visits::INTEGER AS day, y FROM things",
            "column 'day' has numbers that are no numbers to the database",
        ),
        ({}, "SELECT visits, y FROM things WHERE random() < 0.7", "its rows differ from one query to the next"),
        (
            {},
            "SELECT rooms, CASE WHEN ordinality > 400 THEN 1.5 END AS late, y FROM things",
            "column 'late' has no values in the first rows, but later",
        ),
        (
            {},
            "SELECT visits - (CASE WHEN ordinality > 400 THEN 90 ELSE 0 END) AS n, y FROM things",
            "column 'n' holds numbers that a count column cannot",
        ),
        (
            {},
            "SELECT visits, y FROM things; -- twice ;",
            "it would not count them (Parser Error: syntax error at or near",
        ),
    ],
)
def test_what_cannot_be_counted_there_is_read_out_and_said(base: Any, settings: Any, query: str, why: str) -> None:
    found = sc.NaiveBayes(**settings).fit_sql(query, base, "y")
    assert not why or any(note.startswith(f"rows were read out of the database: {why}") for note in found.notes_)
    assert found.predict_proba(base.sql(query).to_arrow_table().drop_columns("y")).shape[1] == len(found.classes_)


@pytest.mark.parametrize("weight", [None, "rooms"])
def test_what_cannot_be_modelled_is_left_out_if_asked_whichever_way(base: Any, weight: str | None) -> None:
    query = "SELECT [visits] AS nested, coalesce(rooms, 1) AS rooms, NULLIF(pay, 2) // 3 + 0.5 AS level, y FROM things"
    for kinds, way in (({}, "inside"), ({"level": "histogram"}, "read out")):
        found = sc.NaiveBayes(kinds={"nested": "ignore", "level": "categorical", **kinds})
        said = found.fit_sql(query, base, "y", weight=weight).notes_
        assert any(way in note for note in said) and list(found.params_) == [
            key for key in ("rooms", "level") if key != weight
        ]


def test_two_columns_of_one_name_are_refused_whichever_way(base: Any) -> None:
    for way in (sc.read_sql, lambda query, base: sc.NaiveBayes().fit_sql(query, base, "y")):
        with pytest.raises(sc.DataError, match="columns 1 and 2 are both named 'visits'"):
            way("SELECT visits, visits, y FROM things", base)


def test_a_target_that_is_not_there_is_said(base: Any) -> None:
    with pytest.raises(sc.DataError, match="target names column 'z', which is not in the table"):
        sc.NaiveBayes().fit_sql("SELECT * FROM things", base, "z")
    with pytest.raises(sc.DataError, match=r"the database refused the query: .*syntax error"):
        sc.NaiveBayes().fit_sql("SELEC * FROM things", base, "y")
    assert quoted('a"b') == '"a""b"'


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ("CASE WHEN ordinality = 2 THEN -1 ELSE 1 END", "of row 3 is -1.0. Weights are finite and not negative"),
        ("CASE WHEN ordinality = 300 THEN 'inf'::DOUBLE ELSE 1 END", "row 301: inf is infinite"),
        ("CASE WHEN ordinality = 2 THEN NULL ELSE 1 END", "of row 3 is nan. Weights are finite"),
        ("0", "all weights are zero, so no row counts"),
    ],
)
def test_weights_that_are_none_are_refused_as_fit_does(base: Any, weight: str, said: str) -> None:
    with pytest.raises(sc.DataError, match=said):
        sc.NaiveBayes().fit_sql(f"SELECT pay, y, {weight} AS w FROM things", base, "y", weight="w")
    with pytest.raises(sc.DataError, match="weight names column 'v', which is not in the table"):
        sc.NaiveBayes().fit_sql("SELECT * FROM things", base, "y", weight="v")


def test_weights_that_are_read_out_are_those_that_are_counted(base: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a class and a level that only rows of weight zero have are not there."""
    query = "SELECT visits, colour, CASE WHEN ordinality % 3 = 0 THEN 0 ELSE ordinality % 5 END AS w, y FROM things"
    query = f"SELECT * REPLACE (CASE WHEN w = 0 THEN 'never' ELSE y END AS y) FROM ({query})"
    inside = sc.NaiveBayes(kinds={"visits": "poisson"}).fit_sql(query, base, "y", weight="w")
    monkeypatch.setattr(fit_query, "BY_ROWS", ("prior",))
    out = sc.NaiveBayes(kinds={"visits": "poisson"}).fit_sql(query, base, "y", weight="w")
    assert "inside" in inside.notes_[0] and "read out" in " ".join(out.notes_)
    assert "never" not in inside.classes_
    alike(inside, out)


# -- names and words are data


TARGET, WEIGHT = 'class"; DROP TABLE things; --', "w' OR 1=1 --"


@pytest.fixture(scope="module")
def hostile() -> dict[str, list[Any]]:
    """Hostile names of columns, levels and classes, and one that is very long."""
    rng = np.random.default_rng(1)
    n = 3 * LOOKED_AT
    groups = rng.integers(0, len(HOSTILE), n)
    words = [word for word in HOSTILE if word.strip() == word and word not in ("?", "null", "None")]
    cells: dict[str, list[Any]] = {
        name: [words[(g + rng.integers(0, 3)) % len(words)] for g in groups] if j % 2 else rng.normal(groups).tolist()
        for j, name in enumerate([*HOSTILE, "long" * 15])
    }
    classes = [words[g % len(words)] for g in groups]
    return {**cells, WEIGHT: rng.integers(0, 3, n).astype(float).tolist(), TARGET: classes}


@pytest.mark.parametrize("engine", ["DuckDB", "Postgres"])
def test_hostile_names_are_counted_and_inert(postgres: Any, hostile: Any, engine: str) -> None:
    settings = {"kinds": {name: "categorical" for name in HOSTILE[1::2]}}
    with duckdb.connect() as own:
        base = postgres if engine == "Postgres" else own
        own.register("given", pa.table(hostile))
        own.execute('CREATE TABLE "a\'b""; --" AS SELECT * FROM given')
        if engine == "Postgres":
            fill(postgres, hostile, "a'b\"; --", TYPES, "%s")
        query = 'SELECT * FROM "a\'b""; --"'
        found = sc.NaiveBayes(**settings).fit_sql(query, base, TARGET, weight=WEIGHT)
        rows = base.execute(f"SELECT count(*) FROM ({query}) AS kept").fetchone()
        postgres.rollback()
    assert rows == (3 * LOOKED_AT,) and f"rows were counted inside {engine}" in found.notes_[0]
    plain = pa.table({key: cells for key, cells in hostile.items() if key != WEIGHT})
    alike(found, sc.NaiveBayes(**settings).fit(plain, TARGET, sample_weight=np.array(hostile[WEIGHT])))
