"""Cross-validation by adding counts: a model for every fold from the counts of the others.

Every row is in one fold by its number alone, and a row of weight n is n rows. One pass counts each fold separately; the
model for a fold is the sum of the others, so k folds cost two passes and no refitting, or one if the fit's own pass
counted them (`FoldCounter`). If the fit takes EM (rows without a label, missing values in a block), each fold takes it
too.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial, reduce
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify.encode import EncodedColumns, EncodedRows
from softcount.core.counts import ROOT, Counts, Twofold
from softcount.core.lazy import sparse
from softcount.core.special import mixed
from softcount.families.text import Bags
from softcount.fitted.fitted import Fitted
from softcount.learn.known_classes import (
    LABELLED_FLOOR,
    Tallied,
    add_older,
    count_once,
    describe_hidden,
    estimate_params,
    imagine_classes,
    on_task,
    run_labelled_em,
)
from softcount.learn.prepare import recode_chunks
from softcount.learn.record import Plan, count_cells
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined, Params
from softcount.run.local import HeldRows, Rows, Runner
from softcount.table import Chunk, Settled, Table
from softcount.table.chunk import Folded, Split
from softcount.table.column_summary import MOST_COMPARED, deal_repeats
from softcount.table.schema import Key, Schema

KnownWords = dict[int, np.ndarray]
"""By the slot of a text column, which columns of its bag a model knows."""
FoldModel = tuple[Params, KnownWords]


class FoldAnswers(Struct, frozen=True, dict=True):
    """Labelled rows of one fold, and what the model of the others says of them.

    `counted` is how many rows they stand for, `ready` are the prepared rows and `params` the compiled parameters.
    """

    fold: int
    rows: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    counted: int
    model: ClassModel
    params: list[Any]
    ready: Any

    @cached_property
    def joint(self) -> np.ndarray:
        """(rows x classes) log of share times density."""
        return self.model.score(self.ready, self.params, slice(0, len(self.rows)))

    @property
    def log_shares(self) -> np.ndarray:
        """(rows x classes) logarithms of the shares, to which `by_column` adds."""
        return np.broadcast_to(self.params[0][0], (len(self.rows), self.model.groups))

    def by_column(self) -> dict[Key, np.ndarray]:
        return self.model.score_parts(self.params, self.ready)


class FoldModels(Struct, frozen=True):
    """A compiled model for every tested fold, learned from the rows of the others; `counts` are by fold.

    With each model come the words it knows, by text column: unknown words are not evidence. `rows` are those of the
    table in their settled codes, if they are on other machines.
    """

    model: ClassModel
    models: list[tuple[list[Any], KnownWords]]
    settled: Settled
    split: Split
    counts: Counts
    rows: Rows | None = None

    def map(self, table: Table, runner: Runner, work: Callable[[FoldModels, Chunk], list[Any]]) -> list[Any]:
        """The results of `work` for every chunk of a table, end to end."""
        each = runner.map(partial(on_task, partial(work, self)), table.tasks())
        return [result for results in each for result in results]

    def answers(self, chunk: Chunk) -> Iterator[FoldAnswers]:
        """Answers of each tested fold's model for its labelled rows in this chunk."""
        folded = self.split.folded(self.settled.recoded(chunk))
        chunk = folded.chunk
        assert chunk.labels is not None
        for fold, (params, seen) in zip(self.split.tested, self.models, strict=True):
            rows = np.flatnonzero((folded.folds == fold) & (chunk.labels >= 0))
            if len(rows):
                part = chunk.take(rows)
                for slot, known in seen.items():
                    bag = part.bags[slot]
                    bag.data[~known[bag.indices]] = 0.0
                    bag.eliminate_zeros()
                ready = self.model.prepare(part, base=False)
                weights = part.row_weights
                counted = round(float(weights.sum())) if self.split.counts_weights else len(rows)
                numbers = folded.rows[rows] + chunk.start
                yield FoldAnswers(fold, numbers, chunk.labels[rows], weights, counted, self.model, params, ready)


