"""The rules of a climb: when it stops, how rows are assigned to groups, what a step is; and where a climb is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Literal, Protocol

import numpy as np

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.learn.accelerate import Extrapolation
from softcount.learn.climb_log import SavedClimb, params_arrays, params_from
from softcount.models.base import ASSIGNED, Assign, Problem
from softcount.models.nodes import Params
from softcount.records import dataclass

Watch = Callable[[int, float], None]
Assignment = Literal["soft", "hard", "drawn"]
ASSIGNMENTS = ("soft", "hard", "drawn")
ROUNDING = 1e-12
"""Relative change of the objective that is no change at all."""
NOISE = 1e-9
"""Relative fall that is arithmetic: a covariance at its floor, 1e-6 of the columns', is known to ten digits."""
NOTHING = 1e-14
"""Sure gain of a map, in proportion, that is nothing but rounding."""
IN_A_ROW, AT_MOST = 2, 6
"""Predictions below the tolerance before a climb stops: one can be a coincidence of the last steps."""
DEEPER = 1000.0
"""How far below the tolerance a prediction ends the climb at once; near the top a leap gains two or three digits."""


@dataclass(frozen=True, slots=True)
class Stop:
    """When to stop: after `max_iter` maps, or once the gain still to come is predicted to be below `tol`.

    `tol=0` takes plain maps, exactly `max_iter` of them. Hard assignment stops when a map gains nothing; drawn
    assignment never stops early and ends at the best parameters it met. Both, and `half_steps`, take plain maps.
    """

    max_iter: int = 1000
    tol: float = 1e-8
    accelerate: bool = False
    assign: Assignment = "soft"
    finish: str | None = None
    half_steps: bool = False

    def __post_init__(self) -> None:
        if self.assign not in ASSIGNMENTS:
            raise DataError(f"assign={self.assign!r} is not known. Use one of {', '.join(map(repr, ASSIGNMENTS))}.")
        if self.finish not in (None, "lbfgs"):
            raise DataError(f"finish={self.finish!r} is not known. Use None or 'lbfgs'.")
        if self.finish and self.tol == 0:
            raise DataError(
                f"finish={self.finish!r} needs a tolerance above 0: tol=0 takes exactly max_iter steps of EM and no "
                "others. Use finish=None, or tol=1e-8."
            )
        if self.finish and (self.assign != "soft" or self.half_steps):
            raise DataError(f"finish={self.finish!r} is for soft assignment and whole steps. Use finish=None.")

    def small(self, gain: float, objective: float) -> bool:
        """Whether a gain is below the tolerance."""
        return self.tol > 0 and gain <= self.tol * max(1.0, abs(objective))


@dataclass(frozen=True, slots=True)
class Climb:
    """Where EM came to: the parameters just scored, their expected counts, and the way there.

    The trace has the objective after every pass over the table; a leap that was not taken repeats the one before.
    With `half_steps` it has the lower bound after every M-step in between.
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
        """What differences of the objective are measured by: its size free of the columns' units, at least 1."""
        return max(1.0, abs(self.objective - self.units))

    @property
    def n_iter(self) -> int:
        return (len(self.trace) - 1) // (2 if self.half_steps else 1)


class Assigning(Protocol):
    """How rows are assigned in a pass, and what of the counts is the rows' part of the objective."""

    def assign(self, turn: int) -> Assign | None: ...
    def likelihood(self, counts: Counts) -> float: ...


