"""Marginal likelihoods of tables under models, and model weights derived from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.learn.known_classes import estimate_params
from softcount.learn.record import Learned, cheeseman_stutz

MOST_STEPS = 10_000
REGRET = 1e-9
"""Maximum loss of the weights compared with the best ones, in nats per row."""


def stacking_weights(logs: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Return the model weights that maximise the log-likelihood of held-out rows (stacking).

    `logs` holds (rows x models) log-probabilities, and `rows` the row weights. The objective is concave. EM stops when
    no weights can gain more than a billionth of a nat per row.

    >>> stacking_weights(np.log([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]])).round(4).tolist()
    [0.8472, 0.1528]
    """
    possible = np.isfinite(logs).any(axis=1)
    if not possible.all():
        raise DataError(
            f"row {int(np.argmin(possible)) + 1}, held out, is impossible under every model. Fit with a prior "
            "(estimate='mean'), so that nothing is impossible."
        )
    mass = np.ones(len(logs)) if rows is None else np.asarray(rows, dtype=float)
    mass = mass / mass.sum()
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(MOST_STEPS):
        gain = (mass / (likelihood @ weights)) @ likelihood  # the gradient of every weight; at most 1 at the maximum
        weights = weights * gain
        if gain.max() <= 1 + REGRET:
            break
    return np.asarray(weights / weights.sum())


# The marginal likelihood of a fitted model, in the units of the table.


def with_plain_parameters(learned: Any) -> Any:
    """Return the model with plug-in instead of predictive parameters."""
    if learned.imagined.how != "predictive":
        return learned
    return replace(learned, estimates=estimate_params(learned.model, learned.counts, learned.imagined.using("mean")))


def class_evidence(learned: Learned, log_likelihood: float, labelled: bool) -> float:
    """Return the log marginal likelihood of the rows and their classes.

    `log_likelihood` is the value at the current parameters. The result is exact if every class is known and no cell is
    missing; otherwise it is the Cheeseman-Stutz approximation.
    """
    counts = replace(learned.model.nodes.stacked(learned.counts), log_likelihood=log_likelihood)
    known = learned.n_groups if labelled else len(learned.named or ())
    return cheeseman_stutz(learned.model, learned.imagined, learned.estimates, counts, known)