def fold_models(
    table: Table, plan: Plan, runner: Runner, split: Split, classes: Sequence[Any] | None = None
) -> FoldModels | None:
    """The models of all folds; None if one would have no rows to learn from. `classes` are those of coded labels.

    If the rows are on other machines, one pass counts all folds, each row in one fold whatever its weight, and EM is
    not possible: None.
    """
    plan, here = plan.for_labels(table), runner.keeps_rows
    if here and split.repeats is None and split.units is None:
        split = group_repeats(split, table, runner)
    tally, settled, counted, rows = _tally_folds(table, plan, runner, split, classes)
    if not tally.counts.finite and here:
        table.within_reach(table.chunks(runner.map))
    groups = len(settled.classes)
    by_fold = tally.counts[ROOT].reshape(groups, split.folds).sum(axis=0)
    if any(by_fold.sum() - by_fold[fold] <= 0 for fold in split.tested):
        return None
    weight = plan.unlabelled_weight or 0.0
    model = plan.declared.model(settled.schema, groups, count_cells(table), LABELLED_FLOOR, table.bag_width, weight)
    hidden = describe_hidden(table, model, plan)
    if hidden and rows is not None and not here:
        rows.close()
        return None
    if hidden:
        folded = [split.folded(chunk) for chunk in recode_chunks(table, settled, runner).here]
        models = (_complete_fold(model, folded, fold, plan, runner) for fold in split.tested)
    else:
        parts = _sum_other_folds(tally, split, model, counted)
        models = (
            _estimate_seen(model, *add_older(model, part, imagine_classes(model, part, plan), plan, settled.classes))
            for part in parts
        )
    compiled = [(model.compile(params, contrast=True), seen) for params, seen in models]
    return FoldModels(model, compiled, settled, split, tally.counts, None if here else rows)


def group_repeats(split: Split, table: Table, runner: Runner) -> Split:
    """The split with copies of a row in one fold, or with whole weights as independent repetitions of a row.

    Up to MOST_COMPARED rows decide. Longer tables without weights are not looked at.
    """
    if not table.has_weights and (table.n_rows is None or table.n_rows > MOST_COMPARED):
        return split
    chunks: list[Chunk] = []
    for chunk in table.chunks(runner.map):
        if chunk.start + chunk.n_rows > MOST_COMPARED and chunks:
            break
        chunks.append(chunk)
    return deal_repeats(split, chunks, table.weights, sum(chunk.n_rows for chunk in chunks) == table.n_rows)


class _FoldCounts(Struct, frozen=True):
    """Counts of every class in every fold: group (class, fold) is number class * folds + fold.

    Words are counted separately, by the key of their leaf.
    """

    counts: Counts
    words: dict[Key, FoldWords]

    def __add__(self, other: _FoldCounts) -> _FoldCounts:
        return _FoldCounts(
            self.counts + other.counts, {key: part + other.words[key] for key, part in self.words.items()}
        )


def _count_folds(model: ClassModel, chunk: Chunk, split: Split) -> _FoldCounts:
    folded = split.folded(chunk)
    chunk = folded.chunk
    assert chunk.labels is not None
    groups = np.where(chunk.labels < 0, -1, chunk.labels * split.folds + folded.folds).astype(np.int32)
    rest = _without_bags(model)
    ready = rest.prepare(replace(chunk, labels=groups), base=False)
    words = {
        x.key: FoldWords.of(x.family.features(model.column(x, chunk), x.setting), groups, chunk.weights)
        for x in [leaf for leaf in model.leaves if model.is_sparse(leaf)]
    }
    return _FoldCounts(rest.tally(ready), words)


class FoldCounter:
    """Counts folds in the pass of the fit: given to the plan, a long file is read once less."""

    def __init__(self, split: Split) -> None:
        self.split, self.counting = split, partial(_count_folds, split=split)
        self.found: tuple[Table, Tallied[_FoldCounts]] | None = None

    def of(self, table: Table, split: Split) -> Tallied[_FoldCounts] | None:
        """The counts, if they are of this very table in the folds of this split."""
        known = self.found is not None and self.found[0] is table and self.split == split
        return self.found[1] if self.found is not None and known else None


