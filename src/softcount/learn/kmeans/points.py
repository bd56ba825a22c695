"""Rows made ready for distances: moved near zero and scaled where squares would lose digits or overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.kernels.nearest import Rows, squared_norms
from softcount.numerics.late_scipy import sparse
from softcount.records import dataclass
from softcount.run.threads import Threads
from softcount.sources.wording import column as named

LOOKED_AT = 1_024
"""Rows, evenly spaced, whose median is the anchor."""

FAR = 16.0
"""Typical deviations from zero beyond which a column is moved: nearer, products lose less than three digits."""

COMFORTABLE = {4: 20, 8: 200}
"""Powers of two within which the squares of numbers of so many bytes neither overflow nor vanish."""

BEYOND = 2.0**480
"""Distance at which every centre is equally far in float64, and squares come near to overflow."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Distances are taken between (x - anchor) * scale; with `unit`, between rows of length one, whatever the scale."""

    anchor: np.ndarray
    scale: float = 1.0
    unit: bool = False

    @property
    def ruler(self) -> float:
        """A distance as the kernels see it, over the same in the table's own units."""
        return 1.0 if self.unit else self.scale

    def inside(self, centres: np.ndarray) -> np.ndarray:
        """Centres as the kernels see them."""
        return np.ascontiguousarray(centres * self.ruler - self.anchor * self.ruler, dtype=np.float64)

    def outside(self, centres: np.ndarray) -> np.ndarray:
        """Centres in the table's own units."""
        # Added first: a difference of numbers near 1e308 would overflow.
        return (centres + self.anchor * self.ruler) / self.ruler

    def place(self, X: Rows) -> Rows:
        """Rows as the kernels see them; the same memory where nothing has to be done to them."""
        if sparse.issparse(X):
            rows = X if self.scale == 1.0 else sparse.csr_matrix((X.data * self.scale, X.indices, X.indptr), X.shape)
            return unit_rows(rows) if self.unit else rows
        if self.scale != 1.0 or self.anchor.any():
            X = X * X.dtype.type(self.scale) - (self.anchor * self.scale).astype(X.dtype)
        return np.ascontiguousarray(unit_rows(X) if self.unit else X)

    def place_here(self, X: np.ndarray) -> np.ndarray:
        """As `place`, for rows that nobody else has: some at a time, in their own memory."""
        for span in spans(len(X)):
            placed = self.place(X[span])
            if not np.may_share_memory(placed, X):
                X[span] = placed
        return X

    def bring(self, X: Rows) -> Rows:
        """As `place`, for rows that the frame was not made for: in float64 where theirs would round or overflow."""
        if self.unit:
            return self.place(X)
        largest = self.scale * (_largest(X.min(axis=0), X.max(axis=0), self.anchor) if X.shape[0] else 0.0)
        if largest > BEYOND:
            raise _too_far(X, BEYOND / self.scale, self.anchor)
        if self._is_rough(X.dtype) or largest > 4.0 ** COMFORTABLE[X.dtype.itemsize]:
            X = X.astype(np.float64)
        return self.place(X)

    def _is_rough(self, dtype: np.dtype) -> bool:
        """Whether numbers of this type would round the anchor or the scale."""
        inside = self.anchor * self.scale
        with np.errstate(over="ignore"):
            return dtype.type(self.scale) != self.scale or not np.array_equal(inside.astype(dtype), inside)


def unit_rows(rows: Rows) -> Rows:
    """Rows divided by their lengths; a row of zeros stays one."""
    rows = _seen_rows(rows)
    length = np.sqrt(squared_norms(rows))
    factor = 1.0 / np.where(length > 0, length, 1.0)
    if sparse.issparse(rows):
        return sparse.diags_array(factor.astype(rows.dtype)).dot(rows).tocsr()
    return rows * factor[:, None].astype(rows.dtype)


def _seen_rows(rows: Rows) -> Rows:
    """Rows times powers of two of their own, where the squares of some would overflow or vanish beside the others."""
    largest = abs(rows).max(axis=1)
    largest = largest.toarray().ravel() if sparse.issparse(rows) else largest
    powers = np.frexp(largest)[1]
    if (np.abs(powers) <= COMFORTABLE[rows.dtype.itemsize]).all():
        return rows
    most = np.finfo(rows.dtype).maxexp - 1
    factor = np.ldexp(1.0, np.minimum(-powers, most)).astype(rows.dtype)
    return sparse.diags_array(factor).dot(rows).tocsr() if sparse.issparse(rows) else rows * factor[:, None]


def frame_of(X: Rows, names: Sequence[Any] | None, unit: bool, threads: Threads) -> Frame:
    """The frame that suits a table; a cell that is no finite number is an error with its place."""
    low, high = refuse_not_finite(X, names, threads)
    if unit:
        return Frame(np.zeros(X.shape[1]), 1.0, unit)
    if sparse.issparse(X):
        return Frame(np.zeros(X.shape[1]), _scale(float(np.abs(X.data).max(initial=0.0)), X.dtype))
    return frame_within(low, high, X[:: spacing(len(X))])


