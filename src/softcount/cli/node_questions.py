"""What is asked of a network's nodes on the command line: their names, levels, sets of levels and ranges."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any

from softcount.cli.named_columns import split_given, suggestion
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.fitted.fitted_net import FittedNet
    from softcount.table import Key
    from softcount.table.cell_forms import CellForm

RANGE, OR, WEIGHT = "..", "|", ":"


def node_keys(fitted: FittedNet) -> dict[str, Key]:
    """The nodes by the text that names them."""
    from softcount.table.names import labels

    return {name: key for key, name in labels(fitted.net.graph.names).items()}


def node_key(fitted: FittedNet, name: str, option: str) -> Key:
    """The node of that name."""
    keys = node_keys(fitted)
    if name in keys:
        return keys[name]
    raise DataError(f"{option}: the network has no node {name!r}.\n  {suggestion(name, keys)}")


def given_nodes(fitted: FittedNet, texts: Iterable[str]) -> dict[Key, Any]:
    """Node -> level, number, list of levels, level to likelihood, or range (low, high), for each NODE=VALUE."""
    keys = node_keys(fitted)
    return {keys[name]: _value(fitted, keys[name], text) for name, text in split_given(texts, keys, "network", "node")}


def _value(fitted: FittedNet, key: Key, text: str) -> Any:
    levels = {str(level): level for level in fitted.levels.get(key, ())}
    if text in levels:
        return levels[text]
    parts = text.split(OR)
    weighed = _likelihood(key, parts, levels)
    if weighed is not None:
        return weighed
    if len(parts) > 1 and levels:
        return [levels[part] if part in levels else _refuse_level(key, part, levels) for part in parts]
    is_number = key in fitted.net.cuts or not levels
    spec = fitted.schema.by_key.get(key)
    ends = [_number(part, None if spec is None else spec.written) for part in text.split(RANGE)]
    if len(ends) == 2 and all(end is not None for end in ends) and (is_number or _are_numbers(levels.values())):
        return ends[0], ends[1]
    if is_number and len(ends) == 1 and ends[0] is not None:
        return ends[0]
    if not levels:
        raise DataError(f"--given: node {str(key)!r} holds numbers, and {text!r} is neither one nor a range (20..30).")
    return _refuse_level(key, text, levels)


def _likelihood(key: Key, parts: list[str], levels: dict[str, Any]) -> dict[Any, float] | None:
    """How likely levels make what was seen, where each is written level:number."""
    pairs = [part.rpartition(WEIGHT) for part in parts]
    weights = [_number(weight) for _, _, weight in pairs]
    if not levels or any(weight is None for weight in weights) or not all(level for level, _, _ in pairs):
        return None
    for level, _, _ in pairs:
        if level not in levels:
            _refuse_level(key, level, levels)
    return {levels[level]: float(weight or 0.0) for (level, _, _), weight in zip(pairs, weights, strict=True)}


def _number(text: str, form: CellForm | None = None) -> float | None:
    """The number that a text is, plainly or in the form of a column's cells."""
    from softcount.table.cell_forms import number_in

    value = number_in(form, text)
    return value if isfinite(value) else None


def _are_numbers(levels: Iterable[object]) -> bool:
    return all(isinstance(level, (int, float)) and not isinstance(level, bool) for level in levels)


def _refuse_level(key: Key, text: str, levels: Iterable[str]) -> Any:
    raise DataError(f"--given: node {str(key)!r} has no level {text!r}.\n  {suggestion(text, levels)}")
