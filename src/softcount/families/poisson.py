"""Poisson columns: how often something happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, gammaln, pdtr, xlogy

from softcount.errors import DataError
from softcount.families.base import (
    CLAMPED,
    Family,
    How,
    Hyper,
    Line,
    Params,
    Setting,
    register,
    scalar_prior,
    where_first,
)
from softcount.numerics.logspace import log_rising
from softcount.numerics.twofold import Twofold
from softcount.priors import Gamma
from softcount.table.schema import Key, Kind


def check_counts(column: np.ndarray, key: Key, start: int) -> None:
    """Refuse what is not 0, 1, 2, ..., naming column and row."""
    bad = (column < 0) | (column != np.floor(column)) & ~np.isnan(column)
    if bad.any():
        row = where_first(bad, start)
        raise DataError(
            f"column {key!r} is a count, but row {row} holds {column[row - start - 1]:g}. Counts are 0, 1, 2, ...\n"
            f"  Declare it real: --kind {key}=normal     or leave it out: --kind {key}=ignore"
        )


@register
@dataclass(frozen=True, slots=True)
class Poisson(Family):
    """Counts 0, 1, 2, ... at a rate.

    Statistics are rows and their total. A prior of a imagined rows has the whole column's rate.
    """

    name = "poisson"
    kind = Kind.COUNT
    chart: ClassVar[Mapping[str, Line]] = {"rate": "log"}

    def width(self, setting: Setting) -> int:
        return 2

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        check_counts(column, key, start)

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        present = ~np.isnan(column)
        return np.stack([present.astype(np.float64), np.where(present, column, 0.0)], axis=1)

    def base(self, column: np.ndarray) -> np.ndarray | float:
        return np.where(np.isnan(column), 0.0, -gammaln(column + 1.0))

    def observed(self, stats: np.ndarray) -> float | None:
        return float(stats[..., 0].sum())

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        pooled = stats.value.sum(axis=0)
        # Nothing but zeros is taken for half an event, or every other count would be impossible for ever.
        rate = np.maximum(pooled[..., 1], 0.5 * (pooled[..., 1] <= 0)) / np.maximum(pooled[..., 0], 0.5)
        if isinstance(prior, Gamma):
            shape, rows = np.broadcast_to(prior.shape, rate.shape), np.broadcast_to(prior.rate, rate.shape)
            return {"shape": shape, "rows": rows, "whole": rate, "explicit": np.array(1.0)}
        imagined = scalar_prior(prior, self, groups=setting.groups)
        return {"shape": imagined * rate, "rows": np.full(rate.shape, imagined), "whole": rate, "explicit": np.array(0)}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        rows, total = stats.value[..., 0], stats.value[..., 1]
        shape, extra = (0.0, 0.0) if how == "ml" else (self._shape(hyper, how), hyper["rows"])
        if (total + shape < 0).any():
            raise DataError(
                "poisson: total plus shape is below one, so there is no interior mode. Use estimate='mean'."
            )
        weight = rows + extra
        rate = np.where(weight > 0, (total + shape) / np.where(weight > 0, weight, 1.0), hyper["whole"])
        params = {"rate": rate}
        if how == "predictive":
            params |= {"shape": np.maximum(total + shape, 1e-12), "rows": np.maximum(weight, 1e-12)}
        return params

    def _shape(self, hyper: Hyper, how: How) -> np.ndarray:
        return hyper["shape"] - (hyper["explicit"] if how == "map" else 0.0)

    def natural(self, params: Params) -> np.ndarray:
        rate = params["rate"]
        with np.errstate(divide="ignore"):
            return np.stack([-rate, np.maximum(np.log(rate), CLAMPED)], axis=-1)

    def score(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray:
        if "shape" not in params:
            return self.features(column, setting) @ self.natural(params).T
        shape, rows, x = params["shape"], params["rows"], column[:, None]
        scored = gammaln(shape + x) - gammaln(shape) + shape * np.log(rows) - (shape + x) * np.log1p(rows)
        return np.where(np.isnan(x), 0.0, scored)

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params | None:
        rows, total = stats.value[..., 0], stats.value[..., 1]
        shape, extra = (0.0, 0.0) if how == "ml" else (self._shape(hyper, how), hyper["rows"])
        return {"rate": (total + shape) / np.maximum(params["rate"], 1e-300) - (rows + extra)}

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> float:
        if how == "ml":
            return 0.0
        shape = np.broadcast_to(self._shape(hyper, how), params["rate"].shape)
        return float((xlogy(shape, params["rate"]) - hyper["rows"] * params["rate"]).sum())

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        rows, total = stats.value[..., 0], stats.value[..., 1]
        shape, extra = np.broadcast_arrays(np.maximum(hyper["shape"], 1e-300), hyper["rows"], rows)[:2]
        with np.errstate(divide="ignore"):
            spread = shape * np.log1p(rows / extra) + total * np.log(rows + extra)
        return float(np.where(rows > 0, np.asarray(log_rising(shape, total)) - spread, 0.0).sum())

    def proper(self, hyper: Hyper) -> Hyper:
        """Where nothing is imagined, one row at the whole column's rate."""
        nothing = (hyper["rows"] <= 0) | (hyper["shape"] <= 0)
        one = {
            "shape": np.where(nothing, hyper["whole"], hyper["shape"]),
            "rows": np.where(nothing, 1.0, hyper["rows"]),
        }
        return hyper | one

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Gamma:
        return Gamma(stats.value[..., 1] + hyper["shape"], stats.value[..., 0] + hyper["rows"])

    def free(self, setting: Setting, groups: int) -> int:
        return groups

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        rate = params["rate"][groups]
        if "shape" in params:
            rate = rng.gamma(params["shape"][groups], 1.0 / params["rows"][groups])
        return rng.poisson(rate).astype(np.float64)

    def describe(self, params: Params, setting: Setting) -> list[str]:
        return [f"rate {rate:.4g}" for rate in params["rate"]]

    def divergence(self, params: Params, shares: np.ndarray) -> np.ndarray:
        rate = params["rate"]
        whole = shares @ rate
        return xlogy(rate, rate) - xlogy(rate, whole if whole > 0 else 1.0) - rate + whole

    def moments(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        rate = params["rate"]
        return rate, rate + (rate / params["rows"] if "rows" in params else 0.0)

    def cdf(self, params: Params, x: float) -> np.ndarray:
        if x < 0:
            return np.zeros(len(params["rate"]))
        if "shape" in params:
            return betainc(params["shape"], np.floor(x) + 1.0, params["rows"] / (1.0 + params["rows"]))
        return pdtr(np.floor(x), params["rate"])

    def check_params(self, params: Params) -> str | None:
        return None if (params["rate"] >= 0).all() else "its rates are not all 0 or more"
