"""Answers from tables in a junction tree, for many rows: rows are taken in blocks, so that memory is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from softcount.errors import DataError
from softcount.networks.elimination import Scope
from softcount.networks.junction_tree import JunctionTree, Side
from softcount.networks.propagation import Belief, Propagation
from softcount.networks.row_evidence import Array, Evidence, LaneInput
from softcount.records import dataclass

BLOCK = 2**21
"""Cells of cliques held at once: 16 megabytes, and some arrays of that size beside them."""

FEWEST = 64
"""Rows in a block though their cliques exceed it, up to `MOST` cells: with fewer, calls cost more than numbers."""

MOST = 2**24
"""Cells of cliques held at once, unless one row has more."""

Batches = Iterator[tuple[slice, list[LaneInput]]]
"""Blocks of rows, and what is known of them."""


class Expectation(NamedTuple):
    """For every scope the weighted sum of its posteriors; for rows the log evidence, and posteriors of some scopes."""

    counts: list[Array]
    log_evidence: Array
    posteriors: list[Array]


@dataclass(frozen=True)
class LoadedTree:
    """A junction tree and tables, one for each of its first scopes, shaped by the levels of the scope's nodes.

    Answers are about the product of the tables, which need not add up to one. A row that is impossible has log
    evidence minus infinity, and posteriors and counts of zero.

    >>> tree = JunctionTree.build([2, 2], [(0,), (0, 1)])
    >>> wet = LoadedTree(tree, [np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.2, 0.8]])])
    >>> [rain] = wet.posteriors([(0,)], Evidence(np.array([[-1, 1], [-1, 0]])))
    >>> rain.round(3)
    array([[0.333, 0.667],
           [0.947, 0.053]])
    """

    tree: JunctionTree
    tables: Sequence[Array]

    def __post_init__(self) -> None:
        check_tables(self.tables, self.tree.scopes, self.tree.sizes)

    @cached_property
    def propagation(self) -> Propagation:
        return Propagation(self.tree, self.tables)

    def log_evidence(self, evidence: Evidence) -> Array:
        """The logarithm of the total that is left in each row."""
        return self.answer((), evidence.rows, self._batches(evidence))[1]

    def posteriors(self, of: Sequence[Scope], evidence: Evidence) -> list[Array]:
        """Of each of these tuples of nodes, which must lie within a clique, (rows x cells)."""
        return self.answer(of, evidence.rows, self._batches(evidence))[0]

    def answer(self, of: Sequence[Scope], rows: int, batches: Batches) -> tuple[list[Array], Array]:
        """Posteriors (rows x cells) and log evidence, of lanes that somebody else has made."""
        asked, log_evidence = _Asked.of(self.tree, of, rows), np.zeros(rows)
        with np.errstate(under="ignore", divide="ignore"):
            for block, inputs in batches:
                collected = self.propagation.collect(inputs)
                log_evidence[block] = collected.log_evidence
                for clique, belief in self.propagation.distribute(collected, list(asked.by_clique)):
                    asked.keep(block, clique, belief)
        return asked.found, log_evidence

    def expected(self, evidence: Evidence, weights: Array, of: Sequence[Scope] = ()) -> Expectation:
        """What EM counts: for every scope of the tree the sum of weight times posterior, in the scope's shape."""
        tree = self.tree
        cliques = [np.zeros(shape) for shape in tree.shapes]
        asked = _Asked.of(tree, of, evidence.rows)
        log_evidence = np.zeros(evidence.rows)
        with np.errstate(under="ignore", divide="ignore", over="ignore", invalid="ignore"):
            for block, inputs in self._batches(evidence):
                collected = self.propagation.collect(inputs)
                log_evidence[block] = collected.log_evidence
                for clique, belief in self.propagation.distribute(collected, range(len(cliques))):
                    cliques[clique] += belief.weighted(weights[block]).reshape(tree.shapes[clique])
                    asked.keep(block, clique, belief)
        possible = np.array(weights[log_evidence > -np.inf].sum())
        homes = [tree.place(scope).clique if scope else -1 for scope in tree.scopes]
        counts = [
            _margin(cliques[home], tree.cliques[home], scope) if scope else possible
            for scope, home in zip(tree.scopes, homes, strict=True)
        ]
        return Expectation(counts, log_evidence, asked.found)

    def most_probable(self, evidence: Evidence, batches: Batches | None = None) -> tuple[Array, Array]:
        """The likeliest levels of all nodes together, as codes, and the logarithm of their product.

        Nodes that the tree does not have stay as they were seen. In a row that is impossible every code is -1.
        `batches` are its lanes, if somebody else has made them.
        """
        codes, logs = np.array(evidence.codes, dtype=np.intp), np.zeros(evidence.rows)
        with np.errstate(under="ignore"):
            for block, inputs in batches or self._batches(evidence):
                collected = self.propagation.collect(inputs, most=True)
                logs[block] = collected.log_evidence
                lanes = np.ascontiguousarray(codes[block].T)
                self.propagation.trace(collected, lanes)
                codes[block] = lanes.T
        codes[logs == -np.inf] = -1
        return codes, logs

    def _batches(self, evidence: Evidence) -> Batches:
        tree = self.tree
        evidence.check(tree.sizes)
        nodes = [node for node in evidence.seen if node in tree.tops]
        for block in blocks(evidence.rows, tree.cells):
            yield block, list(evidence.inputs(tree.sizes, block, nodes))


