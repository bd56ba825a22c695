"""What every value of every column adds to one class against another."""

from __future__ import annotations

import math
from typing import Any, Self

from softcount.errors import DataError
from softcount.fitted.explain import NomogramColumn, nomogram_of
from softcount.plot.display import AGAINST, FOR, Display, plain

ROOM = 0.07
"""Values are named where they lie at least this share of the picture's width to the right of the last one named."""


class NomogramDisplay(Display):
    """A line for each column with its values where their log-odds are: right for the first class, left for the second.

    To read a row, add the places of its cells to `start`: the sum is the log-odds of the two classes, exactly. `table`
    has `column`, `value` (as text) and `log_odds`, the columns that can move most first.
    """

    def __init__(self, table: Any, classes: tuple[Any, Any], start: float) -> None:
        super().__init__(table)
        self.classes = classes
        self.start = start

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, classes: Any = None, n: int = 12, ax: Any = None) -> Self:
        """Two classes that columns tell one by one, the first two unless named; n columns. X is not needed."""
        fitted = estimator.fitted_
        found = nomogram_of(fitted)
        if found is None:
            raise DataError("a nomogram needs two classes that columns tell one by one, as those of NaiveBayes.")
        pair = tuple(fitted.names[:2] if classes is None else classes)
        first, second = (fitted.group_of(name) for name in pair)
        columns = found.reach(first, second)[:n]
        return cls(_table(columns, first, second), pair, float(found.start[first] - found.start[second])).plot(ax)

    def _draw(self, ax: Any) -> None:
        names, values, odds = self._columns("column", "value", "log_odds")
        columns = list(dict.fromkeys(names))
        room = ROOM * (max(odds) - min(odds))
        for place, column in enumerate(columns):
            mine = sorted((at, value) for name, value, at in zip(names, values, odds, strict=True) if name == column)
            _line(ax, place, mine, room)
        ax.axvline(0, color="grey", linewidth=0.8, zorder=0)
        ax.set_yticks(range(len(columns)), [plain(name) for name in columns])
        ax.invert_yaxis()
        ax.margins(y=0.08)
        ax.set(xlabel=f"log-odds, to begin with {self.start:+.2f}")
        ax.set_title(f"{plain(self.classes[0])} (right) against {plain(self.classes[1])} (left)")


def _line(ax: Any, place: int, values: list[tuple[float, str]], room: float) -> None:
    """One column: its values as dots along a line, some of them named."""
    places = [at for at, _ in values]
    ax.plot(places, [place] * len(places), color="grey", linewidth=1, zorder=1)
    ax.scatter(places, [place] * len(places), s=14, zorder=2, color=[FOR if at >= 0 else AGAINST for at in places])
    last = -math.inf
    for at, value in values:
        if at - last >= room:
            name = plain(value)
            ax.annotate(name, (at, place), (0, 5), textcoords="offset points", ha="center", fontsize="x-small")
            last = at


def _table(columns: list[NomogramColumn], first: int, second: int) -> Any:
    import pyarrow as pa

    lines = [
        {"column": str(column.key), "value": _said(value, column.numeric), "log_odds": float(odds)}
        for column in columns
        for value, odds in zip(column.values, column.odds(first, second), strict=True)
    ]
    return pa.Table.from_pylist(lines)


def _said(value: Any, numeric: bool) -> str:
    return f"{value:.4g}" if numeric else str(value)
