"""Two-dimensional arrays of numbers: looked at briefly, and handed over without copying where nothing need change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.table.anchors import LOOKED_AT, Anchor, anchor_of, anchors_of, log_anchor_of
from softcount.table.arrays import arrow_of
from softcount.table.columns import Cells, too_large
from softcount.table.facts import Facts, number_facts
from softcount.table.look import IGNORE, Request, is_few, keep_something, plan_of
from softcount.table.plan import Plan
from softcount.table.schema import Field, Key, Kind
from softcount.table.source import Piece, PlainRows, Wanted, chunk_rows_for, refuse_empty

LOOK_WHOLE = 4_096
"""Rows of an array of whole numbers that are looked at."""

NARROW = 1_024
"""Widest range of values counted in bins for all columns at once."""

LONG, LONG_CHUNK = 262_144, 65_536
"""Rows from which an array, which costs nothing to cut, comes in longer chunks: each costs some 0.2 ms of Python."""

LARGEST = 2**62
"""Beyond this, differences might not fit."""


@dataclass
class DenseSource(PlainRows):
    """An array with one row per row; a piece of it loads as the array itself, for `DenseEncoder` to cut."""

    array: np.ndarray

    named = False
    text_file = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.array = _checked(self.array)
        rows, width = self.array.shape
        self.n_rows: int | None = rows
        self.keys: list[Any] = list(range(width))
        self.chunk_rows = LONG_CHUNK if rows > LONG else chunk_rows_for(rows)

    def head(self, keys: Sequence[Any]) -> Mapping[Key, Any]:
        return {key: arrow_of(self.array[:LOOK_WHOLE, key]) for key in keys}

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[Piece]:
        rows = len(self.array)
        for start in range(0, rows, self.chunk_rows):
            stop = min(start + self.chunk_rows, rows)
            yield Piece(start, stop - start, partial(self._rows, start, stop))

    def _rows(self, start: int, stop: int) -> np.ndarray:
        return self.array[start:stop]


def _checked(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported: a table holds real numbers, counts and categories.")
    if array.ndim != 2:
        raise DataError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: array.reshape(-1, 1) if it is "
            "one column, array.reshape(1, -1) if it is one row."
        )
    refuse_empty(*array.shape)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def look_dense(array: np.ndarray, request: Request) -> tuple[list[Plan], list[str]]:
    """How to read each column of an array: floats are real, whole numbers are decided by looking."""
    looked = _look_floats(array, request) if array.dtype.kind == "f" else _look_wholes(array, request)
    return keep_something([plan for plan, _ in looked], [note for _, note in looked if note])


def _look_wholes(array: np.ndarray, request: Request) -> list[tuple[Plan, str]]:
    """Few levels per column, the usual case, are found for all columns at once; other columns one by one."""
    plain = array.dtype.kind in "iu" and not request.words.numbers
    few = _few_levels(array[:LOOK_WHOLE]) if plain else {}
    kinds = request.kinds
    for place in {*kinds, *request.levels}:
        if kinds.get(place) is not Kind.CATEGORICAL or place in request.levels:
            few.pop(place, None)
    return [
        (_coded(place, few[place], place in kinds), "") if place in few else _look_whole(array, place, request)
        for place in range(array.shape[1])
    ]


def _coded(place: int, levels: list[int], declared: bool) -> Plan:
    why = "declared" if declared else f"whole numbers, {len(levels)} distinct"
    field = Field(place, Kind.CATEGORICAL, why, declared=declared)
    return Plan(field, as_numbers=True, number_like=True, seen=tuple(levels))


def _few_levels(head: np.ndarray) -> dict[Any, list[int]]:
    """The levels of those columns that have few enough to be categories: what `look.is_few` says, for all at once."""
    low, high = head.min(axis=0), head.max(axis=0)
    narrow = np.flatnonzero((high <= LARGEST) & (low >= -LARGEST))
    narrow = narrow[high[narrow].astype(np.int64) - low[narrow].astype(np.int64) < NARROW]
    if not len(narrow):
        return {}
    block = head if len(narrow) == head.shape[1] else head[:, narrow]
    steps = block.astype(np.int64) - (low[narrow].astype(np.int64) - NARROW * np.arange(len(narrow)))
    seen = np.bincount(steps.ravel(), minlength=NARROW * len(narrow)).reshape(-1, NARROW) > 0
    counts = seen.sum(axis=1).tolist()
    return {
        int(place): (np.flatnonzero(seen[row]) + int(low[place])).tolist()
        for row, place in enumerate(narrow)
        if counts[row] > 1 and is_few(counts[row], len(head))
    }


def _look_whole(array: np.ndarray, place: int, request: Request) -> tuple[Plan, str]:
    cells = Cells.TRUTH if array.dtype.kind == "b" else Cells.WHOLE
    facts = number_facts(place, array[:LOOK_WHOLE, place].astype(np.float64), cells)
    for mark in request.words.numbers:
        facts = number_facts(place, facts.values[facts.values != mark], cells)  # type: ignore[index]
    if facts.different <= 1:
        facts = _after_all_rows(array, facts)
    return plan_of(facts, request)


def _after_all_rows(array: np.ndarray, facts: Facts) -> Facts:
    """Facts of a column whose first rows never vary: it is constant only if no row varies."""
    if not _varies(array[:, facts.key]):
        return facts
    return replace(facts, different=2, only=None)


def _varies(column: np.ndarray, step: int = 65_536) -> bool:
    first = column[0]
    return any(bool(np.any(column[at : at + step] != first)) for at in range(0, len(column), step))


def _look_floats(array: np.ndarray, request: Request) -> list[tuple[Plan, str]]:
    head = np.asarray(array[:LOOKED_AT], dtype=np.float64)
    plain = _plain_anchors(head)
    constant = _constant_columns(array, head)
    spoken = {*request.kinds, *request.levels}
    return [
        _look_float(array, place, head, plain[place], request)
        if place in spoken or constant[place]
        else (_real(place, plain[place]), "")
        for place in range(array.shape[1])
    ]


def _real(place: int, anchor: Anchor) -> Plan:
    kept = Field(place, Kind.REAL, "numbers", anchor=anchor.at, scale=anchor.scale)
    return Plan(kept, number_like=True, plain=anchor)


def _plain_anchors(head: np.ndarray) -> list[Anchor]:
    if math.isfinite(float(head.sum())):
        at, scale = anchors_of(head)
        return [Anchor(*pair) for pair in zip(at.tolist(), scale.tolist(), strict=True)]
    return [anchor_of(head[:, place]) for place in range(head.shape[1])]


def _constant_columns(array: np.ndarray, head: np.ndarray) -> list[bool]:
    """Which columns hold one value, or none, in every row; those that vary early cost one look at the first rows."""
    still = ~(np.fmin.reduce(head, axis=0) < np.fmax.reduce(head, axis=0))
    for place in np.flatnonzero(still):
        column = np.asarray(array[:, place])
        known = column[~np.isnan(column)]
        still[place] = not len(known) or not _varies(known)
    return still.tolist()


def _look_float(array: np.ndarray, place: int, head: np.ndarray, anchor: Anchor, request: Request) -> tuple[Plan, str]:
    column = head[:, place]
    forced = request.kinds.get(place)
    if np.isinf(column).any() and forced != IGNORE:
        row = int(np.argmax(np.isinf(column)))
        raise too_large(place, row, float(column[row]))
    facts = number_facts(place, column, Cells.FLOAT)
    if facts.different == 0:  # nothing in the first rows: look at all
        facts = number_facts(place, np.asarray(array[:, place], dtype=np.float64), Cells.FLOAT)
    plan, note = plan_of(facts, request)
    return replace(plan, plain=anchor, logged=log_anchor_of(column)), note
