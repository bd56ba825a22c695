"""Which models predict the classes, chosen by held-out rows: naive Bayes, or an ensemble that does better."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify.encode import GLANCED_AT, column_keys, level_sizes, measured_count
from softcount.classify.ensemble import SMALLEST, HeldScores, learned_pool, log_posteriors, times_written
from softcount.classify.members import Training
from softcount.evaluate.known_rows import KnownRows
from softcount.evaluate.ranking import ScoredRows
from softcount.fitted.fitted import Fitted
from softcount.learn.record import FitRecord
from softcount.run.local import Runner, Threads
from softcount.table.chunk import Split
from softcount.table.column_summary import find_repeats, row_keys

FEW_ROWS = 10
"""Labelled rows below which the textbook's model is taken without asking."""
MOST_NOTES = 20
"""Columns left out that are named."""
FEW_CELLS = 20_000
"""Cells and words up to which one thread is quicker than two, which wait for each other."""
WEIGHTED = "Held-out figures use the row weights: they hold for new rows that are weighted in the same way."
TEXTBOOK = "naive Bayes as the textbook has it"


class HowDecided(Struct, frozen=True):
    """How an ensemble is chosen: seconds after which nothing new is tried, and folds (None: by the table's size)."""

    budget: float | None = None
    folds: int | None = None
    share: Split | None = None
    """Rows that are held out of everything and predicted in the end, in place of the folds that decide."""


def _no_choice(fitted: Fitted, labelled: int | None = None) -> str | None:
    """Why there is nothing to choose, if so."""
    if fitted.n_groups < 2:
        return f"classes are told by {TEXTBOOK}: there is one class."
    if labelled is not None and labelled < FEW_ROWS:
        return f"classes are told by {TEXTBOOK}: fewer than {FEW_ROWS} rows have a label."
    return None


def choose_ensemble(
    fitted: Fitted, labelled_rows: Callable[[], KnownRows], runner: Runner, how: HowDecided
) -> tuple[Fitted, ScoredRows | None]:
    """The model with the ensemble that predicts held-out rows best, and what it says of them.

    The notes say what was left out. The rows are not read if there is nothing to choose.
    """
    if (why := _no_choice(fitted)) is not None:
        return with_note(fitted, why), None
    given = labelled_rows()
    if (why := _no_choice(fitted, _count_labelled(given))) is not None:
        return with_note(fitted, why), None
    copies = given.rows.copies()
    if copies:
        given = replace(given, rows=given.rows.without(copies))
    with Threads(1) as alone:
        worker = alone if given.rows.cells <= FEW_CELLS else runner
        scored = None if how.share is None else _score_share(fitted, given, worker, how)
        pool, held = learned_pool(_training(fitted, given), worker, how.budget, how.folds)
    said = [*_left_out(copies, column_keys(fitted.schema)), *_about_rows(held, given.weights)]
    if len(given.labels) < given.of:
        said.append(f"what tells the classes was learned from {len(given.labels):,} of {given.of:,} rows.")
    if (held.logs.argmax(axis=1) == held.labels).all():
        said.append("no row held out is told wrongly, so that how sure to be of other rows is a guess.")
    record = replace(fitted.record or FitRecord(), gains=held.gains)
    found = replace(fitted, pool=pool, notes=[*fitted.notes, *said], record=record)
    return found, _as_scored(held) if how.share is None else scored


def _count_labelled(given: KnownRows) -> int:
    """How many rows have a label, copies of a row counted once if there are few distinct rows."""
    total = int(times_written(given.weights).sum())
    blocks, bags = (given.rows.numbers, given.rows.codes), given.rows.bags
    some = row_keys([block[:GLANCED_AT] for block in blocks], [bag[:GLANCED_AT] for bag in bags])
    if len(np.unique(some)) >= FEW_ROWS:
        return total
    counts = given.weights if (given.weights == np.round(given.weights)).all() else np.ones(len(given.labels))
    found = find_repeats(row_keys(blocks, bags), given.labels, counts, blocks, bool(bags))
    return found.rows - found.repeats if found.copies else total


