"""Predictive distributions of the next row, with a mean, a variance, a density and quantiles."""

from __future__ import annotations

from typing import Generic, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from softcount.core.special import SERIES_FROM, log_negative_binomial, log_student, plain, stirling_rest
from softcount.errors import DataError
from softcount.priors.distribution import (
    Conjugate,
    Distribution,
    Number,
    against,
    finite,
    numbers,
    positive,
    require,
    shown,
    tail,
)

FAR = 1e100


def quantile_points(q: ArrayLike) -> np.ndarray:
    """Check that probabilities are between 0 and 1."""
    points = np.asarray(q, dtype=float)
    if not np.all((points >= 0) & (points <= 1)):
        raise DataError(f"A quantile is asked at {q!r}. A quantile needs a probability from 0 to 1.")
    return points


class Predictive(Distribution, frozen=True, eq=False):
    """The distribution of the next row. Subclasses implement its log-density and quantiles."""

    def log_pdf(self, x: ArrayLike) -> Number:
        """Return the log-density of each point, per group."""
        raise NotImplementedError

    def pdf(self, x: ArrayLike) -> Number:
        """Return the density of each point, per group; for a count, its probability."""
        return plain(np.exp(self.log_pdf(x)))

    def quantile(self, q: ArrayLike) -> Number:
        """Return the quantile of the next row at probability q, per group."""
        raise NotImplementedError

    def interval(self, level: float = 0.95) -> tuple[Number, Number]:
        """Return the ends of an equal-tailed interval that holds the next row with this probability.

        For a count the probability is at least that.
        """
        return self.quantile(tail(level)), self.quantile(1 - tail(level))


Next = TypeVar("Next", bound=Predictive)


class Belief(Conjugate, Generic[Next], frozen=True, eq=False):
    """The distribution of the parameters of another distribution. Subclasses implement `_next` and `_location`."""

    def _next(self) -> Next:
        """Return the distribution of the next row. Raises an error if it is improper."""
        raise NotImplementedError

    def _location(self) -> Predictive:
        """Return the distribution of the mean. Raises an error if it is improper."""
        raise NotImplementedError

    def pdf(self, x: ArrayLike) -> Number:
        return self._location().pdf(x)

    def interval(self, level: float = 0.95) -> tuple[Number, Number]:
        return self._location().interval(level)

    @overload
    def predict(self) -> Next: ...
    @overload
    def predict(self, x: ArrayLike) -> Number: ...
    def predict(self, x: ArrayLike | None = None) -> Next | Number:
        """Return the distribution of the next row, or its density at a point.

        Parameters
        ----------
        x : float or array, default=None
            Points. None returns the distribution itself.

        Returns
        -------
        distribution, float or ndarray
            The distribution, with `pdf`, `quantile` and `interval`; or densities (for counts, probabilities).
        """
        return self._next() if x is None else self._next().pdf(x)

    def predict_log(self, x: ArrayLike) -> Number:
        """Return the log-density of the next row.

        Parameters
        ----------
        x : float or array
            Points; -inf is returned where a count is expected and `x` is not a count.

        Returns
        -------
        float or ndarray
            Log-densities, groups first.
        """
        return self._next().log_pdf(x)


class StudentT(Predictive, frozen=True, eq=False):
    """Student's t: the predictive distribution of a normal column whose variance was learned.

    >>> StudentT(df=4, location=10, scale=2).variance
    8.0
    """

    df: Number
    location: Number
    scale: Number

    def __post_init__(self) -> None:
        self._settle(df=positive, location=finite, scale=positive)

    @property
    def mean(self) -> Number:
        """The mean. With df of 1 or less there is none: an error is raised, and `location` is the median."""
        remedy = "Up to 1 there is no mean: use location, the median."
        self._require(np.asarray(self.df) > 1, "df", remedy)
        return self.location

    @property
    def variance(self) -> Number:
        """The variance: infinite if df is 2 or less."""
        df = np.asarray(self.df)
        spread = np.square(self.scale) * df / np.where(df > 2, df - 2, 1.0)
        return plain(np.where(df > 2, spread, np.inf))

    def log_pdf(self, x: ArrayLike) -> Number:
        points, df, location, scale = against(x, self.df, self.location, self.scale)
        z = (points - location) / scale
        # Beyond 1e100 scales the density falls as a power of the distance, whose square would overflow.
        far = np.log(np.maximum(np.abs(z), FAR) / FAR)
        found = log_student(np.square(np.minimum(np.abs(z), FAR)), df, log_scale=np.log(scale))
        return plain(found - (df + 1) * far)

    def quantile(self, q: ArrayLike) -> Number:
        from scipy.special import stdtrit

        points, df, location, scale = against(quantile_points(q), self.df, self.location, self.scale)
        return plain(location + scale * stdtrit(df, points))

    def describe(self) -> str:
        return f"around {shown(self.location)}, scale {shown(self.scale)}, tails of {shown(self.df)} degrees of freedom"


