"""One family tried on a column: learned from its rows, and from those of all folds but one; all from one count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from softcount.families import How, Hyper, Params
from softcount.families.number_facts import NumberFacts, facts_of_numbers
from softcount.models.nodes import Node, node_hyper
from softcount.numerics.twofold import Twofold
from softcount.records import dataclass

FOLDS = 5
STEPS, FOLD_STEPS = 12, 6
"""EM steps of a family with hidden values, on all rows and from there without those of a fold: enough to choose."""
SURE = 2.0
"""Standard errors that the first fold must be worse by for the others not to be tried."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column's numbers, or a block's, with classes and weights.

    `told`: every row of the table has a class. `part` says which share of the rows they are. `seed` draws the folds.
    """

    values: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    least: float
    whole: bool
    told: bool = True
    part: str = ""
    seed: int = 0

    @cached_property
    def groups(self) -> int:
        return int(self.labels.max()) + 1

    @cached_property
    def folds(self) -> np.ndarray:
        """Every row's fold, the same each time."""
        return np.random.default_rng(self.seed).permutation(len(self.values)) % min(FOLDS, len(self.values))

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1

    @cached_property
    def facts(self) -> NumberFacts:
        smallest = float(np.bincount(self.labels, self.weights).min())
        found = facts_of_numbers(self.values, self.weights, smallest)
        return replace(found, least=self.least, whole=self.whole)


@dataclass(frozen=True, eq=False)
class FamilyTrial:
    """A family learned from a column's rows, and from those of all folds but one.

    Where something is hidden, folds start from what all rows came to, and from what a prior makes of all of them.
    """

    family_node: Node
    numbers: Numbers
    how: How
    prior: float
    steps: tuple[int, int] = (STEPS, FOLD_STEPS)

    @cached_property
    def node(self) -> Node:
        """The node with what its family needs to begin with something hidden."""
        node, numbers = self.family_node, self.numbers
        if node.family.exact:
            return node
        blank = node.family.blank([numbers.values], [numbers.weights], node.setting, [numbers.labels])
        return replace(node, setting=replace(node.setting, blank=blank))

    @cached_property
    def by_fold(self) -> Twofold:
        """Statistics of every class in every fold: group (class, fold) is number class * folds + fold."""
        numbers, folds = self.numbers, self.numbers.n_folds
        own = _one_hot(numbers.labels * folds + numbers.folds, numbers.weights, numbers.groups * folds)
        return self.node.family.count(numbers.values, own, None, self.node.setting)

    @cached_property
    def first(self) -> Twofold:
        """Statistics of every class, as they are before anything is known of what is hidden."""
        return _apart(self.by_fold, self.numbers.n_folds).sum(1)

    @cached_property
    def hyper(self) -> Hyper:
        return node_hyper(self.node, self.prior, self.first)

    @cached_property
    def whole(self) -> Params:
        """The parameters of every class."""
        params = self.node.family.estimate(self.first, self.hyper, self.how)
        members = _one_hot(self.numbers.labels, self.numbers.weights, self.numbers.groups)
        return params if self.node.family.exact else self._climbed(params, members, self.steps[0])

    def hoped_for(self) -> float:
        """About what rows held out will say: the mean of the rows it was learned from, less a row's share of the
        parameters (Akaike)."""
        values, weights = self.numbers.values, self.numbers.weights
        free = self.node.family.free(self.node.setting, self.numbers.groups)
        return float(np.average(self._scores(self.whole, np.arange(len(values))), weights=weights)) - free / len(values)

    def held_out(self, best: np.ndarray | None = None) -> np.ndarray | None:
        """The log-density of every row in its class, learned from the rows of the other folds.

        None where the first fold is clearly worse than under the `best` family so far.
        """
        scores = np.zeros(len(self.numbers.values))
        for fold, params in enumerate(self._without_own()):
            here = np.flatnonzero(self.numbers.folds == fold)
            scores[here] = self._scores(params, here)
            if fold == 0 and best is not None and _clearly_worse(scores[here], best[here]):
                return None
        return scores

    def _without_own(self) -> Iterator[Params]:
        """For each fold the parameters of every class without its rows."""
        numbers, folds = self.numbers, self.numbers.n_folds
        if self.node.family.exact:
            apart = _apart(self.by_fold, folds)
            others = [np.flatnonzero(np.arange(folds) != fold) for fold in range(folds)]
            yield from (self._estimated(apart.take(other, 1).sum(1)) for other in others)
            return
        members = np.repeat(_one_hot(numbers.labels, numbers.weights, numbers.groups), folds, axis=1)
        members *= np.arange(numbers.groups * folds) % folds != numbers.folds[:, None]
        start = {name: np.repeat(value, folds, axis=0) for name, value in self.whole.items()}
        found = self._climbed(start, members, self.steps[1])
        yield from ({name: value[fold::folds] for name, value in found.items()} for fold in range(folds))

    def _estimated(self, stats: Twofold) -> Params:
        return self.node.family.estimate(stats, node_hyper(self.node, self.prior, stats), self.how)

    def _climbed(self, params: Params, members: np.ndarray, steps: int) -> Params:
        family, values = self.node.family, self.numbers.values
        for _ in range(steps):
            params = family.estimate(family.count(values, members, params, self.node.setting), self.hyper, self.how)
        return params

    def _scores(self, params: Params, rows: np.ndarray) -> np.ndarray:
        """The log-density of some rows in their classes."""
        family, values, setting = self.node.family, self.numbers.values[rows], self.node.setting
        scored = family.score(values, family.scorable(params, setting), setting)
        return np.asarray(scored[np.arange(len(rows)), self.numbers.labels[rows]] + family.base(values))


def _clearly_worse(scores: np.ndarray, best: np.ndarray) -> bool:
    """Whether chance hardly makes so much of a difference."""
    less = best - scores
    return not float(less.mean()) <= SURE * float(less.std()) / np.sqrt(len(less))


def _one_hot(labels: np.ndarray, weights: np.ndarray, groups: int) -> np.ndarray:
    out = np.zeros((len(labels), groups))
    out[np.arange(len(labels)), labels] = weights
    return out


def _apart(stats: Twofold, folds: int) -> Twofold:
    """Statistics of (class, fold) groups with an axis for the folds."""
    shape = (stats.shape[0] // folds, folds, *stats.shape[1:])
    return Twofold(stats.hi.reshape(shape), stats.lo.reshape(shape))
