"""Pictures as shapes at places, in pixels, each in a tone: written as SVG here, whoever draws.

What is written comes from data, so all text goes through `markup`; a drawing holds no style but names of tones, which
the page it is on sets for light and dark, or the picture itself where it is a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from msgspec import Struct, field

from softcount.pictures.tones import DARK, FONT, LIGHT, picture_rules, variables
from softcount.pictures.visible_text import cell_width, printable

SMALL, NORMAL = 11.0, 12.0
"""Sizes of letters."""
LETTER = 0.61
"""How wide a letter is on average, as a part of its size; wide ones are two."""

Point = tuple[float, float]


def markup(value: object) -> str:
    """Text that is text in HTML, SVG and their attributes, whatever it holds.

    >>> markup('<b onclick="x">')
    '&lt;b onclick=&quot;x&quot;&gt;'
    """
    return escape(printable(value), quote=True)


def text_width(text: str, size: float = NORMAL) -> float:
    """About how many pixels a text takes."""
    return cell_width(text) * size * LETTER


def fitted_text(text: str, width: float, size: float = NORMAL) -> str:
    """The text, or as much of its beginning as there is room for, and an ellipsis.

    >>> fitted_text("a long name", 40)
    'a lo…'
    """
    room = max(int(width / (size * LETTER)), 1)
    if cell_width(text) <= room:
        return text
    while text and cell_width(text) > room - 1:
        text = text[:-1]
    return text + "…"


class Lettering(Struct, frozen=True):
    """A text at a place, SMALL or NORMAL: `anchor` is which part of it stands there; a `halo` parts it from lines."""

    at: Point
    text: str
    tone: str
    anchor: str
    size: float
    bold: bool = False
    halo: bool = False

    def svg(self) -> str:
        x, y = map(_short, self.at)
        how = (
            self.tone != "ink",
            self.size == SMALL,
            self.anchor == "middle",
            self.anchor == "end",
            self.bold,
            self.halo,
        )
        words = (f"f-{self.tone}", "t-small", "t-mid", "t-end", "t-bold", "t-halo")
        named = " ".join(word for word, wanted in zip(words, how, strict=True) if wanted)
        named = f' class="{named}"' if named else ""
        return f'<text{named} x="{x}" y="{y}">{markup(self.text)}</text>'


class Box(Struct, frozen=True):
    """A filled rectangle from its upper left corner; `told` is read out where one points at it."""

    at: Point
    size: Point
    tone: str
    strength: float = 1.0
    told: str = ""

    def svg(self) -> str:
        x, y, w, h = map(_short, (*self.at, *self.size))
        faint = "" if self.strength >= 1 else f' fill-opacity="{self.strength:.2f}"'
        return _with_title(f'<rect class="f-{self.tone}" x="{x}" y="{y}" width="{w}" height="{h}"{faint}', self.told)


class Stroke(Struct, frozen=True):
    """A line through points; `closed` goes back to the first, `filled` is an area instead."""

    points: tuple[Point, ...]
    tone: str
    width: float = 1.5
    dashes: str = ""
    closed: bool = False
    filled: bool = False
    strength: float = 1.0
    told: str = ""

    def svg(self) -> str:
        path = _path(self.points) + ("z" if self.closed else "")
        if self.filled:
            faint = "" if self.strength >= 1 else f' fill-opacity="{self.strength:.2f}"'
            return _with_title(f'<path class="f-{self.tone}" d="{path}"{faint}', self.told)
        more = "" if self.width == 1 else f' stroke-width="{_short(self.width)}"'
        more += f' stroke-dasharray="{self.dashes}"' if self.dashes else ""
        more += "" if self.strength >= 1 else f' stroke-opacity="{self.strength:.2f}"'
        return _with_title(f'<path class="s-{self.tone}" d="{path}"{more}', self.told)


class Dots(Struct, frozen=True):
    """Many dots of one size and tone."""

    points: tuple[Point, ...]
    tone: str
    radius: float = 3.0
    strength: float = 1.0
    told: str = ""

    def svg(self) -> str:
        # Lines of no length with round ends: a tenth of the bytes of as many circles.
        many = len(self.points) > 40
        places = ((f"{x:.0f}", f"{y:.0f}") if many else (_short(x), _short(y)) for x, y in self.points)
        path = "".join(f"M{x} {y}h0" for x, y in places)
        more = f' stroke-width="{_short(2 * self.radius)}"'
        more += "" if self.strength >= 1 else f' stroke-opacity="{self.strength:.2f}"'
        return _with_title(f'<path class="s-{self.tone} dots" d="{path}"{more}', self.told)


class Tiles(Struct, frozen=True):
    """Many rectangles as one shape, so that those which touch leave no line between them."""

    boxes: tuple[tuple[float, float, float, float], ...]
    tone: str
    strength: float = 1.0

    def svg(self) -> str:
        path = "".join(f"M{_short(x)} {_short(y)}h{_short(w)}v{_short(h)}h-{_short(w)}z" for x, y, w, h in self.boxes)
        return f'<path class="f-{self.tone}" d="{path}" fill-opacity="{self.strength:.2f}"/>'


Shape = Lettering | Box | Stroke | Dots | Tiles


class Drawing(Struct):
    """Shapes on a sheet of some size, and what the picture shows in a sentence for those who do not see it."""

    width: float
    height: float
    told: str
    shapes: list[Shape] = field(default_factory=list)

    def text(self, x: float, y: float, said: object, tone: str = "ink", **how: object) -> None:
        """A text; `how` is its anchor, size, bold, halo."""
        told = {"anchor": "start", "size": NORMAL, **how}
        self.shapes.append(Lettering((x, y), printable(said), tone, **told))  # type: ignore[arg-type]

    def box(self, at: Point, size: Point, tone: str, strength: float = 1.0, told: str = "") -> None:
        """A filled rectangle."""
        self.shapes.append(Box(at, (max(size[0], 0.0), max(size[1], 0.0)), tone, strength, told))

    def line(self, points: Iterable[Sequence[float]], tone: str, width: float = 1.5, **how: object) -> None:
        """A line; `how` is its dashes, strength, closed, told."""
        places = tuple((float(x), float(y)) for x, y in points)
        self.shapes.append(Stroke(places, tone, width, **how))  # type: ignore[arg-type]

    def area(self, points: Iterable[Sequence[float]], tone: str, strength: float = 1.0, told: str = "") -> None:
        """A filled shape."""
        places = tuple((float(x), float(y)) for x, y in points)
        self.shapes.append(Stroke(places, tone, closed=True, filled=True, strength=strength, told=told))

    def tiles(self, boxes: Iterable[tuple[float, float, float, float]], tone: str, strength: float = 1.0) -> None:
        """Rectangles (left, top, width, height) that together are one shape."""
        self.shapes.append(Tiles(tuple(boxes), tone, strength))

    def dots(self, points: Iterable[Sequence[float]], tone: str, radius: float = 3.0, **how: object) -> None:
        """Dots; `how` is their strength, told."""
        places = tuple((float(x), float(y)) for x, y in points)
        self.shapes.append(Dots(places, tone, radius, **how))  # type: ignore[arg-type]


MARGIN = 14.0
"""Around a picture that is a file of its own."""


def svg_of(drawing: Drawing, alone: bool = False) -> str:
    """The drawing as SVG: a part of a page that sets its tones or, `alone`, a file that brings them and a margin."""
    shapes = "".join(shape.svg() for shape in drawing.shapes)
    if alone:
        corner = (-MARGIN, -MARGIN)
        return svg_file((drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN), drawing.told, shapes, corner)
    w, h = _short(drawing.width), _short(drawing.height)
    size = f'width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" aria-label="{markup(drawing.told)}"'
    return f"<svg {size}>{shapes}</svg>"


def svg_file(size: Point, told: object, shapes: str, corner: Point = (0.0, 0.0)) -> str:
    """Shapes as a file of its own: it brings the tones, light or dark as the reader's screen is, and a ground.

    Shapes name tones by their classes, as those of a `Drawing` do.
    """
    said, (w, h), (x, y) = markup(told), map(_short, size), map(_short, corner)
    box = f'width="{w}" height="{h}" viewBox="{x} {y} {w} {h}" role="img" aria-label="{said}"'
    dark = f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
    letters = f"svg{{font-family:{FONT};font-size:{NORMAL:.0f}px;fill:var(--ink)}}"
    rules = f":root{{{variables(LIGHT)}}}{dark}{letters}{picture_rules()}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}><title>{said}</title><style>{rules}</style>'
    return f'{head}<rect class="f-paper" x="{x}" y="{y}" width="{w}" height="{h}"/>{shapes}</svg>\n'


def _path(points: Sequence[Point]) -> str:
    return "M" + " ".join(f"{_short(x)},{_short(y)}" for x, y in points)


def _with_title(opened: str, told: str) -> str:
    if not told:
        return f"{opened}/>"
    name = opened[1 : opened.index(" ")]
    return f"{opened}><title>{markup(told)}</title></{name}>"


def _short(value: float) -> str:
    """A place to a tenth of a pixel, in as few characters as it takes."""
    text = f"{value + 0.0:.1f}"
    return text[:-2] if text.endswith(".0") else text
