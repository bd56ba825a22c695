"""Categories of columns: vocabularies, recoding of integers, and the most frequent categories."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.frames import arrow_of, level_of, number_of
from softcount.sources.source import Key
from softcount.table.cell_values import MissingWords, distinct, numbers, too_large
from softcount.table.schema import BLANK, MOST_LEVELS, NARROW_LEVELS, Becomes, ColumnPlan, Contradiction


class TooManyLevels(Exception):
    pass


_learning = Lock()
"""Held while a vocabulary learns categories, which is rare, or is read as a whole."""


class Vocabulary:
    """Codes 1, 2, ... for the categories of a column; 0 is missing.

    An open vocabulary grows, from any number of threads. A closed one gives unknown categories the code after its last.
    It also matches values of another type by spelling (1 for "1").

    >>> Vocabulary(["no", "yes"], closed=True).codes(["yes", "maybe", None]).tolist()
    [2, 3, 0]
    """

    def __init__(
        self, levels: Iterable[object] = (), *, closed: bool = False, capped: bool = False, room: int = MOST_LEVELS
    ) -> None:
        self.closed = closed or capped
        self.room = room
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
        with _learning:
            return list(self._codes)

    def __getstate__(self) -> dict[str, Any]:
        with _learning:
            return {**vars(self), "_codes": dict(self._codes)}

    def codes(self, values: Sequence[object]) -> np.ndarray:
        """Return the code of each value, 0 for None; an open vocabulary learns new values."""
        find = self._find if self.closed else self._codes.get
        found = [0 if value is None else find(value) for value in values]
        if None in found:
            with _learning:
                for place, value in enumerate(values):
                    if found[place] is None:
                        if value not in self._codes and len(self._codes) >= self.room:
                            raise TooManyLevels
                        found[place] = self._codes.setdefault(value, len(self._codes) + 1)
        return np.array(found, dtype=np.int32)

    def _find(self, value: object) -> int:
        code = self._codes.get(value)
        if code is None and self._spelt:
            code = self._spelt.get(str(value))
        if code is None and self._spelt and isinstance(value, str):
            code = self._codes.get(number_of(value))
        return self.beyond if code is None else code


def in_order(levels: Sequence[object], capped: bool = False) -> list[object]:
    """Sort categories: numbers by size, then words; if `capped`, the last one, which all others share, stays last."""
    shared = levels[len(levels) - capped :]
    return [*sorted(levels[: len(levels) - capped], key=lambda level: (isinstance(level, str), level)), *shared]


def order_codes(levels: Sequence[object], ordered: Sequence[object]) -> np.ndarray:
    """Return the new code of every old code if `levels` are put in the order `ordered`; missing stays 0."""
    rank = dict(zip(ordered, range(1, 1 + len(ordered)), strict=True))
    return np.array([0, *map(rank.__getitem__, levels)], dtype=np.int32)


class LevelCoder(Struct):
    """Assigns codes to the distinct values of a column; a value that contradicts its plan raises `Contradiction`."""

    plan: ColumnPlan
    vocabulary: Vocabulary
    words: MissingWords
    closed: bool = False
    blank: int = 0
    """The code of missing cells: 0, or that of `BLANK` if the column has that category."""

    @classmethod
    def of(cls, plan: ColumnPlan, words: MissingWords, closed: bool = False) -> LevelCoder:
        if closed:
            known = Vocabulary(plan.field.levels, closed=True, capped=len(plan.field.levels) > plan.most_levels)
        elif plan.capped is not None:
            known = Vocabulary(plan.capped, capped=True)
        else:
            known = Vocabulary(
                map(level_of, (*plan.seen, *plan.extra)), room=plan.most_levels if plan.field.wide else NARROW_LEVELS
            )
        here = (words.among_numbers if plan.as_numbers else words).among(plan.field.missing)
        levels = known.levels
        if not levels:
            return cls(plan, known, here, closed)
        here = replace(here, missing=here.missing.difference(levels))
        return cls(plan, known, here, closed, int(known.codes([BLANK])[0]) if BLANK in known else 0)

    def codes(self, column: Any, start: int) -> np.ndarray:
        """Return one code per row, 0 if missing."""
        values, places = distinct(column, self.words)
        levels = values
        if self.plan.as_numbers and not self.closed:
            levels = [self._level(value, place, places, start) for place, value in enumerate(values)]
        if self.plan.is_tick_box and not self.closed:
            # A second value: the column is not a tick box, and missing is not a category.
            for place, level in enumerate(levels):
                if level is not None and level != self.plan.constant:
                    reason = f"not always the same: {wording.cell(level)}"
                    raise Contradiction(self.plan.key, row_of(places, place, start), reason, Becomes.LEVELS)
        try:
            table = self.vocabulary.codes(levels)
        except TooManyLevels:
            new = [place for place, level in enumerate(levels) if level is not None and level not in self.vocabulary]
            raise self.overflow(start + int(np.argmax(np.isin(places, new))) + 1) from None
        codes: np.ndarray = np.append(table, 0).astype(np.int32)[places]
        return np.where(codes == 0, np.int32(self.blank), codes) if self.blank else codes

    def learn(self, levels: Sequence[Any], start: int) -> None:
        """Add the categories of a part that starts at this row."""
        try:
            self.vocabulary.codes(levels)
        except TooManyLevels:
            raise self.overflow(start + 1) from None

    def _level(self, value: Any, place: int, places: np.ndarray, start: int) -> Any:
        """Return the number in a cell; any other value raises a contradiction."""
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
        plan = self.plan
        if plan.field.wide:
            return Contradiction(plan.key, row, "too many categories", Becomes.CAPPED)
        if plan.number_like and not plan.field.declared:
            return Contradiction(plan.key, row, f"whole numbers, more than {NARROW_LEVELS} distinct", Becomes.NUMBERS)
        return Contradiction(plan.key, row, f"more than {NARROW_LEVELS} levels", Becomes.WIDE)


def row_of(places: np.ndarray, place: int, start: int) -> int:
    """Return the number of the first row with this value, counted from 1 over the whole table."""
    return start + int(np.argmax(places == place)) + 1


# -- columns of labels and weights


class SideColumns(Struct, frozen=True):
    """The columns of labels and weights of a table."""

    labels: LevelCoder | None
    weight: Key | None
    words: MissingWords

    def labels_in(self, raw: Any, start: int, given: np.ndarray | None = None) -> np.ndarray | None:
        """Return the class codes of loaded rows, or `given` if no column holds labels.

        Codes are 0, 1, ... in order of first occurrence, and `UNKNOWN` (-1) if the label is missing.
        """
        if self.labels is None:
            return given
        key: Any = self.labels.plan.key
        column = raw[key] if isinstance(raw, Mapping) else arrow_of(raw[:, key])
        return self.labels.codes(column, start) - 1

    def weights_in(self, raw: Any, start: int) -> np.ndarray:
        """Return the weights of loaded rows, which a column holds."""
        key: Any = self.weight
        column = raw[key] if isinstance(raw, Mapping) else arrow_of(raw[:, key])
        found = numbers(column, self.words, key, start, padded=True)
        check_weight_values(found, start, f"the weight ({wording.column(key)})")
        return found


def check_weight_values(weights: np.ndarray, start: int, name: str = "the weight") -> None:
    total = float(weights.sum()) if len(weights) else 0.0
    if len(weights) and (not math.isfinite(total) or float(weights.min()) < 0):
        bad = ~np.isfinite(weights) | (weights < 0)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"{name} of row {start + row + 1} is {weights[row]}. Weights are finite and not negative.")


# -- integer columns of an array to one-byte codes, all columns of a chunk together

WINDOW = 1_024
"""Widest range of values that is looked up in a table; columns with a wider range are coded one by one."""

SMALL = 200_000
"""Cells below which compiled loops do not repay the second that loading Numba takes."""


def recode_run(values: np.ndarray, low: int, size: int, codes: np.ndarray) -> bool:
    """Code cells low, low + 1, ... as 1, 2, ...; False if a cell is outside (NumPy version of the compiled kernel)."""
    inside = bool(np.all((values >= low) & (values <= low + size - 1)))
    if inside:
        codes[:] = values.astype(np.int64) - (low - 1)
    return inside


def recode_table(
    block: np.ndarray, columns: np.ndarray, low: np.ndarray, tables: np.ndarray, codes: np.ndarray
) -> bool:
    """Look cells up in the tables; False if a cell has no code (NumPy version of the compiled kernel)."""
    beyond = tables.shape[1] - 1
    for j, column in enumerate(columns):
        steps = block[:, column].astype(np.int64) - low[j]
        steps[(steps < 0) | (steps > beyond)] = beyond
        codes[:, j] = tables[j, steps]
    return bool(np.all(codes > 0))


class Tables(Struct, frozen=True):
    """Look-up tables of the categories known so far, for the columns narrow enough to have one.

    `fast` are the coders with a table, `slow` the others. `run` (first category, number of categories) is set if every
    column of the array has the same consecutive categories, coded in order: then no table is needed.
    """

    fast: tuple[int, ...]
    slow: tuple[int, ...]
    columns: np.ndarray
    low: np.ndarray
    codes: np.ndarray
    run: tuple[int, int] | None


class Recoder:
    """Codes the integer columns of an array that have few categories, and learns categories as they appear."""

    def __init__(self, array: np.ndarray, coders: Sequence[LevelCoder], places: Sequence[int]) -> None:
        self.coders = coders
        self.places = places
        self.width = array.shape[1]
        self._boolean = array.dtype.kind == "b"
        self._compiled = array.shape[0] * len(coders) >= SMALL
        if coders and not coders[0].closed:
            with suppress(TooManyLevels):  # raised again, with its row, when the chunk is coded
                for coder, place in zip(coders, places, strict=True):
                    if not coder.plan.seen:
                        coder.vocabulary.codes(self._values(np.unique(array[:4_096, place])))
        self._tables = self._build()

    def _values(self, values: np.ndarray) -> list[Any]:
        cells: list[Any] = values.astype(bool).tolist() if self._boolean else values.tolist()
        return cells

    def _build(self) -> Tables:
        levels = [coder.vocabulary.levels for coder in self.coders]
        fast = tuple(place for place, known in enumerate(levels) if _fits(known))
        slow = tuple(place for place in range(len(levels)) if place not in set(fast))
        low = np.array([min(levels[place], default=0) for place in fast], dtype=np.int64)
        codes = np.zeros((len(fast), WINDOW + 1), dtype=np.uint8)
        for j, place in enumerate(fast):
            steps = [int(level) - int(low[j]) for level in levels[place]]
            codes[j, steps] = np.arange(1, len(steps) + 1)
        columns = np.array([self.places[place] for place in fast], dtype=np.int64)
        whole = columns.tolist() == list(range(self.width))
        first = levels[fast[0]] if whole and fast else []
        same = bool(first) and all(levels[place] == first for place in fast)
        steady = same and all(later - earlier == 1 for earlier, later in pairwise(first))
        return Tables(fast, slow, columns, low, codes, (int(first[0]), len(first)) if steady else None)

    def codes(self, block: np.ndarray, start: int) -> tuple[np.ndarray, list[int]]:
        """Return one-byte codes of a block, and the number of cells with unseen categories in each column."""
        raw = block.view(np.uint8) if self._boolean else block
        while True:
            tables = self._tables
            part, known = self._look_up(tables, np.ascontiguousarray(raw))
            unseen = [0] * len(self.coders)
            if not known:
                for j, place in enumerate(tables.fast):
                    coder, new = self.coders[place], part[:, j] == 0
                    if coder.closed:
                        part[new, j] = coder.vocabulary.beyond
                        unseen[place] = int(np.count_nonzero(new))
                    elif new.any():
                        try:
                            coder.vocabulary.codes(self._values(np.unique(raw[new, self.places[place]])))
                        except TooManyLevels:
                            raise coder.overflow(start + int(np.argmax(new)) + 1) from None
                if not self.coders[0].closed:
                    self._tables = self._build()
                    continue
            if not tables.slow:
                return part, unseen
            out = np.empty((len(block), len(self.coders)), dtype=np.uint8)
            out[:, tables.fast] = part
            for slow in tables.slow:
                coder = self.coders[slow]
                found = coder.codes(arrow_of(block[:, self.places[slow]]), start)
                out[:, slow] = found
                if coder.closed:
                    unseen[slow] = int(np.count_nonzero(found == coder.vocabulary.beyond))
            return out, unseen

    def _look_up(self, tables: Tables, raw: np.ndarray) -> tuple[np.ndarray, bool]:
        by_run, by_table = recode_run, recode_table
        if self._compiled:
            from softcount.kernels import csv_cells

            by_run, by_table = csv_cells.recode_run, csv_cells.recode_table
        out = np.empty((len(raw), len(tables.fast)), dtype=np.uint8)
        if tables.run is not None and by_run(raw.reshape(-1), *tables.run, out.reshape(-1)):
            return out, True
        if not tables.fast:
            return out, True
        return out, bool(by_table(raw, tables.columns, tables.low, tables.codes, out))


def _fits(levels: Sequence[Any]) -> bool:
    """Whether categories are integers within a range of `WINDOW`."""
    if not all(isinstance(level, int) and -(2**62) < level < 2**62 for level in levels):
        return False
    return not levels or max(levels) - min(levels) < WINDOW


# -- the most frequent categories of a column that has too many

EXACT = 4
"""Multiple of the number of kept categories up to which all are counted exactly."""
CELLS, LINES = 1 << 20, 4
"""Cells per line of the count-min sketch, and its lines."""

LevelCounts = Iterable[tuple[list[Any], np.ndarray]]
"""Categories of some rows and the weight of each, piece by piece."""


class KeptLevels(NamedTuple):
    """The categories that are kept, and how many others share one code; `at_least`: that number is a lower bound."""

    levels: list[Any]
    others: int
    at_least: bool


def frequent_levels(counted: Callable[[], LevelCounts], most: int, declared: Iterable[Any] = ()) -> KeptLevels:
    """Return the declared categories and the most frequent others, `most` in all; calls `counted` up to four times.

    >>> rows = [(["b", "a", "c"], np.array([2.0, 1.0, 1.0])), (["c", "d"], np.array([1.0, 1.0]))]
    >>> frequent_levels(lambda: rows, 3)
    KeptLevels(levels=['b', 'c', 'a'], others=1, at_least=False)
    """
    wanted = list(declared)[:most]
    known = set(wanted)
    room, limit = most - len(wanted), EXACT * most
    weights, levels = _weights(counted(), known, limit), -1
    if weights is None:
        candidates, levels = _candidates(counted, known, limit)
        weights = _weights(counted(), known, limit, candidates)
    assert weights is not None
    kept = _largest(weights, room)
    return KeptLevels(wanted + kept, max(levels, len(weights)) - len(kept), levels >= 0)


def _weights(counts: LevelCounts, known: set[Any], limit: int, only: set[Any] | None = None) -> dict[Any, float] | None:
    """Return the weight of every category that is not in `known`; None if there are more than `limit`."""
    found: dict[Any, float] = {}
    for levels, weights in counts:
        for level, weight in zip(levels, weights.tolist(), strict=True):
            if level not in known and (only is None or level in only):
                found[level] = found.get(level, 0.0) + weight
        if len(found) > limit:
            return None
    return found


def _candidates(counted: Callable[[], LevelCounts], known: set[Any], limit: int) -> tuple[set[Any], int]:
    """Return the categories with the largest count-min estimates, and a lower bound of the number of categories."""
    lines = np.zeros((LINES, CELLS))
    for levels, weights in counted():
        for line, cells in zip(lines, _cells(levels), strict=True):
            line += np.bincount(cells, weights, CELLS)
    best: dict[Any, float] = {}
    for levels, _ in counted():
        least = np.min([line[cells] for line, cells in zip(lines, _cells(levels), strict=True)], axis=0)
        best.update((level, at) for level, at in zip(levels, least.tolist(), strict=True) if level not in known)
        if len(best) > 2 * limit:
            best = {level: best[level] for level in _largest(best, limit)}
    # Categories may share a cell, so there are at least as many categories as occupied cells.
    return set(_largest(best, limit)), int(np.count_nonzero(lines, axis=1).max())


def _largest(weights: dict[Any, float], limit: int) -> list[Any]:
    """Return the categories with the largest weights; ties are sorted, numbers before text."""
    return heapq.nsmallest(limit, weights, key=lambda level: (-weights[level], isinstance(level, str), level))


def _cells(levels: list[Any]) -> np.ndarray:
    """Hash each category to one cell per line; unlike Python's hashes, the result is the same in every process."""
    digests = b"".join(blake2b(repr(level).encode(), digest_size=4 * LINES).digest() for level in levels)
    return np.frombuffer(digests, "<u4").reshape(-1, LINES).T % CELLS
