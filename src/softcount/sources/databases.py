"""Tables and queries of databases, and sheets of workbooks, as sources of rows."""

from __future__ import annotations

import datetime
import decimal
import os
import warnings
import zipfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from importlib import import_module
from typing import Any

from softcount.core import remedies
from softcount.core.lazy import pa
from softcount.core.remedies import POSTGRES, Address, address_of, discreet, secrets_in, without_password
from softcount.errors import DataError, import_extra, is_shortage
from softcount.sources import source, wording
from softcount.sources.arrow_files import SpooledSource, duckdb_reader
from softcount.sources.bytestream import first_bytes
from softcount.sources.csv_dialect import name_columns
from softcount.sources.frames import ArrowSource, columns_source, text_of
from softcount.sources.source import Source, refuse_wide

LONGEST = 300
"""Most characters of a database's message that are shown: DuckDB lists fifty functions that do not match."""

SQLITE, DUCKDB = b"SQLite format 3\0", b"DUCK"
DUCKDB_AT = 8
"""Offset of the magic bytes in a DuckDB file."""
MARK = "::"
"""Separates a file from a table in it."""

TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'",
    "duckdb": "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'",
}


def one_line(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".!?") or type(error).__name__
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def kind_of_file(path: str) -> str | None:
    begins = first_bytes(path, len(SQLITE))
    if begins == SQLITE:
        return "sqlite"
    return "duckdb" if begins[DUCKDB_AT:].startswith(DUCKDB) else None


def chosen(file: str, part: str, names: list[str], what: str) -> str:
    if part in names:
        return part
    if not part and len(names) == 1:
        return names[0]
    if not names:
        raise DataError(f"{file} has no {what}.")
    problem = f"there is no {what} {part!r} in {file}" if part else f"{file} has {len(names)} {what}s"
    raise DataError(f"{problem}: {wording.and_others(names)}. Name one: {file}{MARK}{names[0]}")


# -- connecting


def connected(database: str) -> Any:
    """Open a read-only connection to a SQLite or DuckDB file, or to a Postgres database."""
    if database.startswith(POSTGRES):
        return _postgres(database.whole if isinstance(database, Address) else database)
    kind = kind_of_file(database) if os.path.isfile(database) else None
    if kind == "sqlite":
        import sqlite3
        from urllib.parse import quote

        return sqlite3.connect(f"file:{quote(os.path.abspath(database))}?mode=ro", uri=True)
    if kind == "duckdb":
        duckdb = import_extra("duckdb", f'{database} is a file of DuckDB: pip install "softcount[sql]"')
        try:
            return duckdb.connect(database, read_only=True)
        except duckdb.Error as error:
            raise DataError(f"{database} cannot be opened: {one_line(error)}.") from None
    if not os.path.exists(database) and "=" not in database:
        first_bytes(database)  # raises an error that explains what is wrong with the path
    raise DataError(
        f"{without_password(database)} is not a known database: give a file of SQLite or DuckDB, or "
        "postgresql://USER@HOST/NAME."
    )


def _postgres(address: str) -> Any:
    """Connect by ADBC, which returns Arrow, else by psycopg. All queries of the connection see the same rows."""
    for name in ("adbc_driver_postgresql.dbapi", "psycopg", "psycopg2"):
        try:
            driver = import_module(name)
        except ImportError:
            continue
        try:
            connection = driver.connect(address)
            with closing(connection.cursor()) as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return connection
        except driver.Error as error:
            problem = f"the Postgres database cannot be reached: {discreet(one_line(error), address)}."
            if secrets_in(address):
                problem += " Signs such as @ / : in a password are written %40 %2F %3A; PGPASSWORD may hold it instead."
            raise DataError(problem) from None
    raise DataError('a Postgres database needs a driver: pip install "psycopg[binary]"')


# -- rows of a query: from DuckDB, over ADBC, or from any database with a DB-API driver

ROWS = 16_384

REFUSED = "the database refused the query"
BASES = ("Error", "ArrowException", "SQLAlchemyError")
"""Names of the base classes of database errors, in any driver."""
SAVED = "softcount_saved"
DAY = 86_400_000_000
"""Microseconds of a day."""
NO_TABLE = "the query gives no table. Give one that answers with rows: SELECT ... FROM ..."


def query_source(query: str, connection: Any, name: str = "the query") -> SpooledSource:
    """Fetch the rows of a query. A given connection stays open; a path or address is connected to and closed again."""
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
        return
    engine = hasattr(connection, "raw_connection")  # a SQLAlchemy engine; a SQLAlchemy connection has `exec_driver_sql`
    if not engine and not hasattr(connection, "exec_driver_sql"):
        yield connection
        return
    try:
        own = connection.raw_connection() if engine else connection.connection
    except Exception as error:
        raise _as_data_error(error) from None
    with closing(own) if engine else nullcontext():
        yield own.driver_connection


