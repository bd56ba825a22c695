"""Geometric columns: how often something failed before it first succeeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct

from softcount.core.lazy_scipy import betaln, xlog1py
from softcount.core.special import log_rising
from softcount.families.base import Family, register
from softcount.families.capabilities import NumberFacts
from softcount.families.examples import Cells, example
from softcount.families.setting import CLAMPED, Hyper, Line, Params
from softcount.families.totals import Totals
from softcount.priors import Beta
from softcount.table.schema import Kind


@register
class Geometric(Totals, Struct, frozen=True):
    """Failures before the first success: 0, 1, 2, ...

    Every row is one success, and the total is that of failures: `sc.Beta(successes, failures)` is the conjugate prior.

    >>> Geometric().fitted(np.array([4.0]), np.array([12.0]), {})["success"]
    array([0.25])
    """

    name = "geometric"
    kind = Kind.COUNT
    chart: ClassVar[Mapping[str, Line]] = {"success": "share"}
    imagined = ("successes", "failures")
    conjugate = Beta
    conjugate_parts = ("alpha", "beta")
    beyond_mode = (1.0, 1.0)

    @classmethod
    def candidates(cls, facts: NumberFacts) -> Sequence[Family]:
        return (cls(),) if facts.countable else ()

    def fitted(self, rows: np.ndarray, total: np.ndarray, hyper: Hyper) -> Params:
        return {"success": rows / (rows + total)}

    def natural(self, params: Params) -> np.ndarray:
        p = params["success"]
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.stack([np.log(p), np.log1p(-p)], axis=-1), CLAMPED))

    def log_mass(self, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.asarray(betaln(rows, total))

    def predicted(self, x: np.ndarray, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(rows) + log_rising(total, x) - log_rising(rows + total, x + 1.0))

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        after, p = self.after(params), params["success"][groups]
        p = p if after is None else rng.beta(after[0][groups], after[1][groups])
        return np.asarray(rng.geometric(np.maximum(p, np.finfo(float).tiny)) - 1.0)  # a drawn p may underflow to 0

    def moments(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        after, p = self.after(params), params["success"]
        if after is None:
            return (1.0 - p) / p, (1.0 - p) / p**2
        a, b = after
        with np.errstate(divide="ignore"):  # infinite where so few rows were seen
            mean = b / np.maximum(a - 1.0, 0.0)
            return mean, mean * (a + b - 1.0) * a / (np.maximum(a - 1.0, 0.0) * np.maximum(a - 2.0, 0.0))

    def cdf(self, params: Params, x: float) -> np.ndarray:
        return np.asarray(-np.expm1(self._log_survival(params, x)))

    def survival(self, params: Params, x: float) -> np.ndarray:
        return np.asarray(np.exp(self._log_survival(params, x)))

    def _log_survival(self, params: Params, x: float) -> np.ndarray:
        after, more = self.after(params), max(np.floor(x) + 1.0, 0.0)
        if after is not None:
            return np.asarray(log_rising(after[1], more) - log_rising(sum(after), more))
        with np.errstate(divide="ignore"):
            return np.asarray(xlog1py(more, -params["success"]))


EXAMPLES = (example(Geometric(), "tries", [0, 3, None, 1, 7, 2, 4], Cells("counts")),)
