"""Student columns: real numbers around a mean, a few of which may lie far out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.counts import Twofold, concatenate, stack
from softcount.core.special import HALF_LOG_2PI, gap, height, log_integral, shape_of
from softcount.errors import DataError
from softcount.families import normal
from softcount.families.base import register
from softcount.families.setting import Facts, How, Hyper, Labels, Params, Setting
from softcount.priors import NormalInverseChi2

LOWEST, HIGHEST = 1.0, 200.0
"""Bounds of an estimated freedom: below 1 even the median is hardly known, beyond 200 it is a normal."""
START = 4.0
"""Initial freedom."""


@cache
def _facts(freedom: float | None) -> Facts:
    ends = (LOWEST, HIGHEST) if freedom is None else (float(freedom), float(freedom))
    return Facts(
        chart={"mean": "plain", "spread": "log", "freedom": "log"}, n_features=5, exact=False, mergeable=False,
        has_products=False, rows=0, signed=True, hidden="have hidden weights",
        spread="spread", bounds={"freedom": ends}, known=frozenset(() if freedom is None else ("freedom",)),
    )  # fmt: skip


@register
class Student(normal.AroundMean, Struct, frozen=True):
    """Student's t distribution: real numbers with heavy tails, so that outliers have little influence.

    The density of x is proportional to (1 + (x - mean)^2 / (freedom spread))^(-(freedom + 1) / 2). It is for single
    columns, not for blocks.

    Parameters
    ----------
    freedom : float or None, default=None
        Degrees of freedom: 1 is the Cauchy distribution, 200 is almost normal. None estimates them between 1 and 200
        for every class.

    See Also
    --------
    Normal : The limit of many degrees of freedom.
    Mixed : Numbers with several modes.

    Notes
    -----
    A model has `mean`, `spread` (the square of the scale) and `freedom` for every class. Every row has a hidden weight,
    small for outliers, so fitting takes EM even if every class is known [1]_. Statistics are rows, expected weights,
    weighted sums and squares of `(x - anchor) * scale`, and logarithms of weights.

    References
    ----------
    .. [1] K. L. Lange, R. J. A. Little and J. M. G. Taylor (1989). "Robust statistical modeling using the t
       distribution". Journal of the American Statistical Association 84 (408), 881-896.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows, target = {"x": [1.0, 2.0, 2.0, 3.0, 100.0]}, ["a"] * 5
    >>> for kind in ("normal", families.Student(freedom=2)):
    ...     model = NaiveBayes(kinds={"x": kind}, estimate="ml").fit(rows, target)
    ...     print(model.params_["x"]["mean"].round(1).tolist())
    [21.6]
    [2.0]
    """

    freedom: float | None = None

    name = "student"
    _density = normal.StudentDensity

    @property
    def facts(self) -> Facts:  # type: ignore[override]
        return _facts(self.freedom)

    def __post_init__(self) -> None:
        known = self.freedom
        if known is not None and not (isinstance(known, (int, float)) and 0 < known <= 1e6):
            raise DataError(f"freedom={known!r}: a known freedom is a number above 0 and up to 1e6, such as 4.")

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        """Return the features of rows with weight one."""
        rows = super().features(column, setting)
        return np.concatenate([rows[:, :1], rows, np.zeros((len(rows), 1))], axis=1)

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        """Return (groups x width) expected statistics, each group centred on its own rows before it is anchored."""
        params = params or self._unknown(setting, memberships.shape[1])
        present = ~np.isnan(column)
        members = memberships * present[:, None]
        z, _ = normal.StudentDensity(self, params, setting).standardise(np.where(present, column, setting.anchor))
        off = z * np.sqrt(params["spread"])
        weight = (params["freedom"] + 1.0) / (params["freedom"] + z * z)
        logs = (members * np.log(weight)).sum(axis=0) - members.sum(axis=0) * gap((params["freedom"] + 1.0) / 2.0)
        rows, weighted = Twofold.of(members.sum(axis=0)), normal.centred_sums(off, members * weight, params["mean"])
        return concatenate([rows.spread(1), weighted, Twofold.of(logs).spread(1)], axis=1)

    def _unknown(self, setting: Setting, groups: int) -> Params:
        mean, spread = setting.blank or (np.zeros(1), np.ones(1))
        freedom = START if self.freedom is None else self.freedom
        parts = {"mean": mean[0], "spread": max(float(spread[0]), 1e-300), "freedom": freedom}
        return {name: np.full(groups, value) for name, value in parts.items()}

    def blank(
        self, columns: Sequence[np.ndarray], weights: Sequence[np.ndarray], setting: Setting, labels: Labels = ()
    ) -> Any:
        """Return the fitted mean and spread of the whole column: outliers have little influence on the prior."""
        params, before = self._unknown(setting, 1), None
        alone = [weight[:, None] for weight in weights]
        # The floor is a millionth of the column's variance with equal weights.
        both = zip(columns, weights, strict=True)
        sums = (Twofold.of(weight @ normal.Normal().features(column, setting)) for column, weight in both)
        plain_rows, _, plain_squares = normal.moments(sum(sums, Twofold.of(np.zeros(3))))
        least = float(plain_squares / np.maximum(plain_rows, 1e-300)) * 1e-6
        for _ in range(200):
            counts = (self.count(*pair, params, setting) for pair in zip(columns, alone, strict=True))
            mass, mean, squares = normal.moments(sum(counts, Twofold.of(np.zeros((1, 5))))[:, 1:4])
            if not mass[0] > 0:
                return None
            # Divided by the weights instead of the rows: as good a step, and a much longer one.
            spread = np.maximum(squares / mass, np.maximum(least, 1e-300))
            params = params | {"mean": mean, "spread": spread}
            now = np.array([mean[0] / np.sqrt(spread[0]), np.log(spread[0])])
            if before is not None and np.abs(now - before).max() < 1e-14:
                break
            before = now
        return params["mean"], params["spread"]

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        about = normal.Normal().rebase(stats[..., 1:4], normal.Normal(), old, new)
        return concatenate([stats[..., :1], about, stats[..., 4:]], axis=-1)

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        """Return the prior of a normal column: prior rows are about mean and spread, not about the freedom."""
        if not isinstance(prior, (str, int, float, np.number, NormalInverseChi2)):
            raise DataError(f"a student column cannot take {prior!r} as its prior.")
        pooled = stats.sum(0)
        rows, (_, mean, squares) = pooled[..., 0], normal.moments(pooled[..., 1:4])
        whole = squares / np.maximum(rows.value, 1e-300)
        if setting.blank is not None:
            mean, whole = setting.blank
        middle = Twofold.of(mean)
        whole_rows = stack([rows, middle * rows, (middle * middle + Twofold.of(whole)) * rows], axis=-1)
        return normal.Normal().hyper(prior, whole_rows.spread(0), setting)

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        """Estimate. Under `predictive`, which has no closed form, parameters are plugged in."""
        rows, logs, mass, mean, squares = _sums(stats)
        kappa, nu = (0.0, 0.0) if how == "ml" else (hyper["kappa"], hyper["nu"])
        weight = mass + kappa
        middle = (mass * mean + kappa * hyper["mu"]) / np.where(weight > 0, weight, 1.0)
        middle = (fixed or {}).get("mean", np.where(weight > 0, middle, hyper["centre"]))
        squares = squares + mass * (mean - middle) ** 2 + kappa * (hyper["mu"] - middle) ** 2 + nu * hyper["s2"]
        worth = rows + nu
        spread = np.where(worth > 0, squares / np.where(worth > 0, worth, 1.0), hyper["whole"])
        if self.freedom is None:
            seen = rows > 0
            spare = np.where(seen, (mass - logs) / np.where(seen, rows, 1.0) - 1.0, gap(np.array(START / 2)))
            freedom = np.clip(2.0 * shape_of(spare), LOWEST, HIGHEST)
        else:
            freedom = np.full(rows.shape, float(self.freedom))
        return {"mean": middle, "spread": np.maximum(spread, hyper["floor"]), "freedom": freedom}

    def completed(self, stats: Twofold, params: Params) -> float:
        """Return the log-likelihood with the hidden weights, whose distribution is gamma of shape freedom / 2."""
        rows, logs, mass, mean, squares = _sums(stats)
        half, spread = params["freedom"] / 2.0, params["spread"]
        off = squares + mass * (mean - params["mean"]) ** 2
        values = -0.5 * (off / spread + rows * np.log(spread)) + 0.5 * logs - rows * HALF_LOG_2PI
        weights = rows * (height(half) + half - HALF_LOG_2PI) + (half - 1.0) * logs - half * mass
        return float((values + weights).sum())

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        rows, logs, mass, mean, squares = _sums(stats)
        kappa, nu = (0.0, 0.0) if how == "ml" else (hyper["kappa"], hyper["nu"])
        here, spread, half = params["mean"], params["spread"], params["freedom"] / 2.0
        off = squares + mass * (mean - here) ** 2 + kappa * (hyper["mu"] - here) ** 2 + nu * hyper["s2"]
        tails = 0.5 * (rows * (gap(half) + 1.0) + logs - mass)
        return {
            "mean": (mass * (mean - here) + kappa * (hyper["mu"] - here)) / spread,
            "spread": 0.5 * (off / spread - rows - nu) / spread,
            "freedom": tails if self.freedom is None else np.zeros(half.shape),
        }

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        return normal.Normal().log_prior({"mean": params["mean"], "variance": params["spread"]}, hyper, how)

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the log evidence for expected weights: mean and spread exactly, the freedom by quadrature."""
        rows, logs, mass, mean, squares = _sums(stats)
        kappa, nu = (np.broadcast_to(hyper[name], rows.shape) for name in ("kappa", "nu"))
        squares = squares + mass * kappa / np.where(mass > 0, mass + kappa, 1.0) * (mean - hyper["mu"]) ** 2
        means = np.where(kappa > 0, -0.5 * np.log1p(mass / np.where(kappa > 0, kappa, 1.0)), 0.0)
        about = means + normal.scale_evidence(rows, squares, nu, nu * hyper["s2"]) - 0.5 * logs - rows * HALF_LOG_2PI
        spare = mass - logs - rows
        if self.freedom is None:
            low, high = LOWEST / 2.0, HIGHEST / 2.0
            safe = np.maximum(rows, 1e-12), np.maximum(spare, 1e-12)
            tails = log_integral(*safe, low, high) - np.log(np.log(high / low))
        else:
            tails = rows * height(np.array(self.freedom / 2.0)) - self.freedom / 2.0 * spare
        return float(np.where(rows > 0, about + tails, 0.0).sum())


def _sums(stats: Twofold) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, sums of log-weights and of weights, weighted means and centred weighted squares."""
    return stats.value[..., 0], stats.value[..., 4], *normal.moments(stats[..., 1:4])
