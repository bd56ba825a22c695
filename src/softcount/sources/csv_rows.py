"""How a text table is written, and its bytes cut into runs of whole rows, without parsing them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from softcount import remedies
from softcount.errors import DataError
from softcount.sources.bytestream import LONGEST

NEWLINE, RETURN, QUOTE = 10, 13, 34
_many_ends = re.compile(rb"[\r\n]{5,}")


def shorten_blank_lines(data: bytes) -> bytes:
    """Collapse runs of blank lines to one: ten times as fast as finding the end of each line."""
    return _many_ends.sub(b"\n\n", data)


def not_text() -> str:
    """What a NUL byte means."""
    utf16 = remedies.setting("encoding", "utf-16")
    return f"this is not plain text, or it is damaged. If it was saved as UTF-16: {utf16}"


class RowBytes(NamedTuple):
    """Whole rows: the number of the first, how many, and their bytes, each ended by a newline."""

    start: int
    n_rows: int
    data: bytes


def runs(
    blocks: Iterable[bytes], rows: int, delimiter: str, most: int, compiled: Callable[[], bool] = lambda: False
) -> Iterator[RowBytes]:
    """All rows, whatever the blocks, in runs that end with their row number `rows` or the one that makes `most` bytes.

    A row ends with a newline, a carriage return, or both; blank lines are skipped. Where `compiled` says so, a kernel
    looks for them, ten times as fast.
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
    """Blocks extended to end with a row, and where in each the rows end, all by a newline.

    A row that goes on is looked at again only when twice as much of it is there, so that a long one takes no longer.
    """
    tail, row, length, shut = b"", 0, 0, False
    held: list[bytes] = []
    for block, last in with_last(blocks):
        held.append(block)
        length += len(block)
        # An open quote is closed by a quote: in blocks without one no row ends, and there is nothing to look for.
        shut = shut and b'"' not in block
        if not last and (length < len(tail) or shut) and len(tail) + length <= LONGEST:
            continue
        data = b"".join([tail, *held])
        held, length = [], 0
        if (at := data.find(b"\0", len(tail))) >= 0:
            raise DataError(f"there is a NUL byte in row {row + rows_before(data, at, delimiter) + 1}: {not_text()}")
        if shut and len(data) > LONGEST:
            raise _too_long(row + 1)
        if b'"' not in data and not data[-64:].strip(b"\r\n"):
            data = shorten_blank_lines(data)
        ends, shut = row_ends(data, delimiter, compiled())
        if not last and len(ends) and ends[-1] == len(data) and data.endswith(b"\r"):
            ends = ends[:-1]  # a newline may follow
        _refuse_long(data, ends, row, delimiter)
        tail = data[int(ends[-1]) :] if len(ends) else data
        if len(ends):
            kept = without_blank_lines(_with_newlines(data, ends), ends)
            row += len(kept[1])
            yield kept
    if tail:
        yield _last_row(tail, delimiter, row)


def with_last(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each block, and whether it is the last."""
    before = None
    for block in blocks:
        if before is not None:
            yield before, False
        before = block
    if before is not None:
        yield before, True


def _last_row(tail: bytes, delimiter: str, row: int) -> tuple[bytes, np.ndarray]:
    data = tail + b"\n"
    ends, open_quote = row_ends(data, delimiter)
    if open_quote or not len(ends):
        raise DataError(f"row {row + 1}: a quote opens and is never closed. Close it; double a quote inside a cell.")
    return data, ends


def _refuse_long(data: bytes, ends: np.ndarray, row: int, delimiter: str) -> None:
    if len(data) <= LONGEST:
        return
    begins = np.append(0, ends)
    long = np.flatnonzero(np.diff(begins, append=len(data)) > LONGEST)
    if len(long):
        before = rows_before(data, int(begins[long[0]]), delimiter)
        raise _too_long(row + before + 1)


def _too_long(row: int) -> DataError:
    return DataError(
        f"row {row} is longer than {LONGEST >> 20} MB: a quote opens and is never closed, or a cell holds too much. "
        "Close it; double a quote inside a cell; cut up such long texts."
    )


def rows_before(data: bytes, at: int, delimiter: str) -> int:
    """How many rows, blank lines apart, end before a place."""
    ends, _ = row_ends(data[:at], delimiter)
    return len(without_blank_lines(data, ends)[1]) if len(ends) else 0


def row_ends(data: bytes, delimiter: str, compiled: bool = False) -> tuple[np.ndarray, bool]:
    """Just past the end of every row, line ends inside quotes not counting; and whether a quote stays open."""
    letters = np.frombuffer(data, dtype=np.uint8)
    if compiled:
        from softcount.kernels.csv_cells import mark_rows

        places = np.empty(len(data), dtype=np.int64)
        found, is_open = mark_rows(letters, ord(delimiter), places)
        if found >= 0:
            return places[:found].copy(), is_open
    ends = _line_ends(letters, b"\r" in data)
    if b'"' not in data:
        return ends + 1, False
    borders = _quoted(letters, ord(delimiter))
    inside = np.searchsorted(borders, ends) % 2 == 1
    return ends[~inside] + 1, len(borders) % 2 == 1


def _line_ends(letters: np.ndarray, returns: bool) -> np.ndarray:
    """Newlines, and carriage returns that no newline follows."""
    found = letters == NEWLINE
    if returns:
        alone = letters == RETURN
        alone[:-1] &= ~found[1:]
        found |= alone
    return np.flatnonzero(found)


def _with_newlines(data: bytes, ends: np.ndarray) -> bytes:
    """The same rows, those that a carriage return ends ended by a newline instead."""
    letters = np.frombuffer(data, dtype=np.uint8)
    if b"\r" not in data or (letters[ends - 1] == NEWLINE).all():
        return data
    changed = letters.copy()
    changed[ends - 1] = NEWLINE
    return changed.tobytes()


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
    if compiled:
        return _padded_compiled(data, delimiter, width)
    letters = np.frombuffer(b"\n" + data, dtype=np.uint8)
    if b'"' in data:
        return None if len(_padded(letters, ord(delimiter))) or len(_padded(letters, QUOTE)) else set()
    found = _padded(letters, ord(delimiter))
    return {column for column in _columns_at(letters, found, ord(delimiter)) if column < width} if len(found) else set()


def _padded_compiled(data: bytes, delimiter: str, width: int) -> set[int] | None:
    from softcount.kernels import padded

    found = np.zeros(width, dtype=np.bool_)
    letters = np.frombuffer(b"\n" + data + b"\n\n\n", dtype=np.uint8)
    marks = np.empty(len(letters) - 3, dtype=np.uint8)
    if b'"' in data:
        padded.mark_padded(letters, QUOTE, marks)
        some = marks.any()
        padded.mark_padded(letters, ord(delimiter), marks)
        return None if some or marks.any() else set()
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
