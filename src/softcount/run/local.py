"""The interface of engines, and threads on one machine."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from softcount.run.rows import HeldRows, Rows, Spill

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from softcount.table import Settled, Table

Task = TypeVar("Task")
Result = TypeVar("Result")


class Runner:
    """Runs work over tasks in the calling thread. Subclasses run `n_jobs` tasks at a time, or on other machines."""

    n_jobs = 1
    keeps_rows = True
    """Whether rows are kept in this process rather than on workers, so that work can change a table."""

    def __init__(self, spill: str | None = None) -> None:
        self.spill = Spill(spill)  # where rows are kept between passes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.spill.close()

    def map(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results in the order of the tasks, a few tasks ahead at most so that memory stays bounded."""
        return map(work, tasks)

    def encoded(self, table: Table) -> Rows:
        chunks = table.chunks(self.map)
        return HeldRows(map(self.spill.kept_elsewhere, chunks) if table.holds_rows else chunks, self)

    def settled(self, table: Table, rows: Rows, settled: Settled) -> Rows:
        return HeldRows(table.in_order(rows.here, settled), self)


def total(runner: Runner, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Result | None:
    """The sum of the results in the order of the tasks; None for no tasks."""
    result: Result | None = None
    for part in runner.map(work, tasks):
        result = part if result is None else result + part  # type: ignore[operator]
    return result


class Threads(Runner):
    """Runs work over tasks on `n_jobs` threads (None: all cores, but one inside another library's workers).

    The threads start when they are first needed.

    >>> with Threads(2) as threads:
    ...     list(threads.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def __init__(self, n_jobs: int | None = None, spill: str | None = None) -> None:
        super().__init__(spill)
        self.n_jobs = workers(n_jobs)
        self._pool: Executor | None = None

    def _new_pool(self) -> Executor:
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(self.n_jobs, thread_name_prefix="softcount")

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        super().__exit__(kind, error, trace)

    def map(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        tasks = iter(tasks)
        head = list(islice(tasks, 2))
        with one_blas_thread():
            if len(head) < 2 or self.n_jobs == 1:
                yield from map(work, chain(head, tasks))
                return
            self._pool = self._pool or self._new_pool()
            waiting: deque[Future[Result]] = deque()
            try:
                for task in chain(head, tasks):
                    waiting.append(self._pool.submit(work, task))
                    if len(waiting) > 2 * self.n_jobs:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


def _libraries() -> Any:
    """The BLAS libraries that are loaded; SciPy brings its own, which is loaded late or never."""
    return _controller("scipy.linalg" in sys.modules)


@cache
def _controller(with_scipy: bool) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def limit_blas() -> Any:
    """Limit BLAS to one thread, for good or until the end of a `with` block of the result."""
    return _libraries().limit(limits=1, user_api="blas")


_here = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A block in which BLAS uses one thread: our threads are busy, and the bits must not depend on its threads.

    A nested block costs nothing; limiting takes 80 microseconds, as long as a small pass.
    """
    if getattr(_here, "limited", False):
        yield
        return
    with limit_blas():
        _here.limited = True
        try:
            yield
        finally:
            _here.limited = False


def workers(n_jobs: int | None) -> int:
    if n_jobs is not None:
        return max(1, int(n_jobs) if n_jobs > 0 else (os.cpu_count() or 1) + 1 + int(n_jobs))
    processes = sys.modules.get("multiprocessing")
    nested = (
        processes is not None and processes.parent_process() is not None
    ) or threading.current_thread() is not threading.main_thread()
    if nested or os.environ.get("JOBLIB_SPAWNED_PROCESS"):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
