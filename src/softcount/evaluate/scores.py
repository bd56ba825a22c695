"""Log-loss, accuracy and other scores of predictions, on held-out rows or on a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.counts import ROOT
from softcount.errors import DataError
from softcount.evaluate.calibrate import SMALLEST, Correction, correct, learn_corrections
from softcount.evaluate.folds import FoldModels, fold_models
from softcount.evaluate.ranking import PARTS, LiftLine, Ranking, ScoredRows
from softcount.evaluate.ranking import Evaluation as Evaluation
from softcount.fitted.calibration import BINS, bin_sums, bins_of
from softcount.fitted.classes import cells
from softcount.fitted.decisions import choose_cheapest
from softcount.fitted.fitted import Fitted
from softcount.learn.known_classes import on_task
from softcount.learn.record import Plan, retry_wider
from softcount.run.local import Runner, Threads, total
from softcount.run.progress import announce, end_on_interrupt
from softcount.table import Chunk, Table
from softcount.table.chunk import Chunks, Split
from softcount.table.schema import Key

MOST_CLASSES = 12
"""Classes up to which confusion is kept fold by fold, and rows are ranked."""
RANKS = 2001
"""Steps of the log-odds of a class by which rows are ranked, from -RANGE to RANGE."""
RANGE = 50.0


@end_on_interrupt()
def cross_validate(
    table: Table,
    plan: Plan,
    runner: Runner,
    folds: int = 5,
    seed: int = 0,
    calibration: str | None = None,
    classes: Sequence[Any] | None = None,
    share: float | None = None,
) -> Evaluation | None:
    """Each of `folds` parts predicted by a model of the others; None if too few rows have a label.

    With a `share`, that random share of the rows is predicted by a model of the rest instead. A row of whole weight n
    is n rows, each in a fold by itself. With a `calibration` the probabilities are corrected as the saved model's are.
    `classes` are the names of coded labels.
    """
    if share is not None and not 0 < share < 1:
        raise DataError(f"the share to hold out is between 0 and 1, not {share}.")
    if share is None and folds < 2:
        raise DataError(f"cross-validation needs at least 2 folds, not {folds}.")
    split = Split(folds, seed) if share is None else Split(2, seed, share)
    how = f"{folds}-fold cross-validation" if share is None else f"{100 * share:g} % held out"

    def evaluate(table: Table) -> Evaluation | None:
        models = fold_models(table, plan, runner, split, classes)
        if models is None:
            return None
        found = None if calibration is None else learn_corrections(table, plan, runner, models, calibration)
        sums: Sums | None
        if models.rows is None:
            sums = total(runner, partial(on_task, partial(_score_chunk, models, found)), table.tasks())
        else:  # the workers of an engine have the rows, in settled codes
            in_order = replace(models, rows=None, settled=replace(models.settled, remap={}, label_remap=None))
            try:
                sums = models.rows.total(partial(_score_chunk, in_order, found))
            finally:
                models.rows.close()
        if sums is None:
            return None
        calibrated = "" if calibration is None else ", not calibrated"
        calibrated = calibrated if found is None else ", calibrated by the other rows"
        by_fold = models.counts[ROOT].reshape(models.model.groups, split.folds)
        tested = by_fold[:, list(split.tested)].sum(axis=1)
        return evaluate_sums(sums, how + calibrated, tested, by_fold.sum(axis=1))

    return retry_wider(table, evaluate, runner)


class Sums(Struct, frozen=True, eq=False):
    """Sums over rows, so that no table of rows x classes is ever held.

    Per fold: weight, weight of right answers, weighted log-loss, weighted Brier score, rows. `confusion` is the weight
    of every true class in every predicted one, fold by fold if there are few classes; `ranks` the weight of all rows
    and of those of the class, by class and step of its log-odds.
    """

    folds: np.ndarray
    confusion: np.ndarray
    bins: np.ndarray
    ranks: np.ndarray

    @classmethod
    def none(cls, folds: int, classes: int) -> Sums:
        few = classes <= MOST_CLASSES
        confusion = np.zeros((folds if few else 1, classes, classes))
        return cls(np.zeros((folds, 5)), confusion, np.zeros((BINS, 3)), np.zeros((classes if few else 0, RANKS, 2)))

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, x) + getattr(other, x) for x in self.__struct_fields__))

    def add(self, fold: int, proba: np.ndarray, labels: np.ndarray, weights: np.ndarray, counted: int) -> None:
        """Add one fold's predictions for some of its rows, which stand for `counted` ones."""
        rows, best = np.arange(len(labels)), proba.argmax(axis=1)
        right, own = (best == labels).astype(float), proba[rows, labels]
        squares = np.einsum("ij,ij->i", proba, proba) - 2.0 * own + 1.0
        loss = -(weights @ np.log(np.maximum(own, SMALLEST)))
        self.folds[fold] += weights.sum(), weights @ right, loss, weights @ squares, counted
        classes = proba.shape[1]
        pairs = np.bincount(labels * classes + best, weights, classes * classes).reshape(classes, classes)
        self.confusion[min(fold, len(self.confusion) - 1)] += pairs
        self.bins[:] += bin_sums(np.minimum(proba[rows, best], 1.0), right, weights)
        for place, ranks in enumerate(self.ranks):
            steps = rank_steps(proba[:, place])
            ranks[:, 0] += np.bincount(steps, weights, RANKS)
            ranks[:, 1] += np.bincount(steps, weights * (labels == place), RANKS)

    @property
    def lift(self) -> tuple[tuple[LiftLine, ...], ...]:
        """Lift of each class; rows of one step share what they hold."""
        found = []
        for ranks in self.ranks:
            met = np.flatnonzero(ranks[:, 0])[::-1]
            ranking = Ranking(met.astype(float), np.cumsum(ranks[met, 0]), np.cumsum(ranks[met, 1]))
            found.append(tuple(ranking.lift()))
        return tuple(found)


