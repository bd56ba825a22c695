"""A page of headings, lines, tables and pictures, shown plain or in colour or as HTML; and JSON documents.

Every rendering is of the same page: `plain` and `screen.show` for a terminal, `page_document` for JSON, `html_page` for
a browser. A picture is drawn in the browser only; elsewhere its numbers stand for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from typing import Any

from msgspec import Struct, field

from softcount.pictures.drawing import Drawing
from softcount.report.passage import Passage
from softcount.report.plain_text import cell_width, printable, shortened, spelled_out


class Grid(Struct, frozen=True):
    """A table to read: one heading per column, cells of text; which columns are set to the right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]


class Heading(Struct, frozen=True):
    """A line that begins a part of the page, or (`level` 2) a part of a part."""

    text: str
    level: int = 1


class Picture(Struct, frozen=True):
    """A drawing under its title, with the numbers it shows and a line on how to read it; small ones go side by side."""

    title: str
    drawing: Drawing
    numbers: Grid
    reading: str = ""
    small: bool = False


PageBlock = Heading | Grid | Passage | Picture | str


class Page(Struct):
    """What one command has to say, in order; what is put on it may come from data, and is spelled out here for all."""

    blocks: list[PageBlock] = field(default_factory=list)

    def heading(self, text: str, level: int = 1) -> None:
        self.blocks.append(Heading(printable(text), level))

    def line(self, *texts: str | Passage) -> None:
        """Each text on a line of its own; a document, marked, on its own lines."""
        self.blocks.extend(text if isinstance(text, Passage) else printable(text) for text in texts)

    def grid(self, headings: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> None:
        """A table, its texts cut to a readable width; the columns named in `right` are set to the right."""
        self.blocks.append(grid_of(headings, rows, right))

    def picture(self, title: str, drawing: Drawing, numbers: Grid, reading: str = "", small: bool = False) -> None:
        """A picture with the numbers that it shows."""
        self.blocks.append(Picture(printable(title), drawing, numbers, printable(reading), small))


def grid_of(headings: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> Grid:
    """A table, its texts cut to a readable width; the columns named in `right` are set to the right."""
    flushed, shown = set(right), [_cells(headings), *map(_cells, rows)]
    return Grid(shown[0], tuple(shown[1:]), tuple(heading in flushed for heading in headings))


def _cells(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(shortened(printable(text)) for text in texts)


def plain(page: Page) -> str:
    """The page as text without colour or drawing.

    >>> page = Page()
    >>> page.heading("Fruit")
    >>> page.grid(["name", "n"], [["cherry", "7"], ["lime", "12"]], right=["n"])
    >>> print(plain(page))
    Fruit
      name     n
      cherry   7
      lime    12
    <BLANKLINE>
    """
    lines: list[str] = []
    for block in page.blocks:
        lines.extend(_block_lines(block, first=not lines))
    return "".join(line.rstrip() + "\n" for line in lines)


def _block_lines(block: PageBlock, first: bool) -> list[str]:
    if isinstance(block, Heading):
        return [block.text] if first else ["", block.text]
    if isinstance(block, Grid):
        return _aligned(block)
    if isinstance(block, Passage):
        return ["  " + line for line in block.plain()]
    if isinstance(block, Picture):
        return [f"  {block.title}:", *_aligned(block.numbers)]
    return ["  " + block]


def _aligned(grid: Grid) -> list[str]:
    table = [grid.headings, *grid.rows]
    widths = [max(map(cell_width, column)) for column in zip(*table, strict=True)]
    return ["  " + "  ".join(map(_padded, row, widths, grid.right)) for row in table]


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - cell_width(text))
    return space + text if right else text + space


def page_document(page: Page) -> list[dict[str, Any]]:
    """The page as data, block by block: what it says, and the numbers of its pictures."""
    return [_block_document(block) for block in page.blocks]


def _block_document(block: PageBlock) -> dict[str, Any]:
    if isinstance(block, Heading):
        return {"heading": block.text, "level": block.level}
    if isinstance(block, Grid):
        return {"headings": block.headings, "rows": block.rows}
    if isinstance(block, Picture):
        return {"picture": block.title, "reading": block.reading, **_block_document(block.numbers)}
    return {"text": "\n".join(block.plain()) if isinstance(block, Passage) else block}


# -- JSON: numbers as numbers, what is not a number as null, keys as text


def as_json(value: Any) -> str:
    """The value as an indented JSON document, ended by a newline; NaN and infinities become null.

    What a terminal could obey is written as an escape of JSON's, which means the same.

    >>> print(as_json({"a": float("nan"), 2: (1.5, None)}), end="")
    {
      "a": null,
      "2": [
        1.5,
        null
      ]
    }
    """
    text = json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False)
    return "".join(f"{spelled_out(line, _json_escape)}\n" for line in text.split("\n"))


def _json_escape(char: str) -> str:
    return json.dumps(char)[1:-1]


def jsonable(value: Any) -> Any:
    """The value in the types JSON knows; NumPy scalars and arrays become numbers and lists."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        # str(), because an enumeration of strings is a string; a lone surrogate has no UTF-8.
        return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key_text(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    return _from_other(value)


def key_text(key: object) -> str:
    """A column key or level as the name of a JSON member; a block of columns is its names joined by commas."""
    if isinstance(key, tuple):
        return ", ".join(map(key_text, key))
    return str(jsonable(str(key)))


def _from_other(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, date | time):
        return value.isoformat()
    return jsonable(str(value))
