"""Tables in what holds several: `data.db::table` of SQLite, DuckDB and Postgres, `book.xlsx::sheet` of Excel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from softcount.errors import DataError
from softcount.sources.bytestream import first_bytes
from softcount.sources.databases import MARK, chosen, named_table
from softcount.sources.frames import columns_source
from softcount.sources.in_memory import ArrowSource
from softcount.sources.queries import query_source
from softcount.sources.source import Source

ZIP = b"PK\x03\x04"


def part_source(path: str) -> Source | None:
    """The source of a table that a file holds, or of the only one where none is named; None for any other file."""
    asked = named_table(path)
    if asked is not None:
        database, table, query = asked
        return query_source(query, database, f"table {table!r} of {database}")
    file, mark, part = path.rpartition(MARK)
    if not mark or not os.path.isfile(file):
        file, part = path, ""
    if not os.path.isfile(file):
        return None
    if first_bytes(file, len(ZIP)) == ZIP and _is_workbook(file):
        return _workbook(file, part)
    if part:
        raise DataError(f"{file} holds one table, of which {part!r} is no part. Leave out {MARK}{part}")
    return None


def _columns(names: Sequence[Any], rows: Iterable[Sequence[Any]], what: str) -> ArrowSource:
    kept = list(rows)
    if not kept:
        raise DataError(f"{what} has no rows.")
    return columns_source(
        {str(name): list(column) for name, column in zip(names, zip(*kept, strict=True), strict=True)}
    )


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
            sheet = book[chosen(file, part, book.sheetnames, "sheet")]
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
