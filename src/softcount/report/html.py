"""A page as one HTML file that loads nothing, needs no script, and in which no text from data is markup.

The page lists by hash what a browser may load or run: its own style and, if it has one, its script. Text from data that
got through as markup would still do nothing.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import groupby

from softcount.pictures.drawing import DARK, FONT, LIGHT, PICTURE_RULES, color_variables, markup
from softcount.report.page import Facts, Figure, Grid, Heading, MarkedText, Notes, Page, PageBlock, Passage, Picture

STYLE = "".join(
    (
        f":root{{{color_variables(LIGHT)}}}",
        f"@media screen and (prefers-color-scheme:dark){{:root{{{color_variables(DARK)}}}}}",
        PICTURE_RULES,
        files("softcount.report").joinpath("page.css").read_text("utf-8").replace("FONT", FONT).replace("\n", ""),
    )
)
"""How pages look, light, dark and printed; its variables are the tones of `pictures.drawing`."""
CARD_COLUMNS, CARD_TEXT = 4, 24
"""A table of at least this many columns, with texts longer than this, is shown as cards on a phone."""
FIT_WIDTH = 1300.0
"""A picture up to this width shrinks to the page on a desktop, where its letters stay readable; wider ones scroll."""


def render_html(page: Page, footer: str = "") -> str:
    """Render the page as the text of an HTML file; its first heading is its title, and it links to its parts."""
    title = next((block.text for block in page.blocks if isinstance(block, Heading)), "Softcount")
    names = [block.text for block in page.blocks if isinstance(block, Heading) and block.level == 1][1:]
    links = "".join(f'<a href="#part-{place}">{markup(text)}</a>' for place, text in enumerate(names, 1))
    contents = f'<nav aria-label="Parts of this page">{links}</nav>' if len(names) > 2 else ""
    parts = [f"<header><h1>{markup(title)}</h1>{contents}</header>", *_render_parts(page)]
    if footer:
        parts.append(f"<footer><p>{markup(footer)}</p></footer>")
    return html_document(title, f"<main>{''.join(parts)}</main>", [STYLE])


def html_document(
    title: str, body: str, styles: Sequence[str], scripts: Sequence[str] = (), policy: str | None = None
) -> str:
    """Write a whole file around a body that is already markup; scripts come last."""
    policy = policy or content_policy(styles, scripts)
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">'
        f"<title>{markup(title)}</title>"
    )
    sheets = "".join(f"<style>{style}</style>" for style in styles)
    code = "".join(f"<script>{script}</script>" for script in scripts)
    return f"{head}{sheets}</head>\n<body>{body}{code}</body></html>\n"


def content_policy(styles: Iterable[str], scripts: Iterable[str] = ()) -> str:
    """Return the policy that a browser loads nothing from anywhere, and of the file these styles and scripts alone."""
    rules = ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]
    for name, texts in (("style-src", styles), ("script-src", scripts)):
        hashes = [f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts]
        rules += [f"{name} {' '.join(hashes)}"] if hashes else []
    return "; ".join(rules)


# -- the parts of a page


def _render_parts(page: Page) -> Iterator[str]:
    place = -1
    for small, blocks in groupby(page.blocks, lambda block: isinstance(block, Picture) and block.small):
        if small:
            yield f'<div class="panels">{"".join(map(_render_block, blocks))}</div>'
            continue
        for block in blocks:
            if isinstance(block, Heading) and block.level == 1:
                place += 1
                if place:  # the first is the title
                    yield f'<h2 id="part-{place}">{markup(block.text)}</h2>'
            elif isinstance(block, Heading) and not place:  # below the title, no level may be left out
                yield f'<h2 class="minor">{markup(block.text)}</h2>'
            else:
                yield _render_block(block)


def _render_block(block: PageBlock) -> str:
    if isinstance(block, Heading):
        return f"<h3>{markup(block.text)}</h3>"
    if isinstance(block, Grid):
        return _render_grid(block)
    if isinstance(block, Picture):
        title, reading = markup(block.title), f"<p>{markup(block.reading)}</p>" if block.reading else ""
        drawing = block.chart.draw()
        scroll = "scroll fit" if drawing.width <= FIT_WIDTH else "scroll"
        drawn = f'<div class="{scroll}" tabindex="0" role="group" aria-label="{title}">{drawing.svg()}</div>'
        numbers = f"<details><summary>Numbers</summary>{_render_grid(block.table, block.title)}</details>"
        return f"<figure><figcaption>{title}</figcaption>{drawn}{reading}{numbers}</figure>"
    if isinstance(block, Passage):
        return _render_passage(block)
    if isinstance(block, Facts):
        return render_facts(block.figures)
    if isinstance(block, Notes):
        return f'<ul class="remarks">{"".join(f"<li>{sentence_markup(line)}</li>" for line in block.lines)}</ul>'
    return (
        f"<p><code>{markup(block)}</code></p>" if block.startswith("softcount ") else f"<p>{sentence_markup(block)}</p>"
    )


_FIRST_WORD = re.compile(r"[a-z]+[ ,:;]")


def sentence_markup(text: str) -> str:
    """Write a line as a sentence: a terminal's lines begin small, those of a page with a capital."""
    return markup(text[0].upper() + text[1:] if _FIRST_WORD.match(text) else text)


def render_facts(figures: Iterable[Figure]) -> str:
    parts = (
        f"<div><dt>{markup(name)}</dt><dd><b>{markup(value)}</b> <span>{markup(remark)}</span></dd></div>"
        for name, value, remark in figures
    )
    return f'<dl class="facts">{"".join(parts)}</dl>'


def _render_grid(grid: Grid, label: str = "a table") -> str:
    """Render a table that scrolls by itself if it is wider than the page.

    On a phone, the rows of a table of long texts stand as cards, each cell after its heading.
    """
    sides = [' class="r"' if right else "" for right in grid.right]
    texts = [row[k] for row in grid.rows for k, right in enumerate(grid.right) if k and not right]
    cards = len(grid.headings) >= CARD_COLUMNS and max(map(len, texts), default=0) > CARD_TEXT
    names = [f' data-name="{markup(heading)}"' if cards and k else "" for k, heading in enumerate(grid.headings)]
    head = "".join(
        f'<th scope="col"{side}>{markup(x)}</th>' if x else "<td></td>"
        for x, side in zip(grid.headings, sides, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{side}{name}>{markup(x)}</td>" for x, side, name in zip(row, sides, names, strict=True))
        + "</tr>"
        for row in grid.rows
    )
    style = ' class="cards"' if cards else ""
    table = f"<table{style}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{markup(label)}">{table}</div>'


def _render_passage(passage: Passage) -> str:
    def mark(piece: MarkedText) -> str:
        side, strong = "for" if piece.tone > 0 else "against", " strong" if abs(piece.tone) > 2 else ""
        text = markup(piece.text)
        return f'<mark class="{side}{strong}">{text}</mark>' if piece.tone else text

    lines = "\n".join("".join(map(mark, line)) for line in passage.lines)
    legend = ""
    if passage.ours != passage.theirs:
        ours, theirs = markup(passage.ours), markup(passage.theirs)
        legend = (
            f'<p><mark class="for">Underlined so</mark> supports {ours}, <mark class="against">so</mark> for {theirs}'
            "; in bold: strongly.</p>"
        )
    return f'{legend}<p class="passage">{lines}</p>'
