"""A query whose rows a database counts: asked within other queries, never changed, and never written to."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from softcount.records import dataclass
from softcount.sources.queries import asking, batches_of, is_duckdb, plain_cursor, plain_rows, vendor_of
from softcount.sources.source import refuse_repeated

TITLES = {"duckdb": "DuckDB", "postgres": "Postgres", "sqlite": "SQLite"}


class ReadOut(Exception):
    """Why rows have to be read out of the database."""


def quoted(name: object) -> str:
    """A name as every dialect here writes it."""
    return '"' + str(name).replace('"', '""') + '"'


def dialect_of(connection: Any) -> str:
    """The dialect of a connection that can count; else why rows are read out."""
    vendor = vendor_of(connection)
    if vendor == "sqlite":
        raise ReadOut("SQLite gives rows faster than it counts them")
    if vendor not in ("duckdb", "postgres"):
        raise ReadOut(f"counting inside is for DuckDB and Postgres, not {vendor}")
    return vendor


@dataclass(frozen=True)
class Database:
    """A connection, the query whose rows are counted, and the column of their weights.

    Rows of weight zero are passed over, or with `zeros` only count for nothing: their classes and levels exist.
    """

    connection: Any
    dialect: str
    query: str
    weight: str | None = None
    zeros: bool = False

    @property
    def source(self) -> str:
        """The rows that are counted, as other queries read them; a comment may end the query."""
        rows = f"({self.query.strip().rstrip(';')}\n) AS softcount_rows"
        if self.weight is None or self.zeros:
            return rows
        return f"(SELECT * FROM {rows} WHERE {as_double(self.weight)} IS DISTINCT FROM 0) AS softcount_rows"

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of another query."""
        if is_duckdb(self.connection):
            return list(self.connection.sql(text).fetchall())
        with asking(plain_cursor(self.connection)) as cursor:
            cursor.execute(text)
            return list(plain_rows(cursor.fetchall()))

    @property
    def names(self) -> list[str]:
        """The columns; two of one name are refused, which DuckDB would rename within another query."""
        found = self.connection.sql(self.query).columns if is_duckdb(self.connection) else self.first(1).column_names
        refuse_repeated(found)
        return list(found)

    def first(self, most: int) -> Any:
        """The first rows, as an Arrow table."""
        import pyarrow as pa

        from softcount.sources.arrow_batches import one_schema

        with closing(batches_of(f"SELECT * FROM {self.source} LIMIT {most}", self.connection)) as batches:
            found = list(batches)
        if not found:
            raise ReadOut("there are none to look at")
        schema = one_schema([batch.schema for batch in found])
        return pa.Table.from_batches([batch.cast(schema) for batch in found], schema)


def as_double(name: object) -> str:
    """A column as a double, as both dialects that count write it."""
    return f"CAST({quoted(name)} AS DOUBLE PRECISION)"
