"""A source of rows and the formats of files it can come from."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.sources.frames import CellType

BLANKS = " "
"""The delimiter that stands for any number of blanks and tabs."""

_WORDS = {
    "comma": ",",
    "tab": "\t",
    "\\t": "\t",
    "semicolon": ";",
    "bar": "|",
    "pipe": "|",
    "space": BLANKS,
    "spaces": BLANKS,
}
_SPOKEN = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", BLANKS: "blank"}
ORDERS = {"day-first": "dmy", "month-first": "mdy", "year-first": "ymd"}
"""Ways to write the parts of a date, by the name of the choice."""


def spoken_delimiter(delimiter: str) -> str:
    """What a delimiter is called."""
    return _SPOKEN.get(delimiter, repr(delimiter))


class FileFormat(Struct, frozen=True):
    """How a file of rows is written, as far as somebody says; what is None, its content decides.

    `header`: its first line names the columns; `names` are those to use instead. The first `skip_lines` lines are left
    out, and all that begin with `comment`. `decimal` is the mark before the decimals of a number, and `dates` the order
    of a date's parts. The name of the file that a row is from goes into a column called `file_column`.
    """

    header: bool | None = None
    names: tuple[str, ...] = ()
    delimiter: str | None = None
    decimal: str | None = None
    dates: str | None = None
    encoding: str | None = None
    skip_lines: int = 0
    comment: str = ""
    file_column: str | None = None

    @classmethod
    def of(cls, **said: Any) -> FileFormat:
        """What somebody says, checked; a word may stand for a delimiter, and names may come in a row with commas.

        >>> FileFormat.of(delimiter="tab", names="a, b").names
        ('a', 'b')
        """
        unknown = sorted(set(said) - set(cls.__struct_fields__))
        if unknown:
            raise TypeError(f"unknown way to read a file: {unknown[0]!r}")
        names = said.get("names") or ()
        names = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(map(str, names))
        delimiter = said.get("delimiter")
        found = cls(**{**said, "names": names, "delimiter": _WORDS.get(delimiter, delimiter)})  # type: ignore[arg-type]
        found.check()
        return found

    def check(self) -> None:
        """Raise where something said means nothing."""
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            words = ", ".join(sorted(word for word in _WORDS if word.isalpha()))
            raise DataError(f"the delimiter {self.delimiter!r} is not one character. Give one, or one of {words}.")
        if self.delimiter is not None and not self.delimiter.isascii():
            raise DataError(f"the delimiter {self.delimiter!r} is not an ASCII character, which it must be.")
        for name, value, known in (("decimal", self.decimal, (".", ",")), ("dates", self.dates, tuple(ORDERS))):
            if value is not None and value not in known:
                raise DataError(f"{name} is {value!r}. It may be {' or '.join(known)}.")
        if self.decimal is not None and self.decimal == self.delimiter:
            raise DataError(f"{self.decimal!r} cannot both part the cells and begin the decimals of a number.")
        if self.encoding is not None and not _is_encoding(self.encoding):
            raise DataError(f"{self.encoding!r} is no encoding that is known. Common ones are utf-8, cp1252, latin-1.")
        if not isinstance(self.skip_lines, int) or self.skip_lines < 0:
            raise DataError(f"skip_lines is {self.skip_lines!r}: a number of lines, 0 or more.")

    def over(self, older: FileFormat) -> FileFormat:
        """This, with what an older one says where this says nothing."""
        return replace(older, **self.document)

    @property
    def document(self) -> dict[str, Any]:
        """What is said, as JSON has it."""
        values = {x: getattr(self, x) for x in self.__struct_fields__}
        return {name: value for name, value in values.items() if value != getattr(CONTENT_DECIDES, name)}


def _is_encoding(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding
    except LookupError:
        return False


CONTENT_DECIDES = FileFormat()
"""Nothing is said: what a file is like decides how it is read."""

# Where rows come from: anything that can hand over its columns, chunk by chunk, as often as asked.

Key = Hashable
"""A column's name (string) or position (integer)."""

FEW_ROWS = 65_536
"""Tables up to this size are cut into small chunks, so that several threads have something to do."""

LOOK_ROWS = FEW_ROWS
"""Rows of a file or frame that are looked at to decide its kinds."""


CHUNK_TEXT = 8 << 20
"""Bytes of text that a chunk may hold: a document of one kilobyte becomes two of counts."""

