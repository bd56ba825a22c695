"""Rows of known class, and what all ways to learn from them share: cuts, codes, counts of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from softcount.classify.cut_columns import CutColumns
from softcount.classify.encoded_rows import FEW_VALUES, EncodedRows
from softcount.classify.number_scale import NumberScale
from softcount.classify.pair_counts import PairCounts
from softcount.classify.shrunk_block import BlockMoments
from softcount.classify.terms import Terms
from softcount.classify.word_scale import WordScale
from softcount.records import dataclass
from softcount.table.cuts import PointTable, by_class_each

FARTHEST = 6.0
"""Deviations from the mean beyond which a number adds no more to a line."""
MOST_JOINT = 64
"""Classes times intervals of a partner within which a number is cut."""
LEAST_TOLD = 0.01
"""Nats a row that a number and its partner must tell together beyond each alone, for it to be cut beside it."""
MOST_EDGES = 20
"""Cuts of a number beside a partner."""
MOST_CELLS = 1200
"""Cells of all columns together up to which all pairs of them are counted."""
PAIR_COUNTS, COUNTS_PER_PAIR, MOST_PAIR_COUNTS = 1 << 20, 4.0, 1 << 24
"""Counts of all pairs of cells in all classes: any table may have the first, and more only if its rows fill them.

