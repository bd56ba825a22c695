"""Facts about a column that decide its kind, and the form of its cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.lazy import arrow_compute, pa
from softcount.sources import frames
from softcount.table.cell_forms import NO_HABITS, CellForm, CellHabits, NumberForm, detect_form, form_of_type
from softcount.table.cell_values import MissingWords, OddCells, distinct, find_dashes, note_of_marks, numbers, without
from softcount.table.schema import Key
from softcount.table.text_columns import without_marks

FEW_BINS = 1 << 20
"""Widest range of integers that are counted in bins rather than sorted."""
FEW_TEXTS = 20
"""Distinct cells up to which text is categorical, whatever its length."""
_digit = re.compile("[0-9]")
LONG_CELL = 64
FEW_CELLS = 8_192
FEW_MEANT = 1_000
"""`LONG_CELL` is the mean length, in bytes, from which only the first `FEW_CELLS` cells of a column are read.

Words are counted in `FEW_MEANT` of those.
"""


def is_few(count: int, rows: int) -> bool:
    """Whether `count` distinct integers in `rows` rows are categories rather than numbers."""
    few = count <= 10 or (count <= 20 and rows >= 20 * count)
    return count <= 2 or (few and rows >= 2 * count)


class Facts(Struct, frozen=True):
    """Facts about the first `rows` rows of a column: `known` have a value, `different` values are distinct.

    For numbers with decimals `different` is 2 if they differ. `values` are the numbers in row order without the missing
    ones, or None for text; `whole`: all of them are whole. `only` is the value of a constant column. `words` is the
    mean number of words in a text cell. `coded`: a dictionary column. `missing` are cells that mean missing in this
    column only, and `note` is a remark on its cells. `written` is the form of its numbers, None if plain. `there` masks
    the rows that have a value; None if only some rows were read.
    """

    key: Any
    cells: frames.CellType
    rows: int
    known: int
    different: int
    values: np.ndarray | None = None
    only: object = None
    words: float = 0.0
    coded: bool = False
    missing: tuple[str, ...] = ()
    note: str = ""
    written: CellForm | None = None
    there: np.ndarray | None = None
    whole: bool = False

    def of_rows(self, rows: np.ndarray | None) -> Facts:
        """Return the facts of the rows at these places, which may repeat; None means every row."""
        if rows is None or self.there is None:
            return self
        there = self.there[rows]
        values = self.values
        if values is not None:
            column = np.full(len(self.there), np.nan)
            column[self.there] = values
            values = column[rows][there]
        return replace(self, rows=len(rows), known=int(there.sum()), values=values, there=there)


class Meant(Struct, frozen=True):
    """Declarations about a column: `levels`: cells are categories; `numbers`: numbers, however few are distinct.

    `habits` are the decimal mark, date order and delimiter of its table.
    """

    levels: bool = False
    numbers: bool = False
    habits: CellHabits = NO_HABITS


def facts_of(key: Key, column: Any, words: MissingWords, meant: Meant) -> Facts:
    column = frames.flat(column)
    cells = frames.cell_type(column.type)
    if cells is frames.CellType.NESTED:
        return Facts(key, cells, len(column), 0, 0)
    if cells is frames.CellType.TRUTH:
        return _level_facts(key, cells, *distinct(column, words))
    if cells is frames.CellType.TEXT:
        plain = _plain_facts(key, column, words, meant)
        return plain or _running_facts(key, column, words) or _cell_facts(key, column, words, meant)
    coded = pa.types.is_dictionary(column.type)
    facts = number_facts(key, numbers(column, words, key, 0), cells, coded=coded)
    if cells is frames.CellType.TIME:
        return replace(facts, written=form_of_type(column.type.value_type if coded else column.type))
    return facts if meant.levels else replace(facts, note=note_of_marks(key, facts.values))


def number_facts(key: Key, column: np.ndarray, cells: frames.CellType, *, coded: bool = False) -> Facts:
    """Return the facts of a column of numbers, NaN if missing."""
    there = ~np.isnan(column)
    values = column[there]
    whole, different, only = bool(np.all(values == np.floor(values))), 0, None
    if len(values):
        low, high = float(values.min()), float(values.max())
        different = 1 if low == high else 2
        if low < high and whole:
            bins = np.bincount((values - low).astype(np.int64)) if high - low < FEW_BINS else np.unique(values)
            different = int(np.count_nonzero(bins)) if high - low < FEW_BINS else len(bins)
        if low == high:
            number = int(low) if low.is_integer() and abs(low) < 2**53 else low
            only = bool(low) if cells is frames.CellType.TRUTH else number
    return Facts(key, cells, len(column), len(values), different, values, only, coded=coded, there=there, whole=whole)


def _plain_facts(key: Key, column: Any, words: MissingWords, meant: Meant) -> Facts | None:
    """Return the facts of a text column of plain numbers, in a tenth of the time of `_cell_facts`.

    Return None for other columns, or if a number may mean missing.
    """
    if pa.types.is_dictionary(column.type) or words.numbers or meant.habits.decimal == ",":
        return None
    pattern = arrow_compute.MatchSubstringOptions(frames.PLAIN)
    if not frames.call("all", frames.call("match_substring_regex", column, options=pattern)).as_py():
        return None
    floats = frames.call("cast", column, options=arrow_compute.CastOptions.safe(pa.float64()))
    values = frames.filled(floats)
    if not np.isfinite(values).any():
        return None
    facts = number_facts(key, values, frames.CellType.TEXT)
    return facts if meant.levels or not words.usual else replace(facts, note=note_of_marks(key, facts.values))


def _running_facts(key: Key, column: Any, words: MissingWords) -> Facts | None:
    """Return the facts of cells too long and too many to be categories or numbers; None for other columns.

    The first few thousand cells suffice: reading every cell of 44 MB takes 3 s.
    """
    some = column.slice(0, FEW_CELLS)
    coded = pa.types.is_dictionary(some.type)
    lengths = frames.call("binary_length", some.dictionary if coded else some)
    if (frames.call("mean", lengths).as_py() or 0) < LONG_CELL:
        return None
    some = without_marks(some.dictionary_decode() if coded else some, words.missing)
    different = frames.call("count_distinct", some).as_py()
    if different <= FEW_TEXTS:
        return None
    texts = some.drop_null().slice(0, FEW_MEANT).to_pylist()
    mean = len(" ".join(texts).split()) / len(texts)
    return Facts(key, frames.CellType.TEXT, len(some), len(some) - some.null_count, different, words=mean)


def _cell_facts(key: Key, column: Any, words: MissingWords, meant: Meant) -> Facts:
    found, places = distinct(column, words)
    as_spelt = meant.levels or not words.usual
    dashes = find_dashes(found) if words.dashes and not as_spelt else ()
    if dashes:
        found = [None if value is not None and value.strip() in dashes else value for value in found]
    digits = any(map(_digit.search, filter(None, found)))  # without any, no cell is a number, a date or a duration
    facts = _number_facts(key, found, places, words, meant) if digits else None
    if facts is None or (as_spelt and facts.written is not None):
        facts = _level_facts(key, frames.CellType.TEXT, found, places)
    return replace(facts, missing=(*dashes, *facts.missing))


def _number_facts(key: Key, found: list[Any], places: np.ndarray, words: MissingWords, meant: Meant) -> Facts | None:
    """Return the facts of text cells that are numbers in any form, with a few odd cells; None for other columns."""
    as_spelt = meant.levels or not words.usual
    floats, bad = frames.floats_of(found, frames.PLAIN)
    form, plain = None, not bad.any()
    if not as_spelt and (bad.any() or meant.habits.decimal == ",") and len(set(found) - {None}) > 1:
        form = detect_form(key, found, meant.habits)
    if form is not None:
        floats, bad = form.read(found)
    if (as_spelt and bad.any()) or not np.isfinite(floats).any():
        return None
    kind = frames.CellType.TIME if form is not None and not isinstance(form, NumberForm) else frames.CellType.TEXT
    spelt = number_facts(key, without(np.append(floats, np.nan)[places], words.numbers), kind)
    spelt = replace(spelt, written=form)
    few = not meant.numbers and kind is frames.CellType.TEXT and spelt.whole and is_few(spelt.different, spelt.known)
    if few and form is not None and plain and all(cell is None or cell.isdecimal() for cell in found):
        return replace(spelt, written=None)  # plain integers, whatever the decimal mark of other columns
    if not bad.any():
        marked = not as_spelt and kind is frames.CellType.TEXT
        spelt = replace(spelt, note=note_of_marks(key, spelt.values)) if marked else spelt
        return None if few and form is not None else spelt
    odd = OddCells.of(found, places, bad)
    missing, note = odd.judge(key, few)
    if missing:
        return replace(spelt, missing=odd.words, note=note)
    return replace(_level_facts(key, frames.CellType.TEXT, found, places), note=note)


def _level_facts(key: Key, cells: frames.CellType, found: list[Any], places: np.ndarray) -> Facts:
    """Return the facts of categories from their distinct values and the place of each row's value."""
    known = np.append([value is not None for value in found], False)[places] if len(places) else np.zeros(0, bool)
    texts = [value for value in found if value is not None]
    different, some = len(set(texts)), texts[:FEW_MEANT]
    only = texts[0] if different == 1 else None
    mean = len(" ".join(some).split()) / len(some) if some and cells is frames.CellType.TEXT else 0.0
    return Facts(key, cells, len(places), int(known.sum()), different, None, only, mean, there=known)


