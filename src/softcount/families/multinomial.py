"""Blocks of counts: several counts per row that share one set of probabilities, or successes of trials."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Twofold
from softcount.core.formulas import CLAMPED, Cell, Choose, Formula, Keys, Sizes, formula, there, total, unless_missing
from softcount.core.lazy import betaln, gammaln
from softcount.core.special import log_of, log_rising
from softcount.errors import DataError
from softcount.families.base import Family, check_counts, register, where_first
from softcount.families.categorical import Shares, SharesDensity, estimate_shares
from softcount.families.density import Density
from softcount.families.setting import Facts, How, Hyper, Params, Setting
from softcount.priors import Beta
from softcount.table.schema import Key, Kind


class MultinomialDensity(SharesDensity):
    """Counts of columns, or Dirichlet-multinomial in the predictive form."""

    family: Multinomial

    def score(self, column: np.ndarray) -> np.ndarray:
        if "alpha" not in self.own:
            return super().score(column)
        from scipy import sparse

        return polya(sparse.csr_matrix(self.family.features(column, self.setting)), self.own["alpha"])

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw a single count per row: the size of the block is not modelled."""
        shares = self.own["probability"][groups]
        return rng.multinomial(1, shares / shares.sum(axis=1, keepdims=True)).astype(np.float64)

    def linear(self) -> tuple[np.ndarray, np.ndarray] | None:
        logs = log_of(self.own["probability"])
        return logs, np.zeros(len(logs))

    def weighted_formula(self, weights: np.ndarray, keys: Keys, sizes: Sizes) -> Formula | None:
        return total([unless_missing(key, Cell(key) * slope) for key, slope in zip(keys, weights.T, strict=True)])


@register
class Multinomial(Shares, Struct, frozen=True):
    """Multinomial distribution: counts of several columns that share one total.

    The probability of counts x_1, ..., x_m is proportional to the product of `probability[j]` to the power x_j. Name
    the block by its columns, `{("goals", "passes"): "multinomial"}`, or give one name for all columns of an array or
    sparse matrix, `kinds="multinomial"`.

    See Also
    --------
    Poisson : Counts of one column, including the total.
    Text : Counts of words, read from documents.
    Binomial : Two columns, successes and trials.

    Notes
    -----
    A model has `probability` (classes x columns). The total of a row is not modelled. A missing count adds 0. With
    `estimate="predictive"` the distribution of a new row is Dirichlet-multinomial. Statistics are the totals of each
    column.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"goals": [1, 2, 6, 9], "passes": [7, 10, 4, 1]}
    >>> kinds = {("goals", "passes"): families.Multinomial()}
    >>> model = NaiveBayes(kinds=kinds, estimate="ml").fit(rows, ["back", "back", "striker", "striker"])
    >>> model.params_["goals", "passes"]["probability"].tolist()
    [[0.15, 0.85], [0.75, 0.25]]
    """

    name = "multinomial"
    _density = MultinomialDensity
    facts = replace(Shares.facts, kind=Kind.COUNT, block=True, takes_bag=True, counted=True, alone=True)
    completed = Family.completed

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        bad = column < 0
        if bad.any():
            row = where_first(bad, start)
            raise DataError(f"Negative values in data: row {row} of block {key!r} has a count below 0.")

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        return column if hasattr(column, "indptr") else np.where(np.isnan(column), 0.0, column)

    def base(self, column: np.ndarray) -> np.ndarray | float:
        if hasattr(column, "indptr"):
            return log_ways(column)
        counts = np.where(np.isnan(column), 0.0, column)
        return np.asarray(gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1))

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        counts = np.maximum(stats.value, 0.0)
        params = {"probability": estimate_shares(counts, hyper["alpha"], how, self.name)}
        if how == "predictive":
            params["alpha"] = counts + hyper["alpha"]
        return params

    def natural(self, params: Params) -> np.ndarray:
        return np.asarray(np.maximum(log_of(params["probability"]), CLAMPED))


@cache
def factorials() -> np.ndarray:
    """Return the logarithms of factorials: nearly every count is small, and a look-up takes a tenth of the time."""
    return np.asarray(gammaln(np.arange(256) + 1.0))


def log_ways(column: Any, first: int = 0) -> np.ndarray:
    """Return the log of the number of orders of each sparse row's counts; columns before `first` are not counts."""
    counts, places = column.data, column.data.astype(np.intp)
    small = bool(((places < len(factorials())) & (places == counts)).all())
    logs = factorials()[places] if small else gammaln(counts + 1.0)
    ones = np.ones(column.shape[1])
    each = type(column)((logs, column.indices, column.indptr), shape=column.shape) @ ones
    ones[:first] = 0.0
    return np.asarray(gammaln(column @ ones + 1.0) - each)


def polya(column: Any, alpha: np.ndarray) -> np.ndarray:
    """Return the (rows x groups) log-probability of each sparse row's counts, with probabilities integrated out.

    Most words occur once, which takes only log(alpha); the others take a gamma function each.
    """
    there = type(column)((np.ones(len(column.data)), column.indices, column.indptr), shape=column.shape)
    out = np.asarray(there @ np.log(alpha).T)
    more = np.flatnonzero(column.data != 1)
    rows = np.repeat(np.arange(column.shape[0]), np.diff(column.indptr))[more]
    ids, times = column.indices[more], column.data[more]
    for g, own in enumerate(alpha if len(more) else ()):
        a = own[ids]
        out[:, g] += np.bincount(rows, gammaln(a + times) - gammaln(a) - np.log(a), minlength=len(out))
    total = np.asarray(column.sum(axis=1), dtype=np.float64).reshape(-1, 1)
    return np.asarray(out - np.asarray(log_rising(alpha.sum(axis=-1), total)))


