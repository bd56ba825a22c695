"""Cells of a plain text table: numbers as float64, words as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from softcount.kernels import Array
from softcount.kernels.jit import instruction, jit
from softcount.kernels.lanes import DOUBLE, INT64, call_llvm, spread
from softcount.kernels.tokenise import (
    BYTE,
    BYTES,
    EVERY,
    LAST_BIT,
    ONE,
    WINDOW,
    address,
    byte,
    chunk,
    eight,
    learn_word,
    lowest,
)

# -- columns of integers as one-byte codes of categories

ABREAST = 32
"""Values packed into bytes together: 3.1 ms for 10,000,000 values.

LLVM's own loop took 7.0 ms; reading them takes 2.8.
"""
WIDE, NARROW = ir.VectorType(INT64, ABREAST), ir.VectorType(ir.IntType(8), ABREAST)


@instruction(lambda values, index, low, last, codes: types.int64(values, *[types.int64] * 3, codes))
def pack(builder: Any, values: Any, index: Any, low: Any, last: Any, codes: Any) -> Any:
    """Write the codes `value - low + 1` of 32 neighbours. Return a bit mask of values outside `low .. low + last`."""
    source, target = builder.gep(values.data, [index]), builder.gep(codes.data, [index])
    read = builder.load(builder.bitcast(source, ir.PointerType(WIDE)), align=8)
    step = builder.sub(read, spread(builder, low, ABREAST))
    code = builder.trunc(builder.add(step, ir.Constant(WIDE, [1] * ABREAST)), NARROW)
    builder.store(code, builder.bitcast(target, ir.PointerType(NARROW)), align=1)
    outside = builder.icmp_unsigned(">", step, spread(builder, last, ABREAST))
    return builder.zext(builder.bitcast(outside, ir.IntType(ABREAST)), INT64)


def recode_run(values: Array, low: int, size: int, codes: Array) -> bool:
    """Write the codes 1 .. size of the values. Return False if a value is outside `low .. low + size - 1`.

    A single flat loop without a table lookup, as fast as reading memory.
    """
    return bool((recode_run_64 if values.dtype == np.int64 else recode_run_any)(values, low, size, codes))


@jit()
def recode_run_64(values: Any, low: Any, size: Any, codes: Any) -> Any:
    """Write the codes of int64 values, `ABREAST` at a time; see `recode_run`."""
    outside = np.int64(0)
    whole = values.size // ABREAST * ABREAST
    for i in range(0, whole, ABREAST):
        outside |= pack(values, i, low, size - 1, codes)
    return outside == 0 and recode_run_any(values[whole:], low, size, codes[whole:])


@jit()
def recode_run_any(values: Any, low: Any, size: Any, codes: Any) -> Any:
    """Write the codes of integers of any type, one at a time; see `recode_run`."""
    furthest = np.uint64(0)
    for i in range(values.size):
        step = np.uint64(np.int64(values[i]) - low)
        codes[i] = np.uint8(step + np.uint64(1))
        furthest = max(furthest, step)
    return furthest < np.uint64(size)


@jit()
def recode_table(block: Any, columns: Any, low: Any, tables: Any, codes: Any) -> Any:
    """Write the codes `tables[j, value - low[j]]`. Return whether every value has one (a code above 0).

    The last entry of a table stands for all values beyond it.
    """
    beyond = np.uint64(tables.shape[1] - 1)
    least = np.uint8(255)
    for i in range(block.shape[0]):
        for j in range(columns.size):
            step = min(np.uint64(np.int64(block[i, columns[j]]) - low[j]), beyond)
            code = tables[j, step]
            codes[i, j] = code
            least = min(least, code)
    return least > 0


# -- cells of a text table: numbers as float64, words as the number of their first occurrence

SKIP, NUMBER, PADDED, LEVEL = 0, 1, 2, 3
"""How to read a column: not at all, as numbers, as numbers with leading zeros such as 007, or as categories."""

NEWLINE, RETURN, QUOTE, MINUS, PLUS, POINT, NOUGHT, LETTER_E = 10, 13, 34, 45, 43, 46, 48, 101
LOW, HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
CELLS, MOST_LEVELS, STORE = 4_096, 2_048, 1 << 17
"""Slots of a column's hash table per piece, its maximum number of categories, and of their bytes."""
MOST_DIGITS, MOST_POWER, MOST_WRITTEN = 19, 22, 4
"""Digits that 64 bits hold, the largest power of ten that float64 holds exactly, and the digits of an exponent."""
EXACT = np.uint64(1 << 53)
TENS = np.array([10.0**power for power in range(MOST_POWER + 1)])
NEARLY = 1.0 + 2.0**-30

compiled = jit(error_model="numpy")
inlined = jit(error_model="numpy", forceinline=True)


