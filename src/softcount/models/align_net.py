"""Counts of one network in the levels of another of the same edges: the step before `+` joins two fits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount import remedies
from softcount.counts import Counts
from softcount.errors import DataError
from softcount.models.align import SLACK, sorted_levels, united_leaf, united_schema
from softcount.models.net import Net, levels_of
from softcount.models.nodes import Node
from softcount.numerics.twofold import Twofold


def united_net(left: Net, right: Net) -> Net:
    """A network that holds the levels of both, which must have the same edges."""
    if set(left.graph.names) != set(right.graph.names) or set(left.graph.edges) != set(right.graph.edges):
        odd = set(left.graph.edges) ^ set(right.graph.edges) or set(left.graph.names) ^ set(right.graph.names)
        raise DataError(
            f"the two networks differ: {next(iter(odd))!r} is in one of them only. Give both the same edges."
        )
    schema = united_schema(left.schema, right.schema, None)
    nodes = []
    for node in left.each:
        other = right.nodes[node.key]
        if not node.family.mergeable:
            raise DataError(
                f"the counts of {node.key!r} ({node.family.name}) do not add to another fit's. Fit all rows."
            )
        if node.columns:
            nodes.append(united_leaf(node, schema, node.setting.groups))
        elif node.key == left.target == right.target:
            levels = tuple(sorted_levels([*node.setting.levels, *other.setting.levels]))
            nodes.append(replace(node, setting=replace(node.setting, levels=levels)))
        else:
            _refuse_other_levels(left, right, node, other)
            nodes.append(node)
    return replace(left, schema=schema, each=tuple(nodes))


def _refuse_other_levels(left: Net, right: Net, node: Node, other: Node) -> None:
    if node.key in left.cuts:
        same = node.key in right.cuts and np.array_equal(left.cuts[node.key], right.cuts[node.key])
        if not same:
            same_cut = remedies.either("cut={...}", "--cut")
            raise DataError(f"{node.key!r} is cut at other numbers in one network. Fit both with the same {same_cut}.")
    elif left is not right and tuple(node.setting.levels) != tuple(other.setting.levels):
        raise DataError(f"{node.key!r} has other levels in one network than in the other.")


def refuse_hidden(net: Net) -> None:
    """Raise where two fits cannot mean the same by the levels of a node."""
    if net.hidden:
        name = net.discrete.names[net.hidden[0]]
        raise DataError(f"{name!r} is hidden: the levels that two fits give it are not the same. Use partial_fit.")


def refuse_below_zero(net: Net, counts: Counts) -> None:
    """Raise where more was taken out of the counts than was in them."""
    for node in net.each:
        stats = counts.arrays[node.key].value
        rows = stats[..., :1] if node.family.signed else stats
        if (rows < -SLACK).any():
            raise DataError(
                f"node {node.key!r}: more is to be forgotten than was learned. Give rows the network was fitted on."
            )


def aligned_to(counts: Counts, old: Net, new: Net) -> Counts:
    """Counts by node of one network in the levels, anchors and axes of another."""
    arrays: dict[Hashable, Twofold] = {}
    for place, node in enumerate(new.each):
        was = old.nodes[node.key]
        parents = _levels_above(new, place)
        before = _levels_above(old, old.graph.number[node.key])
        if levels_of(node) is None:
            stats = node.family.moved(counts.arrays[node.key], was.family, was.setting, node.setting)
            own = None
        else:
            stats, own = counts.arrays[node.key], node.key
        arrays[node.key] = Twofold(*(_laid(half, old, new, before, parents, own) for half in (stats.hi, stats.lo)))
    return replace(counts, arrays=arrays)


def imagined_tables(hypers: Mapping[Any, Any], old: Net, new: Net) -> dict[Any, Any]:
    """The imagined counts that are tables of their own (an expert's, a file's), in the levels of another network."""
    found = {}
    for place, node in enumerate(new.each):
        alpha = hypers[node.key].get("alpha", np.zeros(0))
        if levels_of(node) is not None and alpha.ndim == 2:
            parents, before = _levels_above(new, place), _levels_above(old, old.graph.number[node.key])
            found[node.key] = {"alpha": _laid(alpha, old, new, before, parents, node.key)}
    return found


def _levels_above(net: Net, place: int) -> list[Any]:
    """The discrete parents of a node, whose levels its groups are."""
    return [net.graph.names[parent] for parent in net.graph.parents[place] if parent in net.places]


def _laid(half: np.ndarray, old: Net, new: Net, before: Sequence[Any], after: Sequence[Any], own: Any) -> np.ndarray:
    """(configurations x rest) with the levels of the parents, and of the node itself, at their new places."""
    rest = half.shape[1:] if own is None else ()
    axes = [*before, *([] if own is None else [own])]
    sizes = [len(levels_of(old.nodes[name]) or ()) for name in axes]
    turned = half.reshape(*sizes, *rest)
    order = [before.index(name) for name in after]
    turned = turned.transpose(*order, *range(len(before), turned.ndim))
    targets = [*after, *([] if own is None else [own])]
    wide = np.zeros((*(len(levels_of(new.nodes[name]) or ()) for name in targets), *rest))
    moves = [_moves(old, new, name) for name in targets]
    wide[np.ix_(*moves, *(range(size) for size in rest))] = turned
    groups = int(np.prod([len(levels_of(new.nodes[name]) or ()) for name in after], dtype=int))
    return wide.reshape(groups, *(rest or (-1,)))


def _moves(old: Net, new: Net, name: Any) -> list[int]:
    levels = list(levels_of(new.nodes[name]) or ())
    return [levels.index(level) for level in levels_of(old.nodes[name]) or ()]
