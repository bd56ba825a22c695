"""Groups that are none: narrower than their columns can tell apart, resting on too few rows, or without any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.learn.sketch import Sketch
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined, Node, Params
from softcount.table.schema import Key, Schema

NARROW = 1e-6
"""Of a column's variance, or of the square of what its values are apart from each other if that is less."""
COARSE = 1e-2
"""The share of a column's variance up to which its rounding is taken for a width."""
NOBODY = 1e-6
"""Rows that a group must hold not to be dead."""
SLACK = 1e-6


def with_floors(leaves: tuple[Node, ...], schema: Schema, sketch: Sketch) -> tuple[Node, ...]:
    """The leaves with the least variance of every column of numbers told by how it spreads and how it is rounded."""
    floors = column_floors(schema, leaves, sketch)
    return tuple(replace(leaf, setting=replace(leaf.setting, floor=_of_leaf(leaf, floors))) for leaf in leaves)


def _of_leaf(leaf: Node, floors: Mapping[Key, float]) -> float:
    own = [floors[column] for column in leaf.columns if column in floors]
    return min(own) if own else leaf.setting.floor


def column_floors(schema: Schema, leaves: tuple[Node, ...], sketch: Sketch) -> dict[Key, float]:
    """For each column of numbers, the least variance of a group as a share of the column's."""
    logged = {column for leaf in leaves if leaf.family.logged for column in leaf.columns}
    floors = {}
    for place, spec in enumerate(schema.stored("reals")):
        values = sketch.chunk.reals[:, place]
        there = ~np.isnan(values)
        values = np.log(values[there]) if spec.key in logged else values[there]
        floors[spec.key] = least_share(values, sketch.weights[there])
    return floors


def least_share(values: np.ndarray, weights: np.ndarray) -> float:
    """The least variance of a group as a share of the column's, from the spread and the gaps of the column's values.

    Values rounded to 0.1 cannot tell widths below 0.1 / sqrt(12). Where values are not rounded, a thousandth of the
    width they would have if all lay as close together as most do: groups a million widths apart stay what they are,
    which a thousandth of the whole deviation would blur.
    """
    distinct = np.unique(values)
    if len(distinct) < 2:
        return NARROW
    top = np.abs(distinct - distinct[0]).max()
    gaps = np.diff(distinct) / top
    centred = (values - distinct[0]) / top
    spread = np.average((centred - np.average(centred, weights=weights)) ** 2, weights=weights)
    near = (0.25 * np.median(gaps) * len(distinct)) ** 2
    rounding = min(gaps.min() ** 2 / 12, COARSE * spread)
    return float(max(NARROW * min(spread, near), rounding) / spread)


def spikes(model: ClassModel, params: Params, imagined: Imagined, counts: Counts) -> np.ndarray:
    """Which groups are at the floor of some column, though the column as a whole is not; counts are by bundle."""
    found = np.zeros(model.groups, dtype=bool)
    for bundle in model.nodes.bundles:
        family, stats = bundle.family, counts.arrays[bundle.name]
        if bundle.name == ROOT or not family.spread_parameters:
            continue
        for place, (key, own) in enumerate(bundle.apart(params.bundles[bundle.name])):
            if set(family.spread_parameters) & set(imagined.fixed.get(key, ())):
                continue  # it is as narrow as somebody said
            found |= family.at_floor(own, imagined.hypers[key], stats if bundle.alone else stats[:, place])
    return found


def starved(model: ClassModel, rows: np.ndarray, how: str, n_rows: int = 0) -> np.ndarray:
    """Which groups, of so many rows each, have fewer than their widths need; a prior feeds them.

    Weights that add up to less than the number of rows are taken as shares of them: a hundred rows of 0.01 each are
    not one row.
    """
    if how != "ml":
        return np.zeros(rows.shape, dtype=bool)
    rows = rows * np.maximum(1.0, n_rows / np.maximum(rows.sum(axis=0), 1e-300))
    return np.asarray(rows < max([leaf.family.rows_needed(leaf.setting) for leaf in model.leaves], default=0.0) - SLACK)


def sizes(counts: Counts) -> np.ndarray:
    """The rows of each group, whether counts are by node or by bundle."""
    return counts[ROOT].ravel()


def dead(rows: np.ndarray) -> np.ndarray:
    """Which groups, of so many rows each, hold next to nothing of any."""
    return np.asarray(rows < NOBODY)
