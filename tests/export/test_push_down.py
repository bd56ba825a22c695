"""Naive Bayes counted inside databases, against the fit of the rows themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import softcount as sc
import softcount.estimators.counting_inside as counting
from export.test_sql import fill, quoted
from export.test_sql import postgres as postgres

CLOSE = 1e-12


@pytest.fixture(autouse=True)
def few_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "FIRST_ROWS", 200)


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


NUMBERS = "some numbers mean missing"
KINDS = {"visits": "poisson", "pay": "lognormal"}


def same(found: Any, table: pa.Table) -> None:
    plain = sc.NaiveBayes(kinds=KINDS).fit(table, "y")
    assert found.classes_.tolist() == plain.classes_.tolist()
    assert found.fitted_.families == plain.fitted_.families
    for key, own in plain.params_.items():
        for name, value in own.items():
            assert np.allclose(found.params_[key][name], value, rtol=CLOSE, atol=0.0), (key, name)
    asked = table.slice(0, 500).drop_columns("y")
    assert np.abs(found.predict_proba(asked) - plain.predict_proba(asked)).max() <= 1e-11
    assert found.fitted_.counts.rows == table.num_rows and found.fitted_.missing == plain.fitted_.missing


def test_duckdb_counts_what_a_fit_counts() -> None:
    table = pa.table(rows())
    with duckdb.connect() as base:
        base.register("things", table)
        found = sc.NaiveBayes(kinds=KINDS).fit_sql("SELECT * FROM things;", base, "y")
        same(found, table)
        assert found.notes_[0] == "3,000 rows were counted inside DuckDB."


def test_postgres_counts_what_a_fit_counts(postgres: Any) -> None:
    cells = rows()
    fill(postgres, cells, "things", {int: "bigint", float: "double precision", str: "text"}, "%s")
    try:
        found = sc.NaiveBayes(kinds=KINDS).fit_sql("SELECT * FROM things", postgres, "y")
    finally:
        postgres.rollback()
    same(found, pa.table(cells))
    assert found.notes_[0] == "3,000 rows were counted inside Postgres."


@pytest.fixture
def base() -> Iterator[Any]:
    with duckdb.connect() as own:
        own.register("things", pa.table(rows(600)))
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
        ({}, "SELECT pay, CASE WHEN rooms = 1 THEN NULL ELSE y END AS y FROM things", "some rows have no class"),
        (
            {"kinds": {"visits": "poisson"}, "missing": ("-9",)},
            "SELECT visits, y FROM things",
            "some numbers mean missing",
        ),
    ],
)
def test_what_cannot_be_counted_there_is_read_out_and_said(base: Any, settings: Any, query: str, why: str) -> None:
    found = sc.NaiveBayes(**settings).fit_sql(query, base, "y")
    assert f"rows were read out of the database: {why}." in found.notes_
    assert found.predict_proba(base.sql(query).to_arrow_table().drop_columns("y")).shape[1] == len(found.classes_)


def test_a_target_that_is_not_there_is_said(base: Any) -> None:
    with pytest.raises(sc.DataError, match="target names column 'z'"):
        sc.NaiveBayes().fit_sql("SELECT * FROM things", base, "z")
    with pytest.raises(sc.DataError, match=r"the database refused the query: .*syntax error"):
        sc.NaiveBayes().fit_sql("SELEC * FROM things", base, "y")
    assert quoted('a"b') == '"a""b"'
