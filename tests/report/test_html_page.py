"""A page as HTML: the same words as elsewhere, nothing that runs, nothing from anywhere."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from base64 import b64encode

import pytest

from html_checks import HOSTILE, checked
from softcount.pictures.drawing import DARK, LIGHT, Drawing
from softcount.pictures.text import printable
from softcount.report.html import STYLE, render_html
from softcount.report.page import Page, make_grid, page_blocks, render_text
from softcount.report.words import make_passage


def page_of(name: str) -> Page:
    """A page with this name wherever text can stand."""
    drawing = Drawing(100, 50, name)
    drawing.text(1, 10, name)
    drawing.box((0, 0), (10, 10), "c0", title=name)
    drawing.line([(0, 0), (1, 1)], "ink", title=name)
    drawing.dots([(0, 0)], "c1", title=name)
    page = Page()
    page.heading(name)
    page.line(name, make_passage(f"{name} and more", {(0, len(name)): 1.0}, name, "other"))
    for _ in range(3):
        page.heading(name)
    page.heading(name, level=2)
    page.grid([name, "n"], [[name, "1"]])
    page.picture(name, drawing, make_grid([name], [[name]]), name)
    return page


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_everywhere(name: str) -> None:
    found = checked(render_html(page_of(name)))
    assert printable(name)[:60] in found.text


@pytest.mark.parametrize("name", HOSTILE)
def test_a_drawing_with_a_hostile_name_is_a_file_of_its_own(name: str) -> None:
    drawing = Drawing(100, 50, name)
    drawing.text(1, 10, name)
    drawing.box((0, 0), (10, 10), "c0", title=name)
    root = ET.fromstring(drawing.svg_file())
    written = [part.text for part in root.iter() if part.tag.endswith(("text", "title"))]
    assert written == [printable(name)] * 3


def test_the_policy_allows_the_page_its_own_style_alone() -> None:
    html = render_html(page_of("fruit"))
    style = re.search(r"<style>(.*?)</style>", html, re.S)
    assert style is not None and style[1] == STYLE
    digest = b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in html
    assert "script-src" not in html and "<script" not in html and " style=" not in html


def test_terminal_json_and_html_say_the_same() -> None:
    page = page_of("fruit")
    page.line("cherries beat limes", "softcount show fruit.sc")
    page.notes(["column 'a' is always 1", "'b' is a name"])
    words = checked(render_html(page)).text
    blocks = page_blocks(page)
    for said in ("cherries beat limes", "fruit and more", "column 'a' is always 1"):
        assert said.split()[0] in render_text(page) and said.split()[0][1:] in words
    assert [block["picture"] for block in blocks if "picture" in block] == ["fruit"]
    for said in ("cherries beat limes", "column 'a' is always 1", "'b' is a name"):
        assert {"text": said} in blocks


def test_a_browser_shows_sentences_lists_of_notes_and_commands() -> None:
    page = Page()
    page.heading("fruit")
    page.line("cherries beat limes", "fruit.csv, 3 rows", "softcount show fruit.sc")
    page.notes(["column 'a' is always 1", "'b' is a name"])
    html = render_html(page)
    assert "<p>Cherries beat limes</p><p>fruit.csv, 3 rows</p><p><code>softcount show fruit.sc</code></p>" in html
    assert "<li>Column &#x27;a&#x27; is always 1</li><li>&#x27;b&#x27; is a name</li>" in html


def test_rows_of_long_texts_are_cards_on_a_phone() -> None:
    page = Page()
    long = "a text of more than twenty-four letters"
    page.grid(["column", "kind", "n", "content"], [["a", "real", "3", long]], right=["n"])
    page.grid(["column", "kind", "n", "content"], [["a", "real", "3", "short"]], right=["n"])
    page.grid(["model", "accuracy", "log-loss", "weight"], [[long, "1", "2", "3"]], right=None)
    html = render_html(page)
    assert html.count('class="cards"') == 1 and f'<td data-name="content">{long}</td>' in html


def _contrast(one: str, other: str) -> float:
    """How far two colours are apart in brightness, as WCAG has it."""
    bright = []
    for colour in (one, other):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        bright.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(bright) + 0.05) / (min(bright) + 0.05)


@pytest.mark.parametrize("tones", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "soft"])
def test_text_stands_out_from_its_ground(tones: dict[str, str], ground: str) -> None:
    for name in ("ink", "muted", "accent", "minus", "plus"):
        assert _contrast(tones[name], tones[ground]) >= 4.5 - 0.3 * (name in ("plus", "minus")), name
