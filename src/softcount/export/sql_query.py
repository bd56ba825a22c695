"""A model as a SQL query, checked before it is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import formulas as fm
from softcount.core import remedies
from softcount.errors import DataError
from softcount.export import sql_formulas as sql
from softcount.export.scoring_plan import (
    SINCE_1970,
    DrawnRows,
    ExportCheck,
    Exported,
    InputColumn,
    ScoringPlan,
    compare,
    type_names,
)
from softcount.families.setting import IMPOSSIBLE
from softcount.fitted.calibration import Curve
from softcount.sources.frames import number_words
from softcount.sources.wording import and_others
from softcount.table.schema import BLANK, Key, Kind, apart

MOST_TABLES, MOST_NUMBERS = 1_000, 500_000
"""Limits of a query: AODE takes a table for every pair of columns."""
MOST_JOINS = 30
"""Tables joined in one step: SQLite takes 64."""
NO_NUMBERS = ("*[^0-9.eE+-]*", "*[0-9.][+-]*", "*.*.*", "*[eE]*[eE.]*", "*[eE]", "[eE]*", "[+-][eE+-]*")
"""Shapes of text of which SQLite would read a part as a number."""
SCORE = "s"
"""The name of the sum over all columns; the number of a group follows."""
BOUNDS = {Kind.COUNT: ">=", Kind.AMOUNT: ">=", Kind.POSITIVE: ">"}
USUAL_TABLE = "rows"
HEADING = "Scores rows as the model does: the class it predicts and the probability of each. Made by Softcount."


def as_sql(model: Exported, dialect: str, table: str, keep: Sequence[str]) -> tuple[str, ExportCheck]:
    """Return the scoring query of a model, and the result of its check."""
    plan = model._export_plan()
    written = scoring_query(plan, dialect, table, keep)
    return written, check_query(plan, model._export_rows(), dialect)


def scoring_query(plan: ScoringPlan, dialect: str, table: str = USUAL_TABLE, keep: Sequence[str] = ()) -> str:
    """Return the query; `keep` are columns of the table that come out first."""
    if dialect not in sql.DIALECTS:
        raise DataError(f"there is no dialect {dialect!r}. Use one of: {', '.join(sql.DIALECTS)}.")
    writer = QueryWriter(plan, dialect, tuple(keep))
    numbers = sum(one.table.size for joined in writer.tables for one in joined.look_ups)
    if len(writer.tables) > MOST_TABLES or numbers > MOST_NUMBERS:
        remedy = "Fit again with fewer words: Text(max_words=10_000)"
        if not any(isinstance(joined.code, fm.WordsCode) for joined in writer.tables):
            bayes = remedies.either("NaiveBayes().fit(X, y)", "softcount fit --model naive-bayes")
            remedy = f"Export it as ONNX, or fit naive Bayes: {bayes}"
        raise DataError(
            f"a query of this model would look up in {len(writer.tables):,} tables of {numbers:,} numbers; databases "
            f"plan {MOST_TABLES:,} tables or {MOST_NUMBERS:,} numbers at most: it cannot be exported as SQL. {remedy}"
        )
    last = writer.write(table)
    marked = " MATERIALIZED" if sql.DIALECTS[dialect].materialized else ""
    steps = [f"{name} AS{marked} (\n  {step}\n)" for name, step in writer.steps.items()]
    heading = "".join(f"-- {line}\n" for line in (HEADING, *note_casts(plan)))
    return f"{heading}WITH " + ",\n".join(steps) + f"\n{last};\n"


def note_casts(plan: ScoringPlan) -> list[str]:
    """Return a line for each column that the query reads as a number and the model as a date, a duration or a unit.

    Names and cells are written by `repr`: no line break in them ends the comment that the line becomes.
    """
    found = []
    for column in plan.columns:
        if column.form is not None:
            cell = column.form.write(1706659200.0 if column.expected == SINCE_1970 else 4500.0)
            example = f"{cell!r} is {column.numbers([cell])[0]:.12g}"
            found.append(
                f"column {column.key!r} is read as {column.expected} ({example}): cast it in a view of the table"
            )
    return found


# -- tables that are joined, and the steps in which sums are added up


class JoinedTable(Struct, frozen=True):
    """All numbers that are looked up by one code."""

    name: str
    look_ups: tuple[fm.LookUp, ...]

    @property
    def code(self) -> fm.Code:
        return self.look_ups[0].code

    @property
    def numbers(self) -> np.ndarray:
        """(codes x columns of all look-ups)."""
        return np.hstack([one.table for one in self.look_ups])


class SumStep(Struct, frozen=True):
    """Terms by the sum that they belong to, the places of their tables, and sums that earlier steps began."""

    sums: Mapping[str, Sequence[fm.Formula]]
    tables: Sequence[int]
    begun: frozenset[str]


def _split_sums(sums: Mapping[str, Sequence[fm.Formula]], places: Mapping[int, int]) -> Iterator[SumStep]:
    """Yield terms of sums in steps, none of which uses more tables than it can join."""
    items = [
        (sorted({places[id(one)] for one in sql.find_look_ups(term) if id(one) in places}), own, term)
        for own, all_ in sums.items()
        for term in all_
    ]
    begun: set[str] = set()
    part: dict[str, list[fm.Formula]] = {}
    tables: set[int] = set()
    for needed, own, term in sorted(items, key=lambda item: item[0][-1:]):
        if part and len(tables | set(needed)) > MOST_JOINS:
            yield SumStep(part, sorted(tables), frozenset(begun & set(part)))
            begun |= set(part)
            part, tables = {}, set()
        part.setdefault(own, []).append(term)
        tables |= set(needed)
    yield SumStep(part, sorted(tables), frozenset(begun & set(part)))


def _columns_later(parts: Sequence[SumStep], formulas: sql.SqlFormulas) -> list[list[str]]:
    """Return for every step the columns that later ones need."""
    needed: set[str] = set()
    found: list[list[str]] = []
    for part in reversed(parts):
        found.append(sorted(needed))
        needed -= set(part.sums) - part.begun
        needed |= part.begun
        for terms in part.sums.values():
            for term in terms:
                needed |= formulas.find_columns(term)
    return found[::-1]


class QueryWriter:
    """Adds one step after another to a query."""

    def __init__(self, plan: ScoringPlan, dialect: str, keep: tuple[str, ...] = ()) -> None:
        self.plan, self.dialect, self.keep = plan, dialect, keep
        self.steps: dict[str, str] = {}
        self.done: list[str] = []
        blocks = [block for term in plan.terms for block in fm.blocks_in(term)]
        self.blocks = {
            f"b{place}_": (block.keys, block.of_whole_rows(), block.of_others(limit_kept(dialect)))
            for place, block in enumerate(blocks)
        }
        named = {id(block): name for block, name in zip(blocks, self.blocks, strict=True)}
        self.terms = [fm.with_blocks_computed(term, named) for term in plan.terms]
        every = [*self.terms, *(formula for _, *both in self.blocks.values() for formula in both)]
        once = [one for stage in fm.stages(every) for one in stage]
        found = [one for term in (*(one.of for one in once), *every) for one in sql.find_look_ups(term)]
        by_code: dict[Hashable, dict[int, fm.LookUp]] = {}  # one table for each code, in the order of first use
        for one in found:
            if not sql.is_inlined(one, dialect):
                by_code.setdefault(fm.code_key(one.code), {})[id(one)] = one
        own = enumerate(by_code.values())
        self.tables = [JoinedTable(f"softcount_table{place}", tuple(each.values())) for place, each in own]
        self.codes: dict[Any, fm.Code] = {fm.code_key(code): code for one in found for code in sql.split_code(one.code)}
        if any(sql.is_inlined(one, dialect) for one in found):
            self.terms.append(fm.AllKnown(tuple(self.codes.values())))
        tables: dict[int, tuple[str, int]] = {}
        for table in self.tables:
            first = 0
            for one in table.look_ups:
                tables[id(one)] = (table.name, first)
                first += one.table.shape[1]
        self.formulas = sql.SqlFormulas(
            dialect,
            {column.key: f"c{place}" for place, column in enumerate(plan.columns)},
            {key: f"i{place}" for place, key in enumerate(self.codes)},
            tables,
            {id(one): f"f{place}_" for place, one in enumerate(once)},
        )
        self.carried = [f"k{place}" for place in range(len(keep))]
        self.scores = self._groups(SCORE)

    def write(self, table: str) -> str:
        parts = table.split(".")
        if not all(parts) or len(parts) > 3:
            raise DataError(f"{table!r} is not a name of a table. Give a name, or schema.name.")
        source = ".".join(sql.identifier(part, self.dialect) for part in parts)
        kept = [f"{self._source(name)} AS {alias}" for name, alias in zip(self.keep, self.carried, strict=True)]
        cells = [f"{self._cell(column)} AS {self.formulas.cells[column.key]}" for column in self.plan.columns]
        rows = self._step("softcount_cells", f"{source} AS t", [*kept, *cells] or ["1 AS nothing"])
        rows = self._bound(rows)
        for name, (keys, whole, others) in self.blocks.items():
            rows = self._block(rows, name, keys, (whole, others))
            self.done.append(name)
        if self.codes:
            codes = [
                f"{self.formulas.make_code(code, self.plan)} AS {self.formulas.codes[key]}"
                for key, code in self.codes.items()
            ]
            rows = self._step("softcount_codes", rows, [*self._inputs(), *codes])
        return self._finish(self._sum(rows, "softcount_scores", {SCORE: self.terms}))

    # -- steps

    def _step(self, name: str, source: str, columns: Sequence[str]) -> str:
        """Add a selection, and return the name that the next one reads it by."""
        self.steps[name] = f"SELECT {', '.join(columns)} FROM {source}"
        return name

    def _groups(self, name: str) -> list[str]:
        return [sql.Atom(f"{name}{group}") for group in range(len(self.plan.names))]

    def _inputs(self) -> list[str]:
        made = [each for name in self.done for each in self._groups(name)]
        return [*self.carried, *self.formulas.cells.values(), *made]

    def _bound(self, last: str) -> str:
        """Make numbers outside of the range of their column null, as the model does."""
        if not any(column.kind in BOUNDS for column in self.plan.columns if column.number):
            return last
        inside = []
        for column in self.plan.columns:
            cell = self.formulas.cells[column.key]
            if not column.number or column.kind not in BOUNDS:
                inside.append(cell)
                continue
            right = f"{cell} {BOUNDS[column.kind]} {sql.number(0.0)}"
            if column.kind is Kind.COUNT:
                right += f" AND {cell} = FLOOR({cell})"
            inside.append(f"{sql.case([(right, cell)])} AS {cell}")
        return self._step("softcount_inside", last, [*self.carried, *inside])

    # -- cells

    def _source(self, name: str) -> str:
        return f"t.{sql.identifier(name, self.dialect)}"

    def _string(self, text: str) -> str:
        return sql.string(text, self.dialect)

    def _double(self, of: str) -> str:
        return sql.call("CAST", f"{of} AS {sql.DIALECTS[self.dialect].double}")

    def _cell(self, column: InputColumn) -> str:
        source = self._source(column.name)
        text = sql.call("CAST", f"{source} AS {sql.DIALECTS[self.dialect].text}")
        # Not IN: DuckDB makes a join of each, and 300 columns took 25 s to plan.
        missing = [(self._string(word), "NULL") for word in column.missing]
        trimmed = sql.call("TRIM", text)
        if column.levels is None:
            if self.dialect != "sqlite":
                return self._double(sql.case(missing, self._typed(column, source), trimmed))
            # SQLite reads text that is no number as 0; as infinity it leaves the row without a class. With a form,
            # any text is wrong.
            wrong = f"TYPEOF({source}) = 'text'"
            if column.form is None:
                shapes = [f"{text} GLOB '{shape}'" for shape in NO_NUMBERS]
                wrong += f" AND ({' OR '.join(shapes)} OR NOT {text} GLOB '*[0-9]*')"
            odd = sql.case([(wrong, "9e999")], source)
            is_number = f"TYPEOF({source}) IN ('real', 'integer')"
            marks = [(sql.number(mark), "NULL") for mark in number_words(column.missing)]
            unmarked = self._double(sql.case(marks, source, source) if marks else source)
            return sql.case([(is_number, unmarked)], self._double(sql.case(missing, odd, trimmed)))
        if not column.valued:
            found = sql.case(missing, text, trimmed) if missing else text
            return sql.call("COALESCE", found, self._string(BLANK)) if BLANK in column.levels else found
        levels = [float(level) for level in column.levels]  # type: ignore[arg-type]
        values = ((f"{text} = {self._string(spelt)}", sql.number(levels[at - 1])) for spelt, at in column.spellings())
        return self._double(sql.case(missing, sql.case(values), trimmed))

    def _typed(self, column: InputColumn, source: str) -> str:
        """Write a cell; in a column with a form it must have a numeric type: the text "1.234" may stand for 1234 there.

        Databases refuse to multiply text and dates by a number, except Snowflake, which casts text, and Spark, which
        casts anything, to null if it has to.
        """
        if column.form is None:
            return source
        if self.dialect == "snowflake":
            odd = self._double(f"CONCAT({source}, ' is text')")
            return sql.case([(f"IS_VARCHAR(TO_VARIANT({source}))", odd)], self._double(source))
        if self.dialect == "spark":
            error = sql.call("RAISE_ERROR", self._string(f"column {column.key!r} must be {column.expected}"))
            return sql.case([(f"TYPEOF({source}) IN ('string', 'date', 'timestamp')", error)], self._double(source))
        return f"{source} * {sql.number(1.0)}"

    # -- sums

    def _block(self, last: str, name: str, keys: Sequence[Key], both: tuple[fm.Formula, fm.Formula]) -> str:
        """Add the density of a block, for whole rows and for others, which are few and take long."""
        columns = self._inputs()[len(self.carried) :]
        cells = " OR ".join(f"{self.formulas.cells[key]} IS NULL" for key in keys)
        selections = []
        for of, way, test in zip(both, ("whole", "holes"), (f"NOT ({cells})", cells), strict=True):
            first = self._step(f"softcount_{name}{way}", f"{last} WHERE {test}", [*self.carried, *columns])
            end = self._sum(first, f"softcount_{name}{way}", {name: [of]}, columns)
            selections.append(f"SELECT {', '.join([*self.carried, *columns, *self._groups(name)])} FROM {end}")
        self.steps[f"softcount_{name}rows"] = " UNION ALL ".join(selections)
        return f"softcount_{name}rows"

    def _sum(self, last: str, name: str, terms: Mapping[str, Sequence[fm.Formula]], always: Sequence[str] = ()) -> str:
        """Compute formulas that are used several times, stage by stage, and then sums; all steps keep `always`."""
        once = fm.stages([term for each in terms.values() for term in each])
        sums = [{self.formulas.sums[id(one)]: list(fm.summands(one.of)) for one in stage} for stage in once]
        tables = {id(one): place for place, table in enumerate(self.tables) for one in table.look_ups}
        parts = [part for stage in [*sums, terms] for part in _split_sums(stage, tables)]
        for place, (part, later) in enumerate(zip(parts, _columns_later(parts, self.formulas), strict=True)):
            last = self._add_to_sums(last, f"{name}{place}", part, later, always)
        return last

    def _add_to_sums(self, last: str, name: str, part: SumStep, later: Collection[str], always: Sequence[str]) -> str:
        by_group = {*self.formulas.sums.values(), *self.blocks, SCORE}
        kept = [*always, *(each for each in later if each not in by_group and each not in always)]
        for each in later:
            kept += self._groups(each) if each in by_group and each not in part.sums else []
        found = []
        for own, terms in part.sums.items():
            for group, column in enumerate(self._groups(own)):
                new = [sql.bracket(self.formulas.write(term, group)) for term in terms]
                found.append(f"{sql.add([column, *new] if own in part.begun else new)} AS {column}")
        for table in (self.tables[place] for place in part.tables):
            if table.name not in self.steps:
                self._table(table)
            by_cell = isinstance(table.code, (fm.LevelCode, fm.WordsCode))
            key = self.formulas.cells[table.code.key] if by_cell else self.formulas.code(table.code)  # type: ignore[attr-defined]
            last += f" LEFT JOIN {table.name} ON {table.name}.k = {key}"
        return self._step(name, last, [*self.carried, *kept, *found])

    def _table(self, joined: JoinedTable) -> None:
        """Add a table to look up in; of words the sums over those of each document."""
        name, code, table = joined.name, joined.code, joined.numbers
        if isinstance(code, fm.LevelCode):
            keyed = [(self._string(text), table[place]) for text, place in self.plan.column(code.key).spellings()]
            self._values(name, keyed or [(self._string(""), table[0])])
            return
        if not isinstance(code, fm.WordsCode):
            self._values(name, [(str(place), row) for place, row in enumerate(table)])
            return
        column = self.plan.column(code.key)
        if not sql.DIALECTS[self.dialect].words:
            raise sql.refuse_words(code.key, {"sqlite": "SQLite", "snowflake": "Snowflake"}[self.dialect])
        assert column.reading is not None and column.levels is not None
        if column.reading.analyzer != "word" or column.reading.pattern or column.reading.ngrams != (1, 1):
            raise DataError(
                f"column {code.key!r} is text of which runs of words, characters or a pattern of its own are counted; "
                "only plain words can be exported. Fit again with Text() alone, or without it: "
                + remedies.kind(code.key, "ignore")
            )
        numbers = table if column.levels else np.zeros((1, table.shape[1]))
        words = zip(column.levels or [""], numbers, strict=True)
        self._values(f"{name}_words", [(self._string(str(word)), row) for word, row in words])
        cell = self.formulas.cells[code.key]
        self.steps[f"{name}_documents"] = (
            f"SELECT DISTINCT {cell} AS document FROM softcount_cells WHERE {cell} IS NOT NULL"
        )
        self.steps[f"{name}_found"] = sql.select_words(self.dialect, f"{name}_documents", column.reading.lowercase)
        groups = [f"g{group}" for group in range(numbers.shape[1])]
        self.steps[name] = sql.sum_words(f"{name}_found", f"{name}_words", groups, code.each)

    def _values(self, name: str, keyed: Sequence[tuple[str, np.ndarray]]) -> None:
        columns = ["k", *(f"g{group}" for group in range(len(keyed[0][1])))]
        rows = [[key, *map(sql.number, row.tolist())] for key, row in keyed]
        if self.dialect == "bigquery":
            named = (", ".join(f"{x} AS {own}" for x, own in zip(row, columns, strict=True)) for row in rows)
            source = f"UNNEST([{', '.join(f'STRUCT({row})' for row in named)}]) AS v"
        else:
            source = "VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)
            source = source if self.dialect == "spark" else f"({source})"
            # SQLite names columns of values itself.
            source += "" if self.dialect == "sqlite" else f" AS v({', '.join(columns)})"
        given = [f"column{at + 1}" for at in range(len(columns))] if self.dialect == "sqlite" else columns
        casts = [f"{self._double(each)} AS {own}" for each, own in zip(given[1:], columns[1:], strict=True)]
        self._step(name, source, [f"{given[0]} AS k", *casts])

    # -- from scores to probabilities

    def _finish(self, last: str) -> str:
        top = self.formulas.greatest(self.scores)
        best = sql.case([(f"{top} < {sql.number(IMPOSSIBLE)}", "NULL")], top)
        last = self._step("softcount_best", last, [*self.carried, *self.scores, f"{best} AS top"])
        if self.plan.finish == "highest":
            return self._answer(last, self.scores, "top", ())
        curves = self.plan.calibration.curves if self.plan.calibration else ()
        names = self._groups("e")
        if curves:
            groups = [1] if len(curves) == 1 else list(range(len(curves)))
            odds = [f"{self._odds(group)} AS o{group}" for group in groups]
            last = self._step("softcount_odds", last, [*self.carried, "top", *odds])
            shares = [_curve(f"o{group}", curve) for group, curve in zip(groups, curves, strict=True)]
            if len(curves) == 1:
                shares = [f"{sql.number(1.0)} - {sql.bracket(shares[0])}", shares[0]]
            best = self.formulas.greatest(names)
        else:
            temperature = self.plan.calibration.temperature if self.plan.calibration else None
            offs = [f"{name} - top" for name in self.scores]
            if temperature is not None:
                offs = [f"({off}) / {sql.number(temperature)}" for off in offs]
            shares, best = list(map(sql.exponential, offs)), sql.number(1.0)
        parts = [f"{share} AS {name}" for share, name in zip(shares, names, strict=True)]
        last = self._step("softcount_parts", last, [*self.carried, *parts])
        last = self._step("softcount_whole", last, [*self.carried, *names, f"{sql.add(names)} AS whole"])
        return self._answer(last, names, best, [f"{name} / whole" for name in names])

    def _odds(self, group: int) -> str:
        own, others = self.scores[group], [x for g, x in enumerate(self.scores) if g != group]
        if len(others) == 1:
            return f"{own} - {others[0]}"
        top = self.formulas.greatest(others)
        parts = [sql.exponential(f"{name} - {top}") for name in others]
        return f"{own} - ({top} + {sql.call('LN', sql.add(parts))})"

    def _answer(self, last: str, names: Sequence[str], best: str, shares: Sequence[str]) -> str:
        values = type_names(self.plan.names)["values"]
        labels = [self._string(x) if isinstance(x, str) else str(x).upper() for x in values]  # numbers, TRUE, FALSE
        predicted = sql.case((f"{name} = {best}", label) for name, label in zip(names, labels, strict=True))
        kept = [
            f"{own} AS {sql.identifier(name, self.dialect)}" for own, name in zip(self.carried, self.keep, strict=True)
        ]
        headings: list[str] = []
        for name in ["predicted", *(f"p({name})" for name in self.plan.headings)]:
            plain = re.sub(r"\W+", "_", name).strip("_") if self.dialect == "bigquery" else name
            headings.append(apart(plain, {*self.keep, *headings}))
        answers = zip([predicted, *shares], headings, strict=False)
        found = [f"{answer} AS {sql.identifier(name, self.dialect)}" for answer, name in answers]
        return f"SELECT {', '.join([*kept, *found])} FROM {last}"


def _curve(odds: str, curve: Curve) -> str:
    points, shares = curve.odds.tolist(), curve.share.tolist()
    values = [sql.number(shares[0])]
    for (a, b), (p, q) in zip(pairwise(points), pairwise(shares), strict=True):
        slope = (q - p) / (b - a) if b > a else 0.0
        values.append(f"{sql.number(slope)} * ({odds} - {sql.number(a)}) + {sql.number(p)}")
    return sql.case([("top IS NULL", "NULL")], sql.choose_interval(odds, points, [*values, sql.number(shares[-1])]))


def limit_kept(dialect: str) -> int:
    """Return how many numbers may be kept in between for rows with missing values in a block."""
    return fm.MOST_KEPT if sql.DIALECTS[dialect].materialized else fm.MOST_INLINED


# -- the check: the query runs on rows drawn from the model, in a database in memory


def check_query(plan: ScoringPlan, rows: DrawnRows, dialect: str) -> ExportCheck:
    """Run the query in DuckDB if it is installed, else in SQLite; a query for SQLite there."""
    has_duckdb = find_spec("duckdb") is not None
    if not has_duckdb and any(column.reading for column in plan.columns):
        raise DataError("queries of text are checked by DuckDB, which is not installed. Install it: pip install duckdb")
    run, own = (_run_in_duckdb, "duckdb") if has_duckdb and dialect != "sqlite" else (_run_in_sqlite, "sqlite")
    numbered = apart("(row)", {column.name for column in plan.columns})
    cells: dict[str, list[Any]] = {numbered: list(range(len(rows.places)))}
    for column in plan.columns:
        written = rows.cells[column.key]
        cells[column.name] = written if column.form is None else column.numbers(written)
    found = sorted(run(cells, scoring_query(plan, own, keep=[numbered])))
    places = {value: place for place, value in enumerate(type_names(plan.names)["values"])}
    predicted = np.array([-1 if row[1] is None else places[row[1]] for row in found])
    proba = None
    if plan.finish == "probabilities":
        proba = np.array([[np.nan if p is None else p for p in row[2:]] for row in found], dtype=np.float64)
    check = compare(plan, rows, {"sqlite": "SQLite", "duckdb": "DuckDB"}[own], predicted, proba)
    notes = [
        f"rows with a missing cell in the block of {len(block.keys)} columns ({and_others(list(block.keys))}) get "
        f"no class"
        for term in plan.terms
        for block in fm.blocks_in(term)
        if block.kept > limit_kept(dialect)
    ]
    return replace(check, notes=(*notes, *note_casts(plan)))


def _run_in_sqlite(cells: Mapping[str, list[Any]], query: str) -> list[Any]:
    import sqlite3

    columns, marks = ", ".join(sql.identifier(name, "sqlite") for name in cells), ", ".join("?" * len(cells))
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(f'CREATE TABLE "rows" ({columns})')
        base.executemany(f'INSERT INTO "rows" VALUES ({marks})', zip(*cells.values(), strict=True))
        return base.execute(query).fetchall()


def _run_in_duckdb(cells: Mapping[str, list[Any]], query: str) -> list[Any]:
    import duckdb
    import pyarrow as pa

    columns = []
    for column in cells.values():  # a column of several types is text
        there = [x for x in column if x is not None]
        kinds = {bool if isinstance(x, bool) else float if isinstance(x, (int, float)) else str for x in there}
        columns.append(column if len(kinds) < 2 else [None if x is None else str(x) for x in column])
    with duckdb.connect(":memory:") as base:
        base.register("rows", pa.table(list(map(pa.array, columns)), names=list(cells)))
        found: list[Any] = base.execute(query).fetchall()
        return found
