"""A pool of threads over chunks, results in the order of the chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcount.run.base import PoolRunner
from softcount.run.base import one_blas_thread as one_blas_thread
from softcount.run.base import total as total

if TYPE_CHECKING:
    from concurrent.futures import Executor


class Threads(PoolRunner):
    """Runs work over tasks on `n_jobs` threads (None: all cores, but one inside another library's workers).

    >>> with Threads(2) as threads:
    ...     list(threads.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def _new_pool(self) -> Executor:
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(self.n_jobs, thread_name_prefix="softcount")
