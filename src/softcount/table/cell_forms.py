"""How the numbers of a column are written in its cells: read by one function, and written back by another.

A form is held in the schema. Columns without one hold plain numbers, which Arrow reads by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from softcount.core.lazy import pa, pc
from softcount.sources.arrow_columns import filled, number_of, text_of

Read = tuple[np.ndarray, np.ndarray]
"""What cells say as float64, NaN where nothing; and which of them say nothing though they are there."""

BLANK = "[ \u00a0\u202f]"
"""What may part the thousands of a number, or stand before its unit."""


class CellForm(Struct, frozen=True):
    """How a column's cells are written. `typed` ones are no text, and come back as what they were."""

    name: ClassVar[str]
    of_time: ClassVar[bool] = False
    typed = ""

    @property
    def spelt(self) -> bool:
        """Whether cells are text that Arrow cannot read by itself."""
        raise NotImplementedError

    @property
    def said(self) -> str:
        """What the form is, for the table's owner."""
        raise NotImplementedError

    def read(self, cells: Sequence[str | None]) -> Read:
        """What cells of text say."""
        raise NotImplementedError

    def written(self, value: float) -> str:
        """A number as a cell of the column has it."""
        raise NotImplementedError

    def spread(self, value: float) -> str:
        """A difference of two numbers of the column, to three digits."""
        raise NotImplementedError

    @property
    def document(self) -> dict[str, Any]:
        """The form as JSON."""
        return {"form": self.name, **asdict(self)}


_READING = attrgetter("prefix", "suffix", "decimal", "thousands", "parentheses", "digits")


class NumberForm(CellForm, frozen=True, dict=True, tag_field="form", tag="number"):
    """Numbers with something before or after them, marks between thousands, or another mark before their decimals.

    `negative` ones may be in parentheses. Values are rounded to `digits` decimals. `decimals` is the number of decimals
    that every cell of text is spelt with ("1.0" has one, though it is whole); 0 if it differs from cell to cell.

    >>> form = NumberForm(prefix="$", thousands=",", digits=2, parentheses=True)
    >>> form.read(["$1,200", "($3.50)", "-$2", "x"])[0].tolist(), form.written(-1234.5)
    ([1200.0, -3.5, -2.0, nan], '($1,234.50)')
    """

    name = "number"
    prefix: str = ""
    suffix: str = ""
    decimal: str = "."
    thousands: str = ""
    parentheses: bool = False
    digits: int = 0
    decimals: int = 0

    def __eq__(self, other: object) -> bool:
        """Whether the same cells are read alike: `decimals` does not count."""
        if type(other) is not type(self):
            return NotImplemented
        return _READING(self) == _READING(other)

    def __hash__(self) -> int:
        return hash(_READING(self))

    @property
    def said(self) -> str:
        parts = [f"in {self.unit}"] if self.unit else []
        parts += ["decimal commas"] if self.decimal == "," else []
        parts += [f"thousands parted by {self.thousands!r}"] if self.thousands else []
        parts += ["negative in parentheses"] if self.parentheses else []
        return "numbers " + ", ".join(parts) if self.unit else "numbers, " + ", ".join(parts)

    @property
    def spelt(self) -> bool:
        return bool(self.unit or self.thousands or self.decimal != "." or self.parentheses)

    @property
    def unit(self) -> str:
        """What stands before or after every number."""
        return (self.prefix + self.suffix).strip()

    @cached_property
    def pattern(self) -> str:
        """A regular expression of a cell: whether in parentheses, a sign before or after the prefix, and the number."""
        before = f"(?:{re.escape(self.prefix)}{BLANK}*)?" if self.prefix else ""
        after = f"{BLANK}*{re.escape(self.suffix.strip())}" if self.suffix else ""
        core = rf"([+-]?){before}([+-]?)({number_pattern(self.thousands, self.decimal)}){after}"
        return rf"^(\(?){core}\)?$" if self.parentheses else f"^(){core}$"

    def read(self, cells: Sequence[str | None]) -> Read:
        values = text_of([None if cell is None else cell.strip() for cell in cells])
        signs = pc.match_substring_regex(values, "[+-].*[+-]")  # before the unit or after it, not both
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

    def written(self, value: float) -> str:
        if not np.isfinite(value):
            return str(value)
        plain = f"{abs(value):,.{self.digits}f}"
        swapped = plain.translate({ord(","): self.thousands or None, ord("."): self.decimal})
        below = value < 0 and float(plain.replace(",", "")) != 0
        if below and self.parentheses:
            return f"({self.prefix}{swapped}{self.suffix})"
        return f"{'-' if below else ''}{self.prefix}{swapped}{self.suffix}"

    def spread(self, value: float) -> str:
        return f"{self.prefix}{value:.3g}{self.suffix}"


