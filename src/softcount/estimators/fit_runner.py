"""What runs the passes of a fit, where rows are kept between passes, and what is written down of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from softcount.errors import DataError
from softcount.learn.plan import Plan
from softcount.run.threads import Threads


def runner_of(estimator: Any) -> Threads:
    """What runs the passes of a fit: threads, and a folder for rows where one was named."""
    return Threads(estimator.n_jobs, folder_of(getattr(estimator, "spill", None)))


@contextmanager
def climbs_logged(estimator: Any, plan: Plan) -> Iterator[tuple[Plan, Callable[[bool], None]]]:
    """The plan with a checkpoint where one was asked for, and what to call at the end: with whether all is done."""
    path = estimator.checkpoint
    if path is None:
        yield plan, lambda done: None
        return
    if not isinstance(path, (str, os.PathLike)):
        raise DataError(f"checkpoint must be None or the path of a file, not {path!r}.")
    from softcount.files.checkpoint_file import checkpointed, remove_checkpoint

    name = os.fsdecode(path)
    with checkpointed(name) as log:
        yield replace(plan, log=log), lambda done: remove_checkpoint(name) if done else None


def folder_of(spill: Any) -> str | None:
    """The folder that rows are kept in, or None."""
    if spill is None or isinstance(spill, (str, os.PathLike)):
        return None if spill is None else os.fsdecode(spill)
    raise DataError(f"spill must be None or the path of a folder, not {spill!r}.")
