"""A few lines of HTML for a notebook: inline styles, no script, and a limited size even if names are long.

Colours are those of the notebook, light or dark, and one blue that is visible on both.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

from softcount.pictures.drawing import Drawing, markup

LONGEST = 60
"""Characters of a name that are shown."""
LARGEST_PICTURE = 12_000
"""Bytes of a picture."""
MOST_ROWS = 8
"""Rows of a table that are shown."""
FONT = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45"
BOX = f"{FONT};display:inline-block;max-width:56em;padding:.6em .9em;border:1px solid rgba(128,128,128,.45)"
CELL = "text-align:left;padding:.1em 1em .1em 0;border:0;background:none;font-weight:normal"
QUIET = "opacity:.72"
BLUE = "#3b8fc9"


def short(value: object) -> str:
    """A name as text of a page, cut where it is long.

    >>> short("<b>"), short("a" * 99)[-3:]
    ('&lt;b&gt;', 'aa…')
    """
    text = str(value)
    return markup(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def boxed(title: str, note: str, parts: Iterable[str] = ()) -> str:
    """A box with a title, a note after it, and parts that are markup already."""
    head = f'<div><b>{short(title)}</b> <span style="{QUIET}">{markup(note[:300])}</span></div>'
    return f'<div style="{BOX}">{head}{"".join(parts)}</div>'


def small_table(headings: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A table of text; of many rows the first, and how many more there are."""
    head = "".join(f'<th style="{CELL};{QUIET}">{short(name)}</th>' for name in headings)
    return _table(
        [[f'<td style="{CELL}">{short(cell)}</td>' for cell in row] for row in rows[:MOST_ROWS]], len(rows), head
    )


def share_bars(shares: Sequence[tuple[object, float, str]]) -> str:
    """A bar from 0 to 1 for each name, and a figure after it."""
    rows = []
    for name, share, figure in shares[:MOST_ROWS]:
        width = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
        bar = f'<div style="height:.7em;background:{BLUE};width:{width}"></div>'
        first, last = (f'<td style="{CELL}">{short(text)}</td>' for text in (name, figure))
        rows.append((first, f'<td style="{CELL};width:9em">{bar}</td>', last))
    return _table(rows, len(shares))


def upright_bars(heights: Sequence[float], low: str, high: str) -> str:
    """Bars side by side, the highest as high as there is room, and what the ends stand for."""
    top = max([*heights, 1e-300])
    bars = "".join(
        f'<td style="padding:0 1px 0 0;border:0;vertical-align:bottom;background:none"><div style="width:8px;'
        f'height:{46 * height / top:.1f}px;background:{BLUE}"></div></td>'
        for height in heights
    )
    ends = f'<div style="{QUIET}">{markup(low)} to {markup(high)}</div>'
    return f'<table style="border-collapse:collapse;margin:.4em 0 0;height:46px">{_row([bars])}</table>{ends}'


def picture(drawing: Drawing) -> str:
    """A drawing as a file within the page, whose style cannot reach the notebook; nothing if it is large."""
    data = b64encode(drawing.svg_file().encode()).decode()
    if len(data) > LARGEST_PICTURE:
        return ""
    return f'<img style="max-width:100%" alt="{markup(drawing.description)}" src="data:image/svg+xml;base64,{data}">'


def note_lines(lines: Sequence[str]) -> str:
    """Lines of small print, the first of them."""
    return "".join(f'<div style="{QUIET}">{markup(line[:300])}</div>' for line in lines[:MOST_ROWS]) + _more(len(lines))


def framed(page: str, height: int) -> str:
    """A whole HTML page as a frame within a notebook; the height is in pixels."""
    return f'<iframe style="width:100%;height:{height}px;border:0" srcdoc="{escape(page)}"></iframe>'


def _row(cells: Iterable[str]) -> str:
    return f'<tr style="background:none">{"".join(cells)}</tr>'


def _table(rows: Sequence[Iterable[str]], count: int, head: str = "") -> str:
    body = "".join(map(_row, [[head], *rows] if head else rows))
    return f'<table style="border-collapse:collapse;margin:.4em 0 0;{FONT}">{body}</table>' + _more(count)


def _more(count: int) -> str:
    return f'<div style="{QUIET}">and {count - MOST_ROWS:,} more</div>' if count > MOST_ROWS else ""
