"""What runs the passes of a fit, where rows are kept between passes, and what is written down of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from softcount.errors import DataError
from softcount.learn.settings import Plan
from softcount.run.local import Threads
from softcount.run.workers import WorkersEngine
from softcount.sources.joined_files import PartsSource
from softcount.sources.source import Source
from softcount.table import Table, open_table


def runner_of(estimator: Any, table: Table) -> Threads | WorkersEngine:
    """What runs the passes of a fit: an engine where one was given or has the rows, else threads of this process."""
    engine = getattr(estimator, "engine", None)
    if engine is None and not isinstance(table.source, PartsSource):
        return Threads(estimator.n_jobs, path_of(getattr(estimator, "spill", None)))
    return engine_of(engine, table.source)


def engine_of(engine: Any, source: Source) -> WorkersEngine:
    """The engine that a client or session is of; where nothing was given, the one that has the rows."""
    owner = source.owner if isinstance(source, PartsSource) else None
    engine = owner if engine is None else engine
    library = library_of(engine)
    if owner is not None and library != library_of(owner):
        raise DataError(
            f"the frame is one of {library_of(owner)}'s, which engine={engine!r} cannot read. Leave engine out."
        )
    if library == "pyspark":
        from softcount.run.spark import SparkEngine

        return SparkEngine(engine)
    if engine is None or library in ("distributed", "dask"):
        from softcount.run.dask import DaskEngine, client_of

        return DaskEngine(client_of(engine))
    raise DataError(f"engine must be None, a client of Dask's (distributed.Client) or a Spark session, not {engine!r}.")


def library_of(thing: Any) -> str:
    """The name of the package that a thing's class is of."""
    return type(thing).__module__.split(".")[0]


def from_engine(X: Any, missing: tuple[str, ...]) -> Any:
    """A frame that an engine has, as a table; anything else as it came."""
    library = library_of(X)
    if library == "pyspark":
        from softcount.run.spark import spark_source

        return open_table(spark_source(X), missing=missing)
    if library not in ("dask", "dask_expr"):
        return X
    from softcount.run.dask import collection_source

    return open_table(collection_source(X), missing=missing)


def is_elsewhere(X: Any) -> bool:
    """Whether rows are a table that an engine has."""
    return isinstance(X, Table) and isinstance(X.source, PartsSource)


@contextmanager
def climbs_logged(estimator: Any, plan: Plan, keep: bool = False) -> Iterator[tuple[Plan, Callable[[bool], None]]]:
    """The plan with a checkpoint where one was asked for, and what to call at the end: with whether all is done.

    The file is taken away then, unless it is to be kept until the model is saved.
    """
    path = path_of(estimator.checkpoint)
    if path is None:
        yield plan, lambda done: None
        return
    from softcount.files.checkpoint_file import checkpointed, remove_checkpoint

    with checkpointed(path) as log:
        yield replace(plan, log=log), lambda done: remove_checkpoint(path) if done and not keep else None


def path_of(path: Any) -> str | None:
    """The path of a file or folder as text, or None."""
    return None if path is None else os.fsdecode(path)