class ClimbState:
    """One climb: where it is, and how it got there."""

    params: Params
    counts: Counts

    def __init__(self, problem: Problem, stop: Stop, rule: Assigning, watch: Watch | None = None) -> None:
        self.problem, self.stop, self.rule, self.watch = problem, stop, rule, watch
        self.trace: list[float] = []
        self.bounds: list[float] = []
        self.notes: list[str] = []
        self.height = -np.inf
        self.converged = self.interrupted = False
        self.fell = 0.0
        self.units = 0.0
        self.ended = False

    @property
    def over(self) -> bool:
        return self.ended or self.converged or self.fell != 0 or len(self.trace) > self.stop.max_iter

    def climbed(self) -> Climb:
        """The climb as it stands."""
        trace = self.trace
        if self.stop.half_steps:
            trace = [trace[0], *chain.from_iterable(zip(self.bounds, trace[1:], strict=False))]
        return Climb(
            self.params, self.counts, trace, self.converged, self.fell, self.interrupted, self.stop.half_steps,
            tuple(self.notes), self.units,
        )  # fmt: skip

    def begin(self, params: Params) -> None:
        """The first pass; rows that the start calls impossible are refused by name."""
        counts, height = self.seen(params)
        if np.isneginf(counts.log_likelihood):
            raise self.problem.impossible(params)
        self.units = self.problem.units(counts)
        self.arrive(params, counts, height)

    def seen(self, params: Params) -> tuple[Counts, float]:
        """Expected counts and the objective at these parameters, wherever the climb is: a pass over the table."""
        counts = self.problem.expected(params, self.rule.assign(len(self.trace)))
        return counts, self.rule.likelihood(counts) + self.problem.log_prior(params)

    def arrive(self, params: Params, counts: Counts, height: float) -> None:
        """Go there, whatever the height."""
        self.params, self.counts, self.height = params, counts, height
        self.record(height)

    def record(self, height: float) -> None:
        """One more pass was made; a climb that stays where it is repeats its height."""
        self.trace.append(height)
        if self.watch is not None:
            self.watch(len(self.trace) - 1, height)

    def try_for(self, params: Params, least: float) -> bool:
        """Go there if it is as high as that; a try in vain costs a pass."""
        counts, height = self.seen(params)
        if height >= least:
            self.arrive(params, counts, height)
            return True
        self.record(self.height)
        return False

    def go_to(self, params: Params) -> None:
        """Go there unless it is lower. Where arithmetic has no more to tell, the climb stays; a fall that arithmetic
        does not explain ends it."""
        counts, height = self.seen(params)
        drop = (self.height - height) / max(1.0, abs(height))
        if drop <= ROUNDING:
            self.arrive(params, counts, height)
        elif drop <= NOISE:
            self.record(self.height)
            self.converged = self.stop.tol > 0
        else:
            self.fell = self.height - height


class Rule:
    """Plain EM maps of soft memberships, as many as were asked for."""

    remembers = True
    """Whether a climb can go on from what was saved between two steps; one that cannot starts again."""

    def saved(self, state: ClimbState, ended: bool = False) -> SavedClimb:
        """Where the climb is between two steps, or how it ended."""
        facts = {"ended": ended, "converged": state.converged, "notes": list(state.notes)}
        numbers = {"trace": state.trace, "bounds": state.bounds, "ends": [state.fell, state.units, state.height]}
        arrays = {name: np.array(values, dtype=np.float64) for name, values in numbers.items()}
        arrays |= params_arrays(state.params)
        return SavedClimb(facts, arrays if ended else arrays | self.memory())

    def memory(self) -> dict[str, np.ndarray]:
        """What the rule itself remembers, as arrays."""
        return {}

    def remember(self, arrays: dict[str, np.ndarray]) -> None:
        """Take that back."""

    def recall(self, state: ClimbState, saved: SavedClimb, like: Params) -> bool:
        """Go to where a saved climb was, or ended; false where nothing of it can be used. It takes one pass."""
        if not saved.arrays or not (saved.ended or self.remembers):
            return False
        state.params = params_from(saved.arrays, like)
        state.counts, state.height = state.seen(state.params)
        state.trace, state.bounds = saved.arrays["trace"].tolist(), saved.arrays["bounds"].tolist()
        state.fell, state.units, _ = saved.arrays["ends"].tolist()
        state.notes, state.converged = [str(note) for note in saved.facts["notes"]], bool(saved.facts["converged"])
        state.ended = saved.ended
        if not saved.ended:
            self.remember(saved.arrays)
        for place, height in enumerate(state.trace if state.watch is not None else ()):
            state.watch(place, height)  # type: ignore[misc]
        return True

    def before(self, state: ClimbState) -> None:
        """What comes before the first step."""

    def assign(self, turn: int) -> Assign | None:
        """What makes memberships of posteriors in a pass; None leaves them as they are."""
        return None

    def likelihood(self, counts: Counts) -> float:
        """The rows' part of the objective."""
        return counts.log_likelihood

    def step(self, state: ClimbState) -> None:
        """One EM map, or a leap; or the end, where too little is left to gain."""
        mapped = state.problem.estimate(state.counts)
        if not np.isfinite(state.height) or (state.stop.tol == 0 and not state.stop.half_steps):
            state.go_to(mapped)  # the prior may rule the start out; that first step says nothing of the pace
            return
        sure = state.problem.bound(state.counts, mapped) - state.problem.bound(state.counts, state.params)
        state.converged = self.little_left(state, mapped, sure)
        if state.converged:
            return
        if state.stop.half_steps:
            state.bounds.append(state.height + sure)
        if not self.leaped(state, mapped, sure) and not state.over:
            state.go_to(mapped)

    def little_left(self, state: ClimbState, mapped: Params, sure: float) -> bool:
        """Whether the climb has converged, given a map and the rise of the lower bound that it is sure to gain."""
        return False

    def leaped(self, state: ClimbState, mapped: Params, sure: float) -> bool:
        """Whether the climb went further than the map, and has done so."""
        return False


