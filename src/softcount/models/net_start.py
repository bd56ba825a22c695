"""Where EM on a network starts: hidden nodes as if rows near the same seed had the same level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from softcount.counts import Counts
from softcount.models.nodes import Imagined, Params

if TYPE_CHECKING:
    from softcount.models.net import Net, NetRows

BLUR = 0.1
"""The share of every table of a start that is as if its parents did not matter."""
ENOUGH_ROWS = 4096
"""Rows among which seeds are looked for."""


def drawn_start(model: Net, ready: NetRows, imagined: Imagined, rng: np.random.Generator) -> Params:
    """Parameters counted from rows in which hidden nodes were filled in, blurred so that nothing is impossible."""
    codes = ready.codes.copy()
    for node in reversed(model.discrete.order):
        if node in model.hidden:
            codes[:, node] = _near_seeds(_surroundings(model, ready, codes, node), model.sizes[node], ready, rng)
    filled = replace(ready, codes=codes)
    counts = model.nodes.stacked(model.seen(filled))
    return blurred(model, model.nodes.estimate(counts, imagined), counts, BLUR)


def blurred(model: Net, params: Params, counts: Counts, share: float) -> Params:
    """The same parameters with a part of every table taken from its node's own shares, and a little from all levels."""
    moved = {}
    for bundle in model.nodes.bundles:
        own = params.bundles[bundle.name]
        if "probability" in own:
            whole = np.maximum(counts.arrays[bundle.name].value.sum(axis=0), 0.0) + 0.5
            whole = whole / whole.sum(axis=-1, keepdims=True)
            moved[bundle.name] = own | {"probability": (1 - share) * own["probability"] + share * whole}
    return params.replaced(moved)


def _surroundings(model: Net, ready: NetRows, codes: np.ndarray, node: int) -> np.ndarray:
    """(rows x features) what stands around a node: its children, or else its parents and their other children."""
    graph = model.discrete
    leaves = [data for data, scope in zip(_numbers(ready), model.parents_of_leaves, strict=True) if node in scope]
    near = list(graph.children[node])
    if not leaves and not any((codes[:, other] >= 0).any() for other in near):
        near = [*graph.parents[node], *(child for parent in graph.parents[node] for child in graph.children[parent])]
    parts = [*leaves, *_indicators(model, codes, (other for other in near if other != node))]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(codes), 0))


def _indicators(model: Net, codes: np.ndarray, nodes: Iterable[int]) -> Iterable[np.ndarray]:
    """A column for every level of these nodes; nothing where a row does not show one."""
    for node in nodes:
        own = codes[:, node]
        if (own >= 0).any():
            yield (own[:, None] == np.arange(model.sizes[node])) / np.sqrt(2.0)


def _numbers(ready: NetRows) -> list[np.ndarray]:
    """The leaves' own columns in deviations from their means, zero where missing."""
    found = []
    for data in ready.leaves:
        values = np.asarray(data[0] if isinstance(data, tuple) else data, dtype=float).reshape(ready.n_rows, -1)
        with np.errstate(all="ignore"):
            weights = np.where(np.isfinite(values), ready.weights[:, None], 0.0)
            held = np.where(weights > 0, values, 0.0)
            values = values - (weights * held).sum(axis=0) / weights.sum(axis=0)
            spread = np.sqrt((weights * np.where(weights > 0, values, 0.0) ** 2).sum(axis=0) / weights.sum(axis=0))
            values = values / np.where(spread > 0, spread, 1.0)
        found.append(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0))
    return found


def _near_seeds(features: np.ndarray, levels: int, ready: NetRows, rng: np.random.Generator) -> np.ndarray:
    """For each row the number of the nearest of some seeds, each drawn by how far it is from those before."""
    if not features.shape[1] or not len(features):
        return rng.integers(levels, size=len(features))
    # Different rows in sorted order, so that neither the order of rows nor their repetition changes a start.
    features, back = np.unique(features, axis=0, return_inverse=True)
    weights, n = np.bincount(back.ravel(), ready.weights, len(features)), len(features)
    some = np.arange(n) if n <= ENOUGH_ROWS else np.sort(rng.choice(n, ENOUGH_ROWS, replace=False))
    apart = np.full(len(some), np.inf)
    seeds: list[np.ndarray] = []
    for _ in range(levels):
        chance = weights[some] * (apart if seeds else 1.0)
        total = chance.sum()
        picked = some[rng.choice(len(some), p=chance / total)] if total > 0 else rng.integers(n)
        seeds.append(features[picked])
        apart = np.minimum(apart, ((features[some] - seeds[-1]) ** 2).sum(axis=1))
    far = np.stack([((features - seed) ** 2).sum(axis=1) for seed in seeds], axis=1)
    # Of rows as near to several seeds none is better: without noise all of them would go to the first.
    return np.asarray((far + 1e-9 * rng.random(far.shape)).argmin(axis=1)[back.ravel()])
