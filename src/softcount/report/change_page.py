"""What changed between two models, as a page and as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from softcount.report.page import Page, key_text
from softcount.report.plain_text import number, share

if TYPE_CHECKING:
    from softcount.fitted.compare import ModelChanges

MOST_COLUMNS = 15
"""Columns that a page names; the data have all."""
MOST_LEVELS = 3


def change_page(found: ModelChanges, old: str, new: str) -> Page:
    """What changed, in the order of how much of a surprise it is: columns, classes, what columns look like."""
    page = Page()
    page.heading(f"From {old} to {new}")
    page.line(f"rows: {number(found.rows[0])}, then {number(found.rows[1])}")
    page.line(f"parameters: {found.parameters[0]:,}, then {found.parameters[1]:,}")
    if found.nothing:
        page.line("nothing else changed")
        return page
    if found.schema:
        page.heading("Columns and levels")
        for line in found.schema:
            page.line(line)
    if found.classes:
        page.heading("Classes")
        lines = [(str(x.name), share(x.before), share(x.after)) for x in found.classes]
        page.grid(("class", "share before", "after"), lines, right=("share before", "after"))
    page.heading("Columns that moved most (the share of a column's probability that lies elsewhere now)")
    within = any(x.within for x in found.columns)
    heads = ("column", "moved", "before", "after", *(("most in class", "there") if within else ()))
    page.grid(heads, [_line(x, within) for x in found.columns[:MOST_COLUMNS]], right=("moved", "there"))
    return page


def _line(change: Any, within: bool) -> tuple[str, ...]:
    most = (str(change.within[0]), share(change.within[1])) if change.within else ("", "")
    told = _both(change.before, change.after)
    return (key_text(change.column), share(change.moved), *told, *(most if within else ()))


def _both(before: Any, after: Any) -> tuple[str, str]:
    """A column in a few words, before and after: the levels that gained or lost most, or the middle and the spread."""
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return _figures(before), _figures(after)
    gain = {level: abs(before.get(level, 0.0) - after.get(level, 0.0)) for level in {**before, **after}}
    most = sorted(gain, key=lambda level: -gain[level])[:MOST_LEVELS]
    return tuple(", ".join(f"{level}: {share(one.get(level, 0.0))}" for level in most) for one in (before, after))  # type: ignore[return-value]


def _figures(answer: Any) -> str:
    if isinstance(answer, Mapping):
        return f"{len(answer)} levels"
    return f"mean {number(float(answer.mean), 4)}, sd {number(float(answer.variance) ** 0.5, 3)}"


def change_document(found: ModelChanges) -> dict[str, Any]:
    """The same as data."""
    return {
        "rows": list(found.rows),
        "parameters": list(found.parameters),
        "schema": list(found.schema),
        "classes": [{"class": x.name, "before": x.before, "after": x.after} for x in found.classes],
        "columns": [
            {
                "column": x.column,
                "moved": x.moved,
                "before": _data(x.before),
                "after": _data(x.after),
                "class": x.within and {"name": x.within[0], "moved": x.within[1]},
            }
            for x in found.columns
        ],
    }


def _data(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Mapping):
        return {"levels": [{"level": level, "probability": p} for level, p in answer.items()]}
    return {"mean": float(answer.mean), "variance": float(answer.variance)}