They may be `COUNTS_PER_PAIR` times as many as the rows hold pairs of cells; columns of 30 categories in 358 rows would
have 15 times as many, and take most of the time of a fit to learn nothing.
"""


@dataclass(frozen=True, eq=False)
class Training:
    """Everything that is learned from these rows alone; rows held out are never looked at."""

    rows: EncodedRows
    labels: np.ndarray
    weights: np.ndarray
    classes: int
    levels: tuple[int, ...]
    measured: int | None = None
    """How many of the numbers come first that are not levels taken as numbers; all unless said otherwise."""
    given_cuts: CutColumns | None = None

    def take(self, some: np.ndarray) -> Training:
        """Some of the rows."""
        return replace(self, rows=self.rows.take(some), labels=self.labels[some], weights=self.weights[some])

    @cached_property
    def sizes(self) -> np.ndarray:
        """The weight of the rows of each class."""
        return np.bincount(self.labels, self.weights, minlength=self.classes)

    @cached_property
    def shares(self) -> np.ndarray:
        """Logarithms of the classes' shares, half a row imagined in each."""
        return np.asarray(np.log((self.sizes + 0.5) / (self.sizes + 0.5).sum()))

    @cached_property
    def cuts(self) -> CutColumns:
        if self.given_cuts is not None:
            return self.given_cuts
        return CutColumns.learned(self.rows, self.labels, self.weights, self.levels)

    @cached_property
    def finer(self) -> Training:
        """The same rows with numbers cut finely enough to be looked at in pairs."""
        cuts = self.cuts.finer(self.rows, self.weights)
        found = self if cuts is self.cuts else replace(self, given_cuts=cuts)
        if not found.countable or found is self:
            return self
        return found.partnered([k for k, edges in enumerate(cuts.edges) if edges is not self.cuts.edges[k]])

    def partnered(self, numbers: Sequence[int]) -> Training:
        """The same with numbers cut where the classes change within the intervals of a partner, if that tells more.

        The partner is the column that tells most of the classes together with the number: on a chequerboard no cut
        divides the classes, and within a row of it every border does.
        """
        before = self.synergy
        told = [number for number in numbers if number in before and self._is_partner(*before[number])]
        edges = zip(told, by_class_each(self._beside(number, before[number][0]) for number in told), strict=True)
        kept = {number: own for number, own in edges if 0 < len(own) <= MOST_EDGES}
        tried = self._cut_at(kept)
        if tried is self or not tried.countable:
            return self
        after = tried.synergy
        found = self._cut_at({k: own for k, own in kept.items() if k in after and after[k][1] > before[k][1]})
        return found if found.countable else self

    def _is_partner(self, place: int, told: float) -> bool:
        """Whether a column tells more together with another, and has not too many intervals to be looked at so."""
        return told > LEAST_TOLD * self.weights.sum() and self.cuts.sizes[place] * self.classes <= MOST_JOINT

    def _beside(self, number: int, place: int) -> PointTable:
        """Values by class and interval of the partner."""
        column, beside = self.rows.numbers[:, number], self.codes[:, place]
        known = np.flatnonzero(~np.isnan(column) & (beside > 0))
        joint = (beside[known] - 1) * self.classes + self.labels[known]
        return PointTable.of(column[known], joint, self.weights[known], self.cuts.sizes[place] * self.classes)

    def _cut_at(self, edges: Mapping[int, np.ndarray]) -> Training:
        """The same with some numbers cut elsewhere."""
        if not edges:
            return self
        own = tuple(edges.get(number, before) for number, before in enumerate(self.cuts.edges))
        sizes = (*(len(cuts) + 1 for cuts in own), *self.cuts.sizes[len(own) :])
        return replace(self, given_cuts=CutColumns(own, sizes))

    @cached_property
    def together(self) -> np.ndarray:
        """(columns x columns) nats that two columns tell of the classes together, beyond what each tells alone."""
        within, over = self.pairs.information()
        return np.asarray(within - over)

    @cached_property
    def synergy(self) -> dict[int, tuple[int, float]]:
        """By column, the one that tells most of the classes together with it, and how many nats beyond each alone."""
        together = self.together.copy()
        np.fill_diagonal(together, -np.inf)
        columns, best = [column for (column,) in self.terms.columns], together.argmax(axis=1)
        return {c: (columns[b], float(together[k, b])) for k, (c, b) in enumerate(zip(columns, best, strict=True))}

    @cached_property
    def codes(self) -> np.ndarray:
        return self.cuts.codes(self.rows)

    @cached_property
    def terms(self) -> Terms:
        """Tables of the columns of which these rows hold two intervals or levels, or more."""
        whole = Terms.single(self.cuts.sizes)
        least = np.where(self.codes > 0, self.codes, np.iinfo(self.codes.dtype).max).min(
            axis=0, initial=np.iinfo(self.codes.dtype).max
        )
        several = self.codes.max(axis=0, initial=0) > least
        return Terms(tuple(term for term in whole.columns if several[term[0]]), self.cuts.sizes)

    @property
    def countable(self) -> bool:
        """Whether there are two columns or more, and few enough cells to count all pairs."""
        columns, counts = len(self.terms.columns), self.classes * self.terms.width**2
        room = max(PAIR_COUNTS, COUNTS_PER_PAIR * float(self.weights.sum()) * columns**2)
        return columns > 1 and self.terms.width <= MOST_CELLS and counts <= min(room, MOST_PAIR_COUNTS)

    @cached_property
    def pairs(self) -> PairCounts:
        return PairCounts.of(self.terms, self.codes, self.labels, self.weights, self.classes)

    @cached_property
    def tables(self) -> np.ndarray:
        """(cells x classes) weight of the rows in each cell of the single columns."""
        return self.counted(self.terms, self.codes)

    def counted(self, terms: Terms, codes: np.ndarray) -> np.ndarray:
        """(cells x classes) weight of these rows in each cell of some tables."""
        places = terms.places(codes).ravel()
        each = np.repeat(self.labels, len(terms.columns))
        heavy = np.repeat(self.weights, len(terms.columns))
        flat = np.bincount(places * self.classes + each, heavy, terms.width * self.classes)
        counts = flat.reshape(terms.width, self.classes)
        counts[0] = 0.0
        return counts

    @cached_property
    def smooth(self) -> np.ndarray:
        """Numbers of more values than each could be an interval of."""
        return np.flatnonzero([_many(column) for column in self.rows.numbers.T])

    @cached_property
    def scale(self) -> NumberScale:
        """Of all numbers as they are."""
        return NumberScale.learned(self.rows.numbers, self.weights)

    @cached_property
    def moments(self) -> BlockMoments:
        """Of the smooth numbers."""
        return BlockMoments.of(self.rows.numbers[:, self.smooth], self.labels, self.weights, self.classes)

    @cached_property
    def rarity(self) -> WordScale:
        """Of the words of all texts."""
        return WordScale.learned(self.rows, self.weights)


def _many(column: np.ndarray) -> bool:
    return len(np.unique(column[~np.isnan(column)])) > FEW_VALUES


def log_tables(counts: np.ndarray, terms: Terms, concentration: float | np.ndarray = 1.0) -> np.ndarray:
    """(cells x classes) log-probability of every cell of a column within a class; 0 for what nothing is known of.

    So much weight is imagined in every column, spread evenly over its cells.
    """
    widths = np.diff([*terms.offsets, terms.width])
    totals = np.repeat(np.add.reduceat(counts, terms.offsets, axis=0), widths, axis=0) if len(widths) else counts[1:]
    each = np.repeat(np.broadcast_to(concentration, widths.shape), widths)[:, None]
    even = each / np.repeat(widths, widths)[:, None]
    return np.vstack([np.zeros(counts.shape[1]), np.log(counts[1:] + even) - np.log(totals + each)])


def laplace_tables(counts: np.ndarray, terms: Terms) -> np.ndarray:
    """The same with every cell imagined once."""
    return log_tables(counts, terms, np.diff([*terms.offsets, terms.width]))
