"""Queries to a network: marginals, joint distributions and most probable explanations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain
from math import prod
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.errors import DataError, ResourceError
from softcount.networks.elimination import ROOM, Scope
from softcount.networks.junction_tree import Array, Belief, JunctionTree, LaneInput, Propagation, Side
from softcount.networks.network import Graph, distinct_rows, reach

# Evidence row by row.


class Evidence(Struct, frozen=True, dict=True):
    """Codes (rows x nodes, -1 if missing) and soft evidence.

    `factors` maps a scope, which must lie within a clique, to log-likelihoods (rows x cells). The scope's first node
    changes slowest. A level that is excluded has a logarithm of minus infinity.
    """

    codes: Array
    factors: Mapping[Scope, Array] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(self.codes)

    @cached_property
    def columns(self) -> Array:
        return np.ascontiguousarray(self.codes.T, dtype=np.intp)

    @cached_property
    def seen(self) -> Scope:
        """Nodes that are observed in at least one row."""
        return tuple(np.flatnonzero((self.columns >= 0).any(axis=1)).tolist())

    @property
    def soft(self) -> tuple[Scope, ...]:
        """Scopes of the factors."""
        return tuple(self.factors)

    def take(self, rows: Array) -> Evidence:
        return Evidence(self.codes[rows], {scope: logs[rows] for scope, logs in self.factors.items()})

    def hiding(self, node: int) -> Evidence:
        """Return the evidence without the observations of one node."""
        codes = self.codes.copy()
        codes[:, node] = -1
        return replace(self, codes=codes)

    def with_factor(self, scope: Sequence[int], logs: Array) -> Evidence:
        """Add joint log-likelihoods of several nodes."""
        key = tuple(scope)
        return replace(self, factors={**self.factors, key: self.factors.get(key, 0.0) + logs})

    def inputs(self, sizes: Sequence[int], block: slice, nodes: Iterable[int]) -> Iterator[LaneInput]:
        """Yield the lanes of a block of rows: indicators of the codes of `nodes`, then all factors."""
        for node in nodes:
            yield LaneInput((node,), _indicators(sizes[node]).take(self.columns[node, block], axis=1))
        for scope, logs in self.factors.items():
            lanes = np.ascontiguousarray(logs[block].T).reshape(*(sizes[node] for node in scope), -1)
            yield LaneInput(scope, lanes, logs=True)


@cache
def _indicators(levels: int) -> Array:
    """Return one indicator column per code. The last column, which -1 selects, is all ones."""
    return np.concatenate([np.eye(levels), np.ones((levels, 1))], axis=1)


# Trees without the nodes that all rows show.

BLOCK = 2**21
"""Target number of clique cells per block of rows: 16 megabytes, plus some temporary arrays of that size."""

FEWEST = 64
"""Minimum rows per block, as long as their cliques have at most `MOST` cells.

With fewer rows, Python calls dominate the arithmetic.
"""

MOST = 2**24
"""Maximum number of clique cells per block, unless one row needs more."""


class Expectation(NamedTuple):
    """Expected counts of every table, log evidence of each row, and posteriors (rows x cells) of some scopes."""

    counts: list[Array]
    log_evidence: Array
    posteriors: list[Array]


def blocks(rows: int, cells: int) -> Iterator[slice]:
    """Yield blocks of rows with bounded memory; `cells` is the number of clique cells per row."""
    _keep_freed_memory()
    cells = max(cells, 1)
    step = max(1, BLOCK // cells, min(FEWEST, MOST // cells))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


@cache
def _keep_freed_memory() -> None:
    """Make the C library keep up to 48 MB of freed memory: its limit is twice the largest block freed so far.

    Without this call, each block of rows would get new pages from the system, which took as long as all the arithmetic.
    """
    np.empty(3 * 2**20)


def _margin(values: Array, nodes: Scope, scope: Scope) -> Array:
    """Sum over the nodes outside the scope, and order axes as in the scope. Axes after those of the nodes are kept."""
    kept = [node for node in nodes if node in scope]
    rest = tuple(axis for axis, node in enumerate(nodes) if node not in scope)
    turn = [kept.index(node) for node in scope]
    found = values.sum(axis=rest) if rest else values
    return np.asarray(found.transpose(*turn, *range(len(turn), found.ndim)))


def _posterior(tree: JunctionTree, scope: Scope, belief: Belief) -> Array:
    """Return the posterior of a scope (levels of its nodes ..., lanes), given that of its clique."""
    clique, side, _, _ = tree.place(scope)
    nodes, shape, own = tree.cliques[clique], tree.shapes[clique], tree.own[clique]
    if side is Side.OWN:
        return _margin(belief.own.reshape(*shape[:own], -1), nodes[:own], scope)
    if side is Side.REST:
        return _margin(belief.plain(belief.rest), nodes[own:], scope)
    return _margin(belief.whole.reshape(*shape, -1), nodes, scope)


# Queries to a network of discrete nodes, each answered on the relevant part of the network.

ROWS_WORTH_A_TREE = 512
"""Average number of rows with the same observed nodes above which they get a separate tree without those nodes.