def _about_rows(held: HeldScores, weights: np.ndarray) -> list[str]:
    """Notes on repeated rows, and on weights that are not numbers of independent rows."""
    assert held.repeats is not None
    notes = [note for note in [held.repeats.describe()] if note is not None]
    counts = not held.repeats.copies and np.array_equal(weights, np.round(weights))
    if not counts and np.ptp(weights) > 0:
        notes.append(WEIGHTED)
    return notes


def _training(fitted: Fitted, given: KnownRows) -> Training:
    schema = fitted.schema
    sizes, measured = level_sizes(schema), measured_count(schema)
    return Training(given.rows, given.labels, given.weights, fitted.n_groups, sizes, measured)


def _score_share(fitted: Fitted, given: KnownRows, runner: Runner, how: HowDecided) -> ScoredRows | None:
    """What a pool of the other rows says of those held out; None where there are too few of either."""
    assert how.share is not None
    out = how.share.of_numbers(given.numbers) == 0
    inside, tested = given.take(np.flatnonzero(~out)), given.take(np.flatnonzero(out))
    if len(inside.labels) < FEW_ROWS or not len(tested.labels):
        return None
    pool, _ = learned_pool(_training(fitted, inside), runner, how.budget, how.folds)
    logs = log_posteriors(pool.scores(tested.rows))
    return _as_scored(HeldScores(logs, tested.labels, tested.weights, np.zeros(len(logs), dtype=np.int64)))


def _as_scored(held: HeldScores) -> ScoredRows:
    return ScoredRows(np.exp(held.logs), held.labels, held.weights, held.folds)


def _left_out(copies: dict[int, int], keys: Sequence[object]) -> list[str]:
    said = [f"column {keys[copy]!r} repeats {keys[lead]!r} and is left out." for copy, lead in copies.items()]
    if len(said) > MOST_NOTES:
        said = [*said[:MOST_NOTES], f"so do {len(said) - MOST_NOTES} columns more."]
    return said


def with_note(fitted: Fitted, note: str) -> Fitted:
    """The model with one more note."""
    return replace(fitted, notes=[*fitted.notes, note])


def keep_better(fitted: Fitted, naive_bayes_loss: float | None, held: ScoredRows | None = None) -> Fitted:
    """Predict by the ensemble, or by naive Bayes alone if text has a lower cross-validated log-loss under it.

    Naive Bayes also learns from rows without a label, which helps if few have one. The note has the spread of the
    log-loss over the folds of the rows `held` out.
    """
    assert fitted.pool is not None
    pool = replace(fitted.pool, plain=float("nan") if naive_bayes_loss is None else naive_bayes_loss)
    if fitted.texts and pool.plain <= pool.log_loss:
        line = f"classes are told by {TEXTBOOK}: log-loss {pool.plain:.4g} on rows held out, where"
        return with_note(replace(fitted, pool=None), f"{line} {' and '.join(pool.names)} have {pool.log_loss:.4g}.")
    spread = "" if held is None else _spread(held)
    parts = sorted(zip(pool.names, pool.weights.tolist(), strict=True), key=lambda part: -part[1])
    said = ", ".join(f"{name} ({weight:.2f})" for name, weight in parts)
    gain = "" if np.isnan(pool.plain) else f", where {TEXTBOOK} has {pool.plain:.4g}"
    line = f"classes are told by {said}: log-loss {pool.log_loss:.4g} on rows held out{spread}{gain}."
    return with_note(replace(fitted, pool=pool), line)


def _spread(held: ScoredRows) -> str:
    """The standard deviation of the folds' log-losses in words; nothing for a single fold."""
    own = -np.log(np.maximum(held.proba[np.arange(len(held.labels)), held.labels], SMALLEST))
    folds = [held.folds == fold for fold in np.unique(held.folds)]
    losses = [np.average(own[rows], weights=held.weights[rows]) for rows in folds]
    return f" (± {np.std(losses, ddof=1):.2g} over {len(losses)} folds)" if len(losses) > 1 else ""
