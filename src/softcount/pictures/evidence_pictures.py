"""Evidence for one class against another: a nomogram of what values add, and a row's evidence step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from softcount.pictures.axis_ticks import nice_ticks, tick_text
from softcount.pictures.curve_pictures import PANEL
from softcount.pictures.drawing import SMALL, Drawing, fitted_text, text_width
from softcount.pictures.plot_frame import PlotFrame, add_x_axis, widened
from softcount.pictures.table_pictures import label_room

WIDTH = 760.0


class NomogramLine(Struct, frozen=True):
    """A column: the log-odds that values add, and what is written at them; `numbers` are in order and make a curve."""

    name: str
    odds: np.ndarray
    texts: Sequence[str]
    numbers: bool


def nomogram_drawing(lines: Sequence[NomogramLine], start: float, names: tuple[str, str], told: str) -> Drawing:
    """One line for each column over a common axis of log-odds; below, the start and what a sum of them means.

    Numbers go up from the foot of their line to its top, so that values which say the same lie above each other.
    """
    left = label_room([line.name for line in lines] + ["all together"], 150)
    known = np.concatenate([[0.0, start], *(line.odds[np.isfinite(line.odds)] for line in lines)])
    frame = PlotFrame((left + 8, 40), (WIDTH - left - 30, 1), widened(known, 0.06), (0.0, 1.0))
    heights = [_line_height(line, frame) for line in lines]
    drawing = Drawing(WIDTH, 40 + sum(heights) + 118, told)
    drawing.text(frame.corner[0], 12, f"← speaks for {fitted_text(names[1], 220)}", "minus", size=SMALL)
    drawing.text(WIDTH - 22, 12, f"speaks for {fitted_text(names[0], 220)} →", "plus", anchor="end", size=SMALL)
    y = 40.0
    for tick in nice_ticks(*frame.x_range, 8):
        x = frame.x(tick)
        drawing.line([(x, 30), (x, y + sum(heights))], "line", 1.4 if tick == 0 else 0.7)
        drawing.text(x, 26, tick_text(tick), "muted", anchor="middle", size=SMALL)
    for line, height in zip(lines, heights, strict=True):
        drawing.text(left, y + height / 2 + 4, fitted_text(line.name, left - 4), anchor="end", bold=True)
        _add_curve(drawing, line, frame, y, height) if line.numbers else _add_levels(drawing, line, frame, y, height)
        y += height
    _add_sum(drawing, lines, start, names, (left, y + 14))
    return drawing


def _line_height(line: NomogramLine, frame: PlotFrame) -> float:
    if line.numbers:
        return 66.0
    return 30.0 + 13.0 * max(_shelves(line, frame), default=0)


def _shelves(line: NomogramLine, frame: PlotFrame) -> list[int]:
    """On which shelf each level's text stands so that no two touch."""
    ends: list[float] = []
    found = [0] * len(line.texts)
    order = sorted(range(len(line.texts)), key=lambda place: line.odds[place])
    for place in order:
        if not np.isfinite(line.odds[place]):
            continue
        half = text_width(fitted_text(line.texts[place], 110, SMALL), SMALL) / 2 + 3
        x = frame.x(float(line.odds[place]))
        shelf = next((at for at, end in enumerate(ends) if x - half >= end), len(ends))
        ends[shelf : shelf + 1] = [x + half]
        found[place] = shelf
    return found


def _add_levels(drawing: Drawing, line: NomogramLine, frame: PlotFrame, top: float, height: float) -> None:
    middle = top + 12
    places = [(frame.x(float(odds)), middle) for odds in line.odds if np.isfinite(odds)]
    if len(places) > 1:
        drawing.line([min(places), max(places)], "muted", 1.0)
    _add_dots(drawing, places, [float(odds) for odds in line.odds if np.isfinite(odds)], 3.2)
    for odds, text, shelf in zip(line.odds, line.texts, _shelves(line, frame), strict=True):
        if np.isfinite(odds):
            x = frame.x(float(odds))
            drawing.text(x, middle + 15 + 13 * shelf, fitted_text(text, 110, SMALL), anchor="middle", size=SMALL)


def _add_curve(drawing: Drawing, line: NomogramLine, frame: PlotFrame, top: float, height: float) -> None:
    known = np.isfinite(line.odds)
    rising = np.linspace(top + height - 14, top + 12, len(line.odds))
    places = [(frame.x(float(x)), float(y)) for x, y, there in zip(line.odds, rising, known, strict=True) if there]
    drawing.line(places, "muted", 1.4)
    free: list[tuple[float, float]] = []
    marked = [place for place, text in enumerate(line.texts) if text and known[place]]
    spots = [(frame.x(float(line.odds[place])), float(rising[place])) for place in marked]
    _add_dots(drawing, spots, [float(line.odds[place]) for place in marked], 2.8)
    for place, (x, y) in zip(marked, spots, strict=True):
        text = line.texts[place]
        if all(abs(y - other) >= 11 or abs(x - at) > 60 for at, other in free):
            drawing.text(x + 6, y + 4, text, size=SMALL, halo=True)
            free.append((x, y))


