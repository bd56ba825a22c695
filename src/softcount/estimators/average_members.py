"""What an average asks of each of its members: a naive Bayes, a mixture or a network, fitted on the same table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.bayes.evidence import class_evidence, penalised, unnamed_orders, with_plain_parameters
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.families import Categorical
from softcount.fit.network import network_evidence
from softcount.fitted.answers import CLASS, name_apart
from softcount.fitted.fitted import Fitted
from softcount.fitted.influence import whole_table
from softcount.fitted.network import is_sure
from softcount.models.nodes import Node
from softcount.run.local import AtOnce, Threads
from softcount.table import check_weights
from softcount.table.chunk import Chunks
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
