"""How good a model of known classes is, as pictures: who is taken for whom, reliability, lift, fold by fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from softcount.fitted.fitted import overstated
from softcount.pictures.curve_pictures import (
    LinePlot,
    PlottedLine,
    ReliabilityPoint,
    lines_drawing,
    reliability_drawing,
)
from softcount.pictures.table_pictures import ShadedTable, shaded_drawing
from softcount.report.evaluation_page import add_calibration, add_figures
from softcount.report.page import Page, grid_of
from softcount.report.plain_text import counted, number, share

if TYPE_CHECKING:
    from softcount.evaluate.scores import Evaluation
    from softcount.fitted.fitted import Bin, Calibration

MOST_CONFUSED = 16
"""Classes up to which confusion is a picture; of more, the pairs most often confused are listed."""


def add_performance(
    page: Page, found: Evaluation, names: Sequence[str], intro: str, calibration: Calibration | None = None,
    lift: bool = True,
) -> None:  # fmt: skip
    """All figures and pictures of one evaluation, that of lift where it is wanted."""
    add_figures(page, found, intro)
    if calibration is not None:
        add_calibration(page, calibration)
    else:
        _add_doubts(page, found)
    _add_folds(page, found)
    if found.confusion:
        _add_confusion(page, found, names)
    if found.reliability:
        _add_reliability(page, found.reliability)
    if lift and any(found.lift):
        _add_lift(page, found, names)


def _add_doubts(page: Page, found: Evaluation) -> None:
    worst = overstated(found.reliability)
    if worst is not None:
        said = f"of those stated as {worst.stated:.3f}, {worst.right:.3f} came true"
        page.line(f"Its probabilities are too sure of themselves: {said} (softcount fit --calibrate temperature).")


def _add_folds(page: Page, found: Evaluation) -> None:
    if len(found.folds) < 2:
        return
    page.heading("Fold by fold", level=2)
    rows = [
        (str(place), number(fold["rows"]), share(fold["accuracy"]), number(fold["log_loss"]))
        for place, fold in enumerate(found.folds, 1)
    ]
    right = [fold["accuracy"] for fold in found.folds]
    page.grid(("fold", "rows", "accuracy", "log-loss"), rows, right=("fold", "rows", "accuracy", "log-loss"))
    page.line(f"accuracy between {share(min(right))} and {share(max(right))} from fold to fold")


def _add_confusion(page: Page, found: Evaluation, names: Sequence[str]) -> None:
    table = np.array(found.confusion)
    if len(names) > MOST_CONFUSED:
        _add_confused_pairs(page, table, names)
        return
    met = table.sum(axis=1, keepdims=True)
    shares = table / np.where(met > 0, met, 1.0)
    tones = [["plus" if i == j else "minus" for j in range(len(names))] for i in range(len(names))]
    texts = [list(map(number, line)) for line in table.tolist()]
    drawing = shaded_drawing(
        ShadedTable(names, names, shares, texts, tones, "true class", "predicted as"), "who was taken for whom"
    )
    headings = ("true class", *names, "recall", *(f"fold {place}" for place in range(1, len(found.confusions) + 1)))
    by_fold = [np.array(fold) for fold in found.confusions]
    rows = [
        (
            name, *texts[place], share(float(shares[place, place]) if met[place] > 0 else None),
            *(f"{fold[place, place]:g} of {fold[place].sum():g}" for fold in by_fold),
        )
        for place, name in enumerate(names)
    ]  # fmt: skip
    reading = (
        "A line for each true class: right in blue on the diagonal, mistakes in orange; shades are shares of the line."
    )
    page.picture("Who is taken for whom", drawing, grid_of(headings, rows, right=headings[1:]), reading)


def _add_confused_pairs(page: Page, table: np.ndarray, names: Sequence[str]) -> None:
    wrong = table - np.diag(np.diag(table))
    order = np.argsort(-wrong, axis=None)[:20]
    pairs = [(int(at // len(names)), int(at % len(names))) for at in order]
    rows = [(names[i], names[j], number(float(table[i, j]))) for i, j in pairs if table[i, j] > 0]
    page.heading("Most often taken for each other", level=2)
    page.grid(("true class", "predicted as", "rows"), rows, right=("rows",))


def _add_reliability(page: Page, bins: Sequence[Bin]) -> None:
    points = [_reliability_point(part) for part in bins]
    headings = ("probability", "rows", "stated", "came true", "between")
    rows = [
        (
            f"{b.low:.1f} to {b.high:.1f}",
            number(b.rows),
            f"{b.stated:.3f}",
            f"{b.right:.3f}",
            f"{p.low:.3f} and {p.high:.3f}",
        )
        for b, p in zip(bins, points, strict=True)
    ]
    reading = (
        "Do probabilities mean what they say? On the dashed line they do; below it the model is too sure of itself. "
        "Larger dots hold more rows; the bar through each is what chance leaves open (95 %)."
    )
    drawing = reliability_drawing(points, "stated probability against how often it came true")
    page.picture("Reliability", drawing, grid_of(headings, rows, right=headings[1:]), reading, small=True)


def _reliability_point(part: Bin) -> ReliabilityPoint:
    """The point with Wilson's interval of the share that came true."""
    n, p, z = part.rows, part.right, 1.96
    middle, half = (
        (p + z * z / (2 * n)) / (1 + z * z / n),
        z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5 / (1 + z * z / n),
    )
    return ReliabilityPoint(part.stated, p, max(middle - half, 0.0), min(middle + half, 1.0), n)


def _add_lift(page: Page, found: Evaluation, names: Sequence[str]) -> None:
    shown = [(name, lines) for name, lines in zip(names, found.lift, strict=True) if lines]
    if len(names) == 2:  # the second's is the first's from the other end
        shown = sorted(shown, key=lambda pair: sum(x.of_class for x in pair[1]))[:1]
    parts = np.linspace(0.0, 1.0, 11)
    curves = [PlottedLine(name, parts, [0.0, *(x.captured for x in lines)], dots=True) for name, lines in shown]
    plot = LinePlot("share of the rows looked at", "share of the class found", (0.0, 1.0), (0.0, 1.0), height=296.0)
    drawing = lines_drawing(
        [*curves, PlottedLine("by chance", [0, 1], [0, 1], faint=True)], plot, "gain curves by class"
    )
    headings = ("part", *(x for name, _ in shown for x in (f"found of {name}", "lift")))
    rows = [
        (str(k + 1), *(x for _, lines in shown for x in (share(lines[k].captured), f"{lines[k].lift_so_far:.2f}")))
        for k in range(10)
    ]
    of = shown[0][0] if len(shown) == 1 else "each class"
    reading = (
        f"Rows ranked by their probability of {of}: how much of the class is found when only the likeliest rows are "
        "looked at. The grey line is guessing."
    )
    page.picture("Gain and lift", drawing, grid_of(headings, rows, right=headings), reading, small=True)


def verdict(found: Evaluation, target: str, names: Sequence[str]) -> str:
    """One sentence on how good the model is."""
    gain = found.accuracy - found.baseline_accuracy
    what = f"the {target}" if target else "the class"
    said = f"On {counted(found.n_rows, 'row')} that it had not seen, it told {what} right in {share(found.accuracy)}"
    usual = f"always saying the commonest class gives {share(found.baseline_accuracy)}"
    if gain <= 0.01:
        return f"{said}: no better than guessing, since {usual}."
    return f"{said}; {usual}."
