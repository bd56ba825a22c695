"""Inference of hidden paths in plain NumPy: one step of all sequences at a time, in logarithms to avoid underflow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softcount.core.special import log_of, log_sum_exp
from softcount.kernels import Array

PathCounts = tuple[Array, Array, Array]
"""The log-likelihood of every sequence, expected first states, and expected transitions between states."""


def expect_paths(scores: Array, borders: Array, weights: Array | None, first: Array, following: Array) -> PathCounts:
    """Return expected counts over all paths. Log `scores` (rows x states) become state probabilities times the weight.

    Sequence i has the rows from `borders[i]` to `borders[i + 1]`. An impossible sequence has log-likelihood minus
    infinity and adds no counts.
    """
    logs = _by_sequence(filtered_logs(scores, borders, first, following), borders)
    possible = np.where(np.isneginf(logs), 0.0, 1.0 if weights is None else weights)  # 0 if the sequence is impossible
    return logs, *_smooth(scores, borders, possible, following)


def filter_paths(scores: Array, borders: Array, first: Array, following: Array) -> Array:
    """Return the log-probability of every step given those before.

    `scores` become state probabilities given steps so far.
    """
    heights = filtered_logs(scores, borders, first, following)
    np.exp(scores, out=scores)
    return heights


def best_paths(scores: Array, borders: Array, first: Array, following: Array) -> tuple[Array, Array]:
    """Return the most probable path of every sequence (Viterbi) and its log-probability.

    Ties go to the lowest state.
    """
    start, after = log_of(first), log_of(following)
    heights, path = np.zeros(len(scores)), np.zeros(len(scores), np.int32)
    for before, here in _steps(borders):
        best = start if before is None else (scores[before][:, :, None] + after).max(axis=1)
        scores[here] += best
        heights[here] = scores[here].max(axis=1)
        scores[here] -= _finite(heights[here])[:, None]
    for here, behind in _steps_back(borders):
        ahead = path[behind]
        path[here[: len(behind)]] = (scores[here[: len(behind)]] + after[:, ahead].T).argmax(axis=1)
        path[here[len(behind) :]] = scores[here[len(behind) :]].argmax(axis=1)
    return path, _by_sequence(heights, borders)


def filtered_logs(scores: Array, borders: Array, first: Array, following: Array) -> Array:
    """Return the log-probability of every step given those before.

    `scores` become logarithms of the state probabilities given the steps so far.
    """
    start, after, heights = log_of(first), log_of(following), np.zeros(len(scores))
    for before, here in _steps(borders):
        scores[here] += start if before is None else log_sum_exp(scores[before][:, :, None] + after, 1)
        heights[here] = log_sum_exp(scores[here], 1)
        scores[here] -= _finite(heights[here])[:, None]
    return heights


def _smooth(scores: Array, borders: Array, weights: Array, following: Array) -> tuple[Array, Array]:
    """Turn filtered into smoothed state probabilities by a backward pass that does not need the scores."""
    after, nexts = log_of(following), np.zeros_like(following)
    ranks, _ = _rank(borders)
    for here, behind in _steps_back(borders):
        both = scores[here[: len(behind)]][:, :, None] + after
        ratio = scores[behind] - _finite(np.asarray(log_sum_exp(both, 1)))
        both += ratio[:, None, :]
        scores[here[: len(behind)]] = log_sum_exp(both, 2)
        np.exp(both, out=both)
        nexts += np.tensordot(weights[ranks[: len(behind)]], both, 1)
    np.exp(scores, out=scores)
    scores *= np.repeat(weights, np.diff(borders))[:, None]
    return scores[borders[:-1]].sum(axis=0), nexts


def _finite(values: Array) -> Array:
    return np.where(np.isneginf(values), 0.0, values)


def _by_sequence(values: Array, borders: Array) -> Array:
    return np.add.reduceat(values, borders[:-1]) if len(borders) > 1 else np.zeros(0)


def _rank(borders: Array) -> tuple[Array, Array]:
    """Return the sequences from longest to shortest, and how many have more than 0, 1, 2, ... steps."""
    lengths = np.diff(borders)
    ranks = np.argsort(-lengths, kind="stable")
    return ranks, np.searchsorted(-lengths[ranks], -np.arange(lengths.max(initial=0)), side="left")


def _steps(borders: Array) -> Iterator[tuple[Array | None, Array]]:
    """Yield, for step 0, 1, 2, ..., the rows of the previous step (None for step 0) and the rows of this step."""
    ranks, active = _rank(borders)
    starts = borders[:-1][ranks]
    for t, count in enumerate(active.tolist()):
        yield (None if t == 0 else starts[:count] + t - 1), starts[:count] + t


def _steps_back(borders: Array) -> Iterator[tuple[Array, Array]]:
    """Yield, from the last step to the first, the rows of a step and the rows that follow them.

    Sequences that end at a step have no following row; they come last.
    """
    ranks, active = _rank(borders)
    starts, counts = borders[:-1][ranks], [*active.tolist(), 0]
    for t in range(len(active) - 1, -1, -1):
        yield starts[: counts[t]] + t, starts[: counts[t + 1]] + t + 1
