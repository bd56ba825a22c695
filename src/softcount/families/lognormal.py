"""Lognormal columns: positive numbers whose logarithm is normal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softcount.errors import DataError
from softcount.families.base import Params, Setting, register, where_first
from softcount.families.normal import Normal
from softcount.numerics.twofold import Twofold
from softcount.table.schema import Key, Kind


def check_positive(column: np.ndarray, key: Key, start: int, name: str) -> None:
    """Refuse what is not above zero, naming column and row."""
    bad = column <= 0
    if bad.any():
        row = where_first(bad, start)
        raise DataError(
            f"column {key!r} is positive ({name}), but row {row} holds {column[row - start - 1]:g}. "
            f"Declare it real: --kind {key}=normal"
        )


@register
@dataclass(frozen=True, slots=True)
class LogNormal(Normal):
    """Positive numbers; `mean` and `variance` are of the logarithm, and so are the statistics."""

    name = "lognormal"
    kind = Kind.POSITIVE

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        check_positive(column, key, start, self.name)

    def base(self, column: np.ndarray) -> np.ndarray | float:
        return np.where(np.isnan(column), 0.0, -np.log(column))

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        return Normal.features(self, np.log(column), setting)

    def score(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray:
        return Normal.score(self, np.log(column), params, setting)

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        """The unit of the logarithm, and that of the numbers themselves, which the anchor holds."""
        return Normal.log_unit(self, stats, setting) - float(stats.value[..., 0].sum() * setting.anchor[0])

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.exp(Normal.draw(self, params, groups, rng))

    def describe(self, params: Params, setting: Setting) -> list[str]:
        middle, spread = np.exp(params["mean"]), np.exp(np.sqrt(params["variance"]))
        return [f"median {m:.4g}, times or over {s:.3g}" for m, s in zip(middle, spread, strict=True)]

    def entropy(self, params: Params) -> np.ndarray:
        return Normal.entropy(self, params) + params["mean"]

    def moments(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = params["mean"], params["variance"]
        with np.errstate(over="ignore"):
            return np.exp(mean + variance / 2), np.expm1(variance) * np.exp(2 * mean + variance)

    def cdf(self, params: Params, x: float) -> np.ndarray:
        return Normal.cdf(self, params, np.log(x)) if x > 0 else np.zeros(len(params["mean"]))