# -- repeated rows

BY_CHANCE = 30.0
"""Rows count as equal by chance up to this many times the equal pairs that independent columns would have."""
FEW_VALUES = 30
"""Distinct values up to which a column is assumed to have no others."""
MOST_REPEATED = 1 << 20
"""Most rows that integer weights may stand for."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def cell_codes(column: Any) -> np.ndarray:
    """Return the places of the cells among the distinct ones, -1 if missing."""
    column = frames.flat(column)
    places, known = frames.numpy_of(frames.call("dictionary_encode", column).indices)
    return (places if known is None else np.where(known, places, -1)).astype(np.int64)


def counted_rows(columns: Iterable[np.ndarray], weights: np.ndarray | None = None) -> np.ndarray | None:
    """Return the places of the rows that decide the kinds of columns; None means every row, once.

    A repeated row adds no information: repeating 100 of 240 rows turned counts into categories. Therefore each distinct
    row counts once. But rows of few columns with few values are equal by chance. They all count, and a row of integer
    weight n counts n times. `columns` are codes of cells, columns with the most distinct values first.
    """
    read: list[np.ndarray] = []
    key = np.zeros(1, dtype=np.uint64)
    for codes in columns:
        key = (key ^ codes.view(np.uint64)) * _SPREAD
        key = key ^ (key >> np.uint64(29))
        read.append(codes)
        if len(read) in (1, 2, 4, 8) and weights is None and len(np.unique(key)) == len(key):
            return None
    first, which = np.unique(key, return_index=True, return_inverse=True)[1:]
    times = np.ones(len(key), dtype=np.int64)
    if weights is not None and 0 < weights.sum() <= MOST_REPEATED and (weights >= 0).all():
        whole = weights.astype(np.int64)
        if (whole == weights).all():
            times = np.maximum(whole, 1)  # held-out rows have weight 0 and count here
    total = int(times.sum())
    if len(first) == total == len(key):
        return None
    alike = np.bincount(which, times).astype(np.float64)
    if alike @ (alike - 1.0) <= BY_CHANCE * _equal_by_chance(read, first, times) * total * (total - 1.0):
        return None if weights is None else np.repeat(np.arange(len(key)), times)
    return np.sort(first)


def _equal_by_chance(columns: Sequence[np.ndarray], first: np.ndarray, times: np.ndarray) -> float:
    """Return the probability that two rows are equal if columns are independent; `first` are places of distinct rows.

    For a column with many values, only the distinct rows estimate how often two cells are equal, because it has further
    values. A column that follows from those before it is skipped: it makes no two rows differ.
    """
    chance, key, different = 1.0, np.zeros(len(first), dtype=np.int64), 1
    for codes in columns:
        cells = np.unique(codes, return_inverse=True)[1]
        own = cells[first]
        key = np.unique(key * (int(cells.max()) + 1) + own, return_inverse=True)[1]
        known, different = different, int(key.max()) + 1
        if cells.max() >= FEW_VALUES:
            counts = np.bincount(own).astype(np.float64)
            chance *= float(counts @ (counts - 1.0)) / max(1.0, len(first) * (len(first) - 1.0))
        elif different > known:
            shares = np.bincount(cells, times) / times.sum()
            chance *= float(shares @ shares)
    return chance


def alike_to_draw(codes: np.ndarray, rows: int) -> np.ndarray:
    """Return the places of about `rows` rows, sampled by code, so that equal rows are in or out together."""
    mixed = (codes.view(np.uint64) * _SPREAD) >> np.uint64(40)
    return np.flatnonzero(mixed % np.uint64(max(1, len(codes) // rows)) == 0)
