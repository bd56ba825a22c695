"""Tiles of rows turned over, one line of memory to a column, so that eight rows make a register.

Numba caches a kernel by its own file only: after a change here, delete the `__pycache__` of this package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from softcount.kernels import lanes
from softcount.kernels.jit import instruction, overload, register_jitable
from softcount.kernels.lanes import INT64, WIDTH, checked
from softcount.kernels.registers import load, store, transposed


@instruction(lambda rows, i, j, out, at: types.void(checked(rows), types.intp, types.intp, checked(out), types.intp))
def turn(builder: Any, rows: Any, i: Any, j: Any, out: Any, at: Any) -> None:
    """Write cells of eight rows from `i` and eight columns from `j` to lines `j` to `j + 7` of `out`, from `at` on.

    Past the last row it comes again, past the last column come zeros.
    """
    height, width = (builder.extract_value(rows.shape, axis) for axis in (0, 1))
    length = builder.extract_value(out.shape, 1)
    last, left = builder.sub(height, ir.Constant(INT64, 1)), builder.sub(width, j)
    lines = []
    for step in range(WIDTH):
        row = builder.add(i, ir.Constant(INT64, step))
        row = builder.select(builder.icmp_signed("<", row, last), row, last)
        place = builder.add(builder.mul(row, width), j)
        lines.append(load(builder, builder.gep(rows.data, [place]), WIDTH, left))
    for step, line in enumerate(transposed(builder, lines)):
        place = builder.add(builder.mul(builder.add(j, ir.Constant(INT64, step)), length), at)
        store(builder, builder.gep(out.data, [place]), line)


def put_turned(rows: Any, start: int, stop: int, tile: Any) -> None:
    """Columns of rows `start` to `stop` as lines of `tile`, the last row again after them, up to whole registers.

    `tile` has a line for every column, and as many more as make whole registers, which are left with zeros.
    """
    raise NotImplementedError


@overload(put_turned)
def _put_turned(rows: Any, start: Any, stop: Any, tile: Any) -> Any:
    if isinstance(rows, types.Array) and rows.layout == "C" and rows.dtype == types.float64:
        return lambda rows, start, stop, tile: turn_all(rows[start:stop], tile)
    return lambda rows, start, stop, tile: copy_columns(rows, start, stop, tile)


@register_jitable
def turn_all(rows: np.ndarray, tile: np.ndarray) -> None:
    """Eight rows by eight columns at a time."""
    for i in range(0, rows.shape[0], WIDTH):
        for j in range(0, rows.shape[1], WIDTH):
            turn(rows, i, j, tile, i)


@register_jitable
def copy_columns(rows: np.ndarray, start: int, stop: int, tile: np.ndarray) -> None:
    """Column by column: row by row, columns a power of two apart push each other out of the cache."""
    for j in range(rows.shape[1]):
        for i in range(stop - start):
            tile[j, i] = rows[start + i, j]
        for i in range(stop - start, lanes.padded(stop - start)):
            tile[j, i] = rows[stop - 1, j]


def ask_ahead(rows: Any, start: int, stop: int, part: int, parts: int) -> None:
    """Ask for one of so many parts of the rows `start` to `stop`, which come next: all at once are too many.

    Scoring 1,000,000 x 50 under ten groups took 95 ms without, 64 ms with it. What is not in C order is left to the
    machine, which foresees what is read column by column.
    """
    raise NotImplementedError


@overload(ask_ahead)
def _ask_ahead(rows: Any, start: Any, stop: Any, part: Any, parts: Any) -> Any:
    if isinstance(rows, types.Array) and rows.layout == "C" and rows.dtype == types.float64:
        return lambda rows, start, stop, part, parts: ask_cells(rows, start, stop, part, parts)
    return lambda rows, start, stop, part, parts: None


@register_jitable
def ask_cells(rows: np.ndarray, start: int, stop: int, part: int, parts: int) -> None:
    """Ask for the cells themselves, eight at a time."""
    first, registers = start * rows.shape[1], (stop - start) * rows.shape[1] // WIDTH
    for at in range(registers * part // parts, registers * (part + 1) // parts):
        lanes.prefetch_far(rows, first + at * WIDTH)
