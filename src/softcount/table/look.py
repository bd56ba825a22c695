"""Deciding what each column is, by what its first rows say."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any

import numpy as np

from softcount import remedies
from softcount.errors import DataError
from softcount.records import dataclass
from softcount.sources import wording
from softcount.sources.arrow_columns import CellType, cell_type, flat
from softcount.table.cell_forms import WHOLE, CellForm, NumberForm, decimals_of, named_type, rounded_form
from softcount.table.cell_values import MissingWords, numbers
from softcount.table.column_facts import (
    FEW_CELLS,
    FEW_TEXTS,
    Facts,
    Meant,
    alike_to_draw,
    cell_codes,
    counted_rows,
    facts_of,
)
from softcount.table.column_plan import NO_ANCHOR, ColumnPlan, anchor_of, log_anchor_of
from softcount.table.find_form import NO_HABITS, CellHabits, decimal_mark
from softcount.table.levels_or_numbers import MOST
from softcount.table.number_kinds import IDENTIFIER_ROWS, Verdict, decide_numbers
from softcount.table.schema import BLANK, NARROW_LEVELS, Field, Key, Kind
from softcount.table.text_columns import DEFAULT_READING, is_text
from softcount.text import Reading

NO_VALUES = "every value missing"
"""Why a column without a value is left out."""

IGNORE = "ignore"
FEW_REPEATS = 0.9
"""The share of different rows in a long table from which on its repeats are too few to matter."""
FIRST_CELLS = 200
"""Cells that tell what begins the decimals of a table's numbers."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller has said about the columns; `named` tables may hold identifiers, bare arrays not.

    The kinds of columns in `guessed` were not declared by anybody: earlier rows suggested them. `groups` are the
    classes of the rows looked at, below 0 where unknown; None where there are none to know. `weights` are those of the
    rows.
    """

    kinds: Mapping[Key, Kind | str | Reading] = field(default_factory=dict)
    levels: Mapping[Key, Sequence[object]] = field(default_factory=dict)
    guessed: Collection[Key] = ()
    words: MissingWords = field(default_factory=MissingWords)
    named: bool = True
    habits: CellHabits = NO_HABITS
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None

    def of_rows(self, rows: np.ndarray | None) -> Request:
        """The request for some of the rows: their classes."""
        if rows is None or self.groups is None:
            return self
        return replace(self, groups=self.groups[rows])


def look(columns: Mapping[Key, Any], request: Request) -> tuple[list[ColumnPlan], list[str]]:
    """How to read each column of the first rows, and what to tell the table's owner."""
    plans: list[ColumnPlan] = []
    notes: list[str] = []
    request = _with_decimal_mark(columns, request)
    found: dict[Key, Facts] = {}
    for key, column in columns.items():
        _refuse_nested(key, cell_type(column.type), request)
        if _text_plan(key, request) is None:
            found[key] = facts_of(key, column, request.words, _meant(key, request))
    rows = _counted_rows(columns, found, request)
    for key, column in columns.items():
        if key in found:
            plan, note = plan_of(found[key], request, column, rows)
            plans.append(replace(plan, field=_as_spelt(plan.field, column, request)))
            notes.extend(said for said in (found[key].note, note) if said)
        else:
            plans.extend(filter(None, [_text_plan(key, request)]))
    return keep_something(plans, notes)


def _meant(key: Key, request: Request) -> Meant:
    said = request.kinds.get(key)
    numeric = said is not None and said != IGNORE and _kind(key, said).numeric
    return Meant(key in request.levels or (said is not None and not numeric), numeric, request.habits)


