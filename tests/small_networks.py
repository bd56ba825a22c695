"""Random small networks, and what follows from them by writing out the whole joint table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softcount.networks.network import Graph

Scope = tuple[int, ...]


@dataclass(frozen=True)
class SmallNetwork:
    graph: Graph
    sizes: tuple[int, ...]
    tables: list[np.ndarray]

    @cached_property
    def joint(self) -> np.ndarray:
        """The probability of everything: an axis for each node."""
        found = np.ones(self.sizes)
        for scope, table in zip(self.graph.families, self.tables, strict=True):
            found = found * spread(table, scope, len(self.sizes))
        return found


def spread(table: np.ndarray, scope: Scope, nodes: int) -> np.ndarray:
    """A table over some nodes with an axis for every node, of length one where it says nothing."""
    order = np.argsort(scope)
    shape = np.ones(nodes, int)
    shape[np.sort(scope).astype(int)] = np.array(table.shape, int)[order]
    return table.transpose(order).reshape(shape)


def marginal(joint: np.ndarray, scope: Scope) -> np.ndarray:
    """A joint table summed down to some axes, in the order they are named."""
    kept = sorted(scope)
    small = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in scope))
    return small.transpose([kept.index(axis) for axis in scope])


def random_network(
    rng: np.random.Generator, nodes: int, zeros: float = 0.0, levels: int = 3, parents: int = 3
) -> SmallNetwork:
    """Arrows from earlier to later in a random order; a share of all cells is zero, but never a whole row."""
    order = rng.permutation(nodes)
    sizes = tuple(int(size) for size in rng.integers(1 if zeros else 2, levels + 1, nodes))
    own: list[Scope] = [()] * nodes
    for place, node in enumerate(order):
        count = rng.integers(0, min(place, parents) + 1)
        own[node] = tuple(int(parent) for parent in rng.choice(order[:place], count, replace=False))
    tables = [
        random_table(rng, [sizes[parent] for parent in above], sizes[node], zeros) for node, above in enumerate(own)
    ]
    return SmallNetwork(Graph(tuple(f"n{node}" for node in range(nodes)), tuple(own)), sizes, tables)


def random_table(rng: np.random.Generator, above: list[int], size: int, zeros: float) -> np.ndarray:
    table = rng.dirichlet(np.ones(size), above)
    table = np.where(rng.random(table.shape) < zeros, 0.0, table)
    table[..., 0] += table.sum(axis=-1) == 0
    return table / table.sum(axis=-1, keepdims=True)


def drawn(rng: np.random.Generator, network: SmallNetwork, rows: int) -> np.ndarray:
    """Codes of rows drawn from the joint table."""
    flat = rng.choice(network.joint.size, rows, p=network.joint.ravel() / network.joint.sum())
    return np.stack(np.unravel_index(flat, network.sizes), axis=1)


def with_holes(rng: np.random.Generator, codes: np.ndarray, share: float, hidden: int = 0) -> np.ndarray:
    """Cells lost at random, and some nodes wholly."""
    lost = rng.random(codes.shape) < share
    lost[:, rng.permutation(codes.shape[1])[:hidden]] = True
    return np.where(lost, -1, codes)
