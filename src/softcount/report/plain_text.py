"""Words and numbers as people read them, and nothing that a terminal could obey."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable

LONGEST_CELL = 64
"""Text longer than this is cut in tables, with an ellipsis."""


def printable(value: object) -> str:
    r"""The value as text in which every control character is spelled out instead of sent.

    Column names and levels come from files: an escape sequence in one would be obeyed by the terminal, and a
    newline would break the table. Line, paragraph and direction marks are spelled out too.

    >>> print(printable("red\x1b[31m"), printable("a\nb"))
    red\x1b[31m a\nb
    """
    return spelled_out(str(value), _escape)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def spelled_out(text: str, escape: Callable[[str], str]) -> str:
    """The text with an escape for each character that is neither seen nor a space."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or unicodedata.category(char) == "Zs" else escape(char) for char in text)


def cell_width(text: str) -> int:
    """How many terminal columns the text takes: two for a wide character, none for an accent on its own.

    >>> cell_width("abc"), cell_width("日本"), cell_width("e\\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


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
