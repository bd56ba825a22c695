"""Mixtures of trees in model files. Nothing that is read is trusted."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.files.codec import Arrays, Document, check_column, decode, finite_array, require
from softcount.fitted.joint import Trees
from softcount.table.schema import Schema
from softcount.tree_mixtures.columns import Categories, Coding, Levels, Number
from softcount.tree_mixtures.mixture import Layout, TreeMixture

WHAT = "its mixture of trees"


def decode_trees(document: Document, arrays: Arrays, schema: Schema) -> Trees:
    """Return the mixture of trees in a file's content after checking it."""
    found = decode(Trees, document, arrays, "trees", WHAT)
    check_coding(found.coding, schema)
    check_mixture(found.mixture, found.coding)
    return found


def check_coding(coding: Coding, schema: Schema) -> None:
    """Raise an error unless every column of the coding is one of the schema, with parts that fit it."""
    parts, numbers = 0, 0
    for own in coding.columns:
        key = check_column(own.key)
        require(key in schema.by_key and schema.by_key[key].used, f"{WHAT} has a column {key!r} that the table lacks.")
        coded = schema[key].kind.coded
        require(coded == isinstance(own, Categories), f"column {key!r} is of another kind in {WHAT}.")
        if own.part >= 0 or not isinstance(own, Number):
            require(own.part == parts, f"the parts of {WHAT} are not in order.")
            parts += 1
        if isinstance(own, Categories):
            width = len(schema[key].levels) + 2
            sound = own.codes.dtype == np.int64 and own.codes.shape == (width,) and 0 < own.size <= width
            require(
                sound and own.codes.min() >= -1 and own.codes.max() < own.size, f"the codes of {key!r} make no sense."
            )
            require(own.codes[0] == -1 and set(range(own.size)) <= set(own.codes.tolist()), f"{key!r} lacks a code.")
            require((own.codes[1:-1] >= 0).all(), f"{key!r} has a category without a code.")
            finite_array(own.log_shares, (width,), f"the shares of {key!r}")
        elif isinstance(own, Levels):
            require(len(own.values) > 1, f"the values of {key!r} are too few.")
            _check_rising(own.values, f"the values of {key!r}")
        else:
            require(own.number == numbers, f"the numbers of {WHAT} are not in order.")
            numbers += 1
            require(len(own.spikes) == 0 or own.part >= 0, f"the spikes of {key!r} have no part.")
            _check_rising(own.spikes, f"the spikes of {key!r}")
            require(
                len(own.unit.x) > 1 and own.unit.x.shape == own.unit.z.shape, f"the unit of {key!r} makes no sense."
            )
            _check_rising(own.unit.x, f"the unit of {key!r}")
            _check_rising(own.unit.z, f"the unit of {key!r}")
            require(own.bounds[0] < own.bounds[1], f"the bounds of {key!r} make no sense.")
    require(len({own.key for own in coding.columns}) == len(coding.columns), f"{WHAT} has a column twice.")


def _check_rising(values: np.ndarray, what: str) -> None:
    require(values.ndim == 1, f"{what} make no sense.")
    finite_array(values, values.shape, what)
    require((np.diff(values) > 0).all(), f"{what} do not increase.")


def check_mixture(mixture: TreeMixture, coding: Coding) -> None:
    """Raise an error unless structures and parameters of a mixture fit each other and the coding."""
    layout = mixture.layout
    require(layout.sizes == coding.sizes and layout.n_numbers == len(coding.numbers), f"{WHAT} has other parts.")
    require(len(layout.shapes) > 0, f"{WHAT} has no component.")
    for shape in layout.shapes:
        parts = len(layout.sizes)
        require(len(shape.parents) == parts and all(-1 <= p < parts for p in shape.parents), f"{WHAT} has odd parents.")
        _check_forest(shape.parents)
        members = sorted(r for block in shape.blocks for r in block.members)
        require(members == list(range(layout.n_numbers)), f"{WHAT} has other numbers than its columns.")
        require(all(-1 <= block.anchor < parts and block.members for block in shape.blocks), f"{WHAT} has odd anchors.")
    check_sizes(layout, mixture)
    rows = layout.entries[0]
    sums = np.bincount(rows, mixture.tables) if len(rows) else np.ones(1)
    require((mixture.tables > 0).all() and np.abs(sums - 1).max() < 1e-6, f"{WHAT} has tables that are no shares.")
    require(abs(float(np.exp(mixture.log_weights).sum()) - 1) < 1e-6, f"{WHAT} has weights that do not sum to one.")
    for b in range(len(layout.blocks)):
        _, _, square, n, size = layout.cells(b)
        covariance = mixture.covariances[square].reshape(n, size, size)
        require(np.array_equal(covariance, covariance.transpose(0, 2, 1)), f"{WHAT} has a covariance that is none.")
        require(np.linalg.eigvalsh(covariance).min() > 0, f"{WHAT} has a covariance that is none.")


def check_sizes(layout: Layout, mixture: TreeMixture) -> None:
    widths = (len(layout.shapes), *(layout.widths[at] for at in (0, 2, 3)))
    arrays: tuple[Any, ...] = (mixture.log_weights, mixture.tables, mixture.means, mixture.covariances)
    for width, array in zip(widths, arrays, strict=True):
        finite_array(array, (width,), WHAT)


def _check_forest(parents: tuple[int, ...]) -> None:
    for d in range(len(parents)):
        p, steps = parents[d], 0
        while p >= 0 and steps <= len(parents):
            p, steps = parents[p], steps + 1
        require(p < 0, f"{WHAT} has a cycle.")
