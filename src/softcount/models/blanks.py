"""What a hole in a correlated block is taken for before anything is known of its group: its column as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softcount.families import Multinormal
from softcount.families.normal import moments
from softcount.models.nodes import Node
from softcount.models.star import Star
from softcount.numerics.twofold import Twofold
from softcount.table.chunk import Chunk


def with_blanks(star: Star, chunks: Sequence[Chunk]) -> Star:
    """The star with each holed block's columns summed up; the star itself where no block has a hole."""
    leaves = tuple(_blanked(leaf, star, chunks) for leaf in star.leaves)
    same = all(new is old for new, old in zip(leaves, star.leaves, strict=True))
    return star if same else replace(star, leaves=leaves)


def _blanked(leaf: Node, star: Star, chunks: Sequence[Chunk]) -> Node:
    if leaf.family.dotted or leaf.family.exact:
        return leaf
    blocks = [star.column(leaf, chunk) for chunk in chunks]
    if not isinstance(leaf.family, Multinormal):
        weights = [np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights for chunk in chunks]
        return replace(leaf, setting=replace(leaf.setting, blank=leaf.family.blank(blocks, weights, leaf.setting)))
    if not any(np.isnan(block).any() for block in blocks):
        return leaf
    total = Twofold.of(np.zeros((len(leaf.columns), 3)))
    for block, chunk in zip(blocks, chunks, strict=True):
        total = total + _sums(leaf, block, chunk.weights)
    rows, mean, squares = moments(total)
    blank = mean, np.where(rows > 0, squares / np.maximum(rows, 1e-300), 1.0)
    return replace(leaf, setting=replace(leaf.setting, blank=blank))


def _sums(leaf: Node, block: np.ndarray, weights: np.ndarray | None) -> Twofold:
    """Weight, sum and squares of every column's own cells."""
    there = ~np.isnan(block)
    mass = there * (1.0 if weights is None else weights[:, None])
    moved = np.where(there, (block - leaf.setting.anchor) * leaf.setting.scale, 0.0)
    return Twofold.of(np.stack([mass.sum(axis=0), (mass * moved).sum(axis=0), (mass * moved**2).sum(axis=0)], axis=1))
