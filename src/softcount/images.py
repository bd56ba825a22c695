"""Columns that lie on a grid, such as pixels and voxels: maps of class means and of local accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.lazy import sparse
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.column_choice import open_labelled
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.estimators.parameters import check_whole
from softcount.evaluate.folds import FoldModels, fold_models
from softcount.evaluate.ranking import FOLDS
from softcount.learn.known_classes import on_task
from softcount.learn.record import Plan, retry_wider
from softcount.report.maps import save_maps
from softcount.run.local import Runner, Threads, total
from softcount.table import Chunk, Table
from softcount.table.chunk import Split

__all__ = ["class_maps", "neighbourhood_accuracy", "rank_accuracy", "save_maps"]

CELLS_AT_ONCE = 16_000_000
"""Places times rows times classes that are summed in one product."""


def class_maps(X: Any, y: Any, shape: Sequence[int], contrast: bool = False) -> dict[Any, np.ndarray]:
    """Compute the mean of every column in every class, as arrays of the grid's shape.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Numbers; a column for every place of the grid. Missing cells are left out of the means.
    y : array-like of shape (n_rows,)
        Labels; rows without one are left out.
    shape : sequence of int
        Sizes of the grid, such as (8, 8).
    contrast : bool, default=False
        Subtract the mean over all classes.

    Returns
    -------
    dict
        A map for each class, NaN at places where the class has no value.

    See Also
    --------
    save_maps : Writes maps as a picture.
    neighbourhood_accuracy : A map of local accuracy.

    Examples
    --------
    >>> maps = class_maps([[0.0, 2.0], [4.0, 2.0]], ["a", "b"], (1, 2), contrast=True)
    >>> maps["a"].tolist(), maps["b"].tolist()
    ([[-2.0, 0.0]], [[2.0, 0.0]])
    """
    try:
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    except (TypeError, ValueError):
        raise DataError("a map of means needs numeric columns.") from None
    if rows.ndim != 2:
        raise DataError(f"a map takes rows of columns, not an array of {rows.ndim} dimensions. Flatten every picture.")
    shape = _check_shape(shape, rows.shape[1])
    classes, codes = inputs.code_classes(y, rows)
    if not len(classes):
        raise DataError("every label is unknown, so there is no class to draw a map of.")
    middle = _compute_mean(rows[codes >= 0])
    means = {name: _compute_mean(rows[codes == place] - middle) for place, name in enumerate(classes.tolist())}
    return {name: (mean if contrast else mean + middle).reshape(shape) for name, mean in means.items()}


def _compute_mean(rows: np.ndarray) -> np.ndarray:
    there = ~np.isnan(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(there, rows, 0.0).sum(axis=0) / there.sum(axis=0))


def _check_shape(shape: Any, columns: int) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in shape)
    except (TypeError, ValueError):
        raise DataError(f"shape is the sizes of the grid, such as (8, 8), not {shape!r}.") from None
    if not sizes or min(sizes) < 1 or sizes != tuple(shape):
        raise DataError(f"shape is whole numbers of at least 1, such as (8, 8), not {shape!r}.")
    if int(np.prod(sizes)) != columns:
        grid = " x ".join(map(str, sizes))
        raise DataError(f"a grid of {grid} has {int(np.prod(sizes)):,} places, but there are {columns:,} columns.")
    return sizes


def rank_accuracy(y: Any, proba: Any, classes: Any = None) -> float:
    """Compute the mean rank of the true class by its probability: 1 if always first, 0 if always last, 1/2 by chance.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True labels; rows without one are left out.
    proba : array-like of shape (n_rows, n_classes)
        Probabilities; ties count half.
    classes : array-like of shape (n_classes,), default=None
        Names of the columns of `proba` (a model's `classes_`). By default, the sorted labels.

    Returns
    -------
    float
        Mean over the rows of the share of other classes with a lower probability.

    See Also
    --------
    neighbourhood_accuracy : Accuracy around every place of a grid.

    References
    ----------
    .. [1] T. M. Mitchell et al. (2004). "Learning to decode cognitive states from brain images". Machine Learning 57,
       145-175.

    Examples
    --------
    >>> rank_accuracy(["a", "c"], [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], ["a", "b", "c"])
    0.5
    """
    proba = np.asarray(proba, dtype=float)
    found, codes = inputs.code_classes(y, proba)
    names = found.tolist() if classes is None else np.asarray(classes).tolist()
    if proba.ndim != 2 or proba.shape[1] != len(names) or len(names) < 2:
        raise DataError(
            f"proba has the shape {proba.shape}, and there are {len(names)} classes: it takes a column for each of two "
            "classes or more. Name them: classes=model.classes_."
        )
    if np.isnan(proba).any():
        raise DataError(f"proba: row {int(np.argmax(np.isnan(proba).any(axis=1))) + 1} holds NaN.")
    for name in found.tolist():
        if name not in names:
            raise DataError(f"class {name!r} is not one of {', '.join(map(repr, names[:8]))}.")
    kept = np.flatnonzero(codes >= 0)
    place = np.array([names.index(name) for name in found.tolist()])[codes[kept]]
    own = proba[kept, place][:, None]
    below = (proba[kept] < own).sum(axis=1) + 0.5 * ((proba[kept] == own).sum(axis=1) - 1)
    return float(below.mean() / (len(names) - 1))


class NeighbourhoodMap(Struct, frozen=True, eq=False):
    """Accuracy around every place of a grid, and that of always predicting the most frequent class (`chance`)."""

    accuracy: np.ndarray
    chance: float
    rows: int

    @property
    def standard_error(self) -> float:
        """Standard error of a single accuracy at chance level."""
        return float(np.sqrt(self.chance * (1.0 - self.chance) / self.rows))

    @property
    def best(self) -> tuple[int, ...]:
        return tuple(int(at) for at in np.unravel_index(int(np.argmax(self.accuracy)), self.accuracy.shape))


def neighbourhood_accuracy(
    X: Any, y: Any, shape: Sequence[int], radius: int = 1, model: Any = None, folds: int = FOLDS
) -> NeighbourhoodMap:  # fmt: skip
    """Compute the cross-validated accuracy of naive Bayes on the columns near every place of a grid.

    It is the searchlight of neuroimaging. Every column is counted and scored once: a thousand neighbourhoods cost
    little more than one.

    Parameters
    ----------
    X : array-like, table or file of n_rows rows
        A column for every place of the grid, as `NaiveBayes.fit` takes it.
    y : array-like of shape (n_rows,) or str
        Labels, or the name of their column.
    shape : sequence of int
        Sizes of the grid, such as (20, 20, 20).
    radius : int, default=1
        Steps along every axis within which a column is near: 1 is a square of 9, in a volume a cube of 27.
    model : NaiveBayes, default=None
        The classifier, with its parameters. None is `NaiveBayes()`.
    folds : int, default=5
        Number of folds.

    Returns
    -------
    NeighbourhoodMap
        `accuracy`, an array of the grid's shape; `chance`, the accuracy of the most frequent class; the
        `standard_error` of an accuracy at that level; and the place of the `best`.

    See Also
    --------
    class_maps : Maps of class means.
    save_maps : Writes maps as a picture.

    References
    ----------
    .. [1] N. Kriegeskorte, R. Goebel and P. Bandettini (2006). "Information-based functional brain mapping". PNAS 103
       (10), 3863-3868.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.normal(size=(100, 5))
    >>> X[:, 4] += 5 * y  # the class shows at the last place
    >>> neighbourhood_accuracy(X, y, (5,)).accuracy.round(1)
    array([0.5, 0.5, 0.5, 1. , 1. ])
    """
    check_whole("radius", radius, 0)
    check_whole("folds", folds, 2)
    model = NaiveBayes() if model is None else model
    table, plan, classes = open_labelled(model, X, y)
    shape = _check_shape(shape, len(table.schema.fields))
    near, split = find_neighbours(shape, radius), Split(folds, 0)
    with Threads(model.n_jobs) as threads:
        found = retry_wider(table, lambda t: _count_correct(t, plan, threads, split, near, classes), threads)
    rows = float(found[-1].sum())
    return NeighbourhoodMap(found[:-1, 0].reshape(shape) / rows, float(found[-1].max() / rows), round(rows))


def find_neighbours(shape: Sequence[int], radius: int = 1) -> Any:
    """(places x places) which places of a grid are at most `radius` steps apart along every axis.

    >>> find_neighbours((2, 3)).toarray().astype(int)[0].tolist()
    [1, 1, 0, 1, 1, 0]
    """
    near = [np.abs(np.subtract.outer(np.arange(size), np.arange(size))) <= radius for size in shape]
    return reduce(partial(sparse.kron, format="csr"), [sparse.csr_matrix(part.astype(float)) for part in near])


def _count_correct(
    table: Table, plan: Plan, runner: Runner, split: Split, near: Any, classes: Sequence[Any] | None
) -> np.ndarray:
    """(places + 1 x classes): in the first column the weight of correct rows; in the last row that of each class."""
    models = fold_models(table, plan, runner, split, classes)
    if models is None:
        raise DataError(f"too few rows have a label for {split.folds} folds.")
    places = {spec.key: place for place, spec in enumerate(table.schema.fields)}
    blocks = [leaf.key for leaf in models.model.leaves if len(leaf.columns) != 1]
    if blocks:
        raise DataError(f"a grid has one column in every place, and {blocks[0]!r} is a block of them.")
    used = near[:, [places[leaf.key] for leaf in models.model.leaves]]
    return np.asarray(total(runner, partial(on_task, partial(_count_chunk, models, used)), table.tasks()))


def _count_chunk(models: FoldModels, near: Any, chunk: Chunk) -> np.ndarray:
    sums = np.zeros((near.shape[0] + 1, groups := models.model.groups))
    at_once = max(1, CELLS_AT_ONCE // max(1, near.shape[0] * groups))
    for held in models.answers(chunk):
        columns, shares = np.stack(list(held.by_column().values())), held.log_shares
        for start in range(0, len(held.rows), at_once):
            rows = slice(start, start + at_once)
            scores = near @ columns[:, rows].reshape(len(columns), -1)
            joint = scores.reshape(near.shape[0], -1, groups) + shares[rows]
            sums[:-1, 0] += (joint.argmax(axis=2) == held.labels[rows]) @ held.weights[rows]
        sums[-1] += np.bincount(held.labels, held.weights, minlength=groups)
    return sums
