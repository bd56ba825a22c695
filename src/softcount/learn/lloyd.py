"""Lloyd iterations of k-means: rows in the frame of distances, assignment with bounds, and centre updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from importlib import import_module
from operator import add
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Struct

from softcount.core.lazy import sparse
from softcount.core.ranges import Floats, Positive
from softcount.errors import DataError, SoftcountError
from softcount.kernels.nearest import (
    Goal,
    MovedCentres,
    PointRows,
    State,
    blocks_of,
    densely,
    fresh_state,
    goal_of,
    squared_norms,
)
from softcount.learn.initialise import DistinctRows
from softcount.run.local import Rows, Runner, Threads
from softcount.sources.wording import column as named
from softcount.table import Chunk

LOOKED_AT = 1_024
"""Evenly spaced rows whose median is the anchor."""
FAR = 16.0
"""Typical deviations from zero beyond which a column is shifted: nearer, products lose less than three digits."""
COMFORTABLE = {4: 20, 8: 200}
"""Powers of two, by bytes per number, within which squares neither overflow nor vanish."""
BEYOND = 2.0**480
"""Distance at which all centres are equally far in float64, and squares are close to overflow."""


class Frame(Struct, frozen=True):
    """Distances are taken between (x - anchor) * scale; with `unit`, between rows of length one, whatever the scale."""

    anchor: Annotated[np.ndarray, Floats()]
    scale: Positive = 1.0
    unit: bool = False

    @property
    def ruler(self) -> float:
        """A distance in kernel units over the same distance in the table's units."""
        return 1.0 if self.unit else self.scale

    def inside(self, centres: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(centres * self.ruler - self.anchor * self.ruler, dtype=np.float64)

    def outside(self, centres: np.ndarray) -> np.ndarray:
        # Added first: a difference of numbers near 1e308 would overflow.
        return (centres + self.anchor * self.ruler) / self.ruler

    def place(self, X: PointRows) -> PointRows:
        """Rows in kernel units; the same memory if nothing changes."""
        if sparse.issparse(X):
            rows = X if self.scale == 1.0 else sparse.csr_matrix((X.data * self.scale, X.indices, X.indptr), X.shape)
            return unit_rows(rows) if self.unit else rows
        if self.scale != 1.0 or self.anchor.any():
            X = X * X.dtype.type(self.scale) - (self.anchor * self.scale).astype(X.dtype)
        return np.ascontiguousarray(unit_rows(X) if self.unit else X)

    def place_here(self, X: np.ndarray) -> np.ndarray:
        """As `place`, in the rows' own memory, some at a time."""
        for span in spans(len(X)):
            placed = self.place(X[span])
            if not np.may_share_memory(placed, X):
                X[span] = placed
        return X

    def bring(self, X: PointRows) -> PointRows:
        """As `place` for other rows than the frame was made for: in float64 if theirs would round or overflow."""
        if self.unit:
            return self.place(X)
        largest = self.scale * (_largest(X.min(axis=0), X.max(axis=0), self.anchor) if X.shape[0] else 0.0)
        if largest > BEYOND:
            limit = BEYOND / self.scale
            cells = X.tocoo() if sparse.issparse(X) else X
            if sparse.issparse(X):
                at = int(np.flatnonzero(np.abs(cells.data) > limit)[0])
                row, place, cell = int(cells.row[at]), int(cells.col[at]), cells.data[at]
            else:
                row, place = (int(at) for at in np.argwhere(np.abs(X / 2 - self.anchor / 2) > limit / 2)[0])
                cell = X[row, place]
            raise DataError(
                f"{named(place)}, row {row + 1} holds {cell}: so far from the rows of the fit that all centres are "
                f"equally near. Leave the row out."
            )
        inside = self.anchor * self.scale
        with np.errstate(over="ignore"):  # whether numbers of this type would round the anchor or the scale
            rough = X.dtype.type(self.scale) != self.scale or not np.array_equal(inside.astype(X.dtype), inside)
        if rough or largest > 4.0 ** COMFORTABLE[X.dtype.itemsize]:
            X = X.astype(np.float64)
        return self.place(X)


def unit_rows(rows: PointRows) -> PointRows:
    """Rows divided by their lengths; a row of zeros stays zero."""
    # Each times a power of two if the squares of some would overflow or vanish next to the others.
    largest = abs(rows).max(axis=1)
    largest = largest.toarray().ravel() if sparse.issparse(rows) else largest
    powers = np.frexp(largest)[1]
    if not (np.abs(powers) <= COMFORTABLE[rows.dtype.itemsize]).all():
        most = np.finfo(rows.dtype).maxexp - 1
        scales = np.ldexp(1.0, np.minimum(-powers, most)).astype(rows.dtype)
        rows = sparse.diags_array(scales).dot(rows).tocsr() if sparse.issparse(rows) else rows * scales[:, None]
    length = np.sqrt(squared_norms(rows))
    factor = 1.0 / np.where(length > 0, length, 1.0)
    if sparse.issparse(rows):
        return sparse.diags_array(factor.astype(rows.dtype)).dot(rows).tocsr()
    return rows * factor[:, None].astype(rows.dtype)


def frame_of(X: PointRows, names: Sequence[Any] | None, unit: bool, threads: Threads) -> Frame:
    """The frame of a table; a cell that is not finite raises an error with its place."""
    low, high = refuse_not_finite(X, names, threads)
    if unit:
        return Frame(np.zeros(X.shape[1]), 1.0, unit)
    if sparse.issparse(X):
        return Frame(np.zeros(X.shape[1]), _scale(float(np.abs(X.data).max(initial=0.0)), X.dtype))
    return frame_within(low, high, X[:: spacing(len(X))])


def spacing(rows: int) -> int:
    """One in this many rows is looked at for the anchor."""
    return -(-rows // LOOKED_AT)


def frame_within(low: np.ndarray, high: np.ndarray, looked_at: np.ndarray) -> Frame:
    """The frame of rows between these ends, from some evenly spaced ones."""
    half = looked_at.T.astype(np.float64, order="C") / 2
    middle = np.median(half, axis=1)
    typical = np.median(np.abs(half - middle[:, None]), axis=1)
    anchor = np.where(np.abs(middle) > FAR * typical, 2 * middle, 0.0).astype(looked_at.dtype).astype(np.float64)
    return Frame(anchor, _scale(_largest(low, high, anchor), looked_at.dtype))


def _largest(low: Any, high: Any, anchor: np.ndarray) -> float:
    """The largest distance from the anchor along a column."""
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


def refuse_not_finite(X: PointRows, names: Sequence[Any] | None, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
    """The least and largest number of each column; raises at the first cell that is not finite."""
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
    key = place if names is None else names[place]
    if np.isnan(cell):
        return DataError(
            f"{named(key)}, row {row + 1} is missing (NaN). k-means needs every cell. Leave the row or the column out, "
            "or use GaussianMixture or Mixture, which accept missing cells."
        )
    return DataError(
        f"{named(key)}, row {row + 1} holds {cell}, which has no finite distance from a centre. Put a finite number "
        f"there, or leave the row out."
    )


def spans(rows: int) -> list[slice]:
    """The borders of chunks depend on the number of rows only, so that threads do not change a sum."""
    step = 32_768 if rows > 131_072 else 8_192
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


class Points(Struct, frozen=True):
    """Rows in chunks, with their weights (None: all one)."""

    rows: PointRows
    weights: np.ndarray | None
    parts: tuple[PointRows, ...]

    @classmethod
    def of(cls, rows: PointRows, weights: np.ndarray | None) -> Points:
        return cls(rows, weights, tuple(rows[span] for span in spans(rows.shape[0])))

    def __len__(self) -> int:
        return int(self.rows.shape[0])


# Distinct rows, of which initial centres are drawn, so that row order and repeated rows do not matter.

SAMPLE = 8_192
"""Distinct rows that starts are drawn from and compared on; of a larger table, those with the least hash."""
PER_CENTRE = 64
"""Rows sampled for each centre, where that is more."""


def find_distinct(points: Points, clusters: int, kernel: ModuleType) -> tuple[Points, bool]:
    """The distinct rows with their weights, and whether they are all of the table's.

    A small dense table is sorted: its order, and so every draw, survives a change of units.
    """
    weights = np.ones(len(points)) if points.weights is None else points.weights
    if not sparse.issparse(points.rows) and len(points) <= SAMPLE:
        order, first = sort_rows(points.rows)
        return Points.of(points.rows[order[first]], np.add.reduceat(weights[order], np.flatnonzero(first))), True
    found: DistinctRows | None = None
    for part, span in zip(points.parts, spans(len(points)), strict=True):
        hashes, own = kernel.row_hashes(part), weights[span]
        if found is not None:
            wanted = np.flatnonzero(hashes <= found.last)
            hashes, part, own = hashes[wanted], part[wanted], own[wanted]
        more = DistinctRows.of(hashes, part, own, sample_size(clusters))
        found = more if found is None else found + more
    assert found is not None
    return sampled_points(found), found.whole


def sample_size(clusters: int) -> int:
    return max(SAMPLE, PER_CENTRE * clusters)


def sampled_points(found: DistinctRows) -> Points:
    return Points.of(found.rows[: found.most], found.weights[: found.most])


def sort_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the rows sorted by their first cell, then the next; and which of these differ from the one before.

    A column only sorts what those before it left equal: of 1,797 rows of 64 pixels a fifth of the time of np.unique.
    """
    order, first = np.arange(len(rows)), np.zeros(len(rows), bool)
    first[:1] = True
    for cells in rows.T:
        equal = np.flatnonzero(~(first & np.append(first[1:], True)))
        if not len(equal):
            break
        here = order[equal]
        order[equal] = here[np.lexsort((cells[here], np.cumsum(first)[equal]))]
        values = cells[order[equal]]
        first[equal[1:]] |= values[1:] != values[:-1]
    return order, first


# Steps down from given centres.

REFRESH = 16
"""Updates after which sums are counted afresh: adding and removing rows accumulates rounding."""
CALM = 0.005
"""Share of changing rows below which bounds pay off."""
ROUNDING = 1e-12
"""Relative rise of the cost that is rounding."""


class FarRows(NamedTuple):
    """Rows with their squared distances from their centres, their labels and weights (None: all one)."""

    apart: np.ndarray
    labels: np.ndarray
    rows: PointRows
    weights: np.ndarray | None = None


class KMeansStop(Struct, frozen=True):
    """Stop after `max_iter` updates, or once centres move less than `tol` times the mean variance of a column."""

    max_iter: int
    tol: float


class Engine(Struct, frozen=True):
    """The rows, the kernel that finds their nearest centres, and whether centres have length one."""

    points: Points
    kernel: ModuleType
    threads: Any
    unit: bool = False

    def __len__(self) -> int:
        return len(self.points)

    @property
    def mass(self) -> float:
        return float(len(self) if self.points.weights is None else self.points.weights.sum())

    @property
    def dtype(self) -> np.dtype:
        found: np.dtype = self.points.rows.dtype
        return found

    def walk(self, centres: np.ndarray) -> LloydRun:
        return LloydRun(self, centres)

    def sample(self, clusters: int) -> tuple[Points, bool]:
        return find_distinct(self.points, clusters, self.kernel)

    def total(self, work: Callable[..., MovedCentres], state: State, at: Goal | np.ndarray) -> MovedCentres:
        """The sum of a kernel's results for all chunks, in their order."""
        parts = self._each(lambda part, span: work(part, state.part(span.start, span.stop), at))
        found: MovedCentres = reduce(add, parts)
        return found

    def spread(self, labels: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """Squared distance of every row from its own centre."""
        return np.concatenate(list(self._each(lambda part, span: self.kernel.spread(part, labels[span], centres))))

    def _each(self, work: Callable[[PointRows, slice], Any]) -> Any:
        """Results in order; a single chunk without threads: limiting BLAS took longer than 150 rows."""
        parts = self.points.parts
        borders = spans(len(self.points))
        if len(parts) == 1:
            return [work(parts[0], borders[0])]
        return self.threads.map(lambda task: work(*task), zip(parts, borders, strict=True))


def no_sums(centres: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sums, weights and numbers of rows of centres that have none."""
    return np.zeros(centres.shape), np.zeros(len(centres)), np.zeros(len(centres), np.int64)


class LloydRun:
    """Centres on their way down: Lloyd's two steps in turn over rows that are here, with labels, bounds and sums."""

    labels: np.ndarray | None
    repaired = 0

    def __init__(self, engine: Engine, centres: np.ndarray) -> None:
        blocks = blocks_of(len(centres), engine.dtype) if engine.kernel.BLOCKED else 0
        self.engine: Any = engine
        self.state = fresh_state(len(engine.points), engine.dtype, blocks, engine.points.weights)
        self.labels = self.state.labels
        self.goal = goal_of(centres, engine.dtype, None, np.zeros(blocks))
        self.centres = self.goal.centres
        self.sums, self.mass, self.members = no_sums(centres)
        self.since, self.bounded, self.is_counted = 0, False, False

    def assign(self) -> tuple[float, int]:
        """Every row to its nearest centre: how far that lowers the cost, and how many rows changed."""
        moved = self.engine.total(self.engine.kernel.advance, self.state, self.goal)
        self.sums, self.mass = self.sums + moved.sums, self.mass + moved.mass
        self.members = self.members + moved.members
        self.since += self.is_counted and moved.changed > 0
        self.is_counted = True
        self.bounded = self.bounded or moved.changed < CALM * len(self.state.labels)
        return moved.fall, moved.changed

    def update(self) -> tuple[float, float]:
        """Every centre to the mean of its rows: how far that lowers the cost, and the sum of the squared moves."""
        if self.since >= REFRESH:
            self._recount()
        gained = self.repair()
        centres, weights = self.means()
        squares = self.move_to(centres)
        return gained + float(weights @ squares), float(squares.sum())

    def confirm(self) -> tuple[float, int]:
        """As `assign`, after the centres became the means of rows counted anew."""
        if not self.since:
            return 0.0, 0
        self._recount()
        centres, weights = self.means()
        gained = float(weights @ self.move_to(centres))
        fell, changed = self.assign()
        return gained + fell, changed

    def _recount(self) -> None:
        moved = self.engine.total(self.engine.kernel.recount, self.state, self.centres)
        self.sums, self.mass, self.members, self.since = moved.sums, moved.mass, moved.members, 0

    def cost(self) -> float:
        """The sum of weight times squared distance of every row from its own centre."""
        apart, _, _, weights = self.far_rows()
        return float(apart.sum() if weights is None else weights @ apart)

    def sizes(self) -> np.ndarray:
        """The weight of the rows of every centre."""
        return np.bincount(self.state.labels, self.engine.points.weights, len(self.centres))

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """The best centre of each cluster, and how much a squared move away from it costs; an empty one stays."""
        weights = np.sqrt(np.einsum("kj,kj->k", self.sums, self.sums)) if self.engine.unit else self.mass
        there = (self.members > 0) & (weights > 0)
        weights = np.where(there, weights, 0.0)
        return np.where(there[:, None], self.sums / np.where(there, weights, 1.0)[:, None], self.centres), weights

    def move_to(self, centres: np.ndarray) -> np.ndarray:
        """Take other centres; returns the square of how far each moved."""
        squares: np.ndarray = ((centres - self.centres) ** 2).sum(axis=1)
        # Enlarged by more than its rounding: a bound that is too small would skip a row that changed.
        moved = np.sqrt(squares) * (1 + 1e-12)
        padded = np.zeros(self.goal.packed.shape[::2])
        padded.ravel()[: len(moved)] = moved[: padded.size]
        most = padded.max(axis=1, initial=0.0)
        drifts = self.goal.drift + moved, self.goal.block_drift + most
        self.goal = goal_of(centres, self.engine.dtype, *drifts, self.bounded)
        self.centres = self.goal.centres
        return squares

    def far_rows(self) -> FarRows:
        """Rows that empty clusters may take; the labels are written to."""
        points, labels = self.engine.points, self.state.labels
        return FarRows(self.engine.spread(labels, self.centres), labels, points.rows, points.weights)

    def unsettle(self, row: int) -> None:
        """Forget the bounds of a row whose label was set."""
        self.state.reach[row], self.state.margins[row] = np.inf, -np.inf

    def repair(self) -> float:
        """Give every empty cluster the row farthest from its centre; returns how far that lowers the cost."""
        empty = np.flatnonzero(self.members == 0)
        if not len(empty):
            return 0.0
        apart, labels, rows, weights = self.far_rows()
        centres, gained = self.centres.copy(), 0.0
        # A row made one long is off its own direction by rounding, for ever.
        nowhere = (8 * float(np.finfo(self.engine.dtype).eps)) ** 2 if self.engine.unit else 0.0
        for k in empty:
            # A cluster's only row stays: taking it would empty that one instead.
            far = np.where(self.members[labels] > 1, apart, 0.0)
            row = int(far.argmax())
            if far[row] <= nowhere:
                break
            weight, cells, old = 1.0 if weights is None else float(weights[row]), densely(rows[[row]])[0], labels[row]
            self.sums[old] -= weight * cells
            self.sums[k] = weight * cells
            self.mass[old] -= weight
            self.mass[k] = weight
            self.members[old] -= 1
            self.members[k] = 1
            gained += weight * float(far[row])
            centres[k], labels[row], apart[row] = cells, k, 0.0
            self.unsettle(row)
            self.repaired += 1
        self.move_to(centres)
        return gained


class Descent(Struct, frozen=True):
    """The end of a descent: J after every assignment and update in turn.

    `ordered`: the clusters were reordered since, so ties may fall differently. Rows on workers have no labels here.
    """

    centres: np.ndarray
    labels: np.ndarray | None
    trace: np.ndarray
    converged: bool
    repaired: int
    members: np.ndarray
    sizes: np.ndarray
    ordered: bool = False

    @property
    def cost(self) -> float:
        return float(self.trace[-1])

    @property
    def n_iter(self) -> int:
        return len(self.trace) // 2


def descend(engine: Walker, centres: np.ndarray, stop: KMeansStop) -> Descent:
    """Assign and update in turn until no row changes or `stop` applies; the last step is an assignment."""
    if engine.unit:
        centres = unit_rows(centres)  # a float32 row is of length one to seven digits only
    walk = engine.walk(centres)
    first = -walk.assign()[0]
    falls: list[float] = []
    limit, converged = 0.0, False
    for turn in range(stop.max_iter):
        fell, shift = walk.update()
        falls.append(fell)
        if turn == 0:
            mass = max(engine.mass, 1e-300)
            middle = walk.sums.sum(axis=0) / mass
            between = float(walk.mass @ ((walk.centres - middle) ** 2).sum(axis=1))
            limit = stop.tol * (max(first - fell + between, 0.0) / mass / len(middle))
        fell, changed = walk.assign()
        falls.append(fell)
        if not changed:
            fell, changed = walk.confirm()
            falls[-1] += fell
        # A cluster that the last assignment emptied is given a row first.
        converged = not changed or (shift <= limit and bool(walk.members.all()))
        if converged:
            break
    return make_descent(walk, engine.mass, first, falls, converged)


def make_descent(walk: LloydRun, mass: float, first: float, falls: list[float], converged: bool) -> Descent:
    """The result: the cost from the labels, and earlier costs by adding up the gains of the steps."""
    cost = walk.cost()
    steps = np.array(falls)
    rounding = ROUNDING * (first + mass * float(np.einsum("kj,kj->k", walk.centres, walk.centres).max()))
    if (steps < -rounding).any() or abs(cost + steps.sum() - first) > 1e-6 * first + rounding:
        worst = int(steps.argmin())
        raise SoftcountError(
            f"k-means: the cost rose by {-steps.min():.3g} at step {worst + 1}, or {first:.9g} does not lead to "
            f"{cost:.9g}. This is an error in softcount; please report it with the table."
        )
    steps = np.maximum(steps, 0.0)
    trace = cost + np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])
    return Descent(walk.centres, walk.labels, trace, converged, walk.repaired, walk.members, walk.sizes())


# Steps that workers run on their parts of the rows, and what they return.

DTYPE = np.dtype(np.float64)


class ColumnEnds(Struct, frozen=True):
    """The least and largest number of every column, the first cell that is not finite, and the number of rows.

    `zeros` is the number of rows of zeros, which have no direction.
    """

    low: np.ndarray
    high: np.ndarray
    bad: tuple[float, int, int] | None
    n_rows: int
    zeros: int

    def __add__(self, other: ColumnEnds) -> ColumnEnds:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        bad = other.bad if self.bad is None else self.bad
        return ColumnEnds(low, high, bad, self.n_rows + other.n_rows, self.zeros + other.zeros)


def find_ends(places: Sequence[int], chunk: Chunk) -> ColumnEnds:
    cells, bad = chunk.reals[:, places], None
    low, high = cells.min(axis=0), cells.max(axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        row, place = (int(at) for at in np.argwhere(~np.isfinite(cells))[0])
        bad = float(cells[row, place]), chunk.start + row, place
    return ColumnEnds(low, high, bad, chunk.n_rows, int((~cells.any(axis=1)).sum()))


def spaced_rows(places: Sequence[int], spacing: int, chunk: Chunk) -> np.ndarray:
    return chunk.reals[-chunk.start % spacing :: spacing][:, places]


class PlacedRows(Struct, frozen=True):
    """Rows of a part as the kernels see them."""

    rows: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.rows)


def place_rows(places: Sequence[int], frame: Frame, chunk: Chunk) -> PlacedRows:
    """A chunk in a frame; rows of zeros, which have no direction, are left out if rows have length one."""
    cells = np.ascontiguousarray(chunk.reals[:, places])
    return PlacedRows(frame.place(cells[cells.any(axis=1)] if frame.unit else cells))


def sample_rows(kernel: str, most: int, part: PlacedRows) -> DistinctRows:
    return DistinctRows.of(import_module(kernel).row_hashes(part.rows), part.rows, np.ones(part.n_rows), most)


def find_far_rows(kernel: str, centres: np.ndarray, count: int, part: PlacedRows) -> FarRows:
    """The rows of a part that are farthest from their centres, the farthest first."""
    _, labels = assign_rows(kernel, centres, part)
    apart = import_module(kernel).spread(part.rows, labels, centres)
    order = np.argsort(-apart, kind="stable")[:count]
    return FarRows(apart[order], labels[order], part.rows[order])


def total_rows(kernel: str, centres: np.ndarray, part: PlacedRows) -> MovedCentres:
    """The sums of the rows of every centre; `fall` is minus their cost."""
    return assign_rows(kernel, centres, part)[0]


def assign_rows(kernel_name: str, centres: np.ndarray, part: PlacedRows) -> tuple[MovedCentres, np.ndarray]:
    kernel: Any = import_module(kernel_name)
    blocks = blocks_of(len(centres), DTYPE) if kernel.BLOCKED else 0
    goal = goal_of(centres, DTYPE, None, np.zeros(blocks))
    state = fresh_state(part.n_rows, DTYPE, len(goal.packed), None)
    return kernel.advance(part.rows, state, goal), state.labels


class RemotePoints(Struct, frozen=True):
    """Placed rows on workers, and the kernel that finds their nearest centres there."""

    rows: Rows
    n_rows: int
    kernel: Any
    threads: Runner
    unit: bool
    dtype: np.dtype = DTYPE

    def __len__(self) -> int:
        return self.n_rows

    @property
    def mass(self) -> float:
        return float(self.n_rows)

    def walk(self, centres: np.ndarray) -> RemoteLloydRun:
        return RemoteLloydRun(self, centres)

    def sample(self, clusters: int) -> tuple[Points, bool]:
        found = self.rows.total(partial(sample_rows, self.kernel.__name__, sample_size(clusters)))
        if self.n_rows > SAMPLE:
            return sampled_points(found), found.whole
        order, _ = sort_rows(found.rows)
        return Points.of(found.rows[order], found.weights[order]), found.whole


class RemoteLloydRun(LloydRun):
    """Steps over rows on workers, by totals of every pass: rows are counted anew each time."""

    since = 0

    def __init__(self, engine: RemotePoints, centres: np.ndarray) -> None:
        self.engine, self.centres, self.labels, self._cost = engine, centres, None, 0.0
        self.sums, self.mass, self.members = no_sums(centres)

    def cost(self) -> float:
        return self._cost

    def sizes(self) -> np.ndarray:
        return self.mass

    def unsettle(self, row: int) -> None:
        """Rows on workers have no bounds."""

    def assign(self) -> tuple[float, int]:
        found = self.engine.rows.total(partial(total_rows, self.engine.kernel.__name__, self.centres))
        changed = not (np.array_equal(found.members, self.members) and np.array_equal(found.sums, self.sums))
        fell = self._cost + found.fall
        self.sums, self.mass, self.members, self._cost = found.sums, found.mass, found.members, -found.fall
        return fell, int(changed)

    def update(self) -> tuple[float, float]:
        gained, shift = super().update()
        self._cost -= gained
        return gained, shift

    def move_to(self, centres: np.ndarray) -> np.ndarray:
        squares: np.ndarray = ((centres - self.centres) ** 2).sum(axis=1)
        self.centres = centres
        return squares

    def far_rows(self) -> FarRows:
        # A cluster's only row stays, so that as many more rows than empty clusters are needed as there are others.
        step = partial(find_far_rows, self.engine.kernel.__name__, self.centres, len(self.members))
        apart, labels, rows, _ = zip(*self.engine.rows.each(step), strict=True)
        return FarRows(np.concatenate(apart), np.concatenate(labels), np.concatenate(rows))


Walker = Engine | RemotePoints
"""The rows of a fit, here or on workers."""
