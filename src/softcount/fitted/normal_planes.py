"""Two columns in which groups lie apart: their normal distributions there, and who is likeliest where."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.fitted.column_shapes import column_range
from softcount.records import dataclass
from softcount.run.threads import Threads
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted

LOOKED_AT = 20
"""Columns that pairs are made of, those of the greatest influence."""
AROUND = np.linspace(0.0, 2.0 * np.pi, 49)


@dataclass(frozen=True, slots=True)
class NormalPlane:
    """Two columns that are normal in every group: (groups x 2) means and (groups x 2 x 2) covariances."""

    columns: tuple[Key, Key]
    means: np.ndarray
    covariances: np.ndarray

    def ellipse(self, group: int, part: float) -> np.ndarray:
        """(points x 2) the ellipse that holds this part of a group, by the model.

        In two dimensions the squared distance is exponential: a part p lies within -2 log(1 - p).
        """
        factor = np.linalg.cholesky(self.covariances[group])
        around = np.stack([np.cos(AROUND), np.sin(AROUND)], axis=1)
        return np.asarray(self.means[group] + np.sqrt(-2.0 * np.log1p(-part)) * around @ factor.T)


def normal_planes(fitted: Fitted) -> dict[Key, tuple[np.ndarray, np.ndarray, Key, int]]:
    """For every column that is normal in each group: means and covariances of its leaf, the leaf, its place there."""
    found: dict[Key, tuple[np.ndarray, np.ndarray, Key, int]] = {}
    params = fitted.params
    for leaf in fitted.model.leaves:
        normal = leaf.family.as_normal(params[leaf.key]) if leaf.columns else None
        if normal is not None:
            for place, column in enumerate(leaf.columns):
                found[column] = (*normal, leaf.key, place)
    return found


def most_separating(fitted: Fitted) -> NormalPlane | None:
    """The two normal columns in which the groups overlap least; None where there are not two."""
    known = normal_planes(fitted)
    ranked: list[Key] = [
        column for key, _ in fitted.influence() for column in (key if isinstance(key, tuple) else (key,))
    ]
    columns = [column for column in ranked if column in known][:LOOKED_AT]
    planes = [_plane(known, pair) for pair in combinations(columns, 2)]
    if not planes:
        return None
    return max(planes, key=lambda plane: _apart(plane, fitted.row_shares))


def _plane(known: dict[Key, tuple[np.ndarray, np.ndarray, Key, int]], pair: tuple[Key, Key]) -> NormalPlane:
    (means, spreads, leaf, i), (others, other_spreads, other_leaf, j) = known[pair[0]], known[pair[1]]
    centre = np.stack([means[:, i], others[:, j]], axis=1)
    spread = np.zeros((len(centre), 2, 2))
    spread[:, 0, 0], spread[:, 1, 1] = spreads[:, i, i], other_spreads[:, j, j]
    if leaf == other_leaf:
        spread[:, 0, 1] = spread[:, 1, 0] = spreads[:, i, j]
    return NormalPlane(pair, centre, spread)


def _apart(plane: NormalPlane, shares: np.ndarray) -> float:
    """How little groups overlap: one less Bhattacharyya's coefficient, by how often two rows are of both."""
    total = 0.0
    for a, b in combinations(range(len(shares)), 2):
        middle = (plane.covariances[a] + plane.covariances[b]) / 2
        off = plane.means[a] - plane.means[b]
        sizes = [np.linalg.slogdet(part)[1] for part in (middle, plane.covariances[a], plane.covariances[b])]
        distance = off @ np.linalg.solve(middle, off) / 8 + (sizes[0] - (sizes[1] + sizes[2]) / 2) / 2
        total += float(shares[a] * shares[b] * (1.0 - np.exp(-distance)))
    return total


@dataclass(frozen=True, slots=True)
class DecisionGrid:
    """Which group is likeliest over two columns of numbers, all others missing, and how sure that is."""

    columns: tuple[Key, Key]
    x: np.ndarray
    y: np.ndarray
    likeliest: np.ndarray
    sure: np.ndarray


def decision_grid(fitted: Fitted, columns: tuple[Key, Key], steps: tuple[int, int] = (48, 36)) -> DecisionGrid:
    """(y x x) the likeliest group at the middle of every cell of a grid."""
    (low, high), (below, above) = (column_range(fitted, column) for column in columns)
    x = low + (np.arange(steps[0]) + 0.5) * (high - low) / steps[0]
    y = below + (np.arange(steps[1]) + 0.5) * (above - below) / steps[1]
    across, up = np.meshgrid(x, y)
    cells: dict[Key, list[Any]] = {spec.key: [None] * across.size for spec in fitted.schema.used}
    cells[columns[0]], cells[columns[1]] = across.ravel().tolist(), up.ravel().tolist()
    with Threads(1) as threads:
        proba = fitted.proba(fitted.table(cells), threads)
    shape = across.shape
    return DecisionGrid(columns, x, y, proba.argmax(axis=1).reshape(shape), proba.max(axis=1).reshape(shape))
