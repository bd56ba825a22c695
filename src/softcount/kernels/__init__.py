"""The loops that touch every row, each written twice with one signature: in plain NumPy, and compiled.

`reference` and `fused` hold the same functions: `count_labels`, `count_reals_labelled`, `count_reals_soft`,
`score_reals`, the corresponding three for `codes` and `bags`, and `normalise`. For correlated blocks they hold
`expect_products`, and `score_` and `count_` of `products`, `centred` and `patterns` (rows with missing cells). `fused`
also has functions that combine two steps in one pass over the rows: `posterior_reals` and `posterior_codes` score and
normalise, `expect_squares` scores and counts.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray

WORTH_COMPILING = 2_000_000
"""Cells times passes above which compiled kernels save more than the second or so that importing Numba takes."""


def choose(cells: int) -> ModuleType:
    """Return the kernels for a number of cells, counted once per pass over the table.

    The choice depends only on this number, not on the modules already imported, so that a fit is reproducible.

    >>> choose(150 * 4).__name__
    'softcount.kernels.reference'
    """
    return import_module("softcount.kernels.fused" if cells >= WORTH_COMPILING else "softcount.kernels.reference")
