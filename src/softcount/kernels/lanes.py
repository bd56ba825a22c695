"""Eight float64 numbers in one register, for Numba kernels.

LLVM's own vectoriser gives up on most of our loops (short ones, or ones that may alias) and prefers half registers
where it does not: counting 1,000,000 x 50 reals took 52 ms in a plain loop and 31 ms here, the time of reading them.
Every operation below is one LLVM vector instruction, split by LLVM on machines with narrower registers.

Arrays are C order float64 and are addressed by a flat index. Numba caches a kernel by its own file only: after a change
here or in `pairs.py`, delete the `__pycache__` of this package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_jitable, register_model

WIDTH = 8
"""How many numbers a register holds."""

fused = njit(nogil=True, cache=True, fastmath={"contract", "nsz"}, error_model="numpy")
"""Compile a kernel: products and sums may fuse, sums are never reordered."""

INT32, INT64, DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
VECTOR = ir.VectorType(DOUBLE, WIDTH)
INTEGERS = ir.VectorType(INT64, WIDTH)
MASK = ir.VectorType(ir.IntType(1), WIDTH)
ZEROS = ir.Constant(VECTOR, [0.0] * WIDTH)
ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the nearest integer in the low bits of a double
SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(0.5)


class LanesType(types.Type):
    """The Numba type of eight numbers."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


lanes = LanesType()


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """Eight numbers are one LLVM vector."""

    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, VECTOR)


def checked(array: Any) -> Any:
    """The array's type, refused when a flat index would read something else than the numbers meant."""
    if not isinstance(array, types.Array) or array.dtype != types.float64 or array.layout != "C":
        raise TypingError(f"lanes are loaded from C order float64 arrays, not {array}")
    return array


def address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """A pointer to eight numbers starting at a flat index."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.PointerType(VECTOR))


def spread(builder: Any, value: Any, vector: Any) -> Any:
    """One number in every lane."""
    blank = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(blank, value, ir.Constant(INT32, 0))
    return builder.shuffle_vector(one, blank, ir.Constant(ir.VectorType(INT32, WIDTH), [0] * WIDTH))


def leading(builder: Any, count: Any) -> Any:
    """A mask of the first `count` lanes; all of them from eight up."""
    return builder.icmp_signed("<", ir.Constant(INTEGERS, list(range(WIDTH))), spread(builder, count, INTEGERS))


def call_llvm(builder: Any, name: str, returns: Any, arguments: list[Any]) -> Any:
    """A call of an LLVM intrinsic by its full name."""
    kind = ir.FunctionType(returns, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """Eight neighbours."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(address(context, builder, signature.args[0], *args), align=8)

    return lanes(checked(array), types.intp), emit


@intrinsic
def load_part(typing: Any, array: Any, index: Any, count: Any) -> Any:
    """The first `count` of eight neighbours, zeros after them; memory beyond is not touched."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = address(context, builder, signature.args[0], args[0], args[1])
        mask = leading(builder, args[2])
        return call_llvm(builder, "llvm.masked.load.v8f64.p0", VECTOR, [pointer, ir.Constant(INT32, 8), mask, ZEROS])

    return lanes(checked(array), types.intp, types.intp), emit


@intrinsic
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write eight neighbours."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], address(context, builder, signature.args[0], args[0], args[1]), align=8)
        return context.get_dummy_value()

    return types.void(checked(array), types.intp, lanes), emit


@intrinsic
def store_part(typing: Any, array: Any, index: Any, value: Any, count: Any) -> Any:
    """Write the first `count` of eight neighbours and leave the others alone."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = address(context, builder, signature.args[0], args[0], args[1])
        arguments = [args[2], pointer, ir.Constant(INT32, 8), leading(builder, args[3])]
        call_llvm(builder, "llvm.masked.store.v8f64.p0", ir.VoidType(), arguments)
        return context.get_dummy_value()

    return types.void(checked(array), types.intp, lanes, types.intp), emit


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for memory that will be read soon; an index past the end is harmless."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = address(context, builder, signature.args[0], *args)
        flags = [ir.Constant(INT32, flag) for flag in (0, 3, 1)]  # to read, keep in every cache, data
        call_llvm(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer, *flags])
        return context.get_dummy_value()

    return types.void(checked(array), types.intp), emit


