"""A distribution in one file: Weibull's, with a shape that is known."""

from __future__ import annotations

from math import gamma

import numpy as np
from msgspec import Struct
from scipy.special import gammaln

from softcount.core.formulas import Apply, Cell, Formula, Keys, Sizes, formula, log
from softcount.families.setting import Facts, Hyper, Params, Setting
from softcount.families.totals import Totals, TotalsDensity
from softcount.priors import Gamma
from softcount.table.schema import Kind


class WeibullDensity(TotalsDensity):
    family: Weibull

    def _hazard(self, x: float) -> np.ndarray:
        y = max(x, 0.0) ** self.family.shape
        return self.own["rate"] * y if self.after is None else self.after[0] * np.log1p(y / self.after[1])

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        return np.exp(-self._hazard(x)) if above else -np.expm1(-self._hazard(x))

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        rate = self.own["rate"][groups]
        if self.after is not None:
            rate = rng.gamma(self.after[0][groups], 1.0 / self.after[1][groups])
        return (rng.standard_exponential(len(groups)) / rate) ** (1.0 / self.family.shape)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        if self.after is not None:
            return super().moments()
        unit, k = self.own["rate"] ** (-1.0 / self.family.shape), self.family.shape
        mean = unit * gamma(1 + 1 / k)
        return mean, unit**2 * gamma(1 + 2 / k) - mean**2

    def _mean_features(self) -> np.ndarray:
        return np.stack([np.ones(self.groups), 1.0 / self.own["rate"]], axis=-1)

    def weighted_formula(self, weights: np.ndarray, keys: Keys, sizes: Sizes) -> Formula | None:
        start, slope = weights.T
        return Apply("exp", (log(Cell(keys[0])) * self.family.shape,)) * formula(slope) + formula(start)


class Weibull(Totals, Struct, frozen=True):
    """Lifetimes: x to the power `shape` is exponential with the parameter `rate`."""

    shape: float = 2.0

    name = "weibull"
    facts = Facts(kind=Kind.POSITIVE, chart={"rate": "log"}, n_features=2, rows=0)
    conjugate = Gamma
    conjugate_parts = ("shape", "rate")
    beyond_mode = (1.0, 0.0)
    _density = WeibullDensity

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        return Totals.features(self, column**self.shape, setting)

    def base(self, column: np.ndarray) -> np.ndarray | float:
        known = np.log(self.shape) + (self.shape - 1.0) * np.log(column)
        return np.where(np.isnan(column), 0.0, known)

    def fitted(self, rows: np.ndarray, total: np.ndarray, hyper: Hyper) -> Params:
        return {"rate": rows / total}

    def natural(self, params: Params) -> np.ndarray:
        return np.stack([np.log(params["rate"]), -params["rate"]], axis=-1)

    def log_mass(self, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.asarray(gammaln(rows) - rows * np.log(total))

    def predicted(self, x: np.ndarray, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.log(rows) - np.log(total) - (rows + 1.0) * np.log1p(x**self.shape / total)
