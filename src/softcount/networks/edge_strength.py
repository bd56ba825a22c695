"""How sure an edge is: over resampled rows, over graphs weighed by their evidence, and over all trees at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from softcount.errors import DataError
from softcount.networks.code_counts import CodeCounts, Counting
from softcount.networks.graph import Graph
from softcount.networks.graph_scores import Bdeu
from softcount.numerics.logspace import log_sum_exp
from softcount.records import dataclass


@dataclass(frozen=True, slots=True)
class EdgeShares:
    """Shares of graphs, each a matrix (parent x child).

    `joined` have the edge in one way or the other, `directed` in this, and in `compelled` it points this way in all
    graphs that say the same of what is independent: the only direction that rows can show.
    """

    joined: np.ndarray
    directed: np.ndarray
    compelled: np.ndarray

    @classmethod
    def of(cls, graphs: Sequence[Graph], weights: np.ndarray) -> EdgeShares:
        """From graphs over the same nodes and their weights, which add to one."""
        count = len(graphs[0].parents)
        directed, compelled = np.zeros((count, count)), np.zeros((count, count))
        for graph, weight in zip(graphs, weights.tolist(), strict=True):
            directed += weight * edge_matrix(graph)
            compelled += weight * compelled_edges(graph)
        return cls(directed + directed.T, directed, compelled)


def bootstrap_edges(
    counting: CodeCounts, learn: Callable[[Counting], Graph], replicates: int = 100, seed: int = 0
) -> EdgeShares:
    """How often each edge is learned again from rows drawn with replacement; only their weights are drawn."""
    if replicates < 1:
        raise DataError(f"an edge's share needs at least one replicate, not {replicates}.")
    rng = np.random.default_rng(seed)
    graphs = [learn(resampled(counting, rng)) for _ in range(replicates)]
    return EdgeShares.of(graphs, np.full(replicates, 1 / replicates))


def resampled(counting: CodeCounts, rng: np.random.Generator) -> CodeCounts:
    """As many rows drawn with replacement as there are; weights that are no whole numbers keep their total."""
    _, weights = counting.distinct
    total = weights.sum()
    if total <= 0:
        raise DataError("there are no rows to draw from.")
    drawn = rng.multinomial(max(1, round(total)), weights / total)
    return counting.reweighted(drawn * (total / drawn.sum()))


def evidence_weights(log_evidence: Sequence[float]) -> np.ndarray:
    """What each graph, or any model, weighs among several, from their log-evidence.

    >>> evidence_weights([-1000.0, -1000.0 + np.log(3)]).round(3).tolist()
    [0.25, 0.75]
    """
    each = np.asarray(log_evidence, dtype=float)
    if not each.size or not np.isfinite(each.max()):
        raise DataError("none of the models has evidence to weigh it by.")
    found: np.ndarray = np.exp(each - log_sum_exp(each))
    return found


def edge_matrix(graph: Graph) -> np.ndarray:
    """Which node is a parent of which, (parent x child)."""
    found = np.zeros((len(graph.parents), len(graph.parents)), dtype=bool)
    for child, own in enumerate(graph.parents):
        found[list(own), child] = True
    return found


def compelled_edges(graph: Graph) -> np.ndarray:
    """Edges that point the same way in every graph that says the same of what is independent, (parent x child).

    Those where two parents meet that are no neighbours, and what follows from them without a new meeting or a circle
    (Meek's rules).
    """
    edges = edge_matrix(graph)
    near = edges | edges.T
    found = np.zeros_like(edges)
    for child, own in enumerate(graph.parents):
        for a, b in combinations(own, 2):
            if not near[a, b]:
                found[[a, b], child] = True
    while True:
        more = found.copy()
        for parent, child in np.argwhere(edges & ~found):
            more[parent, child] = _follows(found, near, parent, child)
        if np.array_equal(more, found):
            return found
        found = more


def _follows(found: np.ndarray, near: np.ndarray, parent: int, child: int) -> bool:
    """Whether an arrow the other way would make a meeting that is not there, or a circle."""
    into_parent = found[:, parent]
    if (into_parent & ~near[:, child]).any() or (found[parent] & found[:, child]).any():
        return True
    undirected = near & ~found & ~found.T
    between = np.flatnonzero(undirected[parent] & found[:, child])
    return any(not near[a, b] for a, b in combinations(between, 2))


def tree_edges(counting: Counting, imagined: float = 1.0, log_prior: np.ndarray | None = None) -> np.ndarray:
    """The probability that two nodes are joined, over all trees that span the nodes (Meila and Jaakkola).

    Trees weigh the product of their edges' priors, equal ones unless `log_prior` (nodes x nodes) says otherwise; their
    tables have imagined rows as in BDeu, so that a tree's evidence is a product over its edges too.
    """
    count = len(counting.sizes)
    gains = np.zeros((count, count)) if log_prior is None else np.array(log_prior, dtype=float)
    if gains.shape != (count, count) or not np.isfinite(gains).all() or not np.array_equal(gains, gains.T):
        raise DataError(f"log_prior is finite and the same from both sides, {count} x {count} nodes.")
    for node in range(count - 1):
        found = _evidence_of_edges(counting, Bdeu(imagined), node)
        gains[node, node + 1 :] += found
        gains[node + 1 :, node] += found
    return spanning_tree_edges(gains)


def _evidence_of_edges(counting: Counting, score: Bdeu, node: int) -> np.ndarray:
    """What the log-evidence of a tree gains by an edge to each later node, over the rows that show both."""
    sizes = counting.sizes[node + 1 :]
    table = counting.with_each((node,), range(node + 1, len(counting.sizes)))[None]
    alone = np.add.reduceat(table, np.cumsum((0, *sizes[:-1])), axis=2)
    found: np.ndarray = score.of_tables(table, sizes) - score.of_tables(alone, [1] * len(sizes))
    return found


def spanning_tree_edges(log_weights: np.ndarray) -> np.ndarray:
    """How likely each edge is in a random spanning tree that weighs the product of its edges' weights, all above zero.

    An edge's probability is its weight over the conductance between its ends (the weighted matrix-tree theorem). Nodes
    are eliminated from the Laplacian by sums of positive terms alone, all in logarithms: weights from exp(-100,000) to
    exp(100,000) neither overflow nor cancel. Every pair of nodes lies in two of four parts, so that half of the nodes
    are eliminated at a time for all pairs of the others, and then again half of those.

    >>> spanning_tree_edges(np.zeros((3, 3))).round(4).tolist()
    [[0.0, 0.6667, 0.6667], [0.6667, 0.0, 0.6667], [0.6667, 0.6667, 0.0]]
    """
    count = len(log_weights)
    room = max(2, 1 << (count - 1).bit_length())  # nodes that are not there have no edges
    weights = np.full((room, room), -np.inf)
    weights[:count, :count] = np.where(np.eye(count, dtype=bool), -np.inf, log_weights)
    reduced, nodes = weights[None], np.arange(room)[None]
    while nodes.shape[1] > 2:
        parts = np.arange(nodes.shape[1]).reshape(4, -1)
        kept = [np.concatenate(pair) for pair in combinations(parts, 2)]
        reduced = np.concatenate([_eliminated(reduced, keep) for keep in kept])
        nodes = np.concatenate([nodes[:, keep] for keep in kept])
    a, b = nodes.T
    there = weights[a, b] > -np.inf
    found = np.zeros((room, room))
    found[a[there], b[there]] = np.exp(weights[a, b][there] - reduced[there, 0, 1])
    return np.maximum(found, found.T)[:count, :count]


def _eliminated(reduced: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Log-conductances among the nodes kept, when the others are only passed through; several networks at once."""
    order = np.concatenate([np.setdiff1d(np.arange(reduced.shape[1]), keep), keep])
    left: np.ndarray = reduced[:, order[:, None], order]
    for _ in range(len(order) - len(keep)):
        star = left[:, 0, 1:]
        total = np.asarray(log_sum_exp(star, axis=1))
        star = star - np.where(np.isfinite(total), total, 0.0)[:, None] / 2
        left = np.logaddexp(left[:, 1:, 1:], star[:, :, None] + star[:, None, :])
    return left
