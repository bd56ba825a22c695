"""Deciding what each column is, by what its first rows say."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.arrow_columns import PLAIN, CellType, cell_type, flat, floats_of
from softcount.table.cell_values import MissingWords, distinct, numbers, without
from softcount.table.column_plan import ColumnPlan, anchor_of, log_anchor_of
from softcount.table.number_kinds import IDENTIFIER_ROWS, Verdict, decide_numbers
from softcount.table.schema import NARROW_LEVELS, Field, Key, Kind
from softcount.table.text_columns import DEFAULT_READING, is_text, without_marks
from softcount.text import Reading

FEW_BINS = 1 << 20
"""Widest range of whole numbers that is counted in bins rather than sorted."""

FEW_TEXTS = 20
"""Different cells up to which text is categories, however long."""

LONG_CELL = 64
FEW_CELLS = 8_192
FEW_MEANT = 1_000
"""Bytes of a cell, on average, from which on a column is looked at in its first cells only; how many those are; and
how many of them their words are counted in."""

NO_VALUES = "every value missing"
"""Why a column without a value is left out."""


@dataclass(frozen=True, slots=True)
class Facts:
    """`rows` were looked at, `known` of them hold a value, `different` values are distinct (numbers: at least so many).

    `values` are the numbers in row order without the missing ones, or None for text. `only` is the one value of a
    constant column. `words` is the mean number of words in a cell of text. `coded` says that the table's owner
    already keeps the column as categories.
    """

    key: Any
    cells: CellType
    rows: int
    known: int
    different: int
    values: np.ndarray | None = None
    only: object = None
    words: float = 0.0
    coded: bool = False

    @property
    def whole(self) -> bool:
        return self.values is not None and bool(np.all(self.values == np.floor(self.values)))


def facts_of(key: Key, column: Any, words: MissingWords) -> Facts:
    """The facts of an Arrow column."""
    import pyarrow as pa

    column = flat(column)
    cells = cell_type(column.type)
    if cells is CellType.NESTED:
        return Facts(key, cells, len(column), 0, 0)
    if cells in (CellType.TEXT, CellType.TRUTH):
        return _running_facts(key, column, words) or _cell_facts(key, column, words)
    coded = pa.types.is_dictionary(column.type)
    return number_facts(key, numbers(column, words, key, 0), cells, coded=coded)


def number_facts(key: Key, column: np.ndarray, cells: CellType, *, coded: bool = False) -> Facts:
    """The facts of a column of numbers, NaN where missing."""
    values = column[~np.isnan(column)]
    different = count_distinct(values)
    only = _only(values, cells) if different == 1 else None
    return Facts(key, cells, len(column), len(values), different, values, only, coded=coded)


def _only(values: np.ndarray, cells: CellType) -> object:
    value = float(values[0])
    if cells is CellType.TRUTH:
        return bool(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def count_distinct(values: np.ndarray) -> int:
    """How many distinct numbers; for numbers with decimals only whether there are none, one or several."""
    if not len(values):
        return 0
    low, high = float(values.min()), float(values.max())
    if low == high:
        return 1
    if not np.all(values == np.floor(values)):
        return 2
    if high - low < FEW_BINS:
        return int(np.count_nonzero(np.bincount((values - low).astype(np.int64))))
    return len(np.unique(values))


def _running_facts(key: Key, column: Any, words: MissingWords) -> Facts | None:
    """Facts of cells too long and too many to be categories or numbers; None where they are not.

    The first few thousand say enough: looking at every cell of 44 MB takes 3 s.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    some = column.slice(0, FEW_CELLS)
    coded = pa.types.is_dictionary(some.type)
    spelled = some.dictionary if coded else some
    if cell_type(spelled.type) is not CellType.TEXT or (pc.mean(pc.binary_length(spelled)).as_py() or 0) < LONG_CELL:
        return None
    some = without_marks(some.dictionary_decode() if coded else some, words.missing)
    different = pc.count_distinct(some).as_py()
    if different <= FEW_TEXTS:
        return None
    texts = some.drop_null().slice(0, FEW_MEANT).to_pylist()
    return Facts(key, CellType.TEXT, len(some), len(some) - some.null_count, different, words=_mean_words(texts))


def _cell_facts(key: Key, column: Any, words: MissingWords) -> Facts:
    found, places = distinct(column, words)
    cells = cell_type(column.type)
    kept = [value is not None for value in found]
    known = np.append(kept, False)[places] if len(places) else np.zeros(0, bool)
    texts = [value for value in found if value is not None]
    different = len(set(texts))
    only = texts[0] if different == 1 else None
    if cells is CellType.TEXT and texts:
        floats, bad = floats_of(found, PLAIN)
        if not bad.any():
            return number_facts(key, without(np.append(floats, np.nan)[places], words.numbers), CellType.TEXT)
    return Facts(key, cells, len(places), int(known.sum()), different, None, only, _mean_words(texts))


def _mean_words(texts: list[str]) -> float:
    some = [text for text in texts[:FEW_MEANT] if isinstance(text, str)]
    return sum(len(text.split()) for text in some) / len(some) if some else 0.0


IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller has said about the columns; `named` tables may hold identifiers, bare arrays not.

    The kinds of columns in `guessed` were not declared by anybody: earlier rows suggested them.
    """

    kinds: Mapping[Key, Kind | str | Reading] = field(default_factory=dict)
    levels: Mapping[Key, Sequence[object]] = field(default_factory=dict)
    guessed: Collection[Key] = ()
    words: MissingWords = field(default_factory=MissingWords)
    named: bool = True


def look(columns: Mapping[Key, Any], request: Request) -> tuple[list[ColumnPlan], list[str]]:
    """How to read each column of the first rows, and what to tell the table's owner."""
    plans, notes = [], []
    for key, column in columns.items():
        _refuse_nested(key, cell_type(column.type), request)
        plan, note = _text_plan(key, request) or plan_of(facts_of(key, column, request.words), request, column)
        plans.append(plan)
        notes.extend([note] if note else [])
    return keep_something(plans, notes)


def _refuse_nested(key: Key, cells: CellType, request: Request) -> None:
    said = request.kinds.get(key)
    sequences = isinstance(said, Reading) and said.analyzer == "steps"
    if cells is CellType.NESTED and said != IGNORE and not sequences:
        raise DataError(
            f"{wording.column(key)} holds nested or binary values, which cannot be modelled. "
            f"Leave it out: --kind {key}=ignore. Lists of steps are sequences: --kind {key}=markov"
        )


def plan_of(facts: Facts, request: Request, column: Any = None) -> tuple[ColumnPlan, str]:
    """How to read one column, and a note or nothing."""
    key = facts.key
    forced = request.kinds.get(key)
    if forced == IGNORE:
        return ColumnPlan(Field(key, Kind.IDENTIFIER, "left out by request", used=False, declared=True)), ""
    if forced is None and key in request.levels:
        forced = Kind.CATEGORICAL
    if forced is not None:
        return _declared(facts, _kind(key, forced), request, column), ""
    verdict = decide(facts, request.named)
    plan = _base(facts, facts.values, request).as_kind(verdict.kind, verdict.why, used=verdict.used)
    if verdict.kind is Kind.TEXT:
        plan = replace(plan, field=replace(plan.field, reading=DEFAULT_READING, wide=False))
    return plan, verdict.note


def _text_plan(key: Key, request: Request) -> tuple[ColumnPlan, str] | None:
    """The plan of a column that is declared text: nothing need be known of its cells."""
    said = request.kinds.get(key)
    if not is_text(said):
        return None
    reading = said if isinstance(said, Reading) else DEFAULT_READING
    return ColumnPlan(Field(key, Kind.TEXT, "declared", declared=True, reading=reading)), ""


def _kind(key: Key, forced: Any) -> Kind:
    try:
        return Kind(forced)
    except ValueError:
        known = ", ".join(kind.value for kind in Kind)
        raise DataError(f"{wording.column(key)} is declared {forced!r}. Kinds are {known} and {IGNORE}.") from None


def _base(facts: Facts, values: np.ndarray | None, request: Request) -> ColumnPlan:
    """The column as known before its kind is: anchors, levels that exist, how text is read."""
    extra = tuple(request.levels.get(facts.key, ()))
    as_numbers = facts.values is not None and not any(isinstance(level, str) for level in extra)
    wide = facts.different + len(extra) > NARROW_LEVELS
    has_numbers = values is not None and len(values) > 0
    return ColumnPlan(
        Field(facts.key, Kind.CATEGORICAL, "", wide=wide),
        as_numbers=as_numbers,
        number_like=facts.values is not None,
        constant=facts.only,
        plain=anchor_of(values) if has_numbers else None,  # type: ignore[arg-type]
        logged=log_anchor_of(values) if has_numbers else log_anchor_of(np.zeros(0)),  # type: ignore[arg-type]
        extra=extra if as_numbers else tuple(map(str, extra)) if facts.cells is CellType.TEXT else extra,
    )


def _declared(facts: Facts, kind: Kind, request: Request, column: Any) -> ColumnPlan:
    values = facts.values
    if kind.numeric and values is None and column is not None:
        found = numbers(column, request.words, facts.key, 0, padded=True)
        values = found[~np.isnan(found)]
    used = kind not in (Kind.IDENTIFIER, Kind.CONSTANT)
    plan = _base(facts, values, request).as_kind(kind, "declared", used=used)
    return replace(plan, field=replace(plan.field, declared=True), guessed=facts.key in request.guessed)


def decide(facts: Facts, named: bool) -> Verdict:
    """The kind of a column that its owner has said nothing about."""
    if facts.different <= 1:
        return _constant(facts)
    if facts.cells is CellType.TRUTH:
        return Verdict(Kind.CATEGORICAL, "true or false")
    if facts.values is None:
        return _decide_text(facts, named)
    if facts.coded:
        return Verdict(Kind.CATEGORICAL, f"kept as categories, {facts.different} distinct")
    if facts.cells is CellType.TIME:
        return Verdict(Kind.REAL, "dates or times, as seconds since 1970")
    if facts.cells is CellType.FLOAT and not named:
        return Verdict(Kind.REAL, "numbers")
    return decide_numbers(facts, named)


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
        note = f"{name} differs in every row: left out as an identifier (--kind {facts.key}=categorical to keep it)"
        return Verdict(Kind.IDENTIFIER, "text, every value different", False, note)
    note = f"{name} has many levels: {count} in the rows looked at" if count > NARROW_LEVELS else ""
    return Verdict(Kind.CATEGORICAL, f"text, {count} distinct", True, note)


def _decide_running(facts: Facts) -> Verdict:
    name, why = wording.column(facts.key), f"text of about {_rounded(facts.words)} words"
    if facts.words >= RUNNING_WORDS:
        otherwise = wording.declare(facts.key, "categorical", IGNORE)
        return Verdict(Kind.TEXT, why, True, f"{name} is running text: its words are counted (else {otherwise})")
    counted, kept = wording.declare(facts.key, "text"), wording.declare(facts.key, "categorical")
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
