"""Where the nodes of a graph are drawn: in layers, every edge pointing down, with few crossings, the same every time.

A node stands below all its parents. An edge that spans several layers bends in each one between. Within a layer nodes
are put near the middle of their neighbours, above and below by turns, while edges cross less; their places are then
those nearest to their neighbours' that leave room between them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import NamedTuple

from msgspec import Struct

from softcount.networks.network import Graph

SWEEPS = 12
"""Passes down and up in search of fewer crossings; four times as many take less than a tenth off published networks."""

MOST_STARTS = 12
STARTED = 1200
"""Small drawings are begun several times, from mixed orders: so many starts, or as many as make so many items."""

SWAPPED = 600
"""In larger drawings neighbours are not swapped one by one: it takes too long and shows too little."""

STRAIGHT = 8.0
"""How much more a bend counts than a node, so that long edges run straight."""

Layers = list[list[int]]


class Route(NamedTuple):
    """An edge, by the numbers of its nodes, and where it passes the layers between: (x, layer)."""

    parent: int
    child: int
    bends: tuple[tuple[float, int], ...]


class GraphLayout(Struct, frozen=True):
    """The middle and the layer of each node, the ways of the edges, and how often these cross."""

    x: tuple[float, ...]
    layer: tuple[int, ...]
    routes: tuple[Route, ...]
    width: float
    layers: int
    crossings: int


def lay_out(graph: Graph, widths: Sequence[float], gap: float) -> GraphLayout:
    """The graph's layout, for nodes of these widths with a gap between them.

    >>> found = lay_out(Graph.of([("a", "b"), ("b", "c"), ("a", "c")]), [10, 10, 10], 5)
    >>> found.layer, found.crossings
    ((0, 1, 2), 0)
    """
    mesh = _Mesh(graph)
    mesh.order()
    x = _place(mesh, widths, gap)
    for row, nodes in enumerate(_row_unconnected(graph, mesh.layers), len(mesh.layers)):
        x.update(zip(nodes, _pack(nodes, widths, gap), strict=True))
        mesh.layer.update(dict.fromkeys(nodes, row))
    half = {item: _half(item, widths) for item in x}
    left = min((place - half[item] for item, place in x.items()), default=0.0)
    x = {item: place - left for item, place in x.items()}
    bends = [tuple((x[item], mesh.layer[item]) for item in chain) for chain in mesh.chains]
    return GraphLayout(
        tuple(x[node] for node in range(len(widths))),
        tuple(mesh.layer[node] for node in range(len(widths))),
        tuple(Route(*edge, bend) for edge, bend in zip(mesh.edges, bends, strict=True)),
        max((place + half[item] for item, place in x.items()), default=0.0),
        1 + max(mesh.layer.values(), default=-1),
        mesh.crossings(),
    )


def _number_layers(graph: Graph) -> list[int]:
    """Longest paths from the top; then nodes with more children than parents go down as far as those allow."""
    found = [0] * len(graph.names)
    for node in graph.order:
        found[node] = max((found[parent] + 1 for parent in graph.parents[node]), default=0)
    for node in reversed(graph.order):
        if len(graph.children[node]) > len(graph.parents[node]):
            found[node] = min(found[child] for child in graph.children[node]) - 1
    return found


@dataclass
class _Mesh:
    """Nodes that have edges, and the bends of long edges, in layers; every edge joins two layers that touch."""

    graph: Graph
    layers: Layers = field(default_factory=list)
    layer: dict[int, int] = field(default_factory=dict)
    above: dict[int, list[int]] = field(default_factory=dict)
    below: dict[int, list[int]] = field(default_factory=dict)
    edges: list[tuple[int, int]] = field(default_factory=list)
    chains: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        numbers = _number_layers(self.graph)
        for node, number in enumerate(numbers):
            if self.graph.parents[node] or self.graph.children[node]:
                self._add(node, number)
        following = len(numbers)
        for child, parents in enumerate(self.graph.parents):
            for parent in parents:
                chain = list(range(following, following + numbers[child] - numbers[parent] - 1))
                following += len(chain)
                for item, number in zip(chain, range(numbers[parent] + 1, numbers[child]), strict=True):
                    self._add(item, number)
                self.edges.append((parent, child))
                self.chains.append(chain)
                for upper, lower in pairwise([parent, *chain, child]):
                    self.below[upper].append(lower)
                    self.above[lower].append(upper)
        self.part = self._parts()
        self.layers = [[] for _ in range(1 + max(self.layer.values(), default=-1))]
        for item in self.part:
            self.layers[self.layer[item]].append(item)

    def _add(self, item: int, layer: int) -> None:
        self.layer[item], self.above[item], self.below[item] = layer, [], []

    def _parts(self) -> dict[int, int]:
        """Which connected part an item is of; items of a part in the order of a walk along the edges."""
        found: dict[int, int] = {}
        for first in self.layer:
            ahead = [first]
            while ahead:
                item = ahead.pop()
                if item not in found:
                    found[item] = found[first] if first in found else len(found)
                    ahead.extend(reversed([*self.below[item], *self.above[item]]))
        return found

    def order(self) -> None:
        """Put the layers in the order with the fewest crossings that is found."""
        best, fewest = self._copy(), self.crossings()
        mixer = Random(0)
        for start in range(max(1, min(MOST_STARTS, STARTED // max(1, len(self.layer))))):
            if start:
                self._mix(mixer)
            for turn in range(SWEEPS):
                if not fewest:
                    break
                self._sweep(down=turn % 2 == 0)
                while len(self.layer) <= SWAPPED and self._swap():
                    pass
                if (count := self.crossings()) < fewest:
                    best, fewest = self._copy(), count
        self.layers = best

    def _copy(self) -> Layers:
        return [list(layer) for layer in self.layers]

    def _mix(self, mixer: Random) -> None:
        for layer in self.layers:
            mixer.shuffle(layer)
            layer.sort(key=self.part.__getitem__)

    def crossings(self) -> int:
        """How many pairs of edges cross."""
        return sum(_inversions(self._ends(upper, lower)) for upper, lower in pairwise(self.layers))

    def _ends(self, upper: list[int], lower: list[int]) -> Iterator[int]:
        place = {item: at for at, item in enumerate(lower)}
        for item in upper:
            yield from sorted(place[other] for other in self.below[item])

    def _sweep(self, down: bool) -> None:
        """Each layer in the order of the middles of its neighbours in the layer before."""
        numbers = range(1, len(self.layers)) if down else range(len(self.layers) - 2, -1, -1)
        near = self.above if down else self.below
        for number in numbers:
            fixed, layer = self.layers[number - 1 if down else number + 1], self.layers[number]
            place = {item: float(at) for at, item in enumerate(fixed)}
            scale = len(fixed) / len(layer)
            middle = {
                item: _mean([place[other] for other in near[item]]) if near[item] else at * scale
                for at, item in enumerate(layer)
            }
            layer.sort(key=lambda item: (self.part[item], middle[item]))

    def _swap(self) -> bool:
        """Swap neighbours where that takes crossings away; whether it did."""
        found = False
        for number, layer in enumerate(self.layers):
            sides = []
            for near, other in ((self.above, number - 1), (self.below, number + 1)):
                if 0 <= other < len(self.layers):
                    place = {item: at for at, item in enumerate(self.layers[other])}
                    sides.append({item: sorted(place[each] for each in near[item]) for item in layer})
            for at in range(len(layer) - 1):
                one, two = layer[at : at + 2]
                if self.part[one] != self.part[two]:
                    continue
                if sum(_between(side[one], side[two]) - _between(side[two], side[one]) for side in sides) > 0:
                    layer[at], layer[at + 1] = two, one
                    found = True
        return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _inversions(values: Iterator[int]) -> int:
    """Pairs in which the larger comes first.

    >>> _inversions(iter([2, 0, 1]))
    2
    """
    met: list[int] = []
    count = 0
    for value in values:
        count += len(met) - bisect_right(met, value)
        insort(met, value)
    return count


def _between(left: Sequence[int], right: Sequence[int]) -> int:
    """Crossings of the edges of two neighbours, whose other ends stand at these places."""
    return sum(bisect_left(right, place) for place in left)


def _row_unconnected(graph: Graph, layers: Layers) -> Layers:
    """Nodes without edges, in rows about as long as the longest layer."""
    lonely = [node for node, own in enumerate(graph.parents) if not own and not graph.children[node]]
    longest = max([math.isqrt(len(lonely)) + 1, *map(len, layers)])
    return [lonely[at : at + longest] for at in range(0, len(lonely), longest)]


# -- places within layers


def _place(mesh: _Mesh, widths: Sequence[float], gap: float) -> dict[int, float]:
    """The middle of every item: near its neighbours, by turns of those above and below, and apart from the next."""
    x: dict[int, float] = {}
    for layer in mesh.layers:
        x.update(zip(layer, _pack(layer, widths, gap), strict=True))
    numbers = range(len(mesh.layers))
    for turn in range(SWEEPS):
        near = (mesh.above, mesh.below)[turn % 2]
        for number in numbers if turn % 2 == 0 else reversed(numbers):
            layer = mesh.layers[number]
            if turn >= SWEEPS - 2:  # at the end both sides count
                drawn = {item: [*mesh.above[item], *mesh.below[item]] for item in layer}
            else:
                drawn = {item: near[item] for item in layer}
            wanted = [_mean([x[other] for other in drawn[item]]) if drawn[item] else x[item] for item in layer]
            weights = [_weight(item, len(drawn[item]), len(widths)) for item in layer]
            x.update(zip(layer, place_apart(wanted, weights, _distances(layer, widths, gap)), strict=True))
    return x


def _weight(item: int, neighbours: int, nodes: int) -> float:
    return STRAIGHT if item >= nodes else max(neighbours, 0.01)


def _distances(layer: Sequence[int], widths: Sequence[float], gap: float) -> list[float]:
    """How far apart the middles of neighbours must be; a bend has no width."""
    return [_half(one, widths) + _half(two, widths) + gap for one, two in pairwise(layer)]


def _half(item: int, widths: Sequence[float]) -> float:
    return widths[item] / 2 if item < len(widths) else 0.0


def _pack(layer: Sequence[int], widths: Sequence[float], gap: float) -> list[float]:
    """Places side by side, around zero."""
    found = [0.0]
    for distance in _distances(layer, widths, gap):
        found.append(found[-1] + distance)
    return [place - found[-1] / 2 for place in found]


def place_apart(wanted: Sequence[float], weights: Sequence[float], distances: Sequence[float]) -> list[float]:
    """The places in this order, at least these distances apart, with the least weighted squares from the wanted ones.

    Without the distances it is a regression whose values may not fall: neighbours that would are pooled.

    >>> place_apart([0.0, 0.0, 10.0], [1.0, 1.0, 1.0], [4.0, 4.0])
    [-2.0, 2.0, 10.0]
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    pools: list[tuple[float, float, int]] = []
    for place, weight, offset in zip(wanted, weights, offsets, strict=True):
        mean, total, count = place - offset, weight, 1
        while pools and pools[-1][0] > mean:
            other, more, members = pools.pop()
            mean = (mean * total + other * more) / (total + more)
            total, count = total + more, count + members
        pools.append((mean, total, count))
    level = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(level, offsets, strict=True)]
