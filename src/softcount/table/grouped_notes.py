"""Notes that say the same of many columns, each said once."""

from __future__ import annotations

import re
from collections.abc import Sequence

ENOUGH = 3
"""Columns from which on one note says it of all."""
NAMED = 8
"""Columns that it names."""
ALIKE = (
    (re.compile(r"column (?P<name>.+?) (?P<more>is always .*): left out"), "never vary and are left out"),
    (
        re.compile(r"column (?P<name>.+?) (?P<more>is .*) or missing: read as a tick box, missing is a category"),
        "hold one value or none and are read as tick boxes, missing is a category",
    ),
    (re.compile(r"column (?P<name>.+?) has no values(?P<more>): left out"), "have no values and are left out"),
    (
        re.compile(r"column (?P<name>.+?) differs in every row: left out as an identifier(?P<more>) \(.*\)"),
        "differ in every row and are left out as identifiers",
    ),
)


def grouped_notes(notes: Sequence[str]) -> list[str]:
    """The notes, none twice, with one in place of several that say the same of columns, where the first of them was.

    >>> grouped_notes([f"column {name!r} is always 1: left out" for name in "abc"])
    ["3 columns never vary and are left out: 'a' (always 1), 'b' (always 1), 'c' (always 1)"]
    """
    kept = list(dict.fromkeys(notes))
    for pattern, said in ALIKE:
        found = {note: match for note in kept if (match := pattern.fullmatch(note)) is not None}
        if len(found) >= ENOUGH:
            first, told = next(iter(found)), _told(list(found.values()), said)
            kept = [told if note == first else note for note in kept if note == first or note not in found]
    return kept


def _told(found: Sequence[re.Match[str]], said: str) -> str:
    names = [
        f"{match['name']} ({match['more'].removeprefix('is ')})" if match["more"] else match["name"] for match in found
    ]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(names)} columns {said}: {', '.join(names[:NAMED])}{more}"
