"""Sampling of networks that are too large for exact sums: forward from parents to children, or node by node (Gibbs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod

import numpy as np
from msgspec import Struct, field

from softcount.core.special import log_of
from softcount.errors import DataError, ResourceError
from softcount.networks.elimination import Scope
from softcount.networks.network import Graph
from softcount.networks.queries import Evidence, Expectation, check_different


class SampledLanes(Struct, frozen=True, dict=True):
    """Samples of a network in parallel, one per lane: codes (lanes x nodes, -1 for nodes to sample) and factors.

    `factors` maps a scope to log-likelihoods (lanes x cells), or (1 x cells) if they apply to all lanes.
    """

    graph: Graph
    tables: Sequence[np.ndarray]
    codes: np.ndarray
    factors: Mapping[Scope, np.ndarray] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> list[int]:
        return [table.shape[-1] for table in self.tables]

    @cached_property
    def scopes(self) -> list[Scope]:
        return [*self.graph.families, *self.factors]

    @cached_property
    def logs(self) -> list[np.ndarray]:
        """The logarithm of each factor: an axis for the lanes (of length 1 if they share it), then one per node."""
        shared = [log_of(table)[None] for table in self.tables]
        shapes = ([self.sizes[node] for node in scope] for scope in self.factors)
        own = [logs.reshape(-1, *shape) for logs, shape in zip(self.factors.values(), shapes, strict=True)]
        return [*shared, *own]

    @cached_property
    def touching(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.sizes]
        for number, scope in enumerate(self.scopes):
            for node in scope:
                found[node].append(number)
        return found

    @cached_property
    def completed(self) -> list[list[int]]:
        """For each node, the scopes in which it comes last in topological order."""
        place = {node: at for at, node in enumerate(self.graph.order)}
        return [
            [number for number in self.touching[node] if max(self.scopes[number], key=place.__getitem__) == node]
            for node in range(len(self.sizes))
        ]

    def scores(self, states: np.ndarray, lanes: np.ndarray, node: int, scopes: list[int]) -> np.ndarray:
        """Return (lanes x levels): sums of the log factors of some scopes for every level of a node."""
        found = np.zeros((len(lanes), self.sizes[node]))
        for number in scopes:
            scope, logs = self.scopes[number], self.logs[number]
            others = [states[lanes, other] for other in scope if other != node]
            by_level = np.moveaxis(logs, 1 + scope.index(node), -1)
            found += by_level[(lanes if len(logs) > 1 else 0, *others)]
        return found

    def forward(self, rng: np.random.Generator, nodes: set[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw states from parents to children with observed nodes fixed. Return them and the log weight of each lane.

        A node with a likelihood is drawn in proportion to it. Only its normalising constant enters the weight.
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
        """Redraw every missing node once given all others, in place (one Gibbs sweep)."""
        for node in self.graph.order:
            lanes = np.flatnonzero(self.codes[:, node] < 0)
            if len(lanes) and self.sizes[node] > 1:
                states[lanes, node] = draw_levels(self.scores(states, lanes, node, self.touching[node]), rng)[0]

    def start(self, rng: np.random.Generator, tries: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw `tries` states forward for each lane and keep one in proportion to its weight.

        Return also the log mean weight.
        """
        states, weights = self.forward(rng)
        for _ in range(tries - 1):
            others, more = self.forward(rng)
            weights = np.logaddexp(weights, more)
            with np.errstate(invalid="ignore"):  # -inf - -inf: no possible state so far, nothing is taken
                taken = np.log(rng.random(len(states))) < more - weights
            states[taken] = others[taken]
        return states, weights - np.log(tries)


