"""What an average asks of each of its members: a naive Bayes, a mixture or a network, fitted on the same table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from sklearn.base import clone
from sklearn.utils import check_random_state

from softcount.bayes.evidence import class_evidence, penalised, stacking_weights, unnamed_orders, with_plain_parameters
from softcount.core.special import log_sum_exp, softmax_rows
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.engines import needs_all_rows, row_by_row
from softcount.estimators.inputs import frame_library
from softcount.estimators.parameters import check_whole
from softcount.estimators.result_frames import arrow_table, as_arrow, as_frame
from softcount.estimators.saving import save_average
from softcount.families import Categorical
from softcount.fit.network import network_evidence
from softcount.fitted.answers import CLASS, AveragedAnswer, name_apart
from softcount.fitted.fitted import Fitted
from softcount.fitted.influence import whole_table
from softcount.fitted.network import is_sure
from softcount.models.nodes import Node
from softcount.networks.structure_search import evidence_weights
from softcount.run.local import AtOnce, Threads
from softcount.table import check_weights
from softcount.table.chunk import Chunks, Split
from softcount.table.schema import Key

CLOSE = 1e-6
"""Totals of one column in two fits of one table agree to this, relative to their size."""


class LabelledTable(Struct, frozen=True):
    """The rows that models were fitted on: X, y where classes were known, and what the rows weigh."""

    X: Any
    y: Any = None
    sample_weight: Any = None

    def labels(self, classes: Sequence[Any]) -> np.ndarray:
        """The place of each row's class, -1 where it is not known."""
        y = inputs.column_of(self.X, self.y) if isinstance(self.y, str) and inputs.is_table(self.X) else self.y
        values = y.to_pylist() if hasattr(y, "to_pylist") else np.asarray(y, dtype=object).tolist()
        places = {str(name): place for place, name in enumerate(classes)}
        return np.array([places.get(str(value), -1) for value in values])

    def weights(self, rows: int) -> np.ndarray:
        return np.ones(rows) if self.sample_weight is None else check_weights(self.sample_weight, rows)


class AverageMember:
    """One fitted model under its name."""

    def __init__(self, name: str, model: Any) -> None:
        self.name, self.model = name, model
        self.estimator = model
        fitted = getattr(self.model, "fitted_", None)
        if fitted is None or not hasattr(fitted, "counts"):
            raise DataError(
                f"{name} is no fitted NaiveBayes, Mixture, GaussianMixture or BayesNet, and only such are averaged."
            )
        self.fitted: Any = fitted

    @property
    def is_network(self) -> bool:
        return not isinstance(self.fitted, Fitted)

    @property
    def classes(self) -> list[Any] | None:
        """The classes that were known; None for a mixture, and for a network without a class."""
        if not self.is_network:
            return None if self.fitted.classes is None else list(self.fitted.names)
        target = self.fitted.target
        return None if target is None else list(self.model.classes_.tolist())

    @cached_property
    def columns(self) -> dict[Key, str]:
        """Each column that is modelled, but for the class, and what its probabilities are of."""
        if self.is_network:
            used = [key for key in self.model.nodes if key != self.fitted.target and key not in _hidden(self.fitted)]
            return {key: "levels" if key in self.fitted.levels else "numbers" for key in used}
        return {column: _measured(leaf) for leaf in self.fitted.model.leaves for column in leaf.columns or (leaf.key,)}

    # -- what it says

    def row_logs(self, X: Any, of: Key | None = None) -> np.ndarray:
        """The log-density of each row, whatever its class; of a network, whatever the node that is asked for."""
        if not self.is_network:
            return np.asarray(self.model.score_samples(X))
        hidden = self.fitted.target if of is None else of
        return np.asarray(self.fitted.row_logs(self.model._closed(X), hidden))

    def proba(self, X: Any, of: Key | None = None) -> np.ndarray:
        """(rows x levels) of the class, or of a node."""
        if self.is_network:
            return np.asarray(self.model.predict_proba(X, of))
        if of is not None and of != self.fitted.target:
            raise DataError(f"{self.name} predicts its class. To ask for a column: query(of={of!r}, given=...).")
        return np.asarray(self.model.predict_proba(X))

    def log_given(self, given: Mapping[Key, Any] | None) -> float:
        """The log-probability (or density) of what is given."""
        given = dict(given or {})
        if not given:
            return 0.0
        if self.is_network:
            return self._log_given_nodes(given)
        target = name_apart(self.fitted, CLASS) if self.fitted.target is None else self.fitted.target
        known = given.pop(target, None)
        row = Chunks([self.fitted.single(given)], 1)
        found = self.fitted.score_rows(row, AtOnce())[0]
        if known is not None:
            found += self.fitted.log_proba(row, AtOnce())[0, self.fitted.group_of(known)]
        return float(found)

    def _log_given_nodes(self, given: dict[Key, Any]) -> float:
        if not all(is_sure(value) for value in given.values()) or any(key in _hidden(self.fitted) for key in given):
            return float(self.fitted.log_probability(given))
        keys = [spec.key for spec in self.fitted.schema.used]
        row = self.fitted.table({key: [given.get(key)] for key in keys})
        rest = {key: value for key, value in given.items() if key not in keys}  # a class that came as labels
        if rest:
            return float(self.fitted.log_probability(given))
        return float(self.fitted.row_logs(row)[0])

    # -- what speaks for it

    def log_evidence(self, rows: LabelledTable | None) -> float:
        """Log marginal likelihood of its table."""
        if self.is_network:
            sizes = [len(self.fitted.levels[key]) for key in _hidden(self.fitted)]
            return network_evidence(self.fitted) + unnamed_orders(sizes)
        plain = with_plain_parameters(self.fitted)
        return class_evidence(plain, self._log_likelihood(plain, rows), self.classes is not None)

    def penalised_likelihood(self, rows: LabelledTable | None) -> float:
        """Minus half of BIC."""
        if self.is_network:
            return float(-self.model.bic() / 2)
        return penalised(self._log_likelihood(with_plain_parameters(self.fitted), rows), self.fitted)

    def _log_likelihood(self, plain: Fitted, rows: LabelledTable | None) -> float:
        """Of the table and its classes; a fit in one pass does not know it, and asks the rows."""
        if self.fitted.log_likelihood is not None:
            return float(self.fitted.log_likelihood)
        if rows is None or (self.classes is not None and rows.y is None):
            raise DataError(
                f"{self.name} was learned in one pass, which does not tell how likely its rows are. "
                "Give them too: sc.average(models, X=X, y=y)."
            )
        return joint_log_likelihood(replace(plain, calibration=None), self.model, rows)


