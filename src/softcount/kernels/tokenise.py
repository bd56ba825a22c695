"""Words of UTF-8 documents, found 64 bytes at a time and numbered by a hash table."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from softcount.kernels.jit import instruction, jit
from softcount.kernels.lanes import INT64, spread

WINDOW = 64
"""Bytes looked at together: one bit each in a register."""
SLICE = 64 * WINDOW
"""Bytes that a table of words makes room for at a time."""
BYTE = ir.IntType(8)
BYTES = ir.VectorType(BYTE, WINDOW)

ONE, EIGHT = np.uint64(1), np.uint64(8)
TOP, LAST_BIT, HALF = np.uint64(56), np.uint64(63), np.uint64(32)
EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)
LONG = np.uint64(0xFF00000000000000)  # 0xFF is no byte of UTF-8: no short word has such a key
STIR, SHAKE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)

compiled = jit(error_model="numpy")
inlined = jit(error_model="numpy", forceinline=True)
CELL, PLACE, TOKEN = 16, 8, 4  # bytes of a cell (key, number + 1), of an offset, of a word's number


def _vector(number: int) -> Any:
    return ir.Constant(BYTES, [number] * WINDOW)


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(address, ir.PointerType(kind)), align=1)


@instruction(types.uint64(types.int64, types.int64, types.int64))
def copy_plain(builder: Any, source: Any, target: Any, fold: Any) -> Any:
    """Copy 64 ASCII bytes, all but word characters as spaces; `fold` 32 makes capitals small.

    Return a bit for each byte: set for letters, digits and the underscore.
    """
    read = _load(builder, source, BYTES)
    letter = builder.sub(builder.or_(read, _vector(0x20)), _vector(ord("a")))
    digit = builder.sub(read, _vector(ord("0")))
    either = builder.or_(
        builder.icmp_unsigned("<", letter, _vector(26)), builder.icmp_unsigned("<", digit, _vector(10))
    )
    word = builder.or_(either, builder.icmp_unsigned("==", read, _vector(ord("_"))))
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
    """The address of an array's first entry; the array must outlive it."""
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
def key_of(start: Any, stop: Any, limit: Any, spread: Any) -> Any:
    """A word's key: its bytes if they fit, else a hash of them with a mark that no short word has."""
    size = stop - start
    if size <= 8:
        # Zero bytes may be part of a word: up to seven bytes the length stands on top of them.
        read = chunk(start, stop, limit) if size else np.uint64(0)
        if size < 8:
            return read | (np.uint64(size) << TOP)
        if read >> TOP >= EIGHT:
            return read
    found = np.uint64(size)
    for at in range(start, stop, 8):
        found = (found ^ chunk(at, stop, limit)) * STIR
        found ^= found >> HALF
    return (found & spread) | LONG


@inlined
def mixed(key: Any, spread: Any) -> Any:
    """The key's bits spread evenly: words of a language share most of theirs. Its high ones place it in a table."""
    key = (key ^ (key >> HALF)) * STIR
    return ((key ^ (key >> np.uint64(29))) * SHAKE) & spread


@compiled
def same(start: Any, stop: Any, limit: Any, other: Any, end: Any) -> Any:
    """Whether the bytes stored from `other` on are this word's."""
    for i in range(0, stop - start, 8):
        if chunk(start + i, stop, limit) != chunk(other + i, other + stop - start, end):
            return False
    return True


@inlined
def cell_of(start: Any, stop: Any, limit: Any, key: Any, book: Any, spread: Any) -> Any:
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
            if size == stop - start and same(start, stop, limit, store + begun, end):
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


@inlined
def learn_word(start: Any, stop: Any, limit: Any, book: Any, words: Any, used: Any, spread: Any) -> Any:
    """The number of a word, and how many words and bytes the table then holds: it takes a copy of a new word."""
    key = key_of(start, stop, limit, spread)
    cell, number = cell_of(start, stop, limit, key, book, spread)
    if number < 0:
        number = words
        for i in range(stop - start):
            put(book[2] + used + i, np.uint8(byte(start + i)))
        put(cell, key)
        put(cell + 8, np.uint64(number + 1))
        words += 1
        used += stop - start
        put(book[4] + PLACE * words, np.int64(used))
    return number, words, used


