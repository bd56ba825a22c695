"""What tells the classes, chosen by rows held out: the textbook's model, or a pool of what does better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softcount.classify.encoded_rows import EncodedRows, column_keys, level_sizes
from softcount.classify.pool import Pool, learned_pool
from softcount.classify.training import Training
from softcount.evaluate.ranking import ScoredRows
from softcount.fitted.fitted_model import Fitted
from softcount.run.base import Runner
from softcount.table import Table

FEW_ROWS = 30
"""Labelled rows below which the textbook's model is taken without asking."""
MOST_ROWS = 100_000
"""Rows that the pool is learned from at most; the counts are of all rows."""
MOST_NOTES = 20
"""Columns left out that are named."""
TEXTBOOK = "naive Bayes as the textbook has it"


def no_pool(fitted: Fitted, labelled: int | None = None) -> str | None:
    """Why there is nothing to decide, if there is not."""
    if fitted.n_groups < 2:
        return f"classes are told by {TEXTBOOK}: there is one class."
    if fitted.bag or fitted.schema.texts:
        return f"classes are told by {TEXTBOOK}: there is text, or a sparse table."
    if labelled is not None and labelled < FEW_ROWS:
        return f"classes are told by {TEXTBOOK}: fewer than {FEW_ROWS} rows have a label."
    return None


def decided(
    fitted: Fitted, rows: EncodedRows, labels: np.ndarray, weights: np.ndarray, runner: Runner, budget: float | None
) -> tuple[Fitted, ScoredRows | None]:
    """The model with what tells its classes best, and how rows held out were told; a note says what was chosen.

    `labels` are places among the classes, below zero where a row has none.
    """
    kept = np.flatnonzero((labels >= 0) & (weights > 0))
    why = no_pool(fitted, len(kept))
    if why is not None:
        return noted(fitted, why), None
    part = kept if len(kept) <= MOST_ROWS else kept[np.linspace(0, len(kept) - 1, MOST_ROWS).astype(int)]
    copies = rows.copies()
    shown = rows.without(copies) if copies else rows
    training = Training(shown.take(part), labels[part], weights[part], fitted.n_groups, level_sizes(fitted.schema))
    pool, held = learned_pool(training, runner, budget)
    keys = column_keys(fitted.schema)
    said = [f"column {keys[copy]!r} repeats {keys[lead]!r} and is left out." for copy, lead in copies.items()]
    if len(said) > MOST_NOTES:
        said = [*said[:MOST_NOTES], f"so do {len(said) - MOST_NOTES} columns more."]
    if len(part) < len(kept):
        said.append(f"what tells the classes was learned from {len(part):,} of {len(kept):,} rows.")
    scored = ScoredRows(np.exp(held.logs), held.labels, held.weights, held.folds)
    return replace(fitted, pool=pool, notes=[*fitted.notes, *said]), scored


def decided_for(fitted: Fitted, table: Table, runner: Runner) -> tuple[Fitted, ScoredRows | None]:
    """The same for the rows of a table that is open under the model's schema, with its target."""
    if (why := no_pool(fitted)) is not None:
        return noted(fitted, why), None
    chunks = list(table.chunks(runner.map))
    settled = table.settle()
    labels = np.concatenate([settled.recoded(chunk).labels for chunk in chunks])
    weights = np.concatenate([np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights for chunk in chunks])
    places = {name: place for place, name in enumerate(fitted.names)}
    order = np.array([places.get(name, -1) for name in settled.classes], dtype=np.int64)
    labels = np.where(labels >= 0, order[np.maximum(labels, 0)], -1)
    return decided(fitted, EncodedRows.of(fitted.schema, chunks), labels, weights, runner, None)


def noted(fitted: Fitted, note: str) -> Fitted:
    """The model with one more note."""
    return replace(fitted, notes=[*fitted.notes, note])


def chosen_line(pool: Pool) -> str:
    """What was chosen, and what it gains over the textbook's model."""
    parts = sorted(zip(pool.names, pool.weights.tolist(), strict=True), key=lambda part: -part[1])
    said = ", ".join(f"{name} ({weight:.2f})" for name, weight in parts)
    gain = f"log-loss {pool.log_loss:.4g} on rows held out, where {TEXTBOOK} has {pool.plain:.4g}"
    return f"classes are told by {said}: {gain}."
