"""A model as a SQL query, checked before it is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core import remedies
from softcount.errors import DataError
from softcount.export import DIALECTS
from softcount.export.formulas import (
    MOST_INLINED,
    MOST_KEPT,
    AllKnown,
    BlockDensity,
    Code,
    Formula,
    LevelCode,
    WordsCode,
    blocks_in,
    code_key,
    stages,
    summands,
    with_blocks_computed,
)
from softcount.export.scoring_plan import (
    SINCE_1970,
    DrawnRows,
    ExportCheck,
    InputColumn,
    ScoringPlan,
    compared,
    plain_names,
)
from softcount.export.sql_formulas import (  # fmt: skip
    READING,
    SCORE,
    JoinedTable,
    SqlFormulas,
    SqlNames,
    SumStep,
    added,
    asked_later,
    batches,
    bracketed,
    case_of,
    digits,
    double,
    exponential,
    greatest,
    interval,
    is_inlined,
    is_null,
    joined_tables,
    look_ups,
    number,
    refuse_reading,
    refuse_words,
    single_codes,
    sqlglot_expressions,
    tree,
    word_rows,
    word_sums,
)
from softcount.families.setting import IMPOSSIBLE
from softcount.fitted.fitted import Curve
from softcount.sources.arrow_columns import number_words
from softcount.sources.wording import and_others
from softcount.table.schema import BLANK, Key, Kind, apart

MATERIALIZED = ("duckdb", "postgres", "sqlite")
"""Dialects in which a step can be said to be computed once."""
MOST_TABLES, MOST_NUMBERS = 1_000, 500_000
"""What a query may hold: averaged stars take a table for every pair of columns."""
NO_NUMBERS = ("*[^0-9.eE+-]*", "*[0-9.][+-]*", "*.*.*", "*[eE]*[eE.]*", "*[eE]", "[eE]*", "[+-][eE+-]*")
"""Shapes of text of which SQLite would read a part as a number."""
USUAL_TABLE = "rows"
HEADING = "Scores rows as the model does: the class it predicts and the probability of each. Made by Softcount."


def scoring_query(plan: ScoringPlan, dialect: str, table: str = USUAL_TABLE, keep: Sequence[str] = ()) -> str:
    """The query, ending in a semicolon; `keep` are columns of the table that come out first."""
    if dialect not in DIALECTS:
        raise DataError(f"there is no dialect {dialect!r}. Use one of: {', '.join(DIALECTS)}.")
    writer = QueryWriter(plan, dialect, tuple(keep))
    _refuse_too_large(writer.tables)
    last = writer.last(table)
    marked = " MATERIALIZED" if dialect in MATERIALIZED else ""
    steps = [f"{name} AS{marked} (\n  {step.sql(dialect=dialect, copy=False)}\n)" for name, step in writer.steps]
    heading = "".join(f"-- {line}\n" for line in (HEADING, *columns_to_cast(plan)))
    return f"{heading}WITH " + ",\n".join(steps) + f"\n{last.sql(dialect=dialect, copy=False)};\n"


def columns_to_cast(plan: ScoringPlan) -> list[str]:
    """A line for each column that the query takes as a number and the model has read from dates, durations or units.

    Names and cells are written by `repr`: no line break in them ends the comment that the line becomes.
    """
    found = []
    for column in plan.columns:
        if column.form is not None:
            cell = column.form.written(1706659200.0 if column.expected == SINCE_1970 else 4500.0)
            example = f"{cell!r} is {column.numbers([cell])[0]:.12g}"
            found.append(
                f"column {column.key!r} is read as {column.expected} ({example}): cast it in a view of the table"
            )
    return found


class QueryWriter(Struct, dict=True):
    """Adds one step after the other to a query."""

    plan: ScoringPlan
    dialect: str
    keep: tuple[str, ...] = ()
    steps: list[tuple[str, Any]] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.exp = exp = sqlglot_expressions()
        self.bounds = {Kind.COUNT: exp.GTE, Kind.AMOUNT: exp.GTE, Kind.POSITIVE: exp.GT}
        blocks = [block for term in self.plan.terms for block in blocks_in(term)]
        self.blocks = {
            f"b{place}_": (block.keys, block.of_whole_rows(), block.of_others(most_kept(self.dialect)))
            for place, block in enumerate(blocks)
        }
        named = {id(block): name for block, name in zip(blocks, self.blocks, strict=True)}
        self.terms = [with_blocks_computed(term, named) for term in self.plan.terms]
        every = [*self.terms, *(formula for _, *both in self.blocks.values() for formula in both)]
        once = [one for stage in stages(every) for one in stage]
        found = [one for term in (*(one.of for one in once), *every) for one in look_ups(term)]
        self.tables = joined_tables([one for one in found if not is_inlined(one, self.dialect)])
        cells = {column.key: f"c{place}" for place, column in enumerate(self.plan.columns)}
        self.made: dict[Any, Code] = {code_key(code): code for one in found for code in single_codes(one.code)}
        codes = {key: f"i{place}" for place, key in enumerate(self.made)}
        if any(is_inlined(one, self.dialect) for one in found):
            self.terms.append(AllKnown(tuple(self.made.values())))
        tables = {id(one): (table.name, first) for table in self.tables for one, first in table.places()}
        sums = {id(one): f"f{place}_" for place, one in enumerate(once)}
        self.formulas = SqlFormulas(SqlNames(cells, codes, tables, sums), self.dialect)
        self.carried = [f"k{place}" for place in range(len(self.keep))]
        self.scores = [f"{SCORE}{group}" for group in range(len(self.plan.names))]

    def last(self, table: str) -> Any:
        """The selection that comes last, after all steps."""
        parts = table.split(".")
        if not all(parts) or len(parts) > 3:
            raise DataError(f"{table!r} is no name of a table. Give a name, or schema.name.")
        places = ("this", "db", "catalog")
        quoted = [self.exp.to_identifier(part, quoted=True) for part in reversed(parts)]
        source = self.exp.Table(**dict(zip(places, quoted, strict=False)))
        source.set("alias", self.exp.TableAlias(this=self.exp.to_identifier("t")))
        kept = [self._named(self._source(name), alias) for name, alias in zip(self.keep, self.carried, strict=True)]
        cells = [self._named(self._cell(column), self.formulas.names.cells[column.key]) for column in self.plan.columns]
        nothing = [] if kept or cells else [self._named(self.exp.Literal.number(1), "nothing")]
        select = self.exp.Select(expressions=[*kept, *cells, *nothing]).from_(source, copy=False)
        rows = self._bounded(self._step("softcount_cells", select))
        for name, (keys, whole, others) in self.blocks.items():
            rows = self._block(rows, name, keys, (whole, others))
            self.done.append(name)
        return self._finished(self._summed(self._coded(rows), "softcount_scores", {SCORE: self.terms}))

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
            if self.dialect != "sqlite":
                return double(case_of(missing, source if column.form is None else self._typed(column, source), trimmed))
            odd = case_of([(self._no_number(column, source, text), exp.Literal.number("9e999"))], source)
            kind = exp.Anonymous(this="TYPEOF", expressions=[source.copy()])
            is_number = exp.In(this=kind, expressions=[exp.Literal.string(each) for each in ("real", "integer")])
            marks = [(number(mark), exp.Null()) for mark in number_words(column.missing)]
            unmarked = double(case_of(marks, source.copy(), source.copy()) if marks else source.copy())
            return case_of([(is_number, unmarked)], double(case_of(missing, odd, trimmed)))
        if not column.valued:
            found = case_of(missing, text, trimmed) if missing else text
            blank = [exp.Literal.string(BLANK)] if BLANK in column.levels else []
            return exp.Coalesce(this=found, expressions=blank) if blank else found
        levels = [float(level) for level in column.levels]  # type: ignore[arg-type]
        values = (
            (exp.EQ(this=text.copy(), expression=exp.Literal.string(spelt)), number(levels[place - 1]))
            for spelt, place in column.spellings()
        )
        return double(case_of(missing, case_of(values), trimmed))

    def _typed(self, column: InputColumn, source: Any) -> Any:
        """A cell of a column that must have a numeric type: the text "1.234" may stand for 1234 in the model's form.

        Databases refuse to multiply text and dates by a number, except Snowflake, which casts text, and Spark, which
        casts anything, to null if it has to.
        """
        exp = self.exp
        if self.dialect == "snowflake":
            variant = exp.Anonymous(this="TO_VARIANT", expressions=[source.copy()])
            is_text = exp.Anonymous(this="IS_VARCHAR", expressions=[variant])
            odd = exp.Anonymous(this="CONCAT", expressions=[source.copy(), exp.Literal.string(" is text")])
            return case_of([(is_text, double(odd))], double(source))
        if self.dialect == "spark":
            kind = exp.Anonymous(this="TYPEOF", expressions=[source.copy()])
            odd = exp.In(this=kind, expressions=[exp.Literal.string(each) for each in ("string", "date", "timestamp")])
            said = exp.Literal.string(f"column {column.key!r} must be {column.expected}")
            return case_of([(odd, exp.Anonymous(this="RAISE_ERROR", expressions=[said]))], double(source))
        return exp.Mul(this=source, expression=number(1.0))

    def _no_number(self, column: InputColumn, source: Any, text: Any) -> Any:
        """Whether a cell of SQLite's is text that is no number, or any text in a column with a form.

        SQLite reads it as 0; as infinity it leaves the row without a class.
        """
        exp = self.exp
        kind = exp.Anonymous(this="TYPEOF", expressions=[source.copy()])
        is_text = exp.EQ(this=kind, expression=exp.Literal.string("text"))
        if column.form is not None:
            return is_text
        shapes = [exp.Glob(this=text.copy(), expression=exp.Literal.string(shape)) for shape in NO_NUMBERS]
        shapes.append(exp.Not(this=exp.Glob(this=text.copy(), expression=exp.Literal.string("*[0-9]*"))))

        def either(left: Any, right: Any) -> Any:
            return exp.Or(this=left, expression=right)

        return exp.And(this=is_text, expression=exp.Paren(this=tree(either, shapes)))

    def _coded(self, last: str) -> str:
        """Codes of numbers in intervals, and of levels that are looked up together with others."""
        if not self.made:
            return last
        codes = [
            self._named(self.formulas.made_code(code, self.plan), self.formulas.names.codes[key])
            for key, code in self.made.items()
        ]
        return self._step("softcount_codes", self._select(last, [*self._kept(self._inputs()), *codes]))

    def _inputs(self) -> list[str]:
        made = [f"{name}{group}" for name in self.done for group in range(len(self.plan.names))]
        return [*self.carried, *self.formulas.names.cells.values(), *made]

    def _block(self, last: str, name: str, keys: Sequence[Key], both: tuple[Formula, Formula]) -> str:
        """What a block adds, by way of whole rows, and of others, which are few and take long."""
        columns = self._inputs()[len(self.carried) :]
        cells = " OR ".join(f"{self.formulas.names.cells[key]} IS NULL" for key in keys)
        selections = []
        for of, way, test in zip(both, ("whole", "holes"), (f"NOT ({cells})", cells), strict=True):
            rows = self._select(last, self._kept([*self.carried, *columns])).where(self.exp.Var(this=test), copy=False)
            first = self._step(f"softcount_{name}{way}", rows)
            end = self._summed(first, f"softcount_{name}{way}", {name: [of]}, columns)
            made = [f"{name}{group}" for group in range(len(self.plan.names))]
            selections.append(f"SELECT {', '.join([*self.carried, *columns, *made])} FROM {end}")
        return self._step(f"softcount_{name}rows", self.exp.Var(this=" UNION ALL ".join(selections)))

    def _summed(self, last: str, name: str, terms: Mapping[str, Sequence[Formula]], always: Sequence[str] = ()) -> str:
        """What is computed once, one stage after the other, and then some sums, beside columns that all steps keep."""
        names = self.formulas.names
        once = stages([term for each in terms.values() for term in each])
        sums = [{names.sums[id(one)]: list(summands(one.of)) for one in stage} for stage in once]
        tables = {id(one): place for place, table in enumerate(self.tables) for one in table.look_ups}
        parts = [part for stage in [*sums, terms] for part in batches(stage, tables)]
        for place, (part, later) in enumerate(zip(parts, asked_later(parts, names), strict=True)):
            last = self._added(last, f"{name}{place}", part, (later, always))
        return last

    def _added(self, last: str, name: str, part: SumStep, needed: tuple[Collection[str], Sequence[str]]) -> str:
        """A step that adds to some sums, and hands on what later ones need, and what all do."""
        groups, (later, always) = range(len(self.plan.names)), needed
        by_group = {*self.formulas.names.sums.values(), *self.blocks, SCORE}
        kept = [*always, *(each for each in later if each not in by_group and each not in always)]
        kept += [f"{each}{group}" for each in later if each in by_group and each not in part.sums for group in groups]
        found = []
        for own, terms in part.sums.items():
            for group in groups:
                new = [bracketed(self.formulas.written(term, group)) for term in terms]
                new = [self.exp.column(f"{own}{group}"), *new] if own in part.begun else new
                found.append(self._named(tree(added, new), f"{own}{group}"))
        select = self._select(last, [*self._kept([*self.carried, *kept]), *found])
        for place in part.tables:
            select = self._joined(select, self.tables[place])
        return self._step(name, select)

    def _joined(self, select: Any, table: JoinedTable) -> Any:
        exp, code = self.exp, table.code
        own = isinstance(code, (LevelCode, WordsCode))
        key = exp.column(self.formulas.names.cells[code.key]) if own else self.formulas.code(code)  # type: ignore[attr-defined]
        if table.name not in self.written:
            self.written.add(table.name)
            self._table(table)
        matched = exp.EQ(this=exp.column("k", table=table.name), expression=key)
        return select.join(exp.to_table(table.name), on=matched, join_type="left", copy=False)

    def _table(self, joined: JoinedTable) -> None:
        """A table to look up in; of words the sums over those of each document."""
        exp, table = self.exp, joined.numbers
        if isinstance(joined.code, WordsCode):
            self._summed_words(joined, joined.code)
            return
        if isinstance(joined.code, LevelCode):
            column = self.plan.column(joined.code.key)
            keyed = [(exp.Literal.string(text), table[place]) for text, place in column.spellings()]
            keyed = keyed or [(exp.Literal.string(""), table[0])]
        else:
            keyed = [(exp.Literal.number(place), row) for place, row in enumerate(table)]
        self._values(joined.name, keyed, table.shape[1])

    def _summed_words(self, joined: JoinedTable, code: WordsCode) -> None:
        exp, name, column = self.exp, joined.name, self.plan.column(code.key)
        if self.dialect not in READING:
            raise refuse_words(code.key, {"sqlite": "SQLite", "snowflake": "Snowflake"}[self.dialect])
        assert column.reading is not None and column.levels is not None
        refuse_reading(code.key, column.reading)
        numbers = joined.numbers if column.levels else np.zeros((1, joined.numbers.shape[1]))
        keyed = [(exp.Literal.string(str(word)), row) for word, row in zip(column.levels or [""], numbers, strict=True)]
        groups = [f"g{group}" for group in range(numbers.shape[1])]
        self._values(f"{name}_words", keyed, len(groups))
        cell = self.formulas.names.cells[code.key]
        different = f"SELECT DISTINCT {cell} AS document FROM softcount_cells WHERE {cell} IS NOT NULL"
        self._step(f"{name}_documents", exp.Var(this=different))
        found = word_rows(self.dialect, f"{name}_documents", column.reading.lowercase)
        self._step(f"{name}_found", exp.Var(this=found))
        self._step(name, exp.Var(this=word_sums(f"{name}_found", f"{name}_words", groups, code.each)))

    def _values(self, name: str, keyed: Sequence[tuple[Any, np.ndarray]], width: int) -> None:
        """A table of numbers that are known, declared as such."""
        exp = self.exp
        rows = [
            exp.Tuple(expressions=[key, *map(number, row)])
            if self.dialect == "bigquery"
            else exp.Var(this=f"({', '.join([key.sql(self.dialect), *map(digits, row.tolist())])})")
            for key, row in keyed
        ]
        names = ["k", *(f"g{group}" for group in range(width))]
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
        top = greatest(scores, self.dialect)
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
        return self._shared(last, names, greatest(self._kept(names), self.dialect))

    def _odds(self, group: int) -> Any:
        exp = self.exp
        own, others = exp.column(self.scores[group]), [x for g, x in enumerate(self.scores) if g != group]
        if len(others) == 1:
            return exp.Sub(this=own, expression=exp.column(others[0]))
        top = greatest(self._kept(others), self.dialect)
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
        headings: list[str] = []
        for name in ["predicted", *(f"p({name})" for name in self.plan.headings)]:
            plain = re.sub(r"\W+", "_", name).strip("_") if self.dialect == "bigquery" else name
            headings.append(apart(plain, {*self.keep, *headings}))
        found = [self._named(share, name, True) for share, name in zip([told, *shares], headings, strict=False)]
        return self._select(last, [*kept, *found])


def most_kept(dialect: str) -> int:
    """Numbers that may be kept in between for rows with holes in a block."""
    return MOST_KEPT if dialect in MATERIALIZED else MOST_INLINED


def _refuse_too_large(tables: Sequence[JoinedTable]) -> None:
    numbers = sum(one.table.size for table in tables for one in table.look_ups)
    if len(tables) > MOST_TABLES or numbers > MOST_NUMBERS:
        bayes = remedies.either("NaiveBayes().fit(X, y)", "softcount fit --model naive-bayes")
        words = any(isinstance(table.code, WordsCode) for table in tables)
        remedy = "Fit again with fewer words: Text(max_words=10_000)" if words else ""
        raise DataError(
            f"a query of this model would look up in {len(tables):,} tables of {numbers:,} numbers; databases plan "
            f"{MOST_TABLES:,} tables or {MOST_NUMBERS:,} numbers at most: it cannot be exported as SQL. "
            f"{remedy or f'Export it as ONNX, or fit naive Bayes: {bayes}'}"
        )


# A scoring query run on rows drawn from the model, in a database in memory.

ROW = "(row)"


def checked_query(plan: ScoringPlan, rows: DrawnRows, dialect: str) -> ExportCheck:
    """In DuckDB where it is installed, else in SQLite; a query for SQLite there."""
    if not _has_duckdb() and any(column.reading for column in plan.columns):
        raise DataError("queries of text are checked by DuckDB, which is not installed. Install it: pip install duckdb")
    run, own = (_in_sqlite, "sqlite") if dialect == "sqlite" or not _has_duckdb() else (_in_duckdb, "duckdb")
    numbered = apart(ROW, {column.name for column in plan.columns})
    names = [numbered, *(column.name for column in plan.columns)]
    cells: list[list[Any]] = [list(range(len(rows.places)))]
    for column in plan.columns:
        written = rows.cells[column.key]
        cells.append(written if column.form is None else column.numbers(written))
    found = sorted(run(names, cells, scoring_query(plan, own, keep=[numbered])))
    places = {value: place for place, value in enumerate(plain_names(plan.names)["values"])}
    told = np.array([-1 if row[1] is None else places[row[1]] for row in found])
    proba = None
    if plan.finish == "probabilities":
        proba = np.array([[np.nan if p is None else p for p in row[2:]] for row in found], dtype=np.float64)
    check = compared(plan, rows, {"sqlite": "SQLite", "duckdb": "DuckDB"}[own], told, proba)
    blocks = [block for term in plan.terms for block in blocks_in(term) if block.kept > most_kept(dialect)]
    return replace(check, notes=(*map(_blind, blocks), *columns_to_cast(plan)))


def _blind(block: BlockDensity) -> str:
    """What is said of a block that only whole rows are scored by."""
    keys = list(block.keys)
    return f"rows with a hole in the block of {len(keys)} columns ({and_others(keys)}) come out without a class"


def _has_duckdb() -> bool:
    try:
        import duckdb  # noqa: F401
    except ImportError:
        return False
    return True


def _in_sqlite(names: Sequence[str], cells: Sequence[list[Any]], query: str) -> list[Any]:
    import sqlite3
    from contextlib import closing

    columns = ", ".join(_quoted(name) for name in names)
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(f"CREATE TABLE {_quoted('rows')} ({columns})")
        marks = ", ".join("?" * len(names))
        base.executemany(f"INSERT INTO {_quoted('rows')} VALUES ({marks})", zip(*cells, strict=True))
        return base.execute(query).fetchall()


def _in_duckdb(names: Sequence[str], cells: Sequence[list[Any]], query: str) -> list[Any]:
    import duckdb
    import pyarrow as pa

    with duckdb.connect(":memory:") as base:
        base.register("rows", pa.table([pa.array(_alike(column)) for column in cells], names=list(names)))
        found: list[Any] = base.execute(query).fetchall()
        return found


def _alike(cells: list[Any]) -> list[Any]:
    """Cells of one type: as text where they are of several."""
    kinds = {
        bool if isinstance(x, bool) else float if isinstance(x, (int, float)) else str for x in cells if x is not None
    }
    return cells if len(kinds) < 2 else [None if x is None else str(x) for x in cells]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
