"""Which class a model decides for, over two columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from softcount.errors import DataError
from softcount.plot.display import Display, colour, plain

STEPS = 120
MARGIN = 0.05


class BoundaryDisplay(Display):
    """Regions of two columns by the class that is likeliest there, paler where the model is less sure.

    All other columns are left missing, which is no evidence. `table` has the two columns, `class` and `probability` on
    a grid.
    """

    def __init__(self, table: Any, names: Sequence[Any]) -> None:
        super().__init__(table)
        self.names = tuple(names)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, columns: Any = (0, 1), ax: Any = None) -> Self:
        """Two numeric columns of X, whose range is drawn: by place in an array, by name in a frame or a mapping."""
        if X is None:
            raise DataError("the range to draw is that of X: give the rows, BoundaryDisplay.from_estimator(model, X).")
        first, second = (_values(X, column) for column in columns)
        across, down = np.meshgrid(_grid(first), _grid(second))
        chances = estimator.predict_proba(_rows(X, columns, across.ravel(), down.ravel()))
        return cls(_table(across, down, chances, _classes(estimator, chances)), columns).plot(ax)

    def _draw(self, ax: Any) -> None:
        x, y, names, sure = (np.asarray(column) for column in self._columns("x", "y", "class", "probability"))
        kinds, places = np.unique(names, return_inverse=True)
        for place, name in enumerate(kinds):
            here = (places == place) * (sure - 1 / (len(kinds) + 1))
            shade = [(1, 1, 1, 0), colour(place)]
            ax.pcolormesh(*_mesh(x, y, here), cmap=_shades(shade), vmin=0, vmax=1, shading="nearest")
            ax.plot([], [], marker="s", linestyle="", color=colour(place), label=plain(name))
        ax.legend(title="class")
        ax.set(xlabel=plain(self.names[0]), ylabel=plain(self.names[1]), title="Which class is likeliest")


def _values(X: Any, column: Any) -> np.ndarray:
    values = X[:, column] if isinstance(X, np.ndarray) else X[column]
    return np.asarray(values, dtype=float)


def _grid(values: np.ndarray) -> np.ndarray:
    low, high = np.nanmin(values), np.nanmax(values)
    room = MARGIN * (high - low or 1.0)
    return np.linspace(low - room, high + room, STEPS)


def _rows(X: Any, columns: Any, first: np.ndarray, second: np.ndarray) -> Any:
    """The grid as rows like those of X, everything but the two columns missing."""
    if not isinstance(X, np.ndarray):
        return dict(zip(columns, (first, second), strict=True))
    rows = np.full((len(first), X.shape[1]), np.nan)
    rows[:, columns[0]], rows[:, columns[1]] = first, second
    return rows


def _classes(estimator: Any, chances: np.ndarray) -> list[Any]:
    return list(getattr(estimator, "classes_", range(chances.shape[1])))


def _table(across: np.ndarray, down: np.ndarray, chances: np.ndarray, names: list[Any]) -> Any:
    import pyarrow as pa

    best = chances.argmax(axis=1)
    return pa.table(
        {
            "x": across.ravel(),
            "y": down.ravel(),
            "class": [names[place] for place in best],
            "probability": chances.max(axis=1),
        }
    )


def _mesh(x: np.ndarray, y: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(each.reshape(STEPS, STEPS) for each in (x, y, values))


def _shades(colours: list[Any]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("sureness", colours)
