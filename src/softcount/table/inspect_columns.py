"""The first pass over a table: the kind of every column (category, count, real number, text), and how it is read."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.frames import LOOK_WHOLE, CellType, cell_type, flat
from softcount.table import column_facts
from softcount.table.cell_forms import NO_HABITS, WHOLE, CellHabits, NumberForm, detect_rounding, has_decimal_commas
from softcount.table.cell_values import MissingWords, count_decimals, numbers, too_large, type_name, without
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
"""The reason for leaving out a column without values."""
IGNORE = "ignore"
FEW_REPEATS = 0.9
"""Share of distinct rows in a long table above which its repeats are too few to matter."""
FIRST_CELLS = 200
"""Cells per column that decide the decimal mark of a table."""


class Request(Struct, frozen=True):
    """Settings of the caller for the columns; `named` tables may hold identifiers, bare arrays do not.

    The kinds of columns in `guessed` were suggested by earlier rows, not declared. `groups` are the classes of the
    first rows, negative if unknown; None without classes. `weights` are the weights of the rows.
    """

    kinds: Mapping[Key, Kind | str | Reading] = field(default_factory=dict)
    levels: Mapping[Key, Sequence[object]] = field(default_factory=dict)
    guessed: Collection[Key] = ()
    words: MissingWords = field(default_factory=MissingWords)
    named: bool = True
    habits: CellHabits = NO_HABITS
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None


class Verdict(NamedTuple):
    """A column's kind, the reason, whether it is used, and a note for the user (may be empty)."""

    kind: Kind
    why: str
    used: bool = True
    note: str = ""


def inspect_columns(columns: Mapping[Key, Any], request: Request) -> tuple[list[ColumnPlan], list[str]]:
    """Return how to read each column from its first rows, and notes for the user."""
    plans: list[ColumnPlan] = []
    notes: list[str] = []
    if request.habits.decimal is None and any(map(has_decimal_commas, map(_first_cells, columns.values()))):
        request = replace(request, habits=request.habits._replace(decimal=","))
    found: dict[Key, column_facts.Facts] = {}
    for key, column in columns.items():
        declared = request.kinds.get(key)
        sequences = isinstance(declared, Reading) and declared.analyzer == "steps"
        if cell_type(column.type) is CellType.NESTED and declared != IGNORE and not sequences:
            raise DataError(
                f"{wording.column(key)} holds nested or binary values, which cannot be modelled. Leave it out: "
                f"{remedies.kind(key, IGNORE)}. Lists of steps are sequences: {remedies.kind(key, 'markov')}"
            )
        if declared is None or not is_text(declared):
            numeric = declared is not None and declared != IGNORE and _kind(key, declared).numeric
            levels = key in request.levels or (declared is not None and not numeric)
            meant = column_facts.Meant(levels, numeric, request.habits)
            found[key] = column_facts.facts_of(key, column, request.words, meant)
    rows = _counted_rows(columns, found, request)
    for key, column in columns.items():
        if key in found:
            plan, note = plan_of(found[key], request, column, rows)
            written, cells = plan.field.written, "" if request.words.trim else type_name(column.type)
            if found[key].cells is CellType.TEXT and isinstance(written, NumberForm) and not written.is_text:
                written = replace(written, decimals=count_decimals(_first_cells(column)))
            plans.append(replace(plan, field=replace(plan.field, written=written, cells=cells)))
            notes.extend(filter(None, (found[key].note, note)))
        else:
            declared = request.kinds[key]
            reading = declared if isinstance(declared, Reading) else DEFAULT_READING
            plans.append(ColumnPlan(Field(key, Kind.TEXT, "declared", declared=True, reading=reading)))
    return keep_something(plans, notes)


