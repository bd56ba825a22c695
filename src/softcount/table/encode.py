"""Raw columns to chunks: levels to codes, numbers to float64, both checked against what the column is known to be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.table import wording
from softcount.table.arrays import arrow_of
from softcount.table.chunk import UNKNOWN
from softcount.table.columns import Cells, MissingWords, cells_of, distinct, flat, numbers, too_large
from softcount.table.numerals import level_of, number_of
from softcount.table.plan import Becomes, Contradiction, Plan
from softcount.table.schema import NARROW_LEVELS, Key, Kind
from softcount.table.source import Piece
from softcount.table.texts import TextColumn, bag_holes
from softcount.table.vocabulary import MOST_LEVELS, Full, Vocabulary


@dataclass(slots=True)
class Encoded:
    """The arrays of one chunk, and how many cells of each column were missing."""

    reals: np.ndarray
    codes: np.ndarray
    wide: np.ndarray
    missing: dict[Key, int]
    unseen: dict[Key, int]
    bags: tuple[Any, ...] = ()


def vocabulary_for(plan: Plan, closed: bool) -> Vocabulary:
    """The vocabulary a column starts from."""
    if closed:
        return Vocabulary(plan.field.levels, closed=True, capped=len(plan.field.levels) > MOST_LEVELS)
    if plan.capped is not None:
        return Vocabulary(plan.capped, capped=True)
    levels = [level_of(level) for level in (*plan.seen, *plan.extra)]
    room = None if plan.field.wide else NARROW_LEVELS
    return Vocabulary(levels, room=room) if room else Vocabulary(levels)


@dataclass(slots=True)
class LevelCoder:
    """Distinct values of a column to codes, by its plan; a value the plan cannot hold is a contradiction."""

    plan: Plan
    vocabulary: Vocabulary
    words: MissingWords
    closed: bool = False

    def codes(self, column: Any, start: int) -> np.ndarray:
        """One code per row, 0 where missing."""
        values, places = distinct(column, self.words)
        table = self._table(values, places, start)
        return np.append(table, 0).astype(np.int32)[places]

    def _table(self, values: Sequence[Any], places: np.ndarray, start: int) -> np.ndarray:
        levels = values if self.closed else self._levels(values, places, start)
        try:
            return self.vocabulary.codes(levels)
        except Full:
            new = [place for place, level in enumerate(levels) if level is not None and level not in self.vocabulary]
            raise self.overflow(start + int(np.argmax(np.isin(places, new))) + 1) from None

    def _levels(self, values: Sequence[Any], places: np.ndarray, start: int) -> Sequence[Any]:
        if not self.plan.as_numbers:
            return values
        return [self._level(value, place, places, start) for place, value in enumerate(values)]

    def _level(self, value: Any, place: int, places: np.ndarray, start: int) -> Any:
        """The number a cell stands for; a cell that is none changes what the column is."""
        level = number_of(value.strip()) if isinstance(value, str) else value
        if level is None and value is not None:
            reason = f"not only numbers: {wording.cell(value)}"
            raise Contradiction(self.plan.key, _row(places, place, start), reason, Becomes.WORDS)
        if isinstance(level, float) and math.isinf(level):
            raise too_large(self.plan.key, _row(places, place, start) - 1, level)
        if isinstance(level, float) and not self.plan.field.declared:
            reason = f"not only whole numbers: {level}"
            raise Contradiction(self.plan.key, _row(places, place, start), reason, Becomes.NUMBERS)
        return None if level in self.words.numbers else level

    def overflow(self, row: int) -> Contradiction:
        """The contradiction of more levels than there is room for."""
        plan = self.plan
        if plan.field.wide:
            return Contradiction(plan.key, row, "more levels than are kept apart", Becomes.CAPPED)
        if plan.number_like and not plan.field.declared:
            return Contradiction(plan.key, row, f"whole numbers, more than {NARROW_LEVELS} distinct", Becomes.NUMBERS)
        return Contradiction(plan.key, row, f"more than {NARROW_LEVELS} levels", Becomes.WIDE)


def _row(places: np.ndarray, place: int, start: int) -> int:
    return start + int(np.argmax(places == place)) + 1


def check_domain(plan: Plan, values: np.ndarray, start: int, closed: bool) -> None:
    """Raise where a count is negative or not whole, or a positive number is not above zero."""
    if plan.field.kind is Kind.COUNT:
        bad = (values < 0) | (values != np.floor(values)) & ~np.isnan(values)
    elif plan.field.kind is Kind.POSITIVE:
        bad = values <= 0
    else:
        return
    if bad.any():
        row = int(np.argmax(bad))
        raise _outside(plan, start + row + 1, float(values[row]), closed)


def _outside(plan: Plan, row: int, value: float, closed: bool) -> Exception:
    count = plan.field.kind is Kind.COUNT
    if not closed and not plan.field.declared:
        reason = f"not a count: {value}" if count else f"not above zero: {value}"
        return Contradiction(plan.key, row, reason, Becomes.NUMBERS)
    is_a, right = ("a count", "Counts are 0, 1, 2, ...") if count else ("positive", "Positive numbers are above zero.")
    name = wording.column(plan.key)
    return DataError(
        f"{name} is {is_a}, but row {row} holds {value}. {right} "
        f"Declare it real: --kind {plan.key}=real, or leave it out: --kind {plan.key}=ignore"
    )


def check_constant(plan: Plan, column: Any, start: int, words: MissingWords) -> None:
    """Raise where a column that had one value in the first rows has another later."""
    column = flat(column)
    if cells_of(column.type) is Cells.TIME:
        column = arrow_of(numbers(column, words, plan.key, start))
    values, places = distinct(column, words)
    for place, value in enumerate(values):
        level = number_of(value.strip()) if isinstance(value, str) and not isinstance(plan.constant, str) else value
        if value is not None and (level is None or level != plan.constant) and level not in words.numbers:
            reason = f"not always the same: {wording.cell(value)}"
            raise Contradiction(plan.key, _row(places, place, start), reason, Becomes.LEVELS)


class ArrowEncoder:
    """Chunks from Arrow columns: files, frames and streams."""

    def __init__(
        self,
        plans: Sequence[Plan],
        coders: Mapping[Key, LevelCoder],
        words: MissingWords,
        closed: bool,
        texts: Mapping[Key, TextColumn],
    ) -> None:
        self.plans = [plan for plan in plans if plan.field.used]
        self.constants = [] if closed else [plan for plan in plans if is_watched(plan)]
        self.coders = coders
        self.words = words
        self.closed = closed
        self.texts = texts

    def encode(self, piece: Piece, columns: Mapping[Key, Any]) -> Encoded:
        """The arrays of one chunk; a wanted column that is not there is missing in every row."""
        for plan in self.constants:
            check_constant(plan, columns[plan.key], piece.start, self.words)
        missing: dict[Key, int] = {}
        unseen: dict[Key, int] = {}
        numeric = [plan for plan in self.plans if plan.field.kind.numeric]
        reals = np.empty((piece.n_rows, len(numeric)))
        for slot, plan in enumerate(numeric):
            reals[:, slot] = self._numbers(plan, columns.get(plan.key), piece)
            missing[plan.key] = int(np.count_nonzero(np.isnan(reals[:, slot])))
        narrow = self._levels(piece, columns, False, missing, unseen)
        wide = self._levels(piece, columns, True, missing, unseen)
        return Encoded(reals, narrow, wide, missing, unseen, self._bags(piece, columns, missing, unseen))

    def _bags(
        self, piece: Piece, columns: Mapping[Key, Any], missing: dict[Key, int], unseen: dict[Key, int]
    ) -> tuple[Any, ...]:
        bags = []
        for plan in self.plans:
            if plan.field.kind is Kind.TEXT:
                bag = self.texts[plan.key].bag(piece, plan.key, columns.get(plan.key), self.words)
                missing[plan.key], wordless = bag_holes(bag)
                unseen[plan.key] = wordless if self.closed else 0
                bags.append(bag)
        return tuple(bags)

    def _numbers(self, plan: Plan, column: Any, piece: Piece) -> np.ndarray:
        if column is None:
            return np.full(piece.n_rows, np.nan)
        padded = plan.field.declared or self.closed
        found = numbers(column, self.words, plan.key, piece.start, padded=padded)
        check_domain(plan, found, piece.start, self.closed)
        return found

    def _levels(
        self, piece: Piece, columns: Mapping[Key, Any], wide: bool, missing: dict[Key, int], unseen: dict[Key, int]
    ) -> np.ndarray:
        plans = [plan for plan in self.plans if plan.field.kind.coded and plan.field.wide == wide]
        out = np.zeros((piece.n_rows, len(plans)), dtype=np.int32 if wide else np.uint8)
        for slot, plan in enumerate(plans):
            if plan.key in columns:
                found = self.coders[plan.key].codes(columns[plan.key], piece.start)
                out[:, slot] = found
                missing[plan.key] = int(len(found) - np.count_nonzero(found))
                unseen[plan.key] = count_unseen(found, self.coders[plan.key])
            else:
                missing[plan.key] = piece.n_rows
        return out


def count_unseen(codes: np.ndarray, coder: LevelCoder) -> int:
    """How many codes stand for levels a closed vocabulary does not have."""
    return int(np.count_nonzero(codes == coder.vocabulary.beyond)) if coder.closed else 0


def is_watched(plan: Plan) -> bool:
    """Whether a column was left out because it seemed constant, so that later rows must be checked."""
    return plan.field.kind is Kind.CONSTANT and not plan.field.used and not plan.field.declared


class BagEncoder:
    """Chunks from a sparse matrix: the rows themselves."""

    def encode(self, piece: Piece, rows: Any) -> Encoded:
        nothing = np.empty((piece.n_rows, 0))
        if not np.isfinite(rows.data).all():
            at = int(np.argmax(~np.isfinite(rows.data)))
            row = int(np.searchsorted(rows.indptr, at, side="right"))
            raise DataError(
                f"column {int(rows.indices[at])}, row {piece.start + row}: {rows.data[at]} in a sparse table. "
                "Its cells are finite numbers; leave out a cell that is not known."
            )
        return Encoded(nothing, nothing.astype(np.uint8), nothing.astype(np.int32), {}, {}, (rows,))


def label_codes(coder: LevelCoder, column: Any, start: int) -> np.ndarray:
    """Class codes from a column of labels: 0, 1, ... in order of first sight, `UNKNOWN` where missing."""
    codes = coder.codes(column, start) - 1
    codes[codes < 0] = UNKNOWN
    return codes
