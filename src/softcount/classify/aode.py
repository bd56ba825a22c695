"""Counts of AODE: how often every two cells occur together, which can be added and subtracted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify.encode import Binning, EncodedColumns, EncodedRows, find_midpoints
from softcount.classify.ensemble import Ensemble
from softcount.classify.features import PairCounts, Terms
from softcount.classify.members import Aode, Member, Tables, log_tables
from softcount.core.lazy import xlogy
from softcount.core.ranges import Floats, Positive
from softcount.table.schema import Key

MOST_BYTES = 1 << 26
"""Bytes of the counts of pairs; beyond, the columns of most categories depend on the class alone."""
LEAST_WEIGHT = 1e-6
"""Weight of a parent that carries no information on the class; one that carries a nat has 1."""


class AodeSetting(Struct, frozen=True):
    """Prior weight of every distribution, and whether a star is weighted by its parent's information on the class."""

    concentration: Positive = 1.0
    informed: bool = False


class AodeCounts(Struct, frozen=True, eq=False):
    """Counts of `pairs` of some columns, `single` (cells x classes) counts of all, and the classes' `sizes`."""

    cuts: Binning
    pairs: PairCounts
    single: Annotated[np.ndarray, Floats((None, "classes"), least=0.0)]
    sizes: Annotated[np.ndarray, Floats(("classes",), least=0.0)]
    setting: AodeSetting

    @classmethod
    def none(cls, cuts: Binning, classes: int, setting: AodeSetting) -> AodeCounts:
        """No row yet; decides which columns are counted in pairs."""
        cells, kept = 1, []
        for column in sorted(range(len(cuts.sizes)), key=lambda column: cuts.sizes[column]):
            if pair_bytes(cells + cuts.sizes[column], classes) > MOST_BYTES:
                break
            cells += cuts.sizes[column]
            kept.append(column)
        terms = Terms.of_columns(sorted(kept), cuts.sizes)
        pairs = PairCounts(terms, np.zeros((classes, terms.width, terms.width)))
        return cls(cuts, pairs, np.zeros((terms_of_all(cuts.sizes).width, classes)), np.zeros(classes), setting)

    def with_rows(self, rows: EncodedRows, labels: np.ndarray, weights: np.ndarray) -> AodeCounts:
        classes, codes = len(self.sizes), self.cuts.codes(rows)
        pairs = PairCounts.of(self.pairs.terms, codes, labels, weights, classes)
        single = terms_of_all(self.cuts.sizes).count_cells(codes, labels, weights, classes)
        sizes = np.bincount(labels, weights, minlength=classes)
        return replace(self, pairs=self.pairs + pairs, single=self.single + single, sizes=self.sizes + sizes)

    def add(self, other: AodeCounts, sign: float) -> AodeCounts:
        """The sum of both, or with a `sign` of -1 the difference; both are of the same cells."""
        single, sizes = self.single + sign * other.single, self.sizes + sign * other.sizes
        counts = np.maximum(self.pairs.counts + sign * other.pairs.counts, 0.0)
        pairs = replace(self.pairs, counts=counts)
        return replace(self, pairs=pairs, single=np.maximum(single, 0.0), sizes=np.maximum(sizes, 0.0))

    @property
    def unpaired(self) -> tuple[int, ...]:
        """Columns that depend on the class alone, because their pairs would take too much memory."""
        paired = {column for (column,) in self.pairs.terms.columns}
        return tuple(column for column, size in enumerate(self.cuts.sizes) if column not in paired and size > 1)

    def ensemble(self) -> Ensemble:
        """The ensemble of AODE and, of columns not counted in pairs, naive Bayes."""
        several = [place for place, (column,) in enumerate(self.pairs.terms.columns) if self.cuts.sizes[column] > 1]
        pairs = self.pairs.select(several)
        aode = Aode.estimate(self.cuts, pairs, self.sizes, self.setting.concentration)
        if self.setting.informed:
            own = np.diagonal(pairs.counts, axis1=1, axis2=2).T  # (cells x classes)
            starts = pairs.terms.offsets
            totals = np.add.reduceat(own, starts, axis=0)
            rows = np.maximum(totals.sum(axis=1), 1e-300)
            cells = np.add.reduceat(xlogy(own, own).sum(axis=1) - xlogy(*(own.sum(axis=1),) * 2), starts)
            weights = np.asarray((cells - xlogy(totals, totals).sum(axis=1) + xlogy(rows, rows)) / rows)
            each = np.repeat(np.log(np.maximum(weights, LEAST_WEIGHT)), pairs.terms.widths)
            aode = replace(aode, alone=aode.alone + np.concatenate([[0.0], each]))
        parts: list[Aode | Tables] = [aode]
        if self.unpaired:
            terms, cells = terms_of_all(self.cuts.sizes).select(self.unpaired)
            parts.append(Tables(self.cuts, terms, log_tables(self.single[cells], terms, self.setting.concentration)))
        nothing = np.zeros(len(self.sizes))
        return Ensemble(("AODE",), (Member(nothing, tuple(parts)),), np.ones(1), nothing)

    def rebase(self, old: EncodedColumns, new: EncodedColumns, groups: np.ndarray, classes: int) -> AodeCounts:
        """The counts with room for other columns and classes, of which `groups` are the present ones."""
        cuts = bin_columns(new, dict(zip(old.keys, self.cuts.edges, strict=False)))
        kept = {old.keys[column] for (column,) in self.pairs.terms.columns} | (set(new.keys) - set(old.keys))
        found = AodeCounts.none(cuts, classes, self.setting).select_pairs(kept, new)
        single, sizes = found.single.copy(), found.sizes.copy()
        every = _find_cells(old, terms_of_all(self.cuts.sizes), new, terms_of_all(cuts.sizes))
        single[np.ix_(every, groups)] += self.single
        single[0] = 0.0
        sizes[groups] += self.sizes
        mine = self.select_pairs(set(new.keys) & {new.keys[column] for (column,) in found.pairs.terms.columns}, old)
        pairs, cells = found.pairs.counts.copy(), _find_cells(old, mine.pairs.terms, new, found.pairs.terms)
        pairs[np.ix_(groups, cells, cells)] += mine.pairs.counts
        return replace(found, pairs=replace(found.pairs, counts=pairs), single=single, sizes=sizes)

    def select_pairs(self, keys: set[Key], columns: EncodedColumns) -> AodeCounts:
        """The counts with pairs of these columns alone."""
        kept = [k for k, (column,) in enumerate(self.pairs.terms.columns) if columns.keys[column] in keys]
        return replace(self, pairs=self.pairs.select(kept))