def spacing(rows: int) -> int:
    """Of so many rows, one in this many is looked at for the anchor."""
    return -(-rows // LOOKED_AT)


def frame_within(low: np.ndarray, high: np.ndarray, looked_at: np.ndarray) -> Frame:
    """The frame of rows between these ends, some of which, evenly spaced, were looked at."""
    anchor = _anchor(looked_at)
    return Frame(anchor, _scale(_largest(low, high, anchor), looked_at.dtype))


def _largest(low: Any, high: Any, anchor: np.ndarray) -> float:
    """The largest distance from the anchor along a column, given the columns' least and largest numbers."""
    if sparse.issparse(low):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    # Halved first: the range of numbers near 1e308 would overflow.
    low, high, middle = low.astype(np.float64) / 2, high.astype(np.float64) / 2, anchor / 2
    with np.errstate(over="ignore"):
        return float(2.0 * np.maximum(high - middle, middle - low).max(initial=0.0))


def _scale(largest: float, dtype: np.dtype) -> float:
    if largest == 0.0:
        return 1.0
    power = int(np.frexp(largest)[1]) if np.isfinite(largest) else 1025
    most = np.finfo(dtype).maxexp - 1  # the largest power that numbers of this type can be multiplied by
    return 1.0 if abs(power) <= COMFORTABLE[dtype.itemsize] else float(np.ldexp(1.0, min(-power, most)))


def _anchor(looked_at: np.ndarray) -> np.ndarray:
    """Per column: the median of some rows where it is far from zero for its spread, else zero."""
    half = looked_at.T.astype(np.float64, order="C") / 2
    middle = np.median(half, axis=1)
    typical = np.median(np.abs(half - middle[:, None]), axis=1)
    # In the rows' own precision, so that subtracting it is one rounding.
    return np.where(np.abs(middle) > FAR * typical, 2 * middle, 0.0).astype(looked_at.dtype).astype(np.float64)


def refuse_not_finite(X: Rows, names: Sequence[Any] | None, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
    """The least and largest number of each column; an error that names the first cell that is missing or infinite."""
    if sparse.issparse(X):
        if not np.isfinite(X.data).all():
            at = int(np.flatnonzero(~np.isfinite(X.data))[0])
            row = int(np.searchsorted(X.indptr, at, side="right")) - 1
            raise not_finite(X.data[at], row, int(X.indices[at]), names)
        return np.zeros(0), np.zeros(0)
    parts = list(threads.map(lambda span: (X[span].min(axis=0), X[span].max(axis=0)), spans(len(X))))
    low = np.min([part[0] for part in parts], axis=0).astype(np.float64)
    high = np.max([part[1] for part in parts], axis=0).astype(np.float64)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        row, place = np.argwhere(~np.isfinite(X))[0]
        raise not_finite(X[row, place], int(row), int(place), names)
    return low, high


def not_finite(cell: float, row: int, place: int, names: Sequence[Any] | None) -> DataError:
    """The error of a cell that is missing or infinite."""
    key = place if names is None else names[place]
    if np.isnan(cell):
        return DataError(
            f"{named(key)}, row {row + 1} is missing (NaN). k-means needs every cell. Leave the row or the column out, "
            "or use GaussianMixture or Mixture, which take tables with holes as they are."
        )
    return DataError(
        f"{named(key)}, row {row + 1} holds {cell}, which is at no distance from anything. "
        "Put a finite number there, or leave the row out."
    )


def _too_far(X: Rows, limit: float, anchor: np.ndarray) -> DataError:
    cells = X.tocoo() if sparse.issparse(X) else X
    if sparse.issparse(X):
        at = int(np.flatnonzero(np.abs(cells.data) > limit)[0])
        row, place, cell = int(cells.row[at]), int(cells.col[at]), cells.data[at]
    else:
        row, place = (int(at) for at in np.argwhere(np.abs(X / 2 - anchor / 2) > limit / 2)[0])
        cell = X[row, place]
    return DataError(
        f"{named(place)}, row {row + 1} holds {cell}: so far from the rows that the centres are of that no centre is "
        "nearer than another. Leave the row out."
    )


def spans(rows: int) -> list[slice]:
    """Where chunks begin and end: by the number of rows alone, so that no number of threads changes a sum."""
    step = 32_768 if rows > 131_072 else 8_192
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


@dataclass(frozen=True, slots=True)
class Points:
    """Rows in chunks, with their weights (None: all one)."""

    rows: Rows
    weights: np.ndarray | None
    parts: tuple[Rows, ...]

    @classmethod
    def of(cls, rows: Rows, weights: np.ndarray | None) -> Points:
        return cls(rows, weights, tuple(rows[span] for span in spans(rows.shape[0])))

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @property
    def cells(self) -> float:
        """How many cells a row has, or has stored, on average."""
        return self.rows.nnz / max(len(self), 1) if sparse.issparse(self.rows) else float(self.rows.shape[1])

    @property
    def mass(self) -> float:
        return float(len(self) if self.weights is None else self.weights.sum())
