"""Densities of one column or a few, with scikit-learn's names: kernels and histograms."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from softcount.densities.bandwidths import bandwidth_of, checked_rule
from softcount.densities.binned import compressed
from softcount.densities.density import ColumnDensity, ProductDensity
from softcount.densities.histogram import counts_of, edges_of
from softcount.densities.kernels import OPEN, Reflection, WeightedPoints, named_kernel, reflection_of
from softcount.errors import DataError, ModelFileError
from softcount.estimators import inputs
from softcount.estimators.base import Estimator
from softcount.estimators.engines import needs_all_rows, row_by_row
from softcount.estimators.parameters import check_whole
from softcount.estimators.saving import finite, save_density
from softcount.sources.frames import text_column
from softcount.table import check_weights


def cells_of(estimator: Any, X: Any, reset: bool) -> tuple[np.ndarray, bool]:
    """(rows x columns) numbers, NaN where missing, and whether X was a plain column; names are kept or compared."""
    if text_column(X) is not None:
        raise DataError(f"X is {len(X):,} texts, and a density needs numbers.")
    X = _unwrapped(X)
    if not is_plain(X):
        X, least = X if reset else inputs.in_fitted_order(estimator, X), int(reset)
        cells = inputs.validated(estimator, X, reset=reset, dtype=np.float64, order="C", ensure_min_samples=least)
        if not isinstance(cells, np.ndarray):
            raise DataError("sparse input is not supported, as a density needs every number: give X.toarray().")
        return cells, False
    column = _numbers(X)
    if reset:
        estimator.n_features_in_ = 1
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif estimator.n_features_in_ != 1:
        raise DataError(
            f"X is one column, but {type(estimator).__name__} was fitted on {estimator.n_features_in_}: "
            "give rows of as many cells."
        )
    return column[:, None], True


def is_plain(X: Any) -> bool:
    """Whether X is one column and no table."""
    try:
        return np.ndim(X) == 1 if isinstance(X, (list, tuple)) else len(getattr(X, "shape", ())) == 1
    except ValueError as error:
        raise DataError("the rows of X have different numbers of cells.") from error


def _unwrapped(X: Any) -> Any:
    """Arrow's columns and tables, and any mapping of columns, as NumPy's or a frame."""
    if hasattr(X, "to_pandas") and hasattr(X, "column_names"):
        return X.to_pandas()
    if hasattr(X, "to_numpy") and hasattr(X, "to_pylist"):
        return X.to_numpy(zero_copy_only=False)
    return X


def _numbers(column: Any) -> np.ndarray:
    """A plain column as float64, missing cells as NaN."""
    if hasattr(column, "to_numpy") and str(getattr(column, "dtype", "")) not in ("float64", "object"):
        nullable = hasattr(column, "isna")  # pandas: its own missing values do not become NaN by themselves
        column = (
            column.to_numpy(dtype=np.float64, na_value=np.nan)
            if nullable and (getattr(column.dtype, "kind", "") in "iufb")
            else column
        )
    cells = np.asarray(column)
    if cells.dtype.kind in "mMcUS":
        raise DataError(f"X is a column of {cells.dtype}, and a density needs numbers.")
    try:
        return np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"X is not all numbers ({error}), and a density needs numbers.") from None


def known_rows(estimator: Any, cells: np.ndarray, sample_weight: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows without a missing cell and with a weight above 0, as an array of their own; their weights, or None."""
    weights = None if sample_weight is None else check_weights(sample_weight, len(cells))
    if not len(cells):
        raise DataError("there is no row (n_samples=0), so there is no density.")
    if weights is None and np.isfinite([cells.min(), cells.max()]).all():  # a missing cell would be both
        return cells.copy(), None
    kept = ~np.isnan(cells).any(axis=1)
    if weights is not None:
        kept &= weights > 0
    refuse_infinite(estimator, cells, kept)
    if not kept.any():
        raise DataError("there is no row with a value and a weight above zero, so there is no density.")
    return cells[kept], None if weights is None else weights[kept]


