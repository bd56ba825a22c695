"""Exports of models with dates, times, durations and units: their columns go in as numbers, or are refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing, nullcontext
from datetime import date
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest

import softcount as sc
from export.test_onnx import run as run_onnx
from export.test_sql import CLOSE, Cells, agrees, fill, numbered, run_duckdb, run_postgres, run_sqlite
from softcount.export.onnx_graph import as_onnx
from softcount.export.sql_query import as_sql
from written_forms import FORMS


def learned(cells: list[Any]) -> Any:
    return sc.NaiveBayes(kinds={"x": "normal"}).fit(pa.table({"x": cells}), ["a", "b"] * (len(cells) // 2))


@pytest.mark.parametrize("name", FORMS)
def test_numbers_in_place_of_cells_are_scored_as_the_cells(name: str) -> None:
    cells = [*FORMS[name][:-1], None]
    model = learned(cells)
    column = model._export_plan().columns[0]
    if name not in ("typed clock", "typed durations"):  # str() writes other digits than the form reads
        numbers = {"x": column.numbers([None if cell is None else str(cell) for cell in cells])}
        agrees(run_duckdb(numbered(numbers), model), model, {"x": cells})
        agrees(run_sqlite(numbered(numbers), model), model, {"x": cells})
        _, proba = run_onnx(model, numbers | {"x": cells})
        assert np.abs(proba - model.predict_proba(pa.table({"x": cells}))).max() <= CLOSE
    query, check = as_sql(model, "sqlite", "rows", ())
    for found in (check, as_onnx(model)[1]):
        assert found.rows == 1_000 and found.difference <= CLOSE and found.otherwise == 0
    line = f"column 'x' is read as {column.expected} ("
    assert query.splitlines()[1].startswith(f"-- {line}") and line in str(check)


VIEWS = {
    ("duckdb", "day"): "epoch(strptime(day, '%d %b %Y'))",
    ("duckdb", "price"): "CAST(replace(replace(price, '$', ''), ',', '') AS DOUBLE)",
    ("postgres", "day"): "extract(epoch FROM to_date(day, 'DD Mon YYYY'))",
    ("postgres", "price"): "CAST(replace(replace(price, '$', ''), ',', '') AS double precision)",
    ("sqlite", "price"): "CAST(replace(replace(price, '$', ''), ',', '') AS REAL)",
    ("sqlite", "day"): """unixepoch(substr(day, 8) || '-' || printf('%02d',
        (instr('JanFebMarAprMayJunJulAugSepOctNovDec', substr(day, 4, 3)) + 2) / 3) || '-' || substr(day, 1, 2))""",
}


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_a_view_with_casts_is_scored_as_the_model_predicts(postgres: Any, dialect: str) -> None:
    cells: Cells = {"day": FORMS["named months"], "price": [*FORMS["dollars"][:-1], None]}
    model = sc.NaiveBayes(kinds=dict.fromkeys(cells, "normal")).fit(pa.table(cells), ["a", "b"] * 20)
    text = model.to_sql(dialect, "numbers", keep=["row"])
    assert [line.partition(":")[0] for line in text.splitlines()[1:3]] == [
        "-- column 'day' is read as seconds since 1970 ('31 Jan 2024' is 1706659200)",
        "-- column 'price' is read as numbers in $ ('$4,500.00' is 4500)",
    ]
    casts = ", ".join(f"{VIEWS[dialect, name]} AS {name}" for name in cells)
    own = {"duckdb": duckdb.connect, "sqlite": sqlite3.connect}
    with closing(own[dialect](":memory:")) if dialect in own else nullcontext(postgres) as base:
        types = {int: "bigint", str: "text"}
        fill(base, numbered(cells), "written", types, "%s" if dialect == "postgres" else "?")
        try:
            base.execute(f"CREATE VIEW numbers AS SELECT row, {casts} FROM written")
            agrees(sorted(base.execute(text).fetchall()), model, cells)
        finally:
            if dialect == "postgres":
                base.rollback()


@pytest.mark.parametrize(
    ("name", "cell"),
    [("iso", "2024-01-31"), ("typed days", date(2024, 1, 31)), ("euros", "1.234"), ("percent", "12%"), ("clock", "12")],
)
def test_a_cell_that_is_not_cast_is_refused(postgres: Any, name: str, cell: Any) -> None:
    """Also text that looks like a number: "1.234" may stand for 1234. SQLite leaves the row without a class."""
    model = learned(FORMS[name])
    cells: Cells = {"row": [0, 1], "x": [cell, None]}
    with pytest.raises(duckdb.BinderException, match="DOUBLE"):
        run_duckdb(cells, model)
    with pytest.raises(psycopg.errors.UndefinedFunction, match="operator does not exist"):
        run_postgres(postgres, cells, model, types={str: "text", date: "date", int: "bigint"})
    found = run_sqlite({"row": [0, 1], "x": [str(cell), None]}, model)
    assert found[0] == (0, None, None, None) and found[1][1] is not None


def test_inputs_of_a_graph_say_what_goes_in() -> None:
    graph = learned(FORMS["typed days"]).to_onnx()
    assert graph.graph.input[0].doc_string == "seconds since 1970, NaN where missing"
    assert "column 'x' goes in as numbers in $" in str(as_onnx(learned(FORMS["dollars"]))[1])
