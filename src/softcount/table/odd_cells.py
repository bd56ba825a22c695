"""Cells that are not numbers in columns of numbers, and numbers that mean missing.

Words without a digit in a few cells of a column of numbers mean missing, and a note lists them. Cells with a digit,
such as 80+ or <5, may be worth something: they are refused with a remedy, unless they are rare (`MOST_STRAY`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from softcount import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.arrow_columns import PADDED
from softcount.table.schema import DASHES, Key

FEW_ROWS = 10
"""Rows below which nothing is said of how cells are spelt."""

MOST_ODD = 0.2
"""Share of the cells that odd ones may be."""

MOST_STRAY = 0.01
"""Share of the cells up to which odd ones are stray, however they are spelt: the column stays one of numbers."""

FEW_WORDS = 5
"""Different words that may mean missing in one column."""

SHORT = 8
"""Characters that a dash may have, blanks around it included."""

TAKEN = ": taken as missing"

_digit = re.compile(r"\d")
_padded = re.compile(PADDED[1:-1])
_nines = re.compile(r"-9{1,6}|9{2,6}")
_infinite = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


class OddCells(NamedTuple):
    """Different cells that are no numbers, the commonest first, how often each occurs, and how many others are."""

    words: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    numbers: int = 0

    @classmethod
    def of(cls, texts: Sequence[Any], places: np.ndarray, bad: np.ndarray) -> OddCells:
        """Those cells of a column, by its distinct values and their places, that are bad."""
        counts = _counts(texts, places)
        spelt: dict[str, int] = {}
        for place in np.flatnonzero(bad).tolist():
            word = texts[place].strip()
            spelt[word] = spelt.get(word, 0) + int(counts[place])
        words = sorted(spelt, key=lambda word: -spelt[word])
        known = np.array([value is not None for value in texts], dtype=bool)
        return cls(tuple(words), tuple(spelt[word] for word in words), int(counts[known & ~bad].sum()))

    @property
    def told(self) -> str:
        """`55 of 60 cells are numbers; the others are 'n/a' (5)`."""
        shown = [f"{wording.cell(word)} ({n:,})" for word, n in zip(self.words, self.counts, strict=True)][:FEW_WORDS]
        more = len(self.words) - len(shown)
        others = ", ".join(shown) + (f" and {more:,} more" if more else "")
        return f"{self.numbers:,} of {self.numbers + sum(self.counts):,} cells are numbers; the others are {others}"

    def remedy(self, key: Key) -> str:
        """What to do if the cells mean missing, if they are numbers, and if the column is of words."""
        words = [word for word in self.words if not _digit.search(word)][:FEW_WORDS]
        missing = f"If they mean missing: {remedies.missing(*words or self.words[:FEW_WORDS])}; "
        number = (
            "" if len(words) == len(self.words[:FEW_WORDS]) else "if they are numbers, write them as the others are; "
        )
        return f"{missing}{number}if they are categories: {remedies.kind(key, 'categorical')}"


def _counts(texts: Sequence[Any], places: np.ndarray) -> np.ndarray:
    return np.bincount(places + 1, minlength=len(texts) + 1)[1:]


def dashes_in(texts: Sequence[Any]) -> tuple[str, ...]:
    """The dashes of a column, which mean missing; none where + is a cell too, for there - is a sign."""
    short = {text.strip() for text in texts if text is not None and len(text) <= SHORT}
    found = tuple(dash for dash in DASHES if dash in short)
    if not found or "+" in short or all(text is None or text.strip() in DASHES for text in texts):
        return ()
    return found


def mean_missing(key: Key, odd: OddCells, few_levels: bool) -> bool:
    """Whether odd cells mean missing among numbers; False where the column is of words, its numbers included.

    Where nearly all are numbers and some others look as if they were worth something, that is refused.
    """
    cells = odd.numbers + sum(odd.counts)
    if cells < FEW_ROWS or few_levels or any(_padded.fullmatch(word) for word in odd.words):
        return False
    stray = sum(odd.counts) <= MOST_STRAY * cells
    few = len(odd.words) <= FEW_WORDS and max(map(len, odd.words)) <= wording.LONGEST
    if not stray and (not few or sum(odd.counts) > MOST_ODD * cells):
        return False
    if any(_infinite.fullmatch(word) for word in odd.words):
        raise DataError(f"{wording.column(key)}: {odd.told}. Infinite values cannot be counted. {odd.remedy(key)}")
    if not stray and any(_digit.search(word) for word in odd.words):
        raise DataError(f"{wording.column(key)}: {odd.told}. {odd.remedy(key)}")
    return True


def note_of_missing(key: Key, odd: OddCells) -> str:
    """What is said of cells that were taken to mean missing."""
    kept = remedies.kind(key, "categorical")
    return f"{wording.column(key)}: {odd.told}{TAKEN} ({kept} keeps them as categories)"


def missing_notes(notes: Sequence[str]) -> list[str]:
    """Those of a table's notes that say which cells were taken to mean missing."""
    return [note for note in notes if TAKEN in note]


def note_of_words(key: Key, odd: OddCells, few_levels: bool) -> str:
    """What is said of a column of words most of whose cells are numbers."""
    cells = odd.numbers + sum(odd.counts)
    if cells < FEW_ROWS or few_levels or 2 * odd.numbers < cells or any(_padded.fullmatch(word) for word in odd.words):
        return ""
    return f"{wording.column(key)} is read as words: {odd.told}. {odd.remedy(key)}"


def note_of_marks(key: Key, values: np.ndarray) -> str:
    """What is said of numbers such as -999 or 9999 that lie farther from the rest than the rest is wide; or nothing."""
    if len(values) < FEW_ROWS:
        return ""
    ends = {float(values.min()), float(values.max())}
    marks = [end for end in sorted(ends) if _nines.fullmatch(f"{end:.17g}")]
    if not marks:
        return ""
    rest = values[~np.isin(values, marks)]
    if not len(rest):
        return ""
    low, high = float(rest.min()), float(rest.max())
    far = [mark for mark in marks if max(low - mark, mark - high) > max(high - low, 1.0)]
    if not far:
        return ""
    said = " and ".join(f"{mark:.17g} in {int((values == mark).sum()):,} cells" for mark in far)
    options = remedies.missing(*(f"{mark:.17g}" for mark in far))
    rest_is = f"far from the rest ({low:g} to {high:g})"
    return f"{wording.column(key)} holds {said}, {rest_is}. If that means missing: {options}"
