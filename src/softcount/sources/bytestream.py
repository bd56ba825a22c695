"""Files as blocks of bytes: plain, gzipped or from standard input, checked and unpacked on the way."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from softcount.errors import DataError

BLOCK = 4 << 20
GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
Progress = Callable[[int, int], None]

_FOREIGN = {
    b"PK\x03\x04": "a zip or spreadsheet file. Save the sheet as CSV, or unpack it first",
    b"\xff\xfe": "UTF-16 text. Convert it to UTF-8 first",
    b"\xfe\xff": "UTF-16 text. Convert it to UTF-8 first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd. Unpack it first",
    b"BZh": "compressed with bzip2. Unpack it first",
    b"\xfd7zXZ\x00": "compressed with xz. Unpack it first",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet file. Save the sheet as CSV",
    b"ARROW1": "an Arrow file. Read it with pyarrow and pass the table",
    b"SQLite format 3": "a database. Export the table as CSV or Parquet",
}


def first_bytes(path: str, count: int = 16) -> bytes:
    """How a file begins; one that cannot be read is refused, saying why."""
    try:
        with open(path, "rb") as file:
            return file.read(count)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def unreadable(path: str, error: Exception) -> DataError:
    """Why a file cannot be read, and what to do."""
    if isinstance(error, FileNotFoundError):
        what = "it is a link to a file that is gone" if os.path.islink(path) else "there is no such file"
        return DataError(f"{path}: {what}.{_similar(path)}")
    if isinstance(error, IsADirectoryError):
        return DataError(f"{path} is a folder. Name a file in it.")
    if isinstance(error, PermissionError):
        return DataError(f"{path} may not be read by this user. Check its permissions.")
    return DataError(f"{path} cannot be read: {error}.")


def _similar(path: str) -> str:
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    try:
        near = get_close_matches(name, set(os.listdir(folder or ".")) - {name}, n=1)
    except OSError:
        return ""
    return f" Did you mean {os.path.join(folder, near[0])}?" if near else ""


class TextFile:
    """The bytes of a text file, unpacked, in blocks; it may be read any number of times."""

    def __init__(self, path: str, name: str | None = None, progress: Progress | None = None) -> None:
        self.path = path
        self.name = name or path
        self.progress = progress
        begins = first_bytes(path)
        self.packed = begins.startswith(GZIP)
        for magic, said in _FOREIGN.items():
            if begins.startswith(magic):
                raise DataError(f"{self.name} is {said}.")
        self._state = self._now()
        self.returns_only = False

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "progress": None}  # a copy in another process tells nobody how far it is

    def _now(self) -> tuple[int, int]:
        found = os.stat(self.path)
        return found.st_size, found.st_mtime_ns

    def blocks(self, *, quiet: bool = False) -> Iterator[bytes]:
        """All bytes without the byte-order mark; calls `progress(done, total)` in bytes of the file itself."""
        if self._now() != self._state:
            raise DataError(f"{self.name} was changed while it was being read. Start again when nothing writes to it.")
        with open(self.path, "rb") as raw:
            first = True
            for block in self._unpacked(raw):
                data = block.removeprefix(BOM) if first else block
                first = False
                if self.progress and not quiet:
                    self.progress(raw.tell(), self._state[0])
                yield data.replace(b"\r", b"\n") if self.returns_only else data

    def _unpacked(self, raw: IO[bytes]) -> Iterator[bytes]:
        stream: Any = gzip.GzipFile(fileobj=raw) if self.packed else raw
        while True:
            try:
                block = stream.read(BLOCK)
            except EOFError:
                raise DataError(f"{self.name} is a gzip file that ends too early. Copy or download it again.") from None
            except (OSError, zlib.error) as error:
                raise DataError(f"{self.name} is damaged: {error}. Copy or download it again.") from None
            if not block:
                return
            yield block


def as_utf8(raw: bytes) -> tuple[bytes, bool]:
    r"""Bytes of text as UTF-8 without a byte-order mark, and whether it had to be read as Latin-1.

    >>> as_utf8(b"caf\xe9"), as_utf8("café".encode()) == ("café".encode(), False)
    ((b'caf\xc3\xa9', True), True)
    """
    if raw.isascii():
        return raw, False
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1").encode("utf-8"), True
    return raw.removeprefix(BOM), False


def is_passing(path: str) -> bool:
    """Whether a path can be read only once: standard input ("-"), a pipe, a terminal."""
    return path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


def spooled(path: str) -> str:
    """What can be read only once copied to a temporary file; the path of the copy."""
    handle, copy = tempfile.mkstemp(prefix="softcount-")
    with os.fdopen(handle, "wb") as out:
        if path == "-":
            shutil.copyfileobj(sys.stdin.buffer, out, BLOCK)
        else:
            with open(path, "rb") as passing:
                shutil.copyfileobj(passing, out, BLOCK)
    return copy


def remove_with(owner: object, path: str) -> None:
    """Delete a temporary file when its owner is gone, at the latest when Python ends."""
    weakref.finalize(owner, Path(path).unlink, missing_ok=True)