def _add_dots(drawing: Drawing, places: Sequence[tuple[float, float]], odds: Sequence[float], radius: float) -> None:
    """Dots in the tone of the side they speak for."""
    for tone, wanted in (("plus", True), ("minus", False)):
        own = [at for at, value in zip(places, odds, strict=True) if (value >= 0) is wanted]
        if own:
            drawing.dots(own, tone, radius)


def _add_sum(
    drawing: Drawing, lines: Sequence[NomogramLine], start: float, names: tuple[str, str], at: tuple[float, float]
) -> None:
    """The start, and under the sum of all log-odds the probability that it means."""
    left, y = at
    low, high = (sum(_end(line, pick) for line in lines) + start for pick in (np.nanmin, np.nanmax))
    ends = (max(min(low, -2.0), -12.0), min(max(high, 2.0), 12.0))
    frame = PlotFrame((left + 8, y), (WIDTH - left - 30, 22), ends, (0.0, 1.0))
    drawing.text(left, y + 26, "all together", anchor="end", bold=True)
    add_x_axis(drawing, frame, {tick: tick_text(tick) for tick in nice_ticks(*ends, 10)})
    drawing.line([(frame.x(start), y + 10), (frame.x(start), y + 22)], "ink", 2.0, told=f"start {start:+.3f}")
    drawing.text(frame.x(start), y + 6, f"start {start:+.2f}", anchor="middle", size=SMALL)
    shares = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999]
    below = PlotFrame((left + 8, y + 38), (WIDTH - left - 30, 22), ends, (0.0, 1.0))
    ticks = {float(np.log(p / (1 - p))): f"{p:g}" for p in shares}
    add_x_axis(drawing, below, {tick: told for tick, told in ticks.items() if ends[0] <= tick <= ends[1]})
    said = f"probability of {names[0]} where it is {names[0]} or {names[1]}"
    drawing.text(WIDTH - 22, y + 92, fitted_text(said, WIDTH - left - 40, SMALL), "muted", anchor="end", size=SMALL)


def _end(line: NomogramLine, pick: object) -> float:
    known = line.odds[np.isfinite(line.odds)]
    return float(pick(known)) if len(known) else 0.0  # type: ignore[operator]


def waterfall_drawing(names: Sequence[str], steps: Sequence[float], told: str) -> Drawing:
    """Steps from 0, one below the other, each beginning where the last ended; at the foot, where they end."""
    line, texts = 20.0, [f"{step:+.2f}" for step in steps]
    left = label_room(list(names), 158, SMALL)
    ends = np.concatenate([[0.0], np.cumsum(np.clip(np.nan_to_num(steps, posinf=50, neginf=-50), -50, 50))])
    room = max(text_width(text, SMALL) for text in texts) + 8
    frame = PlotFrame((left + room, 0), (PANEL - left - 2 * room, 1), widened(ends, 0.02), (0.0, 1.0))
    drawing = Drawing(PANEL, line * (len(steps) + 1) + 12, told)
    zero = frame.x(0.0)
    drawing.line([(zero, 0), (zero, line * (len(steps) + 1))], "line", 1.2)
    for place, (name, step, text) in enumerate(zip(names, steps, texts, strict=True)):
        y, a, b = place * line, frame.x(float(ends[place])), frame.x(float(ends[place + 1]))
        tone = "plus" if step >= 0 else "minus"
        drawing.text(0, y + 13, fitted_text(name, left - 4, SMALL), size=SMALL)
        drawing.box((min(a, b), y + 3), (max(abs(b - a), 1.0), line - 7), tone)
        at, anchor = (max(a, b) + 4, "start") if step >= 0 else (min(a, b) - 4, "end")
        drawing.text(at, y + 13, text, "muted", anchor=anchor, size=SMALL)
    y, total, end = line * len(steps), float(ends[-1]), frame.x(float(ends[-1]))
    drawing.text(0, y + 14, "together", bold=True, size=SMALL)
    drawing.box((min(zero, end), y + 5), (max(abs(end - zero), 1.0), line - 9), "ink", 0.75)
    at, anchor = (end + 4, "start") if total >= 0 else (end - 4, "end")
    drawing.text(at, y + 14, f"{total:+.2f}", anchor=anchor, size=SMALL, bold=True)
    return drawing
