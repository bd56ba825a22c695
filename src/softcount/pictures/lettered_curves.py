"""Curves as letters on a grid of text: each is a letter, placed at its height over each place of the axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.pictures.axis_ticks import tick_text

LINES = 12
STEP = 8
"""Characters from one place of the axis to the next."""
MARGIN = 8
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def lettered_curves(
    heights: np.ndarray, marks: Sequence[str], ends: tuple[float, float], lines: int = LINES
) -> list[str]:
    """A row of `heights` for each curve, between two ends; what is beyond one stands there, NaN nowhere.

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
                line = lines - 1 - round(min(max((height - low) / (high - low), 0.0), 1.0) * (lines - 1))
                _put(grid[line], STEP * place + 2, letter)
    edges = {0: tick_text(float(f"{high:.3g}")), lines - 1: tick_text(float(f"{low:.3g}"))}
    drawn = [f"{edges.get(at, ''):>{MARGIN}} ┤{''.join(row)}".rstrip() for at, row in enumerate(grid)]
    axis = "".join(f"{mark:<{STEP}}" for mark in marks).rstrip()
    return [*drawn, f"{'':>{MARGIN}} └{'─' * (STEP * len(marks) + 2)}", f"{'':>{MARGIN + 2}}  {axis}"]


def _put(row: list[str], at: int, letter: str) -> None:
    """The letter at a place, or right of those that are there."""
    free = next((place for place in range(at, min(at + STEP, len(row))) if row[place] == " "), None)
    if free is not None:
        row[free] = letter
