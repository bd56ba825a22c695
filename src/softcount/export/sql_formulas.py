"""Scoring formulas as SQL expressions.

An expression is text. One that needs no parentheses inside another (a column, a literal, a function call) is an `Atom`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, cast

import numpy as np
from msgspec import Struct

from softcount.core import formulas as fm
from softcount.core import remedies
from softcount.errors import DataError
from softcount.export.scoring_plan import ScoringPlan
from softcount.table.schema import Key

TOO_SMALL = -700.0
"""A logarithm whose exponential is taken as 0: Postgres refuses to underflow."""
LARGEST = 1.7976931348623157e308
"""A number beyond it is in no interval, so that its row has no class."""
FEW_GROUPS = 4
"""Up to so many groups SQLite looks numbers up by comparing: joining a table takes as long for one group as for ten."""


class Dialect(Struct, frozen=True):
    """How databases differ; `words` selects the words of documents, where a database can find them."""

    double: str = "DOUBLE"
    text: str = "TEXT"
    greatest: str = "GREATEST"
    quote: str = '"'
    backslashes: bool = False
    materialized: bool = False
    words: str = ""


DIALECTS = {
    "duckdb": Dialect(
        materialized=True, words="UNNEST(REGEXP_EXTRACT_ALL({text}, {pattern})) AS word FROM {documents}"
    ),
    "postgres": Dialect(
        "DOUBLE PRECISION",
        materialized=True,
        words="found[1] AS word FROM {documents}, REGEXP_MATCHES({text}, {pattern}, 'g') AS w(found)",
    ),
    "sqlite": Dialect("REAL", greatest="MAX", materialized=True),
    "spark": Dialect(
        text="STRING",
        quote="`",
        backslashes=True,
        words="EXPLODE(REGEXP_EXTRACT_ALL({text}, {pattern}, 0)) AS word FROM {documents}",
    ),
    "bigquery": Dialect(
        "FLOAT64",
        "STRING",
        quote="`",
        backslashes=True,
        words="word FROM {documents}, UNNEST(REGEXP_EXTRACT_ALL({text}, {pattern})) AS word",
    ),
    "snowflake": Dialect(text="VARCHAR", backslashes=True),
}


# -- expressions


class Atom(str):
    """An expression that stands inside another without parentheses."""

    __slots__ = ()


def number(value: float) -> str:
    """Write a number in all its digits, with an exponent so that no dialect takes it for a decimal.

    >>> number(-0.2), number(12.0), number(1e22)
    ('-2e-1', '1.2e1', '1e22')
    """
    mantissa, _, exponent = repr(float(value)).partition("e")
    whole, _, part = mantissa.lstrip("-").partition(".")
    found = (whole + part).lstrip("0")
    power = int(exponent or 0) + (len(whole) - 1 if whole != "0" else len(found) - len(part) - 1)
    found = found.rstrip("0") or "0"
    text = f"{found[0]}{'.' + found[1:] if found[1:] else ''}e{power if found != '0' else 0}"
    return f"-{text}" if mantissa[0] == "-" and found != "0" else Atom(text)


def escape(text: str) -> str:
    r"""Escape control characters and backslashes, for dialects that read backslashes as escapes.

    >>> print(escape("a\\b\n\x07"))
    a\\b\n\u0007
    """
    short = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "".join(short.get(x, f"\\u{ord(x):04x}" if x < " " else x) for x in text)


def string(text: str, dialect: str) -> str:
    if DIALECTS[dialect].backslashes:
        return Atom("'" + escape(text).replace("'", "\\'") + "'")
    return Atom("'" + text.replace("'", "''") + "'")


def identifier(name: str, dialect: str) -> str:
    quote = DIALECTS[dialect].quote
    if dialect == "bigquery":
        return Atom(quote + escape(name).replace(quote, f"\\{quote}") + quote)
    return Atom(quote + name.replace(quote, quote * 2) + quote)


def call(name: str, *arguments: str) -> str:
    return Atom(f"{name}({', '.join(arguments)})")


def bracket(of: str) -> str:
    return of if isinstance(of, Atom) else Atom(f"({of})")


def operate(left: str, sign: str, right: str) -> str:
    return f"{bracket(left)} {sign} {bracket(right)}"


def add(parts: Sequence[str]) -> str:
    """Write a sum as a tree that is not deep."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return operate(add(parts[:middle]), "+", add(parts[middle:]))


def case(pairs: Iterable[tuple[str, str]], otherwise: str | None = None, of: str | None = None) -> str:
    """Write the value of the first test that is true, or of the first that equals `of`."""
    tests = "".join(f" WHEN {test} THEN {value}" for test, value in pairs)
    rest = "" if otherwise is None else f" ELSE {otherwise}"
    return f"CASE{'' if of is None else f' {of}'}{tests}{rest} END"


def exponential(of: str) -> str:
    """Write the exponential of a number that is at most 0."""
    return case([(f"{of} < {number(TOO_SMALL)}", number(0.0))], call("EXP", of))


