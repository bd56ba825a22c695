"""Where the parts of a mixture within a class start from: the likeliest of a few deterministic cuts, climbed a little.

A cut is made by weight, and rows that are alike are cut alike, so neither the order of the rows nor a row written
twice instead of weighing two can change it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softcount.numerics.logspace import softmax_rows

MOST_ROWS = 1_000
"""Rows that a start is fitted to; of more, evenly spaced ones."""
STEPS = 25
ENOUGH = 1e-3
"""Nats for every unit of weight that a step must gain to be worth another."""
WITHIN = 0.01
"""Of a column's variance, that of the row imagined in each of several parts: a hump is narrower than all of them."""
Parts = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Shares (parts,), means and variances (parts, columns)."""


def fitted_parts(values: np.ndarray, weights: np.ndarray, parts: int) -> Parts:
    """So many normal parts of (rows x columns) numbers, NaN where missing; those with the smaller means come first."""
    there = (weights > 0) & ~np.isnan(values).all(axis=1)
    values, weights = values[there], weights[there]
    if not len(values):
        return np.full(parts, 1.0 / parts), np.zeros((parts, values.shape[1])), np.ones((parts, values.shape[1]))
    every = -(-len(values) // MOST_ROWS)
    values, weights = values[::every], weights[::every]
    centre, unit = _standard(values, weights)
    moved = (values - centre) / unit
    share, mean, variance = _likeliest(moved, weights, parts)
    order = np.lexsort(np.round(mean, 6).T[::-1])
    return share[order], mean[order] * unit + centre, variance[order] * unit * unit


def _standard(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of every column; a column that does not vary, or has nothing, has the deviation one."""
    here = ~np.isnan(values)
    mass = np.maximum(weights @ here, 1e-300)
    centre = weights @ np.where(here, values, 0.0) / mass
    square = weights @ np.where(here, values - centre, 0.0) ** 2 / mass
    return centre, np.where(square > 0, np.sqrt(square), 1.0)


def _likeliest(moved: np.ndarray, weights: np.ndarray, parts: int) -> Parts:
    """The best of the starts; an earlier one unless a later is clearly better."""
    here = ~np.isnan(moved)
    filled = np.where(here, moved, 0.0)
    features = np.concatenate([here, filled, filled * filled], axis=1)
    found: tuple[float, Parts] | None = None
    for order in _orders(filled, weights):
        climbed = _climbed(features, weights, _cut(order, weights, parts))
        if found is None or climbed[0] > found[0] + 1e-3 * weights.sum():
            found = climbed
    assert found is not None
    return found[1]


def _orders(filled: np.ndarray, weights: np.ndarray) -> Iterator[np.ndarray]:
    """What rows are sorted by before they are cut: each column, the line along which they vary most, how far out."""
    yield from filled.T
    if filled.shape[1] > 1:
        _, axes = np.linalg.eigh((filled * weights[:, None]).T @ filled)
        yield np.round(filled @ axes[:, -1], 12)
    yield np.round((filled * filled).sum(axis=1), 12)


def _cut(order: np.ndarray, weights: np.ndarray, parts: int) -> np.ndarray:
    """(rows x parts) memberships of equal weight along an order; rows that are alike are divided alike."""
    _, which = np.unique(order, return_inverse=True)
    mass = np.bincount(which, weights)
    ends = np.cumsum(mass) / mass.sum() * parts
    begins = np.concatenate([[0.0], ends[:-1]])
    bounds = np.arange(parts)
    inside = np.minimum(ends[:, None], bounds + 1.0) - np.maximum(begins[:, None], bounds)
    inside = np.maximum(inside, 0.0)
    return np.asarray((inside / inside.sum(axis=1, keepdims=True))[which])


def _climbed(features: np.ndarray, weights: np.ndarray, members: np.ndarray) -> tuple[float, Parts]:
    """A few steps of EM, a row being imagined in every part; its height, and the parts."""
    columns, height, parts = features.shape[1] // 3, -np.inf, None
    for _ in range(STEPS):
        sums = (members * weights[:, None]).T @ features
        rows, total, squares = (sums[:, k * columns : (k + 1) * columns] for k in range(3))
        mass = members.T @ weights + 1.0
        mean = total / np.maximum(rows, 1e-12)
        variance = (np.maximum(squares - mean * total, 0.0) + WITHIN) / (rows + 1.0)
        share = mass / mass.sum()
        parts = share, mean, variance
        constant = -0.5 * (mean * mean / variance + np.log(variance))
        eta = np.concatenate([constant, mean / variance, -0.5 / variance], axis=1)
        members, rowwise = softmax_rows(features @ eta.T + np.log(share))
        prior = float(np.log(share).sum() - 0.5 * (np.log(variance) + WITHIN / variance).sum())
        before, height = height, float(rowwise @ weights) + prior
        if height - before < ENOUGH * weights.sum():
            break
    assert parts is not None
    return height, parts
