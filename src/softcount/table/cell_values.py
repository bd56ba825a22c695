"""Cells that are not numbers in columns of numbers, and numbers that mean missing.

Words without a digit in a few cells of a column of numbers mean missing, and a note lists them. Cells with a digit,
such as 80+ or <5, may be worth something: they are refused with a remedy, unless they are rare (`MOST_STRAY`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.lazy import arrow_compute, pa
from softcount.errors import DataError
from softcount.sources import arrow_columns, wording
from softcount.sources.arrow_columns import (
    PADDED,
    CellType,
    arrow_of,
    as_type,
    call,
    cell_type,
    filled,
    flat,
    numpy_of,
    text_of,
    with_levels,
)
from softcount.table.cell_forms import CellForm, Read, is_plain
from softcount.table.schema import DASHES, MISSING, Key, asked_words

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
        counts = np.bincount(places + 1, minlength=len(texts) + 1)[1:]
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


# One column of raw cells, as Arrow holds it: its numbers, or its distinct values and where they stand.


class MissingWords(Struct, frozen=True):
    """Which cells count as missing, and whether blanks around a cell of text belong to it (not so in text files).

    `usual`: the user did not replace the usual words, so that cells in other forms, or odd ones, are looked for.
    `dashes`: a dash is one of the usual words, as in text files.
    """

    missing: frozenset[str] = frozenset(MISSING)
    numbers: tuple[float, ...] = ()
    trim: bool = False
    usual: bool = True
    dashes: bool = True

    @classmethod
    def of(cls, missing: tuple[str, ...], trim: bool) -> MissingWords:
        words = tuple(dict.fromkeys(("", *(str(word).strip() for word in missing))))
        return cls(frozenset(words), arrow_columns.number_words(words), trim, set(MISSING) <= set(words))

    @classmethod
    def besides_null(cls, missing: tuple[str, ...]) -> MissingWords:
        """The words for missing of a table that has real nulls: those that the user named."""
        asked = asked_words(missing)
        if asked == missing:
            return cls.of(missing, trim=False)
        words = tuple(word.strip() for word in asked)
        return cls(frozenset(words), arrow_columns.number_words(words), dashes=False)

    def among(self, more: tuple[str, ...]) -> MissingWords:
        """The same with what else means missing in one column."""
        return replace(self, missing=self.missing.union(more)) if more else self

    @property
    def among_numbers(self) -> MissingWords:
        """The same for a column of numbers, in which nothing and a dash cannot be anything else."""
        return self.among(("", *DASHES) if self.dashes else ("",)) if self.usual else self


def distinct(column: Any, words: MissingWords) -> tuple[list[Any], np.ndarray]:
    """The distinct values of a column, missing ones as None, and for each row the place of its value (-1: null)."""
    column = flat(column)
    if cell_type(column.type) is CellType.EMPTY:
        return [], np.full(len(column), -1, dtype=np.int32)
    if not pa.types.is_dictionary(column.type):
        column = with_levels(column)
    places, known = numpy_of(column.indices)
    places = places if known is None else np.where(known, places, np.int32(-1))
    # Slices of a column share its dictionary: drop the entries that no row uses.
    seen = np.bincount(places + 1, minlength=len(column.dictionary) + 1)[1:] > 0
    if seen.all():
        return _levels(column.dictionary, words), places
    renumbered = np.append(np.cumsum(seen) - 1, -1).astype(np.int32)
    return _levels(column.dictionary.take(arrow_of(np.flatnonzero(seen))), words), renumbered[places]


NAMED_WORDS, NAMED_COLUMNS = 5, 3
"""Words for missing that a note lists, and columns that it names for each."""


def mask_words(
    columns: Mapping[Key, Any], words: MissingWords, spelt: Collection[Key], n_rows: int | None
) -> tuple[dict[Key, Any], tuple[str, ...]]:
    """The first cells of columns, null for the words for missing; and a note that lists the usual words among them.

    Words with a blank before or after them are found too; the empty cell is no word. In the columns `spelt` a dash is a
    category; in others the note counts it.
    """
    if not words.dashes:
        return dict(columns), ()
    kept = {key: flat(column) for key, column in columns.items()}
    lookups = {kind: _lookup(words, kind) for kind in (pa.string(), pa.large_string())}
    found: dict[str, dict[Key, int]] = {}
    for key, column in kept.items():
        hit = call("is_in", column, options=lookups[column.type]) if column.type in lookups else None
        if hit is None or not filled(hit).any():
            continue
        counts = {
            each["values"]: each["counts"] for each in call("value_counts", call("filter", column, hit)).to_pylist()
        }
        dashes = set(counts) - {cell for cell in counts if cell.strip() in words.missing}
        if dashes and (key in spelt or not words.usual or not dashes_in(call("unique", column).to_pylist())):
            counts = {cell: count for cell, count in counts.items() if cell not in dashes}
        for cell, count in counts.items():
            by_column = found.setdefault(cell.strip(), {})
            by_column[key] = by_column.get(key, 0) + count
        if len(counts) > len(dashes & set(counts)):
            where = call("is_in", column, options=_lookup(words, column.type, ())) if dashes else hit
            kept[key] = call("if_else", where, pa.nulls(len(column), column.type), column)
    rows = max((len(column) for column in kept.values()), default=0)
    usual = {word: found[word] for word in found if words.usual and word in (*MISSING, *DASHES)}
    return kept, (_note_of_words(usual, rows if rows != n_rows else None),) if usual else ()


def _lookup(words: MissingWords, kind: Any, more: Sequence[str] = DASHES) -> Any:
    """What finds cells that are one of the words, or a dash, with a blank before or after them or not."""
    wanted = dict.fromkeys((*filter(None, words.missing), *more))
    spelt = [f"{before}{word}{after}" for word in wanted for before in ("", " ") for after in ("", " ")]
    return arrow_compute.SetLookupOptions(as_type(text_of(spelt), kind), skip_nulls=True)


def _note_of_words(found: Mapping[str, Mapping[Key, int]], rows: int | None) -> str:
    """The words taken as missing, the commonest first, in how many cells and in which columns."""
    listed = sorted(found, key=lambda word: -sum(found[word].values()))
    told = [
        f"{word!r} ({sum(found[word].values()):,} in {wording.and_others(found[word], NAMED_COLUMNS)})"
        for word in listed[:NAMED_WORDS]
    ]
    more = f" and {len(listed) - NAMED_WORDS} more words" if len(listed) > NAMED_WORDS else ""
    where = "" if rows is None else f" in the first {rows:,} rows"
    kept = remedies.either("only_missing=['']", "--only-missing ''")
    return f"read as missing{where}: {', '.join(told)}{more} ({kept} keeps such words)"


def _levels(values: Any, words: MissingWords) -> list[Any]:
    cells = cell_type(values.type)
    if cells is CellType.TEXT:
        return [_text_level(value, words) for value in values.to_pylist()]
    if cells is CellType.TIME:
        return [None if value is None else str(value) for value in values.to_pylist()]
    if cells is CellType.FLOAT:
        values = _as_floats(values)
    return [_number_level(value, words) for value in values.to_pylist()]


def _text_level(value: str | None, words: MissingWords) -> str | None:
    if value is None:
        return None
    bare = value.strip()
    if bare in words.missing:
        return None
    return bare if words.trim else value


def _number_level(value: Any, words: MissingWords) -> Any:
    if value is None or value != value or (words.numbers and value in words.numbers):
        return None
    return arrow_columns.level_of(value)


def numbers(
    column: Any, words: MissingWords, key: Key, start: int, *, padded: bool = False, form: CellForm | None = None
) -> np.ndarray:
    """A column as float64, NaN where missing; text is parsed, dates become seconds since 1970.

    Infinite values and words are refused, naming column and row. `padded` allows leading zeros. Text that is written in
    a `form` of its own is read by it.
    """
    column = flat(column)
    cells = cell_type(column.type)
    if cells is CellType.NESTED:
        raise DataError(f"{wording.column(key)} holds nested or binary values, where the model has numbers.")
    if cells is CellType.TEXT:
        pattern = arrow_columns.PADDED if padded else arrow_columns.PLAIN
        read = partial(arrow_columns.floats_of, pattern=pattern) if form is None or is_plain(form) else form.read
        found = _spelt_numbers(column, words, key, start, read)
    else:
        found = _typed_numbers(column, cells)
        refuse_infinite(found, key, start)
    return without(found, words.numbers)


def without(found: np.ndarray, marks: tuple[float, ...]) -> np.ndarray:
    """Numbers with those that mark a missing cell taken out; the same array where there are none."""
    for mark in marks:
        hit = found == mark
        if hit.any():
            found = np.where(hit, np.nan, found)
    return found


def _as_floats(column: Any) -> Any:
    return column if pa.types.is_float64(column.type) else column.cast(pa.float64(), safe=False)


def _typed_numbers(column: Any, cells: CellType) -> np.ndarray:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if cells is CellType.EMPTY:
        return np.full(len(column), np.nan)
    if cells is CellType.TIME:
        return _seconds(column)
    if cells is CellType.TRUTH:
        column = column.cast(pa.int8())
    return filled(_as_floats(column))


_TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def _seconds(column: Any) -> np.ndarray:
    """Seconds since 1970 (dates, timestamps), since midnight (times) or of length (durations)."""
    days = pa.types.is_date32(column.type)
    unit = "ms" if pa.types.is_date64(column.type) else getattr(column.type, "unit", "s")
    ticks = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64()).cast(pa.float64(), safe=False)
    found = filled(ticks)
    return found * 86_400.0 if days else found / _TICKS[unit]


def _spelt_numbers(
    column: Any, words: MissingWords, key: Key, start: int, read: Callable[[Sequence[str | None]], Read]
) -> np.ndarray:
    texts, places = distinct(column, words.among_numbers)
    floats, bad = read(texts)
    if bad.any():
        _refuse_words(OddCells.of(texts, places, bad), key, start + _first_row(places, np.flatnonzero(bad)) + 1)
    if np.isinf(floats).any():
        row = _first_row(places, np.flatnonzero(np.isinf(floats)))
        raise too_large(key, start + row, texts[places[row]])
    found: np.ndarray = np.append(floats, np.nan)[places]
    return found


def _first_row(places: np.ndarray, wanted: np.ndarray) -> int:
    return int(np.flatnonzero(np.isin(places, wanted))[0])


_INFINITE = frozenset({"inf", "infinity", "+inf", "-inf", "+infinity", "-infinity"})


def _refuse_words(odd: OddCells, key: Key, row: int) -> None:
    """Raise what is wrong with cells that are no numbers, the first of which stands in a row."""
    word = odd.words[0]
    where = f"{wording.column(key)} holds numbers, but row {row} holds {wording.cell(word)}."
    if word.casefold() in _INFINITE:
        raise DataError(f"{where} Infinite values cannot be counted; if it means missing: {remedies.missing(word)}")
    if len(word) > wording.LONGEST:  # a document, which is neither a mark nor a level
        raise DataError(
            f"{where} If it is text: {remedies.kind(key, 'text')}; or leave it out: {remedies.kind(key, 'ignore')}"
        )
    if odd.numbers and 1 < len(odd.words) <= FEW_WORDS:
        raise DataError(f"{where} {odd.told}. {odd.remedy(key)}")
    level = remedies.kind(key, "categorical")
    raise DataError(f"{where} If it means missing: {remedies.missing(word)}; if it is a category: {level}")


def too_large(key: Key, row: int, shown: object) -> DataError:
    """The error of an infinite number; rows count from 0 here."""
    return DataError(
        f"{wording.column(key)}, row {row + 1}: {wording.cell(shown)} is infinite or too large for a number. "
        f"Correct it, or make it missing, or leave the column out: {remedies.kind(key, 'ignore')}"
    )


def refuse_infinite(found: np.ndarray, key: Key, start: int) -> None:
    """Raise where a column of numbers holds an infinite one, naming its row."""
    infinite = np.isinf(found)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise too_large(key, start + row, float(found[row]))
