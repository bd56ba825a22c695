"""A pool of threads over chunks, results in the order of the chunks."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import chain, islice
from types import TracebackType
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Threads:
    """Runs work over tasks on `n_jobs` threads (None: all cores, but one inside another library's workers).

    >>> with Threads(2) as threads:
    ...     list(threads.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = workers(n_jobs)
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def map(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results in the order of the tasks, a few tasks ahead at most so that memory stays bounded."""
        tasks = iter(tasks)
        head = list(islice(tasks, 2))
        with one_blas_thread():
            yield from self._several(work, chain(head, tasks), len(head) < 2)

    def _several(self, work: Callable[[Task], Result], tasks: Iterator[Task], alone: bool) -> Iterator[Result]:
        if alone or self.n_jobs == 1:
            yield from map(work, tasks)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_jobs, thread_name_prefix="softcount")
        yield from self._ahead(self._pool, work, tasks)

    def _ahead(
        self, pool: ThreadPoolExecutor, work: Callable[[Task], Result], tasks: Iterator[Task]
    ) -> Iterator[Result]:
        waiting: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(work, task))
                if len(waiting) > 2 * self.n_jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> Any:
    """A block within which matrix products take one thread: ours are busy, and the bits must not depend on theirs."""
    return _libraries().limit(limits=1, user_api="blas")


def workers(n_jobs: int | None) -> int:
    """How many threads to use."""
    if n_jobs is not None:
        return max(1, int(n_jobs) if n_jobs > 0 else (os.cpu_count() or 1) + 1 + int(n_jobs))
    nested = multiprocessing.parent_process() is not None or threading.current_thread() is not threading.main_thread()
    if nested or os.environ.get("JOBLIB_SPAWNED_PROCESS"):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def total(threads: Threads, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Result | None:
    """The sum of the results in the order of the tasks; None for no tasks."""
    result: Result | None = None
    for part in threads.map(work, tasks):
        result = part if result is None else result + part  # type: ignore[operator]
    return result
