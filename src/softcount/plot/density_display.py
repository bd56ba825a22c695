"""What a column looks like in each class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from softcount.fitted.answers import Answer
from softcount.plot.display import Display, colour, plain

POINTS = 400
TAIL = 0.002


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
        from softcount.fitted.answers import query

        fitted = estimator.fitted_
        answer = query(fitted, column)
        if isinstance(answer, dict):
            chances = fitted.estimates[column]["probability"]
            lines = [(name, level, p) for name, row in zip(fitted.names, chances, strict=True)
                     for level, p in zip(answer, row, strict=True)]  # fmt: skip
            return cls(_table(lines), column, bars=True).plot(ax)
        values = _grid(answer)
        lines = [
            (name, float(x), float(density))
            for g, name in enumerate(fitted.names)
            for x, density in zip(values, _alone(answer, g).pdf(values), strict=True)
        ]
        return cls(_table(lines), column, bars=bool(answer.family.whole_numbers)).plot(ax)

    def _draw(self, ax: Any) -> None:
        names, values, density = self._columns("class", "value", "density")
        for place, name in enumerate(dict.fromkeys(names)):
            mine = [(x, y) for n, x, y in zip(names, values, density, strict=True) if n == name]
            self._one(ax, place, name, mine, len(set(names)))
        ax.legend(title="class")
        ax.set(xlabel=plain(self.column), ylabel="probability" if self.bars else "density")

    def _one(self, ax: Any, place: int, name: Any, points: list[tuple[Any, float]], classes: int) -> None:
        values, heights = zip(*points, strict=True)
        if not self.bars:
            ax.plot(values, heights, color=colour(place), label=plain(name))
            return
        width = 0.8 / classes
        shifted = np.arange(len(values)) + width * (place - (classes - 1) / 2)
        ax.bar(shifted, heights, width, color=colour(place), label=plain(name))
        ax.set_xticks(range(len(values)), [plain(value) for value in values])


def _alone(answer: Answer, group: int) -> Answer:
    """What would be answered were the class known."""
    return replace(answer, weights=np.eye(len(answer.weights))[group])


def _grid(answer: Answer) -> np.ndarray:
    """Values from one tail to the other of all classes; whole ones for counts."""
    ends = [
        (_alone(answer, g).quantile(TAIL), _alone(answer, g).quantile(1 - TAIL)) for g in range(len(answer.weights))
    ]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    if answer.family.whole_numbers:
        return np.arange(low, high + 1)
    return np.linspace(low, high, POINTS)


def _table(lines: list[tuple[Any, Any, float]]) -> Any:
    import pyarrow as pa

    names, values, density = zip(*lines, strict=True)
    return pa.table({"class": list(names), "value": list(values), "density": [float(y) for y in density]})