class BinomialDensity(Density):
    """Successes of trials, or beta-binomial in the predictive form."""

    family: Binomial

    def score(self, column: np.ndarray) -> np.ndarray:
        if "alpha" not in self.own:
            return super().score(column)
        counts = self.family.features(column, self.setting)
        beta, alpha = self.own["alpha"][:, 0], self.own["alpha"][:, 1]
        return np.asarray(betaln(alpha + counts[:, 1:], beta + counts[:, :1]) - betaln(alpha, beta))

    def draw(self, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw one trial per row: the number of trials is not modelled."""
        hits = (rng.random(len(groups)) < self.own["probability"][groups]).astype(np.float64)
        return np.stack([hits, np.ones(len(groups))], axis=1)

    def describe(self) -> list[str]:
        return [f"{100 * p:.1f} % successes" for p in self.own["probability"]]

    def typical(self) -> list[Any]:
        return list(self.own["probability"].tolist())

    def divergence(self, shares: np.ndarray) -> np.ndarray:
        return self._trial.divergence(shares)

    def entropy(self, present: np.ndarray | None = None) -> np.ndarray:
        """Return the entropy of one trial: the number of trials is not modelled."""
        return self._trial.entropy()

    @property
    def _trial(self) -> SharesDensity:
        """The shares of failure and success."""
        share = self.own["probability"]
        return SharesDensity(self.family, {"probability": np.stack([1 - share, share], axis=-1)}, self.setting)

    def formula(self, keys: Keys, sizes: Sizes) -> Formula | None:
        if "alpha" in self.own:
            return None
        failure, success = map(formula, self.family.natural(self.own).T)
        hits, trials = map(Cell, keys)
        return Choose(there(keys), (trials - hits) * failure + hits * success, formula(0.0))


@register
class Binomial(Family, Struct, frozen=True):
    """Binomial distribution: the number of successes among a known number of trials.

    It takes two columns, successes and trials: `{("hits", "shots"): "binomial"}`. The probability of x successes in n
    trials is n! / (x! (n - x)!) p^x (1 - p)^(n - x).

    See Also
    --------
    Bernoulli : One trial per row.
    Poisson : Counts without a known number of trials.
    softcount.priors.Beta : The conjugate prior.

    Notes
    -----
    A model has the `probability` of success in every class. The number of trials is not modelled. With
    `estimate="predictive"` the distribution of a new row is beta-binomial. Statistics are failures and successes.

    Examples
    --------
    >>> from softcount import NaiveBayes, families
    >>> rows = {"hits": [1, 2, 5, 6], "shots": [10, 5, 10, 12]}
    >>> kinds = {("hits", "shots"): families.Binomial()}
    >>> model = NaiveBayes(kinds=kinds, estimate="ml").fit(rows, ["ann", "ann", "bob", "bob"])
    >>> model.params_["hits", "shots"]["probability"].tolist()
    [0.2, 0.5]
    """

    name = "binomial"
    _density = BinomialDensity
    facts = Facts(
        kind=Kind.COUNT, chart={"probability": "share"}, n_features=2, block=True, n_columns=2, counted=True, alone=True
    )

    def check(self, column: np.ndarray, key: Key, start: int) -> None:
        for part, name in zip(column.T, key if isinstance(key, tuple) else (key, key), strict=True):
            check_counts(part, name, start)
        bad = column[:, 0] > column[:, 1]
        if bad.any():
            raise DataError(f"block {key!r}: row {where_first(bad, start)} has more successes than trials.")

    def features(self, column: np.ndarray, setting: Setting) -> np.ndarray:
        successes, trials = column.T
        counts = [trials - successes, np.where(np.isnan(trials), np.nan, successes)]
        return np.asarray(np.nan_to_num(np.stack(counts, axis=1)))

    def base(self, column: np.ndarray) -> np.ndarray | float:
        failures, successes = self.features(column, Setting()).T
        return np.asarray(gammaln(failures + successes + 1) - gammaln(failures + 1) - gammaln(successes + 1))

    def estimate(self, stats: Twofold, hyper: Hyper, how: How, fixed: Params | None = None) -> Params:
        counts = np.maximum(stats.value, 0.0)
        params = {"probability": estimate_shares(counts, hyper["alpha"], how, self.name)[..., 1]}
        if how == "predictive":
            params["alpha"] = counts + hyper["alpha"]
        return params

    def natural(self, params: Params) -> np.ndarray:
        p = params["probability"]
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.stack([np.log1p(-p), np.log(p)], axis=-1), CLAMPED))

    tally = Shares.tally
    prior_tally = Shares.prior_tally
    _prior_stats = Shares.prior_tally
    hyper = Shares.hyper
    evidence = Shares.evidence
    proper = Shares.proper

    def posterior(self, stats: Twofold, hyper: Hyper, setting: Setting) -> Beta:
        after = np.maximum(stats.value, 0.0) + hyper["alpha"]
        return Beta(after[..., 1], after[..., 0])
