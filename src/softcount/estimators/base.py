"""The base of all estimators: declared parameters, results as frames, and the record of a fit."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from msgspec.structs import replace
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import softcount
from softcount.core.counts import Counts
from softcount.core.lazy import LazyModule, sparse
from softcount.errors import DataError, ParameterError, SoftcountError, warn
from softcount.estimators import inputs
from softcount.estimators.docstrings import IGNORED, Arguments, document, document_methods
from softcount.estimators.inputs import ArrayLike, FilePath, RandomState, attribute, engines, needs_all_rows, row_by_row
from softcount.estimators.parameters import PARAMETERS, Parameter, check_arguments, check_whole, remedy
from softcount.estimators.result_frames import (
    Frame,
    arrow_table,
    as_frame,
    fill_cells,
    frame_like,
    list_kinds,
    schema_table,
)
from softcount.estimators.saving import save_estimator
from softcount.evaluate.warnings import class_notes
from softcount.files.codec import Arrays, Document
from softcount.files.model_file import encode_model
from softcount.fit import Request, complete
from softcount.fitted.fitted import Fitted, FittedTable
from softcount.learn.record import Plan, Provenance, bic, description_length
from softcount.models.declare import Declared
from softcount.models.nodes import Node
from softcount.run.local import Runner, Threads
from softcount.run.progress import progress_on, report_starts
from softcount.sources.open_source import PartsSource
from softcount.table import Contradiction, Table
from softcount.table.chunk import Chunk, Chunks
from softcount.table.schema import Key, with_usual

if TYPE_CHECKING:
    from softcount import explore as explore
    from softcount.explore.page import ExplorePage
    from softcount.report import report as report
    from softcount.report.report import Report
    from softcount.run.workers import WorkersEngine

if not TYPE_CHECKING:
    explore = LazyModule("softcount.explore")
    report = LazyModule("softcount.report.report")

descriptions: Any = LazyModule("softcount.estimators.repr")
scoring_plan: Any = LazyModule("softcount.export.scoring_plan")

FEW_ROWS = 64
"""Rows up to which an array of numbers is scored as it is."""
BY_ROW = ("proba", "log_proba", "score_rows", "log_joint")
"""Answers that need no more than a few rows at a time."""
KEPT_CELLS = 1_000_000
"""Cells of a table up to which its rows are kept, until notes, a report or a file need them again."""


class Estimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator whose constructor names its parameters; `parameters.PARAMETERS` declares them.

    `_varied` holds those that mean something else in this estimator, `_elsewhere` what to use for parameters that it
    does not have.
    """

    _varied: ClassVar[Mapping[str, Parameter]] = {}
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    _arguments: ClassVar[Arguments] = {}  # parameters of the methods of this class, see `docstrings`
    _declared: ClassVar[Mapping[str, Parameter]] = {}
    _learned: ClassVar[str] = "fitted_"  # the attribute that a fit sets
    _input_tags: ClassVar[Mapping[str, bool]] = {}  # scikit-learn's tags of X that differ from its defaults
    _library: str | None = None  # of the frame that was fitted

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        varied = {name: own for base in reversed(cls.__mro__) for name, own in vars(base).get("_varied", {}).items()}
        if cls.__init__ is not object.__init__:
            given = list(signature(cls.__init__).parameters.values())[1:]
            cls._declared = {own.name: varied.get(own.name) or PARAMETERS[own.name] for own in given}
            cls.__doc__ = document(cls, cls._declared, {own.name: own.default for own in given})
        document_methods(cls, vars(cls).get("_arguments", {}))

    def __new__(cls, *given: Any, **named: Any) -> Self:
        if named and cls._declared:
            cls._refuse_unknown(named)
        made: Self = super().__new__(cls)
        return made

    def set_params(self, **params: Any) -> Self:
        self._refuse_unknown(params, "Invalid parameter {!r}: ")
        made: Self = super().set_params(**params)
        return made

    @classmethod
    def _refuse_unknown(cls, names: Iterable[str], before: str = "") -> None:
        for name in names:
            if name not in cls._declared and "__" not in name:
                hint = remedy(name, cls._declared, cls._elsewhere)
                raise ParameterError(f"{before.format(name)}{cls.__name__} has no parameter {name!r}.{hint}")

    def _keep_parameters(self, given: Mapping[str, Any]) -> None:
        """Keep the arguments of the constructor, its `locals()`, as attributes: all that scikit-learn wants there."""
        for name in self._declared:
            setattr(self, name, given[name])

    def _check_settings(self) -> None:
        """Raise an error at the first parameter that cannot be used, by its name."""
        for name, declared in self._declared.items():
            declared.check(name, getattr(self, name))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for name, value in self._input_tags.items():
            setattr(tags.input_tags, name, value)
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._learned)

    @property
    def _fitted(self) -> Any:
        """What the fit learned; without a fit, scikit-learn's error."""
        if self._learned not in vars(self):
            check_is_fitted(self, self._learned)
        return vars(self)[self._learned]

    def _missing(self) -> tuple[str, ...]:
        """The cells that mean missing: the usual ones, and those that a parameter `missing` adds."""
        given = getattr(self, "missing", None)
        if given is not None and not isinstance(given, Iterable):
            raise DataError(
                f"missing is a list of cells that mean missing, in addition to the usual ones, not {given!r}."
            )
        return with_usual(() if given is None else given)

    def _runner(self, table: Table) -> Threads | WorkersEngine:
        """What runs the passes of a fit: threads of this process, or the engine that was given or that has the rows."""
        engine, spill = getattr(self, "engine", None), getattr(self, "spill", None)
        if engine is None and not isinstance(table.source, PartsSource):
            return Threads(self.n_jobs, None if spill is None else os.fsdecode(spill))
        found: WorkersEngine = engines.make_engine(engine, table.source)
        return found

    def _like_this(self, *attributes: str) -> Self:
        """An estimator with the same parameters and columns, without a model; further `attributes` are copied too."""
        found = type(self)(**self.get_params(deep=False))
        for name in ("n_features_in_", "feature_names_in_", "_library", *attributes):
            if name in vars(self):
                setattr(found, name, getattr(self, name))
        return found

    def _result(self, table: Any, X: Any = None, rows: Any = None) -> Any:
        """A result of the rows of X, or of some of them, as X is; a result of the model, as what it was learned from.

        A pandas DataFrame gets the index of those rows.
        """
        if X is None:
            return as_frame(table, self._library)
        return frame_like(X, table, slice(None) if rows is None else rows)

    def save(self, path: FilePath) -> None:
        """Write the model to a file that `softcount.load` reads.

        The file holds the counts, so a loaded model can be merged and updated. Loading it runs no code.
        """
        save_estimator(self, path)

    def _parts(self, arrays: Arrays) -> Document:
        """What a model file holds of the fitted model; arrays are put into `arrays`."""
        return encode_model(self._fitted, arrays)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Its parameters as scikit-learn shows them and, once fitted, a line on the model."""
        from sklearn.utils._pprint import _EstimatorPrettyPrinter as Printer

        # scikit-learn breaks long lines only of estimators whose `__repr__` it knows.
        Printer._dispatch.setdefault(Estimator.__repr__, Printer._pprint_estimator)
        call: str = super().__repr__(N_CHAR_MAX)
        found = descriptions.describe(self)
        return call if found is None else f"{call}  # {next(found)}"

    def _html_repr(self) -> str:
        """What scikit-learn's `_repr_html_` shows: at most 15 KB, styles inline, no script."""
        found = descriptions.describe(self)
        if found is None:
            from sklearn.utils import estimator_html_repr

            return str(estimator_html_repr(self))
        return str(descriptions.boxed(type(self).__name__, next(found), found))


