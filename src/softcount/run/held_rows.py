"""Rows that this process has: in memory, or mapped from a file where they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any, Protocol, overload

from softcount.run.rows import Rows, Step
from softcount.run.spill import Spill

LONGEST_RUN = 8


class KeepsRows(Protocol):
    """What rows ask of who runs steps over them."""

    n_jobs: int
    spill: Spill

    def map(self, work: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the tasks."""
        ...


class HeldRows(Rows, Sequence[Any]):
    """Parts that this process has, in memory or in a mapped file."""

    def __init__(self, parts: Iterable[Any], runner: KeepsRows) -> None:
        keep = runner.spill.kept
        self._parts, self.runner = [keep(part) for part in parts], runner

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        return self._parts[place]

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self._parts)

    @property
    def here(self) -> Sequence[Any]:
        return self._parts

    def each(self, step: Step) -> Iterator[Any]:
        # On plain NumPy two threads wait for the interpreter: 20,000 rows took 223 ms in place of 144.
        runs = runs_of(self._parts, self.runner.n_jobs) if step.threads else [self._parts]
        return chain.from_iterable(self.runner.map(partial(_each, step.begin()), runs))

    def made(self, step: Step) -> HeldRows:
        return HeldRows(self.runner.map(step.begin(), self._parts), self.runner)

    def arranged(self, step: Step) -> HeldRows:
        return HeldRows(step.begin()(self._parts), self.runner)

    def close(self) -> None:
        self._parts = []


def _each(work: Callable[[Any], Any], run: Sequence[Any]) -> list[Any]:
    return [work(part) for part in run]


def rows_here(parts: Rows | Sequence[Any], runner: KeepsRows) -> Rows:
    """Parts as rows: what are rows already as they are."""
    return parts if isinstance(parts, Rows) else HeldRows(parts, runner)


def runs_of(ready: Sequence[Any], n_jobs: int) -> list[Sequence[Any]]:
    """Neighbouring parts to be done in one go: two runs for every thread, but at most eight parts at a time.

    Waking a thread for each small part took as long as the part: two threads were no faster than one. Counts are
    still added part by part, so that the bits do not depend on the number of threads.
    """
    runs = max(2 * n_jobs, -(-len(ready) // LONGEST_RUN))
    edges = [len(ready) * i // runs for i in range(runs + 1)]
    return [ready[a:b] for a, b in pairwise(edges) if a < b]
