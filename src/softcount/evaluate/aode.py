"""Averaged one-dependence stars of a table's rows: learned, joined with others, and tried on rows held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.classify.aode import AodeCounts, AodeLayout, AodeSetting
from softcount.classify.encode import Binning, EncodedRows
from softcount.classify.ensemble import deal, log_posteriors
from softcount.core import remedies
from softcount.errors import DataError
from softcount.evaluate.known_rows import KnownRows, class_places, known_rows
from softcount.evaluate.ranking import ScoredRows
from softcount.fitted.fitted import Fitted
from softcount.run.local import Runner, one_blas_thread
from softcount.sources import wording
from softcount.sources.wording import and_others
from softcount.table import Table
from softcount.table.column_summary import units_of
from softcount.table.schema import Key


class AodePlan(Struct, frozen=True):
    """How stars are learned: their setting, and where numbers are cut if somebody has said so."""

    setting: AodeSetting = field(default_factory=AodeSetting)
    edges: Mapping[Key, np.ndarray] | None = None


def refuse_text(fitted: Fitted) -> None:
    """Refuse what has no cells to make pairs of."""
    texts = fitted.schema.texts
    if texts:
        raise DataError(
            f"{wording.column(texts[0])} is text, and AODE takes categories and numbers. "
            f"Leave it out ({remedies.kind(texts[0], 'ignore')}), or use NaiveBayes."
        )
    if fitted.bag or fitted.schema.stored("bags"):
        raise DataError("AODE takes categories and numbers, not a sparse table. Use NaiveBayes.")


def fit_aode(
    fitted: Fitted, table: Table, runner: Runner, plan: AodePlan, classes: Sequence[Any] | None = None
) -> Fitted:
    """The model with averaged stars that tell its classes, from a table that is open under its schema with labels.

    A long table is read twice: for the cuts, of which a part of the rows decides, and for the counts, of all rows.
    `classes` are those of labels that are given as codes.
    """
    refuse_text(fitted)
    known = known_rows(fitted, table, runner, classes)
    counts = _no_counts(fitted, known, plan)
    with one_blas_thread():
        if len(known.labels) == known.of:
            counts = counts.with_rows(known.rows, known.labels, known.weights)
        else:
            counts = _counted(counts, fitted, table, runner, classes)
    return with_aode(fitted, counts)


def _no_counts(fitted: Fitted, known: KnownRows, plan: AodePlan) -> AodeCounts:
    return AodeCounts.none(star_cuts(fitted, known, plan), fitted.n_groups, plan.setting)


def _counted(
    counts: AodeCounts, fitted: Fitted, table: Table, runner: Runner, classes: Sequence[Any] | None
) -> AodeCounts:
    places = class_places(fitted, table, classes)
    for chunk in table.chunks(runner.map):
        assert chunk.labels is not None
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        labels = np.where(chunk.labels >= 0, places[np.maximum(chunk.labels, 0)], -1)
        kept = np.flatnonzero((labels >= 0) & (weights > 0))
        rows = EncodedRows.of(fitted.schema, [chunk.take(kept)])
        counts = counts.with_rows(rows, labels[kept], weights[kept])
    return counts


def star_cuts(fitted: Fitted, known: KnownRows, plan: AodePlan) -> Binning:
    """Where numbers are cut: as somebody said, or where the classes change; a number left whole in equal parts."""
    layout = AodeLayout.of(fitted.schema, fitted.names)
    if plan.edges is not None:
        return layout.cuts(plan.edges)
    found = Binning.learned(known.rows, known.labels, known.weights, layout.sizes)
    finer = found.finer(known.rows, known.weights)
    edges = [own if len(own) else more for own, more in zip(found.edges, finer.edges, strict=True)]
    return layout.cuts(dict(zip(layout.keys[: layout.measured], edges, strict=False)))


def with_aode(fitted: Fitted, counts: AodeCounts) -> Fitted:
    """The model whose classes are told by these counts, and what is to be said of them."""
    terms = counts.pairs.terms
    classes = "1 class" if len(counts.sizes) == 1 else f"{len(counts.sizes)} classes"
    size = f"{terms.width - 1:,} cells in {classes}, {counts.pairs.counts.nbytes / 1e6:.1f} MB"
    said = [f"{SAID} {len(terms.columns)} columns: {size}."]
    if counts.alone:
        keys = AodeLayout.of(fitted.schema, fitted.names).keys
        names = and_others([keys[column] for column in counts.alone])
        said.append(f"pairs with {names} would take too much memory: these columns depend on the class alone.")
    notes = [note for note in fitted.notes if not note.startswith((SAID, "pairs with "))]
    return replace(fitted, aode=counts, ensemble=counts.ensemble(), notes=[*notes, *said])


SAID = "AODE over"


def merge_aode(left: Fitted, right: Fitted, both: Fitted, sign: float) -> Fitted:
    """The model of both tables, whose own counts are joined already, with both stars, or one less the other."""
    assert left.aode is not None and right.aode is not None
    new = AodeLayout.of(both.schema, both.names)
    parts = []
    for part in (left, right):
        assert part.aode is not None
        old = AodeLayout.of(part.schema, part.names)
        parts.append((part.aode, old))
    _refuse_other_cuts(parts)
    mine, theirs = (counts.moved(old, new) for counts, old in parts)
    shared = {new.keys[column] for (column,) in set(mine.pairs.terms.columns) & set(theirs.pairs.terms.columns)}
    mine, theirs = mine.only(shared, new), theirs.only(shared, new)
    return with_aode(both, mine.joined(theirs, sign))


def _refuse_other_cuts(parts: Sequence[tuple[AodeCounts, AodeLayout]]) -> None:
    (mine, old), (theirs, other) = parts
    edges = dict(zip(other.keys[: other.measured], theirs.cuts.edges, strict=False))
    for key, own in zip(old.keys[: old.measured], mine.cuts.edges, strict=False):
        if key in edges and not np.array_equal(own, edges[key]):
            raise DataError(
                f"{wording.column(key)} has different bins in the two models, so their counts cannot be added. "
                "Fit the second with cuts=first.cuts_, or add its rows by partial_fit."
            )


def cross_validate_aode(
    fitted: Fitted, known: KnownRows, plan: AodePlan, folds: int, share: Any = None
) -> ScoredRows | None:
    """What stars of the other folds say of the rows of each, cuts learned anew; or of a share held out.

    None where there are too few rows to tell.
    """
    if share is None:
        split = deal(known.labels, units_of((known.rows.numbers, known.rows.codes), known.labels)[1], folds)
    else:
        split = np.where(share.of_numbers(known.numbers) == 0, 0, 1)
    logs = np.zeros((len(known.labels), fitted.n_groups))
    tested = range(folds if share is None else 1)
    with one_blas_thread():
        for fold in tested:
            inside, out = known.take(np.flatnonzero(split != fold)), np.flatnonzero(split == fold)
            if not len(inside.labels) or not len(out):
                return None
            counts = _no_counts(fitted, inside, plan)
            ensemble = counts.with_rows(inside.rows, inside.labels, inside.weights).ensemble()
            logs[out] = log_posteriors(ensemble.scores(known.rows.take(out)))
    kept = np.flatnonzero(np.isin(split, list(tested)))
    return ScoredRows(np.exp(logs[kept]), known.labels[kept], known.weights[kept], split[kept])
