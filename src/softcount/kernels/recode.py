"""Whole-number columns to one-byte level codes, a block at a time.

Two compiled loops and, beside each, the plain NumPy that says the same thing. A code of 0 means the value is not in
the column's table yet: the caller learns it from the returned flag and decides what such a value is.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def recode_run(values, low, size, codes):  # pragma: no cover - compiled
    """True when every value lies in `low .. low + size - 1`; `codes` then holds 1 .. size.

    One flat loop without a look-up: it runs at the speed of reading memory.
    """
    furthest = np.uint64(0)
    for i in range(values.size):
        step = np.uint64(np.int64(values[i]) - low)
        codes[i] = np.uint8(step + np.uint64(1))
        furthest = max(furthest, step)
    return furthest < np.uint64(size)


@njit(nogil=True, cache=True)
def recode_table(block, columns, low, tables, codes):  # pragma: no cover - compiled
    """True when every value has a code in `tables[j, value - low[j]]`; the last entry of a table stands for beyond."""
    beyond = np.uint64(tables.shape[1] - 1)
    least = np.uint8(255)
    for i in range(block.shape[0]):
        for j in range(columns.size):
            step = min(np.uint64(np.int64(block[i, columns[j]]) - low[j]), beyond)
            code = tables[j, step]
            codes[i, j] = code
            least = min(least, code)
    return least > 0
