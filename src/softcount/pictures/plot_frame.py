"""A frame with two axes on a drawing: where values lie in it, and its ticks, names and legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from softcount.pictures.axis_ticks import nice_ticks, tick_texts
from softcount.pictures.drawing import SMALL, Drawing, Point, fitted_text, text_width
from softcount.pictures.tones import class_tone

Range = tuple[float, float]


class PlotFrame(Struct, frozen=True):
    """The part of a drawing between two corners, and the values at its edges."""

    corner: Point
    size: Point
    x_range: Range
    y_range: Range

    def x(self, value: float) -> float:
        return self.corner[0] + _part(value, self.x_range) * self.size[0]

    def y(self, value: float) -> float:
        return self.corner[1] + (1.0 - _part(value, self.y_range)) * self.size[1]

    def points(self, x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> list[Point]:
        """Places of points; those without a number are left out, those outside lie on the edge."""
        pairs = zip(np.asarray(x, dtype=float).tolist(), np.asarray(y, dtype=float).tolist(), strict=True)
        return [(self.x(a), self.y(b)) for a, b in pairs if a == a and b == b]

    @property
    def floor(self) -> float:
        return self.corner[1] + self.size[1]


def _part(value: float, ends: Range) -> float:
    low, high = ends
    # Halves first: from the least number to the largest is more than a number can hold.
    share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
    return min(max(share, 0.0), 1.0)


def widened(values: Sequence[float] | np.ndarray, margin: float = 0.05) -> Range:
    """A range that holds all values that are numbers, with some room beside them.

    >>> widened([0.0, 10.0], 0.1)
    (-1.0, 11.0)
    """
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if not len(known):
        return (0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    room = (high - low) * margin or max(abs(low) * 0.1, 0.5)
    return (low - room, high + room)


def add_axes(drawing: Drawing, frame: PlotFrame, x_name: str = "", y_name: str = "", y_ticks: bool = True) -> None:
    """Lines, ticks and names of both axes; those of the second may be left out."""
    (left, top), (width, _), floor = frame.corner, frame.size, frame.floor
    add_x_axis(drawing, frame, tick_texts(nice_ticks(*frame.x_range, max(3, int(width / 70)))))
    if y_ticks:
        for tick, text in tick_texts(nice_ticks(*frame.y_range, 4)).items():
            y = frame.y(tick)
            drawing.line([(left, y), (left + width, y)], "line", 0.7)
            drawing.text(left - 6, y + 4, text, "muted", anchor="end", size=SMALL)
    if x_name:
        room = fitted_text(x_name, width, SMALL)
        drawing.text(left + width / 2, floor + 32, room, "muted", anchor="middle", size=SMALL)
    if y_name:
        drawing.text(left, top - 8, fitted_text(y_name, width, SMALL), "muted", size=SMALL)


def add_x_axis(drawing: Drawing, frame: PlotFrame, ticks: Mapping[float, str]) -> None:
    """The lower edge with its ticks; a text that would touch the one before is left out."""
    left, floor, free = frame.corner[0], frame.floor, -1e9
    drawing.line([(left, floor), (left + frame.size[0], floor)], "muted", 1.0)
    for tick, told in ticks.items():
        x, half = frame.x(tick), text_width(told, SMALL) / 2
        drawing.line([(x, floor), (x, floor + 4)], "muted", 1.0)
        if x - half >= free:
            drawing.text(x, floor + 16, told, "muted", anchor="middle", size=SMALL)
            free = x + half + 6


def legend_height(names: Sequence[str], width: float) -> float:
    """How much room the names of classes take above a picture."""
    return 18.0 * len(_legend_lines(names, width))


def add_legend(drawing: Drawing, names: Sequence[str], at: Point, width: float) -> None:
    """A square in each class's colour and its name, in as many lines as that takes."""
    for line, places in enumerate(_legend_lines(names, width)):
        for place, x, told in places:
            y = at[1] + 18.0 * line
            drawing.box((at[0] + x, y), (10, 10), class_tone(place))
            drawing.text(at[0] + x + 14, y + 9, told, size=SMALL)


def _legend_lines(names: Sequence[str], width: float) -> list[list[tuple[int, float, str]]]:
    lines: list[list[tuple[int, float, str]]] = [[]]
    x = 0.0
    for place, name in enumerate(names):
        told = fitted_text(name, min(width - 20, 150), SMALL)
        takes = 14 + text_width(told, SMALL) + 12
        if x > 0 and x + takes > width:
            lines.append([])
            x = 0.0
        lines[-1].append((place, x, told))
        x += takes
    return lines
