"""A histogram as a density, with scikit-learn's names."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from softcount.densities.histogram import counts_of, edges_of
from softcount.densities.kernels import WeightedPoints
from softcount.errors import DataError, ModelFileError
from softcount.estimators.base import Estimator
from softcount.estimators.density_inputs import cells_of, known_rows
from softcount.estimators.other_faces import BinFace
from softcount.estimators.parameters import check_whole
from softcount.estimators.row_by_row import needs_all_rows, row_by_row


class Histogram(BinFace, Estimator):
    """The density of one column in steps, from its least value to its greatest.

    `bins` is a number of equal widths; ("count", number), or "count", for bins that hold as many rows each; "fd", the
    widths of Freedman and Diaconis; "blocks", Bayesian blocks; "mdl", the cuts between values with the least
    description length; or "auto", the lesser description length of such cuts and of equal widths.

    One imagined row is spread evenly from the first edge to the last, so that an empty bin keeps a little mass: a
    density is (counts + width / range) / ((rows + 1) width). Outside the edges it is 0. Missing values are no evidence.

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
        from softcount.estimators.density_files import save_density

        check_is_fitted(self, "edges_")
        save_density(self, path, {"edges": self.edges_, "counts": self.counts_})

    def _restore(self, arrays: dict[str, np.ndarray], level: Any) -> None:
        """Take what a file holds, if it makes sense."""
        from softcount.estimators.density_files import finite

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
