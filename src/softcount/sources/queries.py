"""Rows of a query: from DuckDB, over ADBC, or from any database that Python's DB-API reaches.

A query is run once; its rows go to a temporary file as they come, so that they can be read as often as learning asks
and are the same each time, whatever is written to the database meanwhile.
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
"""What errors of databases are called, whatever package they are from."""
SAVED = "softcount_saved"
DAY = 86_400_000_000
"""Microseconds."""
NO_TABLE = "the query gives no table. Give one that answers with rows: SELECT ... FROM ..."


def query_source(query: str, connection: Any, name: str = "the query") -> SpooledSource:
    """The rows of a query; the connection stays open. A path or an address is connected to and closed again."""
    with opened(connection) as own:
        if not isinstance(query, str) or not query.strip():
            raise DataError("the query is empty. Give one that answers with rows: SELECT ... FROM ...")
        try:
            with undisturbed(own), closing(batches_of(query, own)) as batches:  # cursors are closed before connections
                return SpooledSource(batches, name)
        except Exception as error:
            raise refused_query(error) from None


@contextmanager
def opened(connection: Any) -> Iterator[Any]:
    """A connection to ask: one that is given stays open, and of a path or an address is closed again."""
    if isinstance(connection, str | os.PathLike):
        with closing(connected(os.fspath(connection))) as own:
            yield own
    elif hasattr(connection, "raw_connection"):  # an engine of SQLAlchemy
        with closing(_connect(connection)) as own:
            yield own.driver_connection
    elif hasattr(connection, "exec_driver_sql"):  # a connection of SQLAlchemy
        yield _connect(connection).driver_connection
    else:
        yield connection


def _connect(alchemy: Any) -> Any:
    """The connection that an engine of SQLAlchemy makes, or that one of its connections has."""
    try:
        return alchemy.raw_connection() if hasattr(alchemy, "raw_connection") else alchemy.connection
    except Exception as error:
        raise refused_query(error) from None


def refused_query(error: Exception) -> Exception:
    """What a database says of a query, as an error of ours; any other error as it is."""
    said = f"{REFUSED}: {one_line(error)}."
    return DataError(said) if is_database_error(error) else error


def is_database_error(error: Exception) -> bool:
    """Whether it is one of the errors that the DB-API knows, which every driver has for itself."""
    if is_shortage(error):
        return False
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__}
    return any(home not in ("builtins", "softcount") and name in BASES for home, name in kinds)


def batches_of(query: str, connection: Any) -> Generator[Any, None, None]:
    """The rows of a query as Arrow batches, as they come."""
    if is_duckdb(connection):
        answer = connection.sql(query)
        if answer is None:
            raise DataError(NO_TABLE)
        yield from _plain_batches(duckdb_reader(answer))
        return
    with asking(_cursor(connection)) as cursor:
        cursor.execute(query)
        if hasattr(cursor, "fetch_record_batch"):  # ADBC
            yield from _plain_batches(cursor.fetch_record_batch())
            return
        named = _home(connection) == "psycopg2"  # whose cursors with a name know their columns once they have rows
        rows = plain_rows(cursor.fetchmany(ROWS)) if named else None
        if cursor.description is None:
            raise DataError(NO_TABLE)
        names = [str(column[0]) for column in cursor.description]
        source.refuse_repeated(names)
        rows = plain_rows(cursor.fetchmany(ROWS)) if rows is None else rows
        while rows:
            yield _batch(names, rows)
            rows = plain_rows(cursor.fetchmany(ROWS))


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
    """A column of numbers or words for what Arrow has only a name for: decimals of any length, spans of time."""
    import pyarrow as pa

    if pa.types.is_interval(column.type):
        cells = column.to_pylist()
        if any(cell is not None and cell.months for cell in cells):  # of which nobody knows how long they are
            return column
        spans = [None if cell is None else cell.days * DAY + cell.nanoseconds // 1_000 for cell in cells]
        return pa.array(spans, pa.duration("us"))
    if getattr(column.type, "extension_name", "") == "arrow.uuid":
        return text_of([None if cell is None else str(cell) for cell in column.to_pylist()])
    if getattr(column.type, "type_name", "") == "numeric":
        return column.storage.cast(pa.float64())
    return column


def is_duckdb(connection: Any) -> bool:
    """Whether it is a connection of DuckDB's own, which is asked for relations."""
    return _home(connection) == "duckdb"


