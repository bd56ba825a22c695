"""Spiked columns: one value that many rows hold, mostly zero, and a density of the other numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.formulas import Cell, Choose, Compare, Formula, Keys, Sizes, formula
from softcount.core.lazy import betaln, entr, xlog1py, xlogy
from softcount.core.twofold import Twofold, concatenate
from softcount.errors import DataError
from softcount.families.base import FAMILIES, Family, register, said, scalar_prior, spoken
from softcount.families.capabilities import NumberFacts
from softcount.families.categorical import estimate_shares
from softcount.families.examples import Cells, example
from softcount.families.setting import SMALLEST, How, Hyper, Line, Params, Setting
from softcount.table.schema import Key, Kind

BESIDE = ("lognormal", "gamma", "exponential", "normal")
"""Families of the other numbers: densities, because others would count the value of the spike twice."""


@register
class Spiked(Family, Struct, frozen=True):
    """Numbers of which many are the same, as in `sc.Spiked("lognormal")` for rain: mostly 0, else an amount.

    `spike` is the share of rows that hold the value `at`; the others have the parameters of the family `of`. Statistics
    are the rows at the spike, then those of the other family. In scores the spike is a density as wide as
    `rounding`, how finely numbers are written down: they then compare with those of other families.

    >>> Spiked("lognormal").free(Setting(), groups=2)
    6
    """

    of: str = "lognormal"
    at: float = 0.0
    rounding: float = 1.0

    name = "spiked"
    kind = Kind.REAL
    has_products = False

    def __post_init__(self) -> None:
        if self.of not in BESIDE:
            raise DataError(f"Spiked({self.of!r}): beside a spike numbers are {', '.join(BESIDE)}.")
        for told, least in ((self.at, -np.inf), (self.rounding, 0.0)):
            if isinstance(told, bool) or not isinstance(told, (int, float)) or not least < told < np.inf:
                raise DataError(f"Spiked: a spike is at a finite number and rounding above zero, not {told!r}.")

    @classmethod
    def candidates(cls, facts: NumberFacts) -> Sequence[Family]:
        """A spike beside each density that can hold the other numbers."""
        if facts.spike is None:
            return ()
        at_zero = facts.least == facts.spike == 0
        # What is written as 0 was from 0 to half a step above, where nothing is below.
        step = facts.rounding / 2 if at_zero else facts.rounding
        return [Spiked(of, facts.spike, step) for of in (BESIDE if at_zero or facts.least > 0 else ("normal",))]

    @property
    def inner(self) -> Family:
        """The family of the other numbers."""
        return FAMILIES[self.of]()

    @property
    def title(self) -> str:
        return f"{self.of} with a spike at {spoken(self.at, 4)}"

    @property
    def chart(self) -> Mapping[str, Line]:  # type: ignore[override]
        return {"spike": "share", **self.inner.chart}

    @property
    def spread_parameters(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.inner.spread_parameters

    def _within(self, setting: Setting) -> Setting:
        """The setting of the other family: logarithms are counted from that of a typical number."""
        if self.inner.kind is not Kind.POSITIVE:
            return setting
        return replace(setting, anchor=-np.log(setting.scale), scale=np.ones(len(setting.scale)))

    def _beside(self, column: np.ndarray) -> np.ndarray:
        """The column without the spike's rows."""
        return np.where(column == self.at, np.nan, column)

    def transform(self, values: np.ndarray) -> np.ndarray:
        """Of the numbers that are not at the spike."""
        beside = self._beside(values)
        return np.log(beside) if self.inner.logged else beside

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        self.inner.check(self._beside(column), key, start)

    def width(self, setting: Setting) -> int:
        return 1 + self.inner.width(self._within(setting))

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        spike = (column == self.at).astype(np.float64)[:, None]
        return np.concatenate([spike, self.inner.features(self._beside(column), self._within(setting))], axis=1)

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        spike = Twofold.of(memberships.T @ (column == self.at).astype(np.float64)[:, None])
        rest = self.inner.count(self._beside(column), memberships, params, self._within(setting))
        return concatenate([spike, rest], axis=1)

    def observed(self, stats: np.ndarray) -> float | None:
        return float(stats[..., :2].sum())

    def base(self, column: np.ndarray) -> np.ndarray | float:
        return self.inner.base(self._beside(column))

    # -- learning

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        """The prior of the inner family, with as many prior rows at the spike as elsewhere."""
        plain = scalar_prior(prior, self, 2, setting.groups)
        told = self.inner.hyper(prior, stats[..., 1:], self._within(setting))
        return told | {"at_spike": np.full(stats.shape[1:-1], plain)}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How) -> Params:
        return {"spike": self._share(stats, hyper, how)} | self.inner.estimate(stats[..., 1:], hyper, how)

    def held(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params) -> Params:
        inner = {name: value for name, value in fixed.items() if name != "spike"}
        rest, known = stats[..., 1:], self.inner
        params = known.held(rest, hyper, how, inner) if inner else known.estimate(rest, hyper, how)
        return {"spike": fixed.get("spike", self._share(stats, hyper, how))} | params

    def _share(self, stats: Twofold, hyper: Hyper, how: How) -> np.ndarray:
        alpha = np.broadcast_to(np.asarray(hyper["at_spike"])[..., None], (*stats.shape[1:-1], 2))
        return np.asarray(estimate_shares(stats.value[..., :2], alpha, how, self.name)[..., 0])

    def held_free(self, names: Collection[str], setting: Setting, groups: int, columns: int = 1) -> int:
        inner = [name for name in names if name != "spike"]
        rest = self.inner.held_free(inner, self._within(setting), groups, columns) if inner else 0
        return groups * columns * ("spike" in names) + rest

    def within(self, params: Params, hyper: Hyper) -> Params:
        return params | self.inner.within(params, hyper)

    def deviation(self, params: Params) -> np.ndarray | float:
        return self.inner.deviation(params)

    def degenerate(self, params: Params, hyper: Hyper) -> np.ndarray:
        return self.inner.degenerate(params, hyper)

    def at_floor(self, params: Params, hyper: Hyper, stats: Twofold) -> np.ndarray:
        return self.inner.at_floor(params, hyper, stats[..., 1:])

    def log_spread(self, stats: Twofold, hyper: Hyper) -> float:
        return self.inner.log_spread(stats[..., 1:], hyper)

    def log_unit(self, stats: Twofold, setting: Setting) -> float:
        return self.inner.log_unit(stats[..., 1:], self._within(setting))

    def completed(self, stats: Twofold, params: Params) -> float:
        rows, spike = stats.value, params["spike"]
        chosen = xlogy(rows[..., 0], spike) + xlog1py(rows[..., 1], -spike) - rows[..., 0] * np.log(self.rounding)
        return float(chosen.sum()) + self.inner.completed(stats[..., 1:], params)

    def log_prior(self, params: Params, hyper: Hyper, how: How) -> np.ndarray | float:
        extra, spike = self._prior_rows(hyper, how), params["spike"]
        return np.asarray(xlogy(extra, spike) + xlog1py(extra, -spike) + self.inner.log_prior(params, hyper, how))

    def slope(self, stats: Twofold, params: Params, hyper: Hyper, how: How) -> Params:
        told, spike = stats.value[..., :2] + self._prior_rows(hyper, how)[..., None], params["spike"]
        steep = told[..., 0] / np.maximum(spike, SMALLEST) - told[..., 1] / np.maximum(1.0 - spike, SMALLEST)
        rest = {name: value for name, value in params.items() if name != "spike"}
        return {"spike": steep} | self.inner.slope(stats[..., 1:], rest, hyper, how)

    def _prior_rows(self, hyper: Hyper, how: How) -> np.ndarray:
        """Prior rows at the spike and elsewhere, as far as they are in the objective."""
        told = np.asarray(hyper["at_spike"])
        return np.zeros_like(told) if how == "ml" else told - 1.0 if how == "map" else told

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """The spike's share and the inner family integrated separately."""
        rows, told = stats.value, np.maximum(hyper["at_spike"], SMALLEST)
        chosen = betaln(rows[..., 0] + told, rows[..., 1] + told) - betaln(told, told)
        chosen = chosen - rows[..., 0] * np.log(self.rounding)
        return float(chosen.sum()) + self.inner.evidence(stats[..., 1:], hyper)

    def proper(self, hyper: Hyper) -> Hyper:
        return self.inner.proper(hyper) | {"at_spike": np.where(hyper["at_spike"] > 0, hyper["at_spike"], 1.0)}

    def free(self, setting: Setting, groups: int, columns: int = 1) -> int:
        return groups * columns + self.inner.free(self._within(setting), groups, columns)

    def public(self, params: Params, setting: Setting) -> Params:
        return params | self.inner.public(params, self._within(setting))

    def private(self, params: Params, setting: Setting) -> Params:
        spike = np.asarray(params["spike"], float)
        return {"spike": spike} | self.inner.private(params, self._within(setting))

    def scorable(self, params: Params, setting: Setting) -> Params:
        return params | self.inner.scorable(params, self._within(setting))

    def _rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        rest = self.inner.moved(stats[..., 1:], was.inner, was._within(old), self._within(new))
        return concatenate([stats[..., :1], rest], axis=-1)

    def overdrawn(self, before: Twofold, after: Twofold, slack: float) -> bool:
        spike = Family.overdrawn(self, before[..., :1], after[..., :1], slack)
        return spike or self.inner.overdrawn(before[..., 1:], after[..., 1:], slack)

    # -- what it says

    @property
    def races(self) -> bool:
        return self.inner.logged and self.inner.has_products

    def raced(self, params: Params, setting: Setting) -> np.ndarray:
        """Of the spike, and of the logarithms of the other numbers, which are counted in their own unit."""
        with np.errstate(divide="ignore"):
            at, off = np.log(params["spike"]) - np.log(self.rounding), np.log1p(-params["spike"])
        beside = self.inner.natural(params)
        beside = np.concatenate([beside[..., :1] + off[..., None], beside[..., 1:]], axis=-1)
        return np.concatenate([np.maximum(at, -1e200)[..., None], beside], axis=-1)

    def score(self, column: np.ndarray, params: Params, setting: Setting) -> np.ndarray:
        rest = {name: value for name, value in params.items() if name != "spike"}
        beside = self.inner.score(self._beside(column), rest, self._within(setting))
        at, off = self._logs(params)
        scored = np.where((column == self.at)[:, None], at, off + beside)
        return np.where(np.isnan(column)[:, None], 0.0, scored)

    def _logs(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """The score of a number at the spike, and what any other scores in addition to its density."""
        with np.errstate(divide="ignore"):
            return np.log(params["spike"]) - np.log(self.rounding), np.log1p(-params["spike"])

    def formula(self, params: Params, keys: Keys, sizes: Sizes) -> Formula | None:
        rest = {name: value for name, value in params.items() if name != "spike"}
        beside, (on, off) = self.inner.formula(rest, keys, sizes), self._logs(params)
        if beside is None:
            return None
        return Choose((Compare("=", Cell(keys[0]), formula(self.at)),), formula(on), beside + formula(off))

    def draw(self, params: Params, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        beside = self.inner.draw(params, groups, rng)
        return np.where(rng.random(len(groups)) < params["spike"][groups], self.at, beside)

    def moments(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        spike, (mean, variance) = params["spike"], self.inner.moments(params)
        off = mean - self.at
        with np.errstate(over="ignore"):
            return self.at + (1.0 - spike) * off, (1.0 - spike) * (variance + spike * off * off)

    def cdf(self, params: Params, x: float) -> np.ndarray:
        spike = params["spike"]
        return np.asarray(spike * (x >= self.at) + (1.0 - spike) * self.inner.cdf(params, x))

    def survival(self, params: Params, x: float) -> np.ndarray:
        spike = params["spike"]
        return np.asarray(spike * (x < self.at) + (1.0 - spike) * self.inner.survival(params, x))

    def mass_at(self, params: Params, x: float) -> np.ndarray:
        spike = params["spike"]
        return np.asarray(spike * (x == self.at) + (1.0 - spike) * self.inner.mass_at(params, x))

    @property
    def has_cdf(self) -> bool:
        return self.inner.has_cdf

    def entropy(self, params: Params) -> np.ndarray:
        return self._surprise(params["spike"], self.inner.entropy(params))

    def divergence(self, params: Params, shares: np.ndarray) -> np.ndarray:
        """That of the shares at the spike, plus that of the inner family among the other rows."""
        spike, beside = params["spike"], shares * (1.0 - params["spike"])
        whole = float(shares @ spike)
        far = _times_log(spike, spike) - _times_log(spike, whole)
        far = far + _times_log(1.0 - spike, 1.0 - spike) - _times_log(1.0 - spike, 1.0 - whole)
        beside = beside / beside.sum() if beside.sum() > 0 else shares
        return np.asarray(far + (1.0 - spike) * self.inner.divergence(params, beside))

    def average_surprise(self, params: Params, setting: Setting, present: np.ndarray | None = None) -> np.ndarray:
        return self._surprise(params["spike"], self.inner.average_surprise(params, self._within(setting)))

    def _surprise(self, spike: np.ndarray, beside: np.ndarray) -> np.ndarray:
        chosen = entr(spike) + entr(1.0 - spike) + spike * np.log(self.rounding)
        return np.asarray(chosen + (1.0 - spike) * beside)

    def describe(self, params: Params, setting: Setting) -> list[str]:
        beside, at = self.inner.describe(params, self._within(setting)), said(setting, self.at, spoken(self.at, 4))
        return [
            f"{100 * spike:.0f} % at {at}, else {said}" for spike, said in zip(params["spike"], beside, strict=True)
        ]

    def typical(self, params: Params, setting: Setting) -> list[Any]:
        beside = self.inner.typical(params, self._within(setting))
        return [self.at if spike >= 0.5 else other for spike, other in zip(params["spike"], beside, strict=True)]


_RAIN = [0.0, 0.0, None, 4.25, 6.5, 11.0, 0.5, 0.0, 30.5, 0.0, 2.0, 9.0]


def _times_log(share: np.ndarray, of: Any) -> np.ndarray:
    """Shares times logarithms, 0 if a share is 0; SciPy's `xlogy` takes 0.15 s to load for a page."""
    there = share > 0
    return np.where(there, share * np.log(np.where(there, of, 1.0)), 0.0)


EXAMPLES = (
    example(Spiked("lognormal"), "rain", _RAIN, Cells("waits")),
    example(Spiked("normal", 2.0, 0.25), "shift", [2.0, -1.5, None, 2.0, 4.0, 7.25, 2.0, 0.5], Cells("reals")),
)
