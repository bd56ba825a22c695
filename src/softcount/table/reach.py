"""How far the numbers of a table reach: farther than their first rows promised, they cannot be squared and added."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from softcount.errors import DataError
from softcount.records import dataclass
from softcount.sources import wording
from softcount.table.chunk import Chunk
from softcount.table.column_plan import FARTHEST, Becomes, Contradiction
from softcount.table.schema import Kind, Schema

SAFE = 2.0**40
"""Times as far as the first rows may lie that later ones may, before they are counted in larger units."""
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Reach:
    """The least and the greatest number of every column, 0 among them, and the first cell that lies too far out."""

    ends: np.ndarray
    far: Contradiction | None = None

    def __add__(self, other: Reach) -> Reach:
        ends = np.minimum(self.ends[0], other.ends[0]), np.maximum(self.ends[1], other.ends[1])
        return Reach(np.stack(ends), self.far or other.far)

    def check(self, schema: Schema) -> None:
        """Raise where a column's ends are farther apart than any number says, or a cell contradicts its scale."""
        for place, spec in enumerate(schema.stored("reals")):
            least, greatest = self.ends[:, place].tolist()
            if spec.kind is Kind.REAL and greatest / 2 - least / 2 > LARGEST / 2:
                raise DataError(
                    f"{wording.column(spec.key)} goes from {least:.3g} to {greatest:.3g}, which is farther than any "
                    "number says. Count it in a larger unit: divide the column, by 1e10 say."
                )
        if self.far is not None:
            raise self.far


def reaching(schema: Schema) -> Callable[[Chunk], Reach]:
    """How far the numbers of a chunk reach."""
    return partial(reach_of, schema)


def reach_of(schema: Schema, chunk: Chunk) -> Reach:
    """The same for one chunk of a table of this schema."""
    numbers = chunk.reals
    ends = np.stack([np.nanmin(numbers, axis=0, initial=0.0), np.nanmax(numbers, axis=0, initial=0.0)])
    for place, spec in enumerate(schema.stored("reals")):
        if spec.kind is Kind.REAL:
            off = np.abs(numbers[:, place] - spec.anchor)
            far = np.flatnonzero(off > SAFE * FARTHEST / spec.scale)
            if len(far):
                row = chunk.start + int(far[0]) + 1
                return Reach(ends, Contradiction(spec.key, row, "numbers far out", Becomes.FARTHER))
    return Reach(ends)
