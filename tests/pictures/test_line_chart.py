"""Pictures: well-formed, inside their frame, and nothing from data in them that a reader could obey."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from softcount.networks.network import Graph
from softcount.pictures.axis_ticks import nice_ticks
from softcount.pictures.line_chart import HEIGHT, WIDTH, Bars, Chart, ChartLine, chart_svg
from softcount.pictures.text_curves import area, axis, spark
from softcount.pictures.tones import DARK
from softcount.report.graph_drawing import graph_svg
from softcount.report.transition_picture import decoded_svg, transition_svg

EVIL = '</text><script>alert(1)</script>"\x1b[31m\u202e&'


def points_in(svg):
    return [
        tuple(map(float, pair.split(","))) for line in re.findall(r'points="([^"]*)"', svg) for pair in line.split()
    ]


def test_names_from_data_are_harmless():
    curve = ChartLine(EVIL, np.arange(3.0), np.ones(3))
    svg = chart_svg(Chart(EVIL, EVIL, EVIL, [curve], Bars(np.array([0.0, 1.0]), np.array([2.0]))))
    root = ET.fromstring(svg)
    assert {element.tag.split("}")[1] for element in root.iter()} <= {
        "svg",
        "g",
        "path",
        "polyline",
        "rect",
        "text",
        "title",
        "style",
    }
    assert "\x1b" not in svg and "\u202e" not in svg
    assert EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e") in [element.text for element in root.iter()]


@pytest.mark.parametrize("curves", [1, 9, 20])
def test_every_curve_has_its_line_and_its_name(curves):
    drawn = [ChartLine(f"curve {i}", np.linspace(0, 1, 5), np.full(5, i + 1.0)) for i in range(curves)]
    root = ET.fromstring(chart_svg(Chart("t", "x", "y", drawn)))
    lines = [element for element in root.iter() if element.tag.endswith("polyline")]
    assert [line[0].text for line in lines] == [f"curve {i}" for i in range(curves)]
    looks = {(line.get("class"), line.get("stroke-dasharray")) for line in lines}
    assert len(looks) == curves
    texts = [element.text for element in root.iter() if element.tag.endswith("}text")]
    assert set(texts) >= {f"curve {i}" for i in range(curves)}


@example(0.0, 1.0, [5e-324, np.inf])
@given(
    st.floats(-1e300, 1e300), st.floats(1e-3, 1e9),
    st.lists(st.floats(0, 1e300) | st.just(np.inf) | st.just(np.nan), min_size=2, max_size=6),
)  # fmt: skip
def test_points_stay_in_the_frame(start, spread, heights):
    x = start + spread * np.arange(len(heights))
    svg = chart_svg(Chart("t", "x", "y", [ChartLine("c", x, np.array(heights))]))
    ET.fromstring(svg)
    for a, b in points_in(svg):
        assert 0 <= a <= WIDTH and 0 <= b <= HEIGHT


def test_steps_go_level_before_they_rise():
    svg = chart_svg(
        Chart("t", "x", "y", [ChartLine("c", np.arange(3.0), np.array([0.0, 1.0, 0.5]), steps=True)], y_top=1.0)
    )
    heights = [b for _, b in points_in(svg)]
    assert heights == [heights[0], heights[0], heights[2], heights[2], heights[4]]
    assert heights[2] < heights[4] < heights[0]


@given(st.floats(-1e308, 1e308), st.floats(0, 1e308))
def test_ticks_are_between_the_ends_and_few(low, span):
    high = low + span
    ticks = nice_ticks(low, high)
    assert 1 <= len(ticks) <= 20
    slack = 1e-5 * max(span, abs(low) * 1e-9, 5e-324)
    assert all(low - slack <= tick <= high + slack for tick in ticks)


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=80), st.integers(1, 12))
def test_text_is_as_wide_and_as_high_as_asked(heights, lines):
    assert len(spark(heights)) == len(heights)
    drawn = area(heights, lines)
    assert len(drawn) == lines and all(len(line) <= len(heights) for line in drawn)
    if max(heights) > 0:
        assert "█" in spark(heights) and "█" in drawn[0]
    assert all(len(line) <= 40 for line in axis(0.0, max(heights) or 1.0, 40))


def test_pictures_are_files_that_go_with_a_dark_screen():
    """All that write files of their own: colours are tones, which are others on a dark screen."""
    graph = Graph.of([("a", "b")])
    chart = chart_svg(Chart("t", "x", "y", [ChartLine("c", np.arange(3.0), np.ones(3))]))
    states = decoded_svg(["s"], [np.array([0, 1])], [np.array([1.0, 2.0])], ["a", "b"])
    for svg in (chart, graph_svg(graph), transition_svg(["a", "b"], np.full((2, 2), 0.5)), states):
        style, shapes = svg.split("</style>")
        assert "prefers-color-scheme:dark" in style and f"--ink:{DARK['ink']}" in style
        assert "#" not in shapes.replace("url(#", "").replace("&#", "")  # no colour of its own
