"""Words found in UTF-8 bytes, 64 at a time, and numbered by a hash table.

A word of up to eight bytes is its own key in the table, so that meeting it again touches one cache line and no bytes;
a longer one is found by a hash and then compared. The inner functions take addresses, not arrays: Numba counts the
holders of an array at every call, which took four times as long as the work itself.

Numba caches a kernel by its own file only: after a change here, delete the `__pycache__` of this package, because the
kernels of its neighbours hold copies of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from softcount.kernels.jit import instruction, jit
from softcount.kernels.lanes import INT64, spread

WINDOW = 64
"""Bytes looked at together: one bit each in a register."""
BYTE = ir.IntType(8)
BYTES = ir.VectorType(BYTE, WINDOW)

ONE, EIGHT = np.uint64(1), np.uint64(8)
TOP, LAST_BIT, HALF = np.uint64(56), np.uint64(63), np.uint64(32)
EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)
HIGHEST = np.uint64(0x8080808080808080)
BELOW_A = np.uint64(0x3F3F3F3F3F3F3F3F)  # added to a byte, sets its highest bit from "A" on
ABOVE_Z = np.uint64(0x2525252525252525)  # and from the one after "Z" on
FOLD = np.uint64(0x2020202020202020)
"""The bit that makes an ASCII capital small, in each of eight bytes; 0 in its place leaves capitals alone."""
LONG = np.uint64(0xFF00000000000000)  # 0xFF is no byte of UTF-8: no short word has such a key
STIR, SHAKE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)

compiled = jit(error_model="numpy")
inlined = jit(error_model="numpy", forceinline=True)
CELL, PLACE, TOKEN = 16, 8, 4  # bytes of a cell (key, number + 1), of an offset, of a word's number


def _vector(number: int) -> Any:
    return ir.Constant(BYTES, [number] * WINDOW)


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(address, ir.PointerType(kind)), align=1)


def _word(builder: Any, read: Any) -> Any:
    """Which of 64 bytes are word characters."""
    letter = builder.sub(builder.or_(read, _vector(0x20)), _vector(ord("a")))
    digit = builder.sub(read, _vector(ord("0")))
    either = builder.or_(
        builder.icmp_unsigned("<", letter, _vector(26)), builder.icmp_unsigned("<", digit, _vector(10))
    )
    return builder.or_(either, builder.icmp_unsigned("==", read, _vector(ord("_"))))


@instruction(types.uint64(types.int64))
def word_bits(builder: Any, address: Any) -> Any:
    """A bit for each of 64 bytes: set for ASCII letters, digits and the underscore."""
    return builder.bitcast(_word(builder, _load(builder, address, BYTES)), INT64)


@instruction(types.uint64(types.int64, types.int64, types.int64))
def copy_plain(builder: Any, source: Any, target: Any, fold: Any) -> Any:
    """Copy 64 ASCII bytes, all but word characters as spaces; `fold` 32 makes capitals small. Its bits as above."""
    read = _load(builder, source, BYTES)
    word = _word(builder, read)
    capital = builder.icmp_unsigned("<", builder.sub(read, _vector(ord("A"))), _vector(26))
    folded = builder.or_(read, spread(builder, builder.trunc(fold, BYTE), WINDOW))
    written = builder.select(word, builder.select(capital, folded, read), _vector(0x20))
    builder.store(written, builder.inttoptr(target, ir.PointerType(BYTES)), align=1)
    return builder.bitcast(word, INT64)


@instruction(types.uint64(types.int64))
def solid_bits(builder: Any, address: Any) -> Any:
    """A bit for each of 64 bytes: set for all but the space."""
    return builder.bitcast(builder.icmp_unsigned("!=", _load(builder, address, BYTES), _vector(0x20)), INT64)


@instruction(types.uint64(types.int64))
def wide_bits(builder: Any, address: Any) -> Any:
    """A bit for each of 64 bytes: set for those beyond ASCII."""
    return builder.bitcast(builder.icmp_unsigned(">", _load(builder, address, BYTES), _vector(127)), INT64)


@instruction(types.uint64(types.int64))
def eight(builder: Any, address: Any) -> Any:
    """Eight bytes from anywhere as one number, the first lowest."""
    return _load(builder, address, INT64)


@instruction(types.int64(types.int64))
def byte(builder: Any, address: Any) -> Any:
    """The byte at an address."""
    return builder.zext(_load(builder, address, BYTE), INT64)


@instruction(lambda address, value: types.void(types.int64, value))
def put(builder: Any, address: Any, value: Any) -> None:
    """Write a number, in as many bytes as its type has."""
    builder.store(value, builder.inttoptr(address, ir.PointerType(value.type)), align=1)


@instruction(types.int64(types.uint64))
def lowest(builder: Any, bits: Any) -> Any:
    """The place of the lowest set bit."""
    return builder.cttz(bits, ir.Constant(ir.IntType(1), 1))


@inlined
def address(array: Any) -> Any:
    """Where an array's first entry is; the array has to outlive it."""
    return np.int64(array.ctypes.data)


