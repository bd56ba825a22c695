"""Histogram columns: numbers of any shape, in bins that all groups share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr

from softcount.core.twofold import Twofold
from softcount.densities.histogram import checked_bins, edges_of
from softcount.densities.kernels import WeightedPoints
from softcount.families.base import Family, register, scalar_prior
from softcount.families.capabilities import FEW_ROWS, NumberFacts
from softcount.families.categorical import estimated
from softcount.families.examples import Cells, example
from softcount.families.point_counts import PointCounts, between, ends_of, per_cell, place_of, seen_points, steady
from softcount.families.setting import How, Hyper, Params, Setting


class BinnedCounts(PointCounts):
    """Where bins begin and end is for the family itself; so is how imagined rows lie in them."""

    def inner_edges(self, points: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Where bins meet, from (groups x points) rows at two points or more, of which none is empty.

        What all groups have together is to be rounded, by `steady`, once it is added up.
        """
        raise NotImplementedError

    def imagined_rows(self, each: float, pooled: np.ndarray) -> np.ndarray:
        """Imagined rows in each bin, where so many are imagined for each on average."""
        raise NotImplementedError

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        points, seen = seen_points(stats, setting)
        pooled = np.maximum(stats.value, 0.0).sum(axis=0)
        edges = self._edges(points[seen], stats.value[:, seen], float(getattr(setting, "step", 0.0)))
        place, bins = place_of(points, edges), len(edges) - 1
        held = per_cell(pooled[None], place.astype(np.int64), bins)[0]
        alpha = self.imagined_rows(scalar_prior(prior, self, max(bins, 1), setting.groups), held)
        return {"alpha": alpha, "edges": edges, "place": place, "beyond": np.array(1.0 / (pooled.sum() + 2.0))}

    def _edges(self, points: np.ndarray, counts: np.ndarray, step: float) -> np.ndarray:
        if not len(points):
            return np.zeros(1)
        first, last = ends_of(points, step)
        inner = self.inner_edges(points, counts) if len(points) > 1 else np.zeros(0)
        return np.concatenate([[first], inner, [last]])

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        held = per_cell(np.maximum(stats.value, 0.0), hyper["place"].astype(np.int64), len(hyper["edges"]) - 1)
        return self.with_cells(estimated(held, hyper["alpha"], self.meant(how), self.name), hyper, how)


# Histogram columns: numbers of any shape, in bins that all groups share.


@register
class HistogramFamily(BinnedCounts, Struct, frozen=True):
    """Numbers of any shape, as shares of bins: `bins` as `sc.Histogram` has them, decided by all rows together.

    A prior of `a` imagines `a` rows for every bin on average, where all rows together lie. No bin is narrower than the
    way between two numbers: it would tell how they are rounded.
    """

    bins: Any = "auto"

    name = "histogram"

    @classmethod
    def candidates(cls, facts: NumberFacts) -> Sequence[Family]:
        return (cls("fd"), cls()) if facts.rows >= FEW_ROWS else ()

    def __post_init__(self) -> None:
        force_setattr(self, "bins", checked_bins(self.bins))

    def inner_edges(self, points: np.ndarray, counts: np.ndarray) -> np.ndarray:
        pooled = steady(counts.sum(axis=0))
        if pooled.sum() <= 1:
            return np.zeros(0)
        cuts = np.unique(np.searchsorted(points, edges_of(self.bins, WeightedPoints(points, pooled))[1:-1]))
        return between(points, cuts[(cuts > 0) & (cuts < len(points))])

    def imagined_rows(self, each: float, pooled: np.ndarray) -> np.ndarray:
        share = pooled / pooled.sum() if pooled.sum() > 0 else np.full(len(pooled), 1.0 / max(len(pooled), 1))
        return each * len(pooled) * share


_AGES = [23.0, 31.5, None, 67.0, 35.0, 64.5, 29.0, 70.0, 33.0]
EXAMPLES = tuple(example(family, "age", _AGES, Cells("reals")) for family in (HistogramFamily(), HistogramFamily(4)))
