"""The EM driver: stopping rules, acceleration, and finishing with L-BFGS."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import chain
from math import isclose
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Counts
from softcount.errors import DataError
from softcount.learn.checkpoints import Arrays, params_arrays, params_from
from softcount.models.base import ASSIGNED, Assign, Problem
from softcount.models.coordinates import Coordinates
from softcount.models.nodes import Params
from softcount.run.local import one_blas_thread
from softcount.run.progress import best_so_far

MEMORY = 10
"""EM steps used for extrapolation. With five, six latent classes of 3,000 rows took 276 steps instead of 169."""
RECENT = 20
"""Number of steps whose slowness is remembered, because steps right after a refused extrapolation underestimate it."""
NEGLIGIBLE = 1e-8
"""Relative singular value below which a direction is left out of the extrapolation."""
MANY = 200_000
"""Number of parameters above which nothing is extrapolated and a sample of them measures the pace: tables of words.

Ten steps of a million parameters took 200 MB and more time than the steps, without a gain: 5,000 documents in 20
classes took 19 plain steps or 44 with extrapolation.
"""
SAMPLED = 50_000


class Extrapolation:
    """Anderson acceleration: extrapolates the last EM steps and predicts the remaining gain."""

    def __init__(self, problem: Problem) -> None:
        size = sum(x.groups * x.width * (1 if x.alone else len(x.nodes)) for x in problem.nodes.bundles)
        every = -(-size // SAMPLED) if size > MANY else 1
        self.coordinates = Coordinates(problem.model, problem.imagined, every)
        self.longest = 4.0
        self._slowness: deque[float] = deque(maxlen=RECENT)
        self._points: deque[np.ndarray] = deque(maxlen=MEMORY + 1)
        self._steps: deque[np.ndarray] = deque(maxlen=MEMORY + 1)
        self._heading = np.zeros(0)
        self._stretch = 0.0

    def memory(self) -> Arrays:
        points, steps = np.array(self._points), np.array(self._steps)
        return {"longest": np.array([self.longest]), "slow": np.array(self._slowness), "points": points, "steps": steps}

    def remember(self, arrays: Arrays) -> None:
        self.longest = float(arrays["longest"][0])
        self._slowness.extend(arrays["slow"].tolist())
        self._points.extend(arrays["points"])
        self._steps.extend(arrays["steps"])

    def add_map(self, here: Params, mapped: Params) -> None:
        point = self.coordinates.vector(here)
        step = self.coordinates.vector(mapped) - point
        weights = self.coordinates.weights(here)
        self._points.append(point)
        self._steps.append(step)
        self._heading = self._where_to(weights)
        pull = float(((self._heading * weights) * (step * weights)).sum())
        square = float(((step * weights) ** 2).sum())
        self._stretch = pull / square if square > 0 else 0.0
        if self._stretch > 0:
            self._slowness.append(max(self._stretch, 1.0))
        length = float(np.sqrt(((self._heading * weights) ** 2).sum()))
        self._far = min(1.0, self.longest * np.sqrt(square) / length) if length > 0 else 1.0

    def _where_to(self, weights: np.ndarray) -> np.ndarray:
        """Return the direction to the fixed point, if the steps continue to change as they did."""
        step = self._steps[-1]
        if len(self._points) < 2:
            return step
        turns = np.diff(np.array(self._steps), axis=0).T
        moves = np.diff(np.array(self._points), axis=0).T + turns
        seen = turns * weights[:, None]
        lengths = np.sqrt((seen * seen).sum(axis=0))
        lengths[lengths == 0] = 1.0
        shares = np.linalg.lstsq(seen / lengths, step * weights, rcond=NEGLIGIBLE)[0] / lengths
        heading: np.ndarray = step - moves @ shares
        return heading

    @property
    def ready(self) -> bool:
        uphill = len(self._points) > 1 and self._stretch > 0
        return self.coordinates.whole and uphill and bool(np.isfinite(self._heading).all())

    def gain_left(self, sure: float) -> float:
        """Return the predicted remaining gain, given that of the next step; infinite while the steps still grow.

        In a direction in which a step covers the share s of the way, the whole way gains 1 / s times as much.
        """
        return sure * max(self._slowness) if self._slowness and self._stretch > 0 and len(self._points) > 1 else np.inf

    def leap(self, like: Params) -> Params:
        """Return the extrapolated parameters, at most `longest` step lengths away."""
        return self.coordinates.params(self._points[-1] + self._far * self._heading, like)

    def taken(self) -> None:
        if self._far < 1.0:
            self.longest *= 2.0

    def refused(self) -> None:
        """Forget all but the last step, because the earlier ones misled."""
        self.longest = max(self.longest / 2.0, 2.0)
        for kept in (self._points, self._steps):
            while len(kept) > 1:
                kept.popleft()


# The state of an EM run, and the rules for its steps, its assignment of rows and its end.

Watch = Callable[[int, float], None]
Assignment = Literal["soft", "hard", "drawn"]
ROUNDING = 1e-12
"""Relative change of the objective that counts as none."""
NOISE = 1e-9
"""Relative decrease that is rounding: a covariance at its floor, 1e-6 of the columns', is known to ten digits."""
NOTHING = 1e-14
"""Relative gain of a step that is only rounding."""
IN_A_ROW, AT_MOST = 2, 6
"""Consecutive predictions below the tolerance before a run stops; a single one can be a coincidence."""
DEEPER = 1000.0
"""Factor below the tolerance at which a prediction counts as certain; an extrapolation gains two or three digits."""


