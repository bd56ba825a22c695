"""Where rows come from: anything that can hand over its columns, chunk by chunk, as often as asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from softcount.errors import DataError
from softcount.table.schema import Key

FEW_ROWS = 65_536
"""Tables up to this size are cut into small chunks, so that several threads have something to do."""

LOOK_ROWS = FEW_ROWS
"""Rows of a file or frame that are looked at to decide its kinds."""


CHUNK_TEXT = 8 << 20
"""Bytes of text that a chunk may hold: a document of one kilobyte becomes two of counts."""


def chunk_rows_for(n_rows: int, row_bytes: float = 0.0, most: int = CHUNK_TEXT) -> int:
    """Rows per chunk: fixed by the table alone, so that no batching or thread count changes a sum.

    Its length says how many; where rows are of so many bytes that a chunk would have more than `most`, there are fewer.
    """
    rows = 4_096 if n_rows <= FEW_ROWS else 32_768
    while rows > 64 and rows * row_bytes > most:
        rows //= 2
    return rows


class Wanted(NamedTuple):
    """A column asked of a source: as numbers or as distinct values, and whether leading zeros may be ignored.

    `text` asks for the cells as they stand: few of them will be alike.
    """

    numeric: bool
    padded: bool = False
    text: bool = False


class Piece(NamedTuple):
    """One chunk of rows not read yet; `load` reads it, in any thread and as often as called."""

    start: int
    n_rows: int
    load: Callable[[], Any]


class Source(Protocol):
    """Rows that can be read again and again.

    `named`: columns have names. `text_file`: cells come from a text file. `notes`: what its owner should know.
    What is known of the columns whatever their cells look like is said as in `PlainRows`.
    """

    keys: list[Key]
    named: bool
    text_file: bool
    n_rows: int | None
    chunk_rows: int
    notes: tuple[str, ...]
    kinds: Mapping[Key, str]
    whys: Mapping[Key, str]
    aside: tuple[Key, ...]
    default_target: str | None
    files: Sequence[str]

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        """These columns of the first rows, as Arrow arrays."""
        ...

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[Piece]:
        """All rows in chunks; what a piece loads is a mapping of the wanted columns to Arrow arrays."""
        ...


class PlainRows:
    """A source that knows of its columns only what their cells show.

    `kinds` are what columns are, and `whys` the reason to give. Columns `aside` are no features unless declared so.
    `default_target` is what to predict where nobody said. `files` are those that the rows are, where each is one.
    """

    kinds: Mapping[Key, str] = MappingProxyType({})
    whys: Mapping[Key, str] = MappingProxyType({})
    aside: tuple[Key, ...] = ()
    default_target: str | None = None
    files: Sequence[str] = ()


@dataclass
class ArrowSource(PlainRows):
    """Columns that are already in memory as an Arrow table."""

    table: Any
    keys: list[Key] = field(default_factory=list)
    named: bool = True
    text_file: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.keys = self.keys or list(self.table.column_names)
        refuse_repeated(self.keys)
        self.n_rows: int | None = self.table.num_rows
        refuse_empty(self.table.num_rows, len(self.keys))
        self.chunk_rows = chunk_rows_for(self.table.num_rows, _text_bytes(self.table) / self.table.num_rows)
        self._at = {key: place for place, key in enumerate(self.keys)}

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        return self._columns(keys, 0, LOOK_ROWS)

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[Piece]:
        for start in range(0, self.table.num_rows, self.chunk_rows):
            count = min(self.chunk_rows, self.table.num_rows - start)
            yield Piece(start, count, partial(self._columns, wanted, start, count))

    def _columns(self, keys: Iterable[Key], start: int, count: int) -> Mapping[Key, Any]:
        return {key: self.table.column(self._at[key]).slice(start, count) for key in keys}


def _text_bytes(table: Any) -> int:
    """Bytes of the columns that hold text cell by cell."""
    import pyarrow.types as types

    tests = (types.is_string, types.is_large_string, types.is_string_view)
    return sum(column.nbytes for column in table.columns if any(test(column.type) for test in tests))


@dataclass
class SparseSource(PlainRows):
    """A SciPy sparse matrix of counts, handed over as it is."""

    matrix: Any

    named = False
    text_file = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n_rows, width = self.matrix.shape
        refuse_empty(n_rows, width)
        self.n_rows: int | None = n_rows
        self.keys: list[Key] = []
        self.width = width
        self.chunk_rows = chunk_rows_for(n_rows)

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        return {}

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[Piece]:
        rows, _ = self.matrix.shape
        for start in range(0, rows, self.chunk_rows):
            stop = min(start + self.chunk_rows, rows)
            yield Piece(start, stop - start, partial(self._rows, start, stop))

    def _rows(self, start: int, stop: int) -> Any:
        return self.matrix[start:stop]


def rechunked(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows in Arrow tables of exactly `rows` rows, the last one shorter; copies nothing."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for batch in batches:
        while count + batch.num_rows >= rows:
            take = rows - count
            yield pa.Table.from_batches([*held, batch.slice(0, take)])
            batch, held, count = batch.slice(take), [], 0
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
    if held:
        yield pa.Table.from_batches(held)


def refuse_repeated(keys: Sequence[Key]) -> None:
    """Raise where two columns share a name, saying where they stand."""
    first: dict[Key, int] = {}
    for place, key in enumerate(keys, start=1):
        if key in first:
            raise DataError(f"columns {first[key]} and {place} are both named {key!r}. Rename one of them.")
        first[key] = place


def refuse_empty(n_rows: int, width: int) -> None:
    """Raise where a table has no columns or no rows, in the words scikit-learn's users know."""
    shape = f"(shape=({n_rows}, {width})) while a minimum of 1 is required"
    if not width:
        raise DataError(f"Found array with 0 feature(s) {shape}. A table needs at least one column.")
    if not n_rows:
        raise DataError(f"Found array with 0 sample(s) {shape}. A table needs at least one row.")
