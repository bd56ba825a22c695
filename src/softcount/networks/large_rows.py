"""Rows with parts too large to be summed by themselves: by a tree of the network, by trees of their own, or sampled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

import numpy as np

from softcount.errors import ResourceError
from softcount.networks.elimination import Scope
from softcount.networks.flat_tables import number_alike
from softcount.networks.graph import Graph
from softcount.networks.junction_tree import JunctionTree
from softcount.networks.loaded_tree import LoadedTree
from softcount.networks.row_evidence import Evidence
from softcount.networks.row_trees import RowTrees
from softcount.networks.sampled_lanes import SampledLanes
from softcount.records import dataclass

MOST_CELLS = 2**24
"""The largest junction tree: 128 megabytes for a row, a few times over, and a second or so."""

WORTH_A_TREE = 2**14
"""Cells of that tree, for each node, from which rows get trees of their own: one takes some milliseconds."""

CHAINS = 8
"""Gibbs chains for each row that is sampled."""

TRIES = 16
"""States drawn for each chain to begin from one of them."""

BURN_IN, SWEEPS = 10, 40

BLOCK = 2**20
"""Codes of samples held at once."""

SEED = 20
"""Of every E-step alike, so that only the tables make two of them differ."""


@dataclass(frozen=True)
class LargeShare:
    """What large rows add to the counts of families, and row by row their log-likelihoods and posteriors of extras."""

    counts: list[np.ndarray]
    logs: np.ndarray
    posteriors: list[np.ndarray]


@dataclass(frozen=True)
class LargeRows:
    """Their codes, weights and numbers among all rows; no extra scope is there twice."""

    graph: Graph
    sizes: tuple[int, ...]
    codes: np.ndarray
    weights: np.ndarray
    extras: list[Scope]
    rows: np.ndarray

    def expect(self, tables: Sequence[np.ndarray], factors: Sequence[np.ndarray]) -> LargeShare:
        """As in `RowsWithHoles`, for these rows alone. Tables may be of any shape."""
        shaped = [
            np.reshape(table, [self.sizes[node] for node in scope])
            for table, scope in zip(tables, self.graph.families, strict=True)
        ]
        own = dict(zip(self.extras, factors, strict=True))
        constant = own.pop((), np.zeros((len(self.codes), 1)))[:, 0]
        found = self._one_by_one(shaped, own) if self._own_tree.any() else self._together(shaped, own)
        by_scope = dict(zip(own, found.posteriors, strict=True))
        by_scope[()] = np.where(found.logs > -np.inf, 1.0, 0.0)[:, None]
        counts = [count.reshape(-1, size) for count, size in zip(found.counts, self.sizes, strict=True)]
        return LargeShare(counts, found.logs + constant, [by_scope[scope] for scope in self.extras])

    @cached_property
    def tree(self) -> JunctionTree | None:
        """None where it would be too large."""
        scopes = [*self.graph.families, *filter(None, self.extras)]
        try:
            return JunctionTree.build(self.sizes, scopes, MOST_CELLS)
        except ResourceError:
            return None

    @property
    def sampled(self) -> int:
        """How many rows have to be sampled."""
        return int((~self._own_tree).sum()) if len(self.codes) and self.tree is None else 0

    @cached_property
    def _own_tree(self) -> np.ndarray:
        """Which rows have a tree of what they do not show.

        None where numbers speak of nodes together, or the tree of the whole network costs less.
        """
        light = self.tree is not None and self.tree.cells <= WORTH_A_TREE * len(self.sizes)
        return np.zeros(len(self.codes), bool) if light or any(self.extras) else self.row_trees.exact

    @cached_property
    def row_trees(self) -> RowTrees:
        return RowTrees(self.graph, self.sizes, self.codes, self.weights)

    @cached_property
    def _others(self) -> LargeRows:
        """The rows that have no tree of their own."""
        rows = np.flatnonzero(~self._own_tree)
        return LargeRows(self.graph, self.sizes, self.codes[rows], self.weights[rows], self.extras, self.rows[rows])

    def _one_by_one(self, tables: list[np.ndarray], factors: dict[Scope, np.ndarray]) -> LargeShare:
        """Each row by a tree of what it does not show, the others together."""
        exact = self.row_trees.expect(tables)
        if self._own_tree.all():
            return LargeShare(exact.counts, exact.logs, [])
        rest = self._others._together(tables, factors)
        logs = exact.logs.copy()
        logs[~self._own_tree] = rest.logs
        counts = [own + more.reshape(own.shape) for own, more in zip(exact.counts, rest.counts, strict=True)]
        return LargeShare(counts, logs, [])

    def _together(self, tables: list[np.ndarray], factors: dict[Scope, np.ndarray]) -> LargeShare:
        """By the tree of the whole network, or sampled where that is too large."""
        return self._sampled(tables, factors) if self.tree is None else self._exact(self.tree, tables, factors)

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The number of every row among the different ones, and one row of each number; with extras all differ."""
        rows, nodes = self.codes.shape
        if any(self.extras):
            return np.arange(rows), np.arange(rows)
        return number_alike(np.zeros(rows), np.arange(0, rows * nodes + 1, nodes), self.codes.ravel() + 1)

    def _exact(self, tree: JunctionTree, tables: list[np.ndarray], factors: dict[Scope, np.ndarray]) -> LargeShare:
        number, one = self._distinct
        weights = np.bincount(number, self.weights, len(one))
        found = LoadedTree(tree, tables).expected(Evidence(self.codes[one], {}, factors), weights, list(factors))
        return LargeShare(found.counts[: len(tables)], found.log_evidence[number], found.posteriors)

    def _sampled(self, tables: list[np.ndarray], factors: dict[Scope, np.ndarray]) -> LargeShare:
        """By Gibbs sampling; the log-likelihood by the mean weight of the states that chains may begin from."""
        rng, shares = np.random.default_rng(SEED), []
        step = max(1, BLOCK // (CHAINS * len(self.sizes)))
        for start in range(0, len(self.codes), step):
            rows = slice(start, start + step)
            own = LargeRows(self.graph, self.sizes, self.codes[rows], self.weights[rows], self.extras, self.rows[rows])
            shares.append(own._sample(tables, {scope: factor[rows] for scope, factor in factors.items()}, rng))
        return LargeShare(
            [np.sum(counts, axis=0) for counts in zip(*(share.counts for share in shares), strict=True)],
            np.concatenate([share.logs for share in shares]),
            [np.concatenate(found) for found in zip(*(share.posteriors for share in shares), strict=True)],
        )

    def _sample(
        self, tables: list[np.ndarray], factors: dict[Scope, np.ndarray], rng: np.random.Generator
    ) -> LargeShare:
        by_lane = {scope: np.repeat(factor, CHAINS, axis=0) for scope, factor in factors.items()}
        lanes = SampledLanes(self.graph, tables, np.repeat(self.codes, CHAINS, axis=0), by_lane=by_lane)
        states, logs = lanes.start(rng, TRIES)
        states, logs = states.reshape(len(self.codes), CHAINS, -1), logs.reshape(len(self.codes), CHAINS)
        if not (logs > -np.inf).any(axis=1).all():
            row = self.rows[np.flatnonzero((logs == -np.inf).all(axis=1))[0]]
            raise ResourceError(
                f"row {row + 1}: none of {CHAINS * TRIES} samples agrees with what it shows, and an exact answer costs "
                "too much. Make the network sparser, or give every level some probability (a prior)."
            )
        # A chain that found no state that can be goes on from that of another chain of its row.
        begin = np.where(logs > -np.inf, np.arange(CHAINS), logs.argmax(axis=1)[:, None])
        states = np.take_along_axis(states, begin[:, :, None], axis=1).reshape(logs.size, -1)
        counts, posteriors = self._swept(lanes, states, rng)
        return LargeShare(counts, np.logaddexp.reduce(logs, axis=1) - np.log(CHAINS), posteriors)

    def _swept(
        self, lanes: SampledLanes, states: np.ndarray, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """What the states of many sweeps have in every scope: of families added up by weight, of extras row by row."""
        families, row = len(self.sizes), np.arange(len(states)) // CHAINS
        share = 1 / (CHAINS * SWEEPS)
        cells = [prod(self.sizes[node] for node in scope) for scope in lanes.scopes]
        found = [np.zeros(each) for each in cells[:families]]
        posteriors = [np.zeros((len(self.codes), each)) for each in cells[families:]]
        for sweep in range(BURN_IN + SWEEPS):
            lanes.sweep(states, rng)
            if sweep < BURN_IN:
                continue
            for number, scope in enumerate(lanes.scopes):
                shape = tuple(self.sizes[node] for node in scope)
                at = np.ravel_multi_index(tuple(states[:, list(scope)].T), shape)
                if number < families:
                    found[number] += np.bincount(at, self.weights[row] * share, cells[number])
                else:
                    np.add.at(posteriors[number - families], (row, at), share)
        return found, posteriors