@inlined
def chunk(at: Any, stop: Any, limit: Any) -> Any:
    """Up to eight bytes from `at` as one number, zeros from `stop` on; never reads at `limit` or beyond."""
    left = stop - at
    if at + 8 <= limit:
        read = eight(at)
        return read if left >= 8 else read & (EVERY >> np.uint64(64 - 8 * left))
    read = np.uint64(0)
    for i in range(min(left, 8)):
        read |= np.uint64(byte(at + i)) << np.uint64(8 * i)
    return read


@inlined
def small(read: Any, fold: Any) -> Any:
    """Eight ASCII bytes with capitals made small, where `fold` says so."""
    capital = ((read + BELOW_A) ^ (read + ABOVE_Z)) & HIGHEST
    return read | ((capital >> np.uint64(2)) & fold)


@inlined
def key_of(start: Any, stop: Any, limit: Any, fold: Any, spread: Any) -> Any:
    """A word's key: its bytes where they fit, else a hash of them under a mark no short word has."""
    size = stop - start
    if size <= 8:
        # Zero bytes may be part of a word: up to seven bytes the length stands on top of them.
        read = small(chunk(start, stop, limit), fold) if size else np.uint64(0)
        if size < 8:
            return read | (np.uint64(size) << TOP)
        if read >> TOP >= EIGHT:
            return read
    found = np.uint64(size)
    for at in range(start, stop, 8):
        found = (found ^ small(chunk(at, stop, limit), fold)) * STIR
        found ^= found >> HALF
    return (found & spread) | LONG


@inlined
def mixed(key: Any, spread: Any) -> Any:
    """The key's bits spread evenly: words of a language share most of theirs. Its high ones place it in a table."""
    key = (key ^ (key >> HALF)) * STIR
    return ((key ^ (key >> np.uint64(29))) * SHAKE) & spread


@compiled
def same(start: Any, stop: Any, limit: Any, fold: Any, other: Any, end: Any) -> Any:
    """Whether the bytes stored from `other` on are this word's."""
    for i in range(0, stop - start, 8):
        if small(chunk(start + i, stop, limit), fold) != chunk(other + i, other + stop - start, end):
            return False
    return True


@inlined
def cell_of(start: Any, stop: Any, limit: Any, fold: Any, key: Any, book: Any, spread: Any) -> Any:
    """The address of the cell of a word that has this key, and its number; -1 and an empty cell if it is new.

    `book` is addresses: of the cells, of the last of them, of the stored bytes and their end, of the offsets.
    """
    cells, last, store, end, places = book
    at = np.int64(mixed(key, spread) >> np.uint64(64 - lowest(np.uint64(last + 1))))
    while True:
        cell = cells + CELL * at
        number = np.int64(eight(cell + 8)) - 1
        if number < 0 or (eight(cell) == key and key < LONG):
            return cell, number
        if eight(cell) == key:
            begun = np.int64(eight(places + PLACE * number))
            size = np.int64(eight(places + PLACE * (number + 1))) - begun
            if size == stop - start and same(start, stop, limit, fold, store + begun, end):
                return cell, number
        at = (at + 1) & last


@inlined
def run_of(prefix: Any, token: Any, book: Any, words: Any, made: Any) -> Any:
    """The number of a run of words made of a shorter run and one more word, and how many there are by now.

    `book` is the address of the table of runs, the last place in it, and the address of what the runs are made of.
    """
    pairs, last, grams = book
    key = (np.uint64(prefix) << HALF) | np.uint64(token)
    at = np.int64(mixed(key, EVERY) >> np.uint64(64 - lowest(np.uint64(last + 1))))
    while eight(pairs + CELL * at + 8):
        if eight(pairs + CELL * at) == key:
            return np.int64(eight(pairs + CELL * at + 8)) - 1, made
        at = (at + 1) & last
    put(pairs + CELL * at, key)
    put(pairs + CELL * at + 8, np.uint64(words + made + 1))
    put(grams + 2 * TOKEN * made, np.int32(prefix))
    put(grams + 2 * TOKEN * made + TOKEN, np.int32(token))
    return words + made, made + 1


@compiled
def copy_word(start: Any, stop: Any, fold: Any, to: Any) -> Any:
    """Write the bytes of a word at an address, capitals made small where asked."""
    for i in range(stop - start):
        letter = byte(start + i)
        put(to + i, np.uint8(letter | 32 if fold and 65 <= letter <= 90 else letter))