def _counted_rows(columns: Mapping[Key, Any], found: Mapping[Key, Facts], request: Request) -> np.ndarray | None:
    """The rows that count as evidence of what undeclared columns are; None is every row, if repeats cannot matter."""
    rows = max((facts.rows for facts in found.values()), default=0)
    undeclared = [x for key, x in found.items() if key not in request.kinds and key not in request.levels]
    few = any(x.whole and 2 < x.different <= MOST for x in undeclared)
    if not few and not any(x.known > x.different >= IDENTIFIER_ROWS for x in undeclared):
        return None
    keys = [key for key in columns if cell_type(columns[key].type) is not CellType.NESTED]
    decimals = {key for key, x in found.items() if x.values is not None and not x.whole}
    keys.sort(key=lambda key: -rows if key in decimals else -found[key].different if key in found else 0)
    if rows > FEW_CELLS and request.weights is None:
        some = alike_to_draw(cell_codes(columns[keys[0]]), FEW_CELLS // 2)
        drawn = counted_rows(cell_codes(columns[key].take(some)) for key in keys) if len(some) else None
        if len(some) and (drawn is None or len(drawn) > FEW_REPEATS * len(some)):
            return None
    codes = (cell_codes(columns[key]) for key in keys)
    sides = [] if request.groups is None else [request.groups[:rows].astype(np.int64)]
    return counted_rows(chain(codes, sides), None if request.weights is None else request.weights[:rows])


def _as_spelt(spec: Field, column: Any, request: Request) -> Field:
    """The field with the type of its cells, and the decimals that numbers in cells of text are spelt with."""
    written, text = spec.written, cell_type(column.type) is CellType.TEXT
    if text and isinstance(written, NumberForm) and not written.spelt:
        written = replace(written, decimals=decimals_of(_first_cells(column)))
    return replace(spec, written=written, cells="" if request.words.trim else named_type(column.type))


def _with_decimal_mark(columns: Mapping[Key, Any], request: Request) -> Request:
    """The same, with the mark that begins decimals in this table, where some column can have no other."""
    if request.habits.decimal is not None:
        return request
    texts = {key: column for key, column in columns.items() if cell_type(column.type) is CellType.TEXT}
    cells = {key: _first_cells(column) for key, column in texts.items()}
    mark = decimal_mark({key: some for key, some in cells.items() if "," in "".join(some)})
    return replace(request, habits=request.habits._replace(decimal=mark))


def _first_cells(column: Any) -> list[str]:
    return [cell for cell in flat(column[:FIRST_CELLS]).to_pylist() if cell]


def _refuse_nested(key: Key, cells: CellType, request: Request) -> None:
    said = request.kinds.get(key)
    sequences = isinstance(said, Reading) and said.analyzer == "steps"
    if cells is CellType.NESTED and said != IGNORE and not sequences:
        raise DataError(
            f"{wording.column(key)} holds nested or binary values, which cannot be modelled. "
            f"Leave it out: {remedies.kind(key, IGNORE)}. Lists of steps are sequences: {remedies.kind(key, 'markov')}"
        )


def plan_of(
    facts: Facts, request: Request, column: Any = None, rows: np.ndarray | None = None
) -> tuple[ColumnPlan, str]:
    """How to read one column, and a note or nothing. `rows` are the places of rows that count; None is every row."""
    key = facts.key
    forced = request.kinds.get(key)
    if forced == IGNORE:
        return ColumnPlan(Field(key, Kind.IDENTIFIER, "left out by request", used=False, declared=True)), ""
    if forced is None and key in request.levels:
        forced = Kind.CATEGORICAL
    if forced is not None:
        return _declared(facts, _kind(key, forced), request, column), ""
    verdict = _tick_box(facts) or decide(facts.of_rows(rows), request.named, request.of_rows(rows).groups)
    why = verdict.why
    if facts.written is not None and verdict.kind.numeric:
        why = facts.written.said if facts.cells is CellType.TIME else f"{facts.written.said} ({why})"
    plan = _base(facts, facts.values, request).as_kind(verdict.kind, why, used=verdict.used)
    if verdict.kind is Kind.TEXT:
        plan = replace(plan, field=replace(plan.field, reading=DEFAULT_READING, wide=False))
    if facts.different == 1 and verdict.used:
        plan = replace(plan, extra=(BLANK,))
    return plan, verdict.note


def _text_plan(key: Key, request: Request) -> ColumnPlan | None:
    """The plan of a column that is declared text: nothing need be known of its cells."""
    said = request.kinds.get(key)
    if not is_text(said):
        return None
    reading = said if isinstance(said, Reading) else DEFAULT_READING
    return ColumnPlan(Field(key, Kind.TEXT, "declared", declared=True, reading=reading))


def _kind(key: Key, forced: Any) -> Kind:
    try:
        return Kind(forced)
    except ValueError:
        known = ", ".join(kind.value for kind in Kind)
        raise DataError(f"{wording.column(key)} is declared {forced!r}. Kinds are {known} and {IGNORE}.") from None


def _base(facts: Facts, values: np.ndarray | None, request: Request) -> ColumnPlan:
    """The column as known before its kind is: anchors, levels that exist, how text is read."""
    extra = tuple(request.levels.get(facts.key, ()))
    as_numbers = facts.values is not None and not any(isinstance(level, str) and level != BLANK for level in extra)
    wide = facts.different + len(extra) > NARROW_LEVELS
    has_numbers = values is not None and len(values) > 0
    return ColumnPlan(
        Field(facts.key, Kind.CATEGORICAL, "", wide=wide, missing=facts.missing, written=_written(facts)),
        as_numbers=as_numbers,
        number_like=facts.values is not None,
        constant=facts.only,
        plain=anchor_of(values) if has_numbers else None,  # type: ignore[arg-type]
        logged=log_anchor_of(values) if has_numbers and values.min() > 0 else NO_ANCHOR,  # type: ignore[union-attr, arg-type]
        extra=extra if as_numbers else tuple(map(str, extra)) if facts.cells is CellType.TEXT else extra,
    )


def _written(facts: Facts) -> CellForm | None:
    """How the numbers of a column are written; of plain ones with how many decimals, so that they come back so."""
    plain = facts.cells in (CellType.WHOLE, CellType.TEXT, CellType.FLOAT) and facts.values is not None
    if facts.written is not None or not plain or facts.values is None:
        return facts.written
    return WHOLE if facts.whole else rounded_form(facts.values)


def _declared(facts: Facts, kind: Kind, request: Request, column: Any) -> ColumnPlan:
    values = facts.values
    if kind.numeric and values is None and column is not None:
        found = numbers(column, request.words.among(facts.missing), facts.key, 0, padded=True)
        values = found[~np.isnan(found)]
    used = kind not in (Kind.IDENTIFIER, Kind.CONSTANT)
    plan = _base(facts, values, request).as_kind(kind, "declared", used=used)
    return replace(plan, field=replace(plan.field, declared=True), guessed=facts.key in request.guessed)


def decide(facts: Facts, named: bool, groups: np.ndarray | None = None) -> Verdict:
    """The kind of a column that its owner has said nothing about; `groups` are its rows' classes."""
    if facts.different <= 1:
        return _constant(facts)
    if facts.cells is CellType.TRUTH:
        return Verdict(Kind.CATEGORICAL, "true or false")
    if facts.values is None:
        return _decide_text(facts, named)
    if facts.coded:
        return Verdict(Kind.CATEGORICAL, f"kept as categories, {facts.different} distinct")
    if facts.cells is CellType.TIME:
        return Verdict(Kind.REAL, "dates or times")
    if facts.cells is CellType.FLOAT and not named:
        return Verdict(Kind.REAL, "numbers")
    return decide_numbers(facts, named, groups)


FEWEST_TICKS = 5
"""Cells with and without the value that a tick box must have among the rows looked at."""


def _tick_box(facts: Facts) -> Verdict | None:
    """The verdict on a column whose cells hold one value or nothing; None of others.

    Whether the value is there is what such a column says. Of numbers with decimals and of times it is no tick.
    """
    blank = facts.rows - facts.known
    if facts.different != 1 or min(facts.known, blank) < FEWEST_TICKS or facts.cells is CellType.TIME:
        return None
    if isinstance(facts.only, float):
        return None
    value = wording.cell(facts.only)
    note = f"{wording.column(facts.key)} is {value} or missing: read as a tick box, missing is a category"
    return Verdict(Kind.CATEGORICAL, f"{value} or missing", True, note)


def _constant(facts: Facts) -> Verdict:
    name = wording.column(facts.key)
    if not facts.known:
        return Verdict(Kind.CONSTANT, NO_VALUES, False, f"{name} has no values: left out")
    said = f"always {wording.cell(facts.only)}"
    return Verdict(Kind.CONSTANT, said, False, f"{name} is {said}: left out")


MANY_WORDS = 4
"""Words in a cell, on average, from which on it is no category."""
RUNNING_WORDS = 8
"""Words in a cell, on average, from which on they are counted without being asked for."""


def _decide_text(facts: Facts, named: bool) -> Verdict:
    name, count = wording.column(facts.key), facts.different
    if facts.words >= MANY_WORDS and count > FEW_TEXTS and 2 * count > facts.known:
        return _decide_running(facts)
    if named and count == facts.known >= IDENTIFIER_ROWS:
        kept = remedies.kind(facts.key, "categorical")
        note = f"{name} differs in every row: left out as an identifier ({kept} to keep it)"
        return Verdict(Kind.IDENTIFIER, "text, every value different", False, note)
    note = f"{name} has many levels: {count} in the rows looked at" if count > NARROW_LEVELS else ""
    return Verdict(Kind.CATEGORICAL, f"text, {count} distinct", True, note)


def _decide_running(facts: Facts) -> Verdict:
    name, why = wording.column(facts.key), f"text of about {_rounded(facts.words)} words"
    if facts.words >= RUNNING_WORDS:
        otherwise = remedies.kind(facts.key, "categorical", IGNORE)
        return Verdict(Kind.TEXT, why, True, f"{name} is running text: its words are counted (else {otherwise})")
    counted, kept = remedies.kind(facts.key, "text"), remedies.kind(facts.key, "categorical")
    note = f"{name} is short text: left out ({counted} to count its words, {kept} to keep its cells as categories)"
    return Verdict(Kind.TEXT, why, False, note)


def _rounded(words: float) -> str:
    """A mean number of words, which is not rounded up to where running text begins."""
    near = words < RUNNING_WORDS <= round(words)
    return f"{math.floor(10 * words) / 10:.1f}" if near else f"{words:.0f}"


def keep_something(plans: list[ColumnPlan], notes: list[str]) -> tuple[list[ColumnPlan], list[str]]:
    """The plans, with columns taken back in where nothing would be left of a table that has values."""
    if any(plan.field.used for plan in plans):
        return plans, notes
    able = [plan for plan in plans if not plan.field.declared]
    able = [plan for plan in able if plan.field.kind is not Kind.CONSTANT or plan.constant is not None]
    by_kind = ({plan.key for plan in able if plan.field.kind is kind} for kind in (Kind.TEXT, Kind.CONSTANT))
    chosen = next(filter(None, by_kind), {plan.key for plan in able[:1]})
    kept = [_taken_back(plan) if plan.key in chosen else plan for plan in plans]
    said = [f"{wording.column(key)} is kept: the table has nothing else" for key in sorted(chosen, key=str)]
    about = tuple(wording.column(key) + " " for key in chosen)
    return kept, [note for note in notes if not note.startswith(about)] + said


def _taken_back(plan: ColumnPlan) -> ColumnPlan:
    if plan.field.kind is Kind.TEXT:
        return replace(plan, field=replace(plan.field, used=True))
    kind = Kind.REAL if plan.number_like else Kind.CATEGORICAL
    return plan.as_kind(kind, plan.field.why)
