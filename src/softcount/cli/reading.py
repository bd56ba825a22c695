"""How DATA is read: what a fit learns from, and how a table, documents or lines are put to a model."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.models.fitted import Fitted
    from softcount.table import Key, Table
    from softcount.table.documents import Progress
    from softcount.table.source import Source

Way = Literal["lines", "document"]
"""Each line of DATA is a document, or the whole of it is one."""

FIRST_LINES = 50
FEW_LINES = 5
"""Fewer lines than this that have the same number of commas are no table."""


@dataclass(frozen=True, slots=True)
class Cells:
    """How the cells and lines of DATA are read; the way is None where its content decides.

    `loose` is the way of a file that is no table, where text is all that the model reads.
    """

    missing: tuple[str, ...] = ()
    no_header: bool = False
    way: Way | None = None
    loose: Way = "lines"

    @property
    def options(self) -> tuple[str, ...]:
        """What to say again on the command line, for other commands to read DATA the same way."""
        return (*(["--no-header"] if self.no_header else []), *([f"--{self.way}"] if self.way else []))


# -- to learn from


@dataclass(frozen=True, slots=True)
class Texts:
    """What was asked of all columns of text: the settings of the family `Text`, by name."""

    settings: Mapping[str, Any] = field(default_factory=dict)

    def family(self) -> Any:
        from softcount.families.text import Text

        return Text(**self.settings)

    def kinds(self, table: Table) -> dict[Key, Any]:
        """The family of every column of text; asked for in vain where there is none."""
        from softcount.table import Kind

        if not self.settings:
            return {}
        found = {spec.key: spec.why for spec in table.schema.used if spec.kind is Kind.TEXT}
        if not found:
            option = next(iter(self.settings)).replace("_", "-").replace("model", "text")
            raise DataError(f"--{option} is about columns of text, and there is none. Declare one: --kind COL=text")
        source: Any = table.source
        source.whys = found  # why each is text stays what it was, though it is declared from now on
        return dict.fromkeys(found, self.family())


def source_of(data: str, cells: Cells, progress: Progress) -> Source:
    """The rows of DATA."""
    from softcount.table import MISSING
    from softcount.table.bytestream import TextFile
    from softcount.table.documents import LinesSource
    from softcount.table.opening import from_path, open_source

    if cells.way == "lines":
        return from_path(data, lambda path, name: LinesSource(TextFile(path, name, progress)))
    return open_source(data, cells.missing or MISSING, not cells.no_header, progress)


def default_target(source: Source) -> str | None:
    """What is to be predicted where nobody said: the sub-folder a document is in."""
    target: str | None = getattr(source, "default_target", None)
    return target


def may_hold_classes(data: str) -> bool:
    """Whether DATA may be documents in folders, which are their classes, by looking at how it begins."""
    import os

    from softcount.table.shelves import is_tar

    if os.path.isdir(data):
        return True
    return os.path.isfile(data) and is_tar(data)


# -- to be answered for


def source_like(fitted: Fitted, data: str, cells: Cells, progress: Progress) -> Source:
    """The rows of DATA for a model: a table, or documents where the model reads text.

    Folders and tar files hold a document in each file. Any other file is a table, unless text is all that the model
    reads and the first line does not name its column: then each line is a document.
    """
    from softcount.table.opening import from_path

    return from_path(data, partial(_like, fitted, cells, progress))


def _like(fitted: Fitted, cells: Cells, progress: Progress, path: str, name: str) -> Source:
    from softcount.table.bytestream import TextFile
    from softcount.table.documents import DocumentsSource, LinesSource, one_document
    from softcount.table.opening import file_source
    from softcount.table.shelves import shelf_of

    shelf = shelf_of(path, name, progress)
    if shelf is not None:
        return DocumentsSource(shelf, text_column(fitted, f"{name} holds documents"), progress)
    way = cells.way or (None if cells.no_header else _loose_way(fitted, cells, path, name))
    if way == "document":
        return one_document(TextFile(path, name, progress), text_column(fitted, f"{name} is to be read as a document"))
    if way == "lines":
        return LinesSource(TextFile(path, name, progress), text_column(fitted, f"{name} is to be read as documents"))
    return file_source(path, name, cells.missing or fitted.schema.missing, not cells.no_header, progress)


def text_column(fitted: Fitted, what: str) -> Any:
    """The model's one column of text; a model that has none, or several, is refused."""
    from softcount.table import Kind

    keys = [spec.key for spec in fitted.schema.used if spec.kind is Kind.TEXT]
    if len(keys) == 1:
        return keys[0]
    columns = ", ".join(repr(spec.key) for spec in fitted.schema.used[:5])
    if not keys:
        raise DataError(f"{what}, but the model reads no text. Give it a table with its columns: {columns}.")
    raise DataError(f"{what}, but the model reads {len(keys)} columns of text. Give it a table with {columns}.")


def only_text(fitted: Fitted) -> Any:
    """The model's column of text where that is all it reads; otherwise None."""
    from softcount.table import Kind

    used = fitted.schema.used
    return used[0].key if len(used) == 1 and used[0].kind is Kind.TEXT else None


def _loose_way(fitted: Fitted, cells: Cells, path: str, name: str) -> Way | None:
    """The way of a file that is no table: text is all the model reads, and no header names its column."""
    from softcount.table.bytestream import first_bytes
    from softcount.table.parquet import MAGIC

    key = only_text(fitted)
    if key is None or first_bytes(path, len(MAGIC)) == MAGIC:
        return None
    lines = _first_lines(path, name)
    if lines and any(str(key) in row for row in _as_cells(lines[0])):
        return None
    width = table_width(lines)
    if width:
        raise DataError(
            f"{name} looks like a table of {width} columns, and its first line does not name the one the model reads, "
            f"{str(key)!r}.\n  Name it there (or --no-header); to take "
            + ("each line as a document: --lines" if cells.loose == "lines" else "the whole as a document: --document")
        )
    return cells.loose


def _first_lines(path: str, name: str) -> list[str]:
    from softcount.table.bytestream import TextFile
    from softcount.table.documents import lines_of

    found = lines_of(TextFile(path, name).blocks(quiet=True))
    return [line.decode("utf-8", "replace") for line in islice(found, FIRST_LINES)]


def _as_cells(line: str) -> list[list[str]]:
    """The cells of a line under each delimiter that a table may have."""
    from softcount.table.dialect import DELIMITERS

    found = []
    for delimiter in DELIMITERS:
        try:
            found.append([cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])])
        except csv.Error:  # a line longer than a cell may be
            continue
    return found


def table_width(lines: list[str]) -> int:
    """How many columns lines have that all hold the same number of tabs (or two or more commas, ...); else 0.

    >>> table_width(["a\\t1"] * 5), table_width(["well, hello"] * 5), table_width(["1,2,3"] * 4)
    (2, 0, 0)
    """
    if len(lines) < FEW_LINES:
        return 0
    for delimiter, least in (("\t", 1), (",", 2), (";", 2), ("|", 2)):
        counts = {line.count(delimiter) for line in lines if line.strip()}
        if len(counts) == 1 and min(counts) >= least:
            return min(counts) + 1
    return 0
