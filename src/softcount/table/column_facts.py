"""Facts about a column that decide its kind, and the form of its cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.lazy import pa
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.arrow_columns import (
    PLAIN,
    CellType,
    are_all,
    as_type,
    call,
    cell_type,
    filled,
    flat,
    floats_of,
    matches,
    with_levels,
)
from softcount.sources.source import ORDERS
from softcount.table.cell_forms import BLANK, CellForm, NumberForm, TimeForm, duration_form, number_pattern, typed_form
from softcount.table.cell_values import (
    MissingWords,
    OddCells,
    dashes_in,
    distinct,
    mean_missing,
    note_of_marks,
    note_of_missing,
    note_of_words,
    numbers,
    without,
)
from softcount.table.kinds import is_few
from softcount.table.schema import Key
from softcount.table.text_columns import without_marks

LOOKED_AT = 1_000
"""Different cells that a form is found by; all of them must be written so in the end."""


class CellHabits(NamedTuple):
    """What is known of how cells are written: the decimal mark and the order of dates if said, and the delimiter."""

    decimal: str | None = None
    dates: str | None = None
    delimiter: str | None = None


NO_HABITS = CellHabits()


def form_of(key: Key, texts: Sequence[str | None], habits: CellHabits) -> CellForm | None:
    """The form of all cells that have a digit in them; None where they have none in common."""
    cells = [text.strip() for text in texts if text is not None and _digit.search(text)]
    if not cells:
        return None
    some = cells[:LOOKED_AT]
    form = _number_form(key, some, habits)
    others = [] if form is None else [cell for cell, bad in zip(cells, form.read(cells)[1], strict=True) if bad]
    if form is None and all(map(re.compile(number_pattern("", ".")).fullmatch, some)):
        others = list(cells[LOOKED_AT:])  # plain so far
    return (
        (_number_form(key, [*others[:LOOKED_AT], *some], habits) if others else form)
        or _time_form(key, cells, habits)
        or duration_form(cells)
    )


_digit = re.compile("[0-9]")

# -- numbers

_CURRENCIES = (
    r"US\$|A\$|C\$|[$\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u20ba]|USD|EUR|GBP|CHF|JPY|CAD|AUD|SEK|NOK|DKK|PLN|INR|Rs\.?"
)
_UNIT = r"[^\W\d_](?:[^\W\d_]|[/\u00b2\u00b3. ]){0,11}|%|\u2030|\u00b0[CFK]?|" + _CURRENCIES
_cell = re.compile(
    rf"(?P<open>\(?)(?P<sign>[+-]?)(?P<prefix>(?:{_CURRENCIES})?){BLANK}*[+-]?"
    rf"(?P<number>[0-9.,'\u00a0\u202f ]*[0-9][.,]?)"
    rf"(?P<suffix>(?:{BLANK}*(?:{_UNIT}))?)(?P<close>\)?)"
)
_MARKS = (("", "."), (",", "."), ("", ","), (".", ","), (" ", "."), (" ", ","), ("'", "."), ("'", ","))
"""What parts thousands and what begins decimals, those that need the least first."""


def _number_form(key: Key, cells: Sequence[str], habits: CellHabits) -> NumberForm | None:
    found = [_cell.fullmatch(cell) for cell in cells]
    matches = [match for match in found if match is not None]
    if len(matches) < len(found) or any(bool(match["open"]) != bool(match["close"]) for match in matches):
        return None
    prefixes, units = {match["prefix"] for match in matches}, {match["suffix"].strip() for match in matches}
    if len(units) > 1 or len(prefixes) > 1:
        return None
    marks = _marks(key, [match["number"].strip() for match in matches], habits)
    if marks is None:
        return None
    thousands, decimal = marks
    suffix = Counter(match["suffix"] for match in matches).most_common(1)[0][0]
    digits = max(len(match["number"].strip().partition(decimal)[2]) for match in matches)
    below = any(match["open"] for match in matches)
    form = NumberForm(prefixes.pop(), suffix, decimal, thousands, below, digits)
    return form if form.spelt else None


def _marks(key: Key, numbers: Sequence[str], habits: CellHabits) -> tuple[str, str] | None:
    """What parts thousands and what begins decimals in all of the numbers."""
    fits = [pair for pair in _MARKS if all(map(re.compile(number_pattern(*pair)).fullmatch, numbers))]
    if habits.decimal is not None:
        return next((pair for pair in fits if pair[1] == habits.decimal), None)
    if (",", ".") in fits and ("", ",") in fits and ("", ".") not in fits:
        if habits.delimiter in (",", None):  # who parts cells by commas does not begin decimals with them
            return ",", "."
        odd = next(number for number in numbers if "," in number)
        marks = " or ".join(remedies.setting("decimal", mark) for mark in ",.")
        raise DataError(
            f"{wording.column(key)} holds {wording.cell(odd)}, which may be {odd.replace(',', '')} or "
            f"{odd.replace(',', '.')}. Say which mark begins decimals: {marks}"
        )
    return fits[0] if fits else None


_comma_decimals = re.compile(r"(?:[0-9.\u00a0\u202f ']*[0-9]),(?:[0-9]{1,2}|[0-9]{4,})")


def decimal_mark(columns: Mapping[Any, Sequence[str]]) -> str | None:
    """The comma where some column of numbers cannot be read but with it: then it begins decimals in all of them."""
    for cells in columns.values():
        found = [_cell.fullmatch(cell.strip()) for cell in cells[:LOOKED_AT] if _digit.search(cell)]
        numbers = [match["number"].strip() for match in found if match is not None]
        if len(numbers) == len(found) and any(_comma_decimals.fullmatch(number) for number in numbers):
            return ","
    return None


# -- dates and times

_ZONE = r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2}|)"
_HALF = r"(?P<half>(?: ?[AaPp]\.?[Mm]\.?)?)"
_CLOCK = rf"(?P<hour>[0-9]{{1,4}}):[0-9]{{2}}(?P<second>(?::[0-9]{{2}}(?P<part>\.[0-9]+)?)?){_HALF}{_ZONE}"
_time = re.compile(rf"-?(?P<days>(?:[0-9]+ days?,? )?){_CLOCK}")
_moment = re.compile(rf"(?P<date>.*?[0-9])(?:(?P<join>T|,? )(?P<clock>{_CLOCK}))?")
_year_first = re.compile(r"[0-9]{4}(?P<sep>[-/.])[0-9]{1,2}(?:(?P=sep)[0-9]{1,2})?")
_year_last = re.compile(r"[0-9]{1,2}(?P<sep>[-/.]|\. )[0-9]{1,2}(?P=sep)(?P<year>[0-9]{4}|[0-9]{2})")
_quarter = re.compile(r"[0-9]{4}(?P<sep>[- /]?)Q[1-4]|Q[1-4](?P<then>[- /])[0-9]{4}")
_day_named = re.compile(
    r"[0-9]{1,2}(?P<sep>[-/ ]|\. )(?P<month>[A-Za-z]{3,9})\.?(?P<then>[-/ ]|, )(?P<year>[0-9]{4}|[0-9]{2})"
)
_month_named = re.compile(r"(?P<month>[A-Za-z]{3,9})\.?(?P<sep>[- ])[0-9]{1,2}(?P<then>, | |-)(?P<year>[0-9]{4})")
_small = re.compile(r"(?<![0-9])[1-9](?=[-/.,]| (?!day))|(?<![0-9:])[0-9]:")


def _time_form(key: Key, cells: Sequence[str], habits: CellHabits) -> TimeForm | None:
    """The form of dates, times or durations; dates that may be read in two ways are refused unless one says how."""
    patterns = _patterns(cells[0])
    zones = {match["zone"] for cell in cells if (match := _moment.fullmatch(cell)) and match["clock"]}
    if len(zones) > 1 and "" not in zones:
        patterns = [re.sub("(?:Z|[+-][0-9]{2}:?[0-9]{2})$", "%z", pattern) for pattern in patterns]
    forms = [_shaped(pattern, cells) for pattern in patterns]
    wrong = [form.read(cells)[1] for form in forms]
    fits = [form for form, bad in zip(forms, wrong, strict=True) if not bad.any()]
    if len(fits) == 2:
        return _ordered(key, fits, cells[0], habits)
    if len(forms) == 2 and not fits and not (wrong[0] & wrong[1]).any():
        mixed = [cells[int(bad.argmax())] for bad in wrong]
        raise DataError(
            f"{wording.column(key)} mixes days first and months first: {wording.cell(mixed[1])} and "
            f"{wording.cell(mixed[0])}. Write them in one order, or leave it out: {remedies.kind(key, 'ignore')}"
        )
    return fits[0] if fits else None


def _ordered(key: Key, fits: Sequence[TimeForm], shown: str, habits: CellHabits) -> TimeForm:
    """Of dates by day and by month first the one that is asked for; a dot is between days and months only."""
    if "." in fits[0].pattern:
        return fits[0]
    if habits.dates in ("day-first", "month-first"):
        return fits[habits.dates == "month-first"]
    ways = " or ".join(remedies.setting("dates", way) for way in list(ORDERS)[:2])
    raise DataError(
        f"{wording.column(key)} holds dates such as {shown!r}, of which none says whether days or months come first. "
        f"Say it: {ways}"
    )


def _shaped(pattern: str, cells: Sequence[str]) -> TimeForm:
    parts = (match["part"] for cell in cells if (match := _moment.fullmatch(cell) or _time.fullmatch(cell)))
    digits = max((len(part or ".") - 1 for part in parts), default=0)
    return TimeForm(pattern, not any(_small.search(cell) for cell in cells), min(digits, 6))


def _patterns(cell: str) -> list[str]:
    """The patterns under which a cell may be a time; of a date that begins with its day or month, both."""
    match = _time.fullmatch(cell)
    if match is not None:
        days = re.sub("^[0-9]+", "%D", match["days"])
        return (
            [days + _clock_pattern(match)]
            if not match["half"]
            else ["%H:%M" + (":%S" if match["second"] else "") + _half(match)]
        )
    match = _moment.fullmatch(cell)
    if match is None:
        return []
    clock = "" if match["clock"] is None else match["join"] + _clock_pattern(match)
    return [date + clock for date in _date_patterns(match["date"])]


def _clock_pattern(match: re.Match[str]) -> str:
    return "%H:%M" + (":%S" if match["second"] else "") + _half(match) + match["zone"]


def _half(match: re.Match[str]) -> str:
    return "" if not match["half"] else " %p" if match["half"].startswith(" ") else "%p"


def _date_patterns(date: str) -> list[str]:
    match = _quarter.fullmatch(date)
    if match is not None:
        return [f"%Y{match['sep']}Q%q" if match["sep"] is not None else f"Q%q{match['then']}%Y"]
    match = _year_first.fullmatch(date)
    if match is not None:
        sep = match["sep"]
        return (
            [f"%Y{sep}%m{sep}%d" if date.count(sep) == 2 else f"%Y{sep}%m"]
            if date.count(sep) == 2 or sep == "-"
            else []
        )
    match = _year_last.fullmatch(date)
    if match is not None:
        sep, year = match["sep"], "%Y" if len(match["year"]) == 4 else "%y"
        return [f"%d{sep}%m{sep}{year}", f"%m{sep}%d{sep}{year}"]
    match = _day_named.fullmatch(date)
    if match is not None:
        return [f"%d{match['sep']}{_named(match)}{match['then']}{'%Y' if len(match['year']) == 4 else '%y'}"]
    match = _month_named.fullmatch(date)
    return [] if match is None else [f"{_named(match)}{match['sep']}%d{match['then']}%Y"]


def _named(match: re.Match[str]) -> str:
    return "%b" if len(match["month"]) == 3 else "%B"


# What the first rows say of a column, before anything is decided: how many values, which numbers, what is odd.

FEW_BINS = 1 << 20
"""Widest range of whole numbers that is counted in bins rather than sorted."""

FEW_TEXTS = 20
"""Different cells up to which text is categories, however long."""

LONG_CELL = 64
FEW_CELLS = 8_192
FEW_MEANT = 1_000
"""Bytes of a cell, on average, from which on a column is looked at in its first cells only; how many those are; and
how many of them their words are counted in."""


class Facts(Struct, frozen=True):
    """`rows` were looked at, `known` of them hold a value, `different` values are distinct (numbers: at least so many).

    `values` are the numbers in row order without the missing ones, or None for text. `only` is the one value of a
    constant column. `words` is the mean number of words in a cell of text. `coded` says that the table's owner
    already keeps the column as categories. `missing` are cells that mean missing in this column alone, and `note` says
    what its owner should know of how cells are spelt. `written` is how its numbers are written, if not plainly.
    `there` says which rows hold a value; None if only some rows were looked at.
    """

    key: Any
    cells: CellType
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

    @property
    def whole(self) -> bool:
        return self.values is not None and bool(np.all(self.values == np.floor(self.values)))

    def of_rows(self, rows: np.ndarray | None) -> Facts:
        """The facts of some of the rows, by their places; a row may be there several times. None is every row."""
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
    """What the cells of a column are meant to be, as far as is said.

    `levels`: a cell that is no number is a level and nothing else. `numbers`: it is to be read as numbers, however few
    different ones there are. `habits` is how cells of its table are written.
    """

    levels: bool = False
    numbers: bool = False
    habits: CellHabits = NO_HABITS


def facts_of(key: Key, column: Any, words: MissingWords, meant: Meant) -> Facts:
    """The facts of an Arrow column."""
    column = flat(column)
    cells = cell_type(column.type)
    if cells is CellType.NESTED:
        return Facts(key, cells, len(column), 0, 0)
    if cells in (CellType.TEXT, CellType.TRUTH):
        plain = _plain_facts(key, column, words, meant)
        return plain or _running_facts(key, column, words) or _cell_facts(key, column, words, meant)
    coded = pa.types.is_dictionary(column.type)
    facts = number_facts(key, numbers(column, words, key, 0), cells, coded=coded)
    if cells is CellType.TIME:
        return replace(facts, written=typed_form(column.type.value_type if coded else column.type))
    return facts if meant.levels else _with_marks(facts)


def number_facts(key: Key, column: np.ndarray, cells: CellType, *, coded: bool = False) -> Facts:
    """The facts of a column of numbers, NaN where missing."""
    there = ~np.isnan(column)
    values = column[there]
    different = count_distinct(values)
    only = _only(values, cells) if different == 1 else None
    return Facts(key, cells, len(column), len(values), different, values, only, coded=coded, there=there)


def _only(values: np.ndarray, cells: CellType) -> object:
    value = float(values[0])
    if cells is CellType.TRUTH:
        return bool(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def count_distinct(values: np.ndarray) -> int:
    """How many distinct numbers; for numbers with decimals only whether there are none, one or several."""
    if not len(values):
        return 0
    low, high = float(values.min()), float(values.max())
    if low == high:
        return 1
    if not np.all(values == np.floor(values)):
        return 2
    if high - low < FEW_BINS:
        return int(np.count_nonzero(np.bincount((values - low).astype(np.int64))))
    return len(np.unique(values))


def _plain_facts(key: Key, column: Any, words: MissingWords, meant: Meant) -> Facts | None:
    """Facts of cells of text that are plain numbers, all of them: what `_cell_facts` finds, cell by cell, in a tenth.

    None of others, and where a number may be a word for missing.
    """
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not text or words.numbers or meant.habits.decimal == ",":
        return None
    if not are_all(matches(column, PLAIN)):
        return None
    values = filled(as_type(column, pa.float64()))
    if not np.isfinite(values).any():
        return None
    facts = number_facts(key, values, CellType.TEXT)
    return facts if meant.levels or not words.usual else _with_marks(facts)


def _running_facts(key: Key, column: Any, words: MissingWords) -> Facts | None:
    """Facts of cells too long and too many to be categories or numbers; None where they are not.

    The first few thousand say enough: looking at every cell of 44 MB takes 3 s.
    """
    some = column.slice(0, FEW_CELLS)
    coded = pa.types.is_dictionary(some.type)
    spelled = some.dictionary if coded else some
    if (
        cell_type(spelled.type) is not CellType.TEXT
        or (call("mean", call("binary_length", spelled)).as_py() or 0) < LONG_CELL
    ):
        return None
    some = without_marks(some.dictionary_decode() if coded else some, words.missing)
    different = call("count_distinct", some).as_py()
    if different <= FEW_TEXTS:
        return None
    texts = some.drop_null().slice(0, FEW_MEANT).to_pylist()
    return Facts(key, CellType.TEXT, len(some), len(some) - some.null_count, different, words=_mean_words(texts))


def _cell_facts(key: Key, column: Any, words: MissingWords, meant: Meant) -> Facts:
    found, places = distinct(column, words)
    if cell_type(column.type) is not CellType.TEXT:
        return _level_facts(key, cell_type(column.type), found, places)
    as_spelt = meant.levels or not words.usual
    dashes = dashes_in(found) if words.dashes and not as_spelt else ()
    if dashes:
        found = [None if value is not None and value.strip() in dashes else value for value in found]
    facts = _number_facts(key, found, places, words, meant)
    if facts is None or (as_spelt and facts.written is not None):
        facts = _level_facts(key, CellType.TEXT, found, places)
    return replace(facts, missing=(*dashes, *facts.missing))


def _number_facts(key: Key, found: list[Any], places: np.ndarray, words: MissingWords, meant: Meant) -> Facts | None:
    """Facts of cells of text that are numbers, plain or written otherwise, a few odd; None of others."""
    as_spelt = meant.levels or not words.usual
    floats, bad = floats_of(found, PLAIN)
    form, plain = None, not bad.any()
    if not as_spelt and (bad.any() or meant.habits.decimal == ",") and len(set(found) - {None}) > 1:
        form = form_of(key, found, meant.habits)
    if form is not None:
        floats, bad = form.read(found)
    if (as_spelt and bad.any()) or not np.isfinite(floats).any():
        return None
    kind = CellType.TIME if form is not None and form.of_time else CellType.TEXT
    spelt = number_facts(key, without(np.append(floats, np.nan)[places], words.numbers), kind)
    spelt = replace(spelt, written=form)
    few = not meant.numbers and kind is CellType.TEXT and spelt.whole and is_few(spelt.different, spelt.known)
    if few and form is not None and plain and all(cell is None or cell.isdecimal() for cell in found):
        return replace(spelt, written=None)  # plain whole numbers, whatever other columns begin their decimals with
    if not bad.any():
        return None if few and form is not None else spelt if as_spelt else _with_marks(spelt)
    odd = OddCells.of(found, places, bad)
    if mean_missing(key, odd, few):
        return replace(_with_marks(spelt), missing=odd.words, note=note_of_missing(key, odd))
    return replace(_level_facts(key, CellType.TEXT, found, places), note=note_of_words(key, odd, few))


def _level_facts(key: Key, cells: CellType, found: list[Any], places: np.ndarray) -> Facts:
    """The facts of cells as levels, from their distinct values and where each stands."""
    known = np.append([value is not None for value in found], False)[places] if len(places) else np.zeros(0, bool)
    texts = [value for value in found if value is not None]
    different = len(set(texts))
    only = texts[0] if different == 1 else None
    return Facts(key, cells, len(places), int(known.sum()), different, None, only, _mean_words(texts), there=known)


def _with_marks(facts: Facts) -> Facts:
    """The same, with a note where some numbers look as if they meant missing."""
    if facts.values is None or facts.cells is CellType.TIME:
        return facts
    return replace(facts, note=note_of_marks(facts.key, facts.values))


def _mean_words(texts: list[str]) -> float:
    some = [text for text in texts[:FEW_MEANT] if isinstance(text, str)]
    return sum(len(text.split()) for text in some) / len(some) if some else 0.0


# -- rows that are repeated

BY_CHANCE = 30.0
"""Times as many pairs of equal rows as independent columns would have, up to which rows are equal by chance."""
FEW_VALUES = 30
"""Different values up to which all that a column can hold were met."""
MOST_REPEATED = 1 << 20
"""Rows that whole weights may stand for."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def cell_codes(column: Any) -> np.ndarray:
    """Numbers for the different cells of a column, -1 where there is none."""
    return filled(as_type(with_levels(flat(column)).indices, "float64"), -1.0).astype(np.int64)


