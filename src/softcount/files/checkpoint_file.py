"""Checkpoints: what was written down of a fit's climbs, in the same kind of file as a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from softcount.errors import ModelFileError
from softcount.files.archive import naming, read, write
from softcount.files.atomic import check_writable
from softcount.learn.checkpoints import ClimbLog

NEW = {"data": "", "seed": 0, "climbs": []}


@contextmanager
def checkpointed(path: str) -> Iterator[ClimbLog]:
    """A log of climbs in a file: of those found there, and of those that follow.

    An interrupt leaves the file; the end of the block does too, until `remove_checkpoint`.
    """
    check_writable(path)
    found = _found(path) if os.path.exists(path) else None
    log = ClimbLog(lambda document, arrays: write(path, document, arrays), found, path)
    try:
        yield log
    except KeyboardInterrupt:
        log.interrupt()
        raise


def remove_checkpoint(path: str) -> None:
    """Take the file away: what it was for is done."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def _found(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    document, arrays = read(path)
    if set(document) != {"checkpoint"}:
        raise ModelFileError(f"{path} is a model, and no checkpoint. Name another file.")
    with naming(path, "it is no checkpoint that makes sense"):
        found: dict[str, Any] = document["checkpoint"]
        if set(found) != set(NEW) or any(type(found[key]) is not type(NEW[key]) for key in NEW):
            raise ModelFileError("it holds something else than climbs.")
        for facts in found["climbs"]:
            if not isinstance(facts["start"], str) or not isinstance(facts["ended"], bool):
                raise ModelFileError("its climbs make no sense.")
        return found, arrays
