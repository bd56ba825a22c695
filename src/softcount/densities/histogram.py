"""Bin edges of a histogram, given or chosen, and the density of its counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import pi, sqrt
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.lazy import gammaln
from softcount.densities.kernels import WeightedPoints
from softcount.errors import DataError

MOST_BINS = 100_000
CANDIDATES = 128
"""Most candidate edges. If there are more gaps between values, candidates are spaced evenly by rank and by distance."""
MOST_CUT_BINS = 100
"""Most bins that free cut points may make."""
ENOUGH_BINS = 10
"""The search tries this many more bins after the best number so far."""
FALSE_ALARM = 0.05
"""Share of false cut points in noise that Bayesian blocks accept."""


class HistogramDensity(Struct, frozen=True, dict=True):
    """A piecewise constant density. One prior row is spread evenly from the first edge to the last."""

    edges: np.ndarray
    counts: np.ndarray

    @cached_property
    def probabilities(self) -> np.ndarray:
        widths = np.diff(self.edges)
        return np.asarray((self.counts + widths / widths.sum()) / (self.counts.sum() + 1))

    @cached_property
    def below(self) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(self.probabilities)[:-1], [1.0]])

    def log_density(self, queries: np.ndarray) -> np.ndarray:
        """Return the log-density: -inf outside the edges, 0 for a missing value."""
        heights = np.log(self.probabilities / np.diff(self.edges))
        with np.errstate(invalid="ignore"):
            inside = (queries >= self.edges[0]) & (queries <= self.edges[-1])
        found = np.where(np.isnan(queries), 0.0, -np.inf)
        where = np.searchsorted(self.edges, queries[inside], side="right") - 1
        found[inside] = heights[np.minimum(where, len(heights) - 1)]
        return found

    def cdf(self, queries: np.ndarray) -> np.ndarray:
        return np.asarray(np.interp(queries, self.edges, self.below))

    def quantile(self, shares: np.ndarray) -> np.ndarray:
        return np.asarray(np.interp(shares, self.below, self.edges))

    def sample(self, number: int, rng: np.random.Generator) -> np.ndarray:
        return self.quantile(rng.random(number))


def edges_of(bins: object, points: WeightedPoints) -> np.ndarray:
    """Return the edges for these points, given a number of bins, a rule, a rule with a number, or the edges.

    >>> edges_of(3, WeightedPoints(np.array([0.0, 1.0, 6.0])))
    array([0., 2., 4., 6.])
    """
    rule = checked_bins(bins)
    if (edges := given_edges(rule)) is not None:
        return edges
    points.refuse_no_spread("there are no bins to make: a histogram needs two different values")
    if isinstance(rule, tuple):
        return equal_count(points, int(rule[1]))
    return RULES[rule](points) if isinstance(rule, str) else equal_width(points, rule)


def given_edges(bins: object) -> np.ndarray | None:
    """Return the edges if validated bins are edges."""
    return np.array(bins) if isinstance(bins, tuple) and bins[0] != "count" else None


def checked_bins(bins: object) -> int | str | tuple[str, int] | tuple[float, ...]:
    """Validate bins: a number of them, the name of a rule, ("count", number), or ascending edges."""
    if isinstance(bins, (tuple, list)) and len(bins) == 2 and bins[0] == "count":
        return "count", _whole(bins[1])
    if isinstance(bins, (Sequence, np.ndarray)) and not isinstance(bins, str):
        return _checked_edges(bins)
    if not isinstance(bins, str):
        return _whole(bins)
    if bins not in RULES:
        raise DataError(f"there is no rule {bins!r} for bins. Give a number of bins, or one of: {', '.join(RULES)}.")
    return bins


def _checked_edges(given: Sequence[Any] | np.ndarray) -> tuple[float, ...]:
    try:
        edges = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.zeros(0)
    if edges.ndim != 1 or not 2 <= len(edges) <= MOST_BINS + 1 or not np.isfinite(edges).all():
        raise DataError(f"bins as edges are two or more finite numbers, such as [0, 10, 20, 50], not {given!r}.")
    if (falls := np.flatnonzero(np.diff(edges) <= 0)).size:
        before, after = edges[falls[0] : falls[0] + 2]
        raise DataError(f"the edges of bins must ascend, but {before:g} is followed by {after:g}.")
    return tuple(edges.tolist())


def _whole(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or not 1 <= given <= MOST_BINS:
        raise DataError(
            f"bins must be a whole number from 1 to {MOST_BINS:,}, a rule, ('count', number) or edges, not {given!r}."
        )
    return int(given)


def equal_width(points: WeightedPoints, number: int) -> np.ndarray:
    """Return the edges of this many bins of equal width, from the smallest value to the largest."""
    values, _ = points.ordered
    edges = np.linspace(values[0], values[-1], number + 1)
    return edges if (np.diff(edges) > 0).all() else np.unique(edges)


def equal_count(points: WeightedPoints, number: int | None = None) -> np.ndarray:
    """Return the edges of bins with equal numbers of rows, as far as ties allow.

    The default number of bins is 2 n^(2/5).
    """
    number = max(1, round(2 * points.total**0.4)) if number is None else number
    values, _ = points.ordered
    gaps = (values[1:] + values[:-1]) / 2
    wanted = np.searchsorted(points.below[1:-1], points.total * np.arange(1, number) / number)
    inner = gaps[np.unique(np.minimum(wanted, len(gaps) - 1))] if number > 1 else gaps[:0]
    return np.unique(np.concatenate([values[:1], inner, values[-1:]]))


def freedman_diaconis(points: WeightedPoints) -> np.ndarray:
    """Return bins of equal width, at most twice the interquartile range over the cube root of the number of rows."""
    values, _ = points.ordered
    width = 2 * points.middle_half * points.total ** (-1 / 3) or 3.49 * points.deviation * points.total ** (-1 / 3)
    return equal_width(points, int(min(MOST_BINS, max(1, np.ceil((values[-1] - values[0]) / width)))))


# -- cut points between values


def _candidates(points: WeightedPoints) -> tuple[np.ndarray, np.ndarray]:
    """Return candidate edges, chosen by rank and by distance, and the weight below each."""
    values, _ = points.ordered
    ranks = np.searchsorted(points.below, points.total * np.arange(1, CANDIDATES) / CANDIDATES)
    lengths = np.searchsorted(values, np.linspace(values[0], values[-1], CANDIDATES // 2)[1:-1])
    cuts = np.arange(1, len(values))
    if len(cuts) > CANDIDATES:
        # Both sides of a heavy value are candidates, so that it can be a bin by itself.
        cuts = np.unique(np.clip(np.concatenate([ranks, ranks - 1, lengths]), 1, len(values) - 1))
    inner = (values[cuts - 1] + values[cuts]) / 2
    edges = np.concatenate([values[:1], inner, values[-1:]])
    below = np.concatenate([[0.0], points.below[cuts], [points.total]])
    distinct = np.concatenate([[True], np.diff(edges) > 0])
    return edges[distinct], below[distinct]


def _gains(edges: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of the rows in each possible bin (starts x ends), up to a constant."""
    rows = below[None, :] - below[:, None]
    width = edges[None, :] - edges[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = np.where(rows > 0, rows * np.log(rows / width), 0.0)
    return np.where(width > 0, gains, -np.inf)


def bayesian_blocks(points: WeightedPoints) -> np.ndarray:
    """Scargle's Bayesian blocks: the most probable piecewise constant density.

    The penalty per cut point makes 1 in 20 cut points in noise false.
    """
    edges, below = _candidates(points)
    gains = _gains(edges, below)
    price = 4 - np.log(73.53 * FALSE_ALARM * points.total**-0.478)
    best, start = np.zeros(len(edges)), np.zeros(len(edges), dtype=np.int64)
    for end in range(1, len(edges)):
        totals = best[:end] + gains[:end, end] - price
        start[end] = np.argmax(totals)
        best[end] = totals[start[end]]
    cuts = [len(edges) - 1]
    while cuts[-1]:
        cuts.append(int(start[cuts[-1]]))
    return edges[cuts[::-1]]


def description_length(points: WeightedPoints, edges: np.ndarray, places: int = 0) -> float:
    """Return the description length of the rows in nats, up to what all histograms share.

    It is the code length of the rows, of the shares of the bins, and of the cut points. The shares cost the regret of
    the normalised maximum likelihood (Kontkanen and Myllymaki). Cut points chosen among several places cost the choice;
    bins of equal width cost only their number.
    """
    counts = counts_of(points, edges)
    there = counts > 0
    fit = counts[there] @ np.log(counts[there] / (points.total * np.diff(edges)[there]))
    return float(-fit + _regret(points.total, len(counts))[-1] + _choices(places, len(counts)))


def _choices(places: int, bins: int) -> float:
    """Return the code length in nats of the number of bins, and of its cut points among these places."""
    chosen = gammaln(places + 1) - gammaln(bins) - gammaln(places - bins + 2) if places else 0.0
    return float(chosen + 2 * np.log(bins + 1))


def _regret(rows: float, most: int) -> np.ndarray:
    """Return the regret in nats of the normalised maximum likelihood code, for 1 to `most` bins."""
    logs = [0.0, float(np.log(sqrt(rows * pi / 2) + 2 / 3 + sqrt(2 * pi / rows) / 24))]
    for bins in range(3, most + 1):  # R(k) = R(k - 1) + n / (k - 2) R(k - 2)
        logs.append(float(np.logaddexp(logs[-1], np.log(rows / (bins - 2)) + logs[-2])))
    return np.array(logs[:most])


def shortest_cuts(points: WeightedPoints) -> np.ndarray:
    """Return the free cut points of least description length, by dynamic programming over candidates."""
    edges, below = _candidates(points)
    gains = _gains(edges, below)
    places, last = len(edges) - 2, len(edges) - 1
    most = min(MOST_CUT_BINS, last)
    best = gains[0]
    starts = [np.zeros(len(edges), dtype=np.int64)]
    scores = [best[last]]
    prices = _regret(points.total, most) + [_choices(places, bins) for bins in range(1, most + 1)]
    for bins in range(1, most):
        if bins > ENOUGH_BINS + np.argmin(prices[:bins] - np.array(scores)):
            break
        totals = best[:, None] + gains
        starts.append(np.argmax(totals, axis=0))
        best = np.take_along_axis(totals, starts[-1][None], axis=0)[0]
        scores.append(best[last])
    bins = int(np.argmin(prices[: len(scores)] - np.array(scores)))
    cuts = [last]
    for step in range(bins, 0, -1):
        cuts.append(int(starts[step][cuts[-1]]))
    return edges[[0, *cuts[::-1]]]


def shortest(points: WeightedPoints) -> np.ndarray:
    """Return the bins of least description length: free cut points, or bins of equal width.

    Bins of equal width are at least twice as wide as the smallest gap between values; narrower ones would show the
    rounding of the values.
    """
    values, _ = points.ordered
    gap = float(np.diff(values).min())
    most = int(max(1, min(1000, 4 * sqrt(points.total), (values[-1] - values[0]) / (2 * gap))))
    numbers = np.unique(np.geomspace(1, most, 60).astype(int))
    even = [equal_width(points, int(number)) for number in numbers]
    lengths = [description_length(points, edges) for edges in even]
    free = shortest_cuts(points)
    length = description_length(points, free, len(_candidates(points)[0]) - 2)
    return free if length <= min(lengths) else even[int(np.argmin(lengths))]


def counts_of(points: WeightedPoints, edges: np.ndarray) -> np.ndarray:
    """Return the weight in each bin. An edge belongs to the bin that it begins, the last edge to the last bin.

    Values outside the edges are not counted.
    """
    values, weights = points.ordered
    inside = (values >= edges[0]) & (values <= edges[-1])
    values, weights = values[inside], weights[inside]
    where = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(where, weights, minlength=len(edges) - 1)


RULES: dict[str, Callable[[WeightedPoints], np.ndarray]] = {
    "auto": shortest, "mdl": shortest_cuts, "fd": freedman_diaconis, "blocks": bayesian_blocks, "count": equal_count,
}  # fmt: skip
