"""k-means: starts, descents, and the best of them as centres that can be asked.

`fit_kmeans` finds centres for a table; `lloyd` runs the two steps on small arrays, for whoever needs a start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.kernels.nearest import Rows, squared_norms, squares
from softcount.learn.kmeans.descend import Descent, Engine, KMeansStop, Walk, Walker, descend
from softcount.learn.kmeans.improve import SAME, best_exchanged, moved_elsewhere
from softcount.learn.kmeans.points import COMFORTABLE, Frame, Points, frame_of, unit_rows
from softcount.learn.kmeans.seeds import Draws
from softcount.learn.kmeans.together import FewRows, SmallEnd, descend_together
from softcount.numerics.late_scipy import sparse
from softcount.records import dataclass
from softcount.run.threads import Threads, one_blas_thread

WORTH_COMPILING = 1_000_000
"""Distances per round of assignments, over all starts, from which compiled kernels repay the second of their import."""

ROUNDS = 16
"""Assignments that a fit takes at least, where a prediction takes one."""

FINALISTS = 2
"""Starts of a large table that go on from the sample to all rows."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for: how many clusters, from where, how often, and when to stop."""

    clusters: int
    init: Any = "k-means++"
    n_init: int = 10
    stop: KMeansStop = field(default_factory=lambda: KMeansStop(300, 1e-4))
    seed: int = 0
    unit: bool = False


