"""Classifiers side by side on one table: the same rows held out for all, and a tie called a tie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.errors import DataError, SoftcountError
from softcount.estimators import inputs
from softcount.estimators.learning_curves import LearningCurves, learning_curves
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.estimators.parameters import check_whole
from softcount.estimators.result_frames import arrow_lines, as_frame, frame_library
from softcount.estimators.rivals import Rival, RivalTable, quiet, rival_table, rivals_of
from softcount.evaluate.calibrate import SMALLEST
from softcount.evaluate.ranking import Behind, ScoredRows, behind, ranked, verdict
from softcount.evaluate.scores import Evaluation, Sums, mean_auc, summed
from softcount.run.local import Threads
from softcount.run.progress import Tell, interrupts_end, keep_quiet
from softcount.sources.frames import refuse_elsewhere
from softcount.table.column_summary import units_of
from softcount.table.schema import MISSING, Schema

FOLDS = 5
MANY_ROWS = 15_000
"""Rows above which a third is held out once: its standard errors are small, and everything is fitted once."""
MOST_ROWS = 100_000
"""Rows that are compared on; of more, some are drawn."""
MOST_CLASSES = 100
"""Classes beyond which a target is more likely a number or a name."""


class RivalScores(Struct, frozen=True, eq=False):
    """What one classifier did on rows held out: the figures, the loss of each row, and what it took.

    `seconds` are those of a fit and its predictions, a fold's on average; `size` is the bytes of the saved model,
    where it is ours; `joint` the log-loss of whole rows, class and all, of a generative one; `behind` how far its
    log-loss is from the best, `missed` the same of its share of wrong answers.
    """

    name: str
    figures: Evaluation
    losses: np.ndarray
    wrong: np.ndarray
    seconds: float
    size: int | None
    joint: float | None = None
    behind: Behind = field(default_factory=lambda: Behind(0.0, 0.0))
    missed: Behind = field(default_factory=lambda: Behind(0.0, 0.0))

    def line(self) -> dict[str, Any]:
        """The figures by name."""
        found = self.figures
        return {
            "model": self.name, "log_loss": found.log_loss, "behind": self.behind.mean,
            "standard_error": self.behind.error, "tie": self.behind.is_tie, "accuracy": found.accuracy,
            "accuracy_behind": self.missed.mean, "accuracy_standard_error": self.missed.error,
            "balanced_accuracy": found.balanced_accuracy, "brier": found.brier, "auc": found.auc,
            "calibration_error": found.calibration_error, "seconds": self.seconds, "bytes": self.size,
            "joint_log_loss": self.joint,
        }  # fmt: skip


class Comparison(Struct, frozen=True, eq=False):
    """Classifiers side by side, the lowest log-loss first.

    `table` has a line for each, `verdicts` say in words who is best and who ties with it, `notes` what was left out or
    drawn, `failed` who could not be tried and why. `curves` are log-losses by rows learned from, where asked for.
    `library` is whose frames tables are.
    """

    scores: list[RivalScores]
    how: str
    rows: int
    classes: list[Any]
    verdicts: list[str]
    notes: list[str]
    failed: dict[str, str]
    curves: LearningCurves | None = None
    library: str | None = None

    @property
    def table(self) -> Any:
        """A frame with a line for every classifier."""
        return as_frame(arrow_lines([found.line() for found in self.scores]), self.library)

    @property
    def best(self) -> RivalScores:
        """The one with the lowest log-loss."""
        return self.scores[0]

    def __str__(self) -> str:
        return "\n".join([self.how, *self.verdicts])


def compare(
    X: Any,
    y: Any,
    kinds: Mapping[Any, Any] | None = None,
    curve: bool = False,
    folds: int | None = None,
    random_state: int = 0,
) -> Comparison:
    """Naive Bayes and what else tells classes, side by side on the same rows held out.

    `X` and `y` are as `fit` takes them. Tried are naive Bayes with numbers as they are, cut and under kernels, with a
    weight for each column, and with a tree of columns; averaged stars; a mixture for every class; what lies between
    naive Bayes and logistic regression; `Classifier`; scikit-learn's logistic regression and gradient boosting. Above
    15,000 rows one third is held out once, else there are five `folds`; of more than 100,000 rows some are drawn. With
    `curve` everything is also learned from ever more of the rows.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> found = compare(X, np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, "yes", "no"), folds=2)
    >>> found.table.column_names[:3], found.rows
    (['model', 'log_loss', 'behind'], 120)
    """
    refuse_elsewhere(X)
    return replace(compared(X, y, kinds, curve, folds, random_state), library=frame_library(X))


@interrupts_end()
def compared(
    X: Any, y: Any, kinds: Mapping[Any, Any] | None, curve: bool, folds: int | None, seed: int, tell: Tell = keep_quiet
) -> Comparison:
    """The same, telling how far it is."""
    if folds is not None:
        check_whole("folds", folds, 2)
    kinds = _by_name(kinds)
    X, y = _opened(X, y)
    table, names, schema, notes = _labelled(X, y, kinds)
    table, names, more = _fair(table, names, folds or FOLDS, seed)
    splits, how = _splits(table, folds, seed)
    notes = [*notes, *more, *_constant(table, splits)]
    rivals = rivals_of(schema, _still_there(kinds, schema), seed)
    scores, failed = [], {}
    for place, rival in enumerate(rivals):
        tell("comparing", place, len(rivals))
        try:
            scores.append(_scored(rival, table, splits, how))
        except (SoftcountError, ValueError) as error:
            failed[rival.name] = str(error).splitlines()[0]
    if not scores:
        raise DataError(f"no classifier could be tried: {next(iter(failed.values()))}")
    losses, wrong = {x.name: x.losses for x in scores}, {x.name: x.wrong for x in scores}
    verdicts = [verdict(losses, "log-loss"), verdict(wrong, "accuracy")]
    kept = [rival for rival in rivals if rival.name in losses]
    full = {x.name: (x.figures.log_loss, x.figures.accuracy) for x in scores}
    curves = learning_curves(kept, table, splits, full, seed, tell) if curve else None
    return Comparison(_ranked(scores), how, len(table.labels), names, verdicts, notes, failed, curves)


def _by_name(kinds: Any) -> dict[Any, Any]:
    """Kinds by the columns' names as text, which is what they are called in the rows that are compared on."""
    if kinds is not None and not isinstance(kinds, Mapping):
        raise DataError("kinds says what columns are, by name: kinds={'age': 'normal'}.")
    return {tuple(map(str, key)) if isinstance(key, tuple) else str(key): kind for key, kind in (kinds or {}).items()}


