"""What is believed after each observation, drawn: as lines of blocks for a terminal, and as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from softcount.pictures.line_chart import Chart, ChartLine, stacked_svg
from softcount.pictures.text_curves import axis, spark
from softcount.pictures.visible_text import printable
from softcount.records import dataclass

ACROSS = 60
"""Columns of a drawing in a terminal."""
LONGEST = 20


@dataclass(frozen=True)
class BeliefCourse:
    """Posteriors after 0, 1, 2, ... observations by hypothesis, and the predictions of what comes next by rule."""

    posteriors: Mapping[str, np.ndarray]
    predictions: Mapping[str, np.ndarray] = field(default_factory=dict)
    predicted: str = ""

    @property
    def observations(self) -> int:
        return len(next(iter(self.posteriors.values()))) - 1

    def text(self) -> str:
        """A line for each hypothesis and each prediction, a whole block being one."""
        lines = [f"posterior after 0 to {self.observations} observations (a whole block is 1)"]
        lines += _lines(self.posteriors)
        if self.predictions:
            lines += [f"prediction that {printable(self.predicted)} comes next", *_lines(self.predictions)]
        width = min(ACROSS, self.observations + 1)
        marks = axis(0, self.observations, width) if self.observations and width >= 10 else []
        return "\n".join([*lines, *(" " * (LONGEST + 1) + mark for mark in marks)])

    def svg(self) -> str:
        """The posteriors in one frame and the predictions in another below it."""
        charts = [_chart("Posterior of each hypothesis", "posterior", self.posteriors)]
        if self.predictions:
            charts.append(_chart(f"Prediction that {self.predicted} comes next", "prediction", self.predictions))
        return stacked_svg(charts)


def _lines(courses: Mapping[str, np.ndarray]) -> list[str]:
    names = [printable(name) for name in courses]
    cut = [name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in names]
    top = max(1.0, *(float(np.nan_to_num(course).max()) for course in courses.values()))
    return [f"{name:<{LONGEST}} {spark(_sampled(own), top)}" for name, own in zip(cut, courses.values(), strict=True)]


def _sampled(course: Sequence[float] | np.ndarray) -> np.ndarray:
    """At most so many of its numbers as a line has columns, the first and the last among them."""
    course = np.asarray(course, dtype=float)
    if len(course) <= ACROSS:
        return course
    return np.asarray(course[np.round(np.linspace(0, len(course) - 1, ACROSS)).astype(int)])


def _chart(title: str, y_name: str, courses: Mapping[str, np.ndarray]) -> Chart:
    """Lines over the number of observations; a number that is not there yet has no point."""
    curves = []
    for name, course in courses.items():
        known = np.isfinite(course)
        if known.any():
            curves.append(ChartLine(name, np.flatnonzero(known).astype(float), np.asarray(course)[known]))
    highest = max(1.0, *(float(curve.y.max()) for curve in curves))
    return Chart(title, "observations", y_name, curves, y_top=1.02 * highest)
