"""The two products of an E-step on one tile of rows: parameters times features, features times memberships.

Four groups or features by four registers of rows or groups at a time: sixteen sums stay in registers, and every number
read is used four times. BLAS copies what it multiplies first, which for so few rows takes a third of its time.
Numba caches a kernel by its own file only: after a change here, delete the `__pycache__` of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from softcount.kernels.jit import instruction, register_jitable
from softcount.kernels.lanes import INT64, WIDTH, ZEROS, checked, spread
from softcount.kernels.registers import load, store

SIDE = 4
"""Lines on each side of a block."""
ABREAST = SIDE * WIDTH
"""Rows scored at once; a tile has a multiple of it."""


def placed(builder: Any, array: Any, line: Any, step: int, at: Any) -> Any:
    """A pointer to a place of the line so many after another."""
    length = builder.extract_value(array.shape, 1)
    start = builder.mul(builder.add(line, ir.Constant(INT64, step)), length)
    return builder.gep(array.data, [builder.add(start, at)])


def shifted(builder: Any, pointer: Any, numbers: int) -> Any:
    """A pointer so many numbers on."""
    return builder.gep(pointer, [ir.Constant(INT64, numbers)])


def scoring(height: int) -> Callable[..., None]:
    """An instruction: scores of so many groups from `g` on for 32 rows from `i` on."""

    @instruction(
        lambda eta, g, features, i, joint: types.void(
            checked(eta), types.intp, checked(features), types.intp, checked(joint)
        )
    )
    def block(builder: Any, eta: Any, g: Any, features: Any, i: Any, joint: Any) -> None:
        sums = [[cgutils.alloca_once_value(builder, ZEROS) for _ in range(SIDE)] for _ in range(height)]
        with cgutils.for_range(builder, builder.extract_value(eta.shape, 1), intp=INT64) as loop:
            first = placed(builder, features, loop.index, 0, i)
            cells = [load(builder, shifted(builder, first, WIDTH * k), WIDTH) for k in range(SIDE)]
            for step, line in enumerate(sums):
                factor = spread(builder, builder.load(placed(builder, eta, g, step, loop.index)))
                for cell, place in zip(cells, line, strict=True):
                    builder.store(builder.fadd(builder.fmul(factor, cell), builder.load(place)), place)
        for step, line in enumerate(sums):
            first = placed(builder, joint, g, step, i)
            for k, place in enumerate(line):
                store(builder, shifted(builder, first, WIDTH * k), builder.load(place))

    return block


def counting(height: int, width: int) -> Callable[..., None]:
    """An instruction: add so many features from `f` on times memberships of so many groups from `g` on."""

    @instruction(
        lambda features, f, joint, g, sums: types.void(
            checked(features), types.intp, checked(joint), types.intp, checked(sums)
        )
    )
    def block(builder: Any, features: Any, f: Any, joint: Any, g: Any, sums: Any) -> None:
        lane = builder.mul(g, ir.Constant(INT64, WIDTH))
        ends = [
            shifted(builder, placed(builder, sums, f, a, lane), WIDTH * b) for a in range(height) for b in range(width)
        ]
        held = [cgutils.alloca_once_value(builder, load(builder, end, WIDTH)) for end in ends]
        zero, step = ir.Constant(INT64, 0), ir.Constant(INT64, WIDTH)
        with cgutils.for_range_slice(builder, zero, builder.extract_value(features.shape, 1), step) as (at, _):
            left = [load(builder, placed(builder, features, f, a, at), WIDTH) for a in range(height)]
            right = [load(builder, placed(builder, joint, g, b, at), WIDTH) for b in range(width)]
            for place, (one, other) in zip(held, ((a, b) for a in left for b in right), strict=True):
                builder.store(builder.fadd(builder.fmul(one, other), builder.load(place)), place)
        for end, place in zip(ends, held, strict=True):
            store(builder, end, builder.load(place))

    return block


score_four, score_one = scoring(SIDE), scoring(1)
count_sixteen, count_down, count_along, count_one = (
    counting(SIDE, SIDE),
    counting(SIDE, 1),
    counting(1, SIDE),
    counting(1, 1),
)


@register_jitable
def multiply_scores(eta: np.ndarray, features: np.ndarray, joint: np.ndarray) -> None:
    """A tile's scores (groups, rows): natural parameters (groups, features) times features (features, rows)."""
    groups = eta.shape[0]
    whole = groups - groups % SIDE
    for i in range(0, features.shape[1], ABREAST):
        for g in range(0, whole, SIDE):
            score_four(eta, g, features, i, joint)
        for g in range(whole, groups):
            score_one(eta, g, features, i, joint)


@register_jitable
def add_counts(features: np.ndarray, joint: np.ndarray, sums: np.ndarray) -> None:
    """Add a tile's features (features, rows) times memberships (groups, rows) to sums (features, groups x 8 lanes)."""
    n_features, groups = features.shape[0], joint.shape[0]
    deep, wide = n_features - n_features % SIDE, groups - groups % SIDE
    for f in range(0, deep, SIDE):
        for g in range(0, wide, SIDE):
            count_sixteen(features, f, joint, g, sums)
        for g in range(wide, groups):
            count_down(features, f, joint, g, sums)
    for f in range(deep, n_features):
        for g in range(0, wide, SIDE):
            count_along(features, f, joint, g, sums)
        for g in range(wide, groups):
            count_one(features, f, joint, g, sums)
