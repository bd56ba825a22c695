"""A scoring query run on rows drawn from the model, in a database in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.export.block_formulas import BlockDensity, blocks_in
from softcount.export.drawn_rows import DrawnRows, ExportCheck, compared
from softcount.export.scoring_plan import ScoringPlan, plain_names
from softcount.export.sql_query import columns_to_cast, most_kept, scoring_query
from softcount.sources.wording import and_others
from softcount.table.names import apart

ROW = "(row)"


def checked_query(plan: ScoringPlan, rows: DrawnRows, dialect: str) -> ExportCheck:
    """In DuckDB where it is installed, else in SQLite; a query for SQLite there."""
    if not _has_duckdb() and any(column.reading for column in plan.columns):
        raise DataError("queries of text are checked by DuckDB, which is not installed. Install it: pip install duckdb")
    run, own = (_in_sqlite, "sqlite") if dialect == "sqlite" or not _has_duckdb() else (_in_duckdb, "duckdb")
    numbered = apart(ROW, {column.name for column in plan.columns})
    names = [numbered, *(column.name for column in plan.columns)]
    cells: list[list[Any]] = [list(range(len(rows.places)))]
    for column in plan.columns:
        written = rows.cells[column.key]
        cells.append(written if column.form is None else column.numbers(written))
    found = sorted(run(names, cells, scoring_query(plan, own, keep=[numbered])))
    places = {value: place for place, value in enumerate(plain_names(plan.names)["values"])}
    told = np.array([-1 if row[1] is None else places[row[1]] for row in found])
    proba = None
    if plan.finish == "probabilities":
        proba = np.array([[np.nan if p is None else p for p in row[2:]] for row in found], dtype=np.float64)
    check = compared(plan, rows, {"sqlite": "SQLite", "duckdb": "DuckDB"}[own], told, proba)
    blocks = [block for term in plan.terms for block in blocks_in(term) if block.kept > most_kept(dialect)]
    return replace(check, notes=(*map(_blind, blocks), *columns_to_cast(plan)))


def _blind(block: BlockDensity) -> str:
    """What is said of a block that only whole rows are scored by."""
    keys = list(block.keys)
    return f"rows with a hole in the block of {len(keys)} columns ({and_others(keys)}) come out without a class"


def _has_duckdb() -> bool:
    try:
        import duckdb  # noqa: F401
    except ImportError:
        return False
    return True


def _in_sqlite(names: Sequence[str], cells: Sequence[list[Any]], query: str) -> list[Any]:
    import sqlite3
    from contextlib import closing

    columns = ", ".join(_quoted(name) for name in names)
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(f"CREATE TABLE {_quoted('rows')} ({columns})")
        marks = ", ".join("?" * len(names))
        base.executemany(f"INSERT INTO {_quoted('rows')} VALUES ({marks})", zip(*cells, strict=True))
        return base.execute(query).fetchall()


def _in_duckdb(names: Sequence[str], cells: Sequence[list[Any]], query: str) -> list[Any]:
    import duckdb
    import pyarrow as pa

    with duckdb.connect(":memory:") as base:
        base.register("rows", pa.table([pa.array(_alike(column)) for column in cells], names=list(names)))
        found: list[Any] = base.execute(query).fetchall()
        return found


def _alike(cells: list[Any]) -> list[Any]:
    """Cells of one type: as text where they are of several."""
    kinds = {
        bool if isinstance(x, bool) else float if isinstance(x, (int, float)) else str for x in cells if x is not None
    }
    return cells if len(kinds) < 2 else [None if x is None else str(x) for x in cells]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