def rank_steps(proba: np.ndarray) -> np.ndarray:
    """The step of the log-odds of each probability: a twentieth of a nat wide.

    >>> rank_steps(np.array([0.0, 0.5, 0.51, 1.0])).tolist()
    [0, 1000, 1001, 2000]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(proba) - np.log1p(-np.minimum(proba, 1.0))
    steps: np.ndarray = np.rint((np.clip(odds, -RANGE, RANGE) + RANGE) * (RANKS - 1) / (2 * RANGE)).astype(np.int64)
    return steps


def _score_chunk(models: FoldModels, corrected_by: list[Correction] | None, chunk: Chunk) -> Sums:
    sums = Sums.none(len(models.models), models.model.groups)
    for found in models.answers(chunk):
        joint = found.joint
        if corrected_by is not None:
            possible = np.isfinite(joint).any(axis=1)
            joint[possible] = correct(joint[possible], corrected_by[found.fold])
        models.model.kernels.normalise(joint)
        sums.add(found.fold, joint, found.labels, found.weights, found.counted)
    return sums


def evaluate_sums(sums: Sums, how: str, tested: np.ndarray, counted: np.ndarray) -> Evaluation | None:
    """The scores, and those of predicting the class shares: their weight in tested rows, and in all."""
    weight, right, loss, brier, rows = sums.folds.sum(axis=0)
    if weight <= 0:
        return None
    shares = counted / counted.sum()
    guess = float(tested[shares.argmax()] / tested.sum())
    unsure = float(-(tested @ np.log(np.maximum(shares, SMALLEST))) / tested.sum())
    each = [{"accuracy": r / w, "log_loss": x / w, "rows": int(n)} for w, r, x, _, n in sums.folds.tolist() if w > 0]
    confusion = sums.confusion.sum(axis=0)
    met = confusion.sum(axis=1)
    recalls = np.diag(confusion)[met > 0] / met[met > 0]
    by_fold = [_nested(part) for part, w in zip(sums.confusion, sums.folds[:, 0], strict=False) if w > 0]
    return Evaluation(
        how, int(rows), float(right / weight), float(loss / weight), guess, unsure, each,
        balanced_accuracy=float(recalls.mean()), baseline_balanced_accuracy=1.0 / len(recalls),
        reliability=bins_of(sums.bins), brier=float(brier / weight),
        confusion=_nested(confusion), confusions=tuple(by_fold) if len(sums.ranks) else (), lift=sums.lift,
        baseline_brier=float(tested @ (shares @ shares - 2.0 * shares + 1.0) / tested.sum()),
    )  # fmt: skip


def _nested(table: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, table.tolist()))


# Scores of a classifier on labelled rows: the sums of cross-validation, and scores based on ranks.

HOW = "rows given with their classes"


def evaluate_rows(held: ScoredRows, shares: np.ndarray, how: str = HOW, by_fold: bool = False) -> Evaluation:
    """The scores, with those of predicting the training `shares`; also fold by fold."""
    classes = held.proba.shape[1]
    folds = held.folds if by_fold else np.zeros_like(held.folds)
    sums = Sums.none(len(np.unique(folds)), classes)
    for place, fold in enumerate(np.unique(folds)):
        rows = np.flatnonzero(folds == fold)
        sums.add(place, held.proba[rows], held.labels[rows], held.weights[rows], len(rows))
    found = evaluate_sums(sums, how, np.bincount(held.labels, held.weights, minlength=classes), shares)
    assert found is not None  # there is a row with weight
    each = [auc for place in range(classes) if (auc := held.ranking(place).auc) == auc]
    return replace(found, auc=float(np.mean(each)) if each else float("nan"))


def find_rarer_class(held: ScoredRows) -> int:
    """Of two classes, that of fewer rows; if there is only one, that one."""
    rows = np.bincount(held.labels, held.weights, minlength=2)
    return int(np.argmin(np.where(rows > 0, rows, np.inf)))


def compute_lift(held: ScoredRows, names: Sequence[Any], place: int, parts: int = PARTS) -> list[LiftLine]:
    found = held.ranking(place).lift(parts)
    if not found:
        raise DataError(f"no row with a label is of class {names[place]!r}, so there is no lift.")
    return found


class CostFigures(Struct, frozen=True):
    """Mean cost of a row: by the lowest expected cost, the most probable class, and the best single class."""

    cheapest: float
    likeliest: float
    always: float
    always_class: Any


def cost_figures(held: ScoredRows, costs: np.ndarray, names: Sequence[Any]) -> CostFigures:
    def mean(decided: Any) -> float:
        return float(held.weights @ costs[held.labels, decided] / held.weights.sum())

    each = [mean(place) for place in range(len(names))]
    best = int(np.argmin(each))
    return CostFigures(
        mean(choose_cheapest(held.proba, costs)), mean(held.proba.argmax(axis=1)), each[best], names[best]
    )


def match_names(labels: Sequence[Any], names: Sequence[Any]) -> list[Any]:
    """Labels as the model names its classes: values that only differ in how they were read are equal.

    >>> match_names(["1", 0, None], [0, 1])
    [1, 0, None]
    """
    known, spelled = set(names), {str(name): name for name in names}
    return [label if label is None or label in known else spelled.get(str(label), label) for label in labels]


def match_labels(proba: np.ndarray, labels: np.ndarray, weights: np.ndarray, folds: int = 1) -> ScoredRows:
    """The rows with a label and some weight, dealt to folds in turn."""
    if not len(labels) == len(proba) == len(weights):
        raise DataError(f"Found input variables with inconsistent numbers of samples: [{len(proba)}, {len(labels)}]")
    kept = np.flatnonzero((labels >= 0) & (weights > 0))
    if not len(kept):
        raise DataError("no row has a label, so there is nothing to compare predictions with.")
    return ScoredRows(proba[kept], labels[kept], weights[kept], np.arange(len(kept)) % folds)


# Cross-validation for models whose counts cannot be added over folds: one fit per fold.

Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From the training weight of every row, and the numbers of the rows to predict, to (rows x classes) probabilities."""


