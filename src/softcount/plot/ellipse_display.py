"""Components of a Gaussian mixture as ellipses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Self

import numpy as np

from softcount.errors import DataError
from softcount.plot.display import Display, colour, plain

LEVELS = (0.5, 0.95)
"""The shares of a component that its ellipses hold."""

AROUND = np.linspace(0, 2 * np.pi, 121)


class EllipseDisplay(Display):
    """Each component's ellipses in two columns: the inner holds half of its rows, the outer 95 in 100.

    `table` has, for each component and level, the centre (`x`, `y`), the half axes (`long`, `short`) and the `angle` of
    the longer one in degrees.
    """

    def __init__(self, table: Any, names: Sequence[Any], points: Any = None) -> None:
        super().__init__(table)
        self.names = tuple(names)
        self.points = points

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, columns: Any = None, ax: Any = None) -> Self:
        """A fitted `GaussianMixture` in two columns, by place; those that tell components best if none are named.

        Rows of X, an array, are drawn as points.
        """
        means, full = estimator.means_, _full(estimator)
        first, second = _pair(means, full, estimator.weights_) if columns is None else columns
        picked = np.ix_(range(len(means)), [first, second], [first, second])
        table = _ellipses(means[:, [first, second]], full[picked])
        points = None if X is None else np.asarray(X, dtype=float)[:, [first, second]]
        return cls(table, (first, second), points).plot(ax)

    def _draw(self, ax: Any) -> None:
        if self.points is not None:
            ax.scatter(*self.points.T, s=8, color="grey", alpha=0.5, linewidths=0)
        for line in self.table.to_pylist():
            ax.plot(*_outline(line), color=colour(line["component"]), linewidth=2 if line["level"] == LEVELS[0] else 1)
        ax.set(xlabel=plain(f"column {self.names[0]}"), ylabel=plain(f"column {self.names[1]}"))
        ax.set_title("Components: 50 and 95 % of each")


def _full(estimator: Any) -> np.ndarray:
    """(components x columns x columns) covariances, whatever shape the mixture keeps them in."""
    means, found = estimator.means_, np.asarray(estimator.covariances_, dtype=float)
    groups, width = means.shape
    if width < 2:
        raise DataError("ellipses need two columns, and this mixture has one.")
    if found.ndim == 3:
        return found
    if found.shape == (width, width) and estimator.covariance_type_ == "tied":
        return np.broadcast_to(found, (groups, width, width))
    spread = found[:, None] if found.shape == (groups,) and "spherical" in estimator.covariance_type_ else found
    return np.broadcast_to(spread, (groups, width))[:, :, None] * np.eye(width)


def _pair(means: np.ndarray, full: np.ndarray, weights: np.ndarray) -> tuple[int, int]:
    """The two columns whose means lie furthest apart beside their spread."""
    within = weights @ np.diagonal(full, axis1=1, axis2=2)
    between = weights @ (means - weights @ means) ** 2
    ranked = np.argsort(-between / within, kind="stable")
    return next(iter(combinations(sorted(map(int, ranked[:2])), 2)))


def _ellipses(means: np.ndarray, covariances: np.ndarray) -> Any:
    import pyarrow as pa

    lines = []
    for component, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        values, vectors = np.linalg.eigh(covariance)
        angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
        for level in LEVELS:
            # In two dimensions the squared distance is exponential: a share p lies within -2 log(1 - p).
            short, long = np.sqrt(values * -2 * np.log1p(-level))
            x, y = map(float, mean)
            lines.append({"component": component, "level": level, "x": x, "y": y})
            lines[-1] |= {"long": float(long), "short": float(short), "angle": angle}
    return pa.Table.from_pylist(lines)


def _outline(line: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    turn = np.radians(line["angle"])
    along, across = line["long"] * np.cos(AROUND), line["short"] * np.sin(AROUND)
    x = line["x"] + along * np.cos(turn) - across * np.sin(turn)
    return x, line["y"] + along * np.sin(turn) + across * np.cos(turn)
