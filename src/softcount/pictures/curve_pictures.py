"""Curves in a frame: reliability, lift, densities of classes, traces and criteria."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from softcount.pictures.axis_ticks import tick_texts
from softcount.pictures.drawing import SMALL, Drawing, fitted_text, text_width
from softcount.pictures.plot_frame import (
    PlotFrame,
    Range,
    add_axes,
    add_legend,
    add_x_axis,
    legend_height,
    widened,
)
from softcount.pictures.table_pictures import label_room
from softcount.pictures.tones import class_tone

PANEL = 344.0
"""The width of a small picture, two of which stand side by side."""


class PlottedLine(Struct, frozen=True):
    """A line through points, in the colour of its place; `dots` marks the points, `faint` draws it thin and pale."""

    name: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    dots: bool = False
    faint: bool = False
    dashed: bool = False


class LinePlot(Struct, frozen=True):
    """What a picture of lines is of: axes' names, their ranges where they are fixed, a legend where it is wanted."""

    x_name: str
    y_name: str
    x_range: Range | None = None
    y_range: Range | None = None
    legend: bool = True
    filled: bool = False
    y_ticks: bool = True
    x_ticks: Mapping[float, str] | None = None
    mark: tuple[float, str] | None = None
    height: float = 190.0


def lines_drawing(lines: Sequence[PlottedLine], plot: LinePlot, told: str, width: float = PANEL) -> Drawing:
    """Lines in one frame, the names of the bold ones above it; `filled` shades what is below them."""
    bold = [line for line in lines if not line.faint]
    named = [line.name for line in bold] if plot.legend and len(bold) > 1 else []
    x_range = plot.x_range or widened(np.concatenate([np.asarray(line.x, float) for line in lines]), 0.02)
    y_range = plot.y_range or widened(np.concatenate([np.asarray(line.y, float) for line in lines]))
    left = 12.0 if not plot.y_ticks else _tick_room(y_range)
    top = (legend_height(named, width - left) if named else 0.0) + 22
    frame = PlotFrame((left, top), (width - left - 14, plot.height - 60), x_range, y_range)
    drawing = Drawing(width, frame.floor + 40, told)
    if named:
        add_legend(drawing, named, (left, 0), width - left)
    add_axes(drawing, frame, plot.x_name, plot.y_name, plot.y_ticks)
    if plot.mark is not None:
        _add_mark(drawing, frame, *plot.mark)
    place = 0
    for line in lines:
        points = frame.points(line.x, line.y)
        if line.faint:
            drawing.line(points, "muted", 1.0, strength=0.45, told=line.name)
            continue
        tone = class_tone(place)
        if plot.filled and points:
            some = [*points[:-1:2], points[-1]]  # a pale area needs fewer points than its edge
            drawing.area([(points[0][0], frame.floor), *some, (points[-1][0], frame.floor)], tone, 0.12)
        dashes = "5 4" if line.dashed else ""
        drawing.line(points, tone, 2.0 if place < 8 else 1.2, dashes=dashes, told=line.name)
        if line.dots:
            drawing.dots(points, tone, 3.2)
        place += 1
    return drawing


def _tick_room(y_range: Range) -> float:
    from softcount.pictures.axis_ticks import nice_ticks

    return max(text_width(text, SMALL) for text in tick_texts(nice_ticks(*y_range, 4)).values()) + 12


def _add_mark(drawing: Drawing, frame: PlotFrame, at: float, told: str) -> None:
    x = frame.x(at)
    drawing.line([(x, frame.corner[1]), (x, frame.floor)], "muted", 1.0, dashes="3 3")
    right = x > frame.corner[0] + frame.size[0] * 0.7
    drawing.text(
        x + (-5 if right else 5),
        frame.floor - 6,
        told,
        "muted",
        anchor="end" if right else "start",
        size=SMALL,
        halo=True,
    )


class ReliabilityPoint(Struct, frozen=True):
    """Predictions of about one probability: how they were stated, how often right, between which bounds, how many."""

    stated: float
    right: float
    low: float
    high: float
    rows: float


def reliability_drawing(points: Sequence[ReliabilityPoint], told: str) -> Drawing:
    """Stated probability against how often it came true, with bounds; on the diagonal both agree."""
    drawing = Drawing(PANEL, 300, told)
    frame = PlotFrame((46, 22), (PANEL - 62, 236), (0.0, 1.0), (0.0, 1.0))
    add_axes(drawing, frame, "probability stated", "share that came true")
    drawing.line(frame.points([0, 1], [0, 1]), "muted", 1.2, dashes="4 4")
    most = max((point.rows for point in points), default=1.0)
    for point in points:
        drawing.line(frame.points([point.stated] * 2, [point.low, point.high]), "plus", 2.0, strength=0.45)
        said = f"stated {point.stated:.3f}, came true {point.right:.3f}, {point.rows:,.0f} rows"
        drawing.dots(
            frame.points([point.stated], [point.right]), "plus", 2.5 + 5.5 * (point.rows / most) ** 0.5, told=said
        )
    return drawing


def level_bars(
    levels: Sequence[str], shares: np.ndarray, names: Sequence[str], told: str, width: float = PANEL
) -> Drawing:
    """A group of bars for each level, one in the colour of each class: (classes x levels) shares."""
    bar = 7.0 if len(names) <= 4 else 4.0
    group = max(bar * len(names) + 7, 18.0)
    head = legend_height(names, width) + 4 if len(names) > 1 else 0.0
    left = label_room(levels, 110)
    top = float(np.max(shares, initial=0.0)) or 1.0
    drawing = Drawing(width, head + group * len(levels) + 24, told)
    if len(names) > 1:
        add_legend(drawing, names, (0, 0), width)
    frame = PlotFrame((left, head), (width - left - 16, group * len(levels)), (0.0, top), (0.0, 1.0))
    for row, level in enumerate(levels):
        y = head + row * group
        drawing.text(left - 8, y + group / 2 + 1, fitted_text(level, left - 8), anchor="end")
        for place in range(len(names)):
            share = float(shares[place, row])
            drawing.box((left, y + 2 + place * bar), (frame.x(share) - left, bar - 1), class_tone(place))
    step = 0.1 if top <= 0.4 else 0.25
    add_x_axis(drawing, frame, {tick: f"{tick:.0%}" for tick in np.arange(0.0, top + 1e-9, step)})
    return drawing
