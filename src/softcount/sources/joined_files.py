"""Several files as one table: folders, patterns and partitions."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple
from urllib.parse import unquote

from msgspec import Struct

from softcount.core.lazy import pa
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.arrow_columns import CellType
from softcount.sources.arrow_files import ParquetSource
from softcount.sources.csv_file import CsvSource
from softcount.sources.source import LOOK_ROWS, Key, Source, TablePiece, Wanted, chunk_rows_for, look_rows_for


def matching(path: str) -> list[str]:
    """The files that a pattern such as `part-*.csv` stands for, in the order of their names; none where it is none."""
    if os.path.lexists(path) or not glob.has_magic(path):
        return []
    found = sorted(file for file in glob.glob(path) if os.path.isfile(file))
    if not found:
        raise DataError(f"no file matches {path}.")
    return found


Constant = str | int | None


class NamedRows(Struct, frozen=True):
    """What a piece of one file loads, with what is the same in all its rows in columns of their own."""

    load: Callable[[], Mapping[Key, Any]]
    said: Mapping[Key, Constant]
    count: int

    def __call__(self) -> Mapping[Key, Any]:
        return {**self.load(), **{key: _repeated(value, self.count) for key, value in self.said.items()}}


def _repeated(value: Constant, count: int) -> Any:
    if not isinstance(value, str):
        return pa.repeat(pa.scalar(value, pa.int64()), count) if value is not None else pa.nulls(count)
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([value]))


def _in_column(value: Constant, count: int) -> Any:
    cells = _repeated(value, count)
    return cells.cast(pa.string()) if isinstance(value, str) else cells


class JoinedSource(Source):
    """The rows of several sources that have the same columns, in whatever order each has them.

    `column` is for the name of a row's file; `said` is what else is known of all rows of each.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        names: Sequence[str],
        column: str | None,
        said: Sequence[Mapping[str, str | None]] = (),
    ) -> None:
        first = sources[0]
        self.sources = list(sources)
        short = [os.path.basename(name) for name in names]
        self._said = _constants(short if len(set(short)) == len(short) else list(names), column, said)
        for source, name in zip(sources[1:], names[1:], strict=True):
            _refuse_unlike(first, names[0], source, name)
        own = list(self._said[0])
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

    def beside(self, place: int, source: Source) -> Source:
        """Some rows of one of its files, with what is the same in all rows of that; a source that pickles."""
        if not self._said[place]:
            return source
        found = copy(self)
        found.sources, found._said, found.n_rows = [source], [self._said[place]], source.n_rows
        found.kinds, found.whys = dict(self.kinds), dict(self.whys)
        return found

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        wanted = [key for key in keys if key not in self._said[0]]
        heads: list[Mapping[Key, Any]] = []
        counts: list[int] = []
        for source in self.sources:
            heads.append(source.head(wanted))
            counts.append(max((len(column) for column in heads[-1].values()), default=source.n_rows or 1))
            if sum(counts) >= look_rows_for(len(self.keys)):
                break
        found = {key: _joined(key, [head[key] for head in heads]) for key in wanted}
        for key in [key for key in keys if key in self._said[0]]:
            cells = [_in_column(said[key], count) for said, count in zip(self._said, counts, strict=False)]
            found[key] = _joined(key, cells)
        return found

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        own = {key: want for key, want in wanted.items() if key not in self._said[0]}
        total = 0
        for source, said in zip(self.sources, self._said, strict=True):
            asked = {key: value for key, value in said.items() if key in wanted}
            for piece in source.pieces(own):
                yield TablePiece(total, piece.n_rows, NamedRows(piece.load, asked, piece.n_rows))
                total += piece.n_rows
        self.n_rows = total


def _constants(
    names: Sequence[str], column: str | None, said: Sequence[Mapping[str, str | None]]
) -> list[dict[Key, Constant]]:
    """What is the same in all rows of each file: its name, where that is asked for, and what its folders say."""
    keys = list(dict.fromkeys(key for each in said for key in each))
    cells = {key: [each.get(key) for each in said] for key in keys}
    typed = {key: _whole(values) for key, values in cells.items()}
    found: list[dict[Key, Constant]] = []
    for place, name in enumerate(names):
        own: dict[Key, Constant] = {key: values[place] for key, values in typed.items()}
        found.append(own if column is None else {**own, column: name})
    return found


