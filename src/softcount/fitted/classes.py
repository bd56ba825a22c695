"""Profiles of classes, typical rows and anomaly scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import ROOT, Counts, Twofold
from softcount.core.lazy import entr, xlogy
from softcount.core.special import softmax_rows
from softcount.families import Family, Hyper, Params
from softcount.families.density import Density, patterns
from softcount.families.learning import observed_rows
from softcount.families.setting import average_prior
from softcount.fitted.characteristic_words import characteristic_lines
from softcount.fitted.explain import measure_departures, pool_groups, sum_other_groups
from softcount.models.nodes import Node, refuse_families
from softcount.models.star import TILE
from softcount.run.local import Runner, Threads
from softcount.table import Chunk, Table
from softcount.table.cell_forms import write_cell
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.fitted.fitted import Fitted


class RowScores(Struct, frozen=True):
    """Class probabilities of rows (zeros if the row is impossible), log-densities and anomaly scores."""

    members: np.ndarray
    log_density: np.ndarray
    score: np.ndarray


class SurpriseMeter(Struct, frozen=True, eq=False):
    """A fitted model compiled for anomaly scores; `usual` is the average surprise of every leaf by group."""

    fitted: Fitted
    compiled: Any
    densities: dict[Key, Density]
    usual: dict[Key, np.ndarray]

    @classmethod
    def of(cls, fitted: Fitted) -> SurpriseMeter:
        refuse_families(fitted.model.leaves, "has no density to be surprised by")
        own = fitted.estimates
        densities = {leaf.key: leaf.density(own) for leaf in fitted.model.leaves}
        usual = {key: density.entropy() for key, density in densities.items()}
        return cls(fitted, fitted.model.compile(own), densities, usual)

    @property
    def _usual_class(self) -> float:
        return float(entr(self.fitted.shares).sum())

    def measure(self, chunk: Chunk) -> RowScores:
        star = self.fitted.model
        ready, columns = star.prepare(chunk), self._columns(chunk)
        members, evidence = softmax_rows(star.score(ready, self.compiled, slice(0, chunk.n_rows)))
        base: Any = ready.base
        if any(leaf.family.facts.counted for leaf in star.leaves):
            base = sum((_modelled_base(leaf.family, columns[leaf.key]) for leaf in star.leaves), 0.0)
        # The average surprise of the observed cells of each row: single cells in one product, blocks one by one.
        expected = np.broadcast_to(self.fitted.shares, members.shape)
        there, average, rest = [], [], []
        for leaf in star.leaves:
            cells = self.densities[leaf.key].there(columns[leaf.key])
            if cells is None:
                rest.append(self._usual_leaf(leaf, columns[leaf.key], members, expected))
            else:
                there.append(cells)
                average.append(self.usual[leaf.key])
        single: Any = 0.0
        if there:
            single = np.stack(there, axis=1).astype(np.float64) @ (np.stack(average) @ self.fitted.shares)
        score = -(evidence + base) - sum(rest, single) - self._usual_class
        return RowScores(members, evidence + ready.base, score)

    def reasons(self, chunk: Chunk) -> dict[Key, np.ndarray]:
        """Return the parts of each row's score: one per column or block of counts, and the class under `ROOT`."""
        star, shares, columns = self.fitted.model, self.fitted.shares, self._columns(chunk)
        ready = star.prepare(chunk, base=False)
        members, evidence = softmax_rows(star.score(ready, self.compiled, slice(0, chunk.n_rows)))
        members[np.isneginf(evidence)] = shares  # impossible in every class: fall back to the class shares
        with np.errstate(divide="ignore", invalid="ignore"):
            rare = xlogy(members, members) - xlogy(members, shares)
        parts: dict[Key, np.ndarray] = {ROOT: np.where(members > 0, rare, 0.0).sum(axis=1) - self._usual_class}
        scores = star.score_parts(self.compiled, ready)
        for leaf in star.leaves:
            parts |= self.reasons_of(leaf, columns[leaf.key], scores[leaf.key], members, shares)
        return parts

    def reasons_of(
        self, leaf: Node, column: Any, scores: np.ndarray, members: np.ndarray, expected: np.ndarray
    ) -> dict[Key, np.ndarray]:
        """Return a leaf's part of the score, by column if the family can split it.

        `expected` holds the class probabilities before the row is seen, one row of them or an array of the shape of
        `members`.
        """
        expected = np.broadcast_to(expected, members.shape)
        each = self.densities[leaf.key].surprise_by_column(column, members, expected)
        if each is not None:
            return dict(zip(leaf.columns, each.T, strict=True))
        density = scores + np.reshape(_modelled_base(leaf.family, column), (-1, 1))
        with np.errstate(invalid="ignore"):
            held = np.where(members > 0, members * density, 0.0).sum(axis=1)
        return {leaf.key: -held - self._usual_leaf(leaf, column, members, expected)}

    def _columns(self, chunk: Chunk) -> dict[Any, Any]:
        return {leaf.key: self.fitted.model.column(leaf, chunk) for leaf in self.fitted.model.leaves}

    def _usual_leaf(self, leaf: Node, column: Any, members: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Return the entropy of a leaf averaged over the expected classes.

        For words and counts the average is over the row's posterior classes. The number of words is not modelled, so a
        long text of a class with many words would otherwise seem odd.
        """
        density = self.densities[leaf.key]
        if leaf.family.facts.counted:
            return np.asarray(density.sizes(column) * (members @ self.usual[leaf.key]))
        there = density.there(column)
        if there is not None:
            return np.where(there, expected @ self.usual[leaf.key], 0.0)
        out = np.zeros(len(expected))
        for rows, present in patterns(density.present(column)):
            if present.any():
                out[rows] = expected[rows] @ density.entropy(present)
        return out


def _modelled_base(family: Family, column: Any) -> np.ndarray | float:
    """Return the part of the log-density that is equal in all groups; multinomial coefficients are not modelled."""
    return 0.0 if family.facts.counted else family.base(column)


def tiles(chunk: Chunk) -> Iterator[Chunk]:
    """Split a chunk into parts of a few thousand rows, so that rows x groups and rows x columns stay small."""
    for a in range(0, chunk.n_rows, TILE):
        yield part_of(chunk, slice(a, min(a + TILE, chunk.n_rows)))


def part_of(chunk: Chunk, rows: Any) -> Chunk:
    """Return some rows of a chunk, numbered from 0 and without labels."""
    return replace(chunk.take(rows), start=0, labels=None)


# Profiles, typical members and anomalies.

NO_VALUES = "no values"
NEVER_SEEN = "never seen"
"""Shown in place of an unseen category."""

# -- from the model alone


class ColumnContrast(Struct, frozen=True):
    """How far a column of a class differs from the whole table, with descriptions for this class and the others."""

    key: Key
    influence: float
    here: str
    elsewhere: str


class Card(Struct, frozen=True):
    """One class: its size, its typical row, and its differences from the whole table, largest first.

    `departure` is the sum over the columns of the divergence from the whole table, in nats.
    """

    name: Any
    share: float
    rows: float
    departure: float
    typical: dict[Key, Any]
    contrasts: list[ColumnContrast]

    def as_data(self, names: Mapping[Key, str]) -> dict[str, Any]:
        typical = {names[key]: value for key, value in self.typical.items()}
        contrasts = [{"column": names[x.key], "influence": x.influence, "here": x.here, "elsewhere": x.elsewhere}
                     for x in self.contrasts]  # fmt: skip
        figures = {"share": self.share, "rows": self.rows, "departure": self.departure}
        return {"class": self.name, **figures, "typical": typical, "contrasts": contrasts}


def describe(fitted: Fitted, key: Key, parameters: bool = False) -> list[str]:
    """Describe one column briefly for every group: its rows, or with `parameters` the estimated parameters."""
    leaf = fitted.model.nodes[key]
    if leaf.family.facts.words:
        return [own for own, _ in characteristic_lines(fitted, leaf)]
    estimates = fitted.estimates if parameters else None
    return _describe_leaf(fitted, leaf, methodcaller("describe"), NO_VALUES, fitted.counts, estimates)


def _describe_leaf(
    fitted: Fitted, leaf: Node, ask: Callable[[Density], list[Any]], nothing: Any, counts: Counts, estimates: Any
) -> list[Any]:
    """Describe the estimates of each group or, without them, the rows that were counted.

    Rows are described without a prior; a group without values gets `nothing`.
    """
    if estimates is not None:
        return ask(leaf.density(estimates))
    stats, family = counts.arrays[leaf.key], leaf.family
    hyper = fitted.imagined.hypers[leaf.key]
    alone = _estimate_rows(family, stats, hyper if len(stats.hi) == fitted.n_groups else average_prior(hyper))
    found = ask(family.density(alone, leaf.setting))
    return [
        nothing if observed_rows(family, rows[None]) == 0 else one for rows, one in zip(stats.hi, found, strict=True)
    ]


def _estimate_rows(family: Family, stats: Twofold, hyper: Hyper) -> Params:
    """Estimate from the rows alone: without a prior and, for a variance, without a floor, a known or a shared value."""
    if not family.facts.in_units:
        return family.estimate(stats, hyper, "ml")
    free = hyper | {name: np.zeros_like(hyper[name]) for name in ("floor", "known")}
    each = [family.estimate(stats[group : group + 1], free, "ml") for group in range(len(stats.hi))]
    return {name: np.concatenate([part[name] for part in each]) for name in each[0]}


def make_cards(fitted: Fitted, parameters: bool = False) -> list[Card]:
    """Return a card for every class, which describes its rows or, with `parameters`, its estimated parameters."""
    far, own = measure_departures(fitted), (fitted.counts, fitted.estimates if parameters else None)
    texts = [x for x in fitted.model.leaves if x.family.facts.words]
    words = {x.key: list(characteristic_lines(fitted, x)) for x in texts}
    plain = [x for x in fitted.model.leaves if x.key not in words]
    here = {x.key: _describe_leaf(fitted, x, methodcaller("describe"), NO_VALUES, *own) for x in plain}
    likely = {x.key: _describe_leaf(fitted, x, methodcaller("typical"), None, *own) for x in plain}
    here |= {key: [own for own, _ in pairs] for key, pairs in words.items()}
    likely = {x.key: [write_cell(x.setting.written, value) for value in likely[x.key]] for x in plain}
    typical = {x.key: likely.get(x.key, here[x.key]) for x in fitted.model.leaves}
    others = _elsewhere(fitted, words, parameters)
    shares = fitted.shares if parameters else fitted.row_shares
    return [
        Card(
            name,
            float(shares[g]),
            float(fitted.group_rows[g]),
            float(sum(values[g] for values in far.values())),
            {key: values[g] for key, values in typical.items()},
            sorted(
                (ColumnContrast(key, float(values[g]), here[key][g], there[key]) for key, values in far.items()),
                key=lambda item: -item.influence,
            ),
        )
        for g, (name, there) in enumerate(zip(fitted.names, others, strict=False))
    ]


def _elsewhere(fitted: Fitted, words: dict[Key, list[tuple[str, str]]], parameters: bool) -> Iterator[dict[Key, str]]:
    """Yield for each class a description of the columns in all other classes together."""
    plain = [leaf for leaf in fitted.model.leaves if leaf.key not in words]
    others = sum_other_groups(fitted) if plain else repeat(fitted.counts)
    for g, counts in zip(range(fitted.n_groups), others, strict=False):
        own = counts, pool_groups(fitted, counts) if parameters and plain else None
        described = {x.key: _describe_leaf(fitted, x, methodcaller("describe"), NO_VALUES, *own)[0] for x in plain}
        yield described | {key: pairs[g][1] for key, pairs in words.items()}


# -- from the rows of a table


class ClassMember(Struct, frozen=True):
    """A row, counted from 0, and the probability of its most probable class."""

    row: int
    probability: float


CERTAIN = float(np.log(999.0))
"""The log-odds of a probability of 0.999.

Rows above it are ranked by typicality instead, because an outlier can be the most certain row.
"""


class ClassMembers(Struct, frozen=True):
    """The rows of one class: their number, membership entropy, and the most and least certain rows.

    `entropy` is averaged over the class, in nats.
    """

    rows: float
    entropy: float
    most: list[ClassMember]
    least: list[ClassMember]


class Anomaly(Struct, frozen=True):
    """A row that fits badly: its score, its most probable class, and the parts of the score, largest first.

    The part of the class has the key `ROOT`.
    """

    row: int
    score: float
    log_density: float
    group: int
    probability: float
    parts: dict[Key, float]
    cells: dict[Key, Any]


class SortedTable(Struct, frozen=True):
    """A table sorted into classes. `entropy` is the rows' average membership entropy in nats.

    Rows that are impossible in every class belong to no class; `impossible` counts them, and they come first in
    `anomalies`.
    """

    rows: float
    entropy: float
    classes: list[ClassMembers]
    impossible: int
    anomalies: list[Anomaly]


def relative(entropy: float, groups: int) -> float:
    """Return entropy as a share of its maximum: 0 if every row is certain of its class, 1 if all classes are equal."""
    return entropy / float(np.log(groups)) if groups > 1 else 0.0


def sort_rows(fitted: Fitted, table: Table, threads: Threads, members: int = 3, anomalies: int = 10) -> SortedTable:
    """Find the most and least certain rows of every class and the rows that fit worst, in one pass.

    Only a few rows of each chunk are kept in memory.
    """
    meter = SurpriseMeter.of(fitted)

    def work(task: Callable[[], Chunk]) -> _ChunkPart:
        return _part(meter, task(), members, anomalies)

    parts, groups = list(threads.map(work, table.tasks())), fitted.n_groups
    sizes, members_of, unsure = sum((part.sums for part in parts), np.zeros((3, groups)))
    mass, entropy = float(sizes.sum()), sum(part.entropy for part in parts)
    figures = np.concatenate([NO_FIGURES, *(part.figures for part in parts)], axis=1)
    most, least, worst = _rank_rows(figures, groups, members, anomalies)
    classes = [
        ClassMembers(
            float(sizes[g]),
            float(unsure[g] / members_of[g]) if members_of[g] > 0 else 0.0,
            *([ClassMember(int(row), float(p)) for row, p in figures[[0, 4]][:, own[g]].T] for own in (most, least)),
        )
        for g in range(groups)
    ]
    impossible = sum(part.impossible for part in parts)
    odd = {row: part_of(part.worst, slice(k, k + 1)) for part in parts for k, row in enumerate(part.worst_rows)}
    found = [_explain_anomaly(meter, int(row), odd[int(row)]) for row in figures[0, worst]]
    return SortedTable(mass, entropy / mass if mass > 0 else 0.0, classes, impossible, found)


def anomaly_scores(fitted: Fitted, table: Table, runner: Runner) -> np.ndarray:
    """Return how much lower than usual each row's log-density is, in nats; infinite if the row is impossible."""
    meter = SurpriseMeter.of(fitted)

    def work(task: Callable[[], Chunk]) -> list[np.ndarray]:
        return [meter.measure(tile).score for tile in tiles(task())]

    parts = [part for found in runner.map(work, table.tasks()) for part in found]
    return np.concatenate([np.empty(0), *parts])


def membership_entropy(members: np.ndarray) -> np.ndarray:
    """Return the entropy of each row's class probabilities, in nats."""
    return np.asarray(entr(members).sum(axis=1))


class _ChunkPart(Struct, frozen=True):
    sums: np.ndarray  # (3, groups): weights by most probable group; of memberships, weights, and weights times entropy
    entropy: float
    figures: np.ndarray  # of the first rows: row, most probable group (-1: none), score, log-odds, probability
    impossible: int
    worst_rows: list[int]
    worst: Chunk


NO_FIGURES = np.empty((5, 0))


def _part(meter: SurpriseMeter, chunk: Chunk, members: int, anomalies: int) -> _ChunkPart:
    groups, entropy, parts, row = meter.fitted.n_groups, 0.0, [NO_FIGURES], chunk.start
    sums = np.zeros((3, groups))
    for tile in tiles(chunk):
        scores = meter.measure(tile)
        possible, best = scores.members.any(axis=1), scores.members.argmax(axis=1)
        weight = possible.astype(float) if tile.weights is None else np.where(possible, tile.weights, 0.0)
        own, top = membership_entropy(scores.members), scores.members[np.arange(len(best)), best]
        rest = np.where(np.arange(groups) == best[:, None], 0.0, scores.members).sum(axis=1)
        entropy += float(weight @ own)
        sums += [np.bincount(best, weight, minlength=groups), *(np.stack([weight, weight * own]) @ scores.members)]
        with np.errstate(divide="ignore", invalid="ignore"):
            margin = np.log(top) - np.log(rest)
        rows = row + np.arange(len(best))
        parts.append(np.stack([rows, np.where(possible, best, -1), scores.score, margin, top]))
        row += len(best)
    figures = np.concatenate(parts, axis=1)
    most, least, worst = _rank_rows(figures, groups, members, anomalies)
    kept = figures[:, np.unique(np.concatenate([*most, *least, worst]))]
    odd = (chunk.start + worst).tolist(), part_of(chunk, worst)
    return _ChunkPart(sums, entropy, kept, int(np.isposinf(figures[2]).sum()), *odd)


def _rank_rows(
    figures: np.ndarray, groups: int, members: int, anomalies: int
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Return the places of the most and of the least certain rows of each group, and of the rows that fit worst."""
    row, likeliest, score, surest, _ = figures

    def rank(places: np.ndarray, most: int, *by: np.ndarray) -> np.ndarray:
        return places[np.lexsort([value[places] for value in (row, *by[::-1])])][:most]

    inside, typical = [np.flatnonzero(likeliest == g) for g in range(groups)], np.minimum(surest, CERTAIN)
    most = [rank(places, members, -typical, score) for places in inside]
    least = [rank(places, members, surest, -score) for places in inside]
    return most, least, rank(np.arange(len(row)), anomalies, -score)


def _explain_anomaly(meter: SurpriseMeter, row: int, chunk: Chunk) -> Anomaly:
    """Return the score of the only row of a chunk, and its parts."""
    scores = meter.measure(chunk)
    reasons = {name: float(values[0]) + 0.0 for name, values in meter.reasons(chunk).items()}
    ranked = dict(sorted(reasons.items(), key=lambda item: -item[1]))
    group = int(scores.members[0].argmax())
    figures = float(scores.score[0]), float(scores.log_density[0]), group, float(scores.members[0, group])
    return Anomaly(row, *figures, ranked, cells(meter.fitted, chunk))


def cells(fitted: Fitted, chunk: Chunk, row: int = 0) -> dict[Key, Any]:
    """Return a row's values by column and block; None if missing."""
    leaves = fitted.model.leaves
    single: dict[Key, Any] = {}
    for column in (column for leaf in leaves for column in leaf.columns):
        store, slot = fitted.schema.places[column]
        spec = fitted.schema[column]
        if store == "bags":
            bag = chunk.bags[slot][[row]]
            ids = bag.indices[bag.indices > 0] - 1
            shown = " ".join(str(spec.levels[int(i)]) for i in ids[:8])
            single[column] = None if not bag.nnz else shown + (" ..." if len(ids) > 8 else "")
            continue
        value = getattr(chunk, store)[row, slot]
        if store == "reals":
            single[column] = None if np.isnan(value) else write_cell(spec.written, float(value))
        else:
            known = value <= len(spec.levels)
            single[column] = None if value == 0 else (spec.levels[value - 1] if known else NEVER_SEEN)
    blocks: dict[Key, Any] = {
        x.key: tuple(single[column] for column in x.columns) for x in leaves if x.columns != (x.key,)
    }
    return blocks | single
