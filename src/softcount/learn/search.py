"""Many short runs, the best continued: which of several starts leads highest.

Every start is climbed a little. Runs that have come to the same place are one from then on; a run that has met a spike
is mended once; the others go on, all of them where that is cheap, the promising ones where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.counts import Counts
from softcount.learn.em import EMRun, run_em
from softcount.learn.settings import Plan
from softcount.models.base import Problem
from softcount.models.nodes import Params
from softcount.run.progress import best_so_far

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
Mend = Callable[[EMRun], Params]
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

    @property
    def hope(self) -> float:
        """The objective that the run may still reach: ten times the gain of its last ten entries."""
        trace = self.reached.trace
        return trace[-1] + 10.0 * (trace[-1] - trace[max(0, len(trace) - 11)])


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

    `judge` says whether a run is degenerate; `mend` makes new parameters from one that is. Short runs use `ground`: the
    whole `table`, or a sample of its rows.
    """

    table: Problem
    ground: Problem
    plan: Plan
    judge: Judge = lambda params, counts: False
    repair: Mend | None = None
    runs: list[StartRun] = field(default_factory=list)
    spare: StartRun | None = None
    of: int = 0
    tried: int = 0

    def best_of(self, starts: Sequence[Sequence[Make]]) -> SearchResult:
        """The best of these initialisations; each is the best of its own tries after a short run."""
        self.of = len(starts)
        interrupted = False
        try:
            for number, tries in enumerate(starts):
                self.tried += 1
                self._enter(self._short(tries, number))
            if self.ground.exact:
                self._go_on(LONGER)
            else:
                self._go_on(2 * SHORT)
                self._finals()
            self._go_on(self.plan.stop.max_iter)
        except KeyboardInterrupt:
            best_so_far()
            self.runs = self.runs or [run for run in [self.spare] if run is not None]
            if not self.runs:
                raise
            interrupted = True
        return self._result(interrupted)

    @property
    def spiked(self) -> int:
        """How many initialisations led to degenerate runs only."""
        return self.tried - len(owners_of(run for run in self.runs if not run.degenerate))

    def _result(self, interrupted: bool) -> SearchResult:
        best = best_run(self.runs)
        # A run that was interrupted stands beside what it was before.
        agreed = len(owners_of(run for run in self.runs if as_high(run, best)))
        reached = self._ended(best, interrupted)
        return SearchResult(
            reached, agreed, self.tried, self.spiked, best.degenerate, interrupted or reached.interrupted
        )

    def each_of(self, starts: Sequence[Sequence[Make]], rngs: Sequence[np.random.Generator]) -> SearchResult:
        """The best of these initialisations, every one run to its end."""
        self.of = len(starts)
        interrupted = False
        try:
            for number, (tries, rng) in enumerate(zip(starts, rngs, strict=True)):
                self.tried += 1
                self._whole(tries[0](), number, rng)
        except KeyboardInterrupt:
            best_so_far()
            if not self.runs:
                raise
            interrupted = True
        best = best_run(self.runs)
        agreed, spiked = sum(as_high(run, best) for run in self.runs), sum(run.degenerate for run in self.runs)
        return SearchResult(best.reached, agreed, self.tried, spiked, best.degenerate, interrupted)

    def _whole(self, params: Params, number: int, rng: np.random.Generator) -> None:
        stop = self.plan.stop
        reached = run_em(self.table, params, stop, self.plan.watching(number + 1, self.of), rng)
        self.runs.append(
            StartRun(reached, self.table, number, stop.max_iter, degenerate=self.judge(reached.params, reached.counts))
        )
        if reached.interrupted:
            raise KeyboardInterrupt

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
            near = abs(one.objective - two.objective) <= as_near(one.counts.rows)
            if other.degenerate == run.degenerate and near and alike(by_group(one.params), by_group(two.params)):
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
        small = self.ground.work <= SMALL
        ready = [
            run
            for run in sound
            if run.maps < limit and not run.reached.converged and not run.reached.fell and (small or run.hope >= best)
        ]
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
        """The end of the best run on the whole table, finished by L-BFGS if asked for."""
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


def owners_of(runs: Iterable[StartRun]) -> set[int]:
    return {owner for run in runs for owner in run.owners}


def best_run(runs: Sequence[StartRun]) -> StartRun:
    """The best run; of those equal up to rounding the first, so that the order of rows does not matter."""
    top = max(runs, key=lambda run: run.rank)
    least = top.reached.objective - 1e-10 * top.reached.size
    equal = [run for run in runs if run.degenerate == top.degenerate and run.reached.objective >= least]
    return min(equal, key=lambda run: run.number)


def as_near(rows: float) -> float:
    """How much the objectives may differ if parameters are nearly the same."""
    return max(0.05, 1e-4 * rows)


def alike(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two lists of groups have the same parameters in some order."""
    free = list(range(len(second)))
    for group in first:
        far = np.max(np.abs(second[free] - group) / (1.0 + np.abs(group)), axis=1)
        nearest = int(np.argmin(far))
        if not far[nearest] < ALIKE:
            return False
        del free[nearest]
    return True


def as_high(run: StartRun, best: StartRun) -> bool:
    """Whether a run has reached the objective of the best."""
    if run.problem is not best.problem or run.degenerate != best.degenerate:
        return False
    return best.reached.objective - run.reached.objective <= 1e-3 + 1e-7 * best.reached.size
