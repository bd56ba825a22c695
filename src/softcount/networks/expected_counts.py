"""Expected counts of a network (E-step), and structural EM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np
from msgspec import Struct

from softcount.errors import DataError
from softcount.networks.elimination import Evidence, Scope
from softcount.networks.large_networks import LargeShare
from softcount.networks.missing_values import HolePlan
from softcount.networks.network import Graph, check_codes
from softcount.networks.queries import Questions
from softcount.networks.scores import CodeCounts, check_weights
from softcount.networks.structure_search import chow_liu

SMALL = 1e-300
"""Far below what matters in plain numbers: sums that it would decide are computed again in logarithms."""

Tables = Sequence[np.ndarray]


class Expected(Struct, frozen=True):
    """Expected counts of each node's table as (parent configurations x levels), and the log-likelihood."""

    counts: list[np.ndarray]
    log_likelihood: float
    posteriors: list[np.ndarray]
    """For every extra scope, rows x its cells."""
    sampled: int
    """Rows estimated by sampling, because the exact sums cost too much."""


class RowsWithHoles(Struct, frozen=True, dict=True):
    """Codes of rows (-1: missing), with all that stays the same from one E-step to the next.

    An extra scope is a tuple of nodes with log-likelihoods row by row in every E-step, such as those of numeric
    children.

    >>> rain = Graph.of([("Rain", "Wet")])
    >>> rows = RowsWithHoles.of(rain, (2, 2), np.array([[0, 0], [-1, 1], [1, -1]]))
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
    ) -> RowsWithHoles:
        if len(sizes) != len(graph.names):
            raise DataError(f"the network has {len(graph.names)} nodes, but {len(sizes)} sizes are given.")
        codes = np.ascontiguousarray(check_codes(np.asarray(codes, np.int64), sizes, graph.names))
        weights = check_weights(weights, len(codes))
        return cls(graph, tuple(map(int, sizes)), codes, weights, tuple(tuple(map(int, each)) for each in extras))

    def expect(self, tables: Tables, factors: Sequence[np.ndarray] = ()) -> Expected:
        """Counts, log-likelihood, and posteriors of the extra scopes, under tables of probabilities.

        `factors` has an array (rows x cells) for every extra scope. An impossible row makes the log-likelihood -inf and
        adds no counts.
        """
        cells = self._cells(tables, factors)
        expected, part_logs = self.plan.parts[0].expect(cells.table, cells.logs)
        large = self._large(tables, cells)
        log_likelihood = self._total(cells, part_logs)
        if large is not None:
            log_likelihood += weighted(self.plan.large.weights, large.logs)
        if log_likelihood == -np.inf:
            lost = self.row_logs(tables, factors) == -np.inf
            found = RowsWithHoles.of(
                self.graph, self.sizes, self.codes, np.where(lost, 0.0, self.weights), self.extras
            ).expect(tables, factors)
            for posterior in found.posteriors:
                posterior[lost] = 0.0
            return Expected(found.counts, -np.inf, found.posteriors, found.sampled)
        shared = expected[: self.plan.flat.shared] + self.plan.seen_counts
        bounds = pairwise(self.plan.flat.starts[: len(self.sizes) + 1].tolist())
        counts = [shared[a:b].reshape(-1, size) for (a, b), size in zip(bounds, self.sizes, strict=True)]
        posteriors = []
        for number, (_, seen) in enumerate(self.plan.seen_extras, len(self.sizes)):
            expected[seen] = 1.0
            first, last = self.plan.flat.starts[number : number + 2]
            posteriors.append(expected[first:last].reshape(len(self.codes), -1))
        if large is not None:
            counts = [own + more for own, more in zip(counts, large.counts, strict=True)]
            for own, more in zip(posteriors, large.posteriors, strict=True):
                own[self.plan.is_large] = more
        return Expected(counts, log_likelihood, [posteriors[at] for at in self.which_scope], self.plan.large.sampled)

    def _large(self, tables: Tables, cells: FlatCells) -> LargeShare | None:
        if not self.plan.is_large.any():
            return None
        return self.plan.large.expect(tables, [factor[self.plan.is_large] for factor in cells.factors])

    def row_logs(self, tables: Tables, factors: Sequence[np.ndarray] = ()) -> np.ndarray:
        cells = self._cells(tables, factors)
        part_logs = self.plan.parts[0].expect(cells.table, cells.logs)[1]
        every = np.arange(len(self.codes))
        found = np.zeros(len(every))
        _, rows, numbers = self.plan.parts
        found += np.bincount(rows, part_logs[numbers], len(every))
        for number in range(self.plan.flat.scopes):
            rows, shown = self.plan.shown(number)
            found[rows] += cells.logs[shown]
        found += cells.tops
        large = self._large(tables, cells)
        if large is not None:
            found[self.plan.is_large] = large.logs
        return found

    def impossible(self, tables: Tables, factors: Sequence[np.ndarray] = ()) -> int | None:
        """The first row that is impossible under these tables, if any."""
        rows = np.flatnonzero(self.row_logs(tables, factors) == -np.inf)
        return int(rows[0]) if len(rows) else None

    def _total(self, cells: FlatCells, part_logs: np.ndarray) -> float:
        found = weighted(self.plan.parts[0].parts.weights, part_logs)
        found += weighted(self.plan.seen_counts, cells.logs[: self.plan.flat.shared])
        if not self.plan.extras:
            return found
        weights = np.where(self.plan.is_large, 0.0, self.weights)
        for rows, seen in self.plan.seen_extras:
            found += weighted(weights[rows], cells.logs[seen])
        return found + weighted(weights, cells.tops)

    def _cells(self, tables: Tables, factors: Sequence[np.ndarray]) -> FlatCells:
        if [np.size(table) for table in tables] != self._table_cells:
            for name, table, cells in zip(self.graph.names, tables, self._table_cells, strict=True):
                if np.size(table) != cells:
                    raise DataError(
                        f"the table of node {name!r} has {np.size(table):,} cells, but the levels of the node and its "
                        f"parents make {cells:,}."
                    )
        for scope, factor in zip(self.extras, factors, strict=True):
            names = ", ".join(str(self.graph.names[node]) for node in scope)
            shape, own = (len(self.codes), prod(self.sizes[node] for node in scope)), np.asarray(factor)
            if own.shape != shape:
                raise DataError(f"what hangs on ({names}) is {shape[0]:,} rows x {shape[1]:,} cells, not {own.shape}.")
            wrong_rows = np.flatnonzero(~(own < np.inf).all(axis=1))
            if len(wrong_rows):
                row = int(wrong_rows[0]) + 1
                raise DataError(f"row {row}: what hangs on ({names}) has no finite log-likelihood, nor -inf.")
        summed = [np.zeros((len(self.codes), 1))] * len(self.plan.extras)
        for number, factor in zip(self.which_scope, factors, strict=True):
            summed[number] = summed[number] + factor
        found = FlatCells.of(tables, summed)
        shared = found.table[: self.plan.flat.shared]
        if not ((shared >= 0) & (shared < np.inf)).all():
            wrong = int(np.argmax(~((shared >= 0) & (shared < np.inf))))
            node = int(np.searchsorted(self.plan.flat.starts, wrong, side="right")) - 1
            raise DataError(
                f"the table of node {self.graph.names[node]!r} holds what is no probability: a number from 0 to 1."
            )
        return found

    @cached_property
    def _table_cells(self) -> list[int]:
        return [prod(self.sizes[each] for each in scope) for scope in self.graph.families]

    @cached_property
    def plan(self) -> HolePlan:
        return HolePlan(self.graph, self.sizes, self.codes, self.weights, list(dict.fromkeys(self.extras)))

    @cached_property
    def which_scope(self) -> list[int]:
        """The number of every extra scope among the distinct ones."""
        return [self.plan.extras.index(scope) for scope in self.extras]


class FlatCells(Struct, frozen=True):
    """All cells of tables and factors in one array, and their logarithms; `tops` is the maximum subtracted from each
    row's factors.
    """

    table: np.ndarray
    logs: np.ndarray
    tops: np.ndarray | float
    factors: list[np.ndarray]

    @classmethod
    def of(cls, tables: Tables, factors: list[np.ndarray]) -> FlatCells:
        table = np.concatenate([np.ravel(each) for each in tables])
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(table)
        highest = [factor.max(axis=1, keepdims=True) for factor in factors]
        tops = [np.where(np.isfinite(top), top, 0.0) for top in highest]
        off = [np.ravel(factor - top) for factor, top in zip(factors, tops, strict=True)]
        return cls(
            np.concatenate([table, *map(_exp, off)]),
            np.concatenate([logs, *off]),
            sum(top[:, 0] for top in tops),
            factors,
        )


def _exp(logs: np.ndarray) -> np.ndarray:
    """Exponentials; only that of -inf is 0, smaller ones are `SMALL`."""
    found: np.ndarray = np.exp(logs)
    found[(found < SMALL) & (logs > -np.inf)] = SMALL
    return found


def weighted(weights: np.ndarray, logs: np.ndarray | float) -> float:
    """The sum of weighted logarithms, where 0 times -inf is 0.

    >>> weighted(np.array([2.0, 0.0]), np.array([-1.0, -np.inf]))
    -2.0
    """
    there = weights != 0
    return float(np.multiply(weights, logs, where=there, out=np.zeros(len(weights))).sum())


# A structure from rows with holes: what a network says of them is drawn, a better structure looked for, and again.

MOST_TURNS = 8
EM_STEPS = 20
DRAWN_ROWS = 4000
"""Completed rows in all: few rows are completed several times, to reduce chance."""
MOST_DRAWS = 5

Learn = Callable[[CodeCounts], Graph]


def structural_em(
    codes: np.ndarray, sizes: tuple[int, ...], weights: np.ndarray, learn: Learn, seed: int = 0
) -> tuple[Graph, int]:
    """The structure that `learn` finds again in rows completed by its own network, and the number of turns."""
    rng = np.random.default_rng(seed)
    graph = chow_liu(CodeCounts(codes, sizes, weights))
    draws = max(1, min(MOST_DRAWS, DRAWN_ROWS // max(len(codes), 1)))
    for turn in range(1, MOST_TURNS + 1):
        tables = fitted_tables(graph, sizes, codes, weights)
        filled = np.concatenate([filled_rows(graph, sizes, tables, codes, rng) for _ in range(draws)])
        found = learn(CodeCounts(filled, sizes, np.tile(weights, draws) / draws))
        if found.is_equivalent(graph):
            return found, turn
        graph = found
    return graph, MOST_TURNS


def fitted_tables(graph: Graph, sizes: Sequence[int], codes: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    """Tables by some steps of EM, with one prior row in every configuration."""
    rows = RowsWithHoles.of(graph, sizes, codes, weights)
    tables = [np.full([sizes[node] for node in family], 1.0 / sizes[family[-1]]) for family in graph.families]
    before = -np.inf
    for _ in range(EM_STEPS):
        found = rows.expect(tables)
        raised = [own + 1.0 / own.shape[1] for own in found.counts]
        shares = [own / own.sum(axis=1, keepdims=True) for own in raised]
        tables = [np.asarray(own.reshape(table.shape)) for own, table in zip(shares, tables, strict=True)]
        if found.log_likelihood - before < 1e-4 * abs(found.log_likelihood) / max(len(codes), 1):
            break
        before = found.log_likelihood
    return tables


def filled_rows(
    graph: Graph, sizes: Sequence[int], tables: Sequence[np.ndarray], codes: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Complete rows by drawing missing values node after node, each given the row and the values drawn before."""
    found = np.array(codes, dtype=np.int64)
    questions = Questions(graph, sizes, tables)
    for node in graph.order:
        rows = np.flatnonzero(found[:, node] < 0)
        if len(rows):
            shares = questions.posterior([node], Evidence(found[rows]))
            edges = np.cumsum(shares, axis=1)
            found[rows, node] = (rng.random(len(rows))[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
    return found
