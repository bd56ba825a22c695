"""One register of float32 or float64 numbers at a time: the inner loops of finding the nearest centre.

A register is 64 bytes: sixteen float32 or eight float64 numbers. What `lanes` offers singly is put together here, as
whole loops over the columns, because sixteen sums have to stay in registers while the columns pass by.
Numba caches a kernel by its own file only: after a change here, delete the `__pycache__` of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from softcount.kernels.lanes import call_llvm

BYTES = 64
INT32, INT64, DOUBLE, FLOAT = ir.IntType(32), ir.IntType(64), ir.DoubleType(), ir.FloatType()


def width_of(itemsize: int) -> int:
    """How many numbers of so many bytes fill a register.

    >>> width_of(4), width_of(8)
    (16, 8)
    """
    return BYTES // itemsize


def cell(array: Any) -> Any:
    """The LLVM type of an array's numbers; other arrays than C order float32 or float64 are refused."""
    if isinstance(array, types.Array) and array.layout == "C":
        if array.dtype == types.float32:
            return FLOAT
        if array.dtype == types.float64:
            return DOUBLE
    raise TypingError(f"registers are loaded from C order float32 or float64 arrays, not {array}")


def lanes_in(number: Any) -> int:
    return width_of(4 if number is FLOAT else 8)


def data_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def fill(builder: Any, value: Any, width: int) -> Any:
    """One number in every lane."""
    vector = ir.VectorType(value.type, width)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(INT32, 0))
    nowhere = ir.Constant(vector, ir.Undefined)
    return builder.shuffle_vector(one, nowhere, ir.Constant(ir.VectorType(INT32, width), [0] * width))


def load_all(builder: Any, pointer: Any, number: Any, width: int) -> Any:
    vector = ir.VectorType(number, width)
    return builder.load(builder.bitcast(pointer, ir.PointerType(vector)), align=4 if number is FLOAT else 8)


def load_some(builder: Any, pointer: Any, number: Any, width: int, count: Any) -> Any:
    """The first `count` of `width` neighbours, zeros after them; memory beyond is not touched."""
    vector = ir.VectorType(number, width)
    name = f"llvm.masked.load.v{width}{'f32' if number is FLOAT else 'f64'}.p0"
    align = ir.Constant(INT32, 4 if number is FLOAT else 8)
    zeros = ir.Constant(vector, [0.0] * width)
    place = builder.bitcast(pointer, ir.PointerType(vector))
    return call_llvm(builder, name, vector, [place, align, _leading(builder, width, count), zeros])


def _leading(builder: Any, width: int, count: Any) -> Any:
    places = ir.Constant(ir.VectorType(INT64, width), list(range(width)))
    return builder.icmp_signed("<", places, fill(builder, count, width))


def store_all(builder: Any, pointer: Any, value: Any) -> None:
    align = 4 if value.type.element in (FLOAT, INT32) else 8
    builder.store(value, builder.bitcast(pointer, ir.PointerType(value.type)), align=align)


def store_some(builder: Any, pointer: Any, value: Any, count: Any) -> None:
    """Write the first `count` lanes of float64 numbers."""
    width = value.type.count
    place = builder.bitcast(pointer, ir.PointerType(value.type))
    arguments = [value, place, ir.Constant(INT32, 8), _leading(builder, width, count)]
    call_llvm(builder, f"llvm.masked.store.v{width}f64.p0", ir.VoidType(), arguments)


def folded(builder: Any, value: Any) -> Any:
    """The sum of the lanes: halves, quarters and so on, in that fixed order."""
    width = value.type.count
    steps = width // 2
    while steps:
        order = [(lane + steps) % width for lane in range(width)]
        moved = builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(INT32, width), order))
        value = builder.fadd(value, moved)
        steps //= 2
    return builder.extract_element(value, ir.Constant(INT32, 0))


def by_registers(builder: Any, columns: Any, width: int, step: Callable[[Any, Any], None]) -> None:
    """Call `step(at, count)` once per register of columns; `count` is None where the register is full."""
    whole = builder.mul(builder.sdiv(columns, ir.Constant(INT64, width)), ir.Constant(INT64, width))
    with cgutils.for_range_slice(builder, ir.Constant(INT64, 0), whole, ir.Constant(INT64, width)) as (at, _):
        step(at, None)
    rest = builder.sub(columns, whole)
    with builder.if_then(builder.icmp_signed(">", rest, ir.Constant(INT64, 0))):
        step(whole, rest)


def summed(builder: Any, columns: Any, number: Any, width: int, term: Callable[[Any, Any], Any]) -> Any:
    """The sum over the columns of `term(at, count)`, a pair of registers to multiply."""
    vector = ir.VectorType(number, width)
    total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * width))

    def step(at: Any, count: Any) -> None:
        left, right = term(at, count)
        builder.store(builder.fadd(builder.fmul(left, right), builder.load(total)), total)

    by_registers(builder, columns, width, step)
    return folded(builder, builder.load(total))


