"""Arrow's own functions on columns, by what they are called in Arrow.

`pyarrow.compute` writes a Python function with its documentation for each of three hundred as it is imported, which
takes 30 ms of a small fit from the shell. All of them make the one call that is made here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from softcount.core.lazy import arrow_compute, pa


def call(name: str, *columns: Any, options: Any = None) -> Any:
    """What a function of Arrow makes of columns.

    >>> import pyarrow as pa
    >>> call("binary_length", pa.array(["one", "three"])).to_pylist()
    [3, 5]
    """
    return arrow_compute.call_function(name, list(columns), options)


def matches(column: Any, pattern: str) -> Any:
    """Which cells of text hold what a regular expression describes; null where a cell is."""
    return call("match_substring_regex", column, options=arrow_compute.MatchSubstringOptions(pattern))


def as_type(column: Any, kind: Any) -> Any:
    """The cells as another type; an error where one has no such value."""
    return call("cast", column, options=arrow_compute.CastOptions.safe(kind))


def with_levels(column: Any) -> Any:
    """The column as places in a list of its different values."""
    return call("dictionary_encode", column, options=arrow_compute.DictionaryEncodeOptions())


def are_all(truths: Any) -> bool:
    """Whether every known truth is true; of none it is false."""
    return bool(call("all", truths, options=arrow_compute.ScalarAggregateOptions(min_count=1)).as_py())


# Arrow columns: what their cells are, and their memory as NumPy arrays and back, through the buffers both share.


class CellType(StrEnum):
    """What the cells of a column are before anything is decided about it."""

    TEXT = "text"
    TRUTH = "true or false"
    WHOLE = "whole numbers"
    FLOAT = "numbers"
    TIME = "dates or times"
    EMPTY = "nothing"
    NESTED = "nested values"


def cell_type(kind: Any) -> CellType:
    """What the cells of an Arrow type are."""
    if pa.types.is_dictionary(kind):
        return cell_type(kind.value_type)
    for cells, tests in (
        (CellType.TEXT, (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)),
        (CellType.TRUTH, (pa.types.is_boolean,)),
        (CellType.WHOLE, (pa.types.is_integer,)),
        (CellType.FLOAT, (pa.types.is_floating, pa.types.is_decimal)),
        (CellType.TIME, (pa.types.is_date, pa.types.is_time, pa.types.is_timestamp, pa.types.is_duration)),
        (CellType.EMPTY, (pa.types.is_null,)),
    ):
        if any(test(kind) for test in tests):
            return cells
    return CellType.NESTED


def flat(column: Any) -> Any:
    """One Arrow array in place of a chunked one, of the types that all of Arrow's functions know."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # text beyond 2 GB stays in chunks
            column = pa.concat_arrays([chunk.cast(pa.large_string()) for chunk in column.chunks])
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(as_type(column.indices, pa.int32()), flat(column.dictionary))
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def numpy_of(array: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """The values of an Arrow array of numbers or truth values, and which of them are known (None: all)."""
    validity, data = array.buffers()
    known = None if array.null_count == 0 else _bits(validity, array.offset, len(array))
    if pa.types.is_boolean(array.type):
        return _bits(data, array.offset, len(array)), known
    width = array.type.bit_width // 8
    kind = "f" if pa.types.is_floating(array.type) else "u" if pa.types.is_unsigned_integer(array.type) else "i"
    if data is None or not len(array):
        return np.zeros(len(array), dtype=f"{kind}{width}"), known
    return np.frombuffer(data, dtype=f"{kind}{width}", count=len(array), offset=array.offset * width), known


def _bits(buffer: Any, offset: int, count: int) -> np.ndarray:
    if buffer is None or not count:
        return np.zeros(count, dtype=bool)
    first = offset // 8
    packed = np.frombuffer(buffer, dtype=np.uint8, offset=first, count=(offset + count + 7) // 8 - first)
    return np.unpackbits(packed, bitorder="little")[offset % 8 : offset % 8 + count].astype(bool)


def filled(array: Any, null: float | bool = np.nan) -> np.ndarray:
    """An Arrow array of floats or truth values as NumPy, with `null` where it is null; else it is the same memory."""
    values, known = numpy_of(array)
    return values if known is None else np.where(known, values, null)


def arrow_of(values: np.ndarray) -> Any:
    """An Arrow array of numbers or truth values, in the same memory where it is contiguous."""
    kept = np.packbits(values, bitorder="little") if values.dtype.kind == "b" else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(kept)])


def text_of(cells: Sequence[str | None]) -> Any:
    """An Arrow array of text, None as null."""
    letters = [b"" if cell is None else cell.encode() for cell in cells]
    ends = np.cumsum([0, *map(len, letters)], dtype=np.int64)
    known = np.array([cell is not None for cell in cells], dtype=bool)
    validity = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.LargeStringArray.from_buffers(
        len(cells), pa.py_buffer(ends), pa.py_buffer(b"".join(letters)), validity, int((~known).sum())
    )


# -- which cells of text are numbers, and which level a value stands for: only plain decimals count (12, -3.5, +2, .5,
# 1e5). Text such as 00042, 0x10, 1_000 or inf is not a number, because reading it as one would alter it.

PLAIN = r"^[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
PADDED = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
"""As `PLAIN`, with leading zeros allowed: for columns the user has declared numeric."""

_plain = re.compile(PLAIN[1:-1])
_whole = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
EXACT = 2**53
"""Whole numbers up to here are the same as integers and as floats."""


def is_number(text: str) -> bool:
    """Whether a cell of text spells a plain number."""
    return _plain.fullmatch(text) is not None


def number_of(text: str) -> int | float | None:
    """The number a cell of text spells, whole ones as integers, infinity for one too large; None for no plain number.

    >>> [number_of(cell) for cell in ("7", "7.0", "-2.5", "007", "0x10", "inf")]
    [7, 7, -2.5, None, None, None]
    """
    if not _plain.fullmatch(text):
        return None
    number = float(text)
    return int(text) if _whole.fullmatch(text) and math.isfinite(number) else level_of(number)


def level_of(value: Any) -> Any:
    """The level a value stands for: whole floats as integers (a column of integers with holes arrives as floats)."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value)
    return value


def floats_of(cells: Sequence[str | None], pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """What cells of text spell as float64, blanks around them apart, and which of them are no number (NaN there)."""
    values = text_of([None if cell is None else cell.strip() for cell in cells])
    good = matches(values, pattern)
    floats = as_type(call("if_else", good, values, pa.nulls(len(values), values.type)), pa.float64())
    return filled(floats), ~filled(good, null=True)


def number_words(missing: tuple[str, ...]) -> tuple[float, ...]:
    """Those words for missing that are numbers, as in surveys where -9 means no answer."""
    numbers = (number_of(word) for word in missing)
    return tuple(float(number) for number in numbers if number is not None and math.isfinite(number))


def text_bytes(table: Any) -> int:
    """Bytes of the columns of a table or batch that hold text cell by cell."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return sum(column.nbytes for column in table.columns if any(test(column.type) for test in tests))
