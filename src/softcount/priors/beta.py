"""A share of successes, learned by counting successes and failures."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softcount.core.special import log_rising, plain
from softcount.errors import DataError
from softcount.priors.distribution import Distribution, Number, Seed, against, nonnegative, require, shown, tail


class Beta(Distribution, frozen=True, eq=False):
    """What is believed about a share, as if `alpha` successes and `beta` failures had been counted.

    Beta(1, 1) believes every share alike; Beta(0, 0) is no belief at all and has no mean until something is counted.

    >>> after = Beta(5, 3).update(successes=1, failures=2)
    >>> after
    Beta(alpha=6.0, beta=5.0)
    >>> round(after.mode, 6), round(after.predict(), 6)
    (0.555556, 0.545455)
    >>> Beta(1, 1).update(successes=[3, 0], failures=[1, 2]).mean.round(3).tolist()   # two groups at once
    [0.667, 0.25]
    """

    alpha: Number
    beta: Number

    def __post_init__(self) -> None:
        remedy = "Imagined counts are finite and 0 or more: Beta(1, 1) imagines one success and one failure."
        self._settle(
            alpha=nonnegative("Beta's alpha", self.alpha, remedy),
            beta=nonnegative("Beta's beta", self.beta, remedy),
        )

    def update(self, successes: ArrayLike = 0.0, failures: ArrayLike = 0.0) -> Beta:
        """The belief after counting: the counts are added. Arrays hold one count per group."""
        won, lost = nonnegative("successes", successes), nonnegative("failures", failures)
        return Beta(self.alpha + won, self.beta + lost)

    @property
    def total(self) -> Number:
        """How many counts the belief is worth."""
        return plain(self.alpha + self.beta)

    @property
    def mean(self) -> Number:
        """The expected share, alpha / (alpha + beta)."""
        remedy = "Without any count there is no mean: update with data first, or start from Beta(1, 1)."
        require(np.asarray(self.total) > 0, self.total, "Beta's alpha + beta", remedy)
        return plain(self.alpha / self.total)

    @property
    def mode(self) -> Number:
        """The likeliest share, (alpha - 1) / (alpha + beta - 2), and 1/2 for Beta(1, 1), where all are alike.

        So Beta(1, 1) with any data has the maximum-likelihood share as its mode. Below 1 the density runs off to
        infinity at an end: refused.
        """
        remedy = "Below 1 there is no interior mode: use the mean, or imagine at least 1 of each."
        for name, count in (("alpha", self.alpha), ("beta", self.beta)):
            require(np.asarray(count) >= 1, count, f"Beta's {name}", remedy)
        above = np.asarray(self.alpha) - 1
        total = above + (np.asarray(self.beta) - 1)
        return plain(np.where(total == 0, 0.5, above / np.where(total == 0, 1.0, total)))

    @property
    def variance(self) -> Number:
        """How far shares spread around the mean, squared."""
        mean = self.mean
        return plain(mean * (1 - mean) / (self.total + 1))

    def pdf(self, x: ArrayLike) -> Number:
        """The density of each share in x, per group; 0 outside 0 to 1."""
        from scipy.stats import beta

        self._proper()
        points, a, b = against(x, self.alpha, self.beta)
        return plain(beta.pdf(points, a, b))

    def interval(self, level: float = 0.95) -> tuple[Number, Number]:
        """The low and high ends of an equal-tailed range holding the share with this probability."""
        from scipy.special import betainccinv, betaincinv

        self._proper()
        out = tail(level)
        return plain(betaincinv(self.alpha, self.beta, out)), plain(betainccinv(self.alpha, self.beta, out))

    def predict(self, success: bool = True) -> Number:
        """The probability that the next trial is a success, or with `success=False` that it is a failure."""
        if success not in (True, False):
            raise DataError(f"The next trial is a success or a failure, True or False, not {success!r}.")
        return self.mean if success else Beta(self.beta, self.alpha).mean

    def log_evidence(self, successes: ArrayLike = 0.0, failures: ArrayLike = 0.0) -> Number:
        """The log-probability of seeing these trials, in the order they came, before any of them was seen.

        For the probability of the counts in any order, add the logarithm of the binomial coefficient.

        >>> round(float(np.exp(Beta(1, 1).log_evidence(1, 2))), 6)   # 1/2 * 1/3 * 2/4
        0.083333
        """
        self._proper()
        won, lost = nonnegative("successes", successes), nonnegative("failures", failures)
        return plain(log_rising(self.alpha, won) + log_rising(self.beta, lost) - log_rising(self.total, won + lost))

    evidence = log_evidence
    """The same by its short name."""

    def sample(self, n: int = 1, random_state: Seed = None) -> np.ndarray:
        """n shares drawn from the belief, groups first."""
        self._proper()
        _, a, b = against([0.0], self.alpha, self.beta)
        return np.random.default_rng(random_state).beta(a, b, size=(*np.shape(self.alpha), n))

    def describe(self) -> str:
        """The belief in one line.

        >>> Beta(6, 5).describe()
        'a share of 0.5455 (0.2624 to 0.8129 with 95 %), worth 6 successes and 5 failures'
        """
        worth = f"worth {shown(self.alpha)} successes and {shown(self.beta)} failures"
        if np.any(np.asarray(self.alpha) == 0) or np.any(np.asarray(self.beta) == 0):
            return f"a share, {worth}"
        if np.ndim(self.alpha):
            return f"shares of {shown(self.mean)}, {worth}"
        low, high = self.interval()
        return f"a share of {shown(self.mean)} ({shown(low)} to {shown(high)} with 95 %), {worth}"

    def _proper(self) -> None:
        remedy = "With no imagined count on one side this is not a distribution: use at least a little, such as 0.5."
        for name, count in (("alpha", self.alpha), ("beta", self.beta)):
            require(np.asarray(count) > 0, count, f"Beta's {name}", remedy)
