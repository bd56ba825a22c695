"""The columns of a table: how they were read and why, what they hold, what is missing, and how far they moved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.pictures.chart import PANEL, Axis, bar_chart
from softcount.pictures.text import format_count, format_list, format_number, format_share
from softcount.report.page import OPEN, Page, Redaction, key_text, make_grid, pick
from softcount.table.column_summary import ColumnSummary, TableSummary
from softcount.table.schema import Field, Key, Kind, Schema

if TYPE_CHECKING:
    from softcount.learn.record import FitRecord, Learned

REPORT_COLUMNS, REPORT_BARS = 120, 20
"""Columns that have a line in a report, and a bar in a picture."""
FIRST = (
    "only one class", "matches the class exactly", "predicts the class without error", "overconfident",
    "different values in", "has one row", "have one row each", "fewer than", "interrupted", "of the improvement of",
    "without a label", "far from the rest",
)  # fmt: skip
"""What the most important notes contain, the most important first."""
LISTED = 3
"""Columns that a line of several notes names."""
Missing = Mapping[Key, float]
"""Missing cells by column; a column that was not read has no entry."""


def subject_of(fitted: Learned, otherwise: str = "") -> str:
    """Name the table and the target, "titanic: survived"; `otherwise` is the table's name if the record has none."""
    origin = fitted.record.provenance
    file = "" if origin is None else Path(origin.data).name
    table = file.split(".")[0] or file if "." in file else otherwise
    target = "" if fitted.target is None else key_text(fitted.target)
    return ": ".join(name for name in (table, target) if name)


def column_records(schema: Schema, missing: Missing) -> list[dict[str, Any]]:
    """Return how each column was understood; of a text column, which may have millions of words, only how many."""
    return [
        {
            "column": spec.key, "kind": str(spec.kind), **pick(spec, "why", "used", "declared"),
            "missing": missing.get(spec.key),
            **({"words": len(spec.levels)} if spec.kind is Kind.TEXT else {"levels": spec.levels}),
        }
        for spec in schema.fields
    ]  # fmt: skip


def schema_record(schema: Schema, n_rows: int, missing: Missing, notes: Sequence[str] = ()) -> dict[str, Any]:
    columns = column_records(schema, missing)
    return {"rows": n_rows, "columns": columns, "missing_words": schema.missing, "notes": notes}


def schema_page(schema: Schema, n_rows: int, missing: Missing, notes: Sequence[str] = ()) -> Page:
    page = Page()
    page.heading(f"{format_count(n_rows, 'row')}, {format_count(len(schema.fields), 'column')}")
    add_columns(page, schema, missing, n_rows)
    left_out = [key_text(spec.key) for spec in schema.fields if not spec.used]
    if left_out:
        page.heading("Left out")
        use = remedies.kind(left_out[0], "categorical")
        page.line(f"{format_list(left_out)}. To use one anyway, declare its kind: {use}")
    add_notes(page, notes)
    return page


def add_notes(page: Page, notes: Sequence[str]) -> None:
    if notes:
        page.heading("Notes")
        page.notes(notes)


def add_ordered_notes(page: Page, notes: Sequence[str]) -> None:
    """Add notes to the first screen of a report: like ones as one, the most important first."""
    if notes:
        page.heading("Notes", level=2)
        page.notes(order_notes(group_notes(notes)))


def trouble_of(notes: Sequence[str]) -> list[str]:
    """Return the notes that everybody should read before they trust a model, the most important first."""
    return [note for note in order_notes(group_notes(notes)) if any(words in note for words in FIRST)]


def order_notes(notes: Sequence[str]) -> list[str]:
    def place(note: str) -> int:
        return next((at for at, words in enumerate(FIRST) if words in note), len(FIRST))

    return sorted(notes, key=place)


NAMES = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_VARIES = re.compile(r"--kind \S+=|\d[\d.,]*")


def group_notes(notes: Iterable[str]) -> list[str]:
    """Merge notes that differ only in names and numbers: the first in full, with the columns of the others.

    >>> group_notes([f"column {name!r} is always {place}: left out" for place, name in enumerate("abcdef")])
    ["column 'a' is always 0: left out (likewise 'b', 'c', 'd' and 2 more)"]
    """
    groups: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        groups.setdefault(_VARIES.sub("#", NAMES.sub("#", note)), []).append(note)
    found = []
    for first, *others in groups.values():
        names = [match[0] for note in others if (match := NAMES.search(note)) is not None]
        more = f" (likewise {format_list(list(dict.fromkeys(names)), LISTED)})" if names else ""
        found += [f"{first.rstrip('.') if more else first}{more}"] if len(names) == len(others) else [first, *others]
    return found


