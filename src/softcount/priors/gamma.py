"""Gamma: the distribution of a Poisson rate, learned from a total and a number of rows."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from softcount.core.special import log_negative_binomial, plain
from softcount.priors.distribution import Given, Number, Seed, against, either, nonnegative, shown, tail
from softcount.priors.normal import no_weights, weighted
from softcount.priors.predictive import Belief, NegativeBinomial, counts_of, log_gamma_pdf


class Gamma(Belief[NegativeBinomial], frozen=True, eq=False):
    r"""Gamma distribution of a Poisson rate, equivalent to `rate` prior rows whose counts sum to `shape`.

    .. math:: p(\lambda) = \frac{b^a}{\Gamma(a)} \lambda^{a - 1} e^{-b \lambda}

    with a = `shape` and b = `rate`. The next count has a negative binomial distribution.

    Parameters
    ----------
    shape : float or array of shape (n_groups,)
        Prior total of the counts, 0 or more.
    rate : float or array of shape (n_groups,)
        Prior rows, 0 or more.

    See Also
    --------
    softcount.families.Poisson : The column that it is the prior of.
    Beta : The share of successes.

    References
    ----------
    .. [1] A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and D. B. Rubin (2013). Bayesian Data
       Analysis, third edition. Chapman and Hall. Section 2.6.

    Examples
    --------
    >>> after = Gamma(2, 1).update(total=10, rows=4)
    >>> after
    Gamma(shape=12.0, rate=5.0)
    >>> after.mean, after.mode
    (2.4, 2.2)
    >>> after.describe()
    'a rate of 2.4 (1.24 to 3.936 with 95 %), worth a total of 12 over 5 rows'
    """

    shape: Number
    rate: Number

    def __post_init__(self) -> None:
        self._settle(
            shape=partial(nonnegative, remedy="A prior total is finite and 0 or more, such as 1."),
            rate=partial(nonnegative, remedy="Prior rows are finite and 0 or more, such as 1."),
        )

    def update(self, total: Given = None, rows: Given = None, *, values: Given = None, weights: Given = None) -> Gamma:
        """Return the posterior after these counts: a total over rows, or the values themselves.

        Parameters
        ----------
        total, rows : float or array of shape (n_groups,), default=None
            Sum of the counts, and number of rows.
        values : array of shape (..., n_rows), default=None
            The counts, rows on the last axis. NaN is missing.
        weights : array of shape (..., n_rows), default=None
            Weights of the values: 2 counts a value twice.

        Returns
        -------
        Gamma
            The distribution, updated with these rows.
        """
        added, seen, _ = _tally(total, rows, values, weights)
        return Gamma(self.shape + added, self.rate + seen)

    @property
    def mean(self) -> Number:
        """The expected rate."""
        remedy = "Without any row there is no mean: update with data first, or use one prior row: Gamma(1, 1)."
        self._require(np.asarray(self.rate) > 0, "rate", remedy)
        return plain(self.shape / self.rate)

    @property
    def mode(self) -> Number:
        """The most probable rate, (shape - 1) / rate. Raises an error below shape 1: the density is unbounded at 0."""
        remedy = "Below 1 there is no interior mode: use the mean, or a prior total of at least 1."
        self._require(np.asarray(self.shape) >= 1, "shape", remedy)
        remedy = "Without any row there is no mode: update with data first, or use one prior row: Gamma(1, 1)."
        self._require(np.asarray(self.rate) > 0, "rate", remedy)
        return plain((np.asarray(self.shape) - 1) / self.rate)

    @property
    def variance(self) -> Number:
        """The variance of the rate."""
        return plain(self.mean / self.rate)

    def pdf(self, x: ArrayLike) -> Number:
        self._proper()
        points, shape, rate = against(x, self.shape, self.rate)
        return plain(np.exp(log_gamma_pdf(points * rate, shape)) * rate)

    def interval(self, level: float = 0.95) -> tuple[Number, Number]:
        from scipy.special import gammainccinv, gammaincinv

        self._proper()
        out = tail(level)
        return plain(gammaincinv(self.shape, out) / self.rate), plain(gammainccinv(self.shape, out) / self.rate)

    def _next(self) -> NegativeBinomial:
        self._proper()
        return NegativeBinomial(self.shape, self.rate)

    def log_evidence(
        self,
        total: Given = None,
        rows: Given = None,
        *,
        log_factorials: ArrayLike = 0.0,
        values: Given = None,
        weights: Given = None,
    ) -> Number:
        """Return the log marginal likelihood of these counts.

        A total does not determine the sum of log(x!), so it is left out: give it as `log_factorials`, or give the
        values. It is the same for every prior, so comparisons do not need it.

        Parameters
        ----------
        total, rows : float or array of shape (n_groups,), default=None
            Sum of the counts, and number of rows.
        log_factorials : float or array of shape (n_groups,), default=0.0
            Sum of log(x!) over the rows.
        values : array of shape (..., n_rows), default=None
            The counts, rows on the last axis. NaN is missing.
        weights : array of shape (..., n_rows), default=None
            Weights of the values: 2 counts a value twice.

        Returns
        -------
        float or ndarray of shape (n_groups,)
            The log marginal likelihood in nats.

        Examples
        --------
        >>> round(float(np.exp(Gamma(1, 1).log_evidence(values=[0]))), 6)
        0.5
        """
        self._proper()
        added, seen, base = _tally(total, rows, values, weights)
        base = base + np.asarray(log_factorials, dtype=float)
        rate = np.asarray(self.rate)
        return plain(log_negative_binomial(added, self.shape, rate, seen) - base)

    evidence = log_evidence

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> np.ndarray:
        self._proper()
        _, shape, rate = against([0.0], self.shape, self.rate)
        return np.random.default_rng(random_state).gamma(shape, 1 / rate, size=(*np.shape(self.shape), n_samples))

    def describe(self) -> str:
        worth = f"worth a total of {shown(self.shape)} over {shown(self.rate)} rows"
        if np.any(np.asarray(self.shape) == 0) or np.any(np.asarray(self.rate) == 0):
            return f"a rate, {worth}"
        if np.ndim(self.shape):
            return f"rates of {shown(self.mean)}, {worth}"
        low, high = self.interval()
        return f"a rate of {shown(self.mean)} ({shown(low)} to {shown(high)} with 95 %), {worth}"

    def _proper(self) -> None:
        remedy = "With 0 this is not a distribution: use at least a little, such as Gamma(0.5, 0.1)."
        self._require(np.asarray(self.shape) > 0, "shape", remedy)
        self._require(np.asarray(self.rate) > 0, "rate", remedy)


def _tally(total: Given, rows: Given, values: Given, weights: Given) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the total, the rows and the sum of log(x!), from values or as given.

    The last is 0 if no values are given.
    """
    from scipy.special import gammaln

    either(values, (total, rows), "Give either values, or both total and rows.")
    if values is None:
        no_weights(weights)
        return nonnegative("total", total), nonnegative("rows", rows), np.zeros(())
    array, shares = weighted(counts_of("a value", values), weights)
    counts = np.where(np.isnan(array), 0.0, array)
    return (shares * counts).sum(axis=-1), shares.sum(axis=-1), (shares * gammaln(counts + 1)).sum(axis=-1)
