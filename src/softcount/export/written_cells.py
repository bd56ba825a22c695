"""Cells that are dates, times, durations or numbers with something around them, read as numbers in SQL.

A cell comes as text, whatever type its column has: databases write their own dates and times as ISO 8601 does. A
regular expression takes it apart, and arithmetic makes seconds of the parts, the same in every dialect. SQLite has no
regular expressions: there cells of a fixed width are taken apart by the places of their digits. What is of no such form
is read as a plain number, which the database refuses by itself where it is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from softcount.export.scoring_plan import InputColumn
from softcount.export.sql_formulas import (
    added,
    bracketed,
    case_of,
    double,
    is_null,
    number,
    sqlglot_expressions,
    tree,
)  # fmt: skip
from softcount.records import dataclass
from softcount.table.cell_forms import BLANK, DAY, ISO, SHORT_MONTHS, CellForm, NumberForm, TimeForm
from softcount.table.duration_form import UNITS, DurationForm

ZONED = ("%Y-%m-%d %H:%M:%S%z", "%Y-%m-%dT%H:%M:%S%z")
"""How databases write moments that have a time zone."""
SPANS = ("%D days %H:%M:%S", "%D day %H:%M:%S", "%H:%M:%S", "%D days", "%D day")
"""How databases write durations."""

_month = "|".join("".join(f"[{letter.upper()}{letter}]" for letter in month) for month in SHORT_MONTHS)
_TOKENS = {
    "%Y": "([0-9]{4})",
    "%y": "([0-9]{2})",
    "%m": "([0-9]{1,2})",
    "%d": "([0-9]{1,2})",
    "%b": f"({_month})",
    "%B": f"({_month})[A-Za-z]*",
    "%D": "([0-9]+)",
    "%H": "([0-9]{1,9})",
    "%M": "([0-9]{2})",
    "%S": "([0-9]{2}([.][0-9]+)?)",
    "%q": "([1-4])",
    "%z": " ?(Z|[+-][0-9]{2}:?[0-9]{0,2})",
    "%p": "([AaPp])[.]?[Mm][.]?",
}
"""No group that does not catch, and no sign for digits: Snowflake and Postgres have other ones."""
_WIDTHS = {"%Y": 4, "%y": 2, "%m": 2, "%d": 2, "%H": 2, "%M": 2, "%S": 2}
_token = re.compile("(%[a-zA-Z])")


def patterns_of(form: TimeForm) -> list[str]:
    """All patterns in which cells may be written: the column's own, those of any date, and the database's."""
    zoned = form.typed or "%z" in form.pattern or form.pattern.endswith("Z")
    others = (*ISO, *(ZONED if zoned else ())) if form.is_date else SPANS if form.typed.startswith("duration") else ()
    clock = ("%H:%M:%S",) if form.typed.startswith("time") and not form.is_date else ()
    return list(dict.fromkeys((form.pattern, *others, *clock)))


def fixed_width(pattern: str, padded: bool = True) -> bool:
    """Whether every cell of a pattern has its parts at the same places."""
    own = _token.findall(pattern)
    return padded and all(token in _WIDTHS for token in own) and "%S" not in own[:-1] and bool(own)


def escaped(text: str) -> str:
    """Text as a regular expression that any database reads."""
    return "".join(
        x if x.isalnum() or x in " -" or ord(x) > 127 else f"\\{x}" if x in "^\\" else f"[{x}]" for x in text
    )


def regular(pattern: str) -> tuple[str, dict[str, int]]:
    """The regular expression of a pattern, and which of its groups is which part; what is no date may be below zero.

    >>> regular("%Y-%m")
    ('^([0-9]{4})-([0-9]{1,2})$', {'%Y': 1, '%m': 2})
    """
    signed = "%Y" not in pattern and "%y" not in pattern
    found, groups, count = "^(-?)" if signed else "^", {"sign": 1} if signed else {}, int(signed)
    for part in _token.split(pattern):
        if part in _TOKENS:
            groups[part] = count + 1
        found += _TOKENS.get(part) or escaped(part)
        count += _TOKENS.get(part, "").count("(")
    return found + "$", groups


@dataclass(frozen=True)
class WrittenCells:
    """Reads the cells of one dialect."""

    dialect: str

    # -- words of SQL

    @property
    def exp(self) -> Any:
        return sqlglot_expressions()

    def text(self, value: str) -> Any:
        return self.exp.Literal.string(value)

    def like(self, cell: Any, expression: str) -> Any:
        """Whether a cell is of a regular expression of all of it: Snowflake looks for no parts."""
        return self.exp.RegexpLike(this=cell.copy(), expression=self.text(expression))

    def group(self, cell: Any, expression: str, place: int) -> Any:
        """What a group of an expression of a whole cell holds."""
        put = f"${place}" if self.dialect == "spark" else f"\\{place}"
        return self._call("REGEXP_REPLACE", cell, self.text(expression), self.text(put))

    def _call(self, name: str, *parts: Any) -> Any:
        return self.exp.Anonymous(this=name, expressions=[part.copy() for part in parts])

    def _glob(self, cell: Any, shape: str) -> Any:
        return self.exp.Glob(this=cell.copy(), expression=self.text(shape))

    def _part(self, cell: Any, first: int, length: int | None = None) -> Any:
        size = None if length is None else self.exp.Literal.number(length)
        return self.exp.Substring(this=cell.copy(), start=self.exp.Literal.number(first), length=size)

    def _times(self, part: Any, worth: float) -> Any:
        return self.exp.Mul(this=bracketed(part), expression=number(worth))

    def _is(self, part: Any, *values: str) -> Any:
        tests = [self.exp.EQ(this=part.copy(), expression=self.text(value)) for value in values]
        return tree(lambda left, right: self.exp.Or(this=left, expression=right), tests)

    def _all(self, *tests: Any) -> Any:
        return tree(lambda left, right: self.exp.And(this=left, expression=right), tests)

    def _least(self, part: Any, value: float) -> Any:
        return self.exp.GTE(this=part.copy(), expression=number(value))

    def _below(self, part: Any, value: float) -> Any:
        return self.exp.LT(this=part.copy(), expression=number(value))

    # -- cells as text

    def of_source(self, form: CellForm, source: Any, trimmed: Any) -> Any:
        """A cell as text in the form; in SQLite, which has numbers as they are, only text is trimmed."""
        if self.dialect == "sqlite":
            return case_of([(self._is_text(source), trimmed)], source.copy())
        if self.dialect == "spark" and form.of_time:  # which writes its moments in the zone of the session
            moment = self.exp.Cast(this=source.copy(), to=self.exp.DataType.build("timestamptz"))
            seconds = self.exp.Cast(this=double(moment), to=self.exp.DataType.build("text"))
            return case_of([(self._is(self._call("TYPEOF", source), "timestamp"), seconds)], trimmed)
        if isinstance(form, NumberForm) and form.thousands == ".":  # else 1.234 could be meant in two ways
            comma = self._call("REPLACE", trimmed, self.text("."), self.text(","))
            return case_of([(self._is_text(source), trimmed)], comma)
        return trimmed

    def _is_text(self, source: Any) -> Any:
        """Whether a column is of text."""
        if self.dialect == "postgres":
            kind = self.exp.Cast(this=self._call("PG_TYPEOF", source), to=self.exp.DataType.build("text"))
            return self._is(kind, "text", "character varying", "character")
        if self.dialect == "bigquery":
            return self._call("STARTS_WITH", self._call("FORMAT", self.text("%T"), source), self.text('"'))
        if self.dialect == "snowflake":
            return self._call("IS_VARCHAR", self._call("TO_VARIANT", source))
        return self._is(
            self._call("TYPEOF", source), {"duckdb": "VARCHAR", "spark": "string"}.get(self.dialect, "text")
        )

    def plain(self, form: CellForm, cell: Any) -> Any:
        """A cell that is of no form, as a plain number."""
        if not isinstance(form, NumberForm) or form.thousands != ".":
            return double(cell.copy())
        point = self._call("REPLACE", cell, self.text(","), self.text("."))
        odd = self.exp.Like(this=cell.copy(), expression=self.text("%.%"))
        return double(case_of([(odd, self._call("CONCAT", cell, self.text("?")))], point))

    # -- the parts of a cell

    def parts(self, form: CellForm, cell: Any) -> dict[str, Any]:
        """Numbers that a cell is made of, null where it is not of the form: what `value` asks for."""
        if isinstance(form, NumberForm):
            found = self._number(form, cell)
            return {} if found is None else {"v": found}
        if isinstance(form, DurationForm):
            return {} if self.dialect == "sqlite" else {"v": self._duration(cell)}
        assert isinstance(form, TimeForm)
        read = [*self._taken_apart(form, cell)]
        if not read:
            return {}
        clock = case_of((test, self._clock(parts, form.is_date)) for test, parts in read)
        if not form.is_date:
            return {"v": clock}
        return {
            "v": clock,
            "y": case_of((test, self._year(parts)) for test, parts in read),
            "m": case_of((test, self._months(parts)) for test, parts in read),
            "d": case_of((test, parts.get("%d", number(1.0))) for test, parts in read),
        }

    def _taken_apart(self, form: TimeForm, cell: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
        """For every pattern that the dialect reads: whether a cell is of it, and its parts."""
        for pattern in patterns_of(form):
            if self.dialect != "sqlite":
                expression, groups = regular(pattern)
                parts = {name: self.group(cell, expression, place) for name, place in groups.items()}
                letters = ("sign", "%b", "%B", "%p", "%z")
                yield (
                    self.like(cell, expression),
                    {name: part if name in letters else double(part) for name, part in parts.items()},
                )
            elif fixed_width(pattern, form.padded or pattern != form.pattern):
                yield self._by_places(cell, pattern)

    def _by_places(self, cell: Any, pattern: str) -> tuple[Any, dict[str, Any]]:
        shape, place, parts = "", 1, {}
        for part in _token.split(pattern):
            width = _WIDTHS.get(part, len(part))
            if part in _WIDTHS:
                parts[part] = double(self._part(cell, place, None if part == "%S" else width))
            shape += "[0-9]" * width if part in _WIDTHS else _globbed(part)
            place += width
        test = self._glob(cell, shape)
        if pattern.endswith("%S"):
            longer = self._all(
                self._glob(cell, shape + ".[0-9]*"), self.exp.Not(this=self._glob(cell, shape + ".*[^0-9]*"))
            )
            test = self.exp.Paren(this=self.exp.Or(this=test, expression=self.exp.Paren(this=longer)))
        return test, parts

    def _clock(self, parts: dict[str, Any], is_date: bool) -> Any:
        """Seconds of hours, minutes and all; null where there are no such."""
        worth = {"%D": DAY, "%H": 3600.0, "%M": 60.0, "%S": 1.0}
        terms = [self._times(parts[name], each) for name, each in worth.items() if name in parts]
        tests = [self._below(parts[name], 60 + (name == "%S")) for name in ("%M", "%S") if name in parts]
        if "%p" in parts:
            tests += [self._least(parts["%H"], 1.0), self._below(parts["%H"], 13.0)]
            noon = case_of([(self._least(parts["%H"], 12.0), number(-12.0))], number(0.0))
            half = case_of([(self._is(parts["%p"], "P", "p"), number(12.0))], number(0.0))
            terms.append(self._times(added(noon, half), 3600.0))
        elif is_date and "%H" in parts:
            tests.append(self._below(parts["%H"], 24.0))
        if "%z" in parts:
            terms.append(self._ahead(parts["%z"]))
        seconds = tree(added, terms or [number(0.0)])
        if "sign" in parts:
            sign = case_of([(self._is(parts["sign"], "-"), number(-1.0))], number(1.0))
            seconds = self.exp.Mul(this=bracketed(seconds), expression=bracketed(sign))
        return case_of([(self._all(*tests), seconds)]) if tests else seconds

    def _ahead(self, zone: Any) -> Any:
        """Minus the seconds that a time zone is ahead."""
        minutes = self._call("REPLACE", self._part(zone, 4), self.text(":"), self.text(""))
        some = self.exp.Not(this=self._is(minutes, ""))
        hours = self._times(double(self._part(zone, 2, 2)), 3600.0)
        whole = added(hours, case_of([(some, self._times(double(minutes), 60.0))], number(0.0)))
        sign = case_of([(self._is(self._part(zone, 1, 1), "-"), number(1.0))], number(-1.0))
        ahead = self.exp.Mul(this=bracketed(whole), expression=bracketed(sign))
        return case_of([(self._is(zone, "Z"), number(0.0))], ahead)

    def _year(self, parts: dict[str, Any]) -> Any:
        if "%Y" in parts:
            return parts["%Y"]
        century = case_of([(self._below(parts["%y"], 69.0), number(2000.0))], number(1900.0))
        return added(parts["%y"], century)

    def _months(self, parts: dict[str, Any]) -> Any:
        named = parts.get("%b", parts.get("%B"))
        if named is not None:
            months = ((self.text(month), number(place)) for place, month in enumerate(SHORT_MONTHS, start=1))
            return case_of(months, None, self.exp.Lower(this=named.copy()))
        if "%q" in parts:
            return added(self._times(parts["%q"], 3.0), number(-2.0))
        return parts.get("%m", number(1.0))

    def _duration(self, cell: Any) -> Any:
        worth = []
        for unit, seconds in UNITS.items():
            there = self.like(cell, f"^.*[0-9]{unit}.*$")
            part = double(self.group(cell, f"^.*[A-Z]([0-9.]+){unit}.*$", 1))
            worth.append(case_of([(there, self._times(part, seconds))], number(0.0)))
        sign = case_of([(self.like(cell, "^-.*$"), number(-1.0))], number(1.0))
        whole = self.exp.Mul(this=bracketed(tree(added, worth)), expression=bracketed(sign))
        shape = "^-?P([0-9]+W)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+([.][0-9]+)?S)?)?$"
        return case_of([(self._all(self.like(cell, shape), self.like(cell, "^.*[0-9][WDHMS]$")), whole)])

    def _number(self, form: NumberForm, cell: Any) -> Any:
        if self.dialect == "sqlite":
            return None if form.thousands or form.decimal != "." or form.parentheses else self._bare(form, cell)
        shape, place, below = _number_shape(form)
        plain = self.group(cell, shape, place)
        for mark in (" ", "\u00a0", "\u202f") if form.thousands == " " else (form.thousands,):
            plain = self._call("REPLACE", plain, self.text(mark), self.text("")) if mark else plain
        if form.decimal != ".":
            plain = self._call("REPLACE", plain, self.text(form.decimal), self.text("."))
        signs = [(self._is(self.group(cell, shape, own), sign), number(-1.0)) for own, sign in below.items()]
        whole = self.exp.Mul(this=double(plain), expression=bracketed(case_of(signs, number(1.0))))
        twice = self.exp.Not(this=self.like(cell, "^.*[+-].*[+-].*$"))
        return case_of([(self._all(self.like(cell, shape), twice), whole)])

    def _bare(self, form: NumberForm, cell: Any) -> Any:
        """SQLite: what is left of a cell without its unit, where that is a number."""
        prefix, suffix, left, tests = form.prefix, form.suffix.strip(), cell.copy(), []
        if prefix:
            shapes = [self._glob(cell, f"{sign}{_globbed(prefix)}*") for sign in ("", "[+-]")]
            tests.append(self.exp.Paren(this=self.exp.Or(this=shapes[0], expression=shapes[1])))
            left = self._call("REPLACE", left, self.text(prefix), self.text(""))
        if suffix:
            tests.append(self._glob(cell, f"*{_globbed(suffix)}"))
            left = self._call("REPLACE", left, self.text(suffix), self.text(""))
        more = self.exp.Literal.number(len(prefix) + len(suffix))
        once = self.exp.Add(this=self.exp.Length(this=left.copy()), expression=more)
        tests.append(self.exp.EQ(this=once, expression=self.exp.Length(this=cell.copy())))
        left = self.exp.Trim(this=left)
        tests += [self._glob(left, "*[0-9]*"), self.exp.Not(this=self._glob(left, "*[^0-9.+-]*"))]
        tests += [self.exp.Not(this=self._glob(left, shape)) for shape in ("?*[+-]*", "*.*.*")]
        return case_of([(self._all(*tests), double(left))])

    # -- parts together

    def value(self, form: CellForm, cell: Any, parts: dict[str, Any], plain: Any) -> Any:
        """The number of a cell by its parts; `plain` is what a cell that is of no form is read as."""
        if not parts:
            return plain
        if "y" not in parts:
            return case_of([(self.exp.Not(this=is_null(parts["v"].copy())), parts["v"])], plain)
        year, month, day = parts["y"], parts["m"], parts["d"]
        whole = self.exp.Not(this=is_null(parts["v"].copy()))
        there = [
            whole,
            self._least(year, 1.0),
            self._least(month, 1.0),
            self._below(month, 13.0),
            self._least(day, 1.0),
        ]
        there.append(self.exp.LTE(this=day.copy(), expression=bracketed(self._month_length(year, month))))
        seconds = added(self._times(self._days(year, month, day), DAY), parts["v"].copy())
        return case_of([(self._all(*there), seconds)], plain)

    def _floor(self, of: Any) -> Any:
        return self.exp.Floor(this=of)

    def _share(self, of: Any, by: float) -> Any:
        return self._floor(self.exp.Div(this=bracketed(of.copy()), expression=number(by), typed=True, safe=False))

    def _month_length(self, year: Any, month: Any) -> Any:
        by_400 = self.exp.EQ(this=self._times(self._share(year, 400.0), 400.0), expression=year.copy())
        by_100 = self.exp.EQ(this=self._times(self._share(year, 100.0), 100.0), expression=year.copy())
        by_4 = self.exp.EQ(this=self._times(self._share(year, 4.0), 4.0), expression=year.copy())
        february = case_of([(by_400, number(29.0)), (by_100, number(28.0)), (by_4, number(29.0))], number(28.0))
        lengths = [(number(2.0), february), *((number(each), number(30.0)) for each in (4.0, 6.0, 9.0, 11.0))]
        return case_of(lengths, number(31.0), month.copy())

    def _days(self, year: Any, month: Any, day: Any) -> Any:
        """Days since 1970, the year beginning with March."""
        early = case_of([(self._below(month, 3.0), number(1.0))], number(0.0))
        years = self.exp.Sub(this=year.copy(), expression=bracketed(early))
        months = added(added(month.copy(), number(-3.0)), self._times(early, 12.0))
        before = self._share(added(self._times(months, 153.0), number(2.0)), 5.0)
        leap = added(self._share(years, 4.0), self._share(years, 400.0))
        leap = self.exp.Sub(this=leap, expression=self._share(years, 100.0))
        return tree(added, [self._times(years, 365.0), leap, before, day.copy(), number(-719469.0)])


def _number_shape(form: NumberForm) -> tuple[str, int, dict[int, str]]:
    """The regular expression of a form, the group of its digits, and groups with what they hold of a number below 0."""
    parts = [("([(]?)", "(")] if form.parentheses else []
    parts.append(("([+-]?)", "-"))
    if form.prefix:
        parts.append((f"({escaped(form.prefix)}{BLANK}*)?", ""))
    parts.append(("([+-]?)", "-"))
    below = {place: sign for place, (_, sign) in enumerate(parts, start=1) if sign}
    after = f"{BLANK}*{escaped(form.suffix.strip())}" if form.suffix else ""
    before = "".join(part for part, _ in parts)
    closed = "[)]?" if form.parentheses else ""
    return f"^{before}({_digits(form)}){after}{closed}$", len(parts) + 1, below


def _digits(form: NumberForm) -> str:
    """The regular expression of a number without a sign."""
    point, whole = escaped(form.decimal), "0|[1-9][0-9]*"
    if form.thousands:
        mark = BLANK if form.thousands == " " else escaped(form.thousands)
        whole = f"[1-9][0-9]{{0,2}}({mark}[0-9]{{3}})+|{whole}"
    return f"({whole})({point}[0-9]*)?|{point}[0-9]+"


def _globbed(text: str) -> str:
    return "".join(f"[{x}]" if x in "*?[" else x for x in text)


def reads(form: CellForm, dialect: str) -> bool:
    """Whether a dialect reads cells in the form of their own column."""
    if dialect != "sqlite":
        return True
    if isinstance(form, TimeForm):
        return fixed_width(form.pattern, form.padded)
    return isinstance(form, NumberForm) and not (form.thousands or form.decimal != "." or form.parentheses)


def unread(columns: Sequence[InputColumn], dialect: str) -> tuple[str, ...]:
    """What columns are to hold whose own form a dialect does not read."""
    found = []
    for column in columns:
        form = column.form
        if form is None or reads(form, dialect):
            continue
        is_date = isinstance(form, TimeForm) and form.is_date
        wanted = "2024-01-31 or 2024-01-31 12:00:00" if is_date else "seconds" if form.of_time else "plain numbers"
        shown = form.written(1706702400.0 if is_date else 4500.0)
        found.append(f"column {column.key!r} is to hold {wanted}, as SQLite cannot read {shown!r}")
    return tuple(found)
