"""Words as bytes one after another: millions of them without a Python object each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import eq
from typing import Any

import numpy as np

from softcount.core.lazy import pa
from softcount.text.words import encoded, joined

WORTH_BYTES = 1_000_000
"""Bytes of text that Python reads in 0.15 s."""
WORTH_WORDS = 400_000
"""Distinct words that Python puts in a dictionary in 0.2 s."""
LOADED_BYTES, LOADED_WORDS = 2_000, 500
"""Sizes from which the kernels are faster once they are loaded. Both ways give the same words."""

SHOWN, LONGEST = 5, 24
"""Words in a repr, and bytes of each."""


def worth_bytes(size: int) -> bool:
    return size >= (LOADED_BYTES if "softcount.kernels.token_counts" in sys.modules else WORTH_BYTES)


def worth_words(number: int) -> bool:
    return number >= (LOADED_WORDS if "softcount.kernels.token_counts" in sys.modules else WORTH_WORDS)


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
        self.data, self.offsets = np.ascontiguousarray(data, np.uint8), np.ascontiguousarray(offsets, np.int64)
        self._cells = self._places = None

    @classmethod
    def of(cls, words: Iterable[str]) -> Words:
        return cls.of_bytes([encoded(word) for word in words])

    @classmethod
    def of_bytes(cls, words: Sequence[bytes]) -> Words:
        return cls(*joined(words))

    def to_arrow(self) -> Any:
        """The words as an Arrow array of `large_string`, which shares their bytes."""
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(self.offsets), pa.py_buffer(self.data))

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
        if worth_words(len(places)):
            from softcount.text import compiled

            return Words(*compiled.take((self.data, self.offsets), places))
        words = self.spelled()
        return Words.of_bytes([words[place] for place in places.tolist()])

    def order(self) -> np.ndarray:
        """The places of the words sorted by spelling: the order of bytes is that of code points."""
        if worth_words(len(self)):
            from softcount.text import compiled

            return compiled.order((self.data, self.offsets))
        words = self.spelled()
        return np.array(sorted(range(len(words)), key=words.__getitem__), dtype=np.int64)

    def columns(self, words: Words) -> np.ndarray:
        """The place of each of the other words in this list, or -1."""
        if worth_words(len(self) if self._places is None else 0) or worth_words(len(words)):
            from softcount.text import compiled

            if self._cells is None:
                self._cells = compiled.index((self.data, self.offsets))
            return compiled.find((words.data, words.offsets), self._cells, (self.data, self.offsets))
        if self._places is None:
            self._places = {word: place for place, word in enumerate(self.spelled())}
        found = self._places.get
        return np.array([found(word, -1) for word in words.spelled()], dtype=np.int32)
