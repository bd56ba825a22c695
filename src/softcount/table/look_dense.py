"""Two-dimensional arrays of numbers: looked at briefly, and handed over without copying where nothing need change."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.sources.arrow_columns import CellType
from softcount.sources.in_memory import LOOK_WHOLE
from softcount.table.cell_values import too_large
from softcount.table.column_facts import counted_rows, number_facts
from softcount.table.column_plan import LOOKED_AT, Anchor, ColumnPlan, anchor_of, anchors_of, log_anchor_of
from softcount.table.levels_or_numbers import FEWEST, LEAST_ROWS
from softcount.table.look import IGNORE, Request, keep_something, plan_of
from softcount.table.number_kinds import is_few
from softcount.table.schema import Field, Kind

NARROW = 1_024
"""Widest range of values counted in bins for all columns at once."""

ANCHORED_BY = 256
"""Rows, spread over the first ones, whose medians are anchors: of all of them that took a third of a small fit."""

LARGEST = 2**62
"""Beyond this, differences might not fit."""


def look_dense(array: np.ndarray, request: Request) -> tuple[list[ColumnPlan], list[str]]:
    """How to read each column of an array: floats are real, whole numbers are decided by looking."""
    looked = _look_floats(array, request) if array.dtype.kind == "f" else _look_wholes(array, request)
    return keep_something([plan for plan, _ in looked], [note for _, note in looked if note])


def _look_wholes(array: np.ndarray, request: Request) -> list[tuple[ColumnPlan, str]]:
    """Few levels per column, the usual case, are found for all columns at once; other columns one by one."""
    plain = array.dtype.kind in "iu" and not request.words.numbers
    head, kinds = array[:LOOK_WHOLE], request.kinds
    few = _few_levels(head) if plain else {}
    counted, rows = None, len(head)
    if rows < LEAST_ROWS or any(len(few.get(place, ())) not in range(1, FEWEST) for place in range(array.shape[1])):
        counted = _counted_dense_rows(head, request)
    if counted is not None:
        rows = len(counted)
        few = {place: x for place, x in few.items() if is_few(len(x), rows)}
    for place in {*kinds, *request.levels}:
        if kinds.get(place) is not Kind.CATEGORICAL or place in request.levels:
            few.pop(place, None)
    few = {place: x for place, x in few.items() if place in kinds or len(x) < FEWEST or rows < LEAST_ROWS}
    return [
        (_coded(place, few[place], place in kinds), "") if place in few else _look_whole(array, place, request, counted)
        for place in range(array.shape[1])
    ]


def _coded(place: int, levels: list[int], declared: bool) -> ColumnPlan:
    why = "declared" if declared else f"whole numbers, {len(levels)} distinct"
    field = Field(place, Kind.CATEGORICAL, why, declared=declared)
    return ColumnPlan(field, as_numbers=True, number_like=True, seen=tuple(levels))


def _counted_dense_rows(head: np.ndarray, request: Request) -> np.ndarray | None:
    """The rows that count as evidence of what the columns are; None is every row, once."""
    if not head.size:
        return None
    sides = [] if request.groups is None else [request.groups[: len(head)].astype(np.int64)]
    columns = list(np.ascontiguousarray(head.T, dtype=np.int64))
    return counted_rows([*columns, *sides], None if request.weights is None else request.weights[: len(head)])


def _few_levels(head: np.ndarray) -> dict[Any, list[int]]:
    """The levels of those columns that have few enough to be categories: what `is_few` says, for all at once."""
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


def _look_whole(array: np.ndarray, place: int, request: Request, counted: np.ndarray | None) -> tuple[ColumnPlan, str]:
    cells = CellType.TRUTH if array.dtype.kind == "b" else CellType.WHOLE
    column = array[:LOOK_WHOLE, place].astype(np.float64)
    for mark in request.words.numbers:
        column[column == mark] = np.nan
    facts = number_facts(place, column, cells)
    if facts.different <= 1 and _varies(array[:, place]):  # it is constant only if no row varies
        facts = replace(facts, different=2, only=None)
    return plan_of(facts, request, rows=counted)


def _varies(column: np.ndarray, step: int = 65_536) -> bool:
    first = column[0]
    return any(bool(np.any(column[at : at + step] != first)) for at in range(0, len(column), step))


def _look_floats(array: np.ndarray, request: Request) -> list[tuple[ColumnPlan, str]]:
    head = np.asarray(array[:LOOKED_AT], dtype=np.float64)
    plain = _plain_anchors(head)
    constant = _constant_columns(array, head)
    spoken = {*request.kinds, *request.levels}
    simple = bool(np.isfinite(head).all())

    def look(place: int) -> tuple[ColumnPlan, str]:
        said = request.kinds.get(place)
        if constant[place] or (place in spoken and not (simple and said == Kind.REAL and place not in request.levels)):
            return _look_float(array, place, head, plain[place], request)
        anchor, declared = plain[place], said is not None
        why = "declared" if declared else "numbers"
        kept = Field(place, Kind.REAL, why, anchor=anchor.at, scale=anchor.scale, declared=declared)
        return ColumnPlan(kept, number_like=True, plain=anchor), ""

    return [look(place) for place in range(array.shape[1])]


def _plain_anchors(head: np.ndarray) -> list[Anchor]:
    if math.isfinite(float(head.sum())):
        at, scale = anchors_of(head[:: max(1, len(head) // ANCHORED_BY)])
        return [Anchor(*pair) for pair in zip(at.tolist(), scale.tolist(), strict=True)]
    return [anchor_of(head[:, place]) for place in range(head.shape[1])]


def _constant_columns(array: np.ndarray, head: np.ndarray) -> list[bool]:
    """Which columns hold one value, or none, in every row; those that vary early cost one look at the first rows."""
    still = ~(np.fmin.reduce(head, axis=0) < np.fmax.reduce(head, axis=0))
    for place in np.flatnonzero(still):
        column = np.asarray(array[:, place])
        known = column[~np.isnan(column)]
        still[place] = not len(known) or not _varies(known)
    found: list[bool] = still.tolist()
    return found


def _look_float(
    array: np.ndarray, place: int, head: np.ndarray, anchor: Anchor, request: Request
) -> tuple[ColumnPlan, str]:
    column = head[:, place]
    forced = request.kinds.get(place)
    if np.isinf(column).any() and forced != IGNORE:
        row = int(np.argmax(np.isinf(column)))
        raise too_large(place, row, float(column[row]))
    facts = number_facts(place, column, CellType.FLOAT)
    if facts.different == 0:  # nothing in the first rows: look at all
        facts = number_facts(place, np.asarray(array[:, place], dtype=np.float64), CellType.FLOAT)
    plan, note = plan_of(facts, request)
    field = replace(plan.field, cells="double")
    return replace(plan, field=field, plain=anchor, logged=log_anchor_of(column)), note
