"""Which levels of a column are kept where there are too many: the most frequent, wherever their rows stand.

Up to four times as many levels as are kept are counted as they are. Where there are more, their counts are added up in
cells by hashes first: a level's least cell is at least its count, and more by some rows in a million at most. The
levels whose least cells are largest are then counted as they are. Nothing of this depends on the order of the rows, and
memory is bounded however many levels there are.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

EXACT = 4
"""Times as many levels as are kept that are counted one by one."""
CELLS, LINES = 1 << 20, 4
"""Cells of a line, and lines: a level has one cell in each."""

LevelCounts = Iterable[tuple[list[Any], np.ndarray]]
"""Levels of some rows and the weight of each, stretch by stretch."""


class KeptLevels(NamedTuple):
    """The levels that are kept, and how many share the one for the rest: so many, or at least so many."""

    levels: list[Any]
    others: int
    at_least: bool


def frequent_levels(counted: Callable[[], LevelCounts], most: int, declared: Iterable[Any] = ()) -> KeptLevels:
    """The declared levels and the most frequent others, `most` in all; `counted` goes over the rows, as often as asked.

    >>> rows = [(["b", "a", "c"], np.array([2.0, 1.0, 1.0])), (["c", "d"], np.array([1.0, 1.0]))]
    >>> frequent_levels(lambda: rows, 3)
    KeptLevels(levels=['b', 'c', 'a'], others=1, at_least=False)
    """
    wanted = list(declared)[:most]
    known = set(wanted)
    room, limit = most - len(wanted), EXACT * most
    weights, levels = _weights(counted(), known, limit), -1
    if weights is None:
        candidates, levels = _candidates(counted, known, limit)
        weights = _weights(counted(), known, limit, candidates)
    assert weights is not None
    kept = heapq.nsmallest(room, weights, key=lambda level: (-weights[level], *_by_spelling(level)))
    return KeptLevels(wanted + kept, max(levels, len(weights)) - len(kept), levels >= 0)


def _by_spelling(level: Any) -> tuple[bool, Any]:
    """Numbers by size, then words by spelling."""
    return isinstance(level, str), level


def _weights(counts: LevelCounts, known: set[Any], limit: int, only: set[Any] | None = None) -> dict[Any, float] | None:
    """The weight of every level that is not known yet; None where there are more than may be held."""
    found: dict[Any, float] = {}
    for levels, weights in counts:
        for level, weight in zip(levels, weights.tolist(), strict=True):
            if level not in known and (only is None or level in only):
                found[level] = found.get(level, 0.0) + weight
        if len(found) > limit:
            return None
    return found


def _candidates(counted: Callable[[], LevelCounts], known: set[Any], limit: int) -> tuple[set[Any], int]:
    """The levels whose least cells are largest, and how many levels there are at least."""
    lines = np.zeros((LINES, CELLS))
    for levels, weights in counted():
        for line, cells in zip(lines, _cells(levels), strict=True):
            line += np.bincount(cells, weights, CELLS)
    best: dict[Any, float] = {}
    for levels, _ in counted():
        least = np.min([line[cells] for line, cells in zip(lines, _cells(levels), strict=True)], axis=0)
        best.update((level, at) for level, at in zip(levels, least.tolist(), strict=True) if level not in known)
        if len(best) > 2 * limit:
            best = dict(_largest(best, limit))
    # Two levels may share a cell, so that there are no fewer levels than cells that are taken.
    return {level for level, _ in _largest(best, limit)}, int(np.count_nonzero(lines, axis=1).max())


def _largest(best: dict[Any, float], limit: int) -> Iterator[tuple[Any, float]]:
    ranked = heapq.nsmallest(limit, best, key=lambda level: (-best[level], *_by_spelling(level)))
    return ((level, best[level]) for level in ranked)


def _cells(levels: list[Any]) -> np.ndarray:
    """The cells of every level, by line: the same in every process, whatever Python hashes."""
    digests = b"".join(blake2b(repr(level).encode(), digest_size=4 * LINES).digest() for level in levels)
    return np.frombuffer(digests, "<u4").reshape(-1, LINES).T % CELLS
