"""Threads: results in the order of the tasks, the same bits for any number of threads, one BLAS thread each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from softcount.run.local import Runner, Threads, total

RUNNERS: dict[str, Callable[[], Threads]] = {"a thread": lambda: Threads(1), "threads": lambda: Threads(3)}


@pytest.fixture
def many_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """BLAS with threads of its own."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(2, "blas"):
        yield


def late_first(number: int) -> int:
    """The first tasks take longest."""
    time.sleep(0.05 if number < 2 else 0.0)
    return number * number


def products(seed: int) -> np.ndarray:
    """Sums whose last bits depend on their order."""
    block = np.random.default_rng(seed).normal(size=(300, 40)) * 1e3
    return block.T @ block


def refuse(number: int) -> int:
    if number == 3:
        raise ValueError("task 3 does not work")
    return number


@pytest.mark.parametrize("name", RUNNERS)
def test_results_come_in_the_order_of_the_tasks(name: str) -> None:
    with RUNNERS[name]() as runner:
        assert list(runner.map(late_first, range(20))) == [number * number for number in range(20)]
        assert list(runner.map(late_first, [])) == []
        assert list(runner.map(late_first, [5])) == [25]


@pytest.mark.usefixtures("many_threads")
def test_every_runner_gives_the_same_bits() -> None:
    found: dict[str, Any] = {}
    for name, make in RUNNERS.items():
        with make() as runner:
            asked: Runner = runner
            found[name] = total(asked, products, range(9))
    for sums in found.values():
        np.testing.assert_array_equal(sums, found["a thread"])


@pytest.mark.parametrize("name", RUNNERS)
def test_an_error_comes_out_as_it_was_raised(name: str) -> None:
    with RUNNERS[name]() as runner, pytest.raises(ValueError, match="task 3 does not work"):
        list(runner.map(refuse, range(10)))
