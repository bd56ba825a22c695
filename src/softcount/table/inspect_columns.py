"""Inspection of columns: the first pass over a table that decides kinds."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.arrow_columns import CellType, cell_type, flat
from softcount.sources.frames import LOOK_WHOLE
from softcount.table.cell_forms import WHOLE, CellForm, NumberForm, decimals_of, named_type, rounded_form
from softcount.table.cell_values import MissingWords, numbers, too_large
from softcount.table.column_facts import (
    FEW_CELLS,
    FEW_TEXTS,
    NO_HABITS,
    CellHabits,
    Facts,
    Meant,
    alike_to_draw,
    cell_codes,
    counted_rows,
    decimal_mark,
    facts_of,
    number_facts,
)
from softcount.table.kinds import FEWEST, IDENTIFIER_ROWS, LEAST_ROWS, MOST, Verdict, decide_numbers, is_few
from softcount.table.schema import (
    BLANK,
    LOOKED_AT,
    NARROW_LEVELS,
    NO_ANCHOR,
    Anchor,
    ColumnPlan,
    Field,
    Key,
    Kind,
    anchor_of,
    anchors_of,
    log_anchor_of,
)
from softcount.table.text_columns import DEFAULT_READING, is_text
from softcount.text import Reading

NO_VALUES = "every value missing"
"""Why a column without a value is left out."""

IGNORE = "ignore"
FEW_REPEATS = 0.9
"""The share of different rows in a long table from which on its repeats are too few to matter."""
FIRST_CELLS = 200
"""Cells that tell what begins the decimals of a table's numbers."""


class Request(Struct, frozen=True):
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
    if request.habits.decimal is None:
        texts = {key: column for key, column in columns.items() if cell_type(column.type) is CellType.TEXT}
        first = {key: _first_cells(column) for key, column in texts.items()}
        mark = decimal_mark({key: some for key, some in first.items() if "," in "".join(some)})
        request = replace(request, habits=request.habits._replace(decimal=mark))
    found: dict[Key, Facts] = {}
    for key, column in columns.items():
        _refuse_nested(key, cell_type(column.type), request)
        if _text_plan(key, request) is None:
            declared = request.kinds.get(key)
            numeric = declared is not None and declared != IGNORE and _kind(key, declared).numeric
            meant = Meant(key in request.levels or (declared is not None and not numeric), numeric, request.habits)
            found[key] = facts_of(key, column, request.words, meant)
    rows = _counted_rows(columns, found, request)
    for key, column in columns.items():
        if key in found:
            plan, note = plan_of(found[key], request, column, rows)
            written, cells = plan.field.written, "" if request.words.trim else named_type(column.type)
            if cell_type(column.type) is CellType.TEXT and isinstance(written, NumberForm) and not written.spelt:
                written = replace(written, decimals=decimals_of(_first_cells(column)))
            plans.append(replace(plan, field=replace(plan.field, written=written, cells=cells)))
            notes.extend(said for said in (found[key].note, note) if said)
        else:
            plans.extend(filter(None, [_text_plan(key, request)]))
    return keep_something(plans, notes)


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
        Field(facts.key, Kind.CATEGORICAL, "", wide=wide, missing=facts.missing, written=_written(facts)),  # type: ignore[arg-type]  # one of the three
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
        name = wording.column(facts.key)
        if not facts.known:
            return Verdict(Kind.CONSTANT, NO_VALUES, False, f"{name} has no values: left out")
        said = f"always {wording.cell(facts.only)}"
        return Verdict(Kind.CONSTANT, said, False, f"{name} is {said}: left out")
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


MANY_WORDS = 4
"""Words in a cell, on average, from which on it is no category."""
RUNNING_WORDS = 8
"""Words in a cell, on average, from which on they are counted without being asked for."""


