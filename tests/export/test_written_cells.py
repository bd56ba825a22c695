"""Columns of dates, times, durations and numbers with a unit, in databases and as a graph, against the library."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import softcount as sc
from export.test_onnx import run as run_onnx
from export.test_sql import CLOSE, Cells, agrees, numbered, run_duckdb, run_sqlite
from softcount.export.exported import as_onnx, as_sql
from softcount.export.written_cells import fixed_width, regular
from written_forms import FORMS


def learned(cells: list[Any]) -> Any:
    return sc.NaiveBayes(kinds={"x": "normal"}).fit(pa.table({"x": cells}), ["a", "b"] * (len(cells) // 2))


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_cells_is_read(name: str) -> None:
    cells = [*FORMS[name][:-1], None]
    model = learned(cells)
    assert model.fitted_.schema["x"].written is not None
    agrees(run_duckdb(numbered({"x": cells}), model), model, {"x": cells})
    numbers = {"x": model._export_plan().columns[0].numbers([None if cell is None else str(cell) for cell in cells])}
    if name not in ("typed clock", "typed durations"):  # whose str() has no or more digits
        agrees(run_sqlite(numbered(numbers), model), model, {"x": cells})
        _, proba = run_onnx(model, numbers | {"x": cells})
        assert np.abs(proba - model.predict_proba(pa.table({"x": cells}))).max() <= CLOSE
    for check in (as_sql(model, "sqlite", "rows", ())[1], as_onnx(model)[1]):
        assert check.rows >= 900 and check.difference <= CLOSE and check.otherwise == 0


def test_sqlite_reads_cells_of_a_fixed_width_and_those_with_a_unit() -> None:
    for name in ("iso", "iso moment", "month first", "short years", "clock", "percent", "kilos"):
        model = learned(FORMS[name])
        agrees(run_sqlite(numbered({"x": FORMS[name]}), model), model, {"x": FORMS[name]})
        assert "cannot read" not in str(as_sql(model, "sqlite", "rows", ())[1])
    said = str(as_sql(learned(FORMS["named months"]), "sqlite", "rows", ())[1])
    assert "column 'x' is to hold 2024-01-31 or 2024-01-31 12:00:00, as SQLite cannot read" in said


@pytest.mark.parametrize("odd", ["2024-02-30", "2023-02-29", "2024-13-01", "31/01/2024", "2024-01-01 25:00:00", "soon"])
def test_what_is_no_date_has_no_class(odd: str) -> None:
    model = learned(FORMS["iso"])
    cells: Cells = {"row": [0, 1], "x": ["2024-01-31", odd]}
    assert run_sqlite(cells, model)[1] == (1, None, None, None)
    with pytest.raises(duckdb.ConversionException, match=odd):
        run_duckdb(cells, model)
    with pytest.raises(sc.DataError):
        model.predict(pa.table({"x": [odd]}))


def test_numbers_are_taken_as_numbers_whatever_text_means() -> None:
    """1.234 is 1,234 in a text that parts thousands by dots, and itself in a column of numbers."""
    model = learned(FORMS["euros"])
    numbers: Cells = {"x": [1.234, 1234.0, 1e-7, 0.5]}
    agrees(run_duckdb(numbered(numbers), model), model, numbers)
    texts: Cells = {"x": ["1.234 \u20ac", "1234,5 \u20ac"]}
    agrees(run_duckdb(numbered(texts), model), model, texts)
    for odd in ("1.23", "1.234", "1,2,3 \u20ac"):
        with pytest.raises(duckdb.ConversionException):
            run_duckdb(numbered({"x": [odd]}), model)


@pytest.mark.parametrize("odd", ["$5", "5", "5$5", "%5", "5%%", "--5%", "1.2.3%", "5 %"])
def test_sqlite_reads_a_unit_as_the_library_does_or_not_at_all(odd: str) -> None:
    model = learned(FORMS["percent"])
    found = run_sqlite({"row": [0], "x": [odd]}, model)
    try:
        said = model.predict_proba(pa.table({"x": [odd]}))[0]
    except sc.DataError:
        assert found[0][1] is None or odd == "5"
    else:
        assert np.abs(np.array(found[0][2:]) - said).max() <= CLOSE


def test_patterns_have_as_few_groups_as_databases_number() -> None:
    for pattern in ("%Y-%m-%dT%H:%M:%S%z", "%D days %H:%M:%S", "%m/%d/%Y %H:%M:%S %p"):
        assert max(regular(pattern)[1].values()) <= 9
    assert fixed_width("%Y-%m-%d %H:%M:%S") and not fixed_width("%d %b %Y") and not fixed_width("%d/%m/%Y", False)


def test_inputs_of_a_graph_say_what_goes_in() -> None:
    graph = learned(FORMS["typed days"]).to_onnx()
    assert graph.graph.input[0].doc_string == "seconds since 1970, NaN where missing"
    assert "column 'x' goes in as numbers in $" in str(as_onnx(learned(FORMS["dollars"]))[1])
