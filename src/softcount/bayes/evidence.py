"""Marginal likelihoods of tables under models, and weights of models from them."""

from __future__ import annotations

from math import lgamma
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.learn.known_classes import estimate_params
from softcount.learn.record import Learned, bic, cheeseman_stutz

MOST_STEPS = 10_000
REGRET = 1e-9
"""Nats per row that the weights may be below the best."""


def stacking_weights(logs: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Weights of models that maximise the log-likelihood of held-out rows, from (rows x models) log-probabilities.

    The objective is concave. EM stops when no weights can gain more than a billionth of a nat per row. `rows` are the
    row weights.

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
        gain = (mass / (likelihood @ weights)) @ likelihood  # the slope of every weight; at the top, 1 at most
        weights = weights * gain
        if gain.max() <= 1 + REGRET:
            break
    return np.asarray(weights / weights.sum())


# The marginal likelihood of a fitted model, in the units of the table.


def with_plain_parameters(learned: Any) -> Any:
    """The model with plug-in instead of predictive parameters."""
    if learned.imagined.how != "predictive":
        return learned
    return replace(learned, estimates=estimate_params(learned.model, learned.counts, learned.imagined.using("mean")))


def class_evidence(learned: Learned, log_likelihood: float, labelled: bool) -> float:
    """Log marginal likelihood of the rows and their classes, from the log-likelihood at these parameters.

    Exact if every class is known and no cell missing; else by Cheeseman and Stutz.
    """
    counts = replace(learned.model.nodes.stacked(learned.counts), log_likelihood=log_likelihood)
    known = learned.n_groups if labelled else len(learned.named or ())
    return cheeseman_stutz(learned.model, learned.imagined, learned.estimates, counts, known)


def unnamed_orders(sizes: list[int]) -> float:
    """The logarithm of the number of ways to label the levels of hidden nodes: each is an optimum."""
    return sum(lgamma(size + 1) for size in sizes)


def penalised(log_likelihood: float, learned: Learned) -> float:
    """Minus half of BIC."""
    return -bic(log_likelihood, learned.n_parameters, learned.counts.rows) / 2
