"""Places of the nodes of a graph: in layers, every edge pointing down, with few crossings, the same every time.

A node stands below all its parents. An edge that spans several layers bends in each one between. Within a layer, items
(nodes and bends) are sorted by the mean place of their neighbours, above and below by turns, while crossings fall; they
are then placed as near to their neighbours as the room between them allows.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from random import Random
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from softcount.core.lazy import isotonic_regression
from softcount.networks.network import Graph

SWEEPS = 12
"""Passes down and up in search of fewer crossings; four times as many take less than a tenth off published networks."""
STARTS, STARTED_ITEMS = 12, 1200
"""Small drawings are begun several times from mixed orders: this many, or as many as make this many items."""
SWAPPED_ITEMS = 600
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
    """The middle and the layer of each node, the routes of the edges, and how often these cross."""

    x: tuple[float, ...]
    layer: tuple[int, ...]
    routes: tuple[Route, ...]
    width: float
    layers: int
    crossings: int


def lay_out(graph: Graph, widths: Sequence[float], gap: float) -> GraphLayout:
    """Lay out a graph whose nodes have these widths, with a gap between them.

    >>> found = lay_out(Graph.of([("a", "b"), ("b", "c"), ("a", "c")]), [10, 10, 10], 5)
    >>> found.layer, found.crossings
    ((0, 1, 2), 0)
    """
    mesh = _Mesh(graph)
    mesh.sort_layers()
    widths = [*widths, *[0.0 for _ in mesh.bends]]
    x = _place(mesh, widths, gap)
    # Nodes without edges stand below, in rows about as long as the longest layer.
    lonely = [node for node, own in enumerate(graph.parents) if not own and not graph.children[node]]
    longest = max([math.isqrt(len(lonely)) + 1, *map(len, mesh.layers)])
    for row, start in enumerate(range(0, len(lonely), longest), len(mesh.layers)):
        nodes = lonely[start : start + longest]
        x.update(zip(nodes, _pack(nodes, widths, gap), strict=True))
        mesh.layer.update(dict.fromkeys(nodes, row))
    left = min((place - widths[item] / 2 for item, place in x.items()), default=0.0)
    x = {item: place - left for item, place in x.items()}
    bends = [tuple((x[item], mesh.layer[item]) for item in own) for own in mesh.chains]
    return GraphLayout(
        tuple(x[node] for node in range(len(graph.names))),
        tuple(mesh.layer[node] for node in range(len(graph.names))),
        tuple(Route(*edge, bend) for edge, bend in zip(mesh.edges, bends, strict=True)),
        max((place + widths[item] / 2 for item, place in x.items()), default=0.0),
        1 + max(mesh.layer.values(), default=-1),
        mesh.count_crossings(),
    )


class _Mesh:
    """Nodes that have edges, and the bends of long edges, in layers; every edge joins two layers that touch."""

    def __init__(self, graph: Graph) -> None:
        numbers = [0] * len(graph.names)
        for node in graph.order:  # longest paths from the top
            numbers[node] = max((numbers[parent] + 1 for parent in graph.parents[node]), default=0)
        for node in reversed(graph.order):  # nodes with more children than parents go down as far as those allow
            if len(graph.children[node]) > len(graph.parents[node]):
                numbers[node] = min(numbers[child] for child in graph.children[node]) - 1
        self.layer = {node: k for node, k in enumerate(numbers) if graph.parents[node] or graph.children[node]}
        self.edges = [(parent, child) for child, parents in enumerate(graph.parents) for parent in parents]
        self.chains: Layers = []
        following = len(numbers)
        for parent, child in self.edges:
            between = range(numbers[parent] + 1, numbers[child])
            self.chains.append(list(range(following, following + len(between))))
            self.layer.update(zip(self.chains[-1], between, strict=True))
            following += len(between)
        self.bends = range(len(numbers), following)
        self.above: dict[int, list[int]] = {item: [] for item in self.layer}
        self.below: dict[int, list[int]] = {item: [] for item in self.layer}
        for (parent, child), bends in zip(self.edges, self.chains, strict=True):
            for upper, lower in pairwise([parent, *bends, child]):
                self.below[upper].append(lower)
                self.above[lower].append(upper)
        self.part = self._find_parts()
        self.layers: Layers = [[] for _ in range(1 + max(self.layer.values(), default=-1))]
        for item in self.part:
            self.layers[self.layer[item]].append(item)

    def _find_parts(self) -> dict[int, int]:
        """Number the connected part of each item; items of a part are in the order of a walk along the edges."""
        found: dict[int, int] = {}
        for first in self.layer:
            ahead = [first]
            while ahead:
                item = ahead.pop()
                if item not in found:
                    found[item] = found[first] if first in found else len(found)
                    ahead.extend(reversed([*self.below[item], *self.above[item]]))
        return found

    def sort_layers(self) -> None:
        """Put the layers in the order with the fewest crossings that is found."""
        best, fewest, mixer = [list(layer) for layer in self.layers], self.count_crossings(), Random(0)
        for start in range(max(1, min(STARTS, STARTED_ITEMS // max(1, len(self.layer))))):
            for layer in self.layers if start else ():
                mixer.shuffle(layer)
                layer.sort(key=self.part.__getitem__)
            for turn in range(SWEEPS):
                if not fewest:
                    break
                self._sweep(down=turn % 2 == 0)
                while len(self.layer) <= SWAPPED_ITEMS and self._swap():
                    pass
                if (count := self.count_crossings()) < fewest:
                    best, fewest = [list(layer) for layer in self.layers], count
        self.layers = best

    def count_crossings(self) -> int:
        places = (self._near_places(number, number + 1) for number in range(len(self.layers) - 1))
        return sum(_count_inversions(chain.from_iterable(own.values())) for own in places)

    def _near_places(self, number: int, other: int) -> dict[int, list[int]]:
        """Return for each item of a layer the sorted places of its neighbours in the layer above or below."""
        near, place = self.above if other < number else self.below, {x: at for at, x in enumerate(self.layers[other])}
        return {item: sorted(place[each] for each in near[item]) for item in self.layers[number]}

    def _sweep(self, down: bool) -> None:
        """Sort each layer by the mean place of its items' neighbours in the layer before."""
        for number in range(1, len(self.layers)) if down else range(len(self.layers) - 2, -1, -1):
            other, layer = number - 1 if down else number + 1, self.layers[number]
            scale = len(self.layers[other]) / len(layer)
            places = self._near_places(number, other).items()
            middle = {item: _mean(own) if own else at * scale for at, (item, own) in enumerate(places)}
            layer.sort(key=lambda item: (self.part[item], middle[item]))

    def _swap(self) -> bool:
        found, last = False, len(self.layers) - 1
        for number, layer in enumerate(self.layers):
            sides = [self._near_places(number, other) for other in (number - 1, number + 1) if 0 <= other <= last]
            for at in range(len(layer) - 1):
                one, two = layer[at : at + 2]
                if self.part[one] != self.part[two]:
                    continue
                if sum(_cross(side[one], side[two]) - _cross(side[two], side[one]) for side in sides) > 0:
                    layer[at], layer[at + 1] = two, one
                    found = True
        return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _cross(left: Sequence[int], right: Sequence[int]) -> int:
    """Count the crossings of the edges of two neighbours, whose other ends stand at these sorted places."""
    return sum(bisect_left(right, place) for place in left)


