"""Rows through networks too large for one junction tree, and sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field

from softcount.errors import DataError, ResourceError
from softcount.networks.elimination import Evidence, FlatTables, Scope, number_alike
from softcount.networks.junction_tree import JunctionTree
from softcount.networks.network import Graph
from softcount.networks.queries import LoadedTree, distinct_rows

ROW_TREE_CELLS = 2**20
"""Cells of the tree of one row, which take some milliseconds per pass; Gibbs chains take as long for a row."""


class UnseenPart(NamedTuple):
    """The tree of the tables with a row's known nodes removed; `cut` has, for each table, these nodes (None: a free
    axis).
    """

    tree: JunctionTree
    cut: list[tuple[int | None, ...]]


class RowTrees(Struct, frozen=True, dict=True):
    """Codes and weights of rows, and for each pattern of known nodes the tree of the others."""

    graph: Graph
    sizes: tuple[int, ...]
    codes: np.ndarray
    weights: np.ndarray

    @cached_property
    def _patterns(self) -> tuple[list[UnseenPart | None], np.ndarray]:
        first, again = distinct_rows(self.codes >= 0)
        return [self._part(self.codes[row] >= 0) for row in first], again

    def _part(self, seen: np.ndarray) -> UnseenPart | None:
        """None if the tree would be too large."""
        families = self.graph.families
        free = [tuple(node for node in family if not seen[node]) for family in families]
        try:
            tree = JunctionTree.build(self.sizes, free, ROW_TREE_CELLS)
        except ResourceError:
            return None
        return UnseenPart(tree, [tuple(node if seen[node] else None for node in family) for family in families])

    @property
    def exact(self) -> np.ndarray:
        parts, again = self._patterns
        return np.asarray(np.array([part is not None for part in parts], bool)[again])

    def expect(self, tables: Sequence[np.ndarray]) -> LargeShare:
        """Rows without a tree add nothing, and their log-likelihood is 0."""
        counts, logs = [np.zeros_like(table) for table in tables], np.zeros(len(self.codes))
        parts, again = self._patterns
        unseen = Evidence(np.full((1, len(self.sizes)), -1))
        for row, codes in enumerate(self.codes):
            part = parts[again[row]]
            if part is None:
                continue
            places = [tuple(slice(None) if node is None else int(codes[node]) for node in cut) for cut in part.cut]
            own = [table[place] for table, place in zip(tables, places, strict=True)]
            found = LoadedTree(part.tree, own).expected(unseen, self.weights[row : row + 1])
            logs[row] = found.log_evidence[0]
            for total, place, count in zip(counts, places, found.counts, strict=True):
                total[place] += count
        return LargeShare(counts, logs, [])


# Many samples of a network side by side, a lane for each: drawn from parents to children, or node by node (Gibbs).

Factors = Mapping[Scope, np.ndarray]


class SampledLanes(Struct, frozen=True, dict=True):
    """Samples of a network side by side, a lane for each: codes (lanes x nodes, -1 if to be sampled) and factors.

    `likelihoods` are of single nodes and the same for all lanes; `by_lane` are logarithms (lanes x cells) by scope.
    """

    graph: Graph
    tables: Sequence[np.ndarray]
    codes: np.ndarray
    likelihoods: Mapping[int, np.ndarray] = field(default_factory=dict)
    by_lane: Factors = field(default_factory=dict)

    @cached_property
    def sizes(self) -> list[int]:
        return [table.shape[-1] for table in self.tables]

    @cached_property
    def scopes(self) -> list[Scope]:
        return [*self.graph.families, *((node,) for node in self.likelihoods), *self.by_lane]

    @cached_property
    def flat(self) -> FlatTables:
        shared = len(self.scopes) - len(self.by_lane)
        return FlatTables.of(self.sizes, self.scopes[:shared], self.scopes[shared:], len(self.codes))

    @cached_property
    def logs(self) -> np.ndarray:
        shared = np.concatenate([np.ravel(each) for each in [*self.tables, *self.likelihoods.values()]])
        with np.errstate(divide="ignore"):
            return np.concatenate([np.log(shared), *map(np.ravel, self.by_lane.values())])

    @cached_property
    def touching(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.sizes]
        for number, scope in enumerate(self.scopes):
            for node in scope:
                found[node].append(number)
        return found

    @cached_property
    def completed(self) -> list[list[int]]:
        """The scopes in which each node comes last, parents before children."""
        place = {node: at for at, node in enumerate(self.graph.order)}
        return [
            [number for number in self.touching[node] if max(self.scopes[number], key=place.__getitem__) == node]
            for node in range(len(self.sizes))
        ]

    def scores(self, states: np.ndarray, lanes: np.ndarray, node: int, scopes: list[int]) -> np.ndarray:
        """(lanes x levels) sums of the logarithms of some scopes for all levels of a node."""
        found = np.zeros((len(lanes), self.sizes[node]))
        for number in scopes:
            stride = self.flat.strides[number, self.scopes[number].index(node)]
            cells = self.flat.cells_at(states, lanes, np.full(len(lanes), number))
            first = cells - np.maximum(states[lanes, node], 0) * stride
            found += self.logs[first[:, None] + np.arange(self.sizes[node]) * stride]
        return found

    def forward(self, rng: np.random.Generator, nodes: set[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """States drawn from parents to children, known nodes held fixed; and the log-weight of each lane.

        A node with a likelihood is drawn by it as well, so that only its normalisation is left to weigh.
        """
        states, weights = self.codes.copy(), np.zeros(len(self.codes))
        lanes = np.arange(len(states))
        for node in self.graph.order:
            if nodes is not None and node not in nodes:
                continue
            scores = self.scores(states, lanes, node, self.completed[node])
            known = self.codes[:, node]
            scores[(known[:, None] >= 0) & (known[:, None] != np.arange(self.sizes[node]))] = -np.inf
            drawn, log = draw_levels(scores, rng)
            states[:, node] = np.where(known >= 0, known, drawn)
            weights += log
        return states, weights

    def sweep(self, states: np.ndarray, rng: np.random.Generator) -> None:
        """Draw every missing node once more, given all others, in place."""
        for node in self.graph.order:
            lanes = np.flatnonzero(self.codes[:, node] < 0)
            if len(lanes) and self.sizes[node] > 1:
                states[lanes, node] = draw_levels(self.scores(states, lanes, node, self.touching[node]), rng)[0]

    def start(self, rng: np.random.Generator, tries: int) -> tuple[np.ndarray, np.ndarray]:
        """A state for each lane out of several drawn forward, by their weights; and the log of the mean weight."""
        states, weights = self.forward(rng)
        for _ in range(tries - 1):
            others, more = self.forward(rng)
            weights = np.logaddexp(weights, more)
            with np.errstate(invalid="ignore"):  # -inf - -inf: no state could be so far, and none is taken
                taken = np.log(rng.random(len(states))) < more - weights
            states[taken] = others[taken]
        return states, weights - np.log(tries)


def draw_levels(scores: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A level for every lane by the exponentials of its scores; and the logarithm of their sum.

    A level of -inf is never drawn, unless all are.
    """
    top = scores.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    totals = np.exp(scores - top).cumsum(axis=1)
    # Against the total itself, so that rounding cannot lead beyond the last level that can be.
    drawn = (totals[:, :-1] <= rng.random((len(scores), 1)) * totals[:, -1:]).sum(axis=1)
    with np.errstate(divide="ignore"):
        return drawn, np.log(totals[:, -1]) + top[:, 0]