@compiled
def spacious(cells: Any, number: Any, spread: Any) -> Any:
    """The table with room for so many words: at most three quarters full."""
    size = cells.shape[0]
    while 4 * number > 3 * size:
        size *= 2
    if size == cells.shape[0]:
        return cells
    larger = np.zeros((size, 2), np.uint64)
    last = np.uint64(size - 1)
    shift = np.uint64(64 - lowest(last + ONE))
    for i in range(cells.shape[0]):
        if cells[i, 1]:
            at = mixed(cells[i, 0], spread) >> shift
            while larger[at, 1]:
                at = (at + ONE) & last
            larger[at, 0], larger[at, 1] = cells[i, 0], cells[i, 1]
    return larger


@compiled
def longer(array: Any, used: Any, more: Any) -> Any:
    """The array with room for `more` than the `used` entries."""
    if used + more <= array.size:
        return array
    larger = np.empty(2 * (used + more), array.dtype)
    larger[:used] = array[:used]
    return larger


@compiled
def book_of(cells: Any, store: Any, places: Any) -> Any:
    """The addresses that `cell_of` takes; the arrays have to outlive them."""
    begun = address(store)
    return address(cells), cells.shape[0] - 1, begun, begun + store.size, address(places)


@inlined
def window(at: Any, stop: Any, limit: Any, plain: Any) -> Any:
    """The bits of word characters from `at` on, none from `stop` on; at the end of the array byte by byte."""
    left = stop - at
    if at + WINDOW <= limit:
        bits = word_bits(at) if plain else solid_bits(at)
        return bits if left >= WINDOW else bits & (EVERY >> np.uint64(WINDOW - left))
    bits = np.uint64(0)
    for i in range(min(left, WINDOW)):
        letter = byte(at + i)
        if (97 <= letter | 32 <= 122 or 48 <= letter <= 57 or letter == 95) if plain else letter != 32:
            bits |= ONE << np.uint64(i)
    return bits


@compiled
def read_windows(state: Any, span: Any, plain: Any, fold: Any, room: Any, spread: Any) -> Any:
    """Read the words of a document from the window `state[0]` on, until its end or until the table has no room.

    `state` is the next window, where the last word began and whether it is still open, then how many words, bytes and
    numbers there are. A full last window is followed by an empty one, which closes its word.
    """
    at, open_at, carry, words, used, read = state
    stop, limit = span
    book, tokens, most_words, most_bytes, most_tokens = room
    carry = np.uint64(carry)
    while at <= stop and words <= most_words and used + at - open_at <= most_bytes and read <= most_tokens:
        bits = window(at, stop, limit, plain) if at < stop else np.uint64(0)
        edges = bits ^ ((bits << ONE) | carry)
        begun = carry != 0
        carry = bits >> LAST_BIT
        while edges:
            here = at + lowest(edges)
            edges &= edges - ONE
            if begun and here - open_at >= 2:
                key = key_of(open_at, here, limit, fold, spread)
                cell, number = cell_of(open_at, here, limit, fold, key, book, spread)
                if number < 0:
                    number = words
                    copy_word(open_at, here, fold, book[2] + used)
                    put(cell, key)
                    put(cell + 8, np.uint64(number + 1))
                    words += 1
                    used += here - open_at
                    put(book[4] + PLACE * words, np.int64(used))
                put(tokens + TOKEN * read, np.int32(number))
                read += 1
            open_at = here
            begun = not begun
        at += WINDOW
    return at, open_at, np.int64(carry), words, used, read


@compiled
def read_run(start: Any, stop: Any, limit: Any, plain: Any, fold: Any, table: Any, sizes: Any, spread: Any) -> Any:
    """The table after the words between two addresses; `plain` text is ASCII, other comes with spaces between words.

    `table` is the cells (key, number + 1), the bytes of the words, where each begins, and the numbers of the words read
    so far; `sizes` says how many words, bytes and numbers there are.
    """
    state = (start, start, 0, sizes[0], sizes[1], sizes[2])
    while state[0] <= stop:
        cells, store, places, tokens = table
        # A window of 64 bytes ends at most 32 words, of which the first may have begun long before.
        table = (
            spacious(cells, state[3] + 33, spread),
            longer(store, state[4], state[0] - state[1] + WINDOW),
            longer(places, state[3] + 1, 33),
            longer(tokens, state[5], 33),
        )
        state = read_windows(state, (stop, limit), plain, fold, _room(table), spread)
    sizes[0], sizes[1], sizes[2] = state[3], state[4], state[5]
    return table


@compiled
def _room(table: Any) -> Any:
    """Addresses of a table's arrays, and the most there may be of words, bytes and numbers before another window."""
    cells, store, places, tokens = table
    words = min(3 * cells.shape[0] // 4, places.size - 1) - 33
    book = book_of(cells, store, places)
    return book, address(tokens), words, store.size - WINDOW, tokens.size - 33
