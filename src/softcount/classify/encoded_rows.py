"""Rows of a table as two matrices, one of numbers and one of levels: what classifiers are learned from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from softcount.table.chunk import Chunk
from softcount.table.schema import Key, Schema


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """`numbers` are NaN where missing; `codes` are 1..m for the levels of a column, 0 where nothing is known of it.

    Columns come in that order wherever they are numbered: numbers first, then levels.
    """

    numbers: np.ndarray  # (rows x numbers) float64
    codes: np.ndarray  # (rows x columns of levels) int32

    @classmethod
    def of(cls, schema: Schema, chunks: Sequence[Chunk]) -> EncodedRows:
        """The rows of some chunks; a level that the schema does not have is nothing known."""
        sizes = np.array(level_sizes(schema), dtype=np.int32)
        codes = [np.hstack([chunk.codes.astype(np.int32), chunk.wide]) for chunk in chunks]
        whole = np.vstack(codes) if codes else np.zeros((0, len(sizes)), dtype=np.int32)
        numbers = [chunk.reals for chunk in chunks]
        width = len(schema.stored("reals"))
        return cls(np.vstack(numbers) if numbers else np.zeros((0, width)), np.where(whole > sizes, 0, whole))

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: np.ndarray) -> EncodedRows:
        """Some of the rows."""
        return EncodedRows(self.numbers[rows], self.codes[rows])

    def copies(self) -> dict[int, int]:
        """Columns that say nothing but what an earlier one says in every row, by number, and which one that is."""
        first: dict[bytes, int] = {}
        found = {}
        for place, column in enumerate([*self.numbers.T, *self.codes.T]):
            _, same = np.unique(column, return_inverse=True)
            lead = np.full(int(same.max(initial=-1)) + 1, len(same))
            np.minimum.at(lead, same, np.arange(len(same)))
            known = ~np.isnan(column) if place < self.numbers.shape[1] else column > 0
            own = np.where(known, lead[same], -1).tobytes()  # the first row with the same cell: names do not matter
            if own in first:
                found[place] = first[own]
            first.setdefault(own, place)
        return found

    def without(self, columns: Collection[int]) -> EncodedRows:
        """The same with nothing known of some columns."""
        numbers, codes, width = self.numbers.copy(), self.codes.copy(), self.numbers.shape[1]
        numbers[:, [column for column in columns if column < width]] = np.nan
        codes[:, [column - width for column in columns if column >= width]] = 0
        return EncodedRows(numbers, codes)

    def in_order(self, labels: np.ndarray) -> np.ndarray:
        """Places of the rows in an order that does not depend on how they came: by class, then column by column."""
        keys = [*self.numbers.T[::-1], *self.codes.T[::-1], labels]
        return np.lexsort([np.nan_to_num(key, nan=np.inf) for key in keys])


def column_keys(schema: Schema) -> tuple[Key, ...]:
    """The names of the columns of encoded rows."""
    return tuple(spec.key for store in ("reals", "codes", "wide") for spec in schema.stored(store))


def level_sizes(schema: Schema) -> tuple[int, ...]:
    """How many levels each column of levels has."""
    return tuple(len(spec.levels) for store in ("codes", "wide") for spec in schema.stored(store))