class MultivariateStudentT(Predictive, frozen=True, eq=False):
    """Student's t over several columns, which come last; `scale` is a matrix, like a covariance.

    Quantiles and intervals are those of each column alone: groups first, then columns, then points.

    >>> MultivariateStudentT(df=4, location=[10, 0], scale=[[4, 0], [0, 1]]).variance.tolist()
    [8.0, 2.0]
    """

    df: Number
    location: np.ndarray
    scale: np.ndarray

    def __post_init__(self) -> None:
        self._settle(df=positive)
        self._store("location", finite("MultivariateStudentT's location", self.location, ("group", "column")))
        self._store("scale", finite("MultivariateStudentT's scale", self.scale, ("group", "row", "column")))

    @property
    def columns(self) -> StudentT:
        """The marginal distribution of each column."""
        spread = np.sqrt(np.diagonal(self.scale, axis1=-2, axis2=-1))
        return StudentT(np.asarray(self.df)[..., None], self.location, spread)

    @property
    def mean(self) -> np.ndarray:
        """The mean. With df of 1 or less there is none: an error is raised, and `location` is the median."""
        return np.asarray(self.columns.mean)

    @property
    def variance(self) -> np.ndarray:
        """The variance of each column: infinite if df is 2 or less."""
        return np.asarray(self.columns.variance)

    def log_pdf(self, x: ArrayLike) -> Number:
        """Return the log-density of each row of x (columns last), per group."""
        points, d = numbers("x", x), self.location.shape[-1]
        if points.shape[-1:] != (d,):
            raise DataError(f"x has shape {points.shape}. Give {d} columns, on the last axis.")
        factor, df = np.linalg.cholesky(self.scale), np.asarray(self.df)
        apart = np.swapaxes(points.reshape(-1, d) - self.location[..., None, :], -1, -2)
        squares = np.square(np.linalg.solve(factor, apart)).sum(axis=-2)
        roots = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        answer = log_student(squares, df[..., None], d, roots[..., None])
        return plain(answer.reshape(self.location.shape[:-1] + points.shape[:-1]))

    def quantile(self, q: ArrayLike) -> Number:
        return self.columns.quantile(q)

    def describe(self) -> str:
        return f"around {shown(self.location)}, tails of {shown(self.df)} degrees of freedom"


class Normal(Predictive, frozen=True, eq=False):
    """Normal distribution: the predictive distribution of the next row if the variance is known.

    >>> round(Normal(0, 4).quantile(0.975), 4)
    3.9199
    """

    mean: Number
    variance: Number

    def __post_init__(self) -> None:
        self._settle(mean=finite, variance=positive)

    def log_pdf(self, x: ArrayLike) -> Number:
        points, mean, variance = against(x, self.mean, self.variance)
        z = (points - mean) / np.sqrt(variance)
        return plain(-0.5 * (np.log(2 * np.pi) + np.log(variance) + z * z))

    def quantile(self, q: ArrayLike) -> Number:
        from scipy.special import ndtri

        points, mean, variance = against(quantile_points(q), self.mean, self.variance)
        return plain(mean + np.sqrt(variance) * ndtri(points))

    def describe(self) -> str:
        return f"around {shown(self.mean)}, variance {shown(self.variance)}"


class NegativeBinomial(Predictive, frozen=True, eq=False):
    """Counts 0, 1, 2, ... from a Poisson distribution whose rate is distributed as Gamma(shape, rate).

    >>> coming = NegativeBinomial(shape=3, rate=1.5)
    >>> coming.mean, round(coming.variance, 4), coming.quantile(0.5)
    (2.0, 3.3333, 2.0)
    """

    shape: Number
    rate: Number

    def __post_init__(self) -> None:
        self._settle(shape=positive, rate=positive)

    @property
    def mean(self) -> Number:
        """The expected count."""
        return plain(self.shape / self.rate)

    @property
    def variance(self) -> Number:
        """The variance: the mean, plus the uncertainty of the rate."""
        return plain(self.shape / self.rate * (1 + 1 / self.rate))

    def log_pdf(self, x: ArrayLike) -> Number:
        """Return the log-probability of each count, per group; -inf if x is not a count."""
        from scipy.special import gammaln

        points, shape, rate = against(x, self.shape, self.rate)
        whole = (points >= 0) & (points == np.floor(points)) & np.isfinite(points)
        count = np.where(whole, points, 0.0)
        answer = log_negative_binomial(count, shape, rate) - gammaln(count + 1)
        return plain(np.where(whole, answer, np.where(np.isnan(points), np.nan, -np.inf)))

    def quantile(self, q: ArrayLike) -> Number:
        """Return the smallest count that the next row does not exceed with probability q, per group."""
        from scipy.stats import nbinom

        points, shape, rate = against(quantile_points(q), self.shape, self.rate)
        return plain(nbinom.ppf(points, shape, rate / (1 + rate)).clip(min=0.0))

    def describe(self) -> str:
        return f"counts around {shown(self.mean)}, variance {shown(self.variance)}"


def log_gamma_pdf(y: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Return the log-density of y under a Gamma distribution of rate one; -inf below zero.

    From shape 10 upwards the logarithms are expanded around the mean. The plain formula loses nine digits at shape 1e8,
    which the posterior of a million rows easily reaches.
    """
    from scipy.special import gammaln, xlogy

    above = np.maximum(y, 0.0)
    small = xlogy(shape - 1, above) - above - gammaln(shape)
    big = np.maximum(shape, SERIES_FROM)
    u = above / big - 1
    with np.errstate(divide="ignore"):
        log1p = np.log1p(u)
    large = (big - 1) * log1p - big * u - 0.5 * np.log(2 * np.pi * big) - stirling_rest(big)
    return np.where(y < 0, -np.inf, np.where(shape < SERIES_FROM, small, large))


def counts_of(name: str, values: ArrayLike) -> np.ndarray:
    """Return whole numbers of 0 or more, NaN if missing. An error names the row of any other value."""
    array = np.atleast_1d(numbers(name, values))
    right = np.isnan(array) | ((array >= 0) & (array == np.floor(array)) & np.isfinite(array))
    require(right, array, name, "Counts are 0, 1, 2, ...", ("group", "row"))
    return array
