"""The density of a column chosen by its own rows: each family worth trying is learned from four fifths of them and
scored on the rest, all folds from one count (decision 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.families import FAMILIES, Family, How, Setting
from softcount.learn.family_trial import FOLD_STEPS, STEPS, FamilyTrial, Numbers
from softcount.learn.plan import Plan, plug, retyping
from softcount.models.declared import Declared
from softcount.models.nodes import Node
from softcount.numerics.rounding import least_share
from softcount.records import dataclass
from softcount.run.base import Runner
from softcount.run.progress import interrupts_end
from softcount.table import Chunk, Table
from softcount.table.column_plan import ColumnPlan
from softcount.table.counted_points import CountedPoints
from softcount.table.schema import Key, Schema

SAMPLE = 10_000
"""Rows that choose; of more, evenly spaced ones."""
TIE = 0.005
"""Nats a row by which a simpler family may be worse and still win, if chance could make as much."""
LEAK = 1e-9
"""The probability of a number below zero up to which a density of numbers that are not is no worse for it."""
SIMPLE = 3
"""Parameters up to which a family is tried where classes are looked for: humps are then theirs to find."""


@interrupts_end()
def decided(table: Table, plan: Plan, runner: Runner, known_classes: bool = True) -> tuple[Table, Plan]:
    """The same with a family for every column whose density was left open; its schema says why.

    Where classes are looked for, all rows choose together, among simple families.
    """
    if not plan.declared.leaves_open:
        return table, plan
    return retyping(table, lambda t: _decided(t, plan, runner, known_classes), runner, known_classes)


def _decided(table: Table, plan: Plan, runner: Runner, known_classes: bool) -> tuple[Table, Plan]:
    rows = sampled(table.chunks(runner.map))
    if rows is None:
        return table, plan
    plans = {x.key: x for x in table.plans}
    how, prior = plug(plan.how), plan.prior if isinstance(plan.prior, (int, float)) else 1.0
    found = {}
    for key, families in plan.declared.undecided(table.schema).items():
        numbers = rows.numbers(key, table.schema, known_classes)
        if len(numbers.values):
            found[key] = Contest(key, numbers, plans, how, prior).choice(families, known_classes)
    said = {key: (choice.plan, choice.why) for key, choice in found.items() if choice.plan is not None}
    return table.chosen(said), replace(plan, declared=_with(plan.declared, found))


def _with(declared: Declared, found: Mapping[Key, Choice]) -> Declared:
    families = {key: choice.family for key, choice in found.items()}
    forced: dict[Key, Any] = {key: x.family.reads for key, x in found.items() if not isinstance(key, tuple)}
    floors = {key: choice.floor for key, choice in found.items()}
    return replace(
        declared, families=declared.families | families, forced=declared.forced | forced, floors=floors,
        auto=frozenset(), all_auto=False,
    )  # fmt: skip


# -- the rows that choose


@dataclass(frozen=True, slots=True, eq=False)
class SampledRows:
    """Some rows of a table, how many it has, and the least of every number and whether all are whole in all of them."""

    reals: np.ndarray
    labels: np.ndarray | None
    weights: np.ndarray
    of: int
    least: np.ndarray
    whole: np.ndarray

    def numbers(self, key: Key, schema: Schema, known_classes: bool) -> Numbers:
        """The rows that have a value of a column, or of some column of a block."""
        slots = [schema.places[column].slot for column in (key if isinstance(key, tuple) else (key,))]
        values = self.reals[:, slots]
        told = known_classes and self.labels is not None and bool((self.labels >= 0).any())
        labels = self.labels if told and self.labels is not None else np.zeros(len(values), dtype=int)
        kept = np.isfinite(values).any(axis=1) & ~np.isinf(values).any(axis=1) & (labels >= 0) & (self.weights > 0)
        _, groups = np.unique(labels[kept], return_inverse=True)
        column = values[kept] if isinstance(key, tuple) else values[kept, 0]
        part = f" ({len(self.reals):,} of {self.of:,} rows)" if len(self.reals) < self.of else ""
        least, whole = float(self.least[slots[0]]), bool(self.whole[slots[0]])
        all_told = told and bool(labels.min() >= 0)
        return Numbers(column, groups, self.weights[kept], least, whole, all_told, part)


def sampled(chunks: Iterable[Chunk]) -> SampledRows | None:
    """Evenly spaced rows of all chunks, between one and four times `SAMPLE` where there are more; None without any."""
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


# -- the contest


@dataclass(frozen=True, slots=True)
class Choice:
    """The family that a column gets, the least variance it may have as a share of the column's, and why."""

    family: Family
    floor: float
    plan: ColumnPlan | None
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A family that was tried: its trial, and the log-density of every row when it was held out."""

    trial: FamilyTrial
    floor: float
    plan: ColumnPlan | None
    scores: np.ndarray

    @property
    def title(self) -> str:
        return self.trial.node.family.title

    @property
    def size(self) -> int:
        """How many parameters a class has."""
        return self.trial.node.family.free(self.trial.node.setting, 1)


@dataclass(frozen=True, eq=False)
class Contest:
    """A column, or a block of columns, whose density is to be chosen.

    `strict`: no density of numbers of 0 or more may reach below 0. `steps` are those of EM, as in `FamilyTrial`.
    """

    key: Key
    numbers: Numbers
    plans: Mapping[Key, ColumnPlan]
    how: How
    prior: float
    strict: bool = True
    steps: tuple[int, int] = (STEPS, FOLD_STEPS)

    def choice(self, families: Sequence[Family], known_classes: bool) -> Choice:
        """The family with the best held-out likelihood, the simplest of those that are as good."""
        kinds = [families] if families else [kind.candidates(self.numbers.facts) for kind in FAMILIES.values()]
        kept = [[x for x in kind if families or self._may_be(x, known_classes)] for kind in kinds]
        found: list[Entry] = []
        for kind in sorted(filter(None, kept), key=lambda kind: _effort(kind[0])):
            for family in kind:
                try:
                    entry = self.enter(family, max(found, key=self._mean, default=None))
                except DataError:  # it cannot hold these numbers
                    entry = None
                found += [] if entry is None else [entry]
                if entry is None and not family.exact:
                    break  # more of the same would not win either
        if not found:
            raise DataError(f"column {self.key!r}: no family of numbers fits it. Say what it is with kinds.")
        whole = self.numbers.values.ndim == 1 and self.numbers.facts.countable
        found.sort(key=lambda x: (x.size, x.trial.node.family.whole_numbers != whole))
        top = max(found, key=self._mean)
        won = next(x for x in found if self._as_good(x, top))
        return Choice(won.trial.node.family, won.floor, won.plan, self._why(won, found) + self.numbers.part)

    def _may_be(self, family: Family, known_classes: bool) -> bool:
        """Whether a family is for these rows: of known class, of known class in part, or of classes to be found.

        Starts of a mixture are raced side by side only if all families allow it: with gamma columns, whose starts are
        climbed one by one, crabs (200 x 5) took 24 s instead of 1.
        """
        if not known_classes:
            return family.exact and family.races and not family.counts_points and family.free(Setting(), 1) <= SIMPLE
        return self.numbers.told or not family.needs_classes

    def _mean(self, entry: Entry) -> float:
        return float(np.average(entry.scores, weights=self.numbers.weights))

    def _as_good(self, entry: Entry, best: Entry) -> bool:
        if entry is best:
            return True
        less = best.scores - entry.scores
        behind = float(np.average(less, weights=self.numbers.weights))
        return behind <= min(TIE, float(less.std() / np.sqrt(len(less))))

    def _why(self, won: Entry, found: list[Entry]) -> str:
        title, others = won.title, [x for x in found if x.title != won.title]
        if not others:
            return f"{title}: nothing else fits"
        plain = [x for x in others if x.title == "normal"]
        other = plain[0] if plain else max(others, key=self._mean)
        gain = self._mean(won) - self._mean(other)
        if gain < TIE:
            return f"{title}: as good as {other.title} on rows held out"
        return f"{title}: {gain:.3g} nats a row better than {other.title} on rows held out"

    def enter(self, family: Family, best: Entry | None = None) -> Entry | None:
        """The family's scores of held-out rows; None if it leaks, or is hardly better than the `best` so far.

        A family that cannot hold the numbers raises a `DataError`.
        """
        plan, fields = self._fields(family)
        floor = _floor(family, self.numbers)
        family, setting = family.set_up(self.key, fields, self.numbers.groups, floor)
        for values in (self.numbers.values, np.array([self.numbers.least])):  # the least of all rows, not of some
            family.check(values, self.key, 0)
        node = Node(self.key, self.key if isinstance(self.key, tuple) else (self.key,), family, setting)
        with np.errstate(all="ignore"):
            trial = FamilyTrial(node, self.numbers, self.how, self.prior, self.steps)
            if not family.counts_points and self._leaks(trial):
                return None
            if best is not None and not family.exact and trial.hoped_for() <= self._mean(best):
                return None
            scores = trial.held_out(best.scores if best is not None and family.counts_points else None)
        if scores is None:
            return None
        if family.whole_numbers and self.numbers.least == 0:
            # What is written 0 was from 0 to half a step, so a count's probability is twice as dense there.
            scores = scores + np.log(2.0) * (self.numbers.values == 0)
        return Entry(trial, floor, plan, np.where(np.isnan(scores), -np.inf, scores))

    def _fields(self, family: Family) -> tuple[ColumnPlan | None, list[Any]]:
        if isinstance(self.key, tuple):
            return None, [self.plans[column].field for column in self.key]
        kind: Any = family.reads
        plan = self.plans[self.key].anchored(self.numbers.values).as_kind(kind, "")
        if not family.counts_points:
            return plan, [plan.field]
        return plan, [replace(plan.field, points=CountedPoints.of([self.numbers.values]))]

    def _leaks(self, trial: FamilyTrial) -> bool:
        """Whether a density of numbers none of which is below zero has some there."""
        if not self.strict or isinstance(self.key, tuple) or self.numbers.least < 0:
            return False
        family, setting = trial.node.family, trial.node.setting
        return bool(np.max(family.cdf(family.public(trial.whole, setting), -5e-324)) > LEAK)


def _effort(family: Family) -> int:
    """What is quick comes first: the rest need only be tried as far as it may win."""
    return 2 if family.counts_points else 1 if not family.exact else 0


def _floor(family: Family, numbers: Numbers) -> float:
    """The least variance of a group as a share of the column's: no density is narrower than the rounding."""
    if numbers.values.ndim > 1:
        return 0.0
    if family.logged and numbers.least <= 0:
        return 0.0
    values = np.log(numbers.values) if family.logged else family.transform(numbers.values)
    there = np.isfinite(values)
    return least_share(values[there], numbers.weights[there]).share if there.any() else 0.0
