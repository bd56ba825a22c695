"""Rows encoded for the ensemble's members: discretised columns, scaled numbers and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import chain, pairwise
from typing import Annotated, Any, TypeVar

import numpy as np
from msgspec import Struct, field

from softcount.core.lazy import sparse
from softcount.core.ranges import Floats
from softcount.core.special import mixed
from softcount.table.chunk import Chunk
from softcount.table.discretise import PointTable, by_class_each, equal_count
from softcount.table.schema import Field, Key, Schema

Made = TypeVar("Made")
FEW_VALUES = 12
"""Distinct values up to which each number is a bin of its own."""
REFINED = 2
"""Rounds of colour refinement."""
GLANCED_AT = 1024
"""Rows by which most columns are seen to be no copies."""


class EncodedRows(Struct, frozen=True, eq=False):
    """Columns as numbers (NaN if missing), codes (1..m for the categories of a column, 0 if missing or unseen) and bags
    of words.

    Columns are numbered in this order: numbers, categories, texts. The first column of a bag is 1 if there is a
    document.
    """

    numbers: np.ndarray  # (rows x numbers) float64
    codes: np.ndarray  # (rows x columns of levels) int32
    bags: tuple[sparse.csr_matrix, ...] = ()  # (rows x 1 + words) of every text
    made: dict[tuple[int, ...], tuple[Any, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema, chunks: Sequence[Chunk]) -> EncodedRows:
        """Encode the rows of some chunks; categories that the schema does not have count as missing."""
        valued, coded = split_levels(schema)
        sizes = [len(spec.levels) for spec in coded]
        values_of = [np.array([np.nan, *map(float, spec.levels), np.nan]) for spec in valued]  # type: ignore[arg-type]
        numbers, codes = [], []
        for chunk in chunks:
            levels = [chunk.column(schema.places[spec.key]) for spec in coded]
            pairs = zip(valued, values_of, strict=True)
            own = [values[chunk.column(schema.places[spec.key])] for spec, values in pairs]
            numbers.append(np.hstack([chunk.reals, *(column[:, None] for column in own)]))
            codes.append(np.array(levels, dtype=np.int32).reshape(len(coded), chunk.n_rows).T)
        width = len(schema.stored("reals")) + len(valued)
        whole = np.vstack(codes) if codes else np.zeros((0, len(coded)), dtype=np.int32)
        known = np.where(whole > np.array(sizes, dtype=np.int32), 0, whole)
        texts = len(schema.stored("bags"))
        if texts and chunks:
            bags = tuple(sparse.vstack([chunk.bags[k] for chunk in chunks], format="csr") for k in range(texts))
        else:  # a sparse table is one text that every row has
            rows = [chunk.bags[0] for chunk in chunks if chunk.bags]
            ones = [sparse.csr_matrix(np.ones((bag.shape[0], 1))) for bag in rows]
            marked = [sparse.hstack(pair, format="csr") for pair in zip(ones, rows, strict=True)]
            bags = (sparse.vstack(marked, format="csr"),) if marked else ()
        return cls(np.vstack(numbers) if numbers else np.zeros((0, width)), known, bags)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def plain_columns(self) -> int:
        """How many columns are not text."""
        return int(self.numbers.shape[1] + self.codes.shape[1])

    @property
    def cells(self) -> int:
        return len(self) * self.plain_columns + sum(int(bag.nnz) for bag in self.bags)

    @classmethod
    def concatenate(cls, parts: Sequence[EncodedRows]) -> EncodedRows:
        numbers, codes = (np.vstack([getattr(part, name) for part in parts]) for name in ("numbers", "codes"))
        texts = zip(*(part.bags for part in parts), strict=True)
        return cls(numbers, codes, tuple(sparse.vstack(bags, format="csr") for bags in texts))

    def take(self, rows: np.ndarray) -> EncodedRows:
        return EncodedRows(self.numbers[rows], self.codes[rows], tuple(bag[rows] for bag in self.bags))

    def cached(self, owners: tuple[object, ...], make: Callable[[], Made]) -> Made:
        """The result of `make`, computed once for these owners as long as the rows are kept."""
        key = tuple(map(id, owners))
        if key not in self.made:
            self.made[key] = (owners, make())
        found: Made = self.made[key][1]
        return found

    def find_copies(self) -> dict[int, int]:
        """Columns that repeat an earlier one in every row, by number, and the number of that one.

        A number repeats another if it puts all rows in the same or in the opposite order. A category repeats a column
        of few distinct values that divides the rows in the same way: if all cells were different, any two columns
        would.
        """
        columns = list(range(self.plain_columns))
        if len(self) > GLANCED_AT:  # leave out those that a sample of the rows shows to be no copies
            some = np.linspace(0, len(self) - 1, GLANCED_AT).astype(np.int64)
            glances = [self._signatures(place, some) for place in columns]
            times = Counter(chain.from_iterable(glances))
            columns = [place for place in columns if not glances[place] or any(times[x] > 1 for x in glances[place])]
        first: dict[bytes, int] = {}
        found = {}
        for place in columns:
            own = self._signatures(place)
            leads = [first[one] for one in own if one in first]
            if leads:
                found[place] = leads[0]
            first.update((one, place) for one in own if one not in first)
        return found

    def _signatures(self, place: int, some: np.ndarray | None = None) -> list[bytes]:
        """What copies of a column have in common, in all or in some rows: their order, and which of them are equal."""
        number, rows = place < self.numbers.shape[1], slice(None) if some is None else some
        column = self.numbers[rows, place] if number else self.codes[rows, place - self.numbers.shape[1]]
        known = ~np.isnan(column) if number else column > 0
        distinct, ranks = np.unique(column[known], return_inverse=True)
        if len(distinct) < 2:
            return []
        found = []
        if number:  # the reversed order has the same signature
            back = len(distinct) - 1 - ranks
            apart = np.flatnonzero(ranks != back)  # there are two ranks at least
            found.append(b"order" + _spread(known, ranks if ranks[apart[0]] < back[apart[0]] else back))
        most = FEW_VALUES if number else len(ranks) if some is not None else len(ranks) // 2
        if len(distinct) <= most:
            lead = np.full(len(distinct), len(known))  # the first row with the same cell, for every row
            np.minimum.at(lead, ranks, np.flatnonzero(known))
            found.append(b"alike" + _spread(known, lead[ranks]))
        return found

    def mask_columns(self, columns: Collection[int]) -> EncodedRows:
        """A copy of the rows in which some columns are missing."""
        numbers, codes, width = self.numbers.copy(), self.codes.copy(), self.numbers.shape[1]
        numbers[:, [column for column in columns if column < width]] = np.nan
        codes[:, [column - width for column in columns if column >= width]] = 0
        return EncodedRows(numbers, codes, self.bags)

    def order_rows(self, labels: np.ndarray) -> np.ndarray:
        """Places of the rows in a canonical order: by class, then by the cells that they share with others.

        Neither the order of rows and columns, the names of categories, the sign of a number nor repeated rows change
        it. Rows that all of this leaves equal are in the order of their cells; identical rows are neighbours.
        """
        keys = [*map(_hash_words, self.bags), *self.numbers.T[::-1], *self.codes.T[::-1], labels]
        keys = [np.nan_to_num(key, nan=np.inf) for key in keys]
        order = np.lexsort(keys)
        first = np.zeros(len(order), dtype=bool)
        first[:1] = True
        for key in keys:
            first[1:] |= key[order][1:] != key[order][:-1]
        marks = self.take(order[first])._structure(labels[order[first]])[np.cumsum(first) - 1]
        return order[np.lexsort((marks, labels[order]))]

    def _structure(self, labels: np.ndarray) -> np.ndarray:
        """A hash for every row of the cells that it shares with other rows (colour refinement).

        The hash of a cell is at first that of the classes of the rows on either side of a number, or nothing; then the
        sum of the hashes of all rows that hold it. Sums of whole numbers do not depend on an order.
        """
        start = mixed(labels.astype(np.uint64) + np.uint64(1))
        words = [mixed(_hash_words(bag).view(np.uint64)) for bag in self.bags]
        cells, marks = [], []
        for place, column in enumerate((*self.numbers.T, *self.codes.T)):
            values, inverse = np.unique(column, return_inverse=True)
            if len(values) > 1:  # a column left out is one of a single value
                cells.append(inverse)
                number = place < self.numbers.shape[1]
                marks.append(
                    _hash_sides(values, _sum_hashes(start, inverse, len(values)))
                    if number
                    else (values > 0).astype(np.uint64)
                )
        for _ in range(REFINED):
            rows = sum((mixed(own) for own in words), start.copy())
            for inverse, own in zip(cells, marks, strict=True):
                column = mixed(own[inverse]).sum(dtype=np.uint64)  # columns with different cells get different keys
                rows += mixed(own + column)[inverse]
            rows = mixed(rows)
            marks = [own + _sum_hashes(rows, inverse, len(own)) for inverse, own in zip(cells, marks, strict=True)]
        return rows


def _hash_sides(values: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """A hash for every value of the hashes on its two sides, 0 if it is missing: the sign does not matter."""
    there = ~np.isnan(values)
    upto = np.cumsum(np.where(there, marks, np.uint64(0)))
    return np.where(there, mixed(upto - marks) + mixed(upto[-1] - upto), np.uint64(0))


def _sum_hashes(marks: np.ndarray, groups: np.ndarray, size: int) -> np.ndarray:
    """The sum of the hashes of every group, modulo 2^64."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(size))
    return np.add.reduceat(marks[order], starts) if size else marks[:0]


