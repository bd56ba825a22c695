"""A run of encoded rows: all that the engine ever sees of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

UNKNOWN = -1
"""The label code of a row whose class is not known."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows `start` .. `start + n_rows`, column by column in the arrays that `Schema.places` names.

    `reals` holds numbers as they came, NaN where missing; its memory layout is free (rows first is fastest).
    `codes` (one byte) and `wide` (four bytes) hold levels: 0 is missing, 1..m the levels of the field in order,
    m + 1 a level the model has never seen. `bags` are sparse blocks of counts: the one of a CSR table, or one for every
    text column, whose first column is 1 for a document and 0 where it is missing, followed by its words.
    `labels` are class codes, `UNKNOWN` where not known; `weights` are row weights, None for all ones.
    """

    start: int
    n_rows: int
    reals: np.ndarray  # (rows, p) float64
    codes: np.ndarray  # (rows, q) uint8, C order
    wide: np.ndarray  # (rows, r) int32, C order
    bags: tuple[sparse.csr_matrix, ...] = ()
    labels: np.ndarray | None = None  # (rows,) int32
    weights: np.ndarray | None = None  # (rows,) float64

    def take(self, rows: np.ndarray | slice) -> Chunk:
        """Some of its rows, as if they came one after another where it starts."""
        reals = self.reals[rows]
        codes, wide = (np.ascontiguousarray(store[rows]) for store in (self.codes, self.wide))
        labels, weights = (None if side is None else side[rows] for side in (self.labels, self.weights))
        return Chunk(self.start, len(reals), reals, codes, wide, tuple(bag[rows] for bag in self.bags), labels, weights)


@dataclass(frozen=True, slots=True)
class Chunks:
    """A few chunks, to be gone through as a table is."""

    chunks: Sequence[Chunk]
    n_rows: int | None = None

    def tasks(self) -> list[Callable[[], Chunk]]:
        return [lambda chunk=chunk: chunk for chunk in self.chunks]  # type: ignore[misc]
