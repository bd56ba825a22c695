"""Numbered words to counts, runs of words, vocabularies and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels import Array, tokenise
from softcount.kernels.tokenise import HALF, address, chunk, compiled, longer

LOW = np.uint64(0xFFFFFFFF)


@compiled
def tally(tokens: Any, ends: Any, seen: Any) -> Any:
    """Each document's different words in order of occurrence, and their counts; `seen` has a -1 for every word."""
    indptr = np.zeros(ends.size, np.int64)
    ids, counts = np.empty(tokens.size, np.int32), np.empty(tokens.size, np.int32)
    used = 0
    for i in range(ends.size - 1):
        begun = used
        for j in range(ends[i], ends[i + 1]):
            word = tokens[j]
            at = seen[word]
            if at >= begun:
                counts[at] += 1
            else:
                seen[word] = used
                ids[used], counts[used] = word, 1
                used += 1
        indptr[i + 1] = used
    return indptr, ids[:used].copy(), counts[:used].copy()


@compiled
def runs_of(tokens: Any, stretches: Any, low: Any, high: Any, short: Any, words: Any, length: Any) -> Any:
    """The numbers of all runs of `low` to `high` tokens within a stretch, and where the stretches end among them.

    A run of one token has the token's number; the others are numbered from `words` on as they are met, and `grams` says
    of which shorter run and last token each is made. With `short`, a stretch of fewer than `low` is a run by itself.
    """
    runs, stops = np.empty(length, np.int32), np.zeros(stretches.size, np.int64)
    pairs, grams = np.zeros((1024, 2), np.uint64), np.empty(2 * 768, np.int32)
    room = made = used = 0
    for i in range(stretches.size - 1):
        stop = stretches[i + 1]
        for begun in range(stretches[i], stop):
            longest = min(high, stop - begun)
            if made + longest > room:
                pairs = tokenise.spacious(pairs, made + longest + 1, tokenise.EVERY)
                grams = longer(grams, 2 * made, 2 * longest)
                room = min(3 * pairs.shape[0] // 4, grams.size // 2) - 1
            run = np.int64(tokens[begun])
            whole = short and begun == stretches[i] and stop - begun < low
            for n in range(1, longest + 1):
                if n > 1:
                    token = np.int64(tokens[begun + n - 1])
                    book = address(pairs), pairs.shape[0] - 1, address(grams)
                    run, made = tokenise.run_of(run, token, book, words, made)
                if n >= low or (whole and n == longest):
                    runs[used] = run
                    used += 1
        stops[i + 1] = used
    return runs[:used].copy(), stops, grams[: 2 * made].copy().reshape((made, 2))


@compiled
def spelled(chosen: Any, grams: Any, data: Any, offsets: Any, between: Any) -> tuple[Array, Array]:
    """The bytes of the chosen runs of words, a space between two words where asked, and where each begins."""
    words = offsets.size - 1
    sizes = np.empty(words + grams.shape[0], np.int64)
    sizes[:words] = np.diff(offsets)
    for i in range(grams.shape[0]):
        sizes[words + i] = sizes[grams[i, 0]] + between + sizes[grams[i, 1]]
    places = np.zeros(chosen.size + 1, np.int64)
    for i in range(chosen.size):
        places[i + 1] = places[i] + sizes[chosen[i]]
    out = np.empty(places[-1], np.uint8)
    for i in range(chosen.size):
        run, end = np.int64(chosen[i]), places[i + 1]
        while run >= words:
            token = grams[run - words, 1]
            out[end - sizes[token] : end] = data[offsets[token] : offsets[token + 1]]
            end -= sizes[token] + between
            if between:
                out[end] = 32
            run = np.int64(grams[run - words, 0])
        out[end - sizes[run] : end] = data[offsets[run] : offsets[run + 1]]
    return out, places


def new_table() -> tuple[Array, Array, Array]:
    """An empty table of words: cells, bytes and offsets."""
    return np.zeros((1 << 15, 2), np.uint64), np.empty(1 << 16, np.uint8), np.zeros(1 << 12, np.int64)


@compiled
def learn_words(data: Any, offsets: Any, table: Any, sizes: Any, spread: Any) -> tuple[Array, Any]:
    """The number of each word in a growing table, and the table with the new ones in it.

    `table` is cells, bytes and offsets; `sizes` says how many words and bytes it holds.
    """
    cells, store, places = table
    ids = np.empty(offsets.size - 1, np.int32)
    cells = tokenise.spacious(cells, sizes[0] + ids.size, spread)
    store = longer(store, sizes[1], offsets[-1] - offsets[0])
    places = longer(places, sizes[0] + 1, ids.size)
    book = tokenise.book_of(cells, store, places)
    first, limit = address(data), address(data) + data.size
    words, used = sizes[0], sizes[1]
    for i in range(ids.size):
        start, stop = first + offsets[i], first + offsets[i + 1]
        ids[i], words, used = tokenise.learn_word(start, stop, limit, book, words, used, spread)
    sizes[0], sizes[1] = words, used
    return ids, (cells, store, places)


@compiled
def find_words(data: Any, offsets: Any, cells: Any, store: Any, places: Any, spread: Any) -> Array:
    """The number of each word in a table, -1 for those it does not hold."""
    ids = np.empty(offsets.size - 1, np.int32)
    book = tokenise.book_of(cells, store, places)
    first, limit = address(data), address(data) + data.size
    for i in range(ids.size):
        start, stop = first + offsets[i], first + offsets[i + 1]
        key = tokenise.key_of(start, stop, limit, spread)
        ids[i] = tokenise.cell_of(start, stop, limit, key, book, spread)[1]
    return ids


@compiled
def sort_keys(data: Any, offsets: Any, places: Any, groups: Any, skip: Any, bits: Any) -> Any:
    """A number for each of some words that sorts as its group and then its bytes after the first `skip` ones.

    A group takes the upper `bits`; the bytes take the rest, the first one highest.
    """
    first, limit = address(data), address(data) + data.size
    keys = np.empty(places.size, np.uint64)
    for i in range(keys.size):
        start, stop = first + offsets[places[i]] + skip, first + offsets[places[i] + 1]
        read = chunk(start, stop, limit) if start < stop else np.uint64(0)
        swapped = np.uint64(0)
        for _ in range(8):
            swapped = (swapped << np.uint64(8)) | (read & np.uint64(0xFF))
            read >>= np.uint64(8)
        upper = np.uint64(groups[i]) << np.uint64(64 - bits) if bits else np.uint64(0)
        keys[i] = upper | (swapped >> np.uint64(bits))
    return keys


@compiled
def place_counts(indptr: Any, ids: Any, counts: Any, columns: Any, ends_of: Any, target: Any) -> Array:
    """Row ends of a matrix whose columns rise within a row; `target` takes the columns and the values.

    Entries are dealt out by column and then by row, which sorts them without comparing any; words of one column are
    neighbours.
    `ends_of` has a zero for every column and two more.
    """
    for j in range(ids.size):
        ends_of[columns[ids[j]] + 2] += 1
    ends_of[1] = 0  # those that are dropped (-1)
    for c in range(2, ends_of.size):
        ends_of[c] += ends_of[c - 1]
    cells = np.empty(ends_of[-1], np.uint64)
    ends = np.zeros(indptr.size, np.int64)
    used = 0
    for i in range(indptr.size - 1):
        for j in range(indptr[i], indptr[i + 1]):
            column = columns[ids[j]] + 1
            if column > 0:
                cells[ends_of[column]] = (np.uint64(i) << HALF) | np.uint64(counts[j])
                ends_of[column] += 1
                used += 1
        ends[i + 1] = used
    # By row: the cells come by column, each a row and a count.
    indices, values = target
    at, j = ends[:-1].copy(), 0
    for c in range(ends_of.size - 2):
        while j < ends_of[c + 1]:
            row = np.int64(cells[j] >> HALF)
            indices[at[row]], values[at[row]] = c, np.int64(cells[j] & LOW)
            at[row] += 1
            j += 1
    return ends
