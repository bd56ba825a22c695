"""Checkpoints of EM, stored in the same archive format as models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from softcount.errors import ModelFileError
from softcount.files.archive import naming, read, write
from softcount.files.atomic import check_writable
from softcount.files.codec import Arrays, Document, decode, require
from softcount.learn.checkpoints import Checkpoint


class CheckpointHeader(Struct, frozen=True):
    """The digest of the counts, the seed, and the state of every EM run."""

    data: str
    seed: int
    climbs: list[dict[str, Any]]


@contextmanager
def checkpointed(path: str) -> Iterator[Checkpoint]:
    """Open a checkpoint file, which remains after the block until `remove_checkpoint`."""
    check_writable(path)
    checkpoint = Checkpoint(partial(write, path), _read(path) if os.path.exists(path) else None, path)
    try:
        yield checkpoint
    except KeyboardInterrupt:
        checkpoint.interrupt()
        raise


def remove_checkpoint(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _read(path: str) -> tuple[Document, Arrays]:
    document, arrays = read(path)
    if set(document) != {"checkpoint"}:
        raise ModelFileError(f"{path} is a model, and no checkpoint. Name another file.")
    with naming(path, "it is no checkpoint that makes sense"):
        header = decode(CheckpointHeader, document["checkpoint"], {}, "checkpoint", "its header")
        sound = all(isinstance(run["start"], str) and isinstance(run["ended"], bool) for run in header.climbs)
        require(sound, "its climbs make no sense.")
        return asdict(header), arrays
