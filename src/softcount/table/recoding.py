"""Whole-number columns of an array to one-byte codes, all columns of a chunk at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from softcount.records import dataclass
from softcount.sources.arrow_columns import arrow_of
from softcount.table.levels import LevelCoder, TooManyLevels

WINDOW = 1_024
"""Widest range of values looked up in a table; columns that range further are coded one by one."""

SMALL = 200_000
"""Cells below which compiled loops are not worth the second it takes to wake Numba."""


def recode_run(values: np.ndarray, low: int, size: int, codes: np.ndarray) -> bool:
    """The NumPy twin of `softcount.kernels.recode.recode_run`."""
    inside = bool(np.all((values >= low) & (values <= low + size - 1)))
    if inside:
        codes[:] = values.astype(np.int64) - (low - 1)
    return inside


def recode_table(
    block: np.ndarray, columns: np.ndarray, low: np.ndarray, tables: np.ndarray, codes: np.ndarray
) -> bool:
    """The NumPy twin of `softcount.kernels.recode.recode_table`."""
    beyond = tables.shape[1] - 1
    for j, column in enumerate(columns):
        steps = block[:, column].astype(np.int64) - low[j]
        steps[(steps < 0) | (steps > beyond)] = beyond
        codes[:, j] = tables[j, steps]
    return bool(np.all(codes > 0))


@dataclass(frozen=True, slots=True)
class Tables:
    """Look-up tables of the levels known so far, for the columns narrow enough to have one.

    `fast` are the coders so served, `slow` the others. `run` is set where every column of the array has the same
    consecutive levels, coded in order: then no table is needed.
    """

    fast: tuple[int, ...]
    slow: tuple[int, ...]
    columns: np.ndarray
    low: np.ndarray
    codes: np.ndarray
    run: tuple[int, int] | None


class Recoder:
    """Codes for the narrow whole-number columns of an array, learning levels as they appear."""

    def __init__(self, array: np.ndarray, coders: Sequence[LevelCoder], places: Sequence[int]) -> None:
        self.coders = coders
        self.places = places
        self.width = array.shape[1]
        self._boolean = array.dtype.kind == "b"
        self._compiled = array.shape[0] * len(coders) >= SMALL
        if coders and not coders[0].closed:
            self._prefill(array[:4_096])
        self._tables = self._build()

    def _prefill(self, head: np.ndarray) -> None:
        for coder, place in zip(self.coders, self.places, strict=True):
            if coder.plan.seen:
                continue
            try:
                coder.vocabulary.codes(self._values(np.unique(head[:, place])))
            except TooManyLevels:
                return  # said again, with its row, when the chunk is coded

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
        run = _common_run([levels[place] for place in fast]) if whole else None
        return Tables(fast, slow, columns, low, codes, run)

    def codes(self, block: np.ndarray, start: int) -> tuple[np.ndarray, list[int]]:
        """One-byte codes of a block, and how many unseen levels each column of it held."""
        raw = block.view(np.uint8) if self._boolean else block
        while True:
            tables = self._tables
            part, known = self._look_up(tables, np.ascontiguousarray(raw))
            unseen = [0] * len(self.coders)
            if not known:
                if not self.coders[0].closed:
                    self._learn(tables, raw, part, start)
                    continue
                for j, place in enumerate(tables.fast):
                    new = part[:, j] == 0
                    part[new, j] = self.coders[place].vocabulary.beyond
                    unseen[place] = int(np.count_nonzero(new))
            if not tables.slow:
                return part, unseen
            out = np.empty((len(block), len(self.coders)), dtype=np.uint8)
            out[:, tables.fast] = part
            self._one_by_one(tables, block, out, unseen, start)
            return out, unseen

    def _look_up(self, tables: Tables, raw: np.ndarray) -> tuple[np.ndarray, bool]:
        by_run, by_table = recode_run, recode_table
        if self._compiled:
            from softcount.kernels import recode

            by_run, by_table = recode.recode_run, recode.recode_table
        out = np.empty((len(raw), len(tables.fast)), dtype=np.uint8)
        if tables.run is not None and by_run(raw.reshape(-1), *tables.run, out.reshape(-1)):
            return out, True
        if not tables.fast:
            return out, True
        return out, bool(by_table(raw, tables.columns, tables.low, tables.codes, out))

    def _learn(self, tables: Tables, raw: np.ndarray, part: np.ndarray, start: int) -> None:
        for j, place in enumerate(tables.fast):
            new = part[:, j] == 0
            if new.any():
                coder = self.coders[place]
                try:
                    coder.vocabulary.codes(self._values(np.unique(raw[new, self.places[place]])))
                except TooManyLevels:
                    raise coder.overflow(start + int(np.argmax(new)) + 1) from None
        self._tables = self._build()

    def _one_by_one(self, tables: Tables, block: np.ndarray, out: np.ndarray, unseen: list[int], start: int) -> None:
        for place in tables.slow:
            coder = self.coders[place]
            found = coder.codes(arrow_of(block[:, self.places[place]]), start)
            out[:, place] = found
            if coder.closed:
                unseen[place] = int(np.count_nonzero(found == coder.vocabulary.beyond))


def _fits(levels: Sequence[Any]) -> bool:
    """Whether levels are whole numbers close enough together for a table."""
    if not all(isinstance(level, int) and -(2**62) < level < 2**62 for level in levels):
        return False
    return not levels or max(levels) - min(levels) < WINDOW


def _common_run(levels: Sequence[Sequence[Any]]) -> tuple[int, int] | None:
    first = list(levels[0]) if levels else []
    if not first or any(later - earlier != 1 for earlier, later in pairwise(first)):
        return None
    return (int(first[0]), len(first)) if all(list(other) == first for other in levels) else None
