"""Normal columns: a mean and a variance per group, the variance free, shared or known."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from msgspec import Struct

from softcount.core.counts import Twofold, stack, two_sum
from softcount.core.formulas import Cell, Formula, Keys, Sizes, formula, log1p, normal_density
from softcount.core.lazy import betaln, psi, stdtr, stdtrit, xlog1py
from softcount.core.special import HALF_LOG_2PI, log_rising, log_student, ndtr
from softcount.errors import DataError
from softcount.families import floors
from softcount.families.base import Family, register, scalar_prior, write_number, write_spread
from softcount.families.density import Density
from softcount.families.setting import Facts, How, Hyper, Params, Setting
from softcount.priors import NormalInverseChi2, NormalKnownVariance
from softcount.table.schema import Kind

ENDLESS = 1e300
"""Degrees of freedom from which Student's t is normal to the last digit."""
QUANTILES = 2048
"""Number of quantiles over which a divergence is averaged."""
LOOSE = 0.01
"""Prior rows that make the mean of a class proper: its deviation is then ten times that of a row."""


@cache
def normal_facts(tied: str | None, known: bool, kind: Kind = Kind.REAL) -> Facts:
    """Return the facts of normal columns that share a variance as in `tied`, or whose variance is `known`."""
    shared = frozenset({"variance"} if tied in ("classes", "both") else ())
    return Facts(
        kind=kind, chart={"mean": "plain", "variance": "log"}, n_features=3, stack="reals", rows=0, signed=True,
        in_units=True, joins_numbers=not known and tied is None and kind is Kind.REAL, spread="variance",
        known=frozenset({"variance"} if known else ()), shared_by_groups=shared,
        shared_by_columns=tied in ("columns", "both"),
    )  # fmt: skip


