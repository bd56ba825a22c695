"""Several fitted models of one table as one, each weighed by its evidence or by stacking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import lgamma
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from sklearn.base import clone

from softcount.bayes.evidence import class_evidence, stacking_weights, with_plain_parameters
from softcount.core.special import log_of, log_sum_exp, softmax_rows
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.docstrings import document_methods
from softcount.estimators.inputs import FilePath, RandomState, needs_all_rows, row_by_row
from softcount.estimators.parameters import Parameter, check_arguments, check_whole
from softcount.estimators.result_frames import Frame, arrow_table, as_arrow, frame_like
from softcount.estimators.saving import save_average
from softcount.evaluate.ranking import FOLDS
from softcount.families import Categorical
from softcount.fitted.answers import average_answers
from softcount.fitted.explain import whole_table
from softcount.fitted.fitted import Fitted
from softcount.fitted.network import FittedNet
from softcount.learn.networks import network_evidence
from softcount.learn.record import bic
from softcount.networks.structure_search import evidence_weights
from softcount.run.local import Threads
from softcount.table.chunk import Split
from softcount.table.schema import Key

CLOSE = 1e-6
"""Totals of one column in two fits of one table agree to this, relative to their size."""


class LabelledTable(Struct, frozen=True):
    """The rows that models were fitted on: X, y if classes were known, and weights."""

    X: Any
    y: Any = None
    sample_weight: Any = None

    def labels(self, classes: Sequence[Any]) -> np.ndarray:
        """The index of the class of each row; -1 if it is not known."""
        y = inputs.take_labels(self.X, self.y)
        values = y.to_pylist() if hasattr(y, "to_pylist") else np.asarray(y, dtype=object).tolist()
        places = {str(name): place for place, name in enumerate(classes)}
        return np.array([places.get(str(value), -1) for value in values])


class ClassMember:
    """A naive Bayes model or a mixture among the averaged models."""

    edges: ClassVar[list[tuple[Key, Key]]] = []

    def __init__(self, name: str, model: Any) -> None:
        self.name, self.model = name, model
        self.fitted: Fitted = model.fitted_

    @property
    def classes(self) -> list[Any] | None:
        """The classes that were known; None for a mixture, and for a network without a class."""
        return None if self.fitted.classes is None else list(self.fitted.names)

    @cached_property
    def columns(self) -> dict[Key, str]:
        """Each column except the class, and what its probabilities are of: levels, numbers, or words of a family."""
        found: dict[Key, str] = {}
        for leaf in self.fitted.model.leaves:
            if leaf.levels_of() is not None:
                measured = "levels"
            else:
                measured = f"words of {leaf.family!r}" if leaf.family.facts.words else "numbers"
            found |= dict.fromkeys(leaf.columns or (leaf.key,), measured)
        return found

    def totals(self) -> dict[Key, dict[str, Any]]:
        """Family, levels, and parameters over the whole table of each column."""
        fitted, figures = self.fitted, whole_table(self.fitted)
        return {
            leaf.key: {"family": leaf.family, "levels": list(map(str, leaf.setting.levels or ()))}
            | {name: np.asarray(value)[0] for name, value in figures[leaf.key].items()}
            for leaf in fitted.model.leaves
            if leaf.family.facts.mergeable
            and not leaf.describe_hidden(any(fitted.missing.get(c) for c in leaf.columns))
        }

    def row_logs(self, X: Any, of: Key | None = None) -> np.ndarray:
        """The log-density of each row, whatever its class; of a network, whatever the node that is predicted."""
        return np.asarray(self.model.score_samples(X))

    def proba(self, X: Any, of: Key | None = None) -> np.ndarray:
        """(rows x levels) of the class, or of a node."""
        if of is not None and of != self.fitted.target:
            raise DataError(f"{self.name} predicts its class. To ask for a column: query(of={of!r}, given=...).")
        return np.asarray(self.model.predict_proba(X))

    def log_merit(self, by: str, rows: LabelledTable | None) -> float:
        """Log marginal likelihood of the table; by "bic", minus half of BIC."""
        plain = with_plain_parameters(self.fitted)
        likelihood = self._log_likelihood(plain, rows)
        if by == "bic":
            return -bic(likelihood, self.fitted.n_parameters, self.fitted.counts.rows) / 2
        return class_evidence(plain, likelihood, self.classes is not None)

    def _log_likelihood(self, plain: Fitted, rows: LabelledTable | None) -> float:
        """Of the table and its classes. A fit in one pass does not have it: it is computed from the rows."""
        if self.fitted.log_likelihood is not None:
            return float(self.fitted.log_likelihood)
        if rows is None or (self.classes is not None and rows.y is None):
            raise DataError(
                f"{self.name} was learned in one pass, which does not compute the likelihood of its rows. "
                "Give them too: sc.average(models, X=X, y=y)."
            )
        plain = replace(plain, scorer=replace(plain.scorer, calibration=None))
        table = self.model._read_rows(rows.X)
        with Threads(self.model.n_jobs) as threads:
            logs, chances = plain.score_rows(table, threads), plain.log_proba(table, threads)
        labels, learned = rows.labels(plain.names), plain.counts.rows
        if len(labels) != len(logs):
            raise DataError(f"X has {len(logs):,} rows and y {len(labels):,}. Give the rows of the fit.")
        weights, known = inputs.fill_weights(rows.sample_weight, len(logs)), labels >= 0
        if abs(weights @ known - learned) > CLOSE * max(1.0, learned):
            raise DataError(
                f"the models were learned from {learned:,.6g} rows, and X has {weights @ known:,.6g} with a class. "
                "Give the rows of the fit, and their weights as sample_weight."
            )
        return float(weights[known] @ (logs[known] + chances[known, labels[known]]))


class NetworkMember:
    """A network among the averaged models."""

    def __init__(self, name: str, model: Any) -> None:
        self.name, self.model = name, model
        self.fitted: FittedNet = model.fitted_

    @property
    def classes(self) -> list[Any] | None:
        return None if self.fitted.target is None else list(self.model.classes_.tolist())

    @property
    def edges(self) -> list[tuple[Key, Key]]:
        return self.fitted.net.graph.edges

    @cached_property
    def hidden(self) -> list[Key]:
        return [self.fitted.net.discrete.names[place] for place in self.fitted.net.hidden]

    @cached_property
    def columns(self) -> dict[Key, str]:
        used = [key for key in self.model.nodes if key != self.fitted.target and key not in self.hidden]
        return {key: "levels" if key in self.fitted.levels else "numbers" for key in used}

    def totals(self) -> dict[Key, dict[str, Any]]:
        levels = self.fitted.levels
        sums = {key: np.asarray(self.fitted.counts[key].sum(axis=0)) for key in self.columns if key in levels}
        return {
            key: {"family": Categorical(), "levels": list(map(str, levels[key])), "probability": own / own.sum()}
            for key, own in sums.items()
            if own.sum() > 0
        }

    def row_logs(self, X: Any, of: Key | None = None) -> np.ndarray:
        return self.fitted.score_rows(self.model._read_rows(X), but=self.fitted.target if of is None else of)

    def proba(self, X: Any, of: Key | None = None) -> np.ndarray:
        return np.asarray(self.model.predict_proba(X, of))

    def log_merit(self, by: str, rows: LabelledTable | None) -> float:
        if by == "bic":
            return float(-self.model.bic_ / 2)
        # Every labelling of the hidden nodes' categories is an optimum.
        return network_evidence(self.fitted) + sum(lgamma(len(self.fitted.levels[key]) + 1) for key in self.hidden)


AverageMember = ClassMember | NetworkMember
"""A model among the averaged ones, under its name."""


def make_member(name: str, model: Any) -> AverageMember:
    """A fitted model as a member; an error if it is of another kind."""
    kind = MEMBERS.get(type(getattr(model, "fitted_", None)))
    if kind is None:
        raise DataError(
            f"{name} is not a fitted NaiveBayes, Mixture, GaussianMixture or BayesNet. Only these models can be "
            f"averaged."
        )
    return kind(name, model)


MEMBERS: dict[type, type[AverageMember]] = {Fitted: ClassMember, FittedNet: NetworkMember}


def _find_difference(one: AverageMember, other: AverageMember, columns: bool) -> str:
    """The first difference between the tables that two members were fitted on; empty if there is none."""
    rows, others = float(one.fitted.counts.rows), float(other.fitted.counts.rows)
    if abs(rows - others) > CLOSE * max(1.0, rows):
        return f"{rows:,.6g} and {others:,.6g} rows"
    odd = [key for key in (*one.columns, *other.columns) if (key in one.columns) != (key in other.columns)]
    if odd and columns:
        return f"column {str(odd[0])!r} is in {(one if odd[0] in one.columns else other).name} only"
    if one.classes is None or other.classes is None:
        if one.classes is not other.classes:
            return f"{(one if one.classes is not None else other).name} knows classes, and the other does not"
    elif list(map(str, one.classes)) != list(map(str, other.classes)):
        named = [", ".join(map(str, x[:5])) + (", ..." if len(x) > 5 else "") for x in (one.classes, other.classes)]
        return f"their classes are {named[0]} and {named[1]}"
    ours, theirs = one.totals(), other.totals()
    differs = (key for key in ours if key in theirs and not _agree(ours[key], theirs[key]))
    return next((f"column {str(key)!r} has other totals" for key in differs), "")


def _agree(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether the totals of a column agree, as far as both have them."""
    if ours["family"] != theirs["family"]:
        return True
    return ours["levels"] == theirs["levels"] and all(
        np.allclose(ours[name], theirs[name], rtol=CLOSE, atol=CLOSE * np.abs(ours[name]).max(initial=0.0))
        for name in ours.keys() & theirs.keys() - {"family", "levels"}
    )


