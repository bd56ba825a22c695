"""Lognormal columns: positive numbers whose logarithm is normal."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.core.twofold import Twofold
from softcount.families.base import Family, register, write_number
from softcount.families.normal import Normal
from softcount.families.setting import Params, Setting
from softcount.table.schema import Kind


@register
class LogNormal(Normal, frozen=True):
    """Positive numbers; `mean`, `variance` and the statistics are those of the logarithm."""

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