def add_columns(
    page: Page, schema: Schema, missing: Missing, n_rows: float, most: int | None = None,
    redaction: Redaction = OPEN, more: Mapping[str, Callable[[Field], str]] = {},
) -> None:  # fmt: skip
    """Add a line for each column: its kind and why, the share of missing cells, and further cells by heading."""
    lines = []
    for spec in schema.fields[:most]:
        role = str(spec.kind) if spec.used else "left out" if spec.declared else f"{spec.kind} (left out)"
        share = format_share(float(missing[spec.key]) / n_rows) if spec.key in missing and n_rows > 0 else "-"
        why = spec.why if redaction.shows_cells else "-"
        lines.append((key_text(spec.key), role, why, share, *(describe(spec) for describe in more.values())))
    page.grid(("column", "kind", "why", "missing", *more), lines, right=("missing",))
    page.rest(len(schema.fields) - len(lines), "column", after="more (--json has all)")


def add_missing(page: Page, fitted: Learned) -> None:
    page.heading("Missing and left out")
    missing = [f"{key_text(key)} ({n:,.0f})" for key, n in fitted.missing.items() if n > 0]
    if missing:
        cells = format_count(sum(fitted.missing.values()), "missing cell")
        page.line(f"{cells}, treated as unknown; no row was dropped: {format_list(missing)}")
    else:
        page.line("no missing cells")
    left_out = [f"{key_text(spec.key)} ({spec.why})" for spec in fitted.schema.fields if not spec.used]
    if left_out:
        page.line(f"{format_count(len(left_out), 'column')} left out: {format_list(left_out)}")


def describe_starts(agreed: tuple[int, int]) -> str:
    return f"{agreed[0]} of {format_count(agreed[1], 'initialisation')} reached the best"


# -- data quality in a report


def add_quality(page: Page, fitted: Learned, redaction: Redaction, given: TableSummary | None = None) -> None:
    """Add the columns, what is missing, and copies; if the training table was not kept, of the table given."""
    page.heading("Data quality")
    table = fitted.record.table
    held = table or given
    cells = {"content": lambda spec: _describe_cells(spec, None if held is None else held.column(spec.key), redaction)}
    rows = fitted.counts.rows
    add_columns(page, fitted.schema, fitted.missing, rows, REPORT_COLUMNS, redaction, cells)
    if table is None:
        instead = "" if given is None else "; the column 'content' describes the table given"
        kept = "softcount fit keeps one, a fit in Python of up to a million cells"
        page.line(f"no summary of the training table is in this model: {kept}{instead}")
    _add_missing_picture(page, fitted, table)
    if table is not None and table.copies is not None:
        same = format_count(table.copies, "row")
        page.line(f"{same} equal to an earlier one in every column" if table.copies else "no duplicate rows")


def _describe_cells(spec: Field, found: ColumnSummary | None, redaction: Redaction) -> str:
    """Describe a column in a few words: its middle half, or its commonest categories."""
    if found is None or not spec.used:
        return "-"
    if found.quantiles:
        low, middle, high = (redaction.number(found.quantiles[at], 3) for at in (5, 10, 15))
        if found.there < 20 and not redaction.shows_cells:
            return "-"
        words = "words of a document: " if spec.kind is Kind.TEXT else ""
        return f"{words}median {middle}, half between {low} and {high}"
    names = [
        f"{redaction.level(spec.key, spec.levels[place])}: {format_share(n / max(found.there, 1))}"
        for place, n in found.levels[:3]
    ]
    more = len(spec.levels) - len(names)
    return ", ".join(names) + (f", {more} more" if more > 0 else "")


def _add_missing_picture(page: Page, fitted: Learned, table: TableSummary | None) -> None:
    rows = max(fitted.counts.rows, 1.0)
    missing = sorted(((key, n / rows) for key, n in fitted.missing.items() if n > 0), key=lambda x: -x[1])
    if not missing:
        page.line("no missing cells")
        return
    names, parts = [key_text(key) for key, _ in missing[:REPORT_BARS]], [part for _, part in missing[:REPORT_BARS]]
    description = "share of the cells that are missing, by column"
    chart = bar_chart(names, parts, list(map(format_share, parts)), description, room=140, width=PANEL)
    chart = replace(chart, x=Axis(ends=(0.0, 1.0), ticks={}))
    lines = [(key_text(key), format_share(part)) for key, part in missing]
    numbers = make_grid(("column", "missing"), lines, None)
    reading = "Bars go up to 100 % of the rows. A missing cell changes no count and no prediction."
    page.picture("Missing cells", chart, numbers, reading, small=True)
    if table is None or not table.together:
        return
    pairs = []
    for first, second, both in table.together:
        a, b = table.columns[first], table.columns[second]
        by_chance = a.missing * b.missing / max(table.rows, 1)
        if both > by_chance + 3.0 * by_chance**0.5:
            pairs.append((key_text(a.key), key_text(b.key), format_number(both), format_number(by_chance, 3)))
    if not pairs:
        page.line("no two columns are missing together more often than by chance")
        return
    page.heading("Missing together more often than by chance", level=2)
    page.grid(("column", "and", "rows that miss both", "by chance"), pairs[:8], ("rows that miss both", "by chance"))


