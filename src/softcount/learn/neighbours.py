"""Starts for one number of classes from what was found with another: a class split in two, or two made one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.learn.em import climb
from softcount.learn.evidence import cheeseman_stutz, leaves_evidence
from softcount.learn.groups import Maker
from softcount.learn.learned import Learned
from softcount.learn.prepare import Prepared
from softcount.learn.race import Race, best_of_each
from softcount.learn.rules import Stop
from softcount.learn.sketch import Sketch
from softcount.learn.start import drawn_memberships, nearest_members, seeds, start_params
from softcount.models.base import ClassModel, Problem, expected
from softcount.models.nodes import Imagined, Params
from softcount.models.side_by_side import SideBySide
from softcount.numerics.twofold import concatenate
from softcount.records import dataclass
from softcount.run.base import Runner

TRIES = 2
"""Pairs of seeds from which each class is split."""
SHORT = Stop(max_iter=8, tol=1e-4)
LEAST_SHARE = 1e-3
"""Of its heaviest row: lighter rows have no say in how a class is split."""


@dataclass(frozen=True, slots=True)
class Halves:
    """A class in two: how much more probable its rows become, and each sketched row's share of the second half."""

    group: int
    gain: float
    shares: np.ndarray


def grown(prepared: Prepared, fitted: Learned, groups: int, runner: Runner, seed: int) -> list[Maker]:
    """Starts with more classes: those that gain most by it are split; where one is enough, the second best as well."""
    ready = fitted.model.prepare(prepared.sketch.chunk, base=False)
    members = fitted.model.memberships(ready, fitted.model.compile(fitted.estimates))
    free = (_imagined_for(fitted.imagined, 1), _imagined_for(fitted.imagined, 2))
    pair = Pair(prepared.model(1), prepared.model(2), free, runner)
    together = splits_together if prepared.races else splits_of
    splits = sorted(together(prepared, pair, members, seed), key=lambda split: -split.gain)
    more = groups - fitted.n_groups
    if len(splits) < more:
        return []
    choices = [splits[:more], *([splits[1:2]] if more == 1 and len(splits) > 1 else [])]
    return [_maker(prepared.sketch, _divided(members, chosen)) for chosen in choices]


def merged(fitted: Learned, groups: int) -> Maker:
    """A start with fewer classes: again and again the two that lose least are made one."""
    known, nodes = range(len(fitted.named or ())), fitted.model.nodes
    stacked = nodes.stacked(fitted.counts)
    met = [_alone(stacked, group) for group in range(fitted.n_groups)]
    left = list(range(len(met)))
    imagined = replace(fitted.imagined, fixed={})
    heights: dict[tuple[int, int], float] = {}

    def height(first: int, second: int) -> float:
        """The evidence of two classes' rows as one; of a class alone where both are the same."""
        if (first, second) not in heights:
            rows = met[first] if first == second else met[first] + met[second]
            heights[first, second] = leaves_evidence(fitted.model, imagined, fitted.estimates, rows)
        return heights[first, second]

    def loss(pair: tuple[int, int]) -> float:
        return height(pair[0], pair[0]) + height(pair[1], pair[1]) - height(*pair)

    while len(left) > groups:
        pairs = (pair for pair in combinations(range(len(left)), 2) if pair[1] not in known)
        first, second = min(pairs, key=lambda pair: loss((left[pair[0]], left[pair[1]])))
        met.append(met[left[first]] + met[left.pop(second)])
        left[first] = len(met) - 1
    together = _together([met[place] for place in left])
    return lambda model, imagined: model.nodes.estimate(together, imagined)


@dataclass(frozen=True, slots=True)
class Pair:
    """One class and two, with what priors imagine of each, to see what splitting some rows would gain."""

    one: ClassModel
    two: ClassModel
    imagined: tuple[Imagined, Imagined]
    runner: Runner

    def halves(self, rows: Sketch, rng: np.random.Generator) -> tuple[float, np.ndarray]:
        """The gain in evidence of two classes over one for these rows alone, and memberships of the second."""
        model, imagined = self.two, self.imagined[1]
        ready = model.prepare(rows.chunk, base=False)
        problem = Problem(model, imagined, [ready], self.runner)
        ends = []
        for _ in range(TRIES):
            start = start_params(model, imagined, rows, drawn_memberships(rows, 2, "k-means++", rng))
            ends.append(climb(problem, start, SHORT))
            if ends[-1].interrupted:
                raise KeyboardInterrupt
        best = max(ends, key=lambda reached: reached.objective)
        both = cheeseman_stutz(model, imagined, best.params, best.counts, known=2)
        return both - self.alone(rows), model.memberships(ready, model.compile(best.params))[:, 1]

    def alone(self, rows: Sketch) -> float:
        """The evidence of the rows as one class."""
        model, imagined = self.one, self.imagined[0]
        ready = model.prepare(rows.chunk, base=False)
        params = start_params(model, imagined, rows, np.ones((ready.n_rows, 1)))
        counts = expected(model, params, [ready], self.runner)
        return cheeseman_stutz(model, imagined, params, counts, known=1)


