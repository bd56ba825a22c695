"""The dialect of a text table: rows and quotes, delimiter, header and column names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softcount.core import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.bytestream import LONGEST
from softcount.sources.frames import is_number, number_of
from softcount.sources.source import BLANKS, FileFormat, refuse_repeated, refuse_wide

NEWLINE, RETURN, QUOTE = 10, 13, 34
_many_ends = re.compile(rb"[\r\n]{5,}")


def shorten_blank_lines(data: bytes) -> bytes:
    """Replace runs of blank lines by one: ten times as fast as finding the end of each line."""
    return _many_ends.sub(b"\n\n", data)


def _nul_byte(where: str) -> DataError:
    utf16 = remedies.setting("encoding", "utf-16")
    return DataError(
        f"there is a NUL byte in {where}: this is not plain text, or it is damaged. If it was saved as UTF-16: {utf16}"
    )


class RowBytes(NamedTuple):
    """Whole rows: the number of the first, how many there are, and their bytes, each ended by a newline."""

    start: int
    n_rows: int
    data: bytes


def runs(
    blocks: Iterable[bytes], rows: int, delimiter: str, most: int, compiled: Callable[[], bool] = lambda: False
) -> Iterator[RowBytes]:
    """Yield all rows in runs of `rows` rows, or fewer if a run reaches `most` bytes. Block borders do not matter.

    A row ends with a newline, a carriage return, or both; blank lines are skipped. If `compiled`, a kernel finds the
    ends of rows, ten times as fast.
    """
    held: list[memoryview] = []
    start = count = size = 0
    for data, ends in _whole_rows(blocks, delimiter, compiled):
        view = memoryview(data)
        done = at = 0
        while done < len(ends):
            fills = int(np.searchsorted(ends, at + most - size)) + 1
            stop = min(done + rows - count, fills)
            taken = min(stop, len(ends))
            held.append(view[at : int(ends[taken - 1])])
            count, size, done, at = count + taken - done, size + len(held[-1]), taken, int(ends[taken - 1])
            if stop == taken:
                yield RowBytes(start, count, b"".join(held))
                start, held, count, size = start + count, [], 0, 0
    if count:
        yield RowBytes(start, count, b"".join(held))


def _whole_rows(
    blocks: Iterable[bytes], delimiter: str, compiled: Callable[[], bool]
) -> Iterator[tuple[bytes, np.ndarray]]:
    """Yield blocks extended to end with a row, and where in each the rows end, all by a newline.

    An incomplete row is scanned again only after its size has doubled, so that the cost of a long row stays linear.
    """
    tail, row, length, shut = b"", 0, 0, False
    held: list[bytes] = []
    for block, last in with_last(blocks):
        held.append(block)
        length += len(block)
        # Only a quote closes an open quote: in blocks without one no row ends, and scanning is unnecessary.
        shut = shut and b'"' not in block
        if not last and (length < len(tail) or shut) and len(tail) + length <= LONGEST:
            continue
        data = b"".join([tail, *held])
        held, length = [], 0
        if (at := data.find(b"\0", len(tail))) >= 0:
            raise _nul_byte(f"row {row + rows_before(data, at, delimiter) + 1}")
        if shut and len(data) > LONGEST:
            raise _too_long(row + 1)
        if b'"' not in data and not data[-64:].strip(b"\r\n"):
            data = shorten_blank_lines(data)
        ends, shut = row_ends(data, delimiter, compiled())
        if not last and len(ends) and ends[-1] == len(data) and data.endswith(b"\r"):
            ends = ends[:-1]  # a newline may follow
        if len(data) > LONGEST:
            begins = np.append(0, ends)
            long = np.flatnonzero(np.diff(begins, append=len(data)) > LONGEST)
            if len(long):
                before = rows_before(data, int(begins[long[0]]), delimiter)
                raise _too_long(row + before + 1)
        tail = data[int(ends[-1]) :] if len(ends) else data
        if len(ends):
            if b"\r" in data:  # rows that a carriage return ends are ended by a newline instead
                letters = np.frombuffer(data, dtype=np.uint8)
                if not (letters[ends - 1] == NEWLINE).all():
                    changed = letters.copy()
                    changed[ends - 1] = NEWLINE
                    data = changed.tobytes()
            kept = without_blank_lines(data, ends)
            row += len(kept[1])
            yield kept
    if tail:
        data = tail + b"\n"
        ends, open_quote = row_ends(data, delimiter)
        if open_quote or not len(ends):
            raise DataError(
                f"row {row + 1}: a quote is never closed. Close the quote; write a quote inside a cell twice."
            )
        yield data, ends


def with_last(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    before = None
    for block in blocks:
        if before is not None:
            yield before, False
        before = block
    if before is not None:
        yield before, True


def _too_long(row: int) -> DataError:
    return DataError(
        f"row {row} is longer than {LONGEST >> 20} MB: a quote is never closed, or a cell holds too much. "
        "Close the quote; write a quote inside a cell twice; split very long texts."
    )


def rows_before(data: bytes, at: int, delimiter: str) -> int:
    """Return the number of rows, without blank lines, that end before a place."""
    ends, _ = row_ends(data[:at], delimiter)
    return len(without_blank_lines(data, ends)[1]) if len(ends) else 0


def row_ends(data: bytes, delimiter: str, compiled: bool = False) -> tuple[np.ndarray, bool]:
    """Return the places after the end of every row, except line ends inside quotes; and whether a quote stays open."""
    letters = np.frombuffer(data, dtype=np.uint8)
    if compiled:
        from softcount.kernels.csv_cells import mark_rows

        places = np.empty(len(data), dtype=np.int64)
        found, is_open = mark_rows(letters, ord(delimiter), places)
        if found >= 0:
            return places[:found].copy(), is_open
    line_ends = letters == NEWLINE
    if b"\r" in data:
        alone = letters == RETURN
        alone[:-1] &= ~line_ends[1:]
        line_ends |= alone
    ends = np.flatnonzero(line_ends)
    if b'"' not in data:
        return ends + 1, False
    borders = _quoted(letters, ord(delimiter))
    inside = np.searchsorted(borders, ends) % 2 == 1
    return ends[~inside] + 1, len(borders) % 2 == 1


def _quoted(letters: np.ndarray, delimiter: int) -> np.ndarray:
    """Return the positions at which quoted stretches open and close, in turn."""
    quotes = np.flatnonzero(letters == QUOTE)
    opening = quotes[0::2]
    before = np.where(opening > 0, letters[opening - 1], NEWLINE)
    # Quotes open and close in turn if each opening one starts a cell or is the second of a doubled pair.
    if np.isin(before, (delimiter, NEWLINE, RETURN, QUOTE)).all():
        return quotes
    # Otherwise quotes also occur inside unquoted cells, as in `5" pipe`: there they are plain letters.
    borders: list[int] = []
    doubled, places = -1, quotes.tolist()
    for at, following in zip(places, [*places[1:], -1], strict=True):
        inside = len(borders) % 2 == 1
        if not inside and (at == 0 or int(letters[at - 1]) in (delimiter, NEWLINE, RETURN)):
            borders.append(at)
        elif inside and at != doubled:
            if following == at + 1:
                doubled = following
            else:
                borders.append(at)
    return np.array(borders, dtype=np.int64)


def without_blank_lines(data: bytes, ends: np.ndarray) -> tuple[bytes, np.ndarray]:
    lengths = np.diff(ends, prepend=0)
    if lengths.min() > 2:
        return data, ends
    begins = ends - lengths
    letters = np.frombuffer(data, dtype=np.uint8)
    blank = (lengths == 1) | ((lengths == 2) & (letters[begins] == RETURN))
    if not blank.any():
        return data, ends
    kept = b"".join(data[begin:end] for begin, end in zip(begins[~blank].tolist(), ends[~blank].tolist(), strict=True))
    return kept, np.cumsum(lengths[~blank])


def padded_columns(data: bytes, delimiter: str, width: int) -> set[int] | None:
    """Return the columns with a number that has leading zeros, such as 007; None if quotes make that hard to decide."""
    letters = np.frombuffer(b"\n" + data, dtype=np.uint8)
    quoted = b'"' in data
    places = _padded(letters, ord(delimiter), quoted)
    if quoted or not len(places):
        return None if len(places) else set()
    ends, delimiters = np.flatnonzero(letters == NEWLINE), np.flatnonzero(letters == ord(delimiter))
    begins = ends[np.searchsorted(ends, places, side="right") - 1]
    columns = np.searchsorted(delimiters, places, side="right") - np.searchsorted(delimiters, begins)
    return {column for column in columns.tolist() if column < width}


SLICE = 1 << 17
"""Bytes compared at a time: few enough to stay in the cache, where a comparison costs a third."""


def _padded(letters: np.ndarray, delimiter: int, quoted: bool) -> np.ndarray:
    """Return the places before the cells that begin with 0 and another digit, with or without a sign."""
    found = []
    for at in range(0, len(letters), SLICE):
        part = letters[at : at + SLICE + 3]
        # Comparing whole arrays of bytes and finding the few hits last is four times as fast as visiting zeros.
        begins = (part == delimiter) | (part == NEWLINE) | (part == ord(" "))
        if quoted:
            begins |= part == QUOTE
        zero = (part[:-1] == ord("0")) & (part[1:] - np.uint8(ord("0")) < 10)
        signed = begins[:-2] & ((part[1:-1] == ord("-")) | (part[1:-1] == ord("+")))
        signed[:-1] &= zero[2:]
        signed[-1:] = False
        signed |= begins[:-2] & zero[1:]
        found.append(np.flatnonzero(signed) + at)
    return np.concatenate(found)


# -- whether the first line names the columns or is a row

ROWS = 5
"""Rows below the first line that are needed for a decision."""
YEARS = range(1_000, 3_000)


def looks_like_data(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool | None:
    """Return whether the first line is a row; None if undecided.

    It is a row if some cell is like those below it and none is unlike them.

    >>> looks_like_data(["39", "Private"], [["50", "Private"], ["38", "State"]] * 5)
    True
    """
    rows = [row for row in below if len(row) == len(first)]
    if len(rows) < ROWS or len(rows) < len(below) or _are_steps(first):
        return None
    alike = {_is_alike(cell, column) for cell, column in zip(first, zip(*rows, strict=True), strict=True)}
    return (True in alike) if (True in alike) != (False in alike) else None


def _is_alike(cell: str, column: Sequence[str]) -> bool | None:
    known = [below for below in column if below not in ("", "?", "NA")]
    if len(known) < ROWS or not cell:
        return None
    if all(map(is_number, known)):
        return True if number_of(cell) is not None else None if cell in ("?", "NA") else False
    # A category occurs in many rows; a value that occurs once is not evidence.
    different = set(known)
    return True if cell in different and 2 * len(different) <= len(known) else None


def _are_steps(cells: Sequence[str]) -> bool:
    """Whether the cells that are numbers count up as names may: years, or 0, 1, 2, ..."""
    numbers = [number_of(cell) for cell in cells]
    found = [number for number in numbers if isinstance(number, int)]
    if len(found) < 2 or len(found) < sum(number is not None for number in numbers):
        return False
    up = all(after - before == 1 for before, after in pairwise(found))
    return up and (found[0] in (0, 1) or all(number in YEARS for number in found))


# -- the delimiter and the names of columns

DELIMITERS = (",", "\t", ";", "|")
LINES = 50
HEAD = 1 << 20
"""Lines, and at most these bytes, that are compared to find the delimiter."""

UNNAMED = "Unnamed: 0"
ORANGE_TYPES = {"d", "c", "s", "t", "discrete", "continuous", "string", "time"}
ORANGE_ROLES = {"", "class", "meta", "ignore", "i", "m"}
"""Words in the second and third line of Orange's tables."""


