"""Spiked columns: one value that many rows hold, mostly zero, and a density of the other numbers."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Twofold, concatenate
from softcount.core.formulas import Cell, Choose, Compare, Formula, Keys, Sizes, formula
from softcount.core.lazy import betaln, entr, xlog1py, xlogy
from softcount.errors import DataError
from softcount.families.base import FAMILIES, Family, format_number, register, scalar_prior, write_number
from softcount.families.categorical import divergence_of_shares, estimate_shares
from softcount.families.density import Density
from softcount.families.learning import convert_stats
from softcount.families.setting import SMALLEST, Facts, How, Hyper, Params, Setting
from softcount.table.schema import Key, Kind

INNER = ("lognormal", "gamma", "exponential", "normal")
"""Families of the other numbers. They are densities; others would count the value of the spike twice."""


class SpikedDensity(Density):
    """A spike, and the density of the other numbers."""

    family: Spiked

    @cached_property
    def others(self) -> Density:
        own = {name: value for name, value in self.own.items() if name != "spike"}
        return self.family.inner.density(own, self.family._within(self.setting))

    @cached_property
    def params(self) -> Params:
        return self.own | self.others.params

    @property
    def spike(self) -> np.ndarray:
        """Probability of the spike in every group."""
        return self.own["spike"]

    def score(self, column: np.ndarray) -> np.ndarray:
        others = self.others.score(self.family._others(column))
        at, off = self.family._logs(self.own)
        scored = np.where((column == self.family.at)[:, None], at, off + others)
        return np.where(np.isnan(column)[:, None], 0.0, scored)

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        others, (on, off) = self.others.formula(keys, sizes), self.family._logs(self.own)
        if others is None:
            return None
        return Choose((Compare("=", Cell(keys[0]), formula(self.family.at)),), formula(on), others + formula(off))

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        others = self.others.draw(groups, rng)
        return np.where(rng.random(len(groups)) < self.spike[groups], self.family.at, others)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        (mean, variance), at = self.others.moments(), self.family.at
        off = mean - at
        with np.errstate(over="ignore"):
            return at + (1.0 - self.spike) * off, (1.0 - self.spike) * (variance + self.spike * off * off)

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        counts = (x < self.family.at) if above else (x >= self.family.at)
        return np.asarray(self.spike * counts + (1.0 - self.spike) * self.others.cdf(x, above))

    def mass_at(self, x: float) -> np.ndarray:
        return np.asarray(self.spike * (x == self.family.at) + (1.0 - self.spike) * self.others.mass_at(x))

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        spike = self.spike
        chosen = entr(spike) + entr(1.0 - spike) + spike * np.log(self.family.rounding)
        return np.asarray(chosen + (1.0 - spike) * self.others.entropy())

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        """Return the divergence of the shares at the spike, plus that of the other rows."""
        spike, others = self.spike, shares * (1.0 - self.spike)
        far = divergence_of_shares(np.stack([spike, 1.0 - spike], axis=-1), shares)
        others = others / others.sum() if others.sum() > 0 else shares
        return np.asarray(far + (1.0 - spike) * self.others.divergence(others))

    def describe(self) -> list[str]:
        at = write_number(self.setting, self.family.at)
        each = zip(self.spike, self.others.describe(), strict=True)
        return [f"{100 * spike:.0f} % at {at}, else {words}" for spike, words in each]

    def typical(self) -> list[Any]:
        each = zip(self.spike, self.others.typical(), strict=True)
        return [self.family.at if spike >= 0.5 else other for spike, other in each]


@cache
def _facts(of: str, at: float) -> Facts:
    inner = FAMILIES[of]().facts
    return Facts(
        chart={"spike": "share", **inner.chart}, title=f"{of} with a spike at {format_number(at, 4)}",
        has_products=False, raced=inner.kind.logged and inner.has_products, signed=True, spread=inner.spread,
        rows=slice(0, 2), spike=at, logged=inner.kind.logged,
    )  # fmt: skip


@register
class Spiked(Family, Struct, frozen=True):
    """Numbers with one frequent value, such as rainfall: mostly 0, otherwise a positive amount.

    A row holds the value `at` with probability `spike`. All other rows have a distribution of the family `of`.

    Parameters
    ----------
    of : {'lognormal', 'gamma', 'exponential', 'normal'}, default='lognormal'
        Family of the other rows.
    at : float, default=0.0
        The value that many rows hold.
    rounding : float, default=1.0
        Step to which the numbers are rounded. Scores use the spike as a density of this width, so that they are
        comparable with the scores of other families.

    See Also
    --------
    LogNormal : Positive numbers without a spike.
    Exponential : Waiting times, 0 included.
    Mixed : Numbers with several modes.

    Notes
    -----
    A model has `spike` for every class, and the parameters of the family `of`. Statistics are the rows at the spike,
    then those of the other family.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"rain": [0.0, 0.0, 0.0, 4.0, 6.0, 0.0, 2.0, 3.0, 3.0, 4.0]}
    >>> kinds = {"rain": families.Spiked("normal")}
    >>> model = NaiveBayes(kinds=kinds, estimate="ml").fit(rows, ["dry"] * 5 + ["wet"] * 5)
    >>> {name: value.round(6).tolist() for name, value in model.params_["rain"].items()}
    {'spike': [0.6, 0.2], 'mean': [5.0, 3.0], 'variance': [1.0, 0.5]}
    """

    of: str = "lognormal"
    at: float = 0.0
    rounding: float = 1.0

    name = "spiked"
    _density = SpikedDensity

    def __post_init__(self) -> None:
        if self.of not in INNER:
            raise DataError(f"Spiked({self.of!r}): the other numbers are one of {', '.join(INNER)}.")
        for value, least in ((self.at, -np.inf), (self.rounding, 0.0)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not least < value < np.inf:
                raise DataError(
                    f"Spiked: the value of a spike is finite and its rounding is above zero, not {value!r}."
                )

    @property
    def inner(self) -> Family:
        """Family of the other numbers."""
        return FAMILIES[self.of]()

    @property
    def facts(self) -> Facts:  # type: ignore[override]
        return _facts(self.of, self.at)

    def _within(self, setting: Setting) -> Setting:
        """Return the setting of the other family: logarithms are counted from that of a typical number."""
        if self.inner.facts.kind is not Kind.POSITIVE:
            return setting
        return replace(setting, anchor=-np.log(setting.scale), scale=np.ones(len(setting.scale)))

    def _others(self, column: np.ndarray) -> np.ndarray:
        return np.where(column == self.at, np.nan, column)

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        self.inner.check(self._others(column), key, start)

    def width(self, setting: Setting) -> int:
        return 1 + self.inner.width(self._within(setting))

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        spike = (column == self.at).astype(np.float64)[:, None]
        return np.concatenate([spike, self.inner.features(self._others(column), self._within(setting))], axis=1)

    def count(self, column: np.ndarray, memberships: np.ndarray, params: Params | None, setting: Setting) -> Twofold:
        spike = Twofold.of(memberships.T @ (column == self.at).astype(np.float64)[:, None])
        rest = self.inner.count(self._others(column), memberships, params, self._within(setting))
        return concatenate([spike, rest], axis=1)

    def base(self, column: np.ndarray) -> np.ndarray | float:
        return self.inner.base(self._others(column))

    # -- learning

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        """Return the prior of the inner family, with as many prior rows at the spike as elsewhere."""
        plain = scalar_prior(prior, self, 2, setting.groups)
        inner = self.inner.hyper(prior, stats[..., 1:], self._within(setting))
        return inner | {"at_spike": np.full(stats.shape[1:-1], plain)}

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        alpha = np.broadcast_to(np.asarray(hyper["at_spike"])[..., None], (*stats.shape[1:-1], 2))
        shares = estimate_shares(stats.value[..., :2], alpha, how, self.name)
        return {"spike": np.asarray(shares[..., 0])} | self.inner.estimate(stats[..., 1:], hyper, how, fixed)

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
        counts, spike = stats.value[..., :2] + self._prior_rows(hyper, how)[..., None], params["spike"]
        steep = counts[..., 0] / np.maximum(spike, SMALLEST) - counts[..., 1] / np.maximum(1.0 - spike, SMALLEST)
        return {"spike": steep} | self.inner.slope(stats[..., 1:], params, hyper, how)

    def _prior_rows(self, hyper: Hyper, how: How) -> np.ndarray:
        """Return the prior rows at the spike, equal to those elsewhere, that are part of the objective."""
        prior = np.asarray(hyper["at_spike"])
        return np.zeros_like(prior) if how == "ml" else prior - 1.0 if how == "map" else prior

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        """Return the log evidence; the share of the spike and the inner family are integrated separately."""
        rows, prior = stats.value, np.maximum(hyper["at_spike"], SMALLEST)
        chosen = betaln(rows[..., 0] + prior, rows[..., 1] + prior) - betaln(prior, prior)
        chosen = chosen - rows[..., 0] * np.log(self.rounding)
        return float(chosen.sum()) + self.inner.evidence(stats[..., 1:], hyper)

    def proper(self, hyper: Hyper) -> Hyper:
        return self.inner.proper(hyper) | {"at_spike": np.where(hyper["at_spike"] > 0, hyper["at_spike"], 1.0)}

    def public(self, params: Params, setting: Setting) -> Params:
        return params | self.inner.public(params, self._within(setting))

    def private(self, params: Params, setting: Setting) -> Params:
        spike = np.asarray(params["spike"], float)
        return {"spike": spike} | self.inner.private(params, self._within(setting))

    def rebase(self, stats: Twofold, was: Any, old: Setting, new: Setting) -> Twofold:
        rest = convert_stats(self.inner, stats[..., 1:], was.inner, was._within(old), self._within(new))
        return concatenate([stats[..., :1], rest], axis=-1)

    def is_overdrawn(self, before: Twofold, after: Twofold, slack: float) -> bool:
        spike = Family.is_overdrawn(self, before[..., :1], after[..., :1], slack)
        return spike or self.inner.is_overdrawn(before[..., 1:], after[..., 1:], slack)

    # -- answers

    def natural(self, params: Params) -> np.ndarray:
        """Return natural parameters of the spike, and of the other numbers in their own unit."""
        at, off = self._logs(params)
        others = self.inner.natural(params)
        others = np.concatenate([others[..., :1] + off[..., None], others[..., 1:]], axis=-1)
        return np.concatenate([np.maximum(at, -1e200)[..., None], others], axis=-1)

    def _logs(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """Return the score of a number at the spike, and the term that any other number adds to its density."""
        with np.errstate(divide="ignore"):
            return np.log(params["spike"]) - np.log(self.rounding), np.log1p(-params["spike"])
