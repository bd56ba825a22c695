"""Columns for words without a vocabulary: a number made from the bytes of the word, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from softcount.text.block import Block
from softcount.text.gather import Chosen
from softcount.text.matrices import matrix_of
from softcount.text.reading import Reading
from softcount.text.words import Words

# Odd numbers, so that no product loses a bit: the binary digits of the golden ratio, of sqrt(2) and of sqrt(3).
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B))
_PIECE = 1 << 16


def hashed_columns(words: Words, width: int) -> np.ndarray:
    """A column from 0 to `width` - 1 for each word, by its spelling alone.

    A word's number is the sum over its bytes of (a random number for the byte) * STEP ** place, modulo 2 ** 64; its
    bits are then mixed, because words that differ in a letter or two differ in few of them.

    >>> hashed_columns(Words.of(["ink", "kin", "öl"]), 2**18).tolist()
    [87346, 129380, 34280]
    """
    return (_mixed(_numbers(words)) % np.uint64(width)).astype(np.int32)


def _numbers(words: Words) -> np.ndarray:
    """The 64-bit number of each word; its bytes are taken in pieces, so that a word of 100 MB needs little room."""
    offsets = np.asarray(words.offsets, dtype=np.int64)
    numbers = np.zeros(len(words), dtype=np.uint64)
    longest = int(np.diff(offsets).max(initial=0))
    near = _powers(_STEP, min(longest, _PIECE))
    far = _powers(_powers(_STEP, _PIECE + 1)[-1], longest // _PIECE + 1) if longest > _PIECE else _powers(_STEP, 1)
    first, last = int(offsets[0]), int(offsets[-1])
    for start in range(first, last, 16 * _PIECE):
        stop = min(start + 16 * _PIECE, last)
        low = int(np.searchsorted(offsets, start, side="right")) - 1
        high = int(np.searchsorted(offsets, stop, side="left"))
        begins = np.maximum(offsets[low:high], start)
        place = np.arange(start, stop) - np.repeat(offsets[low:high], np.diff(np.append(begins, stop)))
        terms = _BYTES[words.data[start:stop]] * near[place % _PIECE] * far[place // _PIECE]
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
    return numbers ^ (numbers >> np.uint64(32))


_BYTES = _mixed(np.arange(1, 257, dtype=np.uint64) * _STEP)
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

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
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

    def add(self, block: Block) -> np.ndarray:
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