def _tally_folds(
    table: Table, plan: Plan, runner: Runner, split: Split, classes: Sequence[Any] | None
) -> tuple[_FoldCounts, Settled, Settled, Rows | None]:
    """The counts, how categories and classes were settled, what is left of that for words, and the kept rows."""
    found = None if plan.fold_counter is None else plan.fold_counter.of(table, split)
    if found is None:
        found = count_once(table, plan, runner, classes, partial(_count_folds, split=split))
    settled = found.settled
    in_order = replace(settled, remap={}, label_remap=None) if found.chunks is not None else settled
    rest, groups = _without_bags(found.model), len(settled.classes) * split.folds
    order = np.arange(len(in_order.classes)) if in_order.label_remap is None else in_order.label_remap
    spread = (order[:, None] * split.folds + np.arange(split.folds)).ravel()
    counts = rest.in_order(
        found.total.counts,
        replace(in_order, classes=[(c, f) for c in in_order.classes for f in range(split.folds)], label_remap=spread),
        groups,
    )
    return replace(found.total, counts=counts), settled, in_order, found.chunks


def _without_bags(model: ClassModel) -> ClassModel:
    return model.with_leaves(tuple(leaf for leaf in model.leaves if not model.is_sparse(leaf)))


def _sum_other_folds(tally: _FoldCounts, split: Split, model: ClassModel, settled: Settled) -> Iterator[Counts]:
    """Counts of all folds but one, by class, for each tested fold."""
    order = np.arange(model.groups) if settled.label_remap is None else settled.label_remap
    how = split.folds, order, model.groups
    totals = {key: words.total(*how) for key, words in tally.words.items()}
    rest = _without_bags(model)
    for fold in split.tested:
        part = _drop_fold(tally.counts, fold, split, rest)
        words = {}
        for key, each in tally.words.items():  # a word that only this fold holds leaves exactly nothing
            left = np.maximum(totals[key] - each.fold(fold, *how), 0.0)
            words[key] = Twofold(left, np.zeros(left.T.shape).T)
        yield replace(part, arrays={**part.arrays, **words})