def _count_inversions(values: Iterable[int]) -> int:
    """Count the pairs in which the larger comes first.

    >>> _count_inversions([2, 0, 1])
    2
    """
    met: list[int] = []
    count = 0
    for value in values:
        count += len(met) - bisect_right(met, value)
        insort(met, value)
    return count


# -- places within layers


def _place(mesh: _Mesh, widths: Sequence[float], gap: float) -> dict[int, float]:
    """Place the middle of every item near its neighbours, by turns of those above and below."""
    x: dict[int, float] = {}
    for layer in mesh.layers:
        x.update(zip(layer, _pack(layer, widths, gap), strict=True))
    for turn in range(SWEEPS):
        near = (mesh.above, mesh.below)[turn % 2]
        for layer in mesh.layers if turn % 2 == 0 else reversed(mesh.layers):
            both = turn >= SWEEPS - 2  # at the end both sides count
            drawn = {item: [*mesh.above[item], *mesh.below[item]] if both else near[item] for item in layer}
            wanted = [_mean([x[other] for other in drawn[item]]) if drawn[item] else x[item] for item in layer]
            weights = [STRAIGHT if item in mesh.bends else max(len(drawn[item]), 0.01) for item in layer]
            x.update(zip(layer, place_apart(wanted, weights, _distances(layer, widths, gap)), strict=True))
    return x


def _distances(layer: Sequence[int], widths: Sequence[float], gap: float) -> list[float]:
    return [widths[one] / 2 + widths[two] / 2 + gap for one, two in pairwise(layer)]


def _pack(layer: Sequence[int], widths: Sequence[float], gap: float) -> list[float]:
    found = list(accumulate(_distances(layer, widths, gap), initial=0.0))
    return [place - found[-1] / 2 for place in found]


def place_apart(wanted: Sequence[float], weights: Sequence[float], distances: Sequence[float]) -> list[float]:
    """Find places in this order, at least these distances apart, with the least weighted squares from those wanted.

    Without the distances it is isotonic regression.

    >>> place_apart([0.0, 0.0, 10.0], [1.0, 1.0, 1.0], [4.0, 4.0])
    [-2.0, 2.0, 10.0]
    """
    offsets = np.cumsum([0.0, *distances])
    found: list[float] = (isotonic_regression(wanted - offsets, weights=weights).x + offsets).tolist()
    return found
