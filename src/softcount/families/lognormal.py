"""Lognormal columns: positive numbers whose logarithm is normal."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.core.counts import Twofold
from softcount.families.base import Family, register, write_number
from softcount.families.normal import Normal
from softcount.families.setting import Params, Setting
from softcount.table.schema import Kind


@register
class LogNormal(Normal, frozen=True):
    """Lognormal distribution: positive numbers whose logarithms are normal.

    The density of x is the normal density of log x, divided by x. It suits amounts and durations that differ by
    factors.

    Parameters
    ----------
    tied : {'classes', 'columns', 'both'} or None, default=None
        What shares one variance of the logarithm: all classes, all columns that hold an equal `LogNormal`, or both.
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
    kind = Kind.POSITIVE

    def base(self, column: np.ndarray) -> np.ndarray | float:
        return np.where(np.isnan(column), 0.0, -np.log(column))

    def transform(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(values))

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        """Return the part due to the unit of the logarithm and to that of the numbers, which the anchor holds."""
        return Normal.log_unit(self, stats, setting) - float(stats.value[..., 0].sum() * setting.anchor[0])

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(np.exp(Normal.draw(self, params, groups, rng)))

    def describe(self, params: Params, setting: Setting) -> list[str]:
        middle, spread = np.exp(params["mean"]), np.exp(np.sqrt(params["variance"]))
        return [
            f"median {write_number(setting, m, f'{m:.4g}')}, x/÷ {s:.3g}" for m, s in zip(middle, spread, strict=True)
        ]

    def entropy(self, params: Params) -> np.ndarray:
        return Normal.entropy(self, params) + params["mean"]

    def moments(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = params["mean"], params["variance"]
        with np.errstate(over="ignore"):
            return np.exp(mean + variance / 2), np.expm1(variance) * np.exp(2 * mean + variance)

    def cdf(self, params: Params, x: float, above: bool = False) -> np.ndarray:
        return Normal.cdf(self, params, np.log(x), above) if x > 0 else np.full(len(params["mean"]), float(above))

    # -- answers

    average_surprise = Family.average_surprise
    linear = Family.linear

    def typical(self, params: Params, setting: Setting) -> list[Any]:
        return list(np.exp(params["mean"]).tolist())
