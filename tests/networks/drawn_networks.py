"""Networks drawn at random for the tests, and names that are hard to write."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from softcount.networks.junction_tree import JunctionTree
from softcount.networks.network import Graph, Network
from softcount.networks.queries import PrunedTree

HOSTILE = [
    "with space",
    " outer ",
    'a"b',
    "{brace}",
    "a,b",
    "<5",
    "f(x)",
    "naïve 名前 🎲",
    "table",
    "variable",
    "back\\slash\\n",
    "new\nline\r\n",
    "",
    "a|b;c[d]",
    "// no /* comment */",
    "\x1b[31m\x00\u2028\ud800",
    "probability",
    "&amp;<b>",
]


def drawn_network(rng: np.random.Generator, nodes: int = 6, most_parents: int = 3, zeros: float = 0.0) -> Network:
    """Nodes of one to four levels in a random order; a share of the cells of its tables is zero."""
    order = rng.permutation(nodes)
    parents: list[tuple[int, ...]] = [()] * nodes
    for place, node in enumerate(order):
        count = rng.integers(0, min(place, most_parents) + 1)
        parents[node] = tuple(map(int, rng.choice(order[:place], count, replace=False)))
    graph = Graph(tuple(f"n{node}" for node in range(nodes)), tuple(parents))
    sizes = rng.integers(1, 5, nodes)
    return Network(
        graph, [[f"v{level}" for level in range(size)] for size in sizes], drawn_tables(rng, graph, sizes, zeros)
    )


def drawn_tables(rng: np.random.Generator, graph: Graph, sizes: Sequence[int], zeros: float = 0.0) -> list[np.ndarray]:
    tables = []
    for family in graph.families:
        table = rng.random([int(sizes[node]) for node in family])
        table[..., :-1][rng.random(table[..., :-1].shape) < zeros] = 0
        tables.append(table / table.sum(axis=-1, keepdims=True))
    return tables


def plain_network(seed: int) -> Network:
    return drawn_network(np.random.default_rng(seed), 7, zeros=0.1)


def hostile_network(names: list[str]) -> Network:
    """Every name a node with all of the names as levels; each node's parent is the one before."""
    rng = np.random.default_rng(4)
    graph = Graph.of(pairwise(names), names)
    return Network(graph, [names] * len(names), drawn_tables(rng, graph, [len(names)] * len(names)))


def same(left: Network, right: Network) -> bool:
    """The same names, levels, parents and bits."""
    return (
        left.graph == right.graph
        and left.levels == right.levels
        and all(map(np.array_equal, left.tables, right.tables))
    )


def loaded_tree(tree: JunctionTree, tables: Sequence[np.ndarray]) -> PrunedTree:
    """A tree with these tables for its first scopes, in which every node may be observed."""
    return PrunedTree(tree, tables, range(len(tables)), {}, sorted(tree.tops))
