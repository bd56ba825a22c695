"""A nomogram: for each column the log-odds that its values add, over one axis; below, what their sum means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.pictures.chart import Frame, add_x_axis, label_room, widen
from softcount.pictures.drawing import SMALL, Drawing, Point, fit_text, text_width
from softcount.pictures.text import nice_ticks, tick_text

WIDTH = 760.0


class NomogramLine(Struct, frozen=True):
    """A column: the log-odds that its values add, and the texts at them; `numbers` are in order and make a curve."""

    name: str
    odds: np.ndarray
    texts: Sequence[str]
    numbers: bool


class Nomogram(Struct, frozen=True):
    """Lines of columns, the log-odds to start from, and the two classes: the first at the right."""

    description: str
    lines: Sequence[NomogramLine]
    start: float
    names: tuple[str, str]

    def draw(self) -> Drawing:
        """Lay the nomogram out in pixels.

        Numbers rise from the foot of their line to its top, so that values with the same log-odds lie above each other.
        """
        left = label_room([line.name for line in self.lines] + ["all together"], 150)
        known = np.concatenate([[0.0, self.start], *(line.odds[np.isfinite(line.odds)] for line in self.lines)])
        frame = Frame((left + 8, 40), (WIDTH - left - 30, 1), widen(known, 0.06), (0.0, 1.0))
        shelves = [[] if line.numbers else _find_shelves(line, frame) for line in self.lines]
        heights = [
            66.0 if line.numbers else 30.0 + 13.0 * max(own, default=0)
            for line, own in zip(self.lines, shelves, strict=True)
        ]
        drawing = Drawing(WIDTH, 40 + sum(heights) + 118, self.description)
        first, second = self.names
        drawing.text(frame.corner[0], 12, f"← supports {fit_text(second, 220)}", "minus", size=SMALL)
        drawing.text(WIDTH - 22, 12, f"supports {fit_text(first, 220)} →", "plus", anchor="end", size=SMALL)
        y = 40.0
        for tick in nice_ticks(*frame.x_range, 8):
            x = frame.x(tick)
            drawing.line([(x, 30), (x, y + sum(heights))], "line", 1.4 if tick == 0 else 0.7)
            drawing.text(x, 26, tick_text(tick), "muted", anchor="middle", size=SMALL)
        for line, own, height in zip(self.lines, shelves, heights, strict=True):
            drawing.text(left, y + height / 2 + 4, fit_text(line.name, left - 4), anchor="end", bold=True)
            if line.numbers:
                _add_curve(drawing, line, frame, y, height)
            else:
                _add_levels(drawing, line, frame, y, own)
            y += height
        self._add_sum(drawing, left, y + 14)
        return drawing

    def _add_sum(self, drawing: Drawing, left: float, y: float) -> None:
        known = [line.odds[np.isfinite(line.odds)] for line in self.lines]
        low = self.start + sum(float(odds.min()) for odds in known if len(odds))
        high = self.start + sum(float(odds.max()) for odds in known if len(odds))
        ends = (max(min(low, -2.0), -12.0), min(max(high, 2.0), 12.0))
        frame = Frame((left + 8, y), (WIDTH - left - 30, 22), ends, (0.0, 1.0))
        drawing.text(left, y + 26, "all together", anchor="end", bold=True)
        add_x_axis(drawing, frame, {tick: tick_text(tick) for tick in nice_ticks(*ends, 10)})
        at = frame.x(self.start)
        drawing.line([(at, y + 10), (at, y + 22)], "ink", 2.0, title=f"start {self.start:+.3f}")
        drawing.text(at, y + 6, f"start {self.start:+.2f}", anchor="middle", size=SMALL)
        shares = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999]
        ticks = {float(np.log(p / (1 - p))): f"{p:g}" for p in shares}
        below = Frame((left + 8, y + 38), (WIDTH - left - 30, 22), ends, (0.0, 1.0))
        add_x_axis(drawing, below, {tick: text for tick, text in ticks.items() if ends[0] <= tick <= ends[1]})
        first, second = self.names
        text = fit_text(f"probability of {first} where it is {first} or {second}", WIDTH - left - 40, SMALL)
        drawing.text(WIDTH - 22, y + 92, text, "muted", anchor="end", size=SMALL)

    def plot(self, ax: Any) -> None:
        self.draw().plot(ax)


def _find_shelves(line: NomogramLine, frame: Frame) -> list[int]:
    ends: list[float] = []
    found = [0] * len(line.texts)
    for place in sorted(range(len(line.texts)), key=lambda place: line.odds[place]):
        if not np.isfinite(line.odds[place]):
            continue
        half = text_width(fit_text(line.texts[place], 110, SMALL), SMALL) / 2 + 3
        x = frame.x(float(line.odds[place]))
        shelf = next((at for at, end in enumerate(ends) if x - half >= end), len(ends))
        ends[shelf : shelf + 1] = [x + half]
        found[place] = shelf
    return found


def _add_levels(drawing: Drawing, line: NomogramLine, frame: Frame, top: float, shelves: Sequence[int]) -> None:
    middle = top + 12
    known = [place for place in range(len(line.texts)) if np.isfinite(line.odds[place])]
    places = [(frame.x(float(line.odds[place])), middle) for place in known]
    if len(places) > 1:
        drawing.line([min(places), max(places)], "muted", 1.0)
    _add_dots(drawing, places, line.odds[known], 3.2)
    for place, (x, _) in zip(known, places, strict=True):
        text = fit_text(line.texts[place], 110, SMALL)
        drawing.text(x, middle + 15 + 13 * shelves[place], text, anchor="middle", size=SMALL)


def _add_curve(drawing: Drawing, line: NomogramLine, frame: Frame, top: float, height: float) -> None:
    known = np.isfinite(line.odds)
    rising = np.linspace(top + height - 14, top + 12, len(line.odds))
    drawing.line(
        [(frame.x(float(x)), float(y)) for x, y in zip(line.odds[known], rising[known], strict=True)], "muted", 1.4
    )
    marked = [place for place, text in enumerate(line.texts) if text and known[place]]
    spots = [(frame.x(float(line.odds[place])), float(rising[place])) for place in marked]
    _add_dots(drawing, spots, line.odds[marked], 2.8)
    named: list[Point] = []
    for place, (x, y) in zip(marked, spots, strict=True):
        if all(abs(y - other) >= 11 or abs(x - at) > 60 for at, other in named):
            drawing.text(x + 6, y + 4, line.texts[place], size=SMALL, halo=True)
            named.append((x, y))


def _add_dots(drawing: Drawing, places: Sequence[Point], odds: np.ndarray, radius: float) -> None:
    for tone, wanted in (("plus", True), ("minus", False)):
        own = [at for at, value in zip(places, odds, strict=True) if bool(value >= 0) is wanted]
        if own:
            drawing.dots(own, tone, radius)
