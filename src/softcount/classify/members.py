"""Members of the ensemble: naive Bayes tables, discriminant analysis, AODE, additive logistic model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify.encode import (
    FEW_VALUES,
    Binning,
    EncodedColumns,
    EncodedRows,
    NumberScale,
    WordScale,
    column_moments,
)
from softcount.classify.features import Indicators, PairCounts, Terms
from softcount.classify.formulas import AodeMean, column_code, look_up_terms, standardise
from softcount.classify.logistic import expand_classes
from softcount.core.formulas import (
    Apply,
    BlockDensity,
    Formula,
    LookUp,
    WordsCode,
    formula,
    largest,
    log,
    normal_density,
    unless_missing,
)
from softcount.core.special import log_of, log_sum_exp, times_log
from softcount.table.discretise import PointTable, by_class_each
from softcount.table.schema import Key


def log_class_shares(sizes: np.ndarray) -> np.ndarray:
    """Logarithms of the class shares with a pseudo-count of half a row per class."""
    return np.asarray(np.log((sizes + 0.5) / (sizes + 0.5).sum()))


# Discriminant analysis: a normal distribution per class, its covariance shrunk towards simpler ones.

IMAGINED = 2.0
"""Prior rows of the common covariance in every class."""
SMALLEST = 1e-6
"""Least variance in any direction, in units of the columns' own."""


class BlockMoments(Struct, frozen=True, eq=False):
    """Weight, mean and sum of outer products of standardised numbers per class; missing values count as class means."""

    scale: NumberScale
    weights: np.ndarray
    means: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> BlockMoments:
        scale = NumberScale.by_class(numbers, labels, weights, classes)
        rows = scale.of(numbers)
        width = numbers.shape[1]
        means, products, sizes = np.zeros((classes, width)), np.zeros((classes, width, width)), np.zeros(classes)
        for label in range(classes):
            own, heavy = rows[labels == label], weights[labels == label]
            there = ~np.isnan(own)
            counted = heavy @ there
            sums = heavy @ np.where(there, own, 0.0)
            means[label] = sums / np.where(counted > 0, counted, 1.0)
            apart = np.where(there, own - means[label], 0.0)
            products[label] = (apart * heavy[:, None]).T @ apart
            sizes[label] = heavy.sum()
        return cls(scale, sizes, means, products)

    def shrunk(self, tied: float, straight: float) -> ShrunkBlock:
        """Normals with a share `tied` of the common covariance, their correlations reduced by the share `straight`."""
        common = self.products.sum(axis=0) / max(float(self.weights.sum()), 1.0)
        own = (self.products + IMAGINED * common) / (self.weights + IMAGINED)[:, None, None]
        found = (1.0 - tied) * own + tied * common
        found = (1.0 - straight) * found
        diagonal = np.arange(found.shape[1])
        found[:, diagonal, diagonal] /= 1.0 - straight
        found[:, diagonal, diagonal] += SMALLEST
        return ShrunkBlock(self.scale, self.means, found)


