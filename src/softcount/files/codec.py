"""Records as JSON and arrays, and back by their annotations.

A `Struct` is an object of its fields. An array is `{"array": name}`, arrays of one axis in a row are one array and
their lengths, a large array that is mostly zero is packed, and numbers that JSON does not have are `{"float": "nan"}`.
What is read is trusted for nothing: msgspec refuses values that are not of the annotated type, and a document is taken
only if it is what the record that was made of it would be written as.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Hashable, Sequence
from enum import Enum
from itertools import count
from typing import Any, TypeVar

import msgspec
import numpy as np

from softcount.core.twofold import Twofold
from softcount.errors import DataError, ModelFileError, SoftcountError

Document = dict[str, Any]
Arrays = dict[str, np.ndarray]
Record = TypeVar("Record")

MOST_DEPTH = 64
"""Deepest nesting of objects and lists."""

MOST_BITS = 1024
"""Widest whole number."""


def to_json(document: dict[str, Any]) -> bytes:
    """The document as ASCII JSON; a `ValueError` names the first value that would not come back the same.

    Tuples come back as lists; that is the one change.

    >>> to_json({"tol": 1e-8, "levels": ["no", "yes"]})
    b'{"tol": 1e-08, "levels": ["no", "yes"]}'
    """
    check(document)
    return json.dumps(document, allow_nan=False).encode("ascii")


def from_json(text: bytes) -> Any:
    """The value of a JSON text, refusing what JSON readers usually let through.

    Refused with a `ValueError`: NaN and infinities (also spelled 1e999), a key given twice, absurd depth.

    >>> from_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: the key 'a' is given twice
    """
    value = json.loads(
        text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite
    )
    check(value)
    return value


def check(value: Any, where: str = "document", depth: int = 0) -> None:
    """Nothing, if JSON can hold the value exactly; otherwise a `ValueError` saying where it is and why not."""
    if depth > MOST_DEPTH:
        raise ValueError(f"{show(where)} is nested more than {MOST_DEPTH} deep")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{show(where)} has the key {show(key)}, which is not a string")
            check(item, f"{where}.{key[:40]}", depth + 1)  # cut: a huge key must not be copied for every item under it
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            check(item, f"{where}[{position}]", depth + 1)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{show(where)} is {value}, which JSON cannot hold; keep it in an array")
    elif isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            raise ValueError(f"{show(where)} is a whole number of more than {MOST_BITS} bits")
    elif value is not None and not isinstance(value, str):
        raise ValueError(f"{show(where)} is a {type(value).__name__}, which JSON cannot hold")


def show(text: object, most: int = 60) -> str:
    """A value from a file as one short printable line, quoted."""
    line = ascii(text)
    return line if len(line) <= most else f"{line[: most - 4]}...{line[-1]}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {show(name)} is given twice")
        found[name] = value
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}, which is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {show(digits)} is too large")
    return value


# -- levels, classes and column keys


def plain(value: Any) -> Any:
    """A level, class or key as JSON can hold it; tuples are lists."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise DataError(f"{value!r} ({type(value).__name__}) cannot be kept in a model file.")


def key_of(value: Any) -> Any:
    """Back from JSON: lists are tuples."""
    return tuple(key_of(part) for part in value) if isinstance(value, list) else value


# -- records

PLAIN = frozenset({str, bool, int, type(None)})
"""Types whose values JSON holds as they are."""
SMALL = 4_096
"""Cells below which an array is kept as it is."""
UNSOUND = (
    msgspec.ValidationError, SoftcountError, KeyError, TypeError, ValueError, IndexError, AttributeError,
    ArithmeticError, RecursionError, re.error,
)  # fmt: skip
"""What comes of content that makes no sense."""


def encode(record: Any, arrays: Arrays, at: str) -> Any:
    """A record as JSON; its arrays go to `arrays`, under names that begin with `at`.

    >>> arrays = {}
    >>> encode((np.arange(3.0), float("inf")), arrays, "parts"), list(arrays)
    ([{'array': 'parts/0'}, {'float': 'inf'}], ['parts/0'])
    """
    numbers = count()

    def put(array: np.ndarray) -> str:
        name = f"{at}/{next(numbers)}"
        arrays[name] = np.asarray(array, order="C")
        return name

    def walk(value: Any) -> Any:
        if type(value) in PLAIN:  # of the 160,000 values of 10,000 columns nearly all
            return value
        if isinstance(value, str):  # an address of a database, which shows no password
            return str(value)
        if isinstance(value, (Enum, np.generic)):
            return walk(value.value if isinstance(value, Enum) else value.item())
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, msgspec.Struct):
            config = value.__struct_config__
            found = {} if config.tag_field is None else {config.tag_field: config.tag}
            for name in value.__struct_fields__:
                own = getattr(value, name)
                found[name] = own if type(own) in PLAIN else walk(own)
            return found
        if isinstance(value, np.ndarray):
            # Packed, if it is large and mostly zero; a negative zero would come back as zero.
            large = value.size >= SMALL and value.dtype == np.float64 and not np.signbit(value[value == 0]).any()
            if not large or np.count_nonzero(value) >= value.size // 2:
                return {"array": put(value)}
            packed = {name: put(part) for name, part in _pack(value).items()}
            return packed | {"shape": list(value.shape)}
        if isinstance(value, (tuple, list)):
            if len(value) > 1 and all(isinstance(x, np.ndarray) and x.ndim == 1 for x in value):
                return {"split": put(np.concatenate(value)), "lengths": [len(x) for x in value]}
            return [walk(x) for x in value]
        if isinstance(value, dict):
            return {name: walk(x) for name, x in value.items()}
        raise DataError(f"{value!r:.80} ({type(value).__name__}) cannot be kept in a model file.")

    return walk(record)


