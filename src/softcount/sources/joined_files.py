"""Several files as one table, one after another; the name of a row's file as a column where it is asked for."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.source import LOOK_ROWS, Key, Source, TablePiece, Wanted


def matching(path: str) -> list[str]:
    """The files that a pattern such as `part-*.csv` stands for, in the order of their names; none where it is none."""
    if os.path.lexists(path) or not glob.has_magic(path):
        return []
    found = sorted(file for file in glob.glob(path) if os.path.isfile(file))
    if not found:
        raise DataError(f"no file matches {path}.")
    return found


@dataclass(frozen=True, slots=True)
class NamedRows:
    """What a piece of one file loads, with the name of the file in a column."""

    load: Callable[[], Mapping[Key, Any]]
    column: Key | None
    name: str
    count: int

    def __call__(self) -> Mapping[Key, Any]:
        found = dict(self.load())
        return found if self.column is None else {**found, self.column: _repeated(self.name, self.count)}


def _repeated(name: str, count: int) -> Any:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([name]))


class JoinedSource(Source):
    """The rows of several sources that have the same columns, in whatever order each has them."""

    def __init__(self, sources: Sequence[Source], names: Sequence[str], column: str | None) -> None:
        first = sources[0]
        self.sources, self._names, self._column = list(sources), _short(names), column
        for source, name in zip(sources[1:], names[1:], strict=True):
            _refuse_unlike(first, names[0], source, name)
        if column in first.keys:
            raise DataError(f"the files have a column {column!r} of their own. Give the column of files another name.")
        self.keys = [*first.keys, *([] if column is None else [column])]
        self.named, self.text_file = first.named, all(source.text_file for source in sources)
        self.kinds, self.whys, self.aside = first.kinds, first.whys, first.aside
        self.form, self.delimiter, self.verbatim = first.form, first.delimiter, first.verbatim
        self.notes = tuple(dict.fromkeys(note for source in sources for note in source.notes))
        counts = [source.n_rows for source in sources]
        self.n_rows = None if None in counts else sum(count or 0 for count in counts)
        self.chunk_rows = min(source.chunk_rows for source in sources)

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        import pyarrow as pa

        wanted = [key for key in keys if key != self._column]
        heads: list[Mapping[Key, Any]] = []
        counts: list[int] = []
        for source in self.sources:
            heads.append(source.head(wanted))
            counts.append(max((len(column) for column in heads[-1].values()), default=source.n_rows or 1))
            if sum(counts) >= LOOK_ROWS:
                break
        found = {key: _joined(key, [head[key] for head in heads]) for key in wanted}
        if self._column in keys:
            names = zip(self._names, counts, strict=False)
            found[self._column] = pa.chunked_array([_repeated(name, count).cast(pa.string()) for name, count in names])
        return found

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        own = {key: want for key, want in wanted.items() if key != self._column}
        column = self._column if self._column in wanted else None
        total = 0
        for source, name in zip(self.sources, self._names, strict=True):
            for piece in source.pieces(own):
                yield TablePiece(total, piece.n_rows, NamedRows(piece.load, column, name, piece.n_rows))
                total += piece.n_rows
        self.n_rows = total


def _joined(key: Key, columns: Sequence[Any]) -> Any:
    """The first cells of a column in all files, of one type."""
    import pyarrow as pa

    parts = [pa.chunked_array(column) if isinstance(column, pa.Array) else column for column in columns]
    kinds = {part.type for part in parts}
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


def _without(source: Source, other: Source) -> list[Key]:
    return [key for key in source.keys if key not in set(other.keys)]


def _short(names: Sequence[str]) -> list[str]:
    """Files by their own names, where these tell them apart."""
    short = [os.path.basename(name) for name in names]
    return short if len(set(short)) == len(short) else list(names)