@end_on_interrupt()
def cross_validate_refits(
    codes: np.ndarray, weights: np.ndarray, classes: int, split: Split, how: str, answer: Answer
) -> Evaluation | None:
    """Cross-validation with one fit per fold; None if a fold leaves no label to learn from.

    `codes` has the class of every row by its number, -1 if it is missing.
    """
    folds = split.of_numbers(np.arange(len(codes)))
    known = (codes >= 0) & (weights > 0)
    if any(not (known & (folds != fold)).any() for fold in split.tested):
        return None
    sums = Sums.none(len(split.tested), classes)
    for place, fold in enumerate(split.tested):
        announce("cross-validating", place, len(split.tested))
        test = np.flatnonzero(known & (folds == fold))
        if len(test):
            proba = answer(np.where(folds == fold, 0.0, weights), test)
            sums.add(place, proba, codes[test], weights[test], len(test))
    tested, counted = (
        np.bincount(codes[rows], weights[rows], minlength=classes)
        for rows in (known & np.isin(folds, list(split.tested)), known)
    )
    return evaluate_sums(sums, how, tested, counted)


# Scores of a table's rows for reports, and a few rows one by one.

RELIABILITY_BINS = 10
PICKED = {"right": 1, "wrong": 2, "unsure": 2}
"""Rows of each kind that are shown; without labels, `sure` ones stand for right and wrong."""
MOST_POINTS = 250
"""Rows kept to be drawn as points."""