@instruction(types.float64(types.float64, types.float64, types.float64))
def product_and_sum(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""
    return call_llvm(builder, "llvm.fma.f64", DOUBLE, [a, b, c])


@instruction(types.uint64(types.int64, types.int64))
def equal_bits(builder: Any, at: Any, letter: Any) -> Any:
    """Return a mask of the bytes, out of 64, that are equal to this letter."""
    read = builder.load(builder.inttoptr(at, ir.PointerType(BYTES)), align=1)
    same = builder.icmp_unsigned("==", read, spread(builder, builder.trunc(letter, BYTE), WINDOW))
    return builder.bitcast(same, INT64)


# -- ends of rows


@inlined
def letter_bits(at: Any, left: Any, letter: Any) -> Any:
    """Return `equal_bits` of the remaining bytes, computed byte by byte if they are fewer than 64."""
    if left >= WINDOW:
        return equal_bits(at, letter)
    bits = np.uint64(0)
    for i in range(left):
        bits |= np.uint64(byte(at + i) == letter) << np.uint64(i)
    return bits


@compiled
def mark_rows(letters: Any, delimiter: Any, ends: Any) -> Any:
    """Return the number of rows and whether a quote stays open. `ends` gets the positions just past the rows.

    Return -1 as the number if there is a lone carriage return, or if a quote opens inside a cell.
    """
    start, size, found = address(letters), letters.size, 0
    inside, opens, returned = np.uint64(0), ONE, False
    for at in range(0, size, WINDOW):
        left = size - at
        lines = letter_bits(start + at, left, NEWLINE)
        quotes = letter_bits(start + at, left, QUOTE)
        returns = letter_bits(start + at, left, RETURN)
        if (returned and not lines & ONE) or (returns & ~(lines >> ONE)) << ONE:
            return -1, False
        returned = (returns >> LAST_BIT) != 0
        if quotes or inside:
            bits = quotes
            for step in (1, 2, 4, 8, 16, 32):
                bits ^= bits << np.uint64(step)
            within = bits ^ inside
            before = letter_bits(start + at, left, delimiter) | lines | returns | quotes
            if quotes & within & ~((before << ONE) | opens):
                return -1, False
            opens = before >> LAST_BIT
            inside = EVERY if within >> LAST_BIT else np.uint64(0)
            lines &= ~within
        elif left > WINDOW:
            last = byte(start + at + WINDOW - 1)
            opens = np.uint64(last in (delimiter, NEWLINE, RETURN))
        while lines:
            ends[found] = at + lowest(lines) + 1
            found += 1
            lines &= lines - ONE
    if returned:
        return -1, False
    return found, inside != 0


# -- numbers


@inlined
def spelt(mantissa: Any, power: Any) -> Any:
    """Return the float64 nearest to an integer times a power of ten; NaN if that is uncertain."""
    if power < -MOST_POWER or power > MOST_POWER:
        return np.nan
    first = np.float64(mantissa)
    if mantissa <= EXACT:
        return first * TENS[power] if power >= 0 else first / TENS[-power]
    # Twice the digits of a float64: correct unless the value lies almost half way between two float64 numbers.
    rest = np.float64(np.int64(mantissa - np.uint64(first)))
    if power >= 0:
        nearest = first * TENS[power]
        more = product_and_sum(first, TENS[power], -nearest) + rest * TENS[power]
    else:
        nearest = first / TENS[-power]
        more = (product_and_sum(-nearest, TENS[-power], first) + rest) / TENS[-power]
    found = nearest + more
    over = more - (found - nearest)
    return found if found + over * NEARLY == found else np.nan


@inlined
def significant(at: Any, stop: Any) -> Any:
    digits = 0
    for i in range(at, stop):
        letter = byte(i)
        if letter != POINT and (digits or letter != NOUGHT):
            digits += 1
    return digits


@inlined
def digits_at(at: Any, mantissa: Any) -> Any:
    """Append digits to an integer. Return it and the end of the digits."""
    digit = byte(at) - NOUGHT
    while 0 <= digit <= 9:
        mantissa = mantissa * np.uint64(10) + np.uint64(digit)
        at += 1
        digit = byte(at) - NOUGHT
    return mantissa, at


@inlined
def exponent_at(at: Any) -> Any:
    """Return the exponent after an e and its end. The exponent is too large to be used if there are no digits."""
    sign = byte(at)
    begun = at + (sign == MINUS or sign == PLUS)  # noqa: SIM109  # a tuple takes longer
    power, stop = digits_at(begun, np.uint64(0))
    if not 0 < stop - begun <= MOST_WRITTEN:
        return MOST_POWER + MOST_DIGITS + 1, stop
    return -np.int64(power) if sign == MINUS else np.int64(power), stop


@inlined
def number_at(at: Any, padded: Any) -> Any:
    """Return a plain number and its end; NaN if there is no plain number."""
    letter = byte(at)
    begun = at + (letter == MINUS or letter == PLUS)  # noqa: SIM109  # a tuple takes longer
    mantissa, stop = digits_at(begun, np.uint64(0))
    whole, power = stop - begun, 0
    if whole > 1 and not padded and byte(begun) == NOUGHT:
        return np.nan, stop
    if byte(stop) == POINT:
        point = stop + 1
        mantissa, stop = digits_at(point, mantissa)
        power = point - stop
    if whole == power or (stop - begun > MOST_DIGITS and significant(begun, stop) > MOST_DIGITS):
        return np.nan, stop
    if byte(stop) | 32 == LETTER_E:
        exponent, stop = exponent_at(stop + 1)
        power += exponent
    found = spelt(mantissa, power)
    return -found if letter == MINUS else found, stop


# -- cells


@inlined
def marked(read: Any, letter: Any) -> Any:
    """Set the highest bit of each of eight bytes that is this letter.

    Bytes after the first match may be set wrongly.
    """
    other = read ^ (LOW * np.uint64(letter))
    return (other - LOW) & ~other & HIGH


@inlined
def text_end(at: Any, limit: Any, delimiter: Any, quoted: Any) -> Any:
    """Return the end of a cell's text: the closing quote if quoted, else a delimiter, a line end or a quote."""
    while at < limit:
        read = eight(at)
        hits = marked(read, QUOTE)
        if not quoted:
            hits |= marked(read, delimiter) | marked(read, NEWLINE) | marked(read, RETURN)
        if hits:
            return at + (lowest(hits) >> 3)
        at += 8
    return limit


@compiled
def missing_end(at: Any, limit: Any, delimiter: Any, quoted: Any, words: Any) -> Any:
    """Return the end of a cell that is one of the words for a missing value (at most seven bytes each), else 0."""
    stop = text_end(at, limit, delimiter, quoted)
    if stop - at < 8:
        read = chunk(at, stop, stop + 8) if stop > at else np.uint64(0)  # eight bytes follow the last row
        for word in words:
            if read == word:
                return stop
    return 0


@inlined
def next_cell(at: Any, limit: Any, quoted: Any, wanted: Any) -> Any:
    """Return the start of the next cell, or 0 unless this one, whose text ends at `at`, is followed by `wanted`."""
    if quoted:
        if at >= limit or byte(at) != QUOTE:
            return 0
        at += 1
    if at < limit and wanted == NEWLINE and byte(at) == RETURN:
        at += 1
    return at + 1 if at < limit and byte(at) == wanted else 0


@inlined
def row_after(at: Any, row: Any, limit: Any, delimiter: Any, kinds: Any, words: Any, room: Any) -> Any:
    """Read one row. Return the start of the next row, or 0 if this one is not plain."""
    reals, codes, tables, stores, offsets, met = room
    real = coded = 0
    for column in range(kinds.size):
        kind, quoted = kinds[column], byte(at) == QUOTE
        at += quoted
        if kind in (NUMBER, PADDED):
            value, stop = number_at(at, kind == PADDED)
            if value != value:
                stop = missing_end(at, limit, delimiter, quoted, words)
                if not stop:
                    return 0
            reals[real, row] = value
            real += 1
        else:
            stop = text_end(at, limit, delimiter, quoted)
        if kind == LEVEL:
            used, store = offsets[coded, met[coded]], address(stores) + STORE * coded
            places = address(offsets) + 8 * (MOST_LEVELS + 1) * coded
            if used + stop - at > STORE:
                return 0
            book = address(tables) + 16 * CELLS * coded, CELLS - 1, store, store + STORE, places
            # at least eight bytes follow a cell
            codes[coded, row], met[coded], _ = learn_word(at, stop, stop + 8, book, met[coded], used, EVERY)
            if met[coded] == MOST_LEVELS:
                return 0
            coded += 1
        at = next_cell(stop, limit, quoted, delimiter if column < kinds.size - 1 else NEWLINE)
        if not at:
            return 0
    return at


@compiled
def read_cells(letters: Any, rows: Any, delimiter: Any, kinds: Any, words: Any, room: Any) -> Any:
    """Read `rows` rows, the last of which ends with a newline. Return whether all are plain and no others follow.

    After the last row `letters` has eight more bytes, which may be read but do not belong to it. `kinds` holds how to
    read each column, and `words` the words for a missing number. `room` holds one line for every column of numbers and
    of categories, the hash tables of the categories, their bytes, where each begins, and how many there are.
    """
    at = address(letters)
    limit = at + letters.size - 8
    for row in range(rows):
        if at >= limit:
            return False
        at = row_after(at, row, limit, delimiter, kinds, words, room)
        if not at:
            return False
    return at == limit