def _as_data_error(error: Exception) -> Exception:
    """Convert errors of the DB-API, which every driver defines anew, to `DataError`; return other errors unchanged."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__}
    of_database = any(home not in ("builtins", "softcount") and name in BASES for home, name in kinds)
    return DataError(f"{REFUSED}: {one_line(error)}.") if of_database and not is_shortage(error) else error


def _fetch_batches(query: str, connection: Any) -> Generator[Any, None, None]:
    if _driver(connection) == "duckdb":
        answer = connection.sql(query)
        if answer is None:
            raise DataError(NO_TABLE)
        yield from _plain_batches(duckdb_reader(answer))
        return
    if _driver(connection) in ("psycopg", "psycopg2"):
        # Without a name a psycopg cursor fetches all rows; outside a transaction it must be held.
        held = bool(connection.autocommit)
        opened = connection.cursor(name="softcount", withhold=held, **_tuple_rows(connection))
    else:
        opened = _plain_cursor(connection)
    with _close_after(opened) as cursor:
        cursor.execute(query)
        if hasattr(cursor, "fetch_record_batch"):  # ADBC
            yield from _plain_batches(cursor.fetch_record_batch())
            return
        # named cursors of psycopg2 know their columns only after rows are fetched
        named = _driver(connection) == "psycopg2"
        rows = _as_tuples(cursor.fetchmany(ROWS)) if named else None
        if cursor.description is None:
            raise DataError(NO_TABLE)
        names = [str(column[0]) for column in cursor.description]
        source.refuse_repeated(names)
        rows = _as_tuples(cursor.fetchmany(ROWS)) if rows is None else rows
        while rows:
            columns = [_column(name, cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)]
            yield pa.record_batch(columns, names=list(names))
            rows = _as_tuples(cursor.fetchmany(ROWS))


def _plain_batches(reader: Any) -> Iterator[Any]:
    """Yield the batches of a reader that hold rows, with columns cast to supported types."""
    source.refuse_repeated(reader.schema.names)
    batches = iter(reader)
    while True:
        try:
            batch = next(batches, None)
        except OSError as error:  # ADBC reports database errors as OSError
            raise error if is_shortage(error) else DataError(f"{REFUSED}: {one_line(error)}.") from None
        if batch is None:
            return
        if batch.num_rows:
            columns = [_plain_column(column) for column in batch.columns]
            yield pa.record_batch(columns, names=batch.schema.names)


def _plain_column(column: Any) -> Any:
    """Return intervals as durations, UUIDs as text and decimals of any length as doubles; other columns unchanged."""
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
    return type(connection).__module__.partition(".")[0].lstrip("_")


@contextmanager
def _close_after(cursor: Any) -> Iterator[Any]:
    """Close a cursor at the end; an error of its query takes precedence over an error of closing it."""
    try:
        yield cursor
    finally:
        with suppress(Exception):
            cursor.close()


@contextmanager
def _keep_transaction(connection: Any) -> Iterator[None]:
    """Restore the connection's transaction if Postgres refuses a query in the `with` block.

    ADBC cannot go back to a savepoint of a failed transaction: there the whole transaction is rolled back.
    """
    vendor = ""
    if hasattr(connection, "adbc_get_info"):
        with suppress(Exception):  # a closed connection raises a clearer error when it is queried
            vendor = str(connection.adbc_get_info().get("vendor_name", "")).lower()
    postgres = vendor == "postgresql" or _driver(connection) in ("psycopg", "psycopg2")
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
    """Run a statement without rows; return False if it failed, as savepoints do outside a transaction."""
    try:
        with _close_after(_plain_cursor(connection)) as cursor:
            cursor.execute(text)
    except Exception:
        return False
    return True


def _as_tuples(rows: Sequence[Any]) -> Sequence[Any]:
    """Return rows as tuples, even if the connection is configured to return mappings."""
    return [tuple(row.values()) for row in rows] if rows and isinstance(rows[0], Mapping) else rows


def _plain_cursor(connection: Any) -> Any:
    if not hasattr(connection, "cursor"):
        raise DataError(
            f"a {type(connection).__name__} is not a connection to a database. Give a connection from `connect`, a "
            f"path to a "
            "file of SQLite or DuckDB, or the address of a Postgres database."
        )
    return connection.cursor(**_tuple_rows(connection))


def _tuple_rows(connection: Any) -> dict[str, Any]:
    """Return cursor arguments that yield rows as tuples, whatever the connection's settings: names may be repeated."""
    if _driver(connection) == "psycopg":
        return {"row_factory": import_module("psycopg.rows").tuple_row}
    if _driver(connection) == "psycopg2":
        return {"cursor_factory": import_module("psycopg2.extensions").cursor}
    return {}


