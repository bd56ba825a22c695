"""A table in parts that others can read by themselves: files, stretches of a file, and what an engine has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from softcount.errors import DataError
from softcount.records import dataclass
from softcount.sources.csv_file import CsvSource
from softcount.sources.joined_files import JoinedSource
from softcount.sources.parquet import ParquetSource
from softcount.sources.source import LOOK_ROWS, Key, Source, TablePiece, Wanted, chunk_rows_for


@dataclass(frozen=True, slots=True)
class OpenedPart:
    """A part by a source that pickles small: a path, and the state of the file when it was opened."""

    name: str
    source: Source
    digest: str | None = None

    def open(self) -> Source:
        return self.source


@dataclass(frozen=True, slots=True)
class MadePart:
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
        return _parts_of_files(source)
    if isinstance(source, ParquetSource):
        return [OpenedPart(part.file.name, part) for part in source.stretches()]
    return [OpenedPart(source.file.name, source.quietly())] if isinstance(source, CsvSource) else None


def _parts_of_files(source: JoinedSource) -> Sequence[Any] | None:
    found = []
    for place, file in enumerate(source.sources):
        parts = parts_of(file)
        if parts is None:
            return None
        found += [OpenedPart(part.name, source.beside(place, part.source)) for part in parts]
    return found


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
