"""A page of headings, lines, tables and pictures, and its renderings for a terminal and as JSON.

Every rendering shows the same page: `render_text` and `show_page` for a terminal, `page_blocks` for JSON,
`html.render_html` for a browser. A picture is drawn in the browser only; elsewhere its numbers replace it.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct

from softcount.pictures.text import cell_width, escape_controls, format_count, format_number, printable, shorten
from softcount.run.progress import console_on, on_terminal

if TYPE_CHECKING:
    from softcount.learn.record import Learned
    from softcount.pictures.drawing import Drawing
    from softcount.table.schema import Key

WIDTH = 78
"""Columns of a line; a page sets it in by two more."""
LONGEST_LINE = 118
"""Characters of a line of text, except for commands to copy; longer text goes on in the next line."""


class Grid(Struct, frozen=True):
    """A table to read: a heading for each column, cells of text, and which columns are set to the right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]


class Heading(Struct, frozen=True):
    """A line that begins a part of the page, or (`level` 2) a part of a part."""

    text: str
    level: int = 1


class Chart(Protocol):
    """A description of a picture: it can lay itself out in pixels, and draw itself on matplotlib axes."""

    def draw(self) -> Drawing: ...
    def plot(self, ax: Any) -> None: ...


class Picture(Struct, frozen=True):
    """A chart under its title, with the numbers it shows and a line on how to read it; small ones go side by side."""

    title: str
    chart: Chart
    table: Grid
    reading: str = ""
    small: bool = False

    @property
    def svg(self) -> str:
        return self.chart.draw().svg_file()


class MarkedText(NamedTuple):
    """A run of characters, its nats, and how strongly it is marked: 0 to 3, below 0 for the other class."""

    text: str
    nats: float = 0.0
    tone: int = 0

    @property
    def signs(self) -> str:
        """The signs on each side of it, two if it is marked most."""
        return ("+" if self.tone > 0 else "-") * (2 if abs(self.tone) == 3 else min(abs(self.tone), 1))

    @property
    def width(self) -> int:
        """Terminal columns, with its signs."""
        return cell_width(self.text) + 2 * len(self.signs)


class Passage(Struct, frozen=True):
    """Lines to be shown, and the classes that marked words speak for."""

    lines: tuple[tuple[MarkedText, ...], ...]
    ours: str
    theirs: str

    def plain(self) -> Iterator[str]:
        """Return the lines with signs around marked words, after a line on what they mean."""
        if self.ours != self.theirs:
            yield f"+word+ supports {self.ours}, -word- supports {self.theirs}; two signs: strongly"
        for line in self.lines:
            yield "".join(f"{piece.signs}{piece.text}{piece.signs}" for piece in line)


class Figure(NamedTuple):
    """A number that sums the model up: its name, its value, and a remark such as the value of a baseline."""

    name: str
    value: str
    remark: str = ""


class Facts(Struct, frozen=True):
    """The figures at the top of a page."""

    figures: tuple[Figure, ...]

    def plain(self) -> Iterator[str]:
        for name, value, remark in self.figures:
            yield f"{name}: {value}" + (f" ({remark})" if remark else "")


class Notes(Struct, frozen=True):
    """Warnings and remarks: a line for each, in a browser a list."""

    lines: tuple[str, ...]

    def plain(self) -> Iterator[str]:
        yield from self.lines


PageBlock = Heading | Grid | Passage | Picture | Facts | Notes | str


class Page(Struct):
    """The blocks of one answer, in order. Text on it may come from data: control characters are escaped here."""

    blocks: list[PageBlock] = []

    def heading(self, text: str, level: int = 1) -> None:
        self.blocks.append(Heading(printable(text), level))

    def line(self, *texts: str | Passage) -> None:
        """Add each text on its own line; a passage on several."""
        self.blocks.extend(text if isinstance(text, Passage) else printable(text) for text in texts)

    def notes(self, texts: Iterable[str]) -> None:
        self.blocks.append(Notes(tuple(map(printable, texts))))

    def facts(self, figures: Iterable[Figure]) -> None:
        shown = tuple(Figure(*map(printable, figure)) for figure in figures)
        if shown:
            self.blocks.append(Facts(shown))

    def grid(self, headings: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] | None = ()) -> None:
        self.blocks.append(make_grid(headings, rows, right))

    def rest(self, n: int, one: str, many: str = "", after: str = "more", mark: str = "") -> None:
        """Add a line on what is not shown, "and 3 columns more", if there is anything."""
        if n > 0:
            self.line(f"and {format_count(n, one, many)}{mark} {after}")

    def picture(self, title: str, chart: Chart, numbers: Grid, reading: str = "", small: bool = False) -> None:
        self.blocks.append(Picture(printable(title), chart, numbers, printable(reading), small))


