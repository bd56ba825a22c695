"""How a text table is written: what parts its cells, and what its columns are called."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from softcount.errors import DataError
from softcount.table.numerals import number_of
from softcount.table.rows import row_ends
from softcount.table.source import refuse_repeated

DELIMITERS = (",", "\t", ";", "|")
LINES = 50
"""Lines compared to find the delimiter."""

UNNAMED = "Unnamed: 0"
_SPOKEN = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}


class Dialect(NamedTuple):
    """The delimiter, the column names, and how many bytes of the file the header takes."""

    delimiter: str
    names: list[str]
    skip: int

    @property
    def spoken(self) -> str:
        return _SPOKEN[self.delimiter]


def dialect_of(name: str, head: bytes, header: bool) -> Dialect:
    """What the first bytes of a file say about how it is written."""
    text = _decoded(name, head)
    if not text.strip():
        raise DataError(f"{name} is empty. A table needs a line of column names and at least one row.")
    delimiter = best_delimiter(text)
    first, skip = _first_record(head, delimiter, text)
    if not header:
        return Dialect(delimiter, [f"c{place}" for place in range(1, len(first) + 1)], 0)
    return Dialect(delimiter, column_names(first), skip)


def _decoded(name: str, head: bytes) -> str:
    try:
        return head.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(head) - error.start < 4 and error.reason == "unexpected end of data":
            return head[: error.start].decode("utf-8")
        raise not_utf8(name, error.start, head[: error.start].count(b"\n")) from None


def not_utf8(name: str, offset: int, row: int) -> DataError:
    """The error of a byte that is not UTF-8; row 0 is the header."""
    where = f"row {row}" if row else "the header"
    return DataError(
        f"{name} is not UTF-8 text: byte {offset} (in {where}) does not belong. "
        "Convert it, for example: iconv -f latin1 -t utf-8 OLD > NEW"
    )


def best_delimiter(text: str) -> str:
    """The delimiter under which the first lines agree best in how many cells they have, and have the most."""
    scored = [(_agreement(text, delimiter), -place, delimiter) for place, delimiter in enumerate(DELIMITERS)]
    best, _, delimiter = max(scored)
    return delimiter if best > (0.0, 0) else ","


def _agreement(text: str, delimiter: str) -> tuple[float, int]:
    widths = [len(record) for record in _records(text, delimiter)]
    if not widths or widths[0] < 2:
        return 0.0, 0
    return sum(width == widths[0] for width in widths) / len(widths), widths[0]


def _records(text: str, delimiter: str) -> list[list[str]]:
    found = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if record:
                found.append(record)
            if len(found) > LINES:
                break
    except csv.Error:
        pass
    return found[:-1] if 1 < len(found) <= LINES and not text.endswith(("\n", "\r")) else found


def _first_record(head: bytes, delimiter: str, text: str) -> tuple[list[str], int]:
    """The cells of the first row that is not blank, and where the rest of the file begins."""
    ends, _ = row_ends(head, delimiter)
    blank = len(head) - len(head.lstrip(b"\r\n"))
    ends = ends[ends > blank]
    skip = int(ends[0]) if len(ends) else len(head)
    line = head[blank:skip].decode("utf-8")
    record = next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter), [])
    return [cell.strip() for cell in record], skip


def column_names(cells: Sequence[str]) -> list[str]:
    """Names from a header; what looks like data, is empty or comes twice is refused."""
    if all(number_of(cell) is not None for cell in cells):
        raise _looks_like_data()
    names = [UNNAMED if place == 0 and not cell and len(cells) > 1 else cell for place, cell in enumerate(cells)]
    for place, cell in enumerate(names, start=1):
        if not cell:
            raise DataError(f"column {place} has no name. Give every column a name in the first line.")
    counts = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    numbers = [name for name in names if number_of(name) is not None]
    if counts and numbers and set(names) <= {*counts, *numbers}:
        raise _looks_like_data()
    refuse_repeated(names)
    return names


def _looks_like_data() -> DataError:
    remedy = "Add a line of column names, or read it without one: --no-header (header=False)."
    return DataError(f"the first line looks like data, not names. {remedy}")
