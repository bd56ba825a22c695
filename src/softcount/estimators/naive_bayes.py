"""Naive Bayes over any table, with labels that may have gaps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from softcount.counts import ROOT
from softcount.errors import DataError
from softcount.estimators.fitted_estimator import FittedEstimator
from softcount.estimators.inputs import (
    checked,
    default_target,
    is_table,
    kind_in,
    known_columns,
    opened,
    refuse_negative,
    remember_columns,
    weights_of,
    weighty_labels,
    without_zeros,
)
from softcount.evaluate.calibrate import calibrated, calibrated_on, check_method, uncalibrated
from softcount.families import Joint
from softcount.fitted.calibration import Calibration
from softcount.fitted.fitted_model import Fitted
from softcount.fitted.linear_form import linear_form
from softcount.learn.em import Stop
from softcount.learn.labelled import fit_labelled, imagine_classes
from softcount.learn.plan import Plan, state_notes
from softcount.models.align import Older, aligned, refuse_overdrawn, united
from softcount.models.declared import Declared
from softcount.models.nodes import Node
from softcount.models.vocabularies import chosen_notes, growing, outgrown, read_in_parts, refuse_unknown_words
from softcount.priors import Dirichlet
from softcount.run.threads import Threads
from softcount.table import Table, open_table, wording
from softcount.table.frames import is_missing
from softcount.table.schema import Key, Schema
from softcount.table.texts import WORDLESS, Wordless


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier model knows of the columns: kinds, levels and families."""

    forced: Mapping[Key, Any]
    levels: Mapping[Key, Any] = field(default_factory=dict)
    declared: Declared | None = None


