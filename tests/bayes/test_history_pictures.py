"""The history of hypotheses as a picture: the figures of its table, with nothing in it that a reader could obey."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import softcount as sc
from softcount.bayes.hypotheses import ACROSS

SHARES = {"h1": 1.0, "h2": 0.75, "h3": 0.5, "h4": 0.25, "h5": 0.0}
PRIOR = dict(zip(SHARES, [0.1, 0.2, 0.4, 0.2, 0.1], strict=True))
BAGS = sc.Hypotheses(PRIOR, {h: {"cherry": share, "lime": 1 - share} for h, share in SHARES.items()})


def lines_of(svg):
    """Each line of a picture under its name, as heights from 0 to the top of its frame, which is 300 pixels high."""
    found, floor = {}, None
    for element in ET.fromstring(svg):
        if element.get("class") == "t-bold":  # the title of the next chart
            floor = None
        elif element.tag.endswith("path") and floor is None:  # its first path is the horizontal axis
            floor = float(element.get("d").split()[-1])
        elif element.tag.endswith("path") and len(element):
            heights = [float(pair.split()[1]) for pair in element.get("d")[1:].split("L")]
            found[element[0].text] = (floor - np.array(heights)) / 300 * 1.02
    return found


def test_the_lines_are_the_columns_of_the_history():
    after = BAGS.observe(["lime"] * 10)
    history, lines = after.history.to_pydict(), lines_of(after.history_svg())
    for name in SHARES:
        np.testing.assert_allclose(lines[name], history[name], atol=5e-4)
    np.testing.assert_allclose(lines["bayes"], history["bayes lime"], atol=5e-4)
    np.testing.assert_allclose(lines["map"], history["map lime"], atol=5e-4)
    np.testing.assert_allclose(lines["ml"], history["ml lime"][1:], atol=5e-4)
    np.testing.assert_allclose(lines_of(after.history_svg("cherry"))["bayes"], history["bayes cherry"], atol=5e-4)


def test_the_text_has_a_line_for_each_and_stays_narrow():
    for draws in (0, 1, 10, 1000):
        told = BAGS.observe(["lime"] * draws).history_text("lime").splitlines()
        assert [line.split()[0] for line in told[1:6]] == list(SHARES)
        assert [line.split()[0] for line in told[7:10]] == ["bayes", "map", "ml"]
        assert max(map(len, told)) <= 21 + ACROSS
    assert told[5].endswith("█")  # h5, which is sure by now


def test_before_anything_was_seen_only_the_prior_is_drawn():
    assert list(lines_of(BAGS.history_svg())) == list(SHARES)
    assert "comes next" not in BAGS.history_text()


def test_fitted_models_are_drawn_row_by_row():
    rows = {"x": [1.0, 1.2, 0.8, 1.1, 5.0, 5.2, 4.9, 5.1]}
    models = {k: sc.Mixture(k, random_state=0).fit(rows) for k in (1, 2)}
    after = sc.Hypotheses({"1": 0.5, "2": 0.5}, {"1": models[1], "2": models[2]}).observe(rows)
    lines = lines_of(after.history_svg())
    assert list(lines) == ["1", "2"] and len(lines["1"]) == 9
    assert lines["2"][-1] == pytest.approx(after.posterior["2"], abs=5e-4)
    assert "the row comes next" in after.history_text({"x": [3.0]})


def test_names_are_harmless():
    evil = "<script>\x1b[31m"
    after = sc.Hypotheses({evil: 0.5, "b": 0.5}, {evil: {evil: 1.0}, "b": {evil: 0.5, "c": 0.5}}).observe([evil])
    svg, text = after.history_svg(), after.history_text()
    ET.fromstring(svg)
    assert not re.search("<script|\x1b", svg) and "\x1b" not in text