def loader(builder: Any, base: Any, number: Any, width: int) -> Callable[[Any, Any], Any]:
    """A function that loads the register of columns at a place of a row."""

    def load(at: Any, count: Any) -> Any:
        pointer = builder.gep(base, [at])
        if count is None:
            return load_all(builder, pointer, number, width)
        return load_some(builder, pointer, number, width, count)

    return load


@intrinsic
def dot_rows(typing: Any, left: Any, i: Any, right: Any, k: Any, columns: Any) -> Any:
    """The product of row i of one array with row k of another, in their own precision."""
    number = cell(left)
    if cell(right) is not number:
        raise TypingError("rows and centres differ in type")

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        width, columns = lanes_in(number), args[4]
        loads = [
            loader(
                builder, builder.gep(data_of(context, builder, kind, array), [builder.mul(row, columns)]), number, width
            )
            for kind, array, row in ((left, args[0], args[1]), (right, args[2], args[3]))
        ]
        return summed(builder, columns, number, width, lambda at, count: tuple(load(at, count) for load in loads))

    return left.dtype(left, types.int64, right, types.int64, types.int64), emit


def wide_loader(context: Any, builder: Any, kind: Any, array: Any, start: Any) -> Callable[[Any, Any], Any]:
    """As `loader`, always eight numbers, made float64."""
    number = cell(kind)
    base = builder.gep(data_of(context, builder, kind, array), [start])
    load = loader(builder, base, number, 8)
    if number is DOUBLE:
        return load
    return lambda at, count: builder.fpext(load(at, count), ir.VectorType(DOUBLE, 8))


@intrinsic
def apart(typing: Any, rows: Any, i: Any, centres: Any, k: Any, columns: Any) -> Any:
    """Squared distance of row i from centre k, by differences in float64."""
    cell(rows), cell(centres)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        columns = args[4]
        row = wide_loader(context, builder, rows, args[0], builder.mul(args[1], columns))
        centre = wide_loader(context, builder, centres, args[2], builder.mul(args[3], columns))

        def square(at: Any, count: Any) -> Any:
            difference = builder.fsub(row(at, count), centre(at, count))
            return difference, difference

        return summed(builder, columns, DOUBLE, 8, square)

    return types.float64(rows, types.int64, centres, types.int64, types.int64), emit


@intrinsic
def add_row(typing: Any, sums: Any, k: Any, rows: Any, i: Any, weight: Any) -> Any:
    """Add row i times a weight to line k of the float64 sums, which has as many columns as rows have."""
    if cell(sums) is not DOUBLE:
        raise TypingError("sums are float64")
    cell(rows)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        shape = context.make_array(rows)(context, builder, args[2]).shape
        columns = builder.extract_value(shape, 1)
        row = wide_loader(context, builder, rows, args[2], builder.mul(args[3], columns))
        start = builder.mul(args[1], columns)
        total = wide_loader(context, builder, sums, args[0], start)
        base = builder.gep(data_of(context, builder, sums, args[0]), [start])
        weight = fill(builder, args[4], 8)

        def step(at: Any, count: Any) -> None:
            value = builder.fadd(builder.fmul(row(at, count), weight), total(at, count))
            if count is None:
                store_all(builder, builder.gep(base, [at]), value)
            else:
                store_some(builder, builder.gep(base, [at]), value, count)

        by_registers(builder, columns, 8, step)
        return context.get_dummy_value()

    return types.void(sums, types.int64, rows, types.int64, types.float64), emit


def transposed(builder: Any, lines: list[Any]) -> list[Any]:
    """A square of registers turned over: swaps of halves, quarters and so on."""
    width = len(lines)
    steps = 1
    while steps < width:
        keep = [lane if lane & steps == 0 else width + (lane ^ steps) for lane in range(width)]
        other = [lane | steps if lane & steps == 0 else width + lane for lane in range(width)]
        turned = list(lines)
        for place in range(width):
            if place & steps == 0:
                pair = lines[place], lines[place | steps]
                for target, order in ((place, keep), (place | steps, other)):
                    mask = ir.Constant(ir.VectorType(INT32, width), order)
                    turned[target] = builder.shuffle_vector(*pair, mask)
        lines = turned
        steps *= 2
    return lines


AT_ONCE = 8
"""Rows that pass the centres together: sixteen addresses do not fit the sixteen registers there are for them."""


def scores(builder: Any, bases: list[Any], block: Any, columns: Any, number: Any) -> list[Any]:
    """One register per row: |centre|^2 / 2 - row . centre for each centre of the block."""
    if len(bases) > AT_ONCE:
        some, others = bases[:AT_ONCE], bases[AT_ONCE:]
        return scores(builder, some, block, columns, number) + scores(builder, others, block, columns, number)
    width = lanes_in(number)
    totals = [cgutils.alloca_once_value(builder, load_all(builder, block, number, width)) for _ in bases]
    with cgutils.for_range(builder, columns, intp=INT64) as loop:
        after = builder.mul(builder.add(loop.index, ir.Constant(INT64, 1)), ir.Constant(INT64, width))
        minus = load_all(builder, builder.gep(block, [after]), number, width)
        for base, total in zip(bases, totals, strict=True):
            value = fill(builder, builder.load(builder.gep(base, [loop.index])), width)
            builder.store(builder.fadd(builder.fmul(value, minus), builder.load(total)), total)
    return [builder.load(total) for total in totals]


