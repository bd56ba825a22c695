"""Encode records as JSON and arrays, and decode them by their annotations.

A `Struct` becomes an object of its fields, and an array becomes `{"array": name}`. A list of one-dimensional arrays is
stored as one array and their lengths. A large array that is mostly zero is packed. Numbers that JSON cannot hold become
`{"float": "nan"}`. Nothing that is read is trusted: msgspec rejects values that are not of the annotated type, and a
document is accepted only if encoding its record again gives the same document.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Hashable, Mapping, Sequence
from enum import Enum
from functools import cache, reduce
from itertools import count
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
import numpy as np

from softcount.core.counts import Twofold
from softcount.core.ranges import Floats
from softcount.errors import DataError, ModelFileError, SoftcountError

Document = dict[str, Any]
Arrays = dict[str, np.ndarray]
Record = TypeVar("Record")

MOST_DEPTH = 64
"""Maximum nesting of objects and lists."""

MOST_BITS = 1024
"""Maximum size of an integer in bits."""


def to_json(document: dict[str, Any]) -> bytes:
    """Return the document as ASCII JSON; a `ValueError` names the first value that cannot be restored exactly.

    The only exception: tuples are restored as lists.

    >>> to_json({"tol": 1e-8, "levels": ["no", "yes"]})
    b'{"tol": 1e-08, "levels": ["no", "yes"]}'
    """
    check(document)
    return json.dumps(document, allow_nan=False).encode("ascii")


def from_json(text: bytes) -> Any:
    """Parse JSON more strictly than most readers.

    A `ValueError` is raised for NaN and infinities (also written 1e999), repeated keys and excessive nesting.

    >>> from_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: the key 'a' is given twice
    """
    value = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    check(value)
    return value


def check(value: Any, where: str = "document", depth: int = 0) -> None:
    """Raise a `ValueError` that names the place and the reason if JSON cannot hold the value exactly."""
    if depth > MOST_DEPTH:
        raise ValueError(f"{show(where)} is nested more than {MOST_DEPTH} deep")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{show(where)} has the key {show(key)}, which is not a string")
            check(item, f"{where}.{key[:40]}", depth + 1)  # shortened: a huge key is not copied for every item under it
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
    """Return a value from a file as one short, printable, quoted line."""
    line = ascii(text)
    return line if len(line) <= most else f"{line[: most - 4]}...{line[-1]}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {show(name)} is given twice")
        found[name] = value
    return found


# -- levels, classes and column keys


def plain(value: Any) -> Any:
    """Return a category, class or key in a form that JSON can hold; tuples become lists."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise DataError(f"{value!r} ({type(value).__name__}) cannot be kept in a model file.")


def key_of(value: Any) -> Any:
    """Restore a key from JSON: lists become tuples."""
    return tuple(key_of(part) for part in value) if isinstance(value, list) else value


# -- records

PLAIN = frozenset({str, bool, int, type(None)})
"""Types whose values JSON holds unchanged."""
SMALL = 4_096
"""Arrays with fewer cells are never packed."""
UNSOUND = (
    msgspec.ValidationError, SoftcountError, KeyError, TypeError, ValueError, IndexError, AttributeError,
    ArithmeticError, RecursionError, re.error,
)  # fmt: skip
"""Exceptions raised by invalid content of a file."""


def encode(record: Any, arrays: Arrays | None, at: str) -> Any:
    """Encode a record as JSON; its arrays are added to `arrays` under names that begin with `at`, or become lists.

    >>> arrays = {}
    >>> encode((np.arange(3.0), float("inf")), arrays, "parts"), list(arrays)
    ([{'array': 'parts/0'}, {'float': 'inf'}], ['parts/0'])
    """
    numbers = count()

    def put(array: np.ndarray) -> str:
        assert arrays is not None  # else arrays are lists
        name = f"{at}/{next(numbers)}"
        arrays[name] = np.asarray(array, order="C")
        return name

    def walk(value: Any) -> Any:
        if type(value) in PLAIN:  # nearly all of the 160,000 values of 10,000 columns
            return value
        if isinstance(value, str):  # a subclass of str: a database address whose text hides the password
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
            if arrays is None:
                return value.tolist()
            # Pack large arrays that are mostly zero, unless they hold a negative zero, which would lose its sign.
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
    kind: type[Record],
    document: Any,
    arrays: Arrays,
    at: str,
    what: str,
    infinite: Container[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> Record:
    """Decode a record that `encode` produced; a `ModelFileError` about `what` is raised if it is invalid.

    Only fields named in `infinite` may hold numbers that are not finite. With `sizes`, those of the axes that
    annotations name, arrays are checked too.
    """
    try:
        found = msgspec.convert(_restore(document, arrays, infinite, ""), kind, dec_hook=_custom)
        if sizes is not None:
            check_arrays(found, sizes)
    except UNSOUND as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(f"{what} makes no sense: {reason:.200}") from None
    if encode(found, {}, at) != document:
        raise ModelFileError(f"{what} makes no sense: parts are missing, or there are more than there should be.")
    return found


def _custom(kind: Any, value: Any) -> Any:
    """Check values of types that JSON does not have: arrays, already restored, and column keys."""
    if kind is Hashable:
        return check_column(value)
    if not isinstance(value, kind):
        raise ModelFileError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def check_arrays(record: Any, sizes: Mapping[str, int]) -> None:
    """Raise unless the arrays of a record, and of the records in it, are what their annotations say."""
    kind: Any = type(record)
    for name, rule in _annotated_arrays(kind):
        value = getattr(record, name)
        parts = value if isinstance(value, (tuple, list)) else (value,)
        if rule is None:
            for part in parts:
                if isinstance(part, msgspec.Struct):
                    check_arrays(part, sizes)
            continue
        shape = [None if axis is None else _size_of(record, axis, sizes) for axis in rule.axes]
        for place, part in enumerate(parts):
            sound = part.dtype == np.float64 and part.ndim == len(shape) and bool(np.isfinite(part).all())
            sound = sound and all(a is None or a == b for a, b in zip(shape, part.shape, strict=True))
            sound = sound and (not rule.positive or bool((part > 0).all()))
            if not sound or (rule.least is not None and (part < rule.least).any()):
                raise ModelFileError(
                    f"array {place} of {name} is not finite numbers in their range, one for each place"
                )


def _size_of(record: Any, axis: str, sizes: Mapping[str, int]) -> int:
    if axis in sizes:
        return sizes[axis]
    found = reduce(getattr, axis.split("."), record)
    return found if isinstance(found, int) else len(found)


@cache
def _annotated_arrays(kind: Any) -> list[tuple[str, Floats | None]]:
    """Return the fields of a record that may hold arrays or records, with the annotation of the arrays."""
    hints = get_type_hints(kind, include_extras=True)

    def rule_of(hint: Any) -> Floats | None:
        own = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Floats)]
        return next((found for found in (*own, *map(rule_of, get_args(hint))) if found is not None), None)

    return [(name, rule_of(hints[name])) for name in getattr(kind, "__struct_fields__", ())]


