"""What a page may hold: its elements and attributes, as a browser would find them; and texts that try to be more."""

from __future__ import annotations

from html.parser import HTMLParser

ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "footer", "nav", "a", "h1", "h2", "h3", "p",
    "div", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "details", "summary", "mark", "svg",
    "text", "rect", "path", "g", "dl", "dt", "dd", "b", "span", "ul", "li", "code",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "href", "id", "class", "scope", "tabindex", "role",
    "aria-label", "width", "height", "viewbox", "x", "y", "d", "text-anchor", "font-size", "font-weight", "transform",
    "fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap", "data-name",
}  # fmt: skip

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "' onmouseover='alert(1)",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</svg><script>alert(1)</script>",
    "<svg onload=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "<!-- ",
    "-->",
    "<![CDATA[",
    "]]>",
    "&lt;script&gt;",
    "&#60;b&#62;",
    "<a href='javascript:alert(1)'>x</a>",
    "<base href='https://example.org/'>",
    "<meta http-equiv=refresh content=0>",
    "<link rel=stylesheet href=//x>",
    "</details><b>",
    "</td></tr></table><b>",
    "<style>*{display:none}</style>",
    "{{7*7}}",
    "${7*7}",
    "\x00<b>",
    "\u202ename",
    "a\nb<c>",
    "\x1b[31mred",
    "<object data=x>",
    "<embed src=x>",
    "<form action=x><input>",
    "<math><mtext></mtext></math>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "expression(alert(1))",
    "url(javascript:alert(1))",
    "'; DROP TABLE x; --",
    "=cmd|' /C calc'!A0",
    "<B>\uff1cscript\uff1e",
]
"""Forty names and cells that would like to be markup."""


class Elements(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.words)


def checked(html: str) -> Elements:
    """The elements of a page, which are known ones that can do nothing and load nothing."""
    found = Elements()
    found.feed(html)
    found.close()
    assert found.tags <= ELEMENTS, found.tags - ELEMENTS
    assert found.attributes <= ATTRIBUTES, found.attributes - ATTRIBUTES
    assert all(link.startswith("#part-") for link in found.links)
    assert "default-src 'none'" in html
    return found
