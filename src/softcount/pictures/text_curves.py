"""Curves in blocks of an eighth of a line, which every terminal has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.pictures.axis_ticks import nice_ticks, tick_text

EIGHTHS = " ▁▂▃▄▅▆▇█"


def spark(values: Sequence[float] | np.ndarray, top: float | None = None) -> str:
    """Numbers of 0 or more as one line of blocks, the largest (or `top`) a whole one.

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
    """Numbers of 0 or more as a filled curve, some lines high.

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
    """A line with a mark at round numbers, and the numbers below it.

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
