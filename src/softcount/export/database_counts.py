"""Counting inside a database: what one pass over rows of known class adds up, asked for by GROUP BY.

Squares are taken around every class's own mean, which a first query finds and the second has joined in: around one
anchor a class a million deviations away would lose its digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.export.sql_formulas import number
from softcount.fitted.fitted_model import Fitted
from softcount.models.nodes import Node
from softcount.numerics.twofold import Twofold
from softcount.records import dataclass
from softcount.sources.arrow_columns import number_words
from softcount.table.cell_forms import is_plain
from softcount.table.schema import Field, Key, Kind

SUMS = {"duckdb": "fsum", "postgres": "sum"}
"""What adds up doubles, with their rounding errors where there is such a function."""
TITLES = {"duckdb": "DuckDB", "postgres": "Postgres"}


class ReadOut(Exception):
    """Why rows have to be read out of the database."""


@dataclass(frozen=True)
class Database:
    """A connection, and the query whose rows are counted."""

    connection: Any
    dialect: str
    query: str

    @property
    def source(self) -> str:
        """The rows that are counted, as other queries read them."""
        return f"({self.query.rstrip().rstrip(';')}) AS softcount_rows"

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of another query."""
        if self.dialect == "duckdb":
            return list(self.connection.sql(text).fetchall())
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return list(cursor.fetchall())

    def first(self, most: int) -> Any:
        """The first rows, as an Arrow table."""
        import pyarrow as pa

        text = f"SELECT * FROM {self.source} LIMIT {most}"
        if self.dialect == "duckdb":
            return self.connection.sql(text).to_arrow_table()
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            names, found = [column[0] for column in cursor.description], cursor.fetchall()
        columns = zip(*found, strict=True) if found else [()] * len(names)
        return pa.table([pa.array(list(column)) for column in columns], names=names)


def quoted(name: object) -> str:
    """A name as both dialects write it."""
    return '"' + str(name).replace('"', '""') + '"'


def dialect_of(connection: Any) -> str:
    """The dialect of a connection that can count; else why rows are read out."""
    home = type(connection).__module__.partition(".")[0].lstrip("_")
    if home == "sqlite3":
        raise ReadOut("SQLite gives rows faster than it counts them")
    found = {"duckdb": "duckdb", "psycopg": "postgres"}.get(home)
    if found is None:
        raise ReadOut(f"counting inside is for DuckDB and psycopg's Postgres, not {home}")
    return found


def number_of_cell(spec: Field, logged: bool) -> str:
    """A number as SQL reads it, null where it is missing."""
    cell = f"CAST({quoted(spec.key)} AS DOUBLE PRECISION)"
    cell = f"NULLIF({cell}, CAST('NaN' AS DOUBLE PRECISION))"
    return f"ln({cell})" if logged else cell


def countable(model: Fitted) -> None:
    """Refuse what a database cannot count, by the name of the column."""
    if number_words(model.schema.missing):
        raise ReadOut("some numbers mean missing")
    for leaf in model.model.leaves:
        one = np.zeros((model.n_groups, 3))
        known = leaf.family.counts_levels or leaf.family.of_sums(one, one[:, 0], leaf.setting) is not None
        if len(leaf.columns) != 1 or not known:
            raise ReadOut(f"column {leaf.key!r} is {leaf.family.title}, whose counts are no sums")
        if not is_plain(model.schema[leaf.columns[0]].written):
            raise ReadOut(f"column {leaf.key!r} is written in a form of its own")


@dataclass(frozen=True)
class ClassRows:
    """The classes as the database has them, as text, and the rows of each."""

    names: list[Any]
    texts: list[str]
    rows: list[float]


def class_rows(base: Database, target: str, missing: Sequence[str]) -> ClassRows:
    """The classes; rows without one are a reason to read out."""
    y = quoted(target)
    found = base.rows(f"SELECT {y}, CAST({y} AS TEXT), count(*) FROM {base.source} GROUP BY {y}")
    if any(name is None or name != name or str(text).strip() in missing for name, text, _ in found):
        raise ReadOut("some rows have no class")
    return ClassRows([row[0] for row in found], [row[1] for row in found], [float(row[2]) for row in found])


def level_rows(base: Database, target: str, key: Key) -> list[tuple[str, Any, float]]:
    """Class as text, level and rows of every pair there is."""
    y, x = quoted(target), quoted(key)
    return [
        (a, b, float(n))
        for a, b, n in base.rows(f"SELECT CAST({y} AS TEXT), {x}, count(*) FROM {base.source} GROUP BY 1, 2")
    ]