def _opened(X: Any, y: Any) -> tuple[Any, Any]:
    """X with a file opened; a target by name only where X has names."""
    if not isinstance(X, np.ndarray):
        X = inputs.opened(X, MISSING, True)
    if isinstance(y, str) and not inputs.is_table(X):
        raise DataError(f"y={y!r} names a column, but X has no names. Give the labels themselves.")
    if isinstance(y, str) and y not in map(str, inputs.known_columns(X)):
        raise DataError(f"there is no column {y!r} in X. It has {', '.join(map(str, inputs.known_columns(X)[:8]))}.")
    return X, y


def _still_there(kinds: dict[Any, Any], schema: Schema) -> dict[Any, Any]:
    """Kinds of the columns that are used."""
    used = {str(spec.key) for spec in schema.used}
    return {key: kind for key, kind in kinds.items() if used.issuperset(key if isinstance(key, tuple) else (key,))}


def _labelled(X: Any, y: Any, kinds: dict[Any, Any]) -> tuple[RivalTable, list[Any], Schema, list[str]]:
    """Rows whose class is known, the classes, how columns are read, and what was left out."""
    reader = NaiveBayes(kinds or None)
    if kinds and isinstance(X, np.ndarray) and X.ndim == 2:
        X = {str(place): column for place, column in enumerate(X.T)}
    with quiet():
        reader.fit(X, y)
    fitted = reader.fitted_
    if fitted.bag or fitted.schema.texts:
        which = f"column {fitted.schema.texts[0]!r} is text" if fitted.schema.texts else "X is sparse"
        raise DataError(f"{which}, which not all models here read. Leave text out: kinds={{column: 'ignore'}}.")
    labels = inputs.codes_among(X, y, reader.classes_.tolist())
    data = inputs.checked(reader, X, reset=False)
    with Threads(None) as threads:
        chunks = list(fitted.table(data).chunks(threads.map))
    table, known = rival_table(fitted.schema, chunks, labels), np.flatnonzero(labels >= 0)
    notes = [f"column {spec.key} is left out: {spec.why}." for spec in fitted.schema.fields if not spec.used]
    if len(known) < len(labels):
        first = int(np.argmax(labels < 0)) + 1
        notes.append(f"rows without a class are left out: {len(labels) - len(known):,}, row {first} the first.")
    return table.take(known), list(reader.classes_.tolist()), fitted.schema, notes


