"""Choice of the family of a numeric column by cross-validated log-density."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Twofold
from softcount.core.special import least_share
from softcount.errors import DataError
from softcount.families import Family, How, Hyper, Params, Setting
from softcount.families.base import family_title
from softcount.families.candidates import NumberFacts, candidates, facts_of_numbers
from softcount.families.learning import count_free
from softcount.learn.record import Plan, retry_wider
from softcount.models.nodes import Node, node_hyper
from softcount.models.stacks import one_hot
from softcount.run.local import Runner
from softcount.run.progress import end_on_interrupt
from softcount.table import Chunk, Table
from softcount.table.schema import ColumnPlan, CountedPoints, Key, Schema

FOLDS = 5
STEPS, FOLD_STEPS = 12, 6
"""EM steps of a family with hidden values, on all rows and then without a fold: enough to choose."""
SURE = 2.0
"""Standard errors by which the first fold must be worse for the other folds to be skipped."""


class Numbers(Struct, frozen=True, eq=False, dict=True):
    """Numbers of a column or block, with classes and weights. `labelled` is True if every row of the table has a class.

    `part` describes the sample of rows that was used. `seed` draws the folds.
    """

    values: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    least: float
    whole: bool
    labelled: bool = True
    part: str = ""
    seed: int = 0

    @cached_property
    def groups(self) -> int:
        return int(self.labels.max()) + 1

    @cached_property
    def folds(self) -> np.ndarray:
        return np.random.default_rng(self.seed).permutation(len(self.values)) % min(FOLDS, len(self.values))

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1

    @cached_property
    def facts(self) -> NumberFacts:
        smallest = float(np.bincount(self.labels, self.weights).min())
        found = facts_of_numbers(self.values, self.weights, smallest)
        return replace(found, least=self.least, whole=self.whole)


class FamilyTrial(Struct, frozen=True, eq=False, dict=True):
    """A family fitted to all rows of a column, and without each fold.

    With hidden values, EM without a fold starts from the parameters of all rows.
    """

    node: Node
    numbers: Numbers
    how: How
    prior: float
    steps: tuple[int, int] = (STEPS, FOLD_STEPS)

    @cached_property
    def by_fold(self) -> Twofold:
        """Statistics by class and fold: group number class * folds + fold."""
        numbers, folds = self.numbers, self.numbers.n_folds
        own = one_hot(numbers.labels * folds + numbers.folds, numbers.weights, numbers.groups * folds)
        return self.node.family.count(numbers.values, own, None, self.node.setting)

    @cached_property
    def first(self) -> Twofold:
        return _split_folds(self.by_fold, self.numbers.n_folds).sum(1)

    @cached_property
    def hyper(self) -> Hyper:
        return node_hyper(self.node, self.prior, self.first)

    @cached_property
    def whole(self) -> Params:
        params = self.node.family.estimate(self.first, self.hyper, self.how)
        members = one_hot(self.numbers.labels, self.numbers.weights, self.numbers.groups)
        return params if self.node.family.facts.exact else self._iterate(params, members, self.steps[0])

    def expected_mean(self) -> float:
        """Estimate the mean score of held-out rows: the mean on the training rows minus parameters per row (Akaike)."""
        values, weights = self.numbers.values, self.numbers.weights
        free = count_free(self.node.family, self.node.setting, self.numbers.groups)
        return float(np.average(self._scores(self.whole, np.arange(len(values))), weights=weights)) - free / len(values)

    def held_out(self, best: np.ndarray | None = None) -> np.ndarray | None:
        """Return the cross-validated log-density of every row in its class.

        Return None if the first fold is clearly worse than under the `best` family so far.
        """
        scores = np.zeros(len(self.numbers.values))
        for fold, params in enumerate(self._without_own()):
            here = np.flatnonzero(self.numbers.folds == fold)
            scores[here] = self._scores(params, here)
            if fold == 0 and best is not None:
                less = best[here] - scores[here]
                if not float(less.mean()) <= SURE * float(less.std()) / np.sqrt(len(less)):
                    return None
        return scores

    def _without_own(self) -> Iterator[Params]:
        numbers, folds = self.numbers, self.numbers.n_folds
        if self.node.family.facts.exact:
            apart = _split_folds(self.by_fold, folds)
            for fold in range(folds):
                stats = apart.take(np.flatnonzero(np.arange(folds) != fold), 1).sum(1)
                yield self.node.family.estimate(stats, node_hyper(self.node, self.prior, stats), self.how)
            return
        members = np.repeat(one_hot(numbers.labels, numbers.weights, numbers.groups), folds, axis=1)
        members *= np.arange(numbers.groups * folds) % folds != numbers.folds[:, None]
        start = {name: np.repeat(value, folds, axis=0) for name, value in self.whole.items()}
        found = self._iterate(start, members, self.steps[1])
        yield from ({name: value[fold::folds] for name, value in found.items()} for fold in range(folds))

    def _iterate(self, params: Params, members: np.ndarray, steps: int) -> Params:
        family, values = self.node.family, self.numbers.values
        for _ in range(steps):
            params = family.estimate(family.count(values, members, params, self.node.setting), self.hyper, self.how)
        return params

    def _scores(self, params: Params, rows: np.ndarray) -> np.ndarray:
        family, values = self.node.family, self.numbers.values[rows]
        scored = family.density(params, self.node.setting).score(values)
        return np.asarray(scored[np.arange(len(rows)), self.numbers.labels[rows]] + family.base(values))


def _split_folds(stats: Twofold, folds: int) -> Twofold:
    """Reshape statistics by (class, fold) to have an axis for the folds."""
    shape = (stats.shape[0] // folds, folds, *stats.shape[1:])
    return stats.map(lambda half: half.reshape(shape))


# Choice of the density of a column by cross-validation: each family is fitted on four fifths of the rows and scored on
# the rest. One count gives all folds.

SAMPLE = 10_000
"""Target number of rows for the choice; larger tables use evenly spaced rows."""
TIE = 0.005
"""Nats per row by which a simpler family may be worse and still win, if that is within chance."""
LEAK = 1e-9
"""Maximum probability below zero of a density for non-negative numbers."""
SIMPLE = 3
"""Maximum number of parameters of a family in a mixture, whose classes explain several modes."""


@end_on_interrupt()
def choose_families(table: Table, plan: Plan, runner: Runner, known_classes: bool = True) -> tuple[Table, Plan]:
    """Choose a family for every undecided column; the schema gives the reason.

    In a mixture, all rows are used together, and only simple families are tried.
    """
    if not plan.declared.leaves_open:
        return table, plan
    return retry_wider(table, lambda t: _choose_families(t, plan, runner, known_classes), runner, known_classes)


def _choose_families(table: Table, plan: Plan, runner: Runner, known_classes: bool) -> tuple[Table, Plan]:
    rows = sample_rows(table.chunks(runner.map))
    if rows is None:
        return table, plan
    plans = {x.key: x for x in table.plans}
    how, prior = plan.em_how, plan.prior if isinstance(plan.prior, (int, float)) else 1.0
    found = {}
    for key, families in plan.declared.undecided(table.schema).items():
        numbers = rows.numbers(key, table.schema, known_classes)
        if len(numbers.values):
            found[key] = Contest(key, numbers, plans, how, prior).choose(families, known_classes)
    reasons = {key: (entry.plan, why) for key, (entry, why) in found.items() if entry.plan is not None}
    chosen = {key: entry.trial.node.family for key, (entry, _) in found.items()}
    forced: dict[Key, Any] = {key: family.facts.reads for key, family in chosen.items() if not isinstance(key, tuple)}
    declared = replace(
        plan.declared, families=plan.declared.families | chosen, forced=plan.declared.forced | forced,
        floors={key: entry.floor for key, (entry, _) in found.items()}, auto=frozenset(), all_auto=False,
    )  # fmt: skip
    return table.chosen(reasons), replace(plan, declared=declared)


# -- the rows used


class SampledRows(Struct, frozen=True, eq=False):
    """A sample of rows and the number of all rows. `least` and `whole` are of all rows.

    `least` is the smallest number of every column; `whole` tells whether all its numbers are integers.
    """

    reals: np.ndarray
    labels: np.ndarray | None
    weights: np.ndarray
    of: int
    least: np.ndarray
    whole: np.ndarray

    def numbers(self, key: Key, schema: Schema, known_classes: bool) -> Numbers:
        slots = [schema.places[column].slot for column in (key if isinstance(key, tuple) else (key,))]
        values = self.reals[:, slots]
        labelled = known_classes and self.labels is not None and bool((self.labels >= 0).any())
        labels = self.labels if labelled and self.labels is not None else np.zeros(len(values), dtype=int)
        kept = np.isfinite(values).any(axis=1) & ~np.isinf(values).any(axis=1) & (labels >= 0) & (self.weights > 0)
        _, groups = np.unique(labels[kept], return_inverse=True)
        column = values[kept] if isinstance(key, tuple) else values[kept, 0]
        part = f" ({len(self.reals):,} of {self.of:,} rows)" if len(self.reals) < self.of else ""
        least, whole = float(self.least[slots[0]]), bool(self.whole[slots[0]])
        all_labelled = labelled and bool(labels.min() >= 0)
        return Numbers(column, groups, self.weights[kept], least, whole, all_labelled, part)


def sample_rows(chunks: Iterable[Chunk]) -> SampledRows | None:
    """Return evenly spaced rows, at most `SAMPLE`; None if there are no rows."""
    parts: list[tuple[np.ndarray, ...]] = []
    every, rows, kept = 1, 0, 0
    least, whole = np.zeros(0), np.zeros(0, dtype=bool)
    for chunk in chunks:
        labels = np.full(chunk.n_rows, -1) if chunk.labels is None else chunk.labels
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        here = slice(-rows % every, None, every)
        parts.append((chunk.reals[here], labels[here], weights[here]))
        rows, kept = rows + chunk.n_rows, kept + len(parts[-1][1])
        lowest = np.where(np.isnan(chunk.reals), np.inf, chunk.reals).min(axis=0, initial=np.inf)
        plain = (np.isnan(chunk.reals) | (chunk.reals == np.floor(chunk.reals))).all(axis=0)
        least, whole = (lowest, plain) if not len(least) else (np.minimum(least, lowest), whole & plain)
        while kept >= 4 * SAMPLE:
            every *= 2
            joined = [np.concatenate(part)[::2] for part in zip(*parts, strict=True)]
            parts, kept = [tuple(joined)], len(joined[1])
    if not rows:
        return None
    reals, labels, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    thin = -(-len(reals) // SAMPLE)
    return SampledRows(reals[::thin], labels[::thin], weights[::thin], rows, least, whole)


# -- comparing families


class Entry(Struct, frozen=True, eq=False):
    """A family that was tried: its trial, and the held-out log-density of every row.

    `floor` is the minimum variance of a group as a share of the column's.
    """

    trial: FamilyTrial
    floor: float
    plan: ColumnPlan | None
    scores: np.ndarray

    @property
    def title(self) -> str:
        return family_title(self.trial.node.family)

    @property
    def size(self) -> int:
        return count_free(self.trial.node.family, self.trial.node.setting, 1)


class Contest(Struct, frozen=True, eq=False):
    """A column or block whose family is to be chosen.

    With `strict`, densities of non-negative numbers may not reach below 0. `steps` is as in `FamilyTrial`.
    """

    key: Key
    numbers: Numbers
    plans: Mapping[Key, ColumnPlan]
    how: How
    prior: float
    strict: bool = True
    steps: tuple[int, int] = (STEPS, FOLD_STEPS)

    def choose(self, families: Sequence[Family], known_classes: bool) -> tuple[Entry, str]:
        """Return the simplest family whose held-out likelihood is within chance of the best, and the reason."""
        kinds = [families] if families else candidates(self.numbers.facts)
        kept = [[x for x in kind if families or self._may_be(x, known_classes)] for kind in kinds]
        found: list[Entry] = []
        # Fast families first: slow ones need to be tried only as long as they may win.
        kinds = list(filter(None, kept))
        kinds.sort(key=lambda kind: 2 * kind[0].facts.counts_points or not kind[0].facts.exact)
        for kind in kinds:
            for family in kind:
                try:
                    entry = self.enter(family, max(found, key=self._mean, default=None))
                except DataError:  # the family cannot hold these numbers
                    entry = None
                found += [] if entry is None else [entry]
                if entry is None and not family.facts.exact:
                    break  # further ones of the same kind would not win either
        if not found:
            raise DataError(f"column {self.key!r}: no family of numbers fits it. Say what it is with kinds.")
        whole = self.numbers.values.ndim == 1 and self.numbers.facts.countable
        found.sort(key=lambda x: (x.size, x.trial.node.family.facts.kind.whole != whole))
        top = max(found, key=self._mean)
        won = top
        for entry in found:  # the simplest that is as good, within chance
            less = top.scores - entry.scores
            behind = float(np.average(less, weights=self.numbers.weights))
            if entry is top or behind <= min(TIE, float(less.std() / np.sqrt(len(less)))):
                won = entry
                break
        return won, self._why(won, found) + self.numbers.part

    def _may_be(self, family: Family, known_classes: bool) -> bool:
        """Return whether a family suits these rows, whose classes are known, partly known, or to be found.

        A mixture is fitted side by side only if all families allow it: with gamma columns, fitted one by one, crabs
        (200 x 5) took 24 s instead of 1.
        """
        if not known_classes:
            quick = family.facts.exact and family.facts.races and not family.facts.counts_points
            return quick and count_free(family, Setting(), 1) <= SIMPLE
        return self.numbers.labelled or not family.facts.needs_classes

    def _mean(self, entry: Entry) -> float:
        return float(np.average(entry.scores, weights=self.numbers.weights))

    def _why(self, won: Entry, found: list[Entry]) -> str:
        title, others = won.title, [x for x in found if x.title != won.title]
        if not others:
            return f"{title}: nothing else fits"
        plain = [x for x in others if x.title == "normal"]
        other = plain[0] if plain else max(others, key=self._mean)
        gain = self._mean(won) - self._mean(other)
        if gain < TIE:
            return f"{title}: as good as {other.title} on held-out rows"
        return f"{title}: {gain:.3g} nats per row better than {other.title} on held-out rows"

    def enter(self, family: Family, best: Entry | None = None) -> Entry | None:
        """Return the family's held-out scores; None if it leaks below zero or cannot beat the `best` so far.

        Raise DataError if the family cannot hold the numbers.
        """
        plan: ColumnPlan | None = None
        if isinstance(self.key, tuple):
            fields = [self.plans[column].field for column in self.key]
        else:
            kind: Any = family.facts.reads
            plan = self.plans[self.key].anchored(self.numbers.values).as_kind(kind, "")
            points = CountedPoints.of([self.numbers.values]) if family.facts.counts_points else plan.field.points
            fields = [replace(plan.field, points=points)]
        floor = _floor(family, self.numbers)
        family, setting = family.set_up(self.key, fields, self.numbers.groups, floor)
        family.check(self.numbers.values, self.key, 0)
        family.check(np.array([self.numbers.least]), self.key, 0)  # the least of all rows, not of the sample
        with np.errstate(all="ignore"):
            if not family.facts.exact:  # hidden values are replaced in the first pass
                blank = family.blank([self.numbers.values], [self.numbers.weights], setting, [self.numbers.labels])
                setting = replace(setting, blank=blank)
            node = Node(self.key, self.key if isinstance(self.key, tuple) else (self.key,), family, setting)
            trial = FamilyTrial(node, self.numbers, self.how, self.prior, self.steps)
            if not family.facts.counts_points and self._leaks(trial):
                return None
            if best is not None and not family.facts.exact and trial.expected_mean() <= self._mean(best):
                return None
            scores = trial.held_out(best.scores if best is not None and family.facts.counts_points else None)
        if scores is None:
            return None
        if family.facts.kind.whole and self.numbers.least == 0:
            # A recorded 0 was between 0 and half a step, so the density of a count is twice as high there.
            scores = scores + np.log(2.0) * (self.numbers.values == 0)
        return Entry(trial, floor, plan, np.where(np.isnan(scores), -np.inf, scores))

    def _leaks(self, trial: FamilyTrial) -> bool:
        if not self.strict or isinstance(self.key, tuple) or self.numbers.least < 0:
            return False
        family, setting = trial.node.family, trial.node.setting
        return bool(np.max(family.density(trial.whole, setting).cdf(-5e-324)) > LEAK)


def _floor(family: Family, numbers: Numbers) -> float:
    """Return the minimum variance of a group as a share of the column's: not below the rounding."""
    if numbers.values.ndim > 1:
        return 0.0
    if family.facts.kind.logged and numbers.least <= 0:
        return 0.0
    values, facts = numbers.values, family.facts
    values = values if facts.spike is None else np.where(values == facts.spike, np.nan, values)
    values = np.log(values) if facts.kind.logged or facts.logged else values
    there = np.isfinite(values)
    return least_share(values[there], numbers.weights[there]).share if there.any() else 0.0