def _column(name: str, cells: Sequence[Any]) -> Any:
    """Return database cells as an Arrow array: of one type if possible, otherwise as text."""
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
    """Return a cell of a type that Arrow supports: decimals as floats, unsupported types as text."""
    if cell is None or isinstance(cell, _AS_THEY_ARE):
        return cell
    if isinstance(cell, decimal.Decimal):
        return float(cell)
    return bytes(cell) if isinstance(cell, memoryview) else cell if isinstance(cell, list | dict) else str(cell)


# -- one of several tables: `data.db::table` of SQLite, DuckDB and Postgres, `book.xlsx::sheet` of Excel

ZIP = b"PK\x03\x04"
LARGEST = 256 << 20
"""Most bytes of XML in the largest entry of a workbook."""


def part_source(path: str) -> Source | None:
    """Return the source of a named table of a database or workbook; None for other files.

    Without a name, the only table of a database or the first sheet of a workbook is read.
    """
    if path.startswith(POSTGRES):
        address = address_of(path)
        whole = address.whole if isinstance(address, Address) else address
        found, mark, table = whole.rpartition(MARK)
        if not mark or "/" in table or not table:
            query = remedies.either('softcount.read_sql("SELECT ...", address)', '--sql "SELECT ..."')
            raise DataError(f"{address} is a database. Name a table, {address}{MARK}TABLE, or give a query: {query}")
        return _table_source(Address(found), table, table.split("."))
    file, mark, part = path.rpartition(MARK)
    if not mark or not os.path.isfile(file):
        file, part = path, ""
    if not os.path.isfile(file):
        return None
    kind = kind_of_file(file)
    if kind is not None:
        with closing(connected(file)) as base:
            try:
                tables = sorted(str(name) for (name,) in base.execute(TABLES[kind]).fetchall())
            except Exception as error:
                raise DataError(f"{file} cannot be read as a database: {one_line(error)}.") from None
        table = chosen(file, part, tables, "table")
        return _table_source(file, table, [table])
    if first_bytes(file, len(ZIP)) == ZIP:
        entries: list[str] = []
        with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(file) as packed:
            entries = packed.namelist()
        if "xl/workbook.xml" in entries:
            return _workbook(file, part)
    if part:
        raise DataError(f"{file} holds one table, so it has no part {part!r}. Leave out {MARK}{part}")
    return None


def _table_source(database: str, table: str, names: Sequence[str]) -> Source:
    quoted = ".".join('"' + name.replace('"', '""') + '"' for name in names)
    return query_source(f"SELECT * FROM {quoted}", database, f"table {table!r} of {database}")


def _workbook(file: str, part: str) -> ArrowSource:
    """Return the rows of the named sheet, or of the first one."""
    problem = f"{file} is a spreadsheet, which needs openpyxl: pip install 'softcount[excel]'"
    openpyxl = import_extra("openpyxl", f"{problem}; or save the sheet as CSV.")
    with zipfile.ZipFile(file) as packed:
        size = max(entry.file_size for entry in packed.infolist() if entry.filename.endswith(".xml"))
    if size > LARGEST:
        raise DataError(
            f"{file} unpacks to {size >> 20:,} MB, and spreadsheets of up to {LARGEST >> 20} MB are read. Save the "
            "sheet as CSV."
        )
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book,
        ):
            sheets = [sheet.title for sheet in book.worksheets]
            title = chosen(file, part, sheets if part else sheets[:1], "sheet")
            sheet = book[title]
            sheet.reset_dimensions()  # the size stated in a file may be stale, and rows beyond it would be lost
            rows = [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
    except DataError:
        raise
    except Exception as error:  # openpyxl passes on any error of its parsers
        raise DataError(f"{file} cannot be read as a spreadsheet: {one_line(error)}. Save the sheet as CSV.") from None
    what = f"the sheet {title!r} of {file}"
    if len(rows) < 2:
        raise DataError(f"{what} {'has column names but no rows' if rows else 'is empty'}.")
    others = wording.and_others(sheets[1:], 3)
    first = f"{file} has {len(sheets)} sheets: {title!r}, the first, is read ({file}{MARK}NAME reads {others})"
    width = max(place for row in rows for place, cell in enumerate(row, start=1) if cell is not None)
    refuse_wide(width, what)
    header, *cells = ([*row[:width], *[None] * (width - len(row))] for row in rows)
    names, unnamed = name_columns(["" if name is None else str(name).strip() for name in header])
    found = columns_source(dict(zip(names, map(list, zip(*cells, strict=True)), strict=True)))
    found.verbatim = False  # people type NA into a sheet as they do into a text file
    found.notes = (*([first] if not part and len(sheets) > 1 else []), *unnamed)
    return found
