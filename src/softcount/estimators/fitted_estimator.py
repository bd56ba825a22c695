"""Estimators of classes: answers for rows, reports on the classes, and the tables these come in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from msgspec.structs import asdict

from softcount.core.counts import ROOT
from softcount.core.lazy import sparse
from softcount.estimators import inputs
from softcount.estimators.base import ExportableEstimator, TableEstimator, scoring_plan
from softcount.estimators.engines import needs_all_rows, row_by_row
from softcount.estimators.inputs import Answer, attribute
from softcount.estimators.parameters import check_whole
from softcount.estimators.repr import report
from softcount.estimators.result_frames import arrow_lines, arrow_table, as_arrow
from softcount.evaluate.scores import as_named, label_places
from softcount.fitted import answers
from softcount.fitted.characteristic_words import explain_words, marking_words, places_of, row_of, text_leaves
from softcount.fitted.classes import anomaly_scores, membership_entropy, relative, sort_rows
from softcount.fitted.fitted import Fitted
from softcount.fitted.influence import departures
from softcount.models.declare import Declared
from softcount.run.local import Runner, Threads
from softcount.table import Key, Table, document_at, open_table, read_labels
from softcount.table.chunk import Chunk, Chunks
from softcount.table.schema import apart

FEW_ROWS = 64
"""Rows up to which an array of numbers is scored as it is."""
BY_ROW = (Fitted.proba, Fitted.log_proba, Fitted.score_rows, Fitted.log_joint)
"""Questions that need no more than a few rows at a time."""


class Posteriors(Mapping[Key, Any]):
    """The posterior of the parameters in every group, by column: `posterior_["column"]`."""

    def __init__(self, fitted: Fitted) -> None:
        self._fitted = fitted
        self._keys = [leaf.key for leaf in fitted.model.leaves]

    def __getitem__(self, key: Key) -> Any:
        return self._fitted.posterior(key)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class FittedEstimator(TableEstimator, ExportableEstimator):
    """An estimator around a `Fitted` model in `fitted_`."""

    fitted_: Fitted
    _input_tags: ClassVar = {"allow_nan": True, "sparse": True, "string": True, "categorical": True}

    def _forced(self, declared: Declared, data: Any, target: Key | None = None) -> dict[Key, Any]:
        """Kinds that the user's families force on columns; one family for all forces it on every column."""
        if declared.everything is None or hasattr(data, "tocsr"):
            return {key: kind for key, kind in inputs.declared_kinds(data).items() if key != target} | declared.forced
        columns = inputs.known_columns(data) or [place for width in np.shape(data)[1:2] for place in range(width)]
        beside = data.source.aside if isinstance(data, Table) else ()  # what a folder has besides its documents
        apart = {target, *beside}
        return {key: declared.everything.reads for key in columns if key not in apart}

    def _closed(self, X: Any) -> Table:
        fitted: Fitted = self._fitted
        return fitted.table(self._as_fitted(inputs.checked(self, X, reset=False)))

    def _as_fitted(self, data: Any) -> Any:
        """Sparse if the model is of a sparse block, dense otherwise."""
        if self.fitted_.bag and isinstance(data, np.ndarray):
            return sparse.csr_matrix(data)
        return data.toarray() if sparse.issparse(data) and not self.fitted_.bag else data

    def _answer(self, X: Any, question: Callable[..., Answer], *how: Any) -> Answer:
        """The answer of the fitted model for a table, with a warning of what the model did not know in it."""
        few = self._few(X) if question in BY_ROW else None
        if few is not None:
            return question(self.fitted_, few, Runner())
        table = self._closed(X)
        with Threads(self.n_jobs) as threads:
            answer = question(self.fitted_, table, threads, *how)
        inputs.warn_of_unseen(table)
        return answer

    def _few(self, X: Any) -> Chunks | None:
        """A few rows of plain numbers, one for every column of the model: there is nothing to read or to warn of.

        Looking at one row as at a table took twice as long as scoring it.
        """
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not 0 < len(X) <= FEW_ROWS:
            return None
        fitted: Fitted | None = getattr(self, "fitted_", None)
        if fitted is None or hasattr(self, "feature_names_in_") or not fitted.schema.is_plain(X.shape[1]):
            return None
        if not np.isfinite(X).all():
            return None
        codes, wide = np.empty((len(X), 0), dtype=np.uint8), np.empty((len(X), 0), dtype=np.int32)
        return Chunks([Chunk(0, len(X), X, codes, wide)], len(X))

    def _class_names(self) -> list[Any]:
        """The names of the classes for a column: as text if they are of several types."""
        names = self._fitted.names
        return names if len({type(name) for name in names}) == 1 else [str(name) for name in names]

    # -- rows

    @row_by_row
    def predict_proba(self, X: Any) -> np.ndarray:
        """(rows x classes) probability of each class given the row."""
        return self._answer(X, Fitted.proba)

    @row_by_row
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`, exact if a probability is too small for a float."""
        return self._answer(X, Fitted.log_proba)

    @row_by_row
    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density of each row under the model, summed over the classes."""
        return self._answer(X, Fitted.score_rows)

    @row_by_row
    def explain(self, X: Any, against: Any = None) -> Any:
        """A frame of what each column adds to the log-odds of the class against the runner-up.

        The columns add up exactly; `(prior)` is what the shares of the classes add, and a missing cell adds 0.
        `against` names another class to compare with; rows of that class itself get 0. If a column of X is called
        "(prior)", the column of the shares is "((prior))".
        """
        table = self._closed(X)
        found = self.fitted_.explain(table, against)
        inputs.warn_of_outside(table)
        return self._result(arrow_table(found.named(self.fitted_)), X)

    @needs_all_rows
    def augment(self, X: Any) -> Any:
        """A frame of every row once per class, with the expected count of that row in that class."""
        proba = self.predict_proba(X)
        rows, groups = proba.shape
        X = X if (documents := inputs.documents_in(self, X, reset=False)) is None else documents
        table = as_arrow(X).take(pa.array(np.repeat(np.arange(rows), groups)))
        names = [self.fitted_.names[g] for g in range(groups)] * rows
        for name, values in ((answers.CLASS, names), (answers.COUNT, proba.ravel())):
            table = table.append_column(apart(name, table.column_names), pa.array(values))
        return self._result(table, X, np.repeat(np.arange(rows), groups))

    # -- any column from any others

    def query(self, of: Key | None = None, given: Any = None) -> Any:
        """Any column from any others: a dict level -> probability, or mean, variance, pdf and quantile of a number.

        What is given of a column is its value or a condition: `between(100, 200)`, `above(5)`, `below(5)`,
        `any_of("disc", "rim")`, `not_("disc")`; short for them a range (100, 200) or a list. Without `of` every column
        that is not given is answered, by name.
        """
        answer = self._fitted.query(of, given)
        self._warn_of_dependence(None if of is None else [of, *(given if isinstance(given, Mapping) else ())])
        return answer

    answering_model_: str = attribute(
        "answering_model",
        "The model that `query`, `sample`, `impute` and `explore` answer from: naive Bayes or a mixture.",
    )

    # -- what was learned

    posterior_: Posteriors = attribute(
        Posteriors,
        "The posterior of the parameters, column by column.\n\n"
        "Rows without a label, and missing cells of a correlated block, count as if what EM expects of them were "
        "known: intervals are then too narrow.",
    )
    influence_: dict[Key, float] = attribute(
        lambda fitted: dict(fitted.influence()),
        "What each column says of the classes, in nats, the largest first: see `influence`.",
    )

    def influence(self, per_class: bool = False, parameters: bool = False) -> Any:
        """Columns by what they say of the classes, in nats: the largest first.

        If the classes are known, a column's influence is how much it lowers the log-loss of held-out rows, in nats per
        row: the mean of its gain as the first column and as the last. A model that was not tried on held-out rows has
        an upper bound from its counts. If classes were looked for, it is AutoClass's: the divergence of each class from
        the table taken as one class, summed over the classes. With `per_class` there is a line for each column and
        class, with that divergence and the column in words, for both kinds of model. `relative` is 1 for the largest. A
        block of columns is one entry under its joined names. Words are of the rows or, with `parameters`, of what they
        are scored with.
        """
        fitted, names = self._fitted, self._class_names()
        columns = answers.labels_in(fitted)
        if per_class:
            words = {leaf.key: fitted.describe(leaf.key, parameters) for leaf in fitted.model.leaves}
            found = [(key, g, float(own[g])) for key, own in departures(fitted).items() for g in range(len(names))]
            found.sort(key=lambda entry: -entry[2])
        else:
            found = [(key, 0, value) for key, value in fitted.influence()]
        values = np.array([value for *_, value in found])
        most = values.max(initial=0.0)
        shown: dict[str, Any] = {"column": [columns[key] for key, *_ in found]}
        if per_class:
            shown["class"] = [names[g] for _, g, _ in found]
        shown |= {"influence": values, "relative": values / most if most > 0 else np.zeros(len(values))}
        if per_class:
            shown["words"] = [words[key][g] for key, g, _ in found]
        return self._result(arrow_table(shown))

    def classes(self, X: Any = None, members: int = 3, parameters: bool = False) -> Any:
        """A line for each class: size, typical row, what sets it apart; with X, its surest and least sure rows.

        `departure` is how far the class is from the whole table, in nats. With X, `entropy` is how unsure the rows of
        the class are of it, in nats, and `relative_entropy` the same between 0 (sure) and 1 (no idea). Shares, means
        and deviations are those of the rows that were learned from; with `parameters` those that rows are scored with,
        in which the prior has its part.
        """
        fitted, members = self._fitted, check_whole("members", members, 0)
        cards, names = fitted.cards(parameters), answers.labels_in(fitted)
        typical = {x.key: _of_one_type([card.typical[x.key] for card in cards]) for x in fitted.model.leaves}
        lines = [
            card.as_data(names) | {"class": name, "typical": {names[key]: own[g] for key, own in typical.items()}}
            for g, (name, card) in enumerate(zip(self._class_names(), cards, strict=True))
        ]
        sorted_rows = [] if X is None else self._answer(X, sort_rows, members, 0).classes
        for line, own in zip(lines, sorted_rows, strict=X is not None):
            line |= {
                "members": own.rows,
                "entropy": own.entropy,
                "relative_entropy": relative(own.entropy, fitted.n_groups),
                "surest": [asdict(member) for member in own.most],
                "least_sure": [asdict(member) for member in own.least],
            }
        return self._result(arrow_lines(lines))

    def anomalies(self, X: Any, n: int = 10) -> Any:
        """The n rows that fit worst, worst first, with the reasons: what each column adds to the row's score.

        The score is how many nats the log-density of the row is below the usual one, so complete rows are ranked by
        `score_samples`, lowest first. The reasons add up to the score exactly; `(class)` is that the class is rare. A
        missing cell adds 0, and the units of a column do not matter. `reason` is the largest of them. A row that is
        impossible under every class has an infinite score.
        """
        found = self._answer(X, sort_rows, 0, check_whole("n, the number of rows,", n, 0)).anomalies
        names, columns = self._class_names(), answers.labels_in(self.fitted_)
        columns[ROOT] = answers.name_apart(self.fitted_, answers.CLASS)

        def text(value: Any) -> str | None:
            if isinstance(value, tuple):
                return ", ".join("missing" if part is None else str(part) for part in value)
            return None if value is None else str(value)

        lines = [
            {
                "row": odd.row,
                "score": odd.score,
                "log_density": odd.log_density,
                "class": names[odd.group] if odd.probability > 0 else None,
                "reason": columns[next(iter(odd.parts))],
                "reasons": [
                    {"column": columns[key], "value": text(odd.cells.get(key)), "surprise": part}
                    for key, part in odd.parts.items()
                ],
            }
            for odd in found
        ]
        reason = pa.struct([("column", pa.string()), ("value", pa.string()), ("surprise", pa.float64())])
        types = [
            ("row", pa.int64()),
            ("score", pa.float64()),
            ("log_density", pa.float64()),
            ("class", pa.array(names).type),
            ("reason", pa.string()),
            ("reasons", pa.list_(reason)),
        ]
        return self._result(arrow_lines(lines, types), X, [odd.row for odd in found])

    @row_by_row
    def anomaly_score(self, X: Any) -> np.ndarray:
        """How many nats the log-density of each row is below the usual one: the score that `anomalies` ranks by."""
        return self._answer(X, anomaly_scores)

    @row_by_row
    def membership_entropy(self, X: Any) -> Any:
        """How unsure each row is of its class: its likeliest class, that one's probability, and the entropy.

        `entropy` is in nats, `relative_entropy` is it as a share of the most there can be: 0 sure, 1 no idea.
        """
        members = self._answer(X, Fitted.proba)
        best, entropy = members.argmax(axis=1), membership_entropy(members)
        most = np.log(members.shape[1]) if members.shape[1] > 1 else 1.0
        shown = {
            "row": np.arange(len(members)),
            "class": pa.array(self._class_names()).take(pa.array(best, pa.int64())),
            "probability": members[np.arange(len(best)), best],
            "entropy": entropy,
            "relative_entropy": entropy / most,
        }
        return self._result(pa.table(shown), X)

    # -- words

    def marking_words(self, key: Any = None, n: int = 10) -> Any:
        """A frame of the n words that most mark each class: more likely there than in all others together.

        `log_odds` is the word in this class against the others, in nats; `count` and `elsewhere` say how often it
        occurs (with the Bernoulli model: in how many documents). Words are ranked by `evidence`, how many nats better
        the counts are explained by a rate of the class's own: a name repeated in one document has little of it, and a
        word used everywhere next to none. `key` names a column of text; without it, all have their words listed.
        """
        fitted, n = self._fitted, check_whole("n, the number of words,", n, 0)
        names, columns = self._class_names(), answers.labels_in(fitted)
        lines = [
            {"class": name, "column": columns[leaf.key]} | asdict(mark)
            for leaf in text_leaves(fitted, key)
            for name, own in zip(names, marking_words(fitted, leaf, n), strict=True)
            for mark in own
        ]
        types: list[tuple[str, Any]] = [("class", pa.array(names).type), ("column", pa.string()), ("word", pa.string())]
        types += [(figure, pa.float64()) for figure in ("log_odds", "evidence", "count", "elsewhere")]
        return self._result(arrow_lines(lines, types))

    def explain_words(self, X: Any, row: int = 0, against: Any = None, key: Any = None) -> Any:
        """A frame of the words of one document and the nats by which each moved it, weightiest first.

        Nats are log-odds of the row's class against the runner-up, or `against` another class; they add up to the text
        column's figure in `explain`. With the Bernoulli model one line, "(words not there)", is for all words the
        document lacks. `spans` are the places, first character and one after the last, where the word stands. A model
        of text alone also takes the document itself, as a string.
        """
        table = self._closed([X] if isinstance(X, str) else X)
        fitted = self.fitted_
        row = check_whole("row", row, 0)
        text_leaves(fitted, key)
        names, parts = answers.labels_in(fitted), []
        for found in explain_words(fitted, row_of(fitted, table, row), against, key):
            moves, places = found.words, places_of(found, document_at(table, found.key, row))
            # A long document has millions of places: no Python object is made for each.
            own = [places.get(move.word, np.empty((0, 2), np.int64)) for move in moves]
            edges = np.cumsum([0, *map(len, own)])
            starts, ends = np.concatenate([np.empty((0, 2), np.int64), *own]).T
            spans = pa.StructArray.from_arrays([pa.array(starts), pa.array(ends)], names=["start", "end"])
            columns = {
                "column": pa.array([names[found.key]] * len(moves), pa.string()),
                "word": pa.array([move.word for move in moves], pa.string()),
                "count": pa.array([move.count for move in moves], pa.float64()),
                "nats": pa.array([move.nats for move in moves], pa.float64()),
                "spans": pa.ListArray.from_arrays(pa.array(edges, pa.int32()), spans),
            }
            parts.append(pa.table(columns))
        return self._result(pa.concat_tables(parts).combine_chunks())

    # -- pages and exports

    def report(self, X: Any = None, y: Any = None, redact: bool = False) -> Any:
        """A page on the model with pictures: `model.report(X, y).save("report.html")`; also .json and .txt.

        With X it shows rows, drift against the training table if that is known and, with the classes y (an array, or
        the name of a column in X), how good the model is on these rows. Redacted, no cell is in it, and no level of
        fewer than five rows.
        """
        recorded = self._recorded()
        if X is None:
            return report.make_report(recorded, None, redact)
        fitted, table = self.fitted_, self._closed(X)
        labels = None if fitted.classes is None else self._label_places(X, y)
        with Threads(self.n_jobs) as threads:
            name = Path(X).name if isinstance(X, str | os.PathLike) else "the table given"
            rows = report.find_rows(fitted, table, threads, name, labels)
            return report.make_report(fitted, rows, redact)

    def _label_places(self, X: Any, y: Any) -> np.ndarray | None:
        """The places of rows' classes among those of the model; None if no class is known."""
        keys = open_table(X).keys if y is None else []
        column = self.fitted_.target if y is None and self.fitted_.target in keys else y
        if column is None:
            return None
        labels = read_labels(X, column) if isinstance(column, str) else list(np.asarray(y, dtype=object))
        return label_places(as_named(labels, self.fitted_.names), self.fitted_.names)

    def _export_plan(self) -> Any:
        return scoring_plan.plan_of(self._fitted)

    def _export_rows(self) -> Any:
        return scoring_plan.drawn_rows(self.fitted_)


def _of_one_type(values: list[Any]) -> list[Any]:
    """Values that can share a column: those of a block as lists, and text if categories are of several types."""
    if values and isinstance(values[0], tuple):
        flat = _of_one_type([cell for value in values for cell in value])
        width = len(values[0])
        return [flat[a : a + width] for a in range(0, len(flat), width)]
    alike = len({type(value) for value in values if value is not None}) <= 1
    return values if alike else [None if value is None else str(value) for value in values]
