"""Pictures of what matters: nomograms, columns in each class, and rows explained step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from softcount.errors import DataError
from softcount.fitted.answers import ColumnShape, column_shape, labels_in, plain_columns
from softcount.fitted.explain import Nomogram as NomogramFigures
from softcount.fitted.explain import NomogramColumn, nomogram_of
from softcount.pictures.chart import Axis, Bars, Chart, class_lines, waterfall_chart
from softcount.pictures.drawing import class_tone
from softcount.pictures.nomogram import Nomogram, NomogramLine
from softcount.pictures.text import format_count, format_list, format_number, format_share, shorten
from softcount.report.page import Grid, Page, Redaction, format_cell, key_text, make_grid

if TYPE_CHECKING:
    from softcount.evaluate.scores import PickedRow
    from softcount.fitted.fitted import Fitted

NOMOGRAM_LINES, NOMOGRAM_PAIRS, PANELS = 14, 3, 12
"""Columns of a nomogram, nomograms of many classes, and columns with a panel."""
DRAWN_LEVELS, LISTED_LEVELS, DRAWN_CLASSES, STEPS = 8, 30, 8, 10
"""Categories with a bar and in the numbers, classes in a panel, and steps of a row's explanation."""


# -- nomogram


def add_nomograms(page: Page, fitted: Fitted, names: Sequence[str], told: Redaction) -> None:
    """Add what every value adds, the largest class against each of the next."""
    found = nomogram_of(fitted)
    if found is None or not found.columns:
        if fitted.ensemble is not None and fitted.ensemble.together:
            together = format_list(fitted.ensemble.together)
            page.line(f"no nomogram: columns tell the classes together ({together}), not one by one")
        return
    reading = (
        "Find what a row holds on each line, read the log-odds above it and add them up, with the start; under the sum "
        "stands the probability that it means. A column that is missing adds nothing."
    )
    if fitted.n_groups > 2:
        reading += " With more than two classes, these are the odds of the two alone."
    if found.left_out:
        reading += f" Not on it, since they do not speak one by one: {', '.join(map(key_text, found.left_out))}."
    if fitted.calibration is not None:
        reading += " Probabilities here are before the correction by calibration."
    order = np.argsort(-fitted.row_shares, kind="stable")
    first, others = int(order[0]), order[1 : 1 + NOMOGRAM_PAIRS]
    for second in map(int, others):
        chart = nomogram_chart(found, (first, second), (names[first], names[second]), told)
        rows = [("(start)", "", f"{chart.start:+.4f}")]
        for column in found.reach(first, second)[:NOMOGRAM_LINES]:
            odds = column.odds(first, second)
            for place in range(0, len(odds), 4 if column.numeric and len(odds) > 20 else 1):
                rows.append((key_text(column.key), _format_value(column, place, told), f"{odds[place]:+.4f}"))
        grid = make_grid(("column", "value", "log-odds"), rows, right=("log-odds",))
        page.picture(f"Nomogram: {names[first]} against {names[second]}", chart, grid, reading)
    more = len(order) - 1 - len(others)
    if more > 0:
        page.line(f"{format_count(more, 'class', 'classes')} more against {names[first]} not drawn")


def nomogram_chart(
    found: NomogramFigures, pair: tuple[int, int], names: tuple[str, str], told: Redaction, most: int = NOMOGRAM_LINES
) -> Nomogram:
    """Describe the nomogram of two classes, with the columns that can move the log-odds farthest."""
    first, second = pair
    lines = []
    for column in found.reach(first, second)[:most]:
        odds, name = column.odds(first, second), key_text(column.key)
        if column.numeric:
            marked = set(np.linspace(0, len(odds) - 1, 5).round().astype(int).tolist())
            texts = [told.number(x, 3) if place in marked else "" for place, x in enumerate(column.values)]
            lines.append(NomogramLine(name, odds, texts, True))
        else:
            kept = [place for place in range(len(odds)) if np.isfinite(odds[place])][:DRAWN_LEVELS]
            texts = [_format_value(column, place, told) for place in kept]
            lines.append(NomogramLine(name, odds[kept], texts, False))
    start = float(found.start[first] - found.start[second])
    return Nomogram(f"nomogram of {names[0]} against {names[1]}", lines, start, names)


def _format_value(column: NomogramColumn, place: int, told: Redaction) -> str:
    value = column.values[place]
    return told.number(value) if column.numeric else told.level(column.key, value)


# -- columns in each class


