"""Members of the ensemble: sums of tables, slopes, normals, AODE and words; and the training rows that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify.encode import (
    FEW_VALUES,
    LARGEST,
    Binning,
    EncodedColumns,
    EncodedRows,
    NumberScale,
    WordScale,
    class_moments,
    column_moments,
)
from softcount.classify.features import Indicators, PairCounts, Terms
from softcount.classify.logistic import expand_classes
from softcount.core import formulas as fm
from softcount.core.formulas import Formula
from softcount.core.ranges import Floats
from softcount.core.special import log_of, log_sum_exp, times_log
from softcount.families.density import patterns
from softcount.families.setting import IMPOSSIBLE
from softcount.table.discretise import PointTable, by_class_each
from softcount.table.schema import Key


def log_class_shares(sizes: np.ndarray) -> np.ndarray:
    """Logarithms of the class shares with a pseudo-count of half a row per class."""
    return np.asarray(np.log((sizes + 0.5) / (sizes + 0.5).sum()))


# Training rows, with what several members share: bins, codes, counts of pairs.

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
    def class_weights(self) -> np.ndarray:
        """(classes x rows) the weights of the rows of each class, 0 for other rows."""
        return np.where(self.labels == np.arange(self.classes)[:, None], self.weights, 0.0)

    @cached_property
    def shares(self) -> np.ndarray:
        return log_class_shares(self.sizes)

    @cached_property
    def cuts(self) -> Binning:
        if self.given_cuts is not None:
            return self.given_cuts
        return Binning.learn(self.rows, self.labels, self.weights, self.levels)

    @cached_property
    def finer(self) -> Training:
        """A copy of the rows with numbers discretised finely enough for pairs."""
        cuts = self.cuts.refine(self.rows, self.weights)
        found = self if cuts is self.cuts else replace(self, given_cuts=cuts)
        if not found.countable or found is self:
            return self
        return found.refine_by_partner([k for k, edges in enumerate(cuts.edges) if edges is not self.cuts.edges[k]])

    def refine_by_partner(self, numbers: Sequence[int]) -> Training:
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
        columns = np.arange(numbers.shape[1])
        return NumberScale(columns, np.zeros(len(columns)), *column_moments(numbers, self.weights))

    @cached_property
    def moments(self) -> BlockMoments:
        return BlockMoments.of(self, self.smooth)

    @cached_property
    def rarity(self) -> WordScale:
        return WordScale.learn(self.rows, self.weights)


def log_tables(counts: np.ndarray, terms: Terms, concentration: float | np.ndarray = 1.0) -> np.ndarray:
    """(cells x classes) log-probability of every cell of a column within a class; 0 for missing cells.

    Every column has a prior weight of `concentration`, spread evenly over its cells.
    """
    widths = terms.widths
    totals = np.repeat(np.add.reduceat(counts, terms.offsets, axis=0), widths, axis=0) if len(widths) else counts[1:]
    each = np.repeat(np.broadcast_to(concentration, widths.shape), widths)[:, None]
    even = each / np.repeat(widths, widths)[:, None]
    return np.vstack([np.zeros(counts.shape[1]), np.log(counts[1:] + even) - np.log(totals + each)])


# Scores of members as formulas over the cells of a row.


def column_code(columns: EncodedColumns, column: int, cuts: Binning) -> fm.Code:
    """Return the code of a column: its interval, or its level."""
    if column < columns.numbers:  # an interval holds its upper edge
        return fm.IntervalCode(columns.keys[column], np.nextafter(cuts.edges[column], np.inf))
    return fm.LevelCode(columns.keys[column], cuts.sizes[column])


def look_up_terms(columns: EncodedColumns, cuts: Binning, terms: Terms, table: np.ndarray) -> list[Formula]:
    """Return a look-up for every term; the first row of the table is for unknown cells."""
    found: list[Formula] = []
    for term, first in zip(terms.columns, terms.offsets.tolist(), strict=True):
        sizes = [cuts.sizes[column] for column in term]
        own = table[first : first + int(np.prod(sizes))].reshape(*sizes, table.shape[1])
        found.append(look_up(tuple(column_code(columns, column, cuts) for column in term), own, table[0]))
    return found


def if_known(columns: EncodedColumns, place: int, share: np.ndarray) -> Formula:
    """Return `share` if the column or text at this place is known, else 0."""
    if columns.numbers <= place < len(columns.keys):
        code = fm.LevelCode(columns.keys[place], columns.sizes[place - columns.numbers])
        return look_up((code,), np.tile(share, (code.size, 1)), np.zeros_like(share))
    return fm.unless_missing((*columns.keys, *columns.texts)[place], fm.formula(share[0]))


def look_up(codes: tuple[fm.Code, ...], table: np.ndarray, unknown: np.ndarray) -> Formula:
    """Return a look-up in a (cells of each column x classes) table.

    `unknown` is for missing cells and unseen categories.
    """
    sizes = tuple(size + 1 for size in table.shape[:-1])
    whole = np.broadcast_to(unknown, (*sizes, len(unknown))).copy()
    whole[(slice(1, None),) * len(codes)] = table
    if len(codes) > 1:
        return fm.LookUp(fm.CombinedCode(codes, sizes), whole.reshape(-1, len(unknown)))
    return fm.LookUp(codes[0], np.vstack([whole, unknown]) if isinstance(codes[0], fm.LevelCode) else whole)


def standardise(scale: NumberScale, columns: EncodedColumns, most: float = LARGEST) -> dict[Key, Formula]:
    """Return numbers, or their logarithms, in standard deviations from the mean, at most `most` on either side."""
    found: dict[Key, Formula] = {}
    for place, column in enumerate(scale.columns.tolist()):
        floor, key = float(scale.floor[place]), columns.keys[column]
        sign = float(np.sign(floor))
        value = fm.log(fm.largest([fm.Cell(key) * sign, fm.formula(abs(floor))])) * sign if floor else fm.Cell(key)
        found[key] = fm.clip((value - fm.formula(scale.middle[place])) / fm.formula(scale.spread[place]), most)
    return found


class AodeMean(fm.Whole, Struct, frozen=True, eq=False):
    """The logarithm of the mean over the parents of AODE, by log-probabilities as in `Aode`."""

    codes: tuple[fm.Code, ...]  # of the parents
    terms: Terms
    shares: np.ndarray
    alone: np.ndarray
    given: np.ndarray

    @cached_property
    def out(self) -> Formula:
        """The logarithm of the mean over the parents that are known; the shares of the classes if none is.

        Each parent has the joint log-probability of class and row, which is impossible if the parent is missing.
        """
        if not self.codes:
            return fm.formula(self.shares)
        ends = [*self.terms.offsets.tolist(), self.terms.width]
        cells = [slice(ends[place], ends[place + 1]) for place in range(len(self.codes))]
        stars: list[Formula] = []
        impossible, nothing = np.full(len(self.shares), fm.CLAMPED), np.zeros(len(self.shares))
        for parent, (code, own) in enumerate(zip(self.codes, cells, strict=True)):
            sums = [look_up((code,), (self.shares[:, None] + self.alone[:, own]).T, impossible)]
            for child, others in enumerate(cells):
                table = self.given[:, others, own]
                if child < parent:
                    sums.append(look_up((self.codes[child], code), table.transpose(1, 2, 0), nothing))
                elif child > parent:
                    sums.append(look_up((code, self.codes[child]), table.transpose(2, 1, 0), nothing))
            stars.append(fm.Once(fm.total(sums)))
        top = fm.Once(fm.largest(stars))
        mean = fm.total([fm.Apply("exp", (star - top,)) for star in stars])
        known = [
            fm.Choose((fm.Compare("<", star, fm.formula(IMPOSSIBLE)),), fm.formula(0.0), fm.formula(1.0))
            for star in stars
        ]
        there = fm.Once(fm.total(known))
        score = top + fm.log(mean) - fm.log(fm.largest([there, fm.formula(1.0)]))
        return fm.Choose((fm.Compare("=", there, fm.formula(0.0)),), fm.formula(self.shares), score)


# Parts of members. Each scores rows and splits its scores by column.

FARTHEST = 6.0
"""Deviations from the mean at which a slope stops adding."""
PRIOR_ROWS = 2.0
"""Prior rows of the common covariance in every class."""
LEAST_VARIANCE = 1e-6
"""Least variance in any direction, in units of the columns' own."""


