"""Mixtures: components of any table, found by EM from several initialisations, or from a stream of batches."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from msgspec.structs import replace
from sklearn.base import ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils import ClassifierTags

from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.base import EmEstimator, progress
from softcount.estimators.docstrings import IGNORED, PARTIAL_ROWS
from softcount.estimators.fitted_estimator import FittedEstimator, Posteriors
from softcount.estimators.inputs import ArrayLike, FilePath, RandomState, attribute, engines, needs_all_rows, row_by_row
from softcount.estimators.parameters import AUTO, HALF_LIFE, Parameter
from softcount.estimators.result_frames import Frame, arrow_lines
from softcount.files.other_models import remove_checkpoint
from softcount.fit.classes import ClassRequest, ClassSearch
from softcount.fitted.fitted import Fitted
from softcount.learn.initialise import INITS, name_of_shares, start_levels
from softcount.learn.known_classes import Batch, finish_batch, step_batch
from softcount.learn.mixture import Starts
from softcount.learn.prepare import NOT_USED, check_reach
from softcount.learn.record import Plan, Stop, prior_levels
from softcount.models.align import find_open_texts, keep_every_word, unite_schemas
from softcount.models.declare import read_kinds
from softcount.run.local import HeldRows, Threads
from softcount.sources.frames import engine_holding
from softcount.table import Contradiction, Table, open_table, refuse_many_numbers
from softcount.table.schema import Key, Kind, Schema

HEAVIEST = 1e200
KnownLabels = tuple[list[Any] | None, np.ndarray | None, Key | None, list[str]]
"""The known classes and the code of each row (-1 unknown), or the column that holds them; and notes."""


# scikit-learn has no types
class Mixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, EmEstimator, FittedEstimator):  # type: ignore[misc]
    """Mixture model of any table: classes to be found, with columns of any kind, independent given the class.

    The density of a row is the sum over components k of share_k * product over columns of p(x_j | k). It covers latent
    class analysis and AutoClass, and is fitted by EM. Use it to cluster tables with mixed types and missing cells.

    EM runs from several initialisations and the best is kept; `agreed_` is how many reached it, and `selection_` which
    numbers of components were tried. Classes are reported largest first.

    `sample`, `query` and `impute` stay in the range of a column of numbers whose kind was not declared: at 0 or above
    if it is never negative, and not beyond its minimum or maximum if 2 % of the rows (and at least 5) have this value.
    `score_samples` is the log-density before the classes are truncated to that range. Any number of workers of an
    `engine` gives a bit-for-bit identical model.

    See Also
    --------
    GaussianMixture : Normal components with full covariances, in scikit-learn's parameters.
    KMeans : Clusters of numbers around centres.
    NaiveBayes : The same model if the classes are known.
    HiddenMarkov : Components that follow each other in sequences.

    References
    ----------
    .. [1] A. P. Dempster, N. M. Laird and D. B. Rubin (1977). "Maximum likelihood from incomplete data via the EM
       algorithm". Journal of the Royal Statistical Society B 39 (1), 1-38.
    .. [2] P. Cheeseman and J. Stutz (1996). "Bayesian classification (AutoClass): theory and results". In Advances in
       Knowledge Discovery and Data Mining, AAAI Press, 153-180.
    .. [3] O. Cappe and E. Moulines (2009). "On-line expectation-maximization algorithm for latent data models". Journal
       of the Royal Statistical Society B 71 (3), 593-613.
    .. [4] H. F. Walker and P. Ni (2011). "Anderson acceleration for fixed-point iterations". SIAM Journal on Numerical
       Analysis 49 (4), 1715-1735.

    Examples
    --------
    >>> mixture = Mixture(n_components=2, random_state=0).fit({"x": [1.0, 1.1, 1.2, 1.3, 9.0, 9.1]})
    >>> mixture.predict({"x": [1.05, 8.95]})
    array([0, 1])
    """

    _arguments: ClassVar = {"X": PARTIAL_ROWS, "partial_fit.y": IGNORED}

    def __init__(  # noqa: PLR0913
        self,
        n_components: int | str = AUTO,
        kinds: Any = None,
        prior: Any = "row",
        estimate: str = "mean",
        init: Any = "k-means++",
        criterion: str = "evidence",
        n_init: int = 10,
        max_iter: int = 1000,
        tol: float = 1e-8,
        accelerate: bool = True,
        assign: str = "soft",
        fixed: Any = None,
        finish: str | None = None,
        half_steps: bool = False,
        missing: Any = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
        spill: FilePath | None = None,
        checkpoint: FilePath | None = None,
        engine: Any = None,
    ) -> None:
        self._keep_parameters(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : DataFrame, Arrow table, file name, sparse matrix or array of shape (n_rows, n_columns)
            Rows. Cells may be missing.
        y : array of shape (n_rows,) or str, default=None
            Classes of some rows, or the name of the column of `X` that holds them. These rows stay in their class, and
            component i is `classes_[i]`. A complete `y` is ignored, as in scikit-learn.

        Raises
        ------
        DataError
            If `y` names more classes than there are components, or a weight is too large.

        Examples
        --------
        >>> mixture = Mixture(2, random_state=0).fit({"x": [1.0, 1.1, 9.0, 9.1]}, ["low", None, "high", None])
        >>> mixture.predict({"x": [2.0, 8.0]}).tolist()
        ['low', 'high']
        """
        self._check_settings()
        if engine_holding(X) is not None:
            X = engines.engine_table(X, self._missing())
        data = inputs.open_file(inputs.check_rows(self, X, reset=True), self._missing())
        before = inputs.read_weights(sample_weight, data)
        if before is not None and before.max(initial=0.0) > HEAVIEST:  # no room for the squares that it multiplies
            raise DataError(
                f"a weight is above {HEAVIEST:g}, too large to count with. Divide all weights by the largest."
            )
        names, labels, target, notes = _read_labels(y, X, data, before)
        all_rows = data
        data, weights, codes = inputs.drop_zero_weights(data, before, labels)
        plan = self._plan(target=target, named=names)
        levels = start_levels(self.init) | start_levels(self.fixed) | prior_levels(self.prior)
        forced = {key: Kind.CATEGORICAL for key in levels} | self._forced(plan.declared, data, target)
        table = self._open(
            data, kinds=forced, levels=levels, missing=self._missing(), target=target, labels=codes, weights=weights
        )
        inputs.remember_columns(self, table, data)
        start = self._start(table)
        if before is not None and weights is not before and isinstance(start, np.ndarray) and len(start) == len(before):
            start = start[before > 0]
        with progress(self, plan) as watched, self._runner(table) as runner:
            request = self._request(table, watched, start)
            table, request = request.settle(table, runner)
            found = request.learn(table, runner)
            kept = runner.keeps_rows and not found.interrupted
        name = None if labels is None else inputs.find_label_name(y, all_rows, plan.declared)
        self._keep(replace(found, target=name or target, notes=[*found.notes, *notes]))
        if kept:
            self._keep_rows(table, request)
        if request.checkpoint is not None and not found.interrupted:
            remove_checkpoint(request.checkpoint)
        self._labels = None
        if labels is not None or self._training is not None:
            self._labels = self._label_rows(table if data is all_rows else all_rows, labels)
        return self

    def _label_rows(self, rows: Any, labels: np.ndarray | None) -> np.ndarray | None:
        """The known labels of the rows of the fit, and predictions for the others.

        None if a row is impossible: it has weight zero, because all others were learned from.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit has given the warnings about its rows
            try:
                found = self.predict(rows)
            except DataError:
                return None
        if labels is None:
            return found
        classes = inputs.make_class_array(self.fitted_.names)
        return np.asarray(np.where(labels >= 0, classes[np.maximum(labels, 0)], found))

    def _open(self, data: Any, **reading: Any) -> Table:
        """The table to fit; the mixtures of `compare` override this and read theirs under a common schema."""
        return open_table(data, **reading)

    @property
    def labels_(self) -> np.ndarray:
        """Class of every row of the fit: its label in `y` if it has one, otherwise the predicted one.

        They are kept for tables of up to a million cells in which no row has probability 0. They are not saved.
        """
        if self._labels is None:
            raise AttributeError(
                "labels_ is kept for the rows of a fit of up to a million cells, if all are possible. Use predict(X)."
            )
        return self._labels

    def _request(self, table: Table, plan: Plan, start: Any) -> ClassRequest:
        groups = self._groups(start)
        least = len(plan.named or [])
        if groups is not None and least > groups:
            raise DataError(f"y names {least} classes, but n_components is {groups}. Ask for at least {least}.")
        starts = Starts(groups or max(least, 1), start, self.n_init, self.random_state)
        plan = self._with_fixed(plan, table, groups)
        search = ClassSearch(starts, self.criterion if groups is None else None)
        return ClassRequest(plan, search, checkpoint=inputs.path_of(self.checkpoint))

    def _groups(self, start: Any) -> int | None:
        """How many components: the given number, that of the initialisation, or None if it is to be found."""
        if self.n_components != AUTO:
            return int(self.n_components)
        if hasattr(start, "n_groups"):  # a fitted model
            return int(start.n_groups)
        if isinstance(start, np.ndarray):
            return start.shape[1] if start.ndim == 2 else int(start[np.isfinite(start)].max(initial=0)) + 1
        if isinstance(start, Mapping):
            name = name_of_shares(start)
            if name not in start:
                raise DataError("init: the number of components is not known: give n_components or 'weights'.")
            return len(start[name])
        return None

    def _plan(self, **more: Any) -> Plan:
        stop = Stop(self.max_iter, self.tol, self.accelerate, self.assign, self.finish, self.half_steps)
        return Plan(declared=read_kinds(self.kinds), prior=self.prior, estimate=self.estimate, stop=stop, **more)

    def _with_fixed(self, plan: Plan, table: Table | Fitted, groups: int | None) -> Plan:
        """The plan with the parameters that are held, under the names of the columns."""
        for name in ("weights", "means"):
            if groups is None and isinstance(self.fixed, Mapping) and not isinstance(self.fixed.get(name, {}), Mapping):
                raise DataError(f"fixed: {name} need a fixed number of components, so give n_components too.")
        return replace(plan, fixed=self.fixed)

    def _start(self, table: Table) -> Any:
        """The initialisation: a word, parameters, a fitted model, or memberships or labels as an array."""
        init = getattr(self.init, "fitted_", self.init)
        if (isinstance(init, str) and init in INITS) or isinstance(init, (Mapping, Fitted)):
            return init
        array = np.asarray(init)
        whole = array.ndim == 1 and array.dtype.kind in "iu"
        if array.ndim not in (1, 2) or array.dtype.kind not in "iufb":
            words = ", ".join(map(repr, INITS))
            raise DataError(f"init={init!r} is not known. Use {words}, memberships, labels, parameters or a model.")
        return array.astype(np.int64 if whole else float)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn needs this tag of whatever has predict_proba; the classes here are the components.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _check_settings(self) -> None:
        if isinstance(self.n_components, str) and self.n_components == "average":
            raise DataError("n_components='average' is not known. Average several fitted mixtures: sc.average(models).")
        super()._check_settings()

    # -- answers

    @row_by_row
    def predict(self, X: Any, of: Any = None) -> np.ndarray:
        """Predict the most probable component of each row.

        Parameters
        ----------
        of : object, default=None
            Not supported: use `impute` or `query` for a column. Only networks support it.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers of components from 0, or the classes that `y` named.
        """
        if of is not None:
            raise DataError(
                f"predict(X, {of!r}): a mixture predicts the component of each row. To complete a column: impute(X). "
                f"Its distribution given others: query({of!r}, given)"
            )
        best = np.asarray(self._answer(X, "proba").argmax(axis=1))
        return best if self.fitted_.named is None else inputs.make_class_array(self.fitted_.names)[best]

    def fit_predict(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Find the components, and return that of each row.

        Parameters
        ----------
        y : array of shape (n_rows,) or str, default=None
            Classes of some rows, as in `fit`.
        """
        return self.fit(X, y, sample_weight).predict(X)

    @row_by_row
    def transform(self, X: Any) -> np.ndarray:
        """Return the membership probabilities, as a step of a pipeline.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            The same as `predict_proba`.
        """
        return self.predict_proba(X)

    score = EmEstimator.score  # scikit-learn's DensityMixin has one that does nothing

    @needs_all_rows
    def icl(self, X: Any, sample_weight: ArrayLike | None = None, assign: str = "soft") -> float:
        """Return the integrated completed likelihood: BIC plus twice the entropy of the memberships; smaller is better.

        It prefers well separated components. With `assign="hard"` it is mclust's definition, with the opposite sign.

        Parameters
        ----------
        assign : {'soft', 'hard'}, default='soft'
            Entropy of all memberships, or minus the log-probability of the most probable component of each row.

        Returns
        -------
        float
            The criterion.

        References
        ----------
        .. [1] C. Biernacki, G. Celeux and G. Govaert (2000). "Assessing a mixture model for clustering with the
           integrated completed likelihood". IEEE Transactions on Pattern Analysis and Machine Intelligence 22 (7),
           719-725.
        """
        Parameter(None, "", ("soft", "hard")).check("assign", assign)
        log_members = self.predict_log_proba(X)
        if assign == "hard":
            unsure = -log_members.max(axis=1)
        else:
            with np.errstate(invalid="ignore"):
                unsure = -np.nan_to_num(np.exp(log_members) * log_members).sum(axis=1)
        weights = inputs.fill_weights(sample_weight, len(unsure))
        return self.bic(X, sample_weight) + 2 * float(weights @ unsure)

    # -- what was found

    weights_: np.ndarray = attribute("shares", "Share of each component, shape (n_components,).")
    n_components_: int = attribute("n_groups", "Number of components: the given one, or the one chosen.")
    _n_features_out: int = attribute("n_groups", "The number of columns that `transform` gives.")

    @property
    def classes_(self) -> np.ndarray:
        """Classes that `y` named, in the order of the first components.

        Raises
        ------
        AttributeError
            If `y` names no classes.
        """
        if self.fitted_.named is None:
            raise AttributeError("no labels were given, so the components have no names.")
        return inputs.make_class_array(self.fitted_.named)

    posterior_given_memberships_: Posteriors = attribute(
        Posteriors,
        "Posterior distribution of the parameters by column, if the memberships of the rows were known.\n\n"
        "Memberships are estimated, so these intervals are too narrow if components overlap. With two normals "
        "and 200 rows, 95 % intervals contained a mean in 22 of 60 simulations if the means are 2 standard "
        "deviations apart, in 47 at 3, in 55 at 4 and in 59 at 6. For overlapping components, refit on "
        "bootstrap samples.",
    )

    @property
    def posterior_(self) -> Posteriors:  # type: ignore[override]  # a property there too
        """Not available: use `posterior_given_memberships_`, which is conditional on the memberships of the rows."""
        raise AttributeError(
            "the memberships of a mixture are estimated, so it has no posterior_. posterior_given_memberships_ treats "
            "them as known: its intervals are too narrow if components overlap."
        )

    trace_: list[float] = attribute(
        "trace",
        "Objective at the start and after each iteration.\n\n"
        "With `half_steps` each iteration adds two entries: the lower bound of the new parameters with the "
        "old memberships, and the objective after the memberships are updated. Neither is below the entry "
        "before it.",
    )
    objective_: str = attribute("objective", "Name of the objective in `trace_`.")
    agreed_: tuple[int, int] | None = attribute(
        "agreed", "Two numbers: initialisations that reached the best optimum, and all initialisations."
    )

    @property
    def selection_(self) -> Frame | None:
        """A line for each number of components that was tried, with its criteria; None if the number was given."""
        trials = self._fitted.selection
        return None if trials is None else self._result(arrow_lines([trial.figures for trial in trials]))

    _labels: np.ndarray | None = None

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        half_life: float | None = None,
        step: float = 0.6,
        finish: bool = False,
    ) -> Self:
        """Learn from one more batch by stepwise EM.

        The result of one pass is close to that of `fit` on all rows. The first batch is fitted by `fit`. It decides the
        kinds of the columns and, if that is to be chosen, the number of components, so it should have some thousand
        rows. Later batches may have new categories. A batch that is the k-th part of all rows so far moves the counts
        by (k + 2) ** -step.

        Parameters
        ----------
        half_life : float, default=None
            Number of further rows after which a row counts half, to follow drift. `step` is not used then.
        step : float, default=0.6
            Exponent from 0.5 (adapts fast, converges late) to 1 (adapts slowly).
        finish : bool, default=False
            Whether `X` is the complete table: EM then runs on it from the current model until it converges.

        References
        ----------
        .. [1] O. Cappe and E. Moulines (2009). "On-line expectation-maximization algorithm for latent data models".
           Journal of the Royal Statistical Society B 71 (3), 593-613.
        .. [2] P. Liang and D. Klein (2009). "Online EM for unsupervised models". Proceedings of NAACL-HLT 2009,
           611-619.
        """
        self._check_settings()
        HALF_LIFE.check("half_life", half_life)
        Parameter(float, "", least=0.5, most=1).check("step", step)
        if self.assign != "soft":
            raise DataError(f"assign={self.assign!r} is for all rows at once: partial_fit needs assign='soft'.")
        if not hasattr(self, "fitted_"):
            fitted: Self = self.fit(X, sample_weight=sample_weight)
            return fitted
        data = self._as_fitted(inputs.check_rows(self, X, reset=False))
        data, weights, _ = inputs.drop_zero_weights(data, inputs.read_weights(sample_weight, data), None)
        with Threads(self.n_jobs) as threads:
            batch = self._batch(data, weights, threads)
            if batch.empty:
                return self
            plan = self._with_fixed(self._plan(), self.fitted_, self.fitted_.n_groups)
            if finish:
                self.fitted_ = finish_batch(self.fitted_, batch, plan, threads)
            else:
                self.fitted_ = step_batch(self.fitted_, batch, plan, threads, step, half_life)
        self._labels = None
        return self

    def _batch(self, data: Any, weights: np.ndarray | None, threads: Threads) -> Batch:
        """The rows, read under the schema with the categories and words that they bring."""
        schema = self._grow_schema(data, weights, threads)
        table = open_table(data, schema=schema, missing=schema.missing, weights=weights)
        chunks = list(table.chunks(threads.map))
        try:
            check_reach(table, HeldRows(chunks, threads))
        except Contradiction as why:
            raise DataError(
                f"{why}: too far from those of the first batch to be counted with them. Take the row out, or fit all "
                "rows at once."
            ) from None
        inputs.warn_of_outside(table)
        return Batch(chunks, schema, {key: float(n) for key, n in table.missing.items()})

    def _grow_schema(self, data: Any, weights: np.ndarray | None, threads: Threads) -> Schema:
        """The schema of the model, with the new categories and words that the rows hold."""
        schema = self.fitted_.schema
        words = find_open_texts(schema)
        open_ended = {spec.key for spec in schema.used if spec.key in words or spec.kind.coded}
        here = set(inputs.list_columns(data)) or {spec.key for spec in schema.fields}
        if not open_ended & here or self.fitted_.bag:
            return schema
        forced = {spec.key: inputs.find_kind(spec) if spec.key in open_ended else "ignore" for spec in schema.fields}
        kinds, _ = keep_every_word({key: kind for key, kind in forced.items() if key in here})
        table = open_table(data, kinds=kinds, missing=self._missing(), weights=weights)
        try:
            table.gather_words(threads.map)
            for _ in table.chunks(threads.map):
                pass
            other = table.settle().schema
        except Contradiction:
            return schema  # reading it under the model's own schema says what is wrong
        return unite_schemas(schema, other, words)


def _read_labels(y: Any, X: Any, data: Any, weights: np.ndarray | None) -> KnownLabels:
    if y is None or (isinstance(y, str) and inputs.is_table(X)):
        return None, None, y, []
    if isinstance(y, np.ndarray) and y.dtype.kind == "f" and not np.isnan(y).any():
        return None, None, None, [NOT_USED]  # not coded: these numbers need not be labels
    names, codes = inputs.code_weighted_classes(y, data, weights)
    whole = len(names) > 2 and all(isinstance(name, (int, np.integer)) and name is not True for name in names)
    if whole and names[0] == -1:
        # scikit-learn's sign for a row without a label; next to a single other number, -1 is a class.
        names, codes = names[1:], np.maximum(codes - 1, -1).astype(np.int32)
    if not names:
        return None, None, None, []
    if not (codes < 0).any():
        return None, None, None, [NOT_USED]
    refuse_many_numbers(names)
    return names, codes, None, []
