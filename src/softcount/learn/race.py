"""Several EM runs at once, of which losers are dropped early."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
from msgspec import field
from msgspec.structs import replace

from softcount.learn.em import AT_MOST, DEEPER, IN_A_ROW, EMRun, Stop
from softcount.learn.search import FEW, Search, SearchResult, StartRun, alike, as_near, owners_of
from softcount.models.batched import SideBySide, Statistics
from softcount.models.nodes import Params
from softcount.run.progress import best_so_far

MEMORY = 6
RIDGE = 1e-10
"""Added to the squared lengths of directions, so that nearly equal ones are left alone."""
ROUNDING = 1e-11
"""Relative fall that is rounding of totals in one double."""
NEAR = 1e-7
"""Relative gain still to come below which a set has converged."""
NOTHING = 1e-3
"""As a share of that: a step that gains less has converged, whatever its direction."""
FADING = 0.9
"""Decay per pass of how slow a set has been: right after a refused extrapolation little is known."""
OFTEN = 4
"""Passes after which the weights of coordinates are computed anew."""


PER_SET = {"heights": -np.inf, "arrived": 0.0, "_slowness": 0.0, "_longest": 4.0, "_leapt": 0.0, "_calm": 0.0}
"""Arrays of a race with one number per set, and the number of a new set."""


class Race:
    """EM on many sets of parameters at once, with Anderson acceleration per set."""

    statistics: Statistics
    here: Params
    mapped: Params

    def __init__(self, many: SideBySide, params: Params, owners: np.ndarray, stop: Stop) -> None:
        self.many, self.leaping, self.upcoming, self.tol = many, stop.accelerate, params, max(stop.tol, NEAR)
        self.owners, sets = owners, len(owners)
        self.met = [frozenset({int(owner)}) for owner in owners]
        self.units = 0.0
        self.watch: Callable[[Race], None] | None = None
        self.mass = float(np.sum(many.rows.weights)) / (sets if many.rows.weights.ndim > 1 else 1)
        self.heights = np.full(sets, PER_SET["heights"])
        self.arrived = np.zeros(sets, dtype=bool)
        self.traces: list[np.ndarray] = []
        self.passes = 0
        self._leapt = np.zeros(sets, dtype=bool)
        self._calm = np.zeros(sets, dtype=int)
        self._longest = np.full(sets, PER_SET["_longest"])
        self._last: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._turns: list[np.ndarray] = []
        self._moves: list[np.ndarray] = []
        self._known: list[np.ndarray] = []
        self._weights = np.zeros((0, 0))
        self._slowness = np.zeros(sets)
        self._vectors: np.ndarray | None = None

    @property
    def sets(self) -> int:
        return len(self.heights)

    def run(self, passes: int, plain: bool = False) -> None:
        """At most `passes` passes, or until every set has converged; `plain` without extrapolation."""
        for _ in range(passes):
            if self.arrived.all():
                return
            self._pass(plain)

    def _pass(self, plain: bool) -> None:
        many, params = self.many, self.upcoming
        stats, heights = many.expected(params)
        fresh = many.estimate(stats)
        spare = ROUNDING * np.maximum(1.0, np.abs(heights))
        with np.errstate(invalid="ignore"):
            higher = ~(heights < self.heights - spare)
        if higher.all() or not self.passes:
            higher[:] = True
            self.here, self.mapped, self.statistics = params, fresh, stats
            self.heights = heights
        else:
            self.here, self.mapped = many.either(higher, params, self.here), many.either(higher, fresh, self.mapped)
            self.statistics = many.chosen(higher, stats, self.statistics)
            self.heights = np.where(higher, heights, self.heights)
        self.arrived |= ~higher & ~self._leapt  # a plain map falls by rounding alone
        self.passes += 1
        self.traces.append(self.heights)
        if self.watch is not None:
            self.watch(self)
        self._leapt = np.zeros(self.sets, dtype=bool)
        self.upcoming = self.mapped
        if not plain:
            self._look_ahead(params, fresh, higher)

    def _look_ahead(self, params: Params, fresh: Params, higher: np.ndarray) -> None:
        """Update the extrapolation; mark converged sets and choose the next parameters."""
        points = self.many.vectors(params) if self._vectors is None else self._vectors
        ends = self.many.vectors(fresh)
        steps = ends - points
        if self.passes % OFTEN == 0 or len(self._weights) != self.sets:
            self._weights = self.many.weights(self.here)
        for known in self._known:
            known &= higher  # the ground was not what the earlier maps made of it
        self._longest = np.where(higher, self._longest, np.maximum(self._longest / 2, 2.0))
        if self._last is not None:
            before, step, known = self._last
            turns = steps - step
            for kept, new in (
                (self._turns, turns), (self._moves, points - before + turns), (self._known, known & higher),
            ):  # fmt: skip
                kept.append(new)
                del kept[:-MEMORY]
        self._last = points, steps, higher
        heading, looked = self._heading(steps, self._weights)
        ahead, along = heading * self._weights, steps * self._weights
        square = (along * along).sum(axis=1)
        stretch = (ahead * along).sum(axis=1) / np.where(square > 0, square, 1.0)
        ready = looked & higher & (stretch > 0)
        self._slowness = np.maximum(np.maximum(stretch, 1.0), FADING * self._slowness)
        with np.errstate(invalid="ignore"):
            sure = 0.5 * self.mass * square / np.maximum(1.0, np.abs(self.heights - self.units))
            little = ready & (sure * self._slowness <= self.tol) | (sure <= NOTHING * self.tol)
        # The last set left must be as sure of its end as the exact run, whose passes cost several times as much.
        self._calm = np.where(little, self._calm + 1, 0)
        deep = sure * self._slowness * DEEPER <= self.tol
        self.arrived |= self._calm >= np.where(deep | (self.sets > 1), IN_A_ROW, AT_MOST)
        self._vectors = ends if higher.all() or not self.leaping else None
        length = np.sqrt((ahead * ahead).sum(axis=1))
        ready &= np.isfinite(length) & ~self.arrived
        if self.leaping and ready.any():
            far = np.minimum(1.0, self._longest * np.sqrt(square) / np.where(length > 0, length, 1.0))
            there = np.where(ready[:, None], points + far[:, None] * heading, ends)
            leap = self.many.moved(there, self.mapped)
            self.upcoming = leap if ready.all() else self.many.either(ready, leap, self.mapped)
            self._leapt, self._vectors = ready, None
            self._longest = np.where(ready & (far < 1.0), 2.0 * self._longest, self._longest)

    def _heading(self, steps: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From here to the fixed point, and which sets have steps enough to tell."""
        if not self._turns:
            return steps, np.zeros(self.sets, dtype=bool)
        both = np.array(self._known).T  # sets x differences
        moves = np.array(self._moves).transpose(1, 0, 2)
        seen = np.array(self._turns).transpose(1, 0, 2) * weights[:, None] * both[..., None]
        lengths = np.sqrt((seen * seen).sum(axis=2))
        lengths[lengths == 0] = 1.0
        seen /= lengths[..., None]
        square = seen @ seen.transpose(0, 2, 1)
        own = np.arange(square.shape[1])
        square[:, own, own] += RIDGE
        shares = np.linalg.solve(square, seen @ (steps * weights)[..., None])[..., 0] / lengths
        return steps - (shares[:, None] @ moves)[:, 0], both[:, -1]

    def keep(self, places: np.ndarray) -> None:
        many = self.many
        self.here, self.mapped, self.upcoming = (
            many.some(params, places) for params in (self.here, self.mapped, self.upcoming)
        )
        self.statistics = many.some_statistics(self.statistics, places)
        self.owners, self.met = self.owners[places], [self.met[place] for place in places]
        for name in PER_SET:
            setattr(self, name, getattr(self, name)[places])
        for kept in (self.traces, self._turns, self._moves, self._known):
            kept[:] = [part[places] for part in kept]
        if self._last is not None:
            points, steps, known = self._last
            self._last = points[places], steps[places], known[places]
        self._vectors = None if self._vectors is None else self._vectors[places]
        if many.rows.weights.ndim > 1:
            self.many = many.weighed(many.rows.weights[places])

    def join(self, params: Params, owners: np.ndarray) -> None:
        """Add sets without a history."""
        new = len(owners)
        self.here, self.mapped, self.upcoming = (
            self.many.joined(before, params) for before in (self.here, self.mapped, self.upcoming)
        )
        self.statistics = self.many.with_room(self.statistics, new)
        self.owners, self.met = np.append(self.owners, owners), self.met + [frozenset({int(each)}) for each in owners]
        for name, value in PER_SET.items():
            setattr(self, name, _longer(getattr(self, name), new, value))
        self.traces = [_longer(heights, new, -np.inf) for heights in self.traces]
        for kept in (self._turns, self._moves, self._known):
            kept[:] = [_longer(part, new) for part in kept]
        if self._last is not None:
            points, steps, known = self._last
            self._last = _longer(points, new), _longer(steps, new), _longer(known, new)
        self._vectors = None

    def hopes(self, patience: float) -> np.ndarray:
        """The objective that each set may still reach: `patience` times the gain of its last four passes."""
        before = self.traces[max(0, len(self.traces) - 5)]
        with np.errstate(invalid="ignore"):
            gain = np.where(self.arrived, 0.0, self.heights - before)
        return np.asarray(self.heights + patience * gain)


