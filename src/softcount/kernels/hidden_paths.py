"""Hidden paths compiled: forward in place, then backward in place, so that rows x states is held once.

Going back needs no scores: with the states' probabilities up to step t, alpha, and those one step on given everything,
gamma, P(i at t, j at t + 1) = alpha(i) A(i, j) gamma(j) / sum_i alpha(i) A(i, j).

Probabilities are scaled at every step where no transition is nearly impossible: what underflows then is at most
1e-300 / `STEADY` of the whole. Otherwise a path may be all but ruled out and still be the only one in the end, and
logarithms are taken.
"""

from __future__ import annotations

import numpy as np

from softcount.kernels.abreast_paths import expect_abreast, groups_of
from softcount.kernels.lanes import WIDTH
from softcount.kernels.likeliest_paths import likeliest, likeliest_abreast
from softcount.kernels.log_paths import expect_logged, filter_logged
from softcount.kernels.reference_paths import PathCounts
from softcount.kernels.scaled_paths import expect_scaled, filter_scaled

STEADY = 1e-200
"""Transition probabilities from which on scaled arithmetic loses nothing."""


def expect_paths(
    scores: np.ndarray, borders: np.ndarray, weights: np.ndarray | None, first: np.ndarray, following: np.ndarray
) -> PathCounts:
    """As in `reference_paths`."""
    heavy = np.ones(len(borders) - 1) if weights is None else np.ascontiguousarray(weights, np.float64)
    logs, firsts, nexts = np.zeros(len(heavy)), np.zeros(len(first)), np.zeros(following.shape)
    _begin(scores, borders, first)
    steady = following.min() >= STEADY
    groups = groups_of(borders, len(first)) if steady else None
    if groups is not None:
        expect_abreast(scores, borders, heavy, np.ascontiguousarray(following), logs, (firsts, nexts, groups))
    elif steady:
        expect_scaled(scores, borders, heavy, _square(following, False), logs, (firsts, nexts))
    else:
        expect_logged(scores, borders, heavy, _square(following, True), logs, (firsts, nexts))
    return logs, firsts, nexts


def filter_paths(scores: np.ndarray, borders: np.ndarray, first: np.ndarray, following: np.ndarray) -> np.ndarray:
    """As in `reference_paths`."""
    heights = np.zeros(len(scores))
    _begin(scores, borders, first)
    if following.min() >= STEADY:
        filter_scaled(scores, borders, _square(following, False), heights)
    else:
        filter_logged(scores, borders, _square(following, True), heights)
        np.exp(scores, out=scores)
    return heights


def best_paths(
    scores: np.ndarray, borders: np.ndarray, first: np.ndarray, following: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """As in `reference_paths`."""
    path, logs = np.zeros(len(scores), np.int32), np.zeros(len(borders) - 1)
    _begin(scores, borders, first)
    groups = groups_of(borders, len(first))
    if groups is None:
        likeliest(scores, borders, _square(following, True), path, logs)
    else:
        with np.errstate(divide="ignore"):
            likeliest_abreast(scores, borders, np.log(following), path, logs, groups)
    return path, logs


def _begin(scores: np.ndarray, borders: np.ndarray, first: np.ndarray) -> None:
    with np.errstate(divide="ignore"):
        scores[borders[:-1]] += np.log(first)


def _square(following: np.ndarray, logs: bool) -> np.ndarray:
    """Transitions to and from whole registers of states, and the same the other way round; zero beyond the states."""
    states = len(following)
    room = -(-states // WIDTH) * WIDTH
    with np.errstate(divide="ignore"):
        found = np.full((2, room, room), -np.inf if logs else 0.0)
        found[0, :states, :states] = np.log(following) if logs else following
    found[1] = found[0].T
    return found
