"""How messages name columns and rows."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from softcount.core import remedies
from softcount.errors import DataError
from softcount.sources.source import Key

LONGEST = 40
"""Most characters of a cell in a message."""


def column(key: Key) -> str:
    """Return `column 'age'`, or `column 3` if columns have no names."""
    return f"column {key!r}"


def cell(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 4] + "..." + shown[0]


def and_others(names: Iterable[object], most: int = 5) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def count(number: int, one: str, several: str) -> str:
    """Return, for example, `1 file holds` or `2 files hold`."""
    return f"1 {one}" if number == 1 else f"{number:,} {several}"


def refuse_unknown(keys: Iterable[Key], wanted: Key, what: str) -> None:
    known = list(keys)
    if wanted in known:
        return
    close = get_close_matches(str(wanted), [str(key) for key in known], n=3, cutoff=0.5)
    folded = [str(key) for key in known if str(key).casefold() == str(wanted).casefold()]
    near = list(dict.fromkeys(folded + close))
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Its columns are {and_others(known)}."
    if any(_is_number(str(key)) for key in known if isinstance(key, str)):
        hint += f" Some names are numbers: if the first line is data, read it with {remedies.header(False)}."
    raise DataError(f"{what}: the table has no {column(wanted)}. {hint}")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
