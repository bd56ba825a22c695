"""Opening any data as a source of rows: by content, never by file name; several files as one table."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from softcount.core.lazy import pa
from softcount.core.remedies import POSTGRES
from softcount.errors import DataError
from softcount.sources import frames, wording
from softcount.sources.arrow_files import ARROW_MAGIC, PARQUET_MAGIC, ArrowFileSource, ParquetSource, stream_source
from softcount.sources.bytestream import Progress, TextFile, first_bytes, is_passing, spooled
from softcount.sources.csv_file import CsvSource
from softcount.sources.databases import part_source
from softcount.sources.documents import DocumentsSource, archive_of
from softcount.sources.json_and_arff import declared_source, json_source
from softcount.sources.source import (
    CONTENT_DECIDES,
    LOOK_ROWS,
    FileFormat,
    Key,
    Source,
    TablePiece,
    Wanted,
    chunk_rows_for,
    look_rows_for,
)


def open_source(data: Any, missing: tuple[str, ...], form: FileFormat, progress: Progress | None) -> Source:
    """Return a source of rows from a path, a frame, an array, a sparse matrix, or a mapping; a source unchanged."""
    make = partial(file_source, missing=missing, form=form, progress=progress)
    if isinstance(data, str | os.PathLike):
        return from_path(os.fsdecode(data), make, form)
    if isinstance(data, list | tuple) and data and all(isinstance(file, os.PathLike) for file in data):
        files = [os.fsdecode(file) for file in data]
        return JoinedSource([from_path(file, make) for file in files], files, form.file_column)
    return frames.source_in_memory(data) or stream_source(data)


def from_path(path: str, make: Callable[[str, str], Source], form: FileFormat = CONTENT_DECIDES) -> Source:
    """Open a path with `make(path, name)`; a pipe is copied to a temporary file that lives as long as the source.

    A glob pattern means all files that match it, a folder of table files all files in it, and `data.db::table` a table
    of a database.
    """
    if path.startswith(POSTGRES):
        found = part_source(path)
        assert found is not None
        return found
    parts = table_parts(path)
    files, partitions = [file for file, _ in parts], [partition for _, partition in parts]
    if not parts and glob.has_magic(path) and not os.path.lexists(path):
        files = sorted(file for file in glob.glob(path) if os.path.isfile(file))
        if not files:
            raise DataError(f"no file matches {path}.")
    if files or form.file_column is not None:
        files = files or [path]
        return JoinedSource([from_path(file, make) for file in files], files, form.file_column, partitions)
    if not is_passing(path):
        part = part_source(path)
        if part is None:
            return make(path, path)
        part.form = form
        return part
    copy = spooled(path)
    try:
        source = make(copy.path, "standard input" if path == "-" else path)
    except BaseException:
        copy.remove()
        raise
    copy.remove_with(source)
    return source


def file_source(path: str, name: str, missing: tuple[str, ...], form: FileFormat, progress: Progress | None) -> Source:
    """Return the source of a file of rows, or of a folder or tar file of documents."""
    archive = archive_of(path, name, progress)
    if archive is not None:
        return DocumentsSource(archive, progress=progress)
    if first_bytes(path, len(PARQUET_MAGIC)) == PARQUET_MAGIC:
        return ParquetSource(path, name, progress)
    if first_bytes(path, len(ARROW_MAGIC)) == ARROW_MAGIC:
        return ArrowFileSource(path, name)
    file = TextFile(path, name, progress, form.encoding)
    notes = file.detect_encoding()
    found: Source = declared_source(file) or json_source(file) or CsvSource(file, missing, form)
    found.form = form
    found.notes = (*notes, *found.notes)
    return found


# -- several files as one table

Constant = str | int | None


def _with_constants(
    load: Callable[[], Mapping[Key, Any]], constants: Mapping[Key, Constant], count: int
) -> Mapping[Key, Any]:
    return {**load(), **{key: _repeated(value, count) for key, value in constants.items()}}


def _scalar(value: Constant) -> Any:
    return pa.scalar(value, pa.int64() if isinstance(value, int) else pa.null() if value is None else pa.string())


def _repeated(value: Constant, count: int) -> Any:
    found = pa.repeat(_scalar(value), count)
    return found.dictionary_encode() if isinstance(value, str) else found


class JoinedSource(Source):
    """The rows of several sources that have the same columns, in any order.

    `column` is for the name of a row's file; `partitions` are columns that are constant in all rows of each file.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        names: Sequence[str],
        column: str | None,
        partitions: Sequence[Mapping[str, str | None]] = (),
    ) -> None:
        first = sources[0]
        self.sources = list(sources)
        short = [os.path.basename(name) for name in names]
        names_shown = short if len(set(short)) == len(short) else list(names)
        keys = dict.fromkeys(key for each in partitions for key in each)
        typed: dict[Key, Sequence[Constant]] = {}
        for name in keys:
            values = [each.get(name) for each in partitions]
            whole = all(re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", value) for value in values if value is not None)
            typed[name] = [int(value) if whole and value is not None else value for value in values]  # 007 is a name
        self._constants: list[dict[Key, Constant]] = [
            {key: values[place] for key, values in typed.items()} | ({} if column is None else {column: name})
            for place, name in enumerate(names_shown)
        ]
        for source, name in zip(sources[1:], names[1:], strict=True):
            _refuse_unlike(first, names[0], source, name)
        own = list(self._constants[0])
        for key in own:
            if key in first.keys:
                raise DataError(f"the files have a column {key!r} of their own. Give the column of files another name.")
        self.keys = [*first.keys, *own]
        self.named, self.text_file = first.named, all(source.text_file for source in sources)
        self.kinds, self.whys, self.aside = first.kinds, first.whys, first.aside
        self.form, self.delimiter, self.verbatim = first.form, first.delimiter, first.verbatim
        self.notes = tuple(dict.fromkeys(note for source in sources for note in source.notes))
        counts = [source.n_rows for source in sources]
        self.n_rows = None if None in counts else sum(count or 0 for count in counts)
        self.chunk_rows = min(source.chunk_rows for source in sources)

    def part(self, place: int, source: Source) -> Source:
        """Return a source of some rows of one of its files, with the constants of that file; it can be pickled."""
        if not self._constants[place]:
            return source
        found = copy(self)
        found.sources, found._constants, found.n_rows = [source], [self._constants[place]], source.n_rows
        found.kinds, found.whys = dict(self.kinds), dict(self.whys)
        return found

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        wanted = [key for key in keys if key not in self._constants[0]]
        heads: list[Mapping[Key, Any]] = []
        rows = 0
        for source, constants in zip(self.sources, self._constants, strict=True):
            head = source.head(wanted)
            count = max(map(len, head.values()), default=source.n_rows or 1)
            heads.append({**head, **{key: pa.repeat(_scalar(own), count) for key, own in constants.items()}})
            rows += count
            if rows >= look_rows_for(len(self.keys)):
                break
        return {key: _concatenate(key, [head[key] for head in heads]) for key in keys}

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        own = {key: want for key, want in wanted.items() if key not in self._constants[0]}
        total = 0
        for source, constants in zip(self.sources, self._constants, strict=True):
            own_constants = {key: value for key, value in constants.items() if key in wanted}
            for piece in source.pieces(own):
                load = partial(_with_constants, piece.load, own_constants, piece.n_rows)
                yield TablePiece(total, piece.n_rows, load)
                total += piece.n_rows
        self.n_rows = total


def _concatenate(key: Key, columns: Sequence[Any]) -> Any:
    """Join the first cells of a column in all files, cast to one type."""
    try:
        return pa.chunked_array(frames.unify(columns))
    except pa.ArrowException:
        kinds = {str(column.type) for column in columns if not pa.types.is_null(column.type)}
        raise DataError(
            f"{wording.column(key)} is of different types in the files: {' and '.join(sorted(kinds))}."
        ) from None


def _refuse_unlike(first: Source, name: str, source: Source, other: str) -> None:
    known, there = set(first.keys), set(source.keys)
    missing = wording.and_others(key for key in first.keys if key not in there)
    more = wording.and_others(key for key in source.keys if key not in known)
    if missing or more:
        differences = [f"lacks {missing}"] * bool(missing) + [f"has {more} more"] * bool(more)
        raise DataError(
            f"{other} {' and '.join(differences)}, compared with {name}. Files of one table have the same columns."
        )

    for key, cells in first.types.items():
        own = source.types.get(key, cells)
        if own != cells and not {own, cells} <= _ALIKE:
            raise DataError(
                f"{wording.column(key)} of {other} holds {own}, where that of {name} holds {cells}. Files of one table "
                "have the same types: write it again, or leave it out of both."
            )


_ALIKE = {frames.CellType.WHOLE, frames.CellType.FLOAT, frames.CellType.EMPTY}
"""Cell types that may occur together in one column."""

# -- folders that hold one table in several files, as Spark and others write them

ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".arrow", ".feather")
"""Extensions of files that hold rows."""
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder whose rows have no value in its column."""


def table_parts(folder: str) -> list[tuple[str, Mapping[str, str | None]]]:
    """Return the files of a folder that holds one table, sorted by name; empty if it holds anything else.

    Each comes with the columns that the names of its folders give.

    Names that begin with a dot or an underscore are skipped (`_SUCCESS`, `.part.crc`). A folder name such as
    `year=2024` gives a column.
    """
    if not os.path.isdir(folder):
        return []
    found: list[tuple[str, Mapping[str, str | None]]] = []
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        inside = os.path.relpath(here, folder)
        pairs = [part.partition("=") for part in ([] if inside == os.curdir else inside.split(os.sep))]
        named = all(key and sign for key, sign, _ in pairs)  # a folder without an equals sign may be a class
        partition = {unquote(key): None if value == NO_VALUE else unquote(value) for key, _, value in pairs}
        for name in sorted(name for name in files if name[0] not in "._"):
            if not name.lower().endswith(ENDINGS) or not named:
                return []
            found.append((os.path.join(here, name), partition))
    return found


# -- a table in parts that workers of an engine read: files, row groups of a file, partitions


class SourcePart(Struct, frozen=True):
    """A part of a table: its source, which pickles small, or a function by which the worker makes it."""

    name: str
    source: Source | Callable[[], Source | None]
    digest: str | None = None

    def open(self) -> Source | None:
        return self.source if isinstance(self.source, Source) else self.source()


def parts_of(source: Source) -> Sequence[Any] | None:
    """Return a source as parts, whatever the number of workers; None for rows in memory."""
    if isinstance(source, PartsSource):
        return source.parts
    if isinstance(source, JoinedSource):
        found = []
        for place, file in enumerate(source.sources):
            parts = parts_of(file)
            if parts is None:
                return None
            found += [SourcePart(part.name, source.part(place, part.source)) for part in parts]
        return found
    if isinstance(source, ParquetSource):
        return [SourcePart(part.file.name, part) for part in source.stretches()]
    return [SourcePart(source.file.name, source.quietly())] if isinstance(source, CsvSource) else None


class PartsSource(Source):
    """Parts of an engine as one table: the first rows are read here, the others by workers."""

    n_rows = None
    owner: Any = None
    """The only session that can read the parts; None if any engine can."""

    def __init__(self, parts: Sequence[SourcePart]) -> None:
        self.parts: Sequence[Any] = list(parts)
        first: Source | None = next((found for part in self.parts if (found := part.open()) is not None), None)
        if first is None:
            raise DataError("the table has no rows.")
        self._first = first
        self.keys, self.named = first.keys, first.named
        self.text_file, self.verbatim = first.text_file, first.verbatim
        self.chunk_rows = chunk_rows_for(LOOK_ROWS + 1)

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        return self._first.head(keys)

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        start = 0
        for part in self.parts:
            source = part.open()
            for piece in () if source is None else source.pieces(wanted):
                yield TablePiece(start, piece.n_rows, piece.load)
                start += piece.n_rows
