"""The EM driver: stopping rules, acceleration, and finishing with L-BFGS."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import chain
from math import isclose
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.core.counts import Counts
from softcount.learn.checkpoints import Arrays, params_arrays, params_from
from softcount.learn.record import EMRun, Stop, Watch
from softcount.models.base import ASSIGNED, Assign, Problem
from softcount.models.coordinates import Coordinates
from softcount.models.nodes import Params
from softcount.run.local import one_blas_thread
from softcount.run.progress import raise_if_ending

MEMORY = 10
"""EM steps used for extrapolation. With five, six latent classes of 3,000 rows took 276 steps instead of 169."""
RECENT = 20
"""Number of steps whose slowness is remembered, because steps right after a refused extrapolation underestimate it."""
NEGLIGIBLE = 1e-8
"""Relative singular value below which a direction is left out of the extrapolation."""
RIDGE = 1e-10
"""Added to the squared lengths of directions of several sets, so that nearly equal ones are left alone."""
MANY = 200_000
"""Number of parameters above which nothing is extrapolated and a sample of them measures the pace: tables of words.

Ten steps of a million parameters took 200 MB and more time than the steps, without a gain: 5,000 documents in 20
classes took 19 plain steps or 44 with extrapolation.
"""
SAMPLED = 50_000
ALL_TRUSTED = np.ones(1, dtype=bool)
"""The marks of a single set of parameters that trusts its steps."""


class Anderson:
    """Anderson acceleration of one or several sets of parameters at once: (sets x coordinates) points and steps.

    Every set extrapolates its last steps to the point where they would end. With `exact` there is one set, which is
    solved with all digits; otherwise normal equations solve all sets together.
    """

    def __init__(self, sets: int, memory: int, exact: bool = False) -> None:
        self.memory, self.exact = memory, exact
        self.longest = np.full(sets, 4.0)
        """The length of an extrapolation, in step lengths, up to which it is trusted."""
        self.points: np.ndarray | None = None
        self.steps, self.trusted = np.zeros((sets, 0)), np.zeros(sets, dtype=bool)
        self.turns: list[np.ndarray] = []
        self.moves: list[np.ndarray] = []
        self.known: list[np.ndarray] = []

    def add(self, points: np.ndarray, steps: np.ndarray, weights: np.ndarray, trusted: np.ndarray) -> None:
        """Record a step from every point. Sets that are not `trusted` refused their point: their history misled."""
        for known in self.known:
            known &= trusted
        self.longest = np.where(trusted, self.longest, np.maximum(self.longest / 2.0, 2.0))
        if self.points is not None:
            turns = steps - self.steps
            new = turns, points - self.points + turns, self.trusted & trusted
            for kept, one in zip((self.turns, self.moves, self.known), new, strict=True):
                kept.append(one)
                del kept[: -self.memory]
        self.points, self.steps, self.trusted = points, steps, trusted
        self.heading = steps - self._change_of_steps(weights) if self.turns else steps
        ahead, along = self.heading * weights, steps * weights
        self.square = (along * along).sum(axis=1)
        self.stretch = (ahead * along).sum(axis=1) / np.where(self.square > 0, self.square, 1.0)
        length = np.sqrt((ahead * ahead).sum(axis=1))
        there = length > 0
        self.far = np.where(
            there, np.minimum(1.0, self.longest * np.sqrt(self.square) / np.where(there, length, 1.0)), 1.0
        )
        uphill = (self.stretch > 0) & np.isfinite(length)
        self.ready: np.ndarray = uphill & self.known[-1] if self.known else np.zeros(len(steps), dtype=bool)

    def _change_of_steps(self, weights: np.ndarray) -> np.ndarray:
        """Return what the rest of the way adds to a step, if the steps continue to change as they did."""
        if self.exact:
            seen, moves = np.concatenate(self.turns) * weights, np.concatenate(self.moves)
            lengths = np.sqrt((seen * seen).sum(axis=1))
            lengths[lengths == 0] = 1.0
            ways = (seen / lengths[:, None]).T
            shares = np.linalg.lstsq(ways, (self.steps * weights)[0], rcond=NEGLIGIBLE)[0] / lengths
            return np.asarray(moves.T @ shares)
        known = np.array(self.known).T  # sets x differences
        moves = np.array(self.moves).transpose(1, 0, 2)
        seen = np.array(self.turns).transpose(1, 0, 2) * weights[:, None] * known[..., None]
        lengths = np.sqrt((seen * seen).sum(axis=2))
        lengths[lengths == 0] = 1.0
        seen /= lengths[..., None]
        square = seen @ seen.transpose(0, 2, 1)
        own = np.arange(square.shape[1])
        square[:, own, own] += RIDGE
        shares = np.linalg.solve(square, seen @ (self.steps * weights)[..., None])[..., 0] / lengths
        return np.asarray((shares[:, None] @ moves)[:, 0])

    @property
    def ends(self) -> np.ndarray:
        """The extrapolated points, at most `longest` step lengths away."""
        assert self.points is not None
        return np.asarray(self.points + self.far[:, None] * self.heading)

    def lengthen(self, sets: np.ndarray) -> None:
        """Trust longer extrapolations of these sets, if the last one was shortened."""
        self.longest = np.where(sets & (self.far < 1.0), 2.0 * self.longest, self.longest)

    def change(self, change: Callable[[np.ndarray, float], np.ndarray]) -> None:
        """Change every array that has the sets on its first axis; the number is that of a new set."""
        self.longest, self.trusted = change(self.longest, 4.0), change(self.trusted, 0.0)
        self.turns, self.moves, self.known = (
            [change(part, 0.0) for part in kept] for kept in (self.turns, self.moves, self.known)
        )
        if self.points is not None:
            self.points, self.steps = change(self.points, 0.0), change(self.steps, 0.0)


# The state of an EM run, and the rules for its steps, its assignment of rows and its end.

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
    """Soft memberships until little is left to gain, with Anderson acceleration if the plan accelerates.

    `slowness` holds how many times longer than a step the rest of the way was predicted to be, for the last steps.
    """

    def __init__(self, problem: Problem, stop: Stop, watch: Watch | None = None, seed: int = 0) -> None:
        super().__init__(problem, stop, watch, seed)
        self.leaping = stop.accelerate and not stop.half_steps
        self.begin_extrapolation()

    def begin_extrapolation(self) -> None:
        bundles = self.problem.nodes.bundles
        size = sum(x.groups * x.width * (1 if x.alone else len(x.nodes)) for x in bundles)
        every = -(-size // SAMPLED) if size > MANY else 1
        self.coordinates = Coordinates(self.problem.model, self.problem.imagined, every)
        self.anderson = Anderson(1, MEMORY, exact=True)
        self.slowness: deque[float] = deque(maxlen=RECENT)
        self.calm = 0

    def little_left(self, mapped: Params, sure: float) -> bool:
        """Return whether the run has converged, relative to the objective without the units of columns.

        In a direction in which a step covers the share s of the way, the whole way gains 1 / s times as much. Nothing
        is predicted while the steps still grow.
        """
        free = self.counts.log_likelihood - self.units
        point, weights = self.coordinates.vector(self.params)[None], self.coordinates.weights(self.params)[None]
        self.anderson.add(point, self.coordinates.vector(mapped) - point, weights, ALL_TRUSTED)
        stretch = float(self.anderson.stretch[0])
        if stretch > 0:
            self.slowness.append(max(stretch, 1.0))
        shrinking = self.slowness and self.anderson.turns and stretch > 0
        left = sure * max(self.slowness) if shrinking else np.inf
        if sure <= NOTHING * max(1.0, abs(free)):
            left = 0.0
        self.calm = self.calm + 1 if self.stop.small(left, free) else 0
        return self.calm >= (IN_A_ROW if self.stop.small(DEEPER * left, free) else AT_MOST)

    def leaped(self, mapped: Params, sure: float) -> bool:
        """Take the extrapolated step if it gains at least the certain gain of the plain step.

        Otherwise forget all but the last step, because the earlier ones misled.
        """
        anderson = self.anderson
        if not (self.leaping and self.coordinates.whole and anderson.ready[0]):
            return False
        spare = NOTHING * max(1.0, abs(self.height))
        params = self.coordinates.params(anderson.ends[0], mapped)
        counts, height = self.seen(params)
        if height >= self.height + max(sure - spare, 0.0):
            self.arrive(params, counts, height)
            anderson.lengthen(ALL_TRUSTED)
            return True
        self.record(self.height)
        anderson.longest = np.maximum(anderson.longest / 2.0, 2.0)
        for kept in (anderson.turns, anderson.moves, anderson.known):
            kept.clear()
        return False

    def memory(self) -> Arrays:
        kept = self.anderson
        arrays = {"calm": np.array([self.calm]), "slow": np.array(self.slowness), "longest": kept.longest}
        arrays |= {"steps": kept.steps, "turns": np.array(kept.turns), "moves": np.array(kept.moves)}
        return arrays if kept.points is None else arrays | {"points": kept.points}

    def remember(self, arrays: Arrays) -> None:
        kept = self.anderson
        self.calm = int(arrays["calm"][0])
        self.slowness.extend(arrays["slow"].tolist())
        kept.longest, kept.steps, kept.points = arrays["longest"], arrays["steps"], arrays.get("points")
        kept.turns, kept.moves = list(arrays["turns"]), list(arrays["moves"])
        kept.trusted, kept.known = ALL_TRUSTED, [ALL_TRUSTED.copy() for _ in kept.turns]


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
    if stop.assign == "soft":
        kind = EMState if stop.tol == 0 else Converging if stop.finish is None else Finished
    else:
        kind = DrawnAssignment if stop.assign == "drawn" else HardAssignment
    state = kind(problem, stop, watch, seed)
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
            raise_if_ending()
            state.interrupted = True
    if log is not None:
        if state.interrupted:
            log.interrupt()
        elif not state.ended:
            state.save(ended=True)
    return state.result()


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
        self.stop = stop
        self.begin_extrapolation()
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
