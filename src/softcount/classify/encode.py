"""Rows encoded for the ensemble's members: discretised columns, scaled numbers and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.lazy import sparse
from softcount.core.special import mixed
from softcount.table.chunk import Chunk
from softcount.table.discretise import PointTable, by_class_each, equal_count
from softcount.table.schema import Field, Key, Schema

Made = TypeVar("Made")
FEW_VALUES = 12
"""Different values up to which each number is an interval of its own."""
REFINED = 2
"""Rounds of refinement: each distinguishes rows by the rows that they share cells with."""
GLANCED_AT = 1024
"""Rows by which most columns are seen to be no copies."""


class EncodedRows(Struct, frozen=True, eq=False):
    """`numbers` are NaN where missing; `codes` are 1..m for the levels of a column, 0 where nothing is known of it.

    Columns come in that order wherever they are numbered: numbers first, then levels, then texts. A text's bag has 1
    for a document that is there before how often it holds each word; a sparse table is one such text.
    """

    numbers: np.ndarray  # (rows x numbers) float64
    codes: np.ndarray  # (rows x columns of levels) int32
    bags: tuple[sparse.csr_matrix, ...] = ()  # (rows x 1 + words) of every text
    made: dict[tuple[int, ...], tuple[Any, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema, chunks: Sequence[Chunk]) -> EncodedRows:
        """The rows of some chunks; a level that the schema does not have is nothing known."""
        valued, coded = _as_numbers(schema)
        sizes = [len(spec.levels) for spec in coded]
        numbers, codes = [], []
        for chunk in chunks:
            levels = [_codes(chunk, schema, spec) for spec in coded]
            own = [_values(spec)[_codes(chunk, schema, spec)] for spec in valued]
            numbers.append(np.hstack([chunk.reals, *(column[:, None] for column in own)]))
            codes.append(np.array(levels, dtype=np.int32).reshape(len(coded), chunk.n_rows).T)
        width = len(schema.stored("reals")) + len(valued)
        whole = np.vstack(codes) if codes else np.zeros((0, len(coded)), dtype=np.int32)
        known = np.where(whole > np.array(sizes, dtype=np.int32), 0, whole)
        return cls(np.vstack(numbers) if numbers else np.zeros((0, width)), known, _bags(schema, chunks))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def plain_columns(self) -> int:
        """How many columns there are besides texts."""
        return int(self.numbers.shape[1] + self.codes.shape[1])

    @property
    def cells(self) -> int:
        """How many cells they have, and words."""
        return len(self) * self.plain_columns + sum(int(bag.nnz) for bag in self.bags)

    @classmethod
    def together(cls, parts: Sequence[EncodedRows]) -> EncodedRows:
        """The rows of one part after those of the other; there is one part at least."""
        numbers, codes = (np.vstack([getattr(part, name) for part in parts]) for name in ("numbers", "codes"))
        texts = zip(*(part.bags for part in parts), strict=True)
        return cls(numbers, codes, tuple(sparse.vstack(bags, format="csr") for bags in texts))

    def take(self, rows: np.ndarray) -> EncodedRows:
        """Some of the rows."""
        return EncodedRows(self.numbers[rows], self.codes[rows], tuple(bag[rows] for bag in self.bags))

    def remembered(self, owners: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """What these owners make of the rows, made once for as long as the rows are kept."""
        key = tuple(map(id, owners))
        if key not in self.made:
            self.made[key] = (owners, make())
        found: Made = self.made[key][1]
        return found

    def copies(self) -> dict[int, int]:
        """Columns that say nothing but what an earlier one says in every row, by number, and which one that is.

        A number repeats another that puts all rows in the same order, or in the opposite one; levels repeat a column of
        few different cells that divides the rows as they do. Where no two cells are alike any two columns would.
        """
        first: dict[bytes, int] = {}
        found = {}
        for place in self._perhaps_copies():
            own = signatures(self._column(place), place < self.numbers.shape[1])
            leads = [first[one] for one in own if one in first]
            if leads:
                found[place] = leads[0]
            first.update((one, place) for one in own if one not in first)
        return found

    def _column(self, place: int) -> np.ndarray:
        numbers = self.numbers.shape[1]
        return self.numbers[:, place] if place < numbers else self.codes[:, place - numbers]

    def _perhaps_copies(self) -> list[int]:
        """Columns that look like another's copy by some of the rows, or the same in all of these."""
        columns = range(self.numbers.shape[1] + self.codes.shape[1])
        if len(self) <= GLANCED_AT:
            return list(columns)
        some = np.linspace(0, len(self) - 1, GLANCED_AT).astype(np.int64)
        glances = [_glance(self._column(place)[some], place < self.numbers.shape[1]) for place in columns]
        times = Counter(glances)
        return [place for place in columns if glances[place] is None or times[glances[place]] > 1]

    def without(self, columns: Collection[int]) -> EncodedRows:
        """The same with nothing known of some columns."""
        numbers, codes, width = self.numbers.copy(), self.codes.copy(), self.numbers.shape[1]
        numbers[:, [column for column in columns if column < width]] = np.nan
        codes[:, [column - width for column in columns if column >= width]] = 0
        return EncodedRows(numbers, codes, self.bags)

    def in_order(self, labels: np.ndarray) -> np.ndarray:
        """Places of the rows in an order that the table decides: by class, then by how each row is like the others.

        Neither the order of rows and columns, the names of categories, the sign of a number nor repeated rows change
        it. Rows that all of this leaves equal are in the order of their cells; identical rows are neighbours.
        """
        keys = [*map(_marks, self.bags), *self.numbers.T[::-1], *self.codes.T[::-1], labels]
        keys = [np.nan_to_num(key, nan=np.inf) for key in keys]
        order = np.lexsort(keys)
        first = np.zeros(len(order), dtype=bool)
        first[:1] = True
        for key in keys:
            first[1:] |= key[order][1:] != key[order][:-1]
        marks = self.take(order[first])._structure(labels[order[first]])[np.cumsum(first) - 1]
        return order[np.lexsort((marks, labels[order]))]

    def _structure(self, labels: np.ndarray) -> np.ndarray:
        """A mark for every row by which cells it shares with which other rows (colour refinement), no two rows alike.

        The mark of a cell is at first that of the classes of the rows on either side of a number, or nothing; then the
        sum of the marks of all rows that hold it. Sums of whole numbers do not depend on an order.
        """
        start = mixed(labels.astype(np.uint64) + np.uint64(1))
        words = [mixed(_marks(bag).view(np.uint64)) for bag in self.bags]
        cells, marks = [], []
        for place, column in enumerate((*self.numbers.T, *self.codes.T)):
            values, inverse = np.unique(column, return_inverse=True)
            if len(values) > 1:  # a column left out is one of a single value
                cells.append(inverse)
                number = place < self.numbers.shape[1]
                marks.append(
                    _sides(values, _sums(start, inverse, len(values))) if number else (values > 0).astype(np.uint64)
                )
        for _ in range(REFINED):
            rows = sum((mixed(own) for own in words), start.copy())
            for inverse, own in zip(cells, marks, strict=True):
                column = mixed(own[inverse]).sum(dtype=np.uint64)  # columns with different cells get different keys
                rows += mixed(own + column)[inverse]
            rows = mixed(rows)
            marks = [own + _sums(rows, inverse, len(own)) for inverse, own in zip(cells, marks, strict=True)]
        return rows


