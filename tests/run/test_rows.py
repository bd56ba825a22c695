"""Rows: steps folded in the order of the parts, whoever runs them and wherever the parts are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from softcount.run.local import HeldRows, Runner, Threads, runs_of


@dataclass(frozen=True, slots=True)
class Some:
    """A part of a table."""

    start: int
    values: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.values)


def parts(count: int = 37, rows: int = 900) -> Iterator[Some]:
    rng = np.random.default_rng(0)
    for number in range(count):
        yield Some(number * rows, rng.normal(size=rows) * 10.0 ** rng.integers(-8, 8))


class PowerSum:
    """A step that begins: what it sums is made once per pass."""

    def __init__(self, power: int, threads: bool = True) -> None:
        self.power, self.threads, self.begun = power, threads, 0

    def begin(self) -> Callable[[Some], float]:
        self.begun += 1
        return lambda part: float((part.values**self.power).sum())


def double(part: Some) -> Some:
    return Some(part.start, 2 * part.values)


def halves_of(some: list[Some]) -> Iterator[Some]:
    for part in some:
        yield Some(part.start, part.values[:450])
        yield Some(part.start + 450, part.values[450:])


@pytest.mark.parametrize("runner", [Runner(), Threads(1), Threads(3)], ids=["at once", "one thread", "three threads"])
def test_a_total_is_folded_in_the_order_of_the_parts(runner: Runner) -> None:
    rows = HeldRows(parts(), runner)
    plain = 0.0
    for number, part in enumerate(parts()):
        own = float((part.values**2).sum())
        plain = own if number == 0 else plain + own
    step = PowerSum(2)
    assert rows.total(step) == plain
    assert step.begun == 1
    assert list(rows.each(PowerSum(2, threads=False))) == list(rows.each(PowerSum(2)))


def test_rows_that_were_made_or_arranged_are_the_same_rows() -> None:
    with Threads(2) as threads:
        rows = HeldRows(parts(), threads)
        twice, halves = rows.made(double), rows.arranged(halves_of)
        assert rows.n_rows == twice.n_rows == halves.n_rows == 37 * 900
        assert len(halves.here) == 2 * len(rows.here)
        for one, other in zip(rows.here, twice.here, strict=True):
            assert np.array_equal(2 * one.values, other.values)
        joined = np.concatenate([part.values for part in halves.here])
        assert np.array_equal(joined, np.concatenate([part.values for part in rows.here]))


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 100])
@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_runs_are_neighbours_and_leave_nothing_out(count: int, jobs: int) -> None:
    runs = runs_of(range(count), jobs)
    assert [part for run in runs for part in run] == list(range(count))
    assert max(map(len, runs)) <= 8