def _refuse_other_units(first: AverageMember, other: AverageMember) -> None:
    """Raise an error if a column has probabilities in one member and densities in another: no weights compare them."""
    for key, measured in first.columns.items():
        if other.columns[key] != measured:
            one, two = sorted(unit.partition(" of ")[0] for unit in (measured, other.columns[key]))
            how = f"{one} read in two ways" if one == two else f"{one} in one and {two} in the other"
            raise DataError(
                f"column {str(key)!r} of {first.name} and {other.name} is {how}: such probabilities cannot be "
                "compared. Weigh the models by their class probabilities: sc.average(models, by='stacking', X=X, y=y)."
            )


class ModelAverage:
    """Several fitted models of one table as one model, with weights that sum to one.

    Create it with `average`. With weights by "evidence" or "bic", a row is as likely as the weighted sum of the
    members' densities, so a member that found the row improbable counts less in its answer. With "stacking" of models
    with known classes, the members' class probabilities are added with the same weights in every row.

    Parameters
    ----------
    models : list or dict
        Fitted models; a dict gives them names.
    weights : array of shape (n_models,)
        Weights of the models.
    by : {'evidence', 'bic', 'stacking'}
        Where the weights come from.

    Attributes
    ----------
    models_ : list
        The members.
    names_ : list of str
        Their names.
    weights_ : ndarray of shape (n_models,)
        Their weights.

    See Also
    --------
    average : Weights the models and returns this object.
    compare : Compares classifiers instead of averaging them.

    References
    ----------
    .. [1] J. A. Hoeting, D. Madigan, A. E. Raftery and C. T. Volinsky (1999). "Bayesian model averaging: a tutorial".
       Statistical Science 14 (4), 382-417.

    Examples
    --------
    >>> from softcount.estimators.network import BayesNet
    >>> rows = {"Rain": ["yes", "no", "no", "yes"], "Wet": ["yes", "no", "no", "yes"]}
    >>> both = average([BayesNet([("Rain", "Wet")]).fit(rows), BayesNet({"Rain": [], "Wet": []}).fit(rows)])
    >>> both.weights_.round(4).tolist(), round(both.edge_probabilities_["Rain", "Wet"], 4)
    ([0.7692, 0.2308], 0.7692)
    """

    def __init__(self, models: Any, weights: Any, by: str) -> None:
        Parameter(None, "", ("evidence", "bic", "stacking")).check("by", by)
        named = models.items() if isinstance(models, Mapping) else [(f"model {i}", m) for i, m in enumerate(models, 1)]
        self._members = [make_member(str(name), model) for name, model in named]
        if not self._members:
            raise DataError("there is nothing to average: give one fitted model at least.")
        first, *others = self._members
        self.models_ = [member.model for member in self._members]
        self.names_ = [member.name for member in self._members]
        self.weights_, self.by = np.asarray(weights, dtype=float), by
        for other in others:
            what = _find_difference(first, other, columns=not self._by_class)
            if what:
                raise DataError(
                    f"{first.name} and {other.name} are of different tables: {what}. Averages are of models of one "
                    "table: fit them on the same rows."
                )

    @property
    def _by_class(self) -> bool:
        """Whether the members are weighted by their class probabilities, not by their densities of rows."""
        return self.by == "stacking" and self._members[0].classes is not None

    @property
    def classes_(self) -> np.ndarray:
        """Classes that all members know, shape (n_classes,).

        Raises
        ------
        AttributeError
            If the members are mixtures or networks without a class.
        """
        known = self._members[0].classes
        if known is None:
            raise AttributeError("the models have no known classes in common.")
        return inputs.make_class_array(known)

    @property
    def edge_probabilities_(self) -> dict[tuple[Key, Key], float]:
        """Weight of the networks that have each edge, by pair (parent, child)."""
        found: dict[tuple[Key, Key], float] = {}
        for member, share in zip(self._members, self.weights_.tolist(), strict=True):
            for edge in member.edges:
                found[edge] = found.get(edge, 0.0) + share
        return found

    def __repr__(self) -> str:
        parts = (f"{name}: {share:.4f}" for name, share in zip(self.names_, self.weights_, strict=True))
        return f"ModelAverage(by={self.by!r}; {', '.join(parts)})"

    # -- rows

    @row_by_row
    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-density of each row under the weighted sum of the members' densities."""
        logs = self._each(lambda member: member.model.score_samples(X))
        return np.asarray(log_sum_exp(log_of(self.weights_) + logs, 1))

    @needs_all_rows
    def log_likelihood(self, X: Any) -> float:
        """Return the log-likelihood of all rows together."""
        return float(self.score_samples(X).sum())

    @needs_all_rows
    def score(self, X: Any, y: Any = None) -> float:
        """Return the accuracy if `y` is given, otherwise the mean log-density per row."""
        if y is None:
            return float(self.score_samples(X).mean())
        return inputs.compute_accuracy(self.predict(X), inputs.check_labels(X, y, self.classes_))

    @row_by_row
    def predict_proba(self, X: Any, of: Key | None = None) -> np.ndarray:
        """Return the probability of each class, averaged over the members.

        Raises
        ------
        DataError
            If the members are mixtures: the components of one are not those of another.
        """
        if of is None and self._members[0].classes is None:
            raise DataError(
                "the classes that one mixture found are not those of another, so they have no average. "
                "Ask for columns, query(of=..., given=...), or for densities, score_samples(X)."
            )
        chances = np.stack([member.proba(X, of) for member in self._members])
        return np.asarray(np.einsum("rm,mrc->rc", self._weigh_rows(X, of), chances))

    @row_by_row
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return log_of(self.predict_proba(X))

    @row_by_row
    def predict(self, X: Any, of: Key | None = None) -> np.ndarray:
        """Predict the most probable class of each row."""
        best = self.predict_proba(X, of).argmax(axis=1)
        first = self._members[0]
        if of is None or of == first.fitted.target:
            return np.asarray(self.classes_[best])
        return np.asarray(np.array(list(first.fitted.levels[of]), dtype=object)[best])

    def explain(self, X: Any) -> Frame:
        """Return what each member contributes to each row.

        Returns
        -------
        DataFrame
            A line for each row and member: its `weight` in the answer for this row and the `log_density` of the row
            under it. With known classes also the `class` it prefers and the `probability` of that class.
        """
        logs = self._each(lambda member: member.row_logs(X))
        rows, count = logs.shape
        found: dict[str, Any] = {
            "row": np.repeat(np.arange(rows), count),
            "member": self.names_ * rows,
            "weight": self._weigh_rows(X, None, logs).ravel(),
            "log_density": logs.ravel(),
        }
        if self._members[0].classes is not None:
            chances = np.stack([member.proba(X) for member in self._members], axis=1)
            best = chances.argmax(axis=2)
            found["class"] = self.classes_[best.ravel()]
            found["probability"] = np.take_along_axis(chances, best[..., None], axis=2).ravel()
        return frame_like(X, arrow_table(found), np.repeat(np.arange(rows), count))

    # -- what follows from what is given

    def query(self, of: Key, given: Any = None) -> Any:
        """Return the distribution of any column given any others, averaged over the members.

        Parameters
        ----------
        of : str
            Column.
        given : dict, default=None
            Values of other columns by name.

        Returns
        -------
        dict or AveragedAnswer
            Probabilities by category; for a number, an answer with `mean`, `variance`, `pdf` and `quantile`.

        Examples
        --------
        >>> from softcount.estimators.mixture import Mixture
        >>> table = {"x": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2], "y": ["a", "a", "a", "b", "b", "b"]}
        >>> both = average([Mixture(k, random_state=0).fit(table) for k in (1, 2)])
        >>> {level: round(probability, 2) for level, probability in both.query("y", {"x": 1.1}).items()}
        {'a': 0.8, 'b': 0.2}
        """
        shares = self._weigh_given(given)
        return average_answers(shares, [member.model.query(of, given) for member in self._members])

    @check_arguments
    def sample(self, n_samples: int = 1, given: Any = None, random_state: RandomState = None) -> Any:
        """Draw rows, each from a member that is drawn by its weight.

        Returns
        -------
        DataFrame or ndarray
            The rows; an array for Gaussian mixtures of an array.
        """
        n_samples, rng = check_whole("n_samples", n_samples, 0), inputs.make_generator(random_state)
        counts = rng.multinomial(n_samples, self._weigh_given(given))
        how = {} if given is None else {"given": given}
        drawn = [
            member.model.sample(int(count), random_state=int(rng.integers(2**31 - 1)), **how)
            for member, count in zip(self._members, counts, strict=True)
            if count or not n_samples
        ]
        order = rng.permutation(n_samples)
        if isinstance(drawn[0], tuple):  # a GaussianMixture: rows as an array, and their components
            return np.concatenate([rows for rows, _ in drawn])[order]
        tables = [as_arrow(part) for part in drawn]
        rows = pa.concat_tables(tables, promote_options="permissive").combine_chunks().take(pa.array(order))
        return frame_like(drawn[0], rows)

    # -- how it is found

    def save(self, path: FilePath) -> None:
        """Write all members and their weights to a file that `softcount.load` reads."""
        save_average(self, path)

    def _each(self, ask: Callable[[AverageMember], Any]) -> np.ndarray:
        """(rows x members) numbers."""
        return np.stack([np.asarray(ask(member), dtype=float) for member in self._members], axis=1)

    def _weigh_rows(self, X: Any, of: Key | None, logs: np.ndarray | None = None) -> np.ndarray:
        """(rows x members) weights: the same in all rows with stacking, otherwise also by the density of the row."""
        if self._by_class:
            rows = len(self._members[0].proba(X, of)) if logs is None else len(logs)
            return np.tile(self.weights_, (rows, 1))
        logs = self._each(lambda member: member.row_logs(X, of)) if logs is None else logs
        shares, evidence = softmax_rows(log_of(self.weights_) + logs)
        impossible = ~np.isfinite(evidence)
        shares[impossible] = self.weights_
        return shares

    def _weigh_given(self, given: Any) -> np.ndarray:
        logs = log_of(self.weights_)
        if given:
            logs = logs + [member.fitted.log_probability(given) for member in self._members]
        if not np.isfinite(logs).any():
            raise DataError("the given values have probability zero under every model, so there is no answer.")
        return np.asarray(softmax_rows(logs[None])[0][0])


