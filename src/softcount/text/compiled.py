"""Words counted by compiled kernels, and a table of what Python knows about each character, which they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from softcount.kernels import token_counts as kernels
from softcount.kernels import tokenise
from softcount.kernels.tokenise import EVERY
from softcount.text.words import (
    BLANKS,
    Reading,
    Spelled,
    Words,
    decoded,
    encoded,
    joined,
    offsets_of,
    read_only,
    spelled,
)

FIRST_CELLS = 1 << 15
"""Cells a table of words begins with: the words of a block of 4 MB nearly fit."""

LOOKED_UP = 1 << 20
"""Characters whose kinds are looked up together: each takes 8 bytes."""

SIGMA = 0x3A3
"""The Greek capital whose small form depends on whether it ends the word."""


def described(code: int) -> int:
    """A code point's small letter, and what both of them are."""
    letter = chr(code)
    lowered = letter.lower()
    unusual = len(lowered) != 1 or code == SIGMA
    facts = tokenise.KNOWN | (tokenise.UNUSUAL if unusual else 0)
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


def counted(span: Spelled, reading: Reading) -> tuple[np.ndarray, np.ndarray, np.ndarray, Words]:
    """Row ends, word numbers and counts of each document, and the words."""
    if reading.analyzer == "word":
        tokens, ends, data, offsets = _read_words(span, reading.lowercase)
        words = Words(data, offsets)
        stopped = Words.of(dict.fromkeys(reading.stopped)).columns(words) >= 0
        if stopped.any():
            stay = ~stopped[tokens]
            ends = np.concatenate([[0], np.cumsum(stay)])[ends]
            words = words.take(np.flatnonzero(~stopped))
            data, offsets = words.data, words.offsets
            tokens = (np.cumsum(~stopped, dtype=np.int32) - np.int32(1))[tokens[stay]]
        stretches, ends, between = ends, np.arange(len(ends)), 1
    else:
        tokens, ends, stretches, characters = _read_characters(span, reading)
        data, offsets = joined([encoded(letter) for letter in characters])
        between = 0
    if reading.ngrams != (1, 1):
        tokens, stretches, data, offsets = _runs(tokens, stretches, data, offsets, reading, between)
    # Half the bytes stay in the cache twice as often.
    seen = np.full(len(offsets) - 1, -1, np.int32 if len(tokens) < 2**31 - 1 else np.int64)
    return (*kernels.tally(tokens, stretches[ends], seen), Words(data, offsets))


def find_words(text: str, numbers: Mapping[str, int]) -> np.ndarray:
    """(occurrences x 3) the numbers of the words of a text that have one, and where each begins and ends."""
    tokens, _, data, offsets = _read_words(spelled([text]), False)
    which = np.array([numbers.get(word, -1) for word in Words(data, offsets)], dtype=np.int64)[tokens]
    inside = np.zeros(len(text) + 2, dtype=bool)
    for start in range(0, len(text), LOOKED_UP):
        codes = np.frombuffer(text[start : start + LOOKED_UP].encode("utf-32-le", "surrogatepass"), np.uint32)
        inside[start + 1 : start + 1 + len(codes)] = LETTERS[codes] & tokenise.WORD  # known since they were read
    edges = np.flatnonzero(inside[1:] != inside[:-1]).reshape(-1, 2)
    edges = edges[edges[:, 1] - edges[:, 0] > 1]
    there = which >= 0
    return np.column_stack([which[there], edges[there]])


def _read_characters(span: Spelled, reading: Reading) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Number the characters of documents, in stretches: documents with single white spaces, or words between spaces.

    Return the numbers, where documents end among the stretches, where these end, and the characters.
    """
    parts: list[str] = []
    counts: list[int] = []
    for text in span.texts():
        text = text.lower() if reading.lowercase else text
        if reading.analyzer == "char_wb":
            words = text.split()
            parts.append(f" {'  '.join(words)} " if words else "")
            counts.append(len(words))
        else:
            parts.append(BLANKS.sub(" ", text))
            counts.append(1)
    codes = np.frombuffer("".join(parts).encode("utf-32-le", "surrogatepass"), np.uint32)
    stretches = offsets_of(parts)
    if reading.analyzer == "char_wb":  # only between two words are two spaces
        spaces = codes == ord(" ")
        borders = np.flatnonzero(spaces[1:] & spaces[:-1]) + 1
        stretches = np.concatenate([[0], borders, [len(codes)]]) if len(codes) else np.zeros(1, np.int64)
    seen = np.zeros(int(codes.max(initial=0)) + 1, dtype=bool)
    seen[codes] = True
    numbers = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return numbers[codes], np.cumsum([0, *counts]), stretches, list(map(chr, np.flatnonzero(seen).tolist()))


def _read_words(span: Spelled, lowercase: bool) -> Any:
    """What the kernel reads, which stops at a character that it does not know until Python has described it."""
    kept = np.full(len(span.hidden), not lowercase)
    while True:
        data, offsets, hidden = read_only(span.data), read_only(span.offsets), read_only(span.hidden)
        found = tokenise.read_words(data, offsets, hidden, kept, LETTERS, FIRST_CELLS, EVERY)
        if len(found[1]) == len(offsets):
            return found
        pages, unusual = tokenise.survey(data, offsets, hidden, kept, LETTERS)
        if pages.any():
            learn(np.flatnonzero(pages).tolist())
        elif unusual.any():
            span, kept = _lowered(span, unusual), kept | unusual


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


def _runs(tokens: Any, stretches: Any, data: Any, offsets: Any, reading: Reading, between: int) -> tuple[Any, ...]:
    """Runs of words, or of characters, in place of single ones, and their names."""
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
    data, offsets = kernels.spelled(np.flatnonzero(used), grams, read_only(data), read_only(offsets), between)
    return numbers[runs], stretches, data, offsets