def _longer(values: np.ndarray, more: int, filled: float = 0.0) -> np.ndarray:
    return np.concatenate([values, np.full((more, *values.shape[1:]), filled, dtype=values.dtype)])


def best_of_each(owners: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """The best set of every owner; of equals the first."""
    order = np.lexsort([np.arange(len(owners)), -heights, owners])
    return np.sort(order[np.flatnonzero(np.diff(owners[order], prepend=-1))])


# Search over many initialisations at once, for models whose scores are matrix products of features.

STAGES = (9, 12, 16, 20, 25, 30, 38, 45, 60, 80, 100, 150, 200)
"""Passes after which sets are compared."""
PATIENT, IMPATIENT = 40.0, 10.0
"""Times the gain of its last four passes by which a set may be behind the best: of 24 fits 3 end lower with ten than
with forty, and 3 lower with forty than with a thousand."""
COSTLY = 1 << 19
"""Cells per set from which on a pass costs more than patience is worth."""
ASTRAY = 1e-6
"""Relative difference allowed between an objective in plain doubles and the exact one."""


class RaceSearch(Search, frozen=False, eq=False):
    """Initialisations that are run side by side.

    `spoilt_sets` says which sets have a degenerate group, and `mend_sets` makes new parameters from such sets. A
    `rough` search ends where the race does. With `one_each` only the best set of each initialisation makes more than a
    few passes.
    """

    degenerate_sets: Callable[[Race], np.ndarray] = lambda race: np.zeros(race.sets, dtype=bool)
    repair_sets: Callable[[Sequence[EMRun]], Params] | None = None
    rough: bool = False
    one_each: bool = False
    given_up: set[int] = field(default_factory=set)
    repaired: set[int] = field(default_factory=set)
    degenerate_runs: list[StartRun] = field(default_factory=list)
    astray: bool = False

    def best(self, many: SideBySide, params: Params, owners: np.ndarray) -> SearchResult | None:
        """The best of these sets; each belongs to an initialisation, its owner.

        None if products lose too many digits.
        """
        self.of = self.tried = int(owners.max()) + 1
        interrupted = False
        try:
            self._race_all(many, params, owners)
            if not self.runs:
                return None
            if not self.ground.exact:
                self._finals()
        except KeyboardInterrupt:
            best_so_far()
            self.runs = self.runs or [run for run in [self.spare] if run is not None]
            if not self.runs:
                raise
            interrupted = True
        found = self._result(interrupted)
        return None if self.astray else found

    @property
    def spiked(self) -> int:
        return self.tried - len(owners_of(run for run in self.runs if not run.degenerate) | self.given_up)

    def _race_all(self, many: SideBySide, params: Params, owners: np.ndarray) -> None:
        """Race until all have converged or are given up; sound sets come first among the runs."""
        race, most = Race(many, params, owners, self.plan.stop), self.plan.stop.max_iter + 1
        race.watch = self._tell
        try:
            race.run(min(FEW, most), plain=True)
            # Tolerances are in proportion to the objective without the part of the columns' units.
            race.units = self.ground.units(many.counts(race.statistics, 0))
            if self.one_each:
                race.keep(best_of_each(race.owners, race.heights))
            for limit in (*STAGES, most):
                race.run(min(limit, most) - race.passes)
                self._sort_out(race)
                if race.arrived.all():
                    break
        finally:
            if race.passes:
                ends = np.flatnonzero(np.isfinite(race.heights)).tolist()
                self.runs += [self._run_of(race, place, False) for place in ends]
            self.runs += self.degenerate_runs

    def _sort_out(self, race: Race) -> None:
        """Remove sets that are degenerate, equal to another, or too far behind."""
        bad = self.degenerate_sets(race)
        left, near = np.ones(race.sets, dtype=bool), as_near(race.mass)
        order = np.argsort(-race.heights, kind="stable").tolist()
        groups = cache(partial(race.many.by_group, race.here))
        for rank, place in enumerate(order):
            for other in order[:rank]:
                close = race.heights[other] - race.heights[place] <= near and bad[other] == bad[place]
                if left[other] and close and alike(groups(other), groups(place)):
                    race.met[other] |= race.met[place]
                    left[place] = False
                    break
        on = left & np.isfinite(race.heights)
        sound = on & ~bad
        going = sound & (
            race.hopes(IMPATIENT if self.rough or race.many.work > COSTLY else PATIENT)
            >= race.heights[sound].max(initial=-np.inf)
        )
        self.given_up |= {owner for place in np.flatnonzero(sound & ~going) for owner in race.met[place]}
        degenerate = [self._run_of(race, place, True) for place in np.flatnonzero(on & bad).tolist()]
        race.keep(np.flatnonzero(going))
        self.degenerate_runs += degenerate
        saved = self.given_up.union(self.repaired, *race.met)
        hopeless = [run for run in degenerate if not run.owners <= saved]
        if hopeless and self.repair_sets is not None and race.passes <= self.plan.stop.max_iter:
            race.join(self.repair_sets([run.reached for run in hopeless]), np.array([run.number for run in hopeless]))
            self.repaired |= owners_of(hopeless)

    def _run_of(self, race: Race, place: int, degenerate: bool) -> StartRun:
        params, height = race.many.some(race.here, place), float(race.heights[place])
        counts = race.many.counts(race.statistics, place, height - self.ground.log_prior(params))
        trace = [float(heights[place]) for heights in race.traces if np.isfinite(heights[place])]
        reached = EMRun(params, counts, trace, converged=False, units=race.units)
        met = race.met[place]
        return StartRun(reached, self.ground, min(met), len(trace) - 1, met, degenerate)

    def _tell(self, race: Race) -> None:
        for place in np.argsort(race.heights, kind="stable") if self.plan.watch is not None else ():
            watch = self.plan.watching(int(race.owners[place]) + 1, self.of)
            assert watch is not None
            watch(race.passes - 1, float(race.heights[place]))

    def _ended(self, best: StartRun, interrupted: bool) -> EMRun:
        """The exact objective must confirm that of the race; it does not if groups are far apart and narrow."""
        reached, rough = best.reached, self.rough and best.problem.exact
        end = Search._ended(self, best, interrupted or rough)
        if best.problem is self.ground and self.ground.exact:
            exact = end.trace[len(reached.trace) - 1]
            self.astray = not abs(exact - reached.trace[-1]) <= ASTRAY * reached.size
        return replace(end, interrupted=False) if rough and not interrupted else end
