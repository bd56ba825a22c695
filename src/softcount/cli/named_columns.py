"""Columns and values named on the command line, found in a model."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted
    from softcount.table.schema import Key


def column_key(fitted: Fitted, name: str, option: str) -> Key:
    """The model's column of that name; a table without names has numbers."""
    keys = model_keys(fitted)
    if name in keys:
        return keys[name]
    raise DataError(f"{option}: the model has no column {name!r}.\n  {suggestion(name, keys)}")


def refuse_text(fitted: Fitted, key: Key, model: str) -> None:
    """Raise where a column is text, whose distribution nobody could read."""
    if key != fitted.target and fitted.schema[key].kind == "text":
        raise DataError(
            f"--of: column {str(key)!r} is text, and has too many documents to give each a probability.\n"
            f"  Draw some: softcount sample {model}     or see the words of each class: softcount show {model}"
        )


def model_keys(fitted: Fitted) -> dict[str, Key]:
    """The columns one can ask about, by the text that names them."""
    keys = [*fitted.params, *([] if fitted.target is None else [fitted.target])]
    single = [part for key in keys for part in (key if isinstance(key, tuple) else (key,))]
    return {str(key): key for key in single}


def suggestion(name: str, known: Iterable[str]) -> str:
    """What the person may have meant.

    >>> suggestion("incom", ["age", "income"])
    "Did you mean 'income'?"
    """
    names = list(known)
    near = get_close_matches(name, names, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    from softcount.report.plain_text import listed

    return f"It has {listed(names, most=20)}."


def understood_given(fitted: Fitted, texts: Iterable[str]) -> dict[Key, Any]:
    """Column -> value for each COL=VALUE, numbers as numbers and levels as the model holds them."""
    keys = model_keys(fitted)
    known: dict[Key, Any] = {}
    for text in texts:
        name, value = _split(text, keys)
        if keys[name] in known:
            raise click.UsageError(f"--given {name!r} is given twice")
        known[keys[name]] = _value(fitted, keys[name], value)
    return known


def _split(text: str, keys: dict[str, Key]) -> tuple[str, str]:
    """The column and the value; either may hold "=", so the longest name that is a column wins."""
    places = [place for place, char in enumerate(text) if char == "="]
    if not places:
        raise click.UsageError(f"--given {text!r} is not COL=VALUE, such as sex=Female")
    for place in reversed(places):
        if text[:place] in keys:
            return text[:place], text[place + 1 :]
    name = text[: places[0]]
    raise DataError(f"--given: the model has no column {name!r}.\n  {suggestion(name, keys)}")


def _value(fitted: Fitted, key: Key, text: str) -> Any:
    if key == fitted.target and fitted.classes is not None:
        return class_value(fitted, text, "--given")
    spec = fitted.schema[key]
    if spec.kind == "text":  # its levels are words, the value is a document
        return text
    return _finite(key, text) if spec.kind.numeric else _level(spec.levels, text)


def _finite(key: Key, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise DataError(f"--given: column {str(key)!r} holds numbers, and {text!r} is not one.")
    return value


def _level(levels: Iterable[Any], text: str) -> Any:
    # A level the model has not seen goes on as text: the prior has mass in reserve for it.
    return next((level for level in levels if str(level) == text), text)


def class_value(fitted: Fitted, text: str, option: str) -> Any:
    """The class of that name; a mixture's classes are numbers."""
    classes = fitted.classes if fitted.classes is not None else list(range(fitted.n_groups))
    for value in classes:
        if str(value) == text:
            return value
    names = [str(value) for value in classes]
    raise DataError(f"{option}: the model has no class {text!r}.\n  {suggestion(text, names)}")
