"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, Literal

from softcount.core.scratch import new_scratch
from softcount.errors import DataError

Path = str | os.PathLike[str]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FAILED = (*_FULL, errno.EIO)


@contextmanager
def atomic_writer(path: Path, mode: Literal["w", "wb"] = "w") -> Iterator[IO[Any]]:
    """Open a file that appears at `path` only if the block ends without an error.

    Text is UTF-8 and newlines stay as written. An existing file keeps its permissions, a link keeps its target, and a
    pipe or device (`/dev/stdout`) is written to directly. If anything fails, no partial file remains.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_writer(folder + "/answers.csv") as out:
    ...         _ = out.write("row,class")
    ...     open(folder + "/answers.csv").read()
    'row,class'
    """
    target, is_stream = _place(path)
    if is_stream:
        with _disk_errors(path), _opened(target, mode) as handle:
            yield handle
        return
    with _disk_errors(path):
        descriptor, part = _create_part(target)
    try:
        with _opened(descriptor, mode) as handle:
            with _disk_errors(path, only=_FAILED):
                yield handle
            with _disk_errors(path):
                handle.flush()
                os.fsync(descriptor)
                os.replace(part, target)  # after a power failure either the old or the new file exists
                with suppress(OSError):  # some systems cannot open a folder
                    _sync_folder(os.path.dirname(target))
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def check_writable(path: Path) -> None:
    """Raise a `DataError` with the reason if no file can be written at `path`.

    Call it before long computations. It creates and removes an empty file next to the target, because permission bits
    do not show read-only or full disks. The target itself is not touched.
    """
    target, is_stream = _place(path)
    if not is_stream:
        with _disk_errors(path):
            descriptor, part = _create_part(target)
            os.close(descriptor)
            os.unlink(part)


def _place(path: Path) -> tuple[str, bool]:
    """Return the path that is written to (links followed), and whether it is a pipe or device instead of a file."""
    name = os.fsdecode(path)
    if not name:
        raise DataError("cannot write to an empty path. Give a file name.")
    try:
        found = os.stat(name)
    except FileNotFoundError:
        target = os.path.realpath(name)
        folder = os.path.dirname(target)
        if not os.path.isdir(folder):
            wanted = f"there is no folder {folder!r}. Create it, or choose another path."
            raise DataError(f"cannot write {name!r}: {wanted}") from None
        if name.endswith(("/", os.sep)):
            raise DataError(f"cannot write {name!r}: it names a folder. Add a file name to it.") from None
        return target, False
    except (OSError, ValueError) as error:
        raise DataError(f"cannot write {name!r}: {_reason(error)}. Choose another path.") from None
    if stat.S_ISDIR(found.st_mode):
        raise DataError(f"cannot write {name!r}: it is a folder. Add a file name to it.")
    if not stat.S_ISREG(found.st_mode):
        return name, True
    if not os.access(name, os.W_OK):
        raise DataError(f"cannot write {name!r}: the file there is read-only. Choose another path, or allow writing.")
    return os.path.realpath(name), False


def _create_part(target: str) -> tuple[int, str]:
    """Create an empty temporary file next to the target with its permissions; remove files of killed writers."""
    descriptor, part = new_scratch(os.path.dirname(target), 0o666)
    with suppress(OSError):
        os.chmod(part, stat.S_IMODE(os.stat(target).st_mode))
    return descriptor, part


def _opened(place: str | int, mode: str) -> IO[Any]:
    return open(place, mode) if "b" in mode else open(place, mode, encoding="utf-8", newline="")


def _sync_folder(path: str) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _disk_errors(path: Path, only: tuple[int, ...] = ()) -> Iterator[None]:
    """Turn operating system errors into a `DataError`.

    With `only`, convert just these error numbers, because the caller's code runs inside.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if only and error.errno not in only:
            raise
        remedy = "Choose another path."
        if error.errno in _FULL:
            remedy = "Free some space, or choose another path."
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            remedy = "Choose a folder you may write to."
        raise DataError(f"cannot write {os.fsdecode(path)!r}: {_reason(error)}. {remedy}") from error


def _reason(error: OSError | ValueError) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return text[:1].lower() + text[1:]
