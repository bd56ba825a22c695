"""How a fit climbed."""

from __future__ import annotations

from typing import Any, Self

from softcount.plot.display import FOR, Display


class TraceDisplay(Display):
    """The objective after every iteration: log-likelihood and log-prior of a mixture, the cost J of k-means.

    `table` has `step` and `objective`, the model's `trace_`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None) -> Self:
        """The climb that a fitted model kept; X is not needed."""
        import pyarrow as pa

        values = [float(value) for value in estimator.trace_]
        return cls(pa.table({"step": list(range(len(values))), "objective": values})).plot(ax)

    def _draw(self, ax: Any) -> None:
        steps, values = self._columns("step", "objective")
        ax.plot(steps, values, marker=".", color=FOR)
        ax.set(xlabel="step", ylabel="objective", title="The climb")
