"""Scoring formulas in SQL."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, cast

import numpy as np
from msgspec import Struct, field

from softcount.core import remedies
from softcount.errors import DataError
from softcount.export.formulas import (  # fmt: skip
    AllKnown,
    Apply,
    Cell,
    Choose,
    Code,
    CombinedCode,
    Compare,
    Computed,
    Formula,
    GroupNumbers,
    IntervalCode,
    LevelCode,
    LookUp,
    Missing,
    Once,
    Test,
    Whole,
    WordsCode,
    code_key,
    walked,
)
from softcount.export.scoring_plan import ScoringPlan
from softcount.table.schema import Key
from softcount.text import Reading

TOO_SMALL = -700.0
"""A logarithm whose exponential is taken for nothing: Postgres refuses to underflow."""
LARGEST = 1.7976931348623157e308
"""What is beyond is no number: it is in no interval, so that the row has no class."""


def sqlglot_expressions() -> Any:
    """The module of sqlglot's trees."""
    try:
        from sqlglot import expressions
    except ImportError:
        raise DataError(
            'SQL is written by sqlglot, which is not installed. Install it: pip install "softcount[sql]"'
        ) from None
    return expressions


def digits(value: float) -> str:
    """A number in all its digits, with an exponent so that no dialect takes it for a decimal.

    >>> digits(-0.2), digits(12.0), digits(1e22)
    ('-2e-1', '1.2e1', '1e22')
    """
    mantissa, _, exponent = repr(float(value)).partition("e")
    whole, _, part = mantissa.lstrip("-").partition(".")
    found = (whole + part).lstrip("0")
    power = int(exponent or 0) + (len(whole) - 1 if whole != "0" else len(found) - len(part) - 1)
    found = found.rstrip("0") or "0"
    sign = "-" if mantissa[0] == "-" and found != "0" else ""
    return f"{sign}{found[0]}{'.' + found[1:] if found[1:] else ''}e{power if found != '0' else 0}"


def number(value: float) -> Any:
    """The same as a literal; the sign apart.

    >>> number(-0.2).sql(), number(12.0).sql()
    ('-2e-1', '1.2e1')
    """
    exp = sqlglot_expressions()
    literal = exp.Literal.number(digits(abs(float(value))))
    return exp.Neg(this=literal) if value < 0 else literal