def indicators(cuts: Binning, terms: Terms, rows: EncodedRows) -> Indicators:
    return rows.cached((cuts, terms), lambda: terms.indicators(cuts.codes(rows)))


def multiply_classes(product: Callable[[np.ndarray], np.ndarray], values: np.ndarray) -> np.ndarray:
    """The product with a column of values per class, without multiplying the zeros of the first of two classes."""
    if len(values) and values.shape[1] == 2 and not values[:, 0].any():
        return expand_classes(product(values[:, 1:]))
    return product(values)


class Part(Struct, frozen=True, eq=False, tag_field="kind"):
    """A part of a member's log-posterior, to which a missing cell adds nothing."""

    reads_texts: ClassVar[bool] = False

    @property
    def by_column(self) -> bool:
        """Whether the part is a sum over columns."""
        return True

    @property
    def pair_cells(self) -> int:
        """Numbers in tables of pairs of columns with a second parent."""
        return 0

    def scores(self, rows: EncodedRows) -> np.ndarray:
        """(rows x classes) scores up to a constant."""
        raise NotImplementedError

    def split(self, rows: EncodedRows, found: np.ndarray) -> np.ndarray | float:
        """Add the contributions of the columns to `found` (rows x columns x classes); return what no column adds."""
        raise NotImplementedError

    def formula(self, columns: EncodedColumns) -> list[Formula]:
        """Terms whose sum is the score."""
        raise NotImplementedError


