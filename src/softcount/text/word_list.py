"""Words as bytes one after another: millions of them without a Python object each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import eq
from typing import Any

import numpy as np

from softcount.core.lazy import arrow_compute, pa
from softcount.text.words import encoded, joined

WORTH_BYTES = 1_000_000
"""Bytes of text that Python reads in 0.15 s."""
WORTH_WORDS = 400_000
"""Distinct words that Python puts in a dictionary in 0.2 s."""
LOADED_BYTES, LOADED_WORDS = 2_000, 500
"""Sizes from which the kernels are faster once they are loaded. Both ways give the same words."""

SORT_ROUNDS = 4
"""Rounds of sorting by eight bytes, or by five or six after the first; words that share more are few."""

SHOWN, LONGEST = 5, 24
"""Words in a repr, and bytes of each."""


def worth_bytes(size: int) -> bool:
    return size >= (LOADED_BYTES if "softcount.kernels.token_counts" in sys.modules else WORTH_BYTES)


def worth_words(number: int) -> bool:
    return number >= (LOADED_WORDS if "softcount.kernels.token_counts" in sys.modules else WORTH_WORDS)


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view, so that a kernel is compiled for one kind of array."""
    view = array.view()
    view.flags.writeable = False
    return view


class Words(Sequence[str]):
    """Words in the order of their spelling (of their code points), each once; or any list of words, as met.

    They equal a list of the same words, but no tuple, which has another hash.

    >>> words = Words.of(["ink", "öl"])
    >>> words, words[1], len(words), words == ["ink", "öl"]
    (Words(['ink', 'öl']), 'öl', 2, True)
    """

    __slots__ = ("_cells", "_places", "data", "offsets")

    _cells: np.ndarray | None
    _places: dict[bytes, int] | None

    def __init__(self, data: np.ndarray, offsets: np.ndarray) -> None:
        # Compiled kernels read both by their addresses.
        self.data = read_only(np.ascontiguousarray(data, np.uint8))
        self.offsets = read_only(np.ascontiguousarray(offsets, np.int64))
        self._cells = self._places = None

    @classmethod
    def of(cls, words: Iterable[str]) -> Words:
        return cls.of_bytes([encoded(word) for word in words])

    @classmethod
    def of_bytes(cls, words: Sequence[bytes]) -> Words:
        return cls(*joined(words))

    def to_arrow(self, kind: Any = None) -> Any:
        """The words as an Arrow array of `large_string`, or of another kind, which shares their bytes."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(kind or pa.large_string(), len(self), buffers)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        place = range(len(self))[at]
        return bytes(self.data[self.offsets[place] : self.offsets[place + 1]]).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        whole, ends = self.data.tobytes(), self.offsets.tolist()
        if whole.isascii():
            text = whole.decode("ascii")
            return (text[start:stop] for start, stop in pairwise(ends))
        return (whole[start:stop].decode("utf-8", "surrogatepass") for start, stop in pairwise(ends))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Words):
            return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.data, other.data)
        if isinstance(other, list):
            return len(self) == len(other) and all(map(eq, self, other))
        return NotImplemented

    def __hash__(self) -> int:
        return hash((len(self), self.data[:256].tobytes()))

    def __repr__(self) -> str:
        words = []
        for place in range(min(SHOWN, len(self))):
            start, stop = self.offsets[place : place + 2].tolist()
            cut = bytes(self.data[start : start + LONGEST]).decode("utf-8", "ignore") + "..."
            words.append(repr(self[place] if stop - start <= LONGEST else cut))
        shown = ", ".join(words)
        return f"Words([{shown}])" if len(self) <= SHOWN else f"Words([{shown}, ...]: {len(self):,} words)"

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes + self.offsets.nbytes)

    def spelled(self) -> list[bytes]:
        whole = self.data.tobytes()
        return [whole[start:stop] for start, stop in pairwise(self.offsets.tolist())]

    def take(self, places: np.ndarray) -> Words:
        if not len(places):
            return Words.of_bytes([])
        wanted = pa.py_buffer(np.ascontiguousarray(places, np.int64))
        cells = self.to_arrow(pa.large_binary()), pa.Array.from_buffers(pa.int64(), len(places), [None, wanted])
        _, ends, letters = arrow_compute.call_function("take", list(cells)).buffers()
        return Words(np.frombuffer(letters, np.uint8), np.frombuffer(ends, np.int64, len(places) + 1))

    def order(self) -> np.ndarray:
        """The places of the words sorted by spelling: the order of bytes is that of code points.

        If the kernels are worth it, by the first eight bytes as one number, then words that share these by their next
        bytes: 50,000 words take 2 ms. Arrow compares words one with another, and takes 12 ms.
        """
        found, tied = np.arange(len(self)), np.arange(len(self))
        groups, skip, bits = tied, 0, 0
        for _ in range(SORT_ROUNDS if worth_words(len(self)) else 0):
            from softcount.kernels.token_counts import sort_keys

            words = found[tied]
            keys = sort_keys(self.data, self.offsets, words, groups, skip, bits)
            by = np.argsort(keys)
            found[tied], keys = words[by], keys[by]
            same = np.zeros(len(keys) + 1, dtype=bool)
            same[1:-1] = keys[1:] == keys[:-1]
            stay = np.flatnonzero(same[1:] | same[:-1])
            tied, groups = tied[stay], np.cumsum(~same[stay])
            skip += (64 - bits) // 8
            if not len(tied):
                break
            bits = int(groups[-1]).bit_length()
        if len(tied):  # groups keep their places if all that are left are sorted as one
            words = found[tied]
            cells = [self.take(words).to_arrow(pa.large_binary())]
            how = arrow_compute.ArraySortOptions()
            by = arrow_compute.call_function("array_sort_indices", cells, how).buffers()[1]
            found[tied] = words[np.frombuffer(by, np.uint64, len(words))]
        return found

    def columns(self, words: Words) -> np.ndarray:
        """The place of each of the other words in this list, or -1."""
        if worth_words(len(self) if self._places is None else 0) or worth_words(len(words)):
            from softcount.kernels.token_counts import find_words, learn_words, new_table
            from softcount.kernels.tokenise import EVERY

            if self._cells is None:
                self._cells = learn_words(self.data, self.offsets, new_table(), np.zeros(2, np.int64), EVERY)[1][0]
            return find_words(words.data, words.offsets, self._cells, self.data, self.offsets, EVERY)
        if self._places is None:
            self._places = {word: place for place, word in enumerate(self.spelled())}
        found = self._places.get
        return np.array([found(word, -1) for word in words.spelled()], dtype=np.int32)
