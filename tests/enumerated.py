"""Networks small enough to write out the whole joint table: the plain oracle of everything exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from softcount.networks.network import Graph
from softcount.networks.queries import Evidence

Scope = tuple[int, ...]


@dataclass(frozen=True)
class EnumeratedNetwork:
    graph: Graph
    sizes: list[int]
    tables: list[np.ndarray]

    def joint(self) -> np.ndarray:
        joint = np.ones(self.sizes)
        for scope, table in zip(self.graph.families, self.tables, strict=True):
            joint = joint * along(table, scope, len(self.sizes))
        return joint


@dataclass(frozen=True)
class Row:
    """What is known of one row: codes, likelihoods by node, logarithms of factors by scope."""

    codes: np.ndarray
    likelihoods: Mapping[int, np.ndarray] = field(default_factory=dict)
    factors: Mapping[Scope, np.ndarray] = field(default_factory=dict)

    def left(self, joint: np.ndarray) -> np.ndarray:
        """The joint table with what the row excludes taken out."""
        for node, code in enumerate(self.codes):
            if code >= 0:
                joint = joint * along(np.arange(joint.shape[node]) == code, (node,), joint.ndim)
        for node, likelihood in self.likelihoods.items():
            joint = joint * along(likelihood, (node,), joint.ndim)
        for scope, logs in self.factors.items():
            shaped = np.exp(logs).reshape([joint.shape[node] for node in scope])
            joint = joint * along(shaped, scope, joint.ndim)
        return joint


def along(table: np.ndarray, scope: Scope, nodes: int) -> np.ndarray:
    """A table laid along the axes of the joint table."""
    turned = np.transpose(table, np.argsort(scope))
    inside = sorted(scope)
    return turned.reshape([turned.shape[inside.index(node)] if node in scope else 1 for node in range(nodes)])


def margin(joint: np.ndarray, scope: Scope) -> np.ndarray:
    """The sum over all other nodes, axes in the order of the scope."""
    kept = joint.sum(axis=tuple(node for node in range(joint.ndim) if node not in scope))
    return kept.transpose([sorted(scope).index(node) for node in scope])


def normalised(joint: np.ndarray) -> np.ndarray:
    total = joint.sum()
    return joint / total if total else joint


def log(value: float) -> float:
    return float(np.log(value)) if value > 0 else -np.inf


def random_enumerated(rng: np.random.Generator, most: int = 9) -> EnumeratedNetwork:
    """Three to nine nodes in any order, one to four levels, some tables with zeros; rows of tables add up to one."""
    nodes = int(rng.integers(3, most + 1))
    sizes = [int(size) for size in rng.choice([1, 2, 2, 3, 3, 4], nodes)]
    order = rng.permutation(nodes)
    parents: list[Scope] = [()] * nodes
    for place, node in enumerate(order):
        count = min(place, int(rng.integers(0, 4)))
        parents[node] = tuple(int(other) for other in rng.choice(order[:place], count, replace=False))
    graph = Graph(tuple(f"n{node}" for node in range(nodes)), tuple(parents))
    tables = [_table(rng, [sizes[node] for node in family]) for family in graph.families]
    return EnumeratedNetwork(graph, sizes, tables)


def _table(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    table = rng.random(shape) ** 3
    if rng.random() < 0.4:
        table *= rng.random(shape) < 0.6
        table[..., -1] += table.sum(axis=-1) == 0
    return np.asarray(table / table.sum(axis=-1, keepdims=True))


def random_codes(rng: np.random.Generator, sizes: Sequence[int], rows: int, unseen: float) -> np.ndarray:
    codes = rng.integers(0, sizes, (rows, len(sizes)))
    return np.where(rng.random(codes.shape) < unseen, -1, codes)


def soft_evidence(
    codes: np.ndarray, likelihoods: Mapping[int, np.ndarray], factors: Mapping[Scope, np.ndarray] | None = None
) -> Evidence:
    """Codes, likelihoods by node, and logarithms of factors by scope."""
    with np.errstate(divide="ignore"):
        logs = {(node,): np.log(given) for node, given in likelihoods.items()}
    return Evidence(codes, {**logs, **(factors or {})})


def random_likelihoods(rng: np.random.Generator, sizes: Sequence[int], rows: int) -> dict[int, np.ndarray]:
    """Sets of levels for some nodes, soft evidence for others."""
    found = {}
    for node, size in enumerate(sizes):
        kind = rng.random()
        if kind < 0.15:
            found[node] = (rng.random((rows, size)) < 0.7).astype(float)
        elif kind < 0.3:
            found[node] = rng.random((rows, size)) * 3
    return found
