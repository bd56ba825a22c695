"""Rows of a table as matrices, of numbers, of levels and of words: what classifiers are learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import Any, TypeVar

import numpy as np

from softcount.numerics.late_scipy import sparse
from softcount.numerics.mixed_bits import mixed
from softcount.records import dataclass
from softcount.table.chunk import Chunk
from softcount.table.schema import Field, Key, Schema

Made = TypeVar("Made")
FEW_VALUES = 12
"""Different values up to which each number is an interval of its own."""
REFINED = 2
"""Rounds of refinement: each distinguishes rows by the rows that they share cells with."""
GLANCED_AT = 1024
"""Rows by which most columns are seen to be no copies."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
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
                marks.append(_sides(values, _sums(start, inverse, len(values))) if number else _known(values))
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


def _known(values: np.ndarray) -> np.ndarray:
    return (values > 0).astype(np.uint64)


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