class ShrunkBlock(Struct, frozen=True, eq=False, tag_field="kind", tag="block"):
    """Means and covariances of the classes in standardised units; missing numbers are integrated out."""

    scale: NumberScale
    means: np.ndarray
    covariances: np.ndarray

    def scores(self, numbers: np.ndarray) -> np.ndarray:
        """(rows x classes) log-densities up to a constant."""
        found = np.zeros((len(numbers), len(self.means)))
        for rows, columns, part in self._patterns(numbers):
            own, constants = part._complete(numbers[np.ix_(rows, columns)])
            found[rows] = own.sum(axis=2).T + constants
        return found

    def parts(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) contributions of the numbers, and (rows x classes) what no number adds.

        A product of two deviations is shared equally by their columns.
        """
        found = np.zeros((*numbers.shape, len(self.means)))
        rest = np.zeros((len(numbers), len(self.means)))
        for rows, columns, part in self._patterns(numbers):
            own, constants = part._complete(numbers[np.ix_(rows, columns)])
            found[np.ix_(rows, columns)] = own.transpose(1, 2, 0)
            rest[rows] = constants
        return found, rest

    def formula(self, keys: tuple[Key, ...], weight: float) -> list[Formula]:
        form = {"mean": self.means, "covariance": self.covariances}
        cells = tuple(standardise(self.scale, place, key) for place, key in enumerate(keys))
        return [BlockDensity(form, keys, cells) * weight] if keys else []

    def _patterns(self, numbers: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, ShrunkBlock]]:
        """Rows with the same known columns, and the block of these columns."""
        there = ~np.isnan(numbers)
        if there.all():
            yield np.arange(len(numbers)), np.arange(numbers.shape[1]), self
            return
        patterns, which = np.unique(there, axis=0, return_inverse=True)
        for place, pattern in enumerate(patterns):
            columns = np.flatnonzero(pattern)
            if len(columns):
                kept = self.covariances[:, columns[:, None], columns]
                part = ShrunkBlock(self.scale.select(columns), self.means[:, columns], kept)
                yield np.flatnonzero(which.ravel() == place), columns, part

    def _complete(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(classes x rows x columns) contributions of the numbers, and (classes) constants."""
        apart = self.scale.of(numbers) - self.means[:, None]
        roots = np.linalg.cholesky(self.covariances)
        constants = -np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        return -0.5 * apart * np.linalg.solve(self.covariances, apart.mT).mT, constants


class SeparateNormals(Struct, frozen=True, eq=False, tag_field="kind", tag="normals"):
    """A normal for every number and class in standardised units; a missing number adds nothing."""

    scale: NumberScale
    means: np.ndarray  # (classes x numbers)
    variances: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> SeparateNormals:
        """Every class gets one prior row of the common variance."""
        scale = NumberScale.by_class(numbers, labels, weights, classes)
        rows = scale.of(numbers)
        there = ~np.isnan(rows)
        filled = np.where(there, rows, 0.0)
        own = np.where(labels[:, None] == np.arange(classes), weights[:, None], 0.0).T  # (classes x rows)
        counted = own @ there
        means = own @ filled / np.where(counted > 0, counted, 1.0)
        squares = own @ np.where(there, (filled - means[labels]) ** 2, 0.0)
        common = squares.sum(axis=0) / np.maximum(counted.sum(axis=0), 1.0)
        return cls(scale, means, (squares + common) / (counted + 1.0) + SMALLEST)

    def scores(self, numbers: np.ndarray) -> np.ndarray:
        """(rows x classes) log-densities up to a constant."""
        rows = self.scale.of(numbers)
        there, precision = ~np.isnan(rows), 1.0 / self.variances
        filled = np.where(there, rows, 0.0)
        squares = filled**2 @ precision.T - 2.0 * filled @ (self.means * precision).T
        return np.asarray(-0.5 * (squares + there @ (self.means**2 * precision + np.log(self.variances)).T))

    def parts(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) contributions of the numbers, and (rows x classes) zeros."""
        rows = self.scale.of(numbers)[:, :, None]
        found = -0.5 * ((rows - self.means.T) ** 2 / self.variances.T + np.log(self.variances.T))
        return np.where(np.isnan(rows), 0.0, found), np.zeros((len(numbers), len(self.means)))

    def formula(self, keys: tuple[Key, ...], weight: float) -> list[Formula]:
        deviations = np.sqrt(self.variances)
        bells = [
            normal_density(standardise(self.scale, place, key), self.means[:, place], deviations[:, place])
            for place, key in enumerate(keys)
        ]
        return [unless_missing(key, bell * weight) for key, bell in zip(keys, bells, strict=True)]


# Training rows, with what several members share: bins, codes, counts of pairs.

FARTHEST = 6.0
"""Deviations from the mean at which a slope stops adding."""
MOST_JOINT = 64
"""Classes times bins of a partner within which a number is discretised."""
LEAST_GAIN = 0.01
"""Interaction information, in nats per row, for a number to be discretised within the bins of a partner."""
MOST_EDGES = 20
"""Edges of a number within the bins of a partner."""
MOST_CELLS = 1200
"""Cells of all columns together up to which all pairs of them are counted."""
PAIR_COUNTS, COUNTS_PER_PAIR, MOST_PAIR_COUNTS = 1 << 20, 4.0, 1 << 24
"""Counts of all pairs of cells in all classes: any table may have the first, and more only if its rows fill them.

