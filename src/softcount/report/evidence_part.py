"""What matters, and why a row is in its class: influence, nomograms, densities and level bars, waterfalls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.errors import DataError
from softcount.fitted.answers import ColumnShape, column_shape, labels_in, plain_columns
from softcount.fitted.explain import Nomogram, NomogramColumn, nomogram_of
from softcount.fitted.influence import influence_meaning
from softcount.pictures.curve_pictures import LinePlot, PlottedLine, level_bars, lines_drawing
from softcount.pictures.evidence_pictures import NomogramLine, nomogram_drawing, waterfall_drawing
from softcount.pictures.table_pictures import bars_drawing
from softcount.report.class_page import value_text
from softcount.report.discretion import Discretion
from softcount.report.page import Grid, Page, grid_of, key_text
from softcount.report.plain_text import counted, listed, number, share, shortened

if TYPE_CHECKING:
    from softcount.evaluate.scores import PickedRow
    from softcount.fitted.fitted import Fitted
    from softcount.pictures.drawing import Drawing

MOST_BARS = 20
MOST_LINES = 14
"""Columns of a nomogram, those that can move the log-odds farthest."""
MOST_PAIRS = 3
"""Nomograms shown where there are many classes."""
MOST_PANELS = 12
MOST_LEVELS = 8
MOST_LISTED = 30
"""Levels of a column with a bar, and in the table of numbers."""
MOST_CLASSES = 8
"""Classes drawn in a panel, the largest."""


def add_influence(page: Page, fitted: Fitted) -> None:
    """Columns by their influence."""
    ranked = fitted.influence()
    if fitted.n_groups < 2 or not ranked:
        return
    names = labels_in(fitted)
    shown = ranked[:MOST_BARS]
    texts = [number(value, 3) for _, value in shown]
    drawing = bars_drawing(
        [names[key] for key, _ in shown], [value for _, value in shown], texts, "influence by column"
    )
    grid = grid_of(
        ("column", "influence"), [(names[key], number(value)) for key, value in ranked], right=("influence",)
    )
    meaning = influence_meaning(fitted)
    page.picture("Influence", drawing, grid, f"{meaning[0].upper()}{meaning[1:]}.")


# -- nomogram


def add_nomograms(page: Page, fitted: Fitted, names: Sequence[str], told: Discretion) -> None:
    """What every value adds, class against class: the largest class against each of the next."""
    found = nomogram_of(fitted)
    if found is None or not found.columns:
        if fitted.pool is not None and fitted.pool.together:
            together = listed(fitted.pool.together)
            page.line(f"no nomogram: columns tell the classes together ({together}), not one by one")
        return
    order = np.argsort(-fitted.row_shares, kind="stable")
    first, others = int(order[0]), order[1 : 1 + MOST_PAIRS]
    for second in map(int, others):
        title = f"Nomogram: {names[first]} against {names[second]}"
        drawing, grid = nomogram_picture(found, fitted, (first, second), names, told)
        page.picture(title, drawing, grid, _reading(fitted, found, len(order)))
    if len(order) > 1 + len(others):
        page.line(f"{counted(len(order) - 1 - len(others), 'class', 'classes')} more against {names[first]} not drawn")


def _reading(fitted: Fitted, found: Nomogram, classes: int) -> str:
    said = (
        "Find what a row holds on each line, read the log-odds above it and add them up, with the start; under the sum "
        "stands the probability that it means. A column that is missing adds nothing."
    )
    if classes > 2:
        said += " With more than two classes, these are the odds of the two alone."
    if found.left_out:
        said += f" Not on it, since they do not speak one by one: {', '.join(map(key_text, found.left_out))}."
    if fitted.calibration is not None:
        said += " Probabilities here are before the correction by calibration."
    return said


def nomogram_picture(
    found: Nomogram, fitted: Fitted, pair: tuple[int, int], names: Sequence[str], told: Discretion
) -> tuple[Drawing, Grid]:
    """One nomogram and its numbers."""
    first, second = pair
    start = float(found.start[first] - found.start[second])
    columns = found.reach(first, second)[:MOST_LINES]
    lines = [_line(column, column.odds(first, second), told) for column in columns]
    both = (names[first], names[second])
    drawing = nomogram_drawing(lines, start, both, f"nomogram of {both[0]} against {both[1]}")
    rows = [("(start)", "", f"{start:+.4f}")]
    for column in columns:
        odds = column.odds(first, second)
        step = 4 if column.numeric and len(odds) > 20 else 1
        for place in range(0, len(odds), step):
            rows.append((key_text(column.key), _value(column, place, told), f"{odds[place]:+.4f}"))
    return drawing, grid_of(("column", "value", "log-odds"), rows, right=("log-odds",))


def _value(column: NomogramColumn, place: int, told: Discretion) -> str:
    value = column.values[place]
    return told.number(value) if column.numeric else told.level(column.key, value)


def _line(column: NomogramColumn, odds: np.ndarray, told: Discretion) -> NomogramLine:
    name = key_text(column.key)
    if not column.numeric:
        kept = [place for place in range(len(odds)) if np.isfinite(odds[place])][:MOST_LEVELS]
        return NomogramLine(name, odds[kept], [_value(column, place, told) for place in kept], False)
    marked = set(np.linspace(0, len(odds) - 1, 5).round().astype(int).tolist())
    texts = [told.number(column.values[place], 3) if place in marked else "" for place in range(len(odds))]
    return NomogramLine(name, odds, texts, True)


# -- densities and levels of the classes


def add_shapes(page: Page, fitted: Fitted, names: Sequence[str], told: Discretion) -> None:
    """Panels of the columns that tell the classes apart most: densities, or shares of levels."""
    known = {key: place for place, (key, _) in enumerate(fitted.influence())}
    columns = sorted(plain_columns(fitted), key=lambda key: known.get(key, len(known)))
    ranked = [g for g in np.argsort(-fitted.row_shares, kind="stable") if told.tells(float(fitted.group_rows[g]))]
    order = np.sort(np.array(ranked[:MOST_CLASSES], dtype=int))
    drawn = 0
    for key in columns if len(order) else ():
        if drawn == MOST_PANELS:
            break
        try:
            shape = column_shape(fitted, key)
        except DataError:  # a family that is not asked about alone
            continue
        drawing, grid = shape_picture(shape, [names[g] for g in order], shape.heights[order], told)
        page.picture(key_text(key), drawing, grid, small=True)
        drawn += 1
    if len(columns) > drawn:
        page.line(f"{counted(len(columns) - drawn, 'column')} more not drawn; those above say most of the classes")
    if fitted.n_groups > len(order):
        page.line(f"drawn are the {len(order)} largest of {fitted.n_groups} classes")


def shape_picture(
    shape: ColumnShape, names: Sequence[str], heights: np.ndarray, told: Discretion
) -> tuple[Drawing, Grid]:
    """A column's densities or levels in some classes, and the numbers."""
    if shape.levels is not None:
        return _level_picture(shape, names, heights, told)
    points, name = shape.points, key_text(shape.key)
    tall = heights[np.isfinite(heights)]
    # A spike would flatten all the rest: the frame ends a little above what nearly all points stay below.
    top = float(np.quantile(tall, 0.995)) * 1.1 if len(tall) else 1.0
    lines = [
        PlottedLine(each, points, np.nan_to_num(own, posinf=top), dots=shape.whole)
        for each, own in zip(names, heights, strict=True)
    ]
    ends = (float(points[0]), float(points[-1]))
    what = "probability" if shape.whole else "density"
    plot = LinePlot(name, what, ends, (0.0, top or 1.0), filled=not shape.whole, y_ticks=False)
    drawing = lines_drawing(lines, plot, f"{name} in each class")
    places = range(0, len(points), max(1, len(points) // 10))
    rows = [(told.number(float(points[at])), *(number(float(own[at]), 3) for own in heights)) for at in places]
    return drawing, grid_of((name, *names), rows, right=(name, *names))


def _level_picture(
    shape: ColumnShape, names: Sequence[str], heights: np.ndarray, told: Discretion
) -> tuple[Drawing, Grid]:
    assert shape.levels is not None
    order = np.argsort(-heights.max(axis=0), kind="stable")
    kept, listed_ones = np.sort(order[:MOST_LEVELS]), np.sort(order[:MOST_LISTED])
    shown = [told.level(shape.key, shape.levels[place]) for place in kept]
    drawing = level_bars(shown, heights[:, kept], names, f"{key_text(shape.key)} in each class")
    rows = [
        (told.level(shape.key, shape.levels[at]), *(share(float(own[at])) for own in heights)) for at in listed_ones
    ]
    if len(order) > len(listed_ones):
        rows.append((f"{len(order) - len(listed_ones)} more", *("" for _ in heights)))
    return drawing, grid_of((key_text(shape.key), *names), rows, right=names)


# -- rows


KINDS = {
    "right": "surest of those it got right",
    "wrong": "surest of those it got wrong",
    "unsure": "among the least sure",
    "sure": "among the surest",
}
MOST_STEPS = 10


def add_waterfalls(page: Page, fitted: Fitted, picked: Sequence[PickedRow], names: Sequence[str]) -> None:
    """A few rows, and what each of their cells added."""
    labels = labels_in(fitted)
    for row in picked:
        steps = sorted(row.odds.items(), key=lambda item: -abs(item[1]))
        steps = [(key, odds) for key, odds in steps if odds != 0]
        shown = [
            ("(start)", row.start),
            *((_cell(labels[key], row.cells.get(key)), odds) for key, odds in steps[:MOST_STEPS]),
        ]
        if len(steps) > MOST_STEPS:
            rest = sum(odds for _, odds in steps[MOST_STEPS:])
            shown.append((f"{len(steps) - MOST_STEPS} others", rest))
        drawing = waterfall_drawing([name for name, _ in shown], [odds for _, odds in shown], "evidence step by step")
        truth = "" if row.truth is None else f", is {names[row.truth]}"
        title = f"Row {row.row + 1}: {names[row.chosen]} rather than {names[row.against]}{truth}"
        reading = f"{KINDS[row.kind].capitalize()}; probability {share(row.probability)}."
        grid = grid_of(("cell", "log-odds"), [(name, f"{odds:+.4f}") for name, odds in shown], right=("log-odds",))
        page.picture(title, drawing, grid, reading, small=True)


def _cell(name: str, value: Any) -> str:
    return f"{name} {shortened(value_text(value), 24)}"
