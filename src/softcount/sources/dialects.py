"""How a text table is written: what parts its cells, and what its columns are called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from softcount import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.arrow_columns import number_of
from softcount.sources.bytestream import LONGEST
from softcount.sources.csv_rows import not_text, shorten_blank_lines
from softcount.sources.file_format import BLANKS, FileFormat, spoken_delimiter
from softcount.sources.first_line import ROWS, FirstLine, looks_like_data, looks_like_names
from softcount.sources.source import refuse_repeated, refuse_wide

DELIMITERS = (",", "\t", ";", "|")
LINES = 50
HEAD = 1 << 20
"""Lines, and bytes at most, that are compared to find the delimiter."""

UNNAMED = "Unnamed: 0"
ORANGE_TYPES = {"d", "c", "s", "t", "discrete", "continuous", "string", "time"}
ORANGE_ROLES = {"", "class", "meta", "ignore", "i", "m"}
"""What stands in the second and third line of Orange's tables."""


class Dialect(NamedTuple):
    """The delimiter, the column names, and how many bytes of the file the header takes.

    `trailing`: every row ends with a delimiter, after which nothing may stand. `notes` are for the file's owner.
    """

    delimiter: str
    names: list[str]
    skip: int
    trailing: bool = False
    notes: tuple[str, ...] = ()

    @property
    def spoken(self) -> str:
        return spoken_delimiter(self.delimiter)


def dialect_of(name: str, head: bytes, whole: bool, form: FileFormat) -> Dialect | None:
    """What the first bytes of a file, or the whole of it, say of how it is written; None where they are too few."""
    if len(head) < HEAD and not whole:
        return None
    if whole and not head.strip():
        raise DataError(f"{name} is empty. A table needs a line of column names and at least one row.")
    text = head + b"\n" if whole else head
    blank = len(text) - len(text.lstrip(b"\r\n"))
    delimiter = form.delimiter or best_delimiter(text[blank : blank + HEAD]) or ","
    delimiter = "\t" if delimiter == BLANKS else delimiter
    cells, skip = record_at(text, blank, delimiter.encode())
    if skip < 0:
        if whole or len(head) > LONGEST:
            raise DataError(
                f"the first line of {name} is longer than {LONGEST >> 20} MB, or a quote opens in it and is never "
                "closed. Close it; double a quote inside a cell."
            )
        return None
    refuse_wide(len(cells), name)
    names, below = _decoded(name, text[:skip], cells), list(_records(text, skip, delimiter, whole))
    if form.header is None and not form.names and len(below) >= 3 and len(names) == len(below[0]) == len(below[1]):
        types, roles, row = map(set, below[:3])
        if types <= ORANGE_TYPES and roles <= ORANGE_ROLES and not row <= ORANGE_TYPES:
            raise DataError(
                f"the second and third line of {name} hold types and roles, as Orange writes them, which are not read. "
                "Delete these two lines, or save the table as plain CSV."
            )
    return _dialect(delimiter, skip, FirstLine(names, below), form)


def _records(text: bytes, at: int, delimiter: str, whole: bool) -> Iterator[list[str]]:
    """The first rows from a place on, blank lines and a last one that may be cut left out."""
    for _ in range(LINES):
        cells, at = record_at(text, at, delimiter.encode())
        if at < 0 or (at >= len(text) and not whole):
            return
        if cells != [b""]:
            yield [cell.decode("utf-8", "replace").strip() for cell in cells]


def _dialect(delimiter: str, skip: int, first: FirstLine, form: FileFormat) -> Dialect:
    """The dialect by the first line and the rows below it, and by what is said of them."""
    header = _is_header(first, form)
    rows = first.below if header else [first.cells, *first.below]
    given = list(form.names) if form.names else list(first.cells) if header else []
    width = len(first.cells)
    trailing = len(rows) >= ROWS and all(len(row) > 1 and not row[-1] for row in rows)
    beyond = header and len(rows) >= ROWS and all(len(row) == width + 1 for row in rows)
    notes: tuple[str, ...] = ()
    if trailing and header and not beyond and first.cells[-1]:
        trailing = False  # a column that has a name and no value yet
    elif trailing:
        given = given[: width - 1] if header and not beyond and not form.names else given
        width -= not beyond
    elif beyond:
        notes = ("rows have a cell more than the first line has names: the first cell is taken for the row's name",)
        width, given = width + 1, [UNNAMED, *given]
    if not given:
        given = [f"c{place}" for place in range(1, width + 1)]
    if form.names and len(given) != width:
        raise DataError(f"there are {len(form.names)} names for {width} columns. Name every column: {remedies.names()}")
    named, unnamed = column_names(given, sure=not header or form.header is True or bool(form.names))
    return Dialect(delimiter, named, skip if header else 0, trailing, (*notes, *unnamed))


def _is_header(first: FirstLine, form: FileFormat) -> bool:
    """Whether the first line names the columns; refused where it does not look like that and nobody says so."""
    if form.names and tuple(first.cells) == form.names:
        return True
    if form.header is not None:
        return form.header
    if form.names and looks_like_names(first):
        raise DataError(
            f"names are given, but the first line looks like names too ({_shown(first.cells)}). "
            f"Leave it out: {remedies.header(True)}, or take it for a row: {remedies.header(False)}."
        )
    if not form.names and looks_like_data(first):
        raise _looks_like_data(first.cells)
    return not form.names


def _decoded(name: str, line: bytes, cells: Sequence[bytes]) -> list[str]:
    if b"\0" in line:
        raise DataError(f"there is a NUL byte in the first line of {name}: {not_text()}")
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(name, error.start, 0) from None
    return [cell.decode("utf-8").strip() for cell in cells]


