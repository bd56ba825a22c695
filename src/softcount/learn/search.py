"""Many short runs, the best continued: which of several starts leads highest.

Every start is climbed a little. Runs that have come to the same place are one from then on; a run that has met a spike
is mended once; the others go on, all of them where that is cheap, the promising ones where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from softcount.counts import Counts
from softcount.learn.em import Climb, climb
from softcount.learn.plan import Plan
from softcount.models.star import Imagined, Ready, Star, StarParams
from softcount.run.threads import Threads

SHORT = 20
"""Maps after which starts are first compared."""
LONGER = 100
SCOUTS = 3
"""Short runs for each start of a small table, of which the best goes on: one k-means++ start in five leads to the best
of the five optima of gss82, so that one search of nine would miss it with ten starts of one run each."""
FEW = 6
"""Maps of each of those runs."""
SMALL = 200_000
"""Rows x columns x groups up to which every start is climbed to its end."""
FINALISTS = 3
"""Runs on a sample of a large table that go on with all of its rows."""
ALIKE = 5e-3
"""Parameters that differ by less, in the columns' units, are on the way to the same place."""

Make = Callable[[], StarParams]


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Rows to climb on: the whole table, or a sketch of it; `exact` where no row is left out."""

    star: Star
    imagined: Imagined
    ready: Sequence[Ready]
    threads: Threads
    exact: bool = True

    @property
    def small(self) -> bool:
        rows = sum(part.n_rows for part in self.ready)
        return rows * max(1, len(self.star.schema.used)) * self.star.groups <= SMALL


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A climb on some ground, how many starts came to it, and whether it holds a group that is none."""

    way: Climb
    ground: Ground
    number: int
    maps: int
    starts: int = 1
    spoilt: bool = False
    mended: bool = False

    @property
    def rank(self) -> tuple[bool, float]:
        """A start that met a floor loses to any that did not."""
        return not self.spoilt, self.way.objective

    @property
    def hope(self) -> float:
        """An objective that the run may still reach: ten times what its last ten entries brought."""
        trace = self.way.trace
        return trace[-1] + 10.0 * (trace[-1] - trace[max(0, len(trace) - 11)])


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best climb, how many of how many starts led there, how many met a spike, and whether the best did."""

    best: Climb
    agreed: int
    tried: int
    spiked: int
    spoilt: bool
    interrupted: bool = False


@dataclass(slots=True, eq=False)
class Search:
    """Starts on their way. `judge` says whether a climb is spoilt; `mend` makes another start of one that is."""

    table: Ground
    ground: Ground
    plan: Plan
    judge: Callable[[StarParams, Counts], bool]
    mend: Callable[[Climb], StarParams]
    runs: list[Run] = field(default_factory=list)
    spare: Run | None = None
    of: int = 0
    tried: int = 0

    def best_of(self, starts: Sequence[Sequence[Make]]) -> Found:
        """Where the best of these starts leads; each start is the best of its own tries after a short run."""
        self.of = len(starts)
        interrupted = False
        try:
            self._race(starts)
        except KeyboardInterrupt:
            self.runs = self.runs or [run for run in [self.spare] if run is not None]
            if not self.runs:
                raise
            interrupted = True
        best = best_run(self.runs)
        # A run that was interrupted stands beside what it was before.
        agreed = min(sum(run.starts for run in self.runs if as_high(run, best)), self.tried)
        spiked = sum(run.starts for run in self.runs if run.spoilt)
        way = self._ended(best, interrupted)
        return Found(way, agreed, self.tried, spiked, best.spoilt, interrupted or way.interrupted)

    def each_of(self, starts: Sequence[Sequence[Make]], rngs: Sequence[np.random.Generator]) -> Found:
        """The best of these starts, every one climbed to its end."""
        self.of = len(starts)
        interrupted = False
        try:
            for number, (tries, rng) in enumerate(zip(starts, rngs, strict=True)):
                self.tried += 1
                self._whole(tries[0](), number, rng)
        except KeyboardInterrupt:
            if not self.runs:
                raise
            interrupted = True
        best = best_run(self.runs)
        agreed = sum(as_high(run, best) for run in self.runs)
        return Found(best.way, agreed, self.tried, sum(run.spoilt for run in self.runs), best.spoilt, interrupted)

    def _whole(self, params: StarParams, number: int, rng: np.random.Generator) -> None:
        ground, stop = self.table, self.plan.stop
        watch = self.plan.watching(number + 1, self.of)
        way = climb(ground.star, ground.imagined, ground.ready, params, ground.threads, stop, watch, rng)
        self.runs.append(Run(way, ground, number, stop.max_iter, spoilt=self.judge(way.params, way.counts)))
        if way.interrupted:
            raise KeyboardInterrupt

    def _race(self, starts: Sequence[Sequence[Make]]) -> None:
        for number, tries in enumerate(starts):
            self.tried += 1
            self._enter(self._short(tries, number))
        if self.ground.exact:
            self._go_on(LONGER)
        else:
            self._go_on(2 * SHORT)
            self._finals()
        self._go_on(self.plan.stop.max_iter)

    def _short(self, tries: Sequence[Make], number: int) -> Run:
        """The first maps of a start: of several tries, only the best makes more than a few."""
        if len(tries) == 1:
            return self._climbed(tries[0](), number, SHORT)
        run = best_run([self._climbed(make(), number, FEW) for make in tries])
        return run if run.way.converged else self._climbed(run.way.params, number, SHORT - run.maps, run)

    def _climbed(self, params: StarParams, number: int, maps: int, before: Run | None = None) -> Run:
        """A run of so many maps from these parameters, joined to the one before on the same ground."""
        ground, done = self.ground, 0 if before is None else before.maps
        most = min(done + maps, self.plan.stop.max_iter)
        stop = replace(self.plan.stop, max_iter=most - done, finish=None)
        watch = self.plan.watching(number + 1, self.of)
        way = climb(ground.star, ground.imagined, ground.ready, params, ground.threads, stop, watch)
        if before is not None:
            way = replace(way, trace=before.way.trace + way.trace[1:])
        run = Run(way, ground, number, most, spoilt=self.judge(way.params, way.counts))
        if way.interrupted:
            self.runs.append(run)
            raise KeyboardInterrupt
        return run

    def _enter(self, run: Run) -> None:
        """Take a run among the others, or as further starts of one that has come to the same place."""
        if run.spoilt and not run.mended:
            run = self._mended(run)
        for place, other in enumerate(self.runs):
            if other.spoilt == run.spoilt and same_place(other.way, run.way):
                self.runs[place] = replace(best_run([run, other]), starts=run.starts + other.starts)
                return
        self.runs.append(run)

    def _mended(self, run: Run) -> Run:
        other = self._climbed(self.mend(run.way), run.number, LONGER)
        return replace(run if other.spoilt else other, starts=run.starts, mended=True)

    def _go_on(self, limit: int) -> None:
        """Climb on until every run worth it has made `limit` maps, the best first."""
        limit = min(limit, self.plan.stop.max_iter)
        while (run := self._next(limit)) is not None:
            further = self._climbed(run.way.params, run.number, limit - run.maps, run)
            self.runs.remove(run)
            self._enter(replace(further, starts=run.starts, mended=run.mended))

    def _next(self, limit: int) -> Run | None:
        sound = [run for run in self.runs if not run.spoilt] or self.runs
        best = max(run.way.objective for run in sound)
        small = self.ground.small
        ready = [
            run
            for run in sound
            if run.maps < limit and not run.way.converged and not run.way.fell and (small or run.hope >= best)
        ]
        return max(ready, key=lambda run: run.rank, default=None)

    def _finals(self) -> None:
        """Go over from a sample to the whole table with the best few."""
        sampled = sorted(self.runs, key=lambda run: run.rank, reverse=True)
        self.runs, self.spare, self.ground = [], sampled[0], self.table
        for run in sampled[:FINALISTS]:
            final = self._climbed(run.way.params, run.number, SHORT)
            self._enter(replace(final, starts=run.starts, mended=run.mended))
            self._go_on(self.plan.stop.max_iter)

    def _ended(self, best: Run, interrupted: bool) -> Climb:
        """The best climb's end on the whole table, and its last digits where they were asked for."""
        stop, table, way = self.plan.stop, self.table, best.way
        if best.ground is table and (stop.finish is None or interrupted):
            return way
        last = replace(stop, max_iter=0 if interrupted else stop.max_iter - best.maps)
        watch = self.plan.watching(best.number + 1, self.of)
        end = climb(table.star, table.imagined, table.ready, way.params, table.threads, last, watch)
        if not best.ground.exact:
            return end
        return replace(end, trace=way.trace + end.trace[1:], converged=end.converged or way.converged)


