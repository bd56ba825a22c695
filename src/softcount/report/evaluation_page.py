"""How well a model did on rows it had not seen, whether its probabilities mean what they say, and its rivals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from softcount.fitted.fitted import Bin, Calibration, calibration_error, overstated
from softcount.report.page import Page
from softcount.report.plain_text import counted, number, share

if TYPE_CHECKING:
    from softcount.evaluate.ranking import LiftLine
    from softcount.evaluate.scores import Evaluation
    from softcount.fitted.fitted import Fitted
    from softcount.learn.record import Trial


REMEDY = " (--calibrate temperature, or isotonic)"
HEADINGS = ("probability", "rows", "stated", "right")


def add_evaluation(
    page: Page, evaluation: Evaluation | None, calibration: Calibration | None = None, calibrates: bool = True
) -> None:
    """The figures beside those of the commonest class; a table of reliability where there is something to see.

    The remedy for probabilities that are too sure is named where the model `calibrates`.
    """
    if evaluation is None:
        page.line("not tried on unseen rows (--folds 0, too few labelled rows, or rows that stayed where they are)")
    else:
        intro = f"{evaluation.how}, on rows the model had not seen"
        add_figures(page, evaluation, f"{intro} ({counted(evaluation.n_rows, 'labelled row')}):")
    if calibration is not None:
        add_calibration(page, calibration)
        add_bins(page, calibration.after)
    elif evaluation is not None:
        add_doubts(page, evaluation, REMEDY if calibrates else "")


def add_figures(page: Page, evaluation: Evaluation, intro: str) -> None:
    """Every figure beside that of the commonest class, after a line that says of which rows."""
    page.line(intro)
    spread = evaluation.log_loss_spread
    of_folds = f" ± {number(spread, 2)}" if spread > 0 else ""
    rows = [
        ("accuracy", share(evaluation.accuracy), share(evaluation.baseline_accuracy)),
        ("balanced accuracy", share(evaluation.balanced_accuracy), share(evaluation.baseline_balanced_accuracy)),
        ("log-loss", number(evaluation.log_loss) + of_folds, number(evaluation.baseline_log_loss)),
    ]
    if evaluation.auc == evaluation.auc:
        rows += [
            ("Brier score", number(evaluation.brier), number(evaluation.baseline_brier)),
            ("AUC", number(evaluation.auc), number(0.5)),
            ("calibration error", number(evaluation.calibration_error, 3), ""),
        ]
    page.grid(("", "model", "majority baseline"), rows, right=("model", "majority baseline"))


def add_doubts(page: Page, evaluation: Evaluation, remedy: str) -> None:
    """What is said of a model that is surer than it should be, and what to do about it."""
    worst = overstated(evaluation.reliability)
    if worst is not None:
        page.line(
            "its probabilities are too sure of themselves: "
            f"of those stated as {_figure(worst.stated)}, {_figure(worst.right)} came true{remedy}"
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


MOST_CONFUSED = 12
"""Classes of which a table of confusion is shown; --json has all."""


def add_confusion(page: Page, evaluation: Evaluation, names: Sequence[str]) -> None:
    """How many rows of each true class were taken for which."""
    if len(names) > MOST_CONFUSED:
        page.line(f"the table of {len(names)} classes by {len(names)} predicted ones is in --json")
        return
    headings = ("true class", *names, "recall")
    rows = [
        (name, *map(number, line), share(line[place] / sum(line) if sum(line) else None))
        for place, (name, line) in enumerate(zip(names, evaluation.confusion, strict=True))
    ]
    said = [sum(line[place] for line in evaluation.confusion) for place in range(len(names))]
    right = [evaluation.confusion[place][place] for place in range(len(names))]
    rows.append(("precision", *(share(r / n if n else None) for r, n in zip(right, said, strict=True)), ""))
    page.line("predicted as:")
    page.grid(headings, rows, right=headings[1:])


def add_lift(page: Page, of: str, lines: Sequence[LiftLine]) -> None:
    """Rows ranked by the probability of a class, part by part."""
    page.line(f"rows by their probability of {of}, the highest first:")
    headings = ("part", "rows", f"of {of}", "share", "lift", "found so far", "lift so far")
    rows = [
        (str(x.part), number(x.rows), number(x.of_class), share(x.share), f"{x.lift:.2f}", share(x.captured),
         f"{x.lift_so_far:.2f}")
        for x in lines
    ]  # fmt: skip
    page.grid(headings, rows, right=headings)


def evaluation_document(evaluation: Evaluation | None) -> dict[str, Any] | None:
    """The figures as data; None where the model was not tried."""
    if evaluation is None:
        return None
    return {
        "how": evaluation.how,
        "rows": evaluation.n_rows,
        "accuracy": evaluation.accuracy,
        "balanced_accuracy": evaluation.balanced_accuracy,
        "log_loss": evaluation.log_loss,
        "brier": evaluation.brier,
        "auc": evaluation.auc,
        "confusion": [list(line) for line in evaluation.confusion],
        "baseline": {
            "accuracy": evaluation.baseline_accuracy,
            "balanced_accuracy": evaluation.baseline_balanced_accuracy,
            "log_loss": evaluation.baseline_log_loss,
            "brier": evaluation.baseline_brier,
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


# -- numbers of classes that were tried

CRITERIA = {
    "evidence": "the evidence (Cheeseman-Stutz), where larger is better",
    "bic": "BIC, where smaller is better",
    "icl": "ICL, where smaller is better",
    "cv": "the log-likelihood per row of rows held out (CV), where larger is better",
}
"""The ways to choose, as `--criterion` names them, in words."""

FIGURES = {"log_likelihood": "log-likelihood", "n_parameters": "params", "bic": "BIC", "mdl": "MDL bits",
           "icl": "ICL", "evidence": "evidence", "cv": "CV"}  # fmt: skip


def add_selection(page: Page, fitted: Fitted, criterion: str | None = None) -> None:
    """A line for each number of classes tried, the one chosen marked."""
    trials = fitted.selection or []
    if not trials:
        return
    page.line(f"their number chosen by {CRITERIA[criterion]}:" if criterion else "numbers of classes that were tried:")
    shown = [name for name in FIGURES if any(getattr(trial, name) is not None for trial in trials)]
    headings = ("classes", *(FIGURES[name] for name in shown), "")
    rows = [_trial_line(trial, shown, trial.classes == fitted.n_groups) for trial in trials]
    page.grid(headings, rows, right=headings[:-1])
    chosen = [trial for trial in trials if trial.classes == fitted.n_groups]
    if any(trial.reached < trial.classes and _tempting(trial, best) for trial in trials for best in chosen):
        page.line("where fewer classes hold rows than were asked for, that number is not chosen, whatever its figures")


def _trial_line(trial: Trial, shown: Sequence[str], chosen: bool) -> tuple[str, ...]:
    figures = (_trial_figure(getattr(trial, name), name) for name in shown)
    holds = "1 holds rows" if trial.reached == 1 else f"{trial.reached} hold rows"
    empty = "" if trial.reached >= trial.classes else holds
    return (str(trial.classes), *figures, "chosen" if chosen else empty)


def _tempting(trial: Trial, best: Trial) -> bool:
    """Whether some figure speaks for a trial rather than for the best."""
    held_out = trial.cv is not None and best.cv is not None and trial.cv > best.cv
    return trial.bic < best.bic or trial.icl < best.icl or trial.evidence > best.evidence or held_out


def _trial_figure(value: float | None, name: str) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:,.0f}" if name == "n_parameters" else f"{value:,.4f}" if name == "cv" else f"{value:,.1f}"


def selection_document(fitted: Fitted) -> list[dict[str, Any]] | None:
    """The same as data, or None where the number of classes was given."""
    if fitted.selection is None:
        return None
    return [{**trial.figures, "chosen": trial.classes == fitted.n_groups} for trial in fitted.selection]
