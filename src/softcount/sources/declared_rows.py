"""Weka's ARFF files, which declare their columns."""

from __future__ import annotations

import re
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

ARFF_HEAD = 4_096
"""Bytes in which a file says what it is."""

CATEGORICAL, NUMBER = "categorical", "number"


class DeclaredColumn(NamedTuple):
    """A column of such a file, what it is, and in which words the file says so."""

    name: str
    kind: str
    why: str


def declared_source(file: TextFile) -> ArrowSource | None:
    """The source of such a file; None for any other."""
    begins = file.first(ARFF_HEAD)
    if begins.startswith(AUTOCLASS) or file.path.endswith(".db2"):
        raise DataError(
            f"{file.name} is a table of AutoClass, which is not read. "
            "Save it as plain CSV, with a first line that names the columns of its .hd2 file."
        )
    return _read_arff(file) if _arff_begins(begins) else None


def _arff_source(
    columns: Sequence[DeclaredColumn], rows: Iterable[tuple[int, list[str | None]]], name: str
) -> ArrowSource:
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
    if cell is None or column.kind == CATEGORICAL:
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


def _read_arff(file: TextFile) -> ArrowSource:
    columns: list[DeclaredColumn] = []
    lines = ((number, line.strip()) for number, line in _lines(file))
    lines = ((number, line) for number, line in lines if line and not line.startswith("%"))
    for number, line in lines:
        if line.lower() == "@data":
            return _arff_source(columns, _arff_rows(lines, file.name), file.name)
        match = _attribute.fullmatch(line)
        if match is not None:
            columns.append(_arff_column(_unquoted(match[1]), match[2].strip()))
        elif not line.lower().startswith("@relation"):
            raise DataError(f"line {number} of {file.name} is neither an attribute nor @data: {wording.cell(line)}.")
    raise DataError(f"{file.name} is an ARFF file without @data. Copy or download it again.")


def _arff_column(name: str, said: str) -> DeclaredColumn:
    if said.startswith("{"):
        return DeclaredColumn(name, CATEGORICAL, "nominal in the file")
    kind = said.split()[0].lower()
    return DeclaredColumn(
        name, NUMBER if kind in ("numeric", "real", "integer") else CATEGORICAL, f"{kind} in the file"
    )


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
