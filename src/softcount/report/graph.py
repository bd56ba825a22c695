"""A graph as lines of text, as DOT and as a picture; transitions as DOT and as a ring. Names come from data."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from math import cos, hypot, isqrt, pi, sin
from random import Random
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from softcount.core.lazy import isotonic_regression
from softcount.networks.network import Graph, Name
from softcount.pictures.drawing import SMALL, Drawing, Point, class_tone, fit_text, text_width
from softcount.pictures.text import cell_width, clip, format_count, printable, wrap_list
from softcount.report.page import WIDTH

DRAWN_NODES = 40
"""Nodes up to which lines are drawn; of a larger graph every parent's children are listed."""
NAME_LIMIT = 28
"""Columns of a name in a drawing; longer ones are cut."""


# -- text: a line for each node, and a rail from each parent down to its last child


def graph_lines(graph: Graph, hidden: Collection[Name] = (), width: int = WIDTH) -> list[str]:
    """Draw the graph as text: a node on each line, parents first, and from each parent a rail down to its children.

    A rail begins with a corner on its parent's line and touches the lines of its children, which begin with an arrow
    head; a line that only passes a rail leaves it whole. A graph that is too large is a list of children instead.
    Hidden nodes are in parentheses.

    >>> print("\\n".join(graph_lines(Graph.of([("Rain", "Wet"), ("Sprinkler", "Wet"), ("Rain", "Sprinkler")]))))
    Rain       ──┐
    Sprinkler  ◂─┼─┐
    Wet        ◂─┴─┘
    """
    labels = [
        f"({clip(printable(name), NAME_LIMIT - 2)})" if name in hidden else clip(printable(name), NAME_LIMIT)
        for name in graph.names
    ]
    if len(graph.names) <= DRAWN_NODES:
        lines = _draw_rails(graph, labels)
        if all(cell_width(line) <= width for line in lines):
            return lines
    lists = [(f"{labels[node]} -> ", graph.children[node]) for node in graph.order if graph.children[node]]
    alone = [node for node in graph.order if not graph.children[node] and not graph.parents[node]]
    lists += [("without edges: ", tuple(alone))] if alone else []
    return [line for start, nodes in lists for line in wrap_list(start, [labels[node] for node in nodes], width)]


def _draw_rails(graph: Graph, labels: Sequence[str]) -> list[str]:
    widest = max(map(cell_width, labels), default=0)
    waiting = [set(own) for own in graph.children]
    rails: list[int | None] = []  # whose rail runs in each place, from the left
    lines = []
    for node in _reading_order(graph):
        own = -1
        if waiting[node]:
            own = next((at for at, owner in enumerate(rails) if owner is None), len(rails))
            rails[own : own + 1] = [node]
        parents = {at: owner for at, owner in enumerate(rails) if owner is not None and owner in graph.parents[node]}
        for parent in parents.values():
            waiting[parent].discard(node)
        ended = {at for at, parent in parents.items() if not waiting[parent]}
        start = "◂" if parents else "─" if own >= 0 else " "
        space = " " * (widest - cell_width(labels[node]))
        lines.append(f"{labels[node]}{space}  {start}{_draw_crossings(rails, own, parents, ended)}".rstrip())
        rails = [None if at in ended else owner for at, owner in enumerate(rails)]
    return lines


def _draw_crossings(rails: Sequence[int | None], own: int, parents: Collection[int], ended: Collection[int]) -> str:
    """Draw the rails as one line crosses them; it reaches to the last rail of its node or of its parents."""
    reach = max([own, *parents])
    found = ""
    for at, owner in enumerate(rails):
        line = "─" if at <= reach else " "
        if at == own:
            mark = "┐" if at == reach else "┬"
        elif at in parents:
            mark = ("┘" if at == reach else "┴") if at in ended else ("┤" if at == reach else "┼")
        else:
            mark = line if owner is None else "│"
        found += line + mark
    return found