def number_pattern(thousands: str, decimal: str) -> str:
    """A regular expression of a number without a sign, its thousands parted or not."""
    point = re.escape(decimal)
    whole = "(?:0|[1-9][0-9]*)"
    if thousands:
        mark = BLANK if thousands == " " else re.escape(thousands)
        whole = f"(?:[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|{whole})"
    return f"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)"


# -- dates, times of day, durations

DAY = 86_400.0
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
SHORT_MONTHS = [month[:3].lower() for month in MONTHS]
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
"""How dates may be written whatever the form of the others: nobody takes them for anything else."""


class TimeForm(CellForm, frozen=True, tag_field="form", tag="time"):
    """Dates, times of day and durations, as seconds since 1970, since midnight, or in all.

    `pattern` is written as `strftime` has it, %D being whole days; `padded`: days and months below ten have a zero;
    `digits` decimals of a second are written. `typed` is the Arrow type of a column that is no text.

    >>> form = TimeForm("%d/%m/%Y")
    >>> form.read(["31/01/2024", "30/02/2024"]), form.written(1706659200.0)
    ((array([1.7066592e+09,           nan]), array([False,  True])), '31/01/2024')
    """

    name = "time"
    of_time = True
    pattern: str = "%Y-%m-%d"
    padded: bool = True
    digits: int = 0
    typed: str = ""

    @property
    def spelt(self) -> bool:
        return not self.typed

    @property
    def is_date(self) -> bool:
        """Whether it names days of the calendar."""
        return "%d" in self.pattern or "%Y" in self.pattern

    @property
    def said(self) -> str:
        times = " and times" if "%H" in self.pattern else ""
        if not self.is_date:
            return "durations" if "%D" in self.pattern or self.typed.startswith("duration") else "times, as seconds"
        zones = " in several time zones, counted in that of Greenwich" if "%z" in self.pattern else ""
        if "%q" in self.pattern:
            return "quarters of a year"
        if "%b" in self.pattern or "%B" in self.pattern or self.pattern.startswith("%Y"):
            return f"dates{times}{zones}"
        return f"dates{times}, {'day' if self.pattern.index('%d') < self.pattern.index('%m') else 'month'} first"

    @property
    def finest(self) -> float:
        """Seconds of the smallest part that is written."""
        if "%S" in self.pattern:
            return float(10.0**-self.digits)
        return 60.0 if "%M" in self.pattern else DAY

    def read(self, cells: Sequence[str | None]) -> Read:
        found, bad = self._read_as(self.pattern, cells)
        for pattern in ISO if self.is_date and bad.any() else ():  # a time of midnight is often left out, or added
            again, wrong = self._read_as(pattern, [cell if odd else None for cell, odd in zip(cells, bad, strict=True)])
            found, bad = np.where(bad, again, found), bad & wrong
        return found, bad

    def _read_as(self, pattern: str, cells: Sequence[str | None]) -> Read:
        there = np.array([cell is not None for cell in cells], dtype=bool)
        if not there.any():
            return np.full(len(cells), np.nan), there
        found = pc.extract_regex(
            text_of([None if cell is None else cell.strip() for cell in cells]), time_pattern(pattern)
        )
        parts = {name: _part(name, pc.struct_field(found, [name])) for name in found.type.names}
        zero = np.zeros(len(cells))
        hours = parts.get("H", zero)
        if "p" in parts:  # 12 am is midnight, and 12 pm noon
            hours = np.where((hours < 1) | (hours > 12), np.nan, hours % 12 + parts["p"])
        ahead = parts.get("z", zero)
        clock = hours * 3600 - ahead + parts.get("M", zero) * 60 + parts.get("S", zero) + parts.get("D", zero) * DAY
        seconds = np.asarray(clock * parts.get("sign", np.ones(len(cells))), dtype=np.float64)
        known = ~filled(pc.is_null(found), null=True)
        if self.is_date:
            days, valid = _days(parts, len(cells))
            seconds, known = seconds + days * DAY, known & valid & (parts.get("H", np.zeros(1)) < 24)
        known &= ~np.isnan(seconds) & (parts.get("M", np.zeros(1)) < 60) & (parts.get("S", np.zeros(1)) < 61)
        return np.where(known, seconds, np.nan), there & ~known

    def written(self, value: float) -> str:
        if not np.isfinite(value) or abs(value) > 2.5e11:
            return f"{value:.17g}"
        rounded = round(value / self.finest) * self.finest
        sign = "-" if rounded < 0 and not self.is_date else ""
        whole = rounded if self.is_date else abs(rounded)
        days, left = divmod(whole, DAY)
        if not self.is_date and "%D" not in self.pattern:
            days, left = 0.0, whole
        written = {"%D": f"{days:.0f}", **_clock_words(left, self.digits, "%p" in self.pattern, self.padded)}
        if self.is_date:
            written |= _date_words(int(days), self.padded)
        return sign + "".join(written.get(part, part) for part in _token.split(self.pattern))

    def spread(self, value: float) -> str:
        return time_spread(value)


