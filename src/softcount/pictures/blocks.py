"""Curves for a terminal: in blocks of an eighth of a line, or as letters on a grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.pictures.axes import nice_ticks, tick_text

EIGHTHS = " ▁▂▃▄▅▆▇█"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
STEP, LEFT = 8, 8
"""Characters from one place of a lettered axis to the next, and before it."""


def spark(values: Sequence[float] | np.ndarray, top: float | None = None) -> str:
    """Draw numbers of 0 or more as one line of blocks; the largest (or `top`) is a whole block.

    >>> spark([0, 1, 2, 3, 4])
    ' ▂▄▆█'
    """
    heights = np.nan_to_num(np.asarray(values, dtype=float), posinf=0.0)
    most = float(heights.max(initial=0.0)) if top is None else top
    if not most > 0:
        return " " * len(heights)
    places = np.round(np.clip(heights / most, 0, 1) * 8).astype(int)
    return "".join(EIGHTHS[place] for place in places)


def area(values: Sequence[float] | np.ndarray, lines: int = 8) -> list[str]:
    """Draw numbers of 0 or more as a filled curve of several lines.

    >>> print("\\n".join(area([0, 1, 3, 4, 2], lines=2)))
      ▄█
     ▄███
    """
    heights = np.nan_to_num(np.asarray(values, dtype=float), posinf=0.0)
    most = float(heights.max(initial=0.0))
    if not most > 0:
        return [""] * lines
    filled = np.round(np.clip(heights / most, 0, 1) * 8 * lines).astype(int)
    return [
        "".join(EIGHTHS[place] for place in np.clip(filled - 8 * below, 0, 8)).rstrip()
        for below in range(lines - 1, -1, -1)
    ]


def axis(low: float, high: float, width: int) -> list[str]:
    """Draw a line with a mark at round numbers, and the numbers below it.

    >>> print("\\n".join(axis(0, 10, 31)))
    ┬─────┬─────┬─────┬─────┬─────┬
    0     2     4     6     8    10
    """
    marks, numbers, free = ["─"] * width, [" "] * width, 0
    for tick in nice_ticks(low, high, max(2, width // 7)):
        place = round((tick - low) / (high - low) * (width - 1)) if high > low else 0
        text = tick_text(tick)
        start = max(0, min(place - len(text) // 2, width - len(text)))
        if start < free:
            continue
        marks[place] = "┬"
        numbers[start : start + len(text)] = text
        free = start + len(text) + 1
    return ["".join(marks), "".join(numbers).rstrip()]


def lettered_curves(heights: np.ndarray, marks: Sequence[str], ends: tuple[float, float], lines: int = 12) -> list[str]:
    """Draw each row of `heights` with its letter; values beyond an end stand there, NaN nowhere.

    Curves that meet stand side by side.

    >>> print("\\n".join(lettered_curves(np.array([[0.0, 0.5, 1.0], [1.0, 0.5, 0.5]]), ["10", "20", "50"], (0, 1), 3)))
           1 ┤  b               a
             ┤          ab      b
           0 ┤  a
             └──────────────────────────
                10      20      50
    """
    low, high = ends
    grid = [[" "] * (STEP * len(marks) + 2) for _ in range(lines)]
    for letter, curve in zip(LETTERS, heights, strict=False):
        for place, height in enumerate(curve):
            if np.isfinite(height):
                row = grid[lines - 1 - round(min(max((height - low) / (high - low), 0.0), 1.0) * (lines - 1))]
                start = STEP * place + 2
                free = [at for at in range(start, min(start + STEP, len(row))) if row[at] == " "]
                if free:
                    row[free[0]] = letter
    edges = {0: tick_text(float(f"{high:.3g}")), lines - 1: tick_text(float(f"{low:.3g}"))}
    drawn = [f"{edges.get(at, ''):>{LEFT}} ┤{''.join(row)}".rstrip() for at, row in enumerate(grid)]
    below = "".join(f"{mark:<{STEP}}" for mark in marks).rstrip()
    return [*drawn, f"{'':>{LEFT}} └{'─' * (STEP * len(marks) + 2)}", f"{'':>{LEFT + 2}}  {below}"]