def choose_interval(of: str, edges: Sequence[float], values: Sequence[str]) -> str:
    """Write a binary search for the value of the interval of a number; there is one edge less than values."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    left = choose_interval(of, edges[: middle - 1], values[:middle])
    right = choose_interval(of, edges[middle:], values[middle:])
    return case([(f"{of} < {number(edges[middle - 1])}", left)], right)


def _choose_place(name: str, values: Sequence[str], first: int = 0) -> str:
    """Write a binary search for the value at a place, counted from 0."""
    if len(set(values)) == 1:
        return values[0]
    middle = len(values) // 2
    left, right = _choose_place(name, values[:middle], first), _choose_place(name, values[middle:], first + middle)
    return case([(f"{name} < {first + middle}", left)], right)


# -- formulas


def is_inlined(of: fm.LookUp, dialect: str) -> bool:
    """Return whether a table is written as comparisons instead of being joined."""
    numbered = isinstance(of.code, (fm.IntervalCode, fm.CombinedCode))
    return dialect == "sqlite" and numbered and of.table.shape[1] <= FEW_GROUPS


def find_look_ups(of: fm.Formula) -> list[fm.LookUp]:
    """Return the tables that a formula uses, without those of sums that earlier steps compute."""
    return [part for part in fm.walk(of) if isinstance(part, fm.LookUp)]


def split_code(code: fm.Code) -> Iterator[fm.Code]:
    """Yield the codes of columns that a code is made of, if they are columns of a step."""
    if isinstance(code, fm.CombinedCode):
        for part in code.codes:
            yield from (split_code(part) if isinstance(part, fm.CombinedCode) else (part,))
    elif isinstance(code, fm.IntervalCode):
        yield code


class SqlFormulas(Struct, frozen=True):
    """Writes formulas, one group at a time, by the names of cells, codes, tables and sums in a query.

    A table comes with the column at which the numbers of a look-up begin.
    """

    dialect: str
    cells: Mapping[Key, str]
    codes: Mapping[Hashable, str]
    tables: Mapping[int, tuple[str, int]]
    sums: Mapping[int, str]

    def find_columns(self, of: fm.Formula) -> set[str]:
        """Return the columns that a formula is computed from; of a sum its name, without the number of the group."""
        found: set[str] = set()
        for part in fm.walk(of):
            if isinstance(part, (fm.Cell, fm.Missing)):
                found.add(self.cells[part.key])
            elif isinstance(part, fm.Once):
                found.add(self.sums[id(part)])
            elif isinstance(part, fm.Computed):
                found.add(part.name)
            elif isinstance(part, fm.AllKnown):
                found |= {self.codes[fm.code_key(code)] for code in part.codes}
            elif isinstance(part, fm.LookUp):
                own = part.code
                found |= {self.cells[own.key]} if isinstance(own, (fm.LevelCode, fm.WordsCode)) else set()
                found |= {self.codes[fm.code_key(code)] for code in split_code(own)}
        return found

    def greatest(self, parts: Sequence[str]) -> str:
        return parts[0] if len(parts) == 1 else call(DIALECTS[self.dialect].greatest, *parts)

    def write(self, of: fm.Formula, group: int) -> str:
        if isinstance(of, fm.GroupNumbers):
            return number(of.values[group if len(of.values) > 1 else 0])
        if isinstance(of, fm.Cell):
            return Atom(self.cells[of.key])
        if isinstance(of, fm.Whole):
            return self.write(of.out, group)
        if isinstance(of, fm.Computed):
            return Atom(f"{of.name}{group}")
        if isinstance(of, fm.AllKnown):
            return operate(add([Atom(self.codes[fm.code_key(code)]) for code in of.codes]), "*", number(0.0))
        if isinstance(of, fm.Once):
            return Atom(f"{self.sums[id(of)]}{group}")
        if isinstance(of, fm.LookUp):
            return self._look_up(of, group)
        if isinstance(of, fm.Choose):
            pairs, rest = [], cast(fm.Formula, of)
            while isinstance(rest, fm.Choose):  # one CASE for all: SQLite's parser has a stack of 100
                tests = " AND ".join(self._test(test, group) for test in rest.tests)
                pairs.append((tests, self.write(rest.then, group)))
                rest = rest.otherwise
            return case(pairs, self.write(rest, group))
        assert isinstance(of, fm.Apply)
        parts = [self.write(part, group) for part in of.parts]
        if of.operation == "log":
            return call("LN", *parts)
        if of.operation == "exp":
            return exponential(*parts)
        if of.operation == "largest":
            return self.greatest(parts)
        sign = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}[of.operation]
        return operate(parts[0], sign, parts[1])

    def _test(self, test: fm.Test, group: int) -> str:
        if isinstance(test, fm.Missing):
            return f"{'' if test.wanted else 'NOT '}{self.cells[test.key]} IS NULL"
        assert isinstance(test, fm.Compare)
        return f"{self.write(test.left, group)} {test.sign} {self.write(test.right, group)}"

    def _look_up(self, of: fm.LookUp, group: int) -> str:
        if is_inlined(of, self.dialect):
            parts = [(of.code, len(of.table))]
            if isinstance(of.code, fm.CombinedCode):
                parts = list(zip(of.code.codes, of.code.sizes, strict=True))
            return self._inline(parts, of.table[:, group])
        table, first = self.tables[id(of)]
        found = Atom(f"{table}.g{first + min(group, of.table.shape[1] - 1)}")
        if isinstance(of.code, fm.WordsCode):  # null if no word of the document is known
            return call("COALESCE", found, number(0.0))
        if not isinstance(of.code, fm.LevelCode):
            return found
        other = missing = number(of.table[0, group])
        if (of.table[0] != of.table[-1]).any():
            other = case([(f"{self.cells[of.code.key]} IS NULL", missing)], number(of.table[-1, group]))
        return call("COALESCE", found, other)

    def _inline(self, codes: Sequence[tuple[fm.Code, int]], values: np.ndarray) -> str:
        """Write a binary search for the value at the place that several codes make together, code by code."""
        if not codes:
            return number(float(values[0]))
        (code, size), *others = codes
        own = [self._inline(others, part) for part in values.reshape(size, -1)]
        if isinstance(code, fm.LevelCode):  # an unseen level comes after the others, and is taken as missing
            own.append(own[0])
        return str(_choose_place(self.codes[fm.code_key(code)], own))

    def code(self, code: fm.Code) -> str:
        """Write a code, which is never null."""
        if not isinstance(code, fm.CombinedCode):
            return Atom(self.codes[fm.code_key(code)])
        whole = None
        for part, size in zip(code.codes, code.sizes, strict=True):
            own = self.code(part)
            own = case([(f"{own} >= {size}", "0")], own)
            whole = own if whole is None else f"{bracket(whole)} * {size} + {bracket(own)}"
        return cast(str, whole)

    def make_code(self, code: fm.Code, plan: ScoringPlan) -> str:
        cell = self.cells[cast(Any, code).key]
        missing = (f"{cell} IS NULL", "0")
        if isinstance(code, fm.IntervalCode):
            places = [str(place + 1) for place in range(len(code.edges) + 1)]
            endless = (f"ABS({cell}) > {number(LARGEST)}", "NULL")
            return case([missing, endless], choose_interval(cell, np.asarray(code.edges).tolist(), places))
        assert isinstance(code, fm.LevelCode)
        spellings = plan.column(code.key).spellings()
        levels = ((f"{cell} = {string(text, self.dialect)}", str(place)) for text, place in spellings)
        return case([missing, *levels], str(code.size + 1))


# -- words of documents


def refuse_words(key: Key, where: str) -> DataError:
    """Return the error about a column of text whose words cannot be found somewhere."""
    *reading, last = (name for name, own in DIALECTS.items() if own.words)
    return DataError(
        f"column {key!r} is text, of which {where} cannot find the words: the model cannot be exported there. "
        f"Export it as SQL for {', '.join(reading)} or {last}, or fit without it: {remedies.kind(key, 'ignore')}"
    )


def select_words(dialect: str, documents: str, lowercase: bool) -> str:
    """Write the selection of the words of documents, one in each row."""
    pattern = string(f"[{_word_letters()}]{{2,}}", dialect)
    text = "LOWER(document)" if lowercase else "document"
    if lowercase and dialect == "postgres":  # whose locale may know the English letters only
        pairs = dict(_capitals())
        large, small = (string("".join(own), dialect) for own in (pairs, pairs.values()))
        some = string(f"[{''.join(pairs)}]", dialect)
        text = f"CASE WHEN document ~ {some} THEN TRANSLATE({text}, {large}, {small}) ELSE {text} END"
    return "SELECT document, " + DIALECTS[dialect].words.format(text=text, pattern=pattern, documents=documents)


def sum_words(words: str, table: str, groups: Sequence[str], each: str) -> str:
    """Write the selection of each document's sums over its words of the numbers in a table."""
    counted = f"SELECT document, word, COUNT(*) AS n FROM {words} GROUP BY document, word"
    own = {"once": f"SELECT DISTINCT document, word FROM {words}", "times": f"SELECT document, word FROM {words}"}
    times = {"log": " * LN(1 + n)", "square": " * LN(1 + n) * LN(1 + n)"}.get(each, "")
    sums = ", ".join(f"SUM({group}{times}) AS {group}" for group in groups)
    source = f"({own.get(each, counted)}) AS d"
    return f"SELECT document AS k, {sums} FROM {source} JOIN {table} AS w ON w.k = d.word GROUP BY document"


@cache
def _word_letters() -> str:
    """Return the characters of words as a range of a regular expression: databases differ in their own."""
    there = [chr(code).isalnum() or code == 95 for code in range(0x110000)]
    edges = [code for code, (one, other) in enumerate(pairwise([False, *there, False])) if one != other]
    runs = zip(edges[::2], edges[1::2], strict=True)
    return "".join(chr(a) if b == a + 1 else f"{chr(a)}-{chr(b - 1)}" for a, b in runs)


@cache
def _capitals() -> tuple[tuple[str, str], ...]:
    """Return capitals other than the English ones, and their small letters."""
    return tuple((x, x.lower()) for x in map(chr, range(128, 0x110000)) if x.lower() != x and len(x.lower()) == 1)
