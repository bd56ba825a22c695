"""Text in which nothing is hidden: no character that a terminal could obey, and how wide it is there."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable


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
