"""Lloyd iterations of k-means: assignment with bounds, and centre updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from importlib import import_module
from operator import add
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from softcount.errors import SoftcountError
from softcount.kernels.nearest import Goal, MovedCentres, PointRows, State, blocks_of, densely, fresh_state, goal_of
from softcount.learn.initialise import DistinctRows
from softcount.learn.kmeans.points import (
    SAMPLE,
    Frame,
    Points,
    find_distinct,
    sample_size,
    sampled_points,
    sort_rows,
    spans,
    unit_rows,
)
from softcount.run.local import Rows, Runner
from softcount.table import Chunk

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
