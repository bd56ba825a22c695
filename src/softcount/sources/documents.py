"""Documents from folders, tar and zip archives."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import IO, Any

from softcount.core.lazy import pa
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.bytestream import (
    BLOCK,
    GZIP,
    LONGEST,
    WIDE,
    FileState,
    Progress,
    Spool,
    TextFile,
    UnchangingFile,
    as_utf8,
    changed,
    first_bytes,
    recoded,
    spool,
    too_long,
    unpacked_blocks,
)
from softcount.sources.frames import TEXT, ArrowSource
from softcount.sources.source import Key, Source, TablePiece, Wanted
from softcount.text import Words

Parts = tuple[str, ...]
"""The folders that contain a file, and its name."""

HEADER = 512
"""Bytes of the header of each member of a tar file."""

LONGEST_NAME = 1 << 20
"""Most bytes of the name and the metadata of a tar member."""

AGAIN = "a link to a folder that is read anyway"
"""The reason for not following such a link."""

SIDECARS = ("__MACOSX",)
"""Folders that archivers add for their own metadata."""


class FolderArchive:
    """The files in a folder and its subfolders, without hidden ones, sorted by name.

    `skipped` are files that cannot be read as documents, each with the reason.
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
        """Yield files and their states.

        Links to folders are followed last, so that real folders keep their own names.
        """
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
        """Return the entries of a folder sorted by name; empty if it was listed before."""
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
        """Yield the bytes of these documents, or the error of one that cannot be read.

        System calls take 6 us per file, `open` takes 10. A file that changed since it was listed raises an error.
        """
        for place in places:
            state, name = self._states[place], self.names[place]
            try:
                handle = os.open(self._paths[place], os.O_RDONLY | getattr(os, "O_BINARY", 0))
                try:
                    data = os.read(handle, _enough(state.size) + 1)
                    if FileState.of(os.fstat(handle)) != state or len(data) < _enough(state.size):
                        raise changed(name)
                finally:
                    os.close(handle)
                yield _document(data, state.size, name)
            except OSError as error:
                yield error


def _enough(size: int) -> int:
    """Return how many bytes of a document to read; if it is too long, enough to see whether it is binary."""
    return size if size <= LONGEST else min(size, BLOCK)


def _document(data: bytes, size: int, name: str) -> bytes:
    """Return the bytes of a document; one too long raises an error, unless it is binary and left out anyway."""
    if size > LONGEST and b"\0" not in data:
        raise too_long(name)
    return data[:size]