def draw_levels(scores: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw a level for every lane in proportion to the exponentials of its scores. Return also the log of their sum.

    A level with a score of -inf is drawn only if all levels have it.
    """
    top = scores.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    totals = np.exp(scores - top).cumsum(axis=1)
    # Compare with the total itself, so that rounding cannot select a level after the last possible one.
    drawn = (totals[:, :-1] <= rng.random((len(scores), 1)) * totals[:, -1:]).sum(axis=1)
    return drawn, log_of(totals[:, -1]) + top[:, 0]


# Expected counts of rows.

CHAINS = 8
"""Number of Gibbs chains per sampled row."""

TRIES = 16
"""Number of states drawn to initialise each chain."""

BURN_IN, SWEEPS = 10, 40


def sample_expectation(
    graph: Graph,
    tables: list[np.ndarray],
    evidence: Evidence,
    weights: np.ndarray,
    rows: np.ndarray,
    rng: np.random.Generator,
) -> Expectation:
    """Estimate expected counts of rows by Gibbs sampling; `rows` are their numbers, from 0, for error messages.

    The log-likelihood is the log mean weight of the states drawn to initialise the chains.
    """
    by_lane = {scope: np.repeat(factor, CHAINS, axis=0) for scope, factor in evidence.factors.items()}
    lanes = SampledLanes(graph, tables, np.repeat(evidence.codes, CHAINS, axis=0), by_lane)
    states, logs = lanes.start(rng, TRIES)
    states, logs = states.reshape(len(rows), CHAINS, -1), logs.reshape(len(rows), CHAINS)
    if not (logs > -np.inf).any(axis=1).all():
        row = rows[np.flatnonzero((logs == -np.inf).all(axis=1))[0]]
        raise ResourceError(
            f"row {row + 1}: none of {CHAINS * TRIES} samples agrees with its cells, and an exact answer needs too "
            f"much memory. Make the network sparser, or give every level some probability (a prior)."
        )
    # A chain without a possible state continues from the state of another chain of its row.
    begin = np.where(logs > -np.inf, np.arange(CHAINS), logs.argmax(axis=1)[:, None])
    states = np.take_along_axis(states, begin[:, :, None], axis=1).reshape(logs.size, -1)
    families, row = len(tables), np.arange(len(states)) // CHAINS
    share = 1 / (CHAINS * SWEEPS)
    cells = [prod(lanes.sizes[node] for node in scope) for scope in lanes.scopes]
    counts = [np.zeros(each) for each in cells[:families]]
    posteriors = [np.zeros((len(rows), each)) for each in cells[families:]]
    for sweep in range(BURN_IN + SWEEPS):
        lanes.sweep(states, rng)
        if sweep < BURN_IN:
            continue
        for number, scope in enumerate(lanes.scopes):
            at = _cells(states, tables, scope)
            if number < families:
                counts[number] += np.bincount(at, weights[row] * share, cells[number])
            else:
                np.add.at(posteriors[number - families], (row, at), share)
    return Expectation(counts, np.logaddexp.reduce(logs, axis=1) - np.log(CHAINS), posteriors)


# Answers by sampling with standard errors, for queries whose exact answer costs too much.

DRAWN_ROWS = 8192

QUERY_CHAINS = 128

QUERY_TRIES = 32

Likelihoods = Mapping[int, np.ndarray]
"""For each node with evidence, the likelihood of each of its levels; ones and zeros for a set of levels."""


class Estimate(Struct, frozen=True):
    """Probabilities (one axis per node), their standard errors, and the effective number of independent samples."""

    probabilities: np.ndarray
    errors: np.ndarray
    effective: float


def weigh_samples(
    graph: Graph, tables: Sequence[np.ndarray], of: Sequence[int], given: Likelihoods, samples: int, seed: int
) -> Estimate:
    """Estimate the joint posterior of some nodes by likelihood weighting.

    Accurate if the evidence is not too rare, or if it lies above the queried nodes.
    """
    check_different(of)
    rng, nodes = np.random.default_rng(seed), graph.ancestors([*of, *given])
    cells, logs = [], []
    for start in range(0, samples, DRAWN_ROWS):
        unseen = np.full((min(DRAWN_ROWS, samples - start), len(tables)), -1)
        states, weights = SampledLanes(graph, tables, unseen, _logs_of(given)).forward(rng, nodes)
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
    """Estimate the joint posterior of some nodes by Gibbs sampling.

    Suitable for rare evidence, but not if probabilities of 0 or 1 keep nodes from changing one at a time. The standard
    error is computed from the differences between chains, so that it reveals a chain that is stuck.
    """
    check_different(of)
    rng = np.random.default_rng(seed)
    lanes = SampledLanes(graph, tables, np.full((QUERY_CHAINS, len(tables)), -1), _logs_of(given))
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


def _logs_of(given: Likelihoods) -> dict[Scope, np.ndarray]:
    return {(node,): log_of(likelihood)[None] for node, likelihood in given.items()}


def _estimate(probabilities: np.ndarray, variances: np.ndarray, effective: float, shape: list[int]) -> Estimate:
    # A level that was never sampled may still have a probability of about one sample.
    errors = np.sqrt(np.maximum(variances, 0.0) + effective**-2.0)
    return Estimate(probabilities.reshape(shape), errors.reshape(shape), float(effective))


def _cells(states: np.ndarray, tables: Sequence[np.ndarray], of: Sequence[int]) -> np.ndarray:
    found: np.ndarray = np.ravel_multi_index(
        tuple(states[:, node] for node in of), tuple(tables[node].shape[-1] for node in of)
    )
    return found


def _never_met(graph: Graph, given: Likelihoods, samples: int) -> DataError:
    names = ", ".join(str(graph.names[node]) for node in given)
    return DataError(
        f"none of {samples:,} samples agrees with the evidence on {names}: it is impossible, or too rare for "
        f"sampling. Give less evidence, or query without samples."
    )