class Stop(Struct, frozen=True):
    """When to stop: after `max_iter` steps, or once the predicted remaining gain is below `tol`.

    `tol=0` takes exactly `max_iter` plain steps. Hard assignment stops when a step gains nothing. Drawn assignment
    never stops early and ends at the best parameters found. Both, and `half_steps`, take plain steps.
    """

    max_iter: int = 1000
    tol: float = 1e-8
    accelerate: bool = False
    assign: Assignment = "soft"
    finish: str | None = None
    half_steps: bool = False

    def __post_init__(self) -> None:
        if self.finish and self.tol == 0:
            raise DataError(
                f"finish={self.finish!r} needs a tolerance above 0: tol=0 takes exactly max_iter steps of EM and no "
                "others. Use finish=None, or tol=1e-8."
            )
        if self.finish and (self.assign != "soft" or self.half_steps):
            raise DataError(f"finish={self.finish!r} is for soft assignment and whole steps. Use finish=None.")

    def small(self, gain: float, objective: float) -> bool:
        return self.tol > 0 and gain <= self.tol * max(1.0, abs(objective))


class EMRun(Struct, frozen=True):
    """The result of an EM run: the parameters just scored, their expected counts, and the trace.

    The trace holds the objective after every pass; a refused extrapolation repeats the previous one. With `half_steps`
    it also holds the lower bound after every M-step in between.
    """

    params: Params
    counts: Counts
    trace: list[float]
    converged: bool
    fell: float = 0.0
    interrupted: bool = False
    half_steps: bool = False
    notes: tuple[str, ...] = ()
    units: float = 0.0

    @property
    def objective(self) -> float:
        return max(self.trace)

    @property
    def size(self) -> float:
        """The scale for differences of the objective: its size without the columns' units, at least 1."""
        return max(1.0, abs(self.objective - self.units))

    @property
    def n_iter(self) -> int:
        return (len(self.trace) - 1) // (2 if self.half_steps else 1)


