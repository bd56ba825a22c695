"""What somebody gives a network to ask what follows: levels, sets of them, ranges, likelihoods, numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.families import Family, Params
from softcount.models.net import Net, levels_of
from softcount.models.nodes import Node
from softcount.networks.row_evidence import Evidence
from softcount.sources import wording
from softcount.table import Table
from softcount.table.schema import Key

LevelPlaces = Mapping[tuple[Key, type, Any], tuple[int, int]]
"""By node, type and level, the number of the node among the discrete ones and that of the level."""
EXACT = (str, bool, int, float)
"""Types of cells that are a level only where they are the same word for word, or number."""
SURE = (str, bool, int, float, np.generic)


def mapping(given: Any) -> dict[Key, Any]:
    """What is given, as a dictionary without what is None."""
    if given is not None and not isinstance(given, Mapping):
        raise DataError(
            f"given is a mapping of nodes to what is known of them, such as {{'Rain': 'yes'}}, not {given!r}."
        )
    return {key: value for key, value in (given or {}).items() if value is not None}


def split(net: Net, given: Mapping[Key, Any]) -> tuple[dict[Key, Any], dict[Key, Any]]:
    """What is certain, and what is a set, a range or a likelihood; unknown nodes are refused."""
    sure: dict[Key, Any] = {}
    soft: dict[Key, Any] = {}
    for key, value in given.items():
        net.graph.place(key)
        (sure if is_sure(value) else soft)[key] = value
    return sure, soft


def is_sure(value: Any) -> bool:
    """Whether what is given of a node is one level or number."""
    return isinstance(value, SURE) or not isinstance(value, (Mapping, list, tuple, set, frozenset, np.ndarray))


def level_places(net: Net) -> LevelPlaces:
    """Where every level stands; of numbers that are cut none, because a number can be in any interval."""
    return {
        (net.each[place].key, type(level), level): (new, code)
        for new, place in enumerate(net.places)
        if net.each[place].key not in net.cuts
        for code, level in enumerate(levels_of(net.each[place]) or ())
    }


def exact_codes(net: Net, places: LevelPlaces, sure: Mapping[Key, Any]) -> np.ndarray | None:
    """One row of codes, where all that is given are levels as they are; None where it must be read as a table is."""
    found = np.full((1, len(net.places)), -1)
    for key, value in sure.items():
        place = places.get((key, type(value), value)) if type(value) in EXACT else None
        if place is None:
            return None
        found[0, place[0]] = place[1]
    return found


def with_certain_levels(net: Net, codes: np.ndarray, sure: Mapping[Key, Any]) -> np.ndarray:
    """Codes of one row with the levels of hidden nodes and of cut numbers that are given by name."""
    found = codes.copy()
    for new, place in enumerate(net.places):
        node = net.each[place]
        if node.key in sure and not node.columns and found[0, new] < 0:
            found[0, new] = level_number(node, sure[node.key])
    return found


def level_number(node: Node, level: Any) -> int:
    """The number of a level, which must be one of the node's."""
    levels = list(levels_of(node) or ())
    if level in levels:
        return levels.index(level)
    named = [str(own) for own in levels]
    if str(level) in named:
        return named.index(str(level))
    raise DataError(f"node {node.key!r} has no level {wording.cell(level)}. It has: {wording.and_others(levels)}.")


def refuse_given(net: Net, table: Table, given: Mapping[Key, Any]) -> None:
    """Raise where a table, read for one row of what is given, has met a level nobody knows or what is no number."""
    for key, value in given.items():
        if table.schema[key].kind.coded and table.unseen[key]:
            level_number(net.nodes[key], value)
        if key in table.outside:
            spec = table.schema[key]
            raise DataError(f"node {key!r} is {spec.kind} ({spec.why}), so {wording.cell(value)} says nothing of it.")


def likelihoods(net: Net, soft: Mapping[Key, Any]) -> tuple[dict[int, np.ndarray], dict[Key, tuple[float, float]]]:
    """By number of a discrete node, the likelihood of each level; and ranges of numbers that are leaves."""
    number = {net.each[place].key: new for new, place in enumerate(net.places)}
    found: dict[int, np.ndarray] = {}
    ranges: dict[Key, tuple[float, float]] = {}
    for key, value in soft.items():
        if key in number:
            found[number[key]] = _likelihood(net, net.nodes[key], value)[None]
        else:
            ranges[key] = _range(key, value)
    return found, ranges


def _likelihood(net: Net, node: Node, value: Any) -> np.ndarray:
    levels = list(levels_of(node) or ())
    weights = np.zeros(len(levels))
    if isinstance(value, Mapping):
        for level, weight in value.items():
            weights[level_number(node, level)] = _weight(node.key, weight)
    elif isinstance(value, tuple) and len(value) == 2 and all(_is_number(end) for end in value):
        weights[_levels_between(net, node, value)] = 1.0
    else:
        for level in value:
            weights[level_number(node, level)] = 1.0
    if not weights.any():
        raise DataError(f"what is given of {node.key!r} leaves none of its levels possible.")
    return weights


def _weight(key: Key, weight: Any) -> float:
    if not _is_number(weight) or not 0 <= float(weight) < np.inf:
        raise DataError(f"the likelihood of a level of {key!r} is a number of 0 or more, not {weight!r}.")
    return float(weight)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _levels_between(net: Net, node: Node, ends: tuple[Any, Any]) -> list[int]:
    """Levels that are numbers within a range, or intervals that reach into it."""
    low, high = _range(node.key, ends)
    if node.key in net.cuts:
        edges = net.cuts[node.key]
        return list(range(int(np.searchsorted(edges, low)), int(np.searchsorted(edges, high)) + 1))
    levels = list(levels_of(node) or ())
    if not all(_is_number(level) for level in levels):
        raise DataError(f"node {node.key!r} has no numbers for levels, so a range of them means nothing. Give a set.")
    return [place for place, level in enumerate(levels) if low <= float(level) <= high]  # type: ignore[arg-type]


def _range(key: Key, ends: Any) -> tuple[float, float]:
    if not (isinstance(ends, (tuple, list)) and len(ends) == 2 and all(_is_number(end) for end in ends)):
        raise DataError(f"{key!r} is a number: give one, or a range of them (low, high), not {ends!r}.")
    low, high = float(ends[0]), float(ends[1])
    if not low <= high:
        raise DataError(f"the range of {key!r} runs from {low:g} to {high:g}, which holds nothing.")
    return low, high


def share_between(family: Family, params: Params, ends: tuple[float, float]) -> np.ndarray:
    """The probability, in every group, of a number from one end to the other, both of them within."""
    low = np.ceil(ends[0]) - 1.0 if family.whole_numbers else ends[0]
    return np.asarray(family.cdf(params, ends[1]) - family.cdf(params, low))


def with_factors(evidence: Evidence, scope: Sequence[int], logs: np.ndarray) -> Evidence:
    """The evidence and what speaks of some nodes together."""
    key = tuple(scope)
    before = evidence.factors.get(key, 0.0)
    return Evidence(evidence.codes, evidence.likelihoods, {**evidence.factors, key: before + logs})
