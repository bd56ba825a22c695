"""Binned columns: histograms, and intervals whose borders follow the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from softcount.core.counts import Twofold
from softcount.core.lazy import xlogy
from softcount.densities.histogram import checked_bins, edges_of, equal_count, equal_width, given_edges
from softcount.densities.kernels import WeightedPoints
from softcount.errors import DataError
from softcount.families.base import Family, register, scalar_prior
from softcount.families.categorical import estimate_shares, prior_counts, shares_evidence, top_levels
from softcount.families.point_counts import (
    CellsDensity,
    PointCounts,
    between,
    ends_of,
    per_cell,
    place_of,
    round_counts,
    seen_points,
)
from softcount.families.setting import Facts, How, Hyper, Params, Setting
from softcount.table.discretise import class_places, interval_names, interval_places


class BinnedCounts(PointCounts):
    """Base of binned families, which implement the edges of bins and the prior rows in them."""

    def inner_edges(self, points: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the inner edges of bins, from (groups x points) rows at two or more points, none of them empty.

        Totals over groups are rounded by `round_counts` after they are added up.
        """
        raise NotImplementedError

    def edges(self, points: np.ndarray, counts: np.ndarray, step: float) -> np.ndarray:
        """Return the edges of bins that hold all points, from (groups x points) rows at points, none of them empty."""
        first, last = ends_of(points, step)
        inner = self.inner_edges(points, counts) if len(points) > 1 else np.zeros(0)
        return np.concatenate([[first], inner, [last]])

    def prior_rows(self, each: float, pooled: np.ndarray) -> np.ndarray:
        """Return the prior rows in each bin, for this many per bin on average."""
        raise NotImplementedError

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        points, seen = seen_points(stats, setting)
        pooled = np.maximum(stats.value, 0.0).sum(axis=0)
        edges = self.edges(points[seen], stats.value[:, seen], setting.step) if seen.any() else np.zeros(1)
        place, bins = place_of(points, edges), len(edges) - 1
        held = per_cell(pooled[None], place.astype(np.int64), bins)[0]
        alpha = self.prior_rows(scalar_prior(prior, self, max(bins, 1), setting.groups), held)
        return {"alpha": alpha, "edges": edges, "place": place, "beyond": np.array(1.0 / (pooled.sum() + 2.0))}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        return self.with_cells(
            estimate_shares(_held(stats, hyper), hyper["alpha"], self.usable_how(how), self.name), hyper, how
        )


@register
class Histogram(BinnedCounts, Struct, frozen=True):
    """Histogram: numbers of any shape, as shares of bins.

    All classes have the same bins, which all rows together decide. The density in a bin is its share divided by its
    width.

    Parameters
    ----------
    bins : int, str, ('count', int) or array of edges, default='auto'
        Number of bins, the name of a rule, a number of bins of equal count, or ascending edges, as in
        `softcount.Histogram`. Given edges are used as they are; numbers outside them get a bin on either side.

    See Also
    --------
    softcount.Histogram : The density of a column by itself.
    Kernel : A smooth density for every class.
    Cut : Bins that separate the classes.

    Notes
    -----
    A model has `probability` (classes x bins) and `edges`. A prior of a rows adds a rows per bin on average,
    distributed as all rows together; empty bins between given edges have a little prior mass. No bin is narrower than
    the distance between two numbers, because it would show their rounding.

    References
    ----------
    .. [1] D. Freedman and P. Diaconis (1981). "On the histogram as a density estimator: L2 theory". Zeitschrift für
       Wahrscheinlichkeitstheorie und verwandte Gebiete 57 (4), 453-476.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"age": [3.0, 9.0, 25.0, 31.0, 30.0, 35.0, 40.0, 62.0]}
    >>> kinds = {"age": families.Histogram([0, 20, 50, 80])}
    >>> model = NaiveBayes(kinds=kinds, estimate="ml").fit(rows, ["film"] * 4 + ["opera"] * 4)
    >>> model.params_["age"]["probability"].tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.75, 0.25]]
    """

    bins: Any = "auto"

    name = "histogram"

    def __post_init__(self) -> None:
        force_setattr(self, "bins", checked_bins(self.bins))

    def edges(self, points: np.ndarray, counts: np.ndarray, step: float) -> np.ndarray:
        if (given := given_edges(self.bins)) is None:
            return super().edges(points, counts, step)
        first, last = ends_of(points, step)
        below, above = [first] * bool(points[0] < given[0]), [last] * bool(points[-1] > given[-1])
        return np.concatenate([below, given, above])

    def inner_edges(self, points: np.ndarray, counts: np.ndarray) -> np.ndarray:
        pooled = round_counts(counts.sum(axis=0))
        if pooled.sum() <= 1:
            return np.zeros(0)
        return between(points, np.searchsorted(points, edges_of(self.bins, WeightedPoints(points, pooled))[1:-1]))

    def prior_rows(self, each: float, pooled: np.ndarray) -> np.ndarray:
        if given_edges(self.bins) is not None:
            pooled = pooled + 1.0 / max(len(pooled), 1)  # given bins may be empty, and are still possible
        share = pooled / pooled.sum() if pooled.sum() > 0 else np.full(len(pooled), 1.0 / max(len(pooled), 1))
        return each * len(pooled) * share


