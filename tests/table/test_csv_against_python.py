"""The reader of text tables against Python's `csv` on 2,000 drawn files: no row lost, no cell altered, no other error.

Where we differ from it on purpose, `expected` says the rule.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numba as numba
import pytest

from softcount.errors import DataError
from softcount.sources import bytestream, csv_file
from softcount.sources.bytestream import BOM, TextFile
from softcount.sources.csv_dialect import DELIMITERS, dialect_of
from softcount.sources.csv_file import ANY, CsvSource
from softcount.sources.source import FileFormat

FILES, PARTS = 2_000, 20
NAMES = ["first", "se cond", "drei\u00e9", "4th"]
LINE_ENDS = ["\n", "\r\n", "\r"]
PLAIN = [
    "a",
    "1",
    "1.5",
    "007",
    "-0",
    "x y",
    " lead",
    "trail ",
    "\u00e9",
    "\u65e5\u672c",
    "\U0001f600",
    "\ufeff",
    "\ufeffx",
    "NA",
    'in"side',
    '5"',
    "\x1b[31m",
    "\t",
    "\x0b",
    "\u2028",
    "\x85",
]
QUOTED = ["", "a\nb", "a\rb", "a\r\nb", '"', '""', 'say "hi"', "\r", "\n\n", ",", ";|\t", "\ufeff"]
SOUP = ["a", "b", "1", ",", ",", '"', '"', '""', "\n", "\r", "\r\n", "\n", "\ufeff", " ", ";", "\u00e9", ""]


def drawn(random: Random) -> bytes:
    """A file: most are tables with something unusual in every place, some are letters in any order."""
    text = _soup(random) if random.random() < 0.25 else _table(random)
    content = (BOM if random.random() < 0.3 else b"") + text.encode()
    spoilt = random.random()
    if spoilt < 0.08:
        at = random.randrange(len(content) + 1)
        content = content[:at] + (b"\0" if spoilt < 0.04 else b"\xff") + content[at:]
    return content


def _table(random: Random) -> str:
    width, delimiter = random.randint(1, 4), random.choice(DELIMITERS)
    ends = random.choice([LINE_ENDS[:1], LINE_ENDS[1:2], LINE_ENDS[2:], LINE_ENDS, LINE_ENDS])
    ragged = random.random() < 0.15
    rows = [NAMES[:width], *(_row(random, width, delimiter, ragged) for _ in range(random.randint(0, 12)))]
    lines = [delimiter.join(row) + random.choice(ends) for row in rows]
    for _ in range(random.choice([0, 0, 1, 3])):
        lines.insert(random.randrange(len(lines) + 1), random.choice(ends))
    text = "".join(lines)
    return text.rstrip("\r\n") if random.random() < 0.3 else text


def _row(random: Random, width: int, delimiter: str, ragged: bool) -> list[str]:
    if ragged and random.random() < 0.2:
        width += random.choice([-1, 1, 2])
    return [_cell(random, delimiter) for _ in range(width)]


def _cell(random: Random, delimiter: str) -> str:
    cell = random.choice(PLAIN)
    if random.random() < 0.002:
        return cell.strip('"') * 150_000
    if random.random() < 0.3:
        cell = random.choice(QUOTED) + random.choice(["", cell])
        return '"' + cell.replace('"', '""') + '"' + random.choice(["", "", "", "after", ' "'])
    return cell if delimiter not in cell else "-"


def _soup(random: Random) -> str:
    header = ",".join(NAMES[: random.randint(1, 2)]) + random.choice(LINE_ENDS)
    return header + "".join(random.choices(SOUP, k=random.randint(0, 40)))


def expected(content: bytes, delimiter: str) -> list[list[str | None]] | str:
    """The rows as Python's `csv` reads them; or what must be said of a file that it reads and we refuse."""
    # A mark at the very beginning is the file's; any other U+FEFF belongs to a cell.
    text = content.removeprefix(BOM).decode("utf-8", "replace")
    # Blank lines are no rows, not even in a table of a single column.
    records = [row for row in csv.reader(io.StringIO(f"{text}\nend", newline=""), delimiter=delimiter) if row]
    header, *rows = records[:-1] or [[]]
    refused = []
    if b"\0" in content:
        refused.append("NUL byte in")
    if "\ufffd" in text:
        refused.append("not UTF-8 text")
    if records[-1] != ["end"]:
        refused.append("a quote is never closed")
    refused += [f"row {place} .*has {len(row)} cells" for place, row in enumerate(rows, 1) if len(row) != len(header)][
        :1
    ]
    if not rows:
        refused.append("no rows|is empty")
    return "|".join(refused) or [[cell or None for cell in row] for row in rows]  # an empty cell is missing


def delimiter_of(content: bytes) -> str:
    """The delimiter that the reader finds; any where it gets no further than the first line."""
    try:
        found = dialect_of("t", content.removeprefix(BOM), True, FileFormat())
    except DataError:
        return ","
    return found.delimiter if found else ","


def found(path: Path, random: Random) -> tuple[CsvSource, list[list[str | None]]]:
    source = CsvSource(TextFile(str(path)), ())
    source.chunk_rows = random.randint(1, 5)
    source._long = random.random() < 0.5  # read by kernels, where Numba is awake
    rows: list[list[str | None]] = []
    for piece in source.pieces(dict.fromkeys(source.keys, ANY)):
        columns = [column.to_pylist() for column in piece.load().values()]
        assert (piece.start, piece.n_rows) == (len(rows), len(columns[0]))
        rows.extend(map(list, zip(*columns, strict=True)))
    return source, rows


@pytest.fixture
def long_cells() -> Iterator[None]:
    before = csv.field_size_limit(1 << 24)
    yield
    csv.field_size_limit(before)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_rows_are_those_of_pythons_csv(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long_cells: None
) -> None:
    random, path = Random(part), tmp_path / "t.csv"
    read = 0
    for _ in range(FILES // PARTS):
        content = drawn(random)
        path.write_bytes(content)
        large = len(content) > 10_000
        monkeypatch.setattr(bytestream, "BLOCK", random.choice([1_000, 40_000] if large else [3, 4, 5, 7, 64, 4_096]))
        monkeypatch.setattr(csv_file, "CHUNK_BYTES", random.choice([1, 10, 50, 1_000_000]))
        monkeypatch.setattr(csv_file, "LOOK_RUN", random.choice([1, 3, 4_096]))
        right = expected(content, delimiter_of(content))
        if isinstance(right, str):
            with pytest.raises(DataError, match=right):
                found(path, random)
            continue
        source, rows = found(path, random)
        assert rows == right, content
        assert [column.to_pylist()[0] for column in source.head(source.keys).values()] == rows[0]
        read += 1
    assert read > FILES // PARTS // 3