document_methods(Estimator, {})


@contextmanager
def progress(estimator: Any, plan: Plan, what: str = "starts") -> Iterator[Plan]:
    """The plan of a fit; with `verbose` it shows a progress bar on a terminal."""
    with progress_on(sys.stderr) if estimator.verbose else nullcontext() as tell:
        yield plan if tell is None else replace(plan, watch=report_starts(tell, what))


class ExportableEstimator(Estimator):
    """An estimator whose scores are sums over columns, so that other programs can compute them.

    `_export_plan()` is how rows are scored. The export is checked on `_export_rows()`, 1,000 rows drawn from the model
    with its answers, and refused if it gives other answers.
    """

    def to_sql(self, dialect: str = "duckdb", table: str = "rows", keep: Sequence[str] = ()) -> str:
        """Return a query that scores the rows of a table in a database.

        Missing cells and unseen categories are treated as `predict_proba` treats them. The query is checked on 1,000
        rows drawn from the model before it is returned.

        Parameters
        ----------
        dialect : {'duckdb', 'postgres', 'sqlite', 'spark', 'bigquery', 'snowflake'}, default='duckdb'
            SQL dialect.
        table : str, default='rows'
            Name of the table.
        keep : str or list of str, default=()
            Columns to copy into the result.

        Returns
        -------
        str
            A SELECT statement with the predicted class and the probability of each class.

        Raises
        ------
        DataError
            If the score is not a sum over columns, or if the query gives other answers than the model.

        Examples
        --------
        >>> from softcount import NaiveBayes
        >>> model = NaiveBayes().fit({"colour": ["red", "red", "blue"]}, ["apple", "apple", "plum"])
        >>> print(model.to_sql("sqlite", table="fruit").splitlines()[0])
        -- Scores rows as the model does: the class it predicts and the probability of each. Made by Softcount.
        """
        from softcount.export.sql_query import as_sql

        return as_sql(self, dialect, table, [keep] if isinstance(keep, str) else keep)[0]

    def to_onnx(self) -> Any:
        """Return an ONNX model that scores rows.

        It takes a tensor of shape (n_rows, 1) for each column, doubles with NaN for missing numbers and strings for
        categories, and returns `predicted` and `probabilities`. The model is checked on 1,000 rows drawn from the
        estimator.

        Returns
        -------
        onnx.ModelProto
            The model, which `onnx.save(model, "model.onnx")` writes.

        Raises
        ------
        DataError
            If the score is not a sum over columns, or if the ONNX model gives other answers than this model.
        """
        from softcount.export.onnx_graph import as_onnx

        return as_onnx(self)[0]