class EMState:
    """An EM run in progress: plain EM with soft memberships, `max_iter` steps. Subclasses have other rules."""

    params: Params
    counts: Counts
    remembers = True
    """Whether a run can continue from a checkpoint between two steps; otherwise it starts again."""

    def __init__(self, problem: Problem, stop: Stop, watch: Watch | None = None, seed: int = 0) -> None:
        self.problem, self.stop, self.watch, self.seed = problem, stop, watch, seed
        self.trace: list[float] = []
        self.bounds: list[float] = []
        self.notes: list[str] = []
        self.height = -np.inf
        self.converged = self.interrupted = False
        self.fell = 0.0
        self.units = 0.0
        self.ended = False

    # -- the rule

    def assign(self, turn: int) -> Assign | None:
        """Return the function that turns posteriors into memberships in a pass; None leaves them soft."""
        return None

    def likelihood(self, counts: Counts) -> float:
        return counts.log_likelihood

    def step(self) -> None:
        """Take one EM step or an extrapolated one, or end the run if too little is left to gain."""
        mapped = self.problem.estimate(self.counts)
        if not np.isfinite(self.height) or (self.stop.tol == 0 and not self.stop.half_steps):
            self.go_to(mapped)  # the prior may exclude the initial parameters; that step does not measure the pace
            return
        sure = self.problem.bound(self.counts, mapped) - self.problem.bound(self.counts, self.params)
        self.converged = self.little_left(mapped, sure)
        if self.converged:
            return
        if self.stop.half_steps:
            self.bounds.append(self.height + sure)
        if not self.leaped(mapped, sure) and not self.over:
            self.go_to(mapped)

    def little_left(self, mapped: Params, sure: float) -> bool:
        """Return whether the run has converged; `sure` is the gain of the next step in the lower bound."""
        return False

    def leaped(self, mapped: Params, sure: float) -> bool:
        """Return whether an extrapolated step was taken instead of a plain one."""
        return False

    def memory(self) -> Arrays:
        return {}

    def remember(self, arrays: Arrays) -> None:
        """Invert `memory`."""

    # -- the run

    @property
    def over(self) -> bool:
        return self.ended or self.converged or self.fell != 0 or len(self.trace) > self.stop.max_iter

    def result(self) -> EMRun:
        trace = self.trace
        if self.stop.half_steps:
            trace = [trace[0], *chain.from_iterable(zip(self.bounds, trace[1:], strict=False))]
        return EMRun(
            self.params, self.counts, trace, self.converged, self.fell, self.interrupted, self.stop.half_steps,
            tuple(self.notes), self.units,
        )  # fmt: skip

    def save(self, ended: bool = False) -> None:
        facts = {"ended": ended, "converged": self.converged, "notes": list(self.notes)}
        numbers = {"trace": self.trace, "bounds": self.bounds, "ends": [self.fell, self.units, self.height]}
        arrays = {name: np.array(values, dtype=np.float64) for name, values in numbers.items()}
        self.problem.log.keep(facts, arrays | params_arrays(self.params) | ({} if ended else self.memory()))

    def restore(self, facts: dict[str, Any], arrays: Arrays, like: Params) -> None:
        """Continue from the arrays that `save` wrote. Needs one pass."""
        self.params = params_from(arrays, like)
        self.counts, self.height = self.seen(self.params)
        self.trace, self.bounds = arrays["trace"].tolist(), arrays["bounds"].tolist()
        self.fell, self.units, height = arrays["ends"].tolist()
        self.notes, self.converged, self.ended = list(facts["notes"]), facts["converged"], facts["ended"]
        if not isclose(self.height, height, rel_tol=NOISE):  # for example the same steps split into other sequences
            raise self.problem.log.mismatch("data")
        if not self.ended:
            self.remember(arrays)
        for place, reached in enumerate(self.trace if self.watch is not None else ()):
            self.watch(place, reached)  # type: ignore[misc]

    def begin(self, params: Params) -> None:
        """Run the first pass. Raise an error that names a row which is impossible under the initial parameters."""
        counts, height = self.seen(params)
        if np.isneginf(counts.log_likelihood):
            raise self.problem.impossible(params)
        self.units = self.problem.units(counts)
        self.arrive(params, counts, height)

    def seen(self, params: Params) -> tuple[Counts, float]:
        """Return expected counts and the objective at these parameters. Needs one pass."""
        counts = self.problem.expected(params, self.assign(len(self.trace)))
        return counts, self.likelihood(counts) + self.problem.log_prior(params)

    def arrive(self, params: Params, counts: Counts, height: float) -> None:
        self.params, self.counts, self.height = params, counts, height
        self.record(height)

    def record(self, height: float) -> None:
        """Append to the trace. A run that does not move repeats its objective."""
        self.trace.append(height)
        if self.watch is not None:
            self.watch(len(self.trace) - 1, height)

    def go_to(self, params: Params) -> None:
        """Move unless the objective decreases. The run stays if the decrease is rounding, and ends otherwise."""
        counts, height = self.seen(params)
        drop = (self.height - height) / max(1.0, abs(height))
        if drop <= ROUNDING:
            self.arrive(params, counts, height)
        elif drop <= NOISE:
            self.record(self.height)
            self.converged = self.stop.tol > 0
        else:
            self.fell = self.height - height


