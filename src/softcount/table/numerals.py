"""Which cells of text are numbers, and which level a value stands for.

Only plain decimals count: 12, -3.5, +2, .5, 1e5. Text such as 00042, 0x10, 1_000 or inf is not a number, because
reading it as one would alter it.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from softcount.table.arrays import floats_of_array, truths_of_array

PLAIN = r"^[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
PADDED = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
"""As `PLAIN`, with leading zeros allowed: for columns the user has declared numeric."""

_plain = re.compile(PLAIN[1:-1])
_whole = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
EXACT = 2**53
"""Whole numbers up to here are the same as integers and as floats."""


def number_of(text: str) -> int | float | None:
    """The number a cell of text spells, whole ones as integers; None where it is no plain number.

    >>> [number_of(cell) for cell in ("7", "7.0", "-2.5", "007", "0x10", "inf")]
    [7, 7, -2.5, None, None, None]
    """
    if _whole.fullmatch(text):
        return int(text)
    return level_of(float(text)) if _plain.fullmatch(text) else None


def level_of(value: Any) -> Any:
    """The level a value stands for: whole floats as integers (a column of integers with holes arrives as floats)."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value)
    return value


def floats_of(values: Any, pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """What an Arrow array of text spells as float64, and which of its cells are no number (NaN there)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    good = pc.match_substring_regex(values, pattern)
    floats = pc.if_else(good, values, pa.nulls(len(values), values.type)).cast(pa.float64())
    return floats_of_array(floats), ~truths_of_array(good, null=True)


def number_words(missing: tuple[str, ...]) -> tuple[float, ...]:
    """Those words for missing that are numbers, as in surveys where -9 means no answer."""
    numbers = (number_of(word) for word in missing)
    return tuple(float(number) for number in numbers if number is not None and math.isfinite(number))
