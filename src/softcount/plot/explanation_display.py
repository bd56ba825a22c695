"""One row's answer, column by column."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Self

from softcount.errors import DataError
from softcount.estimators.result_frames import arrow_of
from softcount.plot.display import AGAINST, COLOURS, FOR, Display, bars_down

TOTAL = "(total)"


class ExplanationDisplay(Display):
    """A waterfall: every column's log-odds begins where the one before ended, and the last bar is their sum.

    `table` has `column` and `log_odds`, the weightiest first, `(total)` last: `explain`'s figures, which add up.
    """

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, row: int = 0, against: Any = None, ax: Any = None
    ) -> Self:
        """Row `row` of X, its class against the runner-up, or `against` another class."""
        parts = arrow_of(estimator.explain(X, against=against))
        if not 0 <= row < len(parts):
            raise DataError(f"there is no row {row}: rows are counted from 0, and there are {len(parts):,}.")
        return cls(_ranked({name: parts.column(name)[row].as_py() for name in parts.column_names})).plot(ax)

    def _draw(self, ax: Any) -> None:
        names, odds = self._columns("column", "log_odds")
        colours = [FOR if value >= 0 else AGAINST for value in odds[:-1]]
        drawn = bars_down(ax, names, odds, [*colours, COLOURS[-1]])
        for bar, start in zip(drawn[:-1], [0.0, *accumulate(odds[:-2])], strict=True):
            bar.set_x(bar.get_x() + start)
        ax.relim()
        ax.autoscale_view()
        ax.axvline(0, color="grey", linewidth=0.8)
        ax.set(xlabel="log-odds of the class against the other", title="Why")


def _ranked(parts: dict[str, float]) -> Any:
    import pyarrow as pa

    ranked = sorted(parts.items(), key=lambda part: -abs(part[1]))
    lines = [*ranked, (TOTAL, sum(parts.values()))]
    return pa.table({"column": [name for name, _ in lines], "log_odds": [float(odds) for _, odds in lines]})
