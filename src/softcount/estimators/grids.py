"""Columns that lie on a grid, as pixels and voxels do: maps of the classes, and of where they can be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.column_choice import FOLDS, labelled_table
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.evaluate.neighbourhoods import accuracies, adjacency
from softcount.records import dataclass
from softcount.run.threads import Threads
from softcount.table.chunk import Split


def class_maps(X: Any, y: Any, shape: Sequence[int], contrast: bool = False) -> dict[Any, np.ndarray]:
    """The mean of every column in every class, as arrays of the grid's shape; with `contrast` less the grand mean.

    Missing cells are left out of the means; a column without a value in a class is NaN there.

    >>> maps = class_maps([[0.0, 2.0], [4.0, 2.0]], ["a", "b"], (1, 2), contrast=True)
    >>> maps["a"].tolist(), maps["b"].tolist()
    ([[-2.0, 0.0]], [[2.0, 0.0]])
    """
    rows = _numbers(X)
    shape = checked_shape(shape, rows.shape[1])
    classes, codes = inputs.labels_of(y, rows)
    if not len(classes):
        raise DataError("every label is unknown, so there is no class to draw a map of.")
    known = rows[codes >= 0]
    middle = _mean(known)
    names = classes.tolist()
    means = {name: _mean(known[codes[codes >= 0] == k] - middle) for k, name in enumerate(names)}
    return {name: (mean if contrast else mean + middle).reshape(shape) for name, mean in means.items()}


def _mean(rows: np.ndarray) -> np.ndarray:
    there = ~np.isnan(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(there, rows, 0.0).sum(axis=0) / there.sum(axis=0))


def _numbers(X: Any) -> np.ndarray:
    try:
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    except (TypeError, ValueError):
        raise DataError("a map of means takes columns of numbers.") from None
    if rows.ndim != 2:
        raise DataError(f"a map takes rows of columns, not an array of {rows.ndim} dimensions. Flatten every picture.")
    return rows


def checked_shape(shape: Any, columns: int) -> tuple[int, ...]:
    """The shape of a grid that has as many places as there are columns."""
    try:
        sizes = tuple(int(size) for size in shape)
    except (TypeError, ValueError):
        raise DataError(f"shape is the sizes of the grid, such as (8, 8), not {shape!r}.") from None
    if not sizes or min(sizes) < 1 or sizes != tuple(shape):
        raise DataError(f"shape is whole numbers of at least 1, such as (8, 8), not {shape!r}.")
    if int(np.prod(sizes)) != columns:
        said = " x ".join(map(str, sizes))
        raise DataError(f"a grid of {said} has {int(np.prod(sizes)):,} places, but there are {columns:,} columns.")
    return sizes


def rank_accuracy(y: Any, proba: Any, classes: Any = None) -> float:
    """How high the true class ranks among all by its probability: 1 if always first, 0 if always last, 1/2 by chance.

    `classes` names the columns of `proba` (a model's `classes_`); without it they are the sorted labels. Ties count
    half.

    >>> rank_accuracy(["a", "c"], [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], ["a", "b", "c"])
    0.5
    """
    proba = np.asarray(proba, dtype=float)
    found, codes = inputs.labels_of(y, proba)
    names = found.tolist() if classes is None else np.asarray(classes).tolist()
    if proba.ndim != 2 or proba.shape[1] != len(names) or len(names) < 2:
        raise DataError(
            f"proba has the shape {proba.shape}, and there are {len(names)} classes: it takes a column for each of two "
            "classes or more. Name them: classes=model.classes_."
        )
    if np.isnan(proba).any():
        raise DataError(f"proba: row {int(np.argmax(np.isnan(proba).any(axis=1))) + 1} holds NaN.")
    unknown = [name for name in found.tolist() if name not in names]
    if unknown:
        raise DataError(f"class {unknown[0]!r} is not one of {', '.join(map(repr, names[:8]))}.")
    kept = np.flatnonzero(codes >= 0)
    place = np.array([names.index(name) for name in found.tolist()])[codes[kept]]
    own = proba[kept, place][:, None]
    below = (proba[kept] < own).sum(axis=1) + 0.5 * ((proba[kept] == own).sum(axis=1) - 1)
    return float(below.mean() / (len(names) - 1))


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourhoodMap:
    """Accuracy of naive Bayes on the columns near every place of a grid, on rows held out.

    `chance` is that of always saying the commonest class, and `standard_error` how far chance may move an accuracy
    there, one place taken by itself: of many places some are far up.
    """

    accuracy: np.ndarray
    chance: float
    rows: int

    @property
    def standard_error(self) -> float:
        return float(np.sqrt(self.chance * (1.0 - self.chance) / self.rows))

    @property
    def best(self) -> tuple[int, ...]:
        """The place with the highest accuracy."""
        return tuple(int(at) for at in np.unravel_index(int(np.argmax(self.accuracy)), self.accuracy.shape))


def neighbourhood_accuracy(
    X: Any, y: Any, shape: Sequence[int], radius: int = 1, model: Any = None, folds: int = FOLDS
) -> NeighbourhoodMap:  # fmt: skip
    """How well the columns near each place of a grid tell the classes, by naive Bayes on rows held out.

    Near are places at most `radius` steps away along every axis: a square of 9, in a volume a cube of 27. Every column
    is counted and scored once, and a neighbourhood is a sum of its columns: a thousand cost little more than one.
    `model` is a `NaiveBayes` whose settings to use.
    """
    inputs.refuse_fraction("radius", radius, 0)
    inputs.refuse_fraction("folds", folds, 2)
    model = NaiveBayes() if model is None else model
    table, plan, found = labelled_table(model, X, y)
    shape = checked_shape(shape, len(table.schema.fields))
    with Threads(model.n_jobs) as threads:
        right, sizes = accuracies(table, plan, threads, Split(folds, 0), adjacency(shape, radius), found)
    rows = float(sizes.sum())
    return NeighbourhoodMap(right.reshape(shape) / rows, float(sizes.max() / rows), round(rows))
