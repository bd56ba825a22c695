"""Axes of a drawing: round numbers along them, the frame that places values, ticks and a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, inf, isfinite, log10

import numpy as np
from msgspec import Struct

from softcount.pictures.drawing import NORMAL, SMALL, Drawing, Point, class_tone, fit_text, text_width

Range = tuple[float, float]
Values = Sequence[float] | np.ndarray

DASHES = ("", "6 3", "2 3")
"""Lines of the same tone: the ninth is dashed, the seventeenth dotted."""


def nice_ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Choose about this many round numbers between two; only the lower one if there is nothing between.

    >>> nice_ticks(0, 1, 5), nice_ticks(-3.2, 8.9)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-2.0, 0.0, 2.0, 4.0, 6.0, 8.0])
    """
    span = high - low
    if not (isfinite(span) and span > 0) or span / about == 0:
        return [low]
    rough = span / about
    power = 10.0 ** floor(log10(rough))
    step = next((power * part for part in (1.0, 2.0, 5.0, 10.0) if power * part >= rough * 0.8), 0.0)
    if not (step > 0 and low + step > low and isfinite(low / step)):  # closer together than floats can represent
        return [low]
    first = ceil(low / step - 1e-6)
    count = floor(high / step + 1e-6) - first
    return [round((first + i) * step, 12 - floor(log10(step))) + 0.0 for i in range(int(count) + 1)] or [low]


def tick_text(value: float) -> str:
    """Format the number of a tick.

    >>> tick_text(0.2), tick_text(1500000.0), tick_text(-3.0)
    ('0.2', '1.5e+06', '-3')
    """
    return f"{value:.6g}" if abs(value) < 1e5 or value == 0 else f"{value:.4g}"


def tick_texts(ticks: Sequence[float]) -> dict[float, str]:
    """Format the ticks of an axis with as many digits as distinguish them.

    >>> tick_texts([-12563.95, -12563.9]), tick_texts([0.0, 0.5])
    ({-12563.95: '-12563.95', -12563.9: '-12563.9'}, {0.0: '0', 0.5: '0.5'})
    """
    found, ordered = {tick: tick_text(tick) for tick in ticks}, sorted(set(ticks))
    near = min((right - left for left, right in pairwise(ordered)), default=inf) / 20
    for digits in range(7, 17):
        if all(abs(float(text) - tick) <= near for tick, text in found.items()):
            break
        found = {tick: f"{tick:.{digits}g}" for tick in ticks}
    return found


class Frame(Struct, frozen=True):
    """The part of a drawing between two corners, and the values at its edges."""

    corner: Point
    size: Point
    x_range: Range
    y_range: Range

    def x(self, value: float) -> float:
        return self.corner[0] + _part(value, self.x_range) * self.size[0]

    def y(self, value: float) -> float:
        return self.corner[1] + (1.0 - _part(value, self.y_range)) * self.size[1]

    def points(self, x: Values, y: Values) -> list[Point]:
        """Place points; those with NaN are left out, those outside lie on the edge."""
        pairs = zip(np.asarray(x, dtype=float).tolist(), np.asarray(y, dtype=float).tolist(), strict=True)
        return [(self.x(a), self.y(b)) for a, b in pairs if a == a and b == b]

    @property
    def floor(self) -> float:
        return self.corner[1] + self.size[1]

    @property
    def right(self) -> float:
        return self.corner[0] + self.size[0]


def _part(value: float, ends: Range) -> float:
    low, high = ends
    # Halves first: from the least float to the largest is more than a float can hold.
    share = (value / 2 - low / 2) / (high / 2 - low / 2) if high != low else 0.5
    return min(max(share, 0.0), 1.0)


def widen(values: Values, margin: float = 0.05) -> Range:
    """Return a range that holds all finite values, with a margin.

    >>> widen([0.0, 10.0], 0.1)
    (-1.0, 11.0)
    """
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if not len(known):
        return (0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    room = (high - low) * margin or max(abs(low) * 0.1, 0.5)
    return (low - room, high + room)


def label_room(names: Sequence[str], most: float, size: float = NORMAL) -> float:
    """Return the width that the longest name takes, up to a limit."""
    return min(max((text_width(name, size) for name in names), default=0.0) + 16, most)


def add_x_axis(drawing: Drawing, frame: Frame, ticks: Mapping[float, str], name: str = "") -> None:
    """Add the lower edge with its ticks; a tick's text that would touch the one before is left out."""
    left, floor, free = frame.corner[0], frame.floor, -1e9
    drawing.line([(left, floor), (frame.right, floor)], "muted", 1.0)
    for tick, text in ticks.items():
        x, half = frame.x(tick), text_width(text, SMALL) / 2
        drawing.line([(x, floor), (x, floor + 4)], "muted", 1.0)
        if x - half >= free:
            drawing.text(x, floor + 16, text, "muted", anchor="middle", size=SMALL)
            free = x + half + 6
    if name:
        text = fit_text(name, frame.size[0], SMALL)
        drawing.text(left + frame.size[0] / 2, floor + 32, text, "muted", anchor="middle", size=SMALL)


def add_legend(drawing: Drawing, names: Sequence[str], at: Point, width: float, lines: bool = False) -> float:
    """Add each class's name after a square in its tone, or a piece of its line; return the height of it all."""
    x, y = 0.0, 0.0
    for place, name in enumerate(names):
        text = fit_text(name, min(width - 20, 300 if lines else 150), SMALL)
        sample = 20.0 if lines else 10.0
        needed = sample + 4 + text_width(text, SMALL) + 12
        if x > 0 and x + needed > width:
            x, y = 0.0, y + 18.0
        if lines:
            ends = [(at[0] + x, at[1] + y + 5), (at[0] + x + sample, at[1] + y + 5)]
            drawing.line(ends, class_tone(place), 2.5, dashes=DASHES[min(place // 8, 2)])
        else:
            drawing.box((at[0] + x, at[1] + y), (sample, 10), class_tone(place))
        drawing.text(at[0] + x + sample + 4, at[1] + y + 9, text, size=SMALL)
        x += needed
    return y + 18.0
