"""A model of known classes from the rows of a query: counted inside the database where it can be.

What columns are is decided as reading decides it: by as many first rows as any table is looked at in. Levels and
classes that only later rows have follow as rows of their own, as they would when read; all counts are the database's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from softcount.errors import DataError
from softcount.export.database_counts import (
    ClassRows,
    LevelRows,
    class_rows,
    countable,
    database_counts,
    level_rows,
)
from softcount.export.database_rows import TITLES, Database, ReadOut, quoted
from softcount.fitted.fitted_model import Fitted
from softcount.learn.plan import Plan
from softcount.learn.recounted import recounted
from softcount.models.align import Older
from softcount.records import dataclass
from softcount.sources.arrow_columns import CellType, cell_type
from softcount.sources.databases import one_line
from softcount.sources.queries import is_database_error, undisturbed
from softcount.sources.source import look_rows_for
from softcount.table import wording
from softcount.table.schema import Key

ROUNDS = 4
"""How often columns may turn out to be something else than they seemed."""


@dataclass(frozen=True, slots=True)
class ClassRequest:
    """What is to be learned: the classes of a column, by a plan; which cells mean missing; and what learns from rows.

    `learn` is given an Arrow table of the query's columns without that of the weights.
    """

    target: str
    plan: Plan
    missing: Sequence[str]
    learn: Callable[[Any], Fitted]


def counted_inside(base: Database, asked: ClassRequest) -> tuple[Fitted, int]:
    """The model of the query's rows, and how many they are; a `ReadOut` says why the database cannot count them."""
    if asked.plan.declared.leaves_open:
        raise ReadOut("rows are to choose the density of some column")
    if isinstance(asked.plan.prior, Older):
        raise ReadOut("an older model's counts are joined with those of rows")
    try:
        with undisturbed(base.connection):
            return _counted(base, asked)
    except Exception as error:
        if is_database_error(error):
            raise ReadOut(f"it would not count them ({one_line(error)})") from None
        raise


def _counted(base: Database, asked: ClassRequest) -> tuple[Fitted, int]:
    names = base.names
    for key, what in ((asked.target, "target"), (base.weight, "weight")):
        if key is not None:
            wording.refuse_unknown(names, key, what)
    most = look_rows_for(len(names))
    sample = base.first(most + 1)
    if sample.num_rows <= most:
        raise ReadOut(f"there are no more than are looked at, {sample.num_rows:,}")
    sample = sample.slice(0, most)
    sample = sample if base.weight is None else sample.drop_columns(base.weight)
    _refuse_late(base, sample)
    classes = class_rows(base, asked.target, asked.missing)
    model, levels = _whole_schema(base, sample, asked, classes)
    counts, missing = database_counts(base, model, asked.target, classes, levels)
    rows = sum(classes.rows)
    fitted = recounted(model, counts, missing, asked.plan)
    said = f"{rows:,} rows were counted inside {TITLES[base.dialect]}."
    return replace(fitted, notes=[said, *(_unnumbered(note) for note in fitted.notes)]), rows


def _whole_schema(
    base: Database, sample: Any, asked: ClassRequest, classes: ClassRows
) -> tuple[Fitted, dict[Key, LevelRows]]:
    """A model of the first rows, and of one more row for every class and level that they lack.

    What such rows add to its counts does not matter: all counts are those of the database.
    """
    rows, target, first = sample, asked.target, None
    known: dict[Key, LevelRows] = {}
    for _ in range(ROUNDS):
        try:
            model = asked.learn(rows)
        except DataError:  # which is for all rows to say
            raise ReadOut("its first rows alone cannot be learned from") from None
        first = first or model
        _refuse_turned(first, model, sample)
        countable(model, sample)
        others = set(classes.names) - set(rows[target].to_pylist())
        more = [{target: name} for name in sorted(others, key=str)]
        for key in _told_by_levels(model, sample, target):
            if key not in known:
                known[key] = level_rows(base, target, key, classes)
            there = set(rows[key].to_pylist())
            new = {value for value in known[key].values if value == value} - there  # without NaN, which is no level
            more += [{key: value, target: classes.names[0]} for value in sorted(new, key=str)]
        if not more:
            return _without_row_numbers(model), known
        rows = _with_rows(rows, more)
    raise ReadOut("columns turn out to be something else again and again")


def _refuse_turned(first: Fitted, model: Fitted, sample: Any) -> None:
    """What becomes of words among numbers that are written as text depends on which row comes first."""
    for key, spec in first.schema.by_key.items():
        if model.schema[key].why != spec.why and cell_type(sample.schema.field(key).type) is CellType.TEXT:
            raise ReadOut(f"column {key!r} turns out to be something else in later rows")


def _with_rows(rows: Any, more: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    try:
        return pa.concat_tables([rows, pa.Table.from_pylist(more, schema=rows.schema)])
    except (pa.ArrowException, TypeError, OverflowError):
        raise ReadOut("some column holds something else than its first rows do") from None


def _refuse_late(base: Database, sample: Any) -> None:
    """What a column is that has no value in the first rows, only later ones tell."""
    empty = [key for key in sample.column_names if sample[key].null_count == sample.num_rows]
    found = (
        base.rows(f"SELECT {', '.join(f'count({quoted(key)})' for key in empty)} FROM {base.source}") if empty else []
    )
    late = [key for key, count in zip(empty, *found, strict=True) if count] if empty else []
    if late:
        raise ReadOut(f"column {late[0]!r} has no values in the first rows, but later")


def _told_by_levels(model: Fitted, sample: Any, target: str) -> list[str]:
    """Columns of levels, and those that seemed to have one value and may have more."""
    fields = model.schema.by_key
    constant = [key for key in fields if not fields[key].used and fields[key].kind.value == "constant"]
    coded = [key for key in fields if fields[key].used and fields[key].kind.coded]
    return [
        key
        for key in sample.column_names
        if key != target and key in (*constant, *coded) and sample[key].null_count < sample.num_rows
    ]


_ROW = re.compile(r" \(row [\d,]+\)$")


def _unnumbered(said: str) -> str:
    """Without the number of a row that the query does not have at that place."""
    return _ROW.sub("", said)


def _without_row_numbers(model: Fitted) -> Fitted:
    schema = model.schema
    fields = tuple(replace(spec, why=_unnumbered(spec.why)) for spec in schema.fields)
    own = model.model
    return replace(model, model=own.with_leaves(own.leaves, schema=replace(schema, fields=fields)))
