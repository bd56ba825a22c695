"""Forms of the numbers in a column: currencies, units, dates and durations, each detected, read and written.

The schema holds the form. A column without a form holds plain numbers, which Arrow parses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from msgspec import Struct

from softcount.core import remedies
from softcount.core.lazy import pa, pc
from softcount.core.ranges import Digits
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.frames import PLAIN, filled, text_of
from softcount.sources.source import ORDERS, Key

Read = tuple[np.ndarray, np.ndarray]
"""Cells as float64, NaN if missing or unreadable; and a mask of the unreadable cells."""

BLANK = "[ \u00a0\u202f]"
"""Blanks that may separate thousands, or a number from its unit."""

_READING = attrgetter("prefix", "suffix", "decimal", "thousands", "parentheses", "digits")


class NumberForm(Struct, frozen=True, dict=True, tag_field="form", tag="number"):
    """Numbers with a unit before or after them, thousands separators, or a decimal comma.

    Negative numbers may be in `parentheses`. Values are rounded to `digits` decimals. `decimals` is the number of
    decimals that every text cell is written with ("1.0" has one, although it is whole); 0 if it differs between cells.

    >>> form = NumberForm(prefix="$", thousands=",", digits=2, parentheses=True)
    >>> form.read(["$1,200", "($3.50)", "-$2", "x"])[0].tolist(), form.write(-1234.5)
    ([1200.0, -3.5, -2.0, nan], '($1,234.50)')
    """

    typed: ClassVar[str] = ""
    prefix: str = ""
    suffix: str = ""
    decimal: str = "."
    thousands: str = ""
    parentheses: bool = False
    digits: Digits = 0
    decimals: Digits = 0

    def __eq__(self, other: object) -> bool:
        """Whether both forms read cells alike; `decimals` is not compared."""
        if type(other) is not type(self):
            return NotImplemented
        return _READING(self) == _READING(other)

    def __hash__(self) -> int:
        return hash(_READING(self))

    @property
    def description(self) -> str:
        parts = [f"in {self.unit}"] if self.unit else []
        parts += ["decimal commas"] if self.decimal == "," else []
        parts += [f"thousands separated by {self.thousands!r}"] if self.thousands else []
        parts += ["negative in parentheses"] if self.parentheses else []
        return ("numbers " if self.unit else "numbers, ") + ", ".join(parts)

    @property
    def is_text(self) -> bool:
        """Whether Arrow cannot parse the cells as numbers."""
        return bool(self.prefix or self.suffix or self.thousands or self.decimal != "." or self.parentheses)

    @property
    def unit(self) -> str:
        return (self.prefix + self.suffix).strip()

    @cached_property
    def pattern(self) -> str:
        """A regular expression with groups for a parenthesis, a sign before or after the prefix, and the number."""
        before = f"(?:{re.escape(self.prefix)}{BLANK}*)?" if self.prefix else ""
        after = f"{BLANK}*{re.escape(self.suffix.strip())}" if self.suffix else ""
        core = rf"([+-]?){before}([+-]?)({_number_pattern(self.thousands, self.decimal)}){after}"
        return rf"^(\(?){core}\)?$" if self.parentheses else f"^(){core}$"

    def read(self, cells: Sequence[str | None]) -> Read:
        values = text_of([None if cell is None else cell.strip() for cell in cells])
        signs = pc.match_substring_regex(values, "[+-].*[+-]")  # a sign before the unit or after it, not both
        good = pc.and_not(pc.match_substring_regex(values, self.pattern), signs)
        kept = pc.if_else(good, values, pa.nulls(len(values), values.type))
        plain = pc.replace_substring_regex(kept, self.pattern, r"\2\3\4")
        if self.thousands:
            marks = BLANK if self.thousands == " " else re.escape(self.thousands)
            plain = pc.replace_substring_regex(plain, marks, "")
        if self.decimal != ".":
            plain = pc.replace_substring(plain, self.decimal, ".")
        below = filled(pc.starts_with(kept, "("), null=False)
        floats = filled(plain.cast(pa.float64()))
        return np.where(below, -floats, floats), ~filled(good, null=True)

    def write(self, value: float) -> str:
        if not np.isfinite(value):
            return str(value)
        plain = f"{abs(value):,.{self.digits}f}"
        swapped = plain.translate({ord(","): self.thousands or None, ord("."): self.decimal})
        below = value < 0 and float(plain.replace(",", "")) != 0
        if below and self.parentheses:
            return f"({self.prefix}{swapped}{self.suffix})"
        return f"{'-' if below else ''}{self.prefix}{swapped}{self.suffix}"

    def write_difference(self, value: float) -> str:
        return f"{self.prefix}{value:.3g}{self.suffix}"


def _number_pattern(thousands: str, decimal: str) -> str:
    point = re.escape(decimal)
    whole = "(?:0|[1-9][0-9]*)"
    if thousands:
        mark = BLANK if thousands == " " else re.escape(thousands)
        whole = f"(?:[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|{whole})"
    return f"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)"


_plain_number = re.compile(_number_pattern("", "."))

# -- dates, times of day, durations

DAY = 86_400.0
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_SHORT_MONTHS = [month[:3].lower() for month in MONTHS]
_TOKENS = {
    "%Y": "(?P<Y>[0-9]{4})",
    "%y": "(?P<y>[0-9]{2})",
    "%m": "(?P<m>[0-9]{1,2})",
    "%b": "(?P<b>(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))",
    "%B": "(?P<b>(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))[A-Za-z]*",
    "%d": "(?P<d>[0-9]{1,2})",
    "%D": "(?P<D>[0-9]+)",
    "%H": "(?P<H>[0-9]{1,4})",
    "%M": "(?P<M>[0-9]{2})",
    "%S": r"(?P<S>[0-9]{2}(?:\.[0-9]+)?)",
    "%q": "(?P<q>[1-4])",
    "%z": "(?P<z>Z|[+-][0-9]{2}:?[0-9]{2})",
    "%p": r"(?P<p>(?i:[ap])\.?(?i:m)\.?)",
}
_token = re.compile("(%[a-zA-Z])")
ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")
"""Unambiguous ways to write a date, accepted in a column of any other date form."""


def _zone_seconds(zone: str) -> float:
    """Return how many seconds a time zone is ahead of UTC."""
    if zone == "Z":
        return 0.0
    seconds = 3600.0 * int(zone[1:3]) + 60.0 * int(zone[-2:])
    return -seconds if zone[0] == "-" else seconds


_PARSERS: dict[str, Callable[[str], float]] = {
    "b": lambda month: 1.0 + _SHORT_MONTHS.index(month.lower()),
    "sign": lambda sign: -1.0 if sign == "-" else 1.0,
    "z": _zone_seconds,
    "p": lambda half: 12.0 * (half[0] in "Pp"),
}
"""Parsers of the parts of a time that are not digits; other parts are cast to numbers."""


class TimeForm(Struct, frozen=True, tag_field="form", tag="time"):
    """Dates, times of day and durations, in seconds since 1970, since midnight, or of length.

    `pattern` is a `strftime` pattern, with %D for whole days. `padded`: days and months below ten are written with a
    zero. `digits` is the number of decimals of written seconds. `typed` is the Arrow type of the column; empty if cells
    are text.

    >>> form = TimeForm("%d/%m/%Y")
    >>> form.read(["31/01/2024", "30/02/2024"]), form.write(1706659200.0)
    ((array([1.7066592e+09,           nan]), array([False,  True])), '31/01/2024')
    """

    pattern: str = "%Y-%m-%d"
    padded: bool = True
    digits: Digits = 0
    typed: str = ""

    @property
    def is_text(self) -> bool:
        return not self.typed

    @property
    def is_date(self) -> bool:
        return "%d" in self.pattern or "%Y" in self.pattern

    @property
    def description(self) -> str:
        times = " and times" if "%H" in self.pattern else ""
        if not self.is_date:
            return "durations" if "%D" in self.pattern or self.typed.startswith("duration") else "times, as seconds"
        zones = " in several time zones, converted to UTC" if "%z" in self.pattern else ""
        if "%q" in self.pattern:
            return "quarters of a year"
        if "%b" in self.pattern or "%B" in self.pattern or self.pattern.startswith("%Y"):
            return f"dates{times}{zones}"
        return f"dates{times}, {'day' if self.pattern.index('%d') < self.pattern.index('%m') else 'month'} first"

    @property
    def finest(self) -> float:
        """The smallest unit that is written, in seconds."""
        if "%S" in self.pattern:
            return float(10.0**-self.digits)
        return 60.0 if "%M" in self.pattern else DAY

    def read(self, cells: Sequence[str | None]) -> Read:
        found, bad = self._read_as(self.pattern, cells)
        for pattern in ISO if self.is_date and bad.any() else ():  # midnight is often omitted, or added
            again, wrong = self._read_as(pattern, [cell if odd else None for cell, odd in zip(cells, bad, strict=True)])
            found, bad = np.where(bad, again, found), bad & wrong
        return found, bad

    def _read_as(self, pattern: str, cells: Sequence[str | None]) -> Read:
        there = np.array([cell is not None for cell in cells], dtype=bool)
        if not there.any():
            return np.full(len(cells), np.nan), there
        sign = "" if "%Y" in pattern or "%y" in pattern else "(?P<sign>-?)"
        matching = f"^{sign}" + "".join(_TOKENS.get(part, re.escape(part)) for part in _token.split(pattern)) + "$"
        found = pc.extract_regex(text_of([None if cell is None else cell.strip() for cell in cells]), matching)
        parts: dict[str, np.ndarray] = {}
        for name in found.type.names:
            column, parse = pc.struct_field(found, [name]), _PARSERS.get(name)
            if parse is None:
                parts[name] = filled(column.cast(pa.float64()))
            else:
                parts[name] = np.array([np.nan if text is None else parse(text) for text in column.to_pylist()])
        zero = np.zeros(len(cells))
        hours = parts.get("H", zero)
        if "p" in parts:  # 12 am is midnight, 12 pm is noon
            hours = np.where((hours < 1) | (hours > 12), np.nan, hours % 12 + parts["p"])
        ahead = parts.get("z", zero)
        clock = hours * 3600 - ahead + parts.get("M", zero) * 60 + parts.get("S", zero) + parts.get("D", zero) * DAY
        seconds = np.asarray(clock * parts.get("sign", np.ones(len(cells))), dtype=np.float64)
        known = ~filled(pc.is_null(found), null=True)
        if self.is_date:
            days, valid = _days_since_1970(parts, len(cells))
            seconds, known = seconds + days * DAY, known & valid & (parts.get("H", zero) < 24)
        known &= ~np.isnan(seconds) & (parts.get("M", zero) < 60) & (parts.get("S", zero) < 61)
        return np.where(known, seconds, np.nan), there & ~known

    def write(self, value: float) -> str:
        if not np.isfinite(value) or abs(value) > 2.5e11:
            return f"{value:.17g}"
        rounded = round(value / self.finest) * self.finest
        sign = "-" if rounded < 0 and not self.is_date else ""
        whole = rounded if self.is_date else abs(rounded)
        days, left = divmod(whole, DAY)
        if not self.is_date and "%D" not in self.pattern:
            days, left = 0.0, whole
        hours, left = divmod(left, 3600.0)
        minutes, seconds = divmod(left, 60.0)
        shown = (hours - 1) % 12 + 1 if "%p" in self.pattern else hours
        texts = {
            "%D": f"{days:.0f}",
            "%H": f"{shown:02.0f}" if self.padded else f"{shown:.0f}",
            "%M": f"{minutes:02.0f}",
            "%S": f"{seconds:0{3 + self.digits if self.digits else 2}.{self.digits}f}",
            "%p": "PM" if hours >= 12 else "AM",
            "%z": "Z",
        }
        if self.is_date:
            year, month, day = str(np.datetime64(int(days), "D")).rsplit("-", 2)
            name, quarter = MONTHS[int(month) - 1], (int(month) + 2) // 3
            month, day = (month, day) if self.padded else (month.lstrip("0"), day.lstrip("0"))
            texts |= {"%q": str(quarter), "%Y": year, "%y": year[-2:], "%m": month, "%d": day}
            texts |= {"%b": name[:3], "%B": name}
        return sign + "".join(texts.get(part, part) for part in _token.split(self.pattern))

    def write_difference(self, value: float) -> str:
        return _write_seconds(value)


def _write_seconds(value: float) -> str:
    """Write seconds in the largest unit that gives 2 or more."""
    for unit, seconds in (("days", DAY), ("hours", 3600.0), ("minutes", 60.0)):
        if abs(value) >= 2 * seconds:
            return f"{value / seconds:.3g} {unit}"
    return f"{value:.3g} seconds"


def _days_since_1970(parts: dict[str, np.ndarray], count: int) -> Read:
    """Return days since 1970, and a mask of the dates that exist."""
    short = parts.get("y")
    years = parts["Y"] if short is None else np.where(short < 69, 2000 + short, 1900 + short)
    quarters = 3.0 * parts.get("q", np.ones(count)) - 2.0
    months, days = parts.get("b", parts.get("m", quarters)), parts.get("d", np.ones(count))
    valid = (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31) & (years >= 1)
    whole = np.nan_to_num((np.where(valid, years, 1970) - 1970) * 12 + np.where(valid, months, 1) - 1).astype(np.int64)
    starts = np.asarray(whole.astype("datetime64[M]"))
    found = starts.astype("datetime64[D]").astype(np.float64)
    ends = (starts + 1).astype("datetime64[D]").astype(np.float64)
    return found + days - 1, valid & (days <= ends - found)


_TYPES = re.compile(r"(date32|date64|timestamp|duration|time32|time64)\[(day|s|ms|us|ns)(?:, tz=([\w/+:-]+))?\]")
_TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def is_time_type(name: str) -> bool:
    return _TYPES.fullmatch(name) is not None


def form_of_type(kind: Any) -> TimeForm:
    digits = {"s": 0, "ms": 3}.get(getattr(kind, "unit", "s"), 6)
    if pa.types.is_date32(kind):
        return TimeForm(typed=str(kind))
    if pa.types.is_duration(kind):
        return TimeForm("%D days %H:%M:%S", digits=0, typed=str(kind))
    if pa.types.is_time(kind):
        return TimeForm("%H:%M:%S", digits=min(digits, 3), typed=str(kind))
    return TimeForm("%Y-%m-%d %H:%M:%S", digits=0, typed=str(kind))


def seconds_of(column: Any) -> np.ndarray:
    """Return an Arrow time column as seconds: since 1970 (dates), since midnight (times) or of length (durations)."""
    days = pa.types.is_date32(column.type)
    unit = "ms" if pa.types.is_date64(column.type) else getattr(column.type, "unit", "s")
    ticks = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64()).cast(pa.float64(), safe=False)
    found = filled(ticks)
    return found * DAY if days else found / _TICKS[unit]


def _as_time_type(values: np.ndarray, typed: str) -> Any:
    """Return seconds as an Arrow array of the type named `typed`, null for NaN."""
    found = _TYPES.fullmatch(typed)
    assert found is not None
    name, unit, zone = found.groups()
    known = np.isfinite(values)
    days = name == "date32"
    per_second = 1 / DAY if days else _TICKS["ms" if name == "date64" else unit]
    size = np.int32 if name in ("date32", "time32") else np.int64
    ticks = np.floor(np.where(known, values, 0.0) * per_second + (0.0 if days else 0.5)).astype(size)
    if name in ("time32", "time64"):  # a sampled time of day may be beyond midnight
        ticks = np.mod(ticks, int(DAY * per_second)).astype(size)
    kind = getattr(pa, name)(*([] if name.startswith("date") else [unit]), **({"tz": zone} if zone else {}))
    return pa.array(ticks, mask=~known).cast(kind)


UNITS = {"W": 7 * DAY, "D": DAY, "H": 3600.0, "M": 60.0, "S": 1.0}
_duration = re.compile(
    r"(?P<sign>-?)P(?=[0-9T])(?:(?P<W>[0-9]+)W)?(?:(?P<D>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<H>[0-9]+)H)?(?:(?P<M>[0-9]+)M)?(?:(?P<S>[0-9]+(?:\.[0-9]+)?)S)?)?"
)


class DurationForm(Struct, frozen=True, tag_field="form", tag="duration"):
    """ISO 8601 durations such as PT1H30M, in seconds. Years and months, which differ in length, are not read.

    `unit` is the smallest unit that is written, and `digits` the number of decimals of written seconds.

    >>> form = DurationForm()
    >>> form.read(["PT1H30M", "P2D", "P1Y"])[0].tolist(), form.write(5400.0)
    ([5400.0, 172800.0, nan], 'PT1H30M')
    """

    typed: ClassVar[str] = ""
    is_text: ClassVar[bool] = True
    description: ClassVar[str] = "durations, as seconds"
    digits: Digits = 0
    unit: str = "S"

    def read(self, cells: Sequence[str | None]) -> Read:
        values = np.full(len(cells), np.nan)
        for place, cell in enumerate(cells):
            match = None if cell is None else _duration.fullmatch(cell.strip())
            if match is not None:
                total = sum(float(match[unit]) * worth for unit, worth in UNITS.items() if match[unit] is not None)
                values[place] = -total if match["sign"] else total
        there = np.array([cell is not None for cell in cells], dtype=bool)
        return values, there & np.isnan(values)

    def write(self, value: float) -> str:
        if not np.isfinite(value):
            return str(value)
        finest = UNITS.get(self.unit, 1.0) * 10.0**-self.digits
        days, left = divmod(round(round(abs(value) / finest) * finest, self.digits), DAY)
        hours, left = divmod(left, 3600.0)
        minutes, seconds = divmod(left, 60.0)
        last = f"{seconds:.{self.digits}f}"
        clock = "".join(f"{part:.0f}{unit}" for part, unit in ((hours, "H"), (minutes, "M")) if part)
        clock += f"{last}S" if float(last) else ""
        date = f"{days:.0f}D" if days else ""
        return f"{'-' if value < 0 and (date or clock) else ''}P{date}{f'T{clock}' if clock else '' if date else 'T0S'}"

    def write_difference(self, value: float) -> str:
        return _write_seconds(value)


CellForm = NumberForm | TimeForm | DurationForm


# -- numbers as cells, and cells as numbers

WHOLE = NumberForm()
"""Whole numbers in plain notation."""
MOST_DECIMALS = 6
"""Most decimals of numbers that a person rounded; more decimals come from a computation."""
ENOUGH_NUMBERS = 1_024
"""Numbers that decide how many decimals a column has."""


def detect_rounding(values: np.ndarray) -> NumberForm | None:
    """Return the form of plain numbers that have at most `MOST_DECIMALS` decimals; None if some have more.

    >>> detect_rounding(np.array([1.25, 3.0, 7.1])).digits, detect_rounding(np.array([1 / 3]))
    (2, None)
    """
    some = values[:ENOUGH_NUMBERS]
    with np.errstate(over="ignore", invalid="ignore"):
        for digits in range(1, MOST_DECIMALS + 1):
            if (np.round(some, digits) == some).all():
                return NumberForm(digits=digits)
    return None


def is_plain(form: CellForm | None) -> bool:
    return form is None or (isinstance(form, NumberForm) and not form.is_text)


def fixed_decimals(form: CellForm | None) -> int:
    """Return the decimals that every cell of plain numbers is written with; 0 if they differ or are unknown."""
    return form.decimals if isinstance(form, NumberForm) and not form.is_text else 0


def write_cell(form: CellForm | None, value: Any) -> Any:
    """Write a number in the form of its column; plain numbers and values that are not floats stay unchanged."""
    return value if form is None or is_plain(form) or not isinstance(value, float) else form.write(value)


def parse_cell(form: CellForm | None, text: str) -> float:
    """Parse what a user typed for a cell, in the column's form or as a plain number; NaN if it is neither."""
    if form is not None and not is_plain(form):
        found = form.read([text])[0][0]
        if not np.isnan(found):
            return float(found)
    try:
        return float(text)
    except ValueError:
        return float("nan")


