"""Columns for words without a vocabulary, by a number made from the bytes of the word, the same on every machine.

And what was gathered of some documents, by hashing or not, added to what was gathered of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.text.gather import Chosen, Gathered
from softcount.text.matrices import matrix_of
from softcount.text.word_blocks import WordBlock
from softcount.text.word_list import Words
from softcount.text.word_rules import Reading

# Odd numbers, so that no product loses a bit: the binary digits of the golden ratio, of sqrt(2) and of sqrt(3).
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B))
PIECE = 1 << 16
"""Bytes of a word that are taken at a time."""
MOST_CELLS = 1 << 22
"""Cells of a block that words are added in."""


def hashed_columns(words: Words, width: int, piece: int = PIECE) -> np.ndarray:
    """A column from 0 to `width` - 1 for each word, by its spelling alone.

    A word's number is the sum over its bytes of (a random number for the byte) * STEP ** place, modulo 2 ** 64; its
    bits are then mixed, because words that differ in a letter or two differ in few of them.

    >>> hashed_columns(Words.of(["ink", "kin", "öl"]), 2**18).tolist()
    [87346, 129380, 34280]
    """
    return (_mixed(_numbers(words, piece)) % np.uint64(width)).astype(np.int32)


def _numbers(words: Words, piece: int) -> np.ndarray:
    """The 64-bit number of each word; its bytes are taken in pieces, so that a word of 100 MB needs little room."""
    offsets = np.asarray(words.offsets, dtype=np.int64)
    numbers = np.zeros(len(words), dtype=np.uint64)
    longest = int(np.diff(offsets).max(initial=0))
    near = _powers(_STEP, min(longest, piece))
    far = _powers(_powers(_STEP, piece + 1)[-1], longest // piece + 1) if longest > piece else _powers(_STEP, 1)
    first, last = int(offsets[0]), int(offsets[-1])
    for start in range(first, last, 16 * piece):
        stop = min(start + 16 * piece, last)
        low = int(np.searchsorted(offsets, start, side="right")) - 1
        high = int(np.searchsorted(offsets, stop, side="left"))
        begins = np.maximum(offsets[low:high], start)
        place = np.arange(start, stop) - np.repeat(offsets[low:high], np.diff(np.append(begins, stop)))
        terms = BYTE_NUMBERS[words.data[start:stop]] * near[place % piece] * far[place // piece]
        there = np.flatnonzero(np.diff(np.append(begins, stop)))  # an empty word has the number 0
        numbers[low + there] += np.add.reduceat(terms, begins[there] - start)
    return numbers


def _powers(base: np.uint64, count: int) -> np.ndarray:
    """1, base, base ** 2, ... modulo 2 ** 64."""
    powers = np.full(max(count, 1), base, dtype=np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Every bit of a number brought to bear on every bit of the result: two rounds of shift and multiply."""
    for shift, factor in ((32, _FIRST), (29, _SECOND)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * factor
    return np.asarray(numbers ^ (numbers >> np.uint64(32)))


BYTE_NUMBERS = _mixed(np.arange(1, 257, dtype=np.uint64) * _STEP)
"""A number for each byte, none of them related to the next."""


class Hashed(Sequence[str]):
    """Columns in the place of a vocabulary: they have numbers for names, and every word has one of them.

    >>> hashed = Hashed(8)
    >>> list(hashed)[:2], len(hashed), hashed.columns(Words.of(["ink", "kin"])).tolist()
    (['hash0', 'hash1'], 8, [2, 4])
    """

    __slots__ = ("width",)

    def __init__(self, width: int) -> None:
        self.width = width

    def __len__(self) -> int:
        return self.width

    def __getitem__(self, at: Any) -> Any:
        places = range(self.width)[at]
        return [f"hash{place}" for place in places] if isinstance(at, slice) else f"hash{places}"

    def columns(self, words: Words) -> np.ndarray:
        """The column of each of the words."""
        return hashed_columns(words, self.width)


class GatheredHashes:
    """How often each column occurs, and in how many documents, in blocks that are added one after another."""

    def __init__(self, reading: Reading, width: int) -> None:
        self.reading, self.width, self.words = reading, width, Hashed(width)
        self.counts, self.documents = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
        self.n_documents = 0

    def add(self, block: WordBlock) -> np.ndarray:
        """The column of each of the block's words; words of one column count as one word."""
        columns = self.words.columns(block.words)
        rows = matrix_of(block, columns, self.width, np.int64)
        np.add.at(self.counts, rows.indices, rows.data)
        np.add.at(self.documents, rows.indices, 1)
        self.n_documents += block.n_documents
        return columns

    def chosen(self) -> Chosen:
        """Every column, with what it was met."""
        columns = np.arange(self.width, dtype=np.int32)
        return Chosen(self.words, columns, self.counts.copy(), self.documents.copy(), self.n_documents)  # type: ignore[arg-type]


def everything(gathered: Gathered | GatheredHashes) -> Chosen:
    """All the words that were gathered, in order, kept or not."""
    if isinstance(gathered, GatheredHashes):
        return gathered.chosen()
    all_of_it = copy(gathered)
    all_of_it.reading = gathered.reading.unlimited
    return all_of_it.chosen()


def continued(before: Gathered | GatheredHashes, new: Gathered | GatheredHashes) -> Gathered | GatheredHashes:
    """What was gathered before, to be added to under the limits of the new; a `DataError` if its words are others."""
    width = getattr(before, "width", None)
    if before.reading.unlimited != new.reading.unlimited or width != getattr(new, "width", None):
        raise DataError("documents were read in another way before: words of two kinds do not add up. Use fit.")
    before.reading = new.reading
    return before


def take(gathered: Gathered | GatheredHashes, more: Chosen, most: int = MOST_CELLS) -> None:
    """Add words with their counts and documents, as if the documents they came from had been added."""
    if isinstance(gathered, GatheredHashes):
        gathered.counts += more.counts
        gathered.documents += more.documents
        gathered.n_documents += more.n_documents
        return
    # As blocks in which each word has a cell for every document that held it, so few at a time that they need no room.
    n_documents, ends = more.n_documents, np.cumsum(more.documents)
    for first in range(0, int(ends[-1]) if len(ends) else 0, most):
        gathered.add(_block(more, ends, first, first + most), n_documents=n_documents)
        n_documents = 0
    gathered.n_documents += n_documents


def _block(more: Chosen, ends: np.ndarray, first: int, last: int) -> WordBlock:
    """The cells from `first` to `last` of all words in one long document; a word may begin or end in another block."""
    low, high = int(np.searchsorted(ends, first, side="right")), int(np.searchsorted(ends, last, side="left")) + 1
    held, counts, ends = more.documents[low:high], more.counts[low:high], ends[low:high]
    starts = ends - held
    here = np.minimum(ends, last) - np.maximum(starts, first)
    share = np.repeat(counts // held, here)
    begun = np.flatnonzero(starts >= first)  # what does not divide evenly is in a word's first cell
    share[starts[begun] - first] += (counts % held)[begun]
    offsets = more.words.offsets[low : low + len(held) + 1]
    words = Words(more.words.data[offsets[0] : offsets[-1]], offsets - offsets[0])
    ids = np.repeat(np.arange(len(held), dtype=np.int32), here)
    return WordBlock(np.array([0, len(ids)], dtype=np.int64), ids, share.astype(np.int32), words)
