"""Reports of classes that were found: ellipses hold what they say, regions are the model's, traces are kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import softcount as sc
from html_checks import checked
from softcount.cli import main
from softcount.demo import table_path
from softcount.fitted.explain import make_decision_grid, most_separating
from softcount.pictures.chart import Bars, Line
from softcount.report.page import Picture


def blobs(n: int = 300, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0, 5.0], [6.0, 3.0, 5.0]])
    turn = np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 0.0], [0.0, 0.0, 3.0]])
    return centres[rng.integers(0, 2, n)] + rng.normal(size=(n, 3)) @ turn


@pytest.fixture(scope="module")
def mixture() -> Any:
    return sc.GaussianMixture(2, random_state=0).fit(blobs())


def inside(points: np.ndarray, outline: np.ndarray) -> np.ndarray:
    """Which points an outline goes around, by crossings of a ray to the right."""
    x, y = points[:, :1], points[:, 1:]
    a, b = outline[:-1], outline[1:]
    crossing = (a[:, 1] > y) != (b[:, 1] > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = a[:, 0] + (y - a[:, 1]) * (b[:, 0] - a[:, 0]) / (b[:, 1] - a[:, 1])
    return np.asarray((crossing & (x < at)).sum(axis=1) % 2 == 1)


@pytest.mark.parametrize("part", [0.5, 0.95])
def test_ellipses_hold_what_they_say_of_drawn_points(mixture: Any, part: float) -> None:
    plane = most_separating(mixture.fitted_)
    assert plane is not None and plane.columns == (0, 1)
    points, groups = mixture.sample(20_000, random_state=1)
    for group in range(2):
        own = points[groups == group][:, list(plane.columns)]
        held = inside(own, plane.ellipse(group, part)).mean()
        # A polygon of 48 sides lies inside its ellipse, by a third of a percent of its area.
        assert abs(held - part) < 4 * np.sqrt(part * (1 - part) / len(own)) + 0.004


def test_normal_columns_of_a_star_have_ellipses_too() -> None:
    model = sc.Mixture(2, kinds={0: "normal", 1: "normal", 2: "normal"}, random_state=0).fit(blobs())
    plane = most_separating(model.fitted_)
    assert plane is not None and set(plane.columns) == {0, 1}
    np.testing.assert_allclose(plane.covariances[:, 0, 1], 0.0)
    np.testing.assert_allclose(np.sort(plane.means[:, 0]), np.sort(model.params_[plane.columns[0]]["mean"]))


def test_regions_are_what_the_model_predicts() -> None:
    model = sc.NaiveBayes().fit(str(table_path()), "type")
    grid = make_decision_grid(model.fitted_, ("price", "weight_kg"), (7, 5))
    across, up = np.meshgrid(grid.x, grid.y)
    said = model.predict({"price": across.ravel().tolist(), "weight_kg": up.ravel().tolist()})
    assert [model.classes_[g] for g in grid.likeliest.ravel()] == said.tolist()


TITLES = [
    "Class profiles",
    "Class ellipses",
    "Decision regions",
    "How many classes",
    "Objective by iteration",
    "Certainty of the class of each row",
    "The first iterations of EM",
]


def test_a_report_of_a_mixture_shows_classes_rows_and_the_search(tmp_path: Path) -> None:
    words = ["fit", str(table_path()), "--kind", "type=ignore", "-o", str(tmp_path / "m.sc"), "--starts", "3"]
    assert CliRunner().invoke(main, words).exit_code == 0
    model = sc.load(tmp_path / "m.sc")
    report = model.report(str(table_path()))
    titles = [block.title for block in report.page.blocks if isinstance(block, Picture)]
    assert set(TITLES) <= set(titles)
    assert "Rows that fit worst" in str(report)
    checked(report.html)
    starts = model.fitted_.record.starts
    assert len(starts) > 1
    assert abs(max(map(max, starts)) - model.fitted_.trace[-1]) <= 1e-6 * abs(model.fitted_.trace[-1])
    assert "Rows that fit worst" not in str(model.report(str(table_path()), redact=True))


def test_a_gaussian_mixture_of_an_array_is_reported(mixture: Any) -> None:
    html = mixture.report(blobs()).html
    checked(html)
    assert re.search(r"A mixture of 2 classes", html)


def test_a_hundred_columns_and_twenty_classes_stay_small() -> None:
    rng = np.random.default_rng(0)
    table: dict[str, Any] = {f"number {k}": rng.normal(size=400).tolist() for k in range(50)}
    table |= {f"level {k}": rng.choice(list("abcdefgh"), 400).tolist() for k in range(50)}
    labels = [f"class {k % 20}" for k in range(400)]
    assert len(sc.NaiveBayes().fit(table, labels).report(table, labels).html) <= 1_000_000


def test_the_curves_of_a_mixture_add_up_to_the_histogram_behind_them(mixture: Any) -> None:
    charts = {x.title: x.chart for x in mixture.report(blobs()).page.blocks if isinstance(x, Picture)}
    marks = charts["0"].marks
    lines = [mark for mark in marks if isinstance(mark, Line)]
    total = sum(float(np.trapezoid(line.y, line.x)) for line in lines)
    bars = sum(float((np.asarray(mark.ends) * mark.thick).sum()) for mark in marks if isinstance(mark, Bars))
    assert len(lines) == 2 and 0.9 < total <= 1.0 and abs(total - bars) < 0.06
