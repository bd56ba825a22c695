"""The best of several initialisations, run one by one or side by side.

Every initialisation is run for a few steps. Runs with the same parameters are one from then on, and a degenerate run is
repaired once. The others continue: all of them if that is cheap, else the promising ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.counts import Counts
from softcount.learn.em import AT_MOST, DEEPER, IN_A_ROW, Anderson, run_em
from softcount.learn.record import EMRun, Plan, Stop
from softcount.models.base import Problem
from softcount.models.batched import SideBySide, Statistics
from softcount.models.nodes import Params
from softcount.run.progress import raise_if_ending

SHORT = 20
"""Steps after which runs are first compared."""
LONGER = 100
SCOUTS = 3
"""Short runs for each initialisation of a small table, of which the best goes on.

One k-means++ draw in five leads to the best of the five optima of gss82, so that one search of nine would miss it with
ten single runs.
"""
FEW = 6
"""Steps of each of those runs."""
SMALL = 200_000
"""Rows x columns x groups up to which every run is continued to its end."""
FINALISTS = 3
"""Runs on a sample of a large table that continue with all rows."""
ALIKE = 5e-3
"""Parameters that differ by less, in the columns' units, lead to the same optimum."""

Make = Callable[[], Params]
Judge = Callable[[Params, Counts], bool]
"""Whether parameters and their counts have a degenerate group."""
Repair = Callable[[EMRun], Params]
"""New initial parameters from a run that has one."""


class StartRun(Struct, frozen=True, eq=False):
    """An EM run on some rows, the initialisations that led to it, and whether it has a degenerate group."""

    reached: EMRun
    problem: Problem
    number: int
    maps: int
    owners: frozenset[int] = frozenset()
    degenerate: bool = False
    repaired: bool = False

    @property
    def rank(self) -> tuple[bool, float]:
        """A run that met a floor loses to any that did not."""
        return not self.degenerate, self.reached.objective


class SearchResult(Struct, frozen=True, eq=False):
    """The best run, how many of the `tried` initialisations agreed with it, and how many degenerated."""

    best: EMRun
    agreed: int
    tried: int
    spiked: int
    degenerate: bool
    interrupted: bool = False


