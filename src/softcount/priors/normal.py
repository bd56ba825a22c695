"""Conjugate priors for the mean and the variance of a normal column."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softcount.core.special import log_rising, plain
from softcount.errors import DataError
from softcount.priors.distribution import (
    Given,
    Number,
    Seed,
    either,
    finite,
    nonnegative,
    numbers,
    positive,
    require,
    shown,
    tail,
)
from softcount.priors.predictive import Belief, Next, Normal, StudentT

EITHER = "Give either values, or rows with their mean and sum_squares (of the differences from that mean)."


class Moments(NamedTuple):
    """Number of rows, their mean (0 without rows) and the sum of squared differences from it."""

    rows: np.ndarray
    mean: np.ndarray
    sum_squares: np.ndarray


def moments(values: Given, weights: Given, rows: Given, mean: Given, sum_squares: Given) -> Moments:
    """Compute the moments of the values (rows on the last axis, NaN is missing), or check those given."""
    either(values, (rows, mean, sum_squares), EITHER)
    if values is None:
        no_weights(weights)
        n, middle, squares = nonnegative("rows", rows), numbers("mean", mean), nonnegative("sum_squares", sum_squares)
        empty = n == 0
        require(empty | np.isfinite(middle), middle, "mean", "The mean of at least one row is a finite number.")
        require(~empty | (squares == 0), squares, "sum_squares", "No rows scatter by 0.")
        return Moments(n, np.where(empty, 0.0, middle), squares)
    array, shares = weighted(values, weights)
    n, centre, scatter = weighted_moments(np.where(shares > 0, array, 0.0)[..., None], shares)
    return Moments(n, np.where(n > 0, centre[..., 0], 0.0), scatter[..., 0, 0])


def weighted_moments(values: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weight, mean and scatter of (rows x columns) values with these weights, groups first."""
    rows, columns = shares.sum(axis=-1), values.shape[-1]
    if values.shape[-2] == 0:
        return rows, np.zeros((*rows.shape, columns)), np.zeros((*rows.shape, columns, columns))
    # Differences from the first row with a positive weight: the scatter of a constant column is then exactly 0.
    first = np.take_along_axis(values, (shares > 0).argmax(axis=-1)[..., None, None], axis=-2)
    weights, apart = shares[..., None], np.where(shares[..., None] > 0, values - first, 0.0)
    centre = (weights * apart).sum(axis=-2, keepdims=True) / np.where(rows > 0, rows, 1.0)[..., None, None]
    apart = np.where(weights > 0, apart - centre, 0.0)
    return rows, (first + centre)[..., 0, :], np.swapaxes(apart, -1, -2) @ (weights * apart)


def weighted(values: ArrayLike, weights: Given) -> tuple[np.ndarray, np.ndarray]:
    """Return the values (rows last) and their weights: 1 by default, 0 if the value is missing.

    Weights may have group axes before the rows: every group then uses the same values with its own weights.
    """
    array = np.atleast_1d(numbers("values", values))
    require(~np.isinf(array), array, "a value", "Values are finite, or NaN where missing.", ("group", "row"))
    if weights is not None:
        array, shares = np.broadcast_arrays(array, row_weights(weights, array.shape))
        return array, np.where(np.isnan(array), 0.0, shares)
    return array, (~np.isnan(array)).astype(float)