def tree(make: Any, parts: Sequence[Any]) -> Any:
    """Expressions under an operation of two, as a tree that is not deep."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return make(tree(make, parts[:middle]), tree(make, parts[middle:]))


def added(left: Any, right: Any) -> Any:
    """The sum of two."""
    exp = sqlglot_expressions()
    return exp.Add(this=bracketed(left), expression=bracketed(right))


def greatest(parts: Sequence[Any], dialect: str) -> Any:
    """The largest of several, none of which is null where another is not."""
    exp = sqlglot_expressions()
    if len(parts) == 1:
        return parts[0]
    # Else nulls are looked for, which DuckDB passes over: twice the words at every level.
    return exp.Greatest(this=parts[0], expressions=list(parts[1:]), ignore_nulls=dialect == "duckdb")


def case_of(pairs: Iterable[tuple[Any, Any]], otherwise: Any = None, of: Any = None) -> Any:
    """The value of the first test that is true, or of the first that equals `of`; parts become its own, not copies."""
    exp = sqlglot_expressions()
    return exp.Case(this=of, ifs=[exp.If(this=test, true=value) for test, value in pairs], default=otherwise)


def is_null(of: Any) -> Any:
    """Whether it is null."""
    exp = sqlglot_expressions()
    return exp.Is(this=of, expression=exp.Null())


def double(of: Any) -> Any:
    """As a float of eight bytes."""
    exp = sqlglot_expressions()
    return exp.Cast(this=of, to=exp.DataType(this=exp.DataType.Type.DOUBLE))


def exponential(of: Any) -> Any:
    """The exponential of what is at most 0; nothing of what is far below."""
    exp = sqlglot_expressions()
    small = exp.LT(this=of, expression=number(TOO_SMALL))
    return case_of([(small, number(0.0))], exp.Exp(this=of.copy()))


def bracketed(of: Any) -> Any:
    """In parentheses, where it is no single word."""
    exp = sqlglot_expressions()
    plain = isinstance(of, (exp.Column, exp.Literal, exp.Func, exp.Paren)) and not isinstance(of, exp.Case)
    return of if plain else exp.Paren(this=of)


def interval(of: Any, edges: Sequence[float], values: Sequence[Any]) -> Any:
    """The value of the interval that a number lies in, the edges being one fewer, by halving."""
    exp = sqlglot_expressions()
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    below = exp.LT(this=of.copy(), expression=number(edges[middle - 1]))
    left = interval(of, edges[: middle - 1], values[:middle])
    return case_of([(below, left)], interval(of, edges[middle:], values[middle:]))


class SqlNames(Struct, frozen=True):
    """What cells, codes and tables are called in a query; a table with the column from which a look-up's begin."""

    cells: dict[Any, str]
    codes: dict[Any, str]
    tables: dict[int, tuple[str, int]]
    sums: dict[int, str] = field(default_factory=dict)

    def asked(self, of: Formula) -> set[str]:
        """The columns that a formula is computed from, of which a sum has one for every group."""
        found: set[str] = set()
        for part in walked(of):
            if isinstance(part, (Cell, Missing)):
                found.add(self.cells[part.key])
            elif isinstance(part, Once):
                found.add(self.sums[id(part)])
            elif isinstance(part, Computed):
                found.add(part.name)
            elif isinstance(part, AllKnown):
                found |= {self.codes[code_key(code)] for code in part.codes}
            elif isinstance(part, LookUp):
                own = part.code
                found |= {self.cells[own.key]} if isinstance(own, (LevelCode, WordsCode)) else set()
                found |= {self.codes[code_key(code)] for code in single_codes(own)}
        return found


FEW_GROUPS = 4
"""Up to which SQLite looks numbers up by comparing: a table that is joined takes as long for one as for ten."""


def is_inlined(of: LookUp, dialect: str) -> bool:
    """Whether a table is written as comparisons rather than joined."""
    numbered = isinstance(of.code, (IntervalCode, CombinedCode))
    return dialect == "sqlite" and numbered and of.table.shape[1] <= FEW_GROUPS


def _halved(name: str, values: Sequence[str], first: int = 0) -> str:
    """The value at a place from 0."""
    if len(set(values)) == 1:
        return values[0]
    middle = len(values) // 2
    left, right = _halved(name, values[:middle], first), _halved(name, values[middle:], first + middle)
    return f"CASE WHEN {name} < {first + middle} THEN {left} ELSE {right} END"


def look_ups(of: Formula) -> list[LookUp]:
    """The tables that a formula asks, without those of sums that are computed before."""
    return [part for part in walked(of) if isinstance(part, LookUp)]


def single_codes(code: Code) -> Iterator[Code]:
    """The codes of columns that one is made of, as far as they are numbers of their own in a query."""
    if isinstance(code, CombinedCode):
        for part in code.codes:
            yield from (single_codes(part) if isinstance(part, CombinedCode) else (part,))
    elif isinstance(code, IntervalCode):
        yield code


