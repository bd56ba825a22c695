"""Learning curves: the same classifiers learned from ever more of the rows, and asked for the same rows held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.errors import SoftcountError
from softcount.estimators.result_frames import arrow_lines
from softcount.estimators.rivals import Rival, RivalTable
from softcount.evaluate.calibrate import SMALLEST
from softcount.pictures.line_chart import Chart, ChartLine, chart_svg
from softcount.run.progress import Tell, keep_quiet

FEWEST = 20
"""Rows of the shortest training set."""
STEPS = (1, 2, 5)


class LearningCurves(Struct, frozen=True, eq=False):
    """Log-loss and accuracy of each classifier (a line each) by rows learned from; NaN where it could not learn."""

    names: list[str]
    sizes: np.ndarray
    log_loss: np.ndarray
    accuracy: np.ndarray

    @property
    def table(self) -> Any:
        """An Arrow table with a line for every classifier and size."""
        cells = [(name, size) for name in range(len(self.names)) for size in range(len(self.sizes))]
        return arrow_lines(
            [
                {
                    "model": self.names[name], "rows": int(self.sizes[size]),
                    "log_loss": float(self.log_loss[name, size]), "accuracy": float(self.accuracy[name, size]),
                }
                for name, size in cells
            ]
        )  # fmt: skip

    @property
    def leaders(self) -> list[str]:
        """Who has the lowest log-loss at each size."""
        return [self.names[place] for place in np.nanargmin(self.log_loss, axis=0)]

    @property
    def words(self) -> str:
        """Who leads with little and who with much, as one would say it.

        >>> one = np.array([[0.5, 0.4, 0.4], [0.9, 0.5, 0.3]])
        >>> LearningCurves(["plain", "pairs"], np.array([20, 50, 100]), one, one).words
        'lowest log-loss: plain from 20 rows, pairs from 100 rows.'
        """
        leaders = self.leaders
        turns = [place for place, name in enumerate(leaders) if place == 0 or name != leaders[place - 1]]
        parts = [f"{leaders[place]} from {self.sizes[place]:,} rows" for place in turns]
        return f"lowest log-loss: {', '.join(parts)}."

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest log-loss and the highest worth drawing: who is far off all would press the others together."""
        known = self.log_loss[np.isfinite(self.log_loss)]
        low, high = float(known.min()), float(min(known.max(), 3.0 * np.median(known)))
        return low, high if high > low else low + 1.0

    def svg(self) -> str:
        """The curves as a picture: log-loss over rows learned from, whose scale is logarithmic."""
        x = np.log10(self.sizes)
        known = [np.isfinite(line) for line in self.log_loss]
        curves = [
            ChartLine(name, x[inside], line[inside])
            for name, line, inside in zip(self.names, self.log_loss, known, strict=True)
            if inside.any()
        ]
        ticks = {float(at): f"{size:,}" for at, size in zip(x, self.sizes, strict=True)}
        title = "Log-loss on rows held out, by rows learned from"
        return chart_svg(
            Chart(title, "rows learned from", "log-loss", curves, y_top=1.05 * self.ends[1], x_ticks=ticks)
        )


def ladder(least: int, most: int) -> list[int]:
    """Round numbers from one to another, then the other: 1, 2, 5, 10, ... of them.

    >>> ladder(20, 700), ladder(20, 105)
    ([20, 50, 100, 200, 500, 700], [20, 50, 105])
    """
    powers = range(len(str(most)))
    round_ones = [step * 10**power for power in powers for step in STEPS]
    return [*(size for size in round_ones if least <= size <= most / 1.1), most]


def nested_rows(labels: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Places of so many rows, with at least one of every class; fewer rows are always among more.

    >>> nested_rows(np.array([0, 0, 0, 0, 1]), 2, 0).size
    2
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    first = np.unique(labels[order], return_index=True)[1]
    rest = np.delete(np.arange(len(order)), first)
    return np.sort(order[np.concatenate([first, rest])[:size]])


def learning_curves(
    rivals: Sequence[Rival],
    table: RivalTable,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    full: Mapping[str, tuple[float, float]],
    seed: int,
    tell: Tell = keep_quiet,
) -> LearningCurves:
    """Every classifier learned from parts of what it may learn from; `full` has log-loss and accuracy of the whole."""
    least = max(FEWEST, 2 * table.classes)
    sizes = ladder(least, min(len(train) for train, _ in splits))
    found = np.full((2, len(rivals), len(sizes)), np.nan)
    for column, size in enumerate(sizes[:-1]):
        tell("learning curve", column, len(sizes))
        parts = [(train[nested_rows(table.labels[train], size, seed)], test) for train, test in splits]
        for line, rival in enumerate(rivals):
            found[:, line, column] = _figures(rival, table, parts)
    for line, rival in enumerate(rivals):
        found[:, line, -1] = full[rival.name]
    return LearningCurves([rival.name for rival in rivals], np.array(sizes), *found)


def _figures(
    rival: Rival, table: RivalTable, splits: Sequence[tuple[np.ndarray, np.ndarray]]
) -> tuple[float, float]:  # fmt: skip
    """Log-loss and accuracy over all rows held out; NaN where too few rows were there to learn from."""
    losses, right = [], []
    for train, test in splits:
        try:
            proba = rival.proba(table.take(train), table.take(test))[0]
        except (SoftcountError, ValueError):
            return float("nan"), float("nan")
        labels = table.labels[test]
        losses.append(-np.log(np.maximum(proba[np.arange(len(test)), labels], SMALLEST)))
        right.append(proba.argmax(axis=1) == labels)
    return float(np.concatenate(losses).mean()), float(np.concatenate(right).mean())
