"""The best of many starts, raced side by side: the fast way where every score is a product of features.

Sets of parameters are compared now and then: one that has met a spike is mended once, those that have come to the same
place go on as one, and those that cannot reach the best any more are given up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cache, partial

import numpy as np

from softcount.learn.race import Race, best_of_each
from softcount.learn.rules import Climb
from softcount.learn.search import FEW, Search, SearchResult, StartRun, alike, as_near, owners_of
from softcount.models.nodes import Params
from softcount.models.side_by_side import SideBySide
from softcount.records import dataclass
from softcount.run.progress import best_so_far

STAGES = (9, 12, 16, 20, 25, 30, 38, 45, 60, 80, 100, 150, 200)
"""Passes after which sets are compared."""
PATIENT, IMPATIENT = 40.0, 10.0
"""Times what its last four passes brought that a set may lack to the best: of 24 fits 3 end lower with ten than with
forty, and 3 lower with forty than with a thousand."""
COSTLY = 1 << 19
"""Cells a set from which on a pass takes longer than waiting is worth."""
ASTRAY = 1e-6
"""Of an objective, by which one of plain doubles may differ from that with all digits."""


@dataclass(slots=True, eq=False)
class RaceSearch(Search):
    """Starts on their way side by side. `spoilt_sets` says which sets of a race hold a group that is none, and
    `mend_sets` makes other starts of such sets.

    A `rough` search ends where the race does. With `one_each` only the best set of each start makes more than a few
    passes.
    """

    spoilt_sets: Callable[[Race], np.ndarray] = lambda race: np.zeros(race.sets, dtype=bool)
    mend_sets: Callable[[Sequence[Climb]], Params] | None = None
    rough: bool = False
    one_each: bool = False
    given_up: set[int] = field(default_factory=set)
    mended: set[int] = field(default_factory=set)
    spoilt_runs: list[StartRun] = field(default_factory=list)
    astray: bool = False

    def best(self, many: SideBySide, params: Params, owners: np.ndarray) -> SearchResult | None:
        """Where the best of these sets leads; each belongs to a start, its owner. None where products lose too much."""
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
        return self.tried - len(owners_of(run for run in self.runs if not run.spoilt) | self.given_up)

    def _race_all(self, many: SideBySide, params: Params, owners: np.ndarray) -> None:
        """Race until all have arrived or been given up; sound sets come first among the runs, spoilt ones follow."""
        race, most = Race(many, params, owners, self.plan.stop), self.plan.stop.max_iter + 1
        race.watch = self._tell
        try:
            race.run(min(FEW, most), plain=True)
            race.measured(self.ground.units(many.counts(race.statistics, 0)))
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
            self.runs += self.spoilt_runs

    def _sort_out(self, race: Race) -> None:
        """Take out of the race what is spoilt, has come to the same place as another, or has no hope."""
        bad = self.spoilt_sets(race)
        on = first_of_each(race, bad) & np.isfinite(race.heights)
        sound = on & ~bad
        going = sound & (race.hopes(self._patience(race)) >= race.heights[sound].max(initial=-np.inf))
        self.given_up |= {owner for place in np.flatnonzero(sound & ~going) for owner in race.met[place]}
        spoilt = [self._run_of(race, place, True) for place in np.flatnonzero(on & bad).tolist()]
        race.keep(np.flatnonzero(going))
        self.spoilt_runs += spoilt
        self._mend(race, spoilt)

    def _mend(self, race: Race, spoilt: Sequence[StartRun]) -> None:
        """Starts that met nothing but spikes enter the race once more, mended."""
        saved = self.given_up.union(self.mended, *race.met)
        hopeless = [run for run in spoilt if not run.owners <= saved]
        if hopeless and self.mend_sets is not None and race.passes <= self.plan.stop.max_iter:
            race.join(self.mend_sets([run.reached for run in hopeless]), np.array([run.number for run in hopeless]))
            self.mended |= owners_of(hopeless)

    def _patience(self, race: Race) -> float:
        return IMPATIENT if self.rough or race.many.work > COSTLY else PATIENT

    def _run_of(self, race: Race, place: int, spoilt: bool) -> StartRun:
        """A set of a race as a run by itself."""
        params, height = race.many.one(race.here, place), float(race.heights[place])
        counts = race.many.counts(race.statistics, place, height - self.ground.log_prior(params))
        trace = [float(heights[place]) for heights in race.traces if np.isfinite(heights[place])]
        reached = Climb(params, counts, trace, converged=False, units=race.units)
        met = race.met[place]
        return StartRun(reached, self.ground, min(met), len(trace) - 1, met, spoilt)

    def _tell(self, race: Race) -> None:
        """Tell where every set is, the one ahead last."""
        for place in np.argsort(race.heights, kind="stable") if self.plan.watch is not None else ():
            watch = self.plan.watching(int(race.owners[place]) + 1, self.of)
            assert watch is not None
            watch(race.passes - 1, float(race.heights[place]))

    def _ended(self, best: StartRun, interrupted: bool) -> Climb:
        """A race's objective must be that of all digits, which it is not where groups are far away and narrow."""
        reached, rough = best.reached, self.rough and best.problem.exact
        end = Search._ended(self, best, interrupted or rough)
        if best.problem is self.ground and self.ground.exact:
            exact = end.trace[len(reached.trace) - 1]
            self.astray = not abs(exact - reached.trace[-1]) <= ASTRAY * reached.size
        return replace(end, interrupted=False) if rough and not interrupted else end


def first_of_each(race: Race, bad: np.ndarray) -> np.ndarray:
    """Which sets are left when those that have come to the same place are one: the highest, met by all their starts."""
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
    return left
