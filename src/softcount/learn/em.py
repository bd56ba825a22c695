"""The EM driver: total the expected counts, record the objective, stop or estimate and go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add

import numpy as np

from softcount.counts import Counts
from softcount.errors import DataError
from softcount.learn.accelerate import Course
from softcount.learn.assign import ASSIGNMENTS, Assignment, drawn, hard
from softcount.learn.tiles import lengthened, runs_of
from softcount.models.star import ASSIGNED, Assign, Imagined, Ready, Star, StarParams
from softcount.run.threads import Threads

Watch = Callable[[int, float], None]
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
class Climb:
    """Where EM came to: the parameters just scored, their expected counts, and the way there.

    The trace has the objective after every pass over the table; a leap that was not taken repeats the one before.
    With `half_steps` it has the lower bound after every M-step in between.
    """

    params: StarParams
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
        if self.finish and (self.assign != "soft" or self.half_steps):
            raise DataError(f"finish={self.finish!r} is for soft assignment and whole steps. Use finish=None.")

    @property
    def leaping(self) -> bool:
        return self.accelerate and self.tol > 0 and self.assign == "soft" and not self.half_steps

    def small(self, gain: float, objective: float) -> bool:
        return self.tol > 0 and gain <= self.tol * max(1.0, abs(objective))


def expected(
    star: Star, params: StarParams, ready: Sequence[Ready], threads: Threads, assign: Assign | None = None
) -> Counts:
    """Expected counts of the whole table under these parameters, by the names of the leaves."""
    compiled = star.compile(params)
    # On plain NumPy two threads wait for the interpreter: 20,000 rows took 223 ms in place of 144.
    runs = runs_of(ready, threads.n_jobs) if star.kernels.compiled else [ready]
    parts = threads.map(lambda run: [star.expect(params, compiled, part, assign) for part in run], runs)
    return star.unstacked(reduce(add, chain.from_iterable(parts)))


def climb(
    star: Star,
    imagined: Imagined,
    ready: Sequence[Ready],
    params: StarParams,
    threads: Threads,
    stop: Stop,
    watch: Watch | None = None,
    rng: np.random.Generator | None = None,
) -> Climb:
    """Climb from `params` until nothing worth having is left to gain; interrupted, the best so far.

    The objective is log-likelihood plus the prior's part; under hard assignment the likelihood is that of the rows
    with their groups. It cannot fall; if rounding ever makes it fall, the climb ends at the best parameters met and
    says by how much.
    """
    way = Way(star, imagined, lengthened(ready, star.groups), threads, stop, watch)
    way.seed = 0 if rng is None else int(rng.integers(2**62))
    way.score(star.held(params, imagined))
    try:
        if stop.finish is not None and stop.tol > 0:
            from softcount.learn.finish import finish

            finish(way)
        way.run()
    except KeyboardInterrupt:
        way.interrupted = True
    return way.climbed()


class Way:
    """The state of one climb: where it is, and how it got there."""

    params: StarParams
    counts: Counts

    def __init__(
        self, star: Star, imagined: Imagined, ready: Sequence[Ready], threads: Threads, stop: Stop, watch: Watch | None
    ) -> None:
        self.star, self.imagined, self.ready, self.threads = star, imagined, ready, threads
        self.stop, self.watch = stop, watch
        self.course = Course(star, imagined)
        self.trace: list[float] = []
        self.bounds: list[float] = []
        self.notes: list[str] = []
        self.height = -np.inf
        self.converged = self.interrupted = False
        self.fell = 0.0
        self.calm = 0
        self.units = 0.0
        self.seed = 0

    @property
    def over(self) -> bool:
        return self.converged or self.fell != 0 or len(self.trace) > self.stop.max_iter

    def run(self) -> None:
        while not self.over:
            self.step()

    def climbed(self) -> Climb:
        trace = self.trace
        if self.stop.half_steps:
            between = zip(self.bounds, self.trace[1:], strict=False)
            trace = [self.trace[0], *chain.from_iterable(between)]
        return Climb(
            self.params, self.counts, trace, self.converged, self.fell, self.interrupted, self.stop.half_steps,
            tuple(self.notes), self.units,
        )  # fmt: skip

    # -- one pass over the table

    def score(self, params: StarParams, least: float | None = None) -> bool:
        """Go to these parameters unless they are worse; with `least` they may be, and must come to that height."""
        counts, height = self.seen(params)
        if not self.trace and np.isneginf(counts.log_likelihood):
            raise impossible(self.star, params, self.ready)
        if not self.trace:
            self.units = self.star.log_units(counts) - log_deviations(self.star, self.imagined, counts)
        elif not self._welcome(height, least):
            return False
        self._record(height)
        if height >= self.height or self.stop.assign != "drawn":
            self.params, self.counts, self.height = params, counts, height
        if self.stop.assign == "drawn":
            self.latest = counts
        return True

    def seen(self, params: StarParams) -> tuple[Counts, float]:
        """Expected counts and the objective at these parameters, wherever the climb is."""
        counts = expected(self.star, params, self.ready, self.threads, self._assign())
        return counts, self._height(counts, params)

    def visit(self, params: StarParams, counts: Counts, height: float) -> None:
        """Record a pass, and go there if nothing better has been met."""
        if height >= self.height:
            self.params, self.counts, self.height = params, counts, height
        self._record(self.height)

    def _welcome(self, height: float, least: float | None) -> bool:
        """Whether to go there. A leap in vain costs a map; where arithmetic has no more to tell, the climb stays; a
        fall that arithmetic does not explain ends it."""
        if self.stop.assign == "drawn":
            return True
        if least is not None:
            if not height >= least:
                self._record(self.height)
            return height >= least
        drop = (self.height - height) / max(1.0, abs(height))
        if drop <= ROUNDING:
            return True
        if drop <= NOISE:
            self._record(self.height)
            self.converged = self.stop.tol > 0
        else:
            self.fell = self.height - height
        return False

    def _record(self, height: float) -> None:
        self.trace.append(height)
        if self.watch is not None:
            self.watch(len(self.trace) - 1, height)

    def _assign(self) -> Assign | None:
        if self.stop.assign == "drawn":
            return drawn(self.seed, len(self.trace))
        return hard if self.stop.assign == "hard" else None

    def _height(self, counts: Counts, params: StarParams) -> float:
        own = counts.notes[ASSIGNED] if self.stop.assign == "hard" else counts.log_likelihood
        return own + self.star.log_prior(params, self.imagined)

    # -- one step

    def step(self) -> None:
        """One EM map, or a leap; or the end, where too little is left to gain."""
        if self.stop.assign == "drawn":
            self.score(self.star.estimate(self.latest, self.imagined))
            return
        mapped = self.star.estimate(self.counts, self.imagined)
        if not np.isfinite(self.height) or (self.stop.tol == 0 and not self.stop.half_steps):
            self.score(mapped)  # the prior may rule the start out; that first step says nothing of the pace
            return
        sure = self.sure_gain(mapped)
        self._look(mapped, sure)
        if self.converged:
            return
        if self.stop.half_steps:
            self.bounds.append(self.height + sure)
        if self.stop.leaping and self.course.ready and self._leap(mapped, sure):
            return
        if not self.over:
            self.score(mapped)

    def sure_gain(self, mapped: StarParams) -> float:
        """What an M-step is sure to gain before the next pass: the rise of the lower bound."""
        star, counts = self.star, self.counts
        rise = star.completed(counts, mapped) - star.completed(counts, self.params)
        return rise + star.log_prior(mapped, self.imagined) - star.log_prior(self.params, self.imagined)

    def _look(self, mapped: StarParams, sure: float) -> None:
        """Converged if little is left to gain, in proportion to an objective free of units: metres or miles alike."""
        free = self.counts.log_likelihood - self.units
        size = max(1.0, abs(free))
        if self.stop.assign == "hard":
            self.converged = self.stop.tol > 0 and sure <= NOTHING * size  # as it is once no row has moved
            return
        self.course.note(self.params, mapped)
        left = 0.0 if sure <= NOTHING * size else self.course.left(sure)
        self.calm = self.calm + 1 if self.stop.small(left, free) else 0
        self.converged = self.calm >= (IN_A_ROW if self.stop.small(DEEPER * left, free) else AT_MOST)

    def _leap(self, mapped: StarParams, sure: float) -> bool:
        """Go where the maps are heading, if that gains at least what the plain map is sure to."""
        spare = NOTHING * max(1.0, abs(self.height))
        if self.score(self.course.leap(mapped), self.height + max(sure - spare, 0.0)):
            self.course.taken()
            return True
        self.course.refused()
        return False


def log_deviations(star: Star, imagined: Imagined, counts: Counts) -> float:
    """What the log-likelihood of normal columns loses to their deviations, in counting units."""
    total = 0.0
    for leaf in star.leaves:
        if {"variance", "covariance"} & set(leaf.family.chart):
            whole = np.asarray(imagined.leaves[leaf.key]["whole"])
            rows = float(counts.arrays[leaf.key].value[..., 0].sum())
            total += 0.5 * rows * float(np.log(whole[whole > 0]).sum())
    return total


def impossible(star: Star, params: StarParams, ready: Sequence[Ready]) -> DataError:
    """The error that names the first row to which the parameters of the start give probability zero."""
    compiled = star.compile(params)
    rows = (part.start + row for part in ready for row in star.impossible_rows(compiled, part))
    return DataError(
        f"row {next(rows) + 1} is impossible under every class of the start (probability zero), so EM cannot use it. "
        "Start from probabilities above zero."
    )
