"""Connections of several drivers, as their users have them: rows by name, transactions, errors in the middle."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest
from psycopg.rows import dict_row

import softcount as sc
import softcount.sources.source as source

SERIES = "SELECT i / 2.0 AS x, i % 5 = 0 AS late, i % 2 AS y FROM generate_series(1, 500) AS t(i)"


@pytest.fixture(autouse=True)
def few_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LOOK_ROWS", 200)


@pytest.mark.parametrize("how", [{"row_factory": dict_row}, {"autocommit": True}])
def test_postgres_is_asked_however_its_connection_is_set_up(postgres: Any, how: dict[str, Any]) -> None:
    info = postgres.info
    with psycopg.connect(host=info.host, user=info.user, dbname=info.dbname, **how) as own:
        model = sc.NaiveBayes().fit(sc.read_sql(SERIES, own), "y")
    np.testing.assert_allclose(model.params_["x"]["mean"], [125.5, 125.0], rtol=1e-12)


def test_a_query_that_is_refused_leaves_a_transaction_as_it_was(postgres: Any) -> None:
    postgres.execute("CREATE TABLE unfinished (a int)")
    try:
        for query in ("SELECT nothing", "SELECT 1 / (i - 400) AS q, i % 2 AS y FROM generate_series(1, 500) AS t(i)"):
            with pytest.raises(sc.DataError, match="the database refused the query"):
                sc.read_sql(query, postgres)
        assert postgres.execute("SELECT count(*) FROM unfinished").fetchone() == (0,)
    finally:
        postgres.rollback()


class Reader:
    """Arrow batches, and then what ADBC says of a query that fails on the way."""

    def __init__(self, batches: list[pa.RecordBatch], fails: OSError | None = None) -> None:
        self.batches, self.fails, self.schema = batches, fails, batches[0].schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self.batches
        if self.fails:
            raise self.fails


class Adbc:
    """A connection of ADBC that answers with a reader, whatever it is asked."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def cursor(self) -> Adbc:
        return self

    def execute(self, query: str) -> None:
        """There is one answer."""

    def fetch_record_batch(self) -> Reader:
        return self.reader

    def close(self) -> None:
        """Nothing is open."""


def test_a_query_that_fails_on_the_way_is_one_line() -> None:
    half = pa.record_batch({"x": [1.0, 2.0]})
    with pytest.raises(sc.DataError, match=r"^the database refused the query: \[libpq\] ERROR: division by zero\.$"):
        sc.read_sql("SELECT", Adbc(Reader([half], OSError("[libpq] ERROR:  division\n by zero\n"))))
    with pytest.raises(OSError, match="No space left"):
        sc.read_sql("SELECT", Adbc(Reader([half], OSError(errno.ENOSPC, "No space left on device"))))


def test_what_arrow_only_has_a_name_for_is_read_as_what_it_is() -> None:
    numeric = pa.opaque(pa.string(), "numeric", "PostgreSQL")
    uuids = pa.array([b"0" * 16, None], pa.binary(16))
    columns = {
        "price": pa.ExtensionArray.from_storage(numeric, pa.array(["1.50", None])),
        "key": pa.ExtensionArray.from_storage(pa.uuid(), uuids),
        "span": pa.array([(0, 1, 5_000), None], pa.month_day_nano_interval()),
    }
    table = sc.read_sql("SELECT", Adbc(Reader([pa.record_batch(columns)])))
    found = table.source.head(list(columns))
    assert found["price"].to_pylist() == [1.5, None]
    assert found["key"].to_pylist() == ["30303030-3030-3030-3030-303030303030", None]
    assert found["span"].cast(pa.int64()).to_pylist() == [86_400_000_005, None]
    with duckdb.connect() as base, pytest.raises(sc.DataError, match="column 'span' holds nested or binary values"):
        sc.read_sql("SELECT i AS x, INTERVAL (i) MONTH AS span FROM range(30) t(i)", base)


class LateCursor:
    """A cursor of psycopg2 with a name: it knows its columns once it has rows, and cannot be closed if it failed."""

    description: Any = None

    def __init__(self, failing: bool) -> None:
        self.failing, self.left = failing, [(1.5, "a"), (2.5, "b")]

    def execute(self, query: str) -> None:
        if self.failing:
            raise duckdb.Error("no such table")

    def fetchmany(self, count: int) -> list[tuple[Any, ...]]:
        self.description = [("x",), ("y",)]
        taken, self.left = self.left, []
        return taken

    def close(self) -> None:
        if self.failing:
            raise duckdb.Error("no such cursor")


class Psycopg2:
    """A connection of psycopg2, by the name of its home."""

    autocommit = True

    def __init__(self, failing: bool = False) -> None:
        self.failing = failing

    def cursor(self, name: str = "", **how: Any) -> LateCursor:
        return LateCursor(self.failing)


def test_cursors_of_psycopg2_are_read_and_their_errors_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Psycopg2, "__module__", "psycopg2.extensions")
    monkeypatch.setattr("softcount.sources.databases._tuple_rows", lambda connection: {})
    assert sc.read_sql("SELECT", Psycopg2()).n_rows == 2
    with pytest.raises(sc.DataError, match=r"the database refused the query: no such table\.$"):
        sc.read_sql("SELECT", Psycopg2(failing=True))


class Alchemy:
    """An engine of SQLAlchemy, as far as it is asked: it hands out connections that have a driver's own inside."""

    def __init__(self, inside: Any, broken: bool = False) -> None:
        self.driver_connection, self.broken, self.closed = inside, broken, 0

    def raw_connection(self) -> Alchemy:
        if self.broken:
            raise duckdb.Error("no such host")
        return self

    def close(self) -> None:
        self.closed += 1


def test_an_engine_of_sqlalchemy_gives_its_drivers_connection_and_takes_it_back() -> None:
    with duckdb.connect() as base:
        engine = Alchemy(base)
        assert sc.read_sql("SELECT i AS x FROM range(7) t(i)", engine).n_rows == 7
        assert engine.closed == 1
        with pytest.raises(sc.DataError, match="the database refused the query: no such host"):
            sc.read_sql("SELECT 1", Alchemy(base, broken=True))
