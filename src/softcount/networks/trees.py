"""Trees from the information that pairs of nodes share: Chow and Liu's, and the one that augments naive Bayes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.errors import DataError
from softcount.networks.code_counts import Counting
from softcount.networks.dependence import informations
from softcount.networks.graph import Graph
from softcount.networks.graph_scores import price

NOTHING = 1e-12
"""Nats that rounding leaves where two nodes share nothing."""


def chow_liu(counting: Counting, root: int | None = None, penalised: bool = False) -> Graph:
    """The tree of the highest likelihood; nodes that share nothing are not joined.

    `penalised` joins only where BIC gains. A tree without the given root hangs from its first node. Of equal trees, the
    one whose pairs come first.
    """
    nodes = list(range(len(counting.sizes)))
    _check_root(nodes, root)
    joined = heaviest_tree(shared_information(counting, nodes, (), penalised))
    return _hung(len(nodes), joined, [*nodes] if root is None else [root, *nodes], ())


def tree_augmented(counting: Counting, target: int, root: int | None = None, penalised: bool = False) -> Graph:
    """Naive Bayes whose attributes depend on one more attribute each, by what they share given the target."""
    count = len(counting.sizes)
    if target not in range(count):
        raise DataError(f"the target is a node from 0 to {count - 1}, not {target}.")
    nodes = [node for node in range(count) if node != target]
    _check_root(nodes, root)
    joined = heaviest_tree(shared_information(counting, nodes, (target,), penalised))
    named = [(nodes[a], nodes[b]) for a, b in joined]
    return _hung(count, named, [*nodes] if root is None else [root, *nodes], (target,))


def _check_root(nodes: Sequence[int], root: int | None) -> None:
    if root is not None and root not in nodes:
        raise DataError(f"the root is one of the nodes that the tree joins, {list(nodes)}, not {root}.")


def shared_information(counting: Counting, nodes: Sequence[int], given: tuple[int, ...], penalised: bool) -> np.ndarray:
    """I(a; b | given) of all pairs in nats, over the rows that show them; less BIC's price a row, if penalised."""
    found = np.zeros((len(nodes), len(nodes)))
    for at, node in enumerate(nodes[:-1]):
        others = nodes[at + 1 :]
        sizes = [counting.sizes[other] for other in others]
        own = counting.sizes[node]
        table = counting.with_each((*given, node), others).reshape(-1, own, sum(sizes))
        shared, weight = informations(table, sizes)
        if penalised:
            free = table.shape[0] * (own - 1) * (np.array(sizes) - 1)
            shared = shared - price(weight) * free / np.where(weight > 0, weight, 1.0)
        found[at, at + 1 :] = found[at + 1 :, at] = shared
    return found


def heaviest_tree(weights: np.ndarray) -> list[tuple[int, int]]:
    """The pairs of a spanning tree (or forest, without weights of zero or less) of the largest sum.

    Weights that differ by rounding alone count as equal, and the pair given first is taken.

    >>> heaviest_tree(np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]]))
    [(0, 2), (1, 2)]
    """
    a, b = np.triu_indices(len(weights), 1)
    each = np.round(weights[a, b] / NOTHING) * NOTHING
    part = np.arange(len(weights))
    found: list[tuple[int, int]] = []
    for place in np.lexsort((b, a, -each)):
        one, other = int(a[place]), int(b[place])
        if each[place] <= NOTHING or len(found) == len(weights) - 1:
            break
        if part[one] != part[other]:
            part[part == part[other]] = part[one]
            found.append((one, other))
    return found


def _hung(count: int, joined: Sequence[tuple[int, int]], roots: Sequence[int], first: tuple[int, ...]) -> Graph:
    """Pairs as a graph, away from the first root of every part; `first` are parents of all nodes that hang."""
    near: list[list[int]] = [[] for _ in range(count)]
    for a, b in joined:
        near[a].append(b)
        near[b].append(a)
    parents: dict[int, tuple[int, ...]] = dict.fromkeys(first, ())
    for root in roots:
        ahead = [] if root in parents else [root]
        parents.setdefault(root, first)
        while ahead:
            node = ahead.pop()
            for other in near[node]:
                if other not in parents:
                    parents[other] = (*first, node)
                    ahead.append(other)
    return Graph(tuple(range(count)), tuple(parents[node] for node in range(count)))