class SqlFormulas:
    """Writes formulas for one group after the other."""

    def __init__(self, names: SqlNames, dialect: str) -> None:
        self.names, self.dialect, self.exp = names, dialect, sqlglot_expressions()

    def written(self, of: Formula, group: int) -> Any:
        """A formula's expression in one group."""
        if isinstance(of, GroupNumbers):
            return number(of.values[group if len(of.values) > 1 else 0])
        if isinstance(of, Cell):
            return self.exp.column(self.names.cells[of.key])
        if isinstance(of, Whole):
            return self.written(of.out, group)
        if isinstance(of, Computed):
            return self.exp.column(f"{of.name}{group}")
        if isinstance(of, AllKnown):
            every = tree(added, [self.exp.column(self.names.codes[code_key(code)]) for code in of.codes])
            return self.exp.Mul(this=bracketed(every), expression=number(0.0))
        if isinstance(of, Once):
            return self.exp.column(f"{self.names.sums[id(of)]}{group}")
        if isinstance(of, LookUp):
            return self._looked_up(of, group)
        if isinstance(of, Choose):
            tests = [self._test(test, group) for test in of.tests]
            both = tree(lambda left, right: self.exp.And(this=left, expression=right), tests)
            return case_of([(both, self.written(of.then, group))], self.written(of.otherwise, group))
        assert isinstance(of, Apply)
        return self._applied(of, group)

    def _applied(self, of: Apply, group: int) -> Any:
        exp, parts = self.exp, [self.written(part, group) for part in of.parts]
        if of.operation == "log":
            return exp.Ln(this=parts[0])
        if of.operation == "exp":
            return exponential(parts[0])
        if of.operation == "largest":
            return greatest(parts, self.dialect)
        left, right = map(bracketed, parts)
        if of.operation == "divide":
            return exp.Div(this=left, expression=right, typed=True, safe=False)
        makes = {"add": exp.Add, "subtract": exp.Sub, "multiply": exp.Mul}
        return makes[of.operation](this=left, expression=right)

    def _test(self, test: Test, group: int) -> Any:
        exp = self.exp
        if isinstance(test, Missing):
            missing = is_null(exp.column(self.names.cells[test.key]))
            return missing if test.wanted else exp.Not(this=missing)
        assert isinstance(test, Compare)
        sides = {"this": self.written(test.left, group), "expression": self.written(test.right, group)}
        return (exp.LT if test.sign == "<" else exp.EQ)(**sides)

    def _looked_up(self, of: LookUp, group: int) -> Any:
        exp = self.exp
        if is_inlined(of, self.dialect):
            parts = [(of.code, len(of.table))]
            if isinstance(of.code, CombinedCode):
                parts = list(zip(of.code.codes, of.code.sizes, strict=True))
            return exp.Var(this=self._by_halving(parts, of.table[:, group]))
        table, first = self.names.tables[id(of)]
        found = exp.column(f"g{first + min(group, of.table.shape[1] - 1)}", table=table)
        if isinstance(of.code, WordsCode):  # none of whose words is known
            return exp.Coalesce(this=found, expressions=[number(0.0)])
        if not isinstance(of.code, LevelCode):
            return found
        missing, unseen = of.table[0, group], of.table[-1, group]
        if (of.table[0] == of.table[-1]).all():
            return exp.Coalesce(this=found, expressions=[number(missing)])
        nothing = is_null(exp.column(self.names.cells[of.code.key]))
        other = case_of([(nothing, number(missing))], number(unseen))
        return exp.Coalesce(this=found, expressions=[other])

    def _by_halving(self, codes: Sequence[tuple[Code, int]], values: np.ndarray) -> str:
        """The value at a place that codes make together, by halving the places of one after the other."""
        if not codes:
            return digits(float(values[0]))
        (code, size), *others = codes
        own = [self._by_halving(others, part) for part in values.reshape(size, -1)]
        if isinstance(code, LevelCode):  # a level never seen is beyond the others, and taken as missing
            own.append(own[0])
        return _halved(self.names.codes[code_key(code)], own)

    def code(self, code: Code) -> Any:
        """A code's expression, which is never null."""
        exp = self.exp
        if isinstance(code, CombinedCode):
            return self._combined(code)
        return exp.column(self.names.codes[code_key(code)])

    def _combined(self, code: CombinedCode) -> Any:
        exp, whole = self.exp, None
        for part, size in zip(code.codes, code.sizes, strict=True):
            own = self.code(part)
            beyond = exp.GTE(this=own.copy(), expression=exp.Literal.number(size))
            own = case_of([(beyond, exp.Literal.number(0))], own)
            if whole is None:
                whole = own
                continue
            shifted = exp.Mul(this=bracketed(whole), expression=exp.Literal.number(size))
            whole = exp.Add(this=shifted, expression=bracketed(own))
        return whole

    def made_code(self, code: Code, plan: ScoringPlan) -> Any:
        """How the code of a column is made of its cell."""
        exp = self.exp
        cell = exp.column(self.names.cells[cast(Any, code).key])
        missing = (is_null(cell.copy()), exp.Literal.number(0))
        if isinstance(code, IntervalCode):
            places = [exp.Literal.number(place + 1) for place in range(len(code.edges) + 1)]
            endless = exp.GT(this=exp.Abs(this=cell.copy()), expression=number(LARGEST))
            return case_of([missing, (endless, exp.Null())], interval(cell, np.asarray(code.edges).tolist(), places))
        assert isinstance(code, LevelCode)
        levels = (
            (exp.EQ(this=cell.copy(), expression=exp.Literal.string(text)), exp.Literal.number(place))
            for text, place in plan.column(code.key).spellings()
        )
        return case_of([missing, *levels], exp.Literal.number(code.size + 1))


