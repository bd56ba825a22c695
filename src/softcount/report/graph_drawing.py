"""A graph as lines of text, as DOT and as SVG. Names come from data: each is made harmless for where it goes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from softcount.networks.network import Graph, Name
from softcount.pictures.drawing import markup, svg_file
from softcount.report.graph_layout import GraphLayout, Route, layered
from softcount.report.passage import WIDTH
from softcount.report.plain_text import cell_width, counted, printable

MOST_DRAWN = 40
"""Nodes up to which lines are drawn; of a larger graph every parent's children are listed."""

LONGEST_NAME = 28
"""Columns of a name in a drawing; longer ones are cut."""


def clipped(text: str, columns: int) -> str:
    """The text, or its beginning and an ellipsis, in so many columns of a terminal.

    >>> clipped("abcdef", 4), clipped("日本語", 4), clipped("日本", 4)
    ('abc…', '日…', '日本')
    """
    if cell_width(text) <= columns:
        return text
    text = text[:columns]
    while cell_width(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def _label(name: Name, hidden: Collection[Name]) -> str:
    """A name that fits a drawing; one of a hidden node is in parentheses."""
    shown = printable(name)
    return f"({clipped(shown, LONGEST_NAME - 2)})" if name in hidden else clipped(shown, LONGEST_NAME)


# -- text: a line for each node, and a rail from each parent down to its last child


def graph_lines(graph: Graph, hidden: Collection[Name] = (), width: int = WIDTH) -> list[str]:
    """The graph as text: a node a line, parents first, and from each parent a rail down to its children.

    A rail begins with a corner on its parent's line and touches the lines of its children, which begin with an arrow
    head; a line that only passes a rail leaves it whole. What would be too large is a list of children instead.

    >>> print("\\n".join(graph_lines(Graph.of([("Rain", "Wet"), ("Sprinkler", "Wet"), ("Rain", "Sprinkler")]))))
    Rain       ──┐
    Sprinkler  ◂─┼─┐
    Wet        ◂─┴─┘
    """
    if len(graph.names) <= MOST_DRAWN:
        lines = _drawn(graph, [_label(name, hidden) for name in graph.names])
        if all(cell_width(line) <= width for line in lines):
            return lines
    return list(_child_lists(graph, [_label(name, hidden) for name in graph.names], width))


def _drawn(graph: Graph, labels: Sequence[str]) -> list[str]:
    widest = max(map(cell_width, labels), default=0)
    waiting = [set(own) for own in graph.children]
    rails: list[int | None] = []  # whose rail runs in each place, from the left
    lines = []
    for node in _reading_order(graph):
        own = -1
        if waiting[node]:
            own = next((at for at, owner in enumerate(rails) if owner is None), len(rails))
            rails[own : own + 1] = [node]
        joined = {at: owner for at, owner in enumerate(rails) if owner is not None and owner in graph.parents[node]}
        for parent in joined.values():
            waiting[parent].discard(node)
        ended = {at for at, parent in joined.items() if not waiting[parent]}
        start = "◂" if joined else "─" if own >= 0 else " "
        lines.append(_padded(labels[node], widest) + "  " + start + _marks(rails, own, joined, ended))
        rails = [None if at in ended else owner for at, owner in enumerate(rails)]
    return [line.rstrip() for line in lines]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_width(text))


def _marks(rails: Sequence[int | None], own: int, joined: Collection[int], ended: Collection[int]) -> str:
    """The rails as one line crosses them; it reaches to the last that it has to do with."""
    reach = max([own, *joined])
    found = ""
    for at, owner in enumerate(rails):
        line = "─" if at <= reach else " "
        if at == own:
            mark = "┐" if at == reach else "┬"
        elif at in joined:
            mark = ("┘" if at == reach else "┴") if at in ended else ("┤" if at == reach else "┼")
        else:
            mark = line if owner is None else "│"
        found += line + mark
    return found


