"""Points for k-means: rows as arrays, several runs side by side, and k-means++ seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.lazy import sparse
from softcount.errors import DataError
from softcount.kernels.nearest import PointRows, densely, goal_of, is_wide, squared_norms, squares
from softcount.learn.initialise import DistinctRows
from softcount.run.local import Threads
from softcount.sources.wording import column as named

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

    anchor: np.ndarray
    scale: float = 1.0
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
    def of(cls, points: Points, unit: bool) -> FewRows:
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
        best = unit_rows(sums) if self.unit else sums / np.where(there, mass[..., None], 1.0)
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


# Initialisation: centres drawn from the distinct rows, so that row order and repeated rows do not matter.

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
