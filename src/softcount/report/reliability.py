"""How well a model did on rows it had not seen, and whether its probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from softcount.fitted.calibration import Bin, Calibration, calibration_error, overstated
from softcount.report.page import Page
from softcount.report.plain_text import counted, number, share

if TYPE_CHECKING:
    from softcount.evaluate.scores import Evaluation

HEADINGS = ("probability", "rows", "stated", "right")


def add_evaluation(page: Page, evaluation: Evaluation | None, calibration: Calibration | None = None) -> None:
    """The figures beside those of the commonest class; a table of reliability where there is something to see."""
    if evaluation is None:
        page.line("not tried on unseen rows (--folds 0, or too few labelled rows)")
    else:
        _add_figures(page, evaluation)
    if calibration is not None:
        add_calibration(page, calibration)
        add_bins(page, calibration.after)
    elif evaluation is not None:
        _add_doubts(page, evaluation)


def _add_figures(page: Page, evaluation: Evaluation) -> None:
    page.line(f"{evaluation.how}, on rows the model had not seen ({counted(evaluation.n_rows, 'labelled row')}):")
    rows = [
        ("accuracy", share(evaluation.accuracy), share(evaluation.baseline_accuracy)),
        ("balanced accuracy", share(evaluation.balanced_accuracy), share(evaluation.baseline_balanced_accuracy)),
        ("log-loss", number(evaluation.log_loss), number(evaluation.baseline_log_loss)),
    ]
    page.grid(("", "model", "majority baseline"), rows, right=("model", "majority baseline"))


def _add_doubts(page: Page, evaluation: Evaluation) -> None:
    """What is said of a model that is surer than it should be, and what to do about it."""
    worst = overstated(evaluation.reliability)
    if worst is not None:
        page.line(
            "its probabilities are too sure of themselves: "
            f"of those stated as {_figure(worst.stated)}, {_figure(worst.right)} came true "
            "(--calibrate temperature, or isotonic)"
        )
        add_bins(page, evaluation.reliability)
    elif evaluation.log_loss > evaluation.baseline_log_loss:
        page.line("its probabilities are too sure of themselves: trust the ranking more than the figures")


def add_calibration(page: Page, found: Calibration) -> None:
    """How the probabilities are corrected, and what that did."""
    how = f"temperature {number(found.temperature, 3)}" if found.temperature is not None else "isotonic curves"
    page.line(
        f"calibrated ({how}) on {counted(found.rows, 'row')} held out in five folds: "
        f"log-loss {number(found.log_loss_before)} -> {number(found.log_loss_after)}, "
        f"calibration error {number(calibration_error(found.before), 3)} -> {number(calibration_error(found.after), 3)}"
    )


def add_bins(page: Page, bins: Sequence[Bin]) -> None:
    """Predictions by the probability they were stated with: how many, how sure on average, how often right."""
    rows = [(f"{b.low:.1f} to {b.high:.1f}", number(b.rows), _figure(b.stated), _figure(b.right)) for b in bins]
    page.grid(HEADINGS, rows, right=HEADINGS[1:])


def _figure(value: float) -> str:
    """A probability to three places, which is 1 only where it is."""
    return f"{value:.3f}" if value == 1 or value < 0.9995 else "> 0.999"


def evaluation_document(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    return {
        "how": evaluation.how,
        "rows": evaluation.n_rows,
        "accuracy": evaluation.accuracy,
        "balanced_accuracy": evaluation.balanced_accuracy,
        "log_loss": evaluation.log_loss,
        "baseline": {
            "accuracy": evaluation.baseline_accuracy,
            "balanced_accuracy": evaluation.baseline_balanced_accuracy,
            "log_loss": evaluation.baseline_log_loss,
        },
        "calibration_error": evaluation.calibration_error,
        "reliability": [asdict(part) for part in evaluation.reliability],
        "folds": list(evaluation.folds),
    }


def calibration_document(found: Calibration | None) -> dict[str, Any] | None:
    """The correction and what it did, before and after."""
    if found is None:
        return None
    parts = {"before": found.before, "after": found.after}
    return {
        "method": found.method,
        "temperature": found.temperature,
        "rows": found.rows,
        "log_loss": {"before": found.log_loss_before, "after": found.log_loss_after},
        "calibration_error": {name: calibration_error(bins) for name, bins in parts.items()},
        "reliability": {name: [asdict(part) for part in bins] for name, bins in parts.items()},
    }
