"""The bumps that a kernel density puts on every point: their shapes, and what choosing a bandwidth needs of them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi, sqrt

import numpy as np

from softcount.errors import DataError
from softcount.numerics.late_scipy import expit, ndtr
from softcount.records import dataclass

Shape = Callable[[np.ndarray], np.ndarray]
Draw = Callable[[np.random.Generator, int], np.ndarray]

LOG_ROOT_TWO_PI = 0.5 * np.log(2 * pi)


@dataclass(frozen=True, slots=True)
class SmoothingKernel:
    """A symmetric density around 0; at bandwidth h it is K(u / h) / h.

    `roughness` is the integral of K squared, `variance` the second moment, `support` how far it reaches. `bends` are
    there for kernels that are smooth everywhere: where a sum of kernels of height 1 has its peak at P, no sum of the
    absolute second (fourth) derivatives is above the first (second) of them times P.

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
        """What a bandwidth is multiplied with to smooth as much as another kernel does at its own."""
        return float((self.roughness / self.variance**2) ** 0.2)

    def log_pdf(self, u: np.ndarray) -> np.ndarray:
        """The logarithm of the density, also where the density itself is too small for a number."""
        if self.support < inf:
            with np.errstate(divide="ignore"):
                return np.log(self.pdf(u))
        return -0.5 * u * u - LOG_ROOT_TWO_PI if self.name == "gaussian" else _log_logistic(u)

    def reach(self, nearest: np.ndarray, lost: float) -> np.ndarray:
        """How far away a point adds less than exp(-lost) of what one `nearest` away adds."""
        if self.support < inf:
            return np.full_like(nearest, self.support)
        # The logistic density lies between exp(-u) / 4 and exp(-u).
        return np.sqrt(nearest**2 + 2 * lost) if self.name == "gaussian" else nearest + lost + 1.5


def named_kernel(name: object) -> SmoothingKernel:
    """The kernel of this name."""
    if not isinstance(name, str) or name not in KERNELS:
        raise DataError(f"there is no kernel {name!r}. There are: {', '.join(KERNELS)}.")
    return KERNELS[name]


def _gaussian(u: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * u * u) / sqrt(2 * pi))


def _logistic(u: np.ndarray) -> np.ndarray:
    return np.asarray(expit(u) * expit(-u))


def _log_logistic(u: np.ndarray) -> np.ndarray:
    away = np.abs(u)
    return np.asarray(-away - 2 * np.log1p(np.exp(-away)))


def _power(height: float, power: int) -> Shape:
    """height (1 - u^2)^power between -1 and 1."""
    return lambda u: height * np.maximum(1 - u * u, 0.0) ** power


def _power_cdf(*odd: float) -> Shape:
    """1/2 + a polynomial of odd powers of u, held between -1 and 1."""

    def cdf(u: np.ndarray) -> np.ndarray:
        u = np.clip(u, -1.0, 1.0)
        return 0.5 + u * np.polyval(odd[::-1], u * u)

    return cdf


def _between(shape: Shape) -> Shape:
    """A shape that is 0 from 1 on."""
    return lambda u: np.where(np.abs(u) < 1, shape(np.clip(u, -1.0, 1.0)), 0.0)


def _triangular_cdf(u: np.ndarray) -> np.ndarray:
    u = np.clip(u, -1.0, 1.0)
    return np.asarray(0.5 + u - 0.5 * u * np.abs(u))


def _cosine_cdf(u: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 + 0.5 * np.sin(0.5 * pi * np.clip(u, -1.0, 1.0)))


def _folded_beta(power: int) -> Draw:
    """(1 - u^2)^power is a symmetric beta density, stretched to -1 .. 1."""
    return lambda rng, n: 2 * rng.beta(power + 1, power + 1, n) - 1


_EVERY = (
    SmoothingKernel(
        "gaussian", _gaussian, ndtr, lambda rng, n: rng.standard_normal(n), 0.5 / sqrt(pi), 1.0, inf, (1.5, 4.6)
    ),
    SmoothingKernel("epanechnikov", _power(3 / 4, 1), _power_cdf(3 / 4, -1 / 4), _folded_beta(1), 3 / 5, 1 / 5),
    SmoothingKernel(
        # Both ends belong to it.
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
        "cosine", _between(lambda u: pi / 4 * np.cos(0.5 * pi * u)), _cosine_cdf,
        lambda rng, n: 2 / pi * np.arcsin(rng.uniform(-1.0, 1.0, n)), pi**2 / 16, 1 - 8 / pi**2,
    ),
    SmoothingKernel(
        "logistic", _logistic, expit, lambda rng, n: rng.logistic(size=n), 1 / 6, pi**2 / 3, inf, (0.6, 1.01)
    ),
)  # fmt: skip
KERNELS = {kernel.name: kernel for kernel in _EVERY}