def _decide_text(facts: Facts, named: bool) -> Verdict:
    name, count = wording.column(facts.key), facts.different
    if facts.words >= MANY_WORDS and count > FEW_TEXTS and 2 * count > facts.known:
        # A mean number of words is not rounded up to where running text begins.
        near = facts.words < RUNNING_WORDS <= round(facts.words)
        about = f"{math.floor(10 * facts.words) / 10:.1f}" if near else f"{facts.words:.0f}"
        why = f"text of about {about} words"
        if facts.words >= RUNNING_WORDS:
            otherwise = remedies.kind(facts.key, "categorical", IGNORE)
            return Verdict(Kind.TEXT, why, True, f"{name} is running text: its words are counted (else {otherwise})")
        counted, kept = remedies.kind(facts.key, "text"), remedies.kind(facts.key, "categorical")
        note = f"{name} is short text: left out ({counted} to count its words, {kept} to keep its cells as categories)"
        return Verdict(Kind.TEXT, why, False, note)
    if named and count == facts.known >= IDENTIFIER_ROWS:
        kept = remedies.kind(facts.key, "categorical")
        note = f"{name} differs in every row: left out as an identifier ({kept} to keep it)"
        return Verdict(Kind.IDENTIFIER, "text, every value different", False, note)
    note = f"{name} has many levels: {count} in the rows looked at" if count > NARROW_LEVELS else ""
    return Verdict(Kind.CATEGORICAL, f"text, {count} distinct", True, note)


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


# Two-dimensional arrays of numbers: looked at briefly, and handed over without copying where nothing need change.

NARROW = 1_024
"""Widest range of values counted in bins for all columns at once."""

ANCHORED_BY = 256
"""Rows, spread over the first ones, whose medians are anchors: of all of them that took a third of a small fit."""

LARGEST = 2**62
"""Beyond this, differences might not fit."""


def look_dense(array: np.ndarray, request: Request) -> tuple[list[ColumnPlan], list[str]]:
    """How to read each column of an array: floats are real, whole numbers are decided by looking."""
    looked = _look_floats(array, request) if array.dtype.kind == "f" else _look_wholes(array, request)
    return keep_something([plan for plan, _ in looked], [note for _, note in looked if note])


def _look_wholes(array: np.ndarray, request: Request) -> list[tuple[ColumnPlan, str]]:
    """Few levels per column, the usual case, are found for all columns at once; other columns one by one."""
    plain = array.dtype.kind in "iu" and not request.words.numbers
    head, kinds = array[:LOOK_WHOLE], request.kinds
    few = _few_levels(head) if plain else {}
    counted, rows = None, len(head)
    if rows < LEAST_ROWS or any(len(few.get(place, ())) not in range(1, FEWEST) for place in range(array.shape[1])):
        counted = _counted_dense_rows(head, request)
    if counted is not None:
        rows = len(counted)
        few = {place: x for place, x in few.items() if is_few(len(x), rows)}
    for place in {*kinds, *request.levels}:
        if kinds.get(place) is not Kind.CATEGORICAL or place in request.levels:
            few.pop(place, None)
    few = {place: x for place, x in few.items() if place in kinds or len(x) < FEWEST or rows < LEAST_ROWS}
    return [
        (_coded(place, few[place], place in kinds), "") if place in few else _look_whole(array, place, request, counted)
        for place in range(array.shape[1])
    ]


def _coded(place: int, levels: list[int], declared: bool) -> ColumnPlan:
    why = "declared" if declared else f"whole numbers, {len(levels)} distinct"
    field = Field(place, Kind.CATEGORICAL, why, declared=declared)
    return ColumnPlan(field, as_numbers=True, number_like=True, seen=tuple(levels))


def _counted_dense_rows(head: np.ndarray, request: Request) -> np.ndarray | None:
    """The rows that count as evidence of what the columns are; None is every row, once."""
    if not head.size:
        return None
    sides = [] if request.groups is None else [request.groups[: len(head)].astype(np.int64)]
    columns = list(np.ascontiguousarray(head.T, dtype=np.int64))
    return counted_rows([*columns, *sides], None if request.weights is None else request.weights[: len(head)])