class TarArchive:
    """The plain files in a tar file, sorted by name, without a top folder that holds all of them.

    A compressed archive is decompressed to a temporary file first. Nothing is ever written under a name from the
    archive. Links and devices are left out.
    """

    def __init__(self, path: str, name: str, progress: Progress | None = None) -> None:
        self.name = name
        self._file = UnchangingFile(path, name)
        if first_bytes(path).startswith(GZIP):
            copy = unpacked(self._file, progress)
            copy.remove_with(self)
            self._file = UnchangingFile(copy.path, name)
        self.skipped: list[tuple[str, str]] = []
        members = sorted(self._members(), key=lambda member: member[0].split("/"))
        tops = {name.partition("/")[0] if "/" in name else None for name, _, _ in members}
        shared = tops.pop() if len(tops) == 1 else None  # a folder that holds all files
        self.names = [name if shared is None else name[len(shared) + 1 :] for name, _, _ in members]
        self._offsets = [offset for _, offset, _ in members]
        self.sizes = [size for _, _, size in members]

    def _members(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name, the offset and the size of each document."""
        end = self._file.state.size
        try:
            with self._file.unchanged(), open(self._file.path, "rb") as raw:
                with tarfile.open(fileobj=TarHeaders(raw, self.name), mode="r:") as archive:
                    while (found := archive.next()) is not None:
                        archive.members.clear()  # type: ignore[attr-defined]  # otherwise it would keep them all
                        parts = [readable(part) for part in found.name.split("/") if part not in ("", ".", "..")]
                        name = "/".join(parts)
                        if found.isdir() or not parts or any(map(is_hidden, parts)):
                            continue
                        if not found.isreg() or found.issparse():
                            self.skipped.append((name, "no plain file"))
                            continue
                        if found.offset_data + found.size > end:
                            raise DataError(
                                f"{self.name} ends inside {name!r}: it is cut short. Copy or download it again."
                            )
                        yield name, found.offset_data, found.size
                    stopped = archive.offset
                raw.seek(stopped)
                if raw.read(HEADER).strip(b"\0"):
                    raise DataError(
                        f"{self.name}, a tar file, is damaged at byte {stopped:,}. Copy or download it again."
                    )
        except DataError:
            raise
        except (tarfile.TarError, ValueError, EOFError) as error:
            raise DataError(f"{self.name} is a damaged tar file: {error}. Copy or download it again.") from None

    def read(self, places: Sequence[int]) -> Iterator[bytes | OSError]:
        with self._file.unchanged(), open(self._file.path, "rb") as file:
            for place in places:
                file.seek(self._offsets[place])
                size = self.sizes[place]
                yield _document(file.read(_enough(size)), size, f"{self.names[place]} in {self.name}")


class TarHeaders(io.BufferedIOBase):
    """A tar file for `tarfile` that limits the length of names."""

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


def unpacked(file: UnchangingFile, progress: Progress | None = None) -> Spool:
    with file.unchanged(), open(file.path, "rb") as raw:

        def blocks() -> Iterator[bytes]:
            for block in unpacked_blocks(raw, file.name):
                yield block
                if progress is not None:
                    progress(raw.tell(), file.state.size)

        return spool(blocks(), file.name)


def archive_of(path: str, name: str, progress: Progress | None = None) -> Archive | None:
    if os.path.isdir(path):
        return FolderArchive(path)
    return TarArchive(path, name, progress) if is_tar(path) else None


def is_tar(path: str) -> bool:
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
    return name.startswith(".") or name in SIDECARS


def readable(name: str) -> str:
    """Return a file's name as text: its bytes as UTF-8, else as Latin-1."""
    return recoded(name.encode("utf-8", "surrogateescape"))[0].decode()


def _reason(error: OSError) -> str:
    reason = error.strerror or str(error)
    return reason[:1].lower() + reason[1:]


# -- documents as a table: a folder with a subfolder per class, a tar file of one, the lines of a file, a whole file

CLASS, FILE = "class", "file"
"""The columns of a folder in addition to the document: its subfolder, and its path."""

PIECE_DOCUMENTS = 2_048
PIECE_BYTES = 32 << 20
"""Most documents of a piece, and bytes after which it ends."""

TABLES = (".csv", ".tsv")
"""Extensions of files that are tables: a folder of nothing else gets a note."""

MOST_BINARY = 0.25
"""Share of lines with a NUL byte above which a file is binary."""

SHOWN = 80
"""Most characters of a name in a note."""

LOOKED_AT = 256
"""Documents, evenly spread, that decide the kinds of columns."""

HELD_BYTES = 64 << 20
"""Bytes of checked documents that are kept until the first pass, so that small folders are read once."""


class DocumentsSource(Source):
    """The documents of a folder or a tar file, sorted by name.

    `default_target` is "class" if there are subfolders. `text` is the name of the column of documents. Every document
    is read once when the source is opened, to leave out binary files and to count those that are not UTF-8.
    """

    chunk_rows = PIECE_DOCUMENTS

    def __init__(self, archive: Archive, text: str = TEXT, progress: Progress | None = None) -> None:
        self.archive, self.text = archive, text
        self.aside = tuple(key for key in (CLASS, FILE) if key != text)
        self.keys = [text, *self.aside]
        self.kinds = {text: "text"}
        self.whys = {text: "documents"}
        self._held: dict[int, Any] = {}
        self._unreadable = [(name, why) for name, why in archive.skipped if why != AGAIN]
        self._binary: list[str] = []
        self._latin = self._wide = 0
        self._places: list[int] = []
        self._spans: list[tuple[int, int]] = []
        self._check(progress)
        if not self._places:
            why = "; ".join(self._left_out()) or "there is no file in it"
            raise DataError(f"{archive.name} holds no documents: {why}. Name a folder of text files.")
        self.n_rows = len(self._places)
        self.files = [archive.names[place] for place in self._places]
        self.classes = [name.partition("/")[0] if "/" in name else None for name in self.files]
        self.default_target = CLASS if any(self.classes) else None
        self.notes = tuple(self._notes())

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_held": {}}  # a copy in another process reads the documents it needs

    def _check(self, progress: Progress | None) -> None:
        """Read every document once to decide which of them are rows and where pieces end."""
        sizes = self.archive.sizes
        total, done, length = sum(sizes), 0, 0
        piece: list[bytes] = []
        for place, raw in enumerate(self.archive.read(range(len(sizes)))):
            done, name = done + sizes[place], self.archive.names[place]
            if isinstance(raw, OSError):
                self._unreadable.append((name, (raw.strerror or str(raw)).lower()))
                continue
            if b"\0" in raw:
                self._binary.append(name)
                self._wide += raw.startswith(WIDE)
                continue
            document, latin = as_utf8(raw)
            self._latin += latin
            self._places.append(place)
            piece.append(document)
            length += len(document)
            if len(piece) == PIECE_DOCUMENTS or length > PIECE_BYTES:
                self._end_piece(piece, done)
                piece, length = [], 0
                if progress is not None:
                    progress(done, total)
        if piece:
            self._end_piece(piece, done)

    def _end_piece(self, piece: list[bytes], done: int) -> None:
        start = self._spans[-1][1] if self._spans else 0
        self._spans.append((start, start + len(piece)))
        if done <= HELD_BYTES:
            self._held[start] = Words.of_bytes(piece).to_arrow()

    def _left_out(self) -> Iterator[str]:
        if self._binary:
            hold = wording.count(len(self._binary), "file holds", "files hold")
            yield f"{hold} NUL bytes, left out as binary: {_some(self._binary)}"
        if self._wide:
            begin = wording.count(self._wide, "of them begins", "of them begin")
            yield f"{begin} like UTF-16, to be used once converted to UTF-8"
        if self._unreadable:
            shown = [f"{name}: {why}" for name, why in self._unreadable]
            yield f"{wording.count(len(shown), 'file', 'files')} cannot be read, left out: {_some(shown)}"

    def _notes(self) -> Iterator[str]:
        if self._latin:
            yield latin_note(self._latin, "document")
        yield from self._left_out()
        again = [name for name, why in self.archive.skipped if why == AGAIN]
        if again:
            lead = wording.count(len(again), "link leads", "links lead")
            yield f"{lead} to folders that are read anyway, and not followed: {_some(again)}"
        if all(name.lower().endswith(TABLES) for name in self.files):
            yield f"each file is read as one document; for a table, name it: {self.files[0]}"
        top = self.classes[0]
        nested = top is not None and {*self.classes} == {top} and all(name.count("/") > 1 for name in self.files)
        if nested and isinstance(self.archive, FolderArchive):
            inside = os.path.join(self.archive.name, str(top))
            yield f"all documents are in folders of {top!r}; to use those as classes: {inside}"
        loose = sum(folder is None for folder in self.classes)
        if self.default_target is not None and loose:
            lie = wording.count(loose, "document lies", "documents lie")
            yield f"{lie} outside of the sub-folders, without a class"

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        step = max(1, len(self._places) // LOOKED_AT)
        rows = range(0, len(self._places), step)[:LOOKED_AT]
        sizes = accumulate(self.archive.sizes[self._places[row]] for row in rows)
        return self._columns(keys, rows[: max(1, sum(size <= PIECE_BYTES for size in sizes))])

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        for start, stop in self._spans:
            yield TablePiece(start, stop - start, partial(self._load, wanted, start, stop))

    def _load(self, wanted: Mapping[Key, Wanted], start: int, stop: int) -> Mapping[Key, Any]:
        held = self._held.pop(start, None) if self.text in wanted else None
        return self._columns(wanted, range(start, stop), held)

    def _columns(self, keys: Iterable[Key], rows: range, held: Any = None) -> dict[Key, Any]:
        columns: dict[Key, Any] = {}
        for key in keys:
            if key != self.text:
                names = self.classes if key == CLASS else self.files
                columns[key] = pa.array([names[row] for row in rows], pa.string())
                continue
            documents = []
            places = () if held is not None else [self._places[row] for row in rows]
            for row, raw in zip(rows, self.archive.read(places), strict=False):
                if isinstance(raw, OSError):
                    raise DataError(f"{self.files[row]} in {self.archive.name} can no longer be read. Try again.")
                documents.append(as_utf8(raw)[0])
            columns[key] = Words.of_bytes(documents).to_arrow() if held is None else held
        return columns


def _some(names: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(name if len(name) <= SHOWN else f"{name[:30]}...{name[-30:]}" for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ..."


def latin_note(count: int, noun: str) -> str:
    return f"{wording.count(count, f'{noun} was', f'{noun}s were')} not UTF-8 and read as Latin-1"


class LinesSource(Source):
    """The lines of a file as documents; an empty line is an empty document, so that results match lines."""

    chunk_rows = PIECE_DOCUMENTS

    def __init__(self, file: TextFile, text: str = TEXT) -> None:
        self.file, self.text = file, text
        self.keys = [text]
        self.kinds = {text: "text"}
        self.whys = {text: "lines"}
        self.n_rows: int | None = 0
        latin = binary = 0
        for lines in self._runs(quiet=True):
            self.n_rows += len(lines)
            latin += sum(recoded(line)[1] for line in lines)
            binary += sum(b"\0" in line for line in lines)
        if not self.n_rows:
            raise DataError(f"{file.name} is empty: it holds no lines to read as documents.")
        if binary > MOST_BINARY * self.n_rows:
            raise DataError(
                f"{file.name} is binary: {binary:,} of its {self.n_rows:,} lines hold NUL bytes. Name a file of text."
            )
        latins = [latin_note(latin, "line")] if latin else []
        self.notes = (*latins, *([f"lines with NUL bytes, which part words: {binary:,}"] if binary else []))

    def _runs(self, *, quiet: bool = False) -> Iterator[list[bytes]]:
        lines: list[bytes] = []
        length = 0
        for line in lines_of(self.file.blocks(quiet=quiet), self.file.name):
            lines.append(line)
            length += len(line)
            if len(lines) == PIECE_DOCUMENTS or length > PIECE_BYTES:
                yield lines
                lines, length = [], 0
        if lines:
            yield lines

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        return _lines_as(keys, next(self._runs(quiet=True))[:LOOKED_AT])

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        start = 0
        for lines in self._runs():
            yield TablePiece(start, len(lines), partial(_lines_as, list(wanted), lines))
            start += len(lines)


def _lines_as(keys: Sequence[Key], lines: Sequence[bytes]) -> Mapping[Key, Any]:
    return {key: Words.of_bytes([recoded(line)[0] for line in lines]).to_arrow() for key in keys}


def lines_of(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    r"""Yield the lines of blocks of bytes, without their line ends (newline, or return and newline).

    >>> list(lines_of([b"one\r\ntw", b"o\n\nlast"], "here"))
    [b'one', b'two', b'', b'last']
    """
    held: list[bytes] = []
    length = done = 0
    for block in blocks:
        first, *others = block.split(b"\n")
        held.append(first)
        length += len(first)
        if length > LONGEST:
            raise too_long(f"line {done + 1:,} of {name}")
        if others:
            yield b"".join(held).removesuffix(b"\r")
            yield from (line.removesuffix(b"\r") for line in others[:-1])
            held, length, done = [others[-1]], len(others[-1]), done + len(others)
    last = b"".join(held)
    if last:
        yield last.removesuffix(b"\r")


def one_document(file: TextFile, text: str = TEXT) -> ArrowSource:
    """Return a whole file as a table of one document; an empty file is an empty document."""
    raw = file.whole()
    if b"\0" in raw:
        raise DataError(f"{file.name} holds NUL bytes: it is binary, and no document. Name a file of text.")
    document, latin = recoded(raw)
    notes = ("the document is not UTF-8 and was read as Latin-1",) if latin else ()
    return ArrowSource(pa.table({text: Words.of_bytes([document]).to_arrow()}), notes=notes)