def _home(connection: Any) -> str:
    """The package that a connection is from."""
    return type(connection).__module__.partition(".")[0].lstrip("_")


def vendor_of(connection: Any) -> str:
    """The database behind a connection: duckdb, postgres, sqlite, or what its package is called."""
    home = _home(connection)
    if hasattr(connection, "adbc_get_info"):
        with suppress(Exception):  # a connection that is closed says so when it is asked
            home = str(connection.adbc_get_info().get("vendor_name", home)).lower()
    known = {"sqlite3": "sqlite", "psycopg": "postgres", "psycopg2": "postgres", "postgresql": "postgres"}
    return known.get(home, home)


@contextmanager
def asking(cursor: Any) -> Iterator[Any]:
    """A cursor that is closed at the end; what is wrong with its query is said before what is wrong with closing it."""
    try:
        yield cursor
    finally:
        with suppress(Exception):
            cursor.close()


@contextmanager
def undisturbed(connection: Any) -> Iterator[None]:
    """A block in which a query that Postgres refuses leaves the connection's transaction as it was.

    ADBC lets nobody go back to a part of a transaction that failed: there the whole is rolled back, which is all that
    could be done with it.
    """
    ours = vendor_of(connection) == "postgres"
    saved = ours and _tell(connection, f"SAVEPOINT {SAVED}")
    try:
        yield
    except BaseException:
        back = saved and _tell(connection, f"ROLLBACK TO SAVEPOINT {SAVED}")
        if ours and not back and hasattr(connection, "adbc_get_info"):
            with suppress(Exception):
                connection.rollback()
        raise
    finally:
        if saved:
            _tell(connection, f"RELEASE SAVEPOINT {SAVED}")


def _tell(connection: Any, text: str) -> bool:
    """Whether the database did something that gives no rows: outside of a transaction there is no way back."""
    try:
        with asking(plain_cursor(connection)) as cursor:
            cursor.execute(text)
    except Exception:
        return False
    return True


def plain_rows(rows: Sequence[Any]) -> Sequence[Any]:
    """Rows as tuples, though a connection was told to give them by name."""
    return [tuple(row.values()) for row in rows] if rows and isinstance(rows[0], Mapping) else rows


def plain_cursor(connection: Any) -> Any:
    """A cursor for answers of a few rows."""
    if not hasattr(connection, "cursor"):
        raise DataError(
            f"a {type(connection).__name__} is no connection to a database. Give what `connect` gives, a path to a "
            "file of SQLite or DuckDB, or the address of a Postgres database."
        )
    return connection.cursor(**_in_order(connection))


def _in_order(connection: Any) -> dict[str, Any]:
    """What has a cursor give rows as tuples, though its connection was told otherwise: names may be there twice."""
    if _home(connection) == "psycopg":
        return {"row_factory": import_module("psycopg.rows").tuple_row}
    if _home(connection) == "psycopg2":
        return {"cursor_factory": import_module("psycopg2.extensions").cursor}
    return {}


def _cursor(connection: Any) -> Any:
    """A cursor that fetches as it goes; psycopg's own fetches everything at once unless it has a name."""
    if _home(connection) in ("psycopg", "psycopg2"):
        # Outside of a transaction a cursor with a name lasts only if it is held.
        return connection.cursor(name="softcount", withhold=bool(connection.autocommit), **_in_order(connection))
    return plain_cursor(connection)


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
