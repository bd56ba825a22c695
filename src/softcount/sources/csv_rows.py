"""How a text table is written, and its bytes cut into runs of whole rows, without parsing them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from softcount.errors import DataError
from softcount.sources.arrow_columns import number_of
from softcount.sources.source import refuse_repeated

NEWLINE, RETURN, QUOTE = 10, 13, 34
LONGEST_ROW = 128 << 20
"""Bytes after which a row without an end is taken for a quote that was never closed."""

NOT_TEXT = "this is not plain text, or it is damaged. If it was saved as UTF-16, convert it to UTF-8 first."
"""What a NUL byte means."""


class RowBytes(NamedTuple):
    """Whole rows: the number of the first, how many, and their bytes, each ended by a newline."""

    start: int
    n_rows: int
    data: bytes


def runs(blocks: Iterable[bytes], rows: int, delimiter: str) -> Iterator[RowBytes]:
    """All rows in runs of exactly `rows` (the last shorter), whatever the blocks; blank lines are skipped."""
    held: list[bytes] = []
    start = count = 0
    for data, ends in _whole_rows(blocks, delimiter):
        done = 0
        at = 0
        while count + len(ends) - done >= rows:
            done += rows - count
            stop = int(ends[done - 1])
            yield RowBytes(start, rows, b"".join([*held, data[at:stop]]))
            start, held, count, at = start + rows, [], 0, stop
        if len(ends) > done:
            held.append(data[at : int(ends[-1])])
            count += len(ends) - done
    if count:
        yield RowBytes(start, count, b"".join(held))


def _whole_rows(blocks: Iterable[bytes], delimiter: str) -> Iterator[tuple[bytes, np.ndarray]]:
    """Blocks extended to end with a row, and where in each the rows end.

    A row that goes on is looked at again only when twice as much of it is there, so that a long one takes no longer.
    """
    tail, row = b"", 0
    held: list[bytes] = []
    for block, last in _with_last(blocks):
        held.append(block)
        if not last and sum(map(len, held)) < len(tail):
            continue
        data = b"".join([tail, *held])
        held = []
        _refuse_nul(data, len(tail), row)
        ends, _ = row_ends(data, delimiter)
        tail = data[int(ends[-1]) :] if len(ends) else data
        if len(tail) > LONGEST_ROW:
            raise DataError(
                f"row {row + len(ends) + 1} is longer than {LONGEST_ROW >> 20} MB: a quote opens and is never closed, "
                "or a cell holds too much. "
                "Close it; double a quote inside a cell; keep longer texts as files in a folder."
            )
        if len(ends):
            kept = without_blank_lines(data, ends)
            row += len(kept[1])
            yield kept
    if tail.strip(b"\r\n"):
        yield _last_row(tail, delimiter, row)


def _with_last(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each block, and whether it is the last."""
    before = None
    for block in blocks:
        if before is not None:
            yield before, False
        before = block
    if before is not None:
        yield before, True


def _last_row(tail: bytes, delimiter: str, row: int) -> tuple[bytes, np.ndarray]:
    data = tail.rstrip(b"\r") + b"\n"
    ends, open_quote = row_ends(data, delimiter)
    if open_quote or not len(ends):
        raise DataError(f"row {row + 1}: a quote opens and is never closed. Close it; double a quote inside a cell.")
    return data, ends


def _refuse_nul(data: bytes, start: int, row: int) -> None:
    at = data.find(b"\0", start)
    if at >= 0:
        lines = data[:at].count(b"\n")
        raise DataError(f"row {row + lines + 1} holds a NUL byte: {NOT_TEXT}")


def row_ends(data: bytes, delimiter: str) -> tuple[np.ndarray, bool]:
    """Where rows end (just past the newline), newlines inside quotes not counting; and whether a quote stays open."""
    letters = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(letters == NEWLINE)
    if b'"' not in data:
        return ends + 1, False
    borders = _quoted(letters, ord(delimiter))
    inside = np.searchsorted(borders, ends) % 2 == 1
    return ends[~inside] + 1, len(borders) % 2 == 1


