"""The schema in a model file: columns, words of text, and how the data is read. Nothing that is read is trusted."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.core.lazy import pa, pc
from softcount.errors import DataError, ModelFileError
from softcount.files.codec import Arrays, Document, decode, encode, plain, require
from softcount.table.cell_forms import is_time_type
from softcount.table.cell_values import is_type_name
from softcount.table.schema import Field, Kind, Schema
from softcount.text.words import Reading, Words


def encode_schema(schema: Schema, arrays: Arrays) -> Document:
    """Encode a schema as JSON; the words of its text columns are added to `arrays`."""
    for spec in schema.fields:
        if spec.reading is not None:
            encode_reading(spec.reading)
        if isinstance(spec.levels, Words):
            put_words(arrays, f"words/{array_name(spec.key)}", spec.levels)
    fields = tuple(replace(x, levels=()) if isinstance(x.levels, Words) else x for x in schema.fields)
    found: Document = encode(replace(schema, fields=fields), {}, "schema")
    return found


def array_name(key: Hashable) -> str:
    """Return the part of an array's name that identifies a column."""
    return repr(plain(key))


def decode_schema(document: Any, arrays: Arrays) -> Schema:
    schema = decode(Schema, document, arrays, "schema", "the schema", infinite=("bounds",))
    schema.form.check()
    return replace(schema, fields=tuple(_check_field(spec, arrays) for spec in schema.fields))


def _check_field(spec: Field, arrays: Arrays) -> Field:
    key, levels = spec.key, tuple(spec.levels)
    plain_levels = all(isinstance(level, (str, int, float)) for level in levels)
    require(plain_levels, f"column {key!r} has levels that are neither text nor numbers.")
    known = not spec.cells or is_type_name(spec.cells)
    require(known, f"column {key!r} has cells of an unknown type: {spec.cells!r}.")
    form = spec.written
    sound = form is None or not form.typed or is_time_type(form.typed)
    require(sound, f"column {key!r} is written in a way that makes no sense: {form!r}.")
    rising = spec.bounds is None or spec.bounds[0] < spec.bounds[1]
    require(rising, f"the bounds of column {key!r} make no sense: {spec.bounds!r}.")
    if spec.points is not None:
        values = np.array(spec.points.values)
        sound = len(values) <= spec.points.most and bool((np.diff(values) > 0).all())
        require(sound, f"column {key!r} is counted at numbers that are out of order, or too many.")
    rule = spec.derived
    if rule is not None:
        given = [x for pair in rule.levels for x in pair] + ([rule.constant] if rule.lead is None else [])
        sound = rule.lead != key and rule.slope != 0 and all(isinstance(x, (str, int, float)) for x in given)
        require(sound, f"what column {key!r} follows from makes no sense: {rule!r}.")
    if spec.kind is not Kind.TEXT or not spec.used:
        return replace(spec, levels=levels)
    sound = spec.reading is not None and not levels
    require(sound, f"column {key!r} ({spec.kind}) does not say how its text is read, or has levels.")
    return replace(spec, levels=decode_words(arrays, f"words/{array_name(key)}", key))


# -- text


def put_words(arrays: Arrays, prefix: str, words: Words) -> None:
    """Store words as two arrays: their concatenated bytes, and the offsets at which they begin and end."""
    arrays[f"{prefix}/bytes"] = np.ascontiguousarray(words.data, dtype=np.uint8)
    arrays[f"{prefix}/offsets"] = np.ascontiguousarray(words.offsets, dtype=np.int64)


def decode_words(arrays: Arrays, prefix: str, key: object) -> Words:
    """Return the words of a column after checking that they are UTF-8, sorted and unique."""
    data, offsets = arrays.get(f"{prefix}/bytes"), arrays.get(f"{prefix}/offsets")
    if data is None or offsets is None:
        raise ModelFileError(f"the words of column {key!r} are not there.")
    sound = data.dtype == np.uint8 and data.ndim == 1 and offsets.dtype == np.int64 and offsets.ndim == 1
    require(sound, f"the words of column {key!r} are not bytes and where each word begins.")
    ends = len(offsets) and offsets[0] == 0 and offsets[-1] == len(data) and (np.diff(offsets) >= 0).all()
    require(ends, f"the words of column {key!r} do not begin and end where their bytes do.")
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    words = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    try:
        words.cast(pa.large_string())
    except pa.ArrowInvalid:
        raise ModelFileError(f"the words of column {key!r} are not all UTF-8.") from None
    rising = len(words) < 2 or pc.all(pc.less(words[:-1], words[1:])).as_py()
    require(rising, f"the words of column {key!r} are not in order, or not each there once.")
    return Words(data, offsets)


def encode_reading(reading: Reading) -> Document:
    """Encode the tokenisation of documents as JSON; raise a `DataError` if it could not be read back."""
    document: Document = encode(reading, {}, "reading")
    try:
        decode(Reading, document, {}, "reading", "how the text of column 'text' is read")
    except ModelFileError as error:
        raise DataError(f"text read in this way cannot be kept in a model file: {error}") from None
    return document
