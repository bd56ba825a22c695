"""The rows that fit worst, and why."""

from __future__ import annotations

from typing import Any, Self

from softcount.estimators.result_frames import arrow_of
from softcount.plot.display import AGAINST, Display, bars_down, plain

REASONS = 3


class AnomalyDisplay(Display):
    """A bar for each of the oddest rows, as long as its score, with the cells that make it odd.

    `table` is the model's `anomalies(X)`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 10, ax: Any = None) -> Self:
        """The n rows of X that fit worst."""
        return cls(arrow_of(estimator.anomalies(X, n=n))).plot(ax)

    def _draw(self, ax: Any) -> None:
        rows, scores, reasons = self._columns("row", "score", "reasons")
        drawn = bars_down(ax, [f"row {row}" for row in rows], scores, AGAINST)
        said = ax.bar_label(drawn, [_said(each) for each in reasons], label_type="edge", padding=4, fontsize="small")
        for text in said:
            text.set_in_layout(False)  # long reasons must not squeeze the bars away
        ax.margins(x=0.8)
        ax.set(xlabel="nats of log-density below the usual", title="Rows that fit worst")


def _said(reasons: list[dict[str, Any]]) -> str:
    odd = [each for each in reasons if each["surprise"] > 0 and each["value"] is not None][:REASONS]
    return plain(", ".join(f"{each['column']} {each['value']}" for each in odd))