class NaiveBayes(ClassifierMixin, FittedEstimator):
    """Naive Bayes: columns of any kind, independent given the class.

    `fit(X, y)` takes a frame, an Arrow table, an array, a sparse matrix or a file; `y` is an array or the name of a
    column of `X`, and its unknown labels (None, NaN) are learned from as unlabelled rows. Missing cells are no
    evidence. `kinds` says what columns are where looking at them is not enough. With `kinds="text"` X may be a list of
    documents; a folder with a sub-folder for each class needs neither `kinds` nor `y`.

    `calibration` is "temperature" (one number that makes all answers less sure, or surer) or "isotonic" (a rising curve
    for every class), learned from rows held out in five folds; `predict_proba` then means what it says. `predict` is
    the likeliest class by it, which a temperature does not change and a curve may. `explain` stays as it is: its nats
    are those of the model before calibration.

    >>> import numpy as np
    >>> model = NaiveBayes().fit(np.array([["red"], ["red"], ["blue"]]), ["apple", "apple", "plum"])
    >>> model.predict(np.array([["blue"]]))
    array(['plum'], dtype='<U5')
    >>> mail = NaiveBayes(kinds="text").fit(["win money now", "see you at noon"], ["spam", "ham"])
    >>> mail.predict(["money, money!"])
    array(['spam'], dtype='<U4')
    """

    def __init__(
        self,
        kinds: Any = None,
        prior: Any = 1.0,
        estimate: str = "mean",
        class_prior: Any = None,
        unlabelled_weight: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-8,
        missing: Any = None,
        n_jobs: int | None = None,
        calibration: str | None = None,
    ) -> None:
        self.kinds = kinds
        self.prior = prior
        self.estimate = estimate
        self.class_prior = class_prior
        self.unlabelled_weight = unlabelled_weight
        self.max_iter = max_iter
        self.tol = tol
        self.missing = missing
        self.n_jobs = n_jobs
        self.calibration = calibration

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NaiveBayes:
        """Learn from rows and their classes, in one pass if every class is known."""
        self._keep(self._learn(X, y, sample_weight, calibration=self.calibration))
        return self

    def _learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        calibration: str | None = None,
        parts: bool = False,
        earlier: Earlier | None = None,
    ) -> Fitted:
        """A fitted model of these rows alone, which in `parts` are not all; `earlier` makes it add to another."""
        everything = self.kinds is not None and not isinstance(self.kinds, Mapping)
        X = opened(X, self._missing(), y is None or everything)
        y = default_target(X) if y is None else y
        if y is None:
            raise DataError(
                "requires y to be passed, but the target y is None. Without classes, use Mixture: it finds them."
            )
        self._check_settings()
        data = checked(self, X, reset=earlier is None)
        target = y if isinstance(y, str) and is_table(X) else None
        weights = weights_of(sample_weight, data)
        found, codes = (None, None) if target is not None else weighty_labels(y, data, weights)
        data, weights, codes = without_zeros(data, weights, codes)
        plan = self._class_plan(target)
        known = earlier or Earlier(self._forced(plan.declared, data, target))
        plan = replace(plan, declared=known.declared or plan.declared)
        forced, notes = read_in_parts(known.forced) if parts else (known.forced, [])
        opening = partial(
            open_table, data, kinds=forced, levels={**known.levels, **prior_levels(self.prior)},
            missing=self._missing(), target=target, labels=codes, weights=weights,
        )  # fmt: skip
        table = opening()
        if earlier is None:
            remember_columns(self, table, data)
        with Threads(self.n_jobs) as threads:
            fit = partial(fit_labelled, plan=plan, threads=threads, classes=found)
            fitted = _fit_part(table, opening, fit) if parts else fit(table)
            fitted = replace(fitted, notes=[*fitted.notes, *notes])
            return fitted if calibration is None else calibrated(fitted, table, plan, threads, calibration, found)

    def _check_settings(self) -> None:
        super()._check_settings()
        refuse_negative("unlabelled_weight", self.unlabelled_weight)
        if not np.isfinite(self.unlabelled_weight):
            raise DataError("unlabelled_weight must be finite.")
        if self.calibration is not None:
            check_method(self.calibration)

    def _class_plan(self, target: Any) -> Plan:
        stop = Stop(self.max_iter, self.tol)
        more = {"class_prior": self.class_prior, "unlabelled_weight": self.unlabelled_weight, "target": target}
        return self._plan(stop, **more)

    def _keep(self, fitted: Fitted) -> None:
        self.fitted_ = fitted
        self.classes_ = class_array(fitted.classes or [])

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> NaiveBayes:
        """Add rows to what was learned. The first call fixes kinds and, with `classes`, the classes to come."""
        first = not hasattr(self, "fitted_")
        if first:
            fitted = uncalibrated(self._learn(X, y, sample_weight, parts=True), self.calibration)
            if classes is not None:
                fitted = _with_classes(fitted, list(np.asarray(classes)), self._class_plan(fitted.target))
            self._keep(fitted)
            return self
        if classes is not None and set(np.asarray(classes).tolist()) != set(self.classes_.tolist()):
            raise DataError("`classes` is not what it was at the first call of partial_fit. Give the same, or none.")
        more = self._more(X, y, sample_weight)
        unknown = [c for c in more.classes or [] if c not in set(self.fitted_.classes or [])]
        if unknown:
            raise DataError(
                f"class {plain_class(unknown[0])!r} was not there at the first call of partial_fit. "
                "Name every class in `classes`."
            )
        self._keep(self._joined(self.fitted_, more, 1.0, growing(self.fitted_.schema)))
        return self

    def _more(self, X: Any, y: Any, sample_weight: Any) -> Fitted:
        X = opened(checked(self, X, reset=False), self._missing(), True)
        forced = {spec.key: kind_in(spec) for spec in self.fitted_.schema.fields}
        here = known_columns(X)
        if here:
            forced = {key: kind for key, kind in forced.items() if key in here}
        blocks = [leaf.columns for leaf in self.fitted_.star.leaves if isinstance(leaf.family, Joint)]
        levels = {key: self.fitted_.schema[key].levels for block in blocks for key in block if key in forced}
        known = Earlier(forced, levels, wishes_like(self.fitted_.star.leaves))
        return self._learn(X, y, sample_weight, parts=True, earlier=known)

    def _joined(self, left: Fitted, right: Fitted, sign: float, grow: Collection[Key] | None = None) -> Fitted:
        """The model of both tables, or of the left one without the rows of the right; `grow` as `united` has it."""
        star, classes = united(left, right, grow)
        mine, theirs = aligned(left, star, classes), aligned(right, star, classes)
        if isinstance(right.prior, Older):
            # An older model stands behind each part; in the whole it counts once.
            theirs = theirs - aligned(right.prior.model, star, classes) * right.prior.weight
        counts = mine + theirs if sign > 0 else mine - theirs
        if sign < 0:
            refuse_overdrawn(star, mine, counts)
        plan = self._class_plan(left.target)
        imagined = imagine_classes(star, counts, plan)
        missing = {k: left.missing.get(k, 0) + sign * right.missing.get(k, 0) for k in {*left.missing, *right.missing}}
        estimates = star.estimate(counts, imagined)
        before = state_notes(left.star, left.estimates, left.imagined, left.classes or [])
        before += outgrown(left.notes, star.leaves)
        notes = [note for note in left.notes if note not in before]
        more = state_notes(star, estimates, imagined, classes)
        more += chosen_notes(left.schema, right.schema, merged=grow is None)
        notes += [note for note in more if note not in notes]
        joined = replace(
            left, star=star, estimates=estimates, counts=counts, imagined=imagined, classes=classes, missing=missing,
            notes=notes,
        )  # fmt: skip
        return uncalibrated(joined, left.calibration or right.calibration)

    def merge(self, other: NaiveBayes) -> NaiveBayes:
        """A new model of both tables: their counts, added."""
        check_is_fitted(self, "fitted_")
        check_is_fitted(other, "fitted_")
        merged = type(self)(**self.get_params(deep=False))
        merged._keep(self._joined(self.fitted_, other.fitted_, 1.0))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(merged, name, getattr(self, name))
        return merged

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> NaiveBayes:
        """Take rows that were learned from back out of the counts."""
        check_is_fitted(self, "fitted_")
        gone = self._more(X, y, sample_weight)
        refuse_unknown_words(self.fitted_.schema, gone.schema)
        self._keep(self._joined(self.fitted_, gone, -1.0, growing(self.fitted_.schema)))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each row."""
        proba = self._answer(X, "proba")
        return self.classes_[proba.argmax(axis=1)] if len(proba) else self.classes_[:0]

    def calibrate(self, X: Any, y: Any, method: str = "temperature", sample_weight: Any = None) -> NaiveBayes:
        """Correct the probabilities by rows that the model has not learned from, and their classes."""
        y = column_of(X, y) if isinstance(y, str) and is_table(X) else y
        joint = self._answer(X, "log_joint")
        self._keep(calibrated_on(self.fitted_, joint, list(y), sample_weight, method))
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted right; `y` may be the name of a column of X.

        Without `y` a folder of documents is scored by its sub-folders.
        """
        X = opened(X, self._missing(), y is None or isinstance(y, str))
        y = default_target(X) if y is None else y
        if isinstance(y, str) and is_table(X):
            y = column_of(X, y)
        refuse_gaps(y)
        return super().score(X, y, sample_weight)

    def to_linear(self) -> tuple[np.ndarray, np.ndarray]:
        """(coef, intercept), where the log-odds are linear: multinomial, Bernoulli, categorical, tied normal."""
        check_is_fitted(self, "fitted_")
        return linear_form(self.fitted_)

    @property
    def calibration_(self) -> Calibration | None:
        """How probabilities are corrected, with the log-loss of rows held out before and after; None where not."""
        return self.fitted_.calibration

    @property
    def reliability_(self) -> Any:
        """An Arrow table of calibrated predictions on rows held out: probability stated, share right, by bins.

        Only a calibrated model has it.
        """
        if self.fitted_.calibration is None:
            raise AttributeError("only a model fitted with calibration has a reliability table.")
        import pyarrow as pa

        return pa.Table.from_pylist([asdict(part) for part in self.fitted_.calibration.after])

    @property
    def n_iter_(self) -> int:
        """Passes of EM over unlabelled rows; one where every label is known."""
        return max(self.fitted_.n_iter, 1)

    @property
    def class_prior_(self) -> np.ndarray:
        return self.fitted_.shares

    @property
    def class_count_(self) -> np.ndarray:
        return self.fitted_.counts[ROOT]


