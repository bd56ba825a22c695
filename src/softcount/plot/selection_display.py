"""What spoke for each number of classes."""

from __future__ import annotations

from typing import Any, Self

from softcount.estimators.result_frames import arrow_of
from softcount.plot.display import AGAINST, FOR, Display

LARGER = ("evidence", "cv", "log_likelihood")
"""Criteria of which the largest is best; of the others it is the smallest."""


class SelectionDisplay(Display):
    """A criterion over the number of classes, the best one marked.

    `table` is the model's `selection_`.
    """

    def __init__(self, table: Any, criterion: str) -> None:
        super().__init__(table)
        self.criterion = criterion

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, criterion: str | None = None, ax: Any = None) -> Self:
        """A fitted mixture that looked for the number itself, by its own criterion unless another is named."""
        return cls(arrow_of(estimator.selection_), criterion or estimator.criterion).plot(ax)

    def _draw(self, ax: Any) -> None:
        classes, values = self._columns("classes", self.criterion)
        known = [(n, value) for n, value in zip(classes, values, strict=True) if value is not None]
        best = (max if self.criterion in LARGER else min)(known, key=lambda pair: pair[1])
        ax.plot(*zip(*known, strict=True), marker="o", color=FOR)
        ax.plot(*best, marker="o", markersize=12, markerfacecolor="none", color=AGAINST)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="classes", ylabel=self.criterion, title=f"How many classes: {best[0]}")
