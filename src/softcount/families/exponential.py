"""Exponential columns: how long until something happens that may happen at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from softcount.core import remedies
from softcount.core.lazy_scipy import gammaln
from softcount.core.twofold import Twofold
from softcount.errors import DataError
from softcount.families.base import Family, register, where_first
from softcount.families.capabilities import NumberFacts
from softcount.families.examples import Cells, example
from softcount.families.setting import SLACK, SMALLEST, Hyper, Line, Params, Setting
from softcount.families.totals import Totals
from softcount.priors import Gamma
from softcount.table.schema import Key

LEAST_MEAN = 1e-294
"""Of the whole column: the largest rate that a group may have, and what it adds up to, must be finite."""
SHORTEST = 1e-6
"""Of the whole column's mean wait, the least of a group: below it scores of the others' rows keep no digits."""


@register
class Exponential(Totals, Struct, frozen=True):
    """Waiting times of 0 or more at a rate; `sc.Gamma(shape, rate)` imagines `shape` rows with a total of `rate`.

    Predictions are Lomax's. A rate has a largest value, or rows of nothing but zeros would be infinitely likely.
    """

    name = "exponential"
    chart: ClassVar[Mapping[str, Line]] = {"rate": "log"}
    spread_parameters = ("rate",)
    conjugate = Gamma
    conjugate_parts = ("shape", "rate")
    beyond_mode = (1.0, 0.0)

    @classmethod
    def candidates(cls, facts: NumberFacts) -> Sequence[Family]:
        """Of whole numbers geometric is the same, without a density that is highest at its very end."""
        return (cls(),) if facts.least >= 0 and not facts.countable else ()

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        if (bad := column < 0).any():
            row = where_first(bad, start)
            held = f"column {key!r} is a waiting time (exponential), but row {row} holds {column[row - start - 1]:g}"
            raise DataError(f"{held}. Waiting times are 0 or more. Declare it real: {remedies.kind(key, 'normal')}")

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        told = Totals.hyper(self, prior, stats, setting)
        if (small := told["whole"] < LEAST_MEAN).any():
            key = setting.keys[int(np.argmax(small))]
            mean = float(np.min(told["whole"]))
            raise DataError(
                f"column {key!r} has waiting times of {mean:.3g} on average, whose rate is beyond all numbers."
                " Count them in a smaller unit: multiply the column, by 1e100 say."
            )
        return told | {"top": 1.0 / (told["whole"] * np.maximum(np.sqrt(setting.floor), SHORTEST))}

    def fitted(self, rows: np.ndarray, total: np.ndarray, hyper: Hyper) -> Params:
        return self.within({"rate": rows / np.maximum(total, SMALLEST)}, hyper)

    def within(self, params: Params, hyper: Hyper) -> Params:
        return params | {"rate": np.minimum(params["rate"], hyper["top"])}

    def degenerate(self, params: Params, hyper: Hyper) -> np.ndarray:
        return np.asarray(params["rate"] >= hyper["top"] * (1 - SLACK))

    def natural(self, params: Params) -> np.ndarray:
        return np.stack([np.log(params["rate"]), -params["rate"]], axis=-1)

    def log_mass(self, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.asarray(gammaln(rows) - rows * np.log(total))

    def predicted(self, x: np.ndarray, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(rows) - np.log(total) - (rows + 1.0) * np.log1p(x / total))

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        after, rate = self.after(params), params["rate"][groups]
        rate = rate if after is None else rng.gamma(after[0][groups], 1.0 / after[1][groups])
        return np.asarray(rng.standard_exponential(len(groups)) / rate)

    def moments(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        after = self.after(params)
        if after is None:
            return 1.0 / params["rate"], params["rate"] ** -2
        with np.errstate(divide="ignore", over="ignore"):  # infinite where so few rows were seen
            mean = after[1] / np.maximum(after[0] - 1.0, 0.0)
            return mean, mean**2 * after[0] / np.maximum(after[0] - 2.0, 0.0)

    def cdf(self, params: Params, x: float) -> np.ndarray:
        return np.asarray(-np.expm1(-self._hazard(params, x)))

    def survival(self, params: Params, x: float) -> np.ndarray:
        return np.asarray(np.exp(-self._hazard(params, x)))

    def _hazard(self, params: Params, x: float) -> np.ndarray:
        after, x = self.after(params), max(x, 0.0)
        return np.asarray(params["rate"] * x if after is None else after[0] * np.log1p(x / after[1]))


EXAMPLES = (example(Exponential(), "pause", [0.5, 3.25, None, 0.0, 7.5, 2.0, 40.0], Cells("waits")),)
