"""The compiled kernels over arrays as they come, and what Python knows about each character, kept for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from softcount.kernels import token_counts as kernels
from softcount.kernels import tokenise
from softcount.kernels.tokenise import EVERY
from softcount.text.words import Reading, Spelled, decoded, encoded, joined

FIRST_CELLS = 1 << 15
"""Cells a table of words begins with: the words of a block of 4 MB nearly fit."""

Bytes = tuple[np.ndarray, np.ndarray]
"""Words as bytes and offsets."""

SIGMA = 0x3A3
"""The Greek capital whose small form depends on whether it ends the word."""


def described(code: int) -> int:
    """A code point's small letter, and what both of them are."""
    letter = chr(code)
    lowered = letter.lower()
    unusual = len(lowered) != 1 or code == SIGMA
    facts = tokenise.KNOWN | (tokenise.UNUSUAL if unusual else 0) | (tokenise.SPACE if letter.isspace() else 0)
    facts |= tokenise.WORD if letter.isalnum() or letter == "_" else 0
    facts |= tokenise.SMALL_WORD if lowered.isalnum() or lowered == "_" else 0
    return facts | (code if unusual else ord(lowered))


# Asked about all 1.1 million, Python takes 0.4 s; no document needs more than a few hundred pages.
LETTERS = np.zeros(tokenise.CODES, dtype=np.int32)


def learn(pages: Iterable[int]) -> None:
    """Ask about pages of 256 code points. Two threads may ask about the same one: both get the same answer."""
    for page in pages:
        codes = range(page * tokenise.PAGE, (page + 1) * tokenise.PAGE)
        LETTERS[codes.start : codes.stop] = [described(code) for code in codes]


learn([0])


def fixed(array: np.ndarray) -> np.ndarray:
    """The array seen as read-only, so that a kernel is compiled for one kind of array."""
    seen = array.view()
    seen.flags.writeable = False
    return seen


def counted(span: Spelled, reading: Reading, stop: Callable[[Bytes], np.ndarray]) -> tuple[Any, ...]:
    """Row ends, word numbers and counts of each document, and the words; `stop` says which words are left out."""
    if reading.analyzer == "word":
        tokens, ends, data, offsets = _read(tokenise.read_words, span, reading.lowercase, FIRST_CELLS, EVERY)
        if reading.stopped:
            tokens, ends, data, offsets = _without(tokens, ends, data, offsets, stop((data, offsets)))
        stretches, ends, between = ends, np.arange(len(ends)), 1
    else:
        tokens, ends, stretches, codes = _read(
            tokenise.read_characters, span, reading.lowercase, reading.analyzer == "char_wb"
        )
        data, offsets = joined([encoded(chr(code)) for code in codes.tolist()])
        between = 0
    if reading.ngrams != (1, 1):
        tokens, stretches, data, offsets = _runs(tokens, stretches, data, offsets, reading, between)
    seen = np.full(len(offsets) - 1, -1, _narrow(len(tokens)))
    return (*kernels.tally(tokens, stretches[ends], seen), (data, offsets))


def tokens_of(span: Spelled, lowercase: bool) -> tuple[np.ndarray, Bytes]:
    """The single words of the documents one after another, by number, and what they are."""
    tokens, _, data, offsets = _read(tokenise.read_words, span, lowercase, FIRST_CELLS, EVERY)
    return tokens, (data, offsets)


def _narrow(size: int) -> Any:
    """The type for places among so many: half the bytes stay in the cache twice as often."""
    return np.int32 if size < 2**31 - 1 else np.int64


def _read(kernel: Callable[..., Any], span: Spelled, lowercase: bool, *more: Any) -> Any:
    """What a kernel reads, after Python was asked about all that the kernel cannot know."""
    spoken = np.full(len(span.hidden), not lowercase)
    while True:
        data, offsets, hidden = fixed(span.data), fixed(span.offsets), fixed(span.hidden)
        found = kernel(data, offsets, hidden, spoken, LETTERS, *more)
        if len(found[1]) == len(offsets):
            return found
        pages, unusual = tokenise.survey(data, offsets, hidden, spoken, LETTERS)
        if pages.any():
            learn(np.flatnonzero(pages).tolist())
        elif unusual.any():
            span, spoken = _lowered(span, unusual), spoken | unusual