class Search(Struct, eq=False):
    """Runs from several initialisations.

    `judge` says whether a run is degenerate; `repair` makes new parameters from one that is. Short runs use `ground`:
    the whole `table`, or a sample of its rows.
    """

    table: Problem
    ground: Problem
    plan: Plan
    judge: Judge = lambda params, counts: False
    repair: Repair | None = None
    runs: list[StartRun] = field(default_factory=list)
    spare: StartRun | None = None
    of: int = 0
    tried: int = 0
    interrupted: bool = False
    given_up: set[int] = field(default_factory=set)

    def best_of(self, starts: Sequence[Sequence[Make]]) -> SearchResult:
        """The best of these initialisations; each is the best of its own tries after a short run."""
        self.of = len(starts)
        with self._until_interrupted():
            for number, tries in enumerate(starts):
                self.tried += 1
                self._enter(self._short(tries, number))
            if self.ground.exact:
                self._go_on(LONGER)
            else:
                self._go_on(2 * SHORT)
                self._finals()
            self._go_on(self.plan.stop.max_iter)
        best = best_run(self.runs)
        return self._result(best, self._ended(best, self.interrupted))

    def each_of(self, makes: Sequence[Make], rngs: Sequence[np.random.Generator] | None = None) -> SearchResult:
        """The best of these initialisations, every one run to its end. Drawn assignments use the generators."""
        self.of, stop = len(makes), self.plan.stop
        with self._until_interrupted():
            for number, make in enumerate(makes):
                self.tried += 1
                rng = None if rngs is None else rngs[number]
                reached = run_em(self.table, make(), stop, self.plan.watching(number + 1, self.of), rng)
                degenerate = self.judge(reached.params, reached.counts)
                self.runs.append(StartRun(reached, self.table, number, stop.max_iter, frozenset({number}), degenerate))
                if reached.interrupted:
                    raise KeyboardInterrupt
        best = best_run(self.runs)
        return self._result(best, best.reached)

    @contextmanager
    def _until_interrupted(self) -> Iterator[None]:
        """An interrupt ends the search with the best run so far; without any it goes on to the caller."""
        try:
            yield
        except KeyboardInterrupt:
            raise_if_ending()
            self.runs = self.runs or [run for run in [self.spare] if run is not None]
            if not self.runs:
                raise
            self.interrupted = True

    def _result(self, best: StartRun, reached: EMRun) -> SearchResult:
        # A run that was interrupted is in the list together with what it was before.
        top, slack = best.reached.objective, 1e-3 + 1e-7 * best.reached.size
        alike = [run for run in self.runs if run.problem is best.problem and run.degenerate == best.degenerate]
        agreed = len(find_owners(run for run in alike if top - run.reached.objective <= slack))
        stopped = self.interrupted or reached.interrupted
        return SearchResult(reached, agreed, self.tried, self.spiked, best.degenerate, stopped)

    @property
    def spiked(self) -> int:
        """How many initialisations led to degenerate runs only."""
        return self.tried - len(find_owners(run for run in self.runs if not run.degenerate) | self.given_up)

    def _short(self, tries: Sequence[Make], number: int) -> StartRun:
        """The first steps: of several tries, only the best makes more than a few."""
        if len(tries) == 1:
            return self._run_further(tries[0](), number, SHORT)
        run = best_run([self._run_further(make(), number, FEW) for make in tries])
        return run if run.reached.converged else self._run_further(run.reached.params, number, SHORT - run.maps, run)

    def _run_further(self, params: Params, number: int, maps: int, before: StartRun | None = None) -> StartRun:
        """A run of `maps` further steps, joined to the one before."""
        ground, done = self.ground, 0 if before is None else before.maps
        most = min(done + maps, self.plan.stop.max_iter)
        stop = replace(self.plan.stop, max_iter=most - done, finish=None)
        watch = self.plan.watching(number + 1, self.of)
        reached = run_em(ground, params, stop, watch)
        if before is not None:
            reached = replace(reached, trace=before.reached.trace + reached.trace[1:])
        degenerate = self.judge(reached.params, reached.counts)
        run = StartRun(reached, ground, number, most, frozenset({number}), degenerate)
        if reached.interrupted:
            self.runs.append(run)
            raise KeyboardInterrupt
        return run

    def _enter(self, run: StartRun) -> None:
        """Add a run, or merge it with one that has the same parameters up to the order of groups."""
        if run.degenerate and not run.repaired and self.repair is not None:
            repaired = self._run_further(self.repair(run.reached), run.number, LONGER)
            run = replace(run if repaired.degenerate else repaired, owners=run.owners, repaired=True)
        by_group = self.ground.model.by_group
        for place, other in enumerate(self.runs):
            one, two = other.reached, run.reached
            near = abs(one.objective - two.objective) <= objective_tolerance(one.counts.rows)
            if other.degenerate == run.degenerate and near and same_groups(by_group(one.params), by_group(two.params)):
                self.runs[place] = replace(best_run([run, other]), owners=run.owners | other.owners)
                return
        self.runs.append(run)

    def _go_on(self, limit: int) -> None:
        """Continue, the best first, until every promising run has made `limit` steps."""
        limit = min(limit, self.plan.stop.max_iter)
        while (run := self._next(limit)) is not None:
            further = self._run_further(run.reached.params, run.number, limit - run.maps, run)
            self.runs.remove(run)
            self._enter(replace(further, owners=run.owners, repaired=run.repaired))

    def _next(self, limit: int) -> StartRun | None:
        sound = [run for run in self.runs if not run.degenerate] or self.runs
        best = max(run.reached.objective for run in sound)
        ready = [run for run in sound if run.maps < limit and not run.reached.converged and not run.reached.fell]
        if self.ground.work > SMALL:
            # Those that may still reach the best, by ten times the gain of their last ten entries.
            traces = [(run, run.reached.trace) for run in ready]
            ready = [x for x, trace in traces if trace[-1] + 10.0 * (trace[-1] - trace[-11:][0]) >= best]
        return max(ready, key=lambda run: run.rank, default=None)

    def _finals(self) -> None:
        """Continue from a sample to the whole table with the best few."""
        sampled = sorted(self.runs, key=lambda run: run.rank, reverse=True)
        self.runs, self.spare, self.ground = [], sampled[0], self.table
        for run in sampled[:FINALISTS]:
            final = self._run_further(run.reached.params, run.number, SHORT)
            self._enter(replace(final, owners=run.owners, repaired=run.repaired))
            self._go_on(self.plan.stop.max_iter)

    def _ended(self, best: StartRun, interrupted: bool) -> EMRun:
        """The end of the best run on the whole table, finished by L-BFGS if the plan says so."""
        stop, table, reached = self.plan.stop, self.table, best.reached
        if best.problem is table and (stop.finish is None or interrupted):
            return reached
        last = replace(stop, max_iter=0 if interrupted else stop.max_iter - best.maps)
        watch = self.plan.watching(best.number + 1, self.of)
        end = run_em(table, reached.params, last, watch)
        if not best.problem.exact:
            return end
        trace = [*(min(height, end.trace[0]) for height in reached.trace[:-1]), *end.trace]
        return replace(end, trace=trace, converged=end.converged or reached.converged)