def decode(
    kind: type[Record], document: Any, arrays: Arrays, at: str, what: str, infinite: Container[str] = ()
) -> Record:
    """A record back from what `encode` made; a `ModelFileError` about `what` if it is none.

    Only fields named in `infinite` may hold numbers that are not finite.
    """
    try:
        found = msgspec.convert(_restore(document, arrays, infinite, ""), kind, dec_hook=_custom)
    except UNSOUND as error:
        said = " ".join(str(error).split())
        raise ModelFileError(f"{what} makes no sense: {said:.200}") from None
    if encode(found, {}, at) != document:
        raise ModelFileError(f"{what} makes no sense: parts are missing, or there are more than there should be.")
    return found


def _custom(kind: Any, value: Any) -> Any:
    """Values of types that JSON does not have: arrays, which are there by now, and keys of columns."""
    if kind is Hashable:
        return column_from(value)
    if not isinstance(value, kind):
        raise ModelFileError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _restore(value: Any, arrays: Arrays, infinite: Container[str], name: str) -> Any:
    """The same with the arrays and odd numbers that it refers to."""
    if isinstance(value, list):
        return [_restore(x, arrays, infinite, name) if isinstance(x, (dict, list)) else x for x in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"array"}:
        return _named(value["array"], arrays)
    if value.keys() == {"split", "lengths"}:
        lengths, whole = value["lengths"], _named(value["split"], arrays)
        if not all(type(x) is int and x >= 0 for x in lengths) or whole.shape != (sum(lengths),):
            raise ModelFileError("arrays in a row are not as long as they should be")
        return np.split(whole, np.cumsum(lengths)[:-1])
    if value.keys() == {"cells", "values", "shape"}:
        parts = {name: _named(value[name], arrays) for name in ("cells", "values")}
        return _unpack(parts, value["shape"], "a packed array is not of its shape")
    if value.keys() == {"float"} and name in infinite and value["float"] in ("nan", "inf", "-inf"):
        return float(value["float"])
    return {key: _restore(x, arrays, infinite, key) if isinstance(x, (dict, list)) else x for key, x in value.items()}


def _named(name: Any, arrays: Arrays) -> np.ndarray:
    if not isinstance(name, str) or name not in arrays:
        raise ModelFileError(f"the array {show(name)} is not there")
    return arrays[name]


def column_from(value: Any) -> Any:
    """A column's name or place back."""
    sound = isinstance(value, (str, int)) and not isinstance(value, bool)
    require(sound, f"{value!r:.80} is no column: neither a name nor a place.")
    return value


def require(sound: object, wrong: str) -> None:
    """Raise an error about a file's content if it is not sound."""
    if not sound:
        raise ModelFileError(wrong)


def finite_array(array: np.ndarray, shape: tuple[int, ...] | None, what: str) -> np.ndarray:
    """An array of a file, if it holds finite numbers of this shape."""
    sound = array.dtype == np.float64 and (shape is None or array.shape == shape) and np.isfinite(array).all()
    require(sound, f"{what} makes no sense: not finite numbers, one for each place.")
    return array


# -- packed arrays: one bit for each cell, whether it is not zero, and the values of those that are not.
# The counts of 20 classes and 60,000 words are 9.6 MB of numbers, four fifths of them zero; packed they take 2 MB.

LARGEST_COUNT = 1e290
"""Counts beyond this could not be added up."""


def _pack(array: np.ndarray) -> Arrays:
    """The values are of the smallest type that holds them exactly."""
    flat = array.reshape(-1)
    values, top = flat[flat != 0], flat.max(initial=0.0)
    if top < 2**31 and flat.min(initial=0.0) >= 0 and (values == np.floor(values)).all():
        values = values.astype(np.uint8 if top < 256 else np.int32)
    return {"cells": np.packbits(flat != 0), "values": values}


def _unpack(parts: Arrays, shape: Sequence[Any], wrong: str) -> np.ndarray:
    """A packed array; at most 64 times as large as the file."""
    require(parts.keys() == {"cells", "values"} and all(type(x) is int and x >= 0 for x in shape), wrong)
    cells, values, size = parts["cells"], parts["values"], math.prod(shape)
    require(cells.dtype == np.uint8 and cells.shape == (-(-size // 8),), wrong)
    there = np.unpackbits(cells, count=size).astype(bool)
    require(values.dtype.kind in "iuf" and values.shape == (np.count_nonzero(there),), wrong)
    whole = np.zeros(size)
    whole[there] = values
    return whole.reshape(shape)


def counts_parts(counts: Twofold) -> Arrays:
    """Counts as arrays: both halves, or packed if they are many and the lower half is zero."""
    hi = np.ascontiguousarray(counts.hi)
    if hi.size < SMALL or counts.lo.any() or np.signbit(hi[hi == 0]).any():
        return {"hi": hi, "lo": np.ascontiguousarray(counts.lo)}
    return _pack(hi)


def counts_from(parts: Arrays, shape: tuple[int, ...], name: str) -> Twofold:
    wrong = f"the counts of {name} make no sense."
    if "cells" in parts:
        pair = Twofold.of(_unpack(parts, shape, wrong))
    else:
        pair = Twofold(parts["hi"], parts["lo"])
        sound = parts.keys() == {"hi", "lo"} and pair.hi.dtype == pair.lo.dtype == np.float64
        require(sound and pair.hi.shape == pair.lo.shape == shape, wrong)
    require((np.abs(pair.value) <= LARGEST_COUNT).all(), wrong)
    return pair
