"""Cut columns: numbers in intervals that begin and end where the classes change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcount.densities.histogram_edges import equal_count, equal_width
from softcount.densities.weighted_points import WeightedPoints
from softcount.errors import DataError
from softcount.families.base import register
from softcount.families.binned_counts import BinnedCounts
from softcount.families.categorical import top_levels
from softcount.families.examples import Cells, example
from softcount.families.point_counts import between, steady
from softcount.families.setting import How, Hyper, Params, Setting
from softcount.table.cuts import class_places, interval_names
from softcount.table.modl import interval_places

BY_CLASS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"mdl": class_places, "modl": interval_places}
BY_ROWS: dict[str, Callable[[WeightedPoints, int], np.ndarray]] = {"width": equal_width, "count": equal_count}
MOST_NAMED = 8
"""Cuts that a note names."""


@register
@dataclass(frozen=True, slots=True)
class Cut(BinnedCounts):
    """Numbers cut into intervals, each with its share in every class.

    `rule` is "modl" (Boullé's: the likeliest intervals given the classes), "mdl" (Fayyad and Irani's: cut while a cut
    saves more bits than it costs), or `intervals` of equal "width" or "count", for which classes do not matter. A
    column that tells nothing of the classes is one interval. Cuts are decided by counts, so those of a fold are decided
    by the other folds alone.
    """

    rule: str = "modl"
    intervals: int = 10

    name = "cut"

    def __post_init__(self) -> None:
        if self.rule not in (*BY_CLASS, *BY_ROWS):
            known = ", ".join([*BY_CLASS, *BY_ROWS])
            raise DataError(f"there is no rule {self.rule!r} to cut numbers by. Give one of: {known}.")
        if isinstance(self.intervals, bool) or not isinstance(self.intervals, int) or self.intervals < 1:
            raise DataError(f"numbers are cut into 1, 2, 3, ... intervals, not {self.intervals!r}.")

    @property
    def needs_classes(self) -> bool:
        return self.rule in BY_CLASS

    def inner_edges(self, points: np.ndarray, counts: np.ndarray) -> np.ndarray:
        if self.rule in BY_CLASS:
            return between(points, BY_CLASS[self.rule](steady(counts).T))
        edges = BY_ROWS[self.rule](WeightedPoints(points, steady(counts.sum(axis=0))), self.intervals)[1:-1]
        cuts = np.unique(np.searchsorted(points, edges))
        return between(points, cuts[(cuts > 0) & (cuts < len(points))])

    def meant(self, how: How) -> How:
        """A cut column is a categorical one of intervals."""
        return how

    def imagined_rows(self, each: float, pooled: np.ndarray) -> np.ndarray:
        return np.full(len(pooled), each)

    def decided(self, hyper: Hyper, setting: Setting) -> str | None:
        inner = hyper["edges"][1:-1]
        if not len(inner):
            return "no cut tells its classes apart: it says nothing of them" if self.needs_classes else None
        named = ", ".join(f"{edge:.6g}" for edge in inner[:MOST_NAMED])
        more = f" and {len(inner) - MOST_NAMED} more" if len(inner) > MOST_NAMED else ""
        return f"cut into {len(inner) + 1} intervals at {named}{more}"

    def describe(self, params: Params, setting: Setting) -> list[str]:
        if len(params["edges"][0]) < 2:
            return ["nothing known"] * len(params["edges"])
        names = [f"{name}:" for name in interval_names(params["edges"][0, 1:-1].tolist())]
        return [top_levels(row, names) for row in params["probability"]]


_AGES = [23.0, 31.5, None, 67.0, 35.0, 64.5, 29.0, 70.0, 33.0]
EXAMPLES = tuple(
    example(family, "stay", _AGES, Cells("reals")) for family in (Cut(), Cut("mdl"), Cut("width", 3), Cut("count", 3))
)
