"""Inner loops on whole registers: nearest centres, transposed tiles, and the product that counts in an E-step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

from softcount.kernels import Array, lanes
from softcount.kernels.jit import instruction, overload, register_jitable
from softcount.kernels.lanes import (
    DOUBLE,
    INT32,
    INT64,
    WIDTH,
    bytes_of,
    checked,
    folded,
    read,
    shuffled,
    spread,
    write,
)

BYTES = 64


def floats(array: Any) -> Any:
    """Return the array type. Raise TypingError if registers cannot be loaded from it."""
    if isinstance(array, types.Array) and array.layout == "C" and array.dtype in (types.float32, types.float64):
        return array
    raise TypingError(f"registers are loaded from C order float32 or float64 arrays, not {array}")


def lanes_in(number: Any) -> int:
    return BYTES // bytes_of(number)


def by_registers(builder: Any, columns: Any, width: int, step: Callable[[Any, Any], None]) -> None:
    """Call `step(at, count)` once per register of columns; `count` is None if the register is full."""
    whole = builder.mul(builder.sdiv(columns, ir.Constant(INT64, width)), ir.Constant(INT64, width))
    with cgutils.for_range_slice(builder, ir.Constant(INT64, 0), whole, ir.Constant(INT64, width)) as (at, _):
        step(at, None)
    rest = builder.sub(columns, whole)
    with builder.if_then(builder.icmp_signed(">", rest, ir.Constant(INT64, 0))):
        step(whole, rest)


def summed(builder: Any, columns: Any, vector: Any, term: Callable[[Any, Any], Any]) -> Any:
    """Sum the products of two registers, `term(at, count)`, over the columns."""
    total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * vector.count))

    def step(at: Any, count: Any) -> None:
        left, right = term(at, count)
        builder.store(builder.fadd(builder.fmul(left, right), builder.load(total)), total)

    by_registers(builder, columns, vector.count, step)
    return folded(builder, builder.load(total), builder.fadd)


def loader(builder: Any, array: Any, start: Any, width: int) -> Callable[[Any, Any], Any]:
    """Return a function that loads the register at a column of the row that begins at `start`."""
    base = builder.gep(array.data, [start])
    return lambda at, count: read(builder, builder.gep(base, [at]), width, count)


@instruction(
    lambda left, i, right, k, columns: left.dtype(floats(left), types.int64, floats(right), types.int64, types.int64)
)
def dot_rows(builder: Any, left: Any, i: Any, right: Any, k: Any, columns: Any) -> Any:
    """Return the dot product of row i of one array with row k of another of the same type, in their own precision."""
    number = left.data.type.pointee
    width = lanes_in(number)
    loads = [loader(builder, array, builder.mul(row, columns), width) for array, row in ((left, i), (right, k))]
    vector = ir.VectorType(number, width)
    return summed(builder, columns, vector, lambda at, count: [load(at, count) for load in loads])


def wide_loader(builder: Any, array: Any, start: Any) -> Callable[[Any, Any], Any]:
    """Return a function that loads eight numbers at a column of the row that begins at `start`, as float64."""
    load = loader(builder, array, start, 8)
    if array.data.type.pointee is DOUBLE:
        return load
    return lambda at, count: builder.fpext(load(at, count), ir.VectorType(DOUBLE, 8))


@instruction(
    lambda rows, i, centres, k, columns: types.float64(
        floats(rows), types.int64, floats(centres), types.int64, types.int64
    )
)
def apart(builder: Any, rows: Any, i: Any, centres: Any, k: Any, columns: Any) -> Any:
    """Return the squared distance of row i from centre k, by differences in float64."""
    row = wide_loader(builder, rows, builder.mul(i, columns))
    centre = wide_loader(builder, centres, builder.mul(k, columns))

    def square(at: Any, count: Any) -> Any:
        return [builder.fsub(row(at, count), centre(at, count))] * 2

    return summed(builder, columns, ir.VectorType(DOUBLE, 8), square)


@instruction(
    lambda sums, k, rows, i, weight: types.void(checked(sums), types.int64, floats(rows), types.int64, types.float64)
)
def add_row(builder: Any, sums: Any, k: Any, rows: Any, i: Any, weight: Any) -> None:
    """Add row i times a weight to line k of the float64 sums, which have the columns of the rows."""
    columns = builder.extract_value(rows.shape, 1)
    start = builder.mul(k, columns)
    row, total = wide_loader(builder, rows, builder.mul(i, columns)), wide_loader(builder, sums, start)
    base, heavy = builder.gep(sums.data, [start]), spread(builder, weight)

    def step(at: Any, count: Any) -> None:
        value = builder.fadd(builder.fmul(row(at, count), heavy), total(at, count))
        write(builder, builder.gep(base, [at]), value, count)

    by_registers(builder, columns, 8, step)


def transposed(builder: Any, lines: list[Any]) -> list[Any]:
    """Transpose a square of registers by swapping halves, then quarters, and so on."""
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
                    turned[target] = shuffled(builder, *pair, order)
        lines = turned
        steps *= 2
    return lines


AT_ONCE = 8
"""Number of rows compared with the centres together: sixteen addresses would not fit the sixteen address registers."""


def scores(builder: Any, bases: list[Any], block: Any, columns: Any) -> list[Any]:
    """Return one register per row: |centre|^2 / 2 - row . centre for each centre of the block."""
    if len(bases) > AT_ONCE:
        some, others = bases[:AT_ONCE], bases[AT_ONCE:]
        return scores(builder, some, block, columns) + scores(builder, others, block, columns)
    width = lanes_in(block.type.pointee)
    totals = [cgutils.alloca_once_value(builder, read(builder, block, width)) for _ in bases]
    with cgutils.for_range(builder, columns, intp=INT64) as loop:
        after = builder.mul(builder.add(loop.index, ir.Constant(INT64, 1)), ir.Constant(INT64, width))
        minus = read(builder, builder.gep(block, [after]), width)
        for base, total in zip(bases, totals, strict=True):
            value = spread(builder, builder.load(builder.gep(base, [loop.index])), width)
            builder.store(builder.fadd(builder.fmul(value, minus), builder.load(total)), total)
    return [builder.load(total) for total in totals]


def lesser(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def two_least(builder: Any, lines: list[Any]) -> tuple[Any, Any, Any]:
    """Return, lane by lane, the least of the lines, the second least, and the line of the least (first if equal)."""
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


def search_kinds(rows: Any, listed: Any, at: Any, packed: Any, out: Any, first: Any, stop: Any) -> Any:
    """Return the signature of the search below. Raise TypingError if the array types do not match."""
    if floats(packed).dtype != floats(rows).dtype or not isinstance(out, types.BaseTuple) or len(out) != 3:
        raise TypingError("rows and packed centres differ in type, or the answers are not three arrays")
    return types.void(rows, listed, types.int64, packed, out, types.int64, types.int64)


@instruction(search_kinds)
def nearest_centres(
    builder: Any, rows: Any, listed: Any, at: Any, packed: Any, out: Any, first: Any, stop: Any
) -> None:
    """Find the two lowest scores over some blocks of centres, and the centre of the lowest, for a register of rows.

    `listed[at:]` are row numbers. `packed` holds the blocks as returned by `nearest.packed`; those from `first` to
    `stop` are searched. `out` is (least, next, which), three flat arrays written from `at`.
    """
    number = rows.data.type.pointee
    width = lanes_in(number)
    one, wide = ir.Constant(INT64, 1), ir.Constant(INT64, width)
    columns = builder.sub(builder.extract_value(packed.shape, 1), one)
    span = builder.mul(builder.add(columns, one), wide)
    places = [builder.add(at, ir.Constant(INT64, lane)) for lane in range(width)]
    numbers = [builder.load(builder.gep(listed.data, [place])) for place in places]
    bases = [builder.gep(rows.data, [builder.mul(row, columns)]) for row in numbers]
    far = ir.Constant(ir.VectorType(number, width), [float("inf")] * width)
    nowhere = ir.Constant(ir.VectorType(INT32, width), None)
    kept = [cgutils.alloca_once_value(builder, value) for value in (far, far, nowhere)]
    with cgutils.for_range_slice(builder, first, stop, one) as (block, _):
        best, runner, choice = (builder.load(place) for place in kept)
        start = builder.gep(packed.data, [builder.mul(block, span)])
        least, following, which = two_least(builder, transposed(builder, scores(builder, bases, start, columns)))
        which = builder.add(which, spread(builder, builder.trunc(builder.mul(block, wide), INT32), width))
        below = builder.fcmp_ordered("<", least, best)
        loser = lesser(builder, builder.select(below, best, least), lesser(builder, runner, following))
        merged = builder.select(below, least, best), loser, builder.select(below, which, choice)
        for place, value in zip(kept, merged, strict=True):
            builder.store(value, place)
    for answer, place in zip(out, kept, strict=True):
        write(builder, builder.gep(answer.data, [at]), builder.load(place))


# -- transposed tiles: one line of memory per column, so that eight rows fill a register


@instruction(lambda rows, i, j, out, at: types.void(checked(rows), types.intp, types.intp, checked(out), types.intp))
def turn(builder: Any, rows: Any, i: Any, j: Any, out: Any, at: Any) -> None:
    """Write cells of eight rows from `i` and eight columns from `j` to lines `j` to `j + 7` of `out`, from `at`.

    Past the last row it is repeated; past the last column there are zeros.
    """
    height, width = (builder.extract_value(rows.shape, axis) for axis in (0, 1))
    length = builder.extract_value(out.shape, 1)
    last, left = builder.sub(height, ir.Constant(INT64, 1)), builder.sub(width, j)
    lines = []
    for step in range(WIDTH):
        row = builder.add(i, ir.Constant(INT64, step))
        row = builder.select(builder.icmp_signed("<", row, last), row, last)
        place = builder.add(builder.mul(row, width), j)
        lines.append(read(builder, builder.gep(rows.data, [place]), WIDTH, left))
    for step, line in enumerate(transposed(builder, lines)):
        place = builder.add(builder.mul(builder.add(j, ir.Constant(INT64, step)), length), at)
        write(builder, builder.gep(out.data, [place]), line)


def put_turned(rows: Any, start: int, stop: int, tile: Any) -> None:
    """Write the columns of rows `start` to `stop` as lines of `tile`. The last row is repeated to fill whole registers.

    `tile` has one line per column, and further lines up to a whole register, which stay zero.
    """
    raise NotImplementedError


@overload(put_turned)
def _put_turned(rows: Any, start: Any, stop: Any, tile: Any) -> Any:
    if isinstance(rows, types.Array) and rows.layout == "C" and rows.dtype == types.float64:
        return lambda rows, start, stop, tile: turn_all(rows[start:stop], tile)
    return lambda rows, start, stop, tile: copy_columns(rows, start, stop, tile)


@register_jitable
def turn_all(rows: Array, tile: Array) -> None:
    for i in range(0, rows.shape[0], WIDTH):
        for j in range(0, rows.shape[1], WIDTH):
            turn(rows, i, j, tile, i)


@register_jitable
def copy_columns(rows: Array, start: int, stop: int, tile: Array) -> None:
    """Copy column by column: row by row, columns a power of two apart would evict each other from the cache."""
    for j in range(rows.shape[1]):
        for i in range(stop - start):
            tile[j, i] = rows[start + i, j]
        for i in range(stop - start, lanes.padded(stop - start)):
            tile[j, i] = rows[stop - 1, j]


def ask_ahead(rows: Any, start: int, stop: int, part: int, parts: int) -> None:
    """Prefetch one of several parts of the next rows, `start` to `stop`; all at the same time would be too many.

    Scoring 1,000,000 x 50 under ten groups took 95 ms without prefetching and 64 ms with it. Arrays that are not in C
    order are left to the hardware, which predicts reads column by column.
    """
    raise NotImplementedError


@overload(ask_ahead)
def _ask_ahead(rows: Any, start: Any, stop: Any, part: Any, parts: Any) -> Any:
    if isinstance(rows, types.Array) and rows.layout == "C" and rows.dtype == types.float64:
        return lambda rows, start, stop, part, parts: ask_cells(rows, start, stop, part, parts)
    return lambda rows, start, stop, part, parts: None


@register_jitable
def ask_cells(rows: Array, start: int, stop: int, part: int, parts: int) -> None:
    first, registers = start * rows.shape[1], (stop - start) * rows.shape[1] // WIDTH
    for at in range(registers * part // parts, registers * (part + 1) // parts):
        lanes.prefetch_far(rows, first + at * WIDTH)


# -- the product of an E-step that counts a tile of rows: features x memberships

SIDE = 4
"""Lines on each side of a block."""


def placed(builder: Any, array: Any, line: Any, step: int, at: Any) -> Any:
    """Return a pointer to position `at` of line `line + step`."""
    length = builder.extract_value(array.shape, 1)
    start = builder.mul(builder.add(line, ir.Constant(INT64, step)), length)
    return builder.gep(array.data, [builder.add(start, at)])


def shifted(builder: Any, pointer: Any, numbers: int) -> Any:
    return builder.gep(pointer, [ir.Constant(INT64, numbers)])


def counting(height: int, width: int) -> Callable[..., None]:
    """Return an instruction that adds `height` features from `f` times the memberships of `width` groups from `g`."""

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
        held = [cgutils.alloca_once_value(builder, read(builder, end, WIDTH)) for end in ends]
        zero, step = ir.Constant(INT64, 0), ir.Constant(INT64, WIDTH)
        with cgutils.for_range_slice(builder, zero, builder.extract_value(features.shape, 1), step) as (at, _):
            left = [read(builder, placed(builder, features, f, a, at), WIDTH) for a in range(height)]
            right = [read(builder, placed(builder, joint, g, b, at), WIDTH) for b in range(width)]
            for place, (one, other) in zip(held, ((a, b) for a in left for b in right), strict=True):
                builder.store(builder.fadd(builder.fmul(one, other), builder.load(place)), place)
        for end, place in zip(ends, held, strict=True):
            write(builder, end, builder.load(place))

    return block


count_sixteen, count_down, count_along, count_one = (
    counting(SIDE, SIDE),
    counting(SIDE, 1),
    counting(1, SIDE),
    counting(1, 1),
)


@register_jitable
def add_counts(features: Array, joint: Array, sums: Array) -> None:
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