def refuse_gaps(y: Any) -> None:
    """Raise where a label that is to be compared with a prediction is unknown."""
    labels = np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None)
    if labels.ndim != 1 or labels.dtype.kind not in "Of":
        return
    gaps = [row for row, label in enumerate(labels, start=1) if is_missing(label)]
    if gaps:
        raise DataError(f"the label of row {gaps[0]} is unknown ({len(gaps):,} are). Score rows whose label is known.")


def class_array(classes: list[Any]) -> np.ndarray:
    """Classes as an array of their own type; mixed types stay objects."""
    kinds = {type(c) for c in classes}
    return np.array(classes) if len(kinds) == 1 else np.array(classes, dtype=object)


def plain_class(name: Any) -> Any:
    """A class as Python writes it: 1 rather than np.int64(1)."""
    return name.item() if isinstance(name, np.generic) else name


def prior_levels(prior: Any) -> dict[Any, list[Any]]:
    """Levels that priors name: they exist whether seen or not."""
    if not isinstance(prior, Mapping):
        return {}
    named = {key: p.levels for key, p in prior.items() if isinstance(p, Dirichlet)}
    return {key: list(levels) for key, levels in named.items() if levels is not None}


def column_of(X: Any, name: str) -> Any:
    """One column of a frame, an Arrow table, a mapping or a file, as Python values."""
    if isinstance(X, Mapping):
        return X[name]
    if isinstance(X, Table):
        return open_table(X, target=name).labels()
    if not hasattr(X, "__getitem__"):
        raise DataError(f"give the labels themselves: column {name!r} cannot be taken from {type(X).__name__}.")
    column = X[name]
    return column.to_pylist() if hasattr(column, "to_pylist") else np.asarray(column)