def _reading_order(graph: Graph) -> list[int]:
    """Order nodes, parents first: each time the node, with its ancestors, after which the fewest rails are open.

    A node without children comes as soon as it can, one without parents not before a child needs it.
    """
    row: dict[int, int] = {}

    def cost(node: int) -> tuple[bool, int, int, int, int]:
        done = row.keys() | graph.ancestors([node])
        rails = sum(not done.issuperset(graph.children[each]) for each in done)
        nearest = max((row[parent] for parent in graph.parents[node] if parent in row), default=-1)
        is_end = not graph.children[node] and len(done) == len(row) + 1
        return not is_end, rails, len(done), -nearest, node

    targets = [node for node in graph.order if graph.parents[node] or not graph.children[node]]
    while len(row) < len(graph.names):
        needed = graph.ancestors([min((node for node in targets if node not in row), key=cost)])
        row.update((node, len(row)) for node in graph.order if node in needed and node not in row)
    return list(row)


# -- DOT


def graph_dot(graph: Graph, hidden: Collection[Name] = ()) -> str:
    r"""Write the graph in the language of Graphviz; hidden nodes are dashed.

    >>> print(graph_dot(Graph.of([("Rain", 'so "wet"')])), end="")
    digraph {
      node [shape=box, style=rounded];
      n0 [label="Rain"];
      n1 [label="so \"wet\""];
      n0 -> n1;
    }
    """
    lines = ["digraph {", "  node [shape=box, style=rounded];"]
    for node, name in enumerate(graph.names):
        style = ', style="rounded,dashed"' if name in hidden else ""
        lines.append(f'  n{node} [label="{_dot_text(name)}"{style}];')
    lines += [f"  n{parent} -> n{child};" for child, own in enumerate(graph.parents) for parent in own]
    return "\n".join([*lines, "}", ""])


def transition_dot(names: Sequence[object], table: np.ndarray, least: float = 0.01) -> str:
    r"""Write transitions from a probability of `least` on in the language of Graphviz, as thick as they are likely.

    >>> print(transition_dot(["a", 'b"'], np.array([[0.75, 0.25], [0.0, 1.0]])), end="")
    digraph {
      n0 [label="a"];
      n1 [label="b\""];
      n0 -> n0 [label="0.75", penwidth=3.25];
      n0 -> n1 [label="0.25", penwidth=1.25];
      n1 -> n1 [label="1", penwidth=4.25];
    }
    """
    lines = ["digraph {", *(f'  n{place} [label="{_dot_text(name)}"];' for place, name in enumerate(names))]
    for i, j in np.argwhere(table >= least).tolist():
        lines.append(f'  n{i} -> n{j} [label="{table[i, j]:.2g}", penwidth={0.25 + 4 * table[i, j]:.3g}];')
    return "\n".join([*lines, "}", ""])


def _dot_text(name: object) -> str:
    return printable(name).replace("\\", "\\\\").replace('"', '\\"')


# -- a network as a picture

BOX, LINE, HEAD, GAP, BETWEEN = 172.0, 13.0, 20.0, 26.0, 46.0
"""Least width of a box with lines, heights of a line and of a name, and distances of boxes and of layers, in pixels."""
WIDEST_TEXT, BARS = 170.0, 68.0
"""Room for the texts of a box, and for its bars with the blanks around them."""
WIDEST_ARC = 7.0


class Monitor(Struct, frozen=True):
    """A node as it is shown: its name, lines of text with shares from 0 to 1 (NaN: none), and whether it is hidden."""

    name: str
    lines: Sequence[tuple[str, float]] = ()
    hidden: bool = False