def joint_log_likelihood(fitted: Fitted, model: Any, rows: LabelledTable) -> float:
    """The log-likelihood of rows and their classes; of a row without a class, of what else it shows."""
    _, table = model._closed(rows.X)
    with Threads(model.n_jobs) as threads:
        logs = fitted.score_rows(table, threads)
        chances = fitted.log_proba(table, threads)
    labels = rows.labels(fitted.names)
    if len(labels) != len(logs):
        raise DataError(f"X has {len(logs):,} rows and y {len(labels):,}. Give the rows that were fitted.")
    weights = rows.weights(len(logs))
    if abs(weights @ (labels >= 0) - fitted.counts.rows) > CLOSE * max(1.0, fitted.counts.rows):
        raise DataError(
            f"the models were learned from {fitted.counts.rows:,.6g} rows, and X has {weights @ (labels >= 0):,.6g} "
            "with a class. Give the rows that were fitted, and their weights as sample_weight."
        )
    known = labels >= 0
    return float(weights[known] @ (logs[known] + chances[known, labels[known]]))


def _measured(leaf: Node) -> str:
    """What the probabilities of a leaf are of: levels, words as its family reads them, or numbers."""
    if leaf.family.levels_of(leaf.setting) is not None:
        return "levels"
    return "numbers" if leaf.family.words_of(leaf.setting) is None else f"words of {leaf.family!r}"


def _hidden(fitted: Any) -> list[Key]:
    return [fitted.net.discrete.names[place] for place in fitted.net.hidden]


# -- whether they are of one table


def refuse_other_tables(members: Sequence[AverageMember], columns: bool = True) -> None:
    """Raise where two members were not fitted on the same rows, or, unless these do not matter, other columns."""
    first = members[0]
    for other in members[1:]:
        what = _difference(first, other, columns)
        if what:
            raise DataError(
                f"{first.name} and {other.name} are of different tables: {what}. Averages are of models of one table: "
                "fit them on the same rows."
            )