def _counted_rows(
    columns: Mapping[Key, Any], found: Mapping[Key, column_facts.Facts], request: Request
) -> np.ndarray | None:
    """Return the rows that decide the kinds of undeclared columns; None means every row, if repeats cannot matter."""
    rows, matters = 0, False
    order: dict[Key, int] = {}
    for key, column in columns.items():
        if key not in found:
            order |= {} if cell_type(column.type) is CellType.NESTED else {key: 0}
            continue
        facts = found[key]
        rows, whole = max(rows, facts.rows), facts.whole
        if facts.cells is not CellType.NESTED:
            order[key] = facts.rows if facts.values is not None and not whole else facts.different
        if key not in request.kinds and key not in request.levels:
            matters |= (whole and 2 < facts.different <= MOST) or facts.known > facts.different >= IDENTIFIER_ROWS
    if not matters:
        return None
    keys = sorted(order, key=order.__getitem__, reverse=True)  # columns with the most distinct values first
    if rows > column_facts.FEW_CELLS and request.weights is None:
        some = column_facts.alike_to_draw(column_facts.cell_codes(columns[keys[0]]), column_facts.FEW_CELLS // 2)
        parts = (column_facts.cell_codes(columns[key].take(some)) for key in keys)
        drawn = column_facts.counted_rows(parts) if len(some) else None
        if len(some) and (drawn is None or len(drawn) > FEW_REPEATS * len(some)):
            return None
    codes = (column_facts.cell_codes(columns[key]) for key in keys)
    sides = [] if request.groups is None else [request.groups[:rows].astype(np.int64)]
    return column_facts.counted_rows(chain(codes, sides), None if request.weights is None else request.weights[:rows])


def _first_cells(column: Any) -> list[str]:
    """Return the first cells of a column of text that are not empty; none of a column of another type."""
    some = column[:FIRST_CELLS] if cell_type(column.type) is CellType.TEXT else ()
    return list(filter(None, flat(some).to_pylist())) if len(some) else []


def plan_of(
    facts: column_facts.Facts, request: Request, column: Any = None, rows: np.ndarray | None = None
) -> tuple[ColumnPlan, str]:
    """Return how to read one column, and a note (may be empty). `rows` are the rows that count.

    None means every row.
    """
    key = facts.key
    forced = request.kinds.get(key)
    if forced == IGNORE:
        return ColumnPlan(Field(key, Kind.IDENTIFIER, "left out by request", used=False, declared=True)), ""
    declared, values, note = forced is not None or key in request.levels, facts.values, ""
    extra = tuple(request.levels.get(key, ()))
    as_numbers, written = facts.values is not None, facts.written
    if declared:
        kind, why = Kind.CATEGORICAL if forced is None else _kind(key, forced), "declared"
        used = kind not in (Kind.IDENTIFIER, Kind.CONSTANT)
        if kind.numeric and values is None and column is not None:
            found = numbers(column, request.words.among(facts.missing), key, 0, padded=True)
            values = found[~np.isnan(found)]
        as_numbers = as_numbers and not any(isinstance(level, str) and level != BLANK for level in extra)
        if not as_numbers and facts.cells is CellType.TEXT:
            extra = tuple(map(str, extra))
    elif facts.different <= 1:
        kind, why, used, note = _decide_single(facts)
        extra = (BLANK,) if used else ()
    else:
        groups = request.groups if rows is None or request.groups is None else request.groups[rows]
        kind, why, used, note = decide(facts if rows is None else facts.of_rows(rows), request.named, groups)
    if written is not None and kind.numeric and not declared:
        why = written.description if facts.cells is CellType.TIME else f"{written.description} ({why})"
    if written is None and facts.values is not None and facts.cells in (CellType.WHOLE, CellType.TEXT, CellType.FLOAT):
        written = WHOLE if facts.whole else detect_rounding(facts.values)  # to write such numbers
    text = kind is Kind.TEXT and not declared
    spec = Field(
        key, Kind.CATEGORICAL, "", wide=facts.different + len(extra) > NARROW_LEVELS and not text, declared=declared,
        reading=DEFAULT_READING if text else None, missing=facts.missing, written=written,
    )  # fmt: skip
    plan = ColumnPlan(
        spec, as_numbers=as_numbers, number_like=facts.values is not None, constant=facts.only, extra=extra,
        plain=None if values is None or not len(values) else anchor_of(values),
        logged=log_anchor_of(values) if values is not None and len(values) and values.min() > 0 else NO_ANCHOR,
        guessed=declared and key in request.guessed,
    )  # fmt: skip
    return plan.as_kind(kind, why, used=used), note


def _kind(key: Key, forced: Any) -> Kind:
    try:
        return Kind(forced)
    except ValueError:
        known = ", ".join(kind.value for kind in Kind)
        raise DataError(f"{wording.column(key)} is declared {forced!r}. Kinds are {known} and {IGNORE}.") from None


def decide(facts: column_facts.Facts, named: bool, groups: np.ndarray | None = None) -> Verdict:
    """Choose the kind of a column that is not declared; `groups` are the classes of its rows."""
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
    return _decide_whole(facts, named, groups) if facts.whole else _as_numbers(facts)


FEWEST_TICKS = 5
"""Fewest cells with the value, and fewest missing cells, of a tick box among the first rows."""


def _decide_single(facts: column_facts.Facts) -> Verdict:
    """Choose the kind of a column that has one value at most.

    If its cells hold the value or nothing, the information is whether the value is present: a tick box. Decimals and
    times are not ticks.
    """
    name, value, blank = wording.column(facts.key), wording.cell(facts.only), facts.rows - facts.known
    if not facts.known:
        return Verdict(Kind.CONSTANT, NO_VALUES, False, f"{name} has no values: left out")
    ticks = min(facts.known, blank) >= FEWEST_TICKS and facts.cells is not CellType.TIME
    if ticks and facts.different == 1 and not isinstance(facts.only, float):
        note = f"{name} is {value} or missing: read as a tick box, missing is a category"
        return Verdict(Kind.CATEGORICAL, f"{value} or missing", True, note)
    return Verdict(Kind.CONSTANT, f"always {value}", False, f"{name} is always {value}: left out")


MANY_WORDS = 4
"""Mean number of words per cell from which cells are not categories."""
RUNNING_WORDS = 8
"""Mean number of words per cell from which words are counted by default."""


def _decide_text(facts: column_facts.Facts, named: bool) -> Verdict:
    name, count = wording.column(facts.key), facts.different
    if facts.words >= MANY_WORDS and count > column_facts.FEW_TEXTS and 2 * count > facts.known:
        # Do not round up to `RUNNING_WORDS`, where running text begins.
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
    note = f"{name} has many categories: {count} in the rows looked at" if count > NARROW_LEVELS else ""
    return Verdict(Kind.CATEGORICAL, f"text, {count} distinct", True, note)


def keep_something(plans: list[ColumnPlan], notes: list[str]) -> tuple[list[ColumnPlan], list[str]]:
    """Return the plans; if no column would be used, include columns that have values."""
    for plan in plans:
        if plan.field.used:
            return plans, notes
    able = [plan for plan in plans if not plan.field.declared]
    able = [plan for plan in able if plan.field.kind is not Kind.CONSTANT or plan.constant is not None]
    by_kind = ({plan.key for plan in able if plan.field.kind is kind} for kind in (Kind.TEXT, Kind.CONSTANT))
    chosen = next(filter(None, by_kind), {plan.key for plan in able[:1]})
    kept = []
    for plan in plans:
        if plan.key in chosen and plan.field.kind is Kind.TEXT:
            plan = replace(plan, field=replace(plan.field, used=True))
        elif plan.key in chosen:
            plan = plan.as_kind(Kind.REAL if plan.number_like else Kind.CATEGORICAL, plan.field.why)
        kept.append(plan)
    added = [f"{wording.column(key)} is kept: the table has nothing else" for key in sorted(chosen, key=str)]
    about = tuple(wording.column(key) + " " for key in chosen)
    return kept, [note for note in notes if not note.startswith(about)] + added


# -- numbers: categories, counts, amounts, identifiers or real numbers

IDENTIFIER_ROWS = 10
IDENTIFIER_SHARE = 0.5
"""Share of distinct values from which a column with the name of an identifier is left out."""
COUNTABLE = 20.0
"""Mean up to which whole numbers may be counts: above it a normal fits as well, and temperatures are not counts."""
ZEROS = 0.1
"""Share of zeros from which numbers of 0 or more are amounts, whatever the distribution of the others."""

_ID_NAME = re.compile(
    r"(?i:(?:.*[_. -])?(?:id|uuid|guid|index|idx)|row_?(?:num|number|names?|id)|unnamed: 0)|.*[a-z]I[dD]"
)
_MEASURED_NAME = re.compile(
    r"(?i:(?:.*[_. -])?(?:age|years?|temp(?:erature)?s?|degrees?|scores?|grades?|marks?)(?:[_. -].*)?)"
)


def _decide_whole(facts: column_facts.Facts, named: bool, groups: np.ndarray | None) -> Verdict:
    """Choose the kind of whole numbers; in `named` tables, an identifier is left out if most of its values differ."""
    few, values = column_facts.is_few(facts.different, facts.known), facts.values
    assert values is not None
    run = facts.different == facts.known >= IDENTIFIER_ROWS and float(values.max() - values.min()) == facts.known - 1
    identifier = named and (run or (isinstance(facts.key, str) and _ID_NAME.fullmatch(facts.key.strip()) is not None))
    if identifier and not few:
        name, count, rows = wording.column(facts.key), facts.different, facts.known
        if rows < IDENTIFIER_ROWS or count < IDENTIFIER_SHARE * rows:
            return Verdict(Kind.CATEGORICAL, f"whole numbers under the name of an identifier, {count} distinct")
        keep = remedies.kind(facts.key, "real")
        if count == rows:
            note = f"{name} counts the rows: left out as an identifier ({keep} to keep it)"
            return Verdict(Kind.IDENTIFIER, "whole numbers, every value different", False, note)
        share = f"{100 * count / rows:.0f} % of its values differ"
        note = f"{name} is named as an identifier, and {share}: left out ({keep} to keep it)"
        return Verdict(Kind.IDENTIFIER, f"whole numbers, {share}", False, note)
    levels = Verdict(Kind.CATEGORICAL, f"whole numbers, {facts.different} distinct")
    if identifier or not FEWEST <= facts.different <= MOST:
        return levels if few else _as_numbers(facts)
    return _by_rows_left_out(facts, levels if few else None, groups)


def _by_rows_left_out(facts: column_facts.Facts, levels: Verdict | None, groups: np.ndarray | None) -> Verdict:
    """Return `levels` if given, else numbers, unless the alternative predicts left-out rows better.

    `levels` is the verdict of a rule of thumb. Without known classes numbers stay numbers: the structure that suggests
    categories may be the classes to be found. Categories never become amounts, which predicted digits and Titanic worse
    although a single column looked better.
    """
    assert facts.values is not None
    known = None if groups is None or facts.there is None else groups[: facts.rows][facts.there]
    compared = counted(facts.values, known) if levels is not None or known is not None else None
    if compared is None:
        return levels or _as_numbers(facts)
    counts = compared[1]
    # Numbers, which have fewer parameters, can predict noticeably better only if categories have few rows each.
    if levels is not None and not len(counts) * (counts.shape[1] - 1) > 2.0 * WORTH * counts.sum():
        return levels
    numbers = _as_numbers(facts)
    if levels is not None and numbers.kind in (Kind.AMOUNT, Kind.POSITIVE):
        return levels
    gain = gain_of_levels(*compared, numbers.kind)
    if levels is None and gain.values > CLEAR and gain.classes > 0:
        why = f"whole numbers, {facts.different} distinct: predicted better as categories"
        return Verdict(Kind.CATEGORICAL, why)
    if levels is not None and gain.values < -TIE and gain.classes <= 0:
        return numbers._replace(why=f"{numbers.why}: predicted better as numbers")
    return levels or numbers


def _as_numbers(facts: column_facts.Facts) -> Verdict:
    """Choose between count, real, positive and amount.

    Amounts are often 0, or skewed apart from zeros: rain, capital gains, fares.
    """
    values: Any = facts.values
    why = f"whole numbers, {facts.different} distinct" if facts.whole else "numbers with decimals"
    measured = isinstance(facts.key, str) and _MEASURED_NAME.fullmatch(facts.key.strip()) is not None
    mean = float(values.mean())
    countable = facts.whole and not measured and values.min() >= 0 and mean <= COUNTABLE
    if countable and 0.5 * mean <= float(values.var()) <= 1.5 * mean:
        return Verdict(Kind.COUNT, "whole numbers from 0 up, spread like counts")
    if is_skewed(values):
        return Verdict(Kind.POSITIVE, f"{why}, above zero over several sizes")
    above = values[values > 0]
    several = float(values.min()) == 0.0 and len(np.unique(above)) >= 2
    if several and (len(above) <= (1.0 - ZEROS) * len(values) or is_skewed(above)):
        share = np.count_nonzero(values == 0) / facts.known
        return Verdict(Kind.AMOUNT, f"{why}, {100 * share:.0f} % of them 0 and the others above")
    return Verdict(Kind.REAL, why)


def is_skewed(values: Any) -> bool:
    """Whether all numbers are positive, span a factor of 100, and fit a lognormal better than a normal distribution."""
    low, high = float(values.min()), float(values.max())
    if low <= 0 or low >= high / 100:
        return False
    unit = values / high
    logs = np.log(values) - np.log(high)
    return bool(-0.5 * np.log(logs.var()) - logs.mean() > -0.5 * np.log(unit.var()))


# -- categories or numbers: which predicts left-out rows better

FEWEST, MOST = 5, 30
"""Distinct values of columns that are compared: with fewer both agree, with more each value has too few rows."""
LEAST_ROWS = 50
"""Rows from which they are compared: on 25 sampled ratings either choice was worse than the rule of thumb."""
WORTH = 0.01
"""They are compared only if numbers, having fewer parameters, can save this many nats per row."""
MOST_CELLS = 10_000
"""Classes times distinct values up to which they are compared."""
CLEAR = 0.1
"""Nats per row by which categories must predict values better to replace numbers, which use the order of values."""
TIE = 0.005
"""Nats per row by which numbers must predict values better to replace categories."""
SMALLEST = 1e-300


def counted(values: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the distinct values and their (classes x values) counts; None if there are too few or too many to compare.

    `groups` are the classes of the rows, negative if unknown; without any, all rows are one class.
    """
    if groups is not None and (groups < 0).any():
        known = groups >= 0
        values, groups = (values[known], groups[known]) if known.any() else (values, None)
    if len(values) < LEAST_ROWS:
        return None
    different, codes = np.unique(values, return_inverse=True)
    classes = 1 if groups is None else int(groups.max()) + 1
    if not FEWEST <= len(different) <= MOST or classes * len(different) > MOST_CELLS:
        return None
    cells = codes if groups is None else codes + len(different) * groups
    counts = np.bincount(cells, minlength=classes * len(different)).reshape(classes, -1).astype(np.float64)
    return different, counts[counts.sum(axis=1) > 0]


class Gain(NamedTuple):
    """Nats per row by which categories predict left-out rows better: values given the class, and classes."""

    values: float
    classes: float


def gain_of_levels(different: np.ndarray, counts: np.ndarray, kind: Kind) -> Gain:
    """Return how much better categories predict left-out rows than numbers of a kind.

    Both have one prior row per class.

    >>> gain_of_levels(np.arange(5.0), np.array([[30.0, 1.0, 1.0, 1.0, 30.0]]), Kind.REAL).values > CLEAR
    True
    """
    scores = []  # leave-one-out log-probabilities of all rows: of values, and of classes
    shares, seen = counts.sum(axis=1, keepdims=True), counts > 0
    for how in (Kind.CATEGORICAL, kind):
        alone = np.maximum(_probabilities(how, different, counts, 1.0), SMALLEST)
        every = np.maximum(_probabilities(how, different, counts, 0.0), SMALLEST)
        joint, here = shares * every, shares * alone
        of_class = here / (joint.sum(axis=0) - joint + here)
        scores.append(np.array([counts[seen] @ np.log(alone[seen]), counts[seen] @ np.log(of_class[seen])]))
    return Gain(*((scores[0] - scores[1]) / counts.sum()).tolist())


def _probabilities(kind: Kind, at: np.ndarray, counts: np.ndarray, without: float) -> np.ndarray:
    """Return the probability of each value `at` in each class, from the class's rows less `without` rows of that value.

    Each category has one prior count. Amounts are a mixture of 0 and a lognormal.
    """
    rows = counts.sum(axis=1, keepdims=True)
    if kind is Kind.CATEGORICAL:
        return np.asarray((np.maximum(counts - without, 0.0) + 1.0) / (rows - without + counts.shape[1]))
    if kind is Kind.REAL:
        return _between(at, counts, at - 0.5, at + 0.5, without)
    if kind is Kind.POSITIVE:
        return _between(np.log(at), counts, np.log(at - 0.5), np.log(at + 0.5), without)
    if kind is Kind.AMOUNT:
        none = counts[:, :1]
        none_of = (np.maximum(none - without, 0.0) + 1.0) / (rows - without + 2.0)
        some_of = (np.maximum(rows - none - without, 0.0) + 1.0) / (rows - without + 2.0)
        above = _probabilities(Kind.POSITIVE, at[1:], counts[:, 1:], without)
        return np.concatenate([none_of, some_of * above], axis=1)
    total = (counts @ at)[:, None]
    rate = (np.maximum(total - without * at, 0.0) + total.sum() / rows.sum()) / (rows - without + 1.0)
    factorials = np.array([math.lgamma(value + 1.0) for value in at.tolist()])
    return np.asarray(np.exp(at * np.log(rate) - rate - factorials))


def _between(at: np.ndarray, counts: np.ndarray, low: np.ndarray, high: np.ndarray, without: float) -> np.ndarray:
    """Return the mass of each class's normal between two edges; its prior is one row with the spread of the column."""
    pooled = counts.sum(axis=0)
    centre = float(pooled @ at / pooled.sum())
    at = at - centre
    squared = at * at
    rows = np.maximum(counts.sum(axis=1, keepdims=True) - without, 0.0)
    mean = ((counts @ at)[:, None] - without * at) / np.maximum(rows, 1.0)
    squares = (counts @ squared)[:, None] - without * squared - rows * mean * mean
    spread = float(pooled @ squared / pooled.sum())
    deviation = np.sqrt(2.0 * (np.maximum(squares, 0.0) + spread) / (rows + 1.0))
    low, high = (low - centre - mean) / deviation, (high - centre - mean) / deviation
    low, high = np.where(low > 0, low, -high), np.where(low > 0, high, -low)  # in the upper tail no digits are lost
    found = [math.erfc(a) - math.erfc(b) for a, b in zip(low.ravel().tolist(), high.ravel().tolist(), strict=True)]
    return 0.5 * np.array(found).reshape(low.shape)


# -- two-dimensional arrays of numbers

NARROW = 1_024
"""Widest range of values that are counted in bins for all columns together."""

ANCHORED_BY = 256
"""Rows, spread over the first ones, whose medians are anchors: using all of them took a third of a small fit."""

LARGEST = 2**62
"""Largest integer magnitude whose differences are computed in int64."""


def inspect_array(array: np.ndarray, request: Request) -> tuple[list[ColumnPlan], list[str]]:
    """Return how to read each column of an array: floats are real, the first rows decide on whole numbers."""
    looked = _inspect_floats(array, request) if array.dtype.kind == "f" else _inspect_wholes(array, request)
    return keep_something([plan for plan, _ in looked], [note for _, note in looked if note])


def _inspect_wholes(array: np.ndarray, request: Request) -> list[tuple[ColumnPlan, str]]:
    """Inspect columns with few categories, the usual case, together, and other columns one by one."""
    plain = array.dtype.kind in "iu" and not request.words.numbers
    head, kinds = array[:LOOK_WHOLE], request.kinds
    few = _few_levels(head) if plain else {}
    counted, rows = None, len(head)
    many = any(len(few.get(place, ())) not in range(1, FEWEST) for place in range(array.shape[1]))
    if head.size and (many or rows < LEAST_ROWS):
        sides = [] if request.groups is None else [request.groups[:rows].astype(np.int64)]
        cells = [*np.ascontiguousarray(head.T, dtype=np.int64), *sides]
        counted = column_facts.counted_rows(cells, None if request.weights is None else request.weights[:rows])
    if counted is not None:
        rows = len(counted)
        few = {place: x for place, x in few.items() if column_facts.is_few(len(x), rows)}
    for place in {*kinds, *request.levels}:
        if kinds.get(place) is not Kind.CATEGORICAL or place in request.levels:
            few.pop(place, None)
    few = {place: x for place, x in few.items() if place in kinds or len(x) < FEWEST or rows < LEAST_ROWS}
    found: list[tuple[ColumnPlan, str]] = []
    for place in range(array.shape[1]):
        if place in few:
            why = "declared" if place in kinds else f"whole numbers, {len(few[place])} distinct"
            spec = Field(place, Kind.CATEGORICAL, why, declared=place in kinds)
            found.append((ColumnPlan(spec, as_numbers=True, number_like=True, seen=tuple(few[place])), ""))
            continue
        kind = CellType.TRUTH if array.dtype.kind == "b" else CellType.WHOLE
        facts = column_facts.number_facts(
            place, without(head[:, place].astype(np.float64), request.words.numbers), kind
        )
        if facts.different <= 1 and _varies(array[:, place]):  # constant only if no row differs
            facts = replace(facts, different=2, only=None)
        found.append(plan_of(facts, request, rows=counted))
    return found


def _few_levels(head: np.ndarray) -> dict[Any, list[int]]:
    """Return the categories of the columns that have few enough of them (`is_few`)."""
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
        if counts[row] > 1 and column_facts.is_few(counts[row], len(head))
    }


def _varies(column: np.ndarray, step: int = 65_536) -> bool:
    first = column[0]
    return any(bool(np.any(column[at : at + step] != first)) for at in range(0, len(column), step))


def _inspect_floats(array: np.ndarray, request: Request) -> list[tuple[ColumnPlan, str]]:
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
    declared = {*request.kinds, *request.levels}
    simple = bool(np.isfinite(head).all())
    found: list[tuple[ColumnPlan, str]] = []
    for place, anchor in enumerate(plain):
        kind = request.kinds.get(place)
        if constant[place] or (
            place in declared and not (simple and kind == Kind.REAL and place not in request.levels)
        ):
            column = head[:, place]
            if np.isinf(column).any() and kind != IGNORE:
                row = int(np.argmax(np.isinf(column)))
                raise too_large(place, row, float(column[row]))
            facts = column_facts.number_facts(place, column, CellType.FLOAT)
            if facts.different == 0:  # no values in the first rows: look at all rows
                facts = column_facts.number_facts(place, np.asarray(array[:, place], dtype=np.float64), CellType.FLOAT)
            plan, note = plan_of(facts, request)
            spec = replace(plan.field, cells="double")
            found.append((replace(plan, field=spec, plain=anchor, logged=log_anchor_of(column)), note))
            continue
        why = "numbers" if kind is None else "declared"
        spec = Field(place, Kind.REAL, why, anchor=anchor.at, scale=anchor.scale, declared=kind is not None)
        found.append((ColumnPlan(spec, number_like=True, plain=anchor), ""))
    return found