def _whole(values: Sequence[str | None]) -> Sequence[Constant]:
    """Whole numbers where all values are some; 007 is a name."""
    known = [value for value in values if value is not None]
    if not all(re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", value) for value in known):
        return values
    return [None if value is None else int(value) for value in values]


def _joined(key: Key, columns: Sequence[Any]) -> Any:
    """The first cells of a column in all files, of one type."""
    parts = [pa.chunked_array([column]) if isinstance(column, pa.Array) else column for column in columns]
    kinds = {part.type for part in parts if not pa.types.is_null(part.type)}
    if len(kinds) == 1:
        parts = [part.cast(next(iter(kinds))) for part in parts]
    if len(kinds) > 1:
        try:
            parts = [part.cast(pa.float64()) for part in parts]
        except pa.ArrowException:
            said = " and ".join(sorted(map(str, kinds)))
            raise DataError(f"{wording.column(key)} is of different types in the files: {said}.") from None
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def _refuse_unlike(first: Source, name: str, source: Source, other: str) -> None:
    lacking, more = (wording.and_others(x) for x in (_without(first, source), _without(source, first)))
    if lacking or more:
        said = [f"lacks {lacking}"] * bool(lacking) + [f"has {more} more"] * bool(more)
        raise DataError(
            f"{other} {' and '.join(said)}, compared with {name}. Files of one table have the same columns."
        )

    for key, cells in first.types.items():
        own = source.types.get(key, cells)
        if own != cells and not {own, cells} <= _ALIKE:
            raise DataError(
                f"{wording.column(key)} of {other} holds {own}, where that of {name} holds {cells}. Files of one table "
                "have the same types: write it again, or leave it out of both."
            )


_ALIKE = {CellType.WHOLE, CellType.FLOAT, CellType.EMPTY}
"""Cells that may stand in one column."""


def _without(source: Source, other: Source) -> list[Key]:
    return [key for key in source.keys if key not in set(other.keys)]


# Folders that hold one table in several files, as Spark and others write them.

ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".arrow", ".feather")
"""How files that hold rows are named."""
NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""What a folder is called whose rows have nothing in its column."""


class TablePart(NamedTuple):
    """A file of a table, and what the names of the folders it is in say of all its rows."""

    path: str
    said: Mapping[str, str | None]


def table_parts(folder: str) -> list[TablePart]:
    """The files of a folder that holds one table, in the order of their names; none where it holds anything else.

    Names that begin with a dot or an underscore are nobody's rows (`_SUCCESS`, `.part.crc`). The name of a folder such
    as `year=2024` is a column.
    """
    if not os.path.isdir(folder):
        return []
    found: list[TablePart] = []
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        inside = os.path.relpath(here, folder)
        said = _said([] if inside == os.curdir else inside.split(os.sep))
        for name in sorted(name for name in files if name[0] not in "._"):
            if not name.lower().endswith(ENDINGS) or said is None:
                return []
            found.append(TablePart(os.path.join(here, name), said))
    return found


def _said(names: Sequence[str]) -> dict[str, str | None] | None:
    """The columns that names of folders are; None where one is no column and its value, and so perhaps a class."""
    found: dict[str, str | None] = {}
    for name in names:
        key, sign, value = name.partition("=")
        if not (sign and key):
            return None
        found[unquote(key)] = None if value == NOTHING else unquote(value)
    return found


# A table in parts that others can read by themselves: files, stretches of a file, and what an engine has.


class OpenedPart(Struct, frozen=True):
    """A part by a source that pickles small: a path, and the state of the file when it was opened."""

    name: str
    source: Source
    digest: str | None = None

    def open(self) -> Source:
        return self.source


class MadePart(Struct, frozen=True):
    """A part that `make`, which pickles, makes where it is needed."""

    name: str
    make: Callable[[], Source | None]
    digest: str | None = None

    def open(self) -> Source | None:
        return self.make()


def parts_of(source: Source) -> Sequence[Any] | None:
    """A source as parts, by nothing but what it holds: not by how many workers there are. None for rows in memory."""
    if isinstance(source, PartsSource):
        return source.parts
    if isinstance(source, JoinedSource):
        found = []
        for place, file in enumerate(source.sources):
            parts = parts_of(file)
            if parts is None:
                return None
            found += [OpenedPart(part.name, source.beside(place, part.source)) for part in parts]
        return found
    if isinstance(source, ParquetSource):
        return [OpenedPart(part.file.name, part) for part in source.stretches()]
    return [OpenedPart(source.file.name, source.quietly())] if isinstance(source, CsvSource) else None


class PartsSource(Source):
    """Parts that an engine has, as one table: the first rows are looked at here, the others where they are."""

    n_rows = None
    owner: Any = None
    """The session that alone can read the parts; None where any engine can."""

    def __init__(self, parts: Sequence[MadePart]) -> None:
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
