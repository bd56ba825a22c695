"""The graph of the best score of all, for a few nodes: dynamic programming over orders (Silander and Myllymaki).

In a graph without cycles some node has no child. Take it away, and the rest is such a graph again: the best graph of a
set of nodes is the best of a smaller set and the best parents in it for the node that is left.
"""

from __future__ import annotations

from math import prod

import numpy as np

from softcount.networks.family_scores import FamilyScores, Parents

CELLS = 1 << 24
"""Cells of all tables together up to which they are all counted: about a second."""


def is_affordable(families: FamilyScores, nodes: int) -> bool:
    """Whether there are at most so many nodes, and their tables are small enough to count every one."""
    sizes = families.counting.sizes
    if len(sizes) > nodes:
        return False
    all_sets = prod(1 + size for size in sizes)
    return sum(size * (all_sets // (1 + size)) for size in sizes) <= CELLS


def exact_search(families: FamilyScores) -> Parents:
    """The best graph that the rules allow; of those that score the same, always the same one.

    Sets of nodes are numbers, a bit for each node.
    """
    count = len(families.counting.sizes)
    best = [_best_within(families, node) for node in range(count)]
    totals, last = np.zeros(1 << count), np.zeros(1 << count, dtype=int)
    for nodes in range(1, 1 << count):
        found = -np.inf
        for node in _members(nodes):
            rest = nodes ^ (1 << node)
            total = totals[rest] + best[node][0][rest]
            if total > found + families.tie:
                found, last[nodes] = total, node
        totals[nodes] = found
    parents: list[tuple[int, ...]] = [()] * count
    nodes = (1 << count) - 1
    while nodes:
        node = int(last[nodes])
        nodes ^= 1 << node
        parents[node] = _members(int(best[node][1][nodes]))
    return tuple(parents)


def _best_within(families: FamilyScores, node: int) -> tuple[np.ndarray, np.ndarray]:
    """For every set of nodes, the score of the best parents in it, and which they are."""
    count = len(families.counting.sizes)
    scores, chosen = np.full(1 << count, -np.inf), np.arange(1 << count)
    for parents in families.allowed_sets(node):
        scores[sum(1 << parent for parent in parents)] = families.of(node, parents)
    for bit in range(count):
        without = np.flatnonzero(np.arange(1 << count) >> bit & 1 == 0)
        more = without | (1 << bit)
        worse = scores[more] <= scores[without] + families.tie
        scores[more] = np.where(worse, scores[without], scores[more])
        chosen[more] = np.where(worse, chosen[without], chosen[more])
    return scores, chosen


def _members(nodes: int) -> tuple[int, ...]:
    return tuple(node for node in range(nodes.bit_length()) if nodes >> node & 1)
