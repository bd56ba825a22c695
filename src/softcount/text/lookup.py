"""Words numbered as they are met, in a table that grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.text.size import worth_words
from softcount.text.words import Words


class Lookup:
    """Numbers from 0 up for words, each the same whenever it comes again; a dictionary at first, arrays from then on.

    >>> lookup = Lookup()
    >>> lookup.learn(Words.of(["ink", "pot"])).tolist(), lookup.learn(Words.of(["pot", "pen"])).tolist()
    ([0, 1], [1, 2])
    >>> list(lookup.words())
    ['ink', 'pot', 'pen']
    """

    __slots__ = ("_places", "_sizes", "_table")

    def __init__(self, words: Words | None = None) -> None:
        self._places: dict[bytes, int] | None = {}
        self._table: tuple[Any, ...] = ()
        self._sizes = np.zeros(2, dtype=np.int64)  # words and their bytes, once in arrays
        if words is not None:
            self.learn(words)

    def __len__(self) -> int:
        return int(self._sizes[0]) if self._places is None else len(self._places)

    def learn(self, words: Words) -> np.ndarray:
        """The number of each word, with new ones for those not met before."""
        if self._places is not None and worth_words(len(self._places) + len(words)):
            self._change()
        if self._places is None:
            from softcount.text import compiled

            ids, self._table = compiled.learned((words.data, words.offsets), self._table, self._sizes)
            return ids
        number, places = self._places.setdefault, self._places
        return np.array([number(word, len(places)) for word in words.spelled()], dtype=np.int32)

    def _change(self) -> None:
        """From the dictionary to arrays."""
        known = Words.of_bytes(list(self._places or ()))
        self._places = None
        self._table = np.zeros((1 << 15, 2), np.uint64), np.empty(1 << 16, np.uint8), np.zeros(1 << 12, np.int64)
        self.learn(known)

    def words(self) -> Words:
        """All the words, in the order they were met."""
        if self._places is not None:
            return Words.of_bytes(list(self._places))
        _, store, places = self._table
        return Words(store[: self._sizes[1]], places[: self._sizes[0] + 1])
