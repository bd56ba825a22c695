"""What each of several models weighs by what it says of rows held out."""

from __future__ import annotations

import numpy as np

from softcount.errors import DataError

MOST_STEPS = 10_000
REGRET = 1e-9
"""Nats a row that the weights found may be below the best there are."""


def stacking_weights(logs: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Weights that make rows held out most probable, from (rows x models) logs of what each model said of them.

    The sum of log(sum of weight times probability) has one top. EM climbs to it, and stops where no other weights can
    gain more than a billionth of a nat a row. `rows` are what the rows weigh.

    >>> stacking_weights(np.log([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]])).round(4).tolist()
    [0.8472, 0.1528]
    """
    told = np.isfinite(logs).any(axis=1)
    if not told.all():
        raise DataError(
            f"row {int(np.argmin(told)) + 1}, held out, is impossible under every model. Fit with a prior "
            "(estimate='mean'), so that nothing is impossible."
        )
    mass = np.ones(len(logs)) if rows is None else np.asarray(rows, dtype=float)
    mass = mass / mass.sum()
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(MOST_STEPS):
        gain = (mass / (likelihood @ weights)) @ likelihood  # the slope of every weight; at the top, 1 at most
        weights = weights * gain
        if gain.max() <= 1 + REGRET:
            break
    return np.asarray(weights / weights.sum())