def _reading_order(graph: Graph) -> list[int]:
    """Parents first: each time the node, with what it depends on, after which the fewest rails are open.

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


def _child_lists(graph: Graph, labels: Sequence[str], width: int) -> Iterator[str]:
    """A line `parent -> children` for each parent, and one for the nodes without edges; wrapped between names."""
    for node in graph.order:
        if graph.children[node]:
            yield from _wrapped(f"{labels[node]} -> ", [labels[child] for child in graph.children[node]], width)
    lonely = [node for node in graph.order if not graph.children[node] and not graph.parents[node]]
    if lonely:
        yield from _wrapped("without edges: ", [labels[node] for node in lonely], width)


def _wrapped(start: str, names: Sequence[str], width: int) -> Iterator[str]:
    line = start
    for place, name in enumerate(names):
        piece = name if place == len(names) - 1 else f"{name}, "
        if place and cell_width(line + piece.rstrip()) > width:
            yield line.rstrip()
            line = "    "
        line += piece
    yield line


# -- DOT


def graph_dot(graph: Graph, hidden: Collection[Name] = ()) -> str:
    r"""The graph in the language of Graphviz; hidden nodes are dashed.

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
        label = printable(name).replace("\\", "\\\\").replace('"', '\\"')
        style = ', style="rounded,dashed"' if name in hidden else ""
        lines.append(f'  n{node} [label="{label}"{style}];')
    lines += [f"  n{parent} -> n{child};" for child, own in enumerate(graph.parents) for parent in own]
    return "\n".join([*lines, "}", ""])


# -- SVG

HEIGHT = 30.0
"""Of a box, in pixels; the text in it is 13 high."""

BETWEEN_LAYERS = 46.0
BETWEEN_BOXES = 18.0
COLUMN = 7.8
"""Pixels of a character."""

MARGIN = 8.0


def graph_svg(graph: Graph, hidden: Collection[Name] = ()) -> str:
    """The graph as an SVG picture: boxes in layers, arrows as curves; hidden nodes dashed, whole names as titles."""
    labels = [clipped(printable(name), LONGEST_NAME) for name in graph.names]
    widths = [max(40.0, COLUMN * cell_width(label) + 18) for label in labels]
    layout = layered(graph, widths, BETWEEN_BOXES)
    width, height = layout.width + 2 * MARGIN, _top(layout.layers) - BETWEEN_LAYERS + MARGIN
    told = f"{counted(len(labels), 'node')}, {counted(len(layout.routes), 'edge')}"
    head = (
        '<defs><marker id="arrow-head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path class="f-ink" d="M0,0.5 L8,4 L0,7.5 Z"/></marker></defs>'
    )
    curves = [_curve(route, layout) for route in layout.routes]
    parts = [head, *curves, *_boxes(graph, layout, labels, widths, hidden)]
    return svg_file((width, max(height, 2 * MARGIN)), told, "\n".join(parts))


def _top(layer: int) -> float:
    return MARGIN + layer * (HEIGHT + BETWEEN_LAYERS)


def _curve(route: Route, layout: GraphLayout) -> str:
    """From the foot of the parent to the head of the child, straight down past the layers between."""
    points = [(layout.x[route.parent], _top(layout.layer[route.parent]) + HEIGHT)]
    for x, layer in route.bends:
        points += [(x, _top(layer)), (x, _top(layer) + HEIGHT)]
    points.append((layout.x[route.child], _top(layout.layer[route.child])))
    parts = [f"M{points[0][0] + MARGIN:.1f},{points[0][1]:.1f}"]
    for place, ((x, y), (to_x, to_y)) in enumerate(pairwise(points)):
        x, to_x, middle = x + MARGIN, to_x + MARGIN, (y + to_y) / 2
        if place % 2:
            parts.append(f"L{to_x:.1f},{to_y:.1f}")
        else:
            parts.append(f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}")
    return f'<path class="s-ink" d="{" ".join(parts)}" stroke-width="1.2" marker-end="url(#arrow-head)"/>'


def _boxes(
    graph: Graph, layout: GraphLayout, labels: Sequence[str], widths: Sequence[float], hidden: Collection[Name]
) -> Iterator[str]:
    for node, name in enumerate(graph.names):
        x, y = layout.x[node] + MARGIN, _top(layout.layer[node])
        dashed = ' stroke-dasharray="5 3"' if name in hidden else ""
        left, width = x - widths[node] / 2, widths[node]
        place = f'x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" height="{HEIGHT:.1f}" rx="6"'
        yield f'<g><title>{markup(name)}</title><rect class="f-soft" {place}/><rect class="s-ink" {place}{dashed}/>'
        yield f'<text class="t-mid" x="{x:.1f}" y="{y + 19.5:.1f}">{markup(labels[node])}</text></g>'
