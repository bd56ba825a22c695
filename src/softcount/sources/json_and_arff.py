"""JSON lines and ARFF files as sources of rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.bytestream import TextFile, recoded
from softcount.sources.csv_dialect import not_utf8
from softcount.sources.frames import ArrowSource, columns_source, is_missing, number_of
from softcount.sources.source import refuse_repeated, refuse_wide

JSON_HEAD = 65_536
"""First bytes of a file that decide whether it is JSON."""

LONGEST_WHOLE = 400
"""Digits up to which a whole number is read as an integer; a longer one is infinite as a float anyway."""

MOST_CELLS, MOST_EMPTY = 1 << 24, 100
"""Cells above which a table is refused if fewer than one in `MOST_EMPTY` has a value."""

_object = re.compile(rb"""\{\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:|'[^'\n]*'\s*:)""")
_line_end = re.compile("\r\n|\n|\r")

Path = tuple[str, ...]
"""The keys that lead to a cell, from the outermost object inwards."""


def json_source(file: TextFile) -> ArrowSource | None:
    """Return the source of a JSON file; None for any other file."""
    begins = file.first(JSON_HEAD).lstrip()
    if _object.match(begins):
        remedy = "Each line holds one row: {...}"
        lines = enumerate(_line_end.split(_text(file)), start=1)
        places = ((f"line {number} of {file.name}", line) for number, line in lines if line.strip())
        return _json_source(((where, _parse(line, where, remedy)) for where, line in places), file.name)
    if not begins.startswith(b"["):
        return None
    inside, first = begins[1:].lstrip(), begins.split(b"\n", 1)[0].strip()
    if inside.startswith(b"{"):
        rows = _parse(_text(file), file.name, "Write one list of rows, or a row on each line.")
        return _json_source(((f"row {number} of {file.name}", row) for number, row in enumerate(rows, 1)), file.name)
    if inside.startswith(b"[") or first == b"[" or first.endswith((b"]", b"],")):
        raise DataError(
            f"{file.name} holds JSON arrays, whose cells have no names. Write each row as an object, "
            '{"NAME": VALUE, ...}, or save the table as CSV.'
        )
    return None


def _parse(text: str, where: str, remedy: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_int=_whole)
    except RecursionError:
        raise _too_deep(where) from None
    except KeyError as error:  # an object has a key twice
        raise DataError(f"{where} has two values for {error}. Rename one of them.") from None
    except ValueError as error:
        raise DataError(f"{where} is not valid JSON ({error}). {remedy}") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise KeyError(next(name for name in names if names.count(name) > 1))
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
    """Collect rows of objects; a name that a row does not have is missing there."""
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
    seen: dict[str, Path] = {}
    for path in paths:
        other = seen.setdefault(".".join(path), path)
        if other != path:
            both = " and ".join(" in ".join(map(repr, reversed(each))) for each in (other, path))
            raise DataError(f"two columns of {name} are both named {'.'.join(path)!r}: {both}. Rename one of them.")
    columns: dict[str, list[Any]] = {}
    for path in paths:
        cells = [row.get(path) for row in kept]
        columns[".".join(path)] = [None if x == {} or (not isinstance(x, list) and is_missing(x)) else x for x in cells]
    return columns_source(columns)


def _flat(row: dict[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the cells of a row; a cell of a nested object has the path of all its keys."""
    for key, value in row.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, (*above, key))
        else:
            yield (*above, key), value


# -- Weka's ARFF files, which declare their columns

AUTOCLASS = b"!#; AutoClass"
ARFF_HEAD = 4_096
"""First bytes of a file that decide whether it is ARFF."""

CATEGORICAL, NUMBER = "categorical", "number"


class DeclaredColumn(NamedTuple):
    """A column of an ARFF file, its kind, and the reason with the file's own word for the type."""

    name: str
    kind: str
    why: str


def declared_source(file: TextFile) -> ArrowSource | None:
    """Return the source of an ARFF file; None for any other file."""
    begins = file.first(ARFF_HEAD)
    if begins.startswith(AUTOCLASS) or file.path.endswith(".db2"):
        raise DataError(
            f"{file.name} is a table of AutoClass, which is not read. "
            "Save it as plain CSV, with a first line that names the columns of its .hd2 file."
        )
    lines = (line.strip() for line in begins.removeprefix(b"\xef\xbb\xbf").splitlines())
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return _read_arff(file) if first.lower().startswith(b"@relation") else None


_attribute = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)\s+(.+)""", re.IGNORECASE)
_arff_cell = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,]*?)\s*(,|$)""")
_escaped = re.compile(r"\\(.)")


def _read_arff(file: TextFile) -> ArrowSource:
    columns: list[DeclaredColumn] = []
    text = recoded(b"".join(file.blocks()))[0].decode()
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1))
    lines = ((number, line) for number, line in lines if line and not line.startswith("%"))
    for number, line in lines:
        if line.lower() == "@data":
            return _arff_source(columns, lines, file.name)
        match = _attribute.fullmatch(line)
        if match is not None:
            declared = match[2].strip()
            word = "nominal" if declared.startswith("{") else declared.split()[0].lower()
            kind = NUMBER if word in ("numeric", "real", "integer") else CATEGORICAL
            columns.append(DeclaredColumn(_unquoted(match[1]), kind, f"{word} in the file"))
        elif not line.lower().startswith("@relation"):
            raise DataError(f"line {number} of {file.name} is neither an attribute nor @data: {wording.cell(line)}.")
    raise DataError(f"{file.name} is an ARFF file without @data. Copy or download it again.")


def _arff_source(columns: Sequence[DeclaredColumn], lines: Iterable[tuple[int, str]], name: str) -> ArrowSource:
    refuse_repeated([column.name for column in columns])
    cells: list[list[object]] = [[] for _ in columns]
    for line, text in lines:
        if text.startswith("{"):
            raise DataError(f"line {line} of {name} is sparse, which is not read. Save it with all of its cells.")
        row: list[str | None] = []
        match = _arff_cell.match(text)
        while match is not None:
            row.append(None if match[1] == "?" else _unquoted(match[1]))
            match = _arff_cell.match(text, match.end()) if match[2] else None
        if len(row) != len(columns):
            raise DataError(f"line {line} of {name} has {len(row)} cells where it declares {len(columns)} columns.")
        for place, cell in enumerate(row):
            number = None if cell is None or columns[place].kind == CATEGORICAL else number_of(cell)
            if number is None and cell is not None and columns[place].kind != CATEGORICAL:
                raise DataError(
                    f"{wording.column(columns[place].name)}, line {line} of {name}: {wording.cell(cell)} is not a "
                    "number, which the file declares it to be. Correct the cell, or the declaration."
                )
            cells[place].append(cell if number is None else float(number))
    if not cells or not cells[0]:
        raise DataError(f"{name} declares {len(columns)} columns, but has no rows.")
    found = columns_source({column.name: own for column, own in zip(columns, cells, strict=True)})
    found.kinds = {column.name: column.kind for column in columns if column.kind != NUMBER}
    found.whys = {column.name: column.why for column in columns if column.kind != NUMBER}
    return found


def _unquoted(cell: str) -> str:
    if len(cell) > 1 and cell[0] == cell[-1] and cell[0] in "'\"":
        return _escaped.sub(r"\1", cell[1:-1])
    return cell
