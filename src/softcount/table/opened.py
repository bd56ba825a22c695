"""Opening a table: data and what is said about it, to a `Table`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.table import wording
from softcount.table.columns import Cells, Words, cells_of, flat
from softcount.table.dense import DenseSource, look_dense
from softcount.table.facts import facts_of
from softcount.table.labels import check_weights
from softcount.table.look import IGNORE, Request, look
from softcount.table.opening import open_source
from softcount.table.plan import Plan
from softcount.table.schema import MISSING, Field, Key, Kind, Schema
from softcount.table.source import Source, SparseSource
from softcount.table.table import Sides, Table


def open_table(
    data: Any,
    *,
    kinds: Mapping[Key, Kind | str] | None = None,
    levels: Mapping[Key, Sequence[object]] | None = None,
    missing: Sequence[str] = MISSING,
    target: Key | None = None,
    weight: Key | None = None,
    labels: Any = None,
    weights: Any = None,
    schema: Schema | None = None,
    progress: Callable[[int, int], None] | None = None,
    header: bool = True,
) -> Table:
    """A table ready to be read: a file (CSV, TSV, gzipped, Parquet), standard input ("-"), a frame, an array, ...

    Without a `schema` its kinds are decided by looking at the first rows, `kinds` overriding; with one the table is
    read for prediction, its columns matched to the schema's. `labels` and `weights` are arrays, `target` and `weight`
    name columns. `header=False` names the columns of a text file c1, c2, ...

    >>> table = open_table({"size": [1.5, 2.5, None], "colour": ["red", "blue", "red"]})
    >>> [(spec.key, spec.kind.value) for spec in table.schema.fields]
    [('size', 'real'), ('colour', 'categorical')]
    """
    said = (missing,) if isinstance(missing, str) else tuple(map(str, missing))
    if isinstance(data, Table):
        plain = not (kinds or levels or target is not None or weight is not None or schema or said != MISSING)
        if plain and labels is None and weights is None:
            return data
        source = data.source
    else:
        source = open_source(data, said, header, progress)
    words = Words.of(said, source.text_file)
    request = Request(dict(kinds or {}), dict(levels or {}), words, source.named)
    sides = _sides(source, request, target, weight, labels, weights)
    apart = {key for key in (target, weight) if key is not None}
    if schema is not None:
        return _closed(source, schema, words, sides, apart)
    return _open(source, request, said, sides, apart)


def _open(source: Source, request: Request, missing: tuple[str, ...], sides: Sides, apart: set[Key]) -> Table:
    for what, keys in (("kinds", request.kinds), ("levels", request.levels)):
        for key in keys:
            wording.refuse_unknown(source.keys, key, what)
    if isinstance(source, DenseSource):
        request = replace(request, kinds={**request.kinds, **dict.fromkeys(apart, IGNORE)})
        plans, notes = look_dense(source.array, request)
        plans = [plan for plan in plans if plan.key not in apart]
    else:
        plans, notes = look(source.head([key for key in source.keys if key not in apart]), request)
    if not any(plan.field.used for plan in plans) and not isinstance(source, SparseSource):
        raise _nothing_left(plans)
    return Table(source, plans, request.words, missing, sides=sides, notes=[*source.notes, *notes])


def _nothing_left(plans: Sequence[Plan]) -> DataError:
    why = "; ".join(f"{wording.column(plan.key)}: {plan.field.why}" for plan in plans[:5])
    return DataError(f"no column is left to model ({why}). Declare a column to be used: --kind COL=KIND")


def _closed(source: Source, schema: Schema, words: Words, sides: Sides, apart: set[Key]) -> Table:
    notes = list(source.notes)
    located = _located(source, schema, apart, notes)
    plans = [_plan_of(spec) for spec in schema.fields]
    return Table(source, plans, words, schema.missing, sides=sides, notes=notes, closed=schema, located=located)


def _plan_of(spec: Field) -> Plan:
    as_numbers = bool(spec.levels) and not any(isinstance(level, str) for level in spec.levels)
    return Plan(spec, as_numbers=as_numbers)


def _located(source: Source, schema: Schema, apart: set[Key], notes: list[str]) -> dict[Key, Key]:
    """Where each field of the schema is found: by name, or by position where either side has no names."""
    if isinstance(source, SparseSource):
        return {}
    expected = [spec.key for spec in schema.fields]
    given = [key for key in source.keys if key not in apart]
    if source.named and not all(isinstance(key, int) for key in expected):
        return _by_name(expected, given, schema, notes)
    if len(given) != len(expected):
        raise DataError(
            f"X has {len(given)} features, but Softcount is expecting {len(expected)} features as input. "
            "Give the columns the model was fitted on, in the same order."
        )
    return dict(zip(expected, given, strict=True))


def _by_name(expected: list[Key], given: list[Key], schema: Schema, notes: list[str]) -> dict[Key, Key]:
    present = set(given)
    absent = [key for key in expected if key not in present and schema[key].used]
    extra = sorted(present.difference(expected), key=given.index)
    if absent and len(absent) == len(schema.used):
        raise DataError(
            f"the table has none of the model's columns ({wording.and_others(absent)}); it has "
            f"{wording.and_others(given)}. Check that the first line holds the names."
        )
    if absent:
        notes.append(f"not in the table, taken as missing: {wording.and_others(absent)}")
    if extra:
        notes.append(f"not known to the model, ignored: {wording.and_others(extra)}")
    return {key: key for key in expected if key in present}


def _sides(source: Source, request: Request, target: Any, weight: Any, labels: Any, weights: Any) -> Sides:
    for key, what in ((target, "target"), (weight, "weight")):
        if key is not None:
            wording.refuse_unknown(source.keys, key, what)
    plan, floats = _target_plan(source, target, request) if target is not None else (None, False)
    codes = None if labels is None else np.asarray(labels, dtype=np.int32)
    for name, side in (("labels", codes), ("weights", weights)):
        if side is not None and source.n_rows is not None and len(side) != source.n_rows:
            raise DataError(
                f"Found input variables with inconsistent numbers of samples: {len(side)} {name} for a table of "
                f"{source.n_rows} rows. Give one per row."
            )
    rows = None if weights is None else check_weights(weights, len(weights))
    return Sides(plan, floats, weight, codes, rows)


def _target_plan(source: Source, target: Any, request: Request) -> tuple[Plan, bool]:
    """How to read labels: words as they are, numbers only if whole; and whether they are floats to their owner."""
    column = flat(source.head([target])[target])
    cells = cells_of(column.type)
    if cells is Cells.NESTED:
        raise DataError(f"{wording.column(target)} holds nested or binary values, which cannot be labels.")
    facts = facts_of(target, column, request.words)
    numeric = facts.values is not None and (cells is not Cells.TEXT or source.text_file) and cells is not Cells.TIME
    plan = Plan(Field(target, Kind.CATEGORICAL, "target", wide=True), as_numbers=numeric, number_like=numeric)
    return plan, cells is Cells.FLOAT
