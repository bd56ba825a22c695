"""How DATA is read: what a fit learns from, and how a table, documents or lines are put to a model."""

from __future__ import annotations

import csv
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from softcount.errors import DataError
from softcount.sources.source import CONTENT_DECIDES, FileFormat

if TYPE_CHECKING:
    from softcount.learn.record import Learned
    from softcount.sources.bytestream import Progress
    from softcount.sources.source import Source
    from softcount.table import Key, Table

TextUnit = Literal["lines", "document"]
"""Each line of DATA is a document, or the whole of it is one."""

UNITS: dict[TextUnit, str] = {"lines": "each line as a document", "document": "the whole as a document"}

FIRST_LINES = 50
FEW_LINES = 5
"""Fewer lines than this that have the same number of commas are no table."""

SENTENCE = 3
"""Words in a line, on average, from which lines may be sentences."""

TABLES = (".csv", ".tsv", ".tab")
"""Endings of files that their owner takes for tables."""


def refuse_data(model: str, data: str | None, what: str) -> None:
    """Refuse a table beside a model whose page takes none."""
    if data is not None:
        raise DataError(f"{model}: {what}. Leave {data} out.")


class InputFormat(Struct, frozen=True):
    """How the cells and lines of DATA are read, and what a document is: None where the content decides.

    `default_unit` is what a document is in a file that is no table, where text is all that the model reads. With `sql`
    DATA is a database, and its rows are those of the query.
    """

    missing: tuple[str, ...] = ()
    only_missing: tuple[str, ...] = ()
    file: FileFormat = CONTENT_DECIDES
    unit: TextUnit | None = None
    default_unit: TextUnit = "lines"
    sql: str | None = None

    @property
    def is_asked_for(self) -> bool:
        """Whether anything was said of how to read DATA."""
        return bool(self.missing or self.only_missing or self.file.document or self.unit or self.sql)

    def words(self, usual: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """The cells that mean missing: the usual ones, or a model's own, and those added; or those asked for alone."""
        from softcount.table import MISSING

        return self.only_missing or (*(MISSING if usual is None else usual), *self.missing)

    @property
    def options(self) -> tuple[str, ...]:
        """What to say again on the command line, for other commands to read DATA the same way."""
        query = () if self.sql is None else ("--sql", shlex.quote(self.sql))
        return (*query, f"--{self.unit}") if self.unit else query


# -- to learn from


class TextSettings(Struct, frozen=True):
    """What was asked of all columns of text: the settings of the family `Text`, by name."""

    settings: Mapping[str, Any] = field(default_factory=dict)

    def family(self) -> Any:
        """The family that models words so."""
        from softcount.families.text import Text

        return Text(**self.settings)

    def kinds(self, table: Table) -> dict[Key, Any]:
        """The family of every column of text; asked for in vain where there is none."""
        if not self.settings:
            return {}
        found = {key: table.schema[key].why for key in table.schema.texts}
        if not found:
            option = next(iter(self.settings)).replace("_", "-").replace("model", "text")
            raise DataError(f"--{option} is about columns of text, and there is none. Declare one: --kind COL=text")
        table.source.whys = found  # why each is text stays what it was, though it is declared from now on
        return dict.fromkeys(found, self.family())


def source_of(data: str, form: InputFormat, progress: Progress) -> Source:
    """The rows of DATA."""
    from softcount.sources.bytestream import TextFile
    from softcount.sources.documents import LinesSource
    from softcount.sources.open_source import from_path, open_source

    if form.sql is not None:
        return _asked(data, form.sql)
    if form.unit == "lines":
        encoding = form.file.encoding
        return from_path(
            data, lambda path, name: LinesSource(TextFile(_of_lines(path, name), name, progress, encoding))
        )
    return open_source(data, form.words(), form.file, progress)


def _asked(database: str, query: str) -> Source:
    """The rows of a query."""
    from softcount.sources.databases import query_source

    return query_source(query, database)


def _of_lines(path: str, name: str) -> str:
    """The path of a file to be read line by line; folders and tar files are refused."""
    if may_hold_classes(path):
        raise DataError(f"{name} holds documents in files of their own. Leave out --lines, or name one of its files.")
    return path


def may_hold_classes(data: str) -> bool:
    """Whether DATA may be documents in folders, which are their classes, by looking at how it begins."""
    from softcount.sources.documents import is_tar
    from softcount.sources.joined_files import table_parts

    if os.path.isdir(data):
        return not table_parts(data)
    return os.path.isfile(data) and is_tar(data)


# -- to be answered for


def source_like(fitted: Learned, data: str, form: InputFormat, progress: Progress) -> Source:
    """The rows of DATA for a model: a table, or documents where the model reads text.

    Folders and tar files hold a document in each file. Any other file is a table, unless text is all that the model
    reads and the first line does not name its column: then each line is a document.
    """
    from softcount.sources.open_source import from_path

    if form.sql is not None:
        return _asked(data, form.sql)
    return from_path(data, partial(_like, fitted, form, progress), form.file.over(fitted.schema.form))


def _like(fitted: Learned, form: InputFormat, progress: Progress, path: str, name: str) -> Source:
    from softcount.sources.bytestream import TextFile
    from softcount.sources.documents import DocumentsSource, LinesSource, archive_of, one_document
    from softcount.sources.open_source import file_source

    shelf = archive_of(_of_lines(path, name) if form.unit == "lines" else path, name, progress)
    if shelf is not None:
        return DocumentsSource(shelf, text_column(fitted, f"{name} holds documents"), progress)
    file = form.file.over(fitted.schema.form)
    said = form.file.header is False or form.file.names
    unit = form.unit or (None if said else _guessed_unit(fitted, form, path, name))
    if unit == "document":
        return one_document(TextFile(path, name, progress), text_column(fitted, f"{name} is to be read as a document"))
    if unit == "lines":
        return LinesSource(TextFile(path, name, progress), text_column(fitted, f"{name} is to be read as documents"))
    return file_source(path, name, form.words(fitted.schema.missing), file, progress)


def text_column(fitted: Learned, what: str) -> Any:
    """The model's one column of text; a model that has none, or several, is refused."""
    keys = fitted.schema.texts
    if len(keys) == 1:
        return keys[0]
    columns = ", ".join(repr(spec.key) for spec in fitted.schema.used[:5])
    if not keys:
        raise DataError(f"{what}, but the model reads no text. Give it a table with its columns: {columns}.")
    raise DataError(f"{what}, but the model reads {len(keys)} columns of text. Give it a table with {columns}.")


def _guessed_unit(fitted: Learned, form: InputFormat, path: str, name: str) -> TextUnit | None:
    """What a document is in a file that is no table: text is all the model reads, and no header names its column."""
    from softcount.sources.arrow_files import PARQUET_MAGIC
    from softcount.sources.bytestream import first_bytes

    key = fitted.schema.only_text
    if key is None or first_bytes(path, len(PARQUET_MAGIC)) == PARQUET_MAGIC:
        return None
    lines = _first_lines(path, name)
    if lines and any(str(key) in row for row in _as_cells(lines[0])):
        return None
    width = table_width(lines)
    if width and (fitted.schema.form.header is False or fitted.schema.form.names):
        return None
    if width or name.lower().removesuffix(".gz").endswith(TABLES):
        looks = f"looks like a table of {width} columns" if width else "is named like a table"
        remedy = "Name it there" + (" (or --no-header)" if re.fullmatch(r"c\d+", str(key)) else "")
        raise DataError(
            f"{name} {looks}, and its first line does not name the column that the model reads, {str(key)!r}.\n"
            f"  {remedy}; to take {UNITS[form.default_unit]}: --{form.default_unit}"
        )
    return form.default_unit


def _first_lines(path: str, name: str) -> list[str]:
    from softcount.sources.bytestream import TextFile
    from softcount.sources.documents import lines_of

    found = lines_of(TextFile(path, name).blocks(quiet=True), name)
    return [line.decode("utf-8", "replace") for line in islice(found, FIRST_LINES)]


def _as_cells(line: str) -> list[list[str]]:
    """The cells of a line under each delimiter that a table may have."""
    from softcount.sources.csv_dialect import DELIMITERS

    found = []
    for delimiter in DELIMITERS:
        try:
            found.append([cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])])
        except csv.Error:  # a line longer than a cell may be
            continue
    return found


