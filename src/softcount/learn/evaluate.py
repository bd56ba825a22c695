"""How well a model of known classes does on rows it has not seen, by adding and subtracting counts.

Every row is in one fold by its number alone. One pass counts each fold apart; a model for a fold is the sum of the
others, so k folds cost two passes and no refitting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.learn.labelled import climb_labelled, hidden_in_columns, imagine_classes, with_older
from softcount.learn.plan import LABELLED_FLOOR, Plan, cells_of
from softcount.models.align import reordered
from softcount.models.leaves import leaves_of
from softcount.models.plates import Kernels
from softcount.models.settle import Settling, remapped, settling
from softcount.models.star import Imagined, Ready, Star, StarParams
from softcount.numerics.twofold import Twofold
from softcount.run.threads import Threads, total
from softcount.table import Chunk, Contradiction, Table

SMALLEST = 1e-15
"""A probability below this costs no more than this in the log-loss, as is the custom."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Accuracy and log-loss on unseen rows, beside those of always saying how frequent each class is."""

    how: str
    n_rows: int
    accuracy: float
    log_loss: float
    baseline_accuracy: float
    baseline_log_loss: float
    folds: list[dict[str, float]] = field(default_factory=list)


def cross_validate(table: Table, plan: Plan, threads: Threads, folds: int = 5, seed: int = 0) -> Evaluation | None:
    """Each of `folds` parts predicted by a model of the others; None where too few rows have a label."""
    if folds < 2:
        raise DataError(f"cross-validation needs at least 2 folds, not {folds}.")
    return _retyped(table, lambda t: _evaluated(t, plan, threads, Split(folds, seed), f"{folds}-fold cross-validation"))


def hold_out(table: Table, plan: Plan, threads: Threads, share: float = 0.2, seed: int = 0) -> Evaluation | None:
    """A random share of the rows predicted by a model of the rest."""
    if not 0 < share < 1:
        raise DataError(f"the share to hold out is between 0 and 1, not {share}.")
    split = Split(2, seed, share)
    return _retyped(table, lambda t: _evaluated(t, plan, threads, split, f"{100 * share:g} % held out"))


def _retyped(table: Table, attempt: Callable[[Table], Evaluation | None]) -> Evaluation | None:
    while True:
        try:
            return attempt(table)
        except Contradiction as why:
            table = table.widened(why)


@dataclass(frozen=True, slots=True)
class Split:
    """Which fold a row is in, from its number and the seed. With a share, fold 0 is held out and fold 1 trains."""

    folds: int
    seed: int
    share: float | None = None

    @property
    def tested(self) -> range:
        return range(1) if self.share is not None else range(self.folds)

    def of(self, chunk: Chunk | Ready) -> np.ndarray:
        mixed = np.arange(chunk.start, chunk.start + chunk.n_rows, dtype=np.uint64)
        with np.errstate(over="ignore"):
            mixed += np.uint64(self.seed & (2**63 - 1)) * np.uint64(11400714819323198485)
            for shift, factor in ((30, 13787848793156543929), (27, 10723151780598845931)):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        if self.share is not None:
            return (mixed / 2.0**64 >= self.share).astype(np.int32)
        return (mixed % np.uint64(self.folds)).astype(np.int32)


def _evaluated(table: Table, plan: Plan, threads: Threads, split: Split, how: str) -> Evaluation | None:
    fast = Kernels(cells_of(table))
    counts, settled = _tallied(table, plan, threads, fast, split)
    groups = len(settled.classes)
    leaves = leaves_of(settled.schema, plan.wishes, groups, table.bag_width, LABELLED_FLOOR)
    star = Star(settled.schema, leaves, groups, fast)
    parts = [_without(counts, fold, split, star) for fold in split.tested]
    if any(part.rows <= 0 for part in parts):
        return None
    estimates = [_estimated(star, part, plan, settled.classes) for part in parts]
    models = [params for params, _ in estimates]
    if hidden_in_columns(table, star):
        chunks = list(threads.map(lambda task: remapped(task(), settled), table.tasks()))
        models = [
            _completed(star, [_trained(chunk, fold, split) for chunk in chunks], plan, threads) for fold in split.tested
        ]
    sums = total(threads, lambda task: _scored(star, models, remapped(task(), settled), split), table.tasks())
    return None if sums is None else _summed(sums.values, counts, split, groups, how)


def _tallied(table: Table, plan: Plan, threads: Threads, fast: Kernels, split: Split) -> tuple[Counts, Settling]:
    """Counts of every class in every fold: group (class, fold) is number class * folds + fold."""
    settled: Settling | None = None
    if any(family.name == "joint" for family in plan.wishes.families.values()):
        for _ in threads.map(lambda task: task(), table.tasks()):
            pass
        settled = settling(table, plan.wishes, None)
    schema = table.schema if settled is None else settled.schema
    star = Star(schema, leaves_of(schema, plan.wishes, 1, table.bag_width, LABELLED_FLOOR), 1, fast)

    def work(task: Callable[[], Chunk]) -> Counts:
        chunk = task() if settled is None else remapped(task(), settled)
        assert chunk.labels is not None
        parts = np.where(chunk.labels < 0, chunk.labels, chunk.labels * split.folds + split.of(chunk))
        return star.tally(star.prepare(replace(chunk, labels=parts.astype(np.int32)), base=False))

    counts = total(threads, work, table.tasks())
    if counts is None:
        raise DataError("the table has no rows.")
    if settled is None:
        settled = settling(table, plan.wishes, None)
        counts = reordered(counts, star, _by_fold(settled, split.folds))
    else:
        counts = reordered(counts, star, _by_fold(replace(settled, remap={}, label_remap=None), split.folds))
    return counts, settled


