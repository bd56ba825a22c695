"""Where a series of EM maps is heading: Anderson's extrapolation, in a chart where straight lines make sense.

Every map tells how far it moves the parameters from where they are. The last few together say how that movement bends,
and so where it would come to rest. The driver scores what comes out and keeps it only if it gained at least what the
plain map was sure to gain, so a leap can cost a pass but never a nat.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from softcount.families import Params
from softcount.families.base import Family, Line
from softcount.models.star import Imagined, Star, StarParams
from softcount.table.schema import Key

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
SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class Place:
    """One array of parameters on the chart: its leaf (None: the groups' shares), its name, and its line."""

    key: Key | None
    name: str
    line: Line

    def of(self, params: StarParams) -> np.ndarray:
        return params.shares if self.key is None else params.leaves[self.key][self.name]


class Chart:
    """All parameters that EM moves as one vector in which complete rows have about the same curvature everywhere.

    Shares are taken by their root, variances, rates and covariances (as Cholesky factors) by their logarithm. With
    `every` above one the vector has every so manyth word only, and parameters cannot be had back from it.
    """

    def __init__(self, star: Star, imagined: Imagined, every: int = 1) -> None:
        self.star, self.imagined, self.every = star, imagined, every
        self.tied = {leaf.key for leaf in star.leaves if _one_spread(leaf.family)}
        self.places = [] if imagined.fixed_shares is not None else [Place(None, "probability", "shares")]
        for leaf in star.leaves:
            held = imagined.fixed.get(leaf.key, {})
            self.places += [Place(leaf.key, name, line) for name, line in leaf.family.chart.items() if name not in held]
        self.whole = all(leaf.family.chart for leaf in star.leaves) and every == 1

    def vector(self, params: StarParams) -> np.ndarray:
        """The parameters as a vector."""
        parts = [_straight(self._some(place, params), place.line).ravel() for place in self.places]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _some(self, place: Place, params: StarParams) -> np.ndarray:
        value = place.of(params)
        return value[:, :: self.every] if value.ndim == 2 and place.line in ("share", "shares") else value

    def weights(self, params: StarParams) -> np.ndarray:
        """What a unit along each coordinate weighs: the root of its group's share, in deviations of its column."""
        roots = np.sqrt(np.maximum(params.shares, 1e-12))
        return np.concatenate([self._weight(place, params, roots).ravel() for place in self.places] or [np.zeros(0)])

    def _weight(self, place: Place, params: StarParams, roots: np.ndarray) -> np.ndarray:
        shape = _straight_shape(self._some(place, params).shape, place.line)
        if place.key is None or (place.line != "plain" and place.key in self.tied):
            return np.ones(shape)
        weight = np.broadcast_to(roots.reshape(-1, *[1] * (len(shape) - 1)), shape)
        return weight / _deviation(params.leaves[place.key]) if place.line == "plain" else weight

    def params(self, vector: np.ndarray, like: StarParams, free: bool = False) -> StarParams:
        """The parameters a vector stands for, within their floors; what is not on the chart is as in `like`.

        Shares keep some of what they were unless they are `free`.
        """
        shares = like.shares
        moved: dict[Key, Params] = {}
        at = 0
        for place in self.places:
            old = place.of(like)
            shape = _straight_shape(old.shape, place.line)
            size = int(np.prod(shape))
            value = _bent(vector[at : at + size].reshape(shape), place.line, np.zeros_like(old) if free else old)
            at += size
            if place.key is None:
                shares = value
            else:
                moved.setdefault(place.key, {})[place.name] = value
        leaves = {key: part | moved.get(key, {}) for key, part in like.leaves.items()}
        return self.star.held(self.star.within(StarParams(shares, leaves), self.imagined), self.imagined)

    def gradient(self, vector: np.ndarray, slopes: StarParams) -> np.ndarray:
        """How steeply something rises along each coordinate, from how it rises with each parameter."""
        parts, at = [np.zeros(0)], 0
        for place in self.places:
            slope = place.of(slopes)
            shape = _straight_shape(slope.shape, place.line)
            size = int(np.prod(shape))
            parts.append(_along(vector[at : at + size].reshape(shape), place.line, slope).ravel())
            at += size
        return np.concatenate(parts)


def _straight(value: np.ndarray, line: Line) -> np.ndarray:
    if line == "log":
        return np.log(np.maximum(value, SMALLEST)) / np.sqrt(2.0)
    if line == "shares":
        return 2.0 * np.sqrt(value)
    if line == "share":
        return 2.0 * np.arcsin(np.sqrt(value))
    if line == "covariance":
        factor = np.linalg.cholesky(value)
        own = np.arange(factor.shape[-1])
        diagonal = factor[..., own, own]
        factor = factor / diagonal[..., :, None]  # a row and its diagonal have the same unit
        factor[..., own, own] = np.log(diagonal)
        return factor[(..., *np.tril_indices(factor.shape[-1]))]
    return value


def _straight_shape(shape: tuple[int, ...], line: Line) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1] * (shape[-1] + 1) // 2) if line == "covariance" else shape