class Tables(Part, frozen=True, eq=False, tag="tables"):
    """A table for each of some columns and pairs of columns; the first row of `values` is for missing cells."""

    cuts: Binning
    terms: Terms
    values: Annotated[np.ndarray, Floats(("terms.width", "classes"))]

    @property
    def by_column(self) -> bool:
        return all(len(term) == 1 for term in self.terms.columns)

    def scores(self, rows: EncodedRows) -> np.ndarray:
        return multiply_classes(indicators(self.cuts, self.terms, rows).product, self.values)

    def split(self, rows: EncodedRows, found: np.ndarray) -> float:
        """The contribution of a pair is shared equally by its columns."""
        for term, places in zip(self.terms.columns, indicators(self.cuts, self.terms, rows).places, strict=True):
            for column in term:
                found[:, column] += self.values[places] / len(term)
        return 0.0

    def formula(self, columns: EncodedColumns) -> list[Formula]:
        return look_up_terms(columns, self.cuts, self.terms, self.values)


class Slopes(Part, frozen=True, eq=False, tag="slopes"):
    """A slope for every number, whose deviations are bounded so that an outlier does not decide alone."""

    scale: NumberScale
    values: Annotated[np.ndarray, Floats(("scale.columns", "classes"))]

    def scores(self, rows: EncodedRows) -> np.ndarray:
        return np.asarray(self.scale.clip(rows, FARTHEST) @ self.values)

    def split(self, rows: EncodedRows, found: np.ndarray) -> float:
        found[:, self.scale.columns] += self.scale.clip(rows, FARTHEST)[:, :, None] * self.values
        return 0.0

    def formula(self, columns: EncodedColumns) -> list[Formula]:
        cells = standardise(self.scale, columns, FARTHEST).items()
        return [fm.unless_missing(key, cell * slope) for (key, cell), slope in zip(cells, self.values, strict=True)]


class Normals(Part, frozen=True, eq=False, tag="normals"):
    """A normal distribution for every number and class, in standardised units."""

    scale: NumberScale
    means: Annotated[np.ndarray, Floats(("classes", "scale.columns"))]
    variances: Annotated[np.ndarray, Floats(("classes", "scale.columns"), positive=True)]

    @classmethod
    def estimate(cls, training: Training, columns: np.ndarray) -> Normals:
        """Every class gets one prior row of the common variance."""
        scale = NumberScale.by_class(training.rows, columns, training.labels, training.class_weights)
        counted, means, squares = class_moments(scale.of(training.rows), training.labels, training.class_weights)
        common = squares.sum(axis=0) / np.maximum(counted.sum(axis=0), 1.0)
        return cls(scale, means, (squares + common) / (counted + 1.0) + LEAST_VARIANCE)

    def scores(self, rows: EncodedRows) -> np.ndarray:
        cells = self.scale.of(rows)
        there, precision = ~np.isnan(cells), 1.0 / self.variances
        filled = np.where(there, cells, 0.0)
        squares = filled**2 @ precision.T - 2.0 * filled @ (self.means * precision).T
        return np.asarray(-0.5 * (squares + there @ (self.means**2 * precision + np.log(self.variances)).T))

    def split(self, rows: EncodedRows, found: np.ndarray) -> float:
        cells = self.scale.of(rows)[:, :, None]
        own = -0.5 * ((cells - self.means.T) ** 2 / self.variances.T + np.log(self.variances.T))
        found[:, self.scale.columns] += np.where(np.isnan(cells), 0.0, own)
        return 0.0

    def formula(self, columns: EncodedColumns) -> list[Formula]:
        parameters = zip(self.means.T, np.sqrt(self.variances.T), strict=True)
        return [
            fm.unless_missing(key, fm.normal_density(cell, *own))
            for (key, cell), own in zip(standardise(self.scale, columns).items(), parameters, strict=True)
        ]