def _few_levels(head: np.ndarray) -> dict[Any, list[int]]:
    """The levels of those columns that have few enough to be categories: what `is_few` says, for all at once."""
    low, high = head.min(axis=0), head.max(axis=0)
    narrow = np.flatnonzero((high <= LARGEST) & (low >= -LARGEST))
    narrow = narrow[high[narrow].astype(np.int64) - low[narrow].astype(np.int64) < NARROW]
    if not len(narrow):
        return {}
    block = head if len(narrow) == head.shape[1] else head[:, narrow]
    steps = block.astype(np.int64) - (low[narrow].astype(np.int64) - NARROW * np.arange(len(narrow)))
    seen = np.bincount(steps.ravel(), minlength=NARROW * len(narrow)).reshape(-1, NARROW) > 0
    counts = seen.sum(axis=1).tolist()
    return {
        int(place): (np.flatnonzero(seen[row]) + int(low[place])).tolist()
        for row, place in enumerate(narrow)
        if counts[row] > 1 and is_few(counts[row], len(head))
    }


def _look_whole(array: np.ndarray, place: int, request: Request, counted: np.ndarray | None) -> tuple[ColumnPlan, str]:
    cells = CellType.TRUTH if array.dtype.kind == "b" else CellType.WHOLE
    column = array[:LOOK_WHOLE, place].astype(np.float64)
    for mark in request.words.numbers:
        column[column == mark] = np.nan
    facts = number_facts(place, column, cells)
    if facts.different <= 1 and _varies(array[:, place]):  # it is constant only if no row varies
        facts = replace(facts, different=2, only=None)
    return plan_of(facts, request, rows=counted)


def _varies(column: np.ndarray, step: int = 65_536) -> bool:
    first = column[0]
    return any(bool(np.any(column[at : at + step] != first)) for at in range(0, len(column), step))


def _look_floats(array: np.ndarray, request: Request) -> list[tuple[ColumnPlan, str]]:
    head = np.asarray(array[:LOOKED_AT], dtype=np.float64)
    if math.isfinite(float(head.sum())):
        at, scale = anchors_of(head[:: max(1, len(head) // ANCHORED_BY)])
        plain = [Anchor(*pair) for pair in zip(at.tolist(), scale.tolist(), strict=True)]
    else:
        plain = [anchor_of(head[:, place]) for place in range(head.shape[1])]
    still = ~(np.fmin.reduce(head, axis=0) < np.fmax.reduce(head, axis=0))
    for slot in np.flatnonzero(still):
        column = np.asarray(array[:, slot])
        known = column[~np.isnan(column)]
        still[slot] = not len(known) or not _varies(known)
    constant: list[bool] = still.tolist()
    spoken = {*request.kinds, *request.levels}
    simple = bool(np.isfinite(head).all())

    def look(place: int) -> tuple[ColumnPlan, str]:
        said = request.kinds.get(place)
        if constant[place] or (place in spoken and not (simple and said == Kind.REAL and place not in request.levels)):
            return _look_float(array, place, head, plain[place], request)
        anchor, declared = plain[place], said is not None
        why = "declared" if declared else "numbers"
        kept = Field(place, Kind.REAL, why, anchor=anchor.at, scale=anchor.scale, declared=declared)
        return ColumnPlan(kept, number_like=True, plain=anchor), ""

    return [look(place) for place in range(array.shape[1])]


def _look_float(
    array: np.ndarray, place: int, head: np.ndarray, anchor: Anchor, request: Request
) -> tuple[ColumnPlan, str]:
    column = head[:, place]
    forced = request.kinds.get(place)
    if np.isinf(column).any() and forced != IGNORE:
        row = int(np.argmax(np.isinf(column)))
        raise too_large(place, row, float(column[row]))
    facts = number_facts(place, column, CellType.FLOAT)
    if facts.different == 0:  # nothing in the first rows: look at all
        facts = number_facts(place, np.asarray(array[:, place], dtype=np.float64), CellType.FLOAT)
    plan, note = plan_of(facts, request)
    field = replace(plan.field, cells="double")
    return replace(plan, field=field, plain=anchor, logged=log_anchor_of(column)), note
