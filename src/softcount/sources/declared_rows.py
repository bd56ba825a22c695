"""Files that say themselves what their columns are: Weka's ARFF, and AutoClass's .db2 beside its .hd2."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from softcount.errors import DataError
from softcount.sources import wording
from softcount.sources.arrow_columns import number_of
from softcount.sources.bytestream import TextFile, recoded
from softcount.sources.frames import columns_source
from softcount.sources.in_memory import ArrowSource
from softcount.sources.source import refuse_repeated

AUTOCLASS = b"!#; AutoClass"
"""How AutoClass's files begin."""

LOOK = 4_096
"""Bytes in which a file says what it is."""

IGNORE, CATEGORICAL, NUMBER, POSITIVE = "ignore", "categorical", "number", "positive"


class DeclaredColumn(NamedTuple):
    """A column of such a file, what it is, and in which words the file says so."""

    name: str
    kind: str
    why: str


def declared_source(file: TextFile) -> ArrowSource | None:
    """The source of such a file; None for any other."""
    begins = file.first(LOOK)
    if _arff_begins(begins):
        return _arff(file)
    header = _header_beside(file.path) if begins.startswith(AUTOCLASS) or file.path.endswith(".db2") else None
    return None if header is None else _autoclass(file, header)


def _source(columns: Sequence[DeclaredColumn], rows: Iterable[tuple[int, list[str | None]]], name: str) -> ArrowSource:
    """The rows, each with the number of its line, under the columns that the file declares."""
    refuse_repeated([column.name for column in columns])
    cells: list[list[object]] = [[] for _ in columns]
    for line, row in rows:
        if len(row) != len(columns):
            raise DataError(f"line {line} of {name} has {len(row)} cells where it declares {len(columns)} columns.")
        for place, cell in enumerate(row):
            cells[place].append(_cell(cell, columns[place], line, name))
    if not cells or not cells[0]:
        raise DataError(f"{name} declares {len(columns)} columns, but has no rows.")
    found = columns_source({column.name: own for column, own in zip(columns, cells, strict=True)})
    found.kinds = {column.name: column.kind for column in columns if column.kind != NUMBER}
    found.whys = {column.name: column.why for column in columns if column.kind != NUMBER}
    return found


def _cell(cell: str | None, column: DeclaredColumn, line: int, name: str) -> object:
    if cell is None or column.kind in (CATEGORICAL, IGNORE):
        return cell
    number = number_of(cell)
    if number is None:
        raise DataError(
            f"{wording.column(column.name)}, line {line} of {name}: {wording.cell(cell)} is no number, which "
            "the file declares it to be. Correct the cell, or what is declared."
        )
    return float(number)


def _lines(file: TextFile) -> Iterator[tuple[int, str]]:
    text = recoded(b"".join(file.blocks()))[0].decode()
    return enumerate(text.splitlines(), start=1)


# -- ARFF

_attribute = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)\s+(.+)""", re.IGNORECASE)
_arff_cell = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,]*?)\s*(,|$)""")
_escaped = re.compile(r"\\(.)")


def _arff_begins(begins: bytes) -> bool:
    lines = (line.strip() for line in begins.removeprefix(b"\xef\xbb\xbf").splitlines())
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return first.lower().startswith(b"@relation")


def _arff(file: TextFile) -> ArrowSource:
    columns: list[DeclaredColumn] = []
    lines = ((number, line.strip()) for number, line in _lines(file))
    lines = ((number, line) for number, line in lines if line and not line.startswith("%"))
    for number, line in lines:
        if line.lower() == "@data":
            return _source(columns, _arff_rows(lines, file.name), file.name)
        match = _attribute.fullmatch(line)
        if match is not None:
            columns.append(_arff_column(_unquoted(match[1]), match[2].strip()))
        elif not line.lower().startswith("@relation"):
            raise DataError(f"line {number} of {file.name} is neither an attribute nor @data: {wording.cell(line)}.")
    raise DataError(f"{file.name} is an ARFF file without @data. Copy or download it again.")


