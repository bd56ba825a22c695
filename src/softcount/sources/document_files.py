"""Documents as a table: a folder with a sub-folder per class, a tar file of one, the lines of a file, a whole file.

A document whose bytes are valid UTF-8 is read as UTF-8, any other as Latin-1, which is counted in a note. A file with a
NUL byte is binary and left out, which is noted too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from softcount.errors import DataError
from softcount.sources.archives import AGAIN, Archive, FolderArchive
from softcount.sources.bytestream import LONGEST, Progress, TextFile, as_utf8, recoded, too_long
from softcount.sources.frames import TEXT
from softcount.sources.in_memory import ArrowSource
from softcount.sources.source import Key, Source, TablePiece, Wanted
from softcount.text import Words

CLASS, FILE = "class", "file"
"""The columns of a folder besides the document: the sub-folder it is in, and its path from the folder."""

PIECE_DOCUMENTS = 2_048
PIECE_BYTES = 32 << 20
"""A piece has so many documents at most, and ends after the one that takes it beyond so many bytes."""

TABLES = (".csv", ".tsv")
"""Endings of files that are no documents, if it is all there is."""

MOST_BINARY = 0.25
"""The share of lines with a NUL byte above which a file is binary rather than lines."""

WIDE = (b"\xff\xfe", b"\xfe\xff")
"""How UTF-16 begins."""

SHOWN = 80
"""Characters of a name that a note has."""

LOOKED_AT = 256
"""Documents, evenly spread, that are looked at."""

HELD_BYTES = 64 << 20
"""Bytes of checked documents kept until they are asked for the first time, so that few folders are read twice."""


class DocumentsSource(Source):
    """The documents of a folder or a tar file, in the order of their names.

    `default_target` is "class" where there are sub-folders. `text` is what to call the column of documents.
    Every document is read once when the source is opened, to leave out binary files and to count what is not UTF-8.
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
        """Read every document once, and settle which of them are rows and where the pieces end."""
        sizes = self.archive.sizes
        total, done, length = sum(sizes), 0, 0
        piece: list[bytes] = []
        for place, raw in enumerate(self.archive.read(range(len(sizes)))):
            document = self._checked(place, raw)
            done += sizes[place]
            if document is None:
                continue
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

    def _checked(self, place: int, raw: bytes | OSError) -> bytes | None:
        """A document as UTF-8; None for what is no document, which is written down."""
        name = self.archive.names[place]
        if isinstance(raw, OSError):
            self._unreadable.append((name, (raw.strerror or str(raw)).lower()))
            return None
        if b"\0" in raw:
            self._binary.append(name)
            self._wide += raw.startswith(WIDE)
            return None
        document, latin = as_utf8(raw)
        self._latin += latin
        return document

    def _end_piece(self, piece: list[bytes], done: int) -> None:
        start = self._spans[-1][1] if self._spans else 0
        self._spans.append((start, start + len(piece)))
        if done <= HELD_BYTES:
            self._held[start] = strings(piece)

    def _left_out(self) -> Iterator[str]:
        if self._binary:
            yield f"{_files(self._binary, 'holds', 'hold')} NUL bytes, left out as binary: {_some(self._binary)}"
        if self._wide:
            begin = "1 of them begins" if self._wide == 1 else f"{self._wide:,} of them begin"
            yield f"{begin} like UTF-16, to be used once converted to UTF-8"
        if self._unreadable:
            shown = [f"{name}: {why}" for name, why in self._unreadable]
            yield f"{_files(shown, 'cannot', 'cannot')} be read, left out: {_some(shown)}"

    def _notes(self) -> Iterator[str]:
        if self._latin:
            yield latin_note(self._latin, "document")
        yield from self._left_out()
        again = [name for name, why in self.archive.skipped if why == AGAIN]
        if again:
            lead = "1 link leads" if len(again) == 1 else f"{len(again):,} links lead"
            yield f"{lead} to folders that are read anyway, and not followed: {_some(again)}"
        if all(name.lower().endswith(TABLES) for name in self.files):
            yield f"each file is read as one document; for a table, name it: {self.files[0]}"
        yield from self._one_folder()
        loose = sum(folder is None for folder in self.classes)
        if self.default_target is not None and loose:
            lie = "1 document lies" if loose == 1 else f"{loose:,} documents lie"
            yield f"{lie} beside the sub-folders, without a class"

    def _one_folder(self) -> Iterator[str]:
        """Where everything lies in the folders of one folder, those may be the classes that were meant."""
        top = self.classes[0]
        if top is None or {*self.classes} != {top} or not all(name.count("/") > 1 for name in self.files):
            return
        if isinstance(self.archive, FolderArchive):
            inside = os.path.join(self.archive.name, top)
            yield f"all documents are in folders of {top!r}; to tell those apart: {inside}"

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
        import pyarrow as pa

        columns: dict[Key, Any] = {}
        for key in keys:
            if key == self.text:
                columns[key] = self._documents(rows) if held is None else held
            else:
                names = self.classes if key == CLASS else self.files
                columns[key] = pa.array([names[row] for row in rows], pa.string())
        return columns

    def _documents(self, rows: range) -> Any:
        found = []
        for row, raw in zip(rows, self.archive.read([self._places[row] for row in rows]), strict=True):
            if isinstance(raw, OSError):
                raise DataError(f"{self.files[row]} in {self.archive.name} can no longer be read. Try again.")
            found.append(as_utf8(raw)[0])
        return strings(found)


def _files(names: Sequence[str], one: str, several: str) -> str:
    return f"1 file {one}" if len(names) == 1 else f"{len(names):,} files {several}"


def _some(names: Sequence[str], most: int = 3) -> str:
    """The first few names, long ones without their middle."""
    shown = ", ".join(name if len(name) <= SHOWN else f"{name[:30]}...{name[-30:]}" for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ..."


def latin_note(count: int, noun: str) -> str:
    """How many documents or lines were read as Latin-1, in a sentence."""
    were = f"1 {noun} was" if count == 1 else f"{count:,} {noun}s were"
    return f"{were} not UTF-8 and read as Latin-1"


def strings(documents: Sequence[bytes]) -> Any:
    """Documents in UTF-8 as one Arrow array, without a Python string for any."""
    return Words.of_bytes(documents).to_arrow()


class LinesSource(Source):
    """Each line of a file is a document; an empty line is an empty one, so that answers stay in step with lines."""

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
        """The lines, a piece at a time."""
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
    return {key: strings([recoded(line)[0] for line in lines]) for key in keys}


def lines_of(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    r"""The lines of blocks of bytes, without their ends (newline, or return and newline).

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
    """The whole of a file as a table of one document; an empty file is an empty document."""
    import pyarrow as pa

    raw = file.whole()
    if b"\0" in raw:
        raise DataError(f"{file.name} holds NUL bytes: it is binary, and no document. Name a file of text.")
    document, latin = recoded(raw)
    notes = ("the document is not UTF-8 and was read as Latin-1",) if latin else ()
    return ArrowSource(pa.table({text: strings([document])}), notes=notes)