def _lowered(span: Spelled, chosen: np.ndarray) -> Spelled:
    """The documents with the chosen ones made small by Python."""
    lengths = np.diff(span.offsets)
    parts: list[Any] = []
    done = int(span.offsets[0])
    for place in np.flatnonzero(chosen).tolist():
        text = encoded(decoded(span.bytes_of(place)).lower())
        parts += [span.data[done : span.offsets[place]], text]
        done = int(span.offsets[place + 1])
        lengths[place] = len(text)
    parts.append(span.data[done : span.offsets[-1]])
    data = np.frombuffer(b"".join(parts), dtype=np.uint8)
    return Spelled(data, np.concatenate([[0], np.cumsum(lengths)]), span.hidden)


def _without(tokens: Any, ends: Any, data: Any, offsets: Any, stopped: np.ndarray) -> tuple[Any, ...]:
    """Tokens, ends and words without the stopped ones."""
    if not stopped.any():
        return tokens, ends, data, offsets
    stay = ~stopped[tokens]
    ends = np.concatenate([[0], np.cumsum(stay)])[ends]
    data, offsets = take((data, offsets), np.flatnonzero(~stopped))
    return (np.cumsum(~stopped, dtype=np.int32) - np.int32(1))[tokens[stay]], ends, data, offsets


def _runs(tokens: Any, stretches: Any, data: Any, offsets: Any, reading: Reading, between: int) -> tuple[Any, ...]:
    """Runs of words, or of characters, in the place of single ones, and what they are called."""
    low, high = reading.ngrams
    short = reading.analyzer == "char_wb"
    lengths = np.diff(stretches)
    longest = int(lengths.max(initial=0))
    size = sum(int(np.maximum(lengths - n + 1, 0).sum()) for n in range(low, min(high, longest) + 1))
    size += int(np.count_nonzero(lengths < low)) if short else 0
    words = len(offsets) - 1
    runs, stretches, grams = kernels.runs_of(tokens, stretches, low, high, short, words, size)
    used = np.zeros(words + len(grams), dtype=bool)
    used[runs] = True
    numbers = np.cumsum(used, dtype=np.int32) - np.int32(1)
    data, offsets = kernels.spelled(np.flatnonzero(used), grams, fixed(data), fixed(offsets), between)
    return numbers[runs], stretches, data, offsets


def take(words: Bytes, chosen: np.ndarray) -> Bytes:
    """The words at these places."""
    no_runs = np.zeros((0, 2), np.int32)
    return kernels.spelled(chosen, no_runs, fixed(words[0]), fixed(words[1]), 0)


def order(words: Bytes) -> np.ndarray:
    """Places of the words in the order of their spelling."""
    data, offsets = map(fixed, words)
    keys = kernels.heads(data, offsets)
    found = np.argsort(keys)
    kernels.settle_ties(found, keys, data, offsets)
    return found


def index(words: Bytes, spread: Any = EVERY) -> np.ndarray:
    """The cells of a hash table of the words."""
    return kernels.index_words(fixed(words[0]), fixed(words[1]), spread)


def find(words: Bytes, cells: np.ndarray, known: Bytes, spread: Any = EVERY) -> np.ndarray:
    """The place of each word among the known ones, -1 for those that are not there."""
    return kernels.find_words(fixed(words[0]), fixed(words[1]), cells, fixed(known[0]), fixed(known[1]), spread)


def learned(words: Bytes, table: tuple[Any, ...], sizes: np.ndarray, spread: Any = EVERY) -> tuple[np.ndarray, Any]:
    """The number of each word, and the table with those that are new."""
    return kernels.learn_words(fixed(words[0]), fixed(words[1]), table, sizes, spread)


def place(block: Any, columns: np.ndarray, width: int, indices: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Row ends of a matrix; its columns, in order within each row, and its values are written where they are to go."""
    indptr, ids = block.indptr.astype(np.int64, copy=False), block.ids.astype(np.int32, copy=False)
    counts, places = block.counts.astype(np.int32, copy=False), columns.astype(np.int32, copy=False)
    ends_of = np.zeros(width + 2, _narrow(len(block.ids)))
    return kernels.place_counts(fixed(indptr), fixed(ids), fixed(counts), fixed(places), ends_of, (indices, values))
