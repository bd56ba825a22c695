"""How probable a table is under a model once its parameters are integrated out, and other ways to weigh models."""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.families import Categorical
from softcount.learn.tiles import runs_of
from softcount.models.star import Imagined, Ready, Star, StarParams
from softcount.numerics.twofold import stack
from softcount.run.threads import Threads


def cheeseman_stutz(star: Star, imagined: Imagined, params: StarParams, counts: Counts, known: int = 0) -> float:
    """Log marginal likelihood of the table, approximated at parameters just scored and their expected counts.

    The rows completed as expected have one in closed form; what completing them changed is taken back at the
    parameters: log P(D'|K) + log P(D|theta) - log P(D'|theta). With one class and no holes it is exact. Classes nobody
    named can be numbered in K! ways, and all but the first `known` are such: each way is an optimum of its own.
    """
    whole = complete_evidence(star, imagined, params, counts)
    return whole + counts.log_likelihood - star.completed(counts, params) + lgamma(star.groups - known + 1)


def complete_evidence(star: Star, imagined: Imagined, params: StarParams, counts: Counts) -> float:
    """Log marginal likelihood of complete rows with these counts, in counting units and without `base`."""
    root = counts.arrays[ROOT].spread(0)
    if imagined.fixed_shares is not None:
        total = Categorical().completed(root, {"probability": params.shares[None]})
    else:
        total = Categorical().evidence(root, Categorical().proper(imagined.root))
    return total + leaves_evidence(star, imagined, params, counts)


def leaves_evidence(star: Star, imagined: Imagined, params: StarParams, counts: Counts) -> float:
    """The columns' part: those that share a parameter at once, those with fixed ones by a penalty for the rest."""
    stats, total = counts.arrays, 0.0
    for family, keys in star.stacks(stats):
        free = [key for key in keys if key not in imagined.fixed]
        if free and family.alone:
            total += sum(family.evidence(stats[key], family.proper(imagined.leaves[key])) for key in free)
        elif free:
            together = stack([stats[key] for key in free], axis=1)
            total += family.evidence(together, family.proper(imagined.stacked(free)))
    for key, fixed in imagined.fixed.items():
        leaf = star.leaf(key)
        left = leaf.family.free(leaf.setting, star.groups) - leaf.family.held_free(fixed, leaf.setting, star.groups)
        total += leaf.family.completed(stats[key], params.leaves[key]) - 0.5 * left * log(max(counts.rows, 1.0))
    return total


def memberships_entropy(star: Star, params: StarParams, ready: Sequence[Ready], threads: Threads) -> float:
    """How undecided the rows are between the classes, in nats, summed by weight; 0 where each is in one for sure."""
    compiled = star.compile(params)

    def work(run: Sequence[Ready]) -> list[float]:
        return [_entropy(star, compiled, part) for part in run]

    return float(sum(sum(part) for part in threads.map(work, runs_of(ready, threads.n_jobs))))


def _entropy(star: Star, compiled: list[object], ready: Ready) -> float:
    total = 0.0
    for a in range(0, ready.n_rows, ready.tile):
        rows = slice(a, min(a + ready.tile, ready.n_rows))
        members = star.score(ready, compiled, rows)
        star.kernels.normalise(members)
        undecided = -np.where(members > 0, members * np.log(np.where(members > 0, members, 1.0)), 0.0).sum(axis=1)
        if ready.labels is not None:
            undecided[ready.labels[rows] >= 0] = 0.0
        total += float(undecided.sum() if ready.weights is None else undecided @ ready.weights[rows])
    return total


def bic(log_likelihood: float, n_parameters: int, rows: float) -> float:
    """Twice the misfit plus what the parameters cost: smaller is better."""
    return n_parameters * log(max(rows, 1.0)) - 2 * log_likelihood