# How sums are added up in the steps of a query: which tables are joined together, and what each step hands on.

MOST_JOINS = 30
"""Tables joined in one step: SQLite takes 64."""
SCORE = "s"
"""What the sum over all columns is called; a group's number follows."""


class JoinedTable(Struct, frozen=True):
    """All that is looked up by one code, side by side."""

    name: str
    look_ups: tuple[LookUp, ...]

    @property
    def code(self) -> Code:
        return self.look_ups[0].code

    @property
    def numbers(self) -> np.ndarray:
        """(codes x columns of all look-ups)."""
        return np.hstack([one.table for one in self.look_ups])

    def places(self) -> Iterator[tuple[LookUp, int]]:
        """Every look-up, and the column with which its own begin."""
        first = 0
        for one in self.look_ups:
            yield one, first
            first += one.table.shape[1]


def joined_tables(asked: Sequence[LookUp]) -> list[JoinedTable]:
    """The tables that these look-ups take, in the order in which they are first asked."""
    found: dict[Hashable, dict[int, LookUp]] = {}
    for one in asked:
        found.setdefault(code_key(one.code), {})[id(one)] = one
    return [JoinedTable(f"softcount_table{place}", tuple(own.values())) for place, own in enumerate(found.values())]


class SumStep(Struct, frozen=True):
    """Terms by the sum that they belong to, the places of the tables they ask, and sums that earlier steps began."""

    sums: Mapping[str, Sequence[Formula]]
    tables: Sequence[int]
    begun: frozenset[str]


def batches(sums: Mapping[str, Sequence[Formula]], places: Mapping[int, int]) -> Iterator[SumStep]:
    """Terms of sums in parts, none of which asks more tables than a step can join."""
    items = [
        (sorted({places[id(one)] for one in look_ups(term) if id(one) in places}), own, term)
        for own, all_ in sums.items()
        for term in all_
    ]
    begun: set[str] = set()
    part: dict[str, list[Formula]] = {}
    tables: set[int] = set()
    for needed, own, term in sorted(items, key=lambda item: item[0][-1:]):
        if part and len(tables | set(needed)) > MOST_JOINS:
            yield SumStep(part, sorted(tables), frozenset(begun & set(part)))
            begun |= set(part)
            part, tables = {}, set()
        part.setdefault(own, []).append(term)
        tables |= set(needed)
    yield SumStep(part, sorted(tables), frozenset(begun & set(part)))


def asked_later(parts: Sequence[SumStep], names: SqlNames) -> list[list[str]]:
    """For every batch the columns that those after it need, sums by their name alone."""
    needed: set[str] = set()
    found: list[list[str]] = []
    for part in reversed(parts):
        found.append(sorted(needed))
        needed -= set(part.sums) - part.begun
        needed |= part.begun
        for terms in part.sums.values():
            for term in terms:
                needed |= names.asked(term)
    return found[::-1]


# Columns of text in SQL: documents are taken apart into words, and what these add is summed up by document.

READING = ("duckdb", "postgres", "spark", "bigquery")
"""Dialects that find all words of a document."""


