"""Whole sequences made ready, in parts of a good length."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from softcount.models.tiles import Ready, rows_of
from softcount.records import dataclass

PORTION = 8192
"""Steps of whole sequences that are one part of the work."""


@dataclass(frozen=True, slots=True)
class PathRows:
    """Whole sequences made ready: their rows, the borders between them, the weight of each, the number of the first."""

    rows: Ready
    borders: np.ndarray
    weights: np.ndarray | None
    first: int

    @property
    def start(self) -> int:
        return self.rows.start

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def labels(self) -> np.ndarray | None:
        return self.rows.labels

    def shortened(self, rows: int) -> PathRows:
        """The same, or only so many steps of a single long sequence."""
        return _cut(self, 0, rows) if self.n_rows > rows else self

    def heavier(self, factor: float) -> PathRows:
        """The same rows, so many times as heavy."""
        each = np.ones(len(self.borders) - 1) if self.weights is None else self.weights
        rows = np.ones(self.n_rows) if self.rows.weights is None else self.rows.weights
        return replace(self, weights=each * factor, rows=replace(self.rows, weights=rows * factor))


def portions_of(part: PathRows) -> list[PathRows]:
    """A part cut between sequences, so that each piece has about `PORTION` steps."""
    if part.n_rows <= PORTION:
        return [part]
    cuts, borders = [0], part.borders
    while cuts[-1] < len(borders) - 1:
        fits = int(np.searchsorted(borders, borders[cuts[-1]] + PORTION, "right")) - 1
        cuts.append(max(cuts[-1] + 1, fits))
    return [_between(part, a, b) for a, b in pairwise(cuts)]


def _between(part: PathRows, a: int, b: int) -> PathRows:
    """Some of the sequences of a part."""
    own = _cut(part, int(part.borders[a]), int(part.borders[b]))
    weights = None if part.weights is None else part.weights[a:b]
    return replace(own, borders=part.borders[a : b + 1] - part.borders[a], weights=weights)


def _cut(part: PathRows, start: int, stop: int) -> PathRows:
    """Rows from one to another as one sequence."""
    rows, cut = part.rows, slice(start, stop)
    sides: dict[str, Any] = {
        name: value[cut] if isinstance(value, np.ndarray) else value
        for name, value in (("labels", rows.labels), ("weights", rows.weights), ("base", rows.base))
    }
    data = [rows_of(data, cut) for data in rows.data]
    own = replace(rows, data=data, **sides, start=rows.start + start, n_rows=stop - start)
    weights = None if part.weights is None else part.weights[:1]
    return PathRows(own, np.array([0, stop - start], np.int64), weights, part.first)
