"""Curves over an axis as an SVG picture. Names come from data: each is made harmless before it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from softcount.pictures.axis_ticks import nice_ticks, tick_text
from softcount.pictures.drawing import markup, svg_file
from softcount.pictures.tones import CLASS_TONES, class_tone
from softcount.pictures.visible_text import printable

WIDTH, HEIGHT = 720.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 16.0, 34.0, 48.0
LEGEND_LINE = 18.0
LONGEST = 44
"""Characters of a name in a picture; longer ones are cut."""


class ChartLine(Struct, frozen=True):
    """A line through points, under its name; `steps` goes level to the next point before it rises or falls."""

    name: str
    x: np.ndarray
    y: np.ndarray
    steps: bool = False


class Bars(Struct, frozen=True):
    """Bars from edge to edge, behind the curves."""

    edges: np.ndarray
    heights: np.ndarray


class Chart(Struct, frozen=True):
    """What is drawn: curves and bars in one frame, with a title and what the axes are of.

    `x_ticks` are places along the axis and what is written there, where round numbers would not do.
    """

    title: str
    x_name: str
    y_name: str
    curves: Sequence[ChartLine]
    bars: Bars | None = None
    y_top: float | None = None
    x_ticks: Mapping[float, str] | None = None

    @property
    def x_range(self) -> tuple[float, float]:
        """From the first point to the last of all curves and bars."""
        ends = [part for curve in self.curves for part in (curve.x.min(), curve.x.max())]
        ends += [] if self.bars is None else [self.bars.edges[0], self.bars.edges[-1]]
        low, high = float(min(ends)), float(max(ends))
        beside = max(0.5, abs(low) * 1e-6)
        return (low, high) if high > low else (low - beside, high + beside)

    @property
    def highest(self) -> float:
        """The top of the frame."""
        if self.y_top is not None:
            return self.y_top
        tops = [float(np.nanmax(np.where(np.isfinite(curve.y), curve.y, 0.0))) for curve in self.curves]
        tops += [] if self.bars is None else [float(self.bars.heights.max())]
        return (max(tops) * 1.05 if tops else 1.0) or 1.0


def chart_svg(chart: Chart) -> str:
    """The picture, as the text of an SVG file."""
    return stacked_svg([chart])


def stacked_svg(charts: Sequence[Chart]) -> str:
    """Several charts, one below the other, as one picture."""
    tops = np.concatenate([[0.0], np.cumsum([_height(chart) for chart in charts])])
    parts = [
        f'<g transform="translate(0 {top:.0f})">{chr(10).join(_parts(chart))}</g>'
        for chart, top in zip(charts, tops[:-1].tolist(), strict=True)
    ]
    return svg_file((WIDTH, float(tops[-1])), _shown(charts[0].title), "\n".join(parts))


def _parts(chart: Chart) -> Iterator[str]:
    yield f'<text x="{LEFT:.0f}" y="20" font-size="14">{markup(_shown(chart.title))}</text>'
    yield from _axes(chart)
    yield from _legend(chart)
    yield from _bars(chart)
    yield from (_line(chart, place) for place in range(len(chart.curves)))


def _height(chart: Chart) -> float:
    return HEIGHT + LEGEND_LINE * ((len(chart.curves) + 1) // 2)


def _shown(name: object) -> str:
    text = printable(name)
    return text if len(text) <= LONGEST * 2 else text[: LONGEST * 2 - 1] + "…"


def _x(chart: Chart, value: np.ndarray | float) -> np.ndarray:
    low, high = chart.x_range
    # Halves first: from the least number to the largest is more than a number can hold.
    share = (np.asarray(value) / 2 - low / 2) / (high / 2 - low / 2)
    return np.asarray(LEFT + share * (WIDTH - LEFT - RIGHT))


def _y(chart: Chart, value: np.ndarray | float) -> np.ndarray:
    share = np.clip(np.nan_to_num(np.asarray(value, dtype=float) / chart.highest, posinf=1.0), 0.0, 1.0)
    return np.asarray(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM))


def _axes(chart: Chart) -> Iterator[str]:
    floor = HEIGHT - BOTTOM
    yield f'<path d="M{LEFT},{TOP} V{floor} H{WIDTH - RIGHT}" class="s-ink"/>'
    round_ones = {tick: tick_text(tick) for tick in nice_ticks(*chart.x_range, 7)}
    for tick, told in (round_ones if chart.x_ticks is None else chart.x_ticks).items():
        x = float(_x(chart, tick))
        yield f'<path d="M{x:.1f},{floor} v5" class="s-ink"/>'
        yield f'<text x="{x:.1f}" y="{floor + 18:.1f}" text-anchor="middle">{markup(told)}</text>'
    for tick in nice_ticks(0.0, chart.highest, 5):
        y = float(_y(chart, tick))
        yield f'<path d="M{LEFT - 5},{y:.1f} H{WIDTH - RIGHT}" class="s-line" stroke-width="0.5"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick_text(tick)}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield f'<text x="{middle:.1f}" y="{floor + 38:.1f}" text-anchor="middle">{markup(_shown(chart.x_name))}</text>'
    yield (
        f'<text x="14" y="{(TOP + floor) / 2:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {(TOP + floor) / 2:.1f})">{markup(_shown(chart.y_name))}</text>'
    )


def _legend(chart: Chart) -> Iterator[str]:
    """The curves' names below the frame, two in a line."""
    for place, curve in enumerate(chart.curves):
        x, y = LEFT + (place % 2) * (WIDTH - LEFT) / 2, HEIGHT + LEGEND_LINE * (place // 2)
        text = printable(curve.name)
        text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        yield f'<path d="M{x:.1f},{y - 4:.1f} h22" {_stroke(place)}/>'
        yield f'<text x="{x + 28:.1f}" y="{y:.1f}">{markup(text)}</text>'


def _stroke(place: int) -> str:
    again = place // len(CLASS_TONES)
    dashes = again * ' stroke-dasharray="6 3"' if again < 2 else ' stroke-dasharray="2 3"'
    return f'class="s-{class_tone(place)}" stroke-width="2"{dashes}'


def _bars(chart: Chart) -> Iterator[str]:
    if chart.bars is None:
        return
    floor = HEIGHT - BOTTOM
    yield '<g class="f-line" fill-opacity="0.6">'
    x, tops = _x(chart, chart.bars.edges), _y(chart, chart.bars.heights)
    for left, right, top in zip(x[:-1], x[1:], tops, strict=True):
        yield f'<path d="M{left:.1f},{floor} V{top:.1f} H{right:.1f} V{floor} Z"/>'
    yield "</g>"


def _line(chart: Chart, place: int) -> str:
    curve = chart.curves[place]
    x, y = _x(chart, curve.x), _y(chart, curve.y)
    if curve.steps:
        x, y = np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    name = markup(curve.name)
    return f'<polyline points="{points}" {_stroke(place)}><title>{name}</title></polyline>'