@compiled
def spacious(cells: Any, number: Any, spread: Any) -> Any:
    """The table with room for this many words: at most three quarters full."""
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


@compiled
def read_run(start: Any, stop: Any, limit: Any, table: Any, sizes: Any, spread: Any) -> Any:
    """The table after the words between two addresses, which have spaces between them and none inside.

    At least 64 bytes follow them, before `limit`.

    `table` is the cells (key, number + 1), the bytes of the words, where each begins, and the numbers of the words read
    so far; `sizes` says how many words, bytes and numbers there are.
    """
    at, open_at, carry = start, start, np.uint64(0)
    words, used, read = sizes[0], sizes[1], sizes[2]
    while at <= stop:  # a full last window is followed by an empty one, which closes its word
        end = min(at + SLICE, stop + 1)
        cells, store, places, tokens = table
        most = (end - at) // 2 + WINDOW  # words that may end here; the first may have begun long before
        cells, store = spacious(cells, words + most, spread), longer(store, used, end - open_at + WINDOW)
        places, tokens = longer(places, words + 1, most), longer(tokens, read, most)
        table = cells, store, places, tokens
        book, numbers = book_of(cells, store, places), address(tokens)
        while at < end:
            bits = solid_bits(at) if at < stop else np.uint64(0)
            if stop - at < WINDOW:
                bits &= (ONE << np.uint64(max(stop - at, 0))) - ONE
            edges = bits ^ ((bits << ONE) | carry)
            begun = carry != 0
            carry = bits >> LAST_BIT
            while edges:
                here = at + lowest(edges)
                edges &= edges - ONE
                if begun and here - open_at >= 2:
                    number, words, used = learn_word(open_at, here, limit, book, words, used, spread)
                    put(numbers + TOKEN * read, np.int32(number))
                    read += 1
                open_at = here
                begun = not begun
            at += WINDOW
    sizes[0], sizes[1], sizes[2] = words, used, read
    return table


# -- documents in UTF-8 as numbers of their words

CODES = 0x110000
PAGE = 256
"""Code points that are looked up together."""
SMALL = 0x1FFFFF
WORD, SMALL_WORD, UNUSUAL, KNOWN = 1 << 21, 1 << 22, 1 << 23, 1 << 24
STUCK = -1


@inlined
def decoded(at: Any, stop: Any) -> Any:
    """A code point and its number of bytes; -1 and one byte for invalid UTF-8."""
    first = byte(at)
    if first < 0x80:
        return first, 1
    if 0xC0 <= first < 0xE0 and at + 2 <= stop and byte(at + 1) & 0xC0 == 0x80:
        return ((first & 0x1F) << 6) | (byte(at + 1) & 0x3F), 2
    size = 3 if first < 0xF0 else 4
    if first < 0xE0 or at + size > stop:
        return np.int64(-1), 1
    code, wrong = first & (0x7F >> size), False
    for i in range(1, size):
        more = byte(at + i)
        wrong |= more & 0xC0 != 0x80
        code = (code << 6) | (more & 0x3F)
    return (np.int64(-1), 1) if wrong or code >= CODES else (code, size)


@inlined
def encode(code: Any, to: Any) -> Any:
    """Write a character; returns the place of the next one."""
    if code < 0x80:
        put(to, np.uint8(code))
        return to + 1
    if code < 0x800:
        put(to, np.uint8(0xC0 | (code >> 6)))
        put(to + 1, np.uint8(0x80 | (code & 0x3F)))
        return to + 2
    size = 3 if code < 0x10000 else 4
    for i in range(size - 1, 0, -1):
        put(to + i, np.uint8(0x80 | (code & 0x3F)))
        code >>= 6
    put(to, np.uint8(((0xF00 >> size) & 0xFF) | code))
    return to + size