def _hash_words(bag: sparse.csr_matrix) -> np.ndarray:
    """A number for every row that depends on its words alone."""
    each = mixed(np.arange(1, 1 + bag.shape[1], dtype=np.uint64)).astype(np.float64) / 2.0**64
    return np.asarray(bag @ each)


def _spread(known: np.ndarray, marks: np.ndarray) -> bytes:
    whole = np.full(len(known), -1, dtype=np.int64)
    whole[known] = marks
    return whole.tobytes()


class EncodedColumns(Struct, frozen=True):
    """The columns of encoded rows.

    First come the `measured` numbers, then categories that are taken as numbers, up to `numbers` columns in all, then
    other categories, each with its `levels`.
    """

    keys: tuple[Key, ...]
    measured: int
    numbers: int
    levels: dict[Key, tuple[Any, ...]]
    texts: tuple[Key, ...] = ()

    @classmethod
    def of(cls, schema: Schema, texts: tuple[Key, ...] = ()) -> EncodedColumns:
        valued, coded = split_levels(schema)
        levels = {spec.key: tuple(sorted(spec.levels, key=float)) for spec in valued}  # type: ignore[arg-type]
        levels |= {spec.key: tuple(spec.levels) for spec in coded}
        reals = [spec.key for spec in schema.stored("reals")]
        return cls((*reals, *levels), len(reals), len(reals) + len(valued), levels, texts)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of categories of each column that is not a number."""
        return tuple(len(self.levels[key]) for key in self.keys[self.numbers :])


def split_levels(schema: Schema) -> tuple[list[Field], list[Field]]:
    """Categorical columns that are taken as numbers, unless the user declared them, and all others."""
    coded = [*schema.stored("codes"), *schema.stored("wide")]
    valued = [
        spec
        for spec in coded
        if not spec.declared
        and len(spec.levels) > 2
        and all(isinstance(level, (int, float)) and not isinstance(level, bool) for level in spec.levels)
    ]
    keys = {spec.key for spec in valued}
    return valued, [spec for spec in coded if spec.key not in keys]


# All columns as codes: categories as they are, numbers discretised where the class shares change.

ROWS_AN_INTERVAL, LEAST_INTERVALS, MOST_INTERVALS = 80, 4, 10
"""Bins of numbers that are looked at in pairs."""


class Binning(Struct, frozen=True, eq=False):
    """Bin edges of every number, and the number of bins or categories of every column."""

    edges: Annotated[tuple[np.ndarray, ...], Floats()]
    sizes: tuple[int, ...]

    @classmethod
    def learn(cls, rows: EncodedRows, labels: np.ndarray, weights: np.ndarray, levels: tuple[int, ...]) -> Binning:
        """Bins by Fayyad and Irani's rule; a number that no edge divides has one bin."""
        classes = int(labels.max(initial=0)) + 1
        columns = []
        for column in rows.numbers.T:
            known = np.flatnonzero(~np.isnan(column))
            columns.append(PointTable.of(column[known], labels[known], weights[known], classes))
        many = iter(by_class_each([own for own in columns if len(own.distinct) > FEW_VALUES]))
        edges = tuple(next(many) if len(own.distinct) > FEW_VALUES else find_midpoints(own.distinct) for own in columns)
        return cls.of_edges(edges, levels)

    @classmethod
    def of_edges(cls, edges: tuple[np.ndarray, ...], levels: tuple[int, ...]) -> Binning:
        return cls(edges, (*(len(cuts) + 1 for cuts in edges), *levels))

    def refine(self, rows: EncodedRows, weights: np.ndarray) -> Binning:
        """Numbers of few bins get bins of equal weight, for pairwise interactions; `self` if none gains by it."""
        wanted = min(int(weights.sum()) // ROWS_AN_INTERVAL, MOST_INTERVALS)
        if wanted < LEAST_INTERVALS:
            return self
        edges = list(self.edges)
        for place, (column, own) in enumerate(zip(rows.numbers.T, self.edges, strict=True)):
            known = ~np.isnan(column)
            if len(own) + 1 < wanted and known.any():
                found = equal_count(column[known], weights[known], wanted)
                edges[place] = found if len(found) > len(own) else own
        if all(new is old for new, old in zip(edges, self.edges, strict=True)):
            return self
        return self.with_edges(tuple(edges))

    def with_edges(self, edges: tuple[np.ndarray, ...]) -> Binning:
        return Binning.of_edges(edges, self.sizes[len(edges) :])

    @classmethod
    def by_value(cls, rows: EncodedRows, measured: int, levels: tuple[int, ...]) -> Binning:
        """No bins for the first `measured` numbers, and a bin for every value of the others."""
        values = [np.unique(column[~np.isnan(column)]) for column in rows.numbers.T[measured:]]
        return cls.of_edges((*(np.zeros(0) for _ in range(measured)), *map(find_midpoints, values)), levels)

    def codes(self, rows: EncodedRows) -> np.ndarray:
        """(rows x columns) code of each cell from 1, 0 if missing."""

        def encode() -> np.ndarray:
            bins = [
                np.where(np.isnan(column), 0, np.searchsorted(edges, column, side="left") + 1)
                for edges, column in zip(self.edges, rows.numbers.T, strict=True)
            ]
            return np.hstack([np.array(bins, dtype=np.int32).T, rows.codes]) if bins else rows.codes

        return rows.cached((self,), encode)


def find_midpoints(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[:-1] + np.diff(values) / 2)


# Standardised numbers, of the logarithm where that is closer to a normal distribution.

LARGEST = 1e6
"""Largest deviation from the mean: squares of 1e155 overflow."""
CLEARLY = 0.1
"""Nats per row by which normals of the logarithm must be likelier than normals of the number."""


class NumberScale(Struct, frozen=True, eq=False):
    """Standardisation of some numbers. `floor` is 0 for a number as it is; of others the logarithm of at least the
    floor is taken.

    A negative floor is that of negative numbers, which are treated as their opposites.
    """

    columns: np.ndarray
    floor: Annotated[np.ndarray, Floats(("columns",))]
    middle: Annotated[np.ndarray, Floats(("columns",))]
    spread: Annotated[np.ndarray, Floats(("columns",), positive=True)]

    @classmethod
    def by_class(
        cls, rows: EncodedRows, columns: np.ndarray, labels: np.ndarray, class_weights: np.ndarray
    ) -> NumberScale:
        """Takes the logarithm of positive numbers if normals of every class fit it better.

        `class_weights` are (classes x rows) weights, 0 for rows of other classes.
        """
        numbers = rows.numbers.take(columns, axis=1)
        floor = _find_floors(numbers, labels, class_weights)
        return cls(columns, floor, *column_moments(_take_logs(numbers, floor), class_weights.sum(axis=0)))

    def of(self, rows: EncodedRows) -> np.ndarray:
        """(rows x columns) deviations from the mean, at most LARGEST either way; NaN if missing."""
        logs = _take_logs(rows.numbers.take(self.columns, axis=1), self.floor)
        return np.asarray(np.clip((logs - self.middle) / self.spread, -LARGEST, LARGEST))

    def clip(self, rows: EncodedRows, most: float) -> np.ndarray:
        """(rows x columns) deviations from the mean, at most `most` either way; 0 if missing."""
        return rows.cached((self,), lambda: np.nan_to_num(np.clip(self.of(rows), -most, most), nan=0.0))


def column_moments(numbers: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every column over its known rows; 0 and 1 if there is none."""
    there = ~np.isnan(numbers)
    filled = np.where(there, numbers, 0.0)
    unit = np.abs(filled).max(axis=0, initial=0.0)
    unit = np.where(unit > 0, unit, 1.0)  # squares of numbers near 1e200 are too large for a float
    counted = np.maximum(weights @ there, 1e-300)
    middle = weights @ (filled / unit) / counted
    deviation = np.sqrt(weights @ np.where(there, (filled / unit - middle) ** 2, 0.0) / counted)
    return middle * unit, np.where(deviation > 0, deviation, 1.0) * unit


def _take_logs(numbers: np.ndarray, floor: np.ndarray) -> np.ndarray:
    if not floor.any():
        return numbers
    found = numbers.copy()
    logged = floor != 0
    sign = np.sign(floor[logged])
    found[:, logged] = sign * np.log(np.maximum(sign * numbers[:, logged], np.abs(floor[logged])))
    return found


def _find_floors(numbers: np.ndarray, labels: np.ndarray, class_weights: np.ndarray) -> np.ndarray:
    """The least value of every number whose logarithm is clearly closer to normals; 0 for others."""
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
    weights, scaled = class_weights.sum(axis=0), numbers[:, fit] / most[fit]
    logs = np.log(scaled)
    plain, bent = (_normal_likelihood(values, labels, class_weights) for values in (scaled, logs))
    gained = bent - weights @ np.nan_to_num(logs) - plain
    found[fit] = np.where(gained > CLEARLY * (weights @ there[:, fit]), least[fit], 0.0)
    return sign * found


def _normal_likelihood(numbers: np.ndarray, labels: np.ndarray, class_weights: np.ndarray) -> np.ndarray:
    """Log-likelihood of a normal in every class by column, up to a constant."""
    counted, _, squares = class_moments(numbers, labels, class_weights)
    least = 1e-6 * np.maximum(np.nanvar(numbers, axis=0), 1e-300)
    return np.asarray(-0.5 * (counted * np.log(np.maximum(squares / np.maximum(counted, 1e-300), least))).sum(axis=0))


def class_moments(
    numbers: np.ndarray, labels: np.ndarray, class_weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(classes x columns) weight and mean of the known numbers, and sum of squares around the mean."""
    there = ~np.isnan(numbers)
    filled = np.where(there, numbers, 0.0)
    counted = class_weights @ there
    means = class_weights @ filled / np.where(counted > 0, counted, 1.0)
    return counted, means, class_weights @ np.where(there, (filled - means[labels]) ** 2, 0.0)


# Weights of words in a document: rare words count more, repeated words less than proportionally.


class WordScale(Struct, frozen=True, eq=False):
    """Weights of words: log(1 + count) times a factor per word (tf-idf), each document of Euclidean length 1.

    With `counts`, words weigh as much as they are counted. A factor of 0 stands for an unknown word. `middle` and
    `spread` are of the logarithm of one more than the words of a document, for every text.
    """

    factors: Annotated[tuple[np.ndarray, ...], Floats(least=0.0)]
    middle: Annotated[np.ndarray, Floats(("factors",))]
    spread: Annotated[np.ndarray, Floats(("factors",), positive=True)]
    counts: bool = False

    @classmethod
    def learn(cls, rows: EncodedRows, weights: np.ndarray) -> WordScale:
        """Factors are 1 for a word of every document, plus the logarithm of how rare it is."""
        held = [_count_documents(bag, weights) for bag in rows.bags]
        factors = tuple(np.where(own > 0, 1.0 + np.log((1.0 + own[0]) / (1.0 + own)), 0.0) for own in held)
        for own in factors:
            own[0] = 0.0  # the mark of a document
        sizes = [_log_lengths(bag, own > 1) for bag, own in zip(rows.bags, held, strict=True)]
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
        return np.cumsum([0, *map(len, self.factors)])

    @property
    def width(self) -> int:
        return sum(map(len, self.factors))

    def weigh(self, text: int, bag: Any) -> Any:
        factors = self.factors[text][bag.indices]
        if self.counts:
            return sparse.csr_matrix((bag.data * factors, bag.indices, bag.indptr), shape=bag.shape)
        data = np.log1p(bag.data) * factors
        found = sparse.csr_matrix((data, bag.indices, bag.indptr), shape=bag.shape)
        lengths = np.sqrt(np.asarray(found.multiply(found).sum(axis=1))[:, 0])
        data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(bag.indptr))
        return found

    def words(self, rows: EncodedRows) -> Any:
        """(rows x columns of all bags) weights of the words."""

        def weigh() -> Any:
            each = [self.weigh(text, bag) for text, bag in enumerate(rows.bags)]
            return each[0] if len(each) == 1 else sparse.hstack(each, format="csr")

        return weigh() if self.counts else rows.cached((self,), weigh)

    def lengths(self, rows: EncodedRows) -> np.ndarray:
        """(rows x texts) standardised lengths of documents in known words; 0 if there is none."""
        return self._deviations([_log_lengths(bag, own > 0) for bag, own in zip(rows.bags, self.factors, strict=True)])

    def own_lengths(self, rows: EncodedRows, weights: np.ndarray) -> np.ndarray:
        """Lengths of the training rows: a word counts if it would be known without the row itself."""
        return self._deviations([_log_lengths(bag, _count_documents(bag, weights) > 1) for bag in rows.bags])

    def _deviations(self, sizes: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(np.nan_to_num((np.stack(sizes, axis=1) - self.middle) / self.spread, nan=0.0))

    def by_class(self, rows: EncodedRows, labels: np.ndarray, weights: np.ndarray, classes: int) -> np.ndarray:
        """(columns of all bags x classes) sums of the weights over all documents of a class."""
        each = sparse.csr_matrix((weights, (labels, np.arange(len(labels)))), shape=(classes, len(labels)))
        return np.asarray((each @ self.words(rows)).toarray().T)

    def split_texts(self, columns: np.ndarray) -> list[np.ndarray]:
        return [columns[first:last] for first, last in pairwise(self.ends.tolist())]


def _count_documents(bag: Any, weights: np.ndarray) -> np.ndarray:
    """The weight of the documents that hold each word, the first being that of all documents."""
    there = sparse.csr_matrix(((bag.data > 0).astype(np.float64), bag.indices, bag.indptr), shape=bag.shape)
    return np.asarray(weights @ there)


def _log_lengths(bag: Any, known: np.ndarray) -> np.ndarray:
    """The logarithm of one more than the known words of every document; NaN if there is none."""
    counted = known.astype(np.float64)
    counted[0] = 0.0
    return np.where(bag[:, :1].toarray()[:, 0] > 0, np.log1p(bag @ counted), np.nan)
