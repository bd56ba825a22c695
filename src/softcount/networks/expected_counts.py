"""Expected counts of rows with missing values (E-step).

The missing nodes of a row fall into parts: sets of nodes that share no table. Small parts are summed over all their
configurations. Rows with a larger part go through a junction tree, and are sampled if every tree would be too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.special import log_of
from softcount.errors import ResourceError
from softcount.networks.elimination import Scope
from softcount.networks.junction_tree import JunctionTree
from softcount.networks.network import Graph, distinct_rows
from softcount.networks.queries import Evidence, Expectation, Known, Layout, PrunedTree
from softcount.networks.sampling import CHAINS, sample_expectation

BLOCK = 2**18
"""Number of parts of rows compared in one block."""

LOOKUPS = 2**16
"""Minimum number of table lookups per block (half a megabyte, which stays in the cache).

Larger networks use their number of cells.
"""

ROOM = 2**25
"""Maximum number of offsets of all shapes together: 128 megabytes."""

FEW = 2**19
"""Number of lookups, over all rows, that takes as long as one pass through a tree: 5 milliseconds."""

SMALL = 1e-300
"""Lower bound of positive factors in plain numbers. Sums that depend on it are recomputed in logarithms."""

TINY = 1e-200
"""Totals below this are recomputed in logarithms.

Factors are at most 1, so terms lost to underflow do not affect larger totals.
"""

TREE_CELLS = 2**24
"""Maximum cells of a junction tree: 128 megabytes per row, a few times over, and about a second."""

PATTERN_TREE_CELLS = 2**20
"""Maximum cells of the tree of one pattern of observed nodes.

A pass takes some milliseconds, as long as Gibbs chains for one row.
"""

WORTH_A_TREE = 2**14
"""Cells of the network's tree, per node, above which each pattern gets a separate tree.

Building one takes some milliseconds.
"""

SAMPLED_CODES = 2**20
"""Maximum number of sampled codes in memory."""

SEED = 20
"""Seed of every E-step, so that two E-steps differ only by their tables."""

Tables = Sequence[np.ndarray]


class Expected(Struct, frozen=True):
    """Expected counts of each node's table as (parent configurations x levels), and the log-likelihood."""

    counts: list[np.ndarray]
    log_likelihood: float
    posteriors: list[np.ndarray]
    """For every extra scope, an array (rows x cells of the scope)."""
    sampled: int
    """Number of rows estimated by sampling, because exact sums would cost too much."""


class FlatTables(Struct, frozen=True):
    """Positions of the cells of all tables in one array.

    Tables that all rows share come first, then tables with one part per row. `members` and `strides` have shape
    (scopes x widest scope) and are padded with a stride of 0.
    """

    members: np.ndarray
    strides: np.ndarray
    starts: np.ndarray
    by_row: np.ndarray
    """Number of cells of one row's part; 0 if all rows share the table."""
    shared: int

    @classmethod
    def of(cls, sizes: Sequence[int], families: Sequence[Scope], extras: Sequence[Scope], rows: int) -> FlatTables:
        scopes = [*families, *extras]
        members, strides = np.zeros((2, len(scopes), max(map(len, scopes))), np.int64)
        cells = np.empty(len(scopes), np.int64)
        for at, scope in enumerate(scopes):
            shape = [sizes[node] for node in scope]
            members[at, : len(scope)] = scope
            strides[at, : len(scope)] = np.cumprod([1, *shape[:0:-1]])[::-1]
            cells[at] = np.prod(shape, dtype=np.int64)
        by_row = np.where(np.arange(len(scopes)) < len(families), 0, cells)
        starts = np.concatenate([[0], np.cumsum(np.where(by_row == 0, cells, by_row * rows))])
        return cls(members, strides, starts, by_row, int(starts[len(families)]))

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    def cells(self, columns: np.ndarray, rows: np.ndarray, scopes: np.ndarray | int) -> np.ndarray:
        """Return the cell of each row's codes in a scope, or in the scope of the same position.

        `columns` holds the codes as (nodes x rows). Missing codes (-1) count as level 0.
        """
        found: np.ndarray = self.starts[scopes] + self.by_row[scopes] * rows
        for nodes, strides in zip(self.members[scopes].T, self.strides[scopes].T, strict=True):
            if strides.any():
                found += np.maximum(columns[nodes, rows], 0) * strides
        return found


