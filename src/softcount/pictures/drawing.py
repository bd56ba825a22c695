"""A drawing: shapes at places in pixels, each in a named tone; rendered as SVG or painted on matplotlib axes.

Text in a drawing comes from data, so all of it goes through `markup`. A drawing names tones only; the page around it
sets their colours for light and dark screens, or the SVG file itself if it stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import ResourceError, import_extra
from softcount.pictures.text import cell_width, clip, printable

# The eight class colours can be told apart by colour-blind readers; `plus` and `minus` are blue and orange, never
# green and red. Text has a contrast of at least 4.5 to 1 with the paper in both sets.
LIGHT = {
    "paper": "#ffffff", "soft": "#f4f6f8", "line": "#d5dbe1", "muted": "#55616d", "ink": "#1d2731",
    "accent": "#0b5c8f", "plus": "#0072b2", "minus": "#c2521c",
    "c0": "#0072b2", "c1": "#d55e00", "c2": "#009e73", "c3": "#cc79a7", "c4": "#e69f00", "c5": "#56b4e9",
    "c6": "#7f3c8d", "c7": "#444c56",
}  # fmt: skip
DARK = {
    "paper": "#14191f", "soft": "#1d242c", "line": "#3a4552", "muted": "#a7b3bf", "ink": "#e7ebef",
    "accent": "#86c8f2", "plus": "#5ab0e8", "minus": "#f28f5c",
    "c0": "#5ab0e8", "c1": "#f28f5c", "c2": "#35c398", "c3": "#e7a8cd", "c4": "#f2bf45", "c5": "#a5dcfb",
    "c6": "#bf93d1", "c7": "#b9c2cb",
}  # fmt: skip
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
SMALL, NORMAL = 11.0, 12.0
"""Font sizes."""
LETTER = 0.61
"""Average width of a letter as a share of its size."""
MARGIN = 14.0
"""Around a drawing that is a file."""
DOTS_PER_INCH = 200
"""Of a PNG; a hundred pixels of a drawing are an inch."""

Point = tuple[float, float]
Box = tuple[float, float, float, float]


def class_tone(place: int) -> str:
    return f"c{place % 8}"


def color_variables(tones: dict[str, str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in tones.items())


PICTURE_RULES = (
    "".join(f".f-{x}{{fill:var(--{x})}}.s-{x}{{stroke:var(--{x});fill:none}}" for x in LIGHT)
    + ".t-small{font-size:11px}.t-mid{text-anchor:middle}.t-end{text-anchor:end}.t-bold{font-weight:600}"
    ".t-halo{paint-order:stroke;stroke:var(--paper);stroke-width:5px;stroke-linejoin:round}.dots{stroke-linecap:round}"
)
"""CSS of the shapes: `f-` is filled with a tone, `s-` stroked with it."""


def markup(value: object) -> str:
    """Escape text for HTML, SVG and their attributes.

    >>> markup('<b onclick="x">')
    '&lt;b onclick=&quot;x&quot;&gt;'
    """
    return escape(printable(value), quote=True)


def text_width(text: str, size: float = NORMAL) -> float:
    return cell_width(text) * size * LETTER


def fit_text(text: str, width: float, size: float = NORMAL) -> str:
    """Cut the text, with an ellipsis, to a width in pixels.

    >>> fit_text("a long name", 40)
    'a lo…'
    """
    return clip(text, max(int(width / (size * LETTER)), 1))


class Label(Struct, frozen=True):
    """A text, SMALL or NORMAL; `anchor` is the part of it that stands at the place, `halo` separates it from lines."""

    at: Point
    text: str
    tone: str = "ink"
    anchor: str = "start"
    size: float = NORMAL
    bold: bool = False
    halo: bool = False

    def svg(self) -> str:
        names = {
            f"f-{self.tone}": self.tone != "ink", "t-small": self.size == SMALL, "t-mid": self.anchor == "middle",
            "t-end": self.anchor == "end", "t-bold": self.bold, "t-halo": self.halo,
        }  # fmt: skip
        style = " ".join(name for name, wanted in names.items() if wanted)
        style = f' class="{style}"' if style else ""
        return f'<text{style} x="{_short(self.at[0])}" y="{_short(self.at[1])}">{markup(self.text)}</text>'

    def paint(self, ax: Any, color: str, order: int) -> None:
        from matplotlib.patheffects import withStroke

        halo = [withStroke(linewidth=2.2, foreground=LIGHT["paper"])] if self.halo else []
        anchor = {"start": "left", "middle": "center", "end": "right"}[self.anchor]
        # A point is 0.72 of a pixel; names are never formulas.
        ax.text(*self.at, self.text, color=color, fontsize=self.size * 0.72, ha=anchor, va="baseline", zorder=order,
                weight="bold" if self.bold else "normal", parse_math=False, path_effects=halo)  # fmt: skip


class Boxes(Struct, frozen=True):
    """Rectangles (left, top, width, height) as one shape, so that those which touch leave no line between them."""

    boxes: tuple[Box, ...]
    tone: str
    strength: float = 1.0
    title: str = ""
    """Shown when the reader points at the shape, and read aloud."""

    def svg(self) -> str:
        faint = "" if self.strength >= 1 else f' fill-opacity="{self.strength:.2f}"'
        if len(self.boxes) == 1:
            x, y, w, h = map(_short, self.boxes[0])
            shape = f'<rect class="f-{self.tone}" x="{x}" y="{y}" width="{w}" height="{h}"{faint}'
            return _with_title(shape, self.title)
        path = "".join(f"M{_short(x)} {_short(y)}h{_short(w)}v{_short(h)}h-{_short(w)}z" for x, y, w, h in self.boxes)
        return _with_title(f'<path class="f-{self.tone}" d="{path}"{faint}', self.title)

    def paint(self, ax: Any, color: str, order: int) -> None:
        from matplotlib.patches import Rectangle

        for x, y, width, height in self.boxes:
            ax.add_patch(Rectangle((x, y), width, height, color=color, alpha=self.strength, lw=0, zorder=order))


class Stroke(Struct, frozen=True):
    """A line through points; `closed` goes back to the first, `filled` makes it an area."""

    points: tuple[Point, ...]
    tone: str
    width: float = 1.5
    dashes: str = ""
    closed: bool = False
    filled: bool = False
    strength: float = 1.0
    title: str = ""

    def svg(self) -> str:
        path = "M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in self.points) + ("z" if self.closed else "")
        if self.filled:
            more = "" if self.strength >= 1 else f' fill-opacity="{self.strength:.2f}"'
        else:
            more = "" if self.width == 1 else f' stroke-width="{_short(self.width)}"'
            more += f' stroke-dasharray="{self.dashes}"' if self.dashes else ""
            more += "" if self.strength >= 1 else f' stroke-opacity="{self.strength:.2f}"'
        return _with_title(f'<path class="{"f" if self.filled else "s"}-{self.tone}" d="{path}"{more}', self.title)

    def paint(self, ax: Any, color: str, order: int) -> None:
        from matplotlib.patches import Polygon

        if self.filled:
            ax.add_patch(Polygon(self.points, closed=True, color=color, alpha=self.strength, lw=0, zorder=order))
        elif self.points:
            points = [*self.points, self.points[0]] if self.closed else self.points
            style = "--" if self.dashes else "-"
            ax.plot(
                *zip(*points, strict=True), style, color=color, lw=self.width * 0.72, alpha=self.strength, zorder=order
            )


class Dots(Struct, frozen=True):
    points: tuple[Point, ...]
    tone: str
    radius: float = 3.0
    strength: float = 1.0
    title: str = ""

    def svg(self) -> str:
        # Lines of no length with round ends: a tenth of the bytes of as many circles.
        many = len(self.points) > 40
        places = ((f"{x:.0f}", f"{y:.0f}") if many else (_short(x), _short(y)) for x, y in self.points)
        path = "".join(f"M{x} {y}h0" for x, y in places)
        more = f' stroke-width="{_short(2 * self.radius)}"'
        more += "" if self.strength >= 1 else f' stroke-opacity="{self.strength:.2f}"'
        return _with_title(f'<path class="s-{self.tone} dots" d="{path}"{more}', self.title)

    def paint(self, ax: Any, color: str, order: int) -> None:
        size = (2 * self.radius * 0.72) ** 2
        ax.scatter(*zip(*self.points, strict=True), s=size, color=color, alpha=self.strength, lw=0, zorder=order)


Shape = Label | Boxes | Stroke | Dots


class Drawing(Struct):
    """Shapes on a sheet; `description` says in a sentence what the picture shows, for readers who do not see it."""

    width: float
    height: float
    description: str
    shapes: list[Shape] = []

    def text(self, x: float, y: float, text: object, tone: str = "ink", **style: Any) -> None:
        """Add a text; `style` is its anchor, size, bold, halo."""
        self.shapes.append(Label((x, y), printable(text), tone, **style))

    def box(self, at: Point, size: Point, tone: str, strength: float = 1.0, title: str = "") -> None:
        self.boxes([(*at, max(size[0], 0.0), max(size[1], 0.0))], tone, strength, title)

    def boxes(self, boxes: Iterable[Box], tone: str, strength: float = 1.0, title: str = "") -> None:
        self.shapes.append(Boxes(tuple(boxes), tone, strength, title))

    def line(self, points: Iterable[Sequence[float]], tone: str, width: float = 1.5, **style: Any) -> None:
        """Add a line; `style` is its dashes, strength, closed, filled, title."""
        self.shapes.append(Stroke(tuple((float(x), float(y)) for x, y in points), tone, width, **style))

    def area(self, points: Iterable[Sequence[float]], tone: str, strength: float = 1.0) -> None:
        self.line(points, tone, closed=True, filled=True, strength=strength)

    def dots(self, points: Iterable[Sequence[float]], tone: str, radius: float = 3.0, **style: Any) -> None:
        """Add dots; `style` is their strength and title."""
        self.shapes.append(Dots(tuple((float(x), float(y)) for x, y in points), tone, radius, **style))

    def draw(self) -> Drawing:
        return self

    def svg(self) -> str:
        w, h = _short(self.width), _short(self.height)
        size = f'width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" aria-label="{markup(self.description)}"'
        return f"<svg {size}>{''.join(shape.svg() for shape in self.shapes)}</svg>"

    def svg_file(self) -> str:
        what, w, h = markup(self.description), _short(self.width + 2 * MARGIN), _short(self.height + 2 * MARGIN)
        corner = _short(-MARGIN)
        box = f'width="{w}" height="{h}" viewBox="{corner} {corner} {w} {h}" role="img" aria-label="{what}"'
        dark = f"@media (prefers-color-scheme:dark){{:root{{{color_variables(DARK)}}}}}"
        letters = f"svg{{font-family:{FONT};font-size:{NORMAL:.0f}px;fill:var(--ink)}}"
        rules = f":root{{{color_variables(LIGHT)}}}{dark}{letters}{PICTURE_RULES}"
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}><title>{what}</title><style>{rules}</style>'
        ground = f'<rect class="f-paper" x="{corner}" y="{corner}" width="{w}" height="{h}"/>'
        return f"{head}{ground}{''.join(shape.svg() for shape in self.shapes)}</svg>\n"

    def plot(self, ax: Any) -> None:
        ax.set_axis_off()
        ax.set_xlim(-MARGIN, self.width + MARGIN)
        ax.set_ylim(self.height + MARGIN, -MARGIN)
        for order, shape in enumerate(self.shapes):
            shape.paint(ax, LIGHT[shape.tone], order + 2)

    def png(self) -> bytes:
        problem = 'PNG is painted by matplotlib, which is not installed: pip install "softcount[plot]"'
        library = import_extra("matplotlib.figure", f"{problem}, or ask for .svg.")
        size = ((self.width + 2 * MARGIN) / 100, (self.height + 2 * MARGIN) / 100)
        figure = library.Figure(figsize=size, dpi=DOTS_PER_INCH, facecolor=LIGHT["paper"])
        self.plot(figure.add_axes((0, 0, 1, 1)))
        sink = BytesIO()
        figure.savefig(sink, format="png", metadata={"Software": None})
        return sink.getvalue()


def stack(drawings: Sequence[Drawing], description: str, across: int = 1) -> Drawing:
    """Set drawings of one size next to each other, this many in a line, and the rest below."""
    found, top = Drawing(0.0, 0.0, description), 0.0
    for start in range(0, len(drawings), across):
        line = drawings[start : start + across]
        for place, each in enumerate(line):
            left = each.width * place
            found.width = max(found.width, left + each.width)
            for shape in each.shapes:
                if isinstance(shape, Label):
                    moved: Any = {"at": (shape.at[0] + left, shape.at[1] + top)}
                elif isinstance(shape, Boxes):
                    moved = {"boxes": tuple((x + left, y + top, w, h) for x, y, w, h in shape.boxes)}
                else:
                    moved = {"points": tuple((x + left, y + top) for x, y in shape.points)}
                found.shapes.append(replace(shape, **moved))
        top += max(each.height for each in line)
    found.height = top
    return found


def new_axes() -> Any:
    problem = 'pictures are drawn by matplotlib, which is not installed. Install it: pip install "softcount[plot]"'
    return import_extra("matplotlib.pyplot", problem, ResourceError).subplots(layout="constrained")[1]


def escape_math(text: Any) -> str:
    """Escape text from data for matplotlib: a dollar sign begins no formula, control characters are visible."""
    return printable(text).replace("$", r"\$")


def _with_title(opened: str, title: str) -> str:
    if not title:
        return f"{opened}/>"
    name = opened[1 : opened.index(" ")]
    return f"{opened}><title>{markup(title)}</title></{name}>"


def _short(value: float) -> str:
    text = f"{value + 0.0:.1f}"
    return text[:-2] if text.endswith(".0") else text
