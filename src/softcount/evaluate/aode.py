"""AODE of a table's rows: fitted, merged, and cross-validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.classify.aode import AodeCounts, AodeSetting, bin_columns
from softcount.classify.encode import Binning, EncodedColumns
from softcount.classify.ensemble import deal_folds, log_posteriors
from softcount.core import remedies
from softcount.errors import DataError
from softcount.evaluate.folds import EVERY_ROW, KnownRows, class_places, draw_known_rows, draw_rows
from softcount.evaluate.ranking import ScoredRows
from softcount.fitted.ensemble_scorers import AodeScorer
from softcount.fitted.fitted import Fitted
from softcount.run.local import Runner, one_blas_thread
from softcount.sources import wording
from softcount.sources.wording import and_others
from softcount.table import Table
from softcount.table.column_summary import units_of
from softcount.table.schema import Key


class AodePlan(Struct, frozen=True):
    """The setting of AODE, and given bin edges."""

    setting: AodeSetting = field(default_factory=AodeSetting)
    edges: Mapping[Key, np.ndarray] | None = None


def fit_aode(
    fitted: Fitted, table: Table, runner: Runner, plan: AodePlan, classes: Sequence[Any] | None = None
) -> Fitted:
    """The model with AODE for predictions, from a table open under its schema with labels.

    A long table is read twice: for the bins, which a part of the rows decides, and for the counts. `classes` are those
    of coded labels.
    """
    if texts := fitted.schema.texts:
        raise DataError(
            f"{wording.column(texts[0])} is text, and AODE takes categories and numbers. "
            f"Leave it out ({remedies.kind(texts[0], 'ignore')}), or use NaiveBayes."
        )
    if fitted.bag or fitted.schema.stored("bags"):
        raise DataError("AODE takes categories and numbers, not a sparse table. Use NaiveBayes.")
    known = draw_known_rows(fitted, table, runner, classes)
    counts = AodeCounts.none(_aode_bins(fitted, known, plan), fitted.n_groups, plan.setting)
    with one_blas_thread():
        if len(known.labels) == known.of:
            return with_aode(fitted, counts.with_rows(known.rows, known.labels, known.weights))
        places = class_places(fitted, table.settle(classes=classes))
        for chunk in table.chunks(runner.map):
            _, part, _ = draw_rows(fitted.schema, EVERY_ROW, chunk)
            labels = places[part.labels]
            part = part.take(np.flatnonzero(labels >= 0))
            counts = counts.with_rows(part.rows, labels[labels >= 0], part.weights)
    return with_aode(fitted, counts)


def _aode_bins(fitted: Fitted, known: KnownRows, plan: AodePlan) -> Binning:
    """Bins as given, or where the class shares change; a number that no edge divides gets bins of equal weight."""
    columns = EncodedColumns.of(fitted.schema)
    if plan.edges is not None:
        return bin_columns(columns, plan.edges)
    found = Binning.learn(known.rows, known.labels, known.weights, columns.sizes)
    finer = found.refine(known.rows, known.weights)
    edges = [own if len(own) else more for own, more in zip(found.edges, finer.edges, strict=True)]
    return bin_columns(columns, dict(zip(columns.keys[: columns.measured], edges, strict=False)))


def with_aode(fitted: Fitted, counts: AodeCounts) -> Fitted:
    """The model that predicts with these counts, and notes on their size."""
    terms = counts.pairs.terms
    classes = "1 class" if len(counts.sizes) == 1 else f"{len(counts.sizes)} classes"
    size = f"{terms.width - 1:,} cells in {classes}, {counts.pairs.counts.nbytes / 1e6:.1f} MB"
    lines = [f"{NOTE} {len(terms.columns)} columns: {size}."]
    if counts.unpaired:
        keys = EncodedColumns.of(fitted.schema).keys
        names = and_others([keys[column] for column in counts.unpaired])
        lines.append(f"pairs with {names} would take too much memory: these columns depend on the class alone.")
    notes = [note for note in fitted.notes if not note.startswith((NOTE, "pairs with "))]
    return replace(fitted, scorer=AodeScorer(counts), notes=[*notes, *lines])


NOTE = "AODE over"


def aode_counts(fitted: Fitted) -> AodeCounts:
    if not isinstance(fitted.scorer, AodeScorer):
        raise DataError("AODE can only be merged with AODE.")
    return fitted.scorer.counts


def rebase_aode(fitted: Fitted, new: Fitted) -> AodeCounts:
    """The counts of a model with room for the columns and classes of a model that has all of these."""
    groups = np.array([new.names.index(name) for name in fitted.names])
    old_columns, new_columns = EncodedColumns.of(fitted.schema), EncodedColumns.of(new.schema)
    return aode_counts(fitted).rebase(old_columns, new_columns, groups, new.n_groups)


def merge_aode(left: Fitted, right: Fitted, both: Fitted, sign: float) -> Fitted:
    """The merged model with the counts of both added, or one subtracted."""
    edges, others = (
        dict(zip(columns.keys[: columns.measured], aode_counts(part).cuts.edges, strict=False))
        for part, columns in ((part, EncodedColumns.of(part.schema)) for part in (left, right))
    )
    for key in edges.keys() & others.keys():
        if not np.array_equal(edges[key], others[key]):
            raise DataError(
                f"{wording.column(key)} has different bins in the two models, so their counts cannot be added. "
                "Fit the second with cuts=first.cuts_, or add its rows by partial_fit."
            )
    mine, theirs, columns = rebase_aode(left, both), rebase_aode(right, both), EncodedColumns.of(both.schema)
    shared = {columns.keys[column] for (column,) in set(mine.pairs.terms.columns) & set(theirs.pairs.terms.columns)}
    return with_aode(both, mine.select_pairs(shared, columns).add(theirs.select_pairs(shared, columns), sign))


def cross_validate_aode(
    fitted: Fitted, known: KnownRows, plan: AodePlan, folds: int, share: Any = None
) -> ScoredRows | None:
    """Predictions of AODE of the other folds, bins learned anew; or for a held-out share.

    None if there are too few rows.
    """
    if share is None:
        split = deal_folds(known.labels, units_of((known.rows.numbers, known.rows.codes), known.labels)[1], folds)
    else:
        split = np.where(share.of_numbers(known.numbers) == 0, 0, 1)
    logs = np.zeros((len(known.labels), fitted.n_groups))
    tested = range(folds if share is None else 1)
    with one_blas_thread():
        for fold in tested:
            inside, out = known.take(np.flatnonzero(split != fold)), np.flatnonzero(split == fold)
            if not len(inside.labels) or not len(out):
                return None
            counts = AodeCounts.none(_aode_bins(fitted, inside, plan), fitted.n_groups, plan.setting)
            ensemble = counts.with_rows(inside.rows, inside.labels, inside.weights).ensemble()
            logs[out] = log_posteriors(ensemble.scores(known.rows.take(out)))
    kept = np.flatnonzero(np.isin(split, list(tested)))
    return ScoredRows(np.exp(logs[kept]), known.labels[kept], known.weights[kept], split[kept])