They may be `COUNTS_PER_PAIR` times as many as the rows hold pairs of cells. Columns of 30 categories in 358 rows would
have 15 times as many, and take most of the time of a fit to learn nothing.
"""


class Training(Struct, frozen=True, eq=False, dict=True):
    """Labelled rows, and all that the members derive from them; held-out rows are never looked at."""

    rows: EncodedRows
    labels: np.ndarray
    weights: np.ndarray
    classes: int
    levels: tuple[int, ...]
    measured: int | None = None
    """How many of the numbers, which come first, are not categories taken as numbers; None: all."""
    given_cuts: Binning | None = None

    def take(self, some: np.ndarray) -> Training:
        return replace(self, rows=self.rows.take(some), labels=self.labels[some], weights=self.weights[some])

    @cached_property
    def sizes(self) -> np.ndarray:
        """The weight of the rows of each class."""
        return np.bincount(self.labels, self.weights, minlength=self.classes)

    @cached_property
    def shares(self) -> np.ndarray:
        return log_class_shares(self.sizes)

    @cached_property
    def cuts(self) -> Binning:
        if self.given_cuts is not None:
            return self.given_cuts
        return Binning.learned(self.rows, self.labels, self.weights, self.levels)

    @cached_property
    def finer(self) -> Training:
        """A copy of the rows with numbers discretised finely enough for pairs."""
        cuts = self.cuts.finer(self.rows, self.weights)
        found = self if cuts is self.cuts else replace(self, given_cuts=cuts)
        if not found.countable or found is self:
            return self
        return found.partnered([k for k, edges in enumerate(cuts.edges) if edges is not self.cuts.edges[k]])

    def partnered(self, numbers: Sequence[int]) -> Training:
        """Discretise some numbers where the class shares change within the bins of a partner, if that tells more.

        The partner is the column with the highest interaction information. On a chequerboard no edge divides the
        classes, but within a row of it every border does.
        """
        before = self.synergy
        least, most = LEAST_GAIN * self.weights.sum(), MOST_JOINT // self.classes
        partners = {k: before[k][0] for k in numbers if k in before and before[k][1] > least}
        partners = {k: partner for k, partner in partners.items() if self.cuts.sizes[partner] <= most}
        edges = zip(partners, by_class_each(self._joint_points(*pair) for pair in partners.items()), strict=True)
        kept = {number: own for number, own in edges if 0 < len(own) <= MOST_EDGES}
        tried = self._cut_at(kept)
        if tried is self or not tried.countable:
            return self
        after = tried.synergy
        found = self._cut_at({k: own for k, own in kept.items() if k in after and after[k][1] > before[k][1]})
        return found if found.countable else self

    def _joint_points(self, number: int, partner: int) -> PointTable:
        """Values of a number by class and bin of its partner."""
        column, bins = self.rows.numbers[:, number], self.codes[:, partner]
        known = np.flatnonzero(~np.isnan(column) & (bins > 0))
        joint = (bins[known] - 1) * self.classes + self.labels[known]
        return PointTable.of(column[known], joint, self.weights[known], self.cuts.sizes[partner] * self.classes)

    def _cut_at(self, edges: Mapping[int, np.ndarray]) -> Training:
        if not edges:
            return self
        own = tuple(edges.get(number, before) for number, before in enumerate(self.cuts.edges))
        return replace(self, given_cuts=self.cuts.with_edges(own))

    @cached_property
    def interaction(self) -> np.ndarray:
        """(columns x columns) interaction information: nats on the class that two columns carry beyond each alone."""
        within, over = self.pairs.information()
        return np.asarray(within - over)

    @cached_property
    def synergy(self) -> dict[int, tuple[int, float]]:
        """By column, its partner of highest interaction information, and how many nats that is."""
        interaction = self.interaction.copy()
        np.fill_diagonal(interaction, -np.inf)
        columns, best = [column for (column,) in self.terms.columns], interaction.argmax(axis=1)
        return {c: (columns[b], float(interaction[k, b])) for k, (c, b) in enumerate(zip(columns, best, strict=True))}

    @cached_property
    def codes(self) -> np.ndarray:
        return self.cuts.codes(self.rows)

    @cached_property
    def terms(self) -> Terms:
        """Tables of the columns in which these rows hold at least two bins or categories."""
        whole = Terms.single(self.cuts.sizes)
        least = np.where(self.codes > 0, self.codes, np.iinfo(self.codes.dtype).max).min(
            axis=0, initial=np.iinfo(self.codes.dtype).max
        )
        several = self.codes.max(axis=0, initial=0) > least
        return Terms(tuple(term for term in whole.columns if several[term[0]]), self.cuts.sizes)

    @property
    def countable(self) -> bool:
        """Whether there are at least two columns, and few enough cells to count all pairs."""
        columns, counts = len(self.terms.columns), self.classes * self.terms.width**2
        room = max(PAIR_COUNTS, COUNTS_PER_PAIR * float(self.weights.sum()) * columns**2)
        return columns > 1 and self.terms.width <= MOST_CELLS and counts <= min(room, MOST_PAIR_COUNTS)

    @cached_property
    def pairs(self) -> PairCounts:
        return PairCounts.of(self.terms, self.codes, self.labels, self.weights, self.classes)

    @cached_property
    def tables(self) -> np.ndarray:
        """(cells x classes) weight of the rows in each cell of the single columns."""
        return self.count_cells(self.terms, self.codes)

    def count_cells(self, terms: Terms, codes: np.ndarray) -> np.ndarray:
        return terms.count_cells(codes, self.labels, self.weights, self.classes)

    @cached_property
    def smooth(self) -> np.ndarray:
        """Numbers with more than FEW_VALUES distinct values."""
        return np.flatnonzero(
            [len(np.unique(column[~np.isnan(column)])) > FEW_VALUES for column in self.rows.numbers.T]
        )

    @cached_property
    def scale(self) -> NumberScale:
        numbers = self.rows.numbers
        return NumberScale(np.zeros(numbers.shape[1]), *column_moments(numbers, self.weights))

    @cached_property
    def moments(self) -> BlockMoments:
        return BlockMoments.of(self.rows.numbers[:, self.smooth], self.labels, self.weights, self.classes)

    @cached_property
    def rarity(self) -> WordScale:
        return WordScale.learned(self.rows, self.weights)


def log_tables(counts: np.ndarray, terms: Terms, concentration: float | np.ndarray = 1.0) -> np.ndarray:
    """(cells x classes) log-probability of every cell of a column within a class; 0 for missing cells.

    Every column has a prior weight of `concentration`, spread evenly over its cells.
    """
    widths = terms.widths
    totals = np.repeat(np.add.reduceat(counts, terms.offsets, axis=0), widths, axis=0) if len(widths) else counts[1:]
    each = np.repeat(np.broadcast_to(concentration, widths.shape), widths)[:, None]
    even = each / np.repeat(widths, widths)[:, None]
    return np.vstack([np.zeros(counts.shape[1]), np.log(counts[1:] + even) - np.log(totals + each)])


# Members. Each scores rows and splits its scores by column.


def indicators(cuts: Binning, terms: Terms, rows: EncodedRows) -> Indicators:
    return rows.cached((cuts, terms), lambda: terms.indicators(cuts.codes(rows)))


def clip_deviations(scale: NumberScale, numbers: np.ndarray) -> np.ndarray:
    """(rows x numbers) deviations, 0 if missing, bounded so that an outlier does not decide alone."""
    return np.asarray(np.nan_to_num(np.clip(scale.of(numbers), -FARTHEST, FARTHEST), nan=0.0))


class Additive(Struct, frozen=True, eq=False, tag_field="kind", tag="tables"):
    """The additive logistic model: a table per column and for some pairs, and a slope per number.

    The first row of `coefficients` is the intercept, then come the tables, then the slopes; of two classes there is one
    column, for the second against the first.
    """

    cuts: Binning
    terms: Terms
    scale: NumberScale
    coefficients: np.ndarray

    @property
    def by_column(self) -> bool:
        return all(len(term) == 1 for term in self.terms.columns)

    def scores(self, rows: EncodedRows) -> np.ndarray:
        tables, slopes = np.split(self.coefficients[1:], [self.terms.width])
        found = indicators(self.cuts, self.terms, rows).product(tables) + self._numbers(rows) @ slopes
        return expand_classes(found + self.coefficients[0])

    def _numbers(self, rows: EncodedRows) -> np.ndarray:
        if len(self.coefficients) == 1 + self.terms.width:
            return np.zeros((len(rows), 0))
        return rows.cached((self.scale,), lambda: clip_deviations(self.scale, rows.numbers))

    def parts(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """The contribution of a pair is shared equally by its columns."""
        coefficients = expand_classes(self.coefficients)
        width = len(self.cuts.sizes)
        found = np.zeros((len(rows), width, coefficients.shape[1]))
        places = self.terms.places(self.cuts.codes(rows))
        for place, term in enumerate(self.terms.columns):
            own = coefficients[1 + places[:, place]] / len(term)
            for column in term:
                found[:, column] += own
        numbers = self._numbers(rows)
        for column in range(numbers.shape[1]):
            found[:, column] += numbers[:, column, None] * coefficients[1 + self.terms.width + column]
        return found, np.tile(coefficients[0], (len(rows), 1))

    def formula(self, columns: EncodedColumns, weight: float) -> list[Formula]:
        coefficients = weight * expand_classes(self.coefficients)
        found = [formula(coefficients[0]), *look_up_terms(columns, self.cuts, self.terms, coefficients[1:])]
        for place, slope in enumerate(coefficients[1 + self.terms.width :]):
            key = columns.keys[place]
            found.append(unless_missing(key, standardise(self.scale, place, key, FARTHEST) * slope))
        return found


class NormalsAndTables(Struct, frozen=True, eq=False, tag_field="kind", tag="block"):
    """Some numbers as normals, correlated or not, and every other column as a table."""

    cuts: Binning
    terms: Terms
    tables: np.ndarray  # (cells x classes) log-probabilities
    columns: np.ndarray  # the numbers of the block
    block: ShrunkBlock | SeparateNormals
    shares: np.ndarray

    @property
    def by_column(self) -> bool:
        return isinstance(self.block, SeparateNormals)

    def scores(self, rows: EncodedRows) -> np.ndarray:
        own = indicators(self.cuts, self.terms, rows).product(self.tables)
        return np.asarray(self.block.scores(rows.numbers[:, self.columns]) + own + self.shares)

    def parts(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        found = np.zeros((len(rows), len(self.cuts.sizes), len(self.shares)))
        own, rest = self.block.parts(rows.numbers[:, self.columns])
        found[:, self.columns] = own
        places = self.terms.places(self.cuts.codes(rows))
        for place, (column,) in enumerate(self.terms.columns):
            found[:, column] += self.tables[places[:, place]]
        return found, rest + self.shares

    def formula(self, columns: EncodedColumns, weight: float) -> list[Formula]:
        tables = look_up_terms(columns, self.cuts, self.terms, weight * self.tables)
        keys = tuple(columns.keys[place] for place in self.columns.tolist())
        return [formula(weight * self.shares), *tables, *self.block.formula(keys, weight)]


class Aode(Struct, frozen=True, eq=False, tag_field="kind", tag="stars"):
    """Log-probabilities of AODE: `shares` (classes), `alone` (classes x cells), `given` (classes x cells x cells of the
    parent).

    Missing cells add nothing, and a missing column is no parent.
    """

    cuts: Binning
    terms: Terms
    shares: np.ndarray
    alone: np.ndarray
    given: np.ndarray

    @classmethod
    def estimate(cls, cuts: Binning, counts: PairCounts, sizes: np.ndarray, concentration: float = 1.0) -> Aode:
        """`sizes`: weight of the rows of each class; `concentration`: prior weight of every distribution."""
        terms, starts = counts.terms, counts.terms.offsets
        if not len(starts):
            none = np.zeros((len(sizes), 1))
            return cls(cuts, terms, log_class_shares(sizes), none, none[:, :, None])
        widths = terms.widths
        even = np.concatenate([[0.0], np.repeat(concentration / widths, widths)])
        column = np.concatenate([[0], np.repeat(np.arange(len(starts)), widths)])
        own = np.diagonal(counts.counts, axis1=1, axis2=2)
        known = np.add.reduceat(own, starts, axis=1)[:, column]
        # The weight of the rows that hold a cell and in which another column is known.
        pairs = np.add.reduceat(counts.counts, starts, axis=2)[:, :, column]
        alone = log_of(own + even) - log_of(known + concentration)
        given = log_of(counts.counts + even) - log_of(pairs + concentration)
        for array in (alone, given):
            array[..., 0] = 0.0
        given[:, 0] = 0.0
        for start, width in zip(starts.tolist(), widths.tolist(), strict=True):
            given[:, start : start + width, start : start + width] = 0.0  # a column says nothing of itself
        return cls(cuts, terms, log_class_shares(sizes), alone, given.transpose(0, 2, 1))

    @property
    def by_column(self) -> bool:
        return False

    def joint_scores(self, codes: np.ndarray) -> np.ndarray:
        """(rows x parents x classes) log-probability of class and row under every parent; -inf if it is missing."""
        cells = self.terms.indicators(codes)
        places = cells.places.T
        found = np.empty((*places.shape, len(self.shares)))
        for label, (share, alone, given) in enumerate(zip(self.shares, self.alone, self.given, strict=True)):
            sums = cells.product(given)  # (rows x cells of a parent)
            found[:, :, label] = share + alone[places] + np.take_along_axis(sums, places, axis=1)
        found[places == 0] = -np.inf
        return found

    def scores(self, rows: EncodedRows) -> np.ndarray:
        """(rows x classes) logarithm of the mean over the parents; the class shares if all are missing."""
        codes = self.cuts.codes(rows)
        stars, alone = self.joint_scores(codes), np.tile(self.shares, (len(codes), 1))
        if not stars.shape[1]:
            return alone
        there = np.isfinite(stars[:, :, 0]).sum(axis=1)
        mean = log_sum_exp(stars, axis=1) - np.log(np.maximum(there, 1))[:, None]
        return np.where((there > 0)[:, None], mean, alone)

    def parts(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) contributions of the columns, and (rows x classes) what no column adds.

        The logarithm of a sum is the mean of the terms' logarithms, weighted by their shares of the sum, plus the
        entropy of these shares, which belongs to no column.
        """
        codes = self.cuts.codes(rows)
        stars, places = self.joint_scores(codes), self.terms.places(codes)
        found = np.zeros((len(codes), len(self.terms.sizes), len(self.shares)))
        rest = np.tile(self.shares, (len(codes), 1))
        some = np.flatnonzero((places > 0).any(axis=1))
        columns = np.array([column for (column,) in self.terms.columns], dtype=np.intp)
        here, shares = places[some], np.exp(stars[some] - np.asarray(log_sum_exp(stars[some], axis=1))[:, None])
        for label, (alone, given) in enumerate(zip(self.alone, self.given, strict=True)):
            own = shares[:, :, label]
            each = given[here[:, :, None], here[:, None, :]]  # (rows x columns x parents)
            found[some[:, None], columns, label] = alone[here] * own + np.einsum("rcp,rp->rc", each, own)
            rest[some, label] -= times_log(own).sum(axis=1) + np.log((here > 0).sum(axis=1))
        return found, rest

    def formula(self, columns: EncodedColumns, weight: float) -> list[Formula]:
        codes = tuple(column_code(columns, column, self.cuts) for (column,) in self.terms.columns)
        return [AodeMean(codes, self.terms, self.shares, self.alone, self.given) * weight]


