"""Hidden paths one by one: every way that states can follow each other is tried. For a few steps of a few states."""

from __future__ import annotations

from itertools import pairwise, product
from typing import NamedTuple

import numpy as np


class AllPaths(NamedTuple):
    """What all paths of all sequences add up to; `likeliest` is the log-probability of each sequence's best path."""

    logs: np.ndarray
    firsts: np.ndarray
    nexts: np.ndarray
    members: np.ndarray
    likeliest: np.ndarray
    steps: np.ndarray


def every_path(
    scores: np.ndarray, borders: np.ndarray, weights: np.ndarray, first: np.ndarray, following: np.ndarray
) -> AllPaths:
    """Sums over all paths, weighed by sequence; an impossible sequence counts for nothing."""
    states = len(first)
    found = AllPaths(
        np.zeros(len(weights)), np.zeros(states), np.zeros((states, states)), np.zeros_like(scores),
        np.zeros(len(weights)), np.zeros(len(scores)),
    )  # fmt: skip
    for s, (begin, end) in enumerate(pairwise(borders.tolist())):
        ways = {
            way: path_log(way, scores[begin:end], first, following)
            for way in product(range(states), repeat=end - begin)
        }
        found.logs[s], found.likeliest[s] = log_total(list(ways.values())), max(ways.values())
        found.steps[begin:end] = step_logs(scores[begin:end], first, following)
        for way, log in ways.items():
            share = weights[s] * np.exp(log - found.logs[s]) if np.isfinite(found.logs[s]) else 0.0
            found.firsts[way[0]] += share
            for step, state in enumerate(way):
                found.members[begin + step, state] += share
            for one, other in pairwise(way):
                found.nexts[one, other] += share
    return found


def step_logs(scores: np.ndarray, first: np.ndarray, following: np.ndarray) -> np.ndarray:
    """Log-probability of each step given those before: totals over all paths of ever longer beginnings."""
    totals = [0.0]
    for end in range(1, len(scores) + 1):
        ways = product(range(len(first)), repeat=end)
        totals.append(log_total([path_log(way, scores[:end], first, following) for way in ways]))
    with np.errstate(invalid="ignore"):  # once impossible, always so
        return np.diff(totals)


def path_log(way: tuple[int, ...], scores: np.ndarray, first: np.ndarray, following: np.ndarray) -> float:
    """Log-probability of one path together with what was seen."""
    with np.errstate(divide="ignore"):
        chances = [first[way[0]], *(following[one, other] for one, other in pairwise(way))]
        return float(np.log(chances).sum() + scores[np.arange(len(way)), list(way)].sum())


def log_total(logs: list[float]) -> float:
    """Logarithm of the sum of what these are the logarithms of."""
    top = max(logs)
    return top if top == -np.inf else top + float(np.log(np.exp(np.array(logs) - top).sum()))