def make_grid(headings: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] | None = ()) -> Grid:
    """Make a table, its texts cut to a readable width.

    The columns named in `right` are set to the right; with None, all but the first.
    """
    shown = [tuple(shorten(printable(text)) for text in line) for line in (headings, *rows)]
    flushed = set(headings[1:] if right is None else right)
    return Grid(shown[0], tuple(shown[1:]), tuple(heading in flushed for heading in headings))


def render_text(page: Page) -> str:
    """Render the page as text without colour or drawing.

    >>> page = Page()
    >>> page.heading("Fruit")
    >>> page.grid(["name", "n"], [["cherry", "7"], ["lime", "12"]], right=["n"])
    >>> print(render_text(page))
    Fruit
      name     n
      cherry   7
      lime    12
    <BLANKLINE>
    """
    lines: list[str] = []
    for block in page.blocks:
        if isinstance(block, Heading):
            lines += [block.text] if not lines else ["", block.text]
        elif isinstance(block, Grid):
            lines += _align(block)
        elif isinstance(block, Passage | Facts):
            lines += ["  " + line for line in block.plain()]
        elif isinstance(block, Picture):
            lines += [f"  {block.title}:", *_align(block.table)]
        else:
            for line in (block,) if isinstance(block, str) else block.plain():
                whole = len(line) + 2 <= LONGEST_LINE or line.startswith("softcount ")
                lines += ["  " + line] if whole else _break_line(line)
    return "".join(line.rstrip() + "\n" for line in lines)


_OPTION = re.compile(r"(--[\w-]+) (?=\S)")


def _break_line(text: str) -> list[str]:
    """Break a long line between words, but not between an option and its value."""
    glued = _OPTION.sub("\\1\0", text)  # the text holds no control characters
    broken = textwrap.TextWrapper(LONGEST_LINE, "  ", "    ", break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in broken.wrap(glued)]


def _align(grid: Grid) -> list[str]:
    table = [grid.headings, *grid.rows]
    widths = [max(map(cell_width, column)) for column in zip(*table, strict=True)]
    found = []
    for row in table:
        cells = []
        for text, width, right in zip(row, widths, grid.right, strict=True):
            space = " " * (width - cell_width(text))
            cells.append(space + text if right else text + space)
        found.append("  " + "  ".join(cells))
    return found


def page_blocks(page: Page) -> list[dict[str, Any]]:
    """Return the page as data, block by block, with the numbers of its pictures."""
    found: list[dict[str, Any]] = []
    for block in page.blocks:
        if isinstance(block, Heading):
            found.append({"heading": block.text, "level": block.level})
        elif isinstance(block, Grid):
            found.append({"headings": block.headings, "rows": block.rows})
        elif isinstance(block, Picture):
            numbers = {"headings": block.table.headings, "rows": block.table.rows}
            found.append({"picture": block.title, "reading": block.reading, **numbers})
        elif isinstance(block, Facts):
            found.append({"facts": [figure._asdict() for figure in block.figures]})
        elif isinstance(block, Notes):
            found += [{"text": line} for line in block.lines]
        else:
            found.append({"text": "\n".join(block.plain()) if isinstance(block, Passage) else block})
    return found


# -- on a terminal: rules, bold headings, and colour if the terminal allows it

FOR = ("", "green", "bold green", "bold reverse green")
AGAINST = ("", "red", "bold red", "bold reverse red")


