"""One JSON document: numbers as numbers, what is not a number as null, keys as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, time
from typing import Any


def as_json(value: Any) -> str:
    """The value as an indented JSON document, ended by a newline; NaN and infinities become null.

    >>> print(as_json({"a": float("nan"), 2: (1.5, None)}), end="")
    {
      "a": null,
      "2": [
        1.5,
        null
      ]
    }
    """
    return json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def jsonable(value: Any) -> Any:
    """The value in the types JSON knows; NumPy scalars and arrays become numbers and lists."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        # str(), because an enumeration of strings is a string; a lone surrogate has no UTF-8.
        return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key_text(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    return _from_other(value)


def key_text(key: object) -> str:
    """A column key or level as the name of a JSON member; a block of columns is its names joined by commas."""
    if isinstance(key, tuple):
        return ", ".join(map(key_text, key))
    return jsonable(str(key))


def _from_other(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, date | time):
        return value.isoformat()
    return jsonable(str(value))
