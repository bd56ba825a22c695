"""Round numbers along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, floor, inf, isfinite, log10


def nice_ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers between two, about so many; the lower one alone where there is nothing between.

    >>> nice_ticks(0, 1, 5), nice_ticks(-3.2, 8.9)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-2.0, 0.0, 2.0, 4.0, 6.0, 8.0])
    """
    span = high - low
    if not (isfinite(span) and span > 0):
        return [low]
    rough = span / about
    if rough == 0:  # of the smallest numbers there are
        return [low]
    power = 10.0 ** floor(log10(rough))
    step = next((power * part for part in (1.0, 2.0, 5.0, 10.0) if power * part >= rough * 0.8), 0.0)
    if not (step > 0 and low + step > low and isfinite(low / step)):  # closer together than numbers can tell apart
        return [low]
    first = ceil(low / step - 1e-6)
    count = floor(high / step + 1e-6) - first
    return [round((first + i) * step, 12 - floor(log10(step))) + 0.0 for i in range(int(count) + 1)] or [low]


def tick_text(value: float) -> str:
    """A tick's number, short.

    >>> tick_text(0.2), tick_text(1500000.0), tick_text(-3.0)
    ('0.2', '1.5e+06', '-3')
    """
    return f"{value:.6g}" if abs(value) < 1e5 or value == 0 else f"{value:.4g}"


def tick_texts(ticks: Sequence[float]) -> dict[float, str]:
    """The numbers of all ticks of an axis, with as many digits as tell them apart and put each in its place.

    >>> tick_texts([-12563.95, -12563.9]), tick_texts([0.0, 0.5])
    ({-12563.95: '-12563.95', -12563.9: '-12563.9'}, {0.0: '0', 0.5: '0.5'})
    """
    found, ordered = {tick: tick_text(tick) for tick in ticks}, sorted(set(ticks))
    near = min((right - left for left, right in pairwise(ordered)), default=inf) / 20
    for digits in range(7, 17):
        if all(abs(float(text) - tick) <= near for tick, text in found.items()):
            break
        found = {tick: f"{tick:.{digits}g}" for tick in ticks}
    return found
