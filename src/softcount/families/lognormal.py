"""Lognormal columns: positive numbers whose logarithm is normal."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np

from softcount.core.counts import Twofold
from softcount.core.formulas import Cell, Formula, Keys, Sizes, log
from softcount.families.base import Family, register, write_number
from softcount.families.density import Density
from softcount.families.normal import BellDensity, Normal, normal_facts
from softcount.families.setting import Facts, Params, Setting
from softcount.table.schema import Kind


class LogNormalDensity(Density):
    """The density of numbers whose logarithms have the density `logs`."""

    family: LogNormal

    @cached_property
    def logs(self) -> BellDensity:
        return cast("BellDensity", Normal.density(self.family, self.own, self.setting))

    @property
    def params(self) -> Params:
        return self.logs.params

    @property
    def is_product(self) -> bool:
        return False

    def score(self, column: np.ndarray) -> np.ndarray:
        return self.logs.score(np.log(column))

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        return self.logs.cdf(np.log(x), above) if x > 0 else np.full(self.groups, float(above))

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(np.exp(self.logs.draw(groups, rng)))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = self.params["mean"], self.params["variance"]
        with np.errstate(over="ignore"):
            return np.exp(mean + variance / 2), np.expm1(variance) * np.exp(2 * mean + variance)

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        return self.logs.entropy() + self.params["mean"]

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        return self.logs.divergence(shares)

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        return self.logs.formula_of(log(Cell(keys[0])))

    def describe(self) -> list[str]:
        each = zip(self.typical(), np.exp(np.sqrt(self.params["variance"])), strict=True)
        return [f"median {write_number(self.setting, m)}, x/÷ {s:.3g}" for m, s in each]

    def typical(self) -> list[Any]:
        return list(np.exp(self.params["mean"]).tolist())


@register
class LogNormal(Normal, frozen=True):
    """Lognormal distribution: positive numbers whose logarithms are normal.

    The density of x is the normal density of log x, divided by x. It suits amounts and durations that differ by
    factors.

    Parameters
    ----------
    tied : {'classes', 'columns', 'both'} or None, default=None
        Which distributions share one variance of the logarithm: all classes, all columns that hold an equal
        `LogNormal`, or both.
    variance : float or None, default=None
        A known variance of the logarithm. None estimates it.

    See Also
    --------
    Gamma : Positive numbers whose deviation is proportional to the mean.
    Normal : Real numbers.
    Spiked : Amounts of which many are 0.

    Notes
    -----
    `mean`, `variance` and the statistics are those of the logarithm; the median is exp(mean).

    Examples
    --------
    >>> import numpy as np
    >>> from softcount import NaiveBayes, families
    >>> rows = {"price": [1.0, 4.0, 10.0, 1000.0]}
    >>> model = NaiveBayes(kinds={"price": families.LogNormal()}).fit(rows, ["low", "low", "high", "high"])
    >>> dict(zip(model.classes_.tolist(), np.exp(model.params_["price"]["mean"]).round(6).tolist()))
    {'high': 100.0, 'low': 2.0}
    """

    name = "lognormal"
    _density = LogNormalDensity
    density = Family.density

    @property
    def facts(self) -> Facts:  # type: ignore[override]
        return normal_facts(self.tied, self.variance is not None, Kind.POSITIVE)

    def base(self, column: np.ndarray) -> np.ndarray | float:
        return np.where(np.isnan(column), 0.0, -np.log(column))

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        """Return the part due to the unit of the logarithm and to that of the numbers, which the anchor holds."""
        return Normal.log_unit(self, stats, setting) - float(stats.value[..., 0].sum() * setting.anchor[0])