def lesser(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def two_least(builder: Any, lines: list[Any]) -> tuple[Any, Any, Any]:
    """Lane by lane over the lines: the least, the next, and the line where the least is (the first of equals)."""
    width = len(lines)
    least, which = lines[0], ir.Constant(ir.VectorType(INT32, width), [0] * width)
    following = ir.Constant(lines[0].type, [float("inf")] * width)
    for place, line in enumerate(lines[1:], start=1):
        below = builder.fcmp_ordered("<", line, least)
        loser = builder.select(below, least, line)
        following = lesser(builder, loser, following)
        least = builder.select(below, line, least)
        which = builder.select(below, ir.Constant(which.type, [place] * width), which)
    return least, following, which


def addresses(builder: Any, data: Any, numbers: Any, columns: Any, width: int) -> list[Any]:
    """Where the rows begin whose numbers are listed."""
    listed = [builder.load(builder.gep(numbers, [ir.Constant(INT64, lane)])) for lane in range(width)]
    return [builder.gep(data, [builder.mul(row, columns)]) for row in listed]


class Emitter:
    """The listed rows, the packed blocks and the place for answers of one call, as LLVM values."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        rows, listed, _, packed, out, *_ = signature.args
        self.builder, self.number = builder, cell(rows)
        self.width = lanes_in(self.number)
        shape = context.make_array(packed)(context, builder, args[3]).shape
        self.blocks = builder.extract_value(shape, 0)
        self.columns = builder.sub(builder.extract_value(shape, 1), ir.Constant(INT64, 1))
        numbers = builder.gep(data_of(context, builder, listed, args[1]), [args[2]])
        data = data_of(context, builder, rows, args[0])
        self.bases = addresses(builder, data, numbers, self.columns, self.width)
        self.packed = data_of(context, builder, packed, args[3])
        self.targets = [
            builder.gep(data_of(context, builder, kind, builder.extract_value(args[4], place)), [args[2]])
            for place, kind in enumerate(out.types)
        ]

    def two_least(self, block: Any) -> tuple[Any, Any, Any]:
        """The two least scores of each row in a block, and where the least is."""
        span = self.builder.mul(self.builder.add(self.columns, ir.Constant(INT64, 1)), ir.Constant(INT64, self.width))
        start = self.builder.gep(self.packed, [self.builder.mul(block, span)])
        lines = scores(self.builder, self.bases, start, self.columns, self.number)
        return two_least(self.builder, transposed(self.builder, lines))

    def put(self, values: tuple[Any, Any, Any]) -> None:
        for target, value in zip(self.targets, values, strict=True):
            store_all(self.builder, target, value)


def checked(rows: Any, packed: Any, out: Any) -> None:
    if cell(packed) is not cell(rows) or not isinstance(out, types.BaseTuple) or len(out) != 3:
        raise TypingError("rows and packed centres differ in type, or the answers are not three arrays")


@intrinsic
def nearest_in_block(typing: Any, rows: Any, listed: Any, at: Any, packed: Any, out: Any, block: Any) -> Any:
    """The two least scores in one block of centres, and where the least is, of a register's worth of listed rows.

    `listed[at:]` are row numbers; `packed` holds the blocks as `nearest.packed` makes them; `out` is (least, next,
    which), three flat arrays written from `at` on.
    """
    checked(rows, packed, out)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emitter = Emitter(context, builder, signature, args)
        emitter.put(emitter.two_least(args[5]))
        return context.get_dummy_value()

    return types.void(rows, listed, types.int64, packed, out, types.int64), emit


@intrinsic
def nearest_of_all(typing: Any, rows: Any, listed: Any, at: Any, packed: Any, out: Any) -> Any:
    """As `nearest_in_block`, over all blocks; `which` counts through them."""
    checked(rows, packed, out)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emitter = Emitter(context, builder, signature, args)
        places = ir.VectorType(INT32, emitter.width)
        far = ir.Constant(ir.VectorType(emitter.number, emitter.width), [float("inf")] * emitter.width)
        kept = [cgutils.alloca_once_value(builder, value) for value in (far, far, ir.Constant(places, None))]
        with cgutils.for_range(builder, emitter.blocks, intp=INT64) as loop:
            best, runner, choice = (builder.load(place) for place in kept)
            least, following, which = emitter.two_least(loop.index)
            first = builder.trunc(builder.mul(loop.index, ir.Constant(INT64, emitter.width)), INT32)
            which = builder.add(which, fill(builder, first, emitter.width))
            below = builder.fcmp_ordered("<", least, best)
            loser = lesser(builder, builder.select(below, best, least), lesser(builder, runner, following))
            merged = builder.select(below, least, best), loser, builder.select(below, which, choice)
            for place, value in zip(kept, merged, strict=True):
                builder.store(value, place)
        best, runner, choice = (builder.load(place) for place in kept)
        emitter.put((best, runner, choice))
        return context.get_dummy_value()

    return types.void(rows, listed, types.int64, packed, out), emit
