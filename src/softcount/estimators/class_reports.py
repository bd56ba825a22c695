"""What an estimator has to say about its classes, as tables: influence, class reports, entropy, anomalies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import asdict
from sklearn.utils.validation import check_is_fitted

from softcount.core.counts import ROOT
from softcount.estimators.engines import row_by_row
from softcount.estimators.inputs import Answer
from softcount.estimators.parameters import check_whole
from softcount.estimators.result_frames import ResultFrames, arrow_lines, arrow_table
from softcount.fitted.answers import CLASS, labels_in, name_apart
from softcount.fitted.characteristic_words import (
    DocumentWords,
    explain_words,
    marking_words,
    places_of,
    row_of,
    text_leaves,
)
from softcount.fitted.classes import Anomaly, ClassMembers, anomaly_scores, membership_entropy, relative, sort_rows
from softcount.fitted.fitted import Fitted
from softcount.fitted.influence import departures
from softcount.table import Key, Table, document_at


class ClassReports(ResultFrames):
    """Understanding classes: what sets them apart, who is in them, and who fits nowhere. Rows are counted from 0."""

    fitted_: Fitted

    def _answer(self, X: Any, question: Callable[..., Answer], *how: Any) -> Answer:
        raise NotImplementedError

    def _closed(self, X: Any) -> tuple[Fitted, Table]:
        raise NotImplementedError

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
        check_is_fitted(self, "fitted_")
        return self._result(_per_class(self.fitted_, parameters) if per_class else _summed(self.fitted_))

    def classes(self, X: Any = None, members: int = 3, parameters: bool = False) -> Any:
        """A line for each class: size, typical row, what sets it apart; with X, its surest and least sure rows.

        `departure` is how far the class is from the whole table, in nats. With X, `entropy` is how unsure the rows of
        the class are of it, in nats, and `relative_entropy` the same between 0 (sure) and 1 (no idea). Shares, means
        and deviations are those of the rows that were learned from; with `parameters` those that rows are scored with,
        in which the prior has its part.
        """
        check_is_fitted(self, "fitted_")
        check_whole("members", members, 0)
        lines = _card_lines(self.fitted_, parameters)
        if X is not None:
            both = zip(lines, self._answer(X, sort_rows, int(members), 0).classes, strict=True)
            lines = [line | _crowd_line(crowd, self.fitted_.n_groups) for line, crowd in both]
        return self._result(arrow_lines(lines))

    def anomalies(self, X: Any, n: int = 10) -> Any:
        """The n rows that fit worst, worst first, with the reasons: what each column adds to the row's score.

        The score is how many nats the log-density of the row is below the usual one, so complete rows are ranked by
        `score_samples`, lowest first. The reasons add up to the score exactly; `(class)` is that the class is rare. A
        missing cell adds 0, and the units of a column do not matter. `reason` is the largest of them. A row that is
        impossible under every class has an infinite score.
        """
        check_whole("n, the number of rows,", n, 0)
        sorting = self._answer(X, sort_rows, 0, int(n))
        names = _names(self.fitted_)
        lines = [_odd_line(self.fitted_, odd, names) for odd in sorting.anomalies]
        return self._result(arrow_lines(lines, _odd_types(names)), X, [line["row"] for line in lines])

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
        table = pa.table(
            {
                "row": pa.array(np.arange(len(members))),
                "class": pa.array(_names(self.fitted_)).take(pa.array(best, pa.int64())),
                "probability": pa.array(members[np.arange(len(best)), best]),
                "entropy": pa.array(entropy),
                "relative_entropy": pa.array(entropy / most),
            }
        )
        return self._result(table, X)

    def marking_words(self, key: Any = None, n: int = 10) -> Any:
        """A frame of the n words that most mark each class: more likely there than in all others together.

        `log_odds` is the word in this class against the others, in nats; `count` and `elsewhere` say how often it
        occurs (with the Bernoulli model: in how many documents). Words are ranked by `evidence`, how many nats better
        the counts are explained by a rate of the class's own: a name repeated in one document has little of it, and a
        word used everywhere next to none. `key` names a column of text; without it, all have their words listed.
        """
        check_is_fitted(self, "fitted_")
        check_whole("n, the number of words,", n, 0)
        return self._result(marks_table(self.fitted_, _names(self.fitted_), key, int(n)))

    def explain_words(self, X: Any, row: int = 0, against: Any = None, key: Any = None) -> Any:
        """A frame of the words of one document and the nats by which each moved it, weightiest first.

        Nats are log-odds of the row's class against the runner-up, or `against` another class; they add up to the text
        column's figure in `explain`. With the Bernoulli model one line, "(words not there)", is for all words the
        document lacks. `spans` are the places, first character and one after the last, where the word stands. A model
        of text alone also takes the document itself, as a string.
        """
        fitted, table = self._closed([X] if isinstance(X, str) else X)
        check_whole("row", row, 0)
        return self._result(moved_table(fitted, table, int(row), against, key))


def _names(fitted: Fitted) -> list[Any]:
    """The classes' names, as text where they are of several kinds."""
    names = fitted.names
    return names if len({type(name) for name in names}) == 1 else [str(name) for name in names]


def _summed(fitted: Fitted) -> Any:
    ranked, names = fitted.influence(), labels_in(fitted)
    values = np.array([value for _, value in ranked])
    return arrow_table(
        {"column": [names[key] for key, _ in ranked], "influence": values, "relative": _to_the_largest(values)}
    )


