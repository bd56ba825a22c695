"""Lloyd iterations of k-means: assignment with bounds, and centre updates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import SoftcountError
from softcount.kernels.nearest import Goal, MovedCentres, State, blocks_of, densely, fresh_state, goal_of
from softcount.learn.kmeans.points import Frame, LeastHashes, Points, distinct, least_hashes, spans, unit_rows
from softcount.table import Chunk

REFRESH = 16
"""Updates after which the sums are counted anew from the labels: adding and taking away rows rounds each time."""

CALM = 0.005
"""Share of rows that change below which bounds pay: before, most rows are looked at anyway, and bounds cost as much."""

ROUNDING = 1e-12
"""A rise of the cost by less than this, relative to the first and to the squares it is a difference of, is rounding."""


class KMeansStop(Struct, frozen=True):
    """When to end: after so many updates, or once centres move less than `tol` times the mean variance of a column."""

    max_iter: int
    tol: float


class LloydSteps(Protocol):
    """Centres on their way down, one of Lloyd's two steps after the other."""

    sums: np.ndarray
    mass: np.ndarray
    members: np.ndarray
    repaired: int

    @property
    def centres(self) -> np.ndarray: ...
    @property
    def labels(self) -> np.ndarray | None: ...

    def assign(self) -> tuple[float, int]:
        """Every row to its nearest centre: how far that lowers the cost, and how many rows changed."""
        ...

    def update(self) -> tuple[float, float]:
        """Every centre to the mean of its rows: how far that lowers the cost, and the sum of the squared moves."""
        ...

    def confirm(self) -> tuple[float, int]:
        """As `assign`, after the centres became the means of rows counted anew."""
        ...

    def cost(self) -> float:
        """The sum of weight times squared distance of every row from its own centre."""
        ...

    def sizes(self) -> np.ndarray:
        """The weight of the rows of every centre."""
        ...


