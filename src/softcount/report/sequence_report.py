"""The report of a model of sequences: what follows what as a table in shades and as a graph, and what states show."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, hypot, pi, sin
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.pictures.drawing import SMALL, Drawing, Point, fitted_text
from softcount.pictures.table_pictures import ShadedTable, shaded_drawing
from softcount.pictures.tones import class_tone
from softcount.report.discretion import RARE, Discretion
from softcount.report.model_report import add_origin
from softcount.report.page import Heading, Page, grid_of
from softcount.report.plain_text import share
from softcount.report.sequence_page import sequence_page, state_names, symbol_names

MOST_SHADED, MOST_IN_GRAPH, MOST_ARROWS = 24, 10, 24
"""Symbols of the table in shades, and of the graph, and its arrows."""
LEAST = 0.03
"""Probabilities below this have no arrow."""


def sequence_report(model: Any, redact: bool = False) -> Page:
    """What a model of sequences holds, as one page."""
    told = Discretion(redact)
    page = sequence_page(model, told)
    blocks, page.blocks = page.blocks, page.blocks[:1]
    page.line("What follows what, as counted and estimated; the tables below the pictures have every figure.")
    page.heading("What follows what")
    _add_transitions(page, model, told)
    page.heading("All figures")
    for block in blocks[1:]:
        page.blocks.append(replace(block, level=2) if isinstance(block, Heading) else block)
    record = getattr(getattr(model, "fitted_", None), "record", None)
    if record is not None:
        add_origin(page, record, told)
    return page


def _add_transitions(page: Page, model: Any, told: Discretion) -> None:
    rows, columns, table, shares = transitions_of(model, told)
    if table is None:
        page.line(f"{len(model.contexts_):,} contexts are too many to draw: the model file has them all")
        return
    kept = np.argsort(-shares, kind="stable")[:MOST_SHADED]
    kept = np.sort(kept)
    own = [rows[at] for at in kept]
    other = (
        [at for at in range(len(columns)) if columns[at] in set(own)]
        if set(own) & set(columns)
        else range(len(columns))
    )
    other = list(other)[:MOST_SHADED]
    part = table[kept][:, list(other)]
    texts = [[f"{x:.0%}" if x >= 0.005 else "" for x in line] for line in part]
    shaded = ShadedTable(own, [columns[at] for at in other], np.sqrt(part), texts, "plus", "after", "comes")
    grid = grid_of(
        ("after", *shaded.columns),
        [(name, *map(share, line)) for name, line in zip(own, part.tolist(), strict=True)],
        right=shaded.columns,
    )
    reading = "A line for what was there, a column for what comes next; the deeper, the likelier."
    page.picture("What follows", shaded_drawing(shaded, "transitions in shades"), grid, reading)
    if len(rows) > len(kept):
        page.line(f"shown are the {len(kept)} most frequent of {len(rows)}")
    square = [at for at in np.argsort(-shares, kind="stable") if rows[at] in columns][:MOST_IN_GRAPH]
    if len(square) > 1:
        ends = [columns.index(rows[at]) for at in square]
        _add_ring(page, [rows[at] for at in square], table[square][:, ends])


def _add_ring(page: Page, names: list[str], inner: np.ndarray) -> None:
    """The likeliest transitions between a few as arrows."""
    order = np.argsort(-inner, axis=None, kind="stable")[:MOST_ARROWS]
    drawn = [(int(at // len(names)), int(at % len(names))) for at in order if inner.flat[at] >= LEAST]
    lines = [(names[i], names[j], share(float(inner[i, j]))) for i, j in drawn]
    rest = f"the {MOST_ARROWS} likeliest are drawn" if len(drawn) == MOST_ARROWS else f"from {LEAST:.0%} on"
    reading = f"Arrows are as wide as they are likely; {rest}."
    grid = grid_of(("from", "to", "probability"), lines, right=("probability",))
    page.picture("As a graph", ring_drawing(names, inner, drawn), grid, reading)


def transitions_of(model: Any, told: Discretion) -> tuple[list[str], list[str], np.ndarray | None, np.ndarray]:
    """Names of what was and what comes, the probabilities between, and how frequent the former are."""
    if hasattr(model, "n_states_"):
        names = state_names(model, told)
        return names, names, np.asarray(model.transitions_), np.asarray(model.occupied_)
    if model.order_ != 1 and len(model.contexts_) > MOST_SHADED:
        return [], [], None, np.zeros(0)
    name, frequent = symbol_names(model, told), model.shares_
    kept = [told.shows_cells or name(key) != RARE for key in model.contexts_]
    rows = [name(key) for key, there in zip(model.contexts_, kept, strict=True) if there]
    often = [frequent.get(key, 0.0) for key, there in zip(model.contexts_, kept, strict=True) if there]
    ahead = [told.shows_cells or name(key) != RARE for key in model.next_symbols_]
    columns = [name(key) for key, there in zip(model.next_symbols_, ahead, strict=True) if there]
    return rows, columns, np.asarray(model.transitions_)[np.ix_(kept, ahead)], np.array(often)


def ring_drawing(names: Sequence[str], table: np.ndarray, drawn: Sequence[tuple[int, int]]) -> Drawing:
    """States around a ring, arrows between them as wide as they are likely, a loop for staying."""
    count, radius, around = len(names), 26.0, max(90.0, 22.0 * len(names))
    middle = around + radius + 46
    drawing = Drawing(2 * middle, 2 * middle, "transitions as a graph")
    at = [(middle + around * sin(2 * pi * k / count), middle - around * cos(2 * pi * k / count)) for k in range(count)]
    for i, j in drawn:
        if i == j:
            _add_loop(drawing, at[i], (middle, middle), float(table[i, i]), radius)
        else:
            _add_arrow(drawing, at[i], at[j], float(table[i, j]), radius)
    for place, (x, y) in enumerate(at):
        drawing.dots([(x, y)], "paper", radius)
        drawing.dots([(x, y)], class_tone(place), radius, strength=0.25)
        drawing.text(x, y + 4, fitted_text(names[place], 2 * radius - 4), anchor="middle", bold=True)
    return drawing


def _add_arrow(drawing: Drawing, one: Point, other: Point, p: float, radius: float) -> None:
    """A line bent to its right, so that the way back lies beside it."""
    (x, y), (u, v) = one, other
    far = hypot(u - x, v - y) or 1.0
    ahead, aside = ((u - x) / far, (v - y) / far), (-(v - y) / far, (u - x) / far)
    bend = min(far * 0.16, 26.0)
    start = (x + ahead[0] * radius + aside[0] * 6, y + ahead[1] * radius + aside[1] * 6)
    end = (u - ahead[0] * (radius + 8) + aside[0] * 8, v - ahead[1] * (radius + 8) + aside[1] * 8)
    top = ((start[0] + end[0]) / 2 + aside[0] * bend, (start[1] + end[1]) / 2 + aside[1] * bend)
    drawing.line(_bent(start, top, end), "muted", 0.6 + 5 * p, strength=0.7)
    _add_head(drawing, end, ahead)
    drawing.text(top[0], top[1] + 4, f"{p:.2f}", "muted", anchor="middle", size=SMALL, halo=True)


def _bent(start: Point, top: Point, end: Point, steps: int = 12) -> list[Point]:
    found = []
    for k in range(steps + 1):
        t = k / steps
        a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
        found.append((a * start[0] + b * top[0] + c * end[0], a * start[1] + b * top[1] + c * end[1]))
    return found


def _add_head(drawing: Drawing, tip: Point, ahead: Point) -> None:
    (x, y), (a, b) = tip, ahead
    drawing.area([(x + 7 * a, y + 7 * b), (x - 4 * b, y + 4 * a), (x + 4 * b, y - 4 * a)], "muted")


def _add_loop(drawing: Drawing, at: Point, middle: Point, p: float, radius: float) -> None:
    far = hypot(at[0] - middle[0], at[1] - middle[1]) or 1.0
    out = ((at[0] - middle[0]) / far, (at[1] - middle[1]) / far) if far > 1 else (0.0, -1.0)
    centre = (at[0] + out[0] * (radius + 6), at[1] + out[1] * (radius + 6))
    ring = [(centre[0] + 14 * cos(2 * pi * k / 24), centre[1] + 14 * sin(2 * pi * k / 24)) for k in range(25)]
    drawing.line(ring, "muted", 0.6 + 5 * p, strength=0.7)
    drawing.text(centre[0] + out[0] * 24, centre[1] + out[1] * 24 + 4, f"{p:.2f}", "muted", anchor="middle", size=SMALL)
