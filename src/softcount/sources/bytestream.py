"""Files as blocks of bytes: plain, gzipped or from standard input."""

from __future__ import annotations

import codecs
import gzip
import os
import shutil
import sys
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import IO, Any, NamedTuple

from softcount.core import remedies
from softcount.core.scratch import new_scratch
from softcount.errors import DataError

BLOCK = 4 << 20
LONGEST = 32 << 20
"""Most bytes of a row of a table, a line or a document."""

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
WIDE = (b"\xff\xfe", b"\xfe\xff")
"""Byte-order marks of UTF-16 text."""
SNIFFED = 16 << 20
"""Bytes at the start of a file that decide whether it is UTF-8: checking them takes 5 ms."""
Progress = Callable[[int, int], None]

_FOREIGN = {
    b"PK\x03\x04": "a zip or spreadsheet file. Save the sheet as CSV, or unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd. Unpack it first",
    b"BZh": "compressed with bzip2. Unpack it first",
    b"\xfd7zXZ\x00": "compressed with xz. Unpack it first",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet file. Save the sheet as CSV",
    b"ARROW1": "an Arrow file. Read it with pyarrow and pass the table",
    b"SQLite format 3": "a database. Export the table as CSV or Parquet",
}


def first_bytes(path: str, count: int = 16) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(count)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def unreadable(path: str, error: Exception) -> DataError:
    """Return the error for a file that cannot be read; it suggests a file of a similar name."""
    if isinstance(error, FileNotFoundError):
        what = "it is a link to a file that is gone" if os.path.islink(path) else "there is no such file"
        folder, name = os.path.split(path)
        near: list[str] = []
        with suppress(OSError):
            near = get_close_matches(name, set(os.listdir(folder or ".")) - {name}, n=1)
        hint = f" Did you mean {os.path.join(folder, near[0])}?" if near else ""
        return DataError(f"{path}: {what}.{hint}")
    if isinstance(error, IsADirectoryError):
        return DataError(f"{path} is a folder. Name a file in it.")
    if isinstance(error, PermissionError):
        return DataError(f"{path} may not be read by this user. Check its permissions.")
    return DataError(f"{path} cannot be read: {error}.")


