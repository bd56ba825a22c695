"""How well a model does on rows it has not seen, where every fold takes a fit of its own: counts by fold do not add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcount.evaluate.calibrate import SMALLEST
from softcount.evaluate.scores import Evaluation, Sums, summed
from softcount.fitted.calibration import BINS, bin_sums
from softcount.table.chunk import Split

Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From the weight of every row in training, and the numbers of the rows to be told, to (rows x classes) chances."""


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """The class of every row by its number, -1 where it is unknown, and the weight of every row."""

    codes: np.ndarray
    weights: np.ndarray
    classes: int
    start: int = 0

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    def by_class(self, rows: np.ndarray) -> np.ndarray:
        """The weight of each class among some rows."""
        return np.bincount(self.codes[rows], self.weights[rows], minlength=self.classes)


def refitted(rows: LabelledRows, split: Split, how: str, answer: Answer) -> Evaluation | None:
    """Each fold told by a model of the others; None where a fold leaves no label to learn from."""
    folds = split.of(rows)
    known = (rows.codes >= 0) & (rows.weights > 0)
    if any(not (known & (folds != fold)).any() for fold in split.tested):
        return None
    total = Sums(np.zeros((len(split.tested), 4)), np.zeros((rows.classes, 2)), np.zeros((BINS, 3)))
    for place, fold in enumerate(split.tested):
        test = np.flatnonzero(known & (folds == fold))
        if len(test):
            proba = answer(np.where(folds == fold, 0.0, rows.weights), test)
            total = total + _scored(proba, rows, test, place, len(split.tested))
    tested = np.flatnonzero(known & np.isin(folds, list(split.tested)))
    return summed(total, how, rows.by_class(tested), rows.by_class(np.flatnonzero(known)))


def _scored(proba: np.ndarray, rows: LabelledRows, test: np.ndarray, place: int, folds: int) -> Sums:
    labels, weights = rows.codes[test], rows.weights[test]
    best = proba.argmax(axis=1)
    right = (best == labels).astype(float)
    each = np.arange(len(test))
    loss = -(weights @ np.log(np.maximum(proba[each, labels], SMALLEST)))
    by_fold = np.zeros((folds, 4))
    by_fold[place] = weights.sum(), weights @ right, loss, len(test)
    by_class = [np.bincount(labels, w, minlength=rows.classes) for w in (weights, weights * right)]
    return Sums(by_fold, np.stack(by_class, axis=1), bin_sums(proba[each, best], right, weights))