def _bent(moved: np.ndarray, line: Line, old: np.ndarray) -> np.ndarray:
    """Back from the line. A share keeps at least a hundredth of what it was: nothing would stay nothing for ever."""
    if line == "log":
        return np.exp(np.clip(np.sqrt(2.0) * moved, -690.0, 690.0))
    if line == "shares":
        inside = np.where(moved > 0.2 * np.sqrt(old), moved, np.where(old > 0, 0.2 * np.sqrt(old), moved)) ** 2
        return inside / inside.sum(axis=-1, keepdims=True)
    if line == "share":
        near = 0.2 * np.arcsin(np.sqrt(np.minimum(old, 1.0 - old)))
        return np.sin(0.5 * np.where(old > 0, np.clip(moved, near, np.pi - near), moved)) ** 2
    if line == "covariance":
        factor = _factor(moved, old.shape)
        return factor @ np.swapaxes(factor, -1, -2)
    return moved


def _along(moved: np.ndarray, line: Line, slope: np.ndarray) -> np.ndarray:
    """The slope along the line, given that along the parameter."""
    if line == "log":
        return np.sqrt(2.0) * _bent(moved, line, slope) * slope
    if line == "shares":
        shares, size = _bent(moved, line, np.zeros_like(slope)), (moved * moved).sum(axis=-1, keepdims=True)
        return 2.0 * moved / size * (slope - (shares * slope).sum(axis=-1, keepdims=True))
    if line == "share":
        return 0.5 * np.sin(moved) * slope
    if line == "covariance":
        factor, own = _factor(moved, slope.shape), np.arange(slope.shape[-1])
        steep = 2.0 * slope @ factor
        together = (np.tril(steep) * factor).sum(axis=-1)
        steep = steep * factor[..., own, own][..., :, None]
        steep[..., own, own] = together
        return steep[(..., *np.tril_indices(slope.shape[-1]))]
    return slope


def _factor(moved: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The Cholesky factors that stand on a line."""
    factor, own = np.zeros(shape), np.arange(shape[-1])
    factor[(..., *np.tril_indices(shape[-1]))] = moved
    diagonal = np.exp(np.clip(factor[..., own, own], -345.0, 345.0))
    factor[..., own, own] = 1.0
    return factor * diagonal[..., :, None]


def _one_spread(family: Family) -> bool:
    """Whether all groups have one variance: its copies must weigh the same, or a step would tell them apart."""
    return getattr(family, "tied", None) in ("classes", "both") or getattr(family, "covariance", None) == "tied"


def _deviation(params: Params) -> np.ndarray | float:
    for name in ("variance", "spread"):
        if name in params:
            return np.sqrt(np.maximum(params[name], SMALLEST))
    if "covariance" in params:
        return np.sqrt(np.maximum(np.diagonal(params["covariance"], axis1=-2, axis2=-1), SMALLEST))
    return 1.0


class Course:
    """The last maps of a climb: where they lead, and how many times the next map's gain is still to come."""

    def __init__(self, star: Star, imagined: Imagined) -> None:
        size = star.groups * sum(leaf.family.width(leaf.setting) for leaf in star.leaves)
        self.chart = Chart(star, imagined, -(-size // SAMPLED) if size > MANY else 1)
        self.longest = 4.0
        self._slowness: deque[float] = deque(maxlen=RECENT)
        self._points: deque[np.ndarray] = deque(maxlen=MEMORY + 1)
        self._steps: deque[np.ndarray] = deque(maxlen=MEMORY + 1)
        self._way = np.zeros(0)
        self._stretch = 0.0

    def note(self, here: StarParams, mapped: StarParams) -> None:
        """Take in one more map."""
        point = self.chart.vector(here)
        step = self.chart.vector(mapped) - point
        weights = self.chart.weights(here)
        self._points.append(point)
        self._steps.append(step)
        self._way = self._heading(weights)
        pull = float(((self._way * weights) * (step * weights)).sum())
        square = float(((step * weights) ** 2).sum())
        self._stretch = pull / square if square > 0 else 0.0
        if self._stretch > 0:
            self._slowness.append(max(self._stretch, 1.0))
        self._limit(np.sqrt(square), float(np.sqrt(((self._way * weights) ** 2).sum())))

    def _heading(self, weights: np.ndarray) -> np.ndarray:
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
        return step - moves @ shares

    def _limit(self, step: float, way: float) -> None:
        self._far = min(1.0, self.longest * step / way) if way > 0 else 1.0

    @property
    def ready(self) -> bool:
        """Whether the maps point somewhere uphill."""
        return self.chart.whole and len(self._points) > 1 and self._stretch > 0 and bool(np.isfinite(self._way).all())

    def left(self, sure: float) -> float:
        """The gain still to come, given what the next map is sure to gain; no telling while the steps still grow.

        In a direction where a map covers the share s of the way, the whole way gains 1 / s times as much.
        """
        return sure * max(self._slowness) if self._slowness and self._stretch > 0 and len(self._points) > 1 else np.inf

    def leap(self, like: StarParams) -> StarParams:
        """Parameters where the maps are heading, not too many steps away."""
        return self.chart.params(self._points[-1] + self._far * self._way, like)

    def taken(self) -> None:
        if self._far < 1.0:
            self.longest *= 2.0

    def refused(self) -> None:
        """Look back no further than here: the ground was not what the earlier maps made of it."""
        self.longest = max(self.longest / 2.0, 2.0)
        del_until_last(self._points)
        del_until_last(self._steps)


def del_until_last(kept: deque[np.ndarray]) -> None:
    while len(kept) > 1:
        kept.popleft()
