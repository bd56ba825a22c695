"""How well naive Bayes of every neighbourhood of a grid tells the classes, by one product for all of them.

What every column says of rows held out is computed once; a neighbourhood's answer is the sum over its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.evaluate.folds import FoldModels, fold_models
from softcount.learn.plan import Plan, retyping
from softcount.learn.prepare import on_task
from softcount.numerics.late_scipy import sparse
from softcount.run.base import Runner, total
from softcount.table import Chunk, Table
from softcount.table.chunk import Split

MOST_CELLS = 16_000_000
"""Columns times rows times classes that are summed at once."""


def adjacency(shape: Sequence[int], radius: int = 1) -> Any:
    """(places x places) which places of a grid are at most `radius` steps from which along every axis.

    A cube of 27 in the middle of a volume, less at its edges.

    >>> adjacency((2, 3)).toarray().astype(int)[0].tolist()
    [1, 1, 0, 1, 1, 0]
    """
    axes = [_band(length, radius) for length in shape]
    return sparse.csr_matrix(reduce(sparse.kron, axes))


def _band(length: int, radius: int) -> Any:
    far = min(radius, length - 1)
    return sparse.diags([np.ones(length - abs(k)) for k in range(-far, far + 1)], list(range(-far, far + 1)))


def accuracies(
    table: Table, plan: Plan, runner: Runner, split: Split, near: Any, classes: Sequence[Any] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """For every place the weight of rows told right by the columns near it, and the weight of the rows of each class.

    `near` is (places x columns of the table). Every row is told by counts of the other folds.
    """
    found = retyping(table, lambda t: _right(t, plan, runner, split, near, classes), runner)
    return found[:-1, 0], np.asarray(found[-1])


def _right(
    table: Table, plan: Plan, runner: Runner, split: Split, near: Any, classes: Sequence[Any] | None
) -> np.ndarray:
    models = fold_models(table, plan, runner, split, classes)
    if models is None:
        raise DataError(f"too few rows have a label for {split.folds} folds.")
    places = {spec.key: place for place, spec in enumerate(table.schema.fields)}
    blocks = [leaf.key for leaf in models.model.leaves if len(leaf.columns) != 1]
    if blocks:
        raise DataError(f"a grid has one column in every place, and {blocks[0]!r} is a block of them.")
    used = near[:, [places[leaf.key] for leaf in models.model.leaves]]
    sums = total(runner, partial(on_task, partial(_chunk_right, models, used)), table.tasks())
    if sums is None:
        raise DataError("the table has no rows.")
    return np.asarray(sums)


def _chunk_right(models: FoldModels, near: Any, chunk: Chunk) -> np.ndarray:
    """(places + 1 x classes): right answers in the first column; in the last row the weight of each class."""
    groups = models.model.groups
    sums = np.zeros((near.shape[0] + 1, groups))
    for told, parts in models.answers_by_column(chunk):
        columns = np.stack(list(parts.values()))
        at_once = max(1, MOST_CELLS // max(1, near.shape[0] * groups))
        for a in range(0, len(told.rows), at_once):
            rows = slice(a, a + at_once)
            piece = columns[:, rows]
            joint = (near @ piece.reshape(len(piece), -1)).reshape(near.shape[0], -1, groups) + told.joint[rows]
            right = joint.argmax(axis=2) == told.labels[rows]
            sums[:-1, 0] += right @ told.weights[rows]
        sums[-1] += np.bincount(told.labels, told.weights, minlength=groups)
    return sums
