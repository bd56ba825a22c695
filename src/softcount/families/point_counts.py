"""Numbers counted at each distinct value, for densities of any shape.

Statistics are the rows at every point of the column (`table.counted_points`), so counts that add, subtract and save
decide bins, cut points and kernels. The density is constant or exponential within cells, which all groups share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from softcount.core.counts import Twofold
from softcount.core.formulas import (
    Cell,
    Choose,
    Compare,
    Formula,
    IntervalCode,
    Keys,
    LookUp,
    Sizes,
    clamp,
    formula,
    log1p,
)
from softcount.core.lazy import xlogy
from softcount.core.special import log_of
from softcount.families.base import Family, write_number
from softcount.families.categorical import Shares, SharesDensity, prior_counts, shares_evidence
from softcount.families.density import Density
from softcount.families.setting import SMALLEST, Facts, How, Hyper, Params, Setting
from softcount.table.schema import CountedPoints, Field, Key

LARGEST = 1e300
TINY = 1e-9
"""Replaces a rise of 0: to every digit the same density, and no division by 0."""
FORGOTTEN = 1e-12
"""Share of all rows below which the rows at a point are the rounding error of removed rows."""


class CellsDensity(Density):
    """Shares of cells; within a cell the density is constant, or exponential."""

    family: PointCounts

    def score(self, column: np.ndarray) -> np.ndarray:
        """Return (rows x groups) log-densities; 0 where missing."""
        edges, shares, rises = self.own["edges"][0], self.own["probability"], self.family.rises(self.own)
        if len(edges) < 2:
            return np.zeros((len(column), len(shares)))
        table = np.concatenate([_heights(self.own, rises), np.zeros((len(shares), 1))], axis=1).T
        cell = np.searchsorted(edges, column, side="right")
        cell[column == edges[-1]] -= 1
        missing = np.isnan(column)
        cell[missing] = len(table) - 1
        scored = table[cell]
        if rises is not None:
            inside = np.flatnonzero((cell > 0) & (cell < len(edges)))
            at = cell[inside] - 1
            scored[inside] += rises.T[at] * ((column[inside] - edges[at]) / np.diff(edges)[at] - 0.5)[:, None]
        for out, off in ((column < edges[0], edges[0] - column), (column > edges[-1], column - edges[-1])):
            if out.any():
                scored[out] -= 2.0 * np.log1p(np.minimum(off[out] / _reach(edges), LARGEST))[:, None]
        return np.asarray(scored)

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        x, edges, rises = Cell(keys[0]), self.own["edges"][0], self.family.rises(self.own)
        heights = _heights(self.own, rises)
        if len(edges) < 2:
            return None
        # The last cell includes its upper edge.
        code = IntervalCode(keys[0], np.append(edges[:-1], np.nextafter(edges[-1], np.inf)))
        none = np.zeros((1, len(heights)))
        inside: Formula = LookUp(code, clamp(np.concatenate([none, heights.T])))
        if rises is not None:  # a line in each cell; from the first edge, so that few digits are lost
            slopes, middle = rises / np.diff(edges), (edges[1:] + edges[:-1]) / 2 - edges[0]
            heights[:, 1:-1] -= slopes * middle
            inside = LookUp(code, clamp(np.concatenate([none, heights.T])))
            inside += LookUp(code, np.concatenate([none, none, slopes.T, none])) * (x - edges[0])
        low, high, reach = map(formula, (edges[0], edges[-1], _reach(edges)))
        below, above = log1p((low - x) / reach) * 2.0, log1p((x - high) / reach) * 2.0
        outside = Choose((Compare("<", high, x),), inside - above, inside)
        return Choose((Compare("<", x, low),), inside - below, outside)

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        edges, shares, rises = self.own["edges"][0], self.own["probability"], self.family.rises(self.own)
        if len(edges) < 2:
            return np.full(len(groups), np.nan)
        ends = np.cumsum(shares, axis=1)[groups]
        cell = (rng.random(len(groups))[:, None] * ends[:, -1:] >= ends).sum(axis=1)
        part = rng.random(len(groups))
        if rises is not None:
            rise = np.where(rises == 0, TINY, rises)[groups, cell]
            part = np.clip(np.log1p(part * np.expm1(rise)) / rise, 0.0, 1.0)
        return np.asarray(edges[cell] + part * np.diff(edges)[cell])

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        edges, shares, rises = self.own["edges"][0], self.own["probability"], self.family.rises(self.own)
        if len(edges) < 2:
            return np.full(len(shares), np.nan), np.full(len(shares), np.nan)
        about, width = edges[0] + (edges[-1] - edges[0]) / 2, np.diff(edges)
        off, spread = _moments_within(np.zeros_like(shares) if rises is None else rises)
        middle = (edges[:-1] + width / 2) - about + off * width
        mean = (shares * middle).sum(axis=1)
        return about + mean, np.maximum((shares * (middle**2 + spread * width**2)).sum(axis=1) - mean**2, 0.0)

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        edges, shares, rises = self.own["edges"][0], self.own["probability"], self.family.rises(self.own)
        start = np.zeros((len(shares), 1))
        if above:
            ends = np.concatenate([start, np.cumsum(shares[:, ::-1], axis=1)], axis=1)[:, ::-1]
        else:
            ends = np.concatenate([start, np.cumsum(shares, axis=1)], axis=1)
        if rises is None or not edges[0] < x < edges[-1]:
            return np.array([np.interp(x, edges, row) for row in ends])
        cell = int(np.searchsorted(edges, x, side="right")) - 1
        part, rise = (x - edges[cell]) / (edges[cell + 1] - edges[cell]), rises[:, cell]
        if above:
            part, rise = 1.0 - part, -rise
        rise = np.where(rise == 0, TINY, rise)
        return np.asarray(ends[:, cell + above] + shares[:, cell] * (np.expm1(rise * part) / np.expm1(rise)))

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        shares, rises = self.own["probability"], self.family.rises(self.own)
        found = xlogy(shares, shares) + shares * _inside(self.own, rises)
        if rises is not None:
            found += shares * rises * _moments_within(rises)[0]
        return np.asarray(-found.sum(axis=-1))

    def there(self, column: np.ndarray) -> np.ndarray | None:
        return np.asarray(~np.isnan(column))

    def describe(self) -> list[str]:
        if len(self.own["edges"][0]) < 2:
            return ["nothing known"] * len(self.own["edges"])
        below = np.cumsum(self.own["probability"], axis=1)
        ends = np.concatenate([np.zeros((len(below), 1)), below], axis=1)
        each = [np.interp((0.5, 0.25, 0.75), row, self.own["edges"][0]) for row in ends]
        return ["median {}, half from {} to {}".format(*(write_number(self.setting, x) for x in one)) for one in each]

    divergence = SharesDensity.divergence

    def find_fault(self) -> str | None:
        edges = self.own["edges"]
        if not (np.diff(edges, axis=-1) > 0).all() or not (edges == edges[:1]).all():
            return "its edges are not in ascending order, or differ between groups"
        if not ((self.own["beyond"] >= 0) & (self.own["beyond"] <= 0.5)).all():
            return "its share beyond the edges is not small"
        return super().find_fault()

    def find_shape_fault(self) -> str | None:
        groups, own = self.setting.groups, self.own
        shapes = {name: np.shape(own[name]) for name in ("probability", "edges", "beyond")}
        cells = shapes["probability"][-1]
        right = {"probability": (groups, cells), "edges": (groups, cells + 1), "beyond": (groups,)}
        if shapes != right or own["place"].shape != (groups, len(self.setting.levels)):
            return "its cells are not given for each group"
        place = own["place"]
        if not (np.isfinite(own["edges"]).all() and (place >= 0).all() and (place < max(cells, 1)).all()):
            return "its cells are not finite"
        return None


class PointCounts(Family):
    """A density on cells: `probability` of each cell between two of its `edges`, in every group.

    Within a cell it is constant, or exponential if the family has `rises`.

    Outside the edges it decays as slowly as Cauchy's density, by the same law in every group, with the share `beyond`
    of the outermost cell. A number far away therefore keeps the odds of that cell; draws are never from there.
    """

    facts = Facts(chart={"probability": "shares"}, has_products=False, counts_points=True, alone=True, rows=slice(None))
    proper = Shares.proper
    _density = CellsDensity

    def rises(self, params: Params) -> np.ndarray | None:
        """Return the (groups x cells) rise of the log-density from edge to edge of each cell; None if it is constant.

        The outermost cells have no rise, because the density beyond continues that of the cell.
        """
        return None

    # -- setting up

    def set_up(self, key: Key, fields: Sequence[Field], groups: int, floor: float) -> tuple[Family, Setting]:
        points = fields[0].points or CountedPoints()
        return self, Setting((key,), groups, points.values, floor=floor, step=points.step)

    # -- counting

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        rows = np.zeros((len(column), self.width(setting)))
        rows[self._places(column, setting)] = 1.0
        return rows

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        there, places = self._places(column, setting)
        own, width = memberships[there], self.width(setting)
        counted = [np.bincount(places, own[:, group], minlength=width) for group in range(own.shape[1])]
        return Twofold.of(np.array(counted).reshape(own.shape[1], width))

    def count_labels(
        self, column: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, groups: int, setting: Setting
    ) -> Twofold:
        there, places = self._places(np.where(labels >= 0, column, np.nan), setting)
        width, own = self.width(setting), labels[there].astype(np.int64)
        counted = np.bincount(own * width + places, None if weights is None else weights[there], groups * width)
        return Twofold.of(counted.reshape(groups, width).astype(np.float64))

    def _places(self, column: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that have a number, and the point at which each is counted."""
        there = np.flatnonzero(~np.isnan(column)) if self.width(setting) else np.zeros(0, dtype=np.int64)
        return there, _points(setting).places(column[there])

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        """Convert counts to other points: those of a finer grid are added up."""
        if old.levels == new.levels:
            return stats
        places = _points(new).places(np.array(old.levels))
        hi, lo = np.zeros((2, stats.shape[0], len(new.levels)))
        np.add.at(hi.T, places, stats.hi.T)
        np.add.at(lo.T, places, stats.lo.T)
        return Twofold(hi, lo)

    # -- learning: the families decide the cells and the prior rows in them

    def usable_how(self, how: How) -> How:
        """Return the estimate to use: `mean` for `map`, because the prior is relative to the mode."""
        return "mean" if how == "map" else how

    def with_cells(self, shares: np.ndarray, hyper: Hyper, how: How) -> Params:
        """Return the parameters for these shares of the cells."""
        groups = len(shares)
        beyond = 0.0 if how == "ml" else float(hyper["beyond"])
        return {
            "probability": shares,
            "edges": np.tile(hyper["edges"], (groups, 1)),
            "beyond": np.full(groups, beyond),
            "place": np.tile(hyper["place"], (groups, 1)),
        }

    def completed(self, stats: Twofold, params: Params) -> float:
        if not stats.shape[-1]:
            return 0.0
        rows, rises = np.maximum(stats.value, 0.0), self.rises(params)
        held = _per_cell(rows, params)
        found = xlogy(held, params["probability"]) + held * _inside(params, rises)
        if rises is None:
            return float(found.sum())
        cell = params["place"][0].astype(np.int64)
        return float(found.sum() + (rows * rises[:, cell] * (params["place"] - cell - 0.5)).sum())

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        held = _per_cell(np.maximum(stats.value, 0.0), params) + prior_counts(hyper, self.usable_how(how))
        return {"probability": held / np.maximum(params["probability"], SMALLEST)}

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        return np.asarray(xlogy(prior_counts(hyper, self.usable_how(how)), params["probability"]).sum(axis=-1))

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the log evidence given the edges of the cells, with their shares integrated out."""
        params = self.with_cells(np.ones((stats.shape[0], len(hyper["edges"]) - 1)), hyper, "mean")
        held = _per_cell(np.maximum(stats.value, 0.0), params)
        return float(shares_evidence(held, hyper["alpha"]) + (held * _inside(params)).sum())

    def public(self, params: Params, setting: Setting) -> Params:
        return {name: value for name, value in params.items() if name != "place"}

    def private(self, params: Params, setting: Setting) -> Params:
        edges, points = np.asarray(params["edges"], float), np.array(setting.levels)
        return dict(params) | {"place": np.tile(place_of(points, edges[0]), (len(edges), 1))}


def round_counts(counts: np.ndarray) -> np.ndarray:
    """Round rows to seven digits, for decisions: the last digits depend on the order of sums and on removed rows."""
    return np.asarray(np.maximum(counts, 0.0).astype(np.float32), dtype=np.float64)


def seen_points(stats: Twofold, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return all points, and which of them have rows."""
    pooled = round_counts(stats.value.sum(axis=0))
    return np.array(setting.levels, dtype=float), pooled > FORGOTTEN * pooled.sum()