class Dialect(NamedTuple):
    """The delimiter, the column names, and the bytes of the header; `trailing`: every row ends with a delimiter."""

    delimiter: str
    names: list[str]
    skip: int
    trailing: bool = False
    notes: tuple[str, ...] = ()


def dialect_of(name: str, head: bytes, whole: bool, form: FileFormat) -> Dialect | None:
    """Detect the dialect from the first bytes of a file, or all of it; None if these are too few."""
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
                "closed. Close the quote; write a quote inside a cell twice."
            )
        return None
    refuse_wide(len(cells), name)
    line = text[:skip]
    if b"\0" in line:
        raise _nul_byte(f"the first line of {name}")
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(name, error.start, 0) from None
    names, below = [cell.decode("utf-8").strip() for cell in cells], list(_records(text, skip, delimiter, whole))
    if form.header is None and not form.names and len(below) >= 3 and len(names) == len(below[0]) == len(below[1]):
        types, roles, row = map(set, below[:3])
        if types <= ORANGE_TYPES and roles <= ORANGE_ROLES and not row <= ORANGE_TYPES:
            raise DataError(
                f"the second and third line of {name} hold types and roles in Orange's format, which is not supported. "
                "Delete these two lines, or save the table as plain CSV."
            )
    return _dialect(delimiter, skip, names, below, form)