BY_CLASS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"mdl": class_places, "modl": interval_places}
BY_ROWS: dict[str, Callable[[WeightedPoints, int], np.ndarray]] = {"width": equal_width, "count": equal_count}
PARTS = 32
"""Parts of equal count into which all rows are divided, if the classes decide the bins."""
MOST_NAMED = 8
"""Number of cut points that a note names."""


class CutDensity(CellsDensity):
    """Shares of intervals, each divided into cells."""

    def describe(self) -> list[str]:
        if len(self.own["edges"][0]) < 2:
            return ["nothing known"] * len(self.own["edges"])
        intervals = {"interval": self.own["interval"][0]} if "interval" in self.own else {}
        edges = cuts_of(self.own["edges"][0], intervals.get("interval")).tolist()
        names = [f"{name}:" for name in interval_names(edges, self.setting.written)]
        return [top_levels(row, names) for row in _sum_intervals(self.own["probability"], intervals)]

    def decision(self) -> str | None:
        inner = self.own["edges"][0][1:-1]
        if "interval" in self.own:
            inner = cuts_of(self.own["edges"][0], self.own["interval"][0])
        if not len(inner):
            useless = "no cut separates the classes: the column has no information about them"
            return useless if self.family.facts.needs_classes else None
        named = ", ".join(f"{edge:.6g}" for edge in inner[:MOST_NAMED])
        more = f" and {len(inner) - MOST_NAMED} more" if len(inner) > MOST_NAMED else ""
        return f"cut into {len(inner) + 1} intervals at {named}{more}"

    def find_fault(self) -> str | None:
        return find_interval_fault(self.own) or super().find_fault()