class Converging(EMState):
    """Soft memberships until little is left to gain, with extrapolation if the plan accelerates."""

    def __init__(self, problem: Problem, stop: Stop, watch: Watch | None = None, seed: int = 0) -> None:
        super().__init__(problem, stop, watch, seed)
        self.maps, self.leaping, self.calm = Extrapolation(problem), stop.accelerate and not stop.half_steps, 0

    def little_left(self, mapped: Params, sure: float) -> bool:
        """Return whether the run has converged, relative to the objective without the units of columns."""
        free = self.counts.log_likelihood - self.units
        self.maps.add_map(self.params, mapped)
        left = 0.0 if sure <= NOTHING * max(1.0, abs(free)) else self.maps.gain_left(sure)
        self.calm = self.calm + 1 if self.stop.small(left, free) else 0
        return self.calm >= (IN_A_ROW if self.stop.small(DEEPER * left, free) else AT_MOST)

    def leaped(self, mapped: Params, sure: float) -> bool:
        """Take the extrapolated step if it gains at least the certain gain of the plain step."""
        if not (self.leaping and self.maps.ready):
            return False
        spare = NOTHING * max(1.0, abs(self.height))
        params = self.maps.leap(mapped)
        counts, height = self.seen(params)
        if height >= self.height + max(sure - spare, 0.0):
            self.arrive(params, counts, height)
            self.maps.taken()
            return True
        self.record(self.height)
        self.maps.refused()
        return False

    def memory(self) -> Arrays:
        return {"calm": np.array([self.calm]), **self.maps.memory()}

    def remember(self, arrays: Arrays) -> None:
        self.calm = int(arrays["calm"][0])
        self.maps.remember(arrays)


class HardAssignment(EMState):
    """Every row belongs entirely to its most probable group. Stops when no row moves."""

    def assign(self, turn: int) -> Assign:
        return assign_hard

    def likelihood(self, counts: Counts) -> float:
        return counts.notes[ASSIGNED]

    def little_left(self, mapped: Params, sure: float) -> bool:
        size = max(1.0, abs(self.counts.log_likelihood - self.units))
        return self.stop.tol > 0 and sure <= NOTHING * size  # the case once no row has moved


class DrawnAssignment(EMState):
    """Every row belongs entirely to a group drawn from its posterior in every pass.

    The best parameters found are kept.
    """

    remembers = False
    latest: Counts | None = None

    def assign(self, turn: int) -> Assign:
        return partial(assign_drawn, seed=self.seed, turn=turn)

    def step(self) -> None:
        params = self.problem.estimate(self.latest or self.counts)
        self.latest, height = self.seen(params)
        if height >= self.height:
            self.params, self.counts, self.height = params, self.latest, height
        self.record(height)


def assign_hard(members: np.ndarray, start: int) -> None:
    """Assign every row to its most probable group; ties go to the first. A row impossible in all groups is in none."""
    top = members.argmax(axis=1)
    some = members.max(axis=1, initial=0.0) > 0
    members[:] = 0.0
    members[np.flatnonzero(some), top[some]] = 1.0