class Converging(Rule):
    """Soft memberships until little is left to gain, by leaps where they are allowed."""

    def __init__(self, problem: Problem, leaping: bool) -> None:
        self.maps, self.leaping, self.calm = Extrapolation(problem), leaping, 0

    def little_left(self, state: ClimbState, mapped: Params, sure: float) -> bool:
        """In proportion to an objective free of units: metres or miles alike."""
        free = state.counts.log_likelihood - state.units
        self.maps.add_map(state.params, mapped)
        left = 0.0 if sure <= NOTHING * max(1.0, abs(free)) else self.maps.gain_left(sure)
        self.calm = self.calm + 1 if state.stop.small(left, free) else 0
        return self.calm >= (IN_A_ROW if state.stop.small(DEEPER * left, free) else AT_MOST)

    def leaped(self, state: ClimbState, mapped: Params, sure: float) -> bool:
        """Go where the maps are heading, if that gains at least what the plain map is sure to."""
        if not (self.leaping and self.maps.ready):
            return False
        spare = NOTHING * max(1.0, abs(state.height))
        if state.try_for(self.maps.leap(mapped), state.height + max(sure - spare, 0.0)):
            self.maps.taken()
            return True
        self.maps.refused()
        return False

    def memory(self) -> dict[str, np.ndarray]:
        return {"calm": np.array([self.calm]), **self.maps.memory()}

    def remember(self, arrays: dict[str, np.ndarray]) -> None:
        self.calm = int(arrays["calm"][0])
        self.maps.remember(arrays)


class HardAssignment(Rule):
    """Every row wholly in its likeliest group, until no row moves."""

    def assign(self, turn: int) -> Assign:
        return hard

    def likelihood(self, counts: Counts) -> float:
        return counts.notes[ASSIGNED]

    def little_left(self, state: ClimbState, mapped: Params, sure: float) -> bool:
        size = max(1.0, abs(state.counts.log_likelihood - state.units))
        return state.stop.tol > 0 and sure <= NOTHING * size  # as it is once no row has moved


class DrawnAssignment(Rule):
    """Every row wholly in a group drawn from its posterior, anew in every pass; the best parameters met are kept."""

    remembers = False

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.latest: Counts | None = None

    def recall(self, state: ClimbState, saved: SavedClimb, like: Params) -> bool:
        return False  # one pass does not tell the counts, which were drawn

    def assign(self, turn: int) -> Assign:
        return DrawnGroups(self.seed, turn)

    def step(self, state: ClimbState) -> None:
        params = state.problem.estimate(self.latest or state.counts)
        self.latest, height = state.seen(params)
        if height >= state.height:
            state.params, state.counts, state.height = params, self.latest, height
        state.record(height)


def hard(members: np.ndarray, start: int) -> None:
    """Every row wholly in its likeliest group, the lowest where several are; a row no group can have made in none."""
    top = members.argmax(axis=1)
    some = members.max(axis=1, initial=0.0) > 0
    members[:] = 0.0
    members[np.flatnonzero(some), top[some]] = 1.0


@dataclass(frozen=True, slots=True)
class DrawnGroups:
    """Every row wholly in one group drawn from its posterior; the draws depend on seed, turn and row alone."""

    seed: int
    turn: int

    def __call__(self, members: np.ndarray, start: int) -> None:
        edges = np.cumsum(members, axis=1)
        chances = np.random.default_rng((self.seed, self.turn, start)).random(len(members))
        own = (chances[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
        some = edges[:, -1] > 0
        members[:] = 0.0
        members[np.flatnonzero(some), own[some]] = 1.0
