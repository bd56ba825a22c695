"""Where documents lie: in the files of a folder, or in a tar file. Both list their names first and read on demand."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, NamedTuple

from softcount.errors import DataError
from softcount.sources.bytestream import (
    BLOCK,
    GZIP,
    LONGEST,
    FileState,
    Progress,
    Spool,
    UnchangingFile,
    changed,
    first_bytes,
    recoded,
    spool,
    too_long,
    unpacked_blocks,
)

Parts = tuple[str, ...]
"""The folders a file is in, and its name."""

HEADER = 512
"""Bytes of the header of each member of a tar file."""

LONGEST_NAME = 1 << 20
"""Bytes that the name and the notes of a member may have."""

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
        self._states = [state for _, _, state in found]
        self.sizes = [state.size for state in self._states]

    def _files(self, folder: str) -> Iterator[tuple[Parts, str, FileState]]:
        """The files and their states; links to folders are followed last, so that every folder goes by its own name."""
        waiting: list[tuple[str, Parts]] = [(folder, ())]
        linked: deque[tuple[str, Parts]] = deque()
        while waiting or linked:
            here, above = waiting.pop() if waiting else linked.popleft()
            for entry in self._entries(here, above):
                parts = (*above, readable(entry.name))
                try:
                    if entry.is_file():
                        yield parts, entry.path, FileState.of(os.stat(entry.path))
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
                yield _whole(self._paths[place], self._states[place], self.names[place])
            except OSError as error:
                yield error


def _whole(path: str, state: FileState, name: str) -> bytes:
    """The bytes of a file that is what it was when it was listed, by system calls (6 us a file; `open` takes 10)."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        data = os.read(handle, _wanted(state.size) + 1)
        if FileState.of(os.fstat(handle)) != state or len(data) < _wanted(state.size):
            raise changed(name)
        return _document(data, state.size, name)
    finally:
        os.close(handle)


def _wanted(size: int) -> int:
    """How many bytes to read of a document: of one too long, enough to see whether it is one."""
    return size if size <= LONGEST else min(size, BLOCK)


def _document(data: bytes, size: int, name: str) -> bytes:
    """What was read of a document; one too long is refused, unless it is binary and no document at all."""
    if size > LONGEST and b"\0" not in data:
        raise too_long(name)
    return data[:size]


class TarArchive:
    """The plain files in a tar file, in the order of their names; a top folder that holds all of them is not named.

    A compressed one is unpacked to a temporary file first, which is read from then on. Nothing is ever written under a
    name from the archive; links and devices are left out.
    """

    def __init__(self, path: str, name: str, progress: Progress | None = None) -> None:
        self.name = name
        self._file = UnchangingFile(path, name)
        if first_bytes(path).startswith(GZIP):
            copy = unpacked(self._file, progress)
            copy.remove_with(self)
            self._file = UnchangingFile(copy.path, name)
        self.skipped: list[tuple[str, str]] = []
        members = sorted(self._members(), key=lambda member: member.name.split("/"))
        top = _shared_top(members)
        self.names = [member.name[top:] for member in members]
        self.sizes = [member.size for member in members]
        self._offsets = [member.offset for member in members]

    def _members(self) -> Iterator[TarMember]:
        end = self._file.state.size
        try:
            with self._file.unchanged(), open(self._file.path, "rb") as raw:
                with tarfile.open(fileobj=TarHeaders(raw, self.name), mode="r:") as archive:
                    while (found := archive.next()) is not None:
                        yield from self._member(found, end)
                        archive.members.clear()  # type: ignore[attr-defined]  # or it would keep them all
                    stopped = archive.offset
                self._refuse_rest(raw, stopped)
        except DataError:
            raise
        except (tarfile.TarError, ValueError, EOFError) as error:
            raise DataError(f"{self.name} is a damaged tar file: {error}. Copy or download it again.") from None

    def _refuse_rest(self, file: IO[bytes], stopped: int) -> None:
        """Raise where the members end at a header that makes no sense, which `tarfile` takes for the end."""
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
        with self._file.unchanged(), open(self._file.path, "rb") as file:
            for place in places:
                file.seek(self._offsets[place])
                size = self.sizes[place]
                yield _document(file.read(_wanted(size)), size, f"{self.names[place]} in {self.name}")


class TarHeaders(io.BufferedIOBase):
    """A tar file for `tarfile`, which would read a name of any length: it gets no more than a name may have."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= LONGEST_NAME:
            raise DataError(f"{self._name} is a tar file with a name of {size:,} bytes. Copy or download it again.")
        return self._file.read(size)


Archive = FolderArchive | TarArchive
"""Documents by name, in order."""


def _shared_top(members: list[TarMember]) -> int:
    """How many characters name the one folder that everything lies in, 0 where there is none."""
    tops = {member.name.partition("/")[0] for member in members if "/" in member.name}
    if len(tops) != 1 or any("/" not in member.name for member in members):
        return 0
    return len(tops.pop()) + 1


def unpacked(file: UnchangingFile, progress: Progress | None = None) -> Spool:
    """A gzipped file unpacked to a temporary one."""
    with file.unchanged(), open(file.path, "rb") as raw:

        def blocks() -> Iterator[bytes]:
            for block in unpacked_blocks(raw, file.name):
                yield block
                if progress is not None:
                    progress(raw.tell(), file.state.size)

        return spool(blocks(), file.name)


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
    return recoded(name.encode("utf-8", "surrogateescape"))[0].decode()


def _reason(error: OSError) -> str:
    said = error.strerror or str(error)
    return said[:1].lower() + said[1:]
