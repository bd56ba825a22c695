"""The schema of a model in its file: columns, what means missing, how the data is read; nothing there is trusted."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.errors import ModelFileError
from softcount.files.codec import Arrays, Document, decode, encode, plain
from softcount.files.text import check_reading, put_words, reading_document, words_from
from softcount.table.cell_forms import is_time_type
from softcount.table.cell_values import is_type_name
from softcount.table.schema import MOST_POINTS, Field, Kind, Schema
from softcount.text.word_list import Words

MOST_DIGITS = 30
"""Decimals that a number may be written with."""


def schema_document(schema: Schema, arrays: Arrays) -> Document:
    """A schema as JSON; the words of its columns of text go to arrays of their own."""
    for spec in schema.fields:
        if spec.reading is not None:
            reading_document(spec.reading)
        if isinstance(spec.levels, Words):
            put_words(arrays, f"words/{array_name(spec.key)}", spec.levels)
    fields = tuple(replace(x, levels=()) if isinstance(x.levels, Words) else x for x in schema.fields)
    found: Document = encode(replace(schema, fields=fields), {}, "schema")
    return found


def array_name(key: Hashable) -> str:
    """What stands for a column in the names of arrays."""
    return repr(plain(key))


def schema_from(document: Any, arrays: Arrays) -> Schema:
    """A schema back."""
    schema = decode(Schema, document, arrays, "schema", "the schema", infinite=("bounds",))
    schema.form.check()
    return replace(schema, fields=tuple(_check_field(spec, arrays) for spec in schema.fields))


def _check_field(spec: Field, arrays: Arrays) -> Field:
    """A column whose types are right, if its values make sense."""
    key, levels = spec.key, tuple(spec.levels)
    if not spec.scale > 0:
        raise ModelFileError(f"column {key!r} has an impossible anchor or scale.")
    if not all(isinstance(level, (str, int, float)) for level in levels):
        raise ModelFileError(f"column {key!r} has levels that are neither text nor numbers.")
    if spec.cells and not is_type_name(spec.cells):
        raise ModelFileError(f"column {key!r} has cells of an unknown type: {spec.cells!r}.")
    form = spec.written
    if form is not None and (
        not all(0 <= x <= MOST_DIGITS for x in (form.digits, getattr(form, "decimals", 0)))
        or (form.typed and not is_time_type(form.typed))
    ):
        raise ModelFileError(f"column {key!r} is written in a way that makes no sense: {form!r}.")
    if spec.bounds is not None and not spec.bounds[0] < spec.bounds[1]:
        raise ModelFileError(f"the bounds of column {key!r} make no sense: {spec.bounds!r}.")
    if spec.points is not None:
        values = np.array(spec.points.values)
        sound = 1 <= spec.points.most <= MOST_POINTS and spec.points.step >= 0 and len(values) <= spec.points.most
        if not sound or not (np.diff(values) > 0).all():
            raise ModelFileError(f"column {key!r} is counted at numbers that are out of order, or too many.")
    if spec.reading is not None:
        check_reading(spec.reading, key)
    rule = spec.derived
    if rule is not None:
        given = [x for pair in rule.levels for x in pair] + ([rule.constant] if rule.lead is None else [])
        if rule.lead == key or rule.slope == 0 or not all(isinstance(x, (str, int, float)) for x in given):
            raise ModelFileError(f"what column {key!r} follows from makes no sense: {rule!r}.")
    if spec.kind is not Kind.TEXT or not spec.used:
        return replace(spec, levels=levels)
    if spec.reading is None or levels:
        raise ModelFileError(f"column {key!r} ({spec.kind}) does not say how its text is read, or has levels.")
    return replace(spec, levels=words_from(arrays, f"words/{array_name(key)}", key))
