"""Poisson columns: how often something happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct

from softcount.core.lazy_scipy import betainc, gammaln, pdtr, pdtrc
from softcount.core.special import log_rising
from softcount.core.twofold import Twofold
from softcount.families.base import Family, register
from softcount.families.capabilities import NumberFacts
from softcount.families.examples import Cells, example
from softcount.families.setting import CLAMPED, How, Hyper, Line, Params
from softcount.families.totals import Totals
from softcount.priors import Gamma
from softcount.table.schema import Kind


@register
class Poisson(Totals, Struct, frozen=True):
    """Counts 0, 1, 2, ... at a rate.

    Statistics are rows and their total. A prior of a imagined rows has the whole column's rate; `sc.Gamma(shape, rate)`
    imagines `rate` rows with a total of `shape`.
    """

    name = "poisson"
    kind = Kind.COUNT
    chart: ClassVar[Mapping[str, Line]] = {"rate": "log"}
    imagined = ("rows", "shape")
    conjugate = Gamma
    conjugate_parts = ("rate", "shape")
    beyond_mode = (0.0, 1.0)

    def base(self, column: np.ndarray) -> np.ndarray | float:
        return np.where(np.isnan(column), 0.0, -gammaln(column + 1.0))

    @classmethod
    def candidates(cls, facts: NumberFacts) -> Sequence[Family]:
        return (cls(),) if facts.countable else ()

    def fitted(self, rows: np.ndarray, total: np.ndarray, hyper: Hyper) -> Params:
        return {"rate": total / rows}

    def natural(self, params: Params) -> np.ndarray:
        rate = params["rate"]
        with np.errstate(divide="ignore"):
            return np.stack([-rate, np.maximum(np.log(rate), CLAMPED)], axis=-1)

    def predicted(self, x: np.ndarray, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Negative binomial."""
        grown = gammaln(total + x) - gammaln(total)
        return np.asarray(grown + total * np.log(rows) - (total + x) * np.log1p(rows))

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        known = stats.value + self.imagined_stats(hyper, how)
        return {"rate": known[..., 1] / np.maximum(params["rate"], 1e-300) - known[..., 0]}

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        rows, total = stats.value[..., 0], stats.value[..., 1]
        shape, extra = np.broadcast_arrays(np.maximum(hyper["shape"], 1e-300), hyper["rows"], rows)[:2]
        with np.errstate(divide="ignore"):
            spread = shape * np.log1p(rows / extra) + total * np.log(rows + extra)
        return float(np.where(rows > 0, np.asarray(log_rising(shape, total)) - spread, 0.0).sum())

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        rate = params["rate"][groups]
        if "shape" in params:
            rate = rng.gamma(params["shape"][groups], 1.0 / params["rows"][groups])
        return np.asarray(rng.poisson(rate).astype(np.float64))

    def divergence(self, params: Params, shares: np.ndarray) -> np.ndarray:
        rate = params["rate"]
        whole = shares @ rate
        logs = np.log(np.where(rate > 0, rate, 1.0)) - np.log(whole if whole > 0 else 1.0)
        return np.asarray(rate * logs - rate + whole)

    def moments(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        rate = params["rate"]
        return rate, rate + (rate / params["rows"] if "rows" in params else 0.0)

    def cdf(self, params: Params, x: float) -> np.ndarray:
        if x < 0:
            return np.zeros(len(params["rate"]))
        if "shape" in params:
            return np.asarray(betainc(params["shape"], np.floor(x) + 1.0, params["rows"] / (1.0 + params["rows"])))
        return np.asarray(pdtr(np.floor(x), params["rate"]))

    def survival(self, params: Params, x: float) -> np.ndarray:
        if x < 0:
            return np.ones(len(params["rate"]))
        if "shape" in params:
            return np.asarray(betainc(np.floor(x) + 1.0, params["shape"], 1.0 / (1.0 + params["rows"])))
        return np.asarray(pdtrc(np.floor(x), params["rate"]))

    def check_params(self, params: Params) -> str | None:
        return None if (params["rate"] >= 0).all() else "its rates are not all 0 or more"


EXAMPLES = (example(Poisson(), "visits", [0, 3, None, 1, 7, 2, 4], Cells("counts")),)