def restore_cells(form: CellForm | None, values: np.ndarray) -> Any:
    """Return numbers as cells of their column: rounded, as dates, or as text; unchanged if the column has no form.

    >>> restore_cells(WHOLE, np.array([2.6])).tolist(), restore_cells(TimeForm(), np.array([86_400.0])).tolist()
    ([3], ['1970-01-02'])
    """
    if form is None or values.dtype.kind not in "fiu":
        return values
    if form == WHOLE:
        whole = np.isfinite(values).all() and (np.abs(values) < 2.0**62).all()
        found = np.rint(values) if whole else values
        return found.astype(np.int64) if whole and not fixed_decimals(form) else found
    if is_plain(form):
        return np.round(values, form.digits)
    if form.typed:
        return _as_time_type(values.astype(np.float64), form.typed)
    return np.array([None if np.isnan(value) else form.write(float(value)) for value in values], dtype=object)


# -- which form the cells of a column have

LOOKED_AT = 1_000
"""Distinct cells that suggest a form; in the end all cells must have it."""


class CellHabits(NamedTuple):
    """The decimal mark, the order of dates and the delimiter of a table; None if unknown."""

    decimal: str | None = None
    dates: str | None = None
    delimiter: str | None = None


NO_HABITS = CellHabits()
_digit, _plain = re.compile("[0-9]"), re.compile(PLAIN)


