"""JSON as a table: a line for each row (JSON Lines), or one list of all rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.bytestream import TextFile
from softcount.sources.dialects import not_utf8
from softcount.sources.frames import columns_source, is_missing
from softcount.sources.in_memory import ArrowSource
from softcount.sources.source import refuse_wide

JSON_HEAD = 65_536
"""Bytes in which a file must show that it is JSON."""

LONGEST_WHOLE = 400
"""Digits up to which a whole number is read as an integer: a longer one is infinite as a float anyway."""

MOST_CELLS, MOST_EMPTY = 1 << 24, 100
"""Cells beyond which a table is refused if fewer than one in `MOST_EMPTY` has a value."""

_object = re.compile(rb"""\{\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:|'[^'\n]*'\s*:)""")
_line_end = re.compile("\r\n|\n|\r")

Path = tuple[str, ...]
"""The keys that lead to a cell, from the outermost object inwards."""


def json_source(file: TextFile) -> ArrowSource | None:
    """The source of a file of JSON; None for any other."""
    begins = file.first(JSON_HEAD).lstrip()
    if _object.match(begins):
        return _json_source(_from_lines(file), file.name)
    if not begins.startswith(b"["):
        return None
    inside, first = begins[1:].lstrip(), begins.split(b"\n", 1)[0].strip()
    if inside.startswith(b"{"):
        return _json_source(_from_list(file), file.name)
    if inside.startswith(b"[") or first == b"[" or first.endswith((b"]", b"],")):
        raise DataError(
            f"{file.name} holds JSON arrays, whose cells have no names. Write each row as an object, "
            '{"NAME": VALUE, ...}, or save the table as CSV.'
        )
    return None


def _from_lines(file: TextFile) -> Iterator[tuple[str, Any]]:
    """Where each row stands, and what it holds."""
    for number, line in enumerate(_line_end.split(_text(file)), start=1):
        if line.strip():
            where = f"line {number} of {file.name}"
            yield where, _parse(line, where, "Each line holds one row: {...}")


def _from_list(file: TextFile) -> Iterator[tuple[str, Any]]:
    rows = _parse(_text(file), file.name, "Write one list of rows, or a row on each line.")
    for number, row in enumerate(rows, start=1):
        yield f"row {number} of {file.name}", row


class _RepeatedKeyError(Exception):
    """An object that has a key twice."""


def _parse(text: str, where: str, remedy: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_int=_whole)
    except RecursionError:
        raise _too_deep(where) from None
    except _RepeatedKeyError as error:
        raise DataError(f"{where} has two values for {error}. Rename one of them.") from None
    except ValueError as error:
        raise DataError(f"{where} is no JSON ({error}). {remedy}") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedKeyError(repr(next(name for name in names if names.count(name) > 1)))
    return found


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_WHOLE else float(digits)


def _too_deep(where: str) -> DataError:
    return DataError(f"{where} is nested too deeply for a table. Leave such values out, or write them as text.")


def _text(file: TextFile) -> str:
    try:
        return b"".join(file.blocks()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(file.name, error.start) from None


def _json_source(rows: Iterable[tuple[str, Any]], name: str) -> ArrowSource:
    """Rows under the names that any of them has; a name that a row lacks is missing there."""
    kept: list[dict[Path, Any]] = []
    paths: dict[Path, None] = {}
    filled = 0
    for where, row in rows:
        if not isinstance(row, dict):
            raise DataError(f"{where} is {wording.cell(row)}, not a row with names: {{...}}")
        try:
            kept.append(dict(_flat(row)))
        except RecursionError:
            raise _too_deep(where) from None
        paths.update(dict.fromkeys(kept[-1]))
        refuse_wide(len(paths), name)
        filled += len(kept[-1])
    if not paths:
        raise DataError(f"{name} has no rows. Each line holds one: {{...}}")
    if len(paths) * len(kept) > max(MOST_CELLS, MOST_EMPTY * filled):
        raise DataError(
            f"{name} has {len(paths):,} different names in {len(kept):,} rows, and most rows have few of them. Write "
            "names that differ from row to row as values."
        )
    _refuse_same_name(paths, name)
    return columns_source({".".join(path): [_simple(row.get(path)) for row in kept] for path in paths})


def _flat(row: dict[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The cells of a row, those of an object in it under both names."""
    for key, value in row.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, (*above, key))
        else:
            yield (*above, key), value


def _refuse_same_name(paths: Iterable[Path], name: str) -> None:
    """Raise if two paths are the same column, as `{"a.b": 1, "a": {"b": 2}}` has."""
    seen: dict[str, Path] = {}
    for path in paths:
        other = seen.setdefault(".".join(path), path)
        if other != path:
            both = " and ".join(" in ".join(map(repr, reversed(each))) for each in (other, path))
            raise DataError(f"two columns of {name} are both named {'.'.join(path)!r}: {both}. Rename one of them.")


def _simple(cell: Any) -> Any:
    return None if cell is None or (not isinstance(cell, list) and is_missing(cell)) or cell == {} else cell