def _records(text: bytes, at: int, delimiter: str, whole: bool) -> Iterator[list[str]]:
    """Yield the first rows from a place on, without blank lines and without a last row that may be incomplete."""
    for _ in range(LINES):
        cells, at = record_at(text, at, delimiter.encode())
        if at < 0 or (at >= len(text) and not whole):
            return
        if cells != [b""]:
            yield [cell.decode("utf-8", "replace").strip() for cell in cells]


def _dialect(
    delimiter: str, skip: int, first: Sequence[str], below: Sequence[Sequence[str]], form: FileFormat
) -> Dialect:
    header = form.header
    if form.names and tuple(first) == form.names:
        header = True
    if header is None:
        data = looks_like_data(first, below)
        if form.names and data is False:
            raise DataError(
                f"names are given, but the first line looks like names too ({_shown(first)}). "
                f"Leave it out: {remedies.header(True)}, or take it for a row: {remedies.header(False)}."
            )
        if not form.names and data:
            raise _looks_like_data(first)
        header = not form.names
    rows = below if header else [first, *below]
    given = list(form.names) if form.names else list(first) if header else []
    width = len(first)
    trailing = len(rows) >= ROWS and all(len(row) > 1 and not row[-1] for row in rows)
    beyond = header and len(rows) >= ROWS and all(len(row) == width + 1 for row in rows)
    notes: tuple[str, ...] = ()
    if trailing and header and not beyond and first[-1]:
        trailing = False  # a column that has a name and no value yet
    elif trailing:
        given = given[: width - 1] if header and not beyond and not form.names else given
        width -= not beyond
    elif beyond:
        notes = (
            "rows have one more cell than the first line has names: the first cell is read as the name of the row",
        )
        width, given = width + 1, [UNNAMED, *given]
    if not given:
        given = [f"c{place}" for place in range(1, width + 1)]
    if form.names and len(given) != width:
        raise DataError(f"there are {len(form.names)} names for {width} columns. Name every column: {remedies.names()}")
    if header and form.header is not True and not form.names:
        # Names that are all numbers, or numbers and repeats, are data.
        repeats = {name for name, count in Counter(filter(None, given)).items() if count > 1}
        numbers = {name for name in given if number_of(name) is not None}
        if set(given) <= numbers or (repeats and numbers and set(given) <= repeats | numbers):
            raise _looks_like_data(given)
    named, unnamed = name_columns(given)
    return Dialect(delimiter, named, skip if header else 0, trailing, (*notes, *unnamed))