# Rows with parts too large to be summed by themselves: by a tree of the network, by trees of their own, or sampled.

MOST_CELLS = 2**24
"""The largest junction tree: 128 megabytes for a row, a few times over, and a second or so."""

WORTH_A_TREE = 2**14
"""Cells of that tree per node from which rows get trees of their own: one takes some milliseconds."""

CHAINS = 8
"""Gibbs chains per sampled row."""

TRIES = 16
"""States drawn as possible starts of each chain."""

BURN_IN, SWEEPS = 10, 40

BLOCK = 2**20
"""Codes of samples held at once."""

SEED = 20
"""Seed of every E-step, so that two of them differ by their tables only."""


class LargeShare(Struct, frozen=True):
    """Expected counts of families, and row by row log-likelihoods and posteriors of the extra scopes."""

    counts: list[np.ndarray]
    logs: np.ndarray
    posteriors: list[np.ndarray]


class LargeRows(Struct, frozen=True, dict=True):
    """Rows that cost too much to sum out: by a tree of the network, by trees of their own, or sampled."""

    graph: Graph
    sizes: tuple[int, ...]
    codes: np.ndarray
    weights: np.ndarray
    extras: list[Scope]
    rows: np.ndarray

    def expect(self, tables: Sequence[np.ndarray], factors: Sequence[np.ndarray]) -> LargeShare:
        """As `RowsWithHoles.expect`, for these rows alone. Tables may be of any shape."""
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
        """None if it would be too large."""
        scopes = [*self.graph.families, *filter(None, self.extras)]
        try:
            return JunctionTree.build(self.sizes, scopes, MOST_CELLS)
        except ResourceError:
            return None

    @property
    def sampled(self) -> int:
        return int((~self._own_tree).sum()) if len(self.codes) and self.tree is None else 0

    @cached_property
    def _own_tree(self) -> np.ndarray:
        """Rows with a tree of their own; none if there are extra scopes, or if the tree of the whole network costs
        less.
        """
        light = self.tree is not None and self.tree.cells <= WORTH_A_TREE * len(self.sizes)
        return np.zeros(len(self.codes), bool) if light or any(self.extras) else self.row_trees.exact

    @cached_property
    def row_trees(self) -> RowTrees:
        return RowTrees(self.graph, self.sizes, self.codes, self.weights)

    @cached_property
    def _others(self) -> LargeRows:
        return self._take(np.flatnonzero(~self._own_tree))

    def _take(self, rows: Any) -> LargeRows:
        return LargeRows(self.graph, self.sizes, self.codes[rows], self.weights[rows], self.extras, self.rows[rows])

    def _one_by_one(self, tables: list[np.ndarray], factors: dict[Scope, np.ndarray]) -> LargeShare:
        exact = self.row_trees.expect(tables)
        if self._own_tree.all():
            return exact
        rest = self._others._together(tables, factors)
        logs = exact.logs.copy()
        logs[~self._own_tree] = rest.logs
        counts = [own + more.reshape(own.shape) for own, more in zip(exact.counts, rest.counts, strict=True)]
        return LargeShare(counts, logs, [])

    def _together(self, tables: list[np.ndarray], factors: dict[Scope, np.ndarray]) -> LargeShare:
        if self.tree is None:
            return self._sampled(tables, factors)
        number, one = self._distinct
        weights = np.bincount(number, self.weights, len(one))
        found = LoadedTree(self.tree, tables).expected(Evidence(self.codes[one], {}, factors), weights, list(factors))
        return LargeShare(found.counts[: len(tables)], found.log_evidence[number], found.posteriors)

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The number of every row among the distinct ones, and one row of each number; with extras all differ."""
        rows, nodes = self.codes.shape
        if any(self.extras):
            return np.arange(rows), np.arange(rows)
        return number_alike(np.zeros(rows), np.arange(0, rows * nodes + 1, nodes), self.codes.ravel() + 1)

    def _sampled(self, tables: list[np.ndarray], factors: dict[Scope, np.ndarray]) -> LargeShare:
        """By Gibbs sampling; the log-likelihood by the mean weight of the states that chains may begin from."""
        rng, shares = np.random.default_rng(SEED), []
        step = max(1, BLOCK // (CHAINS * len(self.sizes)))
        for start in range(0, len(self.codes), step):
            rows = slice(start, start + step)
            own = {scope: factor[rows] for scope, factor in factors.items()}
            shares.append(self._take(rows)._sample(tables, own, rng))
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
        """Counts of families by weight and posteriors of extras row by row, over the states of many sweeps."""
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


# Answers by sampling, with how far off they may be: for questions whose exact answer costs too much.

DRAWN_ROWS = 8192

QUERY_CHAINS = 128

QUERY_TRIES = 32

Likelihoods = Mapping[int, np.ndarray]
"""For each node with evidence, the likelihood of each of its levels; ones and zeros for a set."""


class Estimate(Struct, frozen=True):
    """Probabilities (an axis for each node), their standard errors, and the effective number of independent samples."""

    probabilities: np.ndarray
    errors: np.ndarray
    effective: float


def weigh_samples(
    graph: Graph, tables: Sequence[np.ndarray], of: Sequence[int], given: Likelihoods, samples: int, seed: int
) -> Estimate:
    """The joint posterior of some nodes by likelihood weighting.

    Good while the evidence is likely enough, or lies above what is asked for.
    """
    _check(graph, tables, of, given)
    rng, nodes = np.random.default_rng(seed), graph.ancestors([*of, *given])
    cells, logs = [], []
    for start in range(0, samples, DRAWN_ROWS):
        unseen = np.full((min(DRAWN_ROWS, samples - start), len(tables)), -1)
        states, weights = SampledLanes(graph, tables, unseen, given).forward(rng, nodes)
        cells.append(_cells(states, tables, of))
        logs.append(weights)
    log = np.concatenate(logs)
    if log.max() == -np.inf:
        raise _never_met(graph, given, samples)
    shape = [tables[node].shape[-1] for node in of]
    share = np.exp(log - log.max())
    share /= share.sum()
    place, size = np.concatenate(cells), int(np.prod(shape))
    probabilities = np.bincount(place, share, size)
    squares = np.bincount(place, share**2, size)
    variances = squares * (1 - 2 * probabilities) + probabilities**2 * squares.sum()
    return _estimate(probabilities, variances, 1 / squares.sum(), shape)


def gibbs(
    graph: Graph, tables: Sequence[np.ndarray], of: Sequence[int], given: Likelihoods, samples: int, seed: int
) -> Estimate:
    """The joint posterior of some nodes by Gibbs sampling.

    Good if the evidence is rare; not if probabilities of 0 or 1 keep nodes from changing one at a time. The error is
    the difference between chains, so that a chain that is stuck shows.
    """
    _check(graph, tables, of, given)
    rng = np.random.default_rng(seed)
    lanes = SampledLanes(graph, tables, np.full((QUERY_CHAINS, len(tables)), -1), given)
    states, log = lanes.start(rng, QUERY_TRIES)
    met = np.flatnonzero(log > -np.inf)
    if not len(met):
        raise _never_met(graph, given, QUERY_CHAINS * QUERY_TRIES)
    states = states[np.where(log > -np.inf, np.arange(QUERY_CHAINS), rng.choice(met, QUERY_CHAINS))]
    shape = [tables[node].shape[-1] for node in of]
    seen = np.zeros((QUERY_CHAINS, int(np.prod(shape))))
    sweeps = max(2, -(-samples // QUERY_CHAINS))
    for sweep in range(-(sweeps // 4), sweeps):
        lanes.sweep(states, rng)
        if sweep >= 0:
            seen[np.arange(QUERY_CHAINS), _cells(states, tables, of)] += 1
    seen /= sweeps
    probabilities = seen.mean(axis=0)
    variances = seen.var(axis=0, ddof=1) / QUERY_CHAINS
    spread = probabilities * (1 - probabilities)
    worth = [own / var for own, var in zip(spread, variances, strict=True) if var > 0]
    return _estimate(probabilities, variances, min([*worth, float(QUERY_CHAINS * sweeps)]), shape)


def _estimate(probabilities: np.ndarray, variances: np.ndarray, effective: float, shape: list[int]) -> Estimate:
    # A level that no sample had may still have a probability of about one sample.
    errors = np.sqrt(np.maximum(variances, 0.0) + effective**-2.0)
    return Estimate(probabilities.reshape(shape), errors.reshape(shape), float(effective))


def _cells(states: np.ndarray, tables: Sequence[np.ndarray], of: Sequence[int]) -> np.ndarray:
    found: np.ndarray = np.ravel_multi_index(
        tuple(states[:, node] for node in of), tuple(tables[node].shape[-1] for node in of)
    )
    return found


def _check(graph: Graph, tables: Sequence[np.ndarray], of: Sequence[int], given: Likelihoods) -> None:
    if not of or len(set(of)) < len(of):
        raise DataError("ask for one node or several different ones.")
    for node, likelihood in given.items():
        if np.shape(likelihood) != tables[node].shape[-1:]:
            raise DataError(
                f"node {graph.names[node]!r} has {tables[node].shape[-1]} levels, but its evidence is of shape "
                f"{np.shape(likelihood)}. Give a likelihood for each level."
            )
        if not (np.isfinite(likelihood).all() and np.min(likelihood) >= 0):
            raise DataError(f"node {graph.names[node]!r}: a likelihood is a number from 0 on, not {likelihood}.")


def _never_met(graph: Graph, given: Likelihoods, samples: int) -> DataError:
    names = ", ".join(str(graph.names[node]) for node in given)
    return DataError(
        f"none of {samples:,} samples agrees with what is given of {names}: it is impossible, or too rare to be met by "
        "sampling. Give less, or ask exactly."
    )
