"""What a column looks like in each class."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from softcount.fitted.answers import ColumnShape, column_shape
from softcount.plot.display import Display, colour, plain


class DensityDisplay(Display):
    """A column's density in every class; for levels, and for counts, the probability of each.

    `table` has `class`, `value` and `density`.
    """

    def __init__(self, table: Any, column: Any, bars: bool) -> None:
        super().__init__(table)
        self.column = column
        self.bars = bars

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, column: Any, ax: Any = None) -> Self:
        """A column of a fitted naive Bayes model or mixture; X is not needed."""
        shape = column_shape(estimator.fitted_, column)
        bars = shape.levels is not None or shape.whole
        return cls(_table(shape, estimator.fitted_.names), column, bars).plot(ax)

    def _draw(self, ax: Any) -> None:
        names, values, density = self._columns("class", "value", "density")
        classes = list(dict.fromkeys(names))
        for place, name in enumerate(classes):
            mine = [(x, y) for n, x, y in zip(names, values, density, strict=True) if n == name]
            self._one(ax, place, mine, len(classes))
        ax.legend([plain(name) for name in classes], title="class")
        ax.set(xlabel=plain(self.column), ylabel="probability" if self.bars else "density")

    def _one(self, ax: Any, place: int, points: list[tuple[Any, float]], classes: int) -> None:
        values, heights = zip(*points, strict=True)
        if not self.bars:
            ax.plot(values, heights, color=colour(place))
            return
        width = 0.8 / classes
        ax.bar(np.arange(len(values)) + width * (place - (classes - 1) / 2), heights, width, color=colour(place))
        ax.set_xticks(range(len(values)), [plain(value) for value in values])


def _table(shape: ColumnShape, names: list[Any]) -> Any:
    import pyarrow as pa

    values = list(shape.points) if shape.levels is None else list(shape.levels)
    return pa.table(
        {
            "class": [name for name in names for _ in values],
            "value": values * len(names),
            "density": shape.heights.ravel(),
        }
    )