class NetworkPicture(Struct, frozen=True):
    """A graph in layers from the top down; `nats` is the mutual information of each edge, which makes it as wide."""

    description: str
    graph: Graph
    monitors: Sequence[Monitor]
    nats: Mapping[tuple[int, int], float]

    @classmethod
    def of(cls, graph: Graph, hidden: Collection[Name] = ()) -> NetworkPicture:
        description = f"{format_count(len(graph.names), 'node')}, {format_count(len(graph.edges), 'edge')}"
        return cls(description, graph, [Monitor(printable(x), hidden=x in hidden) for x in graph.names], {})

    def draw(self) -> Drawing:
        names = [clip(monitor.name, NAME_LIMIT) for monitor in self.monitors]
        sizes = [
            (
                max(BOX, _text_room(monitor) + BARS) if monitor.lines else max(40.0, 7.8 * cell_width(name) + 18),
                HEAD + LINE * len(monitor.lines) + 6,
            )
            for monitor, name in zip(self.monitors, names, strict=True)
        ]
        placed = place_network(self.graph, sizes)
        drawing = Drawing(*placed.size, self.description)
        most = max(self.nats.values(), default=0.0) or 1.0
        for edge, path in placed.arcs.items():
            nats = self.nats.get(edge)
            drawing.line(path, "muted", 1.2 if nats is None else 0.8 + WIDEST_ARC * nats / most, strength=0.7)
            x, y = path[-1]
            drawing.area([(x - 4.5, y - 2), (x + 4.5, y - 2), (x, y + 7)], "muted")
        for monitor, name, corner, size in zip(self.monitors, names, placed.corners, sizes, strict=True):
            _add_box(drawing, monitor, name, corner, size)
        return drawing

    def plot(self, ax: Any) -> None:
        self.draw().plot(ax)


class PlacedNetwork(NamedTuple):
    """The upper left corner of each box, the path of each edge by its nodes, and the size of it all, in pixels."""

    corners: list[Point]
    arcs: dict[tuple[int, int], list[Point]]
    size: Point


def place_network(graph: Graph, sizes: Sequence[Point]) -> PlacedNetwork:
    """Place boxes of these sizes in layers, and the edges between them."""
    widths, heights = ([size[side] for size in sizes] for side in (0, 1))
    layout = lay_out(graph, widths, GAP)
    tall = [0.0] * layout.layers
    for layer, height in zip(layout.layer, heights, strict=True):
        tall[layer] = max(tall[layer], height)
    tops = list(accumulate((height + BETWEEN for height in tall), initial=8.0))
    corners = [(x + 8 - width / 2, tops[layer]) for x, layer, width in zip(layout.x, layout.layer, widths, strict=True)]
    arcs: dict[tuple[int, int], list[Point]] = {}
    for route in layout.routes:
        points = [(layout.x[route.parent] + 8, tops[layout.layer[route.parent]] + heights[route.parent])]
        for x, layer in route.bends:
            points += [(x + 8, tops[layer]), (x + 8, tops[layer + 1] - BETWEEN)]
        points.append((layout.x[route.child] + 8, tops[layout.layer[route.child]] - 7))
        path = arcs[route.parent, route.child] = []
        for place, ((x, y), (to_x, to_y)) in enumerate(pairwise(points)):
            parts = [k / 10 for k in range(11)]
            # Between layers a line leaves and arrives straight down; past a layer it is straight.
            path += [(x + (to_x - x) * (t if place % 2 else t * t * (3 - 2 * t)), y + (to_y - y) * t) for t in parts]
    return PlacedNetwork(corners, arcs, (layout.width + 16, tops[-1] - BETWEEN + 4 if tall else 12.0))


def _text_room(monitor: Monitor) -> float:
    widest = max((text_width(text, SMALL) for text, share in monitor.lines if share == share), default=0.0)
    return min(widest + 6, WIDEST_TEXT)


def _add_box(drawing: Drawing, monitor: Monitor, name: str, at: Point, size: Point) -> None:
    (x, y), right, foot = at, at[0] + size[0], at[1] + size[1]
    drawing.box(at, size, "soft")
    corners = [at, (right, y), (right, foot), (x, foot)]
    drawing.line(corners, "muted", 1.0, closed=True, dashes="5 3" if monitor.hidden else "", title=monitor.name)
    if not monitor.lines:
        drawing.text(x + size[0] / 2, y + 17, name, anchor="middle")
        return
    drawing.text(x + 7, y + 14, fit_text(name, size[0] - 14), bold=True)
    room = _text_room(monitor)
    for place, (text, share) in enumerate(monitor.lines):
        top = y + HEAD + place * LINE
        if share == share:
            wide = (size[0] - room - 18) * min(max(share, 0.0), 1.0)
            drawing.box((x + room + 10, top + 2), (wide, LINE - 4), "plus", 0.7)
        drawing.text(x + 7, top + 10, fit_text(text, room if share == share else size[0] - 12, SMALL), size=SMALL)