document_methods(ModelAverage, {"of": ("str", "Node to predict if all members are networks. By default, the class.")})


def average(models: Any, by: str = "evidence", X: Any = None, y: Any = None, sample_weight: Any = None) -> ModelAverage:
    """Average fitted models of one table: numbers of classes, kinds of columns, or structures of networks.

    With `by="evidence"` the weight of a model is its posterior probability: the marginal likelihood of the table under
    it, divided by the sum over all models. "bic" replaces the logarithm of the marginal likelihood by -BIC / 2.
    "stacking" finds the weights that maximise the held-out log-likelihood of the average.

    Parameters
    ----------
    models : list or dict
        Fitted `NaiveBayes`, `Mixture`, `GaussianMixture` or `BayesNet` models of one table; a dict gives them names.
    by : {'evidence', 'bic', 'stacking'}, default='evidence'
        How models are weighted.
    X : DataFrame, Arrow table, file name or array of shape (n_rows, n_columns), default=None
        The rows the models were fitted on. Stacking needs them, and so does naive Bayes fitted with every label known.
    y : array of shape (n_rows,) or str, default=None
        Their classes, or the name of the column of `X` that holds them.
    sample_weight : array of shape (n_rows,), default=None
        Their weights.

    Returns
    -------
    ModelAverage
        The average, to predict with, score, sample, query and save.

    Raises
    ------
    DataError
        If the models were fitted on different tables, or if one has densities where another has probabilities.

    See Also
    --------
    compare : Compares classifiers on held-out rows instead of averaging.
    ModelAverage : The class of the result.

    References
    ----------
    .. [1] J. A. Hoeting, D. Madigan, A. E. Raftery and C. T. Volinsky (1999). "Bayesian model averaging: a tutorial".
       Statistical Science 14 (4), 382-417.
    .. [2] D. H. Wolpert (1992).
       "Stacked generalization". Neural Networks 5 (2), 241-259.
    .. [3] Y. Yao, A. Vehtari, D. Simpson and A. Gelman (2018). "Using stacking to average Bayesian predictive
       distributions". Bayesian Analysis 13 (3), 917-1007.

    Examples
    --------
    >>> from softcount.estimators.mixture import Mixture
    >>> table = {"x": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 9.0, 9.1, 9.2, 9.3, 9.4, 9.5]}
    >>> both = average([Mixture(k, random_state=0).fit(table) for k in (1, 2)])
    >>> both.weights_.round(3).tolist()
    [0.326, 0.674]
    """
    found = ModelAverage(models, np.ones(len(models)), by)
    members, rows = found._members, None if X is None else LabelledTable(X, y, sample_weight)
    if not found._by_class:
        for other in members[1:]:
            _refuse_other_units(members[0], other)
    if by != "stacking":
        found.weights_ = evidence_weights([member.log_merit(by, rows) for member in members])
        return found
    if rows is None or (members[0].classes is not None and y is None):
        raise DataError("stacking needs the rows that the models were fitted on: sc.average(models, X=X, y=y).")
    logs = np.stack([_score_held_out(member, rows) for member in members], axis=1)
    weights = inputs.fill_weights(sample_weight, len(logs))
    known = ~np.isnan(logs).any(axis=1) & (weights > 0)
    found.weights_ = stacking_weights(logs[known], weights[known])
    return found


def _score_held_out(member: AverageMember, rows: LabelledTable) -> np.ndarray:
    """The log-probability of each row's class, or of the row, by a model of the other folds; NaN without a class."""
    number = len(member.row_logs(rows.X))
    weights, folds = inputs.fill_weights(rows.sample_weight, number), Split(FOLDS, 0).of_numbers(np.arange(number))
    found = np.full(number, np.nan)
    given = () if rows.y is None else (rows.y,)
    for fold in range(FOLDS):
        here = folds == fold
        fitted = clone(member.model).fit(rows.X, *given, sample_weight=np.where(here, 0.0, weights))
        other = make_member(member.name, fitted)
        if other.classes is None:
            found[here] = other.row_logs(rows.X)[here]
            continue
        labels = rows.labels(other.classes)
        logs = log_of(other.proba(rows.X))[np.arange(len(labels)), labels]
        found[here] = np.where(labels < 0, np.nan, logs)[here]
    return found
