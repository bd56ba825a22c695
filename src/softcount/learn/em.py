"""The EM driver: total the expected counts, record the objective, stop or estimate and go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, pairwise
from operator import add
from typing import Any

import numpy as np

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.learn.accelerate import can_extrapolate, leap
from softcount.models.star import TILE, Imagined, Ready, Star, StarParams
from softcount.run.threads import Threads

Watch = Callable[[int, float], None]
ROUNDING = 1e-12
"""Relative change of the objective that is no change at all."""
VERIFIED = 16
"""Plain steps before stopping; after four, two overlapping normals stopped 0.010 nats short, after sixteen 0.001."""
LONGEST_RUN = 8
SECOND_CACHE = 1 << 20
"""Bytes of cells and scores that a tile may hold."""


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
    accelerate: bool = False  # longer steps along the way; `tol=0` takes plain ones, exactly `max_iter` of them

    def small(self, gain: float, objective: float) -> bool:
        return self.tol > 0 and gain <= self.tol * max(1.0, abs(objective))


def expected(star: Star, params: StarParams, ready: Sequence[Ready], threads: Threads) -> Counts:
    """Expected counts of the whole table under these parameters, by the names of the leaves."""
    compiled = star.compile(params)
    runs = runs_of(ready, threads.n_jobs)
    parts = threads.map(lambda run: [star.expect(params, compiled, part) for part in run], runs)
    return star.unstacked(reduce(add, chain.from_iterable(parts)))


def runs_of(ready: Sequence[Ready], n_jobs: int) -> list[Sequence[Ready]]:
    """Neighbouring chunks to be done in one go: two runs for every thread, but at most eight chunks at a time.

    Waking a thread for each small chunk took as long as the chunk: two threads were no faster than one. Counts are
    still added chunk by chunk, so that the bits do not depend on the number of threads.
    """
    runs = max(2 * n_jobs, -(-len(ready) // LONGEST_RUN))
    edges = [len(ready) * i // runs for i in range(runs + 1)]
    return [ready[a:b] for a, b in pairwise(edges) if a < b]


def lengthened(ready: Sequence[Ready], groups: int) -> list[Ready]:
    """The same rows in tiles that just fill the second cache, short chunks being joined.

    Between kernels a thread holds the interpreter, and others wait: with 12,288 rows of 20 codes at a time in place of
    4,096 an iteration on two threads took 2.2 ms in place of 3.4. Only the table and the model decide how long.
    """
    first = ready[0]
    width = sum(map(size_of, first.data)) // max(first.n_rows, 1) + 8 * groups
    tile = TILE * min(max(SECOND_CACHE // (width * TILE), 1), 4)
    count = max(1, tile // max(first.n_rows, 1))
    return [replace(joined(ready[a : a + count]), tile=tile) for a in range(0, len(ready), count)]


def size_of(data: Any) -> int:
    """Bytes of a chunk's array, of several, or of the cells of a sparse matrix."""
    if isinstance(data, tuple):
        return sum(map(size_of, data))
    return 0 if data is None else data.nbytes if isinstance(data, np.ndarray) else 2 * data.data.nbytes


