"""Compiled loops of binned densities over all values, loaded when a density is binned."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.kernels.jit import jit

PARTS = float(1 << 20)
"""Positions are rounded to this fraction of a cell, so that sums of rows are exact in any order."""


@jit()
def share_out(values: Any, weights: Any, scale: Any, first: Any, nodes: Any) -> None:
    """Add the weight of each value to the two nodes around it, more to the nearer; `nodes[0]` is node number `first`.

    An empty `weights` means weights of one.
    """
    for i in range(values.size):
        place = values[i] * scale
        cell = np.floor(place)
        after = np.floor((place - cell) * PARTS + 0.5) / PARTS
        node = np.int64(cell) - first
        weight = weights[i] if weights.size else 1.0
        nodes[node] += weight * (1.0 - after)
        nodes[node + 1] += weight * after


@jit()
def read_curve(queries: Any, scale: Any, blocks: Any, curve: Any, found: Any) -> None:
    """Interpolate the curve at each query by a cubic through the four nodes around it; 0 where there are no nodes.

    `curve` holds the nodes of all blocks in order, with two extra nodes at each end.
    """
    per_block = (curve.size - 4) // blocks.size
    low, high = blocks[0] * float(per_block), (blocks[-1] + 1) * float(per_block)
    for i in range(queries.size):
        place = queries[i] * scale
        found[i] = 0.0
        if not low <= place < high:
            continue
        cell = np.floor(place)
        node = np.int64(cell)
        block = node // per_block
        slot = block - blocks[0]
        if slot >= blocks.size or blocks[slot] != block:
            slot = np.searchsorted(blocks, block)
            if blocks[slot] != block:
                continue
        at = slot * per_block + (node - block * per_block) + 2
        t = place - cell
        ahead, behind, twice = 1.0 - t, 1.0 + t, 2.0 - t
        found[i] = 0.5 * ahead * twice * (behind * curve[at] + t * curve[at - 1] * (-1.0 / 3.0)) + 0.5 * t * behind * (
            twice * curve[at + 1] - ahead * curve[at + 2] * (1.0 / 3.0)
        )
