"""Graphs drawn: layers that hold the edges' direction, few crossings, and nothing in names that anything could obey."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import combinations, pairwise, permutations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from networks.drawn_networks import HOSTILE, drawn_network
from softcount.files.bif import read_network
from softcount.networks.network import Graph
from softcount.pictures.text import cell_width
from softcount.report import graph as graphs
from softcount.report.graph import NetworkPicture, graph_dot, graph_lines, lay_out

ASIA = Graph.of(
    [
        ("asia", "tub"),
        ("smoke", "lung"),
        ("smoke", "bronc"),
        ("tub", "either"),
        ("lung", "either"),
        ("either", "xray"),
        ("either", "dysp"),
        ("bronc", "dysp"),
    ]
)


def drawn_graph(seed: int, nodes: int) -> Graph:
    return drawn_network(np.random.default_rng(seed), nodes, 3).graph


def graph_svg(graph: Graph, hidden: Collection[object] = ()) -> str:
    return NetworkPicture.of(graph, hidden).draw().svg_file()


seeds, sizes = st.integers(0, 10_000), st.integers(1, 25)


# Layout


def crossings(layout: graphs.GraphLayout) -> int:
    """Pairs of pieces between the same two layers whose ends are in different orders, looked for one by one."""
    pieces = []
    for route in layout.routes:
        points = [
            (layout.x[route.parent], layout.layer[route.parent]),
            *route.bends,
            (layout.x[route.child], layout.layer[route.child]),
        ]
        assert [layer for _, layer in points] == list(range(points[0][1], points[-1][1] + 1))
        pieces += [(layer, x, below) for (x, layer), (below, _) in pairwise(points)]
    return sum(one[0] == two[0] and (one[1] - two[1]) * (one[2] - two[2]) < 0 for one, two in combinations(pieces, 2))


@settings(max_examples=40)
@given(seeds, sizes)
def test_every_edge_points_down_and_no_two_boxes_overlap(seed: int, nodes: int) -> None:
    graph = drawn_graph(seed, nodes)
    widths = np.random.default_rng(seed).uniform(10, 90, nodes)
    layout = lay_out(graph, widths, 12)
    assert {(graph.names[r.parent], graph.names[r.child]) for r in layout.routes} == set(graph.edges)
    assert all(layout.layer[route.parent] < layout.layer[route.child] for route in layout.routes)
    for one, two in combinations(range(nodes), 2):
        if layout.layer[one] == layout.layer[two]:
            assert abs(layout.x[one] - layout.x[two]) >= (widths[one] + widths[two]) / 2 + 12 - 1e-9
    for route in layout.routes:
        for x, layer in route.bends:
            assert 0 <= x <= layout.width + 1e-9
            for node in range(nodes):
                if layout.layer[node] == layer:
                    assert abs(layout.x[node] - x) >= widths[node] / 2 + 12 - 1e-9
    for node in range(nodes):
        assert widths[node] / 2 - 1e-9 <= layout.x[node] <= layout.width - widths[node] / 2 + 1e-9
        assert 0 <= layout.layer[node] < layout.layers


@settings(max_examples=40)
@given(seeds, sizes)
def test_crossings_are_counted_as_one_would_by_hand(seed: int, nodes: int) -> None:
    layout = lay_out(drawn_graph(seed, nodes), [30] * nodes, 10)
    assert layout.crossings == crossings(layout)


def between(one: str, two: str) -> Graph:
    return Graph.of([(a, b) for a in one for b in two])


@pytest.mark.parametrize(
    ("graph", "fewest"),
    [
        (ASIA, 0),
        (Graph.of([], "abc"), 0),
        (Graph.of([(str(n), str(2 * n + side)) for n in range(1, 16) for side in (0, 1)]), 0),  # a tree
        (Graph.of([(a, b) for a, b in zip("aabbcc", "yzxzxy", strict=True)]), 2),  # a ring of six between two layers
        (Graph.of([("a", "z"), ("b", "y"), ("c", "x"), ("d", "w")]), 0),
        (between("ab", "cd"), 1),
        (between("abc", "def"), 9),
        (Graph.of([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("a", "c"), ("b", "d")]), 0),
    ],
)
def test_known_graphs_have_their_fewest_crossings(graph: Graph, fewest: int) -> None:
    assert lay_out(graph, [40] * len(graph.names), 10).crossings == fewest


def fewest_of_all_orders(edges: list[tuple[str, str]]) -> int:
    upper, lower = ([*dict.fromkeys(ends)] for ends in zip(*edges, strict=True))
    orders = [(one.index, two.index) for one in permutations(upper) for two in permutations(lower)]
    return min(
        sum((one(a) - one(c)) * (two(b) - two(d)) < 0 for (a, b), (c, d) in combinations(edges, 2))
        for one, two in orders
    )


def test_two_small_layers_have_the_fewest_crossings_of_all_orders() -> None:
    rng = np.random.default_rng(2)
    for _ in range(30):
        edges = [(a, b) for a in "abcd" for b in "wxyz" if rng.random() < 0.5]
        graph = Graph.of(edges)
        assert lay_out(graph, [10] * len(graph.names), 5).crossings == fewest_of_all_orders(edges)


@given(seeds, st.integers(1, 8))
def test_places_are_the_nearest_that_keep_their_distance(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    wanted, weights, apart = rng.normal(0, 10, count), rng.uniform(0.1, 3, count), rng.uniform(0, 9, count - 1)
    places = np.array(graphs.place_apart(list(wanted), list(weights), list(apart)))
    assert (np.diff(places) >= apart - 1e-9).all()

    def cost(where: np.ndarray) -> float:
        return float((weights * (where - wanted) ** 2).sum())

    for _ in range(50):  # the cost is convex: nothing near that keeps its distance may be better
        other = places + rng.normal(0, 0.3, count)
        other = other + np.maximum.accumulate(np.concatenate([[0], np.cumsum(np.maximum(apart - np.diff(other), 0))]))
        assert cost(places) <= cost(other) + 1e-9


# Text


def read_back(lines: list[str], graph: Graph) -> set[tuple[object, object]]:
    """The edges that a drawing shows: whose rail each line touches."""
    start = max(map(cell_width, map(str, graph.names))) + 2
    rails: dict[int, str] = {}
    edges: set[tuple[object, object]] = set()
    for line in lines:
        name, marks = line[:start].rstrip(), line[start:]
        touched = [at for at, mark in enumerate(marks) if mark in "┤┼┘┴"]
        edges |= {(rails[at], name) for at in touched}
        assert marks.startswith("◂") == bool(touched)
        for at, mark in enumerate(marks):
            assert (mark in "│┤┼┘┴") == (at in rails)
            if mark in "┘┴":
                del rails[at]
            if mark in "┐┬":
                rails[at] = name
    assert not rails
    return edges


@settings(max_examples=40)
@given(seeds, sizes)
def test_a_drawing_in_text_shows_exactly_the_edges(seed: int, nodes: int) -> None:
    graph = drawn_graph(seed, nodes)
    lines = graph_lines(graph, width=1000)
    assert len(lines) == nodes
    assert {line.split()[0] for line in lines} == set(graph.names)
    assert read_back(lines, graph) == set(graph.edges)


def test_asia_is_drawn_as_people_would() -> None:
    assert graph_lines(ASIA) == [
        "asia    ──┐",
        "tub     ◂─┴─┐",
        "smoke   ──┐ │",
        "lung    ◂─┼─│─┐",
        "bronc   ◂─┴─│─│─┐",
        "either  ◂─┬─┴─┘ │",
        "dysp    ◂─┼─────┘",
        "xray    ◂─┘",
    ]


@pytest.mark.parametrize("name", ["alarm", "asia", "child", "insurance", "sachs", "survey", "hailfinder"])
def test_real_networks_fit_a_terminal(data: Callable[[str], Path], name: str) -> None:
    graph = read_network(data(f"bif/{name}.bif.gz")).graph
    lines = graph_lines(graph)
    assert all(cell_width(line) <= 78 for line in lines)
    if len(graph.names) <= graphs.DRAWN_NODES:
        assert read_back(lines, graph) == set(graph.edges)


def test_a_large_or_dense_graph_is_a_list_of_children() -> None:
    chain = Graph.of(pairwise(map(str, range(graphs.DRAWN_NODES + 1))), ["lonely", "alone"])
    lines = graph_lines(chain)
    assert lines[0] == "0 -> 1"
    assert lines[-1] == "without edges: lonely, alone"
    star = Graph.of([("hub", f"leaf {n}") for n in range(100)])
    lines = graph_lines(star)
    assert lines[0].startswith("hub -> leaf 0, leaf 1, ")
    assert all(line.startswith("    leaf ") and cell_width(line) <= 78 for line in lines[1:])
    assert ", ".join([lines[0][7:].rstrip(","), *(line.strip().rstrip(",") for line in lines[1:])]).count(", ") == 99
    assert all(cell_width(line) <= 30 for line in graph_lines(between("abcdefghijklmno", "pqrstuvwxyz"), width=30))


def test_hidden_nodes_are_in_parentheses_and_long_names_are_cut() -> None:
    graph = Graph.of([("Bag", "Flavor"), ("Bag", "x" * 500), ("Bag", "日本" * 40)])
    lines = graph_lines(graph, hidden=["Bag"])
    assert lines[0].startswith("(Bag) ")
    assert all(cell_width(line) <= 40 for line in lines)
    assert "x…" in "".join(lines)
    assert "日…" in "".join(lines)


def test_no_nodes_and_one_node_are_drawn_too() -> None:
    assert graph_lines(Graph.of([])) == []
    assert graph_lines(Graph.of([], ["one"])) == ["one"]
    for graph in (Graph.of([]), Graph.of([], ["one"])):
        ElementTree.fromstring(graph_svg(graph))
        assert graph_dot(graph).startswith("digraph {")


# What is in names


SCRIPT = "</text><script>alert(1)</script>"
HOSTILE_GRAPH = Graph.of(pairwise([*HOSTILE, SCRIPT, "\x9b31m", "\u202eabc", 7, ("a", None)]))


def test_a_terminal_gets_nothing_to_obey() -> None:
    for graph in (HOSTILE_GRAPH, Graph.of(HOSTILE_GRAPH.edges, map(str, range(50)))):
        assert all(line.isprintable() for line in graph_lines(graph))


def test_dot_strings_hold_any_name() -> None:
    text = graph_dot(HOSTILE_GRAPH, hidden=HOSTILE_GRAPH.names[:2])
    lines = text.splitlines()
    labels = [line for line in lines if "label=" in line]
    assert len(labels) == len(HOSTILE_GRAPH.names)
    assert all(
        re.fullmatch(r'  n\d+ \[label="(?:[^"\\]|\\["\\])*"(, style="rounded,dashed")?\];', line) for line in labels
    )
    assert sum("dashed" in line for line in labels) == 2
    assert text.count(" -> n") == len(HOSTILE_GRAPH.edges)
    assert text.replace("\n", "").isprintable()


def test_svg_holds_any_name_as_text_only() -> None:
    root = ElementTree.fromstring(graph_svg(HOSTILE_GRAPH, hidden=["<5"]))
    tag = "{http://www.w3.org/2000/svg}"
    met = {element.tag.removeprefix(tag) for element in root.iter()}
    assert met == {"svg", "path", "title", "rect", "text", "style"}
    titles = [element.text or "" for element in root.iter(f"{tag}title")]
    assert SCRIPT in titles
    assert len(titles) == 1 + len([name for name in HOSTILE_GRAPH.names if str(name)])  # the picture has one too
    heads = [path for path in root.iter(f"{tag}path") if path.get("class") == "f-muted"]
    assert len(heads) == len(HOSTILE_GRAPH.edges)
    assert [path.get("stroke-dasharray") is not None for path in root.iter(f"{tag}path")].count(True) == 1
    assert all(cell_width(element.text or "") <= 28 for element in root.iter(f"{tag}text"))


@settings(max_examples=40)
@given(seeds, sizes)
def test_a_picture_is_the_same_every_time_and_everything_is_inside(seed: int, nodes: int) -> None:
    graph = drawn_graph(seed, nodes)
    svg = graph_svg(graph)
    assert svg == graph_svg(Graph(graph.names, graph.parents))
    root = ElementTree.fromstring(svg)
    left, top, width, height = map(float, root.get("viewBox", "").split())
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, wide, high = (float(rect.get(key, "nan")) for key in ("x", "y", "width", "height"))
        assert left <= x <= x + wide <= left + width + 0.11
        assert top <= y <= y + high <= top + height + 0.11


def test_a_thousand_nodes_are_laid_out() -> None:
    layout = lay_out(drawn_graph(3, 1000), [50] * 1000, 10)
    assert len(layout.x) == 1000
    assert layout.width < 1000 * 60
