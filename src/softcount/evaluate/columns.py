"""Contributions of every column to held-out rows, computed once: any set of columns is then a sum, without a fit.

Two uses: a weight for every column of naive Bayes, and the choice of columns by forward selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify.recipes import SharedWeights, fit_weights
from softcount.core.special import log_sum_exp, softmax_rows
from softcount.errors import DataError
from softcount.evaluate.calibrate import SMALLEST
from softcount.evaluate.folds import FoldModels, fold_models
from softcount.fitted.fitted import Fitted
from softcount.fitted.scorers import ColumnWeights, bounded
from softcount.learn.record import Plan, retry_wider
from softcount.run.local import Runner
from softcount.table import Chunk, Table
from softcount.table.chunk import Split
from softcount.table.schema import Key

MOST_SCORED_CELLS = 200_000_000
"""Rows times columns times classes held at once: 1.6 GB."""
FOLDS = 5
PENALTIES = (1.0, 10.0, 100.0)
"""Rows' worth by which weights are drawn to 0."""
MOST_CELLS = 20_000_000
"""Rows times columns times classes; of longer tables weights are learned from a random part."""
ENOUGH = 4000
"""Rows that the penalty is chosen by."""
NOTHING = 0.01
"""Columns of smaller weight are dropped."""


ROWWISE = ("rows", "labels", "weights", "folds", "shares", "parts")


class ColumnScores(Struct, frozen=True, eq=False):
    """Held-out rows with their scores by models of the other folds; the rows are the first axis of all arrays.

    `shares` are log-shares of the classes; `parts` (rows x columns x classes) log-densities up to a constant. The score
    of naive Bayes with any of the columns is `shares` plus the sum of their parts.
    """

    keys: list[Key]
    rows: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    folds: np.ndarray
    shares: np.ndarray
    parts: np.ndarray

    def take(self, some: np.ndarray) -> ColumnScores:
        return replace(self, **{name: getattr(self, name)[some] for name in ROWWISE})

    def losses(self, joint: np.ndarray) -> np.ndarray:
        """Negative log-probability of every row's class, at most -log(1e-15)."""
        with np.errstate(invalid="ignore"):
            lost = log_sum_exp(joint, axis=1) - joint[np.arange(len(self.labels)), self.labels]
        return np.asarray(np.fmin(lost, -np.log(SMALLEST)))


def _hold_out_columns(
    models: FoldModels, table: Table, runner: Runner, part: float = 1.0, limited: bool = False
) -> ColumnScores | None:
    """All labelled rows, or a random part of them; if `limited`, no cell decides alone. None if no row has a label."""
    drawn = Split(2, 1, part) if part < 1 else None
    found: list[ColumnScores] = models.map(table, runner, partial(_score_columns, drawn=drawn, limited=limited))
    if not found:
        return None
    return replace(found[0], **{name: np.concatenate([getattr(each, name) for each in found]) for name in ROWWISE})


def _score_columns(models: FoldModels, chunk: Chunk, drawn: Split | None, limited: bool) -> list[ColumnScores]:
    found, leaves = [], models.model.leaves
    for answers in models.answers(chunk):
        own = list(answers.by_column().values())
        if limited:
            own = [bounded(part, models.model.is_sparse(leaf)) for leaf, part in zip(leaves, own, strict=True)]
        keys, folds = [leaf.key for leaf in leaves], np.full(len(answers.rows), answers.fold)
        shares, each = answers.log_shares, np.stack(own, axis=1)
        held = ColumnScores(keys, answers.rows, answers.labels, answers.weights, folds, shares, each)
        found.append(held if drawn is None else held.take((drawn.of(chunk) == 0)[held.rows - chunk.start]))
    return found


# A weight for every column of naive Bayes, learned by cross-validation.