def _arff_column(name: str, said: str) -> DeclaredColumn:
    if said.startswith("{"):
        return DeclaredColumn(name, CATEGORICAL, "nominal in the file")
    kind = NUMBER if said.split()[0].lower() in ("numeric", "real", "integer") else "text"
    return DeclaredColumn(name, NUMBER if kind == NUMBER else CATEGORICAL, f"{said.split()[0].lower()} in the file")


def _arff_rows(lines: Iterable[tuple[int, str]], name: str) -> Iterator[tuple[int, list[str | None]]]:
    for number, line in lines:
        if line.startswith("{"):
            raise DataError(f"line {number} of {name} is sparse, which is not read. Save it with all of its cells.")
        yield number, [None if cell == "?" else _unquoted(cell) for cell in _arff_cells(line)]


def _arff_cells(line: str) -> Iterator[str]:
    at = 0
    while True:
        match = _arff_cell.match(line, at)
        assert match is not None
        yield match[1]
        if not match[2]:
            return
        at = match.end()


def _unquoted(cell: str) -> str:
    if len(cell) > 1 and cell[0] == cell[-1] and cell[0] in "'\"":
        return _escaped.sub(r"\1", cell[1:-1])
    return cell


# -- AutoClass


class AutoClassHeader(NamedTuple):
    """What an .hd2 file says: the columns, what parts cells, what begins a comment, and the word for missing."""

    columns: list[DeclaredColumn]
    separator: str
    comment: str
    unknown: str


def _header_beside(path: str) -> str | None:
    """The .hd2 file of a .db2 file; one to be predicted has that of the file it is like."""
    stem = path.removesuffix(".gz").removesuffix(".db2")
    found = [f"{x}.hd2" for x in (stem, stem.removesuffix("-predict")) if os.path.isfile(f"{x}.hd2")]
    if not found and path.endswith(".db2"):
        raise DataError(f"{path} is AutoClass's data, which needs its header beside it: {stem}.hd2")
    return found[0] if found else None


def _autoclass(file: TextFile, header: str) -> ArrowSource:
    said = _read_header(TextFile(header))
    return _source(said.columns, _autoclass_rows(file, said), file.name)


def _read_header(file: TextFile) -> AutoClassHeader:
    columns: list[DeclaredColumn] = []
    marks = {"separator_char": " ", "comment_char": ";", "unknown_token": "?"}
    for number, line in _lines(file):
        if not line.strip() or line[0] in "!#; ":
            continue
        words = shlex.split(line, comments=False)
        if words[0] in marks and len(words) == 2:
            marks[words[0]] = words[1]
        elif words[0].isdecimal() and len(words) >= 4:
            columns.append(_autoclass_column(words))
        elif words[0] not in ("num_db2_format_defs", "number_of_attributes"):
            raise DataError(f"line {number} of {file.name} is no attribute of AutoClass's: {wording.cell(line)}.")
    return AutoClassHeader(columns, *marks.values())


def _autoclass_column(words: Sequence[str]) -> DeclaredColumn:
    kind, detail, name = words[1], words[2], words[3]
    found = {"dummy": IGNORE, "discrete": CATEGORICAL, "real": POSITIVE if detail == "scalar" else "real"}.get(kind)
    if found is None:
        raise DataError(
            f"{wording.column(name)} is declared {kind!r} in the header. It may be real, discrete or dummy."
        )
    return DeclaredColumn(name, found, f"{kind} in the header")


def _autoclass_rows(file: TextFile, said: AutoClassHeader) -> Iterator[tuple[int, list[str | None]]]:
    begun = False
    for number, line in _lines(file):
        if not line.strip() or line[0] in (f" {said.comment}" if begun else "!#; "):
            continue
        begun = True
        cells = line.split() if said.separator == " " else [cell.strip() for cell in line.split(said.separator)]
        yield number, [None if cell == said.unknown else cell.strip('"') for cell in cells]
