"""Two columns as a plane: ellipses of classes, points, and regions by the likeliest class."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from msgspec import Struct, field

from softcount.pictures.axis_ticks import nice_ticks, tick_text
from softcount.pictures.curve_pictures import PANEL
from softcount.pictures.drawing import SMALL, Drawing, text_width
from softcount.pictures.plot_frame import PlotFrame, Range, add_axes, add_legend, legend_height
from softcount.pictures.tones import class_tone


class Plane(Struct, frozen=True):
    """What is drawn: axes, names of the classes, and for each its points and outlines, the inner ones first."""

    x_name: str
    y_name: str
    x_range: Range
    y_range: Range
    names: Sequence[str]
    points: Sequence[np.ndarray] = ()
    outlines: Sequence[Sequence[np.ndarray]] = ()
    regions: np.ndarray | None = None
    sure: np.ndarray | None = field(default=None)


def plane_drawing(plane: Plane, told: str, width: float = PANEL, height: float = 300.0) -> Drawing:
    """Regions below, points above them, outlines on top."""
    legend = len(plane.names) > 1
    left = max(text_width(tick_text(tick), SMALL) for tick in nice_ticks(*plane.y_range, 4)) + 12
    top = (legend_height(plane.names, width - left) if legend else 0.0) + 22
    frame = PlotFrame((left, top), (width - left - 14, height - 70), plane.x_range, plane.y_range)
    drawing = Drawing(width, frame.floor + 40, told)
    if legend:
        add_legend(drawing, plane.names, (left, 0), width - left)
    if plane.regions is not None:
        _add_regions(drawing, frame, plane.regions)
    add_axes(drawing, frame, plane.x_name, plane.y_name)
    add_plane(drawing, frame, plane)
    return drawing


def add_plane(drawing: Drawing, frame: PlotFrame, plane: Plane) -> None:
    """Points and outlines in a frame; what lies outside is left out."""
    for place, points in enumerate(plane.points):
        inside = points[_within(points[:, 0], plane.x_range) & _within(points[:, 1], plane.y_range)]
        if len(inside):
            drawing.dots(frame.points(inside[:, 0], inside[:, 1]), class_tone(place), 2.0, strength=0.55)
    for place, outlines in enumerate(plane.outlines):
        for order, outline in enumerate(outlines):
            tone, wide = class_tone(place), 2.2 if order == 0 else 1.4
            drawing.line(frame.points(outline[:, 0], outline[:, 1]), tone, wide, dashes="" if order == 0 else "5 3")


def _within(values: np.ndarray, ends: Range) -> np.ndarray:
    return np.asarray((values >= ends[0]) & (values <= ends[1]))


def _add_regions(drawing: Drawing, frame: PlotFrame, regions: np.ndarray) -> None:
    """One shape for each class: a box for each run of its cells in a line."""
    rows, columns = regions.shape
    width, height = frame.size[0] / columns, frame.size[1] / rows
    boxes: dict[int, list[tuple[float, float, float, float]]] = {}
    for row in range(rows):
        y = frame.floor - (row + 1) * height
        line: list[int] = regions[row].tolist()
        for group, cells in groupby(range(columns), key=line.__getitem__):
            run = list(cells)
            box = (frame.corner[0] + run[0] * width, y, len(run) * width, height + 0.3)
            boxes.setdefault(group, []).append(box)
    for group, own in sorted(boxes.items()):
        drawing.tiles(own, class_tone(group), 0.28)


def frames_drawing(planes: Sequence[Plane], titles: Sequence[str], told: str) -> Drawing:
    """Several planes of one range, three in a line: the same picture at different times."""
    wide, high, across = 236.0, 190.0, 3
    lines = (len(planes) + across - 1) // across
    drawing = Drawing(wide * across, high * lines, told)
    for place, (plane, title) in enumerate(zip(planes, titles, strict=True)):
        x, y = wide * (place % across), high * (place // across)
        frame = PlotFrame((x + 6, y + 22), (wide - 22, high - 34), plane.x_range, plane.y_range)
        drawing.text(x + 6, y + 14, title, "muted", size=SMALL)
        (left, top), right, floor = frame.corner, frame.corner[0] + frame.size[0], frame.floor
        drawing.line([(left, top), (right, top), (right, floor), (left, floor)], "line", 1.0, closed=True)
        add_plane(drawing, frame, plane)
    return drawing
