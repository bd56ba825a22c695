"""Shares of several levels, learned by counting each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import force_setattr
from numpy.typing import ArrayLike

from softcount.core.special import log_rising, plain
from softcount.errors import DataError
from softcount.priors.distribution import Distribution, Number, Seed, numbers, require, shown, tail
from softcount.priors.predictive import log_gamma_pdf

AXES = ("group", "level")


class Dirichlet(Distribution, frozen=True, eq=False):
    """What is believed about the shares of several levels, as if `alpha` of each had been counted.

    The last axis of `alpha` is the levels; axes before it are groups. With `levels` named, counts may come by name.

    >>> die = Dirichlet([1, 1, 1, 1, 1, 1]).update([3, 0, 0, 1, 0, 0])
    >>> die.predict().tolist()
    [0.4, 0.1, 0.1, 0.2, 0.1, 0.1]
    >>> candy = Dirichlet([2, 1], levels=("cherry", "lime")).update({"lime": 3})
    >>> candy.predict("lime")
    0.6666666666666666
    """

    own_axes = 1

    alpha: np.ndarray
    levels: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.alpha, Mapping):
            self._take_names(self.alpha)
        elif self.levels is not None:
            force_setattr(self, "levels", tuple(self.levels))
        alpha = numbers("Dirichlet's alpha", self.alpha)
        self._check_shape(alpha)
        remedy = "Imagined counts are finite and 0 or more: 1 per level imagines each level once."
        require(np.isfinite(alpha) & (alpha >= 0), alpha, "Dirichlet's alpha", remedy, AXES, self.levels)
        self._store("alpha", alpha)

    @classmethod
    def symmetric(cls, concentration: float, levels: int | Sequence[Hashable]) -> Dirichlet:
        """The same imagined count for every level; levels by number or by name.

        >>> Dirichlet.symmetric(0.5, ["no", "yes"])
        Dirichlet(alpha=[0.5, 0.5], levels=('no', 'yes'))
        """
        names = None if isinstance(levels, int | np.integer) else tuple(levels)
        size = int(levels) if isinstance(levels, int | np.integer) else len(levels)
        if size < 1:
            raise DataError(f"levels is {levels!r}. A Dirichlet needs at least one level.")
        return cls(np.full(size, concentration, dtype=float), names)

    def update(self, counts: ArrayLike | Mapping[Any, float]) -> Dirichlet:
        """The belief after counting: the counts are added. An array has the levels last; a mapping goes by name."""
        return Dirichlet(self.alpha + self._counted(counts), self.levels)

    @property
    def total(self) -> Number:
        """How many counts the belief is worth."""
        return plain(self.alpha.sum(axis=-1))

    @property
    def mean(self) -> np.ndarray:
        """The expected share of each level."""
        remedy = "Without any count there is no mean: update with data first, or imagine 1 of each level."
        require(np.asarray(self.total) > 0, self.total, "the sum of Dirichlet's alpha", remedy)
        return np.asarray(self.alpha / self.alpha.sum(axis=-1, keepdims=True))

    @property
    def mode(self) -> np.ndarray:
        """The likeliest shares, (alpha - 1) over its sum; equal shares where every alpha is 1 and all are alike."""
        remedy = "Below 1 there is no interior mode: use the mean, or imagine at least 1 of each level."
        require(self.alpha >= 1, self.alpha, "Dirichlet's alpha", remedy, AXES, self.levels)
        above = self.alpha - 1
        total = above.sum(axis=-1, keepdims=True)
        return np.where(total == 0, 1 / self.alpha.shape[-1], above / np.where(total == 0, 1.0, total))

    @property
    def variance(self) -> np.ndarray:
        """How far the share of each level spreads around its mean, squared."""
        mean = self.mean
        return np.asarray(mean * (1 - mean) / (self.alpha.sum(axis=-1, keepdims=True) + 1))

    def pdf(self, x: ArrayLike) -> Number:
        """The density of shares x (levels last, summing to one), per group."""
        self._proper()
        points = self._shares(x)
        groups = self.alpha.shape[:-1]
        alpha = self.alpha.reshape(groups + (1,) * (points.ndim - 1) + self.alpha.shape[-1:])
        # Through Gamma densities at shares times the total: plain log-gammas lose eight digits at an alpha of 1e8.
        total = alpha.sum(axis=-1)
        each = log_gamma_pdf(points * total[..., None], alpha).sum(axis=-1)
        return plain(np.exp(each - log_gamma_pdf(total, total) + (points.shape[-1] - 1) * np.log(total)))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """For each level alone, the ends of an equal-tailed range holding its share with this probability."""
        from scipy.special import betainccinv, betaincinv

        self._proper()
        out = tail(level)
        if self.alpha.shape[-1] == 1:  # the only level has all of the share
            return np.ones_like(self.alpha), np.ones_like(self.alpha)
        rest = self.alpha.sum(axis=-1, keepdims=True) - self.alpha
        return betaincinv(self.alpha, rest, out), betainccinv(self.alpha, rest, out)

    def predict(self, level: Hashable | None = None) -> Number:
        """The probability of each level for the next row, or of the one level named (or numbered)."""
        if level is None:
            return self.mean
        return plain(self.mean[..., self._position(level)])

    def log_evidence(self, counts: ArrayLike | Mapping[Any, float]) -> Number:
        """The log-probability of rows with these counts, in the order they came, before any of them was seen.

        >>> round(float(np.exp(Dirichlet([1, 1, 1]).log_evidence([1, 1, 0]))), 6)   # 1/3 * 1/4
        0.083333
        """
        self._proper()
        seen = self._counted(counts)
        return plain(np.sum(log_rising(self.alpha, seen), axis=-1) - log_rising(self.total, seen.sum(axis=-1)))

    evidence = log_evidence
    """The same by its short name."""

    def sample(self, n: int = 1, random_state: Seed = None) -> np.ndarray:
        """n sets of shares drawn from the belief: groups first, then draws, then levels."""
        self._proper()
        # Shares are drawn through logarithms: with alpha near 0 plain gamma draws are all zero and divide to NaN.
        rng = np.random.default_rng(random_state)
        size = (*self.alpha.shape[:-1], n, self.alpha.shape[-1])
        alpha = self.alpha[..., None, :]
        with np.errstate(divide="ignore"):
            logs = np.log(rng.gamma(alpha + 1, size=size)) + np.log(rng.random(size)) / alpha
        shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def describe(self) -> str:
        """The belief in one line.

        >>> Dirichlet([2, 4], levels=("cherry", "lime")).describe()
        'shares of 2 levels: cherry 0.3333, lime 0.6667, worth 6 counts'
        """
        if self.alpha.ndim > 1 or not np.all(np.asarray(self.total) > 0):
            return f"shares of {self.alpha.shape[-1]} levels, worth {shown(self.total)} counts"
        mean, names = self.mean, self.levels
        told = shown(mean) if names is None else ", ".join(f"{k} {shown(v)}" for k, v in zip(names, mean, strict=True))
        return f"shares of {mean.size} levels: {told}, worth {shown(self.total)} counts"

    def _take_names(self, given: Mapping[Any, float]) -> None:
        if self.levels is not None and set(self.levels) != set(given):
            raise DataError(f"Dirichlet's alpha names {list(given)}, levels are {list(self.levels)}. Name the same.")
        names = tuple(given) if self.levels is None else tuple(self.levels)
        force_setattr(self, "levels", names)
        force_setattr(self, "alpha", [given[name] for name in names])

    def _check_shape(self, alpha: np.ndarray) -> None:
        if alpha.ndim == 0 or alpha.shape[-1] == 0:
            raise DataError(
                "Dirichlet's alpha needs one imagined count per level, such as [1, 1, 1]. "
                "For the same count everywhere: Dirichlet.symmetric(1.0, levels)."
            )
        if self.levels is None:
            return
        if len(self.levels) != alpha.shape[-1] or len(set(self.levels)) != len(self.levels):
            raise DataError(
                f"Dirichlet has {alpha.shape[-1]} imagined counts and levels {list(self.levels)}. "
                "Name each level once, in the order of alpha."
            )

    def _position(self, level: Hashable) -> int:
        if self.levels is not None and level in self.levels:
            return self.levels.index(level)
        size = self.alpha.shape[-1]
        if self.levels is None and isinstance(level, int | np.integer) and 0 <= level < size:
            return int(level)
        known = list(self.levels) if self.levels is not None else f"numbered 0 to {size - 1}"
        raise DataError(f"There is no level {level!r}: the levels are {known}.")

    def _counted(self, counts: ArrayLike | Mapping[Any, float]) -> np.ndarray:
        """Counts as an array with the levels last, checked."""
        if isinstance(counts, Mapping):
            counts = self._by_position(counts)
        seen = numbers("counts", counts)
        if seen.ndim == 0 or seen.shape[-1] != self.alpha.shape[-1]:
            raise DataError(
                f"counts have shape {seen.shape}, but there are {self.alpha.shape[-1]} levels. "
                "Give one count per level, levels on the last axis."
            )
        require(np.isfinite(seen) & (seen >= 0), seen, "a count", "Counts are finite and 0 or more.", AXES, self.levels)
        return seen

    def _by_position(self, counts: Mapping[Any, Any]) -> np.ndarray:
        """Named counts in the order of the levels; a level not named counts 0."""
        given: list[Any] = [0.0] * self.alpha.shape[-1]
        for level, count in counts.items():
            given[self._position(level)] = numbers(f"the count of level {level!r}", count)
        return np.stack(np.broadcast_arrays(*given), axis=-1)

    def _shares(self, x: ArrayLike) -> np.ndarray:
        points = np.asarray(x, dtype=float)
        off = points.ndim == 0 or points.shape[-1] != self.alpha.shape[-1]
        if off or np.any(points < 0) or not np.allclose(points.sum(axis=-1), 1.0, rtol=0, atol=1e-9):
            raise DataError(
                f"A density is asked at {x!r}. Give {self.alpha.shape[-1]} shares of 0 or more that sum to one."
            )
        return points

    def _proper(self) -> None:
        remedy = "With a level of 0 this is not a distribution: imagine at least a little of each, such as 0.5."
        require(self.alpha > 0, self.alpha, "Dirichlet's alpha", remedy, AXES, self.levels)