def counted_rows(columns: Iterable[np.ndarray], weights: np.ndarray | None = None) -> np.ndarray | None:
    """The places of the rows that count as evidence of what columns are; None is every row, once.

    A row that is repeated is no new evidence: repeating 100 of 240 rows turned counts into categories. So each
    different row counts once. But rows of few columns with few values are equal by chance: they all count, and a row of
    whole weight n counts n times. `columns` are codes of cells, those of most different values first.
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
    times = _whole_weights(weights, len(key))
    total = int(times.sum())
    if len(first) == total == len(key):
        return None
    alike = np.bincount(which, times).astype(np.float64)
    if alike @ (alike - 1.0) <= BY_CHANCE * _equal_by_chance(read, first, times) * total * (total - 1.0):
        return None if weights is None else np.repeat(np.arange(len(key)), times)
    return np.sort(first)


def _equal_by_chance(columns: Sequence[np.ndarray], first: np.ndarray, times: np.ndarray) -> float:
    """The probability that two rows are equal if columns are independent; `first` are places of the different rows.

    A column of many values has others that were not met: the different rows say how often two of its cells are equal.
    A column that follows from those before it makes no two rows differ.
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


def _whole_weights(weights: np.ndarray | None, rows: int) -> np.ndarray:
    """Weights as numbers of rows, at least 1: a row of weight 0, as of a fold held out, tells what its columns are.

    Ones if weights are not whole.
    """
    if weights is not None and 0 < weights.sum() <= MOST_REPEATED and (weights >= 0).all():
        whole = weights.astype(np.int64)
        if (whole == weights).all():
            return np.maximum(whole, 1)
    return np.ones(rows, dtype=np.int64)


def alike_to_draw(codes: np.ndarray, rows: int) -> np.ndarray:
    """The places of about so many rows, chosen by the codes of a column, so that equal rows are in or out together."""
    mixed = (codes.view(np.uint64) * _SPREAD) >> np.uint64(40)
    return np.flatnonzero(mixed % np.uint64(max(1, len(codes) // rows)) == 0)
