"""k-means of rows that are elsewhere: the same frame, sample and starts, and Lloyd's steps by totals of every pass.

Nothing is remembered of a row between passes, so that a worker may be lost: every pass compares all rows with all
centres and counts them anew. So the sums, and with them the bits, depend on the parts of the table alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.learn.kmeans.centre_steps import (
    DTYPE,
    AskedCentres,
    Ends,
    FarRows,
    assigning,
    finding_ends,
    finding_far,
    looking,
    placing,
    sampling,
)
from softcount.learn.kmeans.descend import Engine, means_of
from softcount.learn.kmeans.fit_kmeans import Centres, Wish, distances_of, in_units, kernels_for, walked
from softcount.learn.kmeans.points import Frame, Points, frame_within, not_finite, spacing
from softcount.learn.kmeans.seeds import SAMPLE, most_sampled
from softcount.records import dataclass
from softcount.run.base import Runner, one_blas_thread
from softcount.run.rows import Rows


@dataclass(frozen=True, slots=True)
class RowsElsewhere:
    """Placed rows, and the kernel that finds their nearest centres where they are."""

    rows: Rows
    n_rows: int
    kernel: Any
    runner: Runner
    unit: bool
    dtype: np.dtype = DTYPE

    def __len__(self) -> int:
        return self.n_rows

    @property
    def mass(self) -> float:
        return float(self.n_rows)

    def walk(self, centres: np.ndarray) -> RowWalk:
        """Steps from these centres."""
        return RowWalk(self, centres)

    def sample(self, clusters: int) -> tuple[Points, bool]:
        """The distinct rows of least hash, and whether they are all of the table's."""
        found = self.rows.total(sampling(most_sampled(clusters), self.kernel.__name__))
        return found.sorted_points if self.n_rows <= SAMPLE else found.points, found.whole

    def over(self, points: Points) -> Engine:
        """The same over a few rows that are here."""
        return Engine(points, self.kernel, self.runner, self.unit)

    def asked(self, centres: np.ndarray) -> AskedCentres:
        """What a pass is told of the centres."""
        return AskedCentres(centres, self.kernel.__name__)


class RowWalk:
    """Centres on their way down, by totals of every pass."""

    labels = None

    def __init__(self, engine: RowsElsewhere, centres: np.ndarray) -> None:
        self.engine, self.centres = engine, centres
        self.sums, self.mass = np.zeros(centres.shape), np.zeros(len(centres))
        self.members = np.zeros(len(centres), np.int64)
        self.repaired, self._cost = 0, 0.0

    def assign(self) -> tuple[float, int]:
        """Every row to its nearest centre: how far that lowers the cost, and whether any row changed."""
        found = self.engine.rows.total(assigning(self.engine.asked(self.centres)))
        changed = not (np.array_equal(found.members, self.members) and np.array_equal(found.sums, self.sums))
        fell = self._cost - found.cost
        self.sums, self.mass, self.members, self._cost = found.sums, found.mass, found.members, found.cost
        return fell, int(changed)

    def update(self) -> tuple[float, float]:
        """Every centre to the mean of its rows: how far that lowers the cost, and the sum of the squared moves."""
        gained = self.repair()
        centres, weights = means_of(self, self.engine.unit)
        squares = ((centres - self.centres) ** 2).sum(axis=1)
        self.centres = centres
        gained += float(weights @ squares)
        self._cost -= gained
        return gained, float(squares.sum())

    def repair(self) -> float:
        """Give every empty cluster the row farthest from its centre; how far that lowers the cost comes back."""
        empty = np.flatnonzero(self.members == 0)
        if not len(empty):
            return 0.0
        # A cluster's only row stays, so that as many more rows than empty clusters are needed as there are others.
        step = finding_far(self.engine.asked(self.centres), len(self.members))
        far = FarRows(*(np.concatenate(found) for found in zip(*self.engine.rows.each(step), strict=True)))
        apart, labels, centres = far.apart.copy(), far.labels.copy(), self.centres.copy()
        nowhere = (8 * float(np.finfo(DTYPE).eps)) ** 2 if self.engine.unit else 0.0
        gained = 0.0
        for k in empty:
            reached = np.where(self.members[labels] > 1, apart, 0.0)
            at = int(reached.argmax())
            if reached[at] <= nowhere:
                break
            old, cells = labels[at], far.rows[at]
            self.sums[old] -= cells
            self.mass[old] -= 1.0
            self.members[old] -= 1
            self.sums[k], self.mass[k], self.members[k] = cells, 1.0, 1
            gained += float(reached[at])
            centres[k], apart[at], labels[at] = cells, 0.0, k
            self.repaired += 1
        self.centres = centres
        return gained

    def confirm(self) -> tuple[float, int]:
        """Nothing to do: rows are counted anew in every pass."""
        return 0.0, 0

    def cost(self) -> float:
        """The sum of squared distances in the last assignment."""
        return self._cost

    def sizes(self) -> np.ndarray:
        """How many rows every centre had in the last assignment."""
        return self.mass


def fit_rows(rows: Rows, places: Sequence[int], wish: Wish, runner: Runner, names: Sequence[Any]) -> Centres:
    """Centres of the columns at these places of a table's chunks, which are read where they are."""
    with one_blas_thread():
        if not rows.n_rows:
            raise DataError("the table has no rows.")
        ends: Ends = rows.total(finding_ends(places))
        if ends.bad is not None:
            raise not_finite(*ends.bad, names)
        refuse_few(ends.n_rows, wish.clusters)
        frame, kept = _frame(rows, places, ends, wish.unit), ends.n_rows - wish.unit * ends.zeros
        notes = without_direction(ends.n_rows - kept, kept)
        kernel = kernels_for(np.empty((kept, 0)), distances_of(wish))
        placed = rows.made(placing(places, frame))
        found, _ = walked(RowsElsewhere(placed, kept, kernel, runner, wish.unit), frame, wish, names)
        found.notes.extend(notes)
        return in_units(found, 1.0)


def _frame(rows: Rows, places: Sequence[int], ends: Ends, unit: bool) -> Frame:
    if unit:
        return Frame(np.zeros(len(places)), 1.0, unit)
    looked_at = np.concatenate(list(rows.each(looking(places, spacing(ends.n_rows)))))
    return frame_within(ends.low, ends.high, looked_at)


def without_direction(zeros: int, others: int) -> list[str]:
    """What is said of rows of zeros; an error where there are no others."""
    if not others:
        raise DataError("every row is all zeros, so none has a direction. Use KMeans for rows compared by distance.")
    return [f"{zeros:,} rows of zeros have no direction: they were left out of the fit."] if zeros else []


def refuse_few(rows: int, clusters: int) -> None:
    """Raise where there are fewer rows than clusters: a centre would have no row to be near to."""
    if rows < clusters:
        raise DataError(f"n_samples={rows} should be >= n_clusters={clusters}: ask for fewer clusters.")