def add_origin(page: Page, record: FitRecord, redaction: Redaction) -> None:
    page.heading("Where it comes from")
    origin = record.provenance
    if origin is None:
        page.line("not in this model file: the model was merged, or made by hand")
        return
    rows = [("Softcount", origin.version), ("seed", str(origin.seed))]
    if redaction.shows_cells:
        page.line(origin.command)
        rows.append(("data", origin.data))
    rows.append(("SHA-256 of the data", origin.sha256 or "not known: the data were not a file"))
    page.grid(("", "value"), rows)


# -- drift


class Drift(Struct, frozen=True):
    """How far a column has moved from its training table.

    `moved` is the share of the rows that would have to change to undo it; `chance` the distance that two samples of
    these sizes exceed about one time in a hundred.
    """

    key: Key
    moved: float
    chance: float
    unseen: int
    missing_before: float
    missing_now: float


def find_drift(before: TableSummary, now: TableSummary) -> list[Drift]:
    found = []
    for old, new in zip(before.columns, now.columns, strict=True):
        parts = [
            dict(enumerate(x.in_bins)) if x.in_bins else {**dict(x.levels), -1: x.unseen}  # unseen ones are one more
            for x in (old, new)
        ]
        cells = sorted(parts[0].keys() | parts[1].keys())
        a, b = (np.array([part.get(cell, 0) for cell in cells], dtype=float) for part in parts)
        n, m = a.sum(), b.sum()
        moved = 0.5 * float(np.abs(a / n - b / m).sum()) if n and m else 0.0
        joint = (a + b) / max(n + m, 1.0)
        # The expected distance of two samples of one distribution, and about 2.3 of its deviations more.
        spread = np.sqrt(joint * (1 - joint) * (1 / max(n, 1.0) + 1 / max(m, 1.0)))
        chance = 0.5 * float(spread.sum() * np.sqrt(2 / np.pi) + 2.33 * np.sqrt((spread**2).sum()))
        missing = old.missing / max(before.rows, 1), new.missing / max(now.rows, 1)
        found.append(Drift(old.key, moved, chance, new.unseen, *missing))
    return sorted(found, key=lambda x: -x.moved)


def add_drift(page: Page, before: TableSummary | None, now: TableSummary, data: str) -> None:
    if before is None:
        page.line("without one, drift against training is not known")
        return
    page.heading("Drift")
    training = format_count(before.rows, "row")
    page.line(f"{data}, {format_count(now.rows, 'row')}, compared with the training table of {training}")
    found = find_drift(before, now)
    real = [x for x in found if x.moved > x.chance]
    if not real:
        page.line("no column differs by more than chance")
        return
    page.line(f"{format_count(len(real), 'column')} of {len(found)} differ by more than chance")
    shown = found[:REPORT_BARS]
    tones = ["minus" if x.moved > x.chance else "muted" for x in shown]
    texts = [format_share(x.moved) + ("" if x.moved > x.chance else " (chance)") for x in shown]
    names = [key_text(x.key) for x in shown]
    chart = bar_chart(
        names, [x.moved for x in shown], texts, "how far each column has moved", tones, room=140, width=PANEL
    )
    headings = ("column", "moved", "by chance up to", "missing before", "missing now", "unseen")
    shares = [[format_share(s) for s in (x.moved, x.chance, x.missing_before, x.missing_now)] for x in found]
    rows = [(key_text(x.key), *own, format_number(x.unseen)) for x, own in zip(found, shares, strict=True)]
    reading = (
        "How far a column has moved: the share of its rows that would have to change to look like training. "
        "Numbers are compared in twentieths of the training table, categories one by one. Grey bars may be chance."
    )
    page.picture("Drift by column", chart, make_grid(headings, rows, None), reading, small=True)