def _quoted(letters: np.ndarray, delimiter: int) -> np.ndarray:
    """Positions at which quoted stretches open and close, in turn."""
    quotes = np.flatnonzero(letters == QUOTE)
    opening = quotes[0::2]
    before = np.where(opening > 0, letters[opening - 1], NEWLINE)
    # Taking quotes in turn is right when each opening one starts a cell or is the second of a doubled pair.
    if np.isin(before, (delimiter, NEWLINE, RETURN, QUOTE)).all():
        return quotes
    return _quoted_slowly(letters, quotes.tolist(), delimiter)


def _quoted_slowly(letters: np.ndarray, quotes: list[int], delimiter: int) -> np.ndarray:
    """The same where quotes also stand inside unquoted cells, as in `5" pipe`: there they are plain letters."""
    borders: list[int] = []
    starts = (delimiter, NEWLINE, RETURN)
    doubled = -1
    for place, at in enumerate(quotes):
        inside = len(borders) % 2 == 1
        if not inside and (at == 0 or int(letters[at - 1]) in starts):
            borders.append(at)
        elif inside and at != doubled:
            if place + 1 < len(quotes) and quotes[place + 1] == at + 1:
                doubled = at + 1
            else:
                borders.append(at)
    return np.array(borders, dtype=np.int64)


def without_blank_lines(data: bytes, ends: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Rows without those that hold nothing at all."""
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


def padded_columns(data: bytes, delimiter: str, width: int, *, compiled: bool = False) -> set[int] | None:
    """Which columns hold a number with leading zeros such as 007; None where quotes make that hard to tell."""
    if compiled and b'"' not in data:
        return _padded_compiled(data, delimiter, width)
    letters = np.frombuffer(b"\n" + data, dtype=np.uint8)
    if b'"' in data:
        return None if len(_padded(letters, ord(delimiter))) or len(_padded(letters, QUOTE)) else set()
    found = _padded(letters, ord(delimiter))
    return {column for column in _columns_at(letters, found, ord(delimiter)) if column < width} if len(found) else set()


def _padded_compiled(data: bytes, delimiter: str, width: int) -> set[int]:
    from softcount.kernels import padded

    found = np.zeros(width, dtype=np.bool_)
    letters = np.frombuffer(b"\n" + data + b"\n\n\n", dtype=np.uint8)
    marks = np.empty(len(letters) - 3, dtype=np.uint8)
    padded.mark_padded(letters, ord(delimiter), marks)
    padded.columns_of(letters, ord(delimiter), marks, found)
    return set(np.flatnonzero(found).tolist())


SLICE = 1 << 17
"""Bytes compared at a time: few enough to stay in the cache, where a comparison costs a third."""


def _padded(letters: np.ndarray, delimiter: int) -> np.ndarray:
    """Where a cell begins with 0 and another digit, a sign before them or not: the place before the cell."""
    found = [_padded_slice(letters[at : at + SLICE + 3], delimiter) + at for at in range(0, len(letters), SLICE)]
    return np.concatenate(found)


def _padded_slice(letters: np.ndarray, delimiter: int) -> np.ndarray:
    # Comparing whole arrays of bytes and looking for the few hits last is four times as fast as visiting zeros.
    begins = (letters == delimiter) | (letters == NEWLINE) | (letters == ord(" "))
    zero = (letters[:-1] == ord("0")) & (letters[1:] - np.uint8(ord("0")) < 10)
    signed = begins[:-2] & ((letters[1:-1] == ord("-")) | (letters[1:-1] == ord("+")))
    signed[:-1] &= zero[2:]
    signed[-1:] = False
    signed |= begins[:-2] & zero[1:]
    return np.flatnonzero(signed)


def _columns_at(letters: np.ndarray, places: np.ndarray, delimiter: int) -> set[int]:
    """The columns that begin just after these places, or after the blanks there."""
    ends = np.flatnonzero(letters == NEWLINE)
    delimiters = np.flatnonzero(letters == delimiter)
    begins = ends[np.searchsorted(ends, places, side="right") - 1]
    columns = np.searchsorted(delimiters, places, side="right") - np.searchsorted(delimiters, begins)
    return set(columns.tolist())


# -- what parts the cells, and what the columns are called

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
    first, skip = _first_record(head, delimiter)
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


def _first_record(head: bytes, delimiter: str) -> tuple[list[str], int]:
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