def wishes_like(leaves: Sequence[Node]) -> Declared:
    """The declared under which columns get the families that these leaves have."""
    whole = next((leaf.family for leaf in leaves if not leaf.columns), None)
    return Declared({leaf.key: leaf.family for leaf in leaves if leaf.columns}, everything=whole)


def _fit_part(table: Table, opening: Callable[..., Table], fit: Callable[[Table], Fitted]) -> Fitted:
    """The model of some of the rows: where they are documents without a word, others may have some."""
    try:
        return fit(table)
    except Wordless as none:
        wordless = opening(schema=Schema(none.fields, table.schema.missing))
    fitted = fit(wordless)
    said = [f"{wording.column(key)} {WORDLESS} so far." for key in wordless.schema.texts]
    return replace(fitted, notes=[*fitted.notes, *said])


def _with_classes(fitted: Fitted, classes: list[Any], plan: Plan) -> Fitted:
    missing = [c for c in fitted.classes or [] if c not in classes]
    if missing:
        raise DataError(f"class {plain_class(missing[0])!r} is in y but not in `classes`.")
    from softcount.models.align import sorted_levels

    names = sorted_levels(classes)
    leaves = tuple(replace(x, setting=replace(x.setting, groups=len(names))) for x in fitted.star.leaves)
    star = replace(fitted.star, leaves=leaves, groups=len(names))
    counts = aligned(fitted, star, names)
    imagined = imagine_classes(star, counts, plan)
    return replace(
        fitted, star=star, counts=counts, imagined=imagined, classes=names, estimates=star.estimate(counts, imagined)
    )
