"""Chunks of encoded rows, and their folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.lazy import sparse
from softcount.core.special import mixed
from softcount.errors import DataError
from softcount.sources import wording
from softcount.table.schema import FARTHEST, Becomes, ColumnPlace, Contradiction, Key, Kind, Schema

UNKNOWN = -1
"""The label code of a row whose class is unknown."""
MOST_REPEATS = 1 << 24
"""Most repetitions of rows that are assigned to folds one by one."""


class Chunk(Struct, frozen=True):
    """Rows `start` .. `start + n_rows`, column by column in the arrays that `Schema.places` names.

    `reals` holds unchanged numbers, NaN if missing; any memory layout is allowed (C order is fastest). `codes` (one
    byte) and `wide` (four bytes) hold categories: 0 is missing, 1..m are the categories of the field in order, m + 1 is
    an unseen category. `bags` are sparse blocks of counts: one for a CSR table, or one for every text column. The first
    column of a text bag is 1 for a document and 0 if it is missing; the word counts follow. `labels` are class codes,
    `UNKNOWN` if not known. `weights` are row weights, None for all ones. `borders` are the rows, counted within the
    chunk, at which a new sequence starts; None if rows are not sequences.
    """

    start: int
    n_rows: int
    reals: np.ndarray  # (rows, p) float64
    codes: np.ndarray  # (rows, q) uint8, C order
    wide: np.ndarray  # (rows, r) int32, C order
    bags: tuple[sparse.csr_matrix, ...] = ()
    labels: np.ndarray | None = None  # (rows,) int32
    weights: np.ndarray | None = None  # (rows,) float64
    borders: np.ndarray | None = None  # (sequences,) increasing rows of this chunk

    def column(self, place: ColumnPlace) -> np.ndarray:
        """Return the numbers or codes of a column."""
        return np.asarray(getattr(self, place.store)[:, place.slot])

    @property
    def row_weights(self) -> np.ndarray:
        return np.ones(self.n_rows) if self.weights is None else self.weights

    @property
    def total_weight(self) -> float:
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    def take(self, rows: np.ndarray | slice) -> Chunk:
        """Return some of its rows; rows of sequences only as a slice. The result keeps the `start` of the chunk."""
        borders = self.borders
        if borders is not None:
            first, stop, step = rows.indices(self.n_rows) if isinstance(rows, slice) else (0, 0, 0)
            if step != 1:
                raise ValueError("rows of sequences stay together: take a slice without a step, not rows picked out")
            borders = borders[(borders >= first) & (borders < stop)] - first
        reals = self.reals[rows]
        codes, wide = (np.ascontiguousarray(store[rows]) for store in (self.codes, self.wide))
        labels, weights = (None if side is None else side[rows] for side in (self.labels, self.weights))
        bags = tuple(bag[rows] for bag in self.bags)
        return Chunk(self.start, len(reals), reals, codes, wide, bags, labels, weights, borders)


def end_to_end(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    if len(chunks) < 2 or any(chunk.bags or chunk.borders is not None for chunk in chunks):
        return chunks
    first = chunks[0]
    names = [x for x in ("reals", "codes", "wide", "labels", "weights") if getattr(first, x) is not None]
    joined = {name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in names}
    return [replace(first, n_rows=len(joined["codes"]), **joined)]


class Chunks(Struct, frozen=True):
    """A few chunks with the interface of a table."""

    chunks: Sequence[Chunk]
    n_rows: int | None = None

    def tasks(self) -> list[Callable[[], Chunk]]:
        return [partial(_itself, chunk) for chunk in self.chunks]


def _itself(chunk: Chunk) -> Chunk:
    return chunk


PAIRS: tuple[tuple[object, object], ...] = (
    (0, 1), (False, True), ("no", "yes"), ("No", "Yes"), ("n", "y"), ("N", "Y"), ("f", "t"), ("F", "T"),
    ("false", "true"), ("False", "True"),
)  # fmt: skip
"""Opposites: a yes-or-no column gets its other category even if it does not occur."""


class Settled(Struct, frozen=True):
    """The result of a full pass: the schema with sorted categories, and the new code of every code.

    `remap[key][old]` is the new code of a category. `classes` are the sorted labels, and `label_remap[old]` are their
    new codes (None: they were coded in order).
    """

    schema: Schema
    remap: dict[Key, np.ndarray]
    classes: list[Any]
    label_remap: np.ndarray | None
    notes: list[str] = field(default_factory=list)

    def moves_alike(self, other: Settled) -> bool:
        """Whether both map codes and labels alike."""
        return (
            self.remap.keys() == other.remap.keys()
            and all(np.array_equal(move, other.remap[key]) for key, move in self.remap.items())
            and np.array_equal(self.label_remap, other.label_remap)  # type: ignore[arg-type]  # or None
        )

    def recoded(self, chunk: Chunk) -> Chunk:
        labels = chunk.labels
        if labels is not None and self.label_remap is not None:
            labels = np.where(labels < 0, labels, self.label_remap[np.maximum(labels, 0)]).astype(np.int32)
        stores = {"codes": chunk.codes, "wide": chunk.wide}
        for store, codes in stores.items():
            fields = self.schema.stored(store)
            moves = [(j, self.remap[spec.key]) for j, spec in enumerate(fields) if spec.key in self.remap]
            for j, move in moves:
                if (move != np.arange(len(move))).any():
                    if stores[store] is codes:
                        stores[store] = codes.copy()
                    stores[store][:, j] = move.astype(codes.dtype)[codes[:, j]]
        return replace(chunk, labels=labels, **stores)

    def with_opposites(self, keys: Iterable[Key]) -> Settled:
        """Return the result with both categories of yes-or-no columns of which only one occurs."""
        schema, remap = self.schema, dict(self.remap)
        for key in keys:
            spec = schema[key]
            level = spec.levels[0] if len(spec.levels) == 1 else None
            pair = next((pair for pair in PAIRS if level in pair and type(level) is type(pair[0])), None)
            if pair is not None:
                move = remap.get(key, np.array([0, 1]))
                remap[key] = move + (move > 0) * int(level == pair[1])
                schema = schema.with_field(replace(spec, levels=pair))
        return replace(self, schema=schema, remap=remap)


class RowRange(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def n_rows(self) -> int: ...


class WeightedRows(RowRange, Protocol):
    @property
    def weights(self) -> np.ndarray | None: ...


class Repeats(Struct, frozen=True):
    """Integer weights as repetitions: a row of weight n is n rows, the first of a chunk having number `first[start]`.

    No row is repeated more than `most` times; the repetitions of a heavier row weigh more.
    """

    first: Mapping[int, int]
    most: float = np.inf

    @classmethod
    def of(
        cls, weights: Callable[[], Iterable[tuple[int, np.ndarray | None]]], most: int = MOST_REPEATS
    ) -> Repeats | None:
        """Number the repetitions of all chunks; None if all weights are 1, or some are not integers.

        `weights` yields the start and the weights of every chunk. Rows are repeated at most `most` times in all; with
        more, the weights are read a second time and limited. Only the weights of one chunk are in memory.
        """
        found, ones, rows = {}, True, 0
        for start, part in weights():
            own = np.ones(0) if part is None else part
            if not (own == np.floor(own)).all():
                return None
            ones, rows = ones and bool((own == 1).all()), rows + len(own)
            found[start] = float(own.sum())
        if ones:
            return None
        each = np.inf if sum(found.values()) <= most else max(1, most // rows)
        if each < np.inf:
            found = {start: 0.0 if part is None else float(np.minimum(part, each).sum()) for start, part in weights()}
        ends = np.cumsum([0, *map(int, found.values())]).tolist()
        return cls(dict(zip(found, ends, strict=False)), each)

    def times(self, weights: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.minimum(weights, self.most).astype(np.int64)
        return found


class RowUnits(Struct, frozen=True, eq=False):
    """The unit of every row by row number: copies of a row share one unit. `whole`: weights are counts of copies."""

    numbers: np.ndarray
    whole: bool


class Folded(Struct, frozen=True):
    """Rows of a chunk with their folds: row i here is row `rows[i]` of the chunk, in fold `folds[i]`."""

    chunk: Chunk
    rows: np.ndarray
    folds: np.ndarray


class Split(Struct, frozen=True):
    """The fold of a row, from its number and the seed. With a share, fold 0 is held out and fold 1 trains.

    If weights are `repeats`, each repetition of a row has a number and a fold: the folds are those of the table with
    its rows written out. If identical rows are copies, their fold is that of their unit (`units`), or of the row if
    there are too many rows to compare. A split `inside` another has only the training rows of that split.
    """

    folds: int
    seed: int
    share: float | None = None
    repeats: Repeats | None = None
    inside: Split | None = None
    units: RowUnits | None = None

    @property
    def counts_weights(self) -> bool:
        return self.repeats is not None or (self.units is not None and self.units.whole)

    @property
    def tested(self) -> range:
        return range(1) if self.share is not None else range(self.folds)

    def of(self, rows: RowRange) -> np.ndarray:
        return self.of_numbers(self._numbers(rows))

    def _numbers(self, rows: RowRange) -> np.ndarray:
        """Return the numbers that decide the folds of rows: row numbers, or those of their units."""
        if self.units is not None:
            return self.units.numbers[rows.start : rows.start + rows.n_rows]
        return np.arange(rows.start, rows.start + rows.n_rows)

    def folded(self, chunk: Chunk) -> Folded:
        """Assign a chunk's rows to folds.

        A row with repetitions in several folds is in each of them, with its share of the weight.
        """
        if self.repeats is None and self.inside is None:
            return Folded(chunk, np.arange(chunk.n_rows), self.of(chunk))
        shares = self._shares(chunk, chunk.labels)
        rows, folds = np.nonzero(shares)
        return Folded(replace(chunk.take(rows), weights=shares[rows, folds]), rows, folds.astype(np.int32))

    def weights_in(self, rows: WeightedRows, fold: int) -> np.ndarray:
        if self.repeats is not None:
            return self._shares(rows, None)[:, fold]
        return np.where(self.of(rows) == fold, 1.0 if rows.weights is None else rows.weights, 0.0)

    def _shares(self, chunk: WeightedRows, labels: np.ndarray | None) -> np.ndarray:
        """Return the (rows x folds) weights of each row in each fold."""
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        times = np.ones(chunk.n_rows, np.int64) if self.repeats is None else self.repeats.times(weights)
        rows = np.repeat(np.arange(chunk.n_rows), times)
        numbers = self._numbers(chunk)
        if self.repeats is not None:
            numbers = self.repeats.first[chunk.start] + np.arange(len(rows))
        if self.inside is not None:
            trains = self.inside.of_numbers(numbers) == 1
            if labels is not None:  # a row without a label is never held out
                trains |= labels[rows] == UNKNOWN
            rows, numbers = rows[trains], numbers[trains]
        each = (weights / np.maximum(times, 1))[rows]
        shares = np.bincount(rows * self.folds + self.of_numbers(numbers), each, minlength=chunk.n_rows * self.folds)
        return shares.reshape(chunk.n_rows, self.folds)

    def of_numbers(self, numbers: np.ndarray) -> np.ndarray:
        apart = np.uint64((self.seed & (2**63 - 1)) * 0x9E3779B97F4A7C15 % 2**64)
        drawn = mixed(numbers.astype(np.uint64) + apart)
        if self.share is not None:
            return (drawn / 2.0**64 >= self.share).astype(np.int32)
        return (drawn % np.uint64(self.folds)).astype(np.int32)


# -- numbers much larger than the first rows, which cannot be squared and added

SAFE = 2.0**40
"""Factor by which later numbers may exceed `FARTHEST` before they are counted in larger units."""
LARGEST = float(np.finfo(np.float64).max)


class Reach(Struct, frozen=True):
    """The smallest and the largest number of every column, 0 included, and the first cell that is out of reach."""

    ends: np.ndarray
    far: Contradiction | None = None

    def __add__(self, other: Reach) -> Reach:
        ends = np.minimum(self.ends[0], other.ends[0]), np.maximum(self.ends[1], other.ends[1])
        return Reach(np.stack(ends), self.far or other.far)

    def check(self, schema: Schema) -> None:
        """Raise an error if the range of a column overflows, or a contradiction if a cell exceeds its scale."""
        for place, spec in enumerate(schema.stored("reals")):
            least, greatest = self.ends[:, place].tolist()
            if spec.kind is Kind.REAL and greatest / 2 - least / 2 > LARGEST / 2:
                raise DataError(
                    f"{wording.column(spec.key)} goes from {least:.3g} to {greatest:.3g}, which is more than a "
                    "float can hold. Use a larger unit: divide the column, by 1e10 for example."
                )
        if self.far is not None:
            raise self.far


def reach_of(schema: Schema, chunk: Chunk) -> Reach:
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
