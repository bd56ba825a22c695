"""Tables as pictures: bars beside names, and cells in shades."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from softcount.pictures.drawing import NORMAL, SMALL, Drawing, fitted_text, text_width

LABEL = 190.0
"""Most room for the names at the left."""


def label_room(names: Sequence[str], most: float = LABEL, size: float = NORMAL) -> float:
    """Room for names beside a picture: what the longest takes, up to a limit."""
    return min(max((text_width(name, size) for name in names), default=0.0) + 16, most)


def bars_drawing(
    names: Sequence[str], values: Sequence[float], texts: Sequence[str], told: str, tones: Sequence[str] = ("plus",)
) -> Drawing:
    """A bar for each name, to the right where its value is above 0 and to the left where below, and its text."""
    width, line = 620.0, 22.0
    left = label_room(names)
    after = max(map(text_width, texts), default=0.0) + 12
    span = width - left - after
    low, high = min(0.0, *values), max(0.0, *values)
    scale = span / ((high - low) or 1.0)
    zero = left - low * scale
    drawing = Drawing(width, line * len(names) + 6, told)
    for place, (name, value, text) in enumerate(zip(names, values, texts, strict=True)):
        y, end = place * line + 4, zero + value * scale
        drawing.text(0, y + 12, fitted_text(name, left - 8))
        drawing.box((min(zero, end), y + 1), (abs(end - zero), line - 9), tones[place % len(tones)], 0.85)
        drawing.text(max(zero, end) + 6, y + 12, text, "muted", size=SMALL)
    drawing.line([(zero, 2), (zero, line * len(names) + 2)], "muted", 1.0)
    return drawing


class ShadedTable(Struct, frozen=True):
    """Cells in shades from 0 to 1, each with a text and a tone; names of the rows and of the columns."""

    rows: Sequence[str]
    columns: Sequence[str]
    shades: np.ndarray
    texts: Sequence[Sequence[str]]
    tones: Sequence[Sequence[str]] | str = "plus"
    row_name: str = ""
    column_name: str = ""

    def tone(self, row: int, column: int) -> str:
        return self.tones if isinstance(self.tones, str) else self.tones[row][column]


DEEPEST = 0.55
"""The strongest shade: text stays readable on it, light or dark."""


def shaded_drawing(table: ShadedTable, told: str, widest: float = 720.0) -> Drawing:
    """The table, a shade behind each text; columns as wide as their texts, within the width there is."""
    left = label_room([*table.rows, table.row_name])
    texts = [text for line in table.texts for text in line]
    wanted = max(map(text_width, [*texts, *table.columns]), default=20.0) + 14
    room = (widest - left) / max(len(table.columns), 1)
    cell = max(min(wanted, room), min(wanted, 44.0))
    head, line = (18.0 if table.column_name else 0.0) + 22.0, 26.0
    drawing = Drawing(left + cell * len(table.columns) + 2, head + line * len(table.rows) + 2, told)
    if table.column_name:
        drawing.text(left, 12, table.column_name, "muted", size=SMALL)
    if table.row_name:
        drawing.text(0, head - 8, fitted_text(table.row_name, left - 8, SMALL), "muted", size=SMALL)
    for place, name in enumerate(table.columns):
        middle = left + cell * (place + 0.5)
        drawing.text(middle, head - 8, fitted_text(name, cell - 6), anchor="middle", bold=True)
    for i, name in enumerate(table.rows):
        y = head + line * i
        drawing.text(left - 8, y + 17, fitted_text(name, left - 10), anchor="end")
        for j in range(len(table.columns)):
            _add_cell(drawing, table, (i, j), (left + cell * j, y), (cell, line))
    return drawing


def _add_cell(
    drawing: Drawing, table: ShadedTable, place: tuple[int, int], at: tuple[float, float], size: tuple[float, float]
) -> None:
    i, j = place
    shade = float(np.nan_to_num(table.shades[i, j]))
    if shade > 0.005:
        told = f"{table.rows[i]}, {table.columns[j]}: {table.texts[i][j]}"
        inside = (size[0] - 2, size[1] - 2)
        drawing.box((at[0] + 1, at[1] + 1), inside, table.tone(i, j), min(shade, 1.0) * DEEPEST, told)
    text = fitted_text(table.texts[i][j], size[0] - 6)
    drawing.text(at[0] + size[0] / 2, at[1] + 17, text, anchor="middle")
