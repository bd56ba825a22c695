"""Where a function crosses zero."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign

MOST_STEPS = 200
EPSILON = 2.0**-52


def crossing(crosses: Callable[[float], float], low: float, high: float, close: float) -> float:
    """Where a function that is below zero at one end and above it at the other is zero, to within `close`.

    Straight lines between the ends, the value of one that stays halved each time (the Illinois rule). SciPy's own takes
    as many steps, but half a second to load.

    >>> round(crossing(lambda x: x**3 - 2.0, 0.0, 4.0, 1e-12), 9)
    1.25992105
    """
    below, above = crosses(low), crosses(high)
    stayed = 0
    for _ in range(MOST_STEPS):
        if abs(high - low) <= close or below == above:
            break
        middle = high - above * (high - low) / (above - below)
        if not min(low, high) < middle < max(low, high):
            middle = 0.5 * (low + high)
        here = crosses(middle)
        if here == 0:
            return middle
        if (here < 0) == (below < 0):
            low, below = middle, here
            above = 0.5 * above if stayed == 1 else above
            stayed = 1
        else:
            high, above = middle, here
            below = 0.5 * below if stayed == -1 else below
            stayed = -1
    return low if abs(below) < abs(above) else high


def brent_root(crosses: Callable[[float], float], low: float, high: float, close: float) -> float:
    """A root by Brent's rule as R's `uniroot` applies it: with the same `close` it stops at the same number.

    >>> round(brent_root(lambda x: x**3 - 2.0, 0.0, 4.0, 1e-12), 9)
    1.25992105
    """
    before, best, other = low, high, low
    at_before, at_best, at_other = crosses(low), crosses(high), crosses(low)
    for _ in range(MOST_STEPS):
        moved = best - before
        if abs(at_other) < abs(at_best):
            before, best, other = best, other, best
            at_before, at_best, at_other = at_best, at_other, at_best
        enough = 2 * EPSILON * abs(best) + 0.5 * close
        step = 0.5 * (other - best)
        if abs(step) <= enough or at_best == 0:
            break
        if abs(moved) >= enough and abs(at_before) > abs(at_best):
            step = _brent_step((before, best, other), (at_before, at_best, at_other), step, (moved, enough))
        before, at_before = best, at_best
        best += step if abs(step) >= enough else copysign(enough, step)
        at_best = crosses(best)
        if (at_best > 0) == (at_other > 0):
            other, at_other = before, at_before
    return best


def _brent_step(
    at: tuple[float, float, float],
    values: tuple[float, float, float],
    halving: float,
    limits: tuple[float, float],
) -> float:
    """The step of a line or an inverse parabola where it is safe, else the halving."""
    (before, best, other), (at_before, at_best, at_other), (moved, enough) = at, values, limits
    across, ratio = other - best, at_best / at_before
    if before == other:
        top, below = across * ratio, 1 - ratio
    else:
        q, r = at_before / at_other, at_best / at_other
        top = ratio * (across * q * (q - r) - (best - before) * (r - 1))
        below = (q - 1) * (r - 1) * (ratio - 1)
    top, below = (top, -below) if top > 0 else (-top, below)
    safe = top < 0.75 * across * below - abs(enough * below) / 2 and top < abs(moved * below / 2)
    return top / below if safe else halving