def _by_fold(settled: Settling, folds: int) -> Settling:
    """The settling of (class, fold) groups."""
    order = np.arange(len(settled.classes)) if settled.label_remap is None else settled.label_remap
    spread = (order[:, None] * folds + np.arange(folds)).ravel()
    return replace(settled, classes=[(c, f) for c in settled.classes for f in range(folds)], label_remap=spread)


def _without(counts: Counts, fold: int, split: Split, star: Star) -> Counts:
    """Counts of all folds but one, by class."""
    others = [f for f in range(split.folds) if f != fold]

    def kept(array: Twofold) -> Twofold:
        shape = (array.shape[0] // split.folds, split.folds, *array.shape[1:])
        by_fold = Twofold(array.hi.reshape(shape), array.lo.reshape(shape))
        return by_fold.take(np.array(others), 1).sum(1)

    part = star.unstacked(counts.map(kept))
    return replace(part, rows=float(part[ROOT].sum()))


def _estimated(star: Star, counts: Counts, plan: Plan, names: list[object]) -> tuple[StarParams, Imagined]:
    counts, imagined = with_older(star, counts, imagine_classes(star, counts, plan), plan, names)
    return star.estimate(counts, imagined), imagined


def _trained(chunk: Chunk, fold: int, split: Split) -> Chunk:
    """The chunk with no weight on rows that a fold is tested on, or whose class is not known."""
    assert chunk.labels is not None
    weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
    return replace(chunk, weights=np.where((split.of(chunk) != fold) & (chunk.labels >= 0), weights, 0.0))


def _completed(star: Star, chunks: list[Chunk], plan: Plan, threads: Threads) -> StarParams:
    """The parameters once EM has filled the holes of correlated blocks, as it does in a fit."""
    way, imagined = climb_labelled(star, chunks, plan, threads)
    return star.estimate(way.counts, imagined) if plan.estimate == "predictive" else way.params


@dataclass(frozen=True, slots=True)
class _Sums:
    """Per fold: weight, weight of right answers, weighted log-loss, rows."""

    values: np.ndarray

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.values + other.values)


def _scored(star: Star, models: list[StarParams], chunk: Chunk, split: Split) -> _Sums:
    assert chunk.labels is not None
    sums = np.zeros((len(models), 4))
    folds = split.of(chunk)
    for fold, params in zip(split.tested, models, strict=True):
        rows = np.flatnonzero((folds == fold) & (chunk.labels >= 0))
        if len(rows):
            sums[fold] = _scored_rows(star, params, _part(chunk, rows))
    return _Sums(sums)


def _part(chunk: Chunk, rows: np.ndarray) -> Chunk:
    assert chunk.labels is not None
    return Chunk(
        chunk.start,
        len(rows),
        chunk.reals[rows],
        chunk.codes[rows],
        chunk.wide[rows],
        tuple(bag[rows] for bag in chunk.bags),
        chunk.labels[rows],
        None if chunk.weights is None else chunk.weights[rows],
    )


def _scored_rows(star: Star, params: StarParams, chunk: Chunk) -> np.ndarray:
    ready: Ready = star.prepare(chunk, base=False)
    joint = star.score(ready, star.compile(params, contrast=True), slice(0, chunk.n_rows))
    right = joint.argmax(axis=1) == chunk.labels
    star.kernels.normalise(joint)
    own = np.maximum(joint[np.arange(chunk.n_rows), chunk.labels], SMALLEST)
    weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
    return np.array([weights.sum(), weights @ right, -(weights @ np.log(own)), chunk.n_rows])


def _summed(sums: np.ndarray, counts: Counts, split: Split, groups: int, how: str) -> Evaluation | None:
    weight, right, loss, rows = sums.sum(axis=0)
    if weight <= 0:
        return None
    by_fold = counts[ROOT].reshape(groups, split.folds)
    tested = by_fold[:, list(split.tested)].sum(axis=1)
    shares = by_fold.sum(axis=1) / by_fold.sum()
    guess = float(tested[shares.argmax()] / tested.sum())
    unsure = float(-(tested @ np.log(np.maximum(shares, SMALLEST))) / tested.sum())
    folds = [{"accuracy": float(r / w), "log_loss": float(x / w), "rows": int(n)} for w, r, x, n in sums if w > 0]
    return Evaluation(how, int(rows), float(right / weight), float(loss / weight), guess, unsure, folds)