def row_weights(weights: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Check that there is one weight for each row of values of this shape (rows last)."""
    remedy = "Weights are finite and 0 or more: a weight of 2 is the row twice."
    shares = nonnegative("a weight", weights, remedy, ("group", "row"))
    right = shares.ndim > 0 and shares.shape[-1] == shape[-1]
    if not right or any(a != b and 1 not in (a, b) for a, b in zip(shares.shape[::-1], shape[::-1], strict=False)):
        raise DataError(f"weights have shape {shares.shape}, the rows {shape}. Give one weight per row, rows last.")
    return shares


def no_weights(weights: Given) -> None:
    """Raise an error if there are weights without values."""
    if weights is not None:
        raise DataError("weights go with values. Sums are weighed already: leave weights out.")


class MeanAndSpread(Belief[Next], frozen=True, eq=False):
    """Joint distribution of means, worth `kappa` prior rows, and of a spread, worth `nu`.

    Subclasses implement `_student`: Student's t around the mean whose squared scale is that of the spread times a
    factor.
    """

    mean: Any
    kappa: Number
    nu: Number

    @property
    def mode(self) -> Any:
        """The most probable mean, whatever the spread: equal to `mean`."""
        self._known_kappa()
        return self.mean

    @property
    def mean_variance(self) -> Any:
        """The variance of each mean: infinite if Student's t has 2 or fewer degrees of freedom."""
        location: Any = self._location()
        return location.variance

    def _next(self) -> Next:
        return self._student(1 + 1 / self._known_kappa())

    def _location(self) -> Next:
        return self._student(1 / self._known_kappa())

    def _student(self, wider: np.ndarray) -> Next:
        raise NotImplementedError

    def _known_kappa(self) -> np.ndarray:
        means = "means" if self.own_axes else "mean"
        remedy = f"Nothing is known of the {means} yet: update with data first, or use a prior row with kappa=1."
        self._require(np.asarray(self.kappa) > 0, "kappa", remedy)
        return np.asarray(self.kappa)


class NormalInverseChi2(MeanAndSpread[StudentT], frozen=True, eq=False):
    r"""Joint distribution of the mean and the variance of a normal column.

    .. math:: \sigma^2 \sim \nu s^2 / \chi^2_\nu, \qquad \mu \mid \sigma^2 \sim N(m, \sigma^2 / \kappa)

    with m = `mean` and s² = `variance`. It is worth `kappa` prior rows for the mean, and `nu` prior rows for the
    variance. The next row has Student's t distribution. `kappa=0` leaves the mean to the data, `nu=0` the variance. If
    both are 0, the prior is the limit of ever weaker priors. The textbook prior 1 / variance is `kappa=0, nu=-1`; it
    gives the classical t interval of the mean.

    Parameters
    ----------
    mean : float or array of shape (n_groups,)
        Expected mean.
    kappa : float or array of shape (n_groups,)
        Prior rows for the mean, 0 or more.
    nu : float or array of shape (n_groups,)
        Prior rows for the variance, 0 or more (or -1 with `kappa` 0).
    variance : float or array of shape (n_groups,)
        Variance in the prior rows.

    See Also
    --------
    NormalKnownVariance : The variance is known.
    NormalInverseWishart : Several columns.
    softcount.families.Normal : The column that it is the prior of.

    References
    ----------
    .. [1] A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and D. B. Rubin (2013). Bayesian Data
       Analysis, third edition. Chapman and Hall. Section 3.3.
    .. [2] K. P. Murphy (2007). "Conjugate Bayesian analysis of the Gaussian distribution". Technical report, University
       of British Columbia.

    Examples
    --------
    >>> after = NormalInverseChi2(mean=0, kappa=1, nu=1, variance=4).update(values=[9.0, 11.0, 10.0])
    >>> after
    NormalInverseChi2(mean=7.5, kappa=4.0, nu=4.0, variance=20.25)
    >>> [round(end, 3) for end in after.interval()]
    [1.253, 13.747]
    >>> after.describe()
    'a mean of 7.5, worth 4 rows, and a variance of 20.25, worth 4 rows'
    >>> abs(after.log_evidence([3.0]) - after.predict_log(3.0)) < 1e-12
    True
    """

    variance: Number

    def __post_init__(self) -> None:
        rows = partial(nonnegative, remedy="Prior rows are finite and 0 or more.")
        spread = partial(nonnegative, remedy="A variance is finite and 0 or more.")
        self._settle(mean=finite, kappa=rows, nu=numbers, variance=spread)
        nu = np.asarray(self.nu)
        right = np.isfinite(nu) & ((nu >= 0) | ((nu == -1) & (np.asarray(self.kappa) == 0)))
        self._require(right, "nu", "Prior rows are finite and 0 or more (or -1 with kappa 0).")

    def update(
        self,
        values: Given = None,
        *,
        weights: Given = None,
        rows: Given = None,
        mean: Given = None,
        sum_squares: Given = None,
    ) -> NormalInverseChi2:
        """Return the posterior after these values, or after their moments.

        Parameters
        ----------
        values : array of shape (..., n_rows), default=None
            The values, rows on the last axis. NaN is missing.
        weights : array of shape (..., n_rows), default=None
            Weights of the values: 2 counts a value twice.
        rows, mean, sum_squares : float or array of shape (n_groups,), default=None
            Number of rows, their mean, and the sum of squared differences from it.

        Returns
        -------
        NormalInverseChi2
            The distribution, updated with these rows.
        """
        seen = moments(values, weights, rows, mean, sum_squares)
        kappa, nu = self.kappa + seen.rows, self.nu + seen.rows
        pull = seen.rows / np.where(kappa > 0, kappa, 1.0)
        apart = np.where(seen.rows > 0, seen.mean - self.mean, 0.0)
        squares = self._squares + seen.sum_squares + self.kappa * pull * apart**2
        remedy = "One weighted row cannot show a scatter under nu=-1: see more rows first, or start from nu=0."
        require((nu > 0) | (squares == 0), squares, "sum_squares", remedy)
        variance = np.where(nu > 0, squares / np.where(nu > 0, nu, 1.0), self.variance)
        return NormalInverseChi2(self.mean + pull * apart, kappa, nu, variance)

    @property
    def joint_mode(self) -> tuple[Number, Number]:
        """The most probable mean and variance together: the variance is nu * variance / (nu + 3)."""
        return self.mode, plain(self._squares / (np.asarray(self.nu) + 3))

    @property
    def variance_mode(self) -> Number:
        """The most probable variance, whatever the mean: nu * variance / (nu + 2)."""
        return plain(self._squares / (np.asarray(self.nu) + 2))

    @property
    def variance_mean(self) -> Number:
        """The expected variance, nu * variance / (nu - 2). Raises an error if nu is 2 or less."""
        nu = np.asarray(self.nu)
        remedy = "Up to 2 the variance has no mean: use variance_mode or variance_interval, or see more rows."
        self._require(nu > 2, "nu", remedy)
        return plain(self._squares / (nu - 2))

    def variance_interval(self, level: float = 0.95) -> tuple[Number, Number]:
        """Return the ends of an equal-tailed interval that holds the variance.

        Parameters
        ----------
        level : float, default=0.95
            Probability of the interval.

        Returns
        -------
        tuple of float or ndarray of shape (n_groups,)
            The lower and the upper end.
        """
        from scipy.special import gammainccinv, gammaincinv

        self._known_variance()
        half, out = np.asarray(self.nu) / 2, tail(level)
        return plain(self._squares / 2 / gammainccinv(half, out)), plain(self._squares / 2 / gammaincinv(half, out))

    def log_evidence(
        self,
        values: Given = None,
        *,
        weights: Given = None,
        rows: Given = None,
        mean: Given = None,
        sum_squares: Given = None,
    ) -> Number:
        kappa = self._known_kappa()
        self._known_variance()
        seen = moments(values, weights, rows, mean, sum_squares)
        n, nu = seen.rows, np.asarray(self.nu)
        apart = np.where(n > 0, seen.mean - self.mean, 0.0)
        added = seen.sum_squares + n / (1 + n / kappa) * apart**2
        spread = -nu / 2 * np.log1p(added / self._squares) - n / 2 * np.log(np.pi * (self._squares + added))
        return plain(log_rising(nu / 2, n / 2) - 0.5 * np.log1p(n / kappa) + spread)

    evidence = log_evidence

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> tuple[np.ndarray, np.ndarray]:
        kappa = self._known_kappa()
        self._known_variance()
        rng, size = np.random.default_rng(random_state), (*np.shape(self.mean), n_samples)
        nu, squares = np.expand_dims(self.nu, -1), np.expand_dims(self._squares, -1)
        variances = squares / rng.chisquare(nu, size=size)
        spread = np.sqrt(variances / np.expand_dims(kappa, -1))
        return np.expand_dims(self.mean, -1) + spread * rng.standard_normal(size), variances

    def describe(self) -> str:
        return (
            f"a mean of {shown(self.mean)}, worth {shown(self.kappa)} rows, "
            f"and a variance of {shown(self.variance)}, worth {shown(self.nu)} rows"
        )

    def _student(self, wider: np.ndarray) -> StudentT:
        self._known_variance()
        return StudentT(self.nu, self.mean, np.sqrt(self.variance * wider))

    def _known_variance(self) -> None:
        remedy = "Nothing is known of the variance yet: update with data first, or use a prior row with nu=1."
        self._require(np.asarray(self.nu) > 0, "nu", remedy)
        remedy = "No row differs from another yet: start from a prior with nu=1 and a variance above 0."
        self._require(np.asarray(self.variance) > 0, "variance", remedy)

    @property
    def _squares(self) -> np.ndarray:
        """Prior sum of squared differences; 0 if nu is negative."""
        return np.asarray(np.maximum(np.asarray(self.nu), 0.0) * np.asarray(self.variance))


class NormalKnownVariance(Belief[Normal], frozen=True, eq=False):
    r"""Distribution of the mean of a normal column with known `variance`: itself a normal distribution.

    .. math:: \mu \sim N(m, v), \qquad x \mid \mu \sim N(\mu, \sigma^2)

    with m = `mean`, v = `mean_variance` and σ² = `variance`.

    Parameters
    ----------
    mean : float or array of shape (n_groups,)
        Expected mean.
    mean_variance : float or array of shape (n_groups,)
        Variance of the mean; infinite leaves the mean to the data.
    variance : float or array of shape (n_groups,)
        Known variance of the rows.

    See Also
    --------
    NormalInverseChi2 : The variance is learned too.
    softcount.families.Normal : The column that it is the prior of.

    References
    ----------
    .. [1] A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and D. B. Rubin (2013). Bayesian Data
       Analysis, third edition. Chapman and Hall. Section 2.5.

    Examples
    --------
    >>> after = NormalKnownVariance(mean=0, mean_variance=1, variance=2).update(values=[3.0, 5.0])
    >>> after.mean, after.mean_variance
    (2.0, 0.5)
    >>> after.describe()
    'a mean of 2, give or take 0.7071; the variance is known to be 2'
    """

    mean: Number
    mean_variance: Number
    variance: Number

    def __post_init__(self) -> None:
        self._settle(mean=finite, mean_variance=numbers, variance=positive)
        remedy = "It must be 0 or more; float('inf') leaves the mean to the data."
        self._require(np.asarray(self.mean_variance) >= 0, "mean_variance", remedy)

    def update(
        self, values: Given = None, *, weights: Given = None, rows: Given = None, mean: Given = None
    ) -> NormalKnownVariance:
        """Return the posterior after these values, or after a number of rows with this mean.

        Parameters
        ----------
        values : array of shape (..., n_rows), default=None
            The values, rows on the last axis. NaN is missing.
        weights : array of shape (..., n_rows), default=None
            Weights of the values: 2 counts a value twice.
        rows, mean : float or array of shape (n_groups,), default=None
            Number of rows, and their mean.

        Returns
        -------
        NormalKnownVariance
            The distribution, updated with these rows.
        """
        seen = moments(values, weights, rows, mean, None if values is not None else 0.0)
        prior, known = np.asarray(self.mean_variance), np.asarray(self.variance)
        flat, none = np.isinf(prior), seen.rows == 0
        weight = seen.rows * np.where(flat, 0.0, prior) / known
        pull = np.where(none, 0.0, np.where(flat, 1.0, weight / (1 + weight)))
        after = np.where(flat, known / np.where(none, 1.0, seen.rows), prior / (1 + weight))
        return NormalKnownVariance(
            self.mean + pull * (seen.mean - self.mean), np.where(none, prior, after), self.variance
        )

    @property
    def mode(self) -> Number:
        """The most probable mean: equal to `mean`."""
        self._proper()
        return self.mean

    def _next(self) -> Normal:
        self._proper()
        return Normal(self.mean, self.mean_variance + np.asarray(self.variance))

    def log_evidence(
        self,
        values: Given = None,
        *,
        weights: Given = None,
        rows: Given = None,
        mean: Given = None,
        sum_squares: Given = None,
    ) -> Number:
        self._proper()
        n, centre, squares = moments(values, weights, rows, mean, sum_squares)
        weight = n * self.mean_variance / np.asarray(self.variance)
        apart = np.where(n > 0, centre - self.mean, 0.0)
        misfit = (squares + n * apart**2 / (1 + weight)) / self.variance
        return plain(-0.5 * (n * np.log(2 * np.pi * np.asarray(self.variance)) + np.log1p(weight) + misfit))

    evidence = log_evidence

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> np.ndarray:
        self._proper()
        noise = np.random.default_rng(random_state).standard_normal((*np.shape(self.mean), n_samples))
        return np.expand_dims(self.mean, -1) + np.expand_dims(np.sqrt(self.mean_variance), -1) * noise

    def describe(self) -> str:
        spread = shown(plain(np.sqrt(self.mean_variance)))
        known = f"the variance is known to be {shown(self.variance)}"
        return f"a mean of {shown(self.mean)}, give or take {spread}; {known}"

    def _location(self) -> Normal:
        self._proper()
        remedy = "The mean is certain, so it has no density: a belief needs a mean_variance above 0."
        self._require(np.asarray(self.mean_variance) > 0, "mean_variance", remedy)
        return Normal(self.mean, self.mean_variance)

    def _proper(self) -> None:
        remedy = "Nothing is known of the mean yet: update with data first, or give a finite mean_variance."
        self._require(np.isfinite(self.mean_variance), "mean_variance", remedy)
