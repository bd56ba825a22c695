"""Several models of one table as one, each weighed by what speaks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from softcount.bayes.evidence import stacking_weights
from softcount.core.special import log_sum_exp, softmax_rows
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.average_members import (
    AverageMember,
    LabelledTable,
    refuse_other_tables,
    refuse_other_units,
)
from softcount.estimators.filling import arrow_of
from softcount.estimators.parameters import check_whole
from softcount.estimators.result_frames import arrow_table, as_frame, frame_library
from softcount.estimators.row_by_row import needs_all_rows, row_by_row
from softcount.fitted.answers import AveragedAnswer
from softcount.networks.structure_search import evidence_weights
from softcount.table.chunk import Split
from softcount.table.schema import Key

BY = ("evidence", "bic", "stacking")
FOLDS = 5
"""Parts that rows are held out in, to learn weights by stacking."""


class ModelAverage:
    """Fitted models of one table, with weights that add to one; answers are those of all of them together.

    By "evidence" or "bic" the weights are what is believed of the models, and a row is as likely as the weighted sum of
    what they say of it: a model that had not expected the row then says less of its class. By "stacking" the weights
    are those under which rows held out were most likely; with known classes it is their classes that count, and the
    members' chances are added with the same weights in every row.

    >>> from softcount.estimators.bayes_net import BayesNet
    >>> rows = {"Rain": ["yes", "no", "no", "yes"], "Wet": ["yes", "no", "no", "yes"]}
    >>> both = average([BayesNet([("Rain", "Wet")]).fit(rows), BayesNet({"Rain": [], "Wet": []}).fit(rows)])
    >>> both.weights_.round(4).tolist(), round(both.edge_probabilities_["Rain", "Wet"], 4)
    ([0.7692, 0.2308], 0.7692)
    """

    def __init__(self, models: Any, weights: Any, by: str) -> None:
        self._members, self.weights_, self.by = _members(models), np.asarray(weights, dtype=float), _known_way(by)
        refuse_other_tables(self._members, columns=not _by_class(self._members, by))

    @property
    def models_(self) -> list[Any]:
        """The models, in the order they were given."""
        return [member.estimator for member in self._members]

    @property
    def names_(self) -> list[str]:
        """What each model is called."""
        return [member.name for member in self._members]

    @property
    def classes_(self) -> np.ndarray:
        """The classes that all models know."""
        known = self._members[0].classes
        if known is None:
            raise AttributeError("the models have no known classes in common.")
        return inputs.class_array(known)

    @property
    def edge_probabilities_(self) -> dict[tuple[Key, Key], float]:
        """The weight of the networks that have each edge."""
        found: dict[tuple[Key, Key], float] = {}
        for member, share in zip(self._members, self.weights_.tolist(), strict=True):
            for edge in member.model.edges_ if member.is_network else ():
                found[edge] = found.get(edge, 0.0) + share
        return found

    def __repr__(self) -> str:
        parts = (f"{name}: {share:.4f}" for name, share in zip(self.names_, self.weights_, strict=True))
        return f"ModelAverage(by={self.by!r}; {', '.join(parts)})"

    # -- rows

    @row_by_row
    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of each row: of the weighted sum of the members' densities."""
        return np.asarray(log_sum_exp(self._log_weights + self._each(lambda member: member.model.score_samples(X)), 1))

    @needs_all_rows
    def score(self, X: Any, y: Any = None) -> float:
        """Without y the mean log-density of a row; with y the share of rows whose class is predicted."""
        if y is None:
            return float(self.score_samples(X).mean())
        y = inputs.column_of(X, y) if isinstance(y, str) and inputs.is_table(X) else y
        inputs.refuse_gaps(y)
        inputs.refuse_other_labels(y, self.classes_)
        return float(np.mean(self.predict(X) == np.asarray(y)))

    @row_by_row
    def predict_proba(self, X: Any, of: Key | None = None) -> np.ndarray:
        """(rows x classes) probability of each class; of networks, also of each level of a node."""
        self._needs_classes(of)
        chances = np.stack([member.proba(X, of) for member in self._members])
        return np.asarray(np.einsum("rm,mrc->rc", self._row_weights(X, of), chances))

    @row_by_row
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @row_by_row
    def predict(self, X: Any, of: Key | None = None) -> np.ndarray:
        """The likeliest class of each row; of networks, also the likeliest level of a node."""
        best = self.predict_proba(X, of).argmax(axis=1)
        first = self._members[0]
        if of is None or of == first.fitted.target:
            return np.asarray(self.classes_[best])
        return np.asarray(np.array(list(first.fitted.levels[of]), dtype=object)[best])

    def explain(self, X: Any) -> Any:
        """A frame of what each member says of each row, and how much it counts there.

        `weight` is the member's share in the answer for this row and `log_density` how likely it finds the row; with
        known classes, `class` is the one it prefers and `probability` what it gives it.
        """
        logs = self._each(lambda member: member.row_logs(X))
        rows, count = logs.shape
        found: dict[str, Any] = {
            "row": np.repeat(np.arange(rows), count),
            "member": self.names_ * rows,
            "weight": self._row_weights(X, None, logs).ravel(),
            "log_density": logs.ravel(),
        }
        if self._members[0].classes is not None:
            chances = np.stack([member.proba(X) for member in self._members], axis=1)
            best = chances.argmax(axis=2)
            found["class"] = self.classes_[best.ravel()]
            found["probability"] = np.take_along_axis(chances, best[..., None], axis=2).ravel()
        own = np.repeat(np.arange(rows), count)
        index = X.index.take(own) if frame_library(X) == "pandas" else None
        return as_frame(arrow_table(found), frame_library(X), index)

    # -- what follows from what is given

    def query(self, of: Key, given: Any = None) -> Any:
        """Any column from any others: a dict level -> probability, or mean, variance, pdf and quantile of a number."""
        shares = self._given_weights(given)
        answers = [member.model.query(of, given) for member in self._members]
        if not isinstance(answers[0], dict):
            return AveragedAnswer(shares, tuple(answers))
        levels = dict.fromkeys(level for answer in answers for level in answer)
        each = zip(shares.tolist(), answers, strict=True)
        parts = [(share, answer) for share, answer in each]
        return {level: float(sum(share * answer.get(level, 0.0) for share, answer in parts)) for level in levels}

    def sample(self, n: int = 1, given: Any = None, random_state: Any = None) -> Any:
        """A frame of n new rows, each drawn from a member that is drawn by its weight; an array of an array."""
        check_whole("n, the number of rows,", n, 0)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        counts = rng.multinomial(int(n), self._given_weights(given))
        how = {} if given is None else {"given": given}
        drawn = [
            member.model.sample(int(count), random_state=int(rng.integers(2**31 - 1)), **how)
            for member, count in zip(self._members, counts, strict=True)
            if count or not n
        ]
        order = rng.permutation(int(n))
        if isinstance(drawn[0], tuple):  # a GaussianMixture: rows as an array, and their components
            return np.concatenate([rows for rows, _ in drawn])[order]
        import pyarrow as pa

        tables = [arrow_of(part) for part in drawn]
        rows = pa.concat_tables(tables, promote_options="permissive").combine_chunks().take(pa.array(order))
        return as_frame(rows, frame_library(drawn[0]))

    # -- how it is found

    def save(self, path: Any) -> None:
        """Write all members and their weights to a file that `softcount.load` reads."""
        from softcount.estimators.average_files import save_average

        save_average(self, path)

    @property
    def _log_weights(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.weights_))

    def _each(self, ask: Callable[[AverageMember], Any]) -> np.ndarray:
        """(rows x members) numbers."""
        return np.stack([np.asarray(ask(member), dtype=float) for member in self._members], axis=1)

    def _row_weights(self, X: Any, of: Key | None, logs: np.ndarray | None = None) -> np.ndarray:
        """(rows x members) what each counts in a row: by stacking the same in all, else by how likely it finds it."""
        if _by_class(self._members, self.by):
            rows = len(self._members[0].proba(X, of)) if logs is None else len(logs)
            return np.tile(self.weights_, (rows, 1))
        logs = self._each(lambda member: member.row_logs(X, of)) if logs is None else logs
        shares, evidence = softmax_rows(self._log_weights + logs)
        impossible = ~np.isfinite(evidence)
        shares[impossible] = self.weights_
        return shares

    def _given_weights(self, given: Any) -> np.ndarray:
        logs = self._log_weights + [member.log_given(given) for member in self._members]
        if not np.isfinite(logs).any():
            raise DataError("what is given has probability zero under every model, so nothing follows from it.")
        return np.asarray(softmax_rows(logs[None])[0][0])

    def _needs_classes(self, of: Key | None) -> None:
        if of is None and self._members[0].classes is None:
            raise DataError(
                "the classes that one mixture found are not those of another, so they have no average. "
                "Ask for columns, query(of=..., given=...), or for densities, score_samples(X)."
            )


