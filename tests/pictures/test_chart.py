"""Charts: well-formed, inside their frame, shown by both renderers, with nothing from data that could be obeyed."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from softcount.networks.network import Graph
from softcount.pictures.chart import (
    Axis,
    Bars,
    Cells,
    Chart,
    Line,
    Points,
    Regions,
    Rule,
    bar_chart,
    class_lines,
    waterfall_chart,
)
from softcount.pictures.drawing import DARK
from softcount.pictures.nomogram import Nomogram, NomogramLine
from softcount.pictures.text import area, axis, nice_ticks, spark
from softcount.report.graph import NetworkPicture, draw_ring
from softcount.report.sequences import draw_states

EVIL = '</text><script>alert(1)</script>"\x1b[31m\u202e&'


def every_chart(name):
    """A chart of every kind, with this name wherever text can stand."""
    lines = class_lines([name, "b"], np.arange(3.0), [np.ones(3), [0, 1, np.nan]], dots=3, filled=True)
    grid = Regions(np.array([[0, 1], [1, 1]]), (0.0, 1.0), (0.0, 1.0))
    named = Axis(name, labels=[name, "b"])
    levels = NomogramLine(name, np.array([-1.0, 2.0]), [name, "b"], False)
    return {
        "lines": Chart(name, [Rule(1.0, name), *lines], Axis(name), Axis(name), [name, "b"], name),
        "bars": bar_chart([name, "b"], [-1.0, 2.0], [name, "2"], name),
        "upright": Chart(name, [Bars([1, 2], [0, 0], [3, 4], upright=True)], Axis(name), Axis(name)),
        "steps": waterfall_chart([name, "b"], [1.0, -np.inf], name, name),
        "cells": Chart(name, [Cells(np.array([[0.1, 1.0], [np.nan, 0.0]]), [[name] * 2] * 2)], named, named),
        "plane": Chart(name, [grid, Points([0.5], [0.5], title=name)], Axis(name), Axis(name), [name, "b"]),
        "nomogram": Nomogram(name, [levels, NomogramLine("n", np.arange(5.0), [name] * 5, True)], 0.5, (name, "b")),
        "network": NetworkPicture.of(Graph.of([(name, "b")]), [name]),
        "ring": draw_ring([name, "b"], np.full((2, 2), 0.5)),
        "states": draw_states([name], [np.array([0, 1])], [np.array([1.0, 2.0])], [name, "b"]),
    }


@pytest.mark.parametrize("kind", list(every_chart("a")))
def test_names_from_data_are_harmless(kind):
    svg = every_chart(EVIL)[kind].draw().svg_file()
    root = ET.fromstring(svg)
    met = {element.tag.split("}")[1] for element in root.iter()}
    assert met <= {"svg", "g", "path", "rect", "text", "title", "style"}
    assert "\x1b" not in svg and "\u202e" not in svg
    shown = EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert shown in [element.text for element in root.iter()] or kind == "states"


@pytest.mark.parametrize("kind", list(every_chart("a")))
def test_matplotlib_axes_show_every_chart(kind):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    every_chart("a $x^")[kind].plot(ax)
    ax.figure.canvas.draw()
    assert ax.has_data() or ax.texts


@pytest.mark.parametrize("curves", [1, 9, 20])
def test_every_curve_has_its_line_and_its_name(curves):
    names = [f"curve {i}" for i in range(curves)]
    lines = class_lines(names, np.linspace(0, 1, 5), [np.full(5, i + 1.0) for i in range(curves)])
    root = ET.fromstring(Chart("t", lines, legend=names, width=720.0).draw().svg_file())
    drawn = [element for element in root.iter() if len(element) and element.tag.endswith("path")]
    assert [line[0].text for line in drawn] == names
    assert len({(line.get("class"), line.get("stroke-dasharray")) for line in drawn}) == curves
    assert {element.text for element in root.iter() if element.tag.endswith("}text")} >= set(names)


@example(0.0, 1.0, [5e-324, np.inf])
@given(
    st.floats(-1e300, 1e300), st.floats(1e-3, 1e9),
    st.lists(st.floats(0, 1e300) | st.just(np.inf) | st.just(np.nan), min_size=2, max_size=6),
)  # fmt: skip
def test_points_stay_in_the_frame(start, spread, heights):
    x = start + spread * np.arange(len(heights))
    drawing = Chart("t", [Line(x, np.array(heights), "c")], Axis("x"), Axis("y")).draw()
    svg = drawing.svg_file()
    ET.fromstring(svg)
    for line in re.findall(r'd="M([^"hz]*)z?"', svg):
        for a, b in (map(float, pair.split()) for pair in line.split("L")):
            assert 0 <= a <= drawing.width and 0 <= b <= drawing.height


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


@pytest.mark.parametrize("kind", list(every_chart("a")))
def test_pictures_are_files_that_go_with_a_dark_screen(kind):
    """Colours are tones, which are others on a dark screen."""
    style, shapes = every_chart("a")[kind].draw().svg_file().split("</style>")
    assert "prefers-color-scheme:dark" in style and f"--ink:{DARK['ink']}" in style
    assert "#" not in shapes.replace("&#", "")  # no colour of its own


def test_bars_stand_below_each_other_beside_their_names():
    root = ET.fromstring(bar_chart(["a", "b", "c"], [1.0, -2.0, 3.0], ["x", "y", "z"], "t").draw().svg_file())
    boxes = [x for x in root.iter() if x.tag.endswith("rect")][1:]  # after the ground
    names = {x.text: float(x.get("y")) for x in root.iter() if x.tag.endswith("}text")}
    middles = [float(box.get("y")) + float(box.get("height")) / 2 for box in boxes]
    assert middles == sorted(middles) and len(set(middles)) == 3
    assert [names[name] for name in "abc"] == pytest.approx([middle + 4 for middle in middles], abs=0.2)
    widths = [float(box.get("width")) for box in boxes]
    assert widths == pytest.approx([widths[0], 2 * widths[0], 3 * widths[0]], abs=0.3)
