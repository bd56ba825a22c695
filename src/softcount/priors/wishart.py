"""Conjugate prior for the means and the covariance of a block of correlated columns."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from softcount.core.special import log_rising, plain
from softcount.errors import DataError
from softcount.priors.distribution import Given, Number, Seed, either, finite, nonnegative, numbers, require, shown
from softcount.priors.normal import MeanAndSpread, no_weights, row_weights, weighted_moments
from softcount.priors.predictive import MultivariateStudentT

MATRIX = ("group", "row", "column")

EITHER = "Give either values, or rows with their mean and scatter (products of the differences from that mean)."


class NormalInverseWishart(MeanAndSpread[MultivariateStudentT], frozen=True, eq=False):
    r"""Joint distribution of the means and the covariance of several columns.

    .. math:: \Sigma \sim W^{-1}(\Psi, \nu), \qquad \mu \mid \Sigma \sim N(m, \Sigma / \kappa)

    with m = `mean` and Ψ = `scale`. It is worth `kappa` prior rows for the means, and `nu` prior rows that scatter
    around them by `scale`. The next row has a multivariate Student's t distribution.

    Parameters
    ----------
    mean : array of shape (..., n_columns)
        Expected means, groups first.
    kappa : float or array of shape (n_groups,)
        Prior rows for the means, 0 or more.
    nu : float or array of shape (n_groups,)
        Prior rows for the covariance, 0 or more.
    scale : array of shape (..., n_columns, n_columns)
        Matrix of summed products of differences from the mean, not divided by `nu`.

    See Also
    --------
    NormalInverseChi2 : One column.
    softcount.families.Multinormal : The block of columns that it is the prior of.

    References
    ----------
    .. [1] A. Gelman, J. B. Carlin, H. S. Stern, D. B. Dunson, A. Vehtari and D. B. Rubin (2013). Bayesian Data
       Analysis, third edition. Chapman and Hall. Section 3.6.

    Examples
    --------
    >>> prior = NormalInverseWishart(mean=[0, 0], kappa=1, nu=3, scale=[[1, 0], [0, 1]])
    >>> after = prior.update(values=[[2.0, 1.0], [4.0, 3.0]])
    >>> after.mean.tolist(), after.nu, after.covariance_mean.round(3).tolist()
    ([2.0, 1.3333333333333333], 5.0, [[4.5, 3.0], [3.0, 2.833]])
    >>> prior.describe()
    'means of 2 columns, 0, 0, worth 1 rows, and a covariance worth 3 rows'
    >>> abs(prior.log_evidence([[1.0, 2.0]]) - prior.predict_log([1.0, 2.0])) < 1e-12
    True
    """

    own_axes = 1

    scale: np.ndarray

    def __post_init__(self) -> None:
        mean = np.atleast_1d(finite("NormalInverseWishart's mean", self.mean, ("group", "column")))
        scale = np.atleast_2d(finite("NormalInverseWishart's scale", self.scale, MATRIX))
        d = mean.shape[-1]
        if d == 0 or scale.shape[-2:] != (d, d):
            raise DataError(
                f"NormalInverseWishart has {d} means and a scale of shape {scale.shape}. "
                "Give a square matrix with one row and one column per mean."
            )
        _check_matrix(scale)
        rows = partial(nonnegative, remedy="Prior rows are finite and 0 or more.")
        self._settle({"mean": 1, "scale": 2}, mean=lambda *_: mean, kappa=rows, nu=rows, scale=lambda *_: scale)

    @property
    def size(self) -> int:
        """Number of columns."""
        return int(self.mean.shape[-1])

    def update(
        self,
        values: Given = None,
        *,
        weights: Given = None,
        rows: Given = None,
        mean: Given = None,
        scatter: Given = None,
    ) -> NormalInverseWishart:
        """Return the posterior after these values, or after their moments.

        Parameters
        ----------
        values : array of shape (..., n_rows, n_columns), default=None
            The rows.
        weights : array of shape (..., n_rows), default=None
            Weights of the rows: 2 counts a row twice.
        rows : float or array of shape (n_groups,), default=None
            Number of rows.
        mean : array of shape (..., n_columns), default=None
            Their means.
        scatter : array of shape (..., n_columns, n_columns), default=None
            Matrix of summed products of differences from the means.

        Returns
        -------
        NormalInverseWishart
            The distribution, updated with these rows.
        """
        n, centre, products = self._moments(values, weights, rows, mean, scatter)
        kappa = self.kappa + n
        pull = n / np.where(kappa > 0, kappa, 1.0)
        apart = np.where(n[..., None] > 0, centre - self.mean, 0.0)
        moved = (self.kappa * pull)[..., None, None] * apart[..., :, None] * apart[..., None, :]
        return NormalInverseWishart(
            self.mean + pull[..., None] * apart, kappa, self.nu + n, self.scale + products + moved
        )

    @property
    def variance(self) -> np.ndarray:
        """The variance of each column in the nu prior rows: the diagonal of scale / nu."""
        remedy = "Nothing is known of the covariance yet: update with data first, or use some prior rows."
        self._require(np.asarray(self.nu) > 0, "nu", remedy)
        return np.asarray(np.diagonal(self.scale, axis1=-2, axis2=-1) / np.asarray(self.nu)[..., None])

    @property
    def covariance_mode(self) -> np.ndarray:
        """The most probable covariance, whatever the means: scale / (nu + columns + 1)."""
        return np.asarray(self.scale / (np.asarray(self.nu) + self.size + 1)[..., None, None])

    @property
    def joint_mode(self) -> tuple[np.ndarray, np.ndarray]:
        """The most probable means and covariance together: the covariance is scale / (nu + columns + 2)."""
        return self.mode, self.scale / (np.asarray(self.nu) + self.size + 2)[..., None, None]

    @property
    def covariance_mean(self) -> np.ndarray:
        """The expected covariance, scale / (nu - columns - 1). Raises an error if nu is columns + 1 or less."""
        left = np.asarray(self.nu) - self.size - 1
        remedy = f"Up to columns + 1 = {self.size + 1} the covariance has no mean: use covariance_mode, or more rows."
        self._require(left > 0, "nu", remedy)
        return np.asarray(self.scale / left[..., None, None])

    def log_evidence(
        self,
        values: Given = None,
        *,
        weights: Given = None,
        rows: Given = None,
        mean: Given = None,
        scatter: Given = None,
    ) -> Number:
        kappa, before = self._known_kappa(), _log_determinant(self._factor())
        seen = self._moments(values, weights, rows, mean, scatter)
        after = self.update(rows=seen[0], mean=seen[1], scatter=seen[2])
        n, d = seen[0], self.size
        grown = _log_determinant(after._factor()) - before
        orders = (np.asarray(self.nu)[..., None] - np.arange(d)) / 2
        shapes = np.sum(log_rising(orders, n[..., None] / 2), axis=-1)
        spread = -np.asarray(self.nu) / 2 * grown - n / 2 * (grown + before)
        return plain(shapes + spread - d / 2 * (n * np.log(np.pi) + np.log1p(n / kappa)))

    evidence = log_evidence

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> tuple[np.ndarray, np.ndarray]:
        kappa, factor = self._known_kappa(), self._factor()
        rng, d = np.random.default_rng(random_state), self.size
        shape = (*self.mean.shape[:-1], n_samples, d, d)
        # A Wishart matrix is A A' with A lower triangular, normals below and roots of chi-squares on the diagonal.
        lower = np.tril(rng.standard_normal(shape), -1)
        roots = np.sqrt(rng.chisquare(np.asarray(self.nu)[..., None, None] - np.arange(d), size=shape[:-1]))
        lower[..., np.arange(d), np.arange(d)] = roots
        turned = np.linalg.solve(lower, np.swapaxes(factor, -1, -2)[..., None, :, :])
        covariances = np.swapaxes(turned, -1, -2) @ turned
        noise = np.swapaxes(turned, -1, -2) @ rng.standard_normal((*shape[:-1], 1))
        return self.mean[..., None, :] + noise[..., 0] / np.sqrt(kappa)[..., None, None], covariances

    def describe(self) -> str:
        middle = f", {shown(self.mean)}" if self.mean.ndim == 1 else ""
        return (
            f"means of {self.size} columns{middle}, worth {shown(self.kappa)} rows, "
            f"and a covariance worth {shown(self.nu)} rows"
        )

    def _moments(
        self, values: Given, weights: Given, rows: Given, mean: Given, scatter: Given
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the number of rows, their mean and their scatter, from the values or as given and checked."""
        either(values, (rows, mean, scatter), EITHER)
        if values is not None:
            return _of_block(values, weights, self.size)
        no_weights(weights)
        n, centre, products = nonnegative("rows", rows), numbers("mean", mean), finite("scatter", scatter, MATRIX)
        if centre.shape[-1:] != (self.size,) or products.shape[-2:] != (self.size, self.size):
            raise DataError(f"mean and scatter have shapes {centre.shape} and {products.shape}; columns: {self.size}.")
        _check_matrix(products, "scatter")
        right = (n == 0)[..., None] | np.isfinite(centre)
        require(right, centre, "mean", "The mean of some rows is a finite number.", ("group", "column"))
        return n, np.where(n[..., None] == 0, 0.0, centre), products

    def _student(self, wider: np.ndarray) -> MultivariateStudentT:
        """Return a Student t of nu - columns + 1 degrees of freedom whose spread is the scale times `wider`."""
        self._factor()
        df = np.asarray(self.nu) + 1 - self.size
        return MultivariateStudentT(df, self.mean, self.scale * (wider / df)[..., None, None])

    def _factor(self) -> np.ndarray:
        """Return the Cholesky factor of the scale. Raises an error if the distribution is improper."""
        remedy = f"Up to columns - 1 = {self.size - 1} it is not a distribution: raise nu, or see more rows."
        self._require(np.asarray(self.nu) > self.size - 1, "nu", remedy)
        try:
            return np.linalg.cholesky(self.scale)
        except np.linalg.LinAlgError:
            raise DataError(
                "NormalInverseWishart's scale is singular: a column is constant or a sum of others. "
                "Start from a prior whose scale has positive variances, or leave that column out."
            ) from None


