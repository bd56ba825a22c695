"""Directed acyclic graphs and discrete Bayesian networks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import cast

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr

from softcount.errors import DataError

Name = Hashable
Edge = tuple[Name, Name]


class Graph(Struct, frozen=True, dict=True):
    """A directed acyclic graph. `parents[i]` are the parents of node i, in the order of the axes of its table.

    >>> rain = Graph.of([("Rain", "Wet"), ("Sprinkler", "Wet")])
    >>> rain.names, rain.parents
    (('Rain', 'Wet', 'Sprinkler'), ((), (0, 2), ()))
    >>> rain.is_separated("Rain", "Sprinkler"), rain.is_separated("Rain", "Sprinkler", ["Wet"])
    (True, False)
    """

    names: tuple[Name, ...]
    parents: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        self.order  # noqa: B018 - raises DataError if the graph has a cycle

    @classmethod
    def of(cls, edges: Iterable[Sequence[Name]], names: Iterable[Name] = ()) -> Graph:
        """Build a graph from pairs (parent, child). `names` may add nodes without edges."""
        found: dict[Name, list[Name]] = {name: [] for name in names}
        for edge in edges:
            parent, child = pair_of(edge)
            for name in (parent, child):
                found.setdefault(name, [])
            if parent in found[child]:
                raise DataError(f"the edge from {parent!r} to {child!r} is given twice.")
            found[child].append(parent)
        number = {name: place for place, name in enumerate(found)}
        return cls(tuple(found), tuple(tuple(number[name] for name in own) for own in found.values()))

    @cached_property
    def number(self) -> Mapping[Name, int]:
        return {name: place for place, name in enumerate(self.names)}

    def place(self, name: Name) -> int:
        if name not in self.number:
            known = ", ".join(map(str, self.names))
            raise DataError(f"the network has no node {name!r}. It has: {known}.")
        return self.number[name]

    @property
    def edges(self) -> list[Edge]:
        """Pairs (parent, child), sorted by child."""
        return [(self.names[p], self.names[c]) for c, own in enumerate(self.parents) for p in own]

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.names]
        for child, own in enumerate(self.parents):
            for parent in own:
                found[parent].append(child)
        return tuple(map(tuple, found))

    @cached_property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """The axes of every node's table: its parents, then the node itself."""
        return tuple((*own, node) for node, own in enumerate(self.parents))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All nodes in topological order, parents before children. Raise DataError if the graph has a cycle."""
        sorter = TopologicalSorter(dict.fromkeys(range(len(self.names)), ()))
        for node, own in enumerate(self.parents):
            sorter.add(node, *own)
        try:
            return tuple(sorter.static_order())
        except CycleError as error:
            circle = " -> ".join(str(self.names[place]) for place in error.args[1])
            raise DataError(f"the edges form a cycle: {circle}.") from None

    def ancestors(self, nodes: Iterable[int]) -> set[int]:
        """Return these nodes and all their ancestors."""
        return reach(self.parents, nodes)

    def is_separated(self, a: Name | Iterable[Name], b: Name | Iterable[Name], given: Iterable[Name] = ()) -> bool:
        """Return whether the graph implies that a and b are independent given `given` (d-separation).

        The test moralises the graph of the ancestors of all these nodes. It then looks for a path from a to b that
        avoids `given`.
        """
        one, other, known = (
            {self.place(name) for name in each}
            if isinstance(each, (list, set, frozenset)) or (isinstance(each, tuple) and each not in self.number)
            else {self.place(cast(Name, each))}
            for each in (a, b, list(given))
        )
        if one & other:
            return False
        within = self.ancestors(one | other | known)
        near: dict[int, set[int]] = {node: set() for node in within}
        for node in within:
            for left, right in combinations(self.families[node], 2):
                near[left].add(right)
                near[right].add(left)
        unblocked = {node: others - known for node, others in near.items()}
        return not reach(unblocked, one - known) & (other - known)

    @property
    def skeleton(self) -> set[frozenset[Name]]:
        """Pairs of adjacent nodes, without direction."""
        return {frozenset(edge) for edge in self.edges}

    @property
    def meetings(self) -> set[tuple[frozenset[Name], Name]]:
        """V-structures: two parents that are not adjacent, and their child."""
        joined = self.skeleton
        return {
            (frozenset(pair), self.names[child])
            for child, own in enumerate(self.parents)
            for pair in combinations([self.names[parent] for parent in own], 2)
            if frozenset(pair) not in joined
        }

    def is_equivalent(self, other: Graph) -> bool:
        """Return whether both graphs imply the same independences (Markov equivalence)."""
        return self.skeleton == other.skeleton and self.meetings == other.meetings


def reach(near: Sequence[Iterable[int]] | Mapping[int, Iterable[int]], start: Iterable[int]) -> set[int]:
    """Return these nodes and all that steps lead to; `near` holds the next nodes of each."""
    found, ahead = set[int](), list(start)
    while ahead:
        node = ahead.pop()
        if node not in found:
            found.add(node)
            ahead.extend(near[node])
    return found


def pair_of(edge: Sequence[Name]) -> Edge:
    if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
        raise DataError(f"an edge is a pair (parent, child), not {edge!r}.")
    parent, child = edge
    if not isinstance(parent, Hashable) or not isinstance(child, Hashable):
        raise DataError(f"an edge is a pair of names, not {edge!r}.")
    if parent == child:
        raise DataError(f"the edge from {parent!r} to itself is not an edge.")
    return parent, child


# A network of discrete nodes: a graph, the levels of its nodes, and a table of probabilities for each node.

CLOSE_TO_ONE = 1e-6
"""Maximum difference from 1 of the sum of a row of probabilities."""

ROUNDED = 1e-12
"""Sums within this distance of 1 are not normalised, so that a table written and read again is bit-for-bit identical.
"""

MOST_AXES = 64
"""Maximum number of axes of an array: a node and 63 parents."""


class Network(Struct, frozen=True, eq=False, dict=True):
    """A graph, the levels of each node as strings, and the probabilities of each node's levels given its parents.

    Rows that sum to 1 up to rounding are divided by their sums. Tables are read-only.

    >>> wet = Network(Graph.of([("Rain", "Wet")]), [("no", "yes"), ("no", "yes")], [[0.8, 0.2], [[1, 0], [0.1, 0.9]]])
    >>> wet.sizes, wet.n_parameters
    ((2, 2), 3)
    """

    graph: Graph
    levels: Sequence[Sequence[str]]
    tables: Sequence[np.ndarray]

    def __post_init__(self) -> None:
        names = self.graph.names
        for what, given in (("levels", self.levels), ("tables", self.tables)):
            if len(given) != len(names):
                raise DataError(f"the network has {len(names)} nodes, but {what} are given for {len(given)}.")
        for name, levels in zip(names, self.levels, strict=True):
            if isinstance(levels, str) or not len(levels) or not all(isinstance(level, str) for level in levels):
                raise DataError(f"the levels of node {name!r} are a list of texts, at least one, not {levels!r}.")
            if len(set(levels)) < len(levels):
                raise DataError(f"two levels of node {name!r} have the same name: {', '.join(map(repr, levels))}.")
        force_setattr(self, "levels", tuple(map(tuple, self.levels)))
        tables = tuple(self._checked_table(node, table) for node, table in enumerate(self.tables))
        force_setattr(self, "tables", tables)

    def _checked_table(self, node: int, table: object) -> np.ndarray:
        name, family = self.graph.names[node], self.graph.families[node]
        if len(family) > MOST_AXES:
            raise DataError(f"node {name!r} has {len(family) - 1} parents; a table can have {MOST_AXES - 1} at most.")
        try:
            found = np.array(table, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"the table of node {name!r} is not an array of numbers.") from None
        shape = tuple(self.sizes[place] for place in family)
        if found.shape != shape:
            raise DataError(f"the table of node {name!r} has the shape {found.shape}; its parents make it {shape}.")
        rows = found.reshape(-1, shape[-1])
        if complaint := find_bad_row(rows, CLOSE_TO_ONE):
            parents = self.graph.parents[node]
            names = [self.graph.names[parent] for parent in parents]
            given = describe_configuration(names, [self.levels[parent] for parent in parents], complaint[0])
            raise DataError(f"the table of node {name!r}{given} {complaint[1]}.")
        found = normalise_rows(rows).reshape(shape)
        found.flags.writeable = False
        return found

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self.levels))

    @property
    def n_parameters(self) -> int:
        """Number of free probabilities: the number of levels minus one, for every parent configuration."""
        return sum(table.size // size * (size - 1) for table, size in zip(self.tables, self.sizes, strict=True))

    def text_names(self) -> tuple[str, ...]:
        """Return the names of the nodes as strings. Raise DataError if two of them are equal."""
        names = tuple(map(str, self.graph.names))
        if len(set(names)) < len(names):
            raise DataError("two nodes have names that are the same as text. Give them different ones.")
        return names


def distinct_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of each distinct row and, for every row, its number among the distinct rows.

    The order of the distinct rows depends only on their values. Rows are compared by hash, and by value only after a
    collision of hashes.
    """
    _, first, again = np.unique(_hash_rows(matrix), return_index=True, return_inverse=True)
    if not np.array_equal(matrix[first[again]], matrix):
        _, first, again = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    return first, again.reshape(-1)