@contextmanager
def may_be_lines(data: str, form: InputFormat) -> Iterator[None]:
    """Where DATA cannot be used as a table and its lines are sentences, the error says how to read those."""
    try:
        yield
    except DataError as error:
        raise _if_lines(error, data, form) from None


def _if_lines(error: DataError, data: str, form: InputFormat) -> DataError:
    if type(error) is not DataError or form.unit is not None or not os.path.isfile(data):
        return error
    try:
        lines = [line for line in _first_lines(data, data) if line.strip()]
    except DataError:
        return error
    words = sum(len(line.split()) for line in lines) / max(len(lines), 1)
    if words < SENTENCE or table_width(lines) or any("\0" in line for line in lines):
        return error
    return DataError(f"{error}\n  If each line is a document: --lines")


def table_width(lines: list[str]) -> int:
    r"""How many columns lines have that make rows of one width, quotes minded or not; 0 where they are no table.

    Two columns that a comma parts need more: that no space follows it, as it does in sentences.

    >>> table_width(["a\t1"] * 5), table_width(["well, hello"] * 5), table_width(["1,2,3"] * 4)
    (2, 0, 0)
    >>> table_width(['ham,"well, hello"', "spam,free"] * 3)
    2
    """
    from softcount.sources.csv_dialect import DELIMITERS

    for delimiter in DELIMITERS:
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
            rows = _rows(lines, delimiter, quoting)
            width = len(rows[0]) if len(rows) >= FEW_LINES else 0
            if width >= 2 and all(len(row) == width for row in rows) and (width > 2 or _tight(rows, delimiter)):
                return width
    return 0


def _rows(lines: list[str], delimiter: str, quoting: Any) -> list[list[str]]:
    """The rows of a table that is written so; the last line read may be in the middle of one."""
    try:
        rows = [row for row in csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, quoting=quoting) if row]
    except csv.Error:  # a cell that is longer than cells may be
        return []
    return rows[:-1] if len(lines) == FIRST_LINES else rows


def _tight(rows: list[list[str]], delimiter: str) -> bool:
    return delimiter == "\t" or not any(cell.startswith(" ") for row in rows for cell in row[1:])
