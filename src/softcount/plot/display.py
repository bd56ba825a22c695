"""What all displays have: a table of numbers, and axes on which they were drawn."""

from __future__ import annotations

from typing import Any, Self

from softcount.errors import ResourceError

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""A palette that the colour-blind can tell apart; classes take its colours by turns."""

FOR, AGAINST = COLOURS[0], COLOURS[1]


def colour(place: int) -> str:
    """The colour of a class, by its place."""
    return COLOURS[place % len(COLOURS)]


def new_axes() -> Any:
    """Axes of a figure of their own."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as lacking:
        raise ResourceError(
            'pictures are drawn by matplotlib, which is not installed. Install it: pip install "softcount[plot]"'
        ) from lacking
    return plt.subplots(layout="constrained")[1]


class Display:
    """Numbers, and how they are drawn; each kind of picture says the second for itself."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def plot(self, ax: Any = None) -> Self:
        """Draw on these axes, or on new ones."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError

    def _columns(self, *names: str) -> tuple[list[Any], ...]:
        """Columns of the table as lists."""
        return tuple(self.table.column(name).to_pylist() for name in names)


def plain(text: Any) -> str:
    """Text from data as matplotlib shows it: dollar signs begin no formula, control characters are seen."""
    from softcount.pictures.visible_text import printable

    return printable(text).replace("$", r"\$")


def bars_down(ax: Any, names: list[Any], lengths: list[float], colours: Any = FOR) -> Any:
    """Horizontal bars, the first at the top, named at the left."""
    places = range(len(names))
    drawn = ax.barh(places, lengths, color=colours)
    ax.set_yticks(places, [plain(name) for name in names])
    ax.invert_yaxis()
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return drawn
