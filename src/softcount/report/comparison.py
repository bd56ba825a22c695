"""Comparisons: classifiers on held-out rows, and two models of the same columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from softcount.pictures.text import LETTERS, format_count, format_number, format_share, lettered_curves, printable
from softcount.report.page import Page, key_text, pick

if TYPE_CHECKING:
    from softcount.fitted.compare import ColumnChange, ModelChanges

HEADINGS = (
    "model", "log-loss", "behind", "±", "accuracy", "balanced", "Brier", "AUC", "calibration", "seconds", "size",
)  # fmt: skip
PAGE_SIZES, CHANGED_COLUMNS, CHANGED_LEVELS = 9, 15, 3
"""Training sizes, changed columns and changed categories on a page; JSON has all."""


def comparison_page(found: Any, target: str, plot: str | None = None) -> Page:
    page = Page()
    page.heading(f"Classifiers of {printable(target)} side by side")
    page.line(
        f"{format_count(found.rows, 'row')} of {format_count(len(found.classes), 'class', 'classes')}; {found.how}"
    )
    page.line(*found.verdicts)
    page.grid(HEADINGS, [_cells(found, scores) for scores in found.scores], right=HEADINGS[1:])
    page.line("behind: nats per row behind the lowest log-loss, ± its standard error; = is a tie with the best")
    page.line("seconds: a fit and its predictions; size: the saved model, if Softcount made it")
    whole = [f"{scores.name} {format_number(scores.joint)}" for scores in found.scores if scores.joint is not None]
    if len(whole) > 1:
        page.line(f"log-loss of complete rows, for models with a density of rows: {', '.join(whole)}")
    for name, why in found.failed.items():
        page.line(f"not tried: {name} ({why})")
    page.line(*found.notes)
    if found.curves is not None:
        places = range(max(0, len(found.curves.sizes) - PAGE_SIZES), len(found.curves.sizes))
        sizes = [f"{found.curves.sizes[place]:,}" for place in places]
        page.heading("Log-loss by rows learned from")
        page.line(found.curves.words, "")
        page.line(*lettered_curves(found.curves.log_loss[:, places.start :], sizes, found.curves.ends), "")
        table = [
            (LETTERS[line], name, *(format_number(float(found.curves.log_loss[line, place]), 3) for place in places))
            for line, name in enumerate(found.curves.names)
        ]
        page.grid(("", "model", *sizes), table, right=sizes)
    if plot is not None:
        page.line(f"picture: {plot}")
    return page


def _cells(found: Any, scores: Any) -> tuple[str, ...]:
    figures, gap = scores.figures, scores.behind
    first = scores is found.best
    tie = "= " if gap.is_tie and not first else ""
    size = "-" if scores.size is None else f"{scores.size / 1000:,.0f} kB"
    size = size if (scores.size or 0) < 10_000_000 else f"{scores.size / 1e6:,.0f} MB"
    return (
        scores.name, f"{figures.log_loss:.4f}", "" if first else f"{tie}{gap.mean:.4f}",
        "" if first else f"{gap.error:.4f}", format_share(figures.accuracy), format_share(figures.balanced_accuracy),
        f"{figures.brier:.4f}", f"{figures.auc:.4f}", f"{figures.calibration_error:.3f}",
        format_number(scores.seconds, 3), size,
    )  # fmt: skip


def comparison_record(found: Any, target: str) -> dict[str, Any]:
    """Return classifiers on the same held-out rows, the best first."""
    return {
        "target": target, **pick(found, "rows", "classes", "how", "verdicts"),
        "models": [scores.line() for scores in found.scores], "not_tried": found.failed, "notes": found.notes,
        "curves": None if found.curves is None else found.curves.table.to_pylist(),
    }  # fmt: skip


# -- two models


def changes_record(found: ModelChanges) -> dict[str, Any]:
    columns = []
    for x in found.columns:
        answers = {"before": _answer_record(x.before), "after": _answer_record(x.after)}
        within = x.within and {"name": x.within[0], "moved": x.within[1]}
        columns.append({**pick(x, "column", "moved"), **answers, "class": within})
    return {
        **pick(found, "rows", "parameters", "schema"),
        "classes": [{"class": x.name, "before": x.before, "after": x.after} for x in found.classes],
        "columns": columns,
    }


def _answer_record(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Mapping):
        return {"levels": [{"level": level, "probability": p} for level, p in answer.items()]}
    return {"mean": float(answer.mean), "variance": float(answer.variance)}


def changes_page(found: ModelChanges, old: str, new: str) -> Page:
    page = Page()
    page.heading(f"From {old} to {new}")
    page.line(f"rows: {format_number(found.rows[0])}, then {format_number(found.rows[1])}")
    page.line(f"parameters: {found.parameters[0]:,}, then {found.parameters[1]:,}")
    if found.nothing:
        page.line("nothing else changed")
        return page
    if found.schema:
        page.heading("Columns and levels")
        page.line(*found.schema)
    if found.classes:
        page.heading("Classes")
        lines = [(str(x.name), format_share(x.before), format_share(x.after)) for x in found.classes]
        page.grid(("class", "share before", "after"), lines, right=None)
    page.heading("Columns that changed most (the share of a column's probability that moved to other values)")
    within = any(x.within for x in found.columns)
    rows = []
    for x in found.columns[:CHANGED_COLUMNS]:
        most = (str(x.within[0]), format_share(x.within[1])) if x.within else ("", "")
        rows.append((key_text(x.column), format_share(x.moved), *_describe_change(x), *(most if within else ())))
    heads = ("column", "moved", "before", "after", *(("most in class", "in this class") if within else ()))
    page.grid(heads, rows, right=("moved", "in this class"))
    return page


def _describe_change(change: ColumnChange) -> list[str]:
    """Describe a column before and after: the categories that gained or lost most, or mean and deviation."""
    both = change.before, change.after
    if not all(isinstance(x, Mapping) for x in both):
        return [
            f"{len(x)} levels" if isinstance(x, Mapping)
            else f"mean {format_number(float(x.mean), 4)}, sd {format_number(float(x.variance) ** 0.5, 3)}"
            for x in both
        ]  # fmt: skip
    before, after = both
    gain = {level: abs(before.get(level, 0.0) - after.get(level, 0.0)) for level in {**before, **after}}
    most = sorted(gain, key=lambda level: -gain[level])[:CHANGED_LEVELS]
    return [", ".join(f"{level}: {format_share(x.get(level, 0.0))}" for level in most) for x in both]
