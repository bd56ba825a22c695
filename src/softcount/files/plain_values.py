"""Levels, classes and column keys as JSON can hold them, and settings made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softcount.errors import DataError, ModelFileError


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
