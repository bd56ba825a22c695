"""Groups that are none: narrower than their columns can tell apart, resting on too few rows, or without any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.families import Hyper, LogNormal, Multinormal, Normal, Params
from softcount.families.multinormal import block_moments
from softcount.learn.sketch import Sketch
from softcount.models.nodes import Node
from softcount.models.star import Imagined, Star, StarParams
from softcount.table.schema import Key, Kind, Schema

NARROW = 1e-6
"""Of a column's variance, or of the square of what its values are apart from each other if that is less."""
COARSE = 1e-2
"""The share of a column's variance up to which its rounding is taken for a width."""
NOBODY = 1e-6
"""Rows that a group must hold not to be dead."""
SLACK = 1e-6


def with_floors(star: Star, sketch: Sketch) -> Star:
    """The star with the least variance of every column of numbers told by how it spreads and how it is rounded."""
    floors = column_floors(star.schema, star.leaves, sketch)
    leaves = [replace(leaf, setting=replace(leaf.setting, floor=_of_leaf(leaf, floors))) for leaf in star.leaves]
    return replace(star, leaves=tuple(leaves))


def _of_leaf(leaf: Node, floors: Mapping[Key, float]) -> float:
    own = [floors[column] for column in leaf.columns if column in floors]
    return min(own) if own else leaf.setting.floor


def column_floors(schema: Schema, leaves: tuple[Node, ...], sketch: Sketch) -> dict[Key, float]:
    """For each column of numbers, the least variance of a group as a share of the column's."""
    logged = {column for leaf in leaves if leaf.family.kind is Kind.POSITIVE for column in leaf.columns}
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


def spikes(star: Star, params: StarParams, imagined: Imagined, counts: Counts) -> np.ndarray:
    """Which groups are at the floor of some column, though the column as a whole is not."""
    found = np.zeros(star.groups, dtype=bool)
    for leaf in star.leaves:
        if {"variance", "covariance"} & set(imagined.fixed.get(leaf.key, ())):
            continue  # it is as narrow as somebody said
        found |= at_floor(leaf, params.leaves[leaf.key], imagined.leaves[leaf.key], counts)
    return found


def at_floor(leaf: Node, params: Params, hyper: Hyper, counts: Counts) -> np.ndarray:
    """Which groups a leaf's floor holds."""
    if isinstance(leaf.family, Multinormal):
        whole = block_moments(counts.arrays[leaf.key].sum(0).spread(0))
        spread = whole[2] / np.maximum(whole[0], 1e-300)[:, None, None]
        return _held(leaf.family, params["covariance"], hyper) > _held(leaf.family, spread, hyper)
    if isinstance(leaf.family, (Normal, LogNormal)) and "floor" in hyper:
        floor = hyper["floor"] * (1 + SLACK)
        known = np.asarray(hyper.get("known", 0.0)) > 0
        at: np.ndarray = (params["variance"] <= floor) & ~known & (hyper["whole"] > floor)
        return at
    held = leaf.family.degenerate(params, hyper)
    if not held.any():
        return held
    pooled = leaf.family.estimate(counts.arrays[leaf.key].sum(0).spread(0), hyper, "ml")
    return held & ~leaf.family.degenerate(pooled, hyper)


def held(leaf: Node, params: Params, hyper: Hyper) -> np.ndarray:
    """Which groups a leaf's floor holds, also where the whole table does not vary."""
    if isinstance(leaf.family, Multinormal):
        return _held(leaf.family, params["covariance"], hyper) > 0
    # Charts that steps are taken in bring a floor back off by rounding.
    slack = {"floor": hyper["floor"] * (1 + SLACK)} if "floor" in hyper else {}
    return leaf.family.degenerate(params, hyper | slack)


def _held(family: Multinormal, covariance: np.ndarray, hyper: Hyper) -> np.ndarray:
    """How many directions of each covariance are as narrow as the floor."""
    whole = hyper["whole"]
    unit = np.sqrt(np.full(whole.shape, whole.mean()) if family.covariance == "spherical" else whole)
    values = np.linalg.eigvalsh(covariance / (unit[:, None] * unit))
    return (values <= float(hyper["floor"]) * (1 + SLACK)).sum(axis=-1)


def starved(star: Star, counts: Counts, how: str, n_rows: int = 0) -> np.ndarray:
    """Which groups have fewer rows than their widths need; a prior feeds them.

    Weights that add up to less than the number of rows are taken as shares of them: a hundred rows of 0.01 each are
    not one row.
    """
    rows = counts[ROOT]
    rows = rows * max(1.0, n_rows / max(float(rows.sum()), 1e-300))
    if how != "ml":
        return np.zeros(len(rows), dtype=bool)
    return rows < max([needed(leaf) for leaf in star.leaves], default=0.0) - SLACK


def needed(leaf: Node) -> float:
    """Rows that a group's width in this leaf cannot do without."""
    family: Any = leaf.family
    if isinstance(family, Multinormal):
        return {"full": len(leaf.columns) + 1.0, "diagonal": 2.0, "spherical": 2.0}.get(family.covariance, 0.0)
    wide = leaf.family.chart.keys() & {"variance", "spread", "shape"}
    free = wide and getattr(family, "variance", None) is None
    return 2.0 if free and getattr(family, "tied", None) in (None, "columns") else 0.0


def dead(counts: Counts) -> np.ndarray:
    """Which groups hold next to nothing of any row."""
    return np.asarray(counts[ROOT] < NOBODY)
