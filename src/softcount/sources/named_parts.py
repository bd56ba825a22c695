"""Tables in what holds several: `data.db::table` of SQLite, DuckDB and Postgres, `book.xlsx::sheet` of Excel."""

from __future__ import annotations

import os
import warnings
from contextlib import closing

from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.bytestream import first_bytes
from softcount.sources.databases import MARK, chosen, named_table, one_line
from softcount.sources.dialects import name_columns
from softcount.sources.frames import columns_source
from softcount.sources.in_memory import ArrowSource
from softcount.sources.queries import query_source
from softcount.sources.source import Source, refuse_wide

ZIP = b"PK\x03\x04"
LARGEST = 256 << 20
"""Bytes of XML that the cells of a workbook may have."""


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


def _is_workbook(file: str) -> bool:
    import zipfile

    try:
        with zipfile.ZipFile(file) as packed:
            return "xl/workbook.xml" in packed.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


def _workbook(file: str, part: str) -> ArrowSource:
    """The rows of a sheet: the one that is named, or the first."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise DataError(
            f"{file} is a spreadsheet, which needs openpyxl: pip install 'softcount[excel]'; or save the sheet as CSV."
        ) from None
    _refuse_large(file)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            closing(load_workbook(file, read_only=True, data_only=True)) as book,
        ):
            sheets = [sheet.title for sheet in book.worksheets]
            title = chosen(file, part, sheets if part else sheets[:1], "sheet")
            sheet = book[title]
            sheet.reset_dimensions()  # the size that a file states may be stale, and rows beyond it would be lost
            rows = [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
    except DataError:
        raise
    except Exception as error:  # openpyxl raises whatever its parsers do
        raise DataError(f"{file} cannot be read as a spreadsheet: {one_line(error)}. Save the sheet as CSV.") from None
    what = f"the sheet {title!r} of {file}"
    if len(rows) < 2:
        raise DataError(f"{what} {'has column names but no rows' if rows else 'is empty'}.")
    others = wording.and_others(sheets[1:], 3)
    first = f"{file} has {len(sheets)} sheets: {title!r}, the first, is read ({file}{MARK}NAME reads {others})"
    width = max(place for row in rows for place, cell in enumerate(row, start=1) if cell is not None)
    refuse_wide(width, what)
    header, *cells = ([*row[:width], *[None] * (width - len(row))] for row in rows)
    names, unnamed = name_columns(["" if name is None else str(name).strip() for name in header])
    found = columns_source(dict(zip(names, map(list, zip(*cells, strict=True)), strict=True)))
    found.verbatim = False  # a person types NA into a cell of a sheet as into a text file
    found.notes = (*([first] if not part and len(sheets) > 1 else []), *unnamed)
    return found


def _refuse_large(file: str) -> None:
    """Raise if the cells of a workbook unpack to more than openpyxl reads in about a minute."""
    import zipfile

    with zipfile.ZipFile(file) as packed:
        size = max(entry.file_size for entry in packed.infolist() if entry.filename.endswith(".xml"))
    if size > LARGEST:
        raise DataError(
            f"{file} unpacks to {size >> 20:,} MB, and spreadsheets of up to {LARGEST >> 20} MB are read. Save the "
            "sheet as CSV."
        )
