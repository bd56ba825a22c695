"""Words that all families share: the names of their arrays, and what a family is told of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

import numpy as np

from softcount.records import dataclass
from softcount.table.cell_forms import CellForm
from softcount.table.schema import Key

How = Literal["ml", "map", "mean", "predictive"]
Line = Literal["plain", "log", "share", "shares", "covariance"]
ClosedForm = dict[str, Any]
"""A log-density in every group by the name of its formula and the numbers in it."""
Params = dict[str, np.ndarray]
Hyper = dict[str, np.ndarray]
HOWS: tuple[How, ...] = ("ml", "map", "mean", "predictive")

IMPOSSIBLE = -1e199
"""A log-density below this stands for probability zero where a product must stay finite."""
CLAMPED = -1e200
SMALLEST = 1e-300
SLACK = 1e-6
"""In proportion, by which a spread may be above its floor and still be at it: steps bring it back off by rounding."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a family is told of the columns it models: how many groups, which levels, which units.

    A number x is counted as `(x - anchor) * scale`, so `anchor` and `scale` turn parameters into the user's units.
    `blank` is what a hole is taken for while nothing is known of its group: the columns' means and variances, or
    whatever else `Family.blank` found.
    `floor` is the least variance of a group as a share of the column's; `rounded`, that it is how numbers are rounded.
    `written` is how the cells of its one column are written.
    A family that must know more has a subclass of its own (`Family.setting_type`).
    """

    keys: tuple[Key, ...] = ()
    groups: int = 1
    levels: Sequence[object] = ()
    anchor: np.ndarray = field(default_factory=lambda: np.zeros(1))
    scale: np.ndarray = field(default_factory=lambda: np.ones(1))
    floor: float | np.ndarray = 1e-12
    rounded: bool = False
    blank: Any = None
    written: CellForm | None = None

    def resolution(self, mean: np.ndarray, least: float) -> np.ndarray:
        """The width that a column needs even if it has no spread at all: how finely its numbers are told apart."""
        finest = np.finfo(float).eps * np.maximum(np.abs(mean), np.abs(self.anchor * self.scale))
        return np.asarray(np.maximum(finest, least))