class BlockMoments(Struct, frozen=True, eq=False):
    """Weight, mean and sum of outer products of standardised numbers per class; missing values count as class means."""

    scale: NumberScale
    weights: np.ndarray
    means: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, training: Training, columns: np.ndarray) -> BlockMoments:
        scale = NumberScale.by_class(training.rows, columns, training.labels, training.class_weights)
        rows, products = scale.of(training.rows), np.zeros((training.classes, len(columns), len(columns)))
        _, means, _ = class_moments(rows, training.labels, training.class_weights)
        apart = np.nan_to_num(rows - means[training.labels])
        for label, found in enumerate(products):
            own = training.labels == label
            found[:] = (apart[own] * training.weights[own, None]).T @ apart[own]
        return cls(scale, training.sizes, means, products)

    def shrink(self, tied: float, straight: float) -> Multinormal:
        """Normals with a share `tied` of the common covariance, their correlations reduced by the share `straight`."""
        common = self.products.sum(axis=0) / max(float(self.weights.sum()), 1.0)
        own = (self.products + PRIOR_ROWS * common) / (self.weights + PRIOR_ROWS)[:, None, None]
        found = (1.0 - tied) * own + tied * common
        found = (1.0 - straight) * found
        diagonal = np.arange(found.shape[1])
        found[:, diagonal, diagonal] /= 1.0 - straight
        found[:, diagonal, diagonal] += LEAST_VARIANCE
        return Multinormal(self.scale, self.means, found)


class Multinormal(Part, frozen=True, eq=False, tag="multinormal"):
    """Discriminant analysis: means and covariances of the classes in standardised units."""

    scale: NumberScale
    means: Annotated[np.ndarray, Floats(("classes", "scale.columns"))]
    covariances: Annotated[np.ndarray, Floats(("classes", "scale.columns", "scale.columns"))]

    @property
    def by_column(self) -> bool:
        return False

    def scores(self, rows: EncodedRows) -> np.ndarray:
        """Missing numbers are integrated out."""
        found = np.zeros((len(rows), len(self.means)))
        for places, _, own, rest in self._patterns(rows):
            found[places] = own.sum(axis=2).T + rest
        return found

    def split(self, rows: EncodedRows, found: np.ndarray) -> np.ndarray:
        """A product of two deviations is shared equally by their columns."""
        shared = np.zeros((len(rows), len(self.means)))
        for places, columns, own, rest in self._patterns(rows):
            found[places[:, None], self.scale.columns[columns]] += own.transpose(1, 2, 0)
            shared[places] = rest
        return shared

    def _patterns(self, rows: EncodedRows) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Rows with the same known numbers, and these numbers; their (classes x rows x numbers) contributions, and
        (classes) constants.
        """
        cells = self.scale.of(rows)
        for places, present in patterns(~np.isnan(cells)):
            columns = np.flatnonzero(present)
            covariances = self.covariances[:, columns[:, None], columns]
            apart = cells[places[:, None], columns] - self.means[:, None, columns]
            roots = np.linalg.cholesky(covariances)
            rest = -np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
            yield places, columns, -0.5 * apart * np.linalg.solve(covariances, apart.mT).mT, rest

    def formula(self, columns: EncodedColumns) -> list[Formula]:
        cells = standardise(self.scale, columns)
        form = {"mean": self.means, "covariance": self.covariances}
        return [fm.BlockDensity(form, tuple(cells), tuple(cells.values()))] if cells else []


class Aode(Part, frozen=True, eq=False, tag="AODE"):
    """Log-probabilities of AODE; the last axis of `given` is for the cells of the parent.

    A missing column is no parent.
    """

    cuts: Binning
    terms: Terms
    shares: Annotated[np.ndarray, Floats(("classes",))]
    alone: Annotated[np.ndarray, Floats(("classes", "terms.width"))]
    given: Annotated[np.ndarray, Floats(("classes", "terms.width", "terms.width"))]

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

    @property
    def pair_cells(self) -> int:
        return self.given.size

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

    def split(self, rows: EncodedRows, found: np.ndarray) -> np.ndarray:
        """The logarithm of a sum is the mean of the terms' logarithms, weighted by their shares of the sum, plus the
        entropy of these shares, which belongs to no column.
        """
        codes = self.cuts.codes(rows)
        stars, places = self.joint_scores(codes), self.terms.places(codes)
        rest = np.tile(self.shares, (len(codes), 1))
        some = np.flatnonzero((places > 0).any(axis=1))
        columns = np.array([column for (column,) in self.terms.columns], dtype=np.intp)
        here, shares = places[some], np.exp(stars[some] - np.asarray(log_sum_exp(stars[some], axis=1))[:, None])
        for label, (alone, given) in enumerate(zip(self.alone, self.given, strict=True)):
            own = shares[:, :, label]
            each = given[here[:, :, None], here[:, None, :]]  # (rows x columns x parents)
            found[some[:, None], columns, label] += alone[here] * own + np.einsum("rcp,rp->rc", each, own)
            rest[some, label] -= times_log(own).sum(axis=1) + np.log((here > 0).sum(axis=1))
        return rest

    def formula(self, columns: EncodedColumns) -> list[Formula]:
        codes = tuple(column_code(columns, column, self.cuts) for (column,) in self.terms.columns)
        return [AodeMean(codes, self.terms, self.shares, self.alone, self.given)]


SHORTEST = 0.25
"""The square of a document's length, below any that has a word: what weighs least is log(2) squared, or .48."""


