"""Formulas as expressions of SQL, one for each group, built as trees by sqlglot, which writes them in any dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, cast

import numpy as np

from softcount.errors import DataError
from softcount.export.formulas import (
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
)  # fmt: skip
from softcount.export.scoring_plan import ScoringPlan
from softcount.records import dataclass

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


@dataclass(frozen=True)
class SqlNames:
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


def _parts_of(of: LookUp) -> list[tuple[Code, int]]:
    """The codes that a table is looked up by, and how many places each has."""
    if isinstance(of.code, CombinedCode):
        return list(zip(of.code.codes, of.code.sizes, strict=True))
    return [(of.code, len(of.table))]


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
            return exp.Var(this=self._by_halving(_parts_of(of), of.table[:, group]))
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