@register
class Cut(BinnedCounts, Struct, frozen=True):
    """Numbers discretised into intervals, which are found by their class shares.

    A column without information about the classes is one interval.

    Parameters
    ----------
    rule : {'modl', 'mdl', 'width', 'count'}, default='modl'
        How to choose the intervals. 'modl' takes the most probable intervals given the classes [1]_. 'mdl' splits while
        a split saves more bits than it costs [2]_. 'width' and 'count' make intervals of equal width or equal count,
        and ignore the classes.
    intervals : int, default=10
        Number of intervals of 'width' and 'count'.

    See Also
    --------
    Histogram : Bins that ignore the classes.
    Grouped : Groups categories by the same criterion.
    Kernel : A smooth density for every class.

    Notes
    -----
    Statistics are counts at points, and the cut points are chosen from them. In cross-validation, the cut points are
    chosen without the rows of the held-out fold. Within an interval of 'modl' or 'mdl', numbers are distributed as in
    all classes together: the bins of `probability` and `edges` are finer than the intervals, and `interval` is the
    interval of each bin.

    References
    ----------
    .. [1] M. Boullé (2006). "MODL: a Bayes optimal discretization method for continuous attributes". Machine Learning
       65 (1), 131-165.
    .. [2] U. M. Fayyad and K. B. Irani (1993). "Multi-interval discretization of continuous-valued attributes for
       classification learning". IJCAI 1993, 1022-1027.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"age": [float(age) for age in range(40)]}
    >>> model = NaiveBayes(kinds={"age": families.Cut()}).fit(rows, ["child"] * 18 + ["adult"] * 22)
    >>> [note for note in model.notes_ if "intervals" in note]
    ["column 'age': cut into 2 intervals at 17.5."]
    """

    rule: str = "modl"
    intervals: int = 10

    name = "cut"
    _density = CutDensity

    def __post_init__(self) -> None:
        if self.rule not in (*BY_CLASS, *BY_ROWS):
            known = ", ".join([*BY_CLASS, *BY_ROWS])
            raise DataError(f"there is no rule {self.rule!r} to cut numbers by. Give one of: {known}.")
        if isinstance(self.intervals, bool) or not isinstance(self.intervals, int) or self.intervals < 1:
            raise DataError(f"the number of intervals is a whole number of at least 1, not {self.intervals!r}.")

    @property
    def facts(self) -> Facts:  # type: ignore[override]
        return replace(PointCounts.facts, needs_classes=self.rule in BY_CLASS)

    def inner_edges(self, points: np.ndarray, counts: np.ndarray) -> np.ndarray:
        if self.rule in BY_CLASS:
            return between(points, BY_CLASS[self.rule](round_counts(counts).T))
        edges = BY_ROWS[self.rule](WeightedPoints(points, round_counts(counts.sum(axis=0))), self.intervals)[1:-1]
        return between(points, np.searchsorted(points, edges))

    def usable_how(self, how: How) -> How:
        """Return the estimate unchanged: a discretised column is a categorical column of intervals."""
        return how

    def prior_rows(self, each: float, pooled: np.ndarray) -> np.ndarray:
        return np.full(len(pooled), each)

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        coarse = BinnedCounts.hyper(self, prior, stats, setting)
        if not self.facts.needs_classes or len(coarse["edges"]) < 2:
            return coarse
        points, seen = seen_points(stats, setting)
        pooled = round_counts(stats.value.sum(axis=0))
        edges = np.union1d(coarse["edges"], _parts(points[seen], pooled[seen]))
        interval, place = place_of(edges[:-1], coarse["edges"]), place_of(points, edges)
        held, even = per_cell(pooled[None], place.astype(np.int64), len(interval))[0], np.diff(edges)
        starts = _starts(interval)
        size = np.diff(np.append(starts, len(interval)))
        rows, wide = (np.repeat(np.add.reduceat(part, starts), size) for part in (held, even))
        within = (held + even / wide) / (rows + 1.0)
        alpha = coarse["alpha"][interval.astype(np.int64)] * within
        finer = {"edges": edges, "place": place, "alpha": alpha, "interval": interval, "within": within}
        return coarse | finer | {"each": coarse["alpha"]}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        if "interval" not in hyper:
            return BinnedCounts.estimate(self, stats, hyper, how)
        shares = estimate_shares(_sum_intervals(_held(stats, hyper), hyper), hyper["each"], how, self.name)
        cells = shares[:, hyper["interval"].astype(np.int64)] * hyper["within"]
        return self.with_cells(cells, hyper, how) | {"interval": np.tile(hyper["interval"], (len(cells), 1))}

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        extra = prior_counts({"alpha": hyper.get("each", hyper["alpha"])}, how)
        return np.asarray(xlogy(extra, _sum_intervals(params["probability"], hyper)).sum(axis=-1))

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        return (Family if "interval" in hyper else PointCounts).slope(self, stats, params, hyper, how)

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the log evidence given the intervals, with their shares integrated out."""
        if "interval" not in hyper:
            return PointCounts.evidence(self, stats, hyper)
        held = _held(stats, hyper)
        shares = shares_evidence(_sum_intervals(held, hyper), hyper["each"])
        return float(shares + (held * (np.log(hyper["within"]) - np.log(np.diff(hyper["edges"])))).sum())


def cuts_of(edges: np.ndarray, interval: np.ndarray | None) -> np.ndarray:
    """Return the inner borders of intervals; `interval` is that of each cell, or None if every cell is one."""
    return edges[1:-1] if interval is None else edges[_starts(interval)[1:]]


def _parts(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return edges of parts of about equal count.

    A frequent number is a part by itself, as wide as the rounding of numbers.
    """
    if len(points) < 2:
        return np.zeros(0)
    below, half = np.cumsum(rows), float(np.diff(points).min()) / 2
    cuts = np.searchsorted(below, below[-1] * (np.arange(1, PARTS) / PARTS))
    heavy = points[rows > below[-1] / PARTS]
    edges = np.concatenate([between(points, cuts), heavy - half, heavy + half])
    return np.asarray(edges[(edges > points[0]) & (edges < points[-1])])


def _starts(interval: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.diff(interval, prepend=-1.0))


def _held(stats: Twofold, hyper: Hyper) -> np.ndarray:
    """Return the (groups x cells) rows in each cell."""
    return per_cell(np.maximum(stats.value, 0.0), hyper["place"].astype(np.int64), len(hyper["edges"]) - 1)


def _sum_intervals(cells: np.ndarray, hyper: Hyper) -> np.ndarray:
    """Sum over the cells of each interval; without intervals, every cell is one."""
    return np.add.reduceat(cells, _starts(hyper["interval"]), axis=-1) if "interval" in hyper else cells


def find_interval_fault(found: Params) -> str | None:
    """Return a description of what is wrong with the numbers of intervals, or None."""
    lines = np.atleast_2d(found.get("interval", np.zeros((1, 1))))
    steps = np.diff(lines, axis=1, prepend=-1.0)
    right = lines.shape[1] and ((steps == 0) | (steps == 1)).all() and (lines[:, 0] == 0).all()
    return None if right and (lines == lines[:1]).all() else "its cells are in no intervals"
