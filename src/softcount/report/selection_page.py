"""The numbers of classes that were tried, and what speaks for each."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from softcount.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcount.fitted.fitted_model import Fitted
    from softcount.learn.choose import Trial

CRITERIA = {
    "evidence": "the evidence (Cheeseman-Stutz), where larger is better",
    "bic": "BIC, where smaller is better",
    "icl": "ICL, where smaller is better",
    "cv": "the log-likelihood per row of rows held out (CV), where larger is better",
}
"""The ways to choose, as `--criterion` names them, in words."""

FIGURES = {"log_likelihood": "log-likelihood", "n_parameters": "params", "bic": "BIC", "icl": "ICL",
           "evidence": "evidence", "cv": "CV"}  # fmt: skip


def add_selection(page: Page, fitted: Fitted, criterion: str | None = None) -> None:
    """A line for each number of classes tried, the one chosen marked."""
    trials = fitted.selection or []
    if not trials:
        return
    page.line(f"their number chosen by {CRITERIA[criterion]}:" if criterion else "numbers of classes that were tried:")
    shown = [name for name in FIGURES if any(getattr(trial, name) is not None for trial in trials)]
    headings = ("classes", *(FIGURES[name] for name in shown), "")
    rows = [_line(trial, shown, trial.classes == fitted.n_groups) for trial in trials]
    page.grid(headings, rows, right=headings[:-1])
    chosen = [trial for trial in trials if trial.classes == fitted.n_groups]
    if any(trial.reached < trial.classes and _tempting(trial, best) for trial in trials for best in chosen):
        page.line("where fewer classes hold rows than were asked for, that number is not chosen, whatever its figures")


def _line(trial: Trial, shown: Sequence[str], chosen: bool) -> tuple[str, ...]:
    figures = (_figure(getattr(trial, name), name) for name in shown)
    holds = "1 holds rows" if trial.reached == 1 else f"{trial.reached} hold rows"
    empty = "" if trial.reached >= trial.classes else holds
    return (str(trial.classes), *figures, "chosen" if chosen else empty)


def _tempting(trial: Trial, best: Trial) -> bool:
    """Whether some figure speaks for a trial rather than for the best."""
    held_out = trial.cv is not None and best.cv is not None and trial.cv > best.cv
    return trial.bic < best.bic or trial.icl < best.icl or trial.evidence > best.evidence or held_out


def _figure(value: float | None, name: str) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:,.0f}" if name == "n_parameters" else f"{value:,.4f}" if name == "cv" else f"{value:,.1f}"


def selection_document(fitted: Fitted) -> list[dict[str, Any]] | None:
    """The same as data, or None where the number of classes was given."""
    if fitted.selection is None:
        return None
    return [{**asdict(trial), "chosen": trial.classes == fitted.n_groups} for trial in fitted.selection]
