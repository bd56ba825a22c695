"""Numbers cut into intervals: into parts of equal count, or where the classes change (Fayyad and Irani's rule)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softcount.numerics.logspace import times_log
from softcount.table.cell_forms import CellForm, as_cell, is_plain

LOG_2 = math.log(2.0)
MOST_INTERVALS = 5
"""Intervals of equal count that a column is cut into where nobody says how many."""


def equal_count(values: np.ndarray, weights: np.ndarray, intervals: int) -> np.ndarray:
    """Cuts that leave about as much weight in every interval; fewer where values repeat.

    >>> equal_count(np.arange(1.0, 9.0), np.ones(8), 4)
    array([2.5, 4.5, 6.5])
    """
    order = np.argsort(values, kind="stable")
    ordered, below = values[order], np.cumsum(weights[order])
    if not len(ordered) or below[-1] <= 0:
        return np.zeros(0)
    wanted = below[-1] * np.arange(1, intervals) / intervals
    at = np.searchsorted(below, wanted * (1 - 1e-12), side="left")
    edges = {_between(ordered, _end_of_run(ordered, int(place))) for place in at}
    return np.array(sorted(edge for edge in edges if edge is not None))


def interval_means(values: np.ndarray, weights: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The mean of the values in every interval between the edges; of one that holds none, its middle or its end.

    >>> interval_means(np.array([1.0, 2.0, 6.0]), np.ones(3), np.array([3.0, 9.0]))
    array([1.5, 6. , 9. ])
    """
    place = np.searchsorted(edges, values)
    weight = np.bincount(place, weights, len(edges) + 1)
    centre = float(np.median(values)) if len(values) else 0.0
    total = np.bincount(place, weights * (values - centre), len(edges) + 1)
    return np.where(weight > 0, centre + total / np.where(weight > 0, weight, 1.0), interval_middles(edges))


def interval_middles(edges: np.ndarray) -> np.ndarray:
    """The middle of every interval; of the first and the last their end, and nought where there is no edge.

    >>> interval_middles(np.array([0.0, 4.0])), interval_middles(np.zeros(0))
    (array([0., 2., 4.]), array([0.]))
    """
    ends = np.concatenate([edges[:1], edges, edges[-1:]]) if len(edges) else np.zeros(2)
    return np.asarray(ends[:-1] / 2 + ends[1:] / 2)


def _end_of_run(ordered: np.ndarray, place: int) -> int:
    """The last place that holds the same value."""
    return int(np.searchsorted(ordered, ordered[min(place, len(ordered) - 1)], side="right")) - 1


def _between(ordered: np.ndarray, place: int) -> float | None:
    """Half-way to the next value; None after the last."""
    if place + 1 >= len(ordered):
        return None
    low, high = float(ordered[place]), float(ordered[place + 1])
    middle = low + (high - low) / 2
    return middle if low <= middle < high else low


