"""Classifiers side by side, as a page, as data and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcount.pictures.lettered_curves import LETTERS, lettered_curves
from softcount.report.page import Page
from softcount.report.plain_text import counted, number, printable, share

if TYPE_CHECKING:
    from softcount.estimators.comparison import Comparison, LearningCurves, RivalScores

HEADINGS = (
    "model", "log-loss", "behind", "±", "accuracy", "balanced", "Brier", "AUC", "calibration", "seconds", "size",
)  # fmt: skip
MOST_SIZES = 9
"""Sizes of training sets that fit beside each other on a page; --json has all."""


def comparison_page(found: Comparison, target: str, plot: str | None = None) -> Page:
    """Who tells the classes best, in words, then every figure; learning curves where there are some."""
    page = Page()
    page.heading(f"Classifiers of {printable(target)} side by side")
    page.line(f"{counted(found.rows, 'row')} of {counted(len(found.classes), 'class', 'classes')}; {found.how}")
    page.line(*found.verdicts)
    page.grid(HEADINGS, [_cells(found, scores) for scores in found.scores], right=HEADINGS[1:])
    page.line("behind: nats a row behind the lowest log-loss, ± a standard error of the rows; = is a tie with it")
    page.line("seconds: a fit and its predictions; size: the saved model, where it is Softcount's")
    whole = [f"{scores.name} {number(scores.joint)}" for scores in found.scores if scores.joint is not None]
    if len(whole) > 1:
        page.line(f"log-loss of whole rows, where there is a density of them: {', '.join(whole)}")
    for name, why in found.failed.items():
        page.line(f"not tried: {name} ({why})")
    page.line(*found.notes)
    if found.curves is not None:
        _add_curves(page, found.curves)
    if plot is not None:
        page.line(f"picture: {plot}")
    return page


def _cells(found: Comparison, scores: RivalScores) -> tuple[str, ...]:
    figures, gap = scores.figures, scores.behind
    first = scores is found.best
    tie = "= " if gap.is_tie and not first else ""
    return (
        scores.name, f"{figures.log_loss:.4f}", "" if first else f"{tie}{gap.mean:.4f}",
        "" if first else f"{gap.error:.4f}", share(figures.accuracy), share(figures.balanced_accuracy),
        f"{figures.brier:.4f}", f"{figures.auc:.4f}", f"{figures.calibration_error:.3f}",
        number(scores.seconds, 3), "-" if scores.size is None else _bytes(scores.size),
    )  # fmt: skip


def _bytes(size: int) -> str:
    return f"{size / 1000:,.0f} kB" if size < 10_000_000 else f"{size / 1e6:,.0f} MB"


def _add_curves(page: Page, curves: LearningCurves) -> None:
    """Log-loss by rows learned from: in words, drawn with a letter for each, and as a table."""
    places = range(max(0, len(curves.sizes) - MOST_SIZES), len(curves.sizes))
    sizes = [f"{curves.sizes[place]:,}" for place in places]
    page.heading("Log-loss by rows learned from")
    page.line(curves.words, "")
    page.line(*lettered_curves(curves.log_loss[:, places.start :], sizes, curves.ends), "")
    rows = [
        (LETTERS[line], name, *(number(float(curves.log_loss[line, place]), 3) for place in places))
        for line, name in enumerate(curves.names)
    ]
    page.grid(("", "model", *sizes), rows, right=sizes)


def comparison_document(found: Comparison, target: str) -> dict[str, Any]:
    """The same as data."""
    return {
        "target": target,
        "rows": found.rows,
        "classes": found.classes,
        "how": found.how,
        "verdicts": found.verdicts,
        "models": [scores.line() for scores in found.scores],
        "not_tried": found.failed,
        "notes": found.notes,
        "curves": None if found.curves is None else found.curves.table.to_pylist(),
    }