SCORED: Arguments = {
    "X": ("DataFrame, Arrow table, file name, array or sequences", "Rows, or sequences for a model of sequences."),
    "y": IGNORED,
    "sample_weight": ("array", "A weight for each row or sequence."),
}


class LikelihoodEstimator(Estimator):
    """An estimator whose `score_samples` is the log-density of each row, or of each sequence."""

    _arguments: ClassVar = SCORED

    def _total(self, X: Any, sample_weight: Any = None) -> tuple[float, float, float]:
        """The log-likelihood, the weight of the rows or sequences, and the rows or steps that `bic` counts."""
        logs = self.score_samples(X)
        weights = inputs.fill_weights(sample_weight, len(logs))
        total, size = float(weights[weights > 0] @ logs[weights > 0]), float(weights.sum())
        return total, size, size

    @needs_all_rows
    def log_likelihood(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the log-likelihood of all rows, or sequences, together."""
        return self._total(X, sample_weight)[0]

    @needs_all_rows
    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood per row, or per sequence."""
        total, size, _ = self._total(X, sample_weight)
        return total / size if size else float("nan")


class SequenceEstimator(LikelihoodEstimator):
    """An estimator of sequences, whose pages take no rows."""

    @check_arguments
    def explore(self) -> ExplorePage:
        """Return the interactive explorer: any step of a sequence given any others."""
        return explore.make_explorer(self)

    def report(self, redact: bool = False) -> Report:
        """Return a report on the model with pictures."""
        return report.make_report(self, None, redact)


class ModelEstimator(LikelihoodEstimator):
    """An estimator with a model of columns in `fitted_`."""

    fitted_: Annotated[Any, "The fitted model, which other functions of the package accept."]
    n_features_in_: Annotated[int, "Number of columns of `X` in `fit`."]
    feature_names_in_: Annotated[np.ndarray, "Names of the columns of `X`, if it has names."]
    n_jobs: int | None

    params_: dict[Key, dict[str, np.ndarray]] = attribute(
        "params", "Parameters of every column, block or node by its name. The classes, or the states, come first."
    )
    levels_: dict[Key, Sequence[object]] = attribute("levels", "Categories of every categorical column.")
    counts_: Counts = attribute(
        "counts", "Counts: everything that the parameters are computed from, apart from the prior."
    )
    notes_: list[str] = attribute("notes", "Warnings and remarks from the fit.")
    n_parameters_: int = attribute("n_parameters", "Number of free parameters.")
    _training: tuple[Table, Request] | None = None  # what was learned from, until the record needs it

    def _keep(self, fitted: Any) -> None:
        """Take a fitted model, of a fit or from a file."""
        self.fitted_, self._training = fitted, None


class EmEstimator(ModelEstimator):
    """An estimator whose model EM has found."""

    _arguments: ClassVar = SCORED

    log_likelihood_: float = attribute("log_likelihood", "Log-likelihood of the rows of the fit.")
    trace_: list[float] = attribute("trace", "Objective of EM at the start and after every iteration.")
    converged_: bool = attribute("converged", "Whether EM stopped because it converged, not because of `max_iter`.")
    n_iter_: int = attribute("n_iter", "Number of iterations of the best initialisation.")

    @property
    def bic_(self) -> float:
        """The Bayesian information criterion of the data of the fit; smaller is better."""
        return bic(self.log_likelihood_, self.n_parameters_, self.counts_.rows)

    @needs_all_rows
    def bic(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion of these rows or sequences; smaller is better.

        Returns
        -------
        float
            -2 log-likelihood + n_parameters log(n), where n is the number of rows, or of steps.
        """
        total, _, size = self._total(X, sample_weight)
        return bic(total, self.n_parameters_, size)

    @needs_all_rows
    def aic(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return Akaike's information criterion of these rows or sequences; smaller is better.

        Returns
        -------
        float
            -2 log-likelihood + 2 n_parameters.
        """
        return 2 * self.n_parameters_ - 2 * self._total(X, sample_weight)[0]

    @needs_all_rows
    def description_length(self, X: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the bits needed to encode the parameters and, given these, the data; smaller is better.

        Returns
        -------
        float
            Half of BIC, in bits. For columns of numbers only differences are meaningful.
        """
        return description_length(self.bic(X, sample_weight))


class TableEstimator(ModelEstimator):
    """An estimator with a model of the columns of a table: of classes, or a network."""

    def __getstate__(self) -> Any:
        """What is pickled, without the rows."""
        state: Any = super().__getstate__()
        return {key: part for key, part in state.items() if key != "_training"}

    def _parts(self, arrays: Arrays) -> Document:
        return encode_model(self._complete_record(), arrays)

    kinds_: dict[Key, Any] = attribute(
        list_kinds, "Distribution of every column. Given as `kinds`, it fits the same model again."
    )

    @property
    def schema_(self) -> Frame:
        """A line for each column: its kind and why, its distribution, and the number of categories."""
        return self._result(schema_table(self.fitted_))

    def _forced(self, declared: Declared, data: Any, target: Key | None = None) -> dict[Key, Any]:
        """Kinds that the user's families force on columns; one family for all forces it on every column."""
        if declared.everything is None or hasattr(data, "tocsr"):
            return inputs.read_kinds_of(data, target) | declared.forced
        columns = inputs.list_columns(data) or [place for width in np.shape(data)[1:2] for place in range(width)]
        further = data.source.aside if isinstance(data, Table) else ()  # what a folder has besides its documents
        return {key: declared.everything.facts.reads for key in columns if key not in {target, *further}}

    def _read_rows(self, X: Any) -> Table:
        """The rows of X under the schema of the model."""
        fitted: FittedTable = self._fitted
        return fitted.table(self._as_fitted(inputs.check_rows(self, X, reset=False)))

    def _as_fitted(self, data: Any) -> Any:
        """Sparse if the model is of a sparse block, dense otherwise."""
        if self.fitted_.bag and isinstance(data, np.ndarray):
            return sparse.csr_matrix(data)
        return data.toarray() if sparse.issparse(data) and not self.fitted_.bag else data

    def _answer(self, X: Any, question: str | Callable[..., Any], *how: Any) -> Any:
        """The answer of the fitted model, a method of it or a function, for the rows of X.

        It warns about unseen categories and missing columns.
        """
        few = self._few(X) if question in BY_ROW else None
        if few is not None:
            return getattr(self.fitted_, str(question))(few, Runner())
        table = self._read_rows(X)
        ask = getattr(self.fitted_, question) if isinstance(question, str) else partial(question, self.fitted_)
        with Threads(self.n_jobs) as threads:
            answer = ask(table, threads, *how)
        inputs.warn_of_unseen(table)
        return answer

    def _few(self, X: Any) -> Chunks | None:
        """A few rows of plain numbers, one for every column of the model: there is nothing to read or to warn of.

        Looking at one row as at a table took twice as long as scoring it.
        """
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not 0 < len(X) <= FEW_ROWS:
            return None
        fitted = getattr(self, "fitted_", None)
        if fitted is None or hasattr(self, "feature_names_in_") or not fitted.schema.is_plain(X.shape[1]):
            return None
        if not np.isfinite(X).all():
            return None
        codes, wide = np.empty((len(X), 0), dtype=np.uint8), np.empty((len(X), 0), dtype=np.int32)
        return Chunks([Chunk(0, len(X), X, codes, wide)], len(X))

    @row_by_row
    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-density of the observed cells of each row; a log-probability if no column is a number."""
        return np.asarray(self._answer(X, "score_rows"))

    @row_by_row
    def anomaly_score(self, X: Any) -> np.ndarray:
        """Return how far the log-density of each row lies below the expected one, given which cells are observed.

        Examples
        --------
        >>> from softcount import Mixture
        >>> mixture = Mixture(1).fit({"x": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]})
        >>> mixture.anomaly_score({"x": [1.2, 3.0]}).round(1)
        array([-0.5, 52. ])
        """
        return np.asarray(self._answer(X, "anomaly_scores"))

    @row_by_row
    def impute(self, X: Any) -> Any:
        """Fill missing cells given the rest of the row.

        Numbers get their conditional mean, categories the most probable one. Observed cells are not changed, and
        missing documents are not filled.

        Parameters
        ----------
        X : DataFrame, Arrow table, dict or array of shape (n_rows, n_columns)
            Rows with missing cells.

        Returns
        -------
        Same type as `X`
            The completed rows.

        See Also
        --------
        query : The whole distribution of a column given others.

        Examples
        --------
        >>> import pandas as pd
        >>> from softcount import Mixture
        >>> rows = pd.DataFrame({"x": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2], "kind": ["a", "a", None, "b", "b", "b"]})
        >>> Mixture(2, random_state=0).fit(rows).impute(rows)["kind"].tolist()
        ['a', 'a', 'a', 'b', 'b', 'b']
        """
        fitted, table = self._fitted, self._read_rows(X)
        if inputs.find_documents(self, X, reset=False) is not None:
            return X  # a missing document cannot be filled
        found = fitted.fills(table)
        if found:
            self._warn_of_dependence(None)
        inputs.warn_of_kept(table)
        return fill_cells(X, found, [spec.key for spec in fitted.schema.fields])

    @check_arguments
    def sample(self, n_samples: int = 1, given: Any = None, random_state: RandomState = None) -> Frame:
        """Draw rows from the model.

        Returns
        -------
        DataFrame
            The rows, as a DataFrame of the library (pandas or polars) that was used in `fit`.

        Examples
        --------
        >>> import pandas as pd
        >>> from softcount import Mixture
        >>> rows = pd.DataFrame({"x": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2], "kind": ["a", "a", "a", "b", "b", "b"]})
        >>> Mixture(2, random_state=0).fit(rows).sample(3, given={"kind": "a"}, random_state=0)["kind"].tolist()
        ['a', 'a', 'a']
        """
        fitted, n_samples = self._fitted, check_whole("n_samples", n_samples, 0)
        self._warn_of_dependence(None)
        return self._result(arrow_table(fitted.sample(n_samples, given, inputs.make_generator(random_state))))

    @check_arguments
    def explore(self, X: Any = None) -> ExplorePage:
        """Return the interactive explorer: any column given any others."""
        return explore.make_explorer(self._complete_record(), rows=None if X is None else self._read_rows(X))

    def _warn_of_dependence(self, columns: Any) -> None:
        message = self.fitted_.dependence_warning(columns)
        if message is not None:
            warn(message)

    def _keep_rows(self, table: Table, request: Request) -> None:
        """Keep the rows, unless they are too many, until their evaluation is needed: it may cost as much as the fit."""
        small = table.n_rows is not None and table.n_rows * max(1, len(table.keys)) <= KEPT_CELLS
        self._training = (table, request) if small else None

    def _complete(self) -> None:
        """Evaluate the model, add its warnings and the summary of its table, if that was not done yet.

        If the rows cannot be read again, because a file is gone, there are the warnings that the counts alone give.
        """
        training, self._training = self._training, None
        if training is None:
            return
        try:
            with Threads(self.n_jobs) as threads:
                self.fitted_ = complete(self.fitted_, *training, threads)
        except (SoftcountError, Contradiction, OSError):
            if isinstance(self.fitted_, Fitted) and self.fitted_.classes is not None:
                self.fitted_ = replace(self.fitted_, notes=[*class_notes(self.fitted_), *self.fitted_.notes])

    def _complete_record(self) -> Any:
        """The fitted model with its record, as far as that can be made now."""
        check_is_fitted(self)
        self._complete()
        record = self.fitted_.record
        if record.provenance is None and "_library" in self.__dict__:  # a file that was loaded has its own, or none
            made = " ".join(BaseEstimator.__repr__(self, N_CHAR_MAX=2000).split())
            seed = getattr(self, "random_state", None)
            whose = {"pandas": "a frame of pandas", "polars": "a frame of polars"}
            data = whose.get(self.__dict__["_library"], "a table in Python")
            origin = Provenance(softcount.__version__, f"{made}.fit", seed if type(seed) is int else 0, data)
            self.fitted_ = replace(self.fitted_, record=replace(record, provenance=origin))
        return self.fitted_


def declare_like(leaves: Sequence[Node]) -> Declared:
    """The declaration under which columns get the families that these leaves have."""
    whole = next((leaf.family for leaf in leaves if not leaf.columns), None)
    return Declared({leaf.key: leaf.family for leaf in leaves if leaf.columns}, everything=whole)
