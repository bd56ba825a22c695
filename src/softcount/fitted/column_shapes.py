"""What each column looks like in each group of a fitted model: shares of levels, densities over a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from softcount.families import Family, Params
from softcount.fitted.answers import Answer
from softcount.fitted.given_groups import leaf_with
from softcount.records import dataclass
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted

POINTS = 49
"""Points of a density's curve."""
TAIL = 0.01
"""What lies beyond each end of a range, where only the model is there to tell it."""


@dataclass(frozen=True, slots=True)
class ColumnShape:
    """A column in every group: (groups x levels) shares or, of numbers, (groups x points) densities at `points`."""

    key: Key
    levels: Sequence[object] | None
    points: np.ndarray
    heights: np.ndarray
    whole: bool = False


def plain_columns(fitted: Fitted) -> list[Key]:
    """Columns that can be asked about one by one: no text, no words, no successes of trials."""
    found: list[Key] = []
    for leaf in fitted.model.leaves:
        for column in leaf.columns:
            if fitted.schema[column].kind.numeric or fitted.schema[column].kind.coded:
                found.append(column)
    return found


def marginal(fitted: Fitted, column: Key) -> tuple[Family, Params, Sequence[object] | None]:
    """The family and parameters of one column in every group, whatever block it is in, and its levels."""
    leaf = leaf_with(fitted, column)
    leaf.family.refuse_query(column)
    place = leaf.columns.index(column)
    own = leaf.family.scorable(fitted.estimates[leaf.key], leaf.setting)
    unknown = np.full(len(leaf.columns), np.nan) if fitted.schema[column].kind.numeric else np.zeros(len(leaf.columns))
    family, params = leaf.family.conditional(own, leaf.setting, unknown, place)
    return family, params, leaf.family.levels_of(leaf.setting, place)


def column_shape(fitted: Fitted, column: Key) -> ColumnShape:
    """The column in every group."""
    family, params, levels = marginal(fitted, column)
    if levels is not None:
        return ColumnShape(column, levels, np.arange(len(levels)), np.asarray(params["probability"], dtype=float))
    low, high = column_range(fitted, column)
    whole = family.whole_numbers and high - low < POINTS
    points = np.arange(np.floor(low), np.ceil(high) + 1) if whole else np.linspace(low, high, POINTS)
    each = np.eye(fitted.n_groups)
    bounds = fitted.schema[column].bounds
    heights = np.stack([np.asarray(Answer(one, family, params, bounds=bounds).pdf(points)) for one in each])
    return ColumnShape(column, None, points, heights, whole)


def column_range(fitted: Fitted, column: Key) -> tuple[float, float]:
    """Where nearly all of a column's numbers lie: in its training table if that was kept, else by the model."""
    known = None if fitted.record is None or fitted.record.table is None else fitted.record.table.column(column)
    if known is not None and known.quantiles:
        low, high = known.quantiles[1], known.quantiles[-2]
        room = 0.15 * (high - low)
        low, high = max(low - room, known.quantiles[0]), min(high + room, known.quantiles[-1])
    else:
        family, params, _ = marginal(fitted, column)
        whole = Answer(fitted.shares, family, params, bounds=fitted.schema[column].bounds)
        low, high = whole.quantile(TAIL), whole.quantile(1 - TAIL)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
