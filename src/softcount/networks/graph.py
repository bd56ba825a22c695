"""Which node depends on which: checked, ordered, and asked about independence."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import cast

from softcount.errors import DataError
from softcount.records import dataclass

Name = Hashable
Edge = tuple[Name, Name]


@dataclass(frozen=True)
class Graph:
    """A directed graph without cycles; `parents[i]` are numbers of nodes, in the order of the axes of its table.

    >>> rain = Graph.of([("Rain", "Wet"), ("Sprinkler", "Wet")])
    >>> rain.names, rain.parents
    (('Rain', 'Wet', 'Sprinkler'), ((), (0, 2), ()))
    >>> rain.separated("Rain", "Sprinkler"), rain.separated("Rain", "Sprinkler", ["Wet"])
    (True, False)
    """

    names: tuple[Name, ...]
    parents: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        self.order  # noqa: B018 - a graph with a cycle has none

    @classmethod
    def of(cls, edges: Iterable[Sequence[Name]], names: Iterable[Name] = ()) -> Graph:
        """From pairs (parent, child), and nodes that may have neither."""
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
        """A node's number."""
        if name not in self.number:
            known = ", ".join(map(str, self.names))
            raise DataError(f"the network has no node {name!r}. It has: {known}.")
        return self.number[name]

    @property
    def edges(self) -> list[Edge]:
        """Pairs (parent, child), child by child."""
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
        """The axes of every node's table: its parents, then itself."""
        return tuple((*own, node) for node, own in enumerate(self.parents))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All nodes, parents before children; of several that may come next, the one given first."""
        left = [len(own) for own in self.parents]
        children = self.children
        ready, found = [node for node, count in enumerate(left) if not count], []
        while ready:
            node = ready.pop(0)
            found.append(node)
            for child in children[node]:
                left[child] -= 1
                if not left[child]:
                    ready.append(child)
        if len(found) < len(self.names):
            raise DataError(f"the edges run in a circle: {' -> '.join(map(str, self._circle()))}.")
        return tuple(found)

    def _circle(self) -> list[Name]:
        """A path that comes back to where it began."""
        try:
            TopologicalSorter(dict(enumerate(self.parents))).prepare()
        except CycleError as error:
            return [self.names[place] for place in error.args[1]]
        return []

    def ancestors(self, nodes: Iterable[int]) -> set[int]:
        """These nodes and all that they depend on."""
        found, ahead = set(), list(nodes)
        while ahead:
            node = ahead.pop()
            if node not in found:
                found.add(node)
                ahead.extend(self.parents[node])
        return found

    def without_arrows_into(self, nodes: Iterable[Name]) -> Graph:
        """The graph after these nodes were set from outside."""
        cut = {self.place(name) for name in nodes}
        return replace(self, parents=tuple(() if node in cut else own for node, own in enumerate(self.parents)))

    def separated(self, a: Name | Iterable[Name], b: Name | Iterable[Name], given: Iterable[Name] = ()) -> bool:
        """Whether the graph alone makes a and b independent once `given` is known (d-separation).

        In the ancestors of all of them, with parents of a child joined and arrows dropped, no path avoids `given`.
        """
        one, other, known = (self._places(each) for each in (a, b, list(given)))
        if one & other:
            return False
        within = self.ancestors(one | other | known)
        near: dict[int, set[int]] = {node: set() for node in within}
        for node in within:
            for left, right in combinations(self.families[node], 2):
                near[left].add(right)
                near[right].add(left)
        ahead, seen = list(one - known), set(one)
        while ahead:
            for node in near[ahead.pop()] - seen - known:
                seen.add(node)
                ahead.append(node)
        return not seen & (other - known)

    def _places(self, names: Name | Iterable[Name]) -> set[int]:
        if isinstance(names, (list, set, frozenset)) or (isinstance(names, tuple) and names not in self.number):
            return {self.place(name) for name in names}
        return {self.place(cast(Name, names))}

    @property
    def skeleton(self) -> set[frozenset[Name]]:
        """Pairs of neighbours, whatever way the arrow points."""
        return {frozenset(edge) for edge in self.edges}

    @property
    def meetings(self) -> set[tuple[frozenset[Name], Name]]:
        """Two parents that are no neighbours, with their child: what data can tell of the direction of arrows."""
        joined = self.skeleton
        return {
            (frozenset(pair), self.names[child])
            for child, own in enumerate(self.parents)
            for pair in combinations([self.names[parent] for parent in own], 2)
            if frozenset(pair) not in joined
        }

    def is_equivalent(self, other: Graph) -> bool:
        """Whether both say the same of what is independent of what."""
        return self.skeleton == other.skeleton and self.meetings == other.meetings


def pair_of(edge: Sequence[Name]) -> Edge:
    """An edge as somebody gave it: two different names."""
    if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
        raise DataError(f"an edge is a pair (parent, child), not {edge!r}.")
    parent, child = edge
    if not isinstance(parent, Hashable) or not isinstance(child, Hashable):
        raise DataError(f"an edge is a pair of names, not {edge!r}.")
    if parent == child:
        raise DataError(f"the edge from {parent!r} to itself is no edge.")
    return parent, child