def by_class(values: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> np.ndarray:
    """Cuts at which the classes differ by more than it costs to tell them: none where the classes do not change.

    A cut is made where it lowers the entropy of the classes most, if that gains more than
    (log2(n - 1) + log2(3^k - 2) - k H + k1 H1 + k2 H2) / n bits, and so on within both sides.
    """
    return by_class_each([PointTable.of(values, labels, weights, classes)])[0]


class PointTable(NamedTuple):
    """The different values of a column, and (values x classes) the weight of the rows that hold each."""

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
    """The same for each of several columns, which may be made one after another: of each the values are kept."""
    distinct: list[np.ndarray] = []

    def counts() -> Iterator[np.ndarray]:
        for own in columns:
            distinct.append(own.distinct)
            yield own.counts

    found = []
    for places, values in zip(class_places_each(counts()), distinct, strict=True):
        low, high = values[places - 1], values[places]
        found.append(low + (high - low) / 2)
    return found


def class_places(counts: np.ndarray) -> np.ndarray:
    """The same cuts from (points x classes) rows: the points before which they lie."""
    return class_places_each([counts])[0]


AT_ONCE = 1 << 16
"""Points times classes of the tables, or of a part of one, that are looked at together."""


def class_places_each(tables: Iterable[np.ndarray]) -> list[np.ndarray]:
    """The same for each of several tables."""
    found: list[np.ndarray] = []
    group: list[_RunningTotals] = []
    for counts in tables:
        group.append(_RunningTotals.of(counts))
        most = max(own.below.shape[1] for own in group)
        if most * sum(len(own.below) for own in group) >= AT_ONCE:
            found += _cut_together(group)
            group = []
    return found + (_cut_together(group) if group else [])


class _RunningTotals(NamedTuple):
    """(points + 1 x classes) what is below each point where a cut may be, and below all; the points themselves."""

    below: np.ndarray
    points: np.ndarray

    @classmethod
    def of(cls, counts: np.ndarray) -> _RunningTotals:
        """No best cut lies between neighbours that are all of one and the same class."""
        there = counts > 0
        own = np.where(there.sum(axis=1) == 1, there.argmax(axis=1), -1)
        points = 1 + np.flatnonzero((own[1:] != own[:-1]) | (own[1:] < 0))
        whole = np.cumsum(counts, axis=0)
        nothing = np.zeros((1, counts.shape[1]))
        return cls(np.concatenate([nothing, whole[points - 1], whole[-1:]]), points)


def _cut_together(group: Sequence[_RunningTotals]) -> list[np.ndarray]:
    """The cuts of every table: all parts of all tables are cut at once, then the parts of these."""
    classes, ends = max(own.below.shape[1] for own in group), np.cumsum([0, *(len(own.below) for own in group)])
    below = np.zeros((ends[-1], classes))
    for own, first, last in zip(group, ends, ends[1:], strict=False):
        below[first:last, : own.below.shape[1]] = own.below
    start, stop = ends[:-1], ends[1:] - 1
    cuts = [np.zeros(0, dtype=np.int64)]
    while len(start):
        start, stop, at = _best_cuts(below, start, stop)
        cuts.append(at)
        start, stop = np.concatenate([start, at]), np.concatenate([at, stop])
    every = np.sort(np.concatenate(cuts))
    parts = np.split(every, np.searchsorted(every, ends[1:-1]))
    return [own.points[places - first - 1] for own, places, first in zip(group, parts, ends, strict=False)]


def _best_cuts(below: np.ndarray, start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts of running totals that are worth a cut: where they start and stop, and the cut."""
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
    best = least[np.searchsorted(part[least], np.arange(len(start)))]  # the first of them
    worth = _worth(*_sides(below, start, places[best], stop))
    return start[worth], stop[worth], places[best][worth]


def _sides(below: np.ndarray, start: np.ndarray, at: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is left and right of places between others."""
    middle = below[at]
    # running totals of any weights: what is left of nothing may be a little less
    return np.maximum(middle - below[start], 0.0), np.maximum(below[stop] - middle, 0.0)


def _entropy(counts: np.ndarray) -> np.ndarray:
    """Of the classes of every row of counts, times its weight; in nats."""
    return np.asarray(times_log(counts.sum(axis=1)) - times_log(counts).sum(axis=1))


def _worth(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Whether what a cut gains is more than it costs."""
    sides = [left + right, left, right]
    total = [side.sum(axis=1) for side in sides]
    kinds = [(side > 1e-12 * own[:, None]).sum(axis=1) for side, own in zip(sides, total, strict=True)]
    nats = [_entropy(side) for side in sides]
    told = [n * own / np.maximum(all_, 1e-300) for n, own, all_ in zip(kinds, nats, total, strict=True)]
    gain = (nats[0] - nats[1] - nats[2]) / LOG_2
    cost = np.log2(3.0 ** kinds[0] - 2) - (told[0] - told[1] - told[2]) / LOG_2
    return np.asarray((total[0] > 1) & (gain > np.log2(np.maximum(total[0] - 1, 1e-300)) + cost))


def interval_names(edges: Sequence[float], form: CellForm | None = None) -> tuple[str, ...]:
    """What the intervals between cuts are called, in the form of the column's cells.

    >>> interval_names([1.5, 20.0])
    ('<= 1.5', '1.5 to 20', '> 20')
    """
    spelt = [f"{edge:.6g}" if is_plain(form) else str(as_cell(form, float(edge))) for edge in edges]
    if len(set(spelt)) < len(spelt):
        spelt = [repr(float(edge)) for edge in edges]
    if not spelt:
        return ("any",)
    return (f"<= {spelt[0]}", *(f"{low} to {high}" for low, high in pairwise(spelt)), f"> {spelt[-1]}")
