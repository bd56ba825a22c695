"""The objectives of all starts of a search, kept while it is watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import isfinite

from softcount.records import dataclass

WatchStarts = Callable[[int, int, int, float], None]
MOST_STARTS, MOST_STEPS = 20, 150
"""Starts, and steps of each, that are kept."""

Traces = tuple[tuple[float, ...], ...]


@dataclass(slots=True)
class StartTraces:
    """A watch over a search that remembers what it is told, and tells it on.

    Numbers of classes are searched one after another: each search is a list of its own, of which `nearest` gives the
    one that came to an objective.
    """

    told_on: WatchStarts
    searches: list[dict[int, list[float]]] = field(default_factory=lambda: [{}])

    def __call__(self, start: int, of: int, iteration: int, objective: float) -> None:
        known = self.searches[-1].get(start)
        if iteration == 0 and known and len(known) > 1 and objective < known[-1]:  # another number of classes
            self.searches.append({})
        trace = self.searches[-1].setdefault(start, [])
        if isfinite(objective) and len(trace) < MOST_STEPS:
            if trace and iteration < len(trace) and iteration > 0:  # several tries of one start: the one ahead
                trace[iteration] = max(trace[iteration], objective)
            else:
                trace.append(objective)
        self.told_on(start, of, iteration, objective)

    def nearest(self, objective: float, slack: float = 1e-6) -> Traces:
        """The traces of the search whose best start came nearest to an objective; none where none came near.

        >>> watch = StartTraces(lambda *said: None)
        >>> for step, value in enumerate([-9.0, -5.0, -4.0]): watch(1, 2, step, value)
        >>> for step, value in enumerate([-8.0, -6.0, -6.0]): watch(2, 2, step, value)
        >>> watch.nearest(-4.0)
        ((-9.0, -5.0, -4.0), (-8.0, -6.0, -6.0))
        """
        near = slack * max(1.0, abs(objective))
        for search in reversed(self.searches):
            if search and abs(max(max(trace, default=-1e300) for trace in search.values()) - objective) <= near:
                return tuple(tuple(trace) for trace in list(search.values())[:MOST_STARTS])
        return ()