def fit_column_weights(
    fitted: Fitted, table: Table, plan: Plan, runner: Runner, classes: Sequence[Any] | None = None
) -> Fitted:
    """The model with a weight for every column; a note says which were dropped, or why there are none."""

    def hold_out(table: Table) -> ColumnScores | None:
        models = fold_models(table, plan, runner, Split(FOLDS, 0), classes)
        if models is None:
            return None
        rows = models.counts.rows if table.n_rows is None else table.n_rows
        part = min(1.0, MOST_CELLS / max(1.0, rows * len(models.model.leaves) * models.model.groups))
        return _hold_out_columns(models, table, runner, part, limited=True)

    if fitted.n_groups < 2:
        return fitted.with_notes("columns have no weights: there is only one class.")
    held = retry_wider(table, hold_out, runner)
    if held is None or len(np.unique(held.labels)) < 2:
        return fitted.with_notes("columns have no weights: too few rows have a label.")
    some = held.take(np.unique(np.linspace(0, len(held.labels) - 1, min(ENOUGH, len(held.labels))).astype(int)))
    inside, out = some.take(some.folds >= 2), some.take(some.folds < 2)
    penalty = PENALTIES[0]
    if len(inside.labels) and len(out.labels):
        penalty = PENALTIES[int(np.argmin([_loss(inside, out, penalty) for penalty in PENALTIES]))]
    found = _learn_weights(held, penalty)
    dropped = found.weights < NOTHING
    keys = [leaf.key for leaf, gone in zip(fitted.model.leaves, dropped, strict=True) if gone]
    weights = ColumnWeights(np.where(dropped, 0.0, found.weights), found.bias, penalty)
    fitted = replace(fitted, scorer=weights)
    return fitted.with_notes(f"columns of weight 0: {', '.join(map(repr, keys))}.") if keys else fitted


def _learn_weights(held: ColumnScores, penalty: float) -> SharedWeights:
    return fit_weights(held.parts, held.labels, held.weights, np.zeros(held.parts.shape[1]), penalty)


def _loss(inside: ColumnScores, out: ColumnScores, penalty: float) -> float:
    scores = _learn_weights(inside, penalty).scores(out.parts)
    own = scores[np.arange(len(scores)), out.labels] - softmax_rows(scores)[1]
    return float(-(out.weights @ own))


# Forward selection of columns.


def column_scores(
    table: Table, plan: Plan, runner: Runner, split: Split, classes: Sequence[Any] | None = None
) -> ColumnScores:
    """Contributions of each column for every labelled row, by models of the other folds.

    One pass counts, one scores.
    """

    def score(table: Table) -> ColumnScores:
        models = fold_models(table, plan, runner, split, classes)
        if models is None:
            raise DataError(f"too few rows have a label for {split.folds} folds.")
        rows = int(models.counts.rows if table.n_rows is None else table.n_rows)
        columns, groups = len(models.model.leaves), models.model.groups
        if rows * columns * groups > MOST_SCORED_CELLS:
            raise DataError(
                f"{rows:,} rows x {columns:,} columns x {groups} classes are more than {MOST_SCORED_CELLS:,} figures "
                "to hold. Give a part of the rows."
            )
        held = _hold_out_columns(models, table, runner)
        if held is None:
            raise DataError("no row has a label.")
        return held.take(np.argsort(held.rows, kind="stable"))

    return retry_wider(table, score, runner)


class ForwardStep(Struct, frozen=True):
    """The decrease of the cross-validated log-loss by a column, its standard error, and the log-loss after it.

    A `kept` column was added after those before it; another would come next.
    """

    place: int
    adds: float
    standard_error: float
    log_loss: float
    kept: bool = True


def select_forward(scores: ColumnScores, most: int | None = None) -> list[ForwardStep]:
    """Forward selection of columns by cross-validated log-loss, then the columns that are left.

    It stops if the best gain is below its standard error, or after `most` columns. A column that repeats another adds
    little once that one is in, or does harm: naive Bayes would count it twice.
    """
    weights, mass, parts = scores.weights, scores.weights.sum(), np.ascontiguousarray(scores.parts.swapaxes(0, 1))

    def add(place: int) -> ForwardStep:
        losses = scores.losses(joint + parts[place])
        adds = float(weights @ (own - losses) / mass)
        spread = float(weights @ (own - losses - adds) ** 2 / mass)
        return ForwardStep(place, adds, float(np.sqrt(spread / mass)), float(weights @ losses / mass))

    joint, left = scores.shares.copy(), list(range(len(scores.keys)))
    kept: list[ForwardStep] = []
    own = scores.losses(joint)
    while left:
        tried = sorted(map(add, left), key=lambda step: -step.adds)
        best = tried[0]
        if best.adds <= best.standard_error or len(kept) == most:
            return [*kept, *(replace(step, kept=False) for step in tried)]
        kept.append(best)
        left.remove(best.place)
        joint += parts[best.place]
        own = scores.losses(joint)
    return kept
