"""Bins decided by the counts of all groups, with a share of each bin in every group: histograms and cuts."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.families.base import scalar_prior
from softcount.families.categorical import estimated
from softcount.families.point_counts import PointCounts, ends_of, per_cell, place_of, seen_points
from softcount.families.setting import How, Hyper, Params, Setting
from softcount.numerics.twofold import Twofold


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
