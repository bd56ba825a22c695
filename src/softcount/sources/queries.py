"""Rows of a query: from DuckDB, over ADBC, or from any database with a DB-API driver.

A query runs once. Its rows go to a temporary file as they arrive, so that every pass reads the same rows, whatever is
written to the database meanwhile.
"""

from __future__ import annotations

import datetime
import decimal
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from typing import Any

from softcount.errors import DataError, is_shortage
from softcount.sources import source
from softcount.sources.arrow_batches import SpooledSource, duckdb_reader
from softcount.sources.arrow_columns import text_of
from softcount.sources.databases import connected, one_line

ROWS = 16_384
"""Rows that are fetched at a time."""

REFUSED = "the database refused the query"
BASES = ("Error", "ArrowException", "SQLAlchemyError")
"""Names of the base classes of database errors, in any driver."""
SAVED = "softcount_saved"
DAY = 86_400_000_000
"""Microseconds."""
NO_TABLE = "the query gives no table. Give one that answers with rows: SELECT ... FROM ..."


def query_source(query: str, connection: Any, name: str = "the query") -> SpooledSource:
    """Fetch the rows of a query; a given connection stays open, a path or address is connected to and closed again."""
    with _open_connection(connection) as own:
        if not isinstance(query, str) or not query.strip():
            raise DataError("the query is empty. Give one that answers with rows: SELECT ... FROM ...")
        try:
            with _keep_transaction(own), closing(_fetch_batches(query, own)) as batches:
                return SpooledSource(batches, name)
        except Exception as error:
            raise _as_data_error(error) from None


@contextmanager
def _open_connection(connection: Any) -> Iterator[Any]:
    if isinstance(connection, str | os.PathLike):
        with closing(connected(os.fspath(connection))) as own:
            yield own
    elif hasattr(connection, "raw_connection"):  # an engine of SQLAlchemy
        with closing(_connect_sqlalchemy(connection)) as own:
            yield own.driver_connection
    elif hasattr(connection, "exec_driver_sql"):  # a connection of SQLAlchemy
        yield _connect_sqlalchemy(connection).driver_connection
    else:
        yield connection


def _connect_sqlalchemy(alchemy: Any) -> Any:
    try:
        return alchemy.raw_connection() if hasattr(alchemy, "raw_connection") else alchemy.connection
    except Exception as error:
        raise _as_data_error(error) from None


