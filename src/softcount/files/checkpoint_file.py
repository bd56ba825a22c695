"""Checkpoints in the same kind of file as a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from softcount.errors import ModelFileError
from softcount.files.archive import naming, read, write
from softcount.files.atomic import check_writable
from softcount.learn.checkpoints import Checkpoint


@contextmanager
def checkpointed(path: str) -> Iterator[Checkpoint]:
    """A checkpoint in a file, which stays after the block until `remove_checkpoint`."""
    check_writable(path)
    checkpoint = Checkpoint(partial(write, path), _read(path) if os.path.exists(path) else None, path)
    try:
        yield checkpoint
    except KeyboardInterrupt:
        checkpoint.interrupt()
        raise


def remove_checkpoint(path: str) -> None:
    """Delete the file, if there is one."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def _read(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    document, arrays = read(path)
    if set(document) != {"checkpoint"}:
        raise ModelFileError(f"{path} is a model, and no checkpoint. Name another file.")
    with naming(path, "it is no checkpoint that makes sense"):
        header = document["checkpoint"]
        sound = set(header) == {"data", "seed", "climbs"} and isinstance(header["data"], str)
        if not sound or type(header["seed"]) is not int or not isinstance(header["climbs"], list):
            raise ModelFileError("it holds something else than climbs.")
        if not all(isinstance(run["start"], str) and isinstance(run["ended"], bool) for run in header["climbs"]):
            raise ModelFileError("its climbs make no sense.")
        return header, arrays
