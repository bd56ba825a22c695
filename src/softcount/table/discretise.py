"""Discretisation of numeric columns: by classes (MDL, MODL), equal width or equal counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from softcount.core.lazy import gammaln
from softcount.core.special import times_log
from softcount.table.cell_forms import CellForm, is_plain, write_cell

LOG_2 = math.log(2.0)
MOST_INTERVALS = 5
"""Default number of intervals of equal count."""


def equal_count(values: np.ndarray, weights: np.ndarray, intervals: int) -> np.ndarray:
    """Return cut points that give the intervals about equal weight; fewer if values repeat.

    >>> equal_count(np.arange(1.0, 9.0), np.ones(8), 4)
    array([2.5, 4.5, 6.5])
    """
    distinct, inverse = np.unique(values, return_inverse=True)
    below = np.cumsum(np.bincount(inverse, weights, len(distinct)))
    if len(distinct) < 2 or below[-1] <= 0:
        return np.zeros(0)
    # Take the boundary nearest to each target. Break ties by distance to the median, then by the wider gap, so that
    # negated numbers get the negated cut points.
    wanted, total = below[-1] * np.arange(1, intervals) / intervals, below[-1]
    off = np.abs(below[:-1] - wanted[:, None])
    near = off <= off.min(axis=1, keepdims=True) + 1e-12 * total
    middle = np.where(near, np.abs(below[:-1] - total / 2), np.inf)
    near &= middle <= middle.min(axis=1, keepdims=True) + 1e-12 * total
    at = np.unique(np.where(near, np.diff(distinct), -1.0).argmax(axis=1))
    low, high = distinct[at], distinct[at + 1]
    edges = low + (high - low) / 2
    return np.asarray(np.where((low <= edges) & (edges < high), edges, low))


PIECES = 8
"""Bins of equal width within an interval."""


class IntervalDensity(Struct, frozen=True, dict=True):
    """The distribution of a column within its intervals.

    `edges` are the smallest number, the cut points and the largest number. `shares` (intervals x bins of equal width)
    add up to 1 in every interval: they turn probabilities of intervals into a density. `means` are the means of the
    intervals. `beyond` is the share of the first and of the last interval that is reserved for numbers outside the
    range, about one row.
    """

    edges: np.ndarray
    shares: np.ndarray
    means: np.ndarray
    beyond: tuple[float, float]

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray, cuts: np.ndarray, whole: bool = False) -> IntervalDensity:
        """Estimate the density of weighted numbers; if `whole`, each number reaches half a unit to either side.

        >>> density = IntervalDensity.of(np.array([0.0, 1.0, 6.0]), np.ones(3), np.array([3.0]))
        >>> density.edges, density.means
        (array([0., 3., 6.]), array([0.5, 6. ]))
        """
        if not len(values):
            return cls.without_rows(cuts)
        order = np.lexsort((weights, values))  # so that the result does not depend on the order of the rows
        values, weights = values[order], weights[order]
        low, high = float(values.min()) - 0.5 * whole, float(values.max()) + 0.5 * whole
        inner = np.diff(cuts).mean() if len(cuts) > 1 else max(high - low, 1.0)
        low = low if not len(cuts) or low < cuts[0] else cuts[0] - inner
        high = high if high > (cuts[-1] if len(cuts) else low) else (cuts[-1] if len(cuts) else low) + inner
        edges = np.concatenate([[low], cuts, [high]])
        bounds = _bounds(edges)
        if whole:  # the weight of a whole number is spread over half a unit to either side
            units, places = np.unique(values, return_inverse=True)
            below = np.cumsum(np.bincount(places, weights))
            knots = (units[:, None] + [-0.5, 0.5]).ravel()
            steps = np.stack([np.append(0.0, below[:-1]), below], axis=1).ravel()
            counts = np.diff(np.interp(bounds, knots, steps)).reshape(-1, PIECES)
        else:
            counts = np.bincount(bins_of(values, bounds), weights, len(bounds) - 1).reshape(-1, PIECES)
        place = np.searchsorted(cuts, values)
        total = counts.sum(axis=1)
        shares = (counts + 1.0 / PIECES) / (
            total[:, None] + 1.0
        )  # one more row, spread evenly, so that no number has density 0
        sums = np.bincount(place, weights * (values - values[0]), len(cuts) + 1)
        seen = np.bincount(place, weights, len(cuts) + 1)
        # An interval without rows gets its midpoint, limited to the range of the cut points.
        empty = np.clip(edges[:-1] / 2 + edges[1:] / 2, *(cuts[[0, -1]] if len(cuts) else edges))
        means = np.where(seen > 0, values[0] + sums / np.where(seen > 0, seen, 1.0), empty)
        return cls(edges, shares, means, (float(1 / (total[0] + 3)), float(1 / (total[-1] + 3))))

    @classmethod
    def without_rows(cls, cuts: np.ndarray) -> IntervalDensity:
        """Return uniform densities; the outer intervals get the mean width of the inner ones."""
        wide = float(np.diff(cuts).mean()) if len(cuts) > 1 else 1.0
        ends = (cuts[0] - wide, cuts[-1] + wide) if len(cuts) else (-0.5, 0.5)
        edges = np.concatenate([[ends[0]], cuts, [ends[1]]])
        shares = np.full((len(cuts) + 1, PIECES), 1.0 / PIECES)
        return cls(edges, shares, edges[:-1] / 2 + edges[1:] / 2, (0.25, 0.25))

    @cached_property
    def bounds(self) -> np.ndarray:
        return _bounds(self.edges)

    def log_densities(self, values: np.ndarray) -> np.ndarray:
        """Return the log-density of each number given its interval, 0 for a missing number.

        Outside the range the density falls exponentially, by a factor e over the width of the nearest interval.
        """
        known = ~np.isnan(values)
        at = np.where(known, values, self.edges[0])
        bins = bins_of(at, self.bounds)
        kept = np.zeros(len(self.shares))
        kept[0] += self.beyond[0]
        kept[-1] += self.beyond[1]
        inside = np.log(self.shares * (1.0 - kept[:, None])).ravel() - np.log(np.diff(self.bounds))
        found = inside[bins]
        widths = np.diff(self.edges)
        for past, width, share in (
            (self.edges[0] - at, widths[0], self.beyond[0]),
            (at - self.edges[-1], widths[-1], self.beyond[1]),
        ):
            found = np.where(past > 0, math.log(share / width) - past / width, found)
        return np.where(known, found, 0.0)

    def draw(self, intervals: np.ndarray, rng: np.random.Generator, whole: bool = False) -> np.ndarray:
        """Draw a number from each interval, within the range; rounded if the column holds `whole` numbers."""
        chance = rng.random(len(intervals))
        totals = np.cumsum(self.shares, axis=1)[intervals]
        bins = np.minimum((chance[:, None] * totals[:, -1:] >= totals).sum(axis=1), PIECES - 1)
        low, high = (self.bounds[intervals * PIECES + bins + more] for more in (0, 1))
        found = np.asarray(low + (high - low) * rng.random(len(intervals)))
        return np.clip(np.rint(found), self.edges[0] + 0.5, self.edges[-1] - 0.5) if whole else found

    def share_between(self, low: float, high: float) -> np.ndarray:
        """Return the share of each interval that lies between two numbers."""
        whole = np.concatenate([[0.0], np.cumsum(self.shares.ravel())])
        ends = [np.interp(np.clip(x, self.edges[:-1], self.edges[1:]), self.bounds, whole) for x in (low, high)]
        return np.asarray(ends[1] - ends[0])

    def cdf(self, shares: np.ndarray, x: float) -> float:
        """Return the share below x if the intervals have the probabilities `shares`."""
        below = np.concatenate([[0.0], np.cumsum((shares[:, None] * self.shares).ravel())])
        return float(np.interp(x, self.bounds, below / below[-1]))


def _bounds(edges: np.ndarray) -> np.ndarray:
    """Return the lower bounds of the bins of all intervals, followed by the upper bound of the last bin."""
    steps = np.arange(PIECES) / PIECES
    return np.append((edges[:-1, None] + np.diff(edges)[:, None] * steps).ravel(), edges[-1])


def bins_of(values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    return np.clip(np.searchsorted(bounds, values) - 1, 0, len(bounds) - 2)


def by_class(values: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> np.ndarray:
    """Return cut points by minimum description length (Fayyad and Irani); empty if the classes do not differ enough.

    The cut point with the largest gain in class entropy is accepted if the gain exceeds (log2(n - 1) + log2(3^k - 2) -
    k H + k1 H1 + k2 H2) / n bits. Both sides are then split in the same way.
    """
    return by_class_each([PointTable.of(values, labels, weights, classes)])[0]


class PointTable(NamedTuple):
    """The distinct values of a column, and the weight of the rows with each value, by class (values x classes)."""

    distinct: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> PointTable:
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, dtype=bool)
        cells = (np.cumsum(first) - 1) * classes + labels[order]
        distinct = ordered[first]
        counts = np.bincount(cells, weights[order], len(distinct) * classes)
        return cls(distinct, counts.reshape(-1, classes))


def by_class_each(columns: Iterable[PointTable]) -> list[np.ndarray]:
    """Return the cut points of several columns; only the distinct values of each column are kept in memory."""
    found: list[np.ndarray] = []
    group: list[tuple[np.ndarray, _RunningTotals]] = []
    for distinct, counts in columns:
        group.append((distinct, _RunningTotals.of(counts)))
        most = max(own.below.shape[1] for _, own in group)
        if most * sum(len(own.below) for _, own in group) >= AT_ONCE:
            found += _cut_together(group)
            group = []
    return found + (_cut_together(group) if group else [])


def class_places(counts: np.ndarray) -> np.ndarray:
    """Return the points before which the cut points of a (points x classes) table lie."""
    cuts = by_class_each([PointTable(np.arange(float(len(counts))), counts)])[0]
    return np.asarray(np.ceil(cuts), dtype=np.int64)


AT_ONCE = 1 << 16
"""Points times classes of the tables that are discretised together."""


class _RunningTotals(NamedTuple):
    """Running class totals at the candidate cut points, (candidates + 2) x classes.

    Row 0 is zero, the last is the total.
    """

    below: np.ndarray
    points: np.ndarray

    @classmethod
    def of(cls, counts: np.ndarray) -> _RunningTotals:
        """Skip boundaries between neighbours of one class: none is ever the best cut (Fayyad and Irani)."""
        there = counts > 0
        own = np.where(there.sum(axis=1) == 1, there.argmax(axis=1), -1)
        points = 1 + np.flatnonzero((own[1:] != own[:-1]) | (own[1:] < 0))
        whole = np.cumsum(counts, axis=0)
        nothing = np.zeros((1, counts.shape[1]))
        return cls(np.concatenate([nothing, whole[points - 1], whole[-1:]]), points)


def _cut_together(group: Sequence[tuple[np.ndarray, _RunningTotals]]) -> list[np.ndarray]:
    """Return the cut points of every table; each step splits all parts of all tables together."""
    classes, ends = max(own.below.shape[1] for _, own in group), np.cumsum([0, *(len(own.below) for _, own in group)])
    below = np.zeros((ends[-1], classes))
    for (_, own), first, last in zip(group, ends, ends[1:], strict=False):
        below[first:last, : own.below.shape[1]] = own.below
    start, stop = ends[:-1], ends[1:] - 1
    cuts = [np.zeros(0, dtype=np.int64)]
    while len(start):
        start, stop, at = _best_cuts(below, start, stop)
        cuts.append(at)
        start, stop = np.concatenate([start, at]), np.concatenate([at, stop])
    every = np.sort(np.concatenate(cuts))
    parts = np.split(every, np.searchsorted(every, ends[1:-1]))
    found = []
    for (distinct, own), cuts_of, first in zip(group, parts, ends, strict=False):
        places = own.points[cuts_of - first - 1]
        found.append(distinct[places - 1] + (distinct[places] - distinct[places - 1]) / 2)
    return found


def _best_cuts(below: np.ndarray, start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the start, stop and best cut point of the parts for which a cut gains more than it costs."""
    some = stop - start > 1
    start, stop = start[some], stop[some]
    if not len(start):
        return start, stop, start
    sizes = stop - start - 1
    first = np.cumsum(sizes) - sizes
    part = np.repeat(np.arange(len(start)), sizes)
    places = np.arange(len(part)) + (start + 1 - first)[part]
    within, step = np.empty(len(part)), max(1, AT_ONCE // below.shape[1])
    for at in range(0, len(part), step):
        own = slice(at, at + step)
        within[own] = sum(map(_entropy, _sides(below, start[part[own]], places[own], stop[part[own]])))
    least = np.flatnonzero(within == np.minimum.reduceat(within, first)[part])
    # Break ties by the most even cut, then by the purest side: negated numbers get the negated cut points.
    if len(least) > len(start):
        left, right = _sides(below, start[part[least]], places[least], stop[part[least]])
        uneven = np.abs(left.sum(axis=1) - right.sum(axis=1))
        least = least[np.lexsort((np.minimum(_entropy(left), _entropy(right)), uneven, part[least]))]
    best = least[np.searchsorted(part[least], np.arange(len(start)))]
    worth = _worth(*_sides(below, start, places[best], stop))
    return start[worth], stop[worth], places[best][worth]


def _sides(below: np.ndarray, start: np.ndarray, at: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = below[at]
    # Differences of running totals of weights may be slightly negative.
    return np.maximum(middle - below[start], 0.0), np.maximum(below[stop] - middle, 0.0)


def _entropy(counts: np.ndarray) -> np.ndarray:
    return np.asarray(times_log(counts.sum(axis=1)) - times_log(counts).sum(axis=1))


def _worth(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Whether a cut gains more than its description costs (Fayyad and Irani's criterion)."""
    sides = [left + right, left, right]
    total = [side.sum(axis=1) for side in sides]
    kinds = [(side > 1e-12 * own[:, None]).sum(axis=1) for side, own in zip(sides, total, strict=True)]
    nats = [_entropy(side) for side in sides]
    each = [n * own / np.maximum(rows, 1e-300) for n, own, rows in zip(kinds, nats, total, strict=True)]
    gain = (nats[0] - nats[1] - nats[2]) / LOG_2
    cost = np.log2(3.0 ** kinds[0] - 2) - (each[0] - each[1] - each[2]) / LOG_2
    return np.asarray((total[0] > 1) & (gain > np.log2(np.maximum(total[0] - 1, 1e-300)) + cost))


def interval_names(edges: Sequence[float], form: CellForm | None = None) -> tuple[str, ...]:
    """Return the names of the intervals between cut points, in the form of the column's cells."""
    spelt = [f"{edge:.6g}" if is_plain(form) else str(write_cell(form, float(edge))) for edge in edges]
    if len(set(spelt)) < len(spelt):
        spelt = [repr(float(edge)) for edge in edges]
    if not spelt:
        return ("any",)
    return (f"<= {spelt[0]}", *(f"{low} to {high}" for low, high in pairwise(spelt)), f"> {spelt[-1]}")


# -- intervals of numbers and groups of categories by Boullé's MODL: the most probable partition given the classes

MOST_PARTS = 64
"""Neighbours are merged, the most similar first, until this many are left; intervals are searched among those."""
ENOUGH = 8
"""The search stops after this many more cut points without a better partition."""
MOST_LOOKED_UP = 1 << 20
"""Rows up to which log-factorials are looked up in a table."""


def interval_places(counts: np.ndarray) -> np.ndarray:
    """Return the points before which the (points x classes) counts are split.

    >>> interval_places(np.array([[9.0, 0], [8, 1], [9, 0], [0, 9], [1, 9], [0, 8]]))
    array([3])
    """
    counts = _of_seen_classes(counts)
    if len(counts) < 2 or counts.shape[1] < 2:
        return np.zeros(0, dtype=np.int64)
    first = _joined(counts)
    more, rows = np.arange(len(first)), float(counts.sum())
    # number of ways to place the cut points
    prices = gammaln(rows + more + 1.0) - gammaln(more + 1.0) - gammaln(rows + 1.0)
    return np.asarray(first[_best_intervals(np.add.reduceat(counts, first, axis=0), prices)])


def level_groups(counts: np.ndarray) -> np.ndarray:
    """Return the group of each category from (categories x classes) counts; groups are numbered by first category.

    >>> level_groups(np.array([[20.0, 1], [0, 15], [22, 2], [1, 30]]))
    array([0, 1, 0, 1])
    """
    levels, counts = len(counts), _of_seen_classes(counts)
    if levels < 2 or counts.shape[1] < 2:
        return np.zeros(levels, dtype=np.int64)
    prices = log_partitions(levels, MOST_PARTS)
    # Order categories along the direction in which their class shares differ most, so that similar ones are neighbours.
    shares = (counts + counts.sum(axis=0) / counts.sum()) / (counts.sum(axis=1, keepdims=True) + 1.0)
    along = shares[:, 1]
    if counts.shape[1] > 2:
        off = (shares - counts.sum(axis=0) / counts.sum()) * np.sqrt(counts.sum(axis=1, keepdims=True))
        along = shares @ np.linalg.eigh(off.T @ off)[1][:, -1]
    order = np.argsort(along, kind="stable")
    first = _joined(counts[order])
    parts = np.add.reduceat(counts[order], first, axis=0)
    if counts.shape[1] == 2:  # with two classes, the best groups are contiguous in the order of the shares
        group = np.searchsorted(first[_best_intervals(parts, prices)], np.arange(levels), side="right")
    else:
        group = np.repeat(_best_groups(parts, prices), np.diff(np.append(first, levels)))
    found = np.empty(levels, dtype=np.int64)
    found[order] = group
    _, start, which = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(start))[which]


def _of_seen_classes(counts: np.ndarray) -> np.ndarray:
    """Drop classes without rows; return integers if all counts are whole, for look-up of log-factorials."""
    seen = counts[:, counts.sum(axis=0) > 0]
    whole = seen.astype(np.int64)
    return whole if (whole == seen).all() and whole.sum() < MOST_LOOKED_UP else seen


@lru_cache
def _log_factorials(size: int) -> np.ndarray:
    return np.asarray(gammaln(np.arange(1.0, size + 1.0)))


def log_factorial(n: np.ndarray) -> np.ndarray:
    """Return log(n!), also for fractional n."""
    if n.dtype.kind != "i":
        return np.asarray(gammaln(n + 1.0))
    return _log_factorials(1 << int(n.max(initial=1)).bit_length()).take(n)


def part_costs(counts: np.ndarray) -> np.ndarray:
    """Return the description length of the classes within each part, in nats: class shares, then the class of each row.

    For a part of n rows this is the logarithm of (n + classes - 1)! / (classes - 1)! / n1! / n2! / ...
    """
    classes = counts.shape[-1]
    cost = log_factorial(counts.sum(axis=-1) + (classes - 1))
    for j in range(classes):
        cost -= log_factorial(counts[..., j])
    return np.asarray(cost - gammaln(classes))


def _joined(counts: np.ndarray) -> np.ndarray:
    """Merge neighbours of one class, then the most similar; return the first point of each part."""
    only = np.where((counts > 0).sum(axis=1) == 1, counts.argmax(axis=1), -1)
    first = np.flatnonzero(np.concatenate([[True], (only[1:] != only[:-1]) | (only[1:] < 0)]))
    parts = np.add.reduceat(counts, first, axis=0)
    while len(parts) > MOST_PARTS:
        costs = part_costs(parts)
        dearer = part_costs(parts[:-1] + parts[1:]) - costs[:-1] - costs[1:]
        before, after = np.append(np.inf, dearer[:-1]), np.append(dearer[1:], np.inf)
        least = np.flatnonzero((dearer < before) & (dearer <= after))
        joined = least[np.argsort(dearer[least], kind="stable")[: len(parts) - MOST_PARTS]] + 1
        kept = np.delete(np.arange(len(parts)), joined)
        first, parts = first[kept], np.add.reduceat(parts, kept, axis=0)
    return first


def _best_intervals(parts: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Return the parts that begin an interval in the cheapest partition; `prices[i]` is the cost of i + 1 intervals."""
    last = len(parts)
    below = np.concatenate([np.zeros_like(parts[:1]), np.cumsum(parts, axis=0)])
    low, high = _pairs(last + 1)
    costs = np.full((last + 1, last + 1), np.inf)
    costs[low, high] = part_costs(below[high] - below[low])
    costs, ends = np.ascontiguousarray(costs.T), np.arange(last + 1)  # one row per end of an interval
    best, starts, totals, found = costs[:, 0], [], [costs[last, 0] + prices[0]], 0
    for cuts in range(1, last):
        if cuts > found + ENOUGH:
            break
        ways = costs + best
        starts.append(ways.argmin(axis=1))
        best = ways[ends, starts[-1]]
        totals.append(best[last] + prices[cuts])
        found = cuts if totals[-1] < totals[found] else found
    places = [last]
    for start in reversed(starts[:found]):
        places.append(int(start[places[-1]]))
    return np.array(places[:0:-1], dtype=np.int64)


@lru_cache(maxsize=128)
def _pairs(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(size, 1)


def _best_groups(parts: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Return the group of each part: merge the two most similar groups repeatedly and keep the cheapest stage."""
    group, parts, costs = np.arange(len(parts)), parts.copy(), part_costs(parts)
    dearer = part_costs(parts[:, None] + parts[None]) - costs[:, None] - costs[None]
    np.fill_diagonal(dearer, np.inf)
    alive, best, found = np.ones(len(parts), dtype=bool), float(costs.sum() + prices[len(parts) - 1]), group.copy()
    for left in range(len(parts) - 1, 0, -1):
        a, b = divmod(int(dearer.argmin()), len(parts))
        parts[a] += parts[b]
        group[group == b], alive[b] = a, False
        costs[a], costs[b] = part_costs(parts[a]), 0.0
        own = np.where(alive, part_costs(parts + parts[a]) - costs - costs[a], np.inf)
        own[a] = np.inf
        dearer[a], dearer[:, a], dearer[b], dearer[:, b] = own, own, np.inf, np.inf
        if costs[alive].sum() + prices[left - 1] < best:
            best, found = float(costs[alive].sum() + prices[left - 1]), group.copy()
    return found


def log_partitions(levels: int, most: int) -> np.ndarray:
    """Return the log-number of ways to split categories into at most 1, 2, 3, ... groups, up to `most`."""
    ways, numbers = np.full(min(levels, most), -np.inf), np.log(np.arange(1.0, min(levels, most) + 1.0))
    ways[0] = 0.0
    for _ in range(1, levels):
        ways = np.logaddexp(np.append(-np.inf, ways[:-1]), ways + numbers)
    return np.asarray(np.logaddexp.accumulate(ways))
