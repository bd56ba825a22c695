"""Data quality: how columns were read and why, what is missing and what is missing together, copies, drift."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from softcount.pictures.table_pictures import bars_drawing
from softcount.report.discretion import Discretion
from softcount.report.page import Page, grid_of, key_text
from softcount.report.plain_text import counted, listed, number, share
from softcount.table.column_summary import ColumnSummary, TableSummary
from softcount.table.schema import Field, Key, Kind, Schema

if TYPE_CHECKING:
    from softcount.learn.record import Learned

MOST_COLUMNS = 120
"""Columns of which a line is written; the rest is said to be left out."""
MOST_BARS = 20


def add_quality(page: Page, fitted: Learned, told: Discretion, given: TableSummary | None = None) -> None:
    """The columns, what is missing, and copies; where the training table was not kept, what is given stands for it."""
    page.heading("Data quality")
    table = None if fitted.record is None else fitted.record.table
    _add_columns(page, fitted, table or given, told)
    if table is None:
        instead = "" if given is None else "; what columns hold is of the table given"
        kept = "softcount fit keeps one, a fit in Python of up to a million cells"
        page.line(f"no summary of the training table is in this model: {kept}{instead}")
    _add_missing(page, fitted, table)
    left_out = [key_text(spec.key) for spec in fitted.schema.fields if not spec.used]
    if left_out:
        page.line(f"{counted(len(left_out), 'column')} left out: {listed(left_out, 12)}")
    if table is not None and table.copies is not None:
        same = counted(table.copies, "row")
        page.line(f"{same} the same as an earlier one, in every column" if table.copies else "no row is there twice")


def _add_columns(page: Page, fitted: Learned, table: TableSummary | None, told: Discretion) -> None:
    from softcount.report.model_page import missing_share, role

    fields = fitted.schema.fields[:MOST_COLUMNS]
    rows = [
        (
            key_text(spec.key),
            role(spec),
            spec.why if told.shows_cells else "-",
            missing_share(spec.key, fitted.missing, fitted.counts.rows),
            _holds(spec, None if table is None else table.column(spec.key), told),
        )
        for spec in fields
    ]
    page.grid(("column", "kind", "why", "missing", "holds"), rows, right=("missing",))
    if len(fitted.schema.fields) > len(fields):
        page.line(f"and {counted(len(fitted.schema.fields) - len(fields), 'column')} more, left out of this page")


def _holds(spec: Field, found: ColumnSummary | None, told: Discretion) -> str:
    """What a column holds in a few words: its middle half, or its commonest levels."""
    if found is None or not spec.used:
        return "-"
    if found.quantiles:
        low, middle, high = (told.number(found.quantiles[at], 3) for at in (5, 10, 15))
        if found.there < 20 and not told.shows_cells:
            return "-"
        words = "words of a document: " if spec.kind is Kind.TEXT else ""
        return f"{words}median {middle}, half between {low} and {high}"
    names = [
        f"{told.level(spec.key, spec.levels[place])} {share(n / max(found.there, 1))}" for place, n in found.levels[:3]
    ]
    more = len(spec.levels) - len(names)
    return ", ".join(names) + (f", {more} more" if more > 0 else "")


def _add_missing(page: Page, fitted: Learned, table: TableSummary | None) -> None:
    rows = max(fitted.counts.rows, 1.0)
    holes = sorted(((key, n / rows) for key, n in fitted.missing.items() if n > 0), key=lambda x: -x[1])
    if not holes:
        page.line("no cell is missing")
        return
    shown = holes[:MOST_BARS]
    names, parts = [key_text(key) for key, _ in shown], [part for _, part in shown]
    drawing = bars_drawing(names, parts, list(map(share, parts)), "share of the cells that are missing, by column")
    numbers = grid_of(("column", "missing"), [(key_text(key), share(part)) for key, part in holes], right=("missing",))
    page.picture("Missing cells", drawing, numbers, "A missing cell is no evidence: it changes no count and no answer.")
    if table is not None and table.together:
        _add_together(page, table)


def _add_together(page: Page, table: TableSummary) -> None:
    """Pairs of columns that are missing in the same rows more often than chance would have it."""
    rows = []
    for first, second, both in table.together:
        a, b = table.columns[first], table.columns[second]
        by_chance = a.missing * b.missing / max(table.rows, 1)
        if both > by_chance + 3.0 * by_chance**0.5:
            rows.append((key_text(a.key), key_text(b.key), number(both), number(by_chance, 3)))
    if not rows:
        page.line("no two columns are missing together more often than chance would have it")
        return
    page.heading("Missing together more often than by chance", level=2)
    headings = ("column", "and", "rows that miss both", "by chance")
    page.grid(headings, rows[:8], right=headings[2:])


# -- drift


class Drift(Struct, frozen=True):
    """How far a column has moved from its training table.

    `moved` is the share of the rows that would have to change to undo it; `chance` what two samples of these sizes
    would show by themselves, about one time in a hundred.
    """

    key: Key
    moved: float
    chance: float
    unseen: int
    missing_before: float
    missing_now: float


def drift_of(before: TableSummary, now: TableSummary) -> list[Drift]:
    """Every column's drift, the farthest first."""
    found = [_drift(old, new, before.rows, now.rows) for old, new in zip(before.columns, now.columns, strict=True)]
    return sorted(found, key=lambda x: -x.moved)