def _of_block(values: ArrayLike, weights: Given, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    array = numbers("values", values)
    if array.ndim < 2 or array.shape[-1] != size:
        raise DataError(f"values have shape {array.shape}. Give rows x {size} columns.")
    remedy = (
        "A correlated block is updated with complete rows of finite numbers: fill the missing cell or leave "
        "the row out."
    )
    require(np.isfinite(array), array, "a value", remedy, MATRIX)
    shares = np.ones(array.shape[:-1]) if weights is None else row_weights(weights, array.shape[:-1])
    together = np.broadcast_shapes(shares.shape, array.shape[:-1])
    return weighted_moments(np.broadcast_to(array, (*together, size)), np.broadcast_to(shares, together))


def _check_matrix(matrix: np.ndarray, name: str = "NormalInverseWishart's scale") -> None:
    """Raise an error if a matrix of summed products is not symmetric and positive semidefinite, in any units."""
    diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
    require(diagonal >= 0, diagonal, f"{name}, on its diagonal,", "A sum of squares is 0 or more.", ("group", "column"))
    # Sums of squares below 1e-290 have lost digits to underflow: their columns cannot be checked.
    roots = np.sqrt(np.where(diagonal > 1e-290, diagonal, np.inf))
    unit = matrix / roots[..., :, None] / roots[..., None, :]
    if not np.allclose(unit, np.swapaxes(unit, -1, -2), rtol=0, atol=1e-9):
        raise DataError(f"{name} is not symmetric. Entry (i, j) and entry (j, i) are the same product.")
    lowest = np.linalg.eigvalsh(unit).min(axis=-1)
    require(lowest > -1e-9, lowest, f"{name}: its smallest eigenvalue, columns scaled to one,", "It must be 0 or more.")


def _log_determinant(factor: np.ndarray) -> np.ndarray:
    return np.asarray(2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1))