CHUNK_CELLS = 1 << 21
"""Cells that a chunk may have, 16 MB of numbers: 32,768 rows of 64 columns, 1,024 of 2,000."""

MOST_COLUMNS = 30_000
"""Columns that a file may have: reading takes about 1 ms for each, however few rows there are."""

LOOK_CELLS = 1 << 23
"""Cells that are looked at to decide the kinds of columns: all of `LOOK_ROWS` up to 128 columns."""


def chunk_rows_for(n_rows: int, row_bytes: float = 0.0, most: int = CHUNK_TEXT, columns: int = 0) -> int:
    """Rows per chunk: fixed by the table alone, so that no batching or thread count changes a sum.

    Its length says how many; where rows are of so many bytes that a chunk would have more than `most`, or of so many
    columns that it would have more than `CHUNK_CELLS` cells, there are fewer.
    """
    rows = 4_096 if n_rows <= FEW_ROWS else 32_768
    while rows > 64 and (rows * row_bytes > most or rows * columns > CHUNK_CELLS):
        rows //= 2
    return rows


def look_rows_for(columns: int) -> int:
    """Rows that are looked at to decide the kinds of so many columns."""
    return min(LOOK_ROWS, max(1_024, LOOK_CELLS // max(1, columns)))


class Wanted(NamedTuple):
    """A column asked of a source: as numbers or as distinct values, and whether leading zeros may be ignored.

    `text` asks for the cells as they stand: few of them will be alike.
    """

    numeric: bool
    padded: bool = False
    text: bool = False


class TablePiece(NamedTuple):
    """One chunk of rows not read yet; `load` reads it, in any thread and as often as called."""

    start: int
    n_rows: int
    load: Callable[[], Any]


class Source:
    """Rows that can be read again and again.

    `named`: columns have names. `text_file`: cells come from a text file. `notes`: what its owner should know.
    `kinds` are what columns are whatever their cells show, and `whys` the reason to give. Columns `aside` are no
    features unless declared so. `default_target` is what to predict where nobody said. `files` are those that the rows
    are, where each is one. In a `verbatim` source no cell is missing but null and NaN, unless somebody says which are.
    `form` is how its owner says it is to be read, and `delimiter` what parts the cells of a text file. `types` are
    what the cells of columns are, where that is written down.
    """

    keys: list[Any]
    n_rows: int | None
    chunk_rows: int
    named: bool = True
    text_file: bool = False
    notes: tuple[str, ...] = ()
    kinds: Mapping[Key, str] = MappingProxyType({})
    whys: Mapping[Key, str] = MappingProxyType({})
    aside: tuple[Key, ...] = ()
    default_target: str | None = None
    files: Sequence[str] = ()
    verbatim: bool = False
    form: FileFormat = CONTENT_DECIDES
    delimiter: str | None = None
    types: Mapping[Key, CellType] = MappingProxyType({})

    def head(self, keys: Sequence[Key]) -> Mapping[Key, Any]:
        """These columns of the first rows, as Arrow arrays."""
        raise NotImplementedError

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        """All rows in chunks; what a piece loads is a mapping of the wanted columns to Arrow arrays."""
        raise NotImplementedError

    def spans(self) -> Iterator[tuple[int, int]]:
        """The first row of every chunk and how many it has, where that depends on nothing but how many there are."""
        rows = self.n_rows or 0
        return ((start, min(self.chunk_rows, rows - start)) for start in range(0, rows, self.chunk_rows))


def refuse_repeated(keys: Sequence[Key]) -> None:
    """Raise where two columns share a name, saying where they stand."""
    first: dict[Key, int] = {}
    for place, key in enumerate(keys, start=1):
        if key in first:
            raise DataError(f"columns {first[key]} and {place} are both named {key!r}. Rename one of them.")
        first[key] = place


def refuse_wide(columns: int, name: str) -> None:
    """Raise if a file has more columns than are read."""
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{name} has {columns:,} columns or more, and files of up to {MOST_COLUMNS:,} are read. Leave some out, or "
            "write them as rows: one for each row and column."
        )


def refuse_empty(n_rows: int, width: int) -> None:
    """Raise where a table has no columns or no rows, in the words scikit-learn's users know."""
    shape = f"(shape=({n_rows}, {width})) while a minimum of 1 is required"
    if not width:
        raise DataError(f"Found array with 0 feature(s) {shape}. A table needs at least one column.")
    if not n_rows:
        raise DataError(f"Found array with 0 sample(s) {shape}. A table needs at least one row.")
