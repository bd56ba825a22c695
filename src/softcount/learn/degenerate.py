"""Groups that are none: narrower than their columns can tell apart, resting on too few rows, or without any."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.learn.sketch import Sketch
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined, Node, Params
from softcount.numerics.rounding import ColumnFloor, least_share
from softcount.table.schema import Key, Schema

NOBODY = 1e-6
"""Rows that a group must hold not to be dead."""
SLACK = 1e-6


def with_floors(leaves: tuple[Node, ...], schema: Schema, sketch: Sketch) -> tuple[Node, ...]:
    """The leaves with the least variance of every column of numbers told by how it spreads and how it is rounded."""
    floors = column_floors(schema, leaves, sketch)
    return tuple(_with_floor(leaf, [floors[column] for column in leaf.columns if column in floors]) for leaf in leaves)


def _with_floor(leaf: Node, own: list[ColumnFloor]) -> Node:
    if not own:
        return leaf
    least = min(floor.share for floor in own)
    return replace(leaf, setting=replace(leaf.setting, floor=least, rounded=all(floor.rounded for floor in own)))


def column_floors(schema: Schema, leaves: tuple[Node, ...], sketch: Sketch) -> dict[Key, ColumnFloor]:
    """For each column of numbers, the least variance of a group."""
    logged = {column for leaf in leaves if leaf.family.logged for column in leaf.columns}
    floors = {}
    for place, spec in enumerate(schema.stored("reals")):
        values = sketch.chunk.reals[:, place]
        there = ~np.isnan(values)
        values = np.log(values[there]) if spec.key in logged else values[there]
        floors[spec.key] = least_share(values, sketch.weights[there])
    return floors


def spikes(model: ClassModel, params: Params, imagined: Imagined, counts: Counts) -> np.ndarray:
    """Which groups are at the floor of some column, though the column as a whole is not; counts are by bundle.

    Where the floor is how a column is rounded, rows may well be alike in it: no density grows for ever. A group is a
    spike there only if its rows are alike in every such column. Of handwritten digits nearly every class has pixels
    that are always empty, so that all starts met a floor, and one that sat on a single row won.
    """
    found, alike, rounded = np.zeros(model.groups, dtype=bool), np.ones(model.groups, dtype=bool), False
    for bundle in model.nodes.bundles:
        family, stats = bundle.family, counts.arrays[bundle.name]
        if bundle.name == ROOT or not family.spread_parameters:
            continue
        for place, (key, own) in enumerate(bundle.apart(params.bundles[bundle.name])):
            if set(family.spread_parameters) & set(imagined.fixed.get(key, ())):
                continue  # it is as narrow as somebody said
            held = family.at_floor(own, imagined.hypers[key], stats if bundle.alone else stats[:, place])
            if not bundle.nodes[place].setting.rounded:
                found |= held
            elif held.any() or not family.degenerate(own, imagined.hypers[key]).any():  # not of a constant column
                alike, rounded = alike & held, True
    return found | alike if rounded else found


def starved(model: ClassModel, rows: np.ndarray, how: str) -> np.ndarray:
    """Which groups, of so many rows each, have fewer than their widths need; a prior feeds them."""
    if how != "ml":
        return np.zeros(rows.shape, dtype=bool)
    return np.asarray(rows < max([leaf.family.rows_needed(leaf.setting) for leaf in model.leaves], default=0.0) - SLACK)


def sizes(counts: Counts) -> np.ndarray:
    """The rows of each group, whether counts are by node or by bundle."""
    return counts[ROOT].ravel()


def dead(rows: np.ndarray) -> np.ndarray:
    """Which groups, of so many rows each, hold next to nothing of any."""
    return np.asarray(rows < NOBODY)


def as_rows(sizes: np.ndarray, n_rows: int) -> np.ndarray:
    """How many rows each group holds. Weights that add up to less than the number of rows are taken as shares of them:
    a hundred rows of 0.01 each are not one row."""
    whole = sizes.sum(axis=0)
    return sizes * np.where((whole > 0) & (whole < n_rows), n_rows / np.where(whole > 0, whole, 1.0), 1.0)
