"""Eight float64 numbers in one register, for Numba kernels.

LLVM's vectoriser fails on most of our loops (short ones, or ones that may alias) and otherwise prefers half registers.
Counting 1,000,000 x 50 reals took 52 ms in a plain loop and 31 ms here, as long as reading them. Every operation below
is one LLVM vector instruction, which LLVM splits on machines with narrower registers.

Arrays are C order float64 and are addressed by a flat index. Numba's cache of a kernel depends only on the file of the
kernel: after a change here or in `kernels.reals`, delete the `__pycache__` of this package.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import lower_builtin, models, register_model, type_callable

from softcount.kernels import Array
from softcount.kernels.jit import instruction, jit, register_jitable

WIDTH = 8
"""Number of float64 values per register."""

fused = jit(fastmath={"contract", "nsz"}, error_model="numpy")
"""Compile a kernel in which products and sums may fuse, but sums are never reordered."""

INT32, INT64, FLOAT, DOUBLE = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
VECTOR = ir.VectorType(DOUBLE, WIDTH)
INTEGERS = ir.VectorType(INT64, WIDTH)
ZEROS = ir.Constant(VECTOR, [0.0] * WIDTH)
MANTISSA = ir.Constant(INTEGERS, [52] * WIDTH)  # number of mantissa bits of a double
ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the nearest integer in the low bits of a double
SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(0.5)


class LanesType(types.Type):  # type: ignore[misc]  # Numba has no types for us
    """The Numba type of eight numbers."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


lanes = LanesType()


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]  # as above
    """Eight numbers as one LLVM vector."""

    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, VECTOR)


def checked(array: Any) -> Any:
    """Return the array type. Raise TypingError unless it is C order float64, which flat indices require."""
    if not isinstance(array, types.Array) or array.dtype != types.float64 or array.layout != "C":
        raise TypingError(f"lanes are loaded from C order float64 arrays, not {array}")
    return array


def shuffled(builder: Any, one: Any, other: Any, order: list[int]) -> Any:
    """Return the lanes of two registers in this order; lanes of `other` are numbered after those of `one`."""
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(INT32, len(order)), order))


def spread(builder: Any, value: Any, width: int = WIDTH) -> Any:
    blank = ir.Constant(ir.VectorType(value.type, width), ir.Undefined)
    return shuffled(builder, builder.insert_element(blank, value, ir.Constant(INT32, 0)), blank, [0] * width)


def leading(builder: Any, count: Any, width: int = WIDTH) -> Any:
    """Return a mask of the first `count` lanes; all lanes if `count` is at least the width."""
    places = ir.Constant(ir.VectorType(INT64, width), list(range(width)))
    return builder.icmp_signed("<", places, spread(builder, count, width))


def folded(builder: Any, value: Any, combine: Any) -> Any:
    """Reduce all lanes to one number, in a fixed order: halves, then quarters, and so on."""
    width = steps = value.type.count
    while steps := steps // 2:
        value = combine(value, shuffled(builder, value, value, [(lane + steps) % width for lane in range(width)]))
    return builder.extract_element(value, ir.Constant(INT32, 0))