def detect_form(key: Key, texts: Sequence[str | None], habits: CellHabits) -> CellForm | None:
    """Return the form shared by all cells that contain a digit; None if they share no form."""
    cells = [text.strip() for text in texts if text is not None and _digit.search(text)]
    if not cells or (habits.decimal != "," and all(map(_plain.fullmatch, cells))):
        return None
    some = cells[:LOOKED_AT]
    form = _number_form(key, some, habits)
    others = [] if form is None else [cell for cell, bad in zip(cells, form.read(cells)[1], strict=True) if bad]
    if form is None and all(map(_plain_number.fullmatch, some)):
        others = list(cells[LOOKED_AT:])  # plain numbers so far
    form = _number_form(key, [*others[:LOOKED_AT], *some], habits) if others else form
    if form is not None:
        return form
    patterns = _time_patterns(cells[0])
    if patterns:
        return _time_form(key, cells, patterns, habits)
    if not all(map(_duration.fullmatch, cells)):
        return None
    matches = [match for match in map(_duration.fullmatch, cells) if match is not None]
    digits = min(max(len((match["S"] or "").partition(".")[2]) for match in matches), 6)
    units = [unit for unit in UNITS if unit != "W" and any(match[unit] for match in matches)]
    return DurationForm(digits, units[-1] if units else "D")


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
"""Pairs of thousands separator and decimal mark, the simplest first."""


