"""Rows that come once: Arrow streams, DuckDB's relations, query results; and Arrow files."""

from __future__ import annotations

import datetime
import decimal
import resource
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import feather
from tests.table.reading import cells, read

import softcount as sc
from softcount.cli import main
from softcount.errors import DataError
from softcount.sources.arrow_files import stream_source
from softcount.sources.databases import query_source

DRAWN = np.random.default_rng(7)
COUNT = 9_000
WHOLE = pa.table(
    {
        "x": pa.array(DRAWN.normal(size=COUNT), mask=DRAWN.random(COUNT) < 0.1),
        "town": DRAWN.choice(["Ulm", "Bonn", "Köln"], COUNT),
        "y": DRAWN.choice(["no", "yes"], COUNT),
    }
)


class OnlyAStream:
    """What speaks the protocol of Arrow streams and nothing else."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return WHOLE.__arrow_c_stream__(requested_schema)


def streams(folder: Path) -> dict[str, Any]:
    feather.write_feather(WHOLE, folder / "t.feather", chunksize=77)
    return {
        "reader": pa.RecordBatchReader.from_batches(WHOLE.schema, WHOLE.to_batches(max_chunksize=101)),
        "protocol": OnlyAStream(),
        "file": folder / "t.feather",
    }


@pytest.mark.parametrize("name", ["reader", "protocol", "file"])
def test_a_stream_is_the_table_it_is_made_of(tmp_path: Path, name: str) -> None:
    whole = sc.NaiveBayes().fit(WHOLE, "y")
    table = sc.read(streams(tmp_path)[name])
    for _ in range(2):  # as often as asked
        model = sc.NaiveBayes().fit(table, "y")
        np.testing.assert_array_equal(model.params_["x"]["mean"], whole.params_["x"]["mean"])
        np.testing.assert_array_equal(model.params_["town"]["probability"], whole.params_["town"]["probability"])


def test_a_relation_of_duckdb_is_read_batch_by_batch() -> None:
    duckdb = pytest.importorskip("duckdb")
    base = duckdb.connect()
    base.register("whole", WHOLE)
    found = read(base.sql("SELECT x, town, DATE '2024-02-29' AS day, 1.50::DECIMAL(9, 2) AS price FROM whole"))
    assert cells(found, "x") == WHOLE.column("x").to_pylist()
    assert cells(found, "town") == WHOLE.column("town").to_pylist()


def test_the_temporary_file_goes_with_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = stream_source(OnlyAStream())
    assert len(list(tmp_path.iterdir())) == 1
    del source
    assert list(tmp_path.iterdir()) == []


def test_an_empty_stream_is_refused() -> None:
    with pytest.raises(DataError, match="the stream has no rows"):
        sc.read(pa.RecordBatchReader.from_batches(WHOLE.schema, []))


@pytest.mark.parametrize("kept", [10, 1_000, 100_000])
def test_a_cut_off_arrow_file_is_refused(tmp_path: Path, kept: int) -> None:
    feather.write_feather(WHOLE, tmp_path / "t.feather")
    whole = (tmp_path / "t.feather").read_bytes()
    (tmp_path / "cut.feather").write_bytes(whole[:kept])
    with pytest.raises(DataError, match=r"cut.feather is a damaged or cut-off Arrow file"):
        sc.NaiveBayes().fit(tmp_path / "cut.feather", "y")


# -- queries


class Odd:
    """A value of a type that nobody knows."""

    def __str__(self) -> str:
        return "odd"


class Answer:
    """A connection of the DB-API whose every query gives the same rows, few at a time."""

    def __init__(self, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.rows = rows
        self.description = [(name,) for name in names]

    def cursor(self) -> Answer:
        return self

    def execute(self, query: str) -> None:
        self.left = list(self.rows)

    def fetchmany(self, count: int) -> list[tuple[Any, ...]]:
        taken, self.left = self.left[:2], self.left[2:]
        return taken

    def close(self) -> None:
        """Nothing is open."""


def test_cells_of_a_query_are_what_they_are_in_the_database() -> None:
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30)
    names = ["price", "paid", "day", "moment", "count", "late", "mixed", "odd", "none"]
    rows = [
        (decimal.Decimal("1.50"), True, day, moment, 1, None, 1, Odd(), None),
        (None, None, None, None, None, None, None, None, None),
        (decimal.Decimal("1000000.25"), False, day, moment, 2, 0.5, "b", Odd(), None),
        (decimal.Decimal("2"), True, day, moment, 2**40, 3, "c", Odd(), None),
    ]
    source = query_source("SELECT", Answer(names, rows))
    found = {key: column.to_pylist() for key, column in source.head(names).items()}
    assert found == {
        "price": [1.5, None, 1000000.25, 2.0],
        "paid": [True, None, False, True],
        "day": [day, None, day, day],
        "moment": [moment, None, moment, moment],
        "count": [1, None, 2, 2**40],
        "late": [None, None, 0.5, 3.0],
        "mixed": ["1", None, "b", "c"],
        "odd": ["odd", None, "odd", "odd"],
        "none": [None] * 4,
    }


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.db"
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE visits (x REAL, town TEXT, y TEXT)")
    columns = [WHOLE.column(key).to_pylist() for key in ("x", "town", "y")]
    base.executemany("INSERT INTO visits VALUES (?, ?, ?)", zip(*columns, strict=True))
    base.commit()
    base.close()
    return path


def test_a_query_gives_the_model_of_its_rows(visits: Path) -> None:
    whole = sc.NaiveBayes().fit(WHOLE, "y")
    for connection in (str(visits), sqlite3.connect(visits)):
        model = sc.NaiveBayes().fit(sc.read_sql("SELECT * FROM visits", connection), "y")
        np.testing.assert_array_equal(model.params_["x"]["mean"], whole.params_["x"]["mean"])


def test_rows_of_adbc_come_as_arrow(visits: Path) -> None:
    adbc = pytest.importorskip("adbc_driver_sqlite.dbapi")
    with adbc.connect(str(visits)) as connection:
        table = sc.read_sql("SELECT x, town FROM visits WHERE y = 'no'", connection)
    assert table.n_rows == sum(cell == "no" for cell in WHOLE.column("y").to_pylist())


def test_a_file_of_duckdb_is_opened_by_its_path(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as base:
        base.register("whole", WHOLE)
        base.execute("CREATE TABLE kept AS SELECT * FROM whole")
    found = read(sc.read_sql("SELECT * FROM kept", tmp_path / "t.duckdb"))
    assert cells(found, "x") == WHOLE.column("x").to_pylist()


def test_what_is_written_after_a_query_does_not_change_its_rows(visits: Path) -> None:
    connection = sqlite3.connect(visits)
    table = sc.read_sql("SELECT * FROM visits", connection)
    first = sc.NaiveBayes().fit(table, "y")
    connection.execute("DELETE FROM visits WHERE y = 'no'")
    np.testing.assert_array_equal(sc.NaiveBayes().fit(table, "y").class_prior_, first.class_prior_)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT absent FROM visits", "the database refused the query: no such column: absent"),
        ("SELECT * FROM visits WHERE 0", "the query has no rows"),
        (" ", "the query is empty"),
        ("SELECT x, x FROM visits", "both named 'x'"),
        ("DROP TABLE visits", "readonly database"),
    ],
)
def test_a_bad_query_is_one_line_in_the_shell(visits: Path, query: str, said: str) -> None:
    found = CliRunner().invoke(main, ["schema", "--sql", query, str(visits)])
    assert found.exit_code == 3
    assert said in found.stderr
    assert found.stderr.count("\n") == 1


def test_a_query_is_fitted_and_predicted_from_the_shell(visits: Path, tmp_path: Path) -> None:
    query, model = "SELECT * FROM visits LIMIT 500", str(tmp_path / "m.sc")
    fit = CliRunner().invoke(
        main, ["fit", "--sql", query, str(visits), "--target", "y", "--model", "naive-bayes", "-o", model]
    )
    assert fit.exit_code == 0, fit.output
    told = CliRunner().invoke(main, ["predict", model, "--sql", query, str(visits)])
    assert told.exit_code == 0, told.output
    assert len(told.stdout.splitlines()) == 501


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"t.csv is not a known database"):
        sc.read_sql("SELECT 1", tmp_path / "t.csv")
    with pytest.raises(DataError, match="a dict is not a connection"):
        sc.read_sql("SELECT 1", {})


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_a_full_disk_is_one_line_with_its_exit_code(visits: Path) -> None:
    least = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # noqa: E731
    words = ["schema", "--sql", "SELECT * FROM visits", str(visits)]
    found = subprocess.run(
        [sys.executable, "-m", "softcount.cli", *words], preexec_fn=least, capture_output=True, text=True, check=False
    )
    assert found.returncode == 5
    assert found.stderr == f"error: {tempfile.gettempdir()}: file too large\n"
    assert found.stdout == ""
