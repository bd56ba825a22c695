"""What every column says of rows held out, computed once: any set of columns is then a sum, without a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.evaluate.calibrate import SMALLEST
from softcount.evaluate.folds import FoldModels, fold_models
from softcount.learn.plan import Plan, retyping
from softcount.learn.prepare import on_task
from softcount.numerics.logspace import log_sum_exp
from softcount.records import dataclass
from softcount.run.base import Runner
from softcount.table import Chunk, Table
from softcount.table.chunk import Split
from softcount.table.schema import Key

MOST_CELLS = 200_000_000
"""Rows times columns times classes that are held at once: 1.6 GB."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnScores:
    """Rows held out, each told by a model of the other folds: log-shares of the classes, and what every column adds.

    `parts` is (columns x rows x classes): log-densities up to what no class changes. Naive Bayes of any of the columns
    says `shares` plus the sum of their parts.
    """

    keys: list[Key]
    classes: list[Any]
    shares: np.ndarray
    parts: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    folds: np.ndarray

    def losses(self, joint: np.ndarray) -> np.ndarray:
        """Minus the log-probability of every row's own class; what is impossible costs no more than 1e-15 does."""
        with np.errstate(invalid="ignore"):
            lost = log_sum_exp(joint, axis=1) - joint[np.arange(len(self.labels)), self.labels]
        return np.asarray(np.fmin(lost, -np.log(SMALLEST)))

    def joint(self, columns: Sequence[int] | np.ndarray) -> np.ndarray:
        """(rows x classes) log of share times density by some of the columns."""
        return np.asarray(self.shares + self.parts[np.asarray(columns, dtype=np.int64)].sum(axis=0))


def column_scores(
    table: Table, plan: Plan, runner: Runner, split: Split, classes: Sequence[Any] | None = None
) -> ColumnScores:
    """What each column says of every labelled row, by models of the other folds; in one pass to count, one to score."""
    return retyping(table, lambda t: _column_scores(t, plan, runner, split, classes), runner)


def _column_scores(
    table: Table, plan: Plan, runner: Runner, split: Split, classes: Sequence[Any] | None
) -> ColumnScores:
    models = fold_models(table, plan, runner, split, classes)
    if models is None:
        raise DataError(f"too few rows have a label for {split.folds} folds.")
    rows = int(models.counts.rows if table.n_rows is None else table.n_rows)
    cells = rows * len(models.model.leaves) * models.model.groups
    if cells > MOST_CELLS:
        raise DataError(
            f"{rows:,} rows x {len(models.model.leaves):,} columns x {models.model.groups} classes are more than "
            f"{MOST_CELLS:,} figures to hold. Give a part of the rows."
        )
    work: Callable[[Any], list[Any]] = partial(on_task, partial(_told, models))
    told = [part for found in runner.map(work, table.tasks()) for part in found]
    if not told:
        raise DataError("no row has a label.")
    order = np.argsort(np.concatenate([part[0].rows for part in told]), kind="stable")
    whole = {name: np.concatenate([getattr(part[0], name) for part in told])[order] for name in ("labels", "weights")}
    folds = np.concatenate([np.full(len(part[0].rows), part[0].fold) for part in told])[order]
    shares = np.concatenate([part[0].joint for part in told])[order]
    parts = np.concatenate([part[1] for part in told], axis=1)[:, order]
    keys = [leaf.key for leaf in models.model.leaves]
    return ColumnScores(keys, list(models.settled.classes), shares, parts, folds=folds, **whole)


def _told(models: FoldModels, chunk: Chunk) -> list[Any]:
    """The answers of one chunk with (columns x rows x classes) parts."""
    return [(told, np.stack(list(parts.values()))) for told, parts in models.answers_by_column(chunk)]


@dataclass(frozen=True, slots=True)
class ForwardStep:
    """What a column takes off the log-loss per row of rows held out, with its standard error, and what is left.

    One that is `kept` was taken in after those before it; one that is not would come next.
    """

    place: int
    adds: float
    standard_error: float
    log_loss: float
    kept: bool = True


def forward(scores: ColumnScores, most: int | None = None) -> list[ForwardStep]:
    """Columns one by one, each the one that takes most off the log-loss of rows held out, then those that are left.

    It goes on while that is more than a standard error, for at most so many. A column that repeats another adds little
    once that one is in, or does harm: naive Bayes would count it twice.
    """
    joint, left = scores.shares.copy(), list(range(len(scores.keys)))
    kept: list[ForwardStep] = []
    own = scores.losses(joint)
    while left:
        tried = sorted((_step(scores, joint, own, place) for place in left), key=lambda step: -step.adds)
        best = tried[0]
        if best.adds <= best.standard_error or len(kept) == most:
            return [*kept, *(replace(step, kept=False) for step in tried)]
        kept.append(best)
        left.remove(best.place)
        joint += scores.parts[best.place]
        own = scores.losses(joint)
    return kept


def _step(scores: ColumnScores, joint: np.ndarray, own: np.ndarray, place: int) -> ForwardStep:
    """What one column would take off."""
    losses, weights = scores.losses(joint + scores.parts[place]), scores.weights
    mass = weights.sum()
    adds = float(weights @ (own - losses) / mass)
    spread = float(weights @ (own - losses - adds) ** 2 / mass)
    return ForwardStep(place, adds, float(np.sqrt(spread / mass)), float(weights @ losses / mass))