class Walker(Protocol):
    """Rows to walk over, wherever they are."""

    @property
    def unit(self) -> bool: ...
    @property
    def mass(self) -> float: ...
    @property
    def dtype(self) -> np.dtype: ...

    def __len__(self) -> int: ...

    def walk(self, centres: np.ndarray) -> LloydSteps:
        """Steps from these centres."""
        ...

    def sample(self, clusters: int) -> tuple[Points, bool]:
        """The distinct rows of least hash, and whether they are all of the table's."""
        ...

    def over(self, points: Points) -> Engine:
        """The same over a few rows that are here."""
        ...


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
        return self.points.mass

    @property
    def dtype(self) -> np.dtype:
        found: np.dtype = self.points.rows.dtype
        return found

    def walk(self, centres: np.ndarray) -> Walk:
        return Walk(self, centres)

    def sample(self, clusters: int) -> tuple[Points, bool]:
        return distinct(self.points, clusters, self.kernel)

    def over(self, points: Points) -> Engine:
        return replace(self, points=points)

    def advance(self, state: State, goal: Goal) -> MovedCentres:
        """All rows assigned to their nearest centres."""
        return self._total(lambda part, here: self.kernel.advance(part, here, goal), state)

    def recount(self, state: State, centres: np.ndarray) -> MovedCentres:
        """The sums of every cluster from the labels."""
        return self._total(lambda part, here: self.kernel.recount(part, here, centres), state)

    def spread(self, labels: np.ndarray, centres: np.ndarray) -> np.ndarray:
        """Squared distance of every row from its own centre."""
        tasks = zip(self.points.parts, spans(len(self.points)), strict=True)
        work = self._map(lambda task: self.kernel.spread(task[0], labels[task[1]], centres), tasks)
        return np.concatenate(list(work))

    def cost(self, labels: np.ndarray, centres: np.ndarray) -> float:
        """The sum of weight times squared distance, from the labels."""
        apart = self.spread(labels, centres)
        return float(apart.sum() if self.points.weights is None else self.points.weights @ apart)

    def _map(self, work: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterable[Any]:
        """Results in order; a single chunk is done at once: telling BLAS each time took longer than 150 rows."""
        return map(work, tasks) if len(self.points.parts) == 1 else self.threads.map(work, tasks)

    def _total(self, work: Callable[[Any, State], MovedCentres], state: State) -> MovedCentres:
        chunks = zip(self.points.parts, spans(len(self.points)), strict=True)
        tasks = [(part, state.part(span.start, span.stop)) for part, span in chunks]
        total: MovedCentres | None = None
        for moved in self._map(lambda task: work(*task), tasks):
            total = moved if total is None else MovedCentres(*(a + b for a, b in zip(total, moved, strict=True)))
        assert total is not None
        return total


class Walk:
    """Centres on their way down: labels, bounds and sums that belong together."""

    __slots__ = ("bounded", "engine", "goal", "is_counted", "mass", "members", "repaired", "since", "state", "sums")

    def __init__(self, engine: Engine, centres: np.ndarray) -> None:
        dtype = engine.points.rows.dtype
        blocks = blocks_of(len(centres), dtype) if engine.kernel.BLOCKED else 0
        self.engine = engine
        self.state = fresh_state(len(engine.points), dtype, blocks, engine.points.weights)
        self.goal = goal_of(centres, dtype, np.zeros(len(centres)), np.zeros(blocks), False)
        self.sums, self.mass = np.zeros(centres.shape), np.zeros(len(centres))
        self.members = np.zeros(len(centres), np.int64)
        self.since = self.repaired = 0
        self.bounded = self.is_counted = False

    @property
    def labels(self) -> np.ndarray:
        return self.state.labels

    @property
    def centres(self) -> np.ndarray:
        return self.goal.centres

    def cost(self) -> float:
        return self.engine.cost(self.labels, self.centres)

    def sizes(self) -> np.ndarray:
        return np.bincount(self.labels, self.engine.points.weights, len(self.centres))

    def assign(self) -> tuple[float, int]:
        """Every row to its nearest centre: how far that lowers the cost, and how many rows changed."""
        moved = self.engine.advance(self.state, self.goal)
        self.sums, self.mass = self.sums + moved.sums, self.mass + moved.mass
        self.members = self.members + moved.members
        self.since += self.is_counted and moved.changed > 0
        self.is_counted = True
        self.bounded = self.bounded or moved.changed < CALM * len(self.labels)
        return moved.fall, moved.changed

    def update(self) -> tuple[float, float]:
        """Every centre to the mean of its rows: how far that lowers the cost, and the sum of the squared moves."""
        if self.since >= REFRESH:
            self.refresh()
        gained = self.repair()
        centres, weights = self.means()
        squares = self.move_to(centres)
        return gained + float(weights @ squares), float(squares.sum())

    def refresh(self) -> None:
        """Count the sums anew from the labels."""
        moved = self.engine.recount(self.state, self.goal.centres)
        self.sums, self.mass, self.members, self.since = moved.sums, moved.mass, moved.members, 0

    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """The best centre of each cluster, and how much a squared move away from it costs; an empty one stays."""
        return means_of(self, self.engine.unit)

    def move_to(self, centres: np.ndarray) -> np.ndarray:
        """Take other centres; the squares of how far each moved come back."""
        squares: np.ndarray = ((centres - self.goal.centres) ** 2).sum(axis=1)
        # Enlarged by more than its rounding: a bound that is too small would skip a row that changed.
        moved = np.sqrt(squares) * (1 + 1e-12)
        padded = np.zeros(self.goal.packed.shape[::2])
        padded.ravel()[: len(moved)] = moved[: padded.size]
        most = padded.max(axis=1, initial=0.0)
        dtype = self.engine.points.rows.dtype
        self.goal = goal_of(centres, dtype, self.goal.drift + moved, self.goal.block_drift + most, self.bounded)
        return np.asarray(squares)

    def repair(self) -> float:
        """Give every empty cluster the row farthest from its centre; how far that lowers the cost comes back."""
        empty = np.flatnonzero(self.members == 0)
        if not len(empty):
            return 0.0
        apart = self.engine.spread(self.labels, self.goal.centres)
        centres = self.goal.centres.copy()
        # A row made one long is off its own direction by rounding, for ever.
        nowhere = (8 * float(np.finfo(self.engine.points.rows.dtype).eps)) ** 2 if self.engine.unit else 0.0
        gained = 0.0
        for k in empty:
            # A cluster's only row stays: taking it would empty that one instead.
            far = np.where(self.members[self.labels] > 1, apart, 0.0)
            row = int(far.argmax())
            if far[row] <= nowhere:
                break
            gained += self.take(row, int(k)) * far[row]
            centres[k] = densely(self.engine.points.rows[[row]])[0]
            apart[row] = 0.0
            self.repaired += 1
        self.move_to(centres)
        return gained

    def take(self, row: int, k: int) -> float:
        """Make a row the only one of an empty cluster; its weight comes back."""
        weight = 1.0 if self.engine.points.weights is None else float(self.engine.points.weights[row])
        cells = weight * densely(self.engine.points.rows[[row]])[0]
        old = self.labels[row]
        self.sums[old] -= cells
        self.sums[k] = cells
        self.mass[old] -= weight
        self.mass[k] = weight
        self.members[old] -= 1
        self.members[k] = 1
        self.state.labels[row], self.state.reach[row], self.state.margins[row] = k, np.inf, -np.inf
        return weight

    def confirm(self) -> tuple[float, int]:
        """As `assign`, after the centres became the means of rows counted anew."""
        if not self.since:
            return 0.0, 0
        self.refresh()
        centres, weights = self.means()
        gained = float(weights @ self.move_to(centres))
        fell, changed = self.assign()
        return gained + fell, changed


def means_of(steps: LloydSteps, unit: bool) -> tuple[np.ndarray, np.ndarray]:
    """The best centre of each cluster, and how much a squared move away from it costs; an empty one stays."""
    weights = np.sqrt(np.einsum("kj,kj->k", steps.sums, steps.sums)) if unit else steps.mass
    there = (steps.members > 0) & (weights > 0)
    weights = np.where(there, weights, 0.0)
    return np.where(there[:, None], steps.sums / np.where(there, weights, 1.0)[:, None], steps.centres), weights


class Descent(Struct, frozen=True):
    """Where a start ended: J after every assignment and update, in turn, and how it went.

    `ordered` says that the clusters were put in another order since, so that ties may fall otherwise. Rows on other
    machines have no labels here.
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

    @property
    def labels_here(self) -> np.ndarray:
        """The labels of rows that are here."""
        assert self.labels is not None
        return self.labels


def descend(engine: Walker, centres: np.ndarray, stop: KMeansStop) -> Descent:
    """Assign and update in turn until no row changes, or as `stop` says; the last step is always an assignment."""
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
            mass = engine.mass
            within = first - fell
            mass = max(mass, 1e-300)
            middle = walk.sums.sum(axis=0) / mass
            between = float(walk.mass @ ((walk.centres - middle) ** 2).sum(axis=1))
            limit = stop.tol * (max(within + between, 0.0) / mass / len(middle))
        fell, changed = walk.assign()
        falls.append(fell)
        if not changed:
            fell, changed = walk.confirm()
            falls[-1] += fell
        # A cluster that the last assignment emptied is given a row first.
        converged = not changed or (shift <= limit and bool(walk.members.all()))
        if converged:
            break
    return finished(walk, engine.mass, first, falls, converged)


def finished(walk: LloydSteps, mass: float, first: float, falls: list[float], converged: bool) -> Descent:
    """The end of a walk: its cost from the labels, and the costs before by adding up what each step gained."""
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


class Ends(Struct, frozen=True):
    """The least and largest number of every column, the first cell that is not finite, and the number of rows.

    `zeros` is the number of rows of zeros, which have no direction.
    """

    low: np.ndarray
    high: np.ndarray
    bad: tuple[float, int, int] | None
    n_rows: int
    zeros: int

    def __add__(self, other: Ends) -> Ends:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        bad = other.bad if self.bad is None else self.bad
        return Ends(low, high, bad, self.n_rows + other.n_rows, self.zeros + other.zeros)


def find_ends(places: Sequence[int], chunk: Chunk) -> Ends:
    cells, bad = chunk.reals[:, places], None
    low, high = cells.min(axis=0), cells.max(axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        row, place = (int(at) for at in np.argwhere(~np.isfinite(cells))[0])
        bad = float(cells[row, place]), chunk.start + row, place
    return Ends(low, high, bad, chunk.n_rows, int((~cells.any(axis=1)).sum()))


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


def sample_rows(kernel: str, most: int, part: PlacedRows) -> LeastHashes:
    return least_hashes(import_module(kernel), part.rows, np.ones(part.n_rows), most)


class CentreTotals(Struct, frozen=True):
    """Sums, weights and numbers of the rows of every centre, and their cost."""

    sums: np.ndarray
    mass: np.ndarray
    members: np.ndarray
    cost: float

    def __add__(self, other: CentreTotals) -> CentreTotals:
        return CentreTotals(
            self.sums + other.sums, self.mass + other.mass, self.members + other.members, self.cost + other.cost
        )


def assign_rows(kernel: str, centres: np.ndarray, part: PlacedRows) -> CentreTotals:
    found, _ = _nearest(import_module(kernel), centres, part)
    return CentreTotals(found.sums, found.mass, found.members, -found.fall)


class FarRows(NamedTuple):
    """Rows of a part that are farthest from their centres, the farthest first: distances, labels and cells."""

    apart: np.ndarray
    labels: np.ndarray
    rows: np.ndarray


def find_far_rows(kernel: str, centres: np.ndarray, count: int, part: PlacedRows) -> FarRows:
    module = import_module(kernel)
    _, labels = _nearest(module, centres, part)
    apart = module.spread(part.rows, labels, centres)
    order = np.argsort(-apart, kind="stable")[:count]
    return FarRows(apart[order], labels[order], part.rows[order])


def _nearest(kernel: Any, centres: np.ndarray, part: PlacedRows) -> tuple[MovedCentres, np.ndarray]:
    blocks = blocks_of(len(centres), DTYPE) if kernel.BLOCKED else 0
    goal = goal_of(centres, DTYPE, np.zeros(len(centres)), np.zeros(blocks), False)
    state = fresh_state(part.n_rows, DTYPE, len(goal.packed), None)
    return kernel.advance(part.rows, state, goal), state.labels