def _per_class(fitted: Fitted, parameters: bool) -> Any:
    far, names, columns = departures(fitted), _names(fitted), labels_in(fitted)
    words = {x.key: fitted.describe(x.key, parameters) for x in fitted.model.leaves}
    entries = [(key, g, float(values[g])) for key, values in far.items() for g in range(fitted.n_groups)]
    ranked = sorted(entries, key=lambda entry: -entry[2])
    values = np.array([value for *_, value in ranked])
    return arrow_table(
        {
            "column": [columns[key] for key, *_ in ranked],
            "class": [names[g] for _, g, _ in ranked],
            "influence": values,
            "relative": _to_the_largest(values),
            "words": [words[key][g] for key, g, _ in ranked],
        }
    )


def _to_the_largest(values: np.ndarray) -> np.ndarray:
    most = values.max(initial=0.0)
    return values / most if most > 0 else np.zeros(len(values))


def _card_lines(fitted: Fitted, parameters: bool) -> list[dict[str, Any]]:
    cards, names = fitted.cards(parameters), labels_in(fitted)
    typical = {x.key: _of_one_kind([card.typical[x.key] for card in cards]) for x in fitted.model.leaves}
    return [
        {
            "class": name,
            "share": card.share,
            "rows": card.rows,
            "departure": card.departure,
            "typical": {names[key]: values[g] for key, values in typical.items()},
            "apart": [
                {"column": names[x.key], "influence": x.influence, "here": x.here, "elsewhere": x.elsewhere}
                for x in card.apart
            ],
        }
        for g, (name, card) in enumerate(zip(_names(fitted), cards, strict=True))
    ]


def _of_one_kind(values: list[Any]) -> list[Any]:
    """Values that can share a column: a block's as lists, and text where levels are of several kinds."""
    if values and isinstance(values[0], tuple):
        flat = _of_one_kind([cell for value in values for cell in value])
        width = len(values[0])
        return [flat[a : a + width] for a in range(0, len(flat), width)]
    alike = len({type(value) for value in values if value is not None}) <= 1
    return values if alike else [None if value is None else str(value) for value in values]


def _crowd_line(crowd: ClassMembers, groups: int) -> dict[str, Any]:
    return {
        "members": crowd.rows,
        "entropy": crowd.entropy,
        "relative_entropy": relative(crowd.entropy, groups),
        "surest": [asdict(member) for member in crowd.most],
        "least_sure": [asdict(member) for member in crowd.least],
    }


def _odd_line(fitted: Fitted, odd: Anomaly, names: list[Any]) -> dict[str, Any]:
    columns = {**labels_in(fitted), ROOT: name_apart(fitted, CLASS)}
    reasons = [
        {"column": columns[key], "value": _text(odd.cells.get(key)), "surprise": part}
        for key, part in odd.parts.items()
    ]
    return {
        "row": odd.row,
        "score": odd.score,
        "log_density": odd.log_density,
        "class": names[odd.group] if odd.probability > 0 else None,
        "reason": reasons[0]["column"],
        "reasons": reasons,
    }


def _text(value: Any) -> str | None:
    if isinstance(value, tuple):
        return ", ".join("missing" if part is None else str(part) for part in value)
    return None if value is None else str(value)


def _odd_types(names: list[Any]) -> list[tuple[str, Any]]:
    reason = pa.struct([("column", pa.string()), ("value", pa.string()), ("surprise", pa.float64())])
    return [
        ("row", pa.int64()),
        ("score", pa.float64()),
        ("log_density", pa.float64()),
        ("class", pa.array(names).type),
        ("reason", pa.string()),
        ("reasons", pa.list_(reason)),
    ]


def marks_table(fitted: Fitted, names: list[Any], key: Key | None, most: int) -> Any:
    """The marking words of every class, class by class."""
    lines = [
        {"class": name, "column": labels_in(fitted)[leaf.key]} | asdict(mark)
        for leaf in text_leaves(fitted, key)
        for name, own in zip(names, marking_words(fitted, leaf, most), strict=True)
        for mark in own
    ]
    types: list[tuple[str, Any]] = [("class", pa.array(names).type), ("column", pa.string()), ("word", pa.string())]
    types += [(figure, pa.float64()) for figure in ("log_odds", "evidence", "count", "elsewhere")]
    return arrow_lines(lines, types)


def moved_table(fitted: Fitted, table: Table, row: int, against: Any, key: Key | None) -> Any:
    """The words of one row's documents, with their nats and places."""
    text_leaves(fitted, key)
    chunk = row_of(fitted, table, row)
    names, told = labels_in(fitted), explain_words(fitted, chunk, against, key)
    parts = [_moves(names[found.key], found, document_at(table, found.key, row)) for found in told]
    return pa.concat_tables(parts).combine_chunks()


def _moves(name: str, found: DocumentWords, document: str | None) -> Any:
    """The words of one document; a long one has millions of places, which no Python object is made for."""
    moves, places = found.words, places_of(found, document)
    own = [places.get(move.word, np.empty((0, 2), np.int64)) for move in moves]
    edges = np.cumsum([0, *map(len, own)])
    starts, ends = np.concatenate([np.empty((0, 2), np.int64), *own]).T
    spans = pa.StructArray.from_arrays([pa.array(starts), pa.array(ends)], names=["start", "end"])
    return pa.table(
        {
            "column": pa.array([name] * len(moves), pa.string()),
            "word": pa.array([move.word for move in moves], pa.string()),
            "count": pa.array([move.count for move in moves], pa.float64()),
            "nats": pa.array([move.nats for move in moves], pa.float64()),
            "spans": pa.ListArray.from_arrays(pa.array(edges, pa.int32()), spans),
        }
    )