def _number_form(key: Key, cells: Sequence[str], habits: CellHabits) -> NumberForm | None:
    matches = []
    for cell in cells:
        match = _cell.fullmatch(cell)
        if match is None or bool(match["open"]) != bool(match["close"]):
            return None
        matches.append(match)
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
    return form if form.is_text else None


def _marks(key: Key, numbers: Sequence[str], habits: CellHabits) -> tuple[str, str] | None:
    fits = [pair for pair in _MARKS if all(map(re.compile(_number_pattern(*pair)).fullmatch, numbers))]
    if habits.decimal is not None:
        return next((pair for pair in fits if pair[1] == habits.decimal), None)
    if (",", ".") in fits and ("", ",") in fits and ("", ".") not in fits:
        if habits.delimiter in (",", None):  # a comma that separates cells is not a decimal comma
            return ",", "."
        odd = next(number for number in numbers if "," in number)
        marks = " or ".join(remedies.setting("decimal", mark) for mark in ",.")
        raise DataError(
            f"{wording.column(key)} holds {wording.cell(odd)}, which may be {odd.replace(',', '')} or "
            f"{odd.replace(',', '.')}. Give the decimal mark: {marks}"
        )
    return fits[0] if fits else None


_comma_decimals = re.compile(r"(?:[0-9.\u00a0\u202f ']*[0-9]),(?:[0-9]{1,2}|[0-9]{4,})")


