"""The EM driver: total the expected counts, record the objective, stop or estimate and go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softcount.counts import Counts
from softcount.models.star import Imagined, Ready, Star, StarParams
from softcount.run.threads import Threads, total

Watch = Callable[[int, float], None]
ROUNDING = 1e-12
"""Relative change of the objective that is no change at all."""


@dataclass(frozen=True, slots=True)
class Climb:
    """Where EM came to: the parameters just scored, their expected counts, and the way there."""

    params: StarParams
    counts: Counts
    trace: list[float]
    converged: bool
    fell: float = 0.0

    @property
    def objective(self) -> float:
        return self.trace[-1]

    @property
    def n_iter(self) -> int:
        return len(self.trace) - 1


@dataclass(frozen=True, slots=True)
class Stop:
    """When to stop: after `max_iter` maps, or once the gain still to come is predicted to be below `tol`."""

    max_iter: int = 1000
    tol: float = 1e-8
    accelerate: bool = False


def expected(star: Star, params: StarParams, ready: Sequence[Ready], threads: Threads) -> Counts:
    """Expected counts of the whole table under these parameters, by the names of the leaves."""
    compiled = star.compile(params)
    counts = total(threads, lambda part: star.expect(params, compiled, part), ready)
    assert counts is not None
    return star.unstacked(counts)


def climb(
    star: Star,
    imagined: Imagined,
    ready: Sequence[Ready],
    params: StarParams,
    threads: Threads,
    stop: Stop,
    watch: Watch | None = None,
) -> Climb:
    """Climb from `params` until nothing worth having is left to gain.

    The objective is log-likelihood plus the prior's part. It cannot fall; if rounding ever makes it fall, the climb
    ends at the best parameters met and says by how much.
    """
    trace: list[float] = []
    best: tuple[StarParams, Counts] | None = None
    while True:
        counts = expected(star, params, ready, threads)
        objective = counts.log_likelihood + star.log_prior(params, imagined)
        if best is not None and trace[-1] - objective > ROUNDING * max(1.0, abs(objective)):
            return Climb(*best, trace, converged=False, fell=trace[-1] - objective)
        trace.append(objective)
        best = params, counts
        if watch is not None:
            watch(len(trace) - 1, objective)
        done = stop.tol > 0 and remaining(trace) <= stop.tol * max(1.0, abs(objective))
        if done or len(trace) > stop.max_iter:
            return Climb(params, counts, trace, converged=done)
        params = star.estimate(counts, imagined)


def remaining(trace: Sequence[float]) -> float:
    """The gain still to come, as the geometric series of the last two gains predicts (Aitken)."""
    if len(trace) < 3:
        return np.inf
    before, last = trace[-2] - trace[-3], trace[-1] - trace[-2]
    if last <= ROUNDING * max(1.0, abs(trace[-1])):
        return 0.0
    rate = last / before if before > 0 else 1.0
    return np.inf if rate >= 1.0 else last * rate / (1.0 - rate)
