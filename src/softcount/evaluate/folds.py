"""A model for every fold from the rows of the others, by adding counts instead of fitting again.

Every row is in one fold by its number alone. One pass counts each fold apart; a model for a fold is the sum of the
others, so k folds cost two passes and no refitting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.evaluate.fold_words import FoldWords, without
from softcount.families import Text
from softcount.learn.labelled import climb_labelled, hidden_in_columns, imagine_classes, with_older
from softcount.learn.plan import LABELLED_FLOOR, Plan, cells_of, plug
from softcount.models.align import reordered
from softcount.models.bags import Bag
from softcount.models.declared import nodes_of
from softcount.models.plates import Kernels
from softcount.models.settle import Settling, remapped, settling
from softcount.models.star import Imagined, Star, StarParams
from softcount.numerics.twofold import Twofold
from softcount.run.threads import Threads, total
from softcount.table import Chunk, Table
from softcount.table.row_folds import Split
from softcount.table.schema import Key

Seen = dict[int, np.ndarray]
"""By the slot of a text column, which columns of its bag a model knows."""
Known = tuple[StarParams, Seen]


@dataclass(frozen=True, slots=True)
class Answers:
    """Rows of one fold that have a class, and the log of share times density that the others' model gives them."""

    fold: int
    rows: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    joint: np.ndarray


@dataclass(frozen=True, slots=True)
class Folded:
    """A compiled model for every fold that is tested, learned from the rows of the others; `counts` are by fold.

    With each model come the words it knows, by text column: others are no evidence, as if it had been fitted alone.
    """

    star: Star
    models: list[tuple[list[Any], Seen]]
    settled: Settling
    split: Split
    counts: Counts

    def answers(self, chunk: Chunk) -> Iterator[Answers]:
        """What each fold's own model says of its rows in this chunk; rows without a label are passed over."""
        chunk = remapped(chunk, self.settled)
        assert chunk.labels is not None
        folds = self.split.of(chunk)
        for fold, (model, seen) in zip(self.split.tested, self.models, strict=True):
            rows = np.flatnonzero((folds == fold) & (chunk.labels >= 0))
            if len(rows):
                ready = self.star.prepare(_part(chunk, rows, seen), base=False)
                joint = self.star.score(ready, model, slice(0, len(rows)))
                weights = np.ones(len(rows)) if chunk.weights is None else chunk.weights[rows]
                yield Answers(fold, rows + chunk.start, chunk.labels[rows], weights, joint)


def folded(
    table: Table, plan: Plan, threads: Threads, split: Split, classes: Sequence[Any] | None = None
) -> Folded | None:
    """The models of all folds; None where one would have no rows to learn from. `classes` are those of coded labels."""
    fast = Kernels(cells_of(table))
    tally, settled = _tallied(table, plan, threads, fast, split, classes)
    groups = len(settled.classes)
    by_fold = tally.counts[ROOT].reshape(groups, split.folds).sum(axis=0)
    if any(by_fold.sum() - by_fold[fold] <= 0 for fold in split.tested):
        return None
    leaves = nodes_of(settled.schema, plan.declared, groups, table.bag_width, LABELLED_FLOOR)
    star = Star(settled.schema, leaves, groups, fast)
    if hidden_in_columns(table, star):
        chunks = list(threads.map(lambda task: remapped(task(), settled), table.tasks()))
        models = (_completed(star, [_trained(x, fold, split) for x in chunks], plan, threads) for fold in split.tested)
    else:
        parts = _others(tally, split, star, settled)
        models = (_estimated(star, part, plan, settled.classes) for part in parts)
    compiled = [(star.compile(params, contrast=True), seen) for params, seen in models]
    return Folded(star, compiled, settled, split, tally.counts)


@dataclass(frozen=True, slots=True)
class _Tally:
    """Counts of every class in every fold: group (class, fold) is number class * folds + fold.

    Words, by the key of their leaf, are counted apart from everything else.
    """

    counts: Counts
    words: dict[Key, FoldWords]

    def __add__(self, other: _Tally) -> _Tally:
        return _Tally(self.counts + other.counts, {key: part + other.words[key] for key, part in self.words.items()})


def _tallied(
    table: Table, plan: Plan, threads: Threads, fast: Kernels, split: Split, classes: Sequence[Any] | None
) -> tuple[_Tally, Settling]:
    settled: Settling | None = None
    if any(family.name == "joint" for family in plan.declared.families.values()):
        for _ in threads.map(lambda task: task(), table.tasks()):
            pass
        settled = settling(table, plan.declared, classes)
    schema = table.schema if settled is None else settled.schema
    star = Star(schema, nodes_of(schema, plan.declared, 1, table.bag_width, LABELLED_FLOOR), 1, fast)
    bags, rest = _bags(star), _without_bags(star)

    def work(task: Callable[[], Chunk]) -> _Tally:
        chunk = task() if settled is None else remapped(task(), settled)
        assert chunk.labels is not None
        groups = np.where(chunk.labels < 0, -1, chunk.labels * split.folds + split.of(chunk)).astype(np.int32)
        ready = rest.prepare(replace(chunk, labels=groups), base=False)
        words = {x.leaves[0].key: FoldWords.of(x.prepare(chunk).matrix, groups, chunk.weights) for x in bags}
        return _Tally(rest.tally(ready), words)

    tally = total(threads, work, table.tasks())
    if tally is None:
        raise DataError("the table has no rows.")
    if settled is None:
        settled = settling(table, plan.declared, classes)
        return replace(tally, counts=reordered(tally.counts, rest, _by_fold(settled, split.folds))), settled
    in_order = _by_fold(replace(settled, remap={}, label_remap=None), split.folds)
    return replace(tally, counts=reordered(tally.counts, rest, in_order)), settled