def not_utf8(name: str, offset: int, row: int | None = None) -> DataError:
    """The error of a byte that is not UTF-8; row 0 is the header."""
    where = "" if row is None else f" (in row {row})" if row else " (in the header)"
    return DataError(
        f"{name} is not UTF-8 text: byte {offset}{where} does not belong. "
        f"Say what it is: {remedies.setting('encoding', 'cp1252')} for what Excel saves in Western Europe."
    )


def best_delimiter(text: bytes) -> str | None:
    """The delimiter under which the first lines agree best in how many cells they have, and have the most.

    None where none of them parts the first line.
    """
    text = shorten_blank_lines(text) if b"\n" * 64 in text or b"\r\n" * 64 in text else text
    scored = [(_agreement(text, delimiter), -place, delimiter) for place, delimiter in enumerate(DELIMITERS)]
    best, _, delimiter = max(scored)
    return delimiter if best > (0.0, 0) else None


def _agreement(text: bytes, delimiter: str) -> tuple[float, int]:
    widths: list[int] = []
    at = 0
    while 0 <= at < len(text) and len(widths) <= LINES:
        cells, at = record_at(text, at, delimiter.encode())
        if cells != [b""] and (at >= 0 or not widths):  # the last line may be cut
            widths.append(len(cells))
    if not widths or widths[0] < 2:
        return 0.0, 0
    return sum(width == widths[0] for width in widths) / len(widths), widths[0]


_line_end = re.compile(b"\r\n|\r|\n")


@cache
def _breaks(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(b"[\r\n" + re.escape(delimiter) + b"]")


def record_at(data: bytes, at: int, delimiter: bytes) -> tuple[list[bytes], int]:
    r"""The cells of the row that begins at a place, and where the next begins; -1 where the data end before the row.

    >>> record_at(b'a,"b""c\n",d"e\r\nf', 0, b",")
    ([b'a', b'b"c\n', b'd"e'], 15)
    """
    cells: list[bytes] = []
    line_end = _line_end.search(data, at)
    if line_end is not None and data.find(b'"', at, line_end.start()) < 0:
        return data[at : line_end.start()].split(delimiter), line_end.end()
    breaks = _breaks(delimiter)
    while True:
        quoted = b""
        if data.startswith(b'"', at):
            close = _closing(data, at + 1)
            quoted, at = data[at + 1 : close].replace(b'""', b'"'), close + 1
            if not at:
                return [*cells, quoted], -1
        found = breaks.search(data, at)
        end = found.start() if found else len(data)
        cells.append(quoted + data[at:end])
        if not data.startswith(delimiter, end):
            return cells, end + 1 + data.startswith(b"\r\n", end) if found else -1
        at = end + 1


def _closing(data: bytes, at: int) -> int:
    """Where the quote is that closes a cell; -1 where there is none."""
    while (at := data.find(b'"', at)) >= 0 and data.startswith(b'"', at + 1):
        at += 2
    return at


def column_names(cells: Sequence[str], *, sure: bool = False) -> tuple[list[str], tuple[str, ...]]:
    """Names from a header, and notes on them; what looks like data is refused unless one is `sure`."""
    if not sure and all(number_of(cell) is not None for cell in cells):
        raise _looks_like_data(cells)
    counts = [name for name, count in Counter(filter(None, cells)).items() if count > 1]
    numbers = [name for name in cells if number_of(name) is not None]
    if not sure and counts and numbers and set(cells) <= {*counts, *numbers}:
        raise _looks_like_data(cells)
    return name_columns(cells)


def name_columns(cells: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Names of columns from the cells of a header, and a note on those that have none; repeated names are refused.

    A first column without a name holds the names of rows, as pandas and R write them.

    >>> name_columns(["a", "", "c"])
    (['a', 'column 2', 'c'], ("column 2 has no name in the first line: called 'column 2'",))
    """
    if not any(cells):
        raise DataError("no column has a name. Give every column a name in the first line.")
    named = [cell or (f"column {place}" if place > 1 else UNNAMED) for place, cell in enumerate(cells, start=1)]
    refuse_repeated(named)
    blank = [name for cell, name in zip(cells, named, strict=True) if not cell and name != UNNAMED]
    if not blank:
        return named, ()
    which = f"{blank[0]} has" if len(blank) == 1 else f"{len(blank)} columns have"
    return named, (f"{which} no name in the first line: called {wording.and_others(blank, 3)}",)


def _looks_like_data(cells: Sequence[str]) -> DataError:
    return DataError(
        f"the first line looks like data, not names ({_shown(cells)}). If it is a row: {remedies.header(False)}, or "
        f"name the columns: {remedies.names()}. If it does name them: {remedies.header(True)}."
    )


def _shown(cells: Sequence[str]) -> str:
    shown = ", ".join(wording.cell(cell).strip("'\"") for cell in cells[:4])
    return shown + (", ..." if len(cells) > 4 else "")


def is_blank_separated(text: bytes) -> bool:
    """Whether lines that no delimiter parts are rows of cells with blanks between, numbers among them.

    >>> is_blank_separated(b"x y\\n" + b"1.5  a\\n" * 6), is_blank_separated(b"what a day\\n" * 9)
    (True, False)
    """
    lines = [line.split() for line in text[:HEAD].splitlines()[: LINES + 1]][:-1]
    rows = [[cell.decode("utf-8", "replace") for cell in line] for line in lines if line]
    if len(rows) <= ROWS or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return False
    return any(all(number_of(cell) is not None for cell in column) for column in zip(*rows[1:], strict=True))
