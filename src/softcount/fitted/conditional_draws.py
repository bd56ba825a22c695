"""Draws that meet conditions: what does not is drawn anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.table.schema import Key

MOST_DRAWS = 20_000
"""How often a cell is drawn anew until it is as given."""

TRIES = 100
"""How often a cell beyond the range of its column is drawn anew, before it gets the end of the range."""

Draw = Callable[[np.ndarray], dict[Key, Any]]
Test = Callable[[Any], np.ndarray]
"""Which of the cells of a column are as given."""


def drawn_within(draw: Draw, groups: np.ndarray, tests: Mapping[Key, Test]) -> dict[Key, Any]:
    """Columns of cells, one for each group, that pass their tests; rows that do not are drawn again."""
    columns = draw(groups)
    for _ in range(MOST_DRAWS if tests else 0):
        passed = np.all([test(columns[key]) for key, test in tests.items()], axis=0)
        left = np.flatnonzero(~passed)
        if not len(left):
            return columns
        for key, cells in draw(groups[left]).items():
            _put(columns[key], left, cells)
    if tests:
        raise DataError(
            f"what is given of {next(iter(tests))!r} is too unlikely for rows to be drawn from it. Give a wider range, "
            "or a value."
        )
    return columns


def drawn_inside(
    draw: Draw, groups: np.ndarray, bounds: Mapping[Key, tuple[float, float]], tests: Mapping[Key, Test]
) -> dict[Key, Any]:
    """Columns that pass their tests and lie within the bounds of their columns, as far as 100 draws get there."""
    columns = drawn_within(draw, groups, tests)
    inside = {key: ends for key, ends in bounds.items() if isinstance(columns.get(key), np.ndarray)}
    for _ in range(TRIES):
        beyond = [(columns[key] < low) | (columns[key] > high) for key, (low, high) in inside.items()]
        left = np.flatnonzero(np.any(beyond, axis=0)) if beyond else np.zeros(0, dtype=np.intp)
        if not len(left):
            return columns
        for key, cells in drawn_within(draw, groups[left], tests).items():
            _put(columns[key], left, cells)
    return columns | {key: np.clip(columns[key], low, high) for key, (low, high) in inside.items()}


def _put(column: Any, rows: np.ndarray, cells: Any) -> None:
    if isinstance(column, np.ndarray):
        column[rows] = cells
        return
    for row, cell in zip(rows.tolist(), cells, strict=True):
        column[row] = cell