def best_run(runs: Sequence[Run]) -> Run:
    """The highest run; of those that differ by no more than rounding the first, so that no order of rows matters."""
    top = max(runs, key=lambda run: run.rank)
    least = top.way.objective - 1e-10 * top.way.size
    equal = [run for run in runs if run.spoilt == top.spoilt and run.way.objective >= least]
    return min(equal, key=lambda run: run.number)


def same_place(one: Climb, other: Climb) -> bool:
    """Whether two climbs have the same parameters, up to the order of the groups."""
    if abs(one.objective - other.objective) > max(0.05, 1e-4 * one.counts.rows):
        return False
    first, second = _by_group(one.params), _by_group(other.params)
    free = list(range(len(second)))
    for group in first:
        far = [np.max(np.abs(second[g] - group) / (1.0 + np.abs(group))) for g in free]
        nearest = int(np.argmin(far))
        if not far[nearest] < ALIKE:
            return False
        del free[nearest]
    return True


def _by_group(params: StarParams) -> np.ndarray:
    """(groups x numbers) all parameters of each group, in counting units."""
    groups = len(params.shares)
    parts = [array.reshape(groups, -1) for leaf in params.leaves.values() for array in leaf.values()]
    return np.concatenate([params.shares[:, None], *parts], axis=1)


def as_high(run: Run, best: Run) -> bool:
    """Whether a run has reached what the best has."""
    if run.ground is not best.ground or run.spoilt != best.spoilt:
        return False
    return best.way.objective - run.way.objective <= 1e-3 + 1e-7 * best.way.size