def refuse_words(key: Key, where: str) -> DataError:
    """The error of a column of text that is not read somewhere."""
    return DataError(
        f"column {key!r} is text, of which {where} cannot find the words: the model cannot be exported there. "
        f"Export it as SQL for {', '.join(READING[:-1])} or {READING[-1]}, or fit without it: "
        f"{remedies.kind(key, 'ignore')}"
    )


def refuse_reading(key: Key, reading: Reading) -> None:
    """Raise where the words of a column are no plain ones."""
    if reading.analyzer != "word" or reading.pattern is not None or reading.ngrams != (1, 1):
        raise DataError(
            f"column {key!r} is text of which runs of words, characters or a pattern of its own are counted; only "
            "plain words can be exported. Fit again with Text() alone, or without it: " + remedies.kind(key, "ignore")
        )


@cache
def word_letters() -> str:
    """What words are made of, as what stands in the brackets of a regular expression: databases differ in their own.

    >>> word_letters()[:10]
    '0-9A-Z_a-z'
    """
    there = [chr(code).isalnum() or code == 95 for code in range(0x110000)]
    edges = [code for code, (one, other) in enumerate(pairwise([False, *there, False])) if one != other]
    runs = zip(edges[::2], edges[1::2], strict=True)
    return "".join(chr(a) if b == a + 1 else f"{chr(a)}-{chr(b - 1)}" for a, b in runs)


def word_rows(dialect: str, documents: str, lowercase: bool) -> str:
    """A selection of the words of documents, one in each row."""
    exp = sqlglot_expressions()
    expression = exp.Literal.string(f"[{word_letters()}]{{2,}}").sql(dialect)
    text = _lowered(dialect) if lowercase else "document"
    ways = {
        "duckdb": "UNNEST(REGEXP_EXTRACT_ALL({text}, {found})) AS word FROM {documents}",
        "postgres": "found[1] AS word FROM {documents}, REGEXP_MATCHES({text}, {found}, 'g') AS w(found)",
        "spark": "EXPLODE(REGEXP_EXTRACT_ALL({text}, {found}, 0)) AS word FROM {documents}",
        "bigquery": "word FROM {documents}, UNNEST(REGEXP_EXTRACT_ALL({text}, {found})) AS word",
    }
    return "SELECT document, " + ways[dialect].format(text=text, found=expression, documents=documents)


def word_sums(found: str, table: str, groups: Sequence[str], each: str) -> str:
    """A selection of what the words of every document add, as they are looked up in a table."""
    counted = f"SELECT document, word, COUNT(*) AS n FROM {found} GROUP BY document, word"
    own = {"once": f"SELECT DISTINCT document, word FROM {found}", "times": f"SELECT document, word FROM {found}"}
    times = {"log": " * LN(1 + n)", "square": " * LN(1 + n) * LN(1 + n)"}.get(each, "")
    sums = ", ".join(f"SUM({group}{times}) AS {group}" for group in groups)
    words = f"({own.get(each, counted)}) AS d"
    return f"SELECT document AS k, {sums} FROM {words} JOIN {table} AS w ON w.k = d.word GROUP BY document"


def _lowered(dialect: str) -> str:
    """A document in lower case; Postgres may know that of the English letters only, as its locale has it."""
    if dialect != "postgres":
        return "LOWER(document)"
    exp, pairs = sqlglot_expressions(), dict(_capitals())
    large, small = (exp.Literal.string("".join(own)).sql(dialect) for own in (pairs, pairs.values()))
    some = exp.Literal.string(f"[{''.join(pairs)}]").sql(dialect)
    return f"CASE WHEN document ~ {some} THEN TRANSLATE(LOWER(document), {large}, {small}) ELSE LOWER(document) END"


@cache
def _capitals() -> tuple[tuple[str, str], ...]:
    """Capitals beyond the English ones, and what each is as a small letter."""
    return tuple((x, x.lower()) for x in map(chr, range(128, 0x110000)) if x.lower() != x and len(x.lower()) == 1)
