"""Classifiers that count: naive Bayes over any table, with labels that may be missing, and its answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict, replace
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from softcount.core.counts import ROOT
from softcount.errors import DataError, warn
from softcount.estimators import inputs
from softcount.estimators.base import declare_like, progress
from softcount.estimators.docstrings import PARTIAL_ROWS
from softcount.estimators.fitted_estimator import FittedEstimator
from softcount.estimators.inputs import ArrayLike, FilePath, RandomState, attribute, engines, needs_all_rows, row_by_row
from softcount.estimators.parameters import HALF_LIFE, check_whole, varied
from softcount.estimators.result_frames import Frame, arrow_lines
from softcount.evaluate.calibrate import calibrate_on_rows
from softcount.evaluate.logistic import fit_logistic
from softcount.evaluate.ranking import FOLDS, PARTS, ScoredRows, choose_threshold, find_classes, read_rate
from softcount.evaluate.scores import Evaluation, compute_lift, evaluate_rows, find_rarer_class, match_labels
from softcount.evaluate.warnings import strong_pairs
from softcount.fit import reread
from softcount.fit.classes import ClassRequest
from softcount.fitted import decisions
from softcount.fitted.calibration import Calibration
from softcount.fitted.explain import Quadratic, find_quadratic_form
from softcount.fitted.fitted import Fitted
from softcount.fitted.scorers import UNCALIBRATED, Scorer
from softcount.learn.known_classes import add_classes, discount, merge_fits
from softcount.learn.record import Plan, Stop, prior_levels
from softcount.models.align import find_open_texts, keep_every_word, refuse_unknown_words
from softcount.models.declare import Declared, read_kinds
from softcount.run.local import Threads
from softcount.sources.frames import engine_holding, refuse_elsewhere
from softcount.table import open_table, refuse_many_numbers, wording
from softcount.table.schema import BLANK, Key, Kind, Schema
from softcount.table.table import OUTSIDE
from softcount.table.text_columns import WORDLESS, Wordless

NO_CLASSES = "requires y to be passed, but the target y is None. Without classes, use Mixture: it finds them."


class KnownColumns(Struct, frozen=True):
    """What an earlier model knows of the columns: kinds, which of them were guessed, categories and families."""

    forced: Mapping[Key, Any]
    guessed: Collection[Key] = ()
    levels: Mapping[Key, Any] = field(default_factory=dict)
    declared: Declared | None = None


class ClassEstimator(ClassifierMixin, FittedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that counts: naive Bayes in `fitted_`, and what else predicts its classes.

    Rows are learned in one pass, and can be added, merged and forgotten. Costs of mistakes, other class shares and
    thresholds are given when predicting: nothing is learned again.
    """

    classes_: Annotated[np.ndarray, "The classes, in sorted order."]
    _arguments: ClassVar = {"X": PARTIAL_ROWS, "other": ("", "A fitted model of the same columns and kinds.")}
    _varied: ClassVar = {
        "random_state": varied(
            "random_state", help="Seed of the folds that evaluate the model; None is 0. Nothing else is random."
        )
    }

    # -- learning

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows and their classes, in one pass if every class is known.

        Parameters
        ----------
        X : DataFrame, Arrow table, file name, folder, sparse matrix or array of shape (n_rows, n_columns)
            Rows. A folder with a sub-folder of documents for each class needs no `y`.
        y : array of shape (n_rows,) or str, default=None
            Classes, or the name of the column of `X` that holds them. None and NaN are missing labels.

        Raises
        ------
        DataError
            If there is no class, or if `y` has many different numbers.

        Examples
        --------
        >>> rows = {"colour": ["red", "red", "blue", None], "weight": [150.0, 170.0, 40.0, 35.0]}
        >>> model = NaiveBayes().fit(rows, ["apple", "apple", "plum", None])
        >>> model.predict({"colour": ["blue", None], "weight": [None, 160.0]}).tolist()
        ['plum', 'apple']
        """
        self._keep(self._learn(X, y, sample_weight))
        return self

    def _learn(
        self, X: Any, y: Any, sample_weight: Any, parts: bool = False, earlier: KnownColumns | None = None
    ) -> Fitted:
        """A model of these rows. With `parts` more rows will come; with `earlier` it will be added to that model."""
        self._check_settings()
        missing = self._missing()
        if engine_holding(X) is not None:
            if "engine" not in self._declared:
                refuse_elsewhere(X)
            X = engines.engine_table(X, missing)
        X = inputs.open_file(X, missing)
        y = inputs.find_default_target(X) if y is None else y
        if y is None:
            raise DataError(NO_CLASSES)
        data = inputs.check_rows(self, X, reset=earlier is None)
        target = y if isinstance(y, str) and inputs.is_table(X) else None
        weights = inputs.read_weights(sample_weight, data)
        found, codes = (None, None) if target is not None else inputs.code_weighted_classes(y, data, weights)
        if found is not None and not parts:
            refuse_many_numbers(found)
        plan = self._class_plan(target)
        name = inputs.find_label_name(y, data, plan.declared)
        data, weights, codes = inputs.drop_zero_weights(data, weights, codes)
        known = earlier or KnownColumns(self._forced(plan.declared, data, target))
        plan = replace(plan, declared=known.declared or plan.declared)
        forced, notes = keep_every_word(known.forced) if parts else (known.forced, [])
        if earlier is not None and target is not None:
            forced = {**forced, target: Kind.CATEGORICAL}  # the first rows settled what the target is
        opening = partial(
            open_table, data, kinds=forced, levels={**known.levels, **prior_levels(self.prior)},
            guessed=known.guessed, missing=missing, target=target, labels=codes, weights=weights,
        )  # fmt: skip
        table = opening()
        if earlier is None:
            inputs.remember_columns(self, table, data)
        self._training, seed = None, self.random_state or 0
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        with progress(self, plan, "unlabelled rows") as watched, self._runner(table) as runner:
            request = replace(self._request(watched, found, parts), seed=int(seed))
            table, request = request.settle(table, runner, evaluated=request.ensemble)
            try:
                fitted = request.learn(table, runner)
            except Wordless as none:  # documents without a word: further rows may have some
                if not parts:
                    raise
                table = opening(schema=Schema(none.fields, table.schema.missing))
                fitted = request.learn(table, runner)
                notes = [*(f"{wording.column(key)} {WORDLESS} so far." for key in table.schema.texts), *notes]
            if not parts and runner.keeps_rows and not fitted.interrupted:
                if request.ensemble:
                    fitted = replace(fitted, dependent=strong_pairs(fitted, reread(table, fitted.schema)))
                self._keep_rows(table, request)
        for note in fitted.notes:
            if OUTSIDE in note:
                warn(f"{note}.")
        return replace(fitted, target=name or target, notes=[*fitted.notes, *notes])

    def _request(self, plan: Plan, classes: Any, parts: bool) -> ClassRequest:
        """The request for these rows; with `parts`, more rows will come."""
        raise NotImplementedError

    def _class_plan(self, target: Any) -> Plan:
        return Plan(declared=read_kinds(self.kinds), prior=self.prior, stop=Stop(accelerate=True), target=target)

    def _keep(self, fitted: Fitted) -> None:
        self.fitted_ = fitted
        self.classes_ = inputs.make_class_array(fitted.classes or [])

    @property
    def notes_(self) -> list[str]:  # type: ignore[override]  # declared as what it shows, though a property there too
        """Warnings and remarks from the fit.

        Warnings about the model (worse than guessing, tiny classes, columns that give the class away or repeat each
        other) are computed when this is first read: rows of up to a million cells are kept until then.
        """
        check_is_fitted(self)
        self._complete()
        return list(self.fitted_.notes)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None,
        half_life: float | None = None,
    ) -> Self:  # fmt: skip
        """Add rows to the counts. The first call decides the kinds of the columns; later rows may have new categories.

        Parameters
        ----------
        classes : array of shape (n_classes,), default=None
            All classes that occur in this call or in later ones; needed in the first call only.
        half_life : float, default=None
            Number of further rows after which a row counts half, to follow drift. None keeps all rows at full weight.

        Raises
        ------
        DataError
            If a class was not given in the first call.

        Examples
        --------
        >>> model = NaiveBayes().partial_fit({"x": ["a", "b"]}, ["no", "yes"])
        >>> model.partial_fit({"x": ["a", "c"]}, ["no", "yes"]).class_count_
        array([2., 2.])
        """
        HALF_LIFE.check("half_life", half_life)
        if not hasattr(self, "fitted_"):
            fitted = self._learn(X, y, sample_weight, parts=True)
            if getattr(self, "calibration", None):
                fitted = fitted.with_notes(UNCALIBRATED)
            if classes is not None:
                fitted = self._with_classes(fitted, list(np.asarray(classes)))
            self._keep(fitted)
            return self
        if classes is not None and set(np.asarray(classes).tolist()) != set(self.classes_.tolist()):
            raise DataError("`classes` differs from the first call of partial_fit. Give the same classes, or none.")
        more = self._learn_more(X, y, sample_weight)
        unknown = [c for c in more.classes or [] if c not in set(self.fitted_.classes or [])]
        if unknown:
            raise DataError(
                f"class {to_plain(unknown[0])!r} did not occur in the first call of partial_fit. Name all classes "
                f"in `classes` in that call."
            )
        self.fitted_ = discount(self.fitted_, more.counts.rows, half_life)
        self._join(more, grow=find_open_texts(self.fitted_.schema))
        return self

    def _with_classes(self, fitted: Fitted, classes: list[Any]) -> Fitted:
        missing = [c for c in fitted.classes or [] if c not in classes]
        if missing:
            raise DataError(f"class {to_plain(missing[0])!r} is in y but not in `classes`.")
        return add_classes(fitted, classes, self._class_plan(fitted.target))

    def _learn_more(self, X: Any, y: Any, sample_weight: Any) -> Fitted:
        """A model of further rows, whose counts can be added to those of this one."""
        X = inputs.open_file(inputs.check_rows(self, X, reset=False), self._missing())
        schema, leaves = self.fitted_.schema, self.fitted_.model.leaves
        here = inputs.list_columns(X)
        forced = {spec.key: inputs.find_kind(spec) for spec in schema.fields if not here or spec.key in here}
        blocks = [leaf.columns for leaf in leaves if leaf.family.facts.needs_levels]
        ticks = [spec.key for spec in schema.used if spec.kind.coded and BLANK in spec.levels]
        known_levels = {key for block in (*blocks, ticks) for key in block if key in forced}
        levels = {key: schema[key].levels for key in known_levels}
        guessed = {spec.key for spec in schema.fields if not spec.declared}
        known = KnownColumns(forced, guessed, levels, declare_like(leaves))
        return self._learn(X, y, sample_weight, parts=True, earlier=known)

    def _join(self, other: Fitted, sign: float = 1.0, grow: Collection[Key] | None = None) -> None:
        """Keep the sum of both models, or with `sign=-1` the difference."""
        mine, self._training = self.fitted_, None
        both = merge_fits(mine, other, self._class_plan(mine.target), sign, grow)
        notes = other.scorer.update_notes(mine.scorer.update_notes(both.notes))
        self._keep(replace(both, scorer=Scorer(), notes=notes))

    def merge(self, other: ClassEstimator) -> Self:
        """Return a new model with the counts of both.

        Examples
        --------
        >>> one = NaiveBayes().fit({"x": ["a", "b"]}, ["no", "yes"])
        >>> one.merge(NaiveBayes().fit({"x": ["a", "a"]}, ["no", "yes"])).class_count_
        array([2., 2.])
        """
        inputs.refuse_unlike(self, other, ClassEstimator)
        merged = self._like_this()
        merged.fitted_ = self.fitted_
        merged._join(other.fitted_)
        return merged

    def forget(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Subtract rows that were learned from.

        Raises
        ------
        DataError
            If more rows of a class are forgotten than were learned.

        Examples
        --------
        >>> model = NaiveBayes().fit({"x": ["a", "b", "b"]}, ["no", "yes", "yes"])
        >>> model.forget({"x": ["b"]}, ["yes"]).class_count_
        array([1., 1.])
        """
        check_is_fitted(self)
        gone = self._learn_more(X, y, sample_weight)
        refuse_unknown_words(self.fitted_.schema, gone.schema)
        self._join(gone, -1.0, find_open_texts(self.fitted_.schema))
        return self

    def calibrate(self, X: Any, y: Any, method: str = "temperature", sample_weight: Any = None) -> Self:
        """Correct the probabilities with labelled rows that the model was not trained on.

        Parameters
        ----------
        method : {'temperature', 'isotonic'}, default='temperature'
            One factor for all log-probabilities, or a monotone curve for each class, which needs more rows.

        References
        ----------
        .. [1] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger (2017). "On calibration of modern neural networks".
           Proceedings of the 34th International Conference on Machine Learning, PMLR 70, 1321-1330.
        .. [2] B. Zadrozny and C. Elkan (2002). "Transforming classifier scores into accurate multiclass probability
           estimates". Proceedings of the 8th ACM SIGKDD Conference, 694-699.
        """
        y = inputs.take_labels(X, y)
        joint = self._answer(X, "log_joint")
        self._keep(calibrate_on_rows(self.fitted_, joint, list(y), sample_weight, method))
        return self

    # -- predicting

    @row_by_row
    def predict(self, X: Any, costs: Any = None, class_prior: Any = None, threshold: Any = None) -> np.ndarray:
        """Predict the class of each row: the most probable one, or the one with the lowest expected cost.

        Parameters
        ----------
        costs : dict or array of shape (n_classes, n_classes), default=None
            Costs of mistakes, by pair (true class, predicted class) such as {("ill", "well"): 10}, where the other
            mistakes cost 1; or a matrix of them.
        class_prior : dict, array, 'uniform' or 'estimate', default=None
            Shares of the classes among these rows, such as {"ill": 0.01}, if they differ from those of the fit.
            'estimate' learns them from these rows.
        threshold : dict or Threshold, default=None
            Probability from which a class is predicted, such as {"ill": 0.2} or a result of `choose_threshold`. Below
            it, the most probable other class is predicted.

        References
        ----------
        .. [1] C. Elkan (2001). "The foundations of cost-sensitive learning". Proceedings of the 17th International
           Joint Conference on Artificial Intelligence, 973-978.

        Examples
        --------
        >>> model = NaiveBayes().fit({"cough": ["yes", "yes", "no", "no", "no"]}, ["ill"] + ["well"] * 4)
        >>> model.predict({"cough": ["yes"]}).tolist()
        ['well']
        >>> model.predict({"cough": ["yes"]}, costs={("ill", "well"): 10}).tolist()
        ['ill']
        """
        plain = costs is None and threshold is None  # and then nothing to check: one row takes less time than checks do
        decide = decisions.Decision() if plain else decisions.Decision.of(self._names(), costs, threshold)
        chosen = decide(self.predict_proba(X, class_prior))
        return np.asarray(self.classes_[chosen])

    @row_by_row
    def predict_proba(self, X: Any, class_prior: Any = None) -> np.ndarray:
        """Return the probability of each class given the row.

        Examples
        --------
        >>> model = NaiveBayes().fit({"cough": ["yes", "yes", "no", "no", "no"]}, ["ill"] + ["well"] * 4)
        >>> model.predict_proba({"cough": ["yes", None]}).round(2)
        array([[0.33, 0.67],
               [0.2 , 0.8 ]])
        """
        if class_prior is None:
            return np.asarray(self._answer(X, "proba"))
        return np.asarray(np.exp(self.predict_log_proba(X, class_prior)))

    @row_by_row
    def predict_log_proba(self, X: Any, class_prior: Any = None) -> np.ndarray:
        """Return the logarithm of `predict_proba`.

        It is exact even if a probability is too small for a float.
        """
        logs = np.asarray(self._answer(X, "log_proba"))
        if class_prior is None:
            return logs
        return decisions.apply_class_prior(logs, class_prior, self._names(), self.class_prior_)

    def estimate_class_prior(self, X: Any) -> dict[Any, float]:
        """Estimate the shares of the classes among rows without a label, by EM.

        It assumes that the classes look as they did in training and that the probabilities are calibrated.

        Returns
        -------
        dict
            Share of each class.

        References
        ----------
        .. [1] M. Saerens, P. Latinne and C. Decaestecker (2002). "Adjusting the outputs of a classifier to new a priori
           probabilities: a simple procedure". Neural Computation 14 (1), 21-41.

        Examples
        --------
        >>> model = NaiveBayes().fit({"cough": ["yes", "yes", "no", "no"]}, ["ill", "ill", "well", "well"])
        >>> shares = model.estimate_class_prior({"cough": ["yes", "no", "no", "no"]})
        >>> {name: round(share, 2) for name, share in shares.items()}
        {'ill': 0.27, 'well': 0.73}
        """
        shares = decisions.estimate_shares(self._answer(X, "log_proba"), self.class_prior_)
        return dict(zip(self._names(), shares.tolist(), strict=True))

    def _names(self) -> list[Any]:
        """The classes as Python writes them."""
        check_is_fitted(self)
        return list(self.classes_.tolist())

    # -- figures on labelled rows

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy: the share of rows whose class is predicted.

        Parameters
        ----------
        X : DataFrame, Arrow table, file name, folder or array of shape (n_rows, n_columns)
            Rows. A folder with a sub-folder of documents for each class needs no `y`.
        """
        check_is_fitted(self)
        predicted = None
        if engine_holding(X) is not None:
            predicted, y = engines.answers_and_labels(self.predict(X), X, y)
        else:
            X = inputs.open_file(X, self._missing())
        y = inputs.check_labels(X, inputs.find_default_target(X) if y is None else y, self.classes_)
        predicted = self.predict(X) if predicted is None else predicted
        return inputs.compute_accuracy(predicted, y, sample_weight)

    def evaluate(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, class_prior: Any = None) -> Evaluation:
        """Compute figures of the predictions on labelled rows, which should be rows the model has not learned from.

        Parameters
        ----------
        y : array of shape (n_rows,) or str
            Their classes, or the name of the column of `X` that holds them. Rows without a label are skipped.

        Examples
        --------
        >>> rows, classes = {"cough": ["yes", "yes", "no", "no"]}, ["ill", "ill", "well", "well"]
        >>> found = NaiveBayes().fit(rows, classes).evaluate(rows, classes)
        >>> found.accuracy, round(found.log_loss, 3)
        (1.0, 0.288)
        """
        return evaluate_rows(self._score_rows(X, y, sample_weight, class_prior), self.class_prior_)

    def lift(self, X: Any, y: Any, of: Any = None, parts: int = PARTS) -> Frame:
        """Rank rows by the probability of one class and count the class in parts of equal size.

        Parameters
        ----------
        of : object, default=None
            The class. By default, the rarer of two classes.
        parts : int, default=10
            Number of parts.

        Returns
        -------
        DataFrame
            A line for each part, the most probable first: `part`, `rows`, `of_class`, `share` of the class in the part,
            `lift` (that share over the one among all rows), `captured` (share of the class up to here) and
            `lift_so_far`.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"cough": ["yes", "yes", "yes", "no", "no", "no"]})
        >>> classes = ["ill", "ill", "well", "well", "well", "well"]
        >>> model = NaiveBayes().fit(rows, classes)
        >>> model.lift(rows, classes, of="ill", parts=2)["lift"]
        0    2.0
        1    0.0
        Name: lift, dtype: float64
        """
        parts, held = check_whole("parts", parts, 1), self._score_rows(X, y, None, None)
        if of is None and len(self.classes_) != 2:
            raise DataError(f"lift is of one class, and there are {len(self.classes_)}. Name one.")
        place = find_rarer_class(held) if of is None else decisions.place_of(self._names(), of, "of")
        return self._result(arrow_lines([asdict(line) for line in compute_lift(held, self._names(), place, parts)]))

    @needs_all_rows
    def choose_threshold(
        self, X: Any, y: Any, of: Any, precision: float | None = None, recall: float | None = None, folds: int = FOLDS,
        sample_weight: ArrayLike | None = None,
    ) -> decisions.Threshold:  # fmt: skip
        """Choose the probability from which to predict a class, for a given precision or recall.

        The threshold is chosen by cross-validation with the settings of this model, so give the training rows. The
        model itself is not changed.

        Parameters
        ----------
        of : object
            The class.
        precision : float, default=None
            Smallest precision to reach.
        recall : float, default=None
            Smallest recall to reach. Give either this or `precision`.

        Raises
        ------
        DataError
            If no threshold reaches the precision or recall; the message names the highest that is reached.

        Examples
        --------
        >>> rows = {"cough": (["yes"] * 3 + ["no"] * 7) * 10}
        >>> classes = (["ill", "ill", "well"] + ["well"] * 7) * 10
        >>> threshold = NaiveBayes().choose_threshold(rows, classes, of="ill", recall=0.9)
        >>> round(threshold.precision, 2), round(threshold.recall, 2)
        (0.67, 1.0)
        """
        rate, wanted = read_rate(precision, recall)
        check_whole("folds", folds, 2)
        held, names = self._hold_out(X, y, folds, sample_weight)
        return choose_threshold(held, decisions.place_of(names, of, "of"), of, rate, wanted)

    def _score_rows(self, X: Any, y: Any, sample_weight: Any, class_prior: Any) -> ScoredRows:
        check_is_fitted(self)
        proba = None
        if engine_holding(X) is not None:
            proba, y = engines.answers_and_labels(self.predict_proba(X, class_prior), X, y)
        else:
            X = inputs.open_file(X, self._missing())
            y = inputs.take_labels(X, y)
        known = [value for value in list(y) if not (value is None or value != value)]
        inputs.refuse_other_labels(np.array(known, dtype=object) if known else np.array([]), self.classes_)
        labels = find_classes(y, self._names())
        proba = self.predict_proba(X, class_prior) if proba is None else proba
        return match_labels(proba, labels, inputs.fill_weights(sample_weight, len(labels)))

    def _hold_out(self, X: Any, y: Any, folds: int, sample_weight: Any) -> tuple[ScoredRows, list[Any]]:
        """Predictions for the rows of each fold by a model in which they have weight zero; and the classes."""
        X = inputs.open_file(X, self._missing())
        found, codes = inputs.code_classes(inputs.take_labels(X, y), X)
        weights, names = inputs.fill_weights(sample_weight, len(codes)), found.tolist()
        rows = np.flatnonzero((codes >= 0) & (weights > 0))
        if len(rows) < folds or len(np.unique(codes[rows])) < 2:
            raise DataError(f"{folds} folds need at least as many labelled rows, of at least two classes.")
        # Each fold gets as many rows of every class as the others, within one, at random.
        order = np.random.default_rng(0).permutation(len(rows))
        order = rows[order[np.argsort(codes[rows][order], kind="stable")]]
        fold = np.full(len(codes), -1)
        fold[order] = np.arange(len(rows)) % folds
        proba = np.zeros((len(codes), len(names)))
        for number in range(folds):
            inside = np.flatnonzero(fold == number)
            other = clone(self).fit(X, y, sample_weight=np.where(fold == number, 0.0, weights))
            places = [names.index(name) for name in other.classes_.tolist()]
            proba[np.ix_(inside, places)] = other.predict_proba(X)[inside]
        return ScoredRows(proba[rows], codes[rows], weights[rows], fold[rows]), names

    # -- what was learned

    calibration_: Calibration | None = attribute(
        "scorer.calibration",
        "Correction of the probabilities, with the log-loss of held-out rows before and after it; None if "
        "there is none.",
    )

    @property
    def reliability_(self) -> Frame:
        """Calibrated predictions on held-out rows, a line for each bin: mean probability, share of correct predictions.

        Raises
        ------
        AttributeError
            If the model was fitted without `calibration`.
        """
        found = self.calibration_
        if found is None:
            raise AttributeError("only a model fitted with calibration has a reliability table.")
        return self._result(arrow_lines([asdict(part) for part in found.after]))

    @property
    def column_weights_(self) -> dict[Key, float]:
        """Weight of every column in the prediction of the class; 1 if no weights were learned."""
        leaves, weights = self._fitted.model.leaves, self._fitted.scorer.leaf_weights(self._fitted).tolist()
        return {leaf.key: weight for leaf, weight in zip(leaves, weights, strict=True)}

    n_iter_: int = attribute(
        lambda fitted: max(fitted.scorer.iterations(fitted), 1),
        "Number of iterations of EM over rows without a label; 1 if every label is known. After `to_logistic`, the "
        "number of its iterations.",
    )
    class_prior_: np.ndarray = attribute("shares", "Share of each class, shape (n_classes,), before a row is observed.")

    class_count_: np.ndarray = attribute(
        lambda fitted: fitted.counts[ROOT], "Weight of the rows of each class, shape (n_classes,)."
    )

    def to_linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the log-odds if they are linear in the features.

        They are linear for multinomial, Bernoulli and categorical columns, and for normal columns whose classes share a
        variance (`Normal(tied="classes")`).

        Returns
        -------
        coef : ndarray of shape (n_classes, n_features)
            Coefficients. Each numeric column is a feature, and so is each category of the other columns.
        intercept : ndarray of shape (n_classes,)
            Intercepts: the softmax of `x @ coef.T + intercept` is the probability of the classes.

        Raises
        ------
        DataError
            If the log-odds are not linear.
        """
        fitted: Fitted = self._fitted
        return fitted.scorer.linear_form(fitted)

    def to_quadratic(self, c1: Any = None, c2: Any = None) -> Quadratic:
        """Return the log-odds of two classes as a quadratic function of the values, if every column is normal.

        Parameters
        ----------
        c1 : object, default=None
            The class. By default, the first of two.
        c2 : object, default=None
            The class to compare with. By default, the second of two.

        Raises
        ------
        DataError
            If a column is not normal, or if there are more than two classes and none is named.

        Examples
        --------
        >>> model = NaiveBayes().fit({"x": [1.0, 2.0, 3.0, 7.0, 8.0, 9.0]}, ["a", "a", "a", "b", "b", "b"])
        >>> [round(root, 3) for root in model.to_quadratic().roots]
        [5.0]
        """
        if reason := self._fitted.scorer.not_quadratic:
            raise DataError(reason)
        if (c1 is None or c2 is None) and len(self.classes_) != 2:
            raise DataError(f"say which two of the {len(self.classes_)} classes to compare: to_quadratic(c1, c2).")
        first, second = self._names()[:2] if c1 is None or c2 is None else (c1, c2)
        return find_quadratic_form(self.fitted_, first, second)

    def bayes_error(self, n_samples: int = 100_000, random_state: RandomState = None) -> decisions.BestError:
        """Estimate the error rate of the best rule if the model were the truth.

        If the assumptions of a model hold, its error on new rows tends to this value as the number of training rows
        grows. A model that does much worse on new rows has assumptions that do not hold. For a `Classifier` it is the
        error of its naive Bayes.
        """
        n_samples = check_whole("n_samples", n_samples, 2)
        return decisions.estimate_best_error(self._fitted, n_samples, inputs.make_generator(random_state))

    def to_logistic(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, penalty: float = 1.0) -> Self:
        """Fit a logistic regression on the features of this naive Bayes, starting at its weights.

        The new model has a weight for each feature of `to_linear`. Missing cells and categories that were not seen add
        nothing. Densities, samples and queries still come from naive Bayes.

        Parameters
        ----------
        X : DataFrame, Arrow table or array of shape (n_rows, n_columns)
            Rows with the columns of the fit.
        y : array-like of shape (n_rows,) or str
            Labels, or the name of the column of `X` that holds them. Rows without a label are ignored.
        penalty : float, default=1.0
            Strength of the L2 penalty on the weights: scikit-learn's `C=1 / penalty`.

        Examples
        --------
        >>> import numpy as np
        >>> from softcount import NaiveBayes
        >>> X = np.array([["red", "big"], ["red", "small"], ["blue", "big"], ["blue", "small"]] * 20)
        >>> y = np.array(["apple", "apple", "plum", "apple"] * 20)
        >>> partner = NaiveBayes().fit(X, y).to_logistic(X, y)
        >>> partner.predict(X[:4])
        array(['apple', 'apple', 'plum', 'apple'], dtype='<U5')
        """
        if reason := self._fitted.scorer.not_logistic:
            raise DataError(reason)
        if isinstance(penalty, bool) or not isinstance(penalty, Real) or not 0 < float(penalty) < np.inf:
            raise DataError(f"penalty must be a number above 0, not {penalty!r}: at 0 weights can be infinite.")
        X = inputs.open_file(X, self._missing())
        data, weights = inputs.check_rows(self, X, reset=False), inputs.read_weights(sample_weight, X)
        plain = replace(self.fitted_, scorer=Scorer())
        codes = inputs.code_labels_among(X, y, self._names(), every=True)
        table = plain.table(data, labels=codes, weights=weights)
        with Threads(self.n_jobs) as threads:
            found = fit_logistic(plain, table, threads, float(penalty))
        model = self._like_this()
        model._keep(found)
        return model


