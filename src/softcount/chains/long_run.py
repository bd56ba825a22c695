"""What a chain does in the long run: where it stays, how soon it gets somewhere, whether it gets everywhere."""

from __future__ import annotations

from math import gcd

import numpy as np
from scipy import linalg
from scipy.sparse.csgraph import breadth_first_order, connected_components

from softcount.errors import DataError
from softcount.numerics.late_scipy import sparse
from softcount.records import dataclass


@dataclass(frozen=True)
class ChainShape:
    """Which states of a chain reach each other: `classes[i]` is the class of state i, `closed` those never left.

    `period` is the greatest common divisor of the lengths of all ways back to a state, 1 for a chain that is not
    periodic; of a chain with several closed classes it is that of the first.
    """

    classes: np.ndarray
    closed: tuple[int, ...]
    period: int

    @property
    def irreducible(self) -> bool:
        """Whether every state is reached from every other."""
        return int(self.classes.max(initial=0)) == 0

    def described(self) -> str:
        """One line: whether every state reaches every other, and whether it does so in step."""
        if not self.irreducible:
            number = int(self.classes.max()) + 1
            ends = "1 of them is" if len(self.closed) == 1 else f"{len(self.closed)} of them are"
            return f"not irreducible: its states fall into {number} classes, and {ends} never left"
        return "irreducible, " + ("aperiodic" if self.period == 1 else f"periodic with period {self.period}")


def shape_of(possible: np.ndarray) -> ChainShape:
    """The shape of a chain from which of its transitions are possible, (before x after).

    >>> shape_of(np.array([[0, 1], [1, 0]], dtype=bool)).described()
    'irreducible, periodic with period 2'
    """
    graph = sparse.csr_matrix(possible)
    number, classes = connected_components(graph, directed=True, connection="strong")
    before, after = graph.nonzero()
    left = set(classes[before[classes[before] != classes[after]]].tolist())
    closed = tuple(place for place in range(number) if place not in left)
    inside = np.flatnonzero(classes == closed[0])
    return ChainShape(classes, closed, _period(graph[inside][:, inside]))


def _period(graph: sparse.csr_matrix) -> int:
    """Of one class: the divisor of how much longer a way round is than the shortest way there."""
    order, parents = breadth_first_order(graph, 0, directed=True)
    depth = np.zeros(graph.shape[0], dtype=np.int64)
    for state in order[1:]:
        depth[state] = depth[parents[state]] + 1
    before, after = graph.nonzero()
    period = 0
    for more in np.unique(np.abs(depth[before] + 1 - depth[after])).tolist():
        period = gcd(period, more)
    return max(period, 1)


def stationary(transitions: np.ndarray) -> np.ndarray:
    """The shares of time in each state that the transitions leave as they are; they must be the only such.

    >>> stationary(np.array([[0.9, 0.1], [0.5, 0.5]])).round(6).tolist()
    [0.833333, 0.166667]
    """
    shape = shape_of(transitions > 0)
    if len(shape.closed) > 1:
        raise DataError(
            f"the chain has {len(shape.closed)} sets of states that it never leaves, so where it stays depends on "
            "where it starts. A prior above 0 joins them."
        )
    inside = np.flatnonzero(shape.classes == shape.closed[0])
    own = transitions[np.ix_(inside, inside)]
    # One equation says the same as the others together; in its place the shares sum to one.
    system = np.eye(len(inside)) - own.T
    system[-1] = 1.0
    right = np.zeros(len(inside))
    right[-1] = 1.0
    out = np.zeros(len(transitions))
    out[inside] = np.maximum(linalg.solve(system, right), 0.0)
    return np.asarray(out / out.sum())


def hitting_times(transitions: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Expected steps until the first of the target states, from each state; 0 there, infinite where it may never be.

    >>> hitting_times(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([False, True])).tolist()
    [2.0, 0.0]
    """
    graph = sparse.csr_matrix(transitions > 0)
    surely = ~_reaching(graph, _never(graph, target), ~target)
    out = np.where(target, 0.0, np.inf)
    rows = np.flatnonzero(surely & ~target)
    if len(rows):
        own = transitions[np.ix_(rows, rows)]
        out[rows] = linalg.solve(np.eye(len(rows)) - own, np.ones(len(rows)))
    return out


def _never(graph: sparse.csr_matrix, target: np.ndarray) -> np.ndarray:
    """States from which the target cannot be reached."""
    return ~_reaching(graph, target, np.ones(len(target), dtype=bool))


def _reaching(graph: sparse.csr_matrix, goal: np.ndarray, through: np.ndarray) -> np.ndarray:
    """States from which a goal may be reached by states that one may go through."""
    found = goal.copy()
    while True:
        more = (found | ((graph @ found.astype(np.int64) > 0) & through)).astype(bool)
        if (more == found).all():
            return found
        found = more


def run_lengths(transitions: np.ndarray) -> np.ndarray:
    """Expected length of a run of each state, once it is entered; infinite for one that is never left."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (1.0 - np.diagonal(transitions)))
