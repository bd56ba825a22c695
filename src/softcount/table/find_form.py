"""Finding how the cells of a column are written; what may be meant in two ways is refused, with what settles it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from softcount import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.file_format import ORDERS
from softcount.table.schema import Key
from softcount.table.cell_forms import BLANK, CellForm, NumberForm, TimeForm, number_pattern
from softcount.table.duration_form import duration_form

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
    return _form_of_numbers(key, cells, habits) or _time_form(key, cells, habits) or duration_form(cells)


def _form_of_numbers(key: Key, cells: Sequence[str], habits: CellHabits) -> NumberForm | None:
    """The form of numbers by the first cells, and by those that are written otherwise: 950 may come before 1,200."""
    some = cells[:LOOKED_AT]
    form = _number_form(key, some, habits)
    others = [] if form is None else [cell for cell, bad in zip(cells, form.read(cells)[1], strict=True) if bad]
    if form is None and all(map(re.compile(number_pattern("", ".")).fullmatch, some)):
        others = list(cells[LOOKED_AT:])  # plain so far
    return _number_form(key, [*others[:LOOKED_AT], *some], habits) if others else form


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
    patterns = _zoned(_patterns(cells[0]), cells)
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


def _zoned(patterns: Sequence[str], cells: Sequence[str]) -> Sequence[str]:
    """The patterns with any time zone in place of the first cell's, where others have others."""
    zones = {match["zone"] for cell in cells if (match := _moment.fullmatch(cell)) and match["clock"]}
    if len(zones) < 2 or "" in zones:
        return patterns
    return [re.sub("(?:Z|[+-][0-9]{2}:?[0-9]{2})$", "%z", pattern) for pattern in patterns]


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
