"""Temporary files and memory limits."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress

try:
    import fcntl
except ImportError:  # this system has no such locks, so leftovers are not removed
    fcntl = None  # type: ignore[assignment]

_OURS = re.compile(r"\.softcount-[0-9a-f]{12}\.part")


def new_scratch(folder: str, mode: int) -> tuple[int, str]:
    """Create an empty temporary file, locked until it is closed; return its descriptor and path.

    Files that a killed process left in the folder are removed first.
    """
    remove_leftovers(folder)
    way = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        path = os.path.join(folder, f".softcount-{os.urandom(6).hex()}.part")
        handle = os.open(path, way, mode)
        # Another process that removes leftovers may have removed the file between the two calls.
        if _lock(handle) is not False and os.fstat(handle).st_nlink:
            return handle, path
        os.close(handle)


def remove_leftovers(folder: str) -> None:
    """Delete temporary files of this user that no running process has locked."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for path in [entry.path for entry in entries if _OURS.fullmatch(entry.name)]:
            with suppress(OSError):
                found = os.lstat(path)
                if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                    continue
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    if _lock(handle):
                        os.unlink(path)
                finally:
                    os.close(handle)


def _lock(handle: int) -> bool | None:
    """Return whether this process now holds the lock of the file; None if the system cannot tell."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


ROOM = 64 << 20
"""Bytes that must be free: BLAS keeps about half of them after its first large product, and aborts without them."""
SOME = 200
"""Rows and columns of a product that makes BLAS allocate its memory."""


def reserve_room() -> None:
    """Make BLAS allocate its memory now, or raise `MemoryError`, if the memory of the process is limited."""
    try:
        import resource

        if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
            return
    except (ImportError, OSError, ValueError, AttributeError):  # a system without such limits
        return
    import numpy as np

    np.empty(ROOM, dtype=np.uint8)
    square = np.ones((SOME, SOME))
    square @ square
