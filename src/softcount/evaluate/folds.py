"""A model for every fold from the rows of the others, by adding counts instead of fitting again.

Every row is in one fold by its number alone, and a row of weight n is n rows. One pass counts each fold apart; a model
for a fold is the sum of the others, so k folds cost two passes and no refitting, or one where the fit's own pass
counted them (`FoldsBeside`). Where the fit takes EM (rows without a label, holes in a block) each fold takes it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import ROOT, Counts
from softcount.core.lazy import sparse
from softcount.core.twofold import Twofold
from softcount.learn.known_classes import estimate_params, imagine_classes, run_labelled_em, what_is_hidden, with_older
from softcount.learn.prepare import LABELLED_FLOOR, Beside, recoded_chunks, tallied
from softcount.learn.settings import Plan, cells_of, plug
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined, Params
from softcount.run.local import Runner
from softcount.run.rows import HeldRows, Rows
from softcount.table import Chunk, Settled, Table
from softcount.table.chunk import Folded, Split
from softcount.table.column_summary import MOST_COMPARED, deal_repeats
from softcount.table.schema import Key

KnownWords = dict[int, np.ndarray]
"""By the slot of a text column, which columns of its bag a model knows."""
FoldModel = tuple[Params, KnownWords]


class FoldAnswers(Struct, frozen=True):
    """Rows of one fold that have a class, and the log of share times density that the others' model gives them.

    `counted` is how many rows they stand for.
    """

    fold: int
    rows: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    joint: np.ndarray
    counted: int


class FoldModels(Struct, frozen=True):
    """A compiled model for every fold that is tested, learned from the rows of the others; `counts` are by fold.

    With each model come the words it knows, by text column: others are no evidence, as if it had been fitted alone.
    `rows` are those of the table in their settled codes, where they are on other machines.
    """

    model: ClassModel
    models: list[tuple[list[Any], KnownWords]]
    settled: Settled
    split: Split
    counts: Counts
    rows: Rows | None = None

    @property
    def for_settled(self) -> FoldModels:
        """The same for chunks that are in settled codes already, as those elsewhere are."""
        return replace(self, rows=None, settled=replace(self.settled, remap={}, label_remap=None))

    def answers(self, chunk: Chunk) -> Iterator[FoldAnswers]:
        """What each fold's own model says of its rows in this chunk; rows without a label are passed over."""
        for told, ready, model in self._tested(chunk):
            joint = self.model.score(ready, model, slice(0, len(told.rows)))
            yield replace(told, joint=joint)

    def answers_by_column(self, chunk: Chunk) -> Iterator[tuple[FoldAnswers, dict[Key, np.ndarray]]]:
        """The same, the joint being the logarithm of the shares alone, and what each leaf adds to it."""
        for told, ready, model in self._tested(chunk):
            shares = np.broadcast_to(model[0][0], (len(told.rows), self.model.groups))
            yield replace(told, joint=shares), self.model.score_parts(model, ready)

    def _tested(self, chunk: Chunk) -> Iterator[tuple[FoldAnswers, Any, list[Any]]]:
        """The labelled rows of each tested fold, yet without an answer, as that fold's model takes them; the model."""
        folded = self.split.folded(self.settled.recoded(chunk))
        chunk = folded.chunk
        assert chunk.labels is not None
        for fold, (model, seen) in zip(self.split.tested, self.models, strict=True):
            rows = np.flatnonzero((folded.folds == fold) & (chunk.labels >= 0))
            if len(rows):
                part = chunk.take(rows)
                for slot, known in seen.items():
                    bag = part.bags[slot]
                    bag.data[~known[bag.indices]] = 0.0
                    bag.eliminate_zeros()
                ready = self.model.prepare(part, base=False)
                weights = np.ones(len(rows)) if chunk.weights is None else chunk.weights[rows]
                counted = round(float(weights.sum())) if self.split.counts_weights else len(rows)
                numbers = folded.rows[rows] + chunk.start
                yield FoldAnswers(fold, numbers, chunk.labels[rows], weights, np.empty(0), counted), ready, model