class NaiveBayes(ClassEstimator):
    """Naive Bayes: columns of any kind, independent given the class.

    A row x has the class c with probability proportional to p(c) * product over columns of p(x_j | c). The density of a
    column follows its kind: categories, numbers, counts, text or a block of columns. Use it if the model itself
    matters: it is learned in one pass, can be merged, updated and queried. For the best predictions use `Classifier`.

    Missing cells are left out of the product, and labels may be missing. With `kinds="text"`, `X` may be a list of
    documents. Costs of mistakes, other class shares and thresholds are parameters of `predict`, so they need no new
    fit. `weights="columns"` does not change densities, samples and queries of columns.

    See Also
    --------
    Classifier : An ensemble chosen by cross-validation, of which naive Bayes is one member.
    AODE : Weakens the assumption of independence.
    BayesNet : Models the dependences between columns.
    Mixture : Finds the classes if none are known.

    References
    ----------
    .. [1] P. Domingos and M. Pazzani (1997). "On the optimality of the simple Bayesian classifier under zero-one loss".
       Machine Learning 29, 103-130.
    .. [2] K. Nigam, A. K. McCallum, S. Thrun and T. Mitchell (2000). "Text classification from labeled and unlabeled
       documents using EM". Machine Learning 39, 103-134.

    Examples
    --------
    >>> import numpy as np
    >>> model = NaiveBayes().fit(np.array([["red"], ["red"], ["blue"]]), ["apple", "apple", "plum"])
    >>> model.predict(np.array([["blue"]]))
    array(['plum'], dtype='<U5')
    >>> mail = NaiveBayes(kinds="text").fit(["win money now", "see you at noon"], ["spam", "ham"])
    >>> mail.predict(["money, money!"])
    array(['spam'], dtype='<U4')
    """

    _elsewhere: ClassVar = {"dependence": "BayesNet.tan(X, y)", "class_weight": "sample_weight of fit"}

    def __init__(  # noqa: PLR0913
        self,
        kinds: Any = None,
        prior: Any = 1.0,
        estimate: str = "mean",
        class_prior: Any = None,
        unlabelled_weight: float | None = None,
        max_iter: int = 1000,
        tol: float = 1e-8,
        missing: Any = None,
        n_jobs: int | None = None,
        calibration: str | None = None,
        weights: str | None = None,
        spill: FilePath | None = None,
        engine: Any = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self._keep_parameters(locals())

    def _class_plan(self, target: Any) -> Plan:
        return Plan(
            declared=read_kinds(self.kinds), prior=self.prior, estimate=self.estimate, class_prior=self.class_prior,
            unlabelled_weight=self.unlabelled_weight, stop=Stop(self.max_iter, self.tol, accelerate=True),
            target=target,
        )  # fmt: skip

    def _request(self, plan: Plan, classes: Any, parts: bool) -> ClassRequest:
        request = ClassRequest(plan, classes=classes)
        return request if parts else replace(request, calibration=self.calibration, column_weights=bool(self.weights))

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.weights and self.calibration:
            raise DataError("weights='columns' is learned from held-out rows itself: leave calibration out.")


def to_plain(name: Any) -> Any:
    """A class as Python writes it: 1 rather than np.int64(1)."""
    return name.item() if isinstance(name, np.generic) else name
