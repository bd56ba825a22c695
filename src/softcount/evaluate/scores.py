"""How well a model of known classes does on rows it has not seen, and whether its probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from softcount.counts import ROOT
from softcount.errors import DataError
from softcount.evaluate.calibrate import SMALLEST, Correction, corrected, corrections
from softcount.evaluate.evaluation import Evaluation as Evaluation
from softcount.evaluate.folds import FoldModels, fold_models
from softcount.evaluate.ranking import LiftLine, Ranking
from softcount.fitted.calibration import BINS, bin_sums, bins_of
from softcount.learn.plan import Plan, retyping
from softcount.learn.prepare import on_task
from softcount.records import dataclass
from softcount.run.base import Runner, total
from softcount.run.progress import interrupts_end
from softcount.run.rows import Step
from softcount.table import Chunk, Table
from softcount.table.chunk import Split

MOST_CLASSES = 12
"""Classes up to which confusion is kept fold by fold, and rows are ranked."""
RANKS = 2001
"""Steps of the log-odds of a class that ranks are told apart by, from -RANGE to RANGE."""
RANGE = 50.0


@interrupts_end()
def cross_validate(
    table: Table,
    plan: Plan,
    runner: Runner,
    folds: int = 5,
    seed: int = 0,
    calibration: str | None = None,
    classes: Sequence[Any] | None = None,
) -> Evaluation | None:
    """Each of `folds` parts predicted by a model of the others; None where too few rows have a label.

    A row of whole weight n is n rows, each in a fold of its own. With a `calibration` the probabilities are corrected
    as the saved model's are. `classes` are the names of coded labels.
    """
    if folds < 2:
        raise DataError(f"cross-validation needs at least 2 folds, not {folds}.")
    how, split = f"{folds}-fold cross-validation", Split(folds, seed)
    return retyping(table, lambda t: _evaluated(t, plan, runner, split, how, calibration, classes), runner)


@interrupts_end()
def hold_out(
    table: Table,
    plan: Plan,
    runner: Runner,
    share: float = 0.2,
    seed: int = 0,
    calibration: str | None = None,
    classes: Sequence[Any] | None = None,
) -> Evaluation | None:
    """A random share of the rows predicted by a model of the rest."""
    if not 0 < share < 1:
        raise DataError(f"the share to hold out is between 0 and 1, not {share}.")
    how, split = f"{100 * share:g} % held out", Split(2, seed, share)
    return retyping(table, lambda t: _evaluated(t, plan, runner, split, how, calibration, classes), runner)


def _evaluated(
    table: Table,
    plan: Plan,
    runner: Runner,
    split: Split,
    how: str,
    calibration: str | None,
    classes: Sequence[Any] | None,
) -> Evaluation | None:
    models = fold_models(table, plan, runner, split, classes)
    if models is None:
        return None
    found = None if calibration is None else corrections(table, plan, runner, models, calibration)
    sums = _summed_up(models, found, table, runner)
    if calibration is not None:
        how += ", calibrated by the other rows" if found is not None else ", not calibrated"
    if sums is None:
        return None
    by_fold = models.counts[ROOT].reshape(models.model.groups, split.folds)
    return summed(sums, how, by_fold[:, list(split.tested)].sum(axis=1), by_fold.sum(axis=1))


def _summed_up(models: FoldModels, found: list[Correction] | None, table: Table, runner: Runner) -> Sums | None:
    """What the models of all folds say of their rows, added up here or where the rows are."""
    if models.rows is None:
        return total(runner, partial(on_task, partial(_scored, models, found)), table.tasks())
    try:
        sums: Sums = models.rows.total(Step(f"{__name__}:scoring", (models.for_settled, found)))
        return sums
    finally:
        models.rows.close()


def scoring(state: tuple[FoldModels, list[Correction] | None]) -> Callable[[Chunk], Sums]:
    """What the models of all folds say of the rows of a chunk."""
    return partial(_scored, *state)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """What adds up, so that no table of rows x classes is ever held.

    Per fold: weight, weight of right answers, weighted log-loss, weighted Brier score, rows. `confusion` is the weight
    of every true class in every predicted one, fold by fold where there are few classes; `ranks` the weight of all rows
    and of those of the class, by class and by the step its log-odds are on.
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
        return Sums(*(getattr(self, x.name) + getattr(other, x.name) for x in fields(self)))

    def add(self, fold: int, proba: np.ndarray, labels: np.ndarray, weights: np.ndarray, counted: int) -> None:
        """Put in what one fold's model says of some of its rows, which stand for `counted` ones."""
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
        """Rows ranked by the probability of each class; those of one step share what they hold."""
        found = []
        for ranks in self.ranks:
            met = np.flatnonzero(ranks[:, 0])[::-1]
            ranking = Ranking(met.astype(float), np.cumsum(ranks[met, 0]), np.cumsum(ranks[met, 1]))
            found.append(tuple(ranking.lift()))
        return tuple(found)


def rank_steps(proba: np.ndarray) -> np.ndarray:
    """The step that the log-odds of each probability are on: a twentieth of a nat wide.

    >>> rank_steps(np.array([0.0, 0.5, 0.51, 1.0])).tolist()
    [0, 1000, 1001, 2000]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(proba) - np.log1p(-np.minimum(proba, 1.0))
    steps: np.ndarray = np.rint((np.clip(odds, -RANGE, RANGE) + RANGE) * (RANKS - 1) / (2 * RANGE)).astype(np.int64)
    return steps


def _scored(models: FoldModels, corrected_by: list[Correction] | None, chunk: Chunk) -> Sums:
    sums = Sums.none(len(models.models), models.model.groups)
    for found in models.answers(chunk):
        joint = found.joint
        if corrected_by is not None:
            possible = np.isfinite(joint).any(axis=1)
            joint[possible] = corrected(joint[possible], corrected_by[found.fold])
        models.model.kernels.normalise(joint)
        sums.add(found.fold, joint, found.labels, found.weights, found.counted)
    return sums


def summed(sums: Sums, how: str, tested: np.ndarray, counted: np.ndarray) -> Evaluation | None:
    """What the sums say, beside always saying how frequent each class is: its weight in tested rows, and in all."""
    weight, right, loss, brier, rows = sums.folds.sum(axis=0)
    if weight <= 0:
        return None
    shares = counted / counted.sum()
    guess = float(tested[shares.argmax()] / tested.sum())
    unsure = float(-(tested @ np.log(np.maximum(shares, SMALLEST))) / tested.sum())
    told = [{"accuracy": r / w, "log_loss": x / w, "rows": int(n)} for w, r, x, _, n in sums.folds.tolist() if w > 0]
    confusion = sums.confusion.sum(axis=0)
    met = confusion.sum(axis=1)
    recalls = np.diag(confusion)[met > 0] / met[met > 0]
    by_fold = [_nested(part) for part, w in zip(sums.confusion, sums.folds[:, 0], strict=False) if w > 0]
    return Evaluation(
        how, int(rows), float(right / weight), float(loss / weight), guess, unsure, told,
        balanced_accuracy=float(recalls.mean()), baseline_balanced_accuracy=1.0 / len(recalls),
        reliability=bins_of(sums.bins), brier=float(brier / weight),
        confusion=_nested(confusion), confusions=tuple(by_fold) if len(sums.ranks) else (), lift=sums.lift,
        baseline_brier=float(tested @ (shares @ shares - 2.0 * shares + 1.0) / tested.sum()),
    )  # fmt: skip


def _nested(table: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, table.tolist()))