@dataclass(frozen=True, slots=True)
class Centres:
    """Centres in the table's units, the frame that distances are taken in, and how they were found.

    `sizes` are the weights of the rows nearest to each; None in files of earlier versions.
    """

    centres: np.ndarray
    frame: Frame
    inertia: float
    trace: list[float]
    converged: bool
    agreed: tuple[int, int]
    notes: list[str]
    sizes: np.ndarray | None = None

    @property
    def n_iter(self) -> int:
        return len(self.trace) // 2

    def assign(self, X: Rows, threads: Threads) -> tuple[np.ndarray, np.ndarray]:
        """The nearest centre of each row, and the squared distance to it in the table's units."""
        inner = self.frame.inside(self.centres)
        engine = Engine(Points.of(self.frame.bring(X), None), kernels_for(X, len(inner) // ROUNDS), threads)
        walk = Walk(engine, inner)
        walk.assign()
        with np.errstate(over="ignore"):  # in the table's units a square may be more than float64 holds
            apart = engine.spread(walk.labels, inner) / self.frame.ruler / self.frame.ruler
        if not self.frame.unit:
            return walk.labels, apart
        there = squared_norms(engine.points.rows) > 0  # zeros have no direction: the first label, and no cost
        return np.where(there, walk.labels, 0), np.where(there, apart, 0.0)

    def distances(self, X: Rows, threads: Threads) -> np.ndarray:
        """(rows x centres) distances."""
        rows = self.frame.bring(X)
        goal = Walk(Engine(Points.of(rows, None), kernels_for(X, 0), threads), self.frame.inside(self.centres)).goal
        parts = threads.map(lambda span: np.sqrt(squares(rows[span], goal)), _short(rows, len(self.centres)))
        apart = np.concatenate(list(parts)) / self.frame.ruler
        if self.frame.unit:
            apart[squared_norms(rows) == 0] = 1.0  # equally far from all, without the rounding of each centre's length
        return apart


def _short(rows: Rows, clusters: int) -> list[slice]:
    """Slices whose distances, and dense cells, take some megabytes."""
    step = max(1, (1 << 20) // max(clusters, rows.shape[1] if sparse.issparse(rows) else 1))
    return [slice(start, start + step) for start in range(0, rows.shape[0], step)]


def kernels_for(X: Rows, distances: int) -> ModuleType:
    """The compiled kernels where there are many distances to take; by the size alone."""
    compiled = not sparse.issparse(X) and X.shape[0] * distances >= WORTH_COMPILING
    return import_module("softcount.kernels.bounded" if compiled else "softcount.kernels.nearest")


def fit_kmeans(
    X: Rows,
    weights: np.ndarray | None,
    wish: Wish,
    threads: Threads,
    names: Sequence[Any] | None = None,
    *,
    owned: bool = False,
) -> tuple[Centres, np.ndarray]:
    """Centres and labels of the best start; rows that are `owned` may be changed."""
    with one_blas_thread():
        frame = frame_of(X, names, wish.unit, threads)
        heavy = 1.0 if weights is None else weight_unit(weights)
        weights = None if weights is None else weights / heavy
        kernel = kernels_for(X, distances_of(wish))
        placed = frame.place_here(X) if owned else frame.place(X)
        found, labels = walked(Engine(Points.of(placed, weights), kernel, threads, wish.unit), frame, wish, names)
        assert labels is not None
        return replace(in_units(found, heavy), sizes=None if found.sizes is None else found.sizes * heavy), labels


def distances_of(wish: Wish) -> int:
    """Distances per row in a round of assignments, over all starts."""
    return wish.clusters * (wish.n_init if isinstance(wish.init, str) else 1)


def walked(engine: Walker, frame: Frame, wish: Wish, names: Sequence[Any] | None) -> tuple[Centres, np.ndarray | None]:
    """Centres of the best start, costs as the kernels see them, and labels where the rows are here."""
    if isinstance(wish.init, str):
        best, agreed, notes = best_drawn(engine, wish)
        best = largest_first(best)
    else:
        centres = frame.inside(given(wish, len(frame.anchor), names))
        refuse_far(centres, engine.dtype)
        best, agreed, notes = descend(engine, centres, wish.stop), (1, 1), []
    return settled(engine, frame, best, agreed, notes)


def weight_unit(weights: np.ndarray) -> float:
    """One, or the power of two next to the largest weight where sums of weights times squares might overflow."""
    power = int(np.frexp(weights.max())[1])
    return 1.0 if abs(power) <= COMFORTABLE[8] // 2 else float(np.ldexp(1.0, power - 1))


def in_units(found: Centres, heavy: float) -> Centres:
    """The costs in the table's units and weights; where they are more than float64 holds, a word on that."""
    with np.errstate(over="ignore"):
        trace = [float(value) for value in np.array(found.trace) / found.frame.ruler * heavy / found.frame.ruler]
    said = [] if np.isfinite(trace[0]) else ["The cost is more than 1.8e308: in smaller units it would be a number."]
    return replace(found, trace=trace, inertia=trace[-1], notes=found.notes + said)


def given(wish: Wish, columns: int, names: Sequence[Any] | None) -> np.ndarray:
    """The user's own centres, checked."""
    try:
        centres = np.array(wish.init, dtype=np.float64)
    except (TypeError, ValueError):
        centres = np.zeros(0)
    if centres.shape != (wish.clusters, columns):
        raise DataError(
            f"init must be 'k-means++', 'random' or {wish.clusters} centres of {columns} columns, "
            f"not {f'an array of shape {centres.shape}' if centres.size else repr(wish.init)}."
        )
    if not np.isfinite(centres).all():
        k, j = np.argwhere(~np.isfinite(centres))[0]
        raise DataError(
            f"init: centre {k}, column {j if names is None else names[j]!r} is {centres[k, j]}; give a number."
        )
    if wish.unit:
        if (nowhere := ~centres.any(axis=1)).any():
            raise DataError(f"init: centre {int(nowhere.argmax())} is all zeros and has no direction.")
        centres = unit_rows(centres)
    return centres


def refuse_far(centres: np.ndarray, dtype: np.dtype) -> None:
    """Raise where a given centre is so far from the rows that its square would overflow."""
    far = (np.abs(centres) > 4.0 ** COMFORTABLE[dtype.itemsize]).any(axis=1)
    if far.any():
        raise DataError(
            f"init: centre {int(far.argmax())} is too far from every row to have any. Start among the rows."
        )


def best_drawn(engine: Walker, wish: Wish) -> tuple[Descent, tuple[int, int], list[str]]:
    """The best of several drawn starts, how many reached it, and what is to be said."""
    sample, whole = engine.sample(wish.clusters)
    few, starts, rng = drawn_starts(FewRows.of(sample, wish.unit), wish)
    if wish.n_init == 1:
        return descend(engine, starts[0], wish.stop), (1, 1), []
    # Until no row changes: on so few rows that is quick, and only then can two starts be told to be one optimum.
    most = wish.stop.max_iter
    ended = best_exchanged(few, all_ended(engine.over(sample), few, starts, most))
    best = min(ended, key=lambda end: end.cost)
    better = moved_elsewhere(few, best, rng, most)
    agreed = sum(end.cost <= better.cost * (1 + SAME) for end in ended), wish.n_init
    notes = [f"{agreed[0]} of {agreed[1]} starts reached the best."]
    if better is not best:
        notes.append("The best was found by moving a centre of the best start elsewhere.")
    if whole:
        order = np.argsort(-np.bincount(better.labels, few.weights, wish.clusters), kind="stable")
        return descend(engine, better.centres[order], KMeansStop(most, 0.0)), agreed, notes
    notes.append(f"Starts were compared on {len(sample):,} distinct rows; the best went on with all {len(engine):,}.")
    return finalists(engine, [better, *ended], wish), agreed, notes


def drawn_starts(few: FewRows, wish: Wish) -> tuple[FewRows, np.ndarray, np.random.Generator]:
    """Centres of all starts, drawn again by differences where products cannot tell the rows apart."""
    rng = np.random.default_rng(wish.seed)
    starts = Draws(few, rng).starts(wish.init, wish.clusters, wish.n_init)
    return (few, starts, rng) if few.is_clear(starts[0]) else drawn_starts(few.by_differences(), wish)


def all_ended(small: Engine, few: FewRows, starts: np.ndarray, most: int) -> list[SmallEnd]:
    """Where every start ends on few rows: together, or one by one where kernels are compiled or rows are too many."""
    if not small.kernel.BLOCKED and few.has_room(starts.shape[1]):
        return descend_together(few, starts, most)
    ends = (descend(small, start, KMeansStop(most, 0.0)) for start in starts)
    return [SmallEnd(end.centres, end.labels_here, end.cost, end.converged) for end in ends]


def finalists(engine: Walker, ended: list[SmallEnd], wish: Wish) -> Descent:
    """The best on all rows of the few best on the sample that differ."""
    chosen: list[SmallEnd] = []
    for end in sorted(ended, key=lambda end: end.cost):
        if len(chosen) < FINALISTS and (not chosen or end.cost > chosen[-1].cost * (1 + SAME)):
            chosen.append(end)
    return min((descend(engine, end.centres, wish.stop) for end in chosen), key=lambda end: end.cost)


def largest_first(end: Descent) -> Descent:
    """Clusters by falling weight, then by their centres: what was drawn first means nothing."""
    order = np.lexsort([*end.centres.T[::-1], -end.sizes])
    if (order[1:] > order[:-1]).all():
        return end
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    labels = None if end.labels is None else places[end.labels]
    members, sizes = end.members[order], end.sizes[order]
    return replace(end, centres=end.centres[order], labels=labels, members=members, sizes=sizes, ordered=True)


def settled(
    engine: Walker, frame: Frame, end: Descent, agreed: tuple[int, int], notes: list[str]
) -> tuple[Centres, np.ndarray | None]:
    """Centres in the table's units, costs in the frame's; labels are those of the centres as they are handed out."""
    centres = frame.outside(end.centres)
    inner = frame.inside(centres)
    if end.ordered or not np.array_equal(inner, end.centres):
        walk = engine.walk(inner)
        walk.assign()
        trace = end.trace + (walk.cost() - end.cost)
        end = replace(end, trace=trace, labels=walk.labels, members=walk.members, sizes=walk.sizes())
    said = notes + _said(end)
    return Centres(centres, frame, end.cost, list(end.trace), end.converged, agreed, said, end.sizes), end.labels


def _said(end: Descent) -> list[str]:
    notes = []
    if end.repaired:
        notes.append(f"{end.repaired} empty clusters were moved to the row farthest from its centre.")
    empty = int((end.members == 0).sum())
    if empty:
        why = ": there are fewer distinct rows than clusters." if end.converged else "."
        notes.append(f"{empty} of {len(end.members)} clusters have no rows{why}")
    if not end.converged:
        notes.append(f"Stopped after {end.n_iter} updates with rows still changing; raise max_iter.")
    return notes


def lloyd(
    points: np.ndarray, weights: np.ndarray | None, centres: np.ndarray, max_iter: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    """Centres and labels after Lloyd's steps on a small dense array, until no row changes or `max_iter`.

    >>> lloyd(np.array([[0.0], [1.0], [9.0]]), None, np.array([[0.0], [1.0]]))
    (array([[0.5],
           [9. ]]), array([0, 0, 1]))
    """
    rows = np.ascontiguousarray(points)
    with one_blas_thread(), Threads(1) as threads:
        engine = Engine(Points.of(rows, weights), import_module("softcount.kernels.nearest"), threads)
        end = descend(engine, np.array(centres, dtype=np.float64), KMeansStop(max_iter, 0.0))
    return end.centres, end.labels_here
