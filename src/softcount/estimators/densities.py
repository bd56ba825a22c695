"""Densities of one column or a few, with scikit-learn's names: kernels and histograms."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from softcount.densities.bandwidths import bandwidth_of, checked_rule
from softcount.densities.density import ColumnDensity, ProductDensity, compress
from softcount.densities.histogram import HistogramDensity, counts_of, edges_of
from softcount.densities.kernels import OPEN, Reflection, WeightedPoints, named_kernel, reflection_of
from softcount.errors import DataError, DataWarning, ModelFileError
from softcount.estimators import inputs
from softcount.estimators.base import LikelihoodEstimator
from softcount.estimators.docstrings import IGNORED, Arguments
from softcount.estimators.inputs import ArrayLike, RandomState, attribute, row_by_row
from softcount.estimators.parameters import SETTLED, check_arguments, check_whole
from softcount.estimators.result_frames import arrow_table
from softcount.files.codec import Arrays, Document, finite_array
from softcount.sources.frames import text_column
from softcount.table import check_weights

MOST_POINTS = 1 << 22
"""Rows kept as they came; more are kept as the nodes of a dyadic grid."""


ARGUMENTS: Arguments = {
    "X": ("array, list, Series or Arrow column of shape (n_rows,), or table of shape (n_rows, n_columns)", "Rows."),
    "y": IGNORED,
    "other": ("", "A fitted density of the same columns."),
}


class DensityEstimator(LikelihoodEstimator):
    """A density of numbers: of a plain column (an array, a list, a series, an Arrow column) or of a table."""

    plain_column_: Annotated[bool, "Whether a plain column was fitted, not a table."]
    n_features_in_: Annotated[int, "Number of columns of `X` in `fit`."]
    feature_names_in_: Annotated[np.ndarray, "Names of the columns of `X`, if it has names."]
    _arguments: ClassVar = ARGUMENTS
    _varied: ClassVar = SETTLED
    _input_tags: ClassVar = {"allow_nan": True}

    @property
    def _density(self) -> Any:
        """The density, once fitted: `log_density`, `cdf`, `quantile` and `sample`."""
        raise NotImplementedError

    @row_by_row
    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-density of each row.

        Parameters
        ----------
        X : array, list, Series or Arrow column of shape (n_rows,), or table of shape (n_rows, n_columns)
            Rows. A missing cell is left out of the density of its row.

        Returns
        -------
        ndarray of shape (n_rows,)
            Log-densities in nats, 0 for a row of missing cells and -inf outside the density.

        Examples
        --------
        >>> np.exp(Histogram(2).fit([0.0, 1.0, 2.0, 8.0]).score_samples([1.0, 9.0]))
        array([0.175, 0.   ])
        """
        return np.asarray(self._density.log_density(self._queries(X)))

    @row_by_row
    def cdf(self, X: Any) -> np.ndarray:
        """Return the cumulative distribution function at each row.

        Returns
        -------
        ndarray of shape (n_rows,)
            Probability of a value at or below the cell; of several columns, of all at or below theirs.

        Examples
        --------
        >>> KernelDensity(bandwidth=0.5).fit([1.0, 2.0, 3.0]).cdf([2.0, 5.0]).round(3)
        array([0.5, 1. ])
        """
        return np.asarray(self._density.cdf(self._queries(X)))

    def quantile(self, shares: Any) -> Any:
        """Return quantiles of a density of one column.

        Parameters
        ----------
        shares : float or array of shape (n_shares,)
            Probabilities between 0 and 1.

        Returns
        -------
        float or ndarray of shape (n_shares,)
            The values with these shares of the density at or below them.

        Examples
        --------
        >>> KernelDensity(bandwidth=0.5).fit([1.0, 2.0, 3.0]).quantile([0.05, 0.5, 0.95]).round(2)
        array([0.48, 2.  , 3.52])
        """
        given = np.atleast_1d(np.asarray(shares, dtype=np.float64))
        density = self._density
        if given.ndim != 1 or not ((given >= 0) & (given <= 1)).all():
            raise DataError(f"shares must lie between 0 and 1, not {shares!r}.")
        found = density.quantile(given)
        return float(found[0]) if np.ndim(shares) == 0 else found

    @check_arguments
    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Any:
        """Draw rows from the density.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_columns), or DataFrame
            The rows: one-dimensional if a plain column was fitted, a DataFrame if a table with names was.
        """
        n_samples, density = check_whole("n_samples", n_samples, 1), self._density
        drawn: np.ndarray = density.sample(n_samples, inputs.make_generator(random_state))
        rows = drawn if drawn.ndim == 2 or self.plain_column_ else drawn[:, None]
        names = getattr(self, "feature_names_in_", None)
        return rows if names is None else self._result(arrow_table(dict(zip(names, rows.T, strict=True))))

    def _queries(self, X: Any) -> np.ndarray:
        cells, _ = self._cells(X, reset=False)
        return np.ascontiguousarray(cells[:, 0]) if cells.shape[1] == 1 else cells

    def _cells(self, X: Any, reset: bool) -> tuple[np.ndarray, bool]:
        """(rows x columns) numbers, NaN where missing, and whether X was a plain column; names are kept or compared."""
        if text_column(X) is not None:
            raise DataError(f"X is {len(X):,} texts, and a density needs numbers.")
        if reset:
            self._library = inputs.find_library(X)
        if hasattr(X, "to_pandas") and hasattr(X, "column_names"):
            X = X.to_pandas()
        elif hasattr(X, "to_numpy") and hasattr(X, "to_pylist"):
            X = X.to_numpy(zero_copy_only=False)
        if not is_plain(X):
            X, least = X if reset else inputs.reorder_columns(self, X), int(reset)
            cells = inputs.validate_cells(self, X, reset=reset, dtype=np.float64, order="C", ensure_min_samples=least)
            if not isinstance(cells, np.ndarray):
                raise DataError("sparse input is not supported, as a density needs every number: give X.toarray().")
            return cells, False
        column = _read_numbers(X)
        if reset:
            self.n_features_in_ = 1
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif self.n_features_in_ != 1:
            raise DataError(
                f"X is one column, but {type(self).__name__} was fitted on {self.n_features_in_}: "
                "give rows of as many cells."
            )
        return column[:, None], True

    def _known_rows(self, X: Any, sample_weight: Any, reset: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows without a missing cell and with a weight above 0, as an array of their own; their weights, or None."""
        cells, plain = self._cells(X, reset)
        if reset:
            self.plain_column_ = plain
        weights = None if sample_weight is None else check_weights(sample_weight, len(cells))
        if not len(cells):
            raise DataError("there is no row (n_samples=0), so there is no density.")
        if weights is None and np.isfinite([cells.min(), cells.max()]).all():  # a missing cell would be both
            return cells.copy(), None
        kept = ~np.isnan(cells).any(axis=1)
        if weights is not None:
            kept &= weights > 0
        infinite = np.isinf(cells) & kept[:, None]
        if infinite.any():
            row, column = (int(at) for at in np.argwhere(infinite)[0])
            raise DataError(
                f"{self._column_name(column)}, row {row + 1} holds {cells[row, column]}: values must be finite. "
                f"Leave the row out, or make it missing."
            )
        if not kept.any():
            raise DataError("there is no row with a value and a weight above zero, so there is no density.")
        return cells[kept], None if weights is None else weights[kept]

    def _column_name(self, column: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"column {names[column]!r}" if names is not None else f"column {column + 1}"


def is_plain(X: Any) -> bool:
    """Whether X is one column and no table."""
    try:
        return np.ndim(X) == 1 if isinstance(X, (list, tuple)) else len(getattr(X, "shape", ())) == 1
    except ValueError as error:
        raise DataError("the rows of X have different numbers of cells.") from error


def _read_numbers(column: Any) -> np.ndarray:
    """A plain column as float64, missing cells as NaN."""
    if hasattr(column, "to_numpy") and str(getattr(column, "dtype", "")) not in ("float64", "object"):
        nullable = hasattr(column, "isna")  # pandas: its own missing values do not become NaN by themselves
        if nullable and getattr(column.dtype, "kind", "") in "iufb":
            column = column.to_numpy(dtype=np.float64, na_value=np.nan)
    cells = np.asarray(column)
    if cells.dtype.kind in "mMcUS":
        raise DataError(f"X is a column of {cells.dtype}, and a density needs numbers.")
    try:
        return np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"X is not all numbers ({error}), and a density needs numbers.") from None


def _read_plain_and_level(document: Document) -> tuple[bool, int | None]:
    """Whether a saved density was fitted on a plain column, and the level of the grid of its rows."""
    plain, level = document["density"]["plain"], document["density"]["level"]
    if type(plain) is not bool or not (level is None or type(level) is int):
        raise ModelFileError("its rows are neither those of a column nor of a table.")
    return plain, level


class KernelDensity(DensityEstimator):
    """A density as the mean of kernels around the rows, of one column or a few.

    The density at x is the mean over rows r of K((x - r) / h) / h, with the kernel K and the bandwidth h. It follows
    any shape, for instance several modes, and needs no choice of a family.

    Gaussian and logistic kernels on more than 4,096 rows of one column are binned: a density is then wrong by at most
    `error_bound_` of the peak, less than a millionth unless many millions of rows came in parts. Rows with a missing
    cell are not learned from, and in a query the density is that of the other cells. A weight is the number of rows
    that a row stands for. A plain column may come as an array, a list, a series or an Arrow column, and draws come back
    as one.

    See Also
    --------
    Histogram : A density in steps.
    families.Kernel : The same density for a column of a model.
    rank_densities : Compares families of distributions on a column.

    References
    ----------
    .. [1] B. W. Silverman (1986).
       Density Estimation for Statistics and Data Analysis. Chapman and Hall.
    .. [2] S. J. Sheather and M. C. Jones (1991). "A reliable data-based bandwidth selection method for kernel density
       estimation". Journal of the Royal Statistical Society B 53 (3), 683-690.
    .. [3] Z. I. Botev, J. F. Grotowski and D. P. Kroese (2010). "Kernel density estimation via diffusion". Annals of
       Statistics 38 (5), 2916-2957.

    Examples
    --------
    >>> model = KernelDensity(bandwidth=0.5).fit([1.0, 2.0, 2.5])
    >>> model.score_samples([2.0, 9.0]).round(4), model.cdf([1.0, 2.0]).round(4)
    (array([ -0.7694, -85.8244]), array([0.1747, 0.5453]))
    """

    _arguments: ClassVar = ARGUMENTS
    _learned: ClassVar = "rows_"
    rows_: Annotated[WeightedPoints, "The rows, with their weights."]

    def __init__(
        self,
        kernel: str = "gaussian",
        bandwidth: Any = "isj",
        exact: bool = False,
        bounds: Any = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self._keep_parameters(locals())

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Keep the rows and choose the bandwidth.

        Parameters
        ----------
        X : array, list, Series or Arrow column of shape (n_rows,), or table of shape (n_rows, n_columns)
            Numbers. Rows with a missing cell are left out.
        sample_weight : array of shape (n_rows,), default=None
            Weight of each row, the number of rows it stands for.

        Raises
        ------
        DataError
            If `y` comes with a plain column, if a row lies outside `bounds`, or if the bandwidth cannot be chosen.
        """
        if y is not None and is_plain(X):
            raise DataError(
                "X is one column and y another, and a density takes no y. For a density of both: "
                "fit(np.column_stack([X, y]))"
            )
        self._take(self._rows_of(X, sample_weight, reset=True))
        _ = self._density  # a bandwidth that cannot be chosen is an error of the fit
        return self

    def partial_fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows. The bandwidth is chosen from all rows when it is next needed.

        More than 4,194,304 rows of one column are kept as the nodes of a fine grid.
        """
        known = hasattr(self, "rows_")
        rows = self._rows_of(X, sample_weight, reset=not known)
        self._take(self._merge_rows(self.rows_, rows) if known else rows)
        return self

    def merge(self, other: KernelDensity) -> Self:
        """Return a density of the rows of both, with the parameters of this one.

        Examples
        --------
        >>> both = KernelDensity(bandwidth=0.5).fit([1.0, 2.0]).merge(KernelDensity().fit([2.5, 3.5]))
        >>> both.cdf([2.25]).round(3)
        array([0.5])
        """
        inputs.refuse_unlike(self, other, KernelDensity)
        if other.n_features_in_ != self.n_features_in_:
            raise DataError(
                f"densities of {self.n_features_in_} and of {other.n_features_in_} columns cannot be merged."
            )
        mine, theirs = (getattr(model, "feature_names_in_", None) for model in (self, other))
        if mine is not None and theirs is not None and list(mine) != list(theirs):
            raise DataError(f"densities of the columns {list(mine)} and {list(theirs)} cannot be merged.")
        merged = self._like_this("plain_column_")
        merged._take(self._merge_rows(self.rows_, other.rows_))
        return merged

    def _rows_of(self, X: Any, sample_weight: Any, reset: bool) -> WeightedPoints:
        """The rows (rows x columns) with their weights."""
        named_kernel(self.kernel)
        cells, weights = self._known_rows(X, sample_weight, reset)
        self._refuse_outside(cells)
        return WeightedPoints(cells, weights)

    def _merge_rows(self, one: WeightedPoints, other: WeightedPoints) -> WeightedPoints:
        """The rows of both; very many of one column become the nodes of a grid, if the kernel allows it."""
        rows = one.plus(other)
        # A kernel with an end has its edges where the rows are.
        every = bool(self.exact) or named_kernel(self.kernel).bends is None
        if rows.values.shape[1] > 1 or len(rows.values) <= MOST_POINTS or every:
            return rows
        nodes = compress(rows.column(0))
        return WeightedPoints(nodes.values[:, None], nodes.weights, nodes.level)

    def _take(self, rows: WeightedPoints) -> None:
        self.rows_ = rows
        self._density_made: Any = None

    def _ends(self) -> tuple[Reflection, ...]:
        columns = int(self.n_features_in_)
        if columns == 1 or self.bounds is None:
            return (reflection_of(self.bounds),) * columns
        if not isinstance(self.bounds, (tuple, list)) or len(self.bounds) != columns:
            raise DataError(f"bounds must be a list of {columns} pairs, one for each column, not {self.bounds!r}.")
        return tuple(map(reflection_of, self.bounds))

    def _refuse_outside(self, cells: np.ndarray) -> None:
        for column, ends in enumerate(self._ends()):
            inside = ends.inside(cells[:, column])
            if ends is not OPEN and not inside.all():
                raise DataError(
                    f"{self._column_name(column)} holds {cells[np.argmin(inside), column]:g}, outside its bounds "
                    f"{ends.low:g} and {ends.high:g}. Widen the bounds, or leave such rows out."
                )

    def _rules(self) -> list[Any]:
        """The bandwidth of each column, as it was given."""
        columns = self.n_features_in_
        if columns == 1 or isinstance(self.bandwidth, str) or np.ndim(self.bandwidth) == 0:
            return [self.bandwidth] * columns
        if len(self.bandwidth) != columns:
            raise DataError(f"bandwidth must be one for all or a list of {columns}, not {self.bandwidth!r}.")
        return list(self.bandwidth)

    @property
    def _density(self) -> ColumnDensity | ProductDensity:
        """The density of the rows so far, made when it is first needed."""
        check_is_fitted(self)
        if self._density_made is None:
            kernel, ends, columns = named_kernel(self.kernel), self._ends(), self.n_features_in_
            points = [self.rows_.column(at) for at in range(columns)]
            widths = [
                bandwidth_of(rule, column, kernel, columns) for rule, column in zip(self._rules(), points, strict=True)
            ]
            for h, end in zip(widths, ends, strict=True):
                end.refuse_wide(h)
            if columns == 1:
                self._density_made = ColumnDensity(points[0], kernel, widths[0], bool(self.exact), ends[0])
            else:
                self._density_made = ProductDensity(self.rows_, kernel, np.array(widths), ends)
        made: ColumnDensity | ProductDensity = self._density_made
        return made

    bandwidth_: Any = attribute(
        "h",
        "Bandwidth in use, in the units of the data; an array of shape (n_columns,) for several columns.",
        "_density",
    )
    error_bound_: float = attribute(
        "error",
        "Largest possible error of a density as a share of its peak. It is 0 if every sum is computed.",
        "_density",
    )

    def integrate(self, low: Any, high: Any) -> float:
        """Return the probability between two values, or in the box between two corners.

        Parameters
        ----------
        low, high : float or array of shape (n_columns,)
            Lower and upper end. If the ends are exchanged, the sign changes.

        Returns
        -------
        float
            Probability.

        Examples
        --------
        >>> round(KernelDensity(bandwidth=0.5).fit([1.0, 2.0, 2.5]).integrate(1.0, 2.0), 4)
        0.3706
        """
        density = self._density
        if isinstance(density, ProductDensity):
            shape = (1, self.n_features_in_)
            corners = [np.broadcast_to(np.asarray(end, dtype=np.float64), shape) for end in (low, high)]
            return float(density.integral(*corners)[0])
        below = density.cdf(np.array([low, high], dtype=np.float64))
        return float(below[1] - below[0])

    def _parts(self, arrays: Arrays) -> Document:
        rows = self._fitted
        arrays |= {"cells": rows.values, "weights": np.empty(0) if rows.weights is None else rows.weights}
        return {"density": {"plain": self.plain_column_, "level": rows.level}}

    def _restore(self, document: Document, arrays: Arrays) -> None:
        self.plain_column_, level = _read_plain_and_level(document)
        cells = finite_array(arrays["cells"], None, "its cells")
        if cells.ndim != 2 or not len(cells) or cells.shape[1] != self.n_features_in_:
            raise ModelFileError("its rows have other columns than it says.")
        weights = finite_array(arrays["weights"], (len(cells),) if arrays["weights"].size else None, "its weights")
        if (weights <= 0).any() or not (level is None or -1100 < level < 1100):
            raise ModelFileError("its weights are not all above zero, or its level is none.")
        named_kernel(self.kernel)
        for rule in self._rules():
            checked_rule(rule)
        self._refuse_outside(cells)
        self._take(WeightedPoints(cells, weights if weights.size else None, level))


class Histogram(DensityEstimator):
    """The density of one column in steps, between given edges or from its least value to its greatest.

    One prior row is spread evenly from the first edge to the last, so that an empty bin keeps a little mass: a density
    is (counts + width / range) / ((rows + 1) width). Outside the edges it is 0. Missing values are left out.

    A bin includes its lower edge and excludes its upper one; the last bin includes both. With given edges, rows outside
    them are not counted, as in `numpy.histogram`, and a warning gives their number: the density is that of the rows
    between the edges, and integrates to 1 there.

    See Also
    --------
    KernelDensity : A smooth density.
    families.Histogram : The same density for a column of a model.
    rank_densities : Compares families of distributions on a column.

    References
    ----------
    .. [1] D. Freedman and P. Diaconis (1981). "On the histogram as a density estimator: L2 theory". Zeitschrift fuer
       Wahrscheinlichkeitstheorie und verwandte Gebiete 57, 453-476.
    .. [2] P. Kontkanen and P. Myllymaki (2007).
       "MDL histogram density estimation". AISTATS 2007, 219-226.
    .. [3] J. D. Scargle, J. P. Norris, B. Jackson and J. Chiang (2013). "Studies in astronomical time series analysis.
       VI. Bayesian block representations". Astrophysical Journal 764, 167.

    Examples
    --------
    >>> model = Histogram(2).fit([0.0, 1.0, 2.0, 8.0])
    >>> model.edges_, model.counts_, np.exp(model.score_samples([1.0, 9.0]))
    (array([0., 4., 8.]), array([3., 1.]), array([0.175, 0.   ]))
    >>> Histogram([0, 1, 2, 10]).fit([0.0, 1.0, 2.0, 8.0]).counts_
    array([1., 1., 2.])
    """

    _arguments: ClassVar = ARGUMENTS
    _learned: ClassVar = "edges_"
    edges_: Annotated[np.ndarray, "Edges of the bins, ascending, shape (n_bins + 1,)."]
    counts_: Annotated[np.ndarray, "Weight of the rows in each bin, shape (n_bins,)."]

    def __init__(self, bins: Any = "auto", random_state: RandomState = None, verbose: bool = False) -> None:
        self._keep_parameters(locals())

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the edges and count the rows between them.

        Parameters
        ----------
        X : array, list, Series or Arrow column of shape (n_rows,), or table with one column
            Numbers. Missing cells are left out.
        """
        cells, weights = self._known_rows(X, sample_weight, reset=True)
        if cells.shape[1] != 1:
            raise DataError(f"a histogram is for one column, and X has {cells.shape[1]}: fit one for each.")
        points = WeightedPoints(cells[:, 0], weights)
        self.edges_ = edges_of(self.bins, points)
        self.counts_ = counts_of(points, self.edges_)
        self._report_outside(points)
        return self

    def _report_outside(self, points: WeightedPoints) -> None:
        low, high = self.edges_[[0, -1]]
        outside = int(((points.values < low) | (points.values > high)).sum())
        if outside == len(points.values):
            raise DataError(f"no value lies between the edges {low:g} and {high:g}, so there is no density.")
        if outside:
            rows = f"{outside:,} of {len(points.values):,} rows"
            warnings.warn(f"{rows} lie outside the edges {low:g} and {high:g} and are not counted.", DataWarning, 3)

    @property
    def _density(self) -> HistogramDensity:
        return HistogramDensity(self._fitted, self.counts_)

    probabilities_: np.ndarray = attribute("probabilities", "Probability of each bin, shape (n_bins,).", "_density")

    def _parts(self, arrays: Arrays) -> Document:
        arrays |= {"edges": self._fitted, "counts": self.counts_}
        return {"density": {"plain": self.plain_column_, "level": None}}

    def _restore(self, document: Document, arrays: Arrays) -> None:
        self.plain_column_, level = _read_plain_and_level(document)
        edges = finite_array(arrays["edges"], None, "its edges")
        if edges.ndim != 1 or len(edges) < 2 or (np.diff(edges) <= 0).any() or self.n_features_in_ != 1:
            raise ModelFileError("its edges are not in ascending order.")
        counts = finite_array(arrays["counts"], (len(edges) - 1,), "its counts")
        if (counts < 0).any() or level is not None:
            raise ModelFileError("its counts are not all counts.")
        self.edges_, self.counts_ = edges, counts