# -- transitions as a picture

STATE = 26.0
"""Radius of a state, in pixels."""


def draw_ring(names: Sequence[object], table: np.ndarray, arrows: Sequence[tuple[int, int]] | None = None) -> Drawing:
    """Draw states around a ring, arrows between them as wide as they are likely, and a loop for staying."""
    if arrows is None:
        arrows = [(int(i), int(j)) for i, j in np.argwhere(table >= 0.01)]
    count, around = len(names), max(90.0, 22.0 * len(names)) if len(names) > 1 else 0.0
    middle = around + STATE + 46
    drawing = Drawing(2 * middle, 2 * middle, f"transitions of {format_count(count, 'state')}")
    at = [(middle + around * sin(2 * pi * k / count), middle - around * cos(2 * pi * k / count)) for k in range(count)]
    for i, j in arrows:
        if i == j:
            _add_loop(drawing, at[i], (middle, middle), float(table[i, i]))
        else:
            _add_arrow(drawing, at[i], at[j], float(table[i, j]))
    for place, (x, y) in enumerate(at):
        name = printable(names[place])
        drawing.dots([(x, y)], "paper", STATE)
        drawing.dots([(x, y)], class_tone(place), STATE, strength=0.25, title=name)
        drawing.text(x, y + 4, fit_text(name, 2 * STATE - 4), anchor="middle", bold=True)
    return drawing


def _add_arrow(drawing: Drawing, one: Point, other: Point, p: float) -> None:
    (x, y), (u, v) = one, other
    far = hypot(u - x, v - y) or 1.0
    (a, b), bend = ((u - x) / far, (v - y) / far), min(far * 0.16, 26.0)
    start = (x + a * STATE - b * 6, y + b * STATE + a * 6)
    end = (u - a * (STATE + 8) - b * 8, v - b * (STATE + 8) + a * 8)
    top = ((start[0] + end[0]) / 2 - b * bend, (start[1] + end[1]) / 2 + a * bend)
    t = np.arange(13)[:, None] / 12
    path = np.hstack([(1 - t) ** 2, 2 * t * (1 - t), t * t]) @ [start, top, end]
    drawing.line(path, "muted", 0.6 + 5 * p, strength=0.7)
    drawing.area(
        [(end[0] + 7 * a, end[1] + 7 * b), (end[0] - 4 * b, end[1] + 4 * a), (end[0] + 4 * b, end[1] - 4 * a)], "muted"
    )
    drawing.text(top[0], top[1] + 4, f"{p:.2f}", "muted", anchor="middle", size=SMALL, halo=True)


def _add_loop(drawing: Drawing, at: Point, middle: Point, p: float) -> None:
    far = hypot(at[0] - middle[0], at[1] - middle[1])
    a, b = ((at[0] - middle[0]) / far, (at[1] - middle[1]) / far) if far > 1 else (0.0, -1.0)
    x, y = at[0] + a * (STATE + 6), at[1] + b * (STATE + 6)
    ring = [(x + 14 * cos(2 * pi * k / 24), y + 14 * sin(2 * pi * k / 24)) for k in range(25)]
    drawing.line(ring, "muted", 0.6 + 5 * p, strength=0.7)
    drawing.text(x + a * 24, y + b * 24 + 4, f"{p:.2f}", "muted", anchor="middle", size=SMALL)


# -- places of the nodes of a graph: in layers, every edge pointing down, with few crossings, the same every time
#
# A node stands below all its parents. An edge that spans several layers bends in each one between. Within a layer,
# items (nodes and bends) are sorted by the mean place of their neighbours, above and below by turns, while crossings
# fall; they are then placed as near to their neighbours as the room between them allows.

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
    longest = max([isqrt(len(lonely)) + 1, *map(len, mesh.layers)])
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
