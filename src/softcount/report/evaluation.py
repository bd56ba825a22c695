"""How well a model does on rows it has not seen, whether its probabilities are right, and numbers of classes tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.fitted.calibration import Bin, Calibration, calibration_error, find_overstated
from softcount.pictures.chart import PAGE, PANEL, Axis, Cells, Chart, Line, Mark, Points, Rule, class_lines
from softcount.pictures.text import format_count, format_loss, format_number, format_share
from softcount.report.page import Figure, Grid, Page, make_grid, pick

if TYPE_CHECKING:
    from softcount.evaluate.ranking import LiftLine
    from softcount.evaluate.scores import Evaluation
    from softcount.fitted.fitted import Fitted

REMEDY = " (--calibrate temperature, or isotonic)"
CONFUSION_LINES, CONFUSION_PICTURE, CONFUSION_PANEL = 12, 16, 4
"""Classes up to which confusion is a table of text, a picture, and a small picture."""


def evaluation_record(found: Evaluation | None) -> dict[str, Any] | None:
    """Return the figures as data; `baseline` has those of always predicting the most frequent class."""
    if found is None:
        return None
    figures = ("accuracy", "balanced_accuracy", "log_loss", "brier")
    return {
        "how": found.how, "rows": found.n_rows, **pick(found, *figures, "auc", "confusion"),
        "baseline": {name: getattr(found, f"baseline_{name}") for name in figures},
        **pick(found, "calibration_error", "reliability", "folds"),
    }  # fmt: skip


def calibration_record(found: Calibration | None) -> dict[str, Any] | None:
    if found is None:
        return None
    bins = {"before": found.before, "after": found.after}
    return {
        **pick(found, "method", "temperature", "rows"),
        "log_loss": {"before": found.log_loss_before, "after": found.log_loss_after},
        "calibration_error": {name: calibration_error(own) for name, own in bins.items()},
        "reliability": bins,
    }


# -- as blocks of a page


def add_evaluation(
    page: Page, found: Evaluation, names: Sequence[str], intro: str, calibration: Calibration | None = None,
    remedy: str = REMEDY, full: bool = False, lift: bool = True,
) -> None:  # fmt: skip
    """Add the figures next to those of the majority class, and the reliability if something is wrong with it.

    In `full`, also folds, confusion, reliability and, if `lift`, gain as pictures; of held-out rows, which have a gain,
    a small confusion matrix is at the top of the page already.
    """
    add_figures(page, found, intro)
    if calibration is not None:
        add_calibration(page, calibration)
    else:
        add_overconfidence(page, found, remedy, bins=not full)
    if not full:
        return
    if len(found.folds) > 1:
        page.heading("Fold by fold", level=2)
        rows = [
            (str(k), format_number(fold["rows"]), format_share(fold["accuracy"]), format_loss(fold["log_loss"]))
            for k, fold in enumerate(found.folds, 1)
        ]
        headings = ("fold", "rows", "accuracy", "log-loss")
        page.grid(headings, rows, right=headings)
        right = [fold["accuracy"] for fold in found.folds]
        page.line(f"accuracy between {format_share(min(right))} and {format_share(max(right))} from fold to fold")
    if found.confusion and not (lift and shown_above(found)):
        add_confusion(page, found, names, picture=True)
    if found.reliability:
        _add_reliability(page, found.reliability)
    if lift and any(found.lift):
        _add_gain(page, found, names)


def add_figures(page: Page, found: Evaluation, intro: str) -> None:
    page.line(intro)
    spread = found.log_loss_spread
    of_folds = f" ± {format_number(spread, 2)}" if spread > 0 else ""
    rows = [
        ("accuracy", format_share(found.accuracy), format_share(found.baseline_accuracy)),
        ("balanced accuracy", format_share(found.balanced_accuracy), format_share(found.baseline_balanced_accuracy)),
        ("log-loss", format_loss(found.log_loss) + of_folds, format_loss(found.baseline_log_loss)),
    ]
    if found.auc == found.auc:
        rows += [
            ("Brier score", format_loss(found.brier), format_loss(found.baseline_brier)),
            ("AUC", format_loss(found.auc), format_loss(0.5)),
            ("calibration error", format_loss(found.calibration_error), ""),
        ]
    page.grid(("", "model", "majority baseline"), rows, right=None)


def add_overconfidence(page: Page, evaluation: Evaluation, remedy: str = "", bins: bool = True) -> None:
    """Warn about probabilities that are too near to 0 and 1, and name the remedy."""
    worst = find_overstated(evaluation.reliability)
    if worst is not None:
        page.line(
            "probabilities are overconfident: "
            f"of those stated as {_probability(worst.stated)}, {_probability(worst.right)} came true{remedy}"
        )
        if bins:
            _add_bins(page, evaluation.reliability)
    elif evaluation.log_loss > evaluation.baseline_log_loss:
        page.line("probabilities are overconfident: trust the ranking more than the figures")


def add_calibration(page: Page, found: Calibration, bins: bool = True) -> None:
    """Add how the probabilities are corrected, what that did, and their reliability afterwards."""
    how = f"temperature {format_number(found.temperature, 3)}" if found.temperature is not None else "isotonic curves"
    loss = " -> ".join(map(format_number, (found.log_loss_before, found.log_loss_after)))
    error = " -> ".join(format_number(calibration_error(own), 3) for own in (found.before, found.after))
    rows = format_count(found.rows, "row")
    page.line(f"calibrated ({how}) on {rows} held out in five folds: log-loss {loss}, calibration error {error}")
    if bins:
        _add_bins(page, found.after)


def _add_bins(page: Page, bins: Sequence[Bin]) -> None:
    rows = [
        (f"{b.low:.1f} to {b.high:.1f}", format_number(b.rows), _probability(b.stated), _probability(b.right))
        for b in bins
    ]
    page.grid(("probability", "rows", "stated", "came true"), rows, right=None)


def _probability(value: float) -> str:
    return f"{value:.3f}" if value == 1 or value < 0.9995 else "> 0.999"


def add_confusion(page: Page, evaluation: Evaluation, names: Sequence[str], picture: bool = False) -> None:
    """Add how many rows of each true class were predicted as which; of many classes, the most frequent mistakes."""
    table = np.array(evaluation.confusion)
    if len(names) > (CONFUSION_PICTURE if picture else CONFUSION_LINES):
        wrong = table - np.diag(np.diag(table))
        pairs = [divmod(int(at), len(names)) for at in np.argsort(-wrong, axis=None, kind="stable")[:20]]
        lines = [(names[i], names[j], format_number(float(table[i, j]))) for i, j in pairs if wrong[i, j] > 0]
        page.heading("Classes most often confused", level=2)
        page.grid(("true class", "predicted as", "rows"), lines, right=("rows",))
        return
    right, true, predicted = np.diag(table), table.sum(axis=1), table.sum(axis=0)
    texts = [list(map(format_number, line)) for line in table.tolist()]
    folds = [np.array(fold) for fold in evaluation.confusions] if picture else []
    rows = [
        (
            name, *texts[k], format_share(right[k] / true[k] if true[k] else None),
            *(f"{fold[k, k]:g} of {fold[k].sum():g}" for fold in folds),
        )
        for k, name in enumerate(names)
    ]  # fmt: skip
    precision = [format_share(right[k] / predicted[k] if predicted[k] else None) for k in range(len(names))]
    rows.append(("precision", *precision, *[""] * (1 + len(folds))))
    headings = ("true class", *names, "recall", *(f"fold {k}" for k in range(1, len(folds) + 1)))
    grid = make_grid(headings, rows, None)
    if not picture:
        page.line("predicted as:")
        page.blocks.append(grid)
        return
    tones = [["plus" if i == j else "minus" for j in range(len(names))] for i in range(len(names))]
    cells = Cells(table / np.where(true > 0, true, 1.0)[:, None], texts, tones)
    x, y = Axis("predicted as", labels=names), Axis("true class", labels=names)
    small = len(names) <= CONFUSION_PANEL
    rows_of = "Held-out rows" if evaluation.folds else "Rows"
    chart = Chart("confusion matrix", [cells], x, y, width=PANEL if small else PAGE, height=26)
    reading = (
        f"{rows_of} by true and predicted class. Blue: correct. Orange: mistakes. The deeper the shade, "
        "the larger the share of the true class."
    )
    page.picture("Confusion matrix", chart, grid, reading, small)


def add_lift(page: Page, of: str, lines: Sequence[LiftLine]) -> None:
    page.line(f"rows by their probability of {of}, the highest first:")
    headings = ("part", "rows", f"of {of}", "share", "lift", "found so far", "lift so far")
    rows = [
        (str(x.part), format_number(x.rows), format_number(x.of_class), format_share(x.share), f"{x.lift:.2f}",
         format_share(x.captured), f"{x.lift_so_far:.2f}")
        for x in lines
    ]  # fmt: skip
    page.grid(headings, rows, right=headings)


def _add_reliability(page: Page, bins: Sequence[Bin]) -> None:
    rows = [
        (f"{b.low:.1f} to {b.high:.1f}", format_number(b.rows), f"{b.stated:.3f}", f"{b.right:.3f}",
         "{:.3f} and {:.3f}".format(*_wilson(b)))
        for b in bins
    ]  # fmt: skip
    reading = (
        "Predicted probability, and the share of these rows where it came true. Dots below the dashed line: the model "
        "is overconfident. Larger dots have more rows; bars are 95 % intervals."
    )
    headings = ("probability", "rows", "stated", "came true", "between")
    page.picture("Reliability", reliability_chart(bins), make_grid(headings, rows, None), reading, small=True)


def reliability_chart(bins: Sequence[Bin]) -> Chart:
    """Describe stated probabilities against how often they came true, with 95 % intervals."""
    marks: list[Any] = [Line([0, 1], [0, 1], tone="muted", width=1.2, dashes="4 4")]
    most = max(b.rows for b in bins)
    for b in bins:
        title = f"stated {b.stated:.3f}, came true {b.right:.3f}, {b.rows:,.0f} rows"
        marks.append(Line([b.stated] * 2, _wilson(b), tone="plus", strength=0.45))
        marks.append(Points([b.stated], [b.right], "plus", 2.5 + 5.5 * (b.rows / most) ** 0.5, 1.0, title))
    x, y = Axis("probability stated", (0.0, 1.0)), Axis("share that came true", (0.0, 1.0))
    return Chart("stated probability against how often it came true", marks, x, y, height=236)


def _wilson(b: Bin) -> tuple[float, float]:
    """Return Wilson's 95 % interval of the share that came true."""
    n, p, z = b.rows, b.right, 1.96
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5 / (1 + z * z / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _add_gain(page: Page, found: Evaluation, names: Sequence[str]) -> None:
    shown = [(name, lines) for name, lines in zip(names, found.lift, strict=True) if lines]
    if len(names) == 2:  # the second's is the first's from the other end
        shown = sorted(shown, key=lambda pair: sum(x.of_class for x in pair[1]))[:1]
    curves = [[0.0, *(x.captured for x in lines)] for _, lines in shown]
    named = [name for name, _ in shown]
    marks = class_lines(named, np.linspace(0.0, 1.0, 11), curves, dots=3.2)
    marks.append(Line([0, 1], [0, 1], "by chance", "muted", 1.0, strength=0.45))
    x, y = Axis("share of the rows selected", (0.0, 1.0)), Axis("share of the class found", (0.0, 1.0))
    chart = Chart("gain curves by class", marks, x, y, named if len(named) > 1 else (), height=236)
    headings = ("part", *(x for name in named for x in (f"found of {name}", "lift")))
    rows = [[str(k)] for k in range(1, 11)]
    for _, lines in shown:
        for row, part in zip(rows, lines, strict=True):
            row += [format_share(part.captured), f"{part.lift_so_far:.2f}"]
    of = named[0] if len(named) == 1 else "each class"
    reading = f"Share of {of} among the rows with the highest predicted probability. The grey line is random order."
    page.picture("Gain and lift", chart, make_grid(headings, rows, headings), reading, small=True)


def list_figures(tried: Evaluation | None, rows: float) -> list[Figure]:
    """Return the figures for the top of a page: scores on held-out rows next to those of the baseline, and the rows."""
    found = []
    if tried is not None:
        usual, loss = format_share(tried.baseline_accuracy), format_number(tried.baseline_log_loss, 3)
        found += [
            Figure("Accuracy", format_share(tried.accuracy), f"majority class {usual}"),
            Figure("Log-loss", format_number(tried.log_loss, 3), f"baseline {loss}"),
        ]
        if tried.auc == tried.auc:
            found.append(Figure("AUC", format_number(tried.auc, 3), "chance 0.5"))
    if rows > 0:
        found.append(Figure("Rows", format_number(rows), "in training" if tried is None else tried.how))
    return found


def summarize_evaluation(found: Evaluation) -> str:
    rows = format_count(found.n_rows, "labelled row")
    line = f"Accuracy {format_share(found.accuracy)} on {rows} that it had not seen"
    usual = f"always predicting the most frequent class has {format_share(found.baseline_accuracy)}"
    return f"{line}{', no better than guessing' if found.accuracy - found.baseline_accuracy <= 0.01 else ''}; {usual}."


def shown_above(tried: Evaluation | None) -> bool:
    """Whether the confusion matrix of held-out rows is small enough for the top of a report."""
    return tried is not None and 0 < len(tried.confusion) <= CONFUSION_PANEL


def add_warning(page: Page, tried: Evaluation | None) -> None:
    if tried is not None and tried.accuracy - tried.baseline_accuracy <= 0.01:
        page.line("On held-out rows the model is no better than always predicting the most frequent class.")


# -- numbers of classes that were tried

CRITERIA = {
    "evidence": "the marginal likelihood (Cheeseman-Stutz), larger is better",
    "bic": "BIC, smaller is better",
    "icl": "ICL, smaller is better",
    "cv": "the log-likelihood per held-out row (CV), larger is better",
}
"""The values of `--criterion` in words."""

TRIAL_FIGURES = {"log_likelihood": "log-likelihood", "n_parameters": "params", "bic": "BIC", "mdl": "MDL bits",
                 "icl": "ICL", "evidence": "evidence", "cv": "CV"}  # fmt: skip


def add_selection(page: Page, fitted: Fitted, criterion: str | None = None, picture: bool = False) -> None:
    """Add a line for each number of classes that was tried, the chosen one marked; or a picture with these numbers."""
    trials = fitted.selection or []
    if not trials:
        return
    meaning, comparable = CRITERIA.get(criterion or ""), [x for x in trials if x.reached >= x.classes]
    if picture and len(comparable) > 1:
        name = criterion or "evidence"
        heights = [float("nan") if (value := getattr(x, name)) is None else value for x in comparable]
        line = Line([x.classes for x in comparable], heights, name, dots=3.2)
        marks: list[Mark] = [Rule(float(fitted.n_groups), "chosen"), line]
        chart = Chart("the criterion by number of classes", marks, Axis("classes"), Axis(name))
        reading = f"The number of classes was chosen by {CRITERIA.get(name, name)}."
        page.picture("How many classes", chart, _selection_grid(fitted), reading, small=True)
    else:
        page.line(f"number of classes chosen by {meaning}:" if meaning else "numbers of classes that were tried:")
        page.blocks.append(_selection_grid(fitted))
    chosen = next((x for x in trials if x.classes == fitted.n_groups), None)
    if chosen is not None and any(
        x.bic < chosen.bic or x.icl < chosen.icl or x.evidence > chosen.evidence
        or (x.cv is not None and chosen.cv is not None and x.cv > chosen.cv)
        for x in trials if x.reached < x.classes
    ):  # fmt: skip
        page.line("numbers with empty classes are not chosen")


def _selection_grid(fitted: Fitted) -> Grid:
    trials = fitted.selection or []
    shown = [name for name in TRIAL_FIGURES if any(getattr(trial, name) is not None for trial in trials)]
    rows = []
    for trial in trials:
        note = f"{trial.reached} not empty"
        note = "chosen" if trial.classes == fitted.n_groups else note if trial.reached < trial.classes else ""
        figures = []
        for name in shown:
            value, digits = getattr(trial, name), {"n_parameters": 0, "cv": 4}.get(name, 1)
            figures.append("-" if value is None or value != value else f"{value:,.{digits}f}")
        rows.append((str(trial.classes), *figures, note))
    headings = ("classes", *(TRIAL_FIGURES[name] for name in shown), "")
    return make_grid(headings, rows, right=headings[:-1])
