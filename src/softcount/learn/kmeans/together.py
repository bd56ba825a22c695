"""Many descents on few rows at once: starts times centres are just more centres.

One product of matrices serves all starts, and only for the centres that moved. Products round, which is good enough to
look for a start: what is found goes on by `descend`, whose labels are exact. Where it is not good enough, because rows
differ by less than that rounding, distances are summed column by column here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from softcount.kernels.nearest import Rows, densely, goal_of, is_wide, squared_norms, squares
from softcount.learn.kmeans.points import Points, unit_rows
from softcount.numerics.late_scipy import sparse
from softcount.records import dataclass

TILE = 1 << 19
"""Scores held at once, unless one start has more."""

ROOM = 1 << 22
"""Scores of one start beyond which starts are not held in memory like this."""

FEW = 1 << 20
"""Products up to which the sums of all clusters are counted anew: taking apart which rows changed costs as much."""

LACKING = 20.0
"""Times what the last update brought that a start may lack to the best: falls shrink by a tenth or more each time."""

EVEN = 1e6
"""Weights within this factor can be added to and taken from sums without leaving but rounding behind."""

CLEAR = 1e-9
"""Rounding of a squared distance by products, relative to the mean one to the nearest centre, that changes nothing."""


@dataclass(frozen=True, slots=True)
class SmallEnd:
    """Where a start ended: its centres, the label of each row, and the cost."""

    centres: np.ndarray
    labels: np.ndarray
    cost: float
    converged: bool


@dataclass(frozen=True, slots=True)
class FewRows:
    """Some weighted rows in float64, with a line of ones below their columns; with `unit`, centres have length one.

    Without `norms`, the rows' own squares, distances are sums of squared differences.
    """

    rows: Rows
    weights: np.ndarray
    norms: np.ndarray | None
    lines: np.ndarray | None
    unit: bool

    @classmethod
    def of(cls, points: Points, unit: bool) -> FewRows:
        rows = points.rows.astype(np.float64, copy=False)
        weights = np.ones(len(points)) if points.weights is None else points.weights
        lines = None if sparse.issparse(rows) else np.vstack([rows.T, np.ones(len(rows))])
        return cls(rows, weights, squared_norms(rows), lines, unit)

    def by_differences(self) -> FewRows:
        return replace(self, norms=None)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def work(self) -> int:
        """What comparing all rows with a centre takes, in cells: comparing the scores takes as much as 32 cells."""
        return 32 * len(self) + int(self.rows.nnz if sparse.issparse(self.rows) else self.rows.size)

    def has_room(self, clusters: int) -> bool:
        return len(self) * clusters <= ROOM

    def scores(self, centres: np.ndarray) -> np.ndarray:
        """(centres x rows) half the squared distance less half the row's own square, which all centres share."""
        half = np.einsum("kj,kj->k", centres, centres) / 2
        if self.norms is None:
            return np.asarray(squares(self.rows, goal_of(centres, self.rows.dtype, half, half[:0])).T / 2)
        if self.lines is None:
            return np.asarray(half[:, None] - (self.rows @ centres.T).T)
        return np.asarray(np.column_stack([-centres, half]) @ self.lines)

    def squares_of(self, scores: np.ndarray) -> np.ndarray:
        """Squared distances, from the scores of any centres."""
        return np.asarray(2.0 * scores if self.norms is None else np.maximum(2.0 * scores + self.norms, 0.0))

    def squares(self, centres: np.ndarray) -> np.ndarray:
        """(centres x rows) squared distances."""
        return self.squares_of(self.scores(centres))

    def cells(self, which: np.ndarray) -> np.ndarray:
        """Some of the rows, dense, in the shape they are asked for."""
        return densely(self.rows[which.ravel()]).reshape(*which.shape, -1)

    def sums(self, own: np.ndarray) -> np.ndarray:
        """(clusters x columns) weighted sums of the rows that are marked as a cluster's own."""
        shares = own * self.weights
        return np.asarray((self.rows.T @ shares.T).T if self.lines is None else shares @ self.rows)

    def means(self, sums: np.ndarray, mass: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The best centres of clusters with such sums; one that weighs nothing stays where it was."""
        there = mass[..., None] > 0
        best = unit_rows(sums) if self.unit else sums / np.where(there, mass[..., None], 1.0)
        return np.where(there, best, before)

    @property
    def is_even(self) -> bool:
        return bool(self.weights.max() <= EVEN * self.weights.min())

    def is_clear(self, centres: np.ndarray) -> bool:
        """Whether products tell the rows apart that belong to different centres."""
        if self.norms is None or is_wide(self.rows) or not self.has_room(len(centres)):
            return True
        mean = float(self.squares(centres).min(axis=0) @ self.weights) / float(self.weights.sum())
        return bool((4 * self.rows.shape[1] + 16) * 2.0**-53 * self.norms.max() <= CLEAR * mean)


class StartStack:
    """Sets of centres over the same rows on their way down: starts x clusters x rows."""

    def __init__(self, few: FewRows, centres: np.ndarray) -> None:
        self.few, self.centres = few, centres.copy()
        shape = (*centres.shape[:2], len(few))
        self.scores, self.own = np.empty(shape), np.zeros(shape, bool)
        self.sums, self.mass = np.zeros(centres.shape), np.zeros(shape[:2])
        self.moved = np.ones(shape[:2], bool)
        self.least = np.empty(0)

    @classmethod
    def near(cls, few: FewRows, end: SmallEnd, centres: np.ndarray) -> StartStack:
        """Sets that differ from an end in few centres: all else is known from there."""
        stack = cls(few, centres)
        own = end.labels == np.arange(len(end.centres))[:, None]
        stack.scores[:], stack.own[:] = few.scores(end.centres), own
        stack.sums[:], stack.mass[:] = few.sums(own), own @ few.weights
        stack.moved = (centres != end.centres).any(axis=2)
        return stack

    def assign(self) -> np.ndarray:
        """Every row to its nearest centre in every start: in which starts a row changed."""
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
        """Bring the sums up to date, given where rows came or went."""
        starts, clusters, rows = self.own.shape
        if self.sums.size * rows <= FEW or not self.few.is_even:
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
        """Every centre whose rows changed to their mean; an empty cluster takes the row farthest from its centre."""
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
        """The cost of each start, after an assignment."""
        return np.asarray(self.few.squares_of(self.least) @ self.few.weights)

    def keep(self, which: np.ndarray) -> None:
        """Go on with some of the starts only."""
        for name in ("centres", "scores", "own", "sums", "mass", "moved", "least"):
            setattr(self, name, getattr(self, name)[which])

    def end(self, start: int, cost: float, converged: bool) -> SmallEnd:
        return SmallEnd(self.centres[start], self.own[start].argmax(axis=0), cost, converged)


def descend_together(few: FewRows, centres: np.ndarray, most: int) -> list[SmallEnd]:
    """Where several starts (starts x clusters x columns) end: no row changes, or after so many updates.

    One that cannot become the best any more is given up and left out.
    """
    ends: list[SmallEnd] = []
    for part in in_parts(few, centres):
        ends += ended(StartStack(few, part), most, min((end.cost for end in ends), default=np.inf))
    return ends


def in_parts(few: FewRows, centres: np.ndarray) -> Iterator[np.ndarray]:
    """Some starts at a time, so many that their scores and centres stay in the cache."""
    step = max(1, TILE // max(centres.shape[1] * len(few), centres[0].size))
    return (centres[at : at + step] for at in range(0, len(centres), step))


def ended(stack: StartStack, most: int, best: float, alone: int | None = None) -> list[SmallEnd]:
    """Where the starts of a stack end that may still be better than `best`; after `alone` updates only one goes on."""
    ends: list[SmallEnd] = []
    known, before = best, np.full(len(stack.centres), np.inf)
    for turn in range(most + 1):
        on, costs = stack.assign(), stack.costs()
        done = np.flatnonzero(~on | (turn == most))
        ends += [stack.end(at, float(costs[at]), not on[at]) for at in done.tolist()]
        best = min(best, float(costs.min()))
        on &= costs - best <= LACKING * (before - costs)
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
