"""Classes by columns: where each class is unlike the whole table."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from softcount.estimators.result_frames import arrow_of
from softcount.plot.display import Display, plain


class ProfileDisplay(Display):
    """A map of classes by columns, darker where the class departs further from the whole table.

    `table` is the model's `influence(per_class=True)`, whose `words` say what the column is like in the class.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 20, ax: Any = None) -> Self:
        """The n columns of a fitted model that matter most; X is not needed."""
        kept = set(arrow_of(estimator.influence()).slice(0, n).column("column").to_pylist())
        lines = arrow_of(estimator.influence(per_class=True))
        return cls(lines.filter([name in kept for name in lines.column("column").to_pylist()])).plot(ax)

    def _draw(self, ax: Any) -> None:
        columns, classes, far = self._columns("column", "class", "influence")
        down, across = list(dict.fromkeys(columns)), sorted(dict.fromkeys(classes), key=str)
        shades = np.zeros((len(down), len(across)))
        for column, name, value in zip(columns, classes, far, strict=True):
            shades[down.index(column), across.index(name)] = value
        drawn = ax.imshow(shades, aspect="auto", cmap="Blues", vmin=0)
        ax.set_xticks(range(len(across)), [plain(name) for name in across])
        ax.set_yticks(range(len(down)), [plain(name) for name in down])
        ax.figure.colorbar(drawn, ax=ax, label="departure (nats)")
        ax.set(xlabel="class", title="What sets the classes apart")