@compiled
def respell(span: Any, lower: Any, letters: Any, out: Any) -> Any:
    """How many bytes the words of a document take, written small with spaces between; single characters left out.

    `span` is the addresses where the document begins, where it ends, and where memory ends. STUCK where a character
    has to be asked of Python first. A single ASCII character stays: it takes one byte, and no word does.
    """
    at, stop, limit = span
    member, fold = SMALL_WORD if lower else WORD, 32 if lower else 0
    first = to = begun = address(out)
    characters: Any = 0  # of the word that is open; it began at `begun`
    while at < stop:
        if byte(at) < 0x80 and at + WINDOW <= limit:
            if characters == 1 and not letters[byte(at)] & WORD:
                to = begun
            # ASCII up to the next other byte, at most 64
            wide = wide_bits(at)
            size, bits = min(lowest(wide) if wide else WINDOW, stop - at), copy_plain(at, to, fold)
            at, to, begun = at + size, to + size, to + size
            characters = 2 * np.int64((bits >> np.uint64(size - 1)) & ONE)
            continue
        code, size = decoded(at, stop)
        at += size
        known = letters[code] if code >= 0 else np.int32(KNOWN)
        if known == 0 or (lower and known & UNUSUAL):
            return STUCK
        if known & member:
            characters += 1
            to = encode(known & SMALL if lower else code, to)
        else:
            to = begun if characters == 1 else encode(32, to)
            begun, characters = to, 0
    return (begun if characters == 1 else to) - first


@compiled
def read_words(data: Any, offsets: Any, hidden: Any, spoken: Any, letters: Any, start_size: Any, spread: Any) -> Any:
    """The numbers of the words of each document in turn, where each document ends, and the words.

    `hidden` documents count as empty; `spoken` says which are read as they stand, without making letters small. Comes
    back as (tokens, ends, bytes of words, offsets of words); `ends` stops short where a kernel is stuck.
    """
    table = (
        np.zeros((start_size, 2), np.uint64),
        np.empty(1024, np.uint8),
        np.zeros(128, np.int64),
        np.empty(1024, np.int32),
    )
    sizes = np.zeros(3, np.int64)
    ends = np.zeros(offsets.size, np.int64)
    scratch = np.empty(4 * WINDOW, np.uint8)
    done, first, limit = 0, address(data), address(data) + data.size
    for i in range(offsets.size - 1):
        start, stop = offsets[i], offsets[i + 1]
        lower = spoken[i] == 0
        if not hidden[i]:
            # No character's small letter takes more than half as many bytes again.
            scratch = longer(scratch, 0, 3 * (stop - start) // 2 + 2 * WINDOW)
            used = respell((first + start, first + stop, limit), lower, letters, scratch)
            if used == STUCK:
                break
            text = address(scratch)
            end = text + scratch.size
            table = read_run(text, text + used, end, table, sizes, spread)
        done = i + 1
        ends[done] = sizes[2]
    _, store, places, tokens = table
    return tokens[: sizes[2]].copy(), ends[: done + 1], store[: sizes[1]].copy(), places[: sizes[0] + 1].copy()


@compiled
def survey(data: Any, offsets: Any, hidden: Any, spoken: Any, letters: Any) -> Any:
    """Pages of code points that Python has yet to be asked about, and which documents hold unusual capitals."""
    pages = np.zeros(CODES // PAGE, np.bool_)
    unusual = np.zeros(offsets.size - 1, np.bool_)
    for i in range(offsets.size - 1):
        if hidden[i]:
            continue
        at, stop = address(data) + offsets[i], address(data) + offsets[i + 1]
        while at < stop:
            code, size = decoded(at, stop)
            at += size
            if code >= 0:
                known = letters[code]
                pages[code // PAGE] |= known == 0
                unusual[i] |= known & UNUSUAL != 0 and spoken[i] == 0
    return pages, unusual