def terms_of_all(sizes: Sequence[int]) -> Terms:
    """A table for every column, even for one of a single cell."""
    return Terms.of_columns(range(len(sizes)), sizes)


def pair_bytes(cells: int, classes: int) -> int:
    return classes * cells * cells * 8


def bin_columns(columns: EncodedColumns, given: Mapping[Key, np.ndarray]) -> Binning:
    """Bins of numbers at these edges, one bin without edges; a bin for every category that is a number."""
    own = [given.get(key, np.zeros(0)) for key in columns.keys[: columns.measured]]
    valued = [columns.levels[key] for key in columns.keys[columns.measured : columns.numbers]]
    edges = (*own, *(find_midpoints(np.array(values, dtype=np.float64)) for values in valued))
    return Binning.of_edges(edges, columns.sizes)


def _find_cells(old: EncodedColumns, mine: Terms, new: EncodedColumns, others: Terms) -> np.ndarray:
    """For each cell of the tables of some columns, its place in the tables of other columns, which include these."""
    found = [np.zeros(1, dtype=np.int64)]
    offsets = {new.keys[column]: offset for (column,), offset in zip(others.columns, others.offsets, strict=True)}
    for (column,) in mine.columns:
        key, own = old.keys[column], np.arange(mine.sizes[column])
        if key in old.levels:
            places = {level: place for place, level in enumerate(new.levels[key])}
            own = np.array([places[level] for level in old.levels[key]], dtype=np.int64)
        found.append(own + offsets[key])
    return np.concatenate(found)
