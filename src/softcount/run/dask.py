"""Dask: futures only, one task for each worker and pass; parts are read by the workers and stay there."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from softcount.errors import DataError, import_extra
from softcount.run.workers import PartJob, RowPart, WorkersEngine, do_parts, forget_table
from softcount.sources.frames import frame_source
from softcount.sources.open_source import PartsSource, SourcePart
from softcount.sources.source import Source

TRIES = 3
"""Repetitions of a pass after workers were lost."""


class DaskEngine(WorkersEngine):
    """Runs steps on the workers of a Dask `distributed` client."""

    name = "Dask"

    def __init__(self, client: Any) -> None:
        super().__init__()
        self.client = client
        self._homes: dict[int, str] = {}

    def run(self, job: PartJob, parts: Sequence[RowPart]) -> list[Any]:
        from distributed import CancelledError, KilledWorker

        work = pickle.dumps(job)
        for left in range(TRIES, -1, -1):
            try:
                return self._run_once(work, parts)
            except (KilledWorker, CancelledError, OSError) as error:
                if not left:
                    raise DataError(f"Dask lost its workers {TRIES + 1} times in one pass ({error}).") from None
                self.client.wait_for_workers(1, timeout="60s")
        raise AssertionError

    def _run_once(self, job: bytes, parts: Sequence[RowPart]) -> list[Any]:
        shares = self._shares(len(parts))
        futures = [
            self.client.submit(
                run_share, job, pickle.dumps([(number, parts[number]) for number in own]), workers=[home],
                allow_other_workers=True, pure=False, retries=TRIES,
            )
            for home, own in shares.items()
        ]  # fmt: skip
        found: dict[int, Any] = {}
        for answer in self.client.gather(futures):
            found.update(pickle.loads(answer))
        return [found[number] for number in range(len(parts))]

    def _shares(self, parts: int) -> dict[str, list[int]]:
        """The parts of every worker: they stay from pass to pass, and those of a lost worker go to others."""
        workers = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            self.client.wait_for_workers(1, timeout="60s")
            workers = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
        shares: dict[str, list[int]] = {worker: [] for worker in workers}
        for number in range(parts):
            home = self._homes.get(number)
            if home not in shares:
                home = min(workers, key=lambda worker: (len(shares[worker]), worker))
                self._homes[number] = home
            shares[home].append(number)
        return {worker: own for worker, own in shares.items() if own}

    def forget(self, table: str) -> None:
        self.client.run(forget_table, table)


def run_share(job: bytes, parts: bytes) -> bytes:
    """A job over a worker's share of the parts, as bytes."""
    return pickle.dumps(do_parts(job, pickle.loads(parts)))


# -- collections


class Partition(Struct, frozen=True):
    """A partition of a collection, computed from its own graph."""

    graph: bytes

    def __call__(self) -> Source | None:
        from dask.local import get_sync

        graph, key = pickle.loads(self.graph)
        frame = get_sync(graph, key)
        return frame_source(frame) if len(frame) else None


def collection_source(data: Any) -> PartsSource:
    """A Dask DataFrame as a table."""
    import cloudpickle
    from dask.optimization import cull

    if not hasattr(data, "columns"):
        raise DataError(
            "of the Dask collections, only DataFrames are supported. Convert an array: dask.dataframe.from_dask_array"
        )
    from distributed import futures_of

    if futures_of(data):  # type: ignore[no-untyped-call]
        raise DataError(
            "the frame was persisted, so that partitions are lost with their worker. Give it as before persist()."
        )
    data = data.optimize()
    graph, keys = dict(data.__dask_graph__()), data.__dask_keys__()
    parts = []
    for number, key in enumerate(keys):
        own, _ = cull(graph, [key])  # type: ignore[no-untyped-call]
        parts.append(SourcePart(f"partition {number}", Partition(cloudpickle.dumps((dict(own), key)))))
    return PartsSource(parts)


@contextmanager
def connected(address: str | None, workers: int | None) -> Iterator[DaskEngine]:
    """The engine at a scheduler's address, or of a local cluster that ends with it."""
    library = _distributed()
    if address is None:
        quiet = {"dashboard_address": None, "silence_logs": logging.ERROR}  # a worker slow to end is none of a user's
        how = {"n_workers": workers, "threads_per_worker": 1, **quiet}
        with library.LocalCluster(**how) as cluster, library.Client(cluster) as client, DaskEngine(client) as engine:
            yield engine
        return
    try:
        client = library.Client(address, timeout="20s")
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"Dask's scheduler at {address} cannot be reached ({reason}). Check the address.") from None
    with client, DaskEngine(client) as engine:
        yield engine


def _distributed() -> Any:
    return import_extra("distributed", 'Dask is not installed. pip install "softcount[dask]"')


def client_of(engine: Any) -> Any:
    """The given client, or the current one."""
    library = _distributed()
    if isinstance(engine, library.Client):
        return engine
    try:
        return library.get_client()
    except ValueError:
        raise DataError("a Dask DataFrame needs a client: from distributed import Client; Client()") from None