def _sides(values: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """A mark for every value by the marks on its two sides, 0 if it is missing: the sign does not matter."""
    there = ~np.isnan(values)
    upto = np.cumsum(np.where(there, marks, np.uint64(0)))
    return np.where(there, mixed(upto - marks) + mixed(upto[-1] - upto), np.uint64(0))


def _sums(marks: np.ndarray, groups: np.ndarray, size: int) -> np.ndarray:
    """The sum of the marks of every group, each of which has one at least; in whole numbers, which wrap around."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(size))
    return np.add.reduceat(marks[order], starts) if size else marks[:0]


def _marks(bag: sparse.csr_matrix) -> np.ndarray:
    """A number for every row by the words that it holds, whatever other rows hold."""
    each = mixed(np.arange(1, 1 + bag.shape[1], dtype=np.uint64)).astype(np.float64) / 2.0**64
    return np.asarray(bag @ each)


def _bags(schema: Schema, chunks: Sequence[Chunk]) -> tuple[sparse.csr_matrix, ...]:
    """The words of every text; of a sparse table all columns, each row being there."""
    texts = len(schema.stored("bags"))
    if texts and chunks:
        return tuple(sparse.vstack([chunk.bags[k] for chunk in chunks], format="csr") for k in range(texts))
    marked = [_marked(chunk.bags[0]) for chunk in chunks if chunk.bags]
    return (sparse.vstack(marked, format="csr"),) if marked else ()


def _marked(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    return sparse.hstack([sparse.csr_matrix(np.ones((matrix.shape[0], 1))), matrix], format="csr")


def signatures(column: np.ndarray, number: bool) -> list[bytes]:
    """What copies of a column have in common: the order of its rows, forwards or backwards, and which are alike."""
    known = ~np.isnan(column) if number else column > 0
    distinct, ranks = np.unique(column[known], return_inverse=True)
    if len(distinct) < 2:
        return []
    found = []
    if number:
        found.append(b"order" + _order(known, ranks))
    if len(distinct) <= (FEW_VALUES if number else len(ranks) // 2):
        found.append(b"alike" + _alike(known, ranks))
    return found


def _glance(column: np.ndarray, number: bool) -> bytes | None:
    """What some rows of a column have in common with those of any copy; None where they are all the same."""
    known = ~np.isnan(column) if number else column > 0
    distinct, ranks = np.unique(column[known], return_inverse=True)
    if len(distinct) < 2:
        return None
    return _order(known, ranks) if number and len(distinct) > FEW_VALUES else _alike(known, ranks)


def _order(known: np.ndarray, ranks: np.ndarray) -> bytes:
    """The order of the rows; the same backwards."""
    back = int(ranks.max()) - ranks
    apart = np.flatnonzero(ranks != back)  # there are two ranks at least
    return _spread(known, ranks if ranks[apart[0]] < back[apart[0]] else back)


def _alike(known: np.ndarray, ranks: np.ndarray) -> bytes:
    """The first row with the same cell, for every row: names do not matter."""
    lead = np.full(int(ranks.max()) + 1, len(known))
    np.minimum.at(lead, ranks, np.flatnonzero(known))
    return _spread(known, lead[ranks])


def _spread(known: np.ndarray, marks: np.ndarray) -> bytes:
    whole = np.full(len(known), -1, dtype=np.int64)
    whole[known] = marks
    return whole.tobytes()


def column_keys(schema: Schema) -> tuple[Key, ...]:
    """The names of the columns of encoded rows."""
    valued, coded = _as_numbers(schema)
    return tuple(spec.key for spec in (*schema.stored("reals"), *valued, *coded))


def level_sizes(schema: Schema) -> tuple[int, ...]:
    """How many levels each column of levels has."""
    return tuple(len(spec.levels) for spec in _as_numbers(schema)[1])


def number_count(schema: Schema) -> int:
    """How many columns are numbers."""
    return len(schema.stored("reals")) + len(_as_numbers(schema)[0])


def measured_count(schema: Schema) -> int:
    """How many columns are numbers and not levels; they come first."""
    return len(schema.stored("reals"))


def _as_numbers(schema: Schema) -> tuple[list[Field], list[Field]]:
    """Columns of levels that are taken as numbers, unless somebody said that they are levels, and all others."""
    coded = [*schema.stored("codes"), *schema.stored("wide")]
    valued = [spec for spec in coded if not spec.declared and len(spec.levels) > 2 and _numeric(spec.levels)]
    keys = {spec.key for spec in valued}
    return valued, [spec for spec in coded if spec.key not in keys]


def _numeric(levels: Sequence[object]) -> bool:
    return all(isinstance(level, (int, float)) and not isinstance(level, bool) for level in levels)


def _values(spec: Field) -> np.ndarray:
    """The number that each code stands for; NaN for a missing cell and a level never seen."""
    return np.array([np.nan, *map(float, spec.levels), np.nan])  # type: ignore[arg-type]


def _codes(chunk: Chunk, schema: Schema, spec: Field) -> np.ndarray:
    place = schema.places[spec.key]
    codes: np.ndarray = getattr(chunk, place.store)[:, place.slot]
    return codes


# All columns as codes: categories as they are, numbers discretised where the class shares change.

ROWS_AN_INTERVAL, LEAST_INTERVALS, MOST_INTERVALS = 80, 4, 10
"""How finely numbers are cut that are looked at in pairs."""


class Binning(Struct, frozen=True, eq=False):
    """Cuts of every number, and how many intervals or levels each column has."""

    edges: tuple[np.ndarray, ...]
    sizes: tuple[int, ...]

    @classmethod
    def learned(cls, rows: EncodedRows, labels: np.ndarray, weights: np.ndarray, levels: tuple[int, ...]) -> Binning:
        """Cuts by Fayyad and Irani's rule from rows of known class; a number that no cut divides has one interval."""
        classes = int(labels.max(initial=0)) + 1
        columns = [_points(column, labels, weights, classes) for column in rows.numbers.T]
        many = iter(by_class_each([own for own in columns if len(own.distinct) > FEW_VALUES]))
        edges = tuple(next(many) if len(own.distinct) > FEW_VALUES else between(own.distinct) for own in columns)
        return cls(edges, (*(len(cuts) + 1 for cuts in edges), *levels))

    def finer(self, rows: EncodedRows, weights: np.ndarray) -> Binning:
        """The same with numbers of few intervals in parts of equal weight: alone they say little, together perhaps not.

        The number itself where no number gains by it.
        """
        wanted = min(int(weights.sum()) // ROWS_AN_INTERVAL, MOST_INTERVALS)
        if wanted < LEAST_INTERVALS:
            return self
        edges = tuple(
            _finer(column, weights, own, wanted) for column, own in zip(rows.numbers.T, self.edges, strict=True)
        )
        if all(new is old for new, old in zip(edges, self.edges, strict=True)):
            return self
        return replace(self, edges=edges, sizes=(*(len(cuts) + 1 for cuts in edges), *self.sizes[len(edges) :]))

    @classmethod
    def by_value(cls, rows: EncodedRows, measured: int, levels: tuple[int, ...]) -> Binning:
        """No cut through the first so many numbers, and between any two values of the others."""
        values = [np.unique(column[~np.isnan(column)]) for column in rows.numbers.T[measured:]]
        edges = (*(np.zeros(0) for _ in range(measured)), *(between(own) for own in values))
        return cls(edges, (*(len(cuts) + 1 for cuts in edges), *levels))

    def codes(self, rows: EncodedRows) -> np.ndarray:
        """(rows x columns) code of each cell from 1, 0 where nothing is known."""
        return rows.remembered((self,), lambda: self._coded(rows))

    def _coded(self, rows: EncodedRows) -> np.ndarray:
        cut = [
            np.where(np.isnan(column), 0, np.searchsorted(edges, column, side="left") + 1)
            for edges, column in zip(self.edges, rows.numbers.T, strict=True)
        ]
        return np.hstack([np.array(cut, dtype=np.int32).T, rows.codes]) if cut else rows.codes


def _points(column: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> PointTable:
    known = np.flatnonzero(~np.isnan(column))
    return PointTable.of(column[known], labels[known], weights[known], classes)


def _finer(column: np.ndarray, weights: np.ndarray, edges: np.ndarray, wanted: int) -> np.ndarray:
    known = ~np.isnan(column)
    if len(edges) + 1 >= wanted or not known.any():
        return edges
    found = equal_count(column[known], weights[known], wanted)
    return found if len(found) > len(edges) else edges


def between(values: np.ndarray) -> np.ndarray:
    """Half-way between neighbours."""
    return np.asarray(values[:-1] + np.diff(values) / 2)


# Standardised numbers, of the logarithm where that is closer to a normal distribution.

LARGEST = 1e6
"""Deviations from the mean that a number is taken to have at most: squares of 1e155 are too large for a float."""
CLEARLY = 0.1
"""Nats a row by which bells over logarithms must be likelier than bells over the numbers themselves."""


class NumberScale(Struct, frozen=True, eq=False):
    """`floor` is 0 for a number as it is; of others the logarithm is taken, of what is below the floor that of it.

    A floor below 0 is that of numbers below 0: they are what their opposites are, with the other sign.
    """

    floor: np.ndarray
    middle: np.ndarray
    spread: np.ndarray

    @classmethod
    def learned(cls, numbers: np.ndarray, weights: np.ndarray) -> NumberScale:
        """Mean and deviation of every number as it is."""
        return cls(np.zeros(numbers.shape[1]), *standards(numbers, weights))

    @classmethod
    def by_class(cls, numbers: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> NumberScale:
        """The same; of numbers above zero the logarithm where bells of every class are likelier over it."""
        floor = _floors(numbers, labels, weights, classes)
        return cls(floor, *standards(_logged(numbers, floor), weights))

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """(rows x numbers) deviations from the mean, at most LARGEST either way; NaN where missing."""
        return np.asarray(np.clip((_logged(numbers, self.floor) - self.middle) / self.spread, -LARGEST, LARGEST))

    def some(self, columns: np.ndarray) -> NumberScale:
        """The scale of some of the numbers."""
        return NumberScale(self.floor[columns], self.middle[columns], self.spread[columns])


def standards(numbers: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of every column over the rows that have it; 0 and 1 where there is none."""
    there = ~np.isnan(numbers)
    filled = np.where(there, numbers, 0.0)
    unit = np.abs(filled).max(axis=0, initial=0.0)
    unit = np.where(unit > 0, unit, 1.0)  # squares of numbers near 1e200 are too large for a float
    counted = np.maximum(weights @ there, 1e-300)
    middle = weights @ (filled / unit) / counted
    deviation = np.sqrt(weights @ np.where(there, (filled / unit - middle) ** 2, 0.0) / counted)
    return middle * unit, np.where(deviation > 0, deviation, 1.0) * unit


def _logged(numbers: np.ndarray, floor: np.ndarray) -> np.ndarray:
    if not floor.any():
        return numbers
    found = numbers.copy()
    logged = floor != 0
    sign = np.sign(floor[logged])
    found[:, logged] = sign * np.log(np.maximum(sign * numbers[:, logged], np.abs(floor[logged])))
    return found


def _floors(numbers: np.ndarray, labels: np.ndarray, weights: np.ndarray, classes: int) -> np.ndarray:
    """The least value of every number whose logarithm is clearly closer to bells; 0 for any other."""
    found = np.zeros(numbers.shape[1])
    there = ~np.isnan(numbers)
    sign = np.where(np.where(there, numbers, -1.0).max(axis=0, initial=-1.0) < 0, -1.0, 1.0)
    numbers = sign * numbers
    least, most = (
        np.where(there, numbers, np.inf).min(axis=0, initial=np.inf),
        np.where(there, numbers, 0.0).max(axis=0, initial=0.0),
    )
    fit = np.flatnonzero((least > 0) & (most > least) & np.isfinite(least))
    with np.errstate(divide="ignore"):
        fit = fit[np.isfinite(np.log(least[fit] / most[fit]))]
    if not len(fit):
        return found
    there = there[:, fit]
    own = np.where(labels[:, None] == np.arange(classes), weights[:, None], 0.0).T  # (classes x rows)
    scaled = np.where(there, numbers[:, fit] / most[fit], 1.0)
    logs = np.log(scaled)
    plain, bent = (_nats(np.where(there, values, 0.0), there, own, labels) for values in (scaled, logs))
    gained = bent - weights @ np.where(there, logs, 0.0) - plain
    found[fit] = np.where(gained > CLEARLY * (weights @ there), least[fit], 0.0)
    return sign * found


def _nats(values: np.ndarray, there: np.ndarray, own: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Log-likelihood of a bell in every class by column, up to what any two sets of values have in common."""
    sizes = own @ there
    rows = np.maximum(sizes, 1e-300)
    apart = np.where(there, values - (own @ values / rows)[labels], 0.0)
    spread = own @ apart**2 / rows
    counted = np.maximum(there.sum(axis=0), 1)
    middle = values.sum(axis=0) / counted
    least = 1e-6 * np.maximum((np.where(there, values - middle, 0.0) ** 2).sum(axis=0) / counted, 1e-300)
    return np.asarray(-0.5 * (sizes * np.log(np.maximum(spread, least))).sum(axis=0))


# Weights of words in a document: rare words count more, repeated words less than proportionally.


class WordScale(Struct, frozen=True, eq=False):
    """A factor for every column of every text's bag, 0 where nothing is known of a word; and how long documents are.

    Words weigh the logarithm of one more than their count, times the factor, a document's being 1 together (the root of
    the sum of their squares). With `counts` they weigh as much as they are counted.
    """

    factors: tuple[np.ndarray, ...]
    middle: np.ndarray  # of the logarithm of one more than the words of a document, for every text
    spread: np.ndarray
    counts: bool = False

    @classmethod
    def learned(cls, rows: EncodedRows, weights: np.ndarray) -> WordScale:
        """Factors are 1 for a word of every document, and more by the logarithm of how rare it is otherwise."""
        held = [_holding(bag, weights) for bag in rows.bags]
        factors = tuple(map(_rarity, held))
        sizes = [_sizes(bag, own > 1) for bag, own in zip(rows.bags, held, strict=True)]
        middle, spread = np.zeros(len(sizes)), np.ones(len(sizes))
        for k, own in enumerate(sizes):
            known = ~np.isnan(own)
            mass = float(weights[known].sum())
            if mass > 0:
                middle[k] = weights[known] @ own[known] / mass
                spread[k] = np.sqrt(weights[known] @ (own[known] - middle[k]) ** 2 / mass) or 1.0
        return cls(factors, middle, spread)

    @property
    def plain(self) -> WordScale:
        """The same words as they are counted."""
        factors = tuple((own > 0).astype(np.float64) for own in self.factors)
        return WordScale(factors, self.middle, self.spread, counts=True)

    @property
    def ends(self) -> np.ndarray:
        """Where the bag of each text begins among the columns of all, and where the last one ends."""
        return np.cumsum([0, *map(len, self.factors)])

    @property
    def width(self) -> int:
        return sum(map(len, self.factors))

    def weighed(self, text: int, bag: Any) -> Any:
        """A bag by what its words weigh, cell by cell."""
        factors = self.factors[text][bag.indices]
        if self.counts:
            return sparse.csr_matrix((bag.data * factors, bag.indices, bag.indptr), shape=bag.shape)
        data = np.log1p(bag.data) * factors
        found = sparse.csr_matrix((data, bag.indices, bag.indptr), shape=bag.shape)
        lengths = np.sqrt(np.asarray(found.multiply(found).sum(axis=1))[:, 0])
        data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(bag.indptr))
        return found

    def words(self, rows: EncodedRows) -> Any:
        """(rows x columns of all bags) what words weigh, made once for the same rows where that takes time."""
        return self._words(rows) if self.counts else rows.remembered((self,), lambda: self._words(rows))

    def _words(self, rows: EncodedRows) -> Any:
        each = [self.weighed(text, bag) for text, bag in enumerate(rows.bags)]
        return each[0] if len(each) == 1 else sparse.hstack(each, format="csr")

    def lengths(self, rows: EncodedRows) -> np.ndarray:
        """(rows x texts) how much longer documents are than usual, in deviations; 0 where there is none.

        Only words that are known count.
        """
        return self._deviations([_sizes(bag, own > 0) for bag, own in zip(rows.bags, self.factors, strict=True)])

    def own_lengths(self, rows: EncodedRows, weights: np.ndarray) -> np.ndarray:
        """The same of the rows that it was learned from: words count that would be known without the row itself."""
        return self._deviations([_sizes(bag, _holding(bag, weights) > 1) for bag in rows.bags])

    def _deviations(self, sizes: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(np.nan_to_num((np.stack(sizes, axis=1) - self.middle) / self.spread, nan=0.0))

    def by_class(self, rows: EncodedRows, labels: np.ndarray, weights: np.ndarray, classes: int) -> np.ndarray:
        """(columns of all bags x classes) what words weigh in all documents of a class."""
        each = sparse.csr_matrix((weights, (labels, np.arange(len(labels)))), shape=(classes, len(labels)))
        return np.asarray((each @ self.words(rows)).toarray().T)

    def of_each(self, columns: np.ndarray) -> list[np.ndarray]:
        """What is given for the columns of all bags, text by text."""
        return [columns[first:last] for first, last in pairwise(self.ends.tolist())]


def _holding(bag: Any, weights: np.ndarray) -> np.ndarray:
    """The weight of the documents that hold each word, the first being that of all documents."""
    there = sparse.csr_matrix(((bag.data > 0).astype(np.float64), bag.indices, bag.indptr), shape=bag.shape)
    return np.asarray(weights @ there)


def _rarity(held: np.ndarray) -> np.ndarray:
    found = np.where(held > 0, 1.0 + np.log((1.0 + held[0]) / (1.0 + held)), 0.0)
    found[0] = 0.0  # the mark of a document
    return found


def _sizes(bag: Any, known: np.ndarray) -> np.ndarray:
    """The logarithm of one more than the known words of every document; NaN where there is none."""
    counted = known.astype(np.float64)
    counted[0] = 0.0
    return np.where(bag[:, :1].toarray()[:, 0] > 0, np.log1p(bag @ counted), np.nan)
