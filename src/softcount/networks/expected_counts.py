"""Expected counts of rows with missing values (E-step).

Small connected sets of missing nodes are enumerated. Other rows go through a junction tree or are sampled.
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
from softcount.networks.elimination import FlatTables, Scope, number_alike, positions, runs
from softcount.networks.junction_tree import JunctionTree
from softcount.networks.large_networks import TREE_CELLS, LargeRows
from softcount.networks.network import Graph, distinct_rows
from softcount.networks.queries import Expectation

BLOCK = 2**18
"""Number of row parts compared in one block."""

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

Tables = Sequence[np.ndarray]


class MissingPatterns(Struct, frozen=True):
    """Distinct patterns of missing nodes, with the connected sets of nodes (shapes) that each pattern consists of."""

    number: np.ndarray
    missing: np.ndarray
    """Shape (patterns x nodes)."""
    pattern: np.ndarray
    """The pattern of each connected set, sorted by pattern."""
    shape: np.ndarray
    starts: np.ndarray
    nodes: np.ndarray
    """Shape s consists of the nodes `nodes[starts[s] : starts[s + 1]]`."""

    @classmethod
    def of(cls, codes: np.ndarray, scopes: Sequence[Scope]) -> MissingPatterns:
        first, number = distinct_rows(codes < 0)
        missing = codes[first] < 0
        pattern, node = np.nonzero(missing)
        label = connected(missing, scopes)[pattern, node]
        together = np.lexsort((node, label, pattern))
        pattern, node, label = pattern[together], node[together], label[together]
        begins = np.ones(len(pattern), bool)
        begins[1:] = (np.diff(pattern) != 0) | (np.diff(label) != 0)
        starts = np.concatenate([np.flatnonzero(begins), [len(pattern)]])
        shape, one = number_alike(np.zeros(len(starts) - 1), starts, node)
        lengths = np.diff(starts)[one]
        return cls(number, missing, pattern[begins], shape, runs(lengths), node[positions(starts[one], lengths)[1]])

    def parts_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and the shape of every part of these rows."""
        begin = np.searchsorted(self.pattern, np.arange(len(self.missing) + 1))
        own = self.number[rows]
        run, at = positions(begin[own], np.diff(begin)[own])
        return rows[run], self.shape[at]


def connected(missing: np.ndarray, scopes: Sequence[Scope]) -> np.ndarray:
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


class Shapes(Struct, frozen=True):
    """Connected sets of missing nodes, the scopes that each touches, and the cells of its configurations.

    The scopes of shape s are `scopes[entries[s] : entries[s + 1]]`. `offsets[s]` (scopes x configurations) is added to
    the first cell of a row in each scope. It is None if the shape has too many configurations to enumerate.
    """

    entries: np.ndarray
    scopes: np.ndarray
    offsets: list[np.ndarray | None]

    @classmethod
    def of(cls, patterns: MissingPatterns, flat: FlatTables, sizes: Sequence[int], most: int) -> Shapes:
        """Enumerate shapes with at most `most` offsets, and larger ones if all rows need at most `FEW` lookups.

        Small shapes are enumerated first, up to `ROOM` offsets in total.
        """
        by_pattern = np.bincount(patterns.number, minlength=len(patterns.missing))
        times = np.bincount(patterns.shape, by_pattern[patterns.pattern], len(patterns.starts) - 1)
        touching: list[list[tuple[int, int]]] = [[] for _ in sizes]
        for scope, (members, strides) in enumerate(zip(flat.members.tolist(), flat.strides.tolist(), strict=True)):
            for node, stride in zip(members, strides, strict=True):
                if stride:
                    touching[node].append((scope, stride))
        levels, nodes = np.asarray(sizes, float)[patterns.nodes], patterns.nodes.tolist()
        cells = np.multiply.reduceat(levels, patterns.starts[:-1]) if len(nodes) else np.zeros(0)
        scopes: list[list[int]] = [[] for _ in cells]
        offsets: list[np.ndarray | None] = [None for _ in cells]
        used = looked_up = 0
        for shape in np.argsort(cells, kind="stable").tolist():
            own = nodes[patterns.starts[shape] : patterns.starts[shape + 1]]
            number = {scope: at for at, scope in enumerate(sorted({scope for x in own for scope, _ in touching[x]}))}
            cost = cells[shape] * len(number)
            looked_up += cost * times[shape]
            if used + cost > ROOM or (cost > most and looked_up > FEW):
                continue
            used += cost
            found = np.zeros((len(number), 1), np.int32)
            for node in own:
                strides = np.zeros(len(number), np.int32)
                for scope, stride in touching[node]:
                    strides[number[scope]] = stride
                along = strides[:, None] * np.arange(sizes[node], dtype=np.int32)
                found = (found[:, :, None] + along[:, None]).reshape(len(number), -1)
            scopes[shape], offsets[shape] = list(number), found
        entries = runs(np.array([len(own) for own in scopes], np.int64))
        return cls(entries, np.array([scope for own in scopes for scope in own], np.int64), offsets)