def _drop_fold(counts: Counts, fold: int, split: Split, model: ClassModel) -> Counts:
    others = np.array([f for f in range(split.folds) if f != fold])

    def kept(array: Twofold) -> Twofold:
        shape = (array.shape[0] // split.folds, split.folds, *array.shape[1:])
        by_fold = Twofold(array.hi.reshape(shape), array.lo.reshape(shape))
        found = by_fold.take(others, 1).sum(1)
        return array.alike(found.hi, found.lo)

    part = model.named(counts.map(kept))
    return replace(part, rows=float(part[ROOT].sum()))


def _estimate_seen(model: ClassModel, counts: Counts, imagined: Imagined, params: Params | None = None) -> FoldModel:
    """Parameters as if words that these rows do not hold were not in the vocabulary, and which words they hold.

    The vocabulary is that of all rows; a fit of these rows alone would not know the words of held-out rows.
    """
    found = {
        leaf.key: cast("Bags", leaf.family).estimate_seen(
            counts.arrays[leaf.key], imagined.hypers[leaf.key], imagined.how
        )
        for leaf in model.leaves
        if leaf.family.facts.words
    }
    seen = {key: own for key, own in found.items() if own is not None}
    plain = model.with_leaves(tuple(leaf for leaf in model.leaves if leaf.key not in seen))
    rest = estimate_params(plain, counts, imagined) if params is None else params
    leaves, known = {leaf.key: rest[leaf.key] for leaf in plain.leaves}, {}
    for key, (own, words) in seen.items():
        known[model.schema.places[key].slot] = np.concatenate([[True], words])
        leaves[key] = own
    return model.params(rest.shares, leaves), known


def _complete_fold(model: ClassModel, folded: Sequence[Folded], fold: int, plan: Plan, runner: Runner) -> FoldModel:
    """The parameters after EM on the rows that the fold is not tested on, as in a fit.

    Rows without a label are never tested on.
    """
    chunks, start = [], 0
    for each in folded:
        assert each.chunk.labels is not None
        kept = np.where(each.chunk.labels < 0, (plan.unlabelled_weight or 0.0) > 0, each.folds != fold)
        chunk = each.chunk.take(np.flatnonzero(kept))
        chunks.append(replace(chunk, start=start))
        start += chunk.n_rows
    reached, imagined = run_labelled_em(model, HeldRows(chunks, runner), plan, runner)
    counts = model.nodes.unstacked(reached.counts)
    if plan.estimate != "predictive":
        return _estimate_seen(model, counts, imagined.using(plan.em_how), reached.params)
    return _estimate_seen(model, counts, imagined)


# -- words by class and fold, kept sparse: most words occur in few of them

MOST_PARTS = 16
"""Chunks' counts that are kept separate before they are added up."""


class FoldWords(Struct, frozen=True):
    """(groups x words) counts in parts that add up, group (class, fold) being number class * folds + fold.

    Twenty classes in five folds of 75,000 words are 60 MB of numbers for every chunk, nine tenths of them zero.
    """

    parts: list[Any]

    @classmethod
    def of(cls, bag: Any, groups: np.ndarray, weights: np.ndarray | None) -> FoldWords:
        """Counts of rows of a sparse matrix, without those of a negative group."""
        rows = np.flatnonzero(groups >= 0)
        each = np.ones(len(rows)) if weights is None else weights[rows]
        shape = (int(groups.max(initial=-1)) + 1, bag.shape[0])
        return cls([sparse.csr_matrix((each, (groups[rows], rows)), shape=shape) @ bag])

    def __add__(self, other: FoldWords) -> FoldWords:
        parts = [*self.parts, *other.parts]
        return FoldWords(parts if len(parts) <= MOST_PARTS else [_whole(parts)])

    def fold(self, fold: int, folds: int, order: Sequence[int] | np.ndarray, groups: int) -> np.ndarray:
        """(groups x words) counts of one fold, class c in group `order[c]`; words by groups in memory."""
        order = np.asarray(order, dtype=np.int64)
        places, counts = [], []
        for part in self.parts:
            here = part[fold::folds].tocoo()
            places.append(here.col.astype(np.int64) * groups + order[here.row])
            counts.append(here.data)
        width = self.parts[0].shape[1]
        flat = np.bincount(np.concatenate(places), np.concatenate(counts), minlength=width * groups)
        return flat.reshape(width, groups).T

    def total(self, folds: int, order: Sequence[int] | np.ndarray, groups: int) -> np.ndarray:
        return reduce(np.add, (self.fold(fold, folds, order, groups) for fold in range(folds)))


def _whole(parts: Sequence[Any]) -> Any:
    """One matrix of all parts; classes that a chunk has not met are empty rows."""
    rows = max(part.shape[0] for part in parts)
    whole = sparse.csr_matrix((rows, parts[0].shape[1]))
    for part in parts:
        ends = np.concatenate([part.indptr, np.full(rows - part.shape[0], part.indptr[-1])])
        whole = whole + sparse.csr_matrix((part.data, part.indices, ends), shape=whole.shape)
    return whole


# The labelled rows that the ensemble is trained on: all, or of very many a random part.

MOST_ROWS = 100_000
"""Rows that an ensemble is trained on; the counts are of all rows."""
MOST_CELLS = 1 << 24
"""Cells and words of these rows; a tenth of MOST_ROWS is always taken."""
EVERY_ROW = np.uint64(2**64 - 1)
"""The highest hashed number of a row."""
SALT = np.uint64(0xD1B54A32D192ED03)
"""Makes the draw independent of the folds."""


class KnownRows(Struct, frozen=True, eq=False):
    """Labelled rows of some weight: their numbers in the table, and how many there are in all."""

    rows: EncodedRows
    labels: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray
    of: int

    def take(self, some: np.ndarray) -> KnownRows:
        return KnownRows(self.rows.take(some), self.labels[some], self.weights[some], self.numbers[some], self.of)


def draw_known_rows(fitted: Fitted, table: Table, runner: Runner, classes: Sequence[object] | None = None) -> KnownRows:
    """The labelled rows of a table; of very many, those whose hashed numbers are lowest.

    A long table is read once and never held. `classes` are those of coded labels. Rows on other machines are drawn
    there.
    """
    schema = fitted.schema
    texts = [leaf for leaf in fitted.model.leaves if fitted.model.is_sparse(leaf)]
    words = sum(float(fitted.counts.arrays[leaf.key].hi.sum()) for leaf in texts)
    cells = max(1, len(EncodedColumns.of(schema).keys) + int(words / max(fitted.counts.rows, 1.0)))
    found = _LowestRows(max(MOST_ROWS // 10, min(MOST_ROWS, MOST_CELLS // cells)))
    if not runner.keeps_rows:  # the workers of an engine draw
        raw = runner.encoded(table)
        try:
            rows, known = runner.settled(table, raw, table.settle()), raw.n_rows - table.unknown_labels
            if known > found.most:  # six deviations more than are wanted, of which the lowest are kept
                found.limit = np.uint64((found.most + 6.0 * found.most**0.5) / known * (2.0**64 - 2.0**12))
            for part in rows.each(partial(draw_rows, schema, found.limit)):
                found.add(*part)
        finally:
            raw.close()
        return found.known(class_places(fitted, replace(table.settle(), label_remap=None)))
    for chunk in table.chunks(runner.map):
        found.add(*draw_rows(schema, found.limit, chunk))
    drawn = found.known(class_places(fitted, table.settle(classes=classes)))
    if len(drawn.labels) < drawn.of:
        # Return the memory that a long table was read into: of a CSV of 300 MB, Arrow and the C library keep 50 MB.
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
        if trim is not None:
            trim(0)
    return drawn


def draw_rows(schema: Schema, limit: np.uint64, chunk: Chunk) -> tuple[np.ndarray, KnownRows, np.ndarray]:
    """Hashed numbers up to a limit, their rows of a chunk, and how many rows each label has, drawn or not."""
    labels = np.full(chunk.n_rows, -1) if chunk.labels is None else chunk.labels
    weights = chunk.row_weights
    known = np.flatnonzero((labels >= 0) & (weights > 0))
    keys = mixed(mixed(known.astype(np.uint64) + np.uint64(chunk.start)) ^ SALT)
    kept = keys <= limit
    rows = known[kept]
    encoded = EncodedRows.of(schema, [chunk.take(rows)])
    part = KnownRows(encoded, labels[rows].astype(np.int64), weights[rows], rows + chunk.start, len(rows))
    return keys[kept], part, np.bincount(labels[known])


def class_places(fitted: Fitted, settled: Settled) -> np.ndarray:
    """The place among the model's classes of every code of a label."""
    places = {name: place for place, name in enumerate(fitted.names)}
    order = np.array([places.get(name, -1) for name in settled.classes], dtype=np.int64)
    return order if settled.label_remap is None else order[settled.label_remap]


class _LowestRows:
    """The `most` rows of lowest hashed numbers: the draw does not depend on the borders of chunks."""

    def __init__(self, most: int) -> None:
        self.most, self.limit = most, EVERY_ROW
        self.of = np.zeros(0, dtype=np.int64)  # rows of every label, by its code
        self.parts: list[tuple[np.ndarray, KnownRows]] = []

    def add(self, keys: np.ndarray, part: KnownRows, of: np.ndarray) -> None:
        counted = np.zeros(max(len(self.of), len(of)), dtype=np.int64)
        counted[: len(self.of)] += self.of
        counted[: len(of)] += of
        self.of = counted
        self.parts.append((keys, part))
        self._draw(self.most // 4)

    def _draw(self, slack: int = 0) -> None:
        """Keep the `most` rows of the lowest keys, if there are more than that and the slack."""
        keys = np.concatenate([own for own, _ in self.parts])
        if len(keys) > self.most + slack:
            self.limit = np.partition(keys, self.most - 1)[self.most - 1]
            self.parts = [(own[own <= self.limit], part.take(own <= self.limit)) for own, part in self.parts]

    def known(self, places: np.ndarray) -> KnownRows:
        """The drawn rows in the order of the table, their labels being `places` of the codes."""
        self._draw()
        parts = [part for _, part in self.parts]
        rows = EncodedRows.concatenate([part.rows for part in parts])
        labels, weights, numbers = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("labels", "weights", "numbers")
        )
        labels, named = places[labels], places[: len(self.of)] >= 0
        found = KnownRows(rows, labels, weights, numbers, int(self.of[: len(places)][named].sum()))
        return found if (labels >= 0).all() else found.take(np.flatnonzero(labels >= 0))
