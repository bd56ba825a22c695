"""k-means over initialisations: seeds, runs side by side, descent, and improvement by moving centres."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.lazy import sparse
from softcount.core.ranges import Floats, NotNegative
from softcount.errors import DataError
from softcount.kernels.nearest import PointRows, densely, goal_of, is_wide, squared_norms, squares
from softcount.learn import lloyd
from softcount.run.local import Rows, Runner, Threads, one_blas_thread

# Many runs on a few rows in one pass: initialisations x centres are just more centres.

TILE = 1 << 19
"""Scores held at once, unless one run has more."""
ROOM = 1 << 22
"""Scores of one run beyond which runs are not held in memory side by side."""
FEW = 1 << 20
"""Products up to which all sums are counted afresh: finding the changed rows costs as much."""
BEHIND = 20.0
"""Times its last gain by which a run may be behind the best: gains shrink by a tenth or more each time."""
EVEN = 1e6
"""Weights within this factor can be added to and removed from sums with only rounding left."""
CLEAR = 1e-9
"""Relative rounding of squared distances by products that changes nothing."""


class SmallEnd(Struct, frozen=True):
    """The end of a run: centres, labels and cost."""

    centres: np.ndarray
    labels: np.ndarray
    cost: float
    converged: bool


class FewRows(Struct, frozen=True):
    """Some weighted rows in float64, with a line of ones below their columns; with `unit`, centres have length one.

    Without `norms`, the rows' own squares, distances are sums of squared differences.
    """

    rows: PointRows
    weights: np.ndarray
    norms: np.ndarray | None
    lines: np.ndarray | None
    unit: bool

    @classmethod
    def of(cls, points: lloyd.Points, unit: bool) -> FewRows:
        rows = points.rows.astype(np.float64, copy=False)
        weights = np.ones(len(points)) if points.weights is None else points.weights
        lines = None if sparse.issparse(rows) else np.vstack([rows.T, np.ones(len(rows))])
        return cls(rows, weights, squared_norms(rows), lines, unit)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def work(self) -> int:
        """Cost of comparing all rows with a centre, in cells; comparing the scores costs as much as 32 cells."""
        return 32 * len(self) + int(self.rows.nnz if sparse.issparse(self.rows) else self.rows.size)

    def has_room(self, clusters: int) -> bool:
        return len(self) * clusters <= ROOM

    def scores(self, centres: np.ndarray) -> np.ndarray:
        """(centres x rows) half the squared distance less half the row's own square, which all centres share."""
        half = np.einsum("kj,kj->k", centres, centres) / 2
        if self.norms is None:
            return np.asarray(squares(self.rows, goal_of(centres, self.rows.dtype)).T / 2)
        if self.lines is None:
            return np.asarray(half[:, None] - (self.rows @ centres.T).T)
        return np.asarray(np.column_stack([-centres, half]) @ self.lines)

    def squares_of(self, scores: np.ndarray) -> np.ndarray:
        return np.asarray(2.0 * scores if self.norms is None else np.maximum(2.0 * scores + self.norms, 0.0))

    def squares(self, centres: np.ndarray) -> np.ndarray:
        return self.squares_of(self.scores(centres))

    def cells(self, which: np.ndarray) -> np.ndarray:
        """Some of the rows, dense, in the shape of `which`."""
        return densely(self.rows[which.ravel()]).reshape(*which.shape, -1)

    def sums(self, own: np.ndarray) -> np.ndarray:
        """(clusters x columns) weighted sums of the rows that are marked as a cluster's own."""
        shares = own * self.weights
        return np.asarray((self.rows.T @ shares.T).T if self.lines is None else shares @ self.rows)

    def means(self, sums: np.ndarray, mass: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The centres of clusters with these sums; one without weight stays."""
        there = mass[..., None] > 0
        best = lloyd.unit_rows(sums) if self.unit else sums / np.where(there, mass[..., None], 1.0)
        return np.where(there, best, before)

    def is_clear(self, centres: np.ndarray) -> bool:
        """Whether products separate rows of different centres in spite of rounding."""
        if self.norms is None or is_wide(self.rows) or not self.has_room(len(centres)):
            return True
        mean = float(self.squares(centres).min(axis=0) @ self.weights) / float(self.weights.sum())
        return bool((4 * self.rows.shape[1] + 16) * 2.0**-53 * self.norms.max() <= CLEAR * mean)


class StartStack:
    """Several sets of centres over the same rows: starts x clusters x rows."""

    def __init__(self, few: FewRows, centres: np.ndarray) -> None:
        self.few, self.centres = few, centres.copy()
        shape = (*centres.shape[:2], len(few))
        self.scores, self.own = np.empty(shape), np.zeros(shape, bool)
        self.sums, self.mass = np.zeros(centres.shape), np.zeros(shape[:2])
        self.moved = np.ones(shape[:2], bool)
        self.least = np.empty(0)

    @classmethod
    def near(cls, few: FewRows, end: SmallEnd, centres: np.ndarray) -> StartStack:
        """Sets that differ from an end in few centres; all else is taken from there."""
        stack = cls(few, centres)
        own = end.labels == np.arange(len(end.centres))[:, None]
        stack.scores[:], stack.own[:] = few.scores(end.centres), own
        stack.sums[:], stack.mass[:] = few.sums(own), own @ few.weights
        stack.moved = (centres != end.centres).any(axis=2)
        return stack

    def assign(self) -> np.ndarray:
        """Every row to its nearest centre; which runs changed."""
        if self.moved.all():
            self.scores = self.few.scores(self.centres.reshape(-1, self.centres.shape[2])).reshape(self.scores.shape)
        else:
            self.scores[self.moved] = self.few.scores(self.centres[self.moved])
        self.least = self.scores.min(axis=1)
        own = self.scores == self.least[:, None]
        if np.count_nonzero(own) != self.least.size:
            own &= np.cumsum(own, axis=1, dtype=np.int32) == 1  # the first of equals
        places = np.flatnonzero(own != self.own)
        self.own = own
        starts, clusters, rows = self.own.shape
        self.moved = np.bincount(places // rows, minlength=starts * clusters).reshape(starts, clusters) > 0
        self._count(places)
        return np.asarray(self.moved.any(axis=1))

    def _count(self, places: np.ndarray) -> None:
        """Update the sums, given where rows came or went."""
        starts, clusters, rows = self.own.shape
        if self.sums.size * rows <= FEW or self.few.weights.max() > EVEN * self.few.weights.min():
            flat = self.own.reshape(-1, rows)
            self.sums, self.mass = self.few.sums(flat).reshape(self.sums.shape), self.own @ self.few.weights
            return
        # Short numbers: SciPy looks through long ones for the largest.
        clusters_of, rows_of = np.divmod(places.astype(np.int32), np.int32(rows))
        signed = np.where(self.own.ravel()[places], 1.0, -1.0) * self.few.weights[rows_of]
        ends = np.zeros(starts * clusters + 1, np.int32)
        np.cumsum(np.bincount(clusters_of, minlength=starts * clusters), out=ends[1:])
        changes = sparse.csr_matrix((signed, rows_of, ends), shape=(starts * clusters, rows))
        self.sums += densely(changes @ self.few.rows).reshape(self.sums.shape)
        self.mass += np.bincount(clusters_of, signed, starts * clusters).reshape(starts, clusters)

    def update(self) -> None:
        """Changed centres to the mean of their rows; an empty cluster takes the row farthest from its centre."""
        there = np.asarray(self.own.any(axis=2))
        if not there.all():
            for start in np.flatnonzero(~there.all(axis=1)).tolist():
                self._refill(start, np.flatnonzero(~there[start]))
            there = np.asarray(self.own.any(axis=2))
        there &= self.moved
        self.centres[there] = self.few.means(self.sums[there], self.mass[there], self.centres[there])

    def _refill(self, start: int, empty: np.ndarray) -> None:
        """Give each empty cluster of a start the row farthest from its centre."""
        own, members = self.own[start], self.own[start].sum(axis=1)
        apart = self.few.squares_of(self.least[start])
        nowhere = 1e-13 * float(np.abs(self.scores[start]).max())
        for cluster in empty:
            # A cluster's only row stays: taking it would empty that one instead.
            far = np.where((members > 1) @ own, apart - nowhere, 0.0)
            row = int(far.argmax())
            if far[row] <= 0.0:
                return
            old = int(own[:, row].argmax())
            for which, sign in ((old, -1), (cluster, 1)):
                own[which, row] = sign > 0
                members[which] += sign
                self.moved[start, which] = True
            self.sums[start, [old, cluster]] = self.few.sums(own[[old, cluster]])
            self.mass[start, [old, cluster]] = own[[old, cluster]] @ self.few.weights
            apart[row] = 0.0

    def costs(self) -> np.ndarray:
        return np.asarray(self.few.squares_of(self.least) @ self.few.weights)

    def keep(self, which: np.ndarray) -> None:
        for name in ("centres", "scores", "own", "sums", "mass", "moved", "least"):
            setattr(self, name, getattr(self, name)[which])

    def end(self, start: int, cost: float, converged: bool) -> SmallEnd:
        return SmallEnd(self.centres[start], self.own[start].argmax(axis=0), cost, converged)


def descend_together(few: FewRows, centres: np.ndarray, most: int) -> list[SmallEnd]:
    """Where several starts (starts x clusters x columns) end: no row changes, or after `most` updates.

    One that cannot become the best any more is given up and left out.
    """
    ends: list[SmallEnd] = []
    for part in split_runs(few, centres):
        ends += run_stack(StartStack(few, part), most, min((end.cost for end in ends), default=np.inf))
    return ends


def split_runs(few: FewRows, centres: np.ndarray) -> Iterator[np.ndarray]:
    """Some runs at a time, so that their scores and centres stay in the cache."""
    step = max(1, TILE // max(centres.shape[1] * len(few), centres[0].size))
    return (centres[at : at + step] for at in range(0, len(centres), step))


def run_stack(stack: StartStack, most: int, best: float, alone: int | None = None) -> list[SmallEnd]:
    """The ends of those runs that may still beat `best`; after `alone` updates only the best one continues."""
    ends: list[SmallEnd] = []
    known, before = best, np.full(len(stack.centres), np.inf)
    for turn in range(most + 1):
        on, costs = stack.assign(), stack.costs()
        done = np.flatnonzero(~on | (turn == most))
        ends += [stack.end(at, float(costs[at]), not on[at]) for at in done.tolist()]
        best = min(best, float(costs.min()))
        on &= costs - best <= BEHIND * (before - costs)
        if turn == alone:
            on &= np.arange(len(on)) == costs.argmin()
        on[done] = False
        if not on.any():
            if not ends and not np.isfinite(known):  # costs that are nothing but rounding may rise in every start
                ends.append(stack.end(int(costs.argmin()), float(costs.min()), converged=False))
            break
        if not on.all():
            stack.keep(on)
        before = costs[on]
        stack.update()
    return ends


# Initial centres drawn from the rows.


def draw_centres(few: FewRows, rng: np.random.Generator, init: str, clusters: int, count: int) -> np.ndarray:
    """(starts x clusters x columns) centres by name of the method."""
    if init == "random":
        return few.cells(np.array([draw_different(few, rng, clusters) for _ in range(count)]))
    if init == "k-means++":
        looks = 2 + int(np.log(clusters))
        most = max(1, TILE // (looks * len(few)))
        parts = [plus_plus(few, rng, clusters, min(most, count - at), looks) for at in range(0, count, most)]
        return few.cells(np.concatenate(parts))
    raise DataError(f"init={init!r} is not known. Use 'k-means++', 'random', or an array of centres.")


def draw_different(few: FewRows, rng: np.random.Generator, clusters: int) -> np.ndarray:
    """Rows drawn by weight without repetition while there are others."""
    some = min(clusters, len(few))
    # Above zero: next to a weight of 1e300 others vanish, and numpy would find too few to draw.
    share = np.maximum(few.weights / few.weights.sum(), 1e-300)
    return np.resize(rng.choice(len(few), some, replace=False, p=share), clusters)


def plus_plus(few: FewRows, rng: np.random.Generator, clusters: int, count: int, looks: int = 1) -> np.ndarray:
    """(starts x clusters) rows by k-means++: the first by weight, each next by that times squared distance.

    The distance is that to the nearest so far. Of several looks the row counts that leaves the least cost.
    """
    starts = np.arange(count)
    chosen = np.empty((count, clusters), np.int64)
    chosen[:, 0] = draw_rows(few.weights, rng.random(count))
    nearest = few.squares(few.cells(chosen[:, 0]))
    for at in range(1, clusters):
        rows = np.array([draw_rows(few.weights * near, rng.random(looks)) for near in nearest])
        after = few.squares(few.cells(rows.ravel())).reshape(count, looks, -1)
        np.minimum(after, nearest[:, None], out=after)
        best = (after @ few.weights).argmin(axis=1)
        chosen[:, at], nearest = rows[starts, best], after[starts, best]
    return chosen


def draw_rows(share: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Rows drawn in proportion to `share`, by numbers between 0 and 1; any row if all shares are zero."""
    if not share.any():
        return (at * len(share)).astype(np.int64)
    total = np.cumsum(share)
    last = len(share) - 1 - int((share[::-1] > 0).argmax())
    return np.asarray(np.minimum(np.searchsorted(total, at * total[-1], side="right"), last))


# A better optimum: rows exchanged between clusters, and centres moved.

SAME = 1e-9
"""Costs that differ by less than this, relative to the best, are one optimum."""
PLACES = 2
"""Rows drawn as new places for each centre."""
TRIED = 3
"""Moves tried at once per failure allowed: those with the least cost before other centres move."""
ALONE_AFTER = 4
"""Updates after which only the best of the moves is followed."""
FAILURES = 2, 6
"""Failed moves in a row before the search ends: on larger tables, and at most."""
AFFORDED = 1_100_000
"""Work of one assignment that decides between the two: iris in ten clusters is 54,000, digits 1,725,000."""
TOO_MUCH = 10_000_000
"""Work of one assignment beyond which no centre is moved: all descents take half a second there."""
ALONE = 1e-12
"""Relative weight of a cluster without a row that counts as nothing."""
SWEEPS, LAST_SWEEPS = 4, 100
"""Sweeps of exchanging rows after a descent, and at the end: the first four bring most of the gain."""
EXCHANGED = 2
"""Different local optima whose rows are exchanged."""


def exchange_rows(few: FewRows, end: SmallEnd, sweeps: int = SWEEPS) -> SmallEnd:
    """Move single rows where that lowers the cost although their own centre is the nearest (Hartigan).

    Moving a row moves both centres, which Lloyd's steps ignore.
    """
    if few.unit or not end.converged or not few.has_room(len(end.centres)):
        return end
    now = weigh_moves(few, end.labels, end.centres)
    for _ in range(sweeps):
        gaining = np.flatnonzero(now.gain > SAME * now.cost)
        if not len(gaining):
            break
        labels = now.labels.copy()
        labels[gaining] = now.target[gaining]
        again = weigh_moves(few, labels, now.centres)
        if not again.cost < now.cost * (1 - SAME):  # each would gain alone, not all of them together
            again = weigh_moves(few, move_one_by_one(few, now, gaining), now.centres)
            if not again.cost < now.cost * (1 - SAME):
                break
        now = again
    return SmallEnd(now.centres, now.labels, now.cost, True)


class Moves(NamedTuple):
    """Clusters, their cost, and for each row the gain of its best move."""

    labels: np.ndarray
    centres: np.ndarray
    mass: np.ndarray
    cost: float
    target: np.ndarray
    gain: np.ndarray


def weigh_moves(few: FewRows, labels: np.ndarray, before: np.ndarray) -> Moves:
    """The centres of these clusters, and the gains of moving single rows."""
    rows, weights = np.arange(len(few)), few.weights
    own = labels == np.arange(len(before))[:, None]
    mass = own @ weights
    centres = few.means(few.sums(own), mass, before)
    squares = few.squares(centres)
    here, rest = squares[labels, rows], mass[labels] - weights
    alone = rest <= ALONE * weights
    leaving = np.where(alone, 0.0, here * mass[labels] / np.where(alone, 1.0, rest))
    squares *= mass[:, None] / np.maximum(mass[:, None] + weights, 1e-300)
    squares[labels, rows] = np.inf
    target = squares.argmin(axis=0)
    return Moves(labels, centres, mass, float(here @ weights), target, weights * (leaving - squares[target, rows]))


def move_one_by_one(few: FewRows, now: Moves, gaining: np.ndarray) -> np.ndarray:
    """Labels after moving rows one by one, the largest gain first, with centres updated."""
    rows = gaining[np.argsort(-now.gain[gaining], kind="stable")]
    labels, centres, mass = now.labels.copy(), now.centres.copy(), now.mass.copy()
    for row, weight, cells in zip(rows.tolist(), few.weights[rows].tolist(), few.cells(rows), strict=True):
        old = labels[row]
        rest = mass[old] - weight
        if rest <= ALONE * weight:
            continue
        differences = centres - cells
        costs = np.einsum("kj,kj->k", differences, differences) * mass
        here = costs[old] / rest
        costs /= mass + weight
        costs[old] = np.inf
        new = int(costs.argmin())
        if costs[new] < here:
            labels[row], mass[old], mass[new] = new, rest, mass[new] + weight
            centres[old] += differences[old] * (weight / mass[old])
            centres[new] -= differences[new] * (weight / mass[new])
    return labels


def move_centres(few: FewRows, best: SmallEnd, rng: np.random.Generator, most: int) -> SmallEnd:
    """Move one centre to a row far from all, until that failed often enough in a row."""
    work = len(best.centres) * few.work
    if work > TOO_MUCH:
        return best
    failures, failed = int(np.clip(AFFORDED // work, *FAILURES)), 0
    while failed < failures and len(best.centres) > 1 and best.cost > 0:
        moves = split_runs(few, propose_moves(few, best, rng, failures * TRIED))
        ends = [
            end for part in moves for end in run_stack(StartStack.near(few, best, part), most, best.cost, ALONE_AFTER)
        ]
        again = exchange_rows(few, min(ends, key=lambda end: end.cost)) if ends else best
        failed = 0 if again.cost < best.cost * (1 - SAME) else failed + 1
        best = best if failed else again
    return exchange_rows(few, best, LAST_SWEEPS)


def propose_moves(few: FewRows, best: SmallEnd, rng: np.random.Generator, most: int) -> np.ndarray:
    """(moves x clusters x columns) centres with one of each set moved to a row drawn by weight times squared distance.

    The best places of each centre come first, and of these the best moves.
    """
    clusters, rows = np.arange(len(best.centres)), np.arange(len(few))
    squares = few.squares(best.centres)
    first = squares[best.labels, rows]
    squares[best.labels, rows] = np.inf
    second = squares.min(axis=0)
    places = few.cells(draw_rows(few.weights * first, rng.random(len(clusters) * PLACES)))
    there = few.squares(places)
    with_it = np.minimum(first, there)
    # Rows of the centre that goes have their second nearest, or the new one.
    more = ((np.minimum(second, there) - with_it) * few.weights).reshape(len(clusters), PLACES, -1)
    costs = (with_it @ few.weights).reshape(len(clusters), PLACES)
    costs = costs + np.einsum("kpn,kn->kp", more, best.labels == clusters[:, None])
    rank = np.argsort(np.argsort(costs, axis=1), axis=1)
    chosen = np.lexsort((costs.ravel(), rank.ravel()))[:most]
    centres = np.repeat(best.centres[None], len(chosen), axis=0)
    centres[np.arange(len(chosen)), chosen // PLACES] = places[chosen]
    return centres


# k-means of rows in this process.

WORTH_COMPILING = 1_000_000
"""Distances per round of assignments, over all runs, from which compiled kernels repay their import."""
ROUNDS = 16
"""Assignments that a fit takes at least; a prediction takes one."""
FINALISTS = 2
"""Runs on the sample of a large table that continue with all rows."""


class KMeansOptions(Struct, frozen=True):
    """The options of a fit."""

    clusters: int
    init: Any = "k-means++"
    n_init: int = 10
    stop: lloyd.KMeansStop = field(default_factory=lambda: lloyd.KMeansStop(300, 1e-4))
    seed: int = 0
    unit: bool = False


class Centres(Struct, frozen=True):
    """Centres in the table's units, the frame of distances, how they were found, and the weights of the clusters."""

    centres: Annotated[np.ndarray, Floats((None, None))]
    frame: lloyd.Frame
    inertia: NotNegative
    trace: list[float]
    converged: bool
    agreed: tuple[int, int]
    notes: list[str]
    sizes: Annotated[np.ndarray, Floats(("centres",), least=0.0)]

    @property
    def n_iter(self) -> int:
        return len(self.trace) // 2

    def assign(self, X: PointRows, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        """The nearest centre of each row, and the squared distance to it in the table's units."""
        inner = self.frame.inside(self.centres)
        engine = lloyd.Engine(lloyd.Points.of(self.frame.bring(X), None), kernels_for(X, len(inner) // ROUNDS), threads)
        walk = lloyd.LloydRun(engine, inner)
        walk.assign()
        with np.errstate(over="ignore"):  # in the table's units a square may be more than float64 holds
            apart = engine.spread(walk.state.labels, inner) / self.frame.ruler / self.frame.ruler
        if not self.frame.unit:
            return walk.state.labels, apart
        there = squared_norms(engine.points.rows) > 0  # zeros have no direction: the first label, and no cost
        return np.where(there, walk.state.labels, 0), np.where(there, apart, 0.0)

    def distances(self, X: PointRows, threads: Threads) -> np.ndarray:
        rows = self.frame.bring(X)
        goal = goal_of(self.frame.inside(self.centres), rows.dtype)
        step = max(1, (1 << 20) // max(len(self.centres), rows.shape[1] if sparse.issparse(rows) else 1))
        parts = threads.map(
            lambda span: np.sqrt(squares(rows[span], goal)),
            [slice(start, start + step) for start in range(0, rows.shape[0], step)],
        )
        apart = np.concatenate(list(parts)) / self.frame.ruler
        if self.frame.unit:
            apart[squared_norms(rows) == 0] = 1.0  # equally far from all, without the rounding of each centre's length
        return apart


def kernels_for(X: PointRows, distances: int) -> ModuleType:
    """Compiled kernels for many distances; decided by the size alone."""
    compiled = not sparse.issparse(X) and X.shape[0] * distances >= WORTH_COMPILING
    return import_module("softcount.kernels.bounded" if compiled else "softcount.kernels.nearest")


def fit_kmeans(
    X: PointRows,
    weights: np.ndarray | None,
    options: KMeansOptions,
    threads: Threads,
    names: Sequence[Any] | None = None,
    *,
    owned: bool = False,
) -> tuple[Centres, np.ndarray]:
    """Centres and labels of the best run; rows that are `owned` may be changed."""
    with one_blas_thread():
        frame = lloyd.frame_of(X, names, options.unit, threads)
        heavy = 1.0
        if weights is not None:
            # Divided by the power of two next to the largest if sums of weights times squares might overflow.
            power = int(np.frexp(weights.max())[1])
            heavy = 1.0 if abs(power) <= lloyd.COMFORTABLE[8] // 2 else float(np.ldexp(1.0, power - 1))
            weights = weights / heavy
        kernel = kernels_for(X, count_distances(options))
        placed = frame.place_here(X) if owned else frame.place(X)
        found, labels = fit_centres(
            lloyd.Engine(lloyd.Points.of(placed, weights), kernel, threads, options.unit), frame, options, names
        )
        assert labels is not None
        return replace(to_table_units(found, heavy), sizes=found.sizes * heavy), labels


def count_distances(options: KMeansOptions) -> int:
    """Distances per row in a round of assignments, over all runs."""
    return options.clusters * (options.n_init if isinstance(options.init, str) else 1)


def fit_centres(
    engine: lloyd.Walker, frame: lloyd.Frame, options: KMeansOptions, names: Sequence[Any] | None
) -> tuple[Centres, np.ndarray | None]:
    """Centres of the best run, costs in kernel units, and labels if the rows are here."""
    if isinstance(options.init, str):
        best, agreed, notes = best_of_draws(engine, options)
        order = np.lexsort([*best.centres.T[::-1], -best.sizes])
        if (order[1:] < order[:-1]).any():
            places = np.empty(len(order), np.int64)
            places[order] = np.arange(len(order))
            labels = None if best.labels is None else places[best.labels]
            members, sizes = best.members[order], best.sizes[order]
            best = replace(best, centres=best.centres[order], labels=labels, members=members, sizes=sizes, ordered=True)
    else:
        centres = frame.inside(check_centres(options, len(frame.anchor), names))
        far = (np.abs(centres) > 4.0 ** lloyd.COMFORTABLE[engine.dtype.itemsize]).any(axis=1)
        if far.any():  # its square would overflow
            raise DataError(
                f"init: centre {int(far.argmax())} is too far from every row to get any. Give centres near the rows."
            )
        best, agreed, notes = lloyd.descend(engine, centres, options.stop), (1, 1), []
    return round_centres(engine, frame, best, agreed, notes)


def to_table_units(found: Centres, heavy: float) -> Centres:
    """The costs in the table's units and weights, with a note if they overflow."""
    with np.errstate(over="ignore"):
        trace = [float(value) for value in np.array(found.trace) / found.frame.ruler * heavy / found.frame.ruler]
    note = [] if np.isfinite(trace[0]) else ["The cost is more than 1.8e308: in smaller units it would be a number."]
    return replace(found, trace=trace, inertia=trace[-1], notes=found.notes + note)


def check_centres(options: KMeansOptions, columns: int, names: Sequence[Any] | None) -> np.ndarray:
    try:
        centres = np.array(options.init, dtype=np.float64)
    except (TypeError, ValueError):
        centres = np.zeros(0)
    if centres.shape != (options.clusters, columns):
        raise DataError(
            f"init must be 'k-means++', 'random' or {options.clusters} centres of {columns} columns, "
            f"not {f'an array of shape {centres.shape}' if centres.size else repr(options.init)}."
        )
    if not np.isfinite(centres).all():
        k, j = np.argwhere(~np.isfinite(centres))[0]
        raise DataError(
            f"init: centre {k}, column {j if names is None else names[j]!r} is {centres[k, j]}; give a number."
        )
    if options.unit:
        if (nowhere := ~centres.any(axis=1)).any():
            raise DataError(f"init: centre {int(nowhere.argmax())} is all zeros and has no direction.")
        centres = lloyd.unit_rows(centres)
    return centres


def best_of_draws(engine: lloyd.Walker, options: KMeansOptions) -> tuple[lloyd.Descent, tuple[int, int], list[str]]:
    """The best of several initialisations, how many reached it, and notes."""
    sample, whole = engine.sample(options.clusters)
    few, starts, rng = draw_starts(FewRows.of(sample, options.unit), options)
    if options.n_init == 1:
        return lloyd.descend(engine, starts[0], options.stop), (1, 1), []
    # Until no row changes: on so few rows that is quick, and only then can two runs be compared as one optimum.
    most = options.stop.max_iter
    ended: list[SmallEnd] = []
    before, different = -1.0, 0
    small = lloyd.Engine(sample, engine.kernel, engine.threads, engine.unit)
    if not small.kernel.BLOCKED and few.has_room(options.clusters):
        ends = descend_together(few, starts, most)
    else:  # one by one if kernels are compiled or rows are too many
        alone = (lloyd.descend(small, start, lloyd.KMeansStop(most, 0.0)) for start in starts)
        ends = [SmallEnd(end.centres, np.asarray(end.labels), end.cost, end.converged) for end in alone]
    for end in sorted(ends, key=lambda end: end.cost):
        is_new = not ended or end.cost > before * (1 + SAME)
        different += is_new
        before = end.cost
        ended.append(ended[-1] if not is_new else exchange_rows(few, end) if different <= EXCHANGED else end)
    best = min(ended, key=lambda end: end.cost)
    better = move_centres(few, best, rng, most)
    agreed = sum(end.cost <= better.cost * (1 + SAME) for end in ended), options.n_init
    notes = [f"{agreed[0]} of {agreed[1]} initialisations reached the best."]
    if better is not best:
        notes.append("The best was found by moving a centre of the best start elsewhere.")
    if whole:
        order = np.argsort(-np.bincount(better.labels, few.weights, options.clusters), kind="stable")
        return lloyd.descend(engine, better.centres[order], lloyd.KMeansStop(most, 0.0)), agreed, notes
    notes.append(f"Starts were compared on {len(sample):,} distinct rows; the best went on with all {len(engine):,}.")
    chosen: list[SmallEnd] = []
    for end in sorted([better, *ended], key=lambda end: end.cost):
        if len(chosen) < FINALISTS and (not chosen or end.cost > chosen[-1].cost * (1 + SAME)):
            chosen.append(end)
    best_end = min((lloyd.descend(engine, end.centres, options.stop) for end in chosen), key=lambda end: end.cost)
    return best_end, agreed, notes


def draw_starts(few: FewRows, options: KMeansOptions) -> tuple[FewRows, np.ndarray, np.random.Generator]:
    """Initial centres of all runs, by differences if products lose too many digits."""
    rng = np.random.default_rng(options.seed)
    starts = draw_centres(few, rng, options.init, options.clusters, options.n_init)
    return (few, starts, rng) if few.is_clear(starts[0]) else draw_starts(replace(few, norms=None), options)


def round_centres(
    engine: lloyd.Walker, frame: lloyd.Frame, end: lloyd.Descent, agreed: tuple[int, int], notes: list[str]
) -> tuple[Centres, np.ndarray | None]:
    """Centres in the table's units, costs in the frame's, labels of the rounded centres."""
    centres = frame.outside(end.centres)
    inner = frame.inside(centres)
    if end.ordered or not np.array_equal(inner, end.centres):
        walk = engine.walk(inner)
        walk.assign()
        trace = end.trace + (walk.cost() - end.cost)
        end = replace(end, trace=trace, labels=walk.labels, members=walk.members, sizes=walk.sizes())
    if end.repaired:
        notes.append(f"{end.repaired} empty clusters were moved to the row farthest from its centre.")
    empty = int((end.members == 0).sum())
    if empty:
        why = ": there are fewer distinct rows than clusters." if end.converged else "."
        notes.append(f"{empty} of {len(end.members)} clusters have no rows{why}")
    if not end.converged:
        notes.append(f"Stopped after {end.n_iter} updates with rows still changing; raise max_iter.")
    return Centres(centres, frame, end.cost, list(end.trace), end.converged, agreed, notes, end.sizes), end.labels


# k-means of rows on workers: the same frame, sample and initialisations; Lloyd's steps use totals of every pass.


def fit_rows(
    rows: Rows, places: Sequence[int], options: KMeansOptions, runner: Runner, names: Sequence[Any]
) -> Centres:
    """Centres of columns of a table whose rows are on workers."""
    with one_blas_thread():
        if not rows.n_rows:
            raise DataError("the table has no rows.")
        ends: lloyd.ColumnEnds = rows.total(partial(lloyd.find_ends, list(places)))
        if ends.bad is not None:
            raise lloyd.not_finite(*ends.bad, names)
        refuse_few(ends.n_rows, options.clusters)
        kept = ends.n_rows - options.unit * ends.zeros
        if options.unit:
            frame = lloyd.Frame(np.zeros(len(places)), 1.0, unit=True)
        else:
            looked_at = rows.each(partial(lloyd.spaced_rows, list(places), lloyd.spacing(ends.n_rows)))
            frame = lloyd.frame_within(ends.low, ends.high, np.concatenate(list(looked_at)))
        notes = note_zeros(ends.n_rows - kept, kept)
        kernel = kernels_for(np.empty((kept, 0)), count_distances(options))
        placed = rows.made(partial(lloyd.place_rows, list(places), frame))
        found, _ = fit_centres(lloyd.RemotePoints(placed, kept, kernel, runner, options.unit), frame, options, names)
        found.notes.extend(notes)
        return to_table_units(found, 1.0)


def note_zeros(zeros: int, others: int) -> list[str]:
    """A note on rows of zeros; an error if there are no others."""
    if not others:
        raise DataError("every row is all zeros, so none has a direction. Use KMeans for rows compared by distance.")
    return [f"{zeros:,} rows of zeros have no direction: they were left out of the fit."] if zeros else []


def refuse_few(rows: int, clusters: int) -> None:
    if rows < clusters:
        raise DataError(f"n_samples={rows} should be >= n_clusters={clusters}: ask for fewer clusters.")
