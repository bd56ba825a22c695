"""The levels of one column, coded in the order they are first seen, by what the column is known to be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from softcount.records import dataclass
from softcount.sources import wording
from softcount.sources.arrow_columns import level_of, number_of
from softcount.table.cell_values import MissingWords, distinct, too_large
from softcount.table.column_plan import Becomes, ColumnPlan, Contradiction
from softcount.table.schema import BLANK, MOST_LEVELS, NARROW_LEVELS

NewLevels = tuple[int, list[Any]]
"""How many levels were known, and those met since."""


class TooManyLevels(Exception):
    """More levels than the column may hold."""


class Vocabulary:
    """Codes 1, 2, ... for the levels of a column; 0 is missing.

    An open vocabulary grows, from any number of threads. A closed one gives every level it does not know the code
    after its last, and matches by spelling where a value comes as another type (1 for "1"). A pickled one becomes a
    copy, which knows with how many levels it came (`copied`).

    >>> Vocabulary(["no", "yes"], closed=True).codes(["yes", "maybe", None]).tolist()
    [2, 3, 0]
    """

    def __init__(
        self, levels: Iterable[object] = (), *, closed: bool = False, capped: bool = False, room: int = MOST_LEVELS
    ) -> None:
        self.closed = closed or capped
        self.room = room
        self.copied: int | None = None
        self._lock = Lock()
        self._codes: dict[object, int] = {}
        for level in levels:
            self._codes.setdefault(level, len(self._codes) + 1)
        self.beyond = len(self._codes) + (not capped)
        self._spelt = {str(level): code for level, code in self._codes.items()} if closed else {}

    def __len__(self) -> int:
        return len(self._codes)

    def __contains__(self, level: object) -> bool:
        return level in self._codes

    @property
    def levels(self) -> list[Any]:
        with self._lock:
            return list(self._codes)

    @property
    def learned(self) -> NewLevels | None:
        """How many levels a copy came with, and those it has met since; None for a vocabulary that is no copy."""
        return None if self.copied is None else (self.copied, self.levels[self.copied :])

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = {**vars(self), "_codes": dict(self._codes), "copied": len(self._codes)}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())

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
                        raise TooManyLevels
                    self._codes[value] = len(self._codes) + 1


def in_order(levels: Sequence[object], capped: bool = False) -> list[object]:
    """Levels sorted: numbers by size, then words by spelling; where `capped`, the last, which the rest share, last."""
    shared = levels[len(levels) - capped :]
    return [*sorted(levels[: len(levels) - capped], key=lambda level: (isinstance(level, str), level)), *shared]


def order_codes(levels: Sequence[object], ordered: Sequence[object]) -> np.ndarray:
    """New code of every old code when `levels` are put in the order `ordered`; missing stays 0."""
    rank = {level: place for place, level in enumerate(ordered, start=1)}
    return np.array([0, *(rank[level] for level in levels)], dtype=np.int32)


@dataclass(slots=True)
class LevelCoder:
    """Distinct values of a column to codes, by its plan; a value the plan cannot hold is a contradiction."""

    plan: ColumnPlan
    vocabulary: Vocabulary
    words: MissingWords
    closed: bool = False
    blank: int = 0
    """The code of missing cells: 0, or that of `BLANK` in a column that has such a category."""

    @classmethod
    def of(cls, plan: ColumnPlan, words: MissingWords, closed: bool = False) -> LevelCoder:
        """A coder with the vocabulary that the column starts from."""
        if closed:
            known = Vocabulary(plan.field.levels, closed=True, capped=len(plan.field.levels) > plan.most_levels)
        elif plan.capped is not None:
            known = Vocabulary(plan.capped, capped=True)
        else:
            levels = [level_of(level) for level in (*plan.seen, *plan.extra)]
            known = Vocabulary(levels, room=plan.most_levels if plan.field.wide else NARROW_LEVELS)
        here = (words.among_numbers if plan.as_numbers else words).among(plan.field.missing)
        here = replace(here, missing=frozenset(word for word in here.missing if word not in known))
        return cls(plan, known, here, closed, int(known.codes([BLANK])[0]) if BLANK in known else 0)

    def codes(self, column: Any, start: int) -> np.ndarray:
        """One code per row, 0 where missing."""
        values, places = distinct(column, self.words)
        table = self._table(values, places, start)
        codes: np.ndarray = np.append(table, 0).astype(np.int32)[places]
        return np.where(codes == 0, np.int32(self.blank), codes) if self.blank else codes

    def learn(self, levels: Sequence[Any], start: int) -> None:
        """Take in levels that were met elsewhere, in rows from this one on."""
        try:
            self.vocabulary.codes(levels)
        except TooManyLevels:
            raise self.overflow(start + 1) from None

    def _table(self, values: Sequence[Any], places: np.ndarray, start: int) -> np.ndarray:
        levels = values
        if self.plan.as_numbers and not self.closed:
            levels = [self._level(value, place, places, start) for place, value in enumerate(values)]
        if self.plan.is_tick_box and not self.closed:
            self._check_ticks(levels, places, start)
        try:
            return self.vocabulary.codes(levels)
        except TooManyLevels:
            new = [place for place, level in enumerate(levels) if level is not None and level not in self.vocabulary]
            raise self.overflow(start + int(np.argmax(np.isin(places, new))) + 1) from None

    def _check_ticks(self, levels: Sequence[Any], places: np.ndarray, start: int) -> None:
        """Raise a contradiction at a second value: then the column is not a tick box, and missing is no category."""
        for place, level in enumerate(levels):
            if level is not None and level != self.plan.constant:
                reason = f"not always the same: {wording.cell(level)}"
                raise Contradiction(self.plan.key, row_of(places, place, start), reason, Becomes.LEVELS)

    def _level(self, value: Any, place: int, places: np.ndarray, start: int) -> Any:
        """The number a cell stands for; a cell that is none changes what the column is."""
        level = number_of(value.strip()) if isinstance(value, str) else value
        if level is None and value is not None:
            reason = f"not only numbers: {wording.cell(value)}"
            raise Contradiction(self.plan.key, row_of(places, place, start), reason, Becomes.WORDS)
        if isinstance(level, float) and math.isinf(level):
            raise too_large(self.plan.key, row_of(places, place, start) - 1, level)
        if isinstance(level, float) and not self.plan.field.declared:
            reason = f"not only whole numbers: {level}"
            raise Contradiction(self.plan.key, row_of(places, place, start), reason, Becomes.NUMBERS)
        return None if level in self.words.numbers else level

    def overflow(self, row: int) -> Contradiction:
        """The contradiction of more levels than there is room for."""
        plan = self.plan
        if plan.field.wide:
            return Contradiction(plan.key, row, "more levels than are kept apart", Becomes.CAPPED)
        if plan.number_like and not plan.field.declared:
            return Contradiction(plan.key, row, f"whole numbers, more than {NARROW_LEVELS} distinct", Becomes.NUMBERS)
        return Contradiction(plan.key, row, f"more than {NARROW_LEVELS} levels", Becomes.WIDE)


def row_of(places: np.ndarray, place: int, start: int) -> int:
    """The number of the first row that holds a value, counted from 1 over the whole table."""
    return start + int(np.argmax(places == place)) + 1
