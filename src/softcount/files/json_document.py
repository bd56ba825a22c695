"""JSON that comes back exactly as it went in, or not at all; levels, classes and keys as it can hold them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from softcount.errors import DataError, ModelFileError

MOST_DEPTH = 64
"""Deepest nesting of objects and lists."""

MOST_BITS = 1024
"""Widest whole number."""


def encode(document: dict[str, Any]) -> bytes:
    """The document as ASCII JSON; a `ValueError` names the first value that would not come back the same.

    Tuples come back as lists; that is the one change.

    >>> encode({"tol": 1e-8, "levels": ["no", "yes"]})
    b'{"tol": 1e-08, "levels": ["no", "yes"]}'
    """
    check(document)
    return json.dumps(document, allow_nan=False).encode("ascii")


def decode(text: bytes) -> Any:
    """The value of a JSON text, refusing what JSON readers usually let through.

    Refused with a `ValueError`: NaN and infinities (also spelled 1e999), a key given twice, absurd depth.

    >>> decode(b'{"a": 1, "a": 2}')
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
    else:
        _check_leaf(value, where)


def show(text: object, most: int = 60) -> str:
    """A value from a file as one short printable line, quoted."""
    line = ascii(text)
    return line if len(line) <= most else f"{line[: most - 4]}...{line[-1]}"


def _check_leaf(value: Any, where: str) -> None:
    if value is None or isinstance(value, bool | str):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{show(where)} is {value}, which JSON cannot hold; keep it in an array")
    elif isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            raise ValueError(f"{show(where)} is a whole number of more than {MOST_BITS} bits")
    else:
        raise ValueError(f"{show(where)} is a {type(value).__name__}, which JSON cannot hold")


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


def nested_document(value: Any) -> Any:
    """A setting made of numbers, arrays and mappings by column, such as `fixed`."""
    if isinstance(value, Mapping):
        return {"columns": [[plain(key), nested_document(part)] for key, part in value.items()]}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [nested_document(part) for part in value] if isinstance(value, (list, tuple)) else plain(value)


def nested_from(value: Any) -> Any:
    """Such a setting back: mappings, lists and plain values."""
    if isinstance(value, dict):
        if set(value) != {"columns"}:
            raise ModelFileError(f"a setting by column has the parts {sorted(value)}.")
        return {key_of(key): nested_from(part) for key, part in value["columns"]}
    return [nested_from(part) for part in value] if isinstance(value, list) else value