def average(models: Any, by: str = "evidence", X: Any = None, y: Any = None, sample_weight: Any = None) -> ModelAverage:
    """Several fitted models of one table as one: predicted, scored, drawn from, asked and saved together.

    `models` is a list, or a mapping of names to models: numbers of classes, kinds, structures. `by` says what weighs
    them: "evidence", the probability of the table under each, its parameters integrated out; "bic", the short form of
    that; or "stacking", what models of the same settings, fitted on four fifths of the rows, say of the last. X and y
    are the rows the models were fitted on: stacking needs them, and so does a naive Bayes that knew every class.

    >>> from softcount.estimators.mixture import Mixture
    >>> table = {"x": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 9.0, 9.1, 9.2, 9.3, 9.4, 9.5]}
    >>> both = average([Mixture(k, random_state=0).fit(table) for k in (1, 2)])
    >>> both.weights_.round(3).tolist()
    [0.326, 0.674]
    """
    members = _members(models)
    even = ModelAverage(models, np.full(len(members), 1 / len(members)), by)
    rows = None if X is None else LabelledTable(X, y, sample_weight)
    if not _by_class(members, by):
        refuse_other_units(members)
    if by == "stacking":
        even.weights_ = _stacked(members, rows)
    else:
        merit = AverageMember.log_evidence if by == "evidence" else AverageMember.penalised_likelihood
        even.weights_ = evidence_weights([merit(member, rows) for member in members])
    return even


