"""A classifier's figures on labelled rows at hand: the same sums as in cross-validation, and what ranks add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.evaluate.ranking import PARTS, ScoredRows
from softcount.evaluate.scores import Evaluation, Sums, summed


def judged(held: ScoredRows, shares: np.ndarray, how: str = "on the rows given") -> Evaluation:
    """The figures beside those of always saying the classes' `shares` of training."""
    classes = held.proba.shape[1]
    sums = Sums.none(1, classes)
    sums.add(0, held.proba, held.labels, held.weights, len(held.labels))
    found = summed(sums, how, np.bincount(held.labels, held.weights, minlength=classes), shares)
    assert found is not None  # there is a row with weight
    return replace(found, auc=mean_auc(held))


def mean_auc(held: ScoredRows) -> float:
    """The area under the curve of each class against the others, averaged over those met; NaN where none is."""
    each = [held.ranking(place).auc for place in range(held.proba.shape[1])]
    known = [auc for auc in each if auc == auc]
    return float(np.mean(known)) if known else float("nan")


def rarer(held: ScoredRows) -> int:
    """Of two classes, that of fewer rows."""
    return int(np.argmin(np.bincount(held.labels, held.weights, minlength=2)))


def lift_lines(
    held: ScoredRows, names: Sequence[Any], place: int | None = None, parts: int = PARTS
) -> list[dict[str, float]]:
    """A line for each part of the rows, ranked by the probability of the class at `place`, or the rarer of two."""
    if place is None and len(names) != 2:
        raise DataError(f"lift is of one class, and there are {len(names)}. Say of which.")
    place = rarer(held) if place is None else place
    found = held.ranking(place).lift(parts)
    if not found:
        raise DataError(f"no row with a label is of class {names[place]!r}, so there is no lift to tell of.")
    return [asdict(line) for line in found]
