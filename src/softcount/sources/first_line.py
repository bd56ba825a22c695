"""Whether the first line of a text table names its columns or is a row, by what stands below it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from softcount.sources.arrow_columns import is_number, number_of

ROWS = 5
"""Rows that must stand below the first line for anything to be told from them."""

YEARS = range(1_000, 3_000)


class FirstLine(NamedTuple):
    """The cells of the first line, and the rows below it that are looked at."""

    cells: Sequence[str]
    below: Sequence[Sequence[str]]


def looks_like_data(first: FirstLine) -> bool:
    """Whether the first line is a row: some cell is like the cells below it, and none is unlike them.

    >>> looks_like_data(FirstLine(["39", "Private"], [["50", "Private"], ["38", "State"]] * 5))
    True
    """
    alike = _alike(first)
    return True in alike and False not in alike


def looks_like_names(first: FirstLine) -> bool:
    """Whether the first line names the columns: some cell is unlike the cells below it, and none is like them."""
    alike = _alike(first)
    return False in alike and True not in alike


def _alike(first: FirstLine) -> list[bool | None]:
    """Of every cell whether it is like those below it; None where that cannot be told."""
    rows = [row for row in first.below if len(row) == len(first.cells)]
    if len(rows) < ROWS or len(rows) < len(first.below) or _are_steps(first.cells):
        return []
    return [_is_alike(cell, column) for cell, column in zip(first.cells, zip(*rows, strict=True), strict=True)]


def _is_alike(cell: str, column: Sequence[str]) -> bool | None:
    known = [below for below in column if below not in ("", "?", "NA")]
    if len(known) < ROWS or not cell:
        return None
    if all(map(is_number, known)):
        return True if number_of(cell) is not None else None if cell in ("?", "NA") else False
    # A level stands in many rows; what comes but once says nothing.
    different = set(known)
    return True if cell in different and 2 * len(different) <= len(known) else None


def _are_steps(cells: Sequence[str]) -> bool:
    """Whether the cells that are numbers count up as names do: years, or the places 0, 1, 2, ..."""
    numbers = [number_of(cell) for cell in cells]
    found = [number for number in numbers if isinstance(number, int)]
    if len(found) < 2 or len(found) < sum(number is not None for number in numbers):
        return False
    up = all(after - before == 1 for before, after in pairwise(found))
    return up and (found[0] in (0, 1) or all(number in YEARS for number in found))
