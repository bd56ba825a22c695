"""Where a series of EM maps is heading: Anderson's extrapolation, in coordinates where straight lines make sense.

Every map tells how far it moves the parameters from where they are. The last few together say how that movement bends,
and so where it would come to rest. The driver scores what comes out and keeps it only if it gained at least what the
plain map was sure to gain, so a leap can cost a pass but never a nat.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from softcount.models.base import Problem
from softcount.models.coordinates import Coordinates
from softcount.models.nodes import Params

MEMORY = 10
"""Maps looked back on; with five, six latent classes of 3,000 rows took 276 maps in place of 169."""
RECENT = 20
"""Maps whose slowness is remembered: right after a refused leap the next ones know little of it."""
NEGLIGIBLE = 1e-8
"""Directions that the last maps hardly tell apart, in proportion, are left alone."""
MANY = 200_000
"""Parameters from which on no leaps are tried, and the pace is told by a sample of them: tables of words.

Remembering ten maps of a million parameters took 200 MB and longer than the maps. It gained nothing: documents are
soon sure of their class, and 5,000 of them in 20 classes took 19 plain maps or 44 with leaps, in 20 clusters 36 or 38.
"""
SAMPLED = 50_000


class Extrapolation:
    """The last maps of a climb: where they lead, and how many times the next map's gain is still to come."""

    def __init__(self, problem: Problem) -> None:
        size = sum(x.groups * x.width * (1 if x.alone else len(x.nodes)) for x in problem.nodes.bundles)
        every = -(-size // SAMPLED) if size > MANY else 1
        self.coordinates = Coordinates(problem.model, problem.imagined, every)
        self.longest = 4.0
        self._slowness: deque[float] = deque(maxlen=RECENT)
        self._points: deque[np.ndarray] = deque(maxlen=MEMORY + 1)
        self._steps: deque[np.ndarray] = deque(maxlen=MEMORY + 1)
        self._heading = np.zeros(0)
        self._stretch = 0.0

    def memory(self) -> dict[str, np.ndarray]:
        """All that is remembered between two maps, as arrays."""
        points, steps = np.array(self._points), np.array(self._steps)
        return {"longest": np.array([self.longest]), "slow": np.array(self._slowness), "points": points, "steps": steps}

    def remember(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back what was remembered."""
        self.longest = float(arrays["longest"][0])
        self._slowness.extend(arrays["slow"].tolist())
        self._points.extend(arrays["points"])
        self._steps.extend(arrays["steps"])

    def add_map(self, here: Params, mapped: Params) -> None:
        """Take in one more map."""
        point = self.coordinates.vector(here)
        step = self.coordinates.vector(mapped) - point
        weights = self.coordinates.weights(here)
        self._points.append(point)
        self._steps.append(step)
        self._heading = self._where_to(weights)
        pull = float(((self._heading * weights) * (step * weights)).sum())
        square = float(((step * weights) ** 2).sum())
        self._stretch = pull / square if square > 0 else 0.0
        if self._stretch > 0:
            self._slowness.append(max(self._stretch, 1.0))
        length = float(np.sqrt(((self._heading * weights) ** 2).sum()))
        self._far = min(1.0, self.longest * np.sqrt(square) / length) if length > 0 else 1.0

    def _where_to(self, weights: np.ndarray) -> np.ndarray:
        """From here to where the maps would come to rest, if what the last ones did to the step goes on."""
        step = self._steps[-1]
        if len(self._points) < 2:
            return step
        turns = np.diff(np.array(self._steps), axis=0).T
        moves = np.diff(np.array(self._points), axis=0).T + turns
        seen = turns * weights[:, None]
        lengths = np.sqrt((seen * seen).sum(axis=0))
        lengths[lengths == 0] = 1.0
        shares = np.linalg.lstsq(seen / lengths, step * weights, rcond=NEGLIGIBLE)[0] / lengths
        heading: np.ndarray = step - moves @ shares
        return heading

    @property
    def ready(self) -> bool:
        """Whether the maps point somewhere uphill."""
        uphill = len(self._points) > 1 and self._stretch > 0
        return self.coordinates.whole and uphill and bool(np.isfinite(self._heading).all())

    def gain_left(self, sure: float) -> float:
        """The gain still to come, given what the next map is sure to gain; no telling while the steps still grow.

        In a direction where a map covers the share s of the way, the whole way gains 1 / s times as much.
        """
        return sure * max(self._slowness) if self._slowness and self._stretch > 0 and len(self._points) > 1 else np.inf

    def leap(self, like: Params) -> Params:
        """Parameters where the maps are heading, not too many steps away."""
        return self.coordinates.params(self._points[-1] + self._far * self._heading, like)

    def taken(self) -> None:
        """The leap was kept: the next may be longer."""
        if self._far < 1.0:
            self.longest *= 2.0

    def refused(self) -> None:
        """Look back no further than here: the ground was not what the earlier maps made of it."""
        self.longest = max(self.longest / 2.0, 2.0)
        for kept in (self._points, self._steps):
            while len(kept) > 1:
                kept.popleft()