def refuse_infinite(estimator: Any, cells: np.ndarray, kept: np.ndarray) -> None:
    """Raise at the first infinite cell of the rows that count."""
    bad = np.isinf(cells) & kept[:, None]
    if bad.any():
        row, column = (int(at) for at in np.argwhere(bad)[0])
        where = f"{name_of(estimator, column)}, row {row + 1}"
        raise DataError(
            f"{where} holds {cells[row, column]}: values are finite. Leave the row out, or make it missing."
        )


def refuse_outside(estimator: Any, cells: np.ndarray, column: int, ends: Reflection) -> None:
    """Raise where a value lies beyond the ends that were said of its column."""
    inside = ends.inside(cells)
    if not inside.all():
        at = int(np.argmin(inside))
        raise DataError(
            f"{name_of(estimator, column)} holds {cells[at]:g}, outside its bounds {ends.low:g} and {ends.high:g}. "
            "Widen the bounds, or leave such rows out."
        )


def name_of(estimator: Any, column: int) -> str:
    """A column as messages call it."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"column {names[column]!r}" if names is not None else f"column {column + 1}"


# Kernel densities of one column or a few, with scikit-learn's names.

MOST_POINTS = 1 << 22
"""Rows kept as they came; more are kept as the nodes of a dyadic grid."""


class DensityRows:
    """The rows that a density is made of, as one array with its weights, and the widths found for them."""

    def __init__(self, cells: np.ndarray, weights: np.ndarray | None, level: int | None = None) -> None:
        self.cells, self.weights, self.level = cells, weights, level

    def column(self, at: int) -> WeightedPoints:
        """One column as points."""
        return WeightedPoints(np.ascontiguousarray(self.cells[:, at]), self.weights, self.level)

    @cached_property
    def filled(self) -> np.ndarray:
        """A weight for each row."""
        return np.ones(len(self.cells)) if self.weights is None else self.weights

    def plus(self, other: DensityRows, every: bool) -> DensityRows:
        """The rows of both; unless `every` one is wanted, very many of one column become the nodes of a grid."""
        if self.cells.shape[1] == 1:
            points = self.column(0).plus(other.column(0))
            if len(points.values) > MOST_POINTS and not every:
                points = compressed(points)
            return DensityRows(points.values[:, None], points.weights, points.level)
        cells = np.concatenate([self.cells, other.cells])
        if self.weights is None and other.weights is None:
            return DensityRows(cells, None)
        return DensityRows(cells, np.concatenate([self.filled, other.filled]))


class KernelDensity(Estimator):
    """A density as the mean of kernels around the rows, of one column or a few.

    Gaussian and logistic kernels on more than 4,096 rows of one column are binned: a density is then wrong by at most
    `error_bound_` of the peak, less than a millionth unless many millions of rows came in parts. Rows with a missing
    cell are not learned from, and in a query the density is that of the other cells. Weights say how many rows one
    stands for. A plain column may come as an array, a list, a series or an Arrow column, and draws come back as one.

    >>> model = KernelDensity(bandwidth=0.5).fit([1.0, 2.0, 2.5])
    >>> model.score_samples([2.0, 9.0]).round(4), model.cdf([1.0, 2.0]).round(4)
    (array([ -0.7694, -85.8244]), array([0.1747, 0.5453]))
    """

    rows_: DensityRows

    def __init__(
        self, kernel: str = "gaussian", bandwidth: Any = "isj", exact: bool = False, bounds: Any = None
    ) -> None:
        self._keep_parameters(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelDensity:
        """Take the rows and choose the bandwidth. `y` is not used; beside a plain column it is refused."""
        if y is not None and is_plain(X):
            raise DataError(
                "X is one column and y another, and a density takes no y. For a density of both: "
                "fit(np.column_stack([X, y]))"
            )
        rows = self._rows_of(X, sample_weight, reset=True)
        self._take(rows)
        self.bandwidth_  # noqa: B018  a bandwidth that cannot be chosen is an error of the fit
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelDensity:
        """Take more rows; the bandwidth is chosen when it is asked for."""
        if not hasattr(self, "rows_"):
            self._take(self._rows_of(X, sample_weight, reset=True))
        else:
            self._take(self.rows_.plus(self._rows_of(X, sample_weight, reset=False), self._wants_every_row()))
        return self

    def merge(self, other: KernelDensity) -> KernelDensity:
        """A density of the rows of both, with the settings of this one."""
        inputs.refuse_unlike(self, other, KernelDensity)
        if other.n_features_in_ != self.n_features_in_:
            raise DataError(
                f"densities of {self.n_features_in_} and of {other.n_features_in_} columns cannot be merged."
            )
        mine, theirs = (getattr(model, "feature_names_in_", None) for model in (self, other))
        if mine is not None and theirs is not None and list(mine) != list(theirs):
            raise DataError(f"densities of the columns {list(mine)} and {list(theirs)} cannot be merged.")
        joined = type(self)(**self.get_params())
        for name in ("n_features_in_", "feature_names_in_", "plain_column_"):
            if hasattr(self, name):
                setattr(joined, name, getattr(self, name))
        joined._take(self.rows_.plus(other.rows_, self._wants_every_row()))
        return joined

    def _rows_of(self, X: Any, sample_weight: Any, reset: bool) -> DensityRows:
        named_kernel(self.kernel)
        cells, plain = cells_of(self, X, reset)
        cells, weights = known_rows(self, cells, sample_weight)
        for column, end in enumerate(self._ends()):
            if end is not OPEN:
                refuse_outside(self, cells[:, column], column, end)
        if reset:
            self.plain_column_ = plain
        return DensityRows(cells, weights)

    def _wants_every_row(self) -> bool:
        """Whether sums are made over the rows themselves: a kernel with an end has its edges where they are."""
        return bool(self.exact) or named_kernel(self.kernel).bends is None

    def _take(self, rows: DensityRows) -> None:
        self.rows_ = rows
        self._density_made: Any = None

    def _ends(self) -> tuple[Reflection, ...]:
        columns = int(self.n_features_in_)
        if columns == 1 or self.bounds is None:
            return (reflection_of(self.bounds),) * columns
        if not isinstance(self.bounds, (tuple, list)) or len(self.bounds) != columns:
            raise DataError(f"bounds must be a list of {columns} pairs, one for each column, not {self.bounds!r}.")
        return tuple(map(reflection_of, self.bounds))

    def _density(self) -> ColumnDensity | ProductDensity:
        """The density of the rows so far, made when it is first asked for."""
        check_is_fitted(self, "rows_")
        if self._density_made is None:
            kernel, ends = named_kernel(self.kernel), self._ends()
            columns = self.n_features_in_
            points = [self.rows_.column(at) for at in range(columns)]
            rules = self._rules(columns)
            widths = [bandwidth_of(rule, column, kernel, columns) for rule, column in zip(rules, points, strict=True)]
            for h, end in zip(widths, ends, strict=True):
                end.refuse_wide(h)
            if columns == 1:
                self._density_made = ColumnDensity(points[0], kernel, widths[0], bool(self.exact), ends[0])
            else:
                widths_array = np.array(widths)
                self._density_made = ProductDensity(self.rows_.cells, self.rows_.filled, kernel, widths_array, ends)
        made: ColumnDensity | ProductDensity = self._density_made
        return made

    def _rules(self, columns: int) -> list[Any]:
        if columns == 1 or isinstance(self.bandwidth, str) or np.ndim(self.bandwidth) == 0:
            return [self.bandwidth] * columns
        if len(self.bandwidth) != columns:
            raise DataError(f"bandwidth must be one for all or a list of {columns}, not {self.bandwidth!r}.")
        return list(self.bandwidth)

    def _one_column(self, what: str) -> ColumnDensity:
        density = self._density()
        if isinstance(density, ProductDensity):
            raise DataError(f"{what} is for one column, and this density has {self.n_features_in_}.")
        return density

    @property
    def bandwidth_(self) -> Any:
        """The bandwidth in use, in the data's units; an array for several columns."""
        return self._density().h

    @property
    def error_bound_(self) -> float:
        """The most by which a density can be wrong, as a share of the peak; 0 where every sum is made."""
        density = self._density()
        return density.error if isinstance(density, ColumnDensity) else 0.0

    def save(self, path: Any) -> None:
        """Write the rows and the settings to a file that `softcount.load` reads."""
        check_is_fitted(self, "rows_")
        weights = np.empty(0) if self.rows_.weights is None else self.rows_.weights
        save_density(self, path, {"cells": self.rows_.cells, "weights": weights}, self.rows_.level)

    def _restore(self, arrays: dict[str, np.ndarray], level: Any) -> None:
        """Take what a file holds, if it makes sense."""
        cells = finite(arrays, "cells")
        if cells.ndim != 2 or not len(cells) or cells.shape[1] != self.n_features_in_:
            raise ModelFileError("its rows have other columns than it says.")
        weights = finite(arrays, "weights", None if not arrays["weights"].size else (len(cells),))
        if (weights <= 0).any() or not (level is None or (type(level) is int and -1100 < level < 1100)):
            raise ModelFileError("its weights are not all above zero, or its level is none.")
        named_kernel(self.kernel)
        for rule in self._rules(self.n_features_in_):
            checked_rule(rule)
        for column, end in enumerate(self._ends()):
            refuse_outside(self, cells[:, column], column, end)
        self._take(DensityRows(cells, weights if weights.size else None, level))

    @row_by_row
    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of each row, in nats; 0 for a row of which nothing is known."""
        density = self._density()
        cells, _ = cells_of(self, X, reset=False)
        if isinstance(density, ProductDensity):
            return density.log_density(cells)
        column = np.ascontiguousarray(cells[:, 0])
        if not np.isnan(column.sum()):
            return density.log_density(column)
        missing = np.isnan(column)
        found = np.zeros(len(column))
        found[~missing] = density.log_density(column[~missing])
        return found

    @needs_all_rows
    def score(self, X: Any, y: Any = None) -> float:
        """The log-likelihood of all rows together."""
        return float(self.score_samples(X).sum())

    @row_by_row
    def cdf(self, X: Any) -> np.ndarray:
        """The probability of a value at or below each; of several columns, of all at or below theirs."""
        density = self._density()
        cells, _ = cells_of(self, X, reset=False)
        if isinstance(density, ProductDensity):
            return density.integral(np.full_like(cells, -np.inf), cells)
        return density.cdf(np.ascontiguousarray(cells[:, 0]))

    def quantile(self, shares: Any) -> Any:
        """The value with each share of the density at or below it; of one column."""
        density = self._one_column("quantile")
        asked = np.atleast_1d(np.asarray(shares, dtype=np.float64))
        if asked.ndim != 1 or not ((asked >= 0) & (asked <= 1)).all():
            raise DataError(f"shares must lie between 0 and 1, not {shares!r}.")
        found = density.quantile(asked)
        return float(found[0]) if np.ndim(shares) == 0 else found

    def integrate(self, low: Any, high: Any) -> float:
        """The probability between two values, or in the box between two corners; minus that if they are exchanged."""
        density = self._density()
        if isinstance(density, ProductDensity):
            corners = [
                np.broadcast_to(np.asarray(end, dtype=np.float64), (1, self.n_features_in_)) for end in (low, high)
            ]
            return float(density.integral(*corners)[0])
        below = density.cdf(np.array([low, high], dtype=np.float64))
        return float(below[1] - below[0])

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Rows drawn from the density: a plain column where one was fitted, else (rows x columns)."""
        check_whole("n_samples", n_samples, 1)
        density = self._density()
        rng = np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))
        drawn = density.sample(int(n_samples), rng)
        return drawn if drawn.ndim == 2 or self.plain_column_ else drawn[:, None]