Building one takes 2 ms for a network of 37 nodes and saves a few microseconds per row.
"""

CELLS_WORTH_A_TREE = 2**12
"""Cells of a tree for all rows, per table, above which rows get trees without their observed nodes.

Building a tree takes 40 microseconds per table, as long as computing with 4,000 cells.
"""

KEPT = 1024

KEPT_CELLS = 2**23
"""Maximum total number of cells of cached trees (64 megabytes), unless one tree has more."""


EVERYTHING: tuple[Scope, ...] = ((-1,),)
"""The query for the joint configuration of all nodes."""


class Known(NamedTuple):
    """Observed nodes sliced out of the tables, observed nodes with indicators in the tree, scopes with factors."""

    cut: Scope
    marked: Scope
    soft: tuple[Scope, ...]

    @classmethod
    def of(cls, seen: Sequence[int], soft: tuple[Scope, ...], kept: Iterable[int] = ()) -> Known:
        """Slice out the observed nodes, except those in a factor and those `kept`."""
        inside = {node for scope in soft for node in scope}.union(kept)
        return cls(tuple(x for x in seen if x not in inside), tuple(x for x in seen if x in inside), soft)


class CutTable(NamedTuple):
    """A table reshaped to (levels of its free nodes ..., configurations of its observed nodes)."""

    scope: Scope
    values: Array
    seen: Scope
    sizes: tuple[int, ...]
    turn: tuple[int, ...]
    """The axes of the original table in this order."""

    @classmethod
    def of(cls, table: Array, family: Scope, cut: set[int]) -> CutTable:
        free = [axis for axis, node in enumerate(family) if node not in cut]
        seen = [axis for axis, node in enumerate(family) if node in cut]
        values = table.transpose(*free, *seen).reshape(*(table.shape[axis] for axis in free), -1)
        scope, known = (tuple(family[axis] for axis in axes) for axes in (free, seen))
        return cls(scope, values, known, tuple(table.shape[axis] for axis in seen), (*free, *seen))

    def configurations(self, columns: Array) -> Array:
        """Return the configuration of the observed nodes in each row, given codes (nodes x rows)."""
        place = columns[self.seen[0]]
        for node, size in zip(self.seen[1:], self.sizes[1:], strict=True):
            place = place * size + columns[node]
        return np.asarray(place)

    def lanes(self, columns: Array) -> LaneInput:
        return LaneInput(self.scope, self.values.take(self.configurations(columns), axis=-1))

    def counts(self, columns: Array, shares: Array) -> Array:
        """Sum `shares` (rows x cells of the free nodes) by configuration, in the shape of the original table."""
        found = np.zeros((self.values.shape[-1], shares.shape[1]))
        np.add.at(found, self.configurations(columns), shares)
        by_axis = found.T.reshape(*self.values.shape[:-1], *self.sizes)
        return by_axis.transpose(np.argsort(self.turn))


class Layout(NamedTuple):
    """A tree for some tables without their sliced-out nodes.

    `whole` and `cut` are the nodes of unchanged and of sliced tables.
    """

    tree: JunctionTree
    whole: list[int]
    cut: list[int]
    known: Known

    @classmethod
    def build(
        cls, graph: Graph, sizes: Sequence[int], nodes: Iterable[int], known: Known, room: int, root: Scope = ()
    ) -> Layout:
        free = {node: tuple(x for x in graph.families[node] if x not in known.cut) for node in nodes}
        whole = [node for node, scope in free.items() if scope == graph.families[node]]
        cut = [node for node, scope in free.items() if scope != graph.families[node]]
        scopes = [*(free[node] for node in (*whole, *cut)), *known.soft]
        return cls(JunctionTree.build(sizes, scopes, room, graph.names, root), whole, cut, known)


class PrunedTree(Propagation, frozen=True, dict=True):
    """The tree of a query or of a group of rows.

    `tables` are those of the nodes `whole`, which all rows share. `cuts` are the tables sliced by row, `marked` the
    nodes with indicators. Answers refer to the product of the tables, which need not sum to 1. An impossible row has
    log evidence of minus infinity, and posteriors and counts of zero.

    >>> tree = JunctionTree.build([2, 2], [(0,), (0, 1)])
    >>> wet = PrunedTree(tree, [np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.2, 0.8]])], [0, 1], {}, [1])
    >>> [rain] = wet.answer([(0,)], Evidence(np.array([[-1, 1], [-1, 0]]))).posteriors
    >>> rain.round(3)
    array([[0.333, 0.667],
           [0.947, 0.053]])
    """

    whole: Sequence[int]
    cuts: Mapping[int, CutTable]
    marked: Sequence[int]

    @classmethod
    def of(cls, layout: Layout, tables: Sequence[Array], families: Sequence[Scope]) -> PrunedTree:
        cut, tops = set(layout.known.cut), layout.tree.tops
        cuts = {node: CutTable.of(tables[node], families[node], cut) for node in layout.cut}
        marked = [node for node in layout.known.marked if node in tops]
        return cls(layout.tree, [tables[node] for node in layout.whole], layout.whole, cuts, marked)

    def _batches(self, evidence: Evidence) -> Iterator[tuple[slice, list[LaneInput]]]:
        for block in blocks(evidence.rows, self.tree.cells):
            columns = evidence.columns[:, block]
            cuts = [cut.lanes(columns) for cut in self.cuts.values()]
            yield block, [*cuts, *evidence.inputs(self.tree.sizes, block, self.marked)]

    def answer(self, of: Sequence[Scope], evidence: Evidence, weights: Array | None = None) -> Expectation:
        """Return posteriors of the scopes `of` and log evidence. Every scope must lie within a clique.

        If row weights are given, also return the expected counts of all tables, in the order of their nodes.
        """
        tree, log_evidence = self.tree, np.zeros(evidence.rows)
        cut = {node: own.scope for node, own in self.cuts.items() if own.scope and weights is not None}
        scopes = [*of, *cut.values()]
        found = [np.zeros((evidence.rows, prod(tree.sizes[node] for node in scope))) for scope in scopes]
        asked: dict[int, list[tuple[Scope, Array]]] = {}
        for scope, own in zip(scopes, found, strict=True):
            asked.setdefault(tree.place(scope).clique, []).append((scope, own))
        cliques = [] if weights is None else [np.zeros(shape) for shape in tree.shapes]
        wanted = range(len(cliques)) if cliques else list(asked)
        with np.errstate(under="ignore", divide="ignore", over="ignore", invalid="ignore"):
            for block, inputs in self._batches(evidence):
                collected = self.collect(inputs)
                log_evidence[block] = collected.log_evidence
                for clique, belief in self.distribute(collected, wanted):
                    for scope, own in asked.get(clique, ()):
                        own[block] = _posterior(tree, scope, belief).reshape(own.shape[1], -1).T
                    if weights is not None:
                        cliques[clique] += belief.weighted(weights[block]).reshape(tree.shapes[clique])
        counts: dict[int, Array] = {}
        if weights is not None:
            for node, scope in zip(self.whole, tree.scopes, strict=False):
                home = tree.place(scope).clique
                counts[node] = _margin(cliques[home], tree.cliques[home], scope)
            shares = dict(zip(cut, found[len(of) :], strict=True))
            possible = (log_evidence > -np.inf)[:, None]
            for node, table in self.cuts.items():
                counts[node] = table.counts(evidence.columns, shares.get(node, possible) * weights[:, None])
        return Expectation([counts[node] for node in sorted(counts)], log_evidence, found[: len(of)])

    def most_probable(self, evidence: Evidence) -> tuple[Array, Array]:
        """Return the most probable joint configuration of all nodes as codes, and the logarithm of its product.

        Nodes that are not in the tree keep their codes. In an impossible row every code is -1.
        """
        codes, logs = np.array(evidence.codes, dtype=np.intp), np.zeros(evidence.rows)
        with np.errstate(under="ignore"):
            for block, inputs in self._batches(evidence):
                collected = self.collect(inputs, most=True)
                logs[block] = collected.log_evidence
                lanes = np.ascontiguousarray(codes[block].T)
                self.trace(collected, lanes)
                codes[block] = lanes.T
        codes[logs == -np.inf] = -1
        return codes, logs


class Questions(Struct, frozen=True, dict=True):
    """Exact queries to a graph and its tables, each (levels of the parents ..., own levels) with rows that sum to 1.

    >>> tables = [np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.2, 0.8]])]
    >>> rain = Questions(Graph.of([("Rain", "Wet")]), (2, 2), tables)
    >>> rain.posterior([0], Evidence(np.array([[-1, 1]]))).round(3)
    array([[0.333, 0.667]])
    """

    graph: Graph
    sizes: Sequence[int]
    tables: Sequence[Array]
    room: int = ROOM

    def posterior(self, of: Sequence[int], evidence: Evidence) -> Array:
        """Return the joint posterior (rows, levels of each node ...); zeros if the evidence is impossible."""
        check_different(of)
        [found] = self._answer(evidence, (tuple(of),))
        return found.reshape(evidence.rows, *(self.sizes[node] for node in of))

    def each(self, of: Sequence[int], evidence: Evidence) -> list[Array]:
        """Return the posterior (rows x levels) of each of these nodes.

        One tree serves all nodes. If it would be too large, each node has its own.
        """
        scopes = tuple((node,) for node in of)
        try:
            return self._answer(evidence, scopes)
        except ResourceError:
            return [found for scope in scopes for found in self._answer(evidence, (scope,))]

    def log_evidence(self, evidence: Evidence) -> Array:
        [found] = self._answer(evidence, ())
        return found[:, 0]

    def most_probable(self, evidence: Evidence) -> tuple[Array, Array]:
        """Return the most probable joint configuration of all nodes as codes, and its log probability.

        In an impossible row every code is -1.
        """
        seen, alike = evidence.seen, len(distinct_rows(evidence.codes >= 0)[0]) <= 1
        known = Known.of(seen, evidence.soft, () if alike else seen)
        return self._pruned(EVERYTHING, known).most_probable(evidence)

    def draw(self, evidence: Evidence, rng: np.random.Generator) -> Array:
        """Draw the missing codes node by node, each given the evidence and the codes that are drawn before it."""
        codes = np.array(evidence.codes, dtype=np.int64)
        for node in self.graph.order:
            rows = np.flatnonzero(codes[:, node] < 0)
            if len(rows):
                edges = np.cumsum(self.posterior([node], replace(evidence, codes=codes).take(rows)), axis=1)
                codes[rows, node] = (rng.random(len(rows))[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
        return codes

    def _answer(self, evidence: Evidence, of: tuple[Scope, ...]) -> list[Array]:
        """Answer a query; equal rows are computed once.

        Rows are grouped by their observed nodes if the groups are large on average, or if a tree for all rows would be
        too large.
        """
        if evidence.rows == 1:
            return self._run(evidence, of, cutting=True)
        first, again = distinct_rows(evidence.codes)
        if len(first) < evidence.rows and not evidence.soft:
            return [found[again] for found in self._answer(evidence.take(first), of)]
        first, again = distinct_rows(evidence.codes >= 0)
        if len(first) > max(1, evidence.rows // ROWS_WORTH_A_TREE) and self._is_light(of, evidence):
            return self._run(evidence, of, cutting=False)
        found = [np.zeros((evidence.rows, prod(self.sizes[node] for node in scope))) for scope in of or ((),)]
        for pattern in range(len(first)):
            rows = np.flatnonzero(again == pattern)
            for own, answer in zip(found, self._run(evidence.take(rows), of, cutting=True), strict=True):
                own[rows] = answer
        return found

    def _is_light(self, of: tuple[Scope, ...], evidence: Evidence) -> bool:
        """Return whether one tree for all rows, with indicators for codes, is cheaper than a tree for every pattern."""
        try:
            tree = self._pruned(of, Known((), evidence.seen, evidence.soft)).tree
        except ResourceError:
            return False
        return tree.cells <= CELLS_WORTH_A_TREE * len(tree.scopes)

    def _run(self, evidence: Evidence, of: tuple[Scope, ...], cutting: bool) -> list[Array]:
        """Return posteriors, or the log evidence if `of` is empty.

        With `cutting`, all rows must have the same observed nodes.
        """
        kept = chain.from_iterable(of) if cutting else evidence.seen
        found = self._pruned(of, Known.of(evidence.seen, evidence.soft, kept)).answer(of, evidence)
        return found.posteriors if of else [found.log_evidence[:, None]]

    def _pruned(self, of: tuple[Scope, ...], known: Known) -> PrunedTree:
        """Return the tree of a query, from the cache if possible."""
        kept, found = self._kept, self._kept.get((of, known))
        if found is None:
            found = self._prune(of, known)
            cells = found.tree.cells + sum(other.tree.cells for other in list(kept.values()))
            if len(kept) >= KEPT or cells > KEPT_CELLS:
                kept.clear()
            kept[of, known] = found
        return found

    @cached_property
    def _kept(self) -> dict[tuple[tuple[Scope, ...], Known], PrunedTree]:
        return {}

    @cached_property
    def _positive(self) -> list[bool]:
        return [bool((table > 0).all()) for table in self.tables]

    def _prune(self, of: tuple[Scope, ...], known: Known) -> PrunedTree:
        """Build a tree of the ancestors of the query and the evidence, without parts that cannot change the answer."""
        nodes: Sequence[int] = range(len(self.sizes))
        if of != EVERYTHING:
            asked = {node for scope in of for node in scope}
            with_factor = {node for scope in known.soft for node in scope}
            nodes = sorted(self.graph.ancestors(asked | with_factor | {*known.cut, *known.marked}))
            if of:
                families, cut, needed = self.graph.families, set(known.cut), set[int]()
                free = {node: tuple(member for member in families[node] if member not in cut) for node in nodes}
                for members, tables in _parts(free, known.soft):
                    possible = all(self._positive[node] for node in tables) and members.isdisjoint(with_factor)
                    if members & asked or not possible:
                        needed.update(tables)
                nodes = [node for node in nodes if node in needed]
        root = of[0] if len(of) == 1 and of != EVERYTHING else ()
        layout = Layout.build(self.graph, self.sizes, nodes, known, self.room, root)
        return PrunedTree.of(layout, self.tables, self.graph.families)


def check_different(of: Sequence[int]) -> None:
    if not of or len(set(of)) < len(of):
        raise DataError("ask for one node, or for several different nodes.")


def _parts(free: dict[int, Scope], soft: Iterable[Scope]) -> list[tuple[set[int], list[int]]]:
    """Return the connected sets of free nodes with their tables. A table without free nodes is a separate part."""
    near: dict[int, set[int]] = {}
    touching: dict[int, set[int]] = {}
    for table, scope in [*free.items(), *((-1, scope) for scope in soft)]:
        for member in scope:
            near.setdefault(member, set()).update(scope)
            touching.setdefault(member, set()).add(table)
    parts: list[tuple[set[int], list[int]]] = [(set(), [table]) for table, scope in free.items() if not scope]
    left = set(near)
    while left:
        members = reach(near, [left.pop()])
        left -= members
        parts.append((members, sorted(set[int]().union(*(touching[member] for member in members)) - {-1})))
    return parts
