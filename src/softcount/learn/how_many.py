"""Search for the best number of groups: classes, hidden states, or categories of a hidden node of a network."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from softcount.errors import DataWarning, warn
from softcount.learn.mixture import Starts
from softcount.learn.prepare import Prepared
from softcount.learn.record import Learned, Plan, Trial
from softcount.run.local import Runner
from softcount.run.progress import raise_if_ending

MOST_GROUPS = 32
PATIENCE = 2
"""Number of larger candidates without an improvement before the search ends."""
FINE = 8
"""Above twice this number of groups, the initialisations do not suffice to distinguish neighbouring numbers."""
SMALL_TOL = 1e-6
"""Tolerance of the fits that are compared."""
LEAST_ROWS = 1.5
"""A group of fewer rows does not count: without this, 2 of 11 tables of distant clusters got too many classes."""


class NumberSearch(Struct, kw_only=True):
    """The numbers of groups tried so far, with their fits and criteria."""

    criterion: str = "evidence"
    trials: dict[int, Trial] = field(default_factory=dict)
    fits: dict[int, Learned] = field(default_factory=dict)
    interrupted: bool = False
    to_try: Iterator[int] | None = None
    exhausted: bool = False

    def candidates(self) -> Iterable[int]:
        """Return the numbers to try, ascending."""
        raise NotImplementedError

    def attempt(self, number: int) -> None:
        """Fit this number of groups, and record the fit and its criteria."""
        raise NotImplementedError

    @property
    def best(self) -> int:
        """The best number so far; the smallest if several are equal."""
        return max(sorted(self.trials), key=lambda number: self.trials[number].merit(self.criterion))

    @property
    def merit(self) -> float:
        return self.trials[self.best].merit(self.criterion)

    def run(self, pause: int | None = None, enough: Callable[[], bool] = lambda: False) -> None:
        """Try numbers until none is left, more than `pause` groups are the best so far, or `enough()` is True.

        A further call continues from there.
        """
        self.to_try = self.to_try or self._numbers()
        for number in self.to_try:
            try:
                with warnings.catch_warnings():
                    # Trials give no warnings; the fit of the chosen number gives all of them.
                    warnings.simplefilter("ignore", DataWarning)
                    self.attempt(number)
            except KeyboardInterrupt:
                raise_if_ending()
                if not self.trials:
                    raise
                self.interrupted = True
            self.interrupted |= number in self.fits and self.fits[number].interrupted
            if self.interrupted or (pause is not None and self.best > pause) or enough():
                return
        self.exhausted = True

    def _numbers(self) -> Iterator[int]:
        """Yield candidates until `PATIENCE` larger ones bring no gain, then numbers in the gaps next to the best."""
        for number in self.candidates():
            yield number
            if sum(tried > self.best for tried in self.trials) >= PATIENCE:
                break
        while (gap := find_gap(self.best, sorted(self.trials))) is not None:
            yield gap


class EMSearch(NumberSearch):
    """A search among mixtures or hidden states: short EM runs, of which the best number continues to convergence."""

    prepared: Prepared
    plan: Plan
    starts: Starts
    runner: Runner

    def candidates(self) -> Iterator[int]:
        least = max(1, len(self.prepared.named or ()))
        return grow(least, max(least, min(MOST_GROUPS, self.prepared.most_groups)))

    def converge(self, fitted: Learned, plan: Plan) -> Learned:
        """Continue a fit to convergence."""
        raise NotImplementedError

    def measure(self, fitted: Learned, number: int, cv: float | None = None) -> Trial:
        """Return the criteria of a fit; `cv` is the cross-validated one."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """Return remarks on the choice."""
        raise NotImplementedError

    def few(self, groups: int, most: int) -> Starts:
        return replace(self.starts, groups=groups, n_init=min(self.starts.n_init, most))

    def trial_plan(self, tol: float, most: int) -> Plan:
        """Return the plan of trials: the user's plan, but with tolerance `tol` and at most `most` steps."""
        stop = self.plan.stop
        stop = replace(stop, tol=max(stop.tol, tol) if stop.tol else 0.0, max_iter=min(stop.max_iter, most))
        estimate = "mean" if self.plan.estimate == "predictive" else self.plan.estimate
        return replace(self.plan, estimate=estimate, stop=stop)

    def chosen(self) -> Learned:
        """Fit the best number to convergence. The result includes the table of all trials.

        The criteria are then computed again. If another number is better, it is fitted to convergence as well.
        """
        stop = replace(self.plan.stop, max_iter=0, finish=None) if self.interrupted else self.plan.stop
        ends: dict[int, Learned] = {}
        while (best := self.best) not in ends:
            ends[best] = self.converge(self.fits[best], replace(self.plan, stop=stop))
            if self.plan.estimate != "predictive":  # predictive parameters are not the scored ones
                self.trials[best] = self.measure(ends[best], best, self.trials[best].cv)
        fitted, notes = ends[best], self.notes()
        for note in notes if self.interrupted else ():
            warn(note)
        return replace(
            fitted, selection=[self.trials[number] for number in sorted(self.trials)],
            interrupted=self.interrupted or fitted.interrupted, notes=[*fitted.notes, *notes],
        )  # fmt: skip


def grow(least: int, most: int) -> Iterator[int]:
    """Yield `least` and then larger numbers up to `most`: 1, 2, 3, 4, 6, 8, 12, ..."""
    size, step = least, 1
    while size < most:
        yield size
        step = max(1, 2 ** (size.bit_length() - 2)) if size >= 2 else 1
        size += step
    yield most


def find_gap(best: int, tried: list[int]) -> int | None:
    """Return the middle of the wider gap between the best number and its tried neighbours; None if both are narrow."""
    place = tried.index(best)
    sides = [tuple(sorted((best, tried[at]))) for at in (place - 1, place + 1) if 0 <= at < len(tried)]
    low, high = max(sides, key=lambda side: side[1] - side[0], default=(best, best))
    return (low + high) // 2 if high - low > max(1, best // FINE) else None
