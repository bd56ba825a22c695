"""The lowest point of a smooth valley by L-BFGS, where a library's care costs more than the work itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

KEPT = 10
"""Steps remembered to tell how the valley is curved."""
HALVINGS = 20
ENOUGH = 1e-4
"""Share of the fall that the slope promises which a step must bring."""

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
Step = tuple[np.ndarray, np.ndarray, float]


def lowest(objective: Objective, start: np.ndarray, most: int, tol: float) -> tuple[np.ndarray, int]:
    """Where the objective is least, and the steps it took; a unit step is about right in every direction.

    It ends when a step gains no more than `tol` of the value, or of one.
    """
    at = start
    value, slope = objective(at)
    steps: deque[Step] = deque(maxlen=KEPT)
    for number in range(most):
        found = _ahead(objective, at, value, slope, _direction(slope, steps))
        if found is None:
            return at, number
        ahead, lower, new = found
        moved, turned = ahead - at, new - slope
        curved = float(moved @ turned)
        if curved > 1e-12 * float(turned @ turned):
            steps.append((moved, turned, curved))
        gained = value - lower
        at, value, slope = found
        if gained <= tol * max(abs(value), 1.0):
            return at, number + 1
    return at, most


def _direction(slope: np.ndarray, steps: deque[Step]) -> np.ndarray:
    """Downhill, corrected by what the steps so far showed of the curvature (two loops)."""
    found = -slope
    shares = []
    for moved, turned, curved in reversed(steps):
        share = float(moved @ found) / curved
        shares.append(share)
        found -= share * turned
    if steps:
        _, turned, curved = steps[-1]
        found *= curved / float(turned @ turned)
    for (moved, turned, curved), share in zip(steps, reversed(shares), strict=True):
        found += (share - float(turned @ found) / curved) * moved
    return found


def _ahead(
    objective: Objective, at: np.ndarray, value: float, slope: np.ndarray, along: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """A point along the direction that is lower by a fair share of what the slope promises; None if there is none."""
    promised = float(slope @ along)
    if not promised < 0:
        return None
    share = 1.0
    for _ in range(HALVINGS):
        ahead = at + share * along
        lower, new = objective(ahead)
        if lower <= value + ENOUGH * share * promised:
            return ahead, lower, new
        # the lowest point of the parabola through what is known, if it is not too near to either end
        best = -0.5 * promised * share**2 / max(lower - value - promised * share, 1e-300)
        share = min(max(best, 0.1 * share), 0.5 * share)
    return None