def _bags(star: Star) -> list[Bag]:
    return [plate for plate in star.plates if isinstance(plate, Bag)]


def _without_bags(star: Star) -> Star:
    sparse = {plate.leaves[0].key for plate in _bags(star)}
    return replace(star, leaves=tuple(leaf for leaf in star.leaves if leaf.key not in sparse))


def _by_fold(settled: Settling, folds: int) -> Settling:
    """The settling of (class, fold) groups."""
    order = np.arange(len(settled.classes)) if settled.label_remap is None else settled.label_remap
    spread = (order[:, None] * folds + np.arange(folds)).ravel()
    return replace(settled, classes=[(c, f) for c in settled.classes for f in range(folds)], label_remap=spread)


def _others(tally: _Tally, split: Split, star: Star, settled: Settling) -> Iterator[Counts]:
    """Counts of all folds but one, by class, for each fold that is tested; one at a time."""
    order = np.arange(star.groups) if settled.label_remap is None else settled.label_remap
    how = split.folds, order, star.groups
    totals = {key: words.total(*how) for key, words in tally.words.items()}
    rest = _without_bags(star)
    for fold in split.tested:
        part = _without(tally.counts, fold, split, rest)
        words = {key: without(totals[key], each.fold(fold, *how)) for key, each in tally.words.items()}
        yield replace(part, arrays={**part.arrays, **words})


def _without(counts: Counts, fold: int, split: Split, star: Star) -> Counts:
    others = [f for f in range(split.folds) if f != fold]

    def kept(array: Twofold) -> Twofold:
        shape = (array.shape[0] // split.folds, split.folds, *array.shape[1:])
        by_fold = Twofold(array.hi.reshape(shape), array.lo.reshape(shape))
        return by_fold.take(np.array(others), 1).sum(1)

    part = star.unstacked(counts.map(kept))
    return replace(part, rows=float(part[ROOT].sum()))


def _estimated(star: Star, counts: Counts, plan: Plan, names: list[object]) -> Known:
    counts, imagined = with_older(star, counts, imagine_classes(star, counts, plan), plan, names)
    text = [leaf.key for leaf in star.leaves if isinstance(leaf.family, Text)]
    rest = replace(star, leaves=tuple(leaf for leaf in star.leaves if leaf.key not in text))
    return _among_seen(star, rest.estimate(counts, imagined), counts, imagined)


def _among_seen(star: Star, params: StarParams, counts: Counts, imagined: Imagined) -> Known:
    """The parameters as if words that these rows do not hold were not in the vocabulary, and which words they do hold.

    A vocabulary is made of all rows, those held out too; a fit of these rows alone would not know their words.
    """
    leaves, known = dict(params.leaves), {}
    for leaf in star.leaves:
        if isinstance(leaf.family, Text):
            stats = counts.arrays[leaf.key]
            seen = leaf.family.seen(stats)
            known[star.schema.places[leaf.key].slot] = np.concatenate([[True], seen])
            leaves[leaf.key] = leaf.family.estimate_seen(stats, imagined.leaves[leaf.key], imagined.how, seen)
    return replace(params, leaves=leaves), known


def _trained(chunk: Chunk, fold: int, split: Split) -> Chunk:
    """The chunk with no weight on rows that a fold is tested on, or whose class is not known."""
    assert chunk.labels is not None
    weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
    return replace(chunk, weights=np.where((split.of(chunk) != fold) & (chunk.labels >= 0), weights, 0.0))


def _completed(star: Star, chunks: list[Chunk], plan: Plan, threads: Threads) -> Known:
    """The parameters once EM has filled the holes of correlated blocks, as it does in a fit."""
    way, imagined = climb_labelled(star, chunks, plan, threads)
    if plan.estimate != "predictive":
        return _among_seen(star, way.params, way.counts, replace(imagined, how=plug(plan.how)))
    return _among_seen(star, star.estimate(way.counts, imagined), way.counts, imagined)


def _part(chunk: Chunk, rows: np.ndarray, seen: Seen) -> Chunk:
    """Some rows of the chunk, without the words that are not among the seen."""
    part = chunk.take(rows)
    for slot, known in seen.items():
        bag = part.bags[slot]
        bag.data[~known[bag.indices]] = 0.0
        bag.eliminate_zeros()
    return part