def splits_of(prepared: Prepared, pair: Pair, members: np.ndarray, seed: int) -> Iterator[Halves]:
    """Every class with two different rows in its best two halves."""
    rng = np.random.default_rng(seed)
    for group in range(members.shape[1]):
        weights = members[:, group] * prepared.sketch.weights
        kept = np.flatnonzero(weights > LEAST_SHARE * weights.max(initial=0.0))
        if len(kept) > 1:
            gain, halves = pair.halves(_part(prepared.sketch, kept, weights[kept]), rng)
            shares = np.full(len(members), 0.5)
            shares[kept] = halves
            yield Halves(group, gain, shares)


def splits_together(prepared: Prepared, pair: Pair, members: np.ndarray, seed: int) -> Iterator[Halves]:
    """The same, all classes and tries raced side by side; a gain is the rise in probability less what it costs."""
    heavy = members.T * prepared.sketch.weights
    heavy = np.where(heavy > LEAST_SHARE * heavy.max(axis=1, keepdims=True), heavy, 0.0)
    split = np.flatnonzero((heavy > 0).sum(axis=1) > 1)
    if not len(split):
        return
    one, two = (
        SideBySide(model, imagined, prepared.products)
        for model, imagined in zip((pair.one, pair.two), pair.imagined, strict=True)
    )
    one, weights = one.weighed(heavy[split]), np.repeat(heavy[split], TRIES, axis=0)
    alone = one.expected(one.estimate(one.counted(np.ones((1, *heavy[split].shape)))))[1]
    rngs = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(len(weights))]
    two = two.weighed(weights)
    first = two.estimate(two.counted(nearest_members(seeds(prepared.sketch, 2, rngs, weights)[1])))
    race = Race(two, first, np.repeat(np.arange(len(split)), TRIES), SHORT)
    race.run(SHORT.max_iter, plain=True)
    race.keep(best_of_each(race.owners, race.heights))
    more = 0.5 * (pair.two.nodes.n_parameters() - pair.one.nodes.n_parameters())
    gains = race.heights - alone - more * np.log(np.maximum(heavy[split].sum(axis=1), 1.0))
    halves = race.many.memberships(race.here)[1]
    for place, group in enumerate(split):
        yield Halves(int(group), float(gains[place]), np.where(heavy[group] > 0, halves[place], 0.5))


def _imagined_for(imagined: Imagined, groups: int) -> Imagined:
    """What priors imagine of so many classes, whose parameters are all free."""
    return Imagined({**imagined.hypers, ROOT: {"alpha": np.full(groups, 1.0 / groups)}}, imagined.how)


def _part(sketch: Sketch, kept: np.ndarray, weights: np.ndarray) -> Sketch:
    """Some of the sketched rows, weighed anew."""
    chunk = replace(sketch.chunk.take(kept), start=0, labels=None, weights=weights)
    texts = tuple(text[kept] for text in sketch.texts)
    return replace(sketch, chunk=chunk, points=sketch.points[kept], present=sketch.present[kept], texts=texts)


def _divided(members: np.ndarray, splits: list[Halves]) -> np.ndarray:
    """Memberships with the second halves of the split classes at the end."""
    halves = np.stack([members[:, split.group] * split.shares for split in splits], axis=1)
    kept = members.copy()
    for place, split in enumerate(splits):
        kept[:, split.group] -= halves[:, place]
    return np.asarray(np.maximum(np.concatenate([kept, halves], axis=1), 0.0))


def _maker(sketch: Sketch, members: np.ndarray) -> Maker:
    # As in a drawn start, a little of the whole table in every class: no level starts at zero.
    loose = 0.99 * members + 0.01 / members.shape[1]

    def make(model: ClassModel, imagined: Imagined) -> Params:
        return start_params(model, imagined, sketch, loose)

    return make


def _alone(counts: Counts, group: int) -> Counts:
    """One class of counts by bundle."""
    arrays = {
        name: own[..., group : group + 1] if name == ROOT else own[group : group + 1]
        for name, own in counts.arrays.items()
    }
    return replace(counts, arrays=arrays)


def _together(classes: list[Counts]) -> Counts:
    """Classes counted one by one as groups of one model."""
    arrays = {
        name: concatenate([part.arrays[name] for part in classes], -1 if name == ROOT else 0) for name in classes[0]
    }
    return replace(classes[0], arrays=arrays)
