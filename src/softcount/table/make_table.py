"""Opening a table: from data and settings of its columns to a `Table`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.core import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.frames import (
    LOOK_WHOLE,
    TEXT,
    CellType,
    DenseSource,
    SparseSource,
    cell_type,
    flat,
    source_in_memory,
    text_column,
)
from softcount.sources.open_source import open_source
from softcount.sources.source import CONTENT_DECIDES, FileFormat, Source, refuse_empty
from softcount.table.cell_forms import CellHabits
from softcount.table.cell_values import MissingWords, count_decimals, mask_words, numbers
from softcount.table.column_facts import Facts, Meant, cell_codes, facts_of
from softcount.table.inspect_columns import IGNORE, Request, inspect_array, inspect_columns
from softcount.table.labels import NUMBERED_CLASSES, check_weights, numeric_target
from softcount.table.schema import MISSING, ColumnPlan, Field, Key, Kind, Schema
from softcount.table.table import Sides, Table, TableParts, refuse_unequal
from softcount.table.text_columns import TextColumn, is_text
from softcount.text import Reading

NUMERIC = [kind for kind in Kind if kind.numeric]


def open_table(  # noqa: PLR0913 - the settings of a table
    data: Any,
    *,
    kinds: Mapping[Key, Kind | str | Reading] | str | Reading | None = None,
    levels: Mapping[Key, Sequence[object]] | None = None,
    guessed: Collection[Key] = (),
    missing: Sequence[str] = MISSING,
    target: Key | None = None,
    weight: Key | None = None,
    labels: Any = None,
    weights: Any = None,
    schema: Schema | None = None,
    progress: Callable[[int, int], None] | None = None,
    **form: Any,
) -> Table:
    """Open a table: a file (CSV, TSV, gzipped, Parquet), standard input ("-"), a frame, an array, ...

    Without a `schema` the first rows decide the kinds of columns. `kinds` overrides them, with one kind per column or
    one for all; kinds in `guessed` were suggested by earlier rows. With a `schema` the table is read for prediction,
    and its columns are matched to the schema's. With `kinds="text"` a list of documents is a table of one column,
    "text". `labels` and `weights` are arrays, `target` and `weight` name columns. The other settings are those of
    `FileFormat`: `header=False`, `names`, `delimiter`, `decimal`, `encoding`, ...; the schema remembers them.

    >>> table = open_table({"size": [1.5, 2.5, None], "colour": ["red", "blue", "red"]})
    >>> [(spec.key, spec.kind.value) for spec in table.schema.fields]
    [('size', 'real'), ('colour', 'categorical')]
    >>> [spec.why for spec in open_table(["free money", "see you at noon"], kinds="text").schema.fields]
    ['declared']
    """
    missing = (missing,) if isinstance(missing, str) else tuple(map(str, missing))
    texts: Mapping[Key, TextColumn] = {}
    if isinstance(data, Table):
        plain = not (kinds or levels or target is not None or weight is not None or schema or missing != MISSING)
        if plain and labels is None and weights is None:
            return data
        source, texts = data.source, data.texts_read(missing)
    else:
        file_format = CONTENT_DECIDES if schema is None else schema.form
        if form:
            file_format = FileFormat.of(**form).over(file_format)
        data = data if hasattr(data, "columns") else _as_table(data, kinds, schema)
        source = source_in_memory(data) or open_source(data, _nulls_of(missing, schema), file_format, progress)
    # In sources with real nulls no word is missing: a folder, a country or a document may be called NA.
    words = MissingWords.of(missing, source.text_file, nulls=bool(source.kinds or source.verbatim))
    # Columns such as the file that a document is from are features only if they are declared.
    named = set(kinds) if isinstance(kinds, Mapping) else set()
    known = set() if schema is None else {spec.key for spec in schema.fields}
    apart = {target, weight, *set(source.aside).difference(named, known)} - {None}
    if isinstance(kinds, str | Reading):
        kinds = dict.fromkeys([key for key in source.keys if key not in apart], kinds)
    if schema is not None and target is not None:
        kinds = {target: Kind.CATEGORICAL}  # the kind of the target was settled when the model was fitted
    habits = CellHabits(source.form.decimal, source.form.dates, source.delimiter)
    request = Request(dict(kinds or {}), dict(levels or {}), guessed, words, source.named, habits)
    sides = _sides(source, request, target, weight, labels, weights)
    if schema is not None:
        notes = list(source.notes)
        located = _located(source, schema, apart, notes)
        plans = tuple(
            ColumnPlan(
                spec,
                as_numbers=spec.kind is not Kind.TEXT
                and len(spec.levels) > 0
                and not any(isinstance(level, str) for level in spec.levels),
                guessed=not spec.declared,
            )
            for spec in schema.fields
        )
        return Table(TableParts(source, plans, words, schema.missing, sides, tuple(notes), schema, located))
    if texts and sides.gaps:
        texts = {}  # labels may change which words are kept
    return _open(source, request, missing, sides, apart, texts)


def _nulls_of(missing: tuple[str, ...], schema: Schema | None) -> tuple[str, ...]:
    """Return the words that a file reader takes for missing; if a category is spelt like one, its column decides."""
    fields = () if schema is None else schema.fields
    kept = {
        level for spec in fields if spec.kind is Kind.CATEGORICAL for level in set(missing).intersection(spec.levels)
    }
    return tuple(word for word in missing if word not in kept)


def _as_table(data: Any, kinds: Any, schema: Schema | None) -> Any:
    """Return a list of documents as a table of one text column; other data unchanged."""
    column = text_column(data)
    if column is None:
        if is_text(kinds) and isinstance(data, list | tuple | np.ndarray) and not len(data):
            refuse_empty(0, 1)
        return data
    if schema is not None and schema.only_text is not None:
        return {schema.only_text: column[TEXT]}
    if schema is not None:
        columns = wording.and_others(spec.key for spec in schema.used)
        if schema.texts:
            raise DataError(f"the model reads {columns}, so a list of documents is not enough. Give a table of them.")
        raise DataError(
            "Expected 2D array, got 1D array instead: a list of documents, but the model reads no text. "
            f"It reads {columns}; give a table of them."
        )
    if is_text(kinds) or (isinstance(kinds, Mapping) and is_text(kinds.get(TEXT))):
        return column
    raise DataError(
        "Expected 2D array, got 1D array instead: a list of documents. To count their words declare them text: "
        "kinds='text'. A table of one column has rows of one cell each: array.reshape(-1, 1)"
    )


def _open(
    source: Source,
    request: Request,
    missing: tuple[str, ...],
    sides: Sides,
    apart: set[Key],
    texts: Mapping[Key, TextColumn],
) -> Table:
    for what, keys in (("kinds", request.kinds), ("levels", request.levels)):
        for key in set(keys).difference(source.keys):
            wording.refuse_unknown(source.keys, key, what)
    request = replace(request, kinds={**source.kinds, **request.kinds}, groups=sides.labels, weights=sides.weights)
    if isinstance(source, DenseSource):
        _refuse_numbers([key for key, kind in request.kinds.items() if is_text(kind)], "is declared text")
        request = replace(request, kinds={**request.kinds, **dict.fromkeys(apart, IGNORE)})
        if sides.target is not None:
            classes = source.array[:LOOK_WHOLE, sides.target.key]
            request = replace(request, groups=np.unique(classes, return_inverse=True)[1])
        plans, notes = inspect_array(source.array, request)
        plans = [plan for plan in plans if plan.key not in apart]
    else:
        target = [] if sides.target is None else [sides.target.key]
        weight = [] if sides.weight is None else [sides.weight]
        first = dict(source.head([*(key for key in source.keys if key not in apart), *target, *weight]))
        if weight:
            request = replace(request, weights=numbers(first.pop(weight[0]), request.words, weight[0], 0, padded=True))
        taken: tuple[str, ...] = ()
        if request.words.dashes:
            declared = {key for key, kind in request.kinds.items() if kind not in NUMERIC}
            first, taken = mask_words(first, request.words, {*target, *request.levels, *declared}, source.n_rows)
        request = replace(request, groups=cell_codes(first.pop(target[0])) if target else request.groups)
        plans, notes = inspect_columns(first, request)
        notes = [*taken, *notes]
    if source.whys:
        plans = [replace(p, field=replace(p.field, why=source.whys.get(p.key, p.field.why))) for p in plans]
    if not any(plan.field.used for plan in plans) and not isinstance(source, SparseSource):
        why = "; ".join(f"{wording.column(plan.key)}: {plan.field.why}" for plan in plans[:5])
        why = why or "the target is the only one"
        how = remedies.either("kinds={'COL': 'KIND'}", "--kind COL=KIND")
        raise DataError(f"no column is left to model ({why}). Declare a column to be used: {how}")
    every = (*source.notes, *notes)
    return Table(TableParts(source, tuple(plans), request.words, missing, sides, every, texts=texts))


def _located(source: Source, schema: Schema, apart: set[Key], notes: list[str]) -> dict[Key, Key]:
    """Return the source column of each field of the schema: by name, or by position if either side has no names."""
    if isinstance(source, SparseSource | DenseSource):
        _refuse_numbers(schema.texts, "of the model is text")
    if isinstance(source, SparseSource):
        return {}
    expected = [spec.key for spec in schema.fields]
    given = [key for key in source.keys if key not in apart]
    if not source.named or all(isinstance(key, int) for key in expected):
        if len(given) != len(expected):
            raise DataError(
                f"X has {len(given)} features, but Softcount is expecting {len(expected)} features as input. "
                "Give the columns the model was fitted on, in the same order."
            )
        return dict(zip(expected, given, strict=True))
    present = set(given)
    absent = [key for key in expected if key not in present and schema[key].used]
    extra = sorted(present.difference(expected), key=given.index)
    if absent and len(absent) == len(schema.used):
        if all(schema[key].kind is Kind.TEXT for key in absent):
            raise DataError(
                f"the model reads a column of text, {wording.and_others(absent)}; the table has "
                f"{wording.and_others(given)}. Rename the column that holds the text."
            )
        raise DataError(
            f"the table has none of the model's columns ({wording.and_others(absent)}); it has "
            f"{wording.and_others(given)}. Check that the first line holds the names."
        )
    if absent:
        notes.append(f"not in the table, taken as missing: {wording.and_others(absent)}")
    if extra:
        notes.append(f"not known to the model, ignored: {wording.and_others(extra)}")
    return {key: key for key in expected if key in present}


def _refuse_numbers(texts: Sequence[Key], what: str) -> None:
    if texts:
        raise DataError(
            f"{wording.column(texts[0])} {what}, but the table is an array of numbers. "
            "Give a frame, a file, or a list of documents."
        )


def read_labels(data: Any, target: Key, missing: Sequence[str] = MISSING) -> list[Any]:
    """Return the labels of all rows, None if missing; every number is a label."""
    return open_table(data, target=target, kinds={target: Kind.CATEGORICAL}, missing=missing).labels()


def _sides(source: Source, request: Request, target: Any, weight: Any, labels: Any, weights: Any) -> Sides:
    for key, what in ((target, "target"), (weight, "weight")):
        if key is not None:
            wording.refuse_unknown(source.keys, key, what)
    plan, floats = (None, False) if target is None else _target_plan(source, target, request)
    codes = None if labels is None else np.asarray(labels, dtype=np.int32)
    refuse_unequal("labels", codes, source.n_rows)
    refuse_unequal("weights", weights, source.n_rows)
    return Sides(plan, floats, weight, codes, None if weights is None else check_weights(weights, len(weights)))


SPELT_LABELS = 200
"""Labels that decide how many decimals labels are written with."""


def _target_plan(source: Source, target: Any, request: Request) -> tuple[ColumnPlan, bool]:
    """Return how to read labels, and whether they are floats; a numeric target must be declared categorical."""
    column = flat(source.head([target])[target])
    cells = cell_type(column.type)
    if cells is CellType.NESTED:
        raise DataError(f"{wording.column(target)} holds nested or binary values, which cannot be labels.")
    declared, numeric, spelt = request.kinds.get(target) == Kind.CATEGORICAL, False, False
    if cells is not CellType.TEXT or source.text_file:  # else names
        facts = facts_of(target, column, request.words, Meant(levels=True))
        numeric = facts.values is not None and cells is not CellType.TIME
        declared = declared or facts.coded
        if not declared:
            _refuse_numeric_target(facts_of(target, column, request.words, Meant(habits=request.habits)))
        decimals = count_decimals(column[:SPELT_LABELS].to_pylist()) if numeric and source.text_file else 0
        spelt = decimals > 0  # such as "1.0" in a text file
    spec = Field(target, Kind.CATEGORICAL, "target", wide=True, declared=declared)
    return ColumnPlan(spec, as_numbers=numeric, number_like=numeric), cells is CellType.FLOAT or spelt


def _refuse_numeric_target(facts: Facts) -> None:
    """Raise an error if the first rows of a target hold plain numbers with decimals, or many distinct numbers."""
    values = facts.values
    if values is None or facts.there is None or not len(values):
        return
    if facts.written is None and not facts.whole:
        first = int(np.argmax(values != np.floor(values)))
        raise numeric_target(facts.key, f"row {np.flatnonzero(facts.there)[first] + 1:,} holds {values[first]:g}")
    count = len(np.unique(values))
    if count > NUMBERED_CLASSES:
        what = "whole numbers" if facts.written is None else facts.written.description
        raise numeric_target(facts.key, f"{count:,} different {what} in the first {facts.rows:,} rows")