def _difference(one: AverageMember, other: AverageMember, columns: bool) -> str:
    rows, others = float(one.fitted.counts.rows), float(other.fitted.counts.rows)
    if abs(rows - others) > CLOSE * max(1.0, rows):
        return f"{rows:,.6g} and {others:,.6g} rows"
    odd = [key for key in (*one.columns, *other.columns) if (key in one.columns) != (key in other.columns)]
    if odd and columns:
        owner = one if odd[0] in one.columns else other
        return f"column {str(odd[0])!r} is in {owner.name} only"
    if (one.classes is None) != (other.classes is None):
        return f"{(one if one.classes is not None else other).name} knows classes, and the other does not"
    if one.classes is not None and list(map(str, one.classes)) != list(map(str, other.classes or [])):
        return f"their classes are {_listed(one.classes)} and {_listed(other.classes or [])}"
    return next((f"column {str(key)!r} adds up to other totals" for key in _other_totals(one, other)), "")


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names[:5])) + (", ..." if len(names) > 5 else "")


def _other_totals(one: AverageMember, other: AverageMember) -> list[Key]:
    """Columns that both counted alike, and that came to something else over all groups."""
    ours, theirs = _wholes(one), _wholes(other)
    return [key for key in ours if key in theirs and not _alike(ours[key], theirs[key])]


def _alike(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether the figures of a column agree, as far as both have them."""
    if ours["family"] != theirs["family"]:
        return True
    return ours["levels"] == theirs["levels"] and all(
        np.allclose(ours[name], theirs[name], rtol=CLOSE, atol=CLOSE * np.abs(ours[name]).max(initial=0.0))
        for name in ours.keys() & theirs.keys() - {"family", "levels"}
    )


def _wholes(member: AverageMember) -> dict[Key, dict[str, Any]]:
    """What the whole table says of every column of its own, and in which family."""
    fitted = member.fitted
    if member.is_network:
        shares = {key: np.asarray(fitted.counts[key].sum(axis=0)) for key in member.columns if key in fitted.levels}
        return {
            key: {"family": Categorical(), "levels": list(map(str, fitted.levels[key])), "probability": own / own.sum()}
            for key, own in shares.items()
            if own.sum() > 0
        }
    figures = whole_table(fitted)
    return {
        leaf.key: {"family": leaf.family, "levels": list(map(str, leaf.setting.levels or ()))}
        | {name: np.asarray(value)[0] for name, value in figures[leaf.key].items()}
        for leaf in fitted.model.leaves
        if leaf.family.mergeable and not leaf.family.hidden(leaf.key, any(fitted.missing.get(c) for c in leaf.columns))
    }


def refuse_other_units(members: Sequence[AverageMember]) -> None:
    """Raise where a column has probabilities in one member and densities in another, which no weights can compare."""
    first = members[0]
    for key, measured in first.columns.items():
        for other in members[1:]:
            if other.columns[key] != measured:
                what = sorted({measured.partition(" of ")[0], other.columns[key].partition(" of ")[0]})
                told = (
                    f"{what[0]} in one and {what[-1]} in the other" if len(what) > 1 else f"{what[0]} read in two ways"
                )
                raise DataError(
                    f"column {str(key)!r} of {first.name} and {other.name} is {told}: such probabilities cannot be "
                    "compared. Weigh the models by what they say of the class: "
                    "sc.average(models, by='stacking', X=X, y=y)."
                )


# Several models of one table as one, each weighed by what speaks for it.

BY = ("evidence", "bic", "stacking")
FOLDS = 5
"""Parts that rows are held out in, to learn weights by stacking."""


class ModelAverage:
    """Fitted models of one table, with weights that add to one; answers are those of all of them together.

    By "evidence" or "bic" the weights are what is believed of the models, and a row is as likely as the weighted sum of
    what they say of it: a model that had not expected the row then says less of its class. By "stacking" the weights
    are those under which rows held out were most likely; with known classes it is their classes that count, and the
    members' chances are added with the same weights in every row.

    >>> from softcount.estimators.network import BayesNet
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
        if of is None and self._members[0].classes is None:
            raise DataError(
                "the classes that one mixture found are not those of another, so they have no average. "
                "Ask for columns, query(of=..., given=...), or for densities, score_samples(X)."
            )
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
        tables = [as_arrow(part) for part in drawn]
        rows = pa.concat_tables(tables, promote_options="permissive").combine_chunks().take(pa.array(order))
        return as_frame(rows, frame_library(drawn[0]))

    # -- how it is found

    def save(self, path: Any) -> None:
        """Write all members and their weights to a file that `softcount.load` reads."""
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