def find_owners(runs: Iterable[StartRun]) -> set[int]:
    return {owner for run in runs for owner in run.owners}


def best_run(runs: Sequence[StartRun]) -> StartRun:
    """The best run; of those equal up to rounding the first, so that the order of rows does not matter."""
    top = max(runs, key=lambda run: run.rank)
    least = top.reached.objective - 1e-10 * top.reached.size
    equal = [run for run in runs if run.degenerate == top.degenerate and run.reached.objective >= least]
    return min(equal, key=lambda run: run.number)


def objective_tolerance(rows: float) -> float:
    """How much the objectives may differ if parameters are nearly the same."""
    return max(0.05, 1e-4 * rows)


def same_groups(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two lists of groups have the same parameters in some order."""
    free = list(range(len(second)))
    for group in first:
        far = np.max(np.abs(second[free] - group) / (1.0 + np.abs(group)), axis=1)
        nearest = int(np.argmin(far))
        if not far[nearest] < ALIKE:
            return False
        del free[nearest]
    return True


# Initialisations side by side, for models whose scores are matrix products of features.

MEMORY = 6
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


PER_SET = {"heights": -np.inf, "arrived": 0.0, "_slowness": 0.0, "_leapt": 0.0, "_calm": 0.0}
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
        self._anderson = Anderson(sets, MEMORY)
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
            self.statistics = many.either(higher, stats, self.statistics)
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
        points = self.many.coordinates.vector(params) if self._vectors is None else self._vectors
        ends = self.many.coordinates.vector(fresh)
        steps = ends - points
        if self.passes % OFTEN == 0 or len(self._weights) != self.sets:
            self._weights = self.many.coordinates.weights(self.here)
        anderson = self._anderson
        anderson.add(points, steps, self._weights, higher)
        ready = anderson.ready
        self._slowness = np.maximum(np.maximum(anderson.stretch, 1.0), FADING * self._slowness)
        with np.errstate(invalid="ignore"):
            sure = 0.5 * self.mass * anderson.square / np.maximum(1.0, np.abs(self.heights - self.units))
            little = ready & (sure * self._slowness <= self.tol) | (sure <= NOTHING * self.tol)
        # The last set left must be as sure of its end as the exact run, whose passes cost several times as much.
        self._calm = np.where(little, self._calm + 1, 0)
        deep = sure * self._slowness * DEEPER <= self.tol
        self.arrived |= self._calm >= np.where(deep | (self.sets > 1), IN_A_ROW, AT_MOST)
        self._vectors = ends if higher.all() or not self.leaping else None
        ready = ready & ~self.arrived
        if self.leaping and ready.any():
            leap = self.many.coordinates.params(np.where(ready[:, None], anderson.ends, ends), self.mapped)
            self.upcoming = leap if ready.all() else self.many.either(ready, leap, self.mapped)
            self._leapt, self._vectors = ready, None
            anderson.lengthen(ready)

    def keep(self, places: np.ndarray) -> None:
        many = self.many
        self.here, self.mapped, self.upcoming = (
            many.some(params, places) for params in (self.here, self.mapped, self.upcoming)
        )
        self.statistics = many.some(self.statistics, places)
        self.owners, self.met = self.owners[places], [self.met[place] for place in places]
        self._change_arrays(lambda values, filled: values[places])
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
        self._change_arrays(
            lambda values, filled: np.concatenate([values, np.full((new, *values.shape[1:]), filled, values.dtype)])
        )
        self._vectors = None

    def _change_arrays(self, change: Callable[[np.ndarray, float], np.ndarray]) -> None:
        """Change every array that has the sets on its first axis; the number is that of a new set."""
        for name, filled in PER_SET.items():
            setattr(self, name, change(getattr(self, name), filled))
        self.traces = [change(heights, -np.inf) for heights in self.traces]
        self._anderson.change(change)

    def hopes(self, patience: float) -> np.ndarray:
        """The objective that each set may still reach: `patience` times the gain of its last four passes."""
        before = self.traces[max(0, len(self.traces) - 5)]
        with np.errstate(invalid="ignore"):
            gain = np.where(self.arrived, 0.0, self.heights - before)
        return np.asarray(self.heights + patience * gain)


def best_of_each(owners: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """The best set of every owner; of equals the first."""
    order = np.lexsort([np.arange(len(owners)), -heights, owners])
    return np.sort(order[np.flatnonzero(np.diff(owners[order], prepend=-1))])


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

    `degenerate_sets` says which sets have a degenerate group, and `repair_sets` makes new parameters from such sets. A
    `rough` search ends where the race does. With `one_each` only the best set of each initialisation makes more than a
    few passes.
    """

    degenerate_sets: Callable[[Race], np.ndarray] = lambda race: np.zeros(race.sets, dtype=bool)
    repair_sets: Callable[[Sequence[EMRun]], Params] | None = None
    rough: bool = False
    one_each: bool = False
    repaired: set[int] = field(default_factory=set)
    degenerate_runs: list[StartRun] = field(default_factory=list)
    astray: bool = False

    def best(self, many: SideBySide, params: Params, owners: np.ndarray) -> SearchResult | None:
        """The best of these sets; each belongs to an initialisation, its owner.

        None if products lose too many digits.
        """
        self.of = self.tried = int(owners.max()) + 1
        with self._until_interrupted():
            self._race_all(many, params, owners)
            if not self.runs:
                return None
            if not self.ground.exact:
                self._finals()
        best = best_run(self.runs)
        found = self._result(best, self._ended(best, self.interrupted))
        return None if self.astray else found

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
        left, near = np.ones(race.sets, dtype=bool), objective_tolerance(race.mass)
        order = np.argsort(-race.heights, kind="stable").tolist()
        groups = cache(partial(race.many.by_group, race.here))
        for rank, place in enumerate(order):
            for other in order[:rank]:
                close = race.heights[other] - race.heights[place] <= near and bad[other] == bad[place]
                if left[other] and close and same_groups(groups(other), groups(place)):
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
            self.repaired |= find_owners(hopeless)

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
