"""What the first rows of a column say: how many values, how many distinct, and whether they are numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.table.arrays import text_of
from softcount.table.columns import Cells, MissingWords, cells_of, distinct, flat, numbers
from softcount.table.numerals import PLAIN, floats_of
from softcount.table.schema import Key
from softcount.table.texts import without_marks

FEW_BINS = 1 << 20
"""Widest range of whole numbers that is counted in bins rather than sorted."""

FEW_TEXTS = 20
"""Different cells up to which text is categories, however long."""

LONG_CELL = 64
FEW_CELLS = 8_192
FEW_MEANT = 1_000
"""Bytes of a cell, on average, from which on a column is looked at in its first cells only; how many those are; and
how many of them their words are counted in."""


@dataclass(frozen=True, slots=True)
class Facts:
    """`rows` were looked at, `known` of them hold a value, `different` values are distinct (numbers: at least so many).

    `values` are the numbers in row order without the missing ones, or None for text. `only` is the one value of a
    constant column. `words` is the mean number of words in a cell of text. `coded` says that the table's owner
    already keeps the column as categories.
    """

    key: Any
    cells: Cells
    rows: int
    known: int
    different: int
    values: np.ndarray | None = None
    only: object = None
    words: float = 0.0
    coded: bool = False

    @property
    def whole(self) -> bool:
        return self.values is not None and bool(np.all(self.values == np.floor(self.values)))


def facts_of(key: Key, column: Any, words: MissingWords) -> Facts:
    """The facts of an Arrow column."""
    import pyarrow as pa

    column = flat(column)
    cells = cells_of(column.type)
    if cells is Cells.NESTED:
        return Facts(key, cells, len(column), 0, 0)
    if cells in (Cells.TEXT, Cells.TRUTH):
        return _text_facts(key, column, words)
    coded = pa.types.is_dictionary(column.type)
    return number_facts(key, numbers(column, words, key, 0), cells, coded=coded)


def number_facts(key: Key, column: np.ndarray, cells: Cells, *, coded: bool = False) -> Facts:
    """The facts of a column of numbers, NaN where missing."""
    values = column[~np.isnan(column)]
    different = count_distinct(values)
    only = _only(values, cells) if different == 1 else None
    return Facts(key, cells, len(column), len(values), different, values, only, coded=coded)


def _only(values: np.ndarray, cells: Cells) -> object:
    value = float(values[0])
    if cells is Cells.TRUTH:
        return bool(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def count_distinct(values: np.ndarray) -> int:
    """How many distinct numbers; for numbers with decimals only whether there are none, one or several."""
    if not len(values):
        return 0
    low, high = float(values.min()), float(values.max())
    if low == high:
        return 1
    if not np.all(values == np.floor(values)):
        return 2
    if high - low < FEW_BINS:
        return int(np.count_nonzero(np.bincount((values - low).astype(np.int64))))
    return len(np.unique(values))


def _text_facts(key: Key, column: Any, words: MissingWords) -> Facts:
    return _running_facts(key, column, words) or _cell_facts(key, column, words)


def _running_facts(key: Key, column: Any, words: MissingWords) -> Facts | None:
    """Facts of cells too long and too many to be categories or numbers; None where they are not.

    The first few thousand say enough: looking at every cell of 44 MB takes 3 s.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    some = column.slice(0, FEW_CELLS)
    coded = pa.types.is_dictionary(some.type)
    spelled = some.dictionary if coded else some
    if cells_of(spelled.type) is not Cells.TEXT or (pc.mean(pc.binary_length(spelled)).as_py() or 0) < LONG_CELL:
        return None
    some = without_marks(some.dictionary_decode() if coded else some, words.missing)
    different = pc.count_distinct(some).as_py()
    if different <= FEW_TEXTS:
        return None
    texts = some.drop_null().slice(0, FEW_MEANT).to_pylist()
    return Facts(key, Cells.TEXT, len(some), len(some) - some.null_count, different, words=_mean_words(texts))


def _cell_facts(key: Key, column: Any, words: MissingWords) -> Facts:
    found, places = distinct(column, words)
    cells = cells_of(column.type)
    kept = [value is not None for value in found]
    known = np.append(kept, False)[places] if len(places) else np.zeros(0, bool)
    texts = [value for value in found if value is not None]
    different = len(set(texts))
    only = texts[0] if different == 1 else None
    values = None
    if cells is Cells.TEXT and texts:
        floats, bad = floats_of(text_of([None if value is None else value.strip() for value in found]), PLAIN)
        if not bad.any():
            return _spelt_facts(key, np.append(floats, np.nan)[places], words)
    return Facts(key, cells, len(places), int(known.sum()), different, values, only, _mean_words(texts))


def _spelt_facts(key: Key, column: np.ndarray, words: MissingWords) -> Facts:
    from softcount.table.columns import without

    return number_facts(key, without(column, words.numbers), Cells.TEXT)


def _mean_words(texts: list[str]) -> float:
    some = [text for text in texts[:FEW_MEANT] if isinstance(text, str)]
    return sum(len(text.split()) for text in some) / len(some) if some else 0.0