def joined(parts: Sequence[Ready]) -> Ready:
    """Neighbouring chunks as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    whole = {name: end_to_end([getattr(part, name) for part in parts]) for name in ("labels", "weights", "base")}
    data = [end_to_end(list(arrays)) for arrays in zip(*(part.data for part in parts), strict=True)]
    return Ready(data, **whole, start=first.start, n_rows=sum(part.n_rows for part in parts))


def end_to_end(parts: list[Any]) -> Any:
    """Arrays one after another, tuples of them place by place; what is no array is alike in all parts."""
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(end_to_end(list(arrays)) for arrays in zip(*parts, strict=True))
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if first is None or isinstance(first, float):
        return first
    from scipy import sparse

    return sparse.vstack(parts, format="csr")


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
    way = _Way(star, imagined, lengthened(ready, star.groups), threads, stop, watch)
    way.score(params)
    leaping = stop.accelerate and stop.tol > 0 and can_extrapolate(star)
    while not way.over:
        if leaping:
            way.stride()
        else:
            way.step()
    return Climb(way.params, way.counts, way.trace, way.converged, way.fell)


class _Way:
    """The state of one climb: where it is, and how it got there."""

    params: StarParams
    counts: Counts

    def __init__(
        self, star: Star, imagined: Imagined, ready: Sequence[Ready], threads: Threads, stop: Stop, watch: Watch | None
    ) -> None:
        self.star, self.imagined, self.ready, self.threads = star, imagined, ready, threads
        self.stop, self.watch = stop, watch
        self.trace: list[float] = []
        self.converged = False
        self.fell = 0.0
        self.longest = 4.0
        self.units = 0.0

    @property
    def over(self) -> bool:
        return self.converged or self.fell != 0 or len(self.trace) > self.stop.max_iter

    def score(self, params: StarParams, optional: bool = False) -> bool:
        """Go to these parameters unless they are worse; `optional` ones may be, without anything being wrong."""
        counts = expected(self.star, params, self.ready, self.threads)
        if not self.trace and np.isneginf(counts.log_likelihood):
            raise impossible(self.star, params, self.ready)
        objective = counts.log_likelihood + self.star.log_prior(params, self.imagined)
        if self.trace:
            drop = self.trace[-1] - objective
            if optional and not drop <= 0:
                return False
            if not drop <= ROUNDING * max(1.0, abs(objective)):
                self.fell = drop
                return False
        else:
            self.units = self.star.log_units(counts)
        self.trace.append(objective)
        self.params, self.counts = params, counts
        if self.watch is not None:
            self.watch(len(self.trace) - 1, objective)
        return True

    def enough(self) -> None:
        """Stop if little is left to gain, in proportion to an objective free of units: metres or miles stop alike."""
        free = [height - self.units for height in self.trace[-3:]]
        self.converged = self.stop.small(remaining(free), free[-1])

    def step(self) -> None:
        """One EM map."""
        if self.score(self.star.estimate(self.counts, self.imagined)):
            self.enough()

    def stride(self) -> None:
        """Two EM maps and a leap; where the leap is no gain, the second map's own parameters."""
        start, before = self.params, self.trace[-1]
        if not self.score(self.star.estimate(self.counts, self.imagined)) or self.over:
            return
        first, gain = self.params, self.trace[-1] - before
        second = self.star.estimate(self.counts, self.imagined)
        ahead = leap(start, first, second, self.longest)
        if self.stop.small(max(gain, 0.0) / (1.0 - ahead.rate**2), self.trace[-1] - self.units):
            return self.verify()
        if self.score(ahead.params, optional=True):
            self.longest *= 2.0
        else:
            self.longest = max(self.longest / 2.0, 1.0)
            self.score(second)

    def verify(self) -> None:
        """Plain steps before stopping: a leap stirs up quick modes that hide how much a slow one has still to gain."""
        for _ in range(VERIFIED):
            if self.over or not self.score(self.star.estimate(self.counts, self.imagined)):
                return
        self.enough()


def impossible(star: Star, params: StarParams, ready: Sequence[Ready]) -> DataError:
    """The error that names the first row to which the parameters of the start give probability zero."""
    compiled = star.compile(params)
    rows = (part.start + row for part in ready for row in star.impossible_rows(compiled, part))
    return DataError(
        f"row {next(rows) + 1} is impossible under every class of the start (probability zero), so EM cannot use it. "
        "Start from probabilities above zero."
    )


def remaining(trace: Sequence[float]) -> float:
    """The gain still to come, as the geometric series of the last two gains predicts (Aitken)."""
    if len(trace) < 3:
        return np.inf
    before, last = trace[-2] - trace[-3], trace[-1] - trace[-2]
    if np.isinf(before):  # the prior may rule the start out; that first step says nothing of the pace
        return np.inf
    if last <= ROUNDING * max(1.0, abs(trace[-1])):
        return 0.0
    rate = last / before if before > 0 else 1.0
    return np.inf if rate >= 1.0 else last * rate / (1.0 - rate)
