"""A drawing as PNG, painted by matplotlib, which is an extra (`pip install "softcount[plot]"`)."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from softcount.errors import DataError
from softcount.pictures.drawing import MARGIN, Box, Dots, Drawing, Lettering, Stroke, Tiles
from softcount.pictures.tones import LIGHT

DOTS = 200
"""Per inch, of a hundred of a drawing's pixels."""
ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def png_of(drawing: Drawing) -> bytes:
    """The drawing on white, twice as fine as it is on a screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError(
            'PNG is painted by matplotlib, which is not installed: pip install "softcount[plot]", or ask for .svg.'
        ) from None
    width, height = drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN
    figure = Figure(figsize=(width / 100, height / 100), dpi=DOTS, facecolor=LIGHT["paper"])
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(-MARGIN, drawing.width + MARGIN)
    axes.set_ylim(drawing.height + MARGIN, -MARGIN)
    for order, shape in enumerate(drawing.shapes):
        _paint(axes, shape, order + 2)
    sink = BytesIO()
    figure.savefig(sink, format="png", metadata={"Software": None})
    return sink.getvalue()


def _paint(axes: Any, shape: Any, order: int) -> None:
    from matplotlib.patches import Polygon, Rectangle
    from matplotlib.patheffects import withStroke

    colour = LIGHT[shape.tone]
    if isinstance(shape, Lettering):
        weight = "bold" if shape.bold else "normal"
        halo = [withStroke(linewidth=2.2, foreground=LIGHT["paper"])] if shape.halo else []
        # Letters in pixels of which a hundred are an inch; names are no formulas.
        axes.text(*shape.at, shape.text, color=colour, fontsize=shape.size * 0.72, ha=ANCHORS[shape.anchor],
                  va="baseline", weight=weight, zorder=order, parse_math=False, path_effects=halo)  # fmt: skip
    elif isinstance(shape, Box):
        axes.add_patch(Rectangle(shape.at, *shape.size, color=colour, alpha=shape.strength, lw=0, zorder=order))
    elif isinstance(shape, Tiles):
        for x, y, width, height in shape.boxes:
            axes.add_patch(Rectangle((x, y), width, height, color=colour, alpha=shape.strength, lw=0, zorder=order))
    elif isinstance(shape, Dots):
        size = (2 * shape.radius * 0.72) ** 2
        axes.scatter(*zip(*shape.points, strict=True), s=size, color=colour, alpha=shape.strength, lw=0, zorder=order)
    elif isinstance(shape, Stroke) and shape.filled:
        axes.add_patch(Polygon(shape.points, closed=True, color=colour, alpha=shape.strength, lw=0, zorder=order))
    else:
        points = [*shape.points, shape.points[0]] if shape.closed and shape.points else shape.points
        along = zip(*points, strict=True)
        dashes = "--" if shape.dashes else "-"
        axes.plot(*along, dashes, color=colour, lw=shape.width * 0.72, alpha=shape.strength, zorder=order)
