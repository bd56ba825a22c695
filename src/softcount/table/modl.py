"""Intervals of numbers and groups of levels by Boullé's Bayesian rule (MODL): the likeliest ones given the classes.

What is weighed against what the classes gain is how many intervals or groups there are, which they are, and how the
classes are shared out in each, every possibility being as likely as any other of its step. There is nothing to set.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softcount.numerics.late_scipy import gammaln

MOST_PARTS = 64
"""Neighbours are joined, the most alike first, until so many are left; among those the best intervals are found."""
ENOUGH = 8
"""More intervals that are tried after those that were best."""
MOST_LOOKED_UP = 1 << 20
"""Rows up to which logarithms of factorials are looked up."""


def interval_places(counts: np.ndarray) -> np.ndarray:
    """Where (points x classes) rows are cut: before each of these points.

    >>> interval_places(np.array([[9.0, 0], [8, 1], [9, 0], [0, 9], [1, 9], [0, 8]]))
    array([3])
    """
    counts = _of_seen_classes(counts)
    if len(counts) < 2 or counts.shape[1] < 2:
        return np.zeros(0, dtype=np.int64)
    first = _joined(counts)
    more, rows = np.arange(len(first)), float(counts.sum())
    prices = gammaln(rows + more + 1.0) - gammaln(more + 1.0) - gammaln(rows + 1.0)  # ways to place so many cuts
    return np.asarray(first[_best_intervals(np.add.reduceat(counts, first, axis=0), prices)])


def level_groups(counts: np.ndarray) -> np.ndarray:
    """The group of every level, from (levels x classes) rows; groups are numbered by their first level.

    >>> level_groups(np.array([[20.0, 1], [0, 15], [22, 2], [1, 30]]))
    array([0, 1, 0, 1])
    """
    levels, counts = len(counts), _of_seen_classes(counts)
    if levels < 2 or counts.shape[1] < 2:
        return np.zeros(levels, dtype=np.int64)
    prices = log_partitions(levels, MOST_PARTS)
    order = _likeness(counts)
    ordered = counts[order]
    if counts.shape[1] == 2:  # in the order of their shares the best groups are neighbours
        first = _joined(ordered)
        cuts = first[_best_intervals(np.add.reduceat(ordered, first, axis=0), prices)]
        group = np.searchsorted(cuts, np.arange(levels), side="right")
    else:
        first = _joined(ordered)
        parts = _best_groups(np.add.reduceat(ordered, first, axis=0), prices)
        group = np.repeat(parts, np.diff(np.append(first, levels)))
    found = np.empty(levels, dtype=np.int64)
    found[order] = group
    _, start, which = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(start))[which]


def _of_seen_classes(counts: np.ndarray) -> np.ndarray:
    """The counts of the classes that have rows; whole numbers where they are, as those are looked up."""
    seen = counts[:, counts.sum(axis=0) > 0]
    whole = seen.astype(np.int64)
    return whole if (whole == seen).all() and whole.sum() < MOST_LOOKED_UP else seen


@lru_cache
def _log_factorials(size: int) -> np.ndarray:
    return np.asarray(gammaln(np.arange(1.0, size + 1.0)))


def log_factorial(n: np.ndarray) -> np.ndarray:
    """Logarithms of factorials, also of what is not whole."""
    if n.dtype.kind != "i":
        return np.asarray(gammaln(n + 1.0))
    return _log_factorials(1 << int(n.max(initial=1)).bit_length()).take(n)


def part_costs(counts: np.ndarray) -> np.ndarray:
    """What telling the classes within each part costs, in nats: their shares, then which row has which.

    It is the logarithm of (n + classes - 1)! / (classes - 1)! / n1! / n2! / ... for a part of n rows.
    """
    classes = counts.shape[-1]
    told = log_factorial(counts.sum(axis=-1) + (classes - 1))
    for j in range(classes):
        told -= log_factorial(counts[..., j])
    return np.asarray(told - gammaln(classes))


def _joined(counts: np.ndarray) -> np.ndarray:
    """Where parts begin once neighbours are joined: those of one and the same class, then the most alike."""
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
    """Which parts begin a new interval: of all ways to cut, the one of least cost; 1, 2, 3, ... of them have prices."""
    last = len(parts)
    below = np.concatenate([np.zeros_like(parts[:1]), np.cumsum(parts, axis=0)])
    low, high = _pairs(last + 1)
    costs = np.full((last + 1, last + 1), np.inf)
    costs[low, high] = part_costs(below[high] - below[low])
    costs, ends = np.ascontiguousarray(costs.T), np.arange(last + 1)  # a row for every end of an interval
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
    """Every place with every later one."""
    return np.triu_indices(size, 1)


def _best_groups(parts: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """The group of every part: again and again the two that are most alike are joined, and the best stage is kept."""
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


def _likeness(counts: np.ndarray) -> np.ndarray:
    """Levels in an order in which those of like classes are neighbours: along the direction in which shares differ."""
    shares = (counts + counts.sum(axis=0) / counts.sum()) / (counts.sum(axis=1, keepdims=True) + 1.0)
    if counts.shape[1] == 2:
        return np.argsort(shares[:, 1], kind="stable")
    off = (shares - counts.sum(axis=0) / counts.sum()) * np.sqrt(counts.sum(axis=1, keepdims=True))
    way = np.linalg.eigh(off.T @ off)[1][:, -1]
    return np.argsort(shares @ way, kind="stable")


def log_partitions(levels: int, most: int) -> np.ndarray:
    """Logarithms of the ways to part so many levels into at most 1, 2, 3, ... groups, up to `most`."""
    ways, numbers = np.full(min(levels, most), -np.inf), np.log(np.arange(1.0, min(levels, most) + 1.0))
    ways[0] = 0.0
    for _ in range(1, levels):
        ways = np.logaddexp(np.append(-np.inf, ways[:-1]), ways + numbers)
    return np.asarray(np.logaddexp.accumulate(ways))
