"""A pool of processes over chunks, results in the order of the chunks. Work and results are pickled."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import Executor, ProcessPoolExecutor

from softcount.run.local import Threads, limit_blas

SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Environment variables that BLAS libraries read when they are loaded."""


class Processes(Threads):
    """Runs work over tasks in `n_jobs` processes (None: all cores); what is run must pickle.

    Levels met in another process are not known here: read a table with `table.chunks(processes.map)`.
    """

    shares_memory = False

    def _new_pool(self) -> Executor:
        # Spawned, not forked: a fork copies the locks that other threads hold at the time, Arrow's among them.
        return ProcessPoolExecutor(self.n_jobs, multiprocessing.get_context("spawn"), _use_one_blas_thread)


def _use_one_blas_thread() -> None:
    os.environ.update(dict.fromkeys(SETTINGS, "1"))  # for what is loaded later
    limit_blas()  # takes effect at once, and stays
