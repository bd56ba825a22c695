"""What its owner says of how a file is written; a model remembers it, to read other files the same way."""

from __future__ import annotations

import codecs
from dataclasses import fields, replace
from typing import Any

from softcount.errors import DataError
from softcount.records import dataclass

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


@dataclass(frozen=True, slots=True)
class FileFormat:
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
        unknown = sorted(set(said) - {part.name for part in fields(cls)})
        if unknown:
            raise TypeError(f"unknown way to read a file: {unknown[0]!r}")
        names = said.get("names") or ()
        names = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(map(str, names))
        delimiter = said.get("delimiter")
        found = cls(**{**said, "names": names, "delimiter": _WORDS.get(delimiter, delimiter)})  # type: ignore[arg-type]
        found._check()
        return found

    def _check(self) -> None:
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
        values = {x.name: getattr(self, x.name) for x in fields(self)}
        return {name: value for name, value in values.items() if value != getattr(CONTENT_DECIDES, name)}


def _is_encoding(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding
    except LookupError:
        return False


CONTENT_DECIDES = FileFormat()
"""Nothing is said: what a file is like decides how it is read."""
