"""Gamma columns: positive numbers whose spread grows with their size."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.counts import Twofold, stack
from softcount.core.formulas import Cell, Choose, Compare, Formula, Keys, Sizes, formula, log
from softcount.core.lazy import gammainc, gammaincc
from softcount.core.special import HALF_LOG_2PI, LOG_2, excess, gap, height, log_integral, log_twofold, shape_of
from softcount.families.base import Family, register, scalar_prior, write_number
from softcount.families.density import Density
from softcount.families.normal import LOOSE
from softcount.families.setting import Facts, How, Hyper, Params, Setting
from softcount.table.schema import Kind

NARROWEST = 1e12
"""Largest shape: a relative deviation of one in a million, below which rows are taken as equal."""

SERIES = (1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11, 1 / 13, 1 / 15)


class GammaDensity(Density):
    """A gamma density with the parameters `mean` and `shape`."""

    def score(self, column: np.ndarray) -> np.ndarray:
        """Score centred on each group's mean: log gamma(1e12) alone would be off by 0.004."""
        mean, shape, x = self.params["mean"], self.params["shape"], column[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            scored = height(shape) - HALF_LOG_2PI - shape * excess(x, mean)
        return np.where(np.isnan(x), 0.0, scored)

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        """Return the formula, with x / mean - 1 - log(x / mean) by a series near the mean."""
        x, mean, shape = Cell(keys[0]), formula(self.params["mean"]), self.params["shape"]
        apart = (x - mean) / mean
        s = apart / (apart + 2.0)
        square, rest = s * s, formula(SERIES[-1])
        for term in SERIES[-2::-1]:
            rest = square * rest + term
        near = apart * s - s * square * rest * 2.0
        is_near = (Compare("<", apart, formula(0.125)), Compare("<", formula(-0.125), apart))
        return formula(height(shape)) - Choose(is_near, near, apart - log(x / mean)) * formula(shape)

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        shape = self.params["shape"][groups]
        return np.asarray(rng.gamma(shape, 1.0) / shape * self.params["mean"][groups])

    def describe(self) -> list[str]:
        each = zip(self.params["mean"], self.params["shape"], strict=True)
        return [f"mean {write_number(self.setting, m, f'{m:.4g}')}, shape {k:.3g}" for m, k in each]

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        """Return the divergence from the gamma with the mean and the mean logarithm of all groups together."""
        mean, shape = self.params["mean"], self.params["shape"]
        middle = shares @ mean
        off = excess(mean, middle) + gap(shape)
        whole = shape_of(shares @ off)
        return np.asarray(height(shape) - shape * gap(shape) - height(whole) + whole * off)

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        shape = self.params["shape"]
        return np.asarray(HALF_LOG_2PI - height(shape) + (shape - 1.0) * gap(shape) + np.log(self.params["mean"]))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        return self.params["mean"], self.params["mean"] / self.params["shape"] * self.params["mean"]

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        tail = gammaincc if above else gammainc
        return np.asarray(tail(self.params["shape"], self.params["shape"] * max(x, 0.0) / self.params["mean"]))


@register
class Gamma(Family, Struct, frozen=True):
    """Gamma distribution: positive numbers whose deviation grows with their mean.

    The density of y is proportional to y^(shape - 1) exp(-y shape / mean). The rate of the usual form is shape / mean,
    and the standard deviation is mean / sqrt(shape).

    See Also
    --------
    LogNormal : Positive numbers with a heavier tail.
    Exponential : The gamma distribution of shape 1.
    softcount.priors.Gamma : The prior and posterior of a rate.

    Notes
    -----
    A model has `mean` and `shape` for every class. The mean is estimated by the mean of the rows. The shape k is the
    maximum-likelihood estimate: it solves log k - digamma(k) = log(mean) - mean of logs [1]_. A prior of a rows adds a
    rows that have, on the right side, the difference of the whole column. Statistics are the number of rows and the
    sums of y and log y, where y is the value divided by a power of two.

    References
    ----------
    .. [1] S. C. Choi and R. Wette (1969). "Maximum likelihood estimation of the parameters of the gamma distribution
       and their bias". Technometrics 11 (4), 683-690.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> model = NaiveBayes(kinds={"wait": families.Gamma()}, estimate="ml").fit({"wait": [1.0, 3.0]}, ["a", "a"])
    >>> {name: round(float(value[0]), 4) for name, value in model.params_["wait"].items()}
    {'mean': 2.0, 'shape': 3.6343}
    """

    name = "gamma"
    _density = GammaDensity
    facts = Facts(
        kind=Kind.POSITIVE, chart={"mean": "log", "shape": "log"}, n_features=3, has_products=False, rows=0,
        signed=True, spread="shape",
    )  # fmt: skip

    def base(self, column: np.ndarray) -> np.ndarray | float:
        return np.where(np.isnan(column), 0.0, -np.log(column))

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        present = ~np.isnan(column)
        y = np.where(present, np.ldexp(column, -_power(setting)), 1.0)
        return np.stack([present, np.where(present, y, 0.0), np.log(y)], axis=1)

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        """Return the (groups x width) statistics; each group is counted around its own mean, which is then added.

        Otherwise a group with a shape of 1e12 far from the others would lose all digits of it.
        """
        present = ~np.isnan(column)
        y = np.where(present, np.ldexp(column, -_power(setting)), 1.0)
        members = memberships * present[:, None]
        mass = members.sum(axis=0)
        centre = np.where(mass > 0, members.T @ y, 1.0) / np.where(mass > 0, mass, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            y = np.where(members > 0, y[:, None], centre)
            moved = Twofold.of((members * ((y - centre) / centre)).sum(axis=0))
            beyond = Twofold.of((members * excess(y, centre)).sum(axis=0))
            rows = Twofold.of(mass)
            logs = log_twofold(centre) * rows + moved - beyond
            return stack([rows, (rows + moved) * centre, logs], axis=1)

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        rows, total, logs = (stats[..., j] for j in range(3))
        by = _power(old) - _power(new)
        total = Twofold(np.ldexp(total.hi, by), np.ldexp(total.lo, by))
        return stack([rows, total, logs + LOG_2 * float(by) * rows], axis=-1)

    def is_overdrawn(self, before: Twofold, after: Twofold, slack: float) -> bool:
        """Return whether rows or totals are negative, or the mean of logarithms is above the logarithm of the mean."""
        below = Family.is_overdrawn(self, before[..., :2], after[..., :2], slack)
        return below or bool((after[..., 0].value * _apart(after).value < -slack).any())

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        rows, mean, apart = _moments(stats.sum(0))
        seen = rows > 0
        apart = np.where(seen, apart, 1.0)
        return {
            "centre": np.where(seen, mean, 1.0),
            "apart": apart,
            "top": np.minimum(shape_of(apart) / setting.floor, NARROWEST),
            "kappa": np.zeros(rows.shape),
            "rows": np.where(seen, scalar_prior(prior, self, groups=setting.groups), 0.0),
        }

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        """Estimate. Under `predictive`, which has no closed form, parameters are plugged in."""
        rows, mean, apart = _moments(stats)
        mean = np.where(rows > 0, mean, hyper["centre"])
        if fixed and "mean" in fixed:
            apart = apart + excess(mean, fixed["mean"])
            mean = fixed["mean"]
        extra = np.zeros(rows.shape) if how == "ml" else np.broadcast_to(hyper["rows"], rows.shape)
        weight = rows + extra
        spare = (rows * apart + extra * hyper["apart"]) / np.where(weight > 0, weight, 1.0)
        spare = np.where(weight > 0, spare, hyper["apart"])
        return {"mean": mean, "shape": np.minimum(shape_of(spare), hyper["top"])}

    def completed(self, stats: Twofold, params: Params) -> float:
        rows, mean, apart = _moments(stats)
        shape = params["shape"]
        apart = apart + excess(np.where(rows > 0, mean, params["mean"]), params["mean"])
        return float((rows * (height(shape) - HALF_LOG_2PI - shape * apart)).sum())

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        rows, mean, apart = _moments(stats)
        here, shape = params["mean"], params["shape"]
        extra = 0.0 if how == "ml" else hyper["rows"]
        apart = apart + excess(np.where(rows > 0, mean, here), here)
        rise = rows * (gap(shape) - apart) + extra * (gap(shape) - hyper["apart"])
        return {"mean": shape * rows * (mean - here) / here**2, "shape": rise}

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        if how == "ml":
            return 0.0
        return np.asarray(hyper["rows"] * (height(params["shape"]) - params["shape"] * hyper["apart"]))

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the log evidence: quadrature over the shape, Laplace's approximation for the mean.

        It is improper without prior rows.
        """
        rows, mean, apart = _moments(stats)
        kappa, extra = np.broadcast_to(hyper["kappa"], rows.shape), np.maximum(hyper["rows"], 1e-12)
        both = np.where(rows + kappa > 0, rows + kappa, 1.0)
        middle = np.where(rows > 0, (rows * mean + kappa * hyper["centre"]) / both, 1.0)
        pulled = rows * excess(np.where(rows > 0, mean, middle), middle)
        pulled = pulled + kappa * excess(np.where(rows > 0, hyper["centre"], middle), middle)
        means = np.where(kappa > 0, -0.5 * np.log1p(rows / np.where(kappa > 0, kappa, 1.0)), 0.0)
        spare = extra * np.maximum(hyper["apart"], 1.0 / NARROWEST)
        shapes = log_integral(extra + rows, spare + rows * apart + pulled) - log_integral(extra, spare)
        return float(np.where(rows > 0, means + shapes - rows * HALF_LOG_2PI, 0.0).sum())

    def proper(self, hyper: Hyper) -> Hyper:
        """Without prior rows, use one row for the shape, and a mean anywhere in the column."""
        return hyper | {
            "kappa": np.where(hyper["kappa"] > 0, hyper["kappa"], LOOSE),
            "rows": np.where(hyper["rows"] > 0, hyper["rows"], 1.0),
        }

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        return -float(stats.value[..., 0].sum() * setting.anchor[0])

    def public(self, params: Params, setting: Setting) -> Params:
        return params | {"mean": np.ldexp(params["mean"], _power(setting))}

    def private(self, params: Params, setting: Setting) -> Params:
        mean, shape = np.asarray(params["mean"], float), np.asarray(params["shape"], float)
        return {"mean": np.ldexp(mean, -_power(setting)), "shape": shape}


def _power(setting: Setting) -> int:
    """Return the power of two of the counting unit; the anchor of a positive column is a logarithm."""
    return round(float(setting.anchor[0] / np.log(2.0)))


def _moments(stats: Twofold) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, mean, and log of the mean less the mean of logs, in twofold arithmetic so that no digit is lost."""
    rows, apart = stats[..., 0], _apart(stats).value
    return rows.value, stats[..., 1].over(rows).value, np.where(rows.hi > 0, np.maximum(apart, 0.0), 0.0)


def _apart(stats: Twofold) -> Twofold:
    rows, mean = stats[..., 0], stats[..., 1].over(stats[..., 0])
    safe = np.where(mean.hi > 0, mean.hi, 1.0)
    return log_twofold(safe) + Twofold.of(mean.lo / safe) - stats[..., 2].over(rows)