def has_decimal_commas(cells: Sequence[str]) -> bool:
    """Whether the cells with a digit are numbers that can be read only with decimal commas."""
    found = False
    for cell in cells if "," in "".join(cells) else ():
        match = _cell.fullmatch(cell.strip())
        if match is None and _digit.search(cell):
            return False
        found = found or (match is not None and _comma_decimals.fullmatch(match["number"].strip()) is not None)
    return found


_ZONE = r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2}|)"
_HALF = r"(?P<half>(?: ?[AaPp]\.?[Mm]\.?)?)"
_CLOCK = rf"(?P<hour>[0-9]{{1,4}}):[0-9]{{2}}(?P<second>(?::[0-9]{{2}}(?P<part>\.[0-9]+)?)?){_HALF}{_ZONE}"
_time = re.compile(rf"-?(?P<days>(?:[0-9]+ days?,? )?){_CLOCK}")
_moment = re.compile(rf"(?P<date>.*?[0-9])(?:(?P<join>T|,? )(?P<clock>{_CLOCK}))?")
_small = re.compile(r"(?<![0-9])[1-9](?=[-/.,]| (?!day))|(?<![0-9:])[0-9]:")
_MONTH, _YEAR = r"(?P<month>[A-Za-z]{3,9})\.?", "(?P<year>[0-9]{4}|[0-9]{2})"
_DATES = tuple(
    (re.compile(cell), patterns)
    for cell, *patterns in (
        (r"[0-9]{4}(?P<sep>[- /]?)Q[1-4]", "%Y{sep}Q%q"),
        (r"Q[1-4](?P<sep>[- /])[0-9]{4}", "Q%q{sep}%Y"),
        (r"[0-9]{4}(?P<sep>[-/.])[0-9]{1,2}(?P=sep)[0-9]{1,2}", "%Y{sep}%m{sep}%d"),
        (r"[0-9]{4}-[0-9]{1,2}", "%Y-%m"),
        (rf"[0-9]{{1,2}}(?P<sep>[-/.]|\. )[0-9]{{1,2}}(?P=sep){_YEAR}", "%d{sep}%m{sep}{year}", "%m{sep}%d{sep}{year}"),
        (rf"[0-9]{{1,2}}(?P<sep>[-/ ]|\. ){_MONTH}(?P<then>[-/ ]|, ){_YEAR}", "%d{sep}{month}{then}{year}"),
        (rf"{_MONTH}(?P<sep>[- ])[0-9]{{1,2}}(?P<then>, | |-)[0-9]{{4}}", "{month}{sep}%d{then}%Y"),
    )
)
"""Regular expressions of dates, with the patterns that read them: two if day or month may come first."""