def check_tables(tables: Sequence[Array], scopes: Sequence[Scope], sizes: Sequence[int]) -> None:
    """Refuses tables that do not fit the first of these scopes, and numbers that are no probabilities."""
    for number, (table, scope) in enumerate(zip(tables, scopes, strict=False)):
        shape = tuple(sizes[node] for node in scope)
        if table.shape != shape:
            raise DataError(f"table {number} has the shape {table.shape}; the levels of its nodes are {shape}.")
        if not (table.min() >= 0 and table.max() < np.inf):
            raise DataError(f"table {number} holds what is no probability: numbers are finite and from 0 on.")


def blocks(rows: int, cells: int) -> Iterator[slice]:
    """So many rows at once that their cliques, of so many cells, take a bounded memory."""
    _keep_freed_memory()
    cells = max(cells, 1)
    step = max(1, BLOCK // cells, min(FEWEST, MOST // cells))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


@cache
def _keep_freed_memory() -> None:
    """Has the C library keep up to 48 MB that are freed: it gives back twice the largest piece freed so far.

    Otherwise each block would get its pages from the system anew, which took as long as all the arithmetic.
    """
    np.empty(3 * 2**20)


def _margin(values: Array, nodes: Scope, scope: Scope) -> Array:
    """The sum over what is not in the scope, in the scope's own order; axes after those of the nodes stay."""
    kept = [node for node in nodes if node in scope]
    rest = tuple(axis for axis, node in enumerate(nodes) if node not in scope)
    turn = [kept.index(node) for node in scope]
    found = values.sum(axis=rest) if rest else values
    return np.asarray(found.transpose(*turn, *range(len(turn), found.ndim)))


class _Asked(NamedTuple):
    """Posteriors of rows, filled block by block."""

    tree: JunctionTree
    found: list[Array]
    by_clique: dict[int, list[tuple[Scope, Array]]]

    @classmethod
    def of(cls, tree: JunctionTree, scopes: Sequence[Scope], rows: int) -> _Asked:
        found = [np.zeros((rows, prod(tree.sizes[node] for node in scope))) for scope in scopes]
        by_clique: dict[int, list[tuple[Scope, Array]]] = {}
        for own, scope in zip(found, scopes, strict=True):
            by_clique.setdefault(tree.place(scope).clique, []).append((scope, own))
        return cls(tree, found, by_clique)

    def keep(self, block: slice, clique: int, belief: Belief) -> None:
        nodes, shape, own = self.tree.cliques[clique], self.tree.shapes[clique], self.tree.own[clique]
        for scope, found in self.by_clique.get(clique, ()):
            side = self.tree.place(scope).side
            if side is Side.OWN:
                values = _margin(belief.own.reshape(*shape[:own], -1), nodes[:own], scope)
            elif side is Side.REST:
                values = _margin(belief.plain_rest, nodes[own:], scope)
            else:
                values = _margin(belief.whole.reshape(*shape, -1), nodes, scope)
            found[block] = values.reshape(found.shape[1], -1).T
