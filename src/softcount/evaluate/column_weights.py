"""A weight for every column of naive Bayes, learned by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify.recipes import SharedWeights, fit_weights
from softcount.core.special import softmax_rows
from softcount.evaluate.folds import FoldModels, fold_models
from softcount.fitted.fitted import ColumnWeights, Fitted
from softcount.learn.prepare import on_task
from softcount.learn.settings import Plan, retyping
from softcount.models.star import bounded
from softcount.run.local import Runner
from softcount.table import Chunk, Table
from softcount.table.chunk import Split

FOLDS = 5
PENALTIES = (1.0, 10.0, 100.0)
"""Rows' worth by which weights are drawn to 0."""
MOST_CELLS = 20_000_000
"""Rows times columns times classes; of longer tables weights are learned from a random part."""
ENOUGH = 4000
"""Rows that the penalty is chosen by."""
NOTHING = 0.01
"""Columns of smaller weight are dropped."""


class HeldParts(Struct, frozen=True, eq=False):
    """Labelled rows, and the bounded contributions of every leaf to each class by the model of the other folds."""

    rows: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    folds: np.ndarray
    parts: np.ndarray  # (rows x leaves x groups)

    def kept(self, rows: np.ndarray) -> HeldParts:
        return HeldParts(*(getattr(self, part)[rows] for part in self.__struct_fields__))

    @classmethod
    def joined(cls, parts: Sequence[HeldParts]) -> HeldParts:
        return cls(*(np.concatenate([getattr(x, part) for x in parts]) for part in cls.__struct_fields__))


def weighed(fitted: Fitted, table: Table, plan: Plan, runner: Runner, classes: Sequence[Any] | None = None) -> Fitted:
    """The model with a weight for every column; a note says which were dropped, or why there are none."""
    if fitted.n_groups < 2:
        return fitted.with_notes("columns have no weights: there is only one class.")
    held = retyping(table, lambda t: _held(t, plan, runner, classes), runner)
    if held is None or len(np.unique(held.labels)) < 2:
        return fitted.with_notes("columns have no weights: too few rows have a label.")
    some = np.unique(np.linspace(0, len(held.labels) - 1, min(ENOUGH, len(held.labels))).astype(int))
    inside, out = some[held.folds[some] >= 2], some[held.folds[some] < 2]
    if not len(inside) or not len(out):
        penalty = PENALTIES[0]
    else:
        penalty = PENALTIES[int(np.argmin([_loss(held, inside, out, penalty) for penalty in PENALTIES]))]
    found = _learned(held, np.arange(len(held.labels)), penalty)
    dropped = found.weights < NOTHING
    keys = [leaf.key for leaf, gone in zip(fitted.model.leaves, dropped, strict=True) if gone]
    weights = ColumnWeights(np.where(dropped, 0.0, found.weights), found.bias, penalty)
    fitted = replace(fitted, weights=weights)
    return fitted.with_notes(f"columns of weight 0: {', '.join(map(repr, keys))}.") if keys else fitted


def _held(table: Table, plan: Plan, runner: Runner, classes: Sequence[Any] | None) -> HeldParts | None:
    models = fold_models(table, plan, runner, Split(FOLDS, 0), classes)
    if models is None:
        return None
    rows = models.counts.rows if table.n_rows is None else table.n_rows
    part = min(1.0, MOST_CELLS / max(1.0, rows * len(models.model.leaves) * models.model.groups))
    drawn = Split(2, 1, part) if part < 1 else None
    found = [x for parts in runner.map(partial(on_task, partial(_one, models, drawn)), table.tasks()) for x in parts]
    return HeldParts.joined(found) if found else None


def _one(models: FoldModels, drawn: Split | None, chunk: Chunk) -> list[HeldParts]:
    kept = None if drawn is None else drawn.of(chunk) == 0
    found = [
        HeldParts(
            told.rows, told.labels, told.weights, np.full(len(told.rows), told.fold),
            np.stack([bounded(parts[leaf.key], models.model.is_sparse(leaf)) for leaf in models.model.leaves], axis=1),
        )
        for told, parts in models.answers_by_column(chunk)
    ]  # fmt: skip
    return found if kept is None else [part.kept(kept[part.rows - chunk.start]) for part in found]


def _learned(held: HeldParts, rows: np.ndarray, penalty: float) -> SharedWeights:
    parts = held.parts[rows]
    return fit_weights(parts, held.labels[rows], held.weights[rows], np.zeros(parts.shape[1]), penalty)


def _loss(held: HeldParts, inside: np.ndarray, out: np.ndarray, penalty: float) -> float:
    scores = _learned(held, inside, penalty).scores(held.parts[out])
    own = scores[np.arange(len(out)), held.labels[out]] - softmax_rows(scores)[1]
    return float(-(held.weights[out] @ own))