def _time_form(key: Key, cells: Sequence[str], patterns: list[str], habits: CellHabits) -> TimeForm | None:
    """Detect the form of dates, times or durations; ambiguous dates raise an error unless `habits` give their order."""
    zones = {match["zone"] for cell in cells if (match := _moment.fullmatch(cell)) and match["clock"]}
    if len(zones) > 1 and "" not in zones:
        patterns = [re.sub("(?:Z|[+-][0-9]{2}:?[0-9]{2})$", "%z", pattern) for pattern in patterns]
    matches = [_moment.fullmatch(cell) or _time.fullmatch(cell) for cell in cells]
    digits = max((len(match["part"] or ".") - 1 for match in matches if match), default=0)
    padded = not any(_small.search(cell) for cell in cells)
    forms = [TimeForm(pattern, padded, min(digits, 6)) for pattern in patterns]
    wrong = [form.read(cells)[1] for form in forms]
    fits = [form for form, bad in zip(forms, wrong, strict=True) if not bad.any()]
    if len(fits) == 2 and "." not in fits[0].pattern:  # dates with dots have the day first
        if habits.dates in ("day-first", "month-first"):
            return fits[habits.dates == "month-first"]
        ways = " or ".join(remedies.setting("dates", way) for way in list(ORDERS)[:2])
        raise DataError(
            f"{wording.column(key)} holds dates such as {cells[0]!r}, where the day or the month may come "
            f"first. Give the order: {ways}"
        )
    if len(forms) == 2 and not fits and not (wrong[0] & wrong[1]).any():
        mixed = [cells[int(bad.argmax())] for bad in wrong]
        raise DataError(
            f"{wording.column(key)} mixes days first and months first: {wording.cell(mixed[1])} and "
            f"{wording.cell(mixed[0])}. Write them in one order, or leave it out: {remedies.kind(key, 'ignore')}"
        )
    return fits[0] if fits else None


def _time_patterns(cell: str) -> list[str]:
    """Return the patterns that may read a cell as a time: two if its day or its month may come first."""
    match = _time.fullmatch(cell) or _moment.fullmatch(cell)
    if match is None:
        return []
    clock = ""
    if match["hour"]:
        half = "" if not match["half"] else " %p" if match["half"].startswith(" ") else "%p"
        clock = "%H:%M" + (":%S" if match["second"] else "") + half + match["zone"]
    if match.re is _time:
        return [clock.removesuffix(match["zone"]) if match["half"] else re.sub("^[0-9]+", "%D", match["days"]) + clock]
    for form, patterns in _DATES:
        date = form.fullmatch(match["date"])
        if date is not None:
            parts = date.groupdict("")
            parts["year"] = "%Y" if len(parts.get("year", "")) == 4 else "%y"
            parts["month"] = "%b" if len(parts.get("month", "")) == 3 else "%B"
            return [pattern.format(**parts) + (match["join"] or "") + clock for pattern in patterns]
    return []
