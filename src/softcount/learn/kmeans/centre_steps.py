"""What k-means does with every part of rows that are elsewhere, by name, and what comes back of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.nearest import Goal, blocks_of, fresh_state, goal_of
from softcount.learn.kmeans.points import Frame
from softcount.learn.kmeans.seeds import LeastHashes, least_hashes
from softcount.records import dataclass
from softcount.run.rows import Step
from softcount.table import Chunk

HERE = __name__
DTYPE = np.dtype(np.float64)


@dataclass(frozen=True, slots=True)
class Ends:
    """The least and largest number of every column, the first cell that is none, and how many rows there are.

    `zeros` are the rows of zeros, which have no direction.
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


def finding_ends(places: Sequence[int]) -> Step:
    """The step whose total are the ends of the columns at these places."""
    return Step(f"{HERE}:find_ends", tuple(places))


def find_ends(places: Sequence[int]) -> Callable[[Chunk], Ends]:
    """The ends of a chunk's columns."""
    return partial(_ends, list(places))


def _ends(places: list[int], chunk: Chunk) -> Ends:
    cells, bad = chunk.reals[:, places], None
    low, high = cells.min(axis=0), cells.max(axis=0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        row, place = (int(at) for at in np.argwhere(~np.isfinite(cells))[0])
        bad = float(cells[row, place]), chunk.start + row, place
    return Ends(low, high, bad, chunk.n_rows, int((~cells.any(axis=1)).sum()))


def looking(places: Sequence[int], apart: int) -> Step:
    """The step that gives one row in so many, counted over the whole table."""
    return Step(f"{HERE}:look", (tuple(places), apart))


def look(state: tuple[Sequence[int], int]) -> Callable[[Chunk], np.ndarray]:
    """Evenly spaced rows of a chunk."""
    places, apart = state
    return partial(_looked_at, list(places), apart)


def _looked_at(places: list[int], apart: int, chunk: Chunk) -> np.ndarray:
    return chunk.reals[-chunk.start % apart :: apart][:, places]


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Rows of a part as the kernels see them."""

    rows: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.rows)


def placing(places: Sequence[int], frame: Frame) -> Step:
    """The step that makes chunks rows in a frame."""
    return Step(f"{HERE}:place", (tuple(places), frame))


def place(state: tuple[Sequence[int], Frame]) -> Callable[[Chunk], PlacedRows]:
    """A chunk as rows in a frame; rows of zeros have no direction."""
    places, frame = state
    return partial(_placed, list(places), frame)


def _placed(places: list[int], frame: Frame, chunk: Chunk) -> PlacedRows:
    cells = np.ascontiguousarray(chunk.reals[:, places])
    return PlacedRows(frame.place(cells[cells.any(axis=1)] if frame.unit else cells))


def sampling(most: int, kernel: str) -> Step:
    """The step whose total are the distinct rows of least hash."""
    return Step(f"{HERE}:sample", (most, kernel))


def sample(state: tuple[int, str]) -> Callable[[PlacedRows], LeastHashes]:
    """The distinct rows of a part of least hash."""
    most, kernel = state
    return partial(_sampled, import_module(kernel), most)


def _sampled(kernel: Any, most: int, part: PlacedRows) -> LeastHashes:
    return least_hashes(kernel, part.rows, np.ones(part.n_rows), most)


@dataclass(frozen=True, slots=True)
class CentreTotals:
    """Sums, weights and numbers of the rows of every centre, and their cost."""

    sums: np.ndarray
    mass: np.ndarray
    members: np.ndarray
    cost: float

    def __add__(self, other: CentreTotals) -> CentreTotals:
        return CentreTotals(
            self.sums + other.sums, self.mass + other.mass, self.members + other.members, self.cost + other.cost
        )


class AskedCentres(NamedTuple):
    """Centres, and the name of the kernel that finds the nearest."""

    centres: np.ndarray
    kernel: str


def assigning(asked: AskedCentres) -> Step:
    """The step whose total are the rows of every centre."""
    return Step(f"{HERE}:assign", asked)


def assign(asked: AskedCentres) -> Callable[[PlacedRows], CentreTotals]:
    """The rows of a part to their nearest centres."""
    return partial(_assigned, *_begun(asked))


def _assigned(kernel: Any, goal: Goal, part: PlacedRows) -> CentreTotals:
    found = kernel.advance(part.rows, _fresh(goal, part), goal)
    return CentreTotals(found.sums, found.mass, found.members, -found.fall)


class FarRows(NamedTuple):
    """Rows of a part that are farthest from their centres, the farthest first: how far, whose, and their cells."""

    apart: np.ndarray
    labels: np.ndarray
    rows: np.ndarray


def finding_far(asked: AskedCentres, count: int) -> Step:
    """The step that gives so many rows of every part which are farthest from their centres."""
    return Step(f"{HERE}:find_far", (asked, count))


def find_far(state: tuple[AskedCentres, int]) -> Callable[[PlacedRows], FarRows]:
    """The rows of a part farthest from their centres."""
    asked, count = state
    return partial(_far, *_begun(asked), count)


def _far(kernel: Any, goal: Goal, count: int, part: PlacedRows) -> FarRows:
    state = _fresh(goal, part)
    kernel.advance(part.rows, state, goal)
    apart = kernel.spread(part.rows, state.labels, goal.centres)
    order = np.argsort(-apart, kind="stable")[:count]
    return FarRows(apart[order], state.labels[order], part.rows[order])


def _begun(asked: AskedCentres) -> tuple[Any, Goal]:
    kernel = import_module(asked.kernel)
    blocks = blocks_of(len(asked.centres), DTYPE) if kernel.BLOCKED else 0
    return kernel, goal_of(asked.centres, DTYPE, np.zeros(len(asked.centres)), np.zeros(blocks), False)


def _fresh(goal: Goal, part: PlacedRows) -> Any:
    return fresh_state(part.n_rows, DTYPE, len(goal.packed), None)
