"""A query that scores the rows of a table: what the model says of them, in SQL.

Cells are read once, looked up in tables that are joined in, and added up as trees; every step is materialised where the
dialect can say so, or engines would write each step into the next and compute it again and again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

from softcount.errors import DataError
from softcount.export.formulas import Code, Formula, LevelCode, LookUp
from softcount.export.scoring_plan import InputColumn, ScoringPlan, plain_names
from softcount.export.sql_dialects import DIALECTS
from softcount.export.sql_formulas import (
    SqlFormulas,
    SqlNames,
    added,
    bracketed,
    case_of,
    code_key,
    double,
    exponential,
    interval,
    is_null,
    larger,
    number,
    single_codes,
    sqlglot_expressions,
    tables_of,
    tree,
)  # fmt: skip
from softcount.families.setting import IMPOSSIBLE
from softcount.fitted.calibration import Curve
from softcount.records import dataclass
from softcount.table.names import apart
from softcount.table.schema import Kind

MATERIALIZED = ("duckdb", "postgres", "sqlite")
"""Dialects in which a step can be said to be computed once."""
MOST_JOINS = 30
"""Tables joined in one step: SQLite takes 64."""
USUAL_TABLE = "rows"
HEADING = "Scores rows as the model does: the class it predicts and the probability of each. Made by Softcount."


def scoring_query(plan: ScoringPlan, dialect: str, table: str = USUAL_TABLE, keep: Sequence[str] = ()) -> str:
    """The query, ending in a semicolon; `keep` are columns of the table that come out first."""
    if dialect not in DIALECTS:
        raise DataError(f"there is no dialect {dialect!r}. Use one of: {', '.join(DIALECTS)}.")
    writer = QueryWriter(plan, dialect, tuple(keep))
    last = writer.last(table)
    marked = " MATERIALIZED" if dialect in MATERIALIZED else ""
    steps = [f"{name} AS{marked} (\n  {step.sql(dialect=dialect, copy=False)}\n)" for name, step in writer.steps]
    return f"-- {HEADING}\nWITH " + ",\n".join(steps) + f"\n{last.sql(dialect=dialect, copy=False)};\n"


@dataclass
class QueryWriter:
    """Adds one step after the other to a query."""

    plan: ScoringPlan
    dialect: str
    keep: tuple[str, ...] = ()
    steps: list[tuple[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.exp = exp = sqlglot_expressions()
        self.bounds = {Kind.COUNT: exp.GTE, Kind.AMOUNT: exp.GTE, Kind.POSITIVE: exp.GT}
        found = tables_of(self.plan.terms)
        cells = {column.key: f"c{place}" for place, column in enumerate(self.plan.columns)}
        self.made: dict[Any, Code] = {code_key(code): code for one in found for code in single_codes(one.code)}
        codes = {key: f"i{place}" for place, key in enumerate(self.made)}
        tables = {id(one): f"softcount_table{place}" for place, one in enumerate(found)}
        self.formulas = SqlFormulas(SqlNames(cells, codes, tables))
        self.carried = [f"k{place}" for place in range(len(self.keep))]
        self.scores = [f"s{group}" for group in range(len(self.plan.names))]

    def last(self, table: str) -> Any:
        """The selection that comes last, after all steps."""
        return self._finished(self._summed(self._coded(self._bounded(self._read(table)))))

    # -- steps

    def _step(self, name: str, select: Any) -> str:
        """One more step, by the name that the next one reads it by."""
        self.steps.append((name, select))
        return name

    def _select(self, last: str, columns: Sequence[Any]) -> Any:
        return self.exp.Select(expressions=list(columns)).from_(self.exp.to_table(last), copy=False)

    def _named(self, what: Any, name: str, quoted: bool = False) -> Any:
        return self.exp.Alias(this=what, alias=self.exp.to_identifier(name, quoted=quoted))

    def _kept(self, names: Sequence[str]) -> list[Any]:
        return [self.exp.column(name) for name in names]

    def _read(self, table: str) -> str:
        """Cells as the model reads them: numbers, and levels as text; missing ones as null."""
        source = self.exp.Table(**_table_parts(self.exp, table))
        source.set("alias", self.exp.TableAlias(this=self.exp.to_identifier("t")))
        kept = [self._named(self._source(name), alias) for name, alias in zip(self.keep, self.carried, strict=True)]
        cells = [self._named(self._cell(column), self.formulas.names.cells[column.key]) for column in self.plan.columns]
        nothing = [] if kept or cells else [self._named(self.exp.Literal.number(1), "nothing")]
        select = self.exp.Select(expressions=[*kept, *cells, *nothing]).from_(source, copy=False)
        return self._step("softcount_cells", select)

    def _bounded(self, last: str) -> str:
        """Numbers outside of what their column may hold are null, as the model takes them."""
        exp, names = self.exp, self.formulas.names.cells
        if not any(column.kind in self.bounds for column in self.plan.columns if column.number):
            return last
        inside = []
        for column in self.plan.columns:
            cell, name = exp.column(names[column.key]), names[column.key]
            if not column.number or column.kind not in self.bounds:
                inside.append(cell)
                continue
            right = self.bounds[column.kind](this=cell, expression=number(0.0))
            if column.kind is Kind.COUNT:
                whole = exp.EQ(this=cell.copy(), expression=exp.Floor(this=cell.copy()))
                right = exp.And(this=right, expression=whole)
            inside.append(self._named(case_of([(right, cell.copy())]), name))
        return self._step("softcount_inside", self._select(last, [*self._kept(self.carried), *inside]))

    def _source(self, name: str) -> Any:
        return self.exp.Column(this=self.exp.to_identifier(name, quoted=True), table=self.exp.to_identifier("t"))

    def _cell(self, column: InputColumn) -> Any:
        exp, source = self.exp, self._source(column.name)
        text = exp.Cast(this=source.copy(), to=exp.DataType(this=exp.DataType.Type.TEXT))
        # Not IN: DuckDB makes a join of each, and 300 columns took 25 s to plan.
        missing = [(exp.Literal.string(word), exp.Null()) for word in column.missing]
        trimmed = exp.Trim(this=text.copy())
        if column.levels is None:
            odd = case_of([self._no_number(source, text)], source) if self.dialect == "sqlite" else source
            return double(case_of(missing, odd, trimmed))
        if not column.valued:
            return case_of(missing, text, trimmed)
        levels = [float(level) for level in column.levels]  # type: ignore[arg-type]
        values = (
            (exp.EQ(this=text.copy(), expression=exp.Literal.string(spelt)), number(levels[place - 1]))
            for spelt, place in column.spellings()
        )
        return double(case_of(missing, case_of(values), trimmed))

    def _no_number(self, source: Any, text: Any) -> tuple[Any, Any]:
        """Text that is no number is 0 in SQLite; as an infinite one it leaves the row without a class."""
        exp = self.exp
        other = exp.Glob(this=text.copy(), expression=exp.Literal.string("*[^0-9.eE+-]*"))
        bare = exp.Not(this=exp.Glob(this=text.copy(), expression=exp.Literal.string("*[0-9]*")))
        kind = exp.Anonymous(this="TYPEOF", expressions=[source.copy()])
        is_text = exp.EQ(this=kind, expression=exp.Literal.string("text"))
        odd = exp.And(this=is_text, expression=exp.Paren(this=exp.Or(this=other, expression=bare)))
        return odd, exp.Literal.number("9e999")

    def _coded(self, last: str) -> str:
        """Codes of numbers in intervals, and of levels that are looked up together with others."""
        if not self.made:
            return last
        codes = [
            self._named(self.formulas.made_code(code, self.plan), self.formulas.names.codes[key])
            for key, code in self.made.items()
        ]
        return self._step("softcount_codes", self._select(last, [*self._kept(self._inputs(coded=False)), *codes]))

    def _inputs(self, coded: bool = True) -> list[str]:
        names = self.formulas.names
        return [*self.carried, *names.cells.values(), *(names.codes.values() if coded else ())]

    def _summed(self, last: str) -> str:
        """The score of every group: a few tables at a time."""
        parts = list(_in_parts(self.plan.terms))
        for place, terms in enumerate(parts):
            sums = []
            for group, name in enumerate(self.scores):
                own = [bracketed(self.formulas.written(term, group)) for term in terms]
                own = own if place == 0 else [self.exp.column(name), *own]
                sums.append(self._named(tree(added, own), name))
            inputs = self._inputs() if place + 1 < len(parts) else self.carried
            select = self._select(last, [*self._kept(inputs), *sums])
            for one in tables_of(terms):
                select = self._joined(select, one)
            last = self._step(f"softcount_scores{place}", select)
        return last

    def _joined(self, select: Any, one: LookUp) -> Any:
        exp, name = self.exp, self.formulas.names.tables[id(one)]
        own = isinstance(one.code, LevelCode)
        key = exp.column(self.formulas.names.cells[one.code.key]) if own else self.formulas.code(one.code)  # type: ignore[attr-defined]
        self._table(name, one)
        matched = exp.EQ(this=exp.column("k", table=name), expression=key)
        return select.join(exp.to_table(name), on=matched, join_type="left", copy=False)

    def _table(self, name: str, one: LookUp) -> None:
        """A table to look up in, its numbers declared as such."""
        exp = self.exp
        if isinstance(one.code, LevelCode):
            column = self.plan.column(one.code.key)
            keyed = [(exp.Literal.string(text), one.table[place]) for text, place in column.spellings()]
            keyed = keyed or [(exp.Literal.string(""), one.table[0])]
        else:
            keyed = [(exp.Literal.number(place), row) for place, row in enumerate(one.table)]
        rows = [exp.Tuple(expressions=[key, *(number(value) for value in row)]) for key, row in keyed]
        names = ["k", *(f"g{group}" for group in range(one.table.shape[1]))]
        values = exp.Values(
            expressions=rows,
            alias=exp.TableAlias(this=exp.to_identifier("v"), columns=[exp.to_identifier(each) for each in names]),
        )
        if self.dialect == "sqlite":  # which has no names for columns of values but those it gives itself
            values.set("alias", None)
            values = exp.Subquery(this=values)
            sources = [f"column{place + 1}" for place in range(len(names))]
        else:
            sources = names
        casts = [self._named(double(exp.column(each)), own) for each, own in zip(sources[1:], names[1:], strict=True)]
        select = exp.Select(expressions=[self._named(exp.column(sources[0]), "k"), *casts]).from_(values, copy=False)
        self._step(name, select)

    # -- what becomes of scores

    def _finished(self, last: str) -> Any:
        scores = self._kept(self.scores)
        top = tree(larger, scores)
        impossible = self.exp.LT(this=top.copy(), expression=number(IMPOSSIBLE))
        best = self._named(case_of([(impossible, self.exp.Null())], top), "top")
        last = self._step("softcount_best", self._select(last, [*self._kept(self.carried), *scores, best]))
        if self.plan.finish == "highest":
            return self._answers(last, self.scores, self.exp.column("top"), ())
        curves = () if self.plan.calibration is None else self.plan.calibration.curves
        if curves:
            return self._curved(last, curves)
        parts = [self._named(self._relative(name), f"e{group}") for group, name in enumerate(self.scores)]
        names = [f"e{group}" for group in range(len(self.scores))]
        last = self._step("softcount_parts", self._select(last, [*self._kept(self.carried), *parts]))
        return self._shared(last, names, number(1.0))

    def _relative(self, name: str) -> Any:
        """A group's likelihood beside the best one's."""
        off = self.exp.Sub(this=self.exp.column(name), expression=self.exp.column("top"))
        temperature = None if self.plan.calibration is None else self.plan.calibration.temperature
        if temperature is not None:
            off = self.exp.Div(this=bracketed(off), expression=number(temperature), typed=True, safe=False)
        return exponential(off)

    def _curved(self, last: str, curves: Sequence[Curve]) -> Any:
        """Probabilities by a curve over the log-odds of each group against the others."""
        groups = [1] if len(curves) == 1 else list(range(len(curves)))
        odds = [self._named(self._odds(group), f"o{group}") for group in groups]
        top = self.exp.column("top")
        last = self._step("softcount_odds", self._select(last, [*self._kept(self.carried), top, *odds]))
        names = [f"e{group}" for group in range(len(self.scores))]
        shares = [self._curve(f"o{group}", curve) for group, curve in zip(groups, curves, strict=True)]
        if len(curves) == 1:
            shares = [self.exp.Sub(this=number(1.0), expression=bracketed(shares[0].copy())), shares[0]]
        parts = [self._named(share, name) for share, name in zip(shares, names, strict=True)]
        last = self._step("softcount_parts", self._select(last, [*self._kept(self.carried), *parts]))
        return self._shared(last, names, tree(larger, self._kept(names)))

    def _odds(self, group: int) -> Any:
        exp = self.exp
        own, others = exp.column(self.scores[group]), [x for g, x in enumerate(self.scores) if g != group]
        if len(others) == 1:
            return exp.Sub(this=own, expression=exp.column(others[0]))
        top = tree(larger, self._kept(others))
        parts = [exponential(exp.Sub(this=exp.column(name), expression=top.copy())) for name in others]
        rest = exp.Add(this=top, expression=exp.Ln(this=tree(added, parts)))
        return exp.Sub(this=own, expression=bracketed(rest))

    def _curve(self, name: str, curve: Curve) -> Any:
        exp, odds = self.exp, self.exp.column(name)
        points, shares = curve.odds.tolist(), curve.share.tolist()
        values = [number(shares[0])]
        for (a, b), (p, q) in zip(pairwise(points), pairwise(shares), strict=True):
            off = exp.Sub(this=odds.copy(), expression=number(a))
            slope = (q - p) / (b - a) if b > a else 0.0
            values.append(
                exp.Add(this=exp.Mul(this=number(slope), expression=exp.Paren(this=off)), expression=number(p))
            )
        found = interval(odds, points, [*values, number(shares[-1])])
        return case_of([(is_null(exp.column("top")), exp.Null())], found)

    def _shared(self, last: str, names: Sequence[str], best: Any) -> Any:
        """Probabilities that sum to one."""
        whole = self._named(tree(added, self._kept(names)), "whole")
        last = self._step("softcount_whole", self._select(last, [*self._kept([*self.carried, *names]), whole]))
        shares = [
            self.exp.Div(this=self.exp.column(name), expression=self.exp.column("whole"), typed=True, safe=False)
            for name in names
        ]
        return self._answers(last, names, best, shares)

    def _answers(self, last: str, names: Sequence[str], best: Any, shares: Sequence[Any]) -> Any:
        exp, values = self.exp, plain_names(self.plan.names)["values"]
        told = case_of(
            (exp.EQ(this=exp.column(name), expression=best.copy()), exp.convert(value))
            for name, value in zip(names, values, strict=True)
        )
        kept = [self._named(exp.column(own), name, True) for own, name in zip(self.carried, self.keep, strict=True)]
        headings = self._headings()
        found = [self._named(share, name, True) for share, name in zip([told, *shares], headings, strict=False)]
        return self._select(last, [*kept, *found])

    def _headings(self) -> list[str]:
        """What comes out is called as `softcount predict` calls it, as far as the dialect lets it."""
        found: list[str] = []
        for name in ["predicted", *(f"p({name})" for name in self.plan.headings)]:
            plain = re.sub(r"\W+", "_", name).strip("_") if self.dialect == "bigquery" else name
            found.append(apart(plain, {*self.keep, *found}))
        return found


def _in_parts(terms: Sequence[Formula]) -> Any:
    """Terms of which none together ask more tables than a step can join."""
    part: list[Formula] = []
    joins = 0
    for term in terms:
        own = len(tables_of([term]))
        if part and joins + own > MOST_JOINS:
            yield part
            part, joins = [], 0
        part.append(term)
        joins += own
    yield part


def _table_parts(exp: Any, name: str) -> dict[str, Any]:
    """A table's name in up to three parts with dots between them, each quoted."""
    parts = name.split(".")
    if not all(parts) or len(parts) > 3:
        raise DataError(f"{name!r} is no name of a table. Give a name, or schema.name.")
    places = ("this", "db", "catalog")
    return {place: exp.to_identifier(part, quoted=True) for place, part in zip(places, reversed(parts), strict=False)}
