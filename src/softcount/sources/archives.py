"""Where documents lie: in the files of a folder, or in a tar file. Both list their names first and read on demand."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from softcount.errors import DataError
from softcount.sources.bytestream import BLOCK, GZIP, Progress, as_utf8, first_bytes, remove_with

Parts = tuple[str, ...]
"""The folders a file is in, and its name."""

HEADER = 512
"""Bytes of the header of each member of a tar file."""

AGAIN = "a link to a folder that is read anyway"
"""Why such a link is not followed."""

SIDECARS = ("__MACOSX",)
"""Folders that archivers add for themselves."""


class TarMember(NamedTuple):
    """A document in a tar file."""

    name: str
    offset: int
    size: int


class FolderArchive:
    """The files in a folder and in the folders below it, hidden ones left out, in the order of their names.

    `skipped` are names that cannot be documents, each with why.
    """

    def __init__(self, folder: str) -> None:
        self.name = folder
        self.skipped: list[tuple[str, str]] = []
        self._seen: set[tuple[int, int]] = set()
        found = sorted(self._files(folder), key=lambda file: file[0])
        self.skipped.sort()
        self._paths = [path for _, path, _ in found]
        self.names = ["/".join(parts) for parts, _, _ in found]
        self.sizes = [size for _, _, size in found]

    def _files(self, folder: str) -> Iterator[tuple[Parts, str, int]]:
        """The files with their sizes; links to folders are followed last, so that every folder goes by its own name."""
        waiting: list[tuple[str, Parts]] = [(folder, ())]
        linked: deque[tuple[str, Parts]] = deque()
        while waiting or linked:
            here, above = waiting.pop() if waiting else linked.popleft()
            for entry in self._entries(here, above):
                parts = (*above, readable(entry.name))
                try:
                    if entry.is_file():
                        yield parts, entry.path, entry.stat().st_size
                    elif entry.is_dir():
                        (linked if entry.is_symlink() else waiting).append((entry.path, parts))
                    else:
                        self._skip(parts, "a broken link" if entry.is_symlink() else "no plain file")
                except OSError as error:
                    self._skip(parts, _reason(error))

    def _entries(self, folder: str, above: Parts) -> list[os.DirEntry[str]]:
        """What is in a folder, in the order of names; nothing where it was listed before, which is written down."""
        try:
            here = os.stat(folder)
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            if not above:
                raise DataError(f"{folder} cannot be listed: {_reason(error)}.") from None
            self._skip(above, _reason(error))
            return []
        if (here.st_dev, here.st_ino) in self._seen:
            self._skip(above, AGAIN)
            return []
        self._seen.add((here.st_dev, here.st_ino))
        return [entry for entry in entries if not is_hidden(entry.name)]

    def _skip(self, parts: Parts, why: str) -> None:
        self.skipped.append(("/".join(parts), why))

    def read(self, places: Sequence[int]) -> Iterator[bytes | OSError]:
        """The bytes of these documents, one after another; of one that may not be read, why."""
        for place in places:
            try:
                yield _whole(self._paths[place], self.sizes[place])
            except OSError as error:
                yield error


def _whole(path: str, size: int) -> bytes:
    """A file's bytes: one call where it is as long as it was listed (6 us a file; `open` takes 10)."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        data = os.read(handle, size + 1)
        if len(data) == size:
            return data
        parts = [data]
        while data:
            data = os.read(handle, BLOCK)
            parts.append(data)
        return b"".join(parts)
    finally:
        os.close(handle)