def _fair(table: RivalTable, names: list[Any], folds: int, seed: int) -> tuple[RivalTable, list[Any], list[str]]:
    """Rows of classes that every fold can hold one of, at most so many; and what was left out."""
    rows = np.bincount(table.labels, minlength=len(names))
    if len(table.labels) < folds:
        fewer = f"Give folds={len(table.labels)}, or more rows." if len(table.labels) > 1 else "Give more rows."
        raise DataError(f"there are {len(table.labels)} rows with a class, fewer than {folds} folds. {fewer}")
    if len(names) > MOST_CLASSES:
        raise DataError(
            f"the target has {len(names):,} different values, and at most {MOST_CLASSES} classes are compared. "
            "Is it a name of each row? Put values together, or name another column."
        )
    rare = [f"{names[place]} ({count})" for place, count in enumerate(rows) if count < folds]
    kept = np.flatnonzero(rows >= folds)
    if len(kept) < 2:
        one = f"only {names[kept[0]]!r} has" if len(kept) else "no class has"
        raise DataError(
            f"{one} {folds} rows or more, one for every fold: there are no two classes to tell apart in each. "
            f"Rows by class: {', '.join(f'{name} ({count})' for name, count in zip(names, rows, strict=True))}."
        )
    notes = [f"classes with fewer rows than the {folds} folds are left out: {', '.join(rare)}."] if rare else []
    chosen = np.flatnonzero(np.isin(table.labels, kept))
    if len(chosen) > MOST_ROWS:
        drawn = np.sort(np.random.default_rng(seed).permutation(len(chosen))[:MOST_ROWS])
        notes.append(f"{MOST_ROWS:,} of {len(chosen):,} rows are drawn to compare on.")
        chosen = chosen[drawn]
    places = np.searchsorted(kept, table.labels[chosen])
    return replace(table.take(chosen), labels=places), [names[place] for place in kept], notes


Splits = list[tuple[np.ndarray, np.ndarray]]


def _splits(table: RivalTable, folds: int | None, seed: int) -> tuple[Splits, str]:
    """Rows to learn from and rows held out, with the same share of every class, and how that is called."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit

    blank, labels = np.zeros(len(table.labels)), table.labels
    codes = table.matrix[:, table.numbers :].astype(np.int32)
    repeats, units = units_of((table.matrix[:, : table.numbers], codes), labels)
    if repeats.copies:
        once = folds is None and len(labels) > MANY_ROWS
        number = 3 if once else folds or FOLDS
        found = list(StratifiedGroupKFold(number, shuffle=True, random_state=seed).split(blank, labels, units))
        how = "a third of the rows held out once" if once else f"{number} folds, the same for all"
        return found[:1] if once else found, f"{how}, copies of a row in one"
    if folds is None and len(labels) > MANY_ROWS:
        once = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed)
        return list(once.split(blank, labels)), "a third of the rows held out once, because there are many"
    parts = StratifiedKFold(folds or FOLDS, shuffle=True, random_state=seed)
    return list(parts.split(blank, labels)), f"{folds or FOLDS} folds, the same for all"


def _constant(table: RivalTable, splits: Splits) -> list[str]:
    """A note for each column that has one value where it is learned from, though not everywhere."""
    notes = []
    for key, column in zip(table.keys, table.matrix.T, strict=True):
        alone = [place for place, (train, _) in enumerate(splits, 1) if _one_value(column[train])]
        if alone and not _one_value(column):
            notes.append(f"column {key} has one value in what fold {alone[0]} learns from, and tells nothing there.")
    return notes


def _one_value(column: np.ndarray) -> bool:
    known = column[~np.isnan(column)]
    return not len(known) or bool((known == known[0]).all() and (len(known) == len(column)))


def _scored(rival: Rival, table: RivalTable, splits: Splits, how: str) -> RivalScores:
    """One classifier fitted on every split and asked for the rows held out there."""
    classes, sums, seconds = table.classes, Sums.none(len(splits), table.classes), 0.0
    proba, tested, folds, joint = [], [], [], []
    for fold, (train, test) in enumerate(splits):
        found, took, model = rival.proba(table.take(train), table.take(test))
        sums.add(fold, found, table.labels[test], np.ones(len(test)), len(test))
        seconds += took / len(splits)
        proba.append(found)
        joint.append(rival.joint(model, table.take(test)))
        tested.append(table.labels[test])
        folds.append(np.full(len(test), fold))
    labels = np.concatenate(tested)
    held = ScoredRows(np.concatenate(proba), labels, np.ones(len(labels)), np.concatenate(folds))
    counted = np.bincount(table.labels, minlength=classes).astype(float)
    figures = summed(sums, how, np.bincount(labels, minlength=classes).astype(float), counted)
    assert figures is not None  # every split holds out a row
    own = held.proba[np.arange(len(labels)), labels]
    wrong = (held.proba.argmax(axis=1) != labels).astype(float)
    losses = -np.log(np.maximum(own, SMALLEST))
    whole = [rows for rows in joint if rows is not None]
    return RivalScores(
        rival.name, replace(figures, auc=mean_auc(held)), losses, wrong, seconds, rival.size(model),
        float(np.concatenate(whole).mean()) if whole else None,
    )  # fmt: skip


def _ranked(scores: list[RivalScores]) -> list[RivalScores]:
    """The lowest log-loss first, each with how far it is behind."""
    by_name = {found.name: found for found in scores}
    order = ranked({found.name: found.losses for found in scores})
    first, right = by_name[order[0]], by_name[ranked({found.name: found.wrong for found in scores})[0]]
    return [
        replace(found, behind=behind(found.losses, first.losses), missed=behind(found.wrong, right.wrong))
        for found in (by_name[name] for name in order)
    ]