class FileState(NamedTuple):
    """Identity, size and modification time of a file: if they differ, the file was changed."""

    place: tuple[int, int]
    size: int
    written: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        return cls((found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns)


def changed(name: str) -> DataError:
    return DataError(f"{name} was changed while it was being read. Start again when nothing writes to it.")


class UnchangingFile:
    """A file that must not change between or during reads."""

    def __init__(self, path: str, name: str | None = None) -> None:
        self.path = path
        self.name = name or path
        try:
            self.state = FileState.of(os.stat(path))
        except (OSError, ValueError) as error:
            raise unreadable(path, error) from None

    @property
    def is_changed(self) -> bool:
        try:
            return FileState.of(os.stat(self.path)) != self.state
        except OSError:
            return True

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise an error if the file was changed before or during the `with` block."""
        if self.is_changed:
            raise changed(self.name)
        try:
            yield
        except Exception:
            if self.is_changed:
                raise changed(self.name) from None
            raise
        if self.is_changed:
            raise changed(self.name)


class TextFile(UnchangingFile):
    """The decompressed bytes of a text file in blocks, which can be read any number of times."""

    def __init__(
        self, path: str, name: str | None = None, progress: Progress | None = None, encoding: str | None = None
    ) -> None:
        super().__init__(path, name)
        self.progress = progress
        begins = first_bytes(path)
        self.packed = begins.startswith(GZIP)
        self.encoding = encoding or ("utf-16" if begins.startswith(WIDE) else None)
        for magic, kind in _FOREIGN.items():
            if begins.startswith(magic):
                raise DataError(f"{self.name} is {kind}.")

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "progress": None}  # a copy in another process reports no progress

    def blocks(self, *, quiet: bool = False) -> Iterator[bytes]:
        """Yield all bytes without the byte-order mark; call `progress(done, total)` with bytes of the file itself."""
        with self.unchanged(), open(self.path, "rb") as raw:
            first = True
            plain = unpacked_blocks(raw, self.name) if self.packed else _plain_blocks(raw, self.name)
            for block in plain if self.encoding is None else as_utf8_blocks(plain, self.encoding, self.name):
                data = block.removeprefix(BOM) if first else block
                first = False
                if self.progress and not quiet:
                    self.progress(raw.tell(), self.state.size)
                yield data

    def first(self, count: int, *, quiet: bool = True) -> bytes:
        held = bytearray()
        for block in self.blocks(quiet=quiet):
            held += block
            if len(held) >= count:
                break
        return bytes(held[:count])

    def detect_encoding(self) -> tuple[str, ...]:
        """Read the file as cp1252 if its first `SNIFFED` bytes are not UTF-8; return a note if so.

        A file that also holds valid multi-byte sequences is damaged UTF-8: as cp1252 every accent would be wrong.
        """
        start = b"" if self.encoding is not None else self.first(SNIFFED)
        if start.isascii() or b"\0" in start:
            return ()
        decoder = codecs.getincrementaldecoder("utf-8")
        try:
            decoder().decode(start)
        except UnicodeDecodeError:
            if not decoder("ignore").decode(start).isascii():
                return ()
        else:
            return ()
        try:
            start.decode("cp1252")
        except UnicodeDecodeError:
            return ()
        self.encoding = "cp1252"
        other = remedies.either("encoding='NAME'", "--encoding NAME")
        return (f"{self.name} is not UTF-8: read as cp1252 (Western European); {other} reads it otherwise",)

    def whole(self) -> bytes:
        held = self.first(LONGEST + 1, quiet=False)
        if len(held) > LONGEST:
            raise too_long(self.name)
        return held


def too_long(what: str) -> DataError:
    return DataError(f"{what} is longer than {LONGEST >> 20} MB, the limit for a row, line or document. Split it.")


def _plain_blocks(raw: Any, name: str) -> Iterator[bytes]:
    try:
        while block := raw.read1(BLOCK):  # the bytes available now: waiting for a whole block would delay Ctrl-C
            yield block
    except OSError as error:
        raise unreadable(name, error) from None


def unpacked_blocks(raw: IO[bytes], name: str) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=raw) as packed:
            while block := packed.read(BLOCK):
                yield block
    except EOFError:
        raise DataError(f"{name} is a gzip file that ends too early. Copy or download it again.") from None
    except (OSError, zlib.error) as error:
        raise DataError(f"{name} is damaged: {error}. Copy or download it again.") from None


def as_utf8_blocks(blocks: Iterator[bytes], encoding: str, name: str) -> Iterator[bytes]:
    decoder, done = codecs.getincrementaldecoder(encoding)(), 0
    try:
        for block in blocks:
            yield decoder.decode(block).encode()
            done += len(block)
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        other = remedies.either("encoding", "--encoding")
        raise DataError(f"{name} is not {encoding} text after byte {done:,} ({error}). Give another {other}.") from None


def recoded(raw: bytes) -> tuple[bytes, bool]:
    r"""Return bytes of text as UTF-8, and whether they had to be read as Latin-1.

    >>> recoded(b"caf\xe9"), recoded("café".encode()) == ("café".encode(), False)
    ((b'caf\xc3\xa9', True), True)
    """
    if raw.isascii():
        return raw, False
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1").encode("utf-8"), True
    return raw, False


def as_utf8(raw: bytes) -> tuple[bytes, bool]:
    """Return a document as UTF-8 without its byte-order mark, and whether it had to be read as Latin-1."""
    text, latin = recoded(raw)
    return text if latin else text.removeprefix(BOM), latin


# -- data that can be read only once, and temporary copies


def is_passing(path: str) -> bool:
    """Whether a path can be read only once: standard input ("-"), a pipe, a terminal."""
    return path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


class Spool(NamedTuple):
    """A temporary copy: its path, and the open descriptor that marks it as in use."""

    path: str
    handle: int

    def remove(self) -> None:
        with suppress(OSError):
            os.unlink(self.path)
        with suppress(OSError):
            os.close(self.handle)

    def remove_with(self, owner: object) -> Callable[[], object]:
        """Delete the copy with its owner, at the latest when Python exits, or when the returned function is called."""
        return weakref.finalize(owner, self.remove)


def spooled(path: str) -> Spool:
    if path != "-":
        with open(path, "rb") as passing:
            return spool(_plain_blocks(passing, path), path)
    if sys.stdin is None:  # closed by the shell
        raise DataError("standard input is closed. Send the data there (softcount ... - < FILE), or name a file.")
    return spool(_plain_blocks(sys.stdin.buffer, "standard input"), "standard input")


def spool(blocks: Iterator[bytes], name: str) -> Spool:
    """Write blocks to a temporary file; raise an error if they would fill more than half of the free space."""
    import tempfile

    folder, done = tempfile.gettempdir(), 0
    handle, path = new_scratch(folder, 0o600)
    copy = Spool(path, handle)
    try:
        room = shutil.disk_usage(folder).free // 2
        for block in blocks:
            done += len(block)
            if done > room:
                raise DataError(
                    f"{name} holds more than {room / 1e9:,.1f} GB, half of what is free in {folder}, where it is kept "
                    "while it is read. Name a file or folder that need not be unpacked, or set TMPDIR to a larger one."
                )
            try:
                while block:
                    block = block[os.write(handle, block) :]
            except OSError as error:
                raise OSError(error.errno, error.strerror, folder) from None
    except BaseException:
        copy.remove()
        raise
    return copy
