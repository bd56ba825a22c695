"""Large tables of counts in little room: which cells are not zero, one bit each, and what those hold.

Twenty classes of 60,000 words are 9.6 MB of numbers, four fifths of them zero; packed they take less than 2 MB.
"""

from __future__ import annotations

from math import prod

import numpy as np

from softcount.errors import ModelFileError
from softcount.numerics.twofold import Twofold

Arrays = dict[str, np.ndarray]
SMALL = 4_096
"""Cells below which a table is kept as it is."""


def put_counts(arrays: Arrays, prefix: str, counts: Twofold) -> None:
    """Counts as arrays of the file: both halves, or packed where that is shorter and loses nothing."""
    hi = np.ascontiguousarray(counts.hi)
    if hi.size < SMALL or counts.lo.any() or np.signbit(hi[hi == 0]).any():
        arrays[f"{prefix}/hi"], arrays[f"{prefix}/lo"] = hi, np.ascontiguousarray(counts.lo)
        return
    there = hi.reshape(-1) != 0
    arrays[f"{prefix}/cells"] = np.packbits(there)
    arrays[f"{prefix}/values"] = _narrow(hi.reshape(-1)[there])


def _narrow(values: np.ndarray) -> np.ndarray:
    """The same numbers in the smallest type of the file that holds them exactly."""
    top = values.max(initial=0.0)
    if top >= 2**31 or values.min(initial=0.0) < 0 or not (values == np.floor(values)).all():
        return values
    return values.astype(np.uint8 if top < 256 else np.int32)


def counts_from(parts: Arrays, shape: tuple[int, ...], name: object) -> Twofold:
    """Counts back from a file; what is made here is at most 64 times what the file holds."""
    if "cells" not in parts:
        pair = Twofold(parts["hi"], parts["lo"])
        sound = set(parts) == {"hi", "lo"} and pair.hi.shape == pair.lo.shape
    else:
        cells, values, size = parts["cells"], parts["values"], prod(shape)
        sound = set(parts) == {"cells", "values"} and cells.dtype == np.uint8 and cells.shape == (-(-size // 8),)
        sound = sound and values.ndim == 1 and values.dtype.kind in "iuf"
        there = np.unpackbits(cells, count=size).astype(bool) if sound else np.zeros(0, bool)
        sound = sound and np.count_nonzero(there) == len(values)
        pair = Twofold.of(_spread(there, values, shape) if sound else np.zeros(0))
    if not sound or pair.shape[:1] != shape[:1] or not np.isfinite(pair.value).all():
        raise ModelFileError(f"the counts of {name!r} make no sense.")
    return pair


def _spread(there: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    whole = np.zeros(len(there))
    whole[there] = values
    return whole.reshape(shape)
