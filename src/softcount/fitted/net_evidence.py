"""What somebody gives a network to ask what follows: levels, sets of them, ranges, likelihoods, numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.fitted.conditions import Condition, Levels, condition_of, is_number, number_of
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
    return isinstance(value, SURE) or not (isinstance(value, (Mapping, np.ndarray)) or condition_of(value))


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
    return Levels(f"node {node.key!r}", list(levels_of(node) or ())).place(level)


def refuse_given(net: Net, table: Table, given: Mapping[Key, Any]) -> None:
    """Raise where a table, read for one row of what is given, has met a level nobody knows or what is no number."""
    for key, value in given.items():
        if table.schema[key].kind.coded and table.unseen[key]:
            level_number(net.nodes[key], value)
        if key in table.outside:
            spec = table.schema[key]
            raise DataError(f"node {key!r} is {spec.kind} ({spec.why}), so {wording.cell(value)} says nothing of it.")


def likelihoods(net: Net, soft: Mapping[Key, Any]) -> tuple[dict[int, np.ndarray], dict[Key, Condition]]:
    """By number of a discrete node, the likelihood of each level; and conditions on numbers that are leaves."""
    number = {net.each[place].key: new for new, place in enumerate(net.places)}
    found: dict[int, np.ndarray] = {}
    ranges: dict[Key, Condition] = {}
    for key, value in soft.items():
        condition = condition_of(value)
        if key in number:
            found[number[key]] = _likelihood(net, net.nodes[key], value)[None]
        elif condition is None:
            raise DataError(f"{key!r} is a number: give one, or a range of them (low, high), not {value!r}.")
        else:
            ranges[key] = condition
    return found, ranges


def _likelihood(net: Net, node: Node, value: Any) -> np.ndarray:
    levels = list(levels_of(node) or ())
    weights = np.zeros(len(levels))
    if isinstance(value, Mapping):
        for level, weight in value.items():
            weights[level_number(node, level)] = _weight(node.key, weight)
    else:
        condition = condition_of(value)
        assert condition is not None  # it was no single value
        allowed = condition.allows(Levels(f"node {node.key!r}", levels, net.cuts.get(node.key)))
        weights[allowed] = 1.0
        within = _share_within(net, node.key, condition) if node.key in net.cuts else weights
        weights = within if (within * allowed).any() else weights
    if not weights.any():
        raise DataError(f"what is given of {node.key!r} leaves none of its levels possible.")
    return weights


def _share_within(net: Net, key: Key, condition: Condition) -> np.ndarray:
    """How much of each interval of a cut number a condition allows; nothing if it names intervals or single numbers."""
    density, half = net.density_within(key), 0.5 if net.schema[key].whole else 0.0
    try:
        pieces = condition.pieces(number_of)
    except DataError:  # it names intervals
        return np.zeros(len(density.shares))
    found = np.zeros(len(density.shares))
    for piece in pieces:
        low = piece.low - half if piece.low_in else piece.low + half
        high = piece.high + half if piece.high_in else piece.high - half
        found += density.share_between(low, max(low, high))
    return found


def _weight(key: Key, weight: Any) -> float:
    if not is_number(weight) or not 0 <= float(weight) < np.inf:
        raise DataError(f"the likelihood of a level of {key!r} is a number of 0 or more, not {weight!r}.")
    return float(weight)


def with_factors(evidence: Evidence, scope: Sequence[int], logs: np.ndarray) -> Evidence:
    """The evidence and what speaks of some nodes together."""
    key = tuple(scope)
    before = evidence.factors.get(key, 0.0)
    return Evidence(evidence.codes, evidence.likelihoods, {**evidence.factors, key: before + logs})