def add_shapes(page: Page, fitted: Fitted, names: Sequence[str], told: Redaction) -> None:
    """Add panels of the columns with most influence: densities, or shares of categories."""
    known = {key: place for place, (key, _) in enumerate(fitted.influence())}
    columns = sorted(plain_columns(fitted), key=lambda key: known.get(key, len(known)))
    ranked = [g for g in np.argsort(-fitted.row_shares, kind="stable") if told.allows(float(fitted.group_rows[g]))]
    order = np.sort(np.array(ranked[:DRAWN_CLASSES], dtype=int))
    shown, drawn = [names[g] for g in order], 0
    for key in columns if len(order) else ():
        if drawn == PANELS:
            break
        try:
            shape = column_shape(fitted, key)
        except DataError:  # a family that cannot be asked about one column
            continue
        heights = shape.heights[order]
        page.picture(
            key_text(key),
            shape_chart(shape, shown, heights, told),
            _shape_grid(shape, shown, heights, told),
            small=True,
        )
        drawn += 1
    if len(columns) > drawn:
        page.line(f"{format_count(len(columns) - drawn, 'column')} more not drawn; those above say most of the classes")
    if fitted.n_groups > len(order):
        page.line(f"drawn are the {len(order)} largest of {fitted.n_groups} classes")


def shape_chart(shape: ColumnShape, names: Sequence[str], heights: np.ndarray, told: Redaction) -> Chart:
    """Describe a column's densities, or the shares of its categories, in some classes."""
    column = key_text(shape.key)
    description, legend = f"{column} in each class", names if len(names) > 1 else ()
    if shape.levels is None:
        tall = heights[np.isfinite(heights)]
        # A spike would flatten all the rest: the frame ends a little above what nearly all points stay below.
        top = (float(np.quantile(tall, 0.995)) * 1.1 if len(tall) else 1.0) or 1.0
        capped = np.nan_to_num(heights, posinf=top)
        marks = class_lines(names, shape.points, capped, dots=3.2 * shape.whole, filled=not shape.whole)
        x = Axis(column, (float(shape.points[0]), float(shape.points[-1])))
        y = Axis("probability" if shape.whole else "density", (0.0, top), ticks={})
        return Chart(description, marks, x, y, legend)
    kept = np.sort(np.argsort(-heights.max(axis=0), kind="stable")[:DRAWN_LEVELS])
    top, bar = float(np.max(heights[:, kept], initial=0.0)) or 1.0, 7.0 if len(names) <= 4 else 4.0
    group = max(bar * len(names) + 7, 18.0)
    # The bars of a category in the order of the classes, a pixel between them.
    bars = [
        Bars(
            np.arange(len(kept)) + (place - (len(names) - 1) / 2) * bar / group, np.zeros(len(kept)), own[kept],
            (class_tone(place),), thick=(bar - 1) / group, strength=1.0,
        )
        for place, own in enumerate(heights)
    ]  # fmt: skip
    ticks = {float(tick): f"{tick:.0%}" for tick in np.arange(0.0, top + 1e-9, 0.1 if top <= 0.4 else 0.25)}
    y = Axis(labels=[told.level(shape.key, shape.levels[at]) for at in kept], room=110)
    return Chart(description, bars, Axis(ends=(0.0, top), ticks=ticks), y, legend, height=group)


def _shape_grid(shape: ColumnShape, names: Sequence[str], heights: np.ndarray, told: Redaction) -> Grid:
    column = key_text(shape.key)
    if shape.levels is None:
        places = range(0, len(shape.points), max(1, len(shape.points) // 10))
        rows = [
            (told.number(float(shape.points[at])), *(format_number(float(own[at]), 3) for own in heights))
            for at in places
        ]
        return make_grid((column, *names), rows, right=(column, *names))
    order = np.argsort(-heights.max(axis=0), kind="stable")
    rows = [
        (told.level(shape.key, shape.levels[at]), *(format_share(float(own[at])) for own in heights))
        for at in np.sort(order[:LISTED_LEVELS])
    ]
    if len(order) > LISTED_LEVELS:
        rows.append((f"{len(order) - LISTED_LEVELS} more", *("" for _ in heights)))
    return make_grid((column, *names), rows, right=names)


# -- rows


PICKED = {
    "right": "surest of those it got right",
    "wrong": "surest of those it got wrong",
    "unsure": "among the least sure",
    "sure": "among the surest",
}


def add_waterfalls(page: Page, fitted: Fitted, picked: Sequence[PickedRow], names: Sequence[str]) -> None:
    """Add a few rows, and what each of their cells added."""
    labels = labels_in(fitted)
    for row in picked:
        steps = [(key, odds) for key, odds in sorted(row.odds.items(), key=lambda item: -abs(item[1])) if odds != 0]
        shown = [("(start)", row.start)]
        for key, odds in steps[:STEPS]:
            shown.append((f"{labels[key]} {shorten(format_cell(row.cells.get(key)), 24)}", odds))
        if len(steps) > STEPS:
            shown.append((f"{len(steps) - STEPS} others", sum(odds for _, odds in steps[STEPS:])))
        cells = [name for name, _ in shown]
        chart = waterfall_chart(cells, [odds for _, odds in shown], "together", "evidence step by step")
        truth = "" if row.truth is None else f", is {names[row.truth]}"
        title = f"Row {row.row + 1}: {names[row.chosen]} rather than {names[row.against]}{truth}"
        reading = f"{PICKED[row.kind].capitalize()}; probability {format_share(row.probability)}."
        grid = make_grid(("cell", "log-odds"), [(name, f"{odds:+.4f}") for name, odds in shown], None)
        page.picture(title, chart, grid, reading, small=True)