class PickedRow(Struct, frozen=True):
    """A row to be explained: why it was picked, its class and runner-up, and the contribution of each column."""

    row: int
    kind: str
    chosen: int
    against: int
    probability: float
    truth: int | None
    odds: dict[Key, float]
    start: float
    cells: dict[Key, Any]


class RowFindings(Struct, frozen=True):
    """`sureness` counts rows by most probable group and by its probability in ten bins from 0 to 1."""

    rows: int
    evaluation: Evaluation | None
    sureness: np.ndarray
    picked: list[PickedRow]
    points: list[tuple[Chunk, np.ndarray]] = field(default_factory=list)


class _Candidate(Struct):
    merit: float
    row: int
    chunk: Chunk
    proba: np.ndarray
    truth: int | None


def describe_rows(
    fitted: Fitted, chunks: Iterable[Chunk], threads: Threads, labels: np.ndarray | None = None
) -> RowFindings:
    """Scores of a table in one pass; `labels` are the places of the rows' classes, below 0 if they are missing."""
    groups = fitted.n_groups
    sums, sureness, tested = Sums.none(1, groups), np.zeros((groups, RELIABILITY_BINS)), np.zeros(groups)
    best: dict[str, list[_Candidate]] = {}
    points: list[tuple[Chunk, np.ndarray]] = []
    rows = 0
    for chunk in chunks:
        proba = fitted.proba(Chunks([replace(chunk, start=0)]), threads)  # type: ignore[arg-type]
        own = None if labels is None else labels[chunk.start : chunk.start + chunk.n_rows]
        sure = proba.max(axis=1, initial=0.0)
        np.add.at(
            sureness,
            (proba.argmax(axis=1), np.minimum((sure * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1)),
            1.0,
        )
        if own is not None and (own >= 0).any():
            known = np.flatnonzero(own >= 0)
            sums.add(0, proba[known], own[known], np.ones(len(known)), len(known))
            tested += np.bincount(own[known], minlength=groups)
        for kind, candidate in _offer_rows(chunk, proba, own):
            ranked = sorted([*best.get(kind, []), candidate], key=lambda x: (-x.merit, x.row))
            best[kind] = ranked[: PICKED.get(kind, 2)]
        room = MOST_POINTS - sum(len(part) for _, part in points)
        if room > 0:
            points.append((chunk.take(slice(0, room)), proba[:room]))
        rows += chunk.n_rows
    evaluation = evaluate_sums(sums, HOW, tested, fitted.shares) if tested.sum() > 0 else None
    picked = [_explain_row(fitted, kind, candidate) for kind in best for candidate in best[kind]]
    return RowFindings(rows, evaluation, sureness, picked, points)


def _offer_rows(chunk: Chunk, proba: np.ndarray, labels: np.ndarray | None) -> Iterator[tuple[str, _Candidate]]:
    """The rows of a chunk that could be shown: most certain right, most certain wrong, least certain."""
    if proba.shape[1] < 2 or not len(proba):
        return
    sure, best = proba.max(axis=1), proba.argmax(axis=1)
    merits = {"unsure": (-sure, np.ones(len(sure), dtype=bool))}
    if labels is None or not (labels >= 0).any():
        merits = {"sure": (sure, merits["unsure"][1]), **merits}
    else:
        right, wrong = best == labels, (best != labels) & (labels >= 0)
        merits = {"right": (sure, right), "wrong": (sure, wrong), **merits}
    for kind, (merit, those) in merits.items():
        chosen = np.flatnonzero(those)
        for place in chosen[np.argsort(-merit[chosen], kind="stable")[: PICKED.get(kind, 2)]]:
            truth = None if labels is None or labels[place] < 0 else int(labels[place])
            alone = chunk.take(np.array([place]))
            yield kind, _Candidate(float(merit[place]), chunk.start + int(place), alone, proba[place], truth)


def _explain_row(fitted: Fitted, kind: str, found: _Candidate) -> PickedRow:
    table: Any = Chunks([found.chunk])
    why = fitted.explain(table)
    odds = {key: float(part[0]) for key, part in why.parts.items() if key is not ROOT}
    chosen = int(why.chosen[0])
    return PickedRow(
        found.row, kind, chosen, int(why.against[0]), float(found.proba[chosen]), found.truth, odds,
        float(why.parts[ROOT][0]), cells(fitted, found.chunk),
    )  # fmt: skip