class RowParts(Struct, frozen=True):
    """Parts of rows: shape and weight of each part, and the first cells `bases[starts[p] : starts[p + 1]]` of its
    scopes.
    """

    shape: np.ndarray
    starts: np.ndarray
    bases: np.ndarray
    weights: np.ndarray

    def distinct(self) -> tuple[RowParts, np.ndarray]:
        """Merge equal parts and add their weights. Return also the index of each part among the distinct ones."""
        number, one = number_alike(self.shape, self.starts, self.bases)
        # Sort by shape, then by row, so that the memory of each row is read and written in order.
        order = np.lexsort((one, self.shape[one]))
        one, number = one[order], np.argsort(order)[number]
        lengths = np.diff(self.starts)[one]
        bases = self.bases[positions(self.starts[one], lengths)[1]]
        weights = np.bincount(number, self.weights, len(one)).astype(float)
        return RowParts(self.shape[one], runs(lengths), bases, weights), number


class AlikeParts(Struct, frozen=True):
    """Parts with similar numbers of configurations, padded to arrays of equal size.

    `bases` has shape (scopes x parts x 1) and `offsets` (scopes x shapes x cells). `there` (shapes x cells) is 1 for a
    configuration and 0 for padding. `weights` has the shape of `bases`.
    """

    parts: np.ndarray
    shape: np.ndarray
    bases: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    there: np.ndarray