def time_spread(value: float) -> str:
    """Seconds in the largest unit of which they are two or more."""
    for unit, seconds in (("days", DAY), ("hours", 3600.0), ("minutes", 60.0)):
        if abs(value) >= 2 * seconds:
            return f"{value / seconds:.3g} {unit}"
    return f"{value:.3g} seconds"


def typed_form(kind: Any) -> TimeForm:
    """The form of a column of dates, times or durations that is no text, by its Arrow type."""
    digits = {"s": 0, "ms": 3}.get(getattr(kind, "unit", "s"), 6)
    if pa.types.is_date32(kind):
        return TimeForm(typed=str(kind))
    if pa.types.is_duration(kind):
        return TimeForm("%D days %H:%M:%S", digits=0, typed=str(kind))
    if pa.types.is_time(kind):
        return TimeForm("%H:%M:%S", digits=min(digits, 3), typed=str(kind))
    return TimeForm("%Y-%m-%d %H:%M:%S", digits=0, typed=str(kind))


_TYPED = re.compile(r"(date32|date64|timestamp|duration|time32|time64)\[(day|s|ms|us|ns)(?:, tz=([\w/+:-]+))?\]")
_TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def typed_times(values: np.ndarray, typed: str) -> Any:
    """Seconds as an Arrow array of such a type, null where they are NaN."""
    found = _TYPED.fullmatch(typed)
    assert found is not None
    name, unit, zone = found.groups()
    known = np.isfinite(values)
    days = name == "date32"
    per_second = 1 / DAY if days else _TICKS["ms" if name == "date64" else unit]
    size = np.int32 if name in ("date32", "time32") else np.int64
    ticks = np.floor(np.where(known, values, 0.0) * per_second + (0.0 if days else 0.5)).astype(size)
    kind = getattr(pa, name)(*([] if name.startswith("date") else [unit]), **({"tz": zone} if zone else {}))
    return pa.array(ticks, mask=~known).cast(kind)


def is_typed(text: str) -> bool:
    """Whether a text is such a type."""
    return _TYPED.fullmatch(text) is not None


def time_pattern(pattern: str) -> str:
    """The regular expression of a pattern; what is no date may be below zero."""
    sign = "" if "%Y" in pattern or "%y" in pattern else "(?P<sign>-?)"
    return f"^{sign}" + "".join(_TOKENS.get(part, re.escape(part)) for part in _token.split(pattern)) + "$"


def _part(name: str, column: Any) -> np.ndarray:
    """A part of dates as float64, NaN where it is none."""
    if name == "b":
        return np.array([np.nan if x is None else 1.0 + SHORT_MONTHS.index(x.lower()) for x in column.to_pylist()])
    if name == "sign":
        return np.array([-1.0 if x == "-" else 1.0 for x in column.to_pylist()])
    if name == "z":
        return np.array([np.nan if x is None else _offset(x) for x in column.to_pylist()])
    if name == "p":
        return np.array([np.nan if x is None else 12.0 * (x[0] in "Pp") for x in column.to_pylist()])
    return np.array(filled(column.cast(pa.float64())))


def _offset(zone: str) -> float:
    """Seconds that a time zone is ahead."""
    if zone == "Z":
        return 0.0
    seconds = 3600.0 * int(zone[1:3]) + 60.0 * int(zone[-2:])
    return -seconds if zone[0] == "-" else seconds


