"""Columns by how much they tell of the classes."""

from __future__ import annotations

from typing import Any, Self

from softcount.estimators.result_frames import arrow_of
from softcount.plot.display import Display, bars_down


class InfluenceDisplay(Display):
    """A bar for each column: what it says of the classes, in nats, the largest first.

    `table` is the model's `influence()`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 20, ax: Any = None) -> Self:
        """The n columns that matter most to a fitted model; X is not needed."""
        return cls(arrow_of(estimator.influence()).slice(0, n)).plot(ax)

    def _draw(self, ax: Any) -> None:
        bars_down(ax, *self._columns("column", "influence"))
        ax.set(xlabel="influence (nats)", title="Columns that matter most")
