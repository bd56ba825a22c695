"""Numbers, counts and names as a person reads them, with no character that a terminal could obey."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence

CELL_LIMIT = 64
"""Characters of a cell in a table; longer text is cut with an ellipsis."""


def printable(value: object) -> str:
    r"""Return the value as text in which every control character is escaped.

    Column names and categories come from files: a terminal would obey an escape sequence in one, and a newline would
    break the table. Line, paragraph and direction marks are escaped too.

    >>> print(printable("red\x1b[31m"), printable("a\nb"))
    red\x1b[31m a\nb
    """
    return escape_controls(str(value), lambda char: char.encode("unicode_escape", "surrogatepass").decode("ascii"))


def escape_controls(text: str, escape: Callable[[str], str]) -> str:
    """Apply `escape` to each character that is neither visible nor a space."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or unicodedata.category(char) == "Zs" else escape(char) for char in text)


def cell_width(text: str) -> int:
    """Count the terminal columns of a text: two for a wide character, none for a combining accent.

    >>> cell_width("abc"), cell_width("日本"), cell_width("e\\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    wide = (2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text if not unicodedata.combining(char))
    return sum(wide)


def clip(text: str, columns: int) -> str:
    """Cut the text, with an ellipsis, to this many terminal columns.

    >>> clip("abcdef", 4), clip("日本語", 4), clip("日本", 4)
    ('abc…', '日…', '日本')
    """
    if cell_width(text) <= columns:
        return text
    text = text[:columns]
    while text and cell_width(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def shorten(text: str, longest: int = CELL_LIMIT) -> str:
    """Cut the text, with an ellipsis, to this many characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def format_number(value: float | None, digits: int = 4) -> str:
    """Format a number with a few significant digits; "-" for None and NaN.

    >>> format_number(1234567.0), format_number(0.00001234), format_number(2.5), format_number(None)
    ('1,234,567', '1.234e-05', '2.5', '-')
    """
    if value is None or math.isnan(value):
        return "-"
    value = value or 0  # not -0
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.{digits}g}"


def format_share(part: float | None) -> str:
    """Format a fraction as a percentage that never rounds something to nothing or nearly all to all.

    >>> format_share(0.1234), format_share(0.00001), format_share(0.0), format_share(0.99999), format_share(None)
    ('12.3 %', '< 0.1 %', '0 %', '> 99.9 %', '-')
    """
    if part is None or math.isnan(part):
        return "-"
    if part in (0.0, 1.0):
        return f"{part:.0%}".replace("%", " %")
    if part < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if part > 0.9995 else f"{100 * part:.1f} %"


def format_count(n: float, one: str, many: str = "") -> str:
    """Format a number with its noun.

    >>> format_count(1, "row"), format_count(1500, "row"), format_count(2, "class", "classes")
    ('1 row', '1,500 rows', '2 classes')
    """
    amount = f"{n:,.0f}" if float(n).is_integer() else f"{n:,.2f}"
    return f"{amount} {one if n == 1 else many or one + 's'}"


def format_list(names: Sequence[str], most: int = 6) -> str:
    """Join the first few names.

    >>> format_list(["a", "b"]), format_list(list("abcdefgh"), most=3)
    ('a, b', 'a, b, c and 5 more')
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
