"""Cliques of nodes in a tree, such that every table lies within one: what exact answers are computed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from math import prod
from typing import NamedTuple

from softcount.errors import DataError
from softcount.networks.elimination import ROOM, Scope, eliminate
from softcount.records import dataclass

Index = tuple[slice | None, ...]


class Side(Enum):
    """Whether a scope lies among the nodes that its clique has for itself, among the others, or on both sides."""

    OWN = 0
    REST = 1
    BOTH = 2


class Place(NamedTuple):
    """Where a scope lies: its clique and side, the order of its axes there (lanes last), the index along the side."""

    clique: int
    side: Side
    turn: tuple[int, ...]
    along: Index


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, each after the one above it; a node's cliques hang together. There may be several trees.

    The axes of a clique are the nodes that no other clique has, then others that are not in the clique above, then
    those that it shares with that one, in the order they have there.

    >>> tree = JunctionTree.build([2, 2, 3], [(0,), (0, 1), (1, 2)])
    >>> tree.cliques, tree.above, tree.own, tree.shared, tree.cells
    (((2, 1), (0, 1)), (-1, 0), (1, 1), (0, 1), 10)
    """

    sizes: tuple[int, ...]
    scopes: tuple[Scope, ...]
    cliques: tuple[Scope, ...]
    above: tuple[int, ...]
    own: tuple[int, ...]
    shared: tuple[int, ...]
    homes: tuple[int, ...]
    """The clique of each scope; -1 where the scope is empty."""

    @classmethod
    def build(
        cls,
        sizes: Sequence[int],
        scopes: Sequence[Scope],
        room: int = ROOM,
        names: Sequence[Hashable] = (),
        root: Scope = (),
    ) -> JunctionTree:
        """Every scope lies within a clique; that of `root` is on top, so that asking it needs one pass.

        More than `room` cells are refused with a ResourceError that names the nodes, before anything is allocated.
        """
        sizes, scopes = tuple(map(int, sizes)), tuple(scopes)
        found = eliminate(sizes, [*scopes, root] if root else scopes, room, names)
        cliques, above, clique_of = found.cliques()
        place = {node: at for at, node in enumerate(found.order)}
        within = [clique_of[min(scope, key=place.__getitem__)] if scope else -1 for scope in (*scopes, root)]
        order, upper = _hang(above, within[-1])
        times = Counter(node for clique in cliques for node in clique)
        axes: list[Scope] = []
        own: list[int] = []
        shared: list[int] = []
        for old, over in zip(order, upper, strict=True):
            common = [node for node in axes[over] if node in cliques[old]] if over >= 0 else []
            rest = sorted(set(cliques[old]).difference(common), key=lambda node: (times[node] > 1, node))
            own.append(sum(times[node] == 1 for node in rest))
            shared.append(len(common))
            axes.append((*rest, *common))
        number = {-1: -1} | {old: new for new, old in enumerate(order)}
        homes = tuple(number[old] for old in within[:-1])
        return cls(sizes, scopes, tuple(axes), tuple(upper), tuple(own), tuple(shared), homes)

    @cached_property
    def cells(self) -> int:
        """Numbers that one row needs."""
        return sum(map(prod, self.shapes))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(self.sizes[node] for node in clique) for clique in self.cliques)

    @cached_property
    def rests(self) -> tuple[tuple[int, ...], ...]:
        """For each clique, the levels of the nodes that other cliques have too."""
        return tuple(shape[own:] for shape, own in zip(self.shapes, self.own, strict=True))

    @cached_property
    def borders(self) -> tuple[tuple[int, ...], ...]:
        """For each clique, the levels of the nodes it shares with the one above."""
        return tuple(shape[len(shape) - common :] for shape, common in zip(self.shapes, self.shared, strict=True))

    @cached_property
    def tops(self) -> Mapping[int, int]:
        """For each node the clique where it ends."""
        return {
            node: number
            for number, (clique, common) in enumerate(zip(self.cliques, self.shared, strict=True))
            for node in clique[: len(clique) - common]
        }

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.cliques]
        for number, over in enumerate(self.above):
            if over >= 0:
                found[over].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def upward(self) -> tuple[Index, ...]:
        """The index that lays the message of each clique along the rest of the one above."""
        return tuple(
            _along(clique[len(clique) - common :], self.cliques[over][self.own[over] :]) if over >= 0 else ()
            for clique, common, over in zip(self.cliques, self.shared, self.above, strict=True)
        )

    @cached_property
    def summed(self) -> tuple[tuple[int, ...], ...]:
        """For each clique, the axes of the rest of the one above that it does not share."""
        return tuple(tuple(axis for axis, kept in enumerate(index) if kept is None) for index in self.upward)

    @cached_property
    def _places(self) -> dict[Scope, Place]:
        return {}

    def place(self, scope: Scope) -> Place:
        """Where these nodes lie, which must be within one clique."""
        if scope not in self._places:
            home = self._home(scope)
            nodes, own = self.cliques[home], self.own[home]
            side = Side.BOTH
            if set(scope).issubset(nodes[:own]):
                side, nodes = Side.OWN, nodes[:own]
            elif set(scope).issubset(nodes[own:]):
                side, nodes = Side.REST, nodes[own:]
            turn = tuple(scope.index(node) for node in nodes if node in scope)
            self._places[scope] = Place(home, side, (*turn, len(scope)), _along(scope, nodes))
        return self._places[scope]

    def _home(self, scope: Scope) -> int:
        if len(scope) == 1 and scope[0] in self.tops:
            return self.tops[scope[0]]
        if scope in self._scope_homes:
            return self._scope_homes[scope]
        nodes = set(scope)
        for number, clique in enumerate(self.cliques):
            if nodes.issubset(clique):
                return number
        raise DataError(f"no clique of the tree holds the nodes {scope}: give them as a scope when it is built.")

    @cached_property
    def _scope_homes(self) -> dict[Scope, int]:
        return dict(zip(self.scopes, self.homes, strict=True))

    def path(self, cliques: Sequence[int]) -> list[int]:
        """These cliques and all above them, in order."""
        found: set[int] = set()
        for number in cliques:
            while number >= 0 and number not in found:
                found.add(number)
                number = self.above[number]
        return sorted(found)


def _along(scope: Scope, nodes: Scope) -> Index:
    return (*(slice(None) if node in scope else None for node in nodes), slice(None))


def _hang(above: list[int], root: int) -> tuple[list[int], list[int]]:
    """The same trees hung from `root`: old numbers in their new order, and for each the new number above."""
    near: list[list[int]] = [[] for _ in above]
    for number, over in enumerate(above):
        if over >= 0:
            near[number].append(over)
            near[over].append(number)
    order: list[int] = []
    upper: list[int] = []
    seen = [False] * len(above)
    for start in ([root] if root >= 0 else []) + [number for number, over in enumerate(above) if over < 0]:
        ahead = [] if seen[start] else [(start, -1)]
        while ahead:
            number, over = ahead.pop()
            seen[number] = True
            ahead.extend((other, len(order)) for other in reversed(near[number]) if not seen[other])
            order.append(number)
            upper.append(over)
    return order, upper
