"""Redacted reports: nothing by which a single row could be recognised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from softcount.pictures.text import format_number
from softcount.report.page import key_text
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.learn.record import Learned

FEWEST_ROWS = 5
"""Rows that a category or class must have to be named in a redacted report."""
RARE = "(rare)"


class Redaction(Struct, frozen=True):
    """How categories and numbers are shown.

    Redacted, categories of fewer than five rows have no name, no cell is shown, and numbers that come from cells are
    rounded to two digits. `rows` are the rows of each category by column, as far as they are known.
    """

    redacted: bool = False
    rows: dict[Key, dict[Any, float]] = {}

    @property
    def shows_cells(self) -> bool:
        return not self.redacted

    def allows(self, rows: float) -> bool:
        """Whether this many rows are enough to be shown."""
        return not self.redacted or rows >= FEWEST_ROWS

    def level(self, key: Key, level: Any) -> str:
        return key_text(level) if self.allows(self.rows.get(key, {}).get(level, 0.0)) else RARE

    def levels(self, key: Key, levels: Sequence[Any]) -> list[str]:
        return [self.level(key, level) for level in levels]

    def number(self, value: float | None, digits: int = 4) -> str:
        """Format a number that comes from cells."""
        if self.redacted and value is not None:
            value = float(f"{value:.2g}")  # a number of four digits would be shown with all of them
        return format_number(value, digits)


OPEN = Redaction()


def redaction_of(fitted: Learned, redact: bool) -> Redaction:
    """Return how categories and numbers of this model are shown."""
    if not redact:
        return OPEN
    table = None if fitted.record is None else fitted.record.table
    rows: dict[Any, dict[Any, float]] = {}
    for column in () if table is None else table.columns:
        levels = fitted.schema[column.key].levels
        rows[column.key] = {levels[place]: float(n) for place, n in column.levels}
    return Redaction(True, rows)