def _days(parts: dict[str, np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Days since 1970, and which dates there are."""
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


def _date_words(days: int, padded: bool) -> dict[str, str]:
    year, month, day = str(np.datetime64(days, "D")).rsplit("-", 2)
    named = MONTHS[int(month) - 1]
    month, day = (month, day) if padded else (month.lstrip("0"), day.lstrip("0"))
    quarter = (int(month) + 2) // 3
    return {
        "%q": str(quarter),
        "%z": "Z",
        "%Y": year,
        "%y": year[-2:],
        "%m": month,
        "%d": day,
        "%b": named[:3],
        "%B": named,
    }


def _clock_words(seconds: float, digits: int, half_days: bool, padded: bool) -> dict[str, str]:
    hours, left = divmod(seconds, 3600.0)
    minutes, rest = divmod(left, 60.0)
    shown = (hours - 1) % 12 + 1 if half_days else hours
    width = 3 + digits if digits else 2
    return {
        "%H": f"{shown:02.0f}" if padded else f"{shown:.0f}",
        "%M": f"{minutes:02.0f}",
        "%S": f"{rest:0{width}.{digits}f}",
        "%p": "PM" if hours >= 12 else "AM",
    }


WHOLE = NumberForm()
"""Whole numbers, written plainly."""

MOST_DECIMALS = 6
"""Decimals of numbers that were rounded by whoever wrote them down; more are a computer's."""
ENOUGH_NUMBERS = 1_024
"""Numbers that say how many decimals a column has."""


def rounded_form(values: np.ndarray) -> NumberForm | None:
    """The form of plain numbers that all have a few decimals at most; None where some have more.

    >>> rounded_form(np.array([1.25, 3.0, 7.1])).digits, rounded_form(np.array([1 / 3]))
    (2, None)
    """
    some = values[:ENOUGH_NUMBERS]
    with np.errstate(over="ignore", invalid="ignore"):
        fits = (digits for digits in range(1, MOST_DECIMALS + 1) if (np.round(some, digits) == some).all())
        found = next(fits, None)
    return None if found is None else NumberForm(digits=found)


def is_plain(form: CellForm | None) -> bool:
    """Whether numbers are written as numbers."""
    return form is None or not (form.spelt or form.typed)


def as_cell(form: CellForm | None, value: Any) -> Any:
    """A number as a cell of its column has it; as it is where cells are plain numbers, or it is none."""
    return value if is_plain(form) or not isinstance(value, float) else form.written(value)  # type: ignore[union-attr]


def number_in(form: CellForm | None, text: str) -> float:
    """The number that a person writes for a cell of the column: in its form, or plainly; NaN where it is none."""
    if form is not None and not is_plain(form):
        found = form.read([text])[0][0]
        if not np.isnan(found):
            return float(found)
    try:
        return float(text)
    except ValueError:
        return float("nan")


def given_back(form: CellForm | None, values: np.ndarray) -> Any:
    """Numbers as the cells of a column have them: rounded, as dates, or as text; as they are where there is no form.

    >>> given_back(WHOLE, np.array([2.6])).tolist(), given_back(TimeForm(), np.array([86_400.0])).tolist()
    ([3], ['1970-01-02'])
    """
    if form is None or values.dtype.kind not in "fiu":
        return values
    if form == WHOLE:
        whole = np.isfinite(values).all() and (np.abs(values) < 2.0**62).all()
        found = np.rint(values) if whole else values
        return found.astype(np.int64) if whole and not spelt_decimals(form) else found
    if is_plain(form):
        return np.round(values, form.digits) if isinstance(form, NumberForm) else values
    if form.typed:
        return typed_times(values.astype(np.float64), form.typed)
    return np.array([None if np.isnan(value) else form.written(float(value)) for value in values], dtype=object)


# -- the type that a column's cells had

CATEGORY = "category:"
"""Begins the name of the type of a column of codes: a pandas or polars categorical."""
_NAMED = re.compile(
    rf"({CATEGORY})?(string|bool|u?int(8|16|32|64)|halffloat|float|double|date32\[day\]|date64\[ms\]"
    r"|(timestamp|time32|time64|duration)\[(s|ms|us|ns)\])"
)


def named_type(kind: Any) -> str:
    """The name of an Arrow type that values can be given back in; empty for any other (decimal, time zones)."""
    if pa.types.is_dictionary(kind):
        name = named_type(kind.value_type)
        return name and CATEGORY + name
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    name = "string" if text else str(kind)
    return name if is_named_type(name) else ""


def is_named_type(name: str) -> bool:
    """Whether `named_type` can return this name."""
    return _NAMED.fullmatch(name) is not None


def as_named_type(values: Any, name: str, decimals: int = 0, levels: Sequence[object] = ()) -> Any:
    """Values as an Arrow array of a named type; as they are if that type cannot hold them.

    Numbers in a column of text are spelt with `decimals`. `levels` are the categories of a column of codes.

    >>> as_named_type([1, 2], "string", 1).to_pylist(), as_named_type([1, 2], "double").to_pylist()
    (['1.0', '2.0'], [1.0, 2.0])
    """
    plain = name.removeprefix(CATEGORY)
    try:
        if plain == "string":
            found = pa.array(spell_cells(values, decimals), pa.string())
        else:
            found = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
            if pa.types.is_boolean(found.type) != (plain == "bool"):
                return values
            found = found.cast(pa.type_for_alias(plain))
        if plain == name:
            return found
        if not levels:
            return found.dictionary_encode()
        known = as_named_type(list(levels), plain, decimals)
        places = {level: place for place, level in enumerate(known.to_pylist())}
        return pa.DictionaryArray.from_arrays(pa.array([places.get(x) for x in found.to_pylist()], pa.int32()), known)
    except (pa.ArrowException, AttributeError, OverflowError, TypeError):
        return values


def spell_cells(values: Any, decimals: int = 0) -> list[str | None]:
    """Values as text; numbers with so many decimals, or with as few as they need."""
    listed = values.to_pylist() if hasattr(values, "to_pylist") else values
    return [None if value is None or value != value else spell_cell(value, decimals) for value in listed]


def spell_cell(value: Any, decimals: int = 0) -> str:
    """A value as text; a number with so many decimals, or with as few as it needs.

    >>> spell_cell(2, 1), spell_cell(2.0), spell_cell(2.25), spell_cell(True)
    ('2.0', '2', '2.25', 'True')
    """
    if isinstance(value, str | bool | np.bool_) or not isinstance(value, int | float | np.number):
        return str(value)
    if decimals:
        return f"{value:.{decimals}f}"
    return np.format_float_positional(value, trim="-") if isinstance(value, float | np.floating) else str(value)


def spelt_decimals(form: CellForm | None) -> int:
    """How many decimals every cell of a column of plain numbers is spelt with; 0 if it differs or is not known."""
    return form.decimals if isinstance(form, NumberForm) and not form.spelt else 0


def decimals_of(cells: Sequence[str | None]) -> int:
    """How many decimals all cells of text that are numbers are spelt with; 0 if it differs from cell to cell.

    >>> decimals_of(["1.0", None, "2.0", "?"]), decimals_of(["1.0", "2"]), decimals_of(["7", "8"])
    (1, 0, 0)
    """
    found = 0
    for cell in cells:
        if cell is None or number_of(cell.strip()) is None:
            continue
        own = len(cell.strip().partition(".")[2])
        if not own or (found and own != found) or "e" in cell.lower():
            return 0
        found = own
    return found


# Durations as ISO 8601 writes them: PT1H30M, P2D, P1DT6H.

UNITS = {"W": 7 * DAY, "D": DAY, "H": 3600.0, "M": 60.0, "S": 1.0}
_duration = re.compile(
    r"(?P<sign>-?)P(?=[0-9T])(?:(?P<W>[0-9]+)W)?(?:(?P<D>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<H>[0-9]+)H)?(?:(?P<M>[0-9]+)M)?(?:(?P<S>[0-9]+(?:\.[0-9]+)?)S)?)?"
)


class DurationForm(CellForm, frozen=True, tag_field="form", tag="duration"):
    """Weeks, days, hours, minutes and seconds, as seconds; years and months, which differ in length, are not read.

    The smallest part that is written is `unit`, and of seconds `digits` decimals.

    >>> form = DurationForm()
    >>> form.read(["PT1H30M", "P2D", "P1Y"])[0].tolist(), form.written(5400.0)
    ([5400.0, 172800.0, nan], 'PT1H30M')
    """

    name = "duration"
    of_time = True
    digits: int = 0
    unit: str = "S"

    @property
    def spelt(self) -> bool:
        return True

    @property
    def said(self) -> str:
        return "durations, as seconds"

    def read(self, cells: Sequence[str | None]) -> Read:
        found = [None if cell is None else _duration.fullmatch(cell.strip()) for cell in cells]
        values = np.array([np.nan if match is None else _seconds(match) for match in found], dtype=np.float64)
        there = np.array([cell is not None for cell in cells], dtype=bool)
        return values, there & np.isnan(values)

    def written(self, value: float) -> str:
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

    def spread(self, value: float) -> str:
        return time_spread(value)


def duration_form(cells: Sequence[str]) -> DurationForm | None:
    """The form of cells that are all durations; None where one is not."""
    matches = [_duration.fullmatch(cell) for cell in cells]
    seconds = [match["S"] or "" for match in matches if match is not None]
    if len(seconds) < len(cells):
        return None
    digits = min(max(len(part.partition(".")[2]) for part in seconds), 6)
    units = [unit for unit in UNITS if unit != "W" and any(match is not None and match[unit] for match in matches)]
    return DurationForm(digits, units[-1] if units else "D")


def _seconds(match: re.Match[str]) -> float:
    total = sum(float(match[unit]) * worth for unit, worth in UNITS.items() if match[unit] is not None)
    return -total if match["sign"] else total
