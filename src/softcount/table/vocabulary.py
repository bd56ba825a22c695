"""The levels of one column, coded in the order they are first seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from softcount.table.numerals import number_of

MOST_LEVELS = 100_000
"""Levels kept apart in one column; later ones share `OTHER`."""

OTHER = "(other)"
"""The level that stands for all levels beyond `MOST_LEVELS`."""


class Full(Exception):
    """More levels than the column may hold."""


class Vocabulary:
    """Codes 1, 2, ... for the levels of a column; 0 is missing.

    An open vocabulary grows, from any number of threads. A closed one gives every level it does not know the code
    after its last, and matches by spelling where a value comes as another type (1 for "1").

    >>> Vocabulary(["no", "yes"], closed=True).codes(["yes", "maybe", None]).tolist()
    [2, 3, 0]
    """

    def __init__(
        self, levels: Iterable[object] = (), *, closed: bool = False, capped: bool = False, room: int = MOST_LEVELS
    ) -> None:
        self.closed = closed or capped
        self.room = room
        self._lock = Lock()
        self._codes: dict[object, int] = {}
        for level in levels:
            self._codes.setdefault(level, len(self._codes) + 1)
        self.beyond = self._codes[OTHER] if capped else len(self._codes) + 1
        self._spelt = {str(level): code for level, code in self._codes.items()} if closed else {}

    def __len__(self) -> int:
        return len(self._codes)

    def __contains__(self, level: object) -> bool:
        return level in self._codes

    @property
    def levels(self) -> list[Any]:
        with self._lock:
            return list(self._codes)

    def codes(self, values: Sequence[object]) -> np.ndarray:
        """The code of each value, None being missing; an open vocabulary learns the values it lacks."""
        find = self._find if self.closed else self._codes.get
        found = [0 if value is None else find(value) for value in values]
        if None in found:
            self._learn(values)
            found = [0 if value is None else self._codes[value] for value in values]
        return np.array(found, dtype=np.int32)

    def _find(self, value: object) -> int:
        code = self._codes.get(value)
        if code is None and self._spelt:
            code = self._spelt.get(str(value))
        if code is None and self._spelt and isinstance(value, str):
            code = self._codes.get(number_of(value))
        return self.beyond if code is None else code

    def _learn(self, values: Iterable[object]) -> None:
        with self._lock:
            for value in values:
                if value is not None and value not in self._codes:
                    if len(self._codes) >= self.room:
                        raise Full
                    self._codes[value] = len(self._codes) + 1


def in_order(levels: Iterable[object]) -> list[object]:
    """Levels sorted: numbers by size, then words by spelling, the shared level of the rest last."""
    return sorted(levels, key=_rank)


def _rank(level: object) -> tuple[bool, bool, Any]:
    return level == OTHER, isinstance(level, str), level


def order_codes(levels: Sequence[object], ordered: Sequence[object]) -> np.ndarray:
    """New code of every old code when `levels` are put in the order `ordered`; missing stays 0."""
    rank = {level: place for place, level in enumerate(ordered, start=1)}
    return np.array([0, *(rank[level] for level in levels)], dtype=np.int32)
