"""Arrow memory as NumPy arrays and back, through the buffers both share.

Arrow's own conversions import pandas when it is installed (0.47 s, half of what a small fit may take); these do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def numpy_of(array: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """The values of an Arrow array of numbers or truth values, and which of them are known (None: all)."""
    import pyarrow as pa

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


def floats_of_array(array: Any) -> np.ndarray:
    """A float64 Arrow array as NumPy, NaN where null; without nulls it is the same memory."""
    values, known = numpy_of(array)
    return values if known is None else np.where(known, values, np.nan)


def truths_of_array(array: Any, null: bool) -> np.ndarray:
    """A Boolean Arrow array as NumPy, with `null` where it is null."""
    values, known = numpy_of(array)
    return values if known is None else np.where(known, values, null)


def arrow_of(values: np.ndarray) -> Any:
    """An Arrow array of numbers or truth values, in the same memory where it is contiguous."""
    import pyarrow as pa

    if values.dtype.kind == "b":
        return _arrow_bits(values)
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _arrow_bits(values: np.ndarray) -> Any:
    import pyarrow as pa

    packed = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(packed)])


def text_of(cells: Sequence[str | None]) -> Any:
    """An Arrow array of text, None as null."""
    import pyarrow as pa

    letters = [b"" if cell is None else cell.encode() for cell in cells]
    ends = np.cumsum([0, *map(len, letters)], dtype=np.int64)
    known = np.array([cell is not None for cell in cells], dtype=bool)
    validity = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.LargeStringArray.from_buffers(
        len(cells), pa.py_buffer(ends), pa.py_buffer(b"".join(letters)), validity, int((~known).sum())
    )
