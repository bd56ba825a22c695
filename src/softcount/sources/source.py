"""The interface of a source of rows, and the settings of file formats."""

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
"""The delimiter for any number of blanks and tabs."""

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
"""Orders of the parts of a date, by the name of the setting."""


def spoken_delimiter(delimiter: str) -> str:
    return _SPOKEN.get(delimiter, repr(delimiter))


class FileFormat(Struct, frozen=True):
    """How a file of rows is written; if a setting is None, the content decides.

    `header`: its first line names the columns; `names` replace them. The first `skip_lines` lines are left out, and all
    lines that begin with `comment`. `decimal` is the decimal mark, and `dates` the order of a date's parts. The name of
    a row's file goes into a column called `file_column`.
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
    def of(cls, **settings: Any) -> FileFormat:
        """Check settings; a delimiter may be given as a word, and names as a comma-separated string.

        >>> FileFormat.of(delimiter="tab", names="a, b").names
        ('a', 'b')
        """
        unknown = sorted(set(settings) - set(cls.__struct_fields__))
        if unknown:
            raise TypeError(f"unknown way to read a file: {unknown[0]!r}")
        names = settings.get("names") or ()
        names = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(map(str, names))
        delimiter = settings.get("delimiter")
        found = cls(**{**settings, "names": names, "delimiter": _WORDS.get(delimiter, delimiter)})  # type: ignore[arg-type]
        found.check()
        return found

    def check(self) -> None:
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            words = ", ".join(sorted(word for word in _WORDS if word.isalpha()))
            raise DataError(f"the delimiter {self.delimiter!r} is not one character. Give one, or one of {words}.")
        if self.delimiter is not None and not self.delimiter.isascii():
            raise DataError(f"the delimiter {self.delimiter!r} is not an ASCII character, which it must be.")
        for name, value, known in (("decimal", self.decimal, (".", ",")), ("dates", self.dates, tuple(ORDERS))):
            if value is not None and value not in known:
                raise DataError(f"{name} is {value!r}. It may be {' or '.join(known)}.")
        if self.decimal is not None and self.decimal == self.delimiter:
            raise DataError(f"{self.decimal!r} cannot be both the delimiter and the decimal mark.")
        if self.encoding is not None:
            try:
                is_text = codecs.lookup(self.encoding)._is_text_encoding
            except LookupError:
                is_text = False
            if not is_text:
                raise DataError(f"{self.encoding!r} is not a known encoding. Common ones are utf-8, cp1252, latin-1.")
        if not isinstance(self.skip_lines, int) or self.skip_lines < 0:
            raise DataError(f"skip_lines is {self.skip_lines!r}: a number of lines, 0 or more.")

    def over(self, older: FileFormat) -> FileFormat:
        """Return this format, with open settings taken from an older one."""
        return replace(older, **self.document)

    @property
    def document(self) -> dict[str, Any]:
        """The settings that are not left open, for JSON."""
        values = {x: getattr(self, x) for x in self.__struct_fields__}
        return {name: value for name, value in values.items() if value != getattr(CONTENT_DECIDES, name)}


CONTENT_DECIDES = FileFormat()
"""The content of the file decides how it is read."""

# -- sources of rows: columns, chunk by chunk, as often as needed

Key = Hashable
"""A column's name (string) or position (integer)."""

FEW_ROWS = 65_536
"""Tables up to this many rows have small chunks, so that several threads have work."""

LOOK_ROWS = FEW_ROWS
"""Rows of a file or frame that decide the kinds of its columns."""

CHUNK_TEXT = 8 << 20
"""Most bytes of text in a chunk: a document of one kilobyte becomes two of counts."""

CHUNK_CELLS = 1 << 21
"""Most cells of a chunk, 16 MB of numbers: 32,768 rows of 64 columns, 1,024 of 2,000."""

MOST_COLUMNS = 30_000
"""Most columns of a file: reading takes about 1 ms for each, however few rows there are."""

LOOK_CELLS = 1 << 23
"""Cells that decide the kinds of columns: all of `LOOK_ROWS` up to 128 columns."""


def chunk_rows_for(n_rows: int, row_bytes: float = 0.0, most: int = CHUNK_TEXT, columns: int = 0) -> int:
    """Return the rows per chunk, from the table alone, so that batching and thread count never change a sum.

    A chunk has at most `most` bytes and `CHUNK_CELLS` cells, but no fewer than 64 rows.
    """
    rows = 4_096 if n_rows <= FEW_ROWS else 32_768
    while rows > 64 and (rows * row_bytes > most or rows * columns > CHUNK_CELLS):
        rows //= 2
    return rows


def look_rows_for(columns: int) -> int:
    return min(LOOK_ROWS, max(1_024, LOOK_CELLS // max(1, columns)))


class Wanted(NamedTuple):
    """How to read a column: as numbers or as distinct values, and whether leading zeros are allowed (`padded`).

    `text` means unchanged cells, few of which will be equal.
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
    """Rows that can be read repeatedly.

    `named`: columns have names. `text_file`: cells come from a text file. `notes`: remarks for the user. `kinds` are
    declared by the source, with the reason in `whys`. Columns `aside` are features only if declared. `default_target`
    is the target if none is given. `files` are the names of files that are one row each. In a `verbatim` source only
    null and NaN are missing, unless the user adds words. `form` are the settings for reading, and `delimiter` is that
    of a text file. `types` are the cell types of columns, if the file holds them.
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
        """Return these columns of the first rows as Arrow arrays."""
        raise NotImplementedError

    def pieces(self, wanted: Mapping[Key, Wanted]) -> Iterator[TablePiece]:
        """Yield all rows in chunks; a piece loads as a mapping of the wanted columns to Arrow arrays."""
        raise NotImplementedError

    def spans(self) -> Iterator[tuple[int, int]]:
        """Return the first row and the number of rows of every chunk, if these depend on `n_rows` alone."""
        rows = self.n_rows or 0
        for start in range(0, rows, self.chunk_rows):
            yield start, min(self.chunk_rows, rows - start)


def refuse_repeated(keys: Sequence[Key]) -> None:
    first: dict[Key, int] = {}
    for place, key in enumerate(keys, start=1):
        if key in first:
            raise DataError(f"columns {first[key]} and {place} are both named {key!r}. Rename one of them.")
        first[key] = place


def refuse_wide(columns: int, name: str) -> None:
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{name} has {columns:,} columns or more, and files of up to {MOST_COLUMNS:,} are read. Leave some out, or "
            "write them as rows: one for each row and column."
        )


def refuse_empty(n_rows: int, width: int) -> None:
    """Raise an error if a table has no columns or no rows, with scikit-learn's wording."""
    shape = f"(shape=({n_rows}, {width})) while a minimum of 1 is required"
    if not width:
        raise DataError(f"Found array with 0 feature(s) {shape}. A table needs at least one column.")
    if not n_rows:
        raise DataError(f"Found array with 0 sample(s) {shape}. A table needs at least one row.")