def not_utf8(name: str, offset: int, row: int | None = None) -> DataError:
    """Return the error for a byte that is not UTF-8; row 0 is the header."""
    where = "" if row is None else f" (in row {row})" if row else " (in the header)"
    return DataError(
        f"{name} is not UTF-8 text: byte {offset}{where} is not valid. "
        f"Give the encoding: {remedies.setting('encoding', 'cp1252')} for files saved by Excel in Western Europe, "
        f"{remedies.setting('encoding', 'latin-1')} to accept any byte."
    )


def best_delimiter(text: bytes) -> str | None:
    """Return the delimiter under which the first lines agree best in their number of cells; ties go to more cells.

    Return None if no delimiter occurs in the first line.
    """
    text = shorten_blank_lines(text) if b"\n" * 64 in text or b"\r\n" * 64 in text else text
    best, found = (0.0, 0), None
    for delimiter in DELIMITERS:
        widths: list[int] = []
        at = 0
        while 0 <= at < len(text) and len(widths) <= LINES:
            cells, at = record_at(text, at, delimiter.encode())
            if cells != [b""] and (at >= 0 or not widths):  # the last line may be incomplete
                widths.append(len(cells))
        if widths and widths[0] > 1:
            agreement = sum(width == widths[0] for width in widths) / len(widths), widths[0]
            best, found = (agreement, delimiter) if agreement > best else (best, found)
    return found


_line_end = re.compile(b"\r\n|\r|\n")


def record_at(data: bytes, at: int, delimiter: bytes) -> tuple[list[bytes], int]:
    r"""Return the cells of the row that begins at a place, and where the next row begins; -1 if the data end within it.

    >>> record_at(b'a,"b""c\n",d"e\r\nf', 0, b",")
    ([b'a', b'b"c\n', b'd"e'], 15)
    """
    cells: list[bytes] = []
    line_end = _line_end.search(data, at)
    if line_end is not None and data.find(b'"', at, line_end.start()) < 0:
        return data[at : line_end.start()].split(delimiter), line_end.end()
    breaks = re.compile(b"[\r\n" + re.escape(delimiter) + b"]")
    while True:
        quoted = b""
        if data.startswith(b'"', at):
            close = at + 1
            while (close := data.find(b'"', close)) >= 0 and data.startswith(b'"', close + 1):
                close += 2
            quoted, at = data[at + 1 : close].replace(b'""', b'"'), close + 1
            if not at:
                return [*cells, quoted], -1
        found = breaks.search(data, at)
        end = found.start() if found else len(data)
        cells.append(quoted + data[at:end])
        if not data.startswith(delimiter, end):
            return cells, end + 1 + data.startswith(b"\r\n", end) if found else -1
        at = end + 1


def name_columns(cells: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return column names from the cells of a header, and a note on unnamed columns; repeated names raise an error.

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
    """Whether lines without a delimiter are rows of cells separated by blanks, with a column of numbers.

    >>> is_blank_separated(b"x y\\n" + b"1.5  a\\n" * 6), is_blank_separated(b"what a day\\n" * 9)
    (True, False)
    """
    lines = [line.split() for line in text[:HEAD].splitlines()[: LINES + 1]][:-1]
    rows = [[cell.decode("utf-8", "replace") for cell in line] for line in lines if line]
    if len(rows) <= ROWS or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return False
    return any(all(number_of(cell) is not None for cell in column) for column in zip(*rows[1:], strict=True))
