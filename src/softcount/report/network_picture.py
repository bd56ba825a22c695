"""A network as a picture: nodes in layers with shares of their levels, arcs as wide as what they say; its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct

from softcount.networks.network import Graph
from softcount.pictures.drawing import SMALL, Drawing, Point, fitted_text
from softcount.pictures.plot_frame import add_legend, legend_height
from softcount.pictures.table_pictures import label_room
from softcount.pictures.tones import class_tone
from softcount.report.graph_layout import GraphLayout, Route, layered

BOX, LINE, HEAD, GAP, BETWEEN = 148.0, 13.0, 20.0, 26.0, 46.0
WIDEST = 7.0
"""Pixels of the arc that says most."""


class Monitor(Struct, frozen=True):
    """A node as it is shown: its name, lines of text with shares from 0 to 1, and whether no column shows it."""

    name: str
    lines: Sequence[tuple[str, float]]
    hidden: bool = False


def network_drawing(
    graph: Graph, monitors: Sequence[Monitor], says: Mapping[tuple[int, int], float], told: str
) -> Drawing:
    """The graph in layers from the top down; `says` is what each edge says, in nats, and makes it as wide."""
    layout = layered(graph, [BOX] * len(monitors), GAP)
    heights = [HEAD + LINE * len(monitor.lines) + 6 for monitor in monitors]
    tops = _tops(layout, heights)
    drawing = Drawing(layout.width + 16, tops[-1] + 4, told)
    most = max(says.values(), default=0.0) or 1.0
    for route in layout.routes:
        nats = says.get((route.parent, route.child))
        width = 1.2 if nats is None else 0.8 + WIDEST * nats / most
        _add_arc(drawing, layout, route, (tops, heights), width)
    for node, monitor in enumerate(monitors):
        at = (layout.x[node] + 8 - BOX / 2, tops[layout.layer[node]])
        _add_box(drawing, monitor, at, heights[node])
    return drawing


def _tops(layout: GraphLayout, heights: Sequence[float]) -> list[float]:
    """Where each layer begins: as far down as the tallest node of each layer above takes."""
    tall = [0.0] * layout.layers
    for node, layer in enumerate(layout.layer):
        tall[layer] = max(tall[layer], heights[node])
    tops = [8.0]
    for height in tall:
        tops.append(tops[-1] + height + BETWEEN)
    tops[-1] -= BETWEEN
    return tops


def _add_arc(
    drawing: Drawing, layout: GraphLayout, route: Route, down: tuple[Sequence[float], Sequence[float]], width: float
) -> None:
    tops, heights = down
    start = (layout.x[route.parent] + 8, tops[layout.layer[route.parent]] + heights[route.parent])
    points: list[Point] = [start]
    for x, layer in route.bends:
        points += [(x + 8, tops[layer]), (x + 8, tops[layer + 1] - BETWEEN)]
    points.append((layout.x[route.child] + 8, tops[layout.layer[route.child]] - 7))
    path: list[Point] = []
    for place, (one, other) in enumerate(pairwise(points)):
        path += [one, other] if place % 2 else _curve(one, other)
    drawing.line(path, "muted", width, strength=0.7)
    x, y = points[-1]
    drawing.area([(x - 4.5, y - 2), (x + 4.5, y - 2), (x, y + 7)], "muted")


def _curve(one: Point, other: Point, steps: int = 10) -> list[Point]:
    """A line that leaves and arrives straight down."""
    parts = [k / steps for k in range(steps + 1)]
    eased = [t * t * (3 - 2 * t) for t in parts]
    return [
        (one[0] + (other[0] - one[0]) * e, one[1] + (other[1] - one[1]) * t) for t, e in zip(parts, eased, strict=True)
    ]


def _add_box(drawing: Drawing, monitor: Monitor, at: Point, height: float) -> None:
    (x, y), right, foot = at, at[0] + BOX, at[1] + height
    drawing.box(at, (BOX, height), "soft")
    dashes = "5 3" if monitor.hidden else ""
    drawing.line(
        [at, (right, y), (right, foot), (x, foot)], "muted", 1.0, closed=True, dashes=dashes, told=monitor.name
    )
    drawing.text(x + 7, y + 14, fitted_text(monitor.name, BOX - 14), bold=True)
    for place, (text, share) in enumerate(monitor.lines):
        top = y + HEAD + place * LINE
        if share == share:
            drawing.box((x + 74, top + 2), ((BOX - 82) * min(max(share, 0.0), 1.0), LINE - 4), "plus", 0.7)
            drawing.text(x + 7, top + 10, fitted_text(text, 64, SMALL), size=SMALL)
        else:
            drawing.text(x + 7, top + 10, fitted_text(text, BOX - 12, SMALL), size=SMALL)


def table_bars(rows: Sequence[str], levels: Sequence[str], shares: np.ndarray, told: str) -> Drawing:
    """A bar for each row, divided among the levels: (rows x levels) shares."""
    width, line = 620.0, 22.0
    left = label_room(rows, 240)
    head = legend_height(levels, width - left) + 6
    drawing = Drawing(width, head + line * len(rows) + 4, told)
    add_legend(drawing, levels, (left, 0), width - left)
    for row, name in enumerate(rows):
        y, x = head + row * line, left
        drawing.text(left - 8, y + 13, fitted_text(name, left - 10), anchor="end")
        for place in range(len(levels)):
            part = float(shares[row, place]) * (width - left - 4)
            drawing.box((x, y + 2), (max(part - 0.8, 0.0), line - 6), class_tone(place), 0.6)
            if part > 40:
                drawing.text(x + part / 2, y + 14, f"{shares[row, place]:.0%}", anchor="middle", size=SMALL)
            x += part
    return drawing
