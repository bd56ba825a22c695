"""Kernel sums over weighted points, with reflection at a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import ceil, inf, pi, sqrt

import numpy as np
from msgspec import Struct

from softcount.core.lazy import expit
from softcount.core.special import log_of, ndtr
from softcount.errors import DataError

Shape = Callable[[np.ndarray], np.ndarray]
Draw = Callable[[np.random.Generator, int], np.ndarray]

LOG_ROOT_TWO_PI = 0.5 * np.log(2 * pi)


class SmoothingKernel(Struct, frozen=True):
    """A symmetric density around 0. At bandwidth h it is K(u / h) / h.

    `roughness` is the integral of K squared, `variance` the second moment, `support` the largest distance with a
    positive density. Kernels that are smooth everywhere have `bends`, bounds on their derivatives. If a sum of kernels
    of height 1 has its peak at P, the sum of absolute second derivatives is at most `bends[0]` times P, and that of
    fourth derivatives at most `bends[1]` times P.

    >>> named_kernel("epanechnikov").pdf(np.array([0.0, 0.5, 1.0, 2.0]))
    array([0.75  , 0.5625, 0.    , 0.    ])
    """

    name: str
    pdf: Shape
    cdf: Shape
    draw: Draw
    roughness: float
    variance: float
    support: float = 1.0
    bends: tuple[float, float] | None = None

    def __reduce__(self) -> tuple[Callable[[object], SmoothingKernel], tuple[str]]:
        return named_kernel, (self.name,)

    @property
    def canonical(self) -> float:
        """Canonical bandwidth: bandwidths in proportion to it smooth equally, whatever the kernel."""
        return float((self.roughness / self.variance**2) ** 0.2)

    def log_pdf(self, u: np.ndarray) -> np.ndarray:
        if self.support < inf:
            return log_of(self.pdf(u))
        if self.name == "gaussian":
            return np.asarray(-0.5 * u * u - LOG_ROOT_TWO_PI)
        away = np.abs(u)
        return np.asarray(-away - 2 * np.log1p(np.exp(-away)))

    @property
    def furthest(self) -> float:
        """Distance in bandwidths beyond which the kernel is negligible."""
        return float(self.reach(np.zeros(1), DIGITS)[0])

    def reach(self, nearest: np.ndarray, lost: float) -> np.ndarray:
        """Return the distance beyond which a point adds less than exp(-lost) of one at distance `nearest`."""
        if self.support < inf:
            return np.full_like(nearest, self.support)
        # The logistic density lies between exp(-u) / 4 and exp(-u).
        return np.sqrt(nearest**2 + 2 * lost) if self.name == "gaussian" else nearest + lost + 1.5


def named_kernel(name: object) -> SmoothingKernel:
    if not isinstance(name, str) or name not in KERNELS:
        raise DataError(f"there is no kernel {name!r}. There are: {', '.join(KERNELS)}.")
    return KERNELS[name]


def _power(height: float, power: int) -> Shape:
    """Return the function height (1 - u^2)^power between -1 and 1."""
    return lambda u: height * np.maximum(1 - u * u, 0.0) ** power


def _power_cdf(*odd: float) -> Shape:
    """Return the function 1/2 plus a polynomial of odd powers of u, clipped to -1 <= u <= 1."""

    def cdf(u: np.ndarray) -> np.ndarray:
        u = np.clip(u, -1.0, 1.0)
        return 0.5 + u * np.polyval(odd[::-1], u * u)

    return cdf


def _triangular_cdf(u: np.ndarray) -> np.ndarray:
    u = np.clip(u, -1.0, 1.0)
    return np.asarray(0.5 + u - 0.5 * u * np.abs(u))


def _folded_beta(power: int) -> Draw:
    """Draw from (1 - u^2)^power, a symmetric beta density stretched to -1 .. 1."""
    return lambda rng, n: 2 * rng.beta(power + 1, power + 1, n) - 1


_EVERY = (
    SmoothingKernel(
        "gaussian", lambda u: np.asarray(np.exp(-0.5 * u * u) / sqrt(2 * pi)), ndtr,
        lambda rng, n: rng.standard_normal(n), 0.5 / sqrt(pi), 1.0, inf, (1.5, 4.6),
    ),
    SmoothingKernel("epanechnikov", _power(3 / 4, 1), _power_cdf(3 / 4, -1 / 4), _folded_beta(1), 3 / 5, 1 / 5),
    SmoothingKernel(
        # The density is 0.5 at both ends too.
        "uniform", lambda u: np.where(np.abs(u) <= 1, 0.5, 0.0), _power_cdf(1 / 2), _folded_beta(0), 1 / 2, 1 / 3
    ),
    SmoothingKernel(
        "triangular", lambda u: np.maximum(1 - np.abs(u), 0.0), _triangular_cdf,
        lambda rng, n: rng.triangular(-1.0, 0.0, 1.0, n), 2 / 3, 1 / 6,
    ),
    SmoothingKernel(
        "biweight", _power(15 / 16, 2), _power_cdf(15 / 16, -10 / 16, 3 / 16), _folded_beta(2), 5 / 7, 1 / 7
    ),
    SmoothingKernel(
        "triweight", _power(35 / 32, 3), _power_cdf(35 / 32, -35 / 32, 21 / 32, -5 / 32), _folded_beta(3),
        350 / 429, 1 / 9,
    ),
    SmoothingKernel(
        "cosine", lambda u: np.where(np.abs(u) < 1, pi / 4 * np.cos(0.5 * pi * np.clip(u, -1.0, 1.0)), 0.0),
        lambda u: np.asarray(0.5 + 0.5 * np.sin(0.5 * pi * np.clip(u, -1.0, 1.0))),
        lambda rng, n: 2 / pi * np.arcsin(rng.uniform(-1.0, 1.0, n)), pi**2 / 16, 1 - 8 / pi**2,
    ),
    SmoothingKernel(
        "logistic", lambda u: np.asarray(expit(u) * expit(-u)), expit, lambda rng, n: rng.logistic(size=n),
        1 / 6, pi**2 / 3, inf, (0.6, 1.01),
    ),
)  # fmt: skip
KERNELS = {kernel.name: kernel for kernel in _EVERY}

# The values of a column with their weights.


class WeightedPoints(Struct, frozen=True, dict=True):
    """Finite numbers in any order, each with a weight; without weights, each counts once.

    The rows of a density of several columns, (rows x columns), are points too: `column` and `plus` are for them.

    >>> points = WeightedPoints(np.array([3.0, 1.0, 3.0]))
    >>> points.total, points.ordered
    (3.0, (array([1., 3.]), array([1., 2.])))
    """

    values: np.ndarray
    weights: np.ndarray | None = None
    level: int | None = None
    """Level of the dyadic grid, if the values are grid nodes that stand for rows."""

    @cached_property
    def total(self) -> float:
        return float(len(self.values) if self.weights is None else self.weights.sum())

    @cached_property
    def ordered(self) -> tuple[np.ndarray, np.ndarray]:
        if self.weights is None:
            values, counts = np.unique(self.values, return_counts=True)
            return values, counts.astype(np.float64)
        values, where = np.unique(self.values, return_inverse=True)
        return values, np.bincount(where, self.weights, minlength=len(values))

    @cached_property
    def below(self) -> np.ndarray:
        """Total weight of the first 0, 1, 2, ... ordered values."""
        return np.concatenate([[0.0], np.cumsum(self.ordered[1])])

    @cached_property
    def mean(self) -> float:
        anchor = float(self.values[0])
        with np.errstate(over="ignore", invalid="ignore"):
            return anchor + float(np.average(self.values - anchor, weights=self.weights))

    @cached_property
    def deviation(self) -> float:
        """Standard deviation with the divisor n - 1."""
        with np.errstate(over="ignore"):
            away = np.abs(self.values - self.mean)
        furthest = float(away.max())
        if not 0 < furthest < np.inf:
            return furthest
        square = np.average((away / furthest) ** 2, weights=self.weights) * self.total / (self.total - 1)
        return float(furthest * np.sqrt(square))

    def quantile(self, share: float) -> float:
        """Return the quantile at a share, interpolated linearly between rows."""
        place = share * (self.total - 1)
        low = np.floor(place)
        at = np.searchsorted(self.below[1:], [low, low + 1], side="right")
        before, after = self.ordered[0][np.minimum(at, len(self.ordered[0]) - 1)]
        return float(before + (place - low) * (after - before))

    @cached_property
    def middle_half(self) -> float:
        return self.quantile(0.75) - self.quantile(0.25)

    def column(self, at: int) -> WeightedPoints:
        return WeightedPoints(np.ascontiguousarray(self.values[:, at]), self.weights, self.level)

    def plus(self, other: WeightedPoints) -> WeightedPoints:
        values = np.concatenate([self.values, other.values])
        level = max((x.level for x in (self, other) if x.level is not None), default=None)
        if self.weights is None and other.weights is None:
            return WeightedPoints(values, None, level)
        weights = [np.ones(len(x.values)) if x.weights is None else x.weights for x in (self, other)]
        return WeightedPoints(values, np.concatenate(weights), level)

    def refuse_no_spread(self, remedy: str) -> None:
        """Raise an error if the values have no spread to learn a bandwidth from."""
        if not len(self.values):
            raise DataError("there is no row with a value and a weight above zero, so there is no density.")
        if len(self.values) == 1:
            raise DataError(f"there is one row only (n_samples=1), so {remedy}.")
        if self.values.min() == self.values.max():
            raise DataError(f"all values equal {self.values[0]:g}, so {remedy}.")
        if self.total <= 1:
            raise DataError(
                f"the weights sum to {self.total:g}, but a weight is the number of rows that a row stands for. "
                f"Scale them to sum to the number of rows, or give the bandwidth as a number."
            )


# Sums of kernels over the points near each query: exact, also in the far tails.

TOGETHER = 128
"""Neighbouring queries that are computed together, from the points near any of them."""
CELLS = 1 << 18
"""Number of distances computed in one step, so that they stay in the cache."""
Images = Sequence[tuple[float, float]]
"""Signs and shifts: a query x has the images sign * x + shift."""
UNREFLECTED: Images = ((1.0, 0.0),)
DIGITS = 37.0
"""Points that together add less than exp(-37), about 1e-16, of the nearest are left out."""


def near_log_density(
    points: WeightedPoints, queries: np.ndarray, kernel: SmoothingKernel, h: float, images: Images = UNREFLECTED
) -> np.ndarray:
    """Return the log-density at each query, accurate to rounding; -inf where no kernel reaches.

    With images, return the log of the sum of the densities at all images of a query. The first image is the query
    itself.

    >>> from softcount.densities.kernels import KERNELS
    >>> near_log_density(WeightedPoints(np.array([0.0])), np.array([0.0, 20.0]), KERNELS["gaussian"], 2.0).round(4)
    array([ -1.6121, -51.6121])
    """
    found = _log_sums(points, queries, kernel, h)
    for sign, shift in images[1:]:
        found = np.logaddexp(found, _log_sums(points, sign * queries + shift, kernel, h))
    return np.asarray(found - np.log(points.total * h))


def _log_sums(points: WeightedPoints, queries: np.ndarray, kernel: SmoothingKernel, h: float) -> np.ndarray:
    values, weights = points.ordered
    found = np.full(len(queries), -np.inf)
    order, ordered = _finite_in_order(queries)
    after = np.minimum(np.searchsorted(values, ordered), len(values) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.asarray(np.minimum(np.abs(ordered - values[after]), np.abs(ordered - values[before]))) / h
    reach = h * kernel.reach(nearest, DIGITS + np.log(len(values)))
    for block, _, pieces in _windows(values, ordered, reach):
        peak = kernel.log_pdf(nearest[block]) if kernel.bends else np.zeros(len(ordered[block]))
        total = np.zeros(len(ordered[block]))
        for piece in pieces:
            u = (ordered[block, None] - values[piece]) / h
            total += (np.exp(kernel.log_pdf(u) - peak[:, None]) if kernel.bends else kernel.pdf(u)) @ weights[piece]
        found[order[block]] = peak + log_of(total)
    return found


def near_cdf(points: WeightedPoints, queries: np.ndarray, kernel: SmoothingKernel, h: float) -> np.ndarray:
    """Return the distribution function at each query; queries may be infinite."""
    values, weights = points.ordered
    found = np.where(queries > 0, 1.0, 0.0)
    order, ordered = _finite_in_order(queries)
    reach = np.full(len(ordered), h * kernel.furthest)
    for block, low, pieces in _windows(values, ordered, reach):
        total = np.full(len(ordered[block]), points.below[low])
        for piece in pieces:
            total += kernel.cdf((ordered[block, None] - values[piece]) / h) @ weights[piece]
        found[order[block]] = total / points.below[-1]
    return np.clip(found, 0.0, 1.0)


def _finite_in_order(queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.flatnonzero(np.isfinite(queries))
    order = order[np.argsort(queries[order], kind="stable")]
    return order, queries[order]


def _windows(values: np.ndarray, ordered: np.ndarray, reach: np.ndarray) -> Iterator[tuple[slice, int, list[slice]]]:
    """Yield blocks of neighbouring queries, the first value that a block needs, and slices of all values it needs."""
    for start in range(0, len(ordered), TOGETHER):
        block = slice(start, start + TOGETHER)
        low = int(np.searchsorted(values, (ordered[block] - reach[block]).min()))
        high = int(np.searchsorted(values, (ordered[block] + reach[block]).max(), side="right"))
        step = CELLS // TOGETHER
        yield block, low, [slice(first, min(first + step, high)) for first in range(low, high, step)]


# Bounded columns: kernel mass beyond a bound is reflected.

WIDEST = 100.0
"""Largest bandwidth as a multiple of the distance between the bounds: wider ones need too many images."""


class Reflection(Struct, frozen=True):
    """The bounds of a column, infinite if it has none. A density is reflected at each.

    >>> Reflection(0.0).images(5.0)
    ((1.0, 0.0), (-1.0, 0.0))
    >>> Reflection(0.0, 10.0).folded(np.array([-1.0, 12.0, 23.0]))
    array([1., 8., 3.])
    """

    low: float = -inf
    high: float = inf

    def images(self, reach: float) -> Images:
        """Return the images of a query whose densities add up to the reflected density, for a kernel of this reach."""
        if self.low == -inf and self.high == inf:
            return UNREFLECTED
        if self.low == -inf or self.high == inf:
            return (*UNREFLECTED, (-1.0, 2 * (self.low if self.low > -inf else self.high)))
        period = 2 * (self.high - self.low)
        turns = ceil(reach / period)
        shifts = [turn * period for turn in sorted(range(-turns, turns + 1), key=abs)]
        return (*((1.0, shift) for shift in shifts), *((-1.0, 2 * self.low + shift) for shift in shifts))

    def inside(self, values: np.ndarray) -> np.ndarray:
        return np.asarray((values >= self.low) & (values <= self.high))

    def folded(self, values: np.ndarray) -> np.ndarray:
        """Reflect values at the bounds until they lie between them."""
        if self.low == -inf:
            return self.high - np.abs(self.high - values) if self.high < inf else values
        away = np.abs(values - self.low)
        if self.high < inf:
            length = self.high - self.low
            away = length - np.abs(np.mod(away, 2 * length) - length)
        return np.clip(self.low + away, self.low, self.high)

    def refuse_wide(self, h: float) -> None:
        if h > WIDEST * (self.high - self.low):
            raise DataError(
                f"the bandwidth {h:g} is more than {WIDEST:g} times the distance between the bounds "
                f"{self.low:g} and {self.high:g}: give a smaller one."
            )


OPEN = Reflection()
"""A column without bounds."""


def reflection_of(bounds: object) -> Reflection:
    if bounds is None:
        return OPEN
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise DataError(f"bounds must be a pair such as (0, None) or (0, 1), not {bounds!r}.")
    for end in bounds:
        if end is not None and (isinstance(end, bool) or not isinstance(end, (int, float, np.number))):
            raise DataError(f"an end of bounds must be a number or None, not {end!r}.")
    low, high = (usual if end is None else float(end) for end, usual in zip(bounds, (-inf, inf), strict=True))
    if not low < high:
        raise DataError(f"bounds must be a lower and a higher number, not {bounds!r}.")
    return Reflection(low, high)