def _hash_rows(matrix: np.ndarray) -> np.ndarray:
    factors = np.random.default_rng(1).integers(0, 2**64, (matrix.shape[1],), dtype=np.uint64)
    found = np.zeros(len(matrix), dtype=np.uint64)
    for column, factor in zip(matrix.T, factors | np.uint64(1), strict=True):
        found += (column.astype(np.int64) + 1).astype(np.uint64) * factor
    return found


def describe_configuration(names: Sequence[Name], levels: Sequence[Sequence[str]], configuration: int) -> str:
    """Describe a configuration of a node's parents; the text follows the node's name in an error message.

    >>> describe_configuration(["Rain", "Wind"], [("no", "yes"), ("none", "some", "much")], 4)
    " where Rain = 'yes', Wind = 'some'"
    """
    parts = []
    for name, own in zip(reversed(names), reversed(levels), strict=True):
        configuration, level = divmod(configuration, len(own))
        parts.append(f"{name} = {own[level]!r}")
    return f" where {', '.join(reversed(parts))}" if parts else ""


def find_bad_row(rows: np.ndarray, tolerance: float) -> tuple[int, str] | None:
    """Return the first row that is not a probability distribution and a description of the problem, or None."""
    wrong = ~(rows >= 0).all(axis=1) | (rows > 1 + tolerance).any(axis=1)
    sums = np.where(wrong, np.nan, 1.0)
    sums[~wrong] = rows[~wrong].sum(axis=1)
    bad = np.flatnonzero(~(np.abs(sums - 1) <= tolerance))
    if not len(bad):
        return None
    place = int(bad[0])
    if not math.isnan(sums[place]):
        return place, f"sums to {sums[place]:.9g} instead of 1"
    value = next(float(value) for value in rows[place] if not 0 <= value <= 1 + tolerance)
    return place, f"holds {value:.9g}, which is not a probability"


def normalise_rows(rows: np.ndarray) -> np.ndarray:
    """Divide rows by their sums, unless these are 1 up to rounding."""
    sums = rows.sum(axis=1, keepdims=True)
    return np.where(np.abs(sums - 1) > ROUNDED, rows / sums, rows)
