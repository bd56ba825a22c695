"""Tiles turned over: cells end where they belong, whatever the shape and layout, and nothing else is read."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from softcount.kernels.registers import put_turned


@numba.njit
def turned(rows: Any, start: int, stop: int, tile: Any) -> None:
    put_turned(rows, start, stop, tile)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray], ids=["C order", "F order"])
@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (1, 1), (9, 3), (13, 17), (32, 50), (31, 0)])
def test_columns_become_lines_and_the_last_row_fills_the_last_register(layout: Any, rows: int, columns: int) -> None:
    table = layout(np.random.default_rng(0).normal(size=(rows + 5, columns)))
    tile = np.zeros((-(-columns // 8) * 8, 32))
    turned(table, 5, rows + 5, tile)
    filled = -(-rows // 8) * 8
    expected = np.concatenate([table[5:], np.repeat(table[-1:], filled - rows, axis=0)]).T
    assert np.array_equal(tile[:columns, :filled], expected)
    assert not tile[columns:].any()