def database_counts(base: Database, model: Fitted, target: str, classes: ClassRows) -> tuple[Counts, dict[Key, float]]:
    """Counts by node in the terms of a model that knows all classes and levels, and missing cells by column."""
    place = {text: model.names.index(name) for name, text in zip(classes.names, classes.texts, strict=True)}
    sizes = np.zeros(model.n_groups)
    for text, rows in zip(classes.texts, classes.rows, strict=True):
        sizes[place[text]] = rows
    arrays: dict[Any, Twofold] = {ROOT: Twofold.of(sizes)}
    leaves = model.model.leaves
    numeric = [leaf for leaf in leaves if not leaf.family.counts_levels]
    for leaf, sums, centres in zip(numeric, *_sums(base, model, numeric, target, place), strict=True):
        found = leaf.family.of_sums(sums, centres, leaf.setting)
        assert found is not None
        arrays[leaf.key] = found
    for leaf in leaves:
        if leaf.family.counts_levels:
            arrays[leaf.key] = Twofold.of(_levels(base, model, leaf, target, place))
    whole = float(sizes.sum())
    seen = {leaf.key: leaf.family.observed(arrays[leaf.key].value) for leaf in leaves}
    missing = {leaf.columns[0]: whole - (seen[leaf.key] or 0.0) for leaf in leaves}
    if not all(np.isfinite(array.value).all() for array in arrays.values()):
        raise ReadOut("sums of some column are no numbers")
    return Counts({leaf.key: arrays[leaf.key] for leaf in leaves} | {ROOT: arrays[ROOT]}, whole), missing


def _levels(base: Database, model: Fitted, leaf: Node, target: str, place: dict[str, int]) -> np.ndarray:
    """(groups x levels) rows, the library itself saying which level a value is."""
    found = level_rows(base, target, leaf.columns[0])
    chunk = next(model.chunks(model.table({leaf.columns[0]: [value for _, value, _ in found]})))
    store, slot = model.schema.places[leaf.columns[0]]
    codes = getattr(chunk, store)[:, slot]
    counts = np.zeros((model.n_groups, len(leaf.setting.levels)))
    for (text, _, rows), code in zip(found, codes.tolist(), strict=True):
        if code > counts.shape[1]:
            raise ReadOut(f"column {leaf.key!r} has levels that the database writes in several ways")
        if code:
            counts[place[text], code - 1] += rows
    return counts


def _sums(
    base: Database, model: Fitted, numeric: Sequence[Node], target: str, place: dict[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """(columns x groups x 3) rows, sums and squares around (columns x groups) means of the classes."""
    sums, centres = np.zeros((len(numeric), model.n_groups, 3)), np.zeros((len(numeric), model.n_groups))
    if not numeric:
        return sums, centres
    _fill_centres(base, model, numeric, target, (place, centres))
    y, add = quoted(target), SUMS[base.dialect]
    cells = ", ".join(f"{_number(model, leaf)} AS x{j}" for j, leaf in enumerate(numeric))
    parts = ", ".join(
        f"count(x{j}), {add}(x{j} - c{j}), {add}((x{j} - c{j}) * (x{j} - c{j}))" for j in range(len(numeric))
    )
    values = ", ".join(_centre_row(text, centres[:, group]) for text, group in place.items())
    names = ", ".join(f"c{j}" for j in range(len(numeric)))
    found = base.rows(
        f"WITH cells AS (SELECT CAST({y} AS TEXT) AS y, {cells} FROM {base.source}), "
        f"centres(k, {names}) AS (VALUES {values}) "
        f"SELECT cells.y, {parts} FROM cells JOIN centres ON cells.y = centres.k GROUP BY cells.y"
    )
    for text, *rest in found:
        whole = np.array([0.0 if part is None else float(part) for part in rest]).reshape(-1, 3)
        sums[:, place[text]] = whole
    return sums, centres


def _centre_row(text: str, centres: np.ndarray) -> str:
    literal = "'" + text.replace("'", "''") + "'"
    return f"({literal}, {', '.join(f'CAST({number(x).sql()} AS DOUBLE PRECISION)' for x in centres)})"


def _number(model: Fitted, leaf: Node) -> str:
    return number_of_cell(model.schema[leaf.columns[0]], leaf.family.logged)


def _fill_centres(
    base: Database, model: Fitted, numeric: Sequence[Node], target: str, into: tuple[dict[str, int], np.ndarray]
) -> None:
    """Means of the classes; a number outside of what its column may hold is a reason to read out."""
    place, centres = into
    _check_bounds(base, model, numeric)
    parts = ", ".join(f"avg({_number(model, leaf)})" for leaf in numeric)
    for text, *means in base.rows(f"SELECT CAST({quoted(target)} AS TEXT), {parts} FROM {base.source} GROUP BY 1"):
        centres[:, place[text]] = [0.0 if mean is None else float(mean) for mean in means]


def _check_bounds(base: Database, model: Fitted, numeric: Sequence[Node]) -> None:
    for leaf in numeric:
        spec = model.schema[leaf.columns[0]]
        x = number_of_cell(spec, False)
        low, high, split = base.rows(
            f"SELECT min({x}), max({x}), count(CASE WHEN {x} <> floor({x}) THEN 1 END) FROM {base.source}"
        )[0]
        if low is None:
            continue
        least = {Kind.COUNT: low < 0 or split > 0, Kind.POSITIVE: low <= 0, Kind.AMOUNT: low < 0}.get(spec.kind, False)
        try:
            leaf.family.check(np.array([low, high], dtype=float), leaf.key, 0)
        except ValueError:
            least = True
        if least or not np.isfinite([low, high]).all():
            raise ReadOut(f"column {leaf.key!r} holds numbers that a {spec.kind.value} column cannot")