def fold_models(
    table: Table, plan: Plan, runner: Runner, split: Split, classes: Sequence[Any] | None = None
) -> FoldModels | None:
    """The models of all folds; None where one would have no rows to learn from. `classes` are those of coded labels.

    Of rows on other machines one pass counts all folds. Where something is hidden there is None: EM of every fold is
    for rows that are here. Rows of other machines are each in one fold, whatever they weigh.
    """
    plan, here = plan.for_labels(table), runner.keeps_rows
    if here and split.repeats is None and split.units is None:
        split = with_repeats(split, table, runner)
    tally, settled, counted, rows = _tallied(table, plan, runner, split, classes)
    if not tally.counts.finite and here:
        table.within_reach(table.chunks(runner.map))
    groups = len(settled.classes)
    by_fold = tally.counts[ROOT].reshape(groups, split.folds).sum(axis=0)
    if any(by_fold.sum() - by_fold[fold] <= 0 for fold in split.tested):
        return None
    weight = plan.unlabelled_weight or 0.0
    model = plan.declared.model(settled.schema, groups, cells_of(table), LABELLED_FLOOR, table.bag_width, weight)
    hidden = what_is_hidden(table, model, plan)
    if hidden and rows is not None and not here:
        rows.close()
        return None
    if hidden:
        folded = [split.folded(chunk) for chunk in recoded_chunks(table, settled, runner).here]
        models = (_completed(model, [_trained(x, fold, weight) for x in folded], plan, runner) for fold in split.tested)
    else:
        parts = _others(tally, split, model, counted)
        models = (_estimated(model, part, plan, settled.classes) for part in parts)
    compiled = [(model.compile(params, contrast=True), seen) for params, seen in models]
    return FoldModels(model, compiled, settled, split, tally.counts, None if here else rows)


def with_repeats(split: Split, table: Table, runner: Runner) -> Split:
    """The split with copies of a row in one fold, or with whole weights as independent repetitions of a row.

    Up to MOST_COMPARED rows decide. Longer tables without weights are not looked at, and their rows have folds of their
    own.
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

    Words, by the key of their leaf, are counted apart from everything else.
    """

    counts: Counts
    words: dict[Key, FoldWords]

    def __add__(self, other: _FoldCounts) -> _FoldCounts:
        return _FoldCounts(
            self.counts + other.counts, {key: part + other.words[key] for key, part in self.words.items()}
        )


def _count_folds(model: ClassModel, chunk: Chunk, split: Split) -> _FoldCounts:
    """The counts of a chunk's rows of known class, every fold apart."""
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


class FoldsBeside(Beside[_FoldCounts]):
    """Folds counted in the pass that learns: given to the plan, a long file is read for them once less."""

    def __init__(self, split: Split) -> None:
        super().__init__(partial(_count_folds, split=split))
        self.split = split


def _tallied(
    table: Table, plan: Plan, runner: Runner, split: Split, classes: Sequence[Any] | None
) -> tuple[_FoldCounts, Settled, Settled, Rows | None]:
    """The counts, how levels and classes were settled, what is left of that for words, and the rows that were kept.

    Rows that were settled before they were counted have their words, too, by the settled classes.
    """
    beside = plan.beside
    found = beside.of(table) if isinstance(beside, FoldsBeside) and beside.split == split else None
    if found is None:
        found = tallied(table, plan, runner, classes, partial(_count_folds, split=split))
    settled = found.settled
    in_order = replace(settled, remap={}, label_remap=None) if found.in_order else settled
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


def _others(tally: _FoldCounts, split: Split, model: ClassModel, settled: Settled) -> Iterator[Counts]:
    """Counts of all folds but one, by class, for each fold that is tested; one at a time."""
    order = np.arange(model.groups) if settled.label_remap is None else settled.label_remap
    how = split.folds, order, model.groups
    totals = {key: words.total(*how) for key, words in tally.words.items()}
    rest = _without_bags(model)
    for fold in split.tested:
        part = _without(tally.counts, fold, split, rest)
        words = {key: _less(totals[key], each.fold(fold, *how)) for key, each in tally.words.items()}
        yield replace(part, arrays={**part.arrays, **words})