def _drift(old: ColumnSummary, new: ColumnSummary, rows_before: int, rows_now: int) -> Drift:
    before, now = _parts(old), _parts(new)
    cells = sorted(before.keys() | now.keys())
    a, b = (np.array([part.get(cell, 0) for cell in cells], dtype=float) for part in (before, now))
    n, m = a.sum(), b.sum()
    moved = 0.5 * float(np.abs(a / n - b / m).sum()) if n and m else 0.0
    joint = (a + b) / max(n + m, 1.0)
    # The expected distance of two samples of one distribution, and about 2.3 of its deviations more.
    spread = np.sqrt(joint * (1 - joint) * (1 / max(n, 1.0) + 1 / max(m, 1.0)))
    chance = 0.5 * float(spread.sum() * np.sqrt(2 / np.pi) + 2.33 * np.sqrt((spread**2).sum()))
    return Drift(
        old.key, moved, chance, new.unseen, old.missing / max(rows_before, 1), new.missing / max(rows_now, 1)
    )  # fmt: skip


def _parts(column: ColumnSummary) -> dict[int, int]:
    """Rows by bin or by level; levels never seen are one more."""
    if column.in_bins:
        return dict(enumerate(column.in_bins))
    return {**dict(column.levels), -1: column.unseen}


def add_drift(page: Page, before: TableSummary | None, now: TableSummary, schema: Schema, data: str) -> None:
    """How the columns of a table differ from those of the training table."""
    if before is None:
        page.line("without one, drift against training cannot be told")
        return
    page.heading("Drift")
    page.line(f"{data}, {counted(now.rows, 'row')}, beside the training table of {counted(before.rows, 'row')}")
    found = drift_of(before, now)
    real = [x for x in found if x.moved > x.chance]
    if not real:
        page.line("no column differs more than two samples of one table would")
        return
    page.line(f"{counted(len(real), 'column')} of {len(found)} differ more than two samples of one table would")
    shown = found[:MOST_BARS]
    names, moved = [key_text(x.key) for x in shown], [x.moved for x in shown]
    tones = ["minus" if x.moved > x.chance else "muted" for x in shown]
    texts = [share(x.moved) + ("" if x.moved > x.chance else " (chance)") for x in shown]
    drawing = bars_drawing(names, moved, texts, "how far each column has moved", tones or ("muted",))
    headings = ("column", "moved", "by chance up to", "missing before", "missing now", "never seen")
    rows = [
        (key_text(x.key), *map(share, (x.moved, x.chance, x.missing_before, x.missing_now)), number(x.unseen))
        for x in found
    ]
    reading = (
        "How far a column has moved: the share of its rows that would have to change to look like training. "
        "Numbers are compared in twentieths of the training table, levels one by one. Grey bars may be chance."
    )
    page.picture("How far each column has moved", drawing, grid_of(headings, rows, right=headings[1:]), reading)
