"""What runs the passes of a fit: threads of this process, and where rows are kept between passes."""

from __future__ import annotations

import os
from typing import Any

from softcount.errors import DataError
from softcount.run.threads import Threads


def runner_of(estimator: Any) -> Threads:
    """What runs the passes of a fit: threads, and a folder for rows where one was named."""
    return Threads(estimator.n_jobs, folder_of(getattr(estimator, "spill", None)))


def folder_of(spill: Any) -> str | None:
    """The folder that rows are kept in, or None."""
    if spill is None or isinstance(spill, (str, os.PathLike)):
        return None if spill is None else os.fsdecode(spill)
    raise DataError(f"spill must be None or the path of a folder, not {spill!r}.")
