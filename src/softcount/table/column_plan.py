"""How each column is to be read, where its numbers lie, and what happens when later rows contradict the first ones."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from softcount.records import dataclass
from softcount.sources import wording
from softcount.table.names import apart
from softcount.table.schema import BLANK, MOST_LEVELS, OTHER, Derived, Field, Key, Kind

FARTHEST = 2.0**120
"""Units that a number may lie from its anchor: squares of so many still add up, whatever rows weigh."""
LOOKED_AT = 1_024
"""Rows that decide an anchor: the median of so many is near enough for any column."""


class Anchor(NamedTuple):
    """Statistics are of `(x - at) * scale`; `scale` is a power of two, so that multiplying by it is exact."""

    at: float = 0.0
    scale: float = 1.0


NO_ANCHOR = Anchor()
"""For columns without a number to go by."""


def anchor_of(values: np.ndarray) -> Anchor:
    """Median of the first finite values, and the power of two that makes the typical distance from it about 1."""
    finite = values[np.isfinite(values)][:LOOKED_AT]
    if not len(finite):
        return NO_ANCHOR
    at, scale = anchors_of(finite[:, None])
    return Anchor(float(at[0]), float(scale[0]))


def log_anchor_of(values: np.ndarray) -> Anchor:
    """The anchor of the logarithms of what is above zero."""
    return anchor_of(np.log(values[np.isfinite(values) & (values > 0)][:LOOKED_AT]))


def anchors_of(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Anchors and scales of all columns of a block of finite numbers."""
    # Work on values divided by their largest power of two: differences of numbers near 1e308 would overflow.
    largest = np.frexp(np.max(np.abs(block), axis=0))[1]
    unit = np.ascontiguousarray(np.ldexp(block, -largest).T)  # medians of long rows are found twice as fast
    middle = medians(unit)
    apart = np.abs(unit - middle[:, None])
    half, most = medians(apart), np.max(apart, axis=1)
    typical = np.select([half > 0, most > 0], [half, most], np.abs(middle))
    typical = np.maximum(typical, most / FARTHEST)
    power = np.where(typical > 0, -np.round(np.log2(np.where(typical > 0, typical, 1.0))) - largest, 0)
    scale = np.ldexp(1.0, np.clip(power, -1_022, 1_023).astype(int))
    return np.ldexp(middle, largest), scale


def medians(rows: np.ndarray) -> np.ndarray:
    """The median of each row of finite numbers, as `np.median` has it, which loads masked arrays to ask for NaN."""
    last = rows.shape[1] // 2
    first = last - 1 + rows.shape[1] % 2
    found: np.ndarray = np.partition(rows, sorted({first, last}), axis=1)[:, [first, last]].mean(axis=1)
    return found


class Becomes(StrEnum):
    """What a column turns into when a row contradicts what was guessed of it."""

    WORDS = "categories spelt as text"
    NUMBERS = "numbers"
    AMOUNTS = "numbers of 0 or more"
    LEVELS = "categories"
    WIDE = "many categories"
    CAPPED = "the most frequent categories and one for the rest"
    FARTHER = "numbers in larger units"


class Contradiction(Exception):
    """A row that does not fit what the first rows said of its column: start again with `table.widened(this)`."""

    def __init__(self, key: Key, row: int, reason: str, becomes: Becomes) -> None:
        super().__init__(f"{wording.column(key)}, row {row}: {reason}")
        self.key = key
        self.row = row
        self.reason = reason
        self.becomes = becomes

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, self.row, self.reason, self.becomes)


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """One column: its field, and what its cells are read as.

    `as_numbers`: levels are numbers, also where cells are text. `constant`: the one value seen so far. `plain` and
    `logged` are anchors of the numbers and of their logarithms. `capped`: the only levels kept apart.
    `number_like`: its cells were numbers when looked at, so that it can fall back to being real. `extra`: levels that
    exist besides those seen. `seen`: levels found when looking, in order. `most_levels` are kept apart at most.
    `guessed`: earlier rows suggested its kind, which stays: a number it cannot hold is no evidence.
    """

    field: Field
    as_numbers: bool = False
    number_like: bool = False
    constant: object = None
    plain: Anchor | None = None
    logged: Anchor = NO_ANCHOR
    capped: tuple[object, ...] | None = None
    extra: tuple[object, ...] = ()
    seen: tuple[object, ...] = ()
    most_levels: int = MOST_LEVELS
    guessed: bool = False

    @property
    def key(self) -> Any:
        return self.field.key

    def anchored(self, values: np.ndarray) -> ColumnPlan:
        """The same column with anchors of these numbers where it has none yet."""
        logged = log_anchor_of(values) if self.logged == NO_ANCHOR else self.logged
        return replace(self, plain=self.plain or anchor_of(values), logged=logged)

    def as_kind(self, kind: Kind, why: str, *, used: bool = True) -> ColumnPlan:
        """The same column read as another kind, with the anchor that kind needs."""
        anchor = self.logged if kind is Kind.POSITIVE else self.plain or NO_ANCHOR
        constant = kind is Kind.CONSTANT and self.constant is not None
        derived = Derived(constant=self.constant) if constant else None
        changed = replace(
            self.field, kind=kind, why=why, used=used, anchor=anchor.at, scale=anchor.scale, derived=derived
        )
        return replace(self, field=changed)

    def after(self, why: Contradiction) -> ColumnPlan:
        """How to read the column once a row has contradicted this plan."""
        if self.is_tick_box:
            return replace(self, extra=()).after(why)
        said = f"{why.reason} (row {why.row})"
        if why.becomes is Becomes.WORDS:
            return replace(self.as_kind(Kind.CATEGORICAL, said), as_numbers=False, number_like=False, seen=())
        if why.becomes in (Becomes.NUMBERS, Becomes.AMOUNTS):
            kind = Kind.REAL if why.becomes is Becomes.NUMBERS else Kind.AMOUNT
            return replace(self.as_kind(kind, said), as_numbers=False)
        if why.becomes is Becomes.WIDE:
            return replace(self, field=replace(self.field, wide=True))
        return self._varying(said)

    def reaching(self, most: float) -> ColumnPlan:
        """The same column in units in which a distance of `most` from the anchor is not too far."""
        scale = min(self.field.scale, float(np.ldexp(1.0, -np.frexp(most / FARTHEST)[1])))
        plain = Anchor(self.field.anchor, scale)
        return replace(self, field=replace(self.field, scale=scale), plain=plain)

    @property
    def is_tick_box(self) -> bool:
        """Whether missing cells are a category, because the column seemed to have one value or none."""
        return BLANK in self.extra and not self.field.declared

    def _varying(self, said: str) -> ColumnPlan:
        if isinstance(self.constant, float):
            return self.as_kind(Kind.REAL, said)
        as_numbers = not isinstance(self.constant, str | bool)
        return replace(self.as_kind(Kind.CATEGORICAL, said), as_numbers=as_numbers, number_like=as_numbers)

    def cap(self, levels: list[object]) -> ColumnPlan:
        """The same column with only these levels kept apart."""
        kept = levels[: self.most_levels]
        kept.append(apart(OTHER, set(kept)))
        return replace(self, capped=tuple(kept), field=replace(self.field, wide=True))
