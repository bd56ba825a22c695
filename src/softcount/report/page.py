"""A page of headings, lines and tables: written once, shown plain, in colour, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO

from softcount.report.passage import Passage
from softcount.report.plain_text import cell_width, printable, shortened
from softcount.run.progress import on_terminal


@dataclass(frozen=True, slots=True)
class Grid:
    """A table to read: one heading per column, cells of text; the columns named in `right` are set to the right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()

    def cells(self) -> list[tuple[str, ...]]:
        """The rows as shown: escaped and cut to a readable width."""
        return [tuple(shortened(printable(cell)) for cell in row) for row in self.rows]

    def flushed(self) -> list[bool]:
        return [heading in self.right for heading in self.headings]


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


Block = Heading | Grid | Passage | str


@dataclass(slots=True)
class Page:
    """What one command has to say, in order."""

    blocks: list[Block] = field(default_factory=list)

    def heading(self, text: str) -> None:
        self.blocks.append(Heading(text))

    def line(self, text: str) -> None:
        self.blocks.append(text)

    def lines(self, texts: Iterable[str]) -> None:
        self.blocks.extend(texts)

    def grid(self, headings: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> None:
        self.blocks.append(Grid(tuple(headings), tuple(tuple(row) for row in rows), frozenset(right)))

    def passage(self, passage: Passage) -> None:
        self.blocks.append(passage)


def show(page: Page, stream: IO[str]) -> None:
    """Write the page: a rich one on a terminal, plain aligned text elsewhere."""
    if on_terminal(stream):
        from softcount.report.screen import show_rich

        show_rich(page, stream)
    else:
        stream.write(plain(page))


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


def _block_lines(block: Block, first: bool) -> list[str]:
    if isinstance(block, Heading):
        return [printable(block.text)] if first else ["", printable(block.text)]
    if isinstance(block, Grid):
        return _aligned(block)
    if isinstance(block, Passage):
        return ["  " + line for line in block.plain()]
    return ["  " + printable(block)]


def _aligned(grid: Grid) -> list[str]:
    table = [grid.headings, *grid.cells()]
    widths = [max(map(cell_width, column)) for column in zip(*table, strict=True)]
    flushed = grid.flushed()
    return ["  " + "  ".join(map(_padded, row, widths, flushed)) for row in table]


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - cell_width(text))
    return space + text if right else text + space
