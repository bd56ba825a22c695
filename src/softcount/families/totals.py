"""Columns whose statistics are rows and a total: waiting times, failures before a success, Poisson counts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from softcount.core import remedies
from softcount.core.counts import Twofold
from softcount.core.formulas import CLAMPED, Cell, Formula, Keys, Sizes, formula
from softcount.core.lazy import betainc, betaln, gammaln, pdtrc, xlog1py
from softcount.core.special import log_negative_binomial, log_of, log_rising, pdtr
from softcount.errors import DataError
from softcount.families.base import Family, register, scalar_prior, where_first
from softcount.families.density import Density
from softcount.families.learning import product
from softcount.families.setting import SMALLEST, Facts, How, Hyper, Params, Setting
from softcount.priors import Beta, Gamma
from softcount.table.schema import Key, Kind

Pair = tuple[np.ndarray, np.ndarray]
LEAST = 1e-12
"""Minimum number of rows of a predictive form, for groups without observed or prior rows."""


class TotalsDensity(Density):
    """A density of values, or its average over the posterior of its parameter."""

    family: Totals

    @property
    def after(self) -> Pair | None:
        """Rows and total of a predictive form; None for plugged-in parameters."""
        rows, total = self.family.prior_names
        return (self.own[rows], self.own[total]) if rows in self.own else None

    def score(self, column: np.ndarray) -> np.ndarray:
        if self.after is None:
            return super().score(column)
        x = column[:, None]
        return np.where(np.isnan(x), 0.0, self.family.predicted(np.where(np.isnan(x), 0.0, x), *self.after))

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        """Return the entropy, -E[T] . eta if the density has no other part."""
        if type(self.family).base is not Family.base or not self.is_product:
            return super().entropy()
        return -product(self._mean_features(), self.family.natural(self.own))

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        """Return E[T] . (eta of the group - eta of the whole), with plugged-in parameters.

        The whole is the member of the family with the mean features of all groups together.
        """
        plain = type(self)(self.family, {name: self.own[name] for name in self.family.facts.chart}, self.setting)
        means = plain._mean_features()
        together = Twofold.of((shares @ means)[None])
        hyper = self.family.hyper(0.0, together, Setting())
        whole = self.family.natural(self.family.estimate(together, hyper, "ml"))
        return product(means, self.family.natural(plain.own) - whole)

    def _mean_features(self) -> np.ndarray:
        mean = self.moments()[0]
        return np.stack([np.ones_like(mean), mean], axis=-1)

    def weighted_formula(self, weights: np.ndarray, keys: Keys, sizes: Sizes) -> Formula | None:
        start, slope = weights.T
        return Cell(keys[0]) * formula(slope) + formula(start)


class Totals(Family):
    """Base of families whose statistics are rows and a total. A prior of `a` adds `a` rows like the average row.

    A family implements `fitted`, its parameters from rows and total; `natural`; its conjugate prior and `log_mass`;
    `draw` and `moments`. `predicted` follows from `log_mass`, unless a family computes it more precisely.
    """

    facts = Facts(n_features=2, rows=0)
    _density = TotalsDensity
    prior_names: ClassVar[tuple[str, str]] = ("rows", "total")
    """Names of prior rows and their total, in the prior and in the parameters of the predictive form."""
    conjugate: ClassVar[Any] = None
    """Class of priors that can be given as an object, and of posteriors."""
    conjugate_parts: ClassVar[tuple[str, str]] = ("", "")
    """Parameters of the conjugate prior that are prior rows and their total."""
    beyond_mode: ClassVar[tuple[float, float]] = (0.0, 0.0)
    """How many more rows, and how much more total, such a prior has than its mode."""

    def fitted(self, rows: np.ndarray, total: np.ndarray, hyper: Hyper) -> Params:
        """Return the maximum-likelihood parameters for these rows and this total."""
        raise NotImplementedError

    def log_mass(self, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Return the log of the integral over the parameter of the likelihood of these rows and this total."""
        raise NotImplementedError

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        present = ~np.isnan(column)
        return np.stack([present.astype(np.float64), np.where(present, column, 0.0)], axis=1)

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        pooled = stats.value.sum(axis=0)
        # If all values are zero, count half an event: otherwise every other value would stay impossible.
        whole = np.maximum(pooled[..., 1], 0.5 * (pooled[..., 1] <= 0)) / np.maximum(pooled[..., 0], 0.5)
        explicit = self.conjugate is not None and isinstance(prior, self.conjugate)
        if explicit:
            rows, total = (np.broadcast_to(getattr(prior, part), whole.shape) for part in self.conjugate_parts)
        else:
            extra = scalar_prior(prior, self, groups=setting.groups)
            rows, total = np.full(whole.shape, extra), extra * whole
        found = dict(zip(self.prior_names, (rows, total), strict=True))
        return found | {"whole": whole, "explicit": np.array(float(explicit))}

    def _prior_stats(self, hyper: Hyper, how: How) -> np.ndarray:
        more = np.stack(np.broadcast_arrays(*(hyper[name] for name in self.prior_names)), axis=-1)
        less = np.multiply.outer(hyper["explicit"], self.beyond_mode) if how == "map" else 0.0
        return np.zeros_like(more) if how == "ml" else more - less

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        whole = stats.value + self._prior_stats(hyper, how)
        rows, total = whole[..., 0], whole[..., 1]
        few = how == "map" and bool((rows < 0).any())  # otherwise rounding errors of subtracted rows
        if few or (total < 0).any():
            what = f"rows plus {self.prior_names[0]}" if few else f"total plus {self.prior_names[1]}"
            raise DataError(
                f"{self.name}: {what} is below one, so there is no interior mode. Use {remedies.estimate_mean()}."
            )
        seen = rows > 0
        params = self.fitted(np.where(seen, rows, 1.0), np.where(seen, total, hyper["whole"]), hyper)
        if how == "predictive":
            unit = 1.0 if self.facts.kind is Kind.COUNT else hyper["whole"]
            least = np.maximum(rows, LEAST), np.maximum(total, LEAST * unit)
            params |= dict(zip(self.prior_names, least, strict=True))
        return params

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        rows, total = stats.value[..., 0], stats.value[..., 1]
        before = [np.broadcast_to(np.maximum(hyper[name], 1e-300), rows.shape) for name in self.prior_names]
        grown = self.log_mass(before[0] + rows, before[1] + total) - self.log_mass(*before)
        return float(np.where(rows > 0, grown, 0.0).sum())

    def proper(self, hyper: Hyper) -> Hyper:
        """Without prior rows, use one row like the average row of the column."""
        rows, total = (hyper[name] for name in self.prior_names)
        nothing = (rows <= 0) | (total <= 0)
        one = np.where(nothing, 1.0, rows), np.where(nothing, hyper["whole"], total)
        return hyper | dict(zip(self.prior_names, one, strict=True))

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Any:
        after = (stats.value[..., j] + hyper[name] for j, name in enumerate(self.prior_names))
        return self.conjugate(**dict(zip(self.conjugate_parts, after, strict=True)))

    def predicted(self, x: np.ndarray, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Return the log-density of values after these rows with this total, without `base`."""
        return np.asarray(self.log_mass(rows + 1.0, total + x) - self.log_mass(rows, total))


LEAST_MEAN = 1e-294
"""Smallest mean of the whole column: the largest rate of a group, and its totals, must be finite."""
SHORTEST = 1e-6
"""Smallest mean of a group, as a share of the column's mean: below it scores of other groups' rows lose all digits."""


class ExponentialDensity(TotalsDensity):
    """Exponential, or Lomax in the predictive form."""

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        after, rate = self.after, self.own["rate"][groups]
        rate = rate if after is None else rng.gamma(after[0][groups], 1.0 / after[1][groups])
        return np.asarray(rng.standard_exponential(len(groups)) / rate)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        after = self.after
        if after is None:
            return 1.0 / self.own["rate"], self.own["rate"] ** -2
        with np.errstate(divide="ignore", over="ignore"):  # infinite after too few rows
            mean = after[1] / np.maximum(after[0] - 1.0, 0.0)
            return mean, mean**2 * after[0] / np.maximum(after[0] - 2.0, 0.0)

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        after, x = self.after, max(x, 0.0)
        hazard = self.own["rate"] * x if after is None else after[0] * np.log1p(x / after[1])
        return np.asarray(np.exp(-hazard) if above else -np.expm1(-hazard))


@register
class Exponential(Totals, Struct, frozen=True):
    """Exponential distribution: waiting times of 0 or more.

    The density of x is rate exp(-rate x), and the mean is 1 / rate.

    See Also
    --------
    Geometric : Waiting times that are whole numbers.
    Gamma : Positive numbers with a shape as well.
    softcount.priors.Gamma : The conjugate prior: `Gamma(shape, rate)` is a prior of `shape` rows with a total of
        `rate`.

    Notes
    -----
    A model has the `rate` of every class. With `estimate="predictive"` the distribution of a new row is Lomax. The rate
    has an upper limit, because rows of zeros would be infinitely likely. Statistics are the number of rows and their
    sum.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"minutes": [1.0, 3.0, 10.0, 30.0]}
    >>> kinds = {"minutes": families.Exponential()}
    >>> model = NaiveBayes(kinds=kinds, estimate="ml").fit(rows, ["am", "am", "pm", "pm"])
    >>> model.params_["minutes"]["rate"].tolist()
    [0.5, 0.05]
    """

    name = "exponential"
    _density = ExponentialDensity
    facts = Facts(chart={"rate": "log"}, n_features=2, rows=0, signed=True, spread="rate")
    conjugate = Gamma
    conjugate_parts = ("shape", "rate")
    beyond_mode = (1.0, 0.0)

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        if (bad := column < 0).any():
            row = where_first(bad, start)
            held = f"column {key!r} is a waiting time (exponential), but row {row} holds {column[row - start - 1]:g}"
            raise DataError(f"{held}. Waiting times are 0 or more. Declare it real: {remedies.kind(key, 'normal')}")

    def hyper(self, prior: Any, stats: Twofold, setting: Setting) -> Hyper:
        found = Totals.hyper(self, prior, stats, setting)
        if (small := found["whole"] < LEAST_MEAN).any():
            key = setting.keys[int(np.argmax(small))]
            mean = float(np.min(found["whole"]))
            raise DataError(
                f"column {key!r} has waiting times of {mean:.3g} on average, whose rate is too large for a float. "
                f"Use a smaller unit: multiply the column, for instance by 1e100."
            )
        return found | {"top": 1.0 / (found["whole"] * np.maximum(np.sqrt(setting.floor), SHORTEST))}

    def fitted(self, rows: np.ndarray, total: np.ndarray, hyper: Hyper) -> Params:
        return {"rate": np.minimum(rows / np.maximum(total, SMALLEST), hyper["top"])}

    def natural(self, params: Params) -> np.ndarray:
        return np.stack([np.log(params["rate"]), -params["rate"]], axis=-1)

    def log_mass(self, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.asarray(gammaln(rows) - rows * np.log(total))

    def predicted(self, x: np.ndarray, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(rows) - np.log(total) - (rows + 1.0) * np.log1p(x / total))


class GeometricDensity(TotalsDensity):
    """Geometric, or its average over a beta distribution."""

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        after, p = self.after, self.own["success"][groups]
        p = p if after is None else rng.beta(after[0][groups], after[1][groups])
        return np.asarray(rng.geometric(np.maximum(p, np.finfo(float).tiny)) - 1.0)  # a drawn p may underflow to 0

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        after, p = self.after, self.own["success"]
        if after is None:
            return (1.0 - p) / p, (1.0 - p) / p**2
        a, b = after
        with np.errstate(divide="ignore"):  # infinite after too few rows
            mean = b / np.maximum(a - 1.0, 0.0)
            return mean, mean * (a + b - 1.0) * a / (np.maximum(a - 1.0, 0.0) * np.maximum(a - 2.0, 0.0))

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        after, more = self.after, max(np.floor(x) + 1.0, 0.0)
        if after is None:
            with np.errstate(divide="ignore"):
                log_survival = xlog1py(more, -self.own["success"])
        else:
            log_survival = log_rising(after[1], more) - log_rising(sum(after), more)
        return np.asarray(np.exp(log_survival) if above else -np.expm1(log_survival))


@register
class Geometric(Totals, Struct, frozen=True):
    """Geometric distribution: failures before the first success, 0, 1, 2, ...

    The probability of x is success (1 - success)^x, and the mean is (1 - success) / success.

    See Also
    --------
    Poisson : Counts of independent events.
    Exponential : Waiting times that are not whole numbers.
    softcount.priors.Beta : The conjugate prior: `Beta(successes, failures)`.

    Notes
    -----
    A model has the probability `success` of every class. Statistics are the number of rows (one success each) and their
    sum (the failures).

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> kinds = {"tries": families.Geometric()}
    >>> model = NaiveBayes(kinds=kinds, estimate="ml").fit({"tries": [0, 2, 3, 7]}, ["a"] * 4)
    >>> model.params_["tries"]["success"].tolist()
    [0.25]
    """

    name = "geometric"
    _density = GeometricDensity
    facts = Facts(kind=Kind.COUNT, chart={"success": "share"}, n_features=2, rows=0)
    prior_names = ("successes", "failures")
    conjugate = Beta
    conjugate_parts = ("alpha", "beta")
    beyond_mode = (1.0, 1.0)

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


class PoissonDensity(TotalsDensity):
    """Poisson, or negative binomial in the predictive form."""

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        rate = self.own["rate"][groups]
        if "shape" in self.own:
            rate = rng.gamma(self.own["shape"][groups], 1.0 / self.own["rows"][groups])
        return np.asarray(rng.poisson(rate).astype(np.float64))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        rate = self.own["rate"]
        return rate, rate + (rate / self.own["rows"] if "rows" in self.own else 0.0)

    def cdf(self, x: float, above: bool = False) -> np.ndarray:
        if x < 0:
            return np.full(len(self.own["rate"]), float(above))
        count = np.floor(x)
        if "shape" not in self.own:
            return np.asarray((pdtrc if above else pdtr)(count, self.own["rate"]))
        if above:
            return np.asarray(betainc(count + 1.0, self.own["shape"], 1.0 / (1.0 + self.own["rows"])))
        return np.asarray(betainc(self.own["shape"], count + 1.0, self.own["rows"] / (1.0 + self.own["rows"])))

    def find_fault(self) -> str | None:
        return None if (self.own["rate"] >= 0).all() else "its rates are not all 0 or more"


@register
class Poisson(Totals, Struct, frozen=True):
    """Poisson distribution: counts 0, 1, 2, ... of independent events.

    The probability of x is rate^x exp(-rate) / x!, and the mean and the variance are both the rate.

    See Also
    --------
    Geometric : Counts with a variance above the mean.
    Binomial : Successes among a known number of trials.
    Multinomial : Several counts of one total.
    softcount.priors.Gamma : The conjugate prior: `Gamma(shape, rate)` is a prior of `rate` rows with a total of
        `shape`.

    Notes
    -----
    A model has the `rate` of every class. A prior of a rows adds a rows with the mean of the whole column. With
    `estimate="predictive"` the distribution of a new row is negative binomial. Statistics are the number of rows and
    their sum.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"calls": [0, 1, 2, 4, 5, 6]}
    >>> kinds = {"calls": families.Poisson()}
    >>> model = NaiveBayes(kinds=kinds, estimate="ml").fit(rows, ["quiet"] * 3 + ["busy"] * 3)
    >>> dict(zip(model.classes_.tolist(), model.params_["calls"]["rate"].tolist()))
    {'busy': 5.0, 'quiet': 1.0}
    """

    name = "poisson"
    _density = PoissonDensity
    facts = Facts(kind=Kind.COUNT, chart={"rate": "log"}, n_features=2, rows=0)
    prior_names = ("rows", "shape")
    conjugate = Gamma
    conjugate_parts = ("rate", "shape")
    beyond_mode = (0.0, 1.0)

    def base(self, column: np.ndarray) -> np.ndarray | float:
        return np.where(np.isnan(column), 0.0, -gammaln(column + 1.0))

    def fitted(self, rows: np.ndarray, total: np.ndarray, hyper: Hyper) -> Params:
        return {"rate": total / rows}

    def natural(self, params: Params) -> np.ndarray:
        rate = params["rate"]
        return np.stack([-rate, np.maximum(log_of(rate), CLAMPED)], axis=-1)

    def predicted(self, x: np.ndarray, rows: np.ndarray, total: np.ndarray) -> np.ndarray:
        return log_negative_binomial(x, total, rows)

    def evidence(self, stats: Twofold, hyper: Hyper) -> float:
        rows, total = stats.value[..., 0], stats.value[..., 1]
        shape, extra = np.broadcast_arrays(np.maximum(hyper["shape"], 1e-300), hyper["rows"], rows)[:2]
        with np.errstate(divide="ignore"):
            return float(np.where(rows > 0, log_negative_binomial(total, shape, extra, rows), 0.0).sum())