class TarArchive:
    """The plain files in a tar file, in the order of their names; a top folder that holds all of them is not named.

    A compressed one is unpacked to a temporary file first, which is read from then on: at most half of the free room
    there is taken. Nothing is ever written under a name from the archive; links and devices are left out.
    """

    def __init__(self, path: str, name: str, progress: Progress | None = None) -> None:
        self.name = name
        self._path = path
        if first_bytes(path).startswith(GZIP):
            self._path = unpacked(path, name, progress)
            remove_with(self, self._path)
        self.skipped: list[tuple[str, str]] = []
        members = sorted(self._members(), key=lambda member: member.name.split("/"))
        top = _shared_top(members)
        self.names = [member.name[top:] for member in members]
        self.sizes = [member.size for member in members]
        self._offsets = [member.offset for member in members]

    def _members(self) -> Iterator[TarMember]:
        end = os.path.getsize(self._path)
        try:
            with tarfile.open(self._path, "r:") as archive:
                for found in archive:
                    yield from self._member(found, end)
                stopped = archive.offset
        except DataError:
            raise
        except (tarfile.TarError, ValueError, EOFError) as error:
            raise DataError(f"{self.name} is a damaged tar file: {error}. Copy or download it again.") from None
        self._refuse_rest(stopped)

    def _refuse_rest(self, stopped: int) -> None:
        """Raise where the members end at a header that makes no sense, which `tarfile` takes for the end."""
        with open(self._path, "rb") as file:
            file.seek(stopped)
            if file.read(HEADER).strip(b"\0"):
                raise DataError(f"{self.name}, a tar file, is damaged at byte {stopped:,}. Copy or download it again.")

    def _member(self, found: tarfile.TarInfo, end: int) -> Iterator[TarMember]:
        parts = [readable(part) for part in found.name.split("/") if part not in ("", ".", "..")]
        if found.isdir() or not parts or any(map(is_hidden, parts)):
            return
        name = "/".join(parts)
        if not found.isreg() or found.issparse():
            self.skipped.append((name, "no plain file"))
        elif found.offset_data + found.size > end:
            raise DataError(f"{self.name} ends inside {name!r}: it is cut short. Copy or download it again.")
        else:
            yield TarMember(name, found.offset_data, found.size)

    def read(self, places: Sequence[int]) -> Iterator[bytes | OSError]:
        """The bytes of these documents, one after another."""
        with open(self._path, "rb") as file:
            for place in places:
                file.seek(self._offsets[place])
                yield file.read(self.sizes[place])


Archive = FolderArchive | TarArchive
"""Documents by name, in order."""


def _shared_top(members: list[TarMember]) -> int:
    """How many characters name the one folder that everything lies in, 0 where there is none."""
    tops = {member.name.partition("/")[0] for member in members if "/" in member.name}
    if len(tops) != 1 or any("/" not in member.name for member in members):
        return 0
    return len(tops.pop()) + 1


def unpacked(path: str, name: str, progress: Progress | None = None, free: int | None = None) -> str:
    """A gzipped file unpacked to a temporary one; refused where it would fill more than half of the free room.

    `free` is how many bytes there is room for; None to ask the system.
    """
    handle, copy = tempfile.mkstemp(prefix="softcount-")
    folder, done = os.path.dirname(copy), 0
    room = (shutil.disk_usage(folder).free if free is None else free) // 2
    try:
        with os.fdopen(handle, "wb") as out, open(path, "rb") as raw, gzip.GzipFile(fileobj=raw) as packed:
            while block := packed.read(BLOCK):
                done += len(block)
                if done > room:
                    raise DataError(
                        f"{name} unpacks to more than {room / 1e9:,.1f} GB, half of what is free in {folder}. "
                        "Unpack it elsewhere and name the folder, or set TMPDIR to a larger place."
                    )
                out.write(block)
                if progress is not None:
                    progress(raw.tell(), os.path.getsize(path))
    except BaseException as error:
        os.unlink(copy)
        if isinstance(error, EOFError):
            raise DataError(f"{name} is a gzip file that ends too early. Copy or download it again.") from None
        if isinstance(error, gzip.BadGzipFile | zlib.error):
            raise DataError(f"{name} is damaged: {error}. Copy or download it again.") from None
        raise
    return copy


def archive_of(path: str, name: str, progress: Progress | None = None) -> Archive | None:
    """The documents of a folder or a tar file; None for any other file."""
    if os.path.isdir(path):
        return FolderArchive(path)
    return TarArchive(path, name, progress) if is_tar(path) else None


def is_tar(path: str) -> bool:
    """Whether a file is a tar file, gzipped or not, by how it begins."""
    begins = first_bytes(path, HEADER)
    if begins.startswith(GZIP):
        begins = b""
        with suppress(OSError, EOFError, zlib.error), gzip.open(path) as packed:
            begins = packed.read(HEADER)
    try:
        tarfile.TarInfo.frombuf(begins, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError):
        return False
    return True


def is_hidden(name: str) -> bool:
    """Whether a file or folder is one that listings leave out."""
    return name.startswith(".") or name in SIDECARS


def readable(name: str) -> str:
    """A file's name as text: its bytes as UTF-8, or as Latin-1 where they are none."""
    return as_utf8(name.encode("utf-8", "surrogateescape"))[0].decode()


def _reason(error: OSError) -> str:
    said = error.strerror or str(error)
    return said[:1].lower() + said[1:]
