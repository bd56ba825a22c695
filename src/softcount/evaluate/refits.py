"""How well a model does on rows it has not seen, where every fold takes a fit of its own: counts by fold do not add."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softcount.evaluate.scores import Evaluation, Sums, summed
from softcount.records import dataclass
from softcount.run.progress import interrupts_end
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


@interrupts_end()
def refitted(rows: LabelledRows, split: Split, how: str, answer: Answer) -> Evaluation | None:
    """Each fold told by a model of the others; None where a fold leaves no label to learn from."""
    folds = split.of(rows)
    known = (rows.codes >= 0) & (rows.weights > 0)
    if any(not (known & (folds != fold)).any() for fold in split.tested):
        return None
    total = Sums.none(len(split.tested), rows.classes)
    for place, fold in enumerate(split.tested):
        test = np.flatnonzero(known & (folds == fold))
        if len(test):
            proba = answer(np.where(folds == fold, 0.0, rows.weights), test)
            total.add(place, proba, rows.codes[test], rows.weights[test], len(test))
    tested = np.flatnonzero(known & np.isin(folds, list(split.tested)))
    return summed(total, how, rows.by_class(tested), rows.by_class(np.flatnonzero(known)))
