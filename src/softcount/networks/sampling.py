"""Answers by sampling, with how far off they may be: for questions whose exact answer costs too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from softcount.errors import DataError
from softcount.networks.graph import Graph
from softcount.networks.sampled_lanes import SampledLanes
from softcount.records import dataclass

DRAWN_ROWS = 8192
"""Samples drawn at once."""

QUERY_CHAINS = 128
"""Gibbs chains side by side."""

QUERY_TRIES = 32
"""States drawn forward for each chain to begin from one of them."""

Likelihoods = Mapping[int, np.ndarray]
"""For each node that something is known of, how likely each of its levels makes that: one 1 among zeros where it was
seen, several where it is one of a set."""


@dataclass(frozen=True)
class Estimate:
    """Probabilities of the levels asked for (an axis for each node), their standard errors, and what they are worth.

    `effective` is how many independent samples of the answer would be as good.
    """

    probabilities: np.ndarray
    errors: np.ndarray
    effective: float


def weigh_samples(
    graph: Graph, tables: Sequence[np.ndarray], of: Sequence[int], given: Likelihoods, samples: int, seed: int
) -> Estimate:
    """The joint posterior of some nodes by likelihood weighting: samples from parents to children, weighed by evidence.

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
    """The joint posterior of some nodes by Gibbs sampling: each unseen node drawn again and again, given all others.

    Good where the evidence is rare; not where probabilities of zero or one keep nodes from changing one at a time.
    Chains run apart and their differences are the error, so one that is stuck shows.
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