class BellDensity(Density):
    """A density around a `mean`, as wide as the parameter `spread`: the square of a deviation."""

    spread: ClassVar[str] = "variance"

    @cached_property
    def params(self) -> Params:
        """The public parameters; also the mean in the user's units with its rounding error, and the deviation.

        The error and the deviation are in counting units, because the square of a deviation of 1e-200 underflows.
        """
        scale, mean = self.setting.scale, self.own["mean"]
        centre = mean / scale + self.setting.anchor
        lost = (shift_anchor(centre, self.setting) - Twofold.of(mean)).value
        exact = {"centre": centre, "lost": lost, "unit": scale, "deviation": np.sqrt(self.own[self.spread])}
        return self.family.public(self.own, self.setting) | exact

    def standardise(self, column: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return (rows x groups) standardised values, and the log-deviation: the deviation may underflow."""
        params = self.params
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            off = (np.asarray(column)[:, None] - params["centre"]) * params["unit"] + params["lost"]
            return off / params["deviation"], np.log(params["deviation"]) - np.log(params["unit"])

    def formula_of(self, x: Formula) -> Formula:
        """Return the log-density at `x` as a formula."""
        raise NotImplementedError

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        return self.formula_of(Cell(keys[0]))


class NormalDensity(BellDensity):
    """A normal density."""

    family: Normal

    @property
    def is_product(self) -> bool:
        """False: scores are centred on each group's mean, because the product would lose its digits."""
        return False

    def score(self, column: np.ndarray) -> np.ndarray:
        """Score centred on each group's mean: the product form would lose (distance / deviation)^2 digits."""
        z, log_deviation = self.standardise(column)
        return np.where(np.isnan(column)[:, None], 0.0, -log_deviation - HALF_LOG_2PI - 0.5 * z * z)

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        # The density is symmetric, so the upper tail is the lower tail of the mirrored value.
        z = self.standardise([x])[0][0]
        return np.asarray(ndtr(-1.0 * z if above else 1.0 * z))

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(rng.normal(self.params["mean"][groups], np.sqrt(self.params["variance"][groups])))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        return self.params["mean"], self.params["variance"]

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        """Return the entropy, computed in counting units: a variance may underflow, but its logarithm does not."""
        return np.asarray(HALF_LOG_2PI + 0.5 + 0.5 * np.log(self.own["variance"]) - np.log(self.setting.scale[0]))

    def describe(self) -> list[str]:
        each = zip(self.params["mean"], np.sqrt(self.params["variance"]), strict=True)
        return [f"mean {write_number(self.setting, m, spread=s)}, sd {write_spread(self.setting, s)}" for m, s in each]

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        mean, variance = self.own["mean"], self.own["variance"]
        middle = shares @ mean
        whole = shares @ (variance + (mean - middle) ** 2)
        ratio = variance / whole
        return np.asarray(0.5 * (ratio + (mean - middle) ** 2 / whole - 1.0 - np.log(ratio)))

    def formula_of(self, x: Formula) -> Formula:
        return normal_density(x, self.params["mean"], np.sqrt(self.params["variance"]))

    def linear(self) -> tuple[np.ndarray, np.ndarray] | None:
        if self.family.tied not in ("classes", "both"):
            return None
        mean, variance = self.params["mean"], self.params["variance"]
        return (mean / variance)[:, None], -(mean**2) / (2 * variance)

    def weighted_formula(self, weights: np.ndarray, keys: Keys, sizes: Sizes) -> Formula | None:
        moved = (Cell(keys[0]) - formula(self.setting.anchor)) * formula(self.setting.scale)
        start, slope, bend = map(formula, weights.T)
        return (moved * bend + slope) * moved + start if weights[:, 2].any() else moved * slope + start

    def linear_of(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope = natural[:, 1] * self.setting.scale
        return slope[:, None], natural[:, 0] - slope * self.setting.anchor

    def linear_basis(self) -> np.ndarray | None:
        """Return the basis without squares, which groups of one variance have in common."""
        return np.eye(3)[:, :2]

    def as_normal(self) -> tuple[np.ndarray, np.ndarray] | None:
        return self.params["mean"][:, None], self.params["variance"][:, None, None]

    def regression(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return intercepts, coefficients (groups x numeric parents) and residual variances, in counting units."""
        return self.own["mean"], np.zeros((self.groups, 0)), self.own["variance"]


class StudentDensity(BellDensity):
    """Student's t, with the parameter `freedom`."""

    spread = "spread"

    def score(self, column: np.ndarray) -> np.ndarray:
        z, log_deviation = self.standardise(column)
        with np.errstate(invalid="ignore", over="ignore"):
            scored = log_student(z * z, self.params["freedom"], log_scale=log_deviation)
        return np.where(np.isnan(column)[:, None], 0.0, scored)

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        z = self.standardise([x])[0][0]
        return np.asarray(stdtr(np.minimum(self.params["freedom"], 1e9), -1.0 * z if above else 1.0 * z))

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        noise = rng.standard_t(np.minimum(self.params["freedom"][groups], 1e9))
        return np.asarray(self.params["mean"][groups] + np.sqrt(self.params["spread"][groups]) * noise)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        nu = self.params["freedom"]
        with np.errstate(invalid="ignore", divide="ignore"):
            wider = np.where(nu > 2, np.where(np.isinf(nu), 1.0, nu / (nu - 2)), np.inf)
        return self.params["mean"], self.params["spread"] * wider

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        freedom = self.own["freedom"]
        nu = np.minimum(freedom, 1e6)
        shape = 0.5 * (nu + 1) * (psi(0.5 * (nu + 1)) - psi(0.5 * nu)) + 0.5 * np.log(nu) + betaln(0.5 * nu, 0.5)
        found = np.where(freedom > 1e6, HALF_LOG_2PI + 0.5, shape) + 0.5 * np.log(self.own["spread"])
        return np.asarray(found - np.log(self.setting.scale[0]))

    def formula_of(self, x: Formula) -> Formula:
        z = (x - formula(self.params["mean"])) / formula(np.sqrt(self.params["spread"]))
        freedom: np.ndarray = np.minimum(self.params["freedom"], ENDLESS)
        top = log_student(0.0, self.params["freedom"], log_scale=np.log(np.sqrt(self.params["spread"])))
        return formula(top) - log1p(z * z / freedom) * (0.5 * (freedom + 1.0))

    def describe(self) -> list[str]:
        each = zip(self.params["mean"], np.sqrt(self.params["spread"]), self.params["freedom"], strict=True)
        return [
            f"mean {write_number(self.setting, m, spread=s)}, scale {write_spread(self.setting, s)}, freedom {f:.3g}"
            for m, s, f in each
        ]

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        """Return the divergence from the mixture of all groups, over 2,048 quantiles of each group, to about 1e-3."""
        plain = self.in_counting_units()
        quantiles = stdtrit(self.own["freedom"][:, None], (np.arange(QUANTILES) + 0.5) / QUANTILES)
        return plain.from_mixture(self.own["mean"][:, None] + np.sqrt(self.own["spread"])[:, None] * quantiles, shares)


class NormalPredictive(StudentDensity):
    """The prediction of a normal: Student's t, described by the mean and the variance of the normal."""

    describe = NormalDensity.describe
    divergence = NormalDensity.divergence


class AroundMean(Family):
    """Base of families with a `mean` and a `variance`, or of Student's t if there is a `freedom` (with `spread`)."""

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        moved = (_numbers(self, column) - setting.anchor) * setting.scale
        present = ~np.isnan(column)
        moved = np.where(present, moved, 0.0)
        return np.stack([present.astype(np.float64), moved, moved * moved], axis=1)

    def proper(self, hyper: Hyper) -> Hyper:
        """Without prior rows, use one row with the column's variance, and a mean anywhere in the column."""
        whole = np.maximum(hyper["whole"], hyper["floor"])
        wide = np.where(hyper["known"] > 0, hyper["known"] / whole, LOOSE)
        return hyper | {
            "kappa": np.where(hyper["kappa"] > 0, hyper["kappa"], wide),
            "nu": np.where(hyper["nu"] > 0, hyper["nu"], 1.0),
            "s2": np.where(hyper["s2"] > 0, hyper["s2"], whole),
        }

    def public(self, params: Params, setting: Setting) -> Params:
        scale, squares = setting.scale, params.keys() & {"variance", "spread"}
        # Divided twice, because the square of a scale of 1e-300 underflows. A variance beyond 1e308 is infinite.
        with np.errstate(over="ignore"):
            units = {name: params[name] / scale / scale for name in squares}
            return params | units | {"mean": params["mean"] / scale + setting.anchor}

    def private(self, params: Params, setting: Setting) -> Params:
        found = {name: np.asarray(params[name], float) for name in self.facts.chart}
        found["mean"] = (found["mean"] - setting.anchor) * setting.scale
        spread = self.facts.spread
        found[spread] = found[spread] * setting.scale**2
        return found


@register
class Normal(AroundMean, Struct, frozen=True):
    """Normal distribution: real numbers around a mean.

    The density of x is exp(-(x - mean)^2 / (2 variance)) / sqrt(2 pi variance).

    Parameters
    ----------
    tied : {'classes', 'columns', 'both'} or None, default=None
        Which distributions share one variance: all classes, all columns that hold an equal `Normal`, or both. With
        'classes' a classifier is linear.
    variance : float or None, default=None
        A known variance. None estimates it.

    See Also
    --------
    LogNormal : Positive numbers whose logarithms are normal.
    Student : Numbers with outliers.
    Multinormal : Several correlated columns.
    Mixed : Numbers with several modes.

    Notes
    -----
    A model has `mean` and `variance` for every class. With a prior of a rows the variance is (SS + a s2) / (n + a): SS
    is the sum of squares around the mean of the n rows of the class, and s2 the variance of the column over all rows.
    Statistics are rows, sum and sum of squares of `(x - anchor) * scale`.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"size": [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]}
    >>> kinds = {"size": families.Normal(tied="classes")}
    >>> model = NaiveBayes(kinds=kinds, estimate="ml").fit(rows, ["small"] * 3 + ["tall"] * 3)
    >>> model.params_["size"]["mean"].tolist(), model.params_["size"]["variance"].round(3).tolist()
    ([2.0, 7.0], [1.667, 1.667])
    """

    tied: Literal["classes", "columns", "both"] | None = None
    variance: float | None = None

    name = "normal"

    def __post_init__(self) -> None:
        if self.tied not in (None, "classes", "columns", "both"):
            raise DataError(f"tied={self.tied!r}: use None, 'classes', 'columns' or 'both'.")
        if self.variance is not None and not (isinstance(self.variance, (int, float)) and self.variance > 0):
            raise DataError(f"a known variance is a positive number, not {self.variance}.")

    @property
    def facts(self) -> Facts:  # type: ignore[override]
        return normal_facts(self.tied, self.variance is not None)

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        """Count each group centred on its own rows, then shift to the anchor. A stack uses kernels instead."""
        present = ~np.isnan(column)
        moved = (np.where(present, _numbers(self, column), setting.anchor) - setting.anchor) * setting.scale
        return centred_sums(moved[:, None], memberships * present[:, None])

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        """Shift rows, sum and squares to another anchor, in twofold arithmetic."""
        ratio = new.scale / old.scale
        rows, total, squares = stats[..., 0], stats[..., 1] * ratio, stats[..., 2] * (ratio * ratio)
        moved = shift_anchor(old.anchor, new).broadcast(rows.shape)
        squares = squares + moved * total * 2.0 + moved * moved * rows
        return stack([rows, total + moved * rows, squares], axis=-1)

    def is_overdrawn(self, before: Twofold, after: Twofold, slack: float) -> bool:
        """Return whether rows or the variance of the remaining rows are negative."""
        rows, total, squares = (after[..., j] for j in range(3))
        room = slack * np.maximum(before.value[..., 0] * before.value[..., 2], 1e-300)
        return bool((rows.value < -slack).any() or ((rows * squares - total * total).value < -room).any())

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        pooled = stats.sum(0)
        rows, mean, squares = moments(pooled)
        spread = np.where(rows > 0, squares / np.maximum(rows, 1e-300), 1.0)
        floor = np.where(rows > 0, np.maximum(spread * setting.floor, setting.resolution(mean, 1e-150) ** 2), 1e-300)
        hyper = {"floor": floor, "centre": mean, "whole": spread}
        known = np.zeros(1) if self.variance is None else self.variance * setting.scale**2
        hyper["known"] = np.broadcast_to(known, mean.shape)
        if isinstance(prior, NormalInverseChi2):
            unit = setting.scale
            return hyper | {
                "mu": (np.asarray(prior.mean) - setting.anchor) * unit,
                "kappa": np.broadcast_to(np.asarray(prior.kappa, float), mean.shape),
                "nu": np.broadcast_to(np.asarray(prior.nu, float), mean.shape),
                "s2": np.asarray(prior.variance) * unit**2,
            }
        if isinstance(prior, NormalKnownVariance):
            spread_known = np.asarray(prior.variance, dtype=float)
            return hyper | {
                "known": np.broadcast_to(spread_known * setting.scale**2, mean.shape),
                "mu": (np.asarray(prior.mean) - setting.anchor) * setting.scale,
                "kappa": np.broadcast_to(spread_known / prior.mean_variance, mean.shape),
                "nu": np.zeros(mean.shape),
                "s2": np.zeros(mean.shape),
            }
        # A column without values has no prior rows: it must not change a variance shared with others.
        extra = np.where(rows > 0, scalar_prior(prior, self, groups=setting.groups), 0.0)
        return hyper | {"mu": mean, "kappa": np.zeros(mean.shape), "nu": extra, "s2": spread}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        rows, mean, squares = moments(stats)
        plain = how == "ml"
        kappa, nu = (0.0, 0.0) if plain else (hyper["kappa"], hyper["nu"])
        weight = rows + kappa
        pull = np.where(weight > 0, kappa / np.where(weight > 0, weight, 1.0), 0.0)
        if fixed and "mean" in fixed:
            off = rows * (mean - fixed["mean"]) ** 2 + kappa * (fixed["mean"] - hyper["mu"]) ** 2
        else:
            off = pull * rows * (mean - hyper["mu"]) ** 2
        squares = squares + off + nu * hyper["s2"]
        mean = np.where(weight > 0, mean + pull * (hyper["mu"] - mean), hyper["centre"])
        squares, worth = self._pool(squares), self._pool(rows + nu)
        raw = np.where(worth > 0, squares / np.where(worth > 0, worth, 1.0), hyper["whole"])
        variance = floors.clip_spread(self, raw, hyper)
        params = {"mean": mean, "variance": variance}
        if how == "predictive":
            # The rows of the posterior are the degrees of freedom, whatever the prior; a known variance has infinitely
            # many.
            params["freedom"] = np.where(hyper["known"] > 0, np.inf, np.where(worth > 0, worth, 1.0))
            params["spread"] = variance * (1.0 + 1.0 / known_rows(weight))
        return params

    def density(self, params: Params, setting: Setting) -> Density:
        return (NormalPredictive if "freedom" in params else NormalDensity)(self, params, setting)

    def _pool(self, parts: np.ndarray) -> np.ndarray:
        """Sum over the groups and columns that share a variance, repeated at each of them."""
        return np.broadcast_to(self._totals(parts), parts.shape)

    def _totals(self, parts: np.ndarray) -> np.ndarray:
        """Sum over the groups and columns that share a variance, once for each variance."""
        axes = {None: (), "classes": (0,), "columns": (1,), "both": (0, 1)}[self.tied]
        axes = tuple(axis for axis in axes if axis < parts.ndim)
        return parts.sum(axis=axes, keepdims=True) if axes else parts

    def natural(self, params: Params) -> np.ndarray:
        mean, variance = params["mean"], params["variance"]
        constant = -0.5 * (mean**2 / variance + np.log(variance)) - HALF_LOG_2PI
        return np.stack([constant, mean / variance, -0.5 / variance], axis=-1)

    def completed(self, stats: Twofold, params: Params) -> float:
        rows, mean, squares = moments(stats)
        off = squares + rows * (mean - params["mean"]) ** 2
        spread = off / params["variance"] + rows * np.log(params["variance"])
        return float((-0.5 * spread - rows * HALF_LOG_2PI).sum())

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        rows, mean, squares = moments(stats)
        kappa, nu = (0.0, 0.0) if how == "ml" else (hyper["kappa"], hyper["nu"])
        off, pull, variance = mean - params["mean"], hyper["mu"] - params["mean"], params["variance"]
        around = squares + rows * off**2 + kappa * pull**2 + nu * hyper["s2"]
        spread = 0.5 * (around / variance - (rows + nu)) / variance
        sharing = float(self._pool(np.ones_like(spread)).max(initial=1.0))  # groups and columns that share a variance
        spread = np.where(hyper["known"] > 0, 0.0, self._pool(spread) / sharing)
        return {"mean": (rows * off + kappa * pull) / variance, "variance": spread}

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        if how == "ml" or (self.variance is not None and not hyper["kappa"].any()):
            return 0.0
        variance = params["variance"]
        off = hyper["kappa"] * (params["mean"] - hyper["mu"]) ** 2
        return np.asarray(-0.5 * (hyper["nu"] * (np.log(variance) + hyper["s2"] / variance) + off / variance))

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the log evidence; for a mean without prior rows, only the part that does not depend on its prior.

        A shared variance is integrated once.
        """
        rows, mean, squares = moments(stats)
        kappa, nu = (np.broadcast_to(hyper[name], rows.shape) for name in ("kappa", "nu"))
        weight = np.where(rows > 0, rows + kappa, 1.0)
        squares = squares + rows * kappa / weight * (mean - hyper["mu"]) ** 2
        means = np.where(kappa > 0, -0.5 * np.log1p(rows / np.where(kappa > 0, kappa, 1.0)), 0.0)
        sure = np.broadcast_to(hyper["known"] > 0, rows.shape)
        known = np.where(sure, hyper["known"], 1.0)
        given = np.where(sure, -0.5 * (squares / known + rows * np.log(known)) - rows * HALF_LOG_2PI, 0.0)
        parts = (np.where(sure, 0.0, part) for part in (rows, squares, nu, nu * hyper["s2"]))
        return float((means + given).sum() + scale_evidence(*map(self._totals, parts)).sum())

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> NormalInverseChi2 | NormalKnownVariance:
        if self.facts.shared_by_columns:
            raise DataError(f"column {setting.keys[0]!r} shares its variance with others, so it has no posterior.")
        params = self.estimate(stats, hyper, "mean")
        mean, variance = params["mean"] / setting.scale + setting.anchor, params["variance"] / setting.scale**2
        rows = stats.value[..., 0]
        kappa = rows + hyper["kappa"]
        if self.variance is not None:
            loose = np.where(kappa > 0, variance / np.maximum(kappa, 1e-300), np.inf)
            return NormalKnownVariance(mean, loose, variance)
        return NormalInverseChi2(mean, kappa, self._pool(rows + hyper["nu"]), variance)


def _numbers(family: Family, column: np.ndarray) -> np.ndarray:
    """Return the numbers that are counted: the values or their logarithms."""
    return np.log(column) if family.facts.kind.logged else column


def centred_form(params: Params, anchor: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Return means, inverse deviations and constants in the user's units; None for the posterior predictive."""
    if "freedom" in params:
        return None
    # The deviation is scaled after its root: a variance of 1e-320 would have lost its digits.
    with np.errstate(over="ignore"):
        inverse = scale / np.sqrt(params["variance"])
    if not np.isfinite(inverse).all():  # the inverse deviation overflows for numbers below 1e-308
        return None
    return params["mean"] / scale + anchor, inverse, np.log(inverse) - HALF_LOG_2PI


def shift_anchor(anchor: np.ndarray, setting: Setting) -> Twofold:
    """Return the exact difference of another anchor from that of a setting, in its units."""
    total, lost = two_sum(np.asarray(anchor), -setting.anchor)
    return Twofold(total * setting.scale, lost * setting.scale)


def centred_sums(off: np.ndarray, members: np.ndarray, around: np.ndarray | float = 0.0) -> Twofold:
    """Return rows, sums and squares (..., 3) of deviations from a point, by (rows x ...) memberships.

    Squares are first taken around each group's own rows: around a point a million deviations away they lose all digits.
    """
    mass = members.sum(axis=0)
    own = (members * off).sum(axis=0) / np.where(mass > 0, mass, 1.0)
    near = off - own
    rows, total, squares = (Twofold.of(part.sum(axis=0)) for part in (members, members * near, members * near * near))
    shift = Twofold.of(np.broadcast_to(around, own.shape)) + Twofold.of(own)
    return stack([rows, total + shift * rows, squares + shift * total * 2.0 + shift * shift * rows], axis=-1)


def moments(stats: Twofold) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, mean and centred sum of squares, subtracted in twofold arithmetic so that no digit is lost."""
    rows, total, squares = stats[..., 0], stats[..., 1], stats[..., 2]
    mean = total.over(rows)
    centred = squares - mean * total
    return rows.value, mean.value, np.maximum(centred.value, 0.0)


def scale_evidence(rows: np.ndarray, squares: np.ndarray, nu: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return the log evidence of squares around their mean; the variance has `nu` prior rows with squares `whole`."""
    seen = rows > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = -xlog1py(nu / 2, squares / whole) - rows / 2 * np.log(np.pi * (whole + squares))
        return np.where(seen, np.asarray(log_rising(nu / 2, rows / 2)) + spread, 0.0)


def known_rows(weight: np.ndarray) -> np.ndarray:
    """Return the rows of a mean; 1 for a group without rows."""
    return np.where(weight > 0, np.maximum(weight, 1e-12), 1.0)