def _known_way(by: Any) -> str:
    if by not in BY:
        raise DataError(f"by={by!r} is not known. Models are averaged by {', '.join(map(repr, BY))}.")
    return str(by)


def _by_class(members: Sequence[AverageMember], by: str) -> bool:
    """Whether members are weighed by what they say of the class, and not of whole rows."""
    return by == "stacking" and members[0].classes is not None


def _members(models: Any) -> list[AverageMember]:
    named = models.items() if isinstance(models, Mapping) else [(f"model {i}", m) for i, m in enumerate(models, 1)]
    members = [AverageMember(str(name), model) for name, model in named]
    if not members:
        raise DataError("there is nothing to average: give one fitted model at least.")
    return members


def _stacked(members: list[AverageMember], rows: LabelledTable | None) -> np.ndarray:
    """Weights by what models of the other folds say of each row: of its class, where classes are known."""
    if rows is None or (members[0].classes is not None and rows.y is None):
        raise DataError("stacking holds rows out: give those the models were fitted on, sc.average(models, X=X, y=y).")
    heights = np.stack([_held_out(member, rows) for member in members], axis=1)
    weights = rows.weights(len(heights))
    told = ~np.isnan(heights).any(axis=1) & (weights > 0)
    return stacking_weights(heights[told], weights[told])


def _held_out(member: AverageMember, rows: LabelledTable) -> np.ndarray:
    """The log-probability of each row's class, or of the row, by a model of the other folds; NaN without a class."""
    number = len(member.row_logs(rows.X))
    weights, folds = rows.weights(number), Split(FOLDS, 0).of_first(number)
    found = np.full(number, np.nan)
    given = () if rows.y is None else (rows.y,)
    for fold in range(FOLDS):
        here = folds == fold
        fitted = clone(member.estimator).fit(rows.X, *given, sample_weight=np.where(here, 0.0, weights))
        found[here] = _said(AverageMember(member.name, fitted), rows)[here]
    return found


def _said(member: AverageMember, rows: LabelledTable) -> np.ndarray:
    if member.classes is None:
        return member.row_logs(rows.X)
    labels = rows.labels(member.classes)
    with np.errstate(divide="ignore"):
        logs = np.log(member.proba(rows.X))[np.arange(len(labels)), labels]
    return np.where(labels < 0, np.nan, logs)
