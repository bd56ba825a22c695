"""Encoded parts of a table in a folder that all workers of a host share: a worker that ends takes nothing with it.

The folder is of the user alone, and only what this user's workers wrote there is opened. A part is written whole under
another name first, so that it is there or is not. Folders that nobody has touched for a day are removed by the next
worker that makes one.
"""

from __future__ import annotations

import mmap
import os
import pickle
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from softcount.errors import DataError
from softcount.run.spill import LINE, SMALL, refused

_OURS = re.compile(r"softcount-parts-[0-9a-f]{32}")
LEFT_BEHIND = 86_400
"""Seconds after which a folder that nobody touched is a dead session's."""
LENGTH = 8
"""Bytes at the end of a file that say how long the description before them is."""


class SharedFolder:
    """The parts of one table that this host has."""

    def __init__(self, table: str) -> None:
        self.path = _folder_of(table)
        _remove_left_behind(os.path.dirname(self.path))
        with _refusing(self.path):
            with suppress(FileExistsError):
                os.mkdir(self.path, 0o700)
            found = os.lstat(self.path)
        if not _is_private(found):
            raise DataError(f"{self.path!r} is not a folder that only this user can enter. Remove it, and fit again.")

    @property
    def exists(self) -> bool:
        """Whether the folder is still there; that somebody asked is written down."""
        try:
            os.utime(self.path)
        except OSError:
            return False
        return True

    def keep(self, number: int, write: Callable[[Callable[[Any], None]], Any]) -> None:
        """Write a part: `write` hands over its pieces one by one, and gives what is to be said of all of them."""
        path = os.path.join(self.path, f".{number}-{os.urandom(6).hex()}")
        try:
            with _refusing(self.path):
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            with os.fdopen(handle, "wb") as file:
                pieces = _Pieces(file, self.path)
                pieces.end(write(pieces.add))
            os.replace(path, self._path(number))
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise

    def found(self, number: int, mapped: bool) -> tuple[Any, list[Any]] | None:
        """What was said of a part, and its pieces, mapped or in memory; None where this host does not have it."""
        try:
            with open(self._path(number), "rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if mapped else bytearray(file.read())
        except FileNotFoundError:
            return None
        return _opened(content)

    def _path(self, number: int) -> str:
        return os.path.join(self.path, f"{number}.rows")


def remove_shared(table: str) -> bool:
    """Remove what this host has of a table, and whether there was any; what is mapped stays until nobody needs it."""
    path = _folder_of(table)
    found = os.path.isdir(path)
    shutil.rmtree(path, ignore_errors=True)
    return found


def _folder_of(table: str) -> str:
    return os.path.join(tempfile.gettempdir(), f"softcount-parts-{table}")


class _Pieces:
    """Pieces of a part, one after another in a file, and at its end how they are put together."""

    def __init__(self, file: BinaryIO, folder: str) -> None:
        self._file, self._folder = file, folder
        self._forms: list[tuple[bytes, list[tuple[int, int]]]] = []

    def add(self, piece: Any) -> None:
        places: list[tuple[int, int]] = []

        def written(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes >= SMALL:
                with _refusing(self._folder):
                    self._file.write(bytes(-self._file.tell() % LINE))
                    places.append((self._file.tell(), raw.nbytes))
                    self._file.write(raw)
            return raw.nbytes < SMALL  # those stay in the description

        self._forms.append((pickle.dumps(piece, protocol=5, buffer_callback=written), places))

    def end(self, told: Any) -> None:
        description = pickle.dumps((told, self._forms))
        with _refusing(self._folder):
            self._file.write(description)
            self._file.write(len(description).to_bytes(LENGTH, "little"))
            self._file.flush()


def _opened(content: Any) -> tuple[Any, list[Any]]:
    """What a file of ours holds; what is mapped can be written to, and nobody else sees it."""
    view = memoryview(content)
    size = int.from_bytes(view[-LENGTH:], "little")
    told, forms = pickle.loads(view[-LENGTH - size : -LENGTH])
    pieces = [
        pickle.loads(form, buffers=[view[start : start + length] for start, length in places]) for form, places in forms
    ]
    return told, pieces


@contextmanager
def _refusing(folder: str) -> Iterator[None]:
    """A folder that cannot take what is written, in a line."""
    try:
        yield
    except OSError as error:
        raise refused(os.path.dirname(folder), error, "TMPDIR=DIR for the workers") from error


def _is_private(found: os.stat_result) -> bool:
    """Whether a path is a folder of this user's which nobody else can enter."""
    if not hasattr(os, "geteuid"):  # a system without such rights
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _remove_left_behind(folder: str) -> None:
    """Remove the folders of ours that nobody has touched for a day."""
    with suppress(OSError), os.scandir(folder) as entries:
        for path in [entry.path for entry in entries if _OURS.fullmatch(entry.name)]:
            with suppress(OSError):
                found = os.lstat(path)
                if _is_private(found) and time.time() - found.st_mtime > LEFT_BEHIND:
                    shutil.rmtree(path, ignore_errors=True)
