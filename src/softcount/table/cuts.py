"""Numbers cut into intervals: into parts of equal count, or where the classes change (Fayyad and Irani's rule)."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) < 2:
        return np.zeros(0)
    table = np.zeros((len(distinct), classes))
    np.add.at(table, (place, labels), weights)
    return np.array([distinct[at - 1] + (distinct[at] - distinct[at - 1]) / 2 for at in class_places(table)])


def class_places(counts: np.ndarray) -> np.ndarray:
    """The same cuts from (points x classes) rows: the points before which they lie."""
    below = np.vstack([np.zeros(counts.shape[1]), np.cumsum(counts, axis=0)])
    return np.array(sorted(_cuts(below, 0, len(counts))), dtype=np.int64)


def _cuts(below: np.ndarray, first: int, last: int) -> list[int]:
    """Where to cut between two places of a table of running totals."""
    found, ahead = [], [(first, last)]
    while ahead:
        start, stop = ahead.pop()
        at = _best_cut(below, start, stop)
        if at is not None:
            found.append(at)
            ahead += [(start, at), (at, stop)]
    return found


def _best_cut(below: np.ndarray, start: int, stop: int) -> int | None:
    if stop - start < 2:
        return None
    inner = below[start + 1 : stop]
    sides = np.concatenate([inner - below[start], below[stop] - inner])
    within = (times_log(sides.sum(axis=1)) - times_log(sides).sum(axis=1)).reshape(2, -1).sum(axis=0)
    at = int(np.argmin(within))
    whole, left, right = (
        _ClassCounts.of(part) for part in (below[stop] - below[start], sides[at], sides[len(inner) + at])
    )
    gain = (whole.nats - left.nats - right.nats) / LOG_2
    cost = math.log2(3.0**whole.kinds - 2) - (whole.told - left.told - right.told) / LOG_2
    return start + 1 + at if whole.total > 1 and gain > math.log2(whole.total - 1) + cost else None


class _ClassCounts(NamedTuple):
    """The weight of some rows, and times the entropy of their classes; and how many classes there are, and the like."""

    total: float
    nats: float
    kinds: int
    told: float

    @classmethod
    def of(cls, counts: np.ndarray) -> _ClassCounts:
        some = [count for count in counts.tolist() if count > 0]
        total = sum(some)
        nats = total * math.log(total) - sum(count * math.log(count) for count in some) if some else 0.0
        return cls(total, nats, len(some), len(some) * nats / max(total, 1e-300))


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
