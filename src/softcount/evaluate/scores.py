"""How well a model of known classes does on rows it has not seen, and whether its probabilities mean what they say."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from softcount.counts import ROOT
from softcount.errors import DataError
from softcount.evaluate.calibrate import SMALLEST, Correction, corrected, corrections
from softcount.evaluate.folds import FoldModels, fold_models
from softcount.fitted.calibration import BINS, Bin, bin_sums, bins_of, calibration_error
from softcount.learn.plan import Plan, retyping
from softcount.learn.prepare import on_task
from softcount.run.base import Runner, total
from softcount.table import Chunk, Table
from softcount.table.chunk import Split


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Accuracy and log-loss on unseen rows, beside those of always saying how frequent each class is.

    `balanced_accuracy` is the share right of each class, averaged over the classes. `reliability` sets the probability
    of the predicted class against how often it was right, in ten equal bins of which the empty ones are left out;
    `calibration_error` is how far the two are apart on average.
    """

    how: str
    n_rows: int
    accuracy: float
    log_loss: float
    baseline_accuracy: float
    baseline_log_loss: float
    folds: list[dict[str, float]] = field(default_factory=list)
    balanced_accuracy: float = float("nan")
    baseline_balanced_accuracy: float = float("nan")
    reliability: tuple[Bin, ...] = ()

    @property
    def calibration_error(self) -> float:
        return calibration_error(self.reliability) if self.reliability else float("nan")


def cross_validate(
    table: Table, plan: Plan, runner: Runner, folds: int = 5, seed: int = 0, calibration: str | None = None
) -> Evaluation | None:
    """Each of `folds` parts predicted by a model of the others; None where too few rows have a label.

    A row of whole weight n is n rows, each in a fold of its own. With a `calibration` the probabilities are corrected
    as the saved model's are.
    """
    if folds < 2:
        raise DataError(f"cross-validation needs at least 2 folds, not {folds}.")
    how, split = f"{folds}-fold cross-validation", Split(folds, seed)
    return retyping(table, lambda t: _evaluated(t, plan, runner, split, how, calibration), runner)


def hold_out(
    table: Table, plan: Plan, runner: Runner, share: float = 0.2, seed: int = 0, calibration: str | None = None
) -> Evaluation | None:
    """A random share of the rows predicted by a model of the rest."""
    if not 0 < share < 1:
        raise DataError(f"the share to hold out is between 0 and 1, not {share}.")
    how, split = f"{100 * share:g} % held out", Split(2, seed, share)
    return retyping(table, lambda t: _evaluated(t, plan, runner, split, how, calibration), runner)


def _evaluated(
    table: Table, plan: Plan, runner: Runner, split: Split, how: str, calibration: str | None
) -> Evaluation | None:
    models = fold_models(table, plan, runner, split)
    if models is None:
        return None
    found = None if calibration is None else corrections(table, plan, runner, models, calibration)
    sums = total(runner, partial(on_task, partial(_scored, models, found)), table.tasks())
    if calibration is not None:
        how += ", calibrated by the other rows" if found is not None else ", not calibrated"
    if sums is None:
        return None
    by_fold = models.counts[ROOT].reshape(models.model.groups, split.folds)
    return summed(sums, how, by_fold[:, list(split.tested)].sum(axis=1), by_fold.sum(axis=1))


@dataclass(frozen=True, slots=True)
class Sums:
    """What adds up, so that no table of rows x classes is ever held.

    Per fold: weight, weight of right answers, weighted log-loss, rows. Per class: weight, weight of right answers.
    """

    folds: np.ndarray
    classes: np.ndarray
    bins: np.ndarray

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.folds + other.folds, self.classes + other.classes, self.bins + other.bins)


def _scored(models: FoldModels, corrected_by: list[Correction] | None, chunk: Chunk) -> Sums:
    groups = models.model.groups
    folds, classes, bins = np.zeros((len(models.models), 4)), np.zeros((groups, 2)), np.zeros((BINS, 3))
    for found in models.answers(chunk):
        rows, labels, weights, joint = np.arange(len(found.rows)), found.labels, found.weights, found.joint
        if corrected_by is not None:
            possible = np.isfinite(joint).any(axis=1)
            joint[possible] = corrected(joint[possible], corrected_by[found.fold])
        best = joint.argmax(axis=1)
        right = (best == labels).astype(float)
        models.model.kernels.normalise(joint)
        own = np.maximum(joint[rows, labels], SMALLEST)
        folds[found.fold] += weights.sum(), weights @ right, -(weights @ np.log(own)), found.counted
        classes += np.stack([np.bincount(labels, w, minlength=groups) for w in (weights, weights * right)], axis=1)
        bins += bin_sums(joint[rows, best], right, weights)
    return Sums(folds, classes, bins)


def summed(sums: Sums, how: str, tested: np.ndarray, counted: np.ndarray) -> Evaluation | None:
    """What the sums say, beside always saying how frequent each class is: its weight in tested rows, and in all."""
    weight, right, loss, rows = sums.folds.sum(axis=0)
    if weight <= 0:
        return None
    shares = counted / counted.sum()
    guess = float(tested[shares.argmax()] / tested.sum())
    unsure = float(-(tested @ np.log(np.maximum(shares, SMALLEST))) / tested.sum())
    folds = [{"accuracy": float(r / w), "log_loss": float(x / w), "rows": int(n)} for w, r, x, n in sums.folds if w > 0]
    met = sums.classes[sums.classes[:, 0] > 0]
    return Evaluation(
        how, int(rows), float(right / weight), float(loss / weight), guess, unsure, folds,
        balanced_accuracy=float((met[:, 1] / met[:, 0]).mean()), baseline_balanced_accuracy=1.0 / len(met),
        reliability=bins_of(sums.bins),
    )  # fmt: skip
