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
"""Bytes of text that plain Python reads in 0.15 s."""
WORTH_WORDS = 400_000
"""Different words that plain Python puts in a dictionary in 0.2 s."""
LOADED_BYTES, LOADED_WORDS = 2_000, 500
"""From where the kernels are quicker once they are there. Both ways give the same words: it does not matter which."""

SHOWN, LONGEST = 5, 24
"""How many words stand for all of them where they are shown, and how many bytes of each."""


def worth_bytes(size: int) -> bool:
    """Whether compiled kernels pay for so many bytes of text."""
    return size >= (LOADED_BYTES if "softcount.kernels.token_counts" in sys.modules else WORTH_BYTES)


def worth_words(number: int) -> bool:
    """Whether compiled kernels pay for so many different words."""
    return number >= (LOADED_WORDS if "softcount.kernels.token_counts" in sys.modules else WORTH_WORDS)


class Words(Sequence[str]):
    """Words in the order of their spelling (of their code points), each once; or any list of words, as met.

    They equal a list of the same words; no tuple, which has a hash of its own.

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
        """The first few words, and how many there are where that is not all."""
        shown = ", ".join(self._shown(place) for place in range(min(SHOWN, len(self))))
        return f"Words([{shown}])" if len(self) <= SHOWN else f"Words([{shown}, ...]: {len(self):,} words)"

    def _shown(self, place: int) -> str:
        start, stop = self.offsets[place : place + 2].tolist()
        if stop - start <= LONGEST:
            return repr(self[place])
        return repr(bytes(self.data[start : start + LONGEST]).decode("utf-8", "ignore") + "...")

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes + self.offsets.nbytes)

    def spelled(self) -> list[bytes]:
        """Each word's bytes."""
        whole = self.data.tobytes()
        return [whole[start:stop] for start, stop in pairwise(self.offsets.tolist())]

    def take(self, places: np.ndarray) -> Words:
        """The words at these places, in their order."""
        if worth_words(len(places)):
            from softcount.text import compiled

            return Words(*compiled.take((self.data, self.offsets), places))
        words = self.spelled()
        return Words.of_bytes([words[place] for place in places.tolist()])

    def order(self) -> np.ndarray:
        """The places of the words in the order of their spelling: that of their bytes is that of their code points."""
        if worth_words(len(self)):
            from softcount.text import compiled

            return compiled.order((self.data, self.offsets))
        words = self.spelled()
        return np.array(sorted(range(len(words)), key=words.__getitem__), dtype=np.int64)

    def columns(self, words: Words) -> np.ndarray:
        """The place here of each of the other words, -1 for those that are not here."""
        if worth_words(len(self) if self._places is None else 0) or worth_words(len(words)):
            from softcount.text import compiled

            if self._cells is None:
                self._cells = compiled.index((self.data, self.offsets))
            return compiled.find((words.data, words.offsets), self._cells, (self.data, self.offsets))
        if self._places is None:
            self._places = {word: place for place, word in enumerate(self.spelled())}
        found = self._places.get
        return np.array([found(word, -1) for word in words.spelled()], dtype=np.int32)