def _as_data_error(error: Exception) -> Exception:
    """Errors of the DB-API, which every driver defines for itself, as a `DataError`; any other error unchanged."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__}
    of_database = any(home not in ("builtins", "softcount") and name in BASES for home, name in kinds)
    return DataError(f"{REFUSED}: {one_line(error)}.") if of_database and not is_shortage(error) else error


def _fetch_batches(query: str, connection: Any) -> Generator[Any, None, None]:
    """The rows of a query as Arrow batches, as they come."""
    if _driver(connection) == "duckdb":
        answer = connection.sql(query)
        if answer is None:
            raise DataError(NO_TABLE)
        yield from _plain_batches(duckdb_reader(answer))
        return
    with _close_after(_cursor(connection)) as cursor:
        cursor.execute(query)
        if hasattr(cursor, "fetch_record_batch"):  # ADBC
            yield from _plain_batches(cursor.fetch_record_batch())
            return
        named = _driver(connection) == "psycopg2"  # its named cursors know their columns once they have rows
        rows = _as_tuples(cursor.fetchmany(ROWS)) if named else None
        if cursor.description is None:
            raise DataError(NO_TABLE)
        names = [str(column[0]) for column in cursor.description]
        source.refuse_repeated(names)
        rows = _as_tuples(cursor.fetchmany(ROWS)) if rows is None else rows
        while rows:
            yield _batch(names, rows)
            rows = _as_tuples(cursor.fetchmany(ROWS))


def _plain_batches(reader: Any) -> Iterator[Any]:
    """The batches of a reader that hold rows, their columns of types that reading knows."""
    import pyarrow as pa

    source.refuse_repeated(reader.schema.names)
    batches = iter(reader)
    while True:
        try:
            batch = next(batches, None)
        except OSError as error:  # as ADBC says what a database does
            raise error if is_shortage(error) else DataError(f"{REFUSED}: {one_line(error)}.") from None
        if batch is None:
            return
        if batch.num_rows:
            columns = [_plain_column(column) for column in batch.columns]
            yield pa.record_batch(columns, names=batch.schema.names)


def _plain_column(column: Any) -> Any:
    """Intervals as durations, UUIDs as text and decimals of any length as doubles; other columns unchanged."""
    import pyarrow as pa

    if pa.types.is_interval(column.type):
        cells = column.to_pylist()
        if any(cell is not None and cell.months for cell in cells):  # months have no fixed length
            return column
        spans = [None if cell is None else cell.days * DAY + cell.nanoseconds // 1_000 for cell in cells]
        return pa.array(spans, pa.duration("us"))
    if getattr(column.type, "extension_name", "") == "arrow.uuid":
        return text_of([None if cell is None else str(cell) for cell in column.to_pylist()])
    if getattr(column.type, "type_name", "") == "numeric":
        return column.storage.cast(pa.float64())
    return column


def _driver(connection: Any) -> str:
    """The package that a connection is from."""
    return type(connection).__module__.partition(".")[0].lstrip("_")


def _is_postgres(connection: Any) -> bool:
    vendor = ""
    if hasattr(connection, "adbc_get_info"):
        with suppress(Exception):  # a closed connection raises a clearer error when it is queried
            vendor = str(connection.adbc_get_info().get("vendor_name", "")).lower()
    return vendor == "postgresql" or _driver(connection) in ("psycopg", "psycopg2")


@contextmanager
def _close_after(cursor: Any) -> Iterator[Any]:
    """A cursor that is closed at the end; an error of its query comes before an error of closing it."""
    try:
        yield cursor
    finally:
        with suppress(Exception):
            cursor.close()


@contextmanager
def _keep_transaction(connection: Any) -> Iterator[None]:
    """A block in which a query that Postgres refuses leaves the connection's transaction as it was.

    ADBC cannot go back to a savepoint of a failed transaction: there the whole transaction is rolled back.
    """
    postgres = _is_postgres(connection)
    saved = postgres and _execute(connection, f"SAVEPOINT {SAVED}")
    try:
        yield
    except BaseException:
        back = saved and _execute(connection, f"ROLLBACK TO SAVEPOINT {SAVED}")
        if postgres and not back and hasattr(connection, "adbc_get_info"):
            with suppress(Exception):
                connection.rollback()
        raise
    finally:
        if saved:
            _execute(connection, f"RELEASE SAVEPOINT {SAVED}")


def _execute(connection: Any, text: str) -> bool:
    """Run a statement without rows; False if it failed, as savepoints do outside of a transaction."""
    try:
        with _close_after(_plain_cursor(connection)) as cursor:
            cursor.execute(text)
    except Exception:
        return False
    return True


def _as_tuples(rows: Sequence[Any]) -> Sequence[Any]:
    """Rows as tuples, also from a connection that is set to give rows by name."""
    return [tuple(row.values()) for row in rows] if rows and isinstance(rows[0], Mapping) else rows


def _plain_cursor(connection: Any) -> Any:
    if not hasattr(connection, "cursor"):
        raise DataError(
            f"a {type(connection).__name__} is no connection to a database. Give what `connect` gives, a path to a "
            "file of SQLite or DuckDB, or the address of a Postgres database."
        )
    return connection.cursor(**_tuple_rows(connection))


def _tuple_rows(connection: Any) -> dict[str, Any]:
    """Cursor arguments that give rows as tuples, whatever the connection is set to: names may stand there twice."""
    if _driver(connection) == "psycopg":
        return {"row_factory": import_module("psycopg.rows").tuple_row}
    if _driver(connection) == "psycopg2":
        return {"cursor_factory": import_module("psycopg2.extensions").cursor}
    return {}


def _cursor(connection: Any) -> Any:
    """A cursor that fetches as it goes; psycopg's own fetches everything at once unless it has a name."""
    if _driver(connection) in ("psycopg", "psycopg2"):
        # Outside of a transaction a cursor with a name lasts only if it is held.
        return connection.cursor(name="softcount", withhold=bool(connection.autocommit), **_tuple_rows(connection))
    return _plain_cursor(connection)


def _batch(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Any:
    import pyarrow as pa

    columns = [_column(name, cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)]
    return pa.record_batch(columns, names=list(names))


def _column(name: str, cells: Sequence[Any]) -> Any:
    """Cells as they come from a database: of one type each, and otherwise as text."""
    import pyarrow as pa

    cells = [_plain(cell) for cell in cells]
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {str}:
        return text_of(cells) if kinds else pa.nulls(len(cells))
    if kinds <= {int, float} and float in kinds:
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError, TypeError):
        if kinds <= {int, float, bool}:
            return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
        return text_of([None if cell is None else str(cell) for cell in cells])


_AS_THEY_ARE = (str, bool, int, float, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, bytes)


def _plain(cell: Any) -> Any:
    """A cell of a type that Arrow knows: decimals as numbers, what it does not know as it is spelt."""
    if cell is None or isinstance(cell, _AS_THEY_ARE):
        return cell
    if isinstance(cell, decimal.Decimal):
        return float(cell)
    return bytes(cell) if isinstance(cell, memoryview) else cell if isinstance(cell, list | dict) else str(cell)
