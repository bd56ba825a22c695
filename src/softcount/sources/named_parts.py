"""Tables in a file that holds several: `data.db::table` of SQLite, `book.xlsx::sheet` of Excel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.bytestream import first_bytes
from softcount.sources.frames import columns_source
from softcount.sources.in_memory import ArrowSource
from softcount.sources.queries import query_source
from softcount.sources.source import Source

MARK = "::"
SQLITE, ZIP = b"SQLite format 3\0", b"PK\x03\x04"


def part_source(path: str) -> Source | None:
    """The source of a table that a file holds, or of the only one where none is named; None for any other file."""
    file, mark, part = path.rpartition(MARK)
    if not mark or not os.path.isfile(file):
        file, part = path, ""
    if not os.path.isfile(file):
        return None
    begins = first_bytes(file, len(SQLITE))
    if begins == SQLITE:
        return _database(file, part)
    if begins.startswith(ZIP) and _is_workbook(file):
        return _workbook(file, part)
    if part:
        raise DataError(f"{file} holds one table, of which {part!r} is no part. Leave out {MARK}{part}")
    return None


def _chosen(file: str, part: str, names: Sequence[str], what: str) -> str:
    """The table that is meant; refused where there is none of that name, or several and none is named."""
    if part in names:
        return part
    if not part and len(names) == 1:
        return names[0]
    if not names:
        raise DataError(f"{file} has no {what}.")
    said = f"there is no {what} {part!r} in {file}" if part else f"{file} has {len(names)} {what}s"
    raise DataError(f"{said}: {wording.and_others(names)}. Name one: {file}{MARK}{names[0]}")


def _columns(names: Sequence[Any], rows: Iterable[Sequence[Any]], what: str) -> ArrowSource:
    kept = list(rows)
    if not kept:
        raise DataError(f"{what} has no rows.")
    return columns_source(
        {str(name): list(column) for name, column in zip(names, zip(*kept, strict=True), strict=True)}
    )


def _database(file: str, part: str) -> Source:
    import sqlite3
    from urllib.parse import quote

    try:
        with closing(sqlite3.connect(f"file:{quote(os.path.abspath(file))}?mode=ro", uri=True)) as base:
            kinds = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
            names = sorted(name for (name,) in base.execute(kinds))
            table = _chosen(file, part, names, "table")
            # The name is one of the file's own; a quote inside it is doubled, as SQL has it.
            quoted = table.replace('"', '""')
            return query_source(f'SELECT * FROM "{quoted}"', base, f"table {table!r} of {file}")
    except sqlite3.Error as error:
        raise DataError(f"{file} cannot be read as a database: {error}.") from None


def _is_workbook(file: str) -> bool:
    import zipfile

    try:
        with zipfile.ZipFile(file) as packed:
            return "xl/workbook.xml" in packed.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


def _workbook(file: str, part: str) -> ArrowSource:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise DataError(
            f"{file} is a spreadsheet, which needs openpyxl: pip install 'softcount[excel]'; or save the sheet as CSV."
        ) from None
    try:
        with closing(load_workbook(file, read_only=True, data_only=True)) as book:
            sheet = book[_chosen(file, part, book.sheetnames, "sheet")]
            rows = [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
    except (KeyError, ValueError, OSError) as error:
        raise DataError(f"{file} cannot be read as a spreadsheet: {error}. Save the sheet as CSV.") from None
    if not rows:
        raise DataError(f"the sheet of {file} is empty.")
    width = max(place for row in rows for place, cell in enumerate(row, start=1) if cell is not None)
    names, *cells = ([*row[:width], *[None] * (width - len(row))] for row in rows)
    blank = next((place for place, name in enumerate(names, start=1) if name is None), None)
    if blank is not None:
        raise DataError(f"column {blank} of the sheet of {file} has no name. Give every column one in the first row.")
    return _columns(names, cells, f"the sheet of {file}")
