"""The same page on a terminal: rules, bold headings and colour where the terminal allows it."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from softcount.report.page import Grid, Heading, Page, Picture, plain
from softcount.report.passage import Passage
from softcount.run.progress import console_on, on_terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text


def show(page: Page, stream: IO[str]) -> None:
    """Write the page: a rich one on a terminal, plain aligned text elsewhere."""
    if not on_terminal(stream):
        stream.write(plain(page))
        return
    from rich.padding import Padding

    console = console_on(stream)
    for place, block in enumerate(page.blocks):
        if isinstance(block, Heading):
            _show_heading(console, block, first=place == 0)
        elif isinstance(block, Passage):
            console.print(Padding(_marked(block, colour=not console.no_color), (0, 0, 0, 2)))
        elif isinstance(block, Picture):
            console.print(_drawn(f"{block.title}:"), _drawn(block.numbers))
        else:
            console.print(_drawn(block))


def _show_heading(console: Console, heading: Heading, first: bool) -> None:
    from rich.text import Text

    if not first:
        console.print()
    console.print(Text(heading.text, style="bold"))


def _drawn(block: Grid | str) -> Padding | Table:
    from rich.box import SIMPLE_HEAD
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    # Text objects, not strings: a level called "[red]" must be shown, not obeyed.
    if isinstance(block, str):
        return Padding(Text(block), (0, 0, 0, 2))
    table = Table(box=SIMPLE_HEAD, pad_edge=True, show_edge=False)
    for heading, right in zip(block.headings, block.right, strict=True):
        table.add_column(Text(heading), justify="right" if right else "left", overflow="fold")
    for row in block.rows:
        table.add_row(*map(Text, row))
    return table


TONES = ("", "green", "bold green", "bold reverse green")
AGAINST = ("", "red", "bold red", "bold reverse red")


def _marked(passage: Passage, colour: bool) -> Text:
    """A document with its words in colour; by signs where colour is not wanted."""
    from rich.text import Text

    if not colour:
        return Text("\n".join(passage.plain()))
    rest = f" for {passage.theirs}; the bolder, the more"
    legend = Text.assemble(("green", TONES[2]), f" speaks for {passage.ours}, ", ("red", AGAINST[2]), rest)
    lines = [legend] if passage.ours != passage.theirs else []
    for line in passage.lines:
        tones = ((piece.text, TONES[piece.tone] if piece.tone >= 0 else AGAINST[-piece.tone]) for piece in line)
        lines.append(Text.assemble(*tones))
    return Text("\n").join(lines)