def _restore(value: Any, arrays: Arrays, infinite: Container[str], name: str) -> Any:
    """Replace references to arrays and to non-finite numbers by their values."""
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


def check_column(value: Any) -> Any:
    sound = isinstance(value, (str, int)) and not isinstance(value, bool)
    require(sound, f"{value!r:.80} is not a column: neither a name nor a place.")
    return value


def require(sound: object, wrong: str) -> None:
    """Raise a `ModelFileError` if the content of a file is not sound."""
    if not sound:
        raise ModelFileError(wrong)


def finite_array(array: np.ndarray, shape: tuple[int, ...] | None, what: str) -> np.ndarray:
    """Return an array of a file after checking that it holds finite float64 numbers of this shape."""
    sound = array.dtype == np.float64 and (shape is None or array.shape == shape) and np.isfinite(array).all()
    require(sound, f"{what} makes no sense: not finite numbers, one for each place.")
    return array


# -- packed arrays: one bit per cell that marks non-zero cells, and the non-zero values
# The counts of 20 classes and 60,000 words are 9.6 MB of numbers, four fifths of them zero; packed they take 2 MB.

LARGEST_COUNT = 1e290
"""Larger counts could overflow in sums."""


def _pack(array: np.ndarray) -> Arrays:
    """Pack an array; the values get the smallest type that holds them exactly."""
    flat = array.reshape(-1)
    values, top = flat[flat != 0], flat.max(initial=0.0)
    if top < 2**31 and flat.min(initial=0.0) >= 0 and (values == np.floor(values)).all():
        values = values.astype(np.uint8 if top < 256 else np.int32)
    return {"cells": np.packbits(flat != 0), "values": values}


def _unpack(parts: Arrays, shape: Sequence[Any], wrong: str) -> np.ndarray:
    """Unpack an array, which is at most 64 times as large as the file."""
    require(parts.keys() == {"cells", "values"} and all(type(x) is int and x >= 0 for x in shape), wrong)
    cells, values, size = parts["cells"], parts["values"], math.prod(shape)
    require(cells.dtype == np.uint8 and cells.shape == (-(-size // 8),), wrong)
    there = np.unpackbits(cells, count=size).astype(bool)
    require(values.dtype.kind in "iuf" and values.shape == (np.count_nonzero(there),), wrong)
    whole = np.zeros(size)
    whole[there] = values
    return whole.reshape(shape)


def encode_counts(counts: Twofold) -> Arrays:
    """Return counts as arrays: both halves, or packed if there are many and the lower half is zero."""
    hi = np.ascontiguousarray(counts.hi)
    if hi.size < SMALL or counts.lo.any() or np.signbit(hi[hi == 0]).any():
        return {"hi": hi, "lo": np.ascontiguousarray(counts.lo)}
    return _pack(hi)


def decode_counts(parts: Arrays, shape: tuple[int, ...], name: str) -> Twofold:
    wrong = f"the counts of {name} make no sense."
    if "cells" in parts:
        pair = Twofold.of(_unpack(parts, shape, wrong))
    else:
        require(parts.keys() == {"hi", "lo"}, wrong)
        pair = Twofold(parts["hi"], parts["lo"])
        require(pair.hi.dtype == pair.lo.dtype == np.float64 and pair.hi.shape == pair.lo.shape == shape, wrong)
    require((np.abs(pair.value) <= LARGEST_COUNT).all(), wrong)
    return pair
