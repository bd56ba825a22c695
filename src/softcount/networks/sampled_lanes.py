"""Many samples of a network side by side, a lane for each: drawn from parents to children, or node by node (Gibbs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from softcount.networks.elimination import Scope
from softcount.networks.flat_tables import FlatTables
from softcount.networks.graph import Graph
from softcount.records import dataclass

Factors = Mapping[Scope, np.ndarray]


@dataclass(frozen=True)
class SampledLanes:
    """A network, and what is known in every lane: codes (lanes x nodes, -1 where a lane is to be sampled) and factors.

    `likelihoods` are of single nodes and the same for all lanes; `by_lane` are logarithms (lanes x cells) by scope.
    """

    graph: Graph
    tables: Sequence[np.ndarray]
    codes: np.ndarray
    likelihoods: Mapping[int, np.ndarray] = field(default_factory=dict)
    by_lane: Factors = field(default_factory=dict)

    @cached_property
    def sizes(self) -> list[int]:
        return [table.shape[-1] for table in self.tables]

    @cached_property
    def scopes(self) -> list[Scope]:
        return [*self.graph.families, *((node,) for node in self.likelihoods), *self.by_lane]

    @cached_property
    def flat(self) -> FlatTables:
        shared = len(self.scopes) - len(self.by_lane)
        return FlatTables.of(self.sizes, self.scopes[:shared], self.scopes[shared:], len(self.codes))

    @cached_property
    def logs(self) -> np.ndarray:
        shared = np.concatenate([np.ravel(each) for each in [*self.tables, *self.likelihoods.values()]])
        with np.errstate(divide="ignore"):
            return np.concatenate([np.log(shared), *map(np.ravel, self.by_lane.values())])

    @cached_property
    def touching(self) -> list[list[int]]:
        """The scopes with each node."""
        found: list[list[int]] = [[] for _ in self.sizes]
        for number, scope in enumerate(self.scopes):
            for node in scope:
                found[node].append(number)
        return found

    @cached_property
    def completed(self) -> list[list[int]]:
        """The scopes whose other nodes have all come when a node's turn is there, parents before children."""
        place = {node: at for at, node in enumerate(self.graph.order)}
        return [
            [number for number in self.touching[node] if max(self.scopes[number], key=place.__getitem__) == node]
            for node in range(len(self.sizes))
        ]

    def scores(self, states: np.ndarray, lanes: np.ndarray, node: int, scopes: list[int]) -> np.ndarray:
        """What some scopes say of all levels of a node, lanes x levels, as logarithms."""
        found = np.zeros((len(lanes), self.sizes[node]))
        for number in scopes:
            stride = self.flat.strides[number, self.scopes[number].index(node)]
            cells = self.flat.cells_at(states, lanes, np.full(len(lanes), number))
            first = cells - np.maximum(states[lanes, node], 0) * stride
            found += self.logs[first[:, None] + np.arange(self.sizes[node]) * stride]
        return found

    def forward(self, rng: np.random.Generator, nodes: set[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """States drawn from parents to children, what is known held fast; and the logarithm of each lane's weight.

        A node with a likelihood is drawn by it as well, so only what its parents made of it is left to weigh.
        """
        states, weights = self.codes.copy(), np.zeros(len(self.codes))
        lanes = np.arange(len(states))
        for node in self.graph.order:
            if nodes is not None and node not in nodes:
                continue
            scores = self.scores(states, lanes, node, self.completed[node])
            known = self.codes[:, node]
            scores[(known[:, None] >= 0) & (known[:, None] != np.arange(self.sizes[node]))] = -np.inf
            drawn, log = draw_levels(scores, rng)
            states[:, node] = np.where(known >= 0, known, drawn)
            weights += log
        return states, weights

    def sweep(self, states: np.ndarray, rng: np.random.Generator) -> None:
        """Draw every unseen node once more, given all others, in place."""
        for node in self.graph.order:
            lanes = np.flatnonzero(self.codes[:, node] < 0)
            if len(lanes) and self.sizes[node] > 1:
                states[lanes, node] = draw_levels(self.scores(states, lanes, node, self.touching[node]), rng)[0]

    def start(self, rng: np.random.Generator, tries: int) -> tuple[np.ndarray, np.ndarray]:
        """A state for each lane out of several drawn forward, by their weights; and the log of the mean weight."""
        states, weights = self.forward(rng)
        for _ in range(tries - 1):
            others, more = self.forward(rng)
            weights = np.logaddexp(weights, more)
            with np.errstate(invalid="ignore"):  # -inf - -inf: no state could be so far, and none is taken
                taken = np.log(rng.random(len(states))) < more - weights
            states[taken] = others[taken]
        return states, weights - np.log(tries)


def draw_levels(scores: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A level for every lane by the exponentials of its scores; and the logarithm of their sum.

    A level of -inf is never drawn, but where all are.
    """
    top = scores.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    totals = np.exp(scores - top).cumsum(axis=1)
    # Against the total itself, so that rounding cannot lead beyond the last level that can be.
    drawn = (totals[:, :-1] <= rng.random((len(scores), 1)) * totals[:, -1:]).sum(axis=1)
    with np.errstate(divide="ignore"):
        return drawn, np.log(totals[:, -1]) + top[:, 0]
