"""What a search may do with edges, and the scores of families that it meets, each counted once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from math import prod

import numpy as np

from softcount.errors import DataError
from softcount.networks.code_counts import Counting
from softcount.networks.graph import Graph
from softcount.networks.graph_scores import Score, family_score, weight_of_rows
from softcount.records import dataclass

Pair = tuple[int, int]
Parents = tuple[tuple[int, ...], ...]

AT_ONCE = 1 << 22
"""Cells of candidates' tables counted in one pass."""


@dataclass(frozen=True, slots=True)
class EdgeRules:
    """What a graph must keep to: pairs (parent, child), parents of a node, cells of its table."""

    required: frozenset[Pair] = frozenset()
    forbidden: frozenset[Pair] = frozenset()
    max_parents: int | None = None
    max_cells: int = 1 << 20

    def check_pairs(self, count: int) -> None:
        """Refuse pairs that are none of so many nodes, and those that are both required and forbidden."""
        for parent, child in sorted(self.required | self.forbidden):
            if not (0 <= parent < count and 0 <= child < count and parent != child):
                raise DataError(f"the edge from {parent} to {child} is not between two of the nodes 0 to {count - 1}.")
        for parent, child in sorted(self.required & self.forbidden):
            raise DataError(f"the edge from node {parent} to {child} is both required and forbidden.")

    def check_graph(self, graph: Graph, sizes: Sequence[int]) -> None:
        """Refuse a graph that breaks the rules before anything is looked for."""
        for child, own in enumerate(graph.parents):
            for parent in own:
                if (parent, child) in self.forbidden:
                    raise DataError(f"the search starts with the edge from node {parent} to {child}, but forbids it.")
            if self.max_parents is not None and len(own) > self.max_parents:
                raise DataError(f"node {child} starts with {len(own)} parents, but at most {self.max_parents} may be.")
            cells = prod(sizes[node] for node in (*own, child))
            if own and cells > self.max_cells:
                raise DataError(f"the table of node {child} starts with {cells:,} cells, more than {self.max_cells:,}.")


class FamilyScores:
    """Scores of nodes with their parents, each counted once in a search."""

    def __init__(self, counting: Counting, score: Score, rules: EdgeRules) -> None:
        self.counting, self.score, self.rules = counting, score, rules
        # Gains below this are rounding: equal graphs must not chase each other.
        self.tie = 1e-11 * (1 + weight_of_rows(counting))
        self._sizes = np.array(counting.sizes)
        self._allowed = ~np.eye(len(counting.sizes), dtype=bool)
        for pair in rules.forbidden:
            self._allowed[pair] = False
        self._own: dict[tuple[int, tuple[int, ...]], float] = {}
        self._adding: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}

    def of(self, node: int, parents: tuple[int, ...]) -> float:
        """The score of a node with these parents, in rising order."""
        key = node, parents
        if key not in self._own:
            known = self._known(node, parents)
            self._own[key] = family_score(self.counting, self.score, node, parents) if known is None else known
        return self._own[key]

    def _known(self, node: int, parents: tuple[int, ...]) -> float | None:
        """The score, where the last of these parents was once a candidate beside the others."""
        for at, parent in enumerate(parents):
            scores = self._adding.get((node, parents[:at] + parents[at + 1 :]))
            if scores is not None:
                return float(scores[parent])
        return None

    def adding(self, node: int, parents: tuple[int, ...]) -> np.ndarray:
        """For every node, the score with it as one more parent; -inf where that is not allowed."""
        key = node, parents
        if key not in self._adding:
            found = np.full(len(self.counting.sizes), -np.inf)
            for others in self._portions(node, parents):
                found[others] = self._score(node, parents, others)
            self._adding[key] = found
        return self._adding[key]

    def allowed_sets(self, node: int) -> Iterator[tuple[int, ...]]:
        """All sets of parents that the rules allow a node."""
        sizes, rules = self.counting.sizes, self.rules
        required = {parent for parent, child in rules.required if child == node}
        others = np.flatnonzero(self._allowed[:, node]).tolist()
        most = len(others) if rules.max_parents is None else min(rules.max_parents, len(others))
        for parents in chain.from_iterable(combinations(others, length) for length in range(most + 1)):
            cells = prod(sizes[each] for each in (*parents, node))
            if required.issubset(parents) and (not parents or cells <= rules.max_cells):
                yield parents

    def _portions(self, node: int, parents: tuple[int, ...]) -> Iterator[np.ndarray]:
        """Further parents that the rules allow, as many at a time as there is room for."""
        if self.rules.max_parents is not None and len(parents) >= self.rules.max_parents:
            return
        cells = self._sizes * prod(self.counting.sizes[each] for each in (*parents, node))
        allowed = self._allowed[:, node] & (cells <= self.rules.max_cells)
        allowed[list(parents)] = False
        others = np.flatnonzero(allowed)
        portion = np.cumsum(cells[others]) // AT_ONCE
        for number in np.unique(portion):
            yield others[portion == number]

    def _score(self, node: int, parents: tuple[int, ...], others: np.ndarray) -> np.ndarray:
        sizes = self._sizes[others]
        table = self.counting.with_each((*parents, node), others.tolist())
        return self.score.of_tables(table.reshape(-1, self.counting.sizes[node], sizes.sum()), sizes)
