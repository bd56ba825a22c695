"""A chart: marks over two axes, as data. It draws itself as SVG and on matplotlib axes.

Marks stand at values, not at pixels: lines, bars, points, shaded cells, regions. An axis is of numbers or of names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from softcount.pictures.drawing import LIGHT, SMALL, Drawing, Point, class_tone, escape_math, fit_text, text_width
from softcount.pictures.text import nice_ticks, tick_texts

Range = tuple[float, float]
Values = Sequence[float] | np.ndarray

DASHES = ("", "6 3", "2 3")
"""Lines of the same tone: the ninth is dashed, the seventeenth dotted."""
PANEL, BAND, PAGE = 344.0, 620.0, 720.0
"""Widths: of a panel, two of which stand side by side; of bars; of a picture that stands alone."""
TWO_LINES = 25.0
"""Least height of a line whose label may take two lines."""
SHARED = 7
"""Parts of a divided bar that have a tone; the others are one more."""
DEEPEST_SHADE = 0.55
"""Text stays readable on it, light or dark."""


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


def label_room(names: Sequence[str], most: float) -> float:
    return min(max(map(text_width, names), default=0.0) + 16, most)


def add_label(drawing: Drawing, name: str, at: Point, width: float) -> None:
    """Add a label that ends at a place; one that is too long is broken into two smaller lines between words."""
    lines = [name] if text_width(name) <= width else wrap_label(name, width)
    if len(lines) == 1:
        drawing.text(*at, fit_text(name, width), anchor="end")
        return
    for line, shift in zip(lines, (-5.5, 5.5), strict=True):
        drawing.text(at[0], at[1] + shift, fit_text(line, width, SMALL), anchor="end", size=SMALL)


def wrap_label(name: str, width: float) -> list[str]:
    """Break a name near its middle, after a mark or a space, so that its first line fits.

    >>> wrap_label("total_credit_utilized", 100)
    ['total_credit_', 'utilized']
    """
    places = [found.end() for found in re.finditer(r"[ _.,;:/=-]+", name)]
    fitting = [place for place in places if place < len(name) and text_width(name[:place].rstrip(), SMALL) <= width]
    if not fitting:
        return [name]
    best = min(fitting, key=lambda place: abs(2 * place - len(name)))
    return [name[:best].rstrip(), name[best:]]


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
        most = width if len(names) == 1 else 300 if lines or len(names) <= 4 else 150
        text = fit_text(name, min(width - 20, most), SMALL)
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


# -- axes and marks


class Axis(Struct, frozen=True):
    """An axis of numbers, or of names at 0, 1, 2, ... (down from the top, or from left to right)."""

    name: str = ""
    ends: Range | None = None
    ticks: Mapping[float, str] | None = None
    """Texts at places along the axis; round numbers if None."""
    labels: Sequence[str] = ()
    room: float = 190.0
    """The most that labels at the left may take, in pixels."""

    def range(self, values: Sequence[Values], margin: float) -> Range:
        if self.labels:
            return (-0.5, len(self.labels) - 0.5)
        if self.ends is not None:
            return self.ends
        return widen(np.concatenate([np.asarray(each, dtype=float) for each in values]) if values else [], margin)


class Mark(Struct, frozen=True):
    """What stands at values of the two axes; marks that are `under` are drawn before the axes."""

    under: ClassVar[bool] = False

    def extent(self) -> tuple[Values, Values]:
        """The values that the axes must hold."""
        return (), ()

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        raise NotImplementedError

    def plot(self, ax: Any) -> None:
        raise NotImplementedError


class Line(Mark, frozen=True):
    """A line through points. `dots` is the radius of a dot at each, `filled` shades what is below."""

    x: Values
    y: Values
    name: str = ""
    tone: str = "c0"
    width: float = 2.0
    dashes: str = ""
    strength: float = 1.0
    dots: float = 0.0
    filled: bool = False

    def extent(self) -> tuple[Values, Values]:
        return self.x, self.y

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        points = frame.points(self.x, self.y)
        if not points:
            return
        if self.filled:
            some = [*points[:-1:2], points[-1]]  # a pale area needs fewer points than its edge
            drawing.area([(points[0][0], frame.floor), *some, (points[-1][0], frame.floor)], self.tone, 0.12)
        how = {"dashes": self.dashes, "strength": self.strength, "title": self.name}
        drawing.line(points, self.tone, self.width, **how)
        if self.dots:
            drawing.dots(points, self.tone, self.dots)

    def plot(self, ax: Any) -> None:
        style = "--" if self.dashes else "-"
        marker = {"marker": "o", "markersize": 1.6 * self.dots} if self.dots else {}
        ax.plot(self.x, self.y, style, color=LIGHT[self.tone], lw=self.width * 0.8, alpha=self.strength, **marker)
        if self.filled:
            ax.fill_between(self.x, self.y, color=LIGHT[self.tone], alpha=0.12, lw=0)


class Bars(Mark, frozen=True):
    """Bars from `starts` to `ends` at places of the other axis, with texts at their ends or `inside` them."""

    places: Values
    starts: Values
    ends: Values
    tones: Sequence[str] = ("plus",)
    texts: Sequence[str] = ()
    thick: float | np.ndarray = 0.6
    strength: float = 0.85
    inside: bool = False
    upright: bool = False

    def extent(self) -> tuple[Values, Values]:
        along = np.concatenate([np.asarray(self.starts, float), np.asarray(self.ends, float)])
        across = np.asarray(self.places, float)
        across = np.concatenate([across - self.thick / 2, across + self.thick / 2])
        return (across, along) if self.upright else (along, across)

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        halves = np.broadcast_to(self.thick, len(self.starts)) / 2
        bars = list(zip(self.places, self.starts, self.ends, halves, strict=True))
        if self.upright:  # one shape takes a third of the bytes
            boxes = []
            for place, start, end, half in bars:
                left, (top, foot) = frame.x(place - half), sorted((frame.y(start), frame.y(end)))
                boxes.append((left, top, frame.x(place + half) - left, foot - top))
            drawing.boxes(boxes, self.tones[0], self.strength)
            return
        for k, (place, start, end, half) in enumerate(bars):
            tone = self.tones[k % len(self.tones)]
            top, foot = sorted((frame.y(place - half), frame.y(place + half)))
            a, b = frame.x(start), frame.x(end)
            wide = max(abs(b - a), 1.0) if start != end else 0.0
            drawing.box((min(a, b), top), (wide, foot - top), tone, self.strength)
            if not self.texts:
                continue
            middle = (top + foot) / 2 + 4
            if self.inside:
                if abs(b - a) > text_width(self.texts[k], SMALL) + 8:
                    drawing.text((a + b) / 2, middle, self.texts[k], anchor="middle", size=SMALL)
            else:
                right = end >= start
                at, anchor = (max(a, b) + 5, "start") if right else (min(a, b) - 5, "end")
                drawing.text(at, middle, self.texts[k], "muted", anchor=anchor, size=SMALL, halo=True)

    def plot(self, ax: Any) -> None:
        lengths = np.asarray(self.ends, float) - np.asarray(self.starts, float)
        colors = [LIGHT[self.tones[k % len(self.tones)]] for k in range(len(lengths))]
        if self.upright:
            ax.bar(self.places, lengths, self.thick, bottom=self.starts, color=colors, alpha=self.strength)
            return
        drawn = ax.barh(self.places, lengths, self.thick, left=self.starts, color=colors)
        if self.texts:
            kind: dict[str, Any] = {"label_type": "center"} if self.inside else {"padding": 4}
            for text in ax.bar_label(drawn, [escape_math(x) for x in self.texts], fontsize="small", **kind):
                text.set_in_layout(False)  # long texts must not squeeze the bars


class Points(Mark, frozen=True):
    """Dots at values; those outside the frame are left out."""

    x: Values
    y: Values
    tone: str = "c0"
    radius: float = 2.0
    strength: float = 0.55
    title: str = ""

    def extent(self) -> tuple[Values, Values]:
        return self.x, self.y

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        x, y = np.asarray(self.x, float), np.asarray(self.y, float)
        ends = frame.x_range, frame.y_range
        inside = (x >= ends[0][0]) & (x <= ends[0][1]) & (y >= ends[1][0]) & (y <= ends[1][1])
        if inside.any():
            points = frame.points(x[inside], y[inside])
            drawing.dots(points, self.tone, self.radius, strength=self.strength, title=self.title)

    def plot(self, ax: Any) -> None:
        size = (2 * self.radius * 0.72) ** 2
        ax.scatter(self.x, self.y, s=size, color=LIGHT[self.tone], alpha=self.strength, lw=0)


class Rule(Mark, frozen=True):
    """A dashed vertical line with a text at its foot."""

    x: float
    text: str
    under: ClassVar[bool] = True

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        x = frame.x(self.x)
        drawing.line([(x, frame.corner[1]), (x, frame.floor)], "muted", 1.0, dashes="3 3")
        left, anchor = (-5, "end") if x > frame.corner[0] + frame.size[0] * 0.7 else (5, "start")
        drawing.text(x + left, frame.floor - 6, self.text, "muted", anchor=anchor, size=SMALL, halo=True)

    def plot(self, ax: Any) -> None:
        ax.axvline(self.x, color="grey", linewidth=0.8, linestyle="--")


class Note(Mark, frozen=True):
    """A text around a place."""

    x: float
    y: float
    text: str

    def extent(self) -> tuple[Values, Values]:
        return [self.x], [self.y]

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        at = frame.x(self.x), frame.y(self.y)
        drawing.text(*at, self.text, "muted", anchor="middle", size=SMALL)

    def plot(self, ax: Any) -> None:
        ax.text(self.x, self.y, escape_math(self.text), ha="center", va="center", fontsize="small")


class Cells(Mark, frozen=True):
    """A table with a shade from 0 to 1 behind each text; both axes have labels, those of the columns above."""

    shades: np.ndarray
    texts: Sequence[Sequence[str]] = ()
    tones: Sequence[Sequence[str]] | str = "plus"
    scale: str = ""
    """What a colour bar on matplotlib axes is called; no bar if empty."""

    def tone(self, row: int, column: int) -> str:
        return self.tones if isinstance(self.tones, str) else self.tones[row][column]

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        rows, columns = self.shades.shape
        wide, high = frame.size[0] / columns, frame.size[1] / rows
        for i in range(rows):
            for j in range(columns):
                x, y = frame.corner[0] + wide * j, frame.corner[1] + high * i
                shade, text = float(np.nan_to_num(self.shades[i, j])), self.texts[i][j] if len(self.texts) else ""
                if shade > 0.005:
                    strength = min(shade, 1.0) * DEEPEST_SHADE
                    drawing.box((x + 1, y + 1), (wide - 2, high - 2), self.tone(i, j), strength, text)
                drawing.text(x + wide / 2, y + high / 2 + 4, fit_text(text, wide - 6), anchor="middle")

    def plot(self, ax: Any) -> None:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb

        rows, columns = self.shades.shape
        top = float(np.nanmax(self.shades, initial=0.0)) or 1.0
        tones = [[to_rgb(LIGHT[self.tone(i, j)]) for j in range(columns)] for i in range(rows)]
        part = np.nan_to_num(self.shades / top)[:, :, None]
        ax.imshow(1 - part + part * np.array(tones), aspect="auto")
        for i, j in np.ndindex(rows, columns) if len(self.texts) else ():
            ax.text(j, i, escape_math(self.texts[i][j]), ha="center", va="center", fontsize="small")
        if self.scale:
            shades = LinearSegmentedColormap.from_list("shades", ["white", LIGHT[self.tone(0, 0)]])
            ax.figure.colorbar(ScalarMappable(Normalize(0, top), shades), ax=ax, label=self.scale)


class Regions(Mark, frozen=True):
    """The likeliest class on a grid over the whole frame, the lowest line first; `sure` makes it paler on axes."""

    places: np.ndarray
    x_range: Range
    y_range: Range
    sure: np.ndarray | None = None
    under: ClassVar[bool] = True

    def extent(self) -> tuple[Values, Values]:
        return self.x_range, self.y_range

    def draw(self, drawing: Drawing, frame: Frame) -> None:
        rows, columns = self.places.shape
        width, height = frame.size[0] / columns, frame.size[1] / rows
        boxes: dict[int, list[tuple[float, float, float, float]]] = {}
        for row in range(rows):
            y = frame.floor - (row + 1) * height
            line: list[int] = self.places[row].tolist()
            for group, cells in groupby(range(columns), key=line.__getitem__):
                run = list(cells)
                box = (frame.corner[0] + run[0] * width, y, len(run) * width, height + 0.3)
                boxes.setdefault(group, []).append(box)
        for group, own in sorted(boxes.items()):
            drawing.boxes(own, class_tone(group), 0.28)

    def plot(self, ax: Any) -> None:
        from matplotlib.colors import to_rgb

        colors = np.array([to_rgb(LIGHT[class_tone(place)]) for place in range(int(self.places.max()) + 1)])
        strength = np.full(self.places.shape, 0.28) if self.sure is None else self.sure
        image = np.concatenate([colors[self.places], strength[:, :, None]], axis=2)
        ax.imshow(image, origin="lower", extent=(*self.x_range, *self.y_range), aspect="auto")


class Chart(Struct, frozen=True):
    """Marks over two axes. `height` is that of the frame, or of one line if the second axis has labels."""

    description: str
    marks: Sequence[Mark]
    x: Axis = Axis()
    y: Axis = Axis()
    legend: Sequence[str] = ()
    """Names of the classes, in the tones of their places."""
    title: str = ""
    width: float = PANEL
    height: float = 130.0

    def ranges(self) -> tuple[Range, Range]:
        extents = [mark.extent() for mark in self.marks]
        return self.x.range([x for x, _ in extents], 0.02), self.y.range([y for _, y in extents], 0.05)

    def draw(self) -> Drawing:
        x_range, y_range = self.ranges()
        cells = next((mark for mark in self.marks if isinstance(mark, Cells)), None)
        y_ticks = tick_texts(nice_ticks(*y_range, 4)) if self.y.ticks is None else self.y.ticks
        drawing = Drawing(self.width, 0.0, self.description)
        if self.y.labels:
            left = label_room([*self.y.labels, self.y.name if cells is not None else ""], self.y.room)
            wrapped = any(text_width(name) > left - 10 for name in self.y.labels)
            line = max(self.height, TWO_LINES) if wrapped else self.height
            height, y_range = line * len(self.y.labels), (y_range[1], y_range[0])
        else:
            left = max((text_width(text, SMALL) for text in y_ticks.values()), default=0.0) + 12
            height = self.height
        top = 24.0 if self.title else 0.0
        if self.title:
            drawing.text(left, 14, fit_text(self.title, self.width - left), bold=True)
        if self.legend:
            lines = len(self.legend) > 8 and any(isinstance(mark, Line) for mark in self.marks)
            top += add_legend(drawing, self.legend, (left, top), self.width - left, lines) + 4
        if cells is not None:
            frame = self._cell_frame(drawing, cells, left, top)
        else:
            top += 22.0 if self.y.name else 0.0 if self.y.labels else 8.0
            before, after = self._text_room(x_range)
            frame = Frame((left + before, top), (self.width - left - before - after, height), x_range, y_range)
        for mark in self.marks:
            if mark.under:
                mark.draw(drawing, frame)
        if cells is None:
            self._add_axes(drawing, frame, left, y_ticks)
        for mark in self.marks:
            if not mark.under:
                mark.draw(drawing, frame)
        below = 2.0 if cells is not None or self.x.ticks == {} else 40.0 if self.x.name else 24.0
        drawing.height = frame.floor + below
        return drawing

    def _text_room(self, x_range: Range) -> Range:
        """Pixels kept free on both sides for the texts of bars."""
        before, after = 0.0, 14.0
        for mark in self.marks:
            if isinstance(mark, Bars) and mark.texts and not mark.inside:
                for text, start, end in zip(mark.texts, mark.starts, mark.ends, strict=True):
                    room = text_width(text, SMALL) + 12
                    before, after = (before, max(after, room)) if end >= start else (max(before, room), after)
        return before, after

    def _cell_frame(self, drawing: Drawing, cells: Cells, left: float, top: float) -> Frame:
        """Columns as wide as their texts, within the width there is; their names above."""
        texts = [text for line in cells.texts for text in line]
        wanted = max(map(text_width, [*texts, *self.x.labels]), default=20.0) + 14
        columns = max(len(self.x.labels), 1)
        wide = max(min(wanted, (self.width - left) / columns), min(wanted, 44.0))
        head = top + (18.0 if self.x.name else 0.0) + 22.0
        if self.x.name:
            drawing.text(left, top + 12, self.x.name, "muted", size=SMALL)
        if self.y.name:
            drawing.text(0, head - 8, fit_text(self.y.name, left - 8, SMALL), "muted", size=SMALL)
        for place, name in enumerate(self.x.labels):
            drawing.text(left + wide * (place + 0.5), head - 8, fit_text(name, wide - 6), anchor="middle", bold=True)
        frame = Frame((left, head), (wide * columns, self.height * len(self.y.labels)), (0, 1), (0, 1))
        for place, name in enumerate(self.y.labels):
            add_label(drawing, name, (left - 8, head + self.height * (place + 0.5) + 4), left - 10)
        drawing.width = max(left + wide * columns + 2, left + text_width(self.title))
        return frame

    def _add_axes(self, drawing: Drawing, frame: Frame, left: float, y_ticks: Mapping[float, str]) -> None:
        ticks = self.x.ticks
        if ticks is None:
            ticks = tick_texts(nice_ticks(*frame.x_range, max(3, int(frame.size[0] / 70))))
        if ticks or self.x.ticks is None:
            add_x_axis(drawing, frame, ticks, self.x.name)
        elif frame.x_range[0] <= 0 <= frame.x_range[1]:
            zero = frame.x(0.0)
            drawing.line([(zero, frame.corner[1]), (zero, frame.floor)], "muted", 1.0)
        if self.y.labels:
            for place, name in enumerate(self.y.labels):
                add_label(drawing, name, (left - 8, frame.y(place) + 4), left - 10)
        else:
            for tick, text in y_ticks.items():
                y = frame.y(tick)
                drawing.line([(frame.corner[0], y), (frame.right, y)], "line", 0.7)
                drawing.text(frame.corner[0] - 6, y + 4, text, "muted", anchor="end", size=SMALL)
        if self.y.name:
            text = fit_text(self.y.name, frame.size[0], SMALL)
            drawing.text(frame.corner[0], frame.corner[1] - 8, text, "muted", size=SMALL)

    def plot(self, ax: Any) -> None:
        """Draw the chart on matplotlib axes."""
        for mark in self.marks:
            mark.plot(ax)
        for axis, which in ((self.x, "x"), (self.y, "y")):
            ticks = dict(enumerate(axis.labels)) if axis.labels else axis.ticks
            if ticks:
                getattr(ax, f"set_{which}ticks")(list(ticks), [escape_math(text) for text in ticks.values()])
            if axis.ends is not None:
                getattr(ax, f"set_{which}lim")(*axis.ends)
            if axis.name:
                getattr(ax, f"set_{which}label")(escape_math(axis.name))
        if self.y.labels and not ax.yaxis_inverted():
            ax.invert_yaxis()
        if self.title:
            ax.set_title(escape_math(self.title))
        if self.legend:
            from matplotlib.lines import Line2D
            from matplotlib.patches import Patch

            tones = [(LIGHT[class_tone(place)], escape_math(name)) for place, name in enumerate(self.legend)]
            if len(tones) <= 8:
                ax.legend(handles=[Patch(color=color, label=name) for color, name in tones])
                return
            # Tones repeat after eight, so lines show their dashes; so many names would cover the curves.
            lines = [
                Line2D([], [], color=color, label=name, linestyle="--" if place >= 8 else "-")
                for place, (color, name) in enumerate(tones)
            ]
            ax.legend(handles=lines, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")


def class_lines(names: Sequence[str], x: Values, ys: Sequence[Values] | np.ndarray, **style: Any) -> list[Line]:
    """Make a line for each class over the same x, in the tone of its place."""
    return [
        Line(x, y, name, class_tone(place), dashes=DASHES[min(place // 8, 2)], **style)
        for place, (name, y) in enumerate(zip(names, ys, strict=True))
    ]


def bar_chart(
    names: Sequence[str], values: Values, texts: Sequence[str], description: str, tones: Sequence[str] = ("plus",),
    room: float = 190.0, width: float = BAND, height: float = 22.0,
) -> Chart:  # fmt: skip
    """Make a bar for each name, to the right for a value above 0 and to the left below."""
    values = np.asarray(values, dtype=float)
    bars = Bars(np.arange(len(names)), np.zeros(len(names)), values, tones, texts)
    ends = (min(0.0, float(values.min(initial=0.0))), max(0.0, float(values.max(initial=0.0))))
    y = Axis(labels=names, room=room)
    return Chart(description, [bars], Axis(ends=ends, ticks={}), y, width=width, height=height)


def share_chart(
    rows: Sequence[str], names: Sequence[str], shares: np.ndarray, description: str, width: float = PANEL,
    room: float = 130.0,
) -> Chart:  # fmt: skip
    """Make a bar for each row, divided among the most frequent names and the others; `shares` is (rows x names)."""
    kept = np.sort(np.argsort(-shares.mean(axis=0), kind="stable")[:SHARED])
    legend = [names[at] for at in kept]
    if len(kept) < shares.shape[1]:
        legend.append("others")
        shares = np.concatenate([shares[:, kept], 1 - shares[:, kept].sum(axis=1, keepdims=True)], axis=1)
    ends = np.cumsum(shares, axis=1)
    bars = [
        Bars(
            np.arange(len(rows)), ends[:, place] - shares[:, place], ends[:, place], (class_tone(place),),
            [f"{share:.0%}" for share in shares[:, place]], 0.72, 0.6, inside=True,
        )
        for place in range(len(legend))
    ]  # fmt: skip
    y = Axis(labels=rows, room=room)
    return Chart(description, bars, Axis(ends=(0.0, 1.0), ticks={}), y, legend, width=width, height=22)


def waterfall_chart(
    names: Sequence[str], steps: Values, total: str, description: str, x_name: str = ""
) -> Chart:  # fmt: skip
    """Make bars that begin where the one before ended, and at the foot a bar of their sum."""
    sizes = np.clip(np.nan_to_num(np.asarray(steps, float), posinf=50, neginf=-50), -50, 50)
    ends = np.cumsum(sizes)
    starts = np.concatenate([[0.0], ends[:-1], [0.0]])
    sum_end = ends[-1] if len(ends) else 0.0
    tones = [*("plus" if step >= 0 else "minus" for step in steps), "c7"]
    texts = [*(f"{step:+.2f}" for step in steps), f"{sum_end:+.2f}"]
    bars = Bars(np.arange(len(starts)), starts, [*ends, sum_end], tones, texts)
    x = Axis(x_name, widen([0.0, *ends], 0.02), ticks={})
    return Chart(description, [bars], x, Axis(labels=[*names, total], room=158), height=20.0)
