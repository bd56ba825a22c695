"""The few loops that touch every row, each written twice with one signature: plain NumPy, and compiled.

`reference` and `fused` hold the same functions: `count_labels`, `count_reals_labelled`, `count_reals_soft`,
`score_reals`, the same three of `codes` and `bags`, `normalise`, and for correlated blocks `expect_products`, `score_`
and `count_` of `products`, `centred` and `patterns` (rows with missing cells). `fused` also has two steps in one pass
over the rows: `posterior_reals` and `posterior_codes` score and normalise, `expect_squares` scores and counts.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

WORTH_COMPILING = 2_000_000
"""Cells times passes from which compiled kernels pay for the second or so that importing Numba costs."""


def choose(cells: int) -> ModuleType:
    """The kernels for so many cells, counted once per pass over the table.

    The answer depends on the size alone, not on what is already imported: a fit must not change with its surroundings.

    >>> choose(150 * 4).__name__
    'softcount.kernels.reference'
    """
    return import_module("softcount.kernels.fused" if cells >= WORTH_COMPILING else "softcount.kernels.reference")