class EnumeratedParts(Struct, frozen=True, dict=True):
    """Distinct parts whose configurations are enumerated; `expect` sums over these configurations.

    The first `shared` of the `size` cells of all tables are counted with the weights of the parts, the others with
    weight 1.
    """

    parts: RowParts
    shapes: Shapes
    shared: int
    size: int

    @cached_property
    def groups(self) -> list[AlikeParts]:
        """Parts grouped by their number of configurations, rounded up to a power of two.

        Few array operations handle many parts.
        """
        own, found = self.parts, []
        used, number = np.unique(own.shape, return_inverse=True)
        offsets = [each for each in (self.shapes.offsets[shape] for shape in used) if each is not None]
        power = np.array([(each.shape[1] - 1).bit_length() for each in offsets], np.int64)
        for each in np.unique(power):
            shapes, parts = np.flatnonzero(power == each), np.flatnonzero(power[number] == each)
            scopes, cells = np.max([offsets[shape].shape for shape in shapes], axis=0)
            laid, there = np.zeros((scopes, len(shapes), cells), np.int32), np.zeros((len(shapes), cells))
            for number_here, shape in enumerate(shapes):
                places = offsets[shape]
                laid[: len(places), number_here, : places.shape[1]] = places
                there[number_here, : places.shape[1]] = 1.0
            bases = np.full((scopes, len(parts), 1), self.size)  # padding selects the cell after the last, which is 1
            run, at = positions(own.starts[parts], np.diff(own.starts)[parts])
            bases[at - own.starts[parts][run], run, 0] = own.bases[at]
            weights = np.where(bases < self.shared, own.weights[parts][:, None], 1.0)
            found.append(AlikeParts(parts, np.searchsorted(shapes, number[parts]), bases, weights, laid, there))
        return found

    def expect(self, table: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected counts of all cells and the log total of every part.

        `logs` are the logarithms of `table`.
        """
        table, logs = np.append(table, 1.0), np.append(logs, 0.0)
        counts, found = np.zeros(self.size + 1), np.zeros(len(self.parts.shape))
        for own in self.groups:
            step = max(1, max(LOOKUPS, self.size) // own.offsets[:, 0].size)
            for start in range(0, len(own.parts), step):
                block = slice(start, start + step)
                shape = own.shape[block] if len(own.there) > 1 else slice(None)
                places = own.bases[:, block] + own.offsets[:, shape]
                values = table.take(places).prod(axis=0)
                values *= own.there[shape]
                totals = values.sum(axis=1)
                top = np.zeros(len(totals))
                lost = np.flatnonzero(totals < TINY)
                if len(lost):
                    high = np.where(own.there[own.shape[block][lost]] > 0, logs[places[:, lost]].sum(axis=0), -np.inf)
                    top[lost] = np.maximum(high.max(axis=1), np.finfo(float).min)
                    values[lost] = np.exp(high - top[lost, None])
                    totals[lost] = values[lost].sum(axis=1)
                found[own.parts[block]] = log_of(totals) + top
                values /= np.where(totals > 0, totals, 1.0)[:, None]
                counts += np.bincount(places.ravel(), (values * own.weights[:, block]).ravel(), self.size + 1)
        return counts[:-1], found


class Expected(Struct, frozen=True):
    """Expected counts of each node's table as (parent configurations x levels), and the log-likelihood."""

    counts: list[np.ndarray]
    log_likelihood: float
    posteriors: list[np.ndarray]
    """For every extra scope, an array (rows x cells of the scope)."""
    sampled: int
    """Number of rows estimated by sampling, because exact sums would cost too much."""


class FlatCells(NamedTuple):
    """All cells of tables and factors in one array, and their logarithms.

    `factors` has one array per distinct scope. `tops` is the sum of the maxima subtracted from each row's factors.
    """

    table: np.ndarray
    logs: np.ndarray
    tops: np.ndarray
    factors: list[np.ndarray]


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
        cells = self._cells(tables, factors)
        expected, part_logs = self.parts[0].expect(cells.table, cells.logs)
        log_likelihood = weighted(self.parts[0].parts.weights, part_logs)
        log_likelihood += weighted(self.seen_counts, cells.logs[: self.flat.shared])
        if self.extras:
            weights = np.where(self.is_large, 0.0, self.weights)
            for rows, seen in self.seen_extras:
                log_likelihood += weighted(weights[rows], cells.logs[seen])
            log_likelihood += weighted(weights, cells.tops)
        large = self._expect_large(tables, cells)
        if large is not None:
            log_likelihood += weighted(self.large.weights, large.log_evidence)
        if log_likelihood == -np.inf:
            lost = self.row_logs(tables, factors) == -np.inf
            found = replace(self, weights=np.where(lost, 0.0, self.weights)).expect(tables, factors)
            for posterior in found.posteriors:
                posterior[lost] = 0.0
            return Expected(found.counts, -np.inf, found.posteriors, found.sampled)
        shared = expected[: self.flat.shared] + self.seen_counts
        bounds = pairwise(self.flat.starts[: len(self.sizes) + 1].tolist())
        counts = [shared[a:b].reshape(-1, size) for (a, b), size in zip(bounds, self.sizes, strict=True)]
        posteriors = {}
        for number, (scope, (_, seen)) in enumerate(zip(self.own_extras, self.seen_extras, strict=True)):
            expected[seen] = 1.0
            first, last = self.flat.starts[len(self.sizes) + number : len(self.sizes) + number + 2]
            posteriors[scope] = expected[first:last].reshape(len(self.codes), -1)
        if large is not None:
            counts = [own + more for own, more in zip(counts, large.counts, strict=True)]
            for own, more in zip(posteriors.values(), large.posteriors, strict=True):
                own[self.is_large] = more
        return Expected(counts, log_likelihood, [posteriors[scope] for scope in self.extras], self.large.sampled)

    def _expect_large(self, tables: Tables, cells: FlatCells) -> Expectation | None:
        if not self.is_large.any():
            return None
        return self.large.expect(tables, [factor[self.is_large] for factor in cells.factors])

    def row_logs(self, tables: Tables, factors: Sequence[np.ndarray] = ()) -> np.ndarray:
        """Return the log-likelihood of each row, -inf if the row is impossible."""
        cells = self._cells(tables, factors)
        parts, rows, numbers = self.parts
        found = np.bincount(rows, parts.expect(cells.table, cells.logs)[1][numbers], len(self.codes)) + cells.tops
        for number in range(self.flat.scopes):
            rows, shown = self.shown(number)
            found[rows] += cells.logs[shown]
        large = self._expect_large(tables, cells)
        if large is not None:
            found[self.is_large] = large.log_evidence
        return np.asarray(found)

    def _cells(self, tables: Tables, factors: Sequence[np.ndarray]) -> FlatCells:
        """Lay out tables and factors in one array."""
        by_scope = {scope: np.zeros((len(self.codes), 1)) for scope in self.own_extras}
        for scope, factor in zip(self.extras, factors, strict=True):
            by_scope[scope] = by_scope[scope] + factor
        shared = np.concatenate([np.ravel(each) for each in tables])
        highest = [factor.max(axis=1, keepdims=True) for factor in by_scope.values()]
        tops = [np.where(np.isfinite(top), top, 0.0) for top in highest]
        off = [np.ravel(factor - top) for factor, top in zip(by_scope.values(), tops, strict=True)]
        # Only the exponential of -inf is 0. Other values are at least `SMALL`, so that totals that depend on them are
        # below `TINY`.
        plain = [np.where(logs > -np.inf, np.maximum(np.exp(logs), SMALL), 0.0) for logs in off]
        logs = np.concatenate([log_of(shared), *off])
        total = np.zeros(len(self.codes)) + sum(top[:, 0] for top in tops)
        return FlatCells(np.concatenate([shared, *plain]), logs, total, list(by_scope.values()))

    # -- values that all E-steps share

    @cached_property
    def own_extras(self) -> list[Scope]:
        """The distinct extra scopes."""
        return list(dict.fromkeys(self.extras))

    @cached_property
    def scopes(self) -> list[Scope]:
        return [*self.graph.families, *self.own_extras]

    @cached_property
    def flat(self) -> FlatTables:
        return FlatTables.of(self.sizes, self.graph.families, self.own_extras, len(self.codes))

    @cached_property
    def patterns(self) -> MissingPatterns:
        return MissingPatterns.of(self.codes, self.scopes)

    @cached_property
    def tree(self) -> JunctionTree | None:
        """The junction tree of the network, or None if it would be too large."""
        try:
            return JunctionTree.build(self.sizes, list(filter(None, self.scopes)), TREE_CELLS)
        except ResourceError:
            return None

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of the missing nodes. Those that need fewer numbers than a row has in the tree are enumerated."""
        tree = self.tree if len(self.patterns.nodes) else None
        return Shapes.of(self.patterns, self.flat, self.sizes, ROOM if tree is None else tree.cells)

    @cached_property
    def is_large(self) -> np.ndarray:
        """Mask of the rows with a part whose shape is not enumerated."""
        patterns = self.patterns
        large = np.array([each is None for each in self.shapes.offsets], bool)
        with_large = np.bincount(patterns.pattern[large[patterns.shape]], minlength=len(patterns.missing)) > 0
        return np.asarray(with_large[patterns.number])

    @cached_property
    def large(self) -> LargeRows:
        rows = np.flatnonzero(self.is_large)
        return LargeRows(self.graph, self.sizes, self.codes[rows], self.weights[rows], self.own_extras, rows, self.tree)

    @cached_property
    def parts(self) -> tuple[EnumeratedParts, np.ndarray, np.ndarray]:
        """The distinct parts of rows that are not large; the row of every part; its index among the distinct parts.

        Parts are compared in blocks, so that memory grows with the number of distinct parts.
        """
        row, shape = self.patterns.parts_of(np.flatnonzero(~self.is_large))
        entries, blocks, numbers = self.shapes.entries, list[RowParts](), list[np.ndarray]()
        for start in range(0, max(len(row), 1), BLOCK):
            own, rows = shape[start : start + BLOCK], row[start : start + BLOCK]
            lengths = np.diff(entries)[own]
            run, at = positions(entries[own], lengths)
            cells = self.flat.cells_at(self.codes, rows[run], self.shapes.scopes[at])
            parts, number = RowParts(own, runs(lengths), cells, self.weights[rows]).distinct()
            numbers.append(number + sum(len(block.shape) for block in blocks))
            blocks.append(parts)
        if len(blocks) > 1:
            lengths = np.concatenate([np.diff(block.starts) for block in blocks])
            shapes, bases, weights = (
                np.concatenate([getattr(block, name) for block in blocks]) for name in ("shape", "bases", "weights")
            )
            parts, merged = RowParts(shapes, runs(lengths), bases, weights).distinct()
            number = merged[np.concatenate(numbers)]
        return EnumeratedParts(parts, self.shapes, self.flat.shared, self.flat.size), row, number

    def shown(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows, without large ones, in which all nodes of a scope are observed, and their cells."""
        holes = self.patterns.missing[:, list(self.scopes[number])].any(axis=1)
        rows = np.flatnonzero(~np.asarray(holes)[self.patterns.number] & ~self.is_large)
        return rows, self.flat.cells_in(self._columns, rows, number)

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
    def seen_extras(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [self.shown(number) for number in range(len(self.sizes), len(self.scopes))]


def weighted(weights: np.ndarray, logs: np.ndarray | float) -> float:
    """Return the sum of weighted logarithms; 0 times -inf is 0.

    >>> weighted(np.array([2.0, 0.0]), np.array([-1.0, -np.inf]))
    -2.0
    """
    there = weights != 0
    return float(np.multiply(weights, logs, where=there, out=np.zeros(len(weights))).sum())