def show_page(page: Page, stream: IO[str]) -> None:
    """Write the page: with rich on a terminal, as aligned text elsewhere."""
    if not on_terminal(stream):
        stream.write(render_text(page))
        return
    from rich.box import SIMPLE_HEAD
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = console_on(stream)

    # Text objects, not strings: a category called "[red]" must be shown, not obeyed.
    def put_text(text: str | Text) -> None:
        console.print(Padding(Text(text) if isinstance(text, str) else text, (0, 0, 0, 2)))

    def put_grid(grid: Grid) -> None:
        table = Table(box=SIMPLE_HEAD, pad_edge=True, show_edge=False)
        for heading, right in zip(grid.headings, grid.right, strict=True):
            table.add_column(Text(heading), justify="right" if right else "left", overflow="fold")
        for row in grid.rows:
            table.add_row(*map(Text, row))
        console.print(table)

    for place, block in enumerate(page.blocks):
        if isinstance(block, Heading):
            if place:
                console.print()
            console.print(Text(block.text, style="bold"))
        elif isinstance(block, Grid):
            put_grid(block)
        elif isinstance(block, Picture):
            put_text(f"{block.title}:")
            put_grid(block.table)
        elif isinstance(block, str):
            put_text(block)
        elif console.no_color or not isinstance(block, Passage):
            put_text("\n".join(block.plain()))
        else:
            rest = f" for {block.theirs}; the bolder, the more"
            legend = Text.assemble(("green", FOR[2]), f" supports {block.ours}, ", ("red", AGAINST[2]), rest)
            lines = [legend] if block.ours != block.theirs else []
            for line in block.lines:
                tones = ((x.text, FOR[x.tone] if x.tone >= 0 else AGAINST[-x.tone]) for x in line)
                lines.append(Text.assemble(*tones))
            put_text(Text("\n").join(lines))


# -- JSON: records are objects, keys are text, NaN and infinities are null


def as_json(value: Any) -> str:
    """Write the value as indented JSON that ends with a newline.

    Characters that a terminal could obey are JSON escapes, which mean the same.

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
    return "".join(f"{escape_controls(line, lambda char: json.dumps(char)[1:-1])}\n" for line in text.split("\n"))


def pick(source: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def jsonable(value: Any) -> Any:
    """Convert a value to the types of JSON: records to objects, arrays to lists."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        # str(), because an enumeration of strings is a string; a lone surrogate has no UTF-8.
        return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Struct):
        return {name: jsonable(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {key_text(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, date | time):
        return value.isoformat()
    return jsonable(str(value))


def key_text(key: object) -> str:
    """Write a column key or category as text; a block of columns is its names joined by commas."""
    if isinstance(key, tuple):
        return ", ".join(map(key_text, key))
    return str(jsonable(str(key)))


def format_cell(value: Any, digits: int = 4) -> str:
    """Format a cell as a person reads it; those of a block in brackets.

    >>> format_cell(2.5), format_cell(None), format_cell(("a", 1.0))
    ('2.5', 'missing', '(a, 1)')
    """
    if value is None:
        return "missing"
    if isinstance(value, tuple):
        return f"({', '.join(format_cell(part, digits) for part in value)})"
    return format_number(value, digits) if isinstance(value, float) else str(value)


# -- redaction: nothing by which a single row could be recognised

FEWEST_ROWS = 5
"""Rows that a category or class must have to be named in a redacted report."""
RARE = "(rare)"


class Redaction(Struct, frozen=True):
    """How categories and numbers are shown.

    Redacted, categories of fewer than five rows have no name, no cell is shown, and numbers that come from cells are
    rounded to two digits. `rows` are the rows of each category by column, as far as they are known.
    """

    redacted: bool = False
    rows: dict[Key, dict[Any, float]] = {}

    @property
    def shows_cells(self) -> bool:
        return not self.redacted

    def allows(self, rows: float) -> bool:
        return not self.redacted or rows >= FEWEST_ROWS

    def level(self, key: Key, level: Any) -> str:
        return key_text(level) if self.allows(self.rows.get(key, {}).get(level, 0.0)) else RARE

    def levels(self, key: Key, levels: Sequence[Any]) -> list[str]:
        return [self.level(key, level) for level in levels]

    def number(self, value: float | None, digits: int = 4) -> str:
        """Format a number that comes from cells."""
        if self.redacted and value is not None:
            value = float(f"{value:.2g}")  # a number of four digits would be shown with all of them
        return format_number(value, digits)


OPEN = Redaction()


def redaction_of(fitted: Learned, redact: bool) -> Redaction:
    if not redact:
        return OPEN
    table = fitted.record.table
    rows: dict[Any, dict[Any, float]] = {}
    for column in () if table is None else table.columns:
        levels = fitted.schema[column.key].levels
        rows[column.key] = {levels[place]: float(n) for place, n in column.levels}
    return Redaction(True, rows)
