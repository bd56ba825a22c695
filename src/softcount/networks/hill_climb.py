"""The graph of the best score, looked for edge by edge: added, dropped, turned, and some regions begun anew."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from softcount.networks.family_scores import FamilyScores, Pair, Parents
from softcount.records import dataclass

ADD, DROP, TURN = 0, 1, 2
REGION, TURNS = 12, 5
"""Up to how many nodes' edges a new beginning forgets, and how many arrows it turns."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to look: moves tried beyond the last gain, moves for which a pair is left alone, and new beginnings.

    Up to `exact` nodes every graph is weighed instead, unless tables are large.
    """

    patience: int = 5
    tabu: int = 10
    restarts: int = 10
    seed: int = 0
    exact: int = 8


def hill_climb(families: FamilyScores, start: Parents, effort: Effort) -> Parents:
    """The best graph that moves of one edge lead to; the same scores and effort give the same."""
    best = _climb(GraphClimb(families, start), effort)
    rng = np.random.default_rng(effort.seed)
    for _ in range(effort.restarts):
        again = GraphClimb(families, best.parents)
        again.forget(rng)
        top = _climb(again, effort)
        # A graph as good is taken too: to wander among equals leads to where something can be gained.
        if top.total > best.total - families.tie:
            best = top
    return best.parents


class GraphClimb:
    """A graph on its way: what every move would gain, and which nodes lead to which.

    Matrices are (parent x child); a move changes the columns of the children it touches, and no others.
    """

    def __init__(self, families: FamilyScores, parents: Parents) -> None:
        count = len(parents)
        self.families = families
        self.parents = parents
        self.edges = np.zeros((count, count), dtype=bool)
        self.leads = np.zeros((count, count), dtype=bool)
        self.adding = np.full((count, count), -np.inf)
        self.dropping = np.full((count, count), -np.inf)
        self.own = np.zeros(count)
        for child, own in enumerate(parents):
            for parent in own:
                self._join(parent, child)
        for child in range(count):
            self._refresh(child)

    @property
    def total(self) -> float:
        return float(self.own.sum())

    def _refresh(self, child: int) -> None:
        own = tuple(np.flatnonzero(self.edges[:, child]).tolist())
        self.parents = (*self.parents[:child], own, *self.parents[child + 1 :])
        self.own[child] = self.families.of(child, own)
        self.adding[:, child] = self.families.adding(child, own) - self.own[child]
        self.dropping[:, child] = -np.inf
        for parent in own:
            if (parent, child) not in self.families.rules.required:
                fewer = tuple(each for each in own if each != parent)
                self.dropping[parent, child] = self.families.of(child, fewer) - self.own[child]

    def gains(self) -> np.ndarray:
        """What every move gains, (add, drop, turn) x parent x child; -inf where there is no such move.

        A turn may still close a circle: `is_legal` knows.
        """
        adds = np.where(self.leads.T, -np.inf, self.adding)
        return np.stack([adds, self.dropping, self.dropping + self.adding.T])

    def is_legal(self, kind: int, parent: int, child: int) -> bool:
        """Whether a move that `gains` offers leaves no circle: another way from parent to child forbids a turn."""
        return kind != TURN or not self.leads[self.edges[parent], child].any()

    def move(self, kind: int, parent: int, child: int) -> None:
        """Add, drop or turn an edge."""
        if kind != ADD:
            self._part(parent, child)
        if kind == TURN:
            self._join(child, parent)
            self._refresh(parent)
        if kind == ADD:
            self._join(parent, child)
        self._refresh(child)

    def _join(self, parent: int, child: int) -> None:
        self.edges[parent, child] = True
        above, below = self.leads[:, parent].copy(), self.leads[child].copy()
        above[parent] = below[child] = True
        self.leads |= above[:, None] & below

    def _part(self, parent: int, child: int) -> None:
        """Only what leads to the parent can lead to less now; who leads to fewest comes first."""
        self.edges[parent, child] = False
        above = np.flatnonzero(self.leads[:, parent]).tolist()
        reach = self.leads.sum(axis=1)
        for node in [parent, *sorted(above, key=lambda each: int(reach[each]))]:
            self.leads[node] = self.edges[node] | self.leads[self.edges[node]].any(axis=0)

    def forget(self, rng: np.random.Generator) -> None:
        """Drop the edges among some neighbours, and turn some that it costs nothing to turn.

        Arrows that were set wrongly early on hold each other in place. On 20,000 rows of alarm 30 such regions came to
        a BIC of -211,602 to -211,672 in most runs; 40 times eleven random moves came to -212,810.
        """
        region = self._region(rng)
        for parent, child in np.argwhere(np.isfinite(self.dropping)).tolist():
            if parent in region and child in region:
                self.move(DROP, parent, child)
        for _ in range(TURNS):
            pairs = [pair for pair in np.argwhere(np.isfinite(self.gains()[TURN])).tolist() if self._is_covered(*pair)]
            if pairs:
                self.move(TURN, *pairs[rng.integers(len(pairs))])

    def _region(self, rng: np.random.Generator) -> set[int]:
        """Nodes that hang together, around a random one."""
        near = self.edges | self.edges.T
        region = {int(rng.integers(len(near)))}
        size = min(REGION, max(2, len(near) // 2))
        while len(region) < size:
            border = sorted({*np.flatnonzero(near[list(region)].any(axis=0)).tolist()} - region)
            if not border:
                break
            region.add(border[rng.integers(len(border))])
        return region

    def _is_covered(self, parent: int, child: int) -> bool:
        """Whether both have the same other parents: the arrow can be turned, and nothing else changes."""
        return int((self.edges[:, parent] ^ self.edges[:, child]).sum()) == 1


@dataclass(slots=True)
class Tabu:
    """Pairs of nodes that were moved a short while ago."""

    length: int
    recent: list[Pair] = field(default_factory=list)

    def add(self, parent: int, child: int) -> None:
        self.recent = [*self.recent, (parent, child)][-self.length :] if self.length else []

    def mask(self, gains: np.ndarray, needed: float) -> None:
        """Leave out moves of such pairs, unless they gain more than is needed for a new best."""
        if self.recent:
            a, b = np.array(self.recent).T
            pairs = slice(None), np.concatenate([a, b]), np.concatenate([b, a])
            gains[pairs] = np.where(gains[pairs] > needed, gains[pairs], -np.inf)


@dataclass(frozen=True, slots=True)
class Top:
    """The best graph of one climb."""

    parents: Parents
    total: float


def _climb(climb: GraphClimb, effort: Effort) -> Top:
    """The best graph met: the best move is made, also downhill, until patience ends."""
    tie = climb.families.tie
    best, since, tabu = Top(climb.parents, climb.total), 0, Tabu(effort.tabu)
    while since <= effort.patience:
        gains = climb.gains()
        tabu.mask(gains, best.total - climb.total + tie)
        move = best_move(climb, gains, tie)
        if move is None:
            break
        climb.move(*move)
        tabu.add(*move[1:])
        since += 1
        if climb.total > best.total + tie:
            best, since = Top(climb.parents, climb.total), 0
    return best


def best_move(climb: GraphClimb, gains: np.ndarray, tie: float) -> tuple[int, int, int] | None:
    """The legal move of the largest gain; of those that gain the same, the first."""
    while (top := gains.max(initial=-np.inf)) > -np.inf:
        kind, parent, child = map(int, np.unravel_index(int(np.argmax(gains >= top - tie)), gains.shape))
        if climb.is_legal(kind, parent, child):
            return kind, parent, child
        gains[kind, parent, child] = -np.inf
    return None
