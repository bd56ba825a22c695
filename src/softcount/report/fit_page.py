"""What `softcount fit` says when it is done."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcount.report.class_page import add_cards
from softcount.report.column_page import HEADINGS, column_lines, missing_share
from softcount.report.json_page import key_text
from softcount.report.model_page import (
    SIDE_BY_SIDE,
    add_apart,
    add_groups,
    add_missing,
    add_notes,
    headline,
    model_document,
)
from softcount.report.page import Page
from softcount.report.plain_text import counted
from softcount.report.reliability import add_evaluation, evaluation_document
from softcount.report.selection_page import add_selection

if TYPE_CHECKING:
    from softcount.evaluate.scores import Evaluation
    from softcount.fitted.fitted_model import Fitted


@dataclass(frozen=True, slots=True)
class FitReport:
    """A fit and what became of it. `evaluation` is None where the model was not tried on unseen rows.

    `criterion` is what the number of classes was chosen by, if it was; `reading`, the options the data were read with.
    """

    fitted: Fitted
    evaluation: Evaluation | None
    n_rows: int
    saved: str
    data: str
    criterion: str = "evidence"
    reading: tuple[str, ...] = ()


def fit_page(report: FitReport) -> Page:
    fitted = report.fitted
    page = Page()
    _add_columns(page, report)
    page.heading(headline(fitted))
    if fitted.classes is None:
        _add_search(page, report)
    else:
        add_evaluation(page, report.evaluation, fitted.calibration)
    add_groups(page, fitted)
    add_apart(page, fitted)
    if fitted.n_groups > SIDE_BY_SIDE:
        add_cards(page, fitted)
    add_missing(page, fitted)
    add_notes(page, fitted.notes)
    _add_saved(page, report)
    return page


def _add_columns(page: Page, report: FitReport) -> None:
    """The columns as understood, the target last."""
    fitted = report.fitted
    lines = column_lines(fitted.schema, fitted.missing, report.n_rows)
    if fitted.target is not None:
        missing = missing_share(fitted.target, fitted.missing, report.n_rows)
        lines.append((key_text(fitted.target), "target", counted(fitted.n_groups, "class", "classes"), missing))
    page.heading(f"{counted(report.n_rows, 'row')}, {counted(len(lines), 'column')}")
    page.grid(HEADINGS, lines, right=("missing",))


def _add_search(page: Page, report: FitReport) -> None:
    """How the classes were found, and whether another search would find the same."""
    fitted = report.fitted
    add_selection(page, fitted, report.criterion)
    page.line(f"log-likelihood {fitted.log_likelihood or 0.0:,.3f}; {_ending(fitted)}")
    if fitted.agreed is not None and fitted.n_groups > 1:
        best, run = fitted.agreed
        page.line(f"{best} of {counted(run, 'start')} reached the best")
        if best == 1 and run > 1:
            # While a number is looked for, each gets a few starts; all that are asked for go to one that is given.
            given = f"--classes {fitted.n_groups} " if fitted.selection else ""
            page.line(f"more starts may find better classes: {given}--starts {10 * run}")


def _ending(fitted: Fitted) -> str:
    steps = counted(fitted.n_iter, "iteration")
    if fitted.interrupted:
        return f"interrupted after {steps}: the best so far"
    return f"converged after {steps}" if fitted.converged else f"stopped after {steps}, before it had converged"


def _add_saved(page: Page, report: FitReport) -> None:
    page.heading("Saved")
    page.line(f"the model, in {report.saved}" if report.saved != "-" else "the model, to standard output")
    page.heading("Next")
    page.lines(next_commands(report))


def next_commands(report: FitReport) -> list[str]:
    """Commands that go on from here, as one would type them."""
    model = "MODEL" if report.saved == "-" else shlex.quote(report.saved)
    data = "DATA" if report.data == "-" else shlex.quote(report.data)
    data = " ".join([data, *report.reading])
    if report.fitted.classes is None:
        return [f"softcount show {model} {data}", f"softcount predict {model} {data}"]
    return [f"softcount explain {model} {data} --row 1", f"softcount predict {model} {data} -o predicted.csv"]


def fit_document(report: FitReport) -> dict[str, Any]:
    """The same as data: the model, the evaluation and where it was saved."""
    return {
        **model_document(report.fitted),
        "evaluation": evaluation_document(report.evaluation),
        "criterion": report.criterion if report.fitted.selection else None,
        "saved": report.saved,
        "next": next_commands(report),
    }