# Parts of rows with few configurations, summed over all of them.


class PartGroup(Struct, frozen=True):
    """Parts with similar numbers of configurations, padded to arrays of equal size. Equal parts are summed once.

    A configuration of part p has the cells `bases[:, p] + offsets[:, shape[p]]`, one of each table that it touches.
    """

    row: np.ndarray
    """Row of each part, and in `number` its position among the distinct parts."""
    number: np.ndarray
    weights: np.ndarray
    """Total weight of each distinct part."""
    shape: np.ndarray
    bases: np.ndarray
    """(scopes x distinct parts x 1); padding selects the cell after the last, which is 1."""
    offsets: np.ndarray
    """(scopes x shapes x configurations)"""
    there: np.ndarray
    """(shapes x configurations): 1 for a configuration and 0 for padding."""
    cell_weights: np.ndarray
    """Weights in the shape of `bases`: tables of a row, which give posteriors, are counted with weight 1."""

    def expect(self, table: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected counts of all cells, and the log total of every distinct part.

        `table` and its logarithms `logs` end with the cell of the padding.
        """
        counts, found = np.zeros(len(table)), np.zeros(len(self.shape))
        step = max(1, max(LOOKUPS, len(table)) // self.offsets[:, 0].size)
        for start in range(0, len(found), step):
            block = slice(start, start + step)
            shape = self.shape[block] if len(self.there) > 1 else slice(None)
            places = self.bases[:, block] + self.offsets[:, shape]
            values = table.take(places).prod(axis=0)
            values *= self.there[shape]
            totals = values.sum(axis=1)
            top = np.zeros(len(totals))
            lost = np.flatnonzero(totals < TINY)
            if len(lost):
                high = np.where(self.there[self.shape[block][lost]] > 0, logs[places[:, lost]].sum(axis=0), -np.inf)
                top[lost] = np.maximum(high.max(axis=1), np.finfo(float).min)
                values[lost] = np.exp(high - top[lost, None])
                totals[lost] = values[lost].sum(axis=1)
            found[block] = log_of(totals) + top
            values /= np.where(totals > 0, totals, 1.0)[:, None]
            counts += np.bincount(places.ravel(), (values * self.cell_weights[:, block]).ravel(), len(table))
        return counts, found


class Parts(Struct, frozen=True):
    """The missing nodes of rows, by pattern: sets of nodes (shapes) that are connected by a chain of scopes."""

    number: np.ndarray
    """The pattern of each row."""
    missing: np.ndarray
    """(patterns x nodes)"""
    pattern: np.ndarray
    """The pattern of each part, ascending, and its `shape`."""
    shape: np.ndarray
    nodes: list[np.ndarray]
    """The nodes of each shape."""

    @classmethod
    def of(cls, codes: np.ndarray, scopes: Sequence[Scope]) -> Parts:
        first, number = distinct_rows(codes < 0)
        missing = codes[first] < 0
        pattern, node = np.nonzero(missing)
        label = label_components(missing, scopes)[pattern, node]
        part = pattern * codes.shape[1] + label
        order = np.argsort(part, kind="stable")
        part, node = part[order], node[order]
        starts = np.flatnonzero(np.diff(part, prepend=-1))
        one, shape = _number_sets(node, starts, codes.shape[1])
        ends = np.append(starts, len(node))[1:]
        nodes = [node[start:end] for start, end in zip(starts[one], ends[one], strict=True)]
        return cls(number, missing, pattern[starts], shape, nodes)

    def of_rows(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and the shape of every part of these rows."""
        begin = np.searchsorted(self.pattern, np.arange(len(self.missing) + 1))
        lengths = np.diff(begin)[self.number[rows]]
        row, first = np.repeat(rows, lengths), np.cumsum(lengths) - lengths
        return row, self.shape[begin[self.number[row]] + np.arange(len(row)) - np.repeat(first, lengths)]

    def enumerate(self, flat: FlatTables, sizes: Sequence[int], most: int) -> tuple[list[np.ndarray], Offsets]:
        """Return the scopes that each shape touches, and for each of them the offsets of its configurations.

        Offsets are None for shapes with more than `most`, unless all rows need at most `FEW` lookups. Small shapes are
        enumerated first, up to `ROOM` offsets in total.
        """
        by_pattern = np.bincount(self.number, minlength=len(self.missing))
        times = np.bincount(self.shape, by_pattern[self.pattern], len(self.nodes))
        touching: list[list[tuple[int, int]]] = [[] for _ in sizes]
        for scope, (members, strides) in enumerate(zip(flat.members.tolist(), flat.strides.tolist(), strict=True)):
            for node, stride in zip(members, strides, strict=True):
                if stride:
                    touching[node].append((scope, stride))
        levels = np.asarray(sizes, float)
        configurations = np.array([levels[nodes].prod() for nodes in self.nodes])
        scopes: list[np.ndarray] = [np.zeros(0, np.int64) for _ in configurations]
        offsets: Offsets = [None for _ in configurations]
        used = looked_up = 0
        for shape in np.argsort(configurations, kind="stable").tolist():
            nodes = self.nodes[shape].tolist()
            place = {scope: at for at, scope in enumerate(sorted({scope for x in nodes for scope, _ in touching[x]}))}
            cost = configurations[shape] * len(place)
            looked_up += cost * times[shape]
            if used + cost > ROOM or (cost > most and looked_up > FEW):
                continue
            used += cost
            found: np.ndarray = np.zeros((len(place), 1), np.int32)
            for node in nodes:
                steps = np.zeros(len(place), np.int32)
                for scope, stride in touching[node]:
                    steps[place[scope]] = stride
                along = steps[:, None] * np.arange(sizes[node], dtype=np.int32)
                found = (found[:, :, None] + along[:, None]).reshape(len(place), -1)
            scopes[shape], offsets[shape] = np.array(list(place), np.int64), found
        return scopes, offsets


Offsets = list[np.ndarray | None]
"""(scopes x configurations) of each shape, added to the first cell of a row in each scope."""


def _number_sets(members: np.ndarray, starts: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of each distinct set of numbers below `size`, and for every set its number among them.

    Set i begins at `members[starts[i]]`. Sets are compared by two hashes; if only one is equal, others are drawn.
    """
    seed = 0
    while True:
        factors = np.random.default_rng(seed).integers(0, 2**64, (2, size), dtype=np.uint64)
        own, other = (np.add.reduceat(each[members], starts) if len(starts) else each[:0] for each in factors)
        _, first, again = np.unique(own, return_index=True, return_inverse=True)
        if np.array_equal(other[first[again]], other):
            return first, again
        seed += 1


def label_components(missing: np.ndarray, scopes: Sequence[Scope]) -> np.ndarray:
    """Label the missing nodes of every pattern. Nodes that are connected by a chain of scopes get equal labels."""
    nodes = missing.shape[1]
    kind = np.int16 if nodes < 2**15 else np.int32  # halves the memory: there may be millions of patterns
    labels = np.ascontiguousarray(np.where(missing, np.arange(nodes, dtype=kind), kind(nodes)).T)
    there = np.ascontiguousarray(missing.T)
    joined = [list(scope) for scope in scopes if len(scope) > 1]
    while True:
        before = labels.copy()
        for scope in [*joined, *reversed(joined)]:
            least = labels[scope].min(axis=0)
            for node in scope:
                np.copyto(labels[node], least, where=there[node])
        if np.array_equal(before, labels):
            return labels.T


# Rows with all their nodes.


class FlatCells(NamedTuple):
    """All cells of tables and factors in one array, with a last cell of 1 for padding, and their logarithms.

    `factors` has one array per distinct scope. `tops` is the sum of the maxima subtracted from each row's factors.
    """

    table: np.ndarray
    logs: np.ndarray
    tops: np.ndarray
    factors: dict[Scope, np.ndarray]


class IncompleteRows(Struct, frozen=True, dict=True):
    """Codes of rows (-1: missing), and values that all E-steps share, computed when first needed.

    An extra scope is a tuple of nodes that has log-likelihoods for each row in every E-step, such as those of numeric
    children.

    >>> rain = Graph.of([("Rain", "Wet")])
    >>> rows = IncompleteRows.of(rain, (2, 2), np.array([[0, 0], [-1, 1], [1, -1]]))
    >>> found = rows.expect([np.array([0.5, 0.5]), np.array([[0.8, 0.2], [0.4, 0.6]])])
    >>> found.counts[0], found.counts[1]
    (array([[1.25, 1.75]]), array([[1.  , 0.25],
           [0.4 , 1.35]]))
    """

    graph: Graph
    sizes: tuple[int, ...]
    codes: np.ndarray
    weights: np.ndarray
    extras: tuple[Scope, ...]

    @classmethod
    def of(
        cls,
        graph: Graph,
        sizes: Sequence[int],
        codes: np.ndarray,
        weights: np.ndarray | None = None,
        extras: Sequence[Scope] = (),
    ) -> IncompleteRows:
        codes = np.ascontiguousarray(codes, np.int64)
        weights = np.ones(len(codes)) if weights is None else weights
        return cls(graph, tuple(map(int, sizes)), codes, weights, tuple(tuple(map(int, each)) for each in extras))

    def expect(self, tables: Tables, factors: Sequence[np.ndarray] = ()) -> Expected:
        """Return counts, log-likelihood and posteriors of the extra scopes, given tables of probabilities.

        `factors` has an array (rows x cells) of log-likelihoods for every extra scope. An impossible row makes the
        log-likelihood -inf and adds no counts.
        """
        cells, flat = self._lay_out(tables, factors), self.flat
        expected = np.zeros(flat.size + 1)
        log_likelihood = weighted_sum(self.seen_counts, cells.logs[: flat.shared])
        for group in self.groups:
            more, logs = group.expect(cells.table, cells.logs)
            expected += more
            log_likelihood += weighted_sum(group.weights, logs)
        expected[: flat.shared] += self.seen_counts
        posteriors, weights = {}, self.weights
        if self.extras:
            weights = np.where(self.is_large, 0.0, weights)
            log_likelihood += weighted_sum(weights, cells.tops)
        for number, (scope, (rows, seen)) in enumerate(self.seen_extras.items(), len(self.sizes)):
            log_likelihood += weighted_sum(weights[rows], cells.logs[seen])
            expected[seen] = 1.0
            posteriors[scope] = expected[flat.starts[number] : flat.starts[number + 1]].reshape(len(self.codes), -1)
        bounds = pairwise(flat.starts[: len(self.sizes) + 1].tolist())
        counts = [expected[a:b].reshape(-1, size) for (a, b), size in zip(bounds, self.sizes, strict=True)]
        for rows, found in self._expect_large(tables, cells.factors):
            log_likelihood += weighted_sum(self.weights[rows], found.log_evidence)
            for own, more in zip(counts, found.counts, strict=True):
                own += more.reshape(own.shape)
            for scope, more in zip(cells.factors, found.posteriors, strict=True):
                posteriors[scope][rows] = more
        if log_likelihood == -np.inf:
            lost = self.row_logs(tables, factors) == -np.inf
            possible = replace(self, weights=np.where(lost, 0.0, self.weights)).expect(tables, factors)
            for posterior in possible.posteriors:
                posterior[lost] = 0.0
            return replace(possible, log_likelihood=-np.inf)
        return Expected(counts, log_likelihood, [posteriors[scope] for scope in self.extras], self.sampled)

    def row_logs(self, tables: Tables, factors: Sequence[np.ndarray] = ()) -> np.ndarray:
        """Return the log-likelihood of each row, -inf if the row is impossible."""
        cells = self._lay_out(tables, factors)
        found = cells.tops.copy()
        for group in self.groups:
            logs = group.expect(cells.table, cells.logs)[1]
            found += np.bincount(group.row, logs[group.number], len(found))
        for number in range(len(self.scopes)):
            rows, shown = self.shown(number)
            found[rows] += cells.logs[shown]
        for rows, own in self._expect_large(tables, cells.factors):
            found[rows] = own.log_evidence
        return found

    def _lay_out(self, tables: Tables, factors: Sequence[np.ndarray]) -> FlatCells:
        by_scope = {scope: np.zeros((len(self.codes), 1)) for scope in self.distinct_extras}
        for scope, factor in zip(self.extras, factors, strict=True):
            by_scope[scope] = by_scope[scope] + factor
        shared = np.concatenate([np.ravel(each) for each in tables])
        highest = [factor.max(axis=1, keepdims=True) for factor in by_scope.values()]
        tops = [np.where(np.isfinite(top), top, 0.0) for top in highest]
        off = [np.ravel(factor - top) for factor, top in zip(by_scope.values(), tops, strict=True)]
        # Only the exponential of -inf is 0. Other values are at least `SMALL`, so that totals that depend on them are
        # below `TINY`.
        plain = [np.where(logs > -np.inf, np.maximum(np.exp(logs), SMALL), 0.0) for logs in off]
        total = np.zeros(len(self.codes)) + sum(top[:, 0] for top in tops)
        return FlatCells(
            np.concatenate([shared, *plain, [1.0]]), np.concatenate([log_of(shared), *off, [0.0]]), total, by_scope
        )

    # -- values that all E-steps share

    @cached_property
    def distinct_extras(self) -> list[Scope]:
        return list(dict.fromkeys(self.extras))

    @cached_property
    def scopes(self) -> list[Scope]:
        return [*self.graph.families, *self.distinct_extras]

    @cached_property
    def flat(self) -> FlatTables:
        return FlatTables.of(self.sizes, self.graph.families, self.distinct_extras, len(self.codes))

    @cached_property
    def parts(self) -> Parts:
        return Parts.of(self.codes, self.scopes)

    @cached_property
    def tree(self) -> JunctionTree | None:
        """The junction tree of the network, or None if it would be too large."""
        try:
            return JunctionTree.build(self.sizes, self.scopes, TREE_CELLS)
        except ResourceError:
            return None

    @cached_property
    def enumerated(self) -> tuple[list[np.ndarray], Offsets]:
        """Shapes that need fewer numbers than a row has in the tree are enumerated."""
        tree = self.tree if len(self.parts.nodes) else None
        return self.parts.enumerate(self.flat, self.sizes, ROOM if tree is None else tree.cells)

    @cached_property
    def is_large(self) -> np.ndarray:
        """Mask of the rows with a part that is not enumerated."""
        large = np.array([each is None for each in self.enumerated[1]], bool)[self.parts.shape]
        return np.asarray(np.bincount(self.parts.pattern, large, len(self.parts.missing))[self.parts.number] > 0)

    @cached_property
    def groups(self) -> list[PartGroup]:
        """Parts of the rows that are not large, grouped by their number of configurations up to a power of two.

        Few array operations then handle many parts.
        """
        row, shape = self.parts.of_rows(np.flatnonzero(~self.is_large))
        own_scopes, own_offsets = self.enumerated
        power = np.array([-1 if own is None else (own.shape[1] - 1).bit_length() for own in own_offsets], int)[shape]
        found = []
        for each in np.unique(power):
            rows, (shapes, number) = row[power == each], np.unique(shape[power == each], return_inverse=True)
            offsets = [own for own in (own_offsets[one] for one in shapes) if own is not None]
            width, cells = np.max([own.shape for own in offsets], axis=0)
            scopes, laid = np.full((width, len(shapes)), -1), np.zeros((width, len(shapes), cells), np.int32)
            there = np.zeros((len(shapes), cells))
            for at, own in enumerate(offsets):
                scopes[: len(own), at] = own_scopes[shapes[at]]
                laid[: len(own), at, : own.shape[1]] = own
                there[at, : own.shape[1]] = 1.0
            lists, distinct = self._distinct_parts(rows, number, scopes)
            weights, bases = np.bincount(distinct, self.weights[rows], len(lists)), lists[:, 1:].T[:, :, None].copy()
            cell_weights = np.where(bases < self.flat.shared, weights[:, None], 1.0)
            found.append(PartGroup(rows, distinct, weights, lists[:, 0], bases, laid, there, cell_weights))
        return found

    def _distinct_parts(self, rows: np.ndarray, shape: np.ndarray, scopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the shape and the first cells of the distinct parts, and the number of every part among them.

        `scopes` (widest x shapes) are those that a shape touches. Parts are compared in blocks, so that memory grows
        with the number of distinct ones.
        """
        lists, numbers = [np.zeros((0, 1 + len(scopes)), np.int64)], list[np.ndarray]()
        for start in range(0, len(rows), BLOCK):
            some, own = rows[start : start + BLOCK], shape[start : start + BLOCK]
            bases = [
                np.where(scope[own] < 0, self.flat.size, self.flat.cells(self._columns, some, scope[own]))
                for scope in scopes
            ]
            block = np.stack([own, *bases], axis=1)
            first, again = distinct_rows(block)
            numbers.append(again + sum(map(len, lists)))
            lists.append(block[first])
        whole = np.concatenate(lists)
        one, again = distinct_rows(whole)
        number = again[np.concatenate(numbers)]
        # Sort by shape, then by row, so that the memory of each row is read and written in order.
        order = np.lexsort((np.unique(number, return_index=True)[1], whole[one, 0]))
        return whole[one[order]], np.argsort(order)[number]

    def shown(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows, without large ones, in which all nodes of a scope are observed, and their cells."""
        holes = np.asarray(self.parts.missing[:, list(self.scopes[number])].any(axis=1))
        rows = np.flatnonzero(~holes[self.parts.number] & ~self.is_large)
        return rows, self.flat.cells(self._columns, rows, number)

    @cached_property
    def _columns(self) -> np.ndarray:
        """Codes as (nodes x rows). A column of 200,000 rows is read ten times as fast as from rows x nodes."""
        return np.ascontiguousarray(self.codes.T)

    @cached_property
    def seen_counts(self) -> np.ndarray:
        """Counts of the families whose nodes are all observed."""
        found = np.zeros(self.flat.shared)
        for node in range(len(self.sizes)):
            rows, cells = self.shown(node)
            found += np.bincount(cells, self.weights[rows], self.flat.shared)
        return found

    @cached_property
    def seen_extras(self) -> dict[Scope, tuple[np.ndarray, np.ndarray]]:
        return {scope: self.shown(number) for number, scope in enumerate(self.distinct_extras, len(self.sizes))}

    # -- rows with parts that are not enumerated

    @cached_property
    def trees(self) -> list[tuple[np.ndarray, Layout | None]]:
        """Groups of large rows with the layout of their tree; None means that the rows are sampled.

        All rows share one tree if it is small. Otherwise each pattern of observed nodes has its own tree, if that is
        small enough. Rows are sampled in blocks.
        """
        large, every = np.flatnonzero(self.is_large), range(len(self.sizes))
        soft, whole = tuple(self.distinct_extras), None
        if not len(large):
            return []
        if self.tree is not None:
            whole = Layout(self.tree, [*every], [], Known((), tuple(every), soft))
            if self.tree.cells <= WORTH_A_TREE * len(self.sizes):
                return [(large, whole)]
        rest, found = [], list[tuple[np.ndarray, Layout | None]]()
        for pattern in np.unique(self.parts.number[large]):
            rows = large[self.parts.number[large] == pattern]
            known = Known.of(np.flatnonzero(~self.parts.missing[pattern]).tolist(), soft)
            try:
                found.append((rows, Layout.build(self.graph, self.sizes, every, known, PATTERN_TREE_CELLS)))
            except ResourceError:
                rest.append(rows)
        left = np.sort(np.concatenate(rest)) if rest else large[:0]
        step = len(left) if whole is not None else max(1, SAMPLED_CODES // (CHAINS * len(self.sizes)))
        return [*found, *((left[start : start + step], whole) for start in range(0, len(left), max(1, step)))]

    @property
    def sampled(self) -> int:
        return sum(len(rows) for rows, layout in self.trees if layout is None)

    def _expect_large(self, tables: Tables, factors: dict[Scope, np.ndarray]) -> list[tuple[np.ndarray, Expectation]]:
        """Return large rows with their expected counts, log-likelihoods and posteriors, group by group."""
        if not self.trees:
            return []
        shapes = ([self.sizes[node] for node in scope] for scope in self.graph.families)
        shaped = [np.reshape(table, shape) for table, shape in zip(tables, shapes, strict=True)]
        rng, found = np.random.default_rng(SEED), []
        for rows, layout in self.trees:
            evidence = Evidence(self.codes[rows], {scope: factor[rows] for scope, factor in factors.items()})
            if layout is None:
                own = sample_expectation(self.graph, shaped, evidence, self.weights[rows], rows, rng)
            else:
                tree = PrunedTree.of(layout, shaped, self.graph.families)
                one = again = np.arange(len(rows))
                if not factors:  # equal rows are summed once
                    one, again = distinct_rows(evidence.codes)
                own = tree.answer(list(factors), evidence.take(one), np.bincount(again, self.weights[rows], len(one)))
                own = own._replace(log_evidence=own.log_evidence[again])
            found.append((rows, own))
        return found


def weighted_sum(weights: np.ndarray, logs: np.ndarray) -> float:
    """Return the sum of weighted logarithms; 0 times -inf is 0.

    >>> weighted_sum(np.array([2.0, 0.0]), np.array([-1.0, -np.inf]))
    -2.0
    """
    there = weights != 0
    return float(np.multiply(weights, logs, where=there, out=np.zeros(len(weights))).sum())
