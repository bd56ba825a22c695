"""Databases by their path or address: files of SQLite and DuckDB, Postgres; and the tables they hold."""

from __future__ import annotations

import os
from contextlib import closing
from importlib import import_module
from typing import Any

from softcount import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.addresses import POSTGRES, Address, address_of, discreet, secrets_in, without_password
from softcount.sources.bytestream import first_bytes

LONGEST = 300
"""Characters of what a database says that are repeated: DuckDB names fifty functions that do not match."""

SQLITE, DUCKDB = b"SQLite format 3\0", b"DUCK"
DUCKDB_AT = 8
"""Where a file of DuckDB says that it is one."""
MARK = "::"
"""What stands between a file and a table in it."""

TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'",
    "duckdb": "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'",
}


def one_line(error: Exception) -> str:
    """What an error says, on one line of bounded length and without a full stop."""
    said = " ".join(str(error).split()).rstrip(".!?") or type(error).__name__
    return said if len(said) <= LONGEST else f"{said[:LONGEST]} ..."


def kind_of_file(path: str) -> str | None:
    """The database that a file is one of, by its first bytes; None for any other."""
    begins = first_bytes(path, len(SQLITE))
    if begins == SQLITE:
        return "sqlite"
    return "duckdb" if begins[DUCKDB_AT:].startswith(DUCKDB) else None


def named_table(path: str) -> tuple[str, str, str] | None:
    """The database, the table of it that a path names, and the query for all its rows; None for any other path.

    Of a file that holds one table that is the table, also where none is named.
    """
    if path.startswith(POSTGRES):
        return _of_address(address_of(path))
    file, mark, part = path.rpartition(MARK)
    if not mark or not os.path.isfile(file):
        file, part = path, ""
    kind = kind_of_file(file) if os.path.isfile(file) else None
    if kind is None:
        return None
    table = chosen(file, part, sorted(_tables(file, kind)), "table")
    return file, table, f"SELECT * FROM {_quoted(table)}"


def _of_address(address: str) -> tuple[str, str, str]:
    """Of `ADDRESS::table`, or `ADDRESS::schema.table`."""
    whole = address.whole if isinstance(address, Address) else address
    found, mark, table = whole.rpartition(MARK)
    if not mark or "/" in table or not table:
        asked = remedies.either('softcount.read_sql("SELECT ...", address)', '--sql "SELECT ..."')
        raise DataError(f"{address} is a database. Name a table, {address}{MARK}TABLE, or give a query: {asked}")
    return Address(found), table, f"SELECT * FROM {'.'.join(map(_quoted, table.split('.')))}"


def _tables(file: str, kind: str) -> list[str]:
    with closing(connected(file)) as base:
        try:
            return [str(name) for (name,) in base.execute(TABLES[kind]).fetchall()]
        except Exception as error:
            raise DataError(f"{file} cannot be read as a database: {one_line(error)}.") from None


def _quoted(name: str) -> str:
    # A quote inside a name is doubled, as SQL has it.
    return '"' + name.replace('"', '""') + '"'


def chosen(file: str, part: str, names: list[str], what: str) -> str:
    """The table that is meant; refused where there is none of that name, or several and none is named."""
    if part in names:
        return part
    if not part and len(names) == 1:
        return names[0]
    if not names:
        raise DataError(f"{file} has no {what}.")
    said = f"there is no {what} {part!r} in {file}" if part else f"{file} has {len(names)} {what}s"
    raise DataError(f"{said}: {wording.and_others(names)}. Name one: {file}{MARK}{names[0]}")


# -- connecting


def connected(database: str) -> Any:
    """A connection to a file of SQLite or DuckDB, or to a Postgres database; read only."""
    if database.startswith(POSTGRES):
        return _postgres(database.whole if isinstance(database, Address) else database)
    kind = kind_of_file(database) if os.path.isfile(database) else None
    if kind == "sqlite":
        import sqlite3
        from urllib.parse import quote

        return sqlite3.connect(f"file:{quote(os.path.abspath(database))}?mode=ro", uri=True)
    if kind == "duckdb":
        return _duckdb(database)
    if not os.path.exists(database) and "=" not in database:
        first_bytes(database)  # which says what is wrong with the path
    raise DataError(
        f"{without_password(database)} is no database that is known: a file of SQLite or DuckDB, or "
        "postgresql://USER@HOST/NAME."
    )


def _duckdb(database: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise DataError(f'{database} is a file of DuckDB: pip install "softcount[sql]"') from None
    try:
        return duckdb.connect(database, read_only=True)
    except duckdb.Error as error:
        raise DataError(f"{database} cannot be opened: {one_line(error)}.") from None


def _postgres(address: str) -> Any:
    """By ADBC where it is installed, which hands over Arrow; otherwise by psycopg. All queries see the same rows."""
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
            said = f"the Postgres database cannot be reached: {discreet(one_line(error), address)}."
            if secrets_in(address):
                said += " Signs such as @ / : in a password are written %40 %2F %3A; PGPASSWORD may hold it instead."
            raise DataError(said) from None
    raise DataError('a Postgres database needs a driver: pip install "psycopg[binary]"')
