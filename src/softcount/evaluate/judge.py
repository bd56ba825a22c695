"""A classifier's figures on labelled rows at hand: the same sums as in cross-validation, and what ranks add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.evaluate.ranking import PARTS, LiftLine, ScoredRows
from softcount.evaluate.scores import Evaluation, Sums, summed
from softcount.fitted.decisions import cheapest
from softcount.records import dataclass

HOW = "rows given with their classes"


def judged(held: ScoredRows, shares: np.ndarray, by_fold: bool = False) -> Evaluation:
    """The figures beside those of always saying the classes' `shares` of training; also fold by fold."""
    classes = held.proba.shape[1]
    folds = held.folds if by_fold else np.zeros_like(held.folds)
    sums = Sums.none(len(np.unique(folds)), classes)
    for place, fold in enumerate(np.unique(folds)):
        rows = np.flatnonzero(folds == fold)
        sums.add(place, held.proba[rows], held.labels[rows], held.weights[rows], len(rows))
    found = summed(sums, HOW, np.bincount(held.labels, held.weights, minlength=classes), shares)
    assert found is not None  # there is a row with weight
    return replace(found, auc=mean_auc(held))


def mean_auc(held: ScoredRows) -> float:
    """The area under the curve of each class against the others, averaged over those met; NaN where none is."""
    each = [held.ranking(place).auc for place in range(held.proba.shape[1])]
    known = [auc for auc in each if auc == auc]
    return float(np.mean(known)) if known else float("nan")


def rarer(held: ScoredRows) -> int:
    """Of two classes, that of fewer rows; where there is only one, it."""
    rows = np.bincount(held.labels, held.weights, minlength=2)
    return int(np.argmin(np.where(rows > 0, rows, np.inf)))


def lift_of(held: ScoredRows, names: Sequence[Any], place: int, parts: int = PARTS) -> list[LiftLine]:
    """A line for each part of the rows, ranked by the probability of the class at `place`."""
    found = held.ranking(place).lift(parts)
    if not found:
        raise DataError(f"no row with a label is of class {names[place]!r}, so there is no lift to tell of.")
    return found


@dataclass(frozen=True, slots=True)
class CostFigures:
    """What a row costs on average: by the lowest expected cost, the likeliest class, and the best single class."""

    cheapest: float
    likeliest: float
    always: float
    always_class: Any


def cost_figures(held: ScoredRows, costs: np.ndarray, names: Sequence[Any]) -> CostFigures:
    """What decisions on these rows came to."""

    def mean(decided: Any) -> float:
        return float(held.weights @ costs[held.labels, decided] / held.weights.sum())

    each = [mean(place) for place in range(len(names))]
    best = int(np.argmin(each))
    return CostFigures(mean(cheapest(held.proba, costs)), mean(held.proba.argmax(axis=1)), each[best], names[best])


def as_named(labels: Sequence[Any], names: Sequence[Any]) -> list[Any]:
    """Labels as the model names its classes: what only differs in how it was read is the same.

    >>> as_named(["1", 0, None], [0, 1])
    [1, 0, None]
    """
    known, spelled = set(names), {str(name): name for name in names}
    return [label if label is None or label in known else spelled.get(str(label), label) for label in labels]


def label_places(labels: Sequence[Any], names: Sequence[Any]) -> np.ndarray:
    """The place of each row's class among the names, -1 where it is unknown; a class nobody knows is an error."""
    places = {name: place for place, name in enumerate(names)}
    codes = np.full(len(labels), -1, dtype=np.int64)
    for row, label in enumerate(labels):
        label = label.item() if isinstance(label, np.generic) else label
        if label is None or label != label:
            continue
        if label not in places:
            known = ", ".join(map(repr, list(names)[:8]))
            raise DataError(f"row {row + 1}: class {label!r} is not one of the model's: {known}.")
        codes[row] = places[label]
    return codes


def scored_rows(proba: np.ndarray, labels: np.ndarray, weights: np.ndarray, folds: int = 1) -> ScoredRows:
    """The rows that have a label and some weight, dealt to folds in turn."""
    if not len(labels) == len(proba) == len(weights):
        raise DataError(f"Found input variables with inconsistent numbers of samples: [{len(proba)}, {len(labels)}]")
    kept = np.flatnonzero((labels >= 0) & (weights > 0))
    if not len(kept):
        raise DataError("no row has a label, so there is nothing to compare predictions with.")
    return ScoredRows(proba[kept], labels[kept], weights[kept], np.arange(len(kept)) % folds)
