"""Which density fits a column: each learned from some of its rows and asked for the others."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.evaluate.column_densities import ColumnFit, Learn, ValueGrid, candidates
from softcount.records import dataclass
from softcount.run.progress import Tell, interrupts_end, keep_quiet
from softcount.table.chunk import Split

FOLDS = 5
LEAST_ROWS = 10
"""Rows of a group below which folds say nothing."""
CLOSEST, FURTHEST = 1e-150, 1e150
"""Half of the range of values between which squares are numbers."""
MOST_ROWS = 20_000
"""Rows that are ranked by; of more, some are drawn."""


@dataclass(frozen=True)
class RankedDensity:
    """One way to describe a column: nats a row held out, how far behind the best, and what was learned of each group.

    `error` is the standard error of `behind`; `impossible` are rows held out that it called impossible.
    """

    name: str
    log_likelihood: float
    behind: float
    error: float
    impossible: int
    fits: Mapping[Any, ColumnFit]

    @property
    def bits_behind(self) -> float:
        return self.behind / float(np.log(2))


@dataclass(frozen=True)
class DensityRanking:
    """The densities of a column, best first, with the values of every group that they are of.

    `left_out` are groups that are too small; `unlabelled` the values whose group is not known; `failed` says why a
    density is not among them; `step` is what the values are rounded to, 0 where they are not.
    """

    densities: list[RankedDensity]
    groups: dict[Any, np.ndarray]
    rows: int
    ranked_rows: int
    left_out: dict[Any, int]
    failed: dict[str, str]
    unlabelled: int
    step: float

    @property
    def best(self) -> RankedDensity:
        return self.densities[0]


@interrupts_end()
def rank_densities(values: Any, by: Any = None, seed: int = 0, tell: Tell = keep_quiet) -> DensityRanking:
    """Histogram, parametric, kernel and mixture densities of a column, by the log-likelihood of rows held out.

    Each is learned from four fifths of the rows and asked for the last, in turn; with `by`, a label for each row, for
    every group by itself. Missing values are left out, and so are groups of fewer than ten rows.

    >>> found = rank_densities(np.random.default_rng(0).normal(size=200))
    >>> found.best.name, found.best.fits[None].told
    ('kernel (cv)', 'bandwidth 0.08843')
    """
    column = np.asarray(values, dtype=float)
    groups, left_out = _groups(column, by)
    total = sum(map(len, groups.values()))
    drawn = {name: _drawn(own, total, seed) for name, own in groups.items()}
    grid = ValueGrid.of(np.concatenate(list(groups.values())))
    heights: dict[str, np.ndarray] = {}
    fits: dict[str, dict[Any, ColumnFit]] = {}
    failed: dict[str, str] = {}
    named = candidates(grid)
    for place, (name, learn) in enumerate(named.items()):
        tell("densities", place, len(named))
        try:
            heights[name] = np.concatenate([held_out(learn, own, grid, seed) for own in drawn.values()])
            fits[name] = {group: learn(own, grid) for group, own in drawn.items()}
        except DataError as error:  # such as values too rounded for a rule: the others are ranked without it
            failed[name] = str(error)
    unlabelled = int((~np.isnan(column)).sum()) - total - sum(left_out.values())
    ranked_rows = sum(map(len, drawn.values()))
    return DensityRanking(_ranked(heights, fits), groups, total, ranked_rows, left_out, failed, unlabelled, grid.step)


def _groups(values: np.ndarray, by: Any) -> tuple[dict[Any, np.ndarray], dict[Any, int]]:
    """The values of every group, largest first, and the groups that are too small."""
    if np.isinf(values).any():
        raise DataError(f"row {int(np.argmax(np.isinf(values))) + 1} is infinite. Leave it out, or make it missing.")
    labels = [None] * len(values) if by is None else list(by)
    if len(labels) != len(values):
        raise DataError(f"there are {len(values):,} values and {len(labels):,} labels. Give one for each.")
    places: dict[Any, list[int]] = {}
    for place, (label, known) in enumerate(zip(labels, ~np.isnan(values), strict=True)):
        if known and (by is None or label is not None):
            places.setdefault(label, []).append(place)
    found = {name: values[own] for name, own in sorted(places.items(), key=lambda item: -len(item[1]))}
    kept = {name: own for name, own in found.items() if len(own) >= LEAST_ROWS and own.max() > own.min()}
    if not kept:
        raise DataError(_nothing(found, len(values)))
    for own in kept.values():
        if not CLOSEST < own.max() / 2 - own.min() / 2 < FURTHEST:
            told = f"from {own.min():g} to {own.max():g}"
            raise DataError(
                f"values {told} lie too far apart, or too close together, to be squared: change their unit."
            )
    return kept, {name: len(own) for name, own in found.items() if name not in kept}


def _nothing(found: Mapping[Any, np.ndarray], rows: int) -> str:
    if len(found) == 1 and len(next(iter(found.values()))) >= LEAST_ROWS:
        own = next(iter(found.values()))
        return f"all {len(own):,} values are {own[0]:g}, so there is no density to choose."
    told = "" if len(found) <= 1 else " in any group"
    most = max(map(len, found.values()), default=0)
    return f"there are {most:,} values{told} ({rows:,} rows), and folds need {LEAST_ROWS} that are not all equal."


def _drawn(values: np.ndarray, total: int, seed: int) -> np.ndarray:
    """The values, or as many of them as this group's part of the most rows that are ranked by."""
    if total <= MOST_ROWS:
        return values
    size = max(LEAST_ROWS, round(MOST_ROWS * len(values) / total))
    places = np.random.default_rng(seed).choice(len(values), min(size, len(values)), replace=False)
    return values[np.sort(places)]


def held_out(learn: Learn, values: np.ndarray, grid: ValueGrid, seed: int) -> np.ndarray:
    """The log-density of every value by a density of the other folds."""
    folds = Split(FOLDS, seed).of_first(len(values))
    found = np.empty(len(values))
    for fold in np.unique(folds):
        here = folds == fold
        found[here] = learn(values[~here], grid).log_density(values[here])
    return found


def _ranked(heights: Mapping[str, np.ndarray], fits: Mapping[str, Mapping[Any, ColumnFit]]) -> list[RankedDensity]:
    if not heights:
        raise DataError("no density could be learned from these values.")
    order = sorted(heights, key=lambda name: -heights[name].mean())
    best, found = heights[order[0]], []
    for name in order:
        own = heights[name]
        impossible = int(np.isneginf(own).sum())
        behind = best - own if not impossible else np.full(1, np.inf)
        error = float(behind.std(ddof=1) / sqrt(len(behind))) if len(behind) > 1 else np.nan
        found.append(RankedDensity(name, float(own.mean()), float(behind.mean()), error, impossible, fits[name]))
    return found
