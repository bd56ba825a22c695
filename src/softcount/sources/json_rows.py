"""JSON as a table: a line for each row (JSON Lines), or one list of all rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from softcount import remedies
from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.bytestream import TextFile, first_bytes
from softcount.sources.frames import columns_source, is_missing
from softcount.sources.in_memory import ArrowSource

LOOK = 65_536
"""Bytes in which a file must show that it is JSON."""


def json_source(path: str, name: str, encoding: str | None) -> ArrowSource | None:
    """The source of a file of JSON; None for any other."""
    begins = first_bytes(path, LOOK).lstrip(b"\xef\xbb\xbf \t\r\n")
    if begins.startswith(b"["):
        return _from_list(path, name, encoding) if _is_list(begins) else None
    if not begins.startswith(b"{") or not _is_object(begins):
        return None
    return _from_lines(path, name, encoding)


def _is_object(begins: bytes) -> bool:
    """Whether the first line is an object, or one goes on over several lines as only JSON does."""
    line = begins.split(b"\n", 1)[0].strip()
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return line == b"{" or (len(begins) >= LOOK and b'":' in begins)


def _is_list(begins: bytes) -> bool:
    return begins[1:].lstrip().startswith(b"{")


def _from_lines(path: str, name: str, encoding: str | None) -> ArrowSource:
    text = _text(path, name, encoding)
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"line {number} of {name} is no JSON ({error}). Each line holds one row: {{...}}") from None
        if not isinstance(row, dict):
            raise DataError(f"line {number} of {name} is {wording.cell(row)}, not a row with names: {{...}}")
        rows.append(row)
    return _source(rows, name)


def _from_list(path: str, name: str, encoding: str | None) -> ArrowSource:
    try:
        rows = json.loads(_text(path, name, encoding))
    except ValueError as error:
        raise DataError(f"{name} is no JSON: {error}. Write one list of rows, or a row on each line.") from None
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise DataError(f"row {number} of {name} is {wording.cell(row)}, not one with names: {{...}}")
    return _source(rows, name)


def _text(path: str, name: str, encoding: str | None) -> str:
    try:
        return b"".join(TextFile(path, name, encoding=encoding).blocks()).decode("utf-8")
    except UnicodeDecodeError as error:
        how = remedies.either("encoding='...'", "--encoding NAME")
        raise DataError(f"{name} is not UTF-8 text: byte {error.start}. Say what it is: {how}") from None


def _source(rows: Iterable[dict[str, Any]], name: str) -> ArrowSource:
    """Rows under the names that any of them has; a name that a row lacks is missing there."""
    flat = [dict(_flat(row)) for row in rows]
    keys = list(dict.fromkeys(key for row in flat for key in row))
    if not keys:
        raise DataError(f"{name} has no rows. Each line holds one: {{...}}")
    return columns_source({key: [_simple(row.get(key)) for row in flat] for key in keys})


def _flat(row: dict[str, Any], above: str = "") -> Iterable[tuple[str, Any]]:
    """The cells of a row, those of an object in it under both names with a dot between."""
    for key, value in row.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _simple(cell: Any) -> Any:
    return None if cell is None or (not isinstance(cell, list) and is_missing(cell)) or cell == {} else cell
