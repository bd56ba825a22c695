"""k-means and spherical k-means, with scikit-learn's names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from softcount.core.lazy import sparse
from softcount.errors import DataError, ModelFileError
from softcount.estimators import inputs
from softcount.estimators.base import ExportableEstimator, explore, report, scoring_plan
from softcount.estimators.docstrings import IGNORED
from softcount.estimators.inputs import ArrayLike, FilePath, RandomState, attribute, engines, row_by_row
from softcount.estimators.parameters import QUIET, check_arguments, varied
from softcount.files.codec import Arrays, Document
from softcount.files.other_models import decode_centres, encode_centres
from softcount.fitted.compare import NOTE, make_centre_classes
from softcount.learn.k_means import Centres, KMeansOptions, fit_kmeans, fit_rows, note_zeros, refuse_few
from softcount.learn.lloyd import KMeansStop, refuse_not_finite
from softcount.run.local import Threads, join_rows
from softcount.sources.frames import engine_holding, text_column
from softcount.sources.open_source import PartsSource
from softcount.sources.wording import refuse_unknown
from softcount.table import Table, check_weights, open_table
from softcount.table.schema import MISSING, Kind

if TYPE_CHECKING:
    from softcount.explore.page import ExplorePage
    from softcount.report.report import Report

LONGEST_PROBLEM = 200


# scikit-learn has no types
class KMeans(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    ExportableEstimator,
):
    """Clusters around centres: every row belongs to the nearest centre, every centre is the mean of its rows.

    It minimises the sum of squared distances between rows and their centres (the cost `inertia_`). Several
    initialisations are compared, each until no row changes its cluster. Then single rows are exchanged and centres
    moved as long as that lowers the cost. Clusters from random initialisations are sorted by size, the largest first.

    `trace_` is the cost after every assignment and every update of the last run, which starts from the best centres. It
    never rises. `labels_` is `predict(X)`. With an `engine`, the initialisations are the same as on one machine, the
    costs agree up to rounding, and `labels_` stay on the workers.

    See Also
    --------
    SphericalKMeans : Clusters of directions, for text.
    GaussianMixture : Clusters with covariances and probabilities.
    Mixture : Clusters of mixed columns with missing cells.

    References
    ----------
    .. [1] S. P. Lloyd (1982). "Least squares quantization in PCM". IEEE Transactions on Information Theory 28 (2),
       129-137.
    .. [2] J. A. Hartigan and M. A. Wong (1979). "Algorithm AS 136: a k-means clustering algorithm". Applied Statistics
       28 (1), 100-108.
    .. [3] D. Arthur and S. Vassilvitskii (2007).
       "k-means++: the advantages of careful seeding". SODA 2007, 1027-1035.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [10.0, 2.0], [10.0, 4.0], [10.0, 0.0]])
    >>> model = KMeans(2, random_state=0).fit(rows)
    >>> model.cluster_centers_.tolist(), model.labels_.tolist(), model.inertia_
    ([[1.0, 2.0], [10.0, 2.0]], [0, 0, 0, 1, 1, 1], 16.0)
    """

    found_: Annotated[Centres, "Centres and their clusters, which other functions of the package accept."]
    labels_: Annotated[np.ndarray, "The cluster of every row of `X`."]
    n_features_in_: Annotated[int, "Number of columns of `X` in `fit`."]
    feature_names_in_: Annotated[np.ndarray, "Names of the columns of `X`, if it has names."]
    _arguments: ClassVar = {
        "X": (
            "DataFrame, Arrow table, file name, array or sparse matrix of shape (n_rows, n_columns)",
            "Rows of finite numbers.",
        ),
        "y": IGNORED,
        "report.X": ("array of shape (n_rows, n_columns)", "Rows to draw."),
    }
    _learned: ClassVar = "found_"
    _input_tags: ClassVar = {"sparse": True}
    _unit = False
    _varied: ClassVar = QUIET | {
        "max_iter": varied("max_iter", least=1),
        "init": varied(
            "init", type="str or array", help="Initialisation: 'k-means++', 'random', or an array of centres."
        ),
        "tol": varied(
            "tol",
            help="With one initialisation, it stops when the squared moves of the centres sum to less "
            "than this times the mean variance of a column.",
        ),
    }

    def __init__(  # noqa: PLR0913
        self,
        n_clusters: int = 8,
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        spill: FilePath | None = None,
        engine: Any = None,
        verbose: bool = False,
    ) -> None:
        self._keep_parameters(locals())

    def fit(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the centres.

        Parameters
        ----------
        sample_weight : array of shape (n_rows,), default=None
            Weight of each row. Rows of weight 0 do not move the centres.

        Raises
        ------
        DataError
            If a cell is missing or not a number, or if there are fewer rows than clusters.
        """
        self._check_settings()
        if engine_holding(X) is not None:
            X = engines.engine_table(X, MISSING)
        if self.engine is not None or (isinstance(X, Table) and isinstance(X.source, PartsSource)):
            return self._fit_elsewhere(X, sample_weight)
        with Threads(self.n_jobs, inputs.path_of(self.spill)) as threads:
            owned = _is_foreign(X)
            rows = read_numbers(self, X, threads, reset=True)
            weights, kept, notes = inputs.read_weights(sample_weight, rows), rows, list[str]()
            names = getattr(self, "feature_names_in_", None)
            refuse_few(rows.shape[0], self.n_clusters)
            if weights is not None and not (weights > 0).all():
                refuse_not_finite(rows, names, threads)
                if not (weights > 0).any():
                    raise DataError("every row has weight 0, so none is there to cluster.")
                kept, weights = rows[weights > 0], weights[weights > 0]
            if self._unit:
                refuse_not_finite(kept, names, threads)
                directed = np.asarray((kept != 0).sum(axis=1)).ravel() > 0
                if not directed.all():
                    notes = note_zeros(int((~directed).sum()), int(directed.sum()))
                    kept, weights = kept[directed], None if weights is None else weights[directed]
            found, labels = fit_kmeans(kept, weights, self._wish(), threads, names, owned=owned and kept is rows)
            self.labels_ = labels if kept is rows else found.assign(rows, threads)[0]
        found.notes.extend(notes)
        self.found_ = found
        return self

    def _fit_elsewhere(self, X: Any, sample_weight: Any) -> Self:
        """Find the centres where the workers of an engine have the rows."""
        if sample_weight is not None:
            raise DataError("on an engine every row weighs one. Leave sample_weight out, or leave the engine out.")
        table, places, wanted = _open_numbers(X, self, reset=True)
        with self._runner(table) as runner:
            rows = runner.encoded(table)
            try:
                found = fit_rows(runner.settled(table, rows, table.settle()), places, self._wish(), runner, wanted)
            finally:
                rows.close()
        inputs.remember_columns(self, table, X)
        if hasattr(self, "labels_"):
            del self.labels_
        self.found_ = found
        return self

    def _wish(self) -> KMeansOptions:
        # The seed is drawn from theirs: a RandomState is advanced, as scikit-learn advances it.
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        stop = KMeansStop(self.max_iter, self.tol)
        return KMeansOptions(self.n_clusters, self.init, self.n_init, stop, seed, self._unit)

    cluster_centers_: np.ndarray = attribute("centres", "Centres of the clusters, shape (n_clusters, n_columns).")
    inertia_: float = attribute(
        "inertia", "Cost: the weighted sum of squared distances of the rows from their nearest centres."
    )
    n_iter_: int = attribute("n_iter", "Number of iterations, assignment and update, of the last descent.")
    _n_features_out: int = attribute(lambda found: len(found.centres), "The number of columns that `transform` gives.")
    trace_: list[float] = attribute(
        "trace", "Cost after every assignment and every update of the last descent. It never rises."
    )
    converged_: bool = attribute("converged", "Whether no row changed its cluster in the last pass.")
    agreed_: tuple[int, int] = attribute(
        "agreed", "Number of initialisations that reached the best cost, and number of all."
    )
    notes_: list[str] = attribute("notes", "Warnings and remarks from the fit.")

    def _answer(self, X: Any, question: Callable[[Centres, Any, Threads], inputs.Answer]) -> inputs.Answer:
        found = self._fitted
        with Threads(self.n_jobs, inputs.path_of(self.spill)) as threads:
            rows = read_numbers(self, X, threads, reset=False)
            refuse_not_finite(rows, getattr(self, "feature_names_in_", None), threads)
            return question(found, rows, threads)

    @row_by_row
    def predict(self, X: Any) -> np.ndarray:
        """Predict the cluster of each row, the one with the nearest centre.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Number of the nearest centre, the first of those equally near.
        """
        return self._answer(X, Centres.assign)[0]

    @row_by_row
    def transform(self, X: Any) -> np.ndarray:
        """Return the distance of each row from each centre.

        Returns
        -------
        ndarray of shape (n_rows, n_clusters)
            Euclidean distances.

        Examples
        --------
        >>> model = KMeans(2, random_state=0).fit(np.array([[0.0], [2.0], [10.0]]))
        >>> model.transform(np.array([[4.0]]))
        array([[3., 6.]])
        """
        return self._answer(X, Centres.distances)

    def fit_predict(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Find the centres and return the cluster of each row."""
        self.fit(X, sample_weight=sample_weight)
        if not hasattr(self, "labels_"):
            if engine_holding(X) is not None:
                return self.predict(X)
            raise DataError("the labels of rows that an engine has are not brought here. Use fit, then predict some.")
        return self.labels_

    def score(self, X: Any, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the cost of rows, as scikit-learn's `KMeans` does.

        Returns
        -------
        float
            Minus the sum of squared distances from the nearest centres.
        """
        squares = self._answer(X, Centres.assign)[1]
        weights = None if sample_weight is None else check_weights(sample_weight, len(squares))
        return -float(squares.sum() if weights is None else weights @ squares)

    @check_arguments
    def explore(self, X: Any = None) -> ExplorePage:
        """Return the interactive explorer: any column given any others.

        It shows the Gaussian mixture of which k-means is the limit: clusters of equal share and equal variance in every
        direction.
        """
        named = hasattr(self, "feature_names_in_")
        classes = make_centre_classes(self._fitted, self._export_keys() if named else list(range(self.n_features_in_)))
        rows = None if X is None else classes.table(inputs.check_rows(self, X, reset=False))
        return explore.make_explorer(classes, rows=rows, note=NOTE)

    def report(self, X: Any = None, redact: bool = False) -> Report:
        """Return a report on the clusters with pictures."""
        check_is_fitted(self)
        return report.make_report(self, X, redact)

    def _export_plan(self) -> Any:
        return scoring_plan.plan_centres(self.cluster_centers_, self._export_keys(), self.found_.frame.unit)

    def _export_rows(self) -> Any:
        cells = scoring_plan.draw_around(self.cluster_centers_, self._export_keys())
        rows = pa.table(dict(cells)) if hasattr(self, "feature_names_in_") else np.array(list(cells.values())).T
        return scoring_plan.DrawnRows(cells, None, self.predict(rows))

    def _export_keys(self) -> list[str]:
        return [str(name) for name in getattr(self, "feature_names_in_", range(self.n_features_in_))]

    def _parts(self, arrays: Arrays) -> Document:
        return encode_centres(self._fitted, arrays)

    def _restore(self, document: Document, arrays: Arrays) -> None:
        found = decode_centres(document, arrays)
        if self.n_features_in_ != found.centres.shape[1]:
            raise ModelFileError("its estimator was fitted on other columns than its centres have.")
        if self.n_clusters != len(found.centres) or self._unit != found.frame.unit:
            raise ModelFileError("its settings are not those of its centres.")
        self.found_ = found


class SphericalKMeans(KMeans):
    """Spherical k-means: rows and centres have length one, and the nearest centre has the largest cosine.

    Use it for text and other rows where only proportions matter; rows may be sparse. The cost is the sum of squared
    distances between unit rows and their centres, which is twice the sum of (1 - cosine). A row of zeros has no
    direction: it is left out of the fit, gets the first label, and is counted in `notes_`.

    See Also
    --------
    KMeans : Clusters by distance instead of direction.
    BagOfWords : Makes sparse rows of texts.

    References
    ----------
    .. [1] I. S. Dhillon and D. S. Modha (2001). "Concept decompositions for large sparse text data using clustering".
       Machine Learning 42, 143-175.

    Examples
    --------
    >>> model = SphericalKMeans(2, random_state=0).fit(np.array([[1.0, 0.0], [9.0, 0.0], [0.0, 1.0], [0.0, 5.0]]))
    >>> model.labels_.tolist(), model.cluster_centers_.tolist()
    ([1, 1, 0, 0], [[0.0, 1.0], [1.0, 0.0]])
    """

    _unit = True


def read_numbers(estimator: Any, X: Any, threads: Threads, reset: bool) -> Any:
    """X as a dense array or compressed sparse rows of float32 or float64; names and width are kept or compared."""
    if text_column(X) is not None:
        raise DataError(
            f"X is {len(X):,} texts, and k-means needs numbers. "
            'Make some of the words: BagOfWords("tfidf").fit_transform(X).'
        )
    if _is_foreign(X):
        return _read_foreign(estimator, X, threads, reset)
    how = {"dtype": [np.float64, np.float32], "order": "C", "accept_large_sparse": True}
    X = X if reset else inputs.reorder_columns(estimator, X)
    rows = inputs.validate_cells(estimator, X, partial(_name_column, X), reset=reset, **how)
    if sparse.issparse(rows) and not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _is_foreign(X: Any) -> bool:
    """Whether X is a table that scikit-learn does not read: a file, a mapping, an Arrow or an opened table."""
    named = isinstance(X, (str, os.PathLike, Mapping, Table)) or hasattr(X, "combine_chunks")
    return named and not sparse.issparse(X)  # a sparse matrix by keys is a mapping too


def _read_foreign(estimator: Any, X: Any, threads: Threads, reset: bool) -> np.ndarray:
    """The columns of such a table as numbers, in new memory, or mapped if they do not fit."""
    table, places, _ = _open_numbers(X, estimator, reset)
    in_place = places == list(range(len(table.schema.used)))
    parts = (task().reals for task in table.tasks())
    cells = join_rows(parts if in_place else (part[:, places] for part in parts), threads.spill, table.n_rows)
    if reset:
        inputs.remember_columns(estimator, table, X)
    elif cells.shape[1] != estimator.n_features_in_:
        raise DataError(
            f"X has {cells.shape[1]} columns, but {type(estimator).__name__} was fitted on {estimator.n_features_in_}."
        )
    return cells


def _open_numbers(X: Any, estimator: Any, reset: bool) -> tuple[Table, list[int], list[Any]]:
    """The table with columns as numbers, the places and names of those wanted: of a fitted estimator, its own."""
    keys = inputs.list_columns(X)
    wanted = keys if reset else list(getattr(estimator, "feature_names_in_", keys))
    known, used = set(keys), set(wanted)
    for key in wanted:
        if key not in known:
            refuse_unknown(keys, key, "the fitted model")
    table = open_table(X, kinds={key: Kind.REAL if key in used else "ignore" for key in keys})
    return table, [table.schema.places[key].slot for key in wanted], wanted


def _name_column(X: Any, problem: str) -> str:
    """The problem, with the first column of a frame that holds no numbers; a document it quotes is cut short."""
    problem = problem if len(problem) <= LONGEST_PROBLEM else f"{problem[: LONGEST_PROBLEM - 3]}..."
    for name in getattr(X, "columns", []):
        cells = np.asarray(X[name])
        is_number = cells.dtype.kind not in "mM"  # NumPy counts dates from 1970
        try:
            cells.astype(np.float64)
        except (TypeError, ValueError):
            is_number = False
        if not is_number:
            needs = "k-means needs numbers: leave it out, or use Mixture."
            return f"column {name!r} is not all numbers ({problem}). {needs}"
    return problem
