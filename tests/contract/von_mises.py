"""A distribution in one file: von Mises', of angles in radians."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from scipy.special import i0e, i1e
from scipy.stats import vonmises

from softcount.core.counts import Twofold
from softcount.families.base import Family, scalar_prior
from softcount.families.density import Density
from softcount.families.setting import Facts, How, Hyper, Params, Setting

LEAST, MOST = 1e-3, 1e4
"""Bounds of a concentration: nearly uniform, and angles that are equal to half a degree."""


class VonMisesDensity(Density):
    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        around = vonmises(self.own["concentration"], self.own["direction"])
        at = np.clip(x, -np.pi, np.pi)  # angles are drawn from -pi to pi
        return around.cdf(np.pi) - around.cdf(at) if above else around.cdf(at) - around.cdf(-np.pi)

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.vonmises(self.own["direction"][groups], self.own["concentration"][groups])

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        kappa = self.own["concentration"]
        return np.log(2 * np.pi * i0e(kappa)) + kappa * (1.0 - resultant(kappa))


class VonMises(Family, Struct, frozen=True):
    """Angles around a `direction`; the density of x is proportional to exp(concentration cos(x - direction))."""

    name = "von_mises"
    facts = Facts(
        chart={"direction": "plain", "concentration": "log"}, bounds={"concentration": (LEAST, MOST)},
        n_features=3, rows=0, signed=True,
    )  # fmt: skip
    _density = VonMisesDensity

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        return np.nan_to_num(np.stack([~np.isnan(column), np.cos(column), np.sin(column)], axis=1))

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        return {"rows": np.full(stats.shape[1:-1], scalar_prior(prior, self, groups=setting.groups))}

    def _prior_stats(self, hyper: Hyper, how: How) -> np.ndarray:
        """Return prior rows of evenly spread angles."""
        return np.multiply.outer(0.0 * hyper["rows"] if how == "ml" else hyper["rows"], [1.0, 0.0, 0.0])

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        """Estimate. Under `predictive`, which has no closed form, parameters are plugged in."""
        rows, east, north = np.moveaxis(stats.value + self._prior_stats(hyper, how), -1, 0)
        length = np.clip(np.hypot(east, north) / np.where(rows > 0, rows, 1.0), 0.0, resultant(MOST))
        kappa = length * (2.0 - length**2) / (1.0 - length**2)
        for _ in range(20):  # Newton's steps towards resultant(kappa) = length
            here = resultant(np.maximum(kappa, LEAST))
            kappa = np.maximum(kappa - (here - length) / (1.0 - here / np.maximum(kappa, LEAST) - here**2), LEAST)
        return {"direction": np.arctan2(north, east), "concentration": np.clip(kappa, LEAST, MOST)}

    def natural(self, params: Params) -> np.ndarray:
        mu, kappa = params["direction"], params["concentration"]
        return np.stack([-np.log(2 * np.pi * i0e(kappa)) - kappa, kappa * np.cos(mu), kappa * np.sin(mu)], axis=-1)

    def is_overdrawn(self, before: Twofold, after: Twofold, slack: float) -> bool:
        return super().is_overdrawn(before[..., :1], after[..., :1], slack)

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        return 0.0


def resultant(kappa: Any) -> Any:
    """Return the mean length of the sum of directions of this concentration, per direction."""
    return i1e(kappa) / i0e(kappa)