def call_llvm(builder: Any, name: str, returns: Any, arguments: list[Any]) -> Any:
    """Call an LLVM intrinsic by its full name."""
    kind = ir.FunctionType(returns, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def bytes_of(number: Any) -> int:
    return 4 if number in (FLOAT, INT32) else 8


def read(builder: Any, pointer: Any, width: int = WIDTH, count: Any = None) -> Any:
    """Load neighbours in memory as one register, or the first `count` and zeros. Memory beyond is not touched."""
    number = pointer.type.pointee
    vector, align = ir.VectorType(number, width), bytes_of(number)
    place = builder.bitcast(pointer, ir.PointerType(vector))
    if count is None:
        return builder.load(place, align=align)
    arguments = [place, ir.Constant(INT32, align), leading(builder, count, width), ir.Constant(vector, [0.0] * width)]
    return call_llvm(builder, f"llvm.masked.load.v{width}f{8 * align}.p0", vector, arguments)


def write(builder: Any, pointer: Any, value: Any, count: Any = None) -> None:
    """Write the lanes of a register, or the first `count` of its float64 numbers; others are left unchanged."""
    place, width = builder.bitcast(pointer, ir.PointerType(value.type)), value.type.count
    if count is None:
        builder.store(value, place, align=bytes_of(value.type.element))
    else:
        arguments = [value, place, ir.Constant(INT32, 8), leading(builder, count, width)]
        call_llvm(builder, f"llvm.masked.store.v{width}f64.p0", ir.VoidType(), arguments)


@instruction(lambda array, index: lanes(checked(array), types.intp))
def load(builder: Any, array: Any, index: Any) -> Any:
    return read(builder, builder.gep(array.data, [index]))


@instruction(lambda array, index: lanes(checked(array), types.intp))
def load_one(builder: Any, array: Any, index: Any) -> Any:
    """Return one number in all lanes. Unlike `fill(array[index])`, it does not test for a negative index."""
    return spread(builder, builder.load(builder.gep(array.data, [index])))


@instruction(lambda array, index, count: lanes(checked(array), types.intp, types.intp))
def load_part(builder: Any, array: Any, index: Any, count: Any) -> Any:
    return read(builder, builder.gep(array.data, [index]), WIDTH, count)


@instruction(lambda array, index, value: types.void(checked(array), types.intp, lanes))
def store(builder: Any, array: Any, index: Any, value: Any) -> None:
    write(builder, builder.gep(array.data, [index]), value)


@instruction(lambda array, index, value, count: types.void(checked(array), types.intp, lanes, types.intp))
def store_part(builder: Any, array: Any, index: Any, value: Any, count: Any) -> None:
    write(builder, builder.gep(array.data, [index]), value, count)


@instruction(lambda array, index: types.void(checked(array), types.intp))
def prefetch_far(builder: Any, array: Any, index: Any) -> None:
    """Prefetch memory that will be read soon, but not next. An index past the end is harmless."""
    flags = [ir.Constant(INT32, flag) for flag in (0, 2, 1)]  # read access, keep in the second-level cache, data
    call_llvm(builder, "llvm.prefetch.p0", ir.VoidType(), [builder.gep(array.data, [index]), *flags])


@instruction(lanes(types.float64))
def fill(builder: Any, value: Any) -> Any:
    return spread(builder, value)


def sign(operation: Any, name: str) -> None:
    """Define an operator on two registers, given the name of its LLVM instruction.

    A product and a sum are fused into one rounding if the machine supports it, as `fused` allows.
    """
    type_callable(operation)(lambda context: lambda a, b: lanes if a == b == lanes else None)
    lower_builtin(operation, lanes, lanes)(lambda context, builder, kinds, pair: getattr(builder, name)(*pair))


sign(operator.add, "fadd")
sign(operator.sub, "fsub")
sign(operator.mul, "fmul")
sign(operator.truediv, "fdiv")


def series(terms: Iterable[float]) -> Any:
    """Return an instruction that evaluates a polynomial; `terms` are its coefficients from the highest power down."""
    first, *others = (ir.Constant(VECTOR, [term] * WIDTH) for term in terms)

    @instruction(lanes(lanes))
    def summed(builder: Any, x: Any) -> Any:
        return reduce(lambda total, term: builder.fadd(builder.fmul(total, x), term), others, first)

    return summed


@instruction(lanes(lanes, lanes))
def larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@instruction(lanes(lanes, lanes))
def where_present(builder: Any, cell: Any, value: Any) -> Any:
    """Return the value, or zero if the cell is missing (NaN)."""
    return builder.select(builder.fcmp_ordered("ord", cell, cell), value, ZEROS)


@instruction(lanes(lanes, lanes, lanes))
def where_above(builder: Any, a: Any, b: Any, value: Any) -> Any:
    """Return the value, or zero if a is not above b."""
    return builder.select(builder.fcmp_ordered(">", a, b), value, ZEROS)


@instruction(lanes(types.intp, lanes, lanes))
def where_leading(builder: Any, count: Any, a: Any, b: Any) -> Any:
    """Return a in the first `count` lanes and b in the others."""
    return builder.select(leading(builder, count), a, b)


@instruction(types.float64(lanes))
def sum_of(builder: Any, value: Any) -> Any:
    return folded(builder, value, builder.fadd)


@instruction(types.float64(lanes))
def largest_of(builder: Any, value: Any) -> Any:
    return folded(builder, value, lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))


@instruction(lanes(lanes, lanes))
def times_power(builder: Any, value: Any, rounded: Any) -> Any:
    """Multiply the value by two to the power of the integer in the low bits of `rounded` (a number plus ROUNDER)."""
    bits, power = (builder.bitcast(number, INTEGERS) for number in (value, rounded))
    return builder.bitcast(builder.add(bits, builder.shl(power, MANTISSA)), VECTOR)


@instruction(lanes(lanes))
def power_part(builder: Any, value: Any) -> Any:
    """Return the integer k, as a float64, with value = 2**k * rest and rest in [sqrt(0.5), sqrt(2))."""
    return builder.sitofp(_power(builder, builder.bitcast(value, INTEGERS)), VECTOR)


@instruction(lanes(lanes))
def rest_part(builder: Any, value: Any) -> Any:
    bits = builder.bitcast(value, INTEGERS)
    return builder.bitcast(builder.sub(bits, builder.shl(_power(builder, bits), MANTISSA)), VECTOR)


def _power(builder: Any, bits: Any) -> Any:
    return builder.ashr(builder.sub(bits, ir.Constant(INTEGERS, [SQRT_HALF] * WIDTH)), MANTISSA)


@register_jitable
def aligned_zeros(size: int) -> Array:
    """Return a flat array of zeros that starts on a cache line, so that no register straddles two."""
    roomy = np.zeros(size + WIDTH, np.float64)
    skip = (64 - roomy.ctypes.data % 64) % 64 // 8
    return roomy[skip : skip + size]


@register_jitable
def padded(count: int) -> int:
    return (count + WIDTH - 1) // WIDTH * WIDTH
