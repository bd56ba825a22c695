"""Words and numbers as people read them, and nothing that a terminal could obey."""

from __future__ import annotations

import math

from softcount.pictures.visible_text import cell_width, printable, spelled_out

__all__ = ["cell_width", "counted", "listed", "number", "printable", "share", "shortened", "spelled_out"]

LONGEST_CELL = 64
"""Text longer than this is cut in tables, with an ellipsis."""


def shortened(text: str, longest: int = LONGEST_CELL) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def number(value: float | None, digits: int = 4) -> str:
    """A number with a few significant digits and no needless zeros; "-" where there is none.

    >>> number(1234567.0), number(0.00001234), number(2.5), number(None), number(48842)
    ('1,234,567', '1.234e-05', '2.5', '-', '48,842')
    """
    if value is None or math.isnan(value):
        return "-"
    value = value or 0  # not -0
    if abs(value) >= 1000 and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def share(part: float | None) -> str:
    """A fraction as a percentage, which never rounds something to nothing or nearly all to all.

    >>> share(0.1234), share(0.00001), share(0.0), share(1.0), share(0.99999), share(None)
    ('12.3 %', '< 0.1 %', '0 %', '100 %', '> 99.9 %', '-')
    """
    if part is None or math.isnan(part):
        return "-"
    if part in (0.0, 1.0):
        return f"{part:.0%}".replace("%", " %")
    if part < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if part > 0.9995 else f"{100 * part:.1f} %"


def counted(n: float, one: str, many: str = "") -> str:
    """A number and its noun.

    >>> counted(1, "row"), counted(1500, "row"), counted(2, "class", "classes")
    ('1 row', '1,500 rows', '2 classes')
    """
    amount = f"{n:,.0f}" if float(n).is_integer() else f"{n:,.2f}"
    return f"{amount} {one if n == 1 else many or one + 's'}"


def listed(names: list[str], most: int = 6) -> str:
    """Names in a row, the first few of many.

    >>> listed(["a", "b"]), listed(list("abcdefgh"), most=3)
    ('a, b', 'a, b, c and 5 more')
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
