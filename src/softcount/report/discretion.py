"""What a report may tell: everything, or nothing by which a single row could be known again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from softcount.report.page import key_text
from softcount.report.plain_text import number
from softcount.table.schema import Key

FEWEST = 5
"""Rows that a level must have to be named in a redacted report."""
RARE = "(rare)"


class Discretion(Struct, frozen=True):
    """How levels and numbers are shown. Redacted, levels of fewer than five rows have no name, no cell is shown, and
    numbers that come from cells are rounded to two digits.

    `rows` are the rows of each level by column, as far as they are known.
    """

    redacted: bool = False
    rows: dict[Key, dict[Any, float]] = field(default_factory=dict)

    @property
    def shows_cells(self) -> bool:
        return not self.redacted

    def tells(self, rows: float) -> bool:
        """Whether so many rows are enough to be told of."""
        return not self.redacted or rows >= FEWEST

    def level(self, key: Key, level: Any) -> str:
        """A level's name, if enough rows have it."""
        return key_text(level) if self.tells(self.rows.get(key, {}).get(level, 0.0)) else RARE

    def levels(self, key: Key, levels: Sequence[Any]) -> list[str]:
        return [self.level(key, level) for level in levels]

    def number(self, value: float | None, digits: int = 4) -> str:
        """A number that comes from cells."""
        if self.redacted and value is not None:
            value = float(f"{value:.2g}")  # a number of four digits would be shown with all of them
        return number(value, digits)
