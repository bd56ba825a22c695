"""What an expert believes of single cells, beside what the data say of them."""

from __future__ import annotations

from typing import Any

from softcount.report.page import Page
from softcount.report.plain_text import number, share

MOST_SHOWN = 40


def add_expert(page: Page, beside: Any) -> None:
    """A line for each belief: the share the expert gives, that of the rows alone, and that of both together."""
    lines = beside.to_pylist()
    page.heading("Expert and data")
    rows = [
        (
            line["column"], line["level"], line["class"], f"{number(line['n'])} of {number(line['m'])}",
            share(line["expert"]), share(line["data"]), share(line["both"]), f"{line['surprise_bits']:+,.1f}",
        )
        for line in lines[:MOST_SHOWN]
    ]  # fmt: skip
    headings = ("column", "level", "class", "believed", "expert", "data", "both", "surprise")
    page.grid(headings, rows, right=headings[3:])
    if len(lines) > MOST_SHOWN:
        page.line(f"and {len(lines) - MOST_SHOWN:,} more: --json has them all")
    page.line("surprise: bits more that the rows of the column and class take than by 1 imagined row of each level;")
    page.line("below 0 the expert knew something, far above 0 the data contradict the expert")
