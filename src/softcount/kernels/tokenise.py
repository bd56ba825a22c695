"""Documents in UTF-8 as numbers of their words or of their characters, with what Python knows about each character.

`letters` holds for every code point its small letter in the low 21 bits and, above them, what it is; 0 means that
nobody has asked Python about it yet. The kernels stop at such a character, and at one whose small form is no single
character or depends on its neighbours (the Turkish capital I with a dot, the Greek capital sigma).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels import word_hashes
from softcount.kernels.word_hashes import WINDOW, address, byte, compiled, inlined, longer, lowest, put

CODES = 0x110000
PAGE = 256
"""Code points that are looked up together."""
SMALL = 0x1FFFFF
WORD, SMALL_WORD, SPACE, UNUSUAL, KNOWN = 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25
STUCK = -1


@inlined
def decoded(at: Any, stop: Any) -> Any:
    """A code point and how many bytes it takes; -1 and one byte for what is no UTF-8."""
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
    """Where the next character goes, after this one was written."""
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
def is_ascii(data: Any, start: Any, stop: Any) -> Any:
    """Whether all bytes of a document are ASCII."""
    at, stop = address(data) + start, address(data) + stop
    found = np.uint64(0)
    while at + WINDOW <= stop:
        found |= word_hashes.wide_bits(at)
        at += WINDOW
    for rest in range(at, stop):
        found |= np.uint64(byte(rest) > 127)
    return found == 0


@inlined
def copy_stretch(at: Any, stop: Any, to: Any, fold: Any) -> Any:
    """Copy ASCII up to the next other byte, at most 64: how many, and the bits of its word characters."""
    wide = word_hashes.wide_bits(at)
    size = min(lowest(wide) if wide else WINDOW, stop - at)
    return size, word_hashes.copy_plain(at, to, fold)


@compiled
def respelled(span: Any, lower: Any, letters: Any, out: Any) -> Any:
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
            size, bits = copy_stretch(at, stop, to, fold)
            at, to, begun = at + size, to + size, to + size
            characters = 2 * np.int64((bits >> np.uint64(size - 1)) & word_hashes.ONE)
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
        if hidden[i]:
            pass
        elif is_ascii(data, start, stop):
            fold = word_hashes.FOLD if lower else np.uint64(0)
            table = word_hashes.read_run(first + start, first + stop, limit, True, fold, table, sizes, spread)
        else:
            # No character's small letter takes more than half as many bytes again.
            scratch = longer(scratch, 0, 3 * (stop - start) // 2 + 2 * WINDOW)
            used = respelled((first + start, first + stop, limit), lower, letters, scratch)
            if used == STUCK:
                break
            text = address(scratch)
            end = text + scratch.size
            table = word_hashes.read_run(text, text + used, end, False, np.uint64(0), table, sizes, spread)
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
        if hidden[i] or is_ascii(data, offsets[i], offsets[i + 1]):
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


@compiled
def read_characters(data: Any, offsets: Any, hidden: Any, spoken: Any, letters: Any, by_word: Any) -> Any:
    """The numbers of the characters of all documents, where the stretches end, and where documents end in those.

    Several white spaces become one. With `by_word` each word with a space before and after is a stretch, else each
    document is one. Comes back as (tokens, ends, stretches, code points); `ends` stops short where a kernel is stuck.
    """
    numbers = np.zeros(CODES, np.int32)
    codes = np.empty(1024, np.int64)
    tokens, stretches = np.empty(1024, np.int32), np.zeros(1024, np.int64)
    sizes = np.zeros(3, np.int64)  # characters that are different, tokens, stretches
    ends = np.zeros(offsets.size, np.int64)
    done = 0
    for i in range(offsets.size - 1):
        length = 0 if hidden[i] else offsets[i + 1] - offsets[i]
        tokens = longer(tokens, sizes[1], 2 * length + 2)
        stretches = longer(stretches, sizes[2] + 1, length + 2)
        codes = longer(codes, sizes[0], length + 2)
        target = (numbers, codes, tokens, stretches, sizes)
        if length and not _characters(data, offsets[i], offsets[i + 1], spoken[i] == 0, letters, by_word, target):
            break
        if not by_word:
            _close(target)
        done = i + 1
        ends[done] = sizes[2]
    return tokens[: sizes[1]].copy(), ends[: done + 1], stretches[: sizes[2] + 1].copy(), codes[: sizes[0]].copy()


@compiled
def _characters(data: Any, start: Any, stop: Any, lower: Any, letters: Any, by_word: Any, target: Any) -> Any:
    """Whether the characters of one document could all be read; they go to the target."""
    spaces, last_space = 0, np.int64(32)
    inside = False
    at, stop = address(data) + start, address(data) + stop
    while at < stop:
        code, size = decoded(at, stop)
        at += size
        known = letters[code] if code >= 0 else np.int32(KNOWN)
        if known == 0 or (lower and known & UNUSUAL):
            return False
        if known & SPACE:
            spaces, last_space = spaces + 1, code
            continue
        if by_word and (spaces or not inside):
            if inside:
                _put(np.int64(32), target)
                _close(target)
            _put(np.int64(32), target)
        elif spaces:
            _put(last_space if spaces == 1 else np.int64(32), target)
        spaces, inside = 0, True
        _put(np.int64(known & SMALL) if lower and code >= 0 else max(code, 0xFFFD * (code < 0)), target)
    if by_word and inside:
        _put(np.int64(32), target)
        _close(target)
    elif spaces and not by_word:
        _put(last_space if spaces == 1 else np.int64(32), target)
    return True


@compiled
def _put(code: Any, target: Any) -> Any:
    numbers, codes, tokens, _, sizes = target
    if numbers[code] == 0:
        codes[sizes[0]] = code
        sizes[0] += 1
        numbers[code] = sizes[0]
    tokens[sizes[1]] = numbers[code] - 1
    sizes[1] += 1


@compiled
def _close(target: Any) -> Any:
    _, _, _, stretches, sizes = target
    sizes[2] += 1
    stretches[sizes[2]] = sizes[1]