# A member for text columns.


SHORTEST = 0.25
"""The square of a document's length, below any that has a word: what weighs least is log(2) squared, or .48."""


class WordModel(Struct, frozen=True, eq=False, tag_field="kind", tag="words"):
    """A coefficient for every word of every text and for the lengths of the texts.

    The first row of `coefficients` is the intercept, then come the columns of all bags, then the lengths; of two
    classes there is one column, for the second against the first.
    """

    scale: WordScale
    coefficients: np.ndarray

    @property
    def by_column(self) -> bool:
        return True

    @property
    def lengths(self) -> np.ndarray:
        return self.coefficients[1 + self.scale.width :]

    def scores(self, rows: EncodedRows) -> np.ndarray:
        words = self.scale.words(rows) @ self.coefficients[1 : 1 + self.scale.width]
        return expand_classes(np.asarray(words) + self.scale.lengths(rows) @ self.lengths + self.coefficients[0])

    def parts(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """Contributions of the texts; those of other columns are 0."""
        lengths, first = self.scale.lengths(rows), rows.plain_columns
        found = np.zeros((len(rows), first + len(rows.bags), len(expand_classes(self.coefficients[:1])[0])))
        each = self.scale.of_each(self.coefficients[1 : 1 + self.scale.width])
        for text, (bag, own) in enumerate(zip(rows.bags, each, strict=True)):
            words = np.asarray(self.scale.weighed(text, bag) @ own)
            found[:, first + text] = expand_classes(words + lengths[:, text, None] * self.lengths[text])
        return found, np.tile(expand_classes(self.coefficients[:1]), (len(rows), 1))

    def word_parts(self, text: int, bag: Any) -> np.ndarray:
        """(cells x classes) contribution of each cell of a text's bag."""
        own = self.scale.of_each(self.coefficients[1 : 1 + self.scale.width])[text]
        return expand_classes(self.scale.weighed(text, bag).data[:, None] * own[bag.indices])

    def formula(self, columns: EncodedColumns, weight: float) -> list[Formula]:
        scale = self.scale
        found: list[Formula] = [formula(weight * expand_classes(self.coefficients[:1])[0])]
        each = scale.of_each(expand_classes(self.coefficients)[1 : 1 + scale.width])
        for place, key in enumerate(columns.texts):
            factors, coefficients = scale.factors[place][1:, None], weight * each[place][1:]
            if scale.counts:
                found.append(LookUp(WordsCode(key, "times"), coefficients * factors))
                continue
            words = LookUp(WordsCode(key, "log"), coefficients * factors)
            squares = largest([LookUp(WordsCode(key, "square"), factors**2), formula(SHORTEST)])
            found.append(words * Apply("exp", (log(squares / SHORTEST) * -0.5,)) * SHORTEST**-0.5)
            slopes = weight * expand_classes(self.lengths)[place]
            if slopes.any():
                words = LookUp(WordsCode(key, "times"), (scale.factors[place][1:, None] > 0).astype(np.float64))
                length = (log(words + 1.0) - float(scale.middle[place])) / float(scale.spread[place])
                found.append(unless_missing(key, length * slopes))
        return found


Member = Additive | NormalsAndTables | Aode | WordModel
"""A fitted member.

`by_column`: the model is a sum over columns. `scores(rows)`: (rows x classes) log-posteriors up to a constant.
`parts(rows)`: (rows x columns x classes) contributions of the columns, and (rows x classes) what no column adds.
`formula(columns, weight)`: terms whose sum is `weight` times the scores.
"""
