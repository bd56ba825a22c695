"""The lowest points of smooth valleys by L-BFGS, where a library's care costs more than the work itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import field

import numpy as np

from softcount.records import dataclass

KEPT = 10
"""Steps remembered to tell how a valley is curved."""
HALVINGS = 20
ENOUGH = 1e-4
"""Share of the fall that the slope promises which a step must bring."""

Objective = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From (valleys x unknowns) points the value of each and (valleys x unknowns) slopes."""


def lowest(
    objective: Objective, start: np.ndarray, most: int, tol: float, least: float | np.ndarray = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise several independent objectives by L-BFGS; return the minima and the number of steps each took.

    A unit step should be about right in every direction. An objective ends if neither its last step nor a plain
    gradient step of unit length gains more than `tol` times its value (or times one) plus `least`. The gain of the last
    step alone proves nothing: if one direction is far steeper than the rest, the step is short because of that
    direction, and the curvature learned from it makes the next step short as well.
    """
    at = start
    value, slope = objective(at)
    path = _Path()
    going, taken = np.ones(len(at), dtype=bool), np.zeros(len(at), dtype=np.int64)
    plain = np.ones(len(at), dtype=bool)  # the next step follows the gradient alone
    for _ in range(most):
        along = path.direction(slope)
        along[~going] = 0.0
        ahead, lower, new = _ahead(objective, at, value, slope, along)
        moved = lower < value
        path.add(ahead - at, new - slope)
        taken += going & moved
        small = tol * np.maximum(np.abs(lower), 1.0) + least
        unfinished = np.maximum(value - lower, 0.5 * np.vecdot(new, new)) > small
        going &= unfinished & (moved | ~plain)
        plain = going & ~moved
        if plain.any():  # the curvature learned so far misleads
            path.forget(plain)
        at, value, slope = ahead, lower, new
        if not going.any():
            break
    return at, taken


@dataclass(slots=True)
class _Path:
    """The last steps, and what they showed of the curvature of each valley."""

    steps: deque[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=lambda: deque(maxlen=KEPT))
    scale: np.ndarray | float = 1.0

    def add(self, moved: np.ndarray, turned: np.ndarray) -> None:
        """One step more; a valley that did not move, or is not seen to be curved, learns nothing by it."""
        curved, bent = np.vecdot(moved, turned), np.vecdot(turned, turned)
        fair = curved > 1e-12 * bent
        over = np.divide(1.0, curved, out=np.zeros_like(curved), where=fair)
        self.scale = np.divide(curved, bent, out=np.broadcast_to(self.scale, bent.shape).copy(), where=fair)
        self.steps.append((moved, turned, over))

    def forget(self, which: np.ndarray) -> None:
        """Drop the curvature learned of some objectives."""
        for _, _, over in self.steps:
            over[which] = 0.0
        self.scale = np.where(which, 1.0, self.scale)

    def direction(self, slope: np.ndarray) -> np.ndarray:
        """Downhill, corrected by what the steps so far showed of the curvature (two loops)."""
        found = -slope
        shares = []
        for moved, turned, over in reversed(self.steps):
            share = (np.vecdot(moved, found) * over)[:, None]
            shares.append(share)
            found -= share * turned
        if self.steps:
            found *= np.broadcast_to(self.scale, (len(found),))[:, None]
        for (moved, turned, over), share in zip(self.steps, reversed(shares), strict=True):
            found += (share - (np.vecdot(turned, found) * over)[:, None]) * moved
        return found


def _ahead(
    objective: Objective, at: np.ndarray, value: np.ndarray, slope: np.ndarray, along: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points along the directions that are lower by a fair share of what the slopes promise; as before if none is."""
    promised = np.vecdot(slope, along)
    share = np.where(promised < 0, 1.0, 0.0)
    for _ in range(HALVINGS):
        ahead = at + share[:, None] * along
        lower, new = objective(ahead)
        far = ~(lower <= value + ENOUGH * share * promised) & (share > 0)
        if not far.any():
            break
        # the lowest point of the parabola through what is known, if it is not too near to either end
        best = -0.5 * promised * share**2 / np.maximum(lower - value - promised * share, 1e-300)
        share = np.where(far, np.minimum(np.maximum(best, 0.1 * share), 0.5 * share), share)
    still = far | (share == 0)
    if still.any():
        ahead, lower = np.where(still[:, None], at, ahead), np.where(still, value, lower)
        new = np.where(still[:, None], slope, new)
    return ahead, lower, new