def _points(setting: Setting) -> CountedPoints:
    return CountedPoints(cast("tuple[float, ...]", setting.levels), setting.step)


def _inside(params: Params, rises: np.ndarray | None = None) -> np.ndarray:
    """Return the log-density in the middle of a cell minus the log-share of the cell.

    The outermost cells reserve a part for numbers beyond.
    """
    edges, beyond = params["edges"], params["beyond"]
    logs = -log_of(np.diff(edges, axis=-1))
    if logs.shape[-1]:
        logs[..., 0] += np.log1p(-beyond)
        logs[..., -1] += np.log1p(-beyond)
    if rises is not None:  # the integral of exp(rise * u) for u from -1/2 to 1/2 is 2 sinh(rise / 2) / rise
        size = np.maximum(np.abs(rises), TINY)
        logs -= size / 2 + np.log(-np.expm1(-size) / size)
    return np.asarray(logs)


def _moments_within(rises: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean (from the middle) and variance in a cell of width 1, by the rise of its log-density."""
    small = np.abs(rises) < 0.02
    rise = np.where(small, 1.0, rises)
    mean = np.where(small, rises / 12 - rises**3 / 720, 0.5 / np.tanh(rise / 2) - 1 / rise)
    with np.errstate(over="ignore"):
        variance = np.where(small, 1 / 12 - rises**2 / 240, 1 / rise**2 - 0.25 / np.sinh(rise / 2) ** 2)
    return mean, variance


def _heights(params: Params, rises: np.ndarray | None = None) -> np.ndarray:
    """Return (groups x cells) log-densities in the middle, between those just outside the outer edges."""
    edges, shares, beyond = params["edges"][0], params["probability"], params["beyond"]
    with np.errstate(divide="ignore"):
        inside = np.log(shares) + _inside(params, rises)
        tails = np.log(shares[:, [0, -1]]) + np.log(beyond)[:, None] - np.log(_reach(edges))
    return np.concatenate([tails[:, :1], inside, tails[:, 1:]], axis=1)


def _reach(edges: np.ndarray) -> float:
    """Return the distance outside of the cells at which the density has fallen to a quarter."""
    return max(float(edges[-1] / 4 - edges[0] / 4), SMALLEST)


def _per_cell(stats: np.ndarray, params: Params) -> np.ndarray:
    return per_cell(stats, params["place"][0].astype(np.int64), params["probability"].shape[-1])


def per_cell(stats: np.ndarray, place: np.ndarray, cells: int) -> np.ndarray:
    """Return (groups x cells) rows from (groups x points) rows, each point in its cell; points are in order."""
    held: np.ndarray = np.zeros((len(stats), cells))
    if len(place) and cells:
        first = np.flatnonzero(np.diff(place, prepend=-1))
        held[:, place[first]] = np.add.reduceat(stats, first, axis=1)
    return held


def place_of(points: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the cell of each point."""
    found = np.searchsorted(edges, points, side="right") - 1
    return np.clip(found, 0, max(len(edges) - 2, 0)).astype(np.float64)


def place_within(points: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the cell of each point plus the part of the cell below the point."""
    cell = place_of(points, edges)
    if len(edges) < 2:
        return cell
    at = cell.astype(np.int64)
    part = np.clip((points - edges[at]) / np.diff(edges)[at], 0.0, 1.0)
    return np.asarray(np.minimum(cell + part, np.nextafter(cell + 1.0, 0.0)))


def ends_of(points: np.ndarray, step: float) -> tuple[float, float]:
    """Return the ends of the numbers: beyond the outermost points by half a grid cell, or half the adjacent gap."""
    if len(points) == 1:
        half = step / 2 or max(abs(float(points[0])) * 2.0**-20, 2.0**-1000) if points[0] else 0.5
        low = float(points[0]) - half
        return low if points[0] < 0 else max(low, 0.0), float(points[0]) + half
    low = step / 2 or float(points[1] - points[0]) / 2
    high = step / 2 or float(points[-1] - points[-2]) / 2
    first, last = float(points[0]) - low, float(points[-1]) + high
    first = min(first, float(np.nextafter(points[0], -np.inf)))
    return max(first, 0.0) if points[0] >= 0 else first, max(last, float(np.nextafter(points[-1], np.inf)))


def between(points: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Return borders of cells that begin at these points, given by their places; the first point begins no cell.

    A border is half-way to the previous point, or the point itself if there is no number between.
    """
    cuts = np.unique(cuts)
    cuts = cuts[(cuts > 0) & (cuts < len(points))]
    low, high = points[cuts - 1], points[cuts]
    middle = low + (high / 2 - low / 2)
    return np.asarray(np.where(middle > low, middle, high))