@intrinsic
def fill(typing: Any, value: Any) -> Any:
    """One number in all eight lanes."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return spread(builder, args[0], VECTOR)

    return lanes(types.float64), emit


@intrinsic
def add(typing: Any, a: Any, b: Any) -> Any:
    """a + b."""
    return lanes(lanes, lanes), lambda context, builder, signature, args: builder.fadd(*args)


@intrinsic
def sub(typing: Any, a: Any, b: Any) -> Any:
    """a - b."""
    return lanes(lanes, lanes), lambda context, builder, signature, args: builder.fsub(*args)


@intrinsic
def mul(typing: Any, a: Any, b: Any) -> Any:
    """a * b."""
    return lanes(lanes, lanes), lambda context, builder, signature, args: builder.fmul(*args)


@intrinsic
def div(typing: Any, a: Any, b: Any) -> Any:
    """a / b."""
    return lanes(lanes, lanes), lambda context, builder, signature, args: builder.fdiv(*args)


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, in one rounding where the machine can."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(builder.fmul(args[0], args[1]), args[2])

    return lanes(lanes, lanes, lanes), emit


@intrinsic
def larger(typing: Any, a: Any, b: Any) -> Any:
    """The larger of each two."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return lanes(lanes, lanes), emit


@intrinsic
def where_present(typing: Any, cell: Any, value: Any) -> Any:
    """The value, or zero where the cell is missing (NaN)."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("ord", args[0], args[0]), args[1], ZEROS)

    return lanes(lanes, lanes), emit


@intrinsic
def where_above(typing: Any, a: Any, b: Any, value: Any) -> Any:
    """The value, or zero where a is not above b."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], ZEROS)

    return lanes(lanes, lanes, lanes), emit


@intrinsic
def where_leading(typing: Any, count: Any, a: Any, b: Any) -> Any:
    """a in the first `count` lanes, b in the others."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(leading(builder, args[0]), args[1], args[2])

    return lanes(types.intp, lanes, lanes), emit


def folded(builder: Any, value: Any, combine: Any) -> Any:
    """One number from eight: halves, quarters and neighbours combined in that fixed order."""
    for steps in (4, 2, 1):
        order = ir.Constant(ir.VectorType(INT32, WIDTH), [(lane + steps) % WIDTH for lane in range(WIDTH)])
        value = combine(value, builder.shuffle_vector(value, value, order))
    return builder.extract_element(value, ir.Constant(INT32, 0))


@intrinsic
def sum_of(typing: Any, value: Any) -> Any:
    """The sum of the eight lanes."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return folded(builder, args[0], builder.fadd)

    return types.float64(lanes), emit


@intrinsic
def largest_of(typing: Any, value: Any) -> Any:
    """The largest of the eight lanes."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return folded(builder, args[0], lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))

    return types.float64(lanes), emit


@intrinsic
def times_power(typing: Any, value: Any, rounded: Any) -> Any:
    """The value times two to the integer held in the low bits of `rounded` (a number plus ROUNDER)."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits, power = (builder.bitcast(arg, INTEGERS) for arg in args)
        shifted = builder.shl(power, ir.Constant(INTEGERS, [52] * WIDTH))
        return builder.bitcast(builder.add(bits, shifted), VECTOR)

    return lanes(lanes, lanes), emit


@intrinsic
def power_part(typing: Any, value: Any) -> Any:
    """The integer k, as a number, with value = 2**k * rest and rest in [sqrt(0.5), sqrt(2))."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        power = _power(builder, builder.bitcast(args[0], INTEGERS))
        return builder.sitofp(power, VECTOR)

    return lanes(lanes), emit


@intrinsic
def rest_part(typing: Any, value: Any) -> Any:
    """The rest that `power_part` leaves."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], INTEGERS)
        shifted = builder.shl(_power(builder, bits), ir.Constant(INTEGERS, [52] * WIDTH))
        return builder.bitcast(builder.sub(bits, shifted), VECTOR)

    return lanes(lanes), emit


def _power(builder: Any, bits: Any) -> Any:
    above = builder.sub(bits, ir.Constant(INTEGERS, [SQRT_HALF] * WIDTH))
    return builder.ashr(above, ir.Constant(INTEGERS, [52] * WIDTH))


@register_jitable
def aligned_zeros(size: int) -> np.ndarray:
    """A flat array of zeros that starts on a cache line, so that no register straddles two."""
    roomy = np.zeros(size + WIDTH, np.float64)
    skip = (64 - roomy.ctypes.data % 64) % 64 // 8
    return roomy[skip : skip + size]


@register_jitable
def padded(count: int) -> int:
    """The count rounded up to whole registers."""
    return (count + WIDTH - 1) // WIDTH * WIDTH