class Words(Part, frozen=True, eq=False, tag="words"):
    """A coefficient for every word of every text and for the lengths of the texts."""

    scale: WordScale
    words: Annotated[np.ndarray, Floats(("scale.width", "classes"))]
    lengths: Annotated[np.ndarray, Floats(("scale.factors", "classes"))]

    reads_texts: ClassVar[bool] = True

    def scores(self, rows: EncodedRows) -> np.ndarray:
        words = multiply_classes(lambda values: np.asarray(self.scale.words(rows) @ values), self.words)
        return np.asarray(words + self.scale.lengths(rows) @ self.lengths)

    def split(self, rows: EncodedRows, found: np.ndarray) -> float:
        lengths = self.scale.lengths(rows)
        for text, (bag, own) in enumerate(zip(rows.bags, self.scale.split_texts(self.words), strict=True)):
            words = np.asarray(self.scale.weigh(text, bag) @ own)
            found[:, rows.plain_columns + text] += words + lengths[:, text, None] * self.lengths[text]
        return 0.0

    def word_parts(self, text: int, bag: Any) -> np.ndarray:
        """(cells x classes) contribution of each cell of a text's bag."""
        own = self.scale.split_texts(self.words)[text]
        return np.asarray(self.scale.weigh(text, bag).data[:, None] * own[bag.indices])

    def formula(self, columns: EncodedColumns) -> list[Formula]:
        scale, found = self.scale, list[Formula]()
        for place, key in enumerate(columns.texts):
            factors, coefficients = scale.factors[place][1:, None], scale.split_texts(self.words)[place][1:]
            if scale.counts:
                found.append(fm.LookUp(fm.WordsCode(key, "times"), coefficients * factors))
                continue
            words = fm.LookUp(fm.WordsCode(key, "log"), coefficients * factors)
            squares = fm.largest([fm.LookUp(fm.WordsCode(key, "square"), factors**2), fm.formula(SHORTEST)])
            found.append(words * fm.Apply("exp", (fm.log(squares / SHORTEST) * -0.5,)) * SHORTEST**-0.5)
            if self.lengths[place].any():
                words = fm.LookUp(fm.WordsCode(key, "times"), (factors > 0).astype(np.float64))
                length = (fm.log(words + 1.0) - float(scale.middle[place])) / float(scale.spread[place])
                found.append(fm.unless_missing(key, length * self.lengths[place]))
        return found


class Member(Struct, frozen=True, eq=False):
    """A fitted member of the ensemble: a bias for every class plus the sum of some parts."""

    bias: Annotated[np.ndarray, Floats(("classes",))]
    parts: tuple[Tables | Slopes | Normals | Multinormal | Aode | Words, ...]

    @property
    def by_column(self) -> bool:
        return all(part.by_column for part in self.parts)

    @property
    def reads_texts(self) -> bool:
        return any(part.reads_texts for part in self.parts)

    def scores(self, rows: EncodedRows) -> np.ndarray:
        """(rows x classes) log-posteriors up to a constant."""
        return np.asarray(sum((part.scores(rows) for part in self.parts), self.bias))

    def split(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) contributions of the columns, and (rows x classes) what no column adds."""
        found = np.zeros((len(rows), rows.plain_columns + len(rows.bags), len(self.bias)))
        rest = np.tile(self.bias, (len(rows), 1))
        for part in self.parts:
            rest += part.split(rows, found)
        return found, rest

    def formula(self, columns: EncodedColumns, weight: float) -> list[Formula]:
        """Terms whose sum is `weight` times the scores."""
        terms = (term for part in self.parts for term in part.formula(columns))
        return fm.scale_terms([fm.formula(self.bias), *terms], weight)
