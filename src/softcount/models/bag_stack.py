"""Sparse blocks of counts: the words of a text column, or a whole sparse table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import Twofold
from softcount.core.lazy import sparse
from softcount.errors import DataError
from softcount.families.density import Density
from softcount.families.setting import IMPOSSIBLE
from softcount.models.nodes import Name, Params
from softcount.models.stacks import SingleStack, Tallies
from softcount.table.chunk import Chunk


class SparseRows(Struct, frozen=True):
    """Rows of a sparse matrix in the form of the kernels. A slice is a view, which SciPy would copy."""

    indptr: np.ndarray  # (rows + 1,) int64
    ids: np.ndarray  # int32
    data: np.ndarray  # float64
    width: int

    def __getitem__(self, rows: slice) -> SparseRows:
        start, stop, _ = rows.indices(len(self.indptr) - 1)
        return SparseRows(self.indptr[start : max(start, stop) + 1], self.ids, self.data, self.width)

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr, self.ids, self.data

    @property
    def cells(self) -> int:
        return int(self.indptr[-1] - self.indptr[0])

    @property
    def nbytes(self) -> int:
        return self.cells * (self.ids.itemsize + self.data.itemsize)

    @property
    def matrix(self) -> sparse.csr_matrix:
        first, last = self.indptr[0], self.indptr[-1]
        cells = self.data[first:last], self.ids[first:last], self.indptr - first
        return sparse.csr_matrix(cells, shape=(len(self.indptr) - 1, self.width))

    @classmethod
    def of(cls, matrix: Any) -> SparseRows:
        # A compiled loop would read and write past the end of its table.
        if len(matrix.indices) and not 0 <= matrix.indices.min() <= matrix.indices.max() < matrix.shape[1]:
            raise DataError(
                f"a sparse table of {matrix.shape[1]} columns has column indices outside of them. "
                f"Create the matrix again."
            )
        ids = np.ascontiguousarray(matrix.indices, dtype=np.int32)
        data = np.ascontiguousarray(matrix.data, dtype=np.float64)
        return cls(matrix.indptr.astype(np.int64, copy=False), ids, data, matrix.shape[1])

    @classmethod
    def joined(cls, parts: Sequence[SparseRows]) -> SparseRows:
        return cls.of(sparse.vstack([part.matrix for part in parts], format="csr"))


class Bag(SingleStack, frozen=True, eq=False):
    """One text column, or a sparse table of counts."""

    def column(self, chunk: Chunk, node: int = 0) -> Any:
        return chunk.bags[self.places[0].slot]

    def prepare(self, chunk: Chunk) -> SparseRows:
        bag = self.column(chunk)
        if bag.data.min(initial=0.0) < 0:
            at = int(np.argmax(bag.data < 0))
            row = chunk.start + int(np.searchsorted(bag.indptr, at, side="right"))
            raise DataError(
                f"Negative values in data: column {int(bag.indices[at])}, row {row} holds "
                f"{bag.data[at]:g}. A sparse table holds counts: 0, 1, 2, ..."
            )
        return SparseRows.of(self.node.family.features(bag, self.node.setting))

    def features(self, data: SparseRows) -> None:
        return None

    def base(self, data: SparseRows) -> np.ndarray | float:
        return self.node.family.base(data.matrix)

    def compile(self, params: Params) -> Any:
        """Return log-weights with the groups side by side, and weights that count absent words that are certain."""
        density = self.node.density(params)
        if not density.is_product:
            return density
        lacking = density.lacking
        return _abreast(self.node.family.natural(density.own)), None if lacking is None else _abreast(lacking)

    def weighed(self, compiled: Any, weights: np.ndarray) -> Any:
        """Return None if some word is impossible, or if words are drawn one after another."""
        if isinstance(compiled, Density) or compiled[1] is not None or compiled[0].min(initial=0.0) < IMPOSSIBLE:
            return None
        return compiled[0] * weights[0], None

    def score(self, data: SparseRows, compiled: Any, out: np.ndarray) -> None:
        if isinstance(compiled, Density):
            out += compiled.score(data.matrix)
            return
        weights, lacking = compiled
        self.kernels.score_bags(*data.parts, weights, out)
        if lacking is not None:
            lack = np.zeros_like(out)
            self.kernels.score_bags(*data.parts, lacking, lack)
            out[lack > 0] = -np.inf

    def score_linear(self, data: SparseRows, node: int, weights: np.ndarray, out: np.ndarray) -> None:
        self.kernels.score_bags(*data.parts, _abreast(weights), out)

    def count(self, data: SparseRows, memberships: np.ndarray, compiled: Any) -> Tallies:
        counts = self.kernels.count_bags_soft(*data.parts, memberships, data.width)
        return {self.name: Plainly(counts.T, np.zeros(counts.shape).T)}

    def count_labelled(self, data: SparseRows, labels: np.ndarray, weights: np.ndarray | None, groups: int) -> Tallies:
        return {self.name: Pending(self.kernels, (Labelled(data, labels, weights),), (data.width, groups))}

    def split(self, counts: Twofold) -> dict[Name, Twofold]:
        whole = counts.whole if isinstance(counts, (Pending, Plainly)) else counts
        return {self.bundles[0].name: whole}


class Plainly(Twofold):
    """Expected counts of a few blocks of rows, added in plain doubles: a dozen blocks lose hardly any precision.

    With a million cells, exact addition took 47 ms instead of 4, a third of a clustering.
    """

    __slots__ = ()

    def joined(self, other: Plainly) -> Plainly:
        return Plainly(self.hi + other.hi, self.lo)

    @property
    def whole(self) -> Twofold:
        return Twofold(self.hi, self.lo)


class Labelled(Struct, frozen=True):
    """Rows that wait to be counted."""

    rows: SparseRows
    labels: np.ndarray
    weights: np.ndarray | None


class Pending(Twofold):
    """Counts of labelled rows that are delayed until there are as many rows as cells to add them to.

    A chunk has a few thousand documents, and a table of 200,000 words in 20 classes four million cells: making and
    adding one for every chunk took longer than reading the documents. Rows are added one by one in their order, however
    they were divided into chunks.
    """

    __slots__ = ("_whole", "base", "kernels", "pieces", "size")

    def __init__(
        self, kernels: Any, pieces: tuple[Labelled, ...], size: tuple[int, int], base: np.ndarray | None = None
    ) -> None:
        self.kernels, self.pieces, self.size, self.base = kernels, pieces, size, base
        self._whole: Twofold | None = None

    def __reduce__(self) -> Any:
        return Pending, (self.kernels, self.pieces, self.size, self.base)

    def joined(self, other: Pending) -> Pending:
        size = max(self.size[0], other.size[0]), max(self.size[1], other.size[1])
        if other.base is not None:
            return Pending(self.kernels, (), size, self.counted(size) + other.counted(size))
        both = Pending(self.kernels, self.pieces + other.pieces, size, self.base)
        waiting = sum(piece.rows.cells for piece in both.pieces)
        return Pending(self.kernels, (), size, both.counted()) if waiting > size[0] * size[1] else both

    def counted(self, size: tuple[int, int] | None = None) -> np.ndarray:
        """Return the (columns x groups) counts, with room for more of either if `size` is given."""
        out = np.zeros(size or self.size)
        if self.base is not None:
            out[: self.base.shape[0], : self.base.shape[1]] = self.base
        for piece in self.pieces:
            self.kernels.count_bags_labelled(*piece.rows.parts, piece.labels, piece.weights, out)
        return out

    def regrouped(self, order: np.ndarray, groups: int) -> Pending:
        """Move group g to `order[g]` among `groups` by relabelling the rows; a negative order drops it.

        Moving the counts of 20 classes and 209,404 words took 95 MB and a quarter of a fit, and transposed them.
        """
        moved = np.full(self.size[1] + 1, -1, dtype=np.int32)  # the last entry is for rows without a label
        moved[: min(len(order), self.size[1])] = order[: self.size[1]]
        pieces = tuple(replace(piece, labels=moved[piece.labels]) for piece in self.pieces)
        base = None
        if self.base is not None:
            kept = np.flatnonzero(moved[: self.base.shape[1]] >= 0)
            base = np.zeros((self.size[0], groups))
            base[: len(self.base), moved[kept]] = self.base[:, kept]
        return Pending(self.kernels, pieces, (self.size[0], groups), base)

    @property
    def whole(self) -> Twofold:
        if self._whole is None:
            # The layout stays that of counting: transposing a million cells takes as long as a pass. The rounding
            # errors are zeros that take no memory until something is added.
            counts = self.counted()
            self._whole = Twofold(counts.T, np.zeros(counts.shape).T)
        return self._whole

    @property
    def hi(self) -> np.ndarray:  # type: ignore[override]
        return self.whole.hi

    @property
    def lo(self) -> np.ndarray:  # type: ignore[override]
        return self.whole.lo

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size[::-1]


def _abreast(weights: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(weights.T)