# A histogram as a density, with scikit-learn's names.


class Histogram(Estimator):
    """The density of one column in steps, from its least value to its greatest.

    One prior row is spread evenly from the first edge to the last, so that an empty bin keeps a little mass: a density
    is (counts + width / range) / ((rows + 1) width). Outside the edges it is 0. Missing values are no evidence.

    >>> model = Histogram(2).fit([0.0, 1.0, 2.0, 8.0])
    >>> model.edges_, model.counts_, np.exp(model.score_samples([1.0, 9.0]))
    (array([0., 4., 8.]), array([3., 1.]), array([0.175, 0.   ]))
    """

    edges_: np.ndarray
    counts_: np.ndarray

    def __init__(self, bins: Any = "auto") -> None:
        self._keep_parameters(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Histogram:
        """Choose the edges and count the rows between them. `y` is not used."""
        cells, self.plain_column_ = cells_of(self, X, reset=True)
        if cells.shape[1] != 1:
            raise DataError(f"a histogram is of one column, and X has {cells.shape[1]}: fit one for each.")
        cells, weights = known_rows(self, cells, sample_weight)
        points = WeightedPoints(cells[:, 0], weights)
        self.edges_ = edges_of(self.bins, points)
        self.counts_ = counts_of(points, self.edges_)
        return self

    @property
    def probabilities_(self) -> np.ndarray:
        """The probability of each bin."""
        widths = np.diff(self.edges_)
        return np.asarray((self.counts_ + widths / widths.sum()) / (self.counts_.sum() + 1))

    def save(self, path: Any) -> None:
        """Write the bins and the settings to a file that `softcount.load` reads."""
        check_is_fitted(self, "edges_")
        save_density(self, path, {"edges": self.edges_, "counts": self.counts_})

    def _restore(self, arrays: dict[str, np.ndarray], level: Any) -> None:
        """Take what a file holds, if it makes sense."""
        edges = finite(arrays, "edges")
        if edges.ndim != 1 or len(edges) < 2 or (np.diff(edges) <= 0).any() or self.n_features_in_ != 1:
            raise ModelFileError("its edges do not rise from one to the next.")
        counts = finite(arrays, "counts", (len(edges) - 1,))
        if (counts < 0).any() or level is not None:
            raise ModelFileError("its counts are not all counts.")
        self.edges_, self.counts_ = edges, counts

    def _column(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "edges_")
        cells, _ = cells_of(self, X, reset=False)
        return np.ascontiguousarray(cells[:, 0])

    @row_by_row
    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of each value: minus infinity outside the edges, 0 for a missing one."""
        column = self._column(X)
        heights = np.log(self.probabilities_ / np.diff(self.edges_))
        with np.errstate(invalid="ignore"):
            inside = (column >= self.edges_[0]) & (column <= self.edges_[-1])
        found = np.where(np.isnan(column), 0.0, -np.inf)
        where = np.searchsorted(self.edges_, column[inside], side="right") - 1
        found[inside] = heights[np.minimum(where, len(heights) - 1)]
        return found

    @needs_all_rows
    def score(self, X: Any, y: Any = None) -> float:
        """The log-likelihood of all values together."""
        return float(self.score_samples(X).sum())

    @property
    def _below(self) -> np.ndarray:
        """The probability below each edge."""
        return np.concatenate([[0.0], np.cumsum(self.probabilities_)[:-1], [1.0]])

    @row_by_row
    def cdf(self, X: Any) -> np.ndarray:
        """The probability of a value at or below each."""
        column = self._column(X)
        return np.asarray(np.interp(column, self.edges_, self._below))

    def quantile(self, shares: Any) -> Any:
        """The value with each share of the density at or below it."""
        check_is_fitted(self, "edges_")
        asked = np.asarray(shares, dtype=np.float64)
        if not ((asked >= 0) & (asked <= 1)).all():
            raise DataError(f"shares must lie between 0 and 1, not {shares!r}.")
        found = np.interp(asked, self._below, self.edges_)
        return float(found) if asked.ndim == 0 else found

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Values drawn: a plain column where one was fitted, else (rows x 1)."""
        check_whole("n_samples", n_samples, 1)
        rng = np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))
        drawn = np.asarray(self.quantile(rng.random(int(n_samples))))
        return drawn if self.plain_column_ else drawn[:, None]