def assign_drawn(members: np.ndarray, start: int, seed: int, turn: int) -> None:
    """Assign every row to a group drawn from its posterior. Draws depend only on seed, turn and row."""
    edges = np.cumsum(members, axis=1)
    chances = np.random.default_rng((seed, turn, start)).random(len(members))
    own = (chances[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
    some = edges[:, -1] > 0
    members[:] = 0.0
    members[np.flatnonzero(some), own[some]] = 1.0


# The EM driver: compute the expected counts, record the objective, stop or estimate again.


def run_em(
    problem: Problem,
    params: Params,
    stop: Stop | None = None,
    watch: Watch | None = None,
    rng: np.random.Generator | None = None,
) -> EMRun:
    """Run EM from `params`. After an interrupt, return the best result so far.

    The objective is log-likelihood plus log prior; with hard assignment the likelihood is that of rows and their
    groups. It cannot decrease except by rounding. In that case the run ends at the best parameters found, and `fell`
    holds the decrease.
    """
    stop = stop or Stop()
    seed = 0 if rng is None else int(rng.integers(2**62))
    state = _run_of(stop)(problem, stop, watch, seed)
    with one_blas_thread():
        start, log = problem.nodes.held(params, problem.imagined), problem.log
        saved = None if log is None else log.begin_run(start, (stop, seed))
        try:
            if saved is None or stop.assign == "drawn":  # a repeated pass would draw other groups
                state.begin(start)
            else:
                facts, arrays = saved
                state.restore(facts, arrays, start)
            while not state.over:
                state.step()
                if log is not None and state.remembers:
                    state.save()
        except KeyboardInterrupt:
            best_so_far()
            state.interrupted = True
    if log is not None:
        if state.interrupted:
            log.interrupt()
        elif not state.ended:
            state.save(ended=True)
    return state.result()


def _run_of(stop: Stop) -> type[EMState]:
    if stop.assign != "soft":
        return DrawnAssignment if stop.assign == "drawn" else HardAssignment
    if stop.tol == 0:
        return EMState
    return Converging if stop.finish is None else Finished


# Finishing with L-BFGS: if EM is slow, the gradient of the log-likelihood gives the last digits.

NEAR = 1e-6
"""Relative predicted gain at which L-BFGS takes over from EM. Farther away it may find another optimum."""
CORRECTIONS = 20


class _OutOfPasses(Exception):
    """No pass is left."""


class Finished(Converging):
    """EM until it is near the optimum, then L-BFGS. The usual stopping rule decides at the end."""

    remembers = False

    def begin(self, params: Params) -> None:
        super().begin(params)
        stop = self.stop
        self.stop = replace(stop, tol=max(stop.tol, NEAR))
        while not self.over:
            self.step()
        self.stop, self.calm, self.maps = stop, 0, Extrapolation(self.problem)
        if self.converged:
            self.converged = False
            run_lbfgs(self)


def run_lbfgs(state: EMState) -> None:
    """Run L-BFGS with every pass in the trace. The run ends at the best parameters found."""
    from scipy.optimize import minimize

    problem, like, mass = state.problem, state.params, max(state.counts.rows, 1e-300)
    chart = Coordinates(problem.model, problem.imagined)
    weights = chart.weights(like)
    first = [(state.counts, state.height)]

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        vector = x / weights
        if first:  # L-BFGS evaluates the current parameters first
            params, (counts, height) = like, first.pop()
        else:
            if state.over:
                raise _OutOfPasses
            params = chart.params(vector, like, free=True)
            counts, height = state.seen(params)
            if height >= state.height:
                state.params, state.counts, state.height = params, counts, height
            state.record(state.height)
        slopes = problem.nodes.slope(counts, params, problem.imagined)
        if not np.isfinite(height):
            return 1e3 - state.height / mass, np.zeros_like(x)
        return -height / mass, -chart.gradient(vector, slopes) / weights / mass

    steep = 1e-3 * np.sqrt(state.stop.tol * max(1.0, abs(state.height)) / mass)
    rules = {"maxcor": CORRECTIONS, "ftol": 0.0, "gtol": steep, "maxiter": 15000, "maxfun": 15000}
    with suppress(_OutOfPasses):
        minimize(loss, chart.vector(like) * weights, jac=True, method="L-BFGS-B", options=rules)
