"""Estimators of classes: answers for rows, reports on the classes, and the tables these come in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from msgspec.structs import asdict

from softcount.core.counts import ROOT
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.base import ExportableEstimator, TableEstimator, report, scoring_plan
from softcount.estimators.docstrings import PARTIAL_ROWS
from softcount.estimators.inputs import attribute, needs_all_rows, row_by_row
from softcount.estimators.parameters import Parameter, check_whole
from softcount.estimators.result_frames import Frame, arrow_lines, arrow_table, as_arrow
from softcount.evaluate.ranking import find_classes
from softcount.evaluate.scores import match_names
from softcount.fitted import answers
from softcount.fitted.characteristic_words import (
    characteristic_words,
    explain_words,
    find_places,
    find_text_leaves,
    row_of,
)
from softcount.fitted.classes import membership_entropy, relative, sort_rows
from softcount.fitted.explain import measure_departures
from softcount.fitted.fitted import Fitted
from softcount.run.local import Threads
from softcount.table import Key, document_at, open_table, read_labels
from softcount.table.schema import apart

if TYPE_CHECKING:
    from softcount.report.report import Report


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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(map(repr, self._keys))}>"


class FittedEstimator(TableEstimator, ExportableEstimator):
    """An estimator around a `Fitted` model in `fitted_`."""

    fitted_: Fitted
    _arguments: ClassVar = {"X": PARTIAL_ROWS}
    _input_tags: ClassVar = {"allow_nan": True, "sparse": True, "string": True, "categorical": True}

    def _class_names(self) -> list[Any]:
        """The names of the classes for a column: as text if they are of several types."""
        names = self._fitted.names
        return names if len({type(name) for name in names}) == 1 else [str(name) for name in names]

    # -- rows

    @row_by_row
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class given the row.

        Examples
        --------
        >>> from softcount import Mixture
        >>> mixture = Mixture(2, random_state=0).fit({"x": [1.0, 1.1, 1.2, 1.3, 9.0, 9.1]})
        >>> mixture.predict_proba({"x": [1.0, None]}).round(2)
        array([[1.  , 0.  ],
               [0.64, 0.36]])
        """
        return np.asarray(self._answer(X, "proba"))

    @row_by_row
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`.

        It is exact even if a probability is too small for a float.
        """
        return np.asarray(self._answer(X, "log_proba"))

    @row_by_row
    def explain(self, X: Any, against: Any = None) -> Frame:
        """Return what each column adds to the log-odds of the predicted class against another one.

        Parameters
        ----------
        against : object, default=None
            Class to compare with; rows of that class itself get 0. By default, the second most probable class.

        Returns
        -------
        DataFrame
            A line for each row. `(class)` is the predicted class and `(against)` the other one. The remaining columns
            add up exactly to the log-odds of the two, in nats: `(prior)` is the part of the class shares, and a missing
            cell adds 0. If a column of `X` has one of these names, brackets are added: "((prior))".

        Examples
        --------
        >>> from softcount import NaiveBayes
        >>> model = NaiveBayes().fit({"Sky": ["grey", "grey", "blue"]}, ["rain", "rain", "sun"])
        >>> model.explain({"Sky": ["grey"]})["(class)"][0]
        'rain'
        """
        table = self._read_rows(X)
        found = self.fitted_.explain(table, against)
        inputs.warn_of_outside(table)
        return self._result(arrow_table(found.columns(self.fitted_, inputs.make_class_array(self._class_names()))), X)

    @needs_all_rows
    def augment(self, X: Any) -> Frame:
        """Return every row once per class, with the expected count of the row in that class.

        Other programs can fit a weighted model to this table as they would to completed data.

        Returns
        -------
        DataFrame
            The columns of `X`, `(class)` and `(count)`; n_rows x n_classes lines.
        """
        proba = self.predict_proba(X)
        rows, groups = proba.shape
        X = X if (documents := inputs.find_documents(self, X, reset=False)) is None else documents
        table = as_arrow(X).take(pa.array(np.repeat(np.arange(rows), groups)))
        names = [self.fitted_.names[g] for g in range(groups)] * rows
        for name, values in ((answers.CLASS, names), (answers.COUNT, proba.ravel())):
            table = table.append_column(apart(name, table.column_names), pa.array(values))
        return self._result(table, X, np.repeat(np.arange(rows), groups))

    # -- any column from any others

    def query(self, of: Key | None = None, given: Any = None) -> Any:
        """Return the distribution of any column given any others.

        Parameters
        ----------
        of : str, default=None
            Column. None returns the answers for all columns that are not given.
        given : dict, default=None
            Values or conditions by column: `between(100, 200)`, `above(5)`, `below(5)`, `any_of("disc", "rim")`,
            `not_("disc")`; short for them are a range (100, 200) and a list.

        Returns
        -------
        dict or answer
            Probabilities by category; for a number, an answer with `mean`, `variance`, `pdf` and `quantile`; for
            several columns, one of these by column.

        Warns
        -----
        DataWarning
            If the answer comes from naive Bayes and the columns depend on each other within the classes.

        See Also
        --------
        impute : Fills the missing cells of rows.
        sample : Draws rows, with columns held if wanted.

        Examples
        --------
        >>> from softcount import Mixture
        >>> rows = {"x": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2], "kind": ["a", "a", "a", "b", "b", "b"]}
        >>> mixture = Mixture(2, random_state=0).fit(rows)
        >>> round(mixture.query("kind", {"x": 1.1})["a"], 2)
        0.87
        """
        answer = self._fitted.query(of, given)
        self._warn_of_dependence(None if of is None else [of, *(given if isinstance(given, Mapping) else ())])
        return answer

    answering_model_: str = attribute(
        "answering_model", "Model that `query`, `sample`, `impute` and `explore` answer from: naive Bayes or a mixture."
    )

    # -- what was learned

    posterior_: Posteriors = attribute(
        Posteriors,
        "Posterior distribution of the parameters in every class, by column.\n\n"
        "Rows without a label, and missing cells of a correlated block, count as if their expectation under "
        "EM had been observed, so intervals are then too narrow.",
    )
    influence_: dict[Key, float] = attribute(
        lambda fitted: {key: float(value) for key, value in fitted.influence()},
        "Influence of each column on the classes, in nats, the largest first: see `summary`.",
    )

    def summary(self, by: str = "class", X: Any = None, members: int = 3, parameters: bool = False) -> Frame:
        """Describe the classes, the influence of the columns, or both.

        If the classes are known, the influence of a column is how much it lowers the log-loss of held-out rows, in nats
        per row: the mean of its gain as the first column and as the last. Without held-out rows, it is an upper bound
        that is computed from the counts. If the classes were found, it is the divergence of each class from the whole
        table, summed over the classes, as in AutoClass. A block of columns has one line, under its joined names.

        Parameters
        ----------
        by : {"class", "column", "class and column"}, default="class"
            A line for each class, for each column with the largest influence first, or for each pair of them with the
            largest divergence first.
        X : DataFrame, Arrow table, file name or array of shape (n_rows, n_columns), default=None
            With `by="class"`, rows. The most and the least certain members of each class are shown.
        members : int, default=3
            Number of rows shown for each class.
        parameters : bool, default=False
            Describe the parameters that rows are scored with, which include the prior, instead of the rows of the fit.

        Returns
        -------
        DataFrame or Arrow table
            By class: name, share, `departure` (its divergence from the whole table, in nats), the typical row and
            the columns in which the class differs most; with `X` also `entropy` and `relative_entropy`, from 0
            (certain) to 1, and the rows. By column: `influence`, and `relative`, which is 1 for the largest. By class
            and column: `influence`, `relative`, and a description of the distribution.
        """
        Parameter(None, "", ("class", "column", "class and column")).check("by", by)
        if X is not None and by != "class":
            raise DataError(f"summary(by={by!r}) takes no X: rows are shown by class.")
        if by == "class":
            return self._result(arrow_lines(self._class_lines(X, check_whole("members", members, 0), parameters)))
        return self._result(arrow_table(self._influence_columns(by != "column", parameters)))

    def _influence_columns(self, per_class: bool, parameters: bool) -> dict[str, Any]:
        fitted, names = self._fitted, self._class_names()
        columns = answers.labels_in(fitted)
        if not per_class:
            found = [(key, 0, value) for key, value in fitted.influence()]
        else:
            found = [
                (key, g, float(own[g])) for key, own in measure_departures(fitted).items() for g in range(len(names))
            ]
            found.sort(key=lambda entry: -entry[2])
        values = np.array([value for *_, value in found])
        most = values.max(initial=0.0)
        shown: dict[str, Any] = {"column": [columns[key] for key, *_ in found]}
        if per_class:
            shown["class"] = [names[g] for _, g, _ in found]
        shown |= {"influence": values, "relative": values / most if most > 0 else np.zeros(len(values))}
        if per_class:
            words = {leaf.key: fitted.describe(leaf.key, parameters) for leaf in fitted.model.leaves}
            shown["words"] = [words[key][g] for key, g, _ in found]
        return shown

    def _class_lines(self, X: Any, members: int, parameters: bool) -> list[dict[str, Any]]:
        fitted = self._fitted
        cards, names = fitted.cards(parameters), answers.labels_in(fitted)
        typical = {x.key: _of_one_type([card.typical[x.key] for card in cards]) for x in fitted.model.leaves}
        lines: list[dict[str, Any]] = [
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
        return lines

    def anomalies(self, X: Any, n: int = 10) -> Frame:
        """Return the most anomalous rows with the reasons.

        The score is the difference between the expected log-density and that of the row, in nats. The reasons add up to
        it exactly. A missing cell adds 0, and the units of a column do not matter.

        Returns
        -------
        DataFrame
            A line for each row, the most anomalous first: `row` (from 0), `score` (infinite for a row that is
            impossible under every class), `log_density`, `class`, `reason` (the column that adds most) and `reasons`
            (column, value and surprise of each; `(class)` for a rare class).

        See Also
        --------
        anomaly_score : The scores of all rows.

        Examples
        --------
        >>> import pandas as pd
        >>> from softcount import Mixture
        >>> rows = pd.DataFrame({"x": [1.0, 1.1, 1.2, 1.3, 1.1, 1.2, 5.0], "y": [2.0, 2.1, 2.2, 2.1, 2.0, 2.1, 2.2]})
        >>> Mixture(1).fit(rows).anomalies(rows, n=1)[["row", "reason"]]
           row reason
        6    6      x
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
    def membership_entropy(self, X: Any) -> Frame:
        """Return how uncertain the class of each row is.

        Returns
        -------
        DataFrame
            A line for each row: `row`, most probable `class`, its `probability`, `entropy` in nats, and
            `relative_entropy` from 0 (certain) to 1 (all classes equally probable).

        Examples
        --------
        >>> import pandas as pd
        >>> from softcount import Mixture
        >>> rows = pd.DataFrame({"x": [1.0, 1.1, 1.2, 9.0, 9.1, 9.2]})
        >>> found = Mixture(2, random_state=0).fit(rows).membership_entropy(rows.head(2))
        >>> found[["class", "relative_entropy"]].round(2)
           class  relative_entropy
        0      1               0.0
        1      1               0.0
        """
        members = self._answer(X, "proba")
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

    def characteristic_words(self, key: Any = None, n: int = 10) -> Frame:
        """Return the characteristic words of each class.

        Words are ranked by `evidence`: the log-likelihood ratio, in nats, of a rate of the word in this class against a
        common rate (half of Dunning's G2). It is low for a name that one document repeats, and almost 0 for a word used
        everywhere.

        Parameters
        ----------
        n : int, default=10
            Number of words for each class.

        Returns
        -------
        DataFrame
            `class`, `column`, `word`, `log_odds` (in this class against the others, in nats), `evidence`, and the
            counts here (`count`) and in the other classes (`elsewhere`). With the Bernoulli model counts are of
            documents.

        References
        ----------
        .. [1] T. Dunning (1993). "Accurate methods for the statistics of surprise and coincidence". Computational
           Linguistics 19 (1), 61-74.

        Examples
        --------
        >>> import pandas as pd
        >>> from softcount import NaiveBayes
        >>> mail = pd.DataFrame({"text": ["win money now", "money, money", "see you at noon", "noon at home"]})
        >>> model = NaiveBayes(kinds={"text": "text"}).fit(mail, ["spam", "spam", "ham", "ham"])
        >>> model.characteristic_words(n=1)[["class", "word"]]
          class   word
        0   ham     at
        1  spam  money
        """
        fitted, n = self._fitted, check_whole("n, the number of words,", n, 0)
        names, columns = self._class_names(), answers.labels_in(fitted)
        lines = [
            {"class": name, "column": columns[leaf.key]} | asdict(mark)
            for leaf in find_text_leaves(fitted, key)
            for name, own in zip(names, characteristic_words(fitted, leaf, n), strict=True)
            for mark in own
        ]
        types: list[tuple[str, Any]] = [("class", pa.array(names).type), ("column", pa.string()), ("word", pa.string())]
        types += [(figure, pa.float64()) for figure in ("log_odds", "evidence", "count", "elsewhere")]
        return self._result(arrow_lines(lines, types))

    def explain_words(self, X: Any, row: int = 0, against: Any = None, key: Any = None) -> Frame:
        """Return the contribution of each word of one document to the log-odds of its class.

        The contributions add up to the figure of the text column in `explain`. A model of text alone also takes the
        document itself as a string.

        Parameters
        ----------
        X : DataFrame, Arrow table, file name, list of documents or str
            Rows.
        row : int, default=0
            Place of the row.

        Returns
        -------
        DataFrame
            A line for each word, the largest contribution first: `column`, `word`, `count`, `nats`, and `spans`, the
            first character of each place and one past the last. With the Bernoulli model `(words not there)` stands for
            all words that are not in the document.
        """
        table = self._read_rows([X] if isinstance(X, str) else X)
        fitted = self.fitted_
        row = check_whole("row", row, 0)
        find_text_leaves(fitted, key)
        names, parts = answers.labels_in(fitted), []
        for found in explain_words(fitted, row_of(fitted, table, row), against, key):
            moves, places = found.words, find_places(found, document_at(table, found.key, row))
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

    def report(self, X: Any = None, y: Any = None, redact: bool = False) -> Report:
        """Return a report on the model with pictures.

        With `X` it compares these rows with those of the fit. With `y` in addition it shows how good the predictions
        are.
        """
        recorded = self._complete_record()
        if X is None:
            return report.make_report(recorded, None, redact)
        fitted, table = self.fitted_, self._read_rows(X)
        labels = None if fitted.classes is None else self._find_classes(X, y)
        with Threads(self.n_jobs) as threads:
            name = Path(X).name if isinstance(X, str | os.PathLike) else "the table given"
            rows = report.find_rows(fitted, table, threads, name, labels)
            return report.make_report(fitted, rows, redact)

    def _find_classes(self, X: Any, y: Any) -> np.ndarray | None:
        """The places of rows' classes among those of the model; None if no class is known."""
        keys = open_table(X).keys if y is None else []
        column = self.fitted_.target if y is None and self.fitted_.target in keys else y
        if column is None:
            return None
        labels = read_labels(X, column) if isinstance(column, str) else list(np.asarray(y, dtype=object))
        return find_classes(match_names(labels, self.fitted_.names), self.fitted_.names)

    def _export_plan(self) -> Any:
        return scoring_plan.plan_model(self._fitted)

    def _export_rows(self) -> Any:
        return scoring_plan.draw_rows(self.fitted_)


def _of_one_type(values: list[Any]) -> list[Any]:
    """Values that can share a column: those of a block as lists, and text if categories are of several types."""
    if values and isinstance(values[0], tuple):
        flat = _of_one_type([cell for value in values for cell in value])
        width = len(values[0])
        return [flat[a : a + width] for a in range(0, len(flat), width)]
    alike = len({type(value) for value in values if value is not None}) <= 1
    return values if alike else [None if value is None else str(value) for value in values]