def _without(counts: Counts, fold: int, split: Split, model: ClassModel) -> Counts:
    others = [f for f in range(split.folds) if f != fold]

    def kept(array: Twofold) -> Twofold:
        shape = (array.shape[0] // split.folds, split.folds, *array.shape[1:])
        by_fold = Twofold(array.hi.reshape(shape), array.lo.reshape(shape))
        found = by_fold.take(np.array(others), 1).sum(1)
        return array.alike(found.hi, found.lo)

    part = model.named(counts.map(kept))
    return replace(part, rows=float(part[ROOT].sum()))


def _estimated(model: ClassModel, counts: Counts, plan: Plan, names: list[object]) -> FoldModel:
    counts, imagined = with_older(model, counts, imagine_classes(model, counts, plan), plan, names)
    return _among_seen(model, counts, imagined)


def _among_seen(model: ClassModel, counts: Counts, imagined: Imagined, params: Params | None = None) -> FoldModel:
    """The parameters as if words that these rows do not hold were not in the vocabulary, and which words they do hold.

    A vocabulary is made of all rows, those held out too; a fit of these rows alone would not know their words.
    """
    found = {leaf.key: leaf.family.seen(counts.arrays[leaf.key]) for leaf in model.leaves}
    seen = {key: words for key, words in found.items() if words is not None}
    plain = model.with_leaves(tuple(leaf for leaf in model.leaves if leaf.key not in seen))
    rest = estimate_params(plain, counts, imagined) if params is None else params
    leaves, known = {leaf.key: rest[leaf.key] for leaf in plain.leaves}, {}
    for key, words in seen.items():
        known[model.schema.places[key].slot] = np.concatenate([[True], words])
        hyper, family = imagined.hypers[key], model.nodes[key].family
        leaves[key] = family.estimate_seen(counts.arrays[key], hyper, imagined.how, words)
    return model.params(rest.shares, leaves), known


def _trained(folded: Folded, fold: int, unlabelled_weight: float) -> Chunk:
    """The chunk without the rows that a fold is tested on; rows of no known class are never tested on."""
    assert folded.chunk.labels is not None
    kept = np.where(folded.chunk.labels < 0, unlabelled_weight > 0, folded.folds != fold)
    return folded.chunk.take(np.flatnonzero(kept))


def _completed(model: ClassModel, chunks: list[Chunk], plan: Plan, runner: Runner) -> FoldModel:
    """The parameters once EM has found what is hidden, as it does in a fit."""
    starts = np.cumsum([0, *(chunk.n_rows for chunk in chunks)]).tolist()
    chunks = [replace(chunk, start=start) for chunk, start in zip(chunks, starts, strict=False)]
    reached, imagined = run_labelled_em(model, HeldRows(chunks, runner), plan, runner)
    counts = model.nodes.unstacked(reached.counts)
    if plan.estimate != "predictive":
        return _among_seen(model, counts, imagined.using(plug(plan.how)), reached.params)
    return _among_seen(model, counts, imagined)


# -- words by class and fold, kept sparse: most words occur in few of them

MOST_PARTS = 16
"""Chunks' counts that are kept apart before they are added up."""


class FoldWords(Struct, frozen=True):
    """(groups x words) counts in parts that add up, group (class, fold) being number class * folds + fold.

    Twenty classes in five folds of 75,000 words are 60 MB of numbers for every chunk, nine tenths of them zero.
    """

    parts: list[Any]

    @classmethod
    def of(cls, bag: Any, groups: np.ndarray, weights: np.ndarray | None) -> FoldWords:
        """Counts of rows of a sparse matrix; those of a negative group are passed over."""
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
        """The same of all folds."""
        return reduce(np.add, (self.fold(fold, folds, order, groups) for fold in range(folds)))


def _whole(parts: Sequence[Any]) -> Any:
    """One matrix of them all; classes that a chunk has not met are rows of nothing."""
    rows = max(part.shape[0] for part in parts)
    whole = sparse.csr_matrix((rows, parts[0].shape[1]))
    for part in parts:
        ends = np.concatenate([part.indptr, np.full(rows - part.shape[0], part.indptr[-1])])
        whole = whole + sparse.csr_matrix((part.data, part.indices, ends), shape=whole.shape)
    return whole


def _less(total: np.ndarray, fold: np.ndarray) -> Twofold:
    """Counts of all folds but one; a word that only this one holds leaves exactly nothing."""
    rest = np.maximum(total - fold, 0.0)
    return Twofold(rest, np.zeros(rest.T.shape).T)
